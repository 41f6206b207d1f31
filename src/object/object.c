/*
 * The object: one allocation that holds its identity and its text; forms of names, and the order of
 * versions, by which queue and informer tell a server that went back from one that moved on.
 * Neighbours: decode.c makes objects from what the server sends, everyone else holds them.
 * Invariant: offsets rise, each string before the body ends with NUL.
 */
#include "object/object.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/misuse.h"
#include "json/scan.h"
#include "object/packed.h"

#define IDENTITY_LEN_MAX   60000
#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyz0123456789"
#define LABEL_MAX          63

/* In front of the excerpt and the compressed bytes. */
struct packed_head {
    struct kinf__packing *packing;
    const struct kinf_object *like;
    uint32_t excerpt_len;
    uint32_t packed_len;
};

static _Atomic(size_t) n_objects;

size_t kinf__object_count(void)
{
    return atomic_load_explicit(&n_objects, memory_order_relaxed);
}

static char *put_string(char *at, struct kinf_str text)
{
    if (text.len != 0)
        memcpy(at, text.bytes, text.len);
    at[text.len] = '\0';
    return at + text.len + 1;
}

static void put_packed(char *at, const struct kinf__packed *packed)
{
    const struct packed_head head = { kinf__packing_ref(packed->packing),
                                      packed->like != NULL ? kinf_object_ref(packed->like) : NULL,
                                      (uint32_t)packed->excerpt.len, (uint32_t)packed->bytes.len };

    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, packed->excerpt.bytes, packed->excerpt.len);
    memcpy(at + sizeof head + packed->excerpt.len, packed->bytes.bytes, packed->bytes.len);
}

struct kinf__packed kinf__object_packed(const struct kinf_object *object)
{
    const char *at = object->text + object->body_offset;
    struct packed_head head;

    memcpy(&head, at, sizeof head);
    at += sizeof head;
    return (struct kinf__packed){ head.packing,
                                  head.like,
                                  { at, head.excerpt_len },
                                  { at + head.excerpt_len, head.packed_len } };
}

static size_t held_len(size_t body_len, const struct kinf__packed *packed)
{
    return packed == NULL ? body_len
                          : sizeof(struct packed_head) + packed->excerpt.len + packed->bytes.len;
}

static void fill(struct kinf_object *object, const struct kinf__object_parts *parts)
{
    char *at = object->text;

    if (parts->name_space.len != 0) {
        at = put_string(at, parts->name_space);
        at[-1] = '/';
    }
    at = put_string(at, parts->name);
    object->uid_offset = (uint16_t)(at - object->text);
    at = put_string(at, parts->uid);
    object->rv_offset = (uint16_t)(at - object->text);
    at = put_string(at, parts->resource_version);
    object->body_offset = (uint16_t)(at - object->text);
    if (parts->packed != NULL)
        put_packed(at, parts->packed);
    else if (parts->body.len != 0)
        memcpy(at, parts->body.bytes, parts->body.len);
}

int kinf__object_new(const struct kinf__object_parts *parts, const struct kinf_object **ret_object,
                     struct kinf_error *err)
{
    size_t identity_len =
        parts->name_space.len + parts->name.len + parts->uid.len + parts->resource_version.len + 4;
    struct kinf_object *object;

    if (identity_len > IDENTITY_LEN_MAX || parts->body.len > UINT32_MAX)
        return kinf__error_set(err, KINF_ERR_LIMIT,
                               "object too large: %zu bytes of names, %zu of text", identity_len,
                               parts->body.len);
    object = malloc(offsetof(struct kinf_object, text) + identity_len +
                    held_len(parts->body.len, parts->packed));
    if (object == NULL)
        return kinf__error_no_memory(err);
    atomic_init(&object->refs, 1);
    object->body_len = (uint32_t)parts->body.len;
    object->type = parts->type;
    object->labels_offset = parts->labels_offset;
    object->labels_len = parts->labels_len & KINF__LABELS_LEN_MAX;
    object->is_packed = parts->packed != NULL;
    object->namespace_len = (uint16_t)parts->name_space.len;
    memcpy(object->places, parts->places, sizeof object->places);
    fill(object, parts);
    atomic_fetch_add_explicit(&n_objects, 1, memory_order_relaxed);
    *ret_object = object;
    return 0;
}

static bool has_identity(const struct kinf_object *object, const struct kinf__object_parts *parts)
{
    return object->type == parts->type &&
           kinf_str_equal(kinf_str_from(kinf_object_resource_version(object)),
                          parts->resource_version) &&
           kinf_str_equal(kinf_object_namespace(object), parts->name_space) &&
           kinf_str_equal(kinf_str_from(kinf_object_name(object)), parts->name) &&
           kinf_str_equal(kinf_str_from(kinf_object_uid(object)), parts->uid);
}

int kinf__object_equals_parts(const struct kinf_object *object,
                              const struct kinf__object_parts *parts)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str body;
    int r;

    if (object->body_len != parts->body.len || !has_identity(object, parts))
        return 0;
    /* What a file had may be no text at all. */
    r = kinf__object_body(object, &scratch, &body);
    return r == KINF_ERR_NO_MEMORY ? r : r == 0 && kinf_str_equal(body, parts->body);
}

int kinf__scratch_reserve(struct kinf_scratch *scratch, size_t size)
{
    char *bytes;

    if (size <= scratch->size)
        return 0;
    /* The old content is of no use: realloc() would copy it. */
    bytes = malloc(size);
    if (bytes == NULL)
        return KINF_ERR_NO_MEMORY;
    kinf_scratch_release(scratch);
    *scratch = (struct kinf_scratch){ bytes, size };
    return 0;
}

const char *kinf__object_plain_body(const struct kinf_object *object)
{
    return object->is_packed ? NULL : object->text + object->body_offset;
}

int kinf__object_body(const struct kinf_object *object, struct kinf_scratch *scratch,
                      struct kinf_str *ret_body)
{
    struct kinf__packed packed;

    *ret_body = (struct kinf_str){ kinf__object_plain_body(object), object->body_len };
    if (!object->is_packed)
        return 0;
    if (kinf__scratch_reserve(scratch, object->body_len) < 0)
        return KINF_ERR_NO_MEMORY;
    packed = kinf__object_packed(object);
    ret_body->bytes = scratch->bytes;
    return kinf__packing_inflate(&packed, scratch->bytes, object->body_len);
}

/* --- looking for what a path names --- */

static bool is_key(const struct kinf_path *path, size_t step, struct kinf_str key)
{
    return step < path->n_steps && path->steps[step].type == KINF__PATH_KEY &&
           kinf_str_equal(path->steps[step].key, key);
}

/* How many steps of the path lead to the place in *ret_place; 0: it comes by none. */
static size_t steps_to_place(const struct kinf_path *path, enum kinf__place *ret_place)
{
    if (is_key(path, 0, KINF_STR("metadata")) && is_key(path, 1, KINF_STR("namespace"))) {
        *ret_place = KINF__PLACE_NAMESPACE;
        return 2;
    }
    *ret_place = KINF__PLACE_SPEC;
    if (is_key(path, 0, KINF_STR("spec")))
        return 1;
    *ret_place = KINF__PLACE_STATUS;
    return is_key(path, 0, KINF_STR("status")) ? 1 : 0;
}

/* A text that starts with what the path's first *ret_n_done steps name, and has what is behind them: the
 * body from there on, or an excerpt that is at hand. */
static int find_start(const struct kinf_object *object, const struct kinf_path *path,
                      struct kinf_scratch *scratch, struct kinf_str *ret_text, size_t *ret_n_done)
{
    enum kinf__place place;
    size_t n_steps;

    *ret_n_done = 0;
    if (object->is_packed) {
        struct kinf__packed packed = kinf__object_packed(object);

        if (kinf__packing_keeps(packed.packing, path)) {
            *ret_text = packed.excerpt;
            return 0;
        }
    }
    if (kinf__object_body(object, scratch, ret_text) < 0)
        return KINF_ERR_NO_MEMORY;
    n_steps = steps_to_place(path, &place);
    if (n_steps == 0 || object->places[place] == KINF__PLACE_UNKNOWN)
        return 0;
    *ret_n_done = n_steps;
    ret_text->bytes += object->places[place];
    ret_text->len -= object->places[place];
    return 0;
}

int kinf__object_lookup(const struct kinf_object *object, const struct kinf_path *path,
                        struct kinf_scratch *scratch, kinf__json_value_cb *callback, void *ctx)
{
    struct kinf_str text;
    size_t n_done;
    int r = find_start(object, path, scratch, &text, &n_done);

    return r < 0 ? r : kinf__json_lookup(text, path, n_done, callback, ctx);
}

int kinf__object_lookup_first(const struct kinf_object *object, const struct kinf_path *path,
                              struct kinf_scratch *scratch, struct kinf__json_value *ret_value)
{
    struct kinf_str text;
    size_t n_done;
    int r = find_start(object, path, scratch, &text, &n_done);

    if (r < 0)
        return r;
    return kinf__json_lookup_first(text, path, n_done, ret_value) ? 0 : KINF_ERR_NOT_FOUND;
}

/* --- labels --- */

/* What labels_offset counts in. */
static struct kinf_str text_with_labels(const struct kinf_object *object)
{
    return object->is_packed
               ? kinf__object_packed(object).excerpt
               : (struct kinf_str){ object->text + object->body_offset, object->body_len };
}

void kinf__object_tell_places(const struct kinf_object *object, struct kinf__object_parts *parts)
{
    parts->labels_offset = object->labels_offset;
    parts->labels_len = object->labels_len;
    memcpy(parts->places, object->places, sizeof parts->places);
}

struct kinf__json_value kinf__object_labels(const struct kinf_object *object)
{
    struct kinf__json_value metadata, labels = { .type = KINF__JSON_NULL };
    struct kinf_str text = text_with_labels(object);

    if (object->labels_offset == KINF__LABELS_ABSENT)
        return labels;
    if (object->labels_offset != KINF__LABELS_UNKNOWN)
        return kinf__json_value_of(
            (struct kinf_str){ text.bytes + object->labels_offset, object->labels_len });
    if (kinf__json_member(kinf__json_value_of(text), KINF_STR("metadata"), &metadata) &&
        !kinf__json_member(metadata, KINF_STR("labels"), &labels))
        labels.type = KINF__JSON_NULL;
    return labels;
}

bool kinf__object_same_uid(const struct kinf_object *a, const struct kinf_object *b)
{
    return a == b || strcmp(kinf_object_uid(a), kinf_object_uid(b)) == 0;
}

/* Whether a string of `len` bytes or more that starts at `offset` ends right before `end`. */
static bool ends_at(const struct kinf_object *object, size_t offset, size_t len, size_t end)
{
    return offset + len < end && offset + strlen(object->text + offset) + 1 == end;
}

static bool check_labels(const struct kinf_object *object)
{
    size_t len;

    if (object->labels_offset == KINF__LABELS_UNKNOWN ||
        object->labels_offset == KINF__LABELS_ABSENT)
        return object->labels_len == 0;
    len = text_with_labels(object).len;
    return object->labels_len >= 1 && object->labels_offset < len &&
           object->labels_len < len - object->labels_offset;
}

/* A value stands behind a colon, as far as one looks back. */
static bool check_places(const struct kinf_object *object, struct kinf_str body)
{
    for (size_t i = 0; i < KINF__N_PLACES; i++) {
        size_t at = object->places[i];

        if (at == KINF__PLACE_UNKNOWN)
            continue;
        while (at > 0 && memchr(" \t\r\n", body.bytes[at - 1], 4) != NULL)
            at--;
        if (at == 0 || body.bytes[at - 1] != ':')
            return false;
    }
    return true;
}

static bool are_places_inside(const struct kinf_object *object)
{
    for (size_t i = 0; i < KINF__N_PLACES; i++) {
        if (object->places[i] >= object->body_len)
            return false;
    }
    return true;
}

static bool is_braced(struct kinf_str text)
{
    return text.len >= 2 && text.bytes[0] == '{' && text.bytes[text.len - 1] == '}';
}

bool kinf__object_check_held(const struct kinf_object *object)
{
    size_t name_offset = object->namespace_len != 0 ? object->namespace_len + 1U : 0;

    return atomic_load_explicit(&object->refs, memory_order_relaxed) != 0 && object->type != NULL &&
           ends_at(object, 0, name_offset + 1, object->uid_offset) &&
           (name_offset == 0 || object->text[object->namespace_len] == '/') &&
           ends_at(object, object->uid_offset, 0, object->rv_offset) &&
           ends_at(object, object->rv_offset, 0, object->body_offset) && object->body_len >= 2 &&
           is_braced(text_with_labels(object)) && check_labels(object) && are_places_inside(object);
}

bool kinf__object_check(const struct kinf_object *object)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str body;

    return kinf__object_check_held(object) && kinf__object_body(object, &scratch, &body) == 0 &&
           is_braced(body) && check_places(object, body);
}

/* Of a callback that gives back what it borrowed, the count goes wrong where nobody sees it. Debug builds
 * keep the last objects that were freed, so that the reference which is missing then is told by name;
 * sanitizers tell it themselves, with the stacks. */
#if !defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define N_FREED 256

static _Atomic(struct kinf_object *) freed[N_FREED];
static _Atomic(size_t) n_freed;

static void free_object(struct kinf_object *object)
{
    size_t place = atomic_fetch_add_explicit(&n_freed, 1, memory_order_relaxed) % N_FREED;

    free(atomic_exchange(&freed[place], object));
}

static void check_is_alive(const struct kinf_object *object, uint32_t refs)
{
    if (refs != 0)
        return;
    fprintf(
        stderr,
        "kinformer: %s %s was given back more often than it was taken: what a callback is lent is "
        "not its own\n",
        object->type->resource, kinf_object_key(object));
    abort();
}
#else
static void free_object(struct kinf_object *object)
{
    free(object);
}

static void check_is_alive(const struct kinf_object *object, uint32_t refs)
{
    (void)object;
    (void)refs;
}
#endif

const struct kinf_object *kinf_object_ref(const struct kinf_object *object)
{
    struct kinf_object *counted = (struct kinf_object *)object;

    if (counted != NULL)
        check_is_alive(counted, atomic_fetch_add_explicit(&counted->refs, 1, memory_order_relaxed));
    return object;
}

bool kinf__object_is_ours_alone(const struct kinf_object *object)
{
    return atomic_load_explicit(&object->refs, memory_order_acquire) == 1;
}

/* Whether that was the last reference. */
static bool let_go(struct kinf_object *object)
{
    uint32_t refs = atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel);

    check_is_alive(object, refs);
    return refs == 1;
}

/* With the last reference to one that is packed goes that to the one it is read by. */
void kinf_object_unref(const struct kinf_object *object)
{
    struct kinf_object *counted = (struct kinf_object *)object;

    while (counted != NULL && let_go(counted)) {
        struct kinf__packed packed = { .packing = NULL };

        atomic_fetch_sub_explicit(&n_objects, 1, memory_order_relaxed);
        if (counted->is_packed)
            packed = kinf__object_packed(counted);
        free_object(counted);
        kinf__packing_unref(packed.packing);
        counted = (struct kinf_object *)packed.like;
    }
}

void kinf_object_unref_ptr(const struct kinf_object **object)
{
    KINF__REFUSE_NULL(NULL, , object);
    kinf_object_unref(*object);
}

const struct kinf_type *kinf_object_type(const struct kinf_object *object)
{
    KINF__REFUSE_NULL(NULL, NULL, object);
    return object->type;
}

const char *kinf_object_key(const struct kinf_object *object)
{
    KINF__REFUSE_NULL(NULL, "", object);
    return object->text;
}

const char *kinf_object_name(const struct kinf_object *object)
{
    KINF__REFUSE_NULL(NULL, "", object);
    return object->namespace_len != 0 ? object->text + object->namespace_len + 1 : object->text;
}

struct kinf_str kinf_object_namespace(const struct kinf_object *object)
{
    KINF__REFUSE_NULL(NULL, ((struct kinf_str){ "", 0 }), object);

    struct kinf_str name_space = { object->text, object->namespace_len };

    return name_space;
}

const char *kinf_object_uid(const struct kinf_object *object)
{
    KINF__REFUSE_NULL(NULL, "", object);
    return object->text + object->uid_offset;
}

const char *kinf_object_resource_version(const struct kinf_object *object)
{
    KINF__REFUSE_NULL(NULL, "", object);
    return object->text + object->rv_offset;
}

size_t kinf_object_size(const struct kinf_object *object)
{
    KINF__REFUSE_NULL(NULL, 0, object);
    size_t len = object->body_len;

    if (object->is_packed) {
        struct kinf__packed packed = kinf__object_packed(object);

        len = held_len(len, &packed);
    }
    return offsetof(struct kinf_object, text) + object->body_offset + len;
}

/* --- keys --- */

const char *kinf__object_key_name(const char *key)
{
    const char *slash = strchr(key, '/');

    return slash != NULL ? slash + 1 : key;
}

const char *kinf__object_key_split(const char *key, char name_space[KINF_NAME_MAX])
{
    const char *name = kinf__object_key_name(key);

    snprintf(name_space, KINF_NAME_MAX, "%.*s", name != key ? (int)(name - key) - 1 : 0, key);
    return name;
}

const char *kinf__object_key_join(char key[KINF__KEY_SIZE], const char *name_space,
                                  const char *name)
{
    bool has_namespace = name_space != NULL && *name_space != '\0';

    snprintf(key, KINF__KEY_SIZE, "%s%s%s", has_namespace ? name_space : "",
             has_namespace ? "/" : "", name);
    return key;
}

/* --- forms of names --- */

int kinf__name_check_namespace(const char *text, struct kinf_error *err)
{
    size_t len = strlen(text);

    if (len != 0 && len <= LABEL_MAX && strspn(text, LETTERS_AND_DIGITS "-") == len &&
        text[0] != '-' && text[len - 1] != '-')
        return 0;
    return kinf__error_set(err, KINF_ERR_INVALID,
                           "\"%.100s\" is no name of a namespace: at most 63 lower case letters, "
                           "digits and '-', the first and last no '-'",
                           text);
}

int kinf__name_check_segment(const char *text, struct kinf_error *err)
{
    if (*text != '\0' && strpbrk(text, "/%") == NULL && strcmp(text, ".") != 0 &&
        strcmp(text, "..") != 0)
        return 0;
    return kinf__error_set(
        err, KINF_ERR_INVALID,
        "\"%.100s\" is no name: it may not be empty, \".\" or \"..\", and has no "
        "'/' and no '%%'",
        text);
}

/* --- the order of resourceVersions: as digits, since 2^128-1 is beyond any integer --- */

/* 2^128-1, the highest that the API allows. */
static const char highest[] = "340282366920938463463374607431768211455";

/* Without leading zeros the longer number is the larger one. */
static int compare_digits(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len != b_len ? (a_len > b_len) - (a_len < b_len) : memcmp(a, b, a_len);
}

static bool has_order(const char *rv, size_t len)
{
    return len != 0 && rv[0] != '0' && strspn(rv, "0123456789") == len &&
           compare_digits(rv, len, highest, sizeof highest - 1) <= 0;
}

static int refuse(const char *rv, struct kinf_error *err)
{
    return kinf__error_set(
        err, KINF_ERR_INVALID,
        "resourceVersion \"%.64s\" has no order: a decimal number from 1 to 2^128-1 has", rv);
}

int kinf_rv_compare(const char *a, const char *b, int *ret_order, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, a, b, ret_order);

    size_t a_len = strlen(a), b_len = strlen(b);

    if (!has_order(a, a_len))
        return refuse(a, err);
    if (!has_order(b, b_len))
        return refuse(b, err);
    *ret_order = compare_digits(a, a_len, b, b_len);
    return 0;
}
