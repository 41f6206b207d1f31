/*
 * The sd_notify protocol, by hand: it is one datagram, and libsystemd would be a dependency of every
 * image. Neighbours: daemon.c.
 */
#include "daemon/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

/* Returns the address' length, 0 if the name cannot be one. */
static socklen_t address_of(const char *name, struct sockaddr_un *address)
{
    size_t len = strlen(name);

    if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof address->sun_path)
        return 0;
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, name, len + 1);
    /* '@' stands for the NUL of the abstract namespace. */
    if (name[0] == '@')
        address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static void log_failure(const char *what, int error)
{
    KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN, "cannot tell the service manager: %s: %s", what,
              strerror(error));
}

void kinf__notify(const char *state)
{
    struct sockaddr_un address = { 0 };
    const char *name = getenv("NOTIFY_SOCKET");
    socklen_t len;
    int fd;

    if (name == NULL || name[0] == '\0')
        return;
    len = address_of(name, &address);
    if (len == 0) {
        log_failure("NOTIFY_SOCKET", EINVAL);
        return;
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        log_failure("socket", errno);
        return;
    }
    /* A manager that does not read must not stop us. */
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&address,
               len) < 0)
        log_failure(name, errno);
    close(fd);
}

void kinf__notify_reloading(void)
{
    struct timespec now;
    char state[64];

    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
             (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    kinf__notify(state);
}

static int64_t number_of(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long long number;

    if (text == NULL || text[0] == '\0')
        return -1;
    errno = 0;
    number = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' ? number : -1;
}

int64_t kinf__notify_watchdog_ms(void)
{
    int64_t allowed_us = number_of("WATCHDOG_USEC"), pid = number_of("WATCHDOG_PID");
    int64_t period_ms = allowed_us / 2000;

    if (allowed_us <= 0 || (pid >= 0 && pid != getpid()))
        return -1;
    return period_ms > 0 ? period_ms : 1;
}
