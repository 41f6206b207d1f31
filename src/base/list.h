/*
 * An intrusive doubly linked list with a sentinel head.
 *
 * Threads: one thread per list, or under its owner's lock.
 */
#ifndef KINF_BASE_LIST_H
#define KINF_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct kinf__list {
    struct kinf__list *prev;
    struct kinf__list *next;
};

static inline void kinf__list_init(struct kinf__list *list)
{
    list->prev = list;
    list->next = list;
}

static inline bool kinf__list_is_empty(const struct kinf__list *list)
{
    return list->next == list;
}

static inline void kinf__list_push_back(struct kinf__list *list, struct kinf__list *node)
{
    node->prev = list->prev;
    node->next = list;
    list->prev->next = node;
    list->prev = node;
}

/* Unlinks the node and leaves it as an empty list, so that a second removal is harmless. */
static inline void kinf__list_remove(struct kinf__list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    kinf__list_init(node);
}

/* Moves all nodes of `from` behind those of `list`. */
static inline void kinf__list_append(struct kinf__list *list, struct kinf__list *from)
{
    if (kinf__list_is_empty(from))
        return;
    from->next->prev = list->prev;
    list->prev->next = from->next;
    from->prev->next = list;
    list->prev = from->prev;
    kinf__list_init(from);
}

#define KINF__LIST_ENTRY(node, type, member) KINF__CONTAINER_OF(node, type, member)

#define KINF__LIST_FOR_EACH(node, list)                                                            \
    for (struct kinf__list *node = (list)->next; node != (list); node = node->next)

/* From the last one to the first. */
#define KINF__LIST_FOR_EACH_BACK(node, list)                                                       \
    for (struct kinf__list *node = (list)->prev; node != (list); node = node->prev)

/* Forwards; the node may be removed in the body. */
#define KINF__LIST_FOR_EACH_SAFE(node, list)                                                       \
    for (struct kinf__list *node = (list)->next, *node##_next = node->next; node != (list);        \
         node = node##_next, node##_next = node->next)

#endif
