/*
 * What stands in a request to the served API: its target, Accept, and the tokens in it. The first
 * byte chooses: a whole target with its options, an Accept header, or a continue token.
 */
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "serve/accept.h"
#include "serve/label_fault.h"
#include "serve/list_options.h"
#include "serve/token.h"

static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };

static void check_refusal(const struct kinf__refusal *refusal)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;

    FUZZ_REQUIRE(refusal->code >= 400 && refusal->code < 600);
    FUZZ_REQUIRE(refusal->message[0] != '\0');
    FUZZ_REQUIRE(kinf__refusal_write(refusal, &body) == 0);
    FUZZ_REQUIRE(body.len != 0);
}

/* One segment of a path: nothing that could be taken for another place. */
static void check_segment(const char *segment)
{
    FUZZ_REQUIRE(strchr(segment, '/') == NULL);
    FUZZ_REQUIRE(strcmp(segment, ".") != 0 && strcmp(segment, "..") != 0);
}

static void check_request(const struct kinf__request *request)
{
    bool is_resource = request->route == KINF__ROUTE_RESOURCE;

    check_segment(request->group);
    check_segment(request->version);
    check_segment(request->name_space);
    check_segment(request->resource);
    check_segment(request->name);
    check_segment(request->subresource);
    FUZZ_REQUIRE(is_resource || *request->resource == '\0');
    FUZZ_REQUIRE(is_resource || *request->name_space == '\0');
    FUZZ_REQUIRE(*request->subresource == '\0' || *request->name != '\0');
}

static bool is_decimal(const char *text)
{
    return strspn(text, "0123456789") == strlen(text);
}

static void check_options(const struct kinf__request *request,
                          const struct kinf__list_options *options)
{
    bool is_named = *request->name != '\0';

    FUZZ_REQUIRE(is_decimal(options->resource_version));
    FUZZ_REQUIRE(options->labels == NULL || *options->label_selector != '\0');
    FUZZ_REQUIRE((options->fields != NULL) == (*options->field_selector != '\0'));
    FUZZ_REQUIRE(!options->sends_initial_events || options->has_send_initial_events);
    /* What the server forbids never gets here. */
    FUZZ_REQUIRE(options->is_watch || !options->has_send_initial_events);
    FUZZ_REQUIRE(options->match == KINF__RV_MATCH_UNSET || *options->continue_token == '\0');
    FUZZ_REQUIRE(options->match != KINF__RV_MATCH_EXACT ||
                 (!options->is_watch && *options->resource_version != '\0' &&
                  strcmp(options->resource_version, "0") != 0));
    if (is_named)
        FUZZ_REQUIRE(!options->is_watch && options->limit == 0 && options->fields == NULL &&
                     options->labels == NULL && *options->continue_token == '\0');
}

static void try_fields(struct kinf__fields *fields, const char *text)
{
    struct kinf__fields *again, *all;
    struct kinf__refusal refusal;

    FUZZ_REQUIRE(kinf__fields_parse(text, &again, &refusal) == 0);
    FUZZ_REQUIRE(kinf__fields_parse("", &all, &refusal) == 0);
    FUZZ_REQUIRE(kinf__fields_within(fields, again));
    FUZZ_REQUIRE(kinf__fields_within(fields, all));
    kinf__fields_free(again);
    kinf__fields_free(all);
    if (kinf__fields_bind(fields, &pods, NULL, 0, &refusal) < 0)
        check_refusal(&refusal);
}

static void try_options(const struct kinf__request *request)
{
    struct kinf__list_options options;
    struct kinf__refusal refusal;

    if (kinf__list_options_read(request, &options, &refusal) < 0) {
        check_refusal(&refusal);
        return;
    }
    check_options(request, &options);
    if (options.fields != NULL)
        try_fields(options.fields, options.field_selector);
    kinf__list_options_release(&options);
}

static void try_target(struct kinf_str target)
{
    struct kinf__request request;
    struct kinf__refusal refusal;

    if (kinf__request_parse("GET", target, &request, &refusal) < 0) {
        check_refusal(&refusal);
        return;
    }
    FUZZ_REQUIRE(target.len != 0 && target.bytes[0] == '/');
    check_request(&request);
    try_options(&request);
    (void)kinf__request_has_parameter(&request, "verbose");
    kinf__request_release(&request);
}

static void try_accept(const char *header)
{
    static const unsigned sets[] = { KINF__FORMS_PLAIN, KINF__FORMS_DISCOVERY,
                                     KINF__FORMS_RESOURCE };
    struct kinf__accepted accepted;
    struct kinf__refusal refusal;

    for (size_t i = 0; i < KINF__ARRAY_LEN(sets); i++) {
        if (kinf__accept_negotiate(header, sets[i], &accepted, &refusal) < 0) {
            FUZZ_REQUIRE(refusal.code == 406);
            check_refusal(&refusal);
        } else {
            FUZZ_REQUIRE((sets[i] & 1u << accepted.form) != 0);
        }
    }
}

/* What is read is what was written, and a token has one spelling. */
static void try_token(const char *text)
{
    KINF__AUTO_BUFFER written = KINF__BUFFER_INIT;
    struct kinf__refusal refusal;
    struct kinf__token token;
    size_t len = strlen(text);
    uint32_t issuer = kinf__token_issuer(text);

    if (kinf__token_read(issuer, text, &token, &refusal) < 0)
        check_refusal(&refusal);
    else
        FUZZ_REQUIRE(!"nobody can make up a token");
    if (len >= KINF__TOKEN_KEY_SIZE)
        return;
    token = (struct kinf__token){ .version = { .number = 5 * len, .lineage = len },
                                  .n_remaining = 3 * len };
    memcpy(token.after, text, len + 1);
    FUZZ_REQUIRE(kinf__token_write(issuer, &token, &written) == 0);
    token = (struct kinf__token){ .n_remaining = 0 };
    FUZZ_REQUIRE(kinf__token_read(issuer, written.bytes, &token, &refusal) == 0);
    FUZZ_REQUIRE(token.version.number == 5 * len && token.version.lineage == len &&
                 token.n_remaining == 3 * len && strcmp(token.after, text) == 0);
    for (size_t i = 0; i < written.len; i++) {
        written.bytes[i] ^= 1;
        FUZZ_REQUIRE(kinf__token_read(issuer, written.bytes, &token, &refusal) < 0);
        written.bytes[i] ^= 1;
    }
}

static void try_label_fault(const char *text)
{
    char words[64] = "", more[KINF__REFUSAL_MESSAGE_SIZE] = "";
    bool is_found = kinf__label_fault(text, words, sizeof words);

    FUZZ_REQUIRE(kinf__label_fault(text, more, sizeof more) == is_found);
    FUZZ_REQUIRE(!is_found || (*more != '\0' && strncmp(words, more, strlen(words)) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned how = fuzz_take_byte(&data, &size);
    char *text = fuzz_text(data, size);

    if (how == 'A') {
        try_accept(text);
    } else if (how == 'T') {
        try_token(text);
    } else if (how == 'L') {
        try_label_fault(text);
    } else {
        try_target((struct kinf_str){ text, size });
        try_target(kinf_str_from(text));
    }
    free(text);
    return 0;
}
