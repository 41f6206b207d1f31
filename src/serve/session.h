/*
 * What a cache has to show before it answers somebody who may know more: the writes that were
 * answered through this daemon (consistency: session). One for each source.
 *
 * A write is noted before its writer can have seen the end of the answer. From then on the cache is
 * behind until it shows the write: by its version, or by what became of one object. Who reads
 * meanwhile waits, or asks the API server; what it is shown there is noted like a write. A source
 * that nobody wrote costs its readers one atomic load.
 *
 * Signs. Most answers have the version of the write, and the newest of them is all that is kept. An
 * answer that has none is remembered with the object:
 *  - what is deleted is gone, or has another uid, or is newer than the answer. That it is not there
 *    proves nothing before the cache has what was written until then: it may not be there yet.
 *  - what is evicted, or deleted with a collection, is gone, or another, or being deleted, with
 *    something that holds it: a grace or a finalizer.
 *  - a pod that is bound has a node, or is gone.
 * Of an answer that was not understood there is no sign: the cache is late, until it shows the version
 * of a write that was sent behind it.
 *
 * Late is a cache of which a wait came to nothing, until it has what was waited for, or of which there
 * is no sign. It is not waited for: its readers ask the API server at once. Watches that began there for
 * that end behind their next event when it is late no more, so that their clients come back.
 *
 * Bounds. KINF__SESSION_MAX_SIGNS objects; more of them count as not understood. A sign, or its want,
 * is forgotten after KINF__SESSION_MAX_AGE_MS if the version of the cache still rose at least
 * KINF__SESSION_TRUST_MS behind the write: the server's bookmarks are of about now. A version is never
 * forgotten. All is when the server went back in time: then what was written may be lost.
 *
 * Threads: any.
 */
#ifndef KINF_SERVE_SESSION_H
#define KINF_SERVE_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <kinformer/indexer.h>

#include "base/list.h"
#include "base/lock.h"

#define KINF__SESSION_MAX_SIGNS  4096
#define KINF__SESSION_MAX_AGE_MS 180000
#define KINF__SESSION_TRUST_MS   120000
#define KINF__SESSION_ANY        UINT64_MAX /* a version that nothing is newer than */

/* X(enumerator, when the cache shows it) */
#define KINF__SESSION_SIGNS(X)                                                                     \
    X(KINF__SESSION_VERSION, "it has reached `version`")                                           \
    X(KINF__SESSION_GONE, "the object is gone, another, or newer than `version`")                  \
    X(KINF__SESSION_LEAVING, "the object is gone, another, or held while being deleted")           \
    X(KINF__SESSION_BOUND, "the object is gone, another, or has spec.nodeName")                    \
    X(KINF__SESSION_UNKNOWN, "nobody can tell")

enum kinf__session_sign {
#define X(sign, when) sign,
    KINF__SESSION_SIGNS(X)
#undef X
};

struct kinf__session_write {
    enum kinf__session_sign sign;
    uint64_t version;
    const char *key; /* "namespace/name", "name"; of an object's sign */
    const char *uid; /* "": any */
    int64_t sent_ms; /* when it was asked for; 0: it was not, a read has shown it */
};

struct kinf__session {
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__list signs; /* of objects, the oldest first */
    size_t n_signs;
    uint64_t version;        /* 0: reached */
    uint64_t late_version;   /* the newest that was waited for to no end; 0: none, or reached */
    int64_t unknown_ms;      /* when the last write came that there is no sign of; 0: none */
    uint64_t behind_unknown; /* of a write that was sent after that; 0: none yet */
    uint64_t last_version;   /* that was seen by a tick; 0: none */
    int64_t rose_ms;         /* when that rose the last time */
    /* atomic */
    _Atomic(bool) is_behind;
    _Atomic(uint64_t) n_waits;  /* reads that waited */
    _Atomic(uint64_t) n_misses; /* reads that the cache did not answer */
};

enum kinf__session_state {
    KINF__SESSION_REACHED,
    KINF__SESSION_BEHIND, /* worth a wait */
    KINF__SESSION_LATE,
};

void kinf__session_init(struct kinf__session *session);
void kinf__session_release(struct kinf__session *session);

/* `now_ms` is above 0. Without memory there is no sign. */
void kinf__session_note(struct kinf__session *session, const struct kinf__session_write *write,
                        int64_t now_ms);

/* Whether there is anything that the cache has to show. */
static inline bool kinf__session_is_behind(struct kinf__session *session)
{
    return atomic_load(&session->is_behind);
}

/* What the cache shows, by a snapshot and its version. */
enum kinf__session_state kinf__session_look(struct kinf__session *session,
                                            const struct kinf_snapshot *snapshot, uint64_t version);
/* A wait came to nothing. */
void kinf__session_note_late(struct kinf__session *session);

/* The same as looking, and what time does. From one thread, with what the cache has by then. */
void kinf__session_tick(struct kinf__session *session, const struct kinf_snapshot *snapshot,
                        uint64_t version, int64_t now_ms);

struct kinf__session_status {
    uint64_t version; /* that is not reached; 0: none */
    size_t n_signs;
    bool is_unknown;
    bool is_late;
    uint64_t n_waits;
    uint64_t n_misses;
};

void kinf__session_status(struct kinf__session *session, struct kinf__session_status *ret_status);

#endif
