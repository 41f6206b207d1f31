/*
 * A handler that is a shared object in this process: <kinformer/plugin.h> has its guarantees.
 *
 * It is loaded when it is made, and opened on its thread: one that cannot be opened is tried again, as
 * one whose call failed (handler.h). At its end it is given three seconds.
 *
 * Threads: any, but for new and free.
 */
#ifndef KINF_HANDLERS_PLUGIN_HANDLER_H
#define KINF_HANDLERS_PLUGIN_HANDLER_H

#include "base/buffer.h"
#include "handlers/handler.h"

/* It is loaded, and not opened yet. `config` is JSON. Its name is the plugin's. Errors: those of
 * kinf__plugin_load(). */
KINF_MUST_CHECK int kinf__plugin_handler_new(const char *path, const char *config,
                                             struct kinf__handler **ret_handler,
                                             struct kinf_error *err);

/* Its file may be another one, or this configuration: then it is loaded anew (P5), and one that could
 * not be opened is tried at once. On its thread, when no call is under way. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__plugin_handler_reload(struct kinf__handler *base, const char *config,
                                                struct kinf_error *err);

/* Says it by name when a call takes longer than ten seconds; whoever looks at the clock now and then
 * calls this. */
void kinf__plugin_handler_look(struct kinf__handler *base, int64_t now_ms);

/* Appends samples of what it counts, labelled with the handler. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__plugin_handler_write_counts(struct kinf__handler *base,
                                                      const char *family, const char *label,
                                                      struct kinf__buffer *out);

#endif
