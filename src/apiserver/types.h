/*
 * The built-in types: what kube-apiserver 1.37 has of the groups that this server knows, as
 * `kubectl api-resources` shows them.
 *
 * Threads: constant.
 */
#ifndef KINF_APISERVER_TYPES_H
#define KINF_APISERVER_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#include "rest/discovery.h"

/* One row; lists are as kinf__has_word() reads them, "" is none. */
struct kinf__builtin {
    const char *group; /* "" for the core group */
    const char *version;
    const char *resource;
    const char *singular;
    const char *kind;
    const char *short_names;
    const char *categories;
    const char *verbs;        /* "": all eight; "create": nothing is stored */
    const char *subresources; /* "status,scale,eviction" */
    bool namespaced;
};

extern const struct kinf__builtin kinf__builtins[];
extern const size_t kinf__n_builtins;

/* Whether a row's verbs, or a resource's, have this one. */
bool kinf__has_verb(const char *verbs, const char *verb);

#endif
