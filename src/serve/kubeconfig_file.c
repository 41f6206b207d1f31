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

/* Quoted: a name may be anything, and a token a number. */
static int write_user(const struct kinf__kubeconfig_user *user, struct kinf__buffer *out)
{
    if (kinf__buffer_printf(out, "- name: ") < 0 ||
        kinf__quote(out, kinf_str_from(user->name)) < 0 ||
        kinf__buffer_printf(out, "\n  user:\n    token: ") < 0 ||
        kinf__quote(out, kinf_str_from(user->token)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, "\n");
}

static int write_users(const struct kinf__kubeconfig_file *file, struct kinf__buffer *out)
{
    if (file->n_users != 0 && kinf__buffer_printf(out, "users:\n") < 0)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < file->n_users; i++) {
        if (write_user(&file->users[i], out) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int write_context(const struct kinf__kubeconfig_file *file, struct kinf__buffer *out)
{
    const char *user = file->n_users != 0 ? file->users[0].name : "";

    if (kinf__buffer_printf(out, "contexts:\n- name: kinformer\n"
                                 "  context:\n    cluster: kinformer\n    user: ") < 0 ||
        kinf__quote(out, kinf_str_from(user)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, "\ncurrent-context: kinformer\n");
}

int kinf__kubeconfig_file_write(const struct kinf__kubeconfig_file *file, const char *path,
                                struct kinf_error *err)
{
    KINF__AUTO_SECRET_BUFFER text = KINF__BUFFER_INIT;
    int failed;

    if (kinf__buffer_printf(&text,
                            "apiVersion: v1\nkind: Config\nclusters:\n- name: kinformer\n"
                            "  cluster:\n    server: %s\n",
                            file->url) < 0)
        return kinf__error_no_memory(err);
    failed = write_authority(file, &text, err);
    if (failed < 0)
        return failed;
    if (write_users(file, &text) < 0 || write_context(file, &text) < 0)
        return kinf__error_no_memory(err);
    failed = kinf__file_replace(path, kinf__buffer_str(&text), err);
    if (failed < 0)
        kinf__error_prefix(err, "--write-kubeconfig");
    return failed;
}
