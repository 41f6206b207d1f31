/*
 * Comparing requests for one informer. Neighbours: factory.c asks.
 */
#include "informer/shared_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* What may be left at its default by a later request. */
#define TUNINGS(X)                                                                                 \
    X(fifo_order)                                                                                  \
    X(initial)                                                                                     \
    X(page_size)                                                                                   \
    X(max_object_bytes)                                                                            \
    X(max_queue_bytes)                                                                             \
    X(watch_timeout_ms)                                                                            \
    X(silent_after_ms)                                                                             \
    X(backoff_base_ms)                                                                             \
    X(backoff_max_ms)                                                                              \
    X(accept_gzip)                                                                                 \
    X(wait_out_refusals)

/* --- copying --- */

/* NULL stays NULL. */
static int copy_text(const char **to, const char *from)
{
    *to = from != NULL ? strdup(from) : NULL;
    return *to != NULL || from == NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static void free_text(const char *text)
{
    free((char *)text);
}

static void free_texts(const char *const *texts, size_t n_texts)
{
    for (size_t i = 0; texts != NULL && i < n_texts; i++)
        free_text(texts[i]);
    free((void *)texts);
}

static const char **copy_texts(const char *const *from, size_t n_texts)
{
    const char **texts = calloc(n_texts + 1, sizeof *texts);

    for (size_t i = 0; texts != NULL && i < n_texts; i++) {
        if (copy_text(&texts[i], from[i]) < 0) {
            free_texts(texts, n_texts);
            return NULL;
        }
    }
    return texts;
}

static void index_release(struct kinf_index *index)
{
    free_text(index->name);
    free_text(index->path);
}

static int index_copy(struct kinf_index *to, const struct kinf_index *from)
{
    *to = *from;
    if (copy_text(&to->name, from->name) < 0)
        return KINF_ERR_NO_MEMORY;
    if (copy_text(&to->path, from->path) < 0) {
        free_text(to->name);
        return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* Makes room for `more` indices, so that remembering them needs memory for their texts only. */
static int reserve_indices(struct kinf__shared_options *shared, size_t more)
{
    struct kinf_index *indices =
        reallocarray(shared->indices, shared->n_indices + more + 1, sizeof *indices);

    if (indices == NULL)
        return KINF_ERR_NO_MEMORY;
    shared->indices = indices;
    return 0;
}

static void forget_indices(struct kinf__shared_options *shared, size_t n_kept)
{
    while (shared->n_indices > n_kept)
        index_release(&shared->indices[--shared->n_indices]);
}

static const struct kinf_index *find_index(const struct kinf_index *indices, size_t n_indices,
                                           const char *name)
{
    for (size_t i = 0; i < n_indices; i++) {
        if (strcmp(indices[i].name, name) == 0)
            return &indices[i];
    }
    return NULL;
}

/* Remembers those that are new, behind the others. One that the request has twice is remembered
 * twice, for the indexer to refuse. */
static int remember_indices(struct kinf__shared_options *shared,
                            const struct kinf_informer_options *options)
{
    size_t n_before = shared->n_indices;

    if (reserve_indices(shared, options->n_indices) < 0)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < options->n_indices; i++) {
        if (find_index(shared->indices, n_before, options->indices[i].name) != NULL)
            continue;
        if (index_copy(&shared->indices[shared->n_indices], &options->indices[i]) < 0) {
            forget_indices(shared, n_before);
            return KINF_ERR_NO_MEMORY;
        }
        shared->n_indices++;
    }
    return 0;
}

static int copy_first(struct kinf_informer_options *first,
                      const struct kinf_informer_options *options)
{
    const char **drops = copy_texts(options->drops, options->n_drops);
    const char **keeps = copy_texts(options->keeps, options->n_keeps);
    int rc = drops != NULL && keeps != NULL ? 0 : KINF_ERR_NO_MEMORY;

    first->drops = drops;
    first->keeps = keeps;
    if (rc == 0)
        rc = copy_text(&first->name_space, options->name_space);
    if (rc == 0)
        rc = copy_text(&first->label_selector, options->label_selector);
    if (rc == 0)
        rc = copy_text(&first->field_selector, options->field_selector);
    return rc < 0 ? rc : copy_text(&first->shard_selector, options->shard_selector);
}

/* --- comparing --- */

static bool same_text(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

static bool has_each_of(const char *const *all, size_t n_all, const char *const *texts,
                        size_t n_texts)
{
    for (size_t i = 0; i < n_texts; i++) {
        size_t k = 0;

        while (k < n_all && strcmp(all[k], texts[i]) != 0)
            k++;
        if (k == n_all)
            return false;
    }
    return true;
}

static bool same_set(const char *const *a, size_t n_a, const char *const *b, size_t n_b)
{
    return has_each_of(a, n_a, b, n_b) && has_each_of(b, n_b, a, n_a);
}

static const char *conflict_in_what_is_stored(const struct kinf_informer_options *first,
                                              const struct kinf_informer_options *asked)
{
    if (first->metadata_only != asked->metadata_only)
        return "metadata_only";
    if (first->compressed != asked->compressed)
        return "compressed";
    if (!same_set(first->drops, first->n_drops, asked->drops, asked->n_drops))
        return "drops";
    if (!same_set(first->keeps, first->n_keeps, asked->keeps, asked->n_keeps))
        return "keeps";
    if (first->transform != asked->transform || first->transform_ctx != asked->transform_ctx)
        return "transform";
    return NULL;
}

static const char *conflict_in_tuning(const struct kinf_informer_options *first,
                                      const struct kinf_informer_options *asked)
{
#define X(member)                                                                                  \
    if (asked->member != 0 && asked->member != first->member)                                      \
        return #member;
    TUNINGS(X)
#undef X
    if (asked->on_watch_error != NULL && (first->on_watch_error != asked->on_watch_error ||
                                          first->on_watch_error_ctx != asked->on_watch_error_ctx))
        return "on_watch_error";
    return NULL;
}

static bool same_index(const struct kinf_index *a, const struct kinf_index *b)
{
    return same_text(a->path, b->path) && a->function == b->function && a->ctx == b->ctx;
}

/* The indexer checks names and paths; here a name is only looked up. */
static int check_indices(const struct kinf__shared_options *shared,
                         const struct kinf_informer_options *options, struct kinf_error *err)
{
    for (size_t i = 0; i < options->n_indices; i++) {
        const struct kinf_index *index = &options->indices[i];
        const struct kinf_index *known;

        if (index->name == NULL)
            return kinf__error_set(err, KINF_ERR_INVALID, "an index needs a name");
        known = find_index(shared->indices, shared->n_indices, index->name);
        if (known != NULL && !same_index(known, index))
            return kinf__error_set(err, KINF_ERR_EXISTS,
                                   "the informer has another index of the name \"%s\"",
                                   index->name);
    }
    return 0;
}

/* --- exported --- */

int kinf__shared_options_init(struct kinf__shared_options *shared,
                              const struct kinf_informer_options *options, struct kinf_error *err)
{
    struct kinf_informer_options *first = &shared->first;
    int rc;

    *shared = (struct kinf__shared_options){ .first = *options };
    first->drops = first->keeps = NULL;
    first->resource = first->name_space = first->label_selector = first->field_selector = NULL;
    first->shard_selector = NULL;
    first->handler = (struct kinf_handler){ .ctx = NULL };
    first->indices = NULL;
    first->n_indices = 0;
    rc = check_indices(shared, options, err);
    if (rc == 0 && (copy_first(first, options) < 0 || remember_indices(shared, options) < 0))
        rc = kinf__error_no_memory(err);
    if (rc < 0)
        kinf__shared_options_release(shared);
    return rc;
}

void kinf__shared_options_release(struct kinf__shared_options *shared)
{
    struct kinf_informer_options *first = &shared->first;

    forget_indices(shared, 0);
    free(shared->indices);
    free_texts(first->drops, first->n_drops);
    free_texts(first->keeps, first->n_keeps);
    free_text(first->name_space);
    free_text(first->label_selector);
    free_text(first->field_selector);
    free_text(first->shard_selector);
}

bool kinf__shared_options_selects_same(const struct kinf__shared_options *shared,
                                       const struct kinf_informer_options *options)
{
    const struct kinf_informer_options *first = &shared->first;

    return same_text(first->name_space, options->name_space) &&
           same_text(first->label_selector, options->label_selector) &&
           same_text(first->field_selector, options->field_selector) &&
           same_text(first->shard_selector, options->shard_selector);
}

int kinf__shared_options_check(const struct kinf__shared_options *shared,
                               const struct kinf_informer_options *options, struct kinf_error *err)
{
    const char *member = conflict_in_what_is_stored(&shared->first, options);

    if (member == NULL)
        member = conflict_in_tuning(&shared->first, options);
    if (member != NULL)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "the informer was asked for with another value of %s", member);
    return check_indices(shared, options, err);
}

int kinf__shared_options_add_indices(struct kinf__shared_options *shared,
                                     const struct kinf_informer_options *options,
                                     struct kinf_indexer *indexer, struct kinf_error *err)
{
    size_t n_before = shared->n_indices;
    int rc;

    if (remember_indices(shared, options) < 0)
        return kinf__error_no_memory(err);
    rc = kinf_indexer_add_indices(indexer, shared->indices + n_before, shared->n_indices - n_before,
                                  err);
    if (rc < 0)
        forget_indices(shared, n_before);
    return rc;
}
