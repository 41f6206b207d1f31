/*
 * From libyaml's events to a tree. Neighbours: yaml_read.c reads fields out of it.
 *
 * Invariants: nodes live in one list that the document owns; an alias is the anchor's node again,
 * and counts as many nodes and levels as it stands for, so that walking the tree is bounded by
 * KINF__YAML_MAX_NODES and KINF__YAML_MAX_DEPTH. A mapping that is closed has no merge keys. No
 * file takes longer than its size lets expect: keys are compared after sorting, and anchors are few.
 */
#include "yaml/yaml.h"

#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"

#define N_ANCHORS_MAX 256

/* A node with what only building needs. */
struct owned_node {
    struct kinf__yaml_node node; /* first, so that both have one address */
    struct owned_node *next;     /* in the document's list */
    size_t weight;               /* nodes that a walk through it meets */
    size_t height;               /* levels of containers, itself included */
    size_t n_slots;
    bool is_open; /* its end event has not come: an alias to it would be a circle */
    char text[];
};

struct anchor {
    char *name;
    struct owned_node *owned;
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
    struct kinf_str text;
    struct owned_node *open[KINF__YAML_MAX_DEPTH];
    size_t depth;
    struct anchor anchors[N_ANCHORS_MAX];
    size_t n_anchors;
    size_t weight;
    size_t n_documents;
    kinf__yaml_take_cb *take; /* of a stream; NULL: one document */
    void *ctx;
    bool is_first_enough; /* what is behind that one document is not looked at */
    bool allows_doubled_keys;
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
                                   const yaml_mark_t *mark, const char *text, size_t len)
{
    struct owned_node *owned = calloc(1, sizeof *owned + len + 1);

    if (owned == NULL)
        return NULL;
    memcpy(owned->text, text, len);
    owned->node.type = type;
    owned->node.line = (unsigned)mark->line + 1;
    owned->node.column = (unsigned)mark->column + 1;
    owned->node.text = (struct kinf_str){ owned->text, len };
    owned->weight = 1;
    owned->height = type == KINF__YAML_SCALAR ? 0 : 1;
    owned->next = builder->yaml->nodes;
    builder->yaml->nodes = owned;
    return owned;
}

static struct anchor *find_anchor(struct builder *builder, const char *name)
{
    for (size_t i = 0; i < builder->n_anchors; i++) {
        if (strcmp(builder->anchors[i].name, name) == 0)
            return &builder->anchors[i];
    }
    return NULL;
}

/* A name that is anchored again means the later node from then on. */
static int set_anchor(struct builder *builder, const yaml_char_t *name, struct owned_node *owned,
                      const yaml_mark_t *mark)
{
    struct anchor *anchor;

    if (name == NULL)
        return 0;
    anchor = find_anchor(builder, (const char *)name);
    if (anchor == NULL) {
        if (builder->n_anchors == N_ANCHORS_MAX)
            return fail_at(builder, KINF_ERR_LIMIT, mark, "too many anchors");
        anchor = &builder->anchors[builder->n_anchors];
        anchor->name = strdup((const char *)name);
        if (anchor->name == NULL)
            return kinf__error_no_memory(builder->err);
        builder->n_anchors++;
    }
    anchor->owned = owned;
    return 0;
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

/* --- keys --- */

/* Whether it is << and no text. */
static bool is_merge_key(const struct kinf__yaml_node *key)
{
    return !key->is_quoted && kinf_str_equal(key->text, KINF_STR("<<"));
}

/* Equal keys in the order of the file. */
static int compare_keys(const void *a, const void *b)
{
    const struct kinf__yaml_node *const *left = *(const struct kinf__yaml_node *const *const *)a;
    const struct kinf__yaml_node *const *right = *(const struct kinf__yaml_node *const *const *)b;
    int order = kinf_str_compare((*left)->text, (*right)->text);

    return order != 0 ? order : (left > right) - (left < right);
}

/* The places of the mapping's keys, equal ones together; NULL when out of memory. The caller frees
 * them. */
static const struct kinf__yaml_node ***sort_keys(const struct kinf__yaml_node *mapping)
{
    const struct kinf__yaml_node ***keys = calloc(mapping->n_items + 1, sizeof *keys);

    for (size_t i = 0; keys != NULL && i < mapping->n_items; i++)
        keys[i] = &mapping->items[2 * i];
    if (keys != NULL)
        qsort(keys, mapping->n_items, sizeof *keys, compare_keys);
    return keys;
}

/* Complains about the first key in the file that was there before. */
static int check_keys(const struct builder *builder, const struct kinf__yaml_node *mapping)
{
    KINF__AUTO_FREE const struct kinf__yaml_node ***keys = NULL;
    const struct kinf__yaml_node **doubled = NULL;

    if (mapping->n_items < 2 || builder->allows_doubled_keys)
        return 0;
    keys = sort_keys(mapping);
    if (keys == NULL)
        return kinf__error_no_memory(builder->err);
    for (size_t i = 1; i < mapping->n_items; i++) {
        if (kinf_str_equal((*keys[i - 1])->text, (*keys[i])->text) && !is_merge_key(*keys[i]) &&
            (doubled == NULL || keys[i] < doubled))
            doubled = keys[i];
    }
    return doubled != NULL
               ? place_error(builder->err, KINF_ERR_PARSE, builder->yaml->file, (*doubled)->line,
                             (*doubled)->column, "this key is there twice")
               : 0;
}

/* --- merge keys --- */

/* The pairs of one mapping behind those of others. */
static int append_pairs(struct owned_node *flat, const struct kinf__yaml_node *mapping)
{
    for (size_t i = 0; i < 2 * mapping->n_items; i++) {
        if (append_item(flat, mapping->items[i]) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* What << stands for; of several mappings the first one wins, and comes last. */
static int append_merged(const struct builder *builder, struct owned_node *flat,
                         const struct kinf__yaml_node *value)
{
    bool is_list = value->type == KINF__YAML_SEQUENCE;

    for (size_t i = is_list ? value->n_items : 1; i-- > 0;) {
        const struct kinf__yaml_node *mapping = is_list ? value->items[i] : value;

        if (mapping->type != KINF__YAML_MAPPING)
            return place_error(builder->err, KINF_ERR_PARSE, builder->yaml->file, mapping->line,
                               mapping->column, "<< takes a mapping or a list of mappings");
        if (append_pairs(flat, mapping) < 0)
            return kinf__error_no_memory(builder->err);
    }
    return 0;
}

/* Of equal keys the last one stays. */
static int drop_overridden(struct owned_node *flat)
{
    const struct kinf__yaml_node **items = flat->node.items;
    KINF__AUTO_FREE const struct kinf__yaml_node ***keys = sort_keys(&flat->node);
    size_t n_kept = 0;

    if (keys == NULL)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 1; i < flat->node.n_items; i++) {
        if (kinf_str_equal((*keys[i - 1])->text, (*keys[i])->text))
            keys[i - 1][1] = NULL;
    }
    for (size_t i = 0; i < flat->node.n_items; i++) {
        if (items[2 * i + 1] != NULL) {
            items[2 * n_kept] = items[2 * i];
            items[2 * n_kept++ + 1] = items[2 * i + 1];
        }
    }
    flat->node.n_items = n_kept;
    return 0;
}

static int append_all(const struct builder *builder, struct owned_node *flat,
                      const struct kinf__yaml_node *mapping)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < mapping->n_items; i++) {
        const struct kinf__yaml_node *key = mapping->items[2 * i],
                                     *value = mapping->items[2 * i + 1];

        if (is_merge_key(key))
            failed = append_merged(builder, flat, value);
        else if (append_item(flat, key) < 0 || append_item(flat, value) < 0)
            failed = kinf__error_no_memory(builder->err);
    }
    if (failed == 0 && drop_overridden(flat) < 0)
        failed = kinf__error_no_memory(builder->err);
    return failed;
}

/* Puts the pairs that << stands for where it stands. They have been counted where they are from, or
 * as an alias. As kube-apiserver and kubectl have it, and not as the definition of merge keys says,
 * what stands behind wins, be it merged or not. */
static int resolve_merges(const struct builder *builder, struct owned_node *mapping)
{
    struct owned_node flat = { .node.type = KINF__YAML_MAPPING };
    size_t i = 0;
    int failed;

    while (i < mapping->node.n_items && !is_merge_key(mapping->node.items[2 * i]))
        i++;
    if (i == mapping->node.n_items)
        return 0;
    failed = append_all(builder, &flat, &mapping->node);
    if (failed == 0) {
        free(mapping->node.items);
        mapping->node.items = flat.node.items;
        mapping->node.n_items = flat.node.n_items;
    } else {
        free(flat.node.items);
    }
    return failed;
}

/* --- nodes --- */

/* A container counts what is put into it, `weight` nodes of a height. */
static void grow(struct owned_node *container, size_t weight, size_t height)
{
    container->weight += weight;
    if (container->height <= height)
        container->height = height + 1;
}

/* Puts a complete or opened node where it belongs. */
static int attach(struct builder *builder, struct owned_node *owned, const yaml_mark_t *mark)
{
    struct owned_node *parent;

    builder->weight += owned->weight;
    if (builder->weight > KINF__YAML_MAX_NODES)
        return fail_at(builder, KINF_ERR_LIMIT, mark,
                       "too many nodes, counting what aliases stand for");
    if (builder->depth + owned->height > KINF__YAML_MAX_DEPTH)
        return fail_at(builder, KINF_ERR_LIMIT, mark, "nested too deep");
    if (builder->depth == 0) {
        builder->yaml->root = &owned->node;
        return 0;
    }
    parent = builder->open[builder->depth - 1];
    if (parent->node.type == KINF__YAML_MAPPING && parent->n_slots % 2 == 0 &&
        owned->node.type != KINF__YAML_SCALAR)
        return fail_at(builder, KINF_ERR_PARSE, mark, "a key that is no plain text");
    grow(parent, owned->weight, owned->height);
    return append_item(parent, &owned->node) < 0 ? kinf__error_no_memory(builder->err) : 0;
}

/* Whether it is what it says and never a number, << or the like. */
static bool is_text(const yaml_event_t *event)
{
    static const char core[] = "tag:yaml.org,2002:";
    static const char *const others[] = { "null", "bool", "int", "float", "merge" };
    const char *tag = (const char *)event->data.scalar.tag;

    if (tag == NULL)
        return event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    for (size_t i = 0; i < KINF__ARRAY_LEN(others); i++) {
        if (strncmp(tag, core, sizeof core - 1) == 0 &&
            strcmp(tag + sizeof core - 1, others[i]) == 0)
            return false;
    }
    return true;
}

static int add_scalar(struct builder *builder, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    struct owned_node *owned;
    int failed;

    if (memchr(text, '\0', len) != NULL)
        return fail_at(builder, KINF_ERR_PARSE, &event->start_mark, "a NUL in a text");
    owned = new_node(builder, KINF__YAML_SCALAR, &event->start_mark, text, len);
    if (owned == NULL)
        return kinf__error_no_memory(builder->err);
    owned->node.is_quoted = is_text(event);
    failed = set_anchor(builder, event->data.scalar.anchor, owned, &event->start_mark);
    return failed < 0 ? failed : attach(builder, owned, &event->start_mark);
}

static int open_container(struct builder *builder, enum kinf__yaml_type type,
                          const yaml_event_t *event, const yaml_char_t *anchor)
{
    struct owned_node *owned = new_node(builder, type, &event->start_mark, "", 0);
    int failed;

    if (owned == NULL)
        return kinf__error_no_memory(builder->err);
    if ((failed = set_anchor(builder, anchor, owned, &event->start_mark)) < 0 ||
        (failed = attach(builder, owned, &event->start_mark)) < 0)
        return failed;
    owned->is_open = true;
    builder->open[builder->depth++] = owned;
    return 0;
}

static int close_container(struct builder *builder)
{
    struct owned_node *closed = builder->open[--builder->depth];
    int failed;

    closed->is_open = false;
    /* attach() gave the parent only what the container was when it was empty. */
    if (builder->depth > 0)
        grow(builder->open[builder->depth - 1], closed->weight - 1, closed->height);
    if (closed->node.type != KINF__YAML_MAPPING)
        return 0;
    failed = check_keys(builder, &closed->node);
    return failed < 0 ? failed : resolve_merges(builder, closed);
}

static int add_alias(struct builder *builder, const yaml_event_t *event)
{
    const struct anchor *anchor = find_anchor(builder, (const char *)event->data.alias.anchor);

    if (anchor == NULL)
        return fail_at(builder, KINF_ERR_PARSE, &event->start_mark, "an alias without an anchor");
    if (anchor->owned->is_open)
        return fail_at(builder, KINF_ERR_PARSE, &event->start_mark,
                       "an alias inside its own anchor");
    return attach(builder, anchor->owned, &event->start_mark);
}

static void release_anchors(struct builder *builder)
{
    for (size_t i = 0; i < builder->n_anchors; i++)
        free(builder->anchors[i].name);
    builder->n_anchors = 0;
}

static void release_nodes(struct kinf__yaml *yaml)
{
    struct owned_node *next;

    for (struct owned_node *owned = yaml->nodes; owned != NULL; owned = next) {
        next = owned->next;
        free(owned->node.items);
        explicit_bzero(owned->text, owned->node.text.len);
        free(owned);
    }
    yaml->nodes = NULL;
    yaml->root = NULL;
}

static int open_document(struct builder *builder, const yaml_event_t *event)
{
    if (++builder->n_documents > 1 && builder->take == NULL)
        return fail_at(builder, KINF_ERR_PARSE, &event->start_mark, "a second document");
    return 0;
}

/* One of a stream goes when it has been taken, and its anchors with it. Returns 1 behind the last one
 * that is wanted. */
static int close_document(struct builder *builder)
{
    int result;

    if (builder->take == NULL)
        return builder->is_first_enough ? 1 : 0;
    result = builder->take(builder->yaml, builder->ctx);
    release_nodes(builder->yaml);
    release_anchors(builder);
    builder->weight = 0;
    return result;
}

/* Returns 1 at the end of the stream. */
static int take_event(struct builder *builder, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_STREAM_END_EVENT:
        return 1;
    case YAML_DOCUMENT_START_EVENT:
        return open_document(builder, event);
    case YAML_DOCUMENT_END_EVENT:
        return close_document(builder);
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
        return close_container(builder);
    default:
        return 0;
    }
}

/* libyaml gives bytes that it cannot read an offset instead of a place. */
static yaml_mark_t mark_of(struct kinf_str text, size_t offset)
{
    yaml_mark_t mark = { 0 };

    for (size_t i = 0; i < offset && i < text.len; i++) {
        bool is_newline = text.bytes[i] == '\n';

        mark.line += is_newline ? 1 : 0;
        mark.column = is_newline ? 0 : mark.column + 1;
    }
    return mark;
}

static int parser_error(const struct builder *builder, const yaml_parser_t *parser)
{
    yaml_mark_t mark = parser->problem_mark;

    if (parser->error == YAML_MEMORY_ERROR)
        return kinf__error_no_memory(builder->err);
    if (parser->error == YAML_SCANNER_ERROR && *parser->buffer.pointer == '\t')
        return fail_at(builder, KINF_ERR_PARSE, &mark, "a tab: YAML is indented by blanks");
    if (parser->error == YAML_READER_ERROR)
        mark = mark_of(builder->text, parser->problem_offset);
    return fail_at(builder, KINF_ERR_PARSE, &mark,
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
    struct owned_node *owned = new_node(builder, KINF__YAML_SCALAR, &start, "", 0);

    if (owned == NULL)
        return kinf__error_no_memory(builder->err);
    builder->yaml->root = &owned->node;
    return 0;
}

static int parse_into(struct builder *builder)
{
    struct kinf_str text = builder->text;
    yaml_parser_t parser;
    int failed;

    if (yaml_parser_initialize(&parser) == 0)
        return kinf__error_no_memory(builder->err);
    yaml_parser_set_input_string(&parser, (const unsigned char *)(text.len != 0 ? text.bytes : ""),
                                 text.len);
    failed = build(builder, &parser);
    yaml_parser_delete(&parser);
    release_anchors(builder);
    return failed;
}

static struct kinf__yaml *new_yaml(const char *file)
{
    struct kinf__yaml *yaml = calloc(1, sizeof *yaml);

    if (yaml != NULL && (yaml->file = strdup(file)) == NULL) {
        free(yaml);
        return NULL;
    }
    return yaml;
}

static int parse_one(struct kinf_str text, const char *file, bool is_first_enough,
                     struct kinf__yaml **ret_yaml, struct kinf_error *err)
{
    struct builder builder = {
        .yaml = new_yaml(file), .err = err, .text = text, .is_first_enough = is_first_enough
    };
    int failed;

    if (builder.yaml == NULL)
        return kinf__error_no_memory(err);
    if (text.len > KINF__YAML_MAX_BYTES)
        failed = place_error(err, KINF_ERR_LIMIT, file, 1, 1, "the file is too large");
    else
        failed = parse_into(&builder);
    if (failed == 0 && builder.yaml->root == NULL)
        failed = add_null_root(&builder);
    if (failed < 0) {
        kinf__yaml_free(builder.yaml);
        return failed;
    }
    *ret_yaml = builder.yaml;
    return 0;
}

int kinf__yaml_parse(struct kinf_str text, const char *file, struct kinf__yaml **ret_yaml,
                     struct kinf_error *err)
{
    return parse_one(text, file, false, ret_yaml, err);
}

int kinf__yaml_parse_all(struct kinf_str text, const char *file, bool allows_doubled_keys,
                         kinf__yaml_take_cb *take, void *ctx, struct kinf_error *err)
{
    struct builder builder = { .yaml = new_yaml(file),
                               .err = err,
                               .text = text,
                               .take = take,
                               .ctx = ctx,
                               .allows_doubled_keys = allows_doubled_keys };
    int failed;

    if (builder.yaml == NULL)
        return kinf__error_no_memory(err);
    failed = parse_into(&builder);
    kinf__yaml_free(builder.yaml);
    return failed;
}

static int read_one(const char *path, bool is_first_enough, struct kinf__yaml **ret_yaml,
                    struct kinf_error *err)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    int failed = kinf__file_read(path, KINF__YAML_MAX_BYTES, &text, err);

    if (failed == 0)
        failed = parse_one(kinf__buffer_str(&text), path, is_first_enough, ret_yaml, err);
    /* A kubeconfig has tokens and keys in it. */
    if (text.bytes != NULL)
        explicit_bzero(text.bytes, text.len);
    return failed;
}

int kinf__yaml_read(const char *path, struct kinf__yaml **ret_yaml, struct kinf_error *err)
{
    return read_one(path, false, ret_yaml, err);
}

int kinf__yaml_read_first(const char *path, struct kinf__yaml **ret_yaml, struct kinf_error *err)
{
    return read_one(path, true, ret_yaml, err);
}

void kinf__yaml_free(struct kinf__yaml *yaml)
{
    if (yaml == NULL)
        return;
    release_nodes(yaml);
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
