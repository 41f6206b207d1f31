/*
 * The state that initial events add up to, against a naive twin.
 */
#include "reflector/initial_events.h"

#include <stdio.h>
#include <string.h>

#include "object/object.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define N_KEYS 30
#define N_MANY 10000

static const struct kinf_object *make_pod(size_t name, size_t version)
{
    char name_text[24], rv[24];
    const struct kinf_type *type;
    const struct kinf_object *object;
    int name_len = snprintf(name_text, sizeof name_text, "pod-%03zu", name);
    int rv_len = snprintf(rv, sizeof rv, "%zu", version);
    struct kinf__object_parts parts = { .name_space = KINF_STR("n"),
                                        .name = { name_text, (size_t)name_len },
                                        .uid = KINF_STR("u"),
                                        .resource_version = { rv, (size_t)rv_len },
                                        .body = KINF_STR("{}") };

    assert_int_equal(kinf_type_intern("", "v1", "Pod", "pods", true, &type, NULL), 0);
    parts.type = type;
    assert_int_equal(kinf__object_new(&parts, &object, NULL), 0);
    return object;
}

static void add(struct kinf__initial_events *events, size_t name, size_t version, bool is_deleted)
{
    const struct kinf_object *object = make_pod(name, version);

    assert_int_equal(kinf__initial_events_add(events, object, is_deleted, NULL), 0);
    kinf_object_unref(object);
    assert_true(kinf__initial_events_check(events));
}

/* In no order, and more than are sorted at once. */
static void add_many(struct kinf__initial_events *events)
{
    for (size_t i = 0; i < N_MANY; i++)
        add(events, i * 7919 % N_MANY, i + 1, false);
}

static void settle(struct kinf__initial_events *events)
{
    assert_int_equal(kinf__initial_events_settle(events, NULL), 0);
    assert_false(events->is_unsettled);
    assert_true(kinf__initial_events_check(events));
}

static void a_stream_in_the_order_of_keys_is_settled_as_it_is(void **state)
{
    struct kinf__initial_events events = { 0 };

    (void)state;
    for (size_t i = 0; i < 200; i++)
        add(&events, i, 1000 - i, false);
    assert_false(events.is_unsettled);
    settle(&events);
    assert_int_equal(events.n_events, 200);
    kinf__initial_events_release(&events);
}

static void the_last_event_of_a_key_counts(void **state)
{
    struct kinf__initial_events events = { 0 };

    (void)state;
    add(&events, 1, 1, false);
    add(&events, 2, 2, false);
    add(&events, 1, 3, false);
    add(&events, 2, 4, true);
    add(&events, 3, 5, true);
    settle(&events);
    assert_int_equal(events.n_events, 1);
    assert_string_equal(kinf_object_key(events.events[0].object), "n/pod-001");
    assert_string_equal(kinf_object_resource_version(events.events[0].object), "3");
    kinf__initial_events_release(&events);
}

static void any_order_adds_up_like_a_map(void **state)
{
    struct test_random random = test_random_init(__func__);
    size_t n_objects = kinf__object_count();

    (void)state;
    for (size_t round = 0; round < test_rounds(400); round++) {
        struct kinf__initial_events events = { 0 };
        size_t twin[N_KEYS] = { 0 }, n_events = test_random_below(&random, 150), n_left = 0;

        for (size_t version = 1; version <= n_events; version++) {
            size_t name = test_random_below(&random, N_KEYS);
            bool is_deleted = test_random_below(&random, 4) == 0;

            add(&events, name, version, is_deleted);
            twin[name] = is_deleted ? 0 : version;
        }
        settle(&events);
        for (size_t name = 0; name < N_KEYS; name++) {
            if (twin[name] == 0)
                continue;
            assert_true(n_left < events.n_events);
            assert_int_equal(atoi(kinf_object_key(events.events[n_left].object) + strlen("n/pod-")),
                             name);
            assert_int_equal(atoi(kinf_object_resource_version(events.events[n_left++].object)),
                             twin[name]);
        }
        assert_int_equal(n_left, events.n_events);
        kinf__initial_events_release(&events);
        assert_int_equal(kinf__object_count(), n_objects);
    }
}

static void no_memory_leaves_what_is_there(void **state)
{
    struct kinf__initial_events events = { 0 };
    const struct kinf_object *object = make_pod(1, 1);

    (void)state;
    test_fail_allocation(1);
    assert_int_equal(kinf__initial_events_add(&events, object, false, NULL), KINF_ERR_NO_MEMORY);
    test_fail_allocation(0);
    assert_int_equal(events.n_events, 0);
    assert_int_equal(kinf__initial_events_add(&events, object, false, NULL), 0);
    kinf_object_unref(object);
    kinf__initial_events_release(&events);
}

static void no_memory_to_sort_leaves_what_is_there(void **state)
{
    struct kinf__initial_events events = { 0 };

    (void)state;
    add_many(&events);
    test_fail_allocation(1);
    assert_int_equal(kinf__initial_events_settle(&events, NULL), KINF_ERR_NO_MEMORY);
    test_fail_allocation(0);
    settle(&events);
    assert_int_equal(events.n_events, N_MANY);
    kinf__initial_events_release(&events);
}

/* G10: who stops does not wait until a million events are sorted. */
static void a_stop_leaves_the_events_for_release(void **state)
{
    struct kinf__initial_events events = { 0 };
    struct kinf__stop stop = { false };
    size_t n_objects = kinf__object_count();

    (void)state;
    add_many(&events);
    kinf__stop_set(&stop);
    assert_int_equal(kinf__initial_events_settle(&events, &stop), KINF_ERR_STOPPED);
    assert_int_equal(events.n_events, N_MANY);
    assert_true(events.is_unsettled);
    assert_int_equal(kinf__object_count(), n_objects + N_MANY);
    kinf__initial_events_release(&events);
    assert_int_equal(kinf__object_count(), n_objects);
}

static void check_finds_what_is_not_settled(void **state)
{
    struct kinf__initial_events events = { 0 };

    (void)state;
    add(&events, 1, 1, false);
    add(&events, 2, 2, false);
    events.events[1].is_deleted = true;
    assert_false(kinf__initial_events_check(&events));
    events.is_unsettled = true;
    assert_true(kinf__initial_events_check(&events));
    settle(&events);
    add(&events, 1, 3, false);
    events.is_unsettled = false;
    assert_false(kinf__initial_events_check(&events));
    kinf__initial_events_release(&events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_in_the_order_of_keys_is_settled_as_it_is),
        cmocka_unit_test(the_last_event_of_a_key_counts),
        cmocka_unit_test(any_order_adds_up_like_a_map),
        cmocka_unit_test(no_memory_leaves_what_is_there),
        cmocka_unit_test(no_memory_to_sort_leaves_what_is_there),
        cmocka_unit_test(a_stop_leaves_the_events_for_release),
        cmocka_unit_test(check_finds_what_is_not_settled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
