/*
 * The policy file, and what its rules allow. Neighbours: access_policy_review.c answers reviews by it,
 * yaml.c keeps the texts that all of it points into.
 */
#include "apiserver/access_policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "rest/secret.h"
#include "apiserver/access_policy_priv.h"

#define GROUP_MASTERS         "system:masters"
#define GROUP_AUTHENTICATED   "system:authenticated"
#define GROUP_UNAUTHENTICATED "system:unauthenticated"

/* What system:public-info-viewer, system:discovery and system:basic-user say in a cluster. */
static const char builtin_rules[] =
    "rules:\n"
    "- groups: [system:authenticated, system:unauthenticated]\n"
    "  nonResourceURLs: [/healthz, /livez, /readyz, /version, /version/]\n"
    "  verbs: [get]\n"
    "- groups: [system:authenticated]\n"
    "  nonResourceURLs: [/api, /api/*, /apis, /apis/*, /healthz, /livez, /openapi, /openapi/*,\n"
    "    /readyz, /version, /version/]\n"
    "  verbs: [get]\n"
    "- groups: [system:authenticated]\n"
    "  apiGroups: [authorization.k8s.io]\n"
    "  resources: [selfsubjectaccessreviews, selfsubjectrulesreviews]\n"
    "  verbs: [create]\n"
    "- groups: [system:authenticated]\n"
    "  apiGroups: [authentication.k8s.io]\n"
    "  resources: [selfsubjectreviews]\n"
    "  verbs: [create]\n";

/* --- reading --- */

/* Where reading is. */
struct reading {
    struct kinf__access_policy *policy;
    const struct kinf__yaml *yaml;
    struct kinf_error *err;
};

static int complain(const struct reading *reading, const struct kinf__yaml_node *node,
                    const char *what)
{
    return kinf__yaml_error(reading->err, KINF_ERR_CONFIG, reading->yaml, node, "%s", what);
}

/* A list of texts; `n_spare` more places are left free behind them. */
static int read_words(const struct reading *reading, const struct kinf__yaml_node *mapping,
                      const char *key, size_t n_spare, struct kinf__words *ret_words)
{
    const struct kinf__yaml_node *node = NULL;
    int failed = kinf__yaml_read_sequence(reading->yaml, mapping, key, &node, reading->err);
    size_t n = node != NULL ? node->n_items : 0;

    if (failed < 0 || n + n_spare == 0)
        return failed;
    ret_words->items = calloc(n + n_spare, sizeof *ret_words->items);
    if (ret_words->items == NULL)
        return kinf__error_no_memory(reading->err);
    for (size_t i = 0; i < n; i++) {
        if (node->items[i]->type != KINF__YAML_SCALAR)
            return kinf__yaml_error(reading->err, KINF_ERR_CONFIG, reading->yaml, node->items[i],
                                    "%s: a list of texts is expected", key);
        ret_words->items[ret_words->n_items++] = node->items[i]->text.bytes;
    }
    return 0;
}

static int check_mapping(const struct reading *reading, const struct kinf__yaml_node *node,
                         const char *const *keys)
{
    if (node->type != KINF__YAML_MAPPING)
        return complain(reading, node, "a mapping is expected");
    return kinf__yaml_check_keys(reading->yaml, node, keys, reading->err);
}

static int read_user(const struct reading *reading, const struct kinf__yaml_node *node,
                     struct kinf__access_policy_entry *entry)
{
    static const char *const keys[] = { "name", "token", "uid", "groups", NULL };
    const char **const texts[] = { &entry->name, &entry->token, &entry->uid };
    int failed = check_mapping(reading, node, keys);

    entry->node = node;
    for (size_t i = 0; i < KINF__ARRAY_LEN(texts); i++) {
        *texts[i] = "";
        if (failed == 0)
            failed = kinf__yaml_read_string(reading->yaml, node, keys[i], texts[i], reading->err);
    }
    if (failed == 0)
        failed = read_words(reading, node, "groups", 1, &entry->groups);
    if (failed < 0)
        return failed;
    if (entry->name[0] == '\0')
        return complain(reading, node, "a user needs a name");
    if (entry->token[0] == '\0' || !kinf__is_token(entry->token))
        return complain(reading, node,
                        "a user needs a token: printable ASCII characters without blanks");
    entry->groups.items[entry->groups.n_items++] = GROUP_AUTHENTICATED;
    return 0;
}

/* As the server has it for roles: a rule that could never apply is a mistake. */
static int check_rule(const struct reading *reading, const struct kinf__yaml_node *node,
                      const struct kinf__access_policy_rule *rule)
{
    if (rule->users.n_items + rule->groups.n_items == 0)
        return complain(reading, node, "a rule needs users or groups");
    if (rule->verbs.n_items == 0)
        return complain(reading, node, "a rule needs verbs");
    if (rule->urls.n_items == 0 && rule->resources.n_items == 0)
        return complain(reading, node, "a rule needs resources or nonResourceURLs");
    if (rule->urls.n_items != 0 && rule->resources.n_items + rule->api_groups.n_items +
                                           rule->names.n_items + rule->namespaces.n_items !=
                                       0)
        return complain(reading, node, "a rule is for resources or for nonResourceURLs, not both");
    if (rule->resources.n_items != 0 && rule->api_groups.n_items == 0)
        return complain(reading, node, "a rule for resources needs apiGroups: [\"\"] is the core");
    return 0;
}

static int read_rule(const struct reading *reading, const struct kinf__yaml_node *node,
                     struct kinf__access_policy_rule *rule)
{
    static const char *const keys[] = { "users",           "groups",    "namespaces",
                                        "apiGroups",       "resources", "resourceNames",
                                        "nonResourceURLs", "verbs",     NULL };
    struct kinf__words *const lists[] = { &rule->users,      &rule->groups,    &rule->namespaces,
                                          &rule->api_groups, &rule->resources, &rule->names,
                                          &rule->urls,       &rule->verbs };
    int failed = check_mapping(reading, node, keys);

    for (size_t i = 0; failed == 0 && keys[i] != NULL; i++)
        failed = read_words(reading, node, keys[i], 0, lists[i]);
    return failed < 0 ? failed : check_rule(reading, node, rule);
}

static int read_users(const struct reading *reading, const struct kinf__yaml_node *root)
{
    struct kinf__access_policy *policy = reading->policy;
    const struct kinf__yaml_node *node = NULL;
    int failed = kinf__yaml_read_sequence(reading->yaml, root, "users", &node, reading->err);

    if (failed < 0 || node == NULL)
        return failed;
    policy->users = calloc(node->n_items + 1, sizeof *policy->users);
    policy->by_token = calloc(node->n_items + 1, sizeof(struct kinf__access_policy_entry *));
    if (policy->users == NULL || policy->by_token == NULL)
        return kinf__error_no_memory(reading->err);
    for (size_t i = 0; failed == 0 && i < node->n_items; i++)
        failed = read_user(reading, node->items[i], &policy->users[policy->n_users++]);
    return failed;
}

static int read_rules(const struct reading *reading, const struct kinf__yaml_node *root)
{
    struct kinf__access_policy *policy = reading->policy;
    const struct kinf__yaml_node *node = NULL;
    struct kinf__access_policy_rule *rules;
    int failed = kinf__yaml_read_sequence(reading->yaml, root, "rules", &node, reading->err);

    if (failed < 0 || node == NULL)
        return failed;
    rules = reallocarray(policy->rules, policy->n_rules + node->n_items + 1, sizeof *rules);
    if (rules == NULL)
        return kinf__error_no_memory(reading->err);
    policy->rules = rules;
    for (size_t i = 0; failed == 0 && i < node->n_items; i++) {
        rules[policy->n_rules] = (struct kinf__access_policy_rule){ 0 };
        failed = read_rule(reading, node->items[i], &rules[policy->n_rules++]);
    }
    return failed;
}

/* Equal ones as in the file, so that the later one is complained about. */
static int in_order(const struct kinf__access_policy_entry *left,
                    const struct kinf__access_policy_entry *right, int order)
{
    return order != 0 ? order : (left > right) - (left < right);
}

static int compare_names(const void *a, const void *b)
{
    const struct kinf__access_policy_entry *const *left = a, *const *right = b;

    return in_order(*left, *right, strcmp((*left)->name, (*right)->name));
}

static int compare_tokens(const void *a, const void *b)
{
    const struct kinf__access_policy_entry *const *left = a, *const *right = b;

    return in_order(*left, *right, strcmp((*left)->token, (*right)->token));
}

/* A doubled name or token would be somebody's by chance. Leaves by_token sorted by its name. */
static int sort_users(const struct reading *reading)
{
    struct kinf__access_policy *policy = reading->policy;
    const struct kinf__access_policy_entry **sorted = policy->by_token;
    size_t n = policy->n_users;

    for (size_t i = 0; i < n; i++)
        sorted[i] = &policy->users[i];
    if (n != 0)
        qsort(sorted, n, sizeof *sorted, compare_names);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return complain(reading, sorted[i]->node, "there is another user of this name");
    }
    if (n != 0)
        qsort(sorted, n, sizeof *sorted, compare_tokens);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(sorted[i - 1]->token, sorted[i]->token) == 0)
            return complain(reading, sorted[i]->node, "there is another user with this token");
    }
    return 0;
}

static int read_policy(struct kinf__access_policy *policy, struct kinf_error *err)
{
    static const char *const keys[] = { "users", "rules", NULL };
    const struct reading reading = { policy, policy->yaml, err };
    const struct reading builtin = { policy, policy->builtin, err };
    const struct kinf__yaml_node *root = kinf__yaml_root(policy->yaml);
    int failed = 0;

    if (!kinf__yaml_is_null(root))
        failed = check_mapping(&reading, root, keys);
    if (failed == 0)
        failed = read_users(&reading, root);
    if (failed == 0)
        failed = sort_users(&reading);
    if (failed == 0)
        failed = read_rules(&reading, root);
    return failed < 0 ? failed : read_rules(&builtin, kinf__yaml_root(policy->builtin));
}

/* Consumes `take_yaml`. */
static int new_policy(struct kinf__yaml *take_yaml, struct kinf__access_policy **ret_policy,
                      struct kinf_error *err)
{
    struct kinf__access_policy *policy = calloc(1, sizeof *policy);
    int failed;

    if (policy == NULL) {
        kinf__yaml_free(take_yaml);
        return kinf__error_no_memory(err);
    }
    policy->yaml = take_yaml;
    failed = kinf__yaml_parse(kinf_str_from(builtin_rules), "built-in", &policy->builtin, err);
    if (failed == 0)
        failed = read_policy(policy, err);
    if (failed < 0) {
        kinf__access_policy_free(policy);
        return failed;
    }
    *ret_policy = policy;
    return 0;
}

int kinf__access_policy_read(const char *file, struct kinf__access_policy **ret_policy,
                             struct kinf_error *err)
{
    struct kinf__yaml *yaml;
    int failed = kinf__yaml_read(file, &yaml, err);

    return failed < 0 ? failed : new_policy(yaml, ret_policy, err);
}

int kinf__access_policy_parse(struct kinf_str text, const char *file,
                              struct kinf__access_policy **ret_policy, struct kinf_error *err)
{
    struct kinf__yaml *yaml;
    int failed = kinf__yaml_parse(text, file, &yaml, err);

    return failed < 0 ? failed : new_policy(yaml, ret_policy, err);
}

static void release_rule(struct kinf__access_policy_rule *rule)
{
    struct kinf__words *const lists[] = { &rule->users,      &rule->groups,    &rule->namespaces,
                                          &rule->api_groups, &rule->resources, &rule->names,
                                          &rule->urls,       &rule->verbs };

    for (size_t i = 0; i < KINF__ARRAY_LEN(lists); i++)
        free(lists[i]->items);
}

void kinf__access_policy_free(struct kinf__access_policy *policy)
{
    if (policy == NULL)
        return;
    for (size_t i = 0; i < policy->n_users; i++)
        free(policy->users[i].groups.items);
    for (size_t i = 0; i < policy->n_rules; i++)
        release_rule(&policy->rules[i]);
    free(policy->users);
    free(policy->by_token);
    free(policy->rules);
    kinf__yaml_free(policy->yaml);
    kinf__yaml_free(policy->builtin);
    free(policy);
}

/* --- users --- */

static struct kinf__access_policy_user user_of(const struct kinf__access_policy_entry *entry)
{
    return (struct kinf__access_policy_user){ entry->name, entry->uid, entry->groups.items,
                                              entry->groups.n_items };
}

bool kinf__access_policy_get_user(const struct kinf__access_policy *policy, size_t i,
                                  struct kinf__access_policy_user *ret_user, const char **ret_token)
{
    if (i >= policy->n_users)
        return false;
    *ret_user = user_of(&policy->users[i]);
    *ret_token = policy->users[i].token;
    return true;
}

static int compare_to_token(const void *key, const void *item)
{
    const struct kinf_str *token = key;
    const struct kinf__access_policy_entry *const *entry = item;

    return kinf_str_compare(*token, kinf_str_from((*entry)->token));
}

bool kinf__access_policy_find_token(const struct kinf__access_policy *policy, struct kinf_str token,
                                    struct kinf__access_policy_user *ret_user)
{
    static const char *const admin_groups[] = { GROUP_MASTERS, GROUP_AUTHENTICATED };
    const struct kinf__access_policy_entry *const *found = NULL;

    if (policy == NULL && token.len != 0) {
        *ret_user = (struct kinf__access_policy_user){ "kubernetes-admin", "", admin_groups,
                                                       KINF__ARRAY_LEN(admin_groups) };
        return true;
    }
    if (policy != NULL && policy->n_users != 0)
        found = bsearch(&token, policy->by_token, policy->n_users, sizeof *policy->by_token,
                        compare_to_token);
    if (found != NULL)
        *ret_user = user_of(*found);
    return found != NULL;
}

struct kinf__access_policy_user kinf__access_policy_anonymous(void)
{
    static const char *const groups[] = { GROUP_UNAUTHENTICATED };

    return (struct kinf__access_policy_user){ "system:anonymous", "", groups, 1 };
}

/* --- rules --- */

static bool has_text(const char *const *items, size_t n_items, const char *text)
{
    for (size_t i = 0; i < n_items; i++) {
        if (strcmp(items[i], text) == 0)
            return true;
    }
    return false;
}

static bool has_word(const struct kinf__words *words, const char *text)
{
    return has_text(words->items, words->n_items, text);
}

static bool has_word_or_all(const struct kinf__words *words, const char *text)
{
    return has_word(words, "*") || has_word(words, text);
}

bool kinf__access_policy_is_master(const struct kinf__access_policy_user *user)
{
    return has_text(user->groups, user->n_groups, GROUP_MASTERS);
}

bool kinf__access_policy_is_about(const struct kinf__access_policy_rule *rule,
                                  const struct kinf__access_policy_user *user)
{
    if (has_word(&rule->users, user->name))
        return true;
    for (size_t i = 0; i < user->n_groups; i++) {
        if (has_word(&rule->groups, user->groups[i]))
            return true;
    }
    return false;
}

bool kinf__access_policy_is_in(const struct kinf__access_policy_rule *rule, const char *name_space)
{
    return rule->namespaces.n_items == 0 ||
           (name_space[0] != '\0' && has_word(&rule->namespaces, name_space));
}

/* "pods", "pods/log", all of them ("*"), or a subresource of all ("*" + "/scale"). */
static bool matches_resource(const char *pattern, const char *resource, const char *subresource)
{
    size_t len = strlen(resource);

    if (strcmp(pattern, "*") == 0)
        return true;
    if (subresource[0] == '\0')
        return strcmp(pattern, resource) == 0;
    if (strncmp(pattern, "*/", 2) == 0)
        return strcmp(pattern + 2, subresource) == 0;
    return strncmp(pattern, resource, len) == 0 && pattern[len] == '/' &&
           strcmp(pattern + len + 1, subresource) == 0;
}

static bool has_resource(const struct kinf__words *resources,
                         const struct kinf__attributes *attributes)
{
    for (size_t i = 0; i < resources->n_items; i++) {
        if (matches_resource(resources->items[i], attributes->resource, attributes->subresource))
            return true;
    }
    return false;
}

static bool has_path(const struct kinf__words *urls, const char *path)
{
    for (size_t i = 0; i < urls->n_items; i++) {
        size_t len = strlen(urls->items[i]);

        if (strcmp(urls->items[i], path) == 0 || (len != 0 && urls->items[i][len - 1] == '*' &&
                                                  strncmp(urls->items[i], path, len - 1) == 0))
            return true;
    }
    return false;
}

static bool is_allowed_by(const struct kinf__access_policy_rule *rule,
                          const struct kinf__attributes *attributes)
{
    if (!has_word_or_all(&rule->verbs, attributes->verb))
        return false;
    if (attributes->path[0] != '\0')
        return has_path(&rule->urls, attributes->path);
    return kinf__access_policy_is_in(rule, attributes->name_space) &&
           has_word_or_all(&rule->api_groups, attributes->group) &&
           has_resource(&rule->resources, attributes) &&
           (rule->names.n_items == 0 || has_word(&rule->names, attributes->name));
}

bool kinf__access_policy_allows(const struct kinf__access_policy *policy,
                                const struct kinf__access_policy_user *user,
                                const struct kinf__attributes *attributes)
{
    if (policy == NULL || kinf__access_policy_is_master(user))
        return true;
    for (size_t i = 0; i < policy->n_rules; i++) {
        if (kinf__access_policy_is_about(&policy->rules[i], user) &&
            is_allowed_by(&policy->rules[i], attributes))
            return true;
    }
    return false;
}
