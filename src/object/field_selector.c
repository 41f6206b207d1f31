/*
 * Field selectors: parser and match. Neighbours: the same as label_selector.c's. The grammar is
 * fields.ParseSelector's, with the paths of kinformer/path.h in place of the API server's short
 * lists of fields: blanks count, empty terms do not.
 */
#include <kinformer/selector.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/misuse.h"
#include "json/path.h"
#include "object/object.h"

enum field {
    FIELD_PATH,
    FIELD_NAME, /* these two are in the key */
    FIELD_NAMESPACE,
};

struct term {
    enum field field;
    struct kinf_path *path;
    bool is_equal;         /* or not equal */
    struct kinf_str value; /* without escapes, in the selector's text */
};

struct kinf_field_selector {
    char *text; /* values are unescaped in place */
    struct term *terms;
    size_t n_terms;
};

struct parser {
    char *at;
    struct kinf_field_selector *selector;
    struct kinf_error *err;
};

static int fail(const struct parser *parser, const char *at, const char *reason)
{
    return kinf__error_set(parser->err, KINF_ERR_PARSE, "field selector column %zu: %s",
                           (size_t)(at - parser->selector->text) + 1, reason);
}

/* The end of the path at `at`: its operator, a comma or NUL, but none of them inside a quoted key.
 */
static char *path_end(char *at)
{
    bool is_quoted = false;

    for (; *at != '\0'; at++) {
        if (*at == '"')
            is_quoted = !is_quoted;
        else if (is_quoted && *at == '\\' && at[1] != '\0')
            at++;
        else if (!is_quoted && (*at == ',' || *at == '=' || (*at == '!' && at[1] == '=')))
            break;
    }
    return at;
}

static int parse_path(struct parser *parser, const char *start, struct term *term)
{
    int r = kinf_path_parse(start, &term->path, parser->err);

    if (r < 0) {
        kinf__error_prefix(parser->err, "field selector, path at column %zu",
                           (size_t)(start - parser->selector->text) + 1);
        return r;
    }
    if (strcmp(start, "metadata.name") == 0)
        term->field = FIELD_NAME;
    else if (strcmp(start, "metadata.namespace") == 0)
        term->field = FIELD_NAMESPACE;
    return 0;
}

/* Unescapes the value in place, up to a comma or the end. */
static int parse_value(struct parser *parser, struct term *term)
{
    char *out = parser->at;

    term->value.bytes = out;
    for (; *parser->at != '\0' && *parser->at != ','; parser->at++) {
        if (*parser->at == '=')
            return fail(parser, parser->at, "'=' in a value needs a '\\' in front");
        if (*parser->at == '\\') {
            parser->at++;
            if (*parser->at == '\0' || strchr("\\,=", *parser->at) == NULL)
                return fail(parser, parser->at - 1,
                            "'\\' stands only in front of '\\', ',' and '='");
        }
        *out++ = *parser->at;
    }
    term->value.len = (size_t)(out - term->value.bytes);
    return 0;
}

static int parse_term(struct parser *parser)
{
    struct term *term = &parser->selector->terms[parser->selector->n_terms++];
    char *start = parser->at, *end = path_end(start);
    char operator_start = *end;
    int r;

    if (operator_start != '=' && operator_start != '!')
        return fail(parser, end, "expected one of = == !=");
    term->is_equal = operator_start == '=';
    parser->at = end + (end[1] == '=' ? 2 : 1);
    *end = '\0';
    r = parse_path(parser, start, term);
    return r < 0 ? r : parse_value(parser, term);
}

static int parse(struct parser *parser)
{
    while (*parser->at != '\0') {
        int r = *parser->at != ',' ? parse_term(parser) : 0;

        if (r < 0)
            return r;
        if (*parser->at == ',')
            parser->at++;
    }
    return 0;
}

static struct kinf_field_selector *make_selector(const char *text)
{
    struct kinf_field_selector *selector = calloc(1, sizeof *selector);
    size_t n_max = 1;

    if (selector == NULL)
        return NULL;
    for (const char *at = text; (at = strchr(at, ',')) != NULL; at++)
        n_max++;
    selector->text = strdup(text);
    selector->terms = calloc(n_max, sizeof *selector->terms);
    if (selector->text == NULL || selector->terms == NULL) {
        kinf_field_selector_free(selector);
        return NULL;
    }
    return selector;
}

static bool json_equals(struct kinf__json_value value, struct kinf_str wanted)
{
    switch (value.type) {
    case KINF__JSON_STRING:
        return kinf__json_string_equals(value.raw, wanted);
    case KINF__JSON_NUMBER:
    case KINF__JSON_BOOL:
        return kinf_str_equal(value.raw, wanted);
    case KINF__JSON_NULL:
        return wanted.len == 0;
    case KINF__JSON_ARRAY:
    case KINF__JSON_OBJECT:
        break;
    }
    return false;
}

static bool term_holds(const struct term *term, const struct kinf_object *object,
                       struct kinf_scratch *scratch)
{
    struct kinf__json_value value;
    bool is_equal;
    int r;

    if (term->field == FIELD_NAME)
        is_equal = kinf_str_equal(kinf_str_from(kinf_object_name(object)), term->value);
    else if (term->field == FIELD_NAMESPACE)
        is_equal = kinf_str_equal(kinf_object_namespace(object), term->value);
    else if ((r = kinf__object_lookup_first(object, term->path, scratch, &value)) == 0)
        is_equal = json_equals(value, term->value);
    else if (r == KINF_ERR_NOT_FOUND)
        is_equal = term->value.len == 0;
    else
        return false;
    return is_equal == term->is_equal;
}

int kinf_field_selector_parse(const char *text, struct kinf_field_selector **ret_selector,
                              struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, text, ret_selector);

    struct parser parser = { .selector = make_selector(text), .err = err };
    int r;

    if (parser.selector == NULL)
        return kinf__error_no_memory(err);
    parser.at = parser.selector->text;
    r = parse(&parser);
    if (r < 0) {
        kinf_field_selector_free(parser.selector);
        return r;
    }
    *ret_selector = parser.selector;
    return 0;
}

void kinf_field_selector_free(struct kinf_field_selector *selector)
{
    if (selector == NULL)
        return;
    for (size_t i = 0; i < selector->n_terms; i++)
        kinf_path_free(selector->terms[i].path);
    free(selector->terms);
    free(selector->text);
    free(selector);
}

bool kinf_field_selector_matches(const struct kinf_field_selector *selector,
                                 const struct kinf_object *object)
{
    if (selector == NULL || selector->n_terms == 0)
        return true;
    KINF__REFUSE_NULL(NULL, false, object);

    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;

    for (size_t i = 0; i < selector->n_terms; i++) {
        if (!term_holds(&selector->terms[i], object, &scratch))
            return false;
    }
    return true;
}
