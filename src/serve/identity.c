/*
 * Certificates for GnuTLS. Neighbours: endpoint.c hands them to handshakes, which hold what they got
 * until they are over: a pair that was replaced is freed much later.
 */
#include "serve/identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

#define MAX_CHAIN       16
#define KEY_ID_SIZE     64
#define LOOK_MS         1000
#define KEEP_RETIRED_MS 600000 /* no handshake lasts as long: the library's idle limit is below */

struct pair {
    gnutls_pcert_st chain[MAX_CHAIN];
    unsigned n_chain;
    gnutls_privkey_t key;
    int64_t retired_ms;
    struct pair *next; /* retired before this one */
};

struct kinf__identity {
    char *cert_file;
    char *key_file;
    struct kinf__file_version cert_version;
    struct kinf__file_version key_version;
    struct pair *current;
    struct pair *retired;
    bool is_due; /* what was read last was no pair, or could not be read just then */
    int64_t next_look_ms;
};

static void pair_free(struct pair *pair)
{
    if (pair == NULL)
        return;
    for (unsigned i = 0; i < pair->n_chain; i++)
        gnutls_pcert_deinit(&pair->chain[i]);
    if (pair->key != NULL)
        gnutls_privkey_deinit(pair->key);
    free(pair);
}

/* Behind a call of the library: what kept it from a file is in errno. */
static int refuse(struct kinf_error *err, const char *file, int code)
{
    if (code == GNUTLS_E_FILE_ERROR)
        return kinf__error_set_errno(err, KINF_ERR_CONFIG, errno, "cannot read %s", file);
    return kinf__error_set(err, KINF_ERR_CONFIG, "%s: %s", file, gnutls_strerror(code));
}

static int read_chain(struct pair *pair, const char *file, struct kinf_error *err)
{
    gnutls_datum_t pem = { NULL, 0 };
    unsigned n = MAX_CHAIN;
    int failed = gnutls_load_file(file, &pem);

    if (failed >= 0)
        failed = gnutls_pcert_list_import_x509_raw(pair->chain, &n, &pem, GNUTLS_X509_FMT_PEM,
                                                   GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
    gnutls_free(pem.data);
    if (failed < 0)
        return refuse(err, file, failed);
    pair->n_chain = n;
    return 0;
}

static int read_key(struct pair *pair, const char *file, struct kinf_error *err)
{
    gnutls_datum_t pem = { NULL, 0 };
    int failed = gnutls_load_file(file, &pem);

    if (failed >= 0)
        failed = gnutls_privkey_init(&pair->key);
    if (failed >= 0)
        failed = gnutls_privkey_import_x509_raw(pair->key, &pem, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (pem.data != NULL)
        gnutls_memset(pem.data, 0, pem.size);
    gnutls_free(pem.data);
    return failed < 0 ? refuse(err, file, failed) : 0;
}

static bool belongs(const struct pair *pair)
{
    unsigned char cert_id[KEY_ID_SIZE], key_id[KEY_ID_SIZE];
    size_t cert_len = sizeof cert_id, key_len = sizeof key_id;
    gnutls_pubkey_t key = NULL;
    bool does = pair->n_chain != 0 && gnutls_pubkey_init(&key) == 0 &&
                gnutls_pubkey_import_privkey(key, pair->key, 0, 0) == 0 &&
                gnutls_pubkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, key_id, &key_len) == 0 &&
                gnutls_pubkey_get_key_id(pair->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, cert_id,
                                         &cert_len) == 0 &&
                cert_len == key_len && memcmp(cert_id, key_id, key_len) == 0;

    if (key != NULL)
        gnutls_pubkey_deinit(key);
    return does;
}

static int pair_read(const char *cert_file, const char *key_file, struct pair **ret_pair,
                     struct kinf_error *err)
{
    struct pair *pair = calloc(1, sizeof *pair);
    int failed;

    if (pair == NULL)
        return kinf__error_no_memory(err);
    failed = read_chain(pair, cert_file, err);
    if (failed == 0)
        failed = read_key(pair, key_file, err);
    if (failed == 0 && !belongs(pair))
        failed = kinf__error_set(err, KINF_ERR_CONFIG, "%s is not the key of the certificate in %s",
                                 key_file, cert_file);
    if (failed < 0) {
        pair_free(pair);
        return failed;
    }
    *ret_pair = pair;
    return 0;
}

static void free_retired(struct pair **link, int64_t before_ms)
{
    while (*link != NULL && (*link)->retired_ms >= before_ms)
        link = &(*link)->next;
    while (*link != NULL) {
        struct pair *pair = *link;

        *link = pair->next;
        pair_free(pair);
    }
}

static void replace(struct kinf__identity *identity, bool is_new, int64_t now_ms)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct pair *fresh;

    identity->is_due = pair_read(identity->cert_file, identity->key_file, &fresh, &err) < 0;
    if (identity->is_due) {
        if (is_new)
            KINF__LOG(KINF__LOG_SERVE, KINF_LOG_WARN, "the certificate stays as it was: %s",
                      err.message);
        return;
    }
    identity->current->retired_ms = now_ms;
    identity->current->next = identity->retired;
    identity->retired = identity->current;
    identity->current = fresh;
    KINF__LOG(KINF__LOG_SERVE, KINF_LOG_INFO, "certificate=reloaded file=%s", identity->cert_file);
}

static bool note_versions(struct kinf__identity *identity)
{
    bool has_cert_changed = kinf__file_version_update(&identity->cert_version, identity->cert_file);

    return kinf__file_version_update(&identity->key_version, identity->key_file) ||
           has_cert_changed;
}

int kinf__identity_new(const char *cert_file, const char *key_file,
                       struct kinf__identity **ret_identity, struct kinf_error *err)
{
    struct kinf__identity *identity = calloc(1, sizeof *identity);
    int failed;

    if (identity == NULL)
        return kinf__error_no_memory(err);
    identity->cert_file = strdup(cert_file);
    identity->key_file = strdup(key_file);
    if (identity->cert_file == NULL || identity->key_file == NULL) {
        failed = kinf__error_no_memory(err);
    } else {
        note_versions(identity);
        failed = pair_read(cert_file, key_file, &identity->current, err);
    }
    if (failed < 0) {
        kinf__identity_free(identity);
        return failed;
    }
    *ret_identity = identity;
    return 0;
}

void kinf__identity_free(struct kinf__identity *identity)
{
    if (identity == NULL)
        return;
    free_retired(&identity->retired, INT64_MAX);
    pair_free(identity->current);
    free(identity->cert_file);
    free(identity->key_file);
    free(identity);
}

void kinf__identity_get(struct kinf__identity *identity, int64_t now_ms,
                        gnutls_pcert_st **ret_chain, unsigned *ret_n_chain,
                        gnutls_privkey_t *ret_key)
{
    bool is_new;

    if (now_ms >= identity->next_look_ms) {
        identity->next_look_ms = now_ms + LOOK_MS;
        free_retired(&identity->retired, now_ms - KEEP_RETIRED_MS);
        is_new = note_versions(identity);
        if (is_new || identity->is_due)
            replace(identity, is_new, now_ms);
    }
    *ret_chain = identity->current->chain;
    *ret_n_chain = identity->current->n_chain;
    *ret_key = identity->current->key;
}
