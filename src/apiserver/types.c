/*
 * The table of built-in types, in the server's order. scripts/record-schema.py writes its rows.
 */
#include "apiserver/types.h"

#include <string.h>

#include "base/compiler.h"

const struct kinf__builtin kinf__builtins[] = {
    { "", "v1", "bindings", "binding", "Binding", "", "", "create", "", true },
    { "", "v1", "componentstatuses", "componentstatus", "ComponentStatus", "cs", "", "get,list", "",
      false },
    { "", "v1", "configmaps", "configmap", "ConfigMap", "cm", "", "", "", true },
    { "", "v1", "endpoints", "endpoints", "Endpoints", "ep", "", "", "", true },
    { "", "v1", "events", "event", "Event", "ev", "", "", "", true },
    { "", "v1", "limitranges", "limitrange", "LimitRange", "limits", "", "", "", true },
    { "", "v1", "namespaces", "namespace", "Namespace", "ns", "",
      "create,delete,get,list,patch,update,watch", "finalize,status", false },
    { "", "v1", "nodes", "node", "Node", "no", "", "", "proxy,status", false },
    { "", "v1", "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", "pvc",
      "", "", "status", true },
    { "", "v1", "persistentvolumes", "persistentvolume", "PersistentVolume", "pv", "", "", "status",
      false },
    { "", "v1", "pods", "pod", "Pod", "po", "all", "",
      "attach,binding,ephemeralcontainers,eviction,exec,log,portforward,proxy,resize,status",
      true },
    { "", "v1", "podtemplates", "podtemplate", "PodTemplate", "", "", "", "", true },
    { "", "v1", "replicationcontrollers", "replicationcontroller", "ReplicationController", "rc",
      "all", "", "scale,status", true },
    { "", "v1", "resourcequotas", "resourcequota", "ResourceQuota", "quota", "", "", "status",
      true },
    { "", "v1", "secrets", "secret", "Secret", "", "", "", "", true },
    { "", "v1", "serviceaccounts", "serviceaccount", "ServiceAccount", "sa", "", "", "token",
      true },
    { "", "v1", "services", "service", "Service", "svc", "all", "", "proxy,status", true },
    { "apiregistration.k8s.io", "v1", "apiservices", "apiservice", "APIService", "",
      "api-extensions", "", "status", false },
    { "apps", "v1", "controllerrevisions", "controllerrevision", "ControllerRevision", "", "", "",
      "", true },
    { "apps", "v1", "daemonsets", "daemonset", "DaemonSet", "ds", "all", "", "status", true },
    { "apps", "v1", "deployments", "deployment", "Deployment", "deploy", "all", "", "scale,status",
      true },
    { "apps", "v1", "replicasets", "replicaset", "ReplicaSet", "rs", "all", "", "scale,status",
      true },
    { "apps", "v1", "statefulsets", "statefulset", "StatefulSet", "sts", "all", "", "scale,status",
      true },
    { "events.k8s.io", "v1", "events", "event", "Event", "ev", "", "", "", true },
    { "authentication.k8s.io", "v1", "selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview",
      "", "", "create", "", false },
    { "authentication.k8s.io", "v1", "tokenreviews", "tokenreview", "TokenReview", "", "", "create",
      "", false },
    { "authorization.k8s.io", "v1", "localsubjectaccessreviews", "localsubjectaccessreview",
      "LocalSubjectAccessReview", "", "", "create", "", true },
    { "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "selfsubjectaccessreview",
      "SelfSubjectAccessReview", "", "", "create", "", false },
    { "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "selfsubjectrulesreview",
      "SelfSubjectRulesReview", "", "", "create", "", false },
    { "authorization.k8s.io", "v1", "subjectaccessreviews", "subjectaccessreview",
      "SubjectAccessReview", "", "", "create", "", false },
    { "autoscaling", "v2", "horizontalpodautoscalers", "horizontalpodautoscaler",
      "HorizontalPodAutoscaler", "hpa", "all", "", "status", true },
    { "batch", "v1", "cronjobs", "cronjob", "CronJob", "cj", "all", "", "status", true },
    { "batch", "v1", "jobs", "job", "Job", "", "all", "", "status", true },
    { "networking.k8s.io", "v1", "ingressclasses", "ingressclass", "IngressClass", "", "", "", "",
      false },
    { "networking.k8s.io", "v1", "ingresses", "ingress", "Ingress", "ing", "", "", "status", true },
    { "networking.k8s.io", "v1", "ipaddresses", "ipaddress", "IPAddress", "ip", "", "", "", false },
    { "networking.k8s.io", "v1", "networkpolicies", "networkpolicy", "NetworkPolicy", "netpol", "",
      "", "", true },
    { "networking.k8s.io", "v1", "servicecidrs", "servicecidr", "ServiceCIDR", "", "", "", "status",
      false },
    { "policy", "v1", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", "pdb",
      "", "", "status", true },
    { "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "clusterrolebinding",
      "ClusterRoleBinding", "", "", "", "", false },
    { "rbac.authorization.k8s.io", "v1", "clusterroles", "clusterrole", "ClusterRole", "", "", "",
      "", false },
    { "rbac.authorization.k8s.io", "v1", "rolebindings", "rolebinding", "RoleBinding", "", "", "",
      "", true },
    { "rbac.authorization.k8s.io", "v1", "roles", "role", "Role", "", "", "", "", true },
    { "storage.k8s.io", "v1", "csidrivers", "csidriver", "CSIDriver", "", "", "", "", false },
    { "storage.k8s.io", "v1", "csinodes", "csinode", "CSINode", "", "", "", "status", false },
    { "storage.k8s.io", "v1", "csistoragecapacities", "csistoragecapacity", "CSIStorageCapacity",
      "", "", "", "", true },
    { "storage.k8s.io", "v1", "storageclasses", "storageclass", "StorageClass", "sc", "", "", "",
      false },
    { "storage.k8s.io", "v1", "volumeattachments", "volumeattachment", "VolumeAttachment", "", "",
      "", "status", false },
    { "storage.k8s.io", "v1", "volumeattributesclasses", "volumeattributesclass",
      "VolumeAttributesClass", "vac", "", "", "", false },
    { "apiextensions.k8s.io", "v1", "customresourcedefinitions", "customresourcedefinition",
      "CustomResourceDefinition", "crd,crds", "api-extensions", "", "status", false },
    { "scheduling.k8s.io", "v1", "priorityclasses", "priorityclass", "PriorityClass", "pc", "", "",
      "", false },
    { "coordination.k8s.io", "v1", "leases", "lease", "Lease", "", "", "", "", true },
    { "discovery.k8s.io", "v1", "endpointslices", "endpointslice", "EndpointSlice", "", "", "", "",
      true },
};

const size_t kinf__n_builtins = KINF__ARRAY_LEN(kinf__builtins);

bool kinf__has_word(const char *words, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = words; *at != '\0'; at += strcspn(at, ",")) {
        at += *at == ',';
        if (strcspn(at, ",") == len && memcmp(at, word, len) == 0)
            return len != 0;
    }
    return false;
}

bool kinf__has_verb(const char *verbs, const char *verb)
{
    return *verbs == '\0' || kinf__has_word(verbs, verb);
}
