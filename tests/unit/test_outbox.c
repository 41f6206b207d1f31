/*
 * What a handler is told: lines, the merging of what waits, consumers that are new or acknowledge, and
 * random histories against a naive twin.
 */
#include "handlers/outbox.h"

#include <stdio.h>
#include <string.h>

#include "handlers/line.h"
#include "unit/allocation.h"
#include "unit/informer_fixture.h"
#include "unit/outbox_fixture.h"
#include "unit/test.h"

/* --- lines --- */

static void a_line_is_json_with_one_line_end(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    const struct kinf_object *object = make_thing("a", "7");
    const struct kinf_change change = { .type = KINF_CHANGE_DELETED,
                                        .resource = "things",
                                        .object = object,
                                        .final_state_unknown = true,
                                        .sequence = 12 };

    (void)state;
    assert_int_equal(kinf__line_append(&out, &change, KINF__LINE_NAMES), 0);
    assert_string_equal(kinf__buffer_cstr(&out),
                        "{\"type\":\"DELETED\",\"resource\":\"things\",\"key\":\"ns/a\","
                        "\"resourceVersion\":\"7\",\"initial\":false,\"finalStateUnknown\":true,"
                        "\"seq\":12}\n");
    out.len = 0;
    assert_int_equal(kinf__line_append(&out, &change, KINF__LINE_OBJECT), 0);
    assert_non_null(strstr(kinf__buffer_cstr(&out), ",\"seq\":12,\"object\":{\""));
    assert_ptr_equal(strchr(out.bytes, '\n'), out.bytes + out.len - 1);
    out.len = 0;
    assert_int_equal(kinf__line_append(&out, &(struct kinf_change){ .type = KINF_CHANGE_RESET },
                                       KINF__LINE_NAMES),
                     0);
    assert_string_equal(kinf__buffer_cstr(&out), "{\"type\":\"RESET\"}\n");
    kinf_object_unref(object);
}

static void a_line_is_appended_whole_or_not_at_all(void **state)
{
    const struct kinf_object *object = make_thing("a", "7");
    const struct kinf_change change = { .type = KINF_CHANGE_ADDED,
                                        .resource = "things",
                                        .object = object };
    bool did_fail = true;

    (void)state;
    for (size_t n = 1; did_fail; n++) {
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        int failed;

        test_fail_allocation(n);
        failed = kinf__line_append(&out, &change, KINF__LINE_OBJECT);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
        assert_true((out.len == 0) == did_fail);
    }
    kinf_object_unref(object);
}

/* --- merging --- */

static void changes_of_a_key_merge_while_they_wait(void **state)
{
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, false);
    outbox_put(f.feed, "a", "1");
    outbox_put(f.feed, "b", "2");
    outbox_put(f.feed, "a", "3");
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@3, ADDED ns/b@2");
    outbox_put(f.feed, "a", "4");
    outbox_put(f.feed, "b", "5");
    outbox_put(f.feed, "a", "6");
    outbox_delete(f.feed, "b", "7");
    outbox_put(f.feed, "c", "8");
    outbox_delete(f.feed, "c", "9");
    assert_outbox_told(&f.outbox, "MODIFIED ns/a@6, DELETED ns/b@7");
    outbox_delete(f.feed, "a", "10");
    outbox_put(f.feed, "a", "11");
    outbox_put(f.feed, "a", "12");
    assert_outbox_told(&f.outbox, "DELETED ns/a@10, ADDED ns/a@12");
    assert_outbox_told(&f.outbox, "");
    outbox_end(&f);
}

static void a_resource_is_synced_behind_its_objects(void **state)
{
    const struct kinf_object *object = make_thing("a", "1");
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, false);
    kinf__outbox_feed_put(f.feed, NULL, object, true);
    kinf__outbox_feed_synced(f.feed);
    outbox_put(f.feed, "b", "2");
    outbox_put(f.feed, "a", "3");
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/a@3, SYNCED things, ADDED ns/b@2");
    kinf_object_unref(object);
    outbox_end(&f);
}

static void a_new_consumer_is_told_everything_anew(void **state)
{
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, false);
    outbox_put(f.feed, "a", "1");
    outbox_put(f.feed, "b", "2");
    kinf__outbox_feed_synced(f.feed);
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1, ADDED ns/b@2, SYNCED things");
    outbox_delete(f.feed, "b", "3");
    kinf__outbox_reset(&f.outbox);
    outbox_put(f.feed, "a", "4");
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/a@4, SYNCED things");
    outbox_end(&f);
}

static void a_resource_that_goes_leaves_the_others_told_anew(void **state)
{
    struct kinf__outbox_feed *other;
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, true);
    other = outbox_open_feed(&f.outbox, "others");
    outbox_put(f.feed, "a", "1");
    outbox_put(other, "x", "2");
    kinf__outbox_feed_free(other);
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1"); /* nothing of it was told */
    other = outbox_open_feed(&f.outbox, "others");
    outbox_put(other, "x", "3");
    outbox_put(other, "y", "3");
    kinf__outbox_feed_synced(other);
    assert_outbox_told(&f.outbox, "ADDED ns/x@3, ADDED ns/y@3, SYNCED others");
    outbox_delete(other, "x", "4");
    assert_outbox_told(&f.outbox, "DELETED ns/x@4");
    outbox_delete(other, "y", "5");
    kinf__outbox_feed_free(other);
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/a@1");
    outbox_end(&f);
}

/* --- acknowledging --- */

static void a_deletion_is_told_until_it_is_acknowledged(void **state)
{
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, true);
    outbox_put(f.feed, "a", "1");
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1");
    outbox_delete(f.feed, "a", "3");
    outbox_put(f.feed, "a", "4");
    assert_outbox_told(&f.outbox, "DELETED ns/a@3, ADDED ns/a@4");
    kinf__outbox_reset(&f.outbox); /* the consumer died */
    assert_outbox_told(&f.outbox, "RESET, DELETED ns/a@3, ADDED! ns/a@4");
    assert_true(kinf__outbox_acknowledge(&f.outbox, 5)); /* not the deletion, which is line 6 */
    kinf__outbox_reset(&f.outbox);
    assert_outbox_told(&f.outbox, "RESET, DELETED ns/a@3, ADDED! ns/a@4");
    assert_true(kinf__outbox_acknowledge(&f.outbox, 9));
    kinf__outbox_reset(&f.outbox);
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/a@4");
    outbox_end(&f);
}

static void a_successor_is_told_of_what_its_predecessor_knew(void **state)
{
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, true);
    outbox_put(f.feed, "a", "1");
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1");
    kinf__outbox_reset(&f.outbox);
    outbox_delete(f.feed, "a", "2");
    assert_outbox_told(&f.outbox, "RESET, DELETED ns/a@2");
    outbox_end(&f);
}

static void what_was_not_sent_cannot_be_acknowledged(void **state)
{
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, true);
    outbox_put(f.feed, "a", "1");
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1");
    assert_false(kinf__outbox_acknowledge(&f.outbox, 3));
    assert_false(kinf__outbox_acknowledge(&f.outbox, UINT64_MAX));
    assert_true(kinf__outbox_acknowledge(&f.outbox, 2));
    assert_false(kinf__outbox_acknowledge(&f.outbox, 1)); /* again */
    outbox_end(&f);
}

static void no_more_than_a_window_is_ahead_of_the_acknowledged(void **state)
{
    struct kinf__outbox_status status;
    struct outbox_told told;
    struct outbox_fixture f;
    char name[16];
    size_t n = 0;

    (void)state;
    outbox_begin(&f, true);
    for (int i = 0; i < 2 * KINF__OUTBOX_WINDOW; i++) {
        snprintf(name, sizeof name, "a%d", i);
        outbox_put(f.feed, name, "1");
    }
    while (outbox_take(&f.outbox, &told)) {
        n++;
        assert_int_equal(told.sequence, n);
    }
    assert_int_equal(n, KINF__OUTBOX_WINDOW);
    kinf__outbox_status(&f.outbox, &status);
    assert_int_equal(status.n_unacknowledged, KINF__OUTBOX_WINDOW);
    assert_int_equal(status.n_waiting, KINF__OUTBOX_WINDOW + 1);
    assert_true(kinf__outbox_acknowledge(&f.outbox, 1));
    assert_true(outbox_take(&f.outbox, &told));
    assert_false(outbox_take(&f.outbox, &told));
    kinf__outbox_reset(&f.outbox); /* a successor owes nothing */
    assert_true(outbox_take(&f.outbox, &told));
    assert_string_equal(told.text, "RESET");
    outbox_end(&f);
}

/* --- memory --- */

static int take_nothing(const struct kinf_change *change, void *ctx)
{
    (void)change;
    (void)ctx;
    return KINF_ERR_NO_MEMORY;
}

static void what_could_not_be_taken_is_told_later(void **state)
{
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, true);
    outbox_put(f.feed, "a", "1");
    assert_int_equal(kinf__outbox_next(&f.outbox, take_nothing, NULL), KINF_ERR_NO_MEMORY);
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1");
    outbox_delete(f.feed, "a", "2");
    assert_int_equal(kinf__outbox_next(&f.outbox, take_nothing, NULL), KINF_ERR_NO_MEMORY);
    outbox_put(f.feed, "a", "3");
    assert_outbox_told(&f.outbox, "DELETED ns/a@2, ADDED ns/a@3");
    outbox_end(&f);
}

static void want_of_memory_loses_nothing(void **state)
{
    (void)state;
    for (size_t n = 1; n < 6; n++) {
        const struct kinf_object *object = make_thing("a", "1");
        struct outbox_fixture f;

        outbox_begin(&f, true);
        test_fail_allocation(n);
        kinf__outbox_feed_put(f.feed, NULL, object, false); /* waits, if it was this one's */
        (void)test_allocation_failed();
        assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1");
        kinf_object_unref(object);
        outbox_end(&f);
    }
}

/* --- random histories --- */

#define N_NAMES 5

struct model {
    int version[N_NAMES];  /* what the store has; 0: nothing */
    int consumer[N_NAMES]; /* what the consumer has */
    int owed[N_NAMES];     /* the version whose deletion it has to hear of; 0: none */
    int heard[N_NAMES];    /* the version that some consumer heard last, while it is there */
    uint64_t told, owed_at[N_NAMES]; /* the number of what told it; 0: none yet */
};

static void hear(struct model *model, const struct outbox_told *told, bool acknowledges)
{
    char type[16], name;
    int version, i;

    model->told = told->sequence;
    if (strcmp(told->text, "RESET") == 0) {
        memset(model->consumer, 0, sizeof model->consumer);
        return;
    }
    if (sscanf(told->text, "%15[A-Z]%*[! ]ns/%c@%d", type, &name, &version) != 3)
        return;
    i = name - 'a';
    assert_int_equal(atoi(told->old), model->consumer[i]);
    if (strcmp(type, "ADDED") == 0) {
        assert_int_equal(model->consumer[i], 0);
        model->consumer[i] = model->heard[i] = version;
    } else if (strcmp(type, "MODIFIED") == 0) {
        assert_true(model->consumer[i] != 0 && model->consumer[i] < version);
        model->consumer[i] = model->heard[i] = version;
    } else {
        assert_true(acknowledges || model->consumer[i] != 0);
        model->consumer[i] = 0;
        if (model->owed[i] == version)
            model->owed_at[i] = told->sequence;
    }
}

static void acknowledge(struct model *model, struct kinf__outbox *outbox)
{
    if (!kinf__outbox_acknowledge(outbox, model->told))
        return;
    for (int i = 0; i < N_NAMES; i++) {
        if (model->owed_at[i] != 0 && model->owed_at[i] <= model->told)
            model->owed[i] = 0, model->owed_at[i] = 0;
    }
}

static void change(struct model *model, struct kinf__outbox_feed *feed, int i, int version,
                   bool is_deletion)
{
    char name[2] = { (char)('a' + i), '\0' }, rv[16];

    snprintf(rv, sizeof rv, "%d", version);
    if (!is_deletion) {
        outbox_put(feed, name, rv);
        model->version[i] = version;
    } else if (model->version[i] != 0) {
        outbox_delete(feed, name, rv);
        model->version[i] = 0;
        if (model->heard[i] != 0) /* the newest debt is followed; older ones are told before it */
            model->owed[i] = version, model->owed_at[i] = 0;
        model->heard[i] = 0;
    }
}

static void every_consumer_ends_with_the_state_of_the_store(void **state)
{
    struct test_random random = test_random_init("outbox");

    (void)state;
    for (size_t round = 0; round < test_rounds(400); round++) {
        bool acknowledges = round % 2 == 1;
        struct model model = { .told = 0 };
        struct outbox_told told;
        struct outbox_fixture f;

        outbox_begin(&f, acknowledges);
        for (int step = 1; step < 120; step++) {
            size_t dice = test_random_below(&random, 20);

            if (dice < 12) {
                change(&model, f.feed, (int)test_random_below(&random, N_NAMES), step, dice < 4);
            } else if (dice < 17 && outbox_take(&f.outbox, &told)) {
                hear(&model, &told, acknowledges);
            } else if (dice == 17) {
                acknowledge(&model, &f.outbox);
            } else if (dice == 18) {
                kinf__outbox_reset(&f.outbox);
            }
            assert_true(kinf__outbox_check(&f.outbox));
        }
        while (outbox_take(&f.outbox, &told))
            hear(&model, &told, acknowledges);
        assert_memory_equal(model.consumer, model.version, sizeof model.version);
        acknowledge(&model, &f.outbox);
        for (int i = 0; acknowledges && i < N_NAMES; i++)
            assert_int_equal(model.owed[i], 0);
        outbox_end(&f);
    }
}

static void the_check_sees_a_wrong_count(void **state)
{
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, true);
    outbox_put(f.feed, "a", "1");
    f.outbox.n_waiting++;
    assert_false(kinf__outbox_check(&f.outbox));
    f.outbox.n_waiting--;
    outbox_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_json_with_one_line_end),
        cmocka_unit_test(a_line_is_appended_whole_or_not_at_all),
        cmocka_unit_test(changes_of_a_key_merge_while_they_wait),
        cmocka_unit_test(a_resource_is_synced_behind_its_objects),
        cmocka_unit_test(a_new_consumer_is_told_everything_anew),
        cmocka_unit_test(a_resource_that_goes_leaves_the_others_told_anew),
        cmocka_unit_test(a_deletion_is_told_until_it_is_acknowledged),
        cmocka_unit_test(a_successor_is_told_of_what_its_predecessor_knew),
        cmocka_unit_test(what_was_not_sent_cannot_be_acknowledged),
        cmocka_unit_test(no_more_than_a_window_is_ahead_of_the_acknowledged),
        cmocka_unit_test(what_could_not_be_taken_is_told_later),
        cmocka_unit_test(want_of_memory_loses_nothing),
        cmocka_unit_test(every_consumer_ends_with_the_state_of_the_store),
        cmocka_unit_test(the_check_sees_a_wrong_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
