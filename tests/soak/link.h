/*
 * A follower's way to the oracle: lines of stream.h. Writing blocks while the oracle does not read, as
 * a slow handler would. When the oracle has gone the process ends.
 *
 * Threads: any, but link_open() and link_wait_check(): main.
 */
#ifndef SOAK_LINK_H
#define SOAK_LINK_H

#include <stdbool.h>

/* `scope`: what of stream.h limits it; `defect`: "", or of follower.c's. */
void link_open(const char *path, const char *name, const char *scope, const char *defect);
/* A, U or D: the defects are here. */
void link_event(char op, const char *form, ...) __attribute__((format(printf, 2, 3)));
/* S: likewise. */
void link_stored(const char *form, ...) __attribute__((format(printf, 1, 2)));
void link_say(const char *form, ...) __attribute__((format(printf, 1, 2)));
/* Something is wrong by our own account. */
void link_complain(const char *form, ...) __attribute__((format(printf, 1, 2)));
/* Waits for "check"; false: the oracle has gone. */
bool link_wait_check(void);

#endif
