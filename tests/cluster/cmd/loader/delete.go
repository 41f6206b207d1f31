package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
)

func runDelete(ctx context.Context, flags *flag.FlagSet, args []string) error {
	kubeconfig := kubeconfigFlag(flags)
	namespace := flags.String("namespace", "", "whose objects to delete")
	resource := flags.String("resource", "pods", "objects of which resource")
	selector := flags.String("selector", "", "label selector")
	finalize := flags.Bool("finalize", false, "then delete the namespace too, which nothing else does without a controller manager")
	flags.Parse(args)
	if *namespace == "" {
		return errors.New("-namespace is needed")
	}

	config, err := restConfig(*kubeconfig)
	if err != nil {
		return err
	}
	gvr, err := resourceFor(config, *resource)
	if err != nil {
		return err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	err = client.Resource(gvr).Namespace(*namespace).DeleteCollection(ctx,
		*metav1.NewDeleteOptions(0), metav1.ListOptions{LabelSelector: *selector})
	if err != nil {
		return err
	}
	if *finalize {
		typed, err := typedClient(*kubeconfig)
		if err != nil {
			return err
		}
		if err := finalizeNamespace(ctx, typed, *namespace); err != nil {
			return err
		}
	}
	fmt.Printf("namespace=%s resource=%s finalized=%t\n", *namespace, *resource, *finalize)
	return nil
}

// finalizeNamespace is the end of what the namespace controller does; objects of other resources
// stay behind.
func finalizeNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	namespaces := client.CoreV1().Namespaces()
	if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	namespace, err := namespaces.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	namespace.Spec.Finalizers = nil
	_, err = namespaces.Finalize(ctx, namespace, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
