"""The invocations that the command line tool and kubectl must answer alike."""

from __future__ import annotations

from typing import Final

__all__ = ["DIFFERENCES", "INVOCATIONS"]

INVOCATIONS: Final = r"""
get pods
get pods -o wide
get deploy,svc
get deploy web
get deploy/web -o yaml
get deploy/web -o json
get cm settings -o yaml
get cm -o yaml
get secret -o name
get pods,deploy -o name
get all
get nodes
get nodes -o wide
get ns --show-labels
get deploy -L app,tier
get pods -A
get deploy -A -o wide
get nothing
get pods nope
get pods nope nope2
get pod/nope deploy/web
get pods -l app=none
get pods -n none
get pods --no-headers
get cm --sort-by=.metadata.name
get cm,secret --sort-by .metadata.name
get cm settings -o jsonpath={.data}
get deploy web -o jsonpath={.spec.template.spec.containers[*].name}
get deploy web -o jsonpath={.spec.template.spec.containers[
get deploy -o custom-columns=NAME:.metadata.name,IMAGES:.spec.template.spec.containers[*].image,X:.nope
get deploy -o custom-columns=NAME
get deploy -o foo
get deploy --foo
get deploy -z
get deploy -o
get
get deploy web -A
get deploy web -l app=web
get deploy web cm/settings
get deploy/web/x
get pods --field-selector=status.phase=Running --no-headers
get pods --field-selector=foo=bar
get pods -l 'a in'
get crd
get deploy web -o go-template={{.metadata.name}}
get cm settings -o kyaml
get deployments.v1.apps
get Deployment.apps web --show-kind
get events --sort-by=.foo
get deploy web --ignore-not-found
get deploy nope --ignore-not-found
get deploy -o wide --show-labels=true
get deploy web -o jsonpath-as-json={.metadata.labels}
get deploy web --subresource=scale
get deploy web --subresource=scale -o yaml
get --raw /api/v1/namespaces/default
get --raw /nope
get deploy web --show-managed-fields=false -ojson
get apiservices
get svc -o wide
get po -owide --no-headers -n default
get pods -n kube-system
get pods -o jsonpath={range
get pods -o jsonpath={.items[9]}
get deploy web -o jsonpath={.a.b}
get deploy web -o jsonpath={.metadata.nope.x[0]}
get deploy web -o jsonpath={.spec.template.spec.containers[?(@.name=="main")].image}
get deploy web -o jsonpath='{range .spec.template.spec.containers[*]}{.name}{"\t"}{.image}{"\n"}{end}'
get deploy web -o jsonpath={.metadata.annotations.note}
get deploy web -o jsonpath={.spec.template.spec.containers[0:1].name}
get deploy web -o jsonpath={.spec.template.spec.containers[-1:].name}
get deploy web -o jsonpath={..image}
get deploy web -o jsonpath={.spec.replicas}{.status.conditions[*].type}
get deploy web -o jsonpath="{.metadata['name','namespace']}"
get deploy web -o jsonpath={.spec.template.spec.containers[0]['name','image']}
get deploy web -o jsonpath={.spec.replicas[0]}
get deploy web -o jsonpath={.spec.template.spec.containers[?(@.name=~"m")].image}
get deploy web -o jsonpath={.spec.template.spec.containers[?(@.ports)].name}
get deploy web -o jsonpath={end}
get deploy web -o jsonpath={.metadata.labels.*}
get deploy web -o jsonpath=plain
get deploy web -o custom-columns=N:.metadata.labels,C:.spec.template.spec.containers[*].name,X:.no,Y:.status.replicas
get deploy web -o custom-columns=N:{.metadata.name
get cm settings -o custom-columns=D:.data.b,K:kind
get pods -A -o custom-columns-file=/nonexistent
get pods -o jsonpath-file=/nonexistent
get pods -o json
get cm,svc -o yaml
get pods --show-kind
get pods,svc --no-headers
get all -A
get pods -w --output-watch-events=false nope
get pods -l app=web,pod-template-hash -o name
get pods --field-selector metadata.name=nope
get svc kubernetes web
get pods --all-namespaces=true --sort-by=.status.podIP -o name
get deploy -ojson -n kube-system
get ns default -o name --show-labels
get deploy/web svc/web cm/nope
get Deployment/web -o name
get deployments.v1.apps/web -o name
get deploy.apps web --label-columns=app --label-columns tier
get pod,pods
get pods -n ""
explain deploy
explain deploy.spec
explain deploy.spec.strategy
explain deploy.spec.strategy.type
explain pod.spec.containers
explain pods --recursive
explain deployments.apps.spec.template
explain pod.spec.nope
explain foo
explain
explain a b
explain cm --api-version=v1
explain crd.spec
explain svc.spec.ports.protocol
explain job.metadata.labels
config view
config view --raw
config view --minify -o json
config view -o jsonpath={.clusters[0].name}
config current-context
config get-contexts
config get-contexts -o name
config get-contexts nope
config view x
config set-context x
api-resources
api-resources -o wide
api-resources -o name
api-resources --namespaced=false --verbs=list,get --sort-by=kind
api-resources --api-group=apps --no-headers
api-resources --sort-by=x
api-resources x
api-versions
auth can-i get pods
auth can-i create deployments.apps -A
auth can-i get nodes
auth can-i frob pods
auth can-i get foos
auth can-i get /healthz
auth can-i get
auth can-i list pods --as=system:serviceaccount:default:default
auth can-i list pods -q --as=jane
auth can-i --list
auth whoami
auth whoami -o yaml
events
events --for deploy/web
events --types=Warning
events -A
events --types=Foo
events -o yaml
events --for=deploy
version --client=true -o foo
version
top pods
top node
describe cm settings
describe secret key
describe svc web
describe deploy web
describe ns default
describe rs
describe pod/solo
describe pods
describe lease -n kube-node-lease
describe cm,svc
describe deploy we
describe deploy nope
describe
describe foo
describe cm -n none
describe apiservices v1.apps
describe flowschema exempt
describe node node-1
describe sts db
describe ds/agent
describe job once
describe cronjob nightly
describe rc old
describe hpa web
describe pdb web
describe svc plain
describe svc given
describe svc kubernetes -n default
describe ep given
describe endpointslice given-1
describe ing web
describe ing
describe ingressclass cli
describe netpol web
describe netpol nothing
describe pvc disk
describe pvc
describe pv cli-disk
describe sc cli
describe sa robot
describe role reader
describe clusterrole cli-reader
describe clusterrole system:node
describe rolebinding readers
describe clusterrolebinding cli-nobody
describe limits limits
describe quota
describe priorityclass cli-high
describe priorityclass system-node-critical
describe ns
describe pods -l app=web --show-events=true
describe pod solo
describe rs -l app=web
describe servicecidr kubernetes
describe ipaddress
describe pods -A
describe all
describe deploy,sts
describe deploy/web svc/web
describe pod solo nope
describe pod sol nope
describe pod/sol
describe pod sol
describe podtemplates
describe csinodes
describe nodes nope
describe deploy,cm nope web
describe cm settings --show-events=false
""".strip().splitlines()
"""What follows the name of the program, as in a shell."""

_TEMPLATES = "Go templates and ``-o kyaml`` are not supported."
_SECRET = "After a JSONPath that does not fit, the object is not printed: it may be a secret."
_SORT = "``get --sort-by`` with several kinds sorts all rows, and a path that no object has is always an error."

DIFFERENCES: Final = {
    "config set-context x": "``config`` reads only.",
    "config view --minify -o json": "``config view -o json`` has its keys in the order of the alphabet.",
    "get --raw /nope": "An error that is not an object of the API is shown as the server has worded it.",
    "get cm settings -o kyaml": _TEMPLATES,
    "get cm,secret --sort-by .metadata.name": _SORT,
    "get deploy -o foo": _TEMPLATES,
    "get deploy web -o go-template={{.metadata.name}}": _TEMPLATES,
    "get deploy web -o jsonpath={.spec.replicas[0]}": _SECRET,
    'get deploy web -o jsonpath={.spec.template.spec.containers[?(@.name=="main")].image}': _SECRET,
    "get deploy web -o jsonpath={end}": _SECRET,
    "get events --sort-by=.foo": _SORT,
    "get pods -o jsonpath={.items[9]}": _SECRET,
    "version": "``version`` shows the version of this tool, and none of Kustomize.",
}
"""The invocations that are answered differently, each with the reason, which docs/howto/command-line.rst has too."""
