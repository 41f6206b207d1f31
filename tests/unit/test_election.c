/*
 * Who leads, by every answer that a server can give and at any pace: the state machine alone, with
 * a Lease in memory. Upstream's leaderelection_test.go is here.
 */
#include <stdio.h>
#include <string.h>

#include <kinformer/kinformer.h>

#include "elector/election.h"
#include "unit/allocation.h"
#include "unit/lease_server.h"
#include "unit/test.h"

#define LEASE_MS 15000
#define RENEW_MS 10000
#define RETRY_MS 2000
#define WALL_MS  1700000000123

/* --- a server with one Lease --- */

static int serve(struct lease_server *server, const struct kinf__election_step *step)
{
    char body[sizeof server->text];

    snprintf(body, sizeof body, "%.*s", (int)step->body.len,
             step->body.bytes != NULL ? step->body.bytes : "");
    return lease_server_answer(server, step->verb, body);
}

/* --- one elector --- */

static void stand(struct kinf__election *election, const char *identity)
{
    const struct kinf__election_terms terms = { "ns",     "lock", identity, LEASE_MS, RENEW_MS,
                                                RETRY_MS, NULL,   0,        0 };

    kinf__election_init(election, &terms);
}

static int answer(struct kinf__election *election, int64_t now_ms, int code, const char *text)
{
    struct kinf_error err = KINF_ERROR_INIT;

    return kinf__election_answer(election, now_ms, 0, code, code < 0, kinf_str_from(text), &err);
}

/* Serves all that is asked at this time; returns until when nothing will be. */
static int64_t run(struct kinf__election *election, struct lease_server *server, int64_t now_ms)
{
    struct kinf__election_step step;

    server->calls[0] = '\0';
    for (;;) {
        kinf__election_next(election, now_ms, WALL_MS + now_ms, 0, &step);
        if (step.verb == KINF__ELECTION_WAIT || step.verb == KINF__ELECTION_DONE)
            return step.until_ms;
        lease_server_note(server, step.verb);
        answer(election, now_ms, serve(server, &step), server->text);
    }
}

/* One who stands, and the server; to begin with it has no Lease. */
struct bout {
    struct lease_server server;
    struct kinf__election a;
};

static int begin(void **state)
{
    struct bout *bout = calloc(1, sizeof *bout);

    stand(&bout->a, "a");
    *state = bout;
    return 0;
}

static int end(void **state)
{
    struct bout *bout = *state;

    kinf__election_release(&bout->a);
    free(bout);
    return 0;
}

static void expect_to_lead(struct bout *bout, int64_t now_ms, int64_t term)
{
    run(&bout->a, &bout->server, now_ms);
    assert_true(kinf__election_leads(&bout->a, now_ms));
    assert_int_equal(bout->a.term, term);
}

#define LEASE(spec)                                                                                \
    "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"lock\",\"namespace\":\"ns\"}" spec "}"
#define HELD(by, seconds)                                                                          \
    LEASE(",\"spec\":{\"holderIdentity\":\"" by "\",\"leaseDurationSeconds\":" seconds             \
          ",\"acquireTime\":\"2020-01-01T00:00:00.000000Z\",\"renewTime\":"                        \
          "\"2020-01-01T00:00:00.000000Z\",\"leaseTransitions\":7}")

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no %s in: %s", part, text);
}

/* --- trying --- */

static void an_absent_lease_is_created(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a;

    assert_int_equal(run(e, server, 100), 100 + RETRY_MS);
    assert_string_equal(server->calls, "get create");
    assert_true(kinf__election_leads(e, 100));
    assert_int_equal(e->term, 0);
    assert_has(server->text, "\"holderIdentity\":\"a\",\"leaseDurationSeconds\":15,");
    assert_has(server->text, "\"leaseTransitions\":0");
    assert_string_equal(kinf__election_leader(e), "a");
}

static void a_free_lease_is_taken_at_once(void **state)
{
    const char *const free_ones[] = {
        LEASE(""),
        LEASE(",\"spec\":{}"),
        LEASE(",\"spec\":null"),
        LEASE(",\"spec\":{\"holderIdentity\":\"\",\"leaseDurationSeconds\":1}"),
        LEASE(",\"spec\":{\"holderIdentity\":null}"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof free_ones / sizeof free_ones[0]; i++) {
        struct lease_server server = { .version = 4 };
        struct kinf__election e;

        lease_server_put(&server, free_ones[i]);
        stand(&e, "a");
        run(&e, &server, 100);
        assert_string_equal(server.calls, "get update");
        assert_true(kinf__election_leads(&e, 100));
        assert_int_equal(e.term, 1);
        kinf__election_release(&e);
    }
}

/* L2, L4 */
static void a_held_lease_is_waited_out_by_our_clock_alone(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a;
    int64_t now = 100;

    lease_server_put(server, HELD("b", "5"));
    /* Its times are long over: that is nothing to us. */
    while (now < 100 + 5000) {
        assert_false(kinf__election_leads(e, now));
        now = run(e, server, now);
        assert_int_equal(e->term, 0);
    }
    assert_int_equal(now, 100 + 5000);
    assert_string_equal(kinf__election_leader(e), "b");
    expect_to_lead(bout, now, 8);
}

/* L2 */
static void every_renewal_that_is_seen_begins_the_wait_anew(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a;
    int64_t now = 0;

    for (int i = 0; i < 20; i++) {
        char text[512];

        snprintf(text, sizeof text,
                 LEASE(",\"spec\":{\"holderIdentity\":\"b\",\"leaseDurationSeconds\":3,"
                       "\"renewTime\":\"t%d\"}"),
                 i);
        lease_server_put(server, text);
        now = run(e, server, now);
        assert_false(kinf__election_leads(e, now));
    }
    /* A label is no sign of life. */
    lease_server_put(server, server->text);
    run(e, server, now);
    assert_int_equal(e->free_ms, run(e, server, e->free_ms - 1));
}

static void what_cannot_be_meant_as_a_duration_is_our_own(void **state)
{
    const char *const bad[] = { HELD("b", "-3"), HELD("b", "0"), HELD("b", "1.5"),
                                HELD("b", "\"5\""), HELD("b", "99999999999999999999999") };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct lease_server server = { .version = 0 };
        struct kinf__election e;

        lease_server_put(&server, bad[i]);
        stand(&e, "a");
        run(&e, &server, 100);
        run(&e, &server, 100 + LEASE_MS - 1);
        assert_false(kinf__election_leads(&e, 100 + LEASE_MS - 1));
        run(&e, &server, 100 + LEASE_MS);
        assert_true(kinf__election_leads(&e, 100 + LEASE_MS));
        kinf__election_release(&e);
    }
}

/* L5 */
static void a_lease_of_our_name_that_we_have_not_written_is_anothers(void **state)
{
    struct lease_server server = { .version = 0 };
    struct kinf__election e;

    (void)state;
    lease_server_put(&server, HELD("a", "15"));
    stand(&e, "a");
    run(&e, &server, 100);
    assert_string_equal(server.calls, "get");
    assert_false(kinf__election_leads(&e, 100));
    run(&e, &server, 100 + LEASE_MS);
    assert_true(kinf__election_leads(&e, 100 + LEASE_MS));
    assert_int_equal(e.term, 8);
    kinf__election_release(&e);

    lease_server_put(&server, LEASE(",\"spec\":{\"holderIdentity\":\"a\"}"));
    stand(&e, "a");
    run(&e, &server, 100);
    assert_string_equal(server.calls, "get");
    kinf__election_release(&e);
}

static void renewals_are_one_write_each(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a;
    int64_t now;

    now = run(e, server, 100);
    for (int i = 0; i < 10; i++) {
        now = run(e, server, now);
        assert_string_equal(server->calls, "update");
        assert_int_equal(e->term, 0);
    }
    assert_has(server->text, "\"acquireTime\":\"2023-11-14T22:13:20.000000Z\"");
    /* Another's label: what is there is read, and written again. */
    lease_server_put(server, server->text);
    now = run(e, server, now);
    assert_string_equal(server->calls, "update get update");
    now = run(e, server, now);
    assert_string_equal(server->calls, "update");
    assert_int_equal(e->term, 0);
}

static void what_is_not_ours_is_kept(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a;

    lease_server_put(
        server, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"labels\":{\"a\":\"b\"},"
                "\"annotations\":{\"spec\":\"{\\\"x\\\"\"}},\"spec\":{\"preferredHolder\":\"c\","
                "\"leaseTransitions\":-4,\"strategy\":\"OldestEmulationVersion\",\"new\":[1,{}]},"
                "\"status\":1}");
    run(e, server, 100);
    assert_true(kinf__election_leads(e, 100));
    assert_has(server->text, "\"labels\":{\"a\":\"b\"},\"annotations\":{\"spec\":\"{\\\"x\\\"\"}}");
    assert_has(server->text, ",\"preferredHolder\":\"c\",\"strategy\":\"OldestEmulationVersion\","
                             "\"new\":[1,{}]}");
    assert_has(server->text, "\"status\":1");
    assert_null(strstr(server->text, "-4"));
}

/* --- losing --- */

/* The next request of the election, which is due at `now_ms`. */
static struct kinf__election_step expect(struct kinf__election *election, int64_t now_ms,
                                         enum kinf__election_verb verb)
{
    struct kinf__election_step step;

    kinf__election_next(election, now_ms, WALL_MS + now_ms, 0, &step);
    assert_int_equal(step.verb, verb);
    return step;
}

/* L1 */
static void time_counts_from_when_the_renewal_was_sent(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a;

    run(e, server, 0);
    assert_true(kinf__election_leads(e, RENEW_MS - 1));
    assert_false(kinf__election_leads(e, RENEW_MS));
    lease_server_put(server, server->text);
    e->is_newest = true;
    expect(e, 2000, KINF__ELECTION_UPDATE);
    answer(e, 6000, 0, server->text);
    assert_true(kinf__election_leads(e, 2000 + RENEW_MS - 1));
    assert_false(kinf__election_leads(e, 2000 + RENEW_MS));
}

/* L1 */
static void requests_of_a_leader_end_with_its_time(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a;

    run(e, server, 0);
    assert_int_equal(expect(e, 2000, KINF__ELECTION_UPDATE).until_ms, 2000 + RENEW_MS / 2);
    answer(e, 7000, KINF_ERR_TIMEOUT, "");
    assert_int_equal(expect(e, 9000, KINF__ELECTION_GET).until_ms, RENEW_MS);
}

/* L1 */
static void an_answer_that_comes_too_late_makes_no_leader(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a;
    struct kinf__election_step step;

    run(e, server, 0);
    step = expect(e, 2000, KINF__ELECTION_UPDATE);
    assert_int_equal(serve(server, &step), 0);
    answer(e, RENEW_MS, 0, server->text);
    assert_false(kinf__election_leads(e, RENEW_MS));
    /* It is ours still, but as another term. */
    expect_to_lead(bout, RENEW_MS + 3 * RETRY_MS, 1);
}

/* L3 */
static void who_finds_another_in_the_lease_leads_no_more(void **state)
{
    struct lease_server server = { .version = 0 };
    struct kinf__election e;

    (void)state;
    stand(&e, "a");
    run(&e, &server, 0);
    lease_server_put(&server, HELD("b", "15"));
    run(&e, &server, 2000);
    assert_string_equal(server.calls, "update get");
    assert_false(kinf__election_leads(&e, 2000));
    kinf__election_release(&e);

    /* Also if that was only another term of our name. */
    server.text[0] = '\0';
    stand(&e, "a");
    run(&e, &server, 0);
    *strstr(strstr(server.text, "leaseTransitions"), "0") = '1';
    lease_server_put(&server, server.text);
    run(&e, &server, 2000);
    assert_false(kinf__election_leads(&e, 2000));
    kinf__election_release(&e);
}

static void a_leader_whose_lease_was_deleted_makes_it_again(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a;

    run(e, server, 0);
    server->text[0] = '\0';
    run(e, server, 2000);
    assert_string_equal(server->calls, "update get create");
    assert_true(kinf__election_leads(e, 2000 + RENEW_MS - 1));
    assert_int_equal(e->term, 0);
}

/* L6 */
static void who_starts_behind_a_deletion_leads_beside_the_holder_until_its_renewal(void **state)
{
    struct bout *bout = *state;
    struct kinf__election b;

    expect_to_lead(bout, 0, 0);
    bout->server.text[0] = '\0';
    stand(&b, "b");
    run(&b, &bout->server, 1000);
    assert_true(kinf__election_leads(&b, 1000));
    assert_true(kinf__election_leads(&bout->a, 1000));
    run(&bout->a, &bout->server, RETRY_MS);
    assert_false(kinf__election_leads(&bout->a, RETRY_MS));
    assert_string_equal(kinf__election_leader(&bout->a), "b");
    kinf__election_release(&b);
}

/* L4, L6 */
static void a_deleted_lease_is_waited_out_by_those_who_had_seen_it(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a;

    lease_server_put(server, HELD("b", "15"));
    run(e, server, 0);
    server->text[0] = '\0';
    for (int64_t now = 0; now < LEASE_MS; now = run(e, server, now))
        assert_false(kinf__election_leads(e, now));
    expect_to_lead(bout, LEASE_MS, 8);
}

/* L4, L6, L7: who made it again releases its own time only, and that at once; its term counts, too. */
static void a_deleted_lease_is_not_released_by_who_makes_it_again(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a, anew;

    lease_server_put(server, HELD("b", "15"));
    run(e, server, 0);
    server->text[0] = '\0';
    stand(&anew, "c");
    run(&anew, server, 1000);
    assert_true(kinf__election_leads(&anew, 1000));
    run(e, server, 5000);
    assert_string_equal(kinf__election_leader(e), "c");
    kinf__election_resign(&anew);
    kinf__election_begin_release(&anew, 7000);
    run(&anew, server, 6000);
    assert_has(server->text, "\"holderIdentity\":\"\"");
    for (int64_t now = 10000; now < LEASE_MS; now = run(e, server, now))
        assert_false(kinf__election_leads(e, now));
    expect_to_lead(bout, LEASE_MS, 9);
    kinf__election_release(&anew);
}

/* L6 */
static void a_lease_that_a_person_takes_from_its_holder_is_waited_out(void **state)
{
    const char *const edited[] = {
        LEASE(""),
        LEASE(",\"spec\":{\"leaseDurationSeconds\":1}"),
        LEASE(",\"spec\":{\"holderIdentity\":\"\",\"leaseDurationSeconds\":15}"),
        LEASE(",\"spec\":{\"holderIdentity\":null,\"leaseDurationSeconds\":1}"),
        HELD("c", "1"),
        HELD("b", "1"),
        HELD("a", "1"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof edited / sizeof edited[0]; i++) {
        struct lease_server server = { .version = 0 };
        struct kinf__election e;

        lease_server_put(&server, HELD("b", "15"));
        stand(&e, "a");
        run(&e, &server, 0);
        lease_server_put(&server, edited[i]);
        for (int64_t now = 0; now < LEASE_MS; now = run(&e, &server, now))
            assert_false(kinf__election_leads(&e, now));
        run(&e, &server, LEASE_MS);
        assert_true(kinf__election_leads(&e, LEASE_MS));
        assert_int_equal(e.term, 8);
        kinf__election_release(&e);
    }
}

static void a_take_over_whose_answer_was_lost_is_known_again(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a;
    struct kinf__election_step step;

    expect(e, 0, KINF__ELECTION_GET);
    answer(e, 0, KINF_ERR_NOT_FOUND, "");
    step = expect(e, 0, KINF__ELECTION_CREATE);
    assert_int_equal(serve(server, &step), 0);
    kinf__election_answer(e, 5000, 0, KINF_ERR_TIMEOUT, false, (struct kinf_str){ NULL, 0 }, NULL);
    assert_false(kinf__election_leads(e, 5000));
    expect_to_lead(bout, 7000, 1);
}

static void answers_that_are_no_leases_are_failures(void **state)
{
    const char *const bad[] = { "", "[]", "{", "null", "3" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct lease_server server = { .version = 0 };
        struct kinf__election_step step;
        struct kinf__election e;

        stand(&e, "a");
        expect(&e, 0, KINF__ELECTION_GET);
        assert_int_equal(answer(&e, 0, 0, bad[i]), KINF_ERR_PARSE);
        assert_false(kinf__election_leads(&e, 0));
        /* Nor is the answer to a write: that it was written is known. */
        expect(&e, 3000, KINF__ELECTION_GET);
        answer(&e, 3000, KINF_ERR_NOT_FOUND, "");
        step = expect(&e, 3000, KINF__ELECTION_CREATE);
        assert_int_equal(serve(&server, &step), 0);
        answer(&e, 3000, 0, bad[i]);
        assert_true(kinf__election_leads(&e, 3000));
        run(&e, &server, 5000);
        assert_string_equal(server.calls, "get update");
        assert_int_equal(e.term, 0);
        kinf__election_release(&e);
    }
}

/* L4 */
static void a_number_at_its_end_stays_there(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a;

    lease_server_put(server, LEASE(",\"spec\":{\"leaseTransitions\":2147483647}"));
    run(e, server, 0);
    assert_true(kinf__election_leads(e, 0));
    assert_has(server->text, "\"leaseTransitions\":2147483647");
}

/* --- giving up --- */

static void released_it_is_nobodys(void **state)
{
    struct lease_server server = { .version = 0 };
    struct kinf__election e, other;

    (void)state;
    stand(&e, "a");
    run(&e, &server, 0);
    kinf__election_resign(&e);
    kinf__election_begin_release(&e, 3000);
    run(&e, &server, 1000);
    assert_string_equal(server.calls, "get update");
    assert_has(server.text, "\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,");
    assert_string_equal(kinf__election_leader(&e), "");
    assert_false(kinf__election_leads(&e, 1000));
    stand(&other, "b");
    run(&other, &server, 1000);
    assert_true(kinf__election_leads(&other, 1000));
    assert_int_equal(other.term, 1);
    kinf__election_release(&e);
    kinf__election_release(&other);
}

static void a_release_is_tried_again_after_a_conflict(void **state)
{
    struct bout *bout = *state;
    struct lease_server *server = &bout->server;
    struct kinf__election *e = &bout->a;

    run(e, server, 0);
    kinf__election_resign(e);
    kinf__election_begin_release(e, 3000);
    expect(e, 1000, KINF__ELECTION_GET);
    answer(e, 1000, 0, server->text);
    lease_server_put(server, server->text);
    expect(e, 1000, KINF__ELECTION_UPDATE);
    answer(e, 1000, KINF_ERR_CONFLICT, "");
    run(e, server, 1000);
    assert_string_equal(server->calls, "get update");
    assert_has(server->text, "\"holderIdentity\":\"\"");
}

/* L7 */
static void only_what_is_ours_is_released_and_only_in_time(void **state)
{
    struct lease_server server = { .version = 0 };
    struct kinf__election e;

    (void)state;
    stand(&e, "a");
    kinf__election_begin_release(&e, 3000);
    expect(&e, 0, KINF__ELECTION_DONE);
    kinf__election_release(&e);

    stand(&e, "a");
    run(&e, &server, 0);
    lease_server_put(&server, HELD("b", "15"));
    kinf__election_resign(&e);
    kinf__election_begin_release(&e, 3000);
    run(&e, &server, 1000);
    assert_string_equal(server.calls, "get");
    kinf__election_release(&e);

    server.text[0] = '\0';
    stand(&e, "a");
    run(&e, &server, 0);
    kinf__election_resign(&e);
    kinf__election_begin_release(&e, 3000);
    expect(&e, 3000, KINF__ELECTION_DONE);
    kinf__election_release(&e);
}

/* --- without memory --- */

/* It leads only if the server has it, and one try later at the latest. */
static void without_memory_a_try_fails_and_the_next_succeeds(void **state)
{
    (void)state;
    for (size_t n = 1;; n++) {
        struct lease_server server = { .version = 0 };
        struct kinf__election e;
        bool has_failed;

        lease_server_put(&server, HELD("", "15"));
        stand(&e, "a");
        test_fail_allocation(n);
        run(&e, &server, 0);
        run(&e, &server, 2000);
        has_failed = test_allocation_failed();
        if (kinf__election_leads(&e, 2000))
            assert_has(server.text, "\"holderIdentity\":\"a\"");
        run(&e, &server, 20000);
        assert_true(kinf__election_leads(&e, 20000));
        kinf__election_release(&e);
        if (!has_failed)
            return;
    }
}

/* --- any pace --- */

#define N_ELECTORS 3
#define N_MESSAGES 32

/* A request on its way. Who sent it may have given it up: it may arrive all the same. */
struct message {
    bool is_there, is_applied;
    int from; /* -1: nobody waits for the answer */
    enum kinf__election_verb verb;
    char body[2048], answer[2048];
    int code;
    int64_t arrives_ms, returns_ms, until_ms;
};

struct world {
    struct test_random random;
    struct lease_server server;
    struct kinf__election electors[N_ELECTORS];
    struct message messages[N_MESSAGES];
    bool is_waiting[N_ELECTORS]; /* for an answer */
    int64_t frozen_until_ms[N_ELECTORS];
    int64_t now_ms, emptied_ms;
    bool is_calm;
    int64_t newest_term, n_terms, n_emptied;
    int leader; /* of newest_term */
};

static int64_t delay(struct world *world)
{
    if (world->is_calm || test_random_below(&world->random, 4) != 0)
        return (int64_t)test_random_below(&world->random, 100);
    return (int64_t)test_random_below(&world->random, 30000);
}

static void send_step(struct world *world, int from, const struct kinf__election_step *step)
{
    size_t i = 0;

    while (i < N_MESSAGES && world->messages[i].is_there)
        i++;
    assert_true(i < N_MESSAGES);
    world->messages[i] = (struct message){
        .is_there = true,
        .from = from,
        .verb = step->verb,
        .until_ms = step->until_ms,
        .arrives_ms = world->now_ms + delay(world),
    };
    world->messages[i].returns_ms = world->messages[i].arrives_ms + delay(world);
    snprintf(world->messages[i].body, sizeof world->messages[i].body, "%.*s", (int)step->body.len,
             step->body.bytes != NULL ? step->body.bytes : "");
    world->is_waiting[from] = true;
}

static void answer_elector(struct world *world, struct message *message, int code)
{
    kinf__election_answer(
        &world->electors[message->from], world->now_ms, test_random_next(&world->random), code,
        code == KINF_ERR_CONFLICT || code == KINF_ERR_EXISTS || code == KINF_ERR_NOT_FOUND,
        kinf_str_from(message->answer), NULL);
    world->is_waiting[message->from] = false;
    message->from = -1;
}

static void move_message(struct world *world, struct message *message)
{
    if (!message->is_applied && world->now_ms >= message->arrives_ms) {
        message->is_applied = true;
        message->code = lease_server_answer(&world->server, message->verb, message->body);
        snprintf(message->answer, sizeof message->answer, "%s", world->server.text);
    }
    if (message->from >= 0 && world->frozen_until_ms[message->from] <= world->now_ms) {
        if (message->is_applied && world->now_ms >= message->returns_ms)
            answer_elector(world, message, message->code);
        else if (world->now_ms >= message->until_ms)
            answer_elector(world, message, KINF_ERR_TIMEOUT);
    }
    message->is_there = !message->is_applied || message->from >= 0;
}

static void crash(struct world *world, int i)
{
    static const char *const names[N_ELECTORS] = { "a", "b", "b" };

    for (size_t m = 0; m < N_MESSAGES; m++) {
        if (world->messages[m].from == i)
            world->messages[m].from = -1;
    }
    kinf__election_release(&world->electors[i]);
    stand(&world->electors[i], names[i]);
    world->is_waiting[i] = false;
}

/* Who leads will not do so longer than the others wait. */
static bool all_have_seen_its_time(const struct world *world)
{
    int64_t until_ms = 0;

    for (int i = 0; i < N_ELECTORS; i++) {
        const struct kinf__election *e = &world->electors[i];
        int64_t ms = e->leads_until_ms != 0 ? e->sent_ms + RENEW_MS : 0;

        until_ms = ms > until_ms ? ms : until_ms;
    }
    for (int i = 0; i < N_ELECTORS; i++) {
        if (world->electors[i].free_ms < until_ms)
            return false;
    }
    return world->server.text[0] != '\0' && until_ms > world->now_ms;
}

/* A person who leaves the number as it is. */
static void empty_lease(struct world *world)
{
    const char *number = strstr(world->server.text, "\"leaseTransitions\":");
    char text[256];

    snprintf(text, sizeof text, LEASE(",\"spec\":{\"leaseTransitions\":%d}"),
             atoi(number + strlen("\"leaseTransitions\":")));
    lease_server_put(&world->server, text);
    world->emptied_ms = world->now_ms;
    world->n_emptied++;
}

static void disturb(struct world *world, int i)
{
    switch (test_random_below(&world->random, 400)) {
    case 0:
        if (world->now_ms >= world->emptied_ms + LEASE_MS)
            crash(world, i);
        break;
    case 1:
        world->frozen_until_ms[i] =
            world->now_ms + (int64_t)test_random_below(&world->random, 60000);
        break;
    case 2: /* a label */
        if (world->server.text[0] != '\0')
            lease_server_put(&world->server, world->server.text);
        break;
    case 3:
        if (all_have_seen_its_time(world))
            empty_lease(world);
        break;
    default:
        break;
    }
}

static void move_elector(struct world *world, int i)
{
    struct kinf__election_step step;

    if (world->is_waiting[i] || world->frozen_until_ms[i] > world->now_ms)
        return;
    kinf__election_next(&world->electors[i], world->now_ms, WALL_MS + world->now_ms,
                        test_random_next(&world->random), &step);
    if (step.verb != KINF__ELECTION_WAIT)
        send_step(world, i, &step);
}

/* One leads at most, those who are halted included, and no number comes twice. */
static void check_world(struct world *world)
{
    int n_leaders = 0;

    for (int i = 0; i < N_ELECTORS; i++) {
        const struct kinf__election *e = &world->electors[i];

        if (!kinf__election_leads(e, world->now_ms))
            continue;
        n_leaders++;
        if (e->term == world->newest_term)
            assert_int_equal(i, world->leader);
        assert_true(e->term >= world->newest_term);
        world->n_terms += e->term != world->newest_term;
        world->newest_term = e->term;
        world->leader = i;
    }
    assert_true(n_leaders <= 1);
}

static void step_world(struct world *world)
{
    world->now_ms += (int64_t)test_random_below(&world->random, 200);
    for (size_t m = 0; m < N_MESSAGES; m++) {
        if (world->messages[m].is_there)
            move_message(world, &world->messages[m]);
    }
    for (int i = 0; i < N_ELECTORS; i++) {
        if (!world->is_calm)
            disturb(world, i);
        move_elector(world, i);
    }
    check_world(world);
}

static bool somebody_leads(const struct world *world)
{
    for (int i = 0; i < N_ELECTORS; i++) {
        if (kinf__election_leads(&world->electors[i], world->now_ms))
            return true;
    }
    return false;
}

static bool has_seen_enough(const struct world *world)
{
    return world->n_terms > 20 && world->n_emptied > 5;
}

static void never_two_lead_whatever_is_slow_lost_halted_or_started_again(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    size_t n_rounds = test_rounds(400000), limit = 100 * n_rounds;

    (void)state;
    world->random = test_random_init("election");
    world->newest_term = -1;
    for (int i = 0; i < N_ELECTORS; i++)
        crash(world, i);
    for (size_t i = 0; i < n_rounds || (i < limit && !has_seen_enough(world)); i++)
        step_world(world);
    assert_true(has_seen_enough(world));
    /* In quiet times one is found. */
    world->is_calm = true;
    for (int64_t end_ms = world->now_ms + 60000 + 2 * LEASE_MS; world->now_ms < end_ms;)
        step_world(world);
    assert_true(somebody_leads(world));
    for (int i = 0; i < N_ELECTORS; i++)
        kinf__election_release(&world->electors[i]);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, begin, end)
        T(an_absent_lease_is_created),
        cmocka_unit_test(a_free_lease_is_taken_at_once),
        T(a_held_lease_is_waited_out_by_our_clock_alone),
        T(every_renewal_that_is_seen_begins_the_wait_anew),
        cmocka_unit_test(what_cannot_be_meant_as_a_duration_is_our_own),
        cmocka_unit_test(a_lease_of_our_name_that_we_have_not_written_is_anothers),
        T(renewals_are_one_write_each),
        T(what_is_not_ours_is_kept),
        T(time_counts_from_when_the_renewal_was_sent),
        T(requests_of_a_leader_end_with_its_time),
        T(an_answer_that_comes_too_late_makes_no_leader),
        cmocka_unit_test(who_finds_another_in_the_lease_leads_no_more),
        T(a_leader_whose_lease_was_deleted_makes_it_again),
        T(who_starts_behind_a_deletion_leads_beside_the_holder_until_its_renewal),
        T(a_deleted_lease_is_waited_out_by_those_who_had_seen_it),
        T(a_deleted_lease_is_not_released_by_who_makes_it_again),
        cmocka_unit_test(a_lease_that_a_person_takes_from_its_holder_is_waited_out),
        T(a_take_over_whose_answer_was_lost_is_known_again),
        cmocka_unit_test(answers_that_are_no_leases_are_failures),
        T(a_number_at_its_end_stays_there),
        cmocka_unit_test(released_it_is_nobodys),
        T(a_release_is_tried_again_after_a_conflict),
        cmocka_unit_test(only_what_is_ours_is_released_and_only_in_time),
        cmocka_unit_test(without_memory_a_try_fails_and_the_next_succeeds),
        cmocka_unit_test(never_two_lead_whatever_is_slow_lost_halted_or_started_again),
#undef T
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
