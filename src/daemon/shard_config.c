/*
 * Reading what each of several instances has of its own. Neighbours: config.c has the rest of the file,
 * lease.c stands for the Lease.
 */
#include "daemon/shard_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "object/object.h"
#include "object/shard.h"

#define LEASE_NAME_MAX 63 /* it is in a label's value */

static int complain(const struct kinf__config_reader *reader, const char *key, const char *what)
{
    const struct kinf__yaml_node *node = kinf__yaml_get(reader->mapping, key);

    return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml,
                            node != NULL ? node : reader->mapping, "%s: %s", key, what);
}

/* A number, or a variable that is one. */
static int read_number(const struct kinf__config_reader *reader, const char *key,
                       bool *ret_is_there, unsigned *ret_number)
{
    KINF__AUTO_FREE char *text = NULL;
    int failed = kinf__config_read_expanded(reader, key, &text);

    *ret_is_there = text != NULL;
    if (failed < 0 || text == NULL)
        return failed;
    if (text[strspn(text, "0123456789")] != '\0' || strlen(text) > 4 || *text == '\0')
        return complain(reader, key, "a number of up to four digits expected");
    *ret_number = (unsigned)strtoul(text, NULL, 10);
    return 0;
}

static int read_shard(const struct kinf__config_reader *reader, struct kinf__shard_config *config)
{
    struct kinf_error why = KINF_ERROR_INIT;
    bool has_shards = false, has_shard = false;
    int failed = read_number(reader, "shards", &has_shards, &config->n_shards);

    if (failed == 0)
        failed = read_number(reader, "shard", &has_shard, &config->shard);
    if (failed < 0)
        return failed;
    if (has_shards != has_shard)
        return complain(reader, has_shards ? "shards" : "shard",
                        "both are needed, shards, how many there are, and shard, which one this "
                        "is, from 0: $(POD_INDEX), say");
    if (has_shards && kinf__shard_check(config->n_shards, config->shard, &why) < 0)
        return complain(reader,
                        config->n_shards == 0 || config->n_shards > KINF_SHARDS_MAX ? "shards"
                                                                                    : "shard",
                        why.message);
    return 0;
}

static int read_by(const struct kinf__config_reader *reader, struct kinf__shard_config *config)
{
    const char *by = NULL;
    int failed = kinf__yaml_read_string(reader->yaml, reader->mapping, "shardBy", &by, reader->err);

    if (failed < 0 || by == NULL)
        return failed;
    if (strcmp(by, "uid") != 0 && strcmp(by, "namespace") != 0)
        return complain(reader, "shardBy", "uid or namespace expected");
    if (config->n_shards == 0)
        return complain(reader, "shardBy", "needs shards");
    config->by = strcmp(by, "uid") == 0 ? KINF_SHARD_BY_UID : KINF_SHARD_BY_NAMESPACE;
    return 0;
}

/* As the API server names Leases: DNS labels with dots between them. */
static bool is_lease_name(const char *name)
{
    static const char *const wrong[] = { "..", ".-", "-." };
    size_t len = strlen(name);

    for (size_t i = 0; i < KINF__ARRAY_LEN(wrong); i++) {
        if (strstr(name, wrong[i]) != NULL)
            return false;
    }
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len &&
           strchr("-.", name[0]) == NULL && strchr("-.", name[len - 1]) == NULL;
}

/* NAME or NAMESPACE/NAME */
static int read_lease(const struct kinf__config_reader *reader, struct kinf__shard_config *config)
{
    struct kinf_error why = KINF_ERROR_INIT;
    int failed = kinf__config_read_expanded(reader, "lease", &config->lease);
    char *slash;

    if (failed < 0 || config->lease == NULL)
        return failed;
    slash = strchr(config->lease, '/');
    if (slash != NULL) {
        config->lease_name_space = strndup(config->lease, (size_t)(slash - config->lease));
        memmove(config->lease, slash + 1, strlen(slash + 1) + 1);
        if (config->lease_name_space == NULL)
            return kinf__error_no_memory(reader->err);
    }
    if ((slash != NULL && kinf__name_check_namespace(config->lease_name_space, &why) < 0) ||
        kinf__name_check_segment(config->lease, &why) < 0)
        return complain(reader, "lease", why.message);
    if (!is_lease_name(config->lease))
        return complain(reader, "lease", "a name of small letters, digits, '-' and '.' expected");
    if (strlen(config->lease) > LEASE_NAME_MAX)
        return complain(reader, "lease", "a name of at most 63 bytes expected");
    return 0;
}

int kinf__shard_config_read(const struct kinf__config_reader *reader,
                            struct kinf__shard_config *config)
{
    int failed = read_shard(reader, config);

    if (failed == 0)
        failed = read_by(reader, config);
    return failed < 0 ? failed : read_lease(reader, config);
}

void kinf__shard_config_release(struct kinf__shard_config *config)
{
    free(config->lease);
    free(config->lease_name_space);
}

bool kinf__shard_config_equal(const struct kinf__shard_config *a,
                              const struct kinf__shard_config *b)
{
    return a->n_shards == b->n_shards && a->shard == b->shard && a->by == b->by &&
           kinf__text_equal(a->lease, b->lease) &&
           kinf__text_equal(a->lease_name_space, b->lease_name_space);
}

int kinf__shard_config_apply(const struct kinf__shard_config *config,
                             struct kinf__resource_config *resource, struct kinf_error *err)
{
    char text[KINF_SHARD_SELECTOR_SIZE];

    if (config->n_shards == 0 || resource->shard_selector != NULL)
        return 0;
    if (kinf_shard_selector(config->by, config->n_shards, config->shard, text, err) < 0)
        return KINF_ERR_INVALID;
    resource->shard_selector = strdup(text);
    return resource->shard_selector != NULL ? 0 : kinf__error_no_memory(err);
}
