/*
 * The policy, row by row from what the API server does and client-go answers, and the bounds of its
 * waits on simulated time.
 *
 * A script is words. Words that begin with '?' are what the policy must ask for next:
 *   ?list ?list@RV ?list,LIMIT ?list+TOKEN,LIMIT ?stream ?stream@RV ?watch@RV ?wait ?stop
 * (?wait also lets the time pass). The others are what happens:
 *   page=RV page=RV+TOKEN  a page, with a continue token
 *   page=RV+TOKEN/N        the first page of N kB, of a state of 100 times as many bytes
 *   initial=RV initial=RV/N  the bookmark behind the initial events, behind N kB
 *   nolist=E  cutlist=E    a list failed before, or after the body began
 *   accepted rv=RV ended silent nowatch=E error=E undecodable stop
 *   +MS                    time passes
 */
#include "reflector/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/test.h"

static const struct {
    const char *name;
    struct kinf_error err;
} errors[] = {
    { "net", { KINF_ERR_NETWORK, 0, 0, 0, "refused" } },
    { "tls", { KINF_ERR_TLS, 0, 0, 0, "" } },
    { "time", { KINF_ERR_TIMEOUT, 0, 0, 0, "" } },
    { "trunc", { KINF_ERR_TRUNCATED, 0, 0, 0, "" } },
    { "parse", { KINF_ERR_PARSE, 0, 0, 0, "" } },
    { "nomem", { KINF_ERR_NO_MEMORY, 0, 0, 0, "" } },
    { "400", { KINF_ERR_SERVER, 400, 0, 0, "" } },
    { "401", { KINF_ERR_UNAUTHORIZED, 401, 0, 0, "" } },
    { "403", { KINF_ERR_FORBIDDEN, 403, 0, 0, "" } },
    { "404", { KINF_ERR_NOT_FOUND, 404, 0, 0, "" } },
    { "405", { KINF_ERR_SERVER, 405, 0, 0, "" } },
    { "410", { KINF_ERR_EXPIRED, 410, 0, 0, "" } },
    { "422", { KINF_ERR_SERVER, 422, 0, 0, "" } },
    { "429", { KINF_ERR_TOO_MANY_REQUESTS, 429, 0, 0, "" } },
    { "429/16", { KINF_ERR_TOO_MANY_REQUESTS, 429, 0, 16000, "" } },
    { "500", { KINF_ERR_SERVER, 500, 0, 0, "" } },
    { "503", { KINF_ERR_SERVER, 503, 0, 0, "" } },
    { "504", { KINF_ERR_SERVER, 504, 0, 0, "" } },
    { "big", { KINF_ERR_RV_TOO_LARGE, 504, 0, 1000, "" } },
};

/* One run of a policy. */
struct run {
    struct kinf__policy policy;
    int64_t now_ms;
    uint64_t random;
    struct kinf__policy_action action;
};

static struct run new_run(const struct kinf__policy_options *options)
{
    struct run run = { .now_ms = 1000000 };

    kinf__policy_init(&run.policy, options);
    return run;
}

static const struct kinf_error *error_named(const char *name)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(errors); i++) {
        if (strcmp(errors[i].name, name) == 0)
            return &errors[i].err;
    }
    fail_msg("no error %s", name);
    return NULL;
}

static void next(struct run *run)
{
    kinf__policy_next(&run->policy, run->now_ms, run->random, &run->action);
    assert_true(kinf__policy_check(&run->policy));
}

static void tell(struct run *run, struct kinf__policy_event event)
{
    kinf__policy_event(&run->policy, run->now_ms, run->random, &event);
    assert_true(kinf__policy_check(&run->policy));
}

/* What the policy asks for, as a script would write it. */
static void describe(const struct kinf__policy_action *action, char *buf, size_t size)
{
    static const char *const names[] = {
        [KINF__DO_LIST] = "?list", [KINF__DO_WATCH_LIST] = "?stream", [KINF__DO_WATCH] = "?watch"
    };
    int len = 0;

    if (action->type == KINF__DO_WAIT || action->type == KINF__DO_STOP) {
        snprintf(buf, size, "%s", action->type == KINF__DO_WAIT ? "?wait" : "?stop");
        return;
    }
    len = snprintf(buf, size, "%s", names[action->type]);
    if (action->rv[0] != '\0')
        len += snprintf(buf + len, size - (size_t)len, "@%s", action->rv);
    if (action->continue_token[0] != '\0')
        len += snprintf(buf + len, size - (size_t)len, "+%s", action->continue_token);
    if (action->limit != 0)
        snprintf(buf + len, size - (size_t)len, ",%zu", action->limit);
}

static void expect(struct run *run, const char *word, const char *script)
{
    char asked[256];

    next(run);
    describe(&run->action, asked, sizeof asked);
    if (strcmp(asked, word) != 0)
        fail_msg("asks for %s instead of %s in: %s", asked, word, script);
    if (run->action.type == KINF__DO_WAIT)
        run->now_ms += run->action.wait_ms;
}

/* Cuts "VALUE/N" in two and returns N, 0 if there is none. */
static uint64_t cut_kb(char *value)
{
    char *slash = strchr(value, '/');

    if (slash == NULL)
        return 0;
    *slash = '\0';
    return strtoull(slash + 1, NULL, 10) * 1000;
}

static void happen_page(struct kinf__policy_event *event, char *value)
{
    char *plus;

    event->type = KINF__POLICY_LIST_PAGE;
    event->n_bytes = cut_kb(value);
    event->n_items = 100;
    event->n_remaining = event->n_bytes != 0 ? 9900 : -1;
    plus = strchr(value, '+');
    if (plus != NULL) {
        *plus = '\0';
        event->continue_token = plus + 1;
    }
}

static void happen(struct run *run, const char *name, char *value)
{
    struct kinf__policy_event event = { .rv = value };

    if (strcmp(name, "page") == 0) {
        happen_page(&event, value);
    } else if (strcmp(name, "initial") == 0) {
        event.type = KINF__POLICY_INITIAL_END;
        event.n_bytes = cut_kb(value);
    } else if (strcmp(name, "nolist") == 0 || strcmp(name, "cutlist") == 0) {
        event.type = KINF__POLICY_LIST_FAILED;
        event.has_begun = name[0] == 'c';
        event.err = error_named(value);
    } else if (strcmp(name, "nowatch") == 0) {
        event.type = KINF__POLICY_WATCH_FAILED;
        event.err = error_named(value);
    } else if (strcmp(name, "error") == 0) {
        event.type = KINF__POLICY_WATCH_ERROR;
        event.err = error_named(value);
    } else if (strcmp(name, "rv") == 0) {
        event.type = KINF__POLICY_WATCH_RV;
    } else {
        while (strcmp(kinf__policy_event_to_string(event.type), name) != 0) {
            if (event.type++ == KINF__POLICY_STOP)
                fail_msg("no event %s", name);
        }
    }
    tell(run, event);
}

static void play(struct run *run, const char *script)
{
    char words[1024], *rest = words, *word;

    snprintf(words, sizeof words, "%s", script);
    while ((word = strsep(&rest, " ")) != NULL) {
        char *value = strchr(word, '=');

        if (word[0] == '?')
            expect(run, word, script);
        else if (word[0] == '+')
            run->now_ms += atoi(word + 1);
        else if (word[0] != '\0') {
            if (value != NULL)
                *value++ = '\0';
            happen(run, word, value);
        }
    }
}

struct row {
    const char *what;
    size_t page_size;
    const char *script;
};

static void play_rows(enum kinf_initial initial, const struct row *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++) {
        struct kinf__policy_options options = { .initial = initial,
                                                .page_size = rows[i].page_size };
        struct run run = new_run(&options);

        printf("  %s\n", rows[i].what);
        play(&run, rows[i].script);
    }
}
#define PLAY_ROWS(initial, rows) play_rows((initial), (rows), KINF__ARRAY_LEN(rows))

/* A list at 100 and an accepted watch from it; the same by a watch list. */
#define STREAMED "?stream accepted initial=100 "
#define SYNCED   "?list page=100 ?watch@100 accepted "

static void lists_follow_the_table(void **state)
{
    static const struct row rows[] = {
        { "01: the first list asks for the newest state, in one piece", 0,
          "?list page=100 ?watch@100" },
        { "01-limit1: pages keep the first page's version", 500,
          "?list,500 page=100+a ?list+a,500 page=100+b ?list+b,500 page=100 ?watch@100" },
        { "01-cr: an empty token is none", 500, "?list,500 page=7+ ?watch@7" },
        { "05-inconsistent: a later page's version is not taken", 500,
          "?list,500 page=100+a ?list+a,500 page=236 ?watch@100" },
        { "refused: backoff, the same list", 0, "?list nolist=net ?wait ?list" },
        { "05-continue-expired: on page 2 the whole list at once, without a limit", 500,
          "?list,500 page=100+a ?list+a,500 nolist=410 ?list page=120 ?watch@120 accepted "
          "error=410 ?wait ?list@120 page=130 ?watch@130" },
        { "07-bad-continue: the same", 500,
          "?list,500 page=100+a ?list+a,500 nolist=400 ?list page=120 ?watch@120" },
        { "that whole list refused as expired: backoff", 500,
          "?list,500 page=100+a ?list+a,500 nolist=410 ?list nolist=410 ?wait ?list" },
        { "that whole list cut short: backoff, pages again", 500,
          "?list,500 page=100+a ?list+a,500 nolist=410 ?list cutlist=net ?wait ?list,500" },
        { "08-429 on page 2: backoff, the same page", 500,
          "?list,500 page=100+a ?list+a,500 nolist=429 ?wait ?list+a,500 page=100 ?watch@100" },
        { "18-etcd-down on page 2: backoff, the same page", 500,
          "?list,500 page=100+a ?list+a,500 cutlist=net ?wait ?list+a,500" },
        { "06-too-large: a relist at N refused, the newest at once", 0,
          SYNCED "error=410 ?wait ?list@100 nolist=big ?list page=90 ?watch@90" },
        { "05-exact-expired: the same", 0,
          SYNCED "error=410 ?wait ?list@100 nolist=410 ?list page=190 ?watch@190" },
        { "07-bad-rv-list: the newest, after a backoff or at once", 0,
          SYNCED "error=410 ?wait ?list@100 nolist=400 ?list page=190 ?watch@190" },
        { "at once only one time until a list succeeds", 0,
          SYNCED
          "error=410 ?wait ?list@100 nolist=big ?list nolist=big ?wait ?list nolist=big "
          "?wait ?list page=90 ?watch@90 accepted error=410 ?wait ?list@90 nolist=big ?list" },
        { "a version once refused is not tried again until a list succeeds", 0,
          SYNCED "error=410 ?wait ?list@100 nolist=big ?list nolist=net ?wait ?list nolist=503 "
                 "?wait ?list page=5 ?watch@5" },
        { "19-truncated: a list in one piece cut short continues in pages, for good", 0,
          "?list cutlist=net ?wait ?list,500 page=100+a ?list+a,500 page=100 ?watch@100 accepted "
          "error=410 ?wait ?list,500 page=110 ?watch@110" },
        { "a relist at N cut short: pages of the newest state, not of exactly N", 0,
          SYNCED "error=410 ?wait ?list@100 cutlist=time ?wait ?list,500" },
        { "10-sigkill-slow-list: without a byte it is no cut", 0, "?list nolist=net ?wait ?list" },
        { "a body that is no list: backoff, no pages", 0, "?list cutlist=parse ?wait ?list" },
        { "12-crd-gone-list, 09-403, 09-401: backoff, the same", 0,
          "?list nolist=404 ?wait ?list nolist=403 ?wait ?list nolist=401 ?wait ?list page=1 "
          "?watch@1" },
        { "12-conversion-broken-list, 18-etcd-down-list, 09-503: the same", 0,
          "?list nolist=500 ?wait ?list nolist=504 ?wait ?list nolist=503 ?wait ?list" },
        { "pages are asked for, but a relist at N is in one piece", 500,
          "?list,500 page=100 ?watch@100 accepted error=410 ?wait ?list@100 page=120 ?watch@120" },
        { "an item that cannot be decoded: backoff, the list again from its first page", 500,
          "?list,500 page=100+a ?list+a,500 undecodable ?wait ?list,500 page=101 ?watch@101" },
        { "stop ends every state", 0, "?list stop ?stop" },
        { "and nothing brings it back", 0, "?list nolist=net ?wait stop ?stop page=1 ?stop" },
    };

    (void)state;
    PLAY_ROWS(KINF_INITIAL_LIST, rows);
}

static void watches_follow_the_table(void **state)
{
    static const struct row rows[] = {
        { "02-basic: events and bookmarks advance, a clean end re-watches at once", 0,
          SYNCED "rv=101 rv=102 rv=150 +8000 ended ?watch@150 accepted rv=151 +9000 ended "
                 "?watch@151" },
        { "02-timeout-no-events: a clean end without events, not short", 0,
          SYNCED "+1000 ended ?watch@100" },
        { "02-timeout-1s and 14-list-kind: short and nothing new is a failure", 0,
          SYNCED "+999 ended ?wait ?watch@100 accepted ended ?wait ?watch@100" },
        { "short, but with something new", 0, SYNCED "rv=101 +5 ended ?watch@101" },
        { "short, and the same version again", 0, SYNCED "rv=100 +5 ended ?wait ?watch@100" },
        { "an event without version changes nothing", 0, SYNCED "rv= +5 ended ?wait ?watch@100" },
        { "10-down: refused, backoff, no relist", 0,
          "?list page=100 ?watch@100 nowatch=net ?wait ?watch@100 nowatch=net ?wait ?watch@100 "
          "nowatch=tls ?wait ?watch@100 nowatch=time ?wait ?watch@100" },
        { "10-sigkill: broken, backoff, from the last version", 0,
          SYNCED "rv=105 nowatch=net ?wait ?watch@105" },
        { "19: a frame cut by a clean end", 0, SYNCED "rv=105 nowatch=trunc ?wait ?watch@105" },
        { "08-429: backoff, never a relist", 0,
          "?list page=100 ?watch@100 nowatch=429 ?wait ?watch@100 nowatch=429 ?wait ?watch@100 "
          "nowatch=429 ?wait ?watch@100 nowatch=429 ?wait ?watch@100" },
        { "09-503, 504: backoff, no relist", 0,
          "?list page=100 ?watch@100 nowatch=503 ?wait ?watch@100 nowatch=504 ?wait ?watch@100 "
          "nowatch=503 ?wait ?watch@100 nowatch=503 ?wait ?watch@100" },
        { "07-bad-rv-watch: the third 500 in a row relists", 0,
          "?list page=100 ?watch@100 nowatch=500 ?wait ?watch@100 nowatch=500 ?wait ?watch@100 "
          "nowatch=500 ?wait ?list@100 nolist=400 ?list page=7 ?watch@7 nowatch=500 ?wait "
          "?watch@7" },
        { "three 500 with something new between them are not in a row", 0,
          "?list page=100 ?watch@100 nowatch=500 ?wait ?watch@100 nowatch=500 ?wait ?watch@100 "
          "accepted rv=101 error=500 ?wait ?watch@101 nowatch=500 ?wait ?watch@101" },
        { "401, 403, 404: backoff, the same watch", 0,
          "?list page=100 ?watch@100 nowatch=401 ?wait ?watch@100 nowatch=403 ?wait ?watch@100 "
          "nowatch=404 ?wait ?watch@100" },
        { "400, 405, 422: nothing gets better by itself, relist", 0,
          "?list page=100 ?watch@100 nowatch=422 ?wait ?list@100 page=100 ?watch@100 nowatch=405 "
          "?wait ?list@100 page=100 ?watch@100 nowatch=400 ?wait ?list@100" },
        { "05-too-old: backoff, relist not older than the last version", 0,
          SYNCED "rv=232 error=410 ?wait ?list@232 page=234 ?watch@234" },
        { "410 as the response", 0, "?list page=100 ?watch@100 nowatch=410 ?wait ?list@100" },
        { "ERROR 429, 504, 500: backoff, re-watch", 0,
          SYNCED "error=429 ?wait ?watch@100 accepted error=504 ?wait ?watch@100 accepted "
                 "error=500 ?wait ?watch@100" },
        { "ERROR too large: the newest state", 0,
          SYNCED "error=big ?wait ?list page=50 ?watch@50" },
        { "any other ERROR, or one that is no Status: backoff, relist", 0,
          SYNCED "error=403 ?wait ?list@100 page=101 ?watch@101 accepted error=parse ?wait "
                 "?list@101 page=102 ?watch@102 accepted error=404 ?wait ?list@102" },
        { "a StorageReadError event that stays relists", 0,
          SYNCED "error=500 ?wait ?watch@100 accepted error=500 ?wait ?watch@100 accepted "
                 "error=500 ?wait ?list@100 page=103 ?watch@103" },
        { "silence: re-watch at once, one request", 0,
          SYNCED "rv=105 +150000 silent ?watch@105 accepted +150000 silent ?watch@105" },
        { "out of memory for an event: it comes again", 0,
          SYNCED "rv=105 nowatch=nomem ?wait ?watch@105" },
        { "an event that cannot be decoded: backoff, relist", 0,
          SYNCED "rv=105 undecodable ?wait ?list@105 page=106 ?watch@106" },
        { "stop in a watch and in its wait", 0, SYNCED "stop ?stop ended ?stop" },
    };

    (void)state;
    PLAY_ROWS(KINF_INITIAL_LIST, rows);
}

static void watch_lists_follow_the_table(void **state)
{
    static const struct row rows[] = {
        { "03: the state and what follows come in one stream", 0,
          "?stream accepted initial=100 rv=101 rv=102 +9000 ended ?watch@102" },
        { "03-watchlist-empty: a short stream that brought the bookmark is no failure", 0,
          STREAMED "+5 ended ?watch@100 accepted +5 ended ?wait ?watch@100" },
        { "no version is taken before the bookmark", 0,
          "?stream accepted rv=500 rv=501 +2000 ended ?stream accepted rv=502 nowatch=net ?wait "
          "?stream accepted initial=90 +2000 ended ?watch@90" },
        { "a page size is for lists", 500, STREAMED "+1000 ended ?watch@100" },
        { "a second round is not older than the last version", 0,
          STREAMED "rv=101 error=410 ?wait ?stream@101 accepted initial=200 ended ?watch@200" },
        { "after the bookmark it is a watch: 429, silence, breaks, short and empty ones", 0,
          STREAMED "error=429 ?wait ?watch@100 accepted +150000 silent ?watch@100 nowatch=net "
                   "?wait ?watch@100 accepted ended ?wait ?watch@100" },
        { "07-watchlist-gate-off: 422, a list at once, and no watch list for ten minutes", 0,
          "?stream nowatch=422 ?list page=100 ?watch@100 accepted +60000 error=410 ?wait ?list@100 "
          "page=110 ?watch@110 accepted +600000 error=410 ?wait ?stream@110 nowatch=422 "
          "?list@110" },
        { "200 with ERROR 500 (etcd too old): a list at once, the next round asks again", 0,
          "?stream accepted error=500 ?list page=100 ?watch@100 accepted error=410 ?wait "
          "?stream@100" },
        { "07-bad-rv-watchlist, 400, 405, 503: the same", 0,
          "?stream nowatch=500 ?list page=100 ?watch@100 accepted error=410 ?wait ?stream@100 "
          "nowatch=400 ?list@100 page=101 ?watch@101 accepted error=410 ?wait ?stream@101 "
          "nowatch=405 ?list@101 page=102 ?watch@102 accepted error=410 ?wait ?stream@102 "
          "nowatch=503 ?list@102" },
        { "an ERROR that is no Status, or 403: a list", 0,
          "?stream accepted error=parse ?list page=100 ?watch@100 accepted error=410 ?wait "
          "?stream@100 accepted error=403 ?list@100" },
        { "at once only one time until a round succeeds", 0,
          "?stream nowatch=500 ?list nolist=500 ?wait ?list nolist=500 ?wait ?list page=1 "
          "?watch@1 accepted error=410 ?wait ?stream@1 nowatch=410 ?stream nowatch=500 ?wait "
          "?list" },
        { "08-429: backoff, the watch list again, however often", 0,
          "?stream nowatch=429 ?wait ?stream nowatch=429 ?wait ?stream accepted error=429 ?wait "
          "?stream nowatch=429 ?wait ?stream accepted initial=5 rv=6 ended ?watch@6" },
        { "refused, without an answer, 401, 403, 404: the same", 0,
          "?stream nowatch=net ?wait ?stream nowatch=time ?wait ?stream nowatch=tls ?wait ?stream "
          "nowatch=401 ?wait ?stream nowatch=403 ?wait ?stream nowatch=404 ?wait ?stream "
          "nowatch=nomem ?wait ?stream" },
        { "06-watchlist-too-large and Expired: the newest state at once", 0,
          STREAMED "error=410 ?wait ?stream@100 accepted error=big ?stream accepted initial=50 "
                   "error=410 ?wait ?stream@50 nowatch=410 ?stream accepted initial=60" },
        { "12-*-frozen: too large for ever leads to a list after three", 0,
          STREAMED
          "error=410 ?wait ?stream@100 accepted error=big ?stream accepted error=big ?wait "
          "?stream accepted error=big ?wait ?list page=60 ?watch@60 accepted error=410 "
          "?wait ?stream@60" },
        { "at the first round, too", 0,
          "?stream accepted error=big ?wait ?stream accepted error=big ?wait ?stream accepted "
          "error=big ?wait ?list" },
        { "08-watchlist-cut-before-end-bookmark: ended, the watch list again at once", 0,
          "?stream accepted +2500 ended ?stream accepted +1000 ended ?stream accepted initial=7 "
          "rv=8 ended ?watch@8" },
        { "ended very soon: after a backoff", 0, "?stream accepted +999 ended ?wait ?stream" },
        { "broken before the bookmark: after a backoff", 0,
          "?stream accepted +9000 nowatch=net ?wait ?stream accepted nowatch=trunc ?wait ?stream" },
        { "a server that never sends the bookmark: a list after three", 0,
          "?stream accepted +300000 ended ?stream accepted +150000 silent ?stream accepted "
          "nowatch=net ?wait ?list page=9 ?watch@9" },
        { "whose list is cut short, too: in pages", 0,
          "?stream accepted error=500 ?list cutlist=net ?wait ?list,500 page=9 ?watch@9 accepted "
          "error=410 ?wait ?stream@9" },
        { "an initial event that cannot be decoded: backoff, the watch list again", 0,
          "?stream accepted undecodable ?wait ?stream" },
        { "an event that cannot be decoded: the same at the last version", 0,
          STREAMED "rv=101 undecodable ?wait ?stream@101" },
        { "stop before the bookmark", 0, "?stream accepted stop ?stop initial=1 ?stop" },
    };

    (void)state;
    PLAY_ROWS(KINF_INITIAL_WATCHLIST, rows);
}

static void auto_goes_by_the_size(void **state)
{
    static const struct row rows[] = {
        { "a state of one page is complete with it", 0,
          "?list,100 page=100/1500 ?watch@100 accepted error=410 ?wait ?list@100" },
        { "below 200 MB: one list", 0,
          "?list,100 page=100+a/2000 ?list page=101/200000 ?watch@101 accepted error=410 ?wait "
          "?list@101" },
        { "above: a watch list, and for a relist again", 0,
          "?list,100 page=100+a/2001 ?stream accepted initial=101/200001 rv=102 error=410 ?wait "
          "?stream@102 accepted initial=110/200001" },
        { "a state that has shrunk or grown by the last round", 0,
          "?list,100 page=100+a/2001 ?stream accepted initial=101/200000 error=410 ?wait ?list@101 "
          "page=102/200001 ?watch@102 accepted error=410 ?wait ?stream@102" },
        { "a server that does not count: a list", 0, "?list,100 page=100+a ?list page=100" },
        { "the first page failed: again", 0,
          "?list,100 nolist=net ?wait ?list,100 cutlist=net ?wait ?list,100 nolist=429 ?wait "
          "?list,100 page=100+a/1 ?list" },
        { "a list in one piece cut short: watch lists from then on", 0,
          "?list,100 page=100+a/1 ?list cutlist=time ?wait ?stream accepted initial=7 rv=8 "
          "error=410 ?wait ?stream@8" },
        { "a relist cut short: the same", 0,
          "?list,100 page=100+a/1 ?list page=101 ?watch@101 accepted error=410 ?wait ?list@101 "
          "cutlist=trunc ?wait ?stream@101" },
        { "pages when there is no watch list", 0,
          "?list,100 page=100+a/1 ?list cutlist=net ?wait ?stream nowatch=422 ?list,500 "
          "page=100+b/1 ?list+b,500 page=100/9 ?watch@100 accepted error=410 ?wait ?list,500" },
        { "above, and no watch list: one list", 0,
          "?list,100 page=100+a/2001 ?stream nowatch=422 ?list page=101/200001 ?watch@101 accepted "
          "error=410 ?wait ?list@101" },
        { "a page size means list", 500,
          "?list,500 page=100+a/9000 ?list+a,500 page=100/900000 ?watch@100 accepted error=410 "
          "?wait ?list@100 cutlist=net ?wait ?list,500" },
        { "an item that cannot be decoded: the same again", 0,
          "?list,100 undecodable ?wait ?list,100 page=1+a/1 ?list undecodable ?wait ?list" },
    };
    struct kinf__policy_options options = { .has_selector = true };
    struct run run = new_run(&options);

    (void)state;
    PLAY_ROWS(KINF_INITIAL_AUTO, rows);
    play(&run, "?list cutlist=time ?wait ?stream accepted initial=7/1 ended ?watch@7");
}

static void a_version_that_does_not_fit_is_not_taken(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct run run = new_run(&options);
    char rv[KINF__RV_SIZE + 1];

    (void)state;
    memset(rv, '1', sizeof rv - 1);
    rv[sizeof rv - 1] = '\0';
    play(&run, SYNCED);
    tell(&run, (struct kinf__policy_event){ .type = KINF__POLICY_WATCH_RV, .rv = rv });
    play(&run, "silent ?watch@100");
}

static void waits_double_with_jitter_up_to_twice_the_cap(void **state)
{
    static const int64_t delays[] = { 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000 };
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct run least = new_run(&options), most = new_run(&options);

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(delays); i++) {
        least.random = 0;
        most.random = (uint64_t)delays[i] - 1;
        play(&least, "?list nolist=net ?wait");
        play(&most, "?list nolist=net ?wait");
        assert_int_equal(least.action.wait_ms, delays[i]);
        assert_int_equal(most.action.wait_ms, 2 * delays[i] - 1);
    }
}

static void lists_and_watches_share_one_backoff(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct run run = new_run(&options);

    (void)state;
    play(&run, "?list nolist=net ?wait ?list page=1 ?watch@1 nowatch=net ?wait ?watch@1 accepted "
               "error=410 ?wait");
    assert_int_equal(run.action.wait_ms, 3200);
}

static void the_backoff_starts_again_after_two_quiet_minutes(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct run run = new_run(&options);

    (void)state;
    play(&run,
         "?list nolist=net ?wait ?list nolist=net ?wait ?list page=1 ?watch@1 accepted +29999 "
         "nowatch=net ?wait");
    assert_int_equal(run.action.wait_ms, 3200);
    play(&run, "?watch@1 +119999 nowatch=net ?wait");
    assert_int_equal(run.action.wait_ms, 6400);
    play(&run, "?watch@1 +120000 nowatch=net ?wait");
    assert_int_equal(run.action.wait_ms, 800);
}

static void a_stream_cut_each_minute_is_reopened_soon(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct run run = new_run(&options);

    (void)state;
    play(&run, "?list page=1 ");
    for (int i = 0; i < 10; i++) {
        play(&run, "?watch@1 accepted +30000 nowatch=net ?wait");
        assert_int_equal(run.action.wait_ms, 800);
    }
}

static void retry_after_is_the_least_wait(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct run run = new_run(&options);
    struct kinf_error days = { KINF_ERR_TOO_MANY_REQUESTS, 429, 0, 864000000, "" };

    (void)state;
    run.random = 799;
    play(&run, "?list nolist=429/16 ?wait");
    assert_int_equal(run.action.wait_ms, 16799);
    tell(&run, (struct kinf__policy_event){ .type = KINF__POLICY_LIST_FAILED, .err = &days });
    next(&run);
    assert_int_equal(run.action.wait_ms, 300799);
}

static void a_wait_that_ends_early_goes_on(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct run run = new_run(&options);

    (void)state;
    play(&run, "?list nolist=net +500");
    next(&run);
    assert_int_equal(run.action.type, KINF__DO_WAIT);
    assert_int_equal(run.action.wait_ms, 300);
    run.now_ms += 300;
    play(&run, "?list");
}

static void watch_times_are_drawn_from_their_ranges(void **state)
{
    struct test_random random = test_random_init(__func__);
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct run run = new_run(&options);
    int64_t least_s = INT64_MAX, most_s = 0, least_ms = INT64_MAX, most_ms = 0;

    (void)state;
    play(&run, "?list page=1");
    for (int i = 0; i < 20000; i++) {
        run.random = test_random_next(&random);
        next(&run);
        least_s = run.action.timeout_s < least_s ? run.action.timeout_s : least_s;
        most_s = run.action.timeout_s > most_s ? run.action.timeout_s : most_s;
        least_ms = run.action.idle_timeout_ms < least_ms ? run.action.idle_timeout_ms : least_ms;
        most_ms = run.action.idle_timeout_ms > most_ms ? run.action.idle_timeout_ms : most_ms;
        assert_int_equal(run.action.head_timeout_ms, 75000);
    }
    assert_int_equal(least_s, 300);
    assert_int_equal(most_s, 599);
    assert_in_range(least_ms, 120000, 120100);
    assert_in_range(most_ms, 179900, 180000);
}

static void short_watch_times_are_at_least_one_second(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST,
                                            .watch_timeout_ms = 20,
                                            .silent_after_ms = 1 };
    struct run run = new_run(&options);

    (void)state;
    play(&run, "?list page=1 ?watch@1");
    assert_int_equal(run.action.timeout_s, 1);
    assert_int_equal(run.action.idle_timeout_ms, 1);
}

/* --- bounds --- */

/* Times of requests, and how many of them fall into the minute that ends with the last. */
struct load {
    int64_t at_ms[4096];
    size_t n;
    size_t first_in_minute;
    size_t most_in_minute;
};

static void request(struct load *load, int64_t now_ms)
{
    assert_true(load->n < KINF__ARRAY_LEN(load->at_ms));
    load->at_ms[load->n++] = now_ms;
    while (load->at_ms[load->first_in_minute] <= now_ms - 60000)
        load->first_in_minute++;
    if (load->n - load->first_in_minute > load->most_in_minute)
        load->most_in_minute = load->n - load->first_in_minute;
}

/* Answers one request at random with a failure, in no time. */
static void refuse(struct run *run, uint64_t dice)
{
    struct kinf__policy_event event = { .err = &errors[dice % KINF__ARRAY_LEN(errors)].err };

    if (run->action.type == KINF__DO_LIST) {
        event.type = KINF__POLICY_LIST_FAILED;
        event.has_begun = dice >> 32 & 1;
    } else {
        bool is_accepted = dice >> 34 & 1;

        event.type = dice >> 33 & 1 ? KINF__POLICY_WATCH_FAILED : KINF__POLICY_WATCH_ERROR;
        if (is_accepted)
            tell(run, (struct kinf__policy_event){ .type = KINF__POLICY_WATCH_ACCEPTED });
        if (is_accepted && dice >> 35 & 1)
            event.type = KINF__POLICY_WATCH_ENDED;
    }
    tell(run, event);
}

/* An hour of a server that refuses whatever it is asked, from a reflector's start or from its
 * watch. */
static void refuse_for_an_hour(struct test_random *random, enum kinf_initial initial,
                               const char *before, bool has_jitter, struct load *ret_load)
{
    struct kinf__policy_options options = { .initial = initial };
    struct run run = new_run(&options);
    int64_t end_ms;

    *ret_load = (struct load){ .n = 0 };
    play(&run, before);
    end_ms = run.now_ms + 3600000;
    while (run.now_ms < end_ms) {
        run.random = has_jitter ? test_random_next(random) : 0;
        next(&run);
        if (run.action.type == KINF__DO_WAIT) {
            run.now_ms += run.action.wait_ms;
            continue;
        }
        request(ret_load, run.now_ms);
        refuse(&run, test_random_next(random));
    }
}

static void a_server_that_refuses_everything_is_left_in_peace(void **state)
{
    static const enum kinf_initial initials[] = { KINF_INITIAL_LIST, KINF_INITIAL_WATCHLIST,
                                                  KINF_INITIAL_AUTO };
    static const char *const before[] = { "?list page=1 ", "?stream accepted initial=1 ",
                                          "?list,100 page=1+a/3000 ?stream initial=1/300000 " };
    struct test_random random = test_random_init(__func__);

    (void)state;
    for (size_t i = 0; i < test_rounds(3000); i++) {
        struct load load;
        size_t n_late = 0;

        refuse_for_an_hour(&random, initials[i / 2 % 3], i % 2 ? before[i / 2 % 3] : "", i % 5 != 0,
                           &load);
        assert_true(load.most_in_minute <= 8);
        assert_true(load.n <= 135);
        for (size_t k = 0; k < load.n; k++)
            n_late += load.at_ms[k] >= 1000000 + 60000 && load.at_ms[k] < 1000000 + 120000;
        assert_true(n_late <= 4);
    }
}

/* A server that lets lists succeed and refuses every watch: two or three requests a wait. */
static void a_server_that_expires_every_watch_is_not_hammered(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct run run = new_run(&options);
    struct load load = { .n = 0 };

    (void)state;
    while (run.now_ms < 1000000 + 3600000) {
        next(&run);
        if (run.action.type == KINF__DO_WAIT) {
            run.now_ms += run.action.wait_ms;
            continue;
        }
        request(&load, run.now_ms);
        if (run.action.type == KINF__DO_LIST && run.action.rv[0] != '\0')
            play(&run, "nolist=big");
        else if (run.action.type == KINF__DO_LIST)
            play(&run, "page=1");
        else
            play(&run, "accepted error=410");
    }
    assert_in_range(load.most_in_minute, 3 * 6, 3 * 8);
    assert_in_range(load.n, 3 * 110, 3 * 130);
}

/* The same with watch lists: too large for ever, then a list whose watch expires. */
static void a_server_with_a_frozen_cache_is_not_hammered(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_WATCHLIST };
    struct run run = new_run(&options);
    struct load load = { .n = 0 };

    (void)state;
    while (run.now_ms < 1000000 + 3600000) {
        next(&run);
        if (run.action.type == KINF__DO_WAIT) {
            run.now_ms += run.action.wait_ms;
            continue;
        }
        request(&load, run.now_ms);
        if (run.action.type == KINF__DO_WATCH_LIST)
            play(&run, "accepted error=big");
        else if (run.action.type == KINF__DO_LIST)
            play(&run, "page=1");
        else
            play(&run, "accepted error=410");
    }
    assert_true(load.most_in_minute <= 2 * 8);
    assert_true(load.n <= 2 * 130);
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
    struct run run = new_run(&options);

    (void)state;
    play(&run, "?list nolist=net ?wait ?list page=1 ?watch@1 accepted rv=2 silent stop");
    assert_string_equal(text, "listing-(list failed)->waiting waiting-(list failed)->listing "
                              "listing-(page)->watching watching-(silent)->watching "
                              "watching-(stop)->stopped ");
}

static void check_finds_what_does_not_fit_together(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct run run = new_run(&options);
    struct kinf__policy broken;

    (void)state;
    play(&run, "?list page=1 ?watch@1");
    broken = run.policy;
    broken.rv[0] = '\0';
    assert_false(kinf__policy_check(&broken));
    broken = run.policy;
    strcpy(broken.continue_token, "t");
    assert_false(kinf__policy_check(&broken));
    strcpy(broken.list_rv, "1");
    assert_false(kinf__policy_check(&broken));
    broken = run.policy;
    broken.n_500 = KINF__POLICY_MAX_500;
    assert_false(kinf__policy_check(&broken));
    broken = run.policy;
    broken.state = KINF__POLICY_STREAMING;
    assert_false(kinf__policy_check(&broken));
    broken.options.initial = KINF_INITIAL_WATCHLIST;
    assert_true(kinf__policy_check(&broken));
    broken.n_streams = KINF__POLICY_MAX_STREAMS;
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
        cmocka_unit_test(lists_follow_the_table),
        cmocka_unit_test(watches_follow_the_table),
        cmocka_unit_test(watch_lists_follow_the_table),
        cmocka_unit_test(auto_goes_by_the_size),
        cmocka_unit_test(a_version_that_does_not_fit_is_not_taken),
        cmocka_unit_test(waits_double_with_jitter_up_to_twice_the_cap),
        cmocka_unit_test(lists_and_watches_share_one_backoff),
        cmocka_unit_test(the_backoff_starts_again_after_two_quiet_minutes),
        cmocka_unit_test(a_stream_cut_each_minute_is_reopened_soon),
        cmocka_unit_test(retry_after_is_the_least_wait),
        cmocka_unit_test(a_wait_that_ends_early_goes_on),
        cmocka_unit_test(watch_times_are_drawn_from_their_ranges),
        cmocka_unit_test(short_watch_times_are_at_least_one_second),
        cmocka_unit_test(a_server_that_refuses_everything_is_left_in_peace),
        cmocka_unit_test(a_server_that_expires_every_watch_is_not_hammered),
        cmocka_unit_test(a_server_with_a_frozen_cache_is_not_hammered),
        cmocka_unit_test(every_transition_is_traced),
        cmocka_unit_test(check_finds_what_does_not_fit_together),
        cmocka_unit_test(every_state_and_event_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
