/*
 * An outbox's insides, shared by outbox_feeds.c (the resources' side) and outbox.c (the consumer's).
 *
 * Invariants: an entry is in its feed's map while its object is there; one that is told and gone is in
 * no map but in one of the two lists, or is freed. Of the entries that the feeds of a resource have of one
 * key one tells; the others are its shadows, in no list. A feed's `synced` waits at most once, for all
 * feeds of its resource.
 *
 * Threads: functions with the outbox's lock held.
 */
#ifndef KINF_HANDLERS_OUTBOX_PRIV_H
#define KINF_HANDLERS_OUTBOX_PRIV_H

#include "handlers/outbox.h"

struct kinf__outbox_entry {
    struct kinf__hmap_node node;
    struct kinf__list place; /* in one of the outbox's lists, or in none */
    struct kinf__outbox_feed *feed;
    const struct kinf_object *object; /* the newest of any feed; NULL: it is a feed's `synced` */
    const struct kinf_object *old;    /* as it was told last, if that is kept */
    uint64_t sequence;                /* of what told its deletion */
    bool is_told;                     /* the consumer has it */
    bool was_ever_told;               /* one before it may have */
    bool is_deleted;
    bool is_shadow; /* another feed's entry tells of its key */
    bool in_initial_list;
    bool final_state_unknown;
};

struct kinf__outbox_feed {
    struct kinf__outbox *outbox;
    struct kinf__list link; /* in the outbox's feeds, once it has joined */
    char *resource;
    /* guarded by the outbox's lock */
    struct kinf__hmap entries;
    struct kinf__outbox_entry synced;
    bool is_open;
    bool has_synced;
    bool is_refused;
    bool is_synced_due; /* this consumer has not been told since, and nothing waits that says so */
    bool is_known;      /* the consumer was told something of it */
};

/* --- outbox.c --- */

bool kinf__outbox_entry_is_placed(const struct kinf__outbox_entry *entry);
/* It is told what it has by then, once. */
void kinf__outbox_wait_for_turn(struct kinf__outbox *outbox, struct kinf__outbox_entry *entry);
void kinf__outbox_leave_waiting(struct kinf__outbox *outbox, struct kinf__outbox_entry *entry);
/* It is in no map, and does not wait. */
void kinf__outbox_entry_free(struct kinf__outbox_entry *entry);
void kinf__outbox_set_object(const struct kinf_object **place, const struct kinf_object *object);
/* Those of a feed that goes, told or not. */
void kinf__outbox_drop_deletions(struct kinf__outbox_feed *feed);
/* RESET, and everything anew. */
void kinf__outbox_reset_locked(struct kinf__outbox *outbox) KINF__REQUIRES(outbox->lock);

/* --- outbox_feeds.c --- */

/* What all feeds have is to be told as to one who knows nothing; nothing waits but deletions. */
void kinf__outbox_feeds_tell_anew(struct kinf__outbox *outbox);
bool kinf__outbox_feed_check(const struct kinf__outbox_feed *feed);

#endif
