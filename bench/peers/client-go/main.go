// Command client-go is a client of bench/ (bench/README.md has what all of them do) with client-go's informers:
//
//	client-go FLAVOUR INITIAL KUBECONFIG N_EVENTS TIMES
//
// FLAVOUR is json, protobuf (both typed), dynamic or metadata. INITIAL is not looked at: client-go asks for a streamed
// list first, and lists where the server has none.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// told is what the handler was told. The handler alone writes it, but the counters are read by others.
type told struct {
	n, sum  atomic.Uint64
	nEvents uint64
	times   []arrival
	path    string
}

type arrival struct {
	rv string
	ns int64
}

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: client-go FLAVOUR INITIAL KUBECONFIG N_EVENTS TIMES")
		os.Exit(2)
	}
	nEvents, _ := strconv.ParseUint(os.Args[4], 10, 64)
	t := &told{nEvents: nEvents, times: make([]arrival, 0, nEvents), path: os.Args[5]}
	if err := run(os.Args[1], os.Args[3], t); err != nil {
		fmt.Fprintln(os.Stderr, "client-go:", err)
		os.Exit(1)
	}
}

func run(flavour, kubeconfig string, t *told) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	informer, err := informerFor(config, flavour)
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { t.take(object) },
		UpdateFunc: func(_, object any) { t.update(object) },
	})
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	running.Go(func() { informer.RunWithContext(ctx) })
	<-registration.HasSyncedChecker().Done()
	t.mark("synced", informer.GetStore())
	stop := func() {
		cancel()
		running.Wait()
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if !work(informer, stop, lines.Text()) {
			t.mark("mark", informer.GetStore())
		}
	}
	stop()
	return nil
}

func informerFor(config *rest.Config, flavour string) (cache.SharedIndexInformer, error) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	switch flavour {
	case "json", "protobuf":
		config.ContentType = "application/" + map[string]string{"json": "json", "protobuf": "vnd.kubernetes.protobuf"}[flavour]
		config.AcceptContentTypes = config.ContentType
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer(), nil
	case "dynamic":
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(pods).Informer(), nil
	case "metadata":
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return metadatainformer.NewSharedInformerFactory(client, 0).ForResource(pods).Informer(), nil
	}
	return nil, fmt.Errorf("no flavour %q", flavour)
}

// The handler.

func (t *told) take(object any) {
	t.add(object.(metav1.Object), phaseOf(object))
}

func (t *told) update(object any) {
	pod := object.(metav1.Object)
	t.add(pod, phaseOf(object))
	if uint64(len(t.times)) == t.nEvents {
		return
	}
	t.times = append(t.times, arrival{pod.GetResourceVersion(), monotonic()})
	switch uint64(len(t.times)) {
	case t.nEvents / 10:
		t.mark("warm", nil)
	case t.nEvents:
		t.mark("done", nil)
		t.write()
	}
}

func phaseOf(object any) string {
	switch pod := object.(type) {
	case *corev1.Pod:
		return string(pod.Status.Phase)
	case *unstructured.Unstructured:
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		return phase
	}
	return ""
}

func (t *told) add(pod metav1.Object, phase string) {
	hash := uint64(0xcbf29ce484222325)
	for _, text := range [...]string{pod.GetName(), string(pod.GetUID()), pod.GetResourceVersion(), phase} {
		for i := range len(text) {
			hash = (hash ^ uint64(text[i])) * 0x100000001b3
		}
		hash = (hash ^ '\n') * 0x100000001b3
	}
	t.sum.Add(hash)
	t.n.Add(1)
}

// mark prints what was used so far; counting the store comes behind it.
func (t *told) mark(name string, store cache.Store) {
	var usage syscall.Rusage
	now, objects := monotonic(), 0
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	n, sum := t.n.Load(), t.sum.Load()
	if store != nil {
		objects = len(store.ListKeys())
	}
	fmt.Printf("%s at_ns=%d cpu_us=%d told=%d sum=%016x objects=%d\n", name, now,
		(usage.Utime.Nano()+usage.Stime.Nano())/1000, n, sum, objects)
}

func (t *told) write() {
	file, err := os.Create(t.path)
	if err != nil {
		panic(err)
	}
	out := bufio.NewWriter(file)
	for _, arrival := range t.times {
		fmt.Fprintf(out, "%s %d\n", arrival.rv, arrival.ns)
	}
	out.Flush()
	file.Close()
	fmt.Println("written")
}

func monotonic() int64 {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}
