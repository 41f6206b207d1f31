package main

import (
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

func kubeconfigFlag(flags *flag.FlagSet) *string {
	return flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig `file`")
}

// restConfig is without client-go's own rate limit: the server and the number of workers set the
// pace.
func restConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// typedClient talks protobuf.
func typedClient(kubeconfig string) (*kubernetes.Clientset, error) {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	return kubernetes.NewForConfig(config)
}

// resourceFor resolves kubectl's spelling: pods, deployments.apps, deployments.v1.apps.
func resourceFor(config *rest.Config, spelling string) (schema.GroupVersionResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	full, group := schema.ParseResourceArg(spelling)
	if full != nil {
		if found, err := mapper.ResourceFor(*full); err == nil {
			return found, nil
		}
	}
	return mapper.ResourceFor(group.WithVersion(""))
}
