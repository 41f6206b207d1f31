/*
 * The entries of metadata.managedFields while they are changed. For managed.c and apply.c.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_DOCUMENT_MANAGED_PRIV_H
#define KINF_DOCUMENT_MANAGED_PRIV_H

#include "document/field_set.h"
#include "document/managed.h"

/* Texts are of the list that was read, of a struct kinf__manager, or literals; "": none. */
struct kinf__entry {
    const char *manager;
    bool is_apply;
    const char *api_version;
    const char *subresource;
    const char *time;
    struct kinf__field_set fields;
};

struct kinf__entries {
    struct kinf__entry *items;
    size_t n_items;     /* there is room up to the next power of two */
    struct cJSON *list; /* that was read */
};

void kinf__entries_release(struct kinf__entries *entries);
#define KINF__AUTO_ENTRIES KINF__CLEANUP(kinf__entries_release) struct kinf__entries

/* Of the object's managedFields. Errors: KINF_ERR_INVALID, they make no sense and none is read;
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__entries_read(struct kinf__entries *entries, const struct cJSON *object);
/* Sorts them, and puts those that have fields into the object; none: it has no managedFields. */
KINF_MUST_CHECK int kinf__entries_write(struct kinf__entries *entries, struct cJSON *object);

/* The manager's, made without a time if there is none. NULL: out of memory. */
struct kinf__entry *kinf__entries_get(struct kinf__entries *entries,
                                      const struct kinf__manager *manager, bool is_apply);
/* Takes all fields from those of another group than this apiVersion's: the server cannot read them. */
void kinf__entries_forget_foreign(struct kinf__entries *entries, const char *api_version);
/* Takes fields from all but one, which may be NULL. */
void kinf__entries_subtract(struct kinf__entries *entries, const struct kinf__entry *except,
                            const struct kinf__field_set *fields);

/* Takes out what is nobody's: metadata.name, and what else the server keeps. */
void kinf__fields_strip(struct kinf__field_set *fields);

#endif
