/*
 * The linker sends every call of malloc and its kin through the wrappers below (Makefile: --wrap).
 */
#include "unit/allocation.h"

#include <stdlib.h>

#include "unit/sweep.h"

static _Thread_local size_t n_until_failure;
static _Thread_local bool has_failed;

void test_fail_allocation(size_t n)
{
    n_until_failure = n;
    has_failed = false;
}

bool test_allocation_failed(void)
{
    n_until_failure = 0;
    return has_failed;
}

static bool fails_now(void)
{
    if (n_until_failure == 0 || --n_until_failure != 0)
        return test_swept_fails_now(TEST_SWEPT_ALLOCATIONS);
    has_failed = true;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t n, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t len);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails_now() ? NULL : __real_realloc(old, size);
}

void *__wrap_reallocarray(void *old, size_t n, size_t size)
{
    return fails_now() ? NULL : __real_reallocarray(old, n, size);
}

char *__wrap_strdup(const char *text)
{
    return fails_now() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t len)
{
    return fails_now() ? NULL : __real_strndup(text, len);
}
