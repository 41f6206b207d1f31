/*
 * The policy's times, and the bounds of its waits on simulated time. Rows of what it answers to
 * each event are in test_policy_rows.c, the scripts' words in policy_script.h.
 */
#include "reflector/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/policy_script.h"
#include "unit/test.h"

#define SYNCED "?list page=100 ?watch@100 accepted "
#define SILENT "?watch@101 accepted +150000 silent "
/* A list that has what three silent watches have not brought, and what follows it. */
#define STANDSTILL                                                                                 \
    SYNCED "bookmark=101 +150000 silent ?verify verified " SILENT "?verify verified " SILENT       \
           "?verify verified " SILENT "?list news=110 ?watch@110 accepted +150000 silent "         \
           "?list,500"

static void a_version_that_does_not_fit_is_not_taken(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct policy_run run = policy_run_new(&options);
    char rv[KINF__RV_SIZE + 1];

    (void)state;
    memset(rv, '1', sizeof rv - 1);
    rv[sizeof rv - 1] = '\0';
    policy_run_play(&run, SYNCED);
    policy_run_tell(&run, (struct kinf__policy_event){ .type = KINF__POLICY_WATCH_RV, .rv = rv });
    policy_run_play(&run, "silent ?watch@100");
}

/* A list that is asked for again and again would never be whole. */
static void a_count_that_cannot_be_meant_is_a_large_one(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_AUTO };
    struct policy_run run = policy_run_new(&options);

    (void)state;
    policy_run_play(&run, "?list,100");
    policy_run_tell(&run, (struct kinf__policy_event){ .type = KINF__POLICY_LIST_PAGE,
                                                       .rv = "100",
                                                       .continue_token = "c",
                                                       .n_items = 1,
                                                       .n_bytes = 5000,
                                                       .n_remaining = INT64_MAX });
    policy_run_play(&run, "?stream");
}

/* "For ever" is the library's word for no limit. */
static void times_without_end_are_those_of_a_year(void **state)
{
    const struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST,
                                                  .watch_timeout_ms = INT64_MAX,
                                                  .silent_after_ms = INT64_MAX,
                                                  .backoff_base_ms = INT64_MAX,
                                                  .backoff_max_ms = INT64_MAX };
    struct policy_run run = policy_run_new(&options);
    struct kinf__policy_action action;

    (void)state;
    policy_run_play(&run, SYNCED);
    for (uint64_t random = 0; random < 3; random++) {
        kinf__policy_next(&run.policy, run.now_ms, random * (UINT64_MAX / 2), &action);
        assert_int_equal(action.type, KINF__DO_WATCH);
        assert_in_range(action.timeout_s, 366 * 24 * 3600, 2 * 366 * 24 * 3600);
        assert_true(action.total_timeout_ms >= action.timeout_s * 1000);
        assert_true(action.idle_timeout_ms > INT64_C(300) * 24 * 3600 * 1000);
    }
}

static void waits_double_with_jitter_up_to_twice_the_cap(void **state)
{
    static const int64_t delays[] = { 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000 };
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct policy_run least = policy_run_new(&options), most = policy_run_new(&options);

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(delays); i++) {
        least.random = 0;
        most.random = (uint64_t)delays[i] - 1;
        policy_run_play(&least, "?list nolist=net ?wait");
        policy_run_play(&most, "?list nolist=net ?wait");
        assert_int_equal(least.action.wait_ms, delays[i]);
        assert_int_equal(most.action.wait_ms, 2 * delays[i] - 1);
    }
}

static void a_cap_below_the_first_wait_is_that(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST,
                                            .backoff_base_ms = 5000,
                                            .backoff_max_ms = 100 };
    struct policy_run run = policy_run_new(&options);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        policy_run_play(&run, "?list nolist=net ?wait");
        assert_int_equal(run.action.wait_ms, 5000);
    }
}

static void lists_and_watches_share_one_backoff(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct policy_run run = policy_run_new(&options);

    (void)state;
    policy_run_play(
        &run, "?list nolist=net ?wait ?list page=1 ?watch@1 nowatch=net ?wait ?verify noverify=net "
              "?wait ?verify noverify=503 ?wait ?watch@1 accepted error=410 ?wait");
    assert_int_equal(run.action.wait_ms, 12800);
}

static void the_backoff_starts_again_after_two_quiet_minutes(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct policy_run run = policy_run_new(&options);

    (void)state;
    policy_run_play(
        &run, "?list nolist=net ?wait ?list nolist=net ?wait ?list page=1 ?watch@1 accepted +29999 "
              "nowatch=net ?wait");
    assert_int_equal(run.action.wait_ms, 3200);
    policy_run_play(&run, "?verify verified ?watch@1 +119999 nowatch=net ?wait");
    assert_int_equal(run.action.wait_ms, 6400);
    policy_run_play(&run, "?verify verified ?watch@1 +120000 nowatch=net ?wait");
    assert_int_equal(run.action.wait_ms, 800);
}

static void a_stream_cut_each_minute_is_reopened_soon(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct policy_run run = policy_run_new(&options);

    (void)state;
    policy_run_play(&run, "?list page=1 ");
    for (int i = 0; i < 10; i++) {
        policy_run_play(&run, "?watch@1 accepted +30000 nowatch=net ?wait ?verify");
        assert_int_equal(run.action.head_timeout_ms, 10000);
        policy_run_play(&run, "verified");
    }
}

/* Which takes the server three seconds. */
static void a_server_has_time_to_refuse_a_version_of_its_future(void **state)
{
    static const struct {
        enum kinf_initial initial;
        const char *first, *again;
    } rows[] = {
        { KINF_INITIAL_LIST, "?list", "page=1 ?watch@1 accepted error=410 ?wait ?list@1" },
        { KINF_INITIAL_WATCHLIST, "?stream", "accepted initial=1 error=410 ?wait ?stream@1" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf__policy_options options = { .initial = rows[i].initial,
                                                .silent_after_ms = 6000 };
        struct policy_run run = policy_run_new(&options);

        policy_run_play(&run, rows[i].first);
        assert_int_equal(run.action.head_timeout_ms, 3000);
        policy_run_play(&run, rows[i].again);
        assert_int_equal(run.action.head_timeout_ms, 5000);
    }
}

static void retry_after_is_the_least_wait(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct policy_run run = policy_run_new(&options);
    struct kinf_error days = { KINF_ERR_TOO_MANY_REQUESTS, 429, 0, 864000000, "" };

    (void)state;
    run.random = 799;
    policy_run_play(&run, "?list nolist=429/16 ?wait");
    assert_int_equal(run.action.wait_ms, 16799);
    policy_run_tell(&run,
                    (struct kinf__policy_event){ .type = KINF__POLICY_LIST_FAILED, .err = &days });
    policy_run_next(&run);
    assert_int_equal(run.action.wait_ms, 300799);
}

static void a_wait_that_ends_early_goes_on(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct policy_run run = policy_run_new(&options);

    (void)state;
    policy_run_play(&run, "?list nolist=net +500");
    policy_run_next(&run);
    assert_int_equal(run.action.type, KINF__DO_WAIT);
    assert_int_equal(run.action.wait_ms, 300);
    run.now_ms += 300;
    policy_run_play(&run, "?list");
}

/* The state has so many. */
static void pages_that_bring_objects_follow_each_other_at_once(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST, .page_size = 500 };
    struct policy_run run = policy_run_new(&options);
    struct kinf__policy_event page = { .type = KINF__POLICY_LIST_PAGE,
                                       .rv = "7",
                                       .continue_token = "t" };

    (void)state;
    for (size_t i = 1; i <= 10 * KINF__POLICY_AT_ONCE; i++) {
        policy_run_next(&run);
        assert_int_equal(run.action.type, KINF__DO_LIST);
        page.n_items = 500 * i;
        kinf__policy_event(&run.policy, run.now_ms, run.random, &page);
    }
    policy_run_play(&run, "?list+t,500");
}

static void watch_times_are_drawn_from_their_ranges(void **state)
{
    struct test_random random = test_random_init(__func__);
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct policy_run run = policy_run_new(&options);
    int64_t least_s = INT64_MAX, most_s = 0, least_ms = INT64_MAX, most_ms = 0;

    (void)state;
    policy_run_play(&run, "?list page=1");
    for (int i = 0; i < 20000; i++) {
        run.random = test_random_next(&random);
        policy_run_next(&run);
        least_s = run.action.timeout_s < least_s ? run.action.timeout_s : least_s;
        most_s = run.action.timeout_s > most_s ? run.action.timeout_s : most_s;
        least_ms = run.action.idle_timeout_ms < least_ms ? run.action.idle_timeout_ms : least_ms;
        most_ms = run.action.idle_timeout_ms > most_ms ? run.action.idle_timeout_ms : most_ms;
        assert_int_equal(run.action.head_timeout_ms, 75000);
        assert_int_equal(run.action.total_timeout_ms, 1000 * run.action.timeout_s + 75000);
    }
    assert_int_equal(least_s, 300);
    assert_int_equal(most_s, 599);
    assert_in_range(least_ms, 127500, 127600);
    assert_in_range(most_ms, 172400, 172500);
}

static void short_watch_times_are_at_least_one_second(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST,
                                            .watch_timeout_ms = 20,
                                            .silent_after_ms = 1 };
    struct policy_run run = policy_run_new(&options);

    (void)state;
    policy_run_play(&run, "?list page=1 ?watch@1");
    assert_int_equal(run.action.timeout_s, 1);
    assert_int_equal(run.action.idle_timeout_ms, 1);
}

/* Of a server without bookmarks, what lasts is a proof, and nothing else. */
static void a_watch_was_quiet_if_it_stood_its_time_where_no_bookmarks_come(void **state)
{
    static const struct {
        enum kinf_initial initial;
        const char *script;
        bool was_quiet;
    } rows[] = {
        { KINF_INITIAL_LIST, SYNCED "+150000 silent", true },
        { KINF_INITIAL_LIST, SYNCED "+599000 ended", true },
        { KINF_INITIAL_LIST, SYNCED "+200000 ended", false },
        { KINF_INITIAL_LIST, SYNCED "ended", false },
        { KINF_INITIAL_LIST, SYNCED "+150000 nowatch=net", false },
        { KINF_INITIAL_LIST, SYNCED "+150000 error=500", false },
        { KINF_INITIAL_LIST, SYNCED "bookmark=101 +150000 silent", false },
        { KINF_INITIAL_LIST, SYNCED "bookmark=101 +9000 ended ?watch@101 accepted +150000 silent",
          false },
        { KINF_INITIAL_WATCHLIST, "?stream accepted +599000 ended", false },
        { KINF_INITIAL_WATCHLIST, "?stream accepted +150000 silent", false },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf__policy_options options = { .initial = rows[i].initial };
        struct policy_run run = policy_run_new(&options);

        policy_run_play(&run, rows[i].script);
        if (kinf__policy_was_quiet(&run.policy) != rows[i].was_quiet)
            fail_msg("%s", rows[i].script);
    }
}

/* --- bounds --- */

/* Times of requests, and how many of them fall into the minute that ends with the last. */
struct load {
    int64_t at_ms[4096];
    size_t n;
    size_t first_in_minute;
    size_t most_in_minute;
    size_t most_in_late_minute; /* one that begins a minute after the first request, or later */
};

static void request(struct load *load, int64_t now_ms)
{
    size_t n;

    assert_true(load->n < KINF__ARRAY_LEN(load->at_ms));
    load->at_ms[load->n++] = now_ms;
    while (load->at_ms[load->first_in_minute] <= now_ms - 60000)
        load->first_in_minute++;
    n = load->n - load->first_in_minute;
    if (n > load->most_in_minute)
        load->most_in_minute = n;
    if (load->at_ms[load->first_in_minute] >= load->at_ms[0] + 60000 &&
        n > load->most_in_late_minute)
        load->most_in_late_minute = n;
}

/* How a request fails, in no time. */
struct refusal {
    enum kinf__policy_event_type type; /* of a watch; a list only fails */
    bool is_accepted;                  /* the watch, before */
    bool has_begun;                    /* the list's body */
    bool is_undecodable;               /* in place of all these */
    const struct kinf_error *err;
};

static struct refusal refusal_drawn(uint64_t dice)
{
    static const enum kinf__policy_event_type types[] = { KINF__POLICY_WATCH_FAILED,
                                                          KINF__POLICY_WATCH_ERROR,
                                                          KINF__POLICY_WATCH_ENDED };

    return (struct refusal){ .type = types[(dice >> 33) % KINF__ARRAY_LEN(types)],
                             .is_accepted = dice >> 36 & 1,
                             .has_begun = dice >> 37 & 1,
                             .is_undecodable = (dice >> 38) % 16 == 0,
                             .err = &policy_errors[dice % n_policy_errors].err };
}

static void refuse(struct policy_run *run, const struct refusal *refusal)
{
    struct kinf__policy_event event = { .type = refusal->type,
                                        .err = refusal->err,
                                        .has_begun = refusal->has_begun };

    if (run->action.type == KINF__DO_LIST)
        event.type = KINF__POLICY_LIST_FAILED;
    else if (run->action.type == KINF__DO_ASK)
        event.type = KINF__POLICY_NOT_GONE;
    else if (run->action.type == KINF__DO_VERIFY)
        event.type = KINF__POLICY_VERIFY_FAILED;
    else if (refusal->is_accepted || refusal->type == KINF__POLICY_WATCH_ENDED)
        policy_run_tell(run, (struct kinf__policy_event){ .type = KINF__POLICY_WATCH_ACCEPTED });
    if (refusal->is_undecodable && run->action.type != KINF__DO_ASK &&
        run->action.type != KINF__DO_VERIFY)
        event.type = KINF__POLICY_UNDECODABLE;
    policy_run_tell(run, event);
}

/* Each state that a server can leave a policy in, and how it gets there. */
static const struct {
    enum kinf_initial initial;
    const char *script;
} situations[] = {
    { KINF_INITIAL_LIST, "" },
    { KINF_INITIAL_LIST, "?list page=1+a ?list+a" },
    { KINF_INITIAL_LIST, SYNCED },
    { KINF_INITIAL_LIST, SYNCED "nowatch=net" },
    { KINF_INITIAL_LIST,
      SYNCED "bookmark=101 nowatch=404 ?wait ?watch@101 nowatch=404 ?wait ?ask" },
    { KINF_INITIAL_LIST, SYNCED "bookmark=101 nowatch=net ?wait ?verify" },
    { KINF_INITIAL_LIST, SYNCED "bookmark=101 nowatch=net ?wait ?verify noverify=403 ?wait "
                                "?watch@101" },
    { KINF_INITIAL_LIST, SYNCED "bookmark=101 nowatch=net ?wait ?verify doubted ?list" },
    { KINF_INITIAL_LIST, STANDSTILL },
    { KINF_INITIAL_WATCHLIST, "" },
    { KINF_INITIAL_WATCHLIST, "?stream nowatch=422 ?list" },
    { KINF_INITIAL_WATCHLIST, "?stream accepted initial=1 " },
    { KINF_INITIAL_WATCHLIST, "?stream accepted initial=1 error=410 ?wait ?stream@1" },
    { KINF_INITIAL_AUTO, "" },
    { KINF_INITIAL_AUTO, "?list,100 page=1+a/3000 ?stream" },
    { KINF_INITIAL_AUTO, "?list,100 page=1+a/3000 ?stream initial=1/300000 " },
};

/* An hour of it. `refusal` NULL: another one each time. */
static void refuse_for_an_hour(size_t situation, const struct refusal *refusal,
                               struct test_random *random, bool has_jitter, struct load *ret_load)
{
    struct kinf__policy_options options = { .initial = situations[situation].initial };
    struct policy_run run = policy_run_new(&options);
    int64_t end_ms;

    *ret_load = (struct load){ .n = 0 };
    policy_run_play(&run, situations[situation].script);
    end_ms = run.now_ms + 3600000;
    while (run.now_ms < end_ms) {
        struct refusal drawn = refusal_drawn(test_random_next(random));

        run.random = has_jitter ? test_random_next(random) : 0;
        policy_run_next(&run);
        if (run.action.type == KINF__DO_WAIT) {
            run.now_ms += run.action.wait_ms;
            continue;
        }
        request(ret_load, run.now_ms);
        refuse(&run, refusal != NULL ? refusal : &drawn);
    }
}

/* What policy.h promises. */
static void expect_peace(const struct load *load)
{
    assert_true(load->most_in_minute <= 8);
    assert_true(load->most_in_late_minute <= 4);
    assert_true(load->n <= 135);
}

static void every_failure_in_every_state_leaves_the_server_in_peace(void **state)
{
    struct test_random random = test_random_init(__func__);

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(situations) * n_policy_errors * 16; i++) {
        size_t k = i / KINF__ARRAY_LEN(situations);
        struct refusal refusal = refusal_drawn((uint64_t)(k / 16 % n_policy_errors) |
                                               (uint64_t)(k % 4) << 36 | 1ULL << 38);
        struct load load;

        refusal.type =
            (enum kinf__policy_event_type[]){ KINF__POLICY_WATCH_FAILED, KINF__POLICY_WATCH_ERROR,
                                              KINF__POLICY_WATCH_ENDED,
                                              KINF__POLICY_UNDECODABLE }[k / 4 % 4];
        refusal.is_undecodable = refusal.type == KINF__POLICY_UNDECODABLE;
        refusal.err = &policy_errors[k / 16 % n_policy_errors].err;
        refuse_for_an_hour(i % KINF__ARRAY_LEN(situations), &refusal, &random, i % 2 == 0, &load);
        expect_peace(&load);
    }
}

static void every_mix_of_failures_leaves_the_server_in_peace(void **state)
{
    struct test_random random = test_random_init(__func__);

    (void)state;
    for (size_t i = 0; i < test_rounds(3000); i++) {
        struct load load;

        refuse_for_an_hour(i % KINF__ARRAY_LEN(situations), NULL, &random, i % 5 != 0, &load);
        expect_peace(&load);
    }
}

/* A server that lets lists succeed and refuses every watch: two or three requests a wait. */
static void a_server_that_expires_every_watch_is_not_hammered(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct policy_run run = policy_run_new(&options);
    struct load load = { .n = 0 };

    (void)state;
    while (run.now_ms < POLICY_RUN_BEGIN_MS + 3600000) {
        policy_run_next(&run);
        if (run.action.type == KINF__DO_WAIT) {
            run.now_ms += run.action.wait_ms;
            continue;
        }
        request(&load, run.now_ms);
        if (run.action.type == KINF__DO_LIST && run.action.rv[0] != '\0')
            policy_run_play(&run, "nolist=410");
        else if (run.action.type == KINF__DO_LIST)
            policy_run_play(&run, "page=1");
        else
            policy_run_play(&run, "accepted error=410");
    }
    assert_in_range(load.most_in_minute, 3 * 6, 3 * 8);
    assert_in_range(load.n, 3 * 110, 3 * 130);
}

/* --- any server at all --- */

/* What a server may answer to a request, good or bad. */
enum answer {
    ANSWER_PAGE,       /* of a list, the last one */
    ANSWER_MORE,       /* one with objects and a token */
    ANSWER_EMPTY,      /* one with a token alone */
    ANSWER_NO_LIST,    /* a failure, before the body or in it */
    ANSWER_ENDED,      /* of a watch: nothing comes, and it ends */
    ANSWER_NEWS,       /* one new version, and the same */
    ANSWER_OLD,        /* a version that is known, and the same */
    ANSWER_SILENT,     /* until the watch is given up */
    ANSWER_ERROR,      /* accepted, and then a failure in it */
    ANSWER_NEWS_ERROR, /* one new version, and then a failure */
    ANSWER_REFUSED,
    ANSWER_UNDECODABLE, /* of both */
    ANSWER_DEFAULT,     /* what a good server would */
    N_ANSWERS
};

/* One that draws from a few of them: what is harmless among many may go round among two. */
struct any_server {
    struct test_random *random;
    enum answer repertoire[4];
    const struct kinf_error *errors[2];
    int64_t lives_ms; /* how long a watch lasts at most */
    uint64_t version;
    size_t n_items;
    char rv[24], token[24];
};

static struct any_server any_server_drawn(struct test_random *random)
{
    static const int64_t lives_ms[] = { 1, 900, 1100, 9000, 40000 };
    struct any_server server = { .random = random, .version = 100 };

    for (size_t i = 0; i < KINF__ARRAY_LEN(server.repertoire); i++)
        server.repertoire[i] = (enum answer)(test_random_next(random) % N_ANSWERS);
    for (size_t i = 0; i < KINF__ARRAY_LEN(server.errors); i++)
        server.errors[i] = &policy_errors[test_random_next(random) % n_policy_errors].err;
    server.lives_ms = lives_ms[test_random_next(random) % KINF__ARRAY_LEN(lives_ms)];
    return server;
}

static const struct kinf_error *any_error(struct any_server *server)
{
    return server->errors[test_random_next(server->random) % 2];
}

static struct kinf__policy_event any_page(struct any_server *server, enum answer answer,
                                          const struct kinf__policy_action *action)
{
    static const int64_t remainders[] = { -1, 7, INT64_MAX };
    struct kinf__policy_event event = {
        .type = KINF__POLICY_LIST_PAGE,
        .n_remaining = remainders[test_random_next(server->random) % KINF__ARRAY_LEN(remainders)],
    };

    if (answer == ANSWER_NO_LIST || answer == ANSWER_ERROR || answer == ANSWER_REFUSED)
        return (struct kinf__policy_event){ .type = KINF__POLICY_LIST_FAILED,
                                            .err = any_error(server),
                                            .has_begun = answer == ANSWER_ERROR };
    if (answer == ANSWER_UNDECODABLE)
        return (struct kinf__policy_event){ .type = KINF__POLICY_UNDECODABLE,
                                            .err = any_error(server) };
    server->n_items = action->continue_token[0] != '\0' ? server->n_items : 0;
    server->n_items += answer != ANSWER_EMPTY;
    if (answer == ANSWER_EMPTY || answer == ANSWER_MORE) {
        snprintf(server->token, sizeof server->token, "t%llu",
                 (unsigned long long)++server->version);
        event.continue_token = server->token;
    }
    snprintf(server->rv, sizeof server->rv, "%llu", (unsigned long long)server->version);
    event.rv = server->rv;
    event.n_items = server->n_items;
    event.n_bytes = 1000 * server->n_items;
    event.has_news = test_random_next(server->random) % 2;
    return event;
}

/* What is before the end of a watch that is accepted. */
static void any_news(struct any_server *server, enum answer answer, struct policy_run *run)
{
    struct kinf__policy_event event = { .type = KINF__POLICY_WATCH_RV };

    policy_run_tell(run, (struct kinf__policy_event){ .type = KINF__POLICY_WATCH_ACCEPTED });
    if (run->action.type == KINF__DO_WATCH_LIST && answer != ANSWER_NEWS &&
        answer != ANSWER_DEFAULT)
        return;
    if (run->action.type == KINF__DO_WATCH_LIST)
        event.type = KINF__POLICY_INITIAL_END;
    else if (answer != ANSWER_NEWS && answer != ANSWER_NEWS_ERROR && answer != ANSWER_OLD)
        return;
    server->version += answer != ANSWER_OLD;
    snprintf(server->rv, sizeof server->rv, "%llu", (unsigned long long)server->version);
    event.rv = server->rv;
    event.is_bookmark = test_random_next(server->random) % 2;
    policy_run_tell(run, event);
}

static void any_watch(struct any_server *server, enum answer answer, struct policy_run *run)
{
    struct kinf__policy_event event = { .type = KINF__POLICY_WATCH_ENDED,
                                        .err = any_error(server) };
    int64_t lived_ms = (int64_t)(test_random_next(server->random) % (uint64_t)server->lives_ms);

    if (answer == ANSWER_REFUSED || answer == ANSWER_NO_LIST) {
        event.type = KINF__POLICY_WATCH_FAILED;
        policy_run_tell(run, event);
        return;
    }
    any_news(server, answer, run);
    if (answer == ANSWER_SILENT || answer == ANSWER_DEFAULT) {
        lived_ms = run->action.idle_timeout_ms;
        event.type = KINF__POLICY_WATCH_SILENT;
    } else if (answer == ANSWER_ERROR || answer == ANSWER_NEWS_ERROR) {
        event.type = test_random_next(server->random) % 2 ? KINF__POLICY_WATCH_ERROR
                                                          : KINF__POLICY_WATCH_FAILED;
    } else if (answer == ANSWER_UNDECODABLE) {
        event.type = KINF__POLICY_UNDECODABLE;
    }
    run->now_ms += lived_ms;
    policy_run_tell(run, event);
}

static void any_verification(struct any_server *server, enum answer answer, struct policy_run *run)
{
    struct kinf__policy_event event = { .type = KINF__POLICY_VERIFIED, .err = any_error(server) };

    if (answer == ANSWER_NO_LIST || answer == ANSWER_ERROR || answer == ANSWER_REFUSED)
        event.type = KINF__POLICY_VERIFY_FAILED;
    else if (answer == ANSWER_UNDECODABLE)
        event.type = KINF__POLICY_UNDECODABLE;
    else if (answer == ANSWER_NEWS || answer == ANSWER_EMPTY)
        event.type = KINF__POLICY_DOUBTED;
    policy_run_tell(run, event);
}

/* Answers what the policy asks for. A page that brought objects is not counted: the state has so
 * many. */
static void any_answer(struct any_server *server, struct policy_run *run, struct load *load)
{
    enum answer answer =
        server->repertoire[test_random_next(server->random) % KINF__ARRAY_LEN(server->repertoire)];
    size_t n_before = server->n_items;
    bool is_page;

    if (run->action.type == KINF__DO_ASK) {
        request(load, run->now_ms);
        policy_run_play(run, test_random_next(server->random) % 2 ? "gone" : "not_gone");
        return;
    }
    if (run->action.type == KINF__DO_VERIFY) {
        request(load, run->now_ms);
        any_verification(server, answer, run);
        return;
    }
    if (run->action.type != KINF__DO_LIST) {
        request(load, run->now_ms);
        any_watch(server, answer, run);
        return;
    }
    is_page = run->action.continue_token[0] != '\0';
    policy_run_tell(run, any_page(server, answer, &run->action));
    if (!is_page || server->n_items == n_before)
        request(load, run->now_ms);
    else
        run->now_ms += 20;
}

/* What policy.h promises of any server, however it mixes what it answers. */
static void no_mix_of_answers_makes_us_hammer(void **state)
{
    static const enum kinf_initial initials[] = { KINF_INITIAL_LIST, KINF_INITIAL_AUTO,
                                                  KINF_INITIAL_WATCHLIST };
    struct test_random random = test_random_init(__func__);
    size_t most = 0, most_late = 0;

    (void)state;
    for (size_t i = 0; i < test_rounds(3000); i++) {
        struct kinf__policy_options options = { .initial = initials[i % 3],
                                                .page_size = i % 2 ? 0 : 500 };
        struct policy_run run = policy_run_new(&options);
        struct any_server server = any_server_drawn(&random);
        struct load load = { .n = 0 };

        while (run.now_ms < POLICY_RUN_BEGIN_MS + 1800000) {
            run.random = i % 5 != 0 ? test_random_next(&random) : 0;
            policy_run_next(&run);
            if (run.action.type == KINF__DO_WAIT)
                run.now_ms += run.action.wait_ms;
            else
                any_answer(&server, &run, &load);
        }
        most = load.most_in_minute > most ? load.most_in_minute : most;
        most_late = load.most_in_late_minute > most_late ? load.most_in_late_minute : most_late;
    }
    printf("  at most %zu in a minute, %zu in a later one\n", most, most_late);
    assert_true(most <= KINF__POLICY_MAX_A_MINUTE);
}

/* --- a watch cache that stands still --- */

/* How a server's watch cache stands still. Its lists of the newest state come from etcd. */
static const struct {
    enum kinf_initial initial;
    const char *stream; /* what it does, as a script, to each kind of request */
    const char *list_at;
    const char *list;
    const char *watch;
    bool lists_fail; /* `list` is no success, from the first watch on */
} frozen_servers[] = {
    { KINF_INITIAL_WATCHLIST, "accepted error=big", "nolist=big", "", "accepted +150000 silent",
      false },
    { KINF_INITIAL_LIST, "", "nolist=big", "", "nowatch=init", false },
    { KINF_INITIAL_AUTO, "", "nolist=init", "", "error=init", false },
    { KINF_INITIAL_WATCHLIST, "nowatch=init", "nolist=init", "", "nowatch=500", false },
    { KINF_INITIAL_LIST, "", "nolist=500", "nolist=500", "nowatch=init", true },
    { KINF_INITIAL_WATCHLIST, "accepted error=big", "nolist=big", "nolist=500",
      "accepted +150000 silent", true },
};

/* One answer of such a server; `n_lists` is how many were complete. */
static void answer_standing_still(struct policy_run *run, size_t which, size_t *n_lists)
{
    char script[64];

    if (run->action.type == KINF__DO_WATCH_LIST) {
        policy_run_play(run, frozen_servers[which].stream);
    } else if (run->action.type == KINF__DO_WATCH) {
        policy_run_play(run, frozen_servers[which].watch);
    } else if (run->action.type == KINF__DO_VERIFY) {
        policy_run_play(run, "verified");
    } else if (run->action.rv[0] != '\0') {
        policy_run_play(run, frozen_servers[which].list_at);
    } else if (frozen_servers[which].lists_fail && *n_lists != 0) {
        policy_run_play(run, frozen_servers[which].list);
    } else {
        snprintf(script, sizeof script, "news=%zu", 1000 + ++*n_lists);
        policy_run_play(run, script);
    }
}

/* An hour; the time between two requests for the newest state, once that is found out. */
static void stand_still(size_t which, struct test_random *random, struct load *ret_load)
{
    struct kinf__policy_options options = { .initial = frozen_servers[which].initial };
    struct policy_run run = policy_run_new(&options);
    int64_t listed_ms = 0;
    size_t n_lists = 0;

    *ret_load = (struct load){ .n = 0 };
    while (run.now_ms < POLICY_RUN_BEGIN_MS + 3600000) {
        bool was_found = run.policy.frozen.is_found;

        run.random = test_random_next(random);
        policy_run_next(&run);
        if (run.action.type == KINF__DO_WAIT) {
            run.now_ms += run.action.wait_ms;
            continue;
        }
        request(ret_load, run.now_ms);
        if (run.action.type == KINF__DO_LIST && run.action.rv[0] == '\0') {
            if (was_found && listed_ms != 0 && n_lists != 0)
                assert_in_range(run.now_ms - listed_ms, 120000, 120000 + 180000 + 2 * 60000);
            listed_ms = was_found || n_lists != 0 ? run.now_ms : 0;
        }
        answer_standing_still(&run, which, &n_lists);
    }
    assert_true(run.policy.frozen.is_found);
    assert_true(frozen_servers[which].lists_fail || n_lists >= 8);
}

/* Each store is at most a few minutes behind, at one list in two minutes. */
static void a_server_whose_watch_cache_stands_still_is_listed_slowly(void **state)
{
    struct test_random random = test_random_init(__func__);

    (void)state;
    for (size_t i = 0; i < test_rounds(100) * KINF__ARRAY_LEN(frozen_servers); i++) {
        struct load load;

        stand_still(i % KINF__ARRAY_LEN(frozen_servers), &random, &load);
        assert_true(load.most_in_minute <= 3 * 8);
        assert_true(load.most_in_late_minute <= 3 * 4);
        assert_true(load.n <= 3 * 135);
    }
}

static void a_frozen_cache_is_over_as_soon_as_a_watch_delivers(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct policy_run run = policy_run_new(&options);

    (void)state;
    policy_run_play(&run, SYNCED "nowatch=init ?wait ?watch@100 nowatch=init ?wait ?watch@100 "
                                 "+120000 nowatch=init ?wait ?list,500 page=120 ?watch@120");
    assert_true(run.policy.frozen.is_found);
    policy_run_play(&run, "accepted");
    assert_true(run.policy.frozen.is_found);
    policy_run_play(&run, "bookmark=120");
    assert_false(run.policy.frozen.is_found);
}

/* With a time that is shorter than that of bookmarks, a mended server would never be heard. */
static void quiet_lists_give_the_watch_more_time(void **state)
{
    static const int64_t times_ms[] = { 20000, 40000, 80000, 150000, 150000 };
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST,
                                            .silent_after_ms = 20000 };
    struct policy_run run = policy_run_new(&options);

    (void)state;
    policy_run_play(&run, SYNCED "nowatch=init ?wait ?watch@100 nowatch=init ?wait ?watch@100 "
                                 "+20000 nowatch=init ?wait ?list,500 news=120");
    for (size_t i = 0; i < KINF__ARRAY_LEN(times_ms); i++) {
        policy_run_play(&run, "?watch@120");
        assert_int_equal(run.action.idle_timeout_ms, times_ms[i] * 85 / 100);
        assert_int_equal(run.action.head_timeout_ms, 10000);
        policy_run_play(&run, "accepted +150000 silent ?list,500 page=120");
    }
    policy_run_play(&run, "?watch@120 accepted +150000 silent ?list,500 news=130 ?watch@130");
    assert_int_equal(run.action.idle_timeout_ms, 17000);
}

static void old_signs_are_forgotten(void **state)
{
    struct kinf__frozen frozen;
    int64_t now_ms = 5;

    (void)state;
    kinf__frozen_init(&frozen, 120000);
    for (int i = 0; i < 20; i++) {
        kinf__frozen_sign(&frozen, now_ms);
        now_ms += KINF__FROZEN_SIGN_MEMORY_MS + 1;
        assert_false(kinf__frozen_begin_list(&frozen, now_ms));
    }
}

/* --- trace --- */

static void note(enum kinf__policy_state from, enum kinf__policy_event_type event,
                 enum kinf__policy_state to, void *ctx)
{
    char *text = ctx;

    sprintf(text + strlen(text), "%s-(%s)->%s ", kinf__policy_state_to_string(from),
            kinf__policy_event_to_string(event), kinf__policy_state_to_string(to));
}

static void every_transition_is_traced(void **state)
{
    char text[1024] = "";
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST,
                                            .trace = note,
                                            .trace_ctx = text };
    struct policy_run run = policy_run_new(&options);

    (void)state;
    policy_run_play(&run, "?list nolist=net ?wait ?list page=1 ?watch@1 accepted rv=2 silent stop");
    assert_string_equal(text, "listing-(list failed)->waiting waiting-(list failed)->listing "
                              "listing-(page)->watching watching-(silent)->watching "
                              "watching-(stop)->stopped ");
}

static void check_finds_what_does_not_fit_together(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct policy_run run = policy_run_new(&options);
    struct kinf__policy broken;

    (void)state;
    policy_run_play(&run, "?list page=1 ?watch@1");
    broken = run.policy;
    broken.rv[0] = '\0';
    assert_false(kinf__policy_check(&broken));
    broken = run.policy;
    strcpy(broken.list.continue_token, "t");
    assert_false(kinf__policy_check(&broken));
    strcpy(broken.list.rv, "1");
    assert_false(kinf__policy_check(&broken));
    broken = run.policy;
    broken.round.n_500 = KINF__POLICY_MAX_500;
    assert_false(kinf__policy_check(&broken));
    broken = run.policy;
    broken.state = KINF__POLICY_STREAMING;
    assert_false(kinf__policy_check(&broken));
    broken.options.initial = KINF_INITIAL_WATCHLIST;
    assert_true(kinf__policy_check(&broken));
    broken.round.n_streams = KINF__POLICY_MAX_STREAMS;
    assert_false(kinf__policy_check(&broken));
    broken = run.policy;
    broken.backoff.delay_ms = broken.backoff.max_ms + 1;
    assert_false(kinf__policy_check(&broken));
    broken = run.policy;
    broken.state = KINF__POLICY_WAITING;
    broken.after_wait = KINF__POLICY_WAITING;
    assert_false(kinf__policy_check(&broken));
}

static void every_state_and_event_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(kinf__policy_state_to_string(KINF__POLICY_STOPPED), "stopped");
    assert_string_equal(kinf__policy_state_to_string((enum kinf__policy_state)99), "unknown");
    assert_string_equal(kinf__policy_event_to_string(KINF__POLICY_STOP), "stop");
    assert_string_equal(kinf__policy_event_to_string((enum kinf__policy_event_type)99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_count_that_cannot_be_meant_is_a_large_one),
        cmocka_unit_test(times_without_end_are_those_of_a_year),
        cmocka_unit_test(a_version_that_does_not_fit_is_not_taken),
        cmocka_unit_test(waits_double_with_jitter_up_to_twice_the_cap),
        cmocka_unit_test(a_cap_below_the_first_wait_is_that),
        cmocka_unit_test(lists_and_watches_share_one_backoff),
        cmocka_unit_test(the_backoff_starts_again_after_two_quiet_minutes),
        cmocka_unit_test(a_stream_cut_each_minute_is_reopened_soon),
        cmocka_unit_test(a_server_has_time_to_refuse_a_version_of_its_future),
        cmocka_unit_test(retry_after_is_the_least_wait),
        cmocka_unit_test(a_wait_that_ends_early_goes_on),
        cmocka_unit_test(pages_that_bring_objects_follow_each_other_at_once),
        cmocka_unit_test(watch_times_are_drawn_from_their_ranges),
        cmocka_unit_test(short_watch_times_are_at_least_one_second),
        cmocka_unit_test(a_watch_was_quiet_if_it_stood_its_time_where_no_bookmarks_come),
        cmocka_unit_test(every_failure_in_every_state_leaves_the_server_in_peace),
        cmocka_unit_test(every_mix_of_failures_leaves_the_server_in_peace),
        cmocka_unit_test(a_server_that_expires_every_watch_is_not_hammered),
        cmocka_unit_test(no_mix_of_answers_makes_us_hammer),
        cmocka_unit_test(a_server_whose_watch_cache_stands_still_is_listed_slowly),
        cmocka_unit_test(a_frozen_cache_is_over_as_soon_as_a_watch_delivers),
        cmocka_unit_test(quiet_lists_give_the_watch_more_time),
        cmocka_unit_test(old_signs_are_forgotten),
        cmocka_unit_test(every_transition_is_traced),
        cmocka_unit_test(check_finds_what_does_not_fit_together),
        cmocka_unit_test(every_state_and_event_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
