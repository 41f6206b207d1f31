/*
 * Lines for the driver.
 */
#include "soak/verdict.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#define MAX_LINES 200 /* what comes behind is only counted */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t n_found;

void verdict_diverges(const char *promise, const char *form, ...)
{
    char text[600];
    va_list args;

    va_start(args, form);
    vsnprintf(text, sizeof text, form, args);
    va_end(args);
    for (char *at = text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\' || *at < ' ')
            *at = '\'';
    }
    pthread_mutex_lock(&lock);
    if (n_found++ < MAX_LINES) {
        printf("{\"diverges\":\"%s\",\"what\":\"%s\"}\n", promise, text);
        fflush(stdout);
    }
    pthread_mutex_unlock(&lock);
}

uint64_t verdict_count(void)
{
    uint64_t n;

    pthread_mutex_lock(&lock);
    n = n_found;
    pthread_mutex_unlock(&lock);
    return n;
}

void verdict_say(const char *form, ...)
{
    va_list args;

    pthread_mutex_lock(&lock);
    va_start(args, form);
    vprintf(form, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
    pthread_mutex_unlock(&lock);
}
