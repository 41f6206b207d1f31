/*
 * Walking forwards through text that was scanned before, so there are no errors to return; in other
 * text a walk ends early, or gives stretches of it that are no values, but never reads outside of
 * it. Of what is stepped over only quotes and brackets are looked at, and what lies behind the
 * place is not looked at at all.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_JSON_CURSOR_H
#define KINF_JSON_CURSOR_H

#include <stdint.h>

#include "json/scan.h"

struct kinf__json_cursor {
    const uint8_t *start;
    size_t len;
    size_t at;          /* in front of a value or member, or behind one; never inside of a string */
    unsigned depth;     /* containers entered and not left */
    size_t n_loaded;    /* bytes from `start` to the end of the block that was loaded last */
    uint64_t in_string; /* whether that block ended inside of a string: all ones or 0 */
    uint64_t escaped;   /* whether its last byte is a backslash that speaks of the next: 1 or 0 */
    uint64_t quotes;    /* one bit a byte of that block: those around strings */
    uint64_t opens;     /* the same: brackets outside of strings */
    uint64_t closes;
};

/* Starts in front of the value that `text` holds. */
void kinf__json_cursor_init(struct kinf__json_cursor *cursor, struct kinf_str text);

/* The type of the value in front of which the cursor stands. KINF__JSON_NULL at the end. */
enum kinf__json_type kinf__json_cursor_type(const struct kinf__json_cursor *cursor);

/* From in front of a container, of type `container`, to in front of its first member. Returns false
 * and stays where it is if there is something else. */
bool kinf__json_cursor_enter(struct kinf__json_cursor *cursor, enum kinf__json_type container);

/* From in front of a member or behind a value to the value of the next member (ret_key: raw, with
 * quotes) or to the next element (ret_key: not written). Returns false behind the container. */
bool kinf__json_cursor_next(struct kinf__json_cursor *cursor, enum kinf__json_type container,
                            struct kinf_str *ret_key);

/* From in front of a value to behind it. */
void kinf__json_cursor_skip(struct kinf__json_cursor *cursor);

/* The same; returns the value. */
struct kinf__json_value kinf__json_cursor_take(struct kinf__json_cursor *cursor);

/* To behind the containers that were entered since the cursor's depth was `depth`. */
void kinf__json_cursor_leave(struct kinf__json_cursor *cursor, unsigned depth);

/* From in front of an object to the value of `key`, the first one if it is doubled. Returns false
 * if there is none, behind the object, or where it was if there is something else. */
bool kinf__json_cursor_find(struct kinf__json_cursor *cursor, struct kinf_str key);

#endif
