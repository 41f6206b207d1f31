/*
 * From YAML nodes to trees, and from documents to objects. Neighbours: yaml.c parses, tree.c has
 * the trees.
 *
 * The depth of a YAML tree is limited by its parser, and so is the number of nodes that a walk
 * meets.
 */
#include "document/manifest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "json/scan.h"
#include "document/tree.h"
#include "yaml/yaml.h"

/* What a number is written with; what is longer is a text. */
#define NUMBER_SIZE 512
/* A JSON number of so many digits is held exactly, and printed as it is. */
#define EXACT_DIGITS     15
#define JSON_NUMBER_SIZE 32

/* --- scalars --- */

enum scalar_type { SCALAR_TEXT, SCALAR_NULL, SCALAR_BOOL, SCALAR_NUMBER, SCALAR_INFINITE };

struct scalar {
    enum scalar_type type;
    const char *text; /* as a key: of a number and a truth, as JSON has it */
    char number[JSON_NUMBER_SIZE];
};

static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
static const char *const infinities[] = { ".inf",  ".Inf",  ".INF",  "+.inf", "+.Inf",
                                          "+.INF", "-.inf", "-.Inf", "-.INF", ".nan",
                                          ".NaN",  ".NAN",  NULL };

static bool is_one_of(struct kinf_str text, const char *const *words)
{
    while (*words != NULL && !kinf_str_equal(text, kinf_str_from(*words)))
        words++;
    return *words != NULL;
}

/* The base that a prefix says, as Go's strconv has it; *digits is moved behind it. */
static int base_of(const char **digits)
{
    static const char letters[] = "xXoObB";
    static const int bases[] = { 16, 16, 8, 8, 2, 2 };
    const char *letter;

    if ((*digits)[0] != '0' || (*digits)[1] == '\0')
        return 10;
    letter = strchr(letters, (*digits)[1]);
    *digits += letter != NULL ? 2 : 1;
    return letter != NULL ? bases[letter - letters] : 8;
}

static bool are_digits(const char *text, int base)
{
    const char *allowed = base == 16 ? "0123456789abcdefABCDEF" : "0123456789";

    return text[0] != '\0' && strspn(text, allowed) == strlen(text) &&
           (base >= 10 || strpbrk(text, base == 8 ? "89" : "23456789") == NULL);
}

static bool read_integer(const char *text, char ret_number[JSON_NUMBER_SIZE])
{
    bool is_negative = text[0] == '-';
    const char *digits = text + (is_negative || text[0] == '+' ? 1 : 0);
    int base = base_of(&digits);
    unsigned long long number;

    if (!are_digits(digits, base))
        return false;
    errno = 0;
    number = strtoull(digits, NULL, base);
    if (errno != 0 || (is_negative && number > (unsigned long long)INT64_MAX + 1))
        return false;
    snprintf(ret_number, JSON_NUMBER_SIZE, "%s%llu", is_negative && number != 0 ? "-" : "", number);
    return true;
}

/* In the fewest digits that say the same number. */
static bool read_decimal(const char *text, char ret_number[JSON_NUMBER_SIZE])
{
    char *end;
    double number = strtod(text, &end);

    /* No blanks, nothing hexadecimal, no "inf". */
    if (strspn(text, "+-.0123456789eE") != strlen(text) || end == text || *end != '\0' ||
        !isfinite(number))
        return false;
    for (int digits = EXACT_DIGITS; digits <= 17; digits++) {
        snprintf(ret_number, JSON_NUMBER_SIZE, "%.*g", digits, number);
        if (strtod(ret_number, NULL) == number)
            break;
    }
    /* Whole numbers have no exponent in JSON as Go writes it. */
    if (fabs(number) < 1e21 && number == floor(number))
        snprintf(ret_number, JSON_NUMBER_SIZE, "%.0f", number == 0 ? 0 : number);
    return true;
}

static bool read_number(struct kinf_str text, char ret_number[JSON_NUMBER_SIZE])
{
    char plain[NUMBER_SIZE];
    size_t len = 0;

    if (text.len >= sizeof plain || strchr("+-.0123456789", text.bytes[0]) == NULL)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.bytes[i] != '_')
            plain[len++] = text.bytes[i];
    }
    plain[len] = '\0';
    return read_integer(plain, ret_number) || read_decimal(plain, ret_number);
}

static void read_scalar(const struct kinf__yaml_node *node, struct scalar *scalar)
{
    bool is_true;

    scalar->type = SCALAR_TEXT;
    scalar->text = node->text.bytes;
    if (node->is_quoted)
        return;
    if (kinf__yaml_is_old_bool(node, &is_true)) {
        scalar->type = SCALAR_BOOL;
        scalar->text = is_true ? "true" : "false";
    } else if (is_one_of(node->text, nulls)) {
        scalar->type = SCALAR_NULL;
    } else if (is_one_of(node->text, infinities)) {
        scalar->type = SCALAR_INFINITE;
    } else if (read_number(node->text, scalar->number)) {
        scalar->type = SCALAR_NUMBER;
        scalar->text = scalar->number;
    }
}

/* --- trees --- */

/* Where conversion is. */
struct reading {
    const struct kinf__yaml *yaml;
    struct kinf_error *err;
};

static int convert(const struct reading *reading, const struct kinf__yaml_node *node,
                   struct cJSON **ret_tree);

static struct cJSON *new_number(const char *number)
{
    size_t len = strlen(number);

    if (strspn(number, "-0123456789") == len && len <= EXACT_DIGITS)
        return cJSON_CreateNumber(strtod(number, NULL));
    return cJSON_CreateRaw(number);
}

static int convert_scalar(const struct reading *reading, const struct kinf__yaml_node *node,
                          struct cJSON **ret_tree)
{
    struct scalar scalar;

    read_scalar(node, &scalar);
    switch (scalar.type) {
    case SCALAR_NULL:
        *ret_tree = cJSON_CreateNull();
        break;
    case SCALAR_BOOL:
        *ret_tree = cJSON_CreateBool(scalar.text[0] == 't');
        break;
    case SCALAR_NUMBER:
        *ret_tree = new_number(scalar.number);
        break;
    case SCALAR_INFINITE:
        return kinf__yaml_error(reading->err, KINF_ERR_PARSE, reading->yaml, node,
                                "JSON has no such number");
    case SCALAR_TEXT:
        *ret_tree = cJSON_CreateString(node->text.bytes);
        break;
    }
    return *ret_tree != NULL ? 0 : kinf__error_no_memory(reading->err);
}

static int add_pair(const struct reading *reading, const struct kinf__yaml_node *key,
                    const struct kinf__yaml_node *value, struct cJSON *object)
{
    struct cJSON *member = NULL;
    struct scalar scalar;
    int failed;

    read_scalar(key, &scalar);
    if (scalar.type == SCALAR_NULL)
        return kinf__yaml_error(reading->err, KINF_ERR_PARSE, reading->yaml, key,
                                "null cannot be a key");
    failed = convert(reading, value, &member);
    if (failed < 0)
        return failed;
    return kinf__doc_append_member(object, scalar.text, member) < 0
               ? kinf__error_no_memory(reading->err)
               : 0;
}

static int add_element(const struct reading *reading, const struct kinf__yaml_node *node,
                       struct cJSON *array)
{
    struct cJSON *element = NULL;
    int failed = convert(reading, node, &element);

    if (failed < 0)
        return failed;
    return kinf__doc_append(array, element) < 0 ? kinf__error_no_memory(reading->err) : 0;
}

static int convert(const struct reading *reading, const struct kinf__yaml_node *node,
                   struct cJSON **ret_tree)
{
    bool is_mapping = node->type == KINF__YAML_MAPPING;
    KINF__AUTO_DOC *tree = NULL;
    int failed = 0;

    if (node->type == KINF__YAML_SCALAR)
        return convert_scalar(reading, node, ret_tree);
    tree = is_mapping ? cJSON_CreateObject() : cJSON_CreateArray();
    if (tree == NULL)
        return kinf__error_no_memory(reading->err);
    for (size_t i = 0; failed == 0 && i < node->n_items; i++)
        failed = is_mapping ? add_pair(reading, node->items[2 * i], node->items[2 * i + 1], tree)
                            : add_element(reading, node->items[i], tree);
    if (failed == 0)
        *ret_tree = KINF__TAKE(tree);
    return failed;
}

/* --- objects --- */

/* One text, and whom its objects go to. */
struct handing {
    kinf__manifest_take_cb *take;
    void *ctx;
    const char *file;
    struct kinf_error *err;
    unsigned line;   /* of the document */
    bool is_list;    /* it has items... */
    size_t n_handed; /* ...so many so far */
};

static int hand_over(struct handing *handing, struct cJSON *take_tree);

/* "Pod" of a "PodList", "" of a "List"; NULL: it is no list. */
static const char *item_kind_of(const struct cJSON *object, char *kind, size_t size)
{
    const char *text = kinf__doc_text(object, "kind", NULL);
    size_t len = strlen(text);

    if (len < 4 || len - 4 >= size || strcmp(text + len - 4, "List") != 0 ||
        !cJSON_IsArray(kinf__doc_get(object, "items")))
        return NULL;
    memcpy(kind, text, len - 4);
    kind[len - 4] = '\0';
    return kind;
}

/* The server leaves out what all items have in common. */
static int complete_item(struct cJSON *item, const char *kind, const char *api_version)
{
    if (kind[0] == '\0' || !cJSON_IsObject(item) || kinf__doc_get(item, "kind") != NULL)
        return 0;
    if (kinf__doc_set_text(item, "kind", kind) < 0 ||
        kinf__doc_set_text(item, "apiVersion", api_version) < 0)
        return KINF_ERR_NO_MEMORY;
    return 0;
}

static int hand_over_items(struct handing *handing, struct cJSON *items, const char *kind,
                           const char *api_version)
{
    struct cJSON *item;

    handing->is_list = true;
    while ((item = cJSON_DetachItemFromArray(items, 0)) != NULL) {
        int failed;

        if (complete_item(item, kind, api_version) < 0) {
            cJSON_Delete(item);
            return kinf__error_no_memory(handing->err);
        }
        failed = hand_over(handing, item);
        if (failed < 0)
            return failed;
    }
    return 0;
}

static int hand_over_object(struct handing *handing, struct cJSON *take_object)
{
    KINF__AUTO_BUFFER where = KINF__BUFFER_INIT;
    int failed = kinf__buffer_printf(&where, "%s:%u", handing->file, handing->line);

    handing->n_handed++;
    if (failed == 0 && handing->is_list)
        failed = kinf__buffer_printf(&where, ": item %zu", handing->n_handed);
    if (failed < 0 || kinf__buffer_cstr(&where) == NULL) {
        cJSON_Delete(take_object);
        return kinf__error_no_memory(handing->err);
    }
    return handing->take(take_object, where.bytes, handing->ctx);
}

/* Lists in lists are taken apart, too. */
static int hand_over(struct handing *handing, struct cJSON *take_tree)
{
    KINF__AUTO_DOC *tree = take_tree;
    const char *kind;
    char room[256];

    if (cJSON_IsNull(tree))
        return 0;
    if (cJSON_IsArray(tree))
        return hand_over_items(handing, tree, "", "");
    kind = item_kind_of(tree, room, sizeof room);
    if (kind != NULL)
        return hand_over_items(handing, kinf__doc_get(tree, "items"), kind,
                               kinf__doc_text(tree, "apiVersion", NULL));
    if (cJSON_IsObject(tree))
        return hand_over_object(handing, KINF__TAKE(tree));
    return kinf__error_set(handing->err, KINF_ERR_PARSE, "%s:%u: an object is expected",
                           handing->file, handing->line);
}

static int begin_document(struct handing *handing, unsigned line, struct cJSON *take_tree)
{
    handing->line = line;
    handing->is_list = false;
    handing->n_handed = 0;
    return hand_over(handing, take_tree);
}

/* --- texts --- */

static void skip_blanks(struct kinf_str *text)
{
    while (text->len != 0 && memchr(" \t\r\n", text->bytes[0], 4) != NULL) {
        text->bytes++;
        text->len--;
    }
}

/* The next object or array of JSON; false: there is none, and *rest is empty if it is the end. */
static bool next_json(struct kinf_str *rest, struct kinf_str *ret_value)
{
    size_t len;

    skip_blanks(rest);
    if (rest->len == 0 || (rest->bytes[0] != '{' && rest->bytes[0] != '[') ||
        kinf__json_scan(*rest, true, &len) < 0)
        return false;
    *ret_value = (struct kinf_str){ rest->bytes, len };
    rest->bytes += len;
    rest->len -= len;
    return true;
}

static bool is_json(struct kinf_str text)
{
    struct kinf_str rest = text, value;
    bool is_any = false;

    while (next_json(&rest, &value))
        is_any = true;
    return is_any && rest.len == 0;
}

static int read_json(struct kinf_str text, struct handing *handing)
{
    struct kinf_str rest = text, value;
    const char *counted = text.bytes;
    unsigned line = 1;
    int failed = 0;

    while (failed == 0 && next_json(&rest, &value)) {
        struct cJSON *tree;

        for (; counted < value.bytes; counted++)
            line += *counted == '\n' ? 1 : 0;
        failed = kinf__doc_parse(value, &tree, handing->err);
        if (failed < 0)
            kinf__error_prefix(handing->err, "%s:%u", handing->file, line);
        else
            failed = begin_document(handing, line, tree);
    }
    return failed;
}

static int take_document(const struct kinf__yaml *yaml, void *ctx)
{
    struct handing *handing = ctx;
    const struct reading reading = { yaml, handing->err };
    const struct kinf__yaml_node *root = kinf__yaml_root(yaml);
    struct cJSON *tree = NULL;
    int failed = convert(&reading, root, &tree);

    return failed < 0 ? failed : begin_document(handing, root->line, tree);
}

int kinf__manifest_read(struct kinf_str text, const char *file, kinf__manifest_take_cb *take,
                        void *ctx, struct kinf_error *err)
{
    struct handing handing = { .take = take, .ctx = ctx, .file = file, .err = err };

    /* What only looks like JSON may be YAML, whose parser can say where it is not. */
    return is_json(text) ? read_json(text, &handing)
                         : kinf__yaml_parse_all(text, file, false, take_document, &handing, err);
}

struct body {
    struct cJSON *tree;
    struct kinf_error *err;
};

static int take_body(const struct kinf__yaml *yaml, void *ctx)
{
    struct body *body = ctx;
    const struct reading reading = { yaml, body->err };
    int failed = convert(&reading, kinf__yaml_root(yaml), &body->tree);

    return failed < 0 ? failed : 1;
}

int kinf__manifest_parse_one(struct kinf_str text, struct cJSON **ret_tree, struct kinf_error *err)
{
    struct body body = { NULL, err };
    struct kinf_str rest = text, value;
    bool is_whole = next_json(&rest, &value);
    int failed;

    skip_blanks(&rest);
    if (is_whole && rest.len == 0)
        return kinf__doc_parse(value, ret_tree, err);
    failed = kinf__yaml_parse_all(text, "yaml", true, take_body, &body, err);
    if (failed < 0)
        return failed;
    if (body.tree == NULL && (body.tree = cJSON_CreateNull()) == NULL)
        return kinf__error_no_memory(err);
    *ret_tree = body.tree;
    return 0;
}
