//! The job of examples/configmap-sync with kube-rs: a copy of each ConfigMap labelled sync=true in every other
//! namespace. One replica: kube-rs has no leader election of its own.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::finalizer::{finalizer, Event};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{reflector, watcher, WatchStreamExt};
use kube::{Api, Client, ResourceExt};

const OWNER: &str = "sync.example/owner";
const FINALIZER: &str = "sync.example/cleanup";

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error(transparent)]
    Finalizer(#[from] Box<kube::runtime::finalizer::Error<Error>>),
}

struct Context {
    client: Client,
    copies: Store<ConfigMap>,
    namespaces: Store<Namespace>,
}

fn key_of(object: &ConfigMap) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

async fn apply(source: Arc<ConfigMap>, context: &Context) -> Result<Action, Error> {
    let (key, name, mut foreign) = (key_of(&source), source.name_any(), false);

    for namespace in context.namespaces.state() {
        let space = namespace.name_any();
        if Some(&space) == source.namespace().as_ref() || namespace.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let api: Api<ConfigMap> = Api::namespaced(context.client.clone(), &space);
        let have = match context.copies.get(&ObjectRef::new(&name).within(&space)) {
            Some(copy) => Some((*copy).clone()),
            None => api.get_opt(&name).await?,
        };
        if let Some(have) = have {
            if have.annotations().get(OWNER) != Some(&key) {
                foreign = true;
                continue;
            }
            if have.data == source.data {
                continue;
            }
        }
        let want = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "data": source.data, "metadata":
            {"name": name, "labels": {"sync-copy": "true"}, "annotations": {OWNER: key}}});
        api.patch(&name, &PatchParams::apply("configmap-sync").force(), &Patch::Apply(&want)).await?;
    }
    Ok(if foreign { Action::requeue(Duration::from_secs(60)) } else { Action::await_change() })
}

async fn cleanup(source: Arc<ConfigMap>, context: &Context) -> Result<Action, Error> {
    let key = key_of(&source);

    for copy in context.copies.state().iter().filter(|copy| copy.annotations().get(OWNER) == Some(&key)) {
        let api: Api<ConfigMap> = Api::namespaced(context.client.clone(), &copy.namespace().unwrap_or_default());
        match api.delete(&copy.name_any(), &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
    }
    Ok(Action::await_change())
}

async fn reconcile(source: Arc<ConfigMap>, context: Arc<Context>) -> Result<Action, Error> {
    let api: Api<ConfigMap> = Api::namespaced(context.client.clone(), &source.namespace().unwrap_or_default());

    finalizer(&api, FINALIZER, source, |event| async {
        match event {
            Event::Apply(source) => apply(source, &context).await,
            Event::Cleanup(source) => cleanup(source, &context).await,
        }
    })
    .await
    .map_err(|error| Box::new(error).into())
}

fn owner_of(copy: ConfigMap) -> Option<ObjectRef<ConfigMap>> {
    let (space, name) = copy.annotations().get(OWNER)?.split_once('/')?;
    Some(ObjectRef::new(name).within(space))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::try_default().await?;
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let only_copies = watcher::Config::default().labels("sync-copy=true");
    let (copies, copy_writer) = reflector::store();
    let (namespaces, namespace_writer) = reflector::store();
    let copy_stream = watcher(maps.clone(), only_copies).default_backoff().reflect(copy_writer).touched_objects();
    let namespace_stream =
        watcher(Api::all(client.clone()), Default::default()).default_backoff().reflect(namespace_writer).touched_objects();
    let controller = Controller::new(maps.clone(), watcher::Config::default().labels("sync=true"));
    let sources = controller.store();

    maps.list(&ListParams::default().limit(1)).await?;
    controller
        .with_config(Config::default().concurrency(4))
        .watches_stream(copy_stream, owner_of)
        .watches_stream(namespace_stream, move |_| {
            sources.state().iter().map(|source| ObjectRef::from_obj(&**source)).collect::<Vec<_>>()
        })
        .shutdown_on_signal()
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(200)), Arc::new(Context { client, copies, namespaces }))
        .for_each(|result| async move {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        })
        .await;
    Ok(())
}
