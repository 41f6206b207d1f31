/*
 * Label selectors: the parser. Neighbours: listers and served lists ask whether an object matches,
 * which label_rules.c knows; access.c finds the labels. The grammar is labels.Parse's: what it
 * accepts is accepted here, so that a selector means the same to this library and to the API server.
 * Invariant: keys and values are views into the selector's own copy of the text.
 */
#include <kinformer/selector.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/misuse.h"
#include "object/label_rules.h"
#include "object/object.h"

enum token_type {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_EQUALS,        /* = */
    TOKEN_DOUBLE_EQUALS, /* == */
    TOKEN_NOT_EQUALS,    /* != */
    TOKEN_NOT,           /* ! */
    TOKEN_GREATER,       /* > */
    TOKEN_LESS,          /* < */
    TOKEN_COMMA,
    TOKEN_OPEN,
    TOKEN_CLOSE,
};

struct token {
    enum token_type type;
    struct kinf_str text;
};

struct kinf_label_selector {
    char *text;
    struct kinf__label_rules rules;
};

struct parser {
    const char *at;     /* behind the current token */
    struct token token; /* the current one */
    const char *text;
    struct kinf__label_requirement *requirements;
    size_t n_requirements;
    struct kinf_str *values; /* of all requirements, one behind the other */
    size_t n_values;
    struct kinf_error *err;
};

static const char white_space[] = " \t\r\n";
static const char word_ends[] = " \t\r\n=!(),><";

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A label's name or value: begins and ends with a letter or digit. */
static bool is_name(struct kinf_str text)
{
    if (text.len == 0 || text.len > KINF__LABEL_NAME_MAX || !is_alphanumeric(text.bytes[0]) ||
        !is_alphanumeric(text.bytes[text.len - 1]))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!is_alphanumeric(text.bytes[i]) && strchr("-_.", text.bytes[i]) == NULL)
            return false;
    }
    return true;
}

/* Lower-case labels joined by dots, each beginning and ending with a letter or digit. */
static bool is_dns_subdomain(struct kinf_str text)
{
    char before = '.';

    if (text.len == 0 || text.len > KINF__LABEL_PREFIX_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.bytes[i];
        bool is_inner = c == '-' || c == '.';

        if (!is_inner && (!is_alphanumeric(c) || (c >= 'A' && c <= 'Z')))
            return false;
        if ((is_inner && before == '.') || (c == '.' && before == '-'))
            return false;
        before = c;
    }
    return is_alphanumeric(before);
}

static bool is_key(struct kinf_str text)
{
    const char *slash = memchr(text.bytes, '/', text.len);
    struct kinf_str prefix = { text.bytes, 0 }, name = text;

    if (slash != NULL) {
        prefix.len = (size_t)(slash - text.bytes);
        name = (struct kinf_str){ slash + 1, text.len - prefix.len - 1 };
    }
    return (slash == NULL || is_dns_subdomain(prefix)) && is_name(name);
}

static bool is_value(struct kinf_str text)
{
    return text.len == 0 || is_name(text);
}

static enum token_type special_token(const char *at, size_t *ret_len)
{
    *ret_len = 1;
    switch (*at) {
    case '(':
        return TOKEN_OPEN;
    case ')':
        return TOKEN_CLOSE;
    case ',':
        return TOKEN_COMMA;
    case '>':
        return TOKEN_GREATER;
    case '<':
        return TOKEN_LESS;
    }
    if (at[1] == '=') {
        *ret_len = 2;
        return *at == '!' ? TOKEN_NOT_EQUALS : TOKEN_DOUBLE_EQUALS;
    }
    return *at == '!' ? TOKEN_NOT : TOKEN_EQUALS;
}

static void next_token(struct parser *parser)
{
    const char *at = parser->at + strspn(parser->at, white_space);
    size_t len = strcspn(at, word_ends);
    enum token_type type = TOKEN_WORD;

    if (*at == '\0')
        type = TOKEN_END;
    else if (len == 0)
        type = special_token(at, &len);
    parser->token = (struct token){ type, { at, len } };
    parser->at = at + len;
}

static int fail(struct parser *parser, const struct token *token, const char *expected)
{
    size_t column = (size_t)(token->text.bytes - parser->text) + 1;

    if (token->type == TOKEN_END)
        return kinf__error_set(parser->err, KINF_ERR_PARSE,
                               "label selector column %zu: it ends, expected %s", column, expected);
    return kinf__error_set(
        parser->err, KINF_ERR_PARSE, "label selector column %zu: found '%.*s', expected %s", column,
        (int)(token->text.len < 100 ? token->text.len : 100), token->text.bytes, expected);
}

static int add_value(struct parser *parser, struct kinf__label_requirement *requirement,
                     struct kinf_str value)
{
    if (!is_value(value))
        return fail(
            parser, &parser->token,
            "a label value: at most 63 letters, digits, '-', '_', '.', the first and last a letter "
            "or digit");
    parser->values[parser->n_values++] = value;
    requirement->n_values++;
    return 0;
}

/* "(a,b)"; any element may be missing and is then the empty value. */
static int parse_values(struct parser *parser, struct kinf__label_requirement *requirement)
{
    int r = 0;

    if (parser->token.type != TOKEN_OPEN)
        return fail(parser, &parser->token, "'('");
    do {
        struct kinf_str value = { parser->at, 0 };

        next_token(parser);
        if (parser->token.type == TOKEN_WORD)
            value = parser->token.text;
        r = add_value(parser, requirement, value);
        if (r == 0 && parser->token.type == TOKEN_WORD)
            next_token(parser);
    } while (r == 0 && parser->token.type == TOKEN_COMMA);
    if (r < 0)
        return r;
    if (parser->token.type != TOKEN_CLOSE)
        return fail(parser, &parser->token, "',' or ')'");
    next_token(parser);
    return 0;
}

/* The value behind =, ==, !=, > and <; none is the empty value. */
static int parse_value(struct parser *parser, struct kinf__label_requirement *requirement)
{
    struct kinf_str value = { parser->token.text.bytes, 0 };
    bool needs_number =
        requirement->relation == KINF__LABEL_GREATER || requirement->relation == KINF__LABEL_LESS;
    int r;

    if (parser->token.type == TOKEN_WORD)
        value = parser->token.text;
    else if (parser->token.type != TOKEN_END && parser->token.type != TOKEN_COMMA)
        return fail(parser, &parser->token, "a label value");
    r = add_value(parser, requirement, value);
    if (r == 0 && needs_number &&
        !kinf__label_read_int(value.bytes, value.len, &requirement->number))
        r = fail(parser, &parser->token, "an integer");
    if (r == 0 && parser->token.type == TOKEN_WORD)
        next_token(parser);
    return r;
}

static bool take_relation(struct parser *parser, enum kinf__label_relation *ret_relation)
{
    switch (parser->token.type) {
    case TOKEN_EQUALS:
    case TOKEN_DOUBLE_EQUALS:
        *ret_relation = KINF__LABEL_IN;
        break;
    case TOKEN_NOT_EQUALS:
        *ret_relation = KINF__LABEL_NOT_IN;
        break;
    case TOKEN_GREATER:
        *ret_relation = KINF__LABEL_GREATER;
        break;
    case TOKEN_LESS:
        *ret_relation = KINF__LABEL_LESS;
        break;
    default:
        return false;
    }
    next_token(parser);
    return true;
}

static bool take_word(struct parser *parser, const char *word)
{
    if (parser->token.type != TOKEN_WORD ||
        !kinf_str_equal(parser->token.text, kinf_str_from(word)))
        return false;
    next_token(parser);
    return true;
}

static int parse_relation_and_values(struct parser *parser,
                                     struct kinf__label_requirement *requirement)
{
    if (take_relation(parser, &requirement->relation))
        return parse_value(parser, requirement);
    if (take_word(parser, "in"))
        requirement->relation = KINF__LABEL_IN;
    else if (take_word(parser, "notin"))
        requirement->relation = KINF__LABEL_NOT_IN;
    else
        return fail(parser, &parser->token, "one of = == != > < in notin");
    return parse_values(parser, requirement);
}

static int parse_requirement(struct parser *parser)
{
    struct kinf__label_requirement *requirement = &parser->requirements[parser->n_requirements++];
    bool is_negated = parser->token.type == TOKEN_NOT;

    if (is_negated)
        next_token(parser);
    if (parser->token.type != TOKEN_WORD)
        return fail(parser, &parser->token, is_negated ? "a label key" : "a label key or '!'");
    if (!is_key(parser->token.text))
        return fail(
            parser, &parser->token,
            "a label key: a name of at most 63 letters, digits, '-', '_', '.', the first and last "
            "a letter or digit, and before it perhaps a DNS subdomain and '/'");
    requirement->key = parser->token.text;
    requirement->values = parser->values + parser->n_values;
    requirement->relation = is_negated ? KINF__LABEL_NOT_EXISTS : KINF__LABEL_EXISTS;
    next_token(parser);
    if (is_negated || parser->token.type == TOKEN_END || parser->token.type == TOKEN_COMMA)
        return 0;
    return parse_relation_and_values(parser, requirement);
}

static int parse(struct parser *parser)
{
    int r;

    next_token(parser);
    if (parser->token.type == TOKEN_END)
        return 0;
    for (;;) {
        r = parse_requirement(parser);
        if (r < 0 || parser->token.type == TOKEN_END)
            return r;
        if (parser->token.type != TOKEN_COMMA)
            return fail(parser, &parser->token, "',' or the end");
        next_token(parser);
    }
}

/* Room for all requirements and values: between two commas stands at most one of either. */
static int make_room(const char *text, struct parser *parser, struct kinf_label_selector *selector)
{
    size_t n_max = 1;

    for (const char *at = text; (at = strchr(at, ',')) != NULL; at++)
        n_max++;
    selector->text = strdup(text);
    parser->requirements = calloc(n_max, sizeof *parser->requirements);
    parser->values = calloc(n_max, sizeof *parser->values);
    parser->at = parser->text = selector->text;
    return selector->text != NULL && parser->requirements != NULL && parser->values != NULL
               ? 0
               : kinf__error_no_memory(parser->err);
}

int kinf_label_selector_parse(const char *text, struct kinf_label_selector **ret_selector,
                              struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, text, ret_selector);

    struct kinf_label_selector *selector = calloc(1, sizeof *selector);
    struct parser parser = { .err = err };
    int r;

    if (selector == NULL)
        return kinf__error_no_memory(err);
    r = make_room(text, &parser, selector);
    if (r == 0)
        r = parse(&parser);
    if (r == 0 &&
        kinf__label_rules_init(&selector->rules, parser.requirements, parser.n_requirements) < 0)
        r = kinf__error_no_memory(err);
    if (r == 0)
        *ret_selector = selector;
    else
        kinf_label_selector_free(selector);
    free(parser.requirements);
    free(parser.values);
    return r;
}

void kinf_label_selector_free(struct kinf_label_selector *selector)
{
    if (selector == NULL)
        return;
    kinf__label_rules_release(&selector->rules);
    free(selector->text);
    free(selector);
}

bool kinf_label_selector_matches(const struct kinf_label_selector *selector,
                                 const struct kinf_object *object)
{
    if (kinf_label_selector_is_empty(selector))
        return true;
    KINF__REFUSE_NULL(NULL, false, object);
    return kinf__label_rules_match(&selector->rules, kinf__object_labels(object));
}

bool kinf_label_selector_is_empty(const struct kinf_label_selector *selector)
{
    return selector == NULL || selector->rules.n_rules == 0;
}
