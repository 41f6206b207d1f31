/*
 * Which of the electors of a set of shards leads, by every answer that a server can give and at any
 * pace: the state machines alone, with their Leases in memory.
 */
#include <stdio.h>
#include <string.h>

#include <kinformer/kinformer.h>

#include "elector/election.h"
#include "unit/allocation.h"
#include "unit/lease_server.h"
#include "unit/test.h"

#define LEASE_MS  15000
#define RENEW_MS  10000
#define RETRY_MS  2000
#define WALL_MS   1700000000123
#define N_LEASES  4
#define LIST_SIZE (N_LEASES * 4096)

/* --- a server with the Leases of a set --- */

struct leases {
    struct lease_server items[N_LEASES]; /* s-0, s-1, ... */
    char calls[256];
};

/* As a label selector does. */
static void list(const struct leases *leases, char text[LIST_SIZE])
{
    size_t len = (size_t)sprintf(text, "{\"kind\":\"LeaseList\",\"items\":[");
    const char *comma = "";

    for (size_t i = 0; i < N_LEASES; i++) {
        if (strstr(leases->items[i].text, "\"kinformer.dev/shards-of\":\"s\"") == NULL)
            continue;
        len += (size_t)sprintf(text + len, "%s%s", comma, leases->items[i].text);
        comma = ",";
    }
    sprintf(text + len, "]}");
}

static int answer_text(struct leases *leases, unsigned shard, enum kinf__election_verb verb,
                       const char *body, char text[LIST_SIZE])
{
    int code = 0;

    if (verb == KINF__ELECTION_LIST) {
        list(leases, text);
    } else {
        code = lease_server_answer(&leases->items[shard], verb, body);
        strcpy(text, leases->items[shard].text);
    }
    return code;
}

static void copy_body(const struct kinf__election_step *step, char *body, size_t size)
{
    snprintf(body, size, "%.*s", (int)step->body.len,
             step->body.bytes != NULL ? step->body.bytes : "");
}

/* --- electors --- */

static const char *const lease_names[N_LEASES] = { "s-0", "s-1", "s-2", "s-3" };

static void stand(struct kinf__election *election, const char *identity, unsigned n, unsigned shard)
{
    const struct kinf__election_terms terms = { "ns",     lease_names[shard], identity, LEASE_MS,
                                                RENEW_MS, RETRY_MS,           "s",      n,
                                                shard };

    kinf__election_init(election, &terms);
}

static bool is_refusal(int code)
{
    return code == KINF_ERR_CONFLICT || code == KINF_ERR_EXISTS || code == KINF_ERR_NOT_FOUND;
}

/* Carries out the next step. Returns false if there is none at this time. */
static bool step(struct kinf__election *election, struct leases *leases, int64_t now_ms)
{
    struct kinf__election_step step;
    struct lease_server noted = { .version = 0 };
    char body[4096], text[LIST_SIZE];
    int code;

    kinf__election_next(election, now_ms, WALL_MS + now_ms, 0, &step);
    if (step.verb == KINF__ELECTION_WAIT || step.verb == KINF__ELECTION_DONE)
        return false;
    strcpy(noted.calls, leases->calls);
    lease_server_note(&noted, step.verb);
    strcpy(leases->calls, noted.calls);
    copy_body(&step, body, sizeof body);
    code = answer_text(leases, election->terms.shard, step.verb, body, text);
    kinf__election_answer(election, now_ms, 0, code, is_refusal(code), kinf_str_from(text), NULL);
    return true;
}

/* All that is asked at this time; returns until when nothing will be. */
static int64_t run(struct kinf__election *election, struct leases *leases, int64_t now_ms)
{
    struct kinf__election_step ended;

    leases->calls[0] = '\0';
    while (step(election, leases, now_ms))
        continue;
    kinf__election_next(election, now_ms, WALL_MS + now_ms, 0, &ended);
    return ended.until_ms;
}

static void release(struct kinf__election *election, struct leases *leases, int64_t now_ms)
{
    kinf__election_resign(election);
    kinf__election_begin_release(election, now_ms + 2000);
    run(election, leases, now_ms);
}

static bool leads(const struct kinf__election *election, int64_t now_ms)
{
    return kinf__election_leads(election, now_ms);
}

/* Two of them, and the server. */
struct bout {
    struct leases leases;
    struct kinf__election a, b;
};

static int begin(void **state)
{
    *state = calloc(1, sizeof(struct bout));
    return 0;
}

static int end(void **state)
{
    struct bout *bout = *state;

    kinf__election_release(&bout->a);
    kinf__election_release(&bout->b);
    free(bout);
    return 0;
}

static void assert_has(const struct bout *bout, size_t lease, const char *part)
{
    if (strstr(bout->leases.items[lease].text, part) == NULL)
        fail_msg("no %s in: %s", part, bout->leases.items[lease].text);
}

/* --- one after another --- */

static void a_claim_is_written_between_two_looks(void **state)
{
    struct bout *bout = *state;

    stand(&bout->a, "a", 3, 1);
    assert_int_equal(run(&bout->a, &bout->leases, 100), 100 + RETRY_MS);
    assert_string_equal(bout->leases.calls, "get list create list");
    assert_true(leads(&bout->a, 100 + RENEW_MS - 1));
    assert_false(leads(&bout->a, 100 + RENEW_MS));
    assert_has(bout, 1, "\"labels\":{\"kinformer.dev/shards-of\":\"s\"}");
    assert_has(bout, 1,
               "\"annotations\":{\"kinformer.dev/shard-range\":"
               "\"0x5555555555555555,0xaaaaaaaaaaaaaaaa\"}");
    /* While it leads, nobody can begin to. */
    run(&bout->a, &bout->leases, 2100);
    assert_string_equal(bout->leases.calls, "update");
}

static void parts_that_do_not_overlap_are_led_at_once(void **state)
{
    struct bout *bout = *state;

    stand(&bout->a, "a", 3, 1);
    stand(&bout->b, "b", 3, 2);
    run(&bout->a, &bout->leases, 0);
    run(&bout->b, &bout->leases, 0);
    assert_true(leads(&bout->a, 0) && leads(&bout->b, 0));
}

static void a_part_of_anothers_is_waited_for_until_it_is_released(void **state)
{
    struct bout *bout = *state;
    int64_t now = 0;

    stand(&bout->a, "a", 3, 2);
    stand(&bout->b, "b", 4, 3);
    run(&bout->a, &bout->leases, now);
    for (int i = 0; i < 30; i++) {
        int64_t until = run(&bout->b, &bout->leases, now);

        assert_string_equal(bout->leases.calls, "get list");
        assert_true(until >= now + RETRY_MS);
        now = until;
        run(&bout->a, &bout->leases, now);
        assert_true(leads(&bout->a, now));
        assert_false(leads(&bout->b, now));
        assert_string_equal(kinf__election_blocker(&bout->b, now)->lease, "s-2");
        assert_string_equal(kinf__election_blocker(&bout->b, now)->holder, "a");
    }
    release(&bout->a, &bout->leases, now);
    run(&bout->b, &bout->leases, now + RETRY_MS);
    assert_string_equal(bout->leases.calls, "get list create list");
    assert_true(leads(&bout->b, now + RETRY_MS));
    assert_null(kinf__election_blocker(&bout->b, now + RETRY_MS));
}

/* L2 */
static void one_that_is_gone_is_waited_out_by_our_clock(void **state)
{
    struct bout *bout = *state;
    int64_t now = 100;

    stand(&bout->a, "a", 1, 0);
    stand(&bout->b, "b", 3, 2);
    run(&bout->a, &bout->leases, 0);
    while (now < 100 + LEASE_MS) {
        now = run(&bout->b, &bout->leases, now);
        assert_false(leads(&bout->b, now));
    }
    assert_int_equal(now, 100 + LEASE_MS);
    run(&bout->b, &bout->leases, now);
    assert_true(leads(&bout->b, now));
}

static void one_shard_stands_for_its_own_lease_as_others_of_the_same_number_do(void **state)
{
    struct bout *bout = *state;

    stand(&bout->a, "a", 3, 0);
    stand(&bout->b, "b", 4, 0);
    run(&bout->a, &bout->leases, 0);
    run(&bout->b, &bout->leases, 0);
    assert_string_equal(bout->leases.calls, "get");
    release(&bout->a, &bout->leases, 1000);
    run(&bout->b, &bout->leases, 5000);
    assert_true(leads(&bout->b, 5000));
    assert_has(bout, 0, "\"kinformer.dev/shard-range\":\"0x0000000000000000,0x4000000000000000\"");
    assert_int_equal(bout->b.term, 1);
}

/* --- at once --- */

/* Both have looked, and have claimed; then each looks again. */
static void claim_both(struct bout *bout)
{
    for (int i = 0; i < 3; i++) {
        assert_true(step(&bout->a, &bout->leases, 0));
        assert_true(step(&bout->b, &bout->leases, 0));
    }
    assert_string_equal(bout->leases.calls, "get get list list create create");
}

static void of_two_that_claim_at_once_that_of_more_shards_stays(void **state)
{
    struct bout *bout = *state;

    stand(&bout->a, "a", 3, 2);
    stand(&bout->b, "b", 4, 3);
    claim_both(bout);
    run(&bout->b, &bout->leases, 0);
    assert_string_equal(bout->leases.calls, "list");
    assert_false(leads(&bout->b, 0));
    run(&bout->a, &bout->leases, 0);
    assert_string_equal(bout->leases.calls, "list update");
    assert_false(leads(&bout->a, 0));
    assert_has(bout, 2, "\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,");
    run(&bout->b, &bout->leases, RETRY_MS);
    assert_string_equal(bout->leases.calls, "update list");
    assert_true(leads(&bout->b, RETRY_MS));
    run(&bout->a, &bout->leases, 3 * RETRY_MS);
    assert_string_equal(bout->leases.calls, "get list");
    assert_false(leads(&bout->a, 3 * RETRY_MS));
}

static void who_leads_makes_way_for_nobody(void **state)
{
    struct bout *bout = *state;

    stand(&bout->a, "a", 3, 2);
    stand(&bout->b, "b", 4, 3);
    assert_true(step(&bout->b, &bout->leases, 0) && step(&bout->b, &bout->leases, 0));
    run(&bout->a, &bout->leases, 0);
    run(&bout->b, &bout->leases, 0); /* claims behind a's last look */
    assert_string_equal(bout->leases.calls, "create list");
    for (int64_t now = RETRY_MS; now < 60000; now += RETRY_MS) {
        run(&bout->a, &bout->leases, now);
        assert_string_equal(bout->leases.calls, "update");
        run(&bout->b, &bout->leases, now);
        assert_string_equal(bout->leases.calls, "update list");
        assert_true(leads(&bout->a, now) && !leads(&bout->b, now));
    }
    release(&bout->a, &bout->leases, 60000);
    run(&bout->b, &bout->leases, 60000);
    assert_true(leads(&bout->b, 60000));
    assert_int_equal(bout->b.term, 0);
}

/* L1: what was true when it was asked for need not be when the answer comes. */
static void a_claim_is_not_over_by_an_answer_from_before_its_end(void **state)
{
    struct bout *bout = *state;
    struct kinf__election_step looked;
    char text[LIST_SIZE];

    stand(&bout->a, "a", 3, 2);
    stand(&bout->b, "b", 4, 3);
    assert_true(step(&bout->b, &bout->leases, 0) && step(&bout->b, &bout->leases, 0));
    run(&bout->a, &bout->leases, 0);
    for (int64_t now = 0; now < 6000; now += RETRY_MS)
        run(&bout->b, &bout->leases, now);
    assert_true(step(&bout->b, &bout->leases, 6000));
    kinf__election_next(&bout->b, 6000, WALL_MS, 0, &looked);
    assert_int_equal(looked.verb, KINF__ELECTION_LIST);
    list(&bout->leases, text);
    run(&bout->a, &bout->leases, RENEW_MS - 1); /* its first renewal that succeeds */
    kinf__election_answer(&bout->b, LEASE_MS, 0, 0, false, kinf_str_from(text), NULL);
    assert_true(leads(&bout->a, LEASE_MS));
    assert_false(leads(&bout->b, LEASE_MS));
}

/* What it has seen may be over when it sees that it holds its Lease no more. */
static void a_claim_whose_withdrawal_is_lost_is_withdrawn_later(void **state)
{
    struct bout *bout = *state;
    struct kinf__election_step lost;

    stand(&bout->a, "a", 3, 2);
    stand(&bout->b, "b", 4, 3);
    claim_both(bout);
    assert_true(step(&bout->a, &bout->leases, 0)); /* looks */
    kinf__election_next(&bout->a, 0, WALL_MS, 0, &lost);
    assert_int_equal(lost.verb, KINF__ELECTION_UPDATE);
    kinf__election_answer(&bout->a, 1000, 0, KINF_ERR_TIMEOUT, false, KINF_STR(""), NULL);
    run(&bout->a, &bout->leases, 6000);
    assert_string_equal(bout->leases.calls, "get list update");
    assert_has(bout, 2, "\"holderIdentity\":\"\"");
}

/* L7 */
static void a_claim_is_withdrawn_only_when_what_was_begun_has_ended(void **state)
{
    struct bout *bout = *state;

    stand(&bout->a, "a", 3, 2);
    stand(&bout->b, "b", 4, 3);
    assert_true(step(&bout->b, &bout->leases, 0) && step(&bout->b, &bout->leases, 0));
    run(&bout->a, &bout->leases, 0);
    run(&bout->b, &bout->leases, 0); /* claims behind a's last look */
    bout->a.is_acting = true;
    lease_server_put(&bout->leases.items[2], bout->leases.items[2].text); /* a label */
    for (int64_t now = RETRY_MS; now < 8 * RETRY_MS; now += RETRY_MS) {
        run(&bout->a, &bout->leases, now);
        assert_string_equal(bout->leases.calls, now == RETRY_MS ? "update get update list" : "");
        run(&bout->b, &bout->leases, now);
        assert_false(leads(&bout->a, now) || leads(&bout->b, now));
    }
    bout->a.is_acting = false;
    run(&bout->a, &bout->leases, 8 * RETRY_MS);
    assert_string_equal(bout->leases.calls, "update");
    run(&bout->b, &bout->leases, 8 * RETRY_MS);
    assert_true(leads(&bout->b, 8 * RETRY_MS));
}

/* --- by hand --- */

/* L6 */
static void a_leader_whose_lease_was_deleted_looks_again(void **state)
{
    struct bout *bout = *state;

    stand(&bout->a, "a", 1, 0);
    stand(&bout->b, "b", 2, 1);
    run(&bout->a, &bout->leases, 0);
    bout->leases.items[0].text[0] = '\0';
    run(&bout->a, &bout->leases, 2000);
    assert_string_equal(bout->leases.calls, "update get create list");
    assert_true(leads(&bout->a, 2000 + RENEW_MS - 1));
    assert_int_equal(bout->a.term, 0);
    /* Who has never seen its claim acts, until then at most. */
    bout->leases.items[0].text[0] = '\0';
    run(&bout->b, &bout->leases, 3000);
    assert_true(leads(&bout->b, 3000));
    run(&bout->a, &bout->leases, 4000);
    assert_string_equal(bout->leases.calls, "update get create list update");
    assert_false(leads(&bout->a, 4000));
    assert_has(bout, 0, "\"holderIdentity\":\"\"");
}

/* L6 */
static void a_leader_that_looks_again_makes_way_for_whom_it_would_be_before(void **state)
{
    struct bout *bout = *state;

    stand(&bout->a, "a", 2, 1);
    stand(&bout->b, "b", 1, 0);
    run(&bout->a, &bout->leases, 0);
    bout->leases.items[1].text[0] = '\0';
    run(&bout->b, &bout->leases, 1000);
    assert_true(leads(&bout->b, 1000));
    run(&bout->a, &bout->leases, 2000);
    assert_string_equal(bout->leases.calls, "update get create list update");
    assert_false(leads(&bout->a, 2000));
    assert_has(bout, 1, "\"holderIdentity\":\"\"");
}

/* L6 */
static void a_claim_that_a_person_deletes_is_waited_out_by_those_who_had_seen_it(void **state)
{
    struct bout *bout = *state;
    int64_t now;

    stand(&bout->a, "a", 1, 0);
    stand(&bout->b, "b", 2, 1);
    run(&bout->a, &bout->leases, 0);
    now = run(&bout->b, &bout->leases, 1000);
    bout->leases.items[0].text[0] = '\0';
    for (; now < 1000 + LEASE_MS; now = run(&bout->b, &bout->leases, now))
        assert_false(leads(&bout->b, now));
    run(&bout->b, &bout->leases, now);
    assert_true(leads(&bout->b, now));
}

static void replace(struct lease_server *lease, const char *what, const char *by)
{
    char text[sizeof lease->text];
    char *at = strstr(lease->text, what);

    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - lease->text), lease->text, by,
             at + strlen(what));
    lease_server_put(lease, text);
}

static void a_claim_that_a_person_edits_is_looked_for_and_written_again(void **state)
{
    static const char *const edits[][2] = { { "kinformer.dev/shards-of", "other" },
                                            { "kinformer.dev/shard-range", "other" },
                                            { "0x8000000000000000\"", "0x1000000000000000\"" } };
    struct bout *bout = *state;
    int64_t now = 0;

    stand(&bout->a, "a", 2, 0);
    run(&bout->a, &bout->leases, now);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        replace(&bout->leases.items[0], edits[i][0], edits[i][1]);
        now += RETRY_MS;
        run(&bout->a, &bout->leases, now);
        assert_string_equal(bout->leases.calls, "update get update list");
        assert_true(leads(&bout->a, now));
        assert_has(bout, 0, "{\"kinformer.dev/shards-of\":\"s\"");
        assert_has(bout, 0, "\"0x0000000000000000,0x8000000000000000\"");
    }
    /* What else it said before it said this, nobody knows. */
    replace(&bout->leases.items[0], "\"labels\":{", "\"labels\":{\"a\":\"b\",");
    now += RETRY_MS;
    run(&bout->a, &bout->leases, now);
    assert_string_equal(bout->leases.calls, "update get update list");
    assert_has(bout, 0, "\"a\":\"b\"");
    run(&bout->a, &bout->leases, now + RETRY_MS);
    assert_string_equal(bout->leases.calls, "update");
}

/* L6: meanwhile others, who had not seen it, have begun to act. */
static void a_claim_that_stands_again_was_not_seen_meanwhile(void **state)
{
    (void)state;
    for (int is_deleted = 0; is_deleted < 2; is_deleted++) {
        struct bout bout = { 0 };
        char text[sizeof bout.leases.items[0].text];

        stand(&bout.a, "a", 2, 0);
        stand(&bout.b, "b", 4, 1);
        run(&bout.a, &bout.leases, 0);
        strcpy(text, bout.leases.items[0].text);
        if (is_deleted)
            bout.leases.items[0].text[0] = '\0';
        else
            replace(&bout.leases.items[0], "kinformer.dev/shards-of", "other");
        run(&bout.b, &bout.leases, 1000);
        assert_true(leads(&bout.b, 1000));
        lease_server_put(&bout.leases.items[0], text);
        run(&bout.a, &bout.leases, 2000);
        assert_string_equal(bout.leases.calls, "update get update list update");
        assert_true(leads(&bout.b, 2000) && !leads(&bout.a, 2000));
        kinf__election_release(&bout.a);
        kinf__election_release(&bout.b);
    }
}

static void a_renewal_that_was_refused_is_no_reason_to_look(void **state)
{
    struct bout *bout = *state;
    struct kinf__election_step failed;

    stand(&bout->a, "a", 2, 0);
    run(&bout->a, &bout->leases, 0);
    kinf__election_next(&bout->a, RETRY_MS, WALL_MS, 0, &failed);
    assert_int_equal(failed.verb, KINF__ELECTION_UPDATE);
    kinf__election_answer(&bout->a, RETRY_MS, 0, KINF_ERR_SERVER, false, KINF_STR(""), NULL);
    run(&bout->a, &bout->leases, 2 * RETRY_MS);
    assert_string_equal(bout->leases.calls, "get update");
    assert_true(leads(&bout->a, 2 * RETRY_MS + RENEW_MS - 1));
}

static void put_by_hand(struct leases *leases, size_t lease, const char *annotations,
                        const char *spec)
{
    char text[1024];

    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"s-%zu\",\"labels\":{\"kinformer.dev/shards-of\":\"s\"},"
             "\"annotations\":{%s}},\"spec\":{%s}}",
             lease, annotations, spec);
    lease_server_put(&leases->items[lease], text);
}

static void who_does_not_say_what_it_claims_claims_all(void **state)
{
    static const char *const bad[] = { "", "\"kinformer.dev/shard-range\":\"none\"",
                                       "\"kinformer.dev/shard-range\":7",
                                       "\"kinformer.dev/shard-range\":"
                                       "\"0xc000000000000000,0x1000000000000000\"" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct bout bout = { 0 };

        put_by_hand(&bout.leases, 3, bad[i], "\"holderIdentity\":\"x\"");
        stand(&bout.a, "a", 3, 1);
        run(&bout.a, &bout.leases, 0);
        assert_string_equal(bout.leases.calls, "get list");
        run(&bout.a, &bout.leases, LEASE_MS - 1);
        assert_false(leads(&bout.a, LEASE_MS - 1));
        run(&bout.a, &bout.leases, LEASE_MS);
        assert_true(leads(&bout.a, LEASE_MS));
        kinf__election_release(&bout.a);
    }
}

/* A range that a person has written is not the old one's, which is live for a while. */
static void what_is_edited_adds_to_what_was_claimed(void **state)
{
    static const char spec[] = "\"holderIdentity\":\"x\",\"leaseDurationSeconds\":9,"
                               "\"leaseTransitions\":";
    struct bout *bout = *state;
    char text[128];

    stand(&bout->a, "a", 2, 0);
    snprintf(text, sizeof text, "%s%d", spec, 4);
    put_by_hand(&bout->leases, 3,
                "\"kinformer.dev/shard-range\":\"0x0000000000000000,0x0000000000000001\"", text);
    run(&bout->a, &bout->leases, 0);
    put_by_hand(&bout->leases, 3,
                "\"kinformer.dev/shard-range\":\"0x8000000000000000,0x10000000000000000\"", text);
    run(&bout->a, &bout->leases, 5000);
    assert_false(leads(&bout->a, 5000));
    assert_non_null(kinf__election_blocker(&bout->a, 5000));
    /* Taken over by the rules it is. */
    snprintf(text, sizeof text, "%s%d", spec, 5);
    put_by_hand(&bout->leases, 3,
                "\"kinformer.dev/shard-range\":\"0x8000000000000000,0x10000000000000000\"", text);
    run(&bout->a, &bout->leases, 8000);
    assert_true(leads(&bout->a, 8000));
}

/* Its holder acts until it finds out. */
static void a_claim_whose_duration_a_person_shortens_is_live_as_long_as_before(void **state)
{
    struct bout *bout = *state;
    int64_t now;

    stand(&bout->a, "a", 1, 0);
    stand(&bout->b, "b", 2, 1);
    run(&bout->a, &bout->leases, 0);
    now = run(&bout->b, &bout->leases, 0);
    replace(&bout->leases.items[0], "\"leaseDurationSeconds\":15", "\"leaseDurationSeconds\":1");
    for (; now < LEASE_MS; now = run(&bout->b, &bout->leases, now))
        assert_false(leads(&bout->b, now));
    run(&bout->b, &bout->leases, now);
    assert_true(leads(&bout->b, now));
}

/* L6: who begins behind the deletion knows nothing of the claim that it replaces, and ends its own. */
static void a_deleted_claim_is_not_released_with_the_lease_that_replaces_it(void **state)
{
    struct bout *bout = *state;
    struct kinf__election anew;
    int64_t now;

    stand(&bout->a, "a", 1, 0);
    stand(&bout->b, "b", 2, 1);
    stand(&anew, "c", 2, 0);
    run(&bout->a, &bout->leases, 0);
    run(&bout->b, &bout->leases, 0);
    bout->leases.items[0].text[0] = '\0';
    run(&anew, &bout->leases, 1000);
    assert_true(leads(&anew, 1000));
    assert_int_equal(anew.term, bout->a.term);
    now = run(&bout->b, &bout->leases, 3000);
    release(&anew, &bout->leases, now);
    assert_has(bout, 0, "\"holderIdentity\":\"\"");
    for (; now < LEASE_MS; now = run(&bout->b, &bout->leases, now))
        assert_false(leads(&bout->b, now));
    run(&bout->b, &bout->leases, now);
    assert_true(leads(&bout->b, now));
    kinf__election_release(&anew);
}

/* A release ends its own term and those before, not a later one that a person has numbered back. */
static void a_claim_is_not_released_by_a_term_before_its_own(void **state)
{
    struct bout *bout = *state;

    stand(&bout->a, "a", 2, 0);
    put_by_hand(&bout->leases, 3, "",
                "\"holderIdentity\":\"x\",\"leaseDurationSeconds\":9,\"leaseTransitions\":4");
    run(&bout->a, &bout->leases, 0);
    put_by_hand(&bout->leases, 3, "",
                "\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,\"leaseTransitions\":3");
    run(&bout->a, &bout->leases, 5000);
    assert_false(leads(&bout->a, 5000));
    put_by_hand(&bout->leases, 3, "",
                "\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,\"leaseTransitions\":4");
    run(&bout->a, &bout->leases, 8000);
    assert_true(leads(&bout->a, 8000));
}

/* --- trouble --- */

static void without_an_answer_to_the_list_nobody_leads(void **state)
{
    static const char *const bad[] = { "", "{}", "[]", "{\"items\":3}", "{\"items\":[3]}", "null" };
    struct bout *bout = *state;
    int64_t now = 0;

    stand(&bout->a, "a", 2, 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++, now += 10 * RETRY_MS) {
        struct kinf__election_step looked;
        struct kinf_error err = KINF_ERROR_INIT;

        while (bout->a.asked != KINF__ELECTION_LIST)
            assert_true(step(&bout->a, &bout->leases, now));
        kinf__election_next(&bout->a, now, WALL_MS, 0, &looked);
        assert_int_equal(
            kinf__election_answer(&bout->a, now, 0, 0, false, kinf_str_from(bad[i]), &err),
            KINF_ERR_PARSE);
        assert_false(leads(&bout->a, now));
        assert_string_equal(bout->leases.items[0].text, "");
    }
    run(&bout->a, &bout->leases, now);
    assert_true(leads(&bout->a, now));
}

/* Its own Lease is known again, and not waited out as another's. */
static void a_look_that_outlasts_its_lease_is_taken_again(void **state)
{
    struct bout *bout = *state;
    struct kinf__election_step looked;
    char text[LIST_SIZE];

    stand(&bout->a, "a", 2, 0);
    while (bout->leases.items[0].text[0] == '\0')
        assert_true(step(&bout->a, &bout->leases, 0));
    kinf__election_next(&bout->a, 0, WALL_MS, 0, &looked);
    assert_int_equal(looked.verb, KINF__ELECTION_LIST);
    list(&bout->leases, text);
    kinf__election_answer(&bout->a, RENEW_MS, 0, 0, false, kinf_str_from(text), NULL);
    run(&bout->a, &bout->leases, RENEW_MS);
    run(&bout->a, &bout->leases, RENEW_MS + 2 * RETRY_MS);
    assert_true(leads(&bout->a, RENEW_MS + 2 * RETRY_MS));
}

static void a_leader_without_an_answer_to_the_list_ends_in_time(void **state)
{
    struct bout *bout = *state;
    int64_t now = 2000;

    stand(&bout->a, "a", 2, 0);
    run(&bout->a, &bout->leases, 0);
    bout->leases.items[0].text[0] = '\0';
    for (; now < RENEW_MS; now += 2000) {
        struct kinf__election_step looked;

        assert_true(leads(&bout->a, now));
        while (bout->a.asked != KINF__ELECTION_LIST)
            assert_true(step(&bout->a, &bout->leases, now));
        kinf__election_next(&bout->a, now, WALL_MS, 0, &looked);
        kinf__election_answer(&bout->a, now, 0, KINF_ERR_TIMEOUT, false, KINF_STR(""), NULL);
    }
    assert_false(leads(&bout->a, RENEW_MS));
    run(&bout->a, &bout->leases, RENEW_MS + 3 * RETRY_MS);
    assert_true(leads(&bout->a, RENEW_MS + 3 * RETRY_MS));
    assert_int_equal(bout->a.term, 1);
}

static void without_memory_a_try_fails_and_a_later_one_succeeds(void **state)
{
    (void)state;
    for (size_t n = 1;; n++) {
        struct bout bout = { 0 };
        bool has_failed;

        stand(&bout.a, "a", 1, 0);
        run(&bout.a, &bout.leases, 0);
        stand(&bout.b, "b", 4, 3);
        test_fail_allocation(n);
        run(&bout.b, &bout.leases, 0);
        assert_false(leads(&bout.b, 0));
        release(&bout.a, &bout.leases, 1000);
        run(&bout.b, &bout.leases, 6000);
        has_failed = test_allocation_failed();
        run(&bout.b, &bout.leases, 40000);
        assert_true(leads(&bout.b, 40000));
        kinf__election_release(&bout.a);
        kinf__election_release(&bout.b);
        if (!has_failed)
            return;
    }
}

/* --- any pace --- */

#define N_ELECTORS 6
#define N_MESSAGES 64

/* A request on its way. Who sent it may have given it up: it may arrive all the same. */
struct message {
    bool is_there, is_applied;
    int from; /* -1: nobody waits for the answer */
    unsigned shard;
    enum kinf__election_verb verb;
    char body[4096], answer[LIST_SIZE];
    int code;
    int64_t arrives_ms, returns_ms, until_ms;
};

/* What a person has done to a Lease last. */
struct edit {
    int64_t at_ms;
    bool had_seen[N_ELECTORS]; /* for how long its holder acted at that time */
};

struct world {
    struct test_random *random;
    struct leases leases;
    struct edit edits[N_LEASES];
    struct kinf__election electors[N_ELECTORS];
    bool is_gone[N_ELECTORS], is_stopping[N_ELECTORS];
    bool is_waiting[N_ELECTORS]; /* for an answer */
    int64_t frozen_until_ms[N_ELECTORS];
    enum kinf__election_verb slow[N_ELECTORS]; /* these requests of it are slow often */
    /* What callbacks do: of which term, until when (0: it is not over), and for how long nobody else
     * may, unless they have ended. */
    int64_t told_term[N_ELECTORS], stops_ms[N_ELECTORS], acts_until_ms[N_ELECTORS];
    struct message messages[N_MESSAGES];
    int64_t now_ms, begin_ms; /* nobody begins before that */
    bool is_calm, is_duel, is_undisturbed;
    uint64_t n_begun, n_withdrawn, n_blocked, n_held_back, n_edited;
};

static bool is_leading(const struct world *world, int i)
{
    return kinf__election_leads(&world->electors[i], world->now_ms);
}

static int64_t delay(struct world *world, bool is_often_slow)
{
    if (world->is_calm || test_random_below(world->random, is_often_slow ? 2 : 8) != 0)
        return (int64_t)test_random_below(world->random, 100);
    return (int64_t)test_random_below(world->random, world->is_duel ? RENEW_MS : 3 * RENEW_MS);
}

static void send_step(struct world *world, int from, const struct kinf__election_step *asked)
{
    struct message *message = world->messages;

    while (message < world->messages + N_MESSAGES && message->is_there)
        message++;
    assert_true(message < world->messages + N_MESSAGES);
    message->is_there = true;
    message->is_applied = false;
    message->from = from;
    message->shard = world->electors[from].terms.shard;
    message->verb = asked->verb;
    message->until_ms = asked->until_ms;
    message->arrives_ms = world->now_ms + delay(world, asked->verb == world->slow[from]);
    message->returns_ms = message->arrives_ms + delay(world, asked->verb == world->slow[from]);
    if (world->is_undisturbed && asked->verb == KINF__ELECTION_LIST &&
        test_random_below(world->random, 4) == 0)
        world->frozen_until_ms[from] =
            world->now_ms + (int64_t)test_random_below(world->random, RENEW_MS);
    copy_body(asked, message->body, sizeof message->body);
    world->is_waiting[from] = true;
}

static void answer_elector(struct world *world, struct message *message, int code)
{
    bool was_leading = is_leading(world, message->from);

    kinf__election_answer(&world->electors[message->from], world->now_ms,
                          test_random_next(world->random), code, is_refusal(code),
                          kinf_str_from(message->answer), NULL);
    world->n_begun += !was_leading && is_leading(world, message->from);
    world->n_withdrawn += world->electors[message->from].is_withdrawing;
    world->is_waiting[message->from] = false;
    message->from = -1;
}

static void move_message(struct world *world, struct message *message)
{
    if (!message->is_applied && world->now_ms >= message->arrives_ms) {
        message->is_applied = true;
        message->code = answer_text(&world->leases, message->shard, message->verb, message->body,
                                    message->answer);
    }
    if (message->from >= 0 && world->frozen_until_ms[message->from] <= world->now_ms) {
        if (message->is_applied && world->now_ms >= message->returns_ms)
            answer_elector(world, message, message->code);
        else if (world->now_ms >= message->until_ms)
            answer_elector(world, message, KINF_ERR_TIMEOUT);
    }
    message->is_there = !message->is_applied || message->from >= 0;
}

/* Another process takes its place, of this many shards. */
static void begin_anew(struct world *world, int i, unsigned n, unsigned shard)
{
    static const char *const names[N_ELECTORS] = { "a", "b", "c", "d", "e", "e" };

    for (size_t m = 0; m < N_MESSAGES; m++) {
        if (world->messages[m].from == i)
            world->messages[m].from = -1;
    }
    for (size_t l = 0; l < N_LEASES; l++)
        world->edits[l].had_seen[i] = false;
    kinf__election_release(&world->electors[i]);
    stand(&world->electors[i], names[i], n, shard);
    world->electors[i].terms.lease_ms =
        RENEW_MS + 1000 * (1 + (int64_t)test_random_below(world->random, 5));
    world->slow[i] =
        (enum kinf__election_verb)test_random_below(world->random, KINF__ELECTION_DONE);
    world->is_waiting[i] = world->is_stopping[i] = false;
    world->frozen_until_ms[i] = world->stops_ms[i] = world->acts_until_ms[i] = 0;
}

static void begin_anything(struct world *world, int i)
{
    unsigned n = 1 + (unsigned)test_random_below(world->random, N_LEASES);

    begin_anew(world, i, n, (unsigned)test_random_below(world->random, n));
}

/* --- what a person does --- */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How long the holder of a Lease acts, if no more is written than what is on its way. */
static int64_t end_of_holder(const struct world *world, size_t lease)
{
    int64_t end_ms = 0;

    for (int i = 0; i < N_ELECTORS; i++) {
        const struct kinf__election *e = &world->electors[i];

        if (e->terms.shard != lease)
            continue;
        end_ms = later(end_ms, later(e->holds_until_ms, world->acts_until_ms[i]));
        if (world->is_waiting[i] && e->asked != KINF__ELECTION_GET)
            end_ms = later(end_ms, e->sent_ms + RENEW_MS);
    }
    return end_ms;
}

static int64_t term_of(const struct world *world, size_t lease)
{
    struct kinf__lease read = { .duration_ms = 0 };
    struct kinf_str text = kinf_str_from(world->leases.items[lease].text);
    int64_t term = text.len != 0 && kinf__lease_read(&read, text, NULL) == 0 ? read.transitions : 0;

    kinf__lease_release(&read);
    return term;
}

/* Of others' Leases, the claim of the present term: one of a term before is over with the next. */
static bool has_seen(const struct world *world, const struct kinf__election *e, size_t lease,
                     int64_t end_ms)
{
    if (e->terms.shard == lease)
        return e->free_ms >= end_ms;
    for (size_t i = 0; i < e->claims.n_items; i++) {
        const struct kinf__claim *claim = &e->claims.items[i];

        if (strcmp(claim->lease, lease_names[lease]) == 0 &&
            claim->transitions == term_of(world, lease) && claim->until_ms >= end_ms)
            return true;
    }
    return false;
}

/* Whoever takes this Lease over has waited until its holder acts no more. */
static bool has_seen_who_stands_for(const struct world *world, size_t lease, int64_t end_ms)
{
    for (int i = 0; i < N_ELECTORS; i++) {
        if (!world->is_gone[i] && world->electors[i].terms.shard == lease &&
            !has_seen(world, &world->electors[i], lease, end_ms))
            return false;
    }
    return true;
}

static void edit(struct world *world, size_t lease, const char *what, const char *by)
{
    int64_t end_ms = end_of_holder(world, lease);

    if (strstr(world->leases.items[lease].text, what) == NULL ||
        world->now_ms < world->edits[lease].at_ms + LEASE_MS)
        return;
    world->edits[lease].at_ms = world->now_ms;
    for (int i = 0; i < N_ELECTORS; i++)
        world->edits[lease].had_seen[i] = has_seen(world, &world->electors[i], lease, end_ms);
    replace(&world->leases.items[lease], what, by);
    world->n_edited++;
}

static void put_mark_back(struct lease_server *lease)
{
    if (strstr(lease->text, "\"other\":\"s\"") != NULL)
        replace(lease, "\"other\":\"s\"", "\"kinformer.dev/shards-of\":\"s\"");
}

static void shorten(struct world *world, size_t lease)
{
    char what[40];

    if (!has_seen_who_stands_for(world, lease, end_of_holder(world, lease)))
        return;
    for (int seconds = 10; seconds <= LEASE_MS / 1000; seconds++) {
        snprintf(what, sizeof what, "\"leaseDurationSeconds\":%d,", seconds);
        edit(world, lease, what, "\"leaseDurationSeconds\":1,");
    }
    world->begin_ms = world->now_ms + LEASE_MS;
}

static void edit_anything(struct world *world, size_t i)
{
    struct lease_server *lease = &world->leases.items[i];

    switch (test_random_below(world->random, 4)) {
    case 0:
        shorten(world, i);
        break;
    case 1:
        edit(world, i, "\"kinformer.dev/shards-of\":\"s\"", "\"other\":\"s\"");
        break;
    case 2:
        put_mark_back(lease);
        break;
    default:
        if (lease->text[0] != '\0')
            lease_server_put(lease, lease->text);
    }
}

/* --- what happens --- */

static void disturb(struct world *world, int i)
{
    switch (test_random_below(world->random, world->is_duel ? 120 : 300)) {
    case 0:
        if (world->now_ms >= world->begin_ms)
            begin_anything(world, i);
        break;
    case 1: /* stops in order; what is on its way goes on */
        if (!world->is_waiting[i] && !world->is_stopping[i]) {
            kinf__election_resign(&world->electors[i]);
            world->is_stopping[i] = true;
        }
        break;
    case 2:
        world->frozen_until_ms[i] =
            world->now_ms +
            (int64_t)test_random_below(world->random, world->is_duel ? RENEW_MS : 6 * RENEW_MS);
        break;
    case 3:
    case 4:
    case 5:
        edit_anything(world, world->electors[i].terms.shard);
        break;
    default:
        break;
    }
}

/* on_started is told as soon as one leads, and on_stopped takes its time. */
static void move_callbacks(struct world *world, int i)
{
    struct kinf__election *e = &world->electors[i];
    bool is_leader = is_leading(world, i);

    if (is_leader)
        world->acts_until_ms[i] = e->leads_until_ms;
    if (is_leader && (!e->is_acting || e->term == world->told_term[i])) {
        e->is_acting = true;
        world->told_term[i] = e->term;
        world->stops_ms[i] = 0;
    } else if (e->is_acting && world->stops_ms[i] == 0) {
        world->stops_ms[i] = world->now_ms + (int64_t)test_random_below(world->random, 20000);
    } else if (e->is_acting && world->now_ms >= world->stops_ms[i] &&
               world->frozen_until_ms[i] <= world->now_ms) {
        e->is_acting = false;
    }
}

static void move_elector(struct world *world, int i)
{
    struct kinf__election_step asked;

    if (world->is_gone[i] || world->is_waiting[i] || world->frozen_until_ms[i] > world->now_ms)
        return;
    if (world->is_stopping[i] && !world->electors[i].is_releasing) {
        if (world->electors[i].is_acting)
            return;
        kinf__election_begin_release(&world->electors[i], world->now_ms + 2000);
    }
    kinf__election_next(&world->electors[i], world->now_ms, WALL_MS + world->now_ms,
                        test_random_next(world->random), &asked);
    if (asked.verb == KINF__ELECTION_DONE) {
        if (world->now_ms >= world->begin_ms)
            begin_anything(world, i);
    } else if (asked.verb != KINF__ELECTION_WAIT) {
        send_step(world, i, &asked);
    }
}

static bool do_overlap(const struct world *world, int i, int k)
{
    return kinf__shard_ranges_overlap(world->electors[i].claims.range,
                                      world->electors[k].claims.range);
}

/* Leads, or ends what it had begun while it may take its time for that (L7). */
static bool acts(const struct world *world, int i)
{
    return is_leading(world, i) ||
           (world->electors[i].is_acting && world->now_ms < world->acts_until_ms[i]);
}

/* L6: a person has touched the Lease of the first one, which has not renewed it since, and the other
 * one had not seen it. */
static bool cannot_know(const struct world *world, int i, int k)
{
    const struct edit *touched = &world->edits[world->electors[i].terms.shard];

    return !touched->had_seen[k] && world->acts_until_ms[i] <= touched->at_ms + RENEW_MS;
}

/* L8: no hash is acted on twice, those who are halted included. */
static void check_world(struct world *world)
{
    for (int i = 0; i < N_ELECTORS; i++) {
        world->n_blocked += world->electors[i].blocked_until_ms > world->now_ms;
        world->n_held_back += world->electors[i].is_withdrawing && world->electors[i].is_acting;
        for (int k = 0; k < i; k++) {
            if (acts(world, i) && acts(world, k) && do_overlap(world, i, k) &&
                !cannot_know(world, i, k) && !cannot_know(world, k, i))
                fail_msg("%u/%u and %u/%u act at once", world->electors[i].terms.shard,
                         world->electors[i].terms.n_shards, world->electors[k].terms.shard,
                         world->electors[k].terms.n_shards);
        }
    }
}

static void step_world(struct world *world)
{
    world->now_ms += (int64_t)test_random_below(world->random, 200);
    for (size_t m = 0; m < N_MESSAGES; m++) {
        if (world->messages[m].is_there)
            move_message(world, &world->messages[m]);
    }
    for (int i = 0; i < N_ELECTORS; i++) {
        if (!world->is_calm && !world->is_undisturbed && !world->is_gone[i])
            disturb(world, i);
        move_elector(world, i);
        move_callbacks(world, i);
    }
    check_world(world);
}

/* Whether somebody leads who has what this one is to have. */
static bool is_waiting_for_a_leader(const struct world *world, int i)
{
    for (int k = 0; k < N_ELECTORS; k++) {
        if (k != i && is_leading(world, k) &&
            (do_overlap(world, i, k) ||
             world->electors[i].terms.shard == world->electors[k].terms.shard))
            return true;
    }
    return false;
}

/* Its claim, or its turn in a Lease, is behind one that waits itself. */
static bool is_behind_one_that_waits(const struct world *world, int i)
{
    for (int k = 0; k < N_ELECTORS; k++) {
        if (k != i && world->electors[k].holds_until_ms > world->now_ms &&
            (do_overlap(world, i, k) ||
             world->electors[i].terms.shard == world->electors[k].terms.shard) &&
            is_waiting_for_a_leader(world, k))
            return true;
    }
    return false;
}

static void settle(struct world *world)
{
    int64_t end_ms = world->now_ms + 60000 + 3 * LEASE_MS;

    world->is_calm = true;
    while (world->now_ms < end_ms)
        step_world(world);
    for (int i = 0; i < N_ELECTORS; i++) {
        if (!world->is_gone[i] && world->frozen_until_ms[i] <= world->now_ms &&
            !is_leading(world, i) && !is_waiting_for_a_leader(world, i) &&
            !is_behind_one_that_waits(world, i))
            fail_msg("%u/%u waits for nobody", world->electors[i].terms.shard,
                     world->electors[i].terms.n_shards);
    }
}

/* The processes of one number of shards replace whatever there was: killed, not stopped. */
static void roll_out(struct world *world)
{
    int n = 1 + (int)test_random_below(world->random, N_LEASES);

    for (int i = 0; i < N_ELECTORS; i++) {
        world->is_gone[i] = i >= n;
        begin_anew(world, i, (unsigned)n, (unsigned)(i < n ? i : 0));
    }
    settle(world);
    for (int i = 0; i < n; i++) {
        if (!is_leading(world, i))
            fail_msg("%d/%d does not lead", i, n);
    }
    memset(world->is_gone, 0, sizeof world->is_gone);
    world->is_calm = false;
}

static void forget_all(struct world *world)
{
    memset(&world->leases, 0, sizeof world->leases);
    memset(world->messages, 0, sizeof world->messages);
    memset(world->edits, 0, sizeof world->edits);
    world->begin_ms = world->now_ms;
}

/* Processes of several numbers of shards, which have never seen each other, begin all at once. */
static void begin_at_once(struct world *world)
{
    forget_all(world);
    for (int i = 0; i < N_ELECTORS; i++)
        begin_anything(world, i);
    settle(world);
}

static bool is_in_the_way(const struct world *world, int i, int k)
{
    return do_overlap(world, i, k) &&
           world->electors[i].terms.shard != world->electors[k].terms.shard;
}

/* Two that are in each other's way begin at once, so that both claim, and go on as long as they can.
 * Undisturbed, the renewals of the one are slow, and who looks is halted until the answer is old. */
static void duel(struct world *world, size_t n_steps, bool is_undisturbed)
{
    forget_all(world);
    world->is_duel = true;
    world->is_calm = false;
    do {
        begin_anything(world, 0);
        begin_anything(world, 1);
    } while (!is_in_the_way(world, 0, 1));
    for (int i = 2; i < N_ELECTORS; i++) {
        begin_anything(world, i);
        world->is_gone[i] = true;
    }
    if (is_undisturbed) {
        world->slow[0] = KINF__ELECTION_UPDATE;
        world->electors[0].terms.lease_ms = RENEW_MS + 1000;
    }
    world->is_undisturbed = is_undisturbed;
    while (n_steps-- > 0)
        step_world(world);
    memset(world->is_gone, 0, sizeof world->is_gone);
    world->is_duel = world->is_undisturbed = false;
}

#define N_STEPS 20000

static void run_world(struct test_random *random)
{
    struct world *world = calloc(1, sizeof *world);
    size_t n_steps = test_rounds(N_STEPS);

    world->random = random;
    world->now_ms = world->begin_ms = LEASE_MS;
    for (int i = 0; i < N_ELECTORS; i++)
        begin_anything(world, i);
    for (int round = 0; round < 4; round++) {
        world->is_calm = false;
        for (size_t i = 0; i < n_steps; i++)
            step_world(world);
        settle(world);
        roll_out(world);
    }
    for (int round = 0; round < 20; round++)
        begin_at_once(world);
    for (size_t i = 0; i < n_steps / 50; i++)
        duel(world, 300, i % 2 == 0);
    assert_true(world->n_begun > 20 && world->n_blocked > 100 && world->n_withdrawn > 5);
    assert_true(world->n_edited > 20);
    assert_true(n_steps < N_STEPS ||
                world->n_held_back > 5); /* which few steps may never come to */
    for (int i = 0; i < N_ELECTORS; i++)
        kinf__election_release(&world->electors[i]);
    free(world);
}

/* L8 */
static void no_hash_is_led_twice_and_each_is_led_in_the_end(void **state)
{
    (void)state;
    test_model("claims", 4, run_world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, begin, end)
        T(a_claim_is_written_between_two_looks),
        T(parts_that_do_not_overlap_are_led_at_once),
        T(a_part_of_anothers_is_waited_for_until_it_is_released),
        T(one_that_is_gone_is_waited_out_by_our_clock),
        T(one_shard_stands_for_its_own_lease_as_others_of_the_same_number_do),
        T(of_two_that_claim_at_once_that_of_more_shards_stays),
        T(who_leads_makes_way_for_nobody),
        T(a_claim_is_not_over_by_an_answer_from_before_its_end),
        T(a_claim_whose_withdrawal_is_lost_is_withdrawn_later),
        T(a_claim_is_withdrawn_only_when_what_was_begun_has_ended),
        T(a_leader_whose_lease_was_deleted_looks_again),
        T(a_leader_that_looks_again_makes_way_for_whom_it_would_be_before),
        T(a_claim_that_a_person_deletes_is_waited_out_by_those_who_had_seen_it),
        T(a_claim_that_a_person_edits_is_looked_for_and_written_again),
        cmocka_unit_test(a_claim_that_stands_again_was_not_seen_meanwhile),
        T(a_renewal_that_was_refused_is_no_reason_to_look),
        cmocka_unit_test(who_does_not_say_what_it_claims_claims_all),
        T(what_is_edited_adds_to_what_was_claimed),
        T(a_claim_whose_duration_a_person_shortens_is_live_as_long_as_before),
        T(a_deleted_claim_is_not_released_with_the_lease_that_replaces_it),
        T(a_claim_is_not_released_by_a_term_before_its_own),
        T(without_an_answer_to_the_list_nobody_leads),
        T(a_look_that_outlasts_its_lease_is_taken_again),
        T(a_leader_without_an_answer_to_the_list_ends_in_time),
        cmocka_unit_test(without_memory_a_try_fails_and_a_later_one_succeeds),
        cmocka_unit_test(no_hash_is_led_twice_and_each_is_led_in_the_end),
#undef T
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
