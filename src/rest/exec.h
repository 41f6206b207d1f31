/*
 * Credential plugins: a program that is run for a token or a client certificate, as kubeconfig's
 * `exec` describes it.
 *
 * The program gets no terminal (we may be a daemon): its standard input is empty. What it writes to
 * standard output is its answer and never shown; standard error goes to the log, line by line. It
 * runs in a process group of its own, which is killed when the time is over, when the answer is too
 * long or when the waker is set.
 *
 * Mirrors: plugin/pkg/client/auth/exec. Threads: any thread.
 */
#ifndef KINF_REST_EXEC_H
#define KINF_REST_EXEC_H

#include <stdint.h>

#include <kinformer/str.h>

#include "base/thread.h"
#include "rest/secret.h"

#define KINF__EXEC_MAX_BYTES (1u << 20) /* of an answer */
#define KINF__EXEC_LIMIT_MS  60000      /* that the program may take */

enum kinf__exec_version { KINF__EXEC_V1, KINF__EXEC_V1BETA1 };

/* "client.authentication.k8s.io/v1" */
const char *kinf__exec_version_to_string(enum kinf__exec_version version);

/* What kubeconfig says. */
struct kinf__exec_config {
    enum kinf__exec_version version;
    char *command; /* an absolute path, or a name for PATH */
    struct kinf__string_list args;
    struct kinf__string_list env; /* "NAME=VALUE" */
    char *install_hint;
    char *cluster_json; /* spec.cluster; NULL unless provideClusterInfo */
};

void kinf__exec_config_free(struct kinf__exec_config *config);

/* What the program gave. Strings are owned; NULL where it gave nothing. */
struct kinf__exec_answer {
    char *token;
    char *cert_pem;
    char *key_pem;
    int64_t expires_wall_s; /* INT64_MAX: it did not say */
};

void kinf__exec_answer_release(struct kinf__exec_answer *answer);

/* Runs the program to its end. Blocks. Errors: KINF_ERR_STOPPED (the waker), KINF_ERR_NO_MEMORY, and
 * KINF_ERR_UNAUTHORIZED for everything that leaves us without a credential: a program that is
 * missing (the message has the install hint) or fails, an answer that is none, the time. */
KINF_MUST_CHECK int kinf__exec_run(const struct kinf__exec_config *config,
                                   const struct kinf__waker *waker, int64_t limit_ms,
                                   struct kinf__exec_answer *ret_answer, struct kinf_error *err);

/* Reads an ExecCredential, from whatever bytes. Errors: KINF_ERR_PARSE, KINF_ERR_NO_MEMORY; no
 * message has a part of the text. */
KINF_MUST_CHECK int kinf__exec_parse(struct kinf_str text, enum kinf__exec_version version,
                                     struct kinf__exec_answer *ret_answer, struct kinf_error *err);

#endif
