/*
 * The watch cache: what a watch is told, from where it may start, and whom an event wakes. W1 to W6
 * are the promises of watchcache/watchcache.h.
 */
#include "unit/watchcache_fixture.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "watchcache/watchcache_priv.h"

#include "unit/allocation.h"
#include "unit/test.h"

#define MINUTE_MS 60000

static struct kinf__watchcache_status status_of(struct watchcache_fixture *f)
{
    struct kinf__watchcache_status status;

    kinf__watchcache_status(f->cache, &status);
    return status;
}

/* --- from where --- */

static void nothing_is_served_before_the_first_list(void **state)
{
    struct watchcache_fixture *f = *state;
    struct kinf__store_version first = { .number = 1 };
    struct kinf_snapshot *snapshot;
    struct watch watch;

    assert_int_equal(kinf__watchcache_version(f->cache), 0);
    assert_null(kinf__watchcache_snapshot(f->cache, NULL));
    assert_int_equal(watch_try(f, &watch, 1, NULL), KINF_ERR_STATE);
    assert_int_equal(kinf__watchcache_snapshot_at(f->cache, &first, &snapshot, NULL),
                     KINF_ERR_RV_TOO_LARGE);
    watchcache_replace(f, "10", "a@3");
    assert_int_equal(kinf__watchcache_version(f->cache), 10);
    assert_int_equal(status_of(f).n_restarts, 0);
}

/* W1 */
static void list_and_watch_after_it_miss_nothing(void **state)
{
    static const struct kinf__watch_filter all = { .wants_bookmarks = false };
    struct watchcache_fixture *f = *state;
    struct kinf_snapshot *snapshot;
    struct watch watch;

    watchcache_replace(f, "10", "a@3", "b@4");
    watchcache_put(f, "c@11");
    watch_now(f, &watch, &all, &snapshot);
    watchcache_put(f, "a@12");
    assert_int_equal(kinf_snapshot_count(snapshot), 3);
    assert_string_equal(kinf_snapshot_resource_version(snapshot), "11");
    assert_int_equal(kinf__watch_cursor_progress(watch.cursor), 11);
    watch_expect(&watch, "MODIFIED d/a@12");
    assert_int_equal(kinf__watch_cursor_progress(watch.cursor), 12);
    kinf_snapshot_unref(snapshot);
    watch_end(&watch);
}

/* W2 */
static void watch_goes_on_from_any_version_of_the_history(void **state)
{
    static const char *const tails[] = {
        "ADDED d/b@12, MODIFIED d/a@14, DELETED d/b@17 (12)",
        "ADDED d/b@12, MODIFIED d/a@14, DELETED d/b@17 (12)",
        "MODIFIED d/a@14, DELETED d/b@17 (12)",
        "MODIFIED d/a@14, DELETED d/b@17 (12)",
        "DELETED d/b@17 (12)",
        "DELETED d/b@17 (12)",
        "DELETED d/b@17 (12)",
        "",
        "",
    };
    struct watchcache_fixture *f = *state;
    struct watch watch;

    watchcache_replace(f, "10", "a@3");
    watchcache_put(f, "b@12");
    watchcache_put(f, "a@14");
    watchcache_delete(f, "b@17");
    for (size_t i = 0; i < KINF__ARRAY_LEN(tails); i++) {
        watch_from(f, &watch, 10 + i, NULL);
        watch_expect(&watch, tails[i]);
        watch_end(&watch);
    }
    assert_int_equal(watch_try(f, &watch, 9, NULL), KINF_ERR_EXPIRED);
}

static void watch_from_the_future_is_told_what_lies_beyond(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch watch;

    watchcache_replace(f, "10", "a@3");
    watch_from(f, &watch, 15, NULL);
    watch_arm(&watch);
    watchcache_put(f, "a@12");
    watchcache_put(f, "a@15");
    watch_expect(&watch, "");
    assert_int_equal(watch_wakes(&watch), 0);
    assert_int_equal(kinf__watch_cursor_progress(watch.cursor), 15);
    watch_arm(&watch);
    watchcache_put(f, "a@16");
    assert_int_equal(watch_wakes(&watch), 1);
    watch_expect(&watch, "MODIFIED d/a@16");
    watch_end(&watch);
}

/* What falls out before it is reached is not what it waits for. */
static void watch_from_the_future_outlives_what_it_is_not_told(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch watch, late;

    watchcache_replace(f, "10", "a@3");
    watch_from(f, &watch, 15, NULL);
    watch_from(f, &late, 13, NULL);
    watchcache_put(f, "a@12");
    watchcache_put(f, "a@14");
    kinf__watchcache_tick(f->cache, INT64_MAX);
    watchcache_put(f, "a@16");
    assert_int_equal(kinf__watch_cursor_progress(watch.cursor), 15);
    watch_expect(&watch, "MODIFIED d/a@16");
    watch_expect(&late, "EXPIRED");
    watch_end(&watch);
    watch_end(&late);
}

static void only_what_changed_is_told(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch watch;

    watchcache_replace(f, "10", "a@3");
    watch_from(f, &watch, 10, NULL);
    watchcache_put(f, "a@3");
    watchcache_delete(f, "nobody@12");
    watchcache_bookmark(f, "13");
    watch_expect(&watch, "EXPIRED"); /* a@3 took the store back to 3 */
    watch_end(&watch);
    watch_from(f, &watch, 13, NULL);
    watchcache_bookmark(f, "14");
    watch_expect(&watch, "");
    assert_int_equal(kinf__watch_cursor_progress(watch.cursor), 14);
    watch_end(&watch);
}

/* --- lists --- */

/* W3 */
static void list_enters_in_order_with_a_version_for_each_change(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch watch;

    watchcache_replace(f, "10", "a@1", "b@2", "c@3", "d@4", "e@5");
    watch_from(f, &watch, 10, NULL);
    /* a is as before, b and e are gone, c was re-created, d changed, f is new. */
    watchcache_replace(f, "40", "f@35", "d@22", "c@30^2", "a@1");
    watch_expect(&watch, "MODIFIED d/d@22, DELETED d/c@29 (3), ADDED d/c@30, ADDED d/f@35, "
                         "DELETED d/b@39 (2), DELETED d/e@40 (5), BOOKMARK 40");
    watch_end(&watch);
    watch_from(f, &watch, 40, NULL);
    watch_expect(&watch, "");
    watch_end(&watch);
}

/* W8: what was created and deleted in between is in no list; who has it from elsewhere must list. */
static void who_begins_between_two_lists_expires(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch watch, future, at_it;

    watchcache_replace(f, "10", "a@3");
    watch_from(f, &future, 15, NULL);
    watch_from(f, &at_it, 20, NULL);
    watch_arm(&future);
    watchcache_replace(f, "20", "a@3", "b@14");
    assert_int_equal(watch_wakes(&future), 1);
    watch_expect(&future, "EXPIRED");
    watch_end(&future);
    for (uint64_t version = 11; version < 20; version++)
        assert_int_equal(watch_try(f, &watch, version, NULL), KINF_ERR_EXPIRED);
    watch_from(f, &watch, 10, NULL);
    watch_expect(&watch, "ADDED d/b@14, BOOKMARK 20");
    watch_end(&watch);
    watchcache_put(f, "a@21");
    watch_expect(&at_it, "MODIFIED d/a@21");
    watch_end(&at_it);
    /* More gaps than are told apart. */
    for (unsigned i = 0; i < 2 * KINF__N_HISTORY_GAPS; i++) {
        char rv[16];

        snprintf(rv, sizeof rv, "%u", 30 + 10 * i);
        watchcache_replace(f, rv, "a@21");
    }
    for (uint64_t version = 11; version < 30; version++)
        assert_int_equal(watch_try(f, &watch, version, NULL), KINF_ERR_EXPIRED);
    watch_from(f, &watch, 10 + 20 * KINF__N_HISTORY_GAPS, NULL);
    watch_end(&watch);
}

/* W8: a list of what is known already leaves nothing unknown, however often it comes. */
static void list_of_the_same_version_expires_nobody(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch watch;

    watchcache_replace(f, "10", "a@3");
    watchcache_replace(f, "20", "a@3");
    watchcache_put(f, "a@21");
    watchcache_put(f, "a@22");
    for (unsigned i = 0; i < 2 * KINF__N_HISTORY_GAPS; i++)
        watchcache_replace(f, "22", "a@22");
    watchcache_replace(f, "23", "a@23");
    for (uint64_t version = 11; version < 20; version++)
        assert_int_equal(watch_try(f, &watch, version, NULL), KINF_ERR_EXPIRED);
    watch_from(f, &watch, 21, NULL);
    watch_expect(&watch, "MODIFIED d/a@22, MODIFIED d/a@23, BOOKMARK 23");
    watch_end(&watch);
}

/* W3: the server gave each change a version, so there are enough; not always where one would like. */
static void deletions_of_a_list_take_the_versions_that_are_free(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch watch;

    watchcache_replace(f, "10", "a@1", "b@2", "c@3", "d@4");
    watch_from(f, &watch, 10, NULL);
    /* 11 to 16 were: delete a, delete b, change d, delete c, create e, create c. */
    watchcache_replace(f, "16", "c@16^2", "d@13", "e@15");
    watch_expect(&watch, "DELETED d/a@11 (1), DELETED d/b@12 (2), MODIFIED d/d@13, "
                         "DELETED d/c@14 (3), ADDED d/e@15, ADDED d/c@16, BOOKMARK 16");
    watch_end(&watch);
}

static void list_of_many_enters_whole(void **state)
{
    enum { n = 3000 };
    struct watchcache_fixture *f = *state;
    const struct kinf_object *objects[n];
    const struct kinf_delta list = { .type = KINF_DELTA_REPLACED_ALL,
                                     .objects = objects,
                                     .n_objects = n,
                                     .resource_version = "4000" };
    struct kinf__watch_event event;
    struct watch watch;

    watchcache_replace(f, "10", "a@1");
    watch_from(f, &watch, 10, NULL);
    watch_arm(&watch);
    for (unsigned i = 0; i < n; i++) {
        char text[32];

        snprintf(text, sizeof text, "k%u@%u", i, 3999 - i);
        objects[i] = watchcache_object(text);
    }
    watchcache_delta(f, &list, 1);
    assert_int_equal(watch_wakes(&watch), 1);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(kinf__watch_cursor_next(watch.cursor, &event), 1);
        assert_int_equal(event.version, 1000 + i);
        assert_ptr_equal(event.object, objects[n - 1 - i]);
        kinf_object_unref(event.object);
    }
    watch_expect(&watch, "DELETED d/a@4000 (1), BOOKMARK 4000");
    watch_end(&watch);
    assert_true(f->cache->history.n_allocated >= n);
    kinf__watchcache_tick(f->cache, INT64_MAX);
    assert_true(f->cache->history.n_allocated < n);
}

static void list_of_nothing_new_moves_the_version_alone(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch watch;

    watchcache_replace(f, "10", "a@1");
    watch_from(f, &watch, 10, NULL);
    watchcache_replace(f, "10", "a@1");
    watch_expect(&watch, "");
    watchcache_replace(f, "12", "a@1");
    watch_expect(&watch, "BOOKMARK 12");
    watch_end(&watch);
}

/* W5: such a list says that something happened at a version at which watches were already told
 * something else, or more than there are versions for. */
static void list_that_cannot_be_dated_expires_every_watch(void **state)
{
    static const struct {
        const char *rv;
        const char *texts[4];
    } lists[] = {
        { "20", { "a@1", "b@2^9", NULL } },         /* changed, at a version of the past */
        { "11", { "a@1", NULL } },                  /* two deletions at one version */
        { "10", { "a@1", "b@2", NULL } },           /* a deletion at no version */
        { "20", { "a@1", "b@2", "c@21", NULL } },   /* above the list's own */
        { "20", { "a@12", "b@12", "c@3", NULL } },  /* two changes at one version */
        { "20", { "a@1", "b@2", "c@11^7", NULL } }, /* re-created without an end */
        { "20", { "a@1", "b@2", "c@x", NULL } },
    };
    struct watchcache_fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(lists); i++) {
        struct watch watch;

        watchcache_replace(f, "5", "z@1");
        watchcache_replace(f, "10", "a@1", "b@2", "c@3");
        watch_from(f, &watch, 10, NULL);
        watch_arm(&watch);
        watchcache_list(f, lists[i].rv, lists[i].texts);
        assert_int_equal(watch_wakes(&watch), 1);
        watch_expect(&watch, "EXPIRED");
        watch_expect(&watch, "EXPIRED");
        watch_end(&watch);
        /* Who lists again and watches from there is served. */
        watch_from(f, &watch, kinf__watchcache_version(f->cache), NULL);
        watch_expect(&watch, "");
        watch_end(&watch);
        watchcache_check(f);
    }
}

/* W5: nor do changes at versions that do not rise. */
static void changes_out_of_order_expire_every_watch(void **state)
{
    struct watchcache_fixture *f = *state;
    kinf_auto_object const struct kinf_object *b = watchcache_object("b@13");
    kinf_auto_object const struct kinf_object *a = watchcache_object("a@12");
    kinf_auto_object const struct kinf_object *c = watchcache_object("c@14");
    const struct kinf_delta deltas[] = { { .type = KINF_DELTA_UPDATED, .object = b },
                                         { .type = KINF_DELTA_UPDATED, .object = a },
                                         { .type = KINF_DELTA_UPDATED, .object = c } };
    struct watch watch;

    watchcache_replace(f, "10", "a@1", "b@2");
    watch_from(f, &watch, 10, NULL);
    watchcache_delta(f, deltas, 3);
    watch_expect(&watch, "EXPIRED");
    watch_end(&watch);
    assert_int_equal(kinf__watchcache_version(f->cache), 14);
    watchcache_check(f);
}

/* Tells the cache of an object that looks as the one in the store, and is not that. */
static void tell_of_another(enum kinf__store_write write, const struct kinf__notification *changes,
                            size_t n_changes, int64_t now_ms, void *ctx)
{
    const struct kinf__sink *sink = ctx;
    struct kinf__notification change = changes[0];
    kinf_auto_object const struct kinf_object *other = watchcache_object("a@15");

    assert_int_equal(n_changes, 1);
    change.object = other;
    sink->on_write(write, &change, 1, now_ms, sink->ctx);
}

/* W5: what the store does not have nobody is told; who watched is to look there. */
static void changes_that_the_store_does_not_have_expire_every_watch(void **state)
{
    struct watchcache_fixture *f = *state;
    struct kinf__sink sink = kinf__watchcache_sink(f->cache);

    for (int is_list = 0; is_list <= 1; is_list++) {
        struct watch watch;

        watchcache_replace(f, "5", "z@1");
        watchcache_replace(f, "10", "a@1");
        watch_from(f, &watch, 10, NULL);
        f->informer->sink = (struct kinf__sink){ tell_of_another, &sink };
        if (is_list)
            watchcache_replace(f, "20", "a@15");
        else
            watchcache_put(f, "a@15");
        f->informer->sink = sink;
        watch_expect(&watch, "EXPIRED");
        watch_end(&watch);
        watchcache_check(f);
    }
}

/* Its own version is not known, since the arrival of what was deleted was missed. */
static void missed_deletion_is_dated_by_what_comes_next(void **state)
{
    struct watchcache_fixture *f = *state;
    kinf_auto_object const struct kinf_object *a = watchcache_object("a@12^successor");
    kinf_auto_object const struct kinf_object *b = watchcache_object("b@15");
    const struct kinf_delta deltas[] = { { .type = KINF_DELTA_DELETED, .object = a },
                                         { .type = KINF_DELTA_UPDATED, .object = b } };
    struct watch watch;

    watchcache_replace(f, "10", "a@1", "b@2");
    watch_from(f, &watch, 10, NULL);
    watchcache_delta(f, deltas, 2);
    watch_expect(&watch, "DELETED d/a@14 (1), MODIFIED d/b@15");
    watchcache_delete(f, "b@17^successor");
    watch_expect(&watch, "DELETED d/b@17 (15)");
    watch_end(&watch);
    watchcache_check(f);
}

struct look {
    struct watchcache_fixture *f;
    struct kinf__sink sink;
    uint64_t version_before;
    char store_before[32];
};

static void look_and_pass_on(enum kinf__store_write write, const struct kinf__notification *changes,
                             size_t n_changes, int64_t now_ms, void *ctx)
{
    struct look *look = ctx;

    look->version_before = kinf__watchcache_version(look->f->cache);
    assert_int_equal(kinf_informer_resource_version(look->f->informer, look->store_before,
                                                    sizeof look->store_before),
                     0);
    look->sink.on_write(write, changes, n_changes, now_ms, look->sink.ctx);
}

/* W1: the store is ahead for a moment; readers are not told. */
static void version_moves_with_the_history_and_not_with_the_store(void **state)
{
    struct watchcache_fixture *f = *state;
    struct look look = { .f = f, .sink = kinf__watchcache_sink(f->cache) };

    watchcache_replace(f, "10", "a@1");
    f->informer->sink = (struct kinf__sink){ look_and_pass_on, &look };
    watchcache_replace(f, "20", "a@11");
    assert_string_equal(look.store_before, "20");
    assert_int_equal(look.version_before, 10);
    assert_int_equal(kinf__watchcache_version(f->cache), 20);
}

/* --- selections --- */

/* W4 */
static void objects_enter_and_leave_a_selection(void **state)
{
    struct watchcache_fixture *f = *state;
    struct kinf__watch_filter filter = { .match = watch_match_app, .match_ctx = (char[]){ "x" } };
    struct watch watch;

    watchcache_replace(f, "10", "a@1+x", "b@2+y");
    watch_from(f, &watch, 10, &filter);
    watchcache_put(f, "a@11+x");
    watchcache_put(f, "a@12+y"); /* leaves: the last state that was seen */
    watchcache_put(f, "a@13+z");
    watchcache_put(f, "b@14+x"); /* enters */
    watchcache_put(f, "a@15+x");
    watchcache_delete(f, "a@16+x");
    watchcache_put(f, "c@17+y");
    watchcache_delete(f, "c@18+y");
    watch_expect(&watch, "MODIFIED d/a@11, DELETED d/a@12 (11), ADDED d/b@14, ADDED d/a@15, "
                         "DELETED d/a@16 (15)");
    watch_end(&watch);
}

/* W4, and one object in place of another of its name */
static void successor_is_told_as_another_object(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch watch;

    watchcache_replace(f, "10", "a@1");
    watch_from(f, &watch, 10, NULL);
    watchcache_put(f, "a@15^2");
    watchcache_delete(f, "a@20^3"); /* the end of a third one, which nobody saw */
    watch_expect(&watch, "DELETED d/a@14 (1), ADDED d/a@15, DELETED d/a@20 (15)");
    watch_end(&watch);
}

static void selection_is_by_namespace_name_and_index(void **state)
{
    static const struct kinf__watch_filter filters[] = {
        { .name_space = "n" },
        { .name_space = "n", .name = "a" },
        { .index = "byNodeName", .index_value = "one" },
        { .name_space = "n", .index = "byNodeName", .index_value = "one" },
        { .name = "a" }, /* cluster-scoped: none of these */
    };
    static const char *const told[] = {
        "ADDED n/a@11, ADDED n/b@12, MODIFIED n/a@14, DELETED n/b@16 (12)",
        "ADDED n/a@11, MODIFIED n/a@14",
        "ADDED n/a@11, ADDED nn/a@13, DELETED n/a@14 (11), ADDED d/a@15",
        "ADDED n/a@11, DELETED n/a@14 (11)",
        "",
    };
    struct watchcache_fixture *f = *state;
    struct watch watches[KINF__ARRAY_LEN(filters)];

    watchcache_replace(f, "10", "z@1");
    for (size_t i = 0; i < KINF__ARRAY_LEN(filters); i++)
        watch_from(f, &watches[i], 10, &filters[i]);
    watchcache_put(f, "n/a@11:one");
    watchcache_put(f, "n/b@12:two");
    watchcache_put(f, "nn/a@13:one");
    watchcache_put(f, "n/a@14:two");
    watchcache_put(f, "a@15:one");
    watchcache_delete(f, "n/b@16:two");
    for (size_t i = 0; i < KINF__ARRAY_LEN(filters); i++) {
        watch_expect(&watches[i], told[i]);
        watch_end(&watches[i]);
    }
}

/* Many events of others in front of one's own are passed over in several calls. */
static void watch_pauses_in_many_events_of_others(void **state)
{
    const struct kinf__watch_filter filters[] = {
        { .name_space = "n" },
        { .match = watch_match_app, .match_ctx = (char[]){ "x" } },
    };
    struct watchcache_fixture *f = *state;
    struct watch watches[KINF__ARRAY_LEN(filters)];
    char text[32];

    watchcache_replace(f, "10", "a@1");
    for (size_t i = 0; i < KINF__ARRAY_LEN(filters); i++)
        watch_from(f, &watches[i], 10, &filters[i]);
    for (int i = 11; i < 3000; i++) {
        snprintf(text, sizeof text, "a@%d", i);
        watchcache_put(f, text);
    }
    watchcache_put(f, "n/b@3000+x");
    for (size_t i = 0; i < KINF__ARRAY_LEN(filters); i++) {
        struct kinf__watch_event event;
        size_t n_pauses = 0;
        int rc;

        while ((rc = kinf__watch_cursor_next(watches[i].cursor, &event)) ==
               KINF__WATCH_CURSOR_PAUSED)
            n_pauses++;
        assert_int_equal(rc, 1);
        assert_in_range(n_pauses, 1, 100);
        watch_event_text(&event, text, sizeof text);
        assert_string_equal(text, "ADDED n/b@3000");
        watch_expect(&watches[i], "");
        watch_end(&watches[i]);
    }
}

/* W8: in the midst of a list there is no version from which somebody could go on, so none is told. */
static void bookmark_in_the_midst_of_a_list_is_of_before_it(void **state)
{
    enum { n = 3000 };
    const struct kinf__watch_filter filter = { .name_space = "n" };
    struct watchcache_fixture *f = *state;
    const struct kinf_object *objects[n];
    const struct kinf_delta list = { .type = KINF_DELTA_REPLACED_ALL,
                                     .objects = objects,
                                     .n_objects = n,
                                     .resource_version = "4000" };
    struct kinf__watch_event event;
    struct watch watch, later;

    watchcache_replace(f, "10", "a@1");
    watchcache_put(f, "n/a@11");
    watch_from(f, &watch, 10, &filter);
    watch_expect(&watch, "ADDED n/a@11");
    for (unsigned i = 0; i < n; i++) {
        char text[32];

        snprintf(text, sizeof text, "k%u@%u", i, 1000 + i);
        objects[i] = watchcache_object(text);
    }
    watchcache_delta(f, &list, 1);
    for (unsigned i = 0; i < n; i++)
        kinf_object_unref(objects[i]);
    assert_int_equal(kinf__watch_cursor_next(watch.cursor, &event), KINF__WATCH_CURSOR_PAUSED);
    assert_int_equal(kinf__watch_cursor_progress(watch.cursor), 11);
    watch_from(f, &later, 11, &filter);
    watch_end(&later);
    assert_int_equal(kinf__watch_cursor_next(watch.cursor, &event), 1);
    assert_int_equal(event.version, 4000);
    watch_expect(&watch, "");
    assert_int_equal(kinf__watch_cursor_progress(watch.cursor), 4000);
    watch_end(&watch);
}

static void unknown_index_is_refused(void **state)
{
    static const struct kinf__watch_filter filter = { .index = "byMood", .index_value = "good" };
    struct watchcache_fixture *f = *state;
    struct watch watch;

    watchcache_replace(f, "10", "a@1");
    assert_int_equal(watch_try(f, &watch, 10, &filter), KINF_ERR_NOT_FOUND);
    assert_int_equal(status_of(f).n_cursors, 0);
}

/* An entry that was made without an index does not say what it has in it. */
static void added_index_begins_a_new_history(void **state)
{
    static const struct kinf_index by_phase = { "byPhase", "status.phase", NULL, NULL };
    static const struct kinf__watch_filter filter = { .index = "byPhase", .index_value = "x" };
    struct watchcache_fixture *f = *state;
    struct watch old, watch;

    watchcache_replace(f, "10", "a@1");
    watch_from(f, &old, 10, NULL);
    assert_int_equal(
        kinf_indexer_add_indices(kinf_informer_indexer(f->informer), &by_phase, 1, NULL), 0);
    watchcache_put(f, "a@11");
    watch_expect(&old, "EXPIRED");
    watch_from(f, &watch, 11, &filter);
    watchcache_put(f, "a@12");
    watch_expect(&watch, "");
    watch_end(&watch);
    watch_end(&old);
}

/* --- waking --- */

/* W6 */
static void watch_is_woken_only_for_its_own(void **state)
{
    struct watchcache_fixture *f = *state;
    const struct kinf__watch_filter filters[] = {
        { .name_space = "n" },
        { .name_space = "n", .name = "a" },
        { .index = "byNodeName", .index_value = "one" },
        { .match = watch_match_app, .match_ctx = (char[]){ "x" } },
        { .wants_bookmarks = true, .name_space = "n", .name = "never" },
        { .name = NULL },
    };
    /* Wake-ups by each event, one bit a filter. */
    static const struct {
        const char *text;
        unsigned woken;
    } puts[] = {
        { "a@11", 1 << 5 },
        { "n/b@12", 1 << 5 | 1 << 0 },
        { "n/a@13", 1 << 5 | 1 << 0 | 1 << 1 },
        { "a@14:one", 1 << 5 | 1 << 2 },
        { "a@15:two", 1 << 5 | 1 << 2 }, /* leaves it */
        { "a@16+x", 1 << 5 | 1 << 3 },
        { "a@17", 1 << 5 | 1 << 3 }, /* leaves it */
        { "nn/a@18", 1 << 5 },
    };
    enum { n = KINF__ARRAY_LEN(filters) };
    struct watch watches[n];

    watchcache_replace(f, "10", "a@1");
    for (size_t i = 0; i < n; i++)
        watch_from(f, &watches[i], 10, &filters[i]);
    for (size_t j = 0; j < KINF__ARRAY_LEN(puts); j++) {
        unsigned woken = 0;

        for (size_t i = 0; i < n; i++) {
            free(watch_read(&watches[i]));
            watch_arm(&watches[i]);
            watches[i].n_wakes = 0;
        }
        watchcache_put(f, puts[j].text);
        for (size_t i = 0; i < n; i++)
            woken |= watch_wakes(&watches[i]) << i;
        assert_int_equal(woken, puts[j].woken);
    }
    for (size_t i = 0; i < n; i++)
        watch_end(&watches[i]);
}

/* A reader may be quicker than the feeding thread, which asks whom an event concerns once it is in
 * the history: here it has not done so yet. */
static void event_that_was_read_already_wakes_nobody(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch watch;

    watchcache_replace(f, "10", "a@1");
    watch_from(f, &watch, 10, NULL);
    watchcache_put(f, "a@11");
    f->cache->asked--;
    watch_expect(&watch, "MODIFIED d/a@11");
    assert_int_equal(kinf__watch_cursor_progress(watch.cursor), 11);
    watch_arm(&watch);
    assert_int_equal(kinf__watch_cursor_progress(watch.cursor), 11);
    /* Nor does it fall out before. */
    kinf__watchcache_tick(f->cache, INT64_MAX);
    assert_int_equal(status_of(f).n_events, 1);
    kinf__wake_concerned(f->cache, f->cache->epoch);
    kinf__run_calls(f->cache);
    assert_int_equal(watch_wakes(&watch), 0);
    watch_expect(&watch, "");
    watch_end(&watch);
}

/* W6 */
static void arming_once_wakes_once(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch watch;

    watchcache_replace(f, "10", "a@1");
    watch_from(f, &watch, 10, NULL);
    watchcache_put(f, "a@11");
    assert_int_equal(watch_wakes(&watch), 0); /* never armed */
    assert_true(kinf__watch_cursor_arm(watch.cursor));
    watch_expect(&watch, "MODIFIED d/a@11");
    watch_arm(&watch);
    watch_arm(&watch);
    watchcache_put(f, "a@12");
    watchcache_put(f, "a@13");
    assert_int_equal(watch_wakes(&watch), 1);
    watch_expect(&watch, "MODIFIED d/a@12, MODIFIED d/a@13");
    watch_arm(&watch);
    watch_expect(&watch, ""); /* next() disarms */
    watchcache_put(f, "a@14");
    assert_int_equal(watch_wakes(&watch), 1);
    watch_end(&watch);
}

/* Who asks for bookmarks can go on from a list without repeating it. */
static void list_wakes_who_wants_its_bookmark(void **state)
{
    struct watchcache_fixture *f = *state;
    const struct kinf__watch_filter wanting = { .name = "none", .wants_bookmarks = true };
    const struct kinf__watch_filter other = { .name = "none" };
    struct watch watch, silent;

    watchcache_replace(f, "10", "a@1");
    watch_from(f, &watch, 10, &wanting);
    watch_from(f, &silent, 10, &other);
    watch_arm(&watch);
    watch_arm(&silent);
    watchcache_replace(f, "20", "b@15");
    assert_int_equal(watch_wakes(&watch), 1);
    assert_int_equal(watch_wakes(&silent), 0);
    watch_expect(&watch, "BOOKMARK 20");
    watch_expect(&silent, "");
    assert_int_equal(kinf__watch_cursor_progress(silent.cursor), 20);
    watch_end(&silent);
    watch_end(&watch);
}

/* W5, W6: it was asked about every event, so it has passed them. */
static void idle_watch_stays_in_step_with_the_history(void **state)
{
    static const struct kinf__watch_filter filter = { .index = "byNodeName",
                                                      .index_value = "mine" };
    const struct kinf__watchcache_limits limits = { .history_bytes = 2000 };
    struct watchcache_fixture *f = *state;
    struct watch watch;
    char text[32];

    kinf__watchcache_free(f->cache);
    kinf_informer_free(f->informer);
    watchcache_make(f, &limits);
    watchcache_replace(f, "10", "a@1:other");
    watch_from(f, &watch, 10, &filter);
    watch_arm(&watch);
    for (int i = 11; i < 500; i++) {
        snprintf(text, sizeof text, "a@%d:other", i);
        watchcache_put(f, text);
        assert_int_equal(kinf__watch_cursor_progress(watch.cursor), i);
    }
    assert_int_equal(watch_wakes(&watch), 0);
    assert_true(status_of(f).n_evicted_for_bytes > 400);
    assert_int_equal(status_of(f).max_lag, 0);
    assert_int_equal(status_of(f).max_lag_since_ms, 0);
    watchcache_put(f, "b@500:mine");
    watch_expect(&watch, "ADDED d/b@500");
    watch_end(&watch);
}

/* --- expiring --- */

/* W5 */
static void stalled_watch_expires_and_hurts_nobody(void **state)
{
    const struct kinf__watchcache_limits limits = { .history_bytes = 4000 };
    struct watchcache_fixture *f = *state;
    struct kinf__watch_event event;
    struct watch stalled, reading;
    char text[32];

    kinf__watchcache_free(f->cache);
    kinf_informer_free(f->informer);
    watchcache_make(f, &limits);
    watchcache_replace(f, "10", "a@1");
    watch_from(f, &stalled, 10, NULL);
    watch_from(f, &reading, 10, NULL);
    watchcache_put(f, "a@11");
    assert_int_equal(kinf__watch_cursor_next(stalled.cursor, &event), 1);
    for (int i = 12; i < 100; i++) {
        snprintf(text, sizeof text, "a@%d", i);
        watchcache_put(f, text);
        free(watch_read(&reading));
        assert_true(status_of(f).history_bytes <= 4000);
    }
    /* What it is half way through is still its own. */
    assert_string_equal(kinf_object_resource_version(event.object), "11");
    watch_expect(&stalled, "EXPIRED");
    watch_expect(&reading, "");
    watchcache_put(f, "a@100");
    watch_expect(&reading, "MODIFIED d/a@100");
    assert_int_equal(status_of(f).n_cursors_expired, 1);
    watch_end(&stalled);
    assert_int_equal(watch_try(f, &stalled, 11, NULL), KINF_ERR_EXPIRED);
    watch_from(f, &stalled, status_of(f).oldest_version, NULL);
    free(watch_read(&stalled));
    watch_end(&stalled);
    watch_end(&reading);
}

/* Puts the next version of an object. */
static void put_next(struct watchcache_fixture *f, const char *name, unsigned *version)
{
    char text[32];

    snprintf(text, sizeof text, "%s@%u", name, ++*version);
    watchcache_put(f, text);
}

/* A watch that is given the next version of an object, and stalls. */
static void stall_at(struct watchcache_fixture *f, struct watch *watch, const char *name,
                     unsigned *version)
{
    struct kinf__watch_event event;

    watch_from(f, watch, *version, NULL);
    put_next(f, name, version);
    assert_int_equal(kinf__watch_cursor_next(watch->cursor, &event), 1);
}

/* Changes one object until the history has nothing of before. */
static void flush_history(struct watchcache_fixture *f, unsigned *version)
{
    for (int i = 0; i < 50; i++)
        put_next(f, "a", version);
    kinf__watchcache_tick(f->cache, kinf__clock_now_ms());
}

static void note_due(int64_t due_ms, void *ctx)
{
    assert_int_equal(due_ms, 0);
    ++*(unsigned *)ctx;
}

/* W7: three objects are within the bound, a fourth is not. What two share, or the store has, is not
 * counted twice. */
static void what_stalled_watches_hold_is_bounded(void **state)
{
    kinf_auto_object const struct kinf_object *sample = watchcache_object("a@1000");
    const struct kinf__watchcache_limits limits = { .history_bytes = 4000,
                                                    .page_bytes = 3 * kinf_object_size(sample) };
    struct watchcache_fixture *f = *state;
    struct kinf__watch_event event;
    struct watch watches[6];
    unsigned version = 1000, n_told = 0;

    kinf__watchcache_free(f->cache);
    kinf_informer_free(f->informer);
    watchcache_make(f, &limits);
    kinf__watchcache_set_on_due(f->cache, note_due, &n_told);
    watchcache_replace(f, "1000", "a@999");
    for (size_t i = 0; i < 3; i++)
        stall_at(f, &watches[i], "a", &version);
    assert_true(kinf__watchcache_tick(f->cache, 1) > 1);
    watch_from(f, &watches[3], 1000, NULL);
    assert_int_equal(n_told, 0);
    /* From here on they hold more than the limit, if nothing is shared. */
    assert_int_equal(kinf__watch_cursor_next(watches[3].cursor, &event), 1);
    assert_int_equal(n_told, 1);
    assert_int_equal(kinf__watchcache_tick(f->cache, 1), 1);
    stall_at(f, &watches[4], "b", &version);
    flush_history(f, &version);
    for (size_t i = 0; i < 5; i++)
        assert_false(kinf__watch_cursor_is_given_up(watches[i].cursor));

    stall_at(f, &watches[5], "a", &version);
    flush_history(f, &version);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(kinf__watch_cursor_is_given_up(watches[i].cursor), i == 0 || i == 3);
    assert_int_equal(status_of(f).n_cursors_given_up, 2);
    flush_history(f, &version);
    assert_int_equal(status_of(f).n_cursors_given_up, 2);
    for (size_t i = 0; i < 6; i++) {
        watch_expect(&watches[i], "EXPIRED");
        watch_end(&watches[i]);
    }
    assert_int_equal(n_told, 1);
    assert_true(kinf__watchcache_tick(f->cache, 1) > 1);
}

/* W7: the store has what it holds, and an event that changes nothing leaves it there. */
static void event_that_changes_nothing_stalls_nobody(void **state)
{
    const struct kinf__watchcache_limits limits = { .history_bytes = 4000, .page_bytes = 1 };
    struct watchcache_fixture *f = *state;
    unsigned version = 1000;
    struct watch watch;

    kinf__watchcache_free(f->cache);
    kinf_informer_free(f->informer);
    watchcache_make(f, &limits);
    watchcache_replace(f, "1000", "a@999", "b@998");
    stall_at(f, &watch, "a", &version);
    watchcache_put(f, "a@1001");
    for (int i = 0; i < 50; i++)
        put_next(f, "b", &version);
    watchcache_check(f);
    kinf__watchcache_tick(f->cache, kinf__clock_now_ms());
    assert_false(kinf__watch_cursor_is_given_up(watch.cursor));
    put_next(f, "a", &version);
    watchcache_check(f);
    kinf__watchcache_tick(f->cache, kinf__clock_now_ms());
    assert_true(kinf__watch_cursor_is_given_up(watch.cursor));
    watch_end(&watch);
}

static int64_t thread_cpu_ms(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* Nobody else gets the lock meanwhile: when each was looked at for each, this took seconds. */
static void giving_up_thousands_takes_no_time(void **state)
{
    enum { n_stalled = 8000 };
    const struct kinf__watchcache_limits limits = { .page_bytes = 2000 };
    struct watchcache_fixture *f = *state;
    struct watch *watches = calloc(n_stalled, sizeof watches[0]);
    unsigned version = 1000;
    char name[32];
    int64_t begun_ms;

    assert_non_null(watches);
    kinf__watchcache_free(f->cache);
    kinf_informer_free(f->informer);
    watchcache_make(f, &limits);
    watchcache_replace(f, "1000", "a@999");
    for (size_t i = 0; i < n_stalled; i++) {
        snprintf(name, sizeof name, "b%zu", i);
        stall_at(f, &watches[i], name, &version);
    }
    watchcache_replace(f, "999", "a@999");
    begun_ms = thread_cpu_ms();
    kinf__watchcache_tick(f->cache, 1);
    assert_true(thread_cpu_ms() - begun_ms < 500);
    assert_in_range(status_of(f).n_cursors_given_up, n_stalled - 50, n_stalled - 1);
    assert_true(kinf__watch_cursor_is_given_up(watches[0].cursor));
    assert_false(kinf__watch_cursor_is_given_up(watches[n_stalled - 1].cursor));
    for (size_t i = 0; i < n_stalled; i++)
        watch_end(&watches[i]);
    free(watches);
}

static void events_grow_too_old(void **state)
{
    struct watchcache_fixture *f = *state;
    int64_t begun_ms = kinf__clock_now_ms();
    struct watch watch;

    watchcache_replace(f, "10", "a@1");
    watchcache_put(f, "a@11");
    assert_in_range(kinf__watchcache_tick(f->cache, begun_ms + 5 * MINUTE_MS - 1),
                    begun_ms + 5 * MINUTE_MS, kinf__clock_now_ms() + 5 * MINUTE_MS);
    watch_from(f, &watch, 10, NULL);
    kinf__watchcache_tick(f->cache, kinf__clock_now_ms() + 5 * MINUTE_MS);
    watch_expect(&watch, "EXPIRED");
    watch_end(&watch);
    assert_int_equal(status_of(f).n_evicted_for_age, 1);
    assert_int_equal(status_of(f).oldest_version, 11);
    watch_from(f, &watch, 11, NULL);
    watch_expect(&watch, "");
    watch_end(&watch);
}

/* W5: after a restore the same versions stand for something else. */
static void server_that_went_back_expires_every_watch(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch armed, reading, watch;

    watchcache_replace(f, "10", "a@1");
    watchcache_put(f, "a@11");
    watchcache_put(f, "a@12");
    watch_from(f, &armed, 12, NULL);
    watch_from(f, &reading, 10, NULL);
    watch_arm(&armed);
    watchcache_replace(f, "11", "a@11");
    assert_int_equal(watch_wakes(&armed), 1);
    assert_int_equal(kinf__watch_cursor_progress(armed.cursor), 0);
    watch_expect(&armed, "EXPIRED");
    watch_expect(&reading, "EXPIRED");
    watch_end(&armed);
    watch_end(&reading);
    /* A version of before, which the new history has not reached, is none of the future. */
    assert_int_equal(watch_try(f, &watch, 12, NULL), KINF_ERR_EXPIRED);
    assert_int_equal(watch_try(f, &watch, 10, NULL), KINF_ERR_EXPIRED);
    watch_from(f, &watch, 11, NULL);
    watchcache_put(f, "a@13^2");
    watch_expect(&watch, "DELETED d/a@12 (11), ADDED d/a@13");
    watch_end(&watch);
}

static void versions_that_are_no_numbers_are_not_served(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch watch;

    watchcache_replace(f, "10", "a@1");
    watch_from(f, &watch, 10, NULL);
    watchcache_put(f, "a@x");
    watch_expect(&watch, "EXPIRED");
    assert_int_equal(kinf__watchcache_version(f->cache), 0);
    assert_null(kinf__watchcache_snapshot(f->cache, NULL));
    watch_end(&watch);
    watchcache_put(f, "a@12");
    assert_int_equal(kinf__watchcache_version(f->cache), 12);
}

static const struct kinf_object *object_at(const char *name, unsigned long version)
{
    char text[32];

    snprintf(text, sizeof text, "%s@%lu", name, version);
    return watchcache_object(text);
}

static unsigned long lack_memory_at_each_allocation(struct watchcache_fixture *f,
                                                    enum kinf__store_write write,
                                                    unsigned long version)
{
    static const char *const names[] = { "a", "b", "c" };
    const struct kinf__sink sink = kinf__watchcache_sink(f->cache);
    struct kinf_indexer *indexer = kinf_informer_indexer(f->informer);
    bool has_failed = true;

    for (size_t n = 1; has_failed; n++) {
        struct kinf__notification changes[KINF__ARRAY_LEN(names)];
        struct watch watch;

        watch_from(f, &watch, version, NULL);
        watch_arm(&watch);
        for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
            changes[i] = (struct kinf__notification){ .type = KINF__NOTIFY_UPDATE,
                                                      .object = object_at(names[i], ++version) };
            assert_int_equal(kinf_indexer_add(indexer, changes[i].object, &changes[i].old, NULL),
                             0);
        }
        test_fail_allocation(n);
        sink.on_write(write, changes, KINF__ARRAY_LEN(changes), 0, sink.ctx);
        has_failed = test_allocation_failed();
        assert_int_equal(watch_wakes(&watch), 1);
        if (has_failed) {
            watch_expect(&watch, "EXPIRED");
            assert_string_equal(status_of(f).last_restart_reason, "out of memory");
        }
        assert_int_equal(kinf__watchcache_version(f->cache), version);
        watchcache_check(f);
        watch_end(&watch);
        for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
            kinf_object_unref(changes[i].old);
            kinf_object_unref(changes[i].object);
        }
    }
    return version;
}

/* W5: never a hole. */
static void lack_of_memory_expires_instead_of_losing_events(void **state)
{
    struct watchcache_fixture *f = *state;
    unsigned long version;

    watchcache_replace(f, "10", "a@1", "b@2", "c@3");
    version = lack_memory_at_each_allocation(f, KINF__WRITE_CHANGES, 10);
    assert_int_equal(status_of(f).n_restarts, 2); /* for the changes, and for room in the history */
    lack_memory_at_each_allocation(f, KINF__WRITE_ALL, version);
    assert_true(status_of(f).n_restarts > 2 + 2); /* and to sort what was replaced */
}

static void subscribing_without_memory_changes_nothing(void **state)
{
    static const struct kinf__watch_filter filter = { .name_space = "n",
                                                      .index = "byNodeName",
                                                      .index_value = "one" };
    struct watchcache_fixture *f = *state;
    struct watch watch;
    int rc = KINF_ERR_NO_MEMORY;

    watchcache_replace(f, "10", "a@1");
    for (size_t n = 1; rc == KINF_ERR_NO_MEMORY; n++) {
        test_fail_allocation(n);
        rc = watch_try(f, &watch, 10, &filter);
        assert_int_equal(test_allocation_failed(), rc == KINF_ERR_NO_MEMORY);
        assert_int_equal(status_of(f).n_cursors, rc == 0);
        watchcache_check(f);
    }
    assert_int_equal(rc, 0);
    watch_end(&watch);
}

static void cache_without_memory_is_not_made(void **state)
{
    struct watchcache_fixture *f = *state;
    struct kinf__watchcache *cache = NULL;
    int rc = KINF_ERR_NO_MEMORY;
    size_t n = 0;

    while (rc == KINF_ERR_NO_MEMORY) {
        test_fail_allocation(++n);
        rc = kinf__watchcache_new(kinf_informer_indexer(f->informer), NULL, &cache, NULL);
        assert_int_equal(test_allocation_failed(), rc == KINF_ERR_NO_MEMORY);
    }
    assert_int_equal(rc, 0);
    assert_true(n > 2);
    kinf__watchcache_free(cache);
}

/* --- enabling --- */

static void nothing_is_kept_while_nobody_asks(void **state)
{
    struct watchcache_fixture *f = *state;
    struct watch watch, later;

    watchcache_replace(f, "10", "a@1");
    watch_from(f, &watch, 10, NULL);
    watch_arm(&watch);
    watchcache_put(f, "b@11");
    kinf__watchcache_set_enabled(f->cache, false);
    watch_expect(&watch, "EXPIRED");
    watchcache_put(f, "a@12");
    assert_int_equal(status_of(f).n_events, 0);
    assert_false(status_of(f).is_enabled);
    assert_int_equal(kinf__watchcache_version(f->cache), 0);
    assert_int_equal(watch_try(f, &later, 12, NULL), KINF_ERR_STATE);
    kinf__watchcache_set_enabled(f->cache, true);
    assert_int_equal(kinf__watchcache_version(f->cache), 12);
    assert_int_equal(watch_try(f, &later, 11, NULL), KINF_ERR_EXPIRED);
    watch_from(f, &later, 12, NULL);
    watchcache_put(f, "a@13");
    watch_expect(&later, "MODIFIED d/a@13");
    watch_expect(&watch, "EXPIRED");
    watch_end(&watch);
    watch_end(&later);
}

static void enable_and_pass_on(enum kinf__store_write write,
                               const struct kinf__notification *changes, size_t n_changes,
                               int64_t now_ms, void *ctx)
{
    struct look *look = ctx;

    kinf__watchcache_set_enabled(look->f->cache, true);
    look->sink.on_write(write, changes, n_changes, now_ms, look->sink.ctx);
}

/* Between the write and its telling: what the snapshot has is not told again. */
static void enabling_during_a_write_tells_it_once(void **state)
{
    struct watchcache_fixture *f = *state;
    struct look look = { .f = f, .sink = kinf__watchcache_sink(f->cache) };
    struct watch watch;

    watchcache_replace(f, "10", "a@1");
    kinf__watchcache_set_enabled(f->cache, false);
    f->informer->sink = (struct kinf__sink){ enable_and_pass_on, &look };
    watchcache_put(f, "a@11");
    watchcache_put(f, "a@12");
    assert_int_equal(watch_try(f, &watch, 10, NULL), KINF_ERR_EXPIRED);
    watch_from(f, &watch, 11, NULL);
    watch_expect(&watch, "MODIFIED d/a@12");
    watch_end(&watch);
    assert_int_equal(status_of(f).n_restarts, 0);
}

/* --- state --- */

static void status_tells_how_far_behind_a_watch_is(void **state)
{
    struct watchcache_fixture *f = *state;
    struct kinf__watch_cursor_status cursor;
    struct watch slow, quick;
    int64_t now_ms;

    watchcache_replace(f, "10", "a@1");
    watch_from(f, &slow, 10, NULL);
    watch_from(f, &quick, 10, NULL);
    now_ms = kinf__clock_now_ms();
    watchcache_put(f, "a@11");
    watchcache_put(f, "a@12");
    free(watch_read(&quick));
    watch_arm(&quick);
    kinf__watch_cursor_status(slow.cursor, now_ms + 1000000, &cursor);
    assert_int_equal(cursor.lag_events, 2);
    assert_true(cursor.lag_ms > 0 && cursor.lag_ms <= 1000000);
    assert_false(cursor.is_armed);
    kinf__watch_cursor_status(quick.cursor, now_ms + 1000000, &cursor);
    assert_int_equal(cursor.lag_events, 0);
    assert_int_equal(cursor.lag_ms, 0);
    assert_int_equal(cursor.n_told, 2);
    assert_true(cursor.is_armed);
    assert_int_equal(status_of(f).max_lag, 2);
    assert_in_range(status_of(f).max_lag_since_ms, now_ms, kinf__clock_now_ms());
    assert_int_equal(status_of(f).n_cursors, 2);
    assert_int_equal(status_of(f).n_events, 2);
    assert_int_equal(status_of(f).n_events_total, 2);
    assert_true(status_of(f).history_bytes > 0);
    watch_end(&slow);
    watch_end(&quick);
    assert_int_equal(status_of(f).n_cursors, 0);
    assert_int_equal(status_of(f).n_cursors_total, 2);
}

static void expect_recent(struct watchcache_fixture *f, size_t n_max, const char *expected)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__watch_recent_event events[8];
    size_t n = kinf__watchcache_recent(f->cache, events, n_max);

    for (size_t i = 0; i < n; i++) {
        assert_int_equal(kinf__buffer_printf(&text, "%s%s %s@%d", i != 0 ? ", " : "",
                                             kinf__watch_event_type_to_string(events[i].type),
                                             kinf_object_key(events[i].object),
                                             (int)events[i].version),
                         0);
        assert_true(events[i].at_ms > 0);
        kinf_object_unref(events[i].object);
    }
    assert_string_equal(kinf__buffer_cstr(&text), expected);
}

static void recent_events_are_the_newest_first_without_bookmarks(void **state)
{
    struct watchcache_fixture *f = *state;

    expect_recent(f, 8, "");
    watchcache_replace(f, "10", "a@1", "b@2");
    expect_recent(f, 8, "");
    watchcache_put(f, "a@11");
    watchcache_put(f, "c@12");
    watchcache_bookmark(f, "13");
    watchcache_delete(f, "b@14");
    expect_recent(f, 8, "DELETED d/b@14, ADDED d/c@12, MODIFIED d/a@11");
    expect_recent(f, 2, "DELETED d/b@14, ADDED d/c@12");
    expect_recent(f, 0, "");
    watchcache_replace(f, "20", "a@11", "c@12", "d@15"); /* with a bookmark of its own */
    expect_recent(f, 2, "ADDED d/d@15, DELETED d/b@14");
}

static size_t store_bytes_of(struct watchcache_fixture *f)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf__watchcache_snapshot(f->cache, NULL);
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    size_t bytes = 0;

    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL)
        bytes += kinf_object_size(object);
    return bytes;
}

static void status_counts_the_bytes_of_the_store(void **state)
{
    struct watchcache_fixture *f = *state;

    assert_int_equal(status_of(f).store_bytes, 0);
    watchcache_replace(f, "10", "a@1", "b@2");
    assert_true(status_of(f).store_bytes > 0);
    watchcache_put(f, "a@11:some-node+some-app");
    watchcache_delete(f, "b@12");
    assert_int_equal(status_of(f).store_bytes, store_bytes_of(f));
    kinf__watchcache_set_enabled(f->cache, false);
    assert_int_equal(status_of(f).store_bytes, 0);
    kinf__watchcache_set_enabled(f->cache, true);
    assert_int_equal(status_of(f).store_bytes, store_bytes_of(f));
}

static void versions_are_decimal_numbers(void **state)
{
    (void)state;
    assert_int_equal(kinf__watchcache_parse_rv("1"), 1);
    assert_int_equal(kinf__watchcache_parse_rv("12345678901"), 12345678901);
    assert_true(kinf__watchcache_parse_rv("18446744073709551615") == UINT64_MAX);
    assert_int_equal(kinf__watchcache_parse_rv("18446744073709551616"), 0);
    assert_int_equal(kinf__watchcache_parse_rv("99999999999999999999"), 0);
    assert_int_equal(kinf__watchcache_parse_rv("0"), 0);
    assert_int_equal(kinf__watchcache_parse_rv("01"), 0);
    assert_int_equal(kinf__watchcache_parse_rv(""), 0);
    assert_int_equal(kinf__watchcache_parse_rv("1 "), 0);
    assert_int_equal(kinf__watchcache_parse_rv("-1"), 0);
    assert_int_equal(kinf__watchcache_parse_rv(NULL), 0);
}

static void hold(struct watchcache_fixture *f)
{
    struct kinf__store_version version;
    kinf_auto_snapshot struct kinf_snapshot *snapshot =
        kinf__watchcache_snapshot(f->cache, &version);

    kinf__watchcache_hold(f->cache, snapshot, &version, kinf__clock_now_ms());
}

static void check_finds_what_is_broken(void **state)
{
    struct watchcache_fixture *f = *state;
    struct kinf__history *history = &f->cache->history;
    struct kinf__past_event *event;
    struct watch watch, others[16];

    watchcache_replace(f, "10", "a@1");
    hold(f);
    watchcache_put(f, "a@11");
    hold(f);
    watchcache_put(f, "a@12");
    watch_from(f, &watch, 12, NULL);
    watch_arm(&watch);
    watchcache_check(f);
    event = kinf__history_at(history, history->first);
#define BREAK(place, value)                                                                        \
    do {                                                                                           \
        __typeof__(place) kept_ = (place);                                                         \
        (place) = (value);                                                                         \
        assert_non_null(kinf__watchcache_check(f->cache));                                         \
        (place) = kept_;                                                                           \
        assert_null(kinf__watchcache_check(f->cache));                                             \
    } while (0)
    BREAK(event->version, 12);
    BREAK(event->version, 10);
    BREAK(event->now, event->old);
    BREAK(history->bytes, history->bytes + 1);
    BREAK(f->cache->version, 11);
    BREAK(f->cache->asked, history->end + 1);
    BREAK(f->cache->lineage, 0);
    BREAK(f->cache->limits.max_pages, 1);
    BREAK(f->cache->pages[0].version.number, 11);
    BREAK(f->cache->pages[0].since_ms, INT64_MAX);
    BREAK(f->cache->pages[1].version.number, 13);
    BREAK(f->cache->pages[1].version.n_bytes_out, f->cache->pages[1].version.n_bytes_out + 1);
    BREAK(f->cache->n_cursors, 2);
    BREAK(f->cache->held_bytes, 1);
    BREAK(watch.cursor->is_armed, false);
    BREAK(watch.cursor->next, history->end + 1);
    BREAK(watch.cursor->bucket->n_cursors, 2);
    /* One of many, whichever list and bucket they are in. */
    for (size_t i = 0; i < KINF__ARRAY_LEN(others); i++) {
        char name_space[8];
        const struct kinf__watch_filter filter = { .name_space = name_space };

        snprintf(name_space, sizeof name_space, "n%zu", i);
        watch_from(f, &others[i], 12, &filter);
    }
    BREAK(watch.cursor->next, history->end + 1);
    BREAK(others[0].cursor->next, history->end + 1);
    for (size_t i = 0; i < KINF__ARRAY_LEN(others); i++) {
        BREAK(others[i].cursor->bucket->n_cursors, 2);
        watch_end(&others[i]);
    }
#undef BREAK
    watch_end(&watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHCACHE_TEST(nothing_is_served_before_the_first_list),
        WATCHCACHE_TEST(list_and_watch_after_it_miss_nothing),
        WATCHCACHE_TEST(watch_goes_on_from_any_version_of_the_history),
        WATCHCACHE_TEST(watch_from_the_future_is_told_what_lies_beyond),
        WATCHCACHE_TEST(watch_from_the_future_outlives_what_it_is_not_told),
        WATCHCACHE_TEST(only_what_changed_is_told),
        WATCHCACHE_TEST(list_enters_in_order_with_a_version_for_each_change),
        WATCHCACHE_TEST(who_begins_between_two_lists_expires),
        WATCHCACHE_TEST(list_of_the_same_version_expires_nobody),
        WATCHCACHE_TEST(deletions_of_a_list_take_the_versions_that_are_free),
        WATCHCACHE_TEST(list_of_many_enters_whole),
        WATCHCACHE_TEST(list_of_nothing_new_moves_the_version_alone),
        WATCHCACHE_TEST(list_that_cannot_be_dated_expires_every_watch),
        WATCHCACHE_TEST(changes_out_of_order_expire_every_watch),
        WATCHCACHE_TEST(changes_that_the_store_does_not_have_expire_every_watch),
        WATCHCACHE_TEST(missed_deletion_is_dated_by_what_comes_next),
        WATCHCACHE_TEST(version_moves_with_the_history_and_not_with_the_store),
        WATCHCACHE_TEST(objects_enter_and_leave_a_selection),
        WATCHCACHE_TEST(successor_is_told_as_another_object),
        WATCHCACHE_TEST(selection_is_by_namespace_name_and_index),
        WATCHCACHE_TEST(watch_pauses_in_many_events_of_others),
        WATCHCACHE_TEST(bookmark_in_the_midst_of_a_list_is_of_before_it),
        WATCHCACHE_TEST(unknown_index_is_refused),
        WATCHCACHE_TEST(added_index_begins_a_new_history),
        WATCHCACHE_TEST(watch_is_woken_only_for_its_own),
        WATCHCACHE_TEST(event_that_was_read_already_wakes_nobody),
        WATCHCACHE_TEST(arming_once_wakes_once),
        WATCHCACHE_TEST(list_wakes_who_wants_its_bookmark),
        WATCHCACHE_TEST(idle_watch_stays_in_step_with_the_history),
        WATCHCACHE_TEST(stalled_watch_expires_and_hurts_nobody),
        WATCHCACHE_TEST(what_stalled_watches_hold_is_bounded),
        WATCHCACHE_TEST(event_that_changes_nothing_stalls_nobody),
        WATCHCACHE_TEST(giving_up_thousands_takes_no_time),
        WATCHCACHE_TEST(events_grow_too_old),
        WATCHCACHE_TEST(server_that_went_back_expires_every_watch),
        WATCHCACHE_TEST(versions_that_are_no_numbers_are_not_served),
        WATCHCACHE_TEST(lack_of_memory_expires_instead_of_losing_events),
        WATCHCACHE_TEST(subscribing_without_memory_changes_nothing),
        WATCHCACHE_TEST(cache_without_memory_is_not_made),
        WATCHCACHE_TEST(nothing_is_kept_while_nobody_asks),
        WATCHCACHE_TEST(enabling_during_a_write_tells_it_once),
        WATCHCACHE_TEST(status_tells_how_far_behind_a_watch_is),
        WATCHCACHE_TEST(recent_events_are_the_newest_first_without_bookmarks),
        WATCHCACHE_TEST(status_counts_the_bytes_of_the_store),
        cmocka_unit_test(versions_are_decimal_numbers),
        WATCHCACHE_TEST(check_finds_what_is_broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
