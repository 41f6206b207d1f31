/*
 * What the stores had, kept in files for the next start (`stateDir`).
 *
 * A thread writes each store now and then, and once more when the daemon stops, from a snapshot:
 * nobody waits for it. Written is what is synced and of which nothing was left out; else the file of
 * before stays. The informers begin with what the files have (informer/saved.h); a file that is not
 * to be used is told of in the log, and written anew in time. Not kept are types on demand, and
 * Secrets unless `state: true` says so.
 *
 * Whose a file is, the uid of the namespace kube-system says; if that may not be read, the server's
 * address and authority.
 *
 * With `serveStale` a start asks the server nothing before it serves: of which type each resource is,
 * small files say ("type-..."), and whose they are, address and authority; that the server behind these
 * is another one, the informers find out before they go on.
 *
 * Owner: the daemon. Threads: the main thread and errands, unless a line says otherwise.
 */
#ifndef KINF_DAEMON_STATE_KEEPER_H
#define KINF_DAEMON_STATE_KEEPER_H

#include <kinformer/client.h>
#include <kinformer/informer.h>

#include "base/buffer.h"
#include "daemon/config.h"

/* How long a stop waits for what is being written; what is not whole by then is given up. */
#define KINF__STATE_STOP_MS 5000

struct kinf__state_keeper;
struct kinf__state_entry;

/* Opens the folder. The client is borrowed. Errors: kinf__state_folder_open()'s. */
KINF_MUST_CHECK int kinf__state_keeper_new(const struct kinf__config *config,
                                           struct kinf_client *client,
                                           struct kinf__state_keeper **ret_keeper,
                                           struct kinf_error *err);
/* Of which type the resource was; at the start alone, and with serveStale. Errors:
 * KINF_ERR_NOT_FOUND, and the file's. */
KINF_MUST_CHECK int kinf__state_keeper_find_type(const struct kinf__state_keeper *keeper,
                                                 const struct kinf__resource_config *resource,
                                                 const struct kinf_type **ret_type,
                                                 struct kinf_error *err);
/* Asks the server which cluster it is of; before the first informer is started, and not with
 * serveStale. That it may not be known is no error. Errors: the server does not answer. */
KINF_MUST_CHECK int kinf__state_keeper_find_cluster(struct kinf__state_keeper *keeper,
                                                    struct kinf_error *err);
KINF_MUST_CHECK int kinf__state_keeper_start(struct kinf__state_keeper *keeper,
                                             struct kinf_error *err);
/* Begins to write for the last time, and waits for it. Entries may go afterwards. NULL is allowed. */
void kinf__state_keeper_begin_stop(struct kinf__state_keeper *keeper);
void kinf__state_keeper_stop(struct kinf__state_keeper *keeper);
/* What was kept is served before the server has confirmed it. False for NULL. Any thread. */
bool kinf__state_keeper_serves_saved(const struct kinf__state_keeper *keeper);
/* The entries are gone. NULL is allowed. */
void kinf__state_keeper_free(struct kinf__state_keeper *keeper);

/* From here on the informer's store is kept, and begins with what the file has; it was not started.
 * With serveStale its type is kept, too.
 * *ret_entry NULL: it is not to be kept. Errors: KINF_ERR_NO_MEMORY, kinf__informer_set_saved()'s. */
KINF_MUST_CHECK int kinf__state_keeper_add(struct kinf__state_keeper *keeper,
                                           struct kinf_informer *informer,
                                           const struct kinf__resource_config *resource,
                                           const char *name_space,
                                           struct kinf__state_entry **ret_entry,
                                           struct kinf_error *err);
/* Nothing more is to be loaded; before the informer is stopped. NULL is allowed. */
void kinf__state_keeper_give_up(struct kinf__state_entry *entry);
/* The informer has stopped, and is not freed yet. What is being written of it is given up; but with
 * serveStale what it had is written first, unless the daemon stops: what takes its place begins with
 * that. NULL is allowed. */
void kinf__state_keeper_remove(struct kinf__state_entry *entry);

/* Any thread; a kinf__write_metrics_cb but for NULL, which has none. */
KINF_MUST_CHECK int kinf__state_keeper_write_metrics(struct kinf__buffer *out, void *keeper);

#endif
