/*
 * What the daemon serves by, in front of a fake API server, and a client that looks at its answers
 * byte by byte.
 *
 * Tests that sweep (sweep.h) count what begin, add and end do, and not what the client does.
 * A check that fails ends the process (test_swept_fail()).
 */
#ifndef KINF_TESTS_UNIT_SERVED_FAKE_H
#define KINF_TESTS_UNIT_SERVED_FAKE_H

#include "base/buffer.h"
#include "informer/informer.h"
#include "serve/endpoint.h"
#include "sim/fake.h"

#define SERVED_SOURCES_MAX 2

struct served_source {
    struct kinf_informer *informer;
    struct kinf__source *source;
};

struct served_fake {
    struct kinf_fake *fake;
    struct kinf__forwarder *forwarder;
    struct kinf__server *server;
    struct kinf__endpoint *endpoint;
    struct served_source sources[SERVED_SOURCES_MAX];
    size_t n_sources;
    struct sockaddr_un address;
    socklen_t address_len;
};

/* A server with a catalog and an endpoint, and no source; what it does not have it passes on, if it
 * `passes`. `fake` is the caller's. If it fails, served_fake_end() ends what there is. */
int served_fake_begin(struct served_fake *served, struct kinf_fake *fake, bool passes,
                      kinf__log_request_cb *log_request, void *log_ctx, struct kinf_error *err);
/* The same without a catalog, in front of any client's server. */
int served_fake_start(struct served_fake *served, struct kinf_client *client, bool passes,
                      kinf__log_request_cb *log_request, void *log_ctx, struct kinf_error *err);
/* One more source, which begins to fill; of ConfigMaps, if no resource is named. The informer is made
 * here. */
int served_fake_add(struct served_fake *served, struct kinf_informer_options *options,
                    struct kinf__source_options *source, struct kinf_error *err);
/* Until all that is there is in the sources. */
void served_fake_wait(struct served_fake *served);
/* Every connection ends, as when the daemon stops. */
void served_fake_stop(struct served_fake *served);
void served_fake_end(struct served_fake *served);

/* --- the client --- */

/* A connection that gives up after 30 s, with these bytes sent: whether they are taken is seen by the
 * answer. */
int served_fake_send(const struct served_fake *served, const char *text);
/* Until `word` has come, if it is not NULL, or the end. Returns whether it has. */
bool served_fake_read(int fd, const char *word, struct kinf__buffer *text);

struct served_answer {
    int status; /* 0: it was cut */
    char *head; /* without the empty line; NULL: there is none */
    char *body; /* whole; one in chunks is put together */
};

/* All that comes until the connection ends, which is closed then. */
struct served_answer served_fake_answer(int fd);
void served_answer_release(struct served_answer *answer);

#endif
