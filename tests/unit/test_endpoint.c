/*
 * An endpoint from start to stop, with clients at work.
 */
#include "serve/endpoint.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "unit/test.h"

#define N_ASKERS 3

static const char probe[] = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";

/* The library's epoll set is its thread's: if ours took the listening socket out at the moment in which
 * that looked at it, the library ended the program. */
static _Thread_local bool is_quiescing;
static atomic_bool was_touched;

__attribute__((visibility("default"))) int epoll_ctl(int epoll_fd, int op, int fd,
                                                     struct epoll_event *event)
{
    if (is_quiescing)
        atomic_store(&was_touched, true);
    return (int)syscall(SYS_epoll_ctl, epoll_fd, op, fd, event);
}

struct world {
    struct kinf__server *server;
    struct kinf__endpoint *endpoint;
    struct sockaddr_in address;
    atomic_bool is_over;
};

static void begin(struct world *world)
{
    static const struct kinf__server_options options = { 0 };
    static const struct kinf__endpoint_options plain = { 0 };
    const char *port;

    memset(world, 0, sizeof *world);
    assert_int_equal(kinf__server_new(&options, &world->server, NULL), 0);
    assert_int_equal(
        kinf__endpoint_start(world->server, "127.0.0.1:0", &plain, &world->endpoint, NULL), 0);
    port = strrchr(kinf__endpoint_url(world->endpoint), ':');
    world->address.sin_family = AF_INET;
    world->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    world->address.sin_port = htons((uint16_t)atoi(port + 1));
}

static void end(struct world *world)
{
    kinf__server_stop(world->server);
    kinf__endpoint_free(world->endpoint);
    kinf__server_free(world->server);
}

static void quiesce(struct world *world)
{
    is_quiescing = true;
    kinf__endpoint_quiesce(world->endpoint);
    is_quiescing = false;
    assert_false(atomic_load(&was_touched));
}

/* -1: nobody is there. */
static int dial(const struct world *world)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&world->address, sizeof world->address) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Whether there was an answer. */
static bool ask(int fd)
{
    char answer[2048];
    ssize_t n = -1;

    if (send(fd, probe, sizeof probe - 1, MSG_NOSIGNAL) == (ssize_t)(sizeof probe - 1))
        n = recv(fd, answer, sizeof answer, 0);
    return n > 0 && memcmp(answer, "HTTP/1.1 200", strlen("HTTP/1.1 200")) == 0;
}

struct asker {
    struct world *world;
    int fd;
    pthread_t thread;
    bool was_refused;
};

static void *keep_asking(void *ctx)
{
    struct asker *asker = ctx;

    while (!atomic_load(&asker->world->is_over) && !asker->was_refused)
        asker->was_refused = !ask(asker->fd);
    return NULL;
}

static void begin_asking(struct asker *asker, struct world *world)
{
    asker->world = world;
    asker->fd = dial(world);
    assert_true(asker->fd >= 0);
    asker->was_refused = !ask(asker->fd);
    assert_int_equal(pthread_create(&asker->thread, NULL, keep_asking, asker), 0);
}

static void end_asking(struct asker *asker)
{
    pthread_join(asker->thread, NULL);
    assert_false(asker->was_refused);
    close(asker->fd);
}

static void quiesced_nobody_comes_in_and_those_within_are_answered(void **state)
{
    struct world world;
    int fd;

    (void)state;
    begin(&world);
    fd = dial(&world);
    assert_true(fd >= 0);
    assert_true(ask(fd));
    quiesce(&world);
    assert_int_equal(dial(&world), -1);
    assert_true(ask(fd));
    close(fd);
    end(&world);
}

static void it_is_quiesced_amidst_requests(void **state)
{
    (void)state;
    for (size_t round = test_rounds(80); round-- > 0;) {
        struct asker askers[N_ASKERS];
        struct world world;

        begin(&world);
        for (int i = 0; i < N_ASKERS; i++)
            begin_asking(&askers[i], &world);
        usleep((useconds_t)(round % 10 * 200));
        quiesce(&world);
        atomic_store(&world.is_over, true);
        for (int i = 0; i < N_ASKERS; i++)
            end_asking(&askers[i]);
        end(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiesced_nobody_comes_in_and_those_within_are_answered),
        cmocka_unit_test(it_is_quiesced_amidst_requests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
