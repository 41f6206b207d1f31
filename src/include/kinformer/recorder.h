/*
 * Events: what a controller tells people about an object, for `kubectl describe` and `kubectl get
 * events`.
 *
 * kinf_recorder_event() never blocks: a thread of the recorder's own sends. What waits is bounded;
 * what is too much is dropped and counted, and so is what the server refuses (no rights, a namespace
 * that goes away). What fails otherwise is tried again, up to twelve times in some 90 seconds, or more
 * slowly if the server asks for it (Retry-After, a minute at most), and as long as it takes while no
 * server can be reached; what else is recorded is sent meanwhile. Of a namespace in which requests hang
 * one event is tried each minute, for ten seconds, and the others wait for it.
 *
 * Events that differ in note and resourceVersion alone are one series: the first is created, the
 * second makes it a series of two, and how many there were then is written when six minutes have
 * passed without another one, every half hour, and when the recorder ends. The note is that of the
 * first.
 *
 * Needs the verbs create and patch of events.events.k8s.io.
 *
 * Mirrors: events.EventRecorder with events.EventBroadcaster.
 * Threads: any thread.
 */
#ifndef KINFORMER_RECORDER_H
#define KINFORMER_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#include <kinformer/api.h>
#include <kinformer/client.h>
#include <kinformer/error.h>
#include <kinformer/object.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kinf_recorder;

/* All zero but `size` and `controller` is the default. Strings are copied. */
struct kinf_recorder_options {
    size_t size;              /* of this struct: KINF_RECORDER_OPTIONS_INIT sets it */
    const char *controller;   /* reportingController: a qualified name, "example.com/config-sync" */
    const char *instance;     /* reportingInstance, at most 128 bytes; default: the host's name */
    size_t max_queued;        /* events that wait; 0: 1,000 */
    double events_per_second; /* 0: 10, and 50 at once after a rest; negative: no limit */
};
#define KINF_RECORDER_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct kinf_recorder_options), NULL, NULL, 0, 0                                     \
    }

/* Starts the thread. `client` is borrowed: it is not freed before the recorder, whose requests have
 * a connection of their own and are not under the client's rate limit. Errors: KINF_ERR_INVALID,
 * KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_API KINF_MUST_CHECK int kinf_recorder_new(struct kinf_client *client,
                                               const struct kinf_recorder_options *options,
                                               struct kinf_recorder **ret_recorder,
                                               struct kinf_error *err);
/* Sends what is left, for one second at most, and frees. No event may be recorded any more. NULL is
 * allowed. */
KINF_API void kinf_recorder_free(struct kinf_recorder *recorder);
KINF_API void kinf_recorder_free_ptr(struct kinf_recorder **recorder);
#define kinf_auto_recorder __attribute__((cleanup(kinf_recorder_free_ptr)))

enum kinf_event_type { KINF_EVENT_NORMAL, KINF_EVENT_WARNING };

/* Records an event about an object. `related` is a second one, or NULL. `reason` says in one word why
 * ("Created"), `action` what was done ("CreatePod"), 1 to 128 bytes each; the note is for people, and
 * cut at 1,024 bytes. Each byte that is no UTF-8 becomes U+FFFD and counts as the three bytes of that.
 * Without memory the event is dropped and counted. */
KINF_API KINF_PRINTF(7, 8) void kinf_recorder_event(struct kinf_recorder *recorder,
                                                    const struct kinf_object *regarding,
                                                    const struct kinf_object *related,
                                                    enum kinf_event_type type, const char *reason,
                                                    const char *action, const char *note, ...);

struct kinf_recorder_status {
    size_t n_queued;
    uint64_t n_recorded; /* kinf_recorder_event() was called */
    uint64_t n_sent;     /* requests that succeeded */
    uint64_t n_dropped;  /* events for which there was no room, no memory or, at the end, no time */
    uint64_t n_failed;   /* events that the server refused, or that could not be sent */
    uint64_t reserved[4]; /* 0: for members to come */
};
KINF_API void kinf_recorder_status(struct kinf_recorder *recorder,
                                   struct kinf_recorder_status *ret_status);

#ifdef __cplusplus
}
#endif
#endif
