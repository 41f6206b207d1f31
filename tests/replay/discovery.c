/*
 * Canned discovery, itself a script. Neighbour: script.c.
 */
#include "replay/script.h"

#define ANSWER(path, body)                                                                         \
    "exchange always\nunlisted\nmatch GET " path "\nstatus 200\nbody length\nevent " body "\n"

#define LIST_VERBS "[\"get\",\"list\",\"watch\"]"

#define RESOURCE(name, kind, namespaced, short_name)                                               \
    "{\"name\":\"" name "s\",\"singularName\":\"" name "\",\"namespaced\":" namespaced             \
    ",\"kind\":\"" kind "\",\"verbs\":" LIST_VERBS ",\"shortNames\":[\"" short_name "\"]}"

#define RESOURCES(group_version, resources)                                                        \
    "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"" group_version        \
    "\",\"resources\":[" resources "]}"

#define GROUP(name)                                                                                \
    "\"name\":\"" name "\",\"versions\":[{\"groupVersion\":\"" name "/v1\",\"version\":\"v1\"}],"  \
    "\"preferredVersion\":{\"groupVersion\":\"" name "/v1\",\"version\":\"v1\"}"

static const char discovery[] = ANSWER(
    "/api",
    "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],"
    "\"serverAddressByClientCIDRs\":[]}") ANSWER("/apis",
                                                 "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\","
                                                 "\"groups\":["
                                                 "{" GROUP("apps") "},{" GROUP("example.com") "}]}")
    ANSWER("/apis/apps", "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"," GROUP("apps") "}") ANSWER(
        "/apis/example.com",
        "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"," GROUP("example.com") "}")
        ANSWER(
            "/api/v1",
            RESOURCES(
                "v1",
                RESOURCE("configmap", "ConfigMap", "true",
                         "cm") ",{\"name\":\"pods/status\",\"singularName\":\"\","
                               "\"namespaced\":true,\"kind\":\"Pod\",\"verbs\":[\"get\"]}"
                               "," RESOURCE("event", "Event", "true", "ev") "," RESOURCE(
                                   "namespace", "Namespace", "false",
                                   "ns") "," RESOURCE("node", "Node", "false",
                                                      "no") "," RESOURCE("pod", "Pod", "true",
                                                                         "po") "," RESOURCE("secre"
                                                                                            "t",
                                                                                            "Secre"
                                                                                            "t",
                                                                                            "true",
                                                                                            "sec")))
            ANSWER("/apis/apps/v1",
                   RESOURCES("apps/v1", RESOURCE("deployment", "Deployment", "true", "deploy")))
                ANSWER("/apis/example.com/v1",
                       RESOURCES("example.com/v1",
                                 RESOURCE("gizmo", "Gizmo", "true",
                                          "gz") "," RESOURCE("widget", "Widget", "true", "wd")));

int replay__script_add_discovery(struct replay__script *script, struct kinf_error *err)
{
    return replay__script_parse(script, discovery, "", err);
}
