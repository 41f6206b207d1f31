/*
 * Prints which node each pod runs on, and when that changes. The whole use of the library in one
 * page: a client, an informer, a handler.
 *
 *     pod-logger [NAMESPACE]
 */
#include <kinformer/kinformer.h>

#include <stdio.h>
#include <string.h>

/* "" for a pod that is not scheduled yet. */
static void node_of(const struct kinf_object *pod, char *buf, size_t size)
{
    if (kinf_object_get_string(pod, "spec.nodeName", buf, size) < 0)
        buf[0] = '\0';
}

/* Called for each add (old is NULL), update, and delete (pod is NULL), on the handler's own thread.
 */
static void print_move(const struct kinf_object *old, const struct kinf_object *pod, void *ctx)
{
    char before[KINF_NAME_MAX] = "", now[KINF_NAME_MAX] = "";

    (void)ctx;
    if (old != NULL)
        node_of(old, before, sizeof before);
    if (pod != NULL)
        node_of(pod, now, sizeof now);
    if (strcmp(before, now) == 0)
        return;
    if (now[0] != '\0')
        printf("%s runs on %s\n", kinf_object_key(pod), now);
    else
        printf("%s left %s\n", kinf_object_key(old), before);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_client struct kinf_client *client = NULL;
    kinf_auto_informer struct kinf_informer *pods = NULL;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    const char *const keeps[] = { "spec.nodeName" };

    kinf_log_to_stderr(); /* says what goes wrong on the way, and when it is over */
    options.resource = "pods";
    options.name_space = argc > 1 ? argv[1] : NULL;
    options.keeps = keeps; /* nothing else is stored */
    options.n_keeps = 1;
    options.handler = (struct kinf_handler){ .on_change = print_move };

    /* NULL: the kubeconfig that kubectl would use, or the pod's own service account */
    if (kinf_client_new(NULL, &client, &err) < 0 ||
        kinf_informer_new(client, &options, &pods, &err) < 0 ||
        kinf_informer_start(pods, &err) < 0 ||
        kinf_informer_wait_synced(pods, KINF_FOREVER, &err) < 0 ||
        kinf_run_until_signal(&err) < 0) {
        fprintf(stderr, "pod-logger: %s\n", err.message);
        return 1;
    }
    return 0;
}
