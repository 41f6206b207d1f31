/*
 * What a handler is told: lines, the merging of what waits, consumers that are new or acknowledge, and
 * random histories against a naive twin.
 */
#include "handlers/outbox.h"

#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/informer_fixture.h"
#include "unit/test.h"

struct fixture {
    struct kinf__outbox outbox;
    struct kinf__outbox_feed *feed;
};

static void begin(struct fixture *f, bool acknowledges)
{
    assert_int_equal(kinf__outbox_init(&f->outbox, acknowledges, NULL), 0);
    assert_int_equal(kinf__outbox_feed_new(&f->outbox, "things", &f->feed, NULL), 0);
    kinf__outbox_reset(&f->outbox);
}

static void end(struct fixture *f)
{
    kinf__outbox_feed_free(f->feed);
    assert_true(kinf__outbox_check(&f->outbox));
    kinf__outbox_release(&f->outbox);
}

static void put(struct kinf__outbox_feed *feed, const char *name, const char *rv)
{
    const struct kinf_object *object = make_thing(name, rv);

    kinf__outbox_feed_put(feed, object, false);
    kinf_object_unref(object);
}

static void delete (struct kinf__outbox_feed *feed, const char *name, const char *rv)
{
    const struct kinf_object *object = make_thing(name, rv);

    kinf__outbox_feed_delete(feed, object, true);
    kinf_object_unref(object);
}

/* "ADDED ns/a@1", "ADDED! ns/a@1" (initial), "SYNCED things", "RESET": one line of the outbox. */
static bool take(struct kinf__outbox *outbox, char text[64], unsigned long long *ret_sequence)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;
    char type[16] = "", key[32] = "", rv[16] = "", initial[8] = "";
    const char *sequence;

    if (kinf__outbox_next(outbox, &line) == 0)
        return false;
    assert_true(kinf__outbox_check(outbox));
    assert_non_null(kinf__buffer_cstr(&line));
    sequence = strstr(line.bytes, "\"seq\":");
    *ret_sequence = sequence != NULL ? strtoull(sequence + 6, NULL, 10) : 0;
    if (sscanf(line.bytes,
               "{\"type\":\"%15[A-Z]\",\"resource\":\"things\",\"key\":\"%31[^\"]\","
               "\"resourceVersion\":\"%15[^\"]\",\"initial\":%7[a-z]",
               type, key, rv, initial) == 4)
        snprintf(text, 64, "%s%s %s@%s", type, strcmp(initial, "true") == 0 ? "!" : "", key, rv);
    else
        snprintf(text, 64, "%s", type);
    return true;
}

/* All that is to be told by now, with blanks and commas between. */
static void assert_told(struct kinf__outbox *outbox, const char *wanted)
{
    KINF__AUTO_BUFFER told = KINF__BUFFER_INIT;
    unsigned long long sequence;
    char text[64];

    while (take(outbox, text, &sequence))
        assert_int_equal(kinf__buffer_printf(&told, "%s%s", told.len != 0 ? ", " : "", text), 0);
    assert_string_equal(told.len != 0 ? kinf__buffer_cstr(&told) : "", wanted);
}

/* --- lines --- */

static void a_line_is_json_with_one_line_end(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    const struct kinf_object *object = make_thing("a", "7");
    struct kinf__line line = { .type = "DELETED",
                               .resource = "things",
                               .object = object,
                               .final_state_unknown = true,
                               .sequence = 12 };

    (void)state;
    assert_int_equal(kinf__line_append(&out, &line), 0);
    assert_string_equal(kinf__buffer_cstr(&out),
                        "{\"type\":\"DELETED\",\"resource\":\"things\",\"key\":\"ns/a\","
                        "\"resourceVersion\":\"7\",\"initial\":false,\"finalStateUnknown\":true,"
                        "\"seq\":12}\n");
    out.len = 0;
    line.with_object = true;
    assert_int_equal(kinf__line_append(&out, &line), 0);
    assert_non_null(strstr(kinf__buffer_cstr(&out), ",\"seq\":12,\"object\":{\""));
    assert_ptr_equal(strchr(out.bytes, '\n'), out.bytes + out.len - 1);
    out.len = 0;
    assert_int_equal(kinf__line_append(&out, &(struct kinf__line){ .type = "RESET" }), 0);
    assert_string_equal(kinf__buffer_cstr(&out), "{\"type\":\"RESET\"}\n");
    kinf_object_unref(object);
}

static void a_line_is_appended_whole_or_not_at_all(void **state)
{
    const struct kinf_object *object = make_thing("a", "7");
    const struct kinf__line line = {
        .type = "ADDED", .resource = "things", .object = object, .with_object = true
    };
    bool did_fail = true;

    (void)state;
    for (size_t n = 1; did_fail; n++) {
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        int failed;

        test_fail_allocation(n);
        failed = kinf__line_append(&out, &line);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
        assert_true((out.len == 0) == did_fail);
    }
    kinf_object_unref(object);
}

/* --- merging --- */

static void changes_of_a_key_merge_while_they_wait(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, false);
    put(f.feed, "a", "1");
    put(f.feed, "b", "2");
    put(f.feed, "a", "3");
    assert_told(&f.outbox, "RESET, ADDED ns/a@3, ADDED ns/b@2");
    put(f.feed, "a", "4");
    put(f.feed, "b", "5");
    put(f.feed, "a", "6");
    delete (f.feed, "b", "7");
    put(f.feed, "c", "8");
    delete (f.feed, "c", "9");
    assert_told(&f.outbox, "MODIFIED ns/a@6, DELETED ns/b@7");
    delete (f.feed, "a", "10");
    put(f.feed, "a", "11");
    put(f.feed, "a", "12");
    assert_told(&f.outbox, "DELETED ns/a@10, ADDED ns/a@12");
    assert_told(&f.outbox, "");
    end(&f);
}

static void a_resource_is_synced_behind_its_objects(void **state)
{
    const struct kinf_object *object = make_thing("a", "1");
    struct fixture f;

    (void)state;
    begin(&f, false);
    kinf__outbox_feed_put(f.feed, object, true);
    kinf__outbox_feed_synced(f.feed);
    put(f.feed, "b", "2");
    put(f.feed, "a", "3");
    assert_told(&f.outbox, "RESET, ADDED! ns/a@3, SYNCED, ADDED ns/b@2");
    kinf_object_unref(object);
    end(&f);
}

static void a_new_consumer_is_told_everything_anew(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, false);
    put(f.feed, "a", "1");
    put(f.feed, "b", "2");
    kinf__outbox_feed_synced(f.feed);
    assert_told(&f.outbox, "RESET, ADDED ns/a@1, ADDED ns/b@2, SYNCED");
    delete (f.feed, "b", "3");
    kinf__outbox_reset(&f.outbox);
    put(f.feed, "a", "4");
    assert_told(&f.outbox, "RESET, ADDED! ns/a@4, SYNCED");
    end(&f);
}

static void a_resource_that_goes_leaves_the_others_told_anew(void **state)
{
    struct kinf__outbox_feed *other;
    struct fixture f;

    (void)state;
    begin(&f, true);
    assert_int_equal(kinf__outbox_feed_new(&f.outbox, "others", &other, NULL), 0);
    put(f.feed, "a", "1");
    put(other, "x", "2");
    kinf__outbox_feed_free(other);
    assert_told(&f.outbox, "RESET, ADDED ns/a@1"); /* nothing of it was told */
    assert_int_equal(kinf__outbox_feed_new(&f.outbox, "others", &other, NULL), 0);
    put(other, "x", "3");
    put(other, "y", "3");
    kinf__outbox_feed_synced(other);
    assert_told(&f.outbox, "ADDED, ADDED, SYNCED"); /* names are read of things only */
    delete (other, "x", "4");
    assert_told(&f.outbox, "DELETED");
    delete (other, "y", "5");
    kinf__outbox_feed_free(other);
    assert_told(&f.outbox, "RESET, ADDED! ns/a@1");
    end(&f);
}

/* --- acknowledging --- */

static void a_deletion_is_told_until_it_is_acknowledged(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, true);
    put(f.feed, "a", "1");
    assert_told(&f.outbox, "RESET, ADDED ns/a@1");
    delete (f.feed, "a", "3");
    put(f.feed, "a", "4");
    assert_told(&f.outbox, "DELETED ns/a@3, ADDED ns/a@4");
    kinf__outbox_reset(&f.outbox); /* the consumer died */
    assert_told(&f.outbox, "RESET, DELETED ns/a@3, ADDED! ns/a@4");
    assert_true(kinf__outbox_acknowledge(&f.outbox, 5)); /* not the deletion, which is line 6 */
    kinf__outbox_reset(&f.outbox);
    assert_told(&f.outbox, "RESET, DELETED ns/a@3, ADDED! ns/a@4");
    assert_true(kinf__outbox_acknowledge(&f.outbox, 9));
    kinf__outbox_reset(&f.outbox);
    assert_told(&f.outbox, "RESET, ADDED! ns/a@4");
    end(&f);
}

static void a_successor_is_told_of_what_its_predecessor_knew(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, true);
    put(f.feed, "a", "1");
    assert_told(&f.outbox, "RESET, ADDED ns/a@1");
    kinf__outbox_reset(&f.outbox);
    delete (f.feed, "a", "2");
    assert_told(&f.outbox, "RESET, DELETED ns/a@2");
    end(&f);
}

static void what_was_not_sent_cannot_be_acknowledged(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, true);
    put(f.feed, "a", "1");
    assert_told(&f.outbox, "RESET, ADDED ns/a@1");
    assert_false(kinf__outbox_acknowledge(&f.outbox, 3));
    assert_false(kinf__outbox_acknowledge(&f.outbox, UINT64_MAX));
    assert_true(kinf__outbox_acknowledge(&f.outbox, 2));
    assert_false(kinf__outbox_acknowledge(&f.outbox, 1)); /* again */
    end(&f);
}

static void no_more_than_a_window_is_ahead_of_the_acknowledged(void **state)
{
    struct kinf__outbox_status status;
    unsigned long long sequence = 0;
    char text[64], name[16];
    struct fixture f;
    size_t n = 0;

    (void)state;
    begin(&f, true);
    for (int i = 0; i < 2 * KINF__OUTBOX_WINDOW; i++) {
        snprintf(name, sizeof name, "a%d", i);
        put(f.feed, name, "1");
    }
    while (take(&f.outbox, text, &sequence))
        n++;
    assert_int_equal(n, KINF__OUTBOX_WINDOW);
    assert_int_equal(sequence, KINF__OUTBOX_WINDOW);
    kinf__outbox_status(&f.outbox, &status);
    assert_int_equal(status.n_unacknowledged, KINF__OUTBOX_WINDOW);
    assert_int_equal(status.n_waiting, KINF__OUTBOX_WINDOW + 1);
    assert_true(kinf__outbox_acknowledge(&f.outbox, 1));
    assert_true(take(&f.outbox, text, &sequence));
    assert_false(take(&f.outbox, text, &sequence));
    kinf__outbox_reset(&f.outbox); /* a successor owes nothing */
    assert_true(take(&f.outbox, text, &sequence));
    assert_string_equal(text, "RESET");
    end(&f);
}

/* --- memory --- */

static void want_of_memory_loses_nothing(void **state)
{
    (void)state;
    for (size_t n = 1; n < 6; n++) {
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        const struct kinf_object *object = make_thing("a", "1");
        struct fixture f;
        int failed;

        begin(&f, true);
        test_fail_allocation(n);
        kinf__outbox_feed_put(f.feed, object, false); /* waits, if it was this one's */
        failed = kinf__outbox_next(&f.outbox, &out);
        if (!test_allocation_failed())
            assert_int_equal(failed, 1);
        else if (failed == KINF_ERR_NO_MEMORY)
            assert_int_equal(out.len, 0);
        assert_told(&f.outbox, failed == 1 ? "ADDED ns/a@1" : "RESET, ADDED ns/a@1");
        kinf_object_unref(object);
        end(&f);
    }
}

/* --- random histories --- */

#define N_NAMES 5

struct model {
    int version[N_NAMES];  /* what the store has; 0: nothing */
    int consumer[N_NAMES]; /* what the consumer has */
    int owed[N_NAMES];     /* the version whose deletion it has to hear of; 0: none */
    int heard[N_NAMES];    /* the version that some consumer heard last, while it is there */
    unsigned long long sent, owed_line[N_NAMES]; /* the line that told it; 0: none yet */
};

static void hear(struct model *model, const char *text, unsigned long long sequence,
                 bool acknowledges)
{
    char type[16], name;
    int version, i;

    if (strcmp(text, "RESET") == 0) {
        memset(model->consumer, 0, sizeof model->consumer);
        return;
    }
    if (sscanf(text, "%15[A-Z]%*[! ]ns/%c@%d", type, &name, &version) != 3)
        return;
    i = name - 'a';
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
            model->owed_line[i] = sequence;
    }
}

static void acknowledge(struct model *model, struct kinf__outbox *outbox)
{
    if (!kinf__outbox_acknowledge(outbox, model->sent))
        return;
    for (int i = 0; i < N_NAMES; i++) {
        if (model->owed_line[i] != 0 && model->owed_line[i] <= model->sent)
            model->owed[i] = 0, model->owed_line[i] = 0;
    }
}

static void change(struct model *model, struct kinf__outbox_feed *feed, int i, int version,
                   bool is_deletion)
{
    char name[2] = { (char)('a' + i), '\0' }, rv[16];

    snprintf(rv, sizeof rv, "%d", version);
    if (!is_deletion) {
        put(feed, name, rv);
        model->version[i] = version;
    } else if (model->version[i] != 0) {
        delete (feed, name, rv);
        model->version[i] = 0;
        if (model->heard[i] != 0) /* the newest debt is followed; older ones are told before it */
            model->owed[i] = version, model->owed_line[i] = 0;
        model->heard[i] = 0;
    }
}

static void every_consumer_ends_with_the_state_of_the_store(void **state)
{
    struct test_random random = test_random_init("outbox");

    (void)state;
    for (size_t round = 0; round < test_rounds(400); round++) {
        bool acknowledges = round % 2 == 1;
        struct model model = { .sent = 0 };
        unsigned long long sequence;
        char text[64];
        struct fixture f;

        begin(&f, acknowledges);
        for (int step = 1; step < 120; step++) {
            size_t dice = test_random_below(&random, 20);

            if (dice < 12) {
                change(&model, f.feed, (int)test_random_below(&random, N_NAMES), step, dice < 4);
            } else if (dice < 17 && take(&f.outbox, text, &sequence)) {
                hear(&model, text, sequence, acknowledges);
                model.sent = sequence;
            } else if (dice == 17) {
                acknowledge(&model, &f.outbox);
            } else if (dice == 18) {
                kinf__outbox_reset(&f.outbox);
            }
            assert_true(kinf__outbox_check(&f.outbox));
        }
        while (take(&f.outbox, text, &sequence)) {
            hear(&model, text, sequence, acknowledges);
            model.sent = sequence;
        }
        assert_memory_equal(model.consumer, model.version, sizeof model.version);
        acknowledge(&model, &f.outbox);
        for (int i = 0; acknowledges && i < N_NAMES; i++)
            assert_int_equal(model.owed[i], 0);
        end(&f);
    }
}

static void the_check_sees_a_wrong_count(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, true);
    put(f.feed, "a", "1");
    f.outbox.n_waiting++;
    assert_false(kinf__outbox_check(&f.outbox));
    f.outbox.n_waiting--;
    end(&f);
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
        cmocka_unit_test(want_of_memory_loses_nothing),
        cmocka_unit_test(every_consumer_ends_with_the_state_of_the_store),
        cmocka_unit_test(the_check_sees_a_wrong_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
