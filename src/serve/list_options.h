/*
 * What the query of a request for objects asks for: taken apart and checked, as the server does it
 * once the route is known to be there. Pure: no clock, no state, any bytes may come in.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_SERVE_LIST_OPTIONS_H
#define KINF_SERVE_LIST_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/selector.h>

#include "serve/accept.h"
#include "serve/fields.h"
#include "serve/refusal.h"
#include "serve/request.h"

enum kinf__rv_match {
    KINF__RV_MATCH_UNSET,
    KINF__RV_MATCH_NOT_OLDER_THAN,
    KINF__RV_MATCH_EXACT,
};

/* Query parameters of a resource; the texts are never NULL. */
struct kinf__list_options {
    bool is_watch;
    bool allows_bookmarks;
    bool has_send_initial_events;
    bool sends_initial_events;
    int64_t limit;     /* 0 or less: none */
    int64_t timeout_s; /* timeoutSeconds; 0: the default; negative: over at once */
    const char *continue_token;
    const char *resource_version; /* "" or decimal, of 64 bits */
    enum kinf__rv_match match;
    enum kinf__include_object include;
    const char *include_text;
    const char *label_selector;
    const char *field_selector;
    const char *shard_selector;         /* as it came: it chooses a source, and nothing more */
    struct kinf_label_selector *labels; /* NULL: all */
    struct kinf__fields *fields;        /* NULL: all; not bound to a type yet */
    char *text;                         /* owned: what the texts point into */
};

/* Reads and checks them. Of a repeated parameter the first counts, unknown ones and broken pairs
 * count nothing; for a named object all but resourceVersion and includeObject are unknown. On
 * failure `refusal` is the answer. Errors: KINF_ERR_INVALID, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__list_options_read(const struct kinf__request *request,
                                            struct kinf__list_options *ret_options,
                                            struct kinf__refusal *refusal);
void kinf__list_options_release(struct kinf__list_options *options);

#endif
