/*
 * The text and codes of errors. Neighbours: everything; no state.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    switch (code) {
    case KINF_ERR_NO_MEMORY:
        return "NO_MEMORY";
    case KINF_ERR_INVALID:
        return "INVALID";
    case KINF_ERR_CONFIG:
        return "CONFIG";
    case KINF_ERR_PARSE:
        return "PARSE";
    case KINF_ERR_TRUNCATED:
        return "TRUNCATED";
    case KINF_ERR_LIMIT:
        return "LIMIT";
    case KINF_ERR_NOT_FOUND:
        return "NOT_FOUND";
    case KINF_ERR_EXISTS:
        return "EXISTS";
    case KINF_ERR_TIMEOUT:
        return "TIMEOUT";
    case KINF_ERR_STOPPED:
        return "STOPPED";
    case KINF_ERR_STATE:
        return "STATE";
    case KINF_ERR_NETWORK:
        return "NETWORK";
    case KINF_ERR_TLS:
        return "TLS";
    case KINF_ERR_UNAUTHORIZED:
        return "UNAUTHORIZED";
    case KINF_ERR_FORBIDDEN:
        return "FORBIDDEN";
    case KINF_ERR_CONFLICT:
        return "CONFLICT";
    case KINF_ERR_EXPIRED:
        return "EXPIRED";
    case KINF_ERR_RV_TOO_LARGE:
        return "RV_TOO_LARGE";
    case KINF_ERR_TOO_MANY_REQUESTS:
        return "TOO_MANY_REQUESTS";
    case KINF_ERR_SERVER:
        return "SERVER";
    case KINF_ERR_SYSTEM:
        return "SYSTEM";
    case KINF_ERR_UNSUPPORTED:
        return "UNSUPPORTED";
    }
    return code == 0 ? "OK" : "UNKNOWN";
}

const char *kinf_version(void)
{
    return KINF_VERSION_STRING;
}
