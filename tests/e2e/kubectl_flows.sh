# What people do with kubectl.  Each flow, which begins with "###", runs in a directory and a namespace $N of its own.
# What kubectl prints is compared; what `setup kubectl …` prints is not.  "differs:" says why a flow may differ.
exec 3>&1
kubectl() {
    local errors=.errors$RANDOM code
    echo "\$ kubectl $*" >&3
    timeout "${LIMIT:-40}" "$KUBECTL" "$@" 2>$errors
    code=$?
    sed 's/^/! /' $errors >&3
    [ $code = 0 ] || echo "= $code" >&3
}
setup() { shift; "$KUBECTL" "$@" >/dev/null 2>&1; }
# Run a command again until it prints something.
until_some() { for _ in $(seq 100); do [ -z "$("$@" 2>/dev/null)" ] || return; sleep 0.2; done; }
cat > cm.yaml <<E
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: conf
  labels: {app: web}
data:
  key: "1"
  other: "x"
E
echo '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"key": "7"}}' > cm.json
cat > pod.yaml <<E
---
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  nodeName: node-1
  containers:
  - name: main
    image: nginx
    ports: [{containerPort: 80}]
    readinessProbe: {httpGet: {port: 80}}
    env: [{name: A, value: b}]
    resources: {requests: {cpu: 100m}}
E
cat > deploy.yaml <<E
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: main
        image: nginx
E
cat > sts.yaml <<E
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: nginx}]}
E
cat > ds.yaml <<E
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ds}
spec:
  selector: {matchLabels: {app: ds}}
  template:
    metadata: {labels: {app: ds}}
    spec: {nodeSelector: {none: none}, containers: [{name: main, image: nginx}]}
E
cat > list.json <<E
{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "l"}},
  {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "l"}, "stringData": {"a": "b"}}]}
E
cat > node.yaml <<E
apiVersion: v1
kind: Node
metadata: {name: $N}
spec: {unschedulable: true}
E
cat > event.yaml <<E
apiVersion: v1
kind: Event
metadata: {name: e}
type: Warning
reason: Because
message: It broke.
count: 3
firstTimestamp: "2020-01-01T00:00:00Z"
lastTimestamp: "2020-01-01T00:00:00Z"
source: {component: me, host: h}
involvedObject: {apiVersion: v1, kind: ConfigMap, name: conf, namespace: NAMESPACE}
E
cat > pv.yaml <<E
apiVersion: v1
kind: PersistentVolume
metadata: {name: $N}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: none
  hostPath: {path: /data}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: other
  resources: {requests: {storage: 1Gi}}
E
cat > policy.yaml <<E
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {matchLabels: {app: web}}, ingress: [{ports: [{port: 80}]}]}
E
cat > limits.yaml <<E
apiVersion: v1
kind: LimitRange
metadata: {name: mem}
spec: {limits: [{type: Container, default: {memory: 512Mi}, max: {cpu: "1"}}]}
E
cat > crd.yaml <<E
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.$N.example.com}
spec:
  group: $N.example.com
  names: {plural: things, kind: Thing, categories: [stuff]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size, description: How large it is}
    - {name: Note, type: string, jsonPath: .spec.note, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        description: A thing.
        type: object
        properties:
          spec:
            description: What it should be.
            type: object
            properties:
              size: {type: integer, description: How large it is.}
              note: {type: string, default: none}
          status: {type: object, properties: {size: {type: integer}}}
E
cat > thing.yaml <<E
apiVersion: GROUP/v1
kind: Thing
metadata: {name: one}
spec:
  size: 3
E
### create-deployment
kubectl create deployment web --image=nginx --replicas=2 --port=80
kubectl rollout status deployment web
kubectl get deployments
kubectl get deployments -o wide
kubectl get deployment web -o yaml
### create-deployment-command
kubectl create deployment web --image=busybox --dry-run=server -o yaml -- sleep 60
kubectl create deployment web --image=busybox --image=nginx -r 0
kubectl create deployment web --image=busybox
kubectl create deployment Web --image=busybox
### create-job
kubectl create job one --image=busybox -- true
kubectl wait --for=condition=complete job/one --timeout=30s
kubectl get jobs
kubectl get job one -o wide
kubectl get job one -o jsonpath='{.status.succeeded} {.spec.backoffLimit} {.spec.completionMode}{"\n"}'
### create-cronjob
kubectl create cronjob nightly --image=busybox --schedule="0 0 1 1 *" -- true
kubectl get cronjobs
kubectl get cronjob nightly -o wide
kubectl get cronjob nightly -o yaml
kubectl create job manual --from=cronjob/nightly
kubectl wait --for=condition=complete job/manual --timeout=30s
kubectl create cronjob bad --image=busybox --schedule="every day"
### create-configmap
printf 'a=1\nb=2\n' > env
printf '\377\001' > binary
kubectl create configmap c --from-literal=k=v --from-file=env --from-file=binary
kubectl create configmap e --from-env-file=env
kubectl get configmap c e -o yaml
kubectl get configmaps --field-selector metadata.name!=kube-root-ca.crt
kubectl create configmap c
### create-configmap-hash
kubectl create configmap c --from-literal=k=v --append-hash
kubectl get configmaps -o name
### create-secret-generic
kubectl create secret generic s --from-literal=user=me --from-literal=password=ä
kubectl get secrets
kubectl get secret s -o yaml
kubectl describe secret s
kubectl create secret generic s --type=kubernetes.io/basic-auth
### create-secret-tls
openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out crt -days 3650 -subj /CN=a 2> /dev/null
kubectl create secret tls t --cert=crt --key=key
kubectl get secret t
kubectl create secret tls u --cert=key --key=crt
### create-secret-docker-registry
kubectl create secret docker-registry d --docker-username=u --docker-password=p --docker-server=example.com
kubectl get secret d -o jsonpath='{.type} {.data}{"\n"}'
### create-service-clusterip
kubectl create service clusterip c --tcp=80:8080 --tcp=443
kubectl get services
kubectl get service c -o yaml
kubectl create service clusterip h --clusterip=None
kubectl get service h -o wide
kubectl create service clusterip bad --tcp=99999
### create-service-nodeport
kubectl create service nodeport n --tcp=80
kubectl get service n
kubectl get service n -o jsonpath='{.spec.type} {.spec.externalTrafficPolicy} {.spec.ports[0].nodePort}{"\n"}'
kubectl create service nodeport m --tcp=80 --node-port=80
### create-service-loadbalancer
kubectl create service loadbalancer l --tcp=80:80
kubectl get service l
kubectl get service l -o yaml
### create-service-externalname
kubectl create service externalname e --external-name=example.com
kubectl get service e
kubectl get service e -o yaml
### create-role
kubectl create role r --verb=get,list --resource=pods,deployments.apps
kubectl create role s --verb=get --resource=pods --resource-name=a
kubectl get roles
kubectl get role r -o yaml
kubectl describe role r
kubectl create role bad --verb=get --resource=nothing
### create-clusterrole
kubectl create clusterrole $N --verb=get --non-resource-url=/logs
kubectl create clusterrole $N-all --aggregation-rule=a=b
kubectl get clusterrole $N $N-all
kubectl describe clusterrole $N
kubectl delete clusterrole $N $N-all
### create-rolebinding
kubectl create rolebinding b --clusterrole=view --user=me --group=us --serviceaccount=$N:default
kubectl get rolebindings
kubectl get rolebinding b -o wide
kubectl describe rolebinding b
kubectl create clusterrolebinding $N --clusterrole=view --user=me
kubectl get clusterrolebinding $N -o wide
kubectl delete clusterrolebinding $N
### set-subject
kubectl create rolebinding b --clusterrole=view --user=me
kubectl set subject rolebinding b --user=you --group=us
kubectl get rolebinding b -o wide
### create-quota
kubectl create quota q --hard=pods=3,secrets=5,requests.cpu=1
kubectl get quota q -o jsonpath='{.spec}{"\n"}'
kubectl create quota bad --hard=pods=many
### create-namespace
kubectl create namespace $N-new
kubectl get namespace $N-new
kubectl get namespace $N-new -o yaml
kubectl describe namespace $N-new
kubectl create namespace $N-new
kubectl delete namespace $N-new
kubectl get namespace $N-new
### create-ingress
kubectl create ingress i --class=c --rule="a.example/x*=web:80,tls=t" --default-backend=web:http
kubectl get ingresses
kubectl get ingress i -o yaml
kubectl describe ingress i
kubectl create ingress bad --rule="no rule"
### create-pdb
kubectl create pdb p --selector=app=web --min-available=50%
kubectl create pdb q --selector=app=web --max-unavailable=1
kubectl get pdb -o jsonpath='{.items[*].spec}{"\n"}'
kubectl create pdb bad --selector=app=web --min-available=x
### create-priorityclass
kubectl create priorityclass $N --value=1000 --description=high
kubectl get priorityclass $N
kubectl get priorityclass $N -o yaml
kubectl create priorityclass $N-bad --value=2000000000
kubectl delete priorityclass $N
### create-serviceaccount
kubectl create serviceaccount robot
kubectl get serviceaccount robot
kubectl get serviceaccounts
kubectl describe serviceaccount robot
kubectl get serviceaccount robot -o yaml
### create-token
kubectl create serviceaccount robot
kubectl create token robot
kubectl create token robot --audience=a --duration=600s
kubectl create token nobody
kubectl create token robot --duration=1s
### create-from-stdin
kubectl create -f - < pod.yaml
kubectl create -f - < pod.yaml
kubectl wait --for=condition=Ready pod/web
kubectl get pods
kubectl get pod web -o wide
### create-many
cat pod.yaml cm.yaml > all.yaml
kubectl create -f all.yaml -o name
kubectl create -f all.yaml
kubectl delete -f all.yaml --now
### create-generated-name
sed 's/name: conf/generateName: conf-/' cm.yaml | kubectl create -f -
sed 's/name: conf/generateName: conf-/' cm.yaml | kubectl apply -f -
### create-invalid
sed 's/name: conf/name: Conf_1/' cm.yaml | kubectl create -f -
sed 's/image:/imagge:/' pod.yaml | kubectl create -f -
sed 's/image:/imagge:/' pod.yaml | kubectl create --validate=false -f -
sed 's/kind: ConfigMap/kind: Nothing/' cm.yaml | kubectl create -f -
sed 's/image: .*/image: 3/' pod.yaml | kubectl create --validate=false -f -
kubectl create -f missing.yaml
### create-save-config
kubectl create -f cm.yaml --save-config
kubectl get configmap conf -o yaml
kubectl apply view-last-applied configmap conf
### create-raw
kubectl create --raw /api/v1/namespaces/$N/configmaps -f cm.json > made
kubectl get --raw /api/v1/namespaces/$N/configmaps/conf -o json > got
kubectl delete --raw /api/v1/namespaces/$N/configmaps/conf > gone
kubectl get --raw /nothing

### apply
kubectl apply -f deploy.yaml
kubectl apply -f deploy.yaml
sed -i 's/replicas: 2/replicas: 3/; s/nginx/httpd/' deploy.yaml
kubectl apply -f deploy.yaml
kubectl rollout status deployment web
kubectl get deployment web -o yaml
### apply-removes-fields
kubectl apply -f cm.yaml
sed -i '/other:/d' cm.yaml
kubectl apply -f cm.yaml
kubectl get configmap conf -o yaml
kubectl apply view-last-applied configmap conf -o json
### apply-edit-last-applied
kubectl apply -f cm.yaml
EDITOR="sed -i s/other:.x/other:\ z/" kubectl apply edit-last-applied configmap conf
kubectl apply view-last-applied configmap conf
kubectl apply set-last-applied -f cm.yaml
### apply-server-side
kubectl apply --server-side -f cm.yaml
kubectl apply --server-side -f cm.yaml
kubectl get configmap conf -o yaml --show-managed-fields
### apply-conflicts
kubectl apply --server-side --field-manager=one -f cm.yaml
sed -i 's/"1"/"2"/' cm.yaml
kubectl apply --server-side --field-manager=two -f cm.yaml
kubectl apply --server-side --field-manager=two --force-conflicts -f cm.yaml
kubectl get configmap conf -o jsonpath='{.data}{"\n"}'
### apply-conflicts-deployment
kubectl apply --server-side -f deploy.yaml
kubectl scale deployment web --replicas=1
kubectl apply --server-side -f deploy.yaml
kubectl apply --server-side --force-conflicts -f deploy.yaml
### apply-migrates
kubectl apply -f cm.yaml
kubectl apply --server-side -f cm.yaml
kubectl get configmap conf -o yaml --show-managed-fields
### apply-server-side-dry-run
kubectl apply --server-side --dry-run=server -f deploy.yaml -o yaml
kubectl get deployments
### apply-dry-run
kubectl apply --dry-run=server -f cm.yaml
kubectl apply --dry-run=client -f cm.yaml -o name
kubectl get configmap conf
kubectl apply -f cm.yaml
kubectl apply --dry-run=server -f cm.yaml
### apply-prune
sed 's/name: conf/name: conf2/' cm.yaml > second.yaml
cat cm.yaml second.yaml > both.yaml
kubectl apply -l app=web --prune -f both.yaml --prune-allowlist=core/v1/ConfigMap
kubectl apply -l app=web --prune -f cm.yaml --prune-allowlist=core/v1/ConfigMap
kubectl get configmaps -l app=web
### apply-set
export KUBECTL_APPLYSET=true
sed 's/name: conf/name: conf2/' cm.yaml > second.yaml
cat cm.yaml second.yaml > both.yaml
kubectl apply --prune --applyset=mine -f both.yaml
kubectl apply --prune --applyset=mine -f cm.yaml
kubectl get secret mine -o jsonpath='{.metadata.annotations}{"\n"}'
### apply-kustomize
printf 'namePrefix: a-\nlabels: [{pairs: {team: x}}]\nresources: [cm.yaml, deploy.yaml]\n' > kustomization.yaml
kubectl apply -k .
kubectl get all,configmaps -l team=x --no-headers -o name
kubectl kustomize .
kubectl delete -k .
### apply-directory
mkdir -p d/e
cp cm.yaml d
cp deploy.yaml d/e
kubectl apply -f d -R
kubectl delete -f d -R --ignore-not-found
### apply-without-last-applied
setup kubectl create -f cm.yaml
kubectl apply -f cm.yaml
### apply-immutable
kubectl apply -f deploy.yaml
sed 's/app: web/app: other/' deploy.yaml > other.yaml
kubectl apply -f other.yaml
kubectl apply -f other.yaml --force
kubectl get deployment web -o jsonpath='{.spec.selector}{"\n"}'
### apply-immutable-configmap
(cat cm.yaml; echo 'immutable: true') > i.yaml
kubectl apply -f i.yaml
sed -i 's/"1"/"2"/' i.yaml
kubectl apply -f i.yaml
### apply-subresource
kubectl apply -f deploy.yaml
printf 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nstatus: {collisionCount: 3}\n' > status.yaml
kubectl apply --server-side --subresource=status -f status.yaml
### apply-list
kubectl apply -f list.json
kubectl get -f list.json -o name

### edit
kubectl create -f deploy.yaml
EDITOR="sed -i s/nginx/httpd/" kubectl edit deployment web
kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[*].image}{"\n"}'
EDITOR=true kubectl edit deployment web
EDITOR="sed -i s/replicas:.*/replicas:\ -1/" kubectl edit deployment web
### edit-json
kubectl create -f cm.yaml
EDITOR="sed -i s/.x./\\\"y\\\"/" kubectl edit configmap conf -o json
kubectl get configmap conf -o jsonpath='{.data}{"\n"}'
### edit-status
setup kubectl create -f deploy.yaml
setup kubectl rollout status deployment web
printf 'sed -i "s/^status:/&\\n  collisionCount: 2/" "$1"' > editor
EDITOR="sh editor" kubectl edit deployment web --subresource=status
kubectl get deployment web -o jsonpath='{.status.collisionCount}{"\n"}'
### edit-create
EDITOR="sed -i s/other:.x/other:\ z/" kubectl create --edit -f cm.yaml
kubectl get configmap conf -o jsonpath='{.data}{"\n"}'

### explain
kubectl explain deployments
kubectl explain pod.spec.containers.resources
kubectl explain configmap.data
kubectl explain pods.spec.nothing
### explain-recursive
kubectl explain cronjobs.spec --recursive
kubectl explain hpa --api-version=autoscaling/v2
### explain-swagger
kubectl explain configmaps --output=plaintext-openapiv2
### explain-crd
setup kubectl create -f crd.yaml
setup kubectl wait --for=condition=Established crd things.$N.example.com
until_some "$KUBECTL" explain things.$N.example.com
kubectl explain things.$N.example.com
kubectl explain things.$N.example.com.spec.size
setup kubectl delete crd things.$N.example.com

### auth-can-i
kubectl auth can-i create pods
kubectl auth can-i '*' '*'
kubectl auth can-i get pods --subresource=log
kubectl auth can-i get /healthz
kubectl auth can-i get nothing
kubectl auth can-i delete nodes
### auth-can-i-list
kubectl auth can-i --list
### auth-whoami
kubectl auth whoami
### auth-reconcile
kubectl create role r --verb=get --resource=pods --dry-run=client -o yaml > role.yaml
kubectl auth reconcile -f role.yaml
kubectl auth reconcile -f role.yaml

### autoscale
setup kubectl create -f deploy.yaml
kubectl autoscale deployment web --min=1 --max=4 --cpu=80%
kubectl get hpa web -o jsonpath='{.spec}{"\n"}'
kubectl get hpa.v1.autoscaling web -o jsonpath='{.spec}{"\n"}'
kubectl get hpa
### expose
setup kubectl create -f deploy.yaml
kubectl expose deployment web --port=80 --target-port=8080
kubectl expose deployment web --port=80 --name=np --type=NodePort
kubectl get services -o wide
kubectl describe service np
kubectl expose deployment none --port=80
### expose-endpoints
setup kubectl create -f deploy.yaml
setup kubectl rollout status deployment web
kubectl expose deployment web --port=80
until_some "$KUBECTL" get endpointslices -l kubernetes.io/service-name=web -o name
kubectl get endpointslices -l kubernetes.io/service-name=web
kubectl describe service web

### run
kubectl run web --image=nginx --labels=app=web --env=A=b --port=80
kubectl wait --for=condition=Ready pod/web
kubectl get pod web
kubectl get pod web -o jsonpath='{.spec.containers}{"\n"}'
kubectl run web --image=nginx
### run-dry
kubectl run web --image=nginx --dry-run=server -o yaml
kubectl run web --image=nginx --dry-run=client -o yaml
kubectl run web --image=nginx --restart=Never --overrides='{"spec":{"nodeName":"node-1"}}'
### run-expose
kubectl run web --image=nginx --port=80 --expose
kubectl get service,pod --no-headers -o name
### describe-pod
kubectl create -f pod.yaml
kubectl wait --for=condition=Ready pod/web
kubectl describe pod web
### debug-ephemeral differs: validation
setup kubectl create -f pod.yaml
setup kubectl wait --for=condition=Ready pod/web
kubectl debug web --image=busybox -c dbg --attach=false
kubectl get pod web -o jsonpath='{.spec.ephemeralContainers}{"\n"}'
kubectl debug web --image=busybox -c dbg --attach=false
### debug-copy
setup kubectl create -f pod.yaml
setup kubectl wait --for=condition=Ready pod/web
kubectl debug web --copy-to=web-2 --image=busybox -c dbg --attach=false
kubectl wait --for=condition=Ready pod/web-2
kubectl get pods
kubectl debug web --copy-to=web-3 --set-image='*=busybox' --attach=false
kubectl get pod web-3 -o jsonpath='{.spec.containers[*].image}{"\n"}'
### debug-node
kubectl debug node/node-1 --image=busybox --attach=false
kubectl get pods --no-headers -o name

### cordon
setup kubectl create -f node.yaml
kubectl cordon $N
kubectl uncordon $N
kubectl uncordon $N
kubectl cordon $N
kubectl get node $N -o jsonpath='{.spec.unschedulable}{"\n"}'
setup kubectl delete node $N
### taint
setup kubectl create -f node.yaml
kubectl taint node $N a=b:NoSchedule
kubectl taint node $N a=c:NoSchedule
kubectl taint node $N a=c:NoSchedule --overwrite
kubectl taint node $N a=c:NoSuch
kubectl get node $N -o jsonpath='{.spec.taints[?(@.key=="a")]}{"\n"}'
kubectl taint node $N a-
setup kubectl delete node $N
### drain
setup kubectl create -f node.yaml
sed "s/nodeName: node-1/nodeName: $N/" pod.yaml > here.yaml
setup kubectl create -f here.yaml
kubectl drain $N
kubectl drain $N --force --grace-period=1
kubectl get pods
setup kubectl delete node $N
### drain-pdb
setup kubectl create -f node.yaml
sed "s/nodeName: node-1/nodeName: $N/" pod.yaml > here.yaml
setup kubectl create -f here.yaml
setup kubectl create pdb all --selector=app=web --min-available=1
setup kubectl wait --for=jsonpath={.status.observedGeneration}=1 pdb all
kubectl drain $N --force --timeout=2s
setup kubectl delete pod web
setup kubectl delete node $N
### label-node
setup kubectl create -f node.yaml
kubectl label node $N disk=ssd
kubectl get node -l disk=ssd -o name
setup kubectl delete node $N

### rollout-status
kubectl create -f deploy.yaml
kubectl rollout status deployment/web
kubectl rollout status deployment/web --watch=false
kubectl rollout status deployment/none
### rollout-history
kubectl create -f deploy.yaml
kubectl annotate deployment web kubernetes.io/change-cause=first
kubectl rollout status deployment/web
kubectl set image deployment/web main=httpd
kubectl rollout status deployment/web
kubectl rollout history deployment web
kubectl rollout history deployment web --revision=1
kubectl rollout history deployment web --revision=9
### rollout-undo
kubectl create -f deploy.yaml
kubectl rollout undo deployment web
setup kubectl rollout status deployment/web
kubectl set image deployment/web main=httpd
kubectl rollout status deployment/web
kubectl rollout undo deployment web --dry-run=server
kubectl rollout undo deployment web --to-revision=1
kubectl rollout status deployment/web
kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[*].image} {.metadata.annotations}{"\n"}'
kubectl get replicasets
### rollout-restart
kubectl create -f deploy.yaml
kubectl rollout restart deployment web
sleep 1.1
kubectl rollout restart deployment -l app=web
kubectl rollout status deployment/web
kubectl rollout restart deployment none
### rollout-pause
kubectl create -f deploy.yaml
kubectl rollout pause deployment/web
kubectl rollout pause deployment/web
kubectl set image deployment/web main=httpd
kubectl rollout restart deployment/web
kubectl rollout resume deployment/web
kubectl rollout resume deployment/web
kubectl rollout status deployment/web
### statefulset
kubectl create -f sts.yaml
kubectl rollout status statefulset/db
kubectl get statefulset db -o wide
kubectl get pods
kubectl set image statefulset/db main=httpd
kubectl rollout status statefulset/db
kubectl rollout history statefulset db
kubectl rollout undo statefulset/db
### daemonset
kubectl create -f ds.yaml --dry-run=server -o yaml
kubectl rollout restart daemonset/none
### scale
kubectl create -f deploy.yaml
kubectl scale deployment web --replicas=3
kubectl scale deployment/web --current-replicas=2 --replicas=1
kubectl scale --replicas=1 -f deploy.yaml
kubectl wait --for=jsonpath='{.status.replicas}'=1 deployment/web
kubectl rollout status deployment web
kubectl get deployment web
kubectl scale deployment web --replicas=-1
kubectl scale configmap/conf --replicas=1
### scale-replicaset
setup kubectl create -f deploy.yaml
setup kubectl rollout status deployment web
kubectl scale statefulset db --replicas=2
kubectl get replicasets -o wide
kubectl get deployment web -o jsonpath='{.status.replicas}{"\n"}'
kubectl get deployment web --subresource=scale
### set-image
setup kubectl create -f deploy.yaml
kubectl set image deployment/web main=httpd:2
kubectl set image deployment/web main=httpd:2
kubectl set image deployment/web none=httpd
kubectl set image deployment --all '*=busybox'
kubectl set image -f deploy.yaml main=x --local -o name
### set-env
setup kubectl create -f deploy.yaml
setup kubectl create -f cm.yaml
kubectl set env deployment/web A=b C=d
kubectl set env deployment/web --list
kubectl set env deployment/web --from=configmap/conf --keys=key --prefix=X_
kubectl set env deployment/web --list --resolve
kubectl set env deployment/web A-
kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[0].env}{"\n"}'
### set-resources
setup kubectl create -f deploy.yaml
kubectl set resources deployment web --limits=cpu=200m,memory=512Mi --requests=cpu=100m
kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[0].resources}{"\n"}'
kubectl set resources deployment web --limits=cpu=50m
kubectl set serviceaccount deployment web robot
kubectl set selector service none a=b
### label
setup kubectl create -f cm.yaml
kubectl label configmap conf a=b
kubectl label configmap conf a=c
kubectl label configmap conf a=c --overwrite
kubectl label configmap conf --list | sort
kubectl label configmap conf a-
kubectl label configmap conf 'a=b c'
kubectl label configmaps --all x=y
kubectl label configmap conf z=1 --resource-version=1
### annotate
setup kubectl create -f cm.yaml
kubectl annotate configmap conf a=b
kubectl annotate configmap conf a=c
kubectl annotate --overwrite -f cm.yaml a=c
kubectl annotate configmap conf --list | sort
kubectl annotate configmap conf a- none-
kubectl annotate configmap none a=b
### patch
setup kubectl create -f deploy.yaml
kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"x"}]}}}}'
kubectl patch deployment web --type=merge -p '{"spec":{"replicas":1}}'
kubectl patch deployment web --type=json -p '[{"op":"replace","path":"/spec/replicas","value":0}]'
kubectl patch deployment web --type=merge -p '{"spec":{"replicas":1}}'
kubectl get deployment web -o jsonpath='{.spec.replicas} {.spec.template.spec.containers[*].name}{"\n"}'
### patch-errors
setup kubectl create -f cm.yaml
kubectl patch configmap conf --type=json -p '[{"op":"test","path":"/data/key","value":"9"}]'
kubectl patch configmap conf --type=json -p '[{"op":"remove","path":"/data/none"}]'
kubectl patch configmap conf --type=json -p '[{"op":"jump","path":"/data"}]'
kubectl patch configmap conf -p '{"data":3}'
kubectl patch configmap conf -p '{"data":{"key":null}}'
kubectl patch configmap conf -p 'data: {key: "4"}' -o yaml
kubectl patch configmap conf --type=merge -p '{"metadata":{"name":"other"}}'
### patch-subresource
setup kubectl create -f deploy.yaml
kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"collisionCount":4}}'
kubectl patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":1}}'
kubectl get deployment web -o jsonpath='{.spec.replicas} {.status.collisionCount}{"\n"}'
kubectl patch deployment web --dry-run=server -p '{"spec":{"replicas":7}}' -o jsonpath='{.spec.replicas}{"\n"}'
### replace
kubectl replace -f cm.yaml
kubectl create -f cm.yaml
sed -i 's/"1"/"2"/' cm.yaml
kubectl replace -f cm.yaml
kubectl get configmap conf -o yaml > old.yaml
setup kubectl label configmap conf a=b
kubectl replace -f old.yaml
kubectl replace -f cm.yaml --dry-run=server
### replace-force differs: validation
setup kubectl create -f pod.yaml
sed -i 's/nginx/httpd/; s/containerPort: 80/containerPort: 81/' pod.yaml
kubectl replace -f pod.yaml
kubectl replace -f pod.yaml --force --grace-period=0
kubectl get pod web -o jsonpath='{.spec.containers[*].ports}{"\n"}'
### replace-raw
setup kubectl create -f cm.yaml
kubectl replace --raw /api/v1/namespaces/$N/configmaps/conf -f cm.json > got
kubectl get configmap conf -o jsonpath='{.data}{"\n"}'

### delete
setup kubectl create -f cm.yaml
kubectl delete configmap conf --dry-run=server
kubectl delete configmap conf -o name
kubectl delete configmap conf
kubectl delete configmap conf --ignore-not-found
kubectl delete configmap
### delete-all
setup kubectl create -f deploy.yaml
setup kubectl rollout status deployment web
kubectl delete deployments --all
setup kubectl wait --for=delete pods --all --timeout=20s
kubectl get all
### delete-selector
setup kubectl create -f cm.yaml
setup kubectl create -f pod.yaml
kubectl delete pods,configmaps -l app=web
kubectl delete pods,configmaps -l app=web
kubectl delete pods --field-selector=status.phase=Failed
### delete-orphan
setup kubectl create -f deploy.yaml
setup kubectl rollout status deployment web
kubectl delete deployment web --cascade=orphan
kubectl get replicasets
kubectl get replicasets -o jsonpath='{.items[*].metadata.ownerReferences}{"\n"}'
kubectl get pods
### delete-foreground
setup kubectl create -f deploy.yaml
setup kubectl rollout status deployment web
kubectl delete deployment web --cascade=foreground
kubectl get all
### delete-job
setup kubectl create job one --image=busybox -- true
setup kubectl wait --for=condition=complete job/one
kubectl delete job one
setup kubectl wait --for=delete pods --all --timeout=20s
kubectl get all
### delete-finalizer
setup kubectl create -f cm.yaml
kubectl patch configmap conf -p '{"metadata":{"finalizers":["example.com/f"]}}'
kubectl delete configmap conf --wait=false
kubectl delete configmap conf --timeout=1s
kubectl get configmap conf
kubectl patch configmap conf -p '{"metadata":{"finalizers":null}}'
kubectl get configmap conf
### delete-pod-now
setup kubectl create -f pod.yaml
kubectl delete pod web --force
kubectl delete pod web --now
### delete-namespace
setup kubectl create namespace $N-x
setup kubectl -n $N-x create -f cm.yaml
kubectl delete namespace $N-x
kubectl -n $N-x get configmaps
kubectl -n $N-x create -f cm.yaml

### wait
kubectl create -f deploy.yaml
kubectl wait --for=condition=Available deployment/web
kubectl wait --for=jsonpath='{.status.readyReplicas}'=2 deployment/web
kubectl wait --for=jsonpath='{.spec.paused}' deployment/web --timeout=1s
kubectl wait --for=condition=Progressing=False deployment/web --timeout=1s
kubectl wait --for=condition=Ready pods -l app=web | sort
### wait-delete
setup kubectl create -f cm.yaml
kubectl wait --for=delete configmap/conf --timeout=1s
setup kubectl delete configmap conf
kubectl wait --for=delete configmap/conf --timeout=5s
kubectl wait --for=condition=Ready pod/none
### wait-create
(sleep 1; setup kubectl create -f cm.yaml) &
kubectl wait --for=create configmap/conf --timeout=20s
wait

### get-outputs
setup kubectl create -f cm.yaml
kubectl get configmap conf -o json
kubectl get configmap conf -o name
kubectl get configmap conf -o custom-columns=NAME:.metadata.name,KEY:.data.key,NONE:.data.none
kubectl get configmap conf -o jsonpath='{range .data}{@}{end}{"\n"}'
kubectl get configmap conf -o go-template='{{.data.key}}{{"\n"}}'
kubectl get configmap conf -o jsonpath-as-json='{.data}'
kubectl get configmap conf -o kyaml
### get-tables
setup kubectl create -f cm.yaml
kubectl get configmap conf --show-labels
kubectl get configmap conf -L app,none
kubectl get configmap conf --show-kind
kubectl get configmap conf --no-headers
kubectl get configmap conf --server-print=false
kubectl get configmap,secret -l app=web
### get-sorted
for each in c a b; do sed "s/name: conf/name: $each/" cm.yaml | setup kubectl create -f -; done
kubectl get configmaps -l app=web --sort-by=.metadata.name
kubectl get configmaps -l app=web --sort-by=.data.none
kubectl get configmaps -l app=web --sort-by='{.metadata.creationTimestamp}' -o name | sort
### get-selectors
for each in c a b; do sed "s/name: conf/name: $each/" cm.yaml | setup kubectl create -f -; done
kubectl label configmap a tier=x
kubectl get configmaps -l 'app=web,tier in (x,y)'
kubectl get configmaps -l 'app,!tier' -o name
kubectl get configmaps --field-selector metadata.name=b
kubectl get configmaps --field-selector data=b
kubectl get configmaps -l 'app=('
### get-chunks
for each in 1 2 3 4 5; do sed "s/name: conf/name: c-$each/" cm.yaml | setup kubectl create -f -; done
kubectl get configmaps -l app=web --chunk-size=2
kubectl get configmaps -l app=web --chunk-size=2 -o name
### get-all-namespaces
setup kubectl create -f cm.yaml
kubectl get configmaps -A --field-selector metadata.namespace=$N,metadata.name=conf
kubectl get cm -A -l none=none
### get-errors
kubectl get pod none
kubectl get nothing
kubectl get pods
kubectl get pods,configmaps none
kubectl get pods none --ignore-not-found
kubectl get -n none-such pods
kubectl get pods -o yaml
### get-watch
setup kubectl create -f cm.yaml
LIMIT=15 kubectl get configmap conf --watch --output-watch-events > seen &
until_some grep ADDED seen
setup kubectl label configmap conf a=b
setup kubectl delete configmap conf
wait
cat seen
### get-watch-only
LIMIT=3 kubectl get pods --watch-only -o name &
sleep 1.5
setup kubectl create -f pod.yaml --dry-run=server
wait
### get-subresource
setup kubectl create -f deploy.yaml
setup kubectl rollout status deployment web
kubectl get deployment web --subresource=status -o jsonpath='{.status.replicas}{"\n"}'
kubectl get deployment web --subresource=scale -o yaml
kubectl get deployment web --subresource=none
### get-pods-wide
kubectl create -f pod.yaml
kubectl wait --for=condition=Ready pod/web
kubectl get pods -o wide --show-labels
kubectl get pod web -o yaml
### get-all
setup kubectl create -f deploy.yaml
setup kubectl rollout status deployment web
kubectl get all
### get-old-versions
setup kubectl autoscale deployment web --max=3 --cpu=50%
kubectl get hpa.v2.autoscaling web -o jsonpath='{.apiVersion}{"\n"}'
kubectl get deployments.v1.apps
kubectl get deployments.v1beta1.apps
kubectl get events.events.k8s.io
### get-persistent-volumes differs: no controller for volumes
kubectl create -f pv.yaml
setup kubectl wait --for=jsonpath={.status.phase}=Available pv $N --timeout=5s
kubectl get pv $N
kubectl get pvc data
kubectl get storageclass none
setup kubectl delete -f pv.yaml --wait=false
### get-network-policy
kubectl create -f policy.yaml
kubectl get networkpolicies
kubectl describe networkpolicy deny
### limit-range
kubectl create -f limits.yaml
kubectl get limitranges
kubectl describe limits mem | sort

### describe-deployment differs: controllers record no Events
kubectl create -f deploy.yaml
kubectl rollout status deployment web
kubectl describe deployment web
### describe-configmap
kubectl create -f cm.yaml
kubectl describe configmap conf
kubectl describe configmap none
kubectl describe configmaps -l app=web
### describe-job
kubectl create job one --image=busybox -- true
kubectl wait --for=condition=complete job/one --timeout=30s
kubectl describe job one --show-events=false
### describe-statefulset
kubectl create -f sts.yaml
kubectl rollout status statefulset/db
kubectl describe statefulset db --show-events=false
### describe-cronjob
setup kubectl create cronjob c --image=busybox --schedule="0 0 1 1 *"
kubectl describe cronjob c
kubectl patch cronjob c -p '{"spec":{"suspend":true}}'
kubectl get cronjob c
### describe-hpa
setup kubectl autoscale deployment web --max=3 --cpu=50%
kubectl describe hpa web --show-events=false
### describe-quota differs: no controller for quotas
kubectl create quota q --hard=pods=3
setup kubectl wait --for=jsonpath={.status.hard.pods}=3 quota q --timeout=5s
kubectl describe quota q
kubectl get quota
### describe-pdb
setup kubectl create -f deploy.yaml
setup kubectl rollout status deployment web
setup kubectl create pdb p --selector=app=web --min-available=1
kubectl wait --for=jsonpath={.status.currentHealthy}=2 pdb p
kubectl describe pdb p --show-events=false
kubectl get pdb
### describe-node differs: kwok describes its node otherwise
kubectl describe node node-1
### get-nodes
kubectl get nodes node-1
kubectl get nodes node-1 -o name
### events
sed "s/NAMESPACE/$N/" event.yaml | kubectl create -f -
kubectl events
kubectl get events
kubectl events --for=configmap/conf
kubectl events --types=Warning
kubectl get events --field-selector reason=Because -o wide
### events-none
kubectl events
kubectl get events
### top
kubectl top pods
kubectl top nodes

### api-resources
kubectl api-resources --api-group=apps -o wide
kubectl api-resources --api-group=batch --no-headers
kubectl api-resources --api-group= --namespaced=true
### api-resources-all
kubectl api-resources --verbs=list --categories=all -o name
kubectl api-resources --api-group=none
### api-versions
kubectl api-versions | grep -v example.com
### version
kubectl version
kubectl version -o yaml
### cluster-info
kubectl cluster-info
kubectl get --raw '/readyz'
### diff
kubectl diff -f cm.yaml
kubectl apply -f cm.yaml
kubectl diff -f cm.yaml
sed -i 's/"1"/"2"/' cm.yaml
kubectl diff -f cm.yaml
kubectl diff -f cm.yaml --server-side
### diff-deployment
kubectl apply -f deploy.yaml
kubectl rollout status deployment web
sed -i 's/nginx/httpd/' deploy.yaml
kubectl diff -f deploy.yaml

### crd
kubectl create -f crd.yaml
kubectl wait --for=condition=Established crd things.$N.example.com
kubectl get crd things.$N.example.com
sed "s/GROUP/$N.example.com/" thing.yaml | kubectl create -f -
kubectl get things.$N.example.com
kubectl get things.$N.example.com -o wide
kubectl patch things.$N.example.com one -p '{"spec":{"size":4}}'
kubectl scale things.$N.example.com one --replicas=5
kubectl get things.$N.example.com one -o yaml
kubectl delete crd things.$N.example.com
### crd-scale-type
setup kubectl create -f crd.yaml
setup kubectl wait --for=condition=Established crd things.$N.example.com
sed "s/GROUP/$N.example.com/" thing.yaml | kubectl create -f -
kubectl patch things.$N.example.com one --type=merge -p '{"spec":{"size":"x"}}'
kubectl patch things.$N.example.com one --type=merge -p '{"spec":{"size":1.5}}'
kubectl patch things.$N.example.com one --type=merge -p '{"spec":{"size":-1}}'
kubectl patch things.$N.example.com one --type=merge -p '{"spec":{"size":3000000000}}'
kubectl patch things.$N.example.com one --subresource=status --type=merge -p '{"status":{"size":-2}}'
kubectl scale things.$N.example.com one --replicas=2 --current-replicas=7
setup kubectl delete crd things.$N.example.com
### crd-apply
setup kubectl create -f crd.yaml
setup kubectl wait --for=condition=Established crd things.$N.example.com
sed -i "s/GROUP/$N.example.com/" thing.yaml
kubectl apply -f thing.yaml
sed -i 's/size: 3/size: 5/' thing.yaml
kubectl diff -f thing.yaml
kubectl apply -f thing.yaml
kubectl apply --server-side -f thing.yaml --force-conflicts
sed -i 's/size: 5/sizze: 5/' thing.yaml
kubectl apply -f thing.yaml
kubectl describe things.$N.example.com one
setup kubectl delete crd things.$N.example.com
### crd-invalid
sed '0,/type: integer/s//type: number-one/' crd.yaml | kubectl create -f -
sed 's/name: things/name: others/' crd.yaml | kubectl create -f -
sed 's/scope: Namespaced/scope: World/' crd.yaml | kubectl create --validate=false -f -
### crd-describe
kubectl create -f crd.yaml
kubectl wait --for=condition=NamesAccepted crd things.$N.example.com
kubectl wait --for=condition=Established crd things.$N.example.com
kubectl describe crd things.$N.example.com
kubectl delete crd things.$N.example.com
