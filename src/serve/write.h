/*
 * One write that is passed on: what its answer says has to be shown by the caches from then on. So does
 * what a read saw that was passed on because a cache was behind, or did not answer yet: its reader shall
 * not go back. Of that the newest version counts, if it can be read; that something was gone is not noted.
 *
 * The answer is kept while it is handed on, and read when it is whole, before its last byte is given
 * out: who knows of the write finds it noted. Noted are answers of 2xx. What cannot be read of one (a
 * form that is none of JSON, YAML and protobuf, more than KINF__WRITE_ANSWER_MAX, more than
 * KINF__WRITE_ANSWERS_MAX of all answers at once, an end that never came) is noted as unknown, never
 * passed over. A write without an answer promises nothing to anybody: it may be done later, even at
 * the server. One that is refused, or dry, changed nothing.
 *
 * Threads: the connection's.
 */
#ifndef KINF_SERVE_WRITE_H
#define KINF_SERVE_WRITE_H

#include "rest/head.h"
#include "serve/request.h"
#include "serve/server.h"

#define KINF__WRITE_ANSWER_MAX  (4u << 20)
#define KINF__WRITE_ANSWERS_MAX (32u << 20)

struct kinf__write;

/* `request` is borrowed; `reads_ahead`: it is such a read. *ret_write NULL: it says nothing of what a
 * cache may have. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__write_new(struct kinf__server *server,
                                    const struct kinf__request *request, bool reads_ahead,
                                    struct kinf__write **ret_write);
/* An answer of 2xx that was not ended is noted as unknown. NULL is allowed. */
void kinf__write_free(struct kinf__write *write);

/* A piece of the request's body. NULL is allowed. */
void kinf__write_take_body(struct kinf__write *write, const char *bytes, size_t len);

/* The answer, in this order: its head, pieces, and the end, before the last of them is given out. The
 * first returns whether the others are wanted: nothing is held back of what is not read. */
bool kinf__write_begin_answer(struct kinf__write *write, const struct kinf__head *head);
void kinf__write_take_answer(struct kinf__write *write, const char *bytes, size_t len);
/* Notes it, the first time. `is_whole`: there is nothing missing. */
void kinf__write_end_answer(struct kinf__write *write, bool is_whole);

#endif
