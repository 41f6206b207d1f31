// What tests/clients/kubeconfig.py asks of every client, of @kubernetes/client-node:
//
//     verbs.js KUBECONFIG NAMESPACE read|write NAME
//
// `read` prints the names of the config maps, the value of the one called "one", "watching", and the first event of
// the one called NAME; `write` makes that one and prints its name, or the status code that it was refused with.

import { createRequire } from "node:module";

// It is installed below build/, where nothing of this folder is looked up.
const { ApiException, CoreV1Api, KubeConfig, Watch } = await import(
  createRequire(`${process.env.CLIENT_NODE}/package.json`).resolve("@kubernetes/client-node"));

const [, , kubeconfig, namespace, verb, name] = process.argv;
const config = new KubeConfig();
config.loadFromFile(kubeconfig);
const core = config.makeApiClient(CoreV1Api);

async function read() {
  const list = await core.listNamespacedConfigMap({ namespace });
  console.log(list.items.map((item) => item.metadata.name).sort().join(" "));
  console.log((await core.readNamespacedConfigMap({ namespace, name: "one" })).data.value);
  console.log("watching");
  await new Watch(config).watch(
    `/api/v1/namespaces/${namespace}/configmaps`, { resourceVersion: list.metadata.resourceVersion },
    (type, object) => {
      if (object.metadata.name === name) {
        console.log(`${type} ${name}`);
        process.exit(0);
      }
    },
    (error) => {
      console.error("the watch ended", error);
      process.exit(1);
    });
}

async function write() {
  try {
    const made = await core.createNamespacedConfigMap({ namespace, body: { metadata: { name } } });
    console.log(made.metadata.name);
  } catch (refusal) {
    if (!(refusal instanceof ApiException)) {
      throw refusal;
    }
    console.log(refusal.code);
  }
}

await (verb === "read" ? read() : write());
