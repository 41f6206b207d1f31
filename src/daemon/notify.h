/*
 * Telling the service manager how it goes: READY, RELOADING, STOPPING and the watchdog, by the
 * sd_notify protocol (datagrams to the socket that NOTIFY_SOCKET names). Without that variable
 * nothing is told.
 *
 * Mirrors: sd_notify(3), sd_watchdog_enabled(3).
 * Threads: one thread.
 */
#ifndef KINF_DAEMON_NOTIFY_H
#define KINF_DAEMON_NOTIFY_H

#include <stdint.h>

/* Sends lines such as "READY=1\nSTATUS=..."; failures are logged. */
void kinf__notify(const char *state);
/* The same behind a reload's start, which needs the time. */
void kinf__notify_reloading(void);

/* How often "WATCHDOG=1" has to be sent at least, in milliseconds (half of what the manager allows);
 * negative: not at all. */
int64_t kinf__notify_watchdog_ms(void);

#endif
