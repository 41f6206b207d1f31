/*
 * Texts that are overwritten. Neighbours: everything here that holds a token, a password or a key.
 */
#include "rest/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/error.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define SIZE_MIN       4096
#define WHITE_SPACE    " \t\r\n"

void kinf__secret_free(char *text)
{
    if (text != NULL)
        OPENSSL_cleanse(text, strlen(text));
    free(text);
}

void kinf__secret_free_ptr(char **text)
{
    kinf__secret_free(*text);
}

void kinf__secret_buffer_release(struct kinf__buffer *buffer)
{
    if (buffer->bytes != NULL)
        OPENSSL_cleanse(buffer->bytes, buffer->size);
    kinf__buffer_release(buffer);
}

void kinf__secret_replace(char **text, char *fresh)
{
    kinf__secret_free(*text);
    *text = fresh;
}

bool kinf__secret_equal(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool kinf__is_one_line(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == '\x7f')
            return false;
    }
    return true;
}

bool kinf__is_token(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~')
            return false;
    }
    return true;
}

/* --- files --- */

/* Of the old place nothing may stay, so this is not realloc(). */
static int grow(struct kinf__buffer *text)
{
    struct kinf__buffer larger = KINF__BUFFER_INIT;

    if (kinf__buffer_reserve(&larger, text->size < SIZE_MIN ? SIZE_MIN : 2 * text->size) < 0)
        return KINF_ERR_NO_MEMORY;
    if (text->len != 0)
        memcpy(larger.bytes, text->bytes, text->len);
    larger.len = text->len;
    kinf__secret_buffer_release(text);
    *text = larger;
    return 0;
}

static int read_all(int fd, const char *path, struct kinf__buffer *text, struct kinf_error *err)
{
    ssize_t n = 1;

    while (n != 0) {
        if (text->len > FILE_MAX_BYTES)
            return kinf__error_set(err, KINF_ERR_LIMIT, "%s is above %zu bytes", path,
                                   FILE_MAX_BYTES);
        /* One byte stays free for the NUL. */
        if (text->size - text->len < 2 && grow(text) < 0)
            return kinf__error_no_memory(err);
        n = read(fd, text->bytes + text->len, text->size - text->len - 1);
        if (n < 0 && errno != EINTR)
            return kinf__error_set_errno(err, KINF_ERR_CONFIG, errno, "cannot read %s", path);
        text->len += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int kinf__secret_read_file(const char *path, char **ret_text, struct kinf_error *err)
{
    /* A pipe without a writer would hold us. */
    KINF__AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    KINF__AUTO_SECRET_BUFFER text = KINF__BUFFER_INIT;
    struct stat status;
    int failed;

    if (fd < 0 || fstat(fd, &status) < 0)
        return kinf__error_set_errno(err, KINF_ERR_CONFIG, errno, "cannot read %s", path);
    if (kinf__buffer_reserve(&text, S_ISREG(status.st_mode) && status.st_size < SIZE_MIN
                                        ? (size_t)status.st_size + 2
                                        : SIZE_MIN) < 0)
        return kinf__error_no_memory(err);
    failed = read_all(fd, path, &text, err);
    if (failed < 0)
        return failed;
    text.bytes[text.len] = '\0';
    *ret_text = text.bytes;
    text = (struct kinf__buffer)KINF__BUFFER_INIT;
    return 0;
}

int kinf__secret_read_token(const char *path, char **ret_token, struct kinf_error *err)
{
    KINF__AUTO_SECRET *text = NULL;
    size_t len;
    int failed = kinf__secret_read_file(path, &text, err);
    char *start;

    if (failed < 0)
        return failed;
    start = text + strspn(text, WHITE_SPACE);
    for (len = strlen(start); len > 0 && strchr(WHITE_SPACE, start[len - 1]) != NULL;)
        start[--len] = '\0';
    if (len == 0)
        return kinf__error_set(err, KINF_ERR_CONFIG, "the token file %s is empty", path);
    if (!kinf__is_one_line(start))
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "the token file %s has a line break or another control character "
                               "in its token",
                               path);
    *ret_token = strdup(start);
    return *ret_token != NULL ? 0 : kinf__error_no_memory(err);
}

/* --- base64 --- */

int kinf__secret_append_base64(struct kinf__buffer *buffer, const char *bytes, size_t len)
{
    if (kinf__buffer_reserve(buffer, len / 3 * 4 + 5) < 0)
        return KINF_ERR_NO_MEMORY;
    buffer->len += (size_t)EVP_EncodeBlock((unsigned char *)buffer->bytes + buffer->len,
                                           (const unsigned char *)bytes, (int)len);
    return 0;
}

/* --- lists --- */

int kinf__string_list_append(struct kinf__string_list *list, char *take_text)
{
    char **items = NULL;

    if (take_text != NULL)
        items = reallocarray(list->items, list->n_items + 2, sizeof *items);
    if (items == NULL) {
        kinf__secret_free(take_text);
        return KINF_ERR_NO_MEMORY;
    }
    items[list->n_items++] = take_text;
    items[list->n_items] = NULL;
    list->items = items;
    return 0;
}

void kinf__string_list_release(struct kinf__string_list *list)
{
    for (size_t i = 0; i < list->n_items; i++)
        kinf__secret_free(list->items[i]);
    free(list->items);
    *list = (struct kinf__string_list){ NULL, 0 };
}
