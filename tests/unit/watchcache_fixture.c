/*
 * The aids of the watch cache's tests.
 */
#include "unit/watchcache_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "unit/test.h"

/* --- objects --- */

struct parts {
    char name_space[32];
    char name[32];
    char rv[32];
    char uid[32];
    char node[32];
    char app[32];
};

static const char *cut(char *to, size_t size, const char *from, const char *ends)
{
    size_t len = strcspn(from, ends);

    assert_true(len < size);
    memcpy(to, from, len);
    to[len] = '\0';
    return from + len;
}

static struct parts parse(const char *text)
{
    struct parts parts = { .name_space = "d", .uid = "1" };
    const char *at = strchr(text, '/') != NULL
                         ? cut(parts.name_space, sizeof parts.name_space, text, "/") + 1
                         : text;

    at = cut(parts.name, sizeof parts.name, at, "@") + 1;
    at = cut(parts.rv, sizeof parts.rv, at, "^:+");
    if (*at == '^')
        at = cut(parts.uid, sizeof parts.uid, at + 1, ":+");
    if (*at == ':')
        at = cut(parts.node, sizeof parts.node, at + 1, "+");
    if (*at == '+')
        cut(parts.app, sizeof parts.app, at + 1, "");
    return parts;
}

const struct kinf_object *watchcache_object(const char *text)
{
    struct parts parts = parse(text);
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_object *object;
    const struct kinf_type *type;
    char json[512];

    assert_int_equal(kinf_type_intern("", "v1", "Pod", "pods", true, &type, NULL), 0);
    snprintf(json, sizeof json,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\","
             "\"resourceVersion\":\"%s\",\"labels\":{\"app\":\"%s\"}},"
             "\"spec\":{\"nodeName\":\"%s\"}}",
             parts.name, parts.name_space, parts.uid, parts.rv, parts.app, parts.node);
    if (kinf_object_new_from_json(type, json, strlen(json), &object, &err) < 0)
        fail_msg("%s", err.message);
    return object;
}

/* --- the cache --- */

void watchcache_make(struct watchcache_fixture *f, const struct kinf__watchcache_limits *limits)
{
    static const struct kinf_index by_node = KINF_INDEX_BY_NODE_NAME;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_type *type;
    struct kinf__sink sink;

    assert_int_equal(kinf_type_intern("", "v1", "Pod", "pods", true, &type, NULL), 0);
    options.fifo_order = KINF_FIFO_IN_ORDER;
    options.indices = &by_node;
    options.n_indices = 1;
    if (kinf__informer_new_for_type(NULL, type, &options, &f->informer, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(
        kinf__watchcache_new(kinf_informer_indexer(f->informer), limits, &f->cache, NULL), 0);
    sink = kinf__watchcache_sink(f->cache);
    assert_int_equal(kinf__informer_set_sink(f->informer, &sink, NULL), 0);
    kinf__watchcache_set_enabled(f->cache, true);
}

static void unmake(struct watchcache_fixture *f)
{
    watchcache_check(f);
    kinf__watchcache_free(f->cache);
    kinf_informer_free(f->informer);
}

int watchcache_setup(void **state)
{
    struct watchcache_fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->n_objects_before = kinf__object_count();
    watchcache_make(f, NULL);
    *state = f;
    return 0;
}

int watchcache_teardown(void **state)
{
    struct watchcache_fixture *f = *state;
    size_t n_objects_before = f->n_objects_before;

    unmake(f);
    free(f);
    assert_int_equal(kinf__object_count(), n_objects_before);
    return 0;
}

void watchcache_check(struct watchcache_fixture *f)
{
    const char *wrong = kinf__watchcache_check(f->cache);

    if (wrong != NULL)
        fail_msg("%s", wrong);
}

/* --- feeding --- */

void watchcache_delta(struct watchcache_fixture *f, const struct kinf_delta *deltas, size_t n)
{
    const struct kinf_deltas together = { NULL, deltas, n };

    assert_int_equal(
        kinf__handle_deltas(&f->informer->target, &together, false, &f->informer->batch), 0);
    kinf__batch_clear(&f->informer->batch);
}

static void change(struct watchcache_fixture *f, enum kinf_delta_type type, const char *text)
{
    kinf_auto_object const struct kinf_object *object = watchcache_object(text);
    const struct kinf_delta delta = { .type = type, .object = object };

    watchcache_delta(f, &delta, 1);
}

void watchcache_put(struct watchcache_fixture *f, const char *text)
{
    change(f, KINF_DELTA_UPDATED, text);
}

void watchcache_delete(struct watchcache_fixture *f, const char *text)
{
    change(f, KINF_DELTA_DELETED, text);
}

void watchcache_bookmark(struct watchcache_fixture *f, const char *rv)
{
    const struct kinf_delta delta = { .type = KINF_DELTA_BOOKMARK, .resource_version = rv };

    watchcache_delta(f, &delta, 1);
}

void watchcache_list(struct watchcache_fixture *f, const char *rv, const char *const *texts)
{
    const struct kinf_object *objects[64];
    struct kinf_delta delta = { .type = KINF_DELTA_REPLACED_ALL,
                                .objects = objects,
                                .resource_version = rv };

    for (; texts[delta.n_objects] != NULL; delta.n_objects++)
        objects[delta.n_objects] = watchcache_object(texts[delta.n_objects]);
    watchcache_delta(f, &delta, 1);
    for (size_t i = 0; i < delta.n_objects; i++)
        kinf_object_unref(objects[i]);
}

/* --- watching --- */

static void count_wake(void *ctx)
{
    struct watch *watch = ctx;

    /* The promise: no callback with a lock held. */
    if (!kinf__mutex_none_held())
        abort();
    atomic_fetch_add(&watch->n_wakes, 1);
}

int watch_try(struct watchcache_fixture *f, struct watch *watch, uint64_t version,
              const struct kinf__watch_filter *filter)
{
    static const struct kinf__watch_filter all = { .wants_bookmarks = true };

    *watch = (struct watch){ NULL, 0 };
    return kinf__watchcache_subscribe(f->cache, filter != NULL ? filter : &all, version, count_wake,
                                      watch, &watch->cursor, NULL);
}

void watch_from(struct watchcache_fixture *f, struct watch *watch, uint64_t version,
                const struct kinf__watch_filter *filter)
{
    assert_int_equal(watch_try(f, watch, version, filter), 0);
}

void watch_now(struct watchcache_fixture *f, struct watch *watch,
               const struct kinf__watch_filter *filter, struct kinf_snapshot **ret_snapshot)
{
    *watch = (struct watch){ NULL, 0 };
    assert_int_equal(kinf__watchcache_subscribe_now(f->cache, filter, count_wake, watch,
                                                    ret_snapshot, &watch->cursor, NULL),
                     0);
}

void watch_arm(struct watch *watch)
{
    assert_false(kinf__watch_cursor_arm(watch->cursor));
}

unsigned watch_wakes(struct watch *watch)
{
    return atomic_load(&watch->n_wakes);
}

void watch_event_text(const struct kinf__watch_event *event, char *buf, size_t size)
{
    const char *type = kinf__watch_event_type_to_string(event->type);
    unsigned long long version = event->version;

    if (event->type == KINF__WATCH_BOOKMARK)
        snprintf(buf, size, "%s %llu", type, version);
    else if (event->type == KINF__WATCH_DELETED)
        snprintf(buf, size, "%s %s@%llu (%s)", type, kinf_object_key(event->object), version,
                 kinf_object_resource_version(event->object));
    else
        snprintf(buf, size, "%s %s@%llu", type, kinf_object_key(event->object), version);
}

char *watch_read(struct watch *watch)
{
    struct kinf__buffer text = KINF__BUFFER_INIT;
    struct kinf__watch_event event;
    char line[128];
    int rc;

    while ((rc = kinf__watch_cursor_next(watch->cursor, &event)) == 1) {
        watch_event_text(&event, line, sizeof line);
        assert_int_equal(kinf__buffer_printf(&text, "%s%s", text.len != 0 ? ", " : "", line), 0);
    }
    if (rc == KINF_ERR_EXPIRED)
        assert_int_equal(kinf__buffer_printf(&text, "%sEXPIRED", text.len != 0 ? ", " : ""), 0);
    else
        assert_int_equal(rc, 0);
    assert_non_null(kinf__buffer_cstr(&text));
    return text.bytes;
}

void watch_expect(struct watch *watch, const char *events)
{
    char *text = watch_read(watch);

    assert_string_equal(text, events);
    free(text);
}

void watch_end(struct watch *watch)
{
    kinf__watch_cursor_free(watch->cursor);
    watch->cursor = NULL;
}

int watch_match_app(const struct kinf_object *object, void *ctx)
{
    char app[32];

    return kinf_object_get_label(object, "app", app, sizeof app) == 0 && strcmp(app, ctx) == 0;
}
