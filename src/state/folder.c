/*
 * Files in a folder of one's own. Neighbours: state_file.c says what is in them. Invariant: what has
 * a name without ".new" was whole and synced before it got it.
 */
#include "state/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/error.h"

#define NAME_MAX_LEN  240
#define NEW_NAME_SIZE (NAME_MAX_LEN + 8)

static int refuse(struct kinf_error *err, const char *path, const char *why)
{
    return kinf__error_set(err, KINF_ERR_CONFIG, "%s: %s", path, why);
}

/* --- the folder --- */

static int check_folder(int fd, const char *path, struct kinf_error *err)
{
    struct stat found;

    if (fstat(fd, &found) < 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "%s", path);
    if (found.st_uid != geteuid())
        return refuse(err, path, "the folder belongs to another user");
    if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return refuse(err, path, "others may write in the folder");
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? refuse(err, path, "another process keeps its state in the folder")
                   : kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "%s", path);
    return 0;
}

int kinf__state_folder_open(const char *path, struct kinf__state_folder **ret_folder,
                            struct kinf_error *err)
{
    struct kinf__state_folder *folder = calloc(1, sizeof *folder);
    int failed = 0;

    if (folder == NULL)
        return kinf__error_no_memory(err);
    folder->fd = -1;
    folder->path = strdup(path);
    if (folder->path == NULL)
        failed = kinf__error_no_memory(err);
    else if (mkdir(path, 0700) < 0 && errno != EEXIST)
        failed = kinf__error_set_errno(err, KINF_ERR_CONFIG, errno, "cannot make %s", path);
    else if ((folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        failed = kinf__error_set_errno(err, KINF_ERR_CONFIG, errno, "cannot open %s", path);
    else
        failed = check_folder(folder->fd, path, err);
    if (failed < 0)
        kinf__state_folder_close(folder);
    else
        *ret_folder = folder;
    return failed;
}

void kinf__state_folder_close(struct kinf__state_folder *folder)
{
    if (folder == NULL)
        return;
    if (folder->fd >= 0)
        close(folder->fd);
    free(folder->path);
    free(folder);
}

bool kinf__state_name_is_good(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t len = strlen(name);

    return len != 0 && len <= NAME_MAX_LEN && strchr(letters, name[0]) != NULL &&
           len == strspn(name, letters) + strspn(name + strspn(name, letters),
                                                 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
                                                 "XYZ0123456789.-_@");
}

/* --- files --- */

int kinf__state_folder_open_file(const struct kinf__state_folder *folder, const char *name,
                                 int *ret_fd, off_t *ret_size, struct kinf_error *err)
{
    int fd = openat(folder->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat found;
    int failed = 0;

    if (fd < 0 && errno == ENOENT)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND, "%s/%s: there is none", folder->path, name);
    if (fd < 0 || fstat(fd, &found) < 0)
        failed = kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "%s/%s", folder->path, name);
    else if (!S_ISREG(found.st_mode) || found.st_uid != geteuid())
        failed = refuse(err, name, "no plain file of this user");
    else if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        failed = refuse(err, name, "others may read or write it");
    if (failed < 0) {
        if (fd >= 0)
            close(fd);
        return failed;
    }
    *ret_fd = fd;
    *ret_size = found.st_size;
    return 0;
}

static const char *new_name(const char *name, char *buf)
{
    snprintf(buf, NEW_NAME_SIZE, "%.*s.new", NAME_MAX_LEN, name);
    return buf;
}

int kinf__state_folder_create(const struct kinf__state_folder *folder, const char *name,
                              int *ret_fd, struct kinf_error *err)
{
    char text[NEW_NAME_SIZE];
    int fd;

    unlinkat(folder->fd, new_name(name, text), 0); /* left by a process that was killed */
    fd = openat(folder->fd, text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write %s/%s",
                                     folder->path, text);
    *ret_fd = fd;
    return 0;
}

int kinf__state_folder_commit(const struct kinf__state_folder *folder, const char *name,
                              struct kinf_error *err)
{
    char text[NEW_NAME_SIZE];

    if (renameat(folder->fd, new_name(name, text), folder->fd, name) < 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write %s/%s",
                                     folder->path, name);
    return 0;
}

int kinf__state_folder_sync(const struct kinf__state_folder *folder, struct kinf_error *err)
{
    return fsync(folder->fd) == 0
               ? 0
               : kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot sync %s", folder->path);
}

void kinf__state_folder_drop(const struct kinf__state_folder *folder, const char *name)
{
    char text[NEW_NAME_SIZE];

    unlinkat(folder->fd, new_name(name, text), 0);
}
