package main

import (
	"context"
	"flag"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
)

const stepAnnotation = "churn.example.com/step"

type churnCounts struct {
	created, updated, labelled, statuses, deleted, errors int64
}

func (c *churnCounts) add(other churnCounts) {
	c.created += other.created
	c.updated += other.updated
	c.labelled += other.labelled
	c.statuses += other.statuses
	c.deleted += other.deleted
	c.errors += other.errors
}

func counted(count *int64, err error) error {
	if err == nil {
		*count++
	}
	return err
}

// churner owns the pods i with i % stride == first. Each pod's history follows from the seed and from
// which pods there were at the start, whatever the other workers do.
type churner struct {
	client  kubernetes.Interface
	fleet   *fleet
	random  *mathrand.Rand
	first   int
	stride  int
	present map[int]bool
	steps   int
	counts  churnCounts
}

func runChurn(ctx context.Context, flags *flag.FlagSet, args []string) error {
	var f fleet
	f.flags(flags, 200)
	kubeconfig := kubeconfigFlag(flags)
	rate := flags.Float64("rate", 50, "writes a second")
	duration := flags.Duration("duration", 10*time.Second, "how long")
	seed := flags.Uint64("seed", 1, "decides what happens to each pod, and in which order")
	workers := flags.Int("workers", 8, "how many writes are under way at once, at most")
	keepGoing := flags.Bool("keep-going", false, "count errors and go on, as while the apiserver restarts")
	flags.Parse(args)

	if err := f.read(); err != nil {
		return err
	}
	client, err := typedClient(*kubeconfig)
	if err != nil {
		return err
	}
	if err := makeNamespaces(ctx, client, &f); err != nil {
		return err
	}
	churners, err := makeChurners(ctx, client, &f, *seed, min(*workers, f.pods))
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, *duration)
	defer cancel()
	limiter := flowcontrol.NewTokenBucketRateLimiter(float32(*rate), 1)
	var group errgroup.Group
	began := time.Now()
	for _, c := range churners {
		group.Go(func() error { return c.run(ctx, limiter, *keepGoing) })
	}
	err = group.Wait()

	var counts churnCounts
	for _, c := range churners {
		counts.add(c.counts)
	}
	fmt.Printf("seconds=%.1f created=%d updated=%d labelled=%d statuses=%d deleted=%d errors=%d\n",
		time.Since(began).Seconds(), counts.created, counts.updated, counts.labelled,
		counts.statuses, counts.deleted, counts.errors)
	return err
}

func makeChurners(ctx context.Context, client kubernetes.Interface, f *fleet, seed uint64, n int) ([]*churner, error) {
	names := map[string]bool{}
	for namespace := range f.namespaces {
		list, err := client.CoreV1().Pods(fmt.Sprintf("%s-%d", f.prefix, namespace)).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			names[list.Items[i].Name] = true
		}
	}
	churners := make([]*churner, n)
	for w := range churners {
		present := map[int]bool{}
		for i := w; i < f.pods; i += n {
			present[i] = names[f.name(i)]
		}
		churners[w] = &churner{client: client, fleet: f, random: mathrand.New(mathrand.NewPCG(seed, uint64(w))),
			first: w, stride: n, present: present}
	}
	return churners, nil
}

// run steps until the time is over. A write that has begun is finished, so that the counts are true.
func (c *churner) run(ctx context.Context, limiter flowcontrol.RateLimiter, keepGoing bool) error {
	owned := (c.fleet.pods - c.first + c.stride - 1) / c.stride
	for limiter.Wait(ctx) == nil {
		i := c.first + c.random.IntN(owned)*c.stride
		write, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		err := c.step(write, i)
		cancel()
		switch {
		case err == nil:
		case apierrors.IsAlreadyExists(err):
			c.present[i] = true
		case apierrors.IsNotFound(err):
			c.present[i] = false
		case !keepGoing:
			return err
		default:
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			c.counts.errors++
		}
	}
	return nil
}

// step does one write to pod i; a replacement under the same name is two.
func (c *churner) step(ctx context.Context, i int) error {
	if !c.present[i] {
		return c.create(ctx, i)
	}
	c.steps++
	switch draw := c.random.IntN(100); {
	case draw < 45:
		return c.patchStatus(ctx, i)
	case draw < 65:
		return counted(&c.counts.updated, c.patch(ctx, i, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, stepAnnotation, c.steps)))
	case draw < 80:
		return counted(&c.counts.labelled, c.patch(ctx, i, fmt.Sprintf(`{"metadata":{"labels":{"app":%q}}}`, apps[c.random.IntN(len(apps))])))
	case draw < 92:
		return c.delete(ctx, i)
	default:
		if err := c.delete(ctx, i); err != nil {
			return err
		}
		return c.create(ctx, i)
	}
}

func (c *churner) create(ctx context.Context, i int) error {
	pod := c.fleet.pod(i)
	_, err := c.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, asController)
	if err == nil {
		c.present[i] = true
	}
	return counted(&c.counts.created, err)
}

// delete is without grace: there is no kubelet that would end the pod.
func (c *churner) delete(ctx context.Context, i int) error {
	pods := c.client.CoreV1().Pods(c.fleet.namespace(i))
	err := pods.Delete(ctx, c.fleet.name(i), *metav1.NewDeleteOptions(0))
	if err == nil {
		c.present[i] = false
	}
	return counted(&c.counts.deleted, err)
}

func (c *churner) patch(ctx context.Context, i int, patch string, subresources ...string) error {
	_, err := c.client.CoreV1().Pods(c.fleet.namespace(i)).Patch(ctx, c.fleet.name(i),
		types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "churn"}, subresources...)
	return err
}

func (c *churner) patchStatus(ctx context.Context, i int) error {
	ready := []string{"True", "False"}[c.random.IntN(2)]
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"message":"step %d"}]}}`, ready, c.steps)
	return counted(&c.counts.statuses, c.patch(ctx, i, patch, "status"))
}
