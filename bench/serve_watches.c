/* See serve_watches.h. */
#include "serve_watches.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve_client.h"

#define IDLE_MS        180000 /* who is told nothing for so long has lost what is missing */
#define LINGER_MS      500    /* so long behind the last event may one that is repeated come */
#define RETRY_NS       (100 * MS)
#define RV_KEY         "\"resourceVersion\":\""
#define EVENT_KEY      "\"bench.example.com/event\":\""
#define INITIAL_EVENTS "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"

struct watch {
    struct client client;
    unsigned node;
    uint64_t rv;         /* the last that it knows */
    unsigned char *seen; /* of its events, a byte each */
    uint64_t n_left;     /* of these */
    bool is_state;       /* what comes is the state, up to a bookmark */
    bool is_up;          /* its answer has begun */
    int64_t retry_ns;    /* when to connect again; 0: it is connected */
};

struct load {
    const struct watches_options *options;
    int epoll;
    uint64_t stride; /* between a watch's events */
    struct watch *watches;
    unsigned n_open, n_up, n_state; /* watches that miss events, are up, wait for the state's end */
    int64_t cut_ns, back_ns;        /* the first connection ended; the server answered again */
    int64_t first_ns, last_ns;      /* of what was told */
    uint64_t n_seen, n_repeated, n_reordered, n_strange, n_cut, n_refused, n_restated;
    int refusal; /* the status of the last one; 0: no answer */
    double *ms;
    size_t n_ms, max_ms;
};

static uint64_t end_of(const struct load *load)
{
    return load->options->first + load->options->n_events;
}

static uint64_t count_own(const struct load *load, const struct watch *watch)
{
    uint64_t first = load->options->first;

    first += (watch->node + load->stride - first % load->stride) % load->stride;
    return first < end_of(load) ? (end_of(load) - first + load->stride - 1) / load->stride : 0;
}

static void connect_watch(struct load *load, struct watch *watch)
{
    char target[512], node[64] = "";

    if (load->options->n_nodes != 0)
        snprintf(node, sizeof node, "&fieldSelector=spec.nodeName%%3Dnode-%0*u",
                 load->options->rate != 0 ? 5 : 3, watch->node);
    snprintf(target, sizeof target,
             "/api/v1/pods?watch=1&allowWatchBookmarks=1&resourceVersion=%" PRIu64 "%s%s",
             watch->rv, watch->is_state ? INITIAL_EVENTS : "", node);
    watch->retry_ns = 0;
    client_open(&watch->client, load->epoll, watch, target);
}

static void set_state(struct load *load, struct watch *watch, bool is_state)
{
    load->n_state = load->n_state + is_state - watch->is_state;
    watch->is_state = is_state;
}

static void set_up(struct load *load, struct watch *watch, bool is_up)
{
    load->n_up = load->n_up + is_up - watch->is_up;
    watch->is_up = is_up;
}

static void disconnected(struct load *load, struct watch *watch)
{
    int64_t now_ns = kinf__clock_now_ns();

    load->n_cut += watch->is_up;
    load->n_refused += !watch->is_up;
    load->refusal = watch->is_up ? load->refusal : watch->client.status;
    if (watch->is_up && load->cut_ns == 0)
        load->cut_ns = now_ns;
    if (load->cut_ns == 0 && load->n_refused > load->options->n_watches) {
        fprintf(stderr, "bench_serve: the server refuses watches: %d %.300s\n",
                watch->client.status, kinf__buffer_cstr(&watch->client.body));
        exit(1);
    }
    set_up(load, watch, false);
    client_close(&watch->client);
    watch->retry_ns = now_ns + RETRY_NS;
}

/* The first one alone looks whether a server that ended is back; then all connect at once. */
static void retry_due(struct load *load)
{
    int64_t now_ns = kinf__clock_now_ns();
    unsigned n = load->watches->is_up ? load->options->n_watches : 1;

    for (unsigned i = 0; load->n_up != load->options->n_watches && i < n; i++)
        if (load->watches[i].retry_ns != 0 && load->watches[i].retry_ns <= now_ns)
            connect_watch(load, &load->watches[i]);
}

/* --- what a watch is told --- */

static const char *behind(const char *line, size_t len, const char *key)
{
    const char *at = memmem(line, len, key, strlen(key));

    return at != NULL ? at + strlen(key) : NULL;
}

static void unexpected(struct load *load, const char *line, size_t len)
{
    if (load->n_strange++ == 0)
        fprintf(stderr, "bench_serve: unexpected: %.*s\n", (int)(len < 300 ? len : 300), line);
}

static void note_latency(struct load *load, int64_t sent_ns)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (load->n_ms < load->max_ms)
        load->ms[load->n_ms++] = (double)(now.tv_sec * 1000 * MS + now.tv_nsec - sent_ns) / 1e6;
}

/* Which event this is, and when it was, or should have been, sent. */
static bool read_event(const struct load *load, const struct watch *watch, const char *line,
                       size_t len, uint64_t *ret_k, int64_t *ret_sent_ns)
{
    const struct watches_options *options = load->options;
    const char *event = behind(line, len, EVENT_KEY);

    if (options->rate == 0)
        return event != NULL && sscanf(event, "%" SCNu64 ".%" SCNd64, ret_k, ret_sent_ns) == 2 &&
               *ret_k >= options->first;
    if (watch->is_state)
        return false;
    *ret_k = watch->rv - options->rv - 1;
    *ret_sent_ns =
        options->began_ns + (int64_t)((double)(*ret_k + 1) * 1e9 / (double)options->rate);
    return true;
}

static void take_change(struct load *load, struct watch *watch, const char *line, size_t len)
{
    uint64_t k = 0, at;
    int64_t sent_ns = 0;

    if (!read_event(load, watch, line, len, &k, &sent_ns)) {
        if (!watch->is_state)
            unexpected(load, line, len);
        return;
    }
    if (k < load->options->first)
        return; /* tests/replay begins before all watches are open */
    if (k >= end_of(load) || k % load->stride != watch->node) {
        unexpected(load, line, len);
        return;
    }
    at = (k - load->options->first) / load->stride;
    load->last_ns = kinf__clock_now_ns();
    load->first_ns = load->first_ns != 0 ? load->first_ns : load->last_ns;
    load->n_seen++;
    load->n_repeated += watch->seen[at] && !watch->is_state;
    if (watch->seen[at])
        return;
    watch->seen[at] = 1;
    if (!watch->is_state)
        note_latency(load, sent_ns);
    if (--watch->n_left == 0)
        load->n_open--;
}

static void take_version(struct load *load, struct watch *watch, const char *line, size_t len,
                         bool may_be_same)
{
    const char *text = behind(line, len, RV_KEY);
    uint64_t rv = text != NULL ? strtoull(text, NULL, 10) : 0;

    load->n_reordered += rv < watch->rv || (rv == watch->rv && !may_be_same);
    watch->rv = rv;
}

static bool starts(const char *line, size_t len, const char *text)
{
    return len >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

/* Returns whether the watch goes on. */
static bool take_line(struct load *load, struct watch *watch, const char *line, size_t len)
{
    if (starts(line, len, "{\"type\":\"BOOKMARK\"")) {
        take_version(load, watch, line, len, true);
        if (behind(line, len, "k8s.io/initial-events-end") != NULL)
            set_state(load, watch, false);
    } else if (watch->is_state && starts(line, len, "{\"type\":\"ADDED\"")) {
        take_change(load, watch, line, len);
    } else if (starts(line, len, "{\"type\":\"MODIFIED\"")) {
        take_version(load, watch, line, len, false);
        take_change(load, watch, line, len);
    } else if (starts(line, len, "{\"type\":\"ERROR\"") &&
               behind(line, len, "\"code\":410") != NULL) {
        load->n_restated++;
        set_state(load, watch, true);
        watch->rv = 0;
        return false;
    } else {
        unexpected(load, line, len);
    }
    return true;
}

static bool take_lines(struct load *load, struct watch *watch)
{
    struct kinf__buffer *body = &watch->client.body;
    bool goes_on = true;
    size_t done = 0;
    const char *end;

    while (goes_on && done < body->len &&
           (end = memchr(body->bytes + done, '\n', body->len - done)) != NULL) {
        size_t len = (size_t)(end - (body->bytes + done));

        goes_on = take_line(load, watch, body->bytes + done, len);
        done += len + 1;
    }
    kinf__buffer_consume(body, done);
    return goes_on;
}

static void step_watch(struct load *load, struct watch *watch)
{
    int n = client_step(&watch->client, load->epoll, watch);

    if (n > 0 && !watch->is_up && watch->client.status == 200) {
        set_up(load, watch, true);
        if (load->cut_ns != 0 && load->back_ns == 0)
            load->back_ns = kinf__clock_now_ns();
    }
    if (n > 0 && watch->is_up && !take_lines(load, watch)) {
        set_up(load, watch, false);
        client_close(&watch->client);
        connect_watch(load, watch);
    } else if (n < 0 || watch->client.is_over) {
        disconnected(load, watch);
    }
}

static void step_all(struct load *load)
{
    struct epoll_event events[MAX_EVENTS];
    int n = client_wait(load->epoll, events, 100);

    for (int i = 0; i < n; i++)
        step_watch(load, events[i].data.ptr);
    retry_due(load);
}

static bool is_settled(const struct load *load)
{
    return load->n_open == 0 && load->n_state == 0 && load->n_up == load->options->n_watches;
}

/* --- the server's side --- */

static double server_cpu_s(int pid)
{
    char path[64], line[1024];
    unsigned long user = 0, system = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (file == NULL || fgets(line, sizeof line, file) == NULL ||
        sscanf(strrchr(line, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
               &user, &system) != 2)
        die(path);
    fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double server_pss_kb(int pid)
{
    char path[64], line[256];
    unsigned long pss = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    file = fopen(path, "re");
    if (file == NULL)
        die(path);
    while (pss == 0 && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "Pss: %lu", &pss);
    fclose(file);
    return (double)pss;
}

struct usage {
    int64_t ns;
    double cpu_s, pss_kb;
};

static struct usage usage_of(int pid)
{
    struct usage usage = { .ns = kinf__clock_now_ns() };

    if (pid != 0) {
        usage.cpu_s = server_cpu_s(pid);
        usage.pss_kb = server_pss_kb(pid);
    }
    return usage;
}

/* --- the course --- */

static void init_watch(struct load *load, unsigned i)
{
    struct watch *watch = &load->watches[i];

    watch->node = load->options->n_nodes != 0 ? i % load->options->n_nodes : 0;
    watch->rv = load->options->rate != 0 ? 0 : load->options->rv;
    set_state(load, watch, load->options->rate != 0);
    watch->n_left = count_own(load, watch);
    watch->seen = allocate(watch->n_left + 1, 1);
    load->n_open += watch->n_left != 0;
    load->max_ms += watch->n_left;
    connect_watch(load, watch);
}

static void open_all(struct load *load)
{
    unsigned n = load->options->n_watches;

    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    load->watches = allocate(n, sizeof *load->watches);
    for (unsigned i = 0; i < n; i++) {
        init_watch(load, i);
        /* Here a server may greet them one after another; it may not when it was restarted. */
        while (i + 1 - load->n_up > MAX_EVENTS)
            step_all(load);
    }
    while (load->n_up < n)
        step_all(load);
    load->ms = allocate(load->max_ms + 1, sizeof *load->ms);
    load->n_refused = 0;
}

static uint64_t count_lost(const struct load *load)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < load->options->n_watches; i++)
        n += load->watches[i].n_left;
    return n;
}

static void report(struct load *load, const struct usage *before, const struct usage *open,
                   const struct usage *end)
{
    double n = load->options->n_watches, median = median_of(load->ms, load->n_ms);

    printf("watches=%.0f delivered=%" PRIu64 " lost=%" PRIu64 " repeated=%" PRIu64
           " reordered=%" PRIu64 " unexpected=%" PRIu64 " cut=%" PRIu64 " open_s=%.1f",
           n, load->n_seen, count_lost(load), load->n_repeated, load->n_reordered, load->n_strange,
           load->n_cut, (double)(open->ns - before->ns) / 1e9);
    printf(" delivered_per_s=%.0f p50_ms=%.1f p99_ms=%.1f",
           (double)load->n_seen * 1e9 / (double)(load->last_ns - load->first_ns + 1), median,
           p99_of(load->ms, load->n_ms));
    if (load->options->pid != 0)
        printf(" cores=%.3f kb_per_watch=%.1f kb_per_watch_then=%.1f",
               (end->cpu_s - open->cpu_s) * 1e9 / (double)(end->ns - open->ns),
               (open->pss_kb - before->pss_kb) / n, (end->pss_kb - before->pss_kb) / n);
    if (load->cut_ns != 0)
        printf(" away_s=%.1f caught_up_s=%.2f refused=%" PRIu64 " refusal=%d restated=%" PRIu64,
               (double)(load->back_ns - load->cut_ns) / 1e9,
               (double)(end->ns - load->back_ns) / 1e9, load->n_refused, load->refusal,
               load->n_restated);
    printf("\n");
}

static void release(struct load *load)
{
    for (unsigned i = 0; i < load->options->n_watches; i++) {
        client_release(&load->watches[i].client);
        free(load->watches[i].seen);
    }
    close(load->epoll);
    free(load->watches);
    free(load->ms);
}

int run_watches(const struct watches_options *options)
{
    struct load load = { .options = options,
                         .stride = options->n_nodes != 0 ? options->n_nodes : 1 };
    struct usage before = usage_of(options->pid), open, end;
    int64_t linger_ns;
    int failed;

    open_all(&load);
    open = usage_of(options->pid);
    printf("ready\n");
    fflush(stdout);
    load.last_ns = open.ns;
    while (!is_settled(&load) && kinf__clock_now_ns() - load.last_ns < IDLE_MS * MS)
        step_all(&load);
    end = usage_of(options->pid);
    linger_ns = end.ns + LINGER_MS * MS;
    while (kinf__clock_now_ns() < linger_ns)
        step_all(&load);
    report(&load, &before, &open, &end);
    failed = count_lost(&load) + load.n_repeated + load.n_reordered + load.n_strange != 0;
    release(&load);
    return failed;
}
