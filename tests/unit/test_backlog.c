/*
 * The two kinds of backlog: the merge table of informer/backlog.h row by
 * row, random histories with a handler that pauses, and what running out of memory leaves. G1 to
 * G10 are the guarantees of kinformer/informer.h.
 */
#include "informer/backlog.h"

#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/informer_fixture.h"
#include "unit/test.h"

#define NOW_MS 1000

static struct kinf__backlog *new_backlog(enum kinf_backlog kind)
{
    struct kinf__backlog *backlog;

    assert_int_equal(kinf__backlog_new(kind, &backlog, NULL), 0);
    return backlog;
}

static void push(struct kinf__backlog *backlog, const struct kinf__notification *notifications,
                 size_t n)
{
    assert_int_equal(kinf__backlog_reserve(backlog, n), 0);
    kinf__backlog_push(backlog, notifications, n, NOW_MS);
    assert_true(kinf__backlog_check(backlog));
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

/* Room for the sentinel is reserved from the start. */
static void push_synced(struct kinf__backlog *backlog, int64_t now_ms)
{
    const struct kinf__notification sentinel = { .type = KINF__NOTIFY_SYNCED };

    kinf__backlog_push(backlog, &sentinel, 1, now_ms);
    assert_true(kinf__backlog_check(backlog));
}

static void release(struct kinf__notification *notifications, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kinf__notification_release(&notifications[i]);
}

/* Takes all out; returns how many callbacks that were. */
static size_t tell_all(struct kinf__backlog *backlog, char *text, size_t size)
{
    struct kinf__notification notifications[KINF__BACKLOG_TAKE];
    size_t n, n_told = 0, len = 0;

    text[0] = '\0';
    while ((n = kinf__backlog_take(backlog, notifications)) != 0) {
        for (size_t i = 0; i < n; i++) {
            char line[64];

            describe(&notifications[i], line, sizeof line);
            len +=
                (size_t)snprintf(text + len, size - len, "%s%s", n_told++ != 0 ? ", " : "", line);
        }
        release(notifications, n);
        assert_true(kinf__backlog_check(backlog));
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
static size_t push_event(struct kinf__backlog *backlog, const char *event,
                         const struct kinf_object **now)
{
    bool has_object = strchr("=x", event[0]) == NULL;
    bool is_add = strchr("+!^", event[0]) != NULL;
    bool is_delete = strchr("-x^", event[0]) != NULL;
    const struct kinf_object *object = has_object ? object_of(event + 1) : kinf_object_ref(*now);
    struct kinf__notification notifications[2];
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
    push(backlog, notifications, n);
    kinf_object_unref(*now);
    *now = is_delete && !is_add ? NULL : kinf_object_ref(object);
    kinf_object_unref(object);
    return n;
}

static void play_row(const struct row *row)
{
    const struct kinf_object *now = NULL;
    struct kinf__backlog *backlog = new_backlog(KINF_BACKLOG_COALESCE);
    size_t n_pushed = 0, n_told = 0;
    char events[64], told[128], *rest = events;
    const char *event;

    if (row->told != NULL) {
        snprintf(events, sizeof events, "+%s", row->told);
        n_pushed += push_event(backlog, events, &now);
        n_told += tell_all(backlog, told, sizeof told);
    }
    snprintf(events, sizeof events, "%s", row->events);
    while ((event = strsep(&rest, " ")) != NULL)
        n_pushed += push_event(backlog, event, &now);
    assert_true(backlog->n_notifications <= 2);
    n_told += tell_all(backlog, told, sizeof told);
    if (strcmp(told, row->expected) != 0)
        fail_msg("'%s' after '%s' became '%s' instead of '%s'", row->events,
                 row->told != NULL ? row->told : "nothing", told, row->expected);
    assert_int_equal(backlog->n_merged, n_pushed - n_told);
    kinf_object_unref(now);
    kinf__backlog_free(backlog);
}

/* G4, G5 */
static void notifications_of_a_key_merge_as_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        play_row(&rows[i]);
}

static void push_named(struct kinf__backlog *backlog, const char *name, const char *old_rv,
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

    push(backlog, &notification, 1);
    kinf_object_unref(object);
    kinf_object_unref(old);
}

/* G7 */
static void merged_notification_keeps_its_place_before_the_sentinel(void **state)
{
    struct kinf__backlog *backlog = new_backlog(KINF_BACKLOG_COALESCE);
    char told[128];

    (void)state;
    push_named(backlog, "a", NULL, "1");
    push_named(backlog, "b", NULL, "2");
    push_synced(backlog, NOW_MS);
    push_named(backlog, "c", "3", "4");
    push_named(backlog, "a", "1", "5");
    assert_int_equal(backlog->n_notifications, 4);
    tell_all(backlog, told, sizeof told);
    assert_string_equal(told, "add! a5, add! b2, synced, update c3 c4");
    kinf__backlog_free(backlog);
}

static void age_is_that_of_the_first_notification_of_the_first_key(void **state)
{
    struct kinf__backlog *backlog = new_backlog(KINF_BACKLOG_COALESCE);
    struct kinf__notification notifications[KINF__BACKLOG_TAKE];
    uint32_t since_ms = 7;

    (void)state;
    assert_false(kinf__backlog_oldest(backlog, &since_ms));
    assert_int_equal(since_ms, 7);
    push_named(backlog, "a", NULL, "1");
    push_synced(backlog, NOW_MS + 5);
    assert_true(kinf__backlog_oldest(backlog, &since_ms));
    assert_int_equal(since_ms, NOW_MS);
    release(notifications, kinf__backlog_take(backlog, notifications));
    assert_true(kinf__backlog_oldest(backlog, &since_ms));
    assert_int_equal(since_ms, NOW_MS + 5);
    kinf__backlog_free(backlog);
}

/* --- random histories --- */

#define N_KEYS 12

struct model {
    struct test_random random;
    struct kinf__backlog *backlog;
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

    push(model->backlog, notifications, n);
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
    kinf_auto_object const struct kinf_object *changed = NULL;

    if (object == NULL)
        return;
    model->n_pushed++;
    if (kinf__backlog_take_initial(model->backlog, kinf_object_key(object), &changed))
        object = changed;
    if (object != NULL)
        tell(model, &(struct kinf__notification){ .type = KINF__NOTIFY_ADD, .object = object });
    assert_true(kinf__backlog_check(model->backlog));
}

static void tell_some(struct model *model, size_t n)
{
    struct kinf__notification notifications[KINF__BACKLOG_TAKE];
    size_t n_taken;

    for (; n > 0 && model->n_snapshot != 0; n--)
        tell_initial_key(model);
    while (n-- > 0 && (n_taken = kinf__backlog_take(model->backlog, notifications)) != 0) {
        for (size_t i = 0; i < n_taken; i++)
            tell(model, &notifications[i]);
        release(notifications, n_taken);
    }
}

static void compare(struct model *model)
{
    for (size_t i = 0; i < N_KEYS; i++)
        assert_ptr_equal(model->told[i], model->store[i]);
    assert_int_equal(model->backlog->n_notifications, 0);
    assert_int_equal(model->n_pushed, model->n_told + model->backlog->n_merged);
}

/* The handler leaves, and comes again with a snapshot. */
static void rejoin(struct model *model)
{
    kinf__backlog_free(model->backlog);
    model->backlog = new_backlog(KINF_BACKLOG_COALESCE);
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
        assert_true(model->backlog->n_notifications <= (size_t)2 * N_KEYS);
        if (test_random_below(&model->random, 5) == 0)
            tell_some(model, test_random_below(&model->random, 8));
    }
}

/* G1, G4, G5, G6 */
static void paused_handler_is_told_a_legal_history_within_two_notifications_a_key(void **state)
{
    struct model model = { .random = test_random_init("backlog"),
                           .backlog = new_backlog(KINF_BACKLOG_COALESCE) };

    (void)state;
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
    kinf__backlog_free(model.backlog);
}

/* --- the unbounded one --- */

/* Pushed and taken in turn, through some chunks: each once, in order, and with the age it came with. */
static void unbounded_backlog_tells_each_in_order(void **state)
{
    struct test_random random = test_random_init("unbounded");
    struct kinf__notification notifications[KINF__BACKLOG_TAKE];
    struct kinf__backlog *backlog = new_backlog(KINF_BACKLOG_UNBOUNDED);
    const struct kinf_object *object = make_thing("x", "1");
    const struct kinf__notification add = { .type = KINF__NOTIFY_ADD, .object = object };
    uint32_t n_pushed = 0, n_told = 0, since_ms;

    (void)state;
    assert_false(kinf__backlog_oldest(backlog, &since_ms));
    for (size_t rounds = test_rounds(500); rounds > 0 || n_told < n_pushed; rounds -= rounds != 0) {
        size_t n = rounds != 0 ? test_random_below(&random, 300) : 0, n_taken;

        assert_int_equal(kinf__backlog_reserve(backlog, 2 * n), 0);
        for (; n > 0; n--)
            kinf__backlog_push(backlog, &add, 1, n_pushed++);
        kinf__backlog_unreserve(backlog, backlog->n_reserved - 1);
        assert_true(kinf__backlog_check(backlog));
        assert_int_equal(backlog->n_notifications, n_pushed - n_told);
        assert_true(n_told == n_pushed || kinf__backlog_oldest(backlog, &since_ms));
        assert_true(n_told == n_pushed || since_ms == n_told);
        for (size_t turns = test_random_below(&random, 6);
             turns > 0 && (n_taken = kinf__backlog_take(backlog, notifications)) != 0; turns--) {
            for (size_t i = 0; i < n_taken; i++)
                assert_int_equal(notifications[i].since_ms, n_told++);
            release(notifications, n_taken);
        }
    }
    kinf__backlog_free(backlog);
    kinf_object_unref(object);
}

/* --- limits, check --- */

static void check_reserve_without_memory(enum kinf_backlog kind)
{
    struct kinf__backlog *backlog = new_backlog(kind);

    for (size_t n = 1;; n++) {
        int rc;

        test_fail_allocation(n);
        rc = kinf__backlog_reserve(backlog, 300);
        assert_true(kinf__backlog_check(backlog));
        if (!test_allocation_failed()) {
            assert_int_equal(rc, 0);
            assert_true(n >= 3);
            break;
        }
        assert_int_equal(rc, KINF_ERR_NO_MEMORY);
        assert_int_equal(backlog->n_reserved, 1);
    }
    kinf__backlog_free(backlog);
}

static void reserve_without_memory_changes_nothing(void **state)
{
    (void)state;
    check_reserve_without_memory(KINF_BACKLOG_UNBOUNDED);
    check_reserve_without_memory(KINF_BACKLOG_COALESCE);
}

/* A relist reserves for every key, though most may merge. */
static void large_reserve_is_given_back(void **state)
{
    (void)state;
    for (int kind = KINF_BACKLOG_UNBOUNDED; kind <= KINF_BACKLOG_COALESCE; kind++) {
        struct kinf__backlog *backlog = new_backlog((enum kinf_backlog)kind);

        assert_int_equal(kinf__backlog_reserve(backlog, 10000), 0);
        test_fail_allocation(1);
        assert_int_equal(kinf__backlog_reserve(backlog, 0), 0); /* it is there */
        kinf__backlog_unreserve(backlog, 10000);
        assert_int_equal(kinf__backlog_reserve(backlog, 1000), KINF_ERR_NO_MEMORY);
        assert_true(test_allocation_failed());
        kinf__backlog_free(backlog);
    }
}

static void unsound_backlog_is_seen(void **state)
{
    const struct kinf_object *object = make_thing("x", "1");
    const struct kinf__notification half = { .type = KINF__NOTIFY_UPDATE, .object = object };

    (void)state;
    for (int kind = KINF_BACKLOG_UNBOUNDED; kind <= KINF_BACKLOG_COALESCE; kind++) {
        struct kinf__backlog *backlog = new_backlog((enum kinf_backlog)kind);

        push_named(backlog, "a", "1", "2");
        backlog->n_notifications++;
        assert_false(kinf__backlog_check(backlog));
        backlog->n_notifications--;
        backlog->n_reserved += 1000;
        assert_false(kinf__backlog_check(backlog));
        backlog->n_reserved -= 1000;
        assert_true(kinf__backlog_check(backlog));
        kinf__backlog_free(backlog);
    }
    {
        struct kinf__backlog *backlog = new_backlog(KINF_BACKLOG_UNBOUNDED);

        assert_int_equal(kinf__backlog_reserve(backlog, 1), 0);
        kinf__backlog_push(backlog, &half, 1, NOW_MS);
        assert_false(kinf__backlog_check(backlog));
        kinf__backlog_free(backlog);
    }
    kinf_object_unref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notifications_of_a_key_merge_as_the_table_says),
        cmocka_unit_test(merged_notification_keeps_its_place_before_the_sentinel),
        cmocka_unit_test(age_is_that_of_the_first_notification_of_the_first_key),
        cmocka_unit_test(paused_handler_is_told_a_legal_history_within_two_notifications_a_key),
        cmocka_unit_test(unbounded_backlog_tells_each_in_order),
        cmocka_unit_test(reserve_without_memory_changes_nothing),
        cmocka_unit_test(large_reserve_is_given_back),
        cmocka_unit_test(unsound_backlog_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
