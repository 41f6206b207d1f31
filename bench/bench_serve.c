/*
 * The clients of bench/sidecar.py, on one thread, of kinformerd or of a kube-apiserver: `get` asks
 * again and again, `watch` holds thousands of watches (serve_watches.h), `attack` is hostile.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "serve_client.h"
#include "serve_watches.h"

#define N_SILENT    1000
#define N_LISTS     50
#define N_SELECTORS 20
#define N_TERMS     3000

/* --- get: each client one request after another, with pauses --- */

struct asker {
    struct client client;
    int64_t due_ns; /* when the next request begins; 0: one is under way */
    int64_t began_ns;
    size_t n_bytes;
    unsigned n_left;
};

struct asking {
    int epoll;
    const char *target;
    int64_t pause_ns;
    unsigned n_open; /* askers that are not through */
    double *ms;
    size_t n_answers, n_failed, n_bytes;
};

static void begin_asking(struct asking *all, struct asker *asker, int64_t now_ns)
{
    asker->began_ns = now_ns;
    asker->due_ns = 0;
    asker->n_bytes = 0;
    if (asker->client.fd < 0)
        client_open(&asker->client, all->epoll, asker, all->target);
    else
        client_ask(&asker->client, all->epoll, asker, all->target);
}

static void answered(struct asking *all, struct asker *asker, bool is_good)
{
    int64_t now_ns = kinf__clock_now_ns();

    if (is_good) {
        all->ms[all->n_answers++] = (double)(now_ns - asker->began_ns) / 1e6;
        all->n_bytes = asker->n_bytes;
    } else {
        all->n_failed++;
        client_close(&asker->client);
    }
    asker->due_ns =
        asker->began_ns + all->pause_ns > now_ns ? asker->began_ns + all->pause_ns : now_ns;
    if (--asker->n_left == 0) {
        client_close(&asker->client);
        all->n_open--;
    }
}

static void step_asker(struct asking *all, struct asker *asker)
{
    int n = client_step(&asker->client, all->epoll, asker);

    asker->n_bytes += asker->client.body.len;
    asker->client.body.len = 0;
    if (n < 0 || asker->client.is_over)
        answered(all, asker, n >= 0 && asker->client.status == 200);
}

/* Begins what is due, and returns the ms until something else is. */
static int64_t begin_due(struct asking *all, struct asker *askers, unsigned n)
{
    int64_t now_ns = kinf__clock_now_ns(), next_ns = now_ns + 1000 * MS;

    for (unsigned i = 0; i < n; i++) {
        struct asker *asker = &askers[i];

        if (asker->n_left != 0 && asker->due_ns != 0 && asker->due_ns <= now_ns)
            begin_asking(all, asker, now_ns);
        else if (asker->n_left != 0 && asker->due_ns != 0 && asker->due_ns < next_ns)
            next_ns = asker->due_ns;
    }
    return (next_ns - now_ns + MS - 1) / MS;
}

static int run_get(const char *target, unsigned n, unsigned n_each, int64_t pause_ms)
{
    struct epoll_event events[MAX_EVENTS];
    struct asker *askers = allocate(n, sizeof *askers);
    struct asking all = { .epoll = epoll_create1(EPOLL_CLOEXEC), .target = target, .n_open = n };
    int64_t start = kinf__clock_now_ns();
    double median, seconds;

    all.pause_ns = pause_ms * MS;
    all.ms = allocate((size_t)n * n_each, sizeof *all.ms);
    for (unsigned i = 0; i < n; i++) {
        askers[i].client.fd = -1;
        askers[i].due_ns = start + all.pause_ns * i / n;
        askers[i].n_left = n_each;
    }
    while (all.n_open != 0) {
        int n_events = client_wait(all.epoll, events, begin_due(&all, askers, n));

        for (int i = 0; i < n_events; i++)
            step_asker(&all, events[i].data.ptr);
    }
    seconds = (double)(kinf__clock_now_ns() - start) / 1e9;
    median = median_of(all.ms, all.n_answers);
    printf("answers=%zu failed=%zu bytes=%zu p50_ms=%.3f p99_ms=%.3f per_s=%.0f mb_per_s=%.0f\n",
           all.n_answers, all.n_failed, all.n_bytes, median, p99_of(all.ms, all.n_answers),
           (double)all.n_answers / seconds, (double)(all.n_bytes * all.n_answers) / seconds / 1e6);
    for (unsigned i = 0; i < n; i++)
        client_release(&askers[i].client);
    free(askers);
    free(all.ms);
    return 0;
}

/* --- attack: for so many seconds, everything at once --- */

static char *selector_of_thousands(void)
{
    static const char start[] = "/api/v1/pods?limit=1&labelSelector=";
    char *target = allocate(sizeof start + 3 * N_TERMS, 1), *at = stpcpy(target, start);

    for (unsigned i = 0; i < N_TERMS; i++)
        at = stpcpy(at, "!a,");
    at[-1] = '\0';
    return target;
}

/* Who sends nothing, who takes no answer: steps until the request is out, and then never reads. */
static void step_attacker(struct client *client, int epoll, const char *selector,
                          unsigned *n_answers)
{
    int n = client_step(client, epoll, client);

    if (n >= 0 && !client->is_over)
        return;
    *n_answers += client->is_over;
    if (n < 0 || client->status != 200) {
        client_close(client);
        client_open(client, epoll, client, selector);
    } else {
        client->body.len = 0;
        client_ask(client, epoll, client, selector);
    }
}

static void step_list(struct client *client, int epoll)
{
    if (client_step(client, epoll, client) < 0 || client->request == NULL)
        epoll_ctl(epoll, EPOLL_CTL_DEL, client->fd, NULL);
}

static int run_attack(double seconds)
{
    struct epoll_event events[MAX_EVENTS];
    struct client *clients = allocate(N_SILENT + N_LISTS + N_SELECTORS, sizeof *clients);
    struct client *lists = clients + N_SILENT, *selectors = lists + N_LISTS;
    int silent = epoll_create1(EPOLL_CLOEXEC), epoll = epoll_create1(EPOLL_CLOEXEC);
    int64_t end = kinf__clock_now_ns() + (int64_t)(seconds * 1e9);
    char *selector = selector_of_thousands();
    unsigned n_answers = 0;

    for (unsigned i = 0; i < N_SILENT; i++)
        client_open(&clients[i], silent, &clients[i], "/");
    for (unsigned i = 0; i < N_LISTS; i++)
        client_open(&lists[i], epoll, &lists[i], "/api/v1/pods");
    for (unsigned i = 0; i < N_SELECTORS; i++)
        client_open(&selectors[i], epoll, &selectors[i], selector);
    while (kinf__clock_now_ns() < end) {
        int n = client_wait(epoll, events, 100);

        for (int i = 0; i < n; i++) {
            struct client *client = events[i].data.ptr;

            if (client < selectors)
                step_list(client, epoll);
            else
                step_attacker(client, epoll, selector, &n_answers);
        }
    }
    printf("selectors=%u\n", n_answers);
    for (unsigned i = 0; i < N_SILENT + N_LISTS + N_SELECTORS; i++)
        client_release(&clients[i]);
    free(clients);
    free(selector);
    return 0;
}

/* --- */

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_serve get URL TARGET CLIENTS TIMES PAUSE_MS\n"
            "       bench_serve attack URL SECONDS\n"
            "       bench_serve watch URL PID WATCHES NODES VERSION FIRST EVENTS [RATE BEGAN_NS]\n"
            "NODES 0: each watches all. PID 0: the server will be restarted. RATE: of what "
            "kinf-replay sends.\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct watches_options options = { 0 };

    if (argc < 4)
        return usage();
    client_server(argv[2]);
    if (argc == 7 && strcmp(argv[1], "get") == 0)
        return run_get(argv[3], (unsigned)atoi(argv[4]), (unsigned)atoi(argv[5]), atoi(argv[6]));
    if (argc == 4 && strcmp(argv[1], "attack") == 0)
        return run_attack(atof(argv[3]));
    if ((argc != 9 && argc != 11) || strcmp(argv[1], "watch") != 0)
        return usage();
    options.pid = atoi(argv[3]);
    options.n_watches = (unsigned)atoi(argv[4]);
    options.n_nodes = (unsigned)atoi(argv[5]);
    options.rv = strtoull(argv[6], NULL, 10);
    options.first = strtoull(argv[7], NULL, 10);
    options.n_events = strtoull(argv[8], NULL, 10);
    if (argc == 11) {
        options.rate = strtoull(argv[9], NULL, 10);
        options.began_ns = strtoll(argv[10], NULL, 10);
    }
    return run_watches(&options);
}
