/*
 * What a cache that fills itself takes up and gives up, with time as a parameter. Promises D1 to D10 are
 * those of serve/demand.h.
 */
#include "serve/demand.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define MINUTE 60000
#define MIB    (UINT64_C(1) << 20)

static const char all_verbs[] = "create,delete,get,list,patch,update,watch";

static struct kinf__demand demand;

static void begin_with(const struct kinf__demand_rules *rules)
{
    kinf__demand_init(&demand, NULL);
    kinf__demand_set_rules(&demand, rules);
}

static void begin(void)
{
    begin_with(&(struct kinf__demand_rules){ .is_enabled = true });
}

static void ask(const char *resource, int64_t now_ms)
{
    kinf__demand_ask(
        &demand, &(struct kinf__demand_request){ "", "v1", resource, all_verbs, false }, now_ms);
}

static void get(const char *resource, int64_t now_ms)
{
    kinf__demand_ask(&demand, &(struct kinf__demand_request){ "", "v1", resource, all_verbs, true },
                     now_ms);
}

static struct kinf__demand_type *type_of(const char *resource)
{
    KINF__LIST_FOR_EACH (node, &demand.types) {
        struct kinf__demand_type *type = KINF__LIST_ENTRY(node, struct kinf__demand_type, node);

        if (strcmp(type->resource, resource) == 0)
            return type;
    }
    fail_msg("nobody asked for %s", resource);
    return NULL;
}

/* Asked for, started and synced at once. */
static struct kinf__demand_type *cache(const char *resource, int64_t now_ms)
{
    struct kinf__demand_type *type;

    ask(resource, now_ms);
    type = kinf__demand_next_start(&demand, now_ms);
    assert_ptr_equal(type, type_of(resource));
    kinf__demand_note_cached(&demand, type, now_ms);
    return type;
}

static void use(struct kinf__demand_type *type, uint64_t bytes, size_t n_watches, int64_t last_ms,
                int64_t now_ms)
{
    kinf__demand_note_use(&demand, type,
                          &(struct kinf__demand_use){ bytes, bytes, n_watches, last_ms, now_ms },
                          now_ms);
}

static void assert_ends(struct kinf__demand_type *type, const char *why, int64_t now_ms)
{
    assert_ptr_equal(kinf__demand_next_end(&demand, now_ms), type);
    assert_int_equal(type->state, KINF__DEMAND_LEAVING);
    if (strstr(type->reason, why) == NULL)
        fail_msg("'%s' is not in '%s'", why, type->reason);
    kinf__demand_note_gone(&demand, type, now_ms);
}

static void the_first_list_or_watch_asks_for_a_type(void **state)
{
    char name[KINF__DEMAND_NAME_SIZE];

    (void)state;
    begin();
    assert_null(kinf__demand_next_start(&demand, 1000));
    ask("pods", 1000);
    assert_ptr_equal(kinf__demand_next_start(&demand, 1000), type_of("pods"));
    assert_string_equal(kinf__demand_name(type_of("pods"), name, sizeof name), "pods.");
    assert_int_equal(type_of("pods")->state, KINF__DEMAND_STARTING);
    assert_null(kinf__demand_next_start(&demand, 1000));
    ask("pods", 1001); /* is passed on until it is cached, and changes nothing */
    assert_null(kinf__demand_next_start(&demand, 1001));
    kinf__demand_release(&demand);
}

static void the_third_get_asks_for_a_type(void **state)
{
    (void)state;
    begin();
    get("nodes", 0);
    get("nodes", 10);
    assert_null(kinf__demand_next_start(&demand, 10));
    assert_non_null(strstr(type_of("nodes")->reason, "single objects"));
    get("nodes", 20);
    assert_ptr_equal(kinf__demand_next_start(&demand, 20), type_of("nodes"));
    kinf__demand_release(&demand);
}

static void gets_that_are_half_an_hour_apart_never_do(void **state)
{
    (void)state;
    begin();
    for (int64_t i = 0; i < 10; i++)
        get("nodes", i * 30 * MINUTE);
    assert_null(kinf__demand_next_start(&demand, 300 * MINUTE));
    kinf__demand_release(&demand);
}

static void versions_and_groups_are_types_of_their_own(void **state)
{
    char name[KINF__DEMAND_NAME_SIZE];
    struct kinf__demand_type *type;

    (void)state;
    begin();
    kinf__demand_ask(
        &demand,
        &(struct kinf__demand_request){ "events.k8s.io", "v1", "events", all_verbs, false }, 0);
    type = kinf__demand_next_start(&demand, 0);
    assert_string_equal(kinf__demand_name(type, name, sizeof name), "events.v1.events.k8s.io");
    ask("events", 0);
    assert_ptr_not_equal(kinf__demand_next_start(&demand, 0), type);
    kinf__demand_release(&demand);
}

static void assert_refused(const char *group, const char *resource, const char *verbs,
                           const char *why)
{
    kinf__demand_ask(&demand, &(struct kinf__demand_request){ group, "v1", resource, verbs, false },
                     5);
    assert_null(kinf__demand_next_start(&demand, 5));
    if (strstr(type_of(resource)->reason, why) == NULL)
        fail_msg("'%s' is not in '%s'", why, type_of(resource)->reason);
}

static void what_may_not_be_cached_stays_passed_on_and_says_why(void **state)
{
    static const char *const excludes[] = { "events", "leases.coordination.k8s.io",
                                            "*.example.com" };
    const struct kinf__demand_rules rules = { .is_enabled = true,
                                              .excludes = excludes,
                                              .n_excludes = KINF__ARRAY_LEN(excludes) };

    (void)state;
    begin_with(&rules);
    assert_refused("metrics.k8s.io", "nodes", "get,list", "no watch");
    assert_refused("authentication.k8s.io", "tokenreviews", "create", "no list");
    assert_refused("", "events", all_verbs, "onDemand.exclude");
    assert_refused("coordination.k8s.io", "leases", all_verbs, "onDemand.exclude");
    assert_refused("example.com", "gadgets", all_verbs, "onDemand.exclude");
    assert_refused("", "secrets", all_verbs, "onDemand.include");
    assert_refused("project.openshift.io", "projects", all_verbs, "each caller its own");
    assert_refused("ext.cattle.io", "tokens", all_verbs, "each caller its own");
    kinf__demand_ask(
        &demand,
        &(struct kinf__demand_request){ "x.example.com", "v1", "leases", all_verbs, false }, 5);
    assert_non_null(kinf__demand_next_start(&demand, 5));
    kinf__demand_release(&demand);
}

static void secrets_that_are_included_are_cached(void **state)
{
    static const char *const includes[] = { "secrets" };

    (void)state;
    begin_with(&(struct kinf__demand_rules){
        .is_enabled = true, .includes = includes, .n_includes = KINF__ARRAY_LEN(includes) });
    ask("secrets", 0);
    assert_non_null(kinf__demand_next_start(&demand, 0));
    kinf__demand_release(&demand);
}

static void what_is_not_enabled_remembers_nothing(void **state)
{
    (void)state;
    begin_with(&(struct kinf__demand_rules){ .is_enabled = false });
    ask("pods", 0);
    assert_true(kinf__list_is_empty(&demand.types));
    kinf__demand_release(&demand);
}

/* The next request asks again. */
static void what_there_is_no_memory_for_is_not_remembered(void **state)
{
    bool has_failed = true;

    (void)state;
    for (size_t n = 1; has_failed; n++) {
        begin();
        test_fail_allocation(n);
        ask("pods", 0);
        has_failed = test_allocation_failed();
        assert_int_equal(kinf__list_is_empty(&demand.types), has_failed);
        ask("pods", 1);
        assert_ptr_equal(kinf__demand_next_start(&demand, 1), type_of("pods"));
        kinf__demand_release(&demand);
    }
}

static void discovery_is_read_again_for_what_it_did_not_have_but_seldom(void **state)
{
    const int64_t again_ms = 1000 + KINF__DEMAND_UNKNOWN_MS;
    struct kinf__waker wake;

    (void)state;
    assert_int_equal(kinf__waker_init(&wake, NULL), 0);
    kinf__demand_init(&demand, &wake);
    kinf__demand_ask_unknown(&demand);
    assert_false(kinf__waker_is_set(&wake));
    assert_false(kinf__demand_take_unknown(&demand, 1000));
    kinf__demand_set_rules(&demand, &(struct kinf__demand_rules){ .is_enabled = true });
    assert_false(kinf__demand_take_unknown(&demand, 1000));
    kinf__demand_ask_unknown(&demand);
    assert_true(kinf__waker_is_set(&wake));
    assert_true(kinf__demand_take_unknown(&demand, 1000));
    assert_false(kinf__demand_take_unknown(&demand, again_ms));
    /* Once for all that is asked meanwhile. */
    kinf__waker_clear(&wake);
    kinf__demand_ask_unknown(&demand);
    kinf__demand_ask_unknown(&demand);
    assert_true(kinf__waker_is_set(&wake));
    assert_false(kinf__demand_take_unknown(&demand, again_ms - 1));
    assert_true(kinf__demand_take_unknown(&demand, again_ms));
    assert_false(kinf__demand_take_unknown(&demand, 2 * again_ms));
    kinf__demand_release(&demand);
    kinf__waker_release(&wake);
}

static void what_nobody_uses_goes_and_comes_back_when_it_is_asked_for(void **state)
{
    struct kinf__demand_type *type;

    (void)state;
    begin();
    type = cache("pods", 0);
    use(type, MIB, 0, 5 * MINUTE, 34 * MINUTE);
    assert_null(kinf__demand_next_end(&demand, 34 * MINUTE));
    assert_ends(type, "onDemand.idle", 35 * MINUTE);
    assert_ptr_equal(cache("pods", 36 * MINUTE), type);
    kinf__demand_release(&demand);
}

static void a_watch_is_use(void **state)
{
    struct kinf__demand_type *type;

    (void)state;
    begin();
    type = cache("pods", 0);
    use(type, MIB, 1, 0, 100 * MINUTE);
    assert_null(kinf__demand_next_end(&demand, 100 * MINUTE));
    use(type, MIB, 0, 0, 101 * MINUTE);
    use(type, MIB, 1, 0, 102 * MINUTE);
    assert_null(kinf__demand_next_end(&demand, 131 * MINUTE));
    kinf__demand_release(&demand);
}

static void a_newcomer_takes_the_place_of_the_least_recently_used(void **state)
{
    struct kinf__demand_type *old, *older, *watched;

    (void)state;
    begin_with(&(struct kinf__demand_rules){ .is_enabled = true, .max_types = 3 });
    old = cache("a", 0);
    older = cache("b", 0);
    watched = cache("c", 0);
    use(old, 1, 0, 2 * MINUTE, 10 * MINUTE);
    use(older, 1, 0, 1 * MINUTE, 10 * MINUTE);
    use(watched, 1, 1, 0, 10 * MINUTE);
    assert_null(kinf__demand_next_end(&demand, 10 * MINUTE));
    ask("d", 10 * MINUTE);
    assert_null(kinf__demand_next_start(&demand, 10 * MINUTE));
    assert_ends(older, "onDemand.maxTypes is 3", 10 * MINUTE);
    assert_null(kinf__demand_next_end(&demand, 10 * MINUTE));
    assert_ptr_equal(kinf__demand_next_start(&demand, 10 * MINUTE), type_of("d"));
    kinf__demand_release(&demand);
}

static void a_newcomer_takes_no_place_that_is_in_use(void **state)
{
    struct kinf__demand_type *used, *watched;

    (void)state;
    begin_with(&(struct kinf__demand_rules){ .is_enabled = true, .max_types = 2 });
    used = cache("a", 0);
    watched = cache("b", 0);
    use(watched, 1, 2, 0, 10 * MINUTE);
    use(used, 1, 0, 10 * MINUTE, 10 * MINUTE);
    ask("c", 10 * MINUTE + 59000);
    assert_null(kinf__demand_next_end(&demand, 10 * MINUTE + 59000));
    assert_null(kinf__demand_next_start(&demand, 10 * MINUTE + 59000));
    assert_non_null(strstr(type_of("c")->reason, "in use"));
    assert_true(kinf__demand_has_queued(&demand));
    assert_ends(used, "not in use", 11 * MINUTE);
    assert_ptr_equal(kinf__demand_next_start(&demand, 11 * MINUTE), type_of("c"));
    kinf__demand_release(&demand);
}

static void what_waits_for_a_place_and_is_not_asked_for_any_more_is_forgotten(void **state)
{
    struct kinf__demand_type *watched;

    (void)state;
    begin_with(&(struct kinf__demand_rules){ .is_enabled = true, .max_types = 1 });
    watched = cache("a", 0);
    use(watched, 1, 1, 0, 0);
    ask("b", 0);
    assert_null(kinf__demand_next_start(&demand, 29 * MINUTE));
    assert_true(kinf__demand_has_queued(&demand));
    assert_null(kinf__demand_next_start(&demand, 30 * MINUTE));
    assert_false(kinf__demand_has_queued(&demand));
    kinf__demand_release(&demand);
}

static void lists_that_grow_above_the_limit_make_the_quiet_ones_go_first(void **state)
{
    struct kinf__demand_type *quiet, *used, *watched, *newcomer;

    (void)state;
    begin_with(&(struct kinf__demand_rules){ .is_enabled = true, .max_bytes = 100 * MIB });
    quiet = cache("quiet", 0);
    used = cache("used", 0);
    watched = cache("watched", 0);
    ask("new", 10 * MINUTE);
    newcomer = kinf__demand_next_start(&demand, 10 * MINUTE);
    use(quiet, 30 * MIB, 0, 1, 10 * MINUTE);
    use(used, 40 * MIB, 0, 10 * MINUTE - 1, 10 * MINUTE);
    use(watched, 20 * MIB, 1, 2, 10 * MINUTE);
    use(newcomer, 10 * MIB, 0, 0, 10 * MINUTE);
    assert_null(kinf__demand_next_end(&demand, 10 * MINUTE));
    use(newcomer, 11 * MIB, 0, 0, 10 * MINUTE);
    assert_ends(quiet, "onDemand.maxBytes is 100 MiB", 10 * MINUTE);
    use(newcomer, 41 * MIB, 0, 0, 10 * MINUTE);
    assert_ends(newcomer, "took 101 MiB", 10 * MINUTE);
    use(watched, 61 * MIB, 1, 0, 10 * MINUTE);
    assert_ends(used, "about 40 MiB, and other types that are watched take 61", 10 * MINUTE);
    use(watched, 101 * MIB, 1, 0, 10 * MINUTE);
    assert_ends(watched, "maxBytes", 10 * MINUTE);
    kinf__demand_release(&demand);
}

static void a_list_that_is_too_large_goes_before_it_is_whole_and_takes_nobody_along(void **state)
{
    struct kinf__demand_type *other, *large;

    (void)state;
    begin_with(&(struct kinf__demand_rules){ .is_enabled = true, .max_bytes = 100 * MIB });
    other = cache("other", 0);
    use(other, 10 * MIB, 0, 0, 5 * MINUTE);
    ask("large", 5 * MINUTE);
    large = kinf__demand_next_start(&demand, 5 * MINUTE);
    kinf__demand_note_use(&demand, large, &(struct kinf__demand_use){ 2 * MIB, 101 * MIB, 0, 0, 0 },
                          5 * MINUTE);
    assert_ends(large, "too large: a list of it takes about 101 MiB", 5 * MINUTE);
    assert_null(kinf__demand_next_end(&demand, 5 * MINUTE));
    assert_int_equal(other->state, KINF__DEMAND_CACHED);
    kinf__demand_release(&demand);
}

static void of_two_in_use_that_do_not_fit_the_least_recently_used_goes(void **state)
{
    struct kinf__demand_type *a, *b;

    (void)state;
    begin_with(&(struct kinf__demand_rules){ .is_enabled = true, .max_bytes = 100 * MIB });
    a = cache("a", 0);
    b = cache("b", 0);
    use(a, 60 * MIB, 0, 6, 7);
    use(b, 60 * MIB, 0, 5, 7);
    assert_ends(b, "took 120 MiB, this one 60", 7);
    assert_null(kinf__demand_next_end(&demand, 7));
    kinf__demand_release(&demand);
}

static void what_turns_out_too_large_once_it_is_cached_takes_nobody_along_either(void **state)
{
    struct kinf__demand_type *other, *large;

    (void)state;
    begin_with(&(struct kinf__demand_rules){ .is_enabled = true, .max_bytes = 100 * MIB });
    other = cache("other", 0);
    large = cache("large", 1);
    use(other, 10 * MIB, 0, 0, 2);
    use(large, 101 * MIB, 0, 2, 2);
    assert_ends(large, "too large", 2);
    assert_null(kinf__demand_next_end(&demand, 2));
    kinf__demand_release(&demand);
}

/* Asks each second until it is started; returns after how many milliseconds that was. */
static int64_t ask_until_started(const char *resource, int64_t now_ms)
{
    for (int64_t ms = now_ms;; ms += 1000) {
        ask(resource, ms);
        if (kinf__demand_next_start(&demand, ms) != NULL)
            return ms - now_ms;
    }
}

static void what_was_refused_stays_away_for_longer_each_time(void **state)
{
    static const int64_t minutes[] = { 0, 1, 2, 4, 8, 16, 32, 60, 60 };
    int64_t now_ms = 0;

    (void)state;
    begin();
    for (size_t i = 0; i < KINF__ARRAY_LEN(minutes); i++) {
        int64_t waited_ms = ask_until_started("pods", now_ms);

        assert_int_equal(waited_ms, minutes[i] * MINUTE);
        now_ms += waited_ms;
        kinf__demand_give_up(&demand, type_of("pods"), KINF__DEMAND_REFUSED, "forbidden", now_ms);
        kinf__demand_note_gone(&demand, type_of("pods"), now_ms);
        ask("pods", now_ms);
        assert_string_equal(type_of("pods")->reason, "forbidden");
    }
    kinf__demand_release(&demand);
}

static void a_first_list_that_goes_on_failing_is_refused(void **state)
{
    struct kinf__demand_type *type;

    (void)state;
    begin();
    ask("pods", 0);
    type = kinf__demand_next_start(&demand, 0);
    kinf__demand_note_trouble(&demand, type, "500", 0);
    assert_string_equal(type->reason, "its first list fails: 500");
    assert_null(kinf__demand_next_end(&demand, MINUTE - 1));
    kinf__demand_note_trouble(&demand, type, NULL, MINUTE);
    assert_null(kinf__demand_next_end(&demand, MINUTE));
    kinf__demand_note_trouble(&demand, type, "503", MINUTE);
    assert_ends(type, "its first list fails: 503", MINUTE);
    ask("pods", 2 * MINUTE - 1);
    assert_null(kinf__demand_next_start(&demand, 2 * MINUTE - 1));
    kinf__demand_release(&demand);
}

/* Asks the server as often as that is wanted, each second from `now_ms` on; returns after how many
 * milliseconds one was given up, or -1. `contact_ms`: negative: it is in contact all the time. */
static int64_t probe_until_end(struct kinf__demand_type *type, bool answers, int64_t contact_ms,
                               int64_t now_ms, int64_t limit_ms)
{
    for (int64_t ms = now_ms; ms <= now_ms + limit_ms; ms += 1000) {
        kinf__demand_note_use(
            &demand, type,
            &(struct kinf__demand_use){ 1, 1, 0, ms, contact_ms < 0 ? ms : contact_ms }, ms);
        if (kinf__demand_take_probe(&demand, ms))
            kinf__demand_note_server(&demand, answers, ms);
        if (kinf__demand_next_end(&demand, ms) == NULL)
            continue;
        kinf__demand_note_gone(&demand, type, ms);
        return ms - now_ms;
    }
    return -1;
}

static void what_fails_though_the_server_answers_is_given_up_and_tried_again(void **state)
{
    struct kinf__demand_type *type;

    (void)state;
    begin();
    type = cache("gadgets", 1000);
    assert_false(kinf__demand_take_probe(&demand, 1000));
    kinf__demand_note_trouble(&demand, type, "503", 1000);
    assert_string_equal(type->reason, "its list or watch fails: 503");
    assert_int_equal(probe_until_end(type, true, 1000, 1000, 5 * MINUTE), KINF__DEMAND_FAILING_MS);
    assert_string_equal(type->reason, "could not be kept fresh, its list or watch fails: 503");
    assert_int_equal(demand.n_given_up[KINF__DEMAND_STALE], 1);
    assert_int_equal(ask_until_started("gadgets", 1000 + KINF__DEMAND_FAILING_MS), MINUTE);
    kinf__demand_note_cached(&demand, type, 4 * MINUTE);
    kinf__demand_note_trouble(&demand, type, "503", 4 * MINUTE);
    assert_int_equal(probe_until_end(type, true, 4 * MINUTE, 4 * MINUTE, 5 * MINUTE),
                     KINF__DEMAND_FAILING_MS);
    assert_int_equal(ask_until_started("gadgets", 4 * MINUTE + KINF__DEMAND_FAILING_MS),
                     2 * MINUTE);
    kinf__demand_release(&demand);
}

static void what_fails_now_and_then_stays(void **state)
{
    struct kinf__demand_type *type;

    (void)state;
    begin();
    type = cache("gadgets", 1000);
    for (int64_t ms = 1000; ms < 20 * MINUTE; ms += KINF__DEMAND_FAILING_MS) {
        kinf__demand_note_trouble(&demand, type, "reset", ms);
        assert_int_equal(probe_until_end(type, true, ms, ms, KINF__DEMAND_FAILING_MS - 1000), -1);
        kinf__demand_note_trouble(&demand, type, NULL, ms + KINF__DEMAND_FAILING_MS - 1000);
        assert_string_equal(type->reason, "");
    }
    kinf__demand_release(&demand);
}

static void nothing_goes_while_the_whole_server_is_away_nor_right_behind_that(void **state)
{
    const int64_t back_ms = 20 * MINUTE;
    struct kinf__demand_type *broken, *whole;

    (void)state;
    begin();
    broken = cache("gadgets", 1000);
    whole = cache("pods", 1000);
    kinf__demand_note_trouble(&demand, broken, "refused", 1000);
    kinf__demand_note_trouble(&demand, whole, "refused", 1000);
    assert_int_equal(probe_until_end(broken, false, 1000, 1000, back_ms - 1000), -1);
    assert_int_equal(probe_until_end(broken, true, 1000, back_ms, 75000), -1);
    kinf__demand_note_trouble(&demand, whole, NULL, back_ms + 75000);
    use(whole, 1, 0, 0, back_ms + 75000);
    assert_int_equal(probe_until_end(broken, true, 1000, back_ms + 76000, 5 * MINUTE), 5000);
    assert_int_equal(whole->state, KINF__DEMAND_CACHED);
    kinf__demand_release(&demand);
}

static void what_is_silent_goes_when_readers_would_call_it_stale(void **state)
{
    struct kinf__demand_type *type;

    (void)state;
    begin_with(&(struct kinf__demand_rules){ .is_enabled = true, .max_staleness_ms = 10 * MINUTE });
    type = cache("gadgets", 1000);
    assert_int_equal(probe_until_end(type, true, -1, 1000, 5 * MINUTE), -1);
    assert_int_equal(probe_until_end(type, true, 1000, 1000, 20 * MINUTE), 10 * MINUTE);
    assert_string_equal(type->reason, "could not be kept fresh, nothing came of it for 600 s");
    type = cache("other", 20 * MINUTE);
    assert_int_equal(probe_until_end(type, false, 20 * MINUTE, 20 * MINUTE, 5 * MINUTE), -1);
    kinf__demand_release(&demand);
}

/* As while the errand that asks is held up by something else. */
static void an_answer_of_long_ago_proves_nothing(void **state)
{
    struct kinf__demand_type *type;

    (void)state;
    begin();
    type = cache("gadgets", 1000);
    kinf__demand_note_trouble(&demand, type, "503", 1000);
    assert_true(kinf__demand_take_probe(&demand, 1000));
    assert_false(kinf__demand_take_probe(&demand, 1000 + KINF__DEMAND_PROBE_MS - 1));
    assert_null(kinf__demand_next_end(&demand, 2 * MINUTE));
    kinf__demand_note_server(&demand, true, 1000);
    assert_null(kinf__demand_next_end(&demand, 2 * MINUTE));
    kinf__demand_note_server(&demand, true, 2 * MINUTE - 5000);
    assert_ends(type, "503", 2 * MINUTE);
    kinf__demand_release(&demand);
}

static void an_hour_in_the_cache_makes_good(void **state)
{
    struct kinf__demand_type *type;
    int64_t now_ms;

    (void)state;
    begin();
    type = cache("pods", 0);
    kinf__demand_give_up(&demand, type, KINF__DEMAND_REFUSED, "forbidden", 0);
    kinf__demand_note_gone(&demand, type, 0);
    assert_int_equal(ask_until_started("pods", 0), MINUTE);
    kinf__demand_note_cached(&demand, type, MINUTE);
    now_ms = 61 * MINUTE;
    kinf__demand_give_up(&demand, type, KINF__DEMAND_REFUSED, "forbidden", now_ms);
    kinf__demand_note_gone(&demand, type, now_ms);
    assert_int_equal(ask_until_started("pods", now_ms), MINUTE);
    kinf__demand_release(&demand);
}

static void few_first_lists_run_at_once(void **state)
{
    char name[16];

    (void)state;
    begin();
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "t%d", i);
        ask(name, 0);
    }
    for (int i = 0; i < KINF__DEMAND_AT_ONCE; i++)
        assert_non_null(kinf__demand_next_start(&demand, 0));
    assert_null(kinf__demand_next_start(&demand, 0));
    kinf__demand_note_cached(&demand, type_of("t0"), 0);
    assert_ptr_equal(kinf__demand_next_start(&demand, 0), type_of("t8"));
    assert_null(kinf__demand_next_start(&demand, 0));
    kinf__demand_release(&demand);
}

static void many_starts_in_a_row_are_spread(void **state)
{
    char name[16];

    (void)state;
    begin();
    for (int i = 0; i < KINF__DEMAND_IN_A_ROW; i++) {
        snprintf(name, sizeof name, "t%d", i);
        cache(name, 1000);
    }
    ask("more", 1000);
    assert_null(kinf__demand_next_start(&demand, 1000 + KINF__DEMAND_START_MS - 1));
    assert_non_null(strstr(type_of("more")->reason, "turn"));
    assert_ptr_equal(kinf__demand_next_start(&demand, 1000 + KINF__DEMAND_START_MS),
                     type_of("more"));
    kinf__demand_release(&demand);
}

static void other_rules_hold_for_what_is_cached_already(void **state)
{
    static const char *const excludes[] = { "a" };
    struct kinf__demand_type *a, *b;

    (void)state;
    begin();
    a = cache("a", 0);
    b = cache("b", 0);
    kinf__demand_set_rules(
        &demand,
        &(struct kinf__demand_rules){ .is_enabled = true, .excludes = excludes, .n_excludes = 1 });
    assert_ends(a, "onDemand.exclude", 10);
    assert_null(kinf__demand_next_end(&demand, 10));
    kinf__demand_set_rules(&demand, &(struct kinf__demand_rules){ .is_enabled = false });
    assert_ends(b, "off", 20);
    kinf__demand_release(&demand);
}

/* The last to go are those that are watched; none of them was out of use. */
static void a_lower_limit_holds_for_what_is_cached_already(void **state)
{
    struct kinf__demand_type *watched, *used, *quiet;

    (void)state;
    begin();
    watched = cache("watched", 0);
    used = cache("used", 0);
    quiet = cache("quiet", 0);
    use(watched, 1, 1, 0, 10 * MINUTE);
    use(used, 1, 0, 10 * MINUTE, 10 * MINUTE);
    use(quiet, 1, 0, 1, 10 * MINUTE);
    kinf__demand_set_rules(&demand,
                           &(struct kinf__demand_rules){ .is_enabled = true, .max_types = 2 });
    assert_ends(quiet, "onDemand.maxTypes is 2 by now, and there were 3", 10 * MINUTE);
    assert_null(kinf__demand_next_end(&demand, 10 * MINUTE));
    kinf__demand_set_rules(&demand,
                           &(struct kinf__demand_rules){ .is_enabled = true, .max_types = 1 });
    assert_ends(used, "onDemand.maxTypes is 1 by now, and there were 2", 10 * MINUTE);
    assert_null(kinf__demand_next_end(&demand, 10 * MINUTE));
    kinf__demand_release(&demand);
}

static void what_is_told_has_types_states_and_counts(void **state)
{
    struct kinf__buffer out = KINF__BUFFER_INIT, text = KINF__BUFFER_INIT;
    struct kinf__report report = { .out = &out, .now_ms = 10000, .now_wall_ms = 1000000 };

    (void)state;
    begin();
    use(cache("pods", 1000), 5 * MIB, 1, 0, 2000);
    cache("gadgets", 1000);
    kinf__demand_give_up(&demand, type_of("gadgets"), KINF__DEMAND_REFUSED, "forbidden", 1000);
    kinf__demand_note_gone(&demand, type_of("gadgets"), 1000);
    ask("nodes", 1000);
    kinf__report_open(&report, NULL, '{');
    kinf__demand_report(&demand, &report);
    kinf__report_close(&report, '}');
    assert_int_equal(kinf__report_end(&report), 0);
    assert_non_null(strstr(kinf__buffer_cstr(&out), "\"onDemand\":{\"enabled\":true"));
    assert_non_null(strstr(kinf__buffer_cstr(&out), "\"resource\":\"pods\""));
    assert_non_null(strstr(kinf__buffer_cstr(&out), "\"state\":\"cached\""));
    assert_int_equal(kinf__demand_write_metrics(&demand, 10000, &text), 0);
    assert_non_null(strstr(kinf__buffer_cstr(&text), "kinformer_on_demand_types 1\n"));
    assert_non_null(strstr(kinf__buffer_cstr(&text), "kinformer_on_demand_bytes 5242880\n"));
    assert_non_null(strstr(kinf__buffer_cstr(&text), "kinformer_on_demand_waiting_types 1\n"));
    assert_non_null(strstr(kinf__buffer_cstr(&text), "kinformer_on_demand_away_types 1\n"));
    assert_non_null(strstr(kinf__buffer_cstr(&text), "kinformer_on_demand_starts_total 2\n"));
    assert_non_null(strstr(kinf__buffer_cstr(&text),
                           "kinformer_on_demand_evictions_total{reason=\"idle\"} 0\n"));
    kinf__buffer_release(&out);
    kinf__buffer_release(&text);
    kinf__demand_release(&demand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_list_or_watch_asks_for_a_type),
        cmocka_unit_test(the_third_get_asks_for_a_type),
        cmocka_unit_test(gets_that_are_half_an_hour_apart_never_do),
        cmocka_unit_test(versions_and_groups_are_types_of_their_own),
        cmocka_unit_test(what_may_not_be_cached_stays_passed_on_and_says_why),
        cmocka_unit_test(secrets_that_are_included_are_cached),
        cmocka_unit_test(what_is_not_enabled_remembers_nothing),
        cmocka_unit_test(what_there_is_no_memory_for_is_not_remembered),
        cmocka_unit_test(discovery_is_read_again_for_what_it_did_not_have_but_seldom),
        cmocka_unit_test(what_nobody_uses_goes_and_comes_back_when_it_is_asked_for),
        cmocka_unit_test(a_watch_is_use),
        cmocka_unit_test(a_newcomer_takes_the_place_of_the_least_recently_used),
        cmocka_unit_test(a_newcomer_takes_no_place_that_is_in_use),
        cmocka_unit_test(what_waits_for_a_place_and_is_not_asked_for_any_more_is_forgotten),
        cmocka_unit_test(lists_that_grow_above_the_limit_make_the_quiet_ones_go_first),
        cmocka_unit_test(a_list_that_is_too_large_goes_before_it_is_whole_and_takes_nobody_along),
        cmocka_unit_test(of_two_in_use_that_do_not_fit_the_least_recently_used_goes),
        cmocka_unit_test(what_turns_out_too_large_once_it_is_cached_takes_nobody_along_either),
        cmocka_unit_test(what_was_refused_stays_away_for_longer_each_time),
        cmocka_unit_test(a_first_list_that_goes_on_failing_is_refused),
        cmocka_unit_test(what_fails_though_the_server_answers_is_given_up_and_tried_again),
        cmocka_unit_test(what_fails_now_and_then_stays),
        cmocka_unit_test(nothing_goes_while_the_whole_server_is_away_nor_right_behind_that),
        cmocka_unit_test(what_is_silent_goes_when_readers_would_call_it_stale),
        cmocka_unit_test(an_answer_of_long_ago_proves_nothing),
        cmocka_unit_test(an_hour_in_the_cache_makes_good),
        cmocka_unit_test(few_first_lists_run_at_once),
        cmocka_unit_test(many_starts_in_a_row_are_spread),
        cmocka_unit_test(other_rules_hold_for_what_is_cached_already),
        cmocka_unit_test(a_lower_limit_holds_for_what_is_cached_already),
        cmocka_unit_test(what_is_told_has_types_states_and_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
