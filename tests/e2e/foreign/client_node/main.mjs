// client-node's lists, watches and informers on the server in KUBECONFIG.

import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { CoreV1Api, KubeConfig, KubernetesObjectApi, ApisApi, Watch, makeInformer } from '@kubernetes/client-node';

const namespace = 'foreign';
const config = new KubeConfig();
config.loadFromDefault();
const api = config.makeApiClient(CoreV1Api);
const path = `/api/v1/namespaces/${namespace}/configmaps`;
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const aMap = (name) => ({ metadata: { name, labels: { number: '1' } }, data: { key: '0' } });

// Have the server do something, and wait until it is done.
async function serverDoes(what) {
  console.log(JSON.stringify({ do: what }));
  await lines.next();
}

async function until(check) {
  while (!check()) await sleep(20);
}

async function pages() {
  for (const name of ['a', 'b', 'c']) await api.createNamespacedConfigMap({ namespace, body: aMap(name) });
  const query = { namespace, labelSelector: 'number=1', limit: 2 };
  const first = await api.listNamespacedConfigMap(query);
  const rest = await api.listNamespacedConfigMap({ ...query, _continue: first.metadata._continue });
  assert.deepEqual([first.items.length, rest.items.length, rest.metadata._continue], [2, 1, undefined]);
}

async function watch() {
  const resourceVersion = (await api.listNamespacedConfigMap({ namespace })).metadata.resourceVersion;
  const made = await api.createNamespacedConfigMap({ namespace, body: aMap('d') });
  await api.replaceNamespacedConfigMap({ name: 'd', namespace, body: { ...made, data: { key: '1' } } });
  await api.deleteNamespacedConfigMap({ name: 'd', namespace });
  const seen = [];
  const request = await new Watch(config).watch(path, { resourceVersion }, (type) => seen.push(type), () => {});
  await until(() => seen.length >= 3);
  request.abort();
  assert.deepEqual(seen, ['ADDED', 'MODIFIED', 'DELETED']);
}

async function informer() {
  const informer = makeInformer(config, path, () => api.listNamespacedConfigMap({ namespace }));
  informer.on('error', () => setTimeout(() => informer.start(), 100)); // as its documentation says
  await informer.start();
  assert.equal(informer.list(namespace).filter((each) => each.metadata.labels?.number).length, 3);
  for (const fault of ['reset', 'compact']) {
    await serverDoes(fault);
    await until(() => informer.list(namespace).some((each) => each.metadata.annotations?.fault === fault));
  }
  await informer.stop();
}

// Apply an object of a kind that the client finds by discovery.
async function dynamic() {
  const objects = KubernetesObjectApi.makeApiClient(config);
  const spec = {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image: 'nginx' }] } },
  };
  const made = await objects.create({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace }, spec });
  const patched = await objects.patch({ ...made, spec: { ...spec, replicas: 2 } });
  assert.equal(patched.spec.replicas, 2);
  await objects.delete(made);
  assert.ok((await config.makeApiClient(ApisApi).getAPIVersions()).groups.length > 10);
}

for (const check of [pages, watch, informer, dynamic]) {
  const tooLong = sleep(30_000, undefined, { ref: false }).then(() => Promise.reject(new Error('took too long')));
  const error = await Promise.race([check(), tooLong]).then(() => '', (reason) => String(reason.stack));
  console.log(JSON.stringify({ name: check.name, error }));
}
process.exit();
