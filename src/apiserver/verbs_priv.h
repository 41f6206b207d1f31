/*
 * What verbs.c, verb_update.c, verb_patch.c and verb_delete.c share: the steps that a write goes.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_APISERVER_VERBS_PRIV_H
#define KINF_APISERVER_VERBS_PRIV_H

#include <string.h>

#include "object/object.h"
#include "apiserver/verbs.h"

static inline struct kinf__resource_version *version_of(const struct kinf__verb *verb)
{
    return verb->version != NULL ? verb->version : &verb->resource->versions[0];
}

static inline const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static inline bool is_main(const struct kinf__verb *verb)
{
    return *or_empty(verb->subresource) == '\0';
}

static inline int refuse_no_memory(struct kinf__verb *verb)
{
    return kinf__refuse_no_memory(&verb->refusal);
}

static inline const char *name_of(const struct cJSON *object)
{
    return kinf__doc_text(object, "metadata", "name", NULL);
}

static inline const char *namespace_of(const struct cJSON *object)
{
    return kinf__doc_text(object, "metadata", "namespace", NULL);
}

static inline struct kinf__store *store_of(const struct kinf__verb *verb)
{
    return kinf__sim_store(verb->sim);
}

static inline struct cJSON *metadata_of(struct cJSON *object)
{
    return kinf__doc_object(object, "metadata");
}

static inline bool is_of(const struct kinf__verb *verb, const char *group, const char *resource)
{
    return strcmp(verb->resource->group, group) == 0 && strcmp(verb->resource->name, resource) == 0;
}

static inline bool is_definition(const struct kinf__verb *verb)
{
    return is_of(verb, "apiextensions.k8s.io", "customresourcedefinitions");
}

/* All return 0 or a negative code, with the refusal written. */

/* Types, unknown fields, and its kind written into it. */
KINF_MUST_CHECK int kinf__verb_decode(struct kinf__verb *verb, struct cJSON *object);
/* Its namespace and its name, as the path says them; 400 if it says others. */
KINF_MUST_CHECK int kinf__verb_place(struct kinf__verb *verb, struct cJSON *object);
/* What is sent to a path, to be stored as it is or to be created, has to name itself. */
KINF_MUST_CHECK int kinf__verb_check_named(struct kinf__verb *verb, const struct cJSON *object);
int kinf__verb_refuse_name(struct kinf__verb *verb, const char *said);
int kinf__verb_refuse_namespace(struct kinf__verb *verb);
/* `what` ("UID") of the object is to be what was said, and is another. */
int kinf__verb_refuse_precondition(struct kinf__verb *verb, const struct cJSON *object,
                                   const char *what, const char *said, const char *there);

KINF_MUST_CHECK int kinf__verb_fill_defaults(struct kinf__verb *verb, struct cJSON *object);
KINF_MUST_CHECK int kinf__verb_show_lists(struct kinf__verb *verb, struct cJSON *object);
/* `old` NULL: it is new. Of custom resources numbers are written as the server does. */
KINF_MUST_CHECK int kinf__verb_validate(struct kinf__verb *verb, struct cJSON *object,
                                        const struct cJSON *old);
KINF_MUST_CHECK int kinf__verb_note_manager(struct kinf__verb *verb, const struct cJSON *old,
                                            struct cJSON *object);

KINF_MUST_CHECK int kinf__verb_read(struct kinf__verb *verb, const char *name_space,
                                    const char *name, struct cJSON **ret_old);

/* Of a new object: up to where it is known what the client wants, and the rest. */
KINF_MUST_CHECK int kinf__verb_begin_create(struct kinf__verb *verb, struct cJSON *object);
KINF_MUST_CHECK int kinf__verb_finish_create(struct kinf__verb *verb, struct cJSON *object);
/* All of it, of what is decoded; consumes the object. */
KINF_MUST_CHECK int kinf__verb_create_decoded(struct kinf__verb *verb, struct cJSON *take_object);
/* Of a change, likewise. */
KINF_MUST_CHECK int kinf__verb_begin_change(struct kinf__verb *verb, const struct cJSON *old,
                                            struct cJSON **object);
KINF_MUST_CHECK int kinf__verb_finish_change(struct kinf__verb *verb, const struct cJSON *old,
                                             struct cJSON *object);
/* All of a change, with its manager; consumes the object. */
KINF_MUST_CHECK int kinf__verb_change(struct kinf__verb *verb, const struct cJSON *old,
                                      struct cJSON *take_object);
/* Consume the object; of a change: unless nothing has changed, or its deletion can end. */
KINF_MUST_CHECK int kinf__verb_store(struct kinf__verb *verb, struct cJSON *take_object);
KINF_MUST_CHECK int kinf__verb_store_changed(struct kinf__verb *verb, const struct cJSON *old,
                                             struct cJSON *take_object);
/* verb->object is not stored any more. `shows_version`: of the deletion, in verb->object. */
KINF_MUST_CHECK int kinf__verb_remove(struct kinf__verb *verb, bool shows_version);

#endif
