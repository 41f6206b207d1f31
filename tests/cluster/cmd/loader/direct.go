package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// A pod through the API costs the server 10 ms, most of it managedFields; written to etcd as the
// apiserver would have stored it, a twentieth of that. One pod of each app still goes through the
// API, and the others are its copies: same defaults, same managedFields. What watches the apiserver
// sees no difference, but that a pod arrives whole, not as a create and a status update.
type directWriter struct {
	etcd   *clientv3.Client
	codec  runtime.Serializer
	fleet  *fleet
	models []*corev1.Pod // as stored, one for each of apps
}

func dialEtcd(endpoint string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second})
}

// writePods does what makePods does.
func writePods(ctx context.Context, client kubernetes.Interface, etcd *clientv3.Client, f *fleet, workers int) (int64, error) {
	w := &directWriter{etcd: etcd, codec: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), fleet: f}
	models := *f
	models.pods = min(f.pods, len(apps))
	made, err := makePods(ctx, client, &models, workers)
	if err != nil {
		return made, err
	}
	if err := w.readModels(ctx, models.pods); err != nil {
		return made, err
	}

	var next, written atomic.Int64
	next.Store(int64(models.pods))
	group, ctx := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < f.pods; i = int(next.Add(1)) - 1 {
				created, err := w.write(ctx, i)
				if err != nil {
					return fmt.Errorf("pod %d: %w", i, err)
				}
				if created {
					written.Add(1)
				}
			}
			return nil
		})
	}
	err = group.Wait()
	return made + written.Load(), err
}

func storageKey(namespace, name string) string {
	return "/registry/pods/" + namespace + "/" + name
}

func (w *directWriter) readModels(ctx context.Context, n int) error {
	for i := range n {
		key := storageKey(w.fleet.namespace(i), w.fleet.name(i))
		got, err := w.etcd.Get(ctx, key)
		if err != nil {
			return err
		}
		if len(got.Kvs) != 1 {
			return fmt.Errorf("etcd has no %s", key)
		}
		pod := &corev1.Pod{}
		if _, _, err := w.codec.Decode(got.Kvs[0].Value, nil, pod); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		w.models = append(w.models, pod)
	}
	return nil
}

// write stores pod i unless there is one, and says whether it did.
func (w *directWriter) write(ctx context.Context, i int) (bool, error) {
	var encoded bytes.Buffer

	pod := w.copyModel(i)
	if err := w.codec.Encode(pod, &encoded); err != nil {
		return false, err
	}
	key := storageKey(pod.Namespace, pod.Name)
	answer, err := w.etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, encoded.String())).
		Commit()
	if err != nil {
		return false, err
	}
	return answer.Succeeded, nil
}

// copyModel makes pod i from the stored pod of its app. managedFields name the pod's address.
func (w *directWriter) copyModel(i int) *corev1.Pod {
	own := w.fleet.pod(i)
	pod := w.models[i%len(apps)].DeepCopy()
	modelIP := pod.Status.PodIP
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Name, pod.Namespace = own.Name, own.Namespace
	pod.UID = uid(own.Namespace + "/" + own.Name)
	pod.CreationTimestamp = metav1.Now().Rfc3339Copy()
	pod.Spec.NodeName = own.Spec.NodeName
	pod.Status = own.Status
	for n := range pod.ManagedFields {
		entry := &pod.ManagedFields[n]
		entry.Time = &pod.CreationTimestamp
		entry.FieldsV1.Raw = []byte(strings.ReplaceAll(string(entry.FieldsV1.Raw), modelIP, own.Status.PodIP))
	}
	return pod
}
