/*
 * The key of an object that could not be decoded. Neighbours: the reflector names what it puts into
 * quarantine. It walks forward over text that may be malformed or cut; only the strings that make
 * up the answer are scanned.
 */
#include "object/object.h"

#include <string.h>

struct walk {
    const char *at;
    const char *end;
    size_t depth;
    bool metadata_is_next; /* the last key of the outermost object was "metadata" */
    bool in_metadata;
    struct kinf_str *wanted; /* whose value is next, or NULL */
    struct kinf_str name;    /* raw */
    struct kinf_str name_space;
};

/* Takes the string at `at` with its quotes. Returns false if the text ends first. */
static bool take_string(struct walk *walk, struct kinf_str *ret_raw)
{
    const char *start = walk->at++;

    while (walk->at < walk->end && *walk->at != '"')
        walk->at += *walk->at == '\\' ? 2 : 1;
    if (walk->at >= walk->end)
        return false;
    walk->at++;
    *ret_raw = (struct kinf_str){ start, (size_t)(walk->at - start) };
    return true;
}

static bool is_key(struct walk *walk)
{
    while (walk->at < walk->end && strchr(" \t\r\n", *walk->at) != NULL && *walk->at != '\0')
        walk->at++;
    return walk->at < walk->end && *walk->at == ':';
}

static bool raw_equals(struct kinf_str raw, const char *text)
{
    return raw.len == strlen(text) + 2 && memcmp(raw.bytes + 1, text, raw.len - 2) == 0;
}

static void note_string(struct walk *walk, struct kinf_str raw)
{
    if (!is_key(walk)) {
        if (walk->depth == 2 && walk->in_metadata && walk->wanted != NULL)
            *walk->wanted = raw;
        walk->wanted = NULL;
    } else if (walk->depth == 1) {
        walk->metadata_is_next = raw_equals(raw, "metadata");
    } else if (walk->depth == 2 && walk->in_metadata) {
        walk->wanted = raw_equals(raw, "name")        ? &walk->name
                       : raw_equals(raw, "namespace") ? &walk->name_space
                                                      : NULL;
    }
}

static void note_bracket(struct walk *walk, char c)
{
    if (c == '{' || c == '[') {
        walk->depth++;
        if (walk->depth == 2)
            walk->in_metadata = c == '{' && walk->metadata_is_next;
    } else if (walk->depth != 0) {
        walk->depth--;
    }
    walk->wanted = NULL;
}

static bool step(struct walk *walk)
{
    struct kinf_str raw;

    switch (*walk->at) {
    case '"':
        if (!take_string(walk, &raw))
            return false;
        note_string(walk, raw);
        return true;
    case '{':
    case '[':
    case '}':
    case ']':
        note_bracket(walk, *walk->at);
        break;
    case ',':
        walk->wanted = NULL;
        break;
    }
    walk->at++;
    return true;
}

/* Appends a string and `after`. There is room for what is never longer than its raw form. */
static bool put_string(char **at, struct kinf_str raw, char after)
{
    size_t len;

    if (kinf__json_scan(raw, true, &len) < 0)
        return false;
    len = kinf__json_unescape(raw, *at, raw.len);
    if (len == 0 || memchr(*at, '\0', len) != NULL)
        return false;
    *at += len;
    *(*at)++ = after;
    return true;
}

bool kinf__object_guess_key(const struct kinf_type *type, struct kinf_str text, char *buf,
                            size_t size)
{
    struct walk walk = { .at = text.bytes, .end = text.bytes + text.len };
    bool is_complete = false;

    while (!is_complete && walk.at < walk.end && step(&walk))
        is_complete = walk.name.len != 0 && (walk.name_space.len != 0 || !type->namespaced);
    if (!is_complete || walk.name.len + walk.name_space.len > size)
        return false;
    return (!type->namespaced || put_string(&buf, walk.name_space, '/')) &&
           put_string(&buf, walk.name, '\0');
}
