/*
 * A queue of keys that are to be worked on: what stands between handlers, which may not take long,
 * and the workers of a controller.
 *
 *     static void on_change(const struct kinf_object *old, const struct kinf_object *now, void *ctx)
 *     {
 *         struct kinf_error err = KINF_ERROR_INIT;
 *
 *         if (kinf_queue_add(ctx, kinf_object_key(now != NULL ? now : old), &err) < 0)
 *             fprintf(stderr, "%s\n", err.message);
 *     }
 *
 *     static void *work(void *ctx)                 // on as many threads as it takes
 *     {
 *         struct kinf_queue *queue = ctx;
 *         const char *key;
 *
 *         while (kinf_queue_get(queue, KINF_FOREVER, &key, NULL) == 0) {
 *             struct kinf_error err = KINF_ERROR_INIT;
 *
 *             if (make_it_so(key, &err) == 0)
 *                 kinf_queue_forget(queue, key);
 *             else
 *                 (void)kinf_queue_add_failed(queue, key, &err, NULL);  // fails only at the end
 *             kinf_queue_done(queue, key);         // last: the key is the queue's
 *         }
 *         return NULL;
 *     }
 *
 * and at the end kinf_queue_drain() or kinf_queue_shut_down(), the workers are joined, and
 * kinf_queue_free().
 *
 * Guarantees:
 *   - A key is never with two workers at once, and waits at most once. Added while it waits it keeps
 *     its place; added while it is in process it waits again when that is done, once.
 *   - Keys leave by priority, those of one priority in the order in which they were added. There is
 *     no aging: while keys of a higher priority never end, those of a lower one wait. A key that
 *     waits and is added with a higher priority moves behind those of that one; a lower one changes
 *     nothing.
 *   - A key that is added for later waits beside all of this: added twice for later, the earlier
 *     time (and the higher priority) counts; added for now meanwhile, it comes now and again then.
 *     It never comes early; those of the same millisecond come in any order.
 *   - Time is monotonic: a clock that is set changes nothing.
 *   - Only a key that the queue does not have takes memory: 98 bytes (of a 64-bit machine), its
 *     length, a pointer or two of the table and what malloc rounds: 154 in all for one of 37 bytes.
 *     It is given back when the key neither waits nor is in process nor is for later, and was not
 *     added by the rate limit since it was forgotten. Lack of memory changes nothing.
 *   - There are no threads: who waits in kinf_queue_get() also waits for what is due.
 *
 * Mirrors: workqueue.TypedRateLimitingInterface, and controller-runtime's priorityqueue.
 * Differences: the priorities are three, and a key that is lifted moves to the end of its new one;
 * what is for later and what waits are two things, as in client-go's; a drain ends when no key is
 * left (upstream's: when none is in process); done of what is not in process is refused.
 * Threads: any thread.
 */
#ifndef KINFORMER_QUEUE_H
#define KINFORMER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/api.h>
#include <kinformer/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kinf_queue;

/* X(enumerator, value, name, for what) */
#define KINF_PRIORITIES(X)                                                                         \
    X(KINF_PRIORITY_LOW, -1, "low", "what is likely right already: the first list, a resync")      \
    X(KINF_PRIORITY_NORMAL, 0, "normal", "what changed")                                           \
    X(KINF_PRIORITY_HIGH, 1, "high", "what must not wait behind it")

enum kinf_priority {
#define X(priority, value, name, what) priority = value,
    KINF_PRIORITIES(X)
#undef X
};
#define KINF_N_PRIORITIES 3

/* The name of the list above; never NULL. */
KINF_API const char *kinf_priority_to_string(enum kinf_priority priority);

/* All zero but `size` is the default. */
struct kinf_queue_options {
    size_t size;      /* of this struct: KINF_QUEUE_OPTIONS_INIT sets it */
    const char *name; /* of its metrics; NULL: it is left out of them; copied */

    /* The rate limit: how long a key waits that is added by it is the longest of these three, where
     * n is how often it was added by it before, since it was forgotten. */

    /* Doubled n times. Default 0: 5; negative: this one is none. */
    int64_t backoff_base_ms;
    int64_t backoff_max_ms; /* default 0: 1,000,000 */

    /* The first n_fast times fast_ms, then slow_ms. Default 0, all three: none. */
    int64_t fast_ms;
    int64_t slow_ms;
    unsigned n_fast;

    /* So long that all keys together come at `keys_per_second` (default 0: 10; negative: this one
     * is none), and after a rest `burst` of them at once (default 0: 100). */
    int burst;
    double keys_per_second;

    int64_t max_wait_ms; /* never longer than this; default 0: no such bound */
};
#define KINF_QUEUE_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct kinf_queue_options), NULL, 0, 0, 0, 0, 0, 0, 0, 0                            \
    }

/* `options` NULL: the defaults. Errors: KINF_ERR_INVALID (a negative time), KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_queue_new(const struct kinf_queue_options *options,
                                            struct kinf_queue **ret_queue, struct kinf_error *err);
/* With all of its keys. Refused while somebody waits in kinf_queue_get() or kinf_queue_drain();
 * nobody may call anything of it any more. NULL is allowed. */
KINF_API void kinf_queue_free(struct kinf_queue *queue);
KINF_API void kinf_queue_free_ptr(struct kinf_queue **queue);
#define kinf_auto_queue __attribute__((cleanup(kinf_queue_free_ptr)))

/* --- adding --- */

/* Adds a key, any text, which is copied. Errors of all: KINF_ERR_STOPPED (shut down),
 * KINF_ERR_NO_MEMORY. Mirrors: Interface.Add. */
KINF_API KINF_MUST_CHECK int kinf_queue_add(struct kinf_queue *queue, const char *key,
                                            struct kinf_error *err);
/* When so much time has passed; 0 or less: now. Mirrors: DelayingInterface.AddAfter. */
KINF_API KINF_MUST_CHECK int kinf_queue_add_after(struct kinf_queue *queue, const char *key,
                                                  int64_t delay_ms, struct kinf_error *err);
/* When the rate limit says so. Mirrors: RateLimitingInterface.AddRateLimited. */
KINF_API KINF_MUST_CHECK int kinf_queue_add_rate_limited(struct kinf_queue *queue, const char *key,
                                                         struct kinf_error *err);

struct kinf_queue_add_options {
    size_t size; /* of this struct: KINF_QUEUE_ADD_OPTIONS_INIT sets it */
    int64_t delay_ms;
    enum kinf_priority priority;
    bool is_rate_limited; /* with delay_ms: the longer of both */
};
#define KINF_QUEUE_ADD_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct kinf_queue_add_options), 0, KINF_PRIORITY_NORMAL, false                      \
    }
/* All of it. Errors besides: KINF_ERR_INVALID (no such priority). Mirrors:
 * PriorityQueue.AddWithOpts. */
KINF_API KINF_MUST_CHECK int kinf_queue_add_with(struct kinf_queue *queue, const char *key,
                                                 const struct kinf_queue_add_options *options,
                                                 struct kinf_error *err);

/* What was added by the rate limit so far does not count any more: it begins anew. Of any key, at
 * any time; what waits goes on waiting. Mirrors: RateLimitingInterface.Forget. */
KINF_API void kinf_queue_forget(struct kinf_queue *queue, const char *key);
/* How often it was added by the rate limit since it was forgotten. Mirrors:
 * RateLimitingInterface.NumRequeues. */
KINF_API unsigned kinf_queue_n_requeues(struct kinf_queue *queue, const char *key);

/* --- working --- */

/* Waits for a key, at most until `timeout_ms` have passed, and takes it into process. It is the
 * queue's, valid until it is given back by kinf_queue_done(). Errors: KINF_ERR_TIMEOUT,
 * KINF_ERR_STOPPED (shut down, and none is left). Mirrors: Interface.Get. */
KINF_API KINF_MUST_CHECK int kinf_queue_get(struct kinf_queue *queue, int64_t timeout_ms,
                                            const char **ret_key, struct kinf_error *err);
/* The priority with which a key came that is in process: to add it again by. KINF_PRIORITY_NORMAL
 * of any other. Mirrors: PriorityQueue.GetWithPriority. */
KINF_API enum kinf_priority kinf_queue_priority(struct kinf_queue *queue, const char *key);
/* Adds a key that is in process again, with the priority with which it came, when its failure says:
 *   KINF_ERR_INVALID, kinf_error_is_invalid()   not at all: it would fail again, until it is added
 *                                               anew; it is forgotten
 *   one with retry_after_ms                     by the rate limit, and not before that
 *   any other, or NULL                          by the rate limit
 * A conflict is any other: that the cache has caught up meanwhile is the caller's to see to. */
KINF_API KINF_MUST_CHECK int kinf_queue_add_failed(struct kinf_queue *queue, const char *key,
                                                   const struct kinf_error *failure,
                                                   struct kinf_error *err);
/* The key was worked on, well or not. One that is not in process is misuse: refused and logged.
 * Mirrors: Interface.Done. */
KINF_API void kinf_queue_done(struct kinf_queue *queue, const char *key);

/* --- the end --- */

/* From now on nothing can be added, and what was added for later is dropped. What waits is still
 * given out (also what was added again while it was in process); then kinf_queue_get() is
 * KINF_ERR_STOPPED. Ends waits in kinf_queue_drain(). Mirrors: Interface.ShutDown. */
KINF_API void kinf_queue_shut_down(struct kinf_queue *queue);
/* Shuts down, and waits until the workers have done all that was left. Not for a worker that has a
 * key: that would wait for itself. Errors: KINF_ERR_TIMEOUT (the message says how much is left),
 * KINF_ERR_STOPPED (kinf_queue_shut_down() was called meanwhile). Mirrors:
 * Interface.ShutDownWithDrain. */
KINF_API KINF_MUST_CHECK int kinf_queue_drain(struct kinf_queue *queue, int64_t timeout_ms,
                                              struct kinf_error *err);
/* Mirrors: Interface.ShuttingDown. */
KINF_API bool kinf_queue_is_shut_down(struct kinf_queue *queue);

/* --- what can be asked --- */

/* How many keys wait to be got; not those in process, nor those for later. Mirrors: Interface.Len.
 */
KINF_API size_t kinf_queue_len(struct kinf_queue *queue);

struct kinf_queue_status {
    size_t n_waiting[KINF_N_PRIORITIES]; /* to be got, the lowest priority first */
    size_t n_later;                      /* for later, whether they wait or are in process, too */
    size_t n_in_process;
    size_t n_keys;   /* all of these, and those that were not forgotten */
    uint64_t n_adds; /* keys that began to wait */
    uint64_t n_gets;
    uint64_t n_done;
    uint64_t n_retries;    /* added for later or by the rate limit */
    int64_t wait_ms;       /* in all, of what was got: from being added, or due, until then */
    int64_t work_ms;       /* in all, of what is done: from being got until then */
    int64_t unfinished_ms; /* in all, of what is in process */
    int64_t longest_ms;    /* of that which has been longest in process; 0: none is */
    bool is_shut_down;
    uint64_t reserved[4]; /* 0: for members to come */
};
KINF_API void kinf_queue_status(struct kinf_queue *queue, struct kinf_queue_status *ret_status);

/* The metrics of queues in Prometheus' text form, with client-go's names (workqueue_depth and so
 * on) and labels; histograms have the buckets of kinformer/metrics.h's, 1 ms to 10 s. Queues
 * without a name are left out. The caller frees the text by free(). Errors: KINF_ERR_EXISTS (two
 * have the same name), KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_queue_metrics_text(struct kinf_queue *const *queues,
                                                     size_t n_queues, char **ret_text,
                                                     struct kinf_error *err);

#ifdef __cplusplus
}
#endif
#endif
