/*
 * What comes of Deployments and their like when nothing but time passes. The test is the worker.
 */
#include "workloads/workloads.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "workloads/generate.h"
#include "workloads/recorder.h"
#include "unit/allocation.h"
#include "unit/test.h"
#include "unit/workloads_fixture.h"

#define WHILE_MS 20000 /* in which all comes to rest */

static void add_node(struct worked *worked, const char *name)
{
    char text[512];

    snprintf(text, sizeof text,
             "{'metadata':{'name':'%s','labels':{'disk':'%s'}},'status':{'addresses':[{'type':"
             "'InternalIP','address':'172.18.0.%zu'}]}}",
             name, strcmp(name, "n1") == 0 ? "ssd" : "hdd", strlen(name));
    worked_create(worked, "", "nodes", text);
}

static void init_with_nodes(struct worked *worked)
{
    worked_init_workloads(worked, 7);
    add_node(worked, "n1");
    add_node(worked, "n2");
}

#define POD_TEMPLATE                                                                               \
    "'template':{'metadata':{'labels':{'app':'web'}},'spec':{'containers':[{'name':'main',"        \
    "'image':'example/web:1'}]}}"
#define SELECTOR "'selector':{'matchLabels':{'app':'web'}}"

static void add_deployment(struct worked *worked, int replicas, const char *strategy)
{
    char text[1024];

    snprintf(text, sizeof text,
             "{'metadata':{'name':'web','namespace':'default'},'spec':{'replicas':%d%s%s," SELECTOR
             "," POD_TEMPLATE "}}",
             replicas, strategy != NULL ? ",'strategy':" : "", strategy != NULL ? strategy : "");
    worked_create(worked, "apps", "deployments", text);
}

static void set_image(struct worked *worked, const char *resource, const char *image)
{
    char patch[256];

    snprintf(patch, sizeof patch,
             "{'spec':{'template':{'spec':{'containers':[{'name':'main','image':'%s'}]}}}}", image);
    worked_merge(worked, "apps", resource, "default/web", patch);
}

static int64_t web(struct worked *worked, const char *resource, const char *path)
{
    return worked_number(worked, "apps", resource, "default/web", path);
}

static const char *condition(struct worked *worked, const char *type, const char *member)
{
    struct cJSON *tree = worked_get(worked, "apps", "deployments", "default/web");
    static char text[256];
    const struct cJSON *node;

    text[0] = '\0';
    cJSON_ArrayForEach(node, kinf__doc_find(tree, "status", "conditions", NULL))
    {
        if (strcmp(kinf__doc_text(node, "type", NULL), type) == 0)
            snprintf(text, sizeof text, "%s", kinf__doc_text(node, member, NULL));
    }
    cJSON_Delete(tree);
    return text;
}

/* What there is of the pods of "default". */
struct tally {
    size_t n, n_ready, n_ending, n_bound, n_of_image;
};

static bool is_ready(const struct kinf_object *pod)
{
    char text[16];

    return kinf_object_get_string(pod, "status.phase", text, sizeof text) == 0 &&
           strcmp(text, "Running") == 0;
}

static struct tally count_pods(struct worked *worked, const char *image)
{
    kinf_auto_object_list struct kinf_object_list list = worked_list(worked, "", "pods", "default");
    struct tally tally = { .n = list.n_items };
    char text[256];

    for (size_t i = 0; i < list.n_items; i++) {
        const struct kinf_object *pod = list.items[i];
        bool is_ending =
            kinf_object_get_string(pod, "metadata.deletionTimestamp", text, sizeof text) == 0;

        tally.n_ending += is_ending;
        tally.n_ready += is_ready(pod) && !is_ending;
        tally.n_bound += kinf_object_get_string(pod, "spec.nodeName", text, sizeof text) == 0;
        tally.n_of_image +=
            kinf_object_get_string(pod, "spec.containers[0].image", text, sizeof text) == 0 &&
            image != NULL && strcmp(text, image) == 0;
    }
    return tally;
}

static void deployments_get_pods_that_run(void **state)
{
    struct worked worked;
    struct tally tally;

    (void)state;
    init_with_nodes(&worked);
    add_deployment(&worked, 4, NULL);
    worked_run(&worked, WHILE_MS);
    tally = count_pods(&worked, "example/web:1");
    assert_int_equal(tally.n, 4);
    assert_int_equal(tally.n_ready, 4);
    assert_int_equal(tally.n_of_image, 4);
    assert_int_equal(web(&worked, "deployments", "status.replicas"), 4);
    assert_int_equal(web(&worked, "deployments", "status.updatedReplicas"), 4);
    assert_int_equal(web(&worked, "deployments", "status.readyReplicas"), 4);
    assert_int_equal(web(&worked, "deployments", "status.availableReplicas"), 4);
    assert_int_equal(web(&worked, "deployments", "status.unavailableReplicas"), 0);
    assert_int_equal(web(&worked, "deployments", "status.observedGeneration"), 1);
    assert_string_equal(condition(&worked, "Available", "status"), "True");
    assert_string_equal(condition(&worked, "Progressing", "reason"), "NewReplicaSetAvailable");
    assert_string_equal(worked_text(&worked, "apps", "deployments", "default/web",
                                    "metadata.annotations[\"deployment.kubernetes.io/revision\"]"),
                        "1");
    worked_release(&worked);
}

static void running_pods_are_complete(void **state)
{
    static const struct {
        const char *path, *text;
    } table[] = {
        { "status.phase", "Running" },
        { "status.hostIP", "172.18.0.2" },
        { "status.containerStatuses[0].name", "main" },
        { "status.containerStatuses[0].image", "example/web:1" },
        { "metadata.ownerReferences[0].kind", "ReplicaSet" },
        { "metadata.labels.app", "web" },
    };
    static const char *const conditions[] = { "PodScheduled", "PodReadyToStartContainers",
                                              "Initialized", "ContainersReady", "Ready" };
    kinf_auto_object_list struct kinf_object_list pods = KINF_OBJECT_LIST_INIT;
    struct worked worked;
    struct cJSON *tree;
    char text[256];

    (void)state;
    init_with_nodes(&worked);
    add_deployment(&worked, 2, NULL);
    worked_run(&worked, WHILE_MS);
    pods = worked_list(&worked, "", "pods", "default");
    assert_int_equal(pods.n_items, 2);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(kinf_object_get_string(pods.items[0], table[i].path, text, sizeof text),
                         0);
        assert_string_equal(text, table[i].text);
    }
    assert_int_equal(kinf_object_get_string(pods.items[0], "status.podIP", text, sizeof text), 0);
    assert_int_equal(kinf_object_get_string(pods.items[0], "status.startTime", text, sizeof text),
                     0);
    assert_int_equal(kinf__store_to_tree(pods.items[0], &tree), 0);
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        const struct cJSON *node = NULL, *found = NULL;

        cJSON_ArrayForEach(node, kinf__doc_find(tree, "status", "conditions", NULL))
        {
            if (strcmp(kinf__doc_text(node, "type", NULL), conditions[i]) == 0)
                found = node;
        }
        assert_string_equal(kinf__doc_text(found, "status", NULL), "True");
    }
    cJSON_Delete(tree);
    /* One on each node. */
    assert_int_equal(kinf_object_get_string(pods.items[0], "spec.nodeName", text, sizeof text), 0);
    assert_string_not_equal(
        text, worked_text(&worked, "", "pods", kinf_object_key(pods.items[1]), "spec.nodeName"));
    kinf_object_list_release(&pods);
    worked_release(&worked);
}

static void rollouts_keep_to_their_limits_at_every_moment(void **state)
{
    struct worked worked;
    int64_t until_ms;
    size_t n_most = 0;

    (void)state;
    init_with_nodes(&worked);
    add_deployment(&worked, 6,
                   "{'type':'RollingUpdate','rollingUpdate':{'maxSurge':2,'maxUnavailable':1}}");
    worked_run(&worked, WHILE_MS);
    set_image(&worked, "deployments", "example/web:2");
    until_ms = worked.now_ms + WHILE_MS;
    while (worked_step(&worked, until_ms)) {
        struct tally tally = count_pods(&worked, NULL);

        assert_true(tally.n - tally.n_ending <= 8);
        assert_true(tally.n_ready >= 5);
        n_most = tally.n - tally.n_ending > n_most ? tally.n - tally.n_ending : n_most;
    }
    assert_int_equal(n_most, 8);
    assert_int_equal(count_pods(&worked, "example/web:2").n_of_image, 6);
    assert_int_equal(count_pods(&worked, NULL).n, 6);
    assert_string_equal(condition(&worked, "Progressing", "reason"), "NewReplicaSetAvailable");
    worked_release(&worked);
}

static const char *revision(struct worked *worked)
{
    return worked_text(worked, "apps", "deployments", "default/web",
                       "metadata.annotations[\"deployment.kubernetes.io/revision\"]");
}

static void templates_that_come_back_get_their_set_again(void **state)
{
    kinf_auto_object_list struct kinf_object_list sets = KINF_OBJECT_LIST_INIT;
    struct worked worked;
    size_t n_with_history = 0;
    char text[64];

    (void)state;
    init_with_nodes(&worked);
    add_deployment(&worked, 2, NULL);
    worked_run(&worked, WHILE_MS);
    set_image(&worked, "deployments", "example/web:2");
    worked_run(&worked, WHILE_MS);
    assert_string_equal(revision(&worked), "2");
    set_image(&worked, "deployments", "example/web:1");
    worked_run(&worked, WHILE_MS);
    assert_string_equal(revision(&worked), "3");
    sets = worked_list(&worked, "apps", "replicasets", "default");
    assert_int_equal(sets.n_items, 2);
    for (size_t i = 0; i < sets.n_items; i++) {
        if (kinf_object_get_annotation(sets.items[i], "deployment.kubernetes.io/revision-history",
                                       text, sizeof text) < 0)
            continue;
        n_with_history++;
        assert_string_equal(text, "1");
    }
    assert_int_equal(n_with_history, 1);
    assert_int_equal(count_pods(&worked, "example/web:1").n_of_image, 2);
    kinf_object_list_release(&sets);
    worked_release(&worked);
}

static void old_sets_are_kept_up_to_the_limit(void **state)
{
    kinf_auto_object_list struct kinf_object_list sets = KINF_OBJECT_LIST_INIT;
    struct worked worked;
    char image[32];

    (void)state;
    init_with_nodes(&worked);
    add_deployment(&worked, 1, NULL);
    worked_merge(&worked, "apps", "deployments", "default/web",
                 "{'spec':{'revisionHistoryLimit':2}}");
    for (int i = 0; i < 5; i++) {
        snprintf(image, sizeof image, "example/web:%d", i + 10);
        set_image(&worked, "deployments", image);
        worked_run(&worked, WHILE_MS);
    }
    sets = worked_list(&worked, "apps", "replicasets", "default");
    assert_int_equal(sets.n_items, 3);
    kinf_object_list_release(&sets);
    worked_release(&worked);
}

static void recreated_pods_never_meet_the_old_ones(void **state)
{
    struct worked worked;
    int64_t until_ms;

    (void)state;
    init_with_nodes(&worked);
    add_deployment(&worked, 3, "{'type':'Recreate'}");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, "example/web:1").n_ready, 3);
    set_image(&worked, "deployments", "example/web:2");
    until_ms = worked.now_ms + WHILE_MS;
    while (worked_step(&worked, until_ms)) {
        struct tally tally = count_pods(&worked, "example/web:2");

        assert_true(tally.n_of_image == 0 || tally.n_of_image == tally.n);
    }
    assert_int_equal(count_pods(&worked, "example/web:2").n_of_image, 3);
    worked_release(&worked);
}

static void paused_deployments_scale_but_do_not_roll(void **state)
{
    struct worked worked;

    (void)state;
    init_with_nodes(&worked);
    add_deployment(&worked, 2, NULL);
    worked_run(&worked, WHILE_MS);
    worked_merge(&worked, "apps", "deployments", "default/web", "{'spec':{'paused':true}}");
    set_image(&worked, "deployments", "example/web:2");
    worked_merge(&worked, "apps", "deployments", "default/web", "{'spec':{'replicas':4}}");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, "example/web:1").n_of_image, 4);
    assert_int_equal(count_pods(&worked, NULL).n, 4);
    assert_string_equal(condition(&worked, "Progressing", "reason"), "DeploymentPaused");
    worked_merge(&worked, "apps", "deployments", "default/web", "{'spec':{'paused':null}}");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, "example/web:2").n_of_image, 4);
    assert_int_equal(count_pods(&worked, NULL).n, 4);
    assert_string_equal(condition(&worked, "Progressing", "reason"), "NewReplicaSetAvailable");
    worked_release(&worked);
}

static void lost_pods_are_replaced_and_surplus_ones_go(void **state)
{
    kinf_auto_object_list struct kinf_object_list pods = KINF_OBJECT_LIST_INIT;
    struct worked worked;

    (void)state;
    init_with_nodes(&worked);
    add_deployment(&worked, 3, NULL);
    worked_run(&worked, WHILE_MS);
    pods = worked_list(&worked, "", "pods", "default");
    worked_delete(&worked, "", "pods", kinf_object_key(pods.items[0]));
    assert_int_equal(count_pods(&worked, NULL).n_ending, 1);
    /* Its grace period is thirty seconds; it takes no more than one. */
    worked_run(&worked, 1000);
    assert_int_equal(count_pods(&worked, NULL).n_ending, 0);
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n_ready, 3);
    assert_null(worked_get(&worked, "", "pods", kinf_object_key(pods.items[0])));
    worked_merge(&worked, "apps", "deployments", "default/web", "{'spec':{'replicas':120}}");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n_ready, 120);
    worked_merge(&worked, "apps", "deployments", "default/web", "{'spec':{'replicas':0}}");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n, 0);
    assert_int_equal(web(&worked, "deployments", "status.replicas"), 0);
    kinf_object_list_release(&pods);
    worked_release(&worked);
}

static void pods_wait_for_a_node_that_fits(void **state)
{
    kinf_auto_object_list struct kinf_object_list pods = KINF_OBJECT_LIST_INIT;
    struct worked worked;
    char text[256];

    (void)state;
    worked_init_workloads(&worked, 3);
    add_deployment(&worked, 2, NULL);
    worked_merge(&worked, "apps", "deployments", "default/web",
                 "{'spec':{'template':{'spec':{'nodeSelector':{'disk':'ssd'}}}}}");
    worked_run(&worked, WHILE_MS);
    pods = worked_list(&worked, "", "pods", "default");
    assert_int_equal(pods.n_items, 2);
    assert_int_equal(
        kinf_object_get_string(pods.items[0], "status.conditions[0].reason", text, sizeof text), 0);
    assert_string_equal(text, "Unschedulable");
    add_node(&worked, "n2");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n_bound, 0);
    add_node(&worked, "n1");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n_ready, 2);
    kinf_object_list_release(&pods);
    worked_release(&worked);
}

static void pods_get_the_zone_of_the_node_that_they_are_bound_to(void **state)
{
    struct worked worked;
    struct cJSON *pod;

    (void)state;
    worked_init_workloads(&worked, 3);
    worked_create(&worked, "", "nodes",
                  "{'metadata':{'name':'n','labels':{'topology.kubernetes.io/zone':'z'}}}");
    worked_create(&worked, "", "pods",
                  "{'metadata':{'name':'p','namespace':'default'},'spec':{'containers':[{'name':"
                  "'main','image':'example/x:1'}]}}");
    worked_run(&worked, WHILE_MS);
    pod = worked_get(&worked, "", "pods", "default/p");
    assert_string_equal(
        kinf__doc_text(pod, "metadata", "labels", "topology.kubernetes.io/zone", NULL), "z");
    cJSON_Delete(pod);
    worked_release(&worked);
}

static void pods_are_not_bound_before_their_gates_are_open(void **state)
{
    struct worked worked;

    (void)state;
    init_with_nodes(&worked);
    worked_create(&worked, "", "pods",
                  "{'metadata':{'name':'gated','namespace':'default'},'spec':{'schedulingGates':[{"
                  "'name':'example.com/a'},{'name':'example.com/b'}],'containers':[{'name':'main',"
                  "'image':'example/x:1'}]}}");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n_bound, 0);
    worked_merge(&worked, "", "pods", "default/gated",
                 "{'spec':{'schedulingGates':[{'name':'example.com/b'}]}}");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n_bound, 0);
    worked_merge(&worked, "", "pods", "default/gated", "{'spec':{'schedulingGates':[]}}");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n_ready, 1);
    worked_release(&worked);
}

static void cordoned_nodes_get_no_pods_and_lost_ones_lose_theirs(void **state)
{
    struct worked worked;

    (void)state;
    init_with_nodes(&worked);
    worked_merge(&worked, "", "nodes", "n1", "{'spec':{'unschedulable':true}}");
    add_deployment(&worked, 4, NULL);
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n_ready, 4);
    worked_merge(&worked, "", "nodes", "n1", "{'spec':{'unschedulable':null}}");
    worked_delete(&worked, "", "nodes", "n2");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n_ready, 4);
    worked_release(&worked);
}

static void failing_deployments_say_so_after_their_deadline(void **state)
{
    struct worked worked;

    (void)state;
    worked_init_workloads(&worked, 4);
    add_node(&worked, "n1");
    worked_merge(&worked, "", "nodes", "n1", "{'spec':{'unschedulable':true}}");
    add_deployment(&worked, 1, NULL);
    worked_merge(&worked, "apps", "deployments", "default/web",
                 "{'spec':{'progressDeadlineSeconds':5}}");
    worked_run(&worked, 1000);
    assert_string_equal(condition(&worked, "Progressing", "status"), "True");
    worked_merge_status(&worked, "apps", "deployments", "default/web",
                        "{'status':{'conditions':[{'type':'Progressing','status':'True','reason':"
                        "'ReplicaSetUpdated','lastUpdateTime':'2020-01-01T00:00:00Z'}]}}");
    worked_run(&worked, 1000);
    assert_string_equal(condition(&worked, "Progressing", "reason"), "ProgressDeadlineExceeded");
    assert_string_equal(condition(&worked, "Progressing", "status"), "False");
    assert_string_equal(condition(&worked, "Available", "status"), "False");
    worked_release(&worked);
}

static void a_deadline_counts_from_a_time_of_any_zone(void **state)
{
    struct worked worked;
    char minute_ago[KINF__RFC3339_SIZE], text[256];

    (void)state;
    worked_init_workloads(&worked, 4);
    add_node(&worked, "n1");
    worked_merge(&worked, "", "nodes", "n1", "{'spec':{'unschedulable':true}}");
    add_deployment(&worked, 1, NULL);
    worked_merge(&worked, "apps", "deployments", "default/web",
                 "{'spec':{'progressDeadlineSeconds':5}}");
    worked_run(&worked, 1000);
    kinf__rfc3339_write(kinf__clock_wall_ms() / 1000 + 3600 - 60, 0, 0, minute_ago);
    snprintf(text, sizeof text,
             "{'status':{'conditions':[{'type':'Progressing','status':'True','reason':"
             "'ReplicaSetUpdated','lastUpdateTime':'%.19s+01:00'}]}}",
             minute_ago);
    worked_merge_status(&worked, "apps", "deployments", "default/web", text);
    worked_run(&worked, 1000);
    assert_string_equal(condition(&worked, "Progressing", "reason"), "ProgressDeadlineExceeded");
    worked_release(&worked);
}

static void sets_without_an_owner_are_taken_over_by_name(void **state)
{
    kinf_auto_object_list struct kinf_object_list sets = KINF_OBJECT_LIST_INIT;
    struct worked worked;
    char text[64];

    (void)state;
    init_with_nodes(&worked);
    add_deployment(&worked, 2, NULL);
    worked_run(&worked, WHILE_MS);
    sets = worked_list(&worked, "apps", "replicasets", "default");
    worked_merge(&worked, "apps", "replicasets", kinf_object_key(sets.items[0]),
                 "{'metadata':{'ownerReferences':null}}");
    worked_delete(&worked, "apps", "deployments", "default/web");
    add_deployment(&worked, 2, NULL);
    worked_run(&worked, WHILE_MS);
    kinf_object_list_release(&sets);
    sets = worked_list(&worked, "apps", "replicasets", "default");
    assert_int_equal(sets.n_items, 1);
    assert_int_equal(
        kinf_object_get_string(sets.items[0], "metadata.ownerReferences[0].uid", text, sizeof text),
        0);
    assert_string_equal(text,
                        worked_text(&worked, "apps", "deployments", "default/web", "metadata.uid"));
    kinf_object_list_release(&sets);
    worked_release(&worked);
}

static void add_statefulset(struct worked *worked, int replicas)
{
    char text[1024];

    snprintf(text, sizeof text,
             "{'metadata':{'name':'web','namespace':'default'},'spec':{'replicas':%d,"
             "'serviceName':'web'," SELECTOR "," POD_TEMPLATE "}}",
             replicas);
    worked_create(worked, "apps", "statefulsets", text);
}

static bool is_running(struct worked *worked, const char *key)
{
    return strcmp(worked_text(worked, "", "pods", key, "status.phase"), "Running") == 0;
}

static void statefulsets_go_one_after_the_other(void **state)
{
    struct worked worked;
    int64_t until_ms;

    (void)state;
    init_with_nodes(&worked);
    add_statefulset(&worked, 3);
    until_ms = worked.now_ms + WHILE_MS;
    while (worked_step(&worked, until_ms)) {
        size_t n = count_pods(&worked, NULL).n;

        assert_true(n < 2 || is_running(&worked, "default/web-0"));
        assert_true(n < 3 || is_running(&worked, "default/web-1"));
    }
    assert_true(is_running(&worked, "default/web-2"));
    assert_string_equal(worked_text(&worked, "", "pods", "default/web-2", "spec.hostname"),
                        "web-2");
    assert_int_equal(web(&worked, "statefulsets", "status.readyReplicas"), 3);
    assert_int_equal(web(&worked, "statefulsets", "status.currentReplicas"), 3);
    worked_merge(&worked, "apps", "statefulsets", "default/web", "{'spec':{'replicas':1}}");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n, 1);
    assert_true(is_running(&worked, "default/web-0"));
    worked_release(&worked);
}

static void statefulsets_roll_from_the_last_down_to_the_partition(void **state)
{
    struct worked worked;
    char first[64], current[128];

    (void)state;
    init_with_nodes(&worked);
    add_statefulset(&worked, 3);
    worked_run(&worked, WHILE_MS);
    snprintf(first, sizeof first, "%s",
             worked_text(&worked, "", "pods", "default/web-0", "metadata.uid"));
    snprintf(current, sizeof current, "%s",
             worked_text(&worked, "apps", "statefulsets", "default/web", "status.currentRevision"));
    worked_merge(&worked, "apps", "statefulsets", "default/web",
                 "{'spec':{'updateStrategy':{'rollingUpdate':{'partition':1}}}}");
    set_image(&worked, "statefulsets", "example/web:2");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, "example/web:2").n_of_image, 2);
    assert_string_equal(worked_text(&worked, "", "pods", "default/web-0", "metadata.uid"), first);
    assert_int_equal(web(&worked, "statefulsets", "status.updatedReplicas"), 2);
    assert_string_equal(
        worked_text(&worked, "apps", "statefulsets", "default/web", "status.currentRevision"),
        current);
    worked_merge(&worked, "apps", "statefulsets", "default/web",
                 "{'spec':{'updateStrategy':{'rollingUpdate':{'partition':0}}}}");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, "example/web:2").n_of_image, 3);
    assert_string_not_equal(
        worked_text(&worked, "apps", "statefulsets", "default/web", "status.currentRevision"),
        current);
    worked_release(&worked);
}

static void daemonsets_have_a_pod_on_each_node(void **state)
{
    struct worked worked;

    (void)state;
    init_with_nodes(&worked);
    worked_create(&worked, "apps", "daemonsets",
                  "{'metadata':{'name':'web','namespace':'default'},'spec':{" SELECTOR
                  "," POD_TEMPLATE "}}");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n_ready, 2);
    add_node(&worked, "n3");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n_ready, 3);
    assert_int_equal(web(&worked, "daemonsets", "status.desiredNumberScheduled"), 3);
    assert_int_equal(web(&worked, "daemonsets", "status.numberAvailable"), 3);
    worked_delete(&worked, "", "nodes", "n1");
    set_image(&worked, "daemonsets", "example/web:2");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, "example/web:2").n_of_image, 2);
    assert_int_equal(count_pods(&worked, NULL).n, 2);
    assert_int_equal(web(&worked, "daemonsets", "status.updatedNumberScheduled"), 2);
    worked_release(&worked);
}

static void jobs_complete(void **state)
{
    struct worked worked;
    struct cJSON *tree;
    size_t n_most = 0;
    int64_t until_ms;

    (void)state;
    init_with_nodes(&worked);
    worked_create(&worked, "batch", "jobs",
                  "{'metadata':{'name':'once','namespace':'default'},'spec':{'completions':5,"
                  "'parallelism':2,'template':{'spec':{'restartPolicy':'Never','containers':[{"
                  "'name':'main','image':'example/job:1'}]}}}}");
    until_ms = worked.now_ms + WHILE_MS;
    while (worked_step(&worked, until_ms)) {
        size_t n_ready = count_pods(&worked, NULL).n_ready;

        n_most = n_ready > n_most ? n_ready : n_most;
    }
    assert_int_equal(n_most, 2);
    tree = worked_get(&worked, "batch", "jobs", "default/once");
    assert_int_equal(kinf__doc_integer(kinf__doc_get(tree, "status"), "succeeded", 0), 5);
    assert_int_equal(kinf__doc_integer(kinf__doc_get(tree, "status"), "ready", -1), 0);
    assert_string_not_equal(kinf__doc_text(tree, "status", "completionTime", NULL), "");
    cJSON_Delete(tree);
    assert_int_equal(count_pods(&worked, NULL).n, 5);
    assert_int_equal(count_pods(&worked, NULL).n_ready, 0);
    worked_release(&worked);
}

static bool has_event(struct worked *worked, const char *reason)
{
    kinf_auto_object_list struct kinf_object_list list =
        worked_list(worked, "", "events", "default");
    char text[64];

    for (size_t i = 0; i < list.n_items; i++) {
        if (kinf_object_get_string(list.items[i], "reason", text, sizeof text) == 0 &&
            strcmp(text, reason) == 0)
            return true;
    }
    return false;
}

static void copy_first_pod(struct worked *worked, char key[2 * KINF_NAME_MAX])
{
    kinf_auto_object_list struct kinf_object_list list = worked_list(worked, "", "pods", "default");

    snprintf(key, 2 * KINF_NAME_MAX, "%s", kinf_object_key(list.items[0]));
}

/* As the API server wants it: what is complete has no pods that are still ending. */
static void jobs_complete_after_their_pods_have_ended(void **state)
{
    struct worked worked;
    char key[2 * KINF_NAME_MAX];
    int64_t until_ms;

    (void)state;
    init_with_nodes(&worked);
    worked_create(
        &worked, "batch", "jobs",
        "{'metadata':{'name':'once','namespace':'default'},'spec':{'template':{'spec':{"
        "'restartPolicy':'Never','containers':[{'name':'main','image':'example/job:1'}]}}}"
        "}");
    until_ms = worked.now_ms + WHILE_MS;
    while (count_pods(&worked, NULL).n_bound == 0)
        assert_true(worked_step(&worked, until_ms));
    copy_first_pod(&worked, key);
    worked_merge(&worked, "", "pods", key, "{'metadata':{'finalizers':['example.com/x']}}");
    worked_delete(&worked, "", "pods", key);
    worked_run(&worked, WHILE_MS);
    assert_int_equal(worked_number(&worked, "batch", "jobs", "default/once", "status.succeeded"),
                     1);
    assert_false(has_event(&worked, "Completed"));
    worked_merge(&worked, "", "pods", key, "{'metadata':{'finalizers':null}}");
    worked_run(&worked, WHILE_MS);
    assert_true(has_event(&worked, "Completed"));
    assert_string_not_equal(
        worked_text(&worked, "batch", "jobs", "default/once", "status.completionTime"), "");
    worked_release(&worked);
}

static void finalizers_keep_pods_that_have_ended(void **state)
{
    struct worked worked;

    (void)state;
    init_with_nodes(&worked);
    worked_create(&worked, "", "pods",
                  "{'metadata':{'name':'held','namespace':'default','finalizers':['example.com/x']"
                  "},'spec':{'containers':[{'name':'main','image':'example/x:1'}]}}");
    worked_run(&worked, WHILE_MS);
    assert_true(is_running(&worked, "default/held"));
    worked_delete(&worked, "", "pods", "default/held");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n_ending, 1);
    worked_merge(&worked, "", "pods", "default/held", "{'metadata':{'finalizers':null}}");
    worked_run(&worked, WHILE_MS);
    assert_int_equal(count_pods(&worked, NULL).n, 0);
    worked_release(&worked);
}

static void events_are_told_and_do_not_pile_up(void **state)
{
    kinf_auto_object_list struct kinf_object_list events = KINF_OBJECT_LIST_INIT;
    struct worked worked;
    unsigned seen = 0;
    char reason[64];

    (void)state;
    init_with_nodes(&worked);
    add_deployment(&worked, 1, NULL);
    worked_run(&worked, WHILE_MS);
    events = worked_list(&worked, "", "events", "default");
    for (size_t i = 0; i < events.n_items; i++) {
        assert_int_equal(kinf_object_get_string(events.items[i], "reason", reason, sizeof reason),
                         0);
        seen |= (unsigned)(strcmp(reason, "ScalingReplicaSet") == 0);
        seen |= (unsigned)(strcmp(reason, "SuccessfulCreate") == 0) << 1;
        seen |= (unsigned)(strcmp(reason, "Scheduled") == 0) << 2;
        seen |= (unsigned)(strcmp(reason, "Started") == 0) << 3;
    }
    assert_int_equal(seen, 15);
    kinf_object_list_release(&events);
    for (int i = 0; i < 12; i++) {
        worked_merge(&worked, "apps", "deployments", "default/web", "{'spec':{'replicas':40}}");
        worked_run(&worked, WHILE_MS);
        worked_merge(&worked, "apps", "deployments", "default/web", "{'spec':{'replicas':1}}");
        worked_run(&worked, WHILE_MS);
    }
    events = worked_list(&worked, "", "events", "default");
    assert_true(events.n_items > KINF__MAX_EVENTS / 2 && events.n_items <= KINF__MAX_EVENTS);
    kinf_object_list_release(&events);
    worked_release(&worked);
}

static void generated_clusters_leave_nothing_to_do(void **state)
{
    struct worked worked;
    uint64_t version;

    (void)state;
    worked_init_workloads(&worked, 11);
    assert_int_equal(kinf__generate(worked.sim, "pods=203,deployments=20,nodes=4", NULL), 0);
    version = kinf__store_version(kinf__sim_store(worked.sim));
    worked_run(&worked, WHILE_MS);
    assert_int_equal(kinf__store_version(kinf__sim_store(worked.sim)), version);
    worked_release(&worked);
}

/* Whatever fails on the way, in the end everything is there. */
static void want_of_memory_is_survived(void **state)
{
    struct test_random random = test_random_init("workloads without memory");
    struct worked worked;

    (void)state;
    for (size_t round = test_rounds(200); round > 0; round--) {
        int64_t until_ms;

        init_with_nodes(&worked);
        add_deployment(&worked, 3, NULL);
        until_ms = worked.now_ms + WHILE_MS;
        test_fail_allocation(1 + test_random_below(&random, 4000));
        while (worked_step(&worked, until_ms)) {
            if (test_allocation_failed() || test_random_below(&random, 3) == 0)
                test_fail_allocation(1 + test_random_below(&random, 4000));
        }
        test_fail_allocation(0);
        worked_run(&worked, WHILE_MS);
        assert_int_equal(count_pods(&worked, NULL).n_ready, 3);
        assert_int_equal(web(&worked, "deployments", "status.availableReplicas"), 3);
        worked_release(&worked);
    }
}

/* --- what is protected --- */

static void add_pod_with_claim(struct worked *worked, const char *name, const char *scheduler)
{
    char text[512];

    snprintf(text, sizeof text,
             "{'metadata':{'name':'%s','namespace':'default'},'spec':{'schedulerName':'%s',"
             "'containers':[{'name':'c','image':'i'}],'volumes':[{'name':'e','emptyDir':{}},"
             "{'name':'d','persistentVolumeClaim':{'claimName':'data'}}]}}",
             name, scheduler);
    worked_create(worked, "", "pods", text);
}

static bool is_there(struct worked *worked, const char *resource, const char *key)
{
    struct cJSON *tree = worked_get(worked, "", resource, key);

    cJSON_Delete(tree);
    return tree != NULL;
}

static void claims_go_after_the_pods_that_use_them(void **state)
{
    struct worked worked;

    (void)state;
    init_with_nodes(&worked);
    worked_create(&worked, "", "persistentvolumeclaims",
                  "{'metadata':{'name':'data','namespace':'default'},'spec':{'accessModes':["
                  "'ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}");
    add_pod_with_claim(&worked, "a", "default-scheduler");
    add_pod_with_claim(&worked, "b", "default-scheduler");
    add_pod_with_claim(&worked, "waits", "nobody");
    worked_run(&worked, WHILE_MS);
    worked_delete(&worked, "", "persistentvolumeclaims", "default/data");
    worked_run(&worked, WHILE_MS);
    assert_true(is_there(&worked, "persistentvolumeclaims", "default/data"));
    worked_delete(&worked, "", "pods", "default/a");
    worked_run(&worked, WHILE_MS);
    assert_false(is_there(&worked, "pods", "default/a"));
    assert_true(is_there(&worked, "persistentvolumeclaims", "default/data"));
    worked_delete(&worked, "", "pods", "default/b");
    worked_run(&worked, WHILE_MS);
    assert_true(is_there(&worked, "pods", "default/waits"));
    assert_false(is_there(&worked, "persistentvolumeclaims", "default/data"));
    worked_release(&worked);
}

static void volumes_go_unless_they_are_bound(void **state)
{
    static const char volume[] = "{'metadata':{'name':'v'},'spec':{'capacity':{'storage':'1Gi'},"
                                 "'accessModes':['ReadWriteOnce'],'hostPath':{'path':'/x'}}}";
    struct worked worked;

    (void)state;
    init_with_nodes(&worked);
    worked_create(&worked, "", "persistentvolumes", volume);
    worked_delete(&worked, "", "persistentvolumes", "v");
    worked_run(&worked, WHILE_MS);
    assert_false(is_there(&worked, "persistentvolumes", "v"));
    worked_create(&worked, "", "persistentvolumes", volume);
    worked_merge_status(&worked, "", "persistentvolumes", "v", "{'status':{'phase':'Bound'}}");
    worked_delete(&worked, "", "persistentvolumes", "v");
    worked_run(&worked, WHILE_MS);
    assert_true(is_there(&worked, "persistentvolumes", "v"));
    worked_merge_status(&worked, "", "persistentvolumes", "v", "{'status':{'phase':'Released'}}");
    worked_run(&worked, WHILE_MS);
    assert_false(is_there(&worked, "persistentvolumes", "v"));
    worked_release(&worked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deployments_get_pods_that_run),
        cmocka_unit_test(running_pods_are_complete),
        cmocka_unit_test(rollouts_keep_to_their_limits_at_every_moment),
        cmocka_unit_test(templates_that_come_back_get_their_set_again),
        cmocka_unit_test(old_sets_are_kept_up_to_the_limit),
        cmocka_unit_test(recreated_pods_never_meet_the_old_ones),
        cmocka_unit_test(paused_deployments_scale_but_do_not_roll),
        cmocka_unit_test(lost_pods_are_replaced_and_surplus_ones_go),
        cmocka_unit_test(pods_wait_for_a_node_that_fits),
        cmocka_unit_test(pods_get_the_zone_of_the_node_that_they_are_bound_to),
        cmocka_unit_test(pods_are_not_bound_before_their_gates_are_open),
        cmocka_unit_test(cordoned_nodes_get_no_pods_and_lost_ones_lose_theirs),
        cmocka_unit_test(failing_deployments_say_so_after_their_deadline),
        cmocka_unit_test(a_deadline_counts_from_a_time_of_any_zone),
        cmocka_unit_test(sets_without_an_owner_are_taken_over_by_name),
        cmocka_unit_test(statefulsets_go_one_after_the_other),
        cmocka_unit_test(statefulsets_roll_from_the_last_down_to_the_partition),
        cmocka_unit_test(daemonsets_have_a_pod_on_each_node),
        cmocka_unit_test(jobs_complete),
        cmocka_unit_test(jobs_complete_after_their_pods_have_ended),
        cmocka_unit_test(finalizers_keep_pods_that_have_ended),
        cmocka_unit_test(claims_go_after_the_pods_that_use_them),
        cmocka_unit_test(volumes_go_unless_they_are_bound),
        cmocka_unit_test(events_are_told_and_do_not_pile_up),
        cmocka_unit_test(generated_clusters_leave_nothing_to_do),
        cmocka_unit_test(want_of_memory_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
