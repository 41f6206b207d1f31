/*
 * The factory's inside for tests: requests for a type that is known already.
 *
 * Threads: any thread.
 */
#ifndef KINF_INFORMER_FACTORY_H
#define KINF_INFORMER_FACTORY_H

#include <kinformer/factory.h>

/* kinf_factory_new() for tests: `client` may be NULL. */
KINF_MUST_CHECK int kinf__factory_new(struct kinf_client *client, struct kinf_factory **ret_factory,
                                      struct kinf_error *err);

/* kinf_factory_informer() with the type already found. The factory's client may be NULL: see
 * kinf__informer_new_for_type(). */
KINF_MUST_CHECK int kinf__factory_informer_for_type(struct kinf_factory *factory,
                                                    const struct kinf_type *type,
                                                    const struct kinf_informer_options *options,
                                                    struct kinf_informer **ret_informer,
                                                    struct kinf_error *err);

#endif
