/*
 * What the answers to writes leave behind in the session of a cache of pods in namespace d: by a
 * server without connections, whose answers the test makes up.
 */
#include "serve/write.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buffer.h"
#include "serve/changes.h"
#include "serve/server_priv.h"
#include "unit/allocation.h"
#include "unit/indexer_fixture.h"
#include "unit/test.h"

#define JSON     "application/json"
#define PROTOBUF "application/vnd.kubernetes.protobuf"
#define PODS     "/api/v1/namespaces/d/pods"
#define POD      PODS "/a"
#define STATUS   "{'kind':'Status','status':'Success','details':{'name':'a','uid':'u'}}"
#define ITEM(more)                                                                                 \
    "{'metadata':{'name':'a','namespace':'d','uid':'u','resourceVersion':'11'" more "}}"
#define LEAVES ",'deletionTimestamp':'2026-01-01T00:00:00Z'"

struct fixture {
    struct kinf__server *server;
    struct kinf_indexer *store;
    struct kinf__source *source;
    bool reads_ahead;
};

static struct kinf__source *add_unpublished(struct fixture *f, const char *resource,
                                            const char *group, const char *name_space)
{
    struct kinf__source_options options = { .store = { .indexer = f->store },
                                            .name_space = name_space };
    struct kinf__source *source;

    assert_int_equal(
        kinf_type_intern(group, "v1", "Kind", resource, true, &options.store.type, NULL), 0);
    assert_int_equal(kinf__server_add_source(f->server, &options, &source, NULL), 0);
    return source;
}

static struct kinf__source *add_source(struct fixture *f, const char *resource, const char *group,
                                       const char *name_space)
{
    struct kinf__source *source = add_unpublished(f, resource, group, name_space);

    kinf__server_publish_source(f->server, source);
    return source;
}

static void end_source(struct fixture *f, struct kinf__source *source)
{
    kinf__server_retire_source(f->server, source);
    kinf__source_free(source);
}

static int setup(void **state)
{
    static const struct kinf__server_options options = { 0 };
    struct fixture *f = test_calloc(1, sizeof *f);

    assert_int_equal(kinf__server_new(&options, &f->server, NULL), 0);
    assert_int_equal(kinf_indexer_new(NULL, 0, &f->store, NULL), 0);
    f->source = add_source(f, "pods", "", "d");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(atomic_load(&f->server->n_answer_bytes), 0);
    end_source(f, f->source);
    kinf__server_free(f->server);
    kinf_indexer_free(f->store);
    test_free(f);
    return 0;
}

/* --- what the cache has --- */

static void put(struct fixture *f, const char *text)
{
    kinf_auto_object const struct kinf_object *object = NULL;
    char json[512];

    snprintf(json, sizeof json, "%s", text);
    for (char *at = json; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    object = indexer_json_object(json);
    assert_int_equal(kinf_indexer_add(f->store, object, NULL, NULL), 0);
}

static bool shows(struct fixture *f)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(f->store);

    return kinf__session_look(&f->source->session, snapshot, 10000) == KINF__SESSION_REACHED;
}

static bool shows_with(struct fixture *f, const char *object)
{
    put(f, object);
    return shows(f);
}

/* Between two looks of the server's thread. */
static void forget_all(struct fixture *f)
{
    kinf__mutex_lock(&f->server->lock);
    kinf__session_release(&f->source->session);
    kinf__session_init(&f->source->session);
    kinf__mutex_unlock(&f->server->lock);
}

/* What is awaited, found out by showing one thing after the other; nothing is awaited any more. */
static const char *awaited(struct fixture *f)
{
    struct kinf__session_status status;
    static char version[32];

    kinf__session_status(&f->source->session, &status);
    if (!kinf__session_is_behind(&f->source->session))
        return "nothing";
    if (status.is_unknown) {
        forget_all(f);
        return "unknown";
    }
    if (status.n_signs == 0) {
        snprintf(version, sizeof version, "%u", (unsigned)status.version);
        assert_true(shows(f));
        return version;
    }
    assert_int_equal(status.n_signs, 1);
    if (shows_with(f, ITEM("")))
        return "nothing of that object";
    if (shows_with(f, "{'metadata':{'name':'a','namespace':'d','uid':'u','resourceVersion':'12'}}"))
        return "gone or newer";
    if (shows_with(f, "{'metadata':{'name':'a','namespace':'d','uid':'u','resourceVersion':'12'},"
                      "'spec':{'nodeName':'n'}}"))
        return "bound";
    if (shows_with(f, "{'metadata':{'name':'a','namespace':'d','uid':'u','resourceVersion':'12',"
                      "'finalizers':['x']" LEAVES "}}"))
        return "leaving";
    assert_int_equal(kinf_indexer_delete(f->store, "d/a", NULL, NULL, NULL), 0);
    return shows(f) ? "gone" : "something else";
}

/* --- a write --- */

struct written {
    struct kinf__request request;
    struct kinf__write *write;
};

static void begin(struct fixture *f, struct written *written, const char *method,
                  const char *target)
{
    struct kinf__refusal refusal;

    assert_int_equal(
        kinf__request_parse(method, kinf_str_from(target), &written->request, &refusal), 0);
    assert_int_equal(kinf__write_new(f->server, &written->request, f->reads_ahead, &written->write),
                     0);
}

static bool answer(struct written *written, int code, const char *type, const char *encoding)
{
    const struct kinf__head head = {
        .code = code,
        .headers = { { "Content-Type", type }, { "Content-Encoding", encoding } },
        .n_headers = *encoding != '\0' ? 2 : 1,
    };

    return kinf__write_begin_answer(written->write, &head);
}

static void end(struct written *written)
{
    kinf__write_free(written->write);
    kinf__request_release(&written->request);
}

static void write_answered(struct fixture *f, const char *method, const char *target, int code,
                           const char *type, struct kinf_str bytes)
{
    struct written written;

    begin(f, &written, method, target);
    if (written.write != NULL) {
        answer(&written, code, type, "");
        for (size_t i = 0; i < bytes.len; i++)
            kinf__write_take_answer(written.write, bytes.bytes + i, 1);
        kinf__write_end_answer(written.write, true);
    }
    end(&written);
}

static void write_bytes(struct fixture *f, const char *method, const char *target, const char *type,
                        struct kinf_str bytes)
{
    write_answered(f, method, target, 200, type, bytes);
}

static char *quoted(const char *text)
{
    char *copy = test_calloc(1, strlen(text) + 1);

    memcpy(copy, text, strlen(text));
    for (char *at = copy; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    return copy;
}

static void expect(struct fixture *f, const char *method, const char *target, const char *text,
                   const char *expected)
{
    char *json = quoted(text);
    const char *found;

    write_bytes(f, method, target, JSON, kinf_str_from(json));
    found = awaited(f);
    if (strcmp(found, expected) != 0)
        fail_msg("%s %s: %s: %s is awaited, not %s", method, target, text, found, expected);
    test_free(json);
}

/* By a reader who asked the server, since the cache was behind. */
static void what_was_read_ahead_is_awaited(void **state)
{
    struct fixture *f = *state;
    struct written written;

    f->reads_ahead = true;
    expect(f, "GET", POD, ITEM(""), "11");
    expect(f, "GET", PODS,
           "{'kind':'PodList','metadata':{'resourceVersion':'20'},'items':[{'metadata':{"
           "'resourceVersion':'14'}},{'metadata':{'resourceVersion':'12'}}]}",
           "14");
    expect(f, "GET", POD, "{'kind':'Pod','metadata':{}}", "nothing");
    begin(f, &written, "GET", POD);
    assert_true(answer(&written, 200, JSON, ""));
    kinf__write_take_answer(written.write, "{\"kind\":", 8);
    kinf__write_end_answer(written.write, false);
    end(&written);
    assert_string_equal(awaited(f), "nothing");
}

/* A cache that is being filled: what it lists is of before the read, what others are shown meanwhile of
 * behind it. */
static void what_was_read_before_there_was_a_cache_is_awaited(void **state)
{
    static const struct {
        const char *target;
        uint64_t awaited;
    } cases[] = {
        { "/api/v1/namespaces/d/secrets/a", 11 },
        { "/api/v1/namespaces/d/secrets", 11 },
        { "/api/v1/secrets/a/proxy", 0 }, /* which is of whoever runs there */
        { "/api/v1/namespaces/d/secrets/a/proxy/x", 0 },
        { "/api/v1/namespaces/d/configmaps/a", 0 },
    };
    struct fixture *f = *state;
    struct kinf__source *secrets = add_unpublished(f, "secrets", "", "");

    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        struct kinf__session_status status;
        char *json = quoted(ITEM(""));

        write_bytes(f, "GET", cases[i].target, JSON, kinf_str_from(json));
        kinf__session_status(&secrets->session, &status);
        assert_int_equal(status.version, cases[i].awaited);
        assert_int_equal(status.n_signs, 0);
        assert_false(status.is_unknown);
        kinf__session_release(&secrets->session);
        kinf__session_init(&secrets->session);
        test_free(json);
    }
    assert_string_equal(awaited(f), "nothing");
    kinf__server_publish_source(f->server, secrets);
    write_bytes(f, "GET", "/api/v1/namespaces/d/secrets/a", JSON, KINF_STR("{}"));
    end_source(f, secrets);
}

static void each_answer_has_its_sign(void **state)
{
    static const struct {
        const char *method, *target, *answer, *awaited;
    } cases[] = {
        { "POST", PODS, ITEM(""), "11" },
        { "PUT", POD, ITEM(""), "11" },
        { "PATCH", POD "/status", ITEM(""), "11" },
        { "PUT", POD "/scale", "{'kind':'Scale','metadata':{'resourceVersion':'11'}}", "11" },
        { "POST", "/api/v1/namespaces/d/bindings", STATUS, "unknown" },
        { "GET", POD, ITEM(""), "nothing" },
        /* Others' objects. */
        { "POST", "/api/v1/namespaces/e/pods", ITEM(""), "nothing" },
        { "POST", "/api/v1/namespaces/d/services", ITEM(""), "nothing" },
        { "POST", "/apis/x.y/v1/namespaces/d/pods", ITEM(""), "nothing" },
        { "POST", "/api/v2/namespaces/d/pods", ITEM(""), "11" },
        /* What is not written. */
        { "POST", PODS "?dryRun=All", ITEM(""), "nothing" },
        { "POST", POD "/exec", ITEM(""), "nothing" },
        { "POST", POD "/token", "{'metadata':{'name':'a'}}", "nothing" },
        /* The last finalizer is gone, or one is left. */
        { "PATCH", POD, ITEM(LEAVES), "gone or newer" },
        { "PATCH", POD, ITEM(LEAVES ",'finalizers':[]"), "gone or newer" },
        { "PATCH", POD, ITEM(LEAVES ",'deletionGracePeriodSeconds':0"), "gone or newer" },
        { "PATCH", POD, ITEM(LEAVES ",'finalizers':['x']"), "11" },
        { "PATCH", POD, ITEM(LEAVES ",'deletionGracePeriodSeconds':30"), "11" },
        { "PUT", POD, "{'metadata':{'uid':'u'" LEAVES "}}", "gone" },
        /* A namespace is held by its spec, others are not. */
        { "PATCH", POD,
          "{'kind':'Namespace','apiVersion':'v1','spec':{'finalizers':['k']},'metadata':{"
          "'resourceVersion':'11'" LEAVES "}}",
          "11" },
        { "PATCH", POD, "{'spec':{'finalizers':['k']},'metadata':{'uid':'u'" LEAVES "}}", "gone" },
        { "DELETE", POD, STATUS, "gone" },
        { "DELETE", POD, ITEM(""), "gone or newer" },
        { "DELETE", POD, ITEM(LEAVES ",'deletionGracePeriodSeconds':30"), "11" },
        { "DELETE", POD, ITEM(LEAVES ",'finalizers':['x']"), "11" },
        { "DELETE", POD, "{'kind':'Status','status':'Success'}", "unknown" },
        { "DELETE", POD, "{'kind':'Status','status':'Failure','details':{'uid':'u'}}", "unknown" },
        { "POST", POD "/eviction", STATUS, "leaving" },
        { "POST", POD "/eviction", "{'kind':'Status','status':'Success','details':[]}", "unknown" },
        { "POST", POD "/binding", STATUS, "bound" },
        { "POST", POD "/other", STATUS, "unknown" },
        /* Collections: as it was before. */
        { "DELETE", PODS, "{'kind':'PodList','metadata':{'resourceVersion':'50'},'items':[]}",
          "nothing" },
        { "DELETE", PODS, "{'kind':'PodList','items':null}", "nothing" },
        { "DELETE", PODS, "{'kind':'PodList','items':[" ITEM("") "]}", "leaving" },
        { "DELETE", PODS, "{'kind':'PodList','items':[" ITEM(LEAVES) "]}", "gone or newer" },
        { "DELETE", PODS, "{'kind':'PodList','items':[" ITEM(LEAVES ",'finalizers':['x']") "]}",
          "11" },
        { "DELETE", PODS, STATUS, "unknown" },
        { "DELETE", PODS, "{'kind':'Table','rows':[{'cells':['a'],'object':" ITEM("") "}]}",
          "leaving" },
        { "DELETE", PODS, "{'kind':'Table','rows':[{'cells':['a']}]}", "unknown" },
        { "DELETE", PODS, "{'kind':'PodList','items':{}}", "unknown" },
        /* Tables of one. */
        { "PATCH", POD, "{'kind':'Table','rows':[{'object':" ITEM("") "}]}", "11" },
        { "PATCH", POD, "{'kind':'Table','rows':[{'object':null}]}", "unknown" },
        { "PATCH", POD, "{'kind':'Table'}", "unknown" },
        /* A list is what is called so. */
        { "PATCH", POD, "{'kind':'Basket','items':[1],'metadata':{'resourceVersion':'11'}}", "11" },
        /* What is no answer. */
        { "PATCH", POD, "", "unknown" },
        { "PATCH", POD, "kind: Pod", "unknown" },
        { "PATCH", POD, "[]", "unknown" },
        { "PATCH", POD, "{'metadata':{'resourceVersion':11}}", "unknown" },
        { "PATCH", POD, "{'metadata':{'name':'a'}}", "unknown" },
        { "DELETE", POD, "{'metadata':['uid']}", "unknown" },
        { "PATCH", POD, "{'metadata':{'resourceVersion':'11'}} x", "unknown" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++)
        expect(f, cases[i].method, cases[i].target, cases[i].answer, cases[i].awaited);
}

static void an_answer_that_is_cut_anywhere_is_unknown(void **state)
{
    struct fixture *f = *state;
    char *whole = quoted(STATUS);

    for (size_t len = 0; len < strlen(whole); len++) {
        write_bytes(f, "DELETE", POD, JSON, (struct kinf_str){ whole, len });
        assert_string_equal(awaited(f), "unknown");
    }
    test_free(whole);
}

static void other_forms_are_unknown(void **state)
{
    struct fixture *f = *state;
    char *json = quoted(ITEM(""));
    struct written written;

    /* At once, and nothing of it is held back. */
    begin(f, &written, "PUT", POD);
    assert_false(answer(&written, 200, "application/cbor", ""));
    assert_string_equal(awaited(f), "unknown");
    end(&written);
    assert_string_equal(awaited(f), "nothing");
    write_bytes(f, "PUT", POD, "application/json;as=Table;v=v1;g=meta.k8s.io", kinf_str_from(json));
    assert_string_equal(awaited(f), "11");
    test_free(json);
}

/* As the API server writes them. */
static void answers_in_yaml_have_their_signs(void **state)
{
    static const char object[] = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  namespace: d\n"
                                 "  resourceVersion: \"11\"\n  uid: u\n";
    static const char status[] = "apiVersion: v1\ndetails:\n  kind: pods\n  name: a\n  uid: u\n"
                                 "kind: Status\nmetadata: {}\nstatus: Success\n";
    static const struct {
        const char *method, *target, *answer, *awaited;
    } cases[] = {
        { "PUT", POD, object, "11" },
        { "POST", PODS, object, "11" },
        { "DELETE", POD, object, "gone or newer" },
        { "DELETE", POD, status, "gone" },
        { "POST", POD "/eviction", status, "leaving" },
        { "DELETE", PODS,
          "apiVersion: v1\nitems:\n- metadata:\n    name: a\n    namespace: d\n"
          "    resourceVersion: \"11\"\n    uid: u\nkind: PodList\nmetadata: {}\n",
          "leaving" },
        { "DELETE", POD,
          "metadata:\n  deletionGracePeriodSeconds: 30\n  deletionTimestamp: "
          "\"2026-01-01T00:00:00Z\"\n"
          "  name: a\n  resourceVersion: \"11\"\n  uid: u\n",
          "11" },
        { "DELETE", POD,
          "metadata:\n  deletionGracePeriodSeconds: 0\n  deletionTimestamp: "
          "\"2026-01-01T00:00:00Z\"\n"
          "  name: a\n  resourceVersion: \"11\"\n  uid: u\n",
          "gone or newer" },
        { "PUT", POD, "metadata:\n  name: 012\n  uid: ~\n  resourceVersion: \"11\"\n", "unknown" },
        { "PUT", POD, "metadata:\n  ? [a]\n  : b\n", "unknown" },
        { "PUT", POD, "metadata: [", "unknown" },
        { "PUT", POD, "", "unknown" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        const char *found;

        write_bytes(f, cases[i].method, cases[i].target, "application/yaml",
                    kinf_str_from(cases[i].answer));
        found = awaited(f);
        if (strcmp(found, cases[i].awaited) != 0)
            fail_msg("%s %s: %s: %s is awaited, not %s", cases[i].method, cases[i].target,
                     cases[i].answer, found, cases[i].awaited);
    }
}

/* An update may be answered with the version from before what is not known. */
static void only_what_is_created_shows_what_was_written_before(void **state)
{
    struct fixture *f = *state;
    char *json = quoted(ITEM(""));

    write_bytes(f, "PUT", POD, "application/cbor", kinf_str_from(json));
    usleep(5000);
    write_bytes(f, "PATCH", POD, JSON, kinf_str_from(json));
    assert_false(shows(f));
    write_answered(f, "POST", PODS, 201, JSON, kinf_str_from(json));
    assert_true(shows(f));
    test_free(json);
}

static void refusals_changed_nothing(void **state)
{
    static const int codes[] = { 404, 409, 422, 500, 504 };
    struct fixture *f = *state;
    struct written written;

    for (size_t i = 0; i < KINF__ARRAY_LEN(codes); i++) {
        begin(f, &written, "PUT", POD);
        assert_false(answer(&written, codes[i], JSON, ""));
        kinf__write_take_answer(written.write, "{}", 2);
        kinf__write_end_answer(written.write, true);
        end(&written);
        assert_string_equal(awaited(f), "nothing");
    }
}

static void what_has_no_answer_promises_nothing(void **state)
{
    struct fixture *f = *state;
    struct written written;

    begin(f, &written, "PUT", POD);
    end(&written);
    assert_string_equal(awaited(f), "nothing");
    /* One that began said that it was done. */
    begin(f, &written, "PUT", POD);
    answer(&written, 200, JSON, "");
    end(&written);
    assert_string_equal(awaited(f), "unknown");
}

static void deletes_are_dry_by_their_body(void **state)
{
    static const struct {
        const char *method, *target, *body, *awaited;
    } cases[] = {
        { "DELETE", POD, "", "gone" },
        { "DELETE", POD, "{'dryRun':['All']}", "nothing" },
        { "DELETE", POD, "{'dryRun':[]}", "gone" },
        { "DELETE", POD, "{'dryRun':", "gone" },
        { "DELETE", POD, "kind: DeleteOptions\ndryRun:\n- All\n", "nothing" },
        { "DELETE", POD, "kind: DeleteOptions\ndryRun: []\n", "gone" },
        { "DELETE", POD "?dryRun=All", "", "nothing" },
        { "DELETE", POD "?dryRun=All", "{'kind':'DeleteOptions'}", "gone" },
        { "POST", POD "/eviction", "{'deleteOptions':{'dryRun':['All']}}", "nothing" },
        { "POST", POD "/eviction", "{'deleteOptions':{}}", "leaving" },
        { "POST", POD "/eviction?dryRun=All", "{}", "nothing" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        char *body = quoted(cases[i].body), *json = quoted(STATUS);
        struct written written;

        begin(f, &written, cases[i].method, cases[i].target);
        kinf__write_take_body(written.write, body, strlen(body) / 2);
        kinf__write_take_body(written.write, body + strlen(body) / 2,
                              strlen(body) - strlen(body) / 2);
        answer(&written, 200, JSON, "");
        kinf__write_take_answer(written.write, json, strlen(json));
        kinf__write_end_answer(written.write, true);
        end(&written);
        assert_string_equal(awaited(f), cases[i].awaited);
        test_free(json);
        test_free(body);
    }
}

static void delete_with(struct fixture *f, const char *target, const char *begin_of_body, size_t n,
                        const char *end_of_body, const char *expected)
{
    char *filler = test_calloc(1, n + 1), *first = quoted(begin_of_body), *json = quoted(STATUS);
    struct written written;

    memset(filler, ' ', n);
    begin(f, &written, "DELETE", target);
    kinf__write_take_body(written.write, first, strlen(first));
    kinf__write_take_body(written.write, filler, n);
    kinf__write_take_body(written.write, end_of_body, strlen(end_of_body));
    answer(&written, 200, JSON, "");
    kinf__write_take_answer(written.write, json, strlen(json));
    kinf__write_end_answer(written.write, true);
    end(&written);
    assert_string_equal(awaited(f), expected);
    test_free(json);
    test_free(first);
    test_free(filler);
}

/* Whatever is left of it says, and the query. */
static void a_body_that_is_not_kept_is_not_dry(void **state)
{
    struct fixture *f = *state;

    delete_with(f, POD, "{'dryRun':['All']", 100, "}", "nothing");
    delete_with(f, POD, "{'dryRun':['All']", 70000, "}", "gone");
    delete_with(f, POD "?dryRun=All", "", 70000, "", "gone");
}

static void events_are_one_storage(void **state)
{
    struct fixture *f = *state;
    struct kinf__source *pods = f->source;

    f->source = add_source(f, "events", "", NULL);
    expect(f, "POST", "/apis/events.k8s.io/v1/namespaces/d/events", ITEM(""), "11");
    expect(f, "POST", "/apis/x/v1/namespaces/d/events", ITEM(""), "nothing");
    end_source(f, f->source);
    f->source = pods;
}

/* --- sizes --- */

static void take_filled(struct written *written, size_t len)
{
    static char spaces[1 << 16];

    memset(spaces, ' ', sizeof spaces);
    for (size_t n; len != 0; len -= n) {
        n = len < sizeof spaces ? len : sizeof spaces;
        kinf__write_take_answer(written->write, spaces, n);
    }
}

static void more_than_fits_is_unknown(void **state)
{
    struct fixture *f = *state;
    struct written written;
    char *json = quoted(ITEM(""));

    for (size_t more = 0; more < 2; more++) {
        begin(f, &written, "PUT", POD);
        answer(&written, 200, JSON, "");
        take_filled(&written, KINF__WRITE_ANSWER_MAX - strlen(json) + more);
        kinf__write_take_answer(written.write, json, strlen(json));
        kinf__write_end_answer(written.write, true);
        end(&written);
        assert_string_equal(awaited(f), more ? "unknown" : "11");
    }
    test_free(json);
}

static void all_answers_share_a_bound(void **state)
{
    struct written many[KINF__WRITE_ANSWERS_MAX / KINF__WRITE_ANSWER_MAX + 1];
    struct fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(many); i++) {
        begin(f, &many[i], "PUT", POD);
        answer(&many[i], 200, JSON, "");
        take_filled(&many[i], KINF__WRITE_ANSWER_MAX);
        assert_true(atomic_load(&f->server->n_answer_bytes) <= KINF__WRITE_ANSWERS_MAX);
    }
    for (size_t i = 0; i < KINF__ARRAY_LEN(many); i++)
        end(&many[i]);
    assert_string_equal(awaited(f), "unknown");
}

static void compressed_answers_are_read(void **state)
{
    struct fixture *f = *state;
    char *json = quoted(ITEM(""));
    unsigned char bytes[512];
    z_stream stream = { .next_in = (unsigned char *)json,
                        .avail_in = (unsigned)strlen(json),
                        .next_out = bytes,
                        .avail_out = sizeof bytes };
    struct written written;

    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    for (size_t cut = 0; cut < 2; cut++) {
        begin(f, &written, "PUT", POD);
        answer(&written, 200, JSON, "gzip");
        kinf__write_take_answer(written.write, (char *)bytes, stream.total_out - cut);
        kinf__write_end_answer(written.write, true);
        end(&written);
        assert_string_equal(awaited(f), cut ? "unknown" : "11");
    }
    begin(f, &written, "PUT", POD);
    answer(&written, 200, JSON, "br");
    kinf__write_end_answer(written.write, true);
    end(&written);
    assert_string_equal(awaited(f), "unknown");
    deflateEnd(&stream);
    test_free(json);
}

static void without_memory_it_is_unknown(void **state)
{
    struct fixture *f = *state;
    char *json = quoted(STATUS);
    bool has_failed = true;

    for (size_t n = 1; has_failed; n++) {
        struct written written;

        begin(f, &written, "DELETE", POD);
        answer(&written, 200, JSON, "");
        test_fail_allocation(n);
        kinf__write_take_answer(written.write, json, strlen(json));
        kinf__write_end_answer(written.write, true);
        has_failed = test_allocation_failed();
        end(&written);
        assert_string_equal(awaited(f), has_failed ? "unknown" : "gone");
    }
    test_free(json);
}

/* --- protobuf --- */

static void put_bytes(struct kinf__buffer *out, unsigned number, struct kinf_str bytes)
{
    const char head[] = { (char)(number << 3 | 2), (char)(bytes.len % 128 | 128),
                          (char)(bytes.len / 128) };

    assert_true(bytes.len < 128 * 128);
    assert_int_equal(kinf__buffer_append(out, head, sizeof head), 0);
    assert_int_equal(kinf__buffer_append_str(out, bytes), 0);
}

static void put_text(struct kinf__buffer *out, unsigned number, const char *text)
{
    put_bytes(out, number, kinf_str_from(text));
}

/* What was written since `begin` becomes a field. */
static void wrap(struct kinf__buffer *out, size_t from, unsigned number)
{
    KINF__AUTO_BUFFER inner = KINF__BUFFER_INIT;

    assert_int_equal(kinf__buffer_append(&inner, out->bytes + from, out->len - from), 0);
    out->len = from;
    put_bytes(out, number, kinf__buffer_str(&inner));
}

/* Closes what was written as the raw bytes of a kind. */
static void envelop(struct kinf__buffer *out, const char *kind)
{
    KINF__AUTO_BUFFER whole = KINF__BUFFER_INIT;
    size_t from;

    assert_int_equal(kinf__buffer_append_str(&whole, KINF__PROTOBUF_MAGIC), 0);
    from = whole.len;
    put_text(&whole, 2, kind);
    wrap(&whole, from, 1);
    put_bytes(&whole, 2, kinf__buffer_str(out));
    out->len = 0;
    assert_int_equal(kinf__buffer_append_str(out, kinf__buffer_str(&whole)), 0);
}

static void put_metadata(struct kinf__buffer *out, const char *finalizer)
{
    static const char grace[] = { 10 << 3, 0 };
    size_t from = out->len;

    put_text(out, 1, "a");
    put_text(out, 3, "d");
    put_text(out, 5, "u");
    put_text(out, 6, "11");
    put_bytes(out, 9, KINF_STR("\x08\x01"));
    assert_int_equal(kinf__buffer_append(out, grace, sizeof grace), 0);
    if (finalizer != NULL)
        put_text(out, 14, finalizer);
    wrap(out, from, 1);
}

static void expect_protobuf(struct fixture *f, const char *method, const char *target,
                            struct kinf__buffer *out, const char *expected)
{
    write_bytes(f, method, target, PROTOBUF, kinf__buffer_str(out));
    assert_string_equal(awaited(f), expected);
    for (size_t len = 0; len < out->len; len++) {
        write_bytes(f, method, target, PROTOBUF, (struct kinf_str){ out->bytes, len });
        assert_string_equal(awaited(f), "unknown");
    }
    out->len = 0;
}

static void protobuf_says_the_same(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct fixture *f = *state;

    put_metadata(&out, "x");
    envelop(&out, "Pod");
    expect_protobuf(f, "PATCH", POD, &out, "11");
    put_metadata(&out, NULL);
    envelop(&out, "Pod");
    expect_protobuf(f, "PATCH", POD, &out, "gone or newer");
    put_metadata(&out, NULL);
    put_text(&out, 2, "\x0a\x01k");
    envelop(&out, "Namespace");
    expect_protobuf(f, "PATCH", POD, &out, "11");
    put_metadata(&out, NULL);
    wrap(&out, 0, 2);
    envelop(&out, "PodList");
    expect_protobuf(f, "DELETE", PODS, &out, "gone or newer");
    put_text(&out, 2, "Success");
    put_text(&out, 5,
             "\x0a\x01"
             "a\x32\x01u");
    envelop(&out, "Status");
    expect_protobuf(f, "DELETE", POD, &out, "gone");
}

/* `n` bytes in the field of that number, of metadata if it is an object's, else of the details. */
static void put_long(struct kinf__buffer *out, bool is_object, unsigned number, size_t n)
{
    char *text = test_calloc(1, n + 1);
    size_t from;

    memset(text, '1', n);
    if (!is_object)
        put_text(out, 2, "Success");
    from = out->len;
    put_text(out, is_object ? 5 : 6, "u");
    put_text(out, number, text);
    wrap(out, from, is_object ? 1 : 5);
    test_free(text);
}

/* Nothing is taken for half of what it says. */
static void protobuf_that_cannot_be_is_unknown(void **state)
{
    static const struct {
        const char *kind;
        unsigned number;
        size_t room; /* with a NUL */
    } rows[] = {
        { "Pod", 1, KINF_NAME_MAX },
        { "Pod", 3, KINF_NAME_MAX },
        { "Pod", 5, 128 },
        { "Pod", 6, 32 },
        { "Status", 1, KINF_NAME_MAX },
        { "Status", 6, 128 },
    };
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        bool is_object = strcmp(rows[i].kind, "Pod") == 0;
        const char *method = is_object ? "DELETE" : "POST";
        const char *target = is_object ? POD : POD "/eviction";

        put_long(&out, is_object, rows[i].number, rows[i].room - 1);
        envelop(&out, rows[i].kind);
        write_bytes(f, method, target, PROTOBUF, kinf__buffer_str(&out));
        assert_string_not_equal(awaited(f), "unknown");
        forget_all(f);
        out.len = 0;
        put_long(&out, is_object, rows[i].number, rows[i].room);
        envelop(&out, rows[i].kind);
        expect_protobuf(f, method, target, &out, "unknown");
    }
    /* The envelope is whole, the metadata is cut. */
    put_text(&out, 1, "\x2a\x02u");
    envelop(&out, "Pod");
    expect_protobuf(f, "DELETE", POD, &out, "unknown");
    put_text(&out, 2, "Failure");
    put_text(&out, 5, "\x32\x01u");
    envelop(&out, "Status");
    expect_protobuf(f, "DELETE", POD, &out, "unknown");
    assert_false(kinf__changes_are_dry(KINF_STR("k8s\0dryRun")));
}

static void add_text(const struct kinf__change *change, void *ctx)
{
    assert_int_equal(kinf__buffer_printf(ctx, "%s/%s %s %u %d %d %d\n", change->name_space,
                                         change->name, change->uid, (unsigned)change->version,
                                         change->is_terminating, change->has_finalizers,
                                         change->has_grace),
                     0);
}

/* By objects as Go encodes them, and the same in Go's JSON. */
static void compare(const char *kind)
{
    static const enum kinf__change_form forms[] = { KINF__CHANGES_JSON, KINF__CHANGES_PROTOBUF };
    static const char *const ends[] = { "json", "pb" };
    struct kinf__buffer texts[2] = { KINF__BUFFER_INIT, KINF__BUFFER_INIT };
    int failed[2];
    bool are_dry[2];

    for (size_t i = 0; i < 2; i++) {
        char name[512], *bytes;
        size_t len;

        snprintf(name, sizeof name, "protobuf/go/%s.%s", kind, ends[i]);
        bytes = test_read_data(name, &len);
        failed[i] =
            kinf__changes_read(forms[i], (struct kinf_str){ bytes, len }, add_text, &texts[i]);
        are_dry[i] = kinf__changes_are_dry((struct kinf_str){ bytes, len });
        free(bytes);
    }
    assert_int_equal(failed[0], failed[1]);
    assert_int_equal(are_dry[0], are_dry[1]);
    if (failed[0] == 0)
        assert_string_equal(kinf__buffer_cstr(&texts[0]), kinf__buffer_cstr(&texts[1]));
    kinf__buffer_release(&texts[0]);
    kinf__buffer_release(&texts[1]);
}

static void every_kind_reads_as_its_json(void **state)
{
    char path[1024];
    DIR *folder;
    size_t n = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/protobuf/go", test_data_dir());
    folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char *dot = strrchr(entry->d_name, '.');

        if (dot == NULL || strcmp(dot, ".pb") != 0)
            continue;
        *dot = '\0';
        compare(entry->d_name);
        n++;
    }
    closedir(folder);
    assert_true(n >= 33);
}

#define WRITE_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WRITE_TEST(each_answer_has_its_sign),
        WRITE_TEST(what_was_read_ahead_is_awaited),
        WRITE_TEST(what_was_read_before_there_was_a_cache_is_awaited),
        WRITE_TEST(an_answer_that_is_cut_anywhere_is_unknown),
        WRITE_TEST(other_forms_are_unknown),
        WRITE_TEST(answers_in_yaml_have_their_signs),
        WRITE_TEST(only_what_is_created_shows_what_was_written_before),
        WRITE_TEST(refusals_changed_nothing),
        WRITE_TEST(what_has_no_answer_promises_nothing),
        WRITE_TEST(deletes_are_dry_by_their_body),
        WRITE_TEST(a_body_that_is_not_kept_is_not_dry),
        WRITE_TEST(events_are_one_storage),
        WRITE_TEST(more_than_fits_is_unknown),
        WRITE_TEST(all_answers_share_a_bound),
        WRITE_TEST(compressed_answers_are_read),
        WRITE_TEST(without_memory_it_is_unknown),
        WRITE_TEST(protobuf_says_the_same),
        WRITE_TEST(protobuf_that_cannot_be_is_unknown),
        cmocka_unit_test(every_kind_reads_as_its_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
