/*
 * From a Status, or what came in its place, to an error. Neighbours: http.c for responses, the
 * reflector for ERROR events.
 */
#include "rest/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "json/scan.h"

#define REASON_SIZE       128
#define EXCERPT_BYTES     200 /* of a body that is no Status */
#define RETRY_MAX_SECONDS 3600
#define RV_TOO_LARGE_TEXT "Too large resource version"

/* What of a Status decides. */
struct status {
    int code;
    char reason[REASON_SIZE];
    char message[KINF_ERROR_MESSAGE_SIZE];
    uint32_t retry_after_ms;
    bool is_rv_too_large;
};

/* A text of the server, cut to fit. */
static void read_string(struct kinf__json_value object, const char *key, char *buf, size_t size)
{
    struct kinf__json_value value;
    KINF__AUTO_FREE char *text = NULL;
    size_t len;

    *buf = '\0';
    if (!kinf__json_member(object, kinf_str_from(key), &value) || value.type != KINF__JSON_STRING)
        return;
    text = malloc(value.raw.len);
    if (text == NULL)
        return;
    len = kinf__json_unescape(value.raw, text, value.raw.len);
    len = len < size ? len : size - 1;
    memcpy(buf, text, len);
    buf[len] = '\0';
}

static int read_int(struct kinf__json_value object, const char *key)
{
    struct kinf__json_value value;
    int number = 0;

    if (!kinf__json_member(object, kinf_str_from(key), &value) || value.type != KINF__JSON_NUMBER)
        return 0;
    for (size_t i = 0; i < value.raw.len && number < 1000000; i++) {
        if (value.raw.bytes[i] < '0' || value.raw.bytes[i] > '9')
            return 0;
        number = number * 10 + (value.raw.bytes[i] - '0');
    }
    return number;
}

static bool has_cause(struct kinf__json_value details, const char *member, const char *expected)
{
    struct kinf__json_value causes, cause, value;
    struct kinf__json_iter iter;
    struct kinf_str key;

    if (!kinf__json_member(details, KINF_STR("causes"), &causes) ||
        !kinf__json_iter_init(&iter, causes))
        return false;
    while (kinf__json_iter_next(&iter, &key, &cause)) {
        if (kinf__json_member(cause, kinf_str_from(member), &value) &&
            value.type == KINF__JSON_STRING &&
            kinf__json_string_equals(value.raw, kinf_str_from(expected)))
            return true;
    }
    return false;
}

/* Older servers give no such reason, but one of the texts. */
static bool is_rv_too_large(const struct status *status, struct kinf__json_value details)
{
    if (has_cause(details, "reason", "ResourceVersionTooLarge"))
        return true;
    return strcmp(status->reason, "Timeout") == 0 &&
           (has_cause(details, "message", RV_TOO_LARGE_TEXT) ||
            strstr(status->message, RV_TOO_LARGE_TEXT) != NULL);
}

/* Whether the text is a Status; one without kind, as a timed-out request gives, is one too. */
static bool read_status(struct kinf_str text, struct status *ret_status)
{
    struct kinf__json_value root, details = { KINF__JSON_NULL, KINF_STR("null") };
    char outcome[REASON_SIZE];
    size_t len;

    if (kinf__json_scan(text, true, &len) < 0)
        return false;
    root = kinf__json_value_of(text);
    read_string(root, "status", outcome, sizeof outcome);
    *ret_status = (struct status){ .code = read_int(root, "code") };
    if (root.type != KINF__JSON_OBJECT ||
        (strcmp(outcome, "Failure") != 0 && ret_status->code == 0))
        return false;
    read_string(root, "reason", ret_status->reason, sizeof ret_status->reason);
    read_string(root, "message", ret_status->message, sizeof ret_status->message);
    if (kinf__json_member(root, KINF_STR("details"), &details)) {
        int seconds = read_int(details, "retryAfterSeconds");

        ret_status->retry_after_ms =
            (uint32_t)(seconds < RETRY_MAX_SECONDS ? seconds : RETRY_MAX_SECONDS) * 1000;
    }
    ret_status->is_rv_too_large = is_rv_too_large(ret_status, details);
    return true;
}

static enum kinf_errc errc_of_http(int http_status)
{
    switch (http_status) {
    case 401:
        return KINF_ERR_UNAUTHORIZED;
    case 403:
        return KINF_ERR_FORBIDDEN;
    case 404:
        return KINF_ERR_NOT_FOUND;
    case 409:
        return KINF_ERR_CONFLICT;
    case 410:
        return KINF_ERR_EXPIRED;
    case 429:
        return KINF_ERR_TOO_MANY_REQUESTS;
    default:
        return KINF_ERR_SERVER;
    }
}

static enum kinf_errc errc_of_status(const struct status *status, int http_status)
{
    static const struct {
        const char *reason;
        enum kinf_errc code;
    } reasons[] = {
        { "Expired", KINF_ERR_EXPIRED },
        { "Gone", KINF_ERR_EXPIRED },
        { "TooManyRequests", KINF_ERR_TOO_MANY_REQUESTS },
        { "Unauthorized", KINF_ERR_UNAUTHORIZED },
        { "Forbidden", KINF_ERR_FORBIDDEN },
        { "NotFound", KINF_ERR_NOT_FOUND },
        { "AlreadyExists", KINF_ERR_EXISTS },
        { "Conflict", KINF_ERR_CONFLICT },
    };

    if (status->is_rv_too_large)
        return KINF_ERR_RV_TOO_LARGE;
    for (size_t i = 0; i < KINF__ARRAY_LEN(reasons); i++) {
        if (strcmp(status->reason, reasons[i].reason) == 0)
            return reasons[i].code;
    }
    return errc_of_http(http_status);
}

/* Text of a proxy or a filter: its beginning, on one line. */
static int plain_error(struct kinf_str text, int http_status, struct kinf_error *err)
{
    char excerpt[EXCERPT_BYTES + 1];
    size_t len = 0;
    int code;

    while (len < text.len && len < EXCERPT_BYTES && (unsigned char)text.bytes[len] >= 0x20) {
        excerpt[len] = text.bytes[len];
        len++;
    }
    excerpt[len] = '\0';
    if (http_status == 0)
        return kinf__error_set(err, KINF_ERR_PARSE, "an error of the server that is no Status: %s",
                               excerpt);
    code = kinf__error_set(err, errc_of_http(http_status), "%s",
                           len != 0 ? excerpt : "no explanation");
    if (err != NULL)
        err->http_status = http_status;
    return code;
}

int kinf__status_to_error(struct kinf_str text, int http_status, struct kinf_error *err)
{
    struct status status;
    int code;

    if (!read_status(text, &status))
        return plain_error(text, http_status, err);
    if (http_status == 0)
        http_status = status.code;
    code = kinf__error_set(err, errc_of_status(&status, http_status), "%s%s%s",
                           *status.message != '\0' ? status.message : "no explanation",
                           *status.reason != '\0' ? ", reason " : "", status.reason);
    if (err != NULL) {
        err->http_status = http_status;
        err->retry_after_ms = status.retry_after_ms;
    }
    return code;
}

bool kinf__status_has_reason(struct kinf_str text)
{
    struct status status;

    return read_status(text, &status) && *status.reason != '\0';
}
