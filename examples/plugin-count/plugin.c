/* How many pods of each phase are on each node: kinformerd --resource pods --plugin plugin-count.so */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/plugin.h>

struct counts {
    const struct kinf_host *host;
    struct {
        char name[300]; /* "node-1/Running"; "": the end */
        int n, n_logged;
    } places[4096];
};

static int add(struct counts *counts, const struct kinf_object *pod, int n)
{
    const struct kinf_host *host = counts->host;
    char node[254], phase[32], name[300];
    size_t i = 0;

    host->get_string(host, pod, "spec.nodeName", node, sizeof node); /* "": it has none yet */
    host->get_string(host, pod, "status.phase", phase, sizeof phase);
    snprintf(name, sizeof name, "%s/%s", node, phase);
    while (counts->places[i].name[0] != '\0' && strcmp(counts->places[i].name, name) != 0)
        i++;
    if (i == 4095)
        return KINF_ERR_LIMIT;
    strcpy(counts->places[i].name, name);
    counts->places[i].n += n;
    return 0;
}

static int on_change(void *state, const struct kinf_change *change, struct kinf_error *err)
{
    struct counts *counts = state;

    (void)err;
    counts->host->count(counts->host, "changes", 1);
    if (change->type == KINF_CHANGE_RESET)
        memset(counts->places, 0, sizeof counts->places);
    if (change->old != NULL)
        (void)add(counts, change->old, -1); /* its place is there */
    if (change->type == KINF_CHANGE_ADDED || change->type == KINF_CHANGE_MODIFIED)
        return add(counts, change->object, 1);
    return 0;
}

static int flush(void *state, struct kinf_error *err)
{
    struct counts *counts = state;
    char line[400];

    (void)err;
    for (size_t i = 0; counts->places[i].name[0] != '\0'; i++) {
        if (counts->places[i].n == counts->places[i].n_logged)
            continue;
        counts->places[i].n_logged = counts->places[i].n;
        snprintf(line, sizeof line, "%s=%d", counts->places[i].name, counts->places[i].n);
        counts->host->log(counts->host, KINF_LOG_INFO, line);
    }
    return 0;
}

static int begin(const struct kinf_host *host, const char *config, void **state,
                 struct kinf_error *err)
{
    struct counts *counts = *state = calloc(1, sizeof *counts);

    (void)config, (void)err;
    if (counts != NULL)
        counts->host = host;
    return counts != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static const struct kinf_plugin count = { KINF_PLUGIN_ABI, sizeof count, "count", begin,
                                          on_change,       flush,        free };
KINF_PLUGIN(count)
