/*
 * Neighbours: store.c writes feeds, resources.c makes and ends them, serve/ reads them.
 */
#include "apiserver/feed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock.h"
#include "object/object.h"

struct kinf__feed {
    /* constant */
    const struct kinf__feeds *feeds;
    const struct kinf_type *type;
    struct kinf_indexer *indexer;
    struct kinf__source *source;
    struct kinf__watchcache *cache;
    struct kinf__sink sink;
    struct kinf__mutex lock;
    /* guarded by lock */
    /* With a reference: what there was no memory for; object NULL: none. */
    struct kinf__feed_change owed;
    /* written under lock, read by anyone */
    _Atomic(uint64_t) version; /* up to which the cache was told everything */
};

/* Pods are asked for by node, by every kubelet. */
static const struct kinf_index by_node = KINF_INDEX_BY_NODE_NAME;

void kinf__print_version(uint64_t version, char text[KINF__VERSION_SIZE])
{
    snprintf(text, KINF__VERSION_SIZE, "%" PRIu64, version);
}

int kinf__feeds_decode(const struct kinf__feeds *feeds, const struct kinf_type *type,
                       struct kinf_str text, const struct kinf_object **ret_object,
                       struct kinf_error *err)
{
    struct kinf__object_decoder decoder;
    size_t len;
    int failed;

    kinf__object_decoder_init(&decoder, type, feeds->plan);
    failed = kinf__object_decode(&decoder, text, true, ret_object, &len, err);
    kinf__object_decoder_release(&decoder);
    return failed == KINF_ERR_PARSE ? KINF_ERR_INVALID : failed;
}

/* `*ret_old` is what was there, with a reference. */
static int write_locked(struct kinf__feed *feed, const struct kinf__feed_change *change,
                        const struct kinf_object **ret_old, struct kinf_error *err)
    KINF__REQUIRES(feed->lock)
{
    /* What is removed does not know the version of its removal. */
    struct kinf__notification told = { .object = change->object,
                                       .final_state_unknown = change->is_removal };
    char text[KINF__VERSION_SIZE];
    int failed;

    kinf__print_version(change->version, text);
    failed = change->is_removal
                 ? kinf_indexer_delete(feed->indexer, kinf_object_key(change->object), text,
                                       &told.old, err)
                 : kinf_indexer_update(feed->indexer, change->object, &told.old, err);
    if (failed < 0)
        return failed;
    told.type = change->is_removal ? KINF__NOTIFY_DELETE
                : told.old == NULL ? KINF__NOTIFY_ADD
                                   : KINF__NOTIFY_UPDATE;
    feed->sink.on_write(KINF__WRITE_CHANGES, &told, 1, kinf__clock_now_ms(), feed->sink.ctx);
    atomic_store(&feed->version, change->version);
    *ret_old = told.old;
    return 0;
}

static int settle_locked(struct kinf__feed *feed, struct kinf_error *err) KINF__REQUIRES(feed->lock)
{
    const struct kinf_object *old;
    int failed;

    if (feed->owed.object == NULL)
        return 0;
    failed = write_locked(feed, &feed->owed, &old, err);
    if (failed < 0)
        return failed;
    kinf_object_unref(old);
    kinf_object_unref(KINF__TAKE(feed->owed.object));
    return 0;
}

int kinf__feed_settle(struct kinf__feed *feed, struct kinf_error *err)
{
    int failed;

    kinf__mutex_lock(&feed->lock);
    failed = settle_locked(feed, err);
    kinf__mutex_unlock(&feed->lock);
    return failed;
}

/* What a bookmark does. Without memory the cache stays behind until the next time. */
static void catch_up_locked(struct kinf__feed *feed) KINF__REQUIRES(feed->lock)
{
    uint64_t version = atomic_load(&feed->feeds->version);
    char text[KINF__VERSION_SIZE];

    if (settle_locked(feed, NULL) < 0 || atomic_load(&feed->version) >= version)
        return;
    kinf__print_version(version, text);
    if (kinf_indexer_bookmark(feed->indexer, text, NULL) < 0)
        return;
    feed->sink.on_write(KINF__WRITE_RESOURCE_VERSION, NULL, 0, kinf__clock_now_ms(),
                        feed->sink.ctx);
    atomic_store(&feed->version, version);
}

void kinf__feed_catch_up(struct kinf__feed *feed)
{
    if (atomic_load(&feed->version) >= atomic_load(&feed->feeds->version))
        return;
    kinf__mutex_lock(&feed->lock);
    catch_up_locked(feed);
    kinf__mutex_unlock(&feed->lock);
}

static void catch_up(void *ctx)
{
    kinf__feed_catch_up(ctx);
}

static bool has_node_index(const struct kinf_type *type)
{
    return *type->group == '\0' && strcmp(type->resource, "pods") == 0;
}

/* The lock is held: the server's ranks above it. */
static int serve_feed(struct kinf__feed *feed, struct kinf_error *err)
{
    const char *names[] = { by_node.name }, *paths[] = { by_node.path };
    struct kinf__source_options options = {
        .store = { feed->type, feed->indexer, catch_up, feed },
        .index_names = names,
        .index_paths = paths,
        .n_indices = has_node_index(feed->type),
        .limits = feed->feeds->limits,
    };
    int failed = kinf__server_add_source(feed->feeds->server, &options, &feed->source, err);

    if (failed < 0)
        return failed;
    feed->cache = kinf__source_cache(feed->source);
    feed->sink = kinf__watchcache_sink(feed->cache);
    kinf__server_publish_source(feed->feeds->server, feed->source);
    return 0;
}

void kinf__feed_retire(struct kinf__feed *feed)
{
    kinf__server_retire_source(feed->feeds->server, feed->source);
}

void kinf__feed_free(struct kinf__feed *feed)
{
    if (feed == NULL)
        return;
    kinf__source_free(feed->source);
    kinf_object_unref(feed->owed.object);
    kinf_indexer_free(feed->indexer);
    kinf__mutex_release(&feed->lock);
    free(feed);
}

int kinf__feed_new(const struct kinf__feeds *feeds, const struct kinf_type *type,
                   struct kinf__feed **ret_feed, struct kinf_error *err)
{
    struct kinf__feed *feed = calloc(1, sizeof *feed);
    char text[KINF__VERSION_SIZE];
    int failed;

    if (feed == NULL)
        return kinf__error_no_memory(err);
    feed->feeds = feeds;
    feed->type = type;
    kinf__mutex_init(&feed->lock, KINF__RANK_FEED);
    atomic_init(&feed->version, atomic_load(&feeds->version));
    kinf__print_version(atomic_load(&feed->version), text);
    failed = kinf_indexer_new(&by_node, has_node_index(type), &feed->indexer, err);
    if (failed == 0)
        failed = kinf_indexer_replace(feed->indexer, NULL, 0, text, err);
    if (failed == 0)
        failed = serve_feed(feed, err);
    if (failed < 0) {
        kinf__feed_free(feed);
        return failed;
    }
    *ret_feed = feed;
    return 0;
}

struct kinf_indexer *kinf__feed_indexer(const struct kinf__feed *feed)
{
    return feed->indexer;
}

int kinf__feed_write(struct kinf__feed *feed, const struct kinf__feed_change *change, bool is_first,
                     const struct kinf_object **ret_old, struct kinf_error *err)
{
    int failed;

    kinf__mutex_lock(&feed->lock);
    failed = write_locked(feed, change, ret_old, err);
    if (failed < 0 && !is_first) {
        kinf_object_ref(change->object);
        feed->owed = *change;
        failed = 0;
    }
    kinf__mutex_unlock(&feed->lock);
    return failed;
}

/* An object of one version, as one of another. */
static int add_copy(struct kinf__feed *feed, const struct kinf_object *object,
                    struct kinf_error *err)
{
    struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    const struct kinf_object *copy = NULL;
    struct kinf_str body;
    int failed = kinf__object_body(object, &scratch, &body);

    if (failed == 0)
        failed = kinf__feeds_decode(feed->feeds, feed->type, body, &copy, err);
    if (failed == 0)
        failed = kinf_indexer_add(feed->indexer, copy, NULL, err);
    kinf_object_unref(copy);
    kinf_scratch_release(&scratch);
    return failed;
}

int kinf__feed_fill(struct kinf__feed *feed, const struct kinf__feed *from, struct kinf_error *err)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(from->indexer);
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    char text[KINF__VERSION_SIZE];
    int failed = 0;

    kinf__watchcache_set_enabled(feed->cache, false);
    kinf_cursor_all(&cursor, snapshot);
    while (failed == 0 && (object = kinf_cursor_next(&cursor)) != NULL)
        failed = add_copy(feed, object, err);
    kinf__print_version(atomic_load(&feed->version), text);
    if (failed == 0)
        failed = kinf_indexer_bookmark(feed->indexer, text, err);
    kinf__watchcache_set_enabled(feed->cache, true);
    return failed;
}

void kinf__feed_expire(struct kinf__feed *feed)
{
    kinf__watchcache_set_enabled(feed->cache, false);
    kinf__watchcache_set_enabled(feed->cache, true);
}

int kinf__feed_restore(struct kinf__feed *feed, const struct kinf_snapshot *snapshot,
                       uint64_t version)
{
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    char text[KINF__VERSION_SIZE];
    int failed;

    kinf__print_version(version, text);
    kinf__mutex_lock(&feed->lock);
    kinf_object_unref(KINF__TAKE(feed->owed.object));
    kinf__watchcache_set_enabled(feed->cache, false);
    failed = kinf_indexer_replace(feed->indexer, NULL, 0, text, NULL);
    if (snapshot != NULL) {
        kinf_cursor_all(&cursor, snapshot);
        while (failed == 0 && (object = kinf_cursor_next(&cursor)) != NULL)
            failed = add_copy(feed, object, NULL);
    }
    if (failed == 0)
        failed = kinf_indexer_bookmark(feed->indexer, text, NULL);
    atomic_store(&feed->version, version);
    kinf__watchcache_set_enabled(feed->cache, true);
    kinf__mutex_unlock(&feed->lock);
    return failed;
}
