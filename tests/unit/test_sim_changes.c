/*
 * What of an object may change, and by which of its subresources: claims, volumes, jobs, pods.
 */
#include "apiserver/subresources.h"

#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/patch_fixture.h"
#include "unit/sim_fixture.h"
#include "unit/test.h"

#define X     "'metadata':{'name':'x','namespace':'default'}"
#define C     "'containers':[{'name':'c','image':'x:1'}]"
#define NEVER "'template':{'spec':{" C ",'restartPolicy':'Never'}}"
#define CLAIM                                                                                      \
    "{" X ",'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}"
#define KEPT                                                                                       \
    "spec: Forbidden: spec is immutable after creation except resources.requests and "             \
    "volumeAttributesClassName for bound claims"
#define SIZE(size) "{'spec':{'resources':{'requests':{'storage':'" size "'}}}}"

static int set_up(void **state)
{
    *state = test_sim_new();
    return 0;
}

static int tear_down(void **state)
{
    test_sim_free(*state);
    return 0;
}

/* One after the other, of one object. */
struct change {
    const char *subresource, *patch;
    const char *refusal; /* a part of its message; NULL: it is done */
};

static void change_all(struct kinf__sim *sim, const char *resource, const char *key,
                       const struct change *changes, size_t n_changes)
{
    for (size_t i = 0; i < n_changes; i++) {
        struct test_outcome outcome =
            test_merge(sim, resource, key, changes[i].subresource, changes[i].patch);

        if (changes[i].refusal == NULL ? outcome.code != 0
                                       : strstr(outcome.message, changes[i].refusal) == NULL)
            fail_msg("%s: %d %s", changes[i].patch, outcome.code, outcome.message);
    }
}

/* --- storage --- */

static void claims_change_as_their_phase_allows(void **state)
{
    static const struct change changes[] = {
        { "", SIZE("2Gi"), KEPT },
        { "", "{'spec':{'accessModes':['ReadWriteMany']}}", KEPT },
        { "", "{'spec':{'volumeAttributesClassName':'gold'}}", KEPT },
        { "", "{'spec':{'storageClassName':'grows'}}", NULL },
        { "", "{'spec':{'storageClassName':'fixed'}}", KEPT },
        { "", "{'spec':{'volumeName':'v'}}", NULL },
        { "", "{'spec':{'volumeName':'w'}}", KEPT },
        { "status", "{'status':{'phase':'Bound','capacity':{'storage':'1Gi'}}}", NULL },
        { "status", "{'status':{'capacity':{'storage':'-1Gi'}}}",
          "status.capacity[storage]: Invalid value: \"-1Gi\": must be a valid resource quantity" },
        { "", SIZE("2Gi"), NULL },
        { "", SIZE("1500Mi"), NULL },
        { "", SIZE("1Gi"),
          "spec.resources.requests.storage: Forbidden: field can not be less than "
          "status.capacity" },
        { "", "{'spec':{'volumeMode':'Block'}}",
          "volumeMode: Invalid value: \"Block\": field is immutable" },
        { "", "{'spec':{'volumeAttributesClassName':'gold'}}", NULL },
        { "status", "{'status':{'currentVolumeAttributesClassName':'gold'}}", NULL },
        { "", "{'spec':{'volumeAttributesClassName':null}}",
          "spec.volumeAttributesClassName: Forbidden: update to nil is forbidden when "
          "status.currentVolumeAttributesClassName is not nil" },
        { "", "{'spec':{'volumeAttributesClassName':''}}",
          "spec.volumeAttributesClassName: Forbidden: update to empty string is forbidden when "
          "status.currentVolumeAttributesClassName is not nil" },
    };

    test_must_create(*state, "storageclasses.storage.k8s.io",
                     "{'metadata':{'name':'grows'},'provisioner':'a.b/c',"
                     "'allowVolumeExpansion':true}");
    test_must_create(*state, "persistentvolumeclaims", CLAIM);
    change_all(*state, "persistentvolumeclaims", "default/x", changes, KINF__ARRAY_LEN(changes));
}

/* Of a class that allows it, which is there. */
static void claims_of_other_classes_do_not_grow(void **state)
{
    struct test_outcome outcome;

    test_must_create(*state, "persistentvolumeclaims", CLAIM);
    test_must_merge(*state, "persistentvolumeclaims", "default/x", "status",
                    "{'status':{'phase':'Bound'}}");
    outcome = test_merge(*state, "persistentvolumeclaims", "default/x", "", SIZE("2Gi"));
    assert_int_equal(outcome.code, 403);
    assert_string_equal(outcome.message,
                        "persistentvolumeclaims \"x\" is forbidden: only dynamically provisioned "
                        "pvc can be resized and the storageclass that provisions the pvc must "
                        "support resize");
}

static void volumes_keep_their_source(void **state)
{
#define KEPT_SOURCE                                                                                \
    "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after "      \
    "creation"
    static const struct change changes[] = {
        { "", "{'spec':{'csi':{'volumeHandle':'i'}}}", KEPT_SOURCE },
        { "", "{'spec':{'csi':null,'nfs':{'server':'s','path':'/p'}}}", KEPT_SOURCE },
        { "", "{'spec':{'nfs':{'server':'s','path':'/p'}}}",
          "[spec.nfs: Forbidden: may not specify more than 1 volume type, " KEPT_SOURCE "]" },
        { "", "{'spec':{'csi':null}}",
          "[spec: Required value: must specify a volume type, " KEPT_SOURCE "]" },
        { "", "{'spec':{'csi':{'controllerExpandSecretRef':{'name':'s'}}}}", NULL },
        { "", "{'spec':{'csi':{'controllerExpandSecretRef':{'name':'t'}}}}", KEPT_SOURCE },
        { "", "{'spec':{'volumeMode':'Block'}}",
          "volumeMode: Invalid value: \"Block\": field is immutable" },
        { "", "{'spec':{'capacity':{'storage':'2Gi'}}}", NULL },
        { "", "{'spec':{'nodeAffinity':{'required':{'nodeSelectorTerms':[{}]}}}}", NULL },
        { "", "{'spec':{'nodeAffinity':null}}",
          "nodeAffinity: Invalid value: null: field is immutable, except for updating from beta "
          "label to GA" },
        { "", "{'spec':{'volumeAttributesClassName':'gold'}}", NULL },
        { "", "{'spec':{'volumeAttributesClassName':null}}",
          "spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is "
          "forbidden" },
    };

    test_must_create(*state, "persistentvolumes",
                     "{'metadata':{'name':'x'},'spec':{'capacity':{'storage':'1Gi'},'accessModes':["
                     "'ReadWriteOnce'],'csi':{'driver':'d','volumeHandle':'h'}}}");
    change_all(*state, "persistentvolumes", "x", changes, KINF__ARRAY_LEN(changes));
#undef KEPT_SOURCE
}

/* --- jobs --- */

#define IS(type)             "{'type':'" type "','status':'True'}"
#define CONDITIONS(list)     "{'status':{'conditions':[" list "]}}"
#define WITH(list, more)     "{'status':{'conditions':[" list "]," more "}}"
#define START                "'startTime':'2020-01-01T00:00:00Z'"
#define END                  "'completionTime':'2020-01-01T00:01:00Z'"
#define CONDITION_WORDS(why) "status.conditions: Invalid value: " why

static void jobs_end_once_and_for_all(void **state)
{
    static const struct change changes[] = {
        { "status", "{'status':{'active':-1}}",
          "x\" is invalid: status.active: Invalid value: -1: must be greater than or equal to 0" },
        { "status", "{'status':{'ready':1}}", "cannot set more ready pods than active" },
        { "status", CONDITIONS(IS("Complete")),
          "[status.completionTime: Required value: completionTime is required for Complete jobs, "
          "status.conditions: Invalid value: cannot set Complete=True condition without the "
          "SuccessCriteriaMet=true condition, status.startTime: Required value: startTime is "
          "required for finished job]" },
        { "status", "{'status':{" END "}}",
          "status.completionTime: Invalid value: \"2020-01-01T00:01:00Z\": cannot set "
          "completionTime when there is no Complete=True condition" },
        { "status", WITH(IS("Failed"), START),
          CONDITION_WORDS("cannot set Failed=True condition without the FailureTarget=true "
                          "condition") },
        { "status", "{'status':{'uncountedTerminatedPods':{'succeeded':['u',''],'failed':['u']}}}",
          "[status.uncountedTerminatedPods.succeeded[1]: Invalid value: \"\": must not be empty, "
          "status.uncountedTerminatedPods.failed[0]: Duplicate value: \"u\"]" },
        { "status", "{'status':{'completedIndexes':'1'}}",
          "cannot set non-empty completedIndexes when non-indexed completion mode" },
        { "status", "{'status':{'failedIndexes':'1'}}",
          "cannot set non-null failedIndexes when backoffLimitPerIndex is null" },
        { "status",
          "{'status':{" START ",'active':2,'ready':1,'failed':2,'uncountedTerminatedPods':{"
          "'succeeded':['u']}}}",
          NULL },
        { "status", "{'status':{'startTime':null}}",
          "status.startTime: Invalid value: null: field is immutable for unsuspended job once "
          "set" },
        { "status", "{'status':{'failed':1}}", "cannot decrease the failed counter" },
        { "status", CONDITIONS(IS("SuccessCriteriaMet")), NULL },
        { "status", CONDITIONS(IS("SuccessCriteriaMet") "," IS("FailureTarget")),
          CONDITION_WORDS("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions") },
        { "status", CONDITIONS(""),
          CONDITION_WORDS("cannot disable the SuccessCriteriaMet=True condition") },
        { "status", WITH(IS("SuccessCriteriaMet") "," IS("Complete"), END ",'terminating':1"),
          "[status.active: Invalid value: 2: active>0 is invalid for finished job, "
          "status.uncountedTerminatedPods: Invalid value: {\"Succeeded\":[\"u\"],\"Failed\":null}: "
          "must be empty for finished job, status.terminating: Invalid value: 1: terminating>0 is "
          "invalid for finished job]" },
        { "status",
          WITH(IS("SuccessCriteriaMet") "," IS("Complete"),
               "'completionTime':'2019-01-01T00:00:00Z','active':null,'ready':0,"
               "'uncountedTerminatedPods':null"),
          "must be equal to or after `startTime`" },
        { "status",
          WITH(IS("SuccessCriteriaMet") "," IS("Complete"),
               END ",'active':null,'ready':0,'succeeded':1,'uncountedTerminatedPods':null"),
          NULL },
        { "status", CONDITIONS(IS("SuccessCriteriaMet")),
          CONDITION_WORDS("cannot disable the terminal Complete=True condition") },
        { "status", CONDITIONS(IS("SuccessCriteriaMet") "," IS("Complete") "," IS("Failed")),
          CONDITION_WORDS("cannot set Complete=True and Failed=true conditions") },
        { "status", "{'status':{'completionTime':'2020-01-01T00:02:00Z'}}",
          "status.completionTime: Invalid value: \"2020-01-01T00:02:00Z\": field is immutable" },
        { "status", "{'status':{'succeeded':0}}", "cannot decrease the succeeded counter" },
        { "", "{'metadata':{'labels':{'a':'b'}}}", NULL },
    };

    test_must_create(*state, "jobs.batch", "{" X ",'spec':{" NEVER "}}");
    change_all(*state, "jobs.batch", "default/x", changes, KINF__ARRAY_LEN(changes));
}

static void indexes_rise_below_the_completions(void **state)
{
#define INDEXES(indexes) "{'status':{'completedIndexes':'" indexes "'}}"
    static const struct change changes[] = {
        { "status", INDEXES("0,2-3"), NULL },
        { "status", INDEXES("0-4"), "error parsing completedIndexes: too large index: \"4\"" },
        { "status", INDEXES("4294967296"), "too large index: \"4294967296\"" },
        { "status", INDEXES("2,1"), "non-increasing order, previous: 2, current: 1" },
        { "status", INDEXES("2-2"), "non-increasing order, previous: 2, current: 2" },
        { "status", INDEXES("a"), "cannot convert string to integer for index: \"a\"" },
        { "status", INDEXES("1,"), "cannot convert string to integer for index: \"\"" },
        { "status", INDEXES("1-2-3"),
          "the fragment \"1-2-3\" violates the requirement that an index interval can have at most "
          "two parts separated by '-'" },
        { "status", "{'status':{'failedIndexes':'1'}}", NULL },
        { "status", "{'status':{'failedIndexes':'9'}}",
          "error parsing failedIndexes: too large index: \"9\"" },
        { "", "{'spec':{'completions':3}}",
          "spec.completions: Invalid value: 3: can only be modified in tandem with "
          "spec.parallelism" },
        { "", "{'spec':{'completions':3,'parallelism':3}}", NULL },
        { "", "{'spec':{'backoffLimitPerIndex':2}}",
          "spec.backoffLimitPerIndex: Invalid value: 2: field is immutable" },
    };

    test_must_create(*state, "jobs.batch",
                     "{" X ",'spec':{'completionMode':'Indexed','completions':4,'parallelism':2,"
                     "'backoffLimitPerIndex':1," NEVER "}}");
    change_all(*state, "jobs.batch", "default/x", changes, KINF__ARRAY_LEN(changes));
#undef INDEXES
}

static void templates_are_open_while_a_job_is_suspended(void **state)
{
#define POD(spec) "{'spec':{'template':{'spec':{" spec "}}}}"
    static const struct change changes[] = {
        { "", POD("'nodeSelector':{'a':'b'}"), NULL },
        { "", POD("'affinity':{'nodeAffinity':{}}"), NULL },
        { "", POD("'affinity':{'podAffinity':{}}"), "spec.template.spec: Invalid value: " },
        { "", POD("'containers':[{'name':'c','image':'x:1','resources':{'limits':{'cpu':'1'}}}]"),
          NULL },
        { "", POD("'containers':[{'name':'c','image':'x:2'}]"),
          "spec.template.spec: Invalid value: " },
        { "status", "{'status':{'active':1}}", NULL },
        { "", POD("'nodeSelector':{'a':'c'}"), "spec.template: Invalid value: " },
        { "status", "{'status':{'active':null," START "}}", NULL },
        { "", POD("'nodeSelector':{'a':'c'}"), "spec.template: Invalid value: " },
        { "status", CONDITIONS(IS("Suspended")), NULL },
        { "", POD("'nodeSelector':{'a':'c'}"), NULL },
        { "", "{'spec':{'suspend':false}}", NULL },
        { "", POD("'nodeSelector':{'a':'d'}"), "spec.template: Invalid value: " },
    };

    test_must_create(*state, "jobs.batch", "{" X ",'spec':{'suspend':true," NEVER "}}");
    change_all(*state, "jobs.batch", "default/x", changes, KINF__ARRAY_LEN(changes));
#undef POD
}

/* --- parts of pods --- */

#define SIZED(image, cpu)                                                                          \
    "'containers':[{'name':'c','image':'" image "','resources':{'requests':{'cpu':'" cpu           \
    "','memory':'1Gi'},'limits':{'cpu':'" cpu "','memory':'1Gi'}}}]"

static void resize_changes_sizes_alone(void **state)
{
    static const struct change changes[] = {
        { "resize",
          "{'metadata':{'labels':{'a':'b'}},'spec':{'nodeName':'n'," SIZED(
              "x:2", "2") "},"
                          "'status':{'phase':'Running'}}",
          NULL },
        { "resize", "{'spec':{'containers':[{'name':'c','image':'x:1'}]}}",
          "[spec: Invalid value: \"Guaranteed\": Pod QOS Class may not change as a result of "
          "resizing, spec.containers[0].resources.requests: Forbidden: resource requests cannot "
          "be removed, spec.containers[0].resources.limits: Forbidden: resource limits cannot be "
          "removed]" },
        { "resize",
          "{'spec':{'containers':[{'name':'c','image':'x:1','resources':{'limits':{'cpu':'2',"
          "'memory':'1Gi','example.com/a':'1'},'requests':{'cpu':'2','memory':'1Gi',"
          "'example.com/a':'1'}}}]}}",
          "spec: Forbidden: only cpu and memory resources are mutable" },
        { "resize", "{'spec':{'containers':[{'name':'d','image':'x:1'}]}}",
          "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on "
          "resize" },
        { "resize", "{'spec':{'initContainers':[{'name':'d','image':'x:1'}]}}",
          "spec.initContainers: Forbidden: initContainers may not be added or removed on resize" },
        { "", "{'spec':{" SIZED("x:1", "3") "}}", "pod updates may not change fields" },
    };

    test_must_create(*state, "pods", "{" X ",'spec':{" SIZED("x:1", "1") "}}");
    change_all(*state, "pods", "default/x", changes, KINF__ARRAY_LEN(changes));
    test_expect(*state, "pods", "default/x", "spec.containers.0.resources.limits.cpu", "'2'");
    test_expect(*state, "pods", "default/x", "spec.containers.0.image", "'x:1'");
    test_expect(*state, "pods", "default/x", "spec.nodeName", "null");
    test_expect(*state, "pods", "default/x", "metadata.labels", "null");
    test_expect(*state, "pods", "default/x", "metadata.generation", "2");
    test_expect(*state, "pods", "default/x", "status.phase", "'Pending'");
}

/* What this subresource does not write is the writer's all the same, from the first time on. */
static void resize_of_nothing_is_no_write(void **state)
{
#define WRITTEN                                                                                    \
    "'metadata':{'managedFields':[{'manager':'kinformer-sim','operation':'Update','apiVersion':"   \
    "'v1','time':'2020-01-01T00:00:00Z','subresource':'resize','fieldsType':'FieldsV1',"           \
    "'fieldsV1':{'f:spec':{'f:activeDeadlineSeconds':{}}}}]}"
    KINF__AUTO_DOC *before = NULL;
    KINF__AUTO_DOC *same = NULL;
    KINF__AUTO_DOC *longer = NULL;

    test_must_create(*state, "pods", "{" X ",'spec':{" SIZED("x:1", "1") "}}");
    test_must_merge(*state, "pods", "default/x", "", "{" WRITTEN "}");
    before = test_get(*state, "pods", "default/x");
    test_must_merge(*state, "pods", "default/x", "resize", "{'spec':{'activeDeadlineSeconds':7}}");
    same = test_get(*state, "pods", "default/x");
    assert_true(kinf__doc_equal(before, same));
    test_must_merge(*state, "pods", "default/x", "resize", "{'spec':{'nodeName':'n'}}");
    longer = test_get(*state, "pods", "default/x");
    assert_false(kinf__doc_equal(before, longer));
#undef WRITTEN
}

static void ephemeral_containers_are_only_added(void **state)
{
#define EPHEMERAL(list) "{'spec':{'ephemeralContainers':[" list "]}}"
#define ONE             "{'name':'e','image':'i'}"
#define PATH            "spec.ephemeralContainers"
#define NOT_HERE        "Forbidden: cannot be set for an Ephemeral Container"
    static const char part[] = "ephemeralcontainers";
    static const struct change changes[] = {
        { part,
          "{'metadata':{'labels':{'a':'b'}},'spec':{'nodeName':'n','containers':[{'name':'c',"
          "'image':'x:2'}],'ephemeralContainers':[" ONE "]},'status':{'phase':'Running'}}",
          NULL },
        { part, EPHEMERAL(""),
          PATH ": Forbidden: existing ephemeral containers \"e\" may not be removed\n" },
        { part, EPHEMERAL("{'name':'e','image':'j'}"),
          PATH ": Forbidden: existing ephemeral containers \"e\" may not be changed\n" },
        { part, EPHEMERAL(ONE ",{'name':'c','image':'i'}"),
          PATH "[1].name: Duplicate value: \"c\"" },
        { part, EPHEMERAL(ONE ",{'name':'f','image':'i','targetContainerName':'e'}"),
          PATH "[1].targetContainerName: Not found: \"e\"" },
        { part,
          EPHEMERAL(ONE ",{'name':'f','image':'i','ports':[{'containerPort':80}],"
                        "'volumeMounts':[{'name':'v','mountPath':'/v','subPath':'s'}]}"),
          PATH "[1].ports: " NOT_HERE ", " PATH "[1].volumeMounts[0].subPath: " NOT_HERE "]" },
        { part, EPHEMERAL(ONE ",{'name':'f','image':'i','targetContainerName':'c'}"), NULL },
        { "", EPHEMERAL(ONE), "pod updates may not change fields" },
    };
    struct test_outcome outcome =
        test_create(*state, "pods", "{" X ",'spec':{'ephemeralContainers':[" ONE "]," C "}}");

    assert_non_null(strstr(outcome.message, PATH ": Forbidden: cannot be set on create"));
    test_must_create(*state, "pods",
                     "{" X ",'spec':{'volumes':[{'name':'v','emptyDir':{}}]," C "}}");
    change_all(*state, "pods", "default/x", changes, KINF__ARRAY_LEN(changes));
    test_expect(*state, "pods", "default/x", PATH ".1.name", "'f'");
    test_expect(*state, "pods", "default/x", "spec.containers.0.image", "'x:1'");
    test_expect(*state, "pods", "default/x", "spec.nodeName", "null");
    test_expect(*state, "pods", "default/x", "metadata.labels", "null");
    test_expect(*state, "pods", "default/x", "status.phase", "'Pending'");
#undef EPHEMERAL
#undef ONE
#undef PATH
#undef NOT_HERE
}

static void pods_that_are_made_on_a_node_get_its_zone(void **state)
{
    test_must_create(*state, "nodes",
                     "{'metadata':{'name':'n','labels':{'topology.kubernetes.io/zone':'z'}}}");
    test_must_create(*state, "pods",
                     "{'metadata':{'name':'x','namespace':'default','labels':{'a':'b',"
                     "'topology.kubernetes.io/zone':'y'}},'spec':{'nodeName':'n'," C "}}");
    test_expect(*state, "pods", "default/x", "metadata.labels",
                "{'a':'b','topology.kubernetes.io/zone':'z'}");
    test_must_merge(*state, "pods", "default/x", "",
                    "{'metadata':{'labels':{'topology.kubernetes.io/zone':null}}}");
    test_expect(*state, "pods", "default/x", "metadata.labels", "{'a':'b'}");
}

/* `n_failing`: of the allocations that fails; 0: none. Returns the code of a refusal, or 0. */
static int bind(struct kinf__sim *sim, const char *json, size_t n_failing)
{
    struct kinf__store *store = kinf__sim_store(sim);
    struct cJSON *body = test_json(json);
    struct kinf__verb verb = {
        .sim = sim, .name_space = "default", .name = "x", .subresource = "binding"
    };
    int failed, code;

    kinf__store_lock(store);
    verb.resource = kinf__store_find(store, "", "pods");
    if (n_failing != 0)
        test_fail_allocation(n_failing);
    failed = kinf__subresource_post(&verb, &body);
    code = failed < 0 ? verb.refusal.code : 0;
    kinf__verb_release(&verb);
    kinf__store_unlock(store);
    cJSON_Delete(body);
    return code;
}

#define TARGET "'target':{'kind':'Node','name':'n'}"

static void bindings_tell_the_pod(void **state)
{
    test_must_create(*state, "nodes",
                     "{'metadata':{'name':'n','labels':{'topology.kubernetes.io/zone':'z','o':'p'}}"
                     "}");
    test_must_create(*state, "pods",
                     "{'metadata':{'name':'x','namespace':'default','labels':{'a':'b'},"
                     "'annotations':{'c':'d'}},'spec':{" C "}}");
    assert_int_equal(bind(*state,
                          "{'metadata':{'name':'x','labels':{'a':'e','f':'g'},"
                          "'annotations':{'c':'h','i':'j'}}," TARGET "}",
                          0),
                     0);
    test_expect(*state, "pods", "default/x", "metadata.labels",
                "{'a':'e','f':'g','topology.kubernetes.io/zone':'z'}");
    test_expect(*state, "pods", "default/x", "metadata.annotations", "{'c':'h','i':'j'}");
    test_expect(*state, "pods", "default/x", "spec.nodeName", "'n'");
}

static int update(struct kinf__sim *sim, const char *subresource, const char *json,
                  size_t n_failing)
{
    test_fail_allocation(n_failing);
    return test_update(sim, "pods", subresource, json).code;
}

/* What is refused for want of memory is not done by half: it can be done again. */
static void pods_are_changed_whole_without_memory(void **state)
{
    static const char *const updates[][2] = {
        { "resize", "{" X ",'spec':{" SIZED("x:1", "2") "}}" },
        { "ephemeralcontainers",
          "{" X ",'spec':{'ephemeralContainers':[{'name':'e','image':'i'}]," C "}}" },
    };

    test_must_create(*state, "nodes", "{'metadata':{'name':'n'}}");
    for (size_t i = 0; i <= KINF__ARRAY_LEN(updates); i++) {
        int code = 500;

        test_must_create(*state, "pods", "{" X ",'spec':{" SIZED("x:1", "1") "}}");
        for (size_t n = 1; code != 0; n++) {
            code = i < KINF__ARRAY_LEN(updates)
                       ? update(*state, updates[i][0], updates[i][1], n)
                       : bind(*state, "{'metadata':{'annotations':{'a':'b'}}," TARGET "}", n);
            assert_int_equal(code, test_allocation_failed() && code != 0 ? 500 : 0);
        }
        test_must_delete_within(*state, "pods", "default/x", 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(claims_change_as_their_phase_allows),
        T(claims_of_other_classes_do_not_grow),
        T(volumes_keep_their_source),
        T(jobs_end_once_and_for_all),
        T(indexes_rise_below_the_completions),
        T(templates_are_open_while_a_job_is_suspended),
        T(resize_changes_sizes_alone),
        T(resize_of_nothing_is_no_write),
        T(ephemeral_containers_are_only_added),
        T(pods_that_are_made_on_a_node_get_its_zone),
        T(bindings_tell_the_pod),
        T(pods_are_changed_whole_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
