/*
 * From a request line to a route and a verb. Neighbours: list_options.c reads the query, route.c knows
 * whether what is asked for is there.
 */
#include "serve/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "serve/query.h"

/* As deep as any path goes: /apis/G/V/namespaces/NS/RESOURCE/NAME/SUBRESOURCE */
#define MAX_SEGMENTS 8

struct segments {
    const char *items[MAX_SEGMENTS];
    size_t n_items;
    bool is_too_deep;
    bool has_gap;       /* more slashes than one between two segments */
    bool has_first_gap; /* at the beginning */
    bool has_end_slash; /* one or more behind the last */
};

/* --- the path --- */

static int refuse_trick(struct kinf__refusal *refusal, const char *what)
{
    return kinf__refuse(refusal, 400, "BadRequest", "the path of this request is not served: %s",
                        what);
}

/* Decodes one segment in place and ends it with a NUL: the byte behind it is a slash or the end. */
static int decode_segment(char *segment, size_t len, struct kinf__refusal *refusal)
{
    size_t decoded = kinf__query_unescape((struct kinf_str){ segment, len }, false, segment);

    if (decoded == SIZE_MAX) {
        kinf__refuse(refusal, 400, "", "400 Bad Request");
        refusal->is_plain = true;
        return KINF_ERR_INVALID;
    }
    if (memchr(segment, '\0', decoded) != NULL)
        return refuse_trick(refusal, "a NUL");
    if (memchr(segment, '/', decoded) != NULL)
        return refuse_trick(refusal, "an escaped slash");
    segment[decoded] = '\0';
    if (strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0)
        return refuse_trick(refusal, "a dot segment");
    return 0;
}

static bool is_word(const struct segments *segments, size_t i, const char *word)
{
    return i < segments->n_items && strcmp(segments->items[i], word) == 0;
}

static void add_segment(struct segments *segments, const char *segment)
{
    if (segments->n_items == MAX_SEGMENTS)
        segments->is_too_deep = true;
    else
        segments->items[segments->n_items++] = segment;
}

/* In front of a segment; only the name of a namespace may be empty. */
static void add_gap(struct segments *segments, size_t n_slashes)
{
    if (n_slashes == 1 && is_word(segments, segments->n_items - 1, "namespaces"))
        add_segment(segments, "");
    else
        segments->has_gap = true;
}

/* `path` begins with a slash and is changed. */
static int split_path(char *path, struct segments *ret_segments, struct kinf__refusal *refusal)
{
    char *at = path + 1;

    ret_segments->has_first_gap = *at == '/';
    for (size_t slashes = strspn(at, "/"); at[slashes] != '\0'; slashes = strspn(at, "/")) {
        size_t len = strcspn(at += slashes, "/");
        bool is_last = at[len] == '\0';
        int failed = decode_segment(at, len, refusal);

        if (failed < 0)
            return failed;
        if (slashes != 0)
            add_gap(ret_segments, slashes);
        add_segment(ret_segments, at);
        at += len + (is_last ? 0 : 1);
        ret_segments->has_end_slash = !is_last;
    }
    return 0;
}

static const char *segment_or_none(const struct segments *segments, size_t i)
{
    return i < segments->n_items ? segments->items[i] : "";
}

/* What stands behind the version; a path that nothing can be at names the resource "". "namespaces/NS/status" is the namespace's own. */
static void read_resource(const struct segments *segments, size_t i, struct kinf__request *request)
{
    bool is_own = is_word(segments, i + 2, "status") || is_word(segments, i + 2, "finalize");

    request->route = KINF__ROUTE_RESOURCE;
    if (is_word(segments, i, "namespaces") && segments->n_items > i + 2 && !is_own) {
        request->name_space = segments->items[i + 1];
        request->is_in_namespace = true;
        i += 2;
    }
    request->resource = segment_or_none(segments, i);
    request->name = segment_or_none(segments, i + 1);
    request->subresource = segment_or_none(segments, i + 2);
    if (segments->n_items > i + 3 || segments->is_too_deep || segments->has_gap)
        request->resource = "";
    if (request->is_watch_path)
        request->watched_name = request->name;
    if (request->is_watch_path && *request->subresource == '\0')
        request->name = "";
}

static void read_api_path(const struct segments *segments, struct kinf__request *request)
{
    bool is_grouped = is_word(segments, 0, "apis");
    size_t n = segments->n_items, i = is_grouped ? 2 : 1;

    if (is_grouped)
        request->group = segment_or_none(segments, 1);
    request->version = segment_or_none(segments, i);
    if (is_word(segments, i + 1, "watch") && n > i + 2) {
        request->is_watch_path = true;
        i++;
    }
    if (segments->has_gap)
        read_resource(segments, i + 1, request);
    else if (n == 1)
        request->route = is_grouped ? KINF__ROUTE_APIS : KINF__ROUTE_API;
    else if (n == i)
        request->route = KINF__ROUTE_GROUP;
    else if (n == i + 1)
        request->route = KINF__ROUTE_GROUP_VERSION;
    else
        read_resource(segments, i + 1, request);
}

static void read_other_path(const struct segments *segments, struct kinf__request *request)
{
    bool is_strict = !segments->has_end_slash;
    size_t n = segments->n_items;

    if (n == 0) {
        request->route = KINF__ROUTE_ROOT;
    } else if (n > 1 && is_word(segments, 0, "version")) {
        request->route = KINF__ROUTE_RESOURCE;
    } else if (n == 1 && is_word(segments, 0, "version")) {
        request->route = KINF__ROUTE_VERSION;
    } else if (n == 1 && is_strict && is_word(segments, 0, "metrics")) {
        request->route = KINF__ROUTE_METRICS;
    } else if (n == 2 && is_strict && is_word(segments, 0, "debug") &&
               is_word(segments, 1, "state")) {
        request->route = KINF__ROUTE_DEBUG_STATE;
    } else if (n <= 2 && is_strict &&
               (is_word(segments, 0, "healthz") || is_word(segments, 0, "livez") ||
                is_word(segments, 0, "readyz"))) {
        request->route = KINF__ROUTE_HEALTH;
        request->check = segments->items[0];
        request->name = segment_or_none(segments, 1);
    }
}

static void read_path(const struct segments *segments, struct kinf__request *request)
{
    request->route = KINF__ROUTE_OTHER;
    request->group = request->version = request->name_space = request->resource = request->name =
        request->subresource = request->watched_name = request->check = "";
    if (segments->has_first_gap)
        return;
    if (is_word(segments, 0, "api") || is_word(segments, 0, "apis"))
        read_api_path(segments, request);
    else if (!segments->has_gap && !segments->is_too_deep)
        read_other_path(segments, request);
}

/* --- the verb --- */

static enum kinf__request_verb verb_of_read(const struct kinf__request *request)
{
    if (*request->resource == '\0' || *request->name != '\0')
        return KINF__VERB_GET;
    return kinf__request_is_true(request, "watch") ? KINF__VERB_WATCH : KINF__VERB_LIST;
}

static enum kinf__request_verb verb_of(const struct kinf__request *request, const char *method)
{
    if (request->is_watch_path && *request->resource != '\0')
        return KINF__VERB_WATCH;
    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
        return verb_of_read(request);
    if (strcmp(method, "POST") == 0)
        return KINF__VERB_CREATE;
    if (strcmp(method, "PUT") == 0)
        return KINF__VERB_UPDATE;
    if (strcmp(method, "PATCH") == 0)
        return KINF__VERB_PATCH;
    if (strcmp(method, "DELETE") == 0)
        return *request->name != '\0' ? KINF__VERB_DELETE : KINF__VERB_DELETE_COLLECTION;
    return KINF__VERB_OTHER;
}

const char *kinf__request_verb_to_string(enum kinf__request_verb verb)
{
    static const char *const words[] = {
#define X(verb, word) word,
        KINF__VERBS(X)
#undef X
    };

    return words[verb];
}

int kinf__request_parse(const char *method, struct kinf_str target,
                        struct kinf__request *ret_request, struct kinf__refusal *refusal)
{
    struct kinf__request request = { .route = KINF__ROUTE_OTHER, .verb = KINF__VERB_OTHER };
    struct segments segments = { .n_items = 0 };
    const char *mark;
    size_t path_len;
    int failed;

    if (target.len == 0 || target.bytes[0] != '/')
        return refuse_trick(refusal, "it does not begin with a slash");
    if (memchr(target.bytes, '\0', target.len) != NULL)
        return refuse_trick(refusal, "a NUL");
    mark = memchr(target.bytes, '?', target.len);
    path_len = mark != NULL ? (size_t)(mark - target.bytes) : target.len;
    request.text = malloc(target.len + 2);
    if (request.text == NULL)
        return kinf__refuse_no_memory(refusal);
    memcpy(request.text, target.bytes, target.len);
    request.text[path_len] = request.text[target.len] = '\0';
    if (mark != NULL)
        request.query = (struct kinf_str){ request.text + path_len + 1, target.len - path_len - 1 };
    failed = split_path(request.text, &segments, refusal);
    if (failed < 0) {
        free(request.text);
        return failed;
    }
    read_path(&segments, &request);
    request.verb = verb_of(&request, method);
    *ret_request = request;
    return 0;
}

void kinf__request_release(struct kinf__request *request)
{
    free(request->text);
    *request = (struct kinf__request){ 0 };
}

bool kinf__request_has_parameter(const struct kinf__request *request, const char *name)
{
    struct kinf_str rest = request->query;
    struct kinf__query_pair pair;

    while (kinf__query_next(&rest, &pair)) {
        if (kinf__query_is_named(pair.name, name))
            return true;
    }
    return false;
}

/* A value that is broken is none. */
static bool is_yes(struct kinf_str value, bool *ret_is_yes)
{
    char text[3 * sizeof "false" + 1] = "";

    *ret_is_yes = true;
    /* Escaped at every letter, it is shorter. */
    if (value.len >= sizeof text)
        return true;
    if (kinf__query_unescape(value, true, text) == SIZE_MAX)
        return false;
    *ret_is_yes = strcmp(text, "0") != 0 && strcasecmp(text, "false") != 0;
    return true;
}

bool kinf__request_is_true(const struct kinf__request *request, const char *name)
{
    struct kinf_str rest = request->query;
    struct kinf__query_pair pair;
    bool is_true;

    while (kinf__query_next(&rest, &pair)) {
        if (kinf__query_is_named(pair.name, name) && is_yes(pair.value, &is_true))
            return is_true;
    }
    return false;
}
