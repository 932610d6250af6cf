"""The invocations that the command line tool and kubectl must answer alike."""

from __future__ import annotations

from typing import Final

__all__ = ["DIFFERENCES", "OF_SERVERS", "OF_THE_TOOL"]

OF_SERVERS: Final = r"""
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
get pods -n none
get pods --no-headers
get cm --sort-by=.metadata.name
get cm,secret --sort-by .metadata.name
get pods --field-selector=status.phase=Running --no-headers
get pods -l 'a in'
get crd
get deployments.v1.apps
get Deployment.apps web --show-kind
get deploy web --ignore-not-found
get deploy nope --ignore-not-found
get deploy -o wide --show-labels=true
get deploy web --subresource=scale
get deploy web --subresource=scale -o yaml
get deploy web --show-managed-fields=false -ojson
get apiservices
get svc -o wide
get po -owide --no-headers -n default
get pods -n kube-system
get pods -o json
get cm,svc -o yaml
get pods --show-kind
get pods,svc --no-headers
get all -A
get pods -w --output-watch-events=false nope
get pods -l app=web,pod-template-hash -o name
get pods --field-selector metadata.name=nope
get svc kubernetes web
get pods --sort-by=.status.podIP -o name
get deploy -ojson -n kube-system
get ns default -o name --show-labels
get deploy/web svc/web cm/nope
get Deployment/web -o name
get deployments.v1.apps/web -o name
get deploy.apps web --label-columns=app --label-columns tier
get pod,pods
get pods -n ""
get pods --kubeconfig=/none
get pods --as=jane
get deploy --as=jane --as-group=system:masters -o name
get pods --tls-server-name=x --insecure-skip-tls-verify=true -o name
get cm,secret,sa -o name
get deploy web -o name --no-headers
get deploy web -o=wide --no-headers=true
get pods --sort-by=.metadata.name -o name
get pods --sort-by=metadata.name -o yaml
get pods --sort-by={.spec.containers[0].image}
get pods --sort-by=.spec.containers[*].image
get pods --sort-by=.metadata.labels
get events --sort-by=.metadata.name
get deploy --sort-by=.spec.replicas
get deploy --sort-by='{.spec'
get ns kube-system kube-public
get ns --selector=kubernetes.io/metadata.name=default
get nodes --show-labels=false -L kubernetes.io/hostname
get pv,pvc
get sc,ingressclass
get ing,netpol,hpa,pdb
get sts,ds,job,cronjob,rc,rs
get quota,limits,sa
get role,rolebinding
get clusterrole cli-reader
get clusterrolebinding cli-nobody -o wide
get priorityclass
get ep given
get endpointslice given-1
get deploy web --subresource=status
get deploy --subresource=scale
get sts db --subresource=scale
get pods --subresource=
get deploy web --show-managed-fields -o json
get pods --raw /api
get pods --chunk-size=1
get pods --chunk-size=0 --no-headers
get pods --output-watch-events
get pods,svc -w
get deploy.v1.apps/web svc/web -o name
get deploy web web
get deploy/web deploy/web --no-headers
get pods --all-namespaces --no-headers -l app=solo
get secrets
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
describe pod full
get pod full -o yaml
get pod full -o json
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
events
events --for deploy/web
events --types=Warning
events -A
events --types=Foo
events -o yaml
events --for=deploy
explain deploy
explain deploy.spec
explain deploy.spec.strategy
explain deploy.spec.strategy.type
explain pod.spec.containers
explain pods --recursive
explain deployments.apps.spec.template
explain pod.spec.nope
explain cm --api-version=v1
explain crd.spec
explain svc.spec.ports.protocol
explain job.metadata.labels
top pods
top node
top node node-1
top nodes --show-capacity --no-headers
top node nope
top node --sort-by=memory
top node -l x=y
top pod web-abc-1
top pod nope
top pods -A
top pods --containers
top pods --containers --sort-by=memory
top pods --sum
top pods --sum --containers -A
top pods --sort-by=cpu --no-headers
top pods -l app=web
top pods -n none
top pods web-abc-1 -l app=web
top pods --field-selector metadata.name=web-abc-1
top pod web-abc-1 --containers
api-resources
api-resources -o wide
api-resources -o name
api-resources --namespaced=false --verbs=list,get --sort-by=kind
api-resources --api-group=apps --no-headers
api-resources x
api-versions
auth can-i get pods
auth can-i create deployments.apps -A
auth can-i get nodes
auth can-i frob pods
auth can-i get /healthz
auth can-i get
auth can-i list pods --as=system:serviceaccount:default:default
auth can-i list pods -q --as=jane
auth can-i --list
auth whoami
auth whoami -o yaml
cp
cp one
cp one two
cp one two three
cp solo:x solo:y
cp one :two
cp one a/b/c:d
cp one solo:
cp nope solo:x
cp nope solo:x --retries=x
cp nope solo:x --nope
""".strip().splitlines()
"""Arguments, as in a shell, whose output depends on what the server sends."""

OF_THE_TOOL: Final = r"""
get pods -l app=none
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
get pods --field-selector=foo=bar
get deploy web -o go-template={{.metadata.name}}
get cm settings -o kyaml
get events --sort-by=.foo
get deploy web -o jsonpath-as-json={.metadata.labels}
get --raw /api/v1/namespaces/default
get --raw /nope
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
get pods --request-timeout=x
get pods --context=none
get pods --user=none
get pods --cluster=none
get pods --as-group=x
get pods --server=http://127.0.0.1:1
get pods --token=x
get pods -n a/b
get pods a/b
get deploy,foo
get foo/x
get -o yaml
get pods -o yaml -w=false -l app=none
get pods -l app=none -o json
get pods -l app=none -o name
get pods -l app=none -o jsonpath={.items}
get pods -l app=none -o custom-columns=A:.a
get deploy web -o jsonpath --template={.metadata.name}
get deploy -o jsonpath='{range .items[*]}{.metadata.name}{"\n"}{end}'
get pods -o jsonpath={.items[*].metadata.labels.app}
get node/node-1 -o jsonpath={.metadata.name}
get deploy web --subresource=foo
get --raw /api
get --raw /version?pretty=true
get --raw api
get --raw /api/v1/nodes -o yaml
get pods --chunk-size=x
get all -l app=none
get secret key -o jsonpath={.data.password}
describe
describe foo
explain foo
explain
explain a b
top node --sort-by=x
top node a b
top pods -l app=none
top pods -A -l app=none
top
top foo
top pod a b
api-resources --sort-by=x
auth can-i get foos
auth foo
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
config foo
config foo bar
version --client=true -o foo
version
gte pods
-x
--foo
--foo=bar get
-n
""".strip().splitlines()
"""Arguments whose output is the tool's: forms of output, and what is wrong with arguments."""

_TEMPLATES = "Go templates and ``-o kyaml`` are not supported."
_SECRET = "After a JSONPath that does not fit, the object is not printed: it may be a secret."
_SORT = (
    "``--sort-by`` sorts the rows of several kinds together; a path that is not valid, or that no object has, is an "
    "error."
)
_NO_ORDER = "A field without an order, such as labels, leaves the rows as they are."
_CONFIGURATION = "What is wrong with the configuration is said in the words of this library, with its place."

DIFFERENCES: Final = {
    "config set-context x": "``config`` reads only.",
    "config view --minify -o json": "``config view -o json`` has its keys in the order of the alphabet.",
    "get deploy --sort-by='{.spec'": _SORT,
    "get pods --as-group=x": _CONFIGURATION,
    "get pods --cluster=none": _CONFIGURATION,
    "get pods --context=none": _CONFIGURATION,
    "get pods --kubeconfig=/none": _CONFIGURATION,
    "get pods --server=http://127.0.0.1:1": "A server that cannot be reached is one line.",
    "get pods --sort-by=.metadata.labels": _NO_ORDER,
    "get pods --user=none": _CONFIGURATION,
    "get pods -n a/b": _CONFIGURATION,
    "top": "Help is shorter.",
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
