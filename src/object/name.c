/*
 * Names. Neighbours: what takes a name or a namespace from a caller.
 */
#include "object/name.h"

#include <string.h>

#include "base/error.h"

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyz0123456789"
#define LABEL_MAX          63

int kinf__name_check_namespace(const char *text, struct kinf_error *err)
{
    size_t len = strlen(text);

    if (len != 0 && len <= LABEL_MAX && strspn(text, LETTERS_AND_DIGITS "-") == len &&
        text[0] != '-' && text[len - 1] != '-')
        return 0;
    return kinf__error_set(err, KINF_ERR_INVALID,
                           "\"%.100s\" is no name of a namespace: at most 63 lower case letters, "
                           "digits and '-', the first and last no '-'",
                           text);
}

int kinf__name_check_segment(const char *text, struct kinf_error *err)
{
    if (*text != '\0' && strpbrk(text, "/%") == NULL && strcmp(text, ".") != 0 &&
        strcmp(text, "..") != 0)
        return 0;
    return kinf__error_set(
        err, KINF_ERR_INVALID,
        "\"%.100s\" is no name: it may not be empty, \".\" or \"..\", and has no "
        "'/' and no '%%'",
        text);
}
