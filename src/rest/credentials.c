/*
 * Credentials and their changes. Neighbours: kubeconfig.h has what is configured, exec.c runs a
 * plugin, certificates.c checks what is read; http.c sends what is current.
 *
 * Invariants: `current` is never NULL after creation and never changes in place; where there is a
 * plugin, run_ended is set exactly while is_running is false.
 */
#include "rest/credentials.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "rest/certificates.h"

#define TOKEN_FRESH_MS 60000
#define FILES_FRESH_MS 10000
#define RUN_PAUSE_MS   5000 /* behind a failed run, and between two runs because of a 401 */
#define LEAD_MAX_S     10   /* before the end, a plugin is run again */

/* --- one credential --- */

static void parts_release(struct kinf__credential_parts *parts)
{
    kinf__secret_free(parts->authorization);
    free(parts->ca_pem);
    free(parts->cert_pem);
    kinf__secret_free(parts->key_pem);
}

void kinf__credential_unref(struct kinf__credential *credential)
{
    if (credential == NULL ||
        atomic_fetch_sub_explicit(&credential->refs, 1, memory_order_acq_rel) != 1)
        return;
    parts_release(&credential->parts);
    free(credential);
}

static bool copy_to(char **copy, const char *text)
{
    *copy = text != NULL ? strdup(text) : NULL;
    return text == NULL || *copy != NULL;
}

/* With one reference and copies of the parts; NULL when out of memory. */
static struct kinf__credential *credential_new(const struct kinf__credential_parts *parts)
{
    struct kinf__credential *credential = calloc(1, sizeof *credential);

    if (credential == NULL)
        return NULL;
    atomic_init(&credential->refs, 1);
    if (copy_to(&credential->parts.authorization, parts->authorization) &&
        copy_to(&credential->parts.ca_pem, parts->ca_pem) &&
        copy_to(&credential->parts.cert_pem, parts->cert_pem) &&
        copy_to(&credential->parts.key_pem, parts->key_pem))
        return credential;
    kinf__credential_unref(credential);
    return NULL;
}

static bool is_same_tls(const struct kinf__credential_parts *a,
                        const struct kinf__credential_parts *b)
{
    return kinf__secret_equal(a->ca_pem, b->ca_pem) &&
           kinf__secret_equal(a->cert_pem, b->cert_pem) &&
           kinf__secret_equal(a->key_pem, b->key_pem);
}

static void wake_holders_locked(struct kinf__credentials *credentials)
    KINF__REQUIRES(credentials->lock)
{
    KINF__LIST_FOR_EACH (node, &credentials->holders) {
        struct kinf__credential_holder *holder =
            KINF__LIST_ENTRY(node, struct kinf__credential_holder, node);

        holder->wake(holder->ctx);
    }
}

/* Makes copies of these parts current, if they differ from what is. */
static int replace_locked(struct kinf__credentials *credentials,
                          const struct kinf__credential_parts *parts, const char *what)
    KINF__REQUIRES(credentials->lock)
{
    const struct kinf__credential *current = credentials->current;
    bool is_tls_same = is_same_tls(&current->parts, parts);
    struct kinf__credential *fresh;

    if (is_tls_same && kinf__secret_equal(current->parts.authorization, parts->authorization))
        return 0;
    fresh = credential_new(parts);
    if (fresh == NULL)
        return KINF_ERR_NO_MEMORY;
    fresh->number = current->number + 1;
    fresh->tls_number = current->tls_number + (is_tls_same ? 0 : 1);
    kinf__credential_unref(credentials->current);
    credentials->current = fresh;
    if (!is_tls_same)
        wake_holders_locked(credentials);
    KINF__LOG(KINF__LOG_REST, KINF_LOG_INFO, "credentials changed what=\"%s\" server=%s", what,
              credentials->config->server);
    return 0;
}

/* --- headers --- */

/* NULL when out of memory, as is the next one's. */
static char *bearer_of(const char *token)
{
    static const char name[] = "Authorization: Bearer ";
    size_t len = strlen(token);
    char *line = malloc(sizeof name + len);

    if (line != NULL) {
        memcpy(line, name, sizeof name - 1);
        memcpy(line + sizeof name - 1, token, len + 1);
    }
    return line;
}

static char *basic_of(const char *username, const char *password)
{
    static const char name[] = "Authorization: Basic ";
    size_t len = strlen(username) + strlen(password) + 1;
    KINF__AUTO_SECRET_BUFFER plain = KINF__BUFFER_INIT;
    struct kinf__buffer line = KINF__BUFFER_INIT;

    /* Room for all at once, so that nothing is left behind by growing. */
    if (kinf__buffer_reserve(&plain, len + 1) < 0 ||
        kinf__buffer_printf(&plain, "%s:%s", username, password) < 0 ||
        kinf__buffer_reserve(&line, sizeof name + len * 2 + 8) < 0 ||
        kinf__buffer_append(&line, name, sizeof name - 1) < 0 ||
        kinf__secret_append_base64(&line, plain.bytes, plain.len) < 0 ||
        kinf__buffer_cstr(&line) == NULL) {
        kinf__secret_buffer_release(&line);
        return NULL;
    }
    return line.bytes;
}

/* --- files --- */

/* Once until it is good again. */
static void tell_bad(bool *is_told, const struct kinf_error *err)
{
    if (!*is_told)
        KINF__LOG(KINF__LOG_REST, KINF_LOG_WARN,
                  "credentials cannot be read again, the last ones stay error=\"%s\"",
                  err->message);
    *is_told = true;
}

static int read_authorization(const struct kinf__cluster_config *config,
                              struct kinf__credential_parts *parts, struct kinf_error *err)
{
    KINF__AUTO_SECRET *token = NULL;
    int failed = kinf__secret_read_token(config->token_file, &token, err);

    if (failed == 0 && (parts->authorization = bearer_of(token)) == NULL)
        failed = kinf__error_no_memory(err);
    return failed;
}

static int read_authority(const struct kinf__cluster_config *config,
                          struct kinf__credential_parts *parts, struct kinf_error *err)
{
    int failed = kinf__secret_read_file(config->ca_file, &parts->ca_pem, err);

    return failed < 0 ? failed
                      : kinf__certificates_check_authority(parts->ca_pem, config->ca_file, err);
}

/* What one file of the configuration holds now; what was given inline stays. NULL: there is none. */
static int read_pem(const char *file, const char *inline_pem, char **ret_pem,
                    struct kinf_error *err)
{
    if (file != NULL)
        return kinf__secret_read_file(file, ret_pem, err);
    if (inline_pem != NULL && (*ret_pem = strdup(inline_pem)) == NULL)
        return kinf__error_no_memory(err);
    return 0;
}

/* While two files change one after the other, they do not fit together for a moment. */
static int read_client(const struct kinf__cluster_config *config,
                       struct kinf__credential_parts *parts, struct kinf_error *err)
{
    int failed;

    if ((failed = read_pem(config->client_cert_file, config->client_cert_pem, &parts->cert_pem,
                           err)) < 0 ||
        (failed = read_pem(config->client_key_file, config->client_key_pem, &parts->key_pem, err)) <
            0)
        return failed;
    return kinf__certificates_check_client(
        parts->cert_pem, parts->key_pem,
        config->client_cert_file != NULL ? config->client_cert_file : config->client_key_file, NULL,
        err);
}

/* Without any token nobody can go on, so one that is bad is looked at again each time. */
static const struct {
    const char *what;
    int (*read)(const struct kinf__cluster_config *config, struct kinf__credential_parts *parts,
                struct kinf_error *err);
    int64_t fresh_ms, retry_ms;
} sources[KINF__N_CREDENTIAL_FILES] = {
    [KINF__TOKEN_FILE] = { "token", read_authorization, TOKEN_FRESH_MS, 0 },
    [KINF__AUTHORITY_FILE] = { "certificate authority", read_authority, FILES_FRESH_MS,
                               FILES_FRESH_MS },
    [KINF__CLIENT_FILES] = { "client certificate", read_client, FILES_FRESH_MS, FILES_FRESH_MS },
};

/* These parts in place of the current ones, where there are any. */
static int use_locked(struct kinf__credentials *credentials,
                      const struct kinf__credential_parts *parts, const char *what)
    KINF__REQUIRES(credentials->lock)
{
    struct kinf__credential_parts wanted = credentials->current->parts;

    if (parts->authorization != NULL)
        wanted.authorization = parts->authorization;
    if (parts->ca_pem != NULL)
        wanted.ca_pem = parts->ca_pem;
    if (parts->cert_pem != NULL) {
        wanted.cert_pem = parts->cert_pem;
        wanted.key_pem = parts->key_pem;
    }
    return replace_locked(credentials, &wanted, what);
}

/* What cannot be read, or does not fit together, changes nothing. */
static int refresh_source_locked(struct kinf__credentials *credentials, size_t i, int64_t now_ms,
                                 struct kinf_error *err) KINF__REQUIRES(credentials->lock)
{
    struct kinf__credential_file *file = &credentials->files[i];
    struct kinf__credential_parts parts = { NULL, NULL, NULL, NULL };
    int failed;

    if (!file->is_there || now_ms < file->due_ms)
        return 0;
    failed = sources[i].read(credentials->config, &parts, err);
    if (failed == 0 && use_locked(credentials, &parts, sources[i].what) < 0)
        failed = kinf__error_no_memory(err);
    file->due_ms = now_ms;
    if (failed != KINF_ERR_NO_MEMORY)
        file->due_ms += failed == 0 ? sources[i].fresh_ms : sources[i].retry_ms;
    if (failed == 0)
        file->is_bad_told = false;
    parts_release(&parts);
    return failed;
}

/* Reads what is due. Returns an error only if there is no token to go on with. */
static int refresh_locked(struct kinf__credentials *credentials, struct kinf__moment now,
                          struct kinf_error *err) KINF__REQUIRES(credentials->lock)
{
    int result = 0;

    for (size_t i = 0; credentials->are_used && i < KINF__N_CREDENTIAL_FILES; i++) {
        struct kinf_error told = KINF_ERROR_INIT;
        int failed = refresh_source_locked(credentials, i, now.now_ms, &told);

        if (failed == 0)
            continue;
        if (i != KINF__TOKEN_FILE || credentials->current->parts.authorization != NULL) {
            tell_bad(&credentials->files[i].is_bad_told, &told);
        } else {
            result = failed;
            if (err != NULL)
                *err = told;
        }
    }
    return result;
}

/* --- the plugin --- */

static bool is_run_due_locked(const struct kinf__credentials *credentials, struct kinf__moment now)
    KINF__REQUIRES(credentials->lock)
{
    return credentials->config->exec != NULL &&
           (!credentials->has_answer || credentials->is_refused ||
            now.wall_s >= credentials->due_wall_s);
}

/* What it gave can be shown, whether or not it is run again. */
static bool is_good_locked(const struct kinf__credentials *credentials, struct kinf__moment now)
    KINF__REQUIRES(credentials->lock)
{
    return credentials->has_answer && !credentials->is_refused &&
           now.wall_s < credentials->expires_wall_s;
}

static bool has_just_failed_locked(const struct kinf__credentials *credentials,
                                   struct kinf__moment now) KINF__REQUIRES(credentials->lock)
{
    return credentials->failure.code != 0 && now.now_ms - credentials->failed_ms < RUN_PAUSE_MS;
}

/* It is run again some time before the end, but not so early that what lives shortly is never used;
 * what is over on arrival lives for a second. */
static void set_end_locked(struct kinf__credentials *credentials, int64_t expires_wall_s,
                           int64_t now_s) KINF__REQUIRES(credentials->lock)
{
    int64_t life_s, lead_s;

    credentials->due_wall_s = credentials->expires_wall_s = expires_wall_s;
    if (expires_wall_s == INT64_MAX)
        return;
    life_s = expires_wall_s - now_s > 1 ? expires_wall_s - now_s : 1;
    lead_s = life_s / 4 < LEAD_MAX_S ? life_s / 4 : LEAD_MAX_S;
    credentials->expires_wall_s = now_s + life_s;
    credentials->due_wall_s = now_s + life_s - lead_s;
}

static int use_answer_locked(struct kinf__credentials *credentials,
                             const struct kinf__exec_answer *answer, struct kinf__moment now)
    KINF__REQUIRES(credentials->lock)
{
    struct kinf__credential_parts wanted = credentials->current->parts;
    KINF__AUTO_SECRET *line = NULL;

    if (answer->token != NULL && (line = bearer_of(answer->token)) == NULL)
        return KINF_ERR_NO_MEMORY;
    wanted.authorization = line;
    wanted.cert_pem = answer->cert_pem;
    wanted.key_pem = answer->key_pem;
    if (replace_locked(credentials, &wanted, "credential plugin's answer") < 0)
        return KINF_ERR_NO_MEMORY;
    credentials->has_answer = true;
    credentials->is_refused = false;
    credentials->is_failure_told = false;
    set_end_locked(credentials, answer->expires_wall_s, now.wall_s);
    return 0;
}

/* Whoever needs the answer is told by an error; while the last one is good that is nobody. */
static void note_failure_locked(struct kinf__credentials *credentials,
                                const struct kinf_error *failure, struct kinf__moment now)
    KINF__REQUIRES(credentials->lock)
{
    credentials->failure = *failure;
    credentials->failed_ms = now.now_ms;
    if (is_good_locked(credentials, now))
        tell_bad(&credentials->is_failure_told, failure);
}

static void note_run_locked(struct kinf__credentials *credentials, int failed,
                            const struct kinf__exec_answer *answer, struct kinf__moment now,
                            struct kinf_error *told) KINF__REQUIRES(credentials->lock)
{
    credentials->is_running = false;
    credentials->failure.code = (enum kinf_errc)0;
    if (failed == 0 && use_answer_locked(credentials, answer, now) < 0)
        failed = kinf__error_no_memory(told);
    if (failed < 0 && failed != KINF_ERR_STOPPED)
        note_failure_locked(credentials, told, now);
    kinf__waker_set(&credentials->run_ended);
}

/* One run. Once it has noted that it ended it needs no lock: whoever holds that one may join it. */
static void *run_plugin(void *ctx)
{
    struct kinf__credentials *credentials = ctx;
    struct kinf_error told = KINF_ERROR_INIT;
    struct kinf__exec_answer answer = { .expires_wall_s = INT64_MAX };
    int64_t began_ms = kinf__clock_now_ms(), took_ms;
    struct kinf__moment now;
    int failed = kinf__exec_run(credentials->config->exec, &credentials->stop,
                                credentials->exec_limit_ms, &answer, &told);

    took_ms = kinf__clock_now_ms() - began_ms;
    kinf__mutex_lock(&credentials->lock);
    now = credentials->run_began;
    now.now_ms += took_ms;
    now.wall_s += took_ms / 1000;
    note_run_locked(credentials, failed, &answer, now, &told);
    kinf__mutex_unlock(&credentials->lock);
    kinf__exec_answer_release(&answer);
    return NULL;
}

static void start_run_locked(struct kinf__credentials *credentials, struct kinf__moment now)
    KINF__REQUIRES(credentials->lock)
{
    struct kinf_error told = KINF_ERROR_INIT;
    int failed;

    if (credentials->has_runner)
        pthread_join(credentials->runner, NULL);
    failed =
        kinf__thread_start(&credentials->runner, "credentials", run_plugin, credentials, &told);
    credentials->has_runner = credentials->is_running = failed == 0;
    credentials->run_began = now;
    if (failed == 0)
        kinf__waker_clear(&credentials->run_ended);
    else
        note_failure_locked(credentials, &told, now);
}

/* Until the run has ended, or for a while. The last look is behind the deadline. */
static int wait_locked(struct kinf__credentials *credentials, int64_t deadline_ms,
                       const struct kinf__waker *waker, struct kinf_error *err)
    KINF__REQUIRES(credentials->lock)
{
    struct pollfd fds[] = { { waker->fd, POLLIN, 0 }, { credentials->run_ended.fd, POLLIN, 0 } };
    int64_t left_ms = kinf__clock_left_ms(kinf__clock_now_ms(), deadline_ms);
    int64_t wait_ms = kinf__clock_wait_ms(left_ms);

    kinf__mutex_unlock(&credentials->lock);
    (void)poll(fds, KINF__ARRAY_LEN(fds), wait_ms < INT_MAX ? (int)wait_ms : INT_MAX);
    kinf__mutex_lock(&credentials->lock);
    if (fds[0].revents != 0)
        return kinf__error_set(err, KINF_ERR_STOPPED, "stopped");
    if (left_ms == 0 && fds[1].revents == 0)
        return kinf__error_set(err, KINF_ERR_TIMEOUT,
                               "the time is over before the credential plugin %s has ended",
                               credentials->config->exec->command);
    return 0;
}

static int obtain_locked(struct kinf__credentials *credentials, struct kinf__moment now,
                         int64_t wait_ms, const struct kinf__waker *waker, struct kinf_error *err)
    KINF__REQUIRES(credentials->lock)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), wait_ms);

    while (is_run_due_locked(credentials, now)) {
        int failed;

        if (!credentials->is_running && !has_just_failed_locked(credentials, now))
            start_run_locked(credentials, now);
        if (is_good_locked(credentials, now))
            return 0;
        if (!credentials->is_running) {
            if (err != NULL)
                *err = credentials->failure;
            return credentials->failure.code;
        }
        failed = wait_locked(credentials, deadline_ms, waker, err);
        if (failed < 0)
            return failed;
    }
    return 0;
}

/* --- what the header promises --- */

struct kinf__moment kinf__moment_now(void)
{
    return (struct kinf__moment){ kinf__clock_now_ms(), kinf__clock_wall_ms() / 1000 };
}

int kinf__credentials_init(struct kinf__credentials *credentials,
                           const struct kinf__cluster_config *config, bool is_https,
                           struct kinf_error *err)
{
    struct kinf__credential_parts first = { .ca_pem = config->ca_pem };
    KINF__AUTO_SECRET *line = NULL;
    int failed;

    *credentials = (struct kinf__credentials){ .config = config,
                                               .are_used = is_https,
                                               .exec_limit_ms = KINF__EXEC_LIMIT_MS,
                                               .run_ended = { -1 },
                                               .stop = { -1 } };
    credentials->files[KINF__TOKEN_FILE].is_there = config->token_file != NULL;
    credentials->files[KINF__AUTHORITY_FILE].is_there = config->ca_file != NULL;
    credentials->files[KINF__CLIENT_FILES].is_there =
        config->client_cert_file != NULL || config->client_key_file != NULL;
    kinf__mutex_init(&credentials->lock, KINF__RANK_CREDENTIALS);
    kinf__list_init(&credentials->holders);
    if (is_https && config->exec != NULL) {
        if ((failed = kinf__waker_init(&credentials->run_ended, err)) < 0 ||
            (failed = kinf__waker_init(&credentials->stop, err)) < 0)
            return failed;
        kinf__waker_set(&credentials->run_ended);
    }
    if (is_https) {
        first.cert_pem = config->client_cert_pem;
        first.key_pem = config->client_key_pem;
        if (config->token != NULL)
            line = bearer_of(config->token);
        else if (config->username != NULL)
            line = basic_of(config->username, config->password != NULL ? config->password : "");
        if (line == NULL && (config->token != NULL || config->username != NULL))
            return kinf__error_no_memory(err);
    }
    first.authorization = line;
    credentials->current = credential_new(&first);
    return credentials->current != NULL ? 0 : kinf__error_no_memory(err);
}

void kinf__credentials_release(struct kinf__credentials *credentials)
{
    if (credentials->has_runner) {
        kinf__waker_set(&credentials->stop);
        pthread_join(credentials->runner, NULL);
    }
    kinf__credential_unref(credentials->current);
    kinf__waker_release(&credentials->run_ended);
    kinf__waker_release(&credentials->stop);
    kinf__mutex_release(&credentials->lock);
}

int kinf__credentials_take(struct kinf__credentials *credentials, struct kinf__moment now,
                           int64_t wait_ms, const struct kinf__waker *waker,
                           struct kinf__credential **ret_credential, struct kinf_error *err)
{
    int failed;

    kinf__mutex_lock(&credentials->lock);
    failed = refresh_locked(credentials, now, err);
    if (failed == 0 && credentials->are_used)
        failed = obtain_locked(credentials, now, wait_ms, waker, err);
    if (failed == 0) {
        atomic_fetch_add_explicit(&credentials->current->refs, 1, memory_order_relaxed);
        *ret_credential = credentials->current;
    }
    kinf__mutex_unlock(&credentials->lock);
    return failed;
}

void kinf__credentials_refused(struct kinf__credentials *credentials,
                               const struct kinf__credential *credential, struct kinf__moment now)
{
    kinf__mutex_lock(&credentials->lock);
    for (size_t i = 0; i < KINF__N_CREDENTIAL_FILES; i++)
        credentials->files[i].due_ms = INT64_MIN;
    /* Of many who are refused at once the first is enough, and so is one that has changed since. */
    if (credential->number == credentials->current->number && credentials->has_answer &&
        (!credentials->was_refused || now.now_ms - credentials->refused_ms >= RUN_PAUSE_MS)) {
        credentials->is_refused = true;
        credentials->was_refused = true;
        credentials->refused_ms = now.now_ms;
    }
    kinf__mutex_unlock(&credentials->lock);
}

void kinf__credentials_distrusted(struct kinf__credentials *credentials)
{
    kinf__mutex_lock(&credentials->lock);
    credentials->files[KINF__AUTHORITY_FILE].due_ms = INT64_MIN;
    credentials->files[KINF__CLIENT_FILES].due_ms = INT64_MIN;
    kinf__mutex_unlock(&credentials->lock);
}

struct kinf__credential *kinf__credentials_peek(struct kinf__credentials *credentials,
                                                struct kinf__moment now)
{
    struct kinf__credential *credential;

    kinf__mutex_lock(&credentials->lock);
    (void)refresh_locked(credentials, now, NULL);
    credential = credentials->current;
    atomic_fetch_add(&credential->refs, 1);
    kinf__mutex_unlock(&credentials->lock);
    return credential;
}

bool kinf__credentials_are_outdated(struct kinf__credentials *credentials,
                                    const struct kinf__credential *credential,
                                    struct kinf__moment now)
{
    bool are_outdated;

    kinf__mutex_lock(&credentials->lock);
    (void)refresh_locked(credentials, now, NULL);
    are_outdated = credentials->current->tls_number != credential->tls_number;
    kinf__mutex_unlock(&credentials->lock);
    return are_outdated;
}

void kinf__credentials_hold(struct kinf__credentials *credentials,
                            struct kinf__credential_holder *holder)
{
    kinf__mutex_lock(&credentials->lock);
    kinf__list_push_back(&credentials->holders, &holder->node);
    kinf__mutex_unlock(&credentials->lock);
}

static bool is_first_locked(const struct kinf__credentials *credentials,
                            const struct kinf__credential_holder *holder)
    KINF__REQUIRES(credentials->lock)
{
    return credentials->holders.next == &holder->node;
}

void kinf__credentials_let_go(struct kinf__credentials *credentials,
                              struct kinf__credential_holder *holder)
{
    struct kinf__credential_holder *first;
    bool was_first;

    kinf__mutex_lock(&credentials->lock);
    was_first = is_first_locked(credentials, holder);
    kinf__list_remove(&holder->node);
    if (was_first && !kinf__list_is_empty(&credentials->holders)) {
        first = KINF__LIST_ENTRY(credentials->holders.next, struct kinf__credential_holder, node);
        first->wake(first->ctx);
    }
    kinf__mutex_unlock(&credentials->lock);
}

bool kinf__credentials_has_to_look(struct kinf__credentials *credentials,
                                   const struct kinf__credential_holder *holder)
{
    const struct kinf__credential_file *files = credentials->files;
    bool is_first;

    if (!credentials->are_used ||
        (!files[KINF__AUTHORITY_FILE].is_there && !files[KINF__CLIENT_FILES].is_there))
        return false;
    kinf__mutex_lock(&credentials->lock);
    is_first = is_first_locked(credentials, holder);
    kinf__mutex_unlock(&credentials->lock);
    return is_first;
}
