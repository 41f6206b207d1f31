/*
 * Canned discovery, itself a script. Neighbour: script.c.
 */
#include "replay/script.h"

#define ANSWER(path, body)                                                                         \
    "exchange always\nunlisted\nmatch GET " path "\nstatus 200\nevent " body "\n"

#define RESOURCES(group_version, name, kind)                                                       \
    "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"" group_version        \
    "\",\"resources\":[{\"name\":\"" name "s\",\"singularName\":\"" name                           \
    "\",\"namespaced\":true,\"kind\":\"" kind "\",\"verbs\":[\"get\",\"list\",\"watch\"]}]}"

#define EXAMPLE                                                                                    \
    "{\"name\":\"example.com\","                                                                   \
    "\"versions\":[{\"groupVersion\":\"example.com/v1\",\"version\":\"v1\"}],"                     \
    "\"preferredVersion\":{\"groupVersion\":\"example.com/v1\",\"version\":\"v1\"}}"

/* clang-format off */
static const char discovery[] =
    ANSWER("/api", "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"]}")
    ANSWER("/api/v1", RESOURCES("v1", "pod", "Pod"))
    ANSWER("/apis", "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[" EXAMPLE "]}")
    ANSWER("/apis/example.com/v1", RESOURCES("example.com/v1", "widget", "Widget"));
/* clang-format on */

int replay__script_add_discovery(struct replay__script *script, struct kinf_error *err)
{
    return replay__script_parse(script, discovery, "", err);
}
