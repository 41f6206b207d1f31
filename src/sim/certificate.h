/*
 * Certificates that the simulated server makes for itself: an authority, and what it issued for
 * 127.0.0.1, ::1, localhost and the hosts it is told, as files in a folder that nobody else can
 * read. Keys are of P-256.
 *
 * Threads: one thread per object; the files may be read meanwhile.
 */
#ifndef KINF_SIM_CERTIFICATE_H
#define KINF_SIM_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>

#include <kinformer/error.h>

struct kinf__certificate;

/* Writes them into a new folder below $TMPDIR, else /tmp. `hosts`: names and addresses that the
 * certificate is for, too. Errors: KINF_ERR_INVALID (no host can be called so), KINF_ERR_TLS,
 * KINF_ERR_SYSTEM, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__certificate_new(const char *const *hosts, size_t n_hosts,
                                          struct kinf__certificate **ret_certificate,
                                          struct kinf_error *err);
/* Removes files and folder. NULL is allowed. */
void kinf__certificate_free(struct kinf__certificate *certificate);

/* Paths. */
const char *kinf__certificate_authority_file(const struct kinf__certificate *certificate);
const char *kinf__certificate_cert_file(const struct kinf__certificate *certificate);
const char *kinf__certificate_key_file(const struct kinf__certificate *certificate);

/* Puts a new key and a new certificate in the place of the old ones. On failure the old ones stay, or a pair that does not belong
 * together, which no server takes over. Errors: as above. */
KINF_MUST_CHECK int kinf__certificate_rotate(const struct kinf__certificate *certificate,
                                             struct kinf_error *err);

#endif
