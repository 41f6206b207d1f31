/*
 * A scanner that trusts its texts.
 */
#include "soak/text.h"

#include <stdlib.h>
#include <string.h>

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

/* --- values --- */

/* Behind a string that begins at `at`; NULL: it does not end. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        if (*at == '\\')
            at++;
        else if (*at == '"')
            return at + 1;
    }
    return NULL;
}

static const char *skip_nested(const char *at, const char *end)
{
    int depth = 0;

    while (at != NULL && at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        at++;
        if (depth == 0)
            return at;
    }
    return NULL;
}

static const char *skip_value(const char *at, const char *end)
{
    if (at >= end)
        return NULL;
    if (*at == '"')
        return skip_string(at, end);
    if (*at == '{' || *at == '[')
        return skip_nested(at, end);
    while (at < end && strchr(",}] \n", *at) == NULL)
        at++;
    return at;
}

static struct kinf_str between(const char *begin, const char *end)
{
    return (struct kinf_str){ begin, (size_t)(end - begin) };
}

static bool is_open(struct kinf_str rest, char bracket)
{
    return rest.len > 1 && (rest.bytes[0] == bracket || rest.bytes[0] == ',');
}

bool text_next_item(struct kinf_str *rest, struct kinf_str *ret_value)
{
    const char *begin = rest->bytes + 1, *end = rest->bytes + rest->len, *behind;

    if (!is_open(*rest, '[') || *begin == ']' || (behind = skip_value(begin, end)) == NULL)
        return false;
    *ret_value = between(begin, behind);
    *rest = between(behind, end);
    return true;
}

bool text_next_member(struct kinf_str *rest, struct kinf_str *ret_name, struct kinf_str *ret_value)
{
    const char *begin = rest->bytes + 1, *end = rest->bytes + rest->len, *colon, *behind;

    if (!is_open(*rest, '{') || *begin != '"' || (colon = skip_string(begin, end)) == NULL ||
        colon >= end || *colon != ':' || (behind = skip_value(colon + 1, end)) == NULL)
        return false;
    *ret_name = between(begin + 1, colon - 1);
    *ret_value = between(colon + 1, behind);
    *rest = between(behind, end);
    return true;
}

bool text_member(struct kinf_str object, const char *name, struct kinf_str *ret_value)
{
    struct kinf_str found;

    while (text_next_member(&object, &found, ret_value)) {
        if (text_is(found, name))
            return true;
    }
    return false;
}

struct kinf_str text_unquote(struct kinf_str value)
{
    if (value.len >= 2 && value.bytes[0] == '"')
        return (struct kinf_str){ value.bytes + 1, value.len - 2 };
    return value;
}

bool text_is(struct kinf_str value, const char *text)
{
    return value.len == strlen(text) && memcmp(value.bytes, text, value.len) == 0;
}

uint64_t text_number(struct kinf_str value)
{
    uint64_t number = 0;

    value = text_unquote(value);
    for (size_t i = 0; i < value.len && value.bytes[i] >= '0' && value.bytes[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(value.bytes[i] - '0');
    return number;
}

/* --- sums --- */

static uint64_t add_to_sum(uint64_t sum, const char *begin, const char *end)
{
    for (; begin < end; begin++)
        sum = (sum ^ (unsigned char)*begin) * FNV_PRIME;
    return sum;
}

uint64_t text_hash(struct kinf_str text)
{
    return add_to_sum(FNV_BASIS, text.bytes, text.bytes + text.len);
}

/* --- objects --- */

/* Finds what says who it is; false if one of it is missing, but for a namespace. */
static bool read_metadata(struct kinf_str metadata, struct version *ret_version,
                          struct identity *ret_identity, struct kinf_str *ret_rv)
{
    struct kinf_str name, value, uid = { NULL, 0 };

    *ret_identity = (struct identity){ { NULL, 0 }, { NULL, 0 }, false };
    *ret_rv = uid;
    while (text_next_member(&metadata, &name, &value)) {
        if (text_is(name, "name"))
            ret_identity->name = text_unquote(value);
        else if (text_is(name, "namespace"))
            ret_identity->name_space = text_unquote(value);
        else if (text_is(name, "uid"))
            uid = text_unquote(value);
        else if (text_is(name, "resourceVersion"))
            *ret_rv = text_unquote(value);
        else if (text_is(name, "deletionTimestamp"))
            ret_identity->is_being_deleted = true;
    }
    ret_version->uid = text_hash(uid);
    ret_version->rv = text_number(*ret_rv);
    return ret_identity->name.bytes != NULL && uid.bytes != NULL && ret_version->rv != 0;
}

bool text_read_object(struct kinf_str object, struct version *ret_version,
                      struct identity *ret_identity)
{
    static const char metadata_name[] = "\"metadata\":";
    const char *end = skip_value(object.bytes, object.bytes + object.len);
    struct kinf_str metadata, rv;
    uint64_t sum;

    if (end == NULL || !text_member(object, "metadata", &metadata) ||
        !read_metadata(metadata, ret_version, ret_identity, &rv))
        return false;
    sum = add_to_sum(FNV_BASIS, metadata.bytes - strlen(metadata_name), rv.bytes);
    ret_version->sum = add_to_sum(sum, rv.bytes + rv.len, end);
    return true;
}
