/*
 * From libyaml's events to a tree. Neighbours: yaml_read.c reads fields out of it.
 *
 * Invariants: nodes live in one list that the document owns; an alias is the anchor's node again,
 * and counts as many nodes as it stands for, so that walking the tree is bounded by
 * KINF__YAML_MAX_NODES.
 */
#include "yaml/yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/buffer.h"
#include "base/error.h"

/* A node with what only building needs. */
struct owned_node {
    struct kinf__yaml_node node; /* first, so that both have one address */
    struct owned_node *next;     /* in the document's list */
    char *anchor;                /* "" when it has none */
    size_t weight;               /* nodes that a walk through it meets */
    size_t n_slots;
    bool is_open; /* its end event has not come: an alias to it would be a circle */
    char text[];
};

struct kinf__yaml {
    char *file;
    struct owned_node *nodes;
    const struct kinf__yaml_node *root;
};

/* Where building is. */
struct builder {
    struct kinf__yaml *yaml;
    struct kinf_error *err;
    struct owned_node *open[KINF__YAML_MAX_DEPTH];
    size_t depth;
    size_t weight;
    size_t n_documents;
};

static int place_error(struct kinf_error *err, int code, const char *file, size_t line,
                       size_t column, const char *text)
{
    return kinf__error_set(err, (enum kinf_errc)code, "%s:%zu:%zu: %s", file, line, column, text);
}

static int fail_at(const struct builder *builder, int code, const yaml_mark_t *mark,
                   const char *text)
{
    return place_error(builder->err, code, builder->yaml->file, mark->line + 1, mark->column + 1,
                       text);
}

static struct owned_node *new_node(struct builder *builder, enum kinf__yaml_type type,
                                   const yaml_mark_t *mark, const yaml_char_t *anchor,
                                   const char *text, size_t len)
{
    struct owned_node *owned = calloc(1, sizeof *owned + len + 1);

    if (owned == NULL)
        return NULL;
    owned->anchor = strdup(anchor != NULL ? (const char *)anchor : "");
    if (owned->anchor == NULL) {
        free(owned);
        return NULL;
    }
    memcpy(owned->text, text, len);
    owned->node.type = type;
    owned->node.line = (unsigned)mark->line + 1;
    owned->node.column = (unsigned)mark->column + 1;
    owned->node.text = (struct kinf_str){ owned->text, len };
    owned->weight = 1;
    owned->next = builder->yaml->nodes;
    builder->yaml->nodes = owned;
    return owned;
}

/* Items of a mapping lie key, value, key, value; n_items counts pairs once a value came. */
static int append_item(struct owned_node *container, const struct kinf__yaml_node *item)
{
    const struct kinf__yaml_node **items;
    size_t n = container->n_slots;

    if ((n & (n - 1)) == 0) {
        items = realloc(container->node.items, (n == 0 ? 1 : 2 * n) * sizeof *items);
        if (items == NULL)
            return KINF_ERR_NO_MEMORY;
        container->node.items = items;
    }
    container->node.items[n] = item;
    container->n_slots = n + 1;
    container->node.n_items =
        container->node.type == KINF__YAML_MAPPING ? container->n_slots / 2 : container->n_slots;
    return 0;
}

static bool has_key(const struct owned_node *mapping, struct kinf_str key)
{
    for (size_t i = 0; i + 1 < mapping->n_slots; i += 2) {
        if (kinf_str_equal(mapping->node.items[i]->text, key))
            return true;
    }
    return false;
}

static int check_key(const struct builder *builder, const struct owned_node *mapping,
                     const struct owned_node *key, const yaml_mark_t *mark)
{
    if (key->node.type != KINF__YAML_SCALAR)
        return fail_at(builder, KINF_ERR_PARSE, mark, "a key that is no plain text");
    if (has_key(mapping, key->node.text))
        return fail_at(builder, KINF_ERR_PARSE, mark, "this key is there twice");
    return 0;
}

/* Puts a complete or opened node where it belongs. */
static int attach(struct builder *builder, struct owned_node *owned, const yaml_mark_t *mark)
{
    struct owned_node *parent;
    int failed;

    builder->weight += owned->weight;
    if (builder->weight > KINF__YAML_MAX_NODES)
        return fail_at(builder, KINF_ERR_LIMIT, mark,
                       "too many nodes, counting what aliases stand for");
    if (builder->depth == 0) {
        builder->yaml->root = &owned->node;
        return 0;
    }
    parent = builder->open[builder->depth - 1];
    if (parent->node.type == KINF__YAML_MAPPING && parent->n_slots % 2 == 0 &&
        (failed = check_key(builder, parent, owned, mark)) < 0)
        return failed;
    parent->weight += owned->weight;
    return append_item(parent, &owned->node) < 0 ? kinf__error_no_memory(builder->err) : 0;
}

static int add_scalar(struct builder *builder, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    struct owned_node *owned;

    if (memchr(text, '\0', len) != NULL)
        return fail_at(builder, KINF_ERR_PARSE, &event->start_mark, "a NUL in a text");
    owned = new_node(builder, KINF__YAML_SCALAR, &event->start_mark, event->data.scalar.anchor,
                     text, len);
    if (owned == NULL)
        return kinf__error_no_memory(builder->err);
    owned->node.is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return attach(builder, owned, &event->start_mark);
}

static int open_container(struct builder *builder, enum kinf__yaml_type type,
                          const yaml_event_t *event, const yaml_char_t *anchor)
{
    struct owned_node *owned;
    int failed;

    if (builder->depth == KINF__YAML_MAX_DEPTH)
        return fail_at(builder, KINF_ERR_LIMIT, &event->start_mark, "nested too deep");
    owned = new_node(builder, type, &event->start_mark, anchor, "", 0);
    if (owned == NULL)
        return kinf__error_no_memory(builder->err);
    failed = attach(builder, owned, &event->start_mark);
    owned->is_open = true;
    builder->open[builder->depth++] = owned;
    return failed;
}

static void close_container(struct builder *builder)
{
    struct owned_node *closed = builder->open[--builder->depth];

    closed->is_open = false;
    /* attach() gave the parent only the weight of the node itself, not of what came into it. */
    if (builder->depth > 0)
        builder->open[builder->depth - 1]->weight += closed->weight - 1;
}

static int add_alias(struct builder *builder, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    struct owned_node *owned = builder->yaml->nodes;

    /* The list is newest first: a name that is anchored again means the later one. */
    while (owned != NULL && strcmp(owned->anchor, name) != 0)
        owned = owned->next;
    if (owned == NULL)
        return fail_at(builder, KINF_ERR_PARSE, &event->start_mark, "an alias without an anchor");
    if (owned->is_open)
        return fail_at(builder, KINF_ERR_PARSE, &event->start_mark,
                       "an alias inside its own anchor");
    return attach(builder, owned, &event->start_mark);
}

/* Returns 1 at the end of the stream. */
static int take_event(struct builder *builder, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_STREAM_END_EVENT:
        return 1;
    case YAML_DOCUMENT_START_EVENT:
        if (++builder->n_documents > 1)
            return fail_at(builder, KINF_ERR_PARSE, &event->start_mark, "a second document");
        return 0;
    case YAML_SCALAR_EVENT:
        return add_scalar(builder, event);
    case YAML_ALIAS_EVENT:
        return add_alias(builder, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_container(builder, KINF__YAML_SEQUENCE, event,
                              event->data.sequence_start.anchor);
    case YAML_MAPPING_START_EVENT:
        return open_container(builder, KINF__YAML_MAPPING, event, event->data.mapping_start.anchor);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_container(builder);
        return 0;
    default:
        return 0;
    }
}

static int parser_error(const struct builder *builder, const yaml_parser_t *parser)
{
    const yaml_mark_t *mark = &parser->problem_mark;

    if (parser->error == YAML_MEMORY_ERROR)
        return kinf__error_no_memory(builder->err);
    return fail_at(builder, KINF_ERR_PARSE, mark,
                   parser->problem != NULL ? parser->problem : "no YAML");
}

static int build(struct builder *builder, yaml_parser_t *parser)
{
    yaml_event_t event;
    int result = 0;

    while (result == 0) {
        if (yaml_parser_parse(parser, &event) == 0)
            return parser_error(builder, parser);
        result = take_event(builder, &event);
        yaml_event_delete(&event);
    }
    return result < 0 ? result : 0;
}

/* What an empty file holds. */
static int add_null_root(struct builder *builder)
{
    static const yaml_mark_t start;
    struct owned_node *owned = new_node(builder, KINF__YAML_SCALAR, &start, NULL, "", 0);

    if (owned == NULL)
        return kinf__error_no_memory(builder->err);
    builder->yaml->root = &owned->node;
    return 0;
}

static int parse_into(struct kinf__yaml *yaml, struct kinf_str text, struct kinf_error *err)
{
    struct builder builder = { .yaml = yaml, .err = err };
    yaml_parser_t parser;
    int failed;

    if (text.len > KINF__YAML_MAX_BYTES)
        return place_error(err, KINF_ERR_LIMIT, yaml->file, 1, 1, "the file is too large");
    if (yaml_parser_initialize(&parser) == 0)
        return kinf__error_no_memory(err);
    yaml_parser_set_input_string(&parser, (const unsigned char *)(text.len != 0 ? text.bytes : ""),
                                 text.len);
    failed = build(&builder, &parser);
    yaml_parser_delete(&parser);
    return failed == 0 && yaml->root == NULL ? add_null_root(&builder) : failed;
}

int kinf__yaml_parse(struct kinf_str text, const char *file, struct kinf__yaml **ret_yaml,
                     struct kinf_error *err)
{
    struct kinf__yaml *yaml = calloc(1, sizeof *yaml);
    int failed;

    if (yaml == NULL || (yaml->file = strdup(file)) == NULL) {
        free(yaml);
        return kinf__error_no_memory(err);
    }
    failed = parse_into(yaml, text, err);
    if (failed < 0) {
        kinf__yaml_free(yaml);
        return failed;
    }
    *ret_yaml = yaml;
    return 0;
}

static void close_file(FILE **file)
{
    if (*file != NULL)
        fclose(*file);
}

int kinf__yaml_read(const char *path, struct kinf__yaml **ret_yaml, struct kinf_error *err)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    KINF__CLEANUP(close_file) FILE *file = fopen(path, "re");
    size_t n = 1;

    if (file == NULL)
        return kinf__error_set_errno(err, KINF_ERR_CONFIG, errno, "cannot read %s", path);
    while (n != 0 && text.len <= KINF__YAML_MAX_BYTES) {
        if (kinf__buffer_reserve(&text, BUFSIZ) < 0)
            return kinf__error_no_memory(err);
        n = fread(text.bytes + text.len, 1, BUFSIZ, file);
        text.len += n;
    }
    if (ferror(file))
        return kinf__error_set_errno(err, KINF_ERR_CONFIG, errno, "cannot read %s", path);
    return kinf__yaml_parse(kinf__buffer_str(&text), path, ret_yaml, err);
}

void kinf__yaml_free(struct kinf__yaml *yaml)
{
    struct owned_node *next;

    if (yaml == NULL)
        return;
    for (struct owned_node *owned = yaml->nodes; owned != NULL; owned = next) {
        next = owned->next;
        free(owned->node.items);
        free(owned->anchor);
        free(owned);
    }
    free(yaml->file);
    free(yaml);
}

void kinf__yaml_free_ptr(struct kinf__yaml **yaml)
{
    kinf__yaml_free(*yaml);
}

const struct kinf__yaml_node *kinf__yaml_root(const struct kinf__yaml *yaml)
{
    return yaml->root;
}

const char *kinf__yaml_file(const struct kinf__yaml *yaml)
{
    return yaml->file;
}
