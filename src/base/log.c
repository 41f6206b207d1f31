/*
 * The log callback and the levels. Levels are atomic so that a disabled line costs one load.
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kinformer/str.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/misuse.h"
#include "base/rfc3339.h"

#define LINE_SIZE   1024
#define PATIENCE_MS 1000 /* with a reader of standard error */

static const char *const module_names[] = {
#define X(module, name) [module] = name,
    KINF__LOG_MODULES(X)
#undef X
};

static const char *const level_names[] = {
    [KINF_LOG_OFF] = "off",   [KINF_LOG_ERROR] = "error", [KINF_LOG_WARN] = "warn",
    [KINF_LOG_INFO] = "info", [KINF_LOG_DEBUG] = "debug",
};

/* Atomic. */
static _Atomic(int) levels[KINF__N_LOG_MODULES] = {
#define X(module, name) [module] = KINF_LOG_INFO,
    KINF__LOG_MODULES(X)
#undef X
};

/* Guarded by callback_lock. */
static struct kinf__mutex callback_lock = KINF__MUTEX_INIT(KINF__RANK_LOG);
static kinf_log_cb *log_callback KINF__GUARDED_BY(callback_lock);
static void *log_ctx KINF__GUARDED_BY(callback_lock);

/* - nobody read standard error in time for the last line; how many were lost since one was written */
static bool is_stuck KINF__GUARDED_BY(callback_lock);
static uint64_t n_lost KINF__GUARDED_BY(callback_lock);

/* - a line of progress stands on the terminal; atomic, too, since it is erased by others */
static _Atomic(bool) has_progress;

#define ERASE "\r\033[K"

/* This thread is in the callback, which the lock is held for: what it asks of the log would wait for
 * itself. */
static _Thread_local bool is_in_callback;
static _Thread_local bool was_set_inside; /* it tried to */

static int find_name(const char *const *names, size_t n_names, struct kinf_str name)
{
    for (size_t i = 0; i < n_names; i++) {
        if (kinf_str_equal(kinf_str_from(names[i]), name))
            return (int)i;
    }
    return -1;
}

static int parse_term(struct kinf_str term, int *parsed, struct kinf_error *err)
{
    const char *equals = memchr(term.bytes, '=', term.len);
    struct kinf_str module = { "all", 3 }, level = term;
    int module_no, level_no;

    if (equals != NULL) {
        module.bytes = term.bytes;
        module.len = (size_t)(equals - term.bytes);
        level.bytes = equals + 1;
        level.len = term.len - module.len - 1;
    }
    level_no = find_name(level_names, KINF__ARRAY_LEN(level_names), level);
    if (level_no < 0)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "log level '%.*s' is none of off, error, warn, info, debug",
                               (int)level.len, level.bytes);
    module_no = find_name(module_names, KINF__ARRAY_LEN(module_names), module);
    if (module_no < 0 && !kinf_str_equal(module, KINF_STR("all")))
        return kinf__error_set(err, KINF_ERR_INVALID, "there is no log module '%.*s'",
                               (int)module.len, module.bytes);
    for (int i = 0; i < KINF__N_LOG_MODULES; i++) {
        if (module_no < 0 || module_no == i)
            parsed[i] = level_no;
    }
    return 0;
}

int kinf_log_set_levels(const char *text, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, text);

    int parsed[KINF__N_LOG_MODULES];

    for (int i = 0; i < KINF__N_LOG_MODULES; i++)
        parsed[i] = atomic_load_explicit(&levels[i], memory_order_relaxed);
    for (const char *at = text;;) {
        size_t len = strcspn(at, ",");
        int failed = parse_term((struct kinf_str){ at, len }, parsed, err);

        if (failed < 0)
            return failed;
        if (at[len] == '\0')
            break;
        at += len + 1;
    }
    for (int i = 0; i < KINF__N_LOG_MODULES; i++)
        atomic_store_explicit(&levels[i], parsed[i], memory_order_relaxed);
    return 0;
}

void kinf_log_set_callback(kinf_log_cb *callback, void *ctx)
{
    if (is_in_callback) {
        was_set_inside = true;
        return;
    }
    kinf__mutex_lock(&callback_lock);
    log_callback = callback;
    log_ctx = ctx;
    kinf__mutex_unlock(&callback_lock);
}

void kinf__log_show_progress(const char *text)
{
    if (*text == '\0' && !atomic_load(&has_progress))
        return;
    kinf__mutex_lock(&callback_lock);
    fprintf(stderr, ERASE "%s", text);
    atomic_store(&has_progress, *text != '\0');
    kinf__mutex_unlock(&callback_lock);
}

/* A pipe that takes anything takes a whole line. Whoever has something to say waits for the lock: a
 * reader that has not read in time is waited for no more until it reads. */
static bool has_room(void) KINF__REQUIRES(callback_lock)
{
    struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };
    int n;

    do
        n = poll(&out, 1, is_stuck ? 0 : PATIENCE_MS);
    while (n < 0 && errno == EINTR);
    is_stuck = n == 0;
    n_lost += is_stuck;
    return !is_stuck;
}

/* The callback's lock is held, which its type cannot say. */
static void write_to_stderr(enum kinf_log_level level, const char *module, const char *line,
                            void *ctx) KINF__NO_TSA
{
    char when[KINF__RFC3339_SIZE], lost[40] = "";
    int64_t now_ms = kinf__clock_wall_ms();

    (void)ctx;
    if (!has_room())
        return;
    if (n_lost != 0)
        snprintf(lost, sizeof lost, " lines_lost=%" PRIu64, n_lost);
    n_lost = 0;
    kinf__rfc3339_write(now_ms / 1000, (int)(now_ms % 1000) * 1000, 3, when);
    fprintf(stderr, "%s%s %s %s: %s%s\n", atomic_exchange(&has_progress, false) ? ERASE : "", when,
            kinf_log_level_to_string(level), module, line, lost);
}

void kinf_log_to_stderr(void)
{
    kinf_log_set_callback(write_to_stderr, NULL);
}

const char *kinf_log_level_to_string(enum kinf_log_level level)
{
    return (size_t)level < KINF__ARRAY_LEN(level_names) ? level_names[level] : "unknown";
}

bool kinf__log_enabled(enum kinf__log_module module, enum kinf_log_level level)
{
    return (int)level <= atomic_load_explicit(&levels[module], memory_order_relaxed);
}

static void deliver_locked(enum kinf__log_module module, enum kinf_log_level level,
                           const char *line) KINF__REQUIRES(callback_lock)
{
    if (log_callback == NULL)
        return;
    is_in_callback = true;
    log_callback(level, module_names[module], line, log_ctx);
    is_in_callback = false;
}

void kinf__log_write(enum kinf__log_module module, enum kinf_log_level level, const char *fmt, ...)
{
    char line[LINE_SIZE];
    va_list args;

    if (is_in_callback)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    kinf__make_one_line(line);
    kinf__mutex_lock(&callback_lock);
    deliver_locked(module, level, line);
    if (was_set_inside)
        deliver_locked(KINF__LOG_BASE, KINF_LOG_ERROR,
                       "misuse refused error=\"kinf_log_set_callback: called from the log "
                       "callback\"");
    was_set_inside = false;
    kinf__mutex_unlock(&callback_lock);
}

const char *kinf__log_quote(const char *text, char *buf, size_t size)
{
    size_t len = 0;

    buf[len++] = '"';
    for (; *text != '\0' && len + 4 <= size; text++) {
        if (*text == '"' || *text == '\\')
            buf[len++] = '\\';
        buf[len++] = *text;
    }
    buf[len++] = '"';
    buf[len] = '\0';
    return buf;
}

bool kinf__log_limit_pass(struct kinf__log_limit *limit, int64_t now_ms, uint64_t *ret_suppressed)
{
    if (now_ms < limit->next_ms) {
        limit->n_suppressed++;
        return false;
    }
    *ret_suppressed = limit->n_suppressed;
    limit->n_suppressed = 0;
    limit->next_ms = now_ms + limit->interval_ms;
    return true;
}
