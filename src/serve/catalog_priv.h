/*
 * The catalog's insides, for reading (catalog.c) and for writing documents (discovery.c).
 *
 * Threads: constant once fetched.
 */
#ifndef KINF_SERVE_CATALOG_PRIV_H
#define KINF_SERVE_CATALOG_PRIV_H

#include "serve/catalog.h"

struct kinf__catalog {
    struct kinf__catalog_entry *entries; /* in the server's order: the core group first */
    size_t n_entries;
    char *version; /* NULL: none */
};

#endif
