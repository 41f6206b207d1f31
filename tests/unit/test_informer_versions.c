/*
 * Waiting until an informer's store has seen a version of the server, in both orders.
 */
#include "unit/informer_fixture.h"

#include <sched.h>
#include <string.h>

#include "unit/test.h"

#define PATIENCE_MS 60000

/* --- a thread that waits --- */

struct waiter {
    struct kinf_informer *informer;
    const char *rv;
    pthread_t thread;
    int rc;
    struct kinf_error err;
};

static void *wait_main(void *ctx)
{
    struct waiter *waiter = ctx;

    waiter->rc = kinf_informer_wait_for_rv(waiter->informer, waiter->rv, PATIENCE_MS, &waiter->err);
    return NULL;
}

/* Returns when it waits. */
static void begin_wait(struct informer_fixture *f, struct waiter *waiter, const char *rv)
{
    size_t n_before = atomic_load(&f->informer->n_rv_waiters);

    *waiter = (struct waiter){ .informer = f->informer, .rv = rv, .err = KINF_ERROR_INIT };
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_main, waiter), 0);
    while (atomic_load(&f->informer->n_rv_waiters) == n_before)
        sched_yield();
    kinf__mutex_lock(&f->informer->progress_lock); /* it gave this up to wait */
    kinf__mutex_unlock(&f->informer->progress_lock);
}

static int end_wait(struct waiter *waiter)
{
    pthread_join(waiter->thread, NULL);
    return waiter->rc;
}

static void run_with_list(struct informer_fixture *f)
{
    informer_make(f, NULL);
    informer_start(f);
    feed_replace(f, "100", "x", "50");
    wait_synced(f);
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "100", PATIENCE_MS, NULL), 0);
}

/* --- tests --- */

static void version_that_was_seen_is_not_waited_for(void **state)
{
    struct informer_fixture *f = *state;
    char rv[64];

    run_with_list(f);
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "100", 0, NULL), 0);
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "99", 0, NULL), 0);
    assert_int_equal(kinf_informer_resource_version(f->informer, rv, sizeof rv), 0);
    assert_string_equal(rv, "100");
    assert_int_equal(kinf_informer_resource_version(f->informer, rv, 3), KINF_ERR_LIMIT);
}

/* What was waited for can be read. */
static void event_and_bookmark_end_the_wait(void **state)
{
    struct informer_fixture *f = *state;
    kinf_auto_object const struct kinf_object *x = NULL;
    struct waiter first, second, third;

    run_with_list(f);
    begin_wait(f, &first, "101");
    begin_wait(f, &second, "102");
    begin_wait(f, &third, "300");
    feed_update(f, "x", "101");
    assert_int_equal(end_wait(&first), 0);
    assert_int_equal(kinf_indexer_get_by_key(f->informer->indexer, "ns/x", &x), 0);
    assert_string_equal(kinf_object_resource_version(x), "101");
    feed_delete(f, "x", "102");
    assert_int_equal(end_wait(&second), 0);
    assert_int_equal(kinf_deltafifo_bookmark(f->informer->fifo, "301", NULL), 0);
    kinf__informer_note_contact(f->informer);
    assert_int_equal(end_wait(&third), 0);
}

/* What is stored need not have the version that it came with. */
static int leave_text_alone(const struct kinf_object *object, const struct kinf_object **ret_object,
                            void *ctx)
{
    (void)ctx;
    *ret_object = make_thing_of(kinf_object_name(object), kinf_object_uid(object), "", "text");
    return 0;
}

static void versions_that_a_transform_takes_out_are_reached(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf_informer_options options = { .size = sizeof options,
                                                   .transform = leave_text_alone };
    char rv[64];

    informer_make(f, &options);
    informer_start(f);
    feed_replace(f, "100", "x", "50");
    wait_synced(f);
    feed_update(f, "x", "101");
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "101", PATIENCE_MS, NULL), 0);
    feed_add(f, "y", "102");
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "102", PATIENCE_MS, NULL), 0);
    feed_delete(f, "x", "103");
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "103", PATIENCE_MS, NULL), 0);
    assert_int_equal(kinf_informer_resource_version(f->informer, rv, sizeof rv), 0);
    assert_string_equal(rv, "103");
}

static void first_list_ends_the_wait(void **state)
{
    struct informer_fixture *f = *state;
    struct waiter waiter;

    informer_make(f, NULL);
    informer_start(f);
    begin_wait(f, &waiter, "100");
    feed_replace(f, "100", "x", "50");
    assert_int_equal(end_wait(&waiter), 0);
}

static void waiting_for_a_version_in_vain_says_what_there_is(void **state)
{
    struct informer_fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;

    run_with_list(f);
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "101", 0, &err), KINF_ERR_TIMEOUT);
    assert_string_equal(err.message,
                        "things: resourceVersion 101 not seen after 0 ms, but \"100\"");
}

static void version_without_an_order_is_refused(void **state)
{
    struct informer_fixture *f = *state;

    run_with_list(f);
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "", 0, NULL), KINF_ERR_INVALID);
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "0", 0, NULL), KINF_ERR_INVALID);
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "seven", 0, NULL), KINF_ERR_INVALID);
}

/* G10 */
static void stop_ends_the_wait(void **state)
{
    struct informer_fixture *f = *state;
    struct waiter waiter;

    run_with_list(f);
    begin_wait(f, &waiter, "101");
    assert_int_equal(kinf_informer_stop(f->informer, NULL), 0);
    assert_int_equal(end_wait(&waiter), KINF_ERR_STOPPED);
    assert_string_equal(waiter.err.message, "things: stopped before resourceVersion 101 was in");
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "100", 0, NULL), 0);
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "101", PATIENCE_MS, NULL),
                     KINF_ERR_STOPPED);
}

/* A restored server counts up again: that it passes the version later proves nothing. */
static void server_that_goes_back_fails_the_wait(void **state)
{
    struct informer_fixture *f = *state;
    struct waiter waiter;

    run_with_list(f);
    begin_wait(f, &waiter, "110");
    feed_replace(f, "60", "x", "50");
    feed_update(f, "x", "120");
    assert_int_equal(end_wait(&waiter), KINF_ERR_EXPIRED);
    assert_non_null(
        strstr(waiter.err.message, "things: the server went back to resourceVersion \""));
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "120", PATIENCE_MS, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        INFORMER_TEST_BOTH(version_that_was_seen_is_not_waited_for),
        INFORMER_TEST_BOTH(event_and_bookmark_end_the_wait),
        INFORMER_TEST_BOTH(versions_that_a_transform_takes_out_are_reached),
        INFORMER_TEST_BOTH(first_list_ends_the_wait),
        INFORMER_TEST_BOTH(waiting_for_a_version_in_vain_says_what_there_is),
        INFORMER_TEST_BOTH(version_without_an_order_is_refused),
        INFORMER_TEST_BOTH(stop_ends_the_wait),
        INFORMER_TEST_BOTH(server_that_goes_back_fails_the_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
