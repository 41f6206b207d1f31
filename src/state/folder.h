/*
 * The folder of the state files: one process's own, in which others may not write.
 *
 * A file gets its name when it is whole and on the disk: one that was there stays as it was until
 * then, whatever ends the process. All names are looked up in the folder itself, so a link that
 * somebody puts in its place later leads nowhere, and links inside of it are not followed.
 *
 * Threads: any thread; of one name one at a time.
 */
#ifndef KINF_STATE_FOLDER_H
#define KINF_STATE_FOLDER_H

#include <stdbool.h>

#include <sys/types.h>

#include <kinformer/error.h>

struct kinf__state_folder {
    int fd; /* locked: whoever else has this folder for its own is refused */
    char *path;
};

/* Makes the folder (0700) if it is not there; its parent is. Errors: KINF_ERR_CONFIG (no folder,
 * of another user, others may write in it, or another process has it), KINF_ERR_SYSTEM,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__state_folder_open(const char *path,
                                            struct kinf__state_folder **ret_folder,
                                            struct kinf_error *err);
void kinf__state_folder_close(struct kinf__state_folder *folder); /* NULL is allowed */

/* Whether it may be the name of a file here: letters, digits, and within it ".-_@". */
bool kinf__state_name_is_good(const char *name);

/* Opens a file for reading. Errors: KINF_ERR_NOT_FOUND, KINF_ERR_CONFIG (no plain file of this user,
 * or others may read or write it), KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__state_folder_open_file(const struct kinf__state_folder *folder,
                                                 const char *name, int *ret_fd, off_t *ret_size,
                                                 struct kinf_error *err);

/* A file that has no name yet; what an earlier process left of it is removed. The caller closes it,
 * then commits or drops it. Errors: KINF_ERR_SYSTEM, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__state_folder_create(const struct kinf__state_folder *folder,
                                              const char *name, int *ret_fd,
                                              struct kinf_error *err);
/* It gets its name; its bytes are on the disk (fsync). Errors: KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__state_folder_commit(const struct kinf__state_folder *folder,
                                              const char *name, struct kinf_error *err);
/* The names are on the disk, too. Errors: KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__state_folder_sync(const struct kinf__state_folder *folder,
                                            struct kinf_error *err);
void kinf__state_folder_drop(const struct kinf__state_folder *folder, const char *name);

#endif
