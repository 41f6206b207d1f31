/*
 * What an agent on a node needs to know: which pod a container belongs to. Keeps the pods of one
 * node, by an index over their container ids, and answers ids read from standard input, one a line:
 *
 *     $ NODE_NAME=worker-1 node-index
 *     containerd://5f2c...
 *     shop/cart-7d9f
 *
 * "-" lists all the pods of the node.
 */
#include <kinformer/kinformer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BY_CONTAINER "byContainerID"

static const struct kinf_index indices[] = {
    KINF_INDEX_BY_NODE_NAME,
    { BY_CONTAINER, "status.containerStatuses[*].containerID", NULL, NULL },
};

/* What is stored of a pod: some hundred bytes instead of some thousand. */
static const char *const keeps[] = { "spec.nodeName", "status.containerStatuses[*].containerID" };

/* Prints the pods that have `value` in an index. */
static int print_pods(struct kinf_indexer *pods, const char *index, const char *value,
                      struct kinf_error *err)
{
    kinf_auto_object_list struct kinf_object_list found = KINF_OBJECT_LIST_INIT;

    if (kinf_indexer_by_index(pods, index, value, &found, err) < 0)
        return -1;
    for (size_t i = 0; i < found.n_items; i++)
        printf("%s\n", kinf_object_key(found.items[i]));
    if (found.n_items == 0)
        printf("%s: no pod\n", value);
    fflush(stdout);
    return 0;
}

static int answer(struct kinf_indexer *pods, const char *node, struct kinf_error *err)
{
    char line[512];

    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "-") == 0 ? print_pods(pods, "byNodeName", node, err) < 0
                                   : print_pods(pods, BY_CONTAINER, line, err) < 0)
            return -1;
    }
    return 0;
}

int main(void)
{
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_client struct kinf_client *client = NULL;
    kinf_auto_informer struct kinf_informer *pods = NULL;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    const char *node = getenv("NODE_NAME");
    char selector[sizeof "spec.nodeName=" + KINF_NAME_MAX];

    kinf_log_to_stderr();
    if (node == NULL || *node == '\0' || strlen(node) >= KINF_NAME_MAX) {
        fprintf(stderr, "node-index: NODE_NAME is not the name of a node\n");
        return 2;
    }
    snprintf(selector, sizeof selector, "spec.nodeName=%s", node);
    options.resource = "pods";
    options.field_selector = selector; /* the server sends nothing else */
    options.indices = indices;
    options.n_indices = sizeof indices / sizeof indices[0];
    options.keeps = keeps;
    options.n_keeps = sizeof keeps / sizeof keeps[0];

    if (kinf_client_new(NULL, &client, &err) < 0 ||
        kinf_informer_new(client, &options, &pods, &err) < 0 ||
        kinf_informer_start(pods, &err) < 0 ||
        kinf_informer_wait_synced(pods, KINF_FOREVER, &err) < 0 ||
        answer(kinf_informer_indexer(pods), node, &err) < 0) {
        fprintf(stderr, "node-index: %s\n", err.message);
        return 1;
    }
    return 0;
}
