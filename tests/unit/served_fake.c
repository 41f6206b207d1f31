#include "unit/served_fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/time.h>

#include "base/compiler.h"
#include "unit/sweep.h"
#include "unit/swept_fake.h"

#define TIMEOUT_S 30 /* of real time */

/* --- life --- */

int served_fake_start(struct served_fake *served, struct kinf_client *client, bool passes,
                      kinf__log_request_cb *log_request, void *log_ctx, struct kinf_error *err)
{
    static const struct kinf__forwarder_options forwarding = KINF__FORWARDER_OPTIONS_INIT;
    struct kinf__server_options options = { .log_request = log_request, .log_ctx = log_ctx };
    int failed = 0;

    *served = (struct served_fake){ .fake = NULL };
    if (passes)
        failed = kinf__forwarder_new(client, &forwarding, &served->forwarder, err);
    options.forwarder = served->forwarder;
    if (failed < 0 || (failed = kinf__server_new(&options, &served->server, err)) < 0)
        return failed;
    return kinf__endpoint_start_local(served->server, &served->endpoint, &served->address,
                                      &served->address_len, err);
}

int served_fake_begin(struct served_fake *served, struct kinf_fake *fake, bool passes,
                      kinf__log_request_cb *log_request, void *log_ctx, struct kinf_error *err)
{
    struct kinf_client *client = kinf_fake_client(fake);
    int failed = served_fake_start(served, client, passes, log_request, log_ctx, err);
    struct kinf__catalog *catalog;

    served->fake = fake;
    if (failed < 0 || (failed = kinf__catalog_fetch(client, &catalog, err)) < 0)
        return failed;
    kinf__server_set_catalog(served->server, catalog);
    return 0;
}

int served_fake_add(struct served_fake *served, struct kinf_informer_options *options,
                    struct kinf__source_options *source, struct kinf_error *err)
{
    struct served_source *one = &served->sources[served->n_sources];
    int failed;

    SWEPT_CHECK(served->n_sources < SERVED_SOURCES_MAX);
    if (options->resource == NULL)
        options->resource = "configmaps";
    failed = kinf_informer_new(kinf_fake_client(served->fake), options, &one->informer, err);
    if (failed < 0)
        return failed;
    served->n_sources++;
    source->informer = one->informer;
    failed = kinf__server_add_source(served->server, source, &one->source, err);
    if (failed == 0)
        kinf__server_publish_source(served->server, one->source);
    return failed < 0 ? failed : kinf_informer_start(one->informer, err);
}

/* A list is stored a moment before it is noted as a sign of life, without which /readyz is not. */
void served_fake_wait(struct served_fake *served)
{
    swept_fake_settle(served->fake);
    for (size_t i = 0; i < served->n_sources; i++) {
        struct kinf_informer_status status = { .last_contact_ms = 0 };

        while (status.last_contact_ms == 0) {
            kinf_informer_status(served->sources[i].informer, &status);
            kinf__fake_nap();
        }
    }
}

void served_fake_stop(struct served_fake *served)
{
    if (served->endpoint != NULL)
        kinf__endpoint_quiesce(served->endpoint);
    if (served->server != NULL)
        kinf__server_stop(served->server);
    kinf__endpoint_free(KINF__TAKE(served->endpoint));
}

void served_fake_end(struct served_fake *served)
{
    served_fake_stop(served);
    for (size_t i = 0; i < served->n_sources; i++) {
        if (served->sources[i].source != NULL)
            kinf__server_retire_source(served->server, served->sources[i].source);
        (void)kinf_informer_stop(served->sources[i].informer, NULL);
        kinf__source_free(served->sources[i].source);
        kinf_informer_free(served->sources[i].informer);
    }
    kinf__server_free(served->server);
    kinf__forwarder_free(served->forwarder);
}

/* --- the client --- */

/* A connection that gives up after 30 s. */
static int dial(const struct served_fake *served)
{
    const struct timeval timeout = { TIMEOUT_S, 0 };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    SWEPT_CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    SWEPT_CHECK(connect(fd, (const struct sockaddr *)&served->address, served->address_len) == 0);
    return fd;
}

int served_fake_send(const struct served_fake *served, const char *text)
{
    int fd = dial(served);

    (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
    return fd;
}

bool served_fake_read(int fd, const char *word, struct kinf__buffer *text)
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

struct served_answer served_fake_answer(int fd)
{
    struct served_answer answer = { 0, NULL, NULL };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    const char *length;
    char *head_end;
    bool is_whole;

    served_fake_read(fd, NULL, &text);
    close(fd);
    head_end = text.len > 0 ? strstr(text.bytes, "\r\n\r\n") : NULL;
    if (head_end == NULL)
        return answer;
    *head_end = '\0';
    answer.head = strdup(text.bytes);
    answer.body = strdup(head_end + 4);
    SWEPT_CHECK(answer.head != NULL && answer.body != NULL);
    length = strcasestr(answer.head, "Content-Length: ");
    if (length != NULL)
        is_whole = strlen(answer.body) == strtoul(length + 16, NULL, 10);
    else if (strcasestr(answer.head, "Transfer-Encoding: chunked") != NULL)
        is_whole = join_chunks(answer.body);
    else
        is_whole =
            status_of(answer.head) >= 400; /* of a head that is refused nothing else says so */
    answer.status = is_whole ? status_of(answer.head) : 0;
    return answer;
}

void served_answer_release(struct served_answer *answer)
{
    free(KINF__TAKE(answer->head));
    free(KINF__TAKE(answer->body));
}
