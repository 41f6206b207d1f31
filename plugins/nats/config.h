/*
 * The plugin's part of the configuration; what is in it is in README.md.
 *
 * Threads: one thread per object.
 */
#ifndef NATS_CONFIG_H
#define NATS_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>

struct cJSON;

struct nats_config {
    struct cJSON *tree;                                       /* has the strings */
    const struct cJSON *servers;                              /* one at least */
    const char *credentials, *ca_file, *cert_file, *key_file; /* NULL: none */
    const char *stream, *subject_prefix, *bucket;
    int64_t duplicate_window_s, max_age_s, max_bytes; /* 0: as the server has it, for ever, any */
    int64_t replicas;
};

/* Returns 0, or KINF_ERR_CONFIG or KINF_ERR_NO_MEMORY; nothing is to be released then. */
int nats_config_parse(const char *text, struct nats_config *ret_config, struct kinf_error *err);
void nats_config_release(struct nats_config *config);

#endif
