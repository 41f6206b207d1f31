/*
 * Calls that fail now and then, for LD_PRELOAD. BAD_CALLS_FILE is the state, which a test shares
 * (struct state): while `is_on`, calls on TCP connections are short, interrupted or reset, and there
 * are no more descriptors; the `thread`-th thread cannot be started.
 *
 * Connections that were accepted are spared short calls: who waits for edges takes one for the
 * end of what there is, as epoll(7) allows, and in the kernel it is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_FDS 65536

enum fault { NONE, SHORT, INTERRUPTED, RESET, NO_DESCRIPTOR, N_FAULTS };

struct state {
    _Atomic uint32_t is_on;
    _Atomic uint32_t seed;      /* counts on */
    _Atomic uint32_t thread;    /* 0: none fails */
    _Atomic uint32_t n_threads; /* that were to be started */
    _Atomic uint32_t n_faults[N_FAULTS];
};

static struct state *state;
static atomic_bool is_accepted[N_FDS];

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("BAD_CALLS_FILE");
    int fd = path != NULL ? REAL(open)(path, O_RDWR | O_CLOEXEC) : -1;
    void *map =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (map == MAP_FAILED)
        abort();
    close(fd);
    state = map;
}

static uint32_t draw(void)
{
    uint64_t z = atomic_fetch_add(&state->seed, 1) * 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (uint32_t)(z >> 32);
}

static enum fault note(enum fault fault)
{
    state->n_faults[fault]++;
    return fault;
}

static bool is_connection(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;

    return getpeername(fd, (struct sockaddr *)&address, &len) == 0 &&
           (address.ss_family == AF_INET || address.ss_family == AF_INET6);
}

/* What happens to a call that takes or gives `len` bytes. A connection that is reset stays so. */
static enum fault befall(int fd, size_t len)
{
    int saved = errno;
    enum fault fault = NONE;
    uint32_t drawn;

    if (state == NULL || !state->is_on || !is_connection(fd)) {
        errno = saved;
        return NONE;
    }
    drawn = draw() % 100;
    errno = saved;
    if (drawn < 1)
        fault = RESET;
    else if (drawn < 15)
        fault = INTERRUPTED;
    else if (drawn < 60 && len > 1 && fd < N_FDS && !is_accepted[fd])
        fault = SHORT;
    if (fault == RESET)
        shutdown(fd, SHUT_RDWR);
    if (fault == RESET || fault == INTERRUPTED)
        errno = fault == RESET ? ECONNRESET : EINTR;
    return note(fault);
}

static bool lacks_descriptor(void)
{
    if (state == NULL || !state->is_on || draw() % 4 != 0)
        return false;
    note(NO_DESCRIPTOR);
    errno = EMFILE;
    return true;
}

/* Of `len`, so many. */
static size_t part(enum fault fault, size_t len)
{
    return fault == SHORT ? 1 + draw() % (len < 64 ? len : 64) : len;
}

#define BYTES(name, params, fd, len, ...)                                                          \
    ssize_t name params                                                                            \
    {                                                                                              \
        enum fault fault = befall(fd, len);                                                        \
                                                                                                   \
        if (fault == INTERRUPTED || fault == RESET)                                                \
            return -1;                                                                             \
        len = part(fault, len);                                                                    \
        return REAL(name)(__VA_ARGS__);                                                            \
    }

BYTES(recv, (int fd, void *to, size_t len, int flags), fd, len, fd, to, len, flags)
BYTES(recvfrom,
      (int fd, void *restrict to, size_t len, int flags, struct sockaddr *restrict from,
       socklen_t *restrict from_len),
      fd, len, fd, to, len, flags, from, from_len)
BYTES(read, (int fd, void *to, size_t len), fd, len, fd, to, len)
BYTES(send, (int fd, const void *from, size_t len, int flags), fd, len, fd, from, len, flags)
BYTES(sendto,
      (int fd, const void *from, size_t len, int flags, const struct sockaddr *to,
       socklen_t to_len),
      fd, len, fd, from, len, flags, to, to_len)
BYTES(write, (int fd, const void *from, size_t len), fd, len, fd, from, len)

/* Of vectors none is cut. */
#define VECTORS(name, params, fd, ...)                                                             \
    ssize_t name params                                                                            \
    {                                                                                              \
        enum fault fault = befall(fd, 0);                                                          \
                                                                                                   \
        return fault == NONE ? REAL(name)(__VA_ARGS__) : -1;                                       \
    }

VECTORS(recvmsg, (int fd, struct msghdr *message, int flags), fd, fd, message, flags)
VECTORS(sendmsg, (int fd, const struct msghdr *message, int flags), fd, fd, message, flags)

int socket(int family, int type, int protocol)
{
    int fd = lacks_descriptor() ? -1 : REAL(socket)(family, type, protocol);

    if (fd >= 0 && fd < N_FDS)
        is_accepted[fd] = false;
    return fd;
}

static int note_accepted(int fd)
{
    if (fd >= 0 && fd < N_FDS)
        is_accepted[fd] = true;
    return fd;
}

int accept(int fd, struct sockaddr *restrict from, socklen_t *restrict len)
{
    return lacks_descriptor() ? -1 : note_accepted(REAL(accept)(fd, from, len));
}

int accept4(int fd, struct sockaddr *restrict from, socklen_t *restrict len, int flags)
{
    return lacks_descriptor() ? -1 : note_accepted(REAL(accept4)(fd, from, len, flags));
}

int open(const char *path, int flags, ...)
{
    va_list more;
    mode_t mode;

    va_start(more, flags);
    mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    return lacks_descriptor() ? -1 : REAL(open)(path, flags, mode);
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*main)(void *), void *restrict ctx)
{
    if (state != NULL && ++state->n_threads == state->thread)
        return EAGAIN;
    return REAL(pthread_create)(thread, attributes, main, ctx);
}
