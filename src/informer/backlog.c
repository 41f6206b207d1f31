/*
 * What the two kinds of backlog share. Neighbours: listener.c has one, backlog_unbounded.c and
 * backlog_coalescing.c are the kinds.
 *
 * Invariant: pushing cannot fail, since what it needs was reserved.
 */
#include "informer/backlog.h"

#include <assert.h>

#include "base/error.h"

int kinf__backlog_new(enum kinf_backlog kind, struct kinf__backlog **ret_backlog,
                      struct kinf_error *err)
{
    const struct kinf__backlog_class *class =
        kind == KINF_BACKLOG_COALESCE ? &kinf__backlog_coalescing : &kinf__backlog_unbounded;
    struct kinf__backlog *backlog;

    if (kind != KINF_BACKLOG_UNBOUNDED && kind != KINF_BACKLOG_COALESCE)
        return kinf__error_set(err, KINF_ERR_INVALID, "a handler has no backlog %d", (int)kind);
    backlog = class->make();
    if (backlog == NULL)
        return kinf__error_no_memory(err);
    backlog->class = class;
    if (kinf__backlog_reserve(backlog, 1) < 0) {
        class->free(backlog);
        return kinf__error_no_memory(err);
    }
    *ret_backlog = backlog;
    return 0;
}

void kinf__backlog_free(struct kinf__backlog *backlog)
{
    if (backlog != NULL)
        backlog->class->free(backlog);
}

int kinf__backlog_reserve(struct kinf__backlog *backlog, size_t n)
{
    int rc = backlog->class->reserve(backlog, backlog->n_reserved + n);

    if (rc == 0)
        backlog->n_reserved += n;
    return rc;
}

void kinf__backlog_unreserve(struct kinf__backlog *backlog, size_t n)
{
    assert(n <= backlog->n_reserved);
    backlog->n_reserved -= n;
    backlog->class->trim(backlog);
}

void kinf__backlog_push(struct kinf__backlog *backlog,
                        const struct kinf__notification *notifications, size_t n, int64_t now_ms)
{
    assert(n <= backlog->n_reserved);
    for (size_t i = 0; i < n; i++)
        backlog->class->push(backlog, &notifications[i], (uint32_t)now_ms);
    backlog->n_reserved -= n;
}

bool kinf__backlog_take_initial(struct kinf__backlog *backlog, const char *key,
                                const struct kinf_object **ret_object)
{
    return backlog->class->take_initial != NULL &&
           backlog->class->take_initial(backlog, key, ret_object);
}

bool kinf__backlog_oldest(const struct kinf__backlog *backlog, uint32_t *ret_since_ms)
{
    if (backlog->n_notifications == 0)
        return false;
    *ret_since_ms = backlog->class->oldest(backlog);
    return true;
}

bool kinf__backlog_check(const struct kinf__backlog *backlog)
{
    return backlog->class->check(backlog);
}
