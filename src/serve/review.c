/*
 * Reviews. Neighbours: authorizer.c sends them and keeps the answers.
 */
#include "serve/review.h"

#include <string.h>

#include "base/error.h"
#include "json/quote.h"
#include "json/scan.h"

#define MAX_DEPTH 64

/* --- writing --- */

int kinf__review_write_token(struct kinf_str token, struct kinf__buffer *out)
{
    if (kinf__buffer_printf(out, "{\"kind\":\"TokenReview\","
                                 "\"apiVersion\":\"authentication.k8s.io/v1\","
                                 "\"spec\":{\"token\":") < 0 ||
        kinf__quote(out, token) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, "}}");
}

/* A member, if there is something to say. */
static int write_member(struct kinf__buffer *out, const char *key, const char *text)
{
    if (text[0] == '\0')
        return 0;
    if (kinf__buffer_printf(out, ",\"%s\":", key) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__quote(out, kinf_str_from(text));
}

static int write_selector(struct kinf__buffer *out, const char *key, const char *text)
{
    if (text[0] == '\0')
        return 0;
    if (kinf__buffer_printf(out, ",\"%s\":{\"rawSelector\":", key) < 0 ||
        kinf__quote(out, kinf_str_from(text)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, "}");
}

static int write_resource(struct kinf__buffer *out, const struct kinf__attributes *attributes)
{
    if (kinf__buffer_printf(out, ",\"resourceAttributes\":{\"verb\":") < 0 ||
        kinf__quote(out, kinf_str_from(attributes->verb)) < 0 ||
        write_member(out, "group", attributes->group) < 0 ||
        write_member(out, "version", attributes->version) < 0 ||
        write_member(out, "resource", attributes->resource) < 0 ||
        write_member(out, "subresource", attributes->subresource) < 0 ||
        write_member(out, "namespace", attributes->name_space) < 0 ||
        write_member(out, "name", attributes->name) < 0 ||
        write_selector(out, "labelSelector", attributes->label_selector) < 0 ||
        write_selector(out, "fieldSelector", attributes->field_selector) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, "}");
}

static int write_path(struct kinf__buffer *out, const struct kinf__attributes *attributes)
{
    if (kinf__buffer_printf(out, ",\"nonResourceAttributes\":{\"verb\":") < 0 ||
        kinf__quote(out, kinf_str_from(attributes->verb)) < 0 ||
        write_member(out, "path", attributes->path) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, "}");
}

int kinf__review_write_access(const char *user, const struct kinf__attributes *attributes,
                              struct kinf__buffer *out)
{
    int failed = kinf__buffer_printf(out,
                                     "{\"kind\":\"SubjectAccessReview\","
                                     "\"apiVersion\":\"authorization.k8s.io/v1\","
                                     "\"spec\":{%s",
                                     user);

    if (failed == 0)
        failed = attributes->path[0] != '\0' ? write_path(out, attributes)
                                             : write_resource(out, attributes);
    return failed < 0 ? failed : kinf__buffer_printf(out, "}}");
}

/* --- reading --- */

/* The answer's status; refuses what is no review of this kind. */
static int read_status(struct kinf_str answer, struct kinf_str kind,
                       struct kinf__json_value *ret_status, struct kinf_error *err)
{
    struct kinf__json_value whole, value;
    size_t len;

    if (kinf__json_scan_all(answer, MAX_DEPTH, &len) < 0)
        return kinf__error_set(err, KINF_ERR_PARSE, "the answer to a review is no JSON");
    whole = kinf__json_value_of(answer);
    if (!kinf__json_member(whole, KINF_STR("kind"), &value) || value.type != KINF__JSON_STRING ||
        !kinf__json_string_equals(value.raw, kind) ||
        !kinf__json_member(whole, KINF_STR("status"), ret_status) ||
        ret_status->type != KINF__JSON_OBJECT)
        return kinf__error_set(err, KINF_ERR_PARSE, "the answer to a review is no %s", kind.bytes);
    return 0;
}

static bool is_true(struct kinf__json_value value, struct kinf_str key)
{
    struct kinf__json_value member;

    return kinf__json_member(value, key, &member) && member.type == KINF__JSON_BOOL &&
           member.raw.bytes[0] == 't';
}

/* Appends a string, decoded; nothing if there is none. */
static int append_text(struct kinf__buffer *out, struct kinf__json_value value, struct kinf_str key)
{
    struct kinf__json_value member;

    if (!kinf__json_member(value, key, &member) || member.type != KINF__JSON_STRING)
        return 0;
    if (kinf__buffer_reserve(out, member.raw.len) < 0)
        return KINF_ERR_NO_MEMORY;
    out->len += kinf__json_unescape(member.raw, out->bytes + out->len, member.raw.len);
    return 0;
}

/* Appends a member as it came, under another name; nothing if it is not there. */
static int append_member(struct kinf__buffer *out, struct kinf__json_value value,
                         struct kinf_str key, const char *as)
{
    struct kinf__json_value member;

    if (!kinf__json_member(value, key, &member) || member.type == KINF__JSON_NULL)
        return 0;
    if (kinf__buffer_printf(out, "%s\"%s\":", out->len != 0 ? "," : "", as) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append_str(out, member.raw);
}

int kinf__review_read_token(struct kinf_str answer, bool *ret_yes, struct kinf__buffer *user,
                            struct kinf_error *err)
{
    struct kinf__json_value status, who, name;
    int failed = read_status(answer, KINF_STR("TokenReview"), &status, err);

    if (failed < 0)
        return failed;
    *ret_yes = is_true(status, KINF_STR("authenticated"));
    if (!*ret_yes)
        return append_text(user, status, KINF_STR("error"));
    if (!kinf__json_member(status, KINF_STR("user"), &who) || who.type != KINF__JSON_OBJECT ||
        !kinf__json_member(who, KINF_STR("username"), &name) || name.type != KINF__JSON_STRING)
        return kinf__error_set(err, KINF_ERR_PARSE, "a TokenReview names nobody");
    if (append_member(user, who, KINF_STR("username"), "user") < 0 ||
        append_member(user, who, KINF_STR("uid"), "uid") < 0 ||
        append_member(user, who, KINF_STR("groups"), "groups") < 0 ||
        append_member(user, who, KINF_STR("extra"), "extra") < 0)
        return kinf__error_no_memory(err);
    return 0;
}

int kinf__review_read_access(struct kinf_str answer, bool *ret_yes, struct kinf__buffer *reason,
                             struct kinf_error *err)
{
    struct kinf__json_value status;
    int failed = read_status(answer, KINF_STR("SubjectAccessReview"), &status, err);

    if (failed < 0)
        return failed;
    *ret_yes = is_true(status, KINF_STR("allowed")) && !is_true(status, KINF_STR("denied"));
    return append_text(reason, status, KINF_STR("reason")) < 0 ? kinf__error_no_memory(err) : 0;
}

int kinf__review_user_name(const char *user, struct kinf__buffer *out)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    if (kinf__buffer_printf(&text, "{%s}", user) < 0)
        return KINF_ERR_NO_MEMORY;
    return append_text(out, kinf__json_value_of(kinf__buffer_str(&text)), KINF_STR("user"));
}
