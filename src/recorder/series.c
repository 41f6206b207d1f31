/*
 * Counting the same. Neighbours: event.c says what is the same.
 */
#include "recorder/series.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

void kinf__series_set_init(struct kinf__series_set *set)
{
    *set = (struct kinf__series_set){ .map = KINF__HMAP_INIT };
    kinf__list_init(&set->order);
    kinf__list_init(&set->retries);
}

static struct kinf__series *first(const struct kinf__series_set *set)
{
    return KINF__LIST_ENTRY(set->order.next, struct kinf__series, order);
}

static void free_series(struct kinf__series *series)
{
    kinf__event_free(series->event);
    free(series->key);
    free(series);
}

void kinf__series_drop(struct kinf__series_set *set, struct kinf__series *series)
{
    kinf__hmap_remove(&set->map, &series->node);
    kinf__list_remove(&series->order);
    kinf__list_remove(&series->retry);
    free_series(series);
}

void kinf__series_set_release(struct kinf__series_set *set)
{
    while (!kinf__list_is_empty(&set->order))
        kinf__series_drop(set, first(set));
    kinf__hmap_release(&set->map);
}

static struct kinf__series *find(const struct kinf__series_set *set, struct kinf_str key)
{
    struct kinf__hmap_node *node = kinf__hmap_first_with_hash(&set->map, kinf__hash(key));

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct kinf__series *series = KINF__CONTAINER_OF(node, struct kinf__series, node);

        if (kinf_str_equal(kinf_str_from(series->key), key))
            return series;
    }
    return NULL;
}

static struct kinf__series *begin_series(struct kinf__series_set *set, struct kinf__buffer *key,
                                         uint64_t number, const struct kinf__event *event)
{
    struct kinf__series *series;

    if (set->map.n_nodes >= KINF__SERIES_MAX) {
        set->n_lost += first(set)->seen.count - first(set)->n_told;
        kinf__series_drop(set, first(set));
    }
    series = calloc(1, sizeof *series);
    if (series == NULL ||
        kinf__hmap_insert(&set->map, &series->node, kinf__hash(kinf__buffer_str(key))) < 0) {
        free(series);
        return NULL;
    }
    series->key = KINF__TAKE(key->bytes);
    kinf__event_name(event, number, series->name);
    kinf__list_init(&series->order);
    kinf__list_init(&series->retry);
    return series;
}

static void count(struct kinf__series_set *set, struct kinf__series *series,
                  struct kinf__event *take_event, int64_t now_ms)
{
    series->seen.count++;
    series->seen.last_wall_ms = take_event->at_wall_ms;
    series->last_ms = now_ms;
    kinf__list_remove(&series->order);
    kinf__list_push_back(&set->order, &series->order);
    if (series->event == NULL)
        series->event = take_event;
    else
        kinf__event_free(take_event);
}

static bool is_over(const struct kinf__series *series, int64_t now_ms)
{
    return now_ms - series->last_ms >= KINF__SERIES_FINISH_MS;
}

/* The server knows all of it, and nothing is added any more. */
static bool is_finished(const struct kinf__series *series, int64_t now_ms)
{
    return series->n_told == series->seen.count && is_over(series, now_ms);
}

struct kinf__series *kinf__series_add(struct kinf__series_set *set, struct kinf__event *take_event,
                                      uint64_t number, int64_t now_ms)
{
    KINF__AUTO_BUFFER key = KINF__BUFFER_INIT;
    struct kinf__series *series = NULL;

    if (kinf__event_append_key(take_event, &key) == 0 && kinf__buffer_cstr(&key) != NULL) {
        series = find(set, kinf__buffer_str(&key));
        if (series != NULL && is_finished(series, now_ms)) {
            kinf__series_drop(set, series);
            series = NULL;
        }
        if (series == NULL)
            series = begin_series(set, &key, number, take_event);
    }
    if (series != NULL) {
        count(set, series, take_event, now_ms);
    } else {
        kinf__event_free(take_event);
        set->n_lost++;
    }
    return series;
}

static bool is_waiting(const struct kinf__series *series)
{
    return !kinf__list_is_empty(&series->retry);
}

bool kinf__series_is_urgent(const struct kinf__series *series)
{
    return series->n_told < 2 && series->n_told < series->seen.count && !is_waiting(series);
}

void kinf__series_told(struct kinf__series *series, int64_t now_ms)
{
    series->n_told = series->seen.count;
    series->told_ms = now_ms;
    series->n_tries = 0;
    series->has_hung = false;
    kinf__list_remove(&series->retry);
}

static bool is_due(const struct kinf__series *series, int64_t now_ms)
{
    return !is_waiting(series) &&
           (is_over(series, now_ms) || now_ms - series->told_ms >= KINF__SERIES_REFRESH_MS);
}

struct kinf__series *kinf__series_due(struct kinf__series_set *set, int64_t now_ms, bool is_last)
{
    KINF__LIST_FOR_EACH_SAFE (node, &set->order) {
        struct kinf__series *series = KINF__LIST_ENTRY(node, struct kinf__series, order);

        if (is_finished(series, now_ms))
            kinf__series_drop(set, series);
        else if (series->n_told != series->seen.count && (is_last || is_due(series, now_ms)))
            return series;
    }
    return NULL;
}

/* Most are behind all others: from the end their place is near. */
static struct kinf__list *place_of_retry(struct kinf__series_set *set, int64_t retry_ms)
{
    KINF__LIST_FOR_EACH_BACK (node, &set->retries) {
        if (KINF__LIST_ENTRY(node, struct kinf__series, retry)->retry_ms <= retry_ms)
            return node->next;
    }
    return set->retries.next;
}

void kinf__series_put_off(struct kinf__series_set *set, struct kinf__series *series,
                          int64_t retry_ms)
{
    series->retry_ms = retry_ms;
    kinf__list_remove(&series->retry);
    kinf__list_push_back(place_of_retry(set, retry_ms), &series->retry);
}

void kinf__series_try_later(struct kinf__series_set *set, struct kinf__series *series,
                            int64_t retry_ms, bool has_hung)
{
    series->n_tries++;
    series->has_hung = has_hung;
    kinf__series_put_off(set, series, retry_ms);
}

int64_t kinf__series_hung_until_ms(const struct kinf__series_set *set,
                                   const struct kinf__series *series)
{
    struct kinf_str name_space = kinf__event_namespace(series->event);

    KINF__LIST_FOR_EACH (node, &set->retries) {
        const struct kinf__series *other = KINF__LIST_ENTRY(node, struct kinf__series, retry);

        if (other->has_hung && other != series &&
            kinf_str_equal(kinf__event_namespace(other->event), name_space))
            return other->retry_ms;
    }
    return 0;
}

int64_t kinf__series_retry_ms(const struct kinf__series_set *set)
{
    return kinf__list_is_empty(&set->retries)
               ? KINF__NEVER_MS
               : KINF__LIST_ENTRY(set->retries.next, struct kinf__series, retry)->retry_ms;
}

struct kinf__series *kinf__series_retry(const struct kinf__series_set *set, int64_t now_ms)
{
    return kinf__series_retry_ms(set) <= now_ms
               ? KINF__LIST_ENTRY(set->retries.next, struct kinf__series, retry)
               : NULL;
}
