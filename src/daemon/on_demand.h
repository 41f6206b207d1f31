/*
 * Types that nobody named: their watches are started when they are asked for, and given up when nobody
 * uses them or there is no room. What is decided, and why, is serve/demand.h's.
 *
 * A type answers once it has synced and its watch is open; until then, and again after it was given up,
 * requests for it are passed on. One that is given up answers what is under way to its end, for 30 s at
 * most; its watches end at once, between two events, and their clients go on with the API server. So
 * it is with one that the API server does not keep fresh, too: whether the server is there at all, an
 * errand asks then.
 *
 * Owner: the daemon. Threads: the main thread, unless a line says otherwise.
 */
#ifndef KINF_DAEMON_ON_DEMAND_H
#define KINF_DAEMON_ON_DEMAND_H

#include "daemon/watches.h"
#include "serve/demand.h"

/* A type from its start to its end. */
struct kinf__on_demand_entry {
    struct kinf__list node;
    struct kinf__demand_type *type;
    struct kinf__resource_config config;
    struct kinf__watch *watch; /* NULL: not made */
    struct kinf_error err;     /* why it was not made */
    bool is_running;
    bool is_given_up;
    int64_t until_ms; /* of one that was given up: no request is waited for any longer */
};

struct kinf__on_demand {
    struct kinf__watches *watches;
    struct kinf__demand
        *demand;               /* NULL: nothing is passed on, and so nothing is cached on demand */
    int64_t max_staleness_ms;  /* the server's, which no reload changes; 0: the default */
    struct kinf__list fresh;   /* to be made; an errand makes them */
    struct kinf__list entries; /* that run, or wait for their last requests */
    bool wants_discovery;      /* to be read by the next errand */
    bool wants_probe;          /* of the API server, likewise */
};

/* `watches` has its configuration, and its serving side, if any. */
void kinf__on_demand_init(struct kinf__on_demand *on_demand, struct kinf__watches *watches);
/* Its watches end; no errand is under way, and the server has stopped. */
void kinf__on_demand_release(struct kinf__on_demand *on_demand);

/* What `config` says of them, borrowed from it; how old is too old it does not say. */
struct kinf__demand_rules kinf__on_demand_rules(const struct kinf__config *config);

/* The rules of `config`, from which they are borrowed: it is, or is about to be, the configuration of the
 * watches. */
void kinf__on_demand_set_rules(struct kinf__on_demand *on_demand,
                               const struct kinf__config *config);

/* Does what is due. Returns after how many milliseconds this is to be called again; negative: whenever
 * it suits. `is_idle`: no errand is under way. */
int64_t kinf__on_demand_look(struct kinf__on_demand *on_demand, bool is_idle);

/* The i-th that runs; NULL: there are no more. */
const struct kinf__watch *kinf__on_demand_watch(const struct kinf__on_demand *on_demand, size_t i);

/* Whether an errand has something to do for it: kinf__on_demand_prepare(). */
bool kinf__on_demand_has_errand(const struct kinf__on_demand *on_demand);
/* Asks the server what it has, if that is in doubt, and makes what is to be started. The errand's thread. */
void kinf__on_demand_prepare(struct kinf__on_demand *on_demand);
/* Starts what was made. */
void kinf__on_demand_take_over(struct kinf__on_demand *on_demand);

#endif
