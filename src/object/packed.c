/*
 * Compressing and inflating the texts of objects. Neighbours: decode.c has a packer make its objects,
 * object.c lays them out and reads them through here. Invariant: a packing that an object refers to
 * never changes; the excerpt's plan is complete before the first object.
 */
#include "object/packed.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/error.h"
#include "json/path.h"
#include "json/plan.h"

/* 3 saves a twentieth more, for a tenth more time and twice the memory of dictionaries; tables that are made
 * beforehand (ZDICT_finalizeDictionary) save another twentieth. */
#define LEVEL 1
/* Of the dictionary an object gives one in so many parts at most: it is to speak for several. */
#define N_SHARES 8
/* Contexts that wait for the next reader; each has some 100 kB. */
#define N_IDLE      4
#define SLOT_LABELS 0

struct kinf__packing {
    _Atomic(uint32_t) refs;
    ZSTD_DDict *dictionary;
    _Atomic(ZSTD_DCtx *) idle[N_IDLE];
    struct kinf__json_plan *excerpt;
};

struct kinf__packer {
    struct kinf__packing *packing;
    ZSTD_CCtx *zstd;
    ZSTD_CDict *dictionary; /* NULL: it is being gathered */
    size_t dictionary_size;
    struct kinf__buffer sample; /* what is there of it */
    struct kinf__buffer excerpt;
    struct kinf__buffer packed;
};

/* --- what objects are read by --- */

static void free_packing(struct kinf__packing *packing)
{
    for (size_t i = 0; i < N_IDLE; i++)
        ZSTD_freeDCtx(atomic_load(&packing->idle[i]));
    ZSTD_freeDDict(packing->dictionary);
    kinf__json_plan_free(packing->excerpt);
    free(packing);
}

struct kinf__packing *kinf__packing_ref(struct kinf__packing *packing)
{
    atomic_fetch_add_explicit(&packing->refs, 1, memory_order_relaxed);
    return packing;
}

void kinf__packing_unref(struct kinf__packing *packing)
{
    if (packing != NULL && atomic_fetch_sub_explicit(&packing->refs, 1, memory_order_acq_rel) == 1)
        free_packing(packing);
}

static ZSTD_DCtx *take_context(struct kinf__packing *packing)
{
    for (size_t i = 0; i < N_IDLE; i++) {
        ZSTD_DCtx *context = atomic_exchange(&packing->idle[i], NULL);

        if (context != NULL)
            return context;
    }
    return ZSTD_createDCtx();
}

static void give_context_back(struct kinf__packing *packing, ZSTD_DCtx *context)
{
    for (size_t i = 0; context != NULL && i < N_IDLE; i++)
        context = atomic_exchange(&packing->idle[i], context);
    ZSTD_freeDCtx(context);
}

int kinf__packing_inflate(struct kinf__packing *packing, struct kinf_str packed, char *buf,
                          size_t len)
{
    ZSTD_DCtx *context = take_context(packing);
    size_t n;

    if (context == NULL)
        return KINF_ERR_NO_MEMORY;
    n = ZSTD_decompress_usingDDict(context, buf, len, packed.bytes, packed.len,
                                   packing->dictionary);
    give_context_back(packing, context);
    return n == len ? 0 : KINF_ERR_NO_MEMORY; /* what was compressed here has no other reason */
}

bool kinf__packing_keeps(const struct kinf__packing *packing, const struct kinf_path *path)
{
    return kinf__json_plan_keeps(packing->excerpt, path);
}

/* --- what makes them --- */

static int capture_labels(struct kinf__json_plan *plan, struct kinf_error *err)
{
    struct kinf_path *path;
    int r = kinf_path_parse("metadata.labels", &path, err);

    if (r < 0)
        return r;
    r = kinf__json_plan_keep(plan, path, err);
    if (r == 0)
        r = kinf__json_plan_capture(plan, path, SLOT_LABELS, err);
    kinf_path_free(path);
    return r;
}

static int make_packing(struct kinf__packing **ret_packing, struct kinf_error *err)
{
    struct kinf__packing *packing = calloc(1, sizeof *packing);
    int r;

    if (packing == NULL)
        return kinf__error_no_memory(err);
    atomic_init(&packing->refs, 1);
    *ret_packing = packing;
    r = kinf__json_plan_new(&packing->excerpt, err);
    return r < 0 ? r : capture_labels(packing->excerpt, err);
}

int kinf__packer_new(struct kinf__packer **ret_packer, struct kinf_error *err)
{
    struct kinf__packer *packer = calloc(1, sizeof *packer);
    int r;

    if (packer == NULL)
        return kinf__error_no_memory(err);
    packer->dictionary_size = KINF__PACKED_DICTIONARY;
    r = make_packing(&packer->packing, err);
    packer->zstd = ZSTD_createCCtx();
    if (r == 0 && packer->zstd == NULL)
        r = kinf__error_no_memory(err);
    if (r < 0) {
        kinf__packer_free(packer);
        return r;
    }
    *ret_packer = packer;
    return 0;
}

void kinf__packer_free(struct kinf__packer *packer)
{
    if (packer == NULL)
        return;
    kinf__packing_unref(packer->packing);
    ZSTD_freeCCtx(packer->zstd);
    ZSTD_freeCDict(packer->dictionary);
    kinf__buffer_release(&packer->sample);
    kinf__buffer_release(&packer->excerpt);
    kinf__buffer_release(&packer->packed);
    free(packer);
}

int kinf__packer_keep(struct kinf__packer *packer, const char *text, struct kinf_error *err)
{
    struct kinf_path *path;
    int r = kinf_path_parse(text, &path, err);

    if (r < 0)
        return r;
    r = kinf__json_plan_keep(packer->packing->excerpt, path, NULL);
    kinf_path_free(path);
    return r == KINF_ERR_NO_MEMORY ? kinf__error_no_memory(err) : 0;
}

/* --- the dictionary --- */

void kinf__packer_set_dictionary_size(struct kinf__packer *packer, size_t size)
{
    packer->dictionary_size = size;
}

static int make_dictionary(struct kinf__packer *packer)
{
    const struct kinf__buffer *sample = &packer->sample;
    ZSTD_CDict *dictionary = ZSTD_createCDict(sample->bytes, sample->len, LEVEL);

    packer->packing->dictionary = ZSTD_createDDict(sample->bytes, sample->len);
    if (dictionary == NULL || packer->packing->dictionary == NULL) {
        ZSTD_freeCDict(dictionary);
        ZSTD_freeDDict(KINF__TAKE(packer->packing->dictionary));
        return KINF_ERR_NO_MEMORY;
    }
    packer->dictionary = dictionary;
    kinf__buffer_release(&packer->sample);
    return 0;
}

/* The dictionary, of which this object becomes a part. */
static int gather(struct kinf__packer *packer, struct kinf_str text)
{
    size_t share = packer->dictionary_size / N_SHARES;
    size_t room = packer->dictionary_size - packer->sample.len;

    text.len = text.len < share ? text.len : share;
    text.len = text.len < room ? text.len : room;
    if (kinf__buffer_append_str(&packer->sample, text) < 0)
        return KINF_ERR_NO_MEMORY;
    return packer->sample.len == packer->dictionary_size ? make_dictionary(packer) : 0;
}

/* --- objects --- */

static int compress(struct kinf__packer *packer, struct kinf_str text)
{
    struct kinf__buffer *packed = &packer->packed;
    size_t n;

    packed->len = 0;
    if (kinf__buffer_reserve(packed, ZSTD_compressBound(text.len)) < 0)
        return KINF_ERR_NO_MEMORY;
    n = ZSTD_compress_usingCDict(packer->zstd, packed->bytes, packed->size, text.bytes, text.len,
                                 packer->dictionary);
    if (ZSTD_isError(n))
        return KINF_ERR_NO_MEMORY; /* it has no other reason */
    packed->len = n;
    return 0;
}

/* Where the excerpt has the labels takes the place of where the text has them. */
static int make_excerpt(struct kinf__packer *packer, struct kinf__object_parts *parts)
{
    struct kinf__json_capture captures[KINF__JSON_MAX_CAPTURES];
    const struct kinf__json_capture *labels = &captures[SLOT_LABELS];
    size_t len;

    packer->excerpt.len = 0;
    if (kinf__json_prune(packer->packing->excerpt, parts->body, true, &packer->excerpt, captures,
                         &len) < 0)
        return KINF_ERR_NO_MEMORY; /* the text has been scanned before */
    parts->labels_offset = KINF__LABELS_UNKNOWN;
    parts->labels_len = 0;
    if (labels->n_found == 0) {
        parts->labels_offset = KINF__LABELS_ABSENT;
    } else if (labels->n_found == 1 && labels->len <= KINF__LABELS_LEN_MAX) {
        parts->labels_offset = (uint32_t)labels->offset;
        parts->labels_len = (uint32_t)labels->len;
    }
    return 0;
}

static int make_packed(struct kinf__packer *packer, const struct kinf__object_parts *parts,
                       const struct kinf_object **ret_object, struct kinf_error *err)
{
    struct kinf__object_parts smaller = *parts;
    struct kinf__packed packed = { .packing = packer->packing };

    if (make_excerpt(packer, &smaller) < 0 || compress(packer, parts->body) < 0)
        return kinf__error_no_memory(err);
    packed.excerpt = kinf__buffer_str(&packer->excerpt);
    packed.bytes = kinf__buffer_str(&packer->packed);
    smaller.packed = &packed;
    if (packed.excerpt.len + packed.bytes.len + sizeof packed >= parts->body.len)
        return kinf__object_new(parts, ret_object, err);
    return kinf__object_new(&smaller, ret_object, err);
}

int kinf__packer_make(struct kinf__packer *packer, const struct kinf__object_parts *parts,
                      const struct kinf_object **ret_object, struct kinf_error *err)
{
    if (packer->dictionary != NULL)
        return make_packed(packer, parts, ret_object, err);
    return gather(packer, parts->body) < 0 ? kinf__error_no_memory(err)
                                           : kinf__object_new(parts, ret_object, err);
}

int kinf__packer_repack(struct kinf__packer *packer, const struct kinf_object *object,
                        const struct kinf_object **ret_object, struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__object_parts parts = {
        .type = object->type,
        .name_space = kinf_object_namespace(object),
        .name = kinf_str_from(kinf_object_name(object)),
        .uid = kinf_str_from(kinf_object_uid(object)),
        .resource_version = kinf_str_from(kinf_object_resource_version(object)),
    };

    kinf__object_tell_places(object, &parts);
    if (kinf__object_body(object, &scratch, &parts.body) < 0)
        return kinf__error_no_memory(err);
    return kinf__packer_make(packer, &parts, ret_object, err);
}
