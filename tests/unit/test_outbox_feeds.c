/*
 * Several feeds of one resource in an outbox: their SYNCED, and selections that overlap, which are told
 * as one; at random against a server that each feed follows at its own pace.
 */
#include "handlers/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/informer_fixture.h"
#include "unit/outbox_fixture.h"
#include "unit/test.h"

/* --- SYNCED --- */

/* Several entries of the configuration may be of one resource: of other namespaces, say. */
static void a_resource_of_several_feeds_is_synced_once_and_behind_all(void **state)
{
    struct kinf__outbox_feed *second;
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, false);
    second = outbox_open_feed(&f.outbox, "things");
    outbox_put(f.feed, "a", "1");
    kinf__outbox_feed_synced(f.feed);
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1");
    outbox_put(second, "b", "2");
    kinf__outbox_feed_synced(second);
    assert_outbox_told(&f.outbox, "ADDED ns/b@2, SYNCED things");
    kinf__outbox_reset(&f.outbox);
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/a@1, ADDED! ns/b@2, SYNCED things");
    kinf__outbox_feed_free(second);
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/a@1, SYNCED things");
    outbox_end(&f);
}

static void a_feed_that_goes_unsynced_holds_up_nothing(void **state)
{
    struct kinf__outbox_feed *second, *third;
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, false);
    outbox_put(f.feed, "a", "1");
    second = outbox_open_feed(&f.outbox, "things");
    third = outbox_open_feed(&f.outbox, "things");
    kinf__outbox_feed_synced(f.feed);
    kinf__outbox_feed_synced(third);
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1");
    kinf__outbox_feed_free(second);
    kinf__outbox_feed_free(third); /* by which it would have been told */
    assert_outbox_told(&f.outbox, "SYNCED things");
    kinf__outbox_reset(&f.outbox);
    second = outbox_open_feed(&f.outbox, "things");
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/a@1, SYNCED things"); /* it was synced before */
    kinf__outbox_reset(&f.outbox);
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/a@1");
    kinf__outbox_feed_synced(second);
    assert_outbox_told(&f.outbox, "SYNCED things");
    kinf__outbox_feed_free(second);
    outbox_end(&f);
}

static void a_feed_that_is_refused_holds_up_nothing_until_it_is_there(void **state)
{
    struct kinf__outbox_feed *second;
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, false);
    second = outbox_open_feed(&f.outbox, "things");
    kinf__outbox_feed_refused(second);
    assert_outbox_told(&f.outbox, "RESET");
    outbox_put(f.feed, "a", "1");
    kinf__outbox_feed_synced(f.feed);
    assert_outbox_told(&f.outbox, "ADDED ns/a@1, SYNCED things");
    kinf__outbox_reset(&f.outbox);
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/a@1, SYNCED things");
    outbox_put(second, "b", "2");
    kinf__outbox_feed_synced(second);
    assert_outbox_told(&f.outbox, "ADDED ns/b@2, SYNCED things");
    kinf__outbox_feed_free(f.feed);
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/b@2, SYNCED things");
    f.feed = second;
    /* Refused when all else has synced; and a resource of which nothing may be seen is not synced. */
    second = outbox_open_feed(&f.outbox, "things");
    kinf__outbox_reset(&f.outbox);
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/b@2");
    kinf__outbox_feed_refused(second);
    assert_outbox_told(&f.outbox, "SYNCED things");
    kinf__outbox_feed_free(f.feed);
    f.feed = second;
    assert_outbox_told(&f.outbox, "RESET");
    outbox_end(&f);
}

/* It may be of a configuration that is not taken over, since a later one of its watches does not start. */
static void a_feed_that_is_not_opened_is_as_if_it_was_not_there(void **state)
{
    struct kinf__outbox_feed *second;
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, true);
    assert_int_equal(kinf__outbox_feed_new(&f.outbox, "things", &second, NULL), 0);
    outbox_put(second, "a", "9");
    outbox_put(second, "b", "1");
    outbox_delete(second, "b", "1");
    outbox_put(f.feed, "a", "1");
    kinf__outbox_feed_synced(f.feed);
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1, SYNCED things");
    kinf__outbox_reset(&f.outbox);
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/a@1, SYNCED things");
    kinf__outbox_feed_refused(second);
    kinf__outbox_feed_synced(second);
    kinf__outbox_feed_free(second);
    assert_outbox_told(&f.outbox, "");
    outbox_end(&f);
}

static void a_feed_tells_what_it_has_when_it_is_opened(void **state)
{
    struct kinf__outbox_feed *second, *third;
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, false);
    outbox_put(f.feed, "a", "1");
    outbox_put(f.feed, "b", "2");
    kinf__outbox_feed_synced(f.feed);
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1, ADDED ns/b@2, SYNCED things");
    assert_int_equal(kinf__outbox_feed_new(&f.outbox, "things", &second, NULL), 0);
    assert_int_equal(kinf__outbox_feed_new(&f.outbox, "things", &third, NULL), 0);
    outbox_put(second, "a", "1"); /* the same */
    outbox_put(second, "b", "1"); /* older */
    outbox_put(second, "c", "3");
    outbox_put(second, "c", "4");
    kinf__outbox_feed_synced(second);
    outbox_put(third, "b", "5"); /* newer */
    kinf__outbox_feed_open(second);
    assert_outbox_told(&f.outbox, "ADDED ns/c@4, SYNCED things");
    kinf__outbox_feed_open(third);
    assert_outbox_told(&f.outbox, "MODIFIED ns/b@5");
    kinf__outbox_feed_synced(third);
    assert_outbox_told(&f.outbox, "SYNCED things");
    kinf__outbox_feed_free(second);
    kinf__outbox_feed_free(third);
    outbox_end(&f);
}

/* New ones of a configuration are opened one after another, and may have synced by then. */
static void feeds_that_have_joined_are_waited_for_until_they_are_open(void **state)
{
    struct kinf__outbox_feed *second, *third;
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, false);
    outbox_put(f.feed, "a", "1");
    assert_int_equal(kinf__outbox_feed_new(&f.outbox, "things", &second, NULL), 0);
    assert_int_equal(kinf__outbox_feed_new(&f.outbox, "things", &third, NULL), 0);
    outbox_put(second, "b", "2");
    outbox_put(third, "a", "1");
    kinf__outbox_feed_synced(second);
    kinf__outbox_feed_refused(third);
    kinf__outbox_feed_join(second);
    kinf__outbox_feed_join(third);
    kinf__outbox_feed_synced(f.feed);
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1");
    kinf__outbox_feed_open(second);
    assert_outbox_told(&f.outbox, "ADDED ns/b@2");
    outbox_delete(f.feed, "a", "1"); /* which the third has, and does not tell of yet */
    assert_outbox_told(&f.outbox, "DELETED ns/a@1");
    assert_true(kinf__outbox_check(&f.outbox));
    kinf__outbox_feed_open(third);
    assert_outbox_told(&f.outbox, "ADDED ns/a@1, SYNCED things");
    kinf__outbox_feed_free(second);
    kinf__outbox_feed_free(third);
    outbox_end(&f);
}

#define N_FEEDS 4

struct feeds {
    struct kinf__outbox_feed *items[N_FEEDS]; /* NULL: it is not there */
    bool are_synced[N_FEEDS];
};

static void add_feed(struct kinf__outbox *outbox, struct feeds *feeds, size_t i)
{
    char name[2] = { (char)('a' + i), '\0' };

    feeds->items[i] = outbox_open_feed(outbox, "things");
    outbox_put(feeds->items[i], name, "1");
}

static void change_feed(struct kinf__outbox *outbox, struct feeds *feeds, size_t i, bool goes)
{
    if (feeds->items[i] == NULL) {
        add_feed(outbox, feeds, i);
    } else if (goes) {
        kinf__outbox_feed_free(KINF__TAKE(feeds->items[i]));
        feeds->are_synced[i] = false;
    } else if (!feeds->are_synced[i]) {
        kinf__outbox_feed_synced(feeds->items[i]);
        feeds->are_synced[i] = true;
    }
}

/* Each has told its object before it is synced. */
static void whatever_feeds_come_and_go_synced_is_the_last_of_a_resource(void **state)
{
    struct test_random random = test_random_init("outbox feeds");

    (void)state;
    for (size_t round = 0; round < test_rounds(400); round++) {
        struct feeds feeds = { .items = { NULL } };
        struct outbox_told told = { .text = "" };
        struct outbox_fixture f;

        outbox_begin(&f, round % 2 == 1);
        kinf__outbox_feed_synced(f.feed);
        for (size_t step = 0; step < 60; step++) {
            size_t dice = test_random_below(&random, 10);

            if (dice < 5)
                change_feed(&f.outbox, &feeds, test_random_below(&random, N_FEEDS), dice == 0);
            else if (dice < 9)
                (void)outbox_take(&f.outbox, &told);
            else
                kinf__outbox_reset(&f.outbox);
        }
        for (size_t i = 0; i < N_FEEDS; i++) {
            if (feeds.items[i] != NULL && !feeds.are_synced[i])
                change_feed(&f.outbox, &feeds, i, true);
        }
        while (outbox_take(&f.outbox, &told))
            continue;
        assert_string_equal(told.text, "SYNCED things");
        for (size_t i = 0; i < N_FEEDS; i++)
            kinf__outbox_feed_free(feeds.items[i]);
        outbox_end(&f);
    }
}

/* --- selections that overlap --- */

static struct kinf__outbox_feed *another_feed(struct outbox_fixture *f)
{
    return outbox_open_feed(&f->outbox, "things");
}

/* Version 0: there is none. The uid is a number, too. */
static const struct kinf_object *make_version(const char *name, int uid, int version)
{
    char rv[16], uid_text[16];

    if (version == 0)
        return NULL;
    snprintf(rv, sizeof rv, "%d", version);
    snprintf(uid_text, sizeof uid_text, "%d", uid);
    return make_thing_of(name, uid_text, rv, "");
}

static void update(struct kinf__outbox_feed *feed, const char *name, int uid, int old, int version)
{
    kinf_auto_object const struct kinf_object *before = make_version(name, uid, old);
    kinf_auto_object const struct kinf_object *object = make_version(name, uid, version);

    kinf__outbox_feed_put(feed, before, object, false);
}

static void lose(struct kinf__outbox_feed *feed, const char *name, int uid, int version)
{
    kinf_auto_object const struct kinf_object *last = make_version(name, uid, version);

    kinf__outbox_feed_delete(feed, last, false);
}

static void what_two_feeds_have_is_told_once(void **state)
{
    struct kinf__outbox_feed *second;
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, false);
    second = another_feed(&f);
    update(f.feed, "a", 1, 0, 1);
    update(second, "a", 1, 0, 1);
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1");
    update(f.feed, "a", 1, 1, 2);
    assert_outbox_told(&f.outbox, "MODIFIED ns/a@2");
    update(second, "a", 1, 1, 2);
    update(second, "a", 1, 2, 3);
    assert_outbox_told(&f.outbox, "MODIFIED ns/a@3");
    update(f.feed, "a", 1, 2, 3);
    assert_outbox_told(&f.outbox, "");
    kinf__outbox_feed_synced(f.feed);
    kinf__outbox_feed_synced(second);
    kinf__outbox_reset(&f.outbox);
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/a@3, SYNCED things");
    kinf__outbox_feed_free(second);
    outbox_end(&f);
}

static void an_object_is_deleted_when_the_last_feed_has_lost_it(void **state)
{
    struct kinf__outbox_feed *second;
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, true);
    second = another_feed(&f);
    for (int i = 0; i < 2; i++) {
        struct kinf__outbox_feed *first_to_lose = i == 0 ? f.feed : second;
        struct kinf__outbox_feed *last_to_lose = i == 0 ? second : f.feed;
        int rv = i * 3 + 1;

        update(f.feed, "a", i, 0, rv);
        update(second, "a", i, 0, rv);
        assert_outbox_told(&f.outbox, i == 0 ? "RESET, ADDED ns/a@1" : "ADDED ns/a@4");
        lose(first_to_lose, "a", i, rv + 1);
        assert_outbox_told(&f.outbox, "");
        lose(last_to_lose, "a", i, rv + 2);
        assert_outbox_told(&f.outbox, i == 0 ? "DELETED ns/a@3" : "DELETED ns/a@6");
    }
    update(f.feed, "b", 1, 0, 7);
    update(second, "b", 1, 0, 7);
    lose(f.feed, "b", 1, 8);
    assert_outbox_told(&f.outbox, "ADDED ns/b@7"); /* it has waited in the first one's place */
    kinf__outbox_reset(&f.outbox);
    lose(second, "b", 1, 8);
    assert_outbox_told(&f.outbox, "RESET, DELETED ns/a@3, DELETED ns/a@6, DELETED ns/b@8");
    kinf__outbox_feed_free(second);
    outbox_end(&f);
}

/* Its labels change, say, and the two watches tell of it in any order. */
static void what_moves_from_one_feed_to_another_stays(void **state)
{
    struct kinf__outbox_feed *second;
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, false);
    second = another_feed(&f);
    update(f.feed, "a", 1, 0, 1);
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1");
    update(second, "a", 1, 0, 2);
    lose(f.feed, "a", 1, 2);
    assert_outbox_told(&f.outbox, "MODIFIED ns/a@2");
    lose(second, "a", 1, 3);
    update(f.feed, "a", 1, 0, 3);
    assert_outbox_told(&f.outbox, "DELETED ns/a@3, ADDED ns/a@3");
    kinf__outbox_feed_free(second);
    outbox_end(&f);
}

static void a_feed_that_is_behind_tells_nothing_old(void **state)
{
    struct kinf__outbox_feed *second, *third;
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, false);
    second = another_feed(&f);
    update(second, "a", 1, 0, 1);
    update(f.feed, "a", 1, 0, 3);
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@3");
    update(second, "a", 1, 1, 2);
    lose(f.feed, "a", 1, 4);
    assert_outbox_told(&f.outbox, "");
    update(second, "a", 1, 2, 3);
    assert_outbox_told(&f.outbox, "");
    update(second, "a", 1, 3, 4);
    assert_outbox_told(&f.outbox, "MODIFIED ns/a@4");
    /* It has not heard yet that the object is another one by now. */
    update(f.feed, "a", 5, 0, 5);
    assert_outbox_told(&f.outbox, "DELETED ns/a@4, ADDED ns/a@5");
    update(second, "a", 1, 0, 4);
    third = another_feed(&f);
    update(third, "a", 5, 0, 5);
    lose(f.feed, "a", 5, 6);
    assert_outbox_told(&f.outbox, "");
    lose(second, "a", 1, 5);
    update(second, "a", 5, 0, 5);
    assert_outbox_told(&f.outbox, "");
    kinf__outbox_feed_free(second);
    kinf__outbox_feed_free(third);
    outbox_end(&f);
}

static void what_is_repeated_and_what_goes_back_is_told(void **state)
{
    struct kinf__outbox_feed *second;
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, false);
    second = another_feed(&f);
    update(f.feed, "a", 1, 0, 9);
    update(second, "a", 1, 0, 9);
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@9");
    update(second, "a", 1, 9, 9); /* a resync */
    assert_outbox_told(&f.outbox, "MODIFIED ns/a@9");
    update(f.feed, "a", 1, 9, 9);
    assert_outbox_told(&f.outbox, "MODIFIED ns/a@9");
    update(f.feed, "a", 1, 9, 4); /* the server was restored */
    assert_outbox_told(&f.outbox, "MODIFIED ns/a@4");
    update(second, "a", 1, 9, 4);
    assert_outbox_told(&f.outbox, "");
    update(second, "a", 1, 4, 5);
    assert_outbox_told(&f.outbox, "MODIFIED ns/a@5");
    kinf__outbox_feed_free(second);
    outbox_end(&f);
}

static void a_feed_that_goes_takes_along_what_it_had_alone(void **state)
{
    struct kinf__outbox_feed *second;
    struct outbox_fixture f;

    (void)state;
    outbox_begin(&f, true);
    update(f.feed, "a", 1, 0, 1);
    assert_outbox_told(&f.outbox, "RESET, ADDED ns/a@1");
    second = another_feed(&f);
    update(second, "a", 1, 0, 1);
    kinf__outbox_feed_free(second);
    assert_outbox_told(&f.outbox, ""); /* nothing of it was told */
    second = another_feed(&f);
    update(second, "a", 1, 0, 1);
    update(f.feed, "b", 2, 0, 2);
    update(second, "b", 2, 0, 2);
    lose(f.feed, "a", 1, 3);
    kinf__outbox_feed_free(second);
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/b@2");
    second = another_feed(&f);
    update(second, "b", 2, 0, 2);
    kinf__outbox_feed_free(f.feed);
    f.feed = second;
    assert_outbox_told(&f.outbox, "RESET, ADDED! ns/b@2");
    outbox_end(&f);
}

/* --- at random --- */

#define N_NAMES  3
#define N_STEPS  160
#define N_ROUNDS 600

/* What happened to an object. */
struct event {
    int name;
    int uid; /* the version that it began with */
    int version;
    unsigned selected; /* a bit for each feed that is to have it; 0: it is gone */
};

struct follower {
    struct kinf__outbox_feed *feed; /* NULL: it is not there */
    bool has_joined;
    bool is_open;
    int n_seen;                /* of the server's events */
    struct event has[N_NAMES]; /* version 0: nothing */
};

struct world {
    struct outbox_fixture f;
    bool acknowledges;
    struct event events[N_STEPS];
    int n_events;
    struct event now[N_NAMES]; /* what the server has */
    struct follower followers[N_FEEDS];
    struct event consumer[N_NAMES];
    bool has_heard[N_STEPS + 1]; /* of a uid, and not that it is gone */
    bool has_feed_gone;          /* what only that had a RESET takes away */
};

static const char *name_of(int i)
{
    static const char *const names[N_NAMES] = { "a", "b", "c" };

    return names[i];
}

static void happen(struct world *world, struct test_random *random)
{
    int name = (int)test_random_below(random, N_NAMES), version = world->n_events + 1;
    struct event *now = &world->now[name];
    bool goes = now->version != 0 && test_random_below(random, 4) == 0;
    struct event event = { name, now->version != 0 ? now->uid : version, version,
                           goes ? 0
                                : 1 + (unsigned)test_random_below(random, (1u << N_FEEDS) - 1) };

    world->events[world->n_events++] = event;
    *now = goes ? (struct event){ .name = name } : event;
}

/* From what the follower has to that. */
static void follow_to(struct follower *follower, const struct event *event, bool is_selected)
{
    struct event *has = &follower->has[event->name];
    const char *name = name_of(event->name);
    bool is_same = has->version != 0 && has->uid == event->uid;

    if (has->version != 0 && (!is_selected || !is_same)) {
        lose(follower->feed, name, has->uid, is_same ? event->version : has->version);
        has->version = 0;
    }
    if (!is_selected || has->version == event->version)
        return;
    update(follower->feed, name, event->uid, has->version, event->version);
    *has = *event;
}

static void follow(struct world *world, size_t i)
{
    struct follower *follower = &world->followers[i];

    if (follower->feed != NULL && follower->n_seen < world->n_events) {
        const struct event *event = &world->events[follower->n_seen++];

        follow_to(follower, event, (event->selected >> i & 1) != 0);
    }
}

/* All that was missed at once. */
static void relist(struct world *world, size_t i)
{
    struct follower *follower = &world->followers[i];

    for (int name = 0; follower->feed != NULL && name < N_NAMES; name++) {
        struct event now = world->now[name];

        now.name = name;
        follow_to(follower, &now, (now.selected >> i & 1) != 0);
    }
    follower->n_seen = world->n_events;
}

static void open_follower(struct follower *follower)
{
    if (follower->feed != NULL && !follower->is_open)
        kinf__outbox_feed_open(follower->feed);
    follower->is_open = true;
}

static void join_or_open(struct follower *follower)
{
    if (follower->has_joined)
        open_follower(follower);
    else
        kinf__outbox_feed_join(follower->feed);
    follower->has_joined = true;
}

static void come_or_go(struct world *world, size_t i, bool goes)
{
    struct follower *follower = &world->followers[i];

    if (follower->feed == NULL) {
        assert_int_equal(kinf__outbox_feed_new(&world->f.outbox, "things", &follower->feed, NULL),
                         0);
        follower->is_open = follower->has_joined = false;
    } else if (goes || follower->is_open) {
        kinf__outbox_feed_free(follower->feed);
        world->has_feed_gone = world->has_feed_gone || follower->is_open;
        *follower = (struct follower){ .feed = NULL };
    } else {
        join_or_open(follower);
    }
}

static void hear(struct world *world)
{
    struct outbox_told told;
    char type[16], name;
    struct event *has;
    int version;

    if (!outbox_take(&world->f.outbox, &told))
        return;
    if (world->acknowledges)
        assert_true(kinf__outbox_acknowledge(&world->f.outbox, told.sequence));
    if (strcmp(told.text, "RESET") == 0) {
        memset(world->consumer, 0, sizeof world->consumer);
        if (world->has_feed_gone)
            memset(world->has_heard, 0, sizeof world->has_heard);
        world->has_feed_gone = false;
    }
    if (sscanf(told.text, "%15[A-Z]%*[! ]ns/%c@%d", type, &name, &version) != 3)
        return;
    has = &world->consumer[name - 'a'];
    assert_int_equal(atoi(told.old), has->version);
    if (strcmp(type, "ADDED") == 0)
        assert_int_equal(has->version, 0);
    else if (strcmp(type, "MODIFIED") == 0)
        assert_true(has->uid == atoi(told.uid) && has->version < version);
    else
        assert_true(world->acknowledges || has->version != 0);
    has->uid = atoi(told.uid);
    has->version = strcmp(type, "DELETED") == 0 ? 0 : version;
    world->has_heard[has->uid] = has->version != 0;
}

static void hear_all(struct world *world)
{
    struct kinf__outbox_status status = { .n_waiting = 1 };

    for (; status.n_waiting != 0; kinf__outbox_status(&world->f.outbox, &status))
        hear(world);
}

static void step(struct world *world, struct test_random *random)
{
    size_t dice = test_random_below(random, 100), i = test_random_below(random, N_FEEDS);

    if (dice < 25 && world->n_events < N_STEPS)
        happen(world, random);
    else if (dice < 65)
        follow(world, i);
    else if (dice < 90)
        hear(world);
    else if (dice < 93)
        relist(world, i);
    else if (dice < 96)
        kinf__outbox_reset(&world->f.outbox);
    else
        come_or_go(world, i, dice == 99);
}

/* The consumer ends with what any feed has, and nothing that one had heard of goes without its being told. */
static void expect_the_end(struct world *world)
{
    size_t n_there = 0, n_heard = 0;

    for (int name = 0; name < N_NAMES; name++) {
        bool is_there = false;

        for (size_t i = 0; i < N_FEEDS; i++)
            is_there = is_there || world->followers[i].has[name].version != 0;
        assert_int_equal(world->consumer[name].version, is_there ? world->now[name].version : 0);
        n_there += is_there;
    }
    for (int uid = 1; uid <= world->n_events; uid++)
        n_heard += world->has_heard[uid];
    assert_true(!world->acknowledges || n_heard == n_there);
}

static void feeds_that_overlap_are_told_as_one_whatever_their_pace(void **state)
{
    struct test_random random = test_random_init("outbox overlap");
    static struct world world;

    (void)state;
    for (size_t round = 0; round < test_rounds(N_ROUNDS); round++) {
        memset(&world, 0, sizeof world);
        world.acknowledges = round % 2 == 1;
        outbox_begin(&world.f, world.acknowledges);
        for (size_t i = 0; i < 4 * N_STEPS; i++)
            step(&world, &random);
        for (size_t i = 0; i < N_FEEDS; i++) {
            open_follower(&world.followers[i]);
            while (world.followers[i].feed != NULL && world.followers[i].n_seen < world.n_events)
                follow(&world, i);
        }
        hear_all(&world);
        expect_the_end(&world);
        for (size_t i = 0; i < N_FEEDS; i++)
            kinf__outbox_feed_free(world.followers[i].feed);
        outbox_end(&world.f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resource_of_several_feeds_is_synced_once_and_behind_all),
        cmocka_unit_test(a_feed_that_goes_unsynced_holds_up_nothing),
        cmocka_unit_test(a_feed_that_is_refused_holds_up_nothing_until_it_is_there),
        cmocka_unit_test(a_feed_that_is_not_opened_is_as_if_it_was_not_there),
        cmocka_unit_test(a_feed_tells_what_it_has_when_it_is_opened),
        cmocka_unit_test(feeds_that_have_joined_are_waited_for_until_they_are_open),
        cmocka_unit_test(whatever_feeds_come_and_go_synced_is_the_last_of_a_resource),
        cmocka_unit_test(what_two_feeds_have_is_told_once),
        cmocka_unit_test(an_object_is_deleted_when_the_last_feed_has_lost_it),
        cmocka_unit_test(what_moves_from_one_feed_to_another_stays),
        cmocka_unit_test(a_feed_that_is_behind_tells_nothing_old),
        cmocka_unit_test(what_is_repeated_and_what_goes_back_is_told),
        cmocka_unit_test(a_feed_that_goes_takes_along_what_it_had_alone),
        cmocka_unit_test(feeds_that_overlap_are_told_as_one_whatever_their_pace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
