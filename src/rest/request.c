/*
 * Requests and their answers. Neighbours: http.c carries them, url.c writes targets.
 *
 * Connections that a request is through with wait in the client for the next one; one that failed
 * is closed.
 */
#include "rest/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/misuse.h"
#include "json/quote.h"
#include "object/object.h"
#include "rest/client.h"
#include "rest/http.h"
#include "rest/secret.h"
#include "rest/url.h"

#define MAX_RESPONSE_BYTES ((size_t)256 << 20)
#define BROKEN_WAIT_MS     1000

/* What a verb needs and how it is said. */
struct verb {
    const char *name;
    const char *method;
    const char *content_type; /* of the body; NULL: none is given */
    bool has_name;            /* of an object that is there already */
};

static const struct verb verbs[] = {
    [KINF_VERB_GET] = { "get", "GET", NULL, true },
    [KINF_VERB_LIST] = { "list", "GET", NULL, false },
    [KINF_VERB_CREATE] = { "create", "POST", "application/json", false },
    [KINF_VERB_UPDATE] = { "update", "PUT", "application/json", true },
    [KINF_VERB_JSON_PATCH] = { "patch", "PATCH", "application/json-patch+json", true },
    [KINF_VERB_MERGE_PATCH] = { "patch", "PATCH", "application/merge-patch+json", true },
    [KINF_VERB_STRATEGIC_PATCH] = { "patch", "PATCH", "application/strategic-merge-patch+json",
                                    true },
    [KINF_VERB_APPLY] = { "apply", "PATCH", "application/apply-patch+yaml", true },
    [KINF_VERB_DELETE] = { "delete", "DELETE", NULL, true },
    [KINF_VERB_DELETE_COLLECTION] = { "deletecollection", "DELETE", NULL, false },
};

/* Who asks. */
struct asker {
    struct kinf_client *client;
    struct kinf__http *http; /* NULL: one of the client's */
    struct kinf__waker *stop;
};

/* --- one try --- */

static int take_connection(struct kinf_client *client, struct kinf__http **ret_http,
                           struct kinf_error *err)
{
    struct kinf__http *http = NULL;

    kinf__mutex_lock(&client->requests_lock);
    if (client->n_idle != 0)
        http = client->idle[--client->n_idle];
    kinf__mutex_unlock(&client->requests_lock);
    if (http == NULL)
        return kinf__http_new(client, &client->interrupted, ret_http, err);
    *ret_http = http;
    return 0;
}

static void give_connection_back(struct kinf_client *client, struct kinf__http *http, bool is_good)
{
    kinf__mutex_lock(&client->requests_lock);
    if (is_good && client->n_idle < KINF__ARRAY_LEN(client->idle))
        client->idle[client->n_idle++] = KINF__TAKE(http);
    kinf__mutex_unlock(&client->requests_lock);
    kinf__http_free(http);
}

static int try_over(struct kinf__http *http, const struct kinf__http_request *request,
                    struct kinf_error *err)
{
    int failed = kinf__http_perform(http, request, err);

    if (failed < 0 && err->http_status == 0)
        kinf__http_disconnect(http);
    return failed;
}

static int try_once(const struct asker *asker, const struct kinf__http_request *request,
                    struct kinf_error *err)
{
    struct kinf__http *http;
    int failed;

    if (asker->http != NULL)
        return try_over(asker->http, request, err);
    failed = take_connection(asker->client, &http, err);
    if (failed < 0)
        return failed;
    failed = kinf__http_perform(http, request, err);
    give_connection_back(asker->client, http, failed == 0 || err->http_status != 0);
    return failed;
}

/* --- tries --- */

/* A server that names a time to come back has done nothing; a connection that broke may have
 * carried the request. */
bool kinf__retry_may(const char *method, const struct kinf_error *err, unsigned n_retries,
                     int64_t *ret_wait_ms)
{
    bool is_busy = err->http_status == 429 || err->http_status >= 500;

    if (n_retries >= KINF__RETRY_MAX)
        return false;
    if (is_busy && err->retry_after_ms != 0) {
        *ret_wait_ms = err->retry_after_ms;
        return true;
    }
    if (err->code == KINF_ERR_NETWORK && err->sys_errno == ECONNRESET &&
        strcmp(method, "GET") == 0) {
        *ret_wait_ms = BROKEN_WAIT_MS;
        return true;
    }
    return false;
}

static int64_t left_ms(int64_t deadline_ms)
{
    return kinf__clock_left_ms(kinf__clock_now_ms(), deadline_ms);
}

static int wait(const struct asker *asker, int64_t wait_ms, struct kinf_error *err)
{
    return kinf__waker_wait(asker->stop, wait_ms)
               ? kinf__error_set(err, KINF_ERR_STOPPED, "stopped")
               : 0;
}

static int wait_for_turn(const struct asker *asker, int64_t deadline_ms, struct kinf_error *err)
{
    struct kinf_client *client = asker->client;
    int64_t wait_ms = 0;
    bool has_turn;
    int failed;

    kinf__mutex_lock(&client->requests_lock);
    has_turn = kinf__rate_limit_take(&client->rate_limit, kinf__clock_now_ms(),
                                     left_ms(deadline_ms), &wait_ms);
    kinf__mutex_unlock(&client->requests_lock);
    if (!has_turn)
        return kinf__error_set(err, KINF_ERR_TIMEOUT,
                               "the client's rate limit leaves no turn within the time");
    failed = wait(asker, wait_ms, err);
    if (failed < 0) {
        kinf__mutex_lock(&client->requests_lock);
        kinf__rate_limit_give_back(&client->rate_limit);
        kinf__mutex_unlock(&client->requests_lock);
    }
    return failed;
}

static int try_in_turn(const struct asker *asker, struct kinf__http_request *request,
                       int64_t deadline_ms, struct kinf_error *err)
{
    int failed = wait_for_turn(asker, deadline_ms, err);

    if (failed < 0)
        return failed;
    /* Who was halted meanwhile must not write after his time. */
    request->total_timeout_ms = left_ms(deadline_ms);
    if (request->total_timeout_ms == 0)
        return kinf__error_set(err, KINF_ERR_TIMEOUT, "the time is over before it was sent");
    return try_once(asker, request, err);
}

/* What ended the tries may be another thing than what made them necessary: both are told. */
static void mention(const struct kinf_error *before, struct kinf_error *err)
{
    size_t len = strlen(err->message);

    if (err->code != before->code)
        snprintf(err->message + len, sizeof err->message - len, " (the try before: %s)",
                 before->message);
}

/* With `err`, which is not NULL: what it says decides. */
static int perform(const struct asker *asker, struct kinf__http_request *request,
                   int64_t timeout_ms, struct kinf_error *err)
{
    int64_t deadline_ms = kinf__clock_add_ms(
        kinf__clock_now_ms(), timeout_ms != 0 ? timeout_ms : asker->client->request_timeout_ms);
    int failed = try_in_turn(asker, request, deadline_ms, err);
    int64_t wait_ms;

    for (unsigned n = 0; failed < 0 && kinf__retry_may(request->method, err, n, &wait_ms) &&
                         wait_ms < left_ms(deadline_ms);
         n++) {
        struct kinf_error before = *err;

        *err = (struct kinf_error)KINF_ERROR_INIT;
        failed = wait(asker, wait_ms, err);
        if (failed == 0)
            failed = try_in_turn(asker, request, deadline_ms, err);
        if (failed < 0)
            mention(&before, err);
    }
    return failed;
}

/* Out of memory is the only failure. */
static int finish(const struct kinf__http_body *body, struct kinf_response *ret_response,
                  struct kinf_error *err)
{
    if (ret_response == NULL)
        return 0;
    if (kinf__buffer_cstr(body->bytes) == NULL)
        return kinf__error_no_memory(err);
    *ret_response = (struct kinf_response){ .http_status = body->http_status,
                                            .body = body->bytes->bytes,
                                            .len = body->bytes->len };
    *body->bytes = (struct kinf__buffer)KINF__BUFFER_INIT;
    return 0;
}

static int ask(const struct asker *asker, struct kinf__http_request *request, int64_t timeout_ms,
               size_t max_bytes, struct kinf_response *ret_response, struct kinf_error *err)
{
    KINF__AUTO_BUFFER bytes = KINF__BUFFER_INIT;
    struct kinf__http_body body = { &bytes, max_bytes != 0 ? max_bytes : MAX_RESPONSE_BYTES, 0 };
    struct kinf_error own = KINF_ERROR_INIT;
    int failed;

    request->on_head = kinf__http_body_begin;
    request->on_body = kinf__http_body_keep;
    request->ctx = &body;
    kinf__client_hold(asker->client);
    failed = perform(asker, request, timeout_ms, &own);
    kinf__client_let_go(asker->client);
    request->ctx = NULL;
    if (failed == 0)
        failed = finish(&body, ret_response, &own);
    if (failed < 0 && err != NULL)
        *err = own;
    return failed;
}

/* --- what is asked for --- */

static bool is_given(const char *text)
{
    return text != NULL && *text != '\0';
}

static int invalid(struct kinf_error *err, const struct verb *verb, const char *what)
{
    return kinf__error_set(err, KINF_ERR_INVALID, "%s: %s", verb->name, what);
}

static bool is_deletion(const struct kinf_request *request)
{
    return request->verb == KINF_VERB_DELETE || request->verb == KINF_VERB_DELETE_COLLECTION;
}

/* The server would not see these with another verb, or pass over them: a precondition that nobody
 * checks is worse than none. */
static int check_options(const struct kinf_request *request, const struct verb *verb,
                         struct kinf_error *err)
{
    bool is_choice =
        request->verb == KINF_VERB_LIST || request->verb == KINF_VERB_DELETE_COLLECTION;

    if (!is_deletion(request) &&
        (request->if_uid != NULL || request->if_resource_version != NULL ||
         request->propagation != KINF_PROPAGATION_DEFAULT || request->grace_period_s != NULL))
        return invalid(err, verb, "preconditions, propagation and a grace period are for deletes");
    if (!is_choice && (is_given(request->label_selector) || is_given(request->field_selector) ||
                       request->limit != 0 || is_given(request->continue_token)))
        return invalid(err, verb, "selectors and pages are for lists and collections");
    if (!is_choice && request->verb != KINF_VERB_GET &&
        (is_given(request->resource_version) || is_given(request->resource_version_match)))
        return invalid(err, verb, "a resourceVersion to read at is for reads");
    if ((unsigned)request->propagation > KINF_PROPAGATION_FOREGROUND)
        return invalid(err, verb, "no such propagation");
    return 0;
}

static int check(const struct kinf_request *request, const struct verb *verb,
                 struct kinf_error *err)
{
    bool needs_name = verb->has_name || request->subresource != NULL;
    bool needs_namespace =
        request->type != NULL && request->type->namespaced && request->verb != KINF_VERB_LIST;

    if (request->type == NULL)
        return invalid(err, verb, "a type is needed");
    if (is_given(request->name) != needs_name)
        return invalid(err, verb, needs_name ? "a name is needed" : "no name goes with it");
    if ((needs_name && kinf__name_check_segment(request->name, err) < 0) ||
        (request->subresource != NULL && kinf__name_check_segment(request->subresource, err) < 0))
        return KINF_ERR_INVALID;
    if (is_given(request->name_space) ? !request->type->namespaced : needs_namespace)
        return invalid(err, verb,
                       request->type->namespaced ? "a namespace is needed"
                                                 : "the type has no namespaces");
    if (is_given(request->name_space) && kinf__name_check_namespace(request->name_space, err) < 0)
        return KINF_ERR_INVALID;
    if ((verb->content_type != NULL) != (request->body.bytes != NULL))
        return invalid(err, verb,
                       verb->content_type != NULL ? "a body is needed" : "no body goes with it");
    if (request->verb == KINF_VERB_APPLY && !is_given(request->field_manager))
        return invalid(err, verb, "a field manager is needed");
    return check_options(request, verb, err);
}

static int append_option(struct kinf__buffer *target, const char *name, const char *value)
{
    return is_given(value) ? kinf__url_append_query(target, name, value) : 0;
}

static int append_options(const struct kinf_request *request, struct kinf__buffer *target)
{
    char limit[16] = "";
    const struct {
        const char *name, *value;
    } options[] = {
        { "labelSelector", request->label_selector },
        { "fieldSelector", request->field_selector },
        { "limit", limit },
        { "continue", request->continue_token },
        { "resourceVersion", request->resource_version },
        { "resourceVersionMatch", request->resource_version_match },
        { "fieldManager", request->field_manager },
        { "fieldValidation", request->field_validation },
        { "force", request->verb == KINF_VERB_APPLY && request->force ? "true" : NULL },
        { "dryRun", request->dry_run && !is_deletion(request) ? "All" : NULL },
    };

    if (request->limit != 0)
        snprintf(limit, sizeof limit, "%u", request->limit);
    for (size_t i = 0; i < KINF__ARRAY_LEN(options); i++) {
        if (append_option(target, options[i].name, options[i].value) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int append_target(const struct kinf_request *request, struct kinf__buffer *target)
{
    if (kinf__url_append_resource(target, request->type, request->name_space) < 0 ||
        (is_given(request->name) && kinf__url_append_segment(target, request->name) < 0) ||
        (request->subresource != NULL &&
         kinf__url_append_segment(target, request->subresource) < 0))
        return KINF_ERR_NO_MEMORY;
    return append_options(request, target);
}

/* --- DeleteOptions --- */

static int append_text(struct kinf__buffer *json, const char *name, const char *value)
{
    if (value == NULL)
        return 0;
    return kinf__buffer_printf(json, ",\"%s\":", name) < 0
               ? KINF_ERR_NO_MEMORY
               : kinf__quote(json, kinf_str_from(value));
}

static int append_preconditions(const struct kinf_request *request, struct kinf__buffer *json)
{
    KINF__AUTO_BUFFER members = KINF__BUFFER_INIT;

    if (append_text(&members, "uid", request->if_uid) < 0 ||
        append_text(&members, "resourceVersion", request->if_resource_version) < 0)
        return KINF_ERR_NO_MEMORY;
    if (members.len == 0)
        return 0;
    return kinf__buffer_printf(json, ",\"preconditions\":{%.*s}", (int)members.len - 1,
                               members.bytes + 1);
}

static int append_delete_options(const struct kinf_request *request, struct kinf__buffer *json)
{
    static const char *const propagations[] = {
        [KINF_PROPAGATION_DEFAULT] = NULL,
        [KINF_PROPAGATION_ORPHAN] = "Orphan",
        [KINF_PROPAGATION_BACKGROUND] = "Background",
        [KINF_PROPAGATION_FOREGROUND] = "Foreground",
    };

    if (kinf__buffer_printf(json, "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"%s",
                            request->dry_run ? ",\"dryRun\":[\"All\"]" : "") < 0 ||
        append_preconditions(request, json) < 0 ||
        append_text(json, "propagationPolicy", propagations[request->propagation]) < 0 ||
        (request->grace_period_s != NULL &&
         kinf__buffer_printf(json, ",\"gracePeriodSeconds\":%lld",
                             (long long)*request->grace_period_s) < 0))
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(json, "}", 1);
}

/* --- calls --- */

static int perform_request(const struct asker *asker, const struct kinf_request *request,
                           struct kinf_response *ret_response, struct kinf_error *err)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER delete_options = KINF__BUFFER_INIT;
    struct kinf__http_request http = { .body = request->body };
    const struct verb *verb;
    int failed;

    if ((unsigned)request->verb >= KINF__ARRAY_LEN(verbs))
        return kinf__error_set(err, KINF_ERR_INVALID, "%d is no verb", (int)request->verb);
    verb = &verbs[request->verb];
    failed = check(request, verb, err);
    if (failed < 0)
        return failed;
    http.method = verb->method;
    http.content_type = verb->content_type;
    if (is_deletion(request)) {
        if (append_delete_options(request, &delete_options) < 0)
            return kinf__error_no_memory(err);
        http.body = kinf__buffer_str(&delete_options);
    }
    if (append_target(request, &target) < 0 || (http.target = kinf__buffer_cstr(&target)) == NULL)
        return kinf__error_no_memory(err);
    return ask(asker, &http, request->timeout_ms, request->max_response_bytes, ret_response, err);
}

static int request_by(const struct asker *asker, const struct kinf_request *request,
                      struct kinf_response *ret_response, struct kinf_error *err)
{
    struct kinf_request own;
    int rc = kinf__options_read(&own, sizeof own, request, "struct kinf_request", err);

    if (rc < 0)
        return rc;
    if (own.body.len != 0)
        KINF__REFUSE_NULL(err, KINF_ERR_INVALID, own.body.bytes);
    return perform_request(asker, &own, ret_response, err);
}

int kinf_client_request(struct kinf_client *client, const struct kinf_request *request,
                        struct kinf_response *ret_response, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, client, request);

    const struct asker asker = { client, NULL, &client->interrupted };

    return request_by(&asker, request, ret_response, err);
}

int kinf__request_over(struct kinf_client *client, struct kinf__http *http,
                       struct kinf__waker *stop, const struct kinf_request *request,
                       struct kinf_response *ret_response, struct kinf_error *err)
{
    const struct asker asker = { client, http, stop };

    return request_by(&asker, request, ret_response, err);
}

/* Printable ASCII without blanks; a '#' would cut off what follows it, so that another thing is
 * meant. */
static bool is_target(const char *text)
{
    return *text == '/' && kinf__is_token(text) && strchr(text, '#') == NULL;
}

int kinf_client_request_raw(struct kinf_client *client, const char *method, const char *target,
                            struct kinf_str body, const char *content_type,
                            struct kinf_response *ret_response, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, client, method, target);
    if (body.len != 0)
        KINF__REFUSE_NULL(err, KINF_ERR_INVALID, body.bytes);

    static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };
    const struct asker asker = { client, NULL, &client->interrupted };
    struct kinf__http_request http = {
        .method = method, .target = target, .body = body, .content_type = content_type
    };
    bool is_known = false;

    for (size_t i = 0; i < KINF__ARRAY_LEN(methods); i++)
        is_known = is_known || strcmp(method, methods[i]) == 0;
    if (!is_known)
        return kinf__error_set(err, KINF_ERR_INVALID, "'%s' is no method of requests", method);
    if (!is_target(target))
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "the target '%s' does not begin with '/', or has bytes that have to "
                               "be escaped",
                               target);
    if (content_type != NULL && !kinf__is_one_line(content_type))
        return kinf__error_set(err, KINF_ERR_INVALID, "the content type is no header's value");
    return ask(&asker, &http, 0, 0, ret_response, err);
}

void kinf_response_release(struct kinf_response *response)
{
    KINF__REFUSE_NULL(NULL, , response);
    free(response->body);
    *response = (struct kinf_response)KINF_RESPONSE_INIT;
}
