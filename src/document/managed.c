/*
 * The entries of managedFields, and writes that are not applied. Neighbours: field_set.c knows what
 * differs, apply.c shares the entries.
 */
#include "document/managed_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* Beyond these, those who updated longest ago become one. */
#define MAX_UPDATERS 10

/* --- entries --- */

void kinf__entries_release(struct kinf__entries *entries)
{
    for (size_t i = 0; i < entries->n_items; i++)
        kinf__field_set_release(&entries->items[i].fields);
    free(entries->items);
    cJSON_Delete(entries->list);
    *entries = (struct kinf__entries){ 0 };
}

static struct kinf__entry *push(struct kinf__entries *entries, const struct kinf__entry *entry)
{
    size_t n = entries->n_items;
    struct kinf__entry *items = entries->items;

    if ((n & (n - 1)) == 0)
        items = reallocarray(items, n != 0 ? 2 * n : 1, sizeof *items);
    if (items == NULL)
        return NULL;
    entries->items = items;
    items[entries->n_items++] = *entry;
    return &items[n];
}

static int read_entry(struct kinf__entries *entries, const struct cJSON *from)
{
    const char *operation = kinf__doc_text(from, "operation", NULL);
    struct kinf__entry entry = {
        .manager = kinf__doc_text(from, "manager", NULL),
        .is_apply = strcmp(operation, "Apply") == 0,
        .api_version = kinf__doc_text(from, "apiVersion", NULL),
        .subresource = kinf__doc_text(from, "subresource", NULL),
        .time = kinf__doc_text(from, "time", NULL),
    };
    struct kinf__entry *added;

    if ((!entry.is_apply && strcmp(operation, "Update") != 0) || *entry.api_version == '\0' ||
        strcmp(kinf__doc_text(from, "fieldsType", NULL), "FieldsV1") != 0)
        return KINF_ERR_INVALID;
    added = push(entries, &entry);
    if (added == NULL)
        return KINF_ERR_NO_MEMORY;
    return kinf__field_set_read(kinf__doc_get(from, "fieldsV1"), &added->fields);
}

int kinf__entries_read(struct kinf__entries *entries, const struct cJSON *object)
{
    const struct cJSON *list = kinf__doc_find(object, "metadata", "managedFields", NULL), *item;
    int failed = 0;

    *entries = (struct kinf__entries){ 0 };
    if (!cJSON_IsArray(list))
        return 0;
    entries->list = kinf__doc_dup(list);
    if (entries->list == NULL)
        return KINF_ERR_NO_MEMORY;
    for (item = entries->list->child; failed == 0 && item != NULL; item = item->next)
        failed = read_entry(entries, item);
    if (failed < 0)
        kinf__entries_release(entries);
    return failed;
}

static int set_unless_empty(struct cJSON *object, const char *name, const char *text)
{
    return *text != '\0' ? kinf__doc_set_text(object, name, text) : 0;
}

static int write_entry(const struct kinf__entry *entry, struct cJSON *list)
{
    struct cJSON *to = cJSON_CreateObject(), *fields;

    if (kinf__doc_append(list, to) < 0 || set_unless_empty(to, "manager", entry->manager) < 0 ||
        kinf__doc_set_text(to, "operation", entry->is_apply ? "Apply" : "Update") < 0 ||
        kinf__doc_set_text(to, "apiVersion", entry->api_version) < 0 ||
        set_unless_empty(to, "time", entry->time) < 0 ||
        kinf__doc_set_text(to, "fieldsType", "FieldsV1") < 0 ||
        kinf__field_set_write(&entry->fields, &fields) < 0 ||
        kinf__doc_set(to, "fieldsV1", fields) < 0)
        return KINF_ERR_NO_MEMORY;
    return set_unless_empty(to, "subresource", entry->subresource);
}

static int compare_entries(const void *a, const void *b)
{
    const struct kinf__entry *x = a, *y = b;
    int order = y->is_apply - x->is_apply;

    if (order == 0)
        order = strcmp(x->time, y->time);
    if (order == 0)
        order = strcmp(x->manager, y->manager);
    if (order == 0)
        order = strcmp(x->api_version, y->api_version);
    return order != 0 ? order : strcmp(x->subresource, y->subresource);
}

static void sort_entries(struct kinf__entries *entries)
{
    if (entries->n_items != 0)
        qsort(entries->items, entries->n_items, sizeof *entries->items, compare_entries);
}

int kinf__entries_write(struct kinf__entries *entries, struct cJSON *object)
{
    struct cJSON *list = cJSON_CreateArray();
    struct cJSON *metadata = kinf__doc_object(object, "metadata");

    sort_entries(entries);
    if (kinf__doc_set(metadata, "managedFields", list) < 0)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < entries->n_items; i++) {
        if (!kinf__field_set_is_empty(&entries->items[i].fields) &&
            write_entry(&entries->items[i], list) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (list->child == NULL)
        kinf__doc_remove(metadata, "managedFields");
    return 0;
}

/* Who applies is the same in every version. */
static struct kinf__entry *find_entry(const struct kinf__entries *entries,
                                      const struct kinf__manager *manager, bool is_apply)
{
    for (size_t i = 0; i < entries->n_items; i++) {
        struct kinf__entry *entry = &entries->items[i];

        if (entry->is_apply == is_apply && strcmp(entry->manager, manager->name) == 0 &&
            strcmp(entry->subresource, manager->subresource) == 0 &&
            (is_apply || strcmp(entry->api_version, manager->api_version) == 0))
            return entry;
    }
    return NULL;
}

struct kinf__entry *kinf__entries_get(struct kinf__entries *entries,
                                      const struct kinf__manager *manager, bool is_apply)
{
    struct kinf__entry entry = {
        manager->name, is_apply, manager->api_version, manager->subresource, "", { 0 },
    };
    struct kinf__entry *found = find_entry(entries, manager, is_apply);

    return found != NULL ? found : push(entries, &entry);
}

static bool is_same_group(const char *api_version, const char *other)
{
    const char *slash = strchr(api_version, '/'), *other_slash = strchr(other, '/');
    size_t len = slash != NULL ? (size_t)(slash - api_version) : 0;

    return len == (other_slash != NULL ? (size_t)(other_slash - other) : 0) &&
           memcmp(api_version, other, len) == 0;
}

void kinf__entries_forget_foreign(struct kinf__entries *entries, const char *api_version)
{
    for (size_t i = 0; i < entries->n_items; i++) {
        if (!is_same_group(entries->items[i].api_version, api_version))
            kinf__field_set_release(&entries->items[i].fields);
    }
}

void kinf__entries_subtract(struct kinf__entries *entries, const struct kinf__entry *except,
                            const struct kinf__field_set *fields)
{
    for (size_t i = 0; i < entries->n_items; i++) {
        if (&entries->items[i] != except)
            kinf__field_set_subtract(&entries->items[i].fields, fields);
    }
}

/* --- what is nobody's --- */

/* clang-format off */
#define FIELD(name) { (char[]){ "f:" name }, true, { NULL, 0, 0 } }

static struct kinf__set_field metadata_fields[] = {
    FIELD("creationTimestamp"), FIELD("generation"), FIELD("managedFields"), FIELD("name"),
    FIELD("namespace"), FIELD("resourceVersion"), FIELD("selfLink"), FIELD("uid"),
};
static struct kinf__set_field server_fields[] = {
    FIELD("apiVersion"), FIELD("kind"),
    { (char[]){ "f:metadata" }, true, { metadata_fields, KINF__ARRAY_LEN(metadata_fields), 0 } },
};
/* clang-format on */

void kinf__fields_strip(struct kinf__field_set *fields)
{
    static const struct kinf__field_set set = { server_fields, KINF__ARRAY_LEN(server_fields), 0 };

    kinf__field_set_subtract(fields, &set);
}

/* --- updates --- */

static bool is_clearing(const struct cJSON *object)
{
    const struct cJSON *list = kinf__doc_find(object, "metadata", "managedFields", NULL);

    if (!cJSON_IsArray(list))
        return false;
    return list->child == NULL ||
           (list->child->next == NULL && cJSON_IsObject(list->child) && list->child->child == NULL);
}

/* Those that the write begins with. */
static int read_base(struct kinf__entries *entries, const struct cJSON *old,
                     const struct cJSON *object, const struct kinf__manager *manager, bool is_reset)
{
    bool is_clients = old != NULL && *manager->subresource == '\0';
    int failed = 0;

    *entries = (struct kinf__entries){ 0 };
    if (is_clients && (is_reset || is_clearing(object)))
        return 0;
    if (is_clients)
        failed = kinf__entries_read(entries, object);
    if (failed == KINF_ERR_INVALID || (failed == 0 && entries->n_items == 0)) {
        kinf__entries_release(entries);
        failed = kinf__entries_read(entries, old);
    }
    return failed == KINF_ERR_INVALID ? 0 : failed;
}

static bool is_updater(const struct kinf__entry *entry)
{
    return !entry->is_apply && !kinf__field_set_is_empty(&entry->fields);
}

/* An earlier one of the same version, or NULL. */
static struct kinf__entry *find_older(struct kinf__entries *entries, size_t before)
{
    for (size_t i = 0; i < before; i++) {
        if (is_updater(&entries->items[i]) &&
            strcmp(entries->items[i].api_version, entries->items[before].api_version) == 0)
            return &entries->items[i];
    }
    return NULL;
}

/* The oldest updaters of each version become "ancient-changes" together, until they are few. */
static int cap_updaters(struct kinf__entries *entries)
{
    size_t n_updaters = 0;
    struct kinf__entry *entry, *older;

    for (size_t i = 0; i < entries->n_items; i++)
        n_updaters += is_updater(&entries->items[i]);
    if (n_updaters > MAX_UPDATERS)
        sort_entries(entries);
    for (size_t i = 0; n_updaters > MAX_UPDATERS && i < entries->n_items; i++) {
        entry = &entries->items[i];
        older = find_older(entries, i);
        if (!is_updater(entry) || older == NULL)
            continue;
        if (kinf__field_set_add(&older->fields, &entry->fields) < 0)
            return KINF_ERR_NO_MEMORY;
        older->manager = "ancient-changes";
        older->subresource = "";
        older->time = entry->time;
        kinf__field_set_release(&entry->fields);
        n_updaters--;
    }
    return 0;
}

static int take_over(struct kinf__entries *entries, const struct kinf__manager *manager,
                     const struct kinf__field_set *changed)
{
    struct kinf__entry *own;

    if (kinf__field_set_is_empty(changed))
        return 0;
    own = kinf__entries_get(entries, manager, false);
    if (own == NULL)
        return KINF_ERR_NO_MEMORY;
    own->time = manager->time;
    return kinf__field_set_add(&own->fields, changed);
}

static int update(const struct kinf__schema_node *node, const struct cJSON *old,
                  const struct cJSON *object, const struct kinf__manager *manager,
                  struct kinf__entries *entries)
{
    static const struct cJSON nothing = { .type = cJSON_Object };
    KINF__AUTO_FIELD_SET changed = { 0 };
    KINF__AUTO_FIELD_SET removed = { 0 };

    if (kinf__field_set_compare(node, old != NULL ? old : &nothing, object, &changed, &removed) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__entries_forget_foreign(entries, manager->api_version);
    kinf__fields_strip(&changed);
    kinf__entries_subtract(entries, NULL, &changed);
    kinf__entries_subtract(entries, NULL, &removed);
    return take_over(entries, manager, &changed) < 0 ? KINF_ERR_NO_MEMORY : cap_updaters(entries);
}

int kinf__managed_update(const struct kinf__schema_node *node, const struct cJSON *old,
                         struct cJSON *object, const struct kinf__manager *manager, bool is_reset)
{
    KINF__AUTO_ENTRIES entries = { 0 };

    if (read_base(&entries, old, object, manager, is_reset) < 0)
        return KINF_ERR_NO_MEMORY;
    if ((old == NULL || entries.n_items != 0) && update(node, old, object, manager, &entries) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__entries_write(&entries, object);
}

/* --- writes of nothing --- */

static bool is_same_but_for_time(const struct cJSON *entry, const struct cJSON *other)
{
    static const char *const names[] = { "manager", "operation", "apiVersion", "subresource",
                                         "fieldsType" };

    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        if (strcmp(kinf__doc_text(entry, names[i], NULL), kinf__doc_text(other, names[i], NULL)) !=
            0)
            return false;
    }
    return kinf__doc_equal(kinf__doc_get(entry, "fieldsV1"), kinf__doc_get(other, "fieldsV1"));
}

static bool are_same_but_for_time(const struct cJSON *list, const struct cJSON *other)
{
    const struct cJSON *a = list->child, *b = other->child;

    while (a != NULL && b != NULL && is_same_but_for_time(a, b)) {
        a = a->next;
        b = b->next;
    }
    return a == NULL && b == NULL;
}

int kinf__managed_keep_times(const struct cJSON *old, struct cJSON *object)
{
    const struct cJSON *before = kinf__doc_find(old, "metadata", "managedFields", NULL);
    struct cJSON *metadata = kinf__doc_get(object, "metadata"), *list;
    KINF__AUTO_DOC *kept = NULL;

    list = kinf__doc_get(metadata, "managedFields");
    if (before == NULL || list == NULL || !are_same_but_for_time(before, list))
        return 0;
    kept = cJSON_DetachItemViaPointer(metadata, list);
    if (kinf__doc_set(metadata, "managedFields", kinf__doc_dup(before)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_equal(old, object)
               ? 0
               : kinf__doc_set(metadata, "managedFields", KINF__TAKE(kept));
}
