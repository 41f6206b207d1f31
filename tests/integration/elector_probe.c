/*
 * A process that acts while it leads: a line each few milliseconds, appended to a file that others
 * append to as well.
 *
 *     elector-probe IDENTITY NAMESPACE LEASE FILE LEASE_MS RENEW_MS RETRY_MS [CONFIGMAP]
 *
 * "act IDENTITY TERM MS" has the time of before it asked whether it leads, so that a process that is
 * halted in between writes no wrong line. "started", "stopped", "leader" are the callbacks.
 *
 * With a ConfigMap it also writes its term into that, unless a later one stands there, and in the
 * version that it has seen: "wrote IDENTITY TERM VERSION".
 */
#include <kinformer/kinformer.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS       3000000
#define WRITE_PAUSE_NS 20000000

static int file;
static const char *identity;
static atomic_bool is_over;

static long long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void note(const char *what, const char *text, long long time_ms)
{
    char line[400];
    int len = snprintf(line, sizeof line, "%s %s %s %lld\n", what, identity, text, time_ms);

    if (write(file, line, (size_t)len) != len)
        abort();
}

static void on_started(void *ctx)
{
    (void)ctx;
    note("started", "-", now_ms());
}

static void on_stopped(void *ctx)
{
    (void)ctx;
    note("stopped", "-", now_ms());
}

static void on_leader(const char *leader, void *ctx)
{
    (void)ctx;
    note("leader", leader[0] != '\0' ? leader : "-", now_ms());
}

static void *act(void *ctx)
{
    struct kinf_elector *elector = ctx;
    const struct timespec pause = { 0, PAUSE_NS };

    for (; !is_over; nanosleep(&pause, NULL)) {
        long long time_ms = now_ms();
        struct kinf_fence fence;
        char term[24];

        if (!kinf_elector_fence(elector, &fence))
            continue;
        snprintf(term, sizeof term, "%lld", (long long)fence.term);
        note("act", term, time_ms);
    }
    return NULL;
}

/* --- with a fence --- */

struct writer {
    struct kinf_client *client;
    struct kinf_elector *elector;
    const char *name_space, *name;
};

/* The ConfigMap as the answer to a request has it; NULL: it failed. */
static const struct kinf_object *ask(const struct writer *writer, enum kinf_verb verb,
                                     struct kinf_str body)
{
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    struct kinf_request request = KINF_REQUEST_INIT;
    const struct kinf_object *object = NULL;

    request.verb = verb;
    request.name_space = writer->name_space;
    request.name = writer->name;
    request.body = body;
    if (kinf_client_find_type(writer->client, "configmaps", &request.type, NULL) < 0 ||
        kinf_client_request(writer->client, &request, &response, NULL) < 0 ||
        kinf_object_new_from_json(request.type, response.body, response.len, &object, NULL) < 0)
        return NULL;
    return object;
}

static void write_fenced(const struct writer *writer, const struct kinf_fence *fence)
{
    kinf_auto_object const struct kinf_object *seen =
        ask(writer, KINF_VERB_GET, (struct kinf_str){ NULL, 0 });
    kinf_auto_object const struct kinf_object *written = NULL;
    char term[24] = "-1", body[256];

    if (seen == NULL)
        return;
    (void)!kinf_object_get_string(seen, "data.term", term, sizeof term);
    if (atoll(term) > fence->term)
        return;
    snprintf(term, sizeof term, "%lld", (long long)fence->term);
    snprintf(
        body, sizeof body,
        "{\"metadata\":{\"resourceVersion\":\"%s\"},\"data\":{\"term\":\"%s\",\"at\":\"%lld\"}}",
        kinf_object_resource_version(seen), term, now_ms());
    written = ask(writer, KINF_VERB_MERGE_PATCH, kinf_str_from(body));
    if (written != NULL)
        note("wrote", term, atoll(kinf_object_resource_version(written)));
}

static void *keep_writing(void *ctx)
{
    const struct writer *writer = ctx;
    const struct timespec pause = { 0, WRITE_PAUSE_NS };
    struct kinf_fence fence;

    for (; !is_over; nanosleep(&pause, NULL)) {
        if (kinf_elector_fence(writer->elector, &fence))
            write_fenced(writer, &fence);
    }
    return NULL;
}

static int run(struct kinf_client *client, struct kinf_elector *elector, struct writer *writer,
               struct kinf_error *err)
{
    pthread_t actor, scribe;
    int rc = kinf_elector_start(elector, err);

    if (rc < 0)
        return rc;
    writer->client = client;
    writer->elector = elector;
    if (pthread_create(&actor, NULL, act, elector) != 0 ||
        (writer->name != NULL && pthread_create(&scribe, NULL, keep_writing, writer) != 0))
        abort();
    rc = kinf_run_until_signal(err);
    if (rc == 0)
        rc = kinf_elector_stop(elector, err);
    is_over = true;
    pthread_join(actor, NULL);
    if (writer->name != NULL)
        pthread_join(scribe, NULL);
    return rc;
}

int main(int argc, char **argv)
{
    kinf_auto_client struct kinf_client *client = NULL;
    kinf_auto_elector struct kinf_elector *elector = NULL;
    struct kinf_elector_options options = KINF_ELECTOR_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    struct writer writer;

    if (argc != 8 && argc != 9)
        return 2;
    kinf_log_to_stderr();
    identity = options.identity = argv[1];
    options.name_space = argv[2];
    options.name = argv[3];
    file = open(argv[4], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    options.lease_ms = atoi(argv[5]);
    options.renew_deadline_ms = atoi(argv[6]);
    options.retry_ms = atoi(argv[7]);
    options.release_on_stop = true;
    options.on_started = on_started;
    options.on_stopped = on_stopped;
    options.on_leader = on_leader;
    writer.name_space = argv[2];
    writer.name = argc == 9 ? argv[8] : NULL;
    if (file < 0 || kinf_client_new(NULL, &client, &err) < 0 ||
        kinf_elector_new(client, &options, &elector, &err) < 0 ||
        run(client, elector, &writer, &err) < 0) {
        fprintf(stderr, "elector-probe: %s\n", err.message);
        return 1;
    }
    return 0;
}
