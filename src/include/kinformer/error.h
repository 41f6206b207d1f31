/*
 * Errors: what a failed call leaves for its caller.
 *
 * Every fallible function returns 0, or a negative enum kinf_errc, and takes as its last parameter
 * a struct kinf_error that belongs to the caller. It may be NULL. It is untouched on success and
 * written once where the failure happens; on the way up it only gains context in front of its
 * message.
 *
 * Mirrors: error, and apimachinery's api/errors.
 * Threads: one thread per object.
 */
#ifndef KINFORMER_ERROR_H
#define KINFORMER_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What went wrong, in terms of the domain. Values are stable; 0 is success. */
enum kinf_errc {
    KINF_ERR_NO_MEMORY = -1, /* an allocation failed; nothing was changed */
    KINF_ERR_INVALID = -2,   /* the caller passed something that cannot be meant */
    KINF_ERR_CONFIG = -3,    /* kubeconfig or configuration file: missing, unreadable, wrong */
    KINF_ERR_PARSE = -4, /* bytes that are not what they should be (JSON, YAML, path, selector) */
    KINF_ERR_TRUNCATED = -5, /* the bytes end before the value does: more are needed */
    KINF_ERR_LIMIT = -6,     /* larger or deeper than a stated limit */
    KINF_ERR_NOT_FOUND = -7, /* no such object, field, index, resource */
    KINF_ERR_EXISTS = -8,    /* a name is taken */
    KINF_ERR_TIMEOUT = -9,   /* the time that the caller gave is over */
    KINF_ERR_STOPPED = -10,  /* the thing was stopped or closed */
    KINF_ERR_STATE = -11,    /* not allowed now, or not from this thread (would wait for itself) */
    KINF_ERR_NETWORK = -12,  /* resolve, connect, send or receive failed */
    KINF_ERR_TLS = -13,      /* a certificate or the handshake was refused */
    KINF_ERR_UNAUTHORIZED = -14,      /* 401: the server does not know who we are */
    KINF_ERR_FORBIDDEN = -15,         /* 403: it knows, and refuses */
    KINF_ERR_CONFLICT = -16,          /* 409 */
    KINF_ERR_EXPIRED = -17,           /* 410: this resourceVersion or continue token is too old */
    KINF_ERR_RV_TOO_LARGE = -18,      /* the server has not reached this resourceVersion yet */
    KINF_ERR_TOO_MANY_REQUESTS = -19, /* 429: come back later */
    KINF_ERR_SERVER = -20,            /* any other answer that is not a success */
    KINF_ERR_SYSTEM = -21,            /* the operating system refused: see sys_errno */
    KINF_ERR_UNSUPPORTED = -22,       /* known, and not to be had here */
    KINF_ERR_PROTOCOL = -23,          /* an answer that no API server gives: a proxy's login page */
};

/* Room for a message, its final NUL included. Longer ones are cut. */
#define KINF_ERROR_MESSAGE_SIZE 512

struct kinf_error {
    enum kinf_errc code;     /* 0 while nothing failed */
    int http_status;         /* of the answer that failed; 0 if there was none */
    int sys_errno;           /* of the system call that failed; 0 if none did; ECONNRESET: a
                                connection broke that was there */
    uint32_t retry_after_ms; /* what the server asked us to wait; 0 if it said nothing */
    char message[KINF_ERROR_MESSAGE_SIZE]; /* one line for a person, without a final dot */
};

#define KINF_ERROR_INIT                                                                            \
    {                                                                                              \
        (enum kinf_errc)0, 0, 0, 0, ""                                                             \
    }

/* What the server said, for decisions. Mirrors: apierrors.IsNotFound() and so on. */
static inline bool kinf_error_is_not_found(const struct kinf_error *err)
{
    return err != NULL && err->code == KINF_ERR_NOT_FOUND;
}
/* A name is taken. */
static inline bool kinf_error_is_already_exists(const struct kinf_error *err)
{
    return err != NULL && err->code == KINF_ERR_EXISTS;
}
/* The object changed since it was read, a precondition is not met, or another manager has the
 * field: read again, and decide again. */
static inline bool kinf_error_is_conflict(const struct kinf_error *err)
{
    return err != NULL && err->code == KINF_ERR_CONFLICT;
}
/* The object was understood and is not acceptable. */
static inline bool kinf_error_is_invalid(const struct kinf_error *err)
{
    return err != NULL && err->code == KINF_ERR_SERVER && err->http_status == 422;
}
static inline bool kinf_error_is_unauthorized(const struct kinf_error *err)
{
    return err != NULL && err->code == KINF_ERR_UNAUTHORIZED;
}
static inline bool kinf_error_is_forbidden(const struct kinf_error *err)
{
    return err != NULL && err->code == KINF_ERR_FORBIDDEN;
}
/* 410: of a resourceVersion or a continue token. */
static inline bool kinf_error_is_expired(const struct kinf_error *err)
{
    return err != NULL && err->code == KINF_ERR_EXPIRED;
}
/* Also an eviction that a PodDisruptionBudget does not allow now. */
static inline bool kinf_error_is_too_many_requests(const struct kinf_error *err)
{
    return err != NULL && err->code == KINF_ERR_TOO_MANY_REQUESTS;
}
/* Ours, or the server's 504. */
static inline bool kinf_error_is_timeout(const struct kinf_error *err)
{
    return err != NULL && (err->code == KINF_ERR_TIMEOUT || err->http_status == 504);
}

/* Writes a failure, for callbacks of the program that take a struct kinf_error: the message is made
 * one line, every other member is reset. Returns `code`, and has no errors of its own. `err` may be NULL. */
KINF_API KINF_PRINTF(3, 4) int kinf_error_set(struct kinf_error *err, enum kinf_errc code,
                                              const char *format, ...);

/* "NOT_FOUND" and so on; never NULL. */
KINF_API const char *kinf_errc_to_string(enum kinf_errc code);

#ifdef __cplusplus
}
#endif
#endif
