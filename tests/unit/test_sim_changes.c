/*
 * What of an object may change, and by which of its subresources: claims, volumes.
 */
#include <stdio.h>
#include <string.h>

#include "unit/sim_fixture.h"
#include "unit/test.h"

#define X     "'metadata':{'name':'x','namespace':'default'}"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(claims_change_as_their_phase_allows),
        T(claims_of_other_classes_do_not_grow),
        T(volumes_keep_their_source),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
