"""What the command line tool and kubectl do one after the other, each to objects of its own.

``FILES`` stands for the directory of the files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["CHANGES", "DIFFERENT_CHANGES", "FILES", "needs_cluster", "write_files"]

_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeName: node-1
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: "nginx:IMAGE", ports: [{containerPort: 80}]}]
"""
_SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {app: web}}\ndata: {a: '1', b: '2'}\n"

FILES: Final = {
    "web.yaml": _DEPLOYMENT.replace("REPLICAS", "1").replace("IMAGE", "1.27"),
    "web2.yaml": _DEPLOYMENT.replace("REPLICAS", "2").replace("IMAGE", "1.28"),
    "settings.yaml": _SETTINGS,
    "settings2.yaml": _SETTINGS.replace("b: '2'", "c: '3'"),
    "both.yaml": f"{_SETTINGS}---\n{_DEPLOYMENT.replace('REPLICAS', '1').replace('IMAGE', '1.27')}",
    "generated.json": '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"key"},"stringData":{"a":"s3cret"}}',
    "more/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {set: more}}\n",
    "more/b.yml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, labels: {set: more}}\n",
    "more/deep/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {set: more}}\n",
    "unknown.yaml": "apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: x}\n",
    "invalid.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A_b}\n",
}

CHANGES: Final = r"""
diff -f FILES/both.yaml
apply -f FILES/both.yaml --dry-run=client
apply -f FILES/both.yaml --dry-run=server
create -f FILES/both.yaml --dry-run=client -o name
create -f FILES/settings.yaml
create -f FILES/settings.yaml
apply -f FILES/both.yaml
apply -f FILES/both.yaml
diff -f FILES/both.yaml
diff -f FILES/settings2.yaml
apply -f FILES/settings2.yaml
apply -f FILES/settings2.yaml -o name
apply -f FILES/settings.yaml -o jsonpath={.data}
get cm settings -o jsonpath={.metadata.annotations}
apply -f FILES/settings2.yaml --server-side
apply -f FILES/settings2.yaml --server-side --field-manager=other
apply -f FILES/settings.yaml --server-side --field-manager=other
apply -f FILES/settings2.yaml --server-side --field-manager=other --force-conflicts
get cm settings -o jsonpath={.metadata.managedFields[*].manager}
apply -f FILES/generated.json
diff -f FILES/generated.json
apply -f FILES/more
apply -f FILES/more -R
apply -f FILES/none.yaml
apply -f FILES/unknown.yaml
apply -f FILES/invalid.yaml
create -f FILES/unknown.yaml
apply
apply -f FILES/settings.yaml --dry-run=x
create
get -f FILES/both.yaml -o name
get -f FILES/more -o name
describe -f FILES/settings.yaml
rollout status deploy/web
rollout status deploy web --watch=false
rollout status cm/settings
rollout status deploy/none
apply -f FILES/web2.yaml
rollout status deployment web
rollout restart deploy/web
rollout restart cm/settings
rollout restart deploy none
rollout status deploy/web
scale deploy web --replicas=3
scale deploy/web --replicas=3
scale deploy web --current-replicas=2 --replicas=1
scale deploy web
scale deploy none --replicas=1
scale cm settings --replicas=1
scale deploy web --replicas=-1
scale deploy web --replicas=1 --dry-run=client
scale deploy web --replicas=1 --dry-run=server
scale --replicas=2 deploy -l app=web
scale --replicas=1 deploy/web --current-replicas=2 --timeout=60s
wait deploy/web --for=condition=Available
wait deploy/web --for=condition=available=true --timeout=10s
wait deploy/web --for=jsonpath={.spec.replicas}=1
wait deploy/web --for=jsonpath={.spec.replicas}=7 --timeout=1s
wait deploy/web --for=condition=Never --timeout=1s
wait deploy/web --for=create
wait deploy/none --for=delete
wait deploy/none --for=condition=Available --timeout=1s
wait deploy -l app=web --for=condition=Available
wait deploy --all --for=condition=Available
wait deploy/web
wait deploy/web --for=x
wait --for=condition=Ready
label cm settings tier=one
label cm settings tier=one
label cm settings tier=two
label cm settings tier=two --overwrite
label cm settings tier-
label cm settings tier-
label cm settings
label cm settings --list
label cm none a=b
label cm settings a=b --dry-run=client
label cm settings a=b --dry-run=server
label cm settings a=b -o name
label cm settings 'a b=c'
label cm --all set=yes
label cm -l set=yes set-
annotate cm settings note="a b"
annotate cm settings note=c
annotate cm settings note=c --overwrite
annotate cm settings note-
annotate cm settings --list
annotate deploy/web cm/settings x=y
logs nothing
logs
logs deploy/none
logs cm/settings
logs nothing --tail=x
logs nothing --since=x
exec nothing -- true
exec
exec nothing
attach nothing
delete cm nothing
delete cm nothing --ignore-not-found
delete cm settings --dry-run=client
delete cm settings --dry-run=server
delete cm settings
delete cm settings
delete cm/a cm/b --wait=false
delete -f FILES/more -R --ignore-not-found
delete -f FILES/generated.json
delete -f FILES/generated.json
delete cm -l app=none
delete cm
delete
delete secret --all --dry-run=client
delete cm c --now
delete cm c --grace-period=0 --force
delete deploy web -o name --cascade=orphan
delete deploy web --cascade=x
delete rs --all --wait=false -o name --dry-run=client
get deploy,cm,secret -o name
""".strip().splitlines()
"""Arguments, as in a shell."""

DIFFERENT_CHANGES: Final = {
    "label cm settings 'a b=c'": "Spaces that follow each other in an error are one.",
    "label cm --all set=yes": "The same error of several objects is printed once.",
}
"""What is answered differently, each with the reason, which docs/howto/command-line.rst has too."""


def write_files(directory: Path) -> Path:
    """Write the files, and return their directory."""
    for name, text in FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


def needs_cluster(invocation: str) -> bool:
    """Whether it waits for controllers, or kubectl validates it by OpenAPI v2, which the embedded server has not."""
    is_waiting = invocation.split()[0] in ("rollout", "wait") or "--timeout" in invocation
    return is_waiting or "unknown.yaml" in invocation
