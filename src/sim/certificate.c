/*
 * The key pairs of the simulated server in files. Neighbours: key_pair.c makes them; the endpoint
 * reads the files, by GnuTLS, and clients the authority's.
 */
#include "sim/certificate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "sim/key_pair.h"

#define VALID_S    (365 * 24 * 3600)
#define HOST_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_"

struct kinf__certificate {
    struct kinf__key_pair authority;
    char *names; /* as OpenSSL takes subjectAltName */
    char *folder;
    char *authority_file;
    char *cert_file;
    char *key_file;
};

/* --- names --- */

static bool is_address(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static int write_names(const char *const *hosts, size_t n_hosts, char **ret_names,
                       struct kinf_error *err)
{
    KINF__AUTO_BUFFER names = KINF__BUFFER_INIT;

    if (kinf__buffer_printf(&names, "DNS:localhost,IP:127.0.0.1,IP:::1") < 0)
        return kinf__error_no_memory(err);
    for (size_t i = 0; i < n_hosts; i++) {
        if (hosts[i][0] == '\0' || strspn(hosts[i], HOST_CHARS) != strlen(hosts[i]))
            return kinf__error_set(err, KINF_ERR_INVALID, "no certificate can name '%s'", hosts[i]);
        if (kinf__buffer_printf(&names, ",%s:%s", is_address(hosts[i]) ? "IP" : "DNS", hosts[i]) <
            0)
            return kinf__error_no_memory(err);
    }
    return kinf__buffer_take_text(&names, ret_names, err);
}

/* --- files --- */

/* A server that looks in between finds a pair that does not belong together, and looks again. */
int kinf__certificate_rotate(const struct kinf__certificate *certificate, struct kinf_error *err)
{
    const struct kinf__key_pair_options options = { .name = "kinformer-sim",
                                                    .alt_names = certificate->names,
                                                    .valid_s = VALID_S,
                                                    .issuer = &certificate->authority };
    struct kinf__key_pair served;
    int failed = kinf__key_pair_make(&options, &served, err);

    if (failed < 0)
        return failed;
    failed = kinf__file_replace(certificate->key_file, kinf_str_from(served.key_pem), err);
    if (failed == 0)
        failed = kinf__file_replace(certificate->cert_file, kinf_str_from(served.cert_pem), err);
    kinf__key_pair_release(&served);
    return failed;
}

static char *path_in(const char *folder, const char *name)
{
    char *path;

    return asprintf(&path, "%s/%s", folder, name) >= 0 ? path : NULL;
}

static int make_folder(struct kinf__certificate *certificate, struct kinf_error *err)
{
    const char *parent = getenv("TMPDIR");
    char *folder =
        path_in(parent != NULL && parent[0] != '\0' ? parent : "/tmp", "kinformer-sim-XXXXXX");
    int failed;

    if (folder == NULL)
        return kinf__error_no_memory(err);
    /* Of mode 0700. */
    if (mkdtemp(folder) == NULL) {
        failed = kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno,
                                       "cannot make a folder for certificates, %s", folder);
        free(folder);
        return failed;
    }
    certificate->folder = folder;
    certificate->authority_file = path_in(folder, "ca.crt");
    certificate->cert_file = path_in(folder, "tls.crt");
    certificate->key_file = path_in(folder, "tls.key");
    return certificate->authority_file != NULL && certificate->cert_file != NULL &&
                   certificate->key_file != NULL
               ? 0
               : kinf__error_no_memory(err);
}

/* --- life --- */

int kinf__certificate_new(const char *const *hosts, size_t n_hosts,
                          struct kinf__certificate **ret_certificate, struct kinf_error *err)
{
    const struct kinf__key_pair_options authority = { .name = "kinformer-sim authority",
                                                      .valid_s = VALID_S };
    struct kinf__certificate *certificate = calloc(1, sizeof *certificate);
    int failed;

    if (certificate == NULL)
        return kinf__error_no_memory(err);
    failed = write_names(hosts, n_hosts, &certificate->names, err);
    if (failed == 0)
        failed = kinf__key_pair_make(&authority, &certificate->authority, err);
    if (failed == 0)
        failed = make_folder(certificate, err);
    if (failed == 0)
        failed = kinf__file_replace(certificate->authority_file,
                                    kinf_str_from(certificate->authority.cert_pem), err);
    if (failed == 0)
        failed = kinf__certificate_rotate(certificate, err);
    if (failed < 0) {
        kinf__certificate_free(certificate);
        return failed;
    }
    *ret_certificate = certificate;
    return 0;
}

static void remove_file(char *path)
{
    if (path != NULL)
        unlink(path);
    free(path);
}

void kinf__certificate_free(struct kinf__certificate *certificate)
{
    if (certificate == NULL)
        return;
    remove_file(certificate->authority_file);
    remove_file(certificate->cert_file);
    remove_file(certificate->key_file);
    if (certificate->folder != NULL)
        rmdir(certificate->folder);
    free(certificate->folder);
    free(certificate->names);
    kinf__key_pair_release(&certificate->authority);
    free(certificate);
}

const char *kinf__certificate_authority_file(const struct kinf__certificate *certificate)
{
    return certificate->authority_file;
}

const char *kinf__certificate_cert_file(const struct kinf__certificate *certificate)
{
    return certificate->cert_file;
}

const char *kinf__certificate_key_file(const struct kinf__certificate *certificate)
{
    return certificate->key_file;
}
