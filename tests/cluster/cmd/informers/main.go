// Command informers runs client-go's informers on a server and prints the checksum of their store
// each time it changes, until standard input is closed:
//
//	informers -kubeconfig FILE -client typed|dynamic|metadata -resource pods [-watchlist=false] [-accept TYPES]
//
// A line is "objects=N checksum=HEX"; the checksum is that of kinformerd --measure. With the feature
// gate WatchListClient (on by default) client-go asks for a streamed list first.
package main

import (
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

var resources = map[string]schema.GroupVersionResource{
	"pods":        {Version: "v1", Resource: "pods"},
	"configmaps":  {Version: "v1", Resource: "configmaps"},
	"deployments": {Group: "apps", Version: "v1", Resource: "deployments"},
}

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig `file`")
	client := flag.String("client", "typed", "typed, dynamic or metadata")
	resource := flag.String("resource", "pods", "pods, configmaps or deployments")
	watchList := flag.Bool("watchlist", true, "ask for streamed lists")
	accept := flag.String("accept", "", "media `types`, in place of the client's own")
	flag.Parse()
	// Gates are read from the environment when the first is asked for.
	os.Setenv("KUBE_FEATURE_WatchListClient", fmt.Sprint(*watchList))
	if err := run(*kubeconfig, *accept, *client, *resource); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, accept, client, resource string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.AcceptContentTypes = accept
	gvr, known := resources[resource]
	if !known {
		return fmt.Errorf("no resource %q here", resource)
	}
	informer, err := informerFor(config, client, gvr)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(stop)
	}()
	go informer.Run(stop)
	if !cache.WaitForCacheSync(stop, informer.HasSynced) {
		return fmt.Errorf("stopped before the informer had synced")
	}
	tell(informer.GetStore(), stop)
	return nil
}

func informerFor(config *rest.Config, client string, gvr schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
	switch client {
	case "typed":
		typed, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		generic, err := informers.NewSharedInformerFactory(typed, 0).ForResource(gvr)
		if err != nil {
			return nil, err
		}
		return generic.Informer(), nil
	case "dynamic":
		dynamicClient, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0).ForResource(gvr).Informer(), nil
	case "metadata":
		metadataClient, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return metadatainformer.NewSharedInformerFactory(metadataClient, 0).ForResource(gvr).Informer(), nil
	}
	return nil, fmt.Errorf("no client %q", client)
}

func tell(store cache.Store, stop <-chan struct{}) {
	last := ""
	for {
		if line := checksum(store); line != last {
			fmt.Println(line)
			last = line
		}
		select {
		case <-stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func checksum(store cache.Store) string {
	var lines []string
	for _, item := range store.List() {
		object, err := meta.Accessor(item)
		if err != nil {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s/%s@%s\n", object.GetNamespace(), object.GetName(), object.GetResourceVersion()))
	}
	slices.Sort(lines)
	sum := fnv.New64a()
	for _, line := range lines {
		io.WriteString(sum, line)
	}
	return fmt.Sprintf("objects=%d checksum=%016x", len(lines), sum.Sum64())
}
