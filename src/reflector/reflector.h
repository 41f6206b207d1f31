/*
 * The reflector: keeps a DeltaFIFO up to date with one resource of the API server.
 *
 * It lists, watches from the list's version, and starts again where the protocol says so; or it
 * asks for a watch that sends the whole state first, collects that state until the bookmark behind
 * it, hands it to the queue like a list, and goes on watching the same stream. What it requests
 * next is decided by the policy (policy.h), what it receives is cut and decoded by the streams
 * (list_stream.h, watch_stream.h); the reflector itself is the thread between socket and queue. It
 * never runs user code but the callbacks below.
 *
 * With a shard selector, what is outside of the shard is left out here, whether the server does so
 * or not: one that does not know the parameter answers with everything and does not say so.
 *
 * An object that cannot be decoded, or is too large, makes the reflector list; one that fails again
 * is quarantined (quarantine.h): it is left out and the rest goes on. A list leaves it out like an
 * object that is gone, so the queue's Replace deletes what is stored of it with a tombstone. When
 * only a watch event of it fails again, what is stored stays as it is until the next event that
 * decodes, or list; one follows when that watch, or a later one, ends, and the last was ten minutes ago.
 *
 * After an outage the newest that is known is verified before the watch goes on: the server may have
 * been restored from a backup (reflector_verify.c). A state of an earlier run is treated like that: the
 * time in between was an outage (reflector_saved.c).
 *
 * A resource that the server says 404 of, and that its discovery does not have any more, is gone:
 * the queue gets a Replace with nothing, so what is stored is deleted with tombstones.
 *
 * Mirrors: cache.Reflector.
 * Threads: new, start, stop and free on one thread; the callbacks run on the reflector's.
 */
#ifndef KINF_REFLECTOR_REFLECTOR_H
#define KINF_REFLECTOR_REFLECTOR_H

#include <stddef.h>
#include <stdint.h>

#include <kinformer/client.h>
#include <kinformer/deltafifo.h>
#include <kinformer/error.h>
#include <kinformer/indexer.h>
#include <kinformer/informer.h>
#include <kinformer/type.h>

#include "base/stop.h"
#include "object/object.h"
#include "object/shard.h"

/* What the reflector is about. X(enumerator, name) */
#define KINF__REFLECTOR_PHASES(X)                                                                  \
    X(KINF__REFLECTOR_LISTING, "listing")   /* a list is under way */                              \
    X(KINF__REFLECTOR_WATCHING, "watching") /* a watch is open */                                  \
    X(KINF__REFLECTOR_WAITING, "waiting")   /* backing off after an error */

enum kinf__reflector_phase {
#define X(phase, name) phase,
    KINF__REFLECTOR_PHASES(X)
#undef X
};

const char *kinf__reflector_phase_to_string(enum kinf__reflector_phase phase);

/* Where a state of an earlier run was, and when. */
struct kinf__saved_origin {
    char rv[64];     /* not empty */
    int64_t wall_ms; /* when it was so */
};
typedef int kinf__saved_object_cb(const struct kinf_object *take_object, void *ctx,
                                  struct kinf_error *err);

/* Hands over the objects of an earlier run, each as it was stored; the callback takes them over, and
 * its failure ends it. What was compressed goes on to be made by `packer` (NULL: nothing is to be). On
 * the reflector's thread, before the first request. Errors: there is no such state, or it is not to be
 * used; why is its own business. */
typedef int kinf__saved_load_fn(struct kinf__packer *packer, kinf__saved_object_cb *callback,
                                void *callback_ctx, struct kinf__saved_origin *ret_origin,
                                void *ctx, struct kinf_error *err);

struct kinf__reflector_callbacks {
    /* The phase changed. For KINF__REFLECTOR_WAITING `err` is why and `wait_ms` how long. */
    void (*on_phase)(enum kinf__reflector_phase phase, const struct kinf_error *err,
                     int64_t wait_ms, void *ctx);
    /* A proof that what is stored is true: a complete list, or of a watch an event or a bookmark,
     * and where there are no bookmarks its whole time in silence. That a watch was accepted proves
     * nothing. */
    void (*on_contact)(bool by_watch, void *ctx);
    /* What a watch has brought is queued, and there is nothing more to read for now. */
    void (*on_pause)(void *ctx);
    /* An object is left out from now on. `key` may be "": one whose key nobody knows. */
    void (*on_quarantine)(const char *key, const struct kinf_error *err, void *ctx);
    /* The server sends what is outside of the shard (`key` is the first of it), or a whole list
     * came without such (NULL). */
    void (*on_shard_ignored)(const char *key, void *ctx);
    /* The server's watches are not to be relied on (frozen.h), lists keep the queue true; `err`
     * is why. NULL: a watch delivers again. */
    void (*on_frozen)(const struct kinf_error *err, void *ctx);
    /* The state of an earlier run, of this wall time, is about to enter the queue (0: it could not).
     * Later: what the queue has by now is all that the server had since, and a bookmark follows it. */
    void (*on_loaded)(int64_t wall_ms, void *ctx);
    void (*on_confirmed)(const char *rv, void *ctx);
    void *ctx;
};

/* All borrowed, and must outlive the reflector. Times: 0 is the default. */
struct kinf__reflector_options {
    struct kinf_client *client;
    const struct kinf_type *type;
    const char *name_space;     /* NULL or "": all */
    const char *label_selector; /* NULL: none */
    const char *field_selector;
    const struct kinf__shard_selector *shard; /* NULL: none */
    const struct kinf__prune_plan *plan;
    struct kinf_deltafifo *fifo; /* fed */
    struct kinf_indexer *known;  /* unchanged objects are taken from here; NULL: none */
    enum kinf_initial initial;   /* 0: auto, see policy.h */
    size_t page_size;            /* limit of a LIST; 0: one page, streamed */
    size_t max_object_bytes;     /* of JSON; 0: 16 MiB */
    int64_t watch_timeout_ms;    /* timeoutSeconds is drawn from [this, twice this); 0: 300,000 */
    int64_t silent_after_ms;     /* without a byte on a watch, +-15 %: re-watch; 0: 150,000 */
    int64_t backoff_base_ms;     /* 0: 800 */
    int64_t backoff_max_ms;      /* 0: 30,000 */
    bool accept_gzip;            /* on LIST */
    bool metadata_only;          /* asks for PartialObjectMetadata, and takes nothing else */
    struct kinf__packer *packer; /* makes the objects; NULL: they are held as they are */
    /* Ends long work on a list; set only when the reflector was interrupted. NULL: nothing does. */
    const struct kinf__stop *stop;
    struct kinf__reflector_callbacks callbacks;
};

/* Numbers since the start, for status and tests. Read from any thread. */
struct kinf__reflector_counts {
    uint64_t n_lists;   /* begun, watch lists included */
    uint64_t n_watches; /* begun; a watch list becomes one by its bookmark */
    uint64_t n_events;  /* of watches, without bookmarks and errors */
    uint64_t n_bookmarks;
    uint64_t n_errors;        /* failed requests and broken streams */
    uint64_t n_silent;        /* watches given up since nothing came */
    uint64_t n_extra_lists;   /* in doubt about the watches: see frozen.h */
    uint64_t n_quarantined;   /* objects that are left out now */
    uint64_t n_outside_shard; /* listed, streamed or changed objects that the server should not
                                 have sent */
    uint64_t received_bytes;  /* of bodies, inflated */
    int64_t last_list_ms;     /* when the last one was whole; 0: none was */
    /* Of the list or watch list under way: as in struct kinf_informer_status. */
    int64_t list_since_ms;
    uint64_t n_list_objects;
    uint64_t n_list_expected;
    uint64_t list_bytes;
};

struct kinf__reflector;

KINF_MUST_CHECK int kinf__reflector_new(const struct kinf__reflector_options *options,
                                        struct kinf__reflector **ret_reflector,
                                        struct kinf_error *err);
/* It begins with what `load` hands over. Before start. */
void kinf__reflector_set_saved(struct kinf__reflector *reflector, kinf__saved_load_fn *load,
                               void *ctx);
/* Starts the thread, once. */
KINF_MUST_CHECK int kinf__reflector_start(struct kinf__reflector *reflector,
                                          struct kinf_error *err);
/* Makes the thread end, whatever it waits for but the fifo; returns at once. */
void kinf__reflector_interrupt(struct kinf__reflector *reflector);
/* Interrupts, joins and closes the connection; one that never started is allowed. The fifo must not
 * block it: it is closed or drained before. What was collected of a list stays until it is freed,
 * which takes longer than a stop may. */
void kinf__reflector_stop(struct kinf__reflector *reflector);
/* Stops and frees. NULL is allowed. */
void kinf__reflector_free(struct kinf__reflector *reflector);

void kinf__reflector_counts(const struct kinf__reflector *reflector,
                            struct kinf__reflector_counts *ret_counts);

#endif
