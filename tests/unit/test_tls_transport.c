/*
 * TLS for libmicrohttpd: a handshake whose client is silent waits between its tries, and only while
 * nothing else happens.
 */
#include "serve/tls_transport.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit/test.h"

#define N_TRIES 20
/* Less than it waits for, and more than a read that does not. */
#define SHORT_NS 5000000

struct fixture {
    struct kinf__tls_activity activity;
    struct kinf__tls_transport transport;
    gnutls_session_t session;
    int fds[2]; /* the session's, and its client's */
    int events_fd;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, f->fds) < 0 ||
        (f->events_fd = eventfd(0, EFD_NONBLOCK)) < 0 ||
        gnutls_init(&f->session, GNUTLS_SERVER) != 0 ||
        gnutls_set_default_priority(f->session) != 0)
        return -1;
    kinf__tls_transport_init(&f->transport, f->session, f->fds[0], f->events_fd, &f->activity);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    gnutls_deinit(f->session);
    close(f->events_fd);
    close(f->fds[0]);
    close(f->fds[1]);
    free(f);
    return 0;
}

/* Nanoseconds of a try that finds nothing. */
static int64_t try_in_vain(struct fixture *f)
{
    int64_t begun_ns = kinf__clock_now_ns();

    assert_int_equal(gnutls_handshake(f->session), GNUTLS_E_AGAIN);
    return kinf__clock_now_ns() - begun_ns;
}

/* The least of some: the machine may have other work. */
static int64_t shortest_try(struct fixture *f, bool has_activity)
{
    int64_t least_ns = INT64_MAX;

    for (int i = 0; i < N_TRIES; i++) {
        int64_t ns;

        f->activity.n += has_activity;
        ns = try_in_vain(f);
        least_ns = ns < least_ns ? ns : least_ns;
    }
    return least_ns;
}

static void who_finds_nothing_again_waits(void **state)
{
    struct fixture *f = *state;

    try_in_vain(f);
    assert_true(shortest_try(f, false) >= SHORT_NS);
}

static void half_of_a_message_changes_nothing(void **state)
{
    static const char half[] = "\x16\x03\x01\x01\x24\x01\x00\x01";
    struct fixture *f = *state;
    uint64_t n_before = f->activity.n;

    assert_int_equal(write(f->fds[1], half, sizeof half - 1), sizeof half - 1);
    try_in_vain(f);
    assert_true(f->activity.n > n_before);
    assert_true(shortest_try(f, false) >= SHORT_NS);
}

static void nobody_waits_while_others_are_served(void **state)
{
    assert_true(shortest_try(*state, true) < SHORT_NS);
}

static void what_happens_ends_the_wait(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(eventfd_write(f->events_fd, 1), 0);
    assert_true(shortest_try(f, false) < SHORT_NS);
}

static void who_has_left_never_waits(void **state)
{
    struct fixture *f = *state;

    kinf__tls_transport_leave(&f->transport);
    assert_true(shortest_try(f, false) < SHORT_NS);
    assert_int_equal(f->activity.n, 0);
}

/* An alert is written, and the end is read. */
static void the_end_of_the_client_ends_the_handshake(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(shutdown(f->fds[1], SHUT_WR), 0);
    assert_true(gnutls_error_is_fatal(gnutls_handshake(f->session)));
    assert_true(f->activity.n > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_finds_nothing_again_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(half_of_a_message_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_waits_while_others_are_served, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_happens_ends_the_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_has_left_never_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_of_the_client_ends_the_handshake, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
