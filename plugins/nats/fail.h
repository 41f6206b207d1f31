/*
 * Writing a failure down.
 */
#ifndef NATS_FAIL_H
#define NATS_FAIL_H

#include <kinformer/error.h>

/* Returns `code`. */
__attribute__((format(printf, 3, 4))) int fail(struct kinf_error *err, enum kinf_errc code,
                                               const char *format, ...);

#endif
