/*
 * Every change into a JetStream stream, and the state into a key-value bucket: a plugin of
 * kinformerd.
 *
 * Each object has a key (key.h). A change is a message of the stream with the subject PREFIX.KEY: a
 * line as exec handlers are sent (src/handlers/line.h); and its state is the value of KEY in the
 * bucket. Stream first: what is sent to the bucket waits until the stream has its part.
 *
 * Nothing is told twice, and nothing left out, whoever ends or fails. At RESET a new connection
 * claims stream and bucket, so that nobody else's messages are accepted any more (link.h), and
 * reads from them what was told of each object last (known.h). ADDED of what the stream has in this
 * version is not told again, of another version it is MODIFIED, of another uid DELETED and ADDED.
 * What the stream has and was not told until SYNCED is DELETED. And what the bucket lacks of that, or has
 * with other fields, since the daemon keeps others now, it gets.
 *
 * A daemon that begins with a state of an earlier run (stateDir) may have an older one than the stream:
 * what is older than what was told waits until the daemon has caught up, which it has at SYNCED. If
 * something is older even then, so is the API server, and that is told from there on.
 *
 * It uses libnats and cJSON, and nothing of this library. libnats is never unloaded, since a few
 * threads of its own stay when nobody uses it, and another plugin, or this one's successor, may use
 * the same.
 *
 * Threads: the host's.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <nats/nats.h>

#include <kinformer/plugin.h>

#include "config.h"
#include "fail.h"
#include "key.h"
#include "known.h"
#include "link.h"

/* What may wait for the stream; more is a commit in between. */
#define MAX_WAITING       KINF_PLUGIN_BATCH
#define MAX_WAITING_BYTES (8 << 20)

#define NO_MEMORY(err) fail(err, KINF_ERR_NO_MEMORY, "no memory")

struct nats {
    const struct kinf_host *host;
    struct nats_config config;
    int server; /* of them, the one that is asked next */
    bool is_begun;
    bool takes_older; /* than what was told */
    struct link link;
    struct known known;
    /* What the bucket is to get once the stream has it. */
    natsMsg *waiting[MAX_WAITING];
    size_t n_waiting;
    size_t waiting_bytes;
};

/* In the place of an object that the server takes no message for. */
#define TOO_LARGE "{\"tooLarge\":true}"

/* One change of one object, as it is told. */
struct event {
    const char *type; /* "ADDED" */
    const char *resource;
    const char *key;     /* namespace/name */
    const char *encoded; /* see key.h */
    const char *version; /* see known.h */
    const char *json;    /* NULL: it is not known */
    bool final_state_unknown;
};

/* --- versions --- */

static bool is_same_object(const char *version, const char *other)
{
    size_t len = (size_t)(known_resource_version(version) - version);

    return len == (size_t)(known_resource_version(other) - other) &&
           memcmp(version, other, len) == 0;
}

static char *version_of(const struct nats *nats, const struct kinf_object *object)
{
    const struct kinf_host *host = nats->host;
    char uid[1024] = "", rv[256] = "", *version;

    if (host->get_string(host, object, "metadata.uid", uid, sizeof uid) <= 0) {
        snprintf(uid, sizeof uid, "%s", host->key(host, object)); /* of some extension servers */
    }
    (void)host->get_string(host, object, "metadata.resourceVersion", rv, sizeof rv);
    return asprintf(&version, "%s/%s", uid, rv) >= 0 ? version : NULL;
}

/* A hash of a value of the bucket, eight bytes at a time. It is compared with what an earlier daemon has
 * written, so another function means that all is written once more. */
static uint64_t content_of(const char *json)
{
    uint64_t hash = strlen(json), word;
    size_t len = hash, n;

    for (; len != 0; len -= n, json += n) {
        n = len < sizeof word ? len : sizeof word;
        word = 0;
        memcpy(&word, json, n);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash != 0 ? hash : 1;
}

/* --- sending --- */

static void drop_waiting(struct nats *nats)
{
    while (nats->n_waiting > 0) {
        natsMsg_Destroy(nats->waiting[--nats->n_waiting]);
    }
    nats->waiting_bytes = 0;
}

/* All that was told so far is in the stream and in the bucket. */
static int commit(struct nats *nats, struct kinf_error *err)
{
    int rc = link_wait(&nats->link, err);

    for (size_t i = 0; i < nats->n_waiting; i++) {
        if (rc == 0) {
            rc =
                link_send(&nats->link, &nats->link.bucket, nats->waiting[i], nats->link.inbox, err);
            nats->waiting[i] = NULL;
        }
    }
    drop_waiting(nats);
    return rc != 0 ? rc : link_wait(&nats->link, err);
}

static natsStatus describe(natsMsg *message, const char *version, const char *json)
{
    char content[17];
    natsStatus s = natsMsgHeader_Set(message, LINK_VERSION_HEADER, version);

    snprintf(content, sizeof content, "%016" PRIx64, content_of(json));
    return s != NATS_OK ? s : natsMsgHeader_Set(message, LINK_CONTENT_HEADER, content);
}

/* `json` NULL: it is to be deleted. */
static int store(struct nats *nats, const char *encoded, const char *version, const char *json,
                 struct kinf_error *err)
{
    size_t len = json != NULL ? strlen(json) : 0;
    natsMsg *message = link_message(&nats->link, &nats->link.bucket, encoded, json, len);
    natsStatus s = NATS_NO_MEMORY;

    if (message != NULL) {
        s = json != NULL ? describe(message, version, json)
                         : natsMsgHeader_Set(message, LINK_KV_HEADER, LINK_KV_DELETE);
    }
    if (s != NATS_OK) {
        natsMsg_Destroy(message);
        return NO_MEMORY(err);
    }
    nats->waiting[nats->n_waiting++] = message;
    nats->waiting_bytes += len;
    nats->host->count(nats->host, "stored_total", 1);
    if (nats->n_waiting == MAX_WAITING || nats->waiting_bytes > MAX_WAITING_BYTES) {
        return commit(nats, err);
    }
    return 0;
}

/* Free it. NULL: no memory. */
static char *line_of(const struct event *event)
{
    cJSON *line = cJSON_CreateObject();
    char *text = NULL;
    bool is_whole =
        cJSON_AddStringToObject(line, "type", event->type) != NULL &&
        cJSON_AddStringToObject(line, "resource", event->resource) != NULL &&
        cJSON_AddStringToObject(line, "key", event->key) != NULL &&
        cJSON_AddStringToObject(line, "resourceVersion", known_resource_version(event->version)) !=
            NULL &&
        (!event->final_state_unknown || cJSON_AddTrueToObject(line, "finalStateUnknown") != NULL) &&
        (event->json == NULL || cJSON_AddRawToObject(line, "object", event->json) != NULL);

    if (is_whole) {
        text = cJSON_PrintUnformatted(line);
    }
    cJSON_Delete(line);
    return text;
}

static natsMsg *message_of(struct nats *nats, const struct event *event)
{
    char *line = line_of(event);
    natsMsg *message = line == NULL ? NULL
                                    : link_message(&nats->link, &nats->link.events, event->encoded,
                                                   line, strlen(line));

    free(line);
    if (message != NULL &&
        (natsMsgHeader_Set(message, LINK_VERSION_HEADER, event->version) != NATS_OK ||
         natsMsgHeader_Set(message, LINK_TYPE_HEADER, event->type) != NATS_OK)) {
        natsMsg_Destroy(message);
        return NULL;
    }
    return message;
}

/* Into the stream, and then into the bucket. */
static int tell(struct nats *nats, const struct event *event, struct kinf_error *err)
{
    bool is_deleted = strcmp(event->type, LINK_TYPE_DELETED) == 0;
    natsMsg *message = message_of(nats, event);
    int rc;

    if (message == NULL) {
        return NO_MEMORY(err);
    }
    nats->host->count(nats->host, "published_total", 1);
    rc = link_send(&nats->link, &nats->link.events, message, event->version, err);
    return rc != 0
               ? rc
               : store(nats, event->encoded, event->version, is_deleted ? NULL : event->json, err);
}

/* --- beginning --- */

static int note_told(const struct link_last *last, void *ctx)
{
    return last->version[0] != '\0' /* else it is not ours */
               ? known_put_stream(ctx, last->key, last->version, last->is_gone)
               : 0;
}

static int note_bucket(const struct link_last *last, void *ctx)
{
    return known_put_bucket(ctx, last->key, last->version, strtoull(last->content, NULL, 16),
                            last->is_gone);
}

static void forget(struct nats *nats)
{
    drop_waiting(nats);
    link_close(&nats->link);
    known_release(&nats->known);
    nats->is_begun = false;
}

static int begin_at(struct nats *nats, const char *server, struct kinf_error *err)
{
    struct link *link = &nats->link;
    int rc;

    forget(nats);
    rc = link_open(link, &nats->config, server, err);
    rc = rc != 0 ? rc : link_read(link, &link->events, note_told, &nats->known, err);
    rc = rc != 0 ? rc : link_read(link, &link->bucket, note_bucket, &nats->known, err);
    nats->is_begun = rc == 0;
    return rc;
}

static int begin(struct nats *nats, struct kinf_error *err)
{
    int n_servers = cJSON_GetArraySize(nats->config.servers);
    int rc = KINF_ERR_NETWORK;

    for (int i = 0; i < n_servers && rc != 0 && rc != KINF_ERR_STOPPED; i++) {
        const cJSON *server = cJSON_GetArrayItem(nats->config.servers, nats->server);

        rc = begin_at(nats, server->valuestring, err);
        nats->server = rc == 0 ? nats->server : (nats->server + 1) % n_servers;
    }
    return rc;
}

/* --- what is told --- */

/* What is known and was not told: it went unseen. */
static int tell_gone(struct nats *nats, const struct known_object *object, struct kinf_error *err)
{
    struct event event = { .type = "DELETED",
                           .encoded = object->key,
                           .version = known_told(object),
                           .final_state_unknown = true };
    char *resource, *key, *json = NULL;
    int rc = 0;

    if (event.version == NULL) {
        return object->bucket != NULL ? store(nats, object->key, NULL, NULL, err) : 0;
    }
    if (nats_key_decode(object->key, &resource, &key) != 0) {
        return NO_MEMORY(err);
    }
    if (object->bucket != NULL && strcmp(object->bucket, event.version) == 0) {
        rc = link_read_one(&nats->link, &nats->link.bucket, object->key, &json, err);
    }
    event.resource = resource;
    event.key = key;
    event.json = json;
    rc = rc != 0 ? rc : tell(nats, &event, err);
    free(resource);
    free(key);
    free(json);
    return rc;
}

static bool is_in_bucket(const struct known_object *known, const struct event *event)
{
    return known->bucket != NULL && strcmp(known->bucket, event->version) == 0 &&
           known->content == content_of(event->json);
}

/* What was told last is that, by the stream. */
static int tell_added(struct nats *nats, struct event *event, const struct known_object *known,
                      struct kinf_error *err)
{
    const char *told = known != NULL ? known_told(known) : NULL;
    int rc = 0;

    if (told != NULL && strcmp(told, event->version) == 0) {
        return is_in_bucket(known, event)
                   ? 0
                   : store(nats, event->encoded, event->version, event->json, err);
    }
    if (told != NULL && is_same_object(told, event->version)) {
        event->type = "MODIFIED";
    } else if (told != NULL) {
        rc = tell_gone(nats, known, err);
    }
    return rc != 0 ? rc : tell(nats, event, err);
}

/* A deletion that is told again (P4), of what the stream does not know, or knows a newer one of. */
static bool is_of_the_past(const struct kinf_change *change, const struct event *event,
                           const struct known_object *known)
{
    const char *told = known != NULL ? known_told(known) : NULL;

    return change->type == KINF_CHANGE_DELETED && change->old == NULL &&
           (known == NULL || (told != NULL && !is_same_object(told, event->version)));
}

/* Whether the daemon is behind what was told, so that nothing is told of it. What it has been told is
 * gone it has no state of: what became of that is known at SYNCED. */
static bool hold(const struct nats *nats, const struct kinf_change *change,
                 const struct event *event, struct known_object *known)
{
    bool was_held = known->is_held;

    known->is_held = change->type != KINF_CHANGE_DELETED && !nats->takes_older &&
                     known_is_ahead(known, event->version);
    return known->is_held || (was_held && change->type == KINF_CHANGE_DELETED);
}

static int tell_modified(struct nats *nats, const struct kinf_change *change,
                         const struct event *event, struct kinf_error *err)
{
    char *old = version_of(nats, change->old);
    int rc;

    if (old == NULL) {
        return NO_MEMORY(err);
    }
    rc = strcmp(old, event->version) != 0 ? tell(nats, event, err) : 0; /* a resync */
    free(old);
    return rc;
}

static int tell_change(struct nats *nats, const struct kinf_change *change, struct event *event,
                       struct kinf_error *err)
{
    struct known_object *known = known_find(&nats->known, event->encoded);
    int rc;

    if (is_of_the_past(change, event, known) ||
        (known != NULL && hold(nats, change, event, known))) {
        return 0;
    }
    if (change->type == KINF_CHANGE_DELETED) {
        event->type = LINK_TYPE_DELETED;
        event->final_state_unknown = change->final_state_unknown;
        rc = known != NULL && known_told(known) == NULL ? tell_gone(nats, known, err)
                                                        : tell(nats, event, err);
    } else if (change->type == KINF_CHANGE_MODIFIED && known == NULL) {
        event->type = "MODIFIED";
        rc = tell_modified(nats, change, event, err);
    } else {
        event->type = "ADDED";
        rc = tell_added(nats, event, known, err); /* also of what was held before */
    }
    if (known != NULL && rc == 0) {
        known_remove(&nats->known, known);
    }
    return rc;
}

static void leave_out(const struct nats *nats, struct event *event)
{
    char line[512];

    snprintf(line, sizeof line, "too large for a message of the server: %s %s", event->resource,
             event->key);
    nats->host->log(nats->host, KINF_LOG_WARN, line);
    nats->host->count(nats->host, "too_large_total", 1);
    event->json = TOO_LARGE;
}

static int on_object(struct nats *nats, const struct kinf_change *change, struct kinf_error *err)
{
    const struct kinf_host *host = nats->host;
    const char *key = host->key(host, change->object);
    char *encoded = nats_key_encode(change->resource, key);
    char *version = version_of(nats, change->object);
    size_t len = 0;
    char *json = host->json(host, change->object, &len);
    struct event event = { .resource = change->resource,
                           .key = key,
                           .encoded = encoded,
                           .version = version,
                           .json = json };
    int rc;

    if (json != NULL && len > link_max_payload(&nats->link)) {
        leave_out(nats, &event);
    }
    rc = encoded != NULL && version != NULL && json != NULL ? tell_change(nats, change, &event, err)
                                                            : NO_MEMORY(err);
    free(encoded);
    free(version);
    if (json != NULL) {
        host->free_text(host, json);
    }
    return rc;
}

static int on_synced(struct nats *nats, const char *resource, struct kinf_error *err)
{
    char *encoded = nats_key_encode(resource, "");
    struct known_object *known;
    int rc = encoded != NULL ? 0 : NO_MEMORY(err);

    if (encoded != NULL) {
        *strchr(encoded, '.') = '\0';
    }
    while (rc == 0 && (known = known_any_of(&nats->known, encoded)) != NULL) {
        if (known->is_held) {
            nats->takes_older = true;
            rc = fail(err, KINF_ERR_STATE,
                      "%s is older in the cluster than what was told of it: it is told anew",
                      known->key);
        } else {
            rc = tell_gone(nats, known, err);
        }
        known_remove(&nats->known, known);
    }
    free(encoded);
    return rc;
}

/* --- the table --- */

static void close_plugin(void *state)
{
    struct nats *nats = state;

    forget(nats);
    nats_config_release(&nats->config);
    nats_ReleaseThreadMemory();
    free(nats);
}

/* See the head of this file. */
static int keep_libnats(struct kinf_error *err)
{
    Dl_info libnats;

    if (dladdr((void *)&nats_GetVersion, &libnats) == 0 ||
        dlopen(libnats.dli_fname, RTLD_NOW | RTLD_NODELETE) == NULL) {
        return fail(err, KINF_ERR_SYSTEM, "libnats: %s", dlerror());
    }
    return 0;
}

static int open_plugin(const struct kinf_host *host, const char *config, void **ret_state,
                       struct kinf_error *err)
{
    struct nats *nats = calloc(1, sizeof *nats);
    int rc;

    if (nats == NULL) {
        return NO_MEMORY(err);
    }
    nats->host = nats->link.host = host;
    rc = nats_config_parse(config, &nats->config, err);
    if (rc != 0 || (rc = keep_libnats(err)) != 0) {
        nats_config_release(&nats->config);
        free(nats);
        return rc;
    }
    *ret_state = nats;
    return 0;
}

static int on_change(void *state, const struct kinf_change *change, struct kinf_error *err)
{
    struct nats *nats = state;

    if (change->type == KINF_CHANGE_RESET) {
        return begin(nats, err);
    }
    if (!nats->is_begun) {
        return fail(err, KINF_ERR_STATE, "there is no connection");
    }
    return change->type == KINF_CHANGE_SYNCED ? on_synced(nats, change->resource, err)
                                              : on_object(nats, change, err);
}

static int flush(void *state, struct kinf_error *err)
{
    struct nats *nats = state;

    return nats->is_begun ? commit(nats, err) : fail(err, KINF_ERR_STATE, "there is no connection");
}

static const struct kinf_plugin TABLE = {
    .abi = KINF_PLUGIN_ABI,
    .size = sizeof(struct kinf_plugin),
    .name = "nats",
    .open = open_plugin,
    .on_change = on_change,
    .flush = flush,
    .close = close_plugin,
};

KINF_PLUGIN(TABLE)
