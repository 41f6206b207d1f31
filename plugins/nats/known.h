/*
 * What the server has of each object: what the stream told of it last, and what the bucket holds.
 *
 * It is read at each beginning, and an object leaves it when it is told or known to be gone. So it
 * is empty once everything is told, but for what is of resources that are not configured any more.
 * Until then an object takes its key, two versions, and 140 bytes: about 270.
 *
 * A version is UID/RESOURCEVERSION; "" is that of a bucket's entry that somebody else wrote. Resource
 * versions that are decimal numbers tell which state of a resource is the newer one. A content is a hash
 * of what is stored: of one version the daemon may have other fields than before, as it is told to.
 *
 * Threads: one thread per object.
 */
#ifndef NATS_KNOWN_H
#define NATS_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

struct known_object {
    char *key;        /* see key.h */
    char *stream;     /* the version that was told last; NULL: the stream does not say */
    bool is_gone;     /* its deletion was told last */
    char *bucket;     /* NULL: it is not there */
    uint64_t content; /* of the bucket's value; 0: it does not say */
    bool is_held;     /* the daemon has it in an older state, of which nothing is told */
};

struct known {
    void *tree; /* the C library's */
};

/* NULL: nothing is known of it. */
struct known_object *known_find(const struct known *known, const char *key);
/* Any one of a resource, encoded. */
struct known_object *known_any_of(const struct known *known, const char *resource);
void known_remove(struct known *known, struct known_object *object);

/* What was read; of several the last one counts. Return 0, or -1: no memory. */
int known_put_stream(struct known *known, const char *key, const char *version, bool is_gone);
int known_put_bucket(struct known *known, const char *key, const char *version, uint64_t content,
                     bool is_gone);

/* The version that who reads the stream has; NULL: there is no such object for them. What the stream
 * does not say, since its messages have an age, the bucket does. */
const char *known_told(const struct known_object *object);
/* Whether they have a newer state than this version, or know that it is gone. */
bool known_is_ahead(const struct known_object *object, const char *version);

/* Of a version; "": it has none. */
const char *known_resource_version(const char *version);

void known_release(struct known *known);

#endif
