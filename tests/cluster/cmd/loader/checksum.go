package main

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// runChecksum is the reference for what kinformerd --measure prints. It sorts whole lines, as
// `LC_ALL=C sort` does; by key alone the order is another: a/b-c sorts after a/b, its line before.
func runChecksum(ctx context.Context, flags *flag.FlagSet, args []string) error {
	kubeconfig := kubeconfigFlag(flags)
	resource := flags.String("resource", "pods", "kubectl's spelling: pods, deployments.apps, deployments.v1.apps")
	namespace := flags.String("namespace", "", "only this namespace")
	selector := flags.String("selector", "", "label selector")
	fields := flags.String("field-selector", "", "field selector")
	lines := flags.Bool("lines", false, "print the lines the checksum is made of, too")
	flags.Parse(args)

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
	list, err := client.Resource(gvr).Namespace(*namespace).List(ctx,
		metav1.ListOptions{LabelSelector: *selector, FieldSelector: *fields})
	if err != nil {
		return err
	}

	sorted := sortedLines(list.Items)
	sum := fnv.New64a()
	for _, line := range sorted {
		io.WriteString(sum, line)
		if *lines {
			fmt.Print(line)
		}
	}
	fmt.Printf("resource=%s objects=%d resource_version=%s checksum=%016x\n",
		*resource, len(sorted), list.ResourceVersion, sum.Sum64())
	return nil
}

func sortedLines(items []metav1.PartialObjectMetadata) []string {
	lines := make([]string, len(items))
	for i := range items {
		lines[i] = fmt.Sprintf("%s/%s@%s\n", items[i].Namespace, items[i].Name, items[i].ResourceVersion)
	}
	slices.Sort(lines)
	return lines
}
