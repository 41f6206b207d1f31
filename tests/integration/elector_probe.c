/*
 * A process that acts while it leads: a line each few milliseconds, appended to a file that others
 * append to as well.
 *
 *     elector-probe IDENTITY NAMESPACE LEASE FILE LEASE_MS RENEW_MS RETRY_MS
 *
 * "act IDENTITY TERM MS" has the time of before it asked whether it leads, so that a process that is
 * halted in between writes no wrong line. "started", "stopped", "leader" are the callbacks.
 */
#include <kinformer/kinformer.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS 3000000

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

static int run(struct kinf_elector *elector, struct kinf_error *err)
{
    pthread_t actor;
    int rc = kinf_elector_start(elector, err);

    if (rc < 0)
        return rc;
    if (pthread_create(&actor, NULL, act, elector) != 0)
        abort();
    rc = kinf_run_until_signal(err);
    if (rc == 0)
        rc = kinf_elector_stop(elector, err);
    is_over = true;
    pthread_join(actor, NULL);
    return rc;
}

int main(int argc, char **argv)
{
    kinf_auto_client struct kinf_client *client = NULL;
    kinf_auto_elector struct kinf_elector *elector = NULL;
    struct kinf_elector_options options = KINF_ELECTOR_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;

    if (argc != 8)
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
    if (file < 0 || kinf_client_new(NULL, &client, &err) < 0 ||
        kinf_elector_new(client, &options, &elector, &err) < 0 || run(elector, &err) < 0) {
        fprintf(stderr, "elector-probe: %s\n", err.message);
        return 1;
    }
    return 0;
}
