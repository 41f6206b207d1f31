/*
 * Variables in texts of the configuration. Neighbours: config.c says which texts have them.
 */
#include "daemon/expand.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/error.h"

#define NAME_MAX_LEN 255

/* `name` is what stands behind "$(". */
static int append_variable(struct kinf__buffer *out, const char *name, size_t len,
                           struct kinf_error *err)
{
    char variable[NAME_MAX_LEN + 1];
    const char *value;

    if (len == 0 || len > NAME_MAX_LEN || name[len] != ')')
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "'$(' begins the name of a variable of the environment, which ends "
                               "with ')'; for the characters themselves write '$$('");
    memcpy(variable, name, len);
    variable[len] = '\0';
    value = getenv(variable);
    if (value == NULL || *value == '\0')
        return kinf__error_set(err, KINF_ERR_CONFIG, "the environment has no %s", variable);
    return kinf__buffer_append_str(out, kinf_str_from(value)) < 0 ? kinf__error_no_memory(err) : 0;
}

/* Appends what the beginning of `text` stands for; *ret_len is how much of it that is. */
static int append_piece(struct kinf__buffer *out, const char *text, size_t *ret_len,
                        struct kinf_error *err)
{
    struct kinf_str plain = { text, 0 };
    size_t name_len;

    if (strncmp(text, "$(", 2) == 0) {
        name_len = strcspn(text + 2, ")");
        *ret_len = name_len + 3;
        return append_variable(out, text + 2, name_len, err);
    }
    if (strncmp(text, "$$(", 3) == 0) {
        plain = KINF_STR("$(");
        *ret_len = 3;
    } else {
        plain.len = *ret_len = 1 + strcspn(text + 1, "$");
    }
    return kinf__buffer_append_str(out, plain) < 0 ? kinf__error_no_memory(err) : 0;
}

int kinf__expand(const char *text, char **ret_text, struct kinf_error *err)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    size_t len;

    for (; *text != '\0'; text += len) {
        int failed = append_piece(&out, text, &len, err);

        if (failed < 0)
            return failed;
    }
    return kinf__buffer_take_text(&out, ret_text, err);
}
