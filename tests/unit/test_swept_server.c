/*
 * What the daemon serves by, from start to stop, while one allocation fails, or one thread cannot be
 * started: an answer is whole and right, or it is an error or cut, and the next one is right. See
 * sweep.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/time.h>

#include "base/buffer.h"
#include "base/compiler.h"
#include "informer/informer.h"
#include "serve/endpoint.h"
#include "sim/fake.h"
#include "unit/sweep.h"
#include "unit/swept_fake.h"
#include "unit/test.h"

#define N_TRIES   4
#define TIMEOUT_S 30 /* of real time */

#define JSON  "application/json"
#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"

#define OBJECTS "/api/v1/namespaces/default/configmaps"

struct world {
    struct kinf_fake *fake;
    struct kinf__forwarder *forwarder;
    struct kinf__server *server;
    struct kinf_informer *informer;
    struct kinf__source *source;
    struct kinf__endpoint *endpoint;
    struct sockaddr_un address;
    socklen_t address_len;
};

/* --- life --- */

static int add_source(struct world *world, struct kinf_error *err)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .name_space = NULL };
    int failed;

    options.resource = "configmaps";
    failed = kinf_informer_new(kinf_fake_client(world->fake), &options, &world->informer, err);
    if (failed < 0)
        return failed;
    source.informer = world->informer;
    failed = kinf__server_add_source(world->server, &source, &world->source, err);
    if (failed == 0)
        kinf__server_publish_source(world->server, world->source);
    return failed < 0 ? failed : kinf_informer_start(world->informer, err);
}

static int begin(struct world *world, struct kinf_error *err)
{
    static const struct kinf__forwarder_options forwarding = KINF__FORWARDER_OPTIONS_INIT;
    struct kinf_client *client = kinf_fake_client(world->fake);
    struct kinf__server_options options = { .name = NULL };
    struct kinf__catalog *catalog;
    int failed;

    if ((failed = kinf__forwarder_new(client, &forwarding, &world->forwarder, err)) < 0)
        return failed;
    options.forwarder = world->forwarder;
    if ((failed = kinf__server_new(&options, &world->server, err)) < 0 ||
        (failed = kinf__catalog_fetch(client, &catalog, err)) < 0)
        return failed;
    kinf__server_set_catalog(world->server, catalog);
    failed = add_source(world, err);
    return failed < 0 ? failed
                      : kinf__endpoint_start_local(world->server, &world->endpoint, &world->address,
                                                   &world->address_len, err);
}

static void stop_serving(struct world *world)
{
    if (world->endpoint != NULL)
        kinf__endpoint_quiesce(world->endpoint);
    if (world->server != NULL)
        kinf__server_stop(world->server);
    kinf__endpoint_free(world->endpoint);
    world->endpoint = NULL;
}

static void end(struct world *world)
{
    stop_serving(world);
    if (world->source != NULL)
        kinf__server_retire_source(world->server, world->source);
    if (world->informer != NULL)
        (void)kinf_informer_stop(world->informer, NULL);
    kinf__source_free(world->source);
    kinf_informer_free(world->informer);
    kinf__server_free(world->server);
    kinf__forwarder_free(world->forwarder);
}

/* --- a client --- */

static int send_head(struct world *world, const char *method, const char *target,
                     const char *accept, const char *body)
{
    const struct timeval timeout = { TIMEOUT_S, 0 };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char text[1024];

    SWEPT_CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    SWEPT_CHECK(connect(fd, (struct sockaddr *)&world->address, world->address_len) == 0);
    snprintf(text, sizeof text,
             "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\nConnection: "
             "close\r\nAuthorization: Bearer t\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             method, target, accept, strlen(body), body);
    (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
    return fd;
}

/* Until `word` has come, if it is not NULL, or the end. Returns whether it has. */
static bool read_until(int fd, const char *word, struct kinf__buffer *text)
{
    char piece[4096];
    ssize_t n;

    for (;;) {
        const char *so_far = kinf__buffer_cstr(text);

        SWEPT_CHECK(so_far != NULL);
        if (word != NULL && strstr(so_far, word) != NULL)
            return true;
        n = recv(fd, piece, sizeof piece, 0);
        if (n < 0 && errno == ECONNRESET)
            return false;
        SWEPT_CHECK(n >= 0);
        if (n == 0)
            return false;
        SWEPT_CHECK(kinf__buffer_append(text, piece, (size_t)n) == 0);
    }
}

static int status_of(const char *text)
{
    return strncmp(text, "HTTP/1.1 ", 9) == 0 ? atoi(text + 9) : 0;
}

/* Takes chunks apart, in place. Returns false if the last one is missing. */
static bool join_chunks(char *body)
{
    char *to = body, *from = body;

    for (;;) {
        char *end;
        size_t len = strtoul(from, &end, 16);

        if (end == from || strncmp(end, "\r\n", 2) != 0 || strlen(end + 2) < len + 2)
            return false;
        memmove(to, end + 2, len);
        to += len;
        from = end + 2 + len + 2;
        if (len != 0)
            continue;
        *to = '\0';
        return true;
    }
}

struct answer {
    int status; /* 0: it was cut */
    char *body;
};

static struct answer ask_once(struct world *world, const char *method, const char *target,
                              const char *accept, const char *body)
{
    int fd = send_head(world, method, target, accept, body);
    struct kinf__buffer text = KINF__BUFFER_INIT;
    struct answer answer = { 0, NULL };
    const char *length;
    char *head_end;
    bool is_whole;

    read_until(fd, NULL, &text);
    close(fd);
    head_end = text.len > 0 ? strstr(text.bytes, "\r\n\r\n") : NULL;
    if (head_end != NULL) {
        *head_end = '\0';
        answer.body = strdup(head_end + 4);
        SWEPT_CHECK(answer.body != NULL);
        length = strcasestr(text.bytes, "Content-Length: ");
        is_whole = length != NULL ? strlen(answer.body) == strtoul(length + 16, NULL, 10)
                                  : join_chunks(answer.body);
        answer.status = is_whole ? status_of(text.bytes) : 0;
    }
    kinf__buffer_release(&text);
    return answer;
}

/* What is answered in the end, which the caller frees. Before that nothing comes but what says that it
 * is no answer, and that only if something has failed. */
static char *ask_with(struct world *world, const char *method, const char *target,
                      const char *accept, const char *body)
{
    for (int i = 0; i < N_TRIES; i++) {
        struct answer answer = ask_once(world, method, target, accept, body);

        if (answer.status == 200 || answer.status == 201 || (i > 0 && answer.status == 409))
            return answer.body;
        if (!test_swept_hit() ||
            (answer.status != 0 && answer.status < 500 && answer.status != 429))
            fprintf(stderr, "%s: %d %s\n", target, answer.status,
                    answer.body != NULL ? answer.body : "");
        SWEPT_CHECK(test_swept_hit());
        SWEPT_CHECK(answer.status == 0 || answer.status >= 500 || answer.status == 429);
        free(answer.body);
    }
    fprintf(stderr, "%s %s\n", method, target);
    SWEPT_CHECK(!"it is not answered");
    return NULL;
}

static char *ask(struct world *world, const char *target, const char *accept)
{
    return ask_with(world, "GET", target, accept, "");
}

/* --- what is asked --- */

static const struct {
    const char *target, *accept;
    const char *has; /* a part of the answer */
    bool is_constant;
} asked[] = {
    { OBJECTS "/a", JSON, "\"name\":\"a\"", true },
    { OBJECTS, JSON, "\"name\":\"b\"", true },
    { OBJECTS "?labelSelector=sync%3Dtrue&fieldSelector=metadata.name%3Db", JSON, "\"b\"", true },
    { OBJECTS, TABLE, "\"columnDefinitions\"", false },
    { OBJECTS "/a", TABLE, "\"rows\"", false },
    { "/api", JSON, "APIVersions", true },
    { "/apis", JSON, "APIGroupList", true },
    { "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "items",
      true },
    { "/api/v1", JSON, "configmaps", true },
    { "/version", JSON, "gitVersion", true },
    { "/readyz?verbose", JSON, "configmaps", false },
    { "/metrics", JSON, "kinformer", false },
    { "/debug/state", JSON, "configmaps", false },
    { "/api/v1/secrets", JSON, "SecretList", false },
};

static void ask_for_all(struct world *world, char *answers[KINF__ARRAY_LEN(asked)])
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(asked); i++) {
        answers[i] = ask(world, asked[i].target, asked[i].accept);
        if (strstr(answers[i], asked[i].has) == NULL)
            fprintf(stderr, "%s: %s\n", asked[i].target, answers[i]);
        SWEPT_CHECK(strstr(answers[i], asked[i].has) != NULL);
    }
}

/* What was answered while something failed is what is answered when nothing does any more. */
static void ask_for_all_twice(struct world *world)
{
    char *first[KINF__ARRAY_LEN(asked)], *second[KINF__ARRAY_LEN(asked)];

    ask_for_all(world, first);
    ask_for_all(world, second);
    for (size_t i = 0; i < KINF__ARRAY_LEN(asked); i++) {
        if (asked[i].is_constant && strcmp(first[i], second[i]) != 0)
            fprintf(stderr, "%s:\n%s\n%s\n", asked[i].target, first[i], second[i]);
        SWEPT_CHECK(!asked[i].is_constant || strcmp(first[i], second[i]) == 0);
        free(first[i]);
        free(second[i]);
    }
}

static void turn_pages(struct world *world)
{
    char *page = ask(world, OBJECTS "?limit=1", JSON), target[512];
    const char *token = strstr(page, "\"continue\":\"");

    SWEPT_CHECK(token != NULL && strstr(page, "\"name\":\"b\"") == NULL);
    token += strlen("\"continue\":\"");
    snprintf(target, sizeof target, OBJECTS "?limit=1&continue=%.*s", (int)strcspn(token, "\""),
             token);
    free(page);
    page = ask(world, target, JSON);
    SWEPT_CHECK(strstr(page, "\"name\":\"b\"") != NULL && strstr(page, "\"name\":\"a\"") == NULL);
    free(page);
}

/* Passed on; what was written is read at once. */
static void write_one(struct world *world)
{
    char *answer = ask_with(world, "POST", OBJECTS, JSON,
                            "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                            "\"w\"}}");

    free(answer);
    /* Reads wait for writes that were answered. One whose answer was lost has come by then. */
    if (test_swept_hit())
        swept_fake_settle(world->fake);
    free(ask(world, OBJECTS "/w", JSON));
}

/* What is there, then what comes. A watch that breaks is begun again. */
static void watch(struct world *world)
{
    bool has_changed = false, is_told = false;

    for (int i = 0; i < N_TRIES && !is_told; i++) {
        int fd = send_head(world, "GET", OBJECTS "?watch=1&allowWatchBookmarks=true", JSON, "");
        struct kinf__buffer text = KINF__BUFFER_INIT;

        if (read_until(fd, "\"name\":\"b\"", &text)) {
            if (!has_changed)
                swept_fake_put(world->fake, "c", "1");
            has_changed = true;
            is_told = read_until(fd, "\"name\":\"c\"", &text);
        }
        SWEPT_CHECK(is_told || test_swept_hit());
        kinf__buffer_release(&text);
        close(fd);
    }
    SWEPT_CHECK(is_told);
}

/* A list is stored a moment before it is noted as a sign of life, without which /readyz is not. */
static void wait_until_ready(struct world *world)
{
    struct kinf_informer_status status = { .last_contact_ms = 0 };

    swept_fake_settle(world->fake);
    while (status.last_contact_ms == 0) {
        kinf_informer_status(world->informer, &status);
        kinf__fake_nap();
    }
}

static void serve(void)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct world world = { .fake = swept_fake_new() };
    int failed;

    swept_fake_put(world.fake, "a", "1");
    swept_fake_put(world.fake, "b", "1");
    SWEPT(failed = begin(&world, &err));
    if (SWEPT_OK(failed, &err)) {
        wait_until_ready(&world);
        ask_for_all_twice(&world);
        turn_pages(&world);
        write_one(&world);
        watch(&world);
    }
    SWEPT(end(&world));
    kinf_fake_free(world.fake);
}

static void answers_are_right_or_errors_whichever_allocation_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_ALLOCATIONS, serve, 200);
}

static void a_server_is_right_or_refused_whichever_thread_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_THREADS, serve, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_right_or_errors_whichever_allocation_fails),
        cmocka_unit_test(a_server_is_right_or_refused_whichever_thread_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
