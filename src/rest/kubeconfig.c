/*
 * kubeconfig files: finding them, merging a list of them, resolving a context. Neighbours:
 * kubeconfig_entries.c reads cluster and user, client.c checks certificates, in_cluster.c is what
 * is used where there is no file.
 *
 * Merging follows upstream: of two files' entries with one name the first file's counts as a whole,
 * and the first file that names a current-context wins.
 */
#include "rest/kubeconfig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "rest/kubeconfig_priv.h"

#define N_FILES_MAX 32

/* The files of $KUBECONFIG, in its order. */
struct files {
    struct kinf__yaml *items[N_FILES_MAX];
    size_t n_items;
};

static void files_release(struct files *files)
{
    for (size_t i = 0; i < files->n_items; i++)
        kinf__yaml_free(files->items[i]);
}

void kinf__cluster_config_release(struct kinf__cluster_config *config)
{
    free(config->cluster_source);
    free(config->user_source);
    free(config->cluster_file);
    free(config->user_file);
    free(config->server);
    free(config->tls_server_name);
    kinf__secret_free(config->proxy_url);
    free(config->ca_pem);
    free(config->ca_file);
    free(config->client_cert_pem);
    free(config->client_cert_file);
    kinf__secret_free(config->client_key_pem);
    free(config->client_key_file);
    kinf__secret_free(config->token);
    free(config->token_file);
    free(config->username);
    kinf__secret_free(config->password);
    kinf__exec_config_free(config->exec);
    kinf__string_list_release(&config->impersonation);
    free(config->name_space);
    *config = (struct kinf__cluster_config){ 0 };
}

/* --- finding entries --- */

/* The entry of that name in one file's list `section`, whose fields stand under `key`. */
static int find_in_file(const struct kinf__yaml *file, const char *section, const char *key,
                        const char *name, struct kinf__kubeconfig_entry *ret_entry,
                        struct kinf_error *err)
{
    const struct kinf__yaml_node *list = NULL;
    int failed = kinf__yaml_read_sequence(file, kinf__yaml_root(file), section, &list, err);
    bool is_found = false;

    for (size_t i = 0; failed == 0 && list != NULL && i < list->n_items; i++) {
        const struct kinf__yaml_node *item = list->items[i];
        struct kinf__kubeconfig_entry entry = { .file = file, .place = item };

        if ((failed = kinf__yaml_read_string(file, item, "name", &entry.name, err)) < 0)
            return failed;
        if (entry.name == NULL || strcmp(entry.name, name) != 0)
            continue;
        if (is_found)
            return kinf__yaml_error(err, KINF_ERR_CONFIG, file, item, "a second %s '%s'", key,
                                    name);
        failed = kinf__yaml_read_mapping(file, item, key, &entry.fields, err);
        if (entry.fields != NULL)
            entry.place = entry.fields;
        *ret_entry = entry;
        is_found = true;
    }
    return failed < 0 || is_found ? failed : KINF_ERR_NOT_FOUND;
}

/* Where a name stands; file NULL: it is an option's. */
struct reference {
    const struct kinf__yaml *file;
    const struct kinf__yaml_node *place;
};

static const char *others(const struct files *files)
{
    return files->n_items > 1 ? " and the files after it" : "";
}

static int find_entry(const struct files *files, const char *section, const char *key,
                      const char *name, struct reference named_by,
                      struct kinf__kubeconfig_entry *ret_entry, struct kinf_error *err)
{
    int failed = KINF_ERR_NOT_FOUND;

    for (size_t i = 0; i < files->n_items && failed == KINF_ERR_NOT_FOUND; i++)
        failed = find_in_file(files->items[i], section, key, name, ret_entry, err);
    if (failed != KINF_ERR_NOT_FOUND)
        return failed;
    if (named_by.file != NULL)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, named_by.file, named_by.place,
                                "there is no %s '%s' (see: kubectl config view)", key, name);
    return kinf__error_set(err, KINF_ERR_CONFIG,
                           "%s%s: there is no %s '%s' (see: kubectl config view)",
                           kinf__yaml_file(files->items[0]), others(files), key, name);
}

/* --- resolving --- */

static bool have_contexts(const struct files *files)
{
    for (size_t i = 0; i < files->n_items; i++) {
        if (kinf__yaml_get(kinf__yaml_root(files->items[i]), "contexts") != NULL)
            return true;
    }
    return false;
}

static int current_context(const struct files *files, const char **ret_name,
                           struct reference *ret_named_by, struct kinf_error *err)
{
    for (size_t i = 0; i < files->n_items; i++) {
        const struct kinf__yaml *file = files->items[i];
        const struct kinf__yaml_node *root = kinf__yaml_root(file);
        int failed = kinf__yaml_read_string(file, root, "current-context", ret_name, err);

        if (failed < 0)
            return failed;
        if (*ret_name != NULL && **ret_name != '\0') {
            *ret_named_by = (struct reference){ file, kinf__yaml_get(root, "current-context") };
            return 0;
        }
    }
    return kinf__error_set(
        err, KINF_ERR_CONFIG, "%s%s: no %s", kinf__yaml_file(files->items[0]), others(files),
        have_contexts(files)
            ? "current-context; choose one: kubectl config use-context NAME, or --context"
            : "contexts: is it a kubeconfig? (current-context and contexts are missing)");
}

static int note_source(char **source, char **file, const struct kinf__kubeconfig_entry *entry,
                       const char *key, struct kinf_error *err)
{
    if (asprintf(source, "%s, %s %s", kinf__yaml_file(entry->file), key, entry->name) < 0)
        *source = NULL;
    *file = strdup(kinf__yaml_file(entry->file));
    return *source != NULL && *file != NULL ? 0 : kinf__error_no_memory(err);
}

/* The text of an option; NULL if it is not given. */
static const char *given(const char *text)
{
    return text != NULL && *text != '\0' ? text : NULL;
}

static int resolve_user(const struct files *files, const char *name, struct reference named_by,
                        const struct kinf__kubeconfig_entry *cluster,
                        struct kinf__cluster_config *config, struct kinf_error *err)
{
    struct kinf__kubeconfig_entry user = { .file = NULL };
    int failed;

    if (name == NULL || *name == '\0')
        return 0;
    if ((failed = find_entry(files, "users", "user", name, named_by, &user, err)) < 0 ||
        (failed = note_source(&config->user_source, &config->user_file, &user, "user", err)) < 0)
        return failed;
    return kinf__kubeconfig_read_user(&user, cluster, config, err);
}

static int resolve_names(const struct files *files, const struct kinf_client_options *options,
                         const struct kinf__kubeconfig_entry *context,
                         struct kinf__cluster_config *config, struct kinf_error *err)
{
    const struct reference named_by = { context->file, context->place }, option = { NULL, NULL };
    const char *cluster_name = NULL, *user_name = NULL;
    bool is_cluster_given = given(options->cluster) != NULL,
         is_user_given = given(options->user) != NULL;
    struct kinf__kubeconfig_entry cluster = { .file = NULL };
    int failed;

    if ((failed = kinf__yaml_read_string(context->file, context->fields, "cluster", &cluster_name,
                                         err)) < 0 ||
        (failed = kinf__yaml_read_string(context->file, context->fields, "user", &user_name, err)) <
            0 ||
        (failed = kinf__kubeconfig_string(context, "namespace", &config->name_space, err)) < 0)
        return failed;
    if (is_cluster_given)
        cluster_name = options->cluster;
    if (cluster_name == NULL)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, context->file, context->place,
                                "the context '%s' names no cluster", context->name);
    if ((failed = find_entry(files, "clusters", "cluster", cluster_name,
                             is_cluster_given ? option : named_by, &cluster, err)) < 0 ||
        (failed = note_source(&config->cluster_source, &config->cluster_file, &cluster, "cluster",
                              err)) < 0 ||
        (failed = kinf__kubeconfig_read_cluster(&cluster, config, err)) < 0)
        return failed;
    return resolve_user(files, is_user_given ? options->user : user_name,
                        is_user_given ? option : named_by, &cluster, config, err);
}

static int resolve(const struct files *files, const struct kinf_client_options *options,
                   struct kinf__cluster_config *config, struct kinf_error *err)
{
    const char *name = given(options->context);
    struct reference named_by = { NULL, NULL };
    struct kinf__kubeconfig_entry context = { .file = NULL };
    int failed = name != NULL ? 0 : current_context(files, &name, &named_by, err);

    if (failed == 0)
        failed = find_entry(files, "contexts", "context", name, named_by, &context, err);
    return failed < 0 ? failed : resolve_names(files, options, &context, config, err);
}

/* --- finding files --- */

static int add_file(struct files *files, const char *path, bool may_be_missing,
                    struct kinf_error *err)
{
    struct kinf_error told = KINF_ERROR_INIT;
    int failed;

    if (files->n_items == N_FILES_MAX)
        return kinf__error_set(err, KINF_ERR_LIMIT, "KUBECONFIG names more than %d files",
                               N_FILES_MAX);
    failed = kinf__yaml_read_first(path, &files->items[files->n_items], &told);
    if (failed < 0 && may_be_missing && told.sys_errno == ENOENT)
        return 0;
    if (failed < 0) {
        if (err != NULL) {
            *err = told;
            kinf__error_prefix(err, "kubeconfig");
        }
        return failed;
    }
    files->n_items++;
    return 0;
}

static bool has_file(const struct files *files, const char *path)
{
    for (size_t i = 0; i < files->n_items; i++) {
        if (strcmp(kinf__yaml_file(files->items[i]), path) == 0)
            return true;
    }
    return false;
}

/* $KUBECONFIG: missing files, empty names and names that were there are passed over. */
static int add_list(struct files *files, const char *list, struct kinf_error *err)
{
    int failed = 0;

    while (failed == 0 && *list != '\0') {
        size_t len = strcspn(list, ":");
        KINF__AUTO_FREE char *path = strndup(list, len);

        if (path == NULL)
            return kinf__error_no_memory(err);
        if (len != 0 && !has_file(files, path))
            failed = add_file(files, path, true, err);
        list += len + (list[len] == ':' ? 1 : 0);
    }
    return failed;
}

static int add_home(struct files *files, struct kinf_error *err)
{
    const char *home = getenv("HOME");
    KINF__AUTO_FREE char *path = NULL;

    if (home == NULL || *home == '\0')
        return 0;
    if (asprintf(&path, "%s/.kube/config", home) < 0) {
        path = NULL;
        return kinf__error_no_memory(err);
    }
    return add_file(files, path, true, err);
}

static int add_files(struct files *files, const char *path, struct kinf_error *err)
{
    const char *list = getenv("KUBECONFIG");

    if (path != NULL)
        return add_file(files, path, false, err);
    if (list != NULL && *list != '\0')
        return add_list(files, list, err);
    return add_home(files, err);
}

static bool is_empty(const struct kinf__yaml *file)
{
    static const char *const keys[] = { "contexts", "clusters", "users", "current-context" };
    const struct kinf__yaml_node *root = kinf__yaml_root(file);

    for (size_t i = 0; i < KINF__ARRAY_LEN(keys); i++) {
        const struct kinf__yaml_node *node = kinf__yaml_get(root, keys[i]);

        if (node != NULL && (node->n_items != 0 || node->text.len != 0))
            return false;
    }
    return root->type == KINF__YAML_MAPPING || kinf__yaml_is_null(root);
}

static bool are_empty(const struct files *files)
{
    for (size_t i = 0; i < files->n_items; i++) {
        if (!is_empty(files->items[i]))
            return false;
    }
    return true;
}

static bool is_entry_named(const struct kinf_client_options *options)
{
    return given(options->context) != NULL || given(options->cluster) != NULL ||
           given(options->user) != NULL;
}

/* As upstream, files that nobody names and that say nothing are none in a pod with a token. */
static int find_whether_files_count(const struct files *files,
                                    const struct kinf_client_options *options, bool *ret_count,
                                    struct kinf_error *err)
{
    KINF__AUTO_FREE char *token_file = NULL;
    int failed = 0;

    *ret_count = files->n_items != 0;
    if (!*ret_count || options->kubeconfig != NULL || is_entry_named(options) || !are_empty(files))
        return 0;
    failed = kinf__in_cluster_token_file(&token_file, err);
    *ret_count = token_file == NULL || access(token_file, F_OK) != 0;
    return failed;
}

/* What is asked for by name can only be in a kubeconfig. */
static int missing_name(const struct kinf_client_options *options, struct kinf_error *err)
{
    const char *what = given(options->context) != NULL   ? "context"
                       : given(options->cluster) != NULL ? "cluster"
                                                         : "user";
    const char *name = given(options->context) != NULL   ? options->context
                       : given(options->cluster) != NULL ? options->cluster
                                                         : options->user;

    return kinf__error_set(err, KINF_ERR_CONFIG,
                           "no kubeconfig that could have a %s '%s'; give --kubeconfig FILE or set "
                           "KUBECONFIG",
                           what, name);
}

static int load(struct files *files, const struct kinf_client_options *options,
                struct kinf__cluster_config *config, struct kinf_error *err)
{
    const char *list = getenv("KUBECONFIG");
    bool do_files_count = false;
    int failed = add_files(files, options->kubeconfig, err);

    if (failed == 0)
        failed = find_whether_files_count(files, options, &do_files_count, err);
    if (failed < 0)
        return failed;
    if (do_files_count)
        return resolve(files, options, config, err);
    if (is_entry_named(options))
        return missing_name(options, err);
    if (kinf__in_cluster_is_possible())
        return kinf__in_cluster_load(config, err);
    return kinf__error_set(
        err, KINF_ERR_CONFIG,
        "no kubeconfig: %s%s does not exist, and this is no pod of a cluster; give --kubeconfig "
        "FILE or set KUBECONFIG",
        list != NULL && *list != '\0' ? "KUBECONFIG=" : "",
        list != NULL && *list != '\0' ? list : "~/.kube/config");
}

int kinf__cluster_config_load(const struct kinf_client_options *options,
                              struct kinf__cluster_config *ret_config, struct kinf_error *err)
{
    struct kinf__cluster_config config = { 0 };
    struct files files = { .n_items = 0 };
    int failed = load(&files, options, &config, err);

    files_release(&files);
    if (failed == 0)
        failed = kinf__cluster_config_override(&config, options, err);
    if (failed < 0) {
        kinf__cluster_config_release(&config);
        return failed;
    }
    *ret_config = config;
    return 0;
}
