/*
 * What a cache has to show before it answers: by a store that the test writes, with time as it says.
 */
#include "serve/session.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/indexer_fixture.h"
#include "unit/test.h"
#include "watchcache/watchcache.h"

#define LEAVES ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""

struct fixture {
    struct kinf__session session;
    struct kinf_indexer *store;
};

static int setup(void **state)
{
    struct fixture *f = test_calloc(1, sizeof *f);

    kinf__session_init(&f->session);
    assert_int_equal(kinf_indexer_new(NULL, 0, &f->store, NULL), 0);
    assert_int_equal(kinf_indexer_bookmark(f->store, "10", NULL), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    kinf__session_release(&f->session);
    kinf_indexer_free(f->store);
    test_free(f);
    return 0;
}

/* `more` goes into the object behind its metadata's first fields, which it may end. */
static void put(struct fixture *f, const char *name, unsigned version, const char *uid,
                const char *more)
{
    kinf_auto_object const struct kinf_object *object = NULL;
    char text[256];

    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"d\",\"uid\":\"%s\","
             "\"resourceVersion\":\"%u\"%s}}",
             name, uid, version, more);
    object = indexer_json_object(text);
    assert_int_equal(kinf_indexer_add(f->store, object, NULL, NULL), 0);
}

static void reach(struct fixture *f, unsigned version)
{
    char text[16];

    snprintf(text, sizeof text, "%u", version);
    assert_int_equal(kinf_indexer_bookmark(f->store, text, NULL), 0);
}

static void drop(struct fixture *f, const char *key, unsigned version)
{
    assert_int_equal(kinf_indexer_delete(f->store, key, NULL, NULL, NULL), 0);
    reach(f, version);
}

static uint64_t version_of(const struct kinf_snapshot *snapshot)
{
    return kinf__watchcache_parse_rv(kinf_snapshot_resource_version(snapshot));
}

static enum kinf__session_state look(struct fixture *f)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(f->store);
    enum kinf__session_state state =
        kinf__session_look(&f->session, snapshot, version_of(snapshot));

    assert_int_equal(kinf__session_is_behind(&f->session), state != KINF__SESSION_REACHED);
    return state;
}

static void tick(struct fixture *f, int64_t now_ms)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(f->store);

    kinf__session_tick(&f->session, snapshot, version_of(snapshot), now_ms);
}

static void note(struct fixture *f, enum kinf__session_sign sign, uint64_t version, const char *uid)
{
    const struct kinf__session_write write = { sign, version, "d/a", uid, 0 };

    kinf__session_note(&f->session, &write, 1);
}

static void note_at(struct fixture *f, enum kinf__session_sign sign, int64_t now_ms)
{
    const struct kinf__session_write write = { .sign = sign };

    kinf__session_note(&f->session, &write, now_ms);
}

static struct kinf__session_status status_of(struct fixture *f)
{
    struct kinf__session_status status;

    kinf__session_status(&f->session, &status);
    return status;
}

/* --- versions --- */

static void nothing_is_awaited_before_a_write(void **state)
{
    struct fixture *f = *state;

    assert_false(kinf__session_is_behind(&f->session));
    assert_int_equal(look(f), KINF__SESSION_REACHED);
}

static void the_newest_version_is_awaited(void **state)
{
    struct fixture *f = *state;

    note(f, KINF__SESSION_VERSION, 14, "");
    note(f, KINF__SESSION_VERSION, 12, "");
    reach(f, 13);
    assert_int_equal(look(f), KINF__SESSION_BEHIND);
    reach(f, 14);
    assert_int_equal(look(f), KINF__SESSION_REACHED);
    assert_int_equal(status_of(f).version, 0);
}

static void a_version_that_is_there_costs_one_look(void **state)
{
    struct fixture *f = *state;

    note(f, KINF__SESSION_VERSION, 9, "");
    assert_true(kinf__session_is_behind(&f->session));
    assert_int_equal(look(f), KINF__SESSION_REACHED);
    assert_false(kinf__session_is_behind(&f->session));
}

/* --- deletions --- */

static void a_deleted_object_is_awaited_to_be_gone(void **state)
{
    struct fixture *f = *state;

    put(f, "a", 11, "u", "");
    note(f, KINF__SESSION_GONE, KINF__SESSION_ANY, "u");
    reach(f, 50);
    assert_int_equal(look(f), KINF__SESSION_BEHIND);
    drop(f, "d/a", 51);
    assert_int_equal(look(f), KINF__SESSION_REACHED);
}

static void an_object_of_the_same_name_is_another(void **state)
{
    struct fixture *f = *state;

    put(f, "a", 11, "u", "");
    note(f, KINF__SESSION_GONE, KINF__SESSION_ANY, "u");
    put(f, "a", 13, "v", "");
    assert_int_equal(look(f), KINF__SESSION_REACHED);
}

/* As of a namespace whose label changed while it was terminating. */
static void an_object_that_is_newer_was_not_deleted(void **state)
{
    struct fixture *f = *state;

    put(f, "a", 11, "u", "");
    note(f, KINF__SESSION_GONE, 11, "u");
    assert_int_equal(look(f), KINF__SESSION_BEHIND);
    put(f, "a", 12, "u", "");
    assert_int_equal(look(f), KINF__SESSION_REACHED);
}

/* Created, deleted, and neither has arrived: "not there" is the state of before. */
static void an_absence_counts_behind_the_creation(void **state)
{
    struct fixture *f = *state;

    note(f, KINF__SESSION_VERSION, 12, "");
    note(f, KINF__SESSION_GONE, KINF__SESSION_ANY, "u");
    assert_int_equal(look(f), KINF__SESSION_BEHIND);
    put(f, "a", 12, "u", "");
    assert_int_equal(look(f), KINF__SESSION_BEHIND);
    drop(f, "d/a", 13);
    assert_int_equal(look(f), KINF__SESSION_REACHED);
    /* By the version of the answer itself. */
    note(f, KINF__SESSION_GONE, 20, "u");
    assert_int_equal(look(f), KINF__SESSION_BEHIND);
    reach(f, 20);
    assert_int_equal(look(f), KINF__SESSION_REACHED);
}

static void signs_of_objects_are_seen(void **state)
{
    static const struct {
        enum kinf__session_sign sign;
        const char *before;
        const char *after;
    } cases[] = {
        { KINF__SESSION_LEAVING, "", LEAVES ",\"finalizers\":[\"x\"]" },
        { KINF__SESSION_LEAVING, "", LEAVES ",\"deletionGracePeriodSeconds\":30" },
        { KINF__SESSION_LEAVING, LEAVES, LEAVES ",\"deletionGracePeriodSeconds\":1" },
        { KINF__SESSION_LEAVING, LEAVES ",\"deletionGracePeriodSeconds\":0,\"finalizers\":[]",
          LEAVES ",\"deletionGracePeriodSeconds\":0,\"finalizers\":[\"x\"]" },
        { KINF__SESSION_BOUND, "},\"spec\":{\"nodeName\":\"\"", "},\"spec\":{\"nodeName\":\"n\"" },
        { KINF__SESSION_BOUND, "", "},\"spec\":{\"nodeName\":\"node\"" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        put(f, "a", 11, "u", cases[i].before);
        note(f, cases[i].sign, 0, "");
        assert_int_equal(look(f), KINF__SESSION_BEHIND);
        put(f, "a", 12, "u", cases[i].after);
        assert_int_equal(look(f), KINF__SESSION_REACHED);
        note(f, cases[i].sign, 0, "");
        drop(f, "d/a", 13);
        assert_int_equal(look(f), KINF__SESSION_REACHED);
    }
}

/* --- what is late --- */

static void a_cache_that_was_awaited_in_vain_is_late_until_it_is_there(void **state)
{
    struct fixture *f = *state;

    note(f, KINF__SESSION_VERSION, 12, "");
    assert_int_equal(look(f), KINF__SESSION_BEHIND);
    kinf__session_note_late(&f->session);
    assert_int_equal(look(f), KINF__SESSION_LATE);
    note(f, KINF__SESSION_VERSION, 14, "");
    assert_int_equal(look(f), KINF__SESSION_LATE);
    /* It has what was awaited then; the rest is worth a wait again. */
    reach(f, 12);
    assert_int_equal(look(f), KINF__SESSION_BEHIND);
    put(f, "a", 14, "u", "");
    note(f, KINF__SESSION_GONE, KINF__SESSION_ANY, "u");
    assert_int_equal(look(f), KINF__SESSION_BEHIND);
    kinf__session_note_late(&f->session);
    assert_int_equal(look(f), KINF__SESSION_LATE);
    drop(f, "d/a", 15);
    assert_int_equal(look(f), KINF__SESSION_REACHED);
}

static void nobody_waits_for_what_was_not_understood(void **state)
{
    struct fixture *f = *state;

    note(f, KINF__SESSION_UNKNOWN, 0, "");
    assert_int_equal(look(f), KINF__SESSION_LATE);
    reach(f, 1000);
    assert_int_equal(look(f), KINF__SESSION_LATE);
}

/* The server counts writes in the order in which it makes them: what is sent behind an answer is newer. */
static void a_write_that_was_sent_later_shows_what_was_not_understood(void **state)
{
    struct kinf__session_write later = { KINF__SESSION_VERSION, 20, "d/a", "", 100 };
    struct fixture *f = *state;

    note_at(f, KINF__SESSION_UNKNOWN, 100);
    kinf__session_note(&f->session, &later, 110); /* maybe made before */
    reach(f, 20);
    assert_int_equal(look(f), KINF__SESSION_LATE);
    later.sent_ms = 101;
    later.version = 30;
    kinf__session_note(&f->session, &later, 120);
    later.version = 40;
    kinf__session_note(&f->session, &later, 120);
    reach(f, 29);
    assert_int_equal(look(f), KINF__SESSION_LATE);
    reach(f, 30);
    assert_int_equal(look(f), KINF__SESSION_BEHIND);
    reach(f, 40);
    assert_int_equal(look(f), KINF__SESSION_REACHED);
}

static void another_one_that_was_not_understood_waits_for_another_write(void **state)
{
    const struct kinf__session_write read = { KINF__SESSION_VERSION, 21, "", "", 0 };
    struct kinf__session_write later = { KINF__SESSION_VERSION, 20, "d/a", "", 101 };
    struct fixture *f = *state;

    note_at(f, KINF__SESSION_UNKNOWN, 100);
    kinf__session_note(&f->session, &later, 110);
    note_at(f, KINF__SESSION_UNKNOWN, 120);
    kinf__session_note(&f->session, &read, 130);
    reach(f, 21);
    assert_int_equal(look(f), KINF__SESSION_LATE);
    later.sent_ms = 121;
    kinf__session_note(&f->session, &later, 140);
    assert_int_equal(look(f), KINF__SESSION_REACHED);
}

/* Only a cache that the server still tells something forgets, and nothing but what has no version. */
static void signs_grow_old(void **state)
{
    const int64_t old_ms = KINF__SESSION_MAX_AGE_MS + 1;
    struct fixture *f = *state;

    put(f, "a", 11, "u", "");
    note(f, KINF__SESSION_UNKNOWN, 0, "");
    note(f, KINF__SESSION_GONE, KINF__SESSION_ANY, "u");
    tick(f, 2);
    reach(f, 20);
    tick(f, KINF__SESSION_TRUST_MS / 2);
    tick(f, old_ms);
    assert_int_equal(look(f), KINF__SESSION_LATE);
    reach(f, 21);
    tick(f, old_ms + 1);
    assert_int_equal(look(f), KINF__SESSION_REACHED);
    note(f, KINF__SESSION_VERSION, 90, "");
    tick(f, old_ms * 2);
    reach(f, 22);
    tick(f, old_ms * 3);
    assert_int_equal(look(f), KINF__SESSION_BEHIND);
}

static void a_tick_takes_what_nobody_asks_for(void **state)
{
    struct fixture *f = *state;

    note(f, KINF__SESSION_VERSION, 10, "");
    tick(f, 2);
    assert_false(kinf__session_is_behind(&f->session));
}

static void a_server_that_went_back_is_believed(void **state)
{
    struct fixture *f = *state;

    note(f, KINF__SESSION_VERSION, 90, "");
    tick(f, 2);
    assert_int_equal(kinf_indexer_replace(f->store, NULL, 0, "5", NULL), 0);
    tick(f, 3);
    assert_int_equal(look(f), KINF__SESSION_REACHED);
}

/* --- bounds --- */

static void more_objects_than_fit_are_not_understood(void **state)
{
    struct fixture *f = *state;

    put(f, "a", 11, "u", "");
    for (unsigned i = 0; i < KINF__SESSION_MAX_SIGNS; i++)
        note(f, KINF__SESSION_GONE, KINF__SESSION_ANY, "u");
    assert_false(status_of(f).is_unknown);
    note(f, KINF__SESSION_GONE, KINF__SESSION_ANY, "u");
    assert_true(status_of(f).is_unknown);
    assert_int_equal(status_of(f).n_signs, KINF__SESSION_MAX_SIGNS);
    drop(f, "d/a", 12);
    assert_int_equal(look(f), KINF__SESSION_LATE);
    assert_int_equal(status_of(f).n_signs, 0);
}

static void without_memory_it_is_not_understood(void **state)
{
    struct fixture *f = *state;

    test_fail_allocation(1);
    note(f, KINF__SESSION_GONE, KINF__SESSION_ANY, "u");
    assert_true(test_allocation_failed());
    assert_int_equal(look(f), KINF__SESSION_LATE);
}

/* --- threads --- */

#define N_WRITES 500

/* Each write is noted, then arrives; whoever looks behind the note sees it, or is told to wait. */
static void *write_all(void *ctx)
{
    struct fixture *f = ctx;

    for (unsigned i = 0; i < N_WRITES; i++) {
        note(f, KINF__SESSION_VERSION, 100 + i, "");
        note(f, KINF__SESSION_GONE, KINF__SESSION_ANY, "u");
        reach(f, 100 + i);
    }
    return NULL;
}

static void writers_and_readers_go_together(void **state)
{
    struct fixture *f = *state;
    pthread_t writer;

    assert_int_equal(pthread_create(&writer, NULL, write_all, f), 0);
    for (unsigned i = 0; i < N_WRITES; i++) {
        kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(f->store);

        kinf__session_look(&f->session, snapshot, version_of(snapshot));
        tick(f, 2);
    }
    pthread_join(writer, NULL);
    assert_int_equal(look(f), KINF__SESSION_REACHED);
}

#define SESSION_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SESSION_TEST(nothing_is_awaited_before_a_write),
        SESSION_TEST(the_newest_version_is_awaited),
        SESSION_TEST(a_version_that_is_there_costs_one_look),
        SESSION_TEST(a_deleted_object_is_awaited_to_be_gone),
        SESSION_TEST(an_object_of_the_same_name_is_another),
        SESSION_TEST(an_object_that_is_newer_was_not_deleted),
        SESSION_TEST(an_absence_counts_behind_the_creation),
        SESSION_TEST(signs_of_objects_are_seen),
        SESSION_TEST(a_cache_that_was_awaited_in_vain_is_late_until_it_is_there),
        SESSION_TEST(nobody_waits_for_what_was_not_understood),
        SESSION_TEST(a_write_that_was_sent_later_shows_what_was_not_understood),
        SESSION_TEST(another_one_that_was_not_understood_waits_for_another_write),
        SESSION_TEST(signs_grow_old),
        SESSION_TEST(a_tick_takes_what_nobody_asks_for),
        SESSION_TEST(a_server_that_went_back_is_believed),
        SESSION_TEST(more_objects_than_fit_are_not_understood),
        SESSION_TEST(without_memory_it_is_not_understood),
        SESSION_TEST(writers_and_readers_go_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
