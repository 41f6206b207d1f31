/*
 * What one follower was told, checked against the history line by line.
 *
 * The first line says who it is and what it follows:
 *
 *   hello NAME handler|kinformerd|watch [types=pods,leases...] [namespaces=0,2] [part=NAME]
 *
 * All streams of one part together have each object once (shards); others each object. The lines
 * behind it, of a handler (RESOURCE is as in soak_types, UID and SUMs are those of struct version):
 *
 *   A RESOURCE KEY UID RV SUM INITIAL       it was told on_add; INITIAL is 0 or 1
 *   U RESOURCE KEY UID RV SUM OLDRV OLDSUM  on_update
 *   D RESOURCE KEY UID RV SUM UNKNOWN       on_delete
 *   S RESOURCE KEY UID RV SUM               this is in its store: the answer to `check`
 *   E RESOURCE                              that was all of this type
 *   X TEXT                                  something is wrong by its own account (its indices...)
 *   L IDENTITY TERM FROM TO                 it acted as leader between these times (soak_now_ms())
 *
 * kinformerd: what `--events json --events-objects` prints. A watch: `B RESOURCE` (all is told anew
 * from here), `W RESOURCE {"type":...}` for each event, as the server sent it, `E RESOURCE` (behind
 * what there was).
 *
 * What is checked of each line:
 *   - The state that it tells is one of the history's, its bytes included, and behind the one that was
 *     told last: versions never go back, nothing is told twice, nothing is made up.
 *   - (add, update*, delete)*; an update is of the same uid, a delete is of one that is deleted.
 *   - `old` is what was told last.
 * And when nothing changes any more, by stream_is_settled(): no object is missing or extra.
 *
 * A line may be there before the writer has its answer: then it waits, and what is behind it.
 *
 * Threads: one.
 */
#ifndef SOAK_STREAM_H
#define SOAK_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soak/history.h"

struct stream;

struct stream *stream_new(void);
void stream_free(struct stream *stream);

enum stream_verdict {
    STREAM_TAKEN,
    STREAM_WAITS, /* to be given again when the history has grown */
};
/* One line without its end. Not within history_lock(). */
enum stream_verdict stream_take(struct stream *stream, struct kinf_str line);

const char *stream_name(const struct stream *stream);
/* "" but for shards. */
const char *stream_part(const struct stream *stream);
bool stream_is_handler(const struct stream *stream);

/* Within history_lock(), while nobody writes: whether it follows this object; and was told that it is
 * there, and how it is now. */
bool stream_follows(const struct stream *stream, uint64_t id);
bool stream_has(const struct stream *stream, uint64_t id);
bool stream_is_current(const struct stream *stream, uint64_t id);

/* Forgets the last answer to `check`. Then: whether the next one is complete; and has the object. */
void stream_expect_store(struct stream *stream);
bool stream_has_whole_store(const struct stream *stream);
bool stream_stores(const struct stream *stream, uint64_t id);

struct stream_counts {
    uint64_t n_events;
    int64_t staleness_ms; /* the longest between an answer to a writer and its being told */
};
struct stream_counts stream_counts(const struct stream *stream);

/* While the server lies (`--fault` empty, grow): what is told as deleted though nobody deleted it, and
 * again as added, is no divergence. */
void streams_lied_to(bool are_lied_to);
/* While the server does not serve these types (bits) now and then: who looks then is told that their
 * objects are deleted, and later that they are added as they were. */
void streams_withdraw(unsigned types);

#endif
