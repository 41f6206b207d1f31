/*
 * Which requests fail, how, and how often: one line each.
 *
 *   VERBS RESOURCES FAULT [OPTION]...        watch pods reset after=4000
 *
 * VERBS      get list watch watchlist create update patch delete deletecollection, with commas
 *            between them; read, write, and * for all. A watchlist is a watch, too. What has no
 *            resource is got, or has the verb of its method.
 * RESOURCES  pods, deployments.apps, *.apps, *, with commas between them; without a group: of any.
 *            pods/status: the subresource, or the object of that name; pods/ and a star: every
 *            subresource. pods alone is none of these, and * is all resources with all of
 *            theirs. !leases, behind others: but not these. Or path=/apis: any path that begins
 *            so, discovery, too.
 *
 * FAULT      the request is not carried out:
 *   CODE               300 to 599, with the Status of kube-apiserver; 409, 429, 503 ...
 *   login              200 with the page of some proxy that wants a login
 *   hang[=TIME]        silence, for ever or this long; then it is carried out
 *   refuse=SHAPE       a watch list as servers without it do; SHAPE: 422 (the gate is off), old
 *                      (up to 1.26), 400, 403, 500 (an ERROR event: etcd is too old); carried out
 *                      are ignored (nothing of the state) and endless (no end of the state)
 *            the request is carried out, and its answer suffers (a write has happened):
 *   reset              the connection is reset; after=0: before the head
 *   cut                the connection is closed; likewise
 *   close, truncate    the body ends there as if that were all
 *   stall[=TIME]       the body stops there, for ever or this long; after=0: behind the head
 *   drip=BYTES/TIME    that many bytes each time
 *   flip               one bit of the byte there
 *   gzip[=BYTES]       compressed, a member for that many [1000, 16K at most]; for who takes gzip
 *   empty              of a list: without its items, with its version
 *   grow=BYTES         of an object, or a list's first one: with an annotation of that length
 *   twice              of a watch: each event twice, but those above 1 MiB
 *   bookmark=HOW       of a watch: each bookmark twice; old (behind it one of the version below);
 *                      none
 *   error[=CODE]       of a watch: an ERROR event [410], then its end
 *
 * OPTIONS    of the fault:
 *   after=N            where: behind N bytes of the body (K, M: 1024 of that), N events (3events;
 *                      lines), or a time (500ms); at= is the same. Default: 0. flip and truncate:
 *                      bytes; error: no bytes. close and error let an event be complete, where
 *                      bytes do not say otherwise
 *   retry-after=S      of CODE: with that header
 *   as=FORM            of CODE: json [the default], text, html
 *   late               of CODE, login, hang: the request is carried out first
 *   early              of reset, cut: it is not carried out
 *            which requests:
 *   namespace=, name=  of the path
 *   user-agent=TEXT    has that in it
 *            how often, counted among the requests that are selected and that no line above took:
 *   skip=N             not the first ones
 *   every=N            only each N-th
 *   times=N            no more than that
 *   p=0.1              with this probability; the same each time, by the seed
 *   for=TIME           so long from when it was added
 *
 * TIME: 500ms, 5s, 1h30m.
 *
 * Threads: constant once parsed.
 */
#ifndef KINF_FAULT_FAULT_SPEC_H
#define KINF_FAULT_FAULT_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>

#define KINF__FAULT_SPEC_SIZE 512 /* of a line, with its NUL */

/* X(enumerator, word) */
#define KINF__FAULT_VERBS(X)                                                                       \
    X(KINF__FAULT_GET, "get")                                                                      \
    X(KINF__FAULT_LIST, "list")                                                                    \
    X(KINF__FAULT_WATCH, "watch")                                                                  \
    X(KINF__FAULT_WATCH_LIST, "watchlist")                                                         \
    X(KINF__FAULT_CREATE, "create")                                                                \
    X(KINF__FAULT_UPDATE, "update")                                                                \
    X(KINF__FAULT_PATCH, "patch")                                                                  \
    X(KINF__FAULT_DELETE, "delete")                                                                \
    X(KINF__FAULT_DELETE_COLLECTION, "deletecollection")

enum kinf__fault_verb {
#define X(verb, word) verb,
    KINF__FAULT_VERBS(X)
#undef X
        KINF__N_FAULT_VERBS
};

enum kinf__fault_kind {
    KINF__FAULT_CODE,
    KINF__FAULT_LOGIN,
    KINF__FAULT_HANG,
    KINF__FAULT_REFUSE,
    KINF__FAULT_RESET,
    KINF__FAULT_CUT,
    KINF__FAULT_CLOSE,
    KINF__FAULT_STALL,
    KINF__FAULT_DRIP,
    KINF__FAULT_FLIP,
    KINF__FAULT_GZIP,
    KINF__FAULT_EMPTY,
    KINF__FAULT_GROW,
    KINF__FAULT_TWICE,
    KINF__FAULT_BOOKMARK,
    KINF__FAULT_ERROR,
};

enum kinf__fault_form {
    KINF__FAULT_AS_JSON,
    KINF__FAULT_AS_TEXT,
    KINF__FAULT_AS_HTML,
};

enum kinf__fault_shape {
    /* of refuse */
    KINF__FAULT_GATE_OFF,
    KINF__FAULT_OLD_SERVER,
    KINF__FAULT_BAD_REQUEST,
    KINF__FAULT_FORBIDDEN,
    KINF__FAULT_OLD_ETCD,
    KINF__FAULT_IGNORED,
    KINF__FAULT_ENDLESS,
    /* of bookmark */
    KINF__FAULT_BOOKMARK_TWICE,
    KINF__FAULT_BOOKMARK_OLD,
    KINF__FAULT_BOOKMARK_NONE,
};

enum kinf__fault_unit {
    KINF__FAULT_BYTES,
    KINF__FAULT_EVENTS,
    KINF__FAULT_MS,
};

/* What happens. */
struct kinf__fault_effect {
    enum kinf__fault_kind kind;
    int code;               /* of CODE and ERROR */
    unsigned retry_after_s; /* 0: none */
    enum kinf__fault_form form;
    enum kinf__fault_shape shape;
    bool is_late;
    bool is_early;
    enum kinf__fault_unit unit;
    uint64_t after;
    uint64_t n_bytes; /* of drip, gzip and grow */
    int64_t time_ms;  /* of hang and stall (KINF__NEVER_MS: for ever), and of drip */
};

/* All of a line; it points into itself, so it stays where it was parsed. */
struct kinf__fault_spec {
    char text[KINF__FAULT_SPEC_SIZE]; /* as it was given */
    char words[KINF__FAULT_SPEC_SIZE];
    unsigned verbs;         /* a bit for each */
    const char *resources;  /* "": any */
    const char *path;       /* "": any; then there are resources */
    const char *name_space; /* "": any; likewise below */
    const char *name;
    const char *user_agent;
    struct kinf__fault_effect effect;
    uint64_t skip;
    uint64_t every;
    uint64_t times; /* UINT64_MAX: no end */
    double p;
    int64_t for_ms; /* KINF__NEVER_MS: no end */
};

/* Errors: KINF_ERR_PARSE, with what is wrong; *ret_spec is not defined then. */
KINF_MUST_CHECK int kinf__fault_spec_parse(const char *text, struct kinf__fault_spec *ret_spec,
                                           struct kinf_error *err);

/* A request, as lines select it. Texts are never NULL. */
struct kinf__fault_subject {
    enum kinf__fault_verb verb;
    const char *path;
    const char *resource; /* "": none */
    const char *group;
    const char *subresource;
    const char *name_space;
    const char *name;
    const char *user_agent;
};

bool kinf__fault_spec_selects(const struct kinf__fault_spec *spec,
                              const struct kinf__fault_subject *subject);

/* Whether the n-th request that it selects fails, n from 1; `n_hits` did so far. */
bool kinf__fault_spec_is_due(const struct kinf__fault_spec *spec, uint64_t n, uint64_t n_hits,
                             uint64_t seed);

const char *kinf__fault_verb_to_string(enum kinf__fault_verb verb);

#endif
