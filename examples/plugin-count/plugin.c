/*
 * A plugin of kinformerd that counts pods by node and phase, and logs the counts when they change.
 *
 *     kinformerd --resource pods --plugin plugin-count.so
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/plugin.h>

struct count {
    char place[300]; /* "node-1/Running" */
    int n;
    bool has_changed;
    struct count *next;
};

struct counts {
    const struct kinf_host *host;
    struct count *first;
};

static void add(struct counts *counts, const struct kinf_object *pod, int n)
{
    const struct kinf_host *host = counts->host;
    char node[254], phase[32], place[300];
    struct count *count = counts->first;

    if (host->get_string(host, pod, "spec.nodeName", node, sizeof node) < 0)
        strcpy(node, "none");
    if (host->get_string(host, pod, "status.phase", phase, sizeof phase) < 0)
        strcpy(phase, "unknown");
    snprintf(place, sizeof place, "%s/%s", node, phase);
    while (count != NULL && strcmp(count->place, place) != 0)
        count = count->next;
    if (count == NULL) {
        if ((count = calloc(1, sizeof *count)) == NULL)
            abort();
        strcpy(count->place, place);
        count->next = counts->first;
        counts->first = count;
    }
    count->n += n;
    count->has_changed = true;
}

static int on_change(void *state, const struct kinf_change *change, struct kinf_error *err)
{
    struct counts *counts = state;

    (void)err;
    for (struct count *count = counts->first; change->type == KINF_CHANGE_RESET && count != NULL;
         count = count->next)
        count->n = 0;
    if (change->old != NULL)
        add(counts, change->old, -1);
    if (change->type == KINF_CHANGE_ADDED || change->type == KINF_CHANGE_MODIFIED)
        add(counts, change->object, 1);
    counts->host->count(counts->host, "changes", 1);
    return 0;
}

static int flush(void *state, struct kinf_error *err)
{
    struct counts *counts = state;
    char line[400];

    (void)err;
    for (struct count *count = counts->first; count != NULL; count = count->next) {
        snprintf(line, sizeof line, "%s=%d", count->place, count->n);
        if (count->has_changed)
            counts->host->log(counts->host, KINF_LOG_INFO, line);
        count->has_changed = false;
    }
    return 0;
}

static int open_counts(const struct kinf_host *host, const char *config, void **ret_state,
                       struct kinf_error *err)
{
    struct counts *counts = calloc(1, sizeof *counts);

    (void)config, (void)err;
    if (counts == NULL)
        return KINF_ERR_NO_MEMORY;
    counts->host = host;
    *ret_state = counts;
    return 0;
}

static void close_counts(void *state)
{
    struct counts *counts = state;

    for (struct count *count = counts->first, *next; count != NULL; count = next) {
        next = count->next;
        free(count);
    }
    free(counts);
}

static const struct kinf_plugin table = { KINF_PLUGIN_ABI, sizeof table, "count",     open_counts,
                                          on_change,       flush,        close_counts };
KINF_PLUGIN(table)
