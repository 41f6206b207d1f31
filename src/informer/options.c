/*
 * Reading options. Neighbours: informer.c, factory.c and namespaces.c, whose calls take them.
 */
#include "informer/informer.h"

#include <kinformer/selector.h>

#include "base/error.h"
#include "base/misuse.h"
#include "json/path.h"

static int check_array(const char *name, const void *items, size_t n_items, struct kinf_error *err)
{
    if (n_items == 0 || items != NULL)
        return 0;
    return kinf__misuse(err, KINF_ERR_INVALID, "options: n_%s is %zu, but %s is NULL", name,
                        n_items, name);
}

static int check_texts(const char *name, const char *const *texts, size_t n_texts,
                       struct kinf_error *err)
{
    int rc = check_array(name, texts, n_texts, err);

    for (size_t i = 0; rc == 0 && i < n_texts; i++) {
        if (texts[i] == NULL)
            rc = kinf__misuse(err, KINF_ERR_INVALID, "options: %s[%zu] is NULL", name, i);
    }
    return rc;
}

static int check(const struct kinf_informer_options *options, struct kinf_error *err)
{
    int rc;

    if (options->resource == NULL)
        return kinf__misuse(err, KINF_ERR_INVALID, "an informer needs a resource");
    rc = check_texts("drops", options->drops, options->n_drops, err);
    if (rc == 0)
        rc = check_texts("keeps", options->keeps, options->n_keeps, err);
    if (rc == 0)
        rc = check_array("indices", options->indices, options->n_indices, err);
    if (rc == 0 && options->name_space != NULL && options->name_space[0] != '\0')
        rc = kinf__name_check_namespace(options->name_space, err);
    return rc;
}

static int check_selectors(const struct kinf_informer_options *options, struct kinf_error *err)
{
    struct kinf_label_selector *labels = NULL;
    struct kinf_field_selector *fields = NULL;
    int rc = 0;

    if (options->label_selector != NULL)
        rc = kinf_label_selector_parse(options->label_selector, &labels, err);
    if (rc == 0 && options->field_selector != NULL)
        rc = kinf_field_selector_parse(options->field_selector, &fields, err);
    kinf_label_selector_free(labels);
    kinf_field_selector_free(fields);
    return rc;
}

int kinf__informer_options_check(const struct kinf_informer_options *options,
                                 const struct kinf_type *type, struct kinf_error *err)
{
    bool has_namespace = options->name_space != NULL && options->name_space[0] != '\0';

    if (has_namespace && !type->namespaced)
        return kinf__error_set(err, KINF_ERR_INVALID, "%s have no namespaces, but %s was asked for",
                               type->resource, options->name_space);
    if (options->watch_timeout_ms < 0 || options->silent_after_ms < 0 ||
        options->backoff_base_ms < 0 || options->backoff_max_ms < 0)
        return kinf__error_set(err, KINF_ERR_INVALID, "a time of the options is negative");
    if (options->fifo_order != KINF_FIFO_KEYED && options->fifo_order != KINF_FIFO_IN_ORDER)
        return kinf__error_set(err, KINF_ERR_INVALID, "%d is no order of a queue",
                               (int)options->fifo_order);
    if (options->compressed && options->transform != NULL)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "compressed, what a transform makes would be stored as it makes it");
    return check_selectors(options, err);
}

/* --- paths --- */

static bool is_metadata(const struct kinf_path *path)
{
    return kinf_str_equal(path->steps[0].key, KINF_STR("metadata"));
}

static int check_metadata_path(const char *text, struct kinf_error *err)
{
    struct kinf_path *path;
    int rc = kinf_path_parse(text, &path, err);

    if (rc < 0)
        return rc; /* no memory: plan or index have parsed it */
    if (!is_metadata(path))
        rc = kinf__error_set(err, KINF_ERR_INVALID,
                             "path '%s': with metadata_only there is nothing but metadata", text);
    kinf_path_free(path);
    return rc;
}

static int check_metadata_paths(const char *const *texts, size_t n_texts, struct kinf_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n_texts; i++)
        rc = check_metadata_path(texts[i], err);
    return rc;
}

static int check_index(const struct kinf_index *index, const struct kinf__prune_plan *plan,
                       struct kinf_error *err)
{
    struct kinf_path *path;
    int rc;

    if (index->path == NULL)
        return 0;
    rc = kinf_path_parse(index->path, &path, err);
    if (rc < 0)
        return rc;
    if (!kinf__prune_plan_can_keep(plan, path))
        rc = kinf__error_set(err, KINF_ERR_INVALID,
                             "path '%s': is not kept, so it cannot be indexed", index->path);
    kinf_path_free(path);
    return rc;
}

int kinf__informer_options_check_paths(const struct kinf_informer_options *options,
                                       const struct kinf__prune_plan *plan, struct kinf_error *err)
{
    bool has_transform = options->transform != NULL;
    int rc = 0;

    if (options->metadata_only) {
        rc = check_metadata_paths(options->drops, options->n_drops, err);
        if (rc == 0)
            rc = check_metadata_paths(options->keeps, options->n_keeps, err);
    }
    for (size_t i = 0; rc == 0 && !has_transform && i < options->n_indices; i++) {
        rc = check_index(&options->indices[i], plan, err);
        if (rc == 0 && options->metadata_only && options->indices[i].path != NULL)
            rc = check_metadata_path(options->indices[i].path, err);
    }
    return rc;
}

int kinf__informer_options_read(struct kinf_client *client,
                                const struct kinf_informer_options *given,
                                struct kinf_informer_options *ret_options,
                                const struct kinf_type **ret_type, struct kinf_error *err)
{
    int rc = kinf__options_read(ret_options, sizeof *ret_options, given,
                                "struct kinf_informer_options", err);

    if (rc == 0)
        rc = check(ret_options, err);
    return rc < 0 ? rc : kinf_client_find_type(client, ret_options->resource, ret_type, err);
}
