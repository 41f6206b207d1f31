/*
 * The plugin's part of the configuration. See config.h.
 */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "fail.h"

#define NAME_BYTES "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define MAX_COUNT  1e15
#define MAX_NAME   128
#define TOO_LONG   "is longer than 128 bytes"

/* Each returns what is wrong with a value, or NULL. */
typedef const char *check_cb(const cJSON *value, void *ret_value);

struct option {
    const char *name;
    check_cb *check;
    size_t offset; /* in struct nats_config */
};

static const char *check_servers(const cJSON *value, void *ret_value)
{
    const cJSON *server;

    cJSON_ArrayForEach(server, value)
    {
        if (!cJSON_IsString(server) || server->valuestring[0] == '\0') {
            return "is a list of URLs";
        }
    }
    *(const cJSON **)ret_value = value;
    return cJSON_IsArray(value) && value->child != NULL ? NULL : "is a list of URLs";
}

static const char *check_string(const cJSON *value, void *ret_value)
{
    *(const char **)ret_value = value->valuestring;
    return cJSON_IsString(value) && value->valuestring[0] != '\0' ? NULL : "is a string";
}

static const char *check_name(const cJSON *value, void *ret_value)
{
    const char *problem = check_string(value, ret_value);

    if (problem == NULL && value->valuestring[strspn(value->valuestring, NAME_BYTES)] != '\0') {
        problem = "has letters, digits, '-' and '_'";
    }
    return problem != NULL || strlen(value->valuestring) <= MAX_NAME ? problem : TOO_LONG;
}

static const char *check_subject(const cJSON *value, void *ret_value)
{
    const char *problem = check_string(value, ret_value), *at = value->valuestring;

    while (problem == NULL) {
        size_t len = strspn(at, NAME_BYTES);

        if (len == 0 || (at[len] != '.' && at[len] != '\0')) {
            problem = "has names of letters, digits, '-' and '_' with dots between them";
        } else if (at[len] == '\0') {
            break;
        }
        at += len + 1;
    }
    return problem != NULL || strlen(value->valuestring) <= MAX_NAME ? problem : TOO_LONG;
}

static const char *check_count(const cJSON *value, void *ret_value)
{
    if (!cJSON_IsNumber(value) || value->valuedouble < 0 || value->valuedouble > MAX_COUNT ||
        value->valuedouble != (double)(int64_t)value->valuedouble) {
        return "is a whole number";
    }
    *(int64_t *)ret_value = (int64_t)value->valuedouble;
    return NULL;
}

static const char *check_replicas(const cJSON *value, void *ret_value)
{
    return check_count(value, ret_value) == NULL && value->valuedouble >= 1 &&
                   value->valuedouble <= 5
               ? NULL
               : "is a number from 1 to 5";
}

static int64_t unit_seconds(const char *unit)
{
    return strcmp(unit, "s") == 0   ? 1
           : strcmp(unit, "m") == 0 ? 60
           : strcmp(unit, "h") == 0 ? 3600
                                    : 0;
}

static const char *check_duration(const cJSON *value, void *ret_value)
{
    const char *text = cJSON_IsString(value) ? value->valuestring : "";
    char *end;
    int64_t n = strtoll(text, &end, 10);
    int64_t seconds = unit_seconds(end);

    if (cJSON_IsNumber(value) && value->valuedouble == 0) {
        n = 0;
    } else if (text[0] < '0' || text[0] > '9' || seconds == 0 || n > 1000000) {
        return "is a duration in whole seconds, such as 90s, 10m or 24h";
    }
    *(int64_t *)ret_value = n * seconds;
    return NULL;
}

#define AT(member) offsetof(struct nats_config, member)

static const struct option OPTIONS[] = {
    { "servers", check_servers, AT(servers) },
    { "credentials", check_string, AT(credentials) },
    { "stream", check_name, AT(stream) },
    { "subjectPrefix", check_subject, AT(subject_prefix) },
    { "bucket", check_name, AT(bucket) },
    { "duplicateWindow", check_duration, AT(duplicate_window_s) },
    { "maxAge", check_duration, AT(max_age_s) },
    { "maxBytes", check_count, AT(max_bytes) },
    { "replicas", check_replicas, AT(replicas) },
    { NULL, NULL, 0 },
};
static const struct option TLS_OPTIONS[] = {
    { "caFile", check_string, AT(ca_file) },
    { "certFile", check_string, AT(cert_file) },
    { "keyFile", check_string, AT(key_file) },
    { NULL, NULL, 0 },
};

static int parse_one(struct nats_config *config, const struct option *options, const cJSON *value,
                     struct kinf_error *err)
{
    const char *problem = "is not known";

    while (options->name != NULL && strcmp(options->name, value->string) != 0) {
        options++;
    }
    if (options->name != NULL) {
        problem = options->check(value, (char *)config + options->offset);
    }
    return problem == NULL ? 0 : fail(err, KINF_ERR_CONFIG, "%s %s", value->string, problem);
}

static int parse_all(struct nats_config *config, const struct option *options, const cJSON *mapping,
                     struct kinf_error *err)
{
    const cJSON *value;
    int rc =
        cJSON_IsObject(mapping) ? 0 : fail(err, KINF_ERR_CONFIG, "what is to be a mapping is none");

    cJSON_ArrayForEach(value, mapping)
    {
        bool is_tls = rc == 0 && options == OPTIONS && strcmp(value->string, "tls") == 0;

        if (is_tls) {
            rc = parse_all(config, TLS_OPTIONS, value, err);
        } else if (rc == 0) {
            rc = parse_one(config, options, value, err);
        }
    }
    return rc;
}

static int check_all(const struct nats_config *config, struct kinf_error *err)
{
    const char *problem = NULL;

    if (config->servers == NULL) {
        problem = "there are no servers";
    } else if ((config->cert_file == NULL) != (config->key_file == NULL)) {
        problem = "of certFile and keyFile one is missing";
    } else if (config->max_age_s > 0 && config->duplicate_window_s > config->max_age_s) {
        problem = "duplicateWindow is longer than maxAge"; /* which the server would refuse */
    }
    return problem == NULL ? 0 : fail(err, KINF_ERR_CONFIG, "%s", problem);
}

int nats_config_parse(const char *text, struct nats_config *ret_config, struct kinf_error *err)
{
    struct nats_config config = {
        .tree = cJSON_Parse(text),
        .stream = "KINFORMER",
        .subject_prefix = "kinformer",
        .bucket = "kinformer",
        .max_age_s = 24 * 3600,
        .replicas = 1,
    };
    int rc = 0;

    if (config.tree == NULL) {
        rc = fail(err, KINF_ERR_NO_MEMORY, "no memory"); /* the host's is always JSON */
    } else if (!cJSON_IsNull(config.tree)) {
        rc = parse_all(&config, OPTIONS, config.tree, err);
    }
    if (rc != 0 || (rc = check_all(&config, err)) != 0) {
        nats_config_release(&config);
        return rc;
    }
    *ret_config = config;
    return 0;
}

void nats_config_release(struct nats_config *config)
{
    cJSON_Delete(config->tree);
}
