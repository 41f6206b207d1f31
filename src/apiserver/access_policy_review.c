/*
 * Reviews. Neighbours: access_policy.c has the users and the rules.
 */
#include "apiserver/access_policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "json/quote.h"
#include "apiserver/access_policy_priv.h"
#include "apiserver/sim.h"
#include "document/tree.h"

#define AUDIENCE "https://kubernetes.default.svc"

static int refuse(struct kinf_error *err, int http_status, const char *message)
{
    int failed = kinf__error_set(err, KINF_ERR_INVALID, "%s", message);

    if (err != NULL)
        err->http_status = http_status;
    return failed;
}

static struct cJSON *new_texts(const char *const *items, size_t n_items)
{
    KINF__AUTO_DOC *texts = cJSON_CreateArray();

    for (size_t i = 0; texts != NULL && i < n_items; i++) {
        if (kinf__doc_append(texts, cJSON_CreateString(items[i])) < 0)
            return NULL;
    }
    return KINF__TAKE(texts);
}

/* With username, uid and groups, as far as there are any. */
static struct cJSON *new_user(const struct kinf__access_policy_user *user)
{
    KINF__AUTO_DOC *tree = cJSON_CreateObject();

    if (tree == NULL || kinf__doc_set_text(tree, "username", user->name) < 0 ||
        (user->uid[0] != '\0' && kinf__doc_set_text(tree, "uid", user->uid) < 0) ||
        (user->n_groups != 0 &&
         kinf__doc_set(tree, "groups", new_texts(user->groups, user->n_groups)) < 0))
        return NULL;
    return KINF__TAKE(tree);
}

/* --- who somebody is --- */

static bool is_for_us(const struct cJSON *spec)
{
    const struct cJSON *audiences = kinf__doc_get(spec, "audiences");

    return !cJSON_IsArray(audiences) || audiences->child == NULL ||
           kinf__doc_has_text(audiences, AUDIENCE);
}

static int review_token(const struct kinf__access_policy *policy, struct cJSON *review,
                        struct kinf_error *err)
{
    static const char *const audiences[] = { AUDIENCE };
    const char *token = kinf__doc_text(review, "spec", "token", NULL);
    struct kinf__access_policy_user user;
    struct cJSON *status;

    if (token[0] == '\0')
        return refuse(err, 400, "token is required for TokenReview in authentication");
    if (kinf__doc_set(review, "status", cJSON_CreateObject()) < 0)
        return kinf__error_no_memory(err);
    status = kinf__doc_get(review, "status");
    if (is_for_us(kinf__doc_get(review, "spec")) &&
        kinf__access_policy_find_token(policy, kinf_str_from(token), &user)) {
        if (kinf__doc_set(status, "authenticated", cJSON_CreateTrue()) < 0 ||
            kinf__doc_set(status, "user", new_user(&user)) < 0 ||
            kinf__doc_set(status, "audiences", new_texts(audiences, 1)) < 0)
            return kinf__error_no_memory(err);
    } else if (kinf__doc_set(status, "user", cJSON_CreateObject()) < 0 ||
               kinf__doc_set_text(status, "error", "invalid bearer token") < 0) {
        return kinf__error_no_memory(err);
    }
    return 0;
}

static int review_self(const struct kinf__access_policy_user *caller, struct cJSON *review,
                       struct kinf_error *err)
{
    struct cJSON *metadata = kinf__doc_object(review, "metadata"), *status;
    char created[KINF__RFC3339_SIZE];

    kinf__sim_time(created);
    if (metadata == NULL || kinf__doc_set_text(metadata, "creationTimestamp", created) < 0 ||
        (status = kinf__doc_object(review, "status")) == NULL ||
        kinf__doc_set(status, "userInfo", new_user(caller)) < 0)
        return kinf__error_no_memory(err);
    return 0;
}

/* --- what somebody may --- */

/* What is wrong with a spec, in the server's words. */
struct faults {
    struct kinf__buffer text;
    size_t n_faults;
};

static int add_fault(struct faults *faults, const char *field, const char *value, const char *why)
{
    return kinf__buffer_printf(&faults->text, "%s%s: Invalid value: %s: %s",
                               faults->n_faults++ != 0 ? ", " : "", field, value, why);
}

/* The attributes of a path as the server shows them; "null" if there are none. */
static int write_path(const struct cJSON *path, struct kinf__buffer *out)
{
    if (path == NULL)
        return kinf__buffer_printf(out, "null");
    if (kinf__buffer_printf(out, "{\"Path\":") < 0 ||
        kinf__quote(out, kinf_str_from(kinf__doc_text(path, "path", NULL))) < 0 ||
        kinf__buffer_printf(out, ",\"Verb\":") < 0 ||
        kinf__quote(out, kinf_str_from(kinf__doc_text(path, "verb", NULL))) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, "}");
}

enum access_kind { ACCESS_ANY, ACCESS_LOCAL, ACCESS_SELF };

/* A review as it was posted. */
struct access {
    enum access_kind kind;
    const struct cJSON *spec;
    const struct cJSON *resource; /* NULL: none */
    const struct cJSON *path;
    const char *name_space; /* of the review itself */
};

static const struct cJSON *object_or_null(const struct cJSON *node)
{
    return cJSON_IsObject(node) ? node : NULL;
}

static struct access access_of(enum access_kind kind, const struct cJSON *review)
{
    const struct cJSON *spec = kinf__doc_get(review, "spec");

    return (struct access){ .kind = kind,
                            .spec = spec,
                            .resource = object_or_null(kinf__doc_get(spec, "resourceAttributes")),
                            .path = object_or_null(kinf__doc_get(spec, "nonResourceAttributes")),
                            .name_space = kinf__doc_text(review, "metadata", "namespace", NULL) };
}

static int check_local(const struct access *access, const char *path, struct faults *faults)
{
    KINF__AUTO_BUFFER quoted = KINF__BUFFER_INIT;
    const char *name_space = kinf__doc_text(access->resource, "namespace", NULL);

    if (access->path != NULL)
        return add_fault(faults, "spec.nonResourceAttributes", path,
                         "disallowed on this kind of request");
    if (access->resource == NULL || strcmp(name_space, access->name_space) == 0)
        return 0;
    if (kinf__quote(&quoted, kinf_str_from(name_space)) < 0 || kinf__buffer_cstr(&quoted) == NULL)
        return KINF_ERR_NO_MEMORY;
    return add_fault(faults, "spec.resourceAttributes.namespace", quoted.bytes,
                     "must match metadata.namespace");
}

static int find_faults(const struct access *access, struct faults *faults)
{
    KINF__AUTO_BUFFER path = KINF__BUFFER_INIT;
    const struct cJSON *groups = kinf__doc_get(access->spec, "groups");
    int failed = write_path(access->path, &path);

    if (failed < 0 || kinf__buffer_cstr(&path) == NULL)
        return KINF_ERR_NO_MEMORY;
    if ((access->resource != NULL) == (access->path != NULL))
        failed = add_fault(faults, "spec", path.bytes,
                           "exactly one of nonResourceAttributes or resourceAttributes must be "
                           "specified");
    if (failed == 0 && access->kind != ACCESS_SELF &&
        kinf__doc_text(access->spec, "user", NULL)[0] == '\0' &&
        (!cJSON_IsArray(groups) || groups->child == NULL))
        failed = add_fault(faults, "spec.user", "\"\"",
                           "at least one of user or group must be specified");
    return failed == 0 && access->kind == ACCESS_LOCAL ? check_local(access, path.bytes, faults)
                                                       : failed;
}

static int check_access(const struct access *access, struct kinf_error *err)
{
    KINF__AUTO_BUFFER message = KINF__BUFFER_INIT;
    struct faults faults = { KINF__BUFFER_INIT, 0 };
    bool are_many;
    int failed = find_faults(access, &faults);

    are_many = faults.n_faults > 1;
    if (failed == 0 && faults.n_faults != 0 &&
        (kinf__buffer_printf(&message, ".authorization.k8s.io \"\" is invalid: %s%.*s%s",
                             are_many ? "[" : "", (int)faults.text.len, faults.text.bytes,
                             are_many ? "]" : "") < 0 ||
         kinf__buffer_cstr(&message) == NULL))
        failed = KINF_ERR_NO_MEMORY;
    kinf__buffer_release(&faults.text);
    if (failed < 0)
        return kinf__error_no_memory(err);
    return faults.n_faults != 0 ? refuse(err, 422, message.bytes) : 0;
}

static struct kinf__attributes attributes_of(const struct access *access)
{
    const struct cJSON *resource = access->resource, *path = access->path;

    /* One of both is NULL, and its texts are "". */
    return (struct kinf__attributes){
        .verb = kinf__doc_text(path != NULL ? path : resource, "verb", NULL),
        .path = kinf__doc_text(path, "path", NULL),
        .group = kinf__doc_text(resource, "group", NULL),
        .version = kinf__doc_text(resource, "version", NULL),
        .resource = kinf__doc_text(resource, "resource", NULL),
        .subresource = kinf__doc_text(resource, "subresource", NULL),
        .name_space = kinf__doc_text(resource, "namespace", NULL),
        .name = kinf__doc_text(resource, "name", NULL),
        .label_selector = "",
        .field_selector = "",
    };
}

/* Whom the spec names; *groups is to be freed. */
static int subject_of(const struct cJSON *spec, const char ***groups,
                      struct kinf__access_policy_user *ret_user)
{
    const struct cJSON *list = kinf__doc_get(spec, "groups"), *group;
    size_t n = 0;

    *groups = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof **groups);
    if (*groups == NULL)
        return KINF_ERR_NO_MEMORY;
    cJSON_ArrayForEach(group, list)
    {
        if (cJSON_IsString(group))
            (*groups)[n++] = group->valuestring;
    }
    *ret_user = (struct kinf__access_policy_user){ kinf__doc_text(spec, "user", NULL),
                                                   kinf__doc_text(spec, "uid", NULL), *groups, n };
    return 0;
}

static int review_access(const struct kinf__access_policy *policy, enum access_kind kind,
                         const struct kinf__access_policy_user *caller, struct cJSON *review,
                         struct kinf_error *err)
{
    const struct access access = access_of(kind, review);
    KINF__AUTO_FREE const char **groups = NULL;
    struct kinf__access_policy_user user = *caller;
    struct kinf__attributes attributes;
    struct cJSON *status;
    int failed = check_access(&access, err);

    if (failed < 0)
        return failed;
    if (kind != ACCESS_SELF && subject_of(access.spec, &groups, &user) < 0)
        return kinf__error_no_memory(err);
    attributes = attributes_of(&access);
    status = cJSON_CreateObject();
    if (kinf__doc_set(review, "status", status) < 0 ||
        kinf__doc_set(status, "allowed",
                      cJSON_CreateBool(kinf__access_policy_allows(policy, &user, &attributes))) < 0)
        return kinf__error_no_memory(err);
    return 0;
}

/* --- all that somebody may --- */

static int set_words(struct cJSON *object, const char *name, const struct kinf__words *words)
{
    return words->n_items != 0
               ? kinf__doc_set(object, name, new_texts(words->items, words->n_items))
               : 0;
}

/* One rule as an object: of resources, or of paths. */
static struct cJSON *new_rule(const struct kinf__access_policy_rule *rule)
{
    KINF__AUTO_DOC *tree = cJSON_CreateObject();

    if (tree == NULL || set_words(tree, "verbs", &rule->verbs) < 0 ||
        set_words(tree, "apiGroups", &rule->api_groups) < 0 ||
        set_words(tree, "resources", &rule->resources) < 0 ||
        set_words(tree, "resourceNames", &rule->names) < 0 ||
        set_words(tree, "nonResourceURLs", &rule->urls) < 0)
        return NULL;
    return KINF__TAKE(tree);
}

static int add_rules(const struct kinf__access_policy *policy,
                     const struct kinf__access_policy_user *user, const char *name_space,
                     struct cJSON *resources, struct cJSON *paths)
{
    const char *every[] = { "*" };
    const struct kinf__words all = { every, 1 };
    const struct kinf__access_policy_rule all_resources = { .verbs = all,
                                                            .api_groups = all,
                                                            .resources = all },
                                          all_paths = { .verbs = all, .urls = all };
    int failed = 0;

    if ((policy == NULL || kinf__access_policy_is_master(user)) &&
        (kinf__doc_append(resources, new_rule(&all_resources)) < 0 ||
         kinf__doc_append(paths, new_rule(&all_paths)) < 0))
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; failed == 0 && policy != NULL && i < policy->n_rules; i++) {
        const struct kinf__access_policy_rule *rule = &policy->rules[i];

        if (kinf__access_policy_is_about(rule, user) && kinf__access_policy_is_in(rule, name_space))
            failed = kinf__doc_append(rule->urls.n_items != 0 ? paths : resources, new_rule(rule));
    }
    return failed;
}

static int review_rules(const struct kinf__access_policy *policy,
                        const struct kinf__access_policy_user *caller, struct cJSON *review,
                        struct kinf_error *err)
{
    const char *name_space = kinf__doc_text(review, "spec", "namespace", NULL);
    struct cJSON *status;

    if (name_space[0] == '\0')
        return refuse(err, 400, "no namespace on request");
    status = cJSON_CreateObject();
    if (kinf__doc_set(review, "status", status) < 0 ||
        kinf__doc_set(status, "resourceRules", cJSON_CreateArray()) < 0 ||
        kinf__doc_set(status, "nonResourceRules", cJSON_CreateArray()) < 0 ||
        kinf__doc_set(status, "incomplete", cJSON_CreateFalse()) < 0 ||
        add_rules(policy, caller, name_space, kinf__doc_get(status, "resourceRules"),
                  kinf__doc_get(status, "nonResourceRules")) < 0)
        return kinf__error_no_memory(err);
    /* The server does not say for which namespace it was asked. */
    return kinf__doc_set(review, "spec", cJSON_CreateObject()) < 0 ? kinf__error_no_memory(err) : 0;
}

int kinf__access_policy_review(const struct kinf__access_policy *policy, const char *kind,
                               const struct kinf__access_policy_user *caller, struct cJSON *review,
                               struct kinf_error *err)
{
    if (strcmp(kind, "TokenReview") == 0)
        return review_token(policy, review, err);
    if (strcmp(kind, "SelfSubjectReview") == 0)
        return review_self(caller, review, err);
    if (strcmp(kind, "SelfSubjectRulesReview") == 0)
        return review_rules(policy, caller, review, err);
    if (strcmp(kind, "SubjectAccessReview") == 0)
        return review_access(policy, ACCESS_ANY, caller, review, err);
    if (strcmp(kind, "LocalSubjectAccessReview") == 0)
        return review_access(policy, ACCESS_LOCAL, caller, review, err);
    if (strcmp(kind, "SelfSubjectAccessReview") == 0)
        return review_access(policy, ACCESS_SELF, caller, review, err);
    return kinf__error_set(err, KINF_ERR_NOT_FOUND, "there is no review of kind %s", kind);
}
