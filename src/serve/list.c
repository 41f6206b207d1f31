/*
 * The list encoder. Neighbours: resource.c opens it, endpoint.c reads the stream. A page is walked
 * over before anything is written, since its head says whether there is more.
 */
#include "serve/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/gzip.h"
#include "serve/token.h"

#define PIECE_BYTES (64u << 10)
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
    struct kinf__buffer out;
    size_t n_sent; /* of `out` */
    struct kinf__gzip *gzip;
};

static void list_free(struct kinf__stream *stream)
{
    struct list *list = KINF__CONTAINER_OF(stream, struct list, stream);

    kinf_snapshot_unref(list->snapshot);
    kinf__encoder_release(&list->encoder);
    kinf__buffer_release(&list->token);
    kinf__buffer_release(&list->out);
    kinf__gzip_free(list->gzip);
    free(list);
}

static int write_next(struct list *list)
{
    const struct kinf_object *object = list->n_left != 0 ? kinf__walk_next(&list->walk) : NULL;

    if (object == NULL) {
        list->is_written = true;
        return kinf__encode_list_end(&list->encoder, &list->head, &list->out);
    }
    if (list->n_left > 0)
        list->n_left--;
    if (list->has_items && kinf__buffer_append(&list->out, ",", 1) < 0)
        return KINF_ERR_NO_MEMORY;
    list->has_items = true;
    return kinf__encode_item(&list->encoder, object, &list->out);
}

static int fill(struct list *list, size_t n_bytes)
{
    int failed = 0;

    while (failed == 0 && !list->is_written && list->out.len < n_bytes)
        failed = write_next(list);
    return failed;
}

/* What is left of `out`, deflated; 0 when it was taken and nothing came out yet. */
static size_t send_gzip(struct list *list, char *buf, size_t size)
{
    size_t len = list->out.len - list->n_sent;
    size_t n = kinf__gzip_write(list->gzip, list->out.bytes + list->n_sent, &len, list->is_written,
                                buf, size);

    list->n_sent += len;
    return n;
}

static size_t send_plain(struct list *list, char *buf, size_t size)
{
    size_t n = list->out.len - list->n_sent;

    n = n < size ? n : size;
    memcpy(buf, list->out.bytes + list->n_sent, n);
    list->n_sent += n;
    return n;
}

static ssize_t list_read(struct kinf__stream *stream, char *buf, size_t size)
{
    struct list *list = KINF__CONTAINER_OF(stream, struct list, stream);
    size_t n = 0;

    while (n == 0) {
        if (list->n_sent == list->out.len) {
            list->out.len = list->n_sent = 0;
            if (fill(list, PIECE_BYTES) < 0)
                return KINF__STREAM_BROKEN;
        }
        if (list->is_written && list->n_sent == list->out.len &&
            (list->gzip == NULL || kinf__gzip_is_done(list->gzip)))
            return KINF__STREAM_END;
        n = list->gzip != NULL ? send_gzip(list, buf, size) : send_plain(list, buf, size);
    }
    return (ssize_t)n;
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
    if (kinf__token_write(params->version, kinf_object_key(last), &list->token) < 0)
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
    if (kinf__encode_list_begin(&list->encoder, &list->head, &list->out) < 0)
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
    failed = begin(list, params, &result.has_more);
    if (failed == 0 && !list->is_written && params->may_gzip)
        failed = kinf__gzip_new(&list->gzip);
    if (failed < 0) {
        list_free(&list->stream);
        return failed;
    }
    result.is_gzip = list->gzip != NULL;
    if (list->is_written) {
        result.body = list->out;
        list->out = (struct kinf__buffer)KINF__BUFFER_INIT;
        list_free(&list->stream);
    } else {
        result.stream = &list->stream;
    }
    *ret_result = result;
    return 0;
}
