//! A client of bench/ (bench/README.md has what all of them do) with kube-rs:
//!
//!     pods FLAVOUR INITIAL KUBECONFIG N_EVENTS TIMES
//!
//! FLAVOUR is typed or dynamic; INITIAL is default (a list, in pages) or watchlist.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::{env, fs, hash, mem};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::reflector::{self, Lookup, ObjectRef, Store};
use kube::runtime::watcher::{self, watcher, Event};
use kube::{Api, Client, Config, Resource, ResourceExt};
use serde::de::DeserializeOwned;

trait Phase {
    fn phase(&self) -> &str;
}

impl Phase for Pod {
    fn phase(&self) -> &str {
        self.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("")
    }
}

impl Phase for DynamicObject {
    fn phase(&self) -> &str {
        self.data.pointer("/status/phase").and_then(|phase| phase.as_str()).unwrap_or("")
    }
}

/// What the handler was told. Others only read the counters.
struct Told {
    n: AtomicU64,
    sum: AtomicU64,
}

impl Told {
    fn add(&self, pod: &(impl ResourceExt + Phase)) {
        let (name, uid, rv) = (pod.name_any(), pod.uid().unwrap_or_default(), pod.resource_version().unwrap_or_default());
        let mut hash = 0xcbf29ce484222325u64;
        for text in [&name, &uid, &rv, pod.phase()] {
            for byte in text.bytes().chain([b'\n']) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x100000001b3);
            }
        }
        self.sum.store(self.sum.load(Relaxed).wrapping_add(hash), Relaxed);
        self.n.store(self.n.load(Relaxed) + 1, Relaxed);
    }

    /// Prints what was used so far; `objects` are counted behind it.
    fn mark(&self, name: &str, objects: impl FnOnce() -> usize) {
        let (now, cpu_us) = (monotonic_ns(), cpu_us());
        let (n, sum) = (self.n.load(Relaxed), self.sum.load(Relaxed));
        println!("{name} at_ns={now} cpu_us={cpu_us} told={n} sum={sum:016x} objects={}", objects());
    }
}

fn monotonic_ns() -> i64 {
    let mut now: libc::timespec = unsafe { mem::zeroed() };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

fn cpu_us() -> i64 {
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    [usage.ru_utime, usage.ru_stime].iter().map(|time| time.tv_sec * 1_000_000 + time.tv_usec).sum()
}

/// The store of kube-rs has no indices: by namespace, as the others have one.
struct Index<K: Lookup + 'static>(HashMap<String, HashSet<ObjectRef<K>>>)
where
    K::DynamicType: hash::Hash + Eq;

impl<K: Lookup + 'static> Index<K>
where
    K::DynamicType: hash::Hash + Eq + Clone,
{
    fn insert(&mut self, pod: &K, kind: &K::DynamicType) {
        let namespace = pod.namespace().unwrap_or_default();
        match self.0.get_mut(namespace.as_ref()) {
            Some(own) => own.insert(pod.to_object_ref(kind.clone())),
            None => self.0.entry(namespace.into_owned()).or_default().insert(pod.to_object_ref(kind.clone())),
        };
    }

    fn remove(&mut self, pod: &K, kind: &K::DynamicType) {
        if let Some(own) = self.0.get_mut(pod.namespace().unwrap_or_default().as_ref()) {
            own.remove(&pod.to_object_ref(kind.clone()));
        }
    }
}

struct Events {
    n: usize,
    times: Vec<(String, i64)>,
    path: String,
}

impl Events {
    fn take(&mut self, told: &Told, rv: Option<String>) {
        if self.times.len() == self.n {
            return;
        }
        self.times.push((rv.unwrap_or_default(), monotonic_ns()));
        if self.times.len() == self.n / 10 {
            told.mark("warm", || 0);
        } else if self.times.len() == self.n {
            told.mark("done", || 0);
            let mut file = BufWriter::new(fs::File::create(&self.path).expect("TIMES"));
            for (rv, ns) in &self.times {
                writeln!(file, "{rv} {ns}").expect("TIMES");
            }
            file.flush().expect("TIMES");
            println!("written");
        }
    }
}

async fn run<K>(api: Api<K>, kind: K::DynamicType, config: watcher::Config, mut events: Events)
where
    K: Resource + Phase + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    K::DynamicType: hash::Hash + Eq + Clone + Send + Sync,
{
    let told = Arc::new(Told { n: AtomicU64::new(0), sum: AtomicU64::new(0) });
    let writer = reflector::store::Writer::new(kind.clone());
    let store = writer.as_reader();
    let mut stream = reflector::reflector(writer, watcher(api, config)).boxed();
    let (mut index, mut is_synced) = (Index(HashMap::new()), false);

    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::Init) => index.0.clear(),
            Ok(Event::InitApply(pod)) => {
                index.insert(&pod, &kind);
                told.add(&pod);
            }
            Ok(Event::InitDone) if !is_synced => {
                is_synced = true;
                told.mark("synced", || store.len());
                answer_lines(told.clone(), store.clone());
            }
            Ok(Event::InitDone) => {}
            Ok(Event::Apply(pod)) => {
                index.insert(&pod, &kind);
                told.add(&pod);
                events.take(&told, ResourceExt::resource_version(&pod));
            }
            Ok(Event::Delete(pod)) => index.remove(&pod, &kind),
            // The watcher lists again.
            Err(error) => eprintln!("pods: {error}"),
        }
    }
}

/// A mark for each line; the end of standard input is the program's.
fn answer_lines<K>(told: Arc<Told>, store: Store<K>)
where
    K: Lookup + Clone + Send + Sync + 'static,
    K::DynamicType: hash::Hash + Eq + Clone + Send + Sync,
{
    std::thread::spawn(move || {
        for _ in std::io::stdin().lock().lines() {
            told.mark("mark", || store.len());
        }
        std::process::exit(0);
    });
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = env::args().collect();
    let [_, flavour, initial, kubeconfig, n_events, times] = &arguments[..] else {
        eprintln!("usage: pods FLAVOUR INITIAL KUBECONFIG N_EVENTS TIMES");
        std::process::exit(2);
    };
    let kubeconfig = Kubeconfig::read_from(Path::new(kubeconfig)).expect("KUBECONFIG");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("KUBECONFIG");
    let client = Client::try_from(config).expect("a client");
    let watch = watcher::Config::default();
    let watch = if initial == "watchlist" { watch.streaming_lists() } else { watch };
    let n = n_events.parse().expect("N_EVENTS");
    let events = Events { n, times: Vec::with_capacity(n), path: times.clone() };

    if flavour == "typed" {
        run(Api::<Pod>::all(client), (), watch, events).await;
    } else {
        let kind = ApiResource::erase::<Pod>(&());
        run(Api::<DynamicObject>::all_with(client, &kind), kind, watch, events).await;
    }
}
