/*
 * Random changes, each object's by one thread, whose answers are the history.
 *
 * Writers go straight to the server, by a way that no fault is for. Some go through the sidecar
 * instead and read there what they wrote: that is what consistency `session` promises.
 *
 * Threads: one calls all of these.
 */
#ifndef SOAK_WRITER_H
#define SOAK_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "soak/text.h"

struct writer_options {
    const char *server;      /* "http://localhost" */
    const char *unix_socket; /* of the server; NULL: by TCP */
    const char *authority;   /* files of PEM; NULL: none */
    const char *certificate;
    const char *key;
    const char *sidecar; /* its URL; NULL: nobody writes through it */
    const char *token;   /* for the sidecar, which passes on what has one */
    uint64_t seed;
};

void writers_start(const struct writer_options *options);
/* So many writes a second, all together; 0: as many as can be. */
void writers_go(unsigned rate);
/* Nothing is begun any more; and whether nothing is under way any more. */
void writers_pause(void);
bool writers_are_idle(void);

/* Of which types (bits) it is judged what the sidecar answers. Of none while the server lies to it, nor
 * behind a restore of the server, until the sidecar has noticed it: it has later versions than those
 * that are written now; and of none that the server does not serve now and then. */
void writers_judge_sessions(unsigned types);

struct writer_counts {
    uint64_t n_failed;   /* writes whose answer was lost or refused, and read again */
    uint64_t n_sessions; /* reads through the sidecar behind a write through it */
    uint64_t n_unread;   /* of these: that it did not answer */
    uint64_t n_judged;   /* of these: whose answer was judged */
};
struct writer_counts writers_counts(void);

/* Reads a list of the server (or by the sidecar) and calls for each item; false: no answer. */
typedef void writers_item_cb(struct kinf_str item, void *ctx);
bool writers_list(bool by_sidecar, const char *target, writers_item_cb *callback, void *ctx);

#endif
