"""What a program does with the Python client: client.py KUBECONFIG NAMESPACE list|pages|watch|dynamic|write CACHE.
Prints JSON, one value a line."""

import json
import sys

from kubernetes import client, config, dynamic, watch


def show(value):
    print(json.dumps(value, sort_keys=True), flush=True)


def event_of(event):
    metadata = event["object"].metadata
    return [event["type"], event["object"].kind, metadata.name, metadata.resource_version]


class Program:
    def __init__(self, kubeconfig, namespace, cache):
        self.api = config.new_client_from_config(kubeconfig)
        self.core = client.CoreV1Api(self.api)
        self.namespace = namespace
        self.cache = cache

    def show_items(self, items):
        show([self.api.sanitize_for_serialization(item) for item in items])

    def list(self):
        self.show_items(self.core.list_namespaced_config_map(self.namespace).items)
        self.show_items(self.core.list_namespaced_config_map(self.namespace, label_selector="i=1").items)
        self.show_items(self.core.list_config_map_for_all_namespaces(
            field_selector=f"metadata.name=c1,metadata.namespace={self.namespace}").items)
        self.show_items([self.core.read_namespaced_config_map("c1", self.namespace)])
        try:
            self.core.read_namespaced_config_map("zzz", self.namespace)
        except client.exceptions.ApiException as refusal:
            show([refusal.status, json.loads(refusal.body)])
        show(client.VersionApi(self.api).get_code().major)

    def pages(self):
        token = None
        while token != "":
            page = self.core.list_namespaced_config_map(self.namespace, limit=2, _continue=token)
            self.show_items(page.items)
            token = page.metadata._continue or ""

    def watch(self):
        """Follows the config maps through watches of a second each, until one is named last."""
        version = self.core.list_namespaced_config_map(self.namespace).metadata.resource_version
        show("listed")
        while True:
            stream = watch.Watch()
            for event in stream.stream(self.core.list_namespaced_config_map, self.namespace, timeout_seconds=1,
                                       resource_version=version):
                show(event_of(event))
                version = event["object"].metadata.resource_version
                if event["object"].metadata.name == "last":
                    return

    def dynamic(self):
        resources = dynamic.DynamicClient(self.api, cache_file=self.cache).resources
        gadgets = resources.get(api_version="test.kinformer.dev/v1", kind="Gadget")
        show([item.to_dict() for item in gadgets.get(namespace=self.namespace).items])
        show(resources.get(api_version="v1", kind="ConfigMap").get(name="c1", namespace=self.namespace).to_dict())
        for event in gadgets.watch(namespace=self.namespace, timeout=100):
            show(event_of(event))
            if event["object"].metadata.name == "last":
                return

    def write(self):
        """A life of a config map and of a deployment, which is waited for."""
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="written"), data={"x": "1"})
        made = self.core.create_namespaced_config_map(self.namespace, body)
        try:
            self.core.create_namespaced_config_map(self.namespace, body)
        except client.exceptions.ApiException as refusal:
            show([refusal.status, json.loads(refusal.body)["reason"]])
        made.data = {"x": "2"}
        show(self.core.replace_namespaced_config_map("written", self.namespace, made).data)
        show(self.core.patch_namespaced_config_map("written", self.namespace, {"data": {"x": None, "y": "3"}}).data)
        done = self.core.delete_namespaced_config_map("written", self.namespace)
        show(done["status"])
        gadgets = dynamic.DynamicClient(self.api, cache_file=self.cache).resources.get(
            api_version="test.kinformer.dev/v1", kind="Gadget")
        gadget = {"apiVersion": "test.kinformer.dev/v1", "kind": "Gadget", "metadata": {"name": "applied"},
                  "spec": {"size": 2}}
        show(gadgets.server_side_apply(gadget, namespace=self.namespace, field_manager="python").to_dict()["spec"])
        self.roll_out()

    def roll_out(self):
        apps = client.AppsV1Api(self.api)
        labels = {"app": "web"}
        template = client.V1PodTemplateSpec(
            metadata=client.V1ObjectMeta(labels=labels),
            spec=client.V1PodSpec(containers=[client.V1Container(name="web", image="example/web:1")]))
        apps.create_namespaced_deployment(self.namespace, client.V1Deployment(
            metadata=client.V1ObjectMeta(name="web"),
            spec=client.V1DeploymentSpec(replicas=2, selector=client.V1LabelSelector(match_labels=labels),
                                         template=template)))
        for event in watch.Watch().stream(apps.list_namespaced_deployment, self.namespace, timeout_seconds=100):
            if event["object"].status.available_replicas == 2:
                show("available")
                return


if __name__ == "__main__":
    program = Program(sys.argv[1], sys.argv[2], sys.argv[4])
    getattr(program, sys.argv[3])()
