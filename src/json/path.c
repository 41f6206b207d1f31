/*
 * The path grammar, and walking text along a path. Neighbours: plan.c walks the steps too; scan.c
 * and value.c read the keys in JSON string syntax, cursor.c finds members and elements. Invariant: a
 * path is one allocation; text and keys lie behind its steps.
 */
#include "json/path.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/misuse.h"
#include "json/cursor.h"

struct parser {
    const char *text;
    const char *at;
    const char *end;
    char *keys_end; /* behind the keys decoded so far */
    struct kinf_path *path;
    struct kinf_error *err;
};

static int fail(const struct parser *parser, const char *at, const char *problem)
{
    return kinf__error_set(parser->err, KINF_ERR_PARSE, "path \"%.200s\": %s at column %zu",
                           parser->text, problem, (size_t)(at - parser->text) + 1);
}

static bool is_segment_byte(char byte)
{
    return (unsigned char)byte > ' ' && byte != 0x7f && strchr(".[]\"", byte) == NULL;
}

static int add_step(struct parser *parser, struct kinf__path_step step)
{
    struct kinf_path *path = parser->path;

    if (path->n_steps == KINF_PATH_MAX_STEPS)
        return kinf__error_set(parser->err, KINF_ERR_LIMIT, "path \"%.200s\": more than %d steps",
                               parser->text, KINF_PATH_MAX_STEPS);
    path->steps[path->n_steps++] = step;
    return 0;
}

static int parse_segment(struct parser *parser)
{
    struct kinf__path_step step = { KINF__PATH_KEY, { parser->keys_end, 0 }, 0 };
    const char *start = parser->at;

    while (parser->at < parser->end && is_segment_byte(*parser->at))
        parser->at++;
    step.key.len = (size_t)(parser->at - start);
    if (step.key.len == 0)
        return fail(parser, start, "a key is missing");
    memcpy(parser->keys_end, start, step.key.len);
    parser->keys_end += step.key.len;
    return add_step(parser, step);
}

static int parse_string(struct parser *parser)
{
    struct kinf__path_step step = { KINF__PATH_KEY, { parser->keys_end, 0 }, 0 };
    struct kinf_str rest = { parser->at, (size_t)(parser->end - parser->at) };
    size_t len;

    if (kinf__json_scan(rest, true, &len) < 0)
        return fail(parser, parser->at + len, "not a JSON string");
    rest.len = len;
    parser->at += len;
    step.key.len = kinf__json_unescape(rest, parser->keys_end, len);
    parser->keys_end += step.key.len;
    return add_step(parser, step);
}

static int parse_index(struct parser *parser)
{
    struct kinf__path_step step = { KINF__PATH_INDEX, { NULL, 0 }, 0 };
    const char *start = parser->at;

    for (; parser->at < parser->end && *parser->at >= '0' && *parser->at <= '9'; parser->at++) {
        size_t digit = (size_t)(*parser->at - '0');

        if (step.index > (SIZE_MAX - digit) / 10)
            return fail(parser, start, "the number is too large");
        step.index = step.index * 10 + digit;
    }
    if (parser->at == start)
        return fail(parser, start, "neither *, a number nor a string in brackets");
    return add_step(parser, step);
}

static int parse_subscript(struct parser *parser)
{
    int status;

    parser->at++;
    if (*parser->at == '*') {
        parser->at++;
        status = add_step(parser, (struct kinf__path_step){ KINF__PATH_EACH, { NULL, 0 }, 0 });
    } else if (*parser->at == '"') {
        status = parse_string(parser);
    } else {
        status = parse_index(parser);
    }
    if (status < 0)
        return status;
    if (*parser->at != ']')
        return fail(parser, parser->at, "a closing bracket is missing");
    parser->at++;
    return 0;
}

/* "{.spec}", "$.spec": what would be taken for a key, and never found. */
static bool is_jsonpath(const char *text)
{
    return *text == '{' || (*text == '$' && strchr(".[", text[1]) != NULL); /* the NUL, too */
}

static int parse_steps(struct parser *parser)
{
    int status;

    if (is_jsonpath(parser->at))
        return fail(parser, parser->at, "JSONPath's '$' and braces, which no object has as a key,");
    if (*parser->at == '.')
        parser->at++;
    status = parse_segment(parser);
    while (status == 0 && parser->at < parser->end) {
        if (*parser->at == '[') {
            status = parse_subscript(parser);
        } else if (*parser->at == '.') {
            parser->at++;
            status = parse_segment(parser);
        } else {
            status = fail(parser, parser->at, "neither a dot nor a bracket");
        }
    }
    return status;
}

int kinf_path_parse(const char *text, struct kinf_path **ret_path, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, text, ret_path);

    size_t len = strlen(text);
    struct parser parser = { text, text, text + len, NULL, NULL, err };
    struct kinf_path *path = malloc(sizeof *path + 2 * (len + 1));
    int status;

    if (path == NULL)
        return kinf__error_no_memory(err);
    path->n_steps = 0;
    path->text = (char *)(path + 1);
    path->keys = path->text + len + 1;
    memcpy(path->text, text, len + 1);
    parser.path = path;
    parser.keys_end = path->keys;
    status = parse_steps(&parser);
    if (status < 0) {
        kinf_path_free(path);
        return status;
    }
    *ret_path = path;
    return 0;
}

void kinf_path_free(struct kinf_path *path)
{
    free(path);
}

const char *kinf_path_text(const struct kinf_path *path)
{
    KINF__REFUSE_NULL(NULL, "", path);
    return path->text;
}

/* --- walking text: recursion follows the steps, so KINF_PATH_MAX_STEPS bounds it --- */

struct lookup {
    const struct kinf_path *path;
    kinf__json_value_cb *callback;
    void *ctx;
};

static bool find_element(struct kinf__json_cursor *cursor, size_t index)
{
    struct kinf_str key;

    if (!kinf__json_cursor_enter(cursor, KINF__JSON_ARRAY))
        return false;
    for (; kinf__json_cursor_next(cursor, KINF__JSON_ARRAY, &key); index--) {
        if (index == 0)
            return true;
        kinf__json_cursor_skip(cursor);
    }
    return false;
}

static int walk(const struct lookup *lookup, struct kinf__json_cursor *cursor, size_t at);

static int walk_each(const struct lookup *lookup, struct kinf__json_cursor *cursor, size_t at)
{
    const enum kinf__json_type container = kinf__json_cursor_type(cursor);
    struct kinf_str key;
    unsigned depth;
    size_t start;
    int status = 0;

    if (!kinf__json_cursor_enter(cursor, container))
        return 0;
    depth = cursor->depth;
    while (status == 0 && kinf__json_cursor_next(cursor, container, &key)) {
        start = cursor->at;
        status = walk(lookup, cursor, at);
        if (cursor->at == start)
            kinf__json_cursor_skip(cursor);
        kinf__json_cursor_leave(cursor, depth);
    }
    return status;
}

/* Goes on with step `at` from in front of a value, and ends there, behind it, or inside. */
static int walk(const struct lookup *lookup, struct kinf__json_cursor *cursor, size_t at)
{
    const struct kinf__path_step *step;
    bool is_found = true;

    for (; at < lookup->path->n_steps && is_found; at++) {
        step = &lookup->path->steps[at];
        switch (step->type) {
        case KINF__PATH_KEY:
            is_found = kinf__json_cursor_find(cursor, step->key);
            break;
        case KINF__PATH_INDEX:
            is_found = find_element(cursor, step->index);
            break;
        case KINF__PATH_EACH:
            return walk_each(lookup, cursor, at + 1);
        }
    }
    return is_found ? lookup->callback(kinf__json_cursor_take(cursor), lookup->ctx) : 0;
}

static int take_first(struct kinf__json_value value, void *ctx)
{
    *(struct kinf__json_value *)ctx = value;
    return 1;
}

int kinf__json_lookup(struct kinf_str text, const struct kinf_path *path, size_t n_done,
                      kinf__json_value_cb *callback, void *ctx)
{
    const struct lookup lookup = { path, callback, ctx };
    struct kinf__json_cursor cursor;

    kinf__json_cursor_init(&cursor, text);
    return walk(&lookup, &cursor, n_done);
}

bool kinf__json_lookup_first(struct kinf_str text, const struct kinf_path *path, size_t n_done,
                             struct kinf__json_value *ret_value)
{
    return kinf__json_lookup(text, path, n_done, take_first, ret_value) != 0;
}
