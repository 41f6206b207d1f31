/*
 * What the feeds of an outbox have, and which of it is to be told. Neighbours: daemon/watch.c tells the
 * feeds, outbox.c tells the consumer.
 */
#include "handlers/outbox_priv.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "object/object.h"

#define NO_MEMORY_WAIT_NS 100000000

/* --- entries --- */

static struct kinf__outbox_entry *find(const struct kinf__outbox_feed *feed, const char *key)
{
    struct kinf__hmap_node *node =
        kinf__hmap_first_with_hash(&feed->entries, kinf__hash(kinf_str_from(key)));

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct kinf__outbox_entry *entry =
            KINF__CONTAINER_OF(node, struct kinf__outbox_entry, node);

        if (strcmp(kinf_object_key(entry->object), key) == 0)
            return entry;
    }
    return NULL;
}

static struct kinf__outbox_entry *add_entry(struct kinf__outbox_feed *feed,
                                            const struct kinf_object *object)
{
    struct kinf__outbox_entry *entry = calloc(1, sizeof *entry);

    if (entry == NULL ||
        kinf__hmap_insert(&feed->entries, &entry->node,
                          kinf__hash(kinf_str_from(kinf_object_key(object)))) < 0) {
        free(entry);
        return NULL;
    }
    kinf__list_init(&entry->place);
    entry->feed = feed;
    entry->is_shadow = true;
    return entry;
}

/* --- several feeds of one resource --- */

/* Where versions have no order, any other one is. */
static bool is_newer(const struct kinf_object *object, const struct kinf_object *other)
{
    const char *rv = kinf_object_resource_version(object);
    const char *other_rv = kinf_object_resource_version(other);
    int order;

    return kinf_rv_compare(rv, other_rv, &order, NULL) == 0 ? order > 0 : strcmp(rv, other_rv) != 0;
}

static bool is_same_state(const struct kinf_object *a, const struct kinf_object *b)
{
    return strcmp(kinf_object_resource_version(a), kinf_object_resource_version(b)) == 0 &&
           kinf__object_same_uid(a, b);
}

/* Of another feed: the one that tells of the key, else the newest; NULL if there is none. */
static struct kinf__outbox_entry *find_other(const struct kinf__outbox_feed *feed, const char *key)
{
    struct kinf__outbox_entry *newest = NULL;

    KINF__LIST_FOR_EACH (link, &feed->outbox->feeds) {
        struct kinf__outbox_feed *other = KINF__LIST_ENTRY(link, struct kinf__outbox_feed, link);
        struct kinf__outbox_entry *entry =
            other != feed && other->is_open && strcmp(other->resource, feed->resource) == 0
                ? find(other, key)
                : NULL;

        if (entry != NULL && !entry->is_shadow)
            return entry;
        if (entry != NULL && (newest == NULL || is_newer(entry->object, newest->object)))
            newest = entry;
    }
    return newest;
}

/* `to` tells what `from` has told, in its place. */
static void hand_over(struct kinf__outbox_entry *from, struct kinf__outbox_entry *to)
{
    kinf__list_push_back(&from->place, &to->place);
    kinf__list_remove(&from->place);
    kinf_object_unref(to->old);
    to->old = KINF__TAKE(from->old);
    to->is_told = from->is_told;
    to->was_ever_told = from->was_ever_told;
    to->in_initial_list = from->in_initial_list;
    to->is_shadow = false;
    to->feed->is_known = to->feed->is_known || to->was_ever_told;
    from->is_told = from->was_ever_told = false;
    from->is_shadow = true;
}

/* Who acknowledges is told of what those before it may have seen, too. */
static bool is_to_be_told(const struct kinf__outbox_entry *entry)
{
    return entry->is_told || (entry->was_ever_told && entry->feed->outbox->options.acknowledges);
}

/* The object is gone. */
static void end_telling(struct kinf__outbox_entry *entry, const struct kinf_object *last,
                        bool final_state_unknown)
{
    struct kinf__outbox *outbox = entry->feed->outbox;

    kinf__hmap_remove(&entry->feed->entries, &entry->node);
    if (!is_to_be_told(entry)) {
        kinf__outbox_leave_waiting(outbox, entry);
        kinf__outbox_entry_free(entry);
        return;
    }
    kinf__outbox_set_object(&entry->object, last);
    entry->is_deleted = true;
    entry->final_state_unknown = final_state_unknown;
    kinf__outbox_wait_for_turn(outbox, entry);
}

/* The entry's feed has lost the object, and another one may have it. Who has it and is behind tells no
 * older state meanwhile. */
static void lose(struct kinf__outbox_entry *entry, const struct kinf_object *last,
                 bool final_state_unknown)
{
    struct kinf__outbox_entry *heir =
        entry->is_shadow ? NULL : find_other(entry->feed, kinf_object_key(entry->object));

    if (heir != NULL && kinf__object_same_uid(heir->object, entry->object)) {
        kinf__outbox_set_object(&heir->object, entry->object);
        hand_over(entry, heir);
        heir = NULL;
    }
    if (entry->is_shadow) {
        kinf__hmap_remove(&entry->feed->entries, &entry->node);
        kinf__outbox_entry_free(entry);
    } else {
        end_telling(entry, last, final_state_unknown);
    }
    if (heir != NULL) {
        heir->is_shadow = false;
        kinf__outbox_wait_for_turn(heir->feed->outbox, heir);
    }
}

/* --- a resource --- */

int kinf__outbox_feed_new(struct kinf__outbox *outbox, const char *resource,
                          struct kinf__outbox_feed **ret_feed, struct kinf_error *err)
{
    struct kinf__outbox_feed *feed = calloc(1, sizeof *feed);

    if (feed == NULL || (feed->resource = strdup(resource)) == NULL) {
        free(feed);
        return kinf__error_no_memory(err);
    }
    feed->outbox = outbox;
    feed->synced.feed = feed;
    kinf__list_init(&feed->synced.place);
    kinf__list_init(&feed->link);
    *ret_feed = feed;
    return 0;
}

static void set_synced_due(struct kinf__outbox *outbox, const char *resource, bool is_due)
{
    KINF__LIST_FOR_EACH (link, &outbox->feeds) {
        struct kinf__outbox_feed *feed = KINF__LIST_ENTRY(link, struct kinf__outbox_feed, link);

        if (strcmp(feed->resource, resource) == 0)
            feed->is_synced_due = is_due && feed->has_synced;
    }
}

/* A resource is synced when all of its feeds are that may be. */
static void announce_synced(struct kinf__outbox *outbox, const char *resource)
{
    struct kinf__outbox_feed *due = NULL;

    KINF__LIST_FOR_EACH (link, &outbox->feeds) {
        struct kinf__outbox_feed *feed = KINF__LIST_ENTRY(link, struct kinf__outbox_feed, link);

        if (strcmp(feed->resource, resource) != 0)
            continue;
        if (!feed->is_open || (!feed->has_synced && !feed->is_refused))
            return;
        if (feed->is_synced_due)
            due = feed;
    }
    if (due == NULL)
        return;
    kinf__outbox_wait_for_turn(outbox, &due->synced);
    set_synced_due(outbox, resource, false);
}

/* Calls for each entry of the map, which the callee may free with the map's end. */
static void each_entry(struct kinf__outbox_feed *feed,
                       void (*visit)(struct kinf__outbox_entry *entry))
{
    for (size_t i = 0; i < feed->entries.n_buckets; i++) {
        struct kinf__hmap_node *node = feed->entries.buckets[i], *next;

        for (; node != NULL; node = next) {
            next = node->next;
            visit(KINF__CONTAINER_OF(node, struct kinf__outbox_entry, node));
        }
    }
}

static void forget(struct kinf__outbox_entry *entry)
{
    lose(entry, entry->object, true);
}

void kinf__outbox_feed_free(struct kinf__outbox_feed *feed)
{
    struct kinf__outbox *outbox;

    if (feed == NULL)
        return;
    outbox = feed->outbox;
    kinf__mutex_lock(&outbox->lock);
    each_entry(feed, forget);
    kinf__outbox_drop_deletions(feed);
    kinf__list_remove(&feed->link);
    if (kinf__outbox_entry_is_placed(&feed->synced)) /* for the others, too */
        set_synced_due(outbox, feed->resource, true);
    kinf__outbox_leave_waiting(outbox, &feed->synced);
    announce_synced(outbox, feed->resource);
    if (feed->is_known && !outbox->is_closed)
        kinf__outbox_reset_locked(outbox);
    kinf__mutex_unlock(&outbox->lock);
    kinf__hmap_release(&feed->entries);
    free(feed->resource);
    free(feed);
}

/* Whether it is to be told, in view of what is told of its key. Its feed may repeat what it had, for who
 * tries again what failed, and go back, with a server that was restored; else no older state is told. */
static bool is_news(const struct kinf_object *known, const struct kinf_object *old,
                    const struct kinf_object *object)
{
    if (is_same_state(known, object))
        return old != NULL && is_same_state(old, object);
    return is_newer(object, known) || (old != NULL && is_newer(old, object));
}

static void note(struct kinf__outbox_entry *entry, const struct kinf_object *old,
                 const struct kinf_object *object)
{
    struct kinf__outbox_entry *teller =
        entry->is_shadow ? find_other(entry->feed, kinf_object_key(object)) : entry;
    bool is_told = teller == NULL || is_news(teller->object, old, object);

    if (is_told || entry->is_shadow)
        kinf__outbox_set_object(&entry->object, object);
    if (!is_told)
        return;
    if (teller != NULL && teller != entry && !kinf__object_same_uid(teller->object, object)) {
        end_telling(teller, teller->object, true);
        teller = NULL;
    }
    if (teller == NULL)
        entry->is_shadow = false;
    else if (teller != entry)
        hand_over(teller, entry);
    kinf__outbox_wait_for_turn(entry->feed->outbox, entry);
}

static void note_kept(struct kinf__outbox_entry *entry)
{
    note(entry, NULL, entry->object);
}

static void join(struct kinf__outbox_feed *feed)
{
    if (kinf__list_is_empty(&feed->link))
        kinf__list_push_back(&feed->outbox->feeds, &feed->link);
}

void kinf__outbox_feed_join(struct kinf__outbox_feed *feed)
{
    kinf__mutex_lock(&feed->outbox->lock);
    join(feed);
    kinf__mutex_unlock(&feed->outbox->lock);
}

void kinf__outbox_feed_open(struct kinf__outbox_feed *feed)
{
    struct kinf__outbox *outbox = feed->outbox;

    kinf__mutex_lock(&outbox->lock);
    join(feed);
    feed->is_open = true;
    each_entry(feed, note_kept);
    announce_synced(outbox, feed->resource);
    kinf__mutex_unlock(&outbox->lock);
}

/* Returns false for want of memory. */
static bool put(struct kinf__outbox_feed *feed, const struct kinf_object *old,
                const struct kinf_object *object, bool in_initial_list)
{
    struct kinf__outbox_entry *entry;
    bool is_done;

    kinf__mutex_lock(&feed->outbox->lock);
    entry = find(feed, kinf_object_key(object));
    if (entry == NULL && (entry = add_entry(feed, object)) != NULL)
        entry->in_initial_list = in_initial_list;
    if (entry != NULL && feed->is_open)
        note(entry, old, object);
    else if (entry != NULL)
        kinf__outbox_set_object(&entry->object, object);
    is_done = entry != NULL || feed->outbox->is_closed;
    kinf__mutex_unlock(&feed->outbox->lock);
    return is_done;
}

void kinf__outbox_feed_put(struct kinf__outbox_feed *feed, const struct kinf_object *old,
                           const struct kinf_object *object, bool in_initial_list)
{
    const struct timespec wait = { .tv_nsec = NO_MEMORY_WAIT_NS };

    while (!put(feed, old, object, in_initial_list))
        nanosleep(&wait, NULL);
}

void kinf__outbox_feed_delete(struct kinf__outbox_feed *feed, const struct kinf_object *last,
                              bool final_state_unknown)
{
    struct kinf__outbox_entry *entry;

    kinf__mutex_lock(&feed->outbox->lock);
    entry = find(feed, kinf_object_key(last));
    if (entry != NULL)
        lose(entry, last, final_state_unknown);
    kinf__mutex_unlock(&feed->outbox->lock);
}

void kinf__outbox_feed_synced(struct kinf__outbox_feed *feed)
{
    kinf__mutex_lock(&feed->outbox->lock);
    feed->has_synced = feed->is_synced_due = true;
    announce_synced(feed->outbox, feed->resource);
    kinf__mutex_unlock(&feed->outbox->lock);
}

void kinf__outbox_feed_refused(struct kinf__outbox_feed *feed)
{
    kinf__mutex_lock(&feed->outbox->lock);
    feed->is_refused = true;
    announce_synced(feed->outbox, feed->resource);
    kinf__mutex_unlock(&feed->outbox->lock);
}

/* --- a consumer that is new --- */

static void tell_anew(struct kinf__outbox_entry *entry)
{
    if (entry->is_shadow)
        return;
    entry->is_told = false;
    kinf__outbox_set_object(&entry->old, NULL);
    entry->in_initial_list = true;
    kinf__outbox_wait_for_turn(entry->feed->outbox, entry);
}

static bool is_last_of_its_resource(const struct kinf__outbox_feed *feed)
{
    const struct kinf__list *link = feed->link.next;

    for (; link != &feed->outbox->feeds; link = link->next) {
        if (strcmp(KINF__LIST_ENTRY(link, struct kinf__outbox_feed, link)->resource,
                   feed->resource) == 0)
            return false;
    }
    return true;
}

void kinf__outbox_feeds_tell_anew(struct kinf__outbox *outbox)
{
    KINF__LIST_FOR_EACH (link, &outbox->feeds) {
        struct kinf__outbox_feed *feed = KINF__LIST_ENTRY(link, struct kinf__outbox_feed, link);

        each_entry(feed, tell_anew);
        feed->is_synced_due = feed->has_synced;
        if (is_last_of_its_resource(feed))
            announce_synced(outbox, feed->resource);
    }
}

/* Each key has one entry that tells of it. */
bool kinf__outbox_feed_check(const struct kinf__outbox_feed *feed)
{
    for (size_t i = 0; i < feed->entries.n_buckets; i++) {
        const struct kinf__hmap_node *node = feed->entries.buckets[i];

        for (; node != NULL; node = node->next) {
            const struct kinf__outbox_entry *entry =
                KINF__CONTAINER_OF(node, struct kinf__outbox_entry, node);
            const struct kinf__outbox_entry *other =
                find_other(feed, kinf_object_key(entry->object));
            bool other_tells = !feed->is_open || (other != NULL && !other->is_shadow);

            if (entry->is_shadow != other_tells ||
                (entry->is_shadow && kinf__outbox_entry_is_placed(entry)))
                return false;
        }
    }
    return true;
}
