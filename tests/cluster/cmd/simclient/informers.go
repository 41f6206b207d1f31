package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	namespace = "simclient"
	objects   = 12 // names that changes choose from
)

var followed = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
	{Version: "v1", Resource: "services"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Version: "v1", Resource: "pods"}, // that the deployments get
}

type follower struct {
	name     string
	gvr      schema.GroupVersionResource
	informer cache.SharedIndexInformer
}

func newFollowers(config *rest.Config) ([]follower, error) {
	typed, err := kubernetes.NewForConfig(withContent(config, runtime.ContentTypeProtobuf))
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var all []follower
	for _, gvr := range followed {
		generic, err := informers.NewSharedInformerFactory(typed, 0).ForResource(gvr)
		if err != nil {
			return nil, err
		}
		all = append(all, follower{"typed", gvr, generic.Informer()},
			follower{"dynamic", gvr, dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0).ForResource(gvr).Informer()},
			follower{"metadata", gvr, metadatainformer.NewSharedInformerFactory(metadataClient, 0).ForResource(gvr).Informer()})
	}
	return all, nil
}

func withContent(config *rest.Config, contentType string) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = contentType
	if contentType == runtime.ContentTypeProtobuf {
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	return config
}

// change creates, updates or deletes what a random name stands for.
type change func(context.Context, *kubernetes.Clientset, *rand.Rand, string) error

func changeConfigMap(ctx context.Context, client *kubernetes.Clientset, random *rand.Rand, name string) error {
	api := client.CoreV1().ConfigMaps(namespace)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": "simclient"}},
		Data: map[string]string{"value": fmt.Sprint(random.Uint64())}, BinaryData: map[string][]byte{"raw": {0, 1, 255}}}
	switch random.IntN(3) {
	case 0:
		_, err := api.Create(ctx, object, metav1.CreateOptions{})
		return err
	case 1:
		_, err := api.Update(ctx, object, metav1.UpdateOptions{})
		return err
	}
	return api.Delete(ctx, name, metav1.DeleteOptions{})
}

func changeSecret(ctx context.Context, client *kubernetes.Clientset, random *rand.Rand, name string) error {
	api := client.CoreV1().Secrets(namespace)
	there, err := api.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = api.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name},
			StringData: map[string]string{"password": fmt.Sprint(random.Uint64())}}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	if random.IntN(3) == 0 {
		return api.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(there.UID))})
	}
	there.Data["more"] = []byte(fmt.Sprint(random.Uint64()))
	_, err = api.Update(ctx, there, metav1.UpdateOptions{})
	return err
}

func changeService(ctx context.Context, client *kubernetes.Clientset, random *rand.Rand, name string) error {
	api := client.CoreV1().Services(namespace)
	if random.IntN(2) == 0 {
		return api.Delete(ctx, name, metav1.DeleteOptions{})
	}
	_, err := api.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}}}},
		metav1.CreateOptions{})
	return err
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &replicas,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example/main:1"}}}}}}
}

func changeDeployment(ctx context.Context, client *kubernetes.Clientset, random *rand.Rand, name string) error {
	api := client.AppsV1().Deployments(namespace)
	switch random.IntN(4) {
	case 0:
		background := metav1.DeletePropagationBackground
		return api.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	case 1:
		scale, err := api.GetScale(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		scale.Spec.Replicas = random.Int32N(4)
		_, err = api.UpdateScale(ctx, name, scale, metav1.UpdateOptions{})
		return err
	}
	_, err := api.Create(ctx, deployment(name, random.Int32N(3)), metav1.CreateOptions{})
	return err
}

func makeChanges(ctx context.Context, client *kubernetes.Clientset, random *rand.Rand) error {
	kinds := []change{changeConfigMap, changeSecret, changeService, changeDeployment}
	for range *changes {
		kind := random.IntN(len(kinds))
		err := kinds[kind](ctx, client, random, fmt.Sprintf("o%d", random.IntN(objects)))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// held is what an informer, or the server, has: resourceVersions by keys.
type held map[string]string

func (have held) add(item any) {
	if object, err := meta.Accessor(item); err == nil {
		have[object.GetNamespace()+"/"+object.GetName()] = object.GetResourceVersion()
	}
}

func heldBy(store cache.Store) held {
	have := held{}
	for _, item := range store.List() {
		have.add(item)
	}
	return have
}

func onServer(ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource) (held, error) {
	list, err := client.Resource(gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	have := held{}
	for i := range list.Items {
		have.add(&list.Items[i])
	}
	return have, nil
}

func same(a, b held) bool {
	if len(a) != len(b) {
		return false
	}
	for key, version := range a {
		if b[key] != version {
			return false
		}
	}
	return true
}

func makeNamespace(ctx context.Context, client *kubernetes.Clientset, name string) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Informers of three kinds follow what two clients write at once, one in JSON and one in protobuf.
func checkInformers(ctx context.Context, config *rest.Config) error {
	all, err := newFollowers(config)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	defer close(stop)
	for _, each := range all {
		go each.informer.Run(stop)
	}
	failures := make(chan error)
	for i, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		client, err := kubernetes.NewForConfig(withContent(config, contentType))
		if err != nil {
			return err
		}
		if err := makeNamespace(ctx, client, namespace); err != nil {
			return fmt.Errorf("%s: %w", contentType, err)
		}
		go func() {
			err := makeChanges(ctx, client, rand.New(rand.NewPCG(*seed, uint64(i))))
			if err != nil {
				err = fmt.Errorf("%s: %w", contentType, err)
			}
			failures <- err
		}()
	}
	if err := errors.Join(<-failures, <-failures); err != nil {
		return err
	}
	return compareAll(ctx, config, all)
}

func compareAll(ctx context.Context, config *rest.Config, all []follower) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, each := range all {
		n := 0
		err := until(ctx, each.name+" informer of "+each.gvr.Resource, func() (bool, error) {
			have, err := onServer(ctx, client, each.gvr)
			n = len(have)
			return err == nil && same(heldBy(each.informer.GetStore()), have), err
		})
		if err != nil {
			return err
		}
		pass("informers: %s %s hold what the server has, %d", each.name, each.gvr.Resource, n)
	}
	return nil
}
