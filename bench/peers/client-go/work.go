package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// What ../../store_work.h has, in the same order, with client-go's own calls.

const (
	step           = 7919
	listsMin       = 3
	listsTime      = 500 * time.Millisecond
	nGets          = 1000000
	nByIndex       = 20000
	updatesASecond = 20000
	updatesATick   = 20
	nPaced         = 40000
	saturatedTime  = time.Second
	readerPause    = 20 * time.Millisecond
)

// work does what the line asks for, and returns false if that is none of these.
func work(informer cache.SharedIndexInformer, stop func(), line string) bool {
	name, argument, _ := strings.Cut(line, " ")
	switch name {
	case "lists":
		lists(informer.GetIndexer(), argument)
	case "gets":
		gets(informer.GetIndexer())
	case "writes":
		nReaders, _ := strconv.Atoi(argument)
		writes(informer.GetIndexer(), nReaders)
	case "stop":
		begun := time.Now()
		stop()
		fmt.Printf("stop ns=%d\n", time.Since(begun).Nanoseconds())
	default:
		return false
	}
	return true
}

// cpu is of all threads: what the collector does counts, and what others on the machine do does not.
func cpu() int64 {
	var now unix.Timespec
	check(unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now))
	return now.Nano()
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Lists.

func list(store cache.Indexer, namespace string, selector labels.Selector) int {
	var found []any
	check(cache.ListAllByNamespace(store, namespace, selector, func(object any) { found = append(found, object) }))
	return len(found)
}

func lists(store cache.Indexer, text string) {
	selector, err := labels.Parse(text)
	check(err)
	n, found, begun, begunCPU := 0, 0, time.Now(), cpu()
	for ; n < listsMin || time.Since(begun) < listsTime; n++ {
		found += list(store, "", selector)
	}
	fmt.Printf("lists found=%d ns=%d\n", found/n, (cpu()-begunCPU)/int64(n))
}

// Gets.

func getAll(store cache.Indexer) int64 {
	keys := store.ListKeys()
	slices.Sort(keys)
	begun := cpu()
	for i := range nGets {
		if _, exists, err := store.GetByKey(keys[i*step%len(keys)]); err != nil || !exists {
			panic("a key without its object")
		}
	}
	return (cpu() - begun) / nGets
}

func findAll(store cache.Indexer) (perCall int64, found int) {
	values := store.ListIndexFuncValues("hash")
	slices.Sort(values)
	begun := cpu()
	for i := range nByIndex {
		objects, err := store.ByIndex("hash", values[i*step%len(values)])
		check(err)
		found += len(objects)
	}
	return (cpu() - begun) / nByIndex, found / nByIndex
}

func byHash(object any) ([]string, error) {
	accessor, err := meta.Accessor(object)
	check(err)
	return []string{accessor.GetLabels()["pod-template-hash"]}, nil
}

func gets(store cache.Indexer) {
	get := getAll(store)
	check(store.AddIndexers(cache.Indexers{"hash": byHash}))
	find, found := findAll(store)
	fmt.Printf("gets get_ns=%d by_index_ns=%d found=%d\n", get, find, found)
}

// Writes.

type writing struct {
	store                    cache.Indexer
	all                      []any
	namespaces               []string
	next                     int
	isOver                   atomic.Bool
	nLists, nListed, readers atomic.Int64
}

func (w *writing) readOn() {
	for at := int(w.readers.Add(1) - 1); !w.isOver.Load(); at++ {
		w.nListed.Add(int64(list(w.store, w.namespaces[at%len(w.namespaces)], labels.Everything())))
		w.nLists.Add(1)
		time.Sleep(readerPause)
	}
}

func (w *writing) writeOne() {
	check(w.store.Update(w.all[w.next]))
	w.next = (w.next + step) % len(w.all)
}

// writePaced goes by the clock: what was late is made up for at once.
func (w *writing) writePaced() []int64 {
	times, begun := make([]int64, nPaced), time.Now()
	for n := range times {
		due := begun.Add(time.Duration(n/updatesATick*updatesATick) * (time.Second / updatesASecond))
		for time.Now().Before(due) {
			time.Sleep(time.Until(due))
		}
		at := time.Now()
		w.writeOne()
		times[n] = time.Since(at).Nanoseconds()
	}
	slices.Sort(times)
	return times
}

func (w *writing) writeSaturated() int {
	n := 0
	for begun := time.Now(); time.Since(begun) < saturatedTime; n++ {
		w.writeOne()
	}
	return n
}

func (w *writing) writeBeside(nReaders int) {
	var all sync.WaitGroup
	begun := time.Now()
	for range nReaders {
		all.Go(w.readOn)
	}
	times := w.writePaced()
	nLists, nListed, readTime := w.nLists.Load(), w.nListed.Load(), time.Since(begun)
	nSaturated := w.writeSaturated()
	w.isOver.Store(true)
	all.Wait()
	fmt.Printf("writes p50_ns=%d p99_ns=%d per_s=%d lists_per_s=%.0f found=%d\n", times[nPaced/2], times[nPaced/100*99],
		nSaturated, float64(nLists)/readTime.Seconds(), nListed/max(nLists, 1))
}

func writes(from cache.Indexer, nReaders int) {
	w := &writing{all: from.List()}
	w.store = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	check(w.store.Replace(w.all, "1"))
	w.namespaces = w.store.ListIndexFuncValues(cache.NamespaceIndex)
	slices.Sort(w.namespaces)
	w.writeBeside(nReaders)
}
