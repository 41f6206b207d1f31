/*
 * What is said of misuse. Neighbours: every public function.
 */
#include "base/misuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define MAX_OPTIONS_SIZE 4096

int kinf__misuse(struct kinf_error *err, enum kinf_errc code, const char *fmt, ...)
{
    char message[KINF_ERROR_MESSAGE_SIZE];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    KINF__LOG(KINF__LOG_BASE, KINF_LOG_ERROR, "misuse refused error=%s", KINF__QUOTED(message));
    return kinf__error_set(err, code, "%s", message);
}

int kinf__options_read(void *own, size_t own_size, const void *given, const char *name,
                       struct kinf_error *err)
{
    size_t size = *(const size_t *)given;

    if (size < 2 * sizeof size || size > MAX_OPTIONS_SIZE || size % sizeof size != 0)
        return kinf__misuse(err, KINF_ERR_INVALID,
                            "%s.size is %zu, which it never was: begin with its INIT macro", name,
                            size);
    memset(own, 0, own_size);
    memcpy(own, given, size < own_size ? size : own_size);
    *(size_t *)own = own_size;
    return 0;
}

void kinf__misuse_null(struct kinf_error *err, const char *function, const char *names, size_t i)
{
    for (; i > 0; i--)
        names += strcspn(names, ",") + strlen(", ");
    (void)kinf__misuse(err, KINF_ERR_INVALID, "%s: %.*s is NULL", function,
                       (int)strcspn(names, ","), names);
}
