/*
 * Addresses to listen at: what is taken for one, who may reach it, and what is bound. Hosts are
 * numbers, so that nobody is asked for names.
 */
#include "serve/address.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/compiler.h"
#include "unit/test.h"

#define PATH_MAX_LEN (sizeof((struct sockaddr_un *)NULL)->sun_path - 1)

static void expect_host(const char *text, const char *host, const char *port)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__address address;

    assert_int_equal(kinf__address_parse(text, &address, &err), 0);
    assert_string_equal(address.text, text);
    assert_null(address.path);
    assert_string_equal(address.host, host);
    assert_string_equal(address.port, port);
}

static void expect_path(const char *text, const char *path)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__address address;

    assert_int_equal(kinf__address_parse(text, &address, &err), 0);
    assert_string_equal(address.path, path);
}

static void expect_refused(const char *text)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__address address = { .text = "untouched" };

    assert_int_equal(kinf__address_parse(text, &address, &err), KINF_ERR_INVALID);
    assert_string_equal(address.text, "untouched");
    assert_int_equal(err.code, KINF_ERR_INVALID);
    assert_non_null(strstr(err.message, "cannot listen at "));
    assert_int_equal(kinf__address_check(text, true, NULL), KINF_ERR_INVALID);
}

static void host_and_port_are_told_apart(void **state)
{
    (void)state;
    expect_host("127.0.0.1:8001", "127.0.0.1", "8001");
    expect_host("cache.example:1", "cache.example", "1");
    expect_host("[::1]:8001", "::1", "8001");
    expect_host("[::]:8001", "::", "8001");
    expect_host("[127.0.0.1]:8001", "127.0.0.1", "8001");
    expect_host("unix.example:8001", "unix.example", "8001");
    expect_host(":8001", "", "8001");
}

static void ports_end_at_65535_and_0_is_one(void **state)
{
    (void)state;
    expect_host("127.0.0.1:0", "127.0.0.1", "0");
    expect_host("127.0.0.1:65535", "127.0.0.1", "65535");
    expect_refused("127.0.0.1:65536");
    expect_refused("127.0.0.1:99999");
    expect_refused("127.0.0.1:100000");
    expect_refused("127.0.0.1:18446744073709551617");
}

static void what_is_no_port_is_refused(void **state)
{
    (void)state;
    expect_refused("127.0.0.1");
    expect_refused("127.0.0.1:");
    expect_refused("127.0.0.1:-1");
    expect_refused("127.0.0.1:+1");
    expect_refused("127.0.0.1: 80");
    expect_refused("127.0.0.1:80 ");
    expect_refused("127.0.0.1:0x50");
    expect_refused("127.0.0.1:http");
    expect_refused("127.0.0.1:80/");
    expect_refused("http://127.0.0.1:80");
}

static void what_is_no_host_is_refused(void **state)
{
    (void)state;
    expect_refused("");
    expect_refused(":");
    expect_refused("8001");
    expect_refused("[]:8001");
    expect_refused("[:8001");
    expect_refused("]:8001");
    expect_refused("[a:8001");
}

static void colons_of_a_host_are_in_brackets(void **state)
{
    (void)state;
    expect_refused("::1");
    expect_refused("::1:8001");
    expect_refused(":::8001");
    expect_refused("[::1]");
    expect_refused("[::1]8001");
    expect_refused("[::1:8001");
    expect_refused("::1]:8001");
    expect_refused("a:b:8001");
}

static void a_host_ends_before_its_room_does(void **state)
{
    char text[KINF__HOST_MAX + 16], host[KINF__HOST_MAX + 1];

    (void)state;
    memset(host, 'a', sizeof host);
    host[KINF__HOST_MAX - 1] = '\0';
    snprintf(text, sizeof text, "%s:1", host);
    expect_host(text, host, "1");
    snprintf(text, sizeof text, "[%s]:1", host);
    expect_host(text, host, "1");
    snprintf(text, sizeof text, "%sa:1", host);
    expect_refused(text);
    snprintf(text, sizeof text, "[%sa]:1", host);
    expect_refused(text);
}

static void a_path_fits_a_socket_address(void **state)
{
    char text[5 + PATH_MAX_LEN + 2] = "unix:";

    (void)state;
    expect_path("unix:/run/kinformer.sock", "/run/kinformer.sock");
    expect_path("unix:a:1", "a:1");
    memset(text + 5, 'p', PATH_MAX_LEN);
    expect_path(text, text + 5);
    text[5 + PATH_MAX_LEN] = 'p';
    expect_refused(text);
    expect_refused("unix:");
}

static void only_what_is_guarded_is_reached_from_elsewhere(void **state)
{
    static const char *const near[] = { "127.0.0.1:0", "127.255.0.9:80", "[::1]:0", "unix:x" };
    static const char *const far[] = { ":0",           "0.0.0.0:0",    "[::]:0",
                                       "192.0.2.1:80", "128.0.0.1:80", "[2001:db8::1]:80" };
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(near); i++) {
        assert_int_equal(kinf__address_check(near[i], false, &err), 0);
        assert_int_equal(kinf__address_check(near[i], true, &err), 0);
    }
    for (size_t i = 0; i < KINF__ARRAY_LEN(far); i++) {
        assert_int_equal(kinf__address_check(far[i], false, &err), KINF_ERR_INVALID);
        assert_int_equal(kinf__address_check(far[i], true, &err), 0);
    }
}

static int bind_to(const char *text, mode_t mode, int *ret_fd, char **ret_url)
{
    struct kinf__address address;
    int failed = kinf__address_parse(text, &address, NULL);

    if (failed == 0)
        failed = kinf__address_bind(&address, false, mode, ret_fd, NULL);
    if (failed == 0)
        *ret_url = kinf__address_url(&address, *ret_fd, "http");
    return failed;
}

static void the_url_has_the_port_that_was_taken(void **state)
{
    KINF__AUTO_CLOSE int fd = -1;
    KINF__AUTO_FREE char *url = NULL;
    unsigned port = 0;
    char end;

    (void)state;
    assert_int_equal(bind_to("127.0.0.1:0", 0, &fd, &url), 0);
    assert_int_equal(sscanf(url, "http://127.0.0.1:%u%c", &port, &end), 1);
    assert_in_range(port, 1, 65535);
}

static int connect_to(const char *host, const char *port)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST };
    struct addrinfo *found;
    int fd, failed;

    assert_int_equal(getaddrinfo(host, port, &hints, &found), 0);
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    failed = fd >= 0 ? connect(fd, found->ai_addr, found->ai_addrlen) : -1;
    freeaddrinfo(found);
    if (fd >= 0)
        close(fd);
    return failed;
}

static void a_port_alone_is_that_of_all_addresses(void **state)
{
    KINF__AUTO_CLOSE int fd = -1;
    KINF__AUTO_FREE char *url = NULL;
    struct kinf__address address;
    bool has_v6 = access("/proc/net/if_inet6", F_OK) == 0;

    (void)state;
    assert_int_equal(kinf__address_parse(":0", &address, NULL), 0);
    assert_int_equal(kinf__address_bind(&address, true, 0, &fd, NULL), 0);
    assert_int_equal(listen(fd, 4), 0);
    url = kinf__address_url(&address, fd, "https");
    assert_non_null(url);
    assert_int_equal(strncmp(url, has_v6 ? "https://[::]:" : "https://0.0.0.0:", 13), 0);
    assert_int_equal(connect_to("127.0.0.1", strrchr(url, ':') + 1), 0);
    if (has_v6)
        assert_int_equal(connect_to("::1", strrchr(url, ':') + 1), 0);
}

static void an_unguarded_address_is_not_bound(void **state)
{
    int fd = -1;
    char *url = NULL;

    (void)state;
    assert_int_equal(bind_to("0.0.0.0:0", 0, &fd, &url), KINF_ERR_INVALID);
    assert_int_equal(bind_to(":0", 0, &fd, &url), KINF_ERR_INVALID);
    assert_int_equal(fd, -1);
}

/* An interface that there is none of, for which nobody is asked. */
static void a_host_that_there_is_not_is_named(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__address address;
    int fd = -1;

    (void)state;
    assert_int_equal(kinf__address_parse("[::1%nowhere]:0", &address, NULL), 0);
    assert_int_equal(kinf__address_bind(&address, true, 0, &fd, &err), KINF_ERR_INVALID);
    assert_string_equal(err.message, "cannot listen at [::1%nowhere]:0: no such host");
    assert_int_equal(fd, -1);
}

struct folder {
    char path[32];
    char socket[48];
    char address[56];
};

static int make_folder(void **state)
{
    struct folder *folder = calloc(1, sizeof *folder);

    if (folder == NULL)
        return -1;
    strcpy(folder->path, "/tmp/kinformer-address-XXXXXX");
    if (mkdtemp(folder->path) == NULL)
        return -1;
    snprintf(folder->socket, sizeof folder->socket, "%s/socket", folder->path);
    snprintf(folder->address, sizeof folder->address, "unix:%s", folder->socket);
    *state = folder;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *folder = *state;

    unlink(folder->socket);
    rmdir(folder->path);
    free(folder);
    return 0;
}

static void a_socket_file_has_its_mode_from_the_start(void **state)
{
    const struct folder *folder = *state;
    KINF__AUTO_CLOSE int fd = -1;
    KINF__AUTO_FREE char *url = NULL;
    mode_t mask = umask(0027), left;
    struct stat file;

    assert_int_equal(bind_to(folder->address, 0606, &fd, &url), 0);
    left = umask(mask);
    assert_int_equal(left, 0027);
    assert_string_equal(url, folder->address);
    assert_int_equal(stat(folder->socket, &file), 0);
    assert_true(S_ISSOCK(file.st_mode));
    assert_int_equal(file.st_mode & 0777, 0606);
}

static void a_socket_may_be_what_standard_input_was(void **state)
{
    const struct folder *folder = *state;
    KINF__AUTO_FREE char *url = NULL;
    int kept = dup(STDIN_FILENO), fd = -1, failed;

    close(STDIN_FILENO);
    failed = bind_to(folder->address, 0600, &fd, &url);
    if (kept >= 0) {
        dup2(kept, STDIN_FILENO);
        close(kept);
    }
    assert_int_equal(failed, 0);
    assert_int_equal(fd, STDIN_FILENO);
}

static void an_abandoned_socket_file_makes_room(void **state)
{
    const struct folder *folder = *state;
    KINF__AUTO_CLOSE int second = -1;
    KINF__AUTO_FREE char *first_url = NULL, *second_url = NULL;
    int first = -1;

    assert_int_equal(bind_to(folder->address, 0600, &first, &first_url), 0);
    assert_int_equal(listen(first, 1), 0);
    assert_int_equal(bind_to(folder->address, 0600, &second, &second_url), KINF_ERR_SYSTEM);
    close(first);
    assert_int_equal(bind_to(folder->address, 0600, &second, &second_url), 0);
}

static void a_file_that_is_no_socket_stays(void **state)
{
    const struct folder *folder = *state;
    FILE *file = fopen(folder->socket, "w");
    int fd = -1;
    char *url = NULL;

    assert_non_null(file);
    fclose(file);
    assert_int_equal(bind_to(folder->address, 0600, &fd, &url), KINF_ERR_SYSTEM);
    assert_int_equal(fd, -1);
    assert_int_equal(access(folder->socket, F_OK), 0);
}

static void a_host_header_of_this_machine_is_known(void **state)
{
    static const char *const here[] = { "localhost", "LocalHost:8001", "127.0.0.1", "127.9.8.7:1",
                                        "[::1]",     "[::1]:65535",    "localhost:" };
    static const char *const elsewhere[] = { "",
                                             ":80",
                                             "example.com",
                                             "localhost.example.com",
                                             "127.0.0.1.example.com",
                                             "127.0.0.1@example.com",
                                             "127.1",
                                             "128.0.0.1",
                                             "0.0.0.0",
                                             "::1",
                                             "[::1",
                                             "[::2]",
                                             "[::1]80",
                                             "[",
                                             "localhost:80:80",
                                             "localhost:http",
                                             "localhost ",
                                             "127.0.0.1 :80" };
    char long_one[200];

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(here); i++)
        assert_true(kinf__address_is_local_host(here[i]));
    for (size_t i = 0; i < KINF__ARRAY_LEN(elsewhere); i++)
        assert_false(kinf__address_is_local_host(elsewhere[i]));
    memset(long_one, '1', sizeof long_one);
    long_one[sizeof long_one - 1] = '\0';
    assert_false(kinf__address_is_local_host(long_one));
    long_one[0] = '[';
    assert_false(kinf__address_is_local_host(long_one));
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_and_port_are_told_apart),
        cmocka_unit_test(ports_end_at_65535_and_0_is_one),
        cmocka_unit_test(what_is_no_port_is_refused),
        cmocka_unit_test(what_is_no_host_is_refused),
        cmocka_unit_test(colons_of_a_host_are_in_brackets),
        cmocka_unit_test(a_host_ends_before_its_room_does),
        cmocka_unit_test(a_path_fits_a_socket_address),
        cmocka_unit_test(only_what_is_guarded_is_reached_from_elsewhere),
        cmocka_unit_test(the_url_has_the_port_that_was_taken),
        cmocka_unit_test(a_port_alone_is_that_of_all_addresses),
        cmocka_unit_test(an_unguarded_address_is_not_bound),
        cmocka_unit_test(a_host_that_there_is_not_is_named),
        WITH_FOLDER(a_socket_file_has_its_mode_from_the_start),
        WITH_FOLDER(a_socket_may_be_what_standard_input_was),
        WITH_FOLDER(an_abandoned_socket_file_makes_room),
        WITH_FOLDER(a_file_that_is_no_socket_stays),
        cmocka_unit_test(a_host_header_of_this_machine_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
