/*
 * Names of definitions: which of them are free, and what the status says of that. Neighbours:
 * definitions.c serves what has the names that it wants.
 */
#include "apiserver/definitions_priv.h"

#include <stdio.h>
#include <string.h>

#include "apiserver/conditions.h"
#include "apiserver/kinds.h"

enum conflict {
    PLURAL = 1,
    SINGULAR = 2,
    SHORT_NAMES = 4,
    KIND = 8,
    LIST_KIND = 16,
};

static const struct {
    enum conflict conflict;
    const char *member;
    const char *reason;
} members[] = {
    { PLURAL, "plural", "PluralConflict" },
    { SINGULAR, "singular", "SingularConflict" },
    { SHORT_NAMES, "shortNames", "ShortNamesConflict" },
    { KIND, "kind", "KindConflict" },
    { LIST_KIND, "listKind", "ListKindConflict" },
};

static unsigned conflicts_with(const struct kinf__resource *resource,
                               const struct cJSON *definition)
{
    const struct cJSON *short_name;
    char list_kind[KINF_NAME_MAX];
    unsigned conflicts = 0;

    snprintf(list_kind, sizeof list_kind, "%sList", resource->kind);
    if (kinf__resource_is_called(resource, name_of(definition, "plural")))
        conflicts |= PLURAL;
    if (kinf__resource_is_called(resource, name_of(definition, "singular")))
        conflicts |= SINGULAR;
    cJSON_ArrayForEach(short_name, kinf__doc_find(definition, "spec", "names", "shortNames", NULL))
    {
        if (cJSON_IsString(short_name) &&
            kinf__resource_is_called(resource, short_name->valuestring))
            conflicts |= SHORT_NAMES;
    }
    if (strcmp(resource->kind, name_of(definition, "kind")) == 0)
        conflicts |= KIND;
    if (strcmp(list_kind, name_of(definition, "listKind")) == 0)
        conflicts |= LIST_KIND;
    return conflicts;
}

unsigned kinf__definition_find_conflicts(struct kinf__sim *sim, const struct cJSON *definition,
                                         const struct kinf__resource *own)
{
    unsigned conflicts = 0;

    for (const struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(kinf__sim_store(sim), resource)) != NULL;) {
        if (resource != own && strcmp(resource->group, text_of(definition, "group")) == 0)
            conflicts |= conflicts_with(resource, definition);
    }
    return conflicts;
}

static int accept_names(struct cJSON *definition, unsigned conflicts)
{
    struct cJSON *status = kinf__doc_object(definition, "status");
    KINF__AUTO_DOC *names = kinf__doc_dup(kinf__doc_find(definition, "spec", "names", NULL));

    if (status == NULL || names == NULL)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < KINF__ARRAY_LEN(members); i++) {
        if ((conflicts & members[i].conflict) != 0 &&
            kinf__kind_restore(kinf__doc_get(status, "acceptedNames"), names, members[i].member) <
                0)
            return KINF_ERR_NO_MEMORY;
    }
    return kinf__doc_set(status, "acceptedNames", KINF__TAKE(names));
}

static int set_condition(struct cJSON *definition, const struct kinf__condition *condition)
{
    return kinf__condition_set(definition, condition) != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

/* What is established once stays so. */
static int set_established(struct cJSON *definition, unsigned conflicts)
{
    static const struct kinf__condition established = { "Established", "True",
                                                        "InitialNamesAccepted",
                                                        "the initial names have been accepted" };
    static const struct kinf__condition not_accepted = { "Established", "False", "NotAccepted",
                                                         "not all names are accepted" };

    if (kinf__condition_is(definition, "Established", "True"))
        return 0;
    return set_condition(definition, conflicts == 0 ? &established : &not_accepted);
}

static int set_accepted(struct cJSON *definition, unsigned conflicts)
{
    struct kinf__condition accepted = { "NamesAccepted", "True", "NoConflicts",
                                        "no conflicts found" };
    char message[KINF_NAME_MAX + 32];

    for (size_t i = 0; i < KINF__ARRAY_LEN(members); i++) {
        if ((conflicts & members[i].conflict) == 0)
            continue;
        snprintf(message, sizeof message, "\"%s\" is already in use",
                 name_of(definition, members[i].member));
        accepted = (struct kinf__condition){ "NamesAccepted", "False", members[i].reason, message };
    }
    return set_condition(definition, &accepted);
}

int kinf__definition_accept_names(struct cJSON *definition, unsigned conflicts)
{
    int failed = accept_names(definition, conflicts);

    if (failed == 0)
        failed = set_accepted(definition, conflicts);
    return failed == 0 ? set_established(definition, conflicts) : failed;
}
