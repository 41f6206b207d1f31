/*
 * The ExecCredential that a plugin writes. Neighbours: exec.c runs the plugin.
 */
#include "rest/exec.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/error.h"
#include "base/rfc3339.h"
#include "json/scan.h"
#include "rest/certificates.h"

#define MAX_DEPTH 64

const char *kinf__exec_version_to_string(enum kinf__exec_version version)
{
    return version == KINF__EXEC_V1 ? "client.authentication.k8s.io/v1"
                                    : "client.authentication.k8s.io/v1beta1";
}

void kinf__exec_answer_release(struct kinf__exec_answer *answer)
{
    kinf__secret_free(answer->token);
    kinf__secret_free(answer->cert_pem);
    kinf__secret_free(answer->key_pem);
    *answer = (struct kinf__exec_answer){ .expires_wall_s = INT64_MAX };
}

/* A text member; NULL if it is missing, null or empty. Errors: KINF_ERR_PARSE, KINF_ERR_NO_MEMORY. */
static int read_text(struct kinf__json_value object, const char *key, char **ret_text,
                     struct kinf_error *err)
{
    struct kinf__json_value value;
    size_t len;
    char *text;

    if (!kinf__json_member(object, kinf_str_from(key), &value) || value.type == KINF__JSON_NULL)
        return 0;
    if (value.type != KINF__JSON_STRING)
        return kinf__error_set(err, KINF_ERR_PARSE, "status.%s is no text", key);
    text = malloc(value.raw.len);
    if (text == NULL)
        return kinf__error_no_memory(err);
    len = kinf__json_unescape(value.raw, text, value.raw.len - 1);
    text[len] = '\0';
    if (strlen(text) != len) {
        OPENSSL_cleanse(text, len);
        free(text);
        return kinf__error_set(err, KINF_ERR_PARSE, "status.%s has a NUL in it", key);
    }
    if (len == 0)
        free(text);
    else
        *ret_text = text;
    return 0;
}

static int check_head(struct kinf__json_value root, enum kinf__exec_version version,
                      struct kinf_error *err)
{
    const char *wanted = kinf__exec_version_to_string(version);
    struct kinf__json_value value;

    if (!kinf__json_member(root, KINF_STR("kind"), &value) || value.type != KINF__JSON_STRING ||
        !kinf__json_string_equals(value.raw, KINF_STR("ExecCredential")))
        return kinf__error_set(err, KINF_ERR_PARSE, "it is no ExecCredential");
    if (!kinf__json_member(root, KINF_STR("apiVersion"), &value) ||
        value.type != KINF__JSON_STRING ||
        !kinf__json_string_equals(value.raw, kinf_str_from(wanted)))
        return kinf__error_set(err, KINF_ERR_PARSE,
                               "its apiVersion is not %s, which kubeconfig asks for", wanted);
    return 0;
}

static int read_expiry(struct kinf__json_value status, int64_t *ret_wall_s, struct kinf_error *err)
{
    KINF__AUTO_FREE char *text = NULL;
    int failed = read_text(status, "expirationTimestamp", &text, err);

    if (failed < 0 || text == NULL)
        return failed;
    return kinf__rfc3339_parse(kinf_str_from(text), ret_wall_s)
               ? 0
               : kinf__error_set(err, KINF_ERR_PARSE,
                                 "status.expirationTimestamp is no time of RFC 3339");
}

/* A certificate's own end counts, too. */
static int check_parts(struct kinf__exec_answer *answer, struct kinf_error *err)
{
    int64_t not_after;
    int failed;

    if (answer->token == NULL && answer->cert_pem == NULL && answer->key_pem == NULL)
        return kinf__error_set(err, KINF_ERR_PARSE,
                               "its status has neither a token nor a client certificate");
    if ((answer->cert_pem == NULL) != (answer->key_pem == NULL))
        return kinf__error_set(err, KINF_ERR_PARSE,
                               "clientCertificateData and clientKeyData go together, one is "
                               "missing");
    if (answer->token != NULL && !kinf__is_token(answer->token))
        return kinf__error_set(err, KINF_ERR_PARSE,
                               "status.token has a blank, a line's end or another byte that no "
                               "token has");
    failed = kinf__certificates_check_client(answer->cert_pem, answer->key_pem, "status",
                                             &not_after, err);
    if (failed == 0 && not_after < answer->expires_wall_s)
        answer->expires_wall_s = not_after;
    if (failed < 0 && err != NULL)
        err->code = KINF_ERR_PARSE;
    return failed < 0 ? KINF_ERR_PARSE : 0;
}

static int parse(struct kinf_str text, enum kinf__exec_version version,
                 struct kinf__exec_answer *answer, struct kinf_error *err)
{
    struct kinf__json_value root, status;
    size_t at;
    int failed;

    if (kinf__json_scan_all(text, MAX_DEPTH, &at) < 0)
        return kinf__error_set(err, KINF_ERR_PARSE, "it is no JSON (byte %zu of %zu)", at,
                               text.len);
    root = kinf__json_value_of(text);
    if ((failed = check_head(root, version, err)) < 0)
        return failed;
    if (!kinf__json_member(root, KINF_STR("status"), &status) || status.type != KINF__JSON_OBJECT)
        return kinf__error_set(err, KINF_ERR_PARSE, "it has no status");
    if ((failed = read_text(status, "token", &answer->token, err)) < 0 ||
        (failed = read_text(status, "clientCertificateData", &answer->cert_pem, err)) < 0 ||
        (failed = read_text(status, "clientKeyData", &answer->key_pem, err)) < 0 ||
        (failed = read_expiry(status, &answer->expires_wall_s, err)) < 0)
        return failed;
    return check_parts(answer, err);
}

int kinf__exec_parse(struct kinf_str text, enum kinf__exec_version version,
                     struct kinf__exec_answer *ret_answer, struct kinf_error *err)
{
    struct kinf__exec_answer answer = { .expires_wall_s = INT64_MAX };
    int failed = parse(text, version, &answer, err);

    if (failed < 0) {
        kinf__exec_answer_release(&answer);
        return failed;
    }
    *ret_answer = answer;
    return 0;
}
