/*
 * The object's insides, and how the reflector makes objects from what it receives.
 *
 * Threads: any thread for objects; a decoder belongs to one.
 */
#ifndef KINF_OBJECT_OBJECT_H
#define KINF_OBJECT_OBJECT_H

#include <stdatomic.h>

#include <kinformer/object.h>

#include "base/buffer.h"
#include "json/path.h"
#include "json/plan.h"
#include "json/scan.h"

/* What labels_offset says when an object has no labels, or when nobody looked. */
#define KINF__LABELS_ABSENT  UINT32_MAX
#define KINF__LABELS_UNKNOWN 0

#define KINF__LABELS_LEN_MAX (UINT32_MAX >> 1)

/* Values of the body that are looked for often, so that nobody walks over what stands in front of
 * them: more than half of a pod. */
enum kinf__place { KINF__PLACE_NAMESPACE, KINF__PLACE_SPEC, KINF__PLACE_STATUS, KINF__N_PLACES };

/* Of a value that is not there, or that nobody looked for. */
#define KINF__PLACE_UNKNOWN 0

struct kinf__packed;

/* One allocation. Constant after publication, but for the count. uid and resourceVersion are texts
 * beside the key, not offsets into the body: they can be read when that is compressed, and comparing
 * uids on every update touches no body. It costs about 50 bytes. What is packed (packed.h) has a
 * struct packed_head, the excerpt and the compressed bytes in place of the body, not aligned. */
struct kinf_object {
    _Atomic(uint32_t) refs; /* atomic */
    uint32_t body_len;      /* of the JSON text */
    const struct kinf_type *type;
    /* Of the value of metadata.labels in the body, or in the excerpt; or one of the above. */
    uint32_t labels_offset;
    uint32_t labels_len : 31;
    uint32_t is_packed : 1;
    uint16_t namespace_len; /* in front of the key's slash; 0 if cluster-scoped */
    uint16_t uid_offset;    /* in text; the key is at 0 */
    uint16_t rv_offset;
    uint16_t body_offset;
    uint32_t places[KINF__N_PLACES]; /* in the body */
    char text[];                     /* key NUL uid NUL resourceVersion NUL body */
};

/* Large values of a body, whose ends a decoder knows. */
#define KINF__N_LARGE 3

/* The parts of an object. Strings are decoded and hold no NUL; the body is JSON text. */
struct kinf__object_parts {
    const struct kinf_type *type;
    struct kinf_str name_space; /* "" for cluster-scoped */
    struct kinf_str name;
    struct kinf_str uid;
    struct kinf_str resource_version;
    struct kinf_str body;
    /* As in struct kinf_object, KINF__LABELS_LEN_MAX at most; KINF__LABELS_UNKNOWN is always right. */
    uint32_t labels_offset;
    uint32_t labels_len;
    uint32_t places[KINF__N_PLACES]; /* KINF__PLACE_UNKNOWN is always right */
    /* Spares who packs it looking for where they end; the object does not have them. */
    struct kinf__json_stretch large[KINF__N_LARGE];
    const struct kinf__packed *packed; /* what is held in place of the body; NULL: the body */
};

/* Copies the parts into one allocation with one reference. Errors: KINF_ERR_LIMIT (identity above
 * 60,000 bytes or body above 4 GiB), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__object_new(const struct kinf__object_parts *parts,
                                     const struct kinf_object **ret_object, struct kinf_error *err);

/* 1: the object is what these parts would make, byte for byte; 0: it is not. Errors:
 * KINF_ERR_NO_MEMORY, nobody knows. */
KINF_MUST_CHECK int kinf__object_equals_parts(const struct kinf_object *object,
                                              const struct kinf__object_parts *parts);

/* The JSON text as it was decoded: without kind and apiVersion. Whoever reads a body reads it
 * through this, lookup() or equals_parts(), which alone know how it is held. Valid as
 * kinf_object_json() states. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__object_body(const struct kinf_object *object,
                                      struct kinf_scratch *scratch, struct kinf_str *ret_body);

/* As kinf__json_lookup() in the body. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__object_lookup(const struct kinf_object *object,
                                        const struct kinf_path *path, struct kinf_scratch *scratch,
                                        kinf__json_value_cb *callback, void *ctx);

/* The first value that `path` names, valid as the body is. Errors: KINF_ERR_NOT_FOUND,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__object_lookup_first(const struct kinf_object *object,
                                              const struct kinf_path *path,
                                              struct kinf_scratch *scratch,
                                              struct kinf__json_value *ret_value);

/* The text if it is held as it is, and the object's own; else NULL: it is inflated by who reads it. */
const char *kinf__object_plain_body(const struct kinf_object *object);

/* Has the parts say where the places and the labels are, the latter in the body or in the excerpt. */
void kinf__object_tell_places(const struct kinf_object *object, struct kinf__object_parts *parts);

/* Makes room for as much; what was there is lost. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__scratch_reserve(struct kinf_scratch *scratch, size_t size);

/* The value of metadata.labels, of type KINF__JSON_NULL if there are none. The object's. */
struct kinf__json_value kinf__object_labels(const struct kinf_object *object);

/* Whether both have the same uid, which is what makes them one object and not two of one name. */
bool kinf__object_same_uid(const struct kinf_object *a, const struct kinf_object *b);

/* Whether offsets rise, strings end where they must and the labels and places lie in the texts, of which
 * none is inflated. */
bool kinf__object_check_held(const struct kinf_object *object);
/* Whether the body is as it is to be, besides. */
bool kinf__object_check(const struct kinf_object *object);

/* Whether the caller's reference is the only one. */
bool kinf__object_is_ours_alone(const struct kinf_object *object);
/* How many objects this process holds. For leak checks and measurements. */
size_t kinf__object_count(void);

/*
 * The prune plan of an informer (design: drop and keep while copying out of the network buffer).
 * What the runtime itself needs cannot be dropped: of metadata name, namespace, uid,
 * resourceVersion, labels, deletionTimestamp and ownerReferences. kind and apiVersion are always
 * stripped.
 */
struct kinf__prune_plan;

/* `drops` and `keeps` are path texts, may be empty. Errors: KINF_ERR_PARSE, KINF_ERR_INVALID (a path
 * that cannot be dropped, or that a drop leaves nothing of; message names it), KINF_ERR_NO_MEMORY.
 */
KINF_MUST_CHECK int kinf__prune_plan_new(const char *const *drops, size_t n_drops,
                                         const char *const *keeps, size_t n_keeps,
                                         struct kinf__prune_plan **ret_plan,
                                         struct kinf_error *err);
/* Drops what nobody asked to be dropped, and nobody is told of. Errors: as above. */
KINF_MUST_CHECK int kinf__prune_plan_drop_too(struct kinf__prune_plan *plan, const char *path,
                                              struct kinf_error *err);
void kinf__prune_plan_free(struct kinf__prune_plan *plan);
/* Whether objects keep what stands at `path`. */
bool kinf__prune_plan_keeps(const struct kinf__prune_plan *plan, const struct kinf_path *path);
/* Whether any object may keep anything there. */
bool kinf__prune_plan_can_keep(const struct kinf__prune_plan *plan, const struct kinf_path *path);

/* `role` is "drops", "keeps" or "indices". */
typedef void kinf__unmet_path_cb(const char *path, const char *role, void *ctx);
/* The paths that named nothing in any object decoded so far. */
void kinf__prune_plan_each_unmet(const struct kinf__prune_plan *plan, kinf__unmet_path_cb *callback,
                                 void *ctx);

/* Receives what a decoder found. `stored` of the lookup below is borrowed during the call. */
typedef const struct kinf_object *kinf__object_stored_cb(const char *key, void *ctx);

/* Makes objects of one type from text. Owner: one thread. */
struct kinf__object_decoder {
    const struct kinf_type *type;
    const struct kinf__prune_plan *plan;
    /* What a text that says its kind and apiVersion must say; init sets the type's. */
    const char *kind;
    char api_version[2 * KINF_NAME_MAX];
    /* Optional: returns the stored object of a key, with a reference for the caller, or NULL. When
     * its bytes equal the decoded ones it is what comes out, and nothing is allocated. */
    kinf__object_stored_cb *lookup;
    void *lookup_ctx;
    struct kinf__packer *packer; /* makes the objects; NULL: they are held as they are */
    /* owned by the decoder */
    struct kinf__buffer body;  /* pruned bytes of the object at hand */
    struct kinf__buffer names; /* decoded identity strings */
};

void kinf__object_decoder_init(struct kinf__object_decoder *decoder, const struct kinf_type *type,
                               const struct kinf__prune_plan *plan);
void kinf__object_decoder_release(struct kinf__object_decoder *decoder);

/* For texts of another kind than their type's, as metadata alone is. `kind` is borrowed. */
void kinf__object_decoder_expect(struct kinf__object_decoder *decoder, const char *kind,
                                 const char *group, const char *version);

/* Decodes one object at the beginning of `text`. `is_final`: no byte will follow. On success
 * *ret_object carries a reference and *ret_len is the offset behind the object. Errors:
 * KINF_ERR_TRUNCATED (more bytes are needed; `err` untouched), KINF_ERR_PARSE with the reason; when
 * the text is valid JSON but no object of this type (no name, wrong types, another kind) *ret_len
 * is written all the same, so that the caller can go on behind it; otherwise it is 0.
 * KINF_ERR_LIMIT (nested too deep, or names or text above kinf__object_new()'s limits), with
 * *ret_len likewise. KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__object_decode(struct kinf__object_decoder *decoder, struct kinf_str text,
                                        bool is_final, const struct kinf_object **ret_object,
                                        size_t *ret_len, struct kinf_error *err);

/* The key that the beginning of an object's text speaks of, found by walking forward: the text may
 * be malformed or end anywhere. For naming what could not be decoded, never as an identity. Writes
 * `buf` and returns true if it found a name, and a namespace if the type has one, that fit into it.
 */
bool kinf__object_guess_key(const struct kinf_type *type, struct kinf_str text, char *buf,
                            size_t size);

/* metadata.resourceVersion of a bookmark, and whether it carries the annotation
 * k8s.io/initial-events-end="true". Errors: KINF_ERR_PARSE. */
KINF_MUST_CHECK int kinf__object_decode_bookmark(struct kinf_str text, char *buf, size_t size,
                                                 bool *ret_ends_initial_events,
                                                 struct kinf_error *err);

/* --- types --- */

/* "apps/v1", or "v1" of the core group. */
#define KINF__API_VERSION_SIZE (2 * KINF_NAME_MAX)
void kinf__type_api_version(const struct kinf_type *type, char text[KINF__API_VERSION_SIZE]);

/* --- keys: "namespace/name", or "name" --- */

/* Room for one with its NUL. */
#define KINF__KEY_SIZE (2 * KINF_NAME_MAX)

const char *kinf__object_key_name(const char *key);
/* Returns the name; the namespace goes to `name_space`, "" if there is none. */
const char *kinf__object_key_split(const char *key, char name_space[KINF_NAME_MAX]);
/* The other way around; returns `key`. `name_space` may be NULL. */
const char *kinf__object_key_join(char key[KINF__KEY_SIZE], const char *name_space,
                                  const char *name);

/* --- forms of names that the API server asks for --- */

/* Whether `text` could be the name of a namespace: a DNS label. Errors: KINF_ERR_INVALID (message
 * names it). Mirrors: validation.ValidateNamespaceName. */
KINF_MUST_CHECK int kinf__name_check_namespace(const char *text, struct kinf_error *err);

/* Whether `text` could be the name of any object: one segment of a path. Errors: KINF_ERR_INVALID
 * (message names it). Mirrors: path.IsValidPathSegmentName, which rules for every type. */
KINF_MUST_CHECK int kinf__name_check_segment(const char *text, struct kinf_error *err);

#endif
