package main

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"
)

var apps = []string{
	"accounts", "basket", "billing", "catalog", "checkout", "coupons", "currency", "delivery",
	"emails", "fraud", "inventory", "invoices", "orders", "payments", "prices", "ratings",
	"returns", "search", "sessions", "stock",
}

// fleet says which pods there are: pod i has always the same name, namespace and content. The same
// flags given to two verbs mean the same pods.
type fleet struct {
	prefix     string
	pods       int
	namespaces int
	nodes      int
	manifest   string
	templates  []corev1.Pod // one for each of apps
}

func (f *fleet) flags(flags *flag.FlagSet, pods int) {
	flags.StringVar(&f.prefix, "prefix", "load", "what the names of namespaces and pods begin with")
	flags.IntVar(&f.pods, "pods", pods, "how many pods")
	flags.IntVar(&f.namespaces, "namespaces", 1, "how many namespaces they are spread over: PREFIX-0 and on")
	flags.IntVar(&f.nodes, "nodes", 50, "how many nodes they are spread over, in turn: node-000 and on")
	flags.StringVar(&f.manifest, "pod", defaultManifest(), "manifest `file` of the pod to multiply; $POD goes before the default")
}

// defaultManifest is tests/data/pod.yaml as seen from build/cluster/bin, where this program lies.
func defaultManifest() string {
	if manifest := os.Getenv("POD"); manifest != "" {
		return manifest
	}
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(program), "../../../tests/data/pod.yaml")
}

// read makes a template for each app, by putting the app's name in the place of the manifest's own.
func (f *fleet) read() error {
	if f.pods < 1 || f.namespaces < 1 || f.nodes < 1 {
		return errors.New("-pods, -namespaces and -nodes must be positive")
	}
	text, err := os.ReadFile(f.manifest)
	if err != nil {
		return err
	}
	var model corev1.Pod
	if err := yaml.Unmarshal(text, &model); err != nil {
		return fmt.Errorf("%s: %w", f.manifest, err)
	}
	for _, app := range apps {
		pod, err := templateFor(app, string(text), &model)
		if err != nil {
			return fmt.Errorf("%s: %w", f.manifest, err)
		}
		f.templates = append(f.templates, *pod)
	}
	return nil
}

func templateFor(app, text string, model *corev1.Pod) (*corev1.Pod, error) {
	for _, own := range []string{model.Labels["app"], model.Labels["app.kubernetes.io/name"]} {
		if own != "" {
			text = strings.ReplaceAll(text, own, app)
		}
	}
	if hash := model.Labels["pod-template-hash"]; hash != "" {
		text = strings.ReplaceAll(text, hash, templateHash(app))
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		return nil, err
	}
	labels := map[string]string{"app": app, "pod-template-hash": templateHash(app)}
	for key, value := range pod.Labels {
		if _, ours := labels[key]; !ours {
			labels[key] = value
		}
	}
	owners := pod.OwnerReferences
	for i := range owners {
		owners[i].UID = uid(app + owners[i].Name)
	}
	pod.ObjectMeta = metav1.ObjectMeta{
		Labels:          labels,
		Annotations:     pod.Annotations,
		OwnerReferences: owners,
		GenerateName:    app + "-" + templateHash(app) + "-",
	}
	return pod, nil
}

func (f *fleet) namespace(i int) string {
	return fmt.Sprintf("%s-%d", f.prefix, i/len(apps)%f.namespaces)
}

func (f *fleet) name(i int) string {
	app := apps[i%len(apps)]
	return fmt.Sprintf("%s-%s-%s-%05d", f.prefix, app, templateHash(app), i)
}

// pod makes pod i. The caller owns it.
func (f *fleet) pod(i int) *corev1.Pod {
	random := source(fmt.Sprint(f.prefix, i))
	pod := f.templates[i%len(apps)].DeepCopy()
	pod.Name = f.name(i)
	pod.Namespace = f.namespace(i)
	node := i % f.nodes
	pod.Spec.NodeName = fmt.Sprintf("node-%03d", node)
	setAddresses(&pod.Status, fmt.Sprintf("10.1.%d.%d", node>>8, node&255),
		fmt.Sprintf("10.%d.%d.%d", 128+i>>16&127, i>>8&255, i&255))
	shiftTimes(&pod.Status, -time.Duration(random.IntN(30*24*3600))*time.Second)
	renewContainerIDs(&pod.Status, random)
	return pod
}

func setAddresses(status *corev1.PodStatus, host, pod string) {
	status.HostIP = host
	status.HostIPs = []corev1.HostIP{{IP: host}}
	status.PodIP = pod
	status.PodIPs = []corev1.PodIP{{IP: pod}}
}

func shiftTimes(status *corev1.PodStatus, by time.Duration) {
	shift := func(t *metav1.Time) {
		if !t.IsZero() {
			*t = metav1.NewTime(t.Add(by))
		}
	}
	if status.StartTime != nil {
		shift(status.StartTime)
	}
	for i := range status.Conditions {
		shift(&status.Conditions[i].LastTransitionTime)
	}
	eachState(status, func(_ *corev1.ContainerStatus, state *corev1.ContainerState) {
		if state.Running != nil {
			shift(&state.Running.StartedAt)
		}
		if state.Terminated != nil {
			shift(&state.Terminated.StartedAt)
			shift(&state.Terminated.FinishedAt)
		}
	})
}

// renewContainerIDs keeps which of a container's identities are the same.
func renewContainerIDs(status *corev1.PodStatus, random *mathrand.Rand) {
	renewed := map[string]string{}
	renew := func(id *string) {
		if *id == "" {
			return
		}
		if renewed[*id] == "" {
			renewed[*id] = fmt.Sprintf("containerd://%016x%016x%016x%016x",
				random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64())
		}
		*id = renewed[*id]
	}
	eachState(status, func(container *corev1.ContainerStatus, state *corev1.ContainerState) {
		if state == &container.State {
			renew(&container.ContainerID)
		}
		if state.Terminated != nil {
			renew(&state.Terminated.ContainerID)
		}
	})
}

// eachState visits the state and the last state of every container.
func eachState(status *corev1.PodStatus, visit func(*corev1.ContainerStatus, *corev1.ContainerState)) {
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			visit(&list[i], &list[i].State)
			visit(&list[i], &list[i].LastTerminationState)
		}
	}
}

func hash64(text string) uint64 {
	sum := fnv.New64a()
	sum.Write([]byte(text))
	return sum.Sum64()
}

func source(text string) *mathrand.Rand {
	return mathrand.New(mathrand.NewPCG(hash64(text), 0))
}

func templateHash(app string) string {
	return rand.SafeEncodeString(fmt.Sprint(hash64(app) % 1e9))
}

func uid(text string) types.UID {
	random := source(text)
	high, low := random.Uint64(), random.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x",
		uint32(high>>32), uint16(high>>16), high&0xfff, low>>52, low&0xffffffffffff))
}
