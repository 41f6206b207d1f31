package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/flowcontrol"
)

// What an event carries: its number, and Unix nanoseconds just before the write.
const eventAnnotation = "bench.example.com/event"

// eventWriter changes pods where the apiserver keeps them: it passes the changes on as any others,
// but does not work for the writes, which at a thousand a second would take the machine.
type eventWriter struct {
	etcd  *clientv3.Client
	codec runtime.Serializer
	fleet *fleet
	pods  []*corev1.Pod
}

func runEvents(ctx context.Context, flags *flag.FlagSet, args []string) error {
	w := eventWriter{codec: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), fleet: &fleet{}}
	w.fleet.flags(flags, 1000)
	endpoint := flags.String("etcd", "", "the etcd at this `URL`")
	first := flags.Int("first", 0, "number of the first event; event k changes pod k modulo -pods")
	n := flags.Int("n", 1000, "how many")
	rate := flags.Float64("rate", 0, "events a second; 0: as fast as it goes")
	workers := flags.Int("workers", 4, "how many are written at once; a pod's come one after another")
	flags.Parse(args)

	if err := w.fleet.read(); err != nil {
		return err
	}
	etcd, err := dialEtcd(*endpoint)
	if err != nil {
		return err
	}
	defer etcd.Close()
	w.etcd = etcd
	if err := w.readPods(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := w.writeAll(ctx, *first, *n, *workers, limiterOf(*rate)); err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	fmt.Printf("events=%d seconds=%.1f events_per_second=%.0f\n", *n, seconds, float64(*n)/seconds)
	return nil
}

func limiterOf(rate float64) flowcontrol.RateLimiter {
	if rate == 0 {
		return flowcontrol.NewFakeAlwaysRateLimiter()
	}
	return flowcontrol.NewTokenBucketRateLimiter(float32(rate), 1)
}

func (w *eventWriter) readPods(ctx context.Context) error {
	got, err := w.etcd.Get(ctx, "/registry/pods/"+w.fleet.prefix+"-", clientv3.WithPrefix())
	if err != nil {
		return err
	}
	stored := map[string]*corev1.Pod{}
	for _, kv := range got.Kvs {
		pod := &corev1.Pod{}
		if _, _, err := w.codec.Decode(kv.Value, nil, pod); err != nil {
			return fmt.Errorf("%s: %w", kv.Key, err)
		}
		pod.APIVersion, pod.Kind = "v1", "Pod"
		stored[string(kv.Key)] = pod
	}
	for i := range w.fleet.pods {
		pod := stored[storageKey(w.fleet.namespace(i), w.fleet.name(i))]
		if pod == nil {
			return fmt.Errorf("etcd has no pod %d: load them first", i)
		}
		w.pods = append(w.pods, pod)
	}
	return nil
}

// writeAll has worker j write the events of the pods i with i % workers == j.
func (w *eventWriter) writeAll(ctx context.Context, first, n, workers int, limiter flowcontrol.RateLimiter) error {
	queues := make([]chan int, workers)
	group, ctx := errgroup.WithContext(ctx)
	for j := range queues {
		queues[j] = make(chan int, n)
		group.Go(func() error {
			for k := range queues[j] {
				if err := w.write(ctx, k); err != nil {
					return fmt.Errorf("event %d: %w", k, err)
				}
			}
			return nil
		})
	}
	for k := first; k < first+n && ctx.Err() == nil; k++ {
		if limiter.Wait(ctx) == nil {
			queues[k%w.fleet.pods%workers] <- k
		}
	}
	for _, queue := range queues {
		close(queue)
	}
	return group.Wait()
}

func (w *eventWriter) write(ctx context.Context, k int) error {
	var encoded bytes.Buffer

	pod := w.pods[k%w.fleet.pods]
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[eventAnnotation] = fmt.Sprintf("%d.%d", k, time.Now().UnixNano())
	if err := w.codec.Encode(pod, &encoded); err != nil {
		return err
	}
	_, err := w.etcd.Put(ctx, storageKey(pod.Namespace, pod.Name), encoded.String())
	return err
}
