/*
 * The two queues of a listener, without a thread: the merge table of informer/coalescer.h row by
 * row, random histories with a handler that pauses, and what running out of memory leaves. G1 to
 * G10 are the guarantees of kinformer/informer.h.
 */
#include "informer/listener.h"

#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/informer_fixture.h"
#include "unit/test.h"

#define NOW_MS 1000

static void push(struct kinf__coalescer *coalescer, const struct kinf__notification *notifications,
                 size_t n)
{
    assert_int_equal(kinf__coalescer_reserve(coalescer, n), 0);
    kinf__coalescer_push(coalescer, notifications, n, NOW_MS);
    assert_true(kinf__coalescer_check(coalescer));
}

static void describe(const struct kinf__notification *notification, char *text, size_t size)
{
    const char *uid = notification->object != NULL ? kinf_object_uid(notification->object) : "";
    const char *rv =
        notification->object != NULL ? kinf_object_resource_version(notification->object) : "";

    switch (notification->type) {
    case KINF__NOTIFY_ADD:
        snprintf(text, size, "add%s %s%s", notification->in_initial_list ? "!" : "", uid, rv);
        break;
    case KINF__NOTIFY_UPDATE:
        snprintf(text, size, "update %s%s %s%s", kinf_object_uid(notification->old),
                 kinf_object_resource_version(notification->old), uid, rv);
        break;
    case KINF__NOTIFY_DELETE:
        snprintf(text, size, "delete%s %s%s", notification->final_state_unknown ? "*" : "", uid,
                 rv);
        break;
    case KINF__NOTIFY_SYNCED:
        snprintf(text, size, "synced");
        break;
    }
}

/* Takes all out; returns how many callbacks that were. */
static size_t tell_all(struct kinf__coalescer *coalescer, char *text, size_t size)
{
    struct kinf__pending *pending;
    size_t n_told = 0, len = 0;

    text[0] = '\0';
    while ((pending = kinf__coalescer_pop(coalescer)) != NULL) {
        struct kinf__notification notifications[KINF__PENDING_MAX];
        size_t n = kinf__pending_notifications(pending, notifications);

        for (size_t i = 0; i < n; i++) {
            char line[64];

            describe(&notifications[i], line, sizeof line);
            len +=
                (size_t)snprintf(text + len, size - len, "%s%s", n_told++ != 0 ? ", " : "", line);
        }
        kinf__pending_free(pending);
        assert_true(kinf__coalescer_check(coalescer));
    }
    return n_told;
}

/* --- the table --- */

/* One key. "u1" is the object with uid u at version 1. Events: "+u1" add, "!u1" add in the initial
 * list, "~u2" update, "=" sync, "-u2" delete, "x" a missed delete, "^v2" a missed delete and an add
 * in one push. */
struct row {
    const char *told; /* NULL: nothing */
    const char *events;
    const char *expected;
};

static const struct row rows[] = {
    { NULL, "+u1", "add u1" },
    { NULL, "!u1", "add! u1" },
    { NULL, "+u1 ~u2", "add u2" },
    { NULL, "!u1 ~u2", "add! u2" },
    { NULL, "!u1 ~u2 ~u3", "add! u3" },
    { NULL, "+u1 =", "add u1" },
    { NULL, "!u1 =", "add! u1" },
    { NULL, "+u1 -u2", "" },
    { NULL, "!u1 x", "" },
    { NULL, "+u1 -u2 +v3", "add v3" },
    { NULL, "+u1 -u2 +u3", "add u3" },
    { NULL, "+u1 ^v2", "add v2" },
    { NULL, "!u1 ^v2", "add v2" },
    { "u1", "~u2", "update u1 u2" },
    { "u1", "=", "update u1 u1" },
    { "u1", "-u2", "delete u2" },
    { "u1", "x", "delete* u1" },
    { "u1", "^v2", "delete* u1, add v2" },
    { "u1", "~u2 ~u3", "update u1 u3" },
    { "u1", "~u2 =", "update u1 u2" },
    { "u1", "= ~u2", "update u1 u2" },
    { "u1", "= =", "update u1 u1" },
    { "u1", "~u2 -u3", "delete u3" },
    { "u1", "~u2 x", "delete* u2" },
    { "u1", "= -u2", "delete u2" },
    { "u1", "= x", "delete* u1" },
    { "u1", "-u2 +v3", "delete u2, add v3" },
    { "u1", "-u2 !v3", "delete u2, add! v3" },
    { "u1", "x +v3", "delete* u1, add v3" },
    { "u1", "~u2 ^v3", "delete* u2, add v3" },
    { "u1", "-u2 +u3", "update u1 u3" },
    { "u1", "-u2 !u3", "update u1 u3" },
    { "u1", "x +u3", "update u1 u3" },
    { "u1", "~u2 -u3 +u4", "update u1 u4" },
    { "u1", "-u2 +u3 -u4", "delete u4" },
    { "u1", "x +u3 -u4", "delete u4" },
    { "u1", "-u2 +v3 ~v4", "delete u2, add v4" },
    { "u1", "-u2 !v3 ~v4", "delete u2, add! v4" },
    { "u1", "-u2 +v3 =", "delete u2, add v3" },
    { "u1", "-u2 +v3 -v4", "delete u2" },
    { "u1", "-u2 +v3 x", "delete u2" },
    { "u1", "x +v3 -v4", "delete* u1" },
    { "u1", "-u2 +v3 ^w4", "delete u2, add w4" },
    { "u1", "-u2 +v3 -v4 +w5", "delete u2, add w5" },
    { "u1", "-u2 +v3 -v4 +u5", "update u1 u5" },
};

static const struct kinf_object *object_of(const char *token)
{
    char uid[2] = { token[0], '\0' };

    return make_thing_of("x", uid, token + 1, "");
}

/* Pushes one event and moves *now, what the store has. Returns how many notifications it was. */
static size_t push_event(struct kinf__coalescer *coalescer, const char *event,
                         const struct kinf_object **now)
{
    bool has_object = strchr("=x", event[0]) == NULL;
    bool is_add = strchr("+!^", event[0]) != NULL;
    bool is_delete = strchr("-x^", event[0]) != NULL;
    const struct kinf_object *object = has_object ? object_of(event + 1) : kinf_object_ref(*now);
    struct kinf__notification notifications[KINF__PENDING_MAX];
    size_t n = 0;

    if (is_delete)
        notifications[n++] =
            (struct kinf__notification){ .type = KINF__NOTIFY_DELETE,
                                         .final_state_unknown = event[0] != '-',
                                         .old = *now,
                                         .object = event[0] == '-' ? object : *now };
    if (is_add)
        notifications[n++] = (struct kinf__notification){ .type = KINF__NOTIFY_ADD,
                                                          .in_initial_list = event[0] == '!',
                                                          .object = object };
    if (n == 0)
        notifications[n++] = (struct kinf__notification){ .type = KINF__NOTIFY_UPDATE,
                                                          .old = *now,
                                                          .object = object };
    push(coalescer, notifications, n);
    kinf_object_unref(*now);
    *now = is_delete && !is_add ? NULL : kinf_object_ref(object);
    kinf_object_unref(object);
    return n;
}

static void play_row(const struct row *row)
{
    const struct kinf_object *now = NULL;
    struct kinf__coalescer coalescer;
    size_t n_pushed = 0, n_told = 0;
    char events[64], told[128], *rest = events;
    const char *event;

    assert_int_equal(kinf__coalescer_init(&coalescer), 0);
    if (row->told != NULL) {
        snprintf(events, sizeof events, "+%s", row->told);
        n_pushed += push_event(&coalescer, events, &now);
        n_told += tell_all(&coalescer, told, sizeof told);
    }
    snprintf(events, sizeof events, "%s", row->events);
    while ((event = strsep(&rest, " ")) != NULL)
        n_pushed += push_event(&coalescer, event, &now);
    assert_true(coalescer.n_notifications <= 2);
    n_told += tell_all(&coalescer, told, sizeof told);
    if (strcmp(told, row->expected) != 0)
        fail_msg("'%s' after '%s' became '%s' instead of '%s'", row->events,
                 row->told != NULL ? row->told : "nothing", told, row->expected);
    assert_int_equal(coalescer.n_merged, n_pushed - n_told);
    kinf_object_unref(now);
    kinf__coalescer_release(&coalescer);
}

/* G4, G5 */
static void notifications_of_a_key_merge_as_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        play_row(&rows[i]);
}

static void push_named(struct kinf__coalescer *coalescer, const char *name, const char *old_rv,
                       const char *rv)
{
    const struct kinf_object *old = old_rv != NULL ? make_thing_of(name, name, old_rv, "") : NULL;
    const struct kinf_object *object = make_thing_of(name, name, rv, "");
    const struct kinf__notification notification = {
        .type = old != NULL ? KINF__NOTIFY_UPDATE : KINF__NOTIFY_ADD,
        .in_initial_list = old == NULL,
        .old = old,
        .object = object,
    };

    push(coalescer, &notification, 1);
    kinf_object_unref(object);
    kinf_object_unref(old);
}

/* G7 */
static void merged_notification_keeps_its_place_before_the_sentinel(void **state)
{
    struct kinf__coalescer coalescer;
    char told[128];

    (void)state;
    assert_int_equal(kinf__coalescer_init(&coalescer), 0);
    push_named(&coalescer, "a", NULL, "1");
    push_named(&coalescer, "b", NULL, "2");
    kinf__coalescer_push_synced(&coalescer, NOW_MS);
    kinf__coalescer_push_synced(&coalescer, NOW_MS);
    push_named(&coalescer, "c", "3", "4");
    push_named(&coalescer, "a", "1", "5");
    assert_int_equal(coalescer.n_notifications, 4);
    tell_all(&coalescer, told, sizeof told);
    assert_string_equal(told, "add! a5, add! b2, synced, update c3 c4");
    kinf__coalescer_release(&coalescer);
}

static void age_is_that_of_the_first_notification_of_the_first_key(void **state)
{
    struct kinf__coalescer coalescer;
    uint32_t since_ms = 7;

    (void)state;
    assert_int_equal(kinf__coalescer_init(&coalescer), 0);
    assert_false(kinf__coalescer_oldest(&coalescer, &since_ms));
    assert_int_equal(since_ms, 7);
    push_named(&coalescer, "a", NULL, "1");
    kinf__coalescer_push_synced(&coalescer, NOW_MS + 5);
    assert_true(kinf__coalescer_oldest(&coalescer, &since_ms));
    assert_int_equal(since_ms, NOW_MS);
    kinf__pending_free(kinf__coalescer_pop(&coalescer));
    assert_true(kinf__coalescer_oldest(&coalescer, &since_ms));
    assert_int_equal(since_ms, NOW_MS + 5);
    kinf__coalescer_release(&coalescer);
}

/* --- random histories --- */

#define N_KEYS 12

struct model {
    struct test_random random;
    struct kinf__coalescer coalescer;
    const struct kinf_object *store[N_KEYS];
    const struct kinf_object *told[N_KEYS];
    const struct kinf_object *snapshot[N_KEYS]; /* of a late handler */
    size_t n_snapshot;                          /* keys of it that were not told yet come first */
    uint64_t n_pushed;
    uint64_t n_told;
    unsigned long rv;
    unsigned long uid;
};

static size_t slot_of(const struct kinf_object *object)
{
    return strtoul(kinf_object_name(object) + 1, NULL, 10);
}

static void set(const struct kinf_object **to, const struct kinf_object *object)
{
    kinf_object_ref(object);
    kinf_object_unref(*to);
    *to = object;
}

static const struct kinf_object *new_state(struct model *model, size_t slot, const char *uid)
{
    char name[32], rv[32];

    snprintf(name, sizeof name, "k%zu", slot);
    snprintf(rv, sizeof rv, "%lu", ++model->rv);
    return make_thing_of(name, uid, rv, "");
}

static const struct kinf_object *new_object(struct model *model, size_t slot)
{
    char uid[32];

    snprintf(uid, sizeof uid, "%lu", ++model->uid);
    return new_state(model, slot, uid);
}

static void change(struct model *model, size_t slot, const struct kinf__notification *notifications,
                   size_t n)
{
    const struct kinf__notification *last = &notifications[n - 1];

    push(&model->coalescer, notifications, n);
    model->n_pushed += n;
    set(&model->store[slot], last->type == KINF__NOTIFY_DELETE ? NULL : last->object);
}

static void change_missing(struct model *model, size_t slot)
{
    /* a selector may let go of an object and find it again */
    bool comes_back = model->told[slot] != NULL && test_random_below(&model->random, 2) == 0;
    const struct kinf_object *object =
        comes_back ? new_state(model, slot, kinf_object_uid(model->told[slot]))
                   : new_object(model, slot);
    const struct kinf__notification add = { .type = KINF__NOTIFY_ADD, .object = object };

    change(model, slot, &add, 1);
    kinf_object_unref(object);
}

static void change_existing(struct model *model, size_t slot)
{
    const struct kinf_object *old = model->store[slot];
    const struct kinf_object *next = new_state(model, slot, kinf_object_uid(old));
    const struct kinf_object *other = new_object(model, slot);
    const struct kinf__notification update = { .type = KINF__NOTIFY_UPDATE,
                                               .old = old,
                                               .object = next };
    const struct kinf__notification sync = { .type = KINF__NOTIFY_UPDATE,
                                             .old = old,
                                             .object = old };
    const struct kinf__notification delete = { .type = KINF__NOTIFY_DELETE,
                                               .old = old,
                                               .object = next };
    const struct kinf__notification recreate[2] = {
        { .type = KINF__NOTIFY_DELETE, .final_state_unknown = true, .old = old, .object = old },
        { .type = KINF__NOTIFY_ADD, .object = other },
    };

    switch (test_random_below(&model->random, 6)) {
    case 0:
        change(model, slot, &sync, 1);
        break;
    case 1:
    case 2:
        change(model, slot, &delete, 1);
        break;
    case 3:
        change(model, slot, recreate, 2);
        break;
    default:
        change(model, slot, &update, 1);
        break;
    }
    kinf_object_unref(other);
    kinf_object_unref(next);
}

static unsigned long version(const struct kinf_object *object)
{
    return strtoul(kinf_object_resource_version(object), NULL, 10);
}

/* The handler: each history is legal (G4, G5). */
static void tell(struct model *model, const struct kinf__notification *notification)
{
    size_t slot = slot_of(notification->object);
    const struct kinf_object *last = model->told[slot];

    switch (notification->type) {
    case KINF__NOTIFY_ADD:
        assert_null(last);
        break;
    case KINF__NOTIFY_UPDATE:
        assert_non_null(last);
        assert_ptr_equal(notification->old, last);
        assert_true(kinf__object_same_uid(last, notification->object));
        assert_true(version(notification->object) >= version(last));
        break;
    case KINF__NOTIFY_DELETE:
        assert_non_null(last);
        assert_true(kinf__object_same_uid(last, notification->object));
        assert_true(version(notification->object) >= version(last));
        break;
    case KINF__NOTIFY_SYNCED:
        fail();
    }
    set(&model->told[slot],
        notification->type == KINF__NOTIFY_DELETE ? NULL : notification->object);
    model->n_told++;
}

static void tell_initial_key(struct model *model)
{
    size_t slot = N_KEYS - model->n_snapshot--;
    const struct kinf_object *object = model->snapshot[slot];
    struct kinf__pending *pending;

    if (object == NULL)
        return;
    model->n_pushed++;
    pending = kinf__coalescer_take_initial(&model->coalescer, kinf_object_key(object));
    if (pending != NULL)
        object = pending->object;
    if (object != NULL)
        tell(model, &(struct kinf__notification){ .type = KINF__NOTIFY_ADD, .object = object });
    kinf__pending_free(pending);
    assert_true(kinf__coalescer_check(&model->coalescer));
}

static void tell_some(struct model *model, size_t n)
{
    struct kinf__pending *pending;

    for (; n > 0 && model->n_snapshot != 0; n--)
        tell_initial_key(model);
    while (n-- > 0 && (pending = kinf__coalescer_pop(&model->coalescer)) != NULL) {
        struct kinf__notification notifications[KINF__PENDING_MAX];
        size_t n_notifications = kinf__pending_notifications(pending, notifications);

        for (size_t i = 0; i < n_notifications; i++)
            tell(model, &notifications[i]);
        kinf__pending_free(pending);
    }
}

static void compare(struct model *model)
{
    for (size_t i = 0; i < N_KEYS; i++)
        assert_ptr_equal(model->told[i], model->store[i]);
    assert_int_equal(model->coalescer.n_notifications, 0);
    assert_int_equal(model->n_pushed, model->n_told + model->coalescer.n_merged);
}

/* The handler leaves, and comes again with a snapshot. */
static void rejoin(struct model *model)
{
    kinf__coalescer_release(&model->coalescer);
    assert_int_equal(kinf__coalescer_init(&model->coalescer), 0);
    for (size_t i = 0; i < N_KEYS; i++) {
        set(&model->told[i], NULL);
        set(&model->snapshot[i], model->store[i]);
    }
    model->n_snapshot = N_KEYS;
    model->n_pushed = 0;
    model->n_told = 0;
}

static void play(struct model *model)
{
    for (size_t n = test_random_below(&model->random, 80); n > 0; n--) {
        size_t slot = test_random_below(&model->random, N_KEYS);

        if (model->store[slot] == NULL)
            change_missing(model, slot);
        else
            change_existing(model, slot);
        assert_true(model->coalescer.n_notifications <= (size_t)2 * N_KEYS);
        if (test_random_below(&model->random, 5) == 0)
            tell_some(model, test_random_below(&model->random, 8));
    }
}

/* G1, G4, G5, G6 */
static void paused_handler_is_told_a_legal_history_within_two_notifications_a_key(void **state)
{
    struct model model = { .random = test_random_init("coalescer") };

    (void)state;
    assert_int_equal(kinf__coalescer_init(&model.coalescer), 0);
    for (size_t rounds = test_rounds(2000); rounds > 0; rounds--) {
        play(&model);
        if (test_random_below(&model.random, 2) == 0) {
            tell_some(&model, SIZE_MAX);
            compare(&model);
        } else if (test_random_below(&model.random, 2) == 0) {
            rejoin(&model);
        }
    }
    tell_some(&model, SIZE_MAX);
    compare(&model);
    rejoin(&model);
    for (size_t i = 0; i < N_KEYS; i++) {
        set(&model.snapshot[i], NULL);
        set(&model.store[i], NULL);
    }
    kinf__coalescer_release(&model.coalescer);
}

/* --- limits, check --- */

static void reserve_without_memory_changes_nothing(void **state)
{
    struct kinf__coalescer coalescer;

    (void)state;
    assert_int_equal(kinf__coalescer_init(&coalescer), 0);
    for (size_t n = 1;; n++) {
        int rc;

        test_fail_allocation(n);
        rc = kinf__coalescer_reserve(&coalescer, 3);
        assert_true(kinf__coalescer_check(&coalescer));
        if (!test_allocation_failed()) {
            assert_int_equal(rc, 0);
            assert_true(n >= 3);
            break;
        }
        assert_int_equal(rc, KINF_ERR_NO_MEMORY);
    }
    kinf__coalescer_release(&coalescer);
}

/* A relist reserves for every key, though most may merge. */
static void large_reserve_is_given_back(void **state)
{
    struct kinf__coalescer coalescer;

    (void)state;
    assert_int_equal(kinf__coalescer_init(&coalescer), 0);
    assert_int_equal(kinf__coalescer_reserve(&coalescer, 10000), 0);
    assert_int_equal(coalescer.n_spares, 10000);
    kinf__coalescer_trim(&coalescer);
    assert_true(coalescer.n_spares < 100);
    kinf__coalescer_release(&coalescer);
}

static void check_fires_on_a_broken_coalescer(void **state)
{
    struct kinf__coalescer coalescer;
    struct kinf__pending *pending;

    (void)state;
    assert_int_equal(kinf__coalescer_init(&coalescer), 0);
    push_named(&coalescer, "a", "1", "2");
    pending = KINF__LIST_ENTRY(coalescer.order.next, struct kinf__pending, in_order);
    coalescer.n_notifications++;
    assert_false(kinf__coalescer_check(&coalescer));
    coalescer.n_notifications--;
    pending->gone = kinf_object_ref(pending->told);
    coalescer.n_notifications++;
    assert_false(kinf__coalescer_check(&coalescer)); /* a delete and an add of one object */
    coalescer.n_notifications--;
    kinf_object_unref(KINF__TAKE(pending->gone));
    kinf__hmap_remove(&coalescer.map, &pending->in_map);
    assert_false(kinf__coalescer_check(&coalescer));
    kinf__hmap_insert_reserved(&coalescer.map, &pending->in_map, pending->in_map.hash + 1);
    assert_false(kinf__coalescer_check(&coalescer));
    kinf__coalescer_release(&coalescer);
}

static void check_fires_on_a_broken_chain(void **state)
{
    const struct kinf_object *object = make_thing("x", "1");
    const struct kinf__notification add = { .type = KINF__NOTIFY_ADD, .object = object };
    struct kinf__chain chain;

    (void)state;
    assert_int_equal(kinf__chain_init(&chain), 0);
    kinf__chain_push(&chain, &add, 1, NOW_MS);
    assert_true(kinf__chain_check(&chain));
    chain.n_notifications++;
    assert_false(kinf__chain_check(&chain));
    chain.n_notifications--;
    chain.first->items[0].type = KINF__NOTIFY_UPDATE;
    assert_false(kinf__chain_check(&chain));
    kinf__chain_release(&chain);
    kinf_object_unref(object);
}

/* What a handler that lags behind costs a notification, beside the objects. */
static void pending_notifications_are_small(void **state)
{
    (void)state;
    assert_true(sizeof(struct kinf__notification) <= 24);
    assert_true(sizeof(struct kinf__pending) <= 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notifications_of_a_key_merge_as_the_table_says),
        cmocka_unit_test(merged_notification_keeps_its_place_before_the_sentinel),
        cmocka_unit_test(age_is_that_of_the_first_notification_of_the_first_key),
        cmocka_unit_test(paused_handler_is_told_a_legal_history_within_two_notifications_a_key),
        cmocka_unit_test(reserve_without_memory_changes_nothing),
        cmocka_unit_test(large_reserve_is_given_back),
        cmocka_unit_test(check_fires_on_a_broken_coalescer),
        cmocka_unit_test(check_fires_on_a_broken_chain),
        cmocka_unit_test(pending_notifications_are_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
