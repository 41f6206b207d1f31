/*
 * Connections: who is at the other end, and how long they may owe a request.
 */
#include "serve/peer.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "base/clock.h"
#include "unit/test.h"

#define PATIENCE_MS 3600000 /* the server's own timer never gets there */

struct fixture {
    struct kinf__server *server;
    struct kinf__peers peers;
    struct kinf__peer *peer;
    int fds[2]; /* the peer's, and its client's */
};

static int set_up(void **state)
{
    struct kinf__server_options options = { 0 };
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL || kinf__server_new(&options, &f->server, NULL) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, f->fds) < 0)
        return -1;
    kinf__peers_init(&f->peers, f->server);
    f->peer = kinf__peer_new(f->fds[0]);
    *state = f;
    return f->peer != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    kinf__peer_free(&f->peers, f->peer);
    kinf__peers_release(&f->peers);
    kinf__server_stop(f->server);
    kinf__server_free(f->server);
    close(f->fds[0]);
    close(f->fds[1]);
    free(f);
    return 0;
}

static void tick(struct fixture *f, int64_t now_ms)
{
    f->peers.hook.tick(now_ms, f->peers.hook.ctx);
}

static bool is_cut(const struct fixture *f)
{
    struct pollfd poller = { .fd = f->fds[1], .events = POLLRDHUP };

    return poll(&poller, 1, 0) == 1;
}

static void who_owes_a_request_too_long_is_cut_off(void **state)
{
    struct fixture *f = *state;
    int64_t before_ms = kinf__clock_now_ms(), after_ms;

    kinf__peer_await(&f->peers, f->peer, PATIENCE_MS);
    after_ms = kinf__clock_now_ms();
    assert_true(kinf__peer_owes(f->peer));
    tick(f, before_ms + PATIENCE_MS - 1);
    assert_false(is_cut(f));
    tick(f, after_ms + PATIENCE_MS);
    assert_true(is_cut(f));
}

static void who_owes_nothing_is_left_alone(void **state)
{
    struct fixture *f = *state;

    tick(f, INT64_MAX);
    assert_false(is_cut(f));
    kinf__peer_await(&f->peers, f->peer, PATIENCE_MS);
    kinf__peer_forgive(&f->peers, f->peer);
    kinf__peer_forgive(&f->peers, f->peer);
    assert_false(kinf__peer_owes(f->peer));
    tick(f, INT64_MAX);
    assert_false(is_cut(f));
}

static void the_last_deadline_counts(void **state)
{
    struct fixture *f = *state;
    int64_t before_ms;

    kinf__peer_await(&f->peers, f->peer, PATIENCE_MS);
    before_ms = kinf__clock_now_ms();
    kinf__peer_await(&f->peers, f->peer, 3 * (int64_t)PATIENCE_MS);
    tick(f, before_ms + 2 * (int64_t)PATIENCE_MS);
    assert_false(is_cut(f));
    kinf__peer_forgive(&f->peers, f->peer);
    assert_true(kinf__list_is_empty(&f->peers.waiting));
}

static void without_memory_nothing_is_counted(void **state)
{
    struct fixture *f = *state;

    kinf__peer_await(&f->peers, NULL, PATIENCE_MS);
    assert_false(kinf__peer_owes(NULL));
    assert_true(kinf__list_is_empty(&f->peers.waiting));
    kinf__peer_forgive(&f->peers, NULL);
    kinf__peer_free(&f->peers, NULL);
}

static void a_process_is_known_by_its_user(void **state)
{
    const struct fixture *f = *state;
    const uint32_t users[] = { (uint32_t)getuid() + 1, (uint32_t)getuid() };
    char expected[64], text[64] = "";

    assert_true(kinf__peer_is_one_of(f->fds[0], users, 2));
    assert_false(kinf__peer_is_one_of(f->fds[0], users, 1));
    assert_false(kinf__peer_is_one_of(f->fds[0], NULL, 0));
    assert_false(kinf__peer_is_one_of(-1, users, 2));
    snprintf(expected, sizeof expected, "unix uid=%u pid=%d", getuid(), getpid());
    kinf__peer_describe_process(f->fds[0], text, sizeof text);
    assert_string_equal(text, expected);
}

static void addresses_are_told_with_their_ports(void **state)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(4711) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(1) };
    char text[64] = "";

    (void)state;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    v6.sin6_addr = in6addr_loopback;
    kinf__peer_describe_address((const struct sockaddr *)&v4, text, sizeof text);
    assert_string_equal(text, "127.0.0.1:4711");
    kinf__peer_describe_address((const struct sockaddr *)&v6, text, sizeof text);
    assert_string_equal(text, "[::1]:1");
}

#define WITH_PEER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PEER(who_owes_a_request_too_long_is_cut_off),
        WITH_PEER(who_owes_nothing_is_left_alone),
        WITH_PEER(the_last_deadline_counts),
        WITH_PEER(without_memory_nothing_is_counted),
        WITH_PEER(a_process_is_known_by_its_user),
        cmocka_unit_test(addresses_are_told_with_their_ports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
