/*
 * What the server has of each object. See known.h.
 */
#include "known.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct known_object *)a)->key, ((const struct known_object *)b)->key);
}

/* `a` is a resource: equal are all keys that begin with it and a dot. They are together in the order
 * of compare. */
static int compare_resource(const void *a, const void *b)
{
    const char *resource = ((const struct known_object *)a)->key;
    const char *key = ((const struct known_object *)b)->key;
    size_t len = strlen(resource);
    int order = strncmp(resource, key, len);

    return order != 0 ? order : '.' - key[len];
}

struct known_object *known_find(const struct known *known, const char *key)
{
    struct known_object wanted = { .key = (char *)key };
    struct known_object **found = tfind(&wanted, &known->tree, compare);

    return found != NULL ? *found : NULL;
}

struct known_object *known_any_of(const struct known *known, const char *resource)
{
    struct known_object wanted = { .key = (char *)resource };
    struct known_object **found = tfind(&wanted, &known->tree, compare_resource);

    return found != NULL ? *found : NULL;
}

static void free_object(void *arg)
{
    struct known_object *object = arg;

    free(object->key);
    free(object->stream);
    free(object->bucket);
    free(object);
}

void known_remove(struct known *known, struct known_object *object)
{
    tdelete(object, &known->tree, compare);
    free_object(object);
}

static struct known_object *add(struct known *known, const char *key)
{
    struct known_object *object = calloc(1, sizeof *object);

    if (object == NULL || (object->key = strdup(key)) == NULL ||
        tsearch(object, &known->tree, compare) == NULL) {
        if (object != NULL) {
            free_object(object);
        }
        return NULL;
    }
    return object;
}

static struct known_object *find_or_add(struct known *known, const char *key)
{
    struct known_object *object = known_find(known, key);

    return object != NULL ? object : add(known, key);
}

static int replace(char **text, const char *by)
{
    free(*text);
    *text = by != NULL ? strdup(by) : NULL;
    return by == NULL || *text != NULL ? 0 : -1;
}

int known_put_stream(struct known *known, const char *key, const char *version, bool is_gone)
{
    struct known_object *object = find_or_add(known, key);

    if (object == NULL) {
        return -1;
    }
    object->is_gone = is_gone;
    return replace(&object->stream, version);
}

int known_put_bucket(struct known *known, const char *key, const char *version, uint64_t content,
                     bool is_gone)
{
    struct known_object *object = find_or_add(known, key);

    if (object == NULL) {
        return -1;
    }
    object->content = content;
    return replace(&object->bucket, is_gone ? NULL : version);
}

/* Its newest version of which is known, told or gone; NULL: none is. */
static const char *newest(const struct known_object *object)
{
    const char *in_bucket =
        object->bucket != NULL && object->bucket[0] != '\0' ? object->bucket : NULL;

    return object->stream != NULL ? object->stream : in_bucket;
}

const char *known_told(const struct known_object *object)
{
    return object->is_gone ? NULL : newest(object);
}

const char *known_resource_version(const char *version)
{
    const char *slash = strrchr(version, '/');

    return slash != NULL ? slash + 1 : "";
}

static bool is_number(const char *text)
{
    return text[0] >= '1' && text[0] <= '9' && text[strspn(text, "0123456789")] == '\0';
}

/* Who does not say by numbers what is newer is believed. A deletion may have the version of the state
 * before it, if it went unseen. */
bool known_is_ahead(const struct known_object *object, const char *version)
{
    const char *known = newest(object) != NULL ? known_resource_version(newest(object)) : "";
    const char *other = known_resource_version(version);
    size_t len = strlen(known), other_len = strlen(other);
    int order;

    if (!is_number(known) || !is_number(other)) {
        return false;
    }
    order = len != other_len ? (len > other_len) - (len < other_len) : strcmp(known, other);
    return order > 0 || (order == 0 && object->is_gone);
}

void known_release(struct known *known)
{
    tdestroy(known->tree, free_object);
    known->tree = NULL;
}
