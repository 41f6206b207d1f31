/*
 * One socket, whole lines.
 */
#include "soak/link.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LINE_SIZE 700

static int fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char defect[8];      /* drop, twice, swap, old, store; "": none */
static unsigned long every; /* of these */
static unsigned long n_events;
static char held[LINE_SIZE]; /* by swap: for behind the next one */

static void send_line(const char *line)
{
    size_t len = strlen(line);

    while (len != 0) {
        ssize_t n = send(fd, line, len, MSG_NOSIGNAL);

        if (n <= 0)
            _exit(0);
        line += n;
        len -= (size_t)n;
    }
}

static void format_line(char *line, const char *prefix, const char *form, va_list args)
{
    size_t len = (size_t)snprintf(line, LINE_SIZE, "%s", prefix);

    vsnprintf(line + len, LINE_SIZE - len - 1, form, args);
    for (char *at = line; *at != '\0'; at++)
        *at = *at == '\n' ? ' ' : *at;
    strcat(line, "\n");
}

void link_open(const char *path, const char *name, const char *scope, const char *given)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        perror(path);
        exit(1);
    }
    sscanf(given, "%7[a-z]=%lu", defect, &every);
    link_say("hello %s handler %s", name, scope);
}

static void say(const char *prefix, const char *form, va_list args)
{
    char line[LINE_SIZE];

    format_line(line, prefix, form, args);
    pthread_mutex_lock(&lock);
    send_line(line);
    pthread_mutex_unlock(&lock);
}

void link_say(const char *form, ...)
{
    va_list args;

    va_start(args, form);
    say("", form, args);
    va_end(args);
}

void link_complain(const char *form, ...)
{
    va_list args;

    va_start(args, form);
    say("X ", form, args);
    va_end(args);
}

/* Whether this is one of those with the defect. */
static bool is_bad(const char *name)
{
    return every != 0 && strcmp(defect, name) == 0 && ++n_events % every == 0;
}

/* The last digit of the sum of `old`. */
static void spoil_old(char *line)
{
    char *last = line + strlen(line) - 2;

    *last = *last == '0' ? '1' : '0';
}

static void send_event(char *line)
{
    if (is_bad("drop"))
        return;
    if (line[0] == 'U' && is_bad("old"))
        spoil_old(line);
    if (is_bad("twice"))
        send_line(line);
    if (held[0] == '\0' && is_bad("swap")) {
        strcpy(held, line);
        return;
    }
    send_line(line);
    if (held[0] != '\0')
        send_line(held);
    held[0] = '\0';
}

void link_event(char op, const char *form, ...)
{
    const char prefix[] = { op, ' ', '\0' };
    char line[LINE_SIZE];
    va_list args;

    va_start(args, form);
    format_line(line, prefix, form, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    send_event(line);
    pthread_mutex_unlock(&lock);
}

void link_stored(const char *form, ...)
{
    va_list args;

    va_start(args, form);
    if (!is_bad("store"))
        say("S ", form, args);
    va_end(args);
}

bool link_wait_check(void)
{
    char command[6];

    return recv(fd, command, sizeof command, MSG_WAITALL) == sizeof command;
}
