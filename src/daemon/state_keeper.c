/*
 * Writing and loading the stores' files. Neighbours: state_names.c says which files,
 * state/ has them, watch.c the informers.
 * Invariant: an entry is written by one thread at a time, the keeper's or the one that takes it away,
 * which holds a snapshot and no lock meanwhile; it goes only when it is not being written.
 */
#include "daemon/state_keeper.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/request.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "daemon/state_names.h"
#include "informer/saved.h"
#include "object/shard.h"
#include "rest/client.h"
#include "state/state_file.h"

#define CLUSTER_SIZE 128

struct kinf__state_keeper {
    /* constant after new */
    struct kinf_client *client;
    struct kinf__state_folder *folder;
    int64_t interval_ms; /* 0: only at the end */
    bool serves_saved;
    char *server;
    /* the main thread's */
    pthread_t thread;
    bool has_thread;

    struct kinf__mutex lock;
    struct kinf__cond changed;
    /* guarded by lock */
    struct kinf__list entries;
    char cluster[CLUSTER_SIZE]; /* "": not known */
    bool is_cluster_hidden;     /* the server has said that it is not to be known */
    uint64_t round;
    bool is_stopping;
    bool has_ended;
};

/* What metrics say of a file. */
struct stats {
    int64_t wall_ms; /* of its state; 0: there is none */
    uint64_t n_bytes;
    int64_t write_ms; /* how long the last one took */
    uint64_t n_writes;
    uint64_t n_failures;
    uint64_t n_loaded; /* objects, at the start */
};

struct kinf__state_entry {
    /* constant after add */
    struct kinf__state_keeper *keeper;
    struct kinf_informer *informer;
    char *name;
    char *scope;
    struct kinf__stop stop; /* of what is being written or loaded */
    /* guarded by the keeper's lock */
    struct kinf__list node;
    uint64_t round; /* the one that it was written in, or looked at */
    bool is_being_written;
    bool is_given_up;             /* nobody waits for what is to be loaded */
    bool is_file_overdue;         /* it has less than was served of it */
    char rv[KINF__STATE_RV_SIZE]; /* of what is in the file; "": not known */
    struct stats stats;
};

/* --- which cluster --- */

static int take_cluster(struct kinf__state_keeper *keeper, const struct kinf_response *response,
                        struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *name_space = NULL;
    const struct kinf_type *type;
    int failed = kinf_type_intern("", "v1", "Namespace", "namespaces", false, &type, err);

    if (failed == 0)
        failed = kinf_object_new_from_json(type, response->body, response->len, &name_space, err);
    if (failed < 0)
        return failed;
    kinf__mutex_lock(&keeper->lock);
    snprintf(keeper->cluster, sizeof keeper->cluster, "%s", kinf_object_uid(name_space));
    kinf__mutex_unlock(&keeper->lock);
    return 0;
}

static bool is_answer(const struct kinf_error *err)
{
    return err->http_status >= 400 && err->http_status < 500 && err->http_status != 429;
}

int kinf__state_keeper_find_cluster(struct kinf__state_keeper *keeper, struct kinf_error *err)
{
    static const char target[] = "/api/v1/namespaces/kube-system";
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    struct kinf_error why = KINF_ERROR_INIT;
    int failed = kinf_client_request_raw(keeper->client, "GET", target,
                                         (struct kinf_str){ NULL, 0 }, NULL, &response, &why);

    if (failed == 0)
        failed = take_cluster(keeper, &response, &why);
    if (failed == 0)
        return 0;
    if (is_answer(&why) || failed == KINF_ERR_PARSE) {
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO,
                  "the cluster's uid is not known, states are told apart by the server error=%s",
                  KINF__QUOTED(why.message));
        kinf__mutex_lock(&keeper->lock);
        keeper->is_cluster_hidden = true;
        kinf__mutex_unlock(&keeper->lock);
        return 0;
    }
    if (err != NULL)
        *err = why;
    return failed;
}

/* Address and authority, the same in each process. NULL: no memory. */
static char *describe_server(struct kinf_client *client)
{
    struct kinf__credential *credential =
        kinf__credentials_peek(&client->credentials, kinf__moment_now());
    const char *authority =
        credential != NULL && credential->parts.ca_pem != NULL ? credential->parts.ca_pem : "";
    char *text = NULL;

    if (asprintf(&text, "%s authority=%016" PRIx64, kinf_client_server(client),
                 kinf__shard_hash(kinf_str_from(authority))) < 0)
        text = NULL;
    kinf__credential_unref(credential);
    return text;
}

/* --- loading --- */

static struct kinf__state_identity identity_of(const struct kinf__state_entry *entry,
                                               char cluster[CLUSTER_SIZE])
{
    struct kinf__state_keeper *keeper = entry->keeper;

    kinf__mutex_lock(&keeper->lock);
    memcpy(cluster, keeper->cluster, CLUSTER_SIZE);
    kinf__mutex_unlock(&keeper->lock);
    return (struct kinf__state_identity){ .cluster = cluster,
                                          .server = keeper->server,
                                          .type = kinf_informer_type(entry->informer),
                                          .scope = entry->scope };
}

static void note_loaded(struct kinf__state_entry *entry, const struct kinf__state_origin *origin)
{
    kinf__mutex_lock(&entry->keeper->lock);
    memcpy(entry->rv, origin->rv, sizeof entry->rv);
    entry->stats.wall_ms = origin->wall_ms;
    entry->stats.n_loaded = origin->n_objects;
    kinf__mutex_unlock(&entry->keeper->lock);
}

/* An older one has the file, too: a reload has made this one to take its place. */
static bool has_predecessor_locked(const struct kinf__state_keeper *keeper,
                                   const struct kinf__state_entry *entry)
    KINF__REQUIRES(keeper->lock)
{
    for (struct kinf__list *node = keeper->entries.next; node != &entry->node; node = node->next) {
        if (strcmp(KINF__LIST_ENTRY(node, struct kinf__state_entry, node)->name, entry->name) == 0)
            return true;
    }
    return false;
}

/* What is served at once must not be older than what was served before: the predecessor goes first, and
 * leaves a file that has all of that. */
static int await_file(struct kinf__state_entry *entry, struct kinf_error *err)
{
    struct kinf__state_keeper *keeper = entry->keeper;
    int failed = 0;

    if (!keeper->serves_saved)
        return 0;
    kinf__mutex_lock(&keeper->lock);
    while (!entry->is_given_up && has_predecessor_locked(keeper, entry))
        (void)kinf__cond_wait_until(&keeper->changed, &keeper->lock, KINF__NEVER_MS);
    if (entry->is_given_up)
        failed = kinf__error_set(err, KINF_ERR_STOPPED, "it is not wanted any more");
    else if (entry->is_file_overdue)
        failed = kinf__error_set(err, KINF_ERR_CONFLICT, "what was served is newer");
    kinf__mutex_unlock(&keeper->lock);
    return failed;
}

/* A kinf__saved_load_fn, on a reflector's thread. */
static int load(struct kinf__packer *packer, kinf__saved_object_cb *callback, void *callback_ctx,
                struct kinf__saved_origin *ret_origin, void *ctx, struct kinf_error *err)
{
    struct kinf__state_entry *entry = ctx;
    char cluster[CLUSTER_SIZE];
    const struct kinf__state_identity identity = identity_of(entry, cluster);
    struct kinf__state_origin origin;
    struct kinf_error why = KINF_ERROR_INIT;
    int failed = await_file(entry, &why);

    if (failed == 0)
        failed = kinf__state_file_load(entry->keeper->folder, entry->name, &identity, packer,
                                       callback, callback_ctx, &entry->stop, &origin, &why);
    if (failed == 0) {
        note_loaded(entry, &origin);
        memcpy(ret_origin->rv, origin.rv, sizeof ret_origin->rv);
        ret_origin->wall_ms = origin.wall_ms;
        return 0;
    }
    if (failed != KINF_ERR_STOPPED)
        KINF__LOG(KINF__LOG_DAEMON, failed == KINF_ERR_NOT_FOUND ? KINF_LOG_INFO : KINF_LOG_WARN,
                  "state not used, listing file=%s error=%s", entry->name,
                  KINF__QUOTED(why.message));
    if (err != NULL)
        *err = why;
    return failed;
}

/* --- writing --- */

static void note_written_locked(struct kinf__state_keeper *keeper, struct kinf__state_entry *entry,
                                const char *rv, const struct stats *written)
    KINF__REQUIRES(keeper->lock)
{
    (void)keeper;
    snprintf(entry->rv, sizeof entry->rv, "%s", rv);
    entry->stats.wall_ms = written->wall_ms;
    entry->stats.n_bytes = written->n_bytes;
    entry->stats.write_ms = written->write_ms;
    entry->stats.n_writes++;
}

static bool is_stopping(struct kinf__state_keeper *keeper)
{
    bool is_stopping;

    kinf__mutex_lock(&keeper->lock);
    is_stopping = keeper->is_stopping;
    kinf__mutex_unlock(&keeper->lock);
    return is_stopping;
}

static int write_snapshot(const struct kinf__state_entry *entry,
                          const struct kinf_snapshot *snapshot, struct stats *ret_written)
{
    char cluster[CLUSTER_SIZE];
    const struct kinf__state_identity identity = identity_of(entry, cluster);
    int64_t begun_ms = kinf__clock_now_ms();
    struct kinf_error err = KINF_ERROR_INIT;
    int failed;

    ret_written->wall_ms = kinf__clock_wall_ms();
    failed =
        kinf__state_file_write(entry->keeper->folder, entry->name, &identity, snapshot,
                               ret_written->wall_ms, &entry->stop, &ret_written->n_bytes, &err);
    ret_written->write_ms = kinf__clock_now_ms() - begun_ms;
    if (failed == KINF_ERR_STOPPED && !is_stopping(entry->keeper))
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO, "state given up with its resource file=%s",
                  entry->name);
    else if (failed < 0)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN, "state not written file=%s error=%s",
                  entry->name, KINF__QUOTED(err.message));
    else
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO,
                  "state written file=%s objects=%zu rv=%s bytes=%" PRIu64 " ms=%" PRId64,
                  entry->name, kinf_snapshot_count(snapshot),
                  kinf_snapshot_resource_version(snapshot), ret_written->n_bytes,
                  ret_written->write_ms);
    return failed;
}

static void write_locked(struct kinf__state_keeper *keeper, struct kinf__state_entry *entry)
    KINF__REQUIRES(keeper->lock)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf__informer_savable(entry->informer);
    struct stats written = { .n_bytes = 0 };
    int failed;

    if (snapshot == NULL || entry->is_being_written || kinf__stop_is_set(&entry->stop) ||
        strcmp(kinf_snapshot_resource_version(snapshot), entry->rv) == 0)
        return;
    entry->is_being_written = true;
    kinf__mutex_unlock(&keeper->lock);
    failed = write_snapshot(entry, snapshot, &written);
    kinf__mutex_lock(&keeper->lock);
    entry->is_being_written = false;
    if (failed == 0)
        note_written_locked(keeper, entry, kinf_snapshot_resource_version(snapshot), &written);
    else
        entry->stats.n_failures++;
    kinf__cond_broadcast(&keeper->changed);
}

/* NULL: each was written in this round. */
static struct kinf__state_entry *next_locked(struct kinf__state_keeper *keeper)
    KINF__REQUIRES(keeper->lock)
{
    KINF__LIST_FOR_EACH (node, &keeper->entries) {
        struct kinf__state_entry *entry = KINF__LIST_ENTRY(node, struct kinf__state_entry, node);

        if (entry->round != keeper->round)
            return entry;
    }
    return NULL;
}

static void write_each_locked(struct kinf__state_keeper *keeper) KINF__REQUIRES(keeper->lock)
{
    struct kinf__state_entry *entry;

    keeper->round++;
    while ((entry = next_locked(keeper)) != NULL) {
        entry->round = keeper->round;
        write_locked(keeper, entry);
    }
}

/* A server that was away at the start may be there by now. */
static void find_cluster_locked(struct kinf__state_keeper *keeper) KINF__REQUIRES(keeper->lock)
{
    if (keeper->cluster[0] != '\0' || keeper->is_cluster_hidden || keeper->is_stopping)
        return;
    kinf__mutex_unlock(&keeper->lock);
    (void)!kinf__state_keeper_find_cluster(keeper, NULL);
    kinf__mutex_lock(&keeper->lock);
}

static void *run(void *ctx)
{
    struct kinf__state_keeper *keeper = ctx;
    int64_t due_ms = KINF__NEVER_MS;
    bool is_last = false;

    kinf__mutex_lock(&keeper->lock);
    while (!is_last) {
        find_cluster_locked(keeper);
        if (keeper->interval_ms != 0)
            due_ms = kinf__clock_add_ms(kinf__clock_now_ms(), keeper->interval_ms);
        while (!keeper->is_stopping &&
               kinf__cond_wait_until(&keeper->changed, &keeper->lock, due_ms))
            continue;
        /* A stop in the midst of a round is followed by another one. */
        is_last = keeper->is_stopping;
        write_each_locked(keeper);
    }
    keeper->has_ended = true;
    kinf__cond_broadcast(&keeper->changed);
    kinf__mutex_unlock(&keeper->lock);
    return NULL;
}

/* --- life --- */

int kinf__state_keeper_new(const struct kinf__config *config, struct kinf_client *client,
                           struct kinf__state_keeper **ret_keeper, struct kinf_error *err)
{
    struct kinf__state_keeper *keeper = calloc(1, sizeof *keeper);
    int failed;

    if (keeper == NULL)
        return kinf__error_no_memory(err);
    keeper->client = client;
    keeper->interval_ms = config->state_interval_ms;
    keeper->serves_saved = config->serve_stale;
    kinf__mutex_init(&keeper->lock, KINF__RANK_STATE);
    kinf__cond_init(&keeper->changed);
    kinf__list_init(&keeper->entries);
    keeper->server = describe_server(client);
    failed = keeper->server == NULL
                 ? kinf__error_no_memory(err)
                 : kinf__state_folder_open(config->state_dir, &keeper->folder, err);
    if (failed < 0) {
        kinf__error_prefix(err, "stateDir");
        kinf__state_keeper_free(keeper);
        return failed;
    }
    *ret_keeper = keeper;
    return 0;
}

int kinf__state_keeper_start(struct kinf__state_keeper *keeper, struct kinf_error *err)
{
    int failed = kinf__thread_start(&keeper->thread, "state", run, keeper, err);

    keeper->has_thread = failed == 0;
    return failed;
}

void kinf__state_keeper_begin_stop(struct kinf__state_keeper *keeper)
{
    if (keeper == NULL)
        return;
    kinf__mutex_lock(&keeper->lock);
    keeper->is_stopping = true;
    kinf__cond_broadcast(&keeper->changed);
    kinf__mutex_unlock(&keeper->lock);
}

static void give_up_locked(struct kinf__state_keeper *keeper) KINF__REQUIRES(keeper->lock)
{
    KINF__LIST_FOR_EACH (node, &keeper->entries)
        kinf__stop_set(&KINF__LIST_ENTRY(node, struct kinf__state_entry, node)->stop);
}

void kinf__state_keeper_stop(struct kinf__state_keeper *keeper)
{
    int64_t until_ms = kinf__clock_add_ms(kinf__clock_now_ms(), KINF__STATE_STOP_MS);

    if (keeper == NULL || !keeper->has_thread)
        return;
    kinf__state_keeper_begin_stop(keeper);
    kinf_client_interrupt(keeper->client); /* it may be asked for the cluster */
    kinf__mutex_lock(&keeper->lock);
    while (!keeper->has_ended && kinf__cond_wait_until(&keeper->changed, &keeper->lock, until_ms))
        continue;
    give_up_locked(keeper);
    kinf__mutex_unlock(&keeper->lock);
    pthread_join(keeper->thread, NULL);
    keeper->has_thread = false;
}

void kinf__state_keeper_free(struct kinf__state_keeper *keeper)
{
    if (keeper == NULL)
        return;
    kinf__state_folder_close(keeper->folder);
    kinf__cond_release(&keeper->changed);
    kinf__mutex_release(&keeper->lock);
    free(keeper->server);
    free(keeper);
}

bool kinf__state_keeper_serves_saved(const struct kinf__state_keeper *keeper)
{
    return keeper != NULL && keeper->serves_saved;
}

/* --- entries --- */

int kinf__state_keeper_find_type(const struct kinf__state_keeper *keeper,
                                 const struct kinf__resource_config *resource,
                                 const struct kinf_type **ret_type, struct kinf_error *err)
{
    if (keeper->has_thread || !keeper->serves_saved)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND, "the server is asked for types");
    return kinf__state_find_type(keeper->folder, keeper->server, resource, ret_type, err);
}

static void free_entry(struct kinf__state_entry *entry)
{
    free(entry->name);
    free(entry->scope);
    free(entry);
}

static int make_entry(struct kinf__state_keeper *keeper, struct kinf_informer *informer,
                      const struct kinf__resource_config *resource, const char *name_space,
                      struct kinf__state_entry **ret_entry, struct kinf_error *err)
{
    struct kinf__state_entry *entry = calloc(1, sizeof *entry);
    int failed;

    if (entry == NULL)
        return kinf__error_no_memory(err);
    entry->keeper = keeper;
    entry->informer = informer;
    entry->name = kinf__state_name(resource, name_space);
    entry->scope = kinf__state_scope(resource, name_space);
    if (entry->name == NULL || entry->scope == NULL)
        failed = kinf__error_no_memory(err);
    else if (!kinf__state_name_is_good(entry->name))
        failed = kinf__error_set(err, KINF_ERR_CONFIG,
                                 "%s cannot be the name of a file in stateDir", entry->name);
    else
        failed = kinf__informer_set_saved(informer, load, entry, err);
    if (failed < 0)
        free_entry(entry);
    else
        *ret_entry = entry;
    return failed;
}

int kinf__state_keeper_add(struct kinf__state_keeper *keeper, struct kinf_informer *informer,
                           const struct kinf__resource_config *resource, const char *name_space,
                           struct kinf__state_entry **ret_entry, struct kinf_error *err)
{
    struct kinf__state_entry *entry = NULL;
    int failed = 0;

    if (keeper->serves_saved)
        kinf__state_keep_type(keeper->folder, keeper->server, resource,
                              kinf_informer_type(informer));
    /* Secrets only if the configuration says so in as many words. */
    if (kinf__choice_is_yes(resource->state, kinf_informer_type(informer)))
        failed = make_entry(keeper, informer, resource, name_space, &entry, err);
    if (failed < 0)
        return failed;
    if (entry != NULL) {
        kinf__mutex_lock(&keeper->lock);
        kinf__list_push_back(&keeper->entries, &entry->node);
        kinf__mutex_unlock(&keeper->lock);
    }
    *ret_entry = entry;
    return 0;
}

void kinf__state_keeper_give_up(struct kinf__state_entry *entry)
{
    if (entry == NULL)
        return;
    kinf__mutex_lock(&entry->keeper->lock);
    entry->is_given_up = true;
    kinf__cond_broadcast(&entry->keeper->changed);
    kinf__mutex_unlock(&entry->keeper->lock);
}

static void await_writing_locked(struct kinf__state_keeper *keeper,
                                 const struct kinf__state_entry *entry) KINF__REQUIRES(keeper->lock)
{
    while (entry->is_being_written)
        (void)kinf__cond_wait_until(&keeper->changed, &keeper->lock, KINF__NEVER_MS);
}

/* So is what never had anything. */
static bool is_kept(const struct kinf__state_entry *entry)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot =
        kinf_indexer_snapshot(kinf_informer_indexer(entry->informer));
    const char *rv = kinf_snapshot_resource_version(snapshot);

    return rv[0] == '\0' || strcmp(rv, entry->rv) == 0;
}

/* What it had is in the file, or whoever takes its place is not to load that. */
static void leave_file_locked(struct kinf__state_keeper *keeper, struct kinf__state_entry *entry)
    KINF__REQUIRES(keeper->lock)
{
    await_writing_locked(keeper, entry);
    write_locked(keeper, entry);
    if (is_kept(entry))
        return;
    KINF__LIST_FOR_EACH (node, &keeper->entries) {
        struct kinf__state_entry *other = KINF__LIST_ENTRY(node, struct kinf__state_entry, node);

        if (strcmp(other->name, entry->name) == 0)
            other->is_file_overdue = true;
    }
}

void kinf__state_keeper_remove(struct kinf__state_entry *entry)
{
    struct kinf__state_keeper *keeper;

    if (entry == NULL)
        return;
    keeper = entry->keeper;
    kinf__mutex_lock(&keeper->lock);
    if (keeper->serves_saved && keeper->has_thread && !keeper->is_stopping)
        leave_file_locked(keeper, entry);
    kinf__stop_set(&entry->stop);
    await_writing_locked(keeper, entry);
    kinf__list_remove(&entry->node);
    kinf__cond_broadcast(&keeper->changed);
    kinf__mutex_unlock(&keeper->lock);
    free_entry(entry);
}

/* --- metrics --- */

/* X(name, type, decimals, help, value), of an entry's `stats` */
#define STATE_METRICS(X)                                                                           \
    X("kinformer_state_age_seconds", GAUGE, 3, "How old the state in the file is; 0: none is.",    \
      stats->wall_ms != 0 && now_ms > stats->wall_ms ? now_ms - stats->wall_ms : 0)                \
    X("kinformer_state_bytes", GAUGE, 0, "Size of the file that was written last.",                \
      stats->n_bytes)                                                                              \
    X("kinformer_state_write_seconds", GAUGE, 3, "How long the last writing took.",                \
      stats->write_ms)                                                                             \
    X("kinformer_state_writes_total", COUNTER, 0, "Times that the state was written.",             \
      stats->n_writes)                                                                             \
    X("kinformer_state_failures_total", COUNTER, 0, "Times that it could not be, or not in time.", \
      stats->n_failures)                                                                           \
    X("kinformer_state_loaded_objects", GAUGE, 0, "Objects that the start found in the file.",     \
      stats->n_loaded)

static const struct kinf__metric metrics[] = { STATE_METRICS(KINF__METRIC_ROW) };

static uint64_t metric_value(size_t metric, const struct stats *stats, int64_t now_ms)
{
    const uint64_t values[] = { STATE_METRICS(KINF__METRIC_VALUE) };

    return values[metric];
}

/* What a reload prepares is not told of before it takes its place: a file's samples are there once. */
static int write_family_locked(struct kinf__state_keeper *keeper, size_t metric,
                               struct kinf__buffer *out) KINF__REQUIRES(keeper->lock)
{
    const struct kinf__metric *family = &metrics[metric];
    int failed = kinf__metrics_family(out, family->name, family->type, family->help);

    for (struct kinf__list *node = keeper->entries.next; failed == 0 && node != &keeper->entries;
         node = node->next) {
        const struct kinf__state_entry *entry =
            KINF__LIST_ENTRY(node, struct kinf__state_entry, node);
        const struct kinf__label label = { "file", entry->name };

        if (!has_predecessor_locked(keeper, entry))
            failed = kinf__metrics_sample(
                out, family->name, &label, 1,
                metric_value(metric, &entry->stats, kinf__clock_wall_ms()), family->n_decimals);
    }
    return failed;
}

int kinf__state_keeper_write_metrics(struct kinf__buffer *out, void *ctx)
{
    struct kinf__state_keeper *keeper = ctx;
    int failed = 0;

    if (keeper == NULL)
        return 0;
    kinf__mutex_lock(&keeper->lock);
    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(metrics); i++)
        failed = write_family_locked(keeper, i, out);
    kinf__mutex_unlock(&keeper->lock);
    return failed;
}
