/*
 * Certificates of clients. Neighbours: endpoint.c has them asked for, mhd_request.c has each connection's
 * judged before a request, access.c goes by the user. What GnuTLS cannot say (which texts a subject may
 * have) follows Go's crypto/x509, by which the API server reads it.
 */
#include "serve/client_certificate.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/x509.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "json/quote.h"
#include "serve/digest.h"
#include "serve/report.h"

#define LOOK_MS   1000
#define JUDGE_MS  10000
#define MAX_CHAIN 16

#define OID_UID           "1.3.6.1.4.1.57683.2"
#define AUTHENTICATED     "system:authenticated"
#define UNAUTHENTICATED   "system:unauthenticated"
#define ANONYMOUS         "system:anonymous"
#define CREDENTIAL_PREFIX "X509SHA256="

enum tag {
    TAG_UTF8 = 12,
    TAG_NUMERIC = 18,
    TAG_PRINTABLE = 19,
    TAG_T61 = 20,
    TAG_IA5 = 22,
};

struct kinf__client_authority {
    char *file;
    struct kinf__file_version version;
    gnutls_x509_trust_list_t authorities;
    uint64_t generation; /* of them; never 0 */
    bool is_due;         /* the file could not be read last time */
    int64_t next_look_ms;
};

/* --- authorities --- */

static int read_authorities(const char *file, gnutls_x509_trust_list_t *ret_authorities,
                            struct kinf_error *err)
{
    gnutls_x509_trust_list_t list = NULL;
    gnutls_datum_t pem = { NULL, 0 };
    int n;

    if (gnutls_load_file(file, &pem) < 0)
        return kinf__error_set_errno(err, KINF_ERR_CONFIG, errno, "cannot read %s", file);
    n = gnutls_x509_trust_list_init(&list, 0);
    if (n >= 0)
        n = gnutls_x509_trust_list_add_trust_mem(list, &pem, NULL, GNUTLS_X509_FMT_PEM, 0, 0);
    gnutls_free(pem.data);
    if (n <= 0) {
        if (list != NULL)
            gnutls_x509_trust_list_deinit(list, 1);
        return kinf__error_set(err, KINF_ERR_CONFIG, "%s: no certificate of an authority", file);
    }
    *ret_authorities = list;
    return 0;
}

int kinf__client_authority_new(const char *file, struct kinf__client_authority **ret_authority,
                               struct kinf_error *err)
{
    struct kinf__client_authority *authority = calloc(1, sizeof *authority);
    int failed;

    if (authority == NULL)
        return kinf__error_no_memory(err);
    authority->generation = 1;
    authority->file = strdup(file);
    if (authority->file == NULL) {
        failed = kinf__error_no_memory(err);
    } else {
        kinf__file_version_update(&authority->version, file);
        failed = read_authorities(file, &authority->authorities, err);
    }
    if (failed < 0)
        kinf__client_authority_free(authority);
    else
        *ret_authority = authority;
    return failed;
}

void kinf__client_authority_free(struct kinf__client_authority *authority)
{
    if (authority == NULL)
        return;
    if (authority->authorities != NULL)
        gnutls_x509_trust_list_deinit(authority->authorities, 1);
    free(authority->file);
    free(authority);
}

static void look_at_file(struct kinf__client_authority *authority, int64_t now_ms)
{
    struct kinf_error err = KINF_ERROR_INIT;
    gnutls_x509_trust_list_t fresh;
    bool is_new;

    if (now_ms < authority->next_look_ms)
        return;
    authority->next_look_ms = kinf__clock_add_ms(now_ms, LOOK_MS);
    is_new = kinf__file_version_update(&authority->version, authority->file);
    if (!is_new && !authority->is_due)
        return;
    authority->is_due = read_authorities(authority->file, &fresh, &err) < 0;
    if (authority->is_due) {
        if (is_new)
            KINF__LOG(KINF__LOG_SERVE, KINF_LOG_WARN,
                      "the clients' authorities stay as they were: %s", err.message);
        return;
    }
    gnutls_x509_trust_list_deinit(authority->authorities, 1);
    authority->authorities = fresh;
    authority->generation++;
    KINF__LOG(KINF__LOG_SERVE, KINF_LOG_INFO, "authorities=reloaded file=%s", authority->file);
}

/* --- subjects --- */

struct subject {
    struct kinf__buffer name; /* the last common name */
    struct kinf__buffer uid;
    struct kinf__buffer groups; /* as JSON, with a comma behind each */
    unsigned n_uids;
    bool has_general_group; /* of everybody who is, or is not, known */
};

static void subject_release(struct subject *subject)
{
    kinf__buffer_release(&subject->name);
    kinf__buffer_release(&subject->uid);
    kinf__buffer_release(&subject->groups);
}

static bool is_printable(unsigned char c)
{
    return isalnum(c) || (c != '\0' && strchr("'()+,-./ :=?*&", c) != NULL);
}

static bool is_numeric(unsigned char c)
{
    return isdigit(c) || c == ' ';
}

static bool is_ia5(unsigned char c)
{
    return c < 0x80;
}

static bool is_all(struct kinf_str text, bool (*is)(unsigned char c))
{
    for (size_t i = 0; i < text.len; i++) {
        if (!is((unsigned char)text.bytes[i]))
            return false;
    }
    return true;
}

static int append_latin1(struct kinf__buffer *out, struct kinf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.bytes[i];
        const char two[] = { (char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f)) };

        if (kinf__buffer_append(out, c < 0x80 ? &text.bytes[i] : two, c < 0x80 ? 1 : 2) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* A value of a subject as UTF-8. Errors: KINF_ERR_INVALID (not a text that is taken),
 * KINF_ERR_NO_MEMORY. */
static int append_value(struct kinf__buffer *out, const gnutls_x509_ava_st *value)
{
    struct kinf_str text = { (const char *)value->value.data, value->value.size };
    bool is_good;

    switch ((enum tag)value->value_tag) {
    case TAG_UTF8:
        is_good = kinf__is_utf8(text);
        break;
    case TAG_NUMERIC:
        is_good = is_all(text, is_numeric);
        break;
    case TAG_PRINTABLE:
        is_good = is_all(text, is_printable);
        break;
    case TAG_IA5:
        is_good = is_all(text, is_ia5);
        break;
    case TAG_T61:
        is_good = true;
        break;
    default:
        return KINF_ERR_INVALID;
    }
    if (!is_good || memchr(text.bytes, '\0', text.len) != NULL)
        return KINF_ERR_INVALID;
    return value->value_tag == TAG_T61 ? append_latin1(out, text)
                                       : kinf__buffer_append_str(out, text);
}

static int add_group(struct subject *subject, struct kinf_str group)
{
    if (kinf_str_equal(group, KINF_STR(AUTHENTICATED)) ||
        kinf_str_equal(group, KINF_STR(UNAUTHENTICATED)))
        subject->has_general_group = true;
    if (kinf__quote(&subject->groups, group) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append_str(&subject->groups, KINF_STR(","));
}

static bool is_of(const gnutls_x509_ava_st *value, const char *oid)
{
    /* Some versions count the NUL. */
    size_t len = strnlen((const char *)value->oid.data, value->oid.size);

    return len == strlen(oid) && memcmp(value->oid.data, oid, len) == 0;
}

static int take_value(struct subject *subject, const gnutls_x509_ava_st *value)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    int failed = append_value(&text, value);

    if (failed < 0)
        return failed;
    if (is_of(value, GNUTLS_OID_X520_ORGANIZATION_NAME))
        return add_group(subject, kinf__buffer_str(&text));
    if (is_of(value, OID_UID)) {
        subject->n_uids++;
        return text.len != 0 ? kinf__buffer_append_str(&subject->uid, kinf__buffer_str(&text))
                             : KINF_ERR_INVALID;
    }
    if (!is_of(value, GNUTLS_OID_X520_COMMON_NAME))
        return 0;
    subject->name.len = 0;
    return kinf__buffer_append_str(&subject->name, kinf__buffer_str(&text));
}

static int read_subject(gnutls_x509_crt_t certificate, struct subject *subject)
{
    gnutls_x509_dn_t names;
    gnutls_x509_ava_st value;
    int failed = 0;

    if (gnutls_x509_crt_get_subject(certificate, &names) < 0)
        return KINF_ERR_INVALID; /* untested: one that was verified has a subject */
    for (int i = 0; failed == 0; i++) {
        int k = 0;

        while (failed == 0 && gnutls_x509_dn_get_rdn_ava(names, i, k, &value) == 0) {
            failed = take_value(subject, &value);
            k++;
        }
        if (k == 0)
            break;
    }
    return failed < 0 || subject->n_uids > 1 || subject->name.len == 0
               ? (failed < 0 ? failed : KINF_ERR_INVALID)
               : 0;
}

/* --- users --- */

static int write_credential(struct kinf__report *report, const gnutls_datum_t *der)
{
    char text[sizeof CREDENTIAL_PREFIX + 2 * (size_t)KINF__DIGEST_SIZE] = CREDENTIAL_PREFIX;
    unsigned char digest[KINF__DIGEST_SIZE];

    if (kinf__sha256((struct kinf_str){ (const char *)der->data, der->size }, digest) < 0)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < KINF__DIGEST_SIZE; i++)
        snprintf(text + strlen(CREDENTIAL_PREFIX) + 2 * i, 3, "%02x", digest[i]);
    kinf__report_open(report, "extra", '{');
    kinf__report_open(report, "authentication.kubernetes.io/credential-id", '[');
    kinf__report_text(report, NULL, text);
    kinf__report_close(report, ']');
    kinf__report_close(report, '}');
    return report->is_out_of_memory ? KINF_ERR_NO_MEMORY : 0;
}

/* In the order of a TokenReview's answer. */
static int write_user(struct subject *subject, const gnutls_datum_t *der, struct kinf__buffer *out)
{
    struct kinf__report report = { .out = out };
    struct kinf_str name = kinf__buffer_str(&subject->name);

    if (!subject->has_general_group && !kinf_str_equal(name, KINF_STR(ANONYMOUS)) &&
        add_group(subject, KINF_STR(AUTHENTICATED)) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__report_str(&report, "user", name);
    if (subject->n_uids != 0)
        kinf__report_str(&report, "uid", kinf__buffer_str(&subject->uid));
    kinf__report_open(&report, "groups", '[');
    if (subject->groups.len != 0 &&
        kinf__buffer_append(out, subject->groups.bytes, subject->groups.len - 1) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__report_close(&report, ']');
    return write_credential(&report, der);
}

/* Errors: KINF_ERR_INVALID (it names nobody), KINF_ERR_NO_MEMORY. */
static int read_user(gnutls_x509_crt_t certificate, const gnutls_datum_t *der, char **ret_user)
{
    KINF__CLEANUP(subject_release) struct subject subject = { .name = KINF__BUFFER_INIT };
    struct kinf__buffer text = KINF__BUFFER_INIT;
    int failed = read_subject(certificate, &subject);

    if (failed == 0)
        failed = write_user(&subject, der, &text);
    if (failed == 0 && kinf__buffer_cstr(&text) == NULL)
        failed = KINF_ERR_NO_MEMORY;
    if (failed < 0)
        kinf__buffer_release(&text);
    else
        *ret_user = text.bytes;
    return failed;
}

/* --- judgement --- */

static void tell_refused(unsigned status)
{
    gnutls_datum_t why = { NULL, 0 };

    if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &why, 0) == 0)
        KINF__LOG(KINF__LOG_SERVE, KINF_LOG_DEBUG, "a client's certificate is refused why=\"%s\"",
                  why.data);
    gnutls_free(why.data);
}

static bool is_verified(const struct kinf__client_authority *authority, gnutls_x509_crt_t *chain,
                        unsigned n_chain)
{
    char client_auth[] = GNUTLS_KP_TLS_WWW_CLIENT;
    gnutls_typed_vdata_st purpose = { .type = GNUTLS_DT_KEY_PURPOSE_OID,
                                      .data = (unsigned char *)client_auth };
    unsigned status = 0;

    if (gnutls_x509_trust_list_verify_crt2(authority->authorities, chain, n_chain, &purpose, 1, 0,
                                           &status, NULL) < 0)
        return false; /* untested: GnuTLS comes to no verdict, for want of memory, say */
    if (status != 0)
        tell_refused(status);
    return status == 0;
}

static int import(gnutls_x509_crt_t *chain, const gnutls_datum_t *ders, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (gnutls_x509_crt_init(&chain[i]) < 0 ||
            gnutls_x509_crt_import(chain[i], &ders[i], GNUTLS_X509_FMT_DER) < 0)
            return KINF_ERR_INVALID;
    }
    return 0;
}

static void find_user(struct kinf__client_certificate *certificate,
                      const struct kinf__client_authority *authority, const gnutls_datum_t *ders,
                      unsigned n)
{
    gnutls_x509_crt_t chain[MAX_CHAIN] = { NULL };

    if (n != 0 && n <= MAX_CHAIN && import(chain, ders, n) == 0 &&
        is_verified(authority, chain, n) && read_user(chain[0], &ders[0], &certificate->user) == 0)
        /* It is good to the end of that second. */
        certificate->expires_ms =
            ((int64_t)gnutls_x509_crt_get_expiration_time(chain[0]) + 1) * 1000;
    for (unsigned i = 0; i < MAX_CHAIN && chain[i] != NULL; i++)
        gnutls_x509_crt_deinit(chain[i]);
}

void kinf__client_certificate_judge(struct kinf__client_certificate *certificate,
                                    struct kinf__client_authority *authority,
                                    const gnutls_datum_t *chain, unsigned n_chain, int64_t now_ms)
{
    look_at_file(authority, now_ms);
    if (certificate->generation == authority->generation && now_ms < certificate->judged_until_ms &&
        (certificate->user == NULL || kinf__clock_wall_ms() < certificate->expires_ms))
        return;
    kinf__client_certificate_release(certificate);
    find_user(certificate, authority, chain, n_chain);
    certificate->generation = authority->generation;
    certificate->judged_until_ms = kinf__clock_add_ms(now_ms, JUDGE_MS);
}

void kinf__client_certificate_release(struct kinf__client_certificate *certificate)
{
    free(certificate->user);
    *certificate = (struct kinf__client_certificate){ 0 };
}
