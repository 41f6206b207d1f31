/*
 * Reading and keeping a webhook. Neighbours: handler_config.c has the entry, webhook_handler.c runs it.
 */
#include "daemon/webhook_config.h"

#include <stdlib.h>
#include <string.h>

static int check_all(const struct kinf__config_reader *section,
                     const struct kinf__webhook_config *webhook)
{
    const struct kinf__webhook_options options = kinf__webhook_config_options(webhook);
    struct kinf_error told = KINF_ERROR_INIT;

    if (webhook->url == NULL)
        return kinf__yaml_error(section->err, KINF_ERR_CONFIG, section->yaml, section->mapping,
                                "webhook: it has no url");
    if (kinf__webhook_check(&options, &told) == 0)
        return 0;
    return kinf__yaml_error(section->err, KINF_ERR_CONFIG, section->yaml, section->mapping,
                            "webhook: %s", told.message);
}

static int read_fields(const struct kinf__config_reader *section,
                       struct kinf__webhook_config *webhook)
{
    const struct kinf__yaml *yaml = section->yaml;
    const struct kinf__yaml_node *node = section->mapping;
    int failed;

    if ((failed = kinf__config_read_text(section, "url", &webhook->url)) < 0 ||
        (failed = kinf__config_read_text(section, "caFile", &webhook->ca_file)) < 0 ||
        (failed = kinf__config_read_text(section, "certFile", &webhook->cert_file)) < 0 ||
        (failed = kinf__config_read_text(section, "keyFile", &webhook->key_file)) < 0 ||
        (failed = kinf__config_read_text(section, "tokenFile", &webhook->token_file)) < 0 ||
        (failed = kinf__yaml_read_bool(yaml, node, "insecure", &webhook->is_plain_allowed,
                                       section->err)) < 0 ||
        (failed = kinf__yaml_read_duration_ms(yaml, node, "timeout", &webhook->timeout_ms,
                                              section->err)) < 0 ||
        (failed = kinf__config_check_above_zero(section, "timeout",
                                                (uint64_t)webhook->timeout_ms)) < 0 ||
        (failed = kinf__yaml_read_uint(yaml, node, "maxBatchBytes", SIZE_MAX / 2,
                                       &webhook->max_batch_bytes, section->err)) < 0)
        return failed;
    return kinf__config_check_above_zero(section, "maxBatchBytes", webhook->max_batch_bytes);
}

int kinf__webhook_config_read(const struct kinf__config_reader *section,
                              struct kinf__webhook_config *webhook)
{
    static const char *const allowed[] = { "url",     "caFile",        "certFile",
                                           "keyFile", "tokenFile",     "insecure",
                                           "timeout", "maxBatchBytes", NULL };
    int failed = kinf__yaml_check_keys(section->yaml, section->mapping, allowed, section->err);

    if (failed == 0)
        failed = read_fields(section, webhook);
    return failed < 0 ? failed : check_all(section, webhook);
}

static int copy_text(const char *from, char **to)
{
    *to = from != NULL ? strdup(from) : NULL;
    return from == NULL || *to != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

/* X(member) */
#define WEBHOOK_TEXTS(X) X(url) X(ca_file) X(cert_file) X(key_file) X(token_file)

int kinf__webhook_config_copy(const struct kinf__webhook_config *from,
                              struct kinf__webhook_config *to)
{
    int failed = 0;

    *to = (struct kinf__webhook_config){ .is_plain_allowed = from->is_plain_allowed,
                                         .timeout_ms = from->timeout_ms,
                                         .max_batch_bytes = from->max_batch_bytes };
#define X(member)                                                                                  \
    if (failed == 0)                                                                               \
        failed = copy_text(from->member, &to->member);
    WEBHOOK_TEXTS(X)
#undef X
    return failed;
}

void kinf__webhook_config_release(struct kinf__webhook_config *webhook)
{
#define X(member) free(webhook->member);
    WEBHOOK_TEXTS(X)
#undef X
}

bool kinf__webhook_config_equal(const struct kinf__webhook_config *a,
                                const struct kinf__webhook_config *b)
{
#define X(member) kinf__text_equal(a->member, b->member) &&
    return WEBHOOK_TEXTS(X) a->is_plain_allowed == b->is_plain_allowed &&
           a->timeout_ms == b->timeout_ms && a->max_batch_bytes == b->max_batch_bytes;
#undef X
}

struct kinf__webhook_options kinf__webhook_config_options(
    const struct kinf__webhook_config *webhook)
{
    return (struct kinf__webhook_options){
        .site = { .url = webhook->url,
                  .ca_file = webhook->ca_file,
                  .cert_file = webhook->cert_file,
                  .key_file = webhook->key_file,
                  .token_file = webhook->token_file,
                  .is_plain_allowed = webhook->is_plain_allowed },
        .timeout_ms = webhook->timeout_ms,
        .max_batch_bytes = webhook->max_batch_bytes,
    };
}
