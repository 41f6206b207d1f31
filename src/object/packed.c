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
#include "base/hmap.h"
#include "base/list.h"
#include "json/path.h"
#include "json/plan.h"
#include "object/difference.h"

/* 3 saves a twentieth more, for a tenth more time and twice the memory of dictionaries; tables that are made
 * beforehand (ZDICT_finalizeDictionary) save another twentieth. */
#define LEVEL 1
/* Less than such a part of a text is a difference worth having. */
#define LITTLE 16
/* Of the dictionary an object gives one in so many parts at most: it is to speak for several. */
#define N_SHARES 8
/* Readers that wait for the next one who reads; each has some 100 kB. */
#define N_IDLE 4
/* A reader's buffer above this is given back once it has served: such texts are rare. */
#define TEXT_SIZE_KEPT ((size_t)256 << 10)

#define NO_OWNER 0 /* in place of a hash */
/* "[]" and white space: nobody */
#define MIN_OWNERS 8

enum slot { SLOT_LABELS, SLOT_OWNERS };

struct reader {
    ZSTD_DCtx *zstd;
    /* What the last object was read by: the text of another, and what that was inflated from. */
    struct kinf__buffer text;
    struct kinf__buffer bytes;
};

struct kinf__packing {
    _Atomic(uint32_t) refs;
    struct kinf__buffer dictionary; /* whole before the first object that refers to it */
    _Atomic(struct reader *) idle[N_IDLE];
    struct kinf__json_plan *excerpt;
    struct kinf__buffer kept; /* the paths that were asked for, a line each; those of make_packing()
                               * are a matter of the state file's format */
};

struct owner {
    struct kinf__hmap_node node;    /* by a hash of the ownerReferences, which stands for them */
    const struct kinf_object *like; /* the first of its objects, with a reference */
    char *text;                     /* of that one; NULL: it is not at hand */
    struct kinf__list at_hand;      /* in the packer's list then */
};

struct kinf__packer {
    struct kinf__packing *packing;
    ZSTD_CCtx *zstd;
    ZSTD_CDict *dictionary; /* the packing's; NULL: that is being gathered */
    size_t dictionary_size;
    struct kinf__buffer excerpt;
    struct kinf__buffer packed;
    struct kinf__hmap owners;
    size_t sweep_at;           /* the bucket of them that is looked at next */
    struct kinf__list at_hand; /* those whose text is, the last that was needed at the end */
    size_t texts_len;
};

/* --- what objects are read by --- */

static void free_reader(struct reader *reader)
{
    if (reader == NULL)
        return;
    ZSTD_freeDCtx(reader->zstd);
    kinf__buffer_release(&reader->text);
    kinf__buffer_release(&reader->bytes);
    free(reader);
}

static void free_packing(struct kinf__packing *packing)
{
    for (size_t i = 0; i < N_IDLE; i++)
        free_reader(atomic_load(&packing->idle[i]));
    kinf__buffer_release(&packing->dictionary);
    kinf__json_plan_free(packing->excerpt);
    kinf__buffer_release(&packing->kept);
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

static struct reader *new_reader(void)
{
    struct reader *reader = calloc(1, sizeof *reader);

    if (reader != NULL && (reader->zstd = ZSTD_createDCtx()) == NULL)
        free_reader(KINF__TAKE(reader));
    return reader;
}

static struct reader *take_reader(struct kinf__packing *packing)
{
    for (size_t i = 0; i < N_IDLE; i++) {
        struct reader *reader = atomic_exchange(&packing->idle[i], NULL);

        if (reader != NULL)
            return reader;
    }
    return new_reader();
}

static void give_reader_back(struct kinf__packing *packing, struct reader *reader)
{
    for (size_t i = 0; reader != NULL && i < N_IDLE; i++)
        reader = atomic_exchange(&packing->idle[i], reader);
    free_reader(reader);
}

static int inflate_by_dictionary(struct reader *reader, const struct kinf__packed *packed,
                                 char *buf, size_t len)
{
    const struct kinf__buffer *dictionary = &packed->packing->dictionary;

    return ZSTD_decompress_usingDict(reader->zstd, buf, len, packed->bytes.bytes, packed->bytes.len,
                                     dictionary->bytes, dictionary->len) == len
               ? 0
               : KINF_ERR_PARSE;
}

static void forget_text(struct reader *reader)
{
    reader->bytes.len = 0;
    reader->text.len = 0;
    if (reader->text.size > TEXT_SIZE_KEPT)
        kinf__buffer_release(&reader->text);
}

/* Its text is at hand then. The same bytes by the same dictionary are the same text. */
static int read_like(struct reader *reader, const struct kinf_object *like)
{
    struct kinf__packed packed = kinf__object_packed(like);
    int r;

    if (kinf_str_equal(kinf__buffer_str(&reader->bytes), packed.bytes))
        return 0;
    forget_text(reader);
    if (kinf__buffer_reserve(&reader->text, like->body_len) < 0)
        return KINF_ERR_NO_MEMORY;
    r = inflate_by_dictionary(reader, &packed, reader->text.bytes, like->body_len);
    if (r == 0)
        r = kinf__buffer_append_str(&reader->bytes, packed.bytes);
    if (r == 0)
        reader->text.len = like->body_len;
    return r;
}

static int inflate_by_like(struct reader *reader, const struct kinf__packed *packed, char *buf,
                           size_t len)
{
    int r = read_like(reader, packed->like);

    if (r == 0 && !kinf__difference_read(packed->bytes, kinf__buffer_str(&reader->text), buf, len))
        r = KINF_ERR_PARSE;
    if (reader->text.size > TEXT_SIZE_KEPT)
        forget_text(reader);
    return r;
}

int kinf__packing_inflate(const struct kinf__packed *packed, char *buf, size_t len)
{
    struct reader *reader = take_reader(packed->packing);
    int r;

    if (reader == NULL)
        return KINF_ERR_NO_MEMORY;
    r = packed->like != NULL ? inflate_by_like(reader, packed, buf, len)
                             : inflate_by_dictionary(reader, packed, buf, len);
    give_reader_back(packed->packing, reader);
    return r;
}

/* Elements that were left out have moved the others. */
bool kinf__packing_keeps(const struct kinf__packing *packing, const struct kinf_path *path)
{
    for (size_t i = 0; i < path->n_steps; i++) {
        if (path->steps[i].type == KINF__PATH_INDEX)
            return false;
    }
    return kinf__json_plan_keeps(packing->excerpt, path);
}

/* --- owners --- */

static struct owner *find_owner(const struct kinf__packer *packer, uint64_t hash)
{
    struct kinf__hmap_node *node = kinf__hmap_first_with_hash(&packer->owners, hash);

    return node != NULL ? KINF__CONTAINER_OF(node, struct owner, node) : NULL;
}

static void put_text_away(struct kinf__packer *packer, struct owner *owner)
{
    if (owner->text == NULL)
        return;
    packer->texts_len -= owner->like->body_len;
    kinf__list_remove(&owner->at_hand);
    free(KINF__TAKE(owner->text));
}

/* Only a text that is longer by itself is at hand in spite of it. */
static void make_room(struct kinf__packer *packer, size_t len)
{
    while (packer->texts_len != 0 && packer->texts_len + len > KINF__PACKED_TEXTS)
        put_text_away(packer, KINF__LIST_ENTRY(packer->at_hand.next, struct owner, at_hand));
}

/* Errors: KINF_ERR_NO_MEMORY. */
static int inflate_text(struct kinf__packer *packer, struct owner *owner)
{
    struct kinf__packed packed = kinf__object_packed(owner->like);
    size_t len = owner->like->body_len;

    make_room(packer, len);
    owner->text = malloc(len);
    if (owner->text == NULL || kinf__packing_inflate(&packed, owner->text, len) < 0) {
        free(KINF__TAKE(owner->text));
        return KINF_ERR_NO_MEMORY; /* it was made here, or tried when a file was read */
    }
    packer->texts_len += len;
    return 0;
}

/* Errors: KINF_ERR_NO_MEMORY. */
static int read_text(struct kinf__packer *packer, struct owner *owner, struct kinf_str *ret_text)
{
    if (owner->text == NULL && inflate_text(packer, owner) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__list_remove(&owner->at_hand);
    kinf__list_push_back(&packer->at_hand, &owner->at_hand);
    *ret_text = (struct kinf_str){ owner->text, owner->like->body_len };
    return 0;
}

static void forget(struct kinf__packer *packer, struct owner *owner)
{
    put_text_away(packer, owner);
    kinf__hmap_remove(&packer->owners, &owner->node);
    kinf_object_unref(owner->like);
    free(owner);
}

/* Of a bucket: all, or those whose first object nobody else has any more. */
static void forget_some(struct kinf__packer *packer, size_t bucket, bool only_idle)
{
    for (struct kinf__hmap_node *node = packer->owners.buckets[bucket], *next; node != NULL;
         node = next) {
        struct owner *owner = KINF__CONTAINER_OF(node, struct owner, node);

        next = node->next;
        if (!only_idle || kinf__object_is_ours_alone(owner->like))
            forget(packer, owner);
    }
}

static void forget_all(struct kinf__packer *packer)
{
    for (size_t i = 0; i < packer->owners.n_buckets; i++)
        forget_some(packer, i, false);
    kinf__hmap_release(&packer->owners);
}

/* A step with each object, so that whoever has gone is forgotten soon, and nobody waits for that. */
static void sweep(struct kinf__packer *packer)
{
    if (packer->owners.n_buckets != 0)
        forget_some(packer, packer->sweep_at++ & (packer->owners.n_buckets - 1), true);
}

/* Errors: KINF_ERR_NO_MEMORY. */
static int add_owner(struct kinf__packer *packer, uint64_t hash, struct owner **ret_owner)
{
    *ret_owner = calloc(1, sizeof **ret_owner);
    if (*ret_owner == NULL || kinf__hmap_insert(&packer->owners, &(*ret_owner)->node, hash) < 0) {
        free(*ret_owner);
        return KINF_ERR_NO_MEMORY;
    }
    kinf__list_init(&(*ret_owner)->at_hand);
    return 0;
}

/* Others of its owner are told by it from now on. Errors: KINF_ERR_NO_MEMORY. */
static int remember(struct kinf__packer *packer, uint64_t hash, const struct kinf_object *object)
{
    struct owner *owner = find_owner(packer, hash);
    int r = owner != NULL ? 0 : add_owner(packer, hash, &owner);

    if (r < 0)
        return r;
    put_text_away(packer, owner);
    kinf_object_unref(owner->like);
    owner->like = kinf_object_ref(object);
    return 0;
}

/* --- what makes them --- */

static int capture(struct kinf__json_plan *plan, const char *text, enum slot slot, bool is_kept,
                   struct kinf_error *err)
{
    struct kinf_path *path;
    int r = kinf_path_parse(text, &path, err);

    if (r < 0)
        return r;
    if (is_kept)
        r = kinf__json_plan_keep(plan, path, err);
    if (r == 0)
        r = kinf__json_plan_capture(plan, path, slot, err);
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
    if (r == 0)
        r = capture(packing->excerpt, "metadata.labels", SLOT_LABELS, true, err);
    return r < 0 ? r
                 : capture(packing->excerpt, "metadata.ownerReferences", SLOT_OWNERS, false, err);
}

int kinf__packer_new(struct kinf__packer **ret_packer, struct kinf_error *err)
{
    struct kinf__packer *packer = calloc(1, sizeof *packer);
    int r;

    if (packer == NULL)
        return kinf__error_no_memory(err);
    packer->dictionary_size = KINF__PACKED_DICTIONARY;
    kinf__list_init(&packer->at_hand);
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
    forget_all(packer);
    kinf__packing_unref(packer->packing);
    ZSTD_freeCCtx(packer->zstd);
    ZSTD_freeCDict(packer->dictionary);
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
    if (r == 0)
        r = kinf__buffer_printf(&packer->packing->kept, "%s\n", text);
    return r == KINF_ERR_NO_MEMORY ? kinf__error_no_memory(err) : 0;
}

/* --- the dictionary --- */

void kinf__packer_set_dictionary_size(struct kinf__packer *packer, size_t size)
{
    packer->dictionary_size = size;
}

static int make_dictionary(struct kinf__packer *packer)
{
    const struct kinf__buffer *text = &packer->packing->dictionary;

    packer->dictionary = ZSTD_createCDict(text->bytes, text->len, LEVEL);
    return packer->dictionary != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

/* The dictionary, of which this object becomes a part. */
static int gather(struct kinf__packer *packer, struct kinf_str text)
{
    size_t share = packer->dictionary_size / N_SHARES;
    struct kinf__buffer *dictionary = &packer->packing->dictionary;
    size_t room = packer->dictionary_size - dictionary->len;

    text.len = text.len < share ? text.len : share;
    text.len = text.len < room ? text.len : room;
    if (kinf__buffer_append_str(dictionary, text) < 0)
        return KINF_ERR_NO_MEMORY;
    return dictionary->len == packer->dictionary_size ? make_dictionary(packer) : 0;
}

/* --- objects --- */

/* Errors: KINF_ERR_NO_MEMORY. */
static int compress(struct kinf__packer *packer, struct kinf_str text)
{
    struct kinf__buffer *packed = &packer->packed;
    size_t n;

    if (kinf__buffer_reserve(packed, ZSTD_compressBound(text.len)) < 0)
        return KINF_ERR_NO_MEMORY;
    n = ZSTD_compress_usingCDict(packer->zstd, packed->bytes, packed->size, text.bytes, text.len,
                                 packer->dictionary);
    if (ZSTD_isError(n))
        return KINF_ERR_NO_MEMORY; /* it has no other reason */
    packed->len = n;
    return 0;
}

/* Writes nothing if it is not like the owner's first one: it takes more than half of what that one does,
 * and not little. That one takes hardly anything itself if the dictionary has its text. */
static int tell_by(struct kinf__packer *packer, struct owner *owner, struct kinf_str text)
{
    struct kinf__buffer *packed = &packer->packed;
    size_t half = kinf__object_packed(owner->like).bytes.len / 2, little = text.len / LITTLE;
    size_t room = half > little ? half : little;
    struct kinf_str base;

    if (read_text(packer, owner, &base) < 0 || kinf__buffer_reserve(packed, room) < 0)
        return KINF_ERR_NO_MEMORY;
    packed->len = kinf__difference_write(text, base, packed->bytes, room);
    return 0;
}

/* *ret_like is by whose text; NULL: that of the owner's (NULL: it is not known) is of little use, its
 * objects are not alike, or not any more. */
static int compress_by(struct kinf__packer *packer, struct owner *owner, struct kinf_str text,
                       const struct kinf_object **ret_like)
{
    packer->packed.len = 0;
    if (owner != NULL && tell_by(packer, owner, text) < 0)
        return KINF_ERR_NO_MEMORY;
    *ret_like = packer->packed.len != 0 ? owner->like : NULL;
    return *ret_like != NULL ? 0 : compress(packer, text);
}

static uint64_t hash_owners(const struct kinf__packer *packer, struct kinf_str text,
                            const struct kinf__json_capture *owners)
{
    struct kinf_str in = owners->is_dropped ? text : kinf__buffer_str(&packer->excerpt);

    return owners->n_found == 1 && owners->type == KINF__JSON_ARRAY && owners->len > MIN_OWNERS
               ? kinf__hash((struct kinf_str){ in.bytes + owners->offset, owners->len })
               : NO_OWNER;
}

/* Where the excerpt has the labels takes the place of where the text has them. *ret_owner is a hash.
 * Errors: KINF_ERR_NO_MEMORY; others of a text that is none of an object. */
static int make_excerpt(struct kinf__packer *packer, struct kinf__object_parts *parts,
                        uint64_t *ret_owner)
{
    struct kinf__json_capture captures[KINF__JSON_MAX_CAPTURES];
    const struct kinf__json_capture *labels = &captures[SLOT_LABELS];
    int r;

    packer->excerpt.len = 0;
    r = kinf__json_prune_scanned(packer->packing->excerpt, parts->body, parts->large, KINF__N_LARGE,
                                 &packer->excerpt, captures);
    if (r < 0)
        return r;
    parts->labels_offset = KINF__LABELS_UNKNOWN;
    parts->labels_len = 0;
    if (labels->n_found == 0) {
        parts->labels_offset = KINF__LABELS_ABSENT;
    } else if (labels->n_found == 1 && labels->len <= KINF__LABELS_LEN_MAX) {
        parts->labels_offset = (uint32_t)labels->offset;
        parts->labels_len = (uint32_t)labels->len;
    }
    *ret_owner = hash_owners(packer, parts->body, &captures[SLOT_OWNERS]);
    return 0;
}

static int make_packed(struct kinf__packer *packer, const struct kinf__object_parts *parts,
                       const struct kinf_object **ret_object, struct kinf_error *err)
{
    struct kinf__object_parts smaller = *parts;
    struct kinf__packed packed = { .packing = packer->packing };
    struct owner *known;
    uint64_t owner;
    int r;

    sweep(packer);
    if (make_excerpt(packer, &smaller, &owner) < 0)
        return kinf__error_no_memory(err);
    known = owner != NO_OWNER ? find_owner(packer, owner) : NULL;
    if (compress_by(packer, known, parts->body, &packed.like) < 0)
        return kinf__error_no_memory(err);
    packed.excerpt = kinf__buffer_str(&packer->excerpt);
    packed.bytes = kinf__buffer_str(&packer->packed);
    smaller.packed = &packed;
    if (packed.excerpt.len + packed.bytes.len + sizeof packed >= parts->body.len)
        return kinf__object_new(parts, ret_object, err);
    r = kinf__object_new(&smaller, ret_object, err);
    if (r < 0 || owner == NO_OWNER || packed.like != NULL ||
        remember(packer, owner, *ret_object) == 0)
        return r;
    kinf_object_unref(KINF__TAKE(*ret_object));
    return kinf__error_no_memory(err);
}

int kinf__packer_make(struct kinf__packer *packer, const struct kinf__object_parts *parts,
                      const struct kinf_object **ret_object, struct kinf_error *err)
{
    if (packer->dictionary != NULL)
        return make_packed(packer, parts, ret_object, err);
    return gather(packer, parts->body) < 0 ? kinf__error_no_memory(err)
                                           : kinf__object_new(parts, ret_object, err);
}

/* --- going on where another one was --- */

struct kinf__packing *kinf__packer_packing(struct kinf__packer *packer)
{
    return packer->packing;
}

struct kinf_str kinf__packing_dictionary(const struct kinf__packing *packing)
{
    return kinf__buffer_str(&packing->dictionary);
}

struct kinf_str kinf__packing_kept(const struct kinf__packing *packing)
{
    return kinf__buffer_str(&packing->kept);
}

int kinf__packer_resume(struct kinf__packer *packer, struct kinf_str dictionary,
                        struct kinf_str kept, struct kinf_error *err)
{
    struct kinf__packing *packing = packer->packing;

    if (packing->dictionary.len != 0 || !kinf_str_equal(kept, kinf__buffer_str(&packing->kept)))
        return kinf__error_set(err, KINF_ERR_CONFLICT,
                               "what is to stay readable of compressed objects was something else");
    if (kinf__buffer_append_str(&packing->dictionary, dictionary) == 0 &&
        make_dictionary(packer) == 0)
        return 0;
    packing->dictionary.len = 0;
    return kinf__error_no_memory(err);
}

static int know(struct kinf__packer *packer, const struct kinf_object *object,
                struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__object_parts parts = { .type = object->type };
    uint64_t owner = NO_OWNER;
    int r;

    r = kinf__object_body(object, &scratch, &parts.body);
    if (r == 0)
        r = make_excerpt(packer, &parts, &owner);
    if (r < 0)
        return r == KINF_ERR_NO_MEMORY
                   ? kinf__error_no_memory(err)
                   : kinf__error_set(err, KINF_ERR_PARSE, "a text that is none of an object");
    return owner == NO_OWNER || remember(packer, owner, object) == 0 ? 0
                                                                     : kinf__error_no_memory(err);
}

int kinf__packer_know(struct kinf__packer *packer, const struct kinf_object *const *objects,
                      size_t n, const struct kinf__stop *stop, struct kinf_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++)
        r = kinf__stop_is_set(stop) ? kinf__error_set(err, KINF_ERR_STOPPED, "stopped")
                                    : know(packer, objects[i], err);
    return r;
}
