/*
 * Defaults: what kube-apiserver 1.37.1 made of minimal objects, and what comes of them here. The
 * expectations are its answers to dry runs, without what admission and other strategies add: uids,
 * times, addresses, phases, finalizers, tolerations, taints, priority; without members that are null
 * or "".
 */

#include <stdio.h>
#include <string.h>

#include "document/schema.h"
#include "unit/allocation.h"
#include "unit/test.h"

struct row {
    const char *sent;
    const char *stored;
};

static const struct row rows[] = {
    { "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"containers\":[{\"name\":\"c\",\"image\":\"nginx\"}]}}",
      "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"containers\":[{\"name\":\"c\",\"image\":\"nginx\",\"resources\":{},"
      "\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],"
      "\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
      "\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\","
      "\"enableServiceLinks\":true},\"status\":{}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"containers\":[{\"name\":\"c\",\"image\":\"nginx:1.25\",\"ports\":[{\"containerPort\":80}],"
      "\"env\":[{\"name\":\"A\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.name\"}}}],"
      "\"resources\":{\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"500m\"}"
      "},\"livenessProbe\":{\"httpGet\":{\"port\":80}},\"lifecycle\":{\"preStop\":{\"httpGet\":{"
      "\"port\":80}}}},{\"name\":\"d\",\"image\":\"reg:5000/x/"
      "y@sha256:0000000000000000000000000000000000000000000000000000000000000000\","
      "\"readinessProbe\":{\"exec\":{\"command\":[\"a\"]}}},{\"name\":\"e\",\"image\":\"reg:5000/x/"
      "y\",\"startupProbe\":{\"tcpSocket\":{\"port\":\"x\"},\"periodSeconds\":5}}],"
      "\"initContainers\":[{\"name\":\"i\",\"image\":\"a:latest\"}],\"hostNetwork\":true,"
      "\"volumes\":[{\"name\":\"a\"},{\"name\":\"s\",\"secret\":{\"secretName\":\"x\"}},{\"name\":"
      "\"c\",\"configMap\":{\"name\":\"x\"}},{\"name\":\"h\",\"hostPath\":{\"path\":\"/"
      "x\"}},{\"name\":\"d\",\"downwardAPI\":{\"items\":[{\"path\":\"x\",\"fieldRef\":{"
      "\"fieldPath\":\"metadata.name\"}}]}},{\"name\":\"p\",\"projected\":{\"sources\":[{"
      "\"serviceAccountToken\":{\"path\":\"t\"}}]}},{\"name\":\"e\",\"emptyDir\":{}}],"
      "\"serviceAccount\":\"default\"}}",
      "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"volumes\":"
      "[{\"name\":\"a\",\"emptyDir\":{}},{\"name\":\"s\",\"secret\":{\"secretName\":\"x\","
      "\"defaultMode\":420}},{\"name\":\"c\",\"configMap\":{\"name\":\"x\",\"defaultMode\":420}},{"
      "\"name\":\"h\",\"hostPath\":{\"path\":\"/"
      "x\",\"type\":\"\"}},{\"name\":\"d\",\"downwardAPI\":{\"items\":[{\"path\":\"x\","
      "\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"metadata.name\"}}],\"defaultMode\":420}}"
      ",{\"name\":\"p\",\"projected\":{\"sources\":[{\"serviceAccountToken\":{"
      "\"expirationSeconds\":3600,\"path\":\"t\"}}],\"defaultMode\":420}},{\"name\":\"e\","
      "\"emptyDir\":{}}],\"initContainers\":[{\"name\":\"i\",\"image\":\"a:latest\",\"resources\":{"
      "},\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],"
      "\"containers\":[{\"name\":\"c\",\"image\":\"nginx:1.25\",\"ports\":[{\"hostPort\":80,"
      "\"containerPort\":80,\"protocol\":\"TCP\"}],\"env\":[{\"name\":\"A\",\"valueFrom\":{"
      "\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"metadata.name\"}}}],\"resources\":{"
      "\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"500m\",\"memory\":"
      "\"1Gi\"}},\"livenessProbe\":{\"httpGet\":{\"path\":\"/"
      "\",\"port\":80,\"scheme\":\"HTTP\"},\"timeoutSeconds\":1,\"periodSeconds\":10,"
      "\"successThreshold\":1,\"failureThreshold\":3},\"lifecycle\":{\"preStop\":{\"httpGet\":{"
      "\"path\":\"/\",\"port\":80,\"scheme\":\"HTTP\"}}},\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":"
      "\"IfNotPresent\"},{\"name\":\"d\",\"image\":\"reg:5000/x/"
      "y@sha256:0000000000000000000000000000000000000000000000000000000000000000\",\"resources\":{}"
      ",\"readinessProbe\":{\"exec\":{\"command\":[\"a\"]},\"timeoutSeconds\":1,\"periodSeconds\":"
      "10,\"successThreshold\":1,\"failureThreshold\":3},\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":"
      "\"IfNotPresent\"},{\"name\":\"e\",\"image\":\"reg:5000/x/"
      "y\",\"resources\":{},\"startupProbe\":{\"tcpSocket\":{\"port\":\"x\"},\"timeoutSeconds\":1,"
      "\"periodSeconds\":5,\"successThreshold\":1,\"failureThreshold\":3},"
      "\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],"
      "\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
      "\"ClusterFirst\",\"serviceAccountName\":\"default\",\"serviceAccount\":\"default\","
      "\"hostNetwork\":true,\"securityContext\":{},\"schedulerName\":\"default-scheduler\","
      "\"enableServiceLinks\":true},\"status\":{}}" },
    { "{\"apiVersion\":\"apps/"
      "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"selector\":{"
      "\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},"
      "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"nginx\"}]}}}}",
      "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":{"
      "\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{"
      "\"containers\":[{\"name\":\"c\",\"image\":\"nginx\",\"resources\":{},"
      "\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],"
      "\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
      "\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\"}},"
      "\"strategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":\"25%\","
      "\"maxSurge\":\"25%\"}},\"revisionHistoryLimit\":10,\"progressDeadlineSeconds\":600},"
      "\"status\":{}}" },
    { "{\"apiVersion\":\"apps/"
      "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"selector\":{"
      "\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},"
      "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"nginx\"}]}},\"strategy\":{\"type\":"
      "\"Recreate\"}}}",
      "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":{"
      "\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{"
      "\"containers\":[{\"name\":\"c\",\"image\":\"nginx\",\"resources\":{},"
      "\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],"
      "\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
      "\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\"}},"
      "\"strategy\":{\"type\":\"Recreate\"},\"revisionHistoryLimit\":10,"
      "\"progressDeadlineSeconds\":600},\"status\":{}}" },
    { "{\"apiVersion\":\"apps/"
      "v1\",\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"selector\":{"
      "\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},"
      "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"nginx\"}]}},\"serviceName\":\"x\","
      "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"d\"},\"spec\":{\"accessModes\":["
      "\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}]}}",
      "{\"kind\":\"StatefulSet\",\"apiVersion\":\"apps/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":{"
      "\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{"
      "\"containers\":[{\"name\":\"c\",\"image\":\"nginx\",\"resources\":{},"
      "\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],"
      "\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
      "\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\"}},"
      "\"volumeClaimTemplates\":[{\"kind\":\"PersistentVolumeClaim\",\"apiVersion\":\"v1\","
      "\"metadata\":{\"name\":\"d\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{"
      "\"requests\":{\"storage\":\"1Gi\"}},\"volumeMode\":\"Filesystem\"},\"status\":{\"phase\":"
      "\"Pending\"}}],\"serviceName\":\"x\",\"podManagementPolicy\":\"OrderedReady\","
      "\"updateStrategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"partition\":0,"
      "\"maxUnavailable\":1}},\"revisionHistoryLimit\":10,\"persistentVolumeClaimRetentionPolicy\":"
      "{\"whenDeleted\":\"Retain\",\"whenScaled\":\"Retain\"}},\"status\":{\"replicas\":0,"
      "\"availableReplicas\":0}}" },
    { "{\"apiVersion\":\"apps/"
      "v1\",\"kind\":\"DaemonSet\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"selector\":{"
      "\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},"
      "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"nginx\"}]}}}}",
      "{\"kind\":\"DaemonSet\",\"apiVersion\":\"apps/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},"
      "\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":"
      "\"c\",\"image\":\"nginx\",\"resources\":{},\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],"
      "\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
      "\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\"}},"
      "\"updateStrategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":1,"
      "\"maxSurge\":0}},\"revisionHistoryLimit\":10},\"status\":{\"currentNumberScheduled\":0,"
      "\"numberMisscheduled\":0,\"desiredNumberScheduled\":0,\"numberReady\":0}}" },
    { "{\"apiVersion\":\"apps/"
      "v1\",\"kind\":\"ReplicaSet\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"selector\":{"
      "\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},"
      "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"nginx\"}]}}}}",
      "{\"kind\":\"ReplicaSet\",\"apiVersion\":\"apps/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":{"
      "\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{"
      "\"containers\":[{\"name\":\"c\",\"image\":\"nginx\",\"resources\":{},"
      "\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],"
      "\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
      "\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\"}}},"
      "\"status\":{\"replicas\":0}}" },
    { "{\"apiVersion\":\"batch/"
      "v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"x\",\"uid\":\"1-2\"},\"spec\":{\"template\":{"
      "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"nginx\"}],\"restartPolicy\":\"Never\"}"
      "}}}",
      "{\"kind\":\"Job\",\"apiVersion\":\"batch/"
      "v1\",\"metadata\":{\"name\":\"x\",\"labels\":{\"batch.kubernetes.io/"
      "controller-uid\":\"1-2\",\"batch.kubernetes.io/"
      "job-name\":\"x\",\"controller-uid\":\"1-2\",\"job-name\":\"x\"},\"uid\":\"1-2\"},\"spec\":{"
      "\"parallelism\":1,\"completions\":1,\"backoffLimit\":6,\"selector\":{\"matchLabels\":{"
      "\"batch.kubernetes.io/"
      "controller-uid\":\"1-2\"}},\"manualSelector\":false,\"template\":{\"metadata\":{\"labels\":{"
      "\"batch.kubernetes.io/controller-uid\":\"1-2\",\"batch.kubernetes.io/"
      "job-name\":\"x\",\"controller-uid\":\"1-2\",\"job-name\":\"x\"}},\"spec\":{\"containers\":[{"
      "\"name\":\"c\",\"image\":\"nginx\",\"resources\":{},\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],"
      "\"restartPolicy\":\"Never\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
      "\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\"}},"
      "\"completionMode\":\"NonIndexed\",\"suspend\":false,\"podReplacementPolicy\":"
      "\"TerminatingOrFailed\"},\"status\":{}}" },
    { "{\"apiVersion\":\"batch/"
      "v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"x\",\"uid\":\"1-2\"},\"spec\":{\"template\":{"
      "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"nginx\"}],\"restartPolicy\":\"Never\"}"
      "},\"parallelism\":2}}",
      "{\"kind\":\"Job\",\"apiVersion\":\"batch/"
      "v1\",\"metadata\":{\"name\":\"x\",\"labels\":{\"batch.kubernetes.io/"
      "controller-uid\":\"1-2\",\"batch.kubernetes.io/"
      "job-name\":\"x\",\"controller-uid\":\"1-2\",\"job-name\":\"x\"},\"uid\":\"1-2\"},\"spec\":{"
      "\"parallelism\":2,\"backoffLimit\":6,\"selector\":{\"matchLabels\":{\"batch.kubernetes.io/"
      "controller-uid\":\"1-2\"}},\"manualSelector\":false,\"template\":{\"metadata\":{\"labels\":{"
      "\"batch.kubernetes.io/controller-uid\":\"1-2\",\"batch.kubernetes.io/"
      "job-name\":\"x\",\"controller-uid\":\"1-2\",\"job-name\":\"x\"}},\"spec\":{\"containers\":[{"
      "\"name\":\"c\",\"image\":\"nginx\",\"resources\":{},\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],"
      "\"restartPolicy\":\"Never\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
      "\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\"}},"
      "\"completionMode\":\"NonIndexed\",\"suspend\":false,\"podReplacementPolicy\":"
      "\"TerminatingOrFailed\"},\"status\":{}}" },
    { "{\"apiVersion\":\"batch/"
      "v1\",\"kind\":\"CronJob\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"schedule\":\"* * * * "
      "*\",\"jobTemplate\":{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\","
      "\"image\":\"nginx\"}],\"restartPolicy\":\"Never\"}}}}}}",
      "{\"kind\":\"CronJob\",\"apiVersion\":\"batch/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"schedule\":\"* * * * "
      "*\",\"concurrencyPolicy\":\"Allow\",\"suspend\":false,\"jobTemplate\":{\"metadata\":{},"
      "\"spec\":{\"template\":{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
      "\"nginx\",\"resources\":{},\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],"
      "\"restartPolicy\":\"Never\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
      "\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\"}}}},"
      "\"successfulJobsHistoryLimit\":3,\"failedJobsHistoryLimit\":1},\"status\":{}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"selector\":{\"a\":\"b\"},\"ports\":[{\"port\":80}]}}",
      "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"ports\":[{\"protocol\":\"TCP\",\"port\":80,\"targetPort\":80}],\"selector\":{\"a\":\"b\"},"
      "\"type\":\"ClusterIP\",\"sessionAffinity\":\"None\",\"internalTrafficPolicy\":\"Cluster\"},"
      "\"status\":{"
      "\"loadBalancer\":{}}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"type\":\"LoadBalancer\",\"sessionAffinity\":\"ClientIP\",\"ports\":[{\"port\":80,\"name\":"
      "\"a\"},{\"port\":81,\"name\":\"b\",\"targetPort\":\"x\"}]}}",
      "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"ports\":[{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":80,\"targetPort\":80},{\"name\":"
      "\"b\",\"protocol\":\"TCP\",\"port\":81,\"targetPort\":\"x\"}],\"type\":\"LoadBalancer\","
      "\"sessionAffinity\":\"ClientIP\",\"externalTrafficPolicy\":\"Cluster\","
      "\"sessionAffinityConfig\":{\"clientIP\":{\"timeoutSeconds\":10800}},"
      "\"allocateLoadBalancerNodePorts\":true,"
      "\"internalTrafficPolicy\":\"Cluster\"},\"status\":{\"loadBalancer\":{}}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"type\":\"ExternalName\",\"externalName\":\"a.b\"}}",
      "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"type\":\"ExternalName\",\"sessionAffinity\":\"None\",\"externalName\":\"a.b\"},\"status\":"
      "{\"loadBalancer\":{}}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"clusterIP\":\"None\",\"selector\":{\"a\":\"b\"}}}",
      "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"selector\":{\"a\":\"b\"},\"clusterIP\":\"None\",\"clusterIPs\":[\"None\"],\"type\":"
      "\"ClusterIP\",\"sessionAffinity\":\"None\","
      "\"internalTrafficPolicy\":\"Cluster\"},\"status\":{\"loadBalancer\":{}}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"type\":\"NodePort\",\"ports\":[{\"port\":80}]}}",
      "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"ports\":[{\"protocol\":\"TCP\",\"port\":80,\"targetPort\":80}],\"type\":\"NodePort\","
      "\"sessionAffinity\":\"None\",\"externalTrafficPolicy\":\"Cluster\","
      "\"internalTrafficPolicy\":\"Cluster\"},\"status\":{"
      "\"loadBalancer\":{}}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"x\"},"
      "\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":"
      "\"1Gi\"}}}}",
      "{\"kind\":\"PersistentVolumeClaim\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},"
      "\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":"
      "\"1Gi\"}},\"volumeMode\":\"Filesystem\"},\"status\":{\"phase\":\"Pending\"}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"x\"},\"spec\":"
      "{\"accessModes\":[\"ReadWriteOnce\"],\"capacity\":{\"storage\":\"1Gi\"},\"hostPath\":{"
      "\"path\":\"/x\"}}}",
      "{\"kind\":\"PersistentVolume\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"spec\":"
      "{\"capacity\":{\"storage\":\"1Gi\"},\"hostPath\":{\"path\":\"/"
      "x\",\"type\":\"\"},\"accessModes\":[\"ReadWriteOnce\"],\"persistentVolumeReclaimPolicy\":"
      "\"Retain\",\"volumeMode\":\"Filesystem\"},\"status\":{\"phase\":\"Pending\"}}" },
    { "{\"apiVersion\":\"networking.k8s.io/"
      "v1\",\"kind\":\"Ingress\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"defaultBackend\":{"
      "\"service\":{\"name\":\"x\",\"port\":{\"number\":80}}}}}",
      "{\"kind\":\"Ingress\",\"apiVersion\":\"networking.k8s.io/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"defaultBackend\":{\"service\":{\"name\":"
      "\"x\",\"port\":{\"number\":80}}}},\"status\":{\"loadBalancer\":{}}}" },
    { "{\"apiVersion\":\"networking.k8s.io/"
      "v1\",\"kind\":\"NetworkPolicy\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"podSelector\":{},"
      "\"egress\":[{\"ports\":[{\"port\":80}]}]}}",
      "{\"kind\":\"NetworkPolicy\",\"apiVersion\":\"networking.k8s.io/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"podSelector\":{},\"egress\":[{\"ports\":[{"
      "\"protocol\":\"TCP\",\"port\":80}]}],\"policyTypes\":[\"Ingress\",\"Egress\"]}}" },
    { "{\"apiVersion\":\"networking.k8s.io/"
      "v1\",\"kind\":\"IngressClass\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"controller\":\"a.b/"
      "c\",\"parameters\":{\"kind\":\"X\",\"name\":\"y\"}}}",
      "{\"kind\":\"IngressClass\",\"apiVersion\":\"networking.k8s.io/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"controller\":\"a.b/"
      "c\",\"parameters\":{\"kind\":\"X\",\"name\":\"y\",\"scope\":\"Cluster\"}}}" },
    { "{\"apiVersion\":\"autoscaling/"
      "v2\",\"kind\":\"HorizontalPodAutoscaler\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"scaleTargetRef\":{\"apiVersion\":\"apps/"
      "v1\",\"kind\":\"Deployment\",\"name\":\"x\"},\"maxReplicas\":3}}",
      "{\"kind\":\"HorizontalPodAutoscaler\",\"apiVersion\":\"autoscaling/"
      "v2\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"scaleTargetRef\":{\"kind\":\"Deployment\","
      "\"name\":\"x\",\"apiVersion\":\"apps/"
      "v1\"},\"minReplicas\":1,\"maxReplicas\":3,\"metrics\":[{\"type\":\"Resource\",\"resource\":{"
      "\"name\":\"cpu\",\"target\":{\"type\":\"Utilization\",\"averageUtilization\":80}}}]},"
      "\"status\":{\"desiredReplicas\":0}}" },
    { "{\"apiVersion\":\"autoscaling/"
      "v2\",\"kind\":\"HorizontalPodAutoscaler\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"scaleTargetRef\":{\"apiVersion\":\"apps/"
      "v1\",\"kind\":\"Deployment\",\"name\":\"x\"},\"maxReplicas\":3,\"behavior\":{\"scaleUp\":{"
      "\"stabilizationWindowSeconds\":5}}}}",
      "{\"kind\":\"HorizontalPodAutoscaler\",\"apiVersion\":\"autoscaling/"
      "v2\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"scaleTargetRef\":{\"kind\":\"Deployment\","
      "\"name\":\"x\",\"apiVersion\":\"apps/"
      "v1\"},\"minReplicas\":1,\"maxReplicas\":3,\"metrics\":[{\"type\":\"Resource\",\"resource\":{"
      "\"name\":\"cpu\",\"target\":{\"type\":\"Utilization\",\"averageUtilization\":80}}}],"
      "\"behavior\":{\"scaleUp\":{\"stabilizationWindowSeconds\":5,\"selectPolicy\":\"Max\","
      "\"policies\":[{\"type\":\"Pods\",\"value\":4,\"periodSeconds\":15},{\"type\":\"Percent\","
      "\"value\":100,\"periodSeconds\":15}]},\"scaleDown\":{\"selectPolicy\":\"Max\",\"policies\":["
      "{\"type\":\"Percent\",\"value\":100,\"periodSeconds\":15}]}}},\"status\":{"
      "\"desiredReplicas\":0}}" },
    { "{\"apiVersion\":\"policy/"
      "v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"selector\":{"
      "\"matchLabels\":{\"a\":\"b\"}},\"minAvailable\":1}}",
      "{\"kind\":\"PodDisruptionBudget\",\"apiVersion\":\"policy/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"minAvailable\":1,\"selector\":{"
      "\"matchLabels\":{\"a\":\"b\"}}},\"status\":{\"disruptionsAllowed\":0,\"currentHealthy\":0,"
      "\"desiredHealthy\":0,\"expectedPods\":0}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"x\"},\"stringData\":{"
      "\"a\":\"b\"}}",
      "{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":"
      "\"Yg==\"},\"type\":\"Opaque\"}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":"
      "\"b\"}}",
      "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":"
      "\"b\"}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\",\"metadata\":{\"name\":\"x\"}}",
      "{\"kind\":\"ServiceAccount\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"x\"}}",
      "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\",\"labels\":{"
      "\"kubernetes.io/metadata.name\":\"x\"}},\"spec\":{},\"status\":{\"phase\":\"Active\"}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"x\"},\"status\":{"
      "\"capacity\":{\"cpu\":\"1\"}}}",
      "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{},"
      "\"status\":{\"capacity\":{\"cpu\":\"1\"},\"allocatable\":{\"cpu\":\"1\"},"
      "\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":0}},\"nodeInfo\":{}}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"Endpoints\",\"metadata\":{\"name\":\"x\"},\"subsets\":[{"
      "\"addresses\":[{\"ip\":\"1.2.3.4\"}],\"ports\":[{\"port\":80}]}]}",
      "{\"kind\":\"Endpoints\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"subsets\":[{"
      "\"addresses\":[{\"ip\":\"1.2.3.4\"}],\"ports\":[{\"port\":80,\"protocol\":\"TCP\"}]}]}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"LimitRange\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"limits\":[{\"type\":\"Container\",\"max\":{\"cpu\":\"1\"},\"min\":{\"memory\":\"1Gi\"}}]}"
      "}",
      "{\"kind\":\"LimitRange\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"limits\":[{\"type\":\"Container\",\"max\":{\"cpu\":\"1\"},\"min\":{\"memory\":\"1Gi\"},"
      "\"default\":{\"cpu\":\"1\"},\"defaultRequest\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}}]}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"ResourceQuota\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"hard\":{\"pods\":\"1\"}}}",
      "{\"kind\":\"ResourceQuota\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
      "\"hard\":{\"pods\":\"1\"}},\"status\":{}}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"ReplicationController\",\"metadata\":{\"name\":\"x\"},"
      "\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{"
      "\"name\":\"c\",\"image\":\"nginx\"}]}}}}",
      "{\"kind\":\"ReplicationController\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\","
      "\"labels\":{\"a\":\"b\"}},\"spec\":{\"replicas\":1,\"selector\":{\"a\":\"b\"},\"template\":{"
      "\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
      "\"nginx\",\"resources\":{},\"terminationMessagePath\":\"/dev/"
      "termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],"
      "\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
      "\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\"}}},"
      "\"status\":{\"replicas\":0}}" },
    { "{\"apiVersion\":\"rbac.authorization.k8s.io/"
      "v1\",\"kind\":\"Role\",\"metadata\":{\"name\":\"x\"},\"rules\":[{\"apiGroups\":[\"\"],"
      "\"resources\":[\"pods\"],\"verbs\":[\"get\"]}]}",
      "{\"kind\":\"Role\",\"apiVersion\":\"rbac.authorization.k8s.io/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"rules\":[{\"verbs\":[\"get\"],\"apiGroups\":[\"\"],"
      "\"resources\":[\"pods\"]}]}" },
    { "{\"apiVersion\":\"rbac.authorization.k8s.io/"
      "v1\",\"kind\":\"RoleBinding\",\"metadata\":{\"name\":\"x\"},\"roleRef\":{\"kind\":\"Role\","
      "\"name\":\"x\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"x\"},{\"kind\":"
      "\"ServiceAccount\",\"name\":\"x\",\"namespace\":\"default\"}]}",
      "{\"kind\":\"RoleBinding\",\"apiVersion\":\"rbac.authorization.k8s.io/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"subjects\":[{\"kind\":\"User\",\"apiGroup\":\"rbac."
      "authorization.k8s.io\",\"name\":\"x\"},{\"kind\":\"ServiceAccount\",\"name\":\"x\","
      "\"namespace\":\"default\"}],\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\","
      "\"kind\":\"Role\",\"name\":\"x\"}}" },
    { "{\"apiVersion\":\"storage.k8s.io/"
      "v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"x\"},\"provisioner\":\"a.b/c\"}",
      "{\"kind\":\"StorageClass\",\"apiVersion\":\"storage.k8s.io/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"provisioner\":\"a.b/"
      "c\",\"reclaimPolicy\":\"Delete\",\"volumeBindingMode\":\"Immediate\"}" },
    { "{\"apiVersion\":\"storage.k8s.io/"
      "v1\",\"kind\":\"CSIDriver\",\"metadata\":{\"name\":\"x\"},\"spec\":{}}",
      "{\"kind\":\"CSIDriver\",\"apiVersion\":\"storage.k8s.io/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"attachRequired\":true,\"podInfoOnMount\":"
      "false,\"volumeLifecycleModes\":[\"Persistent\"],\"storageCapacity\":false,\"fsGroupPolicy\":"
      "\"ReadWriteOnceWithFSType\",\"requiresRepublish\":false,\"seLinuxMount\":false,"
      "\"preventPodSchedulingIfMissing\":false}}" },
    { "{\"apiVersion\":\"scheduling.k8s.io/"
      "v1\",\"kind\":\"PriorityClass\",\"metadata\":{\"name\":\"x\"},\"value\":5}",
      "{\"kind\":\"PriorityClass\",\"apiVersion\":\"scheduling.k8s.io/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"value\":5,\"preemptionPolicy\":"
      "\"PreemptLowerPriority\"}" },
    { "{\"apiVersion\":\"discovery.k8s.io/"
      "v1\",\"kind\":\"EndpointSlice\",\"metadata\":{\"name\":\"x\"},\"addressType\":\"IPv4\","
      "\"endpoints\":[{\"addresses\":[\"1.2.3.4\"]}],\"ports\":[{\"port\":80}]}",
      "{\"kind\":\"EndpointSlice\",\"apiVersion\":\"discovery.k8s.io/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"addressType\":\"IPv4\",\"endpoints\":[{\"addresses\":["
      "\"1.2.3.4\"],\"conditions\":{}}],\"ports\":[{\"name\":\"\",\"protocol\":\"TCP\",\"port\":80}"
      "]}" },
    { "{\"apiVersion\":\"coordination.k8s.io/"
      "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"holderIdentity\":\"x\"}}",
      "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/"
      "v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"holderIdentity\":\"x\"}}" },
    { "{\"apiVersion\":\"apiextensions.k8s.io/"
      "v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"as.b.c\"},\"spec\":{"
      "\"group\":\"b.c\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"as\",\"kind\":\"A\"},"
      "\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
      "\"openAPIV3Schema\":{\"type\":\"object\"}}}]}}",
      "{\"kind\":\"CustomResourceDefinition\",\"apiVersion\":\"apiextensions.k8s.io/"
      "v1\",\"metadata\":{\"name\":\"as.b.c\"},\"spec\":{\"group\":\"b.c\",\"names\":{\"plural\":"
      "\"as\",\"singular\":\"a\",\"kind\":\"A\",\"listKind\":\"AList\"},\"scope\":\"Namespaced\","
      "\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
      "\"openAPIV3Schema\":{\"type\":\"object\"}}}],\"conversion\":{\"strategy\":\"None\"}},"
      "\"status\":{\"acceptedNames\":{\"plural\":\"\",\"kind\":\"\"},\"storedVersions\":[\"v1\"]}"
      "}" },
    { "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"x\"},\"involvedObject\":{"
      "\"kind\":\"Pod\",\"name\":\"x\",\"namespace\":\"default\"},\"reason\":\"x\",\"message\":"
      "\"y\",\"type\":\"Normal\"}",
      "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"involvedObject\":{"
      "\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"x\"},\"reason\":\"x\",\"message\":"
      "\"y\",\"source\":{},\"type\":\"Normal\"}" },
    { "{\"apiVersion\":\"apiregistration.k8s.io/"
      "v1\",\"kind\":\"APIService\",\"metadata\":{\"name\":\"v1.x.y\"},\"spec\":{\"group\":\"x.y\","
      "\"version\":\"v1\",\"groupPriorityMinimum\":1,\"versionPriority\":1,"
      "\"insecureSkipTLSVerify\":true,\"service\":{\"name\":\"x\",\"namespace\":\"default\"}}}",
      "{\"kind\":\"APIService\",\"apiVersion\":\"apiregistration.k8s.io/"
      "v1\",\"metadata\":{\"name\":\"v1.x.y\"},\"spec\":{\"service\":{\"namespace\":\"default\","
      "\"name\":\"x\",\"port\":443},\"group\":\"x.y\",\"version\":\"v1\",\"insecureSkipTLSVerify\":"
      "true,\"groupPriorityMinimum\":1,\"versionPriority\":1},\"status\":{}}" },
};

#define N_ROWS (sizeof rows / sizeof rows[0])

static struct kinf__schema *schema;

static struct cJSON *parse(const char *json)
{
    struct cJSON *tree;

    assert_int_equal(kinf__doc_parse(kinf_str_from(json), &tree, NULL), 0);
    return tree;
}

static int fill_in(struct cJSON *object)
{
    const char *api_version = kinf__doc_text(object, "apiVersion", NULL);
    const char *kind = kinf__doc_text(object, "kind", NULL), *slash = strchr(api_version, '/');
    size_t len = slash != NULL ? (size_t)(slash - api_version) : 0;
    char group[64];
    const struct kinf__schema_node *node;
    int failed;

    snprintf(group, sizeof group, "%.*s", (int)len, api_version);
    node = kinf__schema_find(schema, group, slash != NULL ? slash + 1 : api_version, kind);
    assert_non_null(node);
    failed = kinf__schema_prune(node, object, NULL, NULL);
    if (failed == 0)
        failed = kinf__schema_default(node, object);
    return failed < 0 ? failed : kinf__default_object(group, kind, object);
}

static void assert_equal(const struct cJSON *object, const char *stored)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    KINF__AUTO_DOC *expected = parse(stored);

    if (kinf__doc_equal(object, expected))
        return;
    assert_int_equal(kinf__doc_print(object, &text), 0);
    assert_non_null(kinf__buffer_cstr(&text));
    fail_msg("got  %s\nwant %s", text.bytes, stored);
}

static void minimal_objects_become_what_the_server_makes_of_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        KINF__AUTO_DOC *object = parse(rows[i].sent);

        assert_int_equal(fill_in(object), 0);
        assert_equal(object, rows[i].stored);
    }
}

static void what_is_filled_in_stays_as_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        KINF__AUTO_DOC *object = parse(rows[i].stored);

        assert_int_equal(fill_in(object), 0);
        assert_equal(object, rows[i].stored);
    }
}

static void the_tag_decides_about_pulling(void **state)
{
    static const struct {
        const char *image, *policy;
    } images[] = {
        { "a", "Always" },
        { "a:latest", "Always" },
        { "a:1", "IfNotPresent" },
        { "r:5000/a", "Always" },
        { "r:5000/a:1", "IfNotPresent" },
        { "a@sha256:00", "IfNotPresent" },
        { "a:latest@sha256:00", "Always" },
        { "a:1@sha256:00", "IfNotPresent" },
        { "", "IfNotPresent" },
    };
    char json[256];

    (void)state;
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        KINF__AUTO_DOC *pod = NULL;
        const struct cJSON *containers;

        snprintf(json, sizeof json, "{\"spec\":{\"containers\":[{\"image\":\"%s\"}]}}",
                 images[i].image);
        pod = parse(json);
        assert_int_equal(kinf__default_object("", "Pod", pod), 0);
        containers = kinf__doc_find(pod, "spec", "containers", NULL);
        assert_string_equal(kinf__doc_text(containers->child, "imagePullPolicy", NULL),
                            images[i].policy);
    }
}

/* Each %s becomes the value. */
static void fill_template(char *json, size_t size, const char *text, const char *value)
{
    size_t len = 0;

    for (; *text != '\0'; text++) {
        bool is_place = text[0] == '%';

        len += is_place ? (size_t)snprintf(json + len, size - len, "%s", value)
                        : (size_t)snprintf(json + len, size - len, "%c", *text);
        text += is_place;
    }
}

static void wrong_types_do_no_harm(void **state)
{
    static const char *const values[] = {
        "5", "\"x\"", "null", "[]", "[5,\"x\",null,[],{}]", "{}"
    };
    static const char *const paths[] = {
        "{\"metadata\":%s,\"spec\":%s,\"status\":%s,\"data\":%s,\"stringData\":%s,\"subjects\":%s}",
        "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"labels\":%s},\"spec\":{\"containers\":%s,"
        "\"volumes\":%s,\"template\":%s,\"ports\":%s,\"behavior\":%s}}",
        "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"names\":%s,\"versions\":%s,\"limits\":%s,"
        "\"strategy\":%s,\"volumeClaimTemplates\":%s,\"template\":{\"metadata\":%s}}}",
    };
    static const struct {
        const char *group, *kind;
    } kinds[] = {
        { "", "Pod" },
        { "", "Service" },
        { "", "Secret" },
        { "", "Namespace" },
        { "", "Node" },
        { "", "LimitRange" },
        { "", "PodTemplate" },
        { "", "ReplicationController" },
        { "apps", "Deployment" },
        { "apps", "StatefulSet" },
        { "batch", "Job" },
        { "batch", "CronJob" },
        { "autoscaling", "HorizontalPodAutoscaler" },
        { "networking.k8s.io", "NetworkPolicy" },
        { "rbac.authorization.k8s.io", "RoleBinding" },
        { "apiextensions.k8s.io", "CustomResourceDefinition" },
    };
    char json[1024];

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (size_t i = 0; i < 18; i++) {
            const char *v = values[i % 6];
            KINF__AUTO_DOC *object = NULL;

            fill_template(json, sizeof json, paths[i / 6], v);
            object = parse(json);
            assert_int_equal(kinf__default_object(kinds[k].group, kinds[k].kind, object), 0);
        }
    }
}

static void a_lack_of_memory_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        bool has_failed = true;

        for (size_t n = 1; has_failed; n++) {
            KINF__AUTO_DOC *object = parse(rows[i].sent);
            int failed;

            test_fail_allocation(n);
            failed = fill_in(object);
            has_failed = test_allocation_failed();
            assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : 0);
            if (!has_failed)
                assert_equal(object, rows[i].stored);
        }
    }
}

static int set_up(void **state)
{
    (void)state;
    return kinf__schema_new(&schema);
}

static int tear_down(void **state)
{
    (void)state;
    kinf__schema_free(schema);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(minimal_objects_become_what_the_server_makes_of_them),
        cmocka_unit_test(what_is_filled_in_stays_as_it_is),
        cmocka_unit_test(the_tag_decides_about_pulling),
        cmocka_unit_test(wrong_types_do_no_harm),
        cmocka_unit_test(a_lack_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
