/*
 * Small files, read and written whole.
 *
 * Threads: any thread.
 */
#ifndef KINF_BASE_FILE_H
#define KINF_BASE_FILE_H

#include <stdbool.h>

#include <sys/stat.h>

#include "base/buffer.h"

/* Appends the content of a file to `content`, but not much more than max_bytes: a caller with a
 * limit looks at the length. Errors: KINF_ERR_CONFIG (it cannot be read), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__file_read(const char *path, size_t max_bytes,
                                    struct kinf__buffer *content, struct kinf_error *err);

/* Writes all of it to an open file; false: errno says why not. */
KINF_MUST_CHECK bool kinf__file_write(int fd, struct kinf_str content);

/* Puts a file of this content, which nobody else can read, in the place of what is there: nobody
 * reads half a file, and on failure what was there stays. What is no plain file is not replaced.
 * Errors: KINF_ERR_SYSTEM (naming the file), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__file_replace(const char *path, struct kinf_str content,
                                       struct kinf_error *err);

/* By what a change of a file is seen; all zero: it is not there. */
struct kinf__file_version {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};

/* Notes how it is now; returns whether that is another version. */
bool kinf__file_version_update(struct kinf__file_version *version, const char *path);

#endif
