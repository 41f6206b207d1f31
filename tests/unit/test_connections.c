/*
 * How many connections there may be, and of one address.
 */
#include "serve/connections.h"

#include <sys/resource.h>

#include "serve/server_priv.h"
#include "unit/allocation.h"
#include "unit/informer_fixture.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define MANY 64

struct crowd {
    struct kinf__connections connections;
    struct kinf__address_count *counts[MANY];
    size_t n;
};

static void begin(struct crowd *crowd, size_t max)
{
    crowd->n = 0;
    kinf__connections_init(&crowd->connections);
    crowd->connections.max = max;
}

static void end(struct crowd *crowd)
{
    while (crowd->n > 0)
        kinf__connections_give_back(&crowd->connections, crowd->counts[--crowd->n]);
    assert_int_equal(crowd->connections.n, 0);
    assert_int_equal(crowd->connections.by_address.n_nodes, 0);
    kinf__connections_release(&crowd->connections);
}

/* As many as it gets; returns how many. */
static size_t fill(struct crowd *crowd, uint64_t address)
{
    size_t before = crowd->n;
    struct kinf__address_count *count;

    while ((count = kinf__connections_take(&crowd->connections, address)) != NULL)
        crowd->counts[crowd->n++] = count;
    return crowd->n - before;
}

static void an_address_has_at_most_twice_as_many_as_are_left(void **state)
{
    struct crowd crowd;

    (void)state;
    begin(&crowd, 30);
    assert_int_equal(fill(&crowd, 1), 20);
    assert_int_equal(fill(&crowd, 2), 7);
    assert_int_equal(fill(&crowd, 3), 2);
    assert_int_equal(fill(&crowd, 4), 1);
    assert_int_equal(fill(&crowd, 5), 0);
    assert_int_equal(crowd.connections.n, 30);
    end(&crowd);
}

/* 32,768: of these one address has two thirds. */
static void there_are_never_more_than_memory_is_meant_for(void **state)
{
    struct kinf__connections connections;
    struct kinf__address_count *count = NULL, *one;
    size_t n = 0;

    (void)state;
    kinf__connections_init(&connections);
    connections.max = 1000000;
    while ((one = kinf__connections_take(&connections, 1)) != NULL) {
        count = one;
        n++;
    }
    assert_int_equal(n, 21846);
    while (n-- > 0)
        kinf__connections_give_back(&connections, count);
    kinf__connections_release(&connections);
}

static void what_is_given_back_is_there_for_others(void **state)
{
    struct crowd crowd;

    (void)state;
    begin(&crowd, 3);
    assert_int_equal(fill(&crowd, 1), 2);
    assert_int_equal(fill(&crowd, 2), 1);
    assert_int_equal(fill(&crowd, 3), 0);
    kinf__connections_give_back(&crowd.connections, crowd.counts[--crowd.n]);
    assert_int_equal(fill(&crowd, 3), 1);
    end(&crowd);
}

static void what_is_kept_apart_is_nobodys(void **state)
{
    struct crowd crowd;

    (void)state;
    begin(&crowd, 30);
    kinf__connections_keep_apart(&crowd.connections, 27);
    assert_int_equal(fill(&crowd, 1), 2);
    kinf__connections_keep_apart(&crowd.connections, 2);
    assert_int_equal(fill(&crowd, 2), 0);
    kinf__connections_keep_apart(&crowd.connections, 27);
    assert_int_equal(fill(&crowd, 2), 0);
    kinf__connections_keep_apart(&crowd.connections, -56);
    assert_int_equal(fill(&crowd, 1), 18);
    end(&crowd);
}

static void there_are_as_many_as_descriptors_without_those_of_the_process(void **state)
{
    struct kinf__connections connections;
    struct rlimit before, few;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    kinf__connections_init(&connections);
    assert_int_equal(connections.max, 744);
    kinf__connections_release(&connections);
    few.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    kinf__connections_init(&connections);
    assert_int_equal(connections.max, 50);
    kinf__connections_release(&connections);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void without_memory_there_is_none_and_nothing_leaks(void **state)
{
    bool has_failed = true;

    (void)state;
    for (size_t n = 1; has_failed; n++) {
        struct crowd crowd;

        begin(&crowd, 1);
        test_fail_allocation(n);
        fill(&crowd, 1);
        has_failed = test_allocation_failed();
        assert_int_equal(crowd.n, has_failed ? 0 : 1);
        end(&crowd);
    }
}

/* --- of a server --- */

static void a_server_keeps_apart_what_its_sources_need(void **state)
{
    struct informer_fixture *f = *state;
    struct kinf__source_options options = { 0 };
    struct kinf__server *server;
    struct kinf__source *source;

    informer_make(f, NULL);
    options.informer = f->informer;
    assert_int_equal(kinf__server_new(&(struct kinf__server_options){ 0 }, &server, NULL), 0);
    assert_int_equal(server->connections.n_apart, 0);
    assert_int_equal(kinf__server_add_source(server, &options, &source, NULL), 0);
    assert_int_equal(server->connections.n_apart, 8);
    kinf__server_publish_source(server, source);
    assert_int_equal(server->connections.n_apart, 8);
    kinf__server_retire_source(server, source);
    assert_int_equal(server->connections.n_apart, 0);
    kinf__source_free(source);
    kinf__server_free(server);
}

static void a_server_keeps_apart_what_it_passes_requests_on_with(void **state)
{
    const struct kinf__forwarder_options few = { .max_forwards = 10 };
    struct kinf_client *client = test_client_of(1, NULL);
    struct kinf__server_options options = { 0 };
    struct kinf__server *server;

    (void)state;
    assert_int_equal(kinf__forwarder_new(client, &few, &options.forwarder, NULL), 0);
    assert_int_equal(kinf__server_new(&options, &server, NULL), 0);
    assert_int_equal(server->connections.n_apart, 10);
    kinf__server_free(server);
    kinf__forwarder_free(options.forwarder);
    kinf_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_at_most_twice_as_many_as_are_left),
        cmocka_unit_test(there_are_never_more_than_memory_is_meant_for),
        cmocka_unit_test(what_is_given_back_is_there_for_others),
        cmocka_unit_test(what_is_kept_apart_is_nobodys),
        cmocka_unit_test(there_are_as_many_as_descriptors_without_those_of_the_process),
        cmocka_unit_test(without_memory_there_is_none_and_nothing_leaks),
        INFORMER_TEST_IN_ORDER(a_server_keeps_apart_what_its_sources_need),
        cmocka_unit_test(a_server_keeps_apart_what_it_passes_requests_on_with),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
