/*
 * Texts that may be secret: read without leaving copies behind, overwritten before they are freed.
 * (What libyaml and libcurl copied for themselves is theirs.)
 *
 * Threads: one thread per object.
 */
#ifndef KINF_REST_SECRET_H
#define KINF_REST_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include <kinformer/error.h>

#include "base/buffer.h"
#include "base/compiler.h"

/* Overwrites and frees. NULL is allowed. */
void kinf__secret_free(char *text);
void kinf__secret_free_ptr(char **text);
#define KINF__AUTO_SECRET KINF__CLEANUP(kinf__secret_free_ptr) char

void kinf__secret_buffer_release(struct kinf__buffer *buffer);
#define KINF__AUTO_SECRET_BUFFER KINF__CLEANUP(kinf__secret_buffer_release) struct kinf__buffer

/* Overwrites *text and puts `fresh`, which it takes, in its place. */
void kinf__secret_replace(char **text, char *fresh);

/* Whether both are NULL or the same text. */
bool kinf__secret_equal(const char *a, const char *b);

/* Whether a text can be a header's value: no control characters. */
bool kinf__is_one_line(const char *text);
/* Whether it can be a token: printable ASCII without blanks. */
bool kinf__is_token(const char *text);

/* A whole small file (1 MiB at most) as text, up to its first NUL if it has one. Errors:
 * KINF_ERR_CONFIG, KINF_ERR_LIMIT, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__secret_read_file(const char *path, char **ret_text,
                                           struct kinf_error *err);

/* The token in such a file, without the white space around it. Errors: also KINF_ERR_CONFIG: it has
 * none. */
KINF_MUST_CHECK int kinf__secret_read_token(const char *path, char **ret_token,
                                            struct kinf_error *err);

/* Encodes as base64, behind what is in the buffer. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__secret_append_base64(struct kinf__buffer *buffer, const char *bytes,
                                               size_t len);

/* Texts with a NULL behind the last, as exec() takes them. All zero is empty and valid. */
struct kinf__string_list {
    char **items; /* NULL while it is empty */
    size_t n_items;
};

/* Takes `text`, on failure too; NULL, from an allocation that failed, is such a failure. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__string_list_append(struct kinf__string_list *list, char *take_text);
void kinf__string_list_release(struct kinf__string_list *list);

#endif
