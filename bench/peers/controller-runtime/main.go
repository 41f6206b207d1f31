// The job of examples/configmap-sync with controller-runtime: a copy of each ConfigMap labelled sync=true in every
// other namespace. Of several replicas one acts.
package main

import (
	"context"
	"log"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	owner     = "sync.example/owner"
	finalizer = "sync.example/cleanup"
)

type syncer struct{ client.Client }

func isSource(object client.Object) bool { return object.GetLabels()["sync"] == "true" }
func isCopy(object client.Object) bool   { return object.GetLabels()["sync-copy"] == "true" }

// Who loses its label is told, too.
var isOrWasSource = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return isSource(e.Object) },
	DeleteFunc: func(e event.DeleteEvent) bool { return isSource(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool { return isSource(e.ObjectOld) || isSource(e.ObjectNew) },
}

func (s *syncer) copies(ctx context.Context, key types.NamespacedName) (*corev1.ConfigMapList, error) {
	list := &corev1.ConfigMapList{}
	return list, s.List(ctx, list, client.MatchingFields{owner: key.String()})
}

func (s *syncer) cleanUp(ctx context.Context, key types.NamespacedName) error {
	list, err := s.copies(ctx, key)
	for i := range list.Items {
		if err = client.IgnoreNotFound(s.Delete(ctx, &list.Items[i])); err != nil {
			return err
		}
	}
	return err
}

// put returns whether there is one of that name that is not ours.
func (s *syncer) put(ctx context.Context, source *corev1.ConfigMap, key types.NamespacedName, space string) (bool, error) {
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: source.Name, Namespace: space,
		Labels: map[string]string{"sync-copy": "true"}, Annotations: map[string]string{owner: key.String()}},
		Data: source.Data}
	have := &corev1.ConfigMap{}
	err := s.Get(ctx, client.ObjectKeyFromObject(want), have)
	switch {
	case apierrors.IsNotFound(err):
		err = s.Create(ctx, want)
		return apierrors.IsAlreadyExists(err), client.IgnoreAlreadyExists(err)
	case err != nil:
		return false, err
	case have.Annotations[owner] != key.String():
		return true, nil
	case equality.Semantic.DeepEqual(have.Data, want.Data):
		return false, nil
	}
	have.Data = want.Data
	return false, s.Update(ctx, have)
}

func (s *syncer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	source := &corev1.ConfigMap{}
	if err := s.Get(ctx, request.NamespacedName, source); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, s.cleanUp(ctx, request.NamespacedName)
	}
	if !source.DeletionTimestamp.IsZero() || !isSource(source) {
		if err := s.cleanUp(ctx, request.NamespacedName); err != nil {
			return ctrl.Result{}, err
		}
		if controllerutil.RemoveFinalizer(source, finalizer) {
			return ctrl.Result{}, client.IgnoreNotFound(s.Update(ctx, source))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(source, finalizer) {
		return ctrl.Result{}, s.Update(ctx, source) // its event brings us back
	}
	spaces := &corev1.NamespaceList{}
	if err := s.List(ctx, spaces); err != nil {
		return ctrl.Result{}, err
	}
	result := ctrl.Result{}
	for i := range spaces.Items {
		space := &spaces.Items[i]
		if space.Name == source.Namespace || !space.DeletionTimestamp.IsZero() {
			continue
		}
		foreign, err := s.put(ctx, source, request.NamespacedName, space.Name)
		if err != nil {
			return ctrl.Result{}, err
		}
		if foreign {
			result.RequeueAfter = time.Minute
		}
	}
	return result, nil
}

func ownerOf(_ context.Context, object client.Object) []reconcile.Request {
	space, name, found := strings.Cut(object.GetAnnotations()[owner], "/")
	if !isCopy(object) || !found {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: space, Name: name}}}
}

func (s *syncer) allSources(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
	list := &corev1.ConfigMapList{}
	if err := s.List(ctx, list, client.MatchingLabels{"sync": "true"}); err != nil {
		return nil
	}
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctrl.SetLogger(zap.New())
	config := ctrl.GetConfigOrDie()
	config.QPS, config.Burst = 50, 100 // as kinformer's; the default is 20 and 30

	manager, err := ctrl.NewManager(config, ctrl.Options{LeaderElection: true, LeaderElectionID: "configmap-sync",
		LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true})
	must(err)
	must(manager.GetFieldIndexer().IndexField(context.Background(), &corev1.ConfigMap{}, owner,
		func(object client.Object) []string { return []string{object.GetAnnotations()[owner]} }))
	s := &syncer{manager.GetClient()}
	must(ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}, builder.WithPredicates(isOrWasSource)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(ownerOf)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(s.allSources)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(s))
	must(manager.Start(ctrl.SetupSignalHandler()))
}
