/*
 * The state of an informer, derived row by row; time is a parameter.
 */
#include "informer/state.h"

#include <stdio.h>
#include <string.h>

#include "unit/test.h"

#define SILENT_AFTER_MS 150000
#define STALE_AFTER_MS  180000

static struct kinf__state begun_at(int64_t now_ms)
{
    struct kinf__state state;

    kinf__state_init(&state, SILENT_AFTER_MS, now_ms);
    return state;
}

static struct kinf_error failure(enum kinf_errc code, const char *message)
{
    struct kinf_error err = KINF_ERROR_INIT;

    err.code = code;
    strcpy(err.message, message);
    return err;
}

static void expect(const struct kinf__state *state, const struct kinf__state_counts *counts,
                   int64_t now_ms, enum kinf_informer_state wanted, int64_t since_ms,
                   const char *reason)
{
    struct kinf_informer_status status;

    kinf__state_derive(state, counts, now_ms, &status);
    assert_string_equal(kinf_informer_state_to_string(status.state),
                        kinf_informer_state_to_string(wanted));
    assert_int_equal(status.state_since_ms, since_ms);
    assert_string_equal(status.reason, reason);
    assert_int_equal(status.last_contact_ms, counts->last_contact_ms);
    assert_int_equal(status.has_synced, state->has_synced);
}

static struct kinf__state live_at(int64_t now_ms)
{
    struct kinf__state state = begun_at(0);

    kinf__state_phase(&state, KINF__REFLECTOR_LISTING, NULL, now_ms - 20);
    kinf__state_synced(&state, now_ms - 10);
    kinf__state_phase(&state, KINF__REFLECTOR_WATCHING, NULL, now_ms);
    return state;
}

static void start_up_is_starting_listing_live(void **unused)
{
    struct kinf__state state = begun_at(10);
    struct kinf__state_counts counts = { 0 };

    (void)unused;
    expect(&state, &counts, 15, KINF_STATE_STARTING, 10, "");
    kinf__state_phase(&state, KINF__REFLECTOR_LISTING, NULL, 20);
    expect(&state, &counts, 25, KINF_STATE_LISTING, 20, "");
    kinf__state_phase(&state, KINF__REFLECTOR_WATCHING, NULL, 30);
    counts.last_contact_ms = 30;
    expect(&state, &counts, 35, KINF_STATE_LISTING, 30, ""); /* the list is in the queue still */
    kinf__state_synced(&state, 40);
    expect(&state, &counts, 45, KINF_STATE_LIVE, 40, "");
    kinf__state_synced(&state, 50);
    expect(&state, &counts, 55, KINF_STATE_LIVE, 40, "");
}

static void what_is_never_silent_for_too_long_is_live(void **unused)
{
    struct kinf__state state;
    struct kinf__state_counts counts = { .last_contact_ms = 30 };

    (void)unused;
    kinf__state_init(&state, INT64_MAX, 10);
    kinf__state_synced(&state, 20);
    kinf__state_phase(&state, KINF__REFLECTOR_WATCHING, NULL, 20);
    expect(&state, &counts, 1000000, KINF_STATE_LIVE, 20, "");
}

/* What it hears since is not in the store yet: there is nobody to be told of. */
static void a_server_that_is_heard_refuses_no_more(void **unused)
{
    struct kinf__state state = begun_at(0);
    struct kinf_error forbidden = failure(KINF_ERR_FORBIDDEN, "no");

    (void)unused;
    kinf__state_phase(&state, KINF__REFLECTOR_WAITING, &forbidden, 10);
    kinf__state_phase(&state, KINF__REFLECTOR_WAITING, &forbidden, 20);
    assert_non_null(kinf__state_refusal(&state));
    kinf__state_contact(&state);
    assert_null(kinf__state_refusal(&state));
}

static void stream_without_a_proof_is_stale(void **unused)
{
    struct kinf__state state = live_at(100);
    struct kinf__state_counts counts = { .last_contact_ms = 1000 };

    (void)unused;
    expect(&state, &counts, 1000 + STALE_AFTER_MS, KINF_STATE_LIVE, 100, "");
    expect(&state, &counts, 1000 + STALE_AFTER_MS + 1, KINF_STATE_STALE, 1000 + STALE_AFTER_MS, "");
    counts.last_contact_ms = 1000 + STALE_AFTER_MS + 2;
    expect(&state, &counts, 1000 + STALE_AFTER_MS + 2, KINF_STATE_LIVE, 100, "");
}

static void failure_is_backing_off_until_a_watch_is_open(void **unused)
{
    struct kinf__state state = live_at(100);
    struct kinf__state_counts counts = { .last_contact_ms = 100 };
    struct kinf_error err = failure(KINF_ERR_NETWORK, "connection refused");

    (void)unused;
    kinf__state_phase(&state, KINF__REFLECTOR_WAITING, &err, 200);
    expect(&state, &counts, 210, KINF_STATE_BACKING_OFF, 200, "connection refused");
    kinf__state_phase(&state, KINF__REFLECTOR_LISTING, NULL, 1000);
    expect(&state, &counts, 1010, KINF_STATE_LISTING, 1000, "connection refused");
    kinf__state_phase(&state, KINF__REFLECTOR_WATCHING, NULL, 1100);
    expect(&state, &counts, 1110, KINF_STATE_LIVE, 1100, "");
}

static void refusal_stays_visible_while_it_is_tried_again(void **unused)
{
    static const struct {
        enum kinf_errc code;
        enum kinf_informer_state state;
    } rows[] = {
        { KINF_ERR_UNAUTHORIZED, KINF_STATE_FORBIDDEN },
        { KINF_ERR_FORBIDDEN, KINF_STATE_FORBIDDEN },
        { KINF_ERR_NOT_FOUND, KINF_STATE_ABSENT },
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kinf__state state = begun_at(0);
        struct kinf__state_counts counts = { 0 };
        struct kinf_error err = failure(rows[i].code, "no");

        kinf__state_phase(&state, KINF__REFLECTOR_WAITING, &err, 100);
        kinf__state_phase(&state, KINF__REFLECTOR_LISTING, NULL, 200);
        expect(&state, &counts, 250, rows[i].state, 100, "no");
        kinf__state_phase(&state, KINF__REFLECTOR_WAITING, &err, 300);
        expect(&state, &counts, 350, rows[i].state, 100, "no");
        kinf__state_phase(&state, KINF__REFLECTOR_WATCHING, NULL, 400);
        expect(&state, &counts, 450, KINF_STATE_LISTING, 400, "");
    }
}

static void what_is_missing_makes_it_degraded(void **unused)
{
    struct kinf__state state = live_at(100);
    struct kinf__state_counts counts = { .last_contact_ms = 100, .n_failed_index_values = 3 };
    struct kinf_error err = failure(KINF_ERR_PARSE, "bad number");

    (void)unused;
    expect(&state, &counts, 210, KINF_STATE_DEGRADED, 100, "index functions failed 3 times");
    kinf__state_quarantine(&state, "ns/x", &err, 1, 200);
    counts.n_quarantined = 1;
    expect(&state, &counts, 210, KINF_STATE_DEGRADED, 200, "object ns/x is left out: bad number");
    kinf__state_quarantine(&state, "", &err, 2, 220);
    expect(&state, &counts, 230, KINF_STATE_DEGRADED, 200,
           "object without a key is left out: bad number");
    kinf__state_quarantine(&state, "ns/y", &err, 1, 240); /* the others are not any more */
    expect(&state, &counts, 250, KINF_STATE_DEGRADED, 240, "object ns/y is left out: bad number");
    kinf__state_phase(&state, KINF__REFLECTOR_LISTING, NULL, 300);
    expect(&state, &counts, 310, KINF_STATE_LISTING, 300, "");
}

static void lists_in_place_of_watches_make_it_stale(void **unused)
{
    struct kinf__state state = live_at(100);
    struct kinf__state_counts counts = { .last_contact_ms = 100 };
    struct kinf_error why = failure(KINF_ERR_SERVER, "the cache stands still");
    struct kinf_error refused = failure(KINF_ERR_FORBIDDEN, "no");
    struct kinf_error busy = failure(KINF_ERR_TOO_MANY_REQUESTS, "later");

    (void)unused;
    kinf__state_frozen(&state, &why, 200);
    expect(&state, &counts, 210, KINF_STATE_STALE, 200, "the cache stands still");
    kinf__state_phase(&state, KINF__REFLECTOR_WAITING, &busy, 300);
    expect(&state, &counts, 310, KINF_STATE_STALE, 200, "the cache stands still");
    kinf__state_phase(&state, KINF__REFLECTOR_LISTING, NULL, 400);
    expect(&state, &counts, 410, KINF_STATE_STALE, 200, "the cache stands still");
    kinf__state_phase(&state, KINF__REFLECTOR_WAITING, &refused, 500);
    expect(&state, &counts, 510, KINF_STATE_FORBIDDEN, 500, "no");
    kinf__state_phase(&state, KINF__REFLECTOR_WATCHING, NULL, 600);
    expect(&state, &counts, 610, KINF_STATE_STALE, 200, "the cache stands still");
    kinf__state_frozen(&state, NULL, 700);
    expect(&state, &counts, 710, KINF_STATE_LIVE, 600, "");
}

/* One that never had a list is not stale. */
static void before_the_first_list_a_frozen_cache_is_a_failure_like_others(void **unused)
{
    struct kinf__state state = begun_at(0);
    struct kinf__state_counts counts = { 0 };
    struct kinf_error why = failure(KINF_ERR_TOO_MANY_REQUESTS, "initializing");

    (void)unused;
    kinf__state_frozen(&state, &why, 50);
    kinf__state_phase(&state, KINF__REFLECTOR_WAITING, &why, 100);
    expect(&state, &counts, 110, KINF_STATE_BACKING_OFF, 100, "initializing");
}

static void a_trouble_is_told_when_it_begins_turns_and_goes_on(void **unused)
{
    struct kinf_error away = failure(KINF_ERR_NETWORK, "refused");
    struct kinf_error busy = failure(KINF_ERR_TOO_MANY_REQUESTS, "later");
    struct kinf_error forbidden = failure(KINF_ERR_FORBIDDEN, "no");
    struct kinf_error expired = failure(KINF_ERR_EXPIRED, "too old");
    struct kinf__trouble trouble = { 0 };

    (void)unused;
    assert_int_equal(kinf__trouble_level(&trouble, &expired, 1000), KINF_LOG_DEBUG);
    assert_false(kinf__trouble_end(&trouble));
    assert_int_equal(kinf__trouble_level(&trouble, &away, 1000), KINF_LOG_WARN);
    assert_int_equal(kinf__trouble_level(&trouble, &away, 2000), KINF_LOG_DEBUG);
    assert_int_equal(kinf__trouble_level(&trouble, &busy, 3000), KINF_LOG_DEBUG);
    assert_int_equal(kinf__trouble_level(&trouble, &expired, 4000), KINF_LOG_DEBUG);
    assert_int_equal(kinf__trouble_level(&trouble, &forbidden, 5000), KINF_LOG_WARN);
    assert_int_equal(
        kinf__trouble_level(&trouble, &forbidden, 5000 + KINF__TROUBLE_INTERVAL_MS - 1),
        KINF_LOG_DEBUG);
    assert_int_equal(kinf__trouble_level(&trouble, &forbidden, 5000 + KINF__TROUBLE_INTERVAL_MS),
                     KINF_LOG_WARN);
    assert_true(kinf__trouble_end(&trouble));
    assert_false(kinf__trouble_end(&trouble));
    assert_int_equal(kinf__trouble_level(&trouble, &forbidden, 700000), KINF_LOG_WARN);
}

/* What was a broken stream may turn out to be a certificate that has expired. */
static void each_kind_of_failure_is_told_once_in_a_trouble(void **unused)
{
    static const enum kinf_errc codes[] = { KINF_ERR_NETWORK, KINF_ERR_TLS, KINF_ERR_TIMEOUT,
                                            KINF_ERR_SERVER, KINF_ERR_PARSE };
    struct kinf__trouble trouble = { 0 };

    (void)unused;
    for (size_t i = 0; i < 3 * (sizeof codes / sizeof codes[0]); i++) {
        struct kinf_error err = failure(codes[i % (sizeof codes / sizeof codes[0])], "");

        err.http_status = err.code == KINF_ERR_SERVER ? 503 : 0;
        assert_int_equal(kinf__trouble_level(&trouble, &err, 1000 + (int64_t)i),
                         i < sizeof codes / sizeof codes[0] ? KINF_LOG_WARN : KINF_LOG_DEBUG);
    }
}

/* That a watch was accepted mends nothing. */
static void a_stale_stream_says_what_failed_until_something_comes(void **unused)
{
    struct kinf__state state = live_at(100);
    struct kinf__state_counts counts = { .last_contact_ms = 100 };
    struct kinf_error err = failure(KINF_ERR_SERVER, "boom");

    (void)unused;
    kinf__state_phase(&state, KINF__REFLECTOR_WAITING, &err, 200);
    kinf__state_phase(&state, KINF__REFLECTOR_WATCHING, NULL, 300);
    expect(&state, &counts, 310, KINF_STATE_LIVE, 300, "");
    expect(&state, &counts, 100 + STALE_AFTER_MS + 1, KINF_STATE_STALE, 100 + STALE_AFTER_MS,
           "boom");
    kinf__state_contact(&state);
    expect(&state, &counts, 100 + STALE_AFTER_MS + 1, KINF_STATE_STALE, 100 + STALE_AFTER_MS, "");
}

static void stopped_is_the_end_and_keeps_the_reason(void **unused)
{
    struct kinf__state state = begun_at(0);
    struct kinf__state_counts counts = { 0 };
    struct kinf_error err = failure(KINF_ERR_TLS, "certificate expired");

    (void)unused;
    kinf__state_phase(&state, KINF__REFLECTOR_WAITING, &err, 100);
    kinf__state_stopped(&state, 150);
    expect(&state, &counts, 200, KINF_STATE_STOPPED, 150, "certificate expired");
}

static void expect_error(const struct kinf__state *state, size_t place, const char *message,
                         int64_t first_ms, int64_t last_ms, uint64_t n)
{
    const struct kinf__last_error *error = &state->last_errors.items[place];

    assert_true(place < state->last_errors.n_items);
    assert_string_equal(error->message, message);
    assert_int_equal(error->first_ms, first_ms);
    assert_int_equal(error->last_ms, last_ms);
    assert_int_equal(error->n, n);
}

static void errors_that_are_over_are_kept_each_once_the_last_first(void **unused)
{
    struct kinf__state state = live_at(100);
    struct kinf_error away = failure(KINF_ERR_NETWORK, "refused"),
                      frozen = failure(KINF_ERR_TIMEOUT, "stands still");

    (void)unused;
    assert_int_equal(state.last_errors.n_items, 0);
    kinf__state_phase(&state, KINF__REFLECTOR_WAITING, &away, 200);
    kinf__state_frozen(&state, &frozen, 300);
    kinf__state_phase(&state, KINF__REFLECTOR_WAITING, &away, 400);
    kinf__state_quarantine(&state, "a/b", &frozen, 1, 500);
    kinf__state_contact(&state);
    kinf__state_frozen(&state, NULL, 600);
    assert_int_equal(state.last_errors.n_items, 3);
    expect_error(&state, 0, "object a/b is left out: stands still", 500, 500, 1);
    expect_error(&state, 1, "refused", 200, 400, 2);
    expect_error(&state, 2, "stands still", 300, 300, 1);
}

static void of_many_errors_the_last_ones_are_kept(void **unused)
{
    struct kinf__last_errors errors = { .n_items = 0 };
    char message[KINF_ERROR_MESSAGE_SIZE];

    (void)unused;
    for (int i = 0; i < 10; i++) {
        snprintf(message, sizeof message, "error %d", i);
        kinf__last_errors_note(&errors, message, i);
    }
    assert_int_equal(errors.n_items, KINF__LAST_ERRORS);
    for (size_t i = 0; i < KINF__LAST_ERRORS; i++)
        assert_int_equal(errors.items[i].last_ms, 9 - (int64_t)i);
    kinf__last_errors_note(&errors, "error 6", 20);
    assert_int_equal(errors.items[0].n, 2);
    assert_int_equal(errors.items[0].first_ms, 6);
    assert_int_equal(errors.items[3].last_ms, 7);
}

static void states_have_names(void **unused)
{
    (void)unused;
    assert_string_equal(kinf_informer_state_to_string(KINF_STATE_BACKING_OFF), "backing off");
    assert_string_equal(kinf_informer_state_to_string((enum kinf_informer_state)99), "unknown");
}

static void each_way_to_start_has_a_name(void **state)
{
    enum kinf_initial initial = KINF_INITIAL_LIST;

    (void)state;
    assert_string_equal(kinf_initial_to_string(KINF_INITIAL_WATCHLIST), "watchlist");
    assert_string_equal(kinf_initial_to_string((enum kinf_initial)99), "unknown");
    assert_true(kinf_initial_parse("auto", &initial));
    assert_int_equal(initial, KINF_INITIAL_AUTO);
    assert_false(kinf_initial_parse("Auto", &initial));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_up_is_starting_listing_live),
        cmocka_unit_test(what_is_never_silent_for_too_long_is_live),
        cmocka_unit_test(a_server_that_is_heard_refuses_no_more),
        cmocka_unit_test(stream_without_a_proof_is_stale),
        cmocka_unit_test(failure_is_backing_off_until_a_watch_is_open),
        cmocka_unit_test(refusal_stays_visible_while_it_is_tried_again),
        cmocka_unit_test(what_is_missing_makes_it_degraded),
        cmocka_unit_test(lists_in_place_of_watches_make_it_stale),
        cmocka_unit_test(before_the_first_list_a_frozen_cache_is_a_failure_like_others),
        cmocka_unit_test(a_trouble_is_told_when_it_begins_turns_and_goes_on),
        cmocka_unit_test(each_kind_of_failure_is_told_once_in_a_trouble),
        cmocka_unit_test(a_stale_stream_says_what_failed_until_something_comes),
        cmocka_unit_test(stopped_is_the_end_and_keeps_the_reason),
        cmocka_unit_test(errors_that_are_over_are_kept_each_once_the_last_first),
        cmocka_unit_test(of_many_errors_the_last_ones_are_kept),
        cmocka_unit_test(states_have_names),
        cmocka_unit_test(each_way_to_start_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
