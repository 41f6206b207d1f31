/*
 * Small files, read whole.
 *
 * Threads: any thread.
 */
#ifndef KINF_BASE_FILE_H
#define KINF_BASE_FILE_H

#include "base/buffer.h"

/* Appends the content of a file to `content`, but not much more than max_bytes: a caller with a
 * limit looks at the length. Errors: KINF_ERR_CONFIG (it cannot be read), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__file_read(const char *path, size_t max_bytes,
                                    struct kinf__buffer *content, struct kinf_error *err);

#endif
