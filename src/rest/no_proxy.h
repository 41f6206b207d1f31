/*
 * NO_PROXY: which servers are reached without the proxy of the environment.
 *
 * Mirrors: golang.org/x/net/http/httpproxy, which curl's rules are not.
 * Threads: any thread.
 */
#ifndef KINF_REST_NO_PROXY_H
#define KINF_REST_NO_PROXY_H

#include <stdbool.h>

/*
 * Whether an entry of the list means the server, which is "name:port" or "[fd00::1]:port". Entries
 * have commas between them; capital letters are small ones. An entry is
 *   "*", all servers;
 *   an address, or a network such as "10.0.0.0/8", for servers that the URL calls by address;
 *   a domain, for itself and all below it, or ".domain" or "*.domain", for what is below it alone.
 * Behind an address or a domain may stand ":port", and an IPv6 address has brackets then.
 */
bool kinf__no_proxy_has(const char *list, const char *server);

#endif
