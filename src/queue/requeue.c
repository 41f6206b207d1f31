/*
 * The longest of three waits. Neighbours: queue.c.
 */
#include "queue/requeue.h"

#include "base/error.h"

#define BASE_MS         5
#define MAX_MS          1000000
#define KEYS_PER_SECOND 10.0
#define BURST           100

int kinf__requeue_init(struct kinf__requeue *requeue, const struct kinf_queue_options *options,
                       struct kinf_error *err)
{
    if (options->backoff_max_ms < 0 || options->fast_ms < 0 || options->slow_ms < 0 ||
        options->max_wait_ms < 0)
        return kinf__error_set(err, KINF_ERR_INVALID, "a negative time in a queue's rate limit");
    *requeue = (struct kinf__requeue){
        .base_ms = options->backoff_base_ms != 0 ? options->backoff_base_ms : BASE_MS,
        .max_ms = options->backoff_max_ms != 0 ? options->backoff_max_ms : MAX_MS,
        .fast_ms = options->fast_ms,
        .slow_ms = options->slow_ms,
        .n_fast = options->n_fast,
        .max_wait_ms = options->max_wait_ms != 0 ? options->max_wait_ms : INT64_MAX,
    };
    kinf__rate_limit_init(
        &requeue->all, options->keys_per_second != 0 ? options->keys_per_second : KEYS_PER_SECOND,
        options->burst > 0 ? options->burst : BURST);
    return 0;
}

static int64_t doubled_ms(const struct kinf__requeue *requeue, unsigned n_times)
{
    if (requeue->base_ms < 0)
        return 0;
    return n_times < 63 && requeue->base_ms <= requeue->max_ms >> n_times
               ? requeue->base_ms << n_times
               : requeue->max_ms;
}

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t kinf__requeue_delay_ms(struct kinf__requeue *requeue, unsigned n_before, int64_t now_ms)
{
    int64_t own_ms = longer(doubled_ms(requeue, n_before),
                            n_before < requeue->n_fast ? requeue->fast_ms : requeue->slow_ms);
    int64_t turn_ms = 0, wait_ms;

    (void)kinf__rate_limit_take(&requeue->all, now_ms, INT64_MAX, &turn_ms);
    wait_ms = longer(own_ms, turn_ms);
    return wait_ms < requeue->max_wait_ms ? wait_ms : requeue->max_wait_ms;
}
