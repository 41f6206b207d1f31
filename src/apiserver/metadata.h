/*
 * What every object's metadata must be like.
 *
 * Threads: one thread per tree.
 */
#ifndef KINF_APISERVER_METADATA_H
#define KINF_APISERVER_METADATA_H

#include "apiserver/invalid.h"
#include "apiserver/names.h"

/* What differs between types. */
struct kinf__metadata_rules {
    enum kinf__name_form form; /* of names */
    bool is_extension;         /* definitions and custom resources: finalizers need no prefix */
};

/* Adds the faults of object.metadata. `old`: what the object was; NULL: it is new. */
void kinf__metadata_validate(const struct cJSON *object, const struct cJSON *old,
                             struct kinf__metadata_rules rules, struct kinf__invalid *invalid);

/* Of a template within an object: labels and annotations. */
void kinf__metadata_validate_labels(const struct cJSON *metadata, const struct kinf__field *field,
                                    struct kinf__invalid *invalid);

#endif
