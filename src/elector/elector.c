/*
 * An elector's life, and what it is asked. Neighbours: elector_threads.c has what goes on meanwhile.
 */
#include "elector/elector_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"
#include "object/object.h"
#include "rest/client.h"
#include "rest/url.h"

#define LEASE_MS          15000
#define RENEW_DEADLINE_MS 10000
#define RETRY_MS          2000
#define TIME_MAX_MS       86400000
#define IDENTITY_MAX      253
#define LOG_INTERVAL_MS   30000

/* --- options --- */

static int refuse(struct kinf_error *err, const char *what)
{
    return kinf__error_set(err, KINF_ERR_INVALID, "elector: %s", what);
}

static bool is_time(int64_t ms)
{
    return ms >= 0 && ms <= TIME_MAX_MS;
}

static void set_default(int64_t *ms, int64_t otherwise)
{
    if (*ms == 0)
        *ms = otherwise;
}

/* Mirrors: NewLeaderElector's checks. */
static int check_times(struct kinf_elector_options *options, struct kinf_error *err)
{
    if (!is_time(options->lease_ms) || !is_time(options->renew_deadline_ms) ||
        !is_time(options->retry_ms))
        return refuse(err, "a time is negative, or longer than a day");
    set_default(&options->lease_ms, LEASE_MS);
    set_default(&options->renew_deadline_ms, RENEW_DEADLINE_MS);
    set_default(&options->retry_ms, RETRY_MS);
    if (options->lease_ms <= options->renew_deadline_ms)
        return refuse(err, "lease_ms must be above renew_deadline_ms");
    if (options->renew_deadline_ms * 10 <= options->retry_ms * 12)
        return refuse(err, "renew_deadline_ms must be above 1.2 times retry_ms");
    return 0;
}

/* Anything that comes back from the server as it was sent. */
static bool is_identity(const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++) {
        if (text[i] < ' ' || text[i] > '~')
            return false;
    }
    return len >= 1 && len <= IDENTITY_MAX;
}

/* The name is in a label's value: what else cannot be one, the server refuses as a name. */
static int check_shard(const struct kinf_elector_options *options, struct kinf_error *err)
{
    if (options->n_shards == 0)
        return options->shard == 0 ? 0 : refuse(err, "a shard needs n_shards");
    if (strlen(options->name) >= KINF__LEASE_SET_SIZE)
        return refuse(err, "the name of the Leases of shards has 63 bytes at most");
    return kinf__shard_check(options->n_shards, options->shard, err);
}

static int check(struct kinf_client *client, struct kinf_elector_options *options,
                 struct kinf_error *err)
{
    if (options->name_space == NULL)
        options->name_space = kinf_client_namespace(client);
    if (options->name_space[0] == '\0')
        return refuse(err, "a namespace is needed: the client has none");
    if (options->name == NULL)
        return refuse(err, "the Lease needs a name");
    if (options->identity != NULL && !is_identity(options->identity))
        return refuse(err, "an identity is 1 to 253 printable ASCII bytes");
    if (kinf__name_check_namespace(options->name_space, err) < 0 ||
        kinf__name_check_segment(options->name, err) < 0)
        return KINF_ERR_INVALID;
    return check_shard(options, err) < 0 ? KINF_ERR_INVALID : check_times(options, err);
}

/* --- life --- */

/* Two processes never have the same, even if their hosts do. */
static char *make_identity(void)
{
    char host[65] = "";
    uint64_t number[2] = { 0 };
    char *identity;

    if (gethostname(host, sizeof host - 1) < 0 || !is_identity(host))
        snprintf(host, sizeof host, "host");
    if (getrandom(number, sizeof number, 0) != (ssize_t)sizeof number)
        return NULL;
    return asprintf(&identity, "%s_%016" PRIx64 "%016" PRIx64, host, number[0], number[1]) < 0
               ? NULL
               : identity;
}

static int copy_strings(struct kinf_elector *elector)
{
    const struct kinf_elector_options *options = &elector->options;

    if (options->n_shards == 0)
        elector->name = strdup(options->name);
    else if (asprintf(&elector->name, "%s-%u", options->name, options->shard) < 0)
        elector->name = NULL;
    elector->name_space = strdup(options->name_space);
    elector->identity = options->identity != NULL ? strdup(options->identity) : make_identity();
    if (asprintf(&elector->collection, "/apis/coordination.k8s.io/v1/namespaces/%s/leases",
                 options->name_space) < 0)
        elector->collection = NULL;
    if (elector->collection == NULL || elector->name == NULL || elector->name_space == NULL ||
        elector->identity == NULL)
        return KINF_ERR_NO_MEMORY;
    return 0;
}

/* Names of Leases need no escapes, but what is no name is for the server to refuse. */
static int make_item(struct kinf_elector *elector)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;

    if (kinf__buffer_printf(&target, "%s", elector->collection) < 0 ||
        kinf__url_append_segment(&target, elector->name) < 0 || kinf__buffer_cstr(&target) == NULL)
        return KINF_ERR_NO_MEMORY;
    elector->item = KINF__TAKE(target.bytes);
    return 0;
}

/* Without a resourceVersion: of the newest state, which is what claims.h relies on. */
static int make_set(struct kinf_elector *elector)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT, label = KINF__BUFFER_INIT;

    if (elector->options.n_shards == 0)
        return 0;
    elector->set = strdup(elector->options.name);
    if (elector->set == NULL ||
        kinf__buffer_printf(&label, KINF__LEASE_SET_LABEL "=%s", elector->set) < 0 ||
        kinf__buffer_cstr(&label) == NULL ||
        kinf__buffer_printf(&target, "%s", elector->collection) < 0 ||
        kinf__url_append_query(&target, "labelSelector", label.bytes) < 0 ||
        kinf__buffer_cstr(&target) == NULL)
        return KINF_ERR_NO_MEMORY;
    elector->all = KINF__TAKE(target.bytes);
    return 0;
}

static int fill(struct kinf_elector *elector, struct kinf_error *err)
{
    struct kinf__election_terms terms = {
        .lease_ms = elector->options.lease_ms,
        .renew_deadline_ms = elector->options.renew_deadline_ms,
        .retry_ms = elector->options.retry_ms,
        .n_shards = elector->options.n_shards,
        .shard = elector->options.shard,
    };
    int failed;

    if (copy_strings(elector) < 0 || make_item(elector) < 0 || make_set(elector) < 0)
        return kinf__error_no_memory(err);
    terms.set = elector->set;
    terms.name = elector->name;
    terms.name_space = elector->name_space;
    terms.identity = elector->identity;
    kinf__election_init(&elector->election, &terms);
    if (getrandom(&elector->random, sizeof elector->random, 0) < 0)
        elector->random = (uint64_t)kinf__clock_now_ns();
    failed = kinf__waker_init(&elector->stop, err);
    elector->options.name = elector->options.name_space = elector->options.identity = NULL;
    return failed < 0 ? failed
                      : kinf__http_new(elector->client, &elector->stop, &elector->http, err);
}

static void destroy(struct kinf_elector *elector)
{
    kinf__http_free(elector->http);
    kinf__election_release(&elector->election);
    kinf__waker_release(&elector->stop);
    kinf__cond_release(&elector->changed);
    kinf__mutex_release(&elector->lock);
    kinf__client_let_go(elector->client);
    free(elector->name);
    free(elector->name_space);
    free(elector->identity);
    free(elector->collection);
    free(elector->item);
    free(elector->set);
    free(elector->all);
    free(elector);
}

int kinf_elector_new(struct kinf_client *client, const struct kinf_elector_options *options,
                     struct kinf_elector **ret_elector, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, client, options, ret_elector);

    struct kinf_elector_options own;
    struct kinf_elector *elector;
    int failed = kinf__options_read(&own, sizeof own, options, "struct kinf_elector_options", err);

    if (failed < 0 || (failed = check(client, &own, err)) < 0)
        return failed;
    elector = calloc(1, sizeof *elector);
    if (elector == NULL)
        return kinf__error_no_memory(err);
    elector->client = client;
    kinf__client_hold(client);
    elector->options = own;
    elector->stop.fd = -1;
    elector->known_term = -1;
    elector->log_limit.interval_ms = LOG_INTERVAL_MS;
    kinf__mutex_init(&elector->lock, KINF__RANK_ELECTOR);
    kinf__cond_init(&elector->changed);
    failed = fill(elector, err);
    if (failed < 0)
        destroy(elector);
    else
        *ret_elector = elector;
    return failed;
}

static bool has_callbacks(const struct kinf_elector_options *options)
{
    return options->on_started != NULL || options->on_stopped != NULL || options->on_leader != NULL;
}

/* The threads wait for the lock that the caller has. */
static int start_threads(struct kinf_elector *elector, struct kinf_error *err)
    KINF__REQUIRES(elector->lock)
{
    int failed = 0;

    if (has_callbacks(&elector->options)) {
        failed = kinf__thread_start(&elector->teller, "kinf-elect-tell", kinf__elector_tell,
                                    elector, err);
        elector->has_teller = failed == 0;
    }
    if (failed == 0)
        failed = kinf__thread_start(&elector->renewer, "kinf-elector", kinf__elector_renew, elector,
                                    err);
    return failed;
}

/* Behind the renewer: then it tells what there is to tell, and ends. */
static void end_teller(struct kinf_elector *elector) KINF__REQUIRES(elector->lock)
{
    if (elector->has_teller) {
        kinf__mutex_unlock(&elector->lock);
        pthread_join(elector->teller, NULL);
        kinf__mutex_lock(&elector->lock);
    }
    elector->has_teller = false;
    elector->life = KINF__ELECTOR_STOPPED;
    kinf__cond_broadcast(&elector->changed);
}

/* A teller that runs already has nothing to tell. */
static void give_up_start(struct kinf_elector *elector) KINF__REQUIRES(elector->lock)
{
    elector->life = KINF__ELECTOR_STOPPING;
    elector->is_over = true;
    end_teller(elector);
    elector->is_over = false;
    elector->life = KINF__ELECTOR_NOT_STARTED;
}

static int start_locked(struct kinf_elector *elector, struct kinf_error *err)
    KINF__REQUIRES(elector->lock)
{
    int failed;

    if (elector->life != KINF__ELECTOR_NOT_STARTED)
        return kinf__error_set(err, KINF_ERR_STATE, "the elector was started, or stopped, before");
    failed = start_threads(elector, err);
    if (failed == 0)
        elector->life = KINF__ELECTOR_RUNNING;
    else
        give_up_start(elector);
    return failed;
}

int kinf_elector_start(struct kinf_elector *elector, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, elector);

    int failed;

    kinf__mutex_lock(&elector->lock);
    failed = start_locked(elector, err);
    kinf__mutex_unlock(&elector->lock);
    return failed;
}

static bool is_own_callback(const struct kinf_elector *elector)
{
    return elector->has_teller && pthread_equal(pthread_self(), elector->teller);
}

static void end_threads(struct kinf_elector *elector) KINF__REQUIRES(elector->lock)
{
    elector->life = KINF__ELECTOR_STOPPING;
    kinf__election_resign(&elector->election);
    kinf__waker_set(&elector->stop);
    kinf__cond_broadcast(&elector->changed);
    kinf__mutex_unlock(&elector->lock);
    pthread_join(elector->renewer, NULL);
    kinf__mutex_lock(&elector->lock);
    end_teller(elector);
}

int kinf_elector_stop(struct kinf_elector *elector, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, elector);

    kinf__mutex_lock(&elector->lock);
    if (is_own_callback(elector)) {
        kinf__mutex_unlock(&elector->lock);
        return kinf__misuse(err, KINF_ERR_STATE, "an elector is not stopped from its own callback");
    }
    if (elector->n_controllers != 0) {
        kinf__mutex_unlock(&elector->lock);
        return kinf__misuse(err, KINF_ERR_STATE,
                            "an elector is not stopped before the controllers that it leads");
    }
    if (elector->life == KINF__ELECTOR_RUNNING)
        end_threads(elector);
    while (elector->life == KINF__ELECTOR_STOPPING)
        kinf__elector_wait_until_locked(elector, KINF__NEVER_MS);
    elector->life = KINF__ELECTOR_STOPPED;
    kinf__mutex_unlock(&elector->lock);
    return 0;
}

int kinf__elector_join(struct kinf_elector *elector, struct kinf_error *err)
{
    int failed = 0;

    kinf__mutex_lock(&elector->lock);
    if (elector->life > KINF__ELECTOR_RUNNING)
        failed = kinf__error_set(err, KINF_ERR_STATE, "the elector was stopped before");
    else
        elector->n_controllers++;
    kinf__mutex_unlock(&elector->lock);
    return failed;
}

void kinf__elector_leave(struct kinf_elector *elector)
{
    kinf__mutex_lock(&elector->lock);
    if (--elector->n_controllers == 0 && elector->is_theirs &&
        elector->life == KINF__ELECTOR_RUNNING)
        end_threads(elector);
    kinf__mutex_unlock(&elector->lock);
}

int kinf__elector_run(struct kinf_elector *elector, struct kinf_error *err)
{
    int failed = 0;

    kinf__mutex_lock(&elector->lock);
    if (elector->life != KINF__ELECTOR_RUNNING) {
        failed = start_locked(elector, err);
        elector->is_theirs = failed == 0;
    }
    kinf__mutex_unlock(&elector->lock);
    return failed;
}

void kinf_elector_free(struct kinf_elector *elector)
{
    if (elector != NULL && kinf_elector_stop(elector, NULL) == 0)
        destroy(elector);
}

void kinf_elector_free_ptr(struct kinf_elector **elector)
{
    KINF__REFUSE_NULL(NULL, , elector);
    kinf_elector_free(*elector);
}

/* --- questions --- */

bool kinf_elector_fence(struct kinf_elector *elector, struct kinf_fence *ret_fence)
{
    KINF__REFUSE_NULL(NULL, false, elector, ret_fence);

    int64_t left_ms;

    kinf__mutex_lock(&elector->lock);
    left_ms = elector->election.leads_until_ms - kinf__clock_boot_ms();
    if (left_ms > 0)
        *ret_fence = (struct kinf_fence){ elector->election.term, left_ms };
    kinf__mutex_unlock(&elector->lock);
    return left_ms > 0;
}

bool kinf_elector_leads(struct kinf_elector *elector)
{
    KINF__REFUSE_NULL(NULL, false, elector);

    struct kinf_fence fence;

    return kinf_elector_fence(elector, &fence);
}

bool kinf__elector_is_inside(struct kinf_elector *elector)
{
    bool is_inside;

    kinf__mutex_lock(&elector->lock);
    is_inside = is_own_callback(elector);
    kinf__mutex_unlock(&elector->lock);
    return is_inside;
}

int64_t kinf__elector_due_ms(struct kinf_elector *elector)
{
    const struct kinf__election *election = &elector->election;
    int64_t now_ms = kinf__clock_boot_ms(), due_ms = KINF__NEVER_MS;

    kinf__mutex_lock(&elector->lock);
    if (elector->life == KINF__ELECTOR_RUNNING)
        due_ms = election->asked != KINF__ELECTION_WAIT || election->next_ms <= now_ms
                     ? 0
                     : kinf__clock_now_ms() + election->next_ms - now_ms;
    kinf__mutex_unlock(&elector->lock);
    return due_ms;
}

/* What failed, or whom we wait for, behind `before`; "" is neither. */
static void write_reason(const struct kinf_elector *elector, const char *before, const char *failed,
                         char text[KINF_ERROR_MESSAGE_SIZE]) KINF__REQUIRES(elector->lock)
{
    const struct kinf__claim *claim =
        kinf__election_blocker(&elector->election, kinf__clock_boot_ms());

    text[0] = '\0';
    if (elector->reason[0] != '\0')
        snprintf(text, KINF_ERROR_MESSAGE_SIZE, "%s%s%s", before, failed, elector->reason);
    else if (claim != NULL)
        snprintf(text, KINF_ERROR_MESSAGE_SIZE,
                 "%swaits for %s, which %s holds, and which has hashes of this shard", before,
                 claim->lease, claim->holder);
}

static int fail_wait(struct kinf_elector *elector, struct kinf_error *err)
    KINF__REQUIRES(elector->lock)
{
    const char *leader = kinf__election_leader(&elector->election);
    char reason[KINF_ERROR_MESSAGE_SIZE];

    if (elector->life > KINF__ELECTOR_RUNNING)
        return kinf__error_set(err, KINF_ERR_STOPPED, "the elector is stopped");
    write_reason(elector, "; ", "the last request failed: ", reason);
    return kinf__error_set(err, KINF_ERR_TIMEOUT, "the Lease %s/%s is %s%s%s", elector->name_space,
                           elector->name, leader[0] != '\0' ? "held by " : "nobody's", leader,
                           reason);
}

int kinf_elector_wait(struct kinf_elector *elector, int64_t timeout_ms, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, elector);

    int64_t until_ms = kinf__clock_add_ms(kinf__clock_boot_ms(), timeout_ms);
    int failed = 0;

    kinf__mutex_lock(&elector->lock);
    while (!kinf__elector_leads_locked(elector) && elector->life <= KINF__ELECTOR_RUNNING &&
           kinf__clock_boot_ms() < until_ms)
        kinf__elector_wait_until_locked(elector, until_ms);
    if (!kinf__elector_leads_locked(elector))
        failed = fail_wait(elector, err);
    kinf__mutex_unlock(&elector->lock);
    return failed;
}

void kinf_elector_status(struct kinf_elector *elector, struct kinf_elector_status *ret_status)
{
    KINF__REFUSE_NULL(NULL, , elector, ret_status);

    struct kinf_fence fence = { 0, 0 };
    bool is_leader = kinf_elector_fence(elector, &fence);

    *ret_status = (struct kinf_elector_status){ .leads = is_leader,
                                                .term = fence.term,
                                                .left_ms = fence.left_ms };
    kinf__mutex_lock(&elector->lock);
    snprintf(ret_status->leader, sizeof ret_status->leader, "%s",
             kinf__election_leader(&elector->election));
    write_reason(elector, "", "", ret_status->reason);
    ret_status->n_terms = elector->n_terms;
    ret_status->n_failures = elector->n_failures;
    kinf__mutex_unlock(&elector->lock);
}

const char *kinf_elector_identity(const struct kinf_elector *elector)
{
    KINF__REFUSE_NULL(NULL, "", elector);
    return elector->identity;
}
