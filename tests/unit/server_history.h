/*
 * What a model server holds: a few objects, everything that ever happened to them, and the way back
 * to an earlier state, after which resourceVersions are used again for other content.
 *
 * Each key has a log of its states, which only grows: what anybody is told of a key must be found
 * there, one after the other. Times at which a key was not there are states too.
 *
 * Threads: any thread, except that functions with `_locked` want the history's lock.
 */
#ifndef KINF_TESTS_UNIT_SERVER_HISTORY_H
#define KINF_TESTS_UNIT_SERVER_HISTORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <kinformer/indexer.h>
#include <kinformer/object.h>

#include "base/buffer.h"
#include "unit/test.h"

/* --- objects --- */

/* Slot i is the ConfigMap "k<i>" of the namespace "ns<i % 3>". */
#define SERVER_N_SLOTS 18

struct server_state {
    unsigned long serial; /* of the write, unique for ever; 0: not there */
    unsigned long uid;    /* also of what was deleted */
    unsigned long rv;     /* of the write or the deletion; 0: never there, or undone by a restore */
    bool is_labelled;     /* app=a, else app=b */
};

size_t server_slot_of(const struct kinf_object *object);

/* What of an object somebody has. Nobody is sent the managedFields but who asks for metadata alone, and
 * gets SERVER_ALL_METADATA. */
enum server_part { SERVER_WHOLE, SERVER_WITHOUT_TEXT, SERVER_METADATA, SERVER_ALL_METADATA };

/* That much of the object's JSON as it stood in `state`, with `rv`; `is_typed`: with kind and
 * apiVersion. */
void server_append_object(struct kinf__buffer *text, size_t slot, const struct server_state *state,
                          unsigned long rv, enum server_part part, bool is_typed);

/* Half of the objects, by their uid, of which the server knows nothing. */
#define SERVER_SHARD "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"

/* What one client asks for, and keeps. */
struct server_view {
    const char *name_space; /* NULL: all */
    bool only_labelled;
    bool only_shard;
    enum server_part part;
};
bool server_view_sees(const struct server_view *view, size_t slot,
                      const struct server_state *state);

/* --- history --- */

struct server_event {
    size_t slot;
    unsigned long rv;
    struct server_state before, after;
};

/* A generation that ended. */
struct server_past {
    unsigned long first_rv, last_rv;
    struct server_state last[SERVER_N_SLOTS];
    struct server_event *events;
    size_t n_events;
};

struct server_log {
    struct server_state *states;
    size_t n_states;
};

struct server_checkpoint {
    unsigned long rv;
    struct server_state states[SERVER_N_SLOTS];
};

struct server_history {
    pthread_mutex_t lock;
    struct test_random random;
    unsigned generation; /* counts restores */
    struct server_past *past;
    unsigned long first_rv; /* of this generation */
    unsigned long rv;
    unsigned long highest_rv; /* of all generations */
    unsigned long oldest_rv;  /* what happened up to here is forgotten */
    unsigned long last_serial;
    unsigned long last_uid;
    struct server_state now[SERVER_N_SLOTS];
    struct server_event *events; /* of this generation */
    size_t n_events;
    struct server_checkpoint checkpoint;
    struct server_log logs[SERVER_N_SLOTS];
};

void server_history_init(struct server_history *history, uint64_t seed);
void server_history_release(struct server_history *history);

/* Creates, updates, relabels, deletes or re-creates something. */
void server_history_change(struct server_history *history);
void server_history_set_checkpoint(struct server_history *history);
void server_history_restore(struct server_history *history);
/* Nothing older than now can be watched or paged through any more. */
void server_history_forget(struct server_history *history);
/* Moves the version beyond all that any generation has had. */
void server_history_outrun(struct server_history *history);

/* The state at an earlier version of this generation, not before oldest_rv. */
void server_history_at_locked(const struct server_history *history, unsigned long rv,
                              struct server_state *ret_states);

/* --- judging clients --- */

#define SERVER_NOWHERE SIZE_MAX

/* All of these: the first place in the object's log, from `from` on, where the view... */
/* ...saw exactly this object. */
size_t server_history_find_state(struct server_history *history, const struct server_view *view,
                                 size_t from, const struct kinf_object *object);
/* ...lost sight of it, by an event with exactly this object. */
size_t server_history_find_deletion(struct server_history *history, const struct server_view *view,
                                    size_t from, const struct kinf_object *object);
/* ...did not see it, or saw another of the name. */
size_t server_history_find_absence(struct server_history *history, const struct server_view *view,
                                   size_t from, const struct kinf_object *object);

/* Whether the snapshot is exactly what the view sees now. */
bool server_history_equals(struct server_history *history, const struct server_view *view,
                           const struct kinf_snapshot *snapshot);
/* Whether it is exactly what the view saw at the snapshot's version, in whichever generation. */
bool server_history_had(struct server_history *history, const struct server_view *view,
                        const struct kinf_snapshot *snapshot);

#endif
