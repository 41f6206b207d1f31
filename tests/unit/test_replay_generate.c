/*
 * Generated pods, as a client of bare sockets gets them.
 */
#include "replay/generate.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "json/path.h"
#include "replay/client.h"
#include "unit/test.h"

/* Nothing takes nearly as long. */
#define PATIENCE_MS 60000

enum { n_generated = 25, n_generated_events = 40 };

static const char template[] =
    "{\n \"apiVersion\": \"v1\", \"kind\": \"Pod\",\n"
    " \"metadata\": {\"namespace\": \"n\", \"name\": \"web\", \"resourceVersion\": \"7\",\n"
    "  \"uid\": \"u\", \"labels\": {\"pod-template-hash\": \"h\"}, \"annotations\": {\"a b\": \"{ "
    "\\\"x\\\": 1 }\"}},\n"
    " \"spec\": {\"nodeName\": \"m\"}, \"status\": {\"phase\": \"Running\"}\n}\n";

static struct replay *start_options(struct replay_generate_options generate)
{
    char path[] = "/tmp/kinformer-test-XXXXXX";
    struct replay_options options = { .plain = true };
    struct kinf_error err = KINF_ERROR_INIT;
    struct replay *replay = NULL;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, template, sizeof template - 1), sizeof template - 1);
    close(fd);
    generate.pod_file = path;
    generate.n_pods = n_generated;
    generate.chunk_size = 100;
    generate.events_per_s = REPLAY_SATURATED;
    generate.n_events = n_generated_events;
    options.generate = generate;
    if (replay_start(&options, &replay, &err) < 0)
        fail_msg("%s", err.message);
    unlink(path);
    return replay;
}

static struct replay *start_generating(bool watchlist)
{
    return start_options((struct replay_generate_options){ .watchlist = watchlist });
}

/* Takes the next chunk off the wire; its bytes go behind `body`. Returns false at the last one. */
static bool read_chunk(struct replay_client *client, struct kinf__buffer *body)
{
    char line[32];
    struct kinf__buffer bytes = KINF__BUFFER_INIT;
    size_t len = 0;

    while (len < 2 || memcmp(line + len - 2, "\r\n", 2) != 0) {
        assert_true(len < sizeof line - 1);
        assert_int_equal(replay_client_read(client, line + len, 1), 1);
        len++;
    }
    line[len] = '\0';
    len = strtoul(line, NULL, 16);
    assert_int_equal(replay_client_read_more(client, len + 2, &bytes), 0);
    assert_int_equal(bytes.len, len + 2);
    assert_memory_equal(bytes.bytes + len, "\r\n", 2);
    assert_int_equal(kinf__buffer_append(body, bytes.bytes, len), 0);
    kinf__buffer_release(&bytes);
    return len != 0;
}

static void read_head(struct replay_client *client)
{
    char head[4096] = "";

    for (size_t len = 0; strstr(head, "\r\n\r\n") == NULL; len++) {
        assert_true(len < sizeof head - 1);
        assert_int_equal(replay_client_read(client, head + len, 1), 1);
    }
    assert_non_null(strstr(head, "HTTP/1.1 200 OK\r\n"));
}

static void get(struct replay_client *client, const struct replay *replay, const char *target)
{
    char request[256];

    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target);
    assert_true(replay_client_open(client, replay));
    assert_true(replay_client_send(client, request));
}

static void string_at(struct kinf_str text, const char *path_text, char *out, size_t size)
{
    struct kinf_path *path = NULL;
    struct kinf__json_value value;
    size_t len;

    assert_int_equal(kinf_path_parse(path_text, &path, NULL), 0);
    assert_true(kinf__json_lookup_first(text, path, 0, &value));
    kinf_path_free(path);
    len = kinf__json_unescape(value.raw, out, size - 1);
    assert_true(len < size);
    out[len] = '\0';
}

static uint64_t checksum_more(uint64_t hash, struct kinf_str pod)
{
    char name_space[64], name[128], rv[32], line[256];

    string_at(pod, "metadata.namespace", name_space, sizeof name_space);
    string_at(pod, "metadata.name", name, sizeof name);
    string_at(pod, "metadata.resourceVersion", rv, sizeof rv);
    snprintf(line, sizeof line, "%s/%s@%s\n", name_space, name, rv);
    for (const char *at = line; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3U;
    return hash;
}

static uint64_t sum_of(struct kinf_str pod, bool has_phase)
{
    char name[128], uid[64], rv[32], phase[32], line[256];
    uint64_t hash = 0xcbf29ce484222325U;

    string_at(pod, "metadata.name", name, sizeof name);
    string_at(pod, "metadata.uid", uid, sizeof uid);
    string_at(pod, "metadata.resourceVersion", rv, sizeof rv);
    string_at(pod, "status.phase", phase, sizeof phase);
    snprintf(line, sizeof line, "%s\n%s\n%s\n%s\n", name, uid, rv, has_phase ? phase : "");
    for (const char *at = line; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3U;
    return hash;
}

/* Returns how many chunks it came in. */
static size_t assert_list_holds_distinct_pods(struct replay *replay)
{
    struct replay_client client;
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    struct kinf__json_value items, item;
    struct kinf__json_iter iter;
    struct kinf_str key;
    uint64_t hash = 0xcbf29ce484222325U, sum = 0, sum_metadata = 0;
    char text[128];
    size_t at, n = 0, n_chunks = 0;

    get(&client, replay, "/api/v1/pods");
    read_head(&client);
    while (read_chunk(&client, &body))
        n_chunks++;
    assert_int_equal(kinf__json_scan_all(kinf__buffer_str(&body), KINF__JSON_MAX_DEPTH, &at), 0);
    string_at(kinf__buffer_str(&body), "metadata.resourceVersion", text, sizeof text);
    assert_string_equal(text, "1000000025");
    assert_true(
        kinf__json_member(kinf__json_value_of(kinf__buffer_str(&body)), KINF_STR("items"), &items));
    for (kinf__json_iter_init(&iter, items); kinf__json_iter_next(&iter, &key, &item); n++) {
        hash = checksum_more(hash, item.raw);
        sum += sum_of(item.raw, true);
        sum_metadata += sum_of(item.raw, false);
        string_at(item.raw, "metadata.annotations[\"a b\"]", text, sizeof text);
        assert_string_equal(text, "{ \"x\": 1 }");
        string_at(item.raw, "metadata.labels.pod-template-hash", text, sizeof text);
        assert_string_equal(text, "0000000000");
        assert_false(kinf__json_member(item, KINF_STR("kind"), &items));
    }
    assert_int_equal(n, n_generated);
    assert_int_equal(hash, replay_generated_checksum(replay));
    assert_int_equal(sum, replay_generated_sum(replay, 0, true));
    assert_int_equal(sum_metadata, replay_generated_sum(replay, 0, false));
    replay_client_close(&client);
    replay_stop(replay);
    return n_chunks;
}

static void a_generated_list_holds_distinct_pods(void **state)
{
    (void)state;
    assert_true(assert_list_holds_distinct_pods(start_generating(false)) > n_generated);
}

static void a_list_that_is_too_large_to_be_held_is_the_same(void **state)
{
    (void)state;
    assert_int_equal(assert_list_holds_distinct_pods(
                         start_options((struct replay_generate_options){ .held_list_bytes = 1 })),
                     3);
}

/* Returns what a client adds to its sum for it. */
static uint64_t assert_event(struct replay_client *client, const char *type, unsigned rv)
{
    KINF__AUTO_BUFFER event = KINF__BUFFER_INIT;
    struct kinf__json_value object;
    char text[64], expected[64];
    size_t at;

    assert_true(read_chunk(client, &event));
    assert_int_equal(event.bytes[event.len - 1], '\n');
    assert_int_equal(kinf__json_scan_all(kinf__buffer_str(&event), KINF__JSON_MAX_DEPTH, &at), 0);
    string_at(kinf__buffer_str(&event), "type", text, sizeof text);
    assert_string_equal(text, type);
    string_at(kinf__buffer_str(&event), "object.kind", text, sizeof text);
    assert_string_equal(text, "Pod");
    string_at(kinf__buffer_str(&event), "object.metadata.resourceVersion", text, sizeof text);
    snprintf(expected, sizeof expected, "%u", rv);
    assert_string_equal(text, expected);
    assert_true(kinf__json_member(kinf__json_value_of(kinf__buffer_str(&event)), KINF_STR("object"),
                                  &object));
    return strcmp(type, "BOOKMARK") != 0 ? sum_of(object.raw, true) : 0;
}

static void a_generated_watchlist_tells_state_mark_and_events(void **state)
{
    struct replay *replay = start_generating(true);
    struct replay_client client;
    uint64_t sum = 0;

    (void)state;
    get(&client, replay, "/api/v1/pods?watch=1&sendInitialEvents=true");
    read_head(&client);
    for (unsigned i = 0; i < n_generated; i++)
        sum += assert_event(&client, "ADDED", 1000000000 + i);
    assert_event(&client, "BOOKMARK", 1000000025);
    for (unsigned i = 0; i < n_generated_events; i++)
        sum += assert_event(&client, "MODIFIED", 1000000026 + i);
    assert_int_equal(sum, replay_generated_sum(replay, n_generated_events, true));
    replay_client_close(&client);
    assert_true(replay_wait_connections(replay, 0, PATIENCE_MS));
    replay_stop(replay);
}

static void a_generated_watch_goes_on_from_its_version(void **state)
{
    struct replay *replay = start_generating(true);
    struct replay_client client;

    (void)state;
    get(&client, replay, "/api/v1/pods?watch=1&resourceVersion=1000000040");
    read_head(&client);
    for (unsigned i = 0; i < n_generated_events; i++)
        assert_event(&client, "MODIFIED", 1000000041 + i);
    replay_client_close(&client);
    replay_stop(replay);
}

static void the_first_watch_expires_behind_its_events_and_the_next_is_silent(void **state)
{
    struct replay *replay = start_options((struct replay_generate_options){ .expires = true });
    struct replay_client first, next;
    KINF__AUTO_BUFFER event = KINF__BUFFER_INIT;
    char code[8];

    (void)state;
    get(&first, replay, "/api/v1/pods?watch=1&resourceVersion=1000000025");
    read_head(&first);
    for (unsigned i = 0; i < n_generated_events; i++)
        assert_event(&first, "MODIFIED", 1000000026 + i);
    assert_true(read_chunk(&first, &event));
    string_at(kinf__buffer_str(&event), "object.reason", code, sizeof code);
    assert_string_equal(code, "Expired");
    assert_false(read_chunk(&first, &event));
    get(&next, replay, "/api/v1/pods?watch=1&resourceVersion=1000000025");
    read_head(&next);
    assert_true(replay_wait_answered(replay, 2, PATIENCE_MS));
    assert_int_equal(replay_n_violations(replay), 0);
    replay_client_close(&first);
    replay_client_close(&next);
    replay_stop(replay);
}

static void without_watchlist_it_is_refused(void **state)
{
    struct replay *replay = start_generating(false);
    struct replay_client client;
    KINF__AUTO_BUFFER head = KINF__BUFFER_INIT;
    const char refusal[] = "HTTP/1.1 422 ";

    (void)state;
    get(&client, replay, "/api/v1/pods?watch=1&sendInitialEvents=true");
    assert_int_equal(replay_client_read_more(&client, strlen(refusal), &head), 0);
    assert_string_equal(kinf__buffer_cstr(&head), refusal);
    assert_int_equal(replay_n_violations(replay), 0);
    replay_client_close(&client);
    replay_stop(replay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_generated_list_holds_distinct_pods),
        cmocka_unit_test(a_list_that_is_too_large_to_be_held_is_the_same),
        cmocka_unit_test(a_generated_watchlist_tells_state_mark_and_events),
        cmocka_unit_test(a_generated_watch_goes_on_from_its_version),
        cmocka_unit_test(the_first_watch_expires_behind_its_events_and_the_next_is_silent),
        cmocka_unit_test(without_watchlist_it_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
