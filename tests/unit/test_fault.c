/*
 * Faults as clients meet them: a real endpoint in front of a server with a store, a backend that
 * counts writes, and sockets that read what comes. And the endpoint that changes the faults.
 */
#include "fault/fault.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "rest/inflate.h"
#include "serve/endpoint.h"
#include "serve/exchange_priv.h"
#include "serve/passthrough.h"
#include "fault/fault_endpoint.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define PATIENCE_MS 60000
#define SILENCE_MS  40 /* what counts as one */
#define N_PODS      3

static const char pods[] = "/api/v1/pods";
static const char watch[] = "/api/v1/pods?watch=1&resourceVersion=3";
static const char watch_list[] =
    "/api/v1/pods?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&"
    "resourceVersionMatch=NotOlderThan";

/* The longest text of a Warning that there is. */
#define N_QUOTES 240
static const char quotes[] = { [0 ... N_QUOTES - 1] = '"', [N_QUOTES] = '\0' };

struct fixture {
    struct kinf__faults *faults;
    struct kinf__backend backend;
    struct kinf__server *server;
    struct kinf_indexer *indexer;
    struct kinf__source *source;
    struct kinf__endpoint *endpoint;
    _Atomic(unsigned) n_writes;
    _Atomic(unsigned) n_actions;
    const struct kinf_type *type;
};

/* --- the server --- */

static int admit(const struct kinf__request_head *head, const struct kinf__attributes *attributes,
                 struct kinf__refusal *refusal, void *ctx)
{
    (void)head;
    (void)attributes;
    (void)refusal;
    (void)ctx;
    return 0;
}

static bool takes(const struct kinf__request_head *head, const struct kinf__request *request,
                  void *ctx)
{
    (void)request;
    (void)ctx;
    return strcmp(head->method, "GET") != 0;
}

static int answer_write(const struct kinf__backend_call *call, struct kinf__answer *answer,
                        struct kinf__refusal *refusal, void *ctx)
{
    struct fixture *f = ctx;

    (void)call;
    kinf__answer_warn(answer, "these are old: %s", quotes);
    atomic_fetch_add(&f->n_writes, 1);
    return kinf__buffer_printf(&answer->body, "{\"is\":\"written\"}\n") < 0
               ? kinf__refuse_no_memory(refusal)
               : 0;
}

static struct kinf__fault *find_fault(const struct kinf__request_head *head,
                                      const struct kinf__request *request, void *ctx)
{
    return kinf__faults_find(((struct fixture *)ctx)->faults, head, request);
}

static void put_pod(struct fixture *f, unsigned no, size_t ballast)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    const struct kinf_object *pod;

    assert_int_equal(kinf__buffer_printf(&text,
                                         "{\"metadata\":{\"name\":\"pod-%u\",\"namespace\":\"n\","
                                         "\"uid\":\"u%u\",\"resourceVersion\":\"%u\"},\"spec\":\"",
                                         no, no, no),
                     0);
    for (size_t i = 0; i < ballast; i++)
        assert_int_equal(kinf__buffer_append(&text, i % 7 == 0 ? "a" : "b", 1), 0);
    assert_int_equal(kinf__buffer_append(&text, "\"}", 2), 0);
    assert_int_equal(kinf_object_new_from_json(f->type, text.bytes, text.len, &pod, NULL), 0);
    assert_int_equal(kinf_indexer_add(f->indexer, pod, NULL, NULL), 0);
    kinf_object_unref(pod);
}

static void add_catalog(struct fixture *f)
{
    const struct kinf__catalog_entry entry = { .group = (char[]){ "" },
                                               .version = (char[]){ "v1" },
                                               .resource.name = (char[]){ "pods" },
                                               .resource.singular = (char[]){ "pod" },
                                               .resource.kind = (char[]){ "Pod" },
                                               .resource.namespaced = true };
    struct kinf__catalog *catalog;

    assert_int_equal(kinf__catalog_new(&catalog), 0);
    assert_int_equal(kinf__catalog_add(catalog, &entry), 0);
    kinf__server_set_catalog(f->server, catalog);
}

static void begin(struct fixture *f, size_t ballast, uint64_t seed)
{
    struct kinf__server_options options = { .backend = &f->backend };
    struct kinf__source_options source = { .name_space = NULL };
    const struct kinf__endpoint_options endpoint = { .cert_file = NULL };

    memset(f, 0, sizeof *f);
    assert_int_equal(kinf_type_intern("", "v1", "Pod", "pods", true, &f->type, NULL), 0);
    assert_int_equal(kinf_indexer_new(NULL, 0, &f->indexer, NULL), 0);
    for (unsigned i = 1; i <= N_PODS; i++)
        put_pod(f, i, ballast);
    assert_int_equal(kinf__faults_new(seed, &f->faults, NULL), 0);
    f->backend = (struct kinf__backend){ .admit = admit,
                                         .takes = takes,
                                         .answer = answer_write,
                                         .find_fault = find_fault,
                                         .hold = kinf__fault_hold,
                                         .distort = kinf__fault_distort,
                                         .free_fault = kinf__fault_free,
                                         .ctx = f };
    assert_int_equal(kinf__server_new(&options, &f->server, NULL), 0);
    source.store.type = f->type;
    source.store.indexer = f->indexer;
    assert_int_equal(kinf__server_add_source(f->server, &source, &f->source, NULL), 0);
    kinf__server_publish_source(f->server, f->source);
    add_catalog(f);
    assert_int_equal(kinf__endpoint_start(f->server, "127.0.0.1:0", &endpoint, &f->endpoint, NULL),
                     0);
}

static void end(struct fixture *f)
{
    int64_t began_ms = kinf__clock_now_ms();

    kinf__endpoint_quiesce(f->endpoint);
    kinf__faults_stop(f->faults);
    kinf__server_stop(f->server);
    /* It cuts off after 2 s who does not end. */
    assert_true(kinf__clock_now_ms() - began_ms < 1900);
    kinf__endpoint_free(f->endpoint);
    kinf__server_retire_source(f->server, f->source);
    kinf__source_free(f->source);
    kinf__server_free(f->server);
    kinf__faults_free(f->faults);
    kinf_indexer_free(f->indexer);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    begin(f, 10, 1);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    end(*state);
    free(*state);
    return 0;
}

static unsigned add(struct fixture *f, const char *line)
{
    struct kinf_error err = KINF_ERROR_INIT;
    unsigned id = 0;

    if (kinf__faults_add(f->faults, line, &id, &err) < 0)
        fail_msg("%s: %s", line, err.message);
    return id;
}

/* --- the client --- */

enum ending {
    ENDING_WHOLE,  /* all that the head promised */
    ENDING_CLOSED, /* less, and a FIN */
    ENDING_RESET,
    ENDING_SILENT,
};

struct reply {
    struct kinf__buffer bytes;
    int code; /* 0: no head */
    struct kinf__buffer body;
    enum ending ending;
};

static int connect_to(const char *url)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_port = htons((uint16_t)strtoul(strrchr(url, ':') + 1, NULL, 10));
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void send_request(int fd, const char *method, const char *target, const char *headers,
                         const char *body)
{
    char text[4096];
    int n = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", method, target,
                     headers);

    if (*body != '\0')
        n += snprintf(text + n, sizeof text - (size_t)n, "Content-Length: %zu\r\n", strlen(body));
    n += snprintf(text + n, sizeof text - (size_t)n, "\r\n%s", body);
    assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
}

/* Whether the chunks come to an end; what is there of them is written to the body. */
static bool read_chunks(const char *at, const char *end, struct kinf__buffer *body)
{
    for (;;) {
        const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
        size_t len, there;

        if (line_end == NULL)
            return false;
        len = strtoul(at, NULL, 16);
        at = line_end + 2;
        if (len == 0)
            return end - at >= 2;
        there = (size_t)(end - at) < len ? (size_t)(end - at) : len;
        assert_int_equal(kinf__buffer_append(body, at, there), 0);
        if ((size_t)(end - at) < len + 2)
            return false;
        at += len + 2;
    }
}

/* Whether the reply is all there. */
static bool parse(struct reply *reply)
{
    const char *text = kinf__buffer_cstr(&reply->bytes), *head_end, *field;
    const char *end = text + reply->bytes.len;

    reply->body.len = 0;
    reply->code = 0;
    if (reply->bytes.len == 0 || (head_end = strstr(text, "\r\n\r\n")) == NULL)
        return false;
    reply->code = (int)strtol(text + 9, NULL, 10);
    head_end += 4;
    field = strcasestr(text, "\r\nContent-Length: ");
    if (field == NULL || field > head_end)
        return read_chunks(head_end, end, &reply->body);
    assert_int_equal(kinf__buffer_append(&reply->body, head_end, (size_t)(end - head_end)), 0);
    return reply->body.len == strtoul(field + 18, NULL, 10);
}

/* Reads until the end, until there is silence for a while, or until the body has `wanted` in it
 * (NULL: nothing is wanted). */
static void receive(int fd, struct reply *reply, int silence_ms, const char *wanted)
{
    struct pollfd poller = { .fd = fd, .events = POLLIN };

    while (!parse(reply)) {
        char piece[65536];
        ssize_t n;

        if (wanted != NULL && strstr(kinf__buffer_cstr(&reply->body), wanted) != NULL) {
            reply->ending = ENDING_SILENT;
            return;
        }
        if (poll(&poller, 1, silence_ms) == 0) {
            reply->ending = ENDING_SILENT;
            return;
        }
        n = recv(fd, piece, sizeof piece, 0);
        if (n <= 0) {
            reply->ending = n == 0 ? ENDING_CLOSED : ENDING_RESET;
            assert_true(n == 0 || errno == ECONNRESET);
            return;
        }
        assert_int_equal(kinf__buffer_append(&reply->bytes, piece, (size_t)n), 0);
    }
    reply->ending = ENDING_WHOLE;
}

static void release(struct reply *reply)
{
    kinf__buffer_release(&reply->bytes);
    kinf__buffer_release(&reply->body);
}

#define AUTO_REPLY KINF__CLEANUP(release) struct reply

static struct reply ask_at(const char *url, const char *method, const char *target,
                           const char *headers, const char *body, int silence_ms)
{
    struct reply reply = { .code = 0 };
    int fd = connect_to(url);

    send_request(fd, method, target, headers, body);
    receive(fd, &reply, silence_ms, NULL);
    close(fd);
    assert_non_null(kinf__buffer_cstr(&reply.bytes));
    assert_non_null(kinf__buffer_cstr(&reply.body));
    return reply;
}

static struct reply ask(struct fixture *f, const char *method, const char *target)
{
    return ask_at(kinf__endpoint_url(f->endpoint), method, target, "",
                  strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ? "{}" : "",
                  PATIENCE_MS);
}

static struct reply get(struct fixture *f, const char *target)
{
    return ask(f, "GET", target);
}

/* What comes before it falls silent. */
static struct reply get_some(struct fixture *f, const char *method, const char *target)
{
    return ask_at(kinf__endpoint_url(f->endpoint), method, target, "", "", SILENCE_MS);
}

static bool has(const struct reply *reply, const char *text)
{
    return reply->bytes.len != 0 && strstr(reply->bytes.bytes, text) != NULL;
}

/* --- answers that are none --- */

static void codes_come_with_their_status(void **state)
{
    static const struct {
        const char *line;
        int code;
        const char *has;
    } rows[] = {
        { "list pods 410", 410, "\"reason\":\"Expired\"" },
        { "list pods 429 retry-after=7", 429, "Retry-After: 7\r\n" },
        { "list pods 429 retry-after=7", 429, "\"retryAfterSeconds\":7" },
        { "list pods 500", 500, "\"reason\":\"InternalError\"" },
        { "list pods 502", 502, "\"status\":\"Failure\"" },
        { "list pods 503", 503, "\"reason\":\"ServiceUnavailable\"" },
        { "list pods 504", 504, "\"reason\":\"Timeout\"" },
        { "list pods 401", 401, "\"reason\":\"Unauthorized\"" },
        { "list pods 403", 403, "cannot list resource \\\"pods\\\"" },
        { "list pods 404", 404, "\"reason\":\"NotFound\"" },
        { "list pods 418", 418, "a fault on demand: 418" },
        { "list pods 503 as=html", 503, "Content-Type: text/html" },
        { "list pods 503 as=html", 503, "<h1>503</h1>" },
        { "list pods 429 as=text retry-after=1", 429, "Content-Type: text/plain" },
        { "list pods 429 as=text retry-after=1", 429, "Retry-After: 1\r\n" },
        { "list pods login", 200, "Content-Type: text/html" },
        { "list pods login", 200, "<title>Sign in</title>" },
        { "list pods 504 late", 504, "\"reason\":\"Timeout\"" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        unsigned id = add(f, rows[i].line);
        AUTO_REPLY reply = get(f, pods);

        assert_int_equal(reply.ending, ENDING_WHOLE);
        assert_int_equal(reply.code, rows[i].code);
        if (!has(&reply, rows[i].has))
            fail_msg("%s: %s", rows[i].line, reply.bytes.bytes);
        assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    }
}

static void a_write_fails_before_it_happens(void **state)
{
    struct fixture *f = *state;

    (void)add(f, "update pods 409 times=2");
    for (unsigned i = 0; i < 4; i++) {
        AUTO_REPLY reply = ask(f, "PUT", "/api/v1/namespaces/n/pods/x");

        assert_int_equal(reply.code, i < 2 ? 409 : 200);
        assert_int_equal(has(&reply, "Operation cannot be fulfilled on pods \\\"x\\\""), i < 2);
        assert_int_equal(f->n_writes, i < 2 ? 0 : i - 1);
    }
}

static void a_write_may_happen_and_its_answer_be_lost(void **state)
{
    static const char *const lines[] = { "create pods reset", "create pods cut",
                                         "create pods 504 late", "create pods reset after=5" };
    struct fixture *f = *state;

    for (unsigned i = 0; i < KINF__ARRAY_LEN(lines); i++) {
        unsigned id = add(f, lines[i]);
        AUTO_REPLY reply = ask(f, "POST", "/api/v1/namespaces/n/pods");

        assert_int_equal(f->n_writes, i + 1);
        assert_false(has(&reply, "written"));
        assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    }
}

static void a_connection_may_break_before_a_write_happens(void **state)
{
    static const char *const lines[] = { "create pods reset early", "create pods cut early" };
    struct fixture *f = *state;

    for (unsigned i = 0; i < KINF__ARRAY_LEN(lines); i++) {
        unsigned id = add(f, lines[i]);
        AUTO_REPLY reply = ask(f, "POST", "/api/v1/namespaces/n/pods");

        assert_int_equal(f->n_writes, 0);
        assert_int_equal(reply.bytes.len, 0);
        assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    }
}

static void a_line_tells_what_it_has_hit(void **state)
{
    struct fixture *f = *state;
    unsigned id = add(f, "update pods 409 skip=1 times=1");
    struct kinf__fault_tally tally;

    for (unsigned i = 0; i < 3; i++) {
        AUTO_REPLY reply = ask(f, "PUT", "/api/v1/namespaces/n/pods/x?pretty=true");

        tally = kinf__faults_tally(f->faults, id);
        assert_int_equal(tally.n_requests, i + 1);
        assert_int_equal(tally.n_hits, i != 0);
        assert_string_equal(tally.first_hit, i != 0 ? "update /api/v1/namespaces/n/pods/x" : "");
        (void)reply;
    }
    assert_int_equal(kinf__faults_tally(f->faults, id + 1).n_requests, 0);
}

/* Quoted, whatever is in it; and not told with an answer that was replaced. */
static void a_write_is_warned_of_with_its_own_answer_alone(void **state)
{
    struct fixture *f = *state;
    char wanted[2 * N_QUOTES + 64] = "\r\nWarning: 299 - \"these are old: ";

    for (int i = 0; i < N_QUOTES; i++)
        strcat(wanted, "\\\"");
    strcat(wanted, "\"\r\n");
    for (int is_late = 0; is_late < 2; is_late++) {
        AUTO_REPLY reply;

        if (is_late)
            (void)add(f, "create pods 504 late");
        reply = ask(f, "POST", "/api/v1/namespaces/n/pods");
        assert_int_equal(reply.code, is_late ? 504 : 200);
        assert_int_equal(has(&reply, wanted), !is_late);
        assert_int_equal(has(&reply, "Warning:"), !is_late);
    }
}

static void a_name_is_taken_by_a_conflict_of_create(void **state)
{
    struct fixture *f = *state;

    (void)add(f, "create pods 409");
    AUTO_REPLY reply = ask(f, "POST", "/api/v1/namespaces/n/pods");

    assert_true(has(&reply, "\"reason\":\"AlreadyExists\""));
}

/* --- connections --- */

static void a_connection_breaks_before_the_head(void **state)
{
    struct fixture *f = *state;
    unsigned id = add(f, "list pods reset");
    AUTO_REPLY reset = get(f, pods);

    assert_int_equal(reset.ending, ENDING_RESET);
    assert_int_equal(reset.bytes.len, 0);
    assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    (void)add(f, "list pods cut");
    AUTO_REPLY cut = get(f, pods);
    assert_int_equal(cut.ending, ENDING_CLOSED);
    assert_int_equal(cut.bytes.len, 0);
}

static void a_connection_breaks_in_the_body(void **state)
{
    struct fixture *f = *state;
    unsigned id = add(f, "list pods reset after=30");
    AUTO_REPLY reset = get(f, pods);

    assert_int_equal(reset.ending, ENDING_RESET);
    assert_int_equal(reset.code, 200);
    assert_int_equal(reset.body.len, 30);
    assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    (void)add(f, "list pods cut after=30");
    AUTO_REPLY cut = get(f, pods);
    assert_int_equal(cut.ending, ENDING_CLOSED);
    assert_int_equal(cut.body.len, 30);
}

static void a_watch_breaks_behind_events(void **state)
{
    struct fixture *f = *state;
    unsigned id = add(f, "watch pods reset after=2events");
    AUTO_REPLY reset = get(f, watch_list);

    assert_int_equal(reset.ending, ENDING_RESET);
    assert_true(has(&reset, "pod-2") && !has(&reset, "pod-3"));
    assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    (void)add(f, "watch pods close after=20ms");
    AUTO_REPLY closed = get(f, watch);
    assert_int_equal(closed.ending, ENDING_WHOLE);
    assert_int_equal(closed.body.len, 0);
}

static void json_is_cut_in_a_body_that_is_whole(void **state)
{
    struct fixture *f = *state;

    (void)add(f, "list pods truncate at=40");
    AUTO_REPLY reply = get(f, pods);

    assert_int_equal(reply.ending, ENDING_WHOLE);
    assert_int_equal(reply.body.len, 40);
    assert_true(has(&reply, "{\"kind\":\"PodList\""));
}

static void a_byte_of_the_answer_is_another(void **state)
{
    struct fixture *f = *state;
    AUTO_REPLY whole = get(f, pods);
    size_t n_different = 0;

    (void)add(f, "list pods flip at=9");
    AUTO_REPLY flipped = get(f, pods);

    assert_int_equal(flipped.ending, ENDING_WHOLE);
    assert_int_equal(flipped.body.len, whole.body.len);
    for (size_t i = 0; i < whole.body.len; i++)
        n_different += whole.body.bytes[i] != flipped.body.bytes[i];
    assert_int_equal(n_different, 1);
    assert_int_not_equal(whole.body.bytes[9], flipped.body.bytes[9]);
}

/* --- silence --- */

static void nothing_is_answered_for_a_while(void **state)
{
    static const char *const lines[] = { "* pods hang=30ms", "* pods hang=30ms late",
                                         "* pods stall=30ms after=3", "* pods drip=5/5ms" };
    struct fixture *f = *state;

    for (unsigned i = 0; i < KINF__ARRAY_LEN(lines); i++) {
        unsigned id = add(f, lines[i]);
        int64_t began_ms = kinf__clock_now_ms();
        AUTO_REPLY reply = ask(f, "POST", "/api/v1/namespaces/n/pods");

        assert_int_equal(reply.ending, ENDING_WHOLE);
        assert_string_equal(kinf__buffer_cstr(&reply.body), "{\"is\":\"written\"}\n");
        assert_true(kinf__clock_now_ms() - began_ms >= 15);
        assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    }
}

static void nothing_is_answered_for_ever(void **state)
{
    static const struct {
        const char *line;
        unsigned n_writes; /* behind it */
        int code;
    } rows[] = { { "* pods hang", 0, 0 },
                 { "* pods hang late", 1, 0 },
                 { "* pods stall after=3", 2, 200 } };
    struct fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        unsigned id = add(f, rows[i].line);
        AUTO_REPLY reply = get_some(f, "POST", "/api/v1/namespaces/n/pods");

        assert_int_equal(reply.ending, ENDING_SILENT);
        assert_int_equal(reply.code, rows[i].code);
        assert_int_equal(f->n_writes, rows[i].n_writes);
        assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    }
}

static void who_waits_in_vain_may_leave(void **state)
{
    static const char *const lines[] = { "* pods hang", "* pods hang late", "* pods stall after=3",
                                         "watch pods stall" };
    struct fixture *f = *state;
    int64_t deadline_ms = kinf__clock_now_ms() + PATIENCE_MS;

    for (size_t i = 0; i < KINF__ARRAY_LEN(lines); i++) {
        unsigned id = add(f, lines[i]);
        AUTO_REPLY reply = get_some(f, "GET", i == 3 ? watch : pods);

        assert_int_equal(reply.ending, ENDING_SILENT);
        assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    }
    while (kinf__server_n_exchanges(f->server) != 0 && kinf__clock_now_ms() < deadline_ms)
        poll(NULL, 0, 5);
    assert_int_equal(kinf__server_n_exchanges(f->server), 0);
}

/* tear_down() looks at the clock. */
static void a_stop_is_not_held_up(void **state)
{
    static const char *const lines[] = { "* pods hang", "* pods hang late", "* pods stall after=3",
                                         "watch pods stall", "watch pods drip=1/1h" };
    struct fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(lines); i++) {
        unsigned id = add(f, lines[i]);
        int fd = connect_to(kinf__endpoint_url(f->endpoint));
        struct reply reply = { .code = 0 };

        send_request(fd, "GET", i == 4 ? watch_list : i == 3 ? watch : pods, "", "");
        receive(fd, &reply, SILENCE_MS, NULL);
        assert_int_equal(reply.ending, ENDING_SILENT);
        release(&reply);
        assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    }
    assert_int_equal(kinf__server_n_exchanges(f->server), KINF__ARRAY_LEN(lines));
}

static void connections_are_dropped(void **state)
{
    struct fixture *f = *state;
    struct reply reply = { .code = 0 };
    int fd = connect_to(kinf__endpoint_url(f->endpoint));

    send_request(fd, "GET", watch_list, "", "");
    receive(fd, &reply, PATIENCE_MS, "initial-events-end");
    kinf__server_cut_off(f->server);
    receive(fd, &reply, PATIENCE_MS, NULL);
    assert_int_equal(reply.ending, ENDING_CLOSED);
    release(&reply);
    close(fd);
}

/* --- watches --- */

static size_t count(const struct reply *reply, const char *text)
{
    size_t n = 0;

    for (const char *at = reply->bytes.bytes; (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

static void watch_lists_are_refused_as_servers_do(void **state)
{
    static const struct {
        const char *line;
        int code;
        const char *has;
    } rows[] = {
        { "watchlist pods refuse=422", 422,
          "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled" },
        { "watchlist pods refuse=422", 422, "\"kind\":\"ListOptions\"" },
        { "watchlist pods refuse=old", 422, "resourceVersionMatch is forbidden for watch" },
        { "watchlist pods refuse=400", 400, "\"reason\":\"BadRequest\"" },
        { "watchlist pods refuse=403", 403, "cannot watch resource" },
        { "watchlist pods refuse=500", 200, "\r\n\r\n{\"type\":\"ERROR\",\"object\":{" },
        { "watchlist pods refuse=500", 200, "RequestWatchProgress is disabled" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        unsigned id = add(f, rows[i].line);
        AUTO_REPLY reply = get(f, watch_list);
        AUTO_REPLY plain = get_some(f, "GET", watch);

        assert_int_equal(reply.ending, ENDING_WHOLE);
        assert_int_equal(reply.code, rows[i].code);
        if (!has(&reply, rows[i].has))
            fail_msg("%s: %s", rows[i].line, reply.bytes.bytes);
        assert_int_equal(plain.ending, ENDING_SILENT);
        assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    }
}

static void watch_lists_miss_their_state_or_its_end(void **state)
{
    struct fixture *f = *state;
    unsigned id = add(f, "watchlist pods refuse=endless");
    AUTO_REPLY endless = get_some(f, "GET", watch_list);

    assert_int_equal(endless.ending, ENDING_SILENT);
    assert_int_equal(count(&endless, "ADDED"), N_PODS);
    assert_int_equal(count(&endless, "BOOKMARK"), 0);
    assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    (void)add(f, "watchlist pods refuse=ignored");
    AUTO_REPLY ignored = get_some(f, "GET", watch_list);
    assert_int_equal(ignored.ending, ENDING_SILENT);
    assert_int_equal(ignored.code, 200);
    assert_int_equal(ignored.body.len, 0);
}

static void events_and_bookmarks_are_not_as_they_were(void **state)
{
    struct fixture *f = *state;
    unsigned id = add(f, "watch pods twice");
    AUTO_REPLY twice = get_some(f, "GET", watch_list);

    assert_int_equal(count(&twice, "ADDED"), 2 * N_PODS);
    assert_int_equal(count(&twice, "BOOKMARK"), 1);
    assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    id = add(f, "watch pods bookmark=twice");
    AUTO_REPLY marks = get_some(f, "GET", watch_list);
    assert_int_equal(count(&marks, "ADDED"), N_PODS);
    assert_int_equal(count(&marks, "BOOKMARK"), 2);
    assert_int_equal(kinf__faults_remove(f->faults, id), 0);
    (void)add(f, "watch pods error after=1event");
    AUTO_REPLY error = get(f, watch_list);
    assert_int_equal(error.ending, ENDING_WHOLE);
    assert_int_equal(count(&error, "ADDED"), 1);
    assert_int_equal(count(&error, "ERROR"), 1);
    assert_true(has(&error, "\"code\":410"));
}

static void a_watch_gives_way_to_a_page(void **state)
{
    struct fixture *f = *state;

    (void)add(f, "watch pods 503 as=html late");
    AUTO_REPLY reply = get(f, watch_list);

    assert_int_equal(reply.ending, ENDING_WHOLE);
    assert_int_equal(reply.code, 503);
    assert_int_equal(count(&reply, "ADDED"), 0);
    assert_true(has(&reply, "<h1>503</h1>"));
}

/* --- lists --- */

static void a_list_is_empty_and_then_full(void **state)
{
    struct fixture *f = *state;

    (void)add(f, "list pods empty times=1");
    AUTO_REPLY empty = get(f, pods);
    AUTO_REPLY full = get(f, pods);

    assert_true(has(&empty, "\"items\":[]"));
    assert_true(has(&empty, "\"resourceVersion\":\"3\""));
    assert_false(has(&empty, "pod-1"));
    assert_true(has(&full, "pod-1"));
}

static void an_object_is_huge(void **state)
{
    struct fixture *f = *state;

    (void)add(f, "read pods grow=2M");
    AUTO_REPLY list = get(f, pods);
    AUTO_REPLY object = get(f, "/api/v1/namespaces/n/pods/pod-2");

    assert_int_equal(list.ending, ENDING_WHOLE);
    assert_in_range(list.body.len, 2 << 20, (2 << 20) + 4096);
    assert_int_equal(object.ending, ENDING_WHOLE);
    assert_in_range(object.body.len, 2 << 20, (2 << 20) + 1024);
}

static int append(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    (void)err;
    return kinf__buffer_append(ctx, bytes, len);
}

static void expect_inflated(const struct reply *reply, struct kinf_str expected)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__inflate *inflate;

    assert_true(has(reply, "Content-Encoding: gzip\r\n"));
    assert_int_equal(kinf__inflate_new(&inflate, NULL), 0);
    assert_int_equal(
        kinf__inflate_feed(inflate, reply->body.bytes, reply->body.len, append, &text, NULL), 0);
    assert_true(kinf__inflate_is_complete(inflate));
    kinf__inflate_free(inflate);
    assert_true(kinf_str_equal(kinf__buffer_str(&text), expected));
}

static void answers_are_compressed_in_members(void **state)
{
    static const char accept[] = "Accept-Encoding: gzip\r\n";
    struct fixture *f = *state;
    const char *url = kinf__endpoint_url(f->endpoint);
    AUTO_REPLY plain_list = get(f, pods);
    AUTO_REPLY plain_watch = get_some(f, "GET", watch_list);

    (void)add(f, "read pods gzip=100");
    AUTO_REPLY list = ask_at(url, "GET", pods, accept, "", PATIENCE_MS);
    AUTO_REPLY watching = ask_at(url, "GET", watch_list, accept, "", SILENCE_MS);
    AUTO_REPLY refused = get(f, pods);

    assert_int_equal(list.ending, ENDING_WHOLE);
    expect_inflated(&list, kinf__buffer_str(&plain_list.body));
    expect_inflated(&watching, kinf__buffer_str(&plain_watch.body));
    assert_false(has(&refused, "Content-Encoding"));
}

/* What is too large for one piece is a stream, in chunks, and compressed if nobody looks at it. */
static void large_lists_suffer_likewise(void **state)
{
    static const char accept[] = "Accept-Encoding: gzip\r\n";
    struct fixture f;
    unsigned id;

    (void)state;
    begin(&f, 300000, 1);
    id = add(&f, "list pods cut after=200000");
    AUTO_REPLY cut = ask_at(kinf__endpoint_url(f.endpoint), "GET", pods, accept, "", PATIENCE_MS);
    assert_true(has(&cut, "Transfer-Encoding: chunked"));
    assert_int_equal(cut.ending, ENDING_CLOSED);
    assert_int_equal(cut.body.len, 200000);
    assert_int_equal(kinf__faults_remove(f.faults, id), 0);
    id = add(&f, "list pods truncate at=200000");
    AUTO_REPLY truncated = get(&f, pods);
    assert_int_equal(truncated.ending, ENDING_WHOLE);
    assert_int_equal(truncated.body.len, 200000);
    assert_int_equal(kinf__faults_remove(f.faults, id), 0);
    (void)add(&f, "list pods empty");
    AUTO_REPLY empty = get(&f, pods);
    assert_true(has(&empty, "\"items\":[]"));
    end(&f);
}

/* --- which, and how often --- */

static void the_first_line_that_is_due_takes_the_request(void **state)
{
    static const int codes[] = { 500, 404, 404, 200 };
    struct fixture *f = *state;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)add(f, "list pods 500 times=1");
    (void)add(f, "* * 404 times=2");
    (void)add(f, "list * reset for=0");
    for (size_t i = 0; i < KINF__ARRAY_LEN(codes); i++) {
        AUTO_REPLY reply = get(f, pods);

        assert_int_equal(reply.code, codes[i]);
    }
    assert_int_equal(kinf__faults_write(f->faults, &text), 0);
    assert_string_equal(
        kinf__buffer_cstr(&text),
        "{\"faults\":[{\"id\":1,\"spec\":\"list pods 500 times=1\",\"requests\":4,\"hits\":1},"
        "{\"id\":2,\"spec\":\"* * 404 times=2\",\"requests\":3,\"hits\":2},"
        "{\"id\":3,\"spec\":\"list * reset for=0\",\"requests\":0,\"hits\":0}]}\n");
}

static void codes_by_chance(uint64_t seed, char codes[33])
{
    struct fixture f;

    begin(&f, 10, seed);
    (void)add(&f, "list pods 500 p=0.5");
    for (size_t i = 0; i < 32; i++) {
        AUTO_REPLY reply = get(&f, pods);

        codes[i] = reply.code == 500 ? 'x' : '.';
    }
    codes[32] = '\0';
    end(&f);
}

static void the_same_requests_get_the_same_faults(void **state)
{
    char first[33], second[33], other[33];

    (void)state;
    codes_by_chance(42, first);
    codes_by_chance(42, second);
    codes_by_chance(43, other);
    assert_string_equal(first, second);
    assert_string_not_equal(first, other);
}

static void a_user_agent_is_told_by_its_name(void **state)
{
    struct fixture *f = *state;

    (void)add(f, "* pods 503 user-agent=kubectl");
    AUTO_REPLY kubectl = ask_at(kinf__endpoint_url(f->endpoint), "GET", pods,
                                "User-Agent: kubectl/v1.37.1\r\n", "", PATIENCE_MS);
    AUTO_REPLY other = get(f, pods);

    assert_int_equal(kubectl.code, 503);
    assert_int_equal(other.code, 200);
}

static void requests_are_written_down(void **state)
{
    struct fixture *f = *state;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)add(f, "list pods 500");
    AUTO_REPLY one = get(f, pods);
    AUTO_REPLY two = get(f, "/version");

    assert_int_equal(one.code, 500);
    assert_int_equal(two.code, 429); /* the catalog has none yet */
    assert_int_equal(kinf__faults_write_requests(f->faults, &text), 0);
    assert_string_equal(kinf__buffer_cstr(&text),
                        "{\"requests\":[{\"number\":1,\"verb\":\"list\",\"target\":\"/api/v1/pods\""
                        ",\"fault\":1},{\"number\":2,\"verb\":\"get\",\"target\":\"/version\","
                        "\"fault\":0}]}\n");
}

/* --- the control endpoint --- */

static int act(void *ctx, struct kinf_error *err)
{
    struct fixture *f = ctx;

    if (atomic_fetch_add(&f->n_actions, 1) != 0)
        return kinf__error_set(err, KINF_ERR_STATE, "once is enough");
    return 0;
}

static void expect_control(const char *url, const char *method, const char *target,
                           const char *body, int code, const char *expected)
{
    AUTO_REPLY reply = ask_at(url, method, target, "", body, PATIENCE_MS);

    assert_int_equal(reply.ending, ENDING_WHOLE);
    if (reply.code != code || strstr(reply.body.bytes, expected) == NULL)
        fail_msg("%s %s: %d %s", method, target, reply.code, reply.body.bytes);
}

static void faults_are_changed_while_it_runs(void **state)
{
    struct fixture *f = *state;
    const struct kinf__fault_action action = { "act", act };
    struct kinf__fault_endpoint *control;
    const char *url;

    assert_int_equal(
        kinf__fault_endpoint_new(f->faults, &action, 1, f, "127.0.0.1:0", &control, NULL), 0);
    url = kinf__fault_endpoint_url(control);
    expect_control(url, "GET", "/faults", "", 200, "{\"faults\":[]}\n");
    expect_control(url, "POST", "/faults", "# two\n\nlist pods 500\r\n  watch pods reset\n", 201,
                   "{\"ids\":[1,2]}\n");
    expect_control(url, "POST", "/faults", "list pods 404\nlist pods nonsense\n", 400,
                   "\\\"list pods nonsense\\\": there is no fault");
    expect_control(url, "GET", "/faults", "", 200,
                   "{\"faults\":[{\"id\":1,\"spec\":\"list pods 500\",\"requests\":0,\"hits\":0},"
                   "{\"id\":2,\"spec\":\"  watch pods reset\",\"requests\":0,\"hits\":0}]}\n");
    expect_control(kinf__endpoint_url(f->endpoint), "GET", pods, "", 500, "InternalError");
    expect_control(url, "GET", "/requests", "", 200, "\"fault\":1");
    expect_control(url, "DELETE", "/faults/1", "", 200, "{}");
    expect_control(url, "DELETE", "/faults/1", "", 404, "there is no fault 1");
    expect_control(url, "DELETE", "/faults/0", "", 400, "no number");
    expect_control(url, "DELETE", "/faults/99999999999999999999", "", 400, "no number");
    expect_control(kinf__endpoint_url(f->endpoint), "GET", pods, "", 200, "PodList");
    expect_control(url, "DELETE", "/faults", "", 200, "{}");
    expect_control(url, "GET", "/faults", "", 200, "{\"faults\":[]}\n");
    expect_control(url, "GET", "/actions", "", 200, "{\"actions\":[\"act\"]}\n");
    expect_control(url, "POST", "/actions/act", "", 200, "{\"done\":\"act\"}\n");
    expect_control(url, "POST", "/actions/act", "", 409, "once is enough");
    expect_control(url, "POST", "/actions/none", "", 404, "there is no action");
    expect_control(url, "GET", "/actions/act", "", 404, "404 page not found");
    expect_control(url, "PUT", "/faults", "x", 404, "404 page not found");
    kinf__fault_endpoint_free(control);
}

/* --- memory --- */

static void wake(void *ctx)
{
    (void)ctx;
}

static bool is_gone(void *ctx)
{
    (void)ctx;
    return false;
}

/* One request on this thread; whatever fails, it ends. */
static void step_once(struct fixture *f, const char *target)
{
    const struct kinf__exchange_owner owner = { .wake = wake, .cut_off = wake, .is_gone = is_gone };
    static const struct kinf__header gzip = { "Accept-Encoding", "gzip" };
    const struct kinf__request_head head =
        kinf__request_head_of("GET", kinf_str_from(target), &gzip, 1);
    struct kinf__exchange *exchange = kinf__exchange_new(f->server, &owner, &head, NULL);
    const struct kinf__answer *answer;
    char piece[4096];

    if (exchange == NULL)
        return;
    answer = kinf__exchange_step(exchange);
    assert_true(answer == NULL || answer->code != 0);
    while (answer != NULL && answer->breaks == 0 && answer->stream != NULL &&
           answer->stream->read(answer->stream, piece, sizeof piece) > 0)
        continue;
    kinf__exchange_free(exchange);
}

static void a_warning_that_there_is_no_memory_for_leaves_those_before(void **state)
{
    struct kinf__answer answer = { .code = 200 };
    bool has_failed = true;

    (void)state;
    kinf__answer_warn(&answer, "before");
    for (size_t n = 1; has_failed; n++) {
        test_fail_allocation(n);
        kinf__answer_warn(&answer, "%s", quotes);
        has_failed = test_allocation_failed();
        assert_string_equal(kinf__buffer_cstr(&answer.warnings), "299 - \"before\"");
        assert_int_equal(answer.warnings.len > sizeof "299 - \"before\"", !has_failed);
    }
    kinf__buffer_release(&answer.warnings);
}

/* Answered is what has at most as many bytes as the API server's limit. */
static void a_body_beyond_the_limit_is_refused_and_not_written(void **state)
{
    static const struct {
        size_t more;
        int code;
    } rows[] = { { 0, 200 }, { 1, 413 } };
    static const struct kinf__header chunked = { "Transfer-Encoding", "chunked" };
    static const char piece[KINF__PASS_BODY_MAX];
    const struct kinf__exchange_owner owner = { .wake = wake, .cut_off = wake, .is_gone = is_gone };
    struct fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        const struct kinf__request_head head =
            kinf__request_head_of("POST", KINF_STR("/api/v1/namespaces/n/pods"), &chunked, 1);
        struct kinf__exchange *exchange = kinf__exchange_new(f->server, &owner, &head, NULL);
        const struct kinf__answer *answer;

        assert_non_null(exchange);
        assert_null(kinf__exchange_step(exchange));
        assert_int_equal(kinf__exchange_take_body(exchange, piece, sizeof piece), sizeof piece);
        assert_int_equal(kinf__exchange_take_body(exchange, piece, rows[i].more), rows[i].more);
        kinf__exchange_end_body(exchange);
        answer = kinf__exchange_step(exchange);
        assert_non_null(answer);
        assert_int_equal(answer->code, rows[i].code);
        assert_int_equal(atomic_load(&f->n_writes), 1);
        kinf__exchange_free(exchange);
    }
}

static void without_memory_nothing_is_lost(void **state)
{
    static const char *const lines[] = {
        "* * 500",       "* * 503 as=html late", "* * login",
        "* * hang late", "* * cut after=9",      "* * truncate at=5",
        "* * gzip",      "read * empty",         "read * grow=9",
        "* * twice",     "* * refuse=500",       "* * refuse=endless",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(lines); i++) {
        bool has_failed = true;

        for (size_t n = 1; has_failed; n++) {
            unsigned id = 0;
            int failed;

            test_fail_allocation(n);
            failed = kinf__faults_add(f->faults, lines[i], &id, NULL);
            step_once(f, pods);
            step_once(f, watch_list);
            has_failed = test_allocation_failed();
            assert_true(failed == 0 || failed == KINF_ERR_NO_MEMORY);
            assert_int_equal(kinf__faults_remove(f->faults, 0), 0);
        }
    }
}

#define SERVED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(codes_come_with_their_status),
        SERVED(a_write_fails_before_it_happens),
        SERVED(a_write_may_happen_and_its_answer_be_lost),
        SERVED(a_connection_may_break_before_a_write_happens),
        SERVED(a_line_tells_what_it_has_hit),
        SERVED(a_write_is_warned_of_with_its_own_answer_alone),
        SERVED(a_name_is_taken_by_a_conflict_of_create),
        SERVED(a_connection_breaks_before_the_head),
        SERVED(a_connection_breaks_in_the_body),
        SERVED(a_watch_breaks_behind_events),
        SERVED(json_is_cut_in_a_body_that_is_whole),
        SERVED(a_byte_of_the_answer_is_another),
        SERVED(nothing_is_answered_for_a_while),
        SERVED(nothing_is_answered_for_ever),
        SERVED(who_waits_in_vain_may_leave),
        SERVED(a_stop_is_not_held_up),
        SERVED(connections_are_dropped),
        SERVED(watch_lists_are_refused_as_servers_do),
        SERVED(watch_lists_miss_their_state_or_its_end),
        SERVED(events_and_bookmarks_are_not_as_they_were),
        SERVED(a_watch_gives_way_to_a_page),
        SERVED(a_list_is_empty_and_then_full),
        SERVED(an_object_is_huge),
        SERVED(answers_are_compressed_in_members),
        cmocka_unit_test(large_lists_suffer_likewise),
        SERVED(the_first_line_that_is_due_takes_the_request),
        cmocka_unit_test(the_same_requests_get_the_same_faults),
        SERVED(a_user_agent_is_told_by_its_name),
        SERVED(requests_are_written_down),
        SERVED(faults_are_changed_while_it_runs),
        cmocka_unit_test(a_warning_that_there_is_no_memory_for_leaves_those_before),
        SERVED(a_body_beyond_the_limit_is_refused_and_not_written),
        SERVED(without_memory_nothing_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
