/*
 * An endpoint from start to stop, with clients at work.
 */
#include "serve/endpoint.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/resource.h>
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

static void assert_refused(const char *address, const struct kinf__endpoint_options *options,
                           enum kinf_errc code, const char *words)
{
    static const struct kinf__server_options none = { 0 };
    struct kinf__endpoint *endpoint = NULL;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__server *server;

    assert_int_equal(kinf__server_new(&none, &server, NULL), 0);
    assert_int_equal(kinf__endpoint_start(server, address, options, &endpoint, &err), code);
    assert_null(endpoint);
    if (strstr(err.message, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, err.message);
    kinf__server_stop(server);
    kinf__server_free(server);
}

static int send_nothing(void *ctx, const char *target, struct kinf_str body,
                        struct kinf__buffer *answer, struct kinf_error *err)
{
    (void)ctx;
    (void)target;
    (void)body;
    (void)answer;
    (void)err;
    return KINF_ERR_NETWORK;
}

/* Before anybody could connect, and read a token on its way. */
static void what_is_no_address_or_would_show_tokens_is_refused(void **state)
{
    static const struct kinf__authorizer_options defaults = { 0 };
    struct kinf__endpoint_options options = { 0 };

    (void)state;
    assert_refused("127.0.0.1", &options, KINF_ERR_INVALID,
                   "cannot listen at 127.0.0.1: an address is");
    assert_int_equal(kinf__authorizer_new(&defaults, send_nothing, NULL, &options.authorizer, NULL),
                     0);
    assert_refused("127.0.0.1:0", &options, KINF_ERR_CONFIG, "tokens are not taken without TLS");
    kinf__authorizer_free(options.authorizer);
}

/* No descriptor is left but those that are open. */
static void a_local_one_that_cannot_be_is_told(void **state)
{
    static const struct kinf__server_options none = { 0 };
    struct kinf__endpoint *endpoint = NULL;
    struct kinf_error err = KINF_ERROR_INIT;
    struct sockaddr_un address;
    socklen_t len = sizeof address;
    struct kinf__server *server;
    struct rlimit before, full;
    int next_fd, failed;

    (void)state;
    assert_int_equal(kinf__server_new(&none, &server, NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    next_fd = dup(STDIN_FILENO);
    assert_true(next_fd >= 0);
    close(next_fd);
    full = (struct rlimit){ .rlim_cur = (rlim_t)next_fd, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
    failed = kinf__endpoint_start_local(server, &endpoint, &address, &len, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(failed, KINF_ERR_SYSTEM);
    assert_null(endpoint);
    /* Of the first that it needs, unless the server's timer had one open and gave it back meanwhile. */
    assert_non_null(strstr(err.message, ": Too many open files"));
    kinf__server_stop(server);
    kinf__server_free(server);
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

/* A daemon that takes the place of another one, whose socket somebody has removed. */
static void a_socket_that_is_anothers_by_now_stays(void **state)
{
    static const struct kinf__server_options options = { 0 };
    static const struct kinf__endpoint_options plain = { 0 };
    struct kinf__endpoint *first, *second;
    struct kinf__server *server;
    char folder[] = "/tmp/kinformer-test-XXXXXX", address[64];
    const char *path = address + strlen("unix:");

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(address, sizeof address, "unix:%s/api.sock", folder);
    assert_int_equal(kinf__server_new(&options, &server, NULL), 0);
    assert_int_equal(kinf__endpoint_start(server, address, &plain, &first, NULL), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(kinf__endpoint_start(server, address, &plain, &second, NULL), 0);
    kinf__endpoint_quiesce(first);
    assert_int_equal(access(path, F_OK), 0);
    kinf__endpoint_quiesce(second);
    assert_int_equal(access(path, F_OK), -1);
    kinf__server_stop(server);
    kinf__endpoint_free(first);
    kinf__endpoint_free(second);
    kinf__server_free(server);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiesced_nobody_comes_in_and_those_within_are_answered),
        cmocka_unit_test(it_is_quiesced_amidst_requests),
        cmocka_unit_test(what_is_no_address_or_would_show_tokens_is_refused),
        cmocka_unit_test(a_local_one_that_cannot_be_is_told),
        cmocka_unit_test(a_socket_that_is_anothers_by_now_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
