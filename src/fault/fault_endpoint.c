/*
 * The control endpoint: a server without sources, whose backend takes everything. Neighbours:
 * fault.c has the faults, sim/main.c what is done to the whole server.
 */
#include "fault/fault_endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "serve/endpoint.h"
#include "fault/fault.h"

#define LINES_MAX 100 /* added at once */

struct kinf__fault_endpoint {
    struct kinf__faults *faults;
    const struct kinf__fault_action *actions;
    size_t n_actions;
    void *ctx; /* the actions' */
    struct kinf__backend backend;
    struct kinf__server *server;
    struct kinf__endpoint *http;
};

static int admit(const struct kinf__request_head *head, const struct kinf__attributes *attributes,
                 struct kinf__refusal *refusal, void *ctx)
{
    (void)head;
    (void)attributes;
    (void)refusal;
    (void)ctx;
    return 0;
}

static bool takes(const struct kinf__request_head *head, const struct kinf__request *request,
                  void *ctx)
{
    (void)head;
    (void)request;
    (void)ctx;
    return true;
}

/* --- faults --- */

static int refuse_error(struct kinf__refusal *refusal, const struct kinf_error *err)
{
    switch (err->code) {
    case KINF_ERR_PARSE:
    case KINF_ERR_LIMIT:
        return kinf__refuse(refusal, 400, "BadRequest", "%s", err->message);
    case KINF_ERR_STATE:
        return kinf__refuse(refusal, 409, "Conflict", "%s", err->message);
    case KINF_ERR_UNSUPPORTED:
        return kinf__refuse(refusal, 501, "", "%s", err->message);
    default:
        return kinf__refuse(refusal, 500, "InternalError", "%s", err->message);
    }
}

static bool is_blank(const char *line)
{
    size_t n = strspn(line, " \t\r");

    return line[n] == '\0' || line[n] == '#';
}

static int add_line(struct kinf__faults *faults, char *line, unsigned *ids, size_t *n_ids,
                    struct kinf_error *err)
{
    int failed;

    line[strcspn(line, "\r")] = '\0';
    if (is_blank(line))
        return 0;
    if (*n_ids == LINES_MAX)
        return kinf__error_set(err, KINF_ERR_LIMIT, "more than %d lines", LINES_MAX);
    failed = kinf__faults_add(faults, line, &ids[*n_ids], err);
    if (failed < 0)
        kinf__error_prefix(err, "\"%s\"", line);
    else
        (*n_ids)++;
    return failed;
}

/* All lines, or none. */
static int add_lines(struct kinf__faults *faults, char *text, unsigned *ids, size_t *n_ids,
                     struct kinf_error *err)
{
    char *rest = NULL;
    int failed = 0;

    for (char *line = strtok_r(text, "\n", &rest); failed == 0 && line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        failed = add_line(faults, line, ids, n_ids, err);
    for (; failed < 0 && *n_ids > 0; --*n_ids)
        if (kinf__faults_remove(faults, ids[*n_ids - 1]) < 0)
            continue; /* somebody else did */
    return failed;
}

static int write_ids(const unsigned *ids, size_t n_ids, struct kinf__buffer *out)
{
    int failed = kinf__buffer_append_str(out, KINF_STR("{\"ids\":["));

    for (size_t i = 0; failed == 0 && i < n_ids; i++)
        failed = kinf__buffer_printf(out, "%s%u", i != 0 ? "," : "", ids[i]);
    return failed < 0 ? failed : kinf__buffer_append_str(out, KINF_STR("]}\n"));
}

static int post_faults(struct kinf__fault_endpoint *endpoint, const struct kinf__backend_call *call,
                       struct kinf__answer *answer, struct kinf__refusal *refusal)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    unsigned ids[LINES_MAX];
    size_t n_ids = 0;

    if (kinf__buffer_append_str(&text, call->body) < 0 || kinf__buffer_cstr(&text) == NULL)
        return KINF_ERR_NO_MEMORY;
    if (add_lines(endpoint->faults, text.bytes, ids, &n_ids, &err) < 0)
        return refuse_error(refusal, &err);
    answer->code = 201;
    return write_ids(ids, n_ids, &answer->body);
}

/* `number` "": all of them. */
static int delete_faults(struct kinf__fault_endpoint *endpoint, const char *number,
                         struct kinf__answer *answer, struct kinf__refusal *refusal)
{
    char *end = NULL;
    unsigned long id = strtoul(number, &end, 10);
    bool is_number = strspn(number, "0123456789") == strlen(number) && id <= UINT32_MAX;

    if (*number != '\0' && (!is_number || id == 0))
        return kinf__refuse(refusal, 400, "BadRequest", "\"%s\" is no number of a fault", number);
    if (kinf__faults_remove(endpoint->faults, (unsigned)id) < 0)
        return kinf__refuse(refusal, 404, "NotFound", "there is no fault %lu", id);
    return kinf__buffer_append_str(&answer->body, KINF_STR("{}\n"));
}

/* --- actions --- */

static int write_actions(const struct kinf__fault_endpoint *endpoint, struct kinf__buffer *out)
{
    int failed = kinf__buffer_append_str(out, KINF_STR("{\"actions\":["));

    for (size_t i = 0; failed == 0 && i < endpoint->n_actions; i++)
        failed = kinf__buffer_printf(out, "%s\"%s\"", i != 0 ? "," : "", endpoint->actions[i].name);
    return failed < 0 ? failed : kinf__buffer_append_str(out, KINF_STR("]}\n"));
}

static int post_action(const struct kinf__fault_endpoint *endpoint, const char *name,
                       struct kinf__answer *answer, struct kinf__refusal *refusal)
{
    struct kinf_error err = KINF_ERROR_INIT;

    for (size_t i = 0; i < endpoint->n_actions; i++) {
        const struct kinf__fault_action *action = &endpoint->actions[i];

        if (strcmp(action->name, name) != 0)
            continue;
        if (action->run(endpoint->ctx, &err) < 0)
            return refuse_error(refusal, &err);
        return kinf__buffer_printf(&answer->body, "{\"done\":\"%s\"}\n", name);
    }
    return kinf__refuse(refusal, 404, "NotFound", "there is no action \"%s\"", name);
}

/* --- requests --- */

static int get(struct kinf__fault_endpoint *endpoint, const char *path, struct kinf__answer *answer,
               struct kinf__refusal *refusal)
{
    if (strcmp(path, "/actions") == 0)
        return write_actions(endpoint, &answer->body);
    if (strcmp(path, "/faults") == 0)
        return kinf__faults_write(endpoint->faults, &answer->body);
    if (strcmp(path, "/requests") == 0)
        return kinf__faults_write_requests(endpoint->faults, &answer->body);
    return kinf__refuse_path(refusal);
}

static int route(struct kinf__fault_endpoint *endpoint, const struct kinf__backend_call *call,
                 struct kinf__answer *answer, struct kinf__refusal *refusal)
{
    static const char faults[] = "/faults", actions[] = "/actions/";
    const struct kinf_str target = call->head->target;
    const char *method = call->head->method;
    char path[128];

    snprintf(path, sizeof path, "%.*s", (int)(target.len < sizeof path ? target.len : sizeof path),
             target.bytes);
    path[strcspn(path, "?")] = '\0';
    if (strcmp(method, "GET") == 0)
        return get(endpoint, path, answer, refusal);
    if (strcmp(method, "POST") == 0 && strcmp(path, faults) == 0)
        return post_faults(endpoint, call, answer, refusal);
    if (strcmp(method, "POST") == 0 && strncmp(path, actions, sizeof actions - 1) == 0)
        return post_action(endpoint, path + sizeof actions - 1, answer, refusal);
    if (strcmp(method, "DELETE") == 0 && strcmp(path, faults) == 0)
        return delete_faults(endpoint, "", answer, refusal);
    if (strcmp(method, "DELETE") == 0 && strncmp(path, "/faults/", 8) == 0 && path[8] != '\0')
        return delete_faults(endpoint, path + 8, answer, refusal);
    return kinf__refuse_path(refusal);
}

static int answer(const struct kinf__backend_call *call, struct kinf__answer *answer,
                  struct kinf__refusal *refusal, void *ctx)
{
    int failed = route(ctx, call, answer, refusal);

    return failed == KINF_ERR_NO_MEMORY ? kinf__refuse_no_memory(refusal) : failed;
}

/* --- life --- */

int kinf__fault_endpoint_new(struct kinf__faults *faults, const struct kinf__fault_action *actions,
                             size_t n_actions, void *ctx, const char *address,
                             struct kinf__fault_endpoint **ret_endpoint, struct kinf_error *err)
{
    const struct kinf__endpoint_options endpoint_options = { .cert_file = NULL };
    struct kinf__fault_endpoint *endpoint = calloc(1, sizeof *endpoint);
    struct kinf__server_options options = { .name = "kinformer-sim" };
    int failed;

    if (endpoint == NULL)
        return kinf__error_no_memory(err);
    endpoint->faults = faults;
    endpoint->actions = actions;
    endpoint->n_actions = n_actions;
    endpoint->ctx = ctx;
    endpoint->backend =
        (struct kinf__backend){ .admit = admit, .takes = takes, .answer = answer, .ctx = endpoint };
    options.backend = &endpoint->backend;
    failed = kinf__server_new(&options, &endpoint->server, err);
    if (failed == 0)
        failed = kinf__endpoint_start(endpoint->server, address, &endpoint_options, &endpoint->http,
                                      err);
    if (failed < 0) {
        kinf__fault_endpoint_free(endpoint);
        return failed;
    }
    *ret_endpoint = endpoint;
    return 0;
}

const char *kinf__fault_endpoint_url(const struct kinf__fault_endpoint *endpoint)
{
    return kinf__endpoint_url(endpoint->http);
}

void kinf__fault_endpoint_free(struct kinf__fault_endpoint *endpoint)
{
    if (endpoint == NULL)
        return;
    if (endpoint->http != NULL)
        kinf__endpoint_quiesce(endpoint->http);
    if (endpoint->server != NULL)
        kinf__server_stop(endpoint->server);
    kinf__endpoint_free(endpoint->http);
    kinf__server_free(endpoint->server);
    free(endpoint);
}
