/*
 * Rules of labels. Neighbours: label_selector.c reads them from text. Invariant: rules are sorted by
 * key, and the values of each by what is looked up among them, shorter texts first.
 */
#include "object/label_rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json/cursor.h"

struct kinf__label_rule {
    struct kinf_str key;
    unsigned must_exist : 1;
    unsigned must_not_exist : 1;
    unsigned has_allowed : 1;
    unsigned has_above : 1;
    unsigned has_below : 1;
    uint32_t first_value; /* the allowed ones, behind them the forbidden ones */
    uint32_t n_allowed;
    uint32_t n_forbidden;
    int64_t above;
    int64_t below;
};

static int compare_texts(const void *a, const void *b)
{
    const struct kinf_str *one = a, *other = b;

    if (one->len != other->len)
        return one->len < other->len ? -1 : 1;
    return one->len != 0 ? memcmp(one->bytes, other->bytes, one->len) : 0;
}

static int compare_keys(const void *a, const void *b)
{
    const struct kinf__label_requirement *one = a, *other = b;

    return compare_texts(&one->key, &other->key);
}

static bool has_text(const struct kinf_str *texts, size_t n_texts, struct kinf_str text)
{
    return n_texts != 0 && bsearch(&text, texts, n_texts, sizeof text, compare_texts) != NULL;
}

/* Returns how many are left. */
static size_t sort_texts(struct kinf_str *texts, size_t n_texts)
{
    size_t n_left = 0;

    if (n_texts == 0)
        return 0;
    qsort(texts, n_texts, sizeof texts[0], compare_texts);
    for (size_t i = 0; i < n_texts; i++) {
        if (n_left == 0 || !kinf_str_equal(texts[n_left - 1], texts[i]))
            texts[n_left++] = texts[i];
    }
    return n_left;
}

static void allow(struct kinf__label_rule *rule, struct kinf_str *allowed,
                  const struct kinf__label_requirement *requirement)
{
    size_t n_values = sort_texts(requirement->values, requirement->n_values), n_left = 0;

    for (size_t i = 0; rule->has_allowed && i < rule->n_allowed; i++) {
        if (has_text(requirement->values, n_values, allowed[i]))
            allowed[n_left++] = allowed[i];
    }
    if (!rule->has_allowed) {
        memcpy(allowed, requirement->values, n_values * sizeof allowed[0]);
        n_left = n_values;
    }
    rule->has_allowed = true;
    rule->n_allowed = (uint32_t)n_left;
}

static void bound(struct kinf__label_rule *rule, const struct kinf__label_requirement *requirement)
{
    int64_t number = requirement->number;

    if (requirement->relation == KINF__LABEL_GREATER) {
        rule->above = rule->has_above && rule->above > number ? rule->above : number;
        rule->has_above = true;
    } else if (requirement->relation == KINF__LABEL_LESS) {
        rule->below = rule->has_below && rule->below < number ? rule->below : number;
        rule->has_below = true;
    }
}

/* One rule of `n` requirements on its key; its values go to `values`. */
static void make_rule(struct kinf__label_rule *rule,
                      const struct kinf__label_requirement *requirements, size_t n,
                      struct kinf_str *values)
{
    struct kinf_str *forbidden;

    *rule = (struct kinf__label_rule){ .key = requirements[0].key };
    for (size_t i = 0; i < n; i++) {
        enum kinf__label_relation relation = requirements[i].relation;

        if (relation == KINF__LABEL_NOT_EXISTS)
            rule->must_not_exist = true;
        else if (relation != KINF__LABEL_NOT_IN)
            rule->must_exist = true;
        if (relation == KINF__LABEL_IN)
            allow(rule, values, &requirements[i]);
        bound(rule, &requirements[i]);
    }
    forbidden = values + rule->n_allowed;
    for (size_t i = 0; i < n; i++) {
        if (requirements[i].relation != KINF__LABEL_NOT_IN)
            continue;
        memcpy(forbidden + rule->n_forbidden, requirements[i].values,
               requirements[i].n_values * sizeof values[0]);
        rule->n_forbidden += (uint32_t)requirements[i].n_values;
    }
    rule->n_forbidden = (uint32_t)sort_texts(forbidden, rule->n_forbidden);
}

/* The longest one says most. */
static void want(struct kinf__label_rules *rules, const struct kinf__label_rule *rule)
{
    const struct kinf_str *value = rules->values + rule->first_value;

    if (rule->n_allowed == 1 && value->len > rules->wanted.len)
        rules->wanted = *value;
}

static size_t count_of_key(const struct kinf__label_requirement *requirements, size_t n)
{
    size_t n_same = 1;

    while (n_same < n && kinf_str_equal(requirements[n_same].key, requirements[0].key))
        n_same++;
    return n_same;
}

static void count(const struct kinf__label_requirement *requirements, size_t n, size_t *ret_n_keys,
                  size_t *ret_n_values)
{
    *ret_n_keys = *ret_n_values = 0;
    for (size_t i = 0; i < n; i++) {
        *ret_n_keys += i == 0 || !kinf_str_equal(requirements[i - 1].key, requirements[i].key);
        *ret_n_values += requirements[i].n_values;
    }
}

int kinf__label_rules_init(struct kinf__label_rules *rules,
                           struct kinf__label_requirement *requirements, size_t n_requirements)
{
    size_t n_keys, n_values, n;

    *rules = (struct kinf__label_rules){ .rules = NULL };
    if (n_requirements == 0)
        return 0;
    qsort(requirements, n_requirements, sizeof *requirements, compare_keys);
    count(requirements, n_requirements, &n_keys, &n_values);
    rules->rules = calloc(n_keys, sizeof *rules->rules);
    rules->values = calloc(n_values + 1, sizeof *rules->values);
    if (rules->rules == NULL || rules->values == NULL)
        return KINF_ERR_NO_MEMORY;
    n_values = 0;
    for (size_t i = 0; i < n_requirements; i += n) {
        struct kinf__label_rule *rule = &rules->rules[rules->n_rules++];

        n = count_of_key(requirements + i, n_requirements - i);
        make_rule(rule, requirements + i, n, rules->values + n_values);
        rule->first_value = (uint32_t)n_values;
        n_values += rule->n_allowed + rule->n_forbidden;
        rules->n_required += rule->must_exist;
        want(rules, rule);
    }
    return 0;
}

void kinf__label_rules_release(struct kinf__label_rules *rules)
{
    free(rules->rules);
    free(rules->values);
}

/* --- matching --- */

bool kinf__label_read_int(const char *text, size_t len, int64_t *ret_number)
{
    intmax_t number;
    char *end;

    if (len == 0 || memchr("+-0123456789", text[0], 12) == NULL)
        return false;
    errno = 0;
    number = strtoimax(text, &end, 10);
    if (errno != 0 || end != text + len || number < INT64_MIN || number > INT64_MAX)
        return false;
    *ret_number = number;
    return true;
}

/* What a raw string says; one that does not fit has its length alone, which no key or value has. */
static struct kinf_str decode(struct kinf_str raw, char *room, size_t size)
{
    struct kinf_str inside = { raw.bytes + 1, raw.len - 2 };

    if (memchr(inside.bytes, '\\', inside.len) == NULL)
        return inside;
    return (struct kinf_str){ room, kinf__json_unescape(raw, room, size) };
}

/* Labels that are no integers are on neither side of one. */
static bool is_within(const struct kinf__label_rule *rule, struct kinf_str value)
{
    char text[KINF__LABEL_NAME_MAX + 1];
    int64_t number;

    if (!rule->has_above && !rule->has_below)
        return true;
    if (value.len >= sizeof text)
        return false;
    memcpy(text, value.bytes, value.len);
    text[value.len] = '\0';
    return kinf__label_read_int(text, value.len, &number) &&
           (!rule->has_above || number > rule->above) && (!rule->has_below || number < rule->below);
}

static bool allows(const struct kinf__label_rules *rules, const struct kinf__label_rule *rule,
                   struct kinf__json_value label)
{
    const struct kinf_str *values = rules->values + rule->first_value;
    char room[KINF__LABEL_NAME_MAX];
    /* What is no string cannot be a label; Go reads null as the empty string. */
    struct kinf_str value =
        label.type == KINF__JSON_STRING ? decode(label.raw, room, sizeof room) : kinf_str_from("");

    return !rule->must_not_exist &&
           (!rule->has_allowed || has_text(values, rule->n_allowed, value)) &&
           !has_text(values + rule->n_allowed, rule->n_forbidden, value) && is_within(rule, value);
}

static const struct kinf__label_rule *find_rule(const struct kinf__label_rules *rules,
                                                struct kinf_str key)
{
    size_t low = 0, high = rules->n_rules;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_texts(&key, &rules->rules[middle].key);

        if (order == 0)
            return &rules->rules[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* Most objects that do not match have nowhere what one of their labels would have to say: that is seen
 * in a fraction of the time that reading the labels takes. Escapes could say anything. */
static bool lacks_wanted(const struct kinf__label_rules *rules, struct kinf_str text)
{
    struct kinf_str wanted = rules->wanted;

    if (text.len < wanted.len)
        return true;
    return wanted.len != 0 && memmem(text.bytes, text.len, wanted.bytes, wanted.len) == NULL &&
           memchr(text.bytes, '\\', text.len) == NULL;
}

bool kinf__label_rules_match(const struct kinf__label_rules *rules, struct kinf__json_value labels)
{
    char room[KINF__LABEL_PREFIX_MAX + 1 + KINF__LABEL_NAME_MAX];
    const struct kinf__label_rule *rule = NULL, *before;
    struct kinf__json_cursor cursor;
    size_t n_missing = rules->n_required;
    struct kinf_str raw;

    if (lacks_wanted(rules, labels.raw))
        return false;
    kinf__json_cursor_init(&cursor, labels.raw);
    if (!kinf__json_cursor_enter(&cursor, KINF__JSON_OBJECT))
        return n_missing == 0;
    while (kinf__json_cursor_next(&cursor, KINF__JSON_OBJECT, &raw)) {
        struct kinf__json_value label = kinf__json_cursor_take(&cursor);

        before = rule;
        rule = find_rule(rules, decode(raw, room, sizeof room));
        /* Of a doubled key the first one counts, as everywhere. */
        if (rule == NULL || rule == before)
            continue;
        if (!allows(rules, rule, label))
            return false;
        n_missing -= rule->must_exist;
    }
    return n_missing == 0;
}
