/*
 * Scripts: exchanges in order, read from text. README.md has the syntax.
 *
 * Threads: one thread while it is made; the server's lock guards n_used afterwards.
 */
#ifndef KINF_TESTS_REPLAY_SCRIPT_H
#define KINF_TESTS_REPLAY_SCRIPT_H

#include "replay/request.h"
#include "replay/response.h"

struct replay__exchange {
    struct replay__matcher matcher;
    struct replay__response response;
    size_t max_uses; /* 0: no limit */
    size_t n_used;
    bool is_unlisted; /* its requests do not appear in the list */
};

struct replay__script {
    struct replay__exchange *exchanges;
    size_t n_exchanges;
    bool has_discovery;
};

#define REPLAY__SCRIPT_INIT                                                                        \
    {                                                                                              \
        NULL, 0, true                                                                              \
    }

void replay__script_release(struct replay__script *script);

/* Appends an exchange that matches everything yet. Valid until the next one. NULL: out of memory. */
struct replay__exchange *replay__script_add(struct replay__script *script);

/* Appends the exchanges of `text`. Errors: KINF_ERR_PARSE (with the line), KINF_ERR_CONFIG (a file
 * that cannot be read), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int replay__script_parse(struct replay__script *script, const char *text,
                                         const char *transcripts_dir, struct kinf_error *err);

/* Appends discovery of the types that recordings and generated pods have. */
KINF_MUST_CHECK int replay__script_add_discovery(struct replay__script *script,
                                                 struct kinf_error *err);

#endif
