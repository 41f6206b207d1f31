/*
 * From answers to signs. Neighbours: passthrough.c hands the pieces over, changes.c reads them,
 * session.c keeps what is noted.
 *
 * What ends an object is told in few ways, and the rules for them are in note_object(): an answer to
 * DELETE without a deletionTimestamp, and whatever has one and nothing more that holds it. An answer
 * to deletecollection has the items as they were before.
 */
#include "serve/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "rest/inflate.h"
#include "serve/changes.h"
#include "serve/server_priv.h"

#define BODY_MAX (64u << 10) /* DeleteOptions and Evictions are small */

struct kinf__write {
    /* constant */
    struct kinf__server *server;
    const struct kinf__request *request;
    bool is_read;
    int64_t sent_ms;
    /* the connection's */
    bool
        is_new; /* answered as created: its version is of now, which that of an update without a change is not */
    uint64_t newest;   /* version that was read; 0: none */
    bool is_answered;  /* with 2xx, and not noted yet */
    bool is_lost;      /* a part of the answer is missing */
    bool is_body_lost; /* of the request */
    bool is_gzip;
    enum kinf__change_form form;
    struct kinf__buffer body;
    struct kinf__buffer answer;
};

/* --- what is written --- */

static bool is_among(const char *text, const char *const *texts)
{
    while (*texts != NULL && strcmp(*texts, text) != 0)
        texts++;
    return *texts != NULL;
}

/* Below these nothing of the object is written that the answer is about. */
static bool is_elsewhere(const struct kinf__request *request)
{
    static const char *const subresources[] = { "token", "exec",        "attach",
                                                "proxy", "portforward", NULL };

    return is_among(request->subresource, subresources);
}

static bool is_binding(const struct kinf__request *request)
{
    return *request->group == '\0' && strcmp(request->resource, "bindings") == 0;
}

/* Events are one storage by two names. */
static bool is_same_group(const char *resource, const char *a, const char *b)
{
    static const char *const groups[] = { "", "events.k8s.io", NULL };

    return strcmp(a, b) == 0 ||
           (strcmp(resource, "events") == 0 && is_among(a, groups) && is_among(b, groups));
}

static bool concerns(const struct kinf__request *request, const struct kinf__source *source)
{
    const char *resource = is_binding(request) ? "pods" : request->resource;

    return !source->is_unserved && source->consistency == KINF__CONSISTENCY_SESSION &&
           strcmp(source->type->resource, resource) == 0 &&
           is_same_group(resource, source->type->group, request->group) &&
           kinf__scope_covers_namespace(&source->scope, request->name_space);
}

static void note(struct kinf__write *write, const struct kinf__session_write *session_write)
{
    struct kinf__server *server = write->server;
    int64_t now_ms = kinf__clock_now_ms();

    kinf__mutex_lock(&server->lock);
    for (size_t i = 0; i < server->n_sources + server->n_unpublished; i++) {
        if (concerns(write->request, server->sources[i]))
            kinf__session_note(&server->sources[i]->session, session_write, now_ms);
    }
    kinf__server_expect(server, 0);
    kinf__mutex_unlock(&server->lock);
}

static void note_unknown(struct kinf__write *write)
{
    static const struct kinf__session_write unknown = { .sign = KINF__SESSION_UNKNOWN };

    if (!write->is_read)
        note(write, &unknown);
}

static void note_newest(struct kinf__write *write)
{
    const struct kinf__session_write seen = { .sign = KINF__SESSION_VERSION,
                                              .version = write->newest };

    if (write->newest != 0)
        note(write, &seen);
}

/* --- what an answer means --- */

static bool is_delete(const struct kinf__write *write)
{
    return write->request->verb == KINF__VERB_DELETE ||
           write->request->verb == KINF__VERB_DELETE_COLLECTION;
}

static bool is_collection(const struct kinf__write *write)
{
    return *write->request->name == '\0';
}

/* Of one that says that it is done: what was asked for tells what. */
static enum kinf__session_sign sign_of_status(const struct kinf__write *write,
                                              const struct kinf__change *change)
{
    const char *subresource = write->request->subresource;

    if (is_collection(write))
        return KINF__SESSION_UNKNOWN;
    if (is_delete(write))
        return *change->uid != '\0' ? KINF__SESSION_GONE : KINF__SESSION_UNKNOWN;
    if (strcmp(subresource, "eviction") == 0)
        return KINF__SESSION_LEAVING;
    return strcmp(subresource, "binding") == 0 ? KINF__SESSION_BOUND : KINF__SESSION_UNKNOWN;
}

static enum kinf__session_sign sign_of_object(const struct kinf__write *write,
                                              const struct kinf__change *change)
{
    bool is_held = change->has_finalizers || change->has_grace;

    if (write->request->verb == KINF__VERB_DELETE_COLLECTION) {
        if (!change->is_terminating)
            return KINF__SESSION_LEAVING;
        /* With a grace alone it may have been shortened to nothing. */
        return change->has_finalizers ? KINF__SESSION_VERSION : KINF__SESSION_GONE;
    }
    if (change->is_terminating ? !is_held : is_delete(write))
        return KINF__SESSION_GONE;
    return change->version != 0 ? KINF__SESSION_VERSION : KINF__SESSION_UNKNOWN;
}

/* An object of a collection is named by the answer, any other by the request. */
static void write_key(const struct kinf__write *write, const struct kinf__change *change, char *key,
                      size_t size)
{
    const struct kinf__request *request = write->request;
    const char *name_space = is_collection(write) ? change->name_space : request->name_space;

    snprintf(key, size, "%s%s%s", name_space, *name_space != '\0' ? "/" : "",
             is_collection(write) ? change->name : request->name);
}

static void note_change(const struct kinf__change *change, void *ctx)
{
    struct kinf__write *write = ctx;
    char key[2 * KINF_NAME_MAX];
    struct kinf__session_write session_write = {
        .sign = change->is_status ? sign_of_status(write, change) : sign_of_object(write, change),
        .version = change->version,
        .key = key,
        .uid = change->uid,
        .sent_ms = write->is_new ? write->sent_ms : 0,
    };

    if (write->is_read) {
        write->newest = change->version > write->newest ? change->version : write->newest;
        return;
    }
    if (session_write.sign == KINF__SESSION_GONE && change->version == 0)
        session_write.version = KINF__SESSION_ANY;
    write_key(write, change, key, sizeof key);
    note(write, &session_write);
}

/* --- the answer --- */

/* Forgets what there was: it will not be read. */
static void lose(struct kinf__write *write)
{
    atomic_fetch_sub(&write->server->n_answer_bytes, write->answer.len);
    kinf__buffer_release(&write->answer);
    write->is_lost = true;
}

static int inflate_piece(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct kinf__buffer *out = ctx;

    (void)err;
    return out->len + len > 4 * KINF__WRITE_ANSWER_MAX ? KINF_ERR_LIMIT
                                                       : kinf__buffer_append(out, bytes, len);
}

static int inflate(const struct kinf__buffer *answer, struct kinf__buffer *out)
{
    struct kinf__inflate *inflate;
    int failed = kinf__inflate_new(&inflate, NULL);

    if (failed < 0)
        return failed; /* no memory */
    failed = kinf__inflate_feed(inflate, answer->bytes, answer->len, inflate_piece, out, NULL);
    if (failed == 0 && !kinf__inflate_is_complete(inflate))
        failed = KINF_ERR_TRUNCATED;
    kinf__inflate_free(inflate);
    return failed;
}

static int read_answer(struct kinf__write *write)
{
    KINF__AUTO_BUFFER plain = KINF__BUFFER_INIT;
    const struct kinf__buffer *answer = &write->answer;

    if (write->is_gzip) {
        int failed = inflate(answer, &plain);

        if (failed < 0)
            return failed;
        answer = &plain;
    }
    return kinf__changes_read(write->form, kinf__buffer_str(answer), note_change, write);
}

/* Of a DELETE with a body the query counts for nothing. What was not kept is not dry. */
static bool is_dry(const struct kinf__write *write)
{
    if (write->is_body_lost)
        return false;
    if (is_delete(write) && write->body.len != 0)
        return kinf__changes_are_dry(kinf__buffer_str(&write->body));
    return kinf__request_has_parameter(write->request, "dryRun") ||
           kinf__changes_are_dry(kinf__buffer_str(&write->body));
}

bool kinf__write_begin_answer(struct kinf__write *write, const struct kinf__head *head)
{
    const char *encoding = kinf__head_value(head, "Content-Encoding");

    write->is_answered = head->code >= 200 && head->code < 300 && !is_dry(write);
    write->is_new = head->code == 201;
    kinf__buffer_release(&write->body);
    write->form = kinf__change_form_of(kinf__head_value(head, "Content-Type"));
    write->is_gzip = strcasecmp(encoding, "gzip") == 0;
    if (*encoding != '\0' && !write->is_gzip)
        write->form = KINF__CHANGES_OTHER;
    if (write->form == KINF__CHANGES_OTHER)
        kinf__write_end_answer(write, false);
    return write->is_answered;
}

/* Reads take no room from writes, of which nothing may be missed. */
void kinf__write_take_answer(struct kinf__write *write, const char *bytes, size_t len)
{
    size_t max = write->is_read ? KINF__WRITE_ANSWERS_MAX / 2 : KINF__WRITE_ANSWERS_MAX;

    if (!write->is_answered || write->is_lost)
        return;
    if (write->answer.len + len > KINF__WRITE_ANSWER_MAX ||
        atomic_load(&write->server->n_answer_bytes) + len > max ||
        kinf__buffer_append(&write->answer, bytes, len) < 0)
        lose(write);
    else
        atomic_fetch_add(&write->server->n_answer_bytes, len);
}

void kinf__write_end_answer(struct kinf__write *write, bool is_whole)
{
    if (!write->is_answered)
        return;
    write->is_answered = false;
    if (!is_whole || write->is_lost || read_answer(write) < 0)
        note_unknown(write);
    note_newest(write);
    lose(write);
}

/* --- life --- */

static bool is_write(const struct kinf__request *request)
{
    return request->route == KINF__ROUTE_RESOURCE && request->verb >= KINF__VERB_CREATE &&
           request->verb <= KINF__VERB_DELETE_COLLECTION && !is_elsewhere(request);
}

/* What was listed for a cache that does not answer yet may be older than what such a read is shown.
 * Below an object others may answer, who say what they like. */
static bool is_before_its_cache(struct kinf__server *server, const struct kinf__request *request)
{
    bool is_before = false;

    if (request->route != KINF__ROUTE_RESOURCE || request->verb > KINF__VERB_LIST ||
        *request->subresource != '\0')
        return false;
    kinf__mutex_lock(&server->lock);
    for (size_t i = 0; i < server->n_unpublished; i++)
        is_before = is_before || concerns(request, server->sources[server->n_sources + i]);
    kinf__mutex_unlock(&server->lock);
    return is_before;
}

int kinf__write_new(struct kinf__server *server, const struct kinf__request *request,
                    bool reads_ahead, struct kinf__write **ret_write)
{
    struct kinf__write *write = NULL;

    reads_ahead = reads_ahead || is_before_its_cache(server, request);
    if (reads_ahead || is_write(request)) {
        write = calloc(1, sizeof *write);
        if (write == NULL)
            return KINF_ERR_NO_MEMORY;
        write->server = server;
        write->request = request;
        write->is_read = reads_ahead;
        write->sent_ms = kinf__clock_now_ms();
    }
    *ret_write = write;
    return 0;
}

void kinf__write_free(struct kinf__write *write)
{
    if (write == NULL)
        return;
    kinf__write_end_answer(write, false);
    lose(write);
    kinf__buffer_release(&write->body);
    free(write);
}

/* Only what deletes says in its body that it is dry. */
void kinf__write_take_body(struct kinf__write *write, const char *bytes, size_t len)
{
    if (write == NULL || write->is_body_lost ||
        (!is_delete(write) && strcmp(write->request->subresource, "eviction") != 0))
        return;
    write->is_body_lost =
        write->body.len + len > BODY_MAX || kinf__buffer_append(&write->body, bytes, len) < 0;
}
