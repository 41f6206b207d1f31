// Command protocases writes objects of many kinds, filled at random from a fixed seed, as Go encodes
// them: KIND.pb in Kubernetes' protobuf and KIND.json, into the folder named. They are what
// tests/unit/test_protobuf.c reads from tests/data/protobuf.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

// A kind, and how often what may be missing is.
type kase struct {
	group, version, kind string
	nilChance            float64
}

var kases = []kase{
	{"", "v1", "Pod", 0.05},
	{"", "v1", "Service", 0.1},
	{"", "v1", "Node", 0.2},
	{"", "v1", "PersistentVolume", 0.1},
	{"", "v1", "PersistentVolumeClaim", 0.2},
	{"", "v1", "Event", 0.1},
	{"", "v1", "ResourceQuota", 0.2},
	{"", "v1", "Secret", 0.2},
	{"", "v1", "Binding", 0.2},
	{"", "v1", "DeleteOptions", 0.1},
	{"apps", "v1", "Deployment", 0.6},
	{"apps", "v1", "StatefulSet", 0.7},
	{"apps", "v1", "DaemonSet", 0.7},
	{"apps", "v1", "ControllerRevision", 0.2},
	{"apps", "v1", "DeleteOptions", 0.5},
	{"authentication.k8s.io", "v1", "TokenRequest", 0.1},
	{"authentication.k8s.io", "v1", "TokenReview", 0.1},
	{"authorization.k8s.io", "v1", "SubjectAccessReview", 0.1},
	{"autoscaling", "v1", "Scale", 0.2},
	{"autoscaling", "v2", "HorizontalPodAutoscaler", 0.2},
	{"batch", "v1", "CronJob", 0.6},
	{"batch", "v1", "Job", 0.6},
	{"coordination.k8s.io", "v1", "Lease", 0.1},
	{"discovery.k8s.io", "v1", "EndpointSlice", 0.1},
	{"events.k8s.io", "v1", "Event", 0.1},
	{"networking.k8s.io", "v1", "Ingress", 0.1},
	{"networking.k8s.io", "v1", "NetworkPolicy", 0.1},
	{"policy", "v1", "Eviction", 0.1},
	{"policy", "v1", "PodDisruptionBudget", 0.1},
	{"rbac.authorization.k8s.io", "v1", "ClusterRole", 0.1},
	{"rbac.authorization.k8s.io", "v1", "RoleBinding", 0.1},
	{"storage.k8s.io", "v1", "CSIDriver", 0.2},
	{"storage.k8s.io", "v1", "VolumeAttachment", 0.3},
}

var texts = []string{"", "a", "ä b", "日本", "<&>\"\\", "x-1"}

// What no random bytes make, or no JSON has.
var fillers = []any{
	func(*metav1.TypeMeta, randfill.Continue) {},
	func(s *string, c randfill.Continue) { *s = texts[c.Intn(len(texts))] },
	func(n *int64, c randfill.Continue) { *n = []int64{0, 1, -1, 1 << 62, -1 << 63}[c.Intn(5)] },
	func(n *int32, c randfill.Continue) { *n = []int32{0, 1, -1, 1<<31 - 1, -1 << 31}[c.Intn(5)] },
	func(t *metav1.Time, c randfill.Continue) { t.Time = time.Unix(int64(c.Uint32()), 0) },
	func(t *metav1.MicroTime, c randfill.Continue) {
		t.Time = time.Unix(int64(c.Uint32()), int64(c.Intn(1000000))*1000)
	},
	func(q *resource.Quantity, c randfill.Continue) { *q = resource.MustParse(fmt.Sprint(c.Intn(9), "Mi")) },
	func(v *intstr.IntOrString, c randfill.Continue) {
		*v = intstr.FromInt32(int32(c.Intn(9)))
		if c.Bool() {
			*v = intstr.FromString(texts[c.Intn(len(texts))])
		}
	},
	func(r *runtime.RawExtension, _ randfill.Continue) { r.Raw = []byte(`{"a":[1,{"b":null}]}`) },
	func(f *metav1.FieldsV1, _ randfill.Continue) { f.Raw = []byte(`{"f:metadata":{}}`) },
}

func write(folder string, seed int64, k kase) error {
	gvk := schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.kind}
	object, err := scheme.Scheme.New(gvk)
	if err != nil {
		return err
	}
	randfill.NewWithSeed(seed).NilChance(k.nilChance).NumElements(1, 2).Funcs(fillers...).Fill(object)
	object.GetObjectKind().SetGroupVersionKind(gvk)
	var encoded bytes.Buffer
	if err = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &encoded); err != nil {
		return err
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	path := filepath.Join(folder, k.kind)
	if k.group != "" {
		path += "." + k.group
	}
	if err = os.WriteFile(path+".pb", encoded.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(path+".json", append(text, '\n'), 0o644)
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: protocases FOLDER")
	}
	for i, k := range kases {
		if err := write(os.Args[1], int64(i), k); err != nil {
			log.Fatal(k, ": ", err)
		}
	}
}
