/*
 * The schema of the built-in types: reads schema.txt, which is part of the program. Neighbours:
 * schema_definition.c makes schemas of definitions, schema_prune.c and schema_check.c hold objects
 * against them.
 *
 * The text, in lines:
 *   =TYPE [group/version/Kind]... [atomic]    a type, sorted by name; of which kinds it is the root
 *   FIELD EXPRESSION [WORD]...                its fields, sorted
 * An expression is a scalar's word, a type without "io.k8s.", or "[]" and "{}" (list, map) before
 * one. Words: #PATH, the field's numbers in protobuf, and * if JSON has it also as zero; set,
 * map=KEYS (of lists); atomic; merge=KEY, retain, replace (of strategic merge patches); required;
 * go=TYPE where Go's name does not follow; in=STRUCT, the struct that the field is embedded with;
 * default=JSON up to the end of the line. The text is trusted: it comes with the program, and the
 * tests read all of it.
 */
#include "document/schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "document/schema_priv.h"

__asm__(".pushsection .rodata\n"
        ".globl kinf__schema_begin\n"
        ".hidden kinf__schema_begin\n"
        "kinf__schema_begin:\n"
        ".incbin \"src/document/schema.txt\"\n"
        ".globl kinf__schema_end\n"
        ".hidden kinf__schema_end\n"
        "kinf__schema_end:\n"
        ".byte 0\n"
        ".popsection\n");

extern const char kinf__schema_begin[] __attribute__((visibility("hidden")));
extern const char kinf__schema_end[] __attribute__((visibility("hidden")));

#define BLOCK_SIZE ((size_t)32 * 1024)
#define PREFIX_LEN strlen("io.k8s.")

struct kinf__schema_block {
    struct kinf__schema_block *next;
    size_t used;
    size_t size;
    _Alignas(max_align_t) char bytes[];
};

/* clang-format off */
static const struct kinf__schema_node scalars[] = {
    { .kind = KINF__SCHEMA_STRING, .name = "string", .go = "string" },
    { .kind = KINF__SCHEMA_INTEGER, .name = "int32", .go = "int32" },
    { .kind = KINF__SCHEMA_INTEGER, .name = "int64", .go = "int64" },
    { .kind = KINF__SCHEMA_NUMBER, .name = "number", .go = "float64" },
    { .kind = KINF__SCHEMA_BOOLEAN, .name = "boolean", .go = "bool" },
    { .kind = KINF__SCHEMA_INT_OR_STRING, .name = "int-or-string", .go = "int32" },
    { .kind = KINF__SCHEMA_QUANTITY, .name = "quantity", .go = "resource.Quantity" },
    { .kind = KINF__SCHEMA_TIME, .name = "time", .go = "string" },
    { .kind = KINF__SCHEMA_TIME, .name = "microtime", .go = "string" },
    { .kind = KINF__SCHEMA_BYTES, .name = "bytes", .go = "[]uint8" },
    { .kind = KINF__SCHEMA_ANY, .name = "any", .go = "runtime.RawExtension" },
};
/* clang-format on */

/* --- the arena --- */

void *kinf__schema_alloc(struct kinf__schema *schema, size_t n, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    size_t len = (n * size + align - 1) / align * align;
    struct kinf__schema_block *block = schema->blocks;

    if (block == NULL || block->size - block->used < len) {
        size_t room = len > BLOCK_SIZE ? len : BLOCK_SIZE;

        block = calloc(1, sizeof *block + room);
        if (block == NULL)
            return NULL;
        block->size = room;
        block->next = schema->blocks;
        schema->blocks = block;
    }
    block->used += len;
    return block->bytes + block->used - len;
}

/* --- reading --- */

/* Cuts the next word off; NULL at the end of the line. */
static char *next_word(char **rest)
{
    char *word = *rest;
    size_t len = strcspn(word, " ");

    if (len == 0)
        return NULL;
    *rest += len;
    if (**rest == ' ')
        *(*rest)++ = '\0';
    return word;
}

/* The value of "name=value"; NULL: the word is another one. */
static const char *word_value(const char *word, const char *name)
{
    size_t len = strlen(name);

    return strncmp(word, name, len) == 0 && word[len] == '=' ? word + len + 1 : NULL;
}

static int compare_type(const void *name, const void *type)
{
    return strcmp(name, ((const struct kinf__schema_node *)type)->name + PREFIX_LEN);
}

/* `name` as expressions have it. */
static const struct kinf__schema_node *find_type(const struct kinf__schema *schema,
                                                 const char *name)
{
    return schema->n_types != 0
               ? bsearch(name, schema->types, schema->n_types, sizeof *schema->types, compare_type)
               : NULL;
}

/* "v1.Container" of "io.k8s.api.core.v1.Container". */
static const char *short_go_type(const char *name)
{
    const char *last = strrchr(name, '.');

    while (last > name && last[-1] != '.')
        last--;
    return last;
}

static const struct kinf__schema_node *find_scalar(const char *word)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(scalars); i++) {
        if (strcmp(scalars[i].name, word) == 0)
            return &scalars[i];
    }
    return NULL;
}

static struct kinf__schema_node *copy_node(struct kinf__schema *schema,
                                           const struct kinf__schema_node *node)
{
    struct kinf__schema_node *copy = kinf__schema_alloc(schema, 1, sizeof *copy);

    if (copy != NULL)
        *copy = *node;
    return copy;
}

/* The node of an expression; `go`: Go's name of it, NULL: as it follows. NULL: out of memory. */
static const struct kinf__schema_node *read_expression(struct kinf__schema *schema,
                                                       const char *text, const char *go)
{
    bool is_list = text[0] == '[';
    const char *const prefix = is_list ? "[]" : "map[string]";
    const struct kinf__schema_node *known;
    struct kinf__schema_node *node;

    if (is_list || text[0] == '{') {
        bool goes_on = go != NULL && strncmp(go, prefix, strlen(prefix)) == 0;

        node = kinf__schema_alloc(schema, 1, sizeof *node);
        if (node == NULL)
            return NULL;
        node->kind = is_list ? KINF__SCHEMA_LIST : KINF__SCHEMA_MAP;
        node->name = "";
        node->go = goes_on ? NULL : go;
        node->element = read_expression(schema, text + 2, goes_on ? go + strlen(prefix) : NULL);
        return node->element != NULL ? node : NULL;
    }
    known = find_scalar(text);
    if (known == NULL)
        known = find_type(schema, text);
    if (go == NULL)
        return known;
    node = copy_node(schema, known);
    if (node != NULL)
        node->go = go;
    return node;
}

/* The keys of a list, which are separated by commas. */
static const char *const *read_keys(struct kinf__schema *schema, const char *text)
{
    const char **keys;
    size_t n = 1;
    char *copy;

    for (const char *c = text; *c != '\0'; c++)
        n += *c == ',';
    keys = kinf__schema_alloc(schema, n + 1, sizeof *keys);
    copy = kinf__schema_alloc(schema, strlen(text) + 1, 1);
    if (keys == NULL || copy == NULL)
        return NULL;
    memcpy(copy, text, strlen(text));
    for (size_t i = 0; i < n; i++) {
        keys[i] = copy;
        copy += strcspn(copy, ",");
        *copy++ = '\0';
    }
    return keys;
}

static int read_default(struct kinf__schema *schema, const char *json,
                        const struct cJSON **ret_value)
{
    struct cJSON *value;

    if (kinf__doc_parse(kinf_str_from(json), &value, NULL) < 0 ||
        kinf__doc_append(schema->values, value) < 0)
        return KINF_ERR_NO_MEMORY;
    *ret_value = value;
    return 0;
}

/* A word that changes a node, in `change`, which begins as all zero. */
static int read_change(struct kinf__schema *schema, const char *word,
                       struct kinf__schema_node *change)
{
    const char *value;

    if (strcmp(word, "set") == 0)
        change->list = KINF__LIST_SET;
    else if (strcmp(word, "atomic") == 0)
        change->is_atomic = true;
    else if (strcmp(word, "retain") == 0)
        change->retains_keys = true;
    else if (strcmp(word, "replace") == 0)
        change->is_replaced = true;
    else if ((value = word_value(word, "merge")) != NULL)
        change->merge_key = value;
    else if ((value = word_value(word, "go")) != NULL)
        change->go = value;
    else if ((value = word_value(word, "map")) != NULL) {
        change->list = KINF__LIST_MAP;
        change->keys = read_keys(schema, value);
        if (change->keys == NULL)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static bool is_changed(const struct kinf__schema_node *change)
{
    return change->list != KINF__LIST_ATOMIC || change->is_atomic || change->retains_keys ||
           change->is_replaced || change->merge_key != NULL;
}

static int read_node(struct kinf__schema *schema, const char *expression,
                     const struct kinf__schema_node *change, const struct kinf__schema_node **ret)
{
    const struct kinf__schema_node *known = read_expression(schema, expression, change->go);
    struct kinf__schema_node *node;

    *ret = known;
    if (known == NULL || !is_changed(change))
        return known != NULL ? 0 : KINF_ERR_NO_MEMORY;
    node = copy_node(schema, known);
    if (node == NULL)
        return KINF_ERR_NO_MEMORY;
    node->list = change->list;
    node->keys = change->keys;
    node->merge_key = change->merge_key;
    node->is_atomic |= change->is_atomic;
    node->retains_keys = change->retains_keys;
    node->is_replaced = change->is_replaced;
    *ret = node;
    return 0;
}

/* "#2.19*". */
static void read_path(const char *word, struct kinf__schema_field *field)
{
    char *end = (char *)word;

    do
        field->path = field->path << 8 | (uint32_t)strtoul(end + 1, &end, 10);
    while (*end == '.');
    field->keeps_zero = *end == '*';
}

static int read_field(struct kinf__schema *schema, char *rest, struct kinf__schema_field *field)
{
    struct kinf__schema_node change = { 0 };
    const char *expression = next_word(&rest), *word;
    int failed = 0;

    while (failed == 0 && *rest != '\0') {
        if (word_value(rest, "default") != NULL) {
            failed = read_default(schema, word_value(rest, "default"), &field->fallback);
            break;
        }
        word = next_word(&rest);
        if (strcmp(word, "required") == 0)
            field->is_required = true;
        else if (*word == '#')
            read_path(word, field);
        else if (word_value(word, "in") != NULL)
            field->inlined = word_value(word, "in");
        else
            failed = read_change(schema, word, &change);
    }
    return failed < 0 ? failed : read_node(schema, expression, &change, &field->node);
}

static void read_type(struct kinf__schema *schema, char *rest, struct kinf__schema_node *node)
{
    char *word;

    node->kind = KINF__SCHEMA_OBJECT;
    node->name = next_word(&rest);
    node->go = short_go_type(node->name);
    while ((word = next_word(&rest)) != NULL) {
        struct kinf__schema_root *root = &schema->roots[schema->n_roots];

        if (strcmp(word, "atomic") == 0) {
            node->is_atomic = true;
            continue;
        }
        schema->n_roots++;
        root->node = node;
        root->group = word;
        root->version = strchr(word, '/') + 1;
        root->kind = strrchr(word, '/') + 1;
        word[root->version - word - 1] = '\0';
        word[root->kind - word - 1] = '\0';
    }
}

/* Room for everything, by what lines there are; their ends become NULs. */
static int count_lines(struct kinf__schema *schema, char *text, struct kinf__schema_field **fields)
{
    size_t n_types = 0, n_fields = 0, n_roots = 0;

    for (char *c = text; *c != '\0'; c++) {
        bool is_type = *c == '=';

        n_types += is_type;
        n_fields += !is_type && *c != '#';
        for (; *c != '\n'; c++)
            n_roots += is_type && *c == '/';
        *c = '\0';
    }
    schema->types = kinf__schema_alloc(schema, n_types, sizeof *schema->types);
    schema->roots = kinf__schema_alloc(schema, n_roots, sizeof *schema->roots);
    *fields = kinf__schema_alloc(schema, n_fields, sizeof **fields);
    return schema->types != NULL && schema->roots != NULL && *fields != NULL ? 0
                                                                             : KINF_ERR_NO_MEMORY;
}

/* Types and the names of their fields first, since fields refer to types behind them. */
static int read_text(struct kinf__schema *schema, char *text, const char *end)
{
    struct kinf__schema_field *fields, *field;
    struct kinf__schema_node *type = NULL;
    char *line = text, *next;
    int failed = count_lines(schema, text, &fields);

    if (failed < 0)
        return failed;
    for (field = fields; line < end; line = next) {
        next = line + strlen(line) + 1;
        if (*line == '=') {
            type = &schema->types[schema->n_types++];
            read_type(schema, line + 1, type);
            type->fields = field;
        } else if (*line != '#' && type != NULL) {
            field->name = next_word(&line);
            type->n_fields++;
            field++;
        }
    }
    for (struct kinf__schema_field *at = fields; failed == 0 && at < field; at++) {
        char *name = text + (at->name - text);

        failed = read_field(schema, name + strlen(name) + 1, at);
    }
    return failed;
}

static int fill(struct kinf__schema *schema)
{
    size_t len = (size_t)(kinf__schema_end - kinf__schema_begin);
    char *text = kinf__schema_alloc(schema, len + 1, 1);

    schema->values = cJSON_CreateArray();
    if (text == NULL || schema->values == NULL)
        return KINF_ERR_NO_MEMORY;
    memcpy(text, kinf__schema_begin, len);
    return read_text(schema, text, text + len);
}

int kinf__schema_new(struct kinf__schema **ret_schema)
{
    struct kinf__schema *schema = calloc(1, sizeof *schema);
    int failed = schema != NULL ? fill(schema) : KINF_ERR_NO_MEMORY;

    if (failed < 0)
        kinf__schema_free(schema);
    else
        *ret_schema = schema;
    return failed;
}

void kinf__schema_free(struct kinf__schema *schema)
{
    struct kinf__schema_block *block, *next;

    if (schema == NULL)
        return;
    for (block = schema->blocks; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    cJSON_Delete(schema->values);
    free(schema);
}

/* --- looking up --- */

const struct kinf__schema_node *kinf__schema_find(const struct kinf__schema *schema,
                                                  const char *group, const char *version,
                                                  const char *kind)
{
    for (size_t i = 0; i < schema->n_roots; i++) {
        const struct kinf__schema_root *root = &schema->roots[i];

        if (strcmp(root->kind, kind) == 0 && strcmp(root->group, group) == 0 &&
            strcmp(root->version, version) == 0)
            return root->node;
    }
    return schema->root;
}

const struct kinf__schema_node *kinf__schema_type(const struct kinf__schema *schema,
                                                  const char *name)
{
    return strncmp(name, "io.k8s.", PREFIX_LEN) == 0 ? find_type(schema, name + PREFIX_LEN) : NULL;
}

static int compare_field(const void *name, const void *field)
{
    return strcmp(name, ((const struct kinf__schema_field *)field)->name);
}

const struct kinf__schema_field *kinf__schema_field_of(const struct kinf__schema_node *node,
                                                       const char *name)
{
    if (node == NULL || node->n_fields == 0)
        return NULL;
    return bsearch(name, node->fields, node->n_fields, sizeof *node->fields, compare_field);
}

const struct kinf__schema_node *kinf__schema_member(const struct kinf__schema_node *node,
                                                    const char *name)
{
    const struct kinf__schema_field *field = kinf__schema_field_of(node, name);

    if (field != NULL)
        return field->node;
    return node != NULL && node->kind == KINF__SCHEMA_MAP ? node->element : NULL;
}
