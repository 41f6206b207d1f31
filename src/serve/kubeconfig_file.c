/*
 * Kubeconfigs that are written; rest/kubeconfig.c reads them.
 */
#include "serve/kubeconfig_file.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "json/quote.h"
#include "rest/secret.h"

static int write_authority(const struct kinf__kubeconfig_file *file, struct kinf__buffer *out,
                           struct kinf_error *err)
{
    KINF__AUTO_SECRET *pem = NULL;
    int failed;

    if (file->authority_file == NULL)
        return 0;
    failed = kinf__secret_read_file(file->authority_file, &pem, err);
    if (failed < 0)
        return failed;
    if (kinf__buffer_printf(out, "    certificate-authority-data: ") < 0 ||
        kinf__secret_append_base64(out, pem, strlen(pem)) < 0 || kinf__buffer_printf(out, "\n") < 0)
        return kinf__error_no_memory(err);
    return 0;
}

static int write_member(const char *name, const char *text, struct kinf__buffer *out)
{
    if (kinf__buffer_printf(out, "    %s: ", name) < 0 || kinf__quote(out, kinf_str_from(text)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, "\n");
}

/* Quoted: a name may be anything, and a token a number. */
static int write_user(const struct kinf__kubeconfig_user *user, struct kinf__buffer *out,
                      struct kinf_error *err)
{
    KINF__AUTO_SECRET *read = NULL;
    int failed =
        user->token_file != NULL ? kinf__secret_read_token(user->token_file, &read, err) : 0;
    const char *token = read != NULL ? read : user->token;

    if (failed < 0)
        return failed;
    if (kinf__buffer_printf(out, "- name: ") < 0 ||
        kinf__quote(out, kinf_str_from(user->name)) < 0 ||
        kinf__buffer_printf(out, token != NULL ? "\n  user:\n" : "\n  user: {}\n") < 0 ||
        (token != NULL && write_member("token", token, out) < 0) ||
        (user->token_file != NULL && write_member("tokenFile", user->token_file, out) < 0))
        return kinf__error_no_memory(err);
    return 0;
}

static int write_users(const struct kinf__kubeconfig_file *file, struct kinf__buffer *out,
                       struct kinf_error *err)
{
    int failed = kinf__buffer_printf(out, "users:\n") < 0 ? kinf__error_no_memory(err) : 0;

    for (size_t i = 0; failed == 0 && i < file->n_users; i++)
        failed = write_user(&file->users[i], out, err);
    if (failed < 0)
        return failed;
    if (kinf__buffer_printf(out, "contexts:\n- name: kinformer\n"
                                 "  context:\n    cluster: kinformer\n") < 0 ||
        write_member("user", file->users[0].name, out) < 0 ||
        kinf__buffer_printf(out, "current-context: kinformer\n") < 0)
        return kinf__error_no_memory(err);
    return 0;
}

static int write_all(const struct kinf__kubeconfig_file *file, struct kinf__buffer *out,
                     struct kinf_error *err)
{
    /* @kubernetes/client-node takes plain HTTP with this alone; to others it means nothing there. */
    bool is_plain = strncmp(file->url, "http:", strlen("http:")) == 0;
    /* kubectl asks its terminal for a name if there are no credentials for TLS. */
    const struct kinf__kubeconfig_user anybody = { .name = "kinformer",
                                                   .token = is_plain ? NULL : "none" };
    struct kinf__kubeconfig_file whole = *file;
    int failed;

    if (file->n_users == 0) {
        whole.users = &anybody;
        whole.n_users = 1;
    }
    if (kinf__buffer_printf(out,
                            "apiVersion: v1\nkind: Config\nclusters:\n- name: kinformer\n"
                            "  cluster:\n    server: %s\n%s",
                            file->url, is_plain ? "    insecure-skip-tls-verify: true\n" : "") < 0)
        return kinf__error_no_memory(err);
    failed = write_authority(file, out, err);
    return failed < 0 ? failed : write_users(&whole, out, err);
}

static int replace(const struct kinf__buffer *text, const char *path, struct kinf_error *err)
{
    int failed = kinf__file_replace(path, kinf__buffer_str(text), err);

    if (failed < 0)
        kinf__error_prefix(err, "--write-kubeconfig");
    return failed;
}

int kinf__kubeconfig_file_write(const struct kinf__kubeconfig_file *file, const char *path,
                                struct kinf_error *err)
{
    KINF__AUTO_SECRET_BUFFER text = KINF__BUFFER_INIT;
    int failed = write_all(file, &text, err);

    return failed < 0 ? failed : replace(&text, path, err);
}

int kinf__kubeconfig_file_refresh(const struct kinf__kubeconfig_file *file, const char *path,
                                  bool *ret_changed, struct kinf_error *err)
{
    KINF__AUTO_SECRET_BUFFER text = KINF__BUFFER_INIT;
    KINF__AUTO_SECRET *old = NULL;
    int failed = write_all(file, &text, err);

    if (failed < 0)
        return failed;
    /* One that is gone is written again. */
    if (kinf__secret_read_file(path, &old, NULL) == 0 &&
        kinf_str_equal(kinf_str_from(old), kinf__buffer_str(&text))) {
        *ret_changed = false;
        return 0;
    }
    failed = replace(&text, path, err);
    if (failed == 0)
        *ret_changed = true;
    return failed;
}
