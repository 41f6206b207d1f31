/*
 * What waits for a consumer. Neighbours: exec_handler.c takes what is to be told.
 *
 * Invariants: an entry is in its feed's map while its object is there; one that is told and gone is in
 * no map but in one of the two lists, or is freed. Of the entries that the feeds of a resource have of one
 * key one tells; the others are its shadows, in no list. A feed's `synced` waits at most once, for all
 * feeds of its resource.
 */
#include "handlers/outbox.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "object/object.h"

#define NO_MEMORY_WAIT_NS 100000000

struct entry {
    struct kinf__hmap_node node;
    struct kinf__list place; /* in one of the outbox's lists, or in none */
    struct kinf__outbox_feed *feed;
    const struct kinf_object *object; /* the newest of any feed; NULL: it is a feed's `synced` */
    const struct kinf_object *old;    /* as it was told last, if that is kept */
    uint64_t sequence;                /* of what told its deletion */
    bool is_told;                     /* the consumer has it */
    bool was_ever_told;               /* one before it may have */
    bool is_deleted;
    bool is_shadow; /* another feed's entry tells of its key */
    bool in_initial_list;
    bool final_state_unknown;
};

struct kinf__outbox_feed {
    struct kinf__outbox *outbox;
    struct kinf__list link;
    char *resource;
    /* guarded by the outbox's lock */
    struct kinf__hmap entries;
    struct entry synced;
    bool has_synced;
    bool is_refused;
    bool is_synced_due; /* this consumer has not been told since, and nothing waits that says so */
    bool is_known;      /* the consumer was told something of it */
};

/* --- entries --- */

static bool is_placed(const struct entry *entry)
{
    return !kinf__list_is_empty(&entry->place);
}

static void wait_for_turn(struct kinf__outbox *outbox, struct entry *entry)
{
    if (is_placed(entry))
        return;
    kinf__list_push_back(&outbox->waiting, &entry->place);
    outbox->n_waiting++;
    kinf__waker_set(&outbox->wake);
}

static void leave_waiting(struct kinf__outbox *outbox, struct entry *entry)
{
    if (!is_placed(entry))
        return;
    kinf__list_remove(&entry->place);
    outbox->n_waiting--;
}

/* It is in no map, and does not wait. */
static void free_entry(struct entry *entry)
{
    kinf__list_remove(&entry->place);
    kinf_object_unref(entry->object);
    kinf_object_unref(entry->old);
    free(entry);
}

static void drop(struct entry *entry)
{
    leave_waiting(entry->feed->outbox, entry);
    free_entry(entry);
}

static void set(const struct kinf_object **place, const struct kinf_object *object)
{
    const struct kinf_object *before = *place;

    *place = kinf_object_ref(object);
    kinf_object_unref(before);
}

static struct entry *find(const struct kinf__outbox_feed *feed, const char *key)
{
    struct kinf__hmap_node *node =
        kinf__hmap_first_with_hash(&feed->entries, kinf__hash(kinf_str_from(key)));

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct entry *entry = KINF__CONTAINER_OF(node, struct entry, node);

        if (strcmp(kinf_object_key(entry->object), key) == 0)
            return entry;
    }
    return NULL;
}

static struct entry *add_entry(struct kinf__outbox_feed *feed, const struct kinf_object *object)
{
    struct entry *entry = calloc(1, sizeof *entry);

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
static struct entry *find_other(const struct kinf__outbox_feed *feed, const char *key)
{
    struct entry *newest = NULL;

    KINF__LIST_FOR_EACH (link, &feed->outbox->feeds) {
        struct kinf__outbox_feed *other = KINF__LIST_ENTRY(link, struct kinf__outbox_feed, link);
        struct entry *entry =
            other != feed && strcmp(other->resource, feed->resource) == 0 ? find(other, key) : NULL;

        if (entry != NULL && !entry->is_shadow)
            return entry;
        if (entry != NULL && (newest == NULL || is_newer(entry->object, newest->object)))
            newest = entry;
    }
    return newest;
}

/* `to` tells what `from` has told, in its place. */
static void hand_over(struct entry *from, struct entry *to)
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
static bool is_to_be_told(const struct entry *entry)
{
    return entry->is_told || (entry->was_ever_told && entry->feed->outbox->options.acknowledges);
}

/* The object is gone. */
static void end_telling(struct entry *entry, const struct kinf_object *last,
                        bool final_state_unknown)
{
    struct kinf__outbox *outbox = entry->feed->outbox;

    kinf__hmap_remove(&entry->feed->entries, &entry->node);
    if (!is_to_be_told(entry)) {
        drop(entry);
        return;
    }
    set(&entry->object, last);
    entry->is_deleted = true;
    entry->final_state_unknown = final_state_unknown;
    wait_for_turn(outbox, entry);
}

/* The entry's feed has lost the object, and another one may have it. Who has it and is behind tells no
 * older state meanwhile. */
static void lose(struct entry *entry, const struct kinf_object *last, bool final_state_unknown)
{
    struct entry *heir =
        entry->is_shadow ? NULL : find_other(entry->feed, kinf_object_key(entry->object));

    if (heir != NULL && kinf__object_same_uid(heir->object, entry->object)) {
        set(&heir->object, entry->object);
        hand_over(entry, heir);
        heir = NULL;
    }
    if (entry->is_shadow) {
        kinf__hmap_remove(&entry->feed->entries, &entry->node);
        free_entry(entry);
    } else {
        end_telling(entry, last, final_state_unknown);
    }
    if (heir != NULL) {
        heir->is_shadow = false;
        wait_for_turn(heir->feed->outbox, heir);
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
    kinf__mutex_lock(&outbox->lock);
    kinf__list_push_back(&outbox->feeds, &feed->link);
    kinf__mutex_unlock(&outbox->lock);
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
        if (!feed->has_synced && !feed->is_refused)
            return;
        if (feed->is_synced_due)
            due = feed;
    }
    if (due == NULL)
        return;
    wait_for_turn(outbox, &due->synced);
    set_synced_due(outbox, resource, false);
}

/* Calls for each entry of the map, which the callee may free with the map's end. */
static void each_entry(struct kinf__outbox_feed *feed, void (*visit)(struct entry *entry))
{
    for (size_t i = 0; i < feed->entries.n_buckets; i++) {
        struct kinf__hmap_node *node = feed->entries.buckets[i], *next;

        for (; node != NULL; node = next) {
            next = node->next;
            visit(KINF__CONTAINER_OF(node, struct entry, node));
        }
    }
}

static void drop_deletions(struct kinf__outbox_feed *feed)
{
    KINF__LIST_FOR_EACH_SAFE (place, &feed->outbox->waiting) {
        struct entry *entry = KINF__LIST_ENTRY(place, struct entry, place);

        if (entry->feed == feed && entry->is_deleted)
            drop(entry);
    }
    KINF__LIST_FOR_EACH_SAFE (place, &feed->outbox->unacknowledged) {
        struct entry *entry = KINF__LIST_ENTRY(place, struct entry, place);

        if (entry->feed == feed)
            free_entry(entry);
    }
}

static void forget(struct entry *entry)
{
    lose(entry, entry->object, true);
}

static void reset_locked(struct kinf__outbox *outbox) KINF__REQUIRES(outbox->lock);

void kinf__outbox_feed_free(struct kinf__outbox_feed *feed)
{
    struct kinf__outbox *outbox;

    if (feed == NULL)
        return;
    outbox = feed->outbox;
    kinf__mutex_lock(&outbox->lock);
    each_entry(feed, forget);
    drop_deletions(feed);
    kinf__list_remove(&feed->link);
    if (is_placed(&feed->synced)) /* for the others, too */
        set_synced_due(outbox, feed->resource, true);
    leave_waiting(outbox, &feed->synced);
    announce_synced(outbox, feed->resource);
    if (feed->is_known && !outbox->is_closed)
        reset_locked(outbox);
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

static void note(struct entry *entry, const struct kinf_object *old,
                 const struct kinf_object *object)
{
    struct entry *teller =
        entry->is_shadow ? find_other(entry->feed, kinf_object_key(object)) : entry;
    bool is_told = teller == NULL || is_news(teller->object, old, object);

    if (is_told || entry->is_shadow)
        set(&entry->object, object);
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
    wait_for_turn(entry->feed->outbox, entry);
}

/* Returns false for want of memory. */
static bool put(struct kinf__outbox_feed *feed, const struct kinf_object *old,
                const struct kinf_object *object, bool in_initial_list)
{
    struct entry *entry;
    bool is_done;

    kinf__mutex_lock(&feed->outbox->lock);
    entry = find(feed, kinf_object_key(object));
    if (entry == NULL && (entry = add_entry(feed, object)) != NULL)
        entry->in_initial_list = in_initial_list;
    if (entry != NULL)
        note(entry, old, object);
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
    struct entry *entry;

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

static void tell_anew(struct entry *entry)
{
    if (entry->is_shadow)
        return;
    entry->is_told = false;
    set(&entry->old, NULL);
    entry->in_initial_list = true;
    wait_for_turn(entry->feed->outbox, entry);
}

/* What waited leaves, but for deletions; those that were told and not acknowledged come first. */
static void gather_deletions(struct kinf__outbox *outbox)
{
    struct kinf__list all;

    kinf__list_init(&all);
    kinf__list_append(&all, &outbox->unacknowledged);
    kinf__list_append(&all, &outbox->waiting);
    outbox->n_waiting = 0;
    KINF__LIST_FOR_EACH_SAFE (place, &all) {
        struct entry *entry = KINF__LIST_ENTRY(place, struct entry, place);

        kinf__list_remove(place);
        set(&entry->old, NULL);
        if (entry->is_deleted && outbox->options.acknowledges)
            wait_for_turn(outbox, entry);
        else if (entry->is_deleted)
            free_entry(entry);
    }
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

static void reset_locked(struct kinf__outbox *outbox)
{
    gather_deletions(outbox);
    KINF__LIST_FOR_EACH (link, &outbox->feeds) {
        struct kinf__outbox_feed *feed = KINF__LIST_ENTRY(link, struct kinf__outbox_feed, link);

        each_entry(feed, tell_anew);
        feed->is_synced_due = feed->has_synced;
        if (is_last_of_its_resource(feed))
            announce_synced(outbox, feed->resource);
    }
    outbox->is_reset_due = true;
    kinf__waker_set(&outbox->wake);
}

void kinf__outbox_reset(struct kinf__outbox *outbox)
{
    kinf__mutex_lock(&outbox->lock);
    reset_locked(outbox);
    outbox->n_acknowledged = outbox->n_told;
    kinf__mutex_unlock(&outbox->lock);
}

/* --- telling --- */

static struct kinf_change describe(const struct entry *entry)
{
    return (struct kinf_change){
        .type = entry->object == NULL ? KINF_CHANGE_SYNCED
                : entry->is_deleted   ? KINF_CHANGE_DELETED
                : entry->is_told      ? KINF_CHANGE_MODIFIED
                                      : KINF_CHANGE_ADDED,
        .resource = entry->feed->resource,
        .object = entry->object,
        .old = entry->old,
        .in_initial_list = entry->in_initial_list && !entry->is_told && !entry->is_deleted,
        .final_state_unknown = entry->final_state_unknown,
    };
}

static void note_told(struct kinf__outbox *outbox, struct entry *entry)
{
    leave_waiting(outbox, entry);
    entry->is_told = entry->was_ever_told = true;
    entry->sequence = outbox->n_told;
    entry->feed->is_known = true;
    if (entry->is_deleted && outbox->options.acknowledges)
        kinf__list_push_back(&outbox->unacknowledged, &entry->place);
    else if (entry->is_deleted)
        free_entry(entry);
    else if (outbox->options.keeps_old)
        set(&entry->old, entry->object);
}

/* The entry is NULL when it is RESET's turn. */
static int tell(struct kinf__outbox *outbox, struct entry *entry, kinf__outbox_take_cb *take,
                void *ctx)
{
    struct kinf_change change = { .type = KINF_CHANGE_RESET };
    int failed;

    if (entry != NULL)
        change = describe(entry);
    if (outbox->options.acknowledges)
        change.sequence = outbox->n_told + 1;
    if ((failed = take(&change, ctx)) < 0)
        return failed;
    outbox->n_told++;
    outbox->is_reset_due = false;
    if (entry != NULL)
        note_told(outbox, entry);
    return 1;
}

static bool may_tell(const struct kinf__outbox *outbox)
{
    return !outbox->options.acknowledges ||
           outbox->n_told - outbox->n_acknowledged < KINF__OUTBOX_WINDOW;
}

int kinf__outbox_next(struct kinf__outbox *outbox, kinf__outbox_take_cb *take, void *ctx)
{
    int n = 0;

    kinf__mutex_lock(&outbox->lock);
    if (may_tell(outbox)) {
        if (outbox->is_reset_due)
            n = tell(outbox, NULL, take, ctx);
        else if (!kinf__list_is_empty(&outbox->waiting))
            n = tell(outbox, KINF__LIST_ENTRY(outbox->waiting.next, struct entry, place), take,
                     ctx);
    }
    kinf__mutex_unlock(&outbox->lock);
    return n;
}

static void free_acknowledged(struct kinf__outbox *outbox)
{
    KINF__LIST_FOR_EACH_SAFE (place, &outbox->unacknowledged) {
        struct entry *entry = KINF__LIST_ENTRY(place, struct entry, place);

        if (entry->sequence > outbox->n_acknowledged)
            break;
        free_entry(entry);
    }
}

bool kinf__outbox_acknowledge(struct kinf__outbox *outbox, uint64_t sequence)
{
    bool makes_sense;

    kinf__mutex_lock(&outbox->lock);
    makes_sense = sequence >= outbox->n_acknowledged && sequence <= outbox->n_told;
    if (makes_sense) {
        outbox->n_acknowledged = sequence;
        free_acknowledged(outbox);
    }
    kinf__mutex_unlock(&outbox->lock);
    return makes_sense;
}

/* --- life --- */

int kinf__outbox_init(struct kinf__outbox *outbox, const struct kinf__outbox_options *options,
                      struct kinf_error *err)
{
    *outbox = (struct kinf__outbox){ .options = *options };
    kinf__list_init(&outbox->feeds);
    kinf__list_init(&outbox->waiting);
    kinf__list_init(&outbox->unacknowledged);
    kinf__mutex_init(&outbox->lock, KINF__RANK_OUTBOX);
    return kinf__waker_init(&outbox->wake, err);
}

void kinf__outbox_release(struct kinf__outbox *outbox)
{
    kinf__waker_release(&outbox->wake);
    kinf__mutex_release(&outbox->lock);
}

void kinf__outbox_close(struct kinf__outbox *outbox)
{
    kinf__mutex_lock(&outbox->lock);
    outbox->is_closed = true;
    kinf__mutex_unlock(&outbox->lock);
    kinf__waker_set(&outbox->wake);
}

bool kinf__outbox_is_closed(struct kinf__outbox *outbox)
{
    bool is_closed;

    kinf__mutex_lock(&outbox->lock);
    is_closed = outbox->is_closed;
    kinf__mutex_unlock(&outbox->lock);
    return is_closed;
}

void kinf__outbox_status(struct kinf__outbox *outbox, struct kinf__outbox_status *ret_status)
{
    kinf__mutex_lock(&outbox->lock);
    ret_status->n_waiting = outbox->n_waiting + outbox->is_reset_due;
    ret_status->n_told = outbox->n_told;
    ret_status->n_unacknowledged =
        outbox->options.acknowledges ? outbox->n_told - outbox->n_acknowledged : 0;
    kinf__mutex_unlock(&outbox->lock);
}

/* Each key has one entry that tells of it. */
static bool check_shadows(const struct kinf__outbox_feed *feed)
{
    for (size_t i = 0; i < feed->entries.n_buckets; i++) {
        const struct kinf__hmap_node *node = feed->entries.buckets[i];

        for (; node != NULL; node = node->next) {
            const struct entry *entry = KINF__CONTAINER_OF(node, struct entry, node);
            const struct entry *other = find_other(feed, kinf_object_key(entry->object));
            bool other_tells = other != NULL && !other->is_shadow;

            if (entry->is_shadow != other_tells || (entry->is_shadow && is_placed(entry)))
                return false;
        }
    }
    return true;
}

bool kinf__outbox_check(struct kinf__outbox *outbox)
{
    uint64_t sequence = outbox->n_acknowledged;
    size_t n = 0;
    bool is_sound = outbox->n_acknowledged <= outbox->n_told;

    kinf__mutex_lock(&outbox->lock);
    KINF__LIST_FOR_EACH (place, &outbox->waiting) {
        const struct entry *entry = KINF__LIST_ENTRY(place, struct entry, place);

        is_sound = is_sound && (entry->object != NULL || entry == &entry->feed->synced);
        n++;
    }
    is_sound = is_sound && n == outbox->n_waiting;
    KINF__LIST_FOR_EACH (place, &outbox->unacknowledged) {
        const struct entry *entry = KINF__LIST_ENTRY(place, struct entry, place);

        is_sound = is_sound && entry->is_deleted && entry->sequence > sequence &&
                   entry->sequence <= outbox->n_told;
        sequence = entry->sequence;
    }
    KINF__LIST_FOR_EACH (link, &outbox->feeds)
        is_sound =
            is_sound && check_shadows(KINF__LIST_ENTRY(link, struct kinf__outbox_feed, link));
    kinf__mutex_unlock(&outbox->lock);
    return is_sound;
}
