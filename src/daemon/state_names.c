/*
 * From a configured resource to its files. Neighbours: state_keeper.c writes and loads them, state/ has
 * their form.
 */
#include "daemon/state_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kinformer/indexer.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "object/shard.h"
#include "state/state_file.h"

static const char *text_of(const char *text)
{
    return text != NULL ? text : "";
}

static int put_texts(struct kinf__buffer *out, const char *key, const struct kinf__strings *texts)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < texts->n_items; i++)
        failed = kinf__buffer_printf(out, "%s=%s\n", key, texts->items[i]);
    return failed;
}

char *kinf__state_scope(const struct kinf__resource_config *resource, const char *name_space)
{
    KINF__AUTO_BUFFER scope = KINF__BUFFER_INIT;
    char *text = NULL;

    if (kinf__buffer_printf(&scope, "namespace=%s\nlabels=%s\nfields=%s\nshard=%s\n",
                            text_of(name_space), text_of(resource->label_selector),
                            text_of(resource->field_selector),
                            text_of(resource->shard_selector)) < 0 ||
        put_texts(&scope, "drop", &resource->drops) < 0 ||
        put_texts(&scope, "keep", &resource->keeps) < 0 ||
        (resource->is_compressed && kinf__buffer_printf(&scope, "store=compressed\n") < 0) ||
        kinf__buffer_take_text(&scope, &text, NULL) < 0)
        return NULL;
    return text;
}

char *kinf__state_name(const struct kinf__resource_config *resource, const char *name_space)
{
    KINF__AUTO_BUFFER name = KINF__BUFFER_INIT, selectors = KINF__BUFFER_INIT;
    char *text = NULL;
    int failed =
        kinf__buffer_printf(&selectors, "%s\n%s\n%s", text_of(resource->label_selector),
                            text_of(resource->field_selector), text_of(resource->shard_selector));

    if (failed == 0)
        failed = kinf__buffer_printf(&name, "%s%s%s", resource->resource,
                                     name_space != NULL ? "@" : "", text_of(name_space));
    if (failed == 0 && selectors.len > 2)
        failed = kinf__buffer_printf(&name, "-%016" PRIx64,
                                     kinf__shard_hash(kinf__buffer_str(&selectors)));
    /* No namespace has such a letter. */
    if (failed == 0 && resource->number != 0)
        failed = kinf__buffer_printf(&name, "_%zu", resource->number + 1);
    return failed == 0 && kinf__buffer_take_text(&name, &text, NULL) == 0 ? text : NULL;
}

/* --- types --- */

/* NULL: no memory. */
static char *type_name(const struct kinf__resource_config *resource)
{
    char *name = NULL;

    return asprintf(&name, "type-%s", resource->resource) >= 0 ? name : NULL;
}

int kinf__state_find_type(const struct kinf__state_folder *folder, const char *server,
                          const struct kinf__resource_config *resource,
                          const struct kinf_type **ret_type, struct kinf_error *err)
{
    KINF__AUTO_FREE char *name = type_name(resource);

    return name != NULL ? kinf__state_file_type(folder, name, server, ret_type, err)
                        : kinf__error_no_memory(err);
}

/* A store without objects, which nobody loads: its head says it. */
static int write_type(const struct kinf__state_folder *folder, const char *server, const char *name,
                      const struct kinf_type *type, struct kinf_error *err)
{
    const struct kinf__state_identity identity = { "", server, type, "type" };
    struct kinf_indexer *indexer;
    struct kinf_snapshot *snapshot;
    uint64_t n_bytes;
    int failed = kinf_indexer_new(NULL, 0, &indexer, err);

    if (failed < 0)
        return failed;
    snapshot = kinf_indexer_snapshot(indexer);
    failed = kinf__state_file_write(folder, name, &identity, snapshot, kinf__clock_wall_ms(), NULL,
                                    &n_bytes, err);
    kinf_snapshot_unref(snapshot);
    kinf_indexer_free(indexer);
    return failed;
}

/* One that is not to be had at the next start is worth a line, and no more. */
void kinf__state_keep_type(const struct kinf__state_folder *folder, const char *server,
                           const struct kinf__resource_config *resource,
                           const struct kinf_type *type)
{
    KINF__AUTO_FREE char *name = type_name(resource);
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_type *kept = NULL;

    if (name == NULL || !kinf__state_name_is_good(name))
        return;
    if (kinf__state_file_type(folder, name, server, &kept, NULL) == 0 && kept == type)
        return;
    if (write_type(folder, server, name, type, &err) < 0)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN, "type not written file=%s error=%s", name,
                  KINF__QUOTED(err.message));
}
