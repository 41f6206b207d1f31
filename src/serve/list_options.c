/*
 * From a query to options. Neighbours: query.c reads the pairs, fields.c and label_fault.c the
 * selectors.
 */
#include "serve/list_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "serve/label_fault.h"
#include "serve/query.h"

#define NAME_SELECTOR "metadata.name="

/* X(enumerator, name, whether it counts for a named object, too) */
#define PARAMETERS(X)                                                                              \
    X(PARAMETER_BOOKMARKS, "allowWatchBookmarks", false)                                           \
    X(PARAMETER_INITIAL, "sendInitialEvents", false)                                               \
    X(PARAMETER_LIMIT, "limit", false)                                                             \
    X(PARAMETER_TIMEOUT_SECONDS, "timeoutSeconds", false)                                          \
    X(PARAMETER_TIMEOUT, "timeout", true)                                                          \
    X(PARAMETER_CONTINUE, "continue", false)                                                       \
    X(PARAMETER_VERSION, "resourceVersion", true)                                                  \
    X(PARAMETER_MATCH, "resourceVersionMatch", false)                                              \
    X(PARAMETER_INCLUDE, "includeObject", true)                                                    \
    X(PARAMETER_LABELS, "labelSelector", false)                                                    \
    X(PARAMETER_FIELDS, "fieldSelector", false)                                                    \
    X(PARAMETER_SHARD, "shardSelector", false)

enum parameter {
#define X(parameter, name, is_for_named) parameter,
    PARAMETERS(X)
#undef X
        N_PARAMETERS
};

static const struct {
    const char *name;
    bool is_for_named;
} parameters[] = {
#define X(parameter, name, is_for_named) { name, is_for_named },
    PARAMETERS(X)
#undef X
};

/* The decoded value of each parameter; NULL: not given. */
struct values {
    const char *texts[N_PARAMETERS];
};

static const char *text_of(const struct values *values, enum parameter parameter)
{
    return values->texts[parameter] != NULL ? values->texts[parameter] : "";
}

static size_t find_parameter(struct kinf_str name, bool is_named)
{
    for (size_t i = 0; i < N_PARAMETERS; i++) {
        if ((!is_named || parameters[i].is_for_named) &&
            kinf__query_is_named(name, parameters[i].name))
            return i;
    }
    return N_PARAMETERS;
}

/* Decodes into `room`, which is as long as the query and one more: a value and its NUL are never
 * longer than the pair. */
static int read_values(struct kinf_str query, bool is_named, char *room, struct values *ret_values,
                       struct kinf__refusal *refusal)
{
    struct kinf__query_pair pair;

    while (kinf__query_next(&query, &pair)) {
        size_t i = find_parameter(pair.name, is_named), len;

        if (i == N_PARAMETERS || ret_values->texts[i] != NULL)
            continue;
        len = kinf__query_unescape(pair.value, true, room);
        if (len == SIZE_MAX)
            continue;
        if (memchr(room, '\0', len) != NULL)
            return kinf__refuse(refusal, 400, "BadRequest", "a NUL in the value of %s",
                                parameters[i].name);
        room[len] = '\0';
        ret_values->texts[i] = room;
        room += len + 1;
    }
    return 0;
}

static bool is_true(const struct values *values, enum parameter parameter)
{
    const char *text = values->texts[parameter];

    return text != NULL && strcmp(text, "0") != 0 && strcasecmp(text, "false") != 0;
}

static int read_number(const struct values *values, enum parameter parameter, int64_t *ret_number,
                       struct kinf__refusal *refusal)
{
    const char *text = values->texts[parameter];
    const char *fault = text != NULL ? kinf__query_parse_int(text, ret_number) : NULL;
    char quoted[KINF__REFUSAL_MESSAGE_SIZE];

    if (fault == NULL)
        return 0;
    return kinf__refuse(refusal, 400, "BadRequest", "strconv.ParseInt: parsing %s: %s",
                        kinf__query_quote(text, quoted, sizeof quoted), fault);
}

/* The server looks at `timeout` before anything else, but not for a watch. */
static int check_timeout(const struct values *values, bool is_watch, struct kinf__refusal *refusal)
{
    const char *text = text_of(values, PARAMETER_TIMEOUT);
    char fault[512];

    if (*text == '\0' || is_watch || !kinf__query_duration_fault(text, fault, sizeof fault))
        return 0;
    return kinf__refuse(refusal, 400, "BadRequest",
                        "invalid timeout specified in the request URL - %s", fault);
}

/* --- selectors --- */

static int read_labels(const char *text, struct kinf__list_options *options,
                       struct kinf__refusal *refusal)
{
    struct kinf_error err = KINF_ERROR_INIT;
    char words[KINF__REFUSAL_MESSAGE_SIZE];
    int failed = *text != '\0' ? kinf_label_selector_parse(text, &options->labels, &err) : 0;

    if (failed == KINF_ERR_NO_MEMORY)
        return kinf__refuse_no_memory(refusal);
    if (failed < 0 && !kinf__label_fault(text, words, sizeof words))
        snprintf(words, sizeof words, "%s", err.message); /* untested: the two agree */
    return failed < 0 ? kinf__refuse(refusal, 400, "BadRequest", "%s", words) : 0;
}

static int read_fields(const char *text, struct kinf__list_options *options,
                       struct kinf__refusal *refusal)
{
    return *text != '\0' ? kinf__fields_parse(text, &options->fields, refusal) : 0;
}

/* What the name in the path is, unless there is a selector: that may only say the same. */
static void write_name_selector(const char *name, char *text)
{
    char *at = stpcpy(text, NAME_SELECTOR);

    for (; *name != '\0'; name++) {
        if (strchr("\\,=", *name) != NULL)
            *at++ = '\\';
        *at++ = *name;
    }
    *at = '\0';
}

static int check_watched(const char *name, const struct kinf__fields *fields,
                         struct kinf__refusal *refusal)
{
    const char *required = kinf__fields_required(fields, "metadata.name");

    return *name == '\0' || (required != NULL && strcmp(required, name) == 0)
               ? 0
               : kinf__refuse(refusal, 400, "BadRequest",
                              "fieldSelector metadata.name doesn't match requested name");
}

/* --- which options exclude each other: metainternalversion's ValidateListOptions --- */

struct faults {
    struct kinf__refusal *refusal;
    struct kinf__buffer text;
    bool is_out_of_memory;
};

static void add_fault(struct faults *faults, const char *reason, const char *field,
                      const char *message)
{
    kinf__refusal_add_cause(faults->refusal, reason, field, message);
    if (kinf__buffer_printf(&faults->text, "%s%s: %s", faults->text.len != 0 ? ", " : "", field,
                            message) < 0)
        faults->is_out_of_memory = true;
}

static void forbid(struct faults *faults, const char *field, const char *message)
{
    char text[256];

    snprintf(text, sizeof text, "Forbidden: %s", message);
    add_fault(faults, "FieldValueForbidden", field, text);
}

static void refuse_match(struct faults *faults, const char *match, const char *supported)
{
    char text[256];

    snprintf(text, sizeof text, "Unsupported value: \"%.64s\": supported values: %s", match,
             supported);
    add_fault(faults, "FieldValueNotSupported", "resourceVersionMatch", text);
}

static void validate_list(const struct values *values, struct faults *faults)
{
    const char *match = text_of(values, PARAMETER_MATCH);
    const char *version = text_of(values, PARAMETER_VERSION);
    bool is_exact = strcmp(match, "Exact") == 0;

    if (*match != '\0') {
        if (*version == '\0')
            forbid(faults, "resourceVersionMatch",
                   "resourceVersionMatch is forbidden unless resourceVersion is provided");
        if (*text_of(values, PARAMETER_CONTINUE) != '\0')
            forbid(faults, "resourceVersionMatch",
                   "resourceVersionMatch is forbidden when continue is provided");
        if (!is_exact && strcmp(match, "NotOlderThan") != 0)
            refuse_match(faults, match, "\"Exact\", \"NotOlderThan\", \"\"");
        if (is_exact && strcmp(version, "0") == 0)
            forbid(faults, "resourceVersionMatch",
                   "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
    if (values->texts[PARAMETER_INITIAL] != NULL)
        forbid(faults, "sendInitialEvents", "sendInitialEvents is forbidden for list");
}

static void validate_watch(const struct values *values, struct faults *faults)
{
    const char *match = text_of(values, PARAMETER_MATCH);
    bool has_initial = values->texts[PARAMETER_INITIAL] != NULL;
    bool is_not_older = strcmp(match, "NotOlderThan") == 0;
    const char *version = text_of(values, PARAMETER_VERSION);
    /* The server makes a watch list of it before it looks. */
    bool is_made_list =
        !has_initial && *match == '\0' && (*version == '\0' || strcmp(version, "0") == 0);

    if (has_initial && !is_not_older)
        forbid(faults, "resourceVersionMatch",
               "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (!has_initial && *match != '\0')
        forbid(faults, "resourceVersionMatch",
               "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    if (*match != '\0' && !is_not_older)
        refuse_match(faults, match, "\"NotOlderThan\"");
    if (*text_of(values, PARAMETER_CONTINUE) != '\0' && (*match != '\0' || is_made_list))
        forbid(faults, "resourceVersionMatch",
               "resourceVersionMatch is forbidden when continue is provided");
}

static int validate(const struct values *values, bool is_watch, struct kinf__refusal *refusal)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__refusal told = { .code = 0 };
    struct faults faults = { &told, KINF__BUFFER_INIT, false };
    const char *all;

    if (is_watch)
        validate_watch(values, &faults);
    else
        validate_list(values, &faults);
    text = faults.text;
    if (told.n_causes == 0)
        return 0;
    all = kinf__buffer_cstr(&text);
    if (all == NULL || faults.is_out_of_memory)
        return kinf__refuse_no_memory(refusal);
    kinf__refuse(refusal, 422, "Invalid", "ListOptions.meta.k8s.io \"\" is invalid: %s%s%s",
                 told.n_causes > 1 ? "[" : "", all, told.n_causes > 1 ? "]" : "");
    kinf__refusal_set_object(refusal, "meta.k8s.io", "ListOptions", "");
    for (size_t i = 0; i < told.n_causes; i++)
        kinf__refusal_add_cause(refusal, told.causes[i].reason, told.causes[i].field,
                                told.causes[i].message);
    return KINF_ERR_INVALID;
}

/* --- resourceVersion --- */

static int check_version(const struct values *values, bool is_list, struct kinf__refusal *refusal)
{
    const char *version = text_of(values, PARAMETER_VERSION);
    const char *fault = *version != '\0' ? kinf__query_check_uint(version) : NULL;
    char quoted[KINF__REFUSAL_MESSAGE_SIZE];

    if (fault == NULL)
        return 0;
    kinf__query_quote(version, quoted, sizeof quoted);
    return kinf__refuse(refusal, is_list ? 400 : 500, is_list ? "BadRequest" : "",
                        "%sresourceVersion: Invalid value: %s: strconv.ParseUint: parsing %s: %s",
                        is_list ? "invalid resource version: " : "", quoted, quoted, fault);
}

static enum kinf__include_object parse_include(const char *text)
{
    if (*text == '\0' || strcmp(text, "Metadata") == 0)
        return KINF__INCLUDE_METADATA;
    if (strcmp(text, "Object") == 0)
        return KINF__INCLUDE_OBJECT;
    return strcmp(text, "None") == 0 ? KINF__INCLUDE_NONE : KINF__INCLUDE_INVALID;
}

static enum kinf__rv_match parse_match(const char *text)
{
    if (strcmp(text, "Exact") == 0)
        return KINF__RV_MATCH_EXACT;
    return strcmp(text, "NotOlderThan") == 0 ? KINF__RV_MATCH_NOT_OLDER_THAN : KINF__RV_MATCH_UNSET;
}

static void fill_options(const struct values *values, struct kinf__list_options *options)
{
    options->allows_bookmarks = is_true(values, PARAMETER_BOOKMARKS);
    options->has_send_initial_events = values->texts[PARAMETER_INITIAL] != NULL;
    options->sends_initial_events = is_true(values, PARAMETER_INITIAL);
    options->continue_token = text_of(values, PARAMETER_CONTINUE);
    options->resource_version = text_of(values, PARAMETER_VERSION);
    options->match = parse_match(text_of(values, PARAMETER_MATCH));
    options->include_text = text_of(values, PARAMETER_INCLUDE);
    options->include = parse_include(options->include_text);
    options->label_selector = text_of(values, PARAMETER_LABELS);
    options->field_selector = text_of(values, PARAMETER_FIELDS);
    options->shard_selector = text_of(values, PARAMETER_SHARD);
}

static int read_options(const struct kinf__request *request, const struct values *values,
                        struct kinf__list_options *options, struct kinf__refusal *refusal)
{
    bool is_named = *request->name != '\0';
    int failed;

    fill_options(values, options);
    options->is_watch =
        !is_named && (request->is_watch_path || kinf__request_is_true(request, "watch"));
    if ((failed = check_timeout(values, options->is_watch, refusal)) < 0 ||
        (failed = read_number(values, PARAMETER_LIMIT, &options->limit, refusal)) < 0 ||
        (failed = read_number(values, PARAMETER_TIMEOUT_SECONDS, &options->timeout_s, refusal)) <
            0 ||
        (failed = read_labels(options->label_selector, options, refusal)) < 0 ||
        (failed = read_fields(options->field_selector, options, refusal)) < 0 ||
        (failed = validate(values, options->is_watch, refusal)) < 0 ||
        (!is_named &&
         (failed = check_watched(request->watched_name, options->fields, refusal)) < 0))
        return failed;
    return check_version(values, !is_named && !options->is_watch, refusal);
}

int kinf__list_options_read(const struct kinf__request *request,
                            struct kinf__list_options *ret_options, struct kinf__refusal *refusal)
{
    size_t size = request->query.len + 1, watched_len = strlen(request->watched_name);
    struct kinf__list_options options = {
        .text = malloc(size + sizeof NAME_SELECTOR + 2 * watched_len),
    };
    struct values values = { .texts = { NULL } };
    bool is_named = *request->name != '\0';
    int failed;

    if (options.text == NULL)
        return kinf__refuse_no_memory(refusal);
    failed = read_values(request->query, is_named, options.text, &values, refusal);
    if (!is_named && watched_len != 0 && *text_of(&values, PARAMETER_FIELDS) == '\0') {
        write_name_selector(request->watched_name, options.text + size);
        values.texts[PARAMETER_FIELDS] = options.text + size;
    }
    if (failed == 0)
        failed = read_options(request, &values, &options, refusal);
    if (failed < 0) {
        kinf__list_options_release(&options);
        return failed;
    }
    *ret_options = options;
    return 0;
}

void kinf__list_options_release(struct kinf__list_options *options)
{
    kinf_label_selector_free(options->labels);
    kinf__fields_free(options->fields);
    free(options->text);
    *options = (struct kinf__list_options){ 0 };
}
