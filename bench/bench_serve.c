/*
 * What clients of kinformerd measure (serve-load.sh): answers one after another on one connection,
 * or thousands of watches on one thread. The server behind the daemon is kinf-replay, whose event k
 * is pod k % N_PODS with the list's version + 1 + k, on node pod % N_NODES: so each watch knows
 * which version comes next, and one that is missed, repeated or out of order shows.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "base/buffer.h"
#include "base/clock.h"

#define FIRST_RV   UINT64_C(1000000000) /* of kinf-replay */
#define IDLE_MS    30000
#define READ_BYTES (256u << 10)
#define RV_KEY     "\"resourceVersion\":\""

static void die(const char *what)
{
    fprintf(stderr, "bench_serve: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void check(int failed)
{
    if (failed < 0) {
        fprintf(stderr, "bench_serve: out of memory\n");
        exit(1);
    }
}

/* --- connections --- */

static int dial(const char *address)
{
    struct sockaddr_in to = { .sin_family = AF_INET };
    char host[64];
    unsigned port;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (sscanf(address, "%63[0-9.]:%u", host, &port) != 2 ||
        inet_pton(AF_INET, host, &to.sin_addr) != 1) {
        fprintf(stderr, "bench_serve: no address: %s\n", address);
        exit(2);
    }
    to.sin_port = htons((uint16_t)port);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
        die("connect");
    return fd;
}

static void ask(int fd, const char *target)
{
    char request[1024];
    int len =
        snprintf(request, sizeof request,
                 "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n", target);

    if (write(fd, request, (size_t)len) != len)
        die("write");
}

/* An answer as it comes: its head, then what its chunks (or its Content-Length) hold. */
struct answer {
    struct kinf__buffer in;
    bool has_head;
    bool is_chunked;
    size_t n_left; /* without chunks: bytes to come */
    bool is_over;
    struct kinf__buffer body;
};

static size_t take_head(struct answer *answer)
{
    const char *length, *head = kinf__buffer_cstr(&answer->in), *end = strstr(head, "\r\n\r\n");

    if (end == NULL)
        return 0;
    if (strncmp(head, "HTTP/1.1 200", 12) != 0) {
        fprintf(stderr, "bench_serve: %.300s\n", head);
        exit(1);
    }
    length = strcasestr(head, "\r\nContent-Length:");
    answer->has_head = true;
    answer->is_chunked = length == NULL || length > end;
    if (!answer->is_chunked)
        answer->n_left = strtoull(length + 17, NULL, 10);
    answer->is_over = !answer->is_chunked && answer->n_left == 0;
    return (size_t)(end + 4 - head);
}

static size_t take_plain(struct answer *answer, const char *bytes, size_t len)
{
    len = len < answer->n_left ? len : answer->n_left;
    check(kinf__buffer_append(&answer->body, bytes, len));
    answer->n_left -= len;
    answer->is_over = answer->n_left == 0;
    return len;
}

static size_t take_chunk(struct answer *answer, const char *bytes, size_t len)
{
    const char *end = memchr(bytes, '\n', len);
    size_t size, head;

    if (end == NULL)
        return 0;
    size = strtoull(bytes, NULL, 16);
    head = (size_t)(end + 1 - bytes);
    if (len < head + size + 2)
        return 0;
    check(kinf__buffer_append(&answer->body, end + 1, size));
    answer->is_over = size == 0;
    return head + size + 2;
}

static void take(struct answer *answer, const char *bytes, size_t len)
{
    size_t done = 0, n = 1;

    check(kinf__buffer_append(&answer->in, bytes, len));
    if (!answer->has_head)
        done = take_head(answer);
    while (answer->has_head && !answer->is_over && n != 0) {
        const char *at = answer->in.bytes + done;
        size_t left = answer->in.len - done;

        if (left == 0)
            break;
        n = answer->is_chunked ? take_chunk(answer, at, left) : take_plain(answer, at, left);
        done += n;
    }
    kinf__buffer_consume(&answer->in, done);
}

static void answer_release(struct answer *answer)
{
    kinf__buffer_release(&answer->in);
    kinf__buffer_release(&answer->body);
}

/* --- one after another --- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* One request and its answer; returns the bytes of the body. */
static size_t exchange(int fd, const char *target, char *buf, double *ret_first_ms,
                       double *ret_all_ms)
{
    struct answer answer = { .in = KINF__BUFFER_INIT };
    int64_t start = kinf__clock_now_ns();
    size_t n_bytes = 0;
    bool is_first = true;

    ask(fd, target);
    while (!answer.is_over) {
        ssize_t n = read(fd, buf, READ_BYTES);

        if (n <= 0)
            die("read");
        if (is_first)
            *ret_first_ms = (double)(kinf__clock_now_ns() - start) / 1e6;
        is_first = false;
        take(&answer, buf, (size_t)n);
        n_bytes += answer.body.len;
        answer.body.len = 0;
    }
    *ret_all_ms = (double)(kinf__clock_now_ns() - start) / 1e6;
    answer_release(&answer);
    return n_bytes;
}

static int run_requests(const char *address, const char *target, size_t n)
{
    double *first_ms = calloc(n, sizeof *first_ms), *all_ms = calloc(n, sizeof *all_ms);
    char *buf = malloc(READ_BYTES);
    size_t n_bytes = 0;
    int fd = dial(address);

    if (first_ms == NULL || all_ms == NULL || buf == NULL)
        check(-1);
    for (size_t i = 0; i < n; i++)
        n_bytes = exchange(fd, target, buf, &first_ms[i], &all_ms[i]);
    qsort(first_ms, n, sizeof *first_ms, compare);
    qsort(all_ms, n, sizeof *all_ms, compare);
    printf("requests=%zu bytes=%zu first_byte_ms=%.3f ms=%.3f p99_ms=%.3f mb_per_s=%.0f\n", n,
           n_bytes, first_ms[n / 2], all_ms[n / 2], all_ms[n - 1 - n / 100],
           (double)n_bytes / all_ms[n / 2] / 1e3);
    close(fd);
    free(first_ms);
    free(all_ms);
    free(buf);
    return 0;
}

/* --- watches --- */

struct load {
    const char *address;
    int pid; /* the daemon's */
    unsigned n_watches;
    unsigned n_pods;
    unsigned n_nodes; /* 0: each watches all */
    uint64_t n_events;
    uint64_t list_rv;
    int epoll;
    unsigned n_open; /* watches that have not had everything */
    uint64_t n_seen, n_missed, n_reordered, n_strange;
    unsigned n_cut;
};

struct watch {
    struct answer answer;
    unsigned node;
    uint64_t next; /* the version that has to come */
    int fd;
    bool is_done;
};

/* The least version from `rv` on that concerns the watch. */
static uint64_t concerns(const struct load *load, const struct watch *watch, uint64_t rv)
{
    while (load->n_nodes != 0 &&
           (unsigned)((rv - load->list_rv - 1) % load->n_pods) % load->n_nodes != watch->node)
        rv++;
    return rv;
}

static void finish(struct load *load, struct watch *watch)
{
    if (!watch->is_done)
        load->n_open--;
    watch->is_done = true;
}

static bool is_of_node(const struct load *load, const struct watch *watch, const char *line,
                       size_t len)
{
    char wanted[64];

    snprintf(wanted, sizeof wanted, "\"nodeName\":\"node-%05u\"", watch->node);
    return load->n_nodes == 0 || memmem(line, len, wanted, strlen(wanted)) != NULL;
}

/* With no events to come a watch is done with the end of its initial ones. */
static void take_initial(struct load *load, struct watch *watch, const char *line, size_t len)
{
    static const char mark[] = "k8s.io/initial-events-end";

    if (memmem(line, len, mark, sizeof mark - 1) != NULL)
        finish(load, watch);
}

static void take_event(struct load *load, struct watch *watch, const char *line, size_t len)
{
    static const char modified[] = "{\"type\":\"MODIFIED\"";
    const char *at = memmem(line, len, RV_KEY, sizeof RV_KEY - 1);
    uint64_t rv = at != NULL ? strtoull(at + sizeof RV_KEY - 1, NULL, 10) : 0;

    if (len < sizeof modified || memcmp(line, modified, sizeof modified - 1) != 0 ||
        !is_of_node(load, watch, line, len)) {
        if (load->n_strange++ == 0)
            fprintf(stderr, "bench_serve: unexpected: %.*s\n", (int)(len < 300 ? len : 300), line);
        return;
    }
    load->n_seen++;
    if (rv < watch->next) {
        load->n_reordered++;
        return;
    }
    while (watch->next < rv) {
        load->n_missed++;
        watch->next = concerns(load, watch, watch->next + 1);
    }
    watch->next = concerns(load, watch, rv + 1);
    if (watch->next > load->list_rv + load->n_events)
        finish(load, watch);
}

static void take_lines(struct load *load, struct watch *watch)
{
    struct kinf__buffer *body = &watch->answer.body;
    size_t done = 0;
    const char *end;

    while (done < body->len && (end = memchr(body->bytes + done, '\n', body->len - done)) != NULL) {
        size_t len = (size_t)(end - (body->bytes + done));

        if (load->n_events == 0)
            take_initial(load, watch, body->bytes + done, len);
        else
            take_event(load, watch, body->bytes + done, len);
        done += len + 1;
    }
    kinf__buffer_consume(body, done);
}

static void read_watch(struct load *load, struct watch *watch, char *buf)
{
    ssize_t n = recv(watch->fd, buf, READ_BYTES, MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN)
        return;
    if (n > 0) {
        take(&watch->answer, buf, (size_t)n);
        take_lines(load, watch);
    }
    if (n <= 0 || watch->answer.is_over) {
        epoll_ctl(load->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
        load->n_cut += !watch->is_done;
        finish(load, watch);
    }
}

static void open_watch(struct load *load, struct watch *watch, unsigned i)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = watch };
    char target[512];
    int len;

    watch->node = load->n_nodes != 0 ? i % load->n_nodes : 0;
    watch->next = concerns(load, watch, load->list_rv + 1);
    watch->fd = dial(load->address);
    len = snprintf(target, sizeof target, "/api/v1/pods?watch=1");
    if (load->n_events == 0)
        len += snprintf(target + len, sizeof target - (size_t)len,
                        "&allowWatchBookmarks=1&sendInitialEvents=true"
                        "&resourceVersionMatch=NotOlderThan");
    else
        len += snprintf(target + len, sizeof target - (size_t)len, "&resourceVersion=%" PRIu64,
                        load->list_rv);
    if (load->n_nodes != 0)
        snprintf(target + len, sizeof target - (size_t)len,
                 "&fieldSelector=spec.nodeName%%3Dnode-%05u", watch->node);
    ask(watch->fd, target);
    if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, watch->fd, &event) < 0)
        die("epoll_ctl");
}

/* Until every watch has had everything, or nothing comes any more. */
static void read_all(struct load *load, char *buf)
{
    struct epoll_event events[256];

    while (load->n_open != 0) {
        int n = epoll_wait(load->epoll, events, 256, IDLE_MS);

        if (n < 0 && errno != EINTR)
            die("epoll_wait");
        if (n == 0)
            return;
        for (int i = 0; i < n; i++)
            read_watch(load, events[i].data.ptr, buf);
    }
}

/* --- the daemon's side --- */

static double daemon_cpu_s(int pid)
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

static unsigned long daemon_pss_kb(int pid)
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
    return pss;
}

static double own_cpu_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void count_unseen(struct load *load, struct watch *watch)
{
    uint64_t last = load->list_rv + load->n_events;

    for (; watch->next <= last; watch->next = concerns(load, watch, watch->next + 1))
        load->n_missed++;
}

static int run_watches(struct load *load)
{
    struct watch *watches = calloc(load->n_watches, sizeof *watches);
    unsigned long pss_before = daemon_pss_kb(load->pid), pss_after;
    double cpu, own, seconds;
    char *buf = malloc(READ_BYTES);
    int64_t start;

    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (watches == NULL || buf == NULL || load->epoll < 0)
        die("start");
    load->list_rv = FIRST_RV + load->n_pods;
    load->n_open = load->n_watches;
    for (unsigned i = 0; i < load->n_watches; i++)
        open_watch(load, &watches[i], i);
    cpu = daemon_cpu_s(load->pid);
    own = own_cpu_s();
    start = kinf__clock_now_ns();
    read_all(load, buf);
    seconds = (double)(kinf__clock_now_ns() - start) / 1e9;
    cpu = daemon_cpu_s(load->pid) - cpu;
    pss_after = daemon_pss_kb(load->pid);
    for (unsigned i = 0; i < load->n_watches; i++)
        count_unseen(load, &watches[i]);
    printf("watches=%u events=%" PRIu64 " told=%" PRIu64 " missed=%" PRIu64 " reordered=%" PRIu64
           " unexpected=%" PRIu64 " cut=%u seconds=%.1f daemon_cores=%.3f client_cores=%.3f "
           "pss_before_kb=%lu pss_after_kb=%lu kb_per_watch=%.1f\n",
           load->n_watches, load->n_events, load->n_seen, load->n_missed, load->n_reordered,
           load->n_strange, load->n_cut, seconds, cpu / seconds, (own_cpu_s() - own) / seconds,
           pss_before, pss_after,
           ((double)pss_after - (double)pss_before) / (double)load->n_watches);
    for (unsigned i = 0; i < load->n_watches; i++) {
        close(watches[i].fd);
        answer_release(&watches[i].answer);
    }
    close(load->epoll);
    free(watches);
    free(buf);
    return load->n_missed + load->n_reordered + load->n_strange + load->n_cut != 0;
}

int main(int argc, char **argv)
{
    struct rlimit files;
    struct load load = { 0 };

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (argc == 5 && strcmp(argv[1], "get") == 0 && atoi(argv[4]) > 0)
        return run_requests(argv[2], argv[3], (size_t)atoi(argv[4]));
    if (argc != 8 || strcmp(argv[1], "watch") != 0) {
        fprintf(stderr, "usage: bench_serve get HOST:PORT TARGET N\n"
                        "       bench_serve watch HOST:PORT PID N_WATCHES N_PODS N_NODES N_EVENTS\n"
                        "N_NODES 0: each watches all. N_EVENTS 0: up to the initial state only.\n");
        return 2;
    }
    load.address = argv[2];
    load.pid = atoi(argv[3]);
    load.n_watches = (unsigned)atoi(argv[4]);
    load.n_pods = (unsigned)atoi(argv[5]);
    load.n_nodes = (unsigned)atoi(argv[6]);
    load.n_events = strtoull(argv[7], NULL, 10);
    return run_watches(&load);
}
