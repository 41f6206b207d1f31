/*
 * Plugins of kinformerd: a shared object that is told what happens to objects, in the daemon's process.
 *
 * It has one symbol (KINF_PLUGIN), which returns a table of what the daemon may call, and is handed a
 * table of what it may call itself. So it links nothing of this library, and a daemon of any build can
 * load it. A whole one: examples/plugin-count.
 *
 * It is told what any handler of the daemon is told: RESET (forget everything), all objects as ADDED,
 * SYNCED of each resource behind its objects, and then what changes. What it is too slow for waits by
 * key: of several changes of one object the newest state is told, and of what came and went nothing.
 *
 * Guarantees (tests cite these numbers):
 *  P1  One call at a time, all on one thread but kinf_plugin_1() itself. A call may take its time: it
 *      holds up nobody but this plugin. One that takes longer than ten seconds is said by name.
 *  P2  For each object what is told is ADDED, any number of MODIFIED, DELETED, and so on. `old` is the
 *      state that was told last.
 *  P3  An error of on_change or flush is logged with the plugin's name, and after a pause, longer each
 *      time, the plugin is told the state anew, from RESET on. So nothing is lost by an error.
 *  P4  What was told up to a flush that returned 0 is done. A deletion that was told since then is told
 *      again behind a RESET; one of an object that this plugin or its predecessor was never told, never.
 *  P5  At a reload the new one is opened first, and told the state from RESET on; then the old one is
 *      closed. If the new one cannot be opened, the old one stays, and the log says why.
 *  P6  When the daemon ends, or its lead (of a Lease), what was told is flushed, unless the last call
 *      failed. close is the last call. What the plugin holds of objects and texts then is a leak: it is
 *      said by name, and the shared object stays loaded. The rest of its things are its own to end: it
 *      may have threads, but none that outlive close.
 *
 * It is loaded from a private copy of its file, so the file may be replaced meanwhile (by a rename: one
 * that is half written is refused), and libraries that it needs are not looked for beside it ($ORIGIN).
 * Its variables are the copy's own: nothing is shared with another one, say the old one.
 *
 * A plugin that crashes ends the daemon; one that does not return holds up the daemon's end by three
 * seconds, which then says so by name and ends without it.
 *
 * Objects are read by the functions of struct kinf_host and nothing else; other headers of the library
 * are for their types. The strings that it is handed are valid during the call.
 */
#ifndef KINFORMER_PLUGIN_H
#define KINFORMER_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>
#include <kinformer/log.h>
#include <kinformer/object.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when something changes its meaning; members are added at the ends of structs without that,
 * and `size` tells who has them. */
#define KINF_PLUGIN_ABI 1

/* A flush comes behind no more than so many changes. */
#define KINF_PLUGIN_BATCH 1000

enum kinf_change_type {
    KINF_CHANGE_RESET, /* forget everything: it is told anew */
    KINF_CHANGE_ADDED,
    KINF_CHANGE_MODIFIED,
    KINF_CHANGE_DELETED,
    KINF_CHANGE_SYNCED, /* all objects of the resource's first list were told */
};

struct kinf_change {
    enum kinf_change_type type;
    const char *resource;             /* "pods", "deployments.apps"; NULL: of all (RESET) */
    const struct kinf_object *object; /* DELETED: as it was last; NULL: RESET, SYNCED */
    const struct kinf_object *old;    /* MODIFIED, DELETED: as it was told last; NULL: it was not */
    bool in_initial_list;             /* ADDED: it was there already */
    bool final_state_unknown;         /* DELETED: and the deletion itself was missed */
    uint64_t sequence; /* of handlers that acknowledge: from 1 on, never anew; 0: others */
};

/* What a plugin may call: on any thread of its own, from open until close returns. Each takes the
 * table itself, since what a plugin holds is counted by it. */
struct kinf_host {
    uint32_t abi;
    uint32_t size; /* of this struct, as the daemon knows it */
    /* One line, without its end. */
    void (*log)(const struct kinf_host *host, enum kinf_log_level level, const char *line);
    /* An object that is to be kept longer than the call. Both accept NULL; ref returns its argument.
     * Giving back more than is held is said by name, and does nothing. */
    const struct kinf_object *(*ref)(const struct kinf_host *host,
                                     const struct kinf_object *object);
    void (*unref)(const struct kinf_host *host, const struct kinf_object *object);
    /* "namespace/name", or "name". The object's own. */
    const char *(*key)(const struct kinf_host *host, const struct kinf_object *object);
    /* The text at a path ("spec.nodeName", "metadata.labels[\"app\"]"), with its NUL. Returns its length,
     * also when that is `size` or more and nothing but a NUL was written, or a negative value:
     * KINF_ERR_NOT_FOUND (it is not there, or no text), KINF_ERR_PARSE (no path), KINF_ERR_NO_MEMORY. */
    int64_t (*get_string)(const struct kinf_host *host, const struct kinf_object *object,
                          const char *path, char *buf, size_t size);
    /* The whole object as JSON, with kind and apiVersion, one line; `*ret_len` bytes with a NUL
     * behind. Free it with free_text. NULL: no memory. */
    char *(*json)(const struct kinf_host *host, const struct kinf_object *object, size_t *ret_len);
    void (*free_text)(const struct kinf_host *host, char *text); /* NULL is allowed */
    /* Adds to a counter of its own, shown as kinformer_plugin_count_total{handler,name}. Names are
     * [a-z0-9_]+; 64 of them at most, what is more is not counted. */
    void (*count)(const struct kinf_host *host, const char *name, uint64_t by);
    /* Readable when the daemon ends, or its lead: what it waits for by poll() should wait for this, too. */
    int (*stop_fd)(const struct kinf_host *host);
};

struct kinf_plugin {
    uint32_t abi;     /* KINF_PLUGIN_ABI */
    uint32_t size;    /* of this struct */
    const char *name; /* in the log and in metrics */
    /* `config` is its part of the configuration, as JSON ("null": there is none). Returns 0, with the
     * state that the others are handed, or a negative enum kinf_errc and a message. */
    int (*open)(const struct kinf_host *host, const char *config, void **ret_state,
                struct kinf_error *err);
    /* Returns 0 or a negative enum kinf_errc (P3). */
    int (*on_change)(void *state, const struct kinf_change *change, struct kinf_error *err);
    /* Makes what it was told since the last one durable, if that means something to it; comes when
     * nothing waits, and behind KINF_PLUGIN_BATCH changes. NULL: it is done when on_change returns. */
    int (*flush)(void *state, struct kinf_error *err);
    void (*close)(void *state);
};

/* The one symbol of a plugin: KINF_PLUGIN(table) behind its `static const struct kinf_plugin table`. */
#define KINF_PLUGIN_SYMBOL "kinf_plugin_1"
#define KINF_PLUGIN(table)                                                                         \
    __attribute__((visibility("default"))) const struct kinf_plugin *kinf_plugin_1(void);          \
    const struct kinf_plugin *kinf_plugin_1(void)                                                  \
    {                                                                                              \
        return &(table);                                                                           \
    }

#ifdef __cplusplus
}
#endif
#endif
