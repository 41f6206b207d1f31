/*
 * A plugin's shared object in this process: loaded from a private copy, checked, handed the table of
 * what it may call (kinformer/plugin.h), and unloaded. What it counts outlives it.
 *
 * Owner: plugin_handler.c. Threads: one thread per plugin; the counts, any thread. The functions of the
 * table are for any.
 */
#ifndef KINF_HANDLERS_PLUGIN_H
#define KINF_HANDLERS_PLUGIN_H

#include <kinformer/plugin.h>

#include "base/buffer.h"
#include "base/lock.h"
#include "base/thread.h"

#define KINF__PLUGIN_COUNTS     64
#define KINF__PLUGIN_COUNT_NAME 64 /* a counter's name with its NUL */

struct kinf__plugin_counts {
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__plugin_count {
        char name[KINF__PLUGIN_COUNT_NAME];
        uint64_t value;
    } items[KINF__PLUGIN_COUNTS];
    size_t n_items;
};

void kinf__plugin_counts_init(struct kinf__plugin_counts *counts);
void kinf__plugin_counts_release(struct kinf__plugin_counts *counts);

struct kinf__plugin;

/* What its table is about. Borrowed until it is freed. */
struct kinf__plugin_surroundings {
    struct kinf__plugin_counts *counts;
    const struct kinf__waker *stop; /* set when the daemon ends */
};

/* Loads it, which runs its constructors, and calls nothing but its symbol. `surroundings` is copied, all
 * zero if it will not be opened. Errors: KINF_ERR_CONFIG (the file cannot be read, is none of this
 * machine's, cut off, lacks a library; it is no plugin, of another ABI, lacks something; each in words
 * that begin with the path), KINF_ERR_SYSTEM, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__plugin_load(const char *path,
                                      const struct kinf__plugin_surroundings *surroundings,
                                      struct kinf__plugin **ret_plugin, struct kinf_error *err);
/* It closes it, if need be, and says what it leaks, and that it cannot be unloaded. NULL is allowed. */
void kinf__plugin_free(struct kinf__plugin *plugin);

/* Its own; valid until it is freed. */
const struct kinf_plugin *kinf__plugin_table(const struct kinf__plugin *plugin);
/* Whether its file is another one by now, or was written. */
bool kinf__plugin_is_outdated(const struct kinf__plugin *plugin);

/* These call it; what fails says what it said. `config` as kinf_plugin.open has it. Errors: its own. */
KINF_MUST_CHECK int kinf__plugin_open(struct kinf__plugin *plugin, const char *config,
                                      struct kinf_error *err);
KINF_MUST_CHECK int kinf__plugin_tell(struct kinf__plugin *plugin, const struct kinf_change *change,
                                      struct kinf_error *err);
/* Nothing to do if it has none. */
KINF_MUST_CHECK int kinf__plugin_flush(struct kinf__plugin *plugin, struct kinf_error *err);
bool kinf__plugin_is_open(const struct kinf__plugin *plugin);

/* Appends what --check-plugin says of one, a line without its end. It is loaded and not opened. Errors:
 * those of kinf__plugin_load(). */
KINF_MUST_CHECK int kinf__plugin_describe(const char *path, struct kinf__buffer *out,
                                          struct kinf_error *err);

#endif
