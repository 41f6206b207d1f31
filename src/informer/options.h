/*
 * What a caller asks of an informer: read once, before anything is made of it.
 *
 * Threads: any thread.
 */
#ifndef KINF_INFORMER_OPTIONS_H
#define KINF_INFORMER_OPTIONS_H

#include <kinformer/informer.h>

#include "object/object.h"

/* Refuses what cannot be meant whatever the type is, then asks for the type. `ret_options` borrows
 * what `given` points to. Errors: KINF_ERR_INVALID, or as kinf_client_find_type(). */
KINF_MUST_CHECK int kinf__informer_options_read(struct kinf_client *client,
                                                const struct kinf_informer_options *given,
                                                struct kinf_informer_options *ret_options,
                                                const struct kinf_type **ret_type,
                                                struct kinf_error *err);

/* Refuses what cannot be meant of this type. Errors: KINF_ERR_INVALID, KINF_ERR_PARSE (a selector),
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__informer_options_check(const struct kinf_informer_options *options,
                                                 const struct kinf_type *type,
                                                 struct kinf_error *err);

/* Refuses paths that can name nothing of what `plan` leaves. With a transform, which may put there
 * what it likes, an index is not looked at. Errors: KINF_ERR_INVALID, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__informer_options_check_paths(const struct kinf_informer_options *options,
                                                       const struct kinf__prune_plan *plan,
                                                       struct kinf_error *err);

#endif
