package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const lockName = "election"

// candidate runs for office until ctx ends; a lead that begins is told.
func candidate(ctx context.Context, client *kubernetes.Clientset, name string, leads chan<- string) {
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: lockName, Namespace: namespace},
		Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: name}}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{Lock: lock, Name: name, ReleaseOnCancel: name == "first",
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { leads <- name },
			OnStoppedLeading: func() {}}})
}

func next(ctx context.Context, leads <-chan string, wanted string) error {
	select {
	case name := <-leads:
		if name != wanted {
			return fmt.Errorf("%s leads, not %s", name, wanted)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s never leads", wanted)
	}
}

// The first leads and steps down, the second takes over and falls silent, the third waits it out.
func checkElection(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := makeNamespace(ctx, client, namespace); err != nil {
		return err
	}
	leads := make(chan string, 3)
	stop := func() {}
	for i, name := range []string{"first", "second", "third"} {
		running, stopThis := context.WithCancel(ctx)
		defer stopThis()
		go candidate(running, client, name, leads)
		if i > 0 {
			time.Sleep(500 * time.Millisecond) // a candidate who would take what is held does it now
			if len(leads) != 0 {
				return fmt.Errorf("%s leads although the lease is held", <-leads)
			}
			stop()
		}
		if err := next(ctx, leads, name); err != nil {
			return err
		}
		stop = stopThis
	}
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, lockName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if *lease.Spec.HolderIdentity != "third" || *lease.Spec.LeaseTransitions != 2 {
		return fmt.Errorf("the lease says %s after %d transitions", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions)
	}
	pass("election: three candidates, each in turn")
	return nil
}
