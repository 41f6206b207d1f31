/*
 * Reviews. Neighbours: authorizer.c says over which connection, and keeps the answers.
 */
#include "serve/review.h"

#include <string.h>

#include "base/error.h"
#include "json/scan.h"
#include "rest/secret.h"
#include "serve/report.h"

#define MAX_DEPTH 64

void kinf__attributes_list(const struct kinf__attributes *attributes,
                           const char *texts[KINF__N_ATTRIBUTES])
{
    const char *const all[KINF__N_ATTRIBUTES] = {
        attributes->verb,           attributes->path,     attributes->group,
        attributes->version,        attributes->resource, attributes->subresource,
        attributes->name_space,     attributes->name,     attributes->label_selector,
        attributes->field_selector,
    };

    memcpy(texts, all, sizeof all);
}

/* --- writing --- */

/* Up to the members of its spec. */
static struct kinf__report begin(struct kinf__buffer *out, const char *kind, const char *version)
{
    struct kinf__report report = { .out = out };

    kinf__report_open(&report, NULL, '{');
    kinf__report_text(&report, "kind", kind);
    kinf__report_text(&report, "apiVersion", version);
    kinf__report_open(&report, "spec", '{');
    return report;
}

static int end(struct kinf__report *report)
{
    kinf__report_close(report, '}');
    kinf__report_close(report, '}');
    return report->is_out_of_memory ? KINF_ERR_NO_MEMORY : 0;
}

int kinf__review_write_token(struct kinf_str token, struct kinf__buffer *out)
{
    struct kinf__report report = begin(out, "TokenReview", "authentication.k8s.io/v1");

    kinf__report_str(&report, "token", token);
    return end(&report);
}

static void write_selector(struct kinf__report *report, const char *key, const char *text)
{
    if (*text == '\0')
        return;
    kinf__report_open(report, key, '{');
    kinf__report_text(report, "rawSelector", text);
    kinf__report_close(report, '}');
}

/* What there is nothing to say of is left out: of a path all but that and the verb. */
static void write_attributes(struct kinf__report *report, const struct kinf__attributes *attributes)
{
    kinf__report_open(
        report, *attributes->path != '\0' ? "nonResourceAttributes" : "resourceAttributes", '{');
    kinf__report_text(report, "verb", attributes->verb);
    kinf__report_said(report, "path", attributes->path);
    kinf__report_said(report, "group", attributes->group);
    kinf__report_said(report, "version", attributes->version);
    kinf__report_said(report, "resource", attributes->resource);
    kinf__report_said(report, "subresource", attributes->subresource);
    kinf__report_said(report, "namespace", attributes->name_space);
    kinf__report_said(report, "name", attributes->name);
    write_selector(report, "labelSelector", attributes->label_selector);
    write_selector(report, "fieldSelector", attributes->field_selector);
    kinf__report_close(report, '}');
}

int kinf__review_write_access(const char *user, const struct kinf__attributes *attributes,
                              struct kinf__buffer *out)
{
    struct kinf__report report = begin(out, "SubjectAccessReview", "authorization.k8s.io/v1");

    if (kinf__buffer_append_str(out, kinf_str_from(user)) < 0)
        return KINF_ERR_NO_MEMORY;
    report.has_before = true;
    write_attributes(&report, attributes);
    return end(&report);
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

/* --- both --- */

static int end_with_nul(struct kinf__buffer *text, struct kinf_error *err)
{
    return kinf__buffer_cstr(text) != NULL ? 0 : kinf__error_no_memory(err);
}

int kinf__review_token(const struct kinf__review_sender *sender, struct kinf_str token,
                       bool *ret_yes, struct kinf__buffer *user, struct kinf_error *err)
{
    KINF__AUTO_SECRET_BUFFER body = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER answer = KINF__BUFFER_INIT;
    int failed;

    if (kinf__review_write_token(token, &body) < 0)
        return kinf__error_no_memory(err);
    failed =
        sender->send(sender->ctx, KINF__TOKEN_REVIEW_TARGET, kinf__buffer_str(&body), &answer, err);
    if (failed == 0)
        failed = kinf__review_read_token(kinf__buffer_str(&answer), ret_yes, user, err);
    return failed == 0 ? end_with_nul(user, err) : failed;
}

int kinf__review_access(const struct kinf__review_sender *sender, const char *user,
                        const struct kinf__attributes *attributes, bool *ret_yes,
                        struct kinf__buffer *reason, struct kinf_error *err)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER answer = KINF__BUFFER_INIT;
    int failed;

    if (kinf__review_write_access(user, attributes, &body) < 0)
        return kinf__error_no_memory(err);
    failed = sender->send(sender->ctx, KINF__ACCESS_REVIEW_TARGET, kinf__buffer_str(&body), &answer,
                          err);
    if (failed == 0)
        failed = kinf__review_read_access(kinf__buffer_str(&answer), ret_yes, reason, err);
    return failed == 0 ? end_with_nul(reason, err) : failed;
}

/* --- users --- */

int kinf__review_user_name(const char *user, struct kinf__buffer *out)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    if (kinf__buffer_printf(&text, "{%s}", user) < 0)
        return KINF_ERR_NO_MEMORY;
    return append_text(out, kinf__json_value_of(kinf__buffer_str(&text)), KINF_STR("user"));
}
