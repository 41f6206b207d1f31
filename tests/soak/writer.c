/*
 * A thread for some of the objects each, with connections of libcurl.
 */
#include "soak/writer.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "soak/history.h"
#include "soak/verdict.h"

#define N_WRITERS         4 /* the last one writes through the sidecar, if there is one */
#define PODS              0 /* in soak_types */
#define PAD_MAX           600
#define RETRY_NS          20000000
#define SETTLE_NS         999000000
#define SESSION_TIMEOUT_S 30L

struct answer {
    char *bytes;
    size_t len;
    long status; /* 0: there was none */
};

struct site {
    CURL *curl;
    const char *url;
    struct curl_slist *json, *merge;
    struct answer answer;
};

struct writer {
    pthread_t thread;
    unsigned number;
    uint64_t random;
    struct site server, sidecar; /* of the last writer; curl NULL: the others have none */
};

static struct writer_options options;
static struct writer writers[N_WRITERS];
static struct site lists[2];                 /* of the server, of the sidecar */
static _Atomic(unsigned) judged_types = ~0u; /* bits */
static _Atomic(uint64_t) n_failed, n_sessions, n_unread, n_judged;

/* Who may write: `n_busy` do. */
static pthread_mutex_t pace_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pace_changed = PTHREAD_COND_INITIALIZER;
static bool is_paused = true;
static unsigned n_busy;
static unsigned pace_rate;

/* --- requests --- */

static size_t take(char *bytes, size_t size, size_t n, void *ctx)
{
    struct answer *answer = ctx;

    answer->bytes = realloc(answer->bytes, answer->len + size * n + 1);
    if (answer->bytes == NULL)
        abort();
    memcpy(answer->bytes + answer->len, bytes, size * n);
    answer->len += size * n;
    return size * n;
}

static void open_site(struct site *site, const char *url, bool is_server)
{
    char token[200];

    site->curl = curl_easy_init();
    site->url = url;
    site->json = curl_slist_append(NULL, "Content-Type: application/json");
    site->merge = curl_slist_append(NULL, "Content-Type: application/merge-patch+json");
    if (site->curl == NULL || site->json == NULL || site->merge == NULL)
        abort();
    if (!is_server) {
        snprintf(token, sizeof token, "Authorization: Bearer %s", options.token);
        curl_slist_append(site->json, token);
        curl_slist_append(site->merge, token);
    }
    curl_easy_setopt(site->curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(site->curl, CURLOPT_WRITEDATA, &site->answer);
    curl_easy_setopt(site->curl, CURLOPT_USERAGENT, "soak-writer");
    curl_easy_setopt(site->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(site->curl, CURLOPT_CONNECTTIMEOUT, 5L);
    if (!is_server) {
        curl_easy_setopt(site->curl, CURLOPT_TIMEOUT, SESSION_TIMEOUT_S);
        return;
    }
    if (options.unix_socket != NULL)
        curl_easy_setopt(site->curl, CURLOPT_UNIX_SOCKET_PATH, options.unix_socket);
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(site->curl, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* the file changes */
#endif
    if (options.authority != NULL)
        curl_easy_setopt(site->curl, CURLOPT_CAINFO, options.authority);
    if (options.certificate != NULL) {
        curl_easy_setopt(site->curl, CURLOPT_SSLCERT, options.certificate);
        curl_easy_setopt(site->curl, CURLOPT_SSLKEY, options.key);
    }
}

/* The answer is the site's until its next request. */
static struct answer *ask(struct site *site, const char *method, const char *target,
                          const char *body)
{
    bool is_patch = strcmp(method, "PATCH") == 0;
    char url[400];

    snprintf(url, sizeof url, "%s%s", site->url, target);
    site->answer.len = 0;
    site->answer.status = 0;
    curl_easy_setopt(site->curl, CURLOPT_URL, url);
    curl_easy_setopt(site->curl, CURLOPT_HTTPHEADER, is_patch ? site->merge : site->json);
    curl_easy_setopt(site->curl, CURLOPT_HTTPGET, 1L);
    if (body != NULL)
        curl_easy_setopt(site->curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(site->curl, CURLOPT_CUSTOMREQUEST, method);
    if (curl_easy_perform(site->curl) == CURLE_OK)
        curl_easy_getinfo(site->curl, CURLINFO_RESPONSE_CODE, &site->answer.status);
    return &site->answer;
}

static struct kinf_str body_of(const struct answer *answer)
{
    return (struct kinf_str){ answer->bytes, answer->len };
}

/* --- what is written --- */

static uint64_t draw(struct writer *writer, uint64_t n)
{
    writer->random ^= writer->random << 13;
    writer->random ^= writer->random >> 7;
    writer->random ^= writer->random << 17;
    return writer->random % n;
}

static void target_of(uint64_t id, bool is_named, const char *query, char *buf, size_t size)
{
    const struct soak_type *type = &soak_types[soak_type_of(id)];
    int len = snprintf(buf, size, "%s/namespaces/soak-%u/%s", type->path, soak_namespace_of(id),
                       type->plural);

    if (is_named)
        snprintf(buf + len, size - (size_t)len, "/o-%u%s", soak_name_of(id), query);
}

/* What a type has besides metadata; `is_new`: what cannot be changed later, too. */
static void write_spec(struct writer *writer, unsigned type, bool is_new, char *buf, size_t size)
{
    unsigned n = (unsigned)draw(writer, 1000000);

    buf[0] = '\0';
    if (type == 0 && is_new)
        snprintf(buf, size,
                 ",\"spec\":{\"nodeName\":\"node-%u\",\"containers\":[{\"name\":\"c\",\"image\":"
                 "\"i\"}]}",
                 n % 20);
    else if (type == 1 && is_new)
        snprintf(buf, size,
                 ",\"spec\":{\"replicas\":%u,\"selector\":{\"matchLabels\":{\"a\":\"b\"}},"
                 "\"template\":{\"metadata\":"
                 "{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
                 "\"i\"}]}}}",
                 n % 100);
    else if (type == 1)
        snprintf(buf, size, ",\"spec\":{\"replicas\":%u}", n % 100);
    else if (type == 2)
        snprintf(buf, size, ",\"spec\":{\"size\":%u,\"text\":\"\\u00fc%u\\\"\\\\{\"}", n, n);
    else if (type == 3)
        snprintf(buf, size,
                 ",\"spec\":{\"holderIdentity\":\"h%u\",\"leaseDurationSeconds\":15,"
                 "\"renewTime\":\"2026-01-01T00:00:00.%06uZ\"}",
                 n % 3, n);
}

static void write_body(struct writer *writer, uint64_t id, bool is_new, char *buf, size_t size)
{
    const struct soak_type *type = &soak_types[soak_type_of(id)];
    char whole[120] = "", name[32] = "", pad[PAD_MAX + 1], spec[400];
    size_t pad_len = draw(writer, 10) == 0 ? draw(writer, PAD_MAX) : draw(writer, 20);

    memset(pad, 'x', pad_len);
    pad[pad_len] = '\0';
    if (is_new) {
        /* Behind "/api/" or "/apis/"; of a custom resource kube-apiserver asks for both. */
        snprintf(whole, sizeof whole, "\"apiVersion\":\"%s\",\"kind\":\"%s\",",
                 strchr(type->path + 1, '/') + 1, type->kind);
        snprintf(name, sizeof name, "\"name\":\"o-%u\",", soak_name_of(id));
    }
    write_spec(writer, soak_type_of(id), is_new, spec, sizeof spec);
    snprintf(buf, size,
             "{%s\"metadata\":{%s\"labels\":{\"app\":\"a%u\"},\"annotations\":{\"n\":\"%llu\","
             "\"pad\":\"%s\"}}%s}",
             whole, name, (unsigned)draw(writer, 8), (unsigned long long)draw(writer, UINT32_MAX),
             pad, spec);
}

/* --- one write --- */

/* The object is not there; a 404 without details says that of the path, and nothing of the object. */
static bool is_not_found(const struct answer *answer)
{
    struct kinf_str details;

    return answer->status == 404 && text_member(body_of(answer), "details", &details);
}

/* Whether it is known now how the object is. A write to one that is being deleted may end it, whatever
 * the answer says: `is_read` is what believes all of them. */
static bool note(uint64_t id, const struct answer *answer, bool is_deletion, bool is_read)
{
    struct version version = { 0, 0, 0 };
    struct identity identity;
    bool has_object = text_read_object(body_of(answer), &version, &identity);
    bool is_gone = is_not_found(answer) || (is_deletion && answer->status == 200);

    if (!is_gone && (!has_object || (answer->status != 200 && answer->status != 201) ||
                     (identity.is_being_deleted && !is_read)))
        return false;
    history_lock();
    if (is_gone && soak_type_of(id) == PODS) /* it is marked as deleted first */
        history_note_marked(id, answer->status == 200 && has_object ? version.sum : 0);
    if (is_gone)
        history_note_gone(id, 0); /* not all answers say at which version */
    else
        history_note(id, &version);
    history_unlock();
    return true;
}

/* Asks the server until it says how the object is. A write that the sidecar had passed on when it was
 * killed may wait at a server that is halted: the first answer says that it runs, and then it has time
 * for what waited. */
static void find_out(struct writer *writer, uint64_t id)
{
    const struct timespec pause = { 0, RETRY_NS }, settling = { 0, SETTLE_NS };
    char target[200];

    n_failed++;
    target_of(id, true, "", target, sizeof target);
    if (writer->sidecar.curl != NULL) {
        while (ask(&writer->server, "GET", target, NULL)->status == 0)
            nanosleep(&pause, NULL);
        nanosleep(&settling, NULL);
    }
    while (!note(id, ask(&writer->server, "GET", target, NULL), false, true))
        nanosleep(&pause, NULL);
}

/* What the sidecar answers must be the newest state, since nobody else writes the object. */
static void read_session(struct writer *writer, uint64_t id)
{
    struct version version = { 0, 0, 0 };
    struct identity identity;
    const struct soak_entry *live;
    const struct answer *answer;
    char target[200];
    bool is_right, is_judged;

    target_of(id, true, "", target, sizeof target);
    answer = ask(&writer->sidecar, "GET", target, NULL);
    n_sessions++;
    if (answer->status != 200 && answer->status != 404) {
        n_unread++;
        return;
    }
    if (answer->status == 200)
        text_read_object(body_of(answer), &version, &identity);
    history_lock();
    live = history_live(id);
    is_right = live == NULL
                   ? answer->status == 404
                   : answer->status == 200 && memcmp(&live->version, &version, sizeof version) == 0;
    is_judged = (judged_types >> soak_type_of(id) & 1) != 0;
    n_judged += is_judged;
    if (!is_right && is_judged)
        verdict_diverges("session", "%s: written at %llu, answered %ld at %llu", soak_describe(id),
                         (unsigned long long)(live != NULL ? live->version.rv : 0), answer->status,
                         (unsigned long long)version.rv);
    history_unlock();
}

static const struct answer *send_write(struct writer *writer, struct site *site, uint64_t id,
                                       bool is_there, bool is_deletion)
{
    char target[200], body[PAD_MAX + 1000];

    target_of(id, is_there, is_deletion ? "?gracePeriodSeconds=0" : "", target, sizeof target);
    if (is_deletion)
        return ask(site, "DELETE", target, NULL);
    write_body(writer, id, !is_there, body, sizeof body);
    return ask(site, is_there ? "PATCH" : "POST", target, body);
}

static void write_one(struct writer *writer, uint64_t id)
{
    struct site *site = writer->sidecar.curl != NULL ? &writer->sidecar : &writer->server;
    bool is_there, is_deletion;

    history_lock();
    is_there = history_live(id) != NULL;
    history_begin(id);
    history_unlock();
    is_deletion = is_there && draw(writer, 8) == 0;
    if (!note(id, send_write(writer, site, id, is_there, is_deletion), is_deletion, false))
        find_out(writer, id);
    else if (site == &writer->sidecar)
        read_session(writer, id);
}

/* --- the threads --- */

static uint64_t choose(struct writer *writer)
{
    uint64_t dice = draw(writer, 100), id;
    unsigned type = 0;

    for (; dice >= soak_types[type].weight; type++)
        dice -= soak_types[type].weight;
    do
        id = draw(writer, soak_n_objects());
    while (soak_type_of(id) != type || id % N_WRITERS != writer->number);
    return id;
}

/* Waits for its turn; returns with a place among the busy. */
static void begin(int64_t *next_us)
{
    struct timespec until;
    int64_t now_us;

    pthread_mutex_lock(&pace_lock);
    while (is_paused)
        pthread_cond_wait(&pace_changed, &pace_lock);
    n_busy++;
    now_us = soak_now_ms() * 1000;
    if (*next_us < now_us - 1000000 || pace_rate == 0)
        *next_us = now_us;
    if (pace_rate != 0)
        *next_us += (int64_t)N_WRITERS * 1000000 / pace_rate;
    pthread_mutex_unlock(&pace_lock);
    if (*next_us <= now_us)
        return;
    until = (struct timespec){ 0, 0 };
    until.tv_sec = (*next_us - now_us) / 1000000;
    until.tv_nsec = (*next_us - now_us) % 1000000 * 1000;
    nanosleep(&until, NULL);
}

static void end(void)
{
    pthread_mutex_lock(&pace_lock);
    n_busy--;
    pthread_mutex_unlock(&pace_lock);
}

static void *write_on(void *ctx)
{
    struct writer *writer = ctx;
    int64_t next_us = 0;

    for (;;) {
        begin(&next_us);
        write_one(writer, choose(writer));
        end();
    }
    return NULL;
}

void writers_start(const struct writer_options *given)
{
    options = *given;
    signal(SIGPIPE, SIG_IGN); /* which libcurl leaves to us, as threads do not change signals */
    curl_global_init(CURL_GLOBAL_DEFAULT);
    open_site(&lists[0], options.server, true);
    if (options.sidecar != NULL)
        open_site(&lists[1], options.sidecar, false);
    for (unsigned i = 0; i < N_WRITERS; i++) {
        struct writer *writer = &writers[i];

        writer->number = i;
        writer->random = (options.seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + i;
        open_site(&writer->server, options.server, true);
        if (options.sidecar != NULL && i == N_WRITERS - 1)
            open_site(&writer->sidecar, options.sidecar, false);
        if (pthread_create(&writer->thread, NULL, write_on, writer) != 0)
            abort();
    }
}

void writers_go(unsigned rate)
{
    pthread_mutex_lock(&pace_lock);
    pace_rate = rate;
    is_paused = false;
    pthread_cond_broadcast(&pace_changed);
    pthread_mutex_unlock(&pace_lock);
}

void writers_pause(void)
{
    pthread_mutex_lock(&pace_lock);
    is_paused = true;
    pthread_mutex_unlock(&pace_lock);
}

bool writers_are_idle(void)
{
    bool are_idle;

    pthread_mutex_lock(&pace_lock);
    are_idle = is_paused && n_busy == 0;
    pthread_mutex_unlock(&pace_lock);
    return are_idle;
}

void writers_judge_sessions(unsigned types)
{
    judged_types = types;
}

struct writer_counts writers_counts(void)
{
    return (struct writer_counts){ n_failed, n_sessions, n_unread, n_judged };
}

bool writers_list(bool by_sidecar, const char *target, writers_item_cb *callback, void *ctx)
{
    struct site *site = &lists[by_sidecar];
    const struct answer *answer = ask(site, "GET", target, NULL);
    struct kinf_str items, item;

    if (answer->status != 200 || !text_member(body_of(answer), "items", &items))
        return false;
    while (text_next_item(&items, &item))
        callback(item, ctx);
    return true;
}
