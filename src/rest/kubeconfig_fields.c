/*
 * Fields of a kubeconfig's entries: texts, paths, certificates. Neighbours: kubeconfig_entries.c
 * and exec_config.c know which fields there are.
 */
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/error.h"
#include "rest/kubeconfig_priv.h"

int kinf__kubeconfig_string(const struct kinf__kubeconfig_entry *entry, const char *key,
                            char **ret_text, struct kinf_error *err)
{
    const char *text = NULL;
    int failed = kinf__yaml_read_string(entry->file, entry->fields, key, &text, err);
    char *copy;

    if (failed < 0 || text == NULL || *text == '\0')
        return failed;
    copy = strdup(text);
    if (copy == NULL)
        return kinf__error_no_memory(err);
    *ret_text = copy;
    return 0;
}

/* --- paths --- */

/* The folder in which we are counts once: the program may go to another. */
static int append_working_folder(struct kinf__buffer *path)
{
    KINF__AUTO_FREE char *folder = get_current_dir_name();

    if (folder == NULL || kinf__buffer_append(path, folder, strlen(folder)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(path, "/", 1);
}

char *kinf__kubeconfig_resolve(const struct kinf__kubeconfig_entry *entry, const char *path)
{
    const char *file = kinf__yaml_file(entry->file), *slash = strrchr(file, '/');
    struct kinf__buffer resolved = KINF__BUFFER_INIT;

    if (*path == '/')
        return strdup(path);
    if ((*file != '/' && append_working_folder(&resolved) < 0) ||
        (slash != NULL && kinf__buffer_append(&resolved, file, (size_t)(slash + 1 - file)) < 0) ||
        kinf__buffer_append(&resolved, path, strlen(path)) < 0 ||
        kinf__buffer_cstr(&resolved) == NULL) {
        kinf__buffer_release(&resolved);
        return NULL;
    }
    return resolved.bytes;
}

int kinf__kubeconfig_path(const struct kinf__kubeconfig_entry *entry, const char *key,
                          char **ret_path, struct kinf_error *err)
{
    const char *text = NULL;
    int failed = kinf__yaml_read_string(entry->file, entry->fields, key, &text, err);
    char *path;

    if (failed < 0 || text == NULL || *text == '\0')
        return failed;
    path = kinf__kubeconfig_resolve(entry, text);
    if (path == NULL)
        return kinf__error_no_memory(err);
    *ret_path = path;
    return 0;
}

/* --- base64 --- */

static int bad_base64(const struct kinf__kubeconfig_entry *entry, const char *key,
                      struct kinf_error *err)
{
    return kinf__yaml_error(err, KINF_ERR_CONFIG, entry->file, kinf__yaml_get(entry->fields, key),
                            "%s is no base64 of a text", key);
}

/* A block has lines, which the decoder does not take. */
static size_t copy_without_blanks(char *to, const char *text)
{
    size_t len = 0;

    for (; *text != '\0'; text++) {
        if (strchr(" \t\r\n", *text) == NULL)
            to[len++] = *text;
    }
    to[len] = '\0';
    return len;
}

/* Returns the decoded length, or -1. */
static int decode(unsigned char *to, const char *text, size_t len)
{
    size_t n_padding = 0;
    int n;

    while (n_padding < 2 && n_padding < len && text[len - 1 - n_padding] == '=')
        n_padding++;
    /* The decoder would take a '=' anywhere. */
    if (len % 4 != 0 || strcspn(text, "=") != len - n_padding)
        return -1;
    n = EVP_DecodeBlock(to, (const unsigned char *)text, (int)len);
    n = n < 0 ? n : n - (int)n_padding;
    return n < 0 || memchr(to, '\0', (size_t)n) != NULL ? -1 : n;
}

static int decode_base64(const struct kinf__kubeconfig_entry *entry, const char *key,
                         const char *text, char **ret_pem, struct kinf_error *err)
{
    size_t size = strlen(text) + 1;
    KINF__AUTO_SECRET_BUFFER dense = KINF__BUFFER_INIT, bytes = KINF__BUFFER_INIT;
    int n;

    if (kinf__buffer_reserve(&dense, size) < 0 || kinf__buffer_reserve(&bytes, size) < 0)
        return kinf__error_no_memory(err);
    dense.len = copy_without_blanks(dense.bytes, text);
    n = decode((unsigned char *)bytes.bytes, dense.bytes, dense.len);
    if (n < 0)
        return bad_base64(entry, key, err);
    bytes.bytes[n] = '\0';
    *ret_pem = bytes.bytes;
    bytes = (struct kinf__buffer)KINF__BUFFER_INIT;
    return 0;
}

/* --- certificates and keys --- */

static int read_pem_file(const struct kinf__kubeconfig_entry *entry, const char *key,
                         const char *text, char **ret_pem, char **ret_file, struct kinf_error *err)
{
    KINF__AUTO_FREE char *path = kinf__kubeconfig_resolve(entry, text);
    int failed;

    if (path == NULL)
        return kinf__error_no_memory(err);
    failed = kinf__secret_read_file(path, ret_pem, err);
    if (failed < 0)
        kinf__error_prefix(err, "%s: %s", kinf__yaml_file(entry->file), key);
    else
        *ret_file = KINF__TAKE(path);
    return failed;
}

int kinf__kubeconfig_pem(const struct kinf__kubeconfig_entry *entry, const char *key,
                         const char *data_key, char **ret_pem, char **ret_file,
                         struct kinf_error *err)
{
    const char *data = NULL, *path = NULL;
    int failed;

    if ((failed = kinf__yaml_read_string(entry->file, entry->fields, data_key, &data, err)) < 0 ||
        (failed = kinf__yaml_read_string(entry->file, entry->fields, key, &path, err)) < 0)
        return failed;
    if (data != NULL && *data != '\0')
        return decode_base64(entry, data_key, data, ret_pem, err);
    if (path != NULL && *path != '\0')
        return read_pem_file(entry, key, path, ret_pem, ret_file, err);
    return 0;
}
