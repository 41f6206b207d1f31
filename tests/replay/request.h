/*
 * A request's head, taken apart, and what an exchange asks of it.
 *
 * Threads: any thread; constant once made.
 */
#ifndef KINF_TESTS_REPLAY_REQUEST_H
#define KINF_TESTS_REPLAY_REQUEST_H

#include <kinformer/str.h>

#include "replay/replay.h"

/* Copies a head (with its empty line) into `ret_request`, whose line and headers are then its own.
 * Errors: KINF_ERR_NO_MEMORY, KINF_ERR_PARSE (no request line). */
KINF_MUST_CHECK int replay__request_init(struct replay_request *ret_request, struct kinf_str head);
void replay__request_release(struct replay_request *request);

/* The part of the target in front of '?', undecoded. */
struct kinf_str replay__request_path(const struct replay_request *request);

/* Whether a name of the header list `name` (Connection, Transfer-Encoding) is `word`. */
bool replay__request_says(const struct replay_request *request, const char *name, const char *word);

struct replay__query_rule {
    char *name;
    char *value; /* NULL: any */
    bool is_forbidden;
};

/* All zero matches everything. */
struct replay__matcher {
    char *method; /* NULL: any, and so with the path */
    char *path;
    bool path_is_prefix;
    struct replay__query_rule *rules;
    size_t n_rules;
};

/* "GET /api/v1/pods* watch=1 name !name !name=value". Errors: KINF_ERR_PARSE, KINF_ERR_NO_MEMORY.
 */
KINF_MUST_CHECK int replay__matcher_parse(struct replay__matcher *ret_matcher, const char *text,
                                          struct kinf_error *err);
void replay__matcher_release(struct replay__matcher *matcher);
bool replay__matcher_matches(const struct replay__matcher *matcher,
                             const struct replay_request *request);

#endif
