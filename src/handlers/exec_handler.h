/*
 * A handler in any language: a program that reads what happens on its standard input, a line of JSON
 * each (line.h).
 *
 * It is sent RESET (forget everything), all objects as ADDED, SYNCED of each resource behind its
 * objects, and then what changes. One that ends, or closes its standard input, is started again (handler.h),
 * and told the state anew. What it is too slow for waits by key (outbox.h).
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

#include "handlers/handler.h"

/* It does not run yet. `args` are copied. Its name is its command line. Errors:
 * KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__exec_handler_new(char *const *args, size_t n_args, bool acknowledges,
                                           struct kinf__handler **ret_handler,
                                           struct kinf_error *err);

#endif
