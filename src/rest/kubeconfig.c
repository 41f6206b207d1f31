/*
 * kubeconfig files: finding them, merging a list of them, resolving a context. Neighbours: client.c
 * checks certificates, in_cluster.c is what is used where there is no file.
 *
 * Merging follows upstream: of two files' entries with one name the first file's counts as a whole,
 * and the first file that names a current-context wins.
 */
#include "rest/kubeconfig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/buffer.h"
#include "base/error.h"
#include "rest/in_cluster.h"
#include "yaml/yaml.h"

#define N_FILES_MAX 32

/* The files of $KUBECONFIG, in its order. */
struct files {
    struct kinf__yaml *items[N_FILES_MAX];
    size_t n_items;
};

/* A named entry and the file it is from. */
struct entry {
    const struct kinf__yaml *file;
    const char *name;
    const struct kinf__yaml_node *place;  /* for messages */
    const struct kinf__yaml_node *fields; /* NULL if there are none */
};

static void files_release(struct files *files)
{
    for (size_t i = 0; i < files->n_items; i++)
        kinf__yaml_free(files->items[i]);
}

void kinf__cluster_config_release(struct kinf__cluster_config *config)
{
    char *const secrets[] = { config->client_key_pem, config->token, config->password };

    for (size_t i = 0; i < KINF__ARRAY_LEN(secrets); i++) {
        if (secrets[i] != NULL)
            explicit_bzero(secrets[i], strlen(secrets[i]));
    }
    free(config->source);
    free(config->server);
    free(config->tls_server_name);
    free(config->proxy_url);
    free(config->ca_pem);
    free(config->client_cert_pem);
    free(config->client_key_pem);
    free(config->token);
    free(config->token_file);
    free(config->username);
    free(config->password);
    free(config->name_space);
    *config = (struct kinf__cluster_config){ 0 };
}

/* --- finding entries --- */

/* The entry of that name in one file's list `section`, whose fields stand under `key`. */
static int find_in_file(const struct kinf__yaml *file, const char *section, const char *key,
                        const char *name, struct entry *ret_entry, struct kinf_error *err)
{
    const struct kinf__yaml_node *list = NULL;
    int failed = kinf__yaml_read_sequence(file, kinf__yaml_root(file), section, &list, err);
    bool is_found = false;

    for (size_t i = 0; failed == 0 && list != NULL && i < list->n_items; i++) {
        const struct kinf__yaml_node *item = list->items[i];
        struct entry entry = { .file = file, .place = item };

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

static int find_entry(const struct files *files, const char *section, const char *key,
                      const char *name, struct entry *ret_entry, struct kinf_error *err)
{
    int failed = KINF_ERR_NOT_FOUND;

    for (size_t i = 0; i < files->n_items && failed == KINF_ERR_NOT_FOUND; i++)
        failed = find_in_file(files->items[i], section, key, name, ret_entry, err);
    if (failed == KINF_ERR_NOT_FOUND)
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "%s%s: there is no %s '%s' (see: kubectl config view)",
                               kinf__yaml_file(files->items[0]),
                               files->n_items > 1 ? " and the files after it" : "", key, name);
    return failed;
}

/* --- reading fields --- */

static int copy_string(const struct entry *entry, const char *key, char **copy,
                       struct kinf_error *err)
{
    const char *text = NULL;
    int failed = kinf__yaml_read_string(entry->file, entry->fields, key, &text, err);

    if (failed < 0 || text == NULL || *text == '\0')
        return failed;
    *copy = strdup(text);
    return *copy != NULL ? 0 : kinf__error_no_memory(err);
}

/* A path in a kubeconfig is meant from the kubeconfig's folder. */
static int append_path(struct kinf__buffer *path, const struct entry *entry, const char *text)
{
    const char *file = kinf__yaml_file(entry->file), *slash = strrchr(file, '/');

    if (*text != '/' && slash != NULL &&
        kinf__buffer_append(path, file, (size_t)(slash + 1 - file)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(path, text, strlen(text));
}

static int read_pem_file(const struct entry *entry, const char *key, const char *text, char **pem,
                         struct kinf_error *err)
{
    KINF__AUTO_BUFFER path = KINF__BUFFER_INIT;
    int failed;

    if (append_path(&path, entry, text) < 0 || kinf__buffer_cstr(&path) == NULL)
        return kinf__error_no_memory(err);
    failed = kinf__read_text_file(path.bytes, pem, err);
    if (failed < 0)
        kinf__error_prefix(err, "%s: %s", kinf__yaml_file(entry->file), key);
    return failed;
}

static int bad_base64(const struct entry *entry, const char *key, struct kinf_error *err)
{
    return kinf__yaml_error(err, KINF_ERR_CONFIG, entry->file, kinf__yaml_get(entry->fields, key),
                            "%s is no base64 of a text", key);
}

/* A block has lines, which the decoder does not take. */
static size_t copy_without_blanks(char *to, const char *text)
{
    size_t len = 0;

    for (; *text != '\0'; text++) {
        if (strchr(" \t\r\n", *text) == NULL)
            to[len++] = *text;
    }
    to[len] = '\0';
    return len;
}

/* Returns the decoded length, or -1. */
static int decode(unsigned char *to, const char *text, size_t len)
{
    size_t n_padding = 0;
    int n;

    while (n_padding < 2 && n_padding < len && text[len - 1 - n_padding] == '=')
        n_padding++;
    /* The decoder would take a '=' anywhere. */
    if (len % 4 != 0 || strcspn(text, "=") != len - n_padding)
        return -1;
    n = EVP_DecodeBlock(to, (const unsigned char *)text, (int)len);
    n = n < 0 ? n : n - (int)n_padding;
    return n < 0 || memchr(to, '\0', (size_t)n) != NULL ? -1 : n;
}

static int decode_base64(const struct entry *entry, const char *key, const char *text, char **pem,
                         struct kinf_error *err)
{
    size_t size = strlen(text) + 1, len;
    KINF__AUTO_FREE char *dense = malloc(size);
    KINF__AUTO_FREE unsigned char *bytes = malloc(size);
    int n;

    if (bytes == NULL || dense == NULL)
        return kinf__error_no_memory(err);
    len = copy_without_blanks(dense, text);
    n = decode(bytes, dense, len);
    explicit_bzero(dense, size);
    if (n < 0)
        return bad_base64(entry, key, err);
    bytes[n] = '\0';
    *pem = (char *)KINF__TAKE(bytes);
    return 0;
}

/* KEY-data holds the content in base64 and wins over KEY, which names a file. */
static int read_pem(const struct entry *entry, const char *key, const char *data_key, char **pem,
                    struct kinf_error *err)
{
    const char *data = NULL, *path = NULL;
    int failed;

    if ((failed = kinf__yaml_read_string(entry->file, entry->fields, data_key, &data, err)) < 0 ||
        (failed = kinf__yaml_read_string(entry->file, entry->fields, key, &path, err)) < 0)
        return failed;
    if (data != NULL && *data != '\0')
        return decode_base64(entry, data_key, data, pem, err);
    if (path != NULL && *path != '\0')
        return read_pem_file(entry, key, path, pem, err);
    return 0;
}

/* A key without a value would mean the system's authorities: another trust than was meant. */
static int check_authority_is_written(const struct entry *cluster, struct kinf_error *err)
{
    const struct kinf__yaml_node *fields = cluster->fields;

    for (size_t i = 0; fields != NULL && i < fields->n_items; i++) {
        const struct kinf__yaml_node *key = fields->items[2 * i], *value = fields->items[2 * i + 1];

        if (kinf_str_equal(key->text, KINF_STR("certificate-authority-data")) &&
            kinf__yaml_is_null(value) && value->text.len == 0)
            return kinf__yaml_error(
                err, KINF_ERR_CONFIG, cluster->file, key,
                "certificate-authority-data has no value; a '#' behind a blank begins a comment");
    }
    return 0;
}

/* The address goes into messages: it may neither break their line nor tell a password. */
static int check_server(const struct entry *cluster, const char *server, struct kinf_error *err)
{
    const char *wrong = NULL;

    if (server == NULL)
        wrong = "this cluster has no server";
    else if (strchr(server, '@') != NULL)
        wrong = "server: a user name in the address is not supported; write it under 'user'";
    for (const char *at = server; wrong == NULL && *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~')
            wrong = "server: an address has printable ASCII without blanks only";
    }
    return wrong != NULL
               ? kinf__yaml_error(err, KINF_ERR_CONFIG, cluster->file, cluster->place, "%s", wrong)
               : 0;
}

static int read_cluster(const struct entry *cluster, struct kinf__cluster_config *config,
                        struct kinf_error *err)
{
    int failed;

    if ((failed = copy_string(cluster, "server", &config->server, err)) < 0 ||
        (failed = check_server(cluster, config->server, err)) < 0 ||
        (failed = copy_string(cluster, "tls-server-name", &config->tls_server_name, err)) < 0 ||
        (failed = copy_string(cluster, "proxy-url", &config->proxy_url, err)) < 0 ||
        (failed = kinf__yaml_read_bool(cluster->file, cluster->fields, "insecure-skip-tls-verify",
                                       &config->insecure_skip_tls_verify, err)) < 0 ||
        (failed = check_authority_is_written(cluster, err)) < 0 ||
        (failed = read_pem(cluster, "certificate-authority", "certificate-authority-data",
                           &config->ca_pem, err)) < 0)
        return failed;
    if (config->insecure_skip_tls_verify && config->ca_pem != NULL)
        return kinf__yaml_error(
            err, KINF_ERR_CONFIG, cluster->file, cluster->place,
            "a certificate authority and insecure-skip-tls-verify exclude each other");
    for (size_t len = strlen(config->server); len > 0 && config->server[len - 1] == '/'; len--)
        config->server[len - 1] = '\0';
    return 0;
}

static int read_token(const struct entry *user, struct kinf__cluster_config *config,
                      struct kinf_error *err)
{
    int failed = copy_string(user, "token", &config->token, err);

    for (const char *at = config->token; failed == 0 && at != NULL && *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~')
            failed = kinf__yaml_error(err, KINF_ERR_CONFIG, user->file, user->place,
                                      "token: it has a blank, a line's end or another byte that "
                                      "no token has");
    }
    return failed;
}

static int read_token_file(const struct entry *user, struct kinf__cluster_config *config,
                           struct kinf_error *err)
{
    KINF__AUTO_BUFFER path = KINF__BUFFER_INIT;
    KINF__AUTO_FREE char *token = NULL;
    const char *text = NULL;
    int failed = kinf__yaml_read_string(user->file, user->fields, "tokenFile", &text, err);

    if (failed < 0 || text == NULL || *text == '\0')
        return failed;
    if (append_path(&path, user, text) < 0 || kinf__buffer_cstr(&path) == NULL ||
        (config->token_file = strdup(path.bytes)) == NULL)
        return kinf__error_no_memory(err);
    if (config->token != NULL)
        return 0;
    /* Read here for the error alone: the file is read again when it is used. */
    failed = kinf__read_text_file(path.bytes, &token, err);
    if (failed < 0)
        kinf__error_prefix(err, "%s: tokenFile", kinf__yaml_file(user->file));
    else
        explicit_bzero(token, strlen(token));
    return failed;
}

static int refuse_unsupported(const struct entry *user, struct kinf_error *err)
{
    static const struct {
        const char *key;
        const char *advice;
    } keys[] = {
        { "exec", "use a token or a client certificate" },
        { "auth-provider", "use a token or a client certificate" },
        /* Leaving it out would mean other rights. */
        { "as", "give a user that has the rights itself" },
        { "as-uid", "give a user that has the rights itself" },
        { "as-groups", "give a user that has the rights itself" },
        { "as-user-extra", "give a user that has the rights itself" },
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(keys); i++) {
        const struct kinf__yaml_node *node = kinf__yaml_get(user->fields, keys[i].key);

        if (node != NULL)
            return kinf__yaml_error(err, KINF_ERR_UNSUPPORTED, user->file, node,
                                    "user '%s': '%s' is not supported; %s", user->name, keys[i].key,
                                    keys[i].advice);
    }
    return 0;
}

static int read_user(const struct entry *user, struct kinf__cluster_config *config,
                     struct kinf_error *err)
{
    int failed;

    if ((failed = refuse_unsupported(user, err)) < 0 ||
        (failed = read_token(user, config, err)) < 0 ||
        (failed = read_token_file(user, config, err)) < 0 ||
        (failed = copy_string(user, "username", &config->username, err)) < 0 ||
        (failed = copy_string(user, "password", &config->password, err)) < 0 ||
        (failed = read_pem(user, "client-certificate", "client-certificate-data",
                           &config->client_cert_pem, err)) < 0 ||
        (failed = read_pem(user, "client-key", "client-key-data", &config->client_key_pem, err)) <
            0)
        return failed;
    if ((config->token != NULL || config->token_file != NULL) && config->username != NULL)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, user->file, user->place,
                                "a token and a username exclude each other");
    return 0;
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

static int current_context(const struct files *files, const char **ret_name, struct kinf_error *err)
{
    for (size_t i = 0; i < files->n_items; i++) {
        int failed = kinf__yaml_read_string(files->items[i], kinf__yaml_root(files->items[i]),
                                            "current-context", ret_name, err);

        if (failed < 0)
            return failed;
        if (*ret_name != NULL && **ret_name != '\0')
            return 0;
    }
    return kinf__error_set(
        err, KINF_ERR_CONFIG, "%s has no %s", kinf__yaml_file(files->items[0]),
        have_contexts(files)
            ? "current-context; choose one: kubectl config use-context NAME, or --context"
            : "contexts: is it a kubeconfig? (current-context and contexts are missing)");
}

static int resolve(const struct files *files, const char *context_name,
                   struct kinf__cluster_config *config, struct kinf_error *err)
{
    struct entry context, cluster, user;
    const char *cluster_name = NULL, *user_name = NULL;
    int failed;

    if (context_name == NULL && (failed = current_context(files, &context_name, err)) < 0)
        return failed;
    if ((failed = find_entry(files, "contexts", "context", context_name, &context, err)) < 0 ||
        (failed = kinf__yaml_read_string(context.file, context.fields, "cluster", &cluster_name,
                                         err)) < 0 ||
        (failed = kinf__yaml_read_string(context.file, context.fields, "user", &user_name, err)) <
            0 ||
        (failed = copy_string(&context, "namespace", &config->name_space, err)) < 0)
        return failed;
    if (cluster_name == NULL)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, context.file, context.place,
                                "the context '%s' names no cluster", context_name);
    if (asprintf(&config->source, "%s, context %s", kinf__yaml_file(context.file), context_name) <
        0) {
        config->source = NULL;
        return kinf__error_no_memory(err);
    }
    if ((failed = find_entry(files, "clusters", "cluster", cluster_name, &cluster, err)) < 0 ||
        (failed = read_cluster(&cluster, config, err)) < 0 || user_name == NULL ||
        *user_name == '\0')
        return failed;
    failed = find_entry(files, "users", "user", user_name, &user, err);
    return failed < 0 ? failed : read_user(&user, config, err);
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
    failed = kinf__yaml_read(path, &files->items[files->n_items], &told);
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

/* $KUBECONFIG: missing files and empty names are passed over. */
static int add_list(struct files *files, const char *list, struct kinf_error *err)
{
    int failed = 0;

    while (failed == 0 && *list != '\0') {
        size_t len = strcspn(list, ":");
        KINF__AUTO_FREE char *path = strndup(list, len);

        if (path == NULL)
            return kinf__error_no_memory(err);
        if (len != 0)
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

static int load(struct files *files, const char *path, const char *context,
                struct kinf__cluster_config *config, struct kinf_error *err)
{
    const char *list = getenv("KUBECONFIG");
    int failed = add_files(files, path, err);

    if (failed < 0)
        return failed;
    if (context != NULL && *context == '\0')
        context = NULL;
    if (files->n_items != 0)
        return resolve(files, context, config, err);
    if (kinf__in_cluster_is_possible() && context == NULL)
        return kinf__in_cluster_load(config, err);
    if (context != NULL)
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "no kubeconfig that could have a context '%s'; give --kubeconfig "
                               "FILE or set KUBECONFIG",
                               context);
    return kinf__error_set(
        err, KINF_ERR_CONFIG,
        "no kubeconfig: %s%s does not exist, and this is no pod of a cluster; give --kubeconfig "
        "FILE or set KUBECONFIG",
        list != NULL && *list != '\0' ? "KUBECONFIG=" : "",
        list != NULL && *list != '\0' ? list : "~/.kube/config");
}

int kinf__cluster_config_load(const char *path, const char *context,
                              struct kinf__cluster_config *ret_config, struct kinf_error *err)
{
    struct kinf__cluster_config config = { 0 };
    struct files files = { .n_items = 0 };
    int failed = load(&files, path, context, &config, err);

    files_release(&files);
    if (failed < 0) {
        kinf__cluster_config_release(&config);
        return failed;
    }
    *ret_config = config;
    return 0;
}
