/*
 * Waiting for the caches to have what was written.
 */
#include "controller/own_writes.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "controller/controller.h"

#define WAIT_MS    5000
#define GIVE_UP_MS 60000
#define REFUSED_MS 1000 /* a refused write may have been refused for another reason */
#define LOOK_MS    50   /* for what wakes no condition: the end of a term, of an informer */

#define KEEP_MS         1000 /* a key that is called again soon looks itself */
#define BUCKETS_AT_ONCE 1024 /* of the table, while the controller's lock is held */
#define VERSION_SIZE    64

enum awaited {
    SEEN,    /* the informer has seen the version `text` */
    GONE,    /* its object is not that of the uid `text` any more, or is being deleted */
    CHANGED, /* its object has not the version `text`; "": it has one */
};

struct item {
    struct kinf__list node;
    enum awaited awaited;
    const struct kinf__trigger *trigger;
    int64_t since_ms;
    char text[VERSION_SIZE];
    char key[];
};

static struct item *item_of(struct kinf__list *node)
{
    return KINF__LIST_ENTRY(node, struct item, node);
}

static void free_items(struct kinf__list *items)
{
    KINF__LIST_FOR_EACH_SAFE (node, items) {
        kinf__list_remove(node);
        free(item_of(node));
    }
}

static void free_item(struct item *item)
{
    kinf__list_remove(&item->node);
    free(item);
}

/* --- the table --- */

static struct kinf__written *written_of(struct kinf__hmap_node *node)
{
    return KINF__CONTAINER_OF(node, struct kinf__written, node);
}

static struct kinf__written *find(struct kinf_controller *controller, const char *key)
    KINF__REQUIRES(controller->lock)
{
    const struct kinf__hmap *keys = &controller->own_writes.keys;
    struct kinf__hmap_node *node = kinf__hmap_first_with_hash(keys, kinf__hash(kinf_str_from(key)));

    while (node != NULL && strcmp(written_of(node)->key, key) != 0)
        node = kinf__hmap_next_with_hash(node);
    return node != NULL ? written_of(node) : NULL;
}

static int begin_writing(struct kinf_call *call)
{
    size_t size = strlen(call->key) + 1;
    struct kinf__written *written;
    int failed;

    if (call->written != NULL)
        return 0;
    written = malloc(sizeof *written + size);
    if (written == NULL)
        return KINF_ERR_NO_MEMORY;
    memcpy(written->key, call->key, size);
    kinf__list_init(&written->items);
    written->is_lent = true;
    kinf__mutex_lock(&call->controller->lock);
    failed = kinf__hmap_insert(&call->controller->own_writes.keys, &written->node,
                               kinf__hash(kinf_str_from(call->key)));
    kinf__mutex_unlock(&call->controller->lock);
    if (failed < 0)
        free(written);
    else
        call->written = written;
    return failed;
}

static void drop(struct kinf__own_writes *own_writes, struct kinf__written *written)
{
    kinf__hmap_remove(&own_writes->keys, &written->node);
    free_items(&written->items);
    free(written);
}

void kinf__own_writes_release(struct kinf__own_writes *own_writes)
{
    for (size_t i = 0; i < own_writes->keys.n_buckets; i++) {
        while (own_writes->keys.buckets[i] != NULL)
            drop(own_writes, written_of(own_writes->keys.buckets[i]));
    }
    kinf__hmap_release(&own_writes->keys);
}

/* The keeper sees to what is left. */
void kinf__own_writes_end(struct kinf_call *call, bool was_refused)
{
    struct kinf__written *written = KINF__TAKE(call->written);

    if (written == NULL)
        return;
    KINF__LIST_FOR_EACH_SAFE (node, &written->items) {
        if (!was_refused && item_of(node)->awaited == CHANGED)
            free_item(item_of(node));
    }
    kinf__mutex_lock(&call->controller->lock);
    written->is_lent = false;
    if (kinf__list_is_empty(&written->items))
        drop(&call->controller->own_writes, written);
    else
        kinf__cond_broadcast(&call->controller->changed);
    kinf__mutex_unlock(&call->controller->lock);
}

/* --- waiting --- */

static bool is_met(const struct item *item)
{
    kinf_auto_object const struct kinf_object *object = kinf__trigger_get(item->trigger, item->key);

    if (object == NULL)
        return item->awaited == GONE || item->text[0] != '\0';
    if (item->awaited == CHANGED)
        return strcmp(kinf_object_resource_version(object), item->text) != 0;
    return strcmp(kinf_object_uid(object), item->text) != 0 ||
           kinf_object_has(object, "metadata.deletionTimestamp");
}

static void wait_for_change(struct kinf_controller *controller, const struct item *item,
                            int64_t until_ms)
{
    atomic_fetch_add(&controller->n_waiters, 1);
    kinf__mutex_lock(&controller->lock);
    if (!is_met(item))
        (void)kinf__cond_wait_until(&controller->changed, &controller->lock, until_ms);
    kinf__mutex_unlock(&controller->lock);
    atomic_fetch_sub(&controller->n_waiters, 1);
}

/* Waits a while. Returns 0 if it is met, or never will be. */
static int wait_a_while(struct kinf_controller *controller, const struct item *item,
                        int64_t until_ms)
{
    int64_t now_ms = kinf__clock_now_ms();
    int64_t wait_ms = kinf__clock_left_ms(now_ms, until_ms);
    int failed;

    if (wait_ms > LOOK_MS)
        wait_ms = LOOK_MS;
    if (item->awaited != SEEN) {
        if (!is_met(item))
            wait_for_change(controller, item, kinf__clock_add_ms(now_ms, wait_ms));
        return is_met(item) ? 0 : KINF_ERR_TIMEOUT;
    }
    failed = kinf_informer_wait_for_rv(item->trigger->informer, item->text, wait_ms, NULL);
    return failed == KINF_ERR_TIMEOUT || failed == KINF_ERR_STOPPED ? failed : 0;
}

static int fail_wait(struct kinf_controller *controller, const struct item *item,
                     struct kinf_error *err)
{
    kinf__count(controller, KINF__N_WAIT_TIMEOUTS);
    return kinf__error_set(err, KINF_ERR_TIMEOUT,
                           "the cache of %s does not have what was written to %s",
                           kinf_informer_type(item->trigger->informer)->resource, item->key);
}

/* When it counts no more. */
static int64_t end_of(const struct item *item)
{
    return kinf__clock_add_ms(item->since_ms, item->awaited == CHANGED ? REFUSED_MS : GIVE_UP_MS);
}

static int wait_for_item(struct kinf_call *call, const struct item *item, int64_t deadline_ms,
                         struct kinf_error *err)
{
    int64_t end_ms = end_of(item);
    int64_t left_ms, until_ms = end_ms < deadline_ms ? end_ms : deadline_ms;
    int rc;

    while ((rc = wait_a_while(call->controller, item, until_ms)) == KINF_ERR_TIMEOUT) {
        if (!kinf__call_may_write(call, &left_ms))
            return kinf__error_set(err, KINF_ERR_STOPPED, "stopped");
        if (kinf__clock_now_ms() >= end_ms)
            return 0;
        if (kinf__clock_now_ms() >= deadline_ms)
            return fail_wait(call->controller, item, err);
    }
    return rc < 0 ? kinf__error_set(err, KINF_ERR_STOPPED, "the informer is stopped") : 0;
}

int kinf__own_writes_wait(struct kinf_call *call, struct kinf_error *err)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), WAIT_MS);

    kinf__mutex_lock(&call->controller->lock);
    call->written = find(call->controller, call->key);
    if (call->written != NULL)
        call->written->is_lent = true;
    kinf__mutex_unlock(&call->controller->lock);
    if (call->written == NULL)
        return 0;
    kinf__count(call->controller, KINF__N_WAITS);
    KINF__LIST_FOR_EACH_SAFE (node, &call->written->items) {
        int failed = wait_for_item(call, item_of(node), deadline_ms, err);

        if (failed < 0)
            return failed;
        free_item(item_of(node));
    }
    return 0;
}

/* --- forgetting --- */

static bool is_there(const struct item *item)
{
    int failed;

    if (item->awaited != SEEN)
        return is_met(item);
    failed = kinf_informer_wait_for_rv(item->trigger->informer, item->text, 0, NULL);
    return failed != KINF_ERR_TIMEOUT && failed != KINF_ERR_STOPPED;
}

/* In their order: what is to be gone may not have come yet. */
static void forget_items(struct kinf__written *written, int64_t now_ms)
{
    KINF__LIST_FOR_EACH_SAFE (node, &written->items) {
        const struct item *item = item_of(node);

        if (now_ms < item->since_ms + KEEP_MS || (now_ms < end_of(item) && !is_there(item)))
            return;
        free_item(item_of(node));
    }
}

void kinf__own_writes_forget(struct kinf_controller *controller)
{
    struct kinf__own_writes *own_writes = &controller->own_writes;
    int64_t now_ms = kinf__clock_now_ms();

    for (size_t n = 0; n < BUCKETS_AT_ONCE && n < own_writes->keys.n_buckets; n++) {
        size_t bucket = own_writes->next_bucket++ % own_writes->keys.n_buckets;

        for (struct kinf__hmap_node *node = own_writes->keys.buckets[bucket], *next; node != NULL;
             node = next) {
            struct kinf__written *written = written_of(node);

            next = node->next;
            if (!written->is_lent)
                forget_items(written, now_ms);
            if (!written->is_lent && kinf__list_is_empty(&written->items))
                drop(own_writes, written);
        }
    }
}

/* --- remembering --- */

static int add_spare(struct kinf__own_write *write, const struct kinf__trigger *trigger)
{
    size_t len = strlen(write->key);
    struct item *item = malloc(sizeof *item + (write->is_nameless ? KINF__KEY_SIZE : len + 1));

    if (item == NULL)
        return KINF_ERR_NO_MEMORY;
    item->trigger = trigger;
    memcpy(item->key, write->key, len + 1);
    kinf__list_push_back(&write->spare, &item->node);
    return 0;
}

int kinf__own_write_init(struct kinf__own_write *write, struct kinf_call *call,
                         const struct kinf_type *type, const char *key, struct kinf_error *err)
{
    int failed = begin_writing(call);
    size_t len = strlen(key);

    *write = (struct kinf__own_write){
        .call = call, .type = type, .key = key, .is_nameless = len == 0 || key[len - 1] == '/'
    };
    kinf__list_init(&write->spare);
    KINF__TRIGGER_FOR_EACH (trigger, call->controller) {
        if (failed == 0 && kinf__trigger_has_place(trigger, type, key))
            failed = add_spare(write, trigger);
    }
    if (failed < 0) {
        kinf__own_write_release(write);
        return kinf__error_no_memory(err);
    }
    return 0;
}

void kinf__own_write_release(struct kinf__own_write *write)
{
    free_items(&write->spare);
}

static void await(struct kinf__own_write *write, struct item *item, enum awaited awaited,
                  const char *text)
{
    item->awaited = awaited;
    item->since_ms = kinf__clock_now_ms();
    snprintf(item->text, sizeof item->text, "%s", text);
    kinf__list_remove(&item->node);
    kinf__list_push_back(&write->call->written->items, &item->node);
}

/* Of one object the later version includes the earlier one. What a write has not changed is answered with
 * an old version, and says nothing of other objects'. */
static void drop_earlier(struct kinf__own_write *write, const struct item *item,
                         const char *version)
{
    KINF__LIST_FOR_EACH_SAFE (node, &write->call->written->items) {
        struct item *other = item_of(node);
        int order;

        if (other->trigger == item->trigger && other->awaited == SEEN &&
            strcmp(other->key, item->key) == 0 &&
            kinf_rv_compare(other->text, version, &order, NULL) == 0 && order <= 0)
            free_item(other);
    }
}

/* Whether the informer has it, or is about to, by a write before this one. */
static bool is_known(const struct kinf__own_write *write, const struct item *item)
{
    kinf_auto_object const struct kinf_object *object = kinf__trigger_get(item->trigger, item->key);

    KINF__LIST_FOR_EACH (node, &write->call->written->items) {
        const struct item *other = item_of(node);

        if (other->trigger == item->trigger && other->awaited == SEEN &&
            strcmp(other->key, item->key) == 0)
            return true;
    }
    return object != NULL;
}

static void await_version(struct kinf__own_write *write, struct item *item, const char *version)
{
    drop_earlier(write, item, version);
    await(write, item, SEEN, version);
}

/* What the selectors do not choose any more comes as its deletion. */
bool kinf__own_write_stored(struct kinf__own_write *write, const struct kinf_object *object)
{
    const char *version = kinf_object_resource_version(object);
    bool is_chosen = false;

    KINF__LIST_FOR_EACH_SAFE (node, &write->spare) {
        struct item *item = item_of(node);
        bool is_chosen_here = kinf__trigger_selects(item->trigger, object);

        is_chosen = is_chosen || is_chosen_here;
        if (strlen(version) >= VERSION_SIZE || !(is_chosen_here || is_known(write, item)))
            continue;
        if (write->is_nameless)
            snprintf(item->key, KINF__KEY_SIZE, "%s", kinf_object_key(object));
        await_version(write, item, version);
    }
    return is_chosen;
}

/* Whether selectors choose it, only the object's labels and fields could say. */
void kinf__own_write_changed(struct kinf__own_write *write, const char *version)
{
    KINF__LIST_FOR_EACH_SAFE (node, &write->spare) {
        struct item *item = item_of(node);

        if (!write->is_nameless && strlen(version) < VERSION_SIZE &&
            (kinf__trigger_selects_all(item->trigger) || is_known(write, item)))
            await_version(write, item, version);
    }
}

void kinf__own_write_deleted(struct kinf__own_write *write, const char *uid)
{
    KINF__LIST_FOR_EACH_SAFE (node, &write->spare) {
        if (strlen(uid) < VERSION_SIZE)
            await(write, item_of(node), GONE, uid);
    }
}

void kinf__own_write_refused(struct kinf__own_write *write, const char *seen_version)
{
    KINF__LIST_FOR_EACH_SAFE (node, &write->spare) {
        if (!write->is_nameless && strlen(seen_version) < VERSION_SIZE)
            await(write, item_of(node), CHANGED, seen_version);
    }
}
