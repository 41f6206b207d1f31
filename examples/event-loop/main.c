/*
 * Informers in a program's own event loop, here poll(): what callbacks count, and what answers from
 * it, is all on one thread, so nothing needs a lock. Each line of input is answered by a line, once
 * everything has been counted; the end of the input ends the program.
 *
 *     event-loop
 */
#include <kinformer/kinformer.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { PODS, NODES, N_TYPES };
static const char *const resources[N_TYPES] = { "pods", "nodes" };

struct counter {
    size_t n_objects;
    bool is_synced;
};

static void count(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    struct counter *counter = ctx;

    counter->n_objects += old == NULL;
    counter->n_objects -= object == NULL;
}

static void on_synced(void *ctx)
{
    ((struct counter *)ctx)->is_synced = true;
}

static int watch(struct kinf_client *client, const char *resource, struct counter *counter,
                 struct kinf_informer **ret_informer, struct kinf_error *err)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    const char *const keeps[] = { "metadata.name" }; /* counting needs no more */

    options.resource = resource;
    options.keeps = keeps;
    options.n_keeps = 1;
    options.handler = (struct kinf_handler){
        .on_change = count, .on_synced = on_synced, .ctx = counter, .is_dispatched = true
    };
    return kinf_informer_new(client, &options, ret_informer, err) < 0 ||
                   kinf_informer_start(*ret_informer, err) < 0
               ? -1
               : 0;
}

/* False at the end of the input. */
static bool answer(const struct counter counters[N_TYPES])
{
    char input[256];
    ssize_t n = read(STDIN_FILENO, input, sizeof input);

    for (ssize_t i = 0; i < n; i++) {
        if (input[i] == '\n')
            printf("%zu pods, %zu nodes\n", counters[PODS].n_objects, counters[NODES].n_objects);
    }
    fflush(stdout);
    return n > 0;
}

static int loop(struct kinf_informer *const informers[N_TYPES],
                const struct counter counters[N_TYPES], struct kinf_error *err)
{
    struct pollfd fds[N_TYPES + 1] = { { .events = POLLIN },
                                       { .events = POLLIN },
                                       { -1, POLLIN, 0 } };

    for (int i = 0; i < N_TYPES; i++) {
        if (kinf_informer_fd(informers[i], &fds[i].fd, err) < 0)
            return -1;
    }
    for (;;) {
        if (counters[PODS].is_synced && counters[NODES].is_synced)
            fds[N_TYPES].fd = STDIN_FILENO; /* poll() passes over -1 */
        if (poll(fds, N_TYPES + 1, -1) < 0 && errno == EINTR)
            continue;
        for (int i = 0; i < N_TYPES; i++) {
            /* Some at a time: what is left is readable again, and others have their turn. */
            if (fds[i].revents != 0 && kinf_informer_dispatch(informers[i], 100, NULL, err) < 0)
                return -1;
        }
        if (fds[N_TYPES].revents != 0 && !answer(counters))
            return 0;
    }
}

int main(void)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct counter counters[N_TYPES] = { { 0, false }, { 0, false } };
    struct kinf_informer *informers[N_TYPES] = { NULL, NULL };
    kinf_auto_client struct kinf_client *client = NULL;
    int failed;

    kinf_log_to_stderr();
    failed = kinf_client_new(NULL, &client, &err);
    for (int i = 0; i < N_TYPES && failed == 0; i++)
        failed = watch(client, resources[i], &counters[i], &informers[i], &err);
    if (failed == 0)
        failed = loop(informers, counters, &err);
    if (failed < 0)
        fprintf(stderr, "event-loop: %s\n", err.message);
    for (int i = 0; i < N_TYPES; i++)
        kinf_informer_free(informers[i]);
    return failed < 0;
}
