/*
 * Several reviews at once, with an upstream that can be made to hang, and one behind a socket.
 */
#include "serve/authorizer.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "unit/allocation.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define PATIENCE_MS 60000
#define AT_ONCE_MS  5000 /* half of what a review may take */

/* Everybody is who the token says, and may; tokens "slow..." are looked at until they may go on. */
struct upstream {
    struct kinf__authorizer *authorizer;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct kinf__waker may_go;
    unsigned n_slow;
    unsigned n_woken;
};

static bool has(struct kinf_str text, const char *part)
{
    return memmem(text.bytes, text.len, part, strlen(part)) != NULL;
}

static int send_review(void *ctx, const char *target, struct kinf_str body,
                       struct kinf__buffer *answer, struct kinf_error *err)
{
    struct upstream *upstream = ctx;

    (void)err;
    if (strcmp(target, KINF__ACCESS_REVIEW_TARGET) == 0)
        return kinf__buffer_printf(answer, "{\"kind\":\"SubjectAccessReview\","
                                           "\"status\":{\"allowed\":true}}");
    if (has(body, "\"slow")) {
        pthread_mutex_lock(&upstream->mutex);
        upstream->n_slow++;
        pthread_cond_broadcast(&upstream->changed);
        pthread_mutex_unlock(&upstream->mutex);
        kinf__waker_wait(&upstream->may_go, PATIENCE_MS);
    }
    if (has(body, "\"nobody\""))
        return kinf__buffer_printf(answer, "{\"kind\":\"TokenReview\",\"status\":{}}");
    return kinf__buffer_printf(answer, "{\"kind\":\"TokenReview\",\"status\":{"
                                       "\"authenticated\":true,\"user\":{\"username\":\"u\"}}}");
}

static void note_wake(void *ctx)
{
    struct upstream *upstream = ctx;

    pthread_mutex_lock(&upstream->mutex);
    upstream->n_woken++;
    pthread_cond_broadcast(&upstream->changed);
    pthread_mutex_unlock(&upstream->mutex);
}

static struct kinf__access_waiter waiter_of(struct upstream *upstream)
{
    return (struct kinf__access_waiter){ .wake = note_wake, .ctx = upstream };
}

static void begin(struct upstream *upstream, const struct kinf__authorizer_options *options)
{
    memset(upstream, 0, sizeof *upstream);
    pthread_mutex_init(&upstream->mutex, NULL);
    pthread_cond_init(&upstream->changed, NULL);
    assert_int_equal(kinf__waker_init(&upstream->may_go, NULL), 0);
    assert_int_equal(
        kinf__authorizer_new(options, send_review, upstream, &upstream->authorizer, NULL), 0);
}

static void end(struct upstream *upstream)
{
    kinf__authorizer_free(upstream->authorizer);
    kinf__waker_release(&upstream->may_go);
    pthread_cond_destroy(&upstream->changed);
    pthread_mutex_destroy(&upstream->mutex);
}

static void await(struct upstream *upstream, const unsigned *count, unsigned n)
{
    pthread_mutex_lock(&upstream->mutex);
    while (*count < n)
        pthread_cond_wait(&upstream->changed, &upstream->mutex);
    pthread_mutex_unlock(&upstream->mutex);
}

static void *work_once(void *ctx)
{
    assert_true(kinf__authorizer_work(((struct upstream *)ctx)->authorizer, 0));
    return NULL;
}

/* The n-th review of "slow" begins on a thread, and hangs. */
static pthread_t hang(struct upstream *upstream, unsigned n)
{
    pthread_t thread;

    assert_int_equal(kinf__thread_start(&thread, "slow", work_once, upstream, NULL), 0);
    await(upstream, &upstream->n_slow, n);
    return thread;
}

static void let_go(struct upstream *upstream, pthread_t thread)
{
    kinf__waker_set(&upstream->may_go);
    pthread_join(thread, NULL);
}

/* From an address for each first letter. */
static struct kinf__access_request request_of(const char *token, const char *verb)
{
    return (struct kinf__access_request){
        .token = kinf_str_from(token),
        .address = (unsigned char)*token,
        .expires_ms = INT64_MAX,
        .attributes = { verb, "", "", "v1", "pods", "", "default", "", "", "" },
    };
}

static enum kinf__verdict ask(struct kinf__authorizer *authorizer, const char *token,
                              const char *verb, struct kinf__access_waiter *waiter, int64_t now_ms)
{
    const struct kinf__access_request request = request_of(token, verb);
    struct kinf__access_answer answer;

    return kinf__authorizer_ask(authorizer, &request, waiter, now_ms, &answer);
}

static void a_slow_review_holds_up_its_own_token_alone(void **state)
{
    const struct kinf__authorizer_options options = { 0 };
    struct kinf__access_waiter first, same, other, quick;
    struct kinf__authorizer *authorizer;
    struct upstream upstream;
    pthread_t thread;

    (void)state;
    begin(&upstream, &options);
    authorizer = upstream.authorizer;
    first = same = other = quick = waiter_of(&upstream);
    assert_int_equal(ask(authorizer, "slow", "list", &first, 0), KINF__VERDICT_WAITS);
    thread = hang(&upstream, 1);
    assert_int_equal(ask(authorizer, "slow", "list", &same, 0), KINF__VERDICT_WAITS);
    assert_int_equal(ask(authorizer, "slow", "watch", &other, 0), KINF__VERDICT_WAITS);
    assert_int_equal(ask(authorizer, "quick", "list", &quick, 0), KINF__VERDICT_WAITS);
    assert_true(kinf__authorizer_work(authorizer, 0));
    assert_false(kinf__authorizer_work(authorizer, 0));
    assert_int_equal(upstream.n_woken, 1);
    assert_int_equal(ask(authorizer, "quick", "list", &quick, 0), KINF__VERDICT_ALLOWED);
    assert_int_equal(ask(authorizer, "slow", "list", &first, 0), KINF__VERDICT_WAITS);
    let_go(&upstream, thread);
    assert_int_equal(upstream.n_woken, 3);
    assert_int_equal(ask(authorizer, "slow", "list", &first, 0), KINF__VERDICT_ALLOWED);
    assert_int_equal(ask(authorizer, "slow", "list", &same, 0), KINF__VERDICT_ALLOWED);
    assert_true(kinf__authorizer_work(authorizer, 0));
    assert_false(kinf__authorizer_work(authorizer, 0));
    assert_int_equal(ask(authorizer, "slow", "watch", &other, 0), KINF__VERDICT_ALLOWED);
    assert_int_equal(upstream.n_slow, 1);
    end(&upstream);
}

static void who_leaves_during_a_review_is_not_woken(void **state)
{
    const struct kinf__authorizer_options options = { 0 };
    struct kinf__access_waiter *leaves = calloc(1, sizeof *leaves), stays;
    struct upstream upstream;
    pthread_t thread;

    (void)state;
    begin(&upstream, &options);
    assert_non_null(leaves);
    *leaves = stays = waiter_of(&upstream);
    assert_int_equal(ask(upstream.authorizer, "slow", "list", leaves, 0), KINF__VERDICT_WAITS);
    assert_int_equal(ask(upstream.authorizer, "slow", "list", &stays, 0), KINF__VERDICT_WAITS);
    thread = hang(&upstream, 1);
    kinf__authorizer_cancel(upstream.authorizer, leaves);
    free(leaves);
    let_go(&upstream, thread);
    assert_int_equal(upstream.n_woken, 1);
    assert_int_equal(ask(upstream.authorizer, "slow", "list", &stays, 0), KINF__VERDICT_ALLOWED);
    end(&upstream);
}

static void slow_unknown_tokens_leave_threads_to_other_addresses(void **state)
{
    static const char *const slow[] = { "slow", "slow2", "slow3" };
    const struct kinf__authorizer_options options = { 0 };
    struct kinf__access_waiter waiters[3], other;
    struct kinf__authorizer *authorizer;
    struct upstream upstream;
    pthread_t threads[2];

    (void)state;
    begin(&upstream, &options);
    authorizer = upstream.authorizer;
    for (unsigned i = 0; i < 3; i++) {
        waiters[i] = waiter_of(&upstream);
        assert_int_equal(ask(authorizer, slow[i], "list", &waiters[i], 0), KINF__VERDICT_WAITS);
    }
    threads[0] = hang(&upstream, 1);
    threads[1] = hang(&upstream, 2);
    assert_false(kinf__authorizer_work(authorizer, 0));
    other = waiter_of(&upstream);
    assert_int_equal(ask(authorizer, "other", "list", &other, 0), KINF__VERDICT_WAITS);
    assert_true(kinf__authorizer_work(authorizer, 0));
    assert_int_equal(ask(authorizer, "other", "list", &other, 0), KINF__VERDICT_ALLOWED);
    let_go(&upstream, threads[0]);
    pthread_join(threads[1], NULL);
    assert_true(kinf__authorizer_work(authorizer, 0));
    end(&upstream);
}

/* --- with threads of its own --- */

static const char *const tokens[] = { "a", "b", "c", "d", "e", "f", "g", "h" };

struct behind_socket {
    struct upstream upstream;
    struct replay *server;
    struct kinf_client *client;
    struct kinf__access_waiter waiters[KINF__ARRAY_LEN(tokens)];
};

static void start(struct behind_socket *b, const struct test_reply *replies, size_t n_replies)
{
    const struct kinf__authorizer_options options = { 0 };

    b->server = test_server_start(replies, n_replies);
    b->client = test_client_of(replay_port(b->server), NULL);
    begin(&b->upstream, &options);
    assert_int_equal(kinf__authorizer_start(b->upstream.authorizer, b->client, NULL), 0);
}

static void ask_all(struct behind_socket *b)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(tokens); i++) {
        b->waiters[i] = waiter_of(&b->upstream);
        assert_int_equal(
            ask(b->upstream.authorizer, tokens[i], "list", &b->waiters[i], kinf__clock_now_ms()),
            KINF__VERDICT_WAITS);
    }
}

static void stop(struct behind_socket *b)
{
    int64_t began_ms = kinf__clock_now_ms();

    end(&b->upstream);
    assert_true(kinf__clock_now_ms() - began_ms < AT_ONCE_MS);
    kinf_client_free(b->client);
    replay_stop(b->server);
}

static const struct test_reply reviews[] = {
    { .path = KINF__TOKEN_REVIEW_TARGET,
      .status = "201 Created",
      .body = "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,"
              "\"user\":{\"username\":\"u\"}}}" },
    { .path = KINF__ACCESS_REVIEW_TARGET,
      .status = "201 Created",
      .body = "{\"kind\":\"SubjectAccessReview\",\"status\":{\"allowed\":true}}" },
};

static void its_threads_ask_the_upstream(void **state)
{
    struct behind_socket b;

    (void)state;
    start(&b, reviews, KINF__ARRAY_LEN(reviews));
    ask_all(&b);
    await(&b.upstream, &b.upstream.n_woken, KINF__ARRAY_LEN(tokens));
    for (size_t i = 0; i < KINF__ARRAY_LEN(tokens); i++)
        assert_int_equal(
            ask(b.upstream.authorizer, tokens[i], "list", &b.waiters[i], kinf__clock_now_ms()),
            KINF__VERDICT_ALLOWED);
    stop(&b);
}

/* Not only for what is left of it since the thread began to wait for a question. */
static void what_a_thread_decides_after_an_hour_is_kept_as_long_as_any(void **state)
{
    struct kinf__access_waiter again;
    struct behind_socket b;

    (void)state;
    kinf__clock_begin_simulation();
    start(&b, reviews, KINF__ARRAY_LEN(reviews));
    ask_all(&b);
    await(&b.upstream, &b.upstream.n_woken, KINF__ARRAY_LEN(tokens));
    kinf__clock_advance(3600000);
    ask_all(&b);
    await(&b.upstream, &b.upstream.n_woken, 2 * KINF__ARRAY_LEN(tokens));
    for (size_t i = 0; i < KINF__ARRAY_LEN(tokens); i++) {
        again = waiter_of(&b.upstream);
        assert_int_equal(
            ask(b.upstream.authorizer, tokens[i], "list", &again, kinf__clock_now_ms()),
            KINF__VERDICT_ALLOWED);
    }
    stop(&b);
    kinf__clock_end_simulation();
}

static void its_threads_see_that_the_upstream_is_back(void **state)
{
    static const struct test_reply replies[] = {
        { .path = KINF__TOKEN_REVIEW_TARGET, .body = "{}", .end = TEST_END_CUT },
        { .path = KINF__ACCESS_REVIEW_TARGET,
          .status = "201 Created",
          .body = "{\"kind\":\"SubjectAccessReview\",\"status\":{\"allowed\":false}}" },
    };
    struct kinf__authorizer_status status;
    struct kinf__access_waiter waiter;
    struct behind_socket b;

    (void)state;
    kinf__clock_begin_simulation();
    start(&b, replies, KINF__ARRAY_LEN(replies));
    waiter = waiter_of(&b.upstream);
    assert_int_equal(ask(b.upstream.authorizer, "a", "list", &waiter, kinf__clock_now_ms()),
                     KINF__VERDICT_WAITS);
    await(&b.upstream, &b.upstream.n_woken, 1);
    kinf__authorizer_status(b.upstream.authorizer, kinf__clock_now_ms(), &status);
    assert_int_not_equal(status.away_ms, 0);
    do {
        kinf__clock_advance(1000);
        kinf__authorizer_status(b.upstream.authorizer, kinf__clock_now_ms(), &status);
    } while (status.away_ms != 0);
    stop(&b);
    kinf__clock_end_simulation();
}

static void stop_breaks_off_reviews_that_hang(void **state)
{
    static const struct test_reply replies[] = {
        { .path = KINF__TOKEN_REVIEW_TARGET, .body = "{}", .end = TEST_END_OPEN }
    };
    struct behind_socket b;

    (void)state;
    start(&b, replies, KINF__ARRAY_LEN(replies));
    ask_all(&b);
    while (replay_n_requests(b.server) == 0)
        sched_yield();
    for (size_t i = 0; i < KINF__ARRAY_LEN(tokens); i++)
        kinf__authorizer_cancel(b.upstream.authorizer, &b.waiters[i]);
    stop(&b);
    assert_int_equal(b.upstream.n_woken, 0);
}

static void stop_ends_threads_that_have_nothing_to_do(void **state)
{
    struct behind_socket b;

    (void)state;
    start(&b, NULL, 0);
    stop(&b);
}

static void without_memory_it_does_not_start_and_nothing_leaks(void **state)
{
    const struct kinf__authorizer_options options = { 0 };
    struct kinf_client *client = test_client_of(1, NULL);
    bool has_failed = true;

    (void)state;
    for (size_t n = 1; has_failed; n++) {
        struct kinf__authorizer *authorizer = NULL;
        struct kinf_error err = KINF_ERROR_INIT;
        int failed;

        test_fail_allocation(n);
        failed = kinf__authorizer_new(&options, send_review, NULL, &authorizer, &err);
        if (failed == 0)
            failed = kinf__authorizer_start(authorizer, client, &err);
        has_failed = test_allocation_failed();
        assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : 0);
        kinf__authorizer_free(authorizer);
    }
    kinf_client_free(client);
}

/* --- all at once --- */

#define N_ASKERS  3
#define N_WORKERS 3

struct crowd {
    struct upstream upstream;
    size_t n_rounds;
    _Atomic(int64_t) now_ms; /* passes with each question: what is kept does not stay */
    _Atomic(bool) is_over;
};

struct asker {
    struct crowd *crowd;
    struct test_random random;
    struct kinf__waker woken;
};

static void *work_on(void *ctx)
{
    struct crowd *crowd = ctx;

    while (!atomic_load(&crowd->is_over)) {
        if (!kinf__authorizer_work(crowd->upstream.authorizer, atomic_load(&crowd->now_ms)))
            sched_yield();
    }
    return NULL;
}

static void wake_asker(void *ctx)
{
    kinf__waker_set(&((struct asker *)ctx)->woken);
}

static enum kinf__verdict ask_patiently(struct asker *asker, const char *token, const char *verb,
                                        bool gives_up)
{
    struct kinf__authorizer *authorizer = asker->crowd->upstream.authorizer;
    struct kinf__access_waiter *waiter = calloc(1, sizeof *waiter);
    enum kinf__verdict verdict;

    if (waiter == NULL)
        abort();
    *waiter = (struct kinf__access_waiter){ .wake = wake_asker, .ctx = asker };
    kinf__waker_clear(&asker->woken);
    verdict = ask(authorizer, token, verb, waiter, atomic_fetch_add(&asker->crowd->now_ms, 1));
    if (verdict == KINF__VERDICT_WAITS && !gives_up) {
        if (!kinf__waker_wait(&asker->woken, PATIENCE_MS))
            abort();
        verdict = ask(authorizer, token, verb, waiter, atomic_load(&asker->crowd->now_ms));
    }
    if (gives_up)
        kinf__authorizer_give_up(authorizer, waiter);
    kinf__authorizer_cancel(authorizer, waiter);
    free(waiter);
    return verdict;
}

static void *ask_on(void *ctx)
{
    static const char *const names[] = { "a", "b", "nobody" };
    static const char *const verbs[] = { "list", "watch" };
    struct asker *asker = ctx;

    for (size_t i = 0; i < asker->crowd->n_rounds; i++) {
        const char *name = names[test_random_below(&asker->random, 3)];
        bool gives_up = test_random_below(&asker->random, 3) == 0;
        enum kinf__verdict verdict =
            ask_patiently(asker, name, verbs[test_random_below(&asker->random, 2)], gives_up);

        if (verdict !=
                (strcmp(name, "nobody") == 0 ? KINF__VERDICT_UNKNOWN : KINF__VERDICT_ALLOWED) &&
            !(gives_up && verdict == KINF__VERDICT_WAITS) && verdict != KINF__VERDICT_THROTTLED)
            abort();
    }
    return NULL;
}

static void many_ask_and_leave_while_several_decide(void **state)
{
    const struct kinf__authorizer_options options = {
        .allow_ms = 3, .deny_ms = 2, .tokens_per_s = 1000000, .max_inquiries = 2
    };
    struct crowd crowd = { .n_rounds = test_rounds(4000) };
    struct asker askers[N_ASKERS];
    pthread_t asking[N_ASKERS], working[N_WORKERS];

    (void)state;
    begin(&crowd.upstream, &options);
    for (size_t i = 0; i < N_WORKERS; i++)
        assert_int_equal(kinf__thread_start(&working[i], "work", work_on, &crowd, NULL), 0);
    for (size_t i = 0; i < N_ASKERS; i++) {
        askers[i] = (struct asker){ &crowd, test_random_init("crowd"), { -1 } };
        assert_int_equal(kinf__waker_init(&askers[i].woken, NULL), 0);
        assert_int_equal(kinf__thread_start(&asking[i], "ask", ask_on, &askers[i], NULL), 0);
    }
    for (size_t i = 0; i < N_ASKERS; i++) {
        pthread_join(asking[i], NULL);
        kinf__waker_release(&askers[i].woken);
    }
    atomic_store(&crowd.is_over, true);
    for (size_t i = 0; i < N_WORKERS; i++)
        pthread_join(working[i], NULL);
    end(&crowd.upstream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_review_holds_up_its_own_token_alone),
        cmocka_unit_test(who_leaves_during_a_review_is_not_woken),
        cmocka_unit_test(slow_unknown_tokens_leave_threads_to_other_addresses),
        cmocka_unit_test(its_threads_ask_the_upstream),
        cmocka_unit_test(what_a_thread_decides_after_an_hour_is_kept_as_long_as_any),
        cmocka_unit_test(its_threads_see_that_the_upstream_is_back),
        cmocka_unit_test(stop_breaks_off_reviews_that_hang),
        cmocka_unit_test(stop_ends_threads_that_have_nothing_to_do),
        cmocka_unit_test(without_memory_it_does_not_start_and_nothing_leaks),
        cmocka_unit_test(many_ask_and_leave_while_several_decide),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
