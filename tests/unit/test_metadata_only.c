/*
 * Informers of metadata alone, against what an API server was recorded to send.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "informer/informer.h"
#include "unit/scripted_server.h"
#include "unit/informer_fixture.h"
#include "unit/test.h"
#include "unit/transcript.h"

#define PATIENCE_MS 60000

#define ACCEPT(kind) "application/json;as=" kind ";g=meta.k8s.io;v=v1\n"
#define CHANGED                                                                                    \
    "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":"        \
    "\"meta.k8s.io/v1\",\"metadata\":{\"name\":\"beta\",\"namespace\":\"t1\",\"uid\":"             \
    "\"c04557ec-9256-4670-a48e-8d652ac653f4\",\"resourceVersion\":\"300\"}}}\n"

struct metadata_fixture {
    struct replay *server;
    struct kinf_client *client;
    struct kinf_informer *informer;
    struct recorder recorder;
    struct test_transcript list;
    struct test_reply replies[2];
};

static int setup(void **state)
{
    struct metadata_fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    recorder_init(&f->recorder);
    f->list = test_transcript_read("14-metadata-list");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct metadata_fixture *f = *state;

    kinf_informer_free(f->informer);
    replay_stop(f->server);
    kinf_client_free(f->client);
    test_transcript_release(&f->list);
    recorder_release(&f->recorder);
    free(f);
    return 0;
}

static void start(struct metadata_fixture *f, bool metadata_only)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_type *type;

    f->server = test_server_start(f->replies, KINF__ARRAY_LEN(f->replies));
    f->client = test_client_of(replay_port(f->server), NULL);
    options.handler = recorder_handler(&f->recorder);
    options.metadata_only = metadata_only;
    options.backoff_base_ms = 10;
    assert_int_equal(kinf_type_intern("", "v1", "ConfigMap", "configmaps", true, &type, NULL), 0);
    if (kinf__informer_new_for_type(f->client, type, &options, &f->informer, &err) < 0 ||
        kinf_informer_start(f->informer, &err) < 0)
        fail_msg("%s", err.message);
}

static char *recorded_list(const struct metadata_fixture *f)
{
    char *body = strndup(f->list.body, f->list.len);

    assert_non_null(body);
    return body;
}

static void metadata_is_asked_for_and_keeps_its_type(void **state)
{
    struct metadata_fixture *f = *state;
    kinf_auto_object const struct kinf_object *object = NULL;
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str text;
    char *body = recorded_list(f), *accepts, app[8];

    f->replies[0].body = body;
    f->replies[1] = (struct test_reply){ .body = CHANGED, .end = TEST_END_OPEN, .is_held = true };
    start(f, true);
    recorder_expect(&f->recorder, "add! alpha@209", "add! beta@210", "synced");
    test_server_let_go(f->server);
    recorder_expect(&f->recorder, "add! alpha@209", "add! beta@210", "synced",
                    "update beta@210 beta@300");
    accepts = test_server_accepts(f->server);
    assert_string_equal(accepts,
                        ACCEPT("PartialObjectMetadataList") ACCEPT("PartialObjectMetadata"));
    free(accepts);
    assert_int_equal(
        kinf_indexer_get_by_key(kinf_informer_indexer(f->informer), "t1/alpha", &object), 0);
    assert_ptr_equal(kinf_object_type(object), kinf_informer_type(f->informer));
    assert_int_equal(kinf_object_get_label(object, "app", app, sizeof app), 0);
    assert_int_equal(kinf_object_full_json(object, &scratch, &text, NULL), 0);
    assert_memory_equal(text.bytes, "{\"kind\":\"ConfigMap\"", 19);
    free(body);
}

/* What answers with metadata unasked must not pass for the objects themselves. */
static void metadata_is_no_object_for_other_informers(void **state)
{
    struct metadata_fixture *f = *state;
    struct kinf_informer_status status;
    char *body = recorded_list(f), *accepts;

    f->replies[0].body = f->replies[1].body = body;
    start(f, false);
    assert_int_equal(kinf_informer_wait_synced(f->informer, PATIENCE_MS, NULL), 0);
    kinf_informer_status(f->informer, &status);
    assert_int_equal(status.n_objects, 0);
    assert_int_equal(status.n_quarantined, 2);
    accepts = test_server_accepts(f->server);
    assert_int_equal(strncmp(accepts, "application/json\n", 17), 0);
    free(accepts);
    free(body);
}

/* A server that cannot do it says so, and is not asked for everything instead. */
static void server_without_metadata_is_an_error(void **state)
{
    struct metadata_fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    char *accepts;

    f->replies[0] = (struct test_reply){
        .status = "406 Not Acceptable",
        .body = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":"
                "\"only application/json is here\",\"reason\":\"NotAcceptable\",\"code\":406}",
    };
    f->replies[1].end = TEST_NO_REPLY;
    start(f, true);
    test_server_wait(f->server, 2);
    assert_int_equal(kinf_informer_wait_synced(f->informer, 1, &err), KINF_ERR_TIMEOUT);
    assert_non_null(strstr(err.message, "only application/json is here"));
    accepts = test_server_accepts(f->server);
    assert_null(strstr(accepts, "application/json\n"));
    free(accepts);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(metadata_is_asked_for_and_keeps_its_type),
        TEST(metadata_is_no_object_for_other_informers),
        TEST(server_without_metadata_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
