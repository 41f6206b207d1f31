/*
 * A list or watch stream that takes bodies in any pieces and writes down what comes out of it.
 *
 * Threads: the test's.
 */
#ifndef KINF_TESTS_UNIT_STREAM_DRIVER_H
#define KINF_TESTS_UNIT_STREAM_DRIVER_H

#include "base/buffer.h"
#include "reflector/list_stream.h"
#include "reflector/watch_stream.h"
#include "unit/test.h"
#include "unit/transcript.h"

#define MAX_OBJECT_BYTES (16 << 20)

struct stream_driver {
    struct kinf__prune_plan *plan;
    struct kinf__object_decoder decoder;
    struct kinf__list_stream_callbacks list_callbacks;
    struct kinf__watch_stream_callbacks watch_callbacks;
    struct kinf__list_stream list; /* one of the two is fed */
    struct kinf__watch_stream watch;
    bool is_list;
    /* What came out, in words with blanks between: "ns/name@rv" of each object, in a watch behind
     * the first letter of the event's type; B@rv for a bookmark ('!': it ends the initial events);
     * E and the status for an error; "(key CODE)" for what was left out; in the end, rv= of a list,
     * "continue" and remaining=. */
    struct kinf__buffer text;
    uint64_t hash;   /* of the objects' bytes */
    size_t max_tail; /* the most that was held of an incomplete value */
    size_t n_left;   /* objects until the callback fails with KINF_ERR_STOPPED; 0: never */
    struct kinf_error *err;
};

/* For objects of this kind of the resource "things". */
void stream_driver_init_list(struct stream_driver *driver, const char *kind,
                             size_t max_object_bytes);
void stream_driver_init_watch(struct stream_driver *driver, const char *kind,
                              size_t max_object_bytes);
void stream_driver_release(struct stream_driver *driver);

/* Feeds one piece. */
int stream_driver_feed(struct stream_driver *driver, const char *bytes, size_t len);
int stream_driver_finish(struct stream_driver *driver, struct kinf_error *err);

/* In one piece. */
#define WHOLE ((struct test_cut){ .step = SIZE_MAX / 2 })

/* Decodes a body cut as told, behind whatever came before, to its end. What came out is in
 * driver->text. */
int stream_driver_decode(struct stream_driver *driver, const char *body, size_t len,
                         struct test_cut cut, struct kinf_error *err);

/* In any pieces a body gives this code, this text and the same bytes. Releases the driver. */
void stream_driver_expect(struct stream_driver *driver, const char *body, size_t len, int code,
                          const char *text);

/* A recorded answer whose stream gives what is expected of it in any pieces. */
void stream_driver_expect_recorded(struct stream_driver *driver, const char *name, int code,
                                   const char *text);

#endif
