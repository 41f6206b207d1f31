/*
 * Generated clusters: how many, how large, how different, and that they fit together.
 */
#include "workloads/generate.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "json/scan.h"
#include "workloads/profile.h"
#include "unit/allocation.h"
#include "unit/test.h"
#include "unit/workloads_fixture.h"

static void expect_refused(struct worked *worked, const char *what, const char *message)
{
    struct kinf_error err = KINF_ERROR_INIT;

    assert_int_equal(kinf__generate(worked->sim, what, &err), KINF_ERR_CONFIG);
    assert_string_equal(err.message, message);
}

static void what_cannot_be_meant_is_refused(void **state)
{
    struct worked worked;

    (void)state;
    worked_init(&worked, 1);
    expect_refused(&worked, "pots=3",
                   "\"pots\" cannot be generated, only namespaces, nodes, deployments, pods, "
                   "services, configmaps");
    expect_refused(&worked, "",
                   "\"\" cannot be generated, only namespaces, nodes, deployments, pods, services, "
                   "configmaps");
    expect_refused(&worked, "pods", "pods=: a number up to 10000000 is wanted");
    expect_refused(&worked, "nodes=1,pods=-1", "pods=: a number up to 10000000 is wanted");
    expect_refused(&worked, "pods=1x", "pods=: a number up to 10000000 is wanted");
    expect_refused(&worked, "pods=10000001", "pods=: a number up to 10000000 is wanted");
    worked_release(&worked);
}

static size_t count(struct worked *worked, const char *group, const char *resource)
{
    kinf_auto_object_list struct kinf_object_list list = worked_list(worked, group, resource, NULL);

    return list.n_items;
}

static void there_are_as_many_as_were_asked_for(void **state)
{
    struct worked worked;
    size_t n_services;

    (void)state;
    worked_init(&worked, 1);
    n_services = count(&worked, "", "services");
    assert_int_equal(kinf__generate(worked.sim, "pods=101,nodes=7,services=5,configmaps=9", NULL),
                     0);
    assert_int_equal(count(&worked, "", "pods"), 101);
    assert_int_equal(count(&worked, "", "nodes"), 7);
    assert_int_equal(count(&worked, "apps", "deployments"), 11);
    assert_int_equal(count(&worked, "apps", "replicasets"), 11);
    assert_int_equal(count(&worked, "", "services"), n_services + 5);
    assert_true(count(&worked, "", "configmaps") >= 9);
    worked_release(&worked);
    worked_init(&worked, 1);
    assert_int_equal(kinf__generate(worked.sim, "deployments=4", NULL), 0);
    assert_int_equal(count(&worked, "", "pods"), 12);
    assert_int_equal(count(&worked, "", "nodes"), 1);
    worked_release(&worked);
}

static size_t compressed_size(const struct kinf__buffer *text)
{
    uLongf size = compressBound(text->len);
    char *packed = malloc(size);

    assert_non_null(packed);
    assert_int_equal(compress((Bytef *)packed, &size, (const Bytef *)text->bytes, text->len), Z_OK);
    free(packed);
    return size;
}

static void pods_are_large_and_differ(void **state)
{
    KINF__AUTO_BUFFER all = KINF__BUFFER_INIT;
    kinf_auto_object_list struct kinf_object_list pods = KINF_OBJECT_LIST_INIT;
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str text;
    struct worked worked;

    (void)state;
    worked_init(&worked, 5);
    assert_int_equal(kinf__generate(worked.sim, "pods=400,deployments=200", NULL), 0);
    pods = worked_list(&worked, "", "pods", NULL);
    for (size_t i = 0; i < pods.n_items; i++) {
        assert_int_equal(kinf_object_json(pods.items[i], &scratch, &text, NULL), 0);
        assert_in_range(text.len, 6000, 20000);
        assert_int_equal(kinf__buffer_append_str(&all, text), 0);
    }
    assert_in_range(all.len / pods.n_items, 8000, 16000);
    /* Every second one has a twin in front; and what is random is not a third of this. */
    assert_true(compressed_size(&all) / pods.n_items > 700);
    kinf_object_list_release(&pods);
    worked_release(&worked);
}

/* What the server says of an object is as it stands in the store. */
static void expect_same_again(struct worked *worked, const char *group, const char *resource)
{
    kinf_auto_object_list struct kinf_object_list list = worked_list(worked, group, resource, NULL);
    uint64_t version = kinf__store_version(kinf__sim_store(worked->sim));

    for (size_t i = 0; i < list.n_items && i < 5; i++)
        worked_merge(worked, group, resource, kinf_object_key(list.items[i]), "{}");
    if (kinf__store_version(kinf__sim_store(worked->sim)) != version)
        fail_msg("an empty patch of %s changes something", resource);
}

static void nothing_is_missing_that_the_server_fills_in(void **state)
{
    struct worked worked;

    (void)state;
    worked_init(&worked, 5);
    assert_int_equal(
        kinf__generate(worked.sim, "pods=30,deployments=5,nodes=3,services=3,configmaps=3", NULL),
        0);
    expect_same_again(&worked, "", "pods");
    expect_same_again(&worked, "", "nodes");
    expect_same_again(&worked, "apps", "deployments");
    expect_same_again(&worked, "apps", "replicasets");
    expect_same_again(&worked, "", "services");
    expect_same_again(&worked, "", "configmaps");
    worked_release(&worked);
}

static void owners_are_there_and_count_right(void **state)
{
    kinf_auto_object_list struct kinf_object_list sets = KINF_OBJECT_LIST_INIT,
                                                  pods = KINF_OBJECT_LIST_INIT;
    struct worked worked;
    int64_t sum = 0, number;
    char uid[64], key[256];

    (void)state;
    worked_init(&worked, 9);
    assert_int_equal(kinf__generate(worked.sim, "pods=57,deployments=10", NULL), 0);
    sets = worked_list(&worked, "apps", "replicasets", NULL);
    pods = worked_list(&worked, "", "pods", NULL);
    for (size_t i = 0; i < sets.n_items; i++) {
        assert_int_equal(kinf_object_get_int64(sets.items[i], "status.readyReplicas", &number), 0);
        sum += number;
    }
    assert_int_equal(sum, 57);
    for (size_t i = 0; i < pods.n_items; i++) {
        struct kinf_str name_space = kinf_object_namespace(pods.items[i]);
        char name[128];

        assert_int_equal(kinf_object_get_string(pods.items[i], "metadata.ownerReferences[0].name",
                                                name, sizeof name),
                         0);
        assert_int_equal(kinf_object_get_string(pods.items[i], "metadata.ownerReferences[0].uid",
                                                uid, sizeof uid),
                         0);
        snprintf(key, sizeof key, "%.*s/%s", (int)name_space.len, name_space.bytes, name);
        assert_string_equal(worked_text(&worked, "apps", "replicasets", key, "metadata.uid"), uid);
        assert_int_equal(kinf_object_get_string(pods.items[i], "spec.nodeName", name, sizeof name),
                         0);
        assert_string_not_equal(worked_text(&worked, "", "nodes", name, "metadata.uid"), "");
    }
    kinf_object_list_release(&sets);
    kinf_object_list_release(&pods);
    worked_release(&worked);
}

static void one_seed_makes_one_cluster(void **state)
{
    char uids[3][64];

    (void)state;
    for (int i = 0; i < 3; i++) {
        kinf_auto_object_list struct kinf_object_list pods = KINF_OBJECT_LIST_INIT;
        struct worked worked;

        worked_init(&worked, i < 2 ? 21 : 22);
        assert_int_equal(kinf__generate(worked.sim, "pods=20", NULL), 0);
        pods = worked_list(&worked, "", "pods", NULL);
        snprintf(uids[i], sizeof uids[i], "%s", kinf_object_uid(pods.items[7]));
        kinf_object_list_release(&pods);
        worked_release(&worked);
    }
    assert_string_equal(uids[0], uids[1]);
    assert_string_not_equal(uids[0], uids[2]);
}

static void expect_valid(const struct kinf__profile *profile, enum kinf__pod_stage stage)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER filled = KINF__BUFFER_INIT;
    struct kinf__dice dice = { 1 };
    const struct kinf__hole_values values = {
        .name = "n",
        .uid = "u",
        .version = "1",
        .node = "o",
        .pod_ip = "i",
        .host_ip = "h",
        .created = "c",
        .started = "s",
        .deleted = "e",
        .suffix = "x",
        .restarts = "13",
        .dice = &dice,
    };
    size_t len;

    assert_int_equal(kinf__profile_write_pod(profile, stage, &text), 0);
    assert_int_equal(kinf__fill_holes(kinf__buffer_str(&text), &values, &filled), 0);
    assert_null(memchr(filled.bytes, KINF__HOLE, filled.len));
    assert_int_equal(kinf__json_scan_all(kinf__buffer_str(&filled), 100, &len), 0);
}

static void every_look_is_valid_at_every_stage(void **state)
{
    struct kinf__profile profile;

    (void)state;
    for (unsigned seed = 0; seed < 300; seed++) {
        kinf__profile_init(&profile, seed, seed);
        snprintf(profile.replicaset_uid, sizeof profile.replicaset_uid, "%s",
                 seed % 2 == 0 ? "" : "uid");
        for (int stage = 0; stage < KINF__N_POD_STAGES; stage++)
            expect_valid(&profile, (enum kinf__pod_stage)stage);
    }
}

static void want_of_memory_is_reported(void **state)
{
    size_t n_failures = 0;
    bool has_failed = true;

    (void)state;
    for (size_t n = 1; has_failed; n += 7) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct worked worked;
        int failed;

        worked_init(&worked, 1);
        test_fail_allocation(n);
        failed = kinf__generate(worked.sim, "pods=3,services=1,configmaps=1", &err);
        has_failed = test_allocation_failed();
        assert_true(failed == 0 || (has_failed && err.message[0] != '\0'));
        n_failures += failed < 0;
        test_fail_allocation(0);
        worked_release(&worked);
    }
    assert_true(n_failures > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_meant_is_refused),
        cmocka_unit_test(there_are_as_many_as_were_asked_for),
        cmocka_unit_test(pods_are_large_and_differ),
        cmocka_unit_test(nothing_is_missing_that_the_server_fills_in),
        cmocka_unit_test(owners_are_there_and_count_right),
        cmocka_unit_test(one_seed_makes_one_cluster),
        cmocka_unit_test(every_look_is_valid_at_every_stage),
        cmocka_unit_test(want_of_memory_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
