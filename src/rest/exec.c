/*
 * Running a credential plugin. Neighbours: exec_config.c reads what kubeconfig says, exec_answer.c
 * what the plugin says; credentials.c decides when to run it.
 *
 * Invariant: when kinf__exec_run() returns, its child has been waited for, by its id and no other.
 */
#include "rest/exec.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include <openssl/crypto.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process.h"

#define LOG_LINE_BYTES  400 /* of standard error; a longer line is several */
#define LOG_LINES_MAX   100 /* of one run */
#define POLL_MAX_MS     60000
#define COMPLAINT_READS 16 /* a pipe's content */

/* Descriptors that are watched while the program runs. */
enum { WAKER, PROGRAM, OUTPUT, COMPLAINTS, N_WATCHED };

struct run {
    const struct kinf__exec_config *config;
    pid_t pid;
    bool has_ended;                   /* and there is no descriptor that would tell */
    struct pollfd watched[N_WATCHED]; /* a descriptor of -1 is passed over */
    char *answer;                     /* KINF__EXEC_MAX_BYTES and one */
    size_t answer_len;
    char line[LOG_LINE_BYTES + 1];
    size_t line_len;
    unsigned n_lines;
};

void kinf__exec_config_free(struct kinf__exec_config *config)
{
    if (config == NULL)
        return;
    free(config->command);
    kinf__string_list_release(&config->args);
    kinf__string_list_release(&config->env);
    free(config->install_hint);
    kinf__secret_free(config->cluster_json);
    free(config);
}

/* --- what goes in --- */

/* "KUBERNETES_EXEC_INFO={...}" */
static char *make_request(const struct kinf__exec_config *config)
{
    struct kinf__buffer text = KINF__BUFFER_INIT;

    if (kinf__buffer_printf(
            &text,
            "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":\"%s\",\"spec\":{",
            kinf__exec_version_to_string(config->version)) < 0 ||
        (config->cluster_json != NULL &&
         kinf__buffer_printf(&text, "\"cluster\":%s,", config->cluster_json) < 0) ||
        kinf__buffer_printf(&text, "\"interactive\":false}}") < 0) {
        kinf__secret_buffer_release(&text);
        return NULL;
    }
    return text.bytes;
}

static bool has_name_of(const char *entry, const char *other)
{
    size_t len = strcspn(entry, "=");

    return strncmp(entry, other, len) == 0 && other[len] == '=';
}

static bool is_overridden(const char *entry, const struct kinf__exec_config *config)
{
    if (has_name_of("KUBERNETES_EXEC_INFO=", entry))
        return true;
    for (size_t i = 0; i < config->env.n_items; i++) {
        if (has_name_of(config->env.items[i], entry))
            return true;
    }
    return false;
}

static int append_copies(struct kinf__string_list *list, char *const *items)
{
    int failed = 0;

    for (; failed == 0 && items != NULL && *items != NULL; items++)
        failed = kinf__string_list_append(list, strdup(*items));
    return failed;
}

/* Our environment, over it what is configured, over both the request. */
static int make_environment(const struct kinf__exec_config *config, struct kinf__string_list *env)
{
    int failed = 0;

    for (char **entry = environ; failed == 0 && entry != NULL && *entry != NULL; entry++) {
        if (!is_overridden(*entry, config))
            failed = kinf__string_list_append(env, strdup(*entry));
    }
    if (failed == 0)
        failed = append_copies(env, config->env.items);
    return failed < 0 ? failed : kinf__string_list_append(env, make_request(config));
}

static int make_arguments(const struct kinf__exec_config *config, struct kinf__string_list *args)
{
    int failed = kinf__string_list_append(args, strdup(config->command));

    return failed < 0 ? failed : append_copies(args, config->args.items);
}

/* --- starting --- */

static int start_error(const struct kinf__exec_config *config, int sys_errno,
                       struct kinf_error *err)
{
    int failed = kinf__error_set_errno(err, KINF_ERR_UNAUTHORIZED, sys_errno,
                                       "cannot run the credential plugin %s", config->command);

    if (err != NULL && sys_errno == ENOENT && config->install_hint != NULL) {
        size_t len = strlen(err->message);

        snprintf(err->message + len, sizeof err->message - len, "; %s", config->install_hint);
        kinf__make_one_line(err->message);
    }
    return failed;
}

static int start(struct run *run, struct kinf_error *err)
{
    KINF__CLEANUP(kinf__string_list_release) struct kinf__string_list args = { NULL, 0 };
    KINF__CLEANUP(kinf__string_list_release) struct kinf__string_list env = { NULL, 0 };
    int output[2] = { -1, -1 }, complaints[2] = { -1, -1 };
    int failed;

    run->answer = malloc(KINF__EXEC_MAX_BYTES + 1);
    if (run->answer == NULL || make_arguments(run->config, &args) < 0 ||
        make_environment(run->config, &env) < 0)
        return kinf__error_no_memory(err);
    failed = kinf__process_pipe(output, 0);
    if (failed == 0)
        failed = kinf__process_pipe(complaints, 0);
    if (failed == 0)
        failed = kinf__process_start(args.items, env.items, (int[]){ -1, output[1], complaints[1] },
                                     &run->pid);
    run->watched[OUTPUT].fd = output[0];
    run->watched[COMPLAINTS].fd = complaints[0];
    kinf__close_fd(&output[1]);
    kinf__close_fd(&complaints[1]);
    if (failed != 0)
        return start_error(run->config, failed, err);
    run->watched[PROGRAM].fd = pidfd_open(run->pid, 0);
    /* ESRCH: it has ended, and the system has reaped it (see reap()). */
    run->has_ended = run->watched[PROGRAM].fd < 0 && errno == ESRCH;
    return run->watched[PROGRAM].fd < 0 && !run->has_ended ? start_error(run->config, errno, err)
                                                           : 0;
}

/* --- while it runs --- */

static void log_line(struct run *run)
{
    run->line[run->line_len] = '\0';
    run->line_len = 0;
    if (run->line[0] == '\0' || run->n_lines++ >= LOG_LINES_MAX)
        return;
    kinf__make_one_line(run->line);
    KINF__LOG(KINF__LOG_REST, KINF_LOG_INFO, "credential plugin command=%s says=\"%s\"%s",
              run->config->command, run->line,
              run->n_lines == LOG_LINES_MAX ? " (more is not shown)" : "");
}

static void take_complaints(struct run *run, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != '\n' && bytes[i] != '\0')
            run->line[run->line_len++] = bytes[i];
        if (bytes[i] == '\n' || run->line_len == LOG_LINE_BYTES)
            log_line(run);
    }
}

static void stop_watching(struct pollfd *watched)
{
    kinf__close_fd(&watched->fd);
    watched->fd = -1;
}

/* Both take what is there; a pipe that is at its end is not watched any more. One that is filled
 * faster than it is read shall not keep us from looking at the time. */
static void read_complaints(struct run *run)
{
    char bytes[4096];
    ssize_t n = 1;

    for (unsigned i = 0; i < COMPLAINT_READS && n > 0; i++) {
        n = read(run->watched[COMPLAINTS].fd, bytes, sizeof bytes);
        if (n > 0)
            take_complaints(run, bytes, (size_t)n);
    }
    if (n == 0 || (n < 0 && errno != EAGAIN))
        stop_watching(&run->watched[COMPLAINTS]);
}

static int read_output(struct run *run, struct kinf_error *err)
{
    ssize_t n;

    do {
        n = read(run->watched[OUTPUT].fd, run->answer + run->answer_len,
                 KINF__EXEC_MAX_BYTES + 1 - run->answer_len);
        run->answer_len += n > 0 ? (size_t)n : 0;
        if (run->answer_len > KINF__EXEC_MAX_BYTES)
            return kinf__error_set(err, KINF_ERR_UNAUTHORIZED,
                                   "the credential plugin %s writes more than %u bytes",
                                   run->config->command, KINF__EXEC_MAX_BYTES);
    } while (n > 0);
    if (n == 0 || errno != EAGAIN)
        stop_watching(&run->watched[OUTPUT]);
    return 0;
}

/* Until the program has ended: what it started may keep its pipes open, and is not waited for. */
static int attend(struct run *run, int64_t limit_ms, struct kinf_error *err)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), limit_ms);

    for (;;) {
        int64_t left_ms = kinf__clock_left_ms(kinf__clock_now_ms(), deadline_ms);
        int64_t wait_ms = run->has_ended ? 0 : left_ms < POLL_MAX_MS ? left_ms : POLL_MAX_MS;
        int n = poll(run->watched, N_WATCHED, (int)wait_ms);
        int failed;

        if (n > 0 && run->watched[WAKER].revents != 0)
            return kinf__error_set(err, KINF_ERR_STOPPED, "stopped");
        if (run->watched[COMPLAINTS].fd >= 0)
            read_complaints(run);
        if (run->watched[OUTPUT].fd >= 0 && (failed = read_output(run, err)) < 0)
            return failed;
        if (run->has_ended || (n > 0 && run->watched[PROGRAM].revents != 0))
            return 0;
        if (left_ms == 0)
            return kinf__error_set(err, KINF_ERR_UNAUTHORIZED,
                                   "the credential plugin %s did not end within %lld ms; it gets "
                                   "no terminal to ask on",
                                   run->config->command, (long long)limit_ms);
    }
}

/* --- the end --- */

static int end_error(const struct run *run, int status, struct kinf_error *err)
{
    const char *advice = run->n_lines != 0 ? " (see the log for what it says)" : "";

    if (WIFSIGNALED(status))
        return kinf__error_set(err, KINF_ERR_UNAUTHORIZED,
                               "the credential plugin %s was ended by signal %d%s",
                               run->config->command, WTERMSIG(status), advice);
    return kinf__error_set(err, KINF_ERR_UNAUTHORIZED,
                           "the credential plugin %s failed with exit code %d%s",
                           run->config->command, WEXITSTATUS(status), advice);
}

/* The status stays 0 where the program around us lets the system reap its children: then only the
 * answer tells. */
static int reap(const struct run *run)
{
    int status = 0;

    while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static int judge(struct run *run, int status, struct kinf__exec_answer *ret_answer,
                 struct kinf_error *err)
{
    struct kinf_str text = { run->answer, run->answer_len };
    int failed;

    if (status != 0)
        return end_error(run, status, err);
    failed = kinf__exec_parse(text, run->config->version, ret_answer, err);
    if (failed < 0 && failed != KINF_ERR_NO_MEMORY) {
        kinf__error_prefix(err, "the answer of the credential plugin %s", run->config->command);
        if (err != NULL)
            err->code = KINF_ERR_UNAUTHORIZED;
        failed = KINF_ERR_UNAUTHORIZED;
    }
    return failed;
}

static void release(struct run *run)
{
    for (size_t i = PROGRAM; i < N_WATCHED; i++)
        kinf__close_fd(&run->watched[i].fd);
    if (run->answer != NULL)
        OPENSSL_cleanse(run->answer, run->answer_len);
    free(run->answer);
}

int kinf__exec_run(const struct kinf__exec_config *config, const struct kinf__waker *waker,
                   int64_t limit_ms, struct kinf__exec_answer *ret_answer, struct kinf_error *err)
{
    struct run run = { .config = config, .pid = -1 };
    int failed, status = 0;

    for (size_t i = 0; i < N_WATCHED; i++)
        run.watched[i] = (struct pollfd){ i == WAKER ? waker->fd : -1, POLLIN, 0 };
    failed = start(&run, err);
    if (failed == 0)
        failed = attend(&run, limit_ms, err);
    /* Of one that was reaped the number may be another's by now. */
    if (failed < 0 && run.pid > 0 && !run.has_ended)
        kill(-run.pid, SIGKILL);
    if (run.pid > 0)
        status = reap(&run);
    if (run.line_len != 0)
        log_line(&run);
    if (failed == 0)
        failed = judge(&run, status, ret_answer, err);
    release(&run);
    return failed;
}
