/*
 * The cache and whose turn it is. Neighbours: documents.c holds what was read, discovery.c and
 * serve/catalog.c read.
 */
#include "rest/discovery_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "rest/client.h"
#include "rest/discovery.h"
#include "rest/http.h"

struct kinf__discovery_reader {
    struct kinf__discovery_cache *cache;
    struct kinf__http *http;
};

void kinf__discovery_cache_init(struct kinf__discovery_cache *cache)
{
    *cache = (struct kinf__discovery_cache){ .documents = KINF__DOCUMENTS_INIT };
    kinf__mutex_init(&cache->lock, KINF__RANK_DISCOVERY);
    kinf__cond_init(&cache->changed);
}

void kinf__discovery_cache_release(struct kinf__discovery_cache *cache)
{
    kinf__documents_release(&cache->documents);
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

/* --- asking --- */

static int ask_for(struct kinf__discovery_reader *reader, const char *target,
                   struct kinf_error *err)
{
    KINF__AUTO_BUFFER answer = KINF__BUFFER_INIT;
    int failed = kinf__discovery_ask(reader->http, target, NULL, &answer, err);

    if (failed == 0 &&
        kinf__documents_add(&reader->cache->documents, target, kinf__buffer_str(&answer)) < 0)
        failed = kinf__error_no_memory(err);
    return failed;
}

/* Asks for all at once. A server that does not know that says 404 to /api or gives a short answer
 * of the legacy form. */
static int ask_for_all(struct kinf__discovery_reader *reader, const char *root,
                       enum kinf__discovery_form *form, struct kinf_error *err)
{
    KINF__AUTO_BUFFER answer = KINF__BUFFER_INIT;
    struct kinf__documents *documents = &reader->cache->documents;
    struct kinf_error refusal = KINF_ERROR_INIT;
    int r = kinf__discovery_ask(reader->http, root, KINF__ACCEPT_DISCOVERY, &answer, &refusal);

    if (r == 0)
        r = kinf__documents_add_aggregated(documents, kinf__buffer_str(&answer), &refusal);
    if (r == 0 && kinf__documents_add(documents, root, kinf__buffer_str(&answer)) < 0)
        r = kinf__error_no_memory(&refusal);
    if (r == KINF_ERR_NOT_FOUND)
        r = 0;
    if (r < 0) {
        if (err != NULL)
            *err = refusal;
        return r;
    }
    *form = r > 0 ? KINF__DISCOVERY_AGGREGATED : KINF__DISCOVERY_LEGACY;
    return 0;
}

/* --- reading --- */

int kinf__discovery_open(struct kinf_client *client, struct kinf__discovery_reader **ret_reader,
                         struct kinf_error *err)
{
    struct kinf__discovery_reader *reader = calloc(1, sizeof *reader);
    int failed;

    if (reader == NULL)
        return kinf__error_no_memory(err);
    reader->cache = &client->discovery;
    take_turn(reader->cache);
    failed = kinf__http_new(client, &client->interrupted, &reader->http, err);
    if (failed < 0) {
        kinf__discovery_close(reader);
        return failed;
    }
    *ret_reader = reader;
    return 0;
}

void kinf__discovery_close(struct kinf__discovery_reader *reader)
{
    if (reader == NULL)
        return;
    kinf__http_free(reader->http);
    give_turn(reader->cache);
    free(reader);
}

bool kinf__discovery_refresh(struct kinf__discovery_reader *reader)
{
    struct kinf__discovery_cache *cache = reader->cache;

    if (kinf__clock_now_ms() - cache->begun_ms < KINF__DISCOVERY_INTERVAL_MS)
        return false;
    kinf__documents_release(&cache->documents);
    cache->core = cache->groups = KINF__DISCOVERY_UNKNOWN;
    return true;
}

static int find_or_ask(struct kinf__discovery_reader *reader, const char *target,
                       const struct kinf__document **ret_found, struct kinf_error *err)
{
    struct kinf__discovery_cache *cache = reader->cache;
    bool is_core = strncmp(target, "/apis", 5) != 0;
    enum kinf__discovery_form *form = is_core ? &cache->core : &cache->groups;
    int failed = 0;

    if (cache->core == KINF__DISCOVERY_UNKNOWN && cache->groups == KINF__DISCOVERY_UNKNOWN)
        cache->begun_ms = kinf__clock_now_ms();
    if (*form == KINF__DISCOVERY_UNKNOWN)
        failed = ask_for_all(reader, is_core ? "/api" : "/apis", form, err);
    if (failed == 0 && *form == KINF__DISCOVERY_LEGACY &&
        kinf__documents_find(&cache->documents, target) == NULL)
        failed = ask_for(reader, target, err);
    if (failed == 0)
        *ret_found = kinf__documents_find(&cache->documents, target);
    return failed;
}

int kinf__discovery_read(struct kinf__discovery_reader *reader, const char *target,
                         struct kinf_str *ret_text, struct kinf_error *err)
{
    const struct kinf__document *found = NULL;
    int failed = find_or_ask(reader, target, &found, err);

    if (failed < 0)
        return failed;
    if (found == NULL)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND, "the server has no %s", target);
    if (found->text == NULL)
        return kinf__error_set(err, KINF_ERR_SERVER, "what answers %s is away", target);
    *ret_text = kinf_str_from(found->text);
    return 0;
}
