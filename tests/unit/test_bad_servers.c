/*
 * Servers that answer and do not serve, over real sockets: each is found out by a deadline or a bound
 * of our own, is a state with its reason, and one line of the log. What they answer counts as no
 * proof of life, and none is asked more often than a dead one.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "unit/engine_fixture.h"

#define SILENT_AFTER_MS 600
#define NEVER_SILENT_MS 60000 /* also on a busy machine */

#define ALWAYS_STREAM      "exchange always\nmatch GET /api/v1/pods watch=1 sendInitialEvents=true\n"
#define ALWAYS_LIST(rules) "exchange always\nmatch GET /api/v1/pods !watch " rules "\n"
#define ALWAYS_WATCH                                                                               \
    "exchange always\nmatch GET /api/v1/pods watch=1 !sendInitialEvents resourceVersion=10\n"
#define ALWAYS_VERIFIED                                                                            \
    "exchange always\nmatch GET /api/v1/namespaces/n/pods\n" LIST("10", POD("a", "3"))             \
        ALWAYS_LIST("limit=1 resourceVersionMatch=Exact") LIST("10", POD("a", "3"))
#define LOGIN_PAGE                                                                                 \
    "status 200\nheader Content-Type: text/html; charset=utf-8\n"                                  \
    "piece <!DOCTYPE html><html><title>Log in</title>\n"
#define PAGE(more)                                                                                 \
    "status 200\n"                                                                                 \
    "event {\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"10\","     \
    "\"continue\":\"" more "\"},\"items\":[" POD("a", "3") "]}\n"

/* Lines from info up: failures, ends of failures, silences. */
static _Atomic(int) n_troubles, n_ends, n_silences;

static void count_line(enum kinf_log_level level, const char *module, const char *line, void *ctx)
{
    (void)level;
    (void)module;
    (void)ctx;
    if (strstr(line, "list or watch failed resource=pods") != NULL)
        atomic_fetch_add(&n_troubles, 1);
    if (strstr(line, "watching again resource=pods") != NULL)
        atomic_fetch_add(&n_ends, 1);
    if (strstr(line, "watch was silent") != NULL)
        atomic_fetch_add(&n_silences, 1);
}

/* Many small pieces, with a pause behind each. */
static const char *drip_of(const char *piece)
{
    static char text[8192];

    text[0] = '\0';
    while (strlen(text) < sizeof text - 64) {
        strcat(text, piece);
        strcat(text, "\nstall 20\n");
    }
    return text;
}

static const char *drip(void)
{
    return drip_of("piece \\n");
}

static void start(struct engine_fixture *f, const char *const *parts)
{
    if (f->options.silent_after_ms == 0)
        f->options.silent_after_ms = SILENT_AFTER_MS;
    f->options.backoff_base_ms = 50;
    f->options.backoff_max_ms = 100;
    atomic_store(&n_troubles, 0);
    atomic_store(&n_ends, 0);
    atomic_store(&n_silences, 0);
    kinf_log_set_callback(count_line, NULL);
    engine_start(f, parts);
}
#define START(f, ...) start((f), (const char *const[]){ __VA_ARGS__, NULL })

static struct kinf_informer_status status_of(struct engine_fixture *f)
{
    struct kinf_informer_status status;

    kinf_informer_status(f->informer, &status);
    return status;
}

/* Both in one look: while a watch is being tried again, the state is another one. */
static void wait_for_reason(struct engine_fixture *f, const char *reason)
{
    int64_t end_ms = kinf__clock_now_ms() + ENGINE_PATIENCE_MS;
    struct kinf_informer_status status = status_of(f);

    while (status.state != KINF_STATE_BACKING_OFF || strstr(status.reason, reason) == NULL) {
        if (kinf__clock_now_ms() > end_ms)
            fail_msg("%s: '%s'", kinf_informer_state_to_string(status.state), status.reason);
        sched_yield();
        status = status_of(f);
    }
}

/* It is a state with this reason, again and again, and the log has one line. */
static void expect_trouble(struct engine_fixture *f, size_t n_requests, const char *reason)
{
    wait_for_reason(f, reason);
    assert_non_null(replay_wait_request(f->replay, n_requests, ENGINE_PATIENCE_MS));
    wait_for_reason(f, reason);
    kinf_log_set_callback(NULL, NULL);
    assert_int_equal(atomic_load(&n_troubles), 1);
    assert_int_equal(atomic_load(&n_ends), 0);
    assert_int_equal(atomic_load(&n_silences), 0);
    assert_int_equal(status_of(f).n_quarantined, 0);
}

/* The same behind one good list, which is the last proof. */
static void expect_no_proof(struct engine_fixture *f, size_t n_requests, const char *reason)
{
    int64_t contact_ms;

    ENGINE_EXPECT(f, "add! a@3", "synced");
    assert_non_null(replay_wait_request(f->replay, 1, ENGINE_PATIENCE_MS));
    contact_ms = status_of(f).last_contact_ms;
    expect_trouble(f, n_requests, reason);
    assert_int_equal(status_of(f).last_contact_ms, contact_ms);
}

static void a_login_page_is_no_watch(void **state)
{
    struct engine_fixture *f = *state;

    f->options.silent_after_ms = NEVER_SILENT_MS;
    START(f, ON_LIST("") LIST("10", POD("a", "3")), ALWAYS_WATCH LOGIN_PAGE,
          ALWAYS_LIST("resourceVersion=10") LOGIN_PAGE);
    expect_no_proof(f, 5, "answered with text/html; charset=utf-8, not JSON: <!DOCTYPE html>");
}

static void a_stream_cut_inside_its_first_event_proves_nothing(void **state)
{
    struct engine_fixture *f = *state;

    f->options.silent_after_ms = NEVER_SILENT_MS;
    START(f, ON_LIST("") LIST("10", POD("a", "3")),
          ALWAYS_WATCH "status 200\npiece {\"type\":\"ADDED\",\"object\":{\"meta\ncut\n",
          ALWAYS_VERIFIED);
    expect_no_proof(f, 13, "server 127.0.0.1");
}

static void a_watch_that_answers_error_for_ever_proves_nothing(void **state)
{
    struct engine_fixture *f = *state;

    f->options.silent_after_ms = NEVER_SILENT_MS;
    START(f, ON_LIST("") LIST("10", POD("a", "3")),
          ALWAYS_WATCH "status 200\nerror 504 Timeout the storage does not answer\n",
          ALWAYS_VERIFIED);
    expect_no_proof(f, 13, "the storage does not answer");
}

/* That sends pages whatever it is asked for. */
static void a_page_token_that_is_refused_for_ever_is_waited_for(void **state)
{
    struct engine_fixture *f = *state;

    f->options.silent_after_ms = NEVER_SILENT_MS;
    f->options.page_size = 1;
    START(f, ALWAYS_LIST("!continue") PAGE("token"),
          ALWAYS_LIST("continue=token") "failure 410 Expired the provided continue parameter\n");
    wait_for_reason(f, "the provided continue parameter");
    assert_true(replay_n_requests(f->replay) <= 6);
    assert_int_equal(atomic_load(&n_troubles), 0); /* a version that expired is no trouble */
    kinf_log_set_callback(NULL, NULL);
}

static void a_watch_list_without_its_end_is_given_up(void **state)
{
    struct engine_fixture *f = *state;

    f->options.initial = KINF_INITIAL_WATCHLIST;
    START(f, ALWAYS_STREAM "status 200\n" EVENT("ADDED", POD("a", "3")) "stall forever\n",
          ALWAYS_LIST("") "status 200\nstall forever\n");
    expect_trouble(f, 3, "silent for");
}

static void a_watch_list_that_ends_without_its_bookmark_is_told(void **state)
{
    struct engine_fixture *f = *state;

    f->options.initial = KINF_INITIAL_WATCHLIST;
    f->options.silent_after_ms = NEVER_SILENT_MS;
    START(f, ALWAYS_STREAM "status 200\n" EVENT("ADDED", POD("a", "3")) "stall 1100\n",
          ALWAYS_LIST("") LIST("10", POD("a", "3")), ALWAYS_WATCH "status 200\nstall forever\n");
    ENGINE_EXPECT(f, "add! a@3", "synced");
    kinf_log_set_callback(NULL, NULL);
    assert_int_equal(atomic_load(&n_troubles), 1);
}

static void newlines_are_no_events(void **state)
{
    struct engine_fixture *f = *state;

    /* Longer than the pauses, also those of a busy machine. */
    f->options.silent_after_ms = 3 * SILENT_AFTER_MS;
    START(f, ON_LIST("") LIST("10", POD("a", "3")), ALWAYS_VERIFIED, ALWAYS_WATCH "status 200\n",
          drip());
    expect_no_proof(f, 4, "bytes of the watch come, but no event for");
}

static void a_list_that_drips_is_given_up(void **state)
{
    struct engine_fixture *f = *state;

    START(f, ALWAYS_LIST("") "status 200\npiece {\n", drip());
    expect_trouble(f, 3, "the list drips");
}

static void a_head_that_drips_is_given_up(void **state)
{
    struct engine_fixture *f = *state;

    START(f, ALWAYS_LIST("") "raw HTTP/1.1 200 OK\\r\\n\n", drip_of("raw X-Drip: 1\\r\\n"));
    expect_trouble(f, 3, "no answer within");
}

static void a_refusal_that_drips_is_given_up(void **state)
{
    struct engine_fixture *f = *state;

    START(f, ALWAYS_LIST("") "status 403\n", drip());
    expect_trouble(f, 3, "no answer within");
}

/* One that never sends a bookmark says nothing of a quiet resource but that it is quiet. */
static void silence_is_the_life_of_a_quiet_resource_without_bookmarks(void **state)
{
    struct engine_fixture *f = *state;
    int64_t contact_ms;

    START(f, ON_LIST("") LIST("10", POD("a", "3")), ALWAYS_WATCH "status 200\nstall forever\n");
    ENGINE_EXPECT(f, "add! a@3", "synced");
    assert_non_null(replay_wait_request(f->replay, 1, ENGINE_PATIENCE_MS));
    contact_ms = status_of(f).last_contact_ms;
    assert_non_null(replay_wait_request(f->replay, 2, ENGINE_PATIENCE_MS));
    assert_true(status_of(f).last_contact_ms > contact_ms);
    engine_wait_for_state(f, KINF_STATE_LIVE);
    kinf_log_set_callback(NULL, NULL);
    assert_int_equal(atomic_load(&n_troubles), 0);
    assert_int_equal(atomic_load(&n_silences), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_BOTH(a_login_page_is_no_watch),
        ENGINE_BOTH(a_stream_cut_inside_its_first_event_proves_nothing),
        ENGINE_BOTH(a_watch_that_answers_error_for_ever_proves_nothing),
        ENGINE_BOTH(a_page_token_that_is_refused_for_ever_is_waited_for),
        ENGINE_BOTH(a_watch_list_without_its_end_is_given_up),
        ENGINE_BOTH(a_watch_list_that_ends_without_its_bookmark_is_told),
        ENGINE_BOTH(newlines_are_no_events),
        ENGINE_BOTH(a_list_that_drips_is_given_up),
        ENGINE_BOTH(a_head_that_drips_is_given_up),
        ENGINE_BOTH(a_refusal_that_drips_is_given_up),
        ENGINE_BOTH(silence_is_the_life_of_a_quiet_resource_without_bookmarks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
