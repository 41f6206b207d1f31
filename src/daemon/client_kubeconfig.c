/*
 * What a kubeconfig is made of, kept. Neighbours: serving.c has the address, serve/kubeconfig_file.c
 * the format.
 */
#include "daemon/client_kubeconfig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "rest/client.h"
#include "rest/kubeconfig.h"
#include "serve/kubeconfig_file.h"

struct kinf__client_kubeconfig {
    const char *path; /* the options' */
    char *url;
    char *cert_file; /* shown now: a file with the whole chain, or a certificate of its own */
    bool takes_tokens;
    char *token_file; /* NULL: none that is known */
    bool is_behind;   /* what was to be written could not be, and that was told */
};

/* Clients read it from where the kubeconfig is. */
static char *absolute(const char *path)
{
    KINF__AUTO_FREE char *folder = *path == '/' ? NULL : getcwd(NULL, 0);
    char *whole = NULL;

    if (folder == NULL)
        return strdup(path);
    return asprintf(&whole, "%s/%s", folder, path) < 0 ? NULL : whole;
}

/* A pod that mounts no token has none for its clients. */
static int find_pods_token(char **ret_path, struct kinf_error *err)
{
    KINF__AUTO_FREE char *path = NULL;
    int failed = kinf__in_cluster_token_file(&path, err);

    if (failed == 0 && path != NULL && access(path, R_OK) == 0) {
        *ret_path = path;
        path = NULL;
    }
    return failed;
}

static int find_token(struct kinf__client_kubeconfig *kubeconfig,
                      const struct kinf__options *options, struct kinf_error *err)
{
    if (options->client_token != NULL) {
        kubeconfig->token_file = absolute(options->client_token);
        return kubeconfig->token_file != NULL ? 0 : kinf__error_no_memory(err);
    }
    return kubeconfig->takes_tokens ? find_pods_token(&kubeconfig->token_file, err) : 0;
}

static int prepare(struct kinf__client_kubeconfig *kubeconfig, const struct kinf__options *options,
                   const struct kinf__config *config, const char *url, struct kinf_error *err)
{
    kubeconfig->path = options->kubeconfig_out;
    kubeconfig->url = strdup(url);
    kubeconfig->takes_tokens =
        config->is_delegated || config->pass_through || options->client_token != NULL;
    if (config->cert_file != NULL)
        kubeconfig->cert_file = strdup(config->cert_file);
    if (kubeconfig->url == NULL || (config->cert_file != NULL && kubeconfig->cert_file == NULL))
        return kinf__error_no_memory(err);
    return find_token(kubeconfig, options, err);
}

static int write_it(const struct kinf__client_kubeconfig *kubeconfig, bool is_new,
                    bool *ret_changed, struct kinf_error *err)
{
    const struct kinf__kubeconfig_user user = { .name = "kinformer",
                                                .token_file = kubeconfig->token_file };
    const struct kinf__kubeconfig_file file = { .url = kubeconfig->url,
                                                .authority_file = kubeconfig->cert_file,
                                                .users = &user,
                                                .n_users = kubeconfig->takes_tokens };

    return is_new ? kinf__kubeconfig_file_write(&file, kubeconfig->path, err)
                  : kinf__kubeconfig_file_refresh(&file, kubeconfig->path, ret_changed, err);
}

/* Whether both names are of one file that is there. */
static bool is_file(const char *path, const char *other)
{
    struct stat file, other_file;

    return path != NULL && stat(path, &file) == 0 && stat(other, &other_file) == 0 &&
           file.st_dev == other_file.st_dev && file.st_ino == other_file.st_ino;
}

int kinf__client_kubeconfig_new(const struct kinf__options *options,
                                const struct kinf__config *config, const struct kinf_client *client,
                                const char *url, struct kinf__client_kubeconfig **ret_kubeconfig,
                                struct kinf_error *err)
{
    struct kinf__client_kubeconfig *kubeconfig;
    int failed;

    if (is_file(client->config.cluster_file, options->kubeconfig_out) ||
        is_file(client->config.user_file, options->kubeconfig_out))
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "--write-kubeconfig %s: this is the kubeconfig by which the API "
                               "server is found, and is not written over",
                               options->kubeconfig_out);
    kubeconfig = calloc(1, sizeof *kubeconfig);
    if (kubeconfig == NULL)
        return kinf__error_no_memory(err);
    failed = prepare(kubeconfig, options, config, url, err);
    if (failed == 0)
        failed = write_it(kubeconfig, true, NULL, err);
    if (failed == 0 && kubeconfig->takes_tokens && kubeconfig->token_file == NULL)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN,
                  "the clients' kubeconfig has no token: see --client-token file=%s",
                  kubeconfig->path);
    if (failed == 0 && kubeconfig->takes_tokens && strncmp(url, "http:", strlen("http:")) == 0)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO,
                  "kubectl and client-go send no token over plain HTTP: with tls they do file=%s",
                  kubeconfig->path);
    if (failed < 0)
        kinf__client_kubeconfig_free(kubeconfig);
    else
        *ret_kubeconfig = kubeconfig;
    return failed;
}

void kinf__client_kubeconfig_free(struct kinf__client_kubeconfig *kubeconfig)
{
    if (kubeconfig == NULL)
        return;
    free(kubeconfig->url);
    free(kubeconfig->cert_file);
    free(kubeconfig->token_file);
    free(kubeconfig);
}

void kinf__client_kubeconfig_refresh(struct kinf__client_kubeconfig *kubeconfig)
{
    struct kinf_error err = KINF_ERROR_INIT;
    bool has_changed = false;
    bool is_behind = write_it(kubeconfig, false, &has_changed, &err) < 0;

    if (is_behind && !kubeconfig->is_behind)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN,
                  "the clients' kubeconfig stays as it was error=%s", KINF__QUOTED(err.message));
    if (has_changed)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO, "kubeconfig=written file=%s", kubeconfig->path);
    kubeconfig->is_behind = is_behind;
}
