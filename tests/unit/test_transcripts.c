/*
 * Every recorded answer, replayed through the reflector: what its decoder makes of it, what the
 * queue gets, and what the policy does next is in tests/data/transcripts/NAME.expected. Pieces of
 * any size lead to the same; an answer that is cut short gives a prefix of it and never looks like
 * one that ended. The bodies are replayed in process, with kinf__http_perform() replaced; the bytes
 * of the answers by a server (tests/replay) and the real one.
 *
 * KINF_UPDATE_EXPECTED=1 rewrites the files instead of comparing; not under CI.
 */
#include <endian.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kinformer/client.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "reflector/reflector_priv.h"
#include "replay/replay.h"
#include "rest/status.h"
#include "unit/test.h"
#include "unit/transcript.h"

#define WAIT_MS 60000
/* Offsets at which the bytes of one answer are cut on the wire. */
#define N_WIRE_CUTS 6
/* Offsets at which a body is handed over in two pieces. */
#define N_SPLITS 40

enum request_kind { LIST, WATCH_LIST, WATCH, OBJECT };
static const char *const kind_names[] = { "a list", "a watch list", "a watch", "an object" };

/* How an answer comes: over HTTP, or its body in pieces of `cut` up to `len`. */
struct way {
    bool over_http;
    size_t len;
    struct test_cut cut;
};

/* What an answer led to. */
struct result {
    struct kinf__buffer decoded; /* by the stream, a line each */
    struct kinf__buffer queued;  /* a line a delta, without bookmarks */
    struct kinf__buffer outcome; /* lines */
};

/* A reflector that is about to get one answer, again and again. */
struct session {
    const struct test_transcript *transcript;
    enum request_kind kind;
    struct kinf_client *client;
    struct kinf__waker waker;
    struct kinf__http *http; /* for single objects */
    struct kinf_deltafifo *fifo;
    struct kinf__prune_plan *plan;
    struct kinf__reflector *reflector;
    struct way way;
    struct result result;
    size_t n_queued;
};

/* The one whose request is performed. */
static struct session *current;
/* Simulated time, in process; over HTTP it is added to the real time. */
static _Atomic(int64_t) simulated_ms;
static _Atomic(bool) is_real_time;

static void must(int r)
{
    assert_int_equal(r, 0);
}

static const char *text_of(struct kinf__buffer *buffer)
{
    const char *text = kinf__buffer_cstr(buffer);

    assert_non_null(text);
    return text;
}

/* --- what is replaced --- */

int64_t __real_kinf__clock_now_ms(void);
int64_t __wrap_kinf__clock_now_ms(void);
int __real_kinf__http_perform(struct kinf__http *http, const struct kinf__http_request *request,
                              struct kinf_error *err);
int __wrap_kinf__http_perform(struct kinf__http *http, const struct kinf__http_request *request,
                              struct kinf_error *err);

int64_t __wrap_kinf__clock_now_ms(void)
{
    return simulated_ms + (is_real_time ? __real_kinf__clock_now_ms() : 1000000);
}

/* What http.c makes of an answer that is no success. */
static int refuse(const struct test_transcript *transcript, struct kinf_error *err)
{
    int r = kinf__status_to_error((struct kinf_str){ transcript->body, current->way.len },
                                  transcript->http_status, err);

    if (transcript->retry_after_ms != 0)
        err->retry_after_ms = transcript->retry_after_ms;
    return r;
}

struct piece_ctx {
    const struct kinf__http_request *request;
    struct kinf_error *err;
};

static int feed_piece(const char *bytes, size_t len, void *ctx)
{
    const struct piece_ctx *piece = ctx;

    return len == 0 ? 0 : piece->request->on_body(bytes, len, piece->request->ctx, piece->err);
}

static int perform_in_process(const struct kinf__http_request *request, struct kinf_error *err)
{
    const struct test_transcript *transcript = current->transcript;
    struct piece_ctx piece = { request, err };
    int r;

    if (transcript->http_status >= 300)
        return refuse(transcript, err);
    if (transcript->http_status != 0 && request->on_head != NULL)
        request->on_head(transcript->http_status, request->ctx);
    r = test_feed_cut(transcript->body, current->way.len, current->way.cut, feed_piece, &piece);
    if (request->on_pause != NULL)
        request->on_pause(request->ctx);
    if (r == 0 && (!transcript->is_complete || current->way.len < transcript->len))
        r = kinf__error_set(err, KINF_ERR_NETWORK, "cut short");
    return r;
}

int __wrap_kinf__http_perform(struct kinf__http *http, const struct kinf__http_request *request,
                              struct kinf_error *err)
{
    int r = current->way.over_http ? __real_kinf__http_perform(http, request, err)
                                   : perform_in_process(request, err);

    simulated_ms += current->transcript->end_ms;
    must(kinf__buffer_printf(&current->result.outcome, "http: %s",
                             r == 0 ? "ok" : kinf_errc_to_string(r)));
    if (r < 0 && err->http_status != 0)
        must(kinf__buffer_printf(&current->result.outcome, " %d", err->http_status));
    if (r < 0 && err->retry_after_ms != 0)
        must(kinf__buffer_printf(&current->result.outcome, " retry-after=%ums",
                                 err->retry_after_ms));
    must(kinf__buffer_printf(&current->result.outcome, "\n"));
    return r;
}

/* --- what is noted --- */

/* Eight bytes at a time, since this is most of the test's work. */
static unsigned hash_of(struct kinf_str text)
{
    uint64_t hash = text.len;

    for (size_t i = 0; i < text.len; i += 8) {
        uint64_t word = 0;

        memcpy(&word, text.bytes + i, text.len - i < 8 ? text.len - i : 8);
        hash = (hash ^ le64toh(word)) * 0x9e3779b97f4a7c15U;
        hash ^= hash >> 29;
    }
    return (unsigned)(hash ^ hash >> 32);
}

/* With a hash of all its JSON, so that half an object would be seen. */
static void note_object(struct kinf__buffer *to, const char *what, const struct kinf_object *object)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str json;

    must(kinf_object_json(object, &scratch, &json, NULL));
    must(kinf__buffer_printf(to, "%s %s@%s #%08x\n", what, kinf_object_key(object),
                             kinf_object_resource_version(object), hash_of(json)));
}

static int note_item(const struct kinf_object *take_object, void *ctx, struct kinf_error *err)
{
    struct session *session = ctx;

    note_object(&session->result.decoded, "item", take_object);
    return kinf__reflector_on_item(take_object, session->reflector, err);
}

static void note_reject(struct session *session, const char *key, const struct kinf_error *why)
{
    must(kinf__buffer_printf(&session->result.decoded, "left out %s: %s\n",
                             key[0] != '\0' ? key : "?", kinf_errc_to_string(why->code)));
}

static int note_rejected_item(const char *key, const struct kinf_error *why, void *ctx,
                              struct kinf_error *err)
{
    struct session *session = ctx;

    note_reject(session, key, why);
    return kinf__reflector_on_rejected_item(key, why, session->reflector, err);
}

static int note_event(enum kinf__watch_event_type type, const struct kinf_object *object, void *ctx,
                      struct kinf_error *err)
{
    static const char *const names[] = { "ADDED", "MODIFIED", "DELETED" };
    struct session *session = ctx;

    note_object(&session->result.decoded, names[type], object);
    return kinf__reflector_on_event(type, object, session->reflector, err);
}

static int note_bookmark(const char *rv, bool ends_initial_events, void *ctx,
                         struct kinf_error *err)
{
    struct session *session = ctx;

    must(kinf__buffer_printf(&session->result.decoded, "BOOKMARK %s%s\n", rv,
                             ends_initial_events ? " ends the initial events" : ""));
    return kinf__reflector_on_bookmark(rv, ends_initial_events, session->reflector, err);
}

static int note_error(const struct kinf_error *event, void *ctx, struct kinf_error *err)
{
    struct session *session = ctx;

    must(kinf__buffer_printf(&session->result.decoded, "ERROR %s %d retry-after=%ums\n",
                             kinf_errc_to_string(event->code), event->http_status,
                             event->retry_after_ms));
    return kinf__reflector_on_error(event, session->reflector, err);
}

static int note_rejected_event(const char *key, const struct kinf_error *why, void *ctx,
                               struct kinf_error *err)
{
    struct session *session = ctx;

    note_reject(session, key, why);
    return kinf__reflector_on_rejected_event(key, why, session->reflector, err);
}

static int note_deltas(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct session *session = ctx;
    struct kinf__buffer *queued = &session->result.queued;

    (void)in_initial_list;
    for (size_t i = 0; i < deltas->n_items; i++) {
        const struct kinf_delta *delta = &deltas->items[i];

        if (delta->type == KINF_DELTA_BOOKMARK)
            continue;
        session->n_queued++;
        if (delta->type == KINF_DELTA_REPLACED_ALL)
            must(kinf__buffer_printf(queued, "list of %zu at %s\n", delta->n_objects,
                                     delta->resource_version));
        for (size_t k = 0; k < delta->n_objects; k++)
            note_object(queued, "listed", delta->objects[k]);
        if (delta->object != NULL)
            note_object(queued, kinf_delta_type_to_string(delta->type), delta->object);
    }
    return 0;
}

static void note_transition(enum kinf__policy_state from, enum kinf__policy_event_type event,
                            enum kinf__policy_state to, void *ctx)
{
    struct session *session = ctx;

    if (event != KINF__POLICY_WATCH_RV)
        must(kinf__buffer_printf(
            &session->result.outcome, "policy: %s, %s: %s\n", kinf__policy_state_to_string(from),
            kinf__policy_event_to_string(event), kinf__policy_state_to_string(to)));
}

static void on_phase(enum kinf__reflector_phase phase, const struct kinf_error *err,
                     int64_t wait_ms, void *ctx)
{
    (void)ctx;
    if (phase == KINF__REFLECTOR_WAITING)
        assert_true(wait_ms >= err->retry_after_ms);
}

/* --- a session --- */

/* The recorded requests' resources. */
static const char *kind_of(const char *resource)
{
    static const struct {
        const char *resource;
        const char *kind;
    } kinds[] = {
        { "configmaps", "ConfigMap" },
        { "secrets", "Secret" },
        { "pods", "Pod" },
        { "events", "Event" },
        { "widgets", "Widget" },
        { "gizmos", "Gizmo" },
        { "customresourcedefinitions", "CustomResourceDefinition" },
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].resource, resource) == 0)
            return kinds[i].kind;
    }
    return "Thing";
}

/* Splits the path: type, and whether one object was asked for. */
static bool names_object(const struct test_transcript *transcript,
                         const struct kinf_type **ret_type)
{
    char *path = strndup(transcript->target, strcspn(transcript->target, "?"));
    char *segments[12] = { NULL }, *rest = path, *part;
    const char *group = "", *version, *resource;
    size_t n = 0, at = 1;
    bool is_namespaced, has_name;

    assert_non_null(path);
    while (n < 11 && (part = strsep(&rest, "/")) != NULL) {
        if (part[0] != '\0')
            segments[n++] = part;
    }
    if (strcmp(segments[0], "apis") == 0)
        group = segments[at++];
    version = segments[at++];
    if (strcmp(segments[at], "watch") == 0)
        at++;
    is_namespaced = strcmp(segments[at], "namespaces") == 0 && at + 2 < n;
    at += is_namespaced ? 2 : 0;
    resource = segments[at];
    has_name = segments[at + 1] != NULL;
    must(kinf_type_intern(group, version, kind_of(resource), resource, is_namespaced, ret_type,
                          NULL));
    free(path);
    return has_name;
}

static enum request_kind kind_of_request(const struct test_transcript *transcript,
                                         bool is_one_object)
{
    char value[32];

    if (is_one_object)
        return OBJECT;
    if (!test_transcript_query(transcript, "watch", value, sizeof value) &&
        strstr(transcript->target, "/watch/") == NULL)
        return LIST;
    test_transcript_query(transcript, "sendInitialEvents", value, sizeof value);
    return strcmp(value, "true") == 0 ? WATCH_LIST : WATCH;
}

static void trace_streams(struct session *session)
{
    struct kinf__reflector *reflector = session->reflector;

    reflector->list_callbacks =
        (struct kinf__list_stream_callbacks){ note_item, note_rejected_item, session };
    reflector->watch_callbacks =
        (struct kinf__watch_stream_callbacks){ note_event, note_bookmark, note_error,
                                               note_rejected_event, session };
}

static void session_init(struct session *session, const struct test_transcript *transcript,
                         const char *kubeconfig)
{
    struct kinf_client_options client_options = { .size = sizeof client_options,
                                                  .kubeconfig = kubeconfig };
    struct kinf_deltafifo_options fifo_options = { .size = sizeof fifo_options,
                                                   .order = KINF_FIFO_IN_ORDER };
    struct kinf__reflector_options options = { .callbacks = { .on_phase = on_phase } };

    *session = (struct session){ .transcript = transcript, .waker = { .fd = -1 } };
    session->kind = kind_of_request(transcript, names_object(transcript, &options.type));
    must(kinf_client_new(&client_options, &session->client, NULL));
    must(kinf__waker_init(&session->waker, NULL));
    must(kinf__http_new(session->client, &session->waker, &session->http, NULL));
    must(kinf__prune_plan_new(NULL, 0, NULL, 0, &session->plan, NULL));
    must(kinf_deltafifo_new(&fifo_options, &session->fifo, NULL));
    options.client = session->client;
    options.plan = session->plan;
    options.fifo = session->fifo;
    options.metadata_only = strstr(transcript->accept, "as=PartialObjectMetadata") != NULL;
    must(kinf__reflector_new(&options, &session->reflector, NULL));
    trace_streams(session);
    current = session;
}

static void session_release(struct session *session)
{
    kinf__reflector_free(session->reflector);
    kinf_deltafifo_free(session->fifo);
    kinf__prune_plan_free(session->plan);
    kinf__http_free(session->http);
    kinf__waker_release(&session->waker);
    kinf_client_free(session->client);
    kinf__buffer_release(&session->result.decoded);
    kinf__buffer_release(&session->result.queued);
    kinf__buffer_release(&session->result.outcome);
}

static void tell(struct session *session, struct kinf__policy_event event)
{
    kinf__policy_event(&session->reflector->policy, kinf__clock_now_ms(), 0, &event);
}

/* What the policy wants now, waits passed over. */
static struct kinf__policy_action next_action(struct session *session)
{
    struct kinf__policy_action action;

    for (;;) {
        kinf__policy_next(&session->reflector->policy, kinf__clock_now_ms(), 0, &action);
        if (action.type != KINF__DO_WAIT)
            return action;
        simulated_ms += action.wait_ms;
    }
}

/* Brings the policy to where it makes such a request. */
static struct kinf__policy_action prepare(struct session *session)
{
    static const struct kinf_error expired = { .code = KINF_ERR_EXPIRED, .http_status = 410 };
    struct kinf__policy *policy = &session->reflector->policy;
    struct kinf__policy_options options = policy->options;
    char rv[KINF__RV_SIZE], token[KINF__CONTINUE_SIZE], limit[24];
    bool has_rv = test_transcript_query(session->transcript, "resourceVersion", rv, sizeof rv);
    bool has_token = test_transcript_query(session->transcript, "continue", token, sizeof token);

    options.trace = NULL;
    options.initial = session->kind == WATCH_LIST ? KINF_INITIAL_WATCHLIST : KINF_INITIAL_LIST;
    test_transcript_query(session->transcript, "limit", limit, sizeof limit);
    options.page_size = session->kind == LIST ? (size_t)strtoul(limit, NULL, 10) : 0;
    kinf__policy_init(policy, &options);
    (void)next_action(session);
    if (session->kind == LIST && has_token)
        tell(session, (struct kinf__policy_event){ .type = KINF__POLICY_LIST_PAGE,
                                                   .rv = "222",
                                                   .continue_token = token,
                                                   .n_remaining = -1 });
    else if (session->kind == WATCH || (session->kind == LIST && has_rv))
        tell(session, (struct kinf__policy_event){ .type = KINF__POLICY_LIST_PAGE,
                                                   .rv = has_rv ? rv : "0",
                                                   .n_remaining = -1 });
    else if (session->kind == WATCH_LIST && has_rv)
        tell(session, (struct kinf__policy_event){ .type = KINF__POLICY_INITIAL_END, .rv = rv });
    if (session->kind != WATCH && has_rv && !has_token) {
        (void)next_action(session);
        tell(session,
             (struct kinf__policy_event){ .type = KINF__POLICY_WATCH_ERROR, .err = &expired });
    }
    (void)next_action(session);
    policy->options.trace = note_transition;
    policy->options.trace_ctx = session;
    return next_action(session);
}

static void note_next(struct session *session)
{
    static const char *const names[] = {
        [KINF__DO_LIST] = "LIST",   [KINF__DO_WATCH_LIST] = "WATCH LIST",
        [KINF__DO_WATCH] = "WATCH", [KINF__DO_VERIFY] = "VERIFY",
        [KINF__DO_ASK] = "ASK",     [KINF__DO_STOP] = "STOP"
    };
    struct kinf__policy_action action;
    struct kinf__buffer *outcome = &session->result.outcome;

    kinf__policy_next(&session->reflector->policy, kinf__clock_now_ms(), 0, &action);
    if (action.type == KINF__DO_WAIT)
        must(kinf__buffer_printf(outcome, "next: wait\n"));
    session->reflector->policy.options.trace = NULL;
    action = next_action(session);
    must(kinf__buffer_printf(outcome, "next: %s rv=%s", names[action.type], action.rv));
    if (action.type == KINF__DO_LIST && action.limit != 0)
        must(kinf__buffer_printf(outcome, " limit=%zu", action.limit));
    if (action.type == KINF__DO_LIST && action.continue_token[0] != '\0')
        must(kinf__buffer_printf(outcome, " continue=%s", action.continue_token));
    must(kinf__buffer_printf(outcome, "\n"));
}

static int collect(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    (void)err;
    return kinf__buffer_append(ctx, bytes, len);
}

static void get_object(struct session *session)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__http_request request = { .target = session->transcript->target,
                                          .on_body = collect,
                                          .ctx = &body };
    const struct kinf_object *object;
    size_t len;
    int r = kinf__http_perform(session->http, &request, &err);

    if (r == 0)
        r = kinf__object_decode(&session->reflector->decoder, kinf__buffer_str(&body), true,
                                &object, &len, &err);
    if (r == 0) {
        note_object(&session->result.decoded, "object", object);
        kinf_object_unref(object);
    }
    if (session->way.over_http)
        kinf__http_disconnect(session->http);
}

static void request_once(struct session *session)
{
    struct kinf__policy_action action = prepare(session);

    if (session->kind == LIST) {
        assert_int_equal(action.type, KINF__DO_LIST);
        kinf__reflector_begin_list(session->reflector);
        kinf__reflector_list(session->reflector, &action);
    } else {
        assert_int_equal(action.type,
                         session->kind == WATCH ? KINF__DO_WATCH : KINF__DO_WATCH_LIST);
        kinf__reflector_watch(session->reflector, &action);
    }
    assert_true(kinf__policy_check(&session->reflector->policy));
    note_next(session);
    kinf__reflector_drop_list(session->reflector);
    if (session->way.over_http)
        kinf__http_disconnect(session->reflector->http);
    while (kinf_deltafifo_len(session->fifo) != 0)
        must(kinf_deltafifo_pop(session->fifo, note_deltas, session, WAIT_MS));
}

/* Gets the answer once. What it led to is in session->result. */
static void run(struct session *session, struct way way)
{
    struct result *result = &session->result;

    session->way = way;
    result->decoded.len = result->queued.len = result->outcome.len = 0;
    session->n_queued = 0;
    kinf__quarantine_release(&session->reflector->quarantine);
    kinf__quarantine_init(&session->reflector->quarantine);
    if (session->kind == OBJECT)
        get_object(session);
    else
        request_once(session);
}

static struct way whole_of(const struct test_transcript *transcript)
{
    return (struct way){ .len = transcript->len, .cut = { .step = transcript->len + 1 } };
}

/* --- what is expected --- */

static void append_result(struct session *session, struct kinf__buffer *text)
{
    struct result *result = &session->result;

    must(kinf__buffer_printf(text, "%s%s", text_of(&result->decoded), text_of(&result->outcome)));
    if (session->n_queued != 0)
        must(kinf__buffer_printf(text, "queued: %zu #%08x\n", session->n_queued,
                                 hash_of(kinf__buffer_str(&result->queued))));
}

static void write_expected(const char *path, struct kinf__buffer *text)
{
    const char *ci = getenv("CI");
    FILE *file;

    if (ci != NULL && ci[0] != '\0')
        fail_msg("KINF_UPDATE_EXPECTED is not for CI");
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text->bytes, 1, text->len, file), text->len);
    assert_int_equal(fclose(file), 0);
}

static void compare_with_expected(struct session *session, const char *name)
{
    const struct test_transcript *transcript = session->transcript;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    char path[1024], *expected;
    size_t len;

    must(kinf__buffer_printf(&text, "asked for %s, answered %d%s\n", kind_names[session->kind],
                             transcript->http_status,
                             transcript->is_complete ? "" : ", not to the end"));
    append_result(session, &text);
    if (getenv("KINF_UPDATE_EXPECTED") != NULL) {
        snprintf(path, sizeof path, "%s/transcripts/%s.expected", test_data_dir(), name);
        write_expected(path, &text);
        return;
    }
    snprintf(path, sizeof path, "transcripts/%s.expected", name);
    expected = test_read_data(path, &len);
    assert_string_equal(text_of(&text), expected);
    free(expected);
}

/* --- cuts --- */

/* What the whole answer led to, and a session that tries others. */
struct trial {
    struct session *session;
    struct result whole; /* texts */
};

static void trial_init(struct trial *trial, struct session *session)
{
    run(session, whole_of(session->transcript));
    text_of(&session->result.decoded);
    text_of(&session->result.queued);
    text_of(&session->result.outcome);
    *trial = (struct trial){ .session = session, .whole = session->result };
    session->result = (struct result){ .decoded = KINF__BUFFER_INIT };
}

static void trial_release(struct trial *trial)
{
    kinf__buffer_release(&trial->whole.decoded);
    kinf__buffer_release(&trial->whole.queued);
    kinf__buffer_release(&trial->whole.outcome);
}

static void assert_same(struct trial *trial)
{
    struct result *result = &trial->session->result;

    assert_string_equal(text_of(&result->decoded), trial->whole.decoded.bytes);
    assert_string_equal(text_of(&result->queued), trial->whole.queued.bytes);
    assert_string_equal(text_of(&result->outcome), trial->whole.outcome.bytes);
}

static void assert_prefix(const struct kinf__buffer *part, const struct kinf__buffer *whole)
{
    assert_true(part->len <= whole->len);
    if (part->len != 0)
        assert_memory_equal(part->bytes, whole->bytes, part->len);
}

static void assert_cut_short(struct trial *trial)
{
    struct result *result = &trial->session->result;

    assert_prefix(&result->decoded, &trial->whole.decoded);
    assert_prefix(&result->queued, &trial->whole.queued);
    assert_null(strstr(text_of(&result->outcome), "http: ok"));
}

static void try_pieces(struct trial *trial)
{
    static const size_t steps[] = { 1, 7, 2048 };
    size_t len = trial->session->transcript->len;
    size_t n_splits = len < N_SPLITS ? len : test_rounds(N_SPLITS);

    for (size_t i = 0; i < KINF__ARRAY_LEN(steps); i++) {
        run(trial->session, (struct way){ .len = len, .cut = { .step = steps[i] } });
        assert_same(trial);
    }
    for (size_t i = 0; i < n_splits; i++) {
        run(trial->session, (struct way){ .len = len, .cut = { .at = len * (i + 1) / n_splits } });
        assert_same(trial);
    }
}

/* At every offset; sampled where the body is large. */
static void try_cuts(struct trial *trial, struct test_random *random)
{
    size_t len = trial->session->transcript->len;
    size_t stride = len <= 20000 ? 8 / test_rounds(8) : len / test_rounds(64);

    for (size_t at = test_random_below(random, stride); at < len; at += stride) {
        run(trial->session, (struct way){ .len = at, .cut = { .step = len } });
        assert_cut_short(trial);
    }
}

/* --- over HTTP --- */

static void append_exchange(struct kinf__buffer *script, const char *name, size_t cut_at)
{
    must(kinf__buffer_printf(script, "exchange once\nmatch GET /*\nrecorded %s\n", name));
    if (cut_at != SIZE_MAX)
        must(kinf__buffer_printf(script, "after %zu cut\n", cut_at));
}

/* The last one leaves out as little as shows: with the CR behind the last chunk nothing is missing
 * any more but an LF, and curl takes the answer for complete. */
static size_t wire_cut(const struct test_transcript *transcript, size_t i, size_t n)
{
    if (i == n - 1)
        return transcript->wire_len - 2;
    return transcript->wire_len * (2 * i + 1) / (2 * n);
}

/* Plays the answer whole, then cut at some offsets, also within its head. Where the recorder left
 * it ends there. */
static struct replay *start_server(const char *name, const struct test_transcript *transcript,
                                   size_t n_cuts, bool is_left)
{
    KINF__AUTO_BUFFER script = KINF__BUFFER_INIT;
    struct replay_options options = { .plain = transcript->is_complete };
    struct kinf_error err = KINF_ERROR_INIT;
    struct replay *replay = NULL;
    char dir[1024];

    append_exchange(&script, name, is_left ? transcript->wire_len : SIZE_MAX);
    for (size_t i = 0; i < n_cuts; i++)
        append_exchange(&script, name, wire_cut(transcript, i, n_cuts));
    snprintf(dir, sizeof dir, "%s/transcripts", test_data_dir());
    options.transcripts_dir = dir;
    options.script = text_of(&script);
    if (replay_start(&options, &replay, &err) < 0)
        fail_msg("%s", err.message);
    return replay;
}

static void replay_over_http(const char *name, const struct test_transcript *transcript,
                             struct trial *in_process)
{
    static const struct way over_http = { .over_http = true };
    size_t n_cuts = transcript->wire_len == 0 ? 0 : test_rounds(N_WIRE_CUTS);
    struct replay *replay = start_server(name, transcript, n_cuts, !transcript->is_complete);
    char kubeconfig[] = "/tmp/kinf-transcripts-XXXXXX";
    int fd = mkstemp(kubeconfig);
    struct trial trial = *in_process;
    struct session session;

    assert_true(fd >= 0);
    close(fd);
    must(replay_write_kubeconfig(replay, kubeconfig, NULL));
    is_real_time = true;
    session_init(&session, transcript, kubeconfig);
    trial.session = &session;
    run(&session, over_http);
    assert_same(&trial);
    for (size_t i = 0; i < n_cuts; i++) {
        run(&session, over_http);
        assert_cut_short(&trial);
    }
    assert_int_equal(replay_n_violations(replay), 0);
    assert_true(replay_wait_used_up(replay, WAIT_MS));
    session_release(&session);
    is_real_time = false;
    replay_stop(replay);
    unlink(kubeconfig);
}

/* --- tests --- */

static void each_transcript(void (*try)(const char *name, const struct test_transcript *transcript,
                                        struct trial *trial, void *ctx),
                            void *ctx)
{
    char kubeconfig[] = "/tmp/kinf-transcripts-XXXXXX";
    size_t n_names, n_objects = kinf__object_count();
    char **names = test_transcript_names(&n_names);
    int fd = mkstemp(kubeconfig);

    assert_true(fd >= 0);
    dprintf(fd, "current-context: c\ncontexts: [{name: c, context: {cluster: c}}]\n"
                "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n");
    close(fd);
    assert_true(n_names > 290);
    for (size_t i = 0; i < n_names; i++) {
        struct test_transcript transcript = test_transcript_read(names[i]);
        struct session session;
        struct trial trial;

        printf("  %s\n", names[i]);
        session_init(&session, &transcript, kubeconfig);
        trial_init(&trial, &session);
        try(names[i], &transcript, &trial, ctx);
        trial_release(&trial);
        session_release(&session);
        test_transcript_release(&transcript);
        assert_int_equal(kinf__object_count(), n_objects);
        free(names[i]);
    }
    free(names);
    unlink(kubeconfig);
}

static void try_whole(const char *name, const struct test_transcript *transcript,
                      struct trial *trial, void *ctx)
{
    (void)ctx;
    run(trial->session, whole_of(transcript));
    assert_same(trial);
    compare_with_expected(trial->session, name);
}

static void every_answer_leads_to_what_is_expected(void **state)
{
    (void)state;
    each_transcript(try_whole, NULL);
}

static void try_in_pieces(const char *name, const struct test_transcript *transcript,
                          struct trial *trial, void *ctx)
{
    (void)name;
    (void)transcript;
    (void)ctx;
    try_pieces(trial);
}

static void every_answer_leads_to_the_same_in_any_pieces(void **state)
{
    (void)state;
    each_transcript(try_in_pieces, NULL);
}

static void try_cut_short(const char *name, const struct test_transcript *transcript,
                          struct trial *trial, void *ctx)
{
    (void)name;
    (void)transcript;
    try_cuts(trial, ctx);
}

static void an_answer_cut_anywhere_gives_a_prefix_and_fails(void **state)
{
    struct test_random random = test_random_init("cuts");

    (void)state;
    each_transcript(try_cut_short, &random);
}

static void try_over_http(const char *name, const struct test_transcript *transcript,
                          struct trial *trial, void *ctx)
{
    (void)ctx;
    replay_over_http(name, transcript, trial);
}

static void every_answer_leads_to_the_same_over_http(void **state)
{
    (void)state;
    each_transcript(try_over_http, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_leads_to_what_is_expected),
        cmocka_unit_test(every_answer_leads_to_the_same_in_any_pieces),
        cmocka_unit_test(an_answer_cut_anywhere_gives_a_prefix_and_fails),
        cmocka_unit_test(every_answer_leads_to_the_same_over_http),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
