/*
 * What the upstream server's reviews said, remembered for a while: whose a token is, and what a user
 * may.
 *
 * A decision on access is kept by all that the upstream said of the user, never by the token: who has
 * another group is another user. Beyond its time a "may" can be kept for when nobody can be asked.
 *
 * Threads: one thread per object, or under its owner's lock.
 */
#ifndef KINF_SERVE_REMEMBERED_H
#define KINF_SERVE_REMEMBERED_H

#include "base/buffer.h"
#include "serve/decisions.h"
#include "serve/review.h"

/* X(enumerator, what it means) */
#define KINF__VERDICTS(X)                                                                          \
    X(KINF__VERDICT_WAITS, "ask again after the wake callback")                                    \
    X(KINF__VERDICT_ALLOWED, "may")                                                                \
    X(KINF__VERDICT_DENIED, "is known and may not")                                                \
    X(KINF__VERDICT_UNKNOWN, "is nobody: 401")                                                     \
    X(KINF__VERDICT_THROTTLED, "too many inquiries at once, of its address or its token")          \
    X(KINF__VERDICT_FAILED, "the upstream gave no answer, or there is no memory")

enum kinf__verdict {
#define X(verdict, what) verdict,
    KINF__VERDICTS(X)
#undef X
};

struct kinf__access_answer {
    enum kinf__verdict verdict;
    char user[256];   /* of KINF__VERDICT_ALLOWED and KINF__VERDICT_DENIED */
    char reason[256]; /* the upstream's; "": none */
    /* Of KINF__VERDICT_ALLOWED: what goes on, as watches do, goes on until then; monotonic. */
    int64_t until_ms;
    int64_t
        stale_until_ms; /* the authorizer's: when an old answer stops standing in; 0: it is none */
};

/* What decisions are kept by: a token; or a user, as a TokenReview described it, or a token, and what is
 * wanted of it. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__question_of_token(struct kinf_str token,
                                            struct kinf__question *ret_question);
/* Whose is taken for known, as a token's is by a review. */
KINF_MUST_CHECK int kinf__question_of_known(const char *user, struct kinf__question *ret_question);
KINF_MUST_CHECK int kinf__question_of_user(const char *user,
                                           const struct kinf__attributes *attributes,
                                           struct kinf__question *ret_question);
KINF_MUST_CHECK int kinf__question_of_request(struct kinf_str token,
                                              const struct kinf__attributes *attributes,
                                              struct kinf__question *ret_question);

struct kinf__remembered_times {
    int64_t allow_ms; /* how long "may" and "is somebody" hold */
    int64_t deny_ms;  /* and their opposites */
    int64_t stale_ms; /* how long the former are kept beyond that */
};

struct kinf__remembered {
    struct kinf__remembered_times times;
    struct kinf__decisions tokens;
    struct kinf__decisions familiar; /* tokens that were somebody's not long ago */
    struct kinf__decisions accesses;
};

/* `max`: of tokens, and as many of access. */
void kinf__remembered_init(struct kinf__remembered *remembered,
                           const struct kinf__remembered_times *times, size_t max);
void kinf__remembered_release(struct kinf__remembered *remembered);

/* The verdict, *answer with what goes with it, or KINF__VERDICT_WAITS: it is not known. `or_stale`:
 * also from what was to be asked again. */
enum kinf__verdict kinf__remembered_find(struct kinf__remembered *remembered,
                                         const struct kinf__question *token_question,
                                         const struct kinf__attributes *attributes, int64_t now_ms,
                                         bool or_stale, struct kinf__access_answer *answer);
/* Whether it is known whose token it is, or it was somebody's of late. */
bool kinf__remembered_knows(struct kinf__remembered *remembered,
                            const struct kinf__question *token_question, int64_t now_ms);
/* Who it is, as it was kept, or NULL: not known. Valid until the next call. */
const struct kinf__decision *kinf__remembered_user(struct kinf__remembered *remembered,
                                                   const struct kinf__question *token_question,
                                                   int64_t now_ms);

/* Keeps what a review said; nothing on a token is kept beyond `expires_ms`. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__remembered_keep_user(struct kinf__remembered *remembered,
                                               const struct kinf__question *token_question,
                                               bool is_somebody, char *user, int64_t expires_ms,
                                               int64_t now_ms);
/* And writes what it means into *answer. */
KINF_MUST_CHECK int kinf__remembered_keep_access(struct kinf__remembered *remembered,
                                                 const char *user,
                                                 const struct kinf__attributes *attributes,
                                                 bool is_yes, char *reason, int64_t now_ms,
                                                 struct kinf__access_answer *answer);

#endif
