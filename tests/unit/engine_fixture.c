/*
 * Neighbours: test_engine.c, test_outage.c; informer_fixture.c has the recorder, tests/replay the
 * server.
 */
#include "unit/engine_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "unit/scripted_server.h"

/* --- life --- */

int engine_set_up(void **state)
{
    struct engine_fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->n_objects_before = kinf__object_count();
    recorder_init(&f->recorder);
    f->options = (struct kinf_informer_options){
        .size = sizeof(struct kinf_informer_options),
        .handler = recorder_handler(&f->recorder),
        .fifo_order = KINF_FIFO_KEYED,
        .initial = KINF_INITIAL_LIST,
        .backoff_base_ms = 10,
        .backoff_max_ms = 10,
    };
    *state = f;
    return 0;
}

int engine_set_up_in_order(void **state)
{
    int r = engine_set_up(state);
    struct engine_fixture *f = *state;

    f->options.fifo_order = KINF_FIFO_IN_ORDER;
    return r;
}

void engine_release(struct engine_fixture *f)
{
    kinf_informer_free(KINF__TAKE(f->informer));
    kinf_client_free(KINF__TAKE(f->client));
    if (f->replay != NULL)
        assert_int_equal(replay_n_violations(f->replay), 0);
    replay_stop(KINF__TAKE(f->replay));
    assert_int_equal(kinf__object_count(), f->n_objects_before);
}

int engine_tear_down(void **state)
{
    struct engine_fixture *f = *state;

    engine_release(f);
    recorder_release(&f->recorder);
    free(f);
    return 0;
}

void engine_make(struct engine_fixture *f, const char *resource, const char *script)
{
    const struct replay_options server = { .script = script, .plain = true };
    struct kinf_error err = KINF_ERROR_INIT;

    if (replay_start(&server, &f->replay, &err) < 0)
        fail_msg("%s", err.message);
    f->client = test_client_of(replay_port(f->replay), NULL);
    f->options.resource = resource;
    if (kinf_informer_new(f->client, &f->options, &f->informer, &err) < 0)
        fail_msg("%s", err.message);
}

void engine_start(struct engine_fixture *f, const char *const *parts)
{
    KINF__AUTO_BUFFER script = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;

    for (; *parts != NULL; parts++)
        assert_int_equal(kinf__buffer_printf(&script, "%s", *parts), 0);
    engine_make(f, "pods", kinf__buffer_cstr(&script));
    if (kinf_informer_start(f->informer, &err) < 0)
        fail_msg("%s", err.message);
}

/* --- looking --- */

void engine_expect(struct engine_fixture *f, const char *const *lines)
{
    size_t n = 0;

    for (; lines[n] != NULL; n++)
        recorder_wait_for(&f->recorder, lines[n]);
    assert_int_equal(recorder_count(&f->recorder, ""), n);
}

static void pause_a_little(void)
{
    const struct timespec delay = { .tv_nsec = 1000000 };

    nanosleep(&delay, NULL);
}

void engine_wait_for_state(struct engine_fixture *f, enum kinf_informer_state state)
{
    int64_t begun_ms = kinf__clock_now_ms();
    struct kinf_informer_status status;

    for (;;) {
        kinf_informer_status(f->informer, &status);
        if (status.state == state)
            return;
        if (kinf__clock_now_ms() - begun_ms > ENGINE_PATIENCE_MS)
            fail_msg("%s (%s) instead of %s", kinf_informer_state_to_string(status.state),
                     status.reason, kinf_informer_state_to_string(state));
        pause_a_little();
    }
}

void engine_expect_reason(struct engine_fixture *f, const char *text)
{
    struct kinf_informer_status status;

    kinf_informer_status(f->informer, &status);
    assert_non_null(strstr(status.reason, text));
    assert_true(text[0] != '\0' || status.reason[0] == '\0');
}

void engine_wait_for_resource_version(struct engine_fixture *f, const char *expected)
{
    int64_t begun_ms = kinf__clock_now_ms();
    char rv[64] = "";

    while (kinf_informer_resource_version(f->informer, rv, sizeof rv) == 0 &&
           strcmp(rv, expected) != 0 && kinf__clock_now_ms() - begun_ms < ENGINE_PATIENCE_MS)
        pause_a_little();
    assert_string_equal(rv, expected);
}
