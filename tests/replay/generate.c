/*
 * Generated pods. Neighbours: json/path.h finds the places that vary, connection.c plays what is
 * made. Invariant: pod i of n has resourceVersion FIRST_RV + i in the LIST; event k of a watch has
 * the one behind the last it was asked from, plus k.
 */
#include "replay/generate.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "json/path.h"
#include "replay/recording.h"

#define N_NAMESPACES       10
#define DEFAULT_CHUNK_SIZE 16384
#define PODS_PER_NODE      30
#define PODS_PER_HASH      100
#define MAX_PODS           1000000
#define FIRST_RV           1000000000
#define HELD_LIST_BYTES    ((size_t)1 << 30)

/* A text of fixed width in front of a chunk, written again when its size is known. */
#define CHUNK_SIZE_TEXT     "00000000\r\n"
#define CHUNK_SIZE_TEXT_LEN (sizeof CHUNK_SIZE_TEXT - 1)

#define HEAD                                                                                       \
    "HTTP/1.1 200 OK\r\nCache-Control: no-cache, private\r\nContent-Type: application/json\r\n"    \
    "Transfer-Encoding: chunked\r\n\r\n"

enum field {
    FIELD_NAME,
    FIELD_NAMESPACE,
    FIELD_UID,
    FIELD_RV,
    FIELD_NODE,
    FIELD_ADDRESS,
    FIELD_HASH,
    N_FIELDS,
};

static const char *const field_paths[N_FIELDS] = {
    [FIELD_NAME] = "metadata.name",
    [FIELD_NAMESPACE] = "metadata.namespace",
    [FIELD_UID] = "metadata.uid",
    [FIELD_RV] = "metadata.resourceVersion",
    [FIELD_NODE] = "spec.nodeName",
    [FIELD_ADDRESS] = "status.podIP",
    [FIELD_HASH] = "metadata.labels.pod-template-hash",
};

/* A value of the template, quotes included, that gives way to a field's. */
struct place {
    size_t start, len;
    enum field field;
};

struct replay__generator {
    unsigned n_pods;
    size_t chunk_size, held_list_bytes;
    bool expires;
    int64_t expires_ms;
    struct kinf__buffer item; /* the template as a LIST has it: without kind and apiVersion */
    char base_name[200];
    char phase[32];                /* of every pod; "": none */
    struct place places[N_FIELDS]; /* in the order of the text */
    size_t n_places;
    struct replay__stream stream, list;
};

/* --- the template --- */

static int append_compact(struct kinf__buffer *out, struct kinf_str text)
{
    bool in_string = false;

    if (kinf__buffer_reserve(out, text.len) < 0)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.bytes[i];

        if (in_string && byte == '\\')
            out->bytes[out->len++] = text.bytes[i++];
        else if (byte == '"')
            in_string = !in_string;
        else if (!in_string && strchr(" \t\r\n", byte) != NULL)
            continue;
        out->bytes[out->len++] = text.bytes[i];
    }
    return 0;
}

static bool is_type(struct kinf_str key)
{
    return kinf__json_string_equals(key, KINF_STR("kind")) ||
           kinf__json_string_equals(key, KINF_STR("apiVersion"));
}

static int make_item(struct kinf__buffer *item, struct kinf_str pod)
{
    struct kinf__json_iter iter;
    struct kinf__json_value value;
    struct kinf_str key;
    int failed = 0;

    if (!kinf__json_iter_init(&iter, kinf__json_value_of(pod)))
        return KINF_ERR_PARSE;
    while (failed == 0 && kinf__json_iter_next(&iter, &key, &value)) {
        if (!is_type(key) &&
            (kinf__buffer_append(item, item->len == 0 ? "{" : ",", 1) < 0 ||
             kinf__buffer_append_str(item, key) < 0 || kinf__buffer_append(item, ":", 1) < 0 ||
             append_compact(item, value.raw) < 0))
            failed = KINF_ERR_NO_MEMORY;
    }
    return failed == 0 ? kinf__buffer_append(item, "}", 1) : failed;
}

static int find_place(struct replay__generator *generator, enum field field, struct kinf_error *err)
{
    struct kinf_str text = kinf__buffer_str(&generator->item);
    struct kinf_path *path = NULL;
    struct kinf__json_value value;
    struct place place = { .field = field };
    size_t i = generator->n_places;
    bool found;

    if (kinf_path_parse(field_paths[field], &path, err) < 0)
        return KINF_ERR_NO_MEMORY;
    found = kinf__json_lookup_first(text, path, 0, &value);
    kinf_path_free(path);
    if (!found)
        return field >= FIELD_NODE
                   ? 0
                   : kinf__error_set(err, KINF_ERR_PARSE, "the pod has no %s", field_paths[field]);
    place.start = (size_t)(value.raw.bytes - text.bytes);
    place.len = value.raw.len;
    for (; i > 0 && generator->places[i - 1].start > place.start; i--)
        generator->places[i] = generator->places[i - 1];
    generator->places[i] = place;
    generator->n_places++;
    if (field == FIELD_NAME)
        snprintf(generator->base_name, sizeof generator->base_name, "%.*s", (int)place.len - 2,
                 value.raw.bytes + 1);
    return 0;
}

static void find_phase(struct replay__generator *generator)
{
    struct kinf_path *path = NULL;
    struct kinf__json_value value;

    if (kinf_path_parse("status.phase", &path, NULL) < 0)
        return;
    if (kinf__json_lookup_first(kinf__buffer_str(&generator->item), path, 0, &value) &&
        value.raw.len - 2 < sizeof generator->phase)
        memcpy(generator->phase, value.raw.bytes + 1, value.raw.len - 2);
    kinf_path_free(path);
}

static int load_template(struct replay__generator *generator, const char *path,
                         struct kinf_error *err)
{
    KINF__AUTO_BUFFER pod = KINF__BUFFER_INIT;
    size_t at;
    int failed = replay__read_file(path, &pod, err);

    if (failed < 0)
        return failed;
    failed = kinf__json_scan_all(kinf__buffer_str(&pod), KINF__JSON_MAX_DEPTH, &at);
    if (failed < 0) {
        failed = kinf__json_error(err, failed, kinf__buffer_str(&pod), at);
        kinf__error_prefix(err, "%s", path);
        return failed;
    }
    failed = make_item(&generator->item, kinf__buffer_str(&pod));
    if (failed < 0)
        return kinf__error_set(err, failed, "%s: cannot make pods of it", path);
    for (int field = 0; field < N_FIELDS && failed == 0; field++)
        failed = find_place(generator, (enum field)field, err);
    find_phase(generator);
    return failed;
}

/* --- one pod --- */

static void write_namespace(const struct replay__generator *generator, unsigned i, char *text,
                            size_t size)
{
    unsigned pods_each = (generator->n_pods + N_NAMESPACES - 1) / N_NAMESPACES;

    snprintf(text, size, "load-%04u", i / pods_each);
}

static void write_field(const struct replay__generator *generator, enum field field, unsigned i,
                        uint64_t rv, char *text, size_t size)
{
    switch (field) {
    case FIELD_NAME:
        snprintf(text, size, "%s-%06u", generator->base_name, i);
        break;
    case FIELD_NAMESPACE:
        write_namespace(generator, i, text, size);
        break;
    case FIELD_UID:
        snprintf(text, size, "%08x-1f3d-4c6a-9b2e-%012x", i * 2654435761U, i);
        break;
    case FIELD_RV:
        snprintf(text, size, "%llu", (unsigned long long)rv);
        break;
    case FIELD_NODE:
        snprintf(text, size, "node-%05u",
                 i % ((generator->n_pods + PODS_PER_NODE - 1) / PODS_PER_NODE));
        break;
    case FIELD_ADDRESS:
        snprintf(text, size, "10.%u.%u.%u", i >> 16 & 255, i >> 8 & 255, i & 255);
        break;
    case FIELD_HASH:
        snprintf(text, size, "%010x", i / PODS_PER_HASH);
        break;
    case N_FIELDS:
        break;
    }
}

/* The template from `start` on, with the fields of pod `i`. */
static int append_pod(const struct replay__generator *generator, size_t start, unsigned i,
                      uint64_t rv, struct kinf__buffer *out)
{
    const struct kinf__buffer *item = &generator->item;
    char text[256];

    if (kinf__buffer_reserve(out, item->len + N_FIELDS * sizeof text) < 0)
        return KINF_ERR_NO_MEMORY;
    for (size_t n = 0; n < generator->n_places; n++) {
        const struct place *place = &generator->places[n];

        write_field(generator, place->field, i, rv, text, sizeof text);
        if (kinf__buffer_append(out, item->bytes + start, place->start - start) < 0 ||
            kinf__buffer_append(out, "\"", 1) < 0 ||
            kinf__buffer_append(out, text, strlen(text)) < 0 ||
            kinf__buffer_append(out, "\"", 1) < 0)
            return KINF_ERR_NO_MEMORY;
        start = place->start + place->len;
    }
    return kinf__buffer_append(out, item->bytes + start, item->len - start);
}

static uint64_t list_rv(const struct replay__generator *generator)
{
    return FIRST_RV + (uint64_t)generator->n_pods;
}

/* --- chunks --- */

static int begin_chunk(struct kinf__buffer *wire, size_t *ret_start)
{
    *ret_start = wire->len;
    return kinf__buffer_append(wire, CHUNK_SIZE_TEXT, CHUNK_SIZE_TEXT_LEN);
}

static int end_chunk(struct kinf__buffer *wire, size_t start)
{
    char text[CHUNK_SIZE_TEXT_LEN + 1];

    snprintf(text, sizeof text, "%08x", (unsigned)(wire->len - start - CHUNK_SIZE_TEXT_LEN));
    memcpy(wire->bytes + start, text, 8);
    return kinf__buffer_append(wire, "\r\n", 2);
}

/* Moves `body` into chunks of the size wanted; what is less stays, unless it is the last. */
static int flush_body(const struct replay__generator *generator, struct kinf__buffer *body,
                      bool is_last, struct kinf__buffer *wire)
{
    size_t done = 0, size = generator->chunk_size, start;

    while (body->len - done >= size || (is_last && done < body->len)) {
        size_t len = body->len - done < size ? body->len - done : size;

        if (begin_chunk(wire, &start) < 0 ||
            kinf__buffer_append(wire, body->bytes + done, len) < 0 || end_chunk(wire, start) < 0)
            return KINF_ERR_NO_MEMORY;
        done += len;
    }
    kinf__buffer_consume(body, done);
    return is_last ? kinf__buffer_append_str(wire, KINF_STR("0\r\n\r\n")) : 0;
}

static int append_event(const struct replay__generator *generator, const char *type, unsigned i,
                        uint64_t rv, struct kinf__buffer *wire)
{
    size_t start;

    if (begin_chunk(wire, &start) < 0 ||
        kinf__buffer_printf(wire,
                            "{\"type\":\"%s\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",",
                            type) < 0 ||
        append_pod(generator, 1, i, rv, wire) < 0 || kinf__buffer_append(wire, "}\n", 2) < 0)
        return KINF_ERR_NO_MEMORY;
    return end_chunk(wire, start);
}

/* The version that a watch starts from. */
static uint64_t start_rv(const struct replay__generator *generator,
                         const struct replay_request *request)
{
    uint64_t least = list_rv(generator), rv = 0;
    char text[32];

    if (replay_request_query(request, "resourceVersion", text, sizeof text))
        rv = strtoull(text, NULL, 10);
    return rv > least ? rv : least;
}

static int append_events(const void *ctx, const struct replay_request *request, uint64_t from,
                         uint64_t to, struct kinf__buffer *wire)
{
    const struct replay__generator *generator = ctx;
    uint64_t base = start_rv(generator, request) + 1;
    int failed = 0;

    for (uint64_t k = from; k < to && failed == 0; k++) {
        unsigned i = (unsigned)((base + k - list_rv(generator) - 1) % generator->n_pods);

        failed = append_event(generator, "MODIFIED", i, base + k, wire);
    }
    return failed;
}

/* --- exchanges --- */

static int begin_list(const struct replay__generator *generator, bool is_page,
                      struct kinf__buffer *body)
{
    if (kinf__buffer_printf(body,
                            "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":"
                            "{\"resourceVersion\":\"%llu\"",
                            (unsigned long long)list_rv(generator)) < 0 ||
        (is_page && generator->n_pods > 1 &&
         kinf__buffer_printf(body, ",\"continue\":\"generated\",\"remainingItemCount\":%u",
                             generator->n_pods - 1) < 0))
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append_str(body, KINF_STR("},\"items\":["));
}

static int make_list(const struct replay__generator *generator, struct replay__response *response,
                     bool is_page)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    unsigned n_pods = is_page ? 1 : generator->n_pods;

    if (kinf__buffer_reserve(&response->wire, n_pods * (generator->item.len + 256)) < 0 ||
        kinf__buffer_append_str(&response->wire, KINF_STR(HEAD)) < 0 ||
        begin_list(generator, is_page, &body) < 0)
        return KINF_ERR_NO_MEMORY;
    for (unsigned i = 0; i < n_pods; i++) {
        if ((i != 0 && kinf__buffer_append(&body, ",", 1) < 0) ||
            append_pod(generator, 0, i, FIRST_RV + i, &body) < 0 ||
            flush_body(generator, &body, false, &response->wire) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (kinf__buffer_append(&body, "]}\n", 3) < 0 ||
        flush_body(generator, &body, true, &response->wire) < 0)
        return KINF_ERR_NO_MEMORY;
    return replay__response_send_wire(response, 0);
}

/* Pods `from` to `to` - 1 of a list, as one chunk. */
static int append_items(const void *ctx, const struct replay_request *request, uint64_t from,
                        uint64_t to, struct kinf__buffer *wire)
{
    const struct replay__generator *generator = ctx;
    size_t start;
    int failed = begin_chunk(wire, &start);

    (void)request;
    for (uint64_t i = from; i < to && failed == 0; i++) {
        if (i != 0)
            failed = kinf__buffer_append(wire, ",", 1);
        if (failed == 0)
            failed = append_pod(generator, 0, (unsigned)i, FIRST_RV + i, wire);
    }
    return failed == 0 ? end_chunk(wire, start) : failed;
}

static int make_large_list(const struct replay__generator *generator,
                           struct replay__response *response)
{
    const struct replay__action items = { .type = REPLAY__STREAM, .stream = &generator->list };
    KINF__AUTO_BUFFER start = KINF__BUFFER_INIT;

    if (begin_list(generator, false, &start) < 0 ||
        replay__response_send(response, KINF_STR(HEAD)) < 0 ||
        replay__response_send_chunk(response, kinf__buffer_str(&start)) < 0 ||
        replay__response_add(response, items) < 0 ||
        replay__response_send_chunk(response, KINF_STR("]}\n")) < 0)
        return KINF_ERR_NO_MEMORY;
    return replay__response_send(response, KINF_STR("0\r\n\r\n"));
}

static bool is_large(const struct replay__generator *generator)
{
    return generator->n_pods * generator->item.len > generator->held_list_bytes;
}

static int append_end_mark(const struct replay__generator *generator, struct kinf__buffer *wire)
{
    size_t start;

    if (begin_chunk(wire, &start) < 0 ||
        kinf__buffer_printf(wire,
                            "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":"
                            "\"v1\",\"metadata\":{\"resourceVersion\":\"%llu\",\"annotations\":"
                            "{\"k8s.io/initial-events-end\":\"true\"}},\"spec\":{\"containers\":"
                            "null},\"status\":{}}}\n",
                            (unsigned long long)list_rv(generator)) < 0)
        return KINF_ERR_NO_MEMORY;
    return end_chunk(wire, start);
}

/* Behind the events: 410 and the end of the body. */
static int add_expiry(const struct replay__generator *generator, struct replay__response *response)
{
    const struct replay__action pause = { .type = REPLAY__PAUSE,
                                          .pause_ms = generator->expires_ms };
    static const char expired[] =
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
        "\"status\":\"Failure\",\"message\":\"too old resource version\",\"reason\":\"Expired\","
        "\"code\":410}}\n";

    if (replay__response_add(response, pause) < 0 ||
        replay__response_send_chunk(response, (struct kinf_str){ expired, sizeof expired - 1 }) < 0)
        return KINF_ERR_NO_MEMORY;
    return replay__response_send(response, KINF_STR("0\r\n\r\n"));
}

static bool has_events(const struct replay__generator *generator)
{
    return generator->stream.events_per_s != 0;
}

/* A watch begins with a head, or head and state, and goes on with events or silence. */
static int make_watch(const struct replay__generator *generator, struct replay__response *response,
                      bool has_state)
{
    const struct replay__action events = { .type = REPLAY__STREAM, .stream = &generator->stream };
    const struct replay__action silence = { .type = REPLAY__STALL };
    struct kinf__buffer *wire = &response->wire;

    if (kinf__buffer_append_str(wire, KINF_STR(HEAD)) < 0)
        return KINF_ERR_NO_MEMORY;
    if (has_state) {
        if (kinf__buffer_reserve(wire, generator->n_pods * (generator->item.len + 256)) < 0)
            return KINF_ERR_NO_MEMORY;
        for (unsigned i = 0; i < generator->n_pods; i++) {
            if (append_event(generator, "ADDED", i, FIRST_RV + i, wire) < 0)
                return KINF_ERR_NO_MEMORY;
        }
        if (append_end_mark(generator, wire) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (replay__response_send_wire(response, 0) < 0)
        return KINF_ERR_NO_MEMORY;
    return replay__response_add(response,
                                has_events(generator) && !generator->expires ? events : silence);
}

static int make_expiring_watch(const struct replay__generator *generator,
                               struct replay__response *response)
{
    const struct replay__action events = { .type = REPLAY__STREAM, .stream = &generator->stream };

    if (kinf__buffer_append_str(&response->wire, KINF_STR(HEAD)) < 0 ||
        replay__response_send_wire(response, 0) < 0 ||
        (has_events(generator) && replay__response_add(response, events) < 0))
        return KINF_ERR_NO_MEMORY;
    return add_expiry(generator, response);
}

static int add_exchange(struct replay__script *script, const char *match,
                        struct replay__response **ret_response, struct kinf_error *err)
{
    struct replay__exchange *exchange = replay__script_add(script);

    if (exchange == NULL)
        return kinf__error_no_memory(err);
    *ret_response = &exchange->response;
    return replay__matcher_parse(&exchange->matcher, match, err);
}

static const char no_watchlist[] =
    "exchange always\nmatch GET /api/v1/pods watch sendInitialEvents=true\n"
    "failure 422 Invalid ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: "
    "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled\n";

static int add_exchanges(const struct replay__generator *generator, struct replay__script *script,
                         bool watchlist, struct kinf_error *err)
{
    struct replay__response *response = NULL;
    int failed;

    if (watchlist) {
        failed =
            add_exchange(script, "GET /api/v1/pods watch sendInitialEvents=true", &response, err);
        if (failed == 0 && make_watch(generator, response, true) < 0)
            failed = kinf__error_no_memory(err);
    } else {
        failed = replay__script_parse(script, no_watchlist, "", err);
    }
    if (failed == 0 && generator->expires) {
        failed = add_exchange(script, "GET /api/v1/pods watch", &response, err);
        if (failed == 0 && make_expiring_watch(generator, response) < 0)
            failed = kinf__error_no_memory(err);
        script->exchanges[script->n_exchanges - 1].max_uses = 1;
    }
    if (failed == 0)
        failed = add_exchange(script, "GET /api/v1/pods watch", &response, err);
    if (failed == 0 && make_watch(generator, response, false) < 0)
        failed = kinf__error_no_memory(err);
    if (failed == 0)
        failed = add_exchange(script, "GET /api/v1/pods limit=1 !continue !resourceVersion=0",
                              &response, err);
    if (failed == 0 && make_list(generator, response, true) < 0)
        failed = kinf__error_no_memory(err);
    if (failed == 0)
        failed = add_exchange(script, "GET /api/v1/pods !continue", &response, err);
    if (failed == 0 && (is_large(generator) ? make_large_list(generator, response)
                                            : make_list(generator, response, false)) < 0)
        failed = kinf__error_no_memory(err);
    return failed;
}

int replay__generator_new(const struct replay_generate_options *options,
                          struct replay__script *script, struct replay__generator **ret_generator,
                          struct kinf_error *err)
{
    struct replay__generator *generator;
    int failed;

    if (options->n_pods == 0 || options->n_pods > MAX_PODS || options->chunk_size > UINT32_MAX)
        return kinf__error_set(err, KINF_ERR_INVALID, "pods: 1 to %d", MAX_PODS);
    generator = calloc(1, sizeof *generator);
    if (generator == NULL)
        return kinf__error_no_memory(err);
    generator->n_pods = options->n_pods;
    generator->chunk_size = options->chunk_size != 0 ? options->chunk_size : DEFAULT_CHUNK_SIZE;
    generator->stream = (struct replay__stream){ .append = append_events,
                                                 .ctx = generator,
                                                 .events_per_s = options->events_per_s,
                                                 .n_events = options->n_events,
                                                 .ends = options->expires };
    generator->held_list_bytes =
        options->held_list_bytes != 0 ? options->held_list_bytes : HELD_LIST_BYTES;
    generator->list = (struct replay__stream){ .append = append_items,
                                               .ctx = generator,
                                               .events_per_s = REPLAY_SATURATED,
                                               .n_events = options->n_pods,
                                               .ends = true };
    generator->expires = options->expires;
    generator->expires_ms = options->expires_ms;
    failed = load_template(generator, options->pod_file, err);
    if (failed == 0)
        failed = add_exchanges(generator, script, options->watchlist, err);
    if (failed < 0)
        replay__generator_free(generator);
    else
        *ret_generator = generator;
    return failed;
}

void replay__generator_free(struct replay__generator *generator)
{
    if (generator == NULL)
        return;
    kinf__buffer_release(&generator->item);
    free(generator);
}

uint64_t replay__generator_checksum(const struct replay__generator *generator)
{
    uint64_t hash = 0xcbf29ce484222325U;
    char line[512], name_space[64];

    for (unsigned i = 0; i < generator->n_pods; i++) {
        write_namespace(generator, i, name_space, sizeof name_space);
        snprintf(line, sizeof line, "%s/%s-%06u@%llu\n", name_space, generator->base_name, i,
                 (unsigned long long)(FIRST_RV + (uint64_t)i));
        for (const char *at = line; *at != '\0'; at++)
            hash = (hash ^ (unsigned char)*at) * 0x100000001b3U;
    }
    return hash;
}

/* Pod `i` as it is at `rv`. */
static uint64_t hash_told(const struct replay__generator *generator, unsigned i, uint64_t rv,
                          bool has_phase)
{
    uint64_t hash = 0xcbf29ce484222325U;
    char name[256], uid[64], version[32], line[512];

    write_field(generator, FIELD_NAME, i, rv, name, sizeof name);
    write_field(generator, FIELD_UID, i, rv, uid, sizeof uid);
    write_field(generator, FIELD_RV, i, rv, version, sizeof version);
    snprintf(line, sizeof line, "%s\n%s\n%s\n%s\n", name, uid, version,
             has_phase ? generator->phase : "");
    for (const char *at = line; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3U;
    return hash;
}

uint64_t replay__generator_sum(const struct replay__generator *generator, uint64_t n_events,
                               bool has_phase)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < generator->n_pods; i++)
        sum += hash_told(generator, i, FIRST_RV + i, has_phase);
    for (uint64_t k = 0; k < n_events; k++)
        sum += hash_told(generator, (unsigned)(k % generator->n_pods), list_rv(generator) + 1 + k,
                         has_phase);
    return sum;
}
