/*
 * ConfigMaps and Secrets: keys, what certain types of Secrets must have, and those that shall never
 * change again. Neighbours: kinds.c.
 */
#include "apiserver/kinds_priv.h"

#include <string.h>

#include "document/node_index.h"

#define DATA_MAX 1048576
#define FROZEN   "field is immutable when `immutable` is set"

/* --- both --- */

static void check_key(const char *key, const struct kinf__field *parent,
                      struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field_key(parent, key);

    (void)kinf__invalid_check_name(invalid, &field, KINF__NAME_CONFIG_KEY, key);
}

/* Bytes of the values, where they are in base64 those that they stand for. */
static size_t size_of(const struct cJSON *data, bool is_encoded)
{
    const struct cJSON *value;
    size_t size = 0;

    cJSON_ArrayForEach(value, data)
    {
        size_t len = cJSON_IsString(value) ? strlen(value->valuestring) : 0;

        size += is_encoded ? len / 4 * 3 : len;
    }
    return size;
}

static void check_frozen(const struct cJSON *object, const struct cJSON *old,
                         struct kinf__invalid *invalid)
{
    static const char *const members[] = { "data", "binaryData" };

    if (!kinf__doc_is_true(old, "immutable"))
        return;
    if (!kinf__doc_is_true(object, "immutable"))
        kinf__invalid_forbidden(invalid, KINF__AT(NULL, "immutable"), FROZEN);
    for (size_t i = 0; i < KINF__ARRAY_LEN(members); i++) {

        if (!kinf__doc_equal(kinf__doc_get(old, members[i]), kinf__doc_get(object, members[i])))
            kinf__invalid_forbidden(invalid, KINF__AT(NULL, members[i]), FROZEN);
    }
}

/* --- ConfigMaps --- */

void kinf__config_map_check(const struct cJSON *object, const struct cJSON *old,
                            struct kinf__invalid *invalid)
{
    const struct kinf__field root = kinf__field_key(NULL, "");
    const struct kinf__field data_field = kinf__field(NULL, "data");
    const struct cJSON *data = kinf__doc_get(object, "data"), *value;
    struct cJSON *binary = kinf__doc_get(object, "binaryData");
    KINF__AUTO_NODE_MEMBERS others = { NULL, false, { KINF__HMAP_INIT } };

    if (size_of(data, false) + size_of(binary, true) > DATA_MAX) {
        kinf__invalid_too_long(invalid, &root, DATA_MAX);
        return;
    }
    /* Without memory the write itself fails next. */
    if (binary != NULL &&
        kinf__node_members_init(&others, binary, (size_t)cJSON_GetArraySize(data)) < 0)
        return;
    cJSON_ArrayForEach(value, data)
    {
        const struct kinf__field field = kinf__field_key(&data_field, value->string);

        check_key(value->string, &data_field, invalid);
        if (binary != NULL && kinf__node_members_get(&others, value->string) != NULL)
            kinf__invalid_text(invalid, &field, value->string,
                               "duplicate of key present in binaryData");
    }
    cJSON_ArrayForEach(value, binary)
        check_key(value->string, KINF__AT(NULL, "binaryData"), invalid);
    check_frozen(object, old, invalid);
}

/* --- Secrets --- */

/* What those of a type must have; `either`: one of them is enough. */
static const struct {
    const char *type;
    const char *keys[2];
    bool either;
} secret_types[] = {
    { "kubernetes.io/tls", { "tls.crt", "tls.key" }, false },
    { "kubernetes.io/basic-auth", { "username", "password" }, true },
    { "kubernetes.io/ssh-auth", { "ssh-privatekey", NULL }, false },
    { "kubernetes.io/dockerconfigjson", { ".dockerconfigjson", NULL }, false },
    { "kubernetes.io/dockercfg", { ".dockercfg", NULL }, false },
};

static void check_type(const struct cJSON *object, const struct kinf__field *data_field,
                       struct kinf__invalid *invalid)
{
    const char *type = kinf__doc_text(object, "type", NULL);
    const struct cJSON *data = kinf__doc_get(object, "data");

    for (size_t i = 0; i < KINF__ARRAY_LEN(secret_types); i++) {
        const char *const *keys = secret_types[i].keys;

        if (strcmp(secret_types[i].type, type) != 0 ||
            (secret_types[i].either &&
             (kinf__doc_get(data, keys[0]) != NULL || kinf__doc_get(data, keys[1]) != NULL)))
            continue;
        for (size_t k = 0; k < 2 && keys[k] != NULL; k++) {
            const struct kinf__field field = kinf__field_key(data_field, keys[k]);

            if (kinf__doc_get(data, keys[k]) == NULL)
                kinf__invalid_required(invalid, &field, "");
        }
    }
}

static void check_account(const struct cJSON *object, struct kinf__invalid *invalid)
{
    static const char annotation[] = "kubernetes.io/service-account.name";
    const struct kinf__field annotations = kinf__field(NULL, "metadata.annotations");
    const struct kinf__field field = kinf__field_key(&annotations, annotation);

    if (strcmp(kinf__doc_text(object, "type", NULL), "kubernetes.io/service-account-token") == 0 &&
        *kinf__doc_text(object, "metadata", "annotations", annotation, NULL) == '\0')
        kinf__invalid_required(invalid, &field, "");
}

void kinf__secret_check(const struct cJSON *object, const struct cJSON *old,
                        struct kinf__invalid *invalid)
{
    const struct kinf__field data_field = kinf__field(NULL, "data");
    const struct cJSON *data = kinf__doc_get(object, "data"), *value;

    cJSON_ArrayForEach(value, data) check_key(value->string, &data_field, invalid);
    if (size_of(data, true) > DATA_MAX)
        kinf__invalid_too_long(invalid, &data_field, DATA_MAX);
    check_account(object, invalid);
    check_type(object, &data_field, invalid);
    if (old == NULL)
        return;
    kinf__kind_check_same(old, object, NULL, "type", KINF__IMMUTABLE, invalid);
    check_frozen(object, old, invalid);
}
