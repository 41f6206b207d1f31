package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// measure has every worker patch and get an object of its own, and prints how long writes, the reads
// behind them, and both together take.
func measure(workers []worker, pairs int) {
	var lock sync.Mutex
	var group sync.WaitGroup
	var writes, reads, both []time.Duration
	stale := 0
	ctx := context.Background()
	for _, w := range workers {
		_ = w.maps.Delete(ctx, w.name, metav1.DeleteOptions{})
		_, err := w.maps.Create(ctx, w.object(w.name, ""), metav1.CreateOptions{})
		must(err)
	}
	for _, w := range workers {
		group.Go(func() {
			for i := range (pairs + len(workers) - 1) / len(workers) {
				value := fmt.Sprint(i)
				began := time.Now()
				w.patch(ctx, w.name, `{"data":{"value":"`+value+`"}}`)
				written := time.Now()
				found := w.get(ctx, w.name)
				read := time.Now()
				lock.Lock()
				if found == nil || found.Data["value"] != value {
					stale++
				}
				writes = append(writes, written.Sub(began))
				reads = append(reads, read.Sub(written))
				both = append(both, read.Sub(began))
				lock.Unlock()
			}
		})
	}
	group.Wait()
	fmt.Printf("write %s  read %s  pair %s  stale %d of %d\n", percentiles(writes), percentiles(reads),
		percentiles(both), stale, len(both))
}

func percentiles(times []time.Duration) string {
	slices.Sort(times)
	at := func(share float64) float64 {
		return float64(times[int(share*float64(len(times)-1))].Microseconds()) / 1000
	}
	return fmt.Sprintf("p50=%.1f p99=%.1f ms", at(0.5), at(0.99))
}
