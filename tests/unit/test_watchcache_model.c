/*
 * The watch cache against a naive twin: a server that changes objects, is lost sight of, listed
 * again and restored; and watches that come, go, stall and resume from any version.
 *
 * A witness that sees everything writes down what the history is. What it is told of a list is
 * judged by what the list says; every other watch is judged by what the witness wrote down: it must
 * be told exactly what its selection sees of it, or that it expired, and that only with good reason.
 */
#include "unit/watchcache_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#include "unit/allocation.h"
#include "unit/test.h"
#include "watchcache/history.h"

enum {
    n_slots = 10,
    n_watches = 12,
    n_held = 4,
    n_steps = 800,
    max_past = 20000,
    max_gaps = 800,
};

/* What is at a key; version 0: nothing. */
struct state {
    unsigned version, uid, node, app;
};

struct happened {
    unsigned version; /* also of a deletion */
    size_t slot;      /* n_slots: a bookmark */
    struct state before, after;
};

struct twin_watch {
    struct watch watch; /* no cursor: there is none */
    struct kinf__watch_filter filter;
    char node[8], app[8], name_space[8], name[8];
    bool has_node, has_app, has_name;
    unsigned start; /* what is not above is not told */
    size_t place;   /* in `past` */
    unsigned epoch;
    unsigned progress;
};

/* Somebody reads a version, holds it some time later, and later again asks for it. */
struct held {
    struct kinf__store_version version;
    struct kinf_snapshot *snapshot; /* NULL: it is held, or nobody reads */
    bool is_undone;                 /* the server went back */
    struct state states[n_slots];
};

struct twin {
    struct watchcache_fixture *f;
    struct test_random random;
    /* the server */
    struct state now[n_slots];
    unsigned version, last_uid;
    struct happened *unseen; /* the server's changes that the informer was not told of yet */
    size_t n_unseen;
    struct state kept[n_slots]; /* a backup */
    unsigned kept_version;
    /* what the informer's store has */
    struct state stored[n_slots];
    unsigned stored_version;
    /* what the witness saw */
    struct twin_watch witness;
    struct happened *past;
    size_t n_past;
    unsigned epoch;
    uint64_t n_restarts;
    unsigned suspect;
    struct kinf__history_gap gaps[max_gaps]; /* between what was stored and a list */
    size_t n_gaps;
    struct twin_watch watches[n_watches];
    struct held held[n_held];
    size_t n_expired, n_told;
};

static size_t below(struct twin *twin, size_t limit)
{
    return test_random_below(&twin->random, limit);
}

static struct kinf__watchcache_status status_of(struct twin *twin)
{
    struct kinf__watchcache_status status;

    kinf__watchcache_status(twin->f->cache, &status);
    return status;
}

/* --- the server --- */

static void slot_key(size_t slot, char *buf, size_t size)
{
    snprintf(buf, size, "n%zu/k%zu", slot % 3, slot);
}

static const struct kinf_object *object_of(size_t slot, const struct state *state, unsigned version)
{
    char key[32], text[96];

    slot_key(slot, key, sizeof key);
    snprintf(text, sizeof text, "%s@%u^%u:%u+%u", key, version, state->uid, state->node,
             state->app);
    return watchcache_object(text);
}

static void change_one(struct twin *twin)
{
    size_t slot = below(twin, n_slots);
    struct state *now = &twin->now[slot];
    struct happened one = { .slot = slot, .before = *now };

    twin->version += 1 + (unsigned)below(twin, 2) * (unsigned)below(twin, 5);
    one.version = twin->version;
    if (now->version == 0)
        now->uid = ++twin->last_uid;
    if (now->version != 0 && below(twin, 4) == 0)
        *now = (struct state){ 0, 0, 0, 0 };
    else
        *now = (struct state){ twin->version, now->uid, (unsigned)below(twin, 3),
                               (unsigned)below(twin, 2) };
    one.after = *now;
    assert_true(twin->n_unseen < max_past);
    twin->unseen[twin->n_unseen++] = one;
}

/* --- what the informer is told --- */

/* Once without memory, perhaps; the second time with it. */
static void feed(struct twin *twin, const struct kinf_delta *deltas, size_t n_deltas)
{
    struct kinf_informer *informer = twin->f->informer;
    const struct kinf_deltas together = { NULL, deltas, n_deltas };
    int rc;

    if (below(twin, 20) == 0)
        test_fail_allocation(1 + below(twin, 40));
    rc = kinf__handle_deltas(&informer->target, &together, false, &informer->batch);
    test_fail_allocation(0);
    if (rc < 0)
        rc = kinf__handle_deltas(&informer->target, &together, false, &informer->batch);
    assert_int_equal(rc, 0);
    kinf__batch_clear(&informer->batch);
}

/* The next changes, up to one of a key that is among them. */
static void feed_changes(struct twin *twin)
{
    struct kinf_delta deltas[n_slots];
    bool is_in[n_slots] = { false };
    size_t n = 0, n_wanted = 1 + below(twin, n_slots);

    while (n < twin->n_unseen && n < n_wanted && !is_in[twin->unseen[n].slot]) {
        const struct happened *one = &twin->unseen[n];
        bool is_gone = one->after.version == 0;
        const struct state *state = is_gone ? &one->before : &one->after;

        is_in[one->slot] = true;
        twin->stored[one->slot] = one->after;
        twin->stored_version = one->version;
        deltas[n++] =
            (struct kinf_delta){ .type = is_gone ? KINF_DELTA_DELETED : KINF_DELTA_UPDATED,
                                 .object = object_of(one->slot, state, one->version) };
    }
    if (n == 0)
        return;
    feed(twin, deltas, n);
    for (size_t i = 0; i < n; i++)
        kinf_object_unref(deltas[i].object);
    twin->n_unseen -= n;
    memmove(twin->unseen, &twin->unseen[n], twin->n_unseen * sizeof twin->unseen[0]);
}

static void feed_list(struct twin *twin)
{
    const struct kinf_object *objects[n_slots];
    char rv[32];
    struct kinf_delta delta = { .type = KINF_DELTA_REPLACED_ALL,
                                .objects = objects,
                                .resource_version = rv };

    assert_true(twin->n_gaps < max_gaps);
    twin->gaps[twin->n_gaps++] = (struct kinf__history_gap){ twin->stored_version, twin->version };
    snprintf(rv, sizeof rv, "%u", twin->version);
    for (size_t i = 0; i < n_slots; i++) {
        if (twin->now[i].version != 0)
            objects[delta.n_objects++] = object_of(i, &twin->now[i], twin->now[i].version);
    }
    memcpy(twin->stored, twin->now, sizeof twin->stored);
    twin->stored_version = twin->version;
    twin->n_unseen = 0;
    feed(twin, &delta, 1);
    for (size_t i = 0; i < delta.n_objects; i++)
        kinf_object_unref(objects[i]);
}

static void feed_bookmark(struct twin *twin)
{
    char rv[32];
    const struct kinf_delta delta = { .type = KINF_DELTA_BOOKMARK, .resource_version = rv };

    if (twin->n_unseen != 0)
        return;
    twin->version += (unsigned)below(twin, 3);
    twin->stored_version = twin->version;
    snprintf(rv, sizeof rv, "%u", twin->version);
    feed(twin, &delta, 1);
}

/* From the backup; the informer lists. Versions are used again, uids are not. */
static void restore(struct twin *twin)
{
    if (twin->kept_version == 0 || twin->kept_version >= twin->stored_version)
        return;
    if (twin->stored_version > twin->suspect)
        twin->suspect = twin->stored_version;
    memcpy(twin->now, twin->kept, sizeof twin->now);
    twin->version = twin->kept_version;
    feed_list(twin);
    for (size_t i = 0; i < n_held; i++)
        twin->held[i].is_undone = true;
}

/* --- judging --- */

static bool sees(const struct twin_watch *watch, size_t slot, const struct state *state)
{
    char key[32], name[16];

    slot_key(slot, key, sizeof key);
    snprintf(name, sizeof name, "k%zu", slot);
    return state->version != 0 &&
           (watch->filter.name_space == NULL ||
            (strncmp(key, watch->filter.name_space, 2) == 0 && key[2] == '/')) &&
           (!watch->has_name || strcmp(name, watch->name) == 0) &&
           (!watch->has_node || (unsigned)atoi(watch->node) == state->node) &&
           (!watch->has_app || (unsigned)atoi(watch->app) == state->app);
}

/* What the watch is to be told of it; false: nothing. */
static bool text_for(const struct twin_watch *watch, const struct happened *one, char *buf,
                     size_t size)
{
    bool was_seen, is_seen;
    char key[32];

    if (one->version <= watch->start)
        return false;
    if (one->slot == n_slots) {
        snprintf(buf, size, "BOOKMARK %u", one->version);
        return watch->filter.wants_bookmarks;
    }
    slot_key(one->slot, key, sizeof key);
    was_seen = sees(watch, one->slot, &one->before);
    is_seen = sees(watch, one->slot, &one->after);
    if (is_seen)
        snprintf(buf, size, "%s %s@%u", was_seen ? "MODIFIED" : "ADDED", key, one->version);
    else
        snprintf(buf, size, "DELETED %s@%u (%u)", key, one->version, one->before.version);
    return is_seen || was_seen;
}

/* The place of what it is to be told next; n_past: nothing. */
static size_t next_for(const struct twin *twin, const struct twin_watch *watch, char *buf,
                       size_t size)
{
    size_t i = watch->place;

    while (i < twin->n_past && !text_for(watch, &twin->past[i], buf, size))
        i++;
    return i;
}

static bool is_in_gap(const struct twin *twin, unsigned version)
{
    for (size_t i = 0; i < twin->n_gaps; i++) {
        if (kinf__history_gap_has(twin->gaps[i], version))
            return true;
    }
    return false;
}

/* The cache does not tell the oldest of many apart, and says then that it does not know. */
static bool is_between_gaps(const struct twin *twin, unsigned version)
{
    return twin->n_gaps > KINF__N_HISTORY_GAPS && version > twin->gaps[0].before &&
           version < twin->gaps[twin->n_gaps - KINF__N_HISTORY_GAPS].behind;
}

static void judge_expiry(struct twin *twin, struct twin_watch *watch)
{
    unsigned version =
        watch->place > 0 && watch->place <= twin->n_past ? twin->past[watch->place - 1].version : 0;

    twin->n_expired++;
    if (version < watch->start)
        version = watch->start;
    if (watch->epoch == twin->epoch && version >= status_of(twin).oldest_version &&
        !is_in_gap(twin, watch->start))
        fail_msg("expired at version %u, the history goes back to %llu", version,
                 (unsigned long long)status_of(twin).oldest_version);
    watch_end(&watch->watch);
}

static void judge_progress(struct twin *twin, struct twin_watch *watch)
{
    unsigned progress = (unsigned)kinf__watch_cursor_progress(watch->watch.cursor);
    char text[96];
    size_t next;

    if (progress == 0) {
        struct kinf__watch_event event;

        assert_int_equal(kinf__watch_cursor_next(watch->watch.cursor, &event), KINF_ERR_EXPIRED);
        return;
    }
    assert_int_equal(watch->epoch, twin->epoch);
    assert_true(progress >= watch->progress);
    watch->progress = progress;
    assert_true(progress <= twin->stored_version || progress == watch->start);
    assert_true(!is_in_gap(twin, progress) || progress == watch->start);
    next = next_for(twin, watch, text, sizeof text);
    /* A bookmark says no more than a version. */
    if (next < twin->n_past && progress >= twin->past[next].version &&
        twin->past[next].slot != n_slots)
        fail_msg("progress %u, but \"%s\" was not told", progress, text);
}

/* The same, where it was told `told`: a bookmark of what it has may have fallen out. */
static size_t next_told(struct twin *twin, struct twin_watch *watch, const char *told, char *buf,
                        size_t size)
{
    size_t next = next_for(twin, watch, buf, size);

    while (next < twin->n_past && strcmp(buf, told) != 0 && twin->past[next].slot == n_slots &&
           twin->past[next].version <= status_of(twin).oldest_version) {
        watch->place = next + 1;
        next = next_for(twin, watch, buf, size);
    }
    return next;
}

/* Reads up to `n` events. */
static void read_watch(struct twin *twin, struct twin_watch *watch, size_t n)
{
    struct kinf__watch_event event;
    char expected[96] = "", told[96] = "";

    for (; n > 0 && watch->watch.cursor != NULL; n--) {
        int rc = kinf__watch_cursor_next(watch->watch.cursor, &event);
        size_t next;

        if (rc == KINF_ERR_EXPIRED) {
            judge_expiry(twin, watch);
            return;
        }
        assert_int_equal(watch->epoch, twin->epoch);
        assert_false(is_in_gap(twin, watch->start));
        if (rc == 1)
            watch_event_text(&event, told, sizeof told);
        next = next_told(twin, watch, told, expected, sizeof expected);
        if (rc == 0) {
            if (next != twin->n_past)
                fail_msg("nothing is told, but \"%s\" happened", expected);
            watch->place = next;
            judge_progress(twin, watch);
            return;
        }
        assert_int_equal(rc, 1);
        assert_true(next < twin->n_past);
        assert_string_equal(told, expected);
        watch->place = next + 1;
        twin->n_told++;
        judge_progress(twin, watch);
    }
}

/* --- the witness --- */

static void subscribe_witness(struct twin *twin)
{
    struct twin_watch *witness = &twin->witness;

    if (witness->watch.cursor != NULL)
        watch_end(&witness->watch);
    witness->filter = (struct kinf__watch_filter){ .wants_bookmarks = true };
    watch_from(twin->f, &witness->watch, twin->stored_version, &witness->filter);
}

static struct state state_of(const struct kinf_object *object)
{
    char app[8], node[8];

    assert_int_equal(kinf_object_get_label(object, "app", app, sizeof app), 0);
    assert_int_equal(kinf_object_get_string(object, "spec.nodeName", node, sizeof node), 0);
    return (struct state){ (unsigned)atoi(kinf_object_resource_version(object)),
                           (unsigned)atoi(kinf_object_uid(object)), (unsigned)atoi(node),
                           (unsigned)atoi(app) };
}

static bool same_state(const struct state *a, const struct state *b)
{
    return a->version == b->version && a->uid == b->uid && a->node == b->node && a->app == b->app;
}

/* Applies what the witness was told to the states before: it must fit, and lead to what is stored.
 * Versions rise. */
static void apply(struct twin *twin, struct state *states, const struct kinf__watch_event *event)
{
    struct happened *one = &twin->past[twin->n_past];
    unsigned before = twin->n_past > 0 ? twin->past[twin->n_past - 1].version : 0;
    struct state *state;

    assert_true(twin->n_past + 1 < max_past);
    twin->n_past++;
    *one = (struct happened){ .version = (unsigned)event->version, .slot = n_slots };
    if (event->type == KINF__WATCH_BOOKMARK) {
        assert_true(one->version >= before);
        return;
    }
    assert_true(one->version > before);
    one->slot = (size_t)atoi(kinf_object_name(event->object) + 1);
    state = &states[one->slot];
    one->before = *state;
    if (event->type == KINF__WATCH_DELETED) {
        const struct state last = state_of(event->object);

        assert_true(same_state(&last, state));
    } else {
        one->after = state_of(event->object);
        assert_int_equal(one->after.version, one->version);
        assert_int_equal(state->version != 0, event->type == KINF__WATCH_MODIFIED);
        assert_true(state->version == 0 || state->uid == one->after.uid);
    }
    *state = one->after;
}

/* After a write: `before` is what was stored. */
static void witness(struct twin *twin, struct state *before, unsigned version_before)
{
    struct kinf__watch_event event;
    int rc;

    if (status_of(twin).n_restarts != twin->n_restarts) {
        twin->n_restarts = status_of(twin).n_restarts;
        twin->epoch++;
        twin->n_past = 0;
        twin->n_gaps = 0;
        assert_int_equal(kinf__watch_cursor_next(twin->witness.watch.cursor, &event),
                         KINF_ERR_EXPIRED);
        subscribe_witness(twin);
        return;
    }
    while ((rc = kinf__watch_cursor_next(twin->witness.watch.cursor, &event)) == 1) {
        assert_true(event.version > version_before && event.version <= twin->stored_version);
        apply(twin, before, &event);
    }
    assert_int_equal(rc, 0);
    for (size_t i = 0; i < n_slots; i++)
        assert_true(same_state(&before[i], &twin->stored[i]));
}

/* --- watches --- */

static void choose_filter(struct twin *twin, struct twin_watch *watch)
{
    *watch = (struct twin_watch){ .has_node = below(twin, 3) == 0,
                                  .has_app = below(twin, 3) == 0,
                                  .has_name = below(twin, 4) == 0 };
    snprintf(watch->node, sizeof watch->node, "%zu", below(twin, 3));
    snprintf(watch->app, sizeof watch->app, "%zu", below(twin, 2));
    snprintf(watch->name_space, sizeof watch->name_space, "n%zu", below(twin, 3));
    snprintf(watch->name, sizeof watch->name, "k%zu", below(twin, n_slots));
    watch->filter.wants_bookmarks = below(twin, 2) == 0;
    if (watch->has_name || below(twin, 2) == 0)
        watch->filter.name_space = watch->name_space;
    if (watch->has_name)
        watch->filter.name = watch->name;
    if (watch->has_node) {
        watch->filter.index = "byNodeName";
        watch->filter.index_value = watch->node;
    }
    if (watch->has_app) {
        watch->filter.match = watch_match_app;
        watch->filter.match_ctx = watch->app;
    }
}

static void judge_snapshot(const struct kinf_snapshot *snapshot, const struct state *states,
                           unsigned version)
{
    char key[32], rv[16];
    size_t n = 0;

    snprintf(rv, sizeof rv, "%u", version);
    assert_string_equal(kinf_snapshot_resource_version(snapshot), rv);
    for (size_t i = 0; i < n_slots; i++) {
        const struct kinf_object *object;
        struct state state;

        if (states[i].version == 0)
            continue;
        n++;
        slot_key(i, key, sizeof key);
        object = kinf_snapshot_get(snapshot, key);
        assert_non_null(object);
        state = state_of(object);
        assert_true(same_state(&state, &states[i]));
    }
    assert_int_equal(kinf_snapshot_count(snapshot), n);
}

static void begin_now(struct twin *twin, struct twin_watch *watch)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = NULL;

    watch_now(twin->f, &watch->watch, &watch->filter, &snapshot);
    judge_snapshot(snapshot, twin->stored, twin->stored_version);
    watch->start = twin->stored_version;
}

static void begin_at(struct twin *twin, struct twin_watch *watch)
{
    uint64_t oldest = status_of(twin).oldest_version;
    unsigned low = oldest > 5 ? (unsigned)oldest - 5 : 0;
    unsigned start = low + (unsigned)below(twin, twin->stored_version + 10 - low);
    int rc = watch_try(twin->f, &watch->watch, start, &watch->filter);
    bool is_suspect = start > twin->stored_version && start <= twin->suspect;

    if (start >= oldest && !is_suspect && !is_in_gap(twin, start) && rc != 0) {
        assert_true(is_between_gaps(twin, start));
        return;
    }
    assert_int_equal(rc,
                     start < oldest || is_suspect || is_in_gap(twin, start) ? KINF_ERR_EXPIRED : 0);
    watch->start = start;
}

static void begin_watch(struct twin *twin, struct twin_watch *watch)
{
    choose_filter(twin, watch);
    if (below(twin, 3) == 0)
        begin_now(twin, watch);
    else
        begin_at(twin, watch);
    watch->epoch = twin->epoch;
    watch->progress = watch->start;
}

static void step_watch(struct twin *twin)
{
    struct twin_watch *watch = &twin->watches[below(twin, n_watches)];

    if (watch->watch.cursor == NULL)
        begin_watch(twin, watch);
    else if (below(twin, 15) == 0)
        watch_end(&watch->watch);
    else
        read_watch(twin, watch, 1 + below(twin, 6));
}

/* Arms whom it can; returns whom. */
static unsigned arm_some(struct twin *twin)
{
    unsigned armed = 0;

    for (size_t i = 0; i < n_watches; i++) {
        struct twin_watch *watch = &twin->watches[i];

        if (watch->watch.cursor == NULL || below(twin, 2) == 0)
            continue;
        atomic_store(&watch->watch.n_wakes, 0);
        if (!kinf__watch_cursor_arm(watch->watch.cursor))
            armed |= 1U << i;
    }
    return armed;
}

/* Who was armed was woken exactly if there is something to tell. */
static void judge_wakes(struct twin *twin, unsigned armed, size_t n_past, unsigned epoch)
{
    for (size_t i = 0; i < n_watches; i++) {
        struct twin_watch *watch = &twin->watches[i];
        char text[96];
        bool is_due = epoch != twin->epoch || is_in_gap(twin, watch->start);

        if ((armed & 1U << i) == 0 || watch->watch.cursor == NULL)
            continue;
        for (size_t j = n_past; !is_due && j < twin->n_past; j++)
            is_due = text_for(watch, &twin->past[j], text, sizeof text);
        assert_int_equal(watch_wakes(&watch->watch), is_due);
    }
}

/* --- pages --- */

static void ask_for_held(struct twin *twin, struct held *held)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = NULL;
    int rc = kinf__watchcache_snapshot_at(twin->f->cache, &held->version, &snapshot, NULL);

    if (rc == 0) {
        assert_false(held->is_undone);
        judge_snapshot(snapshot, held->states, (unsigned)held->version.number);
    } else {
        assert_true(held->is_undone ||
                    (rc == KINF_ERR_EXPIRED && status_of(twin).n_pages_dropped > 0));
    }
    held->version.number = 0;
}

static void step_page(struct twin *twin)
{
    struct held *held = &twin->held[below(twin, n_held)];

    if (held->snapshot != NULL) {
        kinf__watchcache_hold(twin->f->cache, held->snapshot, &held->version, kinf__clock_now_ms());
        kinf_snapshot_unref(KINF__TAKE(held->snapshot));
    } else if (held->version.number != 0) {
        ask_for_held(twin, held);
    } else {
        held->snapshot = kinf__watchcache_snapshot(twin->f->cache, &held->version);
        held->is_undone = false;
        memcpy(held->states, twin->stored, sizeof held->states);
    }
}

/* --- the test --- */

static void write_store(struct twin *twin)
{
    size_t way = below(twin, 100);

    if (way < 80)
        feed_changes(twin);
    else if (way < 90)
        feed_list(twin);
    else if (way < 98)
        feed_bookmark(twin);
    else
        restore(twin);
}

static void step_write(struct twin *twin)
{
    struct state before[n_slots];
    unsigned version_before = twin->stored_version, epoch = twin->epoch;
    size_t n_past = twin->n_past, n_changes = below(twin, 12);
    unsigned armed = arm_some(twin);

    memcpy(before, twin->stored, sizeof before);
    for (size_t i = 0; i < n_changes; i++)
        change_one(twin);
    if (below(twin, 40) == 0) {
        memcpy(twin->kept, twin->now, sizeof twin->kept);
        twin->kept_version = twin->version;
    }
    write_store(twin);
    witness(twin, before, version_before);
    judge_wakes(twin, armed, epoch == twin->epoch ? n_past : 0, epoch);
}

static void end_all(struct twin *twin)
{
    for (size_t i = 0; i < n_watches; i++) {
        read_watch(twin, &twin->watches[i], SIZE_MAX);
        if (twin->watches[i].watch.cursor != NULL)
            watch_end(&twin->watches[i].watch);
    }
    for (size_t i = 0; i < n_held; i++)
        kinf_snapshot_unref(twin->held[i].snapshot);
    watch_end(&twin->witness.watch);
}

static void run(struct watchcache_fixture *f, uint64_t seed, size_t *n_told, size_t *n_expired)
{
    struct twin *twin = calloc(1, sizeof *twin);

    assert_non_null(twin);
    *twin = (struct twin){ .f = f, .random = { seed }, .version = 10 };
    twin->unseen = calloc(max_past, sizeof twin->unseen[0]);
    twin->past = calloc(max_past, sizeof twin->past[0]);
    assert_true(twin->unseen != NULL && twin->past != NULL);
    feed_list(twin);
    twin->n_restarts = status_of(twin).n_restarts;
    subscribe_witness(twin);
    for (size_t i = 0; i < n_steps; i++) {
        if (below(twin, 4) == 0)
            step_write(twin);
        else if (below(twin, 10) == 0)
            step_page(twin);
        else
            step_watch(twin);
        watchcache_check(f);
    }
    end_all(twin);
    *n_told += twin->n_told;
    *n_expired += twin->n_expired;
    free(twin->unseen);
    free(twin->past);
    free(twin);
}

static void every_watch_is_told_its_history_or_that_it_expired(void **state)
{
    struct watchcache_fixture *f = *state;
    struct test_random random = test_random_init("watchcache model");
    size_t n_rounds = test_rounds(32), n_told = 0, n_expired = 0;

    for (size_t i = 0; i < n_rounds; i++) {
        /* Room for any one write, or the witness would expire, too. */
        const struct kinf__watchcache_limits limits = {
            .history_bytes = 8000 + test_random_below(&random, 40000),
            .page_bytes = 2000 + test_random_below(&random, 40000),
            .max_pages = 1 + test_random_below(&random, 4),
        };

        kinf__watchcache_free(f->cache);
        kinf_informer_free(f->informer);
        watchcache_make(f, &limits);
        run(f, test_random_next(&random), &n_told, &n_expired);
    }
    /* The test looks at what it is meant to. */
    assert_true(n_told > 100 * n_rounds);
    assert_true(n_expired > n_rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHCACHE_TEST(every_watch_is_told_its_history_or_that_it_expired),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
