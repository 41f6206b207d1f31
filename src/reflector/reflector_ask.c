/*
 * Whether the server still has the resource, and what follows if not. Neighbours: policy.c asks for
 * it after 404s, rest/served.c knows the answer.
 */
#include "reflector/reflector_priv.h"

#include "base/error.h"
#include "base/log.h"
#include "rest/served.h"

/* The store keeps its version: nothing else is known of the server's state. */
static int empty(struct kinf__reflector *reflector, struct kinf_error *err)
{
    kinf__reflector_drop_list(reflector);
    return kinf_deltafifo_replace(reflector->options.fifo, NULL, 0, reflector->policy.rv, err);
}

static int ask(struct kinf__reflector *reflector, bool *ret_is_served, struct kinf_error *err)
{
    const struct kinf__discovery_source source = { kinf__discovery_ask_server, reflector->http,
                                                   kinf__http_host(reflector->http) };

    return kinf__served_ask(&source, reflector->options.type, ret_is_served, err);
}

void kinf__reflector_ask(struct kinf__reflector *reflector)
{
    const char *resource = reflector->options.type->resource;
    struct kinf_error err = KINF_ERROR_INIT;
    bool is_served = true;
    int r = ask(reflector, &is_served, &err);

    if (r == 0 && is_served)
        r = kinf__error_set(&err, KINF_ERR_NOT_FOUND,
                            "%s are not found, though the server says that it has them", resource);
    else if (r == 0)
        r = empty(reflector, &err);
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
