/*
 * Recorded answers: NN-name.http and, beside it, NN-name.json with the way it ended.
 *
 * Threads: one thread per response.
 */
#ifndef KINF_TESTS_REPLAY_RECORDING_H
#define KINF_TESTS_REPLAY_RECORDING_H

#include "replay/response.h"

/* Appends the actions that play the recording `name` of folder `dir`: the head, then each chunk, as
 * recorded, and the recorded end of the connection. Where the recorder itself left, the response stalls for ever. Errors:
 * KINF_ERR_CONFIG (cannot be read), KINF_ERR_PARSE, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int replay__recording_load(const char *dir, const char *name,
                                           struct replay__response *response,
                                           struct kinf_error *err);

/* Reads a whole file. Errors: KINF_ERR_CONFIG, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int replay__read_file(const char *path, struct kinf__buffer *bytes,
                                      struct kinf_error *err);

#endif
