/*
 * A server on loopback that plays API answers by a script: recorded ones byte by byte, written
 * ones, generated ones, with stalls and cuts wherever the script says. README.md has the script's
 * syntax.
 *
 * Threads: any thread, unless a line says otherwise.
 */
#ifndef KINF_TESTS_REPLAY_REPLAY_H
#define KINF_TESTS_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>

struct kinf__key_pair; /* sim/key_pair.h */
struct replay;

/* Signals are numbered from 1 to this. */
#define REPLAY_MAX_SIGNAL 15

/* As fast as the client reads. */
#define REPLAY_SATURATED UINT64_MAX

/* Pods made of one, for benchmarks; served at /api/v1/pods behind the script's exchanges. */
struct replay_generate_options {
    const char *pod_file; /* JSON of one Pod; NULL: nothing is generated */
    unsigned n_pods;      /* at least 1 */
    size_t chunk_size;    /* of a LIST body; default 0: 16 KiB */
    /* Of a LIST; a larger one is made while it is sent, in chunks of its own; default 0: 1 GiB. */
    size_t held_list_bytes;
    bool watchlist;        /* answer sendInitialEvents with a stream; otherwise with a 422 */
    uint64_t events_per_s; /* MODIFIED events of a watch; default 0: none */
    uint64_t n_events;     /* after so many the stream falls silent; default 0: never */
    bool expires;          /* the first watch is told 410 behind its events and ends; later ones
                              are silent */
    int64_t expires_ms;    /* that long after its events */
};

/* Strings are copied or read during replay_start(). */
struct replay_options {
    const char *script;          /* default: none */
    const char *transcripts_dir; /* of recorded answers; default: "tests/data/transcripts" */
    bool plain;                  /* http instead of https */
    const struct kinf__key_pair *key_pair; /* default: one for 127.0.0.1 and localhost, made anew */
    const struct kinf__key_pair *client_authority; /* of all clients; default: none is asked for */
    int tls_version; /* OpenSSL's number of the only one; default 0: 1.2 and above */
    struct replay_generate_options generate;
};

/* Listens on 127.0.0.1 and answers until replay_stop(). Errors: KINF_ERR_PARSE (the script, with
 * its line; a transcript; the pod), KINF_ERR_CONFIG (a file that cannot be read), KINF_ERR_SYSTEM,
 * KINF_ERR_TLS, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int replay_start(const struct replay_options *options, struct replay **ret_replay,
                                 struct kinf_error *err);

/* Ends every connection at once, joins all threads, frees everything. NULL is allowed. One thread.
 */
void replay_stop(struct replay *replay);

/* --- how to reach it --- */

const char *replay_url(const struct replay *replay); /* "https://127.0.0.1:PORT" */
uint16_t replay_port(const struct replay *replay);
const char *replay_ca_pem(
    const struct replay *replay); /* "" if plain, or with a key pair that was given */

/* Writes a kubeconfig whose user has the token "replay". Errors: KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int replay_write_kubeconfig(const struct replay *replay, const char *path,
                                            struct kinf_error *err);

/* --- what it is told --- */

/* Lets one `wait SIGNAL` go on, the one that is waiting or the next one to come. */
void replay_signal(struct replay *replay, unsigned signal);

/* --- what it saw --- */

/* A request, constant and valid until replay_stop(). Those that the canned discovery answered are
 * not in the list. */
struct replay_request {
    const char *line;     /* "GET /api/v1/pods?watch=1 HTTP/1.1" */
    const char *headers;  /* each ends with CRLF */
    const char *body;     /* NULL: none */
    char client_name[64]; /* in the client's certificate; "": it showed none */
    int64_t at_ms;        /* monotonic */
    unsigned connection;  /* a number from 1 up */
    bool is_expected;     /* an exchange of the script matched */
};

/* Waits until there are more than `n` requests and returns the one with index `n`; NULL when
 * `timeout_ms` is over. */
const struct replay_request *replay_wait_request(struct replay *replay, size_t n,
                                                 int64_t timeout_ms);
size_t replay_n_requests(struct replay *replay);

/* The value of a header (any case), or of a query parameter (decoded; "" if it has none), cut to
 * `size`. Returns false if there is none. */
bool replay_request_header(const struct replay_request *request, const char *name, char *value,
                           size_t size);
bool replay_request_query(const struct replay_request *request, const char *name, char *value,
                          size_t size);

/* Requests that no exchange expected; each was answered with a 500. */
size_t replay_n_violations(struct replay *replay);

/* Waits until `n` requests were answered, as far as it goes: an answer that is silent for ever from
 * now on counts. Returns false when `timeout_ms` is over. */
bool replay_wait_answered(struct replay *replay, size_t n, int64_t timeout_ms);

/* Waits until every exchange with a bounded number of uses was used up. Returns false when
 * `timeout_ms` is over. */
bool replay_wait_used_up(struct replay *replay, int64_t timeout_ms);

/* Waits until exactly `n` connections are open. Returns false when `timeout_ms` is over. */
bool replay_wait_connections(struct replay *replay, size_t n, int64_t timeout_ms);

/* The checksum over generated pods that `kinformerd --measure` prints; 0 if there are none. */
uint64_t replay_generated_checksum(const struct replay *replay);
/* What a client of bench/ has been told when it knows the list and `n_events` events: the sum of the
 * FNV-1a 64 of "name\nuid\nresourceVersion\nphase\n" of each; the phase is empty for who does not
 * see it. 0 if there are none. */
uint64_t replay_generated_sum(const struct replay *replay, uint64_t n_events, bool has_phase);

#endif
