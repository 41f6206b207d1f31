/*
 * Reviewers. Neighbours: authorizer.c hands out inquiries, inquiry.c writes and reads what is sent.
 */
#include "serve/reviewers.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/thread.h"
#include "rest/http.h"

/* A review takes milliseconds, so one would do: the others are for reviews that hang. */
#define N_REVIEWERS 4
#define REVIEW_MS   10000
#define MAX_ANSWER  (1u << 20)

struct reviewer {
    struct kinf__reviewers *reviewers;
    struct kinf__http *http;
    pthread_t thread;
    bool has_thread;
};

struct kinf__reviewers {
    kinf__review_next_cb *next;
    void *ctx;
    struct kinf__waker stop;
    struct reviewer items[N_REVIEWERS];
};

static int post(void *ctx, const char *target, struct kinf_str body, struct kinf__buffer *answer,
                struct kinf_error *err)
{
    struct kinf__http_body kept = { answer, MAX_ANSWER, 0 };
    const struct kinf__http_request request = { .method = "POST",
                                                .target = target,
                                                .body = body,
                                                .content_type = "application/json",
                                                .total_timeout_ms = REVIEW_MS,
                                                .on_body = kinf__http_body_keep,
                                                .ctx = &kept };

    return kinf__http_perform(ctx, &request, err);
}

static void *run(void *ctx)
{
    struct reviewer *reviewer = ctx;
    const struct kinf__review_sender sender = { post, reviewer->http };

    while (reviewer->reviewers->next(reviewer->reviewers->ctx, &sender))
        continue;
    return NULL;
}

int kinf__reviewers_new(struct kinf_client *client, kinf__review_next_cb *next, void *ctx,
                        struct kinf__reviewers **ret_reviewers, struct kinf_error *err)
{
    struct kinf__reviewers *reviewers = calloc(1, sizeof *reviewers);
    int failed;

    if (reviewers == NULL)
        return kinf__error_no_memory(err);
    failed = kinf__waker_init(&reviewers->stop, err);
    if (failed < 0) {
        free(reviewers);
        return failed;
    }
    reviewers->next = next;
    reviewers->ctx = ctx;
    for (size_t i = 0; failed == 0 && i < N_REVIEWERS; i++) {
        reviewers->items[i].reviewers = reviewers;
        failed = kinf__http_new(client, &reviewers->stop, &reviewers->items[i].http, err);
    }
    if (failed < 0) {
        kinf__reviewers_free(reviewers);
        return failed;
    }
    *ret_reviewers = reviewers;
    return 0;
}

int kinf__reviewers_start(struct kinf__reviewers *reviewers, struct kinf_error *err)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < N_REVIEWERS; i++) {
        struct reviewer *reviewer = &reviewers->items[i];

        failed = kinf__thread_start(&reviewer->thread, "authorizer", run, reviewer, err);
        reviewer->has_thread = failed == 0;
    }
    return failed;
}

void kinf__reviewers_free(struct kinf__reviewers *reviewers)
{
    if (reviewers == NULL)
        return;
    kinf__waker_set(&reviewers->stop);
    for (size_t i = 0; i < N_REVIEWERS; i++) {
        if (reviewers->items[i].has_thread)
            pthread_join(reviewers->items[i].thread, NULL);
        kinf__http_free(reviewers->items[i].http);
    }
    kinf__waker_release(&reviewers->stop);
    free(reviewers);
}
