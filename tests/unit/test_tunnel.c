/*
 * Bytes of a client, on a socket, carried to a server and back, until either side ends.
 */
#include "serve/tunnel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define LONG_MS 60000

struct fixture {
    struct kinf_client *client;
    struct kinf__forwarder *forwarder;
    struct kinf__tunnels *tunnels;
    struct kinf__forward *forward;
    _Atomic(struct kinf__tunnel *) tunnel;
    struct kinf__waker over;
    int listener;
    int server; /* the server's side of its connection */
    int ours;   /* the tunnel's end of the client's */
    int theirs; /* the client's */
};

static void wake(void *ctx)
{
    struct fixture *f = ctx;
    struct kinf__tunnel *tunnel = atomic_load(&f->tunnel);

    if (tunnel != NULL)
        kinf__tunnel_wake(tunnel);
}

static void on_over(void *ctx)
{
    struct fixture *f = ctx;

    kinf__waker_set(&f->over);
}

static void ask(struct fixture *f)
{
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
    const struct kinf__forward_request request = { .method = "GET",
                                                   .target = KINF_STR("/x"),
                                                   .caller = KINF_STR("theirs"),
                                                   .is_upgrade = true,
                                                   .wake = wake,
                                                   .wake_ctx = f };
    char head[4096];
    const struct kinf__head *got;

    assert_int_equal(kinf__forward_new(f->forwarder, &request, &f->forward, NULL), 0);
    f->server = accept(f->listener, NULL, NULL);
    assert_true(f->server >= 0 && recv(f->server, head, sizeof head, 0) > 0);
    assert_int_equal(send(f->server, answer, sizeof answer - 1, 0), sizeof answer - 1);
    while (kinf__forward_head(f->forward, &got, NULL) == 0)
        usleep(1000);
    assert_int_equal(got->code, 101);
}

static void setup_with(struct fixture *f, const char *text)
{
    const struct kinf__forwarder_options one = { .max_forwards = 1 };
    KINF__AUTO_BUFFER head = KINF__BUFFER_INIT;
    unsigned port;
    int pair[2];

    memset(f, 0, sizeof *f);
    f->listener = test_listen(4, &port);
    f->client = test_client_of(port, NULL);
    assert_int_equal(kinf__waker_init(&f->over, NULL), 0);
    assert_int_equal(kinf__forwarder_new(f->client, &one, &f->forwarder, NULL), 0);
    assert_int_equal(kinf__tunnels_new(&f->tunnels, NULL), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    f->ours = pair[0];
    f->theirs = pair[1];
    ask(f);
    assert_int_equal(kinf__buffer_append_str(&head, kinf_str_from(text)), 0);
    atomic_store(&f->tunnel, kinf__tunnel_new(f->tunnels, f->forward, &head, on_over, f));
    assert_non_null(atomic_load(&f->tunnel));
    assert_int_equal(head.len, 0);
}

static void setup(struct fixture *f)
{
    setup_with(f, "head");
    kinf__tunnel_open(atomic_load(&f->tunnel), f->ours, NULL);
}

static void close_it(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void teardown(struct fixture *f)
{
    kinf__forward_free(f->forward);
    kinf__tunnels_free(f->tunnels);
    kinf__tunnel_free(atomic_load(&f->tunnel));
    kinf__forwarder_free(f->forwarder);
    kinf_client_free(f->client);
    kinf__waker_release(&f->over);
    close_it(&f->listener);
    close_it(&f->server);
    close_it(&f->ours);
    close_it(&f->theirs);
}

static void await_over(struct fixture *f)
{
    assert_true(kinf__waker_wait(&f->over, LONG_MS));
}

static void expect(int fd, const char *text)
{
    char got[64];

    assert_int_equal(recv(fd, got, strlen(text), MSG_WAITALL), strlen(text));
    assert_memory_equal(got, text, strlen(text));
}

static void bytes_go_both_ways_behind_the_head(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f);
    expect(f.theirs, "head");
    for (int i = 0; i < 100; i++) {
        assert_int_equal(send(f.theirs, "ping", 4, 0), 4);
        expect(f.server, "ping");
        assert_int_equal(send(f.server, "pong", 4, 0), 4);
        expect(f.theirs, "pong");
    }
    close_it(&f.theirs);
    await_over(&f);
    teardown(&f);
}

static void what_was_sent_comes_before_the_end(void **state)
{
    struct fixture f;
    char nothing;

    (void)state;
    setup(&f);
    assert_int_equal(send(f.theirs, "last", 4, 0), 4);
    close_it(&f.theirs);
    expect(f.server, "last");
    assert_int_equal(recv(f.server, &nothing, 1, 0), 0);
    await_over(&f);
    teardown(&f);
}

static void the_servers_end_comes_behind_what_it_sent(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f);
    assert_int_equal(send(f.server, "last", 4, 0), 4);
    close_it(&f.server);
    expect(f.theirs, "headlast");
    await_over(&f);
    teardown(&f);
}

/* Who writes and never reads, on both sides: each is held up, and all of it is there at the end. */
static void slow_sides_are_waited_for(void **state)
{
    static char piece[65536];
    struct fixture f;
    size_t n_up = 0, n_down = 0;

    (void)state;
    setup(&f);
    expect(f.theirs, "head");
    for (int quiet = 0; quiet < 20;) {
        ssize_t up = send(f.theirs, piece, sizeof piece, MSG_DONTWAIT),
                down = send(f.server, piece, sizeof piece, MSG_DONTWAIT);

        n_up += up > 0 ? (size_t)up : 0;
        n_down += down > 0 ? (size_t)down : 0;
        quiet = up > 0 || down > 0 ? 0 : quiet + 1;
        assert_true(n_up < (64u << 20) && n_down < (64u << 20));
        if (quiet != 0)
            usleep(5000);
    }
    while (n_up != 0 || n_down != 0) {
        ssize_t up = recv(f.server, piece, sizeof piece, MSG_DONTWAIT),
                down = recv(f.theirs, piece, sizeof piece, MSG_DONTWAIT);

        n_up -= up > 0 ? (size_t)up : 0;
        n_down -= down > 0 ? (size_t)down : 0;
    }
    close_it(&f.server);
    await_over(&f);
    teardown(&f);
}

static void a_forward_that_ends_ends_the_tunnel(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f);
    expect(f.theirs, "head");
    kinf__forward_end(f.forward);
    await_over(&f);
    teardown(&f);
}

static void a_stop_ends_all_and_what_is_opened_later(void **state)
{
    struct fixture f, late;
    int64_t began_ms;

    (void)state;
    setup(&f);
    setup_with(&late, "");
    began_ms = kinf__clock_now_ms();
    kinf__tunnels_stop(f.tunnels);
    assert_true(kinf__waker_is_set(&f.over));
    kinf__tunnels_stop(late.tunnels);
    assert_false(kinf__waker_is_set(&late.over));
    kinf__tunnel_open(atomic_load(&late.tunnel), late.ours, NULL);
    assert_true(kinf__waker_is_set(&late.over));
    assert_true(kinf__clock_now_ms() - began_ms < 500);
    teardown(&f);
    teardown(&late);
}

/* It takes nothing any more, and its server never did. */
static void who_has_gone_is_not_waited_for_long(void **state)
{
    static char piece[65536];
    struct fixture f;
    int64_t began_ms;

    (void)state;
    setup(&f);
    /* The kernel does not say so when there is room again until it is a third of all, but takes what it
     * is given: so that all is full, all that is on its way is tried again and again. */
    for (int quiet = 0; quiet < 20; usleep(quiet != 0 ? 5000 : 0)) {
        quiet = send(f.theirs, piece, sizeof piece, MSG_DONTWAIT) > 0 ? 0 : quiet + 1;
        wake(&f);
    }
    shutdown(f.theirs, SHUT_WR);
    began_ms = kinf__clock_now_ms();
    assert_false(kinf__waker_wait(&f.over, 100));
    close_it(&f.theirs);
    await_over(&f);
    assert_true(kinf__clock_now_ms() - began_ms < 10000);
    teardown(&f);
}

static void who_reads_slowly_gets_all_behind_the_servers_end(void **state)
{
    static char piece[65536];
    struct fixture f;
    size_t n_down = sizeof "head" - 1, n_got = 0;
    ssize_t n = 1;

    (void)state;
    setup(&f);
    for (int quiet = 0; quiet < 20; usleep(quiet != 0 ? 5000 : 0)) {
        n = send(f.server, piece, sizeof piece, MSG_DONTWAIT);
        n_down += n > 0 ? (size_t)n : 0;
        quiet = n > 0 ? 0 : quiet + 1;
    }
    close_it(&f.server);
    assert_false(kinf__waker_wait(&f.over, 3000));
    while (n_got < n_down && (n = recv(f.theirs, piece, sizeof piece, 0)) > 0)
        n_got += (size_t)n;
    assert_int_equal(n_got, n_down);
    await_over(&f);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_go_both_ways_behind_the_head),
        cmocka_unit_test(what_was_sent_comes_before_the_end),
        cmocka_unit_test(the_servers_end_comes_behind_what_it_sent),
        cmocka_unit_test(slow_sides_are_waited_for),
        cmocka_unit_test(a_forward_that_ends_ends_the_tunnel),
        cmocka_unit_test(a_stop_ends_all_and_what_is_opened_later),
        cmocka_unit_test(who_has_gone_is_not_waited_for_long),
        cmocka_unit_test(who_reads_slowly_gets_all_behind_the_servers_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
