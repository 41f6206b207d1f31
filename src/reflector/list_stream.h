/*
 * The body of a LIST: bytes in any pieces in, objects out one by one; the page is never held.
 *
 * Members may come in any order (custom resources have their metadata behind the items), with any
 * white space. Of a value that is not complete the part that is there is kept, and looked at again
 * only when twice as much is there, so small pieces cost no more than a logarithm. An item may be
 * held back until more bytes come, at the latest until finish. An item that is too large or nested
 * too deep is passed over by its brackets without being kept, and reported; so is one that is JSON
 * but no object of the decoder's type. Text that is no JSON ends the list, but inside of what the plan drops.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_REFLECTOR_LIST_STREAM_H
#define KINF_REFLECTOR_LIST_STREAM_H

#include <stdint.h>

#include "base/buffer.h"
#include "object/object.h"
#include "reflector/stream.h"

/* What each returns: 0 goes on, a negative value ends the stream, as kinf__stream_reject_cb. */
struct kinf__list_stream_callbacks {
    int (*on_object)(const struct kinf_object *take_object, void *ctx, struct kinf_error *err);
    kinf__stream_reject_cb *on_reject;
    void *ctx;
};

/* Where in the text the stream is. X(enumerator, name): what comes next. */
#define KINF__LIST_STREAM_STATES(X)                                                                \
    X(KINF__LIST_START, "start")           /* the list's '{' */                                    \
    X(KINF__LIST_FIRST_KEY, "first key")   /* a key or '}' */                                      \
    X(KINF__LIST_KEY, "key")               /* a key */                                             \
    X(KINF__LIST_COLON, "colon")           /* ':' */                                               \
    X(KINF__LIST_VALUE, "value")           /* the value of `member` */                             \
    X(KINF__LIST_VALUE_END, "value end")   /* ',' or '}' */                                        \
    X(KINF__LIST_FIRST_ITEM, "first item") /* an item or ']' */                                    \
    X(KINF__LIST_ITEM, "item")             /* an item */                                           \
    X(KINF__LIST_SKIP_ITEM, "skip item")   /* the rest of an item that is left out */              \
    X(KINF__LIST_ITEM_END, "item end")     /* ',' or ']' */                                        \
    X(KINF__LIST_END, "end")               /* white space */

enum kinf__list_stream_state {
#define X(state, name) state,
    KINF__LIST_STREAM_STATES(X)
#undef X
};

enum kinf__list_member {
    KINF__LIST_OTHER,
    KINF__LIST_KIND,
    KINF__LIST_API_VERSION,
    KINF__LIST_METADATA,
    KINF__LIST_ITEMS,
};

struct kinf__list_stream {
    struct kinf__object_decoder *decoder; /* borrowed, as are the callbacks */
    const struct kinf__list_stream_callbacks *callbacks;
    size_t max_object_bytes;

    enum kinf__list_stream_state state;
    enum kinf__list_member member;
    struct kinf__buffer tail; /* the beginning of the value that is next */
    size_t retry_len;         /* the tail is looked at again when it has this length */
    size_t hold_len;          /* an item is not looked at before so much is there; see HOLD_MAX */
    size_t skip_depth;        /* SKIP_ITEM: open brackets */
    bool skip_in_string;
    bool skip_in_escape;
    bool has_items;
    bool is_table_kind;
    bool is_meta_group;

    /* The list's metadata; complete after finish. */
    char rv[KINF__RV_SIZE];
    char continue_token[KINF__CONTINUE_SIZE]; /* "" on the last page */
    int64_t remaining_item_count;             /* -1: not said */
};

const char *kinf__list_stream_state_to_string(enum kinf__list_stream_state state);

void kinf__list_stream_init(struct kinf__list_stream *stream, struct kinf__object_decoder *decoder,
                            size_t max_object_bytes,
                            const struct kinf__list_stream_callbacks *callbacks);
void kinf__list_stream_release(struct kinf__list_stream *stream);
/* Starts a new body. */
void kinf__list_stream_reset(struct kinf__list_stream *stream);

/* After an error only reset and release are allowed. Errors: KINF_ERR_PARSE (no JSON, or no list),
 * KINF_ERR_UNSUPPORTED (a Table, or another kind of list where the decoder is for one of metadata), KINF_ERR_LIMIT (a member other than items above max_object_bytes,
 * a resourceVersion or token that does not fit), KINF_ERR_NO_MEMORY, or what a callback returned.
 */
KINF_MUST_CHECK int kinf__list_stream_feed(struct kinf__list_stream *stream, const char *bytes,
                                           size_t len, struct kinf_error *err);

/* The body came to its end. Errors: as feed, KINF_ERR_TRUNCATED (the list has not), and
 * KINF_ERR_PARSE for a list without items or metadata.resourceVersion. */
KINF_MUST_CHECK int kinf__list_stream_finish(struct kinf__list_stream *stream,
                                             struct kinf_error *err);

#endif
