//! kube-rs's lists, watches, reflectors and controllers on the server in KUBECONFIG.

use std::{
    collections::BTreeMap,
    error::Error,
    io::{stdin, stdout, Write},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    discovery::{pinned_kind, Discovery},
    runtime::{
        controller::{Action, Controller},
        reflector, watcher, WatchStreamExt,
    },
    Client, Resource, ResourceExt,
};
use serde_json::{from_value, json};
use tokio::time::{sleep, timeout};

type Done = Result<(), Box<dyn Error>>;

const NAMESPACE: &str = "foreign";
const LIMIT: Duration = Duration::from_secs(30);

fn a_map(name: &str) -> ConfigMap {
    from_value(json!({"metadata": {"name": name, "labels": {"number": "1"}}, "data": {"key": "0"}})).unwrap()
}

/// Has the server do something, and waits until it is done.
fn server_does(what: &str) -> Done {
    println!("{}", json!({"do": what}));
    stdout().flush()?;
    stdin().read_line(&mut String::new())?;
    Ok(())
}

async fn pages(maps: &Api<ConfigMap>) -> Done {
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &a_map(name)).await?;
    }
    let params = ListParams::default().labels("number=1").limit(2);
    let first = maps.list(&params).await?;
    let rest = maps.list(&params.continue_token(first.metadata.continue_.as_deref().ok_or("no token")?)).await?;
    assert_eq!((first.items.len(), rest.items.len(), rest.metadata.continue_), (2, 1, None));
    Ok(())
}

async fn watch(maps: &Api<ConfigMap>) -> Done {
    let version = maps.list(&ListParams::default()).await?.metadata.resource_version.ok_or("no version")?;
    maps.create(&PostParams::default(), &a_map("d")).await?;
    let apply = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "1"}});
    maps.patch("d", &PatchParams::apply("kube-rs").force(), &Patch::Apply(apply)).await?;
    maps.delete("d", &DeleteParams::default()).await?;
    let mut events = maps.watch(&WatchParams::default(), &version).await?.boxed();
    let mut seen = String::new();
    while seen.len() < 3 {
        seen.push(match events.try_next().await?.ok_or("the watch ended")? {
            WatchEvent::Added(_) => 'A',
            WatchEvent::Modified(_) => 'M',
            WatchEvent::Deleted(_) => 'D',
            _ => continue,
        });
    }
    assert_eq!(seen, "AMD");
    Ok(())
}

async fn reflect(maps: &Api<ConfigMap>, config: watcher::Config) -> Done {
    let (store, writer) = reflector::store();
    let stream = watcher(maps.clone(), config).default_backoff().reflect(writer);
    let task = tokio::spawn(stream.for_each(|_| async {}));
    store.wait_until_ready().await?;
    assert_eq!(store.state().iter().filter(|each| each.labels().contains_key("number")).count(), 3);
    for fault in ["reset", "compact"] {
        server_does(fault)?;
        let is_new = |map: &ConfigMap| map.annotations().get("fault").is_some_and(|value| value == fault);
        while store.find(|map| is_new(map)).is_none() {
            sleep(Duration::from_millis(20)).await;
        }
    }
    task.abort();
    Ok(())
}

/// Runs a controller that makes a Secret of each ConfigMap, and makes it again when it is deleted.
async fn control(client: &Client, maps: &Api<ConfigMap>) -> Done {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let reconcile = |map: Arc<ConfigMap>, secrets: Arc<Api<Secret>>| async move {
        let metadata = json!({"name": map.name_any(), "ownerReferences": [map.controller_owner_ref(&())]});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
        secrets.patch(&map.name_any(), &PatchParams::apply("controller"), &Patch::Apply(secret)).await?;
        Ok::<_, kube::Error>(Action::await_change())
    };
    let controller = Controller::new(maps.clone(), watcher::Config::default().labels("number"))
        .owns(secrets.clone(), watcher::Config::default())
        .run(
            reconcile,
            |_, error, _| {
                eprintln!("{error:?}");
                Action::requeue(Duration::from_secs(1))
            },
            Arc::new(secrets.clone()),
        );
    let task = tokio::spawn(controller.for_each(|done| async move {
        if let Err(error) = done {
            eprintln!("{error:?}")
        }
    }));
    let mut uids = BTreeMap::new();
    for _ in 0..2 {
        loop {
            let found = secrets.list_metadata(&ListParams::default()).await?;
            let now: BTreeMap<_, _> = found.iter().map(|each| (each.name_any(), each.uid())).collect();
            if now.len() == 3 && now.get("a") != uids.get("a") {
                uids = now;
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
        secrets.delete("a", &DeleteParams::default()).await?;
    }
    task.abort();
    Ok(())
}

async fn discover(client: &Client) -> Done {
    let every = Discovery::new(client.clone()).run_aggregated().await?;
    assert!(every.has_group("apps") && every.has_group(""));
    let deployment = kube::core::GroupVersionKind::gvk("apps", "v1", "Deployment");
    let (resource, capabilities) = pinned_kind(client, &deployment).await?;
    assert!(capabilities.supports_operation("deletecollection"));
    let deployments: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &resource);
    assert!(deployments.get_opt("none").await?.is_none());
    Ok(())
}

fn report(name: &str, done: Result<Done, tokio::time::error::Elapsed>) {
    let error =
        done.map_or("took too long".into(), |done| done.map_or_else(|error| error.to_string(), |()| String::new()));
    println!("{}", json!({"name": name, "error": error}));
}

#[tokio::main]
async fn main() -> Done {
    let client = Client::try_default().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    report("pages", timeout(LIMIT, pages(&maps)).await);
    report("watch", timeout(LIMIT, watch(&maps)).await);
    report("reflector", timeout(LIMIT, reflect(&maps, watcher::Config::default())).await);
    report(
        "reflector by watch-list",
        timeout(LIMIT, reflect(&maps, watcher::Config::default().streaming_lists())).await,
    );
    report("controller", timeout(LIMIT, control(&client, &maps)).await);
    report("discovery", timeout(LIMIT, discover(&client)).await);
    Ok(())
}
