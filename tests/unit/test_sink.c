/*
 * The informer's sink: what it is told, when, and who may set it.
 */
#include "unit/informer_fixture.h"

#include <stdio.h>
#include <string.h>

#include "informer/sink.h"
#include "object/object.h"

#include "unit/allocation.h"
#include "unit/test.h"

/* What the sink was told, one write a line. */
struct told {
    struct informer_fixture *f;
    char text[1024];
    struct recorder *handler; /* has heard of nothing yet */
};

static void append(struct told *told, const char *text)
{
    size_t len = strlen(told->text);

    if (strlen(text) >= sizeof told->text - len)
        abort();
    strcpy(told->text + len, text);
}

static void append_change(struct told *told, const struct kinf__notification *change)
{
    bool is_gone = change->type == KINF__NOTIFY_DELETE;
    const char *rv = kinf_object_resource_version(change->object);
    char text[128];

    snprintf(text, sizeof text, " %s[%s>%s]%s", kinf_object_name(change->object),
             change->old != NULL ? kinf_object_resource_version(change->old) : "",
             is_gone ? "" : rv, change->final_state_unknown ? "?" : rv);
    append(told, text);
}

static void note_write(enum kinf__store_write write, const struct kinf__notification *changes,
                       size_t n_changes, int64_t now_ms, void *ctx)
{
    static const char *const names[] = { "nothing", "changes", "replaced", "bookmark" };
    struct told *told = ctx;
    char rv[64] = "";

    if (!kinf__mutex_none_held() || now_ms <= 0)
        abort();
    append(told, names[write]);
    for (size_t i = 0; i < n_changes; i++)
        append_change(told, &changes[i]);
    if (kinf_indexer_resource_version(told->f->informer->indexer, rv, sizeof rv) < 0)
        abort();
    append(told, " =");
    append(told, rv);
    append(told, "\n");
    if (told->handler != NULL && recorder_count(told->handler, "add") != 0)
        append(told, "too late\n");
}

static void make(struct informer_fixture *f, struct told *told)
{
    const struct kinf__sink sink = { note_write, told };

    *told = (struct told){ .f = f };
    informer_make(f, NULL);
    assert_int_equal(kinf__informer_set_sink(f->informer, &sink, NULL), 0);
}

static int handle(struct informer_fixture *f, const struct kinf_delta *deltas, size_t n_deltas)
{
    const struct kinf_deltas together = { NULL, deltas, n_deltas };
    int rc = kinf__handle_deltas(&f->informer->target, &together, false, &f->informer->batch);

    if (rc == 0)
        kinf__batch_clear(&f->informer->batch);
    return rc;
}

static void handle_list(struct informer_fixture *f, const char *rv,
                        const struct kinf_object **take_objects, size_t n_objects)
{
    const struct kinf_delta delta = { .type = KINF_DELTA_REPLACED_ALL,
                                      .objects = take_objects,
                                      .n_objects = n_objects,
                                      .resource_version = rv };

    assert_int_equal(handle(f, &delta, 1), 0);
    for (size_t i = 0; i < n_objects; i++)
        kinf_object_unref(take_objects[i]);
}

static void sink_is_told_each_write_in_the_stores_order(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf_object *list[] = { make_thing("a", "1"), make_thing("b", "2") };
    struct kinf_delta deltas[] = {
        { .type = KINF_DELTA_UPDATED, .object = make_thing("a", "11") },
        { .type = KINF_DELTA_ADDED, .object = make_thing("c", "12") },
        { .type = KINF_DELTA_DELETED, .object = make_thing("b", "13") },
        { .type = KINF_DELTA_DELETED, .object = make_thing("nobody", "14") },
        { .type = KINF_DELTA_UPDATED, .object = make_thing("c", "12") },
    };
    const struct kinf_delta bookmark = { .type = KINF_DELTA_BOOKMARK, .resource_version = "20" };
    struct told told;

    make(f, &told);
    handle_list(f, "10", list, 2);
    assert_int_equal(handle(f, deltas, 4), 0);
    assert_int_equal(handle(f, &deltas[4], 1), 0); /* is as it was: only the version moves */
    assert_int_equal(handle(f, &bookmark, 1), 0);
    assert_string_equal(told.text, "replaced a[>1]1 b[>2]2 =10\n"
                                   "changes a[1>11]11 c[>12]12 b[2>]13 =14\n"
                                   "changes =12\n"
                                   "bookmark =20\n");
    for (size_t i = 0; i < 5; i++)
        kinf_object_unref(deltas[i].object);
}

static void list_is_told_as_its_difference(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf_object *first[] = { make_thing("a", "1"), make_thing("b", "2"),
                                          make_thing("c", "3"), make_thing("d", "4") };
    const struct kinf_object *second[] = { make_thing_of("d", "u-other", "14", ""),
                                           make_thing("c", "13"), make_thing("a", "1") };
    struct told told;

    make(f, &told);
    handle_list(f, "10", first, 4);
    told.text[0] = '\0';
    handle_list(f, "20", second, 3);
    assert_string_equal(told.text, "replaced b[2>]? d[4>]? d[>14]14 c[3>13]13 =20\n");
}

static void successor_is_told_as_two_changes(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf_object *list[] = { make_thing("a", "1") };
    struct kinf_delta deltas[] = {
        { .type = KINF_DELTA_UPDATED, .object = make_thing_of("a", "u-2", "11", "") },
        { .type = KINF_DELTA_DELETED, .object = make_thing_of("a", "u-3", "12", "") },
    };
    struct told told;

    make(f, &told);
    handle_list(f, "10", list, 1);
    told.text[0] = '\0';
    assert_int_equal(handle(f, &deltas[0], 1), 0);
    assert_int_equal(handle(f, &deltas[1], 1), 0);
    assert_string_equal(told.text, "changes a[1>]? a[>11]11 =11\nchanges a[11>]? =12\n");
    kinf_object_unref(deltas[0].object);
    kinf_object_unref(deltas[1].object);
}

static void sink_hears_before_the_handlers(void **state)
{
    struct informer_fixture *f = *state;
    struct told told;

    make(f, &told);
    told.handler = &f->recorders[0];
    informer_add(f, &f->recorders[0]);
    informer_start(f);
    feed_add(f, "a", "5");
    recorder_wait_for(&f->recorders[0], "add a@5");
    assert_string_equal(told.text, "changes a[>5]5 =5\n");
}

/* What was not written is not told, and what is tried again is told once. */
static void write_without_memory_is_not_told(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf_object *object = make_thing("a", "11");
    const struct kinf_delta delta = { .type = KINF_DELTA_UPDATED, .object = object };
    struct told told;
    size_t n = 0;
    int rc;

    make(f, &told);
    do {
        assert_string_equal(told.text, "");
        test_fail_allocation(++n);
        rc = handle(f, &delta, 1);
    } while (test_allocation_failed() && rc < 0);
    assert_int_equal(rc, 0);
    assert_true(n > 3);
    assert_string_equal(told.text, "changes a[>11]11 =11\n");
    kinf_object_unref(object);
}

static void sink_is_one_and_set_before_start(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf__sink sink = { note_write, NULL };
    struct told told;

    make(f, &told);
    assert_int_equal(kinf__informer_set_sink(f->informer, &sink, NULL), KINF_ERR_STATE);
    f->informer->target.sink = NULL;
    informer_start(f);
    assert_int_equal(kinf__informer_set_sink(f->informer, &sink, NULL), KINF_ERR_STATE);
}

/* By key, the store's version is not that of what is in it. */
static void queue_by_key_has_no_sink(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf__sink sink = { note_write, NULL };

    informer_make(f, NULL);
    assert_int_equal(kinf__informer_set_sink(f->informer, &sink, NULL), KINF_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        INFORMER_TEST_IN_ORDER(sink_is_told_each_write_in_the_stores_order),
        INFORMER_TEST_IN_ORDER(list_is_told_as_its_difference),
        INFORMER_TEST_IN_ORDER(successor_is_told_as_two_changes),
        INFORMER_TEST_IN_ORDER(sink_hears_before_the_handlers),
        INFORMER_TEST_IN_ORDER(write_without_memory_is_not_told),
        INFORMER_TEST_IN_ORDER(sink_is_one_and_set_before_start),
        INFORMER_TEST(queue_by_key_has_no_sink),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
