/*
 * SHA-256 of several texts.
 *
 * Threads: any thread.
 */
#ifndef KINF_REST_DIGEST_H
#define KINF_REST_DIGEST_H

#include <stddef.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

#define KINF__DIGEST_SIZE 32

/* Of the parts in order, each with its length in front, so that no two lists of parts have one
 * digest. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__digest(const struct kinf_str *parts, size_t n_parts,
                                 unsigned char digest[KINF__DIGEST_SIZE]);

#endif
