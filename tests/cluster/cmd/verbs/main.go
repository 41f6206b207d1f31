// Command verbs does with client-go what tests/clients/kubeconfig.py asks of every client:
//
//	verbs KUBECONFIG NAMESPACE read|write NAME
//
// read prints the names of the config maps, the value of the one called "one", "watching", and the
// first event of the one called NAME; write makes that one and prints its name, or the status code
// that it was refused with.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

func read(ctx context.Context, maps clientv1.ConfigMapInterface, name string) error {
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	names := []string{}
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	fmt.Println(strings.Join(names, " "))
	one, err := maps.Get(ctx, "one", metav1.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Println(one.Data["value"])
	watch, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	fmt.Println("watching")
	for event := range watch.ResultChan() {
		if found, is := event.Object.(*corev1.ConfigMap); is && found.Name == name {
			fmt.Println(event.Type, found.Name)
			return nil
		}
	}
	return errors.New("the watch ended")
}

func write(ctx context.Context, maps clientv1.ConfigMapInterface, name string) error {
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	var refusal apierrors.APIStatus
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Status().Code)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Println(made.Name)
	return nil
}

func run(kubeconfig, namespace, verb, name string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if verb == "write" {
		return write(context.Background(), client.CoreV1().ConfigMaps(namespace), name)
	}
	return read(context.Background(), client.CoreV1().ConfigMaps(namespace), name)
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
