/*
 * The list encoder. Neighbours: resource.c opens it, mhd_request.c reads the stream. The objects of a
 * page are gathered before anything is written, since its head says whether there is more; nothing
 * is walked over twice.
 */
#include "serve/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/gzip.h"
#include "serve/token.h"

#define PIECE_BYTES     (64u << 10)
#define PLAIN_BYTES     (16u << 10) /* compressed at a time */
#define N_PLAIN_AT_ONCE 4           /* before others have their turn */
/* What kube-apiserver leaves uncompressed: below is one piece, with a Content-Length. */
#define SMALL_BYTES (128u << 10)

enum stage {
    STAGE_GATHER, /* the objects of the page */
    STAGE_COUNT,  /* those behind it */
    STAGE_HEAD,
    STAGE_WRITE,
};

struct kinf__listing {
    struct kinf__stream stream;
    enum stage stage;
    struct kinf_snapshot *snapshot;
    struct kinf__encoder encoder;
    struct kinf__walk walk;
    struct kinf__token from; /* the walk begins behind its key */
    uint32_t issuer;
    bool may_gzip;
    bool is_page;
    size_t limit;
    const struct kinf_object **page; /* gathered; the snapshot holds them */
    size_t n_page;
    size_t n_page_written;
    struct kinf__list_head head;
    struct kinf__buffer token;
    char version[24];
    bool has_items;  /* one was written */
    bool is_written; /* all is in `out` or sent */
    struct kinf__pieces out;
    struct kinf__gzip *gzip;
    struct kinf__buffer plain; /* taken of `out`, to be compressed */
    size_t n_compressed;       /* of `plain` */
};

void kinf__listing_free(struct kinf__listing *listing)
{
    if (listing == NULL)
        return;
    kinf_snapshot_unref(listing->snapshot);
    kinf__encoder_release(&listing->encoder);
    kinf__buffer_release(&listing->token);
    kinf__pieces_release(&listing->out);
    kinf__buffer_release(&listing->plain);
    kinf__gzip_free(listing->gzip);
    free(listing->page);
    free(listing);
}

static void stream_free(struct kinf__stream *stream)
{
    kinf__listing_free(KINF__CONTAINER_OF(stream, struct kinf__listing, stream));
}

/* --- writing --- */

static enum kinf__walked next_object(struct kinf__listing *list, size_t *patience,
                                     const struct kinf_object **ret_object)
{
    if (!list->is_page)
        return kinf__walk_next(&list->walk, patience, ret_object);
    if (list->n_page_written == list->n_page)
        return KINF__WALK_END;
    *ret_object = list->page[list->n_page_written++];
    return KINF__WALK_OBJECT;
}

static int write_object(struct kinf__listing *list, const struct kinf_object *object)
{
    if (list->has_items && kinf__buffer_append(&list->out.bytes, ",", 1) < 0)
        return KINF_ERR_NO_MEMORY;
    list->has_items = true;
    return kinf__encode_item(&list->encoder, object, &list->out);
}

/* 0: there is enough, or all; 1: enough was looked at. */
static int fill(struct kinf__listing *list, size_t n_bytes)
{
    size_t patience = KINF__WALK_PATIENCE;
    const struct kinf_object *object;
    int failed = 0;

    while (failed == 0 && !list->is_written && !kinf__pieces_are_enough(&list->out, n_bytes)) {
        enum kinf__walked walked = next_object(list, &patience, &object);

        if (walked == KINF__WALK_PAUSED)
            return 1;
        if (walked == KINF__WALK_NO_MEMORY)
            return KINF_ERR_NO_MEMORY;
        list->is_written = walked == KINF__WALK_END;
        failed = list->is_written
                     ? kinf__encode_list_end(&list->encoder, &list->head, &list->out.bytes)
                     : write_object(list, object);
    }
    return failed;
}

static int refill(struct kinf__listing *list)
{
    if (kinf__pieces_len(&list->out) != 0)
        return 0;
    kinf__pieces_clear(&list->out, 2 * PIECE_BYTES);
    return fill(list, PIECE_BYTES);
}

static int fill_plain(struct kinf__listing *list)
{
    list->plain.len = list->n_compressed = 0;
    if (refill(list) < 0 || kinf__buffer_reserve(&list->plain, PLAIN_BYTES) < 0)
        return KINF_ERR_NO_MEMORY;
    list->plain.len = kinf__pieces_take(&list->out, list->plain.bytes, list->plain.size);
    return 0;
}

static ssize_t read_gzip(struct kinf__listing *list, char *buf, size_t size)
{
    size_t n = 0;

    for (int i = 0; n == 0; i++) {
        size_t len;

        if (kinf__gzip_is_done(list->gzip))
            return KINF__STREAM_END;
        if (i == N_PLAIN_AT_ONCE)
            return KINF__STREAM_LATER;
        if (list->n_compressed == list->plain.len && fill_plain(list) < 0)
            return KINF__STREAM_BROKEN;
        len = list->plain.len - list->n_compressed;
        if (len == 0 && !list->is_written)
            return KINF__STREAM_LATER;
        n = kinf__gzip_write(list->gzip, list->plain.bytes + list->n_compressed, &len,
                             list->is_written && kinf__pieces_len(&list->out) == 0, buf, size);
        list->n_compressed += len;
    }
    return (ssize_t)n;
}

static ssize_t stream_read(struct kinf__stream *stream, char *buf, size_t size)
{
    struct kinf__listing *list = KINF__CONTAINER_OF(stream, struct kinf__listing, stream);
    size_t n;

    if (list->gzip != NULL)
        return read_gzip(list, buf, size);
    if (refill(list) < 0)
        return KINF__STREAM_BROKEN; /* no memory */
    n = kinf__pieces_take(&list->out, buf, size);
    if (n != 0)
        return (ssize_t)n;
    return list->is_written ? KINF__STREAM_END : KINF__STREAM_LATER;
}

/* --- what comes first --- */

static int add_to_page(struct kinf__listing *list, const struct kinf_object *object)
{
    /* Room doubles from a power of two. */
    if ((list->n_page & (list->n_page - 1)) == 0) {
        size_t n_room = list->n_page != 0 ? 2 * list->n_page : 1;
        const struct kinf_object **page =
            realloc(list->page, n_room * sizeof(const struct kinf_object *));

        if (page == NULL)
            return KINF_ERR_NO_MEMORY;
        list->page = page;
    }
    list->page[list->n_page++] = object;
    return 0;
}

/* There is one object behind the page. What an earlier page knew, or the store does, need not be
 * counted again. */
static void end_page(struct kinf__listing *list)
{
    const struct kinf__selection *selection = list->walk.selection;

    list->stage = STAGE_HEAD;
    list->head.continue_token = "more";
    if (!kinf__selection_is_all(selection))
        return;
    if (*selection->name_space == '\0' && *list->from.after == '\0')
        list->from.n_remaining = kinf_snapshot_count(list->snapshot);
    if (list->from.n_remaining > list->n_page) {
        list->head.n_remaining = list->from.n_remaining - list->n_page;
    } else {
        list->head.n_remaining = 1;
        list->stage = STAGE_COUNT;
    }
}

static int gather(struct kinf__listing *list, size_t *patience)
{
    const struct kinf_object *object;

    for (;;) {
        enum kinf__walked walked = kinf__walk_next(&list->walk, patience, &object);

        if (walked == KINF__WALK_PAUSED)
            return 1;
        if (walked == KINF__WALK_NO_MEMORY)
            return KINF_ERR_NO_MEMORY;
        if (walked == KINF__WALK_END) {
            list->stage = STAGE_HEAD;
            return 0;
        }
        if (list->n_page == list->limit) {
            end_page(list);
            return 0;
        }
        if (add_to_page(list, object) < 0)
            return KINF_ERR_NO_MEMORY;
    }
}

static int count(struct kinf__listing *list, size_t *patience)
{
    const struct kinf_object *object;
    enum kinf__walked walked;

    while ((walked = kinf__walk_next(&list->walk, patience, &object)) == KINF__WALK_OBJECT)
        list->head.n_remaining++;
    if (walked == KINF__WALK_PAUSED)
        return 1;
    if (walked == KINF__WALK_NO_MEMORY)
        return KINF_ERR_NO_MEMORY;
    list->stage = STAGE_HEAD;
    return 0;
}

static int write_token(struct kinf__listing *list)
{
    struct kinf__token token = { .version = list->from.version,
                                 .n_remaining = list->head.n_remaining };

    snprintf(token.after, sizeof token.after, "%s", kinf_object_key(list->page[list->n_page - 1]));
    if (kinf__token_write(list->issuer, &token, &list->token) < 0)
        return KINF_ERR_NO_MEMORY;
    list->head.continue_token = list->token.bytes;
    return 0;
}

static int write_head(struct kinf__listing *list)
{
    if (*list->head.continue_token != '\0' && write_token(list) < 0)
        return KINF_ERR_NO_MEMORY;
    list->stage = STAGE_WRITE;
    return kinf__encode_list_begin(&list->encoder, &list->head, &list->out.bytes);
}

static int finish(struct kinf__listing *list, struct kinf__list_result *ret_result)
{
    if (!list->is_written && list->may_gzip && kinf__gzip_new(&list->gzip) < 0)
        return KINF_ERR_NO_MEMORY;
    *ret_result =
        (struct kinf__list_result){ .body = KINF__BUFFER_INIT,
                                    .snapshot = list->token.len != 0 ? list->snapshot : NULL,
                                    .version = list->from.version,
                                    .is_gzip = list->gzip != NULL };
    if (list->is_written) {
        ret_result->body = list->out.bytes;
        list->out.bytes = (struct kinf__buffer)KINF__BUFFER_INIT;
    } else {
        list->out.large = PIECE_BYTES;
        ret_result->stream = &list->stream;
    }
    return 0;
}

int kinf__listing_step(struct kinf__listing *list, struct kinf__list_result *ret_result)
{
    size_t patience = KINF__WALK_PATIENCE;
    int more = 0;

    if (list->stage == STAGE_GATHER)
        more = gather(list, &patience);
    if (more == 0 && list->stage == STAGE_COUNT)
        more = count(list, &patience);
    if (more == 0 && list->stage == STAGE_HEAD)
        more = write_head(list);
    if (more == 0)
        more = fill(list, SMALL_BYTES);
    return more != 0 ? more : finish(list, ret_result);
}

int kinf__listing_new(const struct kinf__list_params *params, struct kinf__listing **ret_listing)
{
    struct kinf__listing *list = calloc(1, sizeof *list);

    if (list == NULL) {
        kinf_snapshot_unref(params->snapshot);
        return KINF_ERR_NO_MEMORY;
    }
    list->stream = (struct kinf__stream){ stream_read, stream_free, false };
    list->snapshot = params->snapshot;
    list->encoder = *params->encoder;
    list->from = *params->from;
    list->issuer = params->issuer;
    list->may_gzip = params->may_gzip;
    list->is_page = params->limit > 0;
    list->limit = params->limit < KINF__LIST_PAGE_MAX ? (size_t)params->limit : KINF__LIST_PAGE_MAX;
    list->stage = list->is_page ? STAGE_GATHER : STAGE_HEAD;
    list->out.large = SMALL_BYTES;
    list->head.continue_token = "";
    list->head.version = list->version;
    snprintf(list->version, sizeof list->version, "%" PRIu64, list->from.version.number);
    kinf__walk_init(&list->walk, params->selection, list->snapshot, list->from.after);
    *ret_listing = list;
    return 0;
}
