/*
 * What an object's text says of its end and of its owners. Controllers ask that of every object
 * there is: a tree of each would cost more than all the rest.
 *
 * Threads: any thread.
 */
#ifndef KINF_APISERVER_META_TEXT_H
#define KINF_APISERVER_META_TEXT_H

#include "object/object.h"

/* Of type KINF__JSON_NULL: none. */
struct kinf__meta_text {
    bool is_going; /* has a deletionTimestamp */
    struct kinf__json_value finalizers;
    struct kinf__json_value owners; /* not empty */
};

/* Reads metadata; of `object` NULL nothing is said. Valid as kinf__object_body() states. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__meta_text_read(const struct kinf_object *object,
                                         struct kinf_scratch *scratch,
                                         struct kinf__meta_text *ret_meta);
/* The same for who asks that alone; without memory: false. */
bool kinf__meta_text_is_going(const struct kinf_object *object);
bool kinf__meta_text_has_finalizer(const struct kinf__meta_text *meta, const char *name);

/* Decoded; a text that is too long for what there is counts as none. */
struct kinf__owner_reference {
    char api_version[KINF_NAME_MAX + 64];
    char kind[64];
    char name[KINF_NAME_MAX];
    char uid[64];
    bool is_controller;
    bool blocks; /* blockOwnerDeletion */
};

/* The next one of metadata.ownerReferences. Returns false at the end. */
bool kinf__owner_reference_next(struct kinf__json_iter *iter,
                                struct kinf__owner_reference *ret_reference);

#endif
