/*
 * Files of configuration. Neighbours: yaml.c, and rest for tokens and certificates, read them;
 * serve and sim write some.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static void close_file(FILE **file)
{
    if (*file != NULL)
        fclose(*file);
}

int kinf__file_read(const char *path, size_t max_bytes, struct kinf__buffer *content,
                    struct kinf_error *err)
{
    KINF__CLEANUP(close_file) FILE *file = fopen(path, "re");
    size_t n = 1;

    if (file == NULL)
        return kinf__error_set_errno(err, KINF_ERR_CONFIG, errno, "cannot read %s", path);
    while (n != 0 && !ferror(file) && content->len <= max_bytes) {
        if (kinf__buffer_reserve(content, BUFSIZ) < 0)
            return kinf__error_no_memory(err);
        n = fread(content->bytes + content->len, 1, BUFSIZ, file);
        content->len += n;
    }
    if (ferror(file))
        return kinf__error_set_errno(err, KINF_ERR_CONFIG, errno, "cannot read %s", path);
    return 0;
}

bool kinf__file_write(int fd, struct kinf_str content)
{
    while (content.len != 0) {
        ssize_t n = write(fd, content.bytes, content.len);

        if (n < 0)
            return false;
        content.bytes += n;
        content.len -= (size_t)n;
    }
    return true;
}

/* It gets its name when it is whole. Whoever may write in /dev would take /dev/null away from all. */
int kinf__file_replace(const char *path, struct kinf_str content, struct kinf_error *err)
{
    KINF__AUTO_BUFFER name = KINF__BUFFER_INIT;
    struct stat found;
    int fd, failed = 0;

    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode))
        return kinf__error_set(err, KINF_ERR_SYSTEM, "cannot write %s: it is no plain file", path);
    if (kinf__buffer_printf(&name, "%s.new", path) < 0 || kinf__buffer_cstr(&name) == NULL)
        return kinf__error_no_memory(err);
    unlink(name.bytes); /* left by a process that was killed */
    fd = open(name.bytes, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || !kinf__file_write(fd, content) || rename(name.bytes, path) < 0)
        failed = kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write %s", path);
    if (fd >= 0)
        close(fd);
    if (failed < 0)
        unlink(name.bytes);
    return failed;
}

bool kinf__file_version_update(struct kinf__file_version *version, const char *path)
{
    struct kinf__file_version now;
    struct stat found;
    bool has_changed;

    /* Padding, too: versions are compared as bytes. */
    memset(&now, 0, sizeof now);
    if (stat(path, &found) == 0) {
        now.device = found.st_dev;
        now.inode = found.st_ino;
        now.size = found.st_size;
        now.changed = found.st_mtim;
    }
    has_changed = memcmp(&now, version, sizeof now) != 0;
    *version = now;
    return has_changed;
}
