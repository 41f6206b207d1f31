/*
 * The client's table of discovery and whose turn it is. Neighbours: discovery.c has the table, http.c
 * asks, serve/catalog.c reads all of it.
 */
#include "rest/discovery_cache.h"

#include "base/clock.h"
#include "base/misuse.h"
#include "rest/client.h"
#include "rest/http.h"

#define ANSWER_MAX_BYTES (16u << 20)

void kinf__discovery_cache_init(struct kinf__discovery_cache *cache)
{
    *cache = (struct kinf__discovery_cache){ .table = KINF__DISCOVERY_INIT };
    kinf__mutex_init(&cache->lock, KINF__RANK_DISCOVERY);
    kinf__cond_init(&cache->changed);
}

void kinf__discovery_cache_release(struct kinf__discovery_cache *cache)
{
    kinf__discovery_release(&cache->table);
    kinf__cond_release(&cache->changed);
    kinf__mutex_release(&cache->lock);
}

/* Who has the turn is interrupted with all others, so nobody waits for longer than a request. */
static void take_turn(struct kinf__discovery_cache *cache)
{
    kinf__mutex_lock(&cache->lock);
    while (cache->is_taken)
        (void)kinf__cond_wait_until(&cache->changed, &cache->lock, KINF__NEVER_MS);
    cache->is_taken = true;
    kinf__mutex_unlock(&cache->lock);
}

static void give_turn(struct kinf__discovery_cache *cache)
{
    kinf__mutex_lock(&cache->lock);
    cache->is_taken = false;
    kinf__cond_broadcast(&cache->changed);
    kinf__mutex_unlock(&cache->lock);
}

int kinf__discovery_ask(void *ctx, const char *target, const char *accept,
                        struct kinf__buffer *answer, struct kinf_error *err)
{
    struct kinf__http_body body = { answer, ANSWER_MAX_BYTES, 0 };
    const struct kinf__http_request request = { .target = target,
                                                .accept = accept,
                                                .total_timeout_ms =
                                                    kinf__http_request_timeout_ms(ctx),
                                                .on_body = kinf__http_body_keep,
                                                .ctx = &body };

    int failed = kinf__http_perform(ctx, &request, err);

    return failed < 0 ? failed : kinf__http_check_json(ctx, answer->bytes, answer->len, err);
}

/* --- turns --- */

int kinf__discovery_open(struct kinf_client *client, struct kinf__discovery_reader *ret_reader,
                         struct kinf_error *err)
{
    struct kinf__discovery_cache *cache = &client->discovery;
    struct kinf__http *http = NULL;
    int failed = kinf__http_new(client, &client->interrupted, &http, err);

    if (failed < 0)
        return failed;
    take_turn(cache);
    if (!cache->table.has_core && !cache->table.has_groups)
        cache->begun_ms = kinf__clock_now_ms();
    *ret_reader =
        (struct kinf__discovery_reader){ cache, { kinf__discovery_ask, http, client->host } };
    return 0;
}

void kinf__discovery_close(struct kinf__discovery_reader *reader)
{
    kinf__http_free(reader->source.ctx);
    give_turn(reader->cache);
}

bool kinf__discovery_refresh(struct kinf__discovery_reader *reader)
{
    struct kinf__discovery_cache *cache = reader->cache;
    int64_t now_ms = kinf__clock_now_ms();

    if (now_ms - cache->begun_ms < KINF__DISCOVERY_INTERVAL_MS)
        return false;
    kinf__discovery_release(&cache->table);
    cache->begun_ms = now_ms;
    return true;
}

/* --- finding --- */

/* A name that is unknown may be new, what is away may be back, and what could not be watched may be
 * able to. */
static int find(struct kinf__discovery_reader *reader, const char *resource,
                const struct kinf_type **ret_type, struct kinf_error *err)
{
    struct kinf__discovery *table = &reader->cache->table;
    int failed = kinf__discovery_find(table, &reader->source, resource, ret_type, err);

    if ((failed == KINF_ERR_NOT_FOUND || failed == KINF_ERR_SERVER ||
         failed == KINF_ERR_UNSUPPORTED) &&
        kinf__discovery_refresh(reader))
        failed = kinf__discovery_find(table, &reader->source, resource, ret_type, err);
    return failed;
}

static int find_type(struct kinf_client *client, const char *resource, bool is_anew,
                     const struct kinf_type **ret_type, struct kinf_error *err)
{
    struct kinf_error told = KINF_ERROR_INIT;
    struct kinf__discovery_reader reader;
    int failed;

    kinf__client_hold(client);
    failed = kinf__discovery_open(client, &reader, &told);
    if (failed == 0) {
        if (is_anew)
            (void)kinf__discovery_refresh(&reader);
        failed = find(&reader, resource, ret_type, &told);
        kinf__discovery_close(&reader);
    }
    kinf__client_let_go(client);
    if (failed < 0 && err != NULL)
        *err = told;
    return failed;
}

int kinf_client_find_type(struct kinf_client *client, const char *resource,
                          const struct kinf_type **ret_type, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, client, resource, ret_type);
    return find_type(client, resource, false, ret_type, err);
}

int kinf__discovery_find_anew(struct kinf_client *client, const char *resource,
                              const struct kinf_type **ret_type, struct kinf_error *err)
{
    return find_type(client, resource, true, ret_type, err);
}
