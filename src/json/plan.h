/*
 * Prune plans: which parts of an object are stored, applied while the object is scanned and copied.
 *
 * A plan is a trie over paths. While a value is scanned, what the plan captures is noted with its
 * place, and an object or array that it drops is stepped over, even if it is captured: only its quotes
 * and brackets are looked at, so that it may be malformed otherwise. A subtree that no path enters is
 * copied in one piece, so a plan costs what it names, not what it passes.
 *
 * Rules: drops win over keeps inside the kept; protected paths win over everything. With at least
 * one keep, what is neither kept nor protected is dropped, but an object on the way to such a path
 * stays (perhaps as `{}`), and so does an array if the path goes on with [*]. Dropping all members
 * of an object leaves `{}`; dropping elements of an array (path ending in a subscript) removes
 * them, `[*]` leaves `[]`. The outermost value always stays. Paths with [digits] are not allowed in
 * a plan (KINF_ERR_INVALID): elements have no stable places.
 *
 * Threads: build on one thread; afterwards constant but for what it remembers to have met, any thread.
 */
#ifndef KINF_JSON_PLAN_H
#define KINF_JSON_PLAN_H

#include "base/buffer.h"
#include "json/path.h"
#include "json/scan.h"

/* Captures of one plan at most. */
#define KINF__JSON_MAX_CAPTURES 16

struct kinf__json_plan;

KINF_MUST_CHECK int kinf__json_plan_new(struct kinf__json_plan **ret_plan, struct kinf_error *err);
void kinf__json_plan_free(struct kinf__json_plan *plan);

/* The path is only read. Errors: KINF_ERR_INVALID (see above), KINF_ERR_LIMIT (the plan's paths mix
 * [*] and keys too much), KINF_ERR_NO_MEMORY. On failure the plan does what it did before. */
KINF_MUST_CHECK int kinf__json_plan_drop(struct kinf__json_plan *plan, const struct kinf_path *path,
                                         struct kinf_error *err);
KINF_MUST_CHECK int kinf__json_plan_keep(struct kinf__json_plan *plan, const struct kinf_path *path,
                                         struct kinf_error *err);
KINF_MUST_CHECK int kinf__json_plan_protect(struct kinf__json_plan *plan,
                                            const struct kinf_path *path, struct kinf_error *err);
/* Notes the value at `path` (keys only, no [*]) in slot `slot` < KINF__JSON_MAX_CAPTURES,
 * which must be free (KINF_ERR_INVALID). */
KINF_MUST_CHECK int kinf__json_plan_capture(struct kinf__json_plan *plan,
                                            const struct kinf_path *path, unsigned slot,
                                            struct kinf_error *err);

/* Whether a value at `path` always stays, whatever is beside it; [index] counts as [*]. */
bool kinf__json_plan_keeps(const struct kinf__json_plan *plan, const struct kinf_path *path);

/* Whether a value at `path` may stay, at least somewhere: [*] stands for whatever it may. */
bool kinf__json_plan_can_keep(const struct kinf__json_plan *plan, const struct kinf_path *path);
/* Whether a protected path is in front of `path`, or is it. */
bool kinf__json_plan_protects(const struct kinf__json_plan *plan, const struct kinf_path *path);
/* Whether the path of a drop or a keep named a value in what was pruned so far, or another rule
 * leaves nothing to it. */
bool kinf__json_plan_has_met(const struct kinf__json_plan *plan, const struct kinf_path *path,
                             bool is_drop);

struct kinf__json_capture {
    unsigned n_found; /* 0: not there; above 1: a doubled key, the place is the last one's */
    bool is_dropped;  /* the place is in the input, not in the output */
    enum kinf__json_type type;
    size_t offset; /* of the raw value */
    size_t len;
};

/* Scans one value of `text` as kinf__json_scan() does, but for objects and arrays that the plan drops, of
 * which it finds the end by quotes and brackets, and appends what the plan leaves of it to `out` (white
 * space inside what is copied stays as it is; white space around the value does not go along).
 * `ret_captures` has KINF__JSON_MAX_CAPTURES members; offsets into the output count from
 * the length that `out` had at the call. On failure `out` has its old length. Errors: as
 * kinf__json_scan(), with *ret_len likewise, and KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__json_prune(const struct kinf__json_plan *plan, struct kinf_str text,
                                     bool is_final, struct kinf__buffer *out,
                                     struct kinf__json_capture *ret_captures, size_t *ret_len);

/* A value of a text. */
struct kinf__json_stretch {
    size_t offset;
    size_t len; /* 0: none */
};

/* The same of one value that was scanned before and has nothing behind it: what no path enters is
 * stepped over (cursor.h) and not scanned again, nor looked at if it is one of `known`. Errors:
 * KINF_ERR_NO_MEMORY; others of another text. */
KINF_MUST_CHECK int kinf__json_prune_scanned(const struct kinf__json_plan *plan,
                                             struct kinf_str text,
                                             const struct kinf__json_stretch *known, size_t n_known,
                                             struct kinf__buffer *out,
                                             struct kinf__json_capture *ret_captures);

/* Walks the trie: nodes sorted and linked as they must be. For tests. */
bool kinf__json_plan_check(const struct kinf__json_plan *plan);

#endif
