package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	finalizer = "test.kinformer.dev/clean"
	nWidgets  = 5
)

var widgetKind = schema.GroupVersionKind{Group: "test.kinformer.dev", Version: "v1", Kind: "Widget"}

func widget(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(widgetKind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + widgetKind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: widgetKind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": open, "status": open}}}}}}}
}

func makeDefinition(ctx context.Context, api client.Client) error {
	object := definition()
	if err := api.Create(ctx, object); err != nil {
		return err
	}
	return until(ctx, "the definition is established", func() (bool, error) {
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err
		}
		for _, condition := range object.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
}

// reconciler gives each widget a config map with its size, and says so in its status.
type reconciler struct {
	client.Client
	scheme *runtime.Scheme
}

func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := widget("")
	if err := r.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !object.GetDeletionTimestamp().IsZero() {
		if controllerutil.RemoveFinalizer(object, finalizer) {
			return reconcile.Result{}, r.Update(ctx, object)
		}
		return reconcile.Result{}, nil
	}
	if controllerutil.AddFinalizer(object, finalizer) {
		return reconcile.Result{}, r.Update(ctx, object)
	}
	size, _, _ := unstructured.NestedString(object.Object, "spec", "size")
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-" + object.GetName()}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, made, func() error {
		made.Data = map[string]string{"size": size}
		return controllerutil.SetControllerReference(object, made, r.scheme)
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	before := object.DeepCopy()
	if err := unstructured.SetNestedField(object.Object, size, "status", "size"); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.Status().Patch(ctx, object, client.MergeFrom(before))
}

func newManager(config *rest.Config, scheme *runtime.Scheme) (ctrl.Manager, error) {
	lease, deadline, retry := 3*time.Second, 2*time.Second, 200*time.Millisecond
	skip := true
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "simclient", LeaderElectionNamespace: namespace,
		LeaderElectionReleaseOnCancel: true, LeaseDuration: &lease, RenewDeadline: &deadline, RetryPeriod: &retry})
	if err != nil {
		return nil, err
	}
	err = ctrl.NewControllerManagedBy(manager).For(widget("")).Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{SkipNameValidation: &skip}).Complete(&reconciler{manager.GetClient(), scheme})
	return manager, err
}

func checkManager(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return err
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	err = api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := makeDefinition(ctx, api); err != nil {
		return err
	}
	for i := range 2 {
		err := runManager(ctx, config, scheme, func(ctx context.Context) error { return useWidgets(ctx, api, i) })
		if err != nil {
			return err
		}
	}
	return api.Delete(ctx, definition())
}

// runManager runs one while `use` does, and ends it: the next one finds the lease free.
func runManager(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, use func(context.Context) error) error {
	manager, err := newManager(config, scheme)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	select {
	case <-manager.Elected():
	case err := <-ended:
		return fmt.Errorf("the manager ended: %w", err)
	case <-ctx.Done():
		return errors.New("the manager is never elected")
	}
	err = use(ctx)
	stop()
	return errors.Join(err, <-ended)
}

func setSize(ctx context.Context, api client.Client, name, size string) error {
	object := widget(name)
	_, err := controllerutil.CreateOrUpdate(ctx, api, object, func() error {
		return unstructured.SetNestedField(object.Object, size, "spec", "size")
	})
	return err
}

func useWidgets(ctx context.Context, api client.Client, round int) error {
	for _, size := range []string{"small", "large"} {
		for i := range nWidgets {
			name := fmt.Sprintf("w%d", i)
			err := until(ctx, "setting a size", func() (bool, error) { // the reconciler may be quicker
				err := setSize(ctx, api, name, size)
				return err == nil, err
			})
			if err != nil {
				return err
			}
		}
		if err := waitForSize(ctx, api, size); err != nil {
			return err
		}
	}
	pass("manager: round %d: each widget has its config map", round)
	if err := replaceOne(ctx, api); err != nil {
		return err
	}
	pass("manager: round %d: one that was deleted is made again", round)
	if err := endAll(ctx, api); err != nil {
		return err
	}
	pass("manager: round %d: config maps go with their widgets", round)
	return nil
}

func waitForSize(ctx context.Context, api client.Client, size string) error {
	return until(ctx, "size "+size, func() (bool, error) {
		for i := range nWidgets {
			object, made := widget(""), &corev1.ConfigMap{}
			err := errors.Join(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fmt.Sprintf("w%d", i)}, object),
				api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fmt.Sprintf("of-w%d", i)}, made))
			said, _, _ := unstructured.NestedString(object.Object, "status", "size")
			if err != nil || said != size || made.Data["size"] != size || !metav1.IsControlledBy(made, object) {
				return false, err
			}
		}
		return true, nil
	})
}

func replaceOne(ctx context.Context, api client.Client) error {
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-w0"}}
	if err := api.Get(ctx, client.ObjectKeyFromObject(made), made); err != nil {
		return err
	}
	before := made.UID
	if err := api.Delete(ctx, made, client.Preconditions{UID: &before}); err != nil {
		return err
	}
	return until(ctx, "the config map comes back", func() (bool, error) {
		err := api.Get(ctx, client.ObjectKeyFromObject(made), made)
		return err == nil && made.UID != before, err
	})
}

func endAll(ctx context.Context, api client.Client) error {
	if err := api.DeleteAllOf(ctx, widget(""), client.InNamespace(namespace)); err != nil {
		return err
	}
	return until(ctx, "widgets and config maps are gone", func() (bool, error) {
		widgets, made := &unstructured.UnstructuredList{}, &corev1.ConfigMapList{}
		widgets.SetGroupVersionKind(widgetKind)
		if err := errors.Join(api.List(ctx, widgets, client.InNamespace(namespace)), api.List(ctx, made, client.InNamespace(namespace))); err != nil {
			return false, err
		}
		for _, item := range made.Items {
			if metav1.GetControllerOf(&item) != nil {
				return false, nil
			}
		}
		return len(widgets.Items) == 0, nil
	})
}
