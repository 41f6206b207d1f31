/*
 * Whether the server's watches can be relied on, or its watch cache stands still: then a LIST
 * without resourceVersion, which the server takes from etcd, keeps the store true.
 *
 * A watch cache that cannot decode one object, or cannot reach its conversion webhook, stops for
 * good. Watches fall silent or are refused, watch lists and lists at a version say for ever that
 * the version is too large. No single answer tells that from a server that starts or is busy, so it
 * takes KINF__FROZEN_SIGNS signs over at least the list interval, with nothing delivered
 * between, until it is taken for frozen. From then on a list follows a watch that brought nothing,
 * at most one in the list interval, until a watch delivers. A server that was mended is quiet, too,
 * while nothing changes: as long as such lists show no change, each watch is given twice the time of
 * the one before to bring its bookmark.
 *
 * Silence is no sign: there are types whose watches never bring a bookmark, and a list's version is
 * that of all types, so it says nothing of one. Only a list that shows changes which the watch did
 * not bring is a proof. Such a list, a check, is worth its price
 *   - after KINF__FROZEN_SILENT silent watches in a row of a server that does send bookmarks,
 *   - after KINF__FROZEN_SILENT_UNKNOWN (about an hour) of one that never did.
 * After a check that shows no change the next is due after twice as many silent watches, up to
 * KINF__FROZEN_SILENT_UNKNOWN.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_REFLECTOR_FROZEN_H
#define KINF_REFLECTOR_FROZEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>

#define KINF__FROZEN_SIGNS          3
#define KINF__FROZEN_SIGN_MEMORY_MS 600000
#define KINF__FROZEN_SILENT         3
#define KINF__FROZEN_SILENT_UNKNOWN 24

struct kinf__frozen {
    int64_t list_interval_ms;
    bool is_found;
    unsigned n_quiet;     /* lists in a row that showed no change, while found */
    int64_t next_list_ms; /* not before, while found */
    unsigned n_signs;
    int64_t first_sign_ms;
    int64_t last_sign_ms;
    unsigned n_silent; /* watches in a row */
    bool had_outage;   /* and nothing shows yet that what is known is still true: no event does */
    unsigned max_silent;
    bool has_bookmarks; /* the server has sent one, once */
    bool is_check;      /* the list under way */
};

void kinf__frozen_init(struct kinf__frozen *frozen, int64_t list_interval_ms);

/* Whether an answer says that the watch cache is not there. Only its words tell this 429 from that
 * of an overloaded server, which is to be left alone. */
bool kinf__frozen_is_sign(const struct kinf_error *err);
/* The server said so, in whatever form. */
void kinf__frozen_sign(struct kinf__frozen *frozen, int64_t now_ms);
/* The server was away: it may come back as another one. A verification that could count (policy.h)
 * says that it did not; where it cannot, as with a selector, one silent watch leads to a check. */
void kinf__frozen_outage(struct kinf__frozen *frozen);
void kinf__frozen_verified(struct kinf__frozen *frozen);
/* A watch brought nothing at all until it was given up. */
void kinf__frozen_silent(struct kinf__frozen *frozen);
/* A watch, or a watch list, brought something. */
void kinf__frozen_delivered(struct kinf__frozen *frozen, bool is_bookmark);

/* A watch has ended that brought nothing: whether a list shall follow. If so, it has begun. */
bool kinf__frozen_begin_list(struct kinf__frozen *frozen, int64_t now_ms);
/* A list is complete, this one or any other. `has_news`: it differs from what is stored, and is not
 * older. */
void kinf__frozen_listed(struct kinf__frozen *frozen, bool has_news, int64_t now_ms);
/* The one that has begun is given up. */
void kinf__frozen_list_failed(struct kinf__frozen *frozen, int64_t now_ms);

#endif
