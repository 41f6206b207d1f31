/*
 * Field selectors of the served API. Neighbours: request.c parses, exchange.c binds, list.c and
 * watch.c match. The table below is what kube-apiserver 1.37 accepts.
 */
#include "serve/fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/compiler.h"
#include "informer/informer.h"
#include "json/path.h"
#include "object/object.h"
#include "serve/query.h"

enum place {
    PLACE_NAME,
    PLACE_NAMESPACE,
    PLACE_PATH,
};

struct term {
    const char *label;
    struct kinf_str value; /* unescaped, with a NUL behind it */
    bool is_equal;
};

/* All terms of one label. */
struct field {
    const char *label;
    enum place place;
    struct kinf_path *path;
    struct kinf_path *other_path; /* where to look when there is nothing at `path`; NULL: nowhere */
    const char *absent;           /* the value of a field that is not there */
    const struct term *terms;     /* those of values that it must not have, then of those it must */
    size_t n_unequal;
    size_t n_equal;
};

struct kinf__fields {
    struct term *terms; /* as they came; once bound: by field, then value, each once */
    size_t n_terms;
    struct field *fields; /* NULL: not bound */
    size_t n_fields;
    char *text; /* what labels and values point into */
};

/* How the server says that it does not know a label. */
enum wording {
    WORDING_NOT_SUPPORTED,      /* field label not supported: spec.x */
    WORDING_NOT_SUPPORTED_FOR,  /* field label "spec.x" not supported for Job */
    WORDING_NOT_KNOWN_SELECTOR, /* "spec.x" is not a known field selector: ... */
};

struct known {
    const char *group;
    const char *resource;
    const char *label;
    const char *path; /* NULL: as the label */
    const char *other_path;
    const char *absent;
};

static const struct known known_labels[] = {
    { "", "pods", "spec.nodeName", NULL, NULL, "" },
    { "", "pods", "spec.restartPolicy", NULL, NULL, "" },
    { "", "pods", "spec.schedulerName", NULL, NULL, "" },
    { "", "pods", "spec.serviceAccountName", NULL, NULL, "" },
    { "", "pods", "spec.hostNetwork", NULL, NULL, "false" },
    { "", "pods", "status.phase", NULL, NULL, "" },
    { "", "pods", "status.podIP", NULL, NULL, "" },
    { "", "pods", "status.podIPs", "status.podIPs[0].ip", NULL, "" },
    { "", "pods", "status.nominatedNodeName", NULL, NULL, "" },
    { "", "nodes", "spec.unschedulable", NULL, NULL, "false" },
    { "", "events", "type", NULL, NULL, "" },
    { "", "events", "reason", NULL, NULL, "" },
    { "", "events", "source", "source.component", "reportingComponent", "" },
    { "", "events", "reportingComponent", NULL, NULL, "" },
    { "", "events", "involvedObject.kind", NULL, NULL, "" },
    { "", "events", "involvedObject.namespace", NULL, NULL, "" },
    { "", "events", "involvedObject.name", NULL, NULL, "" },
    { "", "events", "involvedObject.uid", NULL, NULL, "" },
    { "", "events", "involvedObject.apiVersion", NULL, NULL, "" },
    { "", "events", "involvedObject.resourceVersion", NULL, NULL, "" },
    { "", "events", "involvedObject.fieldPath", NULL, NULL, "" },
    { "events.k8s.io", "events", "type", NULL, NULL, "" },
    { "events.k8s.io", "events", "reason", NULL, NULL, "" },
    { "events.k8s.io", "events", "reportingController", NULL, NULL, "" },
    { "events.k8s.io", "events", "regarding.kind", NULL, NULL, "" },
    { "events.k8s.io", "events", "regarding.namespace", NULL, NULL, "" },
    { "events.k8s.io", "events", "regarding.name", NULL, NULL, "" },
    { "events.k8s.io", "events", "regarding.uid", NULL, NULL, "" },
    { "events.k8s.io", "events", "regarding.apiVersion", NULL, NULL, "" },
    { "events.k8s.io", "events", "regarding.resourceVersion", NULL, NULL, "" },
    { "events.k8s.io", "events", "regarding.fieldPath", NULL, NULL, "" },
    { "", "namespaces", "status.phase", NULL, NULL, "" },
    { "", "services", "spec.clusterIP", NULL, NULL, "" },
    { "", "services", "spec.type", NULL, NULL, "" },
    { "", "secrets", "type", NULL, NULL, "" },
    { "", "replicationcontrollers", "status.replicas", NULL, NULL, "0" },
    { "batch", "jobs", "status.successful", "status.succeeded", NULL, "0" },
    { "certificates.k8s.io", "certificatesigningrequests", "spec.signerName", NULL, NULL, "" },
    { "certificates.k8s.io", "clustertrustbundles", "spec.signerName", NULL, NULL, "" },
    { "certificates.k8s.io", "podcertificaterequests", "spec.signerName", NULL, NULL, "" },
    { "certificates.k8s.io", "podcertificaterequests", "spec.podName", NULL, NULL, "" },
    { "certificates.k8s.io", "podcertificaterequests", "spec.nodeName", NULL, NULL, "" },
    { "resource.k8s.io", "resourceslices", "spec.nodeName", NULL, NULL, "" },
    { "resource.k8s.io", "resourceslices", "spec.driver", NULL, NULL, "" },
    { "resource.k8s.io", "resourceslices", "spec.pool.name", NULL, NULL, "" },
};

/* --- parsing --- */

static char *find_operator(char *term)
{
    for (char *at = term; *at != '\0'; at++) {
        if (*at == '=' || (*at == '!' && at[1] == '='))
            return at;
    }
    return NULL;
}

/* Undoes `\,`, `\=` and `\\` in place. */
static int unescape_value(char *value, struct kinf_str *ret_value, struct kinf__refusal *refusal)
{
    char *out = value;

    for (const char *at = value; *at != '\0'; at++) {
        if (*at == '\\') {
            at++;
            if (*at == '\0' || strchr("\\,=", *at) == NULL)
                return kinf__refuse(refusal, 400, "BadRequest",
                                    "invalid field selector: invalid escape sequence: \\%.*s",
                                    *at != '\0' ? 1 : 0, at);
        } else if (*at == ',' || *at == '=') {
            return kinf__refuse(refusal, 400, "BadRequest",
                                "invalid field selector: unescaped character in value: %d", *at);
        }
        *out++ = *at;
    }
    *out = '\0';
    *ret_value = (struct kinf_str){ value, (size_t)(out - value) };
    return 0;
}

static int parse_term(char *text, const char *whole, struct term *ret_term,
                      struct kinf__refusal *refusal)
{
    char *operator_at = find_operator(text);
    size_t len;

    if (operator_at == NULL)
        return kinf__refuse(refusal, 400, "BadRequest",
                            "invalid selector: '%s'; can't understand '%s'", whole, text);
    len = operator_at[1] == '=' ? 2 : 1;
    ret_term->is_equal = *operator_at == '=';
    ret_term->label = text;
    *operator_at = '\0';
    return unescape_value(operator_at + len, &ret_term->value, refusal);
}

/* The end of a term: a comma that is not escaped, or the end. */
static char *term_end(char *at)
{
    for (; *at != '\0' && *at != ','; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
    }
    return at;
}

/* "=" asks for nothing. */
static int add_term(struct kinf__fields *fields, char *text, const char *whole,
                    struct kinf__refusal *refusal)
{
    struct term *term = &fields->terms[fields->n_terms];
    int failed = parse_term(text, whole, term, refusal);

    if (failed == 0 && (*term->label != '\0' || term->value.len != 0))
        fields->n_terms++;
    return failed;
}

static int parse_terms(struct kinf__fields *fields, const char *whole,
                       struct kinf__refusal *refusal)
{
    char *at = fields->text;
    int failed = 0;

    while (failed == 0 && *at != '\0') {
        char *end = term_end(at);
        bool is_last = *end == '\0';

        *end = '\0';
        if (end != at)
            failed = add_term(fields, at, whole, refusal);
        at = end + (is_last ? 0 : 1);
    }
    return failed;
}

int kinf__fields_parse(const char *text, struct kinf__fields **ret_fields,
                       struct kinf__refusal *refusal)
{
    struct kinf__fields *fields = calloc(1, sizeof *fields);
    size_t n_max = 1;
    int failed;

    if (fields == NULL)
        return kinf__refuse_no_memory(refusal);
    for (const char *at = text; (at = strchr(at, ',')) != NULL; at++)
        n_max++;
    fields->text = strdup(text);
    fields->terms = calloc(n_max, sizeof *fields->terms);
    failed = fields->text != NULL && fields->terms != NULL ? parse_terms(fields, text, refusal)
                                                           : kinf__refuse_no_memory(refusal);
    if (failed < 0) {
        kinf__fields_free(fields);
        return failed;
    }
    *ret_fields = fields;
    return 0;
}

void kinf__fields_free(struct kinf__fields *fields)
{
    if (fields == NULL)
        return;
    for (size_t i = 0; i < fields->n_fields; i++) {
        kinf_path_free(fields->fields[i].path);
        kinf_path_free(fields->fields[i].other_path);
    }
    free(fields->fields);
    free(fields->terms);
    free(fields->text);
    free(fields);
}

/* --- binding --- */

static bool is_type(const struct kinf_type *type, const char *group, const char *resource)
{
    return strcmp(type->group, group) == 0 && strcmp(type->resource, resource) == 0;
}

static const struct known *find_known(const struct kinf_type *type, const char *label)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(known_labels); i++) {
        if (is_type(type, known_labels[i].group, known_labels[i].resource) &&
            strcmp(known_labels[i].label, label) == 0)
            return &known_labels[i];
    }
    return NULL;
}

/* Cluster-scoped kinds that convert labels themselves do not know the namespace. */
static bool has_own_labels(const struct kinf_type *type)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(known_labels); i++) {
        if (is_type(type, known_labels[i].group, known_labels[i].resource))
            return true;
    }
    return false;
}

static enum wording wording_of(const struct kinf_type *type)
{
    if (is_type(type, "batch", "jobs"))
        return WORDING_NOT_SUPPORTED_FOR;
    return has_own_labels(type) || strchr(type->group, '.') != NULL ? WORDING_NOT_SUPPORTED
                                                                    : WORDING_NOT_KNOWN_SELECTOR;
}

static int refuse_label(const struct kinf_type *type, const char *label,
                        struct kinf__refusal *refusal)
{
    char quoted[KINF__REFUSAL_MESSAGE_SIZE];

    kinf__query_quote(label, quoted, sizeof quoted);
    switch (wording_of(type)) {
    case WORDING_NOT_SUPPORTED_FOR:
        return kinf__refuse(refusal, 400, "BadRequest", "field label %s not supported for %s",
                            quoted, type->kind);
    case WORDING_NOT_KNOWN_SELECTOR:
        return kinf__refuse(refusal, 400, "BadRequest",
                            "%s is not a known field selector: only \"metadata.name\", "
                            "\"metadata.namespace\"",
                            quoted);
    case WORDING_NOT_SUPPORTED:
        break;
    }
    return kinf__refuse(refusal, 400, "BadRequest", "field label not supported: %s", label);
}

static bool is_among(const char *label, const char *const *paths, size_t n_paths)
{
    for (size_t i = 0; i < n_paths; i++) {
        if (strcmp(label, paths[i]) == 0)
            return true;
    }
    return false;
}

static int bind_path(struct field *field, const char *path, const char *other_path,
                     struct kinf__refusal *refusal)
{
    field->place = PLACE_PATH;
    if (kinf_path_parse(path, &field->path, NULL) < 0 ||
        (other_path != NULL && kinf_path_parse(other_path, &field->other_path, NULL) < 0))
        return kinf__refuse_no_memory(refusal);
    return 0;
}

static int bind_field(struct field *field, const struct kinf_type *type, const char *const *paths,
                      size_t n_paths, struct kinf__refusal *refusal)
{
    const struct known *known = find_known(type, field->label);
    bool knows_namespace = type->namespaced || wording_of(type) == WORDING_NOT_KNOWN_SELECTOR;

    field->absent = "";
    if (strcmp(field->label, "metadata.name") == 0) {
        field->place = PLACE_NAME;
        return 0;
    }
    if (knows_namespace && strcmp(field->label, "metadata.namespace") == 0) {
        field->place = PLACE_NAMESPACE;
        return 0;
    }
    if (known != NULL) {
        field->absent = known->absent;
        return bind_path(field, known->path != NULL ? known->path : known->label, known->other_path,
                         refusal);
    }
    if (is_among(field->label, paths, n_paths))
        return bind_path(field, field->label, NULL, refusal);
    return refuse_label(type, field->label, refusal);
}

static struct field *find_field(const struct kinf__fields *fields, const char *label)
{
    for (size_t i = 0; i < fields->n_fields; i++) {
        if (strcmp(fields->fields[i].label, label) == 0)
            return &fields->fields[i];
    }
    return NULL;
}

static int compare_values(struct kinf_str a, struct kinf_str b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return memcmp(a.bytes, b.bytes, a.len);
}

static int compare_terms(const void *a, const void *b)
{
    const struct term *one = a, *other = b;
    int order = strcmp(one->label, other->label);

    if (order == 0)
        order = (int)one->is_equal - (int)other->is_equal;
    return order != 0 ? order : compare_values(one->value, other->value);
}

/* Each field is given its terms. */
static void distribute(struct kinf__fields *fields)
{
    for (size_t i = 0; i < fields->n_fields; i++)
        fields->fields[i].n_equal = fields->fields[i].n_unequal = 0;
    for (size_t i = 0; i < fields->n_terms; i++) {
        const struct term *term = &fields->terms[i];
        struct field *field = find_field(fields, term->label);

        if (field->n_equal + field->n_unequal == 0)
            field->terms = term;
        field->n_equal += term->is_equal;
        field->n_unequal += !term->is_equal;
    }
}

static void sort_terms(struct kinf__fields *fields)
{
    size_t n_left = 0;

    qsort(fields->terms, fields->n_terms, sizeof fields->terms[0], compare_terms);
    for (size_t i = 0; i < fields->n_terms; i++) {
        if (n_left == 0 || compare_terms(&fields->terms[n_left - 1], &fields->terms[i]) != 0)
            fields->terms[n_left++] = fields->terms[i];
    }
    fields->n_terms = n_left;
}

/* Adds the field of a label that is met first. */
static int add_field(struct kinf__fields *fields, const char *label, const struct kinf_type *type,
                     const char *const *paths, size_t n_paths, struct kinf__refusal *refusal)
{
    struct field *grown, *field;

    if (find_field(fields, label) != NULL)
        return 0;
    grown = realloc(fields->fields, (fields->n_fields + 1) * sizeof fields->fields[0]);
    if (grown == NULL)
        return kinf__refuse_no_memory(refusal);
    fields->fields = grown;
    field = &fields->fields[fields->n_fields++];
    *field = (struct field){ .label = label };
    return bind_field(field, type, paths, n_paths, refusal);
}

/* In the order of the text: the first label that is not known is the one that is refused. Those that
 * are known are few. */
int kinf__fields_bind(struct kinf__fields *fields, const struct kinf_type *type,
                      const char *const *paths, size_t n_paths, struct kinf__refusal *refusal)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < fields->n_terms; i++)
        failed = add_field(fields, fields->terms[i].label, type, paths, n_paths, refusal);
    if (failed < 0)
        return failed;
    if (fields->n_terms != 0)
        sort_terms(fields);
    distribute(fields);
    return 0;
}

static bool has_term(const struct kinf__fields *fields, const struct term *wanted)
{
    for (size_t i = 0; fields != NULL && i < fields->n_terms; i++) {
        if (compare_terms(&fields->terms[i], wanted) == 0)
            return true;
    }
    return false;
}

void kinf__fields_assume(struct kinf__fields *fields, const struct kinf__fields *given)
{
    size_t n_left = 0;

    if (fields == NULL)
        return;
    for (size_t i = 0; i < fields->n_terms; i++) {
        if (!has_term(given, &fields->terms[i]))
            fields->terms[n_left++] = fields->terms[i];
    }
    fields->n_terms = n_left;
    distribute(fields);
}

static bool is_lost(const struct field *field, const struct kinf__prune_plan *plan)
{
    return field->place == PLACE_PATH && field->n_equal + field->n_unequal != 0 &&
           (!kinf__prune_plan_keeps(plan, field->path) ||
            (field->other_path != NULL && !kinf__prune_plan_keeps(plan, field->other_path)));
}

const char *kinf__fields_find_lost(const struct kinf__fields *fields,
                                   const struct kinf__prune_plan *plan)
{
    for (size_t i = 0; fields != NULL && i < fields->n_fields; i++) {
        if (is_lost(&fields->fields[i], plan))
            return fields->fields[i].label;
    }
    return NULL;
}

int kinf__fields_keep_readable(struct kinf_informer *informer, struct kinf_error *err)
{
    const struct kinf_type *type = kinf_informer_type(informer);
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(known_labels); i++) {
        const struct known *known = &known_labels[i];

        if (strcmp(known->group, type->group) != 0 || strcmp(known->resource, type->resource) != 0)
            continue;
        failed = kinf__informer_keep_readable(
            informer, known->path != NULL ? known->path : known->label, err);
        if (failed == 0 && known->other_path != NULL)
            failed = kinf__informer_keep_readable(informer, known->other_path, err);
    }
    return failed;
}

/* --- matching --- */

/* The value at `path`, if it is one that a selector can mean: an empty string is as good as none.
 * Else of type KINF__JSON_NULL. */
static int find_value(const struct kinf_object *object, const struct kinf_path *path,
                      struct kinf_scratch *scratch, struct kinf__json_value *ret_value)
{
    int r = kinf__object_lookup_first(object, path, scratch, ret_value);

    if (r == KINF_ERR_NO_MEMORY)
        return r;
    if (r == KINF_ERR_NOT_FOUND || kinf_str_equal(ret_value->raw, KINF_STR("\"\"")))
        ret_value->type = KINF__JSON_NULL;
    return 0;
}

/* What a selector compares with; `room` is for a text with escapes in it. */
static int read_path(const struct field *field, const struct kinf_object *object,
                     struct kinf_scratch *scratch, struct kinf__buffer *room,
                     struct kinf_str *ret_value)
{
    struct kinf__json_value value;
    int r = find_value(object, field->path, scratch, &value);

    if (r == 0 && value.type == KINF__JSON_NULL && field->other_path != NULL)
        r = find_value(object, field->other_path, scratch, &value);
    if (r < 0)
        return r;
    if (value.type == KINF__JSON_NULL) {
        *ret_value = kinf_str_from(field->absent);
        return 0;
    }
    *ret_value = value.raw;
    if (value.type != KINF__JSON_STRING)
        return 0;
    *ret_value = (struct kinf_str){ value.raw.bytes + 1, value.raw.len - 2 };
    if (memchr(value.raw.bytes, '\\', value.raw.len) == NULL)
        return 0;
    if (kinf__buffer_reserve(room, value.raw.len) < 0)
        return KINF_ERR_NO_MEMORY;
    ret_value->bytes = room->bytes;
    ret_value->len = kinf__json_unescape(value.raw, room->bytes, value.raw.len);
    return 0;
}

static int read_field(const struct field *field, const struct kinf_object *object,
                      struct kinf_scratch *scratch, struct kinf__buffer *room,
                      struct kinf_str *ret_value)
{
    switch (field->place) {
    case PLACE_NAME:
        *ret_value = kinf_str_from(kinf_object_name(object));
        return 0;
    case PLACE_NAMESPACE:
        *ret_value = kinf_object_namespace(object);
        return 0;
    case PLACE_PATH:
        break;
    }
    return read_path(field, object, scratch, room, ret_value);
}

static int compare_with_term(const void *value, const void *term)
{
    return compare_values(*(const struct kinf_str *)value, ((const struct term *)term)->value);
}

static bool field_holds(const struct field *field, struct kinf_str value)
{
    const struct term *equal = field->terms + field->n_unequal;

    /* Of two values that it must have it can have one. */
    if (field->n_equal > 1 || (field->n_equal == 1 && !kinf_str_equal(equal->value, value)))
        return false;
    return field->n_unequal == 0 || bsearch(&value, field->terms, field->n_unequal,
                                            sizeof *field->terms, compare_with_term) == NULL;
}

int kinf__fields_match(const struct kinf__fields *fields, const struct kinf_object *object)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    KINF__AUTO_BUFFER room = KINF__BUFFER_INIT;
    struct kinf_str value;

    if (fields == NULL || fields->n_terms == 0)
        return 1;
    for (size_t i = 0; i < fields->n_fields; i++) {
        const struct field *field = &fields->fields[i];

        if (field->n_equal + field->n_unequal == 0)
            continue;
        if (read_field(field, object, &scratch, &room, &value) < 0)
            return KINF_ERR_NO_MEMORY;
        if (!field_holds(field, value))
            return 0;
    }
    return 1;
}

const char *kinf__fields_required(const struct kinf__fields *fields, const char *label)
{
    for (size_t i = 0; fields != NULL && i < fields->n_terms; i++) {
        if (fields->terms[i].is_equal && strcmp(fields->terms[i].label, label) == 0)
            return fields->terms[i].value.bytes;
    }
    return NULL;
}

const char *kinf__fields_required_at(const struct kinf__fields *fields, const char *path)
{
    for (size_t i = 0; fields != NULL && i < fields->n_fields; i++) {
        const struct field *field = &fields->fields[i];

        if (field->n_equal != 0 && field->place == PLACE_PATH && field->other_path == NULL &&
            strcmp(field->path->text, path) == 0 &&
            strcmp(field->terms[field->n_unequal].value.bytes, field->absent) != 0)
            return field->terms[field->n_unequal].value.bytes;
    }
    return NULL;
}

bool kinf__fields_within(const struct kinf__fields *fields, const struct kinf__fields *wider)
{
    bool is_within = true;

    for (size_t i = 0; is_within && i < wider->n_terms; i++)
        is_within = has_term(fields, &wider->terms[i]);
    return is_within;
}
