/*
 * Files and log of the tests of plugins.
 */
#include "unit/plugin_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kinformer/log.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "unit/test.h"

static char folder[64];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kinf__buffer logged;

static void note(enum kinf_log_level level, const char *module, const char *line, void *ctx)
{
    (void)level;
    (void)ctx;
    if (strcmp(module, "handlers") != 0)
        return;
    pthread_mutex_lock(&log_lock);
    if (kinf__buffer_printf(&logged, "%s\n", line) < 0)
        abort();
    pthread_mutex_unlock(&log_lock);
}

void plugin_fixture_begin(void)
{
    assert_non_null(mkdtemp(strcpy(folder, "/tmp/kinformer-test-XXXXXX")));
    kinf_log_set_callback(note, NULL);
}

void plugin_fixture_end(void)
{
    char command[128];

    kinf_log_set_callback(NULL, NULL);
    kinf__buffer_release(&logged);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static char *next_path(void)
{
    static char paths[4][512];
    static size_t n;

    return paths[n++ % 4];
}

const char *plugin_variant(const char *name)
{
    char *path = next_path(), program[400];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program);

    assert_true(len > 0 && (size_t)len < sizeof program);
    program[len] = '\0';
    *strrchr(program, '/') = '\0';
    snprintf(path, 512, "%s/plugins/%s.so", program, name);
    return path;
}

const char *plugin_file(const char *name)
{
    return strcat(strcat(strcpy(next_path(), folder), "/"), name);
}

void plugin_install(const char *variant, const char *file, size_t len)
{
    KINF__AUTO_BUFFER content = KINF__BUFFER_INIT;

    assert_int_equal(kinf__file_read(plugin_variant(variant), SIZE_MAX, &content, NULL), 0);
    content.len = len < content.len ? len : content.len;
    assert_int_equal(kinf__file_replace(plugin_file(file), kinf__buffer_str(&content), NULL), 0);
}

size_t plugin_count_log(const char *text)
{
    const char *at;
    size_t n = 0;

    pthread_mutex_lock(&log_lock);
    at = kinf__buffer_cstr(&logged);
    while (at != NULL && (at = strstr(at, text)) != NULL)
        n++, at++;
    pthread_mutex_unlock(&log_lock);
    return n;
}

void plugin_wait_log(const char *text)
{
    int64_t deadline_ms = kinf__clock_now_ms() + PLUGIN_PATIENCE_MS;

    while (plugin_count_log(text) == 0) {
        if (kinf__clock_now_ms() > deadline_ms)
            fail_msg("not logged: %s; but: %s", text, logged.bytes);
        plugin_nap();
    }
}

void plugin_nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}
