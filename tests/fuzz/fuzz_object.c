/*
 * Decoding an object: what comes out is well formed, and decodes to itself.
 */
#include <string.h>

#include <kinformer/object.h>
#include <kinformer/selector.h>

#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "object/object.h"

static const struct kinf_type *type;
static struct kinf__prune_plan *plans[3];

static void set_up(void)
{
    static const char *const drops[] = { "metadata.managedFields", "spec.containers[*].env" };
    static const char *const keeps[] = { "spec.nodeName", "status.phase" };

    FUZZ_REQUIRE(kinf_type_intern("", "v1", "Pod", "pods", true, &type, NULL) == 0);
    FUZZ_REQUIRE(kinf__prune_plan_new(NULL, 0, NULL, 0, &plans[0], NULL) == 0);
    FUZZ_REQUIRE(kinf__prune_plan_new(drops, 2, NULL, 0, &plans[1], NULL) == 0);
    FUZZ_REQUIRE(kinf__prune_plan_new(NULL, 0, keeps, 2, &plans[2], NULL) == 0);
}

/* Without the white space between tokens, which taking kind and apiVersion out may change. */
static void squeeze(struct kinf_str text, struct kinf__buffer *out)
{
    bool in_string = false, in_escape = false;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.bytes[i];

        if (in_string || strchr(" \t\r\n", c) == NULL)
            FUZZ_REQUIRE(kinf__buffer_append(out, &c, 1) == 0);
        if (c == '"' && !in_escape)
            in_string = !in_string;
        in_escape = in_string && !in_escape && c == '\\';
    }
}

static void decode_again(const struct kinf_object *object, struct kinf__object_decoder *decoder)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    kinf_auto_object const struct kinf_object *again = NULL;
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER body_again = KINF__BUFFER_INIT;
    struct kinf_str text;
    size_t len;

    FUZZ_REQUIRE(kinf_object_full_json(object, &scratch, &text, NULL) == 0);
    FUZZ_REQUIRE(kinf__object_decode(decoder, text, true, &again, &len, NULL) == 0);
    FUZZ_REQUIRE(len == text.len);
    FUZZ_REQUIRE(strcmp(kinf_object_key(object), kinf_object_key(again)) == 0);
    FUZZ_REQUIRE(
        strcmp(kinf_object_resource_version(object), kinf_object_resource_version(again)) == 0);
    FUZZ_REQUIRE(kinf__object_body(object, &scratch, &text) == 0);
    squeeze(text, &body);
    FUZZ_REQUIRE(kinf__object_body(again, &scratch, &text) == 0);
    squeeze(text, &body_again);
    FUZZ_REQUIRE(kinf_str_equal(kinf__buffer_str(&body), kinf__buffer_str(&body_again)));
}

/* From where the object knows that the walk comes by, and from the start. */
static void look_up(const struct kinf_object *object)
{
    static const char *const paths[] = { "metadata.namespace", "spec",
                                         "spec.nodeName",      "spec[*]",
                                         "status.phase",       "status[*][*]" };
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str body;

    FUZZ_REQUIRE(kinf__object_body(object, &scratch, &body) == 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(paths); i++) {
        struct kinf__json_value walked, found;
        struct kinf_path *path;

        FUZZ_REQUIRE(kinf_path_parse(paths[i], &path, NULL) == 0);
        if (kinf__object_lookup_first(object, path, &scratch, &found) == 0)
            FUZZ_REQUIRE(kinf__json_lookup_first(body, path, 0, &walked) &&
                         found.raw.bytes == walked.raw.bytes && found.raw.len == walked.raw.len);
        else
            FUZZ_REQUIRE(!kinf__json_lookup_first(body, path, 0, &walked));
        kinf_path_free(path);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kinf__object_decoder decoder;
    const struct kinf_object *object = NULL;
    struct kinf_str text;
    unsigned how = fuzz_take_byte(&data, &size);
    char *copy = fuzz_text(data, size), key[512], rv[64];
    bool ends;
    size_t len;

    if (type == NULL)
        set_up();
    text = (struct kinf_str){ copy, size };
    kinf__object_decoder_init(&decoder, type, plans[how % 3]);
    if (kinf__object_decode(&decoder, text, true, &object, &len, NULL) == 0) {
        FUZZ_REQUIRE(len <= size);
        FUZZ_REQUIRE(kinf__object_check(object));
        look_up(object);
        decode_again(object, &decoder);
        kinf_object_unref(object);
    }
    if (kinf__object_guess_key(type, text, key, sizeof key))
        FUZZ_REQUIRE(memchr(key, '\0', sizeof key) != NULL);
    if (kinf__object_decode_bookmark(text, rv, sizeof rv, &ends, NULL) == 0)
        FUZZ_REQUIRE(memchr(rv, '\0', sizeof rv) != NULL);
    kinf__object_decoder_release(&decoder);
    free(copy);
    return 0;
}
