/*
 * What the list stream and the watch stream have in common: limits, and how they report what they
 * leave out.
 */
#ifndef KINF_REFLECTOR_STREAM_H
#define KINF_REFLECTOR_STREAM_H

#include <kinformer/error.h>

/* Room for a resourceVersion with its NUL; the indexer's and the queue's limit. Servers send up to
 * 39 digits. */
#define KINF__RV_SIZE 64
/* Room for a continue token with its NUL; the API server's have at most some 850 bytes. */
#define KINF__CONTINUE_SIZE 4096

/* An object is left out: KINF_ERR_LIMIT (too large) or KINF_ERR_PARSE (cannot be decoded). `key` is
 * a guess from the beginning of its text, "" if there is none. 0 goes on behind it; a negative
 * return ends the stream and is returned by it, with the error that the callback wrote. */
typedef int kinf__stream_reject_cb(const char *key, const struct kinf_error *why, void *ctx,
                                   struct kinf_error *err);

#endif
