/*
 * The aid of test_list_stream.c and test_watch_stream.c.
 */
#include "unit/stream_driver.h"

#include <string.h>

#include "base/error.h"

static void must(int r)
{
    assert_int_equal(r, 0);
}

/* --- what comes out --- */

static int note_object(struct stream_driver *driver, const char *before,
                       const struct kinf_object *object, struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str json;

    must(kinf_object_json(object, &scratch, &json, NULL));
    for (size_t i = 0; i < json.len; i++)
        driver->hash = (driver->hash ^ (unsigned char)json.bytes[i]) * 0x100000001b3U;
    must(kinf__buffer_printf(&driver->text, "%s%s@%s ", before, kinf_object_key(object),
                             kinf_object_resource_version(object)));
    return driver->n_left != 0 && --driver->n_left == 0
               ? kinf__error_set(err, KINF_ERR_STOPPED, "enough")
               : 0;
}

static int on_item(const struct kinf_object *take_object, void *ctx, struct kinf_error *err)
{
    int r = note_object(ctx, "", take_object, err);

    kinf_object_unref(take_object);
    return r;
}

static int on_event(enum kinf__watch_event_type type, const struct kinf_object *object, void *ctx,
                    struct kinf_error *err)
{
    static const char *const letters[] = { "A ", "M ", "D " };

    return note_object(ctx, letters[type], object, err);
}

static int on_bookmark(const char *rv, bool ends_initial_events, void *ctx, struct kinf_error *err)
{
    struct stream_driver *driver = ctx;

    (void)err;
    must(kinf__buffer_printf(&driver->text, "B@%s%s ", rv, ends_initial_events ? "!" : ""));
    return 0;
}

static int on_error(const struct kinf_error *event, void *ctx, struct kinf_error *err)
{
    struct stream_driver *driver = ctx;

    (void)err;
    must(kinf__buffer_printf(&driver->text, "E%d ", event->http_status));
    return 0;
}

static int on_reject(const char *key, const struct kinf_error *why, void *ctx,
                     struct kinf_error *err)
{
    struct stream_driver *driver = ctx;

    (void)err;
    must(kinf__buffer_printf(&driver->text, "(%s %s) ", key, kinf_errc_to_string(why->code)));
    return 0;
}

static void note_metadata(struct stream_driver *driver)
{
    const struct kinf__list_stream *list = &driver->list;

    must(kinf__buffer_printf(&driver->text, "rv=%s ", list->rv));
    if (list->continue_token[0] != '\0')
        must(kinf__buffer_printf(&driver->text, "continue "));
    if (list->remaining_item_count >= 0)
        must(kinf__buffer_printf(&driver->text, "remaining=%lld ",
                                 (long long)list->remaining_item_count));
}

/* --- life --- */

static void init(struct stream_driver *driver, const char *kind, size_t max_object_bytes)
{
    const struct kinf_type *type;

    *driver = (struct stream_driver){
        .list_callbacks = { on_item, on_reject, driver },
        .watch_callbacks = { on_event, on_bookmark, on_error, on_reject, driver },
    };
    must(kinf_type_intern("", "v1", kind, "things", true, &type, NULL));
    must(kinf__prune_plan_new(NULL, 0, NULL, 0, &driver->plan, NULL));
    kinf__object_decoder_init(&driver->decoder, type, driver->plan);
    kinf__list_stream_init(&driver->list, &driver->decoder, max_object_bytes,
                           &driver->list_callbacks);
    kinf__watch_stream_init(&driver->watch, &driver->decoder, max_object_bytes,
                            &driver->watch_callbacks);
}

void stream_driver_init_list(struct stream_driver *driver, const char *kind,
                             size_t max_object_bytes)
{
    init(driver, kind, max_object_bytes);
    driver->is_list = true;
}

void stream_driver_init_watch(struct stream_driver *driver, const char *kind,
                              size_t max_object_bytes)
{
    init(driver, kind, max_object_bytes);
}

void stream_driver_release(struct stream_driver *driver)
{
    kinf__list_stream_release(&driver->list);
    kinf__watch_stream_release(&driver->watch);
    kinf__object_decoder_release(&driver->decoder);
    kinf__prune_plan_free(driver->plan);
    kinf__buffer_release(&driver->text);
}

/* --- feeding --- */

int stream_driver_feed(struct stream_driver *driver, const char *bytes, size_t len)
{
    size_t tail;
    int r;

    if (driver->is_list)
        r = kinf__list_stream_feed(&driver->list, bytes, len, driver->err);
    else
        r = kinf__watch_stream_feed(&driver->watch, bytes, len, driver->err);
    tail = driver->is_list ? driver->list.tail.size : driver->watch.tail.size;
    if (tail > driver->max_tail)
        driver->max_tail = tail;
    return r;
}

int stream_driver_finish(struct stream_driver *driver, struct kinf_error *err)
{
    return driver->is_list ? kinf__list_stream_finish(&driver->list, err)
                           : kinf__watch_stream_finish(&driver->watch, err);
}

static int feed(const char *bytes, size_t len, void *ctx)
{
    return stream_driver_feed(ctx, bytes, len);
}

int stream_driver_decode(struct stream_driver *driver, const char *body, size_t len,
                         struct test_cut cut, struct kinf_error *err)
{
    int r;

    driver->text.len = 0;
    driver->hash = 0xcbf29ce484222325U;
    driver->err = err;
    kinf__list_stream_reset(&driver->list);
    kinf__watch_stream_reset(&driver->watch);
    r = test_feed_cut(body, len, cut, feed, driver);
    if (r == 0)
        r = stream_driver_finish(driver, err);
    if (r == 0 && driver->is_list)
        note_metadata(driver);
    if (driver->text.len != 0)
        driver->text.len--;
    assert_non_null(kinf__buffer_cstr(&driver->text));
    driver->err = NULL;
    return r;
}

/* --- expecting --- */

struct trial {
    struct stream_driver *driver;
    const char *body;
    size_t len;
    int code;
    const char *text;
    uint64_t hash;
};

static void try_cut(struct test_cut cut, void *ctx)
{
    struct trial *trial = ctx;

    assert_int_equal(stream_driver_decode(trial->driver, trial->body, trial->len, cut, NULL),
                     trial->code);
    assert_string_equal(trial->driver->text.bytes, trial->text);
    if (trial->hash == 0)
        trial->hash = trial->driver->hash;
    assert_true(trial->driver->hash == trial->hash);
}

void stream_driver_expect(struct stream_driver *driver, const char *body, size_t len, int code,
                          const char *text)
{
    struct trial trial = { driver, body, len, code, text, 0 };

    test_each_cut(len, try_cut, &trial);
    stream_driver_release(driver);
}

void stream_driver_expect_recorded(struct stream_driver *driver, const char *name, int code,
                                   const char *text)
{
    struct test_transcript transcript = test_transcript_read(name);

    stream_driver_expect(driver, transcript.body, transcript.len, code, text);
    test_transcript_release(&transcript);
}
