/*
 * The newest objects. Neighbours: the reflector notes them, reflector_verify.c asks for them.
 * Invariant: no key is there twice.
 */
#include "reflector/newest.h"

#include <string.h>

#include "base/compiler.h"
#include "object/object.h"

bool kinf__newest_is_newer(const char *rv, const char *than)
{
    int order;

    return kinf_rv_compare(rv, than, &order, NULL) == 0 && order > 0;
}

static void insert(struct kinf__newest *newest, size_t at, const struct kinf_object *object)
{
    if (newest->n_stored == KINF__NEWEST_MAX)
        kinf_object_unref(newest->stored[--newest->n_stored]);
    memmove(&newest->stored[at + 1], &newest->stored[at],
            (newest->n_stored++ - at) * sizeof newest->stored[0]);
    newest->stored[at] = kinf_object_ref(object);
}

void kinf__newest_drop(struct kinf__newest *newest, const char *key)
{
    for (size_t i = 0; i < newest->n_stored; i++) {
        if (strcmp(kinf_object_key(newest->stored[i]), key) != 0)
            continue;
        kinf_object_unref(newest->stored[i]);
        memmove(&newest->stored[i], &newest->stored[i + 1],
                (--newest->n_stored - i) * sizeof newest->stored[0]);
        return;
    }
}

/* NULL: no memory. */
static const struct kinf_object *without_body(const struct kinf_object *object)
{
    const struct kinf__object_parts parts = {
        .type = kinf_object_type(object),
        .name_space = kinf_object_namespace(object),
        .name = kinf_str_from(kinf_object_name(object)),
        .uid = kinf_str_from(kinf_object_uid(object)),
        .resource_version = kinf_str_from(kinf_object_resource_version(object)),
        .body = KINF_STR("{}"),
    };
    const struct kinf_object *identity = NULL;

    return kinf__object_new(&parts, &identity, NULL) == 0 ? identity : NULL;
}

void kinf__newest_note(struct kinf__newest *newest, const struct kinf_object *object,
                       bool is_deleted)
{
    kinf__newest_drop(newest, kinf_object_key(object));
    if (!is_deleted) {
        insert(newest, 0, object);
        return;
    }
    kinf_object_unref(newest->deleted);
    newest->deleted = without_body(object);
}

void kinf__newest_take_list(struct kinf__newest *newest, const struct kinf_object *const *items,
                            size_t n_items, const struct kinf__stop *stop)
{
    kinf__newest_release(newest);
    for (size_t i = 0; i < n_items && !kinf__stop_is_set(stop); i++) {
        size_t at = newest->n_stored;

        while (at > 0 &&
               kinf__newest_is_newer(kinf_object_resource_version(items[i]),
                                     kinf_object_resource_version(newest->stored[at - 1])))
            at--;
        if (at < KINF__NEWEST_MAX)
            insert(newest, at, items[i]);
    }
}

void kinf__newest_release(struct kinf__newest *newest)
{
    while (newest->n_stored > 0)
        kinf_object_unref(newest->stored[--newest->n_stored]);
    kinf_object_unref(KINF__TAKE(newest->deleted));
}
