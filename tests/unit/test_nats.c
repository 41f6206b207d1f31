/*
 * What of the plugin for NATS needs no server: keys, the configuration, what is known. All else is in
 * tests/integration/test_nats.py.
 */
#include "../../plugins/nats/config.h"
#include "../../plugins/nats/key.h"
#include "../../plugins/nats/known.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/compiler.h"
#include "unit/allocation.h"
#include "unit/test.h"

static void assert_key(const char *resource, const char *key, const char *encoded)
{
    char *text = nats_key_encode(resource, key), *resource_back, *key_back;

    assert_non_null(text);
    assert_string_equal(text, encoded);
    assert_int_equal(nats_key_decode(text, &resource_back, &key_back), 0);
    assert_string_equal(resource_back, resource);
    assert_string_equal(key_back, key);
    free(text);
    free(resource_back);
    free(key_back);
}

static void keys_are_three_tokens_and_names_can_be_had_back(void **state)
{
    (void)state;
    assert_key("pods", "default/web-1", "pods.default.web-1");
    assert_key("deployments.apps", "default/web.example", "deployments_apps.default.web_example");
    assert_key("nodes", "node-1", "nodes.-.node-1");
    assert_key("clusterroles.rbac.authorization.k8s.io", "system:a_b=c*>",
               "clusterroles_rbac_authorization_k8s_io.-.system=3Aa=5Fb=3Dc=2A=3E");
    assert_key("roles", "a/\xC3\xA9 $\x01", "roles.a.=C3=A9=20=24=01");
    assert_key("pods", "a/..", "pods.a.__");
}

static void what_is_no_key_is_not_decoded(void **state)
{
    static const char *const ROWS[] = { "",      "pods",    "pods.a",  "pods.a.", "pods.a.b.c",
                                        "a.b.=", "a.b.=4",  "a.b.=zz", "a.b.=00", "a.b.=+1",
                                        ".",     "_writer", "a.b.c=",  "a.b=4.c", "a.b.= 1" };
    char *resource, *key;

    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        assert_int_equal(nats_key_decode(ROWS[i], &resource, &key), -1);
}

/* All bytes that a name can have. */
static void every_byte_has_its_own_key(void **state)
{
    char name[] = "x?x";

    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        char *encoded, *resource, *key;

        name[1] = (char)byte;
        if (byte == '/')
            continue;
        encoded = nats_key_encode("pods", name);
        assert_int_equal(
            strspn(encoded, "-_=.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"),
            strlen(encoded));
        assert_int_equal(nats_key_decode(encoded, &resource, &key), 0);
        assert_string_equal(key, name);
        free(encoded);
        free(resource);
        free(key);
    }
}

static void the_configuration_has_defaults(void **state)
{
    struct nats_config config;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(nats_config_parse("{\"servers\":[\"nats://a\",\"nats://b\"]}", &config, &err),
                     0);
    assert_int_equal(cJSON_GetArraySize(config.servers), 2);
    assert_string_equal(config.stream, "KINFORMER");
    assert_string_equal(config.subject_prefix, "kinformer");
    assert_string_equal(config.bucket, "kinformer");
    assert_int_equal(config.max_age_s, 86400);
    assert_int_equal(config.replicas, 1);
    assert_null(config.credentials);
    nats_config_release(&config);
}

static void the_configuration_is_read(void **state)
{
    struct nats_config config;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(
        nats_config_parse(
            "{\"servers\":[\"tls://a\"],\"credentials\":\"c\",\"tls\":{\"caFile\":\"f\","
            "\"certFile\":\"g\",\"keyFile\":\"h\"},\"stream\":\"S\",\"bucket\":\"B-1\","
            "\"subjectPrefix\":\"a.b\",\"duplicateWindow\":\"90s\",\"maxAge\":\"10m\","
            "\"maxBytes\":1000,\"replicas\":3}",
            &config, &err),
        0);
    assert_string_equal(config.credentials, "c");
    assert_string_equal(config.ca_file, "f");
    assert_string_equal(config.cert_file, "g");
    assert_string_equal(config.key_file, "h");
    assert_string_equal(config.stream, "S");
    assert_string_equal(config.bucket, "B-1");
    assert_string_equal(config.subject_prefix, "a.b");
    assert_int_equal(config.duplicate_window_s, 90);
    assert_int_equal(config.max_age_s, 600);
    assert_int_equal(config.max_bytes, 1000);
    assert_int_equal(config.replicas, 3);
    nats_config_release(&config);
}

#define TEN       "0123456789"
#define LONG_NAME TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "12345678"

/* Behind the servers. */
static void assert_refused(const char *rest, const char *words)
{
    struct nats_config config;
    struct kinf_error err = KINF_ERROR_INIT;
    char text[512];

    snprintf(text, sizeof text, "{\"servers\":[\"nats://a\"],%s}", rest);
    assert_int_equal(nats_config_parse(text, &config, &err), KINF_ERR_CONFIG);
    assert_int_equal(err.code, KINF_ERR_CONFIG);
    assert_string_equal(err.message, words);
}

static void what_is_wrong_in_the_configuration_is_named(void **state)
{
    static const char DURATION[] = "maxAge is a duration in whole seconds, such as 90s, 10m or 24h";
    static const char SUBJECT[] =
        "subjectPrefix has names of letters, digits, '-' and '_' with dots between them";

    (void)state;
    assert_refused("\"url\":1", "url is not known");
    assert_refused("\"tls\":{\"ca\":1}", "ca is not known");
    assert_refused("\"tls\":1", "what is to be a mapping is none");
    assert_refused("\"tls\":{\"certFile\":\"x\"}", "of certFile and keyFile one is missing");
    assert_refused("\"servers\":[]", "servers is a list of URLs");
    assert_refused("\"servers\":[7]", "servers is a list of URLs");
    assert_refused("\"servers\":\"nats://a\"", "servers is a list of URLs");
    assert_refused("\"stream\":\"a.b\"", "stream has letters, digits, '-' and '_'");
    assert_refused("\"stream\":\"" LONG_NAME "x\"", "stream is longer than 128 bytes");
    assert_refused("\"subjectPrefix\":\"" LONG_NAME "x\"",
                   "subjectPrefix is longer than 128 bytes");
    assert_refused("\"bucket\":\"\"", "bucket is a string");
    assert_refused("\"bucket\":7", "bucket is a string");
    assert_refused("\"subjectPrefix\":\"a..b\"", SUBJECT);
    assert_refused("\"subjectPrefix\":\"a.>\"", SUBJECT);
    assert_refused("\"subjectPrefix\":\"a.\"", SUBJECT);
    assert_refused("\"maxAge\":7", DURATION);
    assert_refused("\"maxAge\":\"7\"", DURATION);
    assert_refused("\"maxAge\":\"7d\"", DURATION);
    assert_refused("\"maxAge\":\"-7s\"", DURATION);
    assert_refused("\"maxAge\":\"99999999999999999999h\"", DURATION);
    assert_refused("\"maxAge\":\"1m\",\"duplicateWindow\":\"61s\"",
                   "duplicateWindow is longer than maxAge");
    assert_refused("\"maxBytes\":-1", "maxBytes is a whole number");
    assert_refused("\"maxBytes\":0.5", "maxBytes is a whole number");
    assert_refused("\"replicas\":0", "replicas is a number from 1 to 5");
    assert_refused("\"replicas\":6", "replicas is a number from 1 to 5");
}

static void without_servers_there_is_no_configuration(void **state)
{
    struct nats_config config;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(nats_config_parse("null", &config, &err), KINF_ERR_CONFIG);
    assert_string_equal(err.message, "there are no servers");
    assert_int_equal(nats_config_parse("{}", &config, &err), KINF_ERR_CONFIG);
    assert_int_equal(nats_config_parse("[]", &config, &err), KINF_ERR_CONFIG);
}

static void what_the_stream_says_counts_and_the_bucket_where_it_is_silent(void **state)
{
    struct known known = { 0 };

    (void)state;
    assert_int_equal(known_put_stream(&known, "pods.a.b", "u/1", false), 0);
    assert_int_equal(known_put_stream(&known, "pods.a.b", "u/2", false), 0);
    assert_int_equal(known_put_bucket(&known, "pods.a.b", "u/1", 0, false), 0);
    assert_int_equal(known_put_bucket(&known, "pods.a.old", "u/3", 0, false), 0);
    assert_int_equal(known_put_bucket(&known, "pods.a.foreign", "", 0, false), 0);
    assert_int_equal(known_put_bucket(&known, "pods.a.gone", "u/4", 0, false), 0);
    assert_int_equal(known_put_stream(&known, "pods.a.gone", "u/4", true), 0);
    assert_string_equal(known_told(known_find(&known, "pods.a.b")), "u/2");
    assert_string_equal(known_told(known_find(&known, "pods.a.old")), "u/3");
    assert_null(known_told(known_find(&known, "pods.a.foreign")));
    assert_null(known_told(known_find(&known, "pods.a.gone")));
    assert_null(known_find(&known, "pods.a"));
    known_release(&known);
    assert_null(known_find(&known, "pods.a.b"));
}

static void assert_ahead(const char *stream, bool is_gone, const char *bucket, const char *version,
                         bool is_ahead)
{
    struct known known = { 0 };

    if (stream != NULL)
        assert_int_equal(known_put_stream(&known, "pods.a.b", stream, is_gone), 0);
    if (bucket != NULL)
        assert_int_equal(known_put_bucket(&known, "pods.a.b", bucket, 0, false), 0);
    assert_int_equal(known_is_ahead(known_find(&known, "pods.a.b"), version), is_ahead);
    known_release(&known);
}

static void what_was_told_is_ahead_of_older_versions(void **state)
{
    (void)state;
    assert_ahead("u/10", false, NULL, "u/9", true);
    assert_ahead("u/10", false, NULL, "u/10", false);
    assert_ahead("u/10", false, NULL, "u/11", false);
    assert_ahead("u/9", false, NULL, "u/10", false);
    assert_ahead("new/10", false, NULL, "old/9", true);
    assert_ahead("u/10", true, "u/10", "u/10", true);
    assert_ahead("u/10", true, NULL, "new/11", false);
    assert_ahead(NULL, false, "u/10", "u/9", true);
    assert_ahead(NULL, false, "", "u/9", false);
    assert_ahead("u/10", false, "u/8", "u/9", true);
    /* Nobody knows an order of these. */
    assert_ahead("u/b", false, NULL, "u/a", false);
    assert_ahead("u/10", false, NULL, "u/", false);
    assert_ahead("u/", true, NULL, "u/", false);
    assert_ahead("u/10", false, NULL, "u/09", false);
}

static void objects_of_a_resource_are_found_among_all(void **state)
{
    struct known known = { 0 };
    static const char *const RESOURCES[] = { "pod", "pods", "pods-x", "pods_metrics", "podz", "a" };
    struct known_object *object;
    char key[64];

    (void)state;
    for (int i = 0; i < 600; i++) {
        snprintf(key, sizeof key, "%s.a.%d", RESOURCES[i % 6], i * 7919 % 600);
        assert_int_equal(known_put_stream(&known, key, "u/1", false), 0);
    }
    for (int i = 0; i < 100; i++) {
        object = known_any_of(&known, "pods");
        assert_non_null(object);
        assert_memory_equal(object->key, "pods.", 5);
        known_remove(&known, object);
    }
    assert_null(known_any_of(&known, "pods"));
    assert_null(known_any_of(&known, "po"));
    assert_non_null(known_any_of(&known, "pods_metrics"));
    known_release(&known);
}

static bool encodes_and_decodes(void)
{
    char *encoded = nats_key_encode("pods", "a/b"), *resource = NULL, *key = NULL;
    bool is_done = encoded != NULL && nats_key_decode(encoded, &resource, &key) == 0;

    free(encoded);
    free(resource);
    free(key);
    return is_done;
}

static bool knows_an_object(void)
{
    struct known known = { 0 };
    bool is_done = known_put_stream(&known, "pods.a.b", "u/1", false) == 0 &&
                   known_put_bucket(&known, "pods.a.b", "u/1", 0, false) == 0 &&
                   known_put_stream(&known, "pods.a.b", "u/2", false) == 0;

    known_release(&known);
    return is_done;
}

static void sweep(bool (*act)(void))
{
    bool has_failed = true;

    for (size_t n = 1; has_failed; n++) {
        bool is_done;

        test_fail_allocation(n);
        is_done = act();
        has_failed = test_allocation_failed();
        assert_int_equal(is_done, !has_failed);
        assert_true(n < 20);
    }
}

static void want_of_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    sweep(encodes_and_decodes);
    sweep(knows_an_object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_three_tokens_and_names_can_be_had_back),
        cmocka_unit_test(what_is_no_key_is_not_decoded),
        cmocka_unit_test(every_byte_has_its_own_key),
        cmocka_unit_test(the_configuration_has_defaults),
        cmocka_unit_test(the_configuration_is_read),
        cmocka_unit_test(what_is_wrong_in_the_configuration_is_named),
        cmocka_unit_test(without_servers_there_is_no_configuration),
        cmocka_unit_test(what_the_stream_says_counts_and_the_bucket_where_it_is_silent),
        cmocka_unit_test(what_was_told_is_ahead_of_older_versions),
        cmocka_unit_test(objects_of_a_resource_are_found_among_all),
        cmocka_unit_test(want_of_memory_is_an_error_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
