/*
 * The webhook of an entry of the configuration's handlers.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_DAEMON_WEBHOOK_CONFIG_H
#define KINF_DAEMON_WEBHOOK_CONFIG_H

#include "daemon/resource_config.h"
#include "handlers/webhook_handler.h"

/* Owned texts. */
struct kinf__webhook_config {
    char *url; /* NULL: it is no webhook */
    char *ca_file;
    char *cert_file;
    char *key_file;
    char *token_file;
    bool is_plain_allowed;
    int64_t timeout_ms; /* 0 in both: the default */
    uint64_t max_batch_bytes;
};

/* Fills an empty one of a mapping, of which the URL has to be good and the files there; its owner
 * releases it, on failure too. Errors: KINF_ERR_CONFIG, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__webhook_config_read(const struct kinf__config_reader *section,
                                              struct kinf__webhook_config *webhook);
/* Errors: KINF_ERR_NO_MEMORY; the owner releases what there is. */
KINF_MUST_CHECK int kinf__webhook_config_copy(const struct kinf__webhook_config *from,
                                              struct kinf__webhook_config *to);
void kinf__webhook_config_release(struct kinf__webhook_config *webhook);
bool kinf__webhook_config_equal(const struct kinf__webhook_config *a,
                                const struct kinf__webhook_config *b);

/* Borrowed. */
struct kinf__webhook_options kinf__webhook_config_options(
    const struct kinf__webhook_config *webhook);

#endif
