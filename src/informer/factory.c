/*
 * The factory: a list of informers, and who may have which. Neighbours: shared_options.c compares
 * requests, informer.c does the work.
 *
 * Requests take turns, so that two for the same informer never make two. The turn is not a lock:
 * adding an index to a full store runs user code. Shutdown waits for the turn to end and lets no
 * other begin; since nothing in a turn waits for a callback, that is soon. A start takes none: one
 * that fails waits for the callbacks of its handlers, which may request. Who takes an entry first
 * starts it.
 *
 * Invariants: an informer never leaves the list before the factory is freed; the list and the
 * options in it change in a turn only, the list under the lock besides, so either is enough to read
 * it.
 */
#include "informer/informer.h"

#include "base/error.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/misuse.h"
#include "indexer/index_set.h"
#include "informer/callback.h"
#include "informer/shared_options.h"
#include "rest/client.h"

struct entry {
    struct kinf__list in_factory;
    /* constant after creation */
    const struct kinf_type *type;
    struct kinf_informer *informer;
    struct kinf__callback_wait is_part; /* the factory's end is the informer's */
    /* owned by the turn */
    struct kinf__shared_options shared;
    /* guarded by the factory's lock */
    bool is_started;
};

struct kinf_factory {
    /* constant after creation */
    struct kinf_client *client;

    struct kinf__mutex lock;
    struct kinf__cond changed; /* a turn has ended, or shutdown began */
    /* guarded by lock */
    struct kinf__list entries;
    bool is_in_turn;
    bool is_shut_down;
    size_t n_controllers; /* that were started with it, and not stopped yet */
};

static struct entry *entry_of(struct kinf__list *node)
{
    return KINF__LIST_ENTRY(node, struct entry, in_factory);
}

/* --- turns --- */

/* False after shutdown. */
static bool begin_turn(struct kinf_factory *factory)
{
    bool is_mine;

    kinf__mutex_lock(&factory->lock);
    while (factory->is_in_turn && !factory->is_shut_down)
        kinf__cond_wait_until(&factory->changed, &factory->lock, KINF_FOREVER);
    is_mine = !factory->is_shut_down;
    if (is_mine)
        factory->is_in_turn = true;
    kinf__mutex_unlock(&factory->lock);
    return is_mine;
}

static void end_turn(struct kinf_factory *factory)
{
    kinf__mutex_lock(&factory->lock);
    factory->is_in_turn = false;
    kinf__cond_broadcast(&factory->changed);
    kinf__mutex_unlock(&factory->lock);
}

static void forbid_turns(struct kinf_factory *factory)
{
    kinf__mutex_lock(&factory->lock);
    factory->is_shut_down = true;
    kinf__cond_broadcast(&factory->changed);
    while (factory->is_in_turn)
        kinf__cond_wait_until(&factory->changed, &factory->lock, KINF_FOREVER);
    kinf__mutex_unlock(&factory->lock);
}

/* --- entries --- */

static struct entry *find_entry(struct kinf_factory *factory, const struct kinf_type *type,
                                const struct kinf_informer_options *options)
{
    KINF__LIST_FOR_EACH (node, &factory->entries) {
        struct entry *entry = entry_of(node);

        if (entry->type == type && kinf__shared_options_selects_same(&entry->shared, options))
            return entry;
    }
    return NULL;
}

static void add_to_list(struct kinf_factory *factory, struct entry *entry)
{
    kinf__mutex_lock(&factory->lock);
    kinf__list_push_back(&factory->entries, &entry->in_factory);
    kinf__mutex_unlock(&factory->lock);
}

/* The informer comes last: when it fails, the handler in its options was never added. */
static int make_entry(struct kinf_factory *factory, const struct kinf_type *type,
                      const struct kinf_informer_options *options, struct entry **ret_entry,
                      struct kinf_error *err)
{
    struct entry *entry = calloc(1, sizeof *entry);
    int rc;

    if (entry == NULL)
        return kinf__error_no_memory(err);
    entry->type = type;
    rc = kinf__shared_options_init(&entry->shared, options, err);
    if (rc == 0) {
        rc = kinf__informer_new_for_type(factory->client, type, options, &entry->informer, err);
        if (rc < 0)
            kinf__shared_options_release(&entry->shared);
    }
    if (rc < 0) {
        free(entry);
        return rc;
    }
    kinf__informer_lend(entry->informer);
    kinf__callback_add_part(&entry->is_part, factory, entry->informer);
    add_to_list(factory, entry);
    *ret_entry = entry;
    return 0;
}

static void entry_free(struct entry *entry)
{
    kinf__callback_end_wait(&entry->is_part);
    kinf__informer_free(entry->informer);
    kinf__shared_options_release(&entry->shared);
    free(entry);
}

static int share_entry(struct entry *entry, const struct kinf_informer_options *options,
                       struct kinf_error *err)
{
    kinf_handler_id id;
    int rc = kinf__shared_options_check(&entry->shared, options, err);

    if (rc == 0)
        rc = kinf__informer_options_check_paths(options, entry->informer->plan, err);
    if (rc == 0)
        rc = kinf__shared_options_add_indices(&entry->shared, options,
                                              kinf_informer_indexer(entry->informer), err);
    if (rc == 0 && kinf__handler_has_callback(&options->handler))
        rc = kinf_informer_add_handler(entry->informer, &options->handler, &id, err);
    if (rc < 0)
        kinf__error_prefix(err, "%s", entry->type->resource);
    return rc;
}

int kinf__factory_informer_for_type(struct kinf_factory *factory, const struct kinf_type *type,
                                    const struct kinf_informer_options *options,
                                    struct kinf_informer **ret_informer, struct kinf_error *err)
{
    struct entry *entry;
    int rc;

    if (kinf__index_function_is_running())
        return kinf__error_set(err, KINF_ERR_STATE,
                               "an index function asks a factory for no informer: it may be "
                               "called in the course of such a request");
    if (!begin_turn(factory))
        return kinf__error_set(err, KINF_ERR_STOPPED, "the factory was shut down");
    entry = find_entry(factory, type, options);
    rc = entry != NULL ? share_entry(entry, options, err)
                       : make_entry(factory, type, options, &entry, err);
    if (rc == 0)
        *ret_informer = entry->informer;
    end_turn(factory);
    return rc;
}

/* The first that was not started, which counts as started from now on; NULL: none, or shut down. */
static struct entry *take_unstarted(struct kinf_factory *factory)
{
    struct entry *unstarted = NULL;

    kinf__mutex_lock(&factory->lock);
    KINF__LIST_FOR_EACH (node, &factory->entries) {
        if (!entry_of(node)->is_started && !factory->is_shut_down) {
            unstarted = entry_of(node);
            unstarted->is_started = true;
            break;
        }
    }
    kinf__mutex_unlock(&factory->lock);
    return unstarted;
}

/* The first behind `entry` (NULL: of all) that was started; NULL: none. */
static struct entry *next_started(struct kinf_factory *factory, struct entry *entry)
{
    struct kinf__list *node;

    kinf__mutex_lock(&factory->lock);
    node = entry != NULL ? entry->in_factory.next : factory->entries.next;
    while (node != &factory->entries && !entry_of(node)->is_started)
        node = node->next;
    entry = node != &factory->entries ? entry_of(node) : NULL;
    kinf__mutex_unlock(&factory->lock);
    return entry;
}

/* --- exported --- */

int kinf__factory_new(struct kinf_client *client, struct kinf_factory **ret_factory,
                      struct kinf_error *err)
{
    struct kinf_factory *factory = calloc(1, sizeof *factory);

    if (factory == NULL)
        return kinf__error_no_memory(err);
    factory->client = client;
    if (client != NULL)
        kinf__client_hold(client);
    kinf__mutex_init(&factory->lock, KINF__RANK_FACTORY);
    kinf__cond_init(&factory->changed);
    kinf__list_init(&factory->entries);
    *ret_factory = factory;
    return 0;
}

int kinf_factory_new(struct kinf_client *client, struct kinf_factory **ret_factory,
                     struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, client, ret_factory);
    return kinf__factory_new(client, ret_factory, err);
}

static bool is_held(struct kinf_factory *factory)
{
    bool is_any;

    kinf__mutex_lock(&factory->lock);
    is_any = factory->n_controllers != 0;
    KINF__LIST_FOR_EACH (node, &factory->entries)
        is_any = is_any || kinf__informer_is_held(entry_of(node)->informer);
    kinf__mutex_unlock(&factory->lock);
    return is_any;
}

void kinf_factory_free(struct kinf_factory *factory)
{
    struct kinf_error err = KINF_ERROR_INIT;

    if (factory == NULL)
        return;
    if (is_held(factory)) {
        (void)kinf__misuse(NULL, KINF_ERR_STATE,
                           "a factory is not freed before the controllers that have it, or one of "
                           "its informers, are stopped");
        return;
    }
    if (kinf_factory_shutdown(factory, &err) < 0) {
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_ERROR, "factory not freed error=%s",
                  KINF__QUOTED(err.message));
        return;
    }
    KINF__LIST_FOR_EACH_SAFE (node, &factory->entries)
        entry_free(entry_of(node));
    kinf__cond_release(&factory->changed);
    kinf__mutex_release(&factory->lock);
    if (factory->client != NULL)
        kinf__client_let_go(factory->client);
    free(factory);
}

void kinf_factory_free_ptr(struct kinf_factory **factory)
{
    KINF__REFUSE_NULL(NULL, , factory);
    kinf_factory_free(*factory);
}

/* Discovery is outside of the turn: it may take as long as the network. */
int kinf_factory_informer(struct kinf_factory *factory, const struct kinf_informer_options *options,
                          struct kinf_informer **ret_informer, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, factory, options, ret_informer);

    struct kinf_informer_options own;
    const struct kinf_type *type;
    int rc;

    rc = kinf__informer_options_read(factory->client, options, &own, &type, err);
    return rc < 0 ? rc : kinf__factory_informer_for_type(factory, type, &own, ret_informer, err);
}

/* One that a shutdown stops before it has begun is no failure. */
static int start_entry(struct entry *entry, struct kinf_error *err)
{
    struct kinf_error why = KINF_ERROR_INIT;
    int rc = kinf__informer_start(entry->informer, &why);

    if (rc == 0 || rc == KINF_ERR_STATE)
        return 0;
    if (err != NULL)
        *err = why;
    return rc;
}

int kinf_factory_start(struct kinf_factory *factory, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, factory);

    struct entry *entry;
    int rc = 0;

    while (rc == 0 && (entry = take_unstarted(factory)) != NULL)
        rc = start_entry(entry, err);
    return rc;
}

/* Of those that were started. */
static struct kinf_informer *informer_at(size_t i, void *ctx)
{
    struct entry *entry = next_started(ctx, NULL);

    while (i-- > 0 && entry != NULL)
        entry = next_started(ctx, entry);
    return entry != NULL ? entry->informer : NULL;
}

int kinf_factory_wait_synced(struct kinf_factory *factory, int64_t timeout_ms,
                             struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, factory);
    return kinf__informer_wait_each_synced(informer_at, factory, timeout_ms, err);
}

int kinf_factory_shutdown(struct kinf_factory *factory, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, factory);

    struct kinf__callback_wait wait;
    int rc = 0;

    if (!kinf__callback_begin_wait(&wait, factory))
        return kinf__error_set(err, KINF_ERR_STATE,
                               "a factory cannot be shut down from a callback of its informers, "
                               "nor from one that they wait for");
    forbid_turns(factory);
    KINF__LIST_FOR_EACH (node, &factory->entries)
        kinf__informer_interrupt(entry_of(node)->informer);
    KINF__LIST_FOR_EACH (node, &factory->entries) {
        if (rc == 0)
            rc = kinf__informer_stop(entry_of(node)->informer, err);
    }
    kinf__callback_end_wait(&wait);
    return rc;
}

/* --- controllers --- */

void kinf__factory_hold(struct kinf_factory *factory)
{
    kinf__mutex_lock(&factory->lock);
    factory->n_controllers++;
    kinf__mutex_unlock(&factory->lock);
}

/* True for the last that has it, which has it on while it shuts it down. */
static bool let_go_but_last(struct kinf_factory *factory)
{
    bool is_last;

    kinf__mutex_lock(&factory->lock);
    is_last = factory->n_controllers == 1;
    factory->n_controllers -= !is_last;
    kinf__mutex_unlock(&factory->lock);
    return is_last;
}

void kinf__factory_let_go(struct kinf_factory *factory)
{
    if (!let_go_but_last(factory))
        return;
    (void)kinf_factory_shutdown(factory, NULL);
    kinf__mutex_lock(&factory->lock);
    factory->n_controllers--;
    kinf__mutex_unlock(&factory->lock);
}
