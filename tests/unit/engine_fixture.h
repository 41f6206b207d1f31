/*
 * A whole engine against a written script: an informer, its client and a replay server, with a
 * recorder as its handler, and the words that scripts are made of.
 *
 * Threads: the test's.
 */
#ifndef KINF_TESTS_UNIT_ENGINE_FIXTURE_H
#define KINF_TESTS_UNIT_ENGINE_FIXTURE_H

#include "replay/replay.h"
#include "unit/informer_fixture.h"
#include "unit/test.h"

#define ENGINE_PATIENCE_MS 60000

#define POD(name, rv)                                                                              \
    "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":\"u-" name                   \
    "\",\"resourceVersion\":\"" rv "\"}}"
#define OTHER_POD(name, rv)                                                                        \
    "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":\"other\","                  \
    "\"resourceVersion\":\"" rv "\"}}"
#define BAD_POD(name) "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":7}}"
#define LIST(rv, items)                                                                            \
    "status 200\n"                                                                                 \
    "event {\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv       \
    "\"},\"items\":[" items "]}\n"
#define EVENT(type, object) "event {\"type\":\"" type "\",\"object\":" object "}\n"
#define MODIFIED(object)    EVENT("MODIFIED", object)

#define ON_LIST(rules)       "exchange once\nmatch GET /api/v1/pods !watch " rules "\n"
#define ON_LIST_TWICE(rules) "exchange times 2\nmatch GET /api/v1/pods !watch " rules "\n"
#define ON_WATCH(rv)         "exchange once\nmatch GET /api/v1/pods watch=1 resourceVersion=" rv "\n"
/* Whether a pod is as it was, after an outage; it is asked for in this way alone. */
#define ON_VERIFY(name)                                                                            \
    "exchange once\nmatch GET /api/v1/namespaces/n/pods !watch fieldSelector=metadata.name=" name  \
    " limit=1 !resourceVersion\n"
#define ON_VERIFY_COUNT(rv)                                                                        \
    "exchange once\nmatch GET /api/v1/pods !watch limit=1 resourceVersionMatch=Exact "             \
    "resourceVersion=" rv "\n"
#define END(rv) EVENT("ADDED", POD("end", rv)) "stall forever\n"

struct engine_fixture {
    struct kinf_informer_options options; /* of the informer; to be changed before it is made */
    struct replay *replay;
    struct kinf_client *client;
    struct kinf_informer *informer;
    struct recorder recorder;
    size_t n_objects_before;
};

/* For cmocka: *state is the fixture. The queue is by key, or in order. */
int engine_set_up(void **state);
int engine_set_up_in_order(void **state);
int engine_tear_down(void **state);
#define ENGINE_BOTH(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, engine_set_up, engine_tear_down),                        \
    {                                                                                              \
#test " (in order)", test, engine_set_up_in_order, engine_tear_down, NULL                  \
    }

/* Makes server, client and informer. */
void engine_make(struct engine_fixture *f, const char *resource, const char *script);
/* The same for pods, of a script in parts up to NULL, and starts it. */
void engine_start(struct engine_fixture *f, const char *const *parts);
#define ENGINE_START(f, ...) engine_start((f), (const char *const[]){ __VA_ARGS__, NULL })
/* Ends it all but the recorder; the server met no request that it did not expect. */
void engine_release(struct engine_fixture *f);

/* Waits for these lines of the recorder, in whatever order, and for no others. There is an order
 * for each key, but none across keys. */
void engine_expect(struct engine_fixture *f, const char *const *lines);
#define ENGINE_EXPECT(f, ...) engine_expect((f), (const char *const[]){ __VA_ARGS__, NULL })
void engine_wait_for_state(struct engine_fixture *f, enum kinf_informer_state state);
/* A part of the reason; "": there is none. */
void engine_expect_reason(struct engine_fixture *f, const char *text);
void engine_wait_for_resource_version(struct engine_fixture *f, const char *expected);

#endif
