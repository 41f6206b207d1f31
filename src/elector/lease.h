/*
 * A Lease as the server gave it, and the text of the next one: what is not ours stays as it is.
 *
 * Threads: one thread per object, or under its owner's lock.
 */
#ifndef KINF_ELECTOR_LEASE_H
#define KINF_ELECTOR_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/elector.h>

#include "base/buffer.h"
#include "base/rfc3339.h"
#include "object/shard.h"

#define KINF__LEASE_NAME_SIZE 256
#define KINF__LEASE_SET_SIZE  64 /* of a label's value */
#define KINF__LEASE_UID_SIZE  64

/* Of the Leases of shards: their set, and the hashes that their holders claim. */
#define KINF__LEASE_SET_LABEL        "kinformer.dev/shards-of"
#define KINF__LEASE_RANGE_ANNOTATION "kinformer.dev/shard-range"

/* All zero is none. */
struct kinf__lease {
    struct kinf__buffer text;
    struct kinf_str spec; /* in `text`; empty: there is none that can be read */
    /* Of the spec; what is missing, or cannot be meant, is "" or 0. */
    char holder[KINF_ELECTOR_IDENTITY_SIZE]; /* a longer one is nobody's whom we know */
    char acquired_at[KINF__RFC3339_SIZE];
    int64_t duration_ms;
    int64_t transitions;
    bool is_released; /* by its holder, and not by hand: it says "", and one second */
    /* Of the metadata; likewise. */
    char name[KINF__LEASE_NAME_SIZE];
    char uid[KINF__LEASE_UID_SIZE]; /* another one: it was deleted, and made again */
    bool has_range;
    struct kinf__shard_range range;
};

void kinf__lease_release(struct kinf__lease *lease);

/* Takes the text of an object. On failure, `lease` has no text. Errors: KINF_ERR_PARSE,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__lease_read(struct kinf__lease *lease, struct kinf_str text,
                                     struct kinf_error *err);

/* What a holder writes. */
struct kinf__lease_claim {
    const char *holder;
    const char *acquired_at;
    const char *renewed_at;
    int64_t duration_s;
    int64_t transitions;
    const char *shards_of; /* NULL: it is no shard's, and metadata stays as it is */
    const char *range;
};

/* A new one. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__lease_write(const struct kinf__lease_claim *claim, const char *name_space,
                                      const char *name, struct kinf__buffer *out);
/* `lease` with this claim in it, resourceVersion and all. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__lease_rewrite(const struct kinf__lease *lease,
                                        const struct kinf__lease_claim *claim,
                                        struct kinf__buffer *out);

#endif
