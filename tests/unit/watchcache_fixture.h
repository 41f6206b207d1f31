/*
 * What the watch cache's tests share: an informer that the test feeds by hand, with a cache behind
 * it, and cursors whose events are compared as text.
 *
 * An object is written "[ns/]name@version[^uid][:node][+app]" with namespace "d", uid 1, node "" and
 * app "" if they are left out. An event is "ADDED d/a@5", "MODIFIED d/a@6", "DELETED d/a@9 (6)" with
 * the version of the object that it carries in brackets, or "BOOKMARK 10".
 */
#ifndef KINF_TESTS_UNIT_WATCHCACHE_FIXTURE_H
#define KINF_TESTS_UNIT_WATCHCACHE_FIXTURE_H

#include <stdatomic.h>

#include "informer/informer.h"
#include "watchcache/watchcache.h"

struct watchcache_fixture {
    struct kinf_informer *informer;
    struct kinf__watchcache *cache;
    size_t n_objects_before;
};

/* A watch of the tests. */
struct watch {
    struct kinf__watch_cursor *cursor;
    _Atomic(unsigned) n_wakes;
};

#define WATCHCACHE_TEST(test)                                                                      \
    cmocka_unit_test_setup_teardown(test, watchcache_setup, watchcache_teardown)

/* The cache is made with `limits` (NULL: the defaults) and enabled. */
void watchcache_make(struct watchcache_fixture *f, const struct kinf__watchcache_limits *limits);
/* With the defaults. */
int watchcache_setup(void **state);
/* Checks the invariants and that nothing is left. */
int watchcache_teardown(void **state);

const struct kinf_object *watchcache_object(const char *text);

/* What would come from the server, through HandleDeltas. */
void watchcache_put(struct watchcache_fixture *f, const char *text);
void watchcache_delete(struct watchcache_fixture *f, const char *text);
void watchcache_bookmark(struct watchcache_fixture *f, const char *rv);
/* Objects as texts, ..., NULL. */
void watchcache_list(struct watchcache_fixture *f, const char *rv, const char *const *texts);
#define watchcache_replace(f, rv, ...)                                                             \
    watchcache_list((f), (rv), (const char *const[]){ __VA_ARGS__, NULL })
void watchcache_delta(struct watchcache_fixture *f, const struct kinf_delta *deltas, size_t n);

/* Fails the test if the structure is broken. */
void watchcache_check(struct watchcache_fixture *f);

/* A filter of NULL is all, with bookmarks. */
int watch_try(struct watchcache_fixture *f, struct watch *watch, uint64_t version,
              const struct kinf__watch_filter *filter);
void watch_from(struct watchcache_fixture *f, struct watch *watch, uint64_t version,
                const struct kinf__watch_filter *filter);
void watch_now(struct watchcache_fixture *f, struct watch *watch,
               const struct kinf__watch_filter *filter, struct kinf_snapshot **ret_snapshot);
/* Armed, since there is nothing to say. */
void watch_arm(struct watch *watch);
unsigned watch_wakes(struct watch *watch);
/* All that it has to say, joined by ", "; ends with "EXPIRED" if it has. The caller frees it. */
char *watch_read(struct watch *watch);
void watch_expect(struct watch *watch, const char *events);
void watch_end(struct watch *watch);

/* match of struct kinf__watch_filter: ctx is a value of the label app. */
int watch_match_app(const struct kinf_object *object, void *ctx);

/* What one event is as text. */
void watch_event_text(const struct kinf__watch_event *event, char *buf, size_t size);

#endif
