/*
 * Whether the server still has the resource, and what follows if not. Neighbours: policy.c asks for
 * it after 404s, rest/discovery.c knows the answer.
 */
#include "reflector/reflector_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "rest/discovery_cache.h"

/* The server's version is not known, but each end of an object has taken one. The store's own would
 * be that of two states: who saw the one and goes on from it would not hear of the other. */
static void write_rv_after_ends(const struct kinf__reflector *reflector, const char *last_rv,
                                char rv[KINF__RV_SIZE])
{
    kinf_auto_snapshot struct kinf_snapshot *known =
        reflector->options.known != NULL ? kinf_indexer_snapshot(reflector->options.known) : NULL;
    uint64_t n_ends = known != NULL ? kinf_snapshot_count(known) : 0, before;
    char *end;

    errno = 0;
    before = strtoull(last_rv, &end, 10);
    if (errno != 0 || *end != '\0' || before > UINT64_MAX - n_ends)
        strcpy(rv, last_rv);
    else
        snprintf(rv, KINF__RV_SIZE, "%" PRIu64, before + n_ends);
}

static int empty(struct kinf__reflector *reflector, const char *last_rv, struct kinf_error *err)
{
    char rv[KINF__RV_SIZE];

    kinf__reflector_drop_list(reflector);
    kinf__newest_release(&reflector->newest);
    reflector->n_known = -1;
    write_rv_after_ends(reflector, last_rv, rv);
    return kinf_deltafifo_replace(reflector->options.fifo, NULL, 0, rv, err);
}

static int ask(struct kinf__reflector *reflector, bool *ret_is_served, struct kinf_error *err)
{
    const struct kinf__discovery_source source = { kinf__discovery_ask, reflector->http,
                                                   kinf__http_host(reflector->http) };

    return kinf__discovery_is_served(&source, reflector->options.type, ret_is_served, err);
}

void kinf__reflector_ask(struct kinf__reflector *reflector,
                         const struct kinf__policy_action *action)
{
    const char *resource = reflector->options.type->resource;
    struct kinf_error err = KINF_ERROR_INIT;
    bool is_served = true;
    int r = ask(reflector, &is_served, &err);

    if (r == 0 && is_served)
        r = kinf__error_set(&err, KINF_ERR_NOT_FOUND,
                            "%s are not found, though the server says that it has them", resource);
    else if (r == 0)
        r = empty(reflector, action->rv, &err);
    if (r < 0) {
        kinf__reflector_tell_failure(reflector, KINF__POLICY_NOT_GONE, &err);
        return;
    }
    KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_WARN,
              "the server has no such resource any more, store emptied resource=%s namespace=%s",
              resource, kinf__reflector_namespace(reflector));
    (void)kinf__error_set(&err, KINF_ERR_NOT_FOUND, "the server has no %s any more", resource);
    kinf__reflector_tell(reflector,
                         &(struct kinf__policy_event){ .type = KINF__POLICY_GONE, .err = &err });
}
