/*
 * Applying prune plans. Neighbours: scan.c, which scans what stays and no path enters; cursor.c, which
 * steps over what goes; plan.c, which built the trie. The output is the input less some stretches, so
 * copying is put off: everything between two stretches goes along in one piece. Invariant: what lies in
 * front of `copied` is in the output or was cut, and recursion follows the trie, so it is never deeper
 * than a path has steps.
 */
#include "json/plan.h"

#include <string.h>

#include "json/cursor.h"
#include "json/plan_priv.h"
#include "json/scan_priv.h"

/* What happens by default to the values below a place. */
enum mode {
    MODE_PROTECTED, /* all stay */
    MODE_KEPT,      /* all stay but what is dropped */
    MODE_OUTSIDE, /* there are keeps, and none of them was met: only what is kept or protected stays
                   */
    MODE_DROPPED, /* only what is protected stays */
    MODE_GONE,    /* nothing stays; places are still noted */
};

struct pruner {
    struct kinf__json_scanner scanner;
    const uint8_t *start;                   /* of the input */
    bool is_scanned;                        /* it was, before */
    const struct kinf__json_stretch *known; /* of it, values that end where they are said to */
    size_t n_known;
    const uint8_t *copied; /* see above */
    struct kinf__buffer *out;
    size_t out_start; /* length of the output before this value */
    struct kinf__json_capture *captures;
};

/* A container that a path enters, and how far its members were dealt with. */
struct container {
    const struct kinf__plan_node *node;
    enum mode mode;
    unsigned depth; /* of its members */
    bool is_object;
    bool has_kept; /* a member in front stays */
    const uint8_t
        *from; /* where it is to be cut if the member goes: with the comma in front, if any */
};

static size_t place_in_output(const struct pruner *pruner, const uint8_t *at)
{
    return pruner->out->len - pruner->out_start + (size_t)(at - pruner->copied);
}

/* Copies what lies in front of `from` and leaves out what follows, up to `to`. */
static const uint8_t *cut(struct pruner *pruner, const uint8_t *from, const uint8_t *to)
{
    if (kinf__buffer_append(pruner->out, pruner->copied, (size_t)(from - pruner->copied)) < 0)
        return kinf__json_scan_fail(&pruner->scanner, KINF_ERR_NO_MEMORY, from);
    pruner->copied = to;
    return to;
}

static void note(struct pruner *pruner, const struct kinf__plan_node *node,
                 struct kinf__json_capture found)
{
    for (uint32_t slots = node->captures; slots != 0; slots &= slots - 1) {
        struct kinf__json_capture *capture = &pruner->captures[__builtin_ctz(slots)];

        found.n_found = capture->n_found + 1;
        *capture = found;
    }
}

/* Whether a value that does not stay by itself stays for the sake of what may be inside. */
static bool is_on_the_way(const struct kinf__plan_node *node, enum mode mode, uint8_t first)
{
    const unsigned wanted =
        mode == MODE_OUTSIDE ? KINF__PLAN_KEEP | KINF__PLAN_PROTECT : KINF__PLAN_PROTECT;

    if (first == '{')
        return (node->marks_below & wanted) != 0;
    return first == '[' && node->each != NULL &&
           ((node->each->marks | node->each->marks_below) & wanted) != 0;
}

/* The mode of a member from that of its container. */
static enum mode mode_of_member(enum mode mode, const struct kinf__plan_node *node, uint8_t first)
{
    if (mode == MODE_PROTECTED || mode == MODE_GONE)
        return mode;
    if (node == NULL)
        return mode == MODE_KEPT ? MODE_KEPT : MODE_GONE;
    if ((node->marks & KINF__PLAN_PROTECT) != 0)
        return MODE_PROTECTED;
    if ((node->marks & KINF__PLAN_DROP) != 0)
        mode = MODE_DROPPED;
    else if (mode == MODE_OUTSIDE && (node->marks & KINF__PLAN_KEEP) != 0)
        mode = MODE_KEPT;
    if (mode != MODE_KEPT && !is_on_the_way(node, mode, first))
        return MODE_GONE;
    return mode;
}

/* Whether the plan has a say in what is inside of a value. */
static bool must_enter(const struct kinf__plan_node *node, enum mode mode, uint8_t first)
{
    if (node == NULL || (first != '{' && first != '['))
        return false;
    switch (mode) {
    case MODE_OUTSIDE:
    case MODE_DROPPED:
        return true;
    case MODE_KEPT:
        return (node->marks_below & (KINF__PLAN_DROP | KINF__PLAN_CAPTURE)) != 0;
    default:
        return (node->marks_below & KINF__PLAN_CAPTURE) != 0;
    }
}

static size_t len_of_known(const struct pruner *pruner, const uint8_t *at)
{
    for (size_t i = 0; i < pruner->n_known; i++) {
        if (pruner->known[i].len != 0 && at == pruner->start + pruner->known[i].offset)
            return pruner->known[i].len;
    }
    return 0;
}

/* By quotes and brackets alone: a value of a text that was scanned before, or one that goes. */
static const uint8_t *step_over(struct pruner *pruner, const uint8_t *at)
{
    size_t len = len_of_known(pruner, at);
    struct kinf__json_cursor cursor;

    if (len == 0) {
        kinf__json_cursor_init(
            &cursor, (struct kinf_str){ (const char *)at, (size_t)(pruner->scanner.end - at) });
        kinf__json_cursor_skip(&cursor);
        len = cursor.at;
    }
    kinf__json_scan_go_on(&pruner->scanner, at + len);
    return at + len;
}

/* Whatever it is in, more comes behind it. */
static const uint8_t *step_over_gone(struct pruner *pruner, const uint8_t *at)
{
    at = step_over(pruner, at);
    return at != pruner->scanner.end
               ? at
               : kinf__json_scan_fail(&pruner->scanner, KINF_ERR_TRUNCATED, at);
}

static const uint8_t *prune_container(struct pruner *pruner, const uint8_t *at,
                                      const struct kinf__plan_node *node, enum mode mode,
                                      unsigned depth);

static const uint8_t *prune_value(struct pruner *pruner, const uint8_t *at,
                                  const struct kinf__plan_node *node, enum mode mode,
                                  unsigned depth)
{
    if (must_enter(node, mode, *at))
        return prune_container(pruner, at, node, mode, depth);
    if (pruner->is_scanned)
        return step_over(pruner, at);
    return mode == MODE_GONE && (*at == '{' || *at == '[')
               ? step_over_gone(pruner, at)
               : kinf__json_scan_value(&pruner->scanner, at, depth);
}

static void meet(const struct kinf__plan_node *node)
{
    _Atomic(bool) *is_met = (_Atomic(bool) *)&node->is_met;

    if (!atomic_load_explicit(is_met, memory_order_relaxed))
        atomic_store_explicit(is_met, true, memory_order_relaxed);
}

/* From in front of a key or an element to behind the value. */
static const uint8_t *prune_member(struct pruner *pruner, const uint8_t *at,
                                   const struct container *container, bool *ret_is_kept)
{
    const struct kinf__plan_node *node = container->node->each;
    struct kinf__json_capture found = { 0 };
    const uint8_t *start;
    enum mode mode;
    struct kinf_str key;

    if (container->is_object) {
        pruner->scanner.has_escapes = false;
        at = kinf__json_scan_key(&pruner->scanner, at, &key);
        if (at == NULL)
            return NULL;
        node = kinf__plan_node_find(container->node, key, pruner->scanner.has_escapes);
    }
    start = kinf__json_skip_white(at, pruner->scanner.end);
    if (start == pruner->scanner.end)
        return kinf__json_scan_fail(&pruner->scanner, KINF_ERR_TRUNCATED, start);
    if (node != NULL && (node->marks & (KINF__PLAN_DROP | KINF__PLAN_KEEP)) != 0)
        meet(node);
    mode = mode_of_member(container->mode, node, *start);
    found.is_dropped = mode == MODE_GONE;
    found.offset =
        found.is_dropped ? (size_t)(start - pruner->start) : place_in_output(pruner, start);
    at = prune_value(pruner, start, node, mode, container->depth);
    if (at == NULL)
        return NULL;
    if (node != NULL && node->captures != 0) {
        found.type = kinf__json_type_at(*start);
        found.len =
            found.is_dropped ? (size_t)(at - start) : place_in_output(pruner, at) - found.offset;
        note(pruner, node, found);
    }
    *ret_is_kept = !found.is_dropped;
    return at;
}

/* Cuts a member that does not stay, which ends at `behind`, with one of the commas beside it: the
 * one in front if a member in front stays, else the one that follows, if any, at `at`. */
static const uint8_t *cut_member(struct pruner *pruner, const struct container *container,
                                 const uint8_t *behind, const uint8_t *at)
{
    if (!container->has_kept)
        behind = *at == ',' ? at + 1 : at;
    return cut(pruner, container->from, behind);
}

_Static_assert(KINF_PATH_MAX_STEPS < KINF__JSON_MAX_DEPTH,
               "what paths lead into is never nested too deep");

static const uint8_t *prune_container(struct pruner *pruner, const uint8_t *at,
                                      const struct kinf__plan_node *node, enum mode mode,
                                      unsigned depth)
{
    const uint8_t *const end = pruner->scanner.end, *behind;
    const uint8_t closing = *at + 2; /* in ASCII, for both kinds */
    struct container container = { node, mode, depth + 1, *at == '{', false, at + 1 };
    bool is_kept = false;

    at = kinf__json_skip_white(at + 1, end);
    if (at < end && *at == closing)
        return at + 1;
    for (;;) {
        behind = prune_member(pruner, at, &container, &is_kept);
        if (behind == NULL)
            return NULL;
        at = kinf__json_skip_white(behind, end);
        if (at == end)
            return kinf__json_scan_fail(&pruner->scanner, KINF_ERR_TRUNCATED, at);
        if (*at != ',' && *at != closing)
            return kinf__json_scan_fail(&pruner->scanner, KINF_ERR_PARSE, at);
        if (!is_kept && mode != MODE_GONE && cut_member(pruner, &container, behind, at) == NULL)
            return NULL;
        container.has_kept |= is_kept;
        container.from = container.has_kept ? at : at + 1;
        if (*at++ == closing)
            return at;
    }
}

static enum mode mode_of_root(const struct kinf__json_plan *plan)
{
    return (plan->root.marks_below & KINF__PLAN_KEEP) != 0 ? MODE_OUTSIDE : MODE_KEPT;
}

static const uint8_t *prune_root(struct pruner *pruner, const struct kinf__json_plan *plan)
{
    const struct kinf__plan_node *root = &plan->root;
    enum mode mode = mode_of_root(plan);
    const uint8_t *at = kinf__json_skip_white(pruner->start, pruner->scanner.end);

    pruner->copied = at;
    if (at == pruner->scanner.end)
        return kinf__json_scan_fail(&pruner->scanner, KINF_ERR_TRUNCATED, at);
    at = prune_value(pruner, at, root, mode, 0);
    return at != NULL ? cut(pruner, at, at) : NULL;
}

static const struct kinf__plan_node *find_step(const struct kinf__plan_node *node,
                                               const struct kinf__path_step *step)
{
    const struct kinf__plan_node *found = NULL;

    for (size_t i = 0; step->type == KINF__PATH_KEY && found == NULL && i < node->n_nodes; i++) {
        if (kinf_str_equal(node->nodes[i]->key, step->key))
            found = node->nodes[i];
    }
    return found != NULL ? found : node->each;
}

bool kinf__json_plan_keeps(const struct kinf__json_plan *plan, const struct kinf_path *path)
{
    const struct kinf__plan_node *node = &plan->root;
    enum mode mode = mode_of_root(plan);

    for (size_t i = 0; i < path->n_steps && mode != MODE_GONE; i++) {
        bool is_last = i + 1 == path->n_steps;
        uint8_t first = is_last ? '"' : (path->steps[i + 1].type == KINF__PATH_INDEX ? '[' : '{');

        node = node != NULL ? find_step(node, &path->steps[i]) : NULL;
        mode = mode_of_member(mode, node, first);
    }
    return mode == MODE_KEPT || mode == MODE_PROTECTED;
}

/* What walking a path through the trie asks, from its step `at` on; `node` NULL: no rule says
 * anything here. */
static bool can_keep(const struct kinf__plan_node *node, enum mode mode,
                     const struct kinf_path *path, size_t at);

static bool can_keep_member(const struct kinf__plan_node *child, enum mode mode,
                            const struct kinf_path *path, size_t at)
{
    bool is_last = at + 1 == path->n_steps;
    uint8_t first = is_last ? '"' : (path->steps[at + 1].type == KINF__PATH_INDEX ? '[' : '{');

    return can_keep(child, mode_of_member(mode, child, first), path, at + 1);
}

static bool can_keep(const struct kinf__plan_node *node, enum mode mode,
                     const struct kinf_path *path, size_t at)
{
    if (mode == MODE_GONE || at == path->n_steps)
        return mode == MODE_KEPT || mode == MODE_PROTECTED;
    if (node == NULL)
        return can_keep_member(NULL, mode, path, at);
    if (path->steps[at].type != KINF__PATH_EACH)
        return can_keep_member(find_step(node, &path->steps[at]), mode, path, at);
    for (size_t i = 0; i < node->n_nodes; i++) {
        if (can_keep_member(node->nodes[i], mode, path, at))
            return true;
    }
    return can_keep_member(node->each, mode, path, at);
}

bool kinf__json_plan_can_keep(const struct kinf__json_plan *plan, const struct kinf_path *path)
{
    return can_keep(&plan->root, mode_of_root(plan), path, 0);
}

bool kinf__json_plan_protects(const struct kinf__json_plan *plan, const struct kinf_path *path)
{
    const struct kinf__plan_node *node = &plan->root;

    for (size_t i = 0; i < path->n_steps && node != NULL; i++) {
        node = find_step(node, &path->steps[i]);
        if (node != NULL && (node->marks & KINF__PLAN_PROTECT) != 0)
            return true;
    }
    return false;
}

/* Below a node with one of the marks `hiding` nothing was looked at. */
static bool has_met(const struct kinf__plan_node *node, unsigned hiding,
                    const struct kinf_path *path, size_t at)
{
    if (node == NULL || at == path->n_steps)
        return node != NULL && atomic_load_explicit(&node->is_met, memory_order_relaxed);
    if ((node->marks & hiding) != 0)
        return true;
    if (path->steps[at].type == KINF__PATH_KEY)
        return has_met(find_step(node, &path->steps[at]), hiding, path, at + 1);
    for (size_t i = 0; i < node->n_nodes; i++) {
        if (has_met(node->nodes[i], hiding, path, at + 1))
            return true;
    }
    return has_met(node->each, hiding, path, at + 1);
}

bool kinf__json_plan_has_met(const struct kinf__json_plan *plan, const struct kinf_path *path,
                             bool is_drop)
{
    return has_met(&plan->root,
                   KINF__PLAN_DROP | KINF__PLAN_PROTECT | (is_drop ? 0 : KINF__PLAN_KEEP), path, 0);
}

static int prune(struct pruner *pruner, const struct kinf__json_plan *plan, struct kinf_str text,
                 bool is_final, size_t *ret_len)
{
    int status;

    pruner->start = (const uint8_t *)text.bytes;
    pruner->out_start = pruner->out->len;
    memset(pruner->captures, 0, KINF__JSON_MAX_CAPTURES * sizeof *pruner->captures);
    kinf__json_scanner_init(&pruner->scanner, text, is_final);
    status = kinf__json_scan_end(&pruner->scanner, text, prune_root(pruner, plan), ret_len);
    if (status < 0)
        pruner->out->len = pruner->out_start;
    return status;
}

int kinf__json_prune(const struct kinf__json_plan *plan, struct kinf_str text, bool is_final,
                     struct kinf__buffer *out, struct kinf__json_capture *ret_captures,
                     size_t *ret_len)
{
    struct pruner pruner = { .out = out, .captures = ret_captures };

    return prune(&pruner, plan, text, is_final, ret_len);
}

int kinf__json_prune_scanned(const struct kinf__json_plan *plan, struct kinf_str text,
                             const struct kinf__json_stretch *known, size_t n_known,
                             struct kinf__buffer *out, struct kinf__json_capture *ret_captures)
{
    struct pruner pruner = {
        .is_scanned = true, .known = known, .n_known = n_known, .out = out, .captures = ret_captures
    };
    size_t len;

    return prune(&pruner, plan, text, true, &len);
}
