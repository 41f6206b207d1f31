/*
 * A handler in any language: a program that reads what happens on its standard input, a line of JSON
 * each (line.h).
 *
 * It is sent RESET (forget everything), all objects as ADDED, SYNCED of each resource behind its
 * objects, and then what changes. One that ends, or closes its standard input, is started again after
 * 1 to 60 seconds, twice as long each time unless it ran for two minutes, and told the state anew. What
 * it is too slow for waits by key (outbox.h).
 *
 * If it acknowledges, each line has a number, `"seq":N`, and it answers on its standard output with
 * lines `{"ack":N}` when all up to N are done; anything else there is logged and counted, and that it
 * closes it ends it. Otherwise its standard output is logged, as standard error is: 100 lines in ten
 * seconds.
 *
 * At the end it gets the rest of the line that it is reading, if it takes that within a second, and the
 * end of its input, a second later SIGTERM, after another one SIGKILL, each with all of its group.
 *
 * Threads: any, but for new and free.
 */
#ifndef KINF_HANDLERS_EXEC_HANDLER_H
#define KINF_HANDLERS_EXEC_HANDLER_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/error.h>

#include "base/compiler.h"

struct kinf__exec_handler;
struct kinf__outbox;

/* Starts the thread that runs it. `args` are copied. Errors: KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__exec_handler_new(char *const *args, size_t n_args, bool acknowledges,
                                           struct kinf__exec_handler **ret_handler,
                                           struct kinf_error *err);
/* Begins its end, and waits for nothing. */
void kinf__exec_handler_interrupt(struct kinf__exec_handler *handler);
/* Waits until it has ended: three times KINF__CHILD_GRACE_MS at most, and a bit. */
void kinf__exec_handler_stop(struct kinf__exec_handler *handler);
/* After its feeds. Stops it, if need be. NULL is allowed. */
void kinf__exec_handler_free(struct kinf__exec_handler *handler);

/* For feeds. */
struct kinf__outbox *kinf__exec_handler_outbox(struct kinf__exec_handler *handler);
/* Its command line, for people. */
const char *kinf__exec_handler_name(const struct kinf__exec_handler *handler);

struct kinf__exec_handler_status {
    bool is_running;
    uint64_t n_starts; /* attempts */
    uint64_t n_bad_lines;
};
void kinf__exec_handler_status(struct kinf__exec_handler *handler,
                               struct kinf__exec_handler_status *ret_status);

#endif
