/*
 * NO_PROXY: the rows are what Go's httpproxy says.
 */
#include "rest/no_proxy.h"

#include <stddef.h>

#include "unit/test.h"

struct row {
    const char *list, *server;
    bool is_meant;
};

static void assert_rows(const struct row *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++) {
        if (kinf__no_proxy_has(rows[i].list, rows[i].server) != rows[i].is_meant)
            fail_msg("'%s' %s %s", rows[i].list, rows[i].is_meant ? "means" : "does not mean",
                     rows[i].server);
    }
}

#define ASSERT_ROWS(rows) assert_rows(rows, sizeof(rows) / sizeof *(rows))

static void a_domain_is_itself_and_what_is_below_it(void **state)
{
    static const struct row rows[] = {
        { "corp.example", "corp.example:6443", true },
        { "corp.example", "api.corp.example:6443", true },
        { "corp.example", "a.b.corp.example:6443", true },
        { "Corp.Example", "API.corp.example:6443", true },
        { "corp.example", "mycorp.example:6443", false },
        { "corp.example", "example:6443", false },
        { "corp.example", "corp.example.org:6443", false },
        { "corp.example.", "corp.example:6443", false },
        { ".corp.example", "api.corp.example:6443", true },
        { ".corp.example", "a.b.corp.example:6443", true },
        { ".corp.example", "corp.example:6443", false },
        { ".corp.example", "mycorp.example:6443", false },
        { "*.corp.example", "api.corp.example:6443", true },
        { "*.corp.example", "a.b.corp.example:6443", true },
        { "*.corp.example", "corp.example:6443", false },
        { "api.*.example", "api.corp.example:6443", false },
        { "*corp.example", "api.corp.example:6443", false },
    };

    (void)state;
    ASSERT_ROWS(rows);
}

static void an_address_is_what_the_url_calls_the_server(void **state)
{
    static const struct row rows[] = {
        { "10.0.0.1", "10.0.0.1:6443", true },    { "10.0.0.1", "10.0.0.10:6443", false },
        { "10.0.0.1", "110.0.0.1:6443", false },  { "10.0.0.1", "kubernetes:6443", false },
        { "10.0.0.1", "a.10.0.0.x:6443", false }, { "0.0.1", "10.0.0.1:6443", false },
        { "10.0.0.01", "10.0.0.1:6443", false },  { "::ffff:10.0.0.1", "10.0.0.1:6443", true },
        { "fd00::1", "[fd00::1]:6443", true },    { "FD00:0:0::1", "[fd00::1]:6443", true },
        { "[fd00::1]", "[fd00::1]:6443", false }, { "fd00::1", "[fd00::2]:6443", false },
    };

    (void)state;
    ASSERT_ROWS(rows);
}

static void a_network_holds_addresses_alone(void **state)
{
    static const struct row rows[] = {
        { "10.0.0.0/8", "10.255.0.1:6443", true },
        { "10.0.0.0/8", "11.0.0.1:6443", false },
        { "10.9.9.9/8", "10.255.0.1:6443", true },
        { "10.0.0.0/8", "kubernetes:6443", false },
        { "192.0.2.128/25", "192.0.2.200:6443", true },
        { "192.0.2.128/25", "192.0.2.127:6443", false },
        { "192.0.2.7/32", "192.0.2.7:6443", true },
        { "192.0.2.7/32", "192.0.2.6:6443", false },
        { "0.0.0.0/0", "192.0.2.6:6443", true },
        { "0.0.0.0/0", "[fd00::1]:6443", false },
        { "::/0", "[fd00::1]:6443", true },
        { "::/0", "192.0.2.6:6443", false },
        { "fd00::/9", "[fd7f::1]:6443", true },
        { "fd00::/9", "[fd80::1]:6443", false },
        { "fd00::1/128", "[fd00::1]:6443", true },
        { "::ffff:10.0.0.0/104", "10.1.1.1:6443", true },
        { "::ffff:10.0.0.0/104", "11.1.1.1:6443", false },
        { "10.0.0.0/33", "10.0.0.0:6443", false },
        { "10.0.0.0/4294967304", "10.0.0.0:6443", false },
        { "fd00::/129", "[fd00::]:6443", false },
        { "10.0.0.0/", "10.0.0.0:6443", false },
        { "10.0.0.0/8x", "10.0.0.0:6443", false },
        { "10.0.0.0/-8", "10.0.0.0:6443", false },
        { "10.0.0/8", "10.0.0.0:6443", false },
        { "/8", "10.0.0.0:6443", false },
        { "10.0.0.0/8:6443", "10.0.0.0:6443", false },
    };

    (void)state;
    ASSERT_ROWS(rows);
}

static void a_port_has_to_be_the_servers(void **state)
{
    static const struct row rows[] = {
        { "api.corp.example:6443", "api.corp.example:6443", true },
        { "api.corp.example:443", "api.corp.example:6443", false },
        { "corp.example:6443", "api.corp.example:6443", true },
        { "*.corp.example:6443", "api.corp.example:6443", true },
        { "*.corp.example:443", "api.corp.example:6443", false },
        { "api.corp.example:", "api.corp.example:6443", true },
        { "10.0.0.1:6443", "10.0.0.1:6443", true },
        { "10.0.0.1:443", "10.0.0.1:6443", false },
        { "[fd00::1]:6443", "[fd00::1]:6443", true },
        { "[fd00::1]:443", "[fd00::1]:6443", false },
        { ":6443", "api.corp.example:6443", false },
        { ":6443", "10.0.0.1:6443", false },
    };

    (void)state;
    ASSERT_ROWS(rows);
}

static void a_list_has_commas(void **state)
{
    static const struct row rows[] = {
        { "", "api.corp.example:6443", false },
        { ",", "api.corp.example:6443", false },
        { " , ", "api.corp.example:6443", false },
        { "a.example,corp.example,b.example", "api.corp.example:6443", true },
        { "a.example ,\tcorp.example ", "api.corp.example:6443", true },
        { "a.example corp.example", "api.corp.example:6443", false },
        { "a.example,10.0.0.0/8", "10.0.0.1:6443", true },
        { "*", "api.corp.example:6443", true },
        { "*", "10.0.0.1:6443", true },
        { "a.example, * ", "[fd00::1]:6443", true },
        { "*:6443", "api.corp.example:6443", false },
    };

    (void)state;
    ASSERT_ROWS(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_domain_is_itself_and_what_is_below_it),
        cmocka_unit_test(an_address_is_what_the_url_calls_the_server),
        cmocka_unit_test(a_network_holds_addresses_alone),
        cmocka_unit_test(a_port_has_to_be_the_servers),
        cmocka_unit_test(a_list_has_commas),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
