/*
 * The list encoder. Neighbours: resource.c opens it, transfer.c reads the stream. A page is walked
 * over before anything is written, since its head says whether there is more.
 */
#include "serve/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "serve/gzip.h"
#include "serve/token.h"

#define PIECE_BYTES (64u << 10)
#define PLAIN_BYTES (16u << 10) /* compressed at a time */
/* What kube-apiserver leaves uncompressed: below is one piece, with a Content-Length. */
#define SMALL_BYTES (128u << 10)

struct list {
    struct kinf__stream stream;
    struct kinf_snapshot *snapshot;
    struct kinf__encoder encoder;
    struct kinf__walk walk;
    struct kinf__list_head head;
    struct kinf__buffer token;
    char version[24];
    char after[KINF__TOKEN_KEY_SIZE]; /* the walk's, as long as the stream is read */
    int64_t n_left;                   /* objects of this page; negative: all */
    bool has_items;                   /* one was written */
    bool is_written;                  /* all is in `out` or sent */
    struct kinf__pieces out;
    struct kinf__gzip *gzip;
    struct kinf__buffer plain; /* taken of `out`, to be compressed */
    size_t n_compressed;       /* of `plain` */
};

static void list_free(struct kinf__stream *stream)
{
    struct list *list = KINF__CONTAINER_OF(stream, struct list, stream);

    kinf_snapshot_unref(list->snapshot);
    kinf__encoder_release(&list->encoder);
    kinf__buffer_release(&list->token);
    kinf__pieces_release(&list->out);
    kinf__buffer_release(&list->plain);
    kinf__gzip_free(list->gzip);
    free(list);
}

static int write_next(struct list *list)
{
    const struct kinf_object *object = list->n_left != 0 ? kinf__walk_next(&list->walk) : NULL;

    if (object == NULL) {
        list->is_written = true;
        return kinf__encode_list_end(&list->encoder, &list->head, &list->out.bytes);
    }
    if (list->n_left > 0)
        list->n_left--;
    if (list->has_items && kinf__buffer_append(&list->out.bytes, ",", 1) < 0)
        return KINF_ERR_NO_MEMORY;
    list->has_items = true;
    return kinf__encode_item(&list->encoder, object, &list->out);
}

static int fill(struct list *list, size_t n_bytes)
{
    int failed = 0;

    while (failed == 0 && !list->is_written && !kinf__pieces_are_enough(&list->out, n_bytes))
        failed = write_next(list);
    return failed;
}

static int refill(struct list *list)
{
    if (kinf__pieces_len(&list->out) != 0)
        return 0;
    kinf__pieces_clear(&list->out, 2 * PIECE_BYTES);
    return fill(list, PIECE_BYTES);
}

static int fill_plain(struct list *list)
{
    list->plain.len = list->n_compressed = 0;
    if (refill(list) < 0 || kinf__buffer_reserve(&list->plain, PLAIN_BYTES) < 0)
        return KINF_ERR_NO_MEMORY;
    list->plain.len = kinf__pieces_take(&list->out, list->plain.bytes, list->plain.size);
    return 0;
}

static ssize_t read_gzip(struct list *list, char *buf, size_t size)
{
    size_t n = 0;

    while (n == 0) {
        size_t len;

        if (kinf__gzip_is_done(list->gzip))
            return KINF__STREAM_END;
        if (list->n_compressed == list->plain.len && fill_plain(list) < 0)
            return KINF__STREAM_BROKEN;
        len = list->plain.len - list->n_compressed;
        n = kinf__gzip_write(list->gzip, list->plain.bytes + list->n_compressed, &len,
                             list->is_written && kinf__pieces_len(&list->out) == 0, buf, size);
        list->n_compressed += len;
    }
    return (ssize_t)n;
}

static ssize_t list_read(struct kinf__stream *stream, char *buf, size_t size)
{
    struct list *list = KINF__CONTAINER_OF(stream, struct list, stream);
    size_t n;

    if (list->gzip != NULL)
        return read_gzip(list, buf, size);
    if (refill(list) < 0)
        return KINF__STREAM_BROKEN;
    n = kinf__pieces_take(&list->out, buf, size);
    return n != 0 ? (ssize_t)n : KINF__STREAM_END;
}

/* Looks how far a page of `limit` goes, and what is behind it. */
static int measure_page(struct list *list, const struct kinf__list_params *params, bool *ret_more)
{
    const struct kinf_object *object = NULL, *last = NULL;
    struct kinf__walk walk;

    list->n_left = -1;
    if (params->limit <= 0)
        return 0;
    kinf__walk_init(&walk, params->selection, list->snapshot, list->after);
    for (int64_t n = 0; n < params->limit && (object = kinf__walk_next(&walk)) != NULL; n++)
        last = object;
    if (object == NULL || (object = kinf__walk_next(&walk)) == NULL)
        return 0;
    list->n_left = params->limit;
    *ret_more = true;
    if (kinf__token_write(params->issuer, params->version, kinf_object_key(last), &list->token) < 0)
        return KINF_ERR_NO_MEMORY;
    list->head.continue_token = list->token.bytes;
    for (; kinf__selection_is_all(params->selection) && object != NULL;
         object = kinf__walk_next(&walk))
        list->head.n_remaining++;
    return 0;
}

static int begin(struct list *list, const struct kinf__list_params *params, bool *ret_more)
{
    int failed;

    list->head.continue_token = "";
    list->head.version = list->version;
    snprintf(list->version, sizeof list->version, "%" PRIu64, params->version);
    snprintf(list->after, sizeof list->after, "%s", params->after);
    failed = measure_page(list, params, ret_more);
    if (failed < 0)
        return failed;
    kinf__walk_init(&list->walk, params->selection, list->snapshot, list->after);
    if (kinf__encode_list_begin(&list->encoder, &list->head, &list->out.bytes) < 0)
        return KINF_ERR_NO_MEMORY;
    return fill(list, SMALL_BYTES);
}

int kinf__list_open(const struct kinf__list_params *params, struct kinf__list_result *ret_result)
{
    struct kinf__list_result result = { .body = KINF__BUFFER_INIT };
    struct list *list = calloc(1, sizeof *list);
    int failed;

    if (list == NULL) {
        kinf_snapshot_unref(params->snapshot);
        return KINF_ERR_NO_MEMORY;
    }
    list->stream = (struct kinf__stream){ list_read, list_free, false };
    list->snapshot = params->snapshot;
    list->encoder = *params->encoder;
    list->out.large = SMALL_BYTES;
    failed = begin(list, params, &result.has_more);
    if (failed == 0 && !list->is_written && params->may_gzip)
        failed = kinf__gzip_new(&list->gzip);
    if (failed < 0) {
        list_free(&list->stream);
        return failed;
    }
    result.is_gzip = list->gzip != NULL;
    if (list->is_written) {
        result.body = list->out.bytes;
        list->out.bytes = (struct kinf__buffer)KINF__BUFFER_INIT;
        list_free(&list->stream);
    } else {
        list->out.large = PIECE_BYTES;
        result.stream = &list->stream;
    }
    *ret_result = result;
    return 0;
}
