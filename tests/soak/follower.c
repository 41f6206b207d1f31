/*
 * A program on the library that tells the oracle all that its handlers are told (stream.h).
 *
 *     follower NAME SOCKET MODE [DEFECT]
 *
 *   by-key            an informer of each type with that queue, by compressed lists, in a compressed store
 *   in-order          the default queue, by watch lists
 *   coalesce          in order, with a handler that is slow, and merges what waits for it
 *   namespaces        the namespaces soak-0 and soak-2, as one informer of each type
 *   shard-I-N         the part I of N of each type, by the hashes of uids, and by watch lists
 *   controller        makes a ConfigMap for each widget while it leads
 *
 * KUBECONFIG says which server. On "check" from the oracle it says what its stores have, after it has
 * compared each index with the objects themselves. A DEFECT is for the test of the oracle: drop=N,
 * twice=N, swap=N, old=N of the events, store=N of the objects of a store.
 */
#include <kinformer/kinformer.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "soak/controller.h"
#include "soak/history.h"
#include "soak/link.h"
#include "soak/patience.h"
#include "soak/text.h"

#define N_INDICES 2
#define SLOW_NS   300000

struct followed {
    const char *resource;
    struct kinf_informer *informer;
    struct kinf_namespaces *namespaces; /* instead */
};

static struct followed all_followed[SOAK_N_TYPES];
static bool is_slow;

/* --- what handlers are told --- */

static struct version read_version(const struct kinf_object *object)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct version version = { 0, 0, 0 };
    struct identity identity;
    struct kinf_str text;

    if (kinf_object_json(object, &scratch, &text, NULL) < 0 ||
        !text_read_object(text, &version, &identity))
        link_complain("cannot read %s", kinf_object_key(object));
    else if (version.uid != text_hash(kinf_str_from(kinf_object_uid(object))) ||
             version.rv != text_number(kinf_str_from(kinf_object_resource_version(object))))
        link_complain("%s is not who its text says", kinf_object_key(object));
    return version;
}

static void tell(char op, const struct followed *followed, const struct kinf_object *object,
                 const struct kinf_object *old, bool flag)
{
    const struct timespec pause = { 0, SLOW_NS };
    struct version now = read_version(object);

    if (old != NULL)
        link_event(op, "%s %s %llu %llu %llu %llu %llu", followed->resource,
                   kinf_object_key(object), (unsigned long long)now.uid, (unsigned long long)now.rv,
                   (unsigned long long)now.sum, (unsigned long long)read_version(old).rv,
                   (unsigned long long)read_version(old).sum);
    else
        link_event(op, "%s %s %llu %llu %llu %d", followed->resource, kinf_object_key(object),
                   (unsigned long long)now.uid, (unsigned long long)now.rv,
                   (unsigned long long)now.sum, flag);
    if (is_slow)
        nanosleep(&pause, NULL);
}

/* The oracle's objects alone: the others' are in other namespaces. */
static bool is_ours(const struct kinf_object *object)
{
    return strncmp(kinf_object_key(object), "soak-", 5) == 0;
}

static void on_add(const struct kinf_object *object, bool in_initial_list, void *ctx)
{
    if (is_ours(object))
        tell('A', ctx, object, NULL, in_initial_list);
}

static void on_update(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    if (is_ours(object))
        tell('U', ctx, object, old, false);
}

static void on_delete(const struct kinf_object *object, bool final_state_unknown, void *ctx)
{
    if (is_ours(object))
        tell('D', ctx, object, NULL, final_state_unknown);
}

/* --- stores --- */

static void list_store(const struct followed *followed, struct kinf_object_list *ret_list)
{
    int failed = followed->namespaces != NULL
                     ? kinf_namespaces_list(followed->namespaces, NULL, ret_list, NULL)
                     : kinf_indexer_list(kinf_informer_indexer(followed->informer), ret_list, NULL);

    if (failed < 0)
        link_complain("cannot list %s", followed->resource);
}

static int by_index(const struct followed *followed, const char *index, const char *value,
                    struct kinf_object_list *ret_list)
{
    return followed->namespaces != NULL
               ? kinf_namespaces_by_index(followed->namespaces, index, value, ret_list, NULL)
               : kinf_indexer_by_index(kinf_informer_indexer(followed->informer), index, value,
                                       ret_list, NULL);
}

/* What an index has of a value is what of the list has it, in the order of the list. */
static void compare_value(const struct followed *followed, const struct kinf_object_list *list,
                          const struct kinf_index *index, const char *value)
{
    kinf_auto_object_list struct kinf_object_list found = KINF_OBJECT_LIST_INIT;
    size_t n = 0;

    if (by_index(followed, index->name, value, &found) < 0) {
        link_complain("no index %s of %s", index->name, followed->resource);
        return;
    }
    for (size_t i = 0; i < list->n_items; i++) {
        char its[64];

        if (kinf_object_get_string(list->items[i], index->path, its, sizeof its) < 0 ||
            strcmp(its, value) != 0)
            continue;
        if (n >= found.n_items || found.items[n] != list->items[i])
            link_complain("%s is not in %s=%s", kinf_object_key(list->items[i]), index->name,
                          value);
        n++;
    }
    if (n != found.n_items)
        link_complain("%s=%s of %s has %zu objects and not %zu", index->name, value,
                      followed->resource, found.n_items, n);
}

static const struct kinf_index indices[N_INDICES] = {
    { "byApp", "metadata.labels.app", NULL, NULL }, { "byNode", "spec.nodeName", NULL, NULL }
};

static void compare_indices(const struct followed *followed, const struct kinf_object_list *list)
{
    char value[16];

    for (unsigned i = 0; i < 9; i++) {
        snprintf(value, sizeof value, "a%u", i);
        compare_value(followed, list, &indices[0], value);
    }
    for (unsigned i = 0; i < 20 && strcmp(followed->resource, "pods") == 0; i++) {
        snprintf(value, sizeof value, "node-%u", i);
        compare_value(followed, list, &indices[1], value);
    }
}

static void tell_store(const struct followed *followed)
{
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;

    list_store(followed, &list);
    compare_indices(followed, &list);
    for (size_t i = 0; i < list.n_items; i++) {
        struct version version = read_version(list.items[i]);

        if (is_ours(list.items[i]))
            link_stored("%s %s %llu %llu %llu", followed->resource, kinf_object_key(list.items[i]),
                        (unsigned long long)version.uid, (unsigned long long)version.rv,
                        (unsigned long long)version.sum);
    }
    link_say("E %s", followed->resource);
}

/* Returns when the oracle has gone. */
static void answer_checks(void)
{
    while (link_wait_check()) {
        for (size_t i = 0; i < SOAK_N_TYPES; i++)
            tell_store(&all_followed[i]);
    }
}

/* --- modes --- */

/* Short times, so that there is much to fail, and what failed is found within a round. */
static void set_bounds(struct kinf_informer_options *options)
{
    options->watch_timeout_ms = 5000;
    options->silent_after_ms = 6000;
    options->backoff_base_ms = 50;
    options->backoff_max_ms = 1000;
    options->max_object_bytes = 1000000; /* less than what grows (schedule.py) */
}

static int make_informer(struct kinf_client *client, struct followed *followed,
                         const struct kinf_informer_options *options, struct kinf_error *err)
{
    return kinf_informer_new(client, options, &followed->informer, err);
}

static int make_namespaces(struct kinf_client *client, struct followed *followed,
                           const struct kinf_informer_options *options, struct kinf_error *err)
{
    static const char *const names[] = { "soak-0", "soak-2" };

    return kinf_namespaces_new(client, options, names, 2, &followed->namespaces, err);
}

static int make_patiently(bool is_of_namespaces, struct kinf_client *client,
                          struct followed *followed, const struct kinf_informer_options *options,
                          struct kinf_error *err)
{
    struct patience patience = { 0 };
    int failed;

    do {
        failed = is_of_namespaces ? make_namespaces(client, followed, options, err)
                                  : make_informer(client, followed, options, err);
    } while (failed < 0 && patience_wait(&patience, err));
    return failed;
}

static int start_informer(struct followed *followed, struct kinf_error *err)
{
    return followed->namespaces != NULL ? kinf_namespaces_start(followed->namespaces, err)
                                        : kinf_informer_start(followed->informer, err);
}

static int start_type(struct kinf_client *client, const char *mode, const char *selector,
                      struct followed *followed, struct kinf_error *err)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    bool is_by_key = strcmp(mode, "by-key") == 0;

    set_bounds(&options);
    options.resource = followed->resource;
    options.shard_selector = selector;
    options.indices = indices;
    options.n_indices = N_INDICES;
    options.fifo_order = is_by_key ? KINF_FIFO_KEYED : KINF_FIFO_IN_ORDER;
    options.initial = strcmp(mode, "in-order") == 0 || selector != NULL ? KINF_INITIAL_WATCHLIST
                                                                        : KINF_INITIAL_AUTO;
    options.accept_gzip = is_by_key;
    options.compressed = is_by_key;
    options.handler.on_add = on_add;
    options.handler.on_update = on_update;
    options.handler.on_delete = on_delete;
    options.handler.ctx = followed;
    options.handler.backlog = is_slow ? KINF_BACKLOG_COALESCE : KINF_BACKLOG_UNBOUNDED;
    return make_patiently(strcmp(mode, "namespaces") == 0, client, followed, &options, err) < 0
               ? -1
               : start_informer(followed, err);
}

static int start_types(struct kinf_client *client, const char *mode, const char *selector,
                       struct kinf_error *err)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < SOAK_N_TYPES; i++) {
        all_followed[i].resource = soak_types[i].resource;
        failed = start_type(client, mode, selector, &all_followed[i], err);
    }
    return failed;
}

static void stop_types(void)
{
    for (size_t i = 0; i < SOAK_N_TYPES; i++) {
        kinf_informer_free(all_followed[i].informer);
        kinf_namespaces_free(all_followed[i].namespaces);
    }
}

static int follow(const char *name, const char *path, const char *mode, const char *defect,
                  struct kinf_error *err)
{
    kinf_auto_client struct kinf_client *client = NULL;
    char selector[KINF_SHARD_SELECTOR_SIZE], scope[64] = "";
    unsigned shard = 0, n_shards = 0;
    int failed;

    is_slow = strcmp(mode, "coalesce") == 0;
    if (strcmp(mode, "namespaces") == 0)
        snprintf(scope, sizeof scope, "namespaces=0,2");
    if (sscanf(mode, "shard-%u-%u", &shard, &n_shards) == 2)
        snprintf(scope, sizeof scope, "part=shards");
    if (n_shards != 0 && kinf_shard_selector(KINF_SHARD_BY_UID, n_shards, shard, selector, err) < 0)
        return -1;
    link_open(path, name, scope, defect);
    failed = kinf_client_new(NULL, &client, err);
    if (failed == 0)
        failed = start_types(client, mode, n_shards != 0 ? selector : NULL, err);
    if (failed == 0)
        answer_checks();
    stop_types();
    return failed;
}

int main(int argc, char **argv)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int failed;

    if (argc < 4) {
        fprintf(stderr, "follower: NAME SOCKET MODE [DEFECT]\n");
        return 2;
    }
    kinf_log_to_stderr();
    failed = strcmp(argv[3], "controller") == 0
                 ? controller_run(argv[1], argv[2], &err)
                 : follow(argv[1], argv[2], argv[3], argc > 4 ? argv[4] : "", &err);
    if (failed < 0)
        fprintf(stderr, "follower: %s\n", err.message);
    return failed < 0;
}
