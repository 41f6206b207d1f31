/*
 * The framing of lists and watches: pieces of any size tell the same as the whole.
 */
#include <kinformer/object.h>

#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "reflector/list_stream.h"
#include "reflector/watch_stream.h"

/* What lies in an object that is too large is not looked at when it comes in pieces, so these are
 * compared only with the large limit. */
#define SMALL_LIMIT 256
#define LARGE_LIMIT (1 << 20)

static const struct kinf_type *type;
static struct kinf__prune_plan *plan;

/* What was told, as text. A list that fails has told some of its objects: how many depends on the
 * pieces, so that only the complete ones are compared. */
struct told {
    struct kinf__buffer text;
    struct kinf__list_stream list;
    struct kinf__watch_stream watch;
    bool is_list;
    size_t max_object_bytes;
};

static int note_object(const struct kinf_object *take_object, void *ctx, struct kinf_error *err)
{
    struct told *told = ctx;

    (void)err;
    FUZZ_REQUIRE(kinf__object_check(take_object));
    FUZZ_REQUIRE(kinf__buffer_printf(&told->text, "%s@%s ", kinf_object_key(take_object),
                                     kinf_object_resource_version(take_object)) == 0);
    kinf_object_unref(take_object);
    return 0;
}

static int note_event(enum kinf__watch_event_type event, const struct kinf_object *object,
                      void *ctx, struct kinf_error *err)
{
    struct told *told = ctx;

    FUZZ_REQUIRE(kinf__buffer_printf(&told->text, "%d ", (int)event) == 0);
    return note_object(kinf_object_ref(object), ctx, err);
}

static int note_bookmark(const char *rv, bool ends_initial_events, void *ctx,
                         struct kinf_error *err)
{
    struct told *told = ctx;

    (void)err;
    return kinf__buffer_printf(&told->text, "B%d@%s ", (int)ends_initial_events, rv);
}

static int note_error(const struct kinf_error *event, void *ctx, struct kinf_error *err)
{
    struct told *told = ctx;

    (void)err;
    return kinf__buffer_printf(&told->text, "E%d ", (int)event->code);
}

static int note_reject(const char *key, const struct kinf_error *why, void *ctx,
                       struct kinf_error *err)
{
    struct told *told = ctx;

    (void)key; /* a guess by what is there when the object is given up */
    (void)err;
    return kinf__buffer_printf(&told->text, "(%d) ", (int)why->code);
}

static int feed(const char *bytes, size_t len, void *ctx)
{
    struct told *told = ctx;

    return told->is_list ? kinf__list_stream_feed(&told->list, bytes, len, NULL)
                         : kinf__watch_stream_feed(&told->watch, bytes, len, NULL);
}

/* `seed` 0: in one piece. Returns what the stream did. */
static int decode(struct told *told, const uint8_t *data, size_t size, unsigned seed)
{
    struct kinf__list_stream_callbacks list_callbacks = { note_object, note_reject, told };
    struct kinf__watch_stream_callbacks watch_callbacks = { note_event, note_bookmark, note_error,
                                                            note_reject, told };
    struct kinf__object_decoder decoder;
    int r;

    kinf__object_decoder_init(&decoder, type, plan);
    kinf__list_stream_init(&told->list, &decoder, told->max_object_bytes, &list_callbacks);
    kinf__watch_stream_init(&told->watch, &decoder, told->max_object_bytes, &watch_callbacks);
    if (seed != 0) {
        r = fuzz_feed_pieces(data, size, seed, feed, told);
    } else {
        char *copy = fuzz_text(data, size);

        r = feed(copy, size, told);
        free(copy);
    }
    if (r == 0)
        r = told->is_list ? kinf__list_stream_finish(&told->list, NULL)
                          : kinf__watch_stream_finish(&told->watch, NULL);
    if (r == 0 && told->is_list)
        FUZZ_REQUIRE(kinf__buffer_printf(&told->text, "rv=%s continue=%s", told->list.rv,
                                         told->list.continue_token) == 0);
    kinf__list_stream_release(&told->list);
    kinf__watch_stream_release(&told->watch);
    kinf__object_decoder_release(&decoder);
    return r;
}

static void set_up(void)
{
    FUZZ_REQUIRE(kinf_type_intern("", "v1", "ConfigMap", "configmaps", true, &type, NULL) == 0);
    FUZZ_REQUIRE(kinf__prune_plan_new(NULL, 0, NULL, 0, &plan, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned how = fuzz_take_byte(&data, &size);
    struct told whole = { .is_list = how % 2 == 0, .max_object_bytes = LARGE_LIMIT };
    struct told pieces = whole;
    int r, r_pieces;

    if (type == NULL)
        set_up();
    r = decode(&whole, data, size, 0);
    r_pieces = decode(&pieces, data, size, how / 2 + 1);
    FUZZ_REQUIRE(r == r_pieces);
    if (r == 0 || !whole.is_list)
        FUZZ_REQUIRE(kinf_str_equal(kinf__buffer_str(&whole.text), kinf__buffer_str(&pieces.text)));
    pieces.max_object_bytes = SMALL_LIMIT;
    (void)decode(&pieces, data, size, how / 2 + 1);
    kinf__buffer_release(&whole.text);
    kinf__buffer_release(&pieces.text);
    return 0;
}
