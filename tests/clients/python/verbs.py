"""What tests/clients/kubeconfig.py asks of every client, of three in Python:

    verbs.py kr8s|lightkube|python KUBECONFIG NAMESPACE read|write NAME

`read` prints the names of the config maps, the value of the one called "one", "watching", and the first event of the
one called NAME; `write` makes that one and prints its name, or the status code that it was refused with.
"""

import sys


def show(*words):
    print(*words, flush=True)


def read(client, name):
    show(*sorted(client.names()))
    show(client.value("one"))
    show("watching")
    for kind, found in client.events():
        if found == name:
            show(kind, found)
            return


class Kr8s:
    def __init__(self, kubeconfig, namespace):
        import kr8s  # each client alone, as its programs have it
        self.objects = kr8s.objects
        self.refusal = kr8s.ServerError
        self.api = kr8s.api(kubeconfig=kubeconfig, namespace=namespace)

    def names(self):
        return [item.name for item in self.api.get("configmaps")]

    def value(self, name):
        return self.objects.ConfigMap.get(name, api=self.api).data["value"]

    def events(self):
        return ((kind, item.name) for kind, item in self.api.watch("configmaps"))

    def write(self, name):
        made = self.objects.ConfigMap({"metadata": {"name": name, "namespace": self.api.namespace}}, api=self.api)
        try:
            made.create()
        except self.refusal as refusal:
            return refusal.response.status_code
        return made.name


class Lightkube:
    def __init__(self, kubeconfig, namespace):
        from lightkube import ApiError, Client, KubeConfig
        from lightkube.models.meta_v1 import ObjectMeta
        from lightkube.resources.core_v1 import ConfigMap
        self.kind = ConfigMap
        self.metadata = ObjectMeta
        self.refusal = ApiError
        self.client = Client(config=KubeConfig.from_file(kubeconfig), namespace=namespace)

    def names(self):
        return [item.metadata.name for item in self.client.list(self.kind)]

    def value(self, name):
        return self.client.get(self.kind, name).data["value"]

    def events(self):
        return ((kind, item.metadata.name) for kind, item in self.client.watch(self.kind))

    def write(self, name):
        try:
            return self.client.create(self.kind(metadata=self.metadata(name=name))).metadata.name
        except self.refusal as refusal:
            return refusal.status.code


class Python:
    def __init__(self, kubeconfig, namespace):
        import kubernetes
        self.kubernetes = kubernetes
        self.core = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(kubeconfig))
        self.namespace = namespace

    def names(self):
        return [item.metadata.name for item in self.core.list_namespaced_config_map(self.namespace).items]

    def value(self, name):
        return self.core.read_namespaced_config_map(name, self.namespace).data["value"]

    def events(self):
        stream = self.kubernetes.watch.Watch().stream(self.core.list_namespaced_config_map, self.namespace)
        return ((event["type"], event["object"].metadata.name) for event in stream)

    def write(self, name):
        try:
            return self.core.create_namespaced_config_map(self.namespace, {"metadata": {"name": name}}).metadata.name
        except self.kubernetes.client.exceptions.ApiException as refusal:
            return refusal.status


if __name__ == "__main__":
    _, which, the_kubeconfig, the_namespace, verb, the_name = sys.argv
    chosen = {"kr8s": Kr8s, "lightkube": Lightkube, "python": Python}[which](the_kubeconfig, the_namespace)
    if verb == "read":
        read(chosen, the_name)
    else:
        show(chosen.write(the_name))
