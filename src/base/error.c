/*
 * The text and codes of errors. Neighbours: everything; no state.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/misuse.h"

void kinf__make_one_line(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == '\x7f')
            *text = ' ';
    }
}

KINF_PRINTF(3, 0)
static void write_message(struct kinf_error *err, enum kinf_errc code, const char *fmt,
                          va_list args)
{
    struct kinf_error fresh = KINF_ERROR_INIT;

    fresh.code = code;
    vsnprintf(fresh.message, sizeof fresh.message, fmt, args);
    kinf__make_one_line(fresh.message);
    *err = fresh;
}

int(kinf__error_set)(struct kinf_error *err, enum kinf_errc code, const char *fmt, ...)
{
    va_list args;

    if (err != NULL) {
        va_start(args, fmt);
        write_message(err, code, fmt, args);
        va_end(args);
    }
    return (int)code;
}

int kinf_error_set(struct kinf_error *err, enum kinf_errc code, const char *format, ...)
{
    KINF__REFUSE_NULL(NULL, (int)code, format);

    va_list args;

    if (err != NULL) {
        va_start(args, format);
        write_message(err, code, format, args);
        va_end(args);
    }
    return (int)code;
}

int(kinf__error_set_errno)(struct kinf_error *err, enum kinf_errc code, int sys_errno,
                           const char *fmt, ...)
{
    char text[128];
    va_list args;
    size_t len;

    if (err == NULL)
        return (int)code;
    va_start(args, fmt);
    write_message(err, code, fmt, args);
    va_end(args);
    err->sys_errno = sys_errno;
    len = strlen(err->message);
    snprintf(err->message + len, sizeof err->message - len, ": %s",
             strerror_r(sys_errno, text, sizeof text));
    return (int)code;
}

int(kinf__error_no_memory)(struct kinf_error *err)
{
    return kinf__error_set(err, KINF_ERR_NO_MEMORY, "out of memory");
}

void kinf__error_prefix(struct kinf_error *err, const char *fmt, ...)
{
    char message[KINF_ERROR_MESSAGE_SIZE];
    va_list args;
    size_t len;

    if (err == NULL)
        return;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    kinf__make_one_line(message);
    len = strlen(message);
    snprintf(message + len, sizeof message - len, ": %s", err->message);
    memcpy(err->message, message, sizeof message);
}

const char *kinf_errc_to_string(enum kinf_errc code)
{
    static const char *const names[] = {
        "OK",
        [-KINF_ERR_NO_MEMORY] = "NO_MEMORY",
        [-KINF_ERR_INVALID] = "INVALID",
        [-KINF_ERR_CONFIG] = "CONFIG",
        [-KINF_ERR_PARSE] = "PARSE",
        [-KINF_ERR_TRUNCATED] = "TRUNCATED",
        [-KINF_ERR_LIMIT] = "LIMIT",
        [-KINF_ERR_NOT_FOUND] = "NOT_FOUND",
        [-KINF_ERR_EXISTS] = "EXISTS",
        [-KINF_ERR_TIMEOUT] = "TIMEOUT",
        [-KINF_ERR_STOPPED] = "STOPPED",
        [-KINF_ERR_STATE] = "STATE",
        [-KINF_ERR_NETWORK] = "NETWORK",
        [-KINF_ERR_TLS] = "TLS",
        [-KINF_ERR_UNAUTHORIZED] = "UNAUTHORIZED",
        [-KINF_ERR_FORBIDDEN] = "FORBIDDEN",
        [-KINF_ERR_CONFLICT] = "CONFLICT",
        [-KINF_ERR_EXPIRED] = "EXPIRED",
        [-KINF_ERR_RV_TOO_LARGE] = "RV_TOO_LARGE",
        [-KINF_ERR_TOO_MANY_REQUESTS] = "TOO_MANY_REQUESTS",
        [-KINF_ERR_SERVER] = "SERVER",
        [-KINF_ERR_SYSTEM] = "SYSTEM",
        [-KINF_ERR_UNSUPPORTED] = "UNSUPPORTED",
        [-KINF_ERR_PROTOCOL] = "PROTOCOL",
    };
    unsigned at = 0U - (unsigned)code;

    return at < KINF__ARRAY_LEN(names) ? names[at] : "UNKNOWN";
}

const char *kinf_version(void)
{
    return KINF_VERSION_STRING;
}
