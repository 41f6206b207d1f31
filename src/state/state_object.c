/*
 * Objects and their bases, as bytes. Neighbours: state_file.c has the head, which says of the dictionary
 * and how many bases there are; state_load.c makes objects on two threads.
 *
 * Invariant: an object is made only of lengths that were read, each within what is left of its section;
 * what others are told by is told by the dictionary itself.
 */
#include "state/state_object.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "object/object.h"

#define NAME_TEXT_MAX 60000u
/* Of the text of objects in a section, before the last one of them. */
#define SECTION_BYTES ((size_t)2 << 20)
#define N_BASES_FIRST 64

/* How an object is written. */
enum form {
    FORM_PLAIN, /* names, places, the body */
    FORM_PACKED, /* names, places, the body's length, which base (0: the dictionary), excerpt, bytes */
    FORM_BASE, /* which base it is, from 1 */
};

void kinf__state_bases_release(struct kinf__state_bases *bases)
{
    for (size_t i = 0; i < bases->n_items; i++)
        kinf_object_unref(bases->items[i]);
    free(bases->items);
    kinf__packing_unref(bases->packing);
}

/* Errors: KINF_ERR_NO_MEMORY. */
static int add_base(struct kinf__state_bases *bases, const struct kinf_object *take_base)
{
    size_t size = bases->size == 0 ? N_BASES_FIRST : 2 * bases->size;
    const struct kinf_object **items = bases->items;

    if (bases->n_items == bases->size) {
        items = realloc(items, size * sizeof *items);
        if (items == NULL) {
            kinf_object_unref(take_base);
            return KINF_ERR_NO_MEMORY;
        }
        bases->items = items;
        bases->size = size;
    }
    items[bases->n_items++] = take_base;
    return 0;
}

/* --- what a snapshot's objects are told by --- */

static int compare(const void *a, const void *b)
{
    uintptr_t left = (uintptr_t) * (const struct kinf_object *const *)a;
    uintptr_t right = (uintptr_t) * (const struct kinf_object *const *)b;

    return (left > right) - (left < right);
}

static void keep_one_of_each(struct kinf__state_bases *bases)
{
    size_t n = 0;

    if (bases->n_items > 1)
        qsort(bases->items, bases->n_items, sizeof *bases->items, compare);
    for (size_t i = 0; i < bases->n_items; i++) {
        if (n != 0 && bases->items[n - 1] == bases->items[i])
            kinf_object_unref(bases->items[i]);
        else
            bases->items[n++] = bases->items[i];
    }
    bases->n_items = n;
}

/* Neighbours mostly have the same one. Errors: KINF_ERR_NO_MEMORY. */
static int note_base(struct kinf__state_bases *bases, const struct kinf_object *object)
{
    struct kinf__packed packed;

    if (!object->is_packed)
        return 0;
    packed = kinf__object_packed(object);
    if (bases->packing == NULL)
        bases->packing = kinf__packing_ref(packed.packing);
    if (packed.packing != bases->packing || packed.like == NULL ||
        (bases->n_items != 0 && bases->items[bases->n_items - 1] == packed.like))
        return 0;
    return add_base(bases, kinf_object_ref(packed.like));
}

int kinf__state_bases_find(struct kinf__state_bases *bases, const struct kinf_snapshot *snapshot,
                           struct kinf_error *err)
{
    const struct kinf_object *object;
    struct kinf_cursor cursor;

    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL) {
        if (note_base(bases, object) < 0)
            return kinf__error_no_memory(err);
    }
    keep_one_of_each(bases);
    return 0;
}

/* From 1; 0: it is none of them. */
static uint32_t number_of(const struct kinf__state_bases *bases, const struct kinf_object *object)
{
    const struct kinf_object **found =
        bases->n_items == 0
            ? NULL
            : bsearch(&object, bases->items, bases->n_items, sizeof *bases->items, compare);

    return found != NULL ? (uint32_t)(found - bases->items) + 1 : 0;
}

/* --- writing --- */

int kinf__state_put_number(struct kinf__sealed_writer *writer, uint64_t number, size_t size,
                           struct kinf_error *err)
{
    uint64_t bytes = htole64(number);

    return kinf__sealed_write(writer, &bytes, size, err);
}

int kinf__state_put_text(struct kinf__sealed_writer *writer, struct kinf_str text,
                         struct kinf_error *err)
{
    int failed = kinf__state_put_number(writer, text.len, sizeof(uint32_t), err);

    return failed < 0 || text.len == 0 ? failed
                                       : kinf__sealed_write(writer, text.bytes, text.len, err);
}

/* Several of 32 bits. */
static int put_numbers(struct kinf__sealed_writer *writer, const uint32_t *numbers, size_t n,
                       struct kinf_error *err)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < n; i++)
        failed = kinf__state_put_number(writer, numbers[i], sizeof numbers[i], err);
    return failed;
}

/* Names, and what is known of the texts, so that it need not be looked for when they are read. */
static int put_outside(struct kinf__sealed_writer *writer, enum form form,
                       const struct kinf_object *object, const struct kinf__object_parts *places,
                       struct kinf_error *err)
{
    const struct kinf_str names[] = { kinf_object_namespace(object),
                                      kinf_str_from(kinf_object_name(object)),
                                      kinf_str_from(kinf_object_uid(object)),
                                      kinf_str_from(kinf_object_resource_version(object)) };
    const uint32_t labels[] = { places->labels_offset, places->labels_len };
    int failed = kinf__state_put_number(writer, form, 1, err);

    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(names); i++)
        failed = kinf__state_put_text(writer, names[i], err);
    if (failed == 0)
        failed = put_numbers(writer, labels, KINF__ARRAY_LEN(labels), err);
    return failed < 0 ? failed : put_numbers(writer, places->places, KINF__N_PLACES, err);
}

static int put_packed(struct kinf__sealed_writer *writer, const struct kinf__state_bases *bases,
                      const struct kinf_object *object, const struct kinf__packed *packed,
                      struct kinf_error *err)
{
    const uint32_t numbers[] = { object->body_len,
                                 packed->like != NULL ? number_of(bases, packed->like) : 0 };
    struct kinf__object_parts places;
    int failed;

    if (object->body_len > KINF__SEALED_TEXT_MAX)
        return kinf__error_set(err, KINF_ERR_LIMIT, "an object of %" PRIu32 " bytes",
                               object->body_len);
    kinf__object_tell_places(object, &places);
    failed = put_outside(writer, FORM_PACKED, object, &places, err);
    if (failed == 0)
        failed = put_numbers(writer, numbers, KINF__ARRAY_LEN(numbers), err);
    if (failed == 0)
        failed = kinf__state_put_text(writer, packed->excerpt, err);
    return failed < 0 ? failed : kinf__state_put_text(writer, packed->bytes, err);
}

/* Its labels are not looked for in the excerpt then. */
static int put_plain(struct kinf__sealed_writer *writer, const struct kinf_object *object,
                     struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__object_parts places;
    struct kinf_str body;
    int failed = kinf__object_body(object, &scratch, &body) < 0 ? kinf__error_no_memory(err) : 0;

    kinf__object_tell_places(object, &places);
    if (object->is_packed && places.labels_len != 0) {
        places.labels_offset = KINF__LABELS_UNKNOWN;
        places.labels_len = 0;
    }
    if (failed == 0)
        failed = put_outside(writer, FORM_PLAIN, object, &places, err);
    return failed < 0 ? failed : kinf__state_put_text(writer, body, err);
}

static int put_one(struct kinf__sealed_writer *writer, const struct kinf__state_bases *bases,
                   const struct kinf_object *object, struct kinf_error *err)
{
    struct kinf__packed packed;

    if (!object->is_packed)
        return put_plain(writer, object, err);
    packed = kinf__object_packed(object);
    return packed.packing == bases->packing ? put_packed(writer, bases, object, &packed, err)
                                            : put_plain(writer, object, err);
}

static int cut_if_long(struct kinf__sealed_writer *writer, struct kinf_error *err)
{
    return writer->text.len < SECTION_BYTES ? 0 : kinf__sealed_cut(writer, err);
}

int kinf__state_put_base(struct kinf__sealed_writer *writer, const struct kinf__state_bases *bases,
                         size_t i, struct kinf_error *err)
{
    int failed = put_one(writer, bases, bases->items[i], err);

    if (failed == 0)
        failed = i + 1 < bases->n_items ? cut_if_long(writer, err) : kinf__sealed_cut(writer, err);
    return failed;
}

int kinf__state_put_object(struct kinf__sealed_writer *writer,
                           const struct kinf__state_bases *bases, const struct kinf_object *object,
                           struct kinf_error *err)
{
    uint32_t number = number_of(bases, object);
    int failed;

    if (number == 0) {
        failed = put_one(writer, bases, object, err);
    } else {
        failed = kinf__state_put_number(writer, FORM_BASE, 1, err);
        if (failed == 0)
            failed = put_numbers(writer, &number, 1, err);
    }
    return failed < 0 ? failed : cut_if_long(writer, err);
}

/* --- reading --- */

int kinf__state_malformed(struct kinf_error *err)
{
    return kinf__error_set(err, KINF_ERR_PARSE, "damaged: what it holds is not as it is written");
}

int kinf__state_take_number(struct kinf_str *rest, size_t size, uint64_t *ret_number,
                            struct kinf_error *err)
{
    uint64_t number = 0;

    if (rest->len < size)
        return kinf__state_malformed(err);
    memcpy(&number, rest->bytes, size);
    rest->bytes += size;
    rest->len -= size;
    *ret_number = le64toh(number);
    return 0;
}

int kinf__state_take_text(struct kinf_str *rest, uint64_t max_len, struct kinf_str *ret_text,
                          struct kinf_error *err)
{
    uint64_t len = 0;
    int failed = kinf__state_take_number(rest, sizeof(uint32_t), &len, err);

    if (failed < 0)
        return failed;
    if (len > max_len || len > rest->len)
        return kinf__state_malformed(err);
    *ret_text = (struct kinf_str){ rest->bytes, (size_t)len };
    rest->bytes += len;
    rest->len -= (size_t)len;
    return 0;
}

static int take_name(struct kinf_str *rest, struct kinf_str *ret_name, struct kinf_error *err)
{
    int failed = kinf__state_take_text(rest, NAME_TEXT_MAX, ret_name, err);

    return failed == 0 && ret_name->len != 0 && memchr(ret_name->bytes, '\0', ret_name->len) != NULL
               ? kinf__state_malformed(err)
               : failed;
}

static int take_names(struct kinf_str *rest, struct kinf__object_parts *parts,
                      struct kinf_error *err)
{
    int failed = take_name(rest, &parts->name_space, err);

    if (failed == 0)
        failed = take_name(rest, &parts->name, err);
    if (failed == 0)
        failed = take_name(rest, &parts->uid, err);
    if (failed == 0)
        failed = take_name(rest, &parts->resource_version, err);
    return failed == 0 &&
                   (parts->name.len == 0 || memchr(parts->name.bytes, '/', parts->name.len) != NULL)
               ? kinf__state_malformed(err)
               : failed;
}

static int take_numbers(struct kinf_str *rest, uint32_t *numbers, size_t n, struct kinf_error *err)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < n; i++) {
        uint64_t number = 0;

        failed = kinf__state_take_number(rest, sizeof numbers[i], &number, err);
        numbers[i] = (uint32_t)number;
    }
    return failed;
}

static int take_places(struct kinf_str *rest, struct kinf__object_parts *parts,
                       struct kinf_error *err)
{
    int failed = take_numbers(rest, &parts->labels_offset, 1, err);

    if (failed == 0)
        failed = take_numbers(rest, &parts->labels_len, 1, err);
    if (failed == 0 && parts->labels_len > KINF__LABELS_LEN_MAX)
        failed = kinf__state_malformed(err);
    return failed < 0 ? failed : take_numbers(rest, parts->places, KINF__N_PLACES, err);
}

/* An object of these parts, which are the section's. */
static int make_object(const struct kinf__object_parts *parts,
                       const struct kinf_object **ret_object, struct kinf_error *err)
{
    const struct kinf_object *object;
    int failed = kinf__object_new(parts, &object, err);

    if (failed < 0)
        return failed == KINF_ERR_LIMIT ? kinf__state_malformed(err) : failed;
    if (parts->packed != NULL ? !kinf__object_check_held(object) : !kinf__object_check(object)) {
        kinf_object_unref(object);
        return kinf__state_malformed(err);
    }
    *ret_object = object;
    return 0;
}

/* NULL: there is none of this number. */
static const struct kinf_object *find_base(const struct kinf__state_bases *bases, uint32_t number)
{
    return number != 0 && number <= bases->n_items ? bases->items[number - 1] : NULL;
}

static int take_packed(struct kinf_str *rest, struct kinf__object_parts *parts,
                       const struct kinf__state_bases *bases, const struct kinf_object **ret_object,
                       struct kinf_error *err)
{
    struct kinf__packed packed = { .packing = bases->packing };
    uint32_t numbers[2] = { 0 };
    int failed = take_numbers(rest, numbers, KINF__ARRAY_LEN(numbers), err);

    if (failed == 0)
        failed = kinf__state_take_text(rest, UINT32_MAX, &packed.excerpt, err);
    if (failed == 0)
        failed = kinf__state_take_text(rest, UINT32_MAX, &packed.bytes, err);
    if (failed < 0)
        return failed;
    packed.like = find_base(bases, numbers[1]);
    if (packed.packing == NULL || numbers[0] > KINF__SEALED_TEXT_MAX ||
        (packed.like == NULL && numbers[1] != 0))
        return kinf__state_malformed(err);
    parts->body.len = numbers[0];
    parts->packed = &packed;
    failed = make_object(parts, ret_object, err);
    parts->packed = NULL;
    return failed;
}

static int take_base(struct kinf_str *rest, const struct kinf__state_bases *bases,
                     const struct kinf_object **ret_object, struct kinf_error *err)
{
    const struct kinf_object *base;
    uint32_t number = 0;
    int failed = take_numbers(rest, &number, 1, err);

    if (failed < 0)
        return failed;
    base = find_base(bases, number);
    if (base == NULL)
        return kinf__state_malformed(err);
    *ret_object = kinf_object_ref(base);
    return 0;
}

int kinf__state_take_object(struct kinf_str *rest, const struct kinf_type *type,
                            const struct kinf__state_bases *bases,
                            const struct kinf_object **ret_object, struct kinf_error *err)
{
    struct kinf__object_parts parts = { .type = type };
    uint64_t form = 0;
    int failed = kinf__state_take_number(rest, 1, &form, err);

    if (failed == 0 && form == FORM_BASE)
        return take_base(rest, bases, ret_object, err);
    if (failed == 0 && form > FORM_PACKED)
        failed = kinf__state_malformed(err);
    if (failed == 0)
        failed = take_names(rest, &parts, err);
    if (failed == 0)
        failed = take_places(rest, &parts, err);
    if (failed == 0 && form == FORM_PACKED)
        return take_packed(rest, &parts, bases, ret_object, err);
    if (failed == 0)
        failed = kinf__state_take_text(rest, UINT32_MAX, &parts.body, err);
    return failed < 0 ? failed : make_object(&parts, ret_object, err);
}

/* Those of one section. While they are read there are none to be told by: each is by the dictionary. */
static int take_bases_of(struct kinf__sealed_section *section, const struct kinf_type *type,
                         struct kinf__state_bases *bases, const struct kinf__stop *stop,
                         struct kinf_error *err)
{
    const struct kinf__state_bases none = { .packing = bases->packing };
    struct kinf_str rest;
    int failed = kinf__sealed_inflate(section, err);

    rest = kinf__buffer_str(&section->text);
    while (failed == 0 && rest.len != 0) {
        const struct kinf_object *base = NULL;

        if (kinf__stop_is_set(stop))
            return kinf__error_set(err, KINF_ERR_STOPPED, "there was no time for it");
        failed = kinf__state_take_object(&rest, type, &none, &base, err);
        if (base != NULL && !base->is_packed) {
            kinf_object_unref(base);
            return kinf__state_malformed(err);
        }
        if (base != NULL && add_base(bases, base) < 0)
            failed = kinf__error_no_memory(err);
    }
    return failed;
}

int kinf__state_take_bases(struct kinf__sealed_reader *reader, const struct kinf_type *type,
                           uint64_t n_bases, struct kinf__state_bases *bases,
                           const struct kinf__stop *stop, struct kinf_error *err)
{
    struct kinf__sealed_section section = { .text_len = 0 };
    int failed = 0;

    while (failed == 0 && bases->n_items < n_bases) {
        failed = kinf__sealed_next(reader, &section, err);
        if (failed == 0)
            failed = section.text_len == 0 ? kinf__state_malformed(err)
                                           : take_bases_of(&section, type, bases, stop, err);
    }
    kinf__sealed_section_release(&section);
    return failed == 0 && bases->n_items != n_bases ? kinf__state_malformed(err) : failed;
}
