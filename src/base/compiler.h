/*
 * What the compiler is told: cleanup attributes, branch hints, clang's thread-safety annotations.
 */
#ifndef KINF_BASE_COMPILER_H
#define KINF_BASE_COMPILER_H

#include <stdlib.h>
#include <unistd.h>

#include <kinformer/api.h>

#define KINF__LIKELY(x)    __builtin_expect(!!(x), 1)
#define KINF__UNLIKELY(x)  __builtin_expect(!!(x), 0)
#define KINF__ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define KINF__CONTAINER_OF(ptr, type, member)                                                      \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* For what is called in few places, each of which knows more of its arguments, and often. */
#define KINF__ALWAYS_INLINE static inline __attribute__((always_inline))

/* Runs `function` on the variable's address when it leaves its scope. */
#define KINF__CLEANUP(function) __attribute__((cleanup(function)))

static inline void kinf__free_ptr(void *ptr)
{
    free(*(void **)ptr);
}

static inline void kinf__close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

#define KINF__AUTO_FREE  KINF__CLEANUP(kinf__free_ptr)
#define KINF__AUTO_CLOSE KINF__CLEANUP(kinf__close_fd)

/* Gives up a variable's value to another owner, so that its cleanup finds nothing. */
#define KINF__TAKE(ptr)                                                                            \
    __extension__({                                                                                \
        __typeof__(ptr) t_ = (ptr);                                                                \
        (ptr) = NULL;                                                                              \
        t_;                                                                                        \
    })

#if defined(__clang__)
#define KINF__TSA(x) __attribute__((x))
#else
#define KINF__TSA(x)
#endif
#define KINF__CAPABILITY    KINF__TSA(capability("mutex"))
#define KINF__GUARDED_BY(x) KINF__TSA(guarded_by(x))
#define KINF__REQUIRES(...) KINF__TSA(requires_capability(__VA_ARGS__))
#define KINF__ACQUIRES(...) KINF__TSA(acquire_capability(__VA_ARGS__))
#define KINF__RELEASES(...) KINF__TSA(release_capability(__VA_ARGS__))
#define KINF__NO_TSA        KINF__TSA(no_thread_safety_analysis)

#endif
