/*
 * What access_policy.c and access_policy_review.c share.
 *
 * Threads: constant once read; any thread.
 */
#ifndef KINF_APISERVER_ACCESS_POLICY_PRIV_H
#define KINF_APISERVER_ACCESS_POLICY_PRIV_H

#include "apiserver/access_policy.h"
#include "yaml/yaml.h"

/* Texts of the file; the array is owned. */
struct kinf__words {
    const char **items;
    size_t n_items;
};

struct kinf__access_policy_entry {
    const struct kinf__yaml_node *node;
    const char *name;
    const char *token;
    const char *uid;
    struct kinf__words groups;
};

struct kinf__access_policy_rule {
    struct kinf__words users;
    struct kinf__words groups;
    struct kinf__words namespaces; /* none: all */
    struct kinf__words api_groups;
    struct kinf__words resources;
    struct kinf__words names; /* none: all */
    struct kinf__words urls;
    struct kinf__words verbs;
};

struct kinf__access_policy {
    struct kinf__yaml *yaml;
    struct kinf__yaml *builtin;
    struct kinf__access_policy_entry *users; /* as in the file */
    const struct kinf__access_policy_entry **by_token;
    size_t n_users;
    struct kinf__access_policy_rule *rules; /* the file's, then the built-in ones */
    size_t n_rules;
};

bool kinf__access_policy_is_master(const struct kinf__access_policy_user *user);
bool kinf__access_policy_is_about(const struct kinf__access_policy_rule *rule,
                                  const struct kinf__access_policy_user *user);
bool kinf__access_policy_is_in(const struct kinf__access_policy_rule *rule, const char *name_space);

#endif
