/*
 * A second reading of a label selector that kinf_label_selector_parse() refused, only to find the
 * words in which the API server would: scripts compare them. Neighbours: request.c.
 */
#include "serve/label_fault.h"

#include <stdio.h>
#include <string.h>

#include <kinformer/str.h>

#include "serve/names.h"
#include "serve/query.h"

#define SHOWN_BYTES  256 /* of a word of the client's */
#define FORMED_BYTES 384 /* more than any key or value of a good form has */

struct reading {
    const char *at;
    struct kinf_str token; /* empty at the end */
    struct kinf_str key;   /* of the requirement */
    char *words;
    size_t size;
};

static const char operators[] = "=!(),><";

static bool is_operator(struct kinf_str token)
{
    return token.len != 0 && strchr(operators, token.bytes[0]) != NULL;
}

static bool is(const struct reading *reading, const char *text)
{
    return kinf_str_equal(reading->token, kinf_str_from(text));
}

static bool is_word(const struct reading *reading)
{
    return reading->token.len != 0 && !is_operator(reading->token);
}

/* A word, or the longest of = == != and the single characters. */
static void advance(struct reading *reading)
{
    const char *at = reading->at + strspn(reading->at, " \t\r\n");
    size_t len;

    if (*at == '\0')
        len = 0;
    else if ((*at == '=' || *at == '!') && at[1] == '=')
        len = 2;
    else if (strchr(operators, *at) != NULL)
        len = 1;
    else
        len = strcspn(at, "=!(),>< \t\r\n");
    reading->token = (struct kinf_str){ at, len };
    reading->at = at + len;
}

/* "prefix" found 'token', expected: what */
static bool fault(const struct reading *reading, const char *prefix, const char *expected)
{
    size_t len = reading->token.len < SHOWN_BYTES ? reading->token.len : SHOWN_BYTES;

    snprintf(reading->words, reading->size, "%sfound '%.*s'%s", prefix, (int)len,
             reading->token.bytes, expected);
    return true;
}

static const char requirement[] = "unable to parse requirement: ";

/* Returns false if the word is of this form. */
static bool fault_of_form(const struct reading *reading, const char *place, struct kinf_str word,
                          enum kinf__name_form form)
{
    char text[FORMED_BYTES], quoted[4 * FORMED_BYTES], why[KINF__NAME_FAULT_SIZE];

    snprintf(text, sizeof text, "%.*s", (int)word.len, word.bytes);
    if (kinf__name_is(form, text, why))
        return false;
    snprintf(reading->words, reading->size, "%s%s: Invalid value: %s: %s", requirement, place,
             kinf__query_quote(text, quoted, sizeof quoted), why);
    return true;
}

/* Of the value that has `index` among the values of the requirement, which the server has sorted. */
static bool fault_of_value(const struct reading *reading, struct kinf_str value, size_t index)
{
    char place[FORMED_BYTES + 32];

    snprintf(place, sizeof place, "values[%zu][%.*s]", index, (int)reading->key.len,
             reading->key.bytes);
    return fault_of_form(reading, place, value, KINF__NAME_LABEL_VALUE);
}

static size_t count_smaller(struct reading reading, struct kinf_str value)
{
    size_t n = 0;

    do {
        struct kinf_str other;

        advance(&reading);
        other = is_word(&reading) ? reading.token : KINF_STR("");
        n += kinf_str_compare(other, value) < 0;
        if (other.len != 0)
            advance(&reading);
    } while (is(&reading, ","));
    return n;
}

/* Behind `(`. Of several bad values the server tells all, this the first in order. */
static bool find_in_values(struct reading *reading)
{
    const struct reading begin = *reading;
    struct kinf_str bad = { NULL, 0 };

    do {
        bool has_value;

        advance(reading);
        has_value = is_word(reading);
        if (has_value) {
            if ((bad.bytes == NULL || kinf_str_compare(reading->token, bad) < 0) &&
                fault_of_value(reading, reading->token, 0))
                bad = reading->token;
            advance(reading);
        }
        if (!is(reading, ",") && !is(reading, ")"))
            return fault(reading, requirement,
                         has_value ? ", expected: ',' or ')'"
                                   : ", expected: ',', ')' or identifier");
    } while (is(reading, ","));
    advance(reading);
    return bad.bytes != NULL && fault_of_value(reading, bad, count_smaller(begin, bad));
}

static bool fault_of_number(const struct reading *reading, struct kinf_str value)
{
    char text[FORMED_BYTES], quoted[4 * FORMED_BYTES];
    int64_t number;

    snprintf(text, sizeof text, "%.*s", (int)value.len, value.bytes);
    if (kinf__query_parse_int(text, &number) == NULL)
        return false;
    snprintf(reading->words, reading->size,
             "%svalues[0]: Invalid value: %s: for 'Gt', 'Lt' operators, the value must be an "
             "integer",
             requirement, kinf__query_quote(text, quoted, sizeof quoted));
    return true;
}

static bool find_in_value(struct reading *reading, bool is_number)
{
    advance(reading);
    if (!is_word(reading) && reading->token.len != 0 && !is(reading, ","))
        return fault(reading, requirement, ", expected: identifier");
    if (is_number && fault_of_number(reading, is_word(reading) ? reading->token : KINF_STR("")))
        return true;
    if (!is_word(reading))
        return false;
    if (fault_of_value(reading, reading->token, 0))
        return true;
    advance(reading);
    return false;
}

/* Behind a key. */
static bool find_in_relation(struct reading *reading)
{
    if (is(reading, ",") || reading->token.len == 0)
        return false;
    if (is(reading, "in") || is(reading, "notin")) {
        advance(reading);
        return is(reading, "(") ? find_in_values(reading)
                                : fault(reading, requirement, " expected: '('");
    }
    if (is(reading, "=") || is(reading, "==") || is(reading, "!="))
        return find_in_value(reading, false);
    if (is(reading, ">") || is(reading, "<"))
        return find_in_value(reading, true);
    return fault(reading, requirement, ", expected: in, notin, =, ==, !=, gt, lt");
}

static bool find_in_requirement(struct reading *reading)
{
    bool is_negated = is(reading, "!");

    if (is_negated)
        advance(reading);
    if (!is_word(reading))
        return fault(reading, requirement, ", expected: identifier");
    reading->key = reading->token;
    if (fault_of_form(reading, "<nil>", reading->key, KINF__NAME_QUALIFIED))
        return true;
    advance(reading);
    return !is_negated && find_in_relation(reading);
}

bool kinf__label_fault(const char *selector, char *ret_words, size_t size)
{
    struct reading reading = { .at = selector, .words = ret_words, .size = size };

    advance(&reading);
    while (reading.token.len != 0) {
        if (!is_word(&reading) && !is(&reading, "!"))
            return fault(&reading, "", ", expected: !, identifier, or 'end of string'");
        if (find_in_requirement(&reading))
            return true;
        if (reading.token.len == 0)
            return false;
        if (!is(&reading, ","))
            return fault(&reading, "", ", expected: ',' or 'end of string'");
        advance(&reading);
        if (!is_word(&reading) && !is(&reading, "!"))
            return fault(&reading, "", ", expected: identifier after ','");
    }
    return false;
}
