/*
 * Options of writes. Neighbours: request.c asks, verbs.c goes by them.
 */
#include "apiserver/write_options.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "serve/query.h"
#include "apiserver/refuse.h"

#define PARAMETER_SIZE 512
#define MANAGER_MAX    (KINF__MANAGER_SIZE - 1)

/* The first value of a parameter, decoded; false: it is not there. One too long is cut. */
static bool read_parameter(struct kinf_str rest, const char *name, char text[PARAMETER_SIZE])
{
    struct kinf__query_pair pair;
    size_t len;

    text[0] = '\0';
    while (kinf__query_next(&rest, &pair)) {
        if (!kinf__query_is_named(pair.name, name))
            continue;
        if (pair.value.len >= PARAMETER_SIZE)
            pair.value.len = PARAMETER_SIZE - 1;
        len = kinf__query_unescape(pair.value, true, text);
        text[len < PARAMETER_SIZE ? len : 0] = '\0';
        return true;
    }
    return false;
}

static int refuse_option(struct kinf__refusal *refusal, const char *kind, const char *field,
                         const char *reason, const char *message)
{
    return kinf__refuse_invalid(refusal, "meta.k8s.io", kind, "", reason, field, message);
}

static int refuse_unsupported(struct kinf__refusal *refusal, const char *kind, const char *field,
                              const char *fmt, ...) KINF_PRINTF(4, 5);

static int refuse_unsupported(struct kinf__refusal *refusal, const char *kind, const char *field,
                              const char *fmt, ...)
{
    char message[PARAMETER_SIZE + 128];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    return refuse_option(refusal, kind, field, "FieldValueNotSupported", message);
}

static const char *kind_of(const char *method)
{
    static const char *const kinds[][2] = {
        { "POST", "CreateOptions" },
        { "PUT", "UpdateOptions" },
        { "PATCH", "PatchOptions" },
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i][0], method) == 0)
            return kinds[i][1];
    }
    return "DeleteOptions";
}

/* --- writes --- */

static int check_dry_run(const char *kind, const char *text, struct kinf__refusal *refusal)
{
    return strcmp(text, "All") == 0
               ? 0
               : refuse_unsupported(refusal, kind, "dryRun",
                                    "Unsupported value: [\"%s\"]: supported values: \"All\"", text);
}

static int check_timeout(struct kinf_str query, struct kinf__refusal *refusal)
{
    char text[PARAMETER_SIZE];

    if (!read_parameter(query, "timeout", text) || *text == '\0' || isdigit((unsigned char)*text) ||
        *text == '-' || *text == '+' || *text == '.')
        return 0;
    return kinf__refuse_bad_request(refusal,
                                    "invalid timeout specified in the request URL - time: invalid "
                                    "duration \"%s\"",
                                    text);
}

static int read_validation(struct kinf_str query, const char *kind,
                           enum kinf__field_validation *ret_validation,
                           struct kinf__refusal *refusal)
{
    char text[PARAMETER_SIZE];

    if (!read_parameter(query, "fieldValidation", text) || *text == '\0' ||
        strcmp(text, "Warn") == 0)
        return 0;
    *ret_validation = strcmp(text, "Ignore") == 0 ? KINF__FIELDS_IGNORE : KINF__FIELDS_STRICT;
    if (strcmp(text, "Ignore") == 0 || strcmp(text, "Strict") == 0)
        return 0;
    return refuse_unsupported(refusal, kind, "fieldValidation",
                              "Unsupported value: \"%s\": supported values: \"\", \"Ignore\", "
                              "\"Strict\", \"Warn\"",
                              text);
}

static int check_manager(const char *kind, const char *name, struct kinf__refusal *refusal)
{
    char message[PARAMETER_SIZE + 96];
    size_t i = 0;

    if (strlen(name) > MANAGER_MAX)
        return refuse_option(refusal, kind, "fieldManager", "FieldValueTooLong",
                             "Too long: may not be more than 128 bytes");
    while (name[i] != '\0' && !iscntrl((unsigned char)name[i]))
        i++;
    if (name[i] == '\0')
        return 0;
    snprintf(message, sizeof message,
             "Invalid value: \"%.*s\\x%02x%s\": invalid character U+%04X (at position %zu)", (int)i,
             name, (unsigned)name[i], name + i + 1, (unsigned)name[i], i);
    return refuse_option(refusal, kind, "fieldManager", "FieldValueInvalid", message);
}

/* Who says nothing is known by the first part of the program's name. */
static int read_manager(struct kinf_str query, const char *kind, const char *agent,
                        char manager[KINF__MANAGER_SIZE], struct kinf__refusal *refusal)
{
    char text[PARAMETER_SIZE];
    int failed;

    if (read_parameter(query, "fieldManager", text) && *text != '\0') {
        failed = check_manager(kind, text, refusal);
        if (failed < 0)
            return failed;
    } else {
        snprintf(text, sizeof text, "%.*s", (int)strcspn(agent, "/"), agent);
    }
    snprintf(manager, KINF__MANAGER_SIZE, "%.128s", *text != '\0' ? text : "unknown");
    return 0;
}

int kinf__write_options_read(struct kinf_str query, const char *method, const char *agent,
                             struct kinf__verb *verb, char manager[KINF__MANAGER_SIZE],
                             struct kinf__refusal *refusal)
{
    const char *kind = kind_of(method);
    char text[PARAMETER_SIZE];
    bool is_write =
        strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0;
    int failed = check_timeout(query, refusal);

    if (failed == 0 && is_write && read_parameter(query, "dryRun", text)) {
        failed = check_dry_run(kind, text, refusal);
        verb->is_dry_run = true;
    }
    if (failed == 0)
        failed = read_validation(query, kind, &verb->validation, refusal);
    if (failed == 0)
        failed = read_manager(query, kind, agent, manager, refusal);
    verb->manager = manager;
    return failed;
}

int kinf__write_options_read_force(struct kinf_str query, bool is_apply, bool *ret_force,
                                   struct kinf__refusal *refusal)
{
    char text[PARAMETER_SIZE];
    bool has_force = read_parameter(query, "force", text);

    *ret_force = has_force && (strcmp(text, "true") == 0 || strcmp(text, "1") == 0);
    if (!is_apply)
        return has_force ? refuse_option(refusal, "PatchOptions", "force", "FieldValueForbidden",
                                         "Forbidden: may not be specified for non-apply patch")
                         : 0;
    if (!read_parameter(query, "fieldManager", text) || *text == '\0')
        return refuse_option(refusal, "PatchOptions", "fieldManager", "FieldValueRequired",
                             "Required value: is required for apply patch");
    return 0;
}

/* --- deletions --- */

/* As texts, wherever they come from; "": not said. */
struct said {
    char dry_run[PARAMETER_SIZE];
    char propagation[PARAMETER_SIZE];
    char orphans[PARAMETER_SIZE];
};

static int set_propagation(const struct said *said, struct kinf__delete_options *options,
                           struct kinf__refusal *refusal)
{
    static const struct {
        const char *name;
        enum kinf__propagation propagation;
    } known[] = {
        { "Background", KINF__PROPAGATION_BACKGROUND },
        { "Foreground", KINF__PROPAGATION_FOREGROUND },
        { "Orphan", KINF__PROPAGATION_ORPHAN },
    };
    const char *text = said->propagation;

    if (*text != '\0' && *said->orphans != '\0') {
        char message[PARAMETER_SIZE + 96];

        snprintf(message, sizeof message,
                 "Invalid value: \"%s\": orphanDependents and deletionPropagation cannot be both "
                 "set",
                 text);
        return refuse_option(refusal, "DeleteOptions", "propagationPolicy", "FieldValueInvalid",
                             message);
    }
    if (*said->orphans != '\0')
        options->propagation = strcmp(said->orphans, "true") == 0 ? KINF__PROPAGATION_ORPHAN
                                                                  : KINF__PROPAGATION_BACKGROUND;
    for (size_t i = 0; i < KINF__ARRAY_LEN(known); i++) {
        if (strcmp(known[i].name, text) == 0)
            options->propagation = known[i].propagation;
    }
    if (*text == '\0' || options->propagation != KINF__PROPAGATION_DEFAULT)
        return 0;
    return refuse_unsupported(refusal, "DeleteOptions", "propagationPolicy",
                              "Unsupported value: \"%s\": supported values: \"Foreground\", "
                              "\"Background\", \"Orphan\", \"nil\"",
                              text);
}

/* To say a negative one is to say one second. */
static int64_t positive(int64_t grace_s)
{
    return grace_s < 0 ? 1 : grace_s;
}

static int read_delete_query(struct kinf_str query, struct said *said,
                             struct kinf__delete_options *options, struct kinf__refusal *refusal)
{
    char text[PARAMETER_SIZE], *end;

    read_parameter(query, "dryRun", said->dry_run);
    read_parameter(query, "propagationPolicy", said->propagation);
    read_parameter(query, "orphanDependents", said->orphans);
    if (!read_parameter(query, "gracePeriodSeconds", text))
        return 0;
    options->grace_s = positive(strtoll(text, &end, 10));
    return *text != '\0' && *end == '\0'
               ? 0
               : kinf__refuse_bad_request(refusal,
                                          "strconv.ParseInt: parsing \"%s\": invalid syntax", text);
}

static int read_delete_body(const struct cJSON *body, struct said *said,
                            struct kinf__delete_options *options, struct kinf__refusal *refusal)
{
    const struct cJSON *preconditions = kinf__doc_get(body, "preconditions"),
                       *dry_run = kinf__doc_get(body, "dryRun"),
                       *orphans = kinf__doc_get(body, "orphanDependents"),
                       *grace = kinf__doc_get(body, "gracePeriodSeconds");
    const char *kind = kinf__doc_text(body, "kind", NULL);

    if (*kind != '\0' && strcmp(kind, "DeleteOptions") != 0)
        return kinf__refuse_bad_request(
            refusal, "no kind \"%s\" is registered for version \"%s\" in scheme " KINF__GO_SCHEME,
            kind, kinf__doc_text(body, "apiVersion", NULL));
    if (cJSON_IsString(grace))
        return kinf__refuse_bad_request(refusal,
                                        "json: cannot unmarshal string into Go struct field "
                                        "DeleteOptions.gracePeriodSeconds of type int64");
    if (kinf__doc_is_integer(grace))
        options->grace_s = positive(kinf__doc_integer(body, "gracePeriodSeconds", 0));
    options->uid = kinf__doc_text(preconditions, "uid", NULL);
    options->resource_version = kinf__doc_text(preconditions, "resourceVersion", NULL);
    if (cJSON_IsArray(dry_run) && cJSON_IsString(dry_run->child))
        snprintf(said->dry_run, sizeof said->dry_run, "%s", dry_run->child->valuestring);
    if (cJSON_IsBool(orphans))
        snprintf(said->orphans, sizeof said->orphans, "%s",
                 cJSON_IsTrue(orphans) ? "true" : "false");
    snprintf(said->propagation, sizeof said->propagation, "%s",
             kinf__doc_text(body, "propagationPolicy", NULL));
    return 0;
}

int kinf__write_options_read_delete(struct kinf_str query, const struct cJSON *body,
                                    struct kinf__delete_options *options, bool *is_dry_run,
                                    struct kinf__refusal *refusal)
{
    struct said said = { "", "", "" };
    int failed = body != NULL ? read_delete_body(body, &said, options, refusal)
                              : read_delete_query(query, &said, options, refusal);

    if (failed == 0 && *said.dry_run != '\0')
        failed = check_dry_run("DeleteOptions", said.dry_run, refusal);
    if (failed < 0)
        return failed;
    *is_dry_run = *said.dry_run != '\0';
    return set_propagation(&said, options, refusal);
}
