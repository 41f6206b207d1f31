/*
 * Round trips of one transport, beside each other on one thread: each has its own limits and its own
 * end. What one alone does is in test_http.c and test_forward.c.
 */
#include "rest/transport.h"

#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define N_TRIPS  3
#define LIMIT_MS 200
#define LONG_MS  20000

struct taker {
    struct kinf__roundtrip trip;
    struct kinf__buffer body;
    bool pauses; /* once */
    bool is_through;
    int code;
    struct kinf_error err;
};

static bool take_head(const struct kinf__head *head, void *ctx)
{
    (void)ctx;
    return head->code == 200;
}

static int take_body(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct taker *taker = ctx;

    (void)err;
    if (taker->pauses)
        return KINF__ROUNDTRIP_PAUSE;
    assert_int_equal(kinf__buffer_append(&taker->body, bytes, len), 0);
    return 0;
}

static void take_end(int code, const struct kinf_error *err, void *ctx)
{
    struct taker *taker = ctx;

    assert_false(taker->is_through);
    taker->is_through = true;
    taker->code = code;
    taker->err = *err;
}

struct fixture {
    struct replay *server;
    struct kinf_client *client;
    struct kinf__waker waker;
    struct kinf__transport transport;
    struct taker takers[N_TRIPS];
};

static void begin(struct fixture *f, const struct test_reply *replies, size_t n_replies)
{
    static const struct kinf__roundtrip_ops ops = { NULL, take_head, take_body, take_end };

    memset(f, 0, sizeof *f);
    f->server = test_server_start(replies, n_replies);
    f->client = test_client_of(replay_port(f->server), NULL);
    assert_int_equal(kinf__waker_init(&f->waker, NULL), 0);
    assert_int_equal(kinf__transport_init(&f->transport, NULL), 0);
    for (size_t i = 0; i < N_TRIPS; i++)
        assert_int_equal(kinf__roundtrip_init(&f->takers[i].trip, f->client, NULL, 16384, &ops,
                                              &f->takers[i], NULL),
                         0);
}

static void end(struct fixture *f)
{
    for (size_t i = 0; i < N_TRIPS; i++) {
        kinf__roundtrip_release(&f->takers[i].trip);
        kinf__buffer_release(&f->takers[i].body);
    }
    kinf__transport_release(&f->transport);
    kinf__waker_release(&f->waker);
    kinf_client_free(f->client);
    replay_stop(f->server);
}

static void add(struct fixture *f, size_t i, const char *target, struct kinf__limits limits)
{
    const struct kinf__roundtrip_request request = { .method = "GET",
                                                     .target = kinf_str_from(target),
                                                     .limits = limits,
                                                     .stop = i == 0 ? &f->waker : NULL };
    struct taker *taker = &f->takers[i];

    taker->is_through = false;
    taker->body.len = 0;
    assert_int_equal(kinf__roundtrip_prepare(&taker->trip, &request, NULL), 0);
    assert_int_equal(kinf__roundtrip_add(&taker->trip, &f->transport, NULL), 0);
}

static void drive_until(struct fixture *f, const bool *is_done)
{
    int64_t until_ms = kinf__clock_now_ms() + LONG_MS;

    while (!*is_done && kinf__clock_now_ms() < until_ms) {
        kinf__transport_perform(&f->transport);
        if (!*is_done)
            kinf__transport_wait(&f->transport, &f->waker, KINF__NEVER_MS);
    }
    assert_true(*is_done);
}

static void each_ends_by_its_own_limit(void **state)
{
    static const struct test_reply replies[] = {
        { .path = "/open", .body = "o", .end = TEST_END_OPEN },
        { .path = "/whole", .body = "whole" },
        { .path = "/none", .end = TEST_NO_REPLY },
    };
    struct fixture f;

    (void)state;
    begin(&f, replies, KINF__ARRAY_LEN(replies));
    add(&f, 0, "/open", (struct kinf__limits){ .idle_ms = 2 * LIMIT_MS });
    add(&f, 1, "/whole", (struct kinf__limits){ .total_ms = LONG_MS });
    add(&f, 2, "/none", (struct kinf__limits){ .head_ms = LIMIT_MS });
    drive_until(&f, &f.takers[0].is_through);
    assert_int_equal(f.takers[0].code, KINF_ERR_TIMEOUT);
    assert_non_null(strstr(f.takers[0].err.message, "silent for 400 ms"));
    assert_true(f.takers[1].is_through);
    assert_int_equal(f.takers[1].code, 0);
    assert_string_equal(kinf__buffer_cstr(&f.takers[1].body), "whole");
    assert_true(f.takers[2].is_through);
    assert_int_equal(f.takers[2].code, KINF_ERR_TIMEOUT);
    assert_non_null(strstr(f.takers[2].err.message, "no answer within 200 ms"));
    assert_true(f.takers[2].trip.is_sent);
    /* And again, over the same handles. */
    add(&f, 0, "/whole", (struct kinf__limits){ .total_ms = LONG_MS });
    drive_until(&f, &f.takers[0].is_through);
    assert_int_equal(f.takers[0].code, 0);
    end(&f);
}

static void the_waker_stops_whose_it_is(void **state)
{
    static const struct test_reply reply = { .path = "/open", .body = "o", .end = TEST_END_OPEN };
    const struct kinf__limits none = { 0 };
    struct fixture f;

    (void)state;
    begin(&f, &reply, 1);
    add(&f, 0, "/open", none);
    add(&f, 1, "/open", none);
    kinf__waker_set(&f.waker);
    drive_until(&f, &f.takers[0].is_through);
    assert_int_equal(f.takers[0].code, KINF_ERR_STOPPED);
    assert_false(f.takers[1].is_through);
    end(&f);
}

/* Nor is what is not taken a silence of the server. */
static void who_pauses_holds_up_nobody_else(void **state)
{
    static const struct test_reply replies[] = {
        { .path = "/open", .body = "o", .end = TEST_END_OPEN },
        { .path = "/whole", .body = "whole" },
    };
    const struct kinf__limits limits = { .idle_ms = LIMIT_MS };
    struct fixture f;

    (void)state;
    begin(&f, replies, KINF__ARRAY_LEN(replies));
    f.takers[1].pauses = true;
    add(&f, 1, "/whole", limits);
    add(&f, 0, "/open", (struct kinf__limits){ .idle_ms = 3 * LIMIT_MS });
    drive_until(&f, &f.takers[0].is_through);
    assert_int_equal(f.takers[0].code, KINF_ERR_TIMEOUT);
    assert_false(f.takers[1].is_through);
    f.takers[1].pauses = false;
    kinf__roundtrip_resume(&f.takers[1].trip);
    drive_until(&f, &f.takers[1].is_through);
    assert_int_equal(f.takers[1].code, 0);
    assert_string_equal(kinf__buffer_cstr(&f.takers[1].body), "whole");
    end(&f);
}

static void who_leaves_is_not_told(void **state)
{
    static const struct test_reply replies[] = {
        { .path = "/open", .body = "o", .end = TEST_END_OPEN },
        { .path = "/whole", .body = "whole" },
    };
    struct fixture f;

    (void)state;
    begin(&f, replies, KINF__ARRAY_LEN(replies));
    add(&f, 1, "/open", (struct kinf__limits){ .idle_ms = LIMIT_MS });
    kinf__transport_perform(&f.transport);
    kinf__roundtrip_leave(&f.takers[1].trip);
    kinf__roundtrip_leave(&f.takers[1].trip);
    add(&f, 0, "/whole", (struct kinf__limits){ .total_ms = LONG_MS });
    drive_until(&f, &f.takers[0].is_through);
    assert_int_equal(f.takers[0].code, 0);
    assert_false(f.takers[1].is_through);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_ends_by_its_own_limit),
        cmocka_unit_test(the_waker_stops_whose_it_is),
        cmocka_unit_test(who_pauses_holds_up_nobody_else),
        cmocka_unit_test(who_leaves_is_not_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
