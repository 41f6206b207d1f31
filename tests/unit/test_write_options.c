/*
 * What a write's query and a deletion's body say, and what of it is refused.
 */
#include "apiserver/write_options.h"

#include "test.h"

#include <string.h>

#include "base/compiler.h"

static void options_that_are_none_are_refused(void **state)
{
    static const struct {
        const char *query;
        int code;
        const char *message;
    } rows[] = {
        { "dryRun=Some", 422,
          "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: "
          "supported values: \"All\"" },
        { "fieldValidation=strict", 422,
          "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: "
          "\"strict\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"" },
        { "timeout=x", 400,
          "invalid timeout specified in the request URL - time: invalid duration \"x\"" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf__refusal refusal = { 0 };
        struct kinf__verb verb = { .sim = NULL };
        char manager[KINF__MANAGER_SIZE];

        assert_int_equal(kinf__write_options_read(kinf_str_from(rows[i].query), "POST", "a/1",
                                                  &verb, manager, &refusal),
                         KINF_ERR_INVALID);
        assert_int_equal(refusal.code, rows[i].code);
        assert_string_equal(refusal.message, rows[i].message);
    }
}

static void who_says_no_name_is_known_by_the_program(void **state)
{
    static const char *const rows[][3] = {
        { "fieldManager=me", "kubectl/1.37", "me" },
        { "fieldManager=", "kubectl/1.37", "kubectl" },
        { "", "curl", "curl" },
        { "", "", "unknown" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf__refusal refusal = { 0 };
        struct kinf__verb verb = { .sim = NULL };
        char manager[KINF__MANAGER_SIZE];

        assert_int_equal(kinf__write_options_read(kinf_str_from(rows[i][0]), "PUT", rows[i][1],
                                                  &verb, manager, &refusal),
                         0);
        assert_string_equal(verb.manager, rows[i][2]);
    }
}

static int read_delete(const char *query, const char *json, struct kinf__delete_options *options,
                       struct kinf__refusal *refusal)
{
    struct cJSON *body = json != NULL ? cJSON_Parse(json) : NULL;
    bool is_dry_run = false;
    int failed =
        kinf__write_options_read_delete(kinf_str_from(query), body, options, &is_dry_run, refusal);

    options->uid = options->resource_version = NULL;
    cJSON_Delete(body);
    return failed;
}

static void a_body_counts_and_the_query_does_not(void **state)
{
    struct kinf__delete_options options = KINF__DELETE_OPTIONS_INIT;
    struct kinf__refusal refusal = { 0 };

    (void)state;
    assert_int_equal(read_delete("propagationPolicy=Orphan&gracePeriodSeconds=5",
                                 "{\"gracePeriodSeconds\":-7}", &options, &refusal),
                     0);
    assert_int_equal(options.propagation, KINF__PROPAGATION_DEFAULT);
    assert_int_equal(options.grace_s, 1);
    assert_int_equal(
        read_delete("propagationPolicy=Orphan&gracePeriodSeconds=5", NULL, &options, &refusal), 0);
    assert_int_equal(options.propagation, KINF__PROPAGATION_ORPHAN);
    assert_int_equal(options.grace_s, 5);
}

static void deletions_that_contradict_themselves_are_refused(void **state)
{
    struct kinf__delete_options options = KINF__DELETE_OPTIONS_INIT;
    struct kinf__refusal refusal = { 0 };

    (void)state;
    assert_int_equal(
        read_delete("propagationPolicy=Background&orphanDependents=true", NULL, &options, &refusal),
        KINF_ERR_INVALID);
    assert_int_equal(refusal.code, 422);
    assert_int_equal(read_delete("gracePeriodSeconds=x", NULL, &options, &refusal),
                     KINF_ERR_INVALID);
    assert_string_equal(refusal.message, "strconv.ParseInt: parsing \"x\": invalid syntax");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_are_none_are_refused),
        cmocka_unit_test(who_says_no_name_is_known_by_the_program),
        cmocka_unit_test(a_body_counts_and_the_query_does_not),
        cmocka_unit_test(deletions_that_contradict_themselves_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
