/*
 * Content negotiation. Neighbours: request.c calls it once a route is known. A clause that asks for
 * a form which the endpoint does not have is skipped, as kube-apiserver does.
 */
#include "serve/accept.h"

#include <string.h>
#include <strings.h>

#include <kinformer/str.h>

#include "base/compiler.h"

#define Q_ONE 1000 /* q=1 in thousandths */

struct clause {
    struct kinf_str type; /* "application/json", "*" "/" "*" */
    struct kinf_str as, group, version;
    int q;
};

static struct kinf_str trim(struct kinf_str text)
{
    while (text.len != 0 && (text.bytes[0] == ' ' || text.bytes[0] == '\t')) {
        text.bytes++;
        text.len--;
    }
    while (text.len != 0 && (text.bytes[text.len - 1] == ' ' || text.bytes[text.len - 1] == '\t'))
        text.len--;
    return text;
}

/* Takes what is in front of `separator` off `rest`. */
static struct kinf_str take_until(struct kinf_str *rest, char separator)
{
    const char *found = rest->len != 0 ? memchr(rest->bytes, separator, rest->len) : NULL;
    struct kinf_str part = *rest;

    if (found == NULL) {
        rest->bytes += rest->len;
        rest->len = 0;
        return trim(part);
    }
    part.len = (size_t)(found - part.bytes);
    rest->bytes = found + 1;
    rest->len -= part.len + 1;
    return trim(part);
}

static bool equals(struct kinf_str text, const char *word)
{
    return kinf_str_equal(text, kinf_str_from(word));
}

/* "0.95" as 950; what is no such number counts as 1. */
static int parse_q(struct kinf_str text)
{
    int q = 0, scale = Q_ONE;

    if (text.len == 0 || (text.bytes[0] != '0' && text.bytes[0] != '1'))
        return Q_ONE;
    q = (text.bytes[0] - '0') * Q_ONE;
    for (size_t i = 2; i < text.len && scale > 1; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return Q_ONE;
        scale /= 10;
        q += (text.bytes[i] - '0') * scale;
    }
    return q > Q_ONE ? Q_ONE : q;
}

static struct clause parse_clause(struct kinf_str text)
{
    struct clause clause = { .q = Q_ONE };

    clause.type = take_until(&text, ';');
    while (text.len != 0) {
        struct kinf_str value = take_until(&text, ';'), name = take_until(&value, '=');

        value = trim(value);
        if (equals(name, "as"))
            clause.as = value;
        else if (equals(name, "g"))
            clause.group = value;
        else if (equals(name, "v"))
            clause.version = value;
        else if (equals(name, "q"))
            clause.q = parse_q(value);
    }
    return clause;
}

static bool reads_json(const struct clause *clause)
{
    return equals(clause->type, "application/json") || equals(clause->type, "*/*");
}

static bool find_form(const struct clause *clause, enum kinf__form *ret_form)
{
    static const char *const names[] = {
#define X(form, as, what) as,
        KINF__FORMS(X)
#undef X
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        if (equals(clause->as, names[i])) {
            *ret_form = (enum kinf__form)i;
            return true;
        }
    }
    return false;
}

static bool is_version_of(const struct clause *clause, enum kinf__form form)
{
    if (form == KINF__FORM_OBJECT)
        return true;
    if (form == KINF__FORM_DISCOVERY)
        return equals(clause->group, "apidiscovery.k8s.io") && equals(clause->version, "v2");
    return equals(clause->group, "meta.k8s.io") &&
           (equals(clause->version, "v1") || equals(clause->version, "v1beta1"));
}

static bool accepts(const struct clause *clause, unsigned forms, struct kinf__accepted *ret)
{
    enum kinf__form form;

    if (!reads_json(clause) || !find_form(clause, &form) || (forms & 1u << form) == 0 ||
        !is_version_of(clause, form))
        return false;
    ret->form = form;
    ret->is_v1beta1 = form != KINF__FORM_OBJECT && equals(clause->version, "v1beta1");
    return true;
}

/* Higher comes first. */
static int weight(const struct clause *clause)
{
    return clause->q * 2 + (equals(clause->type, "*/*") ? 0 : 1);
}

static int refuse(bool knows_json, struct kinf__refusal *refusal)
{
    if (knows_json)
        return kinf__refuse(refusal, 406, "NotAcceptable",
                            "only the following media types are accepted: application/json");
    kinf__refuse(refusal, 406, "NotAcceptable",
                 "406: Not Acceptable\n\nAvailable representations: application/json");
    return kinf__refusal_empty(refusal, 0);
}

int kinf__accept_negotiate(const char *header, unsigned forms, struct kinf__accepted *ret_accepted,
                           struct kinf__refusal *refusal)
{
    struct kinf_str rest = trim(kinf_str_from(header));
    struct kinf__accepted best = { .form = KINF__FORM_OBJECT };
    bool is_found = rest.len == 0, knows_json = false;
    int best_weight = -1;

    while (rest.len != 0) {
        struct clause clause = parse_clause(take_until(&rest, ','));
        struct kinf__accepted accepted;

        knows_json = knows_json || reads_json(&clause);
        if (weight(&clause) <= best_weight || !accepts(&clause, forms, &accepted))
            continue;
        best = accepted;
        best_weight = weight(&clause);
        is_found = true;
    }
    if (!is_found)
        return refuse(knows_json, refusal);
    *ret_accepted = best;
    return 0;
}
