// Command sessions writes and reads config maps through one server, in pairs, and counts reads that
// do not show the write before them:
//
//	sessions -server URL -token TOKEN -namespace NAME -workers 12 -pairs 6000
//
// Every other worker speaks protobuf. Prints {"pairs":N,"stale":M,"first":"..."}; with -measure,
// how long such pairs take.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

type result struct {
	sync.Mutex
	Pairs int    `json:"pairs"`
	Stale int    `json:"stale"`
	First string `json:"first"`
}

// seen counts one pair.
func (r *result) seen(is bool, what string, args ...any) {
	r.Lock()
	defer r.Unlock()
	r.Pairs++
	if !is {
		r.Stale++
		if r.First == "" {
			r.First = fmt.Sprintf(what, args...)
		}
	}
}

type worker struct {
	maps typed.ConfigMapInterface
	name string
	all  *result
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (w worker) object(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"worker": w.name}},
		Data: map[string]string{"value": value}}
}

func (w worker) selected() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: "worker=" + w.name}
}

func (w worker) get(ctx context.Context, name string) *corev1.ConfigMap {
	object, err := w.maps.Get(ctx, name, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return nil
	}
	must(err)
	return object
}

func (w worker) patch(ctx context.Context, name, patch string) {
	_, err := w.maps.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(err)
}

// watched is the value in the first event of a watch that starts now.
func (w worker) watched(ctx context.Context) string {
	stream, err := w.maps.Watch(ctx, w.selected())
	must(err)
	defer stream.Stop()
	event := <-stream.ResultChan()
	if event.Type != watch.Added {
		return "no " + string(event.Type)
	}
	return event.Object.(*corev1.ConfigMap).Data["value"]
}

// round makes eight pairs.
func (w worker) round(ctx context.Context, i int) {
	name := fmt.Sprintf("%s-%d", w.name, i)
	created, err := w.maps.Create(ctx, w.object(name, "one"), metav1.CreateOptions{})
	must(err)
	found := w.get(ctx, name)
	w.all.seen(found != nil && found.ResourceVersion == created.ResourceVersion, "created %s: %v", name, found)

	w.patch(ctx, name, `{"data":{"value":"two"}}`)
	list, err := w.maps.List(ctx, w.selected())
	must(err)
	w.all.seen(len(list.Items) == 1 && list.Items[0].Data["value"] == "two", "patched %s: %v", name, list.Items)

	changed := w.object(name, "three")
	changed.Finalizers = []string{"test.kinformer.dev/hold"}
	_, err = w.maps.Update(ctx, changed, metav1.UpdateOptions{})
	must(err)
	value := w.watched(ctx)
	w.all.seen(value == "three", "updated %s: %s", name, value)

	must(w.maps.Delete(ctx, name, metav1.DeleteOptions{}))
	found = w.get(ctx, name)
	w.all.seen(found != nil && found.DeletionTimestamp != nil, "deleted and held %s: %v", name, found)

	w.patch(ctx, name, `{"metadata":{"finalizers":null}}`)
	found = w.get(ctx, name)
	w.all.seen(found == nil, "let go of %s: %v", name, found)

	_, err = w.maps.Create(ctx, w.object(name, "again"), metav1.CreateOptions{})
	must(err)
	list, err = w.maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	must(err)
	w.all.seen(len(list.Items) == 1, "created again %s: %v", name, list.Items)

	if i%2 == 0 {
		must(w.maps.Delete(ctx, name, metav1.DeleteOptions{}))
	} else {
		must(w.maps.DeleteCollection(ctx, metav1.DeleteOptions{}, w.selected()))
	}
	list, err = w.maps.List(ctx, w.selected())
	must(err)
	w.all.seen(len(list.Items) == 0, "deleted %s: %v", name, list.Items)

	_, err = w.maps.Create(ctx, w.object(name, "last"), metav1.CreateOptions{})
	must(err)
	must(w.maps.Delete(ctx, name, metav1.DeleteOptions{}))
	found = w.get(ctx, name)
	w.all.seen(found == nil, "created and deleted %s: %v", name, found)
}

func clientFor(server, token string, i int) *kubernetes.Clientset {
	config := &rest.Config{Host: server, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	if i%2 == 1 {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	client, err := kubernetes.NewForConfig(config)
	must(err)
	return client
}

func main() {
	server := flag.String("server", "", "`URL`")
	token := flag.String("token", "", "bearer token")
	namespace := flag.String("namespace", "", "where")
	workers := flag.Int("workers", 12, "clients")
	pairs := flag.Int("pairs", 6000, "of all together")
	measures := flag.Bool("measure", false, "print how long pairs of a patch and a get take, instead")
	flag.Parse()
	var all result
	var group sync.WaitGroup
	crew := make([]worker, *workers)
	for i := range crew {
		maps := clientFor(*server, *token, i).CoreV1().ConfigMaps(*namespace)
		crew[i] = worker{maps, fmt.Sprintf("go-%d", i), &all}
	}
	if *measures {
		measure(crew, *pairs)
		return
	}
	for _, w := range crew {
		group.Go(func() {
			for round := range (*pairs + 8*len(crew) - 1) / (8 * len(crew)) {
				w.round(context.Background(), round)
			}
		})
	}
	group.Wait()
	must(json.NewEncoder(os.Stdout).Encode(&all))
}
