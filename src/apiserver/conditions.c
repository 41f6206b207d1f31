/*
 * Conditions. Neighbours: namespaces.c and definitions.c tell by them how far they are.
 */
#include "apiserver/conditions.h"

#include <string.h>

#include "apiserver/sim.h"

static struct cJSON *find(const struct cJSON *conditions, const char *type)
{
    struct cJSON *condition;

    cJSON_ArrayForEach(condition, conditions)
    {
        if (strcmp(kinf__doc_text(condition, "type", NULL), type) == 0)
            return condition;
    }
    return NULL;
}

static struct cJSON *add(struct cJSON *conditions, const char *type)
{
    struct cJSON *condition = cJSON_CreateObject();

    if (condition == NULL || kinf__doc_set_text(condition, "type", type) < 0) {
        cJSON_Delete(condition);
        return NULL;
    }
    return kinf__doc_append(conditions, condition) == 0 ? condition : NULL;
}

/* The array, made if there is none; NULL: out of memory. */
static struct cJSON *conditions_of(struct cJSON *object)
{
    struct cJSON *status = kinf__doc_object(object, "status");

    if (status == NULL || (!cJSON_IsArray(kinf__doc_get(status, "conditions")) &&
                           kinf__doc_set(status, "conditions", cJSON_CreateArray()) < 0))
        return NULL;
    return kinf__doc_get(status, "conditions");
}

int kinf__condition_set(struct cJSON *object, const struct kinf__condition_value *value)
{
    struct cJSON *conditions = conditions_of(object), *condition;
    char time[KINF__TIME_SIZE];

    if (conditions == NULL)
        return KINF_ERR_NO_MEMORY;
    condition = find(conditions, value->type);
    if (condition == NULL)
        condition = add(conditions, value->type);
    if (condition == NULL)
        return KINF_ERR_NO_MEMORY;
    if (strcmp(kinf__doc_text(condition, "status", NULL), value->status) != 0) {
        kinf__sim_time(time);
        if (kinf__doc_set_text(condition, "status", value->status) < 0 ||
            kinf__doc_set_text(condition, "lastTransitionTime", time) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (kinf__doc_set_text(condition, "reason", value->reason) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_set_text(condition, "message", value->message);
}

bool kinf__condition_is(const struct cJSON *object, const char *type, const char *status)
{
    const struct cJSON *condition =
        find(kinf__doc_find(object, "status", "conditions", NULL), type);

    return strcmp(kinf__doc_text(condition, "status", NULL), status) == 0;
}
