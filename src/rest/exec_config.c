/*
 * A user's `exec` in a kubeconfig, and what of the cluster its plugin is told. Neighbours: exec.c
 * runs it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "json/scan.h"
#include "json/quote.h"
#include "rest/kubeconfig_priv.h"

#define CLUSTER_EXTENSION "client.authentication.k8s.io/exec"

/* --- YAML as JSON --- */

/* What is not quoted and reads as a number of JSON is one. */
static bool is_literal(const struct kinf__yaml_node *node)
{
    size_t len;

    return !node->is_quoted && node->text.len != 0 && strchr("\"[{", *node->text.bytes) == NULL &&
           kinf__json_scan_all(node->text, 1, &len) == 0;
}

/* The name of a member is a text in JSON, also where it is none in YAML. */
static int append_name(struct kinf__buffer *json, const struct kinf__yaml_node *key)
{
    struct kinf_str text = key->text;
    bool is_true;

    if (kinf__yaml_is_old_bool(key, &is_true))
        text = is_true ? KINF_STR("true") : KINF_STR("false");
    return kinf__quote(json, text) < 0 ? KINF_ERR_NO_MEMORY : kinf__buffer_append(json, ":", 1);
}

static int append_json(struct kinf__buffer *json, const struct kinf__yaml_node *node);

static int append_items(struct kinf__buffer *json, const struct kinf__yaml_node *node)
{
    bool is_mapping = node->type == KINF__YAML_MAPPING;
    int failed = kinf__buffer_append(json, is_mapping ? "{" : "[", 1);

    for (size_t i = 0; failed == 0 && i < node->n_items; i++) {
        if (i != 0)
            failed = kinf__buffer_append(json, ",", 1);
        if (failed == 0 && is_mapping)
            failed = append_name(json, node->items[2 * i]);
        if (failed == 0)
            failed = append_json(json, node->items[is_mapping ? 2 * i + 1 : i]);
    }
    return failed < 0 ? failed : kinf__buffer_append(json, is_mapping ? "}" : "]", 1);
}

/* The tree's depth is limited (yaml.h), so this is, too. */
static int append_json(struct kinf__buffer *json, const struct kinf__yaml_node *node)
{
    bool is_true;

    if (kinf__yaml_is_null(node))
        return kinf__buffer_append_str(json, KINF_STR("null"));
    if (kinf__yaml_is_old_bool(node, &is_true))
        return kinf__buffer_append_str(json, is_true ? KINF_STR("true") : KINF_STR("false"));
    if (node->type != KINF__YAML_SCALAR)
        return append_items(json, node);
    return is_literal(node) ? kinf__buffer_append_str(json, node->text)
                            : kinf__quote(json, kinf_str_from(node->text.bytes));
}

/* --- the cluster --- */

static int append_member(struct kinf__buffer *json, const char *name, const char *text)
{
    if (text == NULL)
        return 0;
    if (kinf__buffer_printf(json, ",\"%s\":", name) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__quote(json, kinf_str_from(text));
}

static int append_authority(struct kinf__buffer *json, const char *ca_pem)
{
    if (ca_pem == NULL)
        return 0;
    if (kinf__buffer_append_str(json, KINF_STR(",\"certificate-authority-data\":\"")) < 0 ||
        kinf__secret_append_base64(json, ca_pem, strlen(ca_pem)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(json, "\"", 1);
}

/* What the cluster has for plugins among its extensions; NULL if there is nothing. */
static const struct kinf__yaml_node *extension_of(const struct kinf__kubeconfig_entry *cluster)
{
    const struct kinf__yaml_node *list = kinf__yaml_get(cluster->fields, "extensions");

    for (size_t i = 0; list != NULL && list->type == KINF__YAML_SEQUENCE && i < list->n_items;
         i++) {
        const struct kinf__yaml_node *name = kinf__yaml_get(list->items[i], "name");

        if (name != NULL && kinf_str_equal(name->text, KINF_STR(CLUSTER_EXTENSION)))
            return kinf__yaml_get(list->items[i], "extension");
    }
    return NULL;
}

static int append_extension(struct kinf__buffer *json, const struct kinf__kubeconfig_entry *cluster)
{
    const struct kinf__yaml_node *extension = extension_of(cluster);

    if (extension == NULL)
        return 0;
    if (kinf__buffer_append_str(json, KINF_STR(",\"config\":")) < 0)
        return KINF_ERR_NO_MEMORY;
    return append_json(json, extension);
}

static char *make_cluster_json(const struct kinf__kubeconfig_entry *cluster,
                               const struct kinf__cluster_config *config)
{
    struct kinf__buffer json = KINF__BUFFER_INIT;

    if (kinf__buffer_append_str(&json, KINF_STR("{\"server\":")) < 0 ||
        kinf__quote(&json, kinf_str_from(config->server)) < 0 ||
        append_member(&json, "tls-server-name", config->tls_server_name) < 0 ||
        (config->insecure_skip_tls_verify &&
         kinf__buffer_append_str(&json, KINF_STR(",\"insecure-skip-tls-verify\":true")) < 0) ||
        append_authority(&json, config->ca_pem) < 0 ||
        append_member(&json, "proxy-url", config->proxy_url) < 0 ||
        append_extension(&json, cluster) < 0 || kinf__buffer_append(&json, "}", 1) < 0 ||
        kinf__buffer_cstr(&json) == NULL) {
        kinf__secret_buffer_release(&json);
        return NULL;
    }
    return json.bytes;
}

/* --- the plugin --- */

static int read_version(const struct kinf__kubeconfig_entry *exec,
                        enum kinf__exec_version *ret_version, struct kinf_error *err)
{
    const char *text = "";
    int failed = kinf__yaml_read_string(exec->file, exec->fields, "apiVersion", &text, err);

    if (failed < 0)
        return failed;
    for (*ret_version = KINF__EXEC_V1; *ret_version <= KINF__EXEC_V1BETA1; (*ret_version)++) {
        if (strcmp(text, kinf__exec_version_to_string(*ret_version)) == 0)
            return 0;
    }
    return kinf__yaml_error(
        err, KINF_ERR_CONFIG, exec->file, exec->place,
        "exec: apiVersion is neither client.authentication.k8s.io/v1 nor .../v1beta1");
}

/* Whether the plugin can do with the terminal that it does not get here. */
static int read_mode(const struct kinf__kubeconfig_entry *exec, enum kinf__exec_version version,
                     bool *ret_needs_terminal, struct kinf_error *err)
{
    const char *mode = version == KINF__EXEC_V1BETA1 ? "IfAvailable" : "";
    int failed = kinf__yaml_read_string(exec->file, exec->fields, "interactiveMode", &mode, err);

    if (failed < 0)
        return failed;
    *ret_needs_terminal = strcmp(mode, "Always") == 0;
    if (*ret_needs_terminal || strcmp(mode, "IfAvailable") == 0 || strcmp(mode, "Never") == 0)
        return 0;
    return kinf__yaml_error(err, KINF_ERR_CONFIG, exec->file, exec->place,
                            "exec: interactiveMode is none of Never, IfAvailable, Always%s",
                            *mode == '\0' ? "; v1 needs it" : "");
}

static int read_command(const struct kinf__kubeconfig_entry *exec, char **ret_command,
                        struct kinf_error *err)
{
    const char *text = "";
    int failed = kinf__yaml_read_string(exec->file, exec->fields, "command", &text, err);

    if (failed < 0)
        return failed;
    if (*text == '\0')
        return kinf__yaml_error(err, KINF_ERR_CONFIG, exec->file, exec->place,
                                "exec: there is no command");
    *ret_command = strchr(text, '/') != NULL ? kinf__kubeconfig_resolve(exec, text) : strdup(text);
    return *ret_command != NULL ? 0 : kinf__error_no_memory(err);
}

static int read_args(const struct kinf__kubeconfig_entry *exec, struct kinf__string_list *args,
                     struct kinf_error *err)
{
    const struct kinf__yaml_node *list = NULL;
    int failed = kinf__yaml_read_sequence(exec->file, exec->fields, "args", &list, err);

    for (size_t i = 0; failed == 0 && list != NULL && i < list->n_items; i++) {
        if (list->items[i]->type != KINF__YAML_SCALAR)
            failed = kinf__yaml_error(err, KINF_ERR_CONFIG, exec->file, list->items[i],
                                      "exec: args is a list of texts");
        else if (kinf__string_list_append(args, strdup(list->items[i]->text.bytes)) < 0)
            failed = kinf__error_no_memory(err);
    }
    return failed;
}

static int add_variable(const struct kinf__kubeconfig_entry *exec,
                        const struct kinf__yaml_node *item, struct kinf__string_list *env,
                        struct kinf_error *err)
{
    const char *name = "", *value = "";
    KINF__AUTO_SECRET_BUFFER text = KINF__BUFFER_INIT;
    int failed;

    if ((failed = kinf__yaml_read_string(exec->file, item, "name", &name, err)) < 0 ||
        (failed = kinf__yaml_read_string(exec->file, item, "value", &value, err)) < 0)
        return failed;
    if (*name == '\0' || strchr(name, '=') != NULL)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, exec->file, item,
                                "exec: each item of env has a name (without '=') and a value");
    if (kinf__buffer_reserve(&text, strlen(name) + strlen(value) + 2) < 0 ||
        kinf__buffer_printf(&text, "%s=%s", name, value) < 0 ||
        kinf__string_list_append(env, strdup(text.bytes)) < 0)
        return kinf__error_no_memory(err);
    return 0;
}

static int read_env(const struct kinf__kubeconfig_entry *exec, struct kinf__string_list *env,
                    struct kinf_error *err)
{
    const struct kinf__yaml_node *list = NULL;
    int failed = kinf__yaml_read_sequence(exec->file, exec->fields, "env", &list, err);

    for (size_t i = 0; failed == 0 && list != NULL && i < list->n_items; i++)
        failed = add_variable(exec, list->items[i], env, err);
    return failed;
}

static int read_plugin(const struct kinf__kubeconfig_entry *exec,
                       const struct kinf__kubeconfig_entry *cluster,
                       const struct kinf__cluster_config *config, struct kinf__exec_config *plugin,
                       bool *ret_needs_terminal, struct kinf_error *err)
{
    bool wants_cluster = false;
    int failed;

    if ((failed = read_version(exec, &plugin->version, err)) < 0 ||
        (failed = read_mode(exec, plugin->version, ret_needs_terminal, err)) < 0 ||
        (failed = read_command(exec, &plugin->command, err)) < 0 ||
        (failed = read_args(exec, &plugin->args, err)) < 0 ||
        (failed = read_env(exec, &plugin->env, err)) < 0 ||
        (failed = kinf__kubeconfig_string(exec, "installHint", &plugin->install_hint, err)) < 0 ||
        (failed = kinf__yaml_read_old_bool(exec->file, exec->fields, "provideClusterInfo",
                                           &wants_cluster, err)) < 0)
        return failed;
    if (wants_cluster && (plugin->cluster_json = make_cluster_json(cluster, config)) == NULL)
        return kinf__error_no_memory(err);
    return 0;
}

static bool has_credential(const struct kinf__cluster_config *config)
{
    return config->token != NULL || config->token_file != NULL || config->username != NULL ||
           config->client_cert_pem != NULL;
}

int kinf__kubeconfig_read_exec(const struct kinf__kubeconfig_entry *user,
                               const struct kinf__kubeconfig_entry *cluster,
                               struct kinf__cluster_config *config, struct kinf_error *err)
{
    struct kinf__kubeconfig_entry exec = { .file = user->file, .name = user->name };
    struct kinf__exec_config *plugin;
    bool needs_terminal = false;
    int failed = kinf__yaml_read_mapping(user->file, user->fields, "exec", &exec.fields, err);

    if (failed < 0 || exec.fields == NULL)
        return failed;
    exec.place = exec.fields;
    plugin = calloc(1, sizeof *plugin);
    if (plugin == NULL)
        return kinf__error_no_memory(err);
    failed = read_plugin(&exec, cluster, config, plugin, &needs_terminal, err);
    if (failed == 0 && !has_credential(config)) {
        if (needs_terminal)
            failed = kinf__yaml_error(
                err, KINF_ERR_UNSUPPORTED, exec.file, exec.place,
                "user '%s': the credential plugin %s wants a terminal (interactiveMode: Always), "
                "and there is none here; use another plugin, a token or a client certificate",
                user->name, plugin->command);
        else
            config->exec = KINF__TAKE(plugin);
    }
    kinf__exec_config_free(plugin);
    return failed;
}
