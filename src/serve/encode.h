/*
 * Objects in the forms that clients ask for.
 *
 * Threads: any thread; an encoder belongs to one.
 */
#ifndef KINF_SERVE_ENCODE_H
#define KINF_SERVE_ENCODE_H

#include <kinformer/object.h>

#include "base/buffer.h"
#include "serve/accept.h"
#include "serve/pieces.h"
#include "table/table.h"

struct kinf__encoder {
    /* set by the caller */
    const struct kinf_type *type;
    enum kinf__form form; /* none of discovery */
    bool is_v1beta1;
    /* of a Table */
    enum kinf__include_object include;
    const struct kinf__table *table;
    int64_t now_s;   /* Unix time: ages are told in relation to it */
    bool no_columns; /* they were sent: events but the first do without */
    /* the encoder's */
    struct kinf_scratch scratch;
};

void kinf__encoder_release(struct kinf__encoder *encoder);

/* Whether a group's types come from CustomResourceDefinitions: their lists are written by other
 * rules. Told by the name alone. */
bool kinf__is_custom_group(const char *group);

/* Appends an object with its kind and apiVersion: the answer to a GET, or what an event is about.
 * `version`, if not NULL, stands in place of its own resourceVersion. What is large of the object is
 * held, not copied, one object at a time; a Table's cells are. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__encode_object(struct kinf__encoder *encoder,
                                        const struct kinf_object *object, const char *version,
                                        struct kinf__pieces *out);

/* Appends an item of a list, likewise: built-in kinds come without kind and apiVersion. */
KINF_MUST_CHECK int kinf__encode_item(struct kinf__encoder *encoder,
                                      const struct kinf_object *object, struct kinf__pieces *out);

/* What a list says of itself. */
struct kinf__list_head {
    const char *version;
    const char *continue_token; /* "": this is all */
    uint64_t n_remaining;       /* 0: not told */
};

/* Appends what stands before the items of a list, and what stands behind them (with a line end). */
KINF_MUST_CHECK int kinf__encode_list_begin(const struct kinf__encoder *encoder,
                                            const struct kinf__list_head *head,
                                            struct kinf__buffer *out);
KINF_MUST_CHECK int kinf__encode_list_end(const struct kinf__encoder *encoder,
                                          const struct kinf__list_head *head,
                                          struct kinf__buffer *out);

/* Appends the object of a BOOKMARK event. */
KINF_MUST_CHECK int kinf__encode_bookmark(const struct kinf__encoder *encoder, const char *version,
                                          bool ends_initial_events, struct kinf__buffer *out);

#endif
