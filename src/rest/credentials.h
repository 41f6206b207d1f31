/*
 * What a client shows to the server, now: a token or a password for each request, a certificate for
 * each connection, the authority that it trusts. All of it may change while the program runs.
 *
 *   - A token's file is read again when the last reading is a minute old, and after a 401.
 *   - Files of certificates, keys and authorities are read again when the last reading is ten
 *     seconds old, and after a 401 or a failed handshake; whoever holds a connection that was made
 *     with others closes it (kinf__credentials_are_outdated()). Of those who hold one the first
 *     looks at the files, and all are woken when something has changed. What cannot be read, is
 *     empty or does not fit together changes nothing; one line in the log says so.
 *   - A plugin is run when there is nothing yet, shortly before what it gave expires, and after a
 *     401; one at a time, and not again within five seconds of a failure or of such a 401. What it
 *     gave is shown until it expires, also while it is run again; if that fails one line in the log
 *     says so. Only whoever has nothing to show waits for the run, and no longer than his time. It
 *     has a thread of its own and goes on when nobody waits any more: one run serves all who need
 *     it, also who comes later, also when it fails.
 *   - Over plain HTTP nothing is read, run or sent.
 *
 * Mirrors: transport.TokenSource, exec.Authenticator. Threads: any thread.
 */
#ifndef KINF_REST_CREDENTIALS_H
#define KINF_REST_CREDENTIALS_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/lock.h"
#include "base/thread.h"
#include "rest/kubeconfig.h"

/* NULL where there is nothing. */
struct kinf__credential_parts {
    char *authorization; /* the header's line */
    char *ca_pem;
    char *cert_pem;
    char *key_pem;
};

/* Counted; constant. */
struct kinf__credential {
    _Atomic(unsigned) refs; /* atomic */
    uint64_t number;        /* of each one anew */
    uint64_t tls_number;    /* another one when authority, certificate or key are others */
    struct kinf__credential_parts parts;
};

/* NULL is allowed. */
void kinf__credential_unref(struct kinf__credential *credential);

/* Certificates and plugins speak of wall time, everything else here is monotonic. */
struct kinf__moment {
    int64_t now_ms;
    int64_t wall_s;
};
struct kinf__moment kinf__moment_now(void);

/* What is read from files. */
enum {
    KINF__TOKEN_FILE,
    KINF__AUTHORITY_FILE,
    KINF__CLIENT_FILES, /* certificate and key */
    KINF__N_CREDENTIAL_FILES,
};
struct kinf__credential_file {
    bool is_there;  /* constant after creation */
    int64_t due_ms; /* when it is read again */
    bool is_bad_told;
};

/* Who holds a connection that it would close. */
struct kinf__credential_holder {
    /* Other certificates are current, or it is the first now. Runs on any thread, with the lock held. */
    void (*wake)(void *ctx);
    void *ctx;
    struct kinf__list node; /* the credentials' */
};

struct kinf__credentials {
    /* constant after creation */
    const struct kinf__cluster_config *config;
    bool are_used; /* not over plain HTTP */
    int64_t exec_limit_ms;
    struct kinf__waker run_ended; /* set while no plugin runs; -1 where none can */
    struct kinf__waker stop;      /* of the run; likewise */

    struct kinf__mutex lock;

    /* guarded by lock */
    struct kinf__credential *current;
    struct kinf__list holders;
    struct kinf__credential_file files[KINF__N_CREDENTIAL_FILES];
    bool is_running;  /* the plugin */
    bool has_runner;  /* to be joined */
    pthread_t runner; /* of the last run */
    struct kinf__moment run_began;
    bool has_answer;
    bool is_refused;        /* what it gave last */
    int64_t due_wall_s;     /* when it is run again */
    int64_t expires_wall_s; /* what it gave */
    bool was_refused;
    int64_t refused_ms;
    struct kinf_error failure; /* of its last run; code 0: it was none */
    int64_t failed_ms;
    bool is_failure_told;
};

/* `config` is borrowed. Errors: KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM; release is allowed then.
 * Release kills a plugin that runs. */
KINF_MUST_CHECK int kinf__credentials_init(struct kinf__credentials *credentials,
                                           const struct kinf__cluster_config *config, bool is_https,
                                           struct kinf_error *err);
void kinf__credentials_release(struct kinf__credentials *credentials);

/* What the next request goes out with; the caller releases it. If there is nothing without a run of
 * the plugin it blocks for that, for `wait_ms` at most (KINF__NEVER_MS: to its end), or until the
 * waker is set. Errors: KINF_ERR_STOPPED, KINF_ERR_TIMEOUT, KINF_ERR_CONFIG (the token's file holds
 * none, and there is no other), KINF_ERR_UNAUTHORIZED (the plugin failed), KINF_ERR_SYSTEM (it
 * could not be run), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__credentials_take(struct kinf__credentials *credentials,
                                           struct kinf__moment now, int64_t wait_ms,
                                           const struct kinf__waker *waker,
                                           struct kinf__credential **ret_credential,
                                           struct kinf_error *err);

/* What there is now, for its authority: reads files, runs nothing and does not block. The caller
 * releases it. */
struct kinf__credential *kinf__credentials_peek(struct kinf__credentials *credentials,
                                                struct kinf__moment now);

/* A request with it was answered with 401. */
void kinf__credentials_refused(struct kinf__credentials *credentials,
                               const struct kinf__credential *credential, struct kinf__moment now);
/* A handshake failed. */
void kinf__credentials_distrusted(struct kinf__credentials *credentials);

/* Whether a connection that was made with it should be closed. Looks at the files when it is time
 * to; cheap otherwise. */
bool kinf__credentials_are_outdated(struct kinf__credentials *credentials,
                                    const struct kinf__credential *credential,
                                    struct kinf__moment now);
void kinf__credentials_hold(struct kinf__credentials *credentials,
                            struct kinf__credential_holder *holder);
/* When it returns, wake() is not running and will not. */
void kinf__credentials_let_go(struct kinf__credentials *credentials,
                              struct kinf__credential_holder *holder);
/* Whether it is the one who has to look at the files, if certificates are in any. */
bool kinf__credentials_has_to_look(struct kinf__credentials *credentials,
                                   const struct kinf__credential_holder *holder);

#endif
