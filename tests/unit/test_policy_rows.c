/*
 * The policy, row by row from what the API server does and client-go answers. Each row names the
 * table it comes from: "semantics 6" is section 6 of the specification of the informer's semantics,
 * "protocol 1.x" that of the API server's protocol, "transcripts NN" the recorded answers of
 * tests/data/transcripts whose names begin with NN, "design 7" the promise that policy.h makes.
 * Rows that need bytes are in test_reflector.c and test_watch_list.c, refusals told apart in
 * test_refusal.c.
 */
#include <stdio.h>

#include "base/compiler.h"
#include "unit/policy_script.h"
#include "unit/test.h"

struct row {
    const char *source;
    const char *situation;
    size_t page_size;
    const char *script;
};

static void play_rows(enum kinf_initial initial, const struct row *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++) {
        struct kinf__policy_options options = { .initial = initial,
                                                .page_size = rows[i].page_size };
        struct policy_run run = policy_run_new(&options);

        printf("  %s: %s\n", rows[i].source, rows[i].situation);
        policy_run_play(&run, rows[i].script);
    }
}
#define PLAY_ROWS(initial, rows) play_rows((initial), (rows), KINF__ARRAY_LEN(rows))

/* A list at 100 and an accepted watch from it; the same by a watch list. */
#define STREAMED "?stream accepted initial=100 "
#define SYNCED   "?list page=100 ?watch@100 accepted "

/* Watches from a version that bring nothing; three that are refused with 500. */
#define SILENT1(rv) "?watch@" rv " accepted +150000 silent "
#define SILENT3(rv) SILENT1(rv) SILENT1(rv) SILENT1(rv)
/* The same where bookmarks come: silence is an outage. */
#define VERIFIED         "?verify verified "
#define THEN_SILENT1(rv) VERIFIED SILENT1(rv)
#define THEN_SILENT3(rv) THEN_SILENT1(rv) THEN_SILENT1(rv) THEN_SILENT1(rv)
#define THREE_500(rv)    FAIL_500(rv) FAIL_500(rv) FAIL_500(rv)
#define FAIL_500(rv)     "?watch@" rv " nowatch=500 ?wait "

static void lists_follow_the_table(void **state)
{
    static const struct row rows[] = {
        { "protocol 1.4", "01: the first list asks for the newest state, in one piece", 0,
          "?list page=100 ?watch@100" },
        { "semantics 6 list", "01-limit1: pages keep the first page's version", 500,
          "?list,500 page=100+a ?list+a,500 page=100+b ?list+b,500 page=100 ?watch@100" },
        { "semantics 6 list", "01-cr: an empty token is none", 500, "?list,500 page=7+ ?watch@7" },
        { "semantics 6 list", "05-inconsistent: a later page's version is not taken", 500,
          "?list,500 page=100+a ?list+a,500 page=236 ?watch@100" },
        { "protocol 1.6", "refused: backoff, the same list", 0, "?list nolist=net ?wait ?list" },
        { "semantics 6 list",
          "05-continue-expired: on page 2 the whole list at once, without a limit", 500,
          "?list,500 page=100+a ?list+a,500 nolist=410 ?list page=120 ?watch@120 accepted "
          "error=410 ?wait ?list@120 page=130 ?watch@130" },
        { "semantics 6 list", "07-bad-continue: the same", 500,
          "?list,500 page=100+a ?list+a,500 nolist=400 ?list page=120 ?watch@120" },
        { "semantics 6 list", "that whole list refused as expired: backoff", 500,
          "?list,500 page=100+a ?list+a,500 nolist=410 ?list nolist=410 ?wait ?list" },
        { "protocol 1.6", "that whole list cut short: backoff, pages again", 500,
          "?list,500 page=100+a ?list+a,500 nolist=410 ?list cutlist=net ?wait ?list,500" },
        { "protocol 1.6", "08-429 on page 2: backoff, the same page", 500,
          "?list,500 page=100+a ?list+a,500 nolist=429 ?wait ?list+a,500 page=100 ?watch@100" },
        { "semantics 6 list", "18-etcd-down on page 2: backoff, the same page", 500,
          "?list,500 page=100+a ?list+a,500 cutlist=net ?wait ?list+a,500" },
        { "protocol 1.4", "06-too-large: a relist at N refused, the newest at once", 0,
          SYNCED "error=410 ?wait ?list@100 nolist=big ?list page=90 ?watch@90" },
        { "protocol 1.4", "05-exact-expired: the same", 0,
          SYNCED "error=410 ?wait ?list@100 nolist=410 ?list page=190 ?watch@190" },
        { "protocol 1.4", "07-bad-rv-list: the newest, after a backoff or at once", 0,
          SYNCED "error=410 ?wait ?list@100 nolist=400 ?list page=190 ?watch@190" },
        { "protocol 1.4", "at once only one time until a list succeeds", 0,
          SYNCED
          "error=410 ?wait ?list@100 nolist=big ?list nolist=big ?wait ?list nolist=big "
          "?wait ?list page=90 ?watch@90 accepted error=410 ?wait ?list@90 nolist=big ?list" },
        { "protocol 1.4", "a version once refused is not tried again until a list succeeds", 0,
          SYNCED "error=410 ?wait ?list@100 nolist=big ?list nolist=net ?wait ?list nolist=503 "
                 "?wait ?list page=5 ?watch@5" },
        { "protocol 1.6",
          "19-truncated: a list in one piece cut short continues in pages, for good", 0,
          "?list cutlist=net ?wait ?list,500 page=100+a ?list+a,500 page=100 ?watch@100 accepted "
          "error=410 ?wait ?list,500 page=110 ?watch@110" },
        { "protocol 1.4", "a relist at N cut short: pages of the newest state, not of exactly N", 0,
          SYNCED "error=410 ?wait ?list@100 cutlist=time ?wait ?list,500" },
        { "protocol 1.6", "10-sigkill-slow-list: without a byte it is no cut", 0,
          "?list nolist=net ?wait ?list" },
        { "protocol 1.6", "a body that is no list: backoff, no pages", 0,
          "?list cutlist=parse ?wait ?list" },
        { "semantics 6 list", "12-crd-gone-list, 09-403, 09-401: backoff, the same", 0,
          "?list nolist=404 ?wait ?list nolist=403 ?wait ?list nolist=401 ?wait ?list page=1 "
          "?watch@1" },
        { "protocol 1.6", "12-conversion-broken-list, 18-etcd-down-list, 09-503: the same", 0,
          "?list nolist=500 ?wait ?list nolist=504 ?wait ?list nolist=503 ?wait ?list" },
        { "protocol 1.6", "400, 405, 406, 415, 422 of a list of the newest: backoff, the same", 0,
          "?list nolist=400 ?wait ?list nolist=405 ?wait ?list nolist=406 ?wait ?list nolist=415 "
          "?wait ?list nolist=422 ?wait ?list" },
        { "transcripts 12", "a conversion webhook that fails: lists as well, seldom, until it does",
          0,
          SYNCED "+30000 ended ?watch@100 nowatch=init ?wait ?watch@100 nowatch=init ?wait "
                 "?watch@100 +120000 nowatch=init ?wait ?list,500 nolist=500 ?wait ?watch@100 "
                 "nowatch=init ?wait ?watch@100 +100000 nowatch=init ?wait ?watch@100 +20000 "
                 "nowatch=init ?wait ?list,500 nolist=500 ?wait ?watch@100 accepted rv=120 +9000 "
                 "ended " VERIFIED "?watch@120" },
        { "semantics 6 list", "pages are asked for, but a relist at N is in one piece", 500,
          "?list,500 page=100 ?watch@100 accepted error=410 ?wait ?list@100 page=120 ?watch@120" },
        { "design 7", "an item that cannot be decoded: backoff, the list again from its first page",
          500, "?list,500 page=100+a ?list+a,500 undecodable ?wait ?list,500 page=101 ?watch@101" },
        { "design 7", "stop ends every state", 0, "?list stop ?stop" },
        { "semantics 6 list", "and nothing brings it back", 0,
          "?list nolist=net ?wait stop ?stop page=1 ?stop" },
        { "protocol 1.6", "429 with Retry-After, however written: that long, and then the base", 0,
          "?list nolist=429/16 ?wait/16000 ?list nolist=net ?wait/1600 ?list nolist=net "
          "?wait/3200" },
        { "semantics 6", "the waits: 0.8 s, doubled up to 30 s", 0,
          "?list nolist=net ?wait/800 ?list nolist=net ?wait/1600 ?list nolist=net ?wait/3200 "
          "?list "
          "nolist=net ?wait/6400 ?list nolist=net ?wait/12800 ?list nolist=net ?wait/25600 ?list "
          "nolist=net ?wait/30000 ?list nolist=net ?wait/30000 ?list" },
        { "protocol 1.4", "a type without watch cache: too large comes without Retry-After", 0,
          SYNCED "error=410 ?wait/800 ?list@100 nolist=big ?list nolist=big ?wait/1600 ?list" },
    };

    (void)state;
    PLAY_ROWS(KINF_INITIAL_LIST, rows);
}

static void watches_follow_the_table(void **state)
{
    static const struct row rows[] = {
        { "protocol 1.5", "02-basic: events and bookmarks advance, a clean end re-watches at once",
          0,
          SYNCED "rv=101 rv=102 rv=150 +8000 ended ?watch@150 accepted rv=151 +9000 ended "
                 "?watch@151" },
        { "protocol 1.5", "02-timeout-no-events: a clean end without events, not short", 0,
          SYNCED "+1000 ended ?watch@100" },
        { "protocol 1.5", "02-timeout-1s and 14-list-kind: short and nothing new is a failure", 0,
          SYNCED "+999 ended ?wait ?watch@100 accepted ended ?wait ?watch@100" },
        { "protocol 1.5", "short, but with something new", 0, SYNCED "rv=101 +5 ended ?watch@101" },
        { "protocol 1.5", "short, and the same version again", 0,
          SYNCED "rv=100 +5 ended ?wait ?watch@100" },
        { "protocol 1.5", "an event without version changes nothing", 0,
          SYNCED "rv= +5 ended ?wait ?watch@100" },
        { "protocol 1.6", "10-down: refused, backoff, no relist", 0,
          "?list page=100 ?watch@100 nowatch=net ?wait ?verify noverify=net ?wait ?verify "
          "noverify=tls ?wait ?verify noverify=time ?wait ?watch@100" },
        { "protocol 1.5", "10-sigkill: broken, backoff, from the last version", 0,
          SYNCED "rv=105 nowatch=net ?wait ?verify verified ?watch@105" },
        { "protocol 1.5", "19: a frame cut by a clean end", 0,
          SYNCED "rv=105 nowatch=trunc ?wait ?verify verified ?watch@105" },
        { "protocol 1.6", "08-429: backoff, never a relist", 0,
          "?list page=100 ?watch@100 nowatch=429 ?wait ?watch@100 nowatch=429 ?wait ?watch@100 "
          "nowatch=429 ?wait ?watch@100 nowatch=429 ?wait ?watch@100" },
        { "protocol 1.6", "09-503, 504: backoff, no relist", 0,
          "?list page=100 ?watch@100 nowatch=503 ?wait ?verify verified ?watch@100 nowatch=504 "
          "?wait ?verify verified ?watch@100 nowatch=503 ?wait ?verify verified ?watch@100 "
          "nowatch=503 ?wait ?verify" },
        { "protocol 1.6", "07-bad-rv-watch: the third 500 in a row relists", 0,
          "?list page=100 ?watch@100 nowatch=500 ?wait ?watch@100 nowatch=500 ?wait ?watch@100 "
          "nowatch=500 ?wait ?list@100 nolist=400 ?list page=7 ?watch@7 nowatch=500 ?wait "
          "?watch@7" },
        { "protocol 1.6", "three 500 with something new between them are not in a row", 0,
          "?list page=100 ?watch@100 nowatch=500 ?wait ?watch@100 nowatch=500 ?wait ?watch@100 "
          "accepted rv=101 error=500 ?wait ?verify verified ?watch@101 nowatch=500 ?wait "
          "?watch@101" },
        { "protocol 1.6", "401, 403, 404: backoff, the same watch", 0,
          "?list page=100 ?watch@100 nowatch=401 ?wait ?watch@100 nowatch=403 ?wait ?watch@100 "
          "nowatch=404 ?wait ?watch@100" },
        { "protocol 1.6", "400, 405, 406, 415, 422: nothing gets better by itself, relist", 0,
          "?list page=100 ?watch@100 nowatch=422 ?wait ?list@100 page=100 ?watch@100 nowatch=405 "
          "?wait ?list@100 page=100 ?watch@100 nowatch=406 ?wait ?list@100 page=100 ?watch@100 "
          "nowatch=415 ?wait ?list@100 page=100 ?watch@100 nowatch=400 ?wait ?list@100" },
        { "protocol 1.6", "500 ServerTimeout, 503 of a server that leaves: as long as it says", 0,
          "?list page=100 ?watch@100 nowatch=500/7 ?wait/7000 ?watch@100 nowatch=503/1 ?wait/1600 "
          "?verify noverify=503/5 ?wait/5000 ?watch@100" },
        { "protocol 1.5", "05-too-old: backoff, relist not older than the last version", 0,
          SYNCED "rv=232 error=410 ?wait ?list@232 page=234 ?watch@234" },
        { "protocol 1.6", "410 as the response", 0,
          "?list page=100 ?watch@100 nowatch=410 ?wait ?list@100" },
        { "protocol 1.6", "ERROR 429, 504, 500: backoff, re-watch", 0,
          SYNCED "error=429 ?wait ?watch@100 accepted error=500 ?wait ?watch@100 accepted "
                 "error=504 ?wait ?verify verified ?watch@100" },
        { "semantics 6 stream", "ERROR too large: the newest state", 0,
          SYNCED "error=big ?wait ?list page=50 ?watch@50" },
        { "semantics 6 stream", "any other ERROR, or one that is no Status: backoff, relist", 0,
          SYNCED "error=403 ?wait ?list@100 page=101 ?watch@101 accepted error=parse ?wait "
                 "?list@101 page=102 ?watch@102 accepted error=404 ?wait ?list@102" },
        { "semantics 6 stream", "a StorageReadError event that stays relists", 0,
          SYNCED "error=500 ?wait ?watch@100 accepted error=500 ?wait ?watch@100 accepted "
                 "error=500 ?wait ?list@100 page=103 ?watch@103" },
        { "protocol 1.5", "silence: re-watch at once, one request", 0,
          SYNCED "rv=105 +150000 silent ?watch@105 accepted +150000 silent ?watch@105" },
        { "protocol 1.6", "out of memory for an event: it comes again", 0,
          SYNCED "rv=105 nowatch=nomem ?wait ?watch@105" },
        { "design 7", "an event that cannot be decoded: backoff, relist", 0,
          SYNCED "rv=105 undecodable ?wait ?list@105 page=106 ?watch@106" },
        { "design 7", "stop in a watch and in its wait", 0, SYNCED "stop ?stop ended ?stop" },
        { "transcripts 08", "initializing after a restart: the version is kept, no relist", 0,
          SYNCED "ended ?wait/800 ?watch@100 nowatch=init ?wait/1600 ?watch@100 nowatch=init "
                 "?wait/3200 ?watch@100 nowatch=init ?wait/6400 ?watch@100 accepted rv=101 +9000 "
                 "ended " VERIFIED "?watch@101" },
        { "transcripts 10", "SIGTERM: an open watch lives for a minute, then refused, then expired",
          0,
          SYNCED "rv=101 +60000 ended ?watch@101 nowatch=net ?wait/800 ?verify "
                 "noverify=net ?wait/1600 ?verify verified ?watch@101 nowatch=init ?wait/3200 "
                 "?watch@101 accepted error=410 "
                 "?wait/6400 ?list@101 page=120 ?watch@120" },
        { "transcripts 10", "SIGTERM with --shutdown-send-retry-after: 429 as text, honoured", 0,
          SYNCED "+2000 ended ?watch@100 nowatch=429/5 ?wait/5000 ?watch@100 accepted rv=101" },
        { "semantics 6", "a watch after a wait has no memory of the failure before it", 0,
          SYNCED "error=429 ?wait/800 ?watch@100 accepted rv=101 +120800 ended ?watch@101 "
                 "nowatch=503 ?wait/800 ?verify verified ?watch@101" },
    };

    (void)state;
    PLAY_ROWS(KINF_INITIAL_LIST, rows);
}

static void watch_lists_follow_the_table(void **state)
{
    static const struct row rows[] = {
        { "protocol 1.2", "03: the state and what follows come in one stream", 0,
          "?stream accepted initial=100 rv=101 rv=102 +9000 ended ?watch@102" },
        { "protocol 1.2",
          "03-watchlist-empty: a short stream that brought the bookmark is no failure", 0,
          STREAMED "+5 ended ?watch@100 accepted +5 ended ?wait ?watch@100" },
        { "protocol 1.2", "no version is taken before the bookmark", 0,
          "?stream accepted rv=500 rv=501 +2000 ended ?stream accepted rv=502 nowatch=net ?wait "
          "?stream accepted initial=90 +2000 ended ?watch@90" },
        { "protocol 1.2", "a page size is for lists", 500, STREAMED "+1000 ended ?watch@100" },
        { "protocol 1.2", "a second round is not older than the last version", 0,
          STREAMED "rv=101 error=410 ?wait ?stream@101 accepted initial=200 ended ?watch@200" },
        { "protocol 1.6",
          "after the bookmark it is a watch: 429, silence, breaks, short and empty ones", 0,
          STREAMED "error=429 ?wait ?watch@100 accepted +150000 silent ?watch@100 nowatch=net "
                   "?wait ?verify verified ?watch@100 accepted ended ?wait ?watch@100" },
        { "protocol 1.2",
          "07-watchlist-gate-off: 422, a list at once, and no watch list for ten minutes", 0,
          "?stream nowatch=422 ?list page=100 ?watch@100 accepted +60000 error=410 ?wait ?list@100 "
          "page=110 ?watch@110 accepted +600000 error=410 ?wait ?stream@110 nowatch=422 "
          "?list@110" },
        { "protocol 1.2",
          "200 with ERROR 500 (etcd too old): a list at once, the next round asks again", 0,
          "?stream accepted error=500 ?list page=100 ?watch@100 accepted error=410 ?wait "
          "?stream@100" },
        { "protocol 1.2", "07-bad-rv-watchlist, 400, 405, 503: the same", 0,
          "?stream nowatch=500 ?list page=100 ?watch@100 accepted error=410 ?wait ?stream@100 "
          "nowatch=400 ?list@100 page=101 ?watch@101 accepted error=410 ?wait ?stream@101 "
          "nowatch=405 ?list@101 page=102 ?watch@102 accepted error=410 ?wait ?stream@102 "
          "nowatch=503 ?list@102" },
        { "protocol 1.2", "an ERROR that is no Status, or 403: a list", 0,
          "?stream accepted error=parse ?list page=100 ?watch@100 accepted error=410 ?wait "
          "?stream@100 accepted error=403 ?list@100" },
        { "protocol 1.2", "at once only one time until a round succeeds", 0,
          "?stream nowatch=500 ?list nolist=500 ?wait ?list nolist=500 ?wait ?list page=1 "
          "?watch@1 accepted error=410 ?wait ?stream@1 nowatch=410 ?stream nowatch=500 ?wait "
          "?list" },
        { "protocol 1.6", "08-429: backoff, the watch list again, however often", 0,
          "?stream nowatch=429 ?wait ?stream nowatch=429 ?wait ?stream accepted error=429 ?wait "
          "?stream nowatch=429 ?wait ?stream accepted initial=5 rv=6 ended ?watch@6" },
        { "protocol 1.6", "refused, without an answer, 401, 403, 404: the same", 0,
          "?stream nowatch=net ?wait ?stream nowatch=time ?wait ?stream nowatch=tls ?wait ?stream "
          "nowatch=401 ?wait ?stream nowatch=403 ?wait ?stream nowatch=404 ?wait ?stream "
          "nowatch=nomem ?wait ?stream" },
        { "protocol 1.2", "06-watchlist-too-large and Expired: the newest state at once", 0,
          STREAMED "error=410 ?wait ?stream@100 accepted error=big ?stream accepted initial=50 "
                   "error=410 ?wait ?stream@50 nowatch=410 ?stream accepted initial=60" },
        { "protocol 1.2", "12-*-frozen: too large for ever leads to a list after three", 0,
          STREAMED
          "error=410 ?wait ?stream@100 accepted error=big ?stream accepted error=big ?wait "
          "?stream accepted error=big ?wait ?list page=60 ?watch@60 accepted error=410 "
          "?wait ?stream@60" },
        { "protocol 1.2", "at the first round, too", 0,
          "?stream accepted error=big ?wait ?stream accepted error=big ?wait ?stream accepted "
          "error=big ?wait ?list" },
        { "protocol 1.2",
          "08-watchlist-cut-before-end-bookmark: ended, the watch list again at once", 0,
          "?stream accepted +2500 ended ?stream accepted +1000 ended ?stream accepted initial=7 "
          "rv=8 ended ?watch@8" },
        { "protocol 1.2", "ended very soon: after a backoff", 0,
          "?stream accepted +999 ended ?wait ?stream" },
        { "protocol 1.6", "broken before the bookmark: after a backoff", 0,
          "?stream accepted +9000 nowatch=net ?wait ?stream accepted nowatch=trunc ?wait ?stream" },
        { "protocol 1.2", "a server that never sends the bookmark: a list after three", 0,
          "?stream accepted +300000 ended ?stream accepted +150000 silent ?stream accepted "
          "nowatch=net ?wait ?list page=9 ?watch@9" },
        { "protocol 1.2", "whose list is cut short, too: in pages", 0,
          "?stream accepted error=500 ?list cutlist=net ?wait ?list,500 page=9 ?watch@9 accepted "
          "error=410 ?wait ?stream@9" },
        { "design 7", "an initial event that cannot be decoded: backoff, the watch list again", 0,
          "?stream accepted undecodable ?wait ?stream" },
        { "design 7", "an event that cannot be decoded: the same at the last version", 0,
          STREAMED "rv=101 undecodable ?wait ?stream@101" },
        { "design 7", "stop before the bookmark", 0,
          "?stream accepted stop ?stop initial=1 ?stop" },
    };

    (void)state;
    PLAY_ROWS(KINF_INITIAL_WATCHLIST, rows);
}

static void auto_goes_by_the_size(void **state)
{
    static const struct row rows[] = {
        { "design 7", "a state of one page is complete with it", 0,
          "?list,100 page=100/1500 ?watch@100 accepted error=410 ?wait ?list@100" },
        { "design 7", "below 200 MB: one list", 0,
          "?list,100 page=100+a/2000 ?list page=101/200000 ?watch@101 accepted error=410 ?wait "
          "?list@101" },
        { "design 7", "above: a watch list, and for a relist again", 0,
          "?list,100 page=100+a/2001 ?stream accepted initial=101/200001 rv=102 error=410 ?wait "
          "?stream@102 accepted initial=110/200001" },
        { "design 7", "a state that has shrunk or grown by the last round", 0,
          "?list,100 page=100+a/2001 ?stream accepted initial=101/200000 error=410 ?wait ?list@101 "
          "page=102/200001 ?watch@102 accepted error=410 ?wait ?stream@102" },
        { "design 7", "a server that does not count: a list", 0,
          "?list,100 page=100+a ?list page=100" },
        { "design 7", "the first page failed: again", 0,
          "?list,100 nolist=net ?wait ?list,100 cutlist=net ?wait ?list,100 nolist=429 ?wait "
          "?list,100 page=100+a/1 ?list" },
        { "design 7", "a list in one piece cut short: watch lists from then on", 0,
          "?list,100 page=100+a/1 ?list cutlist=time ?wait ?stream accepted initial=7 rv=8 "
          "error=410 ?wait ?stream@8" },
        { "design 7", "a relist cut short: the same", 0,
          "?list,100 page=100+a/1 ?list page=101 ?watch@101 accepted error=410 ?wait ?list@101 "
          "cutlist=trunc ?wait ?stream@101" },
        { "design 7", "pages when there is no watch list", 0,
          "?list,100 page=100+a/1 ?list cutlist=net ?wait ?stream nowatch=422 ?list,500 "
          "page=100+b/1 ?list+b,500 page=100/9 ?watch@100 accepted error=410 ?wait ?list,500" },
        { "design 7", "above, and no watch list: one list", 0,
          "?list,100 page=100+a/2001 ?stream nowatch=422 ?list page=101/200001 ?watch@101 accepted "
          "error=410 ?wait ?list@101" },
        { "design 7", "a page size means list", 500,
          "?list,500 page=100+a/9000 ?list+a,500 page=100/900000 ?watch@100 accepted error=410 "
          "?wait ?list@100 cutlist=net ?wait ?list,500" },
        { "design 7", "an item that cannot be decoded: the same again", 0,
          "?list,100 undecodable ?wait ?list,100 page=1+a/1 ?list undecodable ?wait ?list" },
    };
    struct kinf__policy_options options = { .has_selector = true };
    struct policy_run run = policy_run_new(&options);

    (void)state;
    PLAY_ROWS(KINF_INITIAL_AUTO, rows);
    policy_run_play(&run, "?list cutlist=time ?wait ?stream accepted initial=7/1 ended ?watch@7");
}

/* --- what is known, after an outage --- */

#define OUTAGE SYNCED "rv=101 nowatch=net ?wait "

static void what_is_known_is_verified_after_an_outage(void **state)
{
    static const struct row rows[] = {
        { "design 7", "true: the watch at once, no list", 0, OUTAGE VERIFIED "?watch@101" },
        { "design 7", "once an outage", 0,
          OUTAGE VERIFIED "?watch@101 accepted +9000 ended ?watch@101 nowatch=trunc ?wait " VERIFIED
                          "?watch@101" },
        { "design 7", "true, but who knows of new ones: a check behind one silent watch", 0,
          OUTAGE VERIFIED "?watch@101 accepted +150000 silent ?list page=101 ?watch@101 "
                          "accepted +150000 silent ?watch@101" },
        { "design 7", "an event of now says nothing of what was undone: the check is due still", 0,
          OUTAGE VERIFIED
          "?watch@101 accepted rv=102 +9000 ended ?watch@102 accepted bookmark=103 "
          "+9000 ended ?watch@103 accepted +150000 silent ?list page=103 ?watch@103" },
        { "design 7", "true, and as many as are known: no check", 0,
          OUTAGE "?verify counted ?watch@101 accepted +150000 silent ?watch@101" },
        { "transcripts 02", "in doubt: the newest state at once, one round", 0,
          OUTAGE "?verify doubted ?list page=90 ?watch@90 accepted rv=91 +9000 ended ?watch@91" },
        { "design 7", "a round that fails is tried until it succeeds", 0,
          OUTAGE "?verify doubted ?list nolist=net ?wait ?list nolist=500 ?wait ?list page=90 "
                 "?watch@90" },
        { "design 7", "a server that is always in doubt and breaks watches: as any failure", 0,
          OUTAGE "?verify doubted ?list page=90 ?watch@90 nowatch=net ?wait/1600 ?verify doubted "
                 "?list page=90 ?watch@90 nowatch=net ?wait/3200 ?verify" },
        { "protocol 1.6", "who does not answer is asked again: nothing else would go through", 0,
          OUTAGE "?verify noverify=net ?wait/1600 ?verify noverify=tls ?wait/3200 ?verify "
                 "noverify=nomem ?wait/6400 " VERIFIED "?watch@101" },
        { "protocol 1.6", "who is slow, busy or refuses does not hold up the watch; then again", 0,
          OUTAGE "?verify noverify=time ?wait ?watch@101 accepted +9000 ended ?verify "
                 "noverify=429/5 ?wait/5000 ?watch@101 accepted +30000 ended ?verify noverify=403 "
                 "?wait ?watch@101 accepted rv=102 +9000 ended " VERIFIED "?watch@102 accepted "
                 "+9000 ended ?watch@102" },
        { "protocol 1.6", "every other refusal is one, too", 0,
          OUTAGE "?verify noverify=400 ?wait ?watch@101 accepted +9000 ended ?verify noverify=410 "
                 "?wait ?watch@101 accepted +9000 ended ?verify noverify=422 ?wait ?watch@101 "
                 "accepted +9000 ended ?verify noverify=500 ?wait ?watch@101 accepted +9000 ended "
                 "?verify noverify=big ?wait ?watch@101 accepted +9000 ended ?verify "
                 "noverify=parse ?wait ?watch@101" },
        { "transcripts 12", "404 counts: the resource may be gone", 0,
          OUTAGE "?verify noverify=404 ?wait ?watch@101 nowatch=404 ?wait ?ask not_gone ?wait "
                 "?watch@101 accepted +9000 ended ?verify" },
        { "transcripts 12", "- and is watched again if it is not", 0,
          OUTAGE "?verify noverify=403 ?wait ?watch@101 nowatch=404 ?wait ?verify noverify=404 "
                 "?wait ?ask not_gone ?wait ?watch@101" },
        { "design 7", "a round makes it needless", 0,
          OUTAGE "?verify noverify=403 ?wait ?watch@101 accepted error=410 ?wait ?list@101 "
                 "page=110 ?watch@110 accepted +9000 ended ?watch@110" },
        { "design 7", "500, 429 and 403 are the answers of a server that is there", 0,
          SYNCED "nowatch=500 ?wait ?watch@100 nowatch=429 ?wait ?watch@100 nowatch=403 ?wait "
                 "?watch@100" },
        { "design 7", "it may have been away while nobody asked: behind the watch that it accepts",
          0,
          SYNCED "accepted +9000 ended ?watch@100 nowatch=401 ?wait ?watch@100 nowatch=401 ?wait "
                 "?watch@100 accepted rv=101 +9000 ended ?verify doubted ?list page=90 ?watch@90" },
        { "design 7", "- and if nobody can count what there is, one silent watch leads to a check",
          0,
          SYNCED "accepted +9000 ended ?watch@100 nowatch=429/5 ?wait/5000 ?watch@100 accepted "
                 "+9000 ended " VERIFIED "?watch@100 accepted +150000 silent ?list page=100 "
                 "?watch@100" },
        { "design 7", "not between two watches that follow each other", 0,
          SYNCED "accepted +9000 ended ?watch@100 nowatch=403 ?wait/800 ?watch@100 accepted rv=101 "
                 "+9000 ended ?watch@101" },
        { "protocol 1.5", "silence is an outage where bookmarks come", 0,
          SYNCED "+150000 silent ?watch@100 accepted bookmark=101 +150000 silent " VERIFIED
                 "?watch@101" },
        { "design 7", "stop", 0, OUTAGE "?verify stop ?stop" },
    };

    (void)state;
    PLAY_ROWS(KINF_INITIAL_LIST, rows);
}

static void doubt_asks_for_a_large_state_by_a_watch_list(void **state)
{
    static const struct row rows[] = {
        { "design 7", "in doubt: the newest state, not one that is not older", 0,
          STREAMED
          "nowatch=net ?wait ?verify doubted ?stream accepted initial=90 ended ?watch@90" },
    };

    (void)state;
    PLAY_ROWS(KINF_INITIAL_WATCHLIST, rows);
}

/* It is the only way to ask again: nothing else ends a watch that is well. */
static void a_watch_that_is_not_verified_is_short(void **state)
{
    static const int64_t times_s[] = { 30, 30, 30, 300, 300 };
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct policy_run run = policy_run_new(&options);

    (void)state;
    policy_run_play(&run, OUTAGE);
    for (size_t i = 0; i < KINF__ARRAY_LEN(times_s); i++) {
        policy_run_play(&run, "?verify noverify=403 ?wait ?watch@101");
        assert_int_equal(run.action.timeout_s, times_s[i]);
        policy_run_play(&run, "accepted +300000 ended");
    }
    policy_run_play(&run, VERIFIED "?watch@101");
    assert_int_equal(run.action.timeout_s, 300);
    policy_run_play(&run, "nowatch=429/5 ?wait/5000 ?watch@101");
    assert_int_equal(run.action.timeout_s, 30);
}

/* --- a watch cache that stands still --- */

static void a_frozen_cache_is_found_in_watches_and_lists(void **state)
{
    static const struct row rows[] = {
        { "transcripts 20", "watches refused as initializing for the interval: pages of etcd", 0,
          SYNCED "error=init ?wait ?watch@100 nowatch=init ?wait ?watch@100 nowatch=init ?wait "
                 "?watch@100 +118400 nowatch=init ?wait ?list,500 page=120 ?watch@120 nowatch=init "
                 "?wait ?watch@120 +120000 nowatch=init ?wait ?list,500 page=130 ?watch@130 "
                 "accepted bookmark=131 +9000 ended ?watch@131 nowatch=init ?wait ?watch@131" },
        { "transcripts 08", "the same before the first list", 0,
          "?list nolist=init ?wait ?list nolist=init ?wait ?list +120000 nolist=init ?wait "
          "?list,500 "
          "page=100+a ?list+a,500 page=100 ?watch@100" },
        { "protocol 1.6", "an overloaded server is left alone, for however long", 0,
          SYNCED "error=429 ?wait ?watch@100 nowatch=429 ?wait ?watch@100 nowatch=429 ?wait "
                 "?watch@100 +120000 nowatch=429 ?wait ?watch@100 +120000 nowatch=429 ?wait "
                 "?watch@100" },
        { "protocol 1.4",
          "lists at the last version too large, newer ones there: the cache is behind", 0,
          SYNCED
          "error=410 ?wait ?list@100 nolist=big ?list page=110 ?watch@110 accepted error=410 "
          "?wait ?list@110 nolist=big ?list page=120 ?watch@120 accepted error=410 ?wait "
          "?list@120 nolist=big ?list page=130 ?watch@130 accepted +150000 silent ?list,500" },
        { "protocol 1.4", "the same of a server that went back says nothing of its cache", 0,
          SYNCED "error=410 ?wait ?list@100 nolist=big ?list page=90 ?watch@90 accepted error=410 "
                 "?wait ?list@90 nolist=big ?list page=80 ?watch@80 accepted error=410 ?wait "
                 "?list@80 nolist=big ?list page=70 ?watch@70 accepted +150000 silent ?watch@70" },
        { "transcripts 20", "500 on every watch, at every version", 0,
          "?list page=1 " THREE_500("1") "?list@1 page=2 " THREE_500(
              "2") "?list@2 page=3 +120000 " THREE_500("3") "?list,500 page=4 ?watch@4" },
        { "design 7", "silence proves nothing: no list after the first two", 0,
          SYNCED "bookmark=101 +150000 silent " THEN_SILENT1("101") THEN_SILENT1("101") VERIFIED
          "?watch@101 accepted bookmark=102 +150000 silent " VERIFIED "?watch@102" },
        { "design 7", "three without a byte where there were bookmarks: one list as a check", 0,
          SYNCED "bookmark=101 +150000 silent " THEN_SILENT3("101") "?list page=110 " SILENT1("110")
              THEN_SILENT3("110") THEN_SILENT1("110") THEN_SILENT1("110") "?list page=120 "
                                                                          "?watch@120 accepted" },
        { "design 7", "a check with news: the watch is not to be relied on", 0,
          SYNCED "bookmark=101 +150000 silent " THEN_SILENT3("101") "?list news=110 " SILENT1(
              "110") "?list,500 news=120 ?watch@120 accepted rv=121 +150000 "
                     "silent " THEN_SILENT1("121") },
        { "design 7", "a check that is refused: watched again", 0,
          SYNCED "bookmark=101 +150000 silent " THEN_SILENT3(
              "101") "?list nolist=500 ?wait ?watch@101 accepted" },
        { "design 7", "where there never was a bookmark: one check in an hour", 0,
          "?list page=100 " SILENT3("100") SILENT3("100") SILENT3("100") SILENT3("100") SILENT3(
              "100") SILENT3("100") SILENT3("100") SILENT3("100") "?list page=110 ?watch@110" },
    };

    (void)state;
    PLAY_ROWS(KINF_INITIAL_LIST, rows);
}

static void a_frozen_cache_is_found_in_watch_lists(void **state)
{
    static const struct row rows[] = {
        { "transcripts 12, 20",
          "watch lists too large for ever: pages of etcd, slowly, until it moves", 0,
          "?stream accepted error=big ?wait ?stream accepted error=big ?wait ?stream accepted "
          "error=big ?wait ?list page=60 ?watch@60 accepted +150000 silent ?list,500 page=70 "
          "?watch@70 "
          "accepted +120000 silent ?list,500 page=80+a ?list+a,500 page=80 ?watch@80 accepted "
          "bookmark=80 +150000 silent ?verify verified ?watch@80 accepted error=410 ?wait "
          "?stream@80" },
        { "transcripts 12, 20", "at most one list in its interval", 0,
          "?stream accepted error=big ?wait ?stream accepted error=big ?wait ?stream accepted "
          "error=big ?wait ?list page=60 ?watch@60 accepted +150000 silent ?list,500 page=70 "
          "?watch@70 "
          "accepted +60000 ended ?watch@70 accepted +59999 ended ?watch@70 accepted +1000 ended "
          "?list,500" },
        { "transcripts 20", "that list refused (an object of ours is broken): watched meanwhile", 0,
          "?stream accepted error=big ?wait ?stream accepted error=big ?wait ?stream accepted "
          "error=big ?wait ?list page=60 ?watch@60 accepted +150000 silent ?list,500 nolist=500 "
          "?wait ?watch@60 accepted +119000 ended ?watch@60 accepted +1000 silent ?list,500 "
          "page=70+a ?list+a,500 nolist=500 ?wait ?watch@60 accepted rv=71 +9000 ended ?watch@71" },
        { "transcripts 20", "a round meanwhile is such a list, too", 0,
          "?stream accepted error=big ?wait ?stream accepted error=big ?wait ?stream accepted "
          "error=big ?wait ?list page=60 ?watch@60 accepted +150000 silent ?list,500 page=70 "
          "?watch@70 "
          "accepted error=410 ?wait ?list,500 page=80 ?watch@80" },
    };

    (void)state;
    PLAY_ROWS(KINF_INITIAL_WATCHLIST, rows);
}

/* --- a resource that is gone --- */

static void what_is_not_found_twice_is_asked_for(void **state)
{
    static const struct row rows[] = {
        { "protocol 1.6", "one 404 is no news", 0,
          "?list page=100 ?watch@100 nowatch=404 ?wait/800 ?watch@100 accepted rv=101 +9000 ended "
          "?watch@101 nowatch=404 ?wait ?watch@101" },
        { "transcripts 12", "a second one asks; gone: the next round starts from nothing", 0,
          "?list page=100 ?watch@100 nowatch=404 ?wait/800 ?watch@100 nowatch=404 ?wait/1600 ?ask "
          "gone "
          "?wait/3200 ?list nolist=404 ?wait/6400 ?list nolist=404 ?wait ?list page=7 ?watch@7" },
        { "design 7", "not gone, or nobody knows: the same watch, and no question for ten minutes",
          0,
          "?list page=100 ?watch@100 nowatch=404 ?wait ?watch@100 nowatch=404 ?wait ?ask not_gone "
          "?wait ?watch@100 nowatch=404 ?wait ?watch@100 nowatch=404 ?wait ?watch@100 nowatch=404 "
          "?wait ?watch@100 +600000 nowatch=404 ?wait ?ask" },
        { "transcripts 12", "a relist that is not found: asked, then the list again", 0,
          SYNCED "error=410 ?wait ?list@100 nolist=404 ?wait ?list@100 nolist=404 ?wait ?ask "
                 "not_gone ?wait ?list@100 nolist=404 ?wait ?list@100" },
        { "protocol 1.6", "403 between two 404 is another story", 0,
          "?list page=100 ?watch@100 nowatch=404 ?wait ?watch@100 nowatch=403 ?wait ?watch@100 "
          "nowatch=404 ?wait ?watch@100" },
        { "design 7", "before the first list there is nothing to lose: not asked", 0,
          "?list nolist=404 ?wait ?list nolist=404 ?wait ?list nolist=404 ?wait ?list" },
        { "design 7", "stop ends a question", 0,
          "?list page=100 ?watch@100 nowatch=404 ?wait ?watch@100 nowatch=404 ?wait ?ask stop "
          "?stop" },
    };

    (void)state;
    PLAY_ROWS(KINF_INITIAL_LIST, rows);
}

static void what_is_not_streamed_twice_is_asked_for(void **state)
{
    static const struct row rows[] = {
        { "transcripts 12", "by watch lists: the same", 0,
          STREAMED
          "error=410 ?wait ?stream@100 nowatch=404 ?wait ?stream@100 nowatch=404 ?wait ?ask "
          "gone ?wait ?stream nowatch=404 ?wait ?stream accepted initial=5 rv=6" },
    };

    (void)state;
    PLAY_ROWS(KINF_INITIAL_WATCHLIST, rows);
}

static void a_state_of_an_earlier_run_is_gone_on_from(void **state)
{
    static const struct row rows[] = {
        { "saved.h R2", "verified, and the watch at its version; a bookmark confirms it", 0,
          "resume=100 ?verify unconfirmed counted unconfirmed ?watch@100 accepted rv=101 "
          "unconfirmed bookmark=105 confirmed +4000 ended ?watch@105" },
        { "saved.h R4", "so does an event of the version that the server had, or a later one", 0,
          "resume=100 ?verify verified=105 ?watch@100 accepted rv=104 unconfirmed rv=106 "
          "confirmed" },
        { "saved.h R4", "or that it has written nothing since", 0,
          "resume=100 ?verify verified=100 confirmed ?watch@100" },
        { "saved.h R4", "or a bookmark behind it, and not one before", 0,
          "resume=100 ?verify verified=105 ?watch@100 accepted bookmark=104 unconfirmed "
          "bookmark=105 confirmed" },
        { "saved.h R4", "or a watch that lasted without news", 0,
          "resume=100 ?verify verified=105 ?watch@100 accepted +990 unconfirmed ended confirmed "
          "?watch@100" },
        { "saved.h R4", "and not one that brought some: the end may have kept back the rest", 0,
          "resume=100 ?verify verified=105 ?watch@100 accepted rv=101 +990 ended unconfirmed "
          "?watch@101 accepted +990 ended confirmed ?watch@101" },
        { "saved.h R4", "unless nothing says what it is to reach", 0,
          "resume=100 ?verify verified ?watch@100 accepted rv=101 +990 unconfirmed ended "
          "confirmed ?watch@101" },
        { "saved.h R4", "silence for longer than was asked for is no answer: a list", 0,
          "resume=100 ?verify counted ?watch@100 accepted +75000 silent unconfirmed ?list page=130 "
          "confirmed ?watch@130" },
        { "saved.h R4", "of a server that cannot be asked nothing but a list confirms", 0,
          "resume=100 ?verify noverify=500 ?wait ?watch@100 accepted bookmark=101 +990 ended "
          "unconfirmed ?verify noverify=500 ?wait ?watch@101 accepted +990 ended unconfirmed "
          "?verify noverify=500 ?wait ?watch@101 accepted +990 ended ?verify noverify=500 ?wait "
          "?watch@101 accepted +990 ended unconfirmed ?list page=90 confirmed ?watch@90" },
        { "saved.h R4", "one that ended at once does not", 0,
          "resume=100 ?verify verified ?watch@100 accepted +400 ended unconfirmed ?wait ?watch@100 "
          "accepted rv=101 +10 ended unconfirmed ?watch@101" },
        { "saved.h R2", "expired: the list that follows is as a relist, and confirms", 0,
          "resume=100 ?verify verified ?watch@100 accepted error=410 unconfirmed ?wait ?list@100 "
          "page=130 confirmed ?watch@130" },
        { "saved.h R2", "the server is away: verified when it is back", 0,
          "resume=100 ?verify noverify=net ?wait ?verify noverify=net ?wait ?verify verified "
          "unconfirmed ?watch@100 nowatch=net ?wait ?verify verified ?watch@100" },
        { "saved.h R2", "another history: the newest state at once", 0,
          "resume=100 ?verify doubted unconfirmed ?list page=90 confirmed ?watch@90" },
        { "saved.h R2", "nobody can verify: the watch, which is verified behind it", 0,
          "resume=100 ?verify noverify=403 ?wait ?watch@100 accepted bookmark=120 unconfirmed "
          "+4000 "
          "ended ?verify verified=120 confirmed ?watch@120" },
        { "saved.h R4", "a resource that is gone confirms nothing", 0,
          "resume=100 ?verify noverify=404 ?wait ?watch@100 nowatch=404 ?wait ?ask gone "
          "unconfirmed ?wait ?list page=3 confirmed ?watch@3" },
    };

    (void)state;
    PLAY_ROWS(KINF_INITIAL_LIST, rows);
}

/* R4: a quiet resource is not waited for until the next bookmark of a long watch. */
static void what_is_not_confirmed_is_watched_shortly(void **state)
{
    struct kinf__policy_options options = { .initial = KINF_INITIAL_LIST };
    struct policy_run run = policy_run_new(&options);

    (void)state;
    policy_run_play(&run, "resume=100 ?verify counted ?watch@100");
    assert_int_equal(run.action.timeout_s, KINF__POLICY_CONFIRM_S);
    policy_run_play(&run, "accepted bookmark=105 +2000 ended ?watch@105");
    assert_true(run.action.timeout_s >= 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_follow_the_table),
        cmocka_unit_test(watches_follow_the_table),
        cmocka_unit_test(watch_lists_follow_the_table),
        cmocka_unit_test(auto_goes_by_the_size),
        cmocka_unit_test(what_is_known_is_verified_after_an_outage),
        cmocka_unit_test(doubt_asks_for_a_large_state_by_a_watch_list),
        cmocka_unit_test(a_watch_that_is_not_verified_is_short),
        cmocka_unit_test(a_frozen_cache_is_found_in_watches_and_lists),
        cmocka_unit_test(a_frozen_cache_is_found_in_watch_lists),
        cmocka_unit_test(what_is_not_found_twice_is_asked_for),
        cmocka_unit_test(what_is_not_streamed_twice_is_asked_for),
        cmocka_unit_test(a_state_of_an_earlier_run_is_gone_on_from),
        cmocka_unit_test(what_is_not_confirmed_is_watched_shortly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
