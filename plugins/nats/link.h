/*
 * A connection to a NATS server, and the two streams that are written: the plugin's own, and the
 * one that is the bucket.
 *
 * Each message is accepted only behind the one that was sent before it (Nats-Expected-Last-Msg-Id),
 * and the first one behind a claim, a message of its own. So what is stored is a beginning of what
 * was sent, whatever fails, and of several writers, or an older connection of the same, only the
 * one counts that has claimed the stream last: the others fail. What was read behind a claim is the
 * state until then.
 *
 * A connection that breaks is not mended: it is opened anew, and what is there read anew.
 *
 * No call waits for longer than about two seconds without looking whether the plugin is to end; then
 * it fails. But libnats 3.4 itself waits for ever while it connects to a server that has greeted it,
 * and then neither answers nor ends the connection.
 *
 * Threads: one thread per object; libnats has some of its own, which never call the plugin.
 */
#ifndef NATS_LINK_H
#define NATS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nats/nats.h>

#include <kinformer/plugin.h>

#include "config.h"

/* What a message says of its object, for who reads headers alone. */
#define LINK_VERSION_HEADER "Kinformer-Version"
#define LINK_CONTENT_HEADER "Kinformer-Content" /* of the bucket's values: see known.h */
#define LINK_TYPE_HEADER    "Kinformer-Type"
#define LINK_TYPE_DELETED   "DELETED"
/* As key-value clients write and read it. */
#define LINK_KV_HEADER "KV-Operation"
#define LINK_KV_DELETE "DEL"

struct lane {
    char *stream;   /* its name */
    char *prefix;   /* of its subjects, with a dot at the end; a key is behind it */
    char *last_id;  /* of the message that was sent last */
    uint64_t claim; /* its sequence */
    uint64_t n_sent;
};

struct link {
    const struct kinf_host *host;
    natsConnection *connection; /* NULL: there is none */
    jsCtx *js;
    char *inbox; /* acknowledgements come here */
    natsSubscription *acks;
    size_t n_unacknowledged;
    struct lane events, bucket;
};

/* Connects, makes stream and bucket if they are not there, and claims both. `link` has its host, and
 * nothing else. */
int link_open(struct link *link, const struct nats_config *config, const char *server,
              struct kinf_error *err);
/* Also of what failed to open, or was never opened. */
void link_close(struct link *link);

/* What a key's last message says. */
struct link_last {
    const char *key;
    const char *version; /* "": it does not say */
    const char *content; /* likewise */
    bool is_gone;
};

/* Told of each key. Returns 0, or -1: no memory. */
typedef int link_read_cb(const struct link_last *last, void *ctx);
int link_read(struct link *link, struct lane *lane, link_read_cb *on_key, void *ctx,
              struct kinf_error *err);

/* The payload of a key's last message, which the caller frees; if there is none, it is left as it is. */
int link_read_one(const struct link *link, const struct lane *lane, const char *key,
                  char **ret_payload, struct kinf_error *err);

/* What is to be sent; headers may be added. NULL: no memory. */
natsMsg *link_message(const struct link *link, const struct lane *lane, const char *key,
                      const char *payload, size_t len);
/* Takes the message, on failure too. Its id begins with `what` it tells, and is its own: a server would
 * not store one whose id it knows. */
int link_send(struct link *link, struct lane *lane, natsMsg *message, const char *what,
              struct kinf_error *err);
/* Waits until all that was sent is stored. */
int link_wait(struct link *link, struct kinf_error *err);

/* How long a payload may be, but for the names in it. */
size_t link_max_payload(const struct link *link);

#endif
