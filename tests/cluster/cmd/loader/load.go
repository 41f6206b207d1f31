package main

import (
	"context"
	"flag"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The field managers of a real pod, since managedFields is a good part of its bytes.
var (
	asController = metav1.CreateOptions{FieldManager: "kube-controller-manager"}
	asKubelet    = metav1.UpdateOptions{FieldManager: "kubelet"}
)

func runLoad(ctx context.Context, flags *flag.FlagSet, args []string) error {
	var f fleet
	f.flags(flags, 1000)
	kubeconfig := kubeconfigFlag(flags)
	workers := flags.Int("workers", 16, "how many pods are made at once")
	etcd := flags.String("etcd", "", "write to the etcd at this `URL` instead of through the API: for large sets")
	flags.Parse(args)

	if err := f.read(); err != nil {
		return err
	}
	client, err := typedClient(*kubeconfig)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := makeNamespaces(ctx, client, &f); err != nil {
		return err
	}
	made, err := fill(ctx, client, &f, *etcd, *workers)
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	fmt.Printf("pods=%d made=%d namespaces=%d seconds=%.1f pods_per_second=%.0f\n",
		f.pods, made, f.namespaces, seconds, float64(made)/seconds)
	return nil
}

func fill(ctx context.Context, client kubernetes.Interface, f *fleet, endpoint string, workers int) (int64, error) {
	if endpoint == "" {
		return makePods(ctx, client, f, workers)
	}
	etcd, err := dialEtcd(endpoint)
	if err != nil {
		return 0, err
	}
	defer etcd.Close()
	return writePods(ctx, client, etcd, f, workers)
}

func makeNamespaces(ctx context.Context, client kubernetes.Interface, f *fleet) error {
	for n := range f.namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", f.prefix, n)}}
		_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// makePods returns how many it made; pods that are there already stay as they are.
func makePods(ctx context.Context, client kubernetes.Interface, f *fleet, workers int) (int64, error) {
	var next, made atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < f.pods; i = int(next.Add(1)) - 1 {
				err := makePod(ctx, client, f.pod(i))
				if apierrors.IsAlreadyExists(err) {
					continue
				}
				if err != nil {
					return fmt.Errorf("pod %d: %w", i, err)
				}
				made.Add(1)
			}
			return nil
		})
	}
	err := group.Wait()
	return made.Load(), err
}

// makePod takes two requests, since a create drops the status. The second goes without the spec:
// the server keeps its own and has less to decode and to compare.
func makePod(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	pods := client.CoreV1().Pods(pod.Namespace)
	if _, err := pods.Create(ctx, pod, asController); err != nil {
		return err
	}
	_, err := pods.UpdateStatus(ctx, &corev1.Pod{ObjectMeta: pod.ObjectMeta, Status: pod.Status}, asKubelet)
	return err
}
