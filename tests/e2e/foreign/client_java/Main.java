// client-java's lists, watches and informers on the server in KUBECONFIG.

import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.util.ClientBuilder;
import io.kubernetes.client.util.Watch;
import io.kubernetes.client.util.generic.GenericKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.Dynamics;
import io.kubernetes.client.util.generic.options.PatchOptions;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Map;
import java.util.Objects;
import java.util.function.BooleanSupplier;

public class Main {
  static final String NAMESPACE = "foreign";
  static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));
  static ApiClient client;
  static CoreV1Api api;
  static GenericKubernetesApi<V1ConfigMap, V1ConfigMapList> maps;

  interface Check {
    void run() throws Exception;
  }

  static V1ConfigMap aMap(String name) {
    V1ObjectMeta metadata = new V1ObjectMeta().namespace(NAMESPACE).name(name).putLabelsItem("number", "1");
    return new V1ConfigMap().metadata(metadata).putDataItem("key", "0");
  }

  static void equal(Object first, Object second) {
    if (!Objects.equals(first, second)) throw new AssertionError(first + " is not " + second);
  }

  /** Has the server do something, and waits until it is done. */
  static void serverDoes(String what) throws Exception {
    System.out.println("{\"do\": \"" + what + "\"}");
    INPUT.readLine();
  }

  static void until(BooleanSupplier check) throws Exception {
    for (int turn = 0; !check.getAsBoolean(); turn++) {
      if (turn == 1500) throw new AssertionError("took too long");
      Thread.sleep(20);
    }
  }

  static void pages() throws Exception {
    for (String name : new String[] {"a", "b", "c"}) api.createNamespacedConfigMap(NAMESPACE, aMap(name)).execute();
    V1ConfigMapList first = api.listNamespacedConfigMap(NAMESPACE).labelSelector("number=1").limit(2).execute();
    String token = first.getMetadata().getContinue();
    V1ConfigMapList rest =
        api.listNamespacedConfigMap(NAMESPACE).labelSelector("number=1").limit(2)._continue(token).execute();
    equal(first.getItems().size() + " " + rest.getItems().size() + " " + rest.getMetadata().getContinue(), "2 1 null");
  }

  static void watch() throws Exception {
    String version = api.listNamespacedConfigMap(NAMESPACE).execute().getMetadata().getResourceVersion();
    maps.create(aMap("d")).throwsApiException();
    String patch = "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"data\": {\"key\": \"1\"}}";
    PatchOptions options = new PatchOptions();
    options.setFieldManager("client-java");
    options.setForce(true);
    maps.patch(NAMESPACE, "d", V1Patch.PATCH_FORMAT_APPLY_YAML, new V1Patch(patch), options).throwsApiException();
    maps.delete(NAMESPACE, "d").throwsApiException();
    var call = api.listNamespacedConfigMap(NAMESPACE).resourceVersion(version).watch(true).buildCall(null);
    var type = new com.google.gson.reflect.TypeToken<Watch.Response<V1ConfigMap>>() {}.getType();
    StringBuilder seen = new StringBuilder();
    try (Watch<V1ConfigMap> events = Watch.createWatch(client, call, type)) {
      while (seen.length() < 3) seen.append(events.next().type.charAt(0));
    }
    equal(seen.toString(), "AMD");
  }

  static void informer(boolean isGeneric) throws Exception {
    SharedInformerFactory factory = new SharedInformerFactory(client);
    var informer =
        isGeneric
            ? factory.sharedIndexInformerFor(maps, V1ConfigMap.class, 0, NAMESPACE)
            : factory.sharedIndexInformerFor(
                params ->
                    api.listNamespacedConfigMap(NAMESPACE)
                        .resourceVersion(params.resourceVersion)
                        .timeoutSeconds(params.timeoutSeconds)
                        .watch(params.watch)
                        .buildCall(null),
                V1ConfigMap.class,
                V1ConfigMapList.class);
    factory.startAllRegisteredInformers();
    until(informer::hasSynced);
    equal(informer.getIndexer().list().stream().filter(each -> each.getMetadata().getLabels() != null).count(), 3L);
    for (String fault : new String[] {"reset", "compact"}) {
      serverDoes(fault);
      until(
          () ->
              informer.getIndexer().list().stream()
                  .map(each -> each.getMetadata().getAnnotations())
                  .anyMatch(each -> each != null && fault.equals(each.get("fault"))));
    }
    factory.stopAllRegisteredInformers();
  }

  static void dynamic() throws Exception {
    DynamicKubernetesApi deployments = new DynamicKubernetesApi("apps", "v1", "deployments", client);
    String template = "{'metadata': {'labels': {'app': 'web'}}, 'spec': {'containers': [{'name': 'main', 'image': 'i'}]}}";
    String spec = "{'selector': {'matchLabels': {'app': 'web'}}, 'template': " + template + "}";
    String metadata = "{'name': 'web', 'namespace': '" + NAMESPACE + "'}";
    String text = "{'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': " + metadata + ", 'spec': " + spec + "}";
    deployments.create(Dynamics.newFromJson(text.replace('\'', '"'))).throwsApiException();
    equal(deployments.list(NAMESPACE).throwsApiException().getObject().getItems().size(), 1);
    deployments.delete(NAMESPACE, "web").throwsApiException();
    equal(deployments.get(NAMESPACE, "web").getHttpStatusCode(), 404);
    var groups = new io.kubernetes.client.Discovery(client).findAll();
    if (groups.size() < 50) throw new AssertionError(groups.size() + " resources");
  }

  static void report(String name, Check check) {
    StringWriter error = new StringWriter();
    try {
      check.run();
    } catch (Throwable problem) {
      problem.printStackTrace(new PrintWriter(error));
    }
    System.out.println(new com.google.gson.Gson().toJson(Map.of("name", name, "error", error.toString())));
  }

  public static void main(String[] arguments) throws Exception {
    client = ClientBuilder.standard().build().setReadTimeout(0); // as informers need it
    api = new CoreV1Api(client);
    maps = new GenericKubernetesApi<>(V1ConfigMap.class, V1ConfigMapList.class, "", "v1", "configmaps", client);
    report("pages", Main::pages);
    report("watch", Main::watch);
    report("informer", () -> informer(false));
    report("informer of a generic API", () -> informer(true));
    report("dynamic", Main::dynamic);
    System.exit(0);
  }
}
