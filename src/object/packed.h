/*
 * Objects whose text is held compressed: a tenth of the memory, some microseconds for each look at
 * the text. Everything else of them, and how they are read, is as of other objects.
 *
 * A packer makes the objects of one informer. The first ones stay as they are and become the
 * dictionary (raw content, KINF__PACKED_DICTIONARY bytes): objects of one type say the same in
 * different words, which each would have to say anew. So what is smaller than that altogether is
 * never compressed. An object that would gain nothing stays as it is, too.
 *
 * Objects of one owner are nearly the same, as the pods of a ReplicaSet are: the first of them is
 * compressed by the dictionary, the others are told by its text (difference.h), in a quarter of that.
 * An owner is known as long as there are objects that need that first one; then it is forgotten with the
 * objects that come next.
 * Who reads one of them inflates the first one, too, unless it was the same owner's that was read last.
 * The packer has texts of first objects at hand, KINF__PACKED_TEXTS bytes of those that it needed last.
 *
 * Beside the compressed text stands an excerpt of it, which is JSON of the same form: the labels, and
 * what the packer was told to keep readable. Who looks for one of these inflates nothing.
 *
 * State files have excerpts and bytes as they are (state_object.h): whoever changes how these are made, here
 * or in difference.c, makes another format of state_file.h.
 *
 * Lifetimes: what the objects are read by (struct kinf__packing) is theirs together, and outlives the
 * packer as long as one of them is there.
 */
#ifndef KINF_OBJECT_PACKED_H
#define KINF_OBJECT_PACKED_H

#include "base/stop.h"
#include "object/object.h"

#define KINF__PACKED_DICTIONARY ((size_t)128 << 10)
#define KINF__PACKED_TEXTS      ((size_t)4 << 20)

struct kinf__packing;

/* How a text is held. */
struct kinf__packed {
    /* An object that is made of this takes references of its own. */
    struct kinf__packing *packing;
    const struct kinf_object *like; /* by whose text; NULL: by the dictionary, as that one is */
    struct kinf_str excerpt;
    struct kinf_str bytes;
};

/* Of an object that is packed. */
struct kinf__packed kinf__object_packed(const struct kinf_object *object);

struct kinf__packing *kinf__packing_ref(struct kinf__packing *packing);
void kinf__packing_unref(struct kinf__packing *packing);
/* Writes the text, which has `len` bytes. Any thread. Errors: KINF_ERR_NO_MEMORY; KINF_ERR_PARSE of what a
 * file had, which nobody has compressed so. */
KINF_MUST_CHECK int kinf__packing_inflate(const struct kinf__packed *packed, char *buf, size_t len);
/* Whether the excerpts have all that is at `path`. */
bool kinf__packing_keeps(const struct kinf__packing *packing, const struct kinf_path *path);

/* Threads: one thread per packer. Errors: KINF_ERR_NO_MEMORY. */
struct kinf__packer;

KINF_MUST_CHECK int kinf__packer_new(struct kinf__packer **ret_packer, struct kinf_error *err);
void kinf__packer_free(struct kinf__packer *packer);
/* Before the first object. Of a path that names one element of an array the excerpts have nothing.
 * Errors besides: KINF_ERR_PARSE. */
KINF_MUST_CHECK int kinf__packer_keep(struct kinf__packer *packer, const char *path,
                                      struct kinf_error *err);
/* Instead of KINF__PACKED_DICTIONARY. Before the first object, for tests. */
void kinf__packer_set_dictionary_size(struct kinf__packer *packer, size_t size);
/* As kinf__object_new(), whose errors it has. */
KINF_MUST_CHECK int kinf__packer_make(struct kinf__packer *packer,
                                      const struct kinf__object_parts *parts,
                                      const struct kinf_object **ret_object,
                                      struct kinf_error *err);

/* --- going on where a packer of another process was --- */

/* The packer's. */
struct kinf__packing *kinf__packer_packing(struct kinf__packer *packer);
/* The dictionary, empty until it is whole enough for a first packed object, and the paths that were to
 * be kept. Valid as long as the packing. */
struct kinf_str kinf__packing_dictionary(const struct kinf__packing *packing);
struct kinf_str kinf__packing_kept(const struct kinf__packing *packing);
/* Objects that were made by this dictionary and these paths can be made of its packing then, and what
 * the packer makes is as if it had made them. Before the first object. Errors besides: KINF_ERR_CONFLICT
 * (it keeps other paths, or has a dictionary). */
KINF_MUST_CHECK int kinf__packer_resume(struct kinf__packer *packer, struct kinf_str dictionary,
                                        struct kinf_str kept, struct kinf_error *err);
/* By the texts of these objects of its packing others of their owners are told from now on. Errors
 * besides: KINF_ERR_PARSE (one of the texts is none of an object), KINF_ERR_STOPPED. */
KINF_MUST_CHECK int kinf__packer_know(struct kinf__packer *packer,
                                      const struct kinf_object *const *objects, size_t n,
                                      const struct kinf__stop *stop, struct kinf_error *err);

#endif
