/*
 * Addresses to listen at. Neighbours: endpoint.c listens, peer.c knows who connects.
 */
#include "serve/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "base/compiler.h"
#include "base/error.h"

#define PORT_MAX        65535
#define PORT_MAX_DIGITS 5

static bool is_number(const char *text)
{
    return strspn(text, "0123456789") == strlen(text);
}

static bool is_loopback_v4(struct in_addr address)
{
    return ntohl(address.s_addr) >> 24 == 127;
}

static bool is_port(const char *text)
{
    size_t len = strlen(text);

    return len >= 1 && len <= PORT_MAX_DIGITS && is_number(text) && atoi(text) <= PORT_MAX;
}

/* "HOST:PORT", "[HOST]:PORT" or ":PORT" into its parts. */
static bool split(struct kinf__address *address)
{
    const char *host = address->text, *colon = strrchr(host, ':');
    size_t len = colon != NULL ? (size_t)(colon - host) : 0;

    if (colon == NULL || !is_port(colon + 1))
        return false;
    if (*host == '[' && host[len - 1] == ']') {
        host++;
        len -= 2;
        if (len == 0)
            return false;
    } else if (strcspn(host, "[:]") < len) {
        return false;
    }
    if (len >= sizeof address->host)
        return false;
    memcpy(address->host, host, len);
    address->host[len] = '\0';
    address->port = colon + 1;
    return true;
}

int kinf__address_parse(const char *text, struct kinf__address *ret_address, struct kinf_error *err)
{
    struct kinf__address address = { .text = text };
    struct sockaddr_un socket_address;

    if (strncmp(text, "unix:", 5) == 0) {
        address.path = text + 5;
        if (*address.path == '\0' || strlen(address.path) >= sizeof socket_address.sun_path)
            return kinf__error_set(err, KINF_ERR_INVALID,
                                   "cannot listen at %s: a path of 1 to %zu bytes is needed", text,
                                   sizeof socket_address.sun_path - 1);
    } else if (!split(&address)) {
        return kinf__error_set(
            err, KINF_ERR_INVALID,
            "cannot listen at %s: an address is HOST:PORT, [HOST]:PORT, :PORT or unix:PATH", text);
    }
    *ret_address = address;
    return 0;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return is_loopback_v4(((const struct sockaddr_in *)(const void *)address)->sin_addr);
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static int resolve(const struct kinf__address *address, bool is_guarded,
                   struct addrinfo **ret_found, struct kinf_error *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    const char *host = address->host[0] != '\0' ? address->host : NULL;
    struct addrinfo *found;

    if (getaddrinfo(host, address->port, &hints, &found) != 0)
        return kinf__error_set(err, KINF_ERR_INVALID, "cannot listen at %s: no such host",
                               address->text);
    if (!is_guarded && !is_loopback(found->ai_addr)) {
        freeaddrinfo(found);
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "cannot listen at %s: an address that is not loopback needs TLS and "
                               "'auth: delegated'",
                               address->text);
    }
    *ret_found = found;
    return 0;
}

int kinf__address_check(const char *text, bool is_guarded, struct kinf_error *err)
{
    struct kinf__address address;
    struct addrinfo *found;
    int failed = kinf__address_parse(text, &address, err);

    if (failed < 0 || address.path != NULL)
        return failed;
    failed = resolve(&address, is_guarded, &found, err);
    if (failed == 0)
        freeaddrinfo(found);
    return failed;
}

/* `of_all`: IPv4 is taken by a socket of IPv6, too. Returns the socket, or -errno. */
static int bind_one(const struct addrinfo *to, bool of_all)
{
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int yes = 1, no = 0, error;

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        (!of_all || to->ai_family != AF_INET6 ||
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0) &&
        bind(fd, to->ai_addr, to->ai_addrlen) == 0)
        return fd;
    error = errno;
    if (fd >= 0)
        close(fd);
    return -error;
}

/* What a machine without IPv6 says to the one is no failure of the other. */
static int bind_all(const struct addrinfo *found)
{
    static const int families[] = { AF_INET6, AF_INET };
    int fd = -EAFNOSUPPORT;

    for (size_t i = 0; i < 2 && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL); i++) {
        const struct addrinfo *to = found;

        while (to != NULL && to->ai_family != families[i])
            to = to->ai_next;
        if (to != NULL)
            fd = bind_one(to, true);
    }
    return fd;
}

static int bind_tcp(const struct kinf__address *address, bool is_guarded, int *ret_fd,
                    struct kinf_error *err)
{
    struct addrinfo *found;
    int failed = resolve(address, is_guarded, &found, err), fd;

    if (failed < 0)
        return failed;
    fd = address->host[0] == '\0' ? bind_all(found) : bind_one(found, false);
    freeaddrinfo(found);
    if (fd < 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, -fd, "cannot listen at %s",
                                     address->text);
    *ret_fd = fd;
    return 0;
}

/* A socket's file that nobody listens at is what is left of a process that was killed. */
static void remove_abandoned(const struct sockaddr_un *address)
{
    KINF__AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat file;

    if (fd >= 0 && lstat(address->sun_path, &file) == 0 && S_ISSOCK(file.st_mode) &&
        connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 && errno == ECONNREFUSED)
        unlink(address->sun_path);
}

static int bind_unix(const struct kinf__address *address, mode_t mode, int *ret_fd,
                     struct kinf_error *err)
{
    struct sockaddr_un file = { .sun_family = AF_UNIX };
    mode_t mask;
    int fd, bound, failed;

    snprintf(file.sun_path, sizeof file.sun_path, "%s", address->path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot listen at %s",
                                     address->text);
    remove_abandoned(&file);
    mask = umask(0777 & ~mode);
    bound = bind(fd, (const struct sockaddr *)&file, sizeof file);
    umask(mask);
    if (bound < 0) {
        failed = kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot listen at %s",
                                       address->text);
        close(fd);
        return failed;
    }
    *ret_fd = fd;
    return 0;
}

int kinf__address_bind(const struct kinf__address *address, bool is_guarded, mode_t unix_mode,
                       int *ret_fd, struct kinf_error *err)
{
    return address->path != NULL ? bind_unix(address, unix_mode, ret_fd, err)
                                 : bind_tcp(address, is_guarded, ret_fd, err);
}

char *kinf__address_url(const struct kinf__address *address, int fd, const char *scheme)
{
    struct sockaddr_storage bound = { .ss_family = AF_UNSPEC };
    socklen_t len = sizeof bound;
    char host[NI_MAXHOST], port[NI_MAXSERV], *url = NULL;

    if (address->path != NULL)
        return strdup(address->text);
    if (getsockname(fd, (struct sockaddr *)&bound, &len) < 0 ||
        getnameinfo((struct sockaddr *)&bound, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0 ||
        asprintf(&url, bound.ss_family == AF_INET6 ? "%s://[%s]:%s" : "%s://%s:%s", scheme, host,
                 port) < 0)
        return NULL; /* no memory */
    return url;
}

bool kinf__address_is_local_host(const char *host)
{
    char name[64];
    struct in_addr v4;
    size_t len = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    const char *port = len <= strlen(host) ? host + len : "";

    if (len >= sizeof name || (*port != '\0' && (*port != ':' || !is_number(port + 1))))
        return false;
    memcpy(name, host, len);
    name[len] = '\0';
    if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0)
        return true;
    return inet_pton(AF_INET, name, &v4) == 1 && is_loopback_v4(v4);
}
