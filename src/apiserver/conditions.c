/*
 * Conditions. Neighbours: namespaces.c, definitions.c and workloads/ tell by them how far they are.
 */
#include "apiserver/conditions.h"

#include <stdint.h>
#include <string.h>

#include "apiserver/sim.h"

const struct cJSON *kinf__condition_find(const struct cJSON *object, const char *type)
{
    const struct cJSON *condition;

    cJSON_ArrayForEach(condition, kinf__doc_find(object, "status", "conditions", NULL))
    {
        if (strcmp(kinf__doc_text(condition, "type", NULL), type) == 0)
            return condition;
    }
    return NULL;
}

bool kinf__condition_is(const struct cJSON *object, const char *type, const char *status)
{
    return strcmp(kinf__doc_text(kinf__condition_find(object, type), "status", NULL), status) == 0;
}

static struct cJSON *add(struct cJSON *object, const char *type)
{
    struct cJSON *status = kinf__doc_object(object, "status");
    struct cJSON *conditions = status != NULL ? kinf__doc_array(status, "conditions") : NULL;
    struct cJSON *condition = conditions != NULL ? cJSON_CreateObject() : NULL;

    if (condition == NULL || kinf__doc_set_text(condition, "type", type) < 0) {
        cJSON_Delete(condition);
        return NULL;
    }
    return kinf__doc_append(conditions, condition) == 0 ? condition : NULL;
}

static int set_or_remove(struct cJSON *condition, const char *name, const char *text)
{
    if (text != NULL && *text != '\0')
        return kinf__doc_set_text(condition, name, text);
    kinf__doc_remove(condition, name);
    return 0;
}

struct cJSON *kinf__condition_set(struct cJSON *object, const struct kinf__condition *condition)
{
    struct cJSON *node = (struct cJSON *)(uintptr_t)kinf__condition_find(object, condition->type);
    char time[KINF__RFC3339_SIZE];

    if (node == NULL)
        node = add(object, condition->type);
    if (node == NULL)
        return NULL;
    if (strcmp(kinf__doc_text(node, "status", NULL), condition->status) != 0) {
        kinf__sim_time(time);
        if (kinf__doc_set_text(node, "status", condition->status) < 0 ||
            kinf__doc_set_text(node, "lastTransitionTime", time) < 0)
            return NULL;
    }
    return set_or_remove(node, "reason", condition->reason) == 0 &&
                   set_or_remove(node, "message", condition->message) == 0
               ? node
               : NULL;
}
