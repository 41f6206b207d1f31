/*
 * NO_PROXY. Neighbours: connection.c asks.
 */
#include "rest/no_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include <kinformer/str.h>

#define IPV4_BITS 32
#define IPV6_BITS 128

struct server {
    struct kinf_str name, port;
    struct in6_addr address;
    bool is_address;
};

/* What has colons of its own and no brackets is all name. */
static void split(struct kinf_str text, struct kinf_str *ret_name, struct kinf_str *ret_port)
{
    const char *colon = memrchr(text.bytes, ':', text.len);
    size_t len = colon != NULL ? (size_t)(colon - text.bytes) : text.len;
    bool is_bracketed = len >= 2 && text.bytes[0] == '[' && text.bytes[len - 1] == ']';

    *ret_name = text;
    *ret_port = (struct kinf_str){ "", 0 };
    if (colon == NULL || (!is_bracketed && memchr(text.bytes, ':', len) != NULL))
        return;
    *ret_name = is_bracketed ? (struct kinf_str){ text.bytes + 1, len - 2 }
                             : (struct kinf_str){ text.bytes, len };
    *ret_port = (struct kinf_str){ colon + 1, text.len - len - 1 };
}

/* --- addresses --- */

/* One of IPv4 becomes the IPv6 address that maps it. */
static bool read_address(struct kinf_str text, struct in6_addr *ret_address)
{
    char name[INET6_ADDRSTRLEN];
    struct in_addr v4;

    if (text.len >= sizeof name)
        return false;
    memcpy(name, text.bytes, text.len);
    name[text.len] = '\0';
    if (inet_pton(AF_INET, name, &v4) != 1)
        return inet_pton(AF_INET6, name, ret_address) == 1;
    *ret_address = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
    memcpy(&ret_address->s6_addr[12], &v4, sizeof v4);
    return true;
}

static bool read_bits(struct kinf_str text, unsigned max, unsigned *ret_bits)
{
    unsigned bits = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9' || bits > max)
            return false;
        bits = bits * 10 + (unsigned)(text.bytes[i] - '0');
    }
    *ret_bits = bits;
    return text.len != 0 && bits <= max;
}

static bool begin_alike(const struct in6_addr *a, const struct in6_addr *b, unsigned bits)
{
    unsigned n = bits / 8, rest = bits % 8;

    return memcmp(a, b, n) == 0 &&
           (rest == 0 || (a->s6_addr[n] ^ b->s6_addr[n]) >> (8 - rest) == 0);
}

/* No network of IPv6 holds an address of IPv4, not even "::/0". */
static bool is_in_network(const struct in6_addr *address, struct kinf_str entry)
{
    const char *slash = memchr(entry.bytes, '/', entry.len);
    size_t len = slash != NULL ? (size_t)(slash - entry.bytes) : 0;
    bool is_v4 = memchr(entry.bytes, ':', len) == NULL;
    struct in6_addr network;
    unsigned bits;

    if (slash == NULL || !read_address((struct kinf_str){ entry.bytes, len }, &network) ||
        !read_bits((struct kinf_str){ slash + 1, entry.len - len - 1 },
                   is_v4 ? IPV4_BITS : IPV6_BITS, &bits))
        return false;
    bits += is_v4 ? IPV6_BITS - IPV4_BITS : 0;
    return (bits >= IPV6_BITS - IPV4_BITS || !IN6_IS_ADDR_V4MAPPED(address)) &&
           begin_alike(address, &network, bits);
}

/* --- names --- */

static bool is_equal(struct kinf_str a, struct kinf_str b)
{
    return a.len == b.len && strncasecmp(a.bytes, b.bytes, a.len) == 0;
}

static bool is_in_domain(struct kinf_str name, struct kinf_str domain)
{
    size_t n_more;

    if (domain.len >= 2 && memcmp(domain.bytes, "*.", 2) == 0)
        domain = (struct kinf_str){ domain.bytes + 1, domain.len - 1 };
    if (domain.len == 0 || name.len < domain.len)
        return false;
    n_more = name.len - domain.len;
    return is_equal((struct kinf_str){ name.bytes + n_more, domain.len }, domain) &&
           (n_more == 0 || domain.bytes[0] == '.' || name.bytes[n_more - 1] == '.');
}

/* --- entries --- */

static bool is_meant(const struct server *server, struct kinf_str entry)
{
    struct kinf_str name, port;
    struct in6_addr address;

    if (is_equal(entry, KINF_STR("*")) ||
        (server->is_address && is_in_network(&server->address, entry)))
        return true;
    split(entry, &name, &port);
    if (port.len != 0 && !is_equal(port, server->port))
        return false;
    return server->is_address
               ? read_address(name, &address) && begin_alike(&address, &server->address, IPV6_BITS)
               : is_in_domain(server->name, name);
}

static struct kinf_str trim(struct kinf_str text)
{
    static const char blanks[] = " \t\r\n\v\f";

    while (text.len != 0 && strchr(blanks, text.bytes[0]) != NULL)
        text = (struct kinf_str){ text.bytes + 1, text.len - 1 };
    while (text.len != 0 && strchr(blanks, text.bytes[text.len - 1]) != NULL)
        text.len--;
    return text;
}

bool kinf__no_proxy_has(const char *list, const char *server)
{
    struct server split_server;

    split(kinf_str_from(server), &split_server.name, &split_server.port);
    split_server.is_address = read_address(split_server.name, &split_server.address);
    while (*list != '\0') {
        size_t len = strcspn(list, ",");

        if (is_meant(&split_server, trim((struct kinf_str){ list, len })))
            return true;
        list += len + (list[len] == ',' ? 1 : 0);
    }
    return false;
}
