#include "counter.h"

#include <stdlib.h>
#include <string.h>

struct counter {
    struct kinf_informer *pods;
};

int counter_new(struct kinf_client *client, struct counter **ret_counter, struct kinf_error *err)
{
    static const struct kinf_index by_node = KINF_INDEX_BY_NODE_NAME;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct counter *counter = calloc(1, sizeof *counter);
    int failed;

    if (counter == NULL)
        return KINF_ERR_NO_MEMORY;
    options.resource = "pods";
    options.indices = &by_node;
    options.n_indices = 1;
    failed = kinf_informer_new(client, &options, &counter->pods, err);
    if (failed == 0)
        failed = kinf_informer_start(counter->pods, err);
    if (failed == 0)
        failed = kinf_informer_wait_synced(counter->pods, 10000, err);
    if (failed < 0) {
        counter_free(counter);
        return failed;
    }
    *ret_counter = counter;
    return 0;
}

void counter_free(struct counter *counter)
{
    if (counter == NULL)
        return;
    kinf_informer_free(counter->pods);
    free(counter);
}

size_t counter_running(struct counter *counter, const char *node)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot =
        kinf_indexer_snapshot(kinf_informer_indexer(counter->pods));
    const struct kinf_object *pod;
    struct kinf_cursor cursor;
    char phase[32];
    size_t n = 0;

    if (kinf_cursor_index(&cursor, snapshot, "byNodeName", kinf_str_from(node), NULL) < 0)
        return 0;
    while ((pod = kinf_cursor_next(&cursor)) != NULL)
        n += kinf_object_get_string(pod, "status.phase", phase, sizeof phase) == 0 &&
             strcmp(phase, "Running") == 0;
    return n;
}
