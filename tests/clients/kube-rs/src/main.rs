//! Watches config maps with kube-rs and prints the checksum of what it holds each time that changes,
//! until standard input is closed:
//!
//!     watcher KUBECONFIG list|stream
//!
//! A line is "objects=N checksum=HEX"; the checksum is that of `kinformerd --measure`. With `list`
//! the watcher lists in pages and watches then, with `stream` it asks for a streamed list.

use std::collections::BTreeMap;
use std::error::Error;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Config, ResourceExt};
use tokio::io::AsyncReadExt;

type Held = BTreeMap<String, String>;

fn key_of(object: &ConfigMap) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

fn checksum(held: &Held) -> String {
    let mut lines: Vec<String> = held.iter().map(|(key, version)| format!("{key}@{version}\n")).collect();
    lines.sort();
    let sum = lines.concat().bytes().fold(0xcbf29ce484222325u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100000001b3)
    });
    format!("objects={} checksum={sum:016x}", held.len())
}

fn insert(held: &mut Held, object: &ConfigMap) {
    held.insert(key_of(object), object.resource_version().unwrap_or_default());
}

async fn follow(api: Api<ConfigMap>, config: watcher::Config) {
    let mut events = watcher(api, config).boxed();
    let (mut held, mut coming) = (Held::new(), Held::new());

    loop {
        match events.try_next().await {
            Ok(Some(watcher::Event::Apply(object))) => insert(&mut held, &object),
            Ok(Some(watcher::Event::Delete(object))) => {
                held.remove(&key_of(&object));
            }
            Ok(Some(watcher::Event::Init)) => coming.clear(),
            Ok(Some(watcher::Event::InitApply(object))) => {
                insert(&mut coming, &object);
                continue;
            }
            Ok(Some(watcher::Event::InitDone)) => held = std::mem::take(&mut coming),
            Ok(None) => return,
            Err(error) => {
                // The watcher goes on by itself; this only keeps a dead server from a busy loop.
                eprintln!("{error}");
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                continue;
            }
        }
        println!("{}", checksum(&held));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, kubeconfig, mode] = arguments.as_slice() else {
        return Err("usage: watcher KUBECONFIG list|stream".into());
    };
    let config =
        Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &KubeConfigOptions::default()).await?;
    let api = Api::all(Client::try_from(config)?);
    let config = match mode.as_str() {
        "stream" => watcher::Config::default().streaming_lists(),
        _ => watcher::Config::default().page_size(3),
    };
    let mut input = Vec::new();

    tokio::select! {
        _ = follow(api, config) => {}
        _ = async { tokio::io::stdin().read_to_end(&mut input).await } => {}
    }
    // A read of standard input under way would keep the runtime alive.
    std::process::exit(0)
}
