/*
 * Label, field and shard selectors and paths, as a client of the cache would send them.
 */
#include <string.h>

#include <kinformer/path.h>
#include <kinformer/selector.h>

#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "json/path.h"
#include "object/object.h"
#include "object/shard.h"

static const struct kinf_object *pod;

static void set_up(void)
{
    static const char text[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\","
        "\"labels\":{\"app\":\"web\",\"a.b/c\":\"\",\"n\":\"5\"}},\"spec\":{\"nodeName\":\"m\","
        "\"containers\":[{\"name\":\"x\"},{\"name\":\"y\"}]},\"status\":{\"phase\":\"Running\"}}";
    struct kinf__prune_plan *plan = NULL;
    struct kinf__object_decoder decoder;
    const struct kinf_type *type;
    size_t len;

    FUZZ_REQUIRE(kinf_type_intern("", "v1", "Pod", "pods", true, &type, NULL) == 0);
    FUZZ_REQUIRE(kinf__prune_plan_new(NULL, 0, NULL, 0, &plan, NULL) == 0);
    kinf__object_decoder_init(&decoder, type, plan);
    FUZZ_REQUIRE(kinf__object_decode(&decoder, kinf_str_from(text), true, &pod, &len, NULL) == 0);
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
}

static void try_labels(const char *text)
{
    struct kinf_label_selector *selector = NULL;
    struct kinf_error err = KINF_ERROR_INIT;

    if (kinf_label_selector_parse(text, &selector, &err) < 0) {
        FUZZ_REQUIRE(err.message[0] != '\0');
        return;
    }
    if (kinf_label_selector_is_empty(selector))
        FUZZ_REQUIRE(kinf_label_selector_matches(selector, pod));
    else
        (void)kinf_label_selector_matches(selector, pod);
    kinf_label_selector_free(selector);
}

static void try_fields(const char *text)
{
    struct kinf_field_selector *selector = NULL;
    struct kinf_error err = KINF_ERROR_INIT;

    if (kinf_field_selector_parse(text, &selector, &err) < 0) {
        FUZZ_REQUIRE(err.message[0] != '\0');
        return;
    }
    (void)kinf_field_selector_matches(selector, pod);
    kinf_field_selector_free(selector);
}

static void try_shard(const char *text)
{
    struct kinf__shard_selector *selector = NULL;
    struct kinf_error err = KINF_ERROR_INIT;

    if (kinf__shard_selector_parse(text, &selector, &err) < 0) {
        FUZZ_REQUIRE(err.message[0] != '\0');
        return;
    }
    FUZZ_REQUIRE(strcmp(kinf__shard_selector_text(selector), text) == 0);
    (void)kinf__shard_selector_matches(selector, pod);
    kinf__shard_selector_free(selector);
}

static void try_path(const char *text)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_path *path = NULL;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__json_value value;
    struct kinf_str body;

    if (kinf_path_parse(text, &path, &err) < 0) {
        FUZZ_REQUIRE(err.message[0] != '\0');
        return;
    }
    FUZZ_REQUIRE(strcmp(kinf_path_text(path), text) == 0);
    FUZZ_REQUIRE(kinf__object_body(pod, &scratch, &body) == 0);
    if (kinf__json_lookup_first(body, path, 0, &value))
        FUZZ_REQUIRE(value.raw.len != 0 && value.raw.bytes >= body.bytes &&
                     value.raw.bytes + value.raw.len <= body.bytes + body.len);
    kinf_path_free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned how = fuzz_take_byte(&data, &size);
    char *text = fuzz_text(data, size);

    if (pod == NULL)
        set_up();
    if (how == 0xff)
        try_shard(text);
    else if (how % 3 == 0)
        try_labels(text);
    else if (how % 3 == 1)
        try_fields(text);
    else
        try_path(text);
    free(text);
    return 0;
}
