/*
 * Loading plugins: good ones, bad ones, files that change meanwhile; and the table that they are handed.
 */
#include "handlers/plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "unit/allocation.h"
#include "unit/informer_fixture.h"
#include "unit/plugin_fixture.h"
#include "unit/test.h"

static bool has_no_memfd;
static struct kinf__plugin_counts counts;
static struct kinf__waker stop;

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags)
{
    errno = EPERM;
    return has_no_memfd ? -1 : __real_memfd_create(name, flags);
}

static int begin(void **state)
{
    (void)state;
    plugin_fixture_begin();
    kinf__plugin_counts_init(&counts);
    return kinf__waker_init(&stop, NULL);
}

static int end(void **state)
{
    (void)state;
    has_no_memfd = false;
    kinf__waker_release(&stop);
    kinf__plugin_counts_release(&counts);
    plugin_fixture_end();
    return 0;
}

static int try_load(const char *path, struct kinf__plugin **ret_plugin, struct kinf_error *err)
{
    const struct kinf__plugin_surroundings surroundings = { &counts, &stop };

    return kinf__plugin_load(path, &surroundings, ret_plugin, err);
}

static struct kinf__plugin *load(const char *path)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__plugin *plugin;

    if (try_load(path, &plugin, &err) < 0)
        fail_msg("%s", err.message);
    return plugin;
}

/* Says that it is no plugin, in words that begin with its path. */
static void assert_refused(const char *path, const char *words)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__plugin *plugin;

    assert_int_equal(try_load(path, &plugin, &err), KINF_ERR_CONFIG);
    if (strstr(err.message, words) == NULL || strstr(err.message, path) == NULL)
        fail_msg("'%s' and '%s' are not in: %s", path, words, err.message);
}

static void write_file(const char *name, const char *text)
{
    assert_int_equal(kinf__file_replace(plugin_file(name), kinf_str_from(text), NULL), 0);
}

/* --- a plugin that a test sees from inside --- */

static const struct kinf_host *host;
static bool is_closed;
static int to_return;

static int note_host(struct plugin_script *script, const struct kinf_host *handed, void **ret_state,
                     struct kinf_error *err)
{
    host = handed;
    is_closed = false;
    *ret_state = script;
    if (to_return < 0)
        strcpy(err->message, "the sea\nis rough");
    return to_return;
}

static int fail_silently(void *state, struct kinf_error *err)
{
    (void)state;
    (void)err;
    return 7;
}

static int read_nothing(void *state, const struct kinf_change *change, struct kinf_error *err)
{
    (void)state;
    (void)change;
    (void)err;
    return 0;
}

static void note_close(void *state)
{
    assert_non_null(state);
    is_closed = true;
}

static struct plugin_script script = { note_host, read_nothing, fail_silently, note_close, NULL };

static int try_open(struct kinf__plugin *plugin, struct kinf_error *err)
{
    char config[32];

    snprintf(config, sizeof config, "%llu", (unsigned long long)(uintptr_t)&script);
    return kinf__plugin_open(plugin, config, err);
}

static struct kinf__plugin *load_open(const char *path)
{
    struct kinf__plugin *plugin = load(path);

    to_return = 0;
    assert_int_equal(try_open(plugin, NULL), 0);
    return plugin;
}

/* --- loading --- */

static void bad_ones_are_refused_for_a_reason(void **state)
{
    static const struct {
        const char *variant;
        const char *words;
    } rows[] = {
        { "another_abi", "it is of ABI 2, this program has 1" },
        { "small", "bytes, one of ABI 1 has" },
        { "no_table", "its kinf_plugin_1() returns nothing" },
        { "no_symbol", "it has no kinf_plugin_1: it is no plugin, or one of another ABI" },
        { "undefined", "it cannot be loaded: undefined symbol: there_is_no_such_function" },
        { "no_name", "it has no name" },
        { "empty_name", "it has no name" },
        { "no_open", "it has no open" },
        { "no_on_change", "it has no on_change" },
        { "no_close", "it has no close" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        assert_refused(plugin_variant(rows[i].variant), rows[i].words);
}

static void good_ones_are_loaded(void **state)
{
    static const char *const variants[] = { "scripted", "larger", "no_flush", "another_name" };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(variants); i++) {
        struct kinf__plugin *plugin = load(plugin_variant(variants[i]));

        assert_true(kinf__plugin_table(plugin)->size >= sizeof(struct kinf_plugin));
        assert_false(kinf__plugin_is_open(plugin));
        kinf__plugin_free(plugin);
    }
}

static void files_that_are_none_are_refused(void **state)
{
    (void)state;
    assert_refused(plugin_file("absent.so"), "cannot read");
    assert_refused("/tmp", "is no file");
    assert_int_equal(mkfifo(plugin_file("pipe.so"), 0600), 0);
    assert_refused(plugin_file("pipe.so"), "is no file");
    write_file("text.so", "int main(void);\n");
    assert_refused(plugin_file("text.so"), "it is no shared object");
    write_file("empty.so", "");
    assert_refused(plugin_file("empty.so"), "it is no shared object");
    write_file("short.so", "\177ELF");
    assert_refused(plugin_file("short.so"), "it is cut off");
    assert_refused("/proc/self/exe", "it cannot be loaded");
}

/* Somebody copies it just now. */
static void one_that_is_cut_off_anywhere_is_refused_or_whole(void **state)
{
    size_t n_refused = 0, len = 0;
    struct stat status;

    (void)state;
    assert_int_equal(stat(plugin_variant("scripted"), &status), 0);
    for (; len < (size_t)status.st_size; len += 1 + len / 8) {
        struct kinf__plugin *plugin;

        plugin_install("scripted", "cut.so", len);
        if (try_load(plugin_file("cut.so"), &plugin, NULL) == 0)
            kinf__plugin_free(plugin);
        else
            n_refused++;
    }
    assert_true(n_refused > 10);
}

static void each_copy_has_variables_of_its_own(void **state)
{
    struct kinf__plugin *a = load_open(plugin_variant("scripted")), *b;
    int *n_opened = script.n_opened;

    (void)state;
    b = load_open(plugin_variant("scripted"));
    assert_ptr_not_equal(n_opened, script.n_opened);
    assert_int_equal(*n_opened, 1);
    assert_int_equal(*script.n_opened, 1);
    kinf__plugin_free(a);
    assert_int_equal(*script.n_opened, 1);
    kinf__plugin_free(b);
}

static void its_file_may_be_written_while_it_is_loaded(void **state)
{
    struct kinf__plugin *plugin;
    char zeros[4096] = { 0 };
    int fd;

    (void)state;
    plugin_install("scripted", "plugin.so", SIZE_MAX);
    plugin = load(plugin_file("plugin.so"));
    assert_false(kinf__plugin_is_outdated(plugin));
    fd = open(plugin_file("plugin.so"), O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_int_equal(write(fd, zeros, sizeof zeros), sizeof zeros);
    close(fd);
    to_return = 0;
    assert_int_equal(try_open(plugin, NULL), 0);
    assert_true(kinf__plugin_is_outdated(plugin));
    kinf__plugin_free(plugin);
}

static void without_files_in_memory_a_file_that_goes_serves(void **state)
{
    struct kinf__plugin *plugin;

    (void)state;
    has_no_memfd = true;
    assert_int_equal(mkdir(plugin_file("copies"), 0700), 0);
    setenv("TMPDIR", plugin_file("copies"), 1);
    plugin = load_open(plugin_variant("scripted"));
    kinf__plugin_free(plugin);
    assert_true(is_closed);
    assert_refused(plugin_variant("no_symbol"), "it has no kinf_plugin_1");
    assert_int_equal(rmdir(plugin_file("copies")), 0); /* it is empty */
    assert_int_equal(try_load(plugin_variant("scripted"), &plugin, NULL), KINF_ERR_SYSTEM);
    unsetenv("TMPDIR");
}

/* Its copy keeps the descriptor by which the linker knows it, which is nobody else's then. */
static void one_that_cannot_be_unloaded_is_not_taken_for_the_next(void **state)
{
    struct kinf__plugin *plugin = load_open(plugin_variant("nodelete"));
    int *n_opened = script.n_opened;

    (void)state;
    kinf__plugin_free(plugin);
    assert_true(is_closed);
    plugin = load_open(plugin_variant("nodelete"));
    assert_ptr_not_equal(script.n_opened, n_opened);
    assert_int_equal(*script.n_opened, 1);
    kinf__plugin_free(plugin);
    plugin = load(plugin_variant("another_name"));
    assert_string_equal(kinf__plugin_table(plugin)->name, "another");
    kinf__plugin_free(plugin);
    assert_int_equal(plugin_count_log("plugin cannot be unloaded, and stays path="), 2);
}

static void want_of_memory_is_an_ordinary_error(void **state)
{
    bool did_fail = true;
    size_t n_failures = 0;

    (void)state;
    for (size_t n = 1; did_fail; n++) {
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        struct kinf_error err = KINF_ERROR_INIT;
        int failed;

        test_fail_allocation(n);
        failed = kinf__plugin_describe(plugin_variant("scripted"), &out, &err);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
        n_failures += did_fail;
    }
    assert_true(n_failures >= 3);
}

static void it_is_described_without_being_opened(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    char wanted[128];

    (void)state;
    script.n_opened = NULL;
    snprintf(wanted, sizeof wanted,
             "plugin scripted: ABI 1, %zu bytes: open, on_change, flush, close",
             sizeof(struct kinf_plugin));
    assert_int_equal(kinf__plugin_describe(plugin_variant("scripted"), &out, NULL), 0);
    assert_string_equal(kinf__buffer_cstr(&out), wanted);
    out.len = 0;
    assert_int_equal(kinf__plugin_describe(plugin_variant("no_flush"), &out, NULL), 0);
    assert_null(strstr(kinf__buffer_cstr(&out), "flush,"));
    assert_null(script.n_opened);
    assert_int_equal(kinf__plugin_describe(plugin_variant("small"), &out, NULL), KINF_ERR_CONFIG);
}

/* --- calling it --- */

static void what_fails_says_what_it_said(void **state)
{
    struct kinf__plugin *plugin = load(plugin_variant("scripted"));
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    to_return = KINF_ERR_NETWORK;
    assert_int_equal(try_open(plugin, &err), KINF_ERR_NETWORK);
    assert_string_equal(err.message, "the sea is rough");
    assert_false(kinf__plugin_is_open(plugin));
    to_return = 0;
    assert_int_equal(try_open(plugin, &err), 0);
    assert_int_equal(kinf__plugin_flush(plugin, &err), KINF_ERR_INVALID);
    assert_string_equal(err.message, "it returned 7");
    kinf__plugin_free(plugin);
    assert_true(is_closed);
    plugin = load_open(plugin_variant("no_flush"));
    assert_int_equal(kinf__plugin_flush(plugin, &err), 0);
    kinf__plugin_free(plugin);
}

static void one_that_was_not_opened_is_not_closed(void **state)
{
    struct kinf__plugin *plugin = load(plugin_variant("scripted"));

    (void)state;
    to_return = KINF_ERR_NETWORK;
    assert_int_equal(try_open(plugin, NULL), KINF_ERR_NETWORK);
    kinf__plugin_free(plugin);
    assert_false(is_closed);
}

/* P6 */
static void a_leak_is_said_by_name_and_it_stays_loaded(void **state)
{
    struct kinf__plugin *plugin = load_open(plugin_variant("another_name"));
    const struct kinf_plugin *table = kinf__plugin_table(plugin);
    const struct kinf_object *object = make_thing("a", "1");
    size_t len;
    char *text;

    (void)state;
    host->ref(host, object);
    host->ref(host, object);
    text = host->json(host, object, &len);
    kinf__plugin_free(plugin);
    assert_true(is_closed);
    assert_int_equal(
        plugin_count_log("plugin leaks, and stays loaded handler=\"another\" objects=2 texts=1\n"),
        1);
    assert_string_equal(table->name, "another");
    assert_string_equal(host->key(host, object), "ns/a");
    host->unref(host, object);
    host->unref(host, object);
    host->free_text(host, text);
    kinf_object_unref(object);
}

static void more_than_is_held_cannot_be_given_back(void **state)
{
    struct kinf__plugin *plugin = load_open(plugin_variant("scripted"));
    const struct kinf_object *object = make_thing("a", "1");

    (void)state;
    assert_ptr_equal(host->ref(host, object), object);
    host->unref(host, object);
    host->unref(host, object);
    assert_int_equal(plugin_count_log("plugin gives back more than it holds handler=\"scripted\""),
                     1);
    assert_string_equal(kinf_object_key(object), "ns/a");
    assert_null(host->ref(host, NULL));
    host->unref(host, NULL);
    host->free_text(host, NULL);
    kinf_object_unref(object);
    kinf__plugin_free(plugin);
    assert_int_equal(plugin_count_log("plugin leaks"), 0);
}

/* --- what it may call --- */

static const struct kinf_object *make_object(void)
{
    static const char text[] = "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"labels\":{\n\"app\":"
                               "\"w\\u00e4b\"}},\r\n\"spec\":{\"empty\":\"\",\"n\":7}}";
    const struct kinf_object *object;

    assert_int_equal(kinf_object_new_from_json(things(), text, sizeof text - 1, &object, NULL), 0);
    return object;
}

static void it_reads_texts_of_objects(void **state)
{
    static const struct {
        const char *path;
        size_t size;
        int64_t result;
        const char *text;
    } rows[] = {
        { "metadata.name", 10, 1, "a" },
        { "metadata.labels[\"app\"]", 10, 4,
          "w\xc3\xa4"
          "b" },
        { "metadata.labels.app", 5, 4,
          "w\xc3\xa4"
          "b" },
        { "metadata.labels.app", 4, 4, "" },
        { "metadata.labels.app", 1, 4, "" },
        { "metadata.labels.app", 0, 4, NULL },
        { "spec.empty", 1, 0, "" },
        { "spec.empty", 0, 0, NULL },
        { "spec.n", 10, KINF_ERR_NOT_FOUND, "" },
        { "spec.absent", 10, KINF_ERR_NOT_FOUND, "" },
        { "spec", 10, KINF_ERR_NOT_FOUND, "" },
        { "spec..n", 10, KINF_ERR_PARSE, "" },
        { "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", 10, KINF_ERR_PARSE,
          "" },
    };
    struct kinf__plugin *plugin = load_open(plugin_variant("scripted"));
    const struct kinf_object *object = make_object();

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        char *buf = rows[i].size != 0 ? malloc(rows[i].size) : NULL; /* ASan sees its end */

        if (buf != NULL)
            memset(buf, 'x', rows[i].size);
        assert_int_equal(host->get_string(host, object, rows[i].path, buf, rows[i].size),
                         rows[i].result);
        if (buf != NULL)
            assert_string_equal(buf, rows[i].text);
        free(buf);
    }
    kinf_object_unref(object);
    kinf__plugin_free(plugin);
}

static void it_reads_objects_as_one_line(void **state)
{
    struct kinf__plugin *plugin = load_open(plugin_variant("scripted"));
    const struct kinf_object *object = make_object();
    bool did_fail = true;
    size_t len;
    char *text;

    (void)state;
    assert_string_equal(host->key(host, object), "a");
    text = host->json(host, object, &len);
    assert_int_equal(strlen(text), len);
    assert_null(strpbrk(text, "\r\n"));
    assert_non_null(strstr(text, "\"kind\":\"Thing\""));
    assert_non_null(strstr(text, "\"apiVersion\":\"v1\""));
    host->free_text(host, text);
    for (size_t n = 1; did_fail; n++) {
        test_fail_allocation(n);
        text = host->json(host, object, &len);
        did_fail = test_allocation_failed();
        assert_true((text == NULL) == did_fail);
        host->free_text(host, text);
    }
    kinf_object_unref(object);
    kinf__plugin_free(plugin);
    assert_int_equal(plugin_count_log("plugin leaks"), 0);
}

static void it_counts_within_bounds(void **state)
{
    struct kinf__plugin *plugin = load_open(plugin_variant("scripted"));
    char name[80];

    (void)state;
    host->count(host, "", 1);
    host->count(host, "Pods", 1);
    host->count(host, "pods.x", 1);
    memset(name, 'a', KINF__PLUGIN_COUNT_NAME);
    name[KINF__PLUGIN_COUNT_NAME] = '\0';
    host->count(host, name, 1);
    assert_int_equal(counts.n_items, 0);
    host->count(host, name + 1, 1);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "n_%d", i);
        host->count(host, name, 2);
    }
    host->count(host, "n_0", UINT64_C(1) << 40);
    assert_int_equal(counts.n_items, KINF__PLUGIN_COUNTS);
    assert_string_equal(counts.items[1].name, "n_0");
    assert_int_equal(counts.items[1].value, (UINT64_C(1) << 40) + 2);
    kinf__plugin_free(plugin);
}

static void it_logs_by_name_and_sees_the_end(void **state)
{
    struct kinf__plugin *plugin = load_open(plugin_variant("scripted"));

    (void)state;
    assert_int_equal(host->abi, KINF_PLUGIN_ABI);
    assert_int_equal(host->size, sizeof *host);
    host->log(host, KINF_LOG_WARN, "a \"line\"\nof two");
    assert_int_equal(plugin_count_log("said handler=\"scripted\" line=\"a \\\"line\\\" of two\"\n"),
                     1);
    host->log(host, (enum kinf_log_level)77, "what");
    assert_int_equal(plugin_count_log("line=\"what\"\n"), 1);
    assert_int_equal(host->stop_fd(host), stop.fd);
    kinf__plugin_free(plugin);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(bad_ones_are_refused_for_a_reason),
        TEST(good_ones_are_loaded),
        TEST(files_that_are_none_are_refused),
        TEST(one_that_is_cut_off_anywhere_is_refused_or_whole),
        TEST(each_copy_has_variables_of_its_own),
        TEST(its_file_may_be_written_while_it_is_loaded),
        TEST(without_files_in_memory_a_file_that_goes_serves),
        TEST(one_that_cannot_be_unloaded_is_not_taken_for_the_next),
        TEST(want_of_memory_is_an_ordinary_error),
        TEST(it_is_described_without_being_opened),
        TEST(what_fails_says_what_it_said),
        TEST(one_that_was_not_opened_is_not_closed),
        TEST(a_leak_is_said_by_name_and_it_stays_loaded),
        TEST(more_than_is_held_cannot_be_given_back),
        TEST(it_reads_texts_of_objects),
        TEST(it_reads_objects_as_one_line),
        TEST(it_counts_within_bounds),
        TEST(it_logs_by_name_and_sees_the_end),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
