/*
 * How far lists are, for whoever waits for them. Neighbours: the informers know it, daemon.c asks
 * here each time that it wakes.
 */
#include "daemon/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define LONG_MS     2000
#define TERMINAL_MS 500
#define LOG_MS      10000
#define MAX_LOGGED  10 /* lists at once; the others are counted */
#define MAX_COLUMNS 512

void kinf__progress_init(struct kinf__progress *progress)
{
    progress->is_terminal = isatty(STDERR_FILENO);
    progress->told_ms = kinf__clock_now_ms();
}

/* --- what is under way --- */

/* Those of the configuration, then those on demand; NULL: there are no more. */
static const struct kinf__watch *watch_at(const struct kinf__watches *watches,
                                          const struct kinf__on_demand *on_demand, size_t i)
{
    return i < watches->n_items ? watches->items[i]
                                : kinf__on_demand_watch(on_demand, i - watches->n_items);
}

static size_t count_informers(const struct kinf__watches *watches,
                              const struct kinf__on_demand *on_demand)
{
    const struct kinf__watch *watch;
    size_t n = 0;

    for (size_t i = 0; (watch = watch_at(watches, on_demand, i)) != NULL; i++)
        n += watch->n_informers;
    return n;
}

static bool look_at(const struct kinf__watch *watch, size_t i, int64_t now_ms,
                    struct kinf__progress_item *ret_item)
{
    const struct kinf__strings *namespaces = &watch->config->namespaces;
    struct kinf_informer_status status;

    kinf_informer_status(watch->informers[i], &status);
    *ret_item = (struct kinf__progress_item){
        .resource = watch->resource,
        .name_space = i < namespaces->n_items ? namespaces->items[i] : NULL,
        .n_objects = status.n_list_objects,
        .n_expected = status.n_list_expected,
        .n_bytes = status.list_bytes,
        .for_ms = now_ms - status.list_since_ms,
    };
    return status.list_since_ms != 0;
}

static int compare_slowest_first(const void *left, const void *right)
{
    const struct kinf__progress_item *a = left, *b = right;

    return (a->for_ms < b->for_ms) - (a->for_ms > b->for_ms);
}

/* Those that have taken long, the slowest first. *ret_is_any: there is a list, if not a long one, or
 * the first one is still to come. */
static size_t gather(const struct kinf__watches *watches, const struct kinf__on_demand *on_demand,
                     int64_t now_ms, struct kinf__progress_item *items, bool *ret_is_any)
{
    const struct kinf__watch *watch;
    size_t n = 0;

    *ret_is_any = !kinf__watches_have_synced(watches);
    for (size_t i = 0; (watch = watch_at(watches, on_demand, i)) != NULL; i++) {
        for (size_t k = 0; k < watch->n_informers; k++) {
            bool is_listing = look_at(watch, k, now_ms, &items[n]);

            *ret_is_any = *ret_is_any || is_listing;
            n += is_listing && items[n].for_ms >= LONG_MS;
        }
    }
    qsort(items, n, sizeof *items, compare_slowest_first);
    return n;
}

/* --- on a terminal --- */

static void write_item(const struct kinf__progress_item *item, char *buf, size_t size)
{
    char expected[32] = "";

    if (item->n_expected > item->n_objects)
        snprintf(expected, sizeof expected, " of about %" PRIu64, item->n_expected);
    snprintf(buf, size, "%s%s%s: %" PRIu64 "%s objects, %.1f MB, %" PRId64 " s", item->resource,
             item->name_space != NULL ? " in " : "",
             item->name_space != NULL ? item->name_space : "", item->n_objects, expected,
             (double)item->n_bytes / 1e6, item->for_ms / 1000);
}

const char *kinf__progress_line(const struct kinf__progress_item *items, size_t n_items, char *buf,
                                size_t size)
{
    size_t len = (size_t)snprintf(buf, size, "listing ");

    for (size_t i = 0; i < n_items && len < size; i++) {
        char text[MAX_COLUMNS], more[40] = "";

        write_item(&items[i], text, sizeof text);
        if (i + 1 < n_items)
            snprintf(more, sizeof more, "; and %zu more", n_items - i - 1);
        if (i != 0 && len + strlen("; ") + strlen(text) + strlen(more) >= size) {
            snprintf(buf + len, size - len, "; and %zu more", n_items - i);
            break;
        }
        len += (size_t)snprintf(buf + len, size - len, "%s%s", i == 0 ? "" : "; ", text);
    }
    return buf;
}

static void show(const struct kinf__progress_item *items, size_t n_items)
{
    struct winsize window = { .ws_col = 0 };
    char line[MAX_COLUMNS];
    size_t n_columns = 80;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
        n_columns = window.ws_col;
    /* The last column stays free: some terminals would begin a new line behind it. */
    kinf__log_show_progress(
        n_items == 0 ? ""
                     : kinf__progress_line(items, n_items, line,
                                           n_columns < sizeof line ? n_columns : sizeof line));
}

/* --- in the log --- */

/* An answer that has not begun is no progress; if it fails, that has a line of its own. */
static void log_item(const struct kinf__progress_item *item)
{
    if (item->n_bytes == 0)
        return;
    KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO,
              "listing resource=%s namespace=%s objects=%" PRIu64 " expected=%" PRIu64
              " bytes=%" PRIu64 " ms=%" PRId64,
              item->resource, item->name_space != NULL ? item->name_space : "*", item->n_objects,
              item->n_expected, item->n_bytes, item->for_ms);
}

static void log_items(const struct kinf__progress_item *items, size_t n_items)
{
    for (size_t i = 0; i < n_items && i < MAX_LOGGED; i++)
        log_item(&items[i]);
    if (n_items > MAX_LOGGED)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO, "listing more resources=%zu",
                  n_items - MAX_LOGGED);
}

/* --- what the header promises --- */

static int64_t tell(struct kinf__progress *progress, const struct kinf__progress_item *items,
                    size_t n_items, int64_t now_ms)
{
    if (progress->is_terminal) {
        show(items, n_items);
        return TERMINAL_MS;
    }
    if (now_ms - progress->told_ms >= LOG_MS) {
        log_items(items, n_items);
        progress->told_ms = now_ms;
    }
    return progress->told_ms + LOG_MS - now_ms;
}

int64_t kinf__progress_tell(struct kinf__progress *progress, const struct kinf__watches *watches,
                            const struct kinf__on_demand *on_demand)
{
    struct kinf__progress_item *items =
        calloc(count_informers(watches, on_demand) + 1, sizeof *items);
    int64_t now_ms = kinf__clock_now_ms(), again_ms = -1;
    bool is_any;
    size_t n_items;

    if (items == NULL)
        return again_ms; /* what is only told may be left out */
    n_items = gather(watches, on_demand, now_ms, items, &is_any);
    if (is_any)
        again_ms = tell(progress, items, n_items, now_ms);
    else
        kinf__progress_end();
    free(items);
    return again_ms;
}

void kinf__progress_end(void)
{
    kinf__log_show_progress("");
}
