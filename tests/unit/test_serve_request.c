/*
 * Requests of the served API: paths, options, selectors, Accept headers, and how they are refused.
 * The words are kube-apiserver's; tests/integration/test_serve.py compares them with a real one.
 */
#include "serve/list_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "serve/accept.h"
#include "informer/informer.h"
#include "json/quote.h"
#include "object/packed.h"
#include "serve/label_fault.h"
#include "serve/query.h"
#include "serve/token.h"
#include "unit/allocation.h"
#include "unit/test.h"

static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };
static const struct kinf_type jobs = { "batch", "v1", "Job", "jobs", true };

#define XS    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define ZEROS "0000000000000000000000000000000000000000"

/* --- paths --- */

static void each_path_has_its_route(void **state)
{
    static const struct {
        const char *target;
        enum kinf__route route;
        const char *group, *version, *name_space, *resource, *name, *subresource;
    } cases[] = {
        { "/", KINF__ROUTE_ROOT, "", "", "", "", "", "" },
        { "/api", KINF__ROUTE_API, "", "", "", "", "", "" },
        { "/api/?timeout=32s", KINF__ROUTE_API, "", "", "", "", "", "" },
        { "/apis", KINF__ROUTE_APIS, "", "", "", "", "", "" },
        { "/apis/apps/", KINF__ROUTE_GROUP, "apps", "", "", "", "", "" },
        { "/api/v1", KINF__ROUTE_GROUP_VERSION, "", "v1", "", "", "", "" },
        { "/apis/apps/v1", KINF__ROUTE_GROUP_VERSION, "apps", "v1", "", "", "", "" },
        { "/api/v1/pods", KINF__ROUTE_RESOURCE, "", "v1", "", "pods", "", "" },
        { "/api/v1/pods/?&limit=1", KINF__ROUTE_RESOURCE, "", "v1", "", "pods", "", "" },
        { "/api/v1/namespaces", KINF__ROUTE_RESOURCE, "", "v1", "", "namespaces", "", "" },
        { "/api/v1/namespaces/a", KINF__ROUTE_RESOURCE, "", "v1", "", "namespaces", "a", "" },
        { "/api/v1/namespaces/a/status", KINF__ROUTE_RESOURCE, "", "v1", "", "namespaces", "a",
          "status" },
        { "/api/v1/namespaces/a/pods", KINF__ROUTE_RESOURCE, "", "v1", "a", "pods", "", "" },
        { "/apis/g.x/v1/namespaces/a/things/b%2Dc/scale", KINF__ROUTE_RESOURCE, "g.x", "v1", "a",
          "things", "b-c", "scale" },
        { "/api/v1/watch", KINF__ROUTE_RESOURCE, "", "v1", "", "watch", "", "" },
        { "/api/v1/watch/pods", KINF__ROUTE_RESOURCE, "", "v1", "", "pods", "", "" },
        { "/apis/apps/v1/watch/namespaces/a/things/b/", KINF__ROUTE_RESOURCE, "apps", "v1", "a",
          "things", "", "" },
        { "/api/v1/watch/namespaces/a/pods/b/log", KINF__ROUTE_RESOURCE, "", "v1", "a", "pods", "b",
          "log" },
        { "/api//v1/pods", KINF__ROUTE_RESOURCE, "", "v1", "", "", "", "" },
        { "//api/v1", KINF__ROUTE_OTHER, "", "", "", "", "", "" },
        { "//", KINF__ROUTE_OTHER, "", "", "", "", "", "" },
        { "/api/v1/namespaces//pods", KINF__ROUTE_RESOURCE, "", "v1", "", "pods", "", "" },
        { "/apis/g/v1/namespaces//things/a/b", KINF__ROUTE_RESOURCE, "g", "v1", "", "things", "a",
          "b" },
        { "/api/v1/namespaces///pods", KINF__ROUTE_RESOURCE, "", "v1", "", "", "pods", "" },
        { "/api/v1/namespaces/a//pods", KINF__ROUTE_RESOURCE, "", "v1", "a", "", "", "" },
        { "/api/v1/pods/namespaces//a", KINF__ROUTE_RESOURCE, "", "v1", "", "", "namespaces", "" },
        { "/api/v1/namespaces//", KINF__ROUTE_RESOURCE, "", "v1", "", "namespaces", "", "" },
        { "/api/v1/pods//", KINF__ROUTE_RESOURCE, "", "v1", "", "pods", "", "" },
        { "/api/v1//", KINF__ROUTE_GROUP_VERSION, "", "v1", "", "", "", "" },
        { "/livez//", KINF__ROUTE_OTHER, "", "", "", "", "", "" },
        { "/version/", KINF__ROUTE_VERSION, "", "", "", "", "", "" },
        { "/version/x", KINF__ROUTE_RESOURCE, "", "", "", "", "", "" },
        { "/healthz", KINF__ROUTE_HEALTH, "", "", "", "", "", "" },
        { "/readyz/pods", KINF__ROUTE_HEALTH, "", "", "", "", "pods", "" },
        { "/healthz/", KINF__ROUTE_OTHER, "", "", "", "", "", "" },
        { "/metrics", KINF__ROUTE_METRICS, "", "", "", "", "", "" },
        { "/debug/state", KINF__ROUTE_DEBUG_STATE, "", "", "", "", "", "" },
        { "/nope", KINF__ROUTE_OTHER, "", "", "", "", "", "" },
        { "/a/b/c/d/e/f/g/h/i/j", KINF__ROUTE_OTHER, "", "", "", "", "", "" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        struct kinf__refusal refusal;
        struct kinf__request request;

        assert_int_equal(
            kinf__request_parse("GET", kinf_str_from(cases[i].target), &request, &refusal), 0);
        assert_int_equal(request.route, cases[i].route);
        assert_string_equal(request.group, cases[i].group);
        assert_string_equal(request.version, cases[i].version);
        assert_string_equal(request.name_space, cases[i].name_space);
        assert_string_equal(request.resource, cases[i].resource);
        assert_string_equal(request.name, cases[i].name);
        assert_string_equal(request.subresource, cases[i].subresource);
        kinf__request_release(&request);
    }
}

static bool is_in_namespace(const char *target)
{
    struct kinf__refusal refusal;
    struct kinf__request request;
    bool is;

    assert_int_equal(kinf__request_parse("GET", kinf_str_from(target), &request, &refusal), 0);
    is = request.is_in_namespace;
    kinf__request_release(&request);
    return is;
}

static void an_empty_namespace_is_told_from_none(void **state)
{
    (void)state;
    assert_true(is_in_namespace("/api/v1/namespaces//pods"));
    assert_true(is_in_namespace("/api/v1/namespaces/a/pods/b"));
    assert_false(is_in_namespace("/api/v1/pods"));
    assert_false(is_in_namespace("/api/v1/namespaces//"));
    assert_false(is_in_namespace("/api/v1/namespaces/a/status"));
}

static void tricks_with_paths_are_refused(void **state)
{
    static const struct kinf_str targets[] = {
        { "", 0 },
        { "*", 1 },
        { "http://127.0.0.1/api", 20 },
        { "/api/v1/namespaces/../secrets", 29 },
        { "/api/v1/%2e%2E/secrets", 22 },
        { "/api/v1/./pods", 14 },
        { "/api/v1/namespaces/a%2fb", 24 },
        { "/api/v1/namespaces/a%00b", 24 },
        { "/api/v1/namespaces/a\0b", 22 },
        { "/api/v1/pods/%zz", 16 },
        { "/api/v1/pods/%2", 15 },
        { "/api/v1/pods/%", 14 },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(targets); i++) {
        struct kinf__refusal refusal;
        struct kinf__request request;

        assert_int_equal(kinf__request_parse("GET", targets[i], &request, &refusal),
                         KINF_ERR_INVALID);
        assert_int_equal(refusal.code, 400);
    }
}

/* --- options --- */

static int read_options(const char *target, struct kinf__request *request,
                        struct kinf__list_options *options, struct kinf__refusal *refusal)
{
    assert_int_equal(kinf__request_parse("GET", kinf_str_from(target), request, refusal), 0);
    return kinf__list_options_read(request, options, refusal);
}

static void refused_options_have_the_servers_words(void **state)
{
    static const struct {
        const char *target;
        int code;
        const char *message;
    } cases[] = {
        { "/api/v1/pods?limit=abc", 400, "strconv.ParseInt: parsing \"abc\": invalid syntax" },
        { "/api/v1/pods?limit=", 400, "strconv.ParseInt: parsing \"\": invalid syntax" },
        { "/api/v1/pods?limit=99999999999999999999", 400,
          "strconv.ParseInt: parsing \"99999999999999999999\": value out of range" },
        { "/api/v1/pods?timeout=1", 400,
          "invalid timeout specified in the request URL - time: missing unit in duration \"1\"" },
        { "/api/v1/pods?timeout=1y", 400,
          "invalid timeout specified in the request URL - time: unknown unit \"y\" in duration "
          "\"1y\"" },
        { "/api/v1/pods?resourceVersion=abc", 400,
          "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: "
          "parsing \"abc\": invalid syntax" },
        { "/api/v1/pods?watch&resourceVersion=abc", 500,
          "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid "
          "syntax" },
        { "/api/v1/pods?resourceVersionMatch=Foo", 422,
          "ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden: "
          "resourceVersionMatch is forbidden unless resourceVersion is provided, "
          "resourceVersionMatch: Unsupported value: \"Foo\": supported values: \"Exact\", "
          "\"NotOlderThan\", \"\"]" },
        { "/api/v1/pods?labelSelector=k+in+(", 400,
          "unable to parse requirement: found '', expected: ',', ')' or identifier" },
        { "/api/v1/pods?labelSelector=k+in+(a,b", 400,
          "unable to parse requirement: found '', expected: ',' or ')'" },
        { "/api/v1/pods?labelSelector=a==b==c", 400,
          "found '==', expected: ',' or 'end of string'" },
        { "/api/v1/pods?labelSelector=a%3Ea", 400,
          "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' "
          "operators, the value must be an integer" },
        { "/api/v1/pods?labelSelector=a%3C" ZEROS "x", 400,
          "unable to parse requirement: values[0]: Invalid value: \"" ZEROS
          "x\": for 'Gt', 'Lt' operators, the value must be an integer" },
        { "/api/v1/pods?labelSelector=a%3C%22%5C", 400,
          "unable to parse requirement: values[0]: Invalid value: \"\\\"\\\\\": for 'Gt', 'Lt' "
          "operators, the value must be an integer" },
        { "/api/v1/pods?labelSelector=a,", 400, "found '', expected: identifier after ','" },
        { "/api/v1/pods?labelSelector=a=b,/c", 400,
          "unable to parse requirement: <nil>: Invalid value: \"/c\": prefix part must be "
          "non-empty" },
        { "/api/v1/pods?labelSelector=" XS XS XS XS "/c", 400,
          "unable to parse requirement: <nil>: Invalid value: \"" XS XS XS XS
          "/c\": prefix part must be no more than 253 bytes" },
        { "/api/v1/pods?labelSelector=a.b/" XS, 400,
          "unable to parse requirement: <nil>: Invalid value: \"a.b/" XS
          "\": name part must be no more than 63 bytes" },
        { "/api/v1/pods?labelSelector=a.b/c+in+(z,,y" XS ")", 400,
          "unable to parse requirement: values[1][a.b/c]: Invalid value: \"y" XS "\": must be no "
          "more than 63 bytes" },
        { "/api/v1/pods?labelSelector=,", 400,
          "found ',', expected: !, identifier, or 'end of string'" },
        { "/api/v1/pods?labelSelector=a+in+b", 400,
          "unable to parse requirement: found 'b' expected: '('" },
        { "/api/v1/pods?labelSelector=!", 400,
          "unable to parse requirement: found '', expected: identifier" },
        { "/api/v1/pods?labelSelector=a+b", 400,
          "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt" },
        { "/api/v1/pods?fieldSelector=status.phase", 400,
          "invalid selector: 'status.phase'; can't understand 'status.phase'" },
        { "/api/v1/pods?fieldSelector=a=b=c", 400,
          "invalid field selector: unescaped character in value: 61" },
        { "/api/v1/pods?labelSelector=a%00b", 400, "a NUL in the value of labelSelector" },
        { "/api/v1/pods?labelSelector=a===b", 400,
          "unable to parse requirement: found '=', expected: identifier" },
        { "/api/v1/pods?labelSelector=a%3E", 400,
          "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt', 'Lt' operators, "
          "the "
          "value must be an integer" },
        { "/api/v1/pods?limit=a%22%5C%0A%01", 400,
          "strconv.ParseInt: parsing \"a\\\"\\\\\\n\\x01\": invalid syntax" },
        { "/api/v1/pods?watch=1&resourceVersion=%22", 500,
          "resourceVersion: Invalid value: \"\\\"\": strconv.ParseUint: parsing \"\\\"\": invalid "
          "syntax" },
        { "/api/v1/pods?timeout=9999999999h", 400,
          "invalid timeout specified in the request URL - time: invalid duration \"9999999999h\"" },
        { "/api/v1/pods?watch=1&continue=x", 422,
          "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
          "resourceVersionMatch is forbidden when continue is provided" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        struct kinf__list_options options;
        struct kinf__refusal refusal;
        struct kinf__request request;

        assert_int_equal(read_options(cases[i].target, &request, &options, &refusal),
                         KINF_ERR_INVALID);
        assert_int_equal(refusal.code, cases[i].code);
        assert_string_equal(refusal.message, cases[i].message);
        kinf__request_release(&request);
    }
}

/* Then another parser has to say what it did not like. */
static void of_a_good_label_selector_no_fault_is_told(void **state)
{
    static const char *const good[] = {
        "", " ", "a", "!a", "a=", "a,!b/c , d=e,f!=g", "a in (b,,c),d notin (e)", "a>1,b<2"
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(good); i++) {
        char words[256] = "untouched";

        assert_false(kinf__label_fault(good[i], words, sizeof words));
        assert_string_equal(words, "untouched");
    }
}

static bool is_within(const char *text, const char *wider_text)
{
    struct kinf__fields *fields, *wider;
    struct kinf__refusal refusal;
    bool is;

    assert_int_equal(kinf__fields_parse(text, &fields, &refusal), 0);
    assert_int_equal(kinf__fields_parse(wider_text, &wider, &refusal), 0);
    is = kinf__fields_within(fields, wider);
    kinf__fields_free(fields);
    kinf__fields_free(wider);
    return is;
}

static void options_are_read_as_the_server_reads_them(void **state)
{
    struct kinf__list_options options;
    struct kinf__refusal refusal;
    struct kinf__request request;

    (void)state;
    assert_int_equal(read_options("/api/v1/pods?&limit=5&limit=x&watch=False&%6cabelSelector=a+in+"
                                  "(b,c)&fieldSelector=spec.nodeName%3Dn1,&x=%zz&timeoutSeconds=-1"
                                  "&resourceVersion=7&continue&a;b=c",
                                  &request, &options, &refusal),
                     0);
    assert_int_equal(options.limit, 5);
    assert_false(options.is_watch);
    assert_string_equal(options.label_selector, "a in (b,c)");
    assert_non_null(options.labels);
    assert_string_equal(kinf__fields_required(options.fields, "spec.nodeName"), "n1");
    assert_int_equal(options.timeout_s, -1);
    assert_string_equal(options.resource_version, "7");
    assert_string_equal(options.continue_token, "");
    kinf__list_options_release(&options);
    kinf__request_release(&request);

    /* Only a watch that is made a watch list minds a token. "=" asks for nothing. */
    assert_int_equal(read_options("/api/v1/pods?watch=1&continue=x&resourceVersion=5&fieldSelector="
                                  "%3D,!%3D&timeout=2562047h",
                                  &request, &options, &refusal),
                     0);
    assert_true(is_within("", options.field_selector));
    kinf__list_options_release(&options);
    kinf__request_release(&request);

    /* Of an object's parameters only a few count. */
    assert_int_equal(read_options("/api/v1/namespaces/a/pods/b?watch=1&limit=x&labelSelector=%28",
                                  &request, &options, &refusal),
                     0);
    assert_false(options.is_watch);
    kinf__list_options_release(&options);
    kinf__request_release(&request);
}

static void a_flag_is_set_unless_it_says_no(void **state)
{
    static const struct {
        const char *target;
        bool is_watch;
    } rows[] = {
        { "/api/v1/pods?watch", true },
        { "/api/v1/pods?watch=1", true },
        { "/api/v1/pods?watch=no", true },
        { "/api/v1/pods?watch=0", false },
        { "/api/v1/pods?watch=FALSE", false },
        { "/api/v1/pods?watch=%46%61%6c%73%65", false },
        { "/api/v1/pods?watch=%46%61%6c%73%65%20", true },
        { "/api/v1/pods?watch=" XS, true },
        /* What is broken is not there: the next one counts. */
        { "/api/v1/pods?watch=%zz", false },
        { "/api/v1/pods?watch=%zz&watch=1", true },
        { "/api/v1/pods?watch=0&watch=1", false },
        { "/api/v1/pods?w%61tch=1", true },
        { "/api/v1/pods?watch" XS XS XS "=1", false },
        { "/api/v1/pods?" XS XS XS "=1&watch=1", true },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf__list_options options;
        struct kinf__refusal refusal;
        struct kinf__request request;

        assert_int_equal(read_options(rows[i].target, &request, &options, &refusal), 0);
        assert_int_equal(options.is_watch, rows[i].is_watch);
        assert_int_equal(request.verb, rows[i].is_watch ? KINF__VERB_WATCH : KINF__VERB_LIST);
        kinf__list_options_release(&options);
        kinf__request_release(&request);
    }
}

/* One reading refuses it, the other has the words for it. */
static void each_selector_that_is_refused_has_the_servers_words(void **state)
{
    static const char *const words[] = {
        "a", "b/c", "d.e/f", "/",  "in",       "notin", "=",  "==", "!=",  "!",
        "<", ">",   "(",     ")",  ",",        " ",     "1",  "-1", "+1",  "-",
        "_", ".",   "\"",    "\\", "\xc3\xa4", "A.B/C", "g-", XS,   ZEROS,
    };
    struct test_random random =
        test_random_init("each_selector_that_is_refused_has_the_servers_words");

    (void)state;
    for (size_t round = 0; round < test_rounds(20000); round++) {
        char text[16 * sizeof XS] = "", fault[2048];
        struct kinf_label_selector *selector = NULL;
        size_t n_words = test_random_below(&random, 10);
        bool is_refused;

        for (size_t i = 0; i < n_words; i++)
            strcat(text, words[test_random_below(&random, KINF__ARRAY_LEN(words))]);
        is_refused = kinf_label_selector_parse(text, &selector, NULL) < 0;
        if (kinf__label_fault(text, fault, sizeof fault) != is_refused)
            fail_msg("%s: %s", text, is_refused ? "no fault is found" : fault);
        kinf_label_selector_free(selector);
    }
}

/* Whatever comes in, nothing is read or written beyond it: the sanitizers look. */
static void any_target_is_read_or_refused(void **state)
{
    static const char letters[] = "/?&=%+;,()!<>.apis/v1/namespaces/pods0f watch=labelSelector";
    struct test_random random = test_random_init("any_target_is_read_or_refused");

    (void)state;
    for (size_t round = 0; round < test_rounds(20000); round++) {
        char text[128] = "/api/v1/pods?labelSelector=";
        size_t len = test_random_below(&random, sizeof text), kept = test_random_below(&random, 28);
        struct kinf__list_options options;
        struct kinf__refusal refusal;
        struct kinf__request request;

        for (size_t i = kept; i < len; i++)
            text[i] = letters[test_random_below(&random, sizeof letters)];
        if (kinf__request_parse("GET", (struct kinf_str){ text, len }, &request, &refusal) < 0)
            continue;
        if (kinf__list_options_read(&request, &options, &refusal) == 0)
            kinf__list_options_release(&options);
        else
            assert_true(refusal.code >= 400);
        kinf__request_release(&request);
    }
}

static void out_of_memory_is_an_ordinary_refusal(void **state)
{
    bool did_fail = true;

    (void)state;
    for (size_t n = 1; did_fail; n++) {
        struct kinf__list_options options = { .text = NULL };
        struct kinf__refusal refusal;
        struct kinf__request request;
        int parsed, read = 0;

        test_fail_allocation(n);
        parsed = kinf__request_parse(
            "GET", KINF_STR("/api/v1/watch/namespaces/n/pods/a?labelSelector=a in (b)"), &request,
            &refusal);
        if (parsed == 0) {
            read = kinf__list_options_read(&request, &options, &refusal);
            if (read == 0)
                read = kinf__fields_bind(options.fields, &pods, NULL, 0, &refusal);
        }
        did_fail = test_allocation_failed();
        assert_int_equal(parsed == 0 && read == 0, !did_fail);
        if (did_fail)
            assert_int_equal(refusal.code, 500);
        if (parsed == 0) {
            /* What failed to be read was released already. */
            if (read == 0 || options.text != NULL)
                kinf__list_options_release(&options);
            kinf__request_release(&request);
        }
    }
}

/* --- field selectors --- */

static void assert_field_match(const struct kinf_type *type, const char *selector, const char *json,
                               bool expected)
{
    const struct kinf_object *object;
    struct kinf__fields *fields;
    struct kinf__refusal refusal;
    const char *path = "spec.indexed";

    assert_int_equal(kinf_object_new_from_json(type, json, strlen(json), &object, NULL), 0);
    assert_int_equal(kinf__fields_parse(selector, &fields, &refusal), 0);
    assert_int_equal(kinf__fields_bind(fields, type, &path, 1, &refusal), 0);
    assert_int_equal(kinf__fields_match(fields, object), expected);
    kinf__fields_free(fields);
    kinf_object_unref(object);
}

static void absent_fields_have_the_servers_values(void **state)
{
    static const char pod[] = "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"},"
                              "\"spec\":{\"indexed\":7},\"status\":{\"phase\":\"a,b\"}}";
    static const char job[] = "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"},"
                              "\"status\":{\"succeeded\":2}}";

    (void)state;
    assert_field_match(&pods, "spec.nodeName=", pod, true);
    assert_field_match(&pods, "spec.nodeName!=n1", pod, true);
    assert_field_match(&pods, "spec.hostNetwork=false", pod, true);
    assert_field_match(&pods, "spec.hostNetwork!=false", pod, false);
    assert_field_match(&pods, "status.phase=a\\,b", pod, true);
    assert_field_match(&pods, "metadata.name=a,,metadata.namespace==n,", pod, true);
    assert_field_match(&pods, "metadata.name=a,metadata.name=b", pod, false);
    assert_field_match(&pods, "spec.indexed=7", pod, true);
    assert_field_match(&jobs, "status.successful=2", job, true);
}

/* kubelet lists the requests of its node by it, and a projected volume's bundles by their signer. */
static void certificates_are_selected_by_what_the_server_knows_of_them(void **state)
{
    static const char request[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"},"
        "\"spec\":{\"signerName\":\"x.io/s\",\"podName\":\"p\",\"nodeName\":\"n1\"}}";
    static const char bundle[] =
        "{\"metadata\":{\"name\":\"x.io:s:a\"},\"spec\":{\"signerName\":\"x.io/s\"}}";
    const struct kinf_type *requests, *bundles;

    (void)state;
    assert_int_equal(kinf_type_intern("certificates.k8s.io", "v1", "PodCertificateRequest",
                                      "podcertificaterequests", true, &requests, NULL),
                     0);
    assert_int_equal(kinf_type_intern("certificates.k8s.io", "v1", "ClusterTrustBundle",
                                      "clustertrustbundles", false, &bundles, NULL),
                     0);
    assert_field_match(requests, "spec.nodeName=n1", request, true);
    assert_field_match(requests, "spec.nodeName=n2", request, false);
    assert_field_match(requests, "spec.podName=p,spec.signerName=x.io/s", request, true);
    assert_field_match(requests, "spec.podName=", request, false);
    assert_field_match(bundles, "spec.signerName=x.io/s", bundle, true);
    assert_field_match(bundles, "spec.signerName=", bundle, false);
}

/* An empty component is as good as none. */
static void the_source_of_an_event_may_be_who_reports_it(void **state)
{
    static const char both[] = "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"},\"source\":"
                               "{\"component\":\"c\"},\"reportingComponent\":\"r\"}";
    static const char one[] = "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"},\"source\":"
                              "{\"component\":\"\"},\"reportingComponent\":\"r\"}";
    static const char none[] = "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"}}";
    const struct kinf_type *events;

    (void)state;
    assert_int_equal(kinf_type_intern("", "v1", "Event", "events", true, &events, NULL), 0);
    assert_field_match(events, "source=c", both, true);
    assert_field_match(events, "source=r", both, false);
    assert_field_match(events, "source=r", one, true);
    assert_field_match(events, "source=", one, false);
    assert_field_match(events, "source=", none, true);
    assert_field_match(events, "source!=r", none, true);
}

/* Behind the dictionary. */
static const struct kinf_object *compressed_event(struct kinf_informer *informer)
{
    const struct kinf_object *event = NULL;
    struct kinf__object_decoder decoder;

    kinf__packer_set_dictionary_size(informer->packer, 4000);
    kinf__object_decoder_init(&decoder, kinf_informer_type(informer),
                              kinf__informer_plan(informer));
    decoder.packer = informer->packer;
    for (unsigned i = 0; event == NULL || !event->is_packed; i++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
        size_t len;

        kinf_object_unref(event);
        assert_int_equal(kinf__buffer_printf(&text,
                                             "{\"metadata\":{\"name\":\"e%u\",\"namespace\":\"n\"},"
                                             "\"involvedObject\":{\"name\":\"i\"},\"more\":\"yes\","
                                             "\"source\":{},\"reportingComponent\":\"r\","
                                             "\"message\":\"%0999u\"}",
                                             i, i),
                         0);
        assert_int_equal(
            kinf__object_decode(&decoder, kinf__buffer_str(&text), true, &event, &len, NULL), 0);
    }
    kinf__object_decoder_release(&decoder);
    return event;
}

/* Which would need memory: without any, what is not kept readable matches nothing. */
static void selectors_of_compressed_events_inflate_nothing(void **state)
{
    static const struct {
        const char *selector;
        bool is_match, is_readable;
    } rows[] = {
        { "source=r", true, true },
        { "source=s", false, true },
        { "involvedObject.name=i,reportingComponent=r", true, true },
        { "more=yes", true, false },
        { "more!=no", true, false },
    };
    const struct kinf_informer_options options = { .size = sizeof options, .compressed = true };
    const char *path = "more";
    const struct kinf_object *event;
    struct kinf_informer *informer;
    const struct kinf_type *events;

    (void)state;
    assert_int_equal(kinf_type_intern("", "v1", "Event", "events", true, &events, NULL), 0);
    assert_int_equal(kinf__informer_new_for_type(NULL, events, &options, &informer, NULL), 0);
    assert_int_equal(kinf__fields_keep_readable(informer, NULL), 0);
    event = compressed_event(informer);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf__fields *fields;
        struct kinf__refusal refusal;
        int matched;

        assert_int_equal(kinf__fields_parse(rows[i].selector, &fields, &refusal), 0);
        assert_int_equal(kinf__fields_bind(fields, events, &path, 1, &refusal), 0);
        assert_int_equal(kinf__fields_match(fields, event), rows[i].is_match);
        test_fail_allocation(1);
        matched = kinf__fields_match(fields, event);
        assert_int_equal(test_allocation_failed(), !rows[i].is_readable);
        assert_int_equal(matched, rows[i].is_readable ? rows[i].is_match : KINF_ERR_NO_MEMORY);
        kinf__fields_free(fields);
    }
    kinf_object_unref(event);
    kinf_informer_free(informer);
}

static void many_terms_of_a_field_are_one(void **state)
{
    static const char pod[] = "{\"metadata\":{\"name\":\"m\",\"namespace\":\"n\"},\"spec\":"
                              "{\"nodeName\":\"a\\u0062\"},\"status\":{\"phase\":\"Running\"}}";

    (void)state;
    assert_field_match(&pods, "metadata.name!=a,metadata.name!=z,metadata.name!=mm", pod, true);
    assert_field_match(&pods, "metadata.name!=a,metadata.name!=m,metadata.name!=z", pod, false);
    assert_field_match(&pods, "status.phase!=A,spec.nodeName=ab,status.phase!=B", pod, true);
    assert_field_match(&pods, "status.phase!=A,spec.nodeName!=ab,status.phase!=B", pod, false);
    assert_field_match(&pods, "spec.nodeName=ab,spec.nodeName=ab,spec.nodeName!=a", pod, true);
    assert_field_match(&pods, "spec.nodeName=ab,spec.nodeName!=ab", pod, false);
}

static void the_first_field_that_is_not_known_is_refused(void **state)
{
    struct kinf__fields *fields;
    struct kinf__refusal refusal;

    (void)state;
    assert_int_equal(kinf__fields_parse("status.phase=A,z=1,a=1", &fields, &refusal), 0);
    assert_int_equal(kinf__fields_bind(fields, &pods, NULL, 0, &refusal), KINF_ERR_INVALID);
    assert_string_equal(refusal.message, "field label not supported: z");
    kinf__fields_free(fields);
}

static void assert_index_value(const struct kinf_type *type, const char *selector, const char *path,
                               const char *expected)
{
    struct kinf__fields *fields;
    struct kinf__refusal refusal;
    const char *found;

    assert_int_equal(kinf__fields_parse(selector, &fields, &refusal), 0);
    assert_int_equal(kinf__fields_bind(fields, type, &path, 1, &refusal), 0);
    found = kinf__fields_required_at(fields, path);
    assert_string_equal(found != NULL ? found : "none", expected);
    kinf__fields_free(fields);
}

/* What it does not have it would leave out of the answer. */
static void an_index_is_read_only_if_it_has_every_match(void **state)
{
    (void)state;
    assert_index_value(&pods, "status.phase!=x,spec.nodeName=n1", "spec.nodeName", "n1");
    assert_index_value(&pods, "spec.indexed=7", "spec.indexed", "7");
    assert_index_value(&pods, "spec.nodeName=n1", "spec.indexed", "none");
    assert_index_value(&pods, "spec.nodeName!=n1", "spec.nodeName", "none");
    assert_index_value(&pods, "spec.nodeName=", "spec.nodeName", "none");
    assert_index_value(&pods, "spec.hostNetwork=false", "spec.hostNetwork", "none");
    assert_index_value(&pods, "spec.hostNetwork=true", "spec.hostNetwork", "true");
    assert_index_value(&pods, "status.podIPs=10.0.0.1", "status.podIPs", "none");
    assert_index_value(&pods, "status.podIPs=10.0.0.1", "status.podIPs[0].ip", "10.0.0.1");
    assert_index_value(&jobs, "status.successful=2", "status.successful", "none");
    assert_index_value(&jobs, "status.successful=2", "status.succeeded", "2");
}

static void fields_within_a_scope_repeat_its_terms(void **state)
{
    static const char selector[] = "status.phase!=Failed,spec.nodeName=n1";

    (void)state;
    assert_true(is_within(selector, "spec.nodeName=n1"));
    assert_true(is_within(selector, "spec.nodeName==n1"));
    assert_false(is_within(selector, "spec.nodeName=n2"));
    assert_false(is_within(selector, "spec.nodeName!=n1"));
    assert_false(is_within("", "spec.nodeName=n1"));
    assert_true(is_within("", ""));
}

/* --- Accept --- */

#define TABLE "application/json;as=Table;g=meta.k8s.io;v=v1"

static void a_header_is_answered_in_the_form_that_it_prefers(void **state)
{
    static const struct {
        const char *header;
        enum kinf__form form; /* KINF__N_FORMS: 406 */
    } cases[] = {
        { NULL, KINF__FORM_OBJECT },
        { "", KINF__FORM_OBJECT },
        { "*/*", KINF__FORM_OBJECT },
        { "application/json", KINF__FORM_OBJECT },
        { "application/json;charset=utf-8;unknown=x", KINF__FORM_OBJECT },
        { "application/vnd.kubernetes.protobuf,application/json", KINF__FORM_OBJECT },
        { "application/vnd.kubernetes.protobuf, */*", KINF__FORM_OBJECT },
        { "text/html,application/xhtml+xml,*/*;q=0.8", KINF__FORM_OBJECT },
        { "application/json; as=PartialObjectMetadata ;g=meta.k8s.io;v=v1", KINF__FORM_METADATA },
        { "application/json;q=0.5,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
          KINF__FORM_METADATA_LIST },
        { "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v2,application/json",
          KINF__FORM_OBJECT },
        { "*/*," TABLE, KINF__FORM_TABLE },
        { "application/json," TABLE, KINF__FORM_OBJECT },
        { "application/json;q=0.94," TABLE ";q=0.95", KINF__FORM_TABLE },
        { "application/json;q=0.941," TABLE ";q=0.94", KINF__FORM_OBJECT },
        { "application/json;q=0.9," TABLE ";q=x", KINF__FORM_TABLE },
        { "application/json;q=0.9," TABLE ";q=0.8x", KINF__FORM_TABLE },
        { "application/json;q=1.5," TABLE, KINF__FORM_OBJECT },
        { "application/json;as=PartialObjectMetadata;g=x;v=v1", KINF__N_FORMS },
        { "application/json;as=Unknown;g=meta.k8s.io;v=v1", KINF__N_FORMS },
        { "application/*", KINF__N_FORMS },
        { "APPLICATION/JSON", KINF__N_FORMS },
        { "text/plain", KINF__N_FORMS },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        struct kinf__accepted accepted;
        struct kinf__refusal refusal;
        int failed =
            kinf__accept_negotiate(cases[i].header, KINF__FORMS_RESOURCE, &accepted, &refusal);

        assert_int_equal(failed < 0, cases[i].form == KINF__N_FORMS);
        if (failed == 0)
            assert_int_equal(accepted.form, cases[i].form);
        else
            assert_int_equal(refusal.code, 406);
    }
}

/* --- tokens and texts --- */

static const struct kinf__token page = { { .number = 427, .lineage = 5 }, 3, "default/web-1" };

static void a_token_comes_back_unless_it_was_changed(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__refusal refusal;
    struct kinf__token token;
    uint32_t issuer = kinf__token_issuer("https://127.0.0.1:6443");

    (void)state;
    assert_int_equal(kinf__token_write(issuer, &page, &text), 0);
    assert_int_equal(kinf__token_read(issuer, text.bytes, &token, &refusal), 0);
    assert_int_equal(token.version.number, 427);
    assert_int_equal(token.version.lineage, 5);
    assert_int_equal(token.n_remaining, 3);
    assert_string_equal(token.after, "default/web-1");
    for (size_t i = 0; i < text.len; i++) {
        char was = text.bytes[i];

        text.bytes[i] = was == 'b' ? 'c' : 'b';
        assert_int_equal(kinf__token_read(issuer, text.bytes, &token, &refusal), KINF_ERR_INVALID);
        text.bytes[i] = was;
    }
    for (size_t len = 0; len < text.len; len++) {
        char was = text.bytes[len];

        text.bytes[len] = '\0';
        assert_int_equal(kinf__token_read(issuer, text.bytes, &token, &refusal), KINF_ERR_INVALID);
        text.bytes[len] = was;
    }
}

/* As one of a server behind this one would, in this process or in another, or of this one before a
 * restart. */
static void a_token_says_whose_it_is(void **state)
{
    const uint32_t behind = kinf__token_issuer("https://10.0.0.1:443"),
                   own = kinf__token_issuer("https://localhost:8443");
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__refusal refusal;
    struct kinf__token token;

    (void)state;
    assert_int_equal(kinf__token_write(behind, &page, &text), 0);
    assert_true(kinf__token_is_of(behind, text.bytes));
    assert_false(kinf__token_is_of(own, text.bytes));
    assert_int_equal(kinf__token_read(own, text.bytes, &token, &refusal), KINF_ERR_INVALID);
    assert_int_equal(refusal.code, 410);
    /* Nobody becomes the issuer of what he did not write. */
    snprintf(text.bytes, 9, "%08" PRIx32, own);
    text.bytes[8] = '.';
    assert_int_equal(kinf__token_read(own, text.bytes, &token, &refusal), KINF_ERR_INVALID);
    assert_int_equal(refusal.code, 400);
    /* Before the restart. */
    text.bytes[9] = text.bytes[9] != '0' ? '0' : '1';
    assert_true(kinf__token_is_of(own, text.bytes));
    assert_int_equal(kinf__token_read(own, text.bytes, &token, &refusal), KINF_ERR_INVALID);
    assert_int_equal(refusal.code, 410);
    /* Of the API server. */
    assert_false(kinf__token_is_of(own, "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTJ9"));
    assert_int_equal(
        kinf__token_read(own, "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTJ9", &token, &refusal),
        KINF_ERR_INVALID);
    assert_int_equal(refusal.code, 400);
}

static void the_rest_of_a_list_is_offered_whatever_its_key(void **state)
{
    static const uint64_t highest = UINT64_MAX;
    struct kinf__token token = { .version = { highest, highest, highest }, .n_remaining = highest };
    uint32_t issuer = kinf__token_issuer("https://127.0.0.1:6443");
    char key[KINF__TOKEN_KEY_SIZE];
    struct kinf__refusal refusal;

    (void)state;
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    strcpy(token.after, key);
    assert_int_equal(kinf__token_offer_rest(issuer, &token, &refusal), KINF_ERR_INVALID);
    assert_int_equal(refusal.code, 410);
    assert_string_equal(refusal.reason, "Expired");
    assert_int_equal(
        kinf__token_read(issuer, refusal.continue_token, &token, &(struct kinf__refusal){ 0 }), 0);
    assert_string_equal(token.after, key);
    assert_int_equal(token.version.number, 0);
    assert_int_equal(token.n_remaining, 0);
}

static void texts_are_quoted_as_go_does(void **state)
{
    static const struct {
        const char *text, *quoted;
    } cases[] = {
        { "plain", "\"plain\"" },
        { "\"\\\n\t\x01", "\"\\\"\\\\\\n\\t\\u0001\"" },
        { "<a & b>", "\"\\u003ca \\u0026 b\\u003e\"" },
        { "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"" },
        { "\xff\xc3x\xed\xa0\x80", "\"\\ufffd\\ufffdx\\ufffd\\ufffd\\ufffd\"" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;

        assert_int_equal(kinf__quote(&out, kinf_str_from(cases[i].text)), 0);
        assert_string_equal(kinf__buffer_cstr(&out), cases[i].quoted);
    }
}

static void a_refusal_is_a_status(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__refusal refusal;

    (void)state;
    kinf__refuse(&refusal, 504, "Timeout", "Timeout: %s", "<x>");
    kinf__refusal_add_cause(&refusal, "ResourceVersionTooLarge", "", "Too large resource version");
    refusal.retry_after_s = 1;
    assert_int_equal(kinf__refusal_write(&refusal, &out), 0);
    assert_string_equal(kinf__buffer_cstr(&out),
                        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                        "\"Failure\",\"message\":\"Timeout: \\u003cx\\u003e\",\"reason\":"
                        "\"Timeout\",\"details\":{\"causes\":[{\"reason\":"
                        "\"ResourceVersionTooLarge\",\"message\":\"Too large resource version\"}],"
                        "\"retryAfterSeconds\":1},\"code\":504}\n");
}

static void a_watch_path_watches_what_it_names(void **state)
{
    static const struct {
        const char *target;
        unsigned code; /* 0: it is read */
        const char *name;
    } cases[] = {
        { "/api/v1/watch/pods?watch=0", 0, NULL },
        { "/api/v1/watch/pods?fieldSelector=metadata.name%3Da", 0, "a" },
        { "/api/v1/watch/namespaces/n/pods/a", 0, "a" },
        { "/api/v1/watch/namespaces/n/pods/%2C=%5C", 0, ",=\\" },
        { "/api/v1/watch/namespaces/n/pods/a?fieldSelector=metadata.name%3Da,spec.nodeName%3Db", 0,
          "a" },
        { "/api/v1/watch/namespaces/n/pods/a?fieldSelector=metadata.name%3Db", 400, NULL },
        { "/api/v1/watch/namespaces/n/pods/a?fieldSelector=spec.nodeName%3Da", 400, NULL },
        { "/api/v1/watch/pods?resourceVersionMatch=Exact&resourceVersion=1", 422, NULL },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        struct kinf__refusal refusal = { .code = 0 };
        struct kinf__list_options options;
        struct kinf__request request;
        const char *name;

        if (read_options(cases[i].target, &request, &options, &refusal) == 0) {
            assert_true(options.is_watch);
            name = kinf__fields_required(options.fields, "metadata.name");
            assert_int_equal(name == NULL, cases[i].name == NULL);
            assert_true(name == NULL || strcmp(name, cases[i].name) == 0);
            kinf__list_options_release(&options);
        }
        assert_int_equal(refusal.code, cases[i].code);
        kinf__request_release(&request);
    }
}

static void durations_are_read_as_go_reads_them(void **state)
{
    static const struct {
        const char *text, *fault; /* NULL: none */
    } rows[] = {
        { "0", NULL },
        { "-0", NULL },
        { "1.5h", NULL },
        { ".5s", NULL },
        { "1.s", NULL },
        { "+1h30m2.5s", NULL },
        { "", "time: invalid duration \"\"" },
        { "-", "time: invalid duration \"-\"" },
        { ".s", "time: invalid duration \".s\"" },
        { "1.5", "time: missing unit in duration \"1.5\"" },
        { "1h2", "time: missing unit in duration \"1h2\"" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        char fault[256] = "";

        assert_int_equal(kinf__query_duration_fault(rows[i].text, fault, sizeof fault),
                         rows[i].fault != NULL);
        if (rows[i].fault != NULL)
            assert_string_equal(fault, rows[i].fault);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_path_has_its_route),
        cmocka_unit_test(an_empty_namespace_is_told_from_none),
        cmocka_unit_test(tricks_with_paths_are_refused),
        cmocka_unit_test(refused_options_have_the_servers_words),
        cmocka_unit_test(of_a_good_label_selector_no_fault_is_told),
        cmocka_unit_test(options_are_read_as_the_server_reads_them),
        cmocka_unit_test(a_watch_path_watches_what_it_names),
        cmocka_unit_test(a_flag_is_set_unless_it_says_no),
        cmocka_unit_test(each_selector_that_is_refused_has_the_servers_words),
        cmocka_unit_test(any_target_is_read_or_refused),
        cmocka_unit_test(out_of_memory_is_an_ordinary_refusal),
        cmocka_unit_test(absent_fields_have_the_servers_values),
        cmocka_unit_test(certificates_are_selected_by_what_the_server_knows_of_them),
        cmocka_unit_test(selectors_of_compressed_events_inflate_nothing),
        cmocka_unit_test(many_terms_of_a_field_are_one),
        cmocka_unit_test(the_source_of_an_event_may_be_who_reports_it),
        cmocka_unit_test(the_first_field_that_is_not_known_is_refused),
        cmocka_unit_test(an_index_is_read_only_if_it_has_every_match),
        cmocka_unit_test(fields_within_a_scope_repeat_its_terms),
        cmocka_unit_test(a_header_is_answered_in_the_form_that_it_prefers),
        cmocka_unit_test(a_token_comes_back_unless_it_was_changed),
        cmocka_unit_test(a_token_says_whose_it_is),
        cmocka_unit_test(the_rest_of_a_list_is_offered_whatever_its_key),
        cmocka_unit_test(texts_are_quoted_as_go_does),
        cmocka_unit_test(a_refusal_is_a_status),
        cmocka_unit_test(durations_are_read_as_go_reads_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
