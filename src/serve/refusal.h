/*
 * A request that is not answered with what it asks for: the HTTP status and the metav1.Status that
 * kube-apiserver gives in the same case.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_SERVE_REFUSAL_H
#define KINF_SERVE_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>

#include "base/buffer.h"
#include "base/error.h"

#define KINF__REFUSAL_MESSAGE_SIZE 2048
#define KINF__REFUSAL_NAME_SIZE    1024 /* longer than any name that there can be */
#define KINF__REFUSAL_MAX_CAUSES   6

struct kinf__refusal_cause {
    const char *reason; /* "FieldValueForbidden"; a literal */
    char field[256];    /* "": none */
    char message[512];
};

enum kinf__refusal_details {
    KINF__DETAILS_NONE,
    KINF__DETAILS_EMPTY,  /* "details":{} */
    KINF__DETAILS_OBJECT, /* name, group and kind, where they are not empty */
    KINF__DETAILS_CAUSES, /* the same, and the causes */
};

/* All zero is none. Texts longer than their room are cut. */
struct kinf__refusal {
    int code;      /* HTTP status */
    bool is_plain; /* the body is the message itself, as text */
    const char *reason;
    char message[KINF__REFUSAL_MESSAGE_SIZE];
    enum kinf__refusal_details details;
    char name[KINF__REFUSAL_NAME_SIZE];
    char group[256];
    char kind[256];
    struct kinf__refusal_cause causes[KINF__REFUSAL_MAX_CAUSES];
    size_t n_causes;
    unsigned retry_after_s; /* 0: no such header */
    /* "": none; in the Status's metadata. Has room for any of token.h. */
    char continue_token[KINF__REFUSAL_NAME_SIZE];
};

/* Writes code, reason and message, everything else reset. Returns KINF_ERR_INVALID, so that it can
 * be returned. */
int kinf__refuse(struct kinf__refusal *refusal, int code, const char *reason, const char *fmt, ...)
    KINF_PRINTF(4, 5);

/* Behind kinf__refuse(): empty details, and when to come back (0: not told). Returns
 * KINF_ERR_INVALID, too. */
int kinf__refusal_empty(struct kinf__refusal *refusal, unsigned retry_after_s);

/* "404 page not found", which is no Status: there is nothing at this path. */
int kinf__refuse_path(struct kinf__refusal *refusal);
/* 404 for an object, a resource, a version in a group that is there. */
int kinf__refuse_resource(struct kinf__refusal *refusal);
/* 500 for want of memory. Returns KINF_ERR_NO_MEMORY. */
int kinf__refuse_no_memory(struct kinf__refusal *refusal);

/* Adds details that name an object or a kind; `group` and `name` may be "". */
void kinf__refusal_set_object(struct kinf__refusal *refusal, const char *group, const char *kind,
                              const char *name);
/* Adds a cause; what is beyond the last place is left out. */
void kinf__refusal_add_cause(struct kinf__refusal *refusal, const char *reason, const char *field,
                             const char *message);

/* Appends the body: the Status in JSON with a line end, or the plain text. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__refusal_write(const struct kinf__refusal *refusal,
                                        struct kinf__buffer *out);
/* The Status alone, without a line end: the object of an ERROR event. */
KINF_MUST_CHECK int kinf__refusal_write_status(const struct kinf__refusal *refusal,
                                               struct kinf__buffer *out);

/* As base/error.h does: the static analyzer shall know that refusing is negative. */
#ifdef __clang_analyzer__
#define kinf__refuse(...)               kinf__analyzed_failure(kinf__refuse(__VA_ARGS__))
#define kinf__refuse_no_memory(refusal) kinf__analyzed_failure(kinf__refuse_no_memory(refusal))
#endif

#endif
