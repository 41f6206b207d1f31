/*
 * A connection to a NATS server. See link.h.
 *
 * Acknowledgements are read here and not by the library's asynchronous publishing: that would call
 * back on threads of its own, which might do so after the plugin is closed.
 */
#include "link.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "fail.h"

#define WAIT_MS     1000 /* of each request */
#define SLICE_MS    200
#define PATIENCE_MS 5000 /* nothing came for so long */
#define CLAIM_KEY   "_writer"
/* Room in a message for its headers, and for what a line says besides the object. */
#define RESERVED 8192

#define NO_MEMORY(err) fail(err, KINF_ERR_NO_MEMORY, "no memory")

/* --- failures --- */

static enum kinf_errc code_of(natsStatus status)
{
    switch (status) {
    case NATS_NO_MEMORY:
        return KINF_ERR_NO_MEMORY;
    case NATS_TIMEOUT:
        return KINF_ERR_TIMEOUT;
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED:
        return KINF_ERR_FORBIDDEN;
    case NATS_SSL_ERROR:
    case NATS_SECURE_CONNECTION_REQUIRED:
    case NATS_SECURE_CONNECTION_WANTED:
        return KINF_ERR_TLS;
    case NATS_ERR: /* an answer that says so */
        return KINF_ERR_SERVER;
    default:
        return KINF_ERR_NETWORK;
    }
}

/* Returns 0 if it went well. */
static int check(natsStatus status, const char *what, struct kinf_error *err)
{
    const char *detail = status != NATS_OK ? nats_GetLastError(NULL) : NULL;

    if (status == NATS_OK) {
        return 0;
    }
    detail = detail != NULL ? detail : "";
    return fail(err, code_of(status), "%s: %s%s%s", what, natsStatus_GetText(status),
                detail[0] != '\0' ? ": " : "", detail);
}

static bool is_ending(const struct link *link)
{
    struct pollfd stop = { .fd = link->host->stop_fd(link->host), .events = POLLIN };

    return poll(&stop, 1, 0) > 0;
}

/* For what waits in slices; `silent_ms` is how long already. */
static int check_patience(const struct link *link, int64_t silent_ms, struct kinf_error *err)
{
    if (is_ending(link)) {
        return fail(err, KINF_ERR_STOPPED, "it is to end");
    }
    return silent_ms < PATIENCE_MS ? 0 : fail(err, KINF_ERR_TIMEOUT, "the NATS server is silent");
}

/* The next message of a subscription, of which one is due. */
static int next_message(const struct link *link, natsSubscription *from, natsMsg **ret_message,
                        struct kinf_error *err)
{
    natsStatus status = NATS_TIMEOUT;
    int rc = 0;

    for (int64_t silent_ms = 0; rc == 0 && status == NATS_TIMEOUT; silent_ms += SLICE_MS) {
        status = natsSubscription_NextMsg(ret_message, from, SLICE_MS);
        rc = status == NATS_TIMEOUT ? check_patience(link, silent_ms, err)
                                    : check(status, "the connection", err);
    }
    return status == NATS_NO_RESPONDERS
               ? fail(err, KINF_ERR_NOT_FOUND, "the stream or the bucket is gone")
               : rc;
}

/* --- writing --- */

natsMsg *link_message(const struct link *link, const struct lane *lane, const char *key,
                      const char *payload, size_t len)
{
    natsMsg *message = NULL;
    char *subject;

    if (asprintf(&subject, "%s%s", lane->prefix, key) < 0) {
        return NULL;
    }
    if (natsMsg_Create(&message, subject, link->inbox, payload, (int)len) == NATS_OK &&
        natsMsgHeader_Set(message, "Nats-Expected-Stream", lane->stream) != NATS_OK) {
        natsMsg_Destroy(message);
        message = NULL;
    }
    free(subject);
    return message;
}

int link_send(struct link *link, struct lane *lane, natsMsg *message, const char *what,
              struct kinf_error *err)
{
    natsStatus s;
    char *id;

    if (asprintf(&id, "%s/%llu.%llu", what, (unsigned long long)lane->claim,
                 (unsigned long long)++lane->n_sent) < 0) {
        id = NULL;
    }
    s = id != NULL ? natsMsgHeader_Set(message, "Nats-Msg-Id", id) : NATS_NO_MEMORY;
    if (s == NATS_OK && lane->last_id != NULL) {
        s = natsMsgHeader_Set(message, "Nats-Expected-Last-Msg-Id", lane->last_id);
    }
    s = s != NATS_OK ? s : natsConnection_PublishMsg(link->connection, message);
    if (s == NATS_OK) {
        free(lane->last_id);
        lane->last_id = id;
        id = NULL;
        link->n_unacknowledged++;
    }
    free(id);
    natsMsg_Destroy(message);
    return check(s, lane->stream, err);
}

/* {"stream":"NAME","seq":7}, with "duplicate":true if that is another one, or
 * {"error":{"description":"why"}} */
static int parse_ack(natsMsg *message, uint64_t *ret_sequence, struct kinf_error *err)
{
    cJSON *ack =
        cJSON_ParseWithLength(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message));
    const cJSON *sequence = cJSON_GetObjectItem(ack, "seq");
    const char *problem =
        cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(ack, "error"), "description"));
    int rc = 0;

    if (cJSON_IsTrue(cJSON_GetObjectItem(ack, "duplicate"))) {
        problem = "it was taken for another of its id";
    }
    if (problem != NULL || !cJSON_IsNumber(sequence)) {
        rc = fail(err, KINF_ERR_SERVER, "a message was refused: %s",
                  problem != NULL ? problem : "without a reason");
    } else {
        *ret_sequence = (uint64_t)sequence->valuedouble;
    }
    cJSON_Delete(ack);
    return rc;
}

static int take_ack(struct link *link, uint64_t *ret_sequence, struct kinf_error *err)
{
    natsMsg *message = NULL;
    int rc = next_message(link, link->acks, &message, err);

    if (rc == 0) {
        link->n_unacknowledged--;
        rc = parse_ack(message, ret_sequence, err);
    }
    natsMsg_Destroy(message);
    return rc;
}

int link_wait(struct link *link, struct kinf_error *err)
{
    uint64_t sequence;
    int rc = 0;

    while (rc == 0 && link->n_unacknowledged > 0) {
        rc = take_ack(link, &sequence, err);
    }
    return rc;
}

size_t link_max_payload(const struct link *link)
{
    int64_t max = natsConnection_GetMaxPayload(link->connection);

    return max > RESERVED ? (size_t)max - RESERVED : 0;
}

/* --- reading --- */

/* NULL: there is none. */
static const char *header(natsMsg *message, const char *name)
{
    const char *value = NULL;

    return natsMsgHeader_Get(message, name, &value) == NATS_OK ? value : NULL;
}

static const char *header_or_empty(natsMsg *message, const char *name)
{
    const char *value = header(message, name);

    return value != NULL ? value : "";
}

static uint64_t sequence_of(natsMsg *message)
{
    jsMsgMetaData *metadata = NULL;
    uint64_t sequence = 0;

    if (natsMsg_GetMetaData(&metadata, message) == NATS_OK) {
        sequence = metadata->Sequence.Stream;
    }
    jsMsgMetaData_Destroy(metadata);
    return sequence;
}

static int hand_out(const struct lane *lane, natsMsg *message, link_read_cb *on_key, void *ctx)
{
    const struct link_last last = {
        .key = natsMsg_GetSubject(message) + strlen(lane->prefix),
        .version = header_or_empty(message, LINK_VERSION_HEADER),
        .content = header_or_empty(message, LINK_CONTENT_HEADER),
        .is_gone = header(message, LINK_KV_HEADER) != NULL ||
                   strcmp(header_or_empty(message, LINK_TYPE_HEADER), LINK_TYPE_DELETED) == 0,
    };

    return strcmp(last.key, CLAIM_KEY) == 0 ? 0 : on_key(&last, ctx);
}

static natsStatus subscribe(const struct link *link, const struct lane *lane,
                            natsSubscription **ret_from)
{
    char subject[512];
    jsSubOptions options;
    natsStatus s;

    snprintf(subject, sizeof subject, "%s>", lane->prefix);
    jsSubOptions_Init(&options);
    options.Stream = lane->stream;
    options.Ordered = true;
    options.Config.DeliverPolicy = js_DeliverLastPerSubject;
    options.Config.HeadersOnly = true;
    s = js_SubscribeSync(ret_from, link->js, subject, NULL, &options, NULL);
    /* How much is on its way the ordered consumer bounds by itself. */
    return s != NATS_OK ? s : natsSubscription_SetPendingLimits(*ret_from, -1, -1);
}

int link_read(struct link *link, struct lane *lane, link_read_cb *on_key, void *ctx,
              struct kinf_error *err)
{
    natsSubscription *from = NULL;
    int rc = check_patience(link, 0, err);

    rc = rc != 0 ? rc : check(subscribe(link, lane, &from), lane->stream, err);
    /* The claim is behind all that others could write. */
    for (uint64_t sequence = 0; rc == 0 && sequence < lane->claim;) {
        natsMsg *message = NULL;

        rc = check_patience(link, 0, err);
        rc = rc != 0 ? rc : next_message(link, from, &message, err);
        if (rc == 0 && hand_out(lane, message, on_key, ctx) != 0) {
            rc = NO_MEMORY(err);
        }
        sequence = message != NULL ? sequence_of(message) : 0;
        natsMsg_Destroy(message);
    }
    natsSubscription_Destroy(from);
    return rc;
}

int link_read_one(const struct link *link, const struct lane *lane, const char *key,
                  char **ret_payload, struct kinf_error *err)
{
    int rc = check_patience(link, 0, err);
    natsMsg *message = NULL;
    natsStatus s;
    char *subject;

    if (rc != 0) {
        return rc;
    }
    if (asprintf(&subject, "%s%s", lane->prefix, key) < 0) {
        return NO_MEMORY(err);
    }
    s = js_GetLastMsg(&message, link->js, lane->stream, subject, NULL, NULL);
    free(subject);
    if (s == NATS_OK) {
        *ret_payload = strndup(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message));
        rc = *ret_payload != NULL ? 0 : NO_MEMORY(err);
    } else if (s != NATS_NOT_FOUND) {
        rc = check(s, lane->stream, err);
    }
    natsMsg_Destroy(message);
    return rc;
}

/* --- opening --- */

static natsStatus set_options(natsOptions *options, const struct nats_config *config,
                              const char *server)
{
    /* By itself libnats would go on without, with a password, if the server does not offer it. */
    bool has_tls = config->ca_file != NULL || config->cert_file != NULL ||
                   strcasestr(server, "tls://") != NULL;
    natsStatus s = natsOptions_SetURL(options, server);

    s = s != NATS_OK ? s : natsOptions_SetName(options, "kinformer");
    s = s != NATS_OK ? s : natsOptions_SetTimeout(options, WAIT_MS);
    s = s != NATS_OK ? s : natsOptions_SetWriteDeadline(options, WAIT_MS);
    s = s != NATS_OK ? s : natsOptions_SetAllowReconnect(options, false);
    s = s != NATS_OK ? s : natsOptions_SetFailRequestsOnDisconnect(options, true);
    if (s == NATS_OK && config->credentials != NULL) {
        s = natsOptions_SetUserCredentialsFromFiles(options, config->credentials, NULL);
    }
    if (s == NATS_OK && has_tls) {
        s = natsOptions_SetSecure(options, true);
    }
    if (s == NATS_OK && config->ca_file != NULL) {
        s = natsOptions_LoadCATrustedCertificates(options, config->ca_file);
    }
    if (s == NATS_OK && config->cert_file != NULL) {
        s = natsOptions_LoadCertificatesChain(options, config->cert_file, config->key_file);
    }
    return s;
}

static int connect_to(struct link *link, const struct nats_config *config, const char *server,
                      struct kinf_error *err)
{
    natsOptions *options = NULL;
    natsStatus s = natsOptions_Create(&options);
    jsOptions js_options;

    s = s != NATS_OK ? s : set_options(options, config, server);
    s = s != NATS_OK ? s : natsConnection_Connect(&link->connection, options);
    natsOptions_Destroy(options);
    s = s != NATS_OK ? s : jsOptions_Init(&js_options);
    js_options.Wait = WAIT_MS;
    s = s != NATS_OK ? s : natsConnection_JetStream(&link->js, link->connection, &js_options);
    s = s != NATS_OK ? s : natsInbox_Create(&link->inbox);
    s = s != NATS_OK ? s : natsConnection_SubscribeSync(&link->acks, link->connection, link->inbox);
    return check(s, "connecting", err);
}

static natsStatus make_stream(const struct link *link, const struct nats_config *config)
{
    char subject[512];
    const char *subjects[] = { subject };
    jsStreamConfig stream;

    snprintf(subject, sizeof subject, "%s>", link->events.prefix);
    jsStreamConfig_Init(&stream);
    stream.Name = link->events.stream;
    stream.Subjects = subjects;
    stream.SubjectsLen = 1;
    stream.Duplicates = config->duplicate_window_s * INT64_C(1000000000);
    stream.MaxAge = config->max_age_s * INT64_C(1000000000);
    stream.MaxBytes = config->max_bytes > 0 ? config->max_bytes : -1;
    stream.Replicas = config->replicas;
    return js_AddStream(NULL, link->js, &stream, NULL, NULL);
}

static natsStatus make_bucket(const struct link *link, const struct nats_config *config)
{
    kvStore *store = NULL;
    kvConfig bucket;
    natsStatus s;

    kvConfig_Init(&bucket);
    bucket.Bucket = config->bucket;
    bucket.Replicas = (int)config->replicas;
    s = js_CreateKeyValue(&store, link->js, &bucket);
    kvStore_Destroy(store);
    return s;
}

typedef natsStatus make_cb(const struct link *link, const struct nats_config *config);

static int ensure(const struct link *link, const struct lane *lane, make_cb *make,
                  const struct nats_config *config, struct kinf_error *err)
{
    jsStreamInfo *stream = NULL;
    natsStatus s = js_GetStreamInfo(&stream, link->js, lane->stream, NULL, NULL);

    jsStreamInfo_Destroy(stream);
    if (s == NATS_NOT_FOUND) {
        s = make(link, config);
    }
    return check(s, lane->stream, err);
}

static int claim(struct link *link, struct lane *lane, struct kinf_error *err)
{
    natsMsg *message = link_message(link, lane, CLAIM_KEY, NULL, 0);
    int rc;

    /* For key-value clients there is nothing of this name. */
    if (message == NULL || natsMsgHeader_Set(message, LINK_KV_HEADER, LINK_KV_DELETE) != NATS_OK) {
        natsMsg_Destroy(message);
        return NO_MEMORY(err);
    }
    rc = link_send(link, lane, message, link->inbox, err);
    return rc != 0 ? rc : take_ack(link, &lane->claim, err);
}

int link_open(struct link *link, const struct nats_config *config, const char *server,
              struct kinf_error *err)
{
    struct lane *lanes[] = { &link->events, &link->bucket };
    int rc;

    if (asprintf(&link->events.stream, "%s", config->stream) < 0 ||
        asprintf(&link->events.prefix, "%s.", config->subject_prefix) < 0 ||
        asprintf(&link->bucket.stream, "KV_%s", config->bucket) < 0 ||
        asprintf(&link->bucket.prefix, "$KV.%s.", config->bucket) < 0) {
        return NO_MEMORY(err);
    }
    rc = check_patience(link, 0, err);
    rc = rc != 0 ? rc : connect_to(link, config, server, err);
    for (size_t i = 0; rc == 0 && i < 2; i++) {
        rc = check_patience(link, 0, err);
        rc = rc != 0 ? rc : ensure(link, lanes[i], i == 0 ? make_stream : make_bucket, config, err);
        rc = rc != 0 ? rc : claim(link, lanes[i], err);
    }
    return rc;
}

static void release_lane(struct lane *lane)
{
    free(lane->stream);
    free(lane->prefix);
    free(lane->last_id);
    *lane = (struct lane){ 0 };
}

void link_close(struct link *link)
{
    natsSubscription_Destroy(link->acks);
    natsInbox_Destroy(link->inbox);
    jsCtx_Destroy(link->js);
    natsConnection_Destroy(link->connection);
    release_lane(&link->events);
    release_lane(&link->bucket);
    *link = (struct link){ .host = link->host };
}
