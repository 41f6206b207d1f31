/*
 * Reading files of configuration. Neighbours: yaml.c, and rest for tokens and certificates.
 */
#include "base/file.h"

#include <errno.h>
#include <stdio.h>

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
    while (n != 0 && content->len <= max_bytes) {
        if (kinf__buffer_reserve(content, BUFSIZ) < 0)
            return kinf__error_no_memory(err);
        n = fread(content->bytes + content->len, 1, BUFSIZ, file);
        content->len += n;
    }
    if (ferror(file))
        return kinf__error_set_errno(err, KINF_ERR_CONFIG, errno, "cannot read %s", path);
    return 0;
}
