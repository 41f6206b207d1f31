/*
 * Each request has one way: decided by facts, without a connection or a server.
 */
#include "serve/route.h"

#include <string.h>

#include "unit/test.h"

static const struct kinf__header credential = { "Authorization", "Bearer t" };

enum {
    TOKEN = 1,      /* comes with one */
    PASSES = 2,     /* requests are passed on */
    BEYOND = 4,     /* no cache has it */
    PRUNED = 8,     /* the cache leaves fields out */
    STRANGE = 16,   /* its target can be read in two ways */
    REVIEWED = 32,  /* not everybody may read */
    ABSENT = 64,    /* the server has no such thing */
    UNKNOWN = 128,  /* nobody knows yet what it has */
    BACKEND = 256,  /* the backend takes it */
    ANOTHER = 512,  /* in another's name */
    UPGRADE = 1024, /* to something that is no HTTP */
    TWICE = 2048,   /* two credentials */
    USELESS = 4096, /* it has it, but not for this method */
    NAMED = 8192,   /* by a certificate */
};

static enum kinf__way way_of(const char *method, enum kinf__route route, unsigned is)
{
    struct kinf__request_head head =
        kinf__request_head_of(method, KINF_STR("/"), &credential, (is & TOKEN) != 0);
    const struct kinf__route_facts facts = {
        .head = &head,
        .route = route,
        .passes = (is & PASSES) != 0,
        .is_open = (is & REVIEWED) == 0,
        .is_named = (is & NAMED) != 0,
        .is_backend = (is & BACKEND) != 0,
        .is_plain = (is & STRANGE) == 0,
        .is_pruned = (is & PRUNED) != 0,
        .is_known = (is & UNKNOWN) == 0,
        .is_there = (is & ABSENT) == 0,
        .takes = (is & (ABSENT | USELESS)) == 0,
        .is_beyond = (is & BEYOND) != 0,
    };

    head.is_impersonated = (is & ANOTHER) != 0;
    head.is_upgrade = (is & UPGRADE) != 0;
    head.has_two_credentials = (is & TWICE) != 0;
    return kinf__route_decide(&facts);
}

struct row {
    const char *method;
    enum kinf__route route;
    unsigned is;
    enum kinf__way way;
};

#define RESOURCE KINF__ROUTE_RESOURCE
#define OTHER    KINF__ROUTE_OTHER

static const struct row rows[] = {
    /* Reads that a cache can answer are the cache's, token or not. */
    { "GET", RESOURCE, PASSES | TOKEN, KINF__WAY_CACHE },
    { "GET", RESOURCE, PASSES | PRUNED, KINF__WAY_CACHE },
    { "GET", RESOURCE, PASSES | STRANGE, KINF__WAY_CACHE },
    { "GET", RESOURCE, 0, KINF__WAY_CACHE },
    /* Those that none can are the server's, for those who say who they are. */
    { "GET", RESOURCE, PASSES | TOKEN | BEYOND | PRUNED, KINF__WAY_UPSTREAM },
    { "GET", RESOURCE, PASSES | BEYOND, KINF__WAY_NO_TOKEN },
    { "GET", RESOURCE, TOKEN | BEYOND, KINF__WAY_CACHE },
    { "GET", OTHER, PASSES | TOKEN, KINF__WAY_UPSTREAM },
    { "GET", OTHER, PASSES, KINF__WAY_NO_TOKEN },
    { "GET", OTHER, TOKEN, KINF__WAY_NOTHING },
    /* What the server does not have needs no token, where everybody may know that. */
    { "GET", RESOURCE, PASSES | BEYOND | ABSENT, KINF__WAY_NOTHING },
    { "GET", RESOURCE, PASSES | BEYOND | ABSENT | TOKEN, KINF__WAY_UPSTREAM },
    { "POST", RESOURCE, PASSES | ABSENT, KINF__WAY_NOTHING },
    { "POST", RESOURCE, PASSES | USELESS, KINF__WAY_METHOD },
    { "POST", KINF__ROUTE_APIS, PASSES, KINF__WAY_METHOD },
    /* Where tokens are looked at, whoever has none learns no more than that. */
    { "GET", RESOURCE, PASSES | BEYOND | REVIEWED, KINF__WAY_CACHE },
    { "GET", RESOURCE, PASSES | BEYOND | REVIEWED | TOKEN, KINF__WAY_UPSTREAM },
    { "POST", RESOURCE, PASSES | ABSENT | REVIEWED, KINF__WAY_NO_TOKEN },
    { "POST", RESOURCE, ABSENT | REVIEWED, KINF__WAY_METHOD },
    { "POST", RESOURCE, ABSENT, KINF__WAY_NOTHING },
    { "GET", RESOURCE, ABSENT, KINF__WAY_NOTHING },
    /* Whoever has a certificate is told what that is not enough for. */
    { "GET", RESOURCE, PASSES | REVIEWED | NAMED, KINF__WAY_CACHE },
    { "GET", RESOURCE, PASSES | BEYOND | REVIEWED | NAMED, KINF__WAY_NO_TOKEN },
    { "GET", RESOURCE, BEYOND | REVIEWED | NAMED, KINF__WAY_CACHE },
    { "GET", RESOURCE, PASSES | BEYOND | REVIEWED | NAMED | TOKEN, KINF__WAY_UPSTREAM },
    { "GET", KINF__ROUTE_APIS, PASSES | REVIEWED | NAMED, KINF__WAY_OWN },
    { "POST", RESOURCE, PASSES | REVIEWED | NAMED, KINF__WAY_NO_TOKEN },
    /* Nobody knows. */
    { "GET", RESOURCE, UNKNOWN, KINF__WAY_UNREADY },
    { "GET", RESOURCE, UNKNOWN | PASSES | TOKEN, KINF__WAY_UNREADY },
    { "POST", RESOURCE, UNKNOWN, KINF__WAY_UNREADY },
    { "POST", RESOURCE, UNKNOWN | PASSES | TOKEN, KINF__WAY_UPSTREAM },
    /* Discovery is whole for those who can ask for all of it. */
    { "GET", KINF__ROUTE_APIS, PASSES | TOKEN, KINF__WAY_UPSTREAM },
    { "GET", KINF__ROUTE_GROUP_VERSION, PASSES, KINF__WAY_OWN },
    { "GET", KINF__ROUTE_APIS, TOKEN, KINF__WAY_OWN },
    /* The daemon's own pages. */
    { "GET", KINF__ROUTE_METRICS, PASSES | TOKEN, KINF__WAY_OWN },
    { "GET", KINF__ROUTE_HEALTH, PASSES | TOKEN, KINF__WAY_OWN },
    { "GET", KINF__ROUTE_VERSION, PASSES | TOKEN, KINF__WAY_OWN },
    { "POST", KINF__ROUTE_ROOT, PASSES | TOKEN, KINF__WAY_METHOD },
    /* Writes. */
    { "POST", RESOURCE, PASSES | TOKEN | PRUNED, KINF__WAY_UPSTREAM },
    { "PATCH", RESOURCE, PASSES | TOKEN | PRUNED, KINF__WAY_UPSTREAM },
    { "DELETE", RESOURCE, PASSES | TOKEN | PRUNED, KINF__WAY_UPSTREAM },
    { "PUT", RESOURCE, PASSES | TOKEN, KINF__WAY_UPSTREAM },
    { "PUT", RESOURCE, PASSES | TOKEN | PRUNED, KINF__WAY_PRUNED },
    { "PUT", RESOURCE, PASSES | PRUNED, KINF__WAY_NO_TOKEN },
    { "POST", RESOURCE, PASSES, KINF__WAY_NO_TOKEN },
    { "POST", RESOURCE, TOKEN, KINF__WAY_METHOD },
    { "HEAD", RESOURCE, PASSES | TOKEN, KINF__WAY_METHOD },
    /* Methods are case-sensitive: this one is not exempt from what is checked for PUT. */
    { "put", RESOURCE, PASSES | TOKEN | PRUNED, KINF__WAY_METHOD },
    { "get", OTHER, PASSES | TOKEN, KINF__WAY_NOTHING },
    { "CONNECT", OTHER, PASSES | TOKEN, KINF__WAY_NOTHING },
    /* The backend's. */
    { "POST", RESOURCE, BACKEND, KINF__WAY_BACKEND },
    { "POST", RESOURCE, BACKEND | ANOTHER, KINF__WAY_IMPERSONATED },
    /* Whose rights count for an impersonation only the server knows. */
    { "GET", RESOURCE, PASSES | TOKEN | ANOTHER, KINF__WAY_UPSTREAM },
    { "GET", RESOURCE, TOKEN | ANOTHER, KINF__WAY_IMPERSONATED },
    { "GET", KINF__ROUTE_METRICS, PASSES | TOKEN | ANOTHER, KINF__WAY_IMPERSONATED },
    /* Never. */
    { "GET", RESOURCE, PASSES | TOKEN | UPGRADE, KINF__WAY_UPGRADE },
    { "POST", RESOURCE, TOKEN | UPGRADE, KINF__WAY_UPGRADE },
    { "POST", RESOURCE, PASSES | TOKEN | TWICE, KINF__WAY_MALFORMED },
    { "POST", RESOURCE, PASSES | TOKEN | STRANGE, KINF__WAY_MALFORMED },
};

static void each_request_has_its_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (way_of(rows[i].method, rows[i].route, rows[i].is) != rows[i].way)
            fail_msg("row %zu: %s %u", i, rows[i].method, rows[i].is);
    }
}

/* What only a review may open is behind it; what is refused to all needs none. */
static void no_way_to_an_answer_goes_past_the_review(void **state)
{
    static const enum kinf__way open[] = { KINF__WAY_UPSTREAM,  KINF__WAY_UPGRADE,
                                           KINF__WAY_NO_TOKEN,  KINF__WAY_PRUNED,
                                           KINF__WAY_MALFORMED, KINF__WAY_IMPERSONATED };
    static const enum kinf__way reviewed[] = { KINF__WAY_BACKEND, KINF__WAY_CACHE,
                                               KINF__WAY_OWN,     KINF__WAY_UNREADY,
                                               KINF__WAY_NOTHING, KINF__WAY_METHOD };

    (void)state;
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        assert_false(kinf__route_is_reviewed(open[i]));
    for (size_t i = 0; i < sizeof reviewed / sizeof reviewed[0]; i++)
        assert_true(kinf__route_is_reviewed(reviewed[i]));
}

/* The API server is asked only with a token, and only where requests are passed on. */
static void nothing_goes_upstream_without_a_token(void **state)
{
    static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "x" };

    (void)state;
    for (unsigned is = 0; is < 2 * NAMED; is++) {
        for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++) {
            for (int route = 0; route <= KINF__ROUTE_OTHER; route++) {
                if (way_of(methods[m], (enum kinf__route)route, is) == KINF__WAY_UPSTREAM)
                    assert_int_equal(is & (TOKEN | PASSES | STRANGE | UPGRADE | TWICE),
                                     TOKEN | PASSES);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_has_its_way),
        cmocka_unit_test(no_way_to_an_answer_goes_past_the_review),
        cmocka_unit_test(nothing_goes_upstream_without_a_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
