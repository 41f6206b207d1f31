/*
 * What the daemon shall do, from the command line or from a configuration file.
 *
 * Owner: main(); constant once read.
 * Threads: one thread per object.
 */
#ifndef KINF_DAEMON_CONFIG_H
#define KINF_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>

#include "daemon/handler_config.h"
#include "daemon/resource_config.h"
#include "daemon/shard_config.h"

enum kinf__events_mode {
    KINF__EVENTS_DEFAULT,
    KINF__EVENTS_NONE,
    KINF__EVENTS_TEXT,
    KINF__EVENTS_JSON
};

/* `onDemand:`: types are cached that nobody named. */
struct kinf__on_demand_config {
    bool is_enabled;
    int64_t idle_ms; /* 0 in these three: the default (serve/demand.h) */
    uint64_t max_types;
    uint64_t max_bytes;
    struct kinf__strings excludes;
    struct kinf__strings includes;
    struct kinf__strings drops; /* of each, as a resource's own */
};

struct kinf__config {
    char *kubeconfig;
    char *context;
    char *log_levels;
    enum kinf__events_mode events;
    bool events_objects;
    struct kinf__strings listen; /* addresses, as --listen */
    char *health_listen;         /* an address for probes; NULL: none */
    char *cert_file;             /* TLS of every TCP address; NULL: plain */
    char *key_file;
    char *client_ca_file;  /* whose certificates clients may show; NULL: nobody's */
    bool is_delegated;     /* `auth: delegated`: every TCP address takes tokens */
    int64_t auth_allow_ms; /* 0: the default */
    int64_t auth_deny_ms;
    int64_t auth_stale_ms; /* 0: not at all */
    unsigned unix_mode;    /* of the files of unix sockets; 0: the default */
    uint32_t *unix_users;  /* who may connect to them, by uid; none: whoever can */
    size_t n_unix_users;
    int64_t max_staleness_ms; /* 0: the default */
    char *access_log;         /* a path, or "-": standard error; NULL: none */
    bool pass_through;        /* what is not cached goes to the server, as --pass-through */
    struct kinf__on_demand_config on_demand;
    char *state_dir;           /* where stores are kept for the next start; NULL: nowhere */
    int64_t state_interval_ms; /* 0: written at the end alone */
    bool serve_stale;          /* what was kept is served before the server has confirmed it */
    int64_t start_spread_ms;   /* the first request waits for a part of it, drawn at random */
    struct kinf__resource_config *resources;
    size_t n_resources;
    struct kinf__handler_config *handlers;
    size_t n_handlers;
    struct kinf__shard_config shards;
};

/* Reads a YAML file (config/kinformerd.yaml documents it). Unknown keys and wrong types are errors
 * with file, line and column. Errors: KINF_ERR_CONFIG, KINF_ERR_PARSE, KINF_ERR_LIMIT,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__config_read(const char *file, struct kinf__config *ret_config,
                                      struct kinf_error *err);
void kinf__config_release(struct kinf__config *config);

/* Adds an empty entry and hands it out; NULL when out of memory. */
struct kinf__resource_config *kinf__config_add_resource(struct kinf__config *config);
struct kinf__handler_config *kinf__config_add_handler(struct kinf__config *config);

/* Checks what needs no server: at least one resource, or some on demand, none twice, paths, selectors. `where` names
 * the source in messages. Errors: KINF_ERR_CONFIG. */
KINF_MUST_CHECK int kinf__config_check(const struct kinf__config *config, const char *where,
                                       struct kinf_error *err);

/* Logs what is accepted, and hardly meant: keys without what they need to have an effect, entries of one
 * resource that handlers are told of by chance. */
void kinf__config_warn(const struct kinf__config *config);

/* "none", "text" or "json". Returns false for anything else. */
bool kinf__events_mode_parse(const char *text, enum kinf__events_mode *ret_mode);

#endif
