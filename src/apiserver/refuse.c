/*
 * Messages about types and objects. Neighbours: verbs.c, kinds.c and request.c refuse by these.
 */
#include "apiserver/refuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *kinf__go_package(const char *group)
{
    static const struct {
        const char *group, *package;
    } names[] = {
        { "", "core" },
        { "apps", "apps" },
        { "batch", "batch" },
        { "autoscaling", "autoscaling" },
        { "policy", "policy" },
        { "networking.k8s.io", "networking" },
        { "rbac.authorization.k8s.io", "rbac" },
        { "coordination.k8s.io", "coordination" },
        { "discovery.k8s.io", "discovery" },
        { "storage.k8s.io", "storage" },
        { "scheduling.k8s.io", "scheduling" },
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        if (strcmp(names[i].group, group) == 0)
            return names[i].package;
    }
    return group;
}

int kinf__refuse_bad_request(struct kinf__refusal *refusal, const char *fmt, ...)
{
    char message[KINF__REFUSAL_MESSAGE_SIZE];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    return kinf__refuse(refusal, 400, "BadRequest", "%s", message);
}

int kinf__refuse_method(struct kinf__refusal *refusal)
{
    kinf__refuse(refusal, 405, "MethodNotAllowed",
                 "the server does not allow this method on the requested resource");
    refusal->details = KINF__DETAILS_EMPTY;
    return KINF_ERR_INVALID;
}

int kinf__refuse_invalid(struct kinf__refusal *refusal, const char *group, const char *kind,
                         const char *name, const char *reason, const char *field,
                         const char *message)
{
    kinf__refuse(refusal, 422, "Invalid", "%s%s%s \"%s\" is invalid: %s: %s", kind,
                 *group != '\0' ? "." : "", group, name, field, message);
    kinf__refusal_set_object(refusal, group, kind, name);
    kinf__refusal_add_cause(refusal, reason, field, message);
    return KINF_ERR_INVALID;
}

/* What is said of an object, around its name. */
struct problem {
    int code;
    const char *reason;
    const char *before, *behind;
};

static int refuse_object(struct kinf__refusal *refusal, const struct kinf__resource *resource,
                         const char *name, const struct problem *problem, const char *why)
{
    kinf__refuse(refusal, problem->code, problem->reason, "%s%s%s%s \"%s\"%s%s", problem->before,
                 resource->name, *resource->group != '\0' ? "." : "", resource->group, name,
                 problem->behind, why);
    kinf__refusal_set_object(refusal, resource->group, resource->name, name);
    return KINF_ERR_INVALID;
}

int kinf__refuse_not_found(struct kinf__refusal *refusal, const struct kinf__resource *resource,
                           const char *name)
{
    static const struct problem not_found = { 404, "NotFound", "", " not found" };

    return refuse_object(refusal, resource, name, &not_found, "");
}

int kinf__refuse_exists(struct kinf__refusal *refusal, const struct kinf__resource *resource,
                        const char *name)
{
    static const struct problem exists = { 409, "AlreadyExists", "", " already exists" };

    return refuse_object(refusal, resource, name, &exists, "");
}

int kinf__refuse_forbidden(struct kinf__refusal *refusal, const struct kinf__resource *resource,
                           const char *name, const char *why)
{
    static const struct problem forbidden = { 403, "Forbidden", "", " is forbidden: " };

    return refuse_object(refusal, resource, name, &forbidden, why);
}

int kinf__refuse_conflict(struct kinf__refusal *refusal, const struct kinf__resource *resource,
                          const char *name, const char *fmt, ...)
{
    static const struct problem conflict = { 409, "Conflict", "Operation cannot be fulfilled on ",
                                             ": " };
    char why[KINF__REFUSAL_MESSAGE_SIZE];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return refuse_object(refusal, resource, name, &conflict, why);
}
