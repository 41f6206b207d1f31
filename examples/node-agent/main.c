/*
 * Says of the lines of a log which pod of this node they are about:
 *
 *     $ NODE_NAME=worker-1 node-agent < log
 *     {"line":"oom: 5f2c...","namespace":"shop","pod":"cart-7d9f","labels":{"app":"cart"}}
 *
 * A line is any text. The first container id or pod IP in it that belongs to a pod counts; without
 * one the line comes alone. What is longer than 16 KiB goes on as a line of its own.
 */
#include <kinformer/kinformer.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What names a pod. */
static const char *const names[] = { "status.podIPs[*].ip",
                                     "status.containerStatuses[*].containerID",
                                     "status.initContainerStatuses[*].containerID",
                                     "status.ephemeralContainerStatuses[*].containerID" };
enum { N_NAMES = sizeof names / sizeof names[0], IP = 0, LINE_SIZE = 16384 };
static struct kinf_path *paths[N_NAMES];

/* An id stands behind its runtime: "containerd://5f2c..." */
static int add_name(struct kinf_str json, void *values)
{
    char name[512];
    const char *scheme;

    if (kinf_json_string(json, name, sizeof name) < 0)
        return 0;
    scheme = strstr(name, "://");
    return scheme != NULL ? kinf_index_values_add(values, scheme + 3, strlen(scheme + 3))
                          : kinf_index_values_add(values, name, strlen(name));
}

/* The IP of a pod on the host's network is the node's, that of a pod that has ended may be another's
 * by now. */
static bool has_own_ip(const struct kinf_object *pod)
{
    char phase[32] = "";
    bool is_on_host = false;

    return kinf_object_get_bool(pod, "spec.hostNetwork", &is_on_host) != KINF_ERR_NO_MEMORY &&
           kinf_object_get_string(pod, "status.phase", phase, sizeof phase) != KINF_ERR_NO_MEMORY &&
           !is_on_host && strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0;
}

static int index_names(const struct kinf_object *pod, struct kinf_index_values *values, void *ctx)
{
    int rc = 0;

    (void)ctx;
    for (int i = has_own_ip(pod) ? IP : IP + 1; rc == 0 && i < N_NAMES; i++)
        rc = kinf_object_each(pod, paths[i], add_name, values);
    return rc;
}

/* "10.0.0.1." and "10.0.0.1:" are meant, too. */
static const struct kinf_object *get_pod(const struct kinf_snapshot *pods, struct kinf_str name)
{
    struct kinf_cursor cursor;

    while (name.len != 0 && strchr(".:-_", name.bytes[name.len - 1]) != NULL)
        name.len--;
    return name.len != 0 && kinf_cursor_index(&cursor, pods, "name", name, NULL) == 0
               ? kinf_cursor_next(&cursor)
               : NULL;
}

/* Each word is looked up, and if it has colons (a port, a key) what is before the first and behind
 * the last. */
static const struct kinf_object *find_pod(const struct kinf_snapshot *pods, struct kinf_str line)
{
    const struct kinf_object *pod = NULL;
    size_t begin = 0, end = 0, colon;

    for (; pod == NULL && end < line.len; begin = ++end) {
        const char *word = line.bytes + begin;

        while (end < line.len && (isalnum((unsigned char)line.bytes[end]) ||
                                  memchr(".:-_", line.bytes[end], 4) != NULL))
            end++;
        pod = get_pod(pods, (struct kinf_str){ word, end - begin });
        for (colon = begin; pod == NULL && colon < end && line.bytes[colon] != ':';)
            colon++;
        if (pod == NULL && colon < end)
            pod = get_pod(pods, (struct kinf_str){ word, colon - begin });
        for (colon = end; pod == NULL && colon > begin && line.bytes[colon - 1] != ':';)
            colon--;
        if (pod == NULL && colon > begin)
            pod = get_pod(pods, (struct kinf_str){ line.bytes + colon, end - colon });
    }
    return pod;
}

/* Labels are copied as they came, since any key may be in them. */
static int print_line(struct kinf_informer *informer, struct kinf_str line, struct kinf_error *err)
{
    kinf_auto_snapshot struct kinf_snapshot *pods =
        kinf_indexer_snapshot(kinf_informer_indexer(informer));
    kinf_auto_scratch struct kinf_scratch room = KINF_SCRATCH_INIT, text = KINF_SCRATCH_INIT;
    const struct kinf_object *pod = find_pod(pods, line);
    struct kinf_str json, labels = KINF_STR("{}");
    int rc = pod == NULL ? 0 : kinf_object_get_json(pod, "metadata.labels", &room, &labels);

    if (rc == KINF_ERR_NO_MEMORY)
        return kinf_error_set(err, KINF_ERR_NO_MEMORY, "out of memory");
    rc = pod == NULL
             ? kinf_json_format(&text, &json, err, "{line:?v}", line)
             : kinf_json_format(&text, &json, err, "{line:?v,namespace:?v,pod:?s,labels:?j}", line,
                                kinf_object_namespace(pod), kinf_object_name(pod), labels);
    if (rc == 0 && (printf("%.*s\n", (int)json.len, json.bytes) < 0 || fflush(stdout) != 0))
        rc = kinf_error_set(err, KINF_ERR_SYSTEM, "cannot write");
    return rc;
}

static int print_lines(struct kinf_informer *pods, struct kinf_error *err)
{
    char line[LINE_SIZE];
    size_t len = 0;
    int c, rc = 0;

    while (rc == 0 && (c = getchar()) != EOF) {
        if (c == '\n' || len == sizeof line) {
            rc = print_line(pods, (struct kinf_str){ line, len }, err);
            len = 0;
        }
        if (c != '\n')
            line[len++] = (char)c;
    }
    return rc == 0 && len != 0 ? print_line(pods, (struct kinf_str){ line, len }, err) : rc;
}

int main(void)
{
    static const struct kinf_index index = { "name", NULL, index_names, NULL };
    static const char *const drops[] = { "metadata.managedFields", "spec.containers" };
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_client struct kinf_client *client = NULL;
    kinf_auto_informer struct kinf_informer *pods = NULL;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    const char *node = getenv("NODE_NAME");
    char selector[sizeof "spec.nodeName=" + KINF_NAME_MAX];
    int rc = 0;

    kinf_log_to_stderr();
    if (node == NULL || *node == '\0' || strlen(node) >= KINF_NAME_MAX)
        return fprintf(stderr, "node-agent: NODE_NAME is not the name of a node\n"), 2;
    snprintf(selector, sizeof selector, "spec.nodeName=%s", node);
    options.resource = "pods";
    options.field_selector = selector; /* the server sends nothing else */
    options.indices = &index;
    options.n_indices = 1;
    options.drops = drops; /* the most of it, which nobody needs here */
    options.n_drops = 2;
    for (int i = 0; rc == 0 && i < N_NAMES; i++)
        rc = kinf_path_parse(names[i], &paths[i], &err);
    if (rc < 0 || kinf_client_new(NULL, &client, &err) < 0 ||
        kinf_informer_new(client, &options, &pods, &err) < 0 ||
        kinf_informer_start(pods, &err) < 0 ||
        kinf_informer_wait_synced(pods, KINF_FOREVER, &err) < 0 || print_lines(pods, &err) < 0)
        return fprintf(stderr, "node-agent: %s\n", err.message), 1;
    return 0;
}
