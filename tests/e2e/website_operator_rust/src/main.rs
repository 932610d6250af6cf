//! The operator of examples/website_operator.py, as it is usually written with kube-rs.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Secret, Service},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use kube::{
    api::{Api, DeleteParams, Patch, PatchParams, PropagationPolicy},
    core::NamespaceResourceScope,
    runtime::{
        controller::{Action, Controller},
        finalizer::{finalizer, Event},
        reflector::ObjectRef,
        wait::{await_condition, conditions},
        watcher,
    },
    Client, CustomResource, CustomResourceExt, Resource, ResourceExt,
};
use schemars::JsonSchema;
use serde::{de::DeserializeOwned, Deserialize, Serialize};
use serde_json::{json, Value};
use tracing::{error, info};

const MANAGER: &str = "website-operator";
const LABEL: &str = "example.com/website";
const FINALIZER: &str = "example.com/website";

/// A page and the pods that serve it.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Website", namespaced, status = "WebsiteStatus")]
#[kube(printcolumn = r#"{"name":"Available", "type":"integer", "jsonPath":".status.available"}"#)]
pub struct WebsiteSpec {
    /// The page that every pod serves.
    #[serde(default)]
    page: String,
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 100))]
    replicas: i32,
    /// The Secret that the pods read their environment from; pods are replaced when it changes.
    #[serde(default)]
    secret: String,
}

fn one() -> i32 {
    1
}

/// The state that the operator has observed.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct WebsiteStatus {
    #[serde(default)]
    available: i32,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(thiserror::Error, Debug)]
enum Error {
    #[error("kube: {0}")]
    Kube(#[from] kube::Error),
    #[error("finalizer: {0}")]
    Finalizer(#[source] Box<kube::runtime::finalizer::Error<Error>>),
    #[error("the pods are still running")]
    StillRunning,
}

struct Context {
    client: Client,
}

async fn reconcile(website: Arc<Website>, context: Arc<Context>) -> Result<Action, Error> {
    let websites: Api<Website> = Api::namespaced(context.client.clone(), &website.namespace().unwrap());
    finalizer(&websites, FINALIZER, website, |event| async {
        match event {
            Event::Apply(website) => bring_up(&website, &context.client).await,
            Event::Cleanup(website) => take_down(&website, &context.client).await,
        }
    })
    .await
    .map_err(|error| Error::Finalizer(Box::new(error)))
}

async fn bring_up(website: &Website, client: &Client) -> Result<Action, Error> {
    let (name, namespace) = (website.name_any(), website.namespace().unwrap());
    let mut version = String::new();
    let mut environment = vec![];
    if !website.spec.secret.is_empty() {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
        let Some(secret) = secrets.get_opt(&website.spec.secret).await? else {
            let message = format!("Secret {} does not exist", website.spec.secret);
            let available = website.status.as_ref().map_or(0, |status| status.available);
            report(website, client, available, "False", "SecretMissing", message).await?;
            return Ok(Action::await_change());
        };
        version = secret.resource_version().unwrap_or_default();
        environment.push(json!({"secretRef": {"name": website.spec.secret}}));
    }
    let labels = json!({LABEL: name});
    apply::<ConfigMap>(website, client, json!({"data": {"index.html": website.spec.page}})).await?;
    apply::<Service>(website, client, json!({"spec": {"selector": labels, "ports": [{"port": 80}]}})).await?;
    let pod = json!({
        "metadata": {"labels": labels, "annotations": {"example.com/secret-version": version}},
        "spec": {
            "containers": [{
                "name": "web",
                "image": "nginx:1.27",
                "envFrom": environment,
                "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html"}],
            }],
            "volumes": [{"name": "page", "configMap": {"name": name}}],
        },
    });
    let spec = json!({"replicas": website.spec.replicas, "selector": {"matchLabels": labels}, "template": pod});
    let deployment = apply::<Deployment>(website, client, json!({"spec": spec})).await?;
    let status = deployment.status.clone().unwrap_or_default();
    let (available, wanted) = (status.available_replicas.unwrap_or(0), website.spec.replicas);
    let is_ready = available >= wanted && status.observed_generation == deployment.meta().generation;
    let (ready, reason) = if is_ready { ("True", "Available") } else { ("False", "Progressing") };
    let message = format!("{available} of {wanted} pods are available");
    report(website, client, available, ready, reason, message).await?;
    Ok(Action::await_change())
}

/// Applies an object that the Website controls.
async fn apply<K>(website: &Website, client: &Client, mut object: Value) -> Result<K, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let name = website.name_any();
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    object["metadata"] = json!({"name": name, "ownerReferences": [website.controller_owner_ref(&()).unwrap()]});
    let api: Api<K> = Api::namespaced(client.clone(), &website.namespace().unwrap());
    Ok(api.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(object)).await?)
}

/// Deletes the Deployment; the finalizer is removed when this returns Ok, so it is an error until the pods are gone.
async fn take_down(website: &Website, client: &Client) -> Result<Action, Error> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &website.namespace().unwrap());
    let params = DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..Default::default() };
    match deployments.delete(&website.name_any(), &params).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Action::await_change()),
        Err(error) => Err(error.into()),
        Ok(_) => Err(Error::StillRunning),
    }
}

/// Writes the status, if it has changed; the transition time changes only with the condition's status.
async fn report(
    website: &Website,
    client: &Client,
    available: i32,
    status: &str,
    reason: &str,
    message: String,
) -> Result<(), Error> {
    let before = website.status.clone().unwrap_or_default();
    let old = before.conditions.iter().find(|condition| condition.type_ == "Ready");
    let since = match old {
        Some(condition) if condition.status == status => condition.last_transition_time.clone(),
        _ => Time(Timestamp::now()),
    };
    let ready = Condition {
        type_: "Ready".into(),
        status: status.into(),
        reason: reason.into(),
        message,
        observed_generation: website.meta().generation,
        last_transition_time: since,
    };
    let mut conditions = before.conditions.clone();
    conditions.retain(|condition| condition.type_ != "Ready");
    conditions.push(ready);
    let after = WebsiteStatus { available, conditions };
    if after != before {
        let websites: Api<Website> = Api::namespaced(client.clone(), &website.namespace().unwrap());
        let patch = Patch::Merge(json!({"status": after}));
        websites.patch_status(&website.name_any(), &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

fn error_policy(website: Arc<Website>, error: &Error, _: Arc<Context>) -> Action {
    error!("{}: {error}", website.name_any());
    Action::requeue(Duration::from_secs(5))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt::init();
    let client = Client::try_default().await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = Website::crd_name();
    definitions.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(Website::crd())).await?;
    await_condition(definitions, name, conditions::is_crd_established()).await?;

    let config = watcher::Config::default();
    let controller = Controller::new(Api::<Website>::all(client.clone()), config.clone());
    let websites = controller.store();
    controller
        .owns(Api::<Deployment>::all(client.clone()), config.clone())
        .owns(Api::<Service>::all(client.clone()), config.clone())
        .owns(Api::<ConfigMap>::all(client.clone()), config.clone())
        .watches(Api::<Secret>::all(client.clone()), config, move |secret| {
            let (name, namespace) = (secret.name_any(), secret.namespace());
            websites
                .state()
                .into_iter()
                .filter(move |website| website.spec.secret == name && website.namespace() == namespace)
                .map(|website| ObjectRef::from_obj(&*website))
        })
        .shutdown_on_signal()
        .run(reconcile, error_policy, Arc::new(Context { client }))
        .for_each(|result| async move {
            match result {
                Ok((website, _)) => info!("reconciled {website}"),
                Err(error) => error!("{error}"),
            }
        })
        .await;
    Ok(())
}
