/*
 * kinformer-sim: make a server with what it is told to have, serve it, end at once.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/api.h>
#include <kinformer/log.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "serve/address.h"
#include "serve/endpoint.h"
#include "serve/kubeconfig_file.h"
#include "serve/program.h"
#include "fault/fault_endpoint.h"
#include "sim/certificate.h"
#include "workloads/churn.h"
#include "workloads/generate.h"
#include "workloads/workloads.h"
#include "sim/options.h"
#include "apiserver/sim.h"

#define MANIFEST_MAX_BYTES ((size_t)1 << 30)

/* Signal handlers set it, the main thread waits on it. */
static struct kinf__waker wake;
static _Atomic(bool) stop_asked, rotation_asked;

/* All that runs; NULL: not there. */
struct program {
    const struct kinf__sim_arguments *arguments;
    struct kinf__access_policy *policy;
    struct kinf__sim *sim;
    struct kinf__certificate *certificate;
    struct kinf__endpoint *endpoints[KINF__FLAG_MAX_VALUES];
    size_t n_endpoints;
    struct kinf__fault_endpoint *fault_endpoint;
    struct kinf__backup *backup; /* the fault endpoint's thread's */
    bool is_started;
};

/* --- what there is --- */

static int load(struct kinf__sim *sim, const char *path, struct kinf_error *err)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    int failed = kinf__file_read(path, MANIFEST_MAX_BYTES, &text, err);

    if (failed == 0 && text.len > MANIFEST_MAX_BYTES)
        failed = kinf__error_set(err, KINF_ERR_LIMIT, "%s is above %zu MiB", path,
                                 MANIFEST_MAX_BYTES >> 20);
    return failed < 0 ? failed : kinf__sim_load(sim, kinf__buffer_str(&text), path, err);
}

static int add_faults(struct kinf__sim *sim, const struct kinf__flag_values *specs,
                      struct kinf_error *err)
{
    int failed = 0;
    unsigned id;

    for (size_t i = 0; failed == 0 && i < specs->n_items; i++) {
        failed = kinf__faults_add(kinf__sim_faults(sim), specs->items[i], &id, err);
        if (failed < 0)
            kinf__error_prefix(err, "--fault %s", specs->items[i]);
    }
    return failed;
}

static int fill(struct program *program, struct kinf_error *err)
{
    const struct kinf__sim_arguments *arguments = program->arguments;
    struct kinf__sim *sim = program->sim;
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < arguments->loads.n_items; i++)
        failed = load(sim, arguments->loads.items[i], err);
    if (failed == 0 && arguments->generate != NULL)
        failed = kinf__generate(sim, arguments->generate, err);
    if (failed == 0 && arguments->churn != NULL)
        failed = kinf__churn_add(sim, arguments->churn, NULL, err);
    return failed < 0 ? failed : add_faults(sim, &arguments->faults, err);
}

/* Leaves nothing on disk, so that a signal may end it anywhere. */
static int make_sim(struct program *program, struct kinf_error *err)
{
    const struct kinf__sim_arguments *arguments = program->arguments;
    struct kinf__sim_options options = { .seed = arguments->seed, .limits = arguments->limits };
    int failed = 0;

    if (arguments->policy_file != NULL)
        failed = kinf__access_policy_read(arguments->policy_file, &program->policy, err);
    options.policy = program->policy;
    if (failed == 0)
        failed = kinf__sim_new(&options, &program->sim, err);
    if (failed == 0 && !arguments->has_no_workloads)
        failed = kinf__workloads_add(program->sim, NULL, err);
    return failed < 0 ? failed : fill(program, err);
}

/* --- actions, for POST /actions/NAME at --fault-listen --- */

/* Notes what is stored. */
static int back_up(void *ctx, struct kinf_error *err)
{
    struct program *program = ctx;
    struct kinf__store *store = kinf__sim_store(program->sim);
    struct kinf__backup *backup = NULL;
    int failed;

    kinf__store_lock(store);
    failed = kinf__store_back_up(store, &backup);
    kinf__store_unlock(store);
    if (failed < 0)
        return kinf__error_set(err, failed, "the backup failed");
    kinf__backup_free(program->backup);
    program->backup = backup;
    return 0;
}

/* Makes it so again, resourceVersions included. */
static int restore(void *ctx, struct kinf_error *err)
{
    const struct program *program = ctx;
    struct kinf__store *store = kinf__sim_store(program->sim);
    int failed;

    if (program->backup == NULL)
        return kinf__error_set(err, KINF_ERR_STATE, "there is no backup");
    kinf__store_lock(store);
    failed = kinf__store_restore(store, program->backup);
    kinf__store_unlock(store);
    return failed < 0 ? kinf__error_set(err, failed, "the restore failed") : 0;
}

/* Forgets all history, as a restart does: every watch ends with 410, and so do older versions. */
static int expire(void *ctx, struct kinf_error *err)
{
    const struct program *program = ctx;
    struct kinf__store *store = kinf__sim_store(program->sim);

    (void)err;
    kinf__store_lock(store);
    kinf__store_expire(store);
    kinf__store_unlock(store);
    return 0;
}

/* Breaks the connection of every request under way. */
static int drop(void *ctx, struct kinf_error *err)
{
    const struct program *program = ctx;

    (void)err;
    kinf__server_cut_off(kinf__sim_server(program->sim));
    return 0;
}

/* Changes the server's certificate; that is the main thread's. */
static int ask_for_rotation(void *ctx, struct kinf_error *err)
{
    const struct program *program = ctx;

    if (program->certificate == NULL)
        return kinf__error_set(err, KINF_ERR_UNSUPPORTED, "there is no certificate to change");
    atomic_store(&rotation_asked, true);
    kinf__waker_set(&wake);
    return 0;
}

static int start_fault_endpoint(struct program *program, struct kinf_error *err)
{
    static const struct kinf__fault_action actions[] = { { "backup", back_up },
                                                         { "restore", restore },
                                                         { "expire", expire },
                                                         { "drop", drop },
                                                         { "rotate", ask_for_rotation } };

    return kinf__fault_endpoint_new(
        kinf__sim_faults(program->sim), actions, KINF__ARRAY_LEN(actions), program,
        program->arguments->fault_listen, &program->fault_endpoint, err);
}

/* --- serving --- */

static int make_certificate(struct program *program, struct kinf_error *err)
{
    const struct kinf__flag_values *listen = &program->arguments->listen;
    struct kinf__address addresses[KINF__FLAG_MAX_VALUES];
    const char *hosts[KINF__FLAG_MAX_VALUES];
    size_t n_hosts = 0;

    for (size_t i = 0; i < listen->n_items; i++) {
        int failed = kinf__address_parse(listen->items[i], &addresses[i], err);

        if (failed < 0)
            return failed;
        if (addresses[i].path == NULL)
            hosts[n_hosts++] = addresses[i].host;
    }
    return kinf__certificate_new(hosts, n_hosts, &program->certificate, err);
}

static int listen_at_all(struct program *program, struct kinf_error *err)
{
    const struct kinf__flag_values *listen = &program->arguments->listen;
    struct kinf__endpoint_options options = { .is_guarded = program->policy != NULL };
    int failed = 0;

    if (program->certificate != NULL) {
        options.cert_file = kinf__certificate_cert_file(program->certificate);
        options.key_file = kinf__certificate_key_file(program->certificate);
    }
    for (size_t i = 0; failed == 0 && i < listen->n_items; i++) {
        failed = kinf__endpoint_start(kinf__sim_server(program->sim), listen->items[i], &options,
                                      &program->endpoints[i], err);
        if (failed == 0)
            program->n_endpoints++;
    }
    return failed;
}

static const char *first_http_url(const struct program *program)
{
    size_t i = 0;

    while (strncmp(kinf__endpoint_url(program->endpoints[i]), "http", 4) != 0)
        i++;
    return kinf__endpoint_url(program->endpoints[i]);
}

static int write_kubeconfig(const struct program *program, struct kinf_error *err)
{
    KINF__AUTO_FREE struct kinf__kubeconfig_user *users = NULL;
    struct kinf__kubeconfig_file file = { .url = first_http_url(program) };
    struct kinf__access_policy_user user;
    const char *token;

    if (program->certificate != NULL)
        file.authority_file = kinf__certificate_authority_file(program->certificate);
    while (program->policy != NULL &&
           kinf__access_policy_get_user(program->policy, file.n_users, &user, &token)) {
        struct kinf__kubeconfig_user *more = reallocarray(users, file.n_users + 1, sizeof *users);

        if (more == NULL)
            return kinf__error_no_memory(err);
        users = more;
        users[file.n_users++] = (struct kinf__kubeconfig_user){ .name = user.name, .token = token };
    }
    file.users = users;
    return kinf__kubeconfig_file_write(&file, program->arguments->kubeconfig_out, err);
}

static int print_urls(const struct program *program, struct kinf_error *err)
{
    for (size_t i = 0; i < program->n_endpoints; i++)
        printf("serving %s\n", kinf__endpoint_url(program->endpoints[i]));
    if (program->fault_endpoint != NULL)
        printf("faults %s\n", kinf__fault_endpoint_url(program->fault_endpoint));
    return fflush(stdout) == 0 ? 0
                               : kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno,
                                                       "cannot write to standard output");
}

static int start(struct program *program, struct kinf_error *err)
{
    const struct kinf__sim_arguments *arguments = program->arguments;
    int failed = arguments->has_tls ? make_certificate(program, err) : 0;

    if (failed == 0)
        failed = kinf__sim_start(program->sim, err);
    program->is_started = failed == 0;
    if (failed == 0)
        failed = listen_at_all(program, err);
    if (failed == 0 && arguments->fault_listen != NULL)
        failed = start_fault_endpoint(program, err);
    if (failed == 0 && arguments->kubeconfig_out != NULL)
        failed = write_kubeconfig(program, err);
    return failed < 0 ? failed : print_urls(program, err);
}

/* --- life --- */

static void handle_signal(int signal_no)
{
    atomic_store(signal_no == SIGHUP ? &rotation_asked : &stop_asked, true);
    kinf__waker_set(&wake);
}

/* Without a certificate it ends with its terminal, as others do that nobody told to stay (nohup). */
static void install_signal_handlers(bool has_certificate)
{
    struct sigaction action = { .sa_handler = handle_signal, .sa_flags = SA_RESTART };

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (has_certificate)
        sigaction(SIGHUP, &action, NULL);
}

static void rotate(const struct program *program)
{
    struct kinf_error err = KINF_ERROR_INIT;

    if (kinf__certificate_rotate(program->certificate, &err) < 0)
        KINF__LOG(KINF__LOG_SERVE, KINF_LOG_WARN, "no new certificate: %s", err.message);
}

static void wait_for_the_end(const struct program *program)
{
    while (!atomic_load(&stop_asked)) {
        kinf__waker_wait(&wake, KINF__NEVER_MS);
        kinf__waker_clear(&wake);
        if (atomic_exchange(&rotation_asked, false))
            rotate(program);
    }
}

static void stop(struct program *program)
{
    kinf__fault_endpoint_free(program->fault_endpoint);
    kinf__backup_free(program->backup);
    for (size_t i = 0; i < program->n_endpoints; i++)
        kinf__endpoint_quiesce(program->endpoints[i]);
    if (program->is_started)
        kinf__sim_stop(program->sim);
    for (size_t i = 0; i < program->n_endpoints; i++)
        kinf__endpoint_free(program->endpoints[i]);
    kinf__sim_free(program->sim);
    kinf__certificate_free(program->certificate);
    kinf__access_policy_free(program->policy);
}

static int run(const struct kinf__sim_arguments *arguments, struct kinf_error *err)
{
    struct program program = { .arguments = arguments };
    int failed = make_sim(&program, err);

    if (failed == 0)
        failed = kinf__waker_init(&wake, err);
    if (failed == 0) {
        install_signal_handlers(arguments->has_tls);
        failed = start(&program, err);
        if (failed == 0)
            wait_for_the_end(&program);
    }
    stop(&program);
    return failed;
}

static int execute(const struct kinf__sim_arguments *arguments, struct kinf_error *err)
{
    switch (arguments->command) {
    case KINF__SIM_COMMAND_HELP:
        fputs(kinf__sim_help, stdout);
        return 0;
    case KINF__SIM_COMMAND_VERSION:
        printf("kinformer-sim %s\n", kinf_version());
        return 0;
    case KINF__SIM_COMMAND_RUN:
        break;
    }
    return run(arguments, err);
}

static int set_log_levels(const struct kinf__sim_arguments *arguments, struct kinf_error *err)
{
    const char *levels = arguments->log_levels, *variable = getenv("KINF_LOG");

    if (levels == NULL && variable != NULL && *variable != '\0')
        levels = variable;
    return levels != NULL ? kinf_log_set_levels(levels, err) : 0;
}

int main(int argc, char *argv[])
{
    const struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__sim_arguments arguments;
    int failed;

    kinf__program_begin();
    sigaction(SIGPIPE, &ignore, NULL);
    failed = kinf__sim_arguments_parse(argc, argv, &arguments, &err);
    if (failed == 0)
        failed = set_log_levels(&arguments, &err);
    if (failed == 0)
        failed = execute(&arguments, &err);
    return kinf__program_end("kinformer-sim", failed, &err);
}
