/*
 * SHA-256 of one text, and of several.
 *
 * Threads: any thread.
 */
#ifndef KINF_SERVE_DIGEST_H
#define KINF_SERVE_DIGEST_H

#include <stddef.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

#define KINF__DIGEST_SIZE 32

/* As everybody computes it. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__sha256(struct kinf_str text, unsigned char digest[KINF__DIGEST_SIZE]);

/* Of the parts in order, each with its length in front, so that no two lists of parts have one
 * digest. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__digest(const struct kinf_str *parts, size_t n_parts,
                                 unsigned char digest[KINF__DIGEST_SIZE]);

#endif
