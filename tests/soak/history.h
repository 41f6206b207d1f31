/*
 * What there was of every object, in order, as the server answered it to the only one who writes it.
 *
 * The answers to writes are what makes the history independent of what is tested: they come from
 * the server's write path by a connection of the oracle's own, which no fault is for; no watch, no
 * list and none of the library's decoding has a part in it. A write whose answer is lost is read
 * again, by a GET, before the object is written again, so that no state is missing.
 *
 * The objects are known from the start: so many of each type in each namespace, `soak-0/o-17`. Each
 * has a number, its place in all arrays. An entry's number is its place in the object's history
 * since the start, also when older ones are forgotten.
 *
 * Threads: any, under history_lock(), but for the functions about names.
 */
#ifndef SOAK_HISTORY_H
#define SOAK_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soak/text.h"

#define SOAK_N_NAMESPACES 4
#define SOAK_NONE         UINT64_MAX

struct soak_type {
    const char *resource; /* as kubectl spells it */
    const char *path;     /* of the group */
    const char *plural;
    const char *kind;
    unsigned n_names; /* in each namespace */
    unsigned weight;  /* of its writes, of 100 */
};
#define SOAK_N_TYPES 4
#define SOAK_WIDGETS 2 /* the custom resource */
extern const struct soak_type soak_types[SOAK_N_TYPES];

/* --- names --- */

size_t soak_n_objects(void);
/* SOAK_NONE: of no concern here. */
uint64_t soak_object_id(unsigned type, struct kinf_str name_space, struct kinf_str name);
/* The same of "soak-0/o-17". */
uint64_t soak_key_id(unsigned type, struct kinf_str key);
/* SOAK_N_TYPES: none of them. */
unsigned soak_find_type(struct kinf_str resource);
unsigned soak_type_of(uint64_t id);
unsigned soak_namespace_of(uint64_t id);
unsigned soak_name_of(uint64_t id);
/* "pods soak-0/o-17", in a buffer of the thread. */
const char *soak_describe(uint64_t id);

int64_t soak_now_ms(void);

/* --- the history --- */

struct soak_entry {
    struct version version; /* of a deletion: rv 0 if nobody knows it yet, the rest as before it */
    int64_t at_ms;          /* when the answer was there */
    bool is_deletion;
};

void history_lock(void);
void history_unlock(void);

/* A write is about to go out: what is told of the object may be what will be noted. */
void history_begin(uint64_t id);
/* The object is so by now, whether that is new or not; ends what began. */
void history_note(uint64_t id, const struct version *version);
/* It is gone; `rv` 0: nobody knows at which version. */
void history_note_gone(uint64_t id, uint64_t rv);
/* On its way to being gone, which is noted next, it is marked as deleted: a state whose version nobody
 * was answered, and `sum` 0: its bytes neither. Who tells them first is believed. */
void history_note_marked(uint64_t id, uint64_t sum);
bool history_is_in_flight(uint64_t id);

/* The newest entry; NULL: it never was. */
const struct soak_entry *history_head(uint64_t id);
/* Of an object that is there, its newest state; else NULL. */
const struct soak_entry *history_live(uint64_t id);
/* From `from` on the first one that is this state; SOAK_NONE: none. */
uint64_t history_find(uint64_t id, uint64_t from, const struct version *version);
/* From `from` on the first deletion of the object with this uid, at this version, of the state with
 * this sum (0: of any); SOAK_NONE: none. A version that nobody knew becomes known. */
uint64_t history_find_deletion(uint64_t id, uint64_t from, uint64_t uid, uint64_t rv, uint64_t sum);
/* Whether one of the states in [from, to) has this sum. */
bool history_has_sum(uint64_t id, uint64_t from, uint64_t to, uint64_t sum);
const struct soak_entry *history_entry(uint64_t id, uint64_t number);
uint64_t history_n_entries(uint64_t id);

/* Forgets what was before the second last call. */
void history_forget_old(void);
/* Notes what is; and makes it so again, behind a restore of the server that begins between the two. */
void history_back_up(void);
void history_begin_restore(void);
void history_restore(void);
/* Whether it is there, and was not so when it was noted. */
bool history_is_changed(uint64_t id);

uint64_t history_n_writes(void);

#endif
