/*
 * What label requirements mean, in a form that reads an object's labels once, however many
 * requirements there are: all that is said of one key becomes one rule.
 *
 * Threads: any thread once they are made; they never change.
 */
#ifndef KINF_OBJECT_LABEL_RULES_H
#define KINF_OBJECT_LABEL_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "json/scan.h"

/* What the API server allows: validation.IsQualifiedName, IsDNS1123Subdomain, IsValidLabelValue. */
#define KINF__LABEL_NAME_MAX   63
#define KINF__LABEL_PREFIX_MAX 253

enum kinf__label_relation {
    KINF__LABEL_EXISTS,
    KINF__LABEL_NOT_EXISTS,
    KINF__LABEL_IN,
    KINF__LABEL_NOT_IN,
    KINF__LABEL_GREATER,
    KINF__LABEL_LESS,
};

struct kinf__label_requirement {
    enum kinf__label_relation relation;
    struct kinf_str key;
    struct kinf_str *values;
    size_t n_values;
    int64_t number; /* the value of KINF__LABEL_GREATER and KINF__LABEL_LESS */
};

struct kinf__label_rule;

struct kinf__label_rules {
    struct kinf__label_rule *rules; /* in order of keys, each once */
    size_t n_rules;
    size_t n_required;       /* rules whose key must exist */
    struct kinf_str *values; /* of each rule in two sorted runs */
    struct kinf_str wanted;  /* a value without which nothing matches; "": there is none */
};

/* Takes the requirements, which it reorders; their texts must outlive the rules. Errors:
 * KINF_ERR_NO_MEMORY; also then it is to be released. */
KINF_MUST_CHECK int kinf__label_rules_init(struct kinf__label_rules *rules,
                                           struct kinf__label_requirement *requirements,
                                           size_t n_requirements);
void kinf__label_rules_release(struct kinf__label_rules *rules);

/* `labels`: any value; what is no object has no labels. */
bool kinf__label_rules_match(const struct kinf__label_rules *rules, struct kinf__json_value labels);

/* As strconv.ParseInt(text, 10, 64). `text` has a byte behind it that is no digit. */
bool kinf__label_read_int(const char *text, size_t len, int64_t *ret_number);

#endif
