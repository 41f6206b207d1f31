/*
 * Bodies, and the words of Go's JSON decoder for what is none. Neighbours: request.c asks,
 * manifest.c reads YAML.
 */
#include "apiserver/body.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "document/manifest.h"
#include "apiserver/refuse.h"

#define QUOTED_LEN 30 /* of a body, in a message */
#define NO_KIND    "couldn't get version/kind; json parse error: "
#define GO_KIND                                                                                    \
    "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "               \
    "\"json:\\\"kind,omitempty\\\"\" }"

static size_t skip_blanks(struct kinf_str body, size_t at)
{
    while (at < body.len && isspace((unsigned char)body.bytes[at]))
        at++;
    return at;
}

/* The parser does not say where it was when something was wrong in the middle: then, in its words. */
static int refuse_json(struct kinf_str body, int failed, const struct kinf_error *err,
                       struct kinf__refusal *refusal)
{
    size_t at = skip_blanks(body, 0);
    bool is_value = at < body.len && strchr("{[\"-0123456789tfn", body.bytes[at]) != NULL;

    if (at == body.len || failed == KINF_ERR_TRUNCATED)
        return kinf__refuse_bad_request(refusal, NO_KIND "unexpected end of JSON input");
    if (!is_value)
        return kinf__refuse_bad_request(
            refusal, NO_KIND "invalid character '%c' looking for beginning of value",
            body.bytes[at]);
    return kinf__refuse_bad_request(refusal, NO_KIND "%s", err->message);
}

int kinf__body_parse(struct kinf_str body, bool is_yaml, struct cJSON **ret_tree,
                     struct kinf__refusal *refusal)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int failed = is_yaml ? kinf__manifest_parse_one(body, ret_tree, &err)
                         : kinf__doc_parse(body, ret_tree, &err);

    if (failed == KINF_ERR_NO_MEMORY)
        return kinf__refuse_no_memory(refusal);
    if (failed < 0)
        return is_yaml ? kinf__refuse_bad_request(refusal, "%s", err.message)
                       : refuse_json(body, failed, &err, refusal);
    return 0;
}

int kinf__body_parse_object(struct kinf_str body, bool is_yaml, struct cJSON **ret_object,
                            struct kinf__refusal *refusal)
{
    struct cJSON *tree;
    int failed = kinf__body_parse(body, is_yaml, &tree, refusal);

    if (failed < 0)
        return failed;
    if (cJSON_IsNull(tree)) {
        cJSON_Delete(tree);
        tree = cJSON_CreateObject();
        if (tree == NULL)
            return kinf__refuse_no_memory(refusal);
    }
    if (!cJSON_IsObject(tree)) {
        failed = kinf__refuse_bad_request(
            refusal, NO_KIND "json: cannot unmarshal %s into Go value of type " GO_KIND,
            kinf__json_type_word(tree));
        cJSON_Delete(tree);
        return failed;
    }
    *ret_object = tree;
    return 0;
}

/* Its beginning: as it is if it looks like JSON, or else in hexadecimal digits. */
static void quote(struct kinf_str body, char text[3 * QUOTED_LEN])
{
    size_t len = body.len < QUOTED_LEN ? body.len : QUOTED_LEN, at = 0;

    if (body.len == 0) {
        snprintf(text, 3 * QUOTED_LEN, "<empty>");
        return;
    }
    if (body.bytes[0] == '{')
        at = (size_t)snprintf(text, 3 * QUOTED_LEN, "%.*s", (int)len, body.bytes);
    for (size_t i = 0; body.bytes[0] != '{' && i < len; i++)
        at +=
            (size_t)snprintf(text + at, 3 * QUOTED_LEN - at, "%02x", (unsigned char)body.bytes[i]);
    if (body.len > len)
        snprintf(text + at, 3 * QUOTED_LEN - at, " ...");
}

int kinf__body_refuse(struct kinf_str body, const char *kind, struct kinf__refusal *refusal)
{
    char why[KINF__REFUSAL_MESSAGE_SIZE], quoted[3 * QUOTED_LEN];

    snprintf(why, sizeof why, "%s", refusal->message);
    quote(body, quoted);
    return kinf__refuse_bad_request(
        refusal, "the object provided is unrecognized (must be of type %s): %s (%s)", kind, why,
        quoted);
}
