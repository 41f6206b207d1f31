/*
 * A map of all keys, a list of those that wait for each priority, one of those in process, a heap of
 * those for later. Neighbours: queue.c.
 *
 * Invariant: a key is in the map for one reason at least, and in a list for its state.
 */
#include "queue/keys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define X(priority, value, name, what) +1
static_assert(KINF_N_PRIORITIES == 0 KINF_PRIORITIES(X), "as many as there are");
#undef X

static size_t level_of(int priority)
{
    return (size_t)(priority - KINF_PRIORITY_LOW);
}

void kinf__keys_init(struct kinf__keys *keys)
{
    *keys = (struct kinf__keys){ 0 };
    for (size_t i = 0; i < KINF_N_PRIORITIES; i++)
        kinf__list_init(&keys->waiting[i]);
    kinf__list_init(&keys->in_process);
}

void kinf__keys_release(struct kinf__keys *keys)
{
    for (size_t i = 0; i < keys->by_text.n_buckets; i++) {
        for (struct kinf__hmap_node *node = keys->by_text.buckets[i], *next; node != NULL;
             node = next) {
            next = node->next;
            free(KINF__CONTAINER_OF(node, struct kinf__queue_key, node));
        }
    }
    kinf__hmap_release(&keys->by_text);
}

struct kinf__queue_key *kinf__keys_find(const struct kinf__keys *keys, const char *text,
                                        uint64_t hash)
{
    struct kinf__hmap_node *node = kinf__hmap_first_with_hash(&keys->by_text, hash);

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct kinf__queue_key *key = KINF__CONTAINER_OF(node, struct kinf__queue_key, node);

        if (strcmp(key->text, text) == 0)
            return key;
    }
    return NULL;
}

int kinf__keys_provide(struct kinf__keys *keys, const char *text, uint64_t hash,
                       struct kinf__queue_key **ret_key)
{
    struct kinf__queue_key *key = kinf__keys_find(keys, text, hash);
    size_t size = strlen(text) + 1;

    if (key == NULL) {
        key = calloc(1, offsetof(struct kinf__queue_key, text) + size);
        if (key == NULL || kinf__hmap_insert(&keys->by_text, &key->node, hash) < 0) {
            free(key);
            return KINF_ERR_NO_MEMORY;
        }
        kinf__list_init(&key->in_list);
        memcpy(key->text, text, size);
    }
    *ret_key = key;
    return 0;
}

static void drop_if_unused(struct kinf__keys *keys, struct kinf__queue_key *key)
{
    if (key->state != KINF__KEY_IDLE || key->later.is_set || key->n_requeues != 0)
        return;
    kinf__hmap_remove(&keys->by_text, &key->node);
    free(key);
}

static void wait_at(struct kinf__keys *keys, struct kinf__queue_key *key, int8_t priority)
{
    key->state = KINF__KEY_WAITING;
    key->priority = priority;
    kinf__list_push_back(&keys->waiting[level_of(priority)], &key->in_list);
    keys->n_waiting[level_of(priority)]++;
}

static void wait_no_more(struct kinf__keys *keys, struct kinf__queue_key *key)
{
    kinf__list_remove(&key->in_list);
    keys->n_waiting[level_of(key->priority)]--;
}

static void begin_to_wait(struct kinf__keys *keys, struct kinf__queue_key *key, int64_t now_ns)
{
    key->since_ns = now_ns;
    keys->n_adds++;
}

static int8_t higher(int8_t a, int8_t b)
{
    return a > b ? a : b;
}

void kinf__keys_add(struct kinf__keys *keys, struct kinf__queue_key *key,
                    enum kinf_priority priority, int64_t now_ns)
{
    int8_t wanted = (int8_t)priority;

    if (key->state == KINF__KEY_IDLE) {
        begin_to_wait(keys, key, now_ns);
        wait_at(keys, key, wanted);
    } else if (key->state == KINF__KEY_WAITING && wanted > key->priority) {
        wait_no_more(keys, key);
        wait_at(keys, key, wanted);
    } else if (key->state == KINF__KEY_IN_PROCESS && key->waits_again) {
        key->again_priority = higher(key->again_priority, wanted);
    } else if (key->state == KINF__KEY_IN_PROCESS) {
        begin_to_wait(keys, key, now_ns);
        key->waits_again = true;
        key->again_priority = wanted;
    }
}

void kinf__keys_add_later(struct kinf__keys *keys, struct kinf__queue_key *key,
                          enum kinf_priority priority, int64_t due_ms)
{
    if (key->later.is_set) {
        key->later_priority = higher(key->later_priority, (int8_t)priority);
        if (key->later.at_ms <= due_ms)
            return;
    } else {
        key->later_priority = (int8_t)priority;
        keys->n_later++;
    }
    kinf__timer_set(&keys->later, &key->later, due_ms);
}

void kinf__keys_wake(struct kinf__keys *keys, int64_t now_ms)
{
    struct kinf__timer *timer;

    while ((timer = kinf__timers_take_due(&keys->later, now_ms)) != NULL) {
        struct kinf__queue_key *key = KINF__CONTAINER_OF(timer, struct kinf__queue_key, later);

        keys->n_later--;
        kinf__keys_add(keys, key, key->later_priority, timer->at_ms * 1000000);
    }
}

size_t kinf__keys_n_waiting(const struct kinf__keys *keys)
{
    size_t n_waiting = 0;

    for (size_t i = 0; i < KINF_N_PRIORITIES; i++)
        n_waiting += keys->n_waiting[i];
    return n_waiting;
}

struct kinf__queue_key *kinf__keys_take(struct kinf__keys *keys, int64_t now_ns)
{
    size_t level = KINF_N_PRIORITIES - 1;
    struct kinf__queue_key *key;

    while (kinf__list_is_empty(&keys->waiting[level]))
        level--;
    key = KINF__LIST_ENTRY(keys->waiting[level].next, struct kinf__queue_key, in_list);
    wait_no_more(keys, key);
    key->state = KINF__KEY_IN_PROCESS;
    key->began_ns = now_ns;
    kinf__list_push_back(&keys->in_process, &key->in_list);
    keys->n_in_process++;
    return key;
}

void kinf__keys_done(struct kinf__keys *keys, struct kinf__queue_key *key)
{
    kinf__list_remove(&key->in_list);
    keys->n_in_process--;
    key->state = KINF__KEY_IDLE;
    if (key->waits_again) {
        key->waits_again = false;
        wait_at(keys, key, key->again_priority);
    }
    drop_if_unused(keys, key);
}

void kinf__keys_forget(struct kinf__keys *keys, struct kinf__queue_key *key)
{
    key->n_requeues = 0;
    drop_if_unused(keys, key);
}

/* --- soundness --- */

static bool check_key(const struct kinf__keys *keys, const struct kinf__queue_key *key)
{
    bool is_listed = !kinf__list_is_empty(&key->in_list);
    bool is_used = key->state != KINF__KEY_IDLE || key->later.is_set || key->n_requeues != 0;

    return is_used && is_listed == (key->state != KINF__KEY_IDLE) &&
           (!key->waits_again || key->state == KINF__KEY_IN_PROCESS) &&
           kinf__keys_find(keys, key->text, kinf__hash(kinf_str_from(key->text))) == key;
}

/* Also that who was taken earlier stands in front. */
static bool check_list(const struct kinf__list *list, enum kinf__key_state state, int priority,
                       size_t n_expected)
{
    int64_t began_ns = INT64_MIN;
    size_t n_keys = 0;

    KINF__LIST_FOR_EACH (node, list) {
        const struct kinf__queue_key *key = KINF__LIST_ENTRY(node, struct kinf__queue_key, in_list);

        if (key->state != state ||
            (state == KINF__KEY_WAITING ? key->priority != priority : key->began_ns < began_ns))
            return false;
        began_ns = key->began_ns;
        n_keys++;
    }
    return n_keys == n_expected;
}

static bool check_lists(const struct kinf__keys *keys)
{
    for (size_t i = 0; i < KINF_N_PRIORITIES; i++) {
        if (!check_list(&keys->waiting[i], KINF__KEY_WAITING, KINF_PRIORITY_LOW + (int)i,
                        keys->n_waiting[i]))
            return false;
    }
    return check_list(&keys->in_process, KINF__KEY_IN_PROCESS, 0, keys->n_in_process);
}

bool kinf__keys_check(const struct kinf__keys *keys)
{
    size_t n_keys = 0, n_later = 0, n_idle = 0;

    for (size_t i = 0; i < keys->by_text.n_buckets; i++) {
        for (const struct kinf__hmap_node *node = keys->by_text.buckets[i]; node != NULL;
             node = node->next) {
            const struct kinf__queue_key *key =
                KINF__CONTAINER_OF(node, struct kinf__queue_key, node);

            if (!check_key(keys, key))
                return false;
            n_keys++;
            n_later += key->later.is_set;
            n_idle += key->state == KINF__KEY_IDLE;
        }
    }
    return check_lists(keys) && n_keys == keys->by_text.n_nodes && n_later == keys->n_later &&
           n_keys == n_idle + kinf__keys_n_waiting(keys) + keys->n_in_process;
}
