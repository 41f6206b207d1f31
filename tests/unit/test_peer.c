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
    f->peer = kinf__peer_new(&f->peers, f->fds[0]);
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

static int64_t tick(struct fixture *f, int64_t now_ms)
{
    return f->peers.hook.tick(now_ms, f->peers.hook.ctx);
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
    assert_in_range(tick(f, before_ms + PATIENCE_MS - 1), before_ms + PATIENCE_MS,
                    after_ms + PATIENCE_MS);
    assert_false(is_cut(f));
    assert_int_equal(tick(f, after_ms + PATIENCE_MS), KINF__NEVER_MS);
    assert_true(is_cut(f));
}

static void who_owes_nothing_is_left_alone(void **state)
{
    struct fixture *f = *state;

    tick(f, INT64_MAX - 1);
    assert_false(is_cut(f));
    kinf__peer_await(&f->peers, f->peer, PATIENCE_MS);
    kinf__peer_forgive(&f->peers, f->peer);
    kinf__peer_forgive(&f->peers, f->peer);
    assert_false(kinf__peer_owes(f->peer));
    tick(f, INT64_MAX - 1);
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

static void only_so_many_are_cut_off_at_a_time(void **state)
{
    struct fixture *f = *state;
    struct kinf__peer *before[500];

    for (size_t i = 0; i < 500; i++) {
        before[i] = kinf__peer_new(&f->peers, -1);
        assert_non_null(before[i]);
        kinf__peer_await(&f->peers, before[i], PATIENCE_MS);
    }
    kinf__peer_await(&f->peers, f->peer, PATIENCE_MS);
    assert_true(tick(f, INT64_MAX - 1) < INT64_MAX - 1); /* it is due already */
    assert_false(is_cut(f));
    assert_int_equal(tick(f, INT64_MAX - 1), KINF__NEVER_MS);
    assert_true(is_cut(f));
    for (size_t i = 0; i < 500; i++)
        kinf__peer_free(&f->peers, before[i]);
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

static uint64_t network_of(const char *address)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        return kinf__peer_network((const struct sockaddr *)&v4);
    assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
    return kinf__peer_network((const struct sockaddr *)&v6);
}

static void of_ipv6_the_network_counts_and_of_ipv4_the_address(void **state)
{
    (void)state;
    assert_int_equal(network_of("10.1.2.3"), 0x0a010203);
    assert_int_equal(network_of("::ffff:10.1.2.3"), 0x0a010203);
    assert_int_not_equal(network_of("10.1.2.4"), network_of("10.1.2.3"));
    assert_int_equal(network_of("2001:db8:0:1::1"), network_of("2001:db8:0:1:ffff::2"));
    assert_int_not_equal(network_of("2001:db8:0:1::1"), network_of("2001:db8:0:2::1"));
    assert_int_not_equal(network_of("64:ff9b::1"), network_of("::1"));
}

/* Connected from `from` to a listener at all addresses of both kinds. */
static uint64_t address_from(const char *from)
{
    struct sockaddr_in6 all = { .sin6_family = AF_INET6 };
    struct sockaddr_in source = { .sin_family = AF_INET }, to = { .sin_family = AF_INET };
    int listener = socket(AF_INET6, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), fd;
    socklen_t len = sizeof all;
    uint64_t address;

    assert_int_equal(setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ 0 }, sizeof(int)), 0);
    all.sin6_addr = in6addr_any;
    assert_int_equal(bind(listener, (struct sockaddr *)&all, sizeof all), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&all, &len), 0);
    assert_int_equal(inet_pton(AF_INET, from, &source.sin_addr), 1);
    assert_int_equal(bind(client, (struct sockaddr *)&source, sizeof source), 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = all.sin6_port;
    assert_int_equal(connect(client, (struct sockaddr *)&to, sizeof to), 0);
    fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    address = kinf__peer_address(fd);
    close(fd);
    close(client);
    close(listener);
    return address;
}

static void a_connection_is_counted_by_its_address_or_its_user(void **state)
{
    const struct fixture *f = *state;

    assert_int_equal(kinf__peer_address(f->fds[0]), UINT64_C(1) << 32 | getuid());
    assert_int_equal(address_from("127.0.0.1"), 0x7f000001);
    assert_int_equal(address_from("127.0.0.2"), 0x7f000002);
    assert_int_equal(kinf__peer_address(-1), 0);
}

static void a_peer_takes_one_of_the_servers_connections(void **state)
{
    struct fixture *f = *state;
    struct kinf__connections *connections = &f->server->connections;

    assert_int_equal(connections->n, 1);
    connections->max = 1;
    assert_null(kinf__peer_new(&f->peers, f->fds[0]));
    kinf__peer_free(&f->peers, f->peer);
    assert_int_equal(connections->n, 0);
    f->peer = kinf__peer_new(&f->peers, f->fds[0]);
    assert_non_null(f->peer);
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
    assert_int_equal(inet_pton(AF_INET6, "::ffff:10.1.2.3", &v6.sin6_addr), 1);
    kinf__peer_describe_address((const struct sockaddr *)&v6, text, sizeof text);
    assert_string_equal(text, "10.1.2.3:1");
}

#define WITH_PEER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PEER(who_owes_a_request_too_long_is_cut_off),
        WITH_PEER(who_owes_nothing_is_left_alone),
        WITH_PEER(the_last_deadline_counts),
        WITH_PEER(only_so_many_are_cut_off_at_a_time),
        WITH_PEER(without_memory_nothing_is_counted),
        WITH_PEER(a_process_is_known_by_its_user),
        WITH_PEER(a_connection_is_counted_by_its_address_or_its_user),
        WITH_PEER(a_peer_takes_one_of_the_servers_connections),
        cmocka_unit_test(of_ipv6_the_network_counts_and_of_ipv4_the_address),
        cmocka_unit_test(addresses_are_told_with_their_ports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
