/*
 * The kubeconfig of clients (--write-kubeconfig): where they find the daemon, whom they trust there,
 * and who they are. It follows the files that it is made of: tokens and certificates expire.
 *
 * Of a token whatever a client reads: its file, which is read again, or the text beside it, for those
 * that know no files.
 *
 * Owner: the serving side. Threads: the main thread.
 */
#ifndef KINF_DAEMON_CLIENT_KUBECONFIG_H
#define KINF_DAEMON_CLIENT_KUBECONFIG_H

#include "daemon/config.h"
#include "daemon/options.h"

struct kinf__client_kubeconfig;

/* Writes it, for `url`, but not over the kubeconfig that `client` has its cluster or its user from. The
 * clients' token is in the file that the options name, or in the pod's where tokens are taken; otherwise
 * they have none. Errors: KINF_ERR_CONFIG, kinf__kubeconfig_file_write()'s. */
KINF_MUST_CHECK int kinf__client_kubeconfig_new(const struct kinf__options *options,
                                                const struct kinf__config *config,
                                                const struct kinf_client *client, const char *url,
                                                struct kinf__client_kubeconfig **ret_kubeconfig,
                                                struct kinf_error *err);
void kinf__client_kubeconfig_free(struct kinf__client_kubeconfig *kubeconfig); /* NULL is allowed */

/* Writes it again if it would differ. A failure is logged once, and what was written stays. */
void kinf__client_kubeconfig_refresh(struct kinf__client_kubeconfig *kubeconfig);

#endif
