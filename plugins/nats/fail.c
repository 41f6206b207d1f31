/*
 * Writing a failure down. See fail.h.
 */
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>

int fail(struct kinf_error *err, enum kinf_errc code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    err->code = code;
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}
