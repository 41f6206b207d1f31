/*
 * What the soak's oracle reads of JSON: members, items, and of an object who it is and a sum of its
 * bytes. A scanner of its own, since the library's is what is tested.
 *
 * Texts are whole and well-formed: they come from a server, or from a program that was told them.
 * What is not so is "not there".
 *
 * Threads: any thread.
 */
#ifndef SOAK_TEXT_H
#define SOAK_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/str.h>

/* Steps through an object or an array; `rest` begins as its text. */
bool text_next_member(struct kinf_str *rest, struct kinf_str *ret_name, struct kinf_str *ret_value);
bool text_next_item(struct kinf_str *rest, struct kinf_str *ret_value);

/* The value of a member, as it is written. */
bool text_member(struct kinf_str object, const char *name, struct kinf_str *ret_value);

/* A value without its quotes; no escapes are expected in what this is used for. */
struct kinf_str text_unquote(struct kinf_str value);
bool text_is(struct kinf_str value, const char *text);
uint64_t text_number(struct kinf_str value); /* 0: none */
uint64_t text_hash(struct kinf_str text);

/* One state of one object. `sum` is of all from "metadata" on but the digits of the
 * resourceVersion: so it is the same whether kind and apiVersion are there or not, as in lists, and
 * a deletion, which has a version of its own, has the sum of the state that was deleted. */
struct version {
    uint64_t uid; /* a hash */
    uint64_t rv;
    uint64_t sum;
};

struct identity {
    struct kinf_str name_space;
    struct kinf_str name;
    bool is_being_deleted; /* it has a deletionTimestamp */
};

bool text_read_object(struct kinf_str object, struct version *ret_version,
                      struct identity *ret_identity);

#endif
