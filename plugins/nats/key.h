/*
 * Keys of the bucket, which are the ends of the stream's subjects, too: RESOURCE.NAMESPACE.NAME.
 *
 * A dot inside of a part is '_' ("deployments_apps.default.web"), '-' is the namespace of what has
 * none, and every byte but letters, digits and '-' is '=' with two hex digits. So three tokens tell
 * every object apart, wildcards select by each, and the names can be had back.
 *
 * Threads: any thread.
 */
#ifndef NATS_KEY_H
#define NATS_KEY_H

/* `key` is "namespace/name", or "name". Free it. NULL: no memory. */
char *nats_key_encode(const char *resource, const char *key);

/* What it was made of; free both. Returns 0, or -1: it is none, or there is no memory. */
int nats_key_decode(const char *encoded, char **ret_resource, char **ret_key);

#endif
