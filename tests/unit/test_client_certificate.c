/*
 * Certificates of clients, made here as no authority would: what they say of whom, and which are
 * nobody's.
 */
#include "serve/client_certificate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/x509.h>

#include "base/clock.h"
#include "base/file.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define CN           "2.5.4.3"
#define O            "2.5.4.10"
#define UID          "1.3.6.1.4.1.57683.2"
#define UTF8         "\x0c"
#define PRINTABLE    "\x13"
#define DAY_S        86400
#define MAX_VALUES   6
#define SERVER_USAGE GNUTLS_KP_TLS_WWW_SERVER
#define CLIENT_USAGE GNUTLS_KP_TLS_WWW_CLIENT

struct value {
    const char *oid;
    const char *tag; /* NULL: UTF-8 */
    const char *text;
    size_t len; /* 0: as long as it is */
};

struct wish {
    struct value subject[MAX_VALUES];
    const char *usage; /* NULL: none */
    long from_s, to_s; /* from now; both 0: good today */
    bool is_authority;
};

struct pair {
    gnutls_x509_crt_t certificate;
    gnutls_x509_privkey_t key;
    gnutls_datum_t der;
};

static char authority_file[64];
static struct pair authority, other_authority;

static void add_value(gnutls_x509_crt_t certificate, const struct value *value)
{
    size_t len = value->len != 0 ? value->len : strlen(value->text);
    char der[256];

    der[0] = value->tag != NULL ? *value->tag : *UTF8;
    der[1] = (char)len;
    assert_true(len < 0x80);
    memcpy(der + 2, value->text, len);
    assert_int_equal(
        gnutls_x509_crt_set_dn_by_oid(certificate, value->oid, 1, der, (unsigned)len + 2), 0);
}

/* Signed by itself if there is no `by`. */
static struct pair make(const struct wish *wish, const struct pair *by)
{
    time_t now = time(NULL);
    struct pair pair;

    assert_int_equal(gnutls_x509_privkey_init(&pair.key), 0);
    assert_int_equal(gnutls_x509_privkey_generate(pair.key, GNUTLS_PK_ECDSA,
                                                  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
                                                  0),
                     0);
    assert_int_equal(gnutls_x509_crt_init(&pair.certificate), 0);
    gnutls_x509_crt_set_version(pair.certificate, 3);
    gnutls_x509_crt_set_serial(pair.certificate, "\1", 1);
    for (size_t i = 0; i < MAX_VALUES && wish->subject[i].oid != NULL; i++)
        add_value(pair.certificate, &wish->subject[i]);
    gnutls_x509_crt_set_activation_time(pair.certificate,
                                        now + (wish->from_s != 0 ? wish->from_s : -DAY_S));
    gnutls_x509_crt_set_expiration_time(pair.certificate,
                                        now + (wish->to_s != 0 ? wish->to_s : DAY_S));
    gnutls_x509_crt_set_basic_constraints(pair.certificate, wish->is_authority, -1);
    if (wish->is_authority)
        gnutls_x509_crt_set_key_usage(pair.certificate, GNUTLS_KEY_KEY_CERT_SIGN);
    if (wish->usage != NULL)
        gnutls_x509_crt_set_key_purpose_oid(pair.certificate, wish->usage, 0);
    gnutls_x509_crt_set_key(pair.certificate, pair.key);
    assert_int_equal(gnutls_x509_crt_sign2(pair.certificate,
                                           by != NULL ? by->certificate : pair.certificate,
                                           by != NULL ? by->key : pair.key, GNUTLS_DIG_SHA256, 0),
                     0);
    assert_int_equal(gnutls_x509_crt_export2(pair.certificate, GNUTLS_X509_FMT_DER, &pair.der), 0);
    return pair;
}

static void release(struct pair *pair)
{
    gnutls_x509_crt_deinit(pair->certificate);
    gnutls_x509_privkey_deinit(pair->key);
    gnutls_free(pair->der.data);
}

static void write_authority(const struct pair *pair)
{
    gnutls_datum_t pem;

    assert_int_equal(gnutls_x509_crt_export2(pair->certificate, GNUTLS_X509_FMT_PEM, &pem), 0);
    assert_int_equal(
        kinf__file_replace(authority_file, (struct kinf_str){ (char *)pem.data, pem.size }, NULL),
        0);
    gnutls_free(pem.data);
}

static struct kinf__client_authority *open_authority(void)
{
    struct kinf__client_authority *opened = NULL;

    assert_int_equal(kinf__client_authority_new(authority_file, &opened, NULL), 0);
    return opened;
}

/* What a certificate with this wish says; NULL: it is nobody's. The caller's. */
static char *user_of(const struct wish *wish, const struct pair *by)
{
    struct kinf__client_authority *opened = open_authority();
    struct kinf__client_certificate judged = { 0 };
    struct pair pair = make(wish, by);
    char *user;

    kinf__client_certificate_judge(&judged, opened, &pair.der, 1, 1);
    user = judged.user;
    release(&pair);
    kinf__client_authority_free(opened);
    return user;
}

/* Up to the digest. */
static void assert_user(const struct wish *wish, const char *expected)
{
    static const char extra[] =
        ",\"extra\":{\"authentication.kubernetes.io/credential-id\":[\"X509SHA256=";
    char *user = user_of(wish, &authority);
    char *end;

    assert_non_null(user);
    end = strstr(user, extra);
    assert_non_null(end);
    assert_int_equal(strlen(end + strlen(extra)), strlen("\"]}") + 64);
    *end = '\0';
    assert_string_equal(user, expected);
    free(user);
}

static void assert_nobody(const struct wish *wish, const struct pair *by)
{
    char *user = user_of(wish, by);

    assert_null(user);
}

static void name_groups_and_uid_are_the_subjects(void **state)
{
    (void)state;
    assert_user(&(struct wish){ { { CN, NULL, "jane", 0 } }, CLIENT_USAGE, 0, 0, false },
                "\"user\":\"jane\",\"groups\":[\"system:authenticated\"]");
    assert_user(&(struct wish){ { { O, NULL, "b", 0 },
                                  { CN, NULL, "j\"ane", 0 },
                                  { O, PRINTABLE, "a b", 0 },
                                  { UID, NULL, "u-1", 0 },
                                  { "2.5.4.11", NULL, "unit", 0 } },
                                NULL,
                                0,
                                0,
                                false },
                "\"user\":\"j\\\"ane\",\"uid\":\"u-1\",\"groups\":[\"b\",\"a b\","
                "\"system:authenticated\"]");
    assert_user(&(struct wish){ { { CN, NULL, "first", 0 },
                                  { CN, "\x14", "M\xfcller", 0 },
                                  { O, NULL, "system:unauthenticated", 0 } },
                                NULL,
                                0,
                                0,
                                false },
                "\"user\":\"M\xc3\xbcller\",\"groups\":[\"system:unauthenticated\"]");
    assert_user(&(struct wish){ { { CN, NULL, "system:anonymous", 0 } }, NULL, 0, 0, false },
                "\"user\":\"system:anonymous\",\"groups\":[]");
}

static void what_is_no_good_name_is_nobody(void **state)
{
    static const struct wish wishes[] = {
        { .subject = { { O, NULL, "group", 0 } } },
        { .subject = { { 0 } } },
        { .subject = { { CN, NULL, "admin\0x", 7 } } },
        { .subject = { { CN, NULL, "\xff", 0 } } },
        { .subject = { { CN, PRINTABLE, "a@b", 0 } } },
        { .subject = { { CN, "\x12", "12a", 0 } } },
        { .subject = { { CN, "\x16", "\x80", 0 } } },
        { .subject = { { CN, "\x1e", "\0a\0b", 4 } } },
        { .subject = { { CN, NULL, "jane", 0 }, { "2.5.4.11", "\x1e", "\0a", 2 } } },
        { .subject = { { CN, NULL, "jane", 0 }, { UID, NULL, "1", 0 }, { UID, NULL, "2", 0 } } },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(wishes); i++)
        assert_nobody(&wishes[i], &authority);
}

static void only_a_good_certificate_of_the_authority_is_taken(void **state)
{
    struct wish wish = { .subject = { { CN, NULL, "jane", 0 } }, .usage = CLIENT_USAGE };

    (void)state;
    assert_nobody(&wish, &other_authority);
    assert_nobody(&wish, NULL);
    wish.to_s = -1;
    assert_nobody(&wish, &authority);
    wish.to_s = wish.from_s = DAY_S / 2;
    assert_nobody(&wish, &authority);
    wish.to_s = wish.from_s = 0;
    wish.usage = SERVER_USAGE;
    assert_nobody(&wish, &authority);
    wish.usage = GNUTLS_KP_ANY;
    assert_user(&wish, "\"user\":\"jane\",\"groups\":[\"system:authenticated\"]");
}

static void an_authority_between_may_come_with_it(void **state)
{
    const struct wish between = { .subject = { { CN, NULL, "between", 0 } }, .is_authority = true };
    const struct wish wish = { .subject = { { CN, NULL, "jane", 0 } } };
    struct kinf__client_authority *opened = open_authority();
    struct kinf__client_certificate judged = { 0 };
    struct pair middle = make(&between, &authority), end = make(&wish, &middle);
    gnutls_datum_t chain[17] = { end.der, middle.der };

    (void)state;
    kinf__client_certificate_judge(&judged, opened, chain, 1, 1);
    assert_null(judged.user);
    kinf__client_certificate_release(&judged);
    kinf__client_certificate_judge(&judged, opened, chain, 2, 1);
    assert_non_null(judged.user);
    kinf__client_certificate_release(&judged);
    kinf__client_certificate_judge(&judged, opened, chain, 17, 1);
    assert_null(judged.user);
    kinf__client_certificate_judge(&judged, opened, NULL, 0, 1);
    assert_null(judged.user);
    kinf__client_certificate_release(&judged);
    /* The first is good even so. */
    chain[2] = (gnutls_datum_t){ (unsigned char *)"nothing", 7 };
    kinf__client_certificate_judge(&judged, opened, chain, 3, 1);
    assert_null(judged.user);
    kinf__client_certificate_release(&judged);
    release(&end);
    release(&middle);
    kinf__client_authority_free(opened);
}

static void a_judgement_holds_for_a_while_and_no_longer_than_its_authority(void **state)
{
    const struct wish wish = { .subject = { { CN, NULL, "jane", 0 } } };
    struct kinf__client_authority *opened = open_authority();
    struct kinf__client_certificate judged = { 0 };
    struct pair pair = make(&wish, &authority);
    const char *user;

    (void)state;
    kinf__client_certificate_judge(&judged, opened, &pair.der, 1, 1);
    user = judged.user;
    assert_non_null(user);
    assert_in_range(judged.expires_ms, kinf__clock_wall_ms() + (DAY_S - 60) * 1000LL,
                    kinf__clock_wall_ms() + (DAY_S + 60) * 1000LL);
    /* Nothing is looked at, not even what is shown. */
    kinf__client_certificate_judge(&judged, opened, NULL, 0, 900);
    assert_ptr_equal(judged.user, user);
    assert_int_equal(kinf__file_replace(authority_file, KINF_STR("nothing"), NULL), 0);
    kinf__client_certificate_judge(&judged, opened, &pair.der, 1, 2000);
    assert_ptr_equal(judged.user, user);
    write_authority(&other_authority);
    kinf__client_certificate_judge(&judged, opened, &pair.der, 1, 2900);
    assert_ptr_equal(judged.user, user);
    kinf__client_certificate_judge(&judged, opened, &pair.der, 1, 4000);
    assert_null(judged.user);
    write_authority(&authority);
    kinf__client_certificate_judge(&judged, opened, &pair.der, 1, 6000);
    assert_non_null(judged.user);
    kinf__client_certificate_judge(&judged, opened, NULL, 0, 17000);
    assert_null(judged.user);
    release(&pair);
    kinf__client_authority_free(opened);
}

/* It does not change again. */
static void a_file_that_cannot_be_read_just_now_is_read_later(void **state)
{
    const struct wish wish = { .subject = { { CN, NULL, "jane", 0 } } };
    struct kinf__client_authority *opened = open_authority();
    struct kinf__client_certificate judged = { 0 };
    struct pair pair = make(&wish, &authority);
    struct rlimit limit, none;

    (void)state;
    kinf__client_certificate_judge(&judged, opened, &pair.der, 1, 1);
    assert_non_null(judged.user);
    write_authority(&other_authority);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){ 0, limit.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    kinf__client_certificate_judge(&judged, opened, &pair.der, 1, 2000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_non_null(judged.user);
    kinf__client_certificate_judge(&judged, opened, &pair.der, 1, 4000);
    assert_null(judged.user);
    write_authority(&authority);
    release(&pair);
    kinf__client_authority_free(opened);
}

static void a_file_without_authorities_is_refused(void **state)
{
    struct kinf__client_authority *opened = NULL;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(kinf__client_authority_new("/no/such/file", &opened, &err), KINF_ERR_CONFIG);
    assert_non_null(strstr(err.message, "/no/such/file: No such file"));
    assert_int_equal(kinf__client_authority_new("/dev/null", &opened, &err), KINF_ERR_CONFIG);
    assert_non_null(strstr(err.message, "/dev/null: no certificate"));
}

/* GnuTLS's allocations are its own. */
static void without_memory_a_certificate_is_nobodys(void **state)
{
    const struct wish wish = {
        .subject = { { CN, NULL, "jane", 0 }, { O, NULL, "a", 0 }, { UID, NULL, "u", 0 } }
    };
    struct pair pair = make(&wish, &authority);
    bool did_fail = true;

    (void)state;
    for (size_t n = 1; did_fail; n++) {
        struct kinf__client_certificate judged = { 0 };
        struct kinf__client_authority *opened = NULL;
        int failed;

        test_fail_allocation(n);
        failed = kinf__client_authority_new(authority_file, &opened, NULL);
        if (failed == 0)
            kinf__client_certificate_judge(&judged, opened, &pair.der, 1, 1);
        did_fail = test_allocation_failed();
        assert_int_equal(failed < 0 ? failed : KINF_ERR_NO_MEMORY, KINF_ERR_NO_MEMORY);
        assert_int_equal(judged.user == NULL, did_fail);
        kinf__client_certificate_release(&judged);
        kinf__client_authority_free(opened);
    }
    release(&pair);
}

static int set_up(void **state)
{
    const struct wish wish = { .subject = { { CN, NULL, "ca", 0 } }, .is_authority = true };
    int fd;

    (void)state;
    snprintf(authority_file, sizeof authority_file, "/tmp/test-client-ca-XXXXXX");
    fd = mkstemp(authority_file);
    if (fd >= 0)
        close(fd);
    authority = make(&wish, NULL);
    other_authority = make(&wish, NULL);
    write_authority(&authority);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    release(&authority);
    release(&other_authority);
    return unlink(authority_file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_groups_and_uid_are_the_subjects),
        cmocka_unit_test(what_is_no_good_name_is_nobody),
        cmocka_unit_test(only_a_good_certificate_of_the_authority_is_taken),
        cmocka_unit_test(an_authority_between_may_come_with_it),
        cmocka_unit_test(a_judgement_holds_for_a_while_and_no_longer_than_its_authority),
        cmocka_unit_test(a_file_that_cannot_be_read_just_now_is_read_later),
        cmocka_unit_test(a_file_without_authorities_is_refused),
        cmocka_unit_test(without_memory_a_certificate_is_nobodys),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
