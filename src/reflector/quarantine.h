/*
 * Which objects are left out because they cannot be decoded or are too large.
 *
 * The first failure of a key asks for a list: what was broken on the way comes whole. If the key
 * fails again it is quarantined: left out without further ado, while the rest goes on, until a watch
 * brings it whole, or a list went by without it failing. Its failure is remembered for
 * KINF__QUARANTINE_MEMORY_MS, in which it goes back into quarantine without another list, so a key
 * asks for a list at most once in that time. Failures whose key nobody knows share the key "", and
 * so do all new ones beyond KINF__QUARANTINE_MAX_KEYS.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_REFLECTOR_QUARANTINE_H
#define KINF_REFLECTOR_QUARANTINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>

#include "base/hmap.h"
#include "base/list.h"

#define KINF__QUARANTINE_MEMORY_MS 600000
#define KINF__QUARANTINE_MAX_KEYS  1000

enum kinf__quarantine_verdict {
    KINF__QUARANTINE_RELIST, /* failed for the first time: list */
    KINF__QUARANTINE_NEW,    /* failed again: left out from now on */
    KINF__QUARANTINE_KNOWN,  /* is left out already */
};

struct kinf__quarantine {
    struct kinf__hmap by_key;
    struct kinf__list entries;
    uint64_t list_no; /* counts the lists begun */
    size_t n_quarantined;
};

void kinf__quarantine_init(struct kinf__quarantine *quarantine);
void kinf__quarantine_release(struct kinf__quarantine *quarantine);

/* A list begins at its first page. Failures of one key within one list count as one. */
void kinf__quarantine_begin_list(struct kinf__quarantine *quarantine);
/* The list is complete: keys that did not fail in it are released. */
void kinf__quarantine_end_list(struct kinf__quarantine *quarantine, int64_t now_ms);

/* `key` failed. Errors: KINF_ERR_NO_MEMORY, nothing changed. */
KINF_MUST_CHECK int kinf__quarantine_fail(struct kinf__quarantine *quarantine, const char *key,
                                          int64_t now_ms,
                                          enum kinf__quarantine_verdict *ret_verdict,
                                          struct kinf_error *err);

/* `key` was decoded. Returns whether that released it. */
bool kinf__quarantine_decoded(struct kinf__quarantine *quarantine, const char *key);

/* Whether map, list and count agree. For tests. */
bool kinf__quarantine_check(const struct kinf__quarantine *quarantine);

#endif
