/*
 * A store in a file: what an informer had, to begin with after a restart.
 *
 * Format 4, in a sealed file (sealed.h): the head in a section of its own, then the objects in sections
 * of two megabytes or more, each object in one of them. A text is its length (32 bits) and its bytes.
 *
 * The head: the cluster, the server, of the type group, version, kind, resource and "1" if it has
 * namespaces, the scope, the resourceVersion; of objects that are held compressed the dictionary and
 * what stays readable (packed.h; empty: none is); the wall time in ms, how many objects there are, and
 * how many more in front of them, by which others are told (64 bits each).
 *
 * An object: its form (8 bits), namespace, name, uid and resourceVersion as texts, where the labels are
 * (offset and length), namespace, spec and status (offsets; 0: not known; 32 bits each), and the body, a
 * text; of a compressed one the body's length, by which other one it is told (32 bits each), its excerpt
 * and its bytes, two texts. One that others are told by is its form and its number.
 *
 * Objects are as the store holds them, so what leaves another text in the store (decoding, pruning)
 * makes another format.
 *
 *  F1  What is loaded is what was stored, byte for byte, at exactly its resourceVersion.
 *  F2  A file that is damaged, cut short, of another format, of another scope, type or cluster gives
 *      an error that says so, and no object of it is to be used.
 *  F3  A file that was there stays until the new one is whole and on the disk.
 *
 * The bodies are not parsed again, but for those by which others are told: the file is as good as its owner,
 * who alone can write it.
 *
 * Threads: any thread; of one file one at a time.
 */
#ifndef KINF_STATE_STATE_FILE_H
#define KINF_STATE_STATE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <kinformer/indexer.h>
#include <kinformer/type.h>

#include "base/stop.h"
#include "object/packed.h"
#include "state/folder.h"

#define KINF__STATE_FORMAT  4
#define KINF__STATE_RV_SIZE 64

/* Whose state it is. Borrowed texts. */
struct kinf__state_identity {
    /* The uid of the namespace kube-system, which no two clusters share; "": not known. Where either
     * side does not know it, the server decides: its address and the authority that it has to show a
     * certificate of. */
    const char *cluster;
    const char *server;
    const struct kinf_type *type;
    const char *scope; /* all that decides which objects of the type are stored, and how */
};

struct kinf__state_origin {
    char rv[KINF__STATE_RV_SIZE];
    int64_t wall_ms; /* when the store was as it is in the file */
    uint64_t n_objects;
};

/* Writes what the snapshot has; `wall_ms` is now. *ret_bytes: of the file. Errors: KINF_ERR_STOPPED
 * (`stop` was set; NULL: nothing ends it), KINF_ERR_SYSTEM, KINF_ERR_LIMIT (a resourceVersion above
 * 63 bytes, an object above 256 MiB), KINF_ERR_NO_MEMORY. What was there before is there, but if it is
 * the folder that could not be synced; the message says which. */
KINF_MUST_CHECK int kinf__state_file_write(const struct kinf__state_folder *folder,
                                           const char *name,
                                           const struct kinf__state_identity *identity,
                                           const struct kinf_snapshot *snapshot, int64_t wall_ms,
                                           const struct kinf__stop *stop, uint64_t *ret_bytes,
                                           struct kinf_error *err);

/* Takes an object over, on failure too; ends the loading unless it returns 0. */
typedef int kinf__state_object_cb(const struct kinf_object *take_object, void *ctx,
                                  struct kinf_error *err);

/* Hands over each object, in the order of the keys; on failure they are to be given up. The packer
 * (NULL: objects are not held compressed) goes on as if it had made them, whatever became of the rest.
 * Errors: KINF_ERR_NOT_FOUND (there is no file), KINF_ERR_PARSE (damaged), KINF_ERR_UNSUPPORTED (another
 * format), KINF_ERR_CONFLICT (another cluster, type or scope, or other paths stay readable of compressed
 * objects), KINF_ERR_CONFIG (others could have written it), KINF_ERR_STOPPED, KINF_ERR_SYSTEM,
 * KINF_ERR_NO_MEMORY, or what the callback returned. */
KINF_MUST_CHECK int kinf__state_file_load(const struct kinf__state_folder *folder, const char *name,
                                          const struct kinf__state_identity *identity,
                                          struct kinf__packer *packer,
                                          kinf__state_object_cb *callback, void *ctx,
                                          const struct kinf__stop *stop,
                                          struct kinf__state_origin *ret_origin,
                                          struct kinf_error *err);

/* Of which type a file without objects is, for who cannot ask the server. Errors: as above. */
KINF_MUST_CHECK int kinf__state_file_type(const struct kinf__state_folder *folder, const char *name,
                                          const char *server, const struct kinf_type **ret_type,
                                          struct kinf_error *err);

#endif
