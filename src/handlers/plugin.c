/*
 * Loading plugins, and what they may call. Neighbours: plugin_handler.c decides when, and tells them.
 *
 * The dynamic linker takes a name that it knows for the library that it has, and a file that is written
 * under it crashes us. So each load has a copy of its own, under a name of its own: the descriptor of a
 * copy in memory stays open while it is loaded, for ever if the linker does not unload it.
 */
#include "handlers/plugin.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "handlers/line.h"
#include "json/scan.h"

#define FILE_MAX_BYTES (1u << 30)
#define COPY_NAME_SIZE 32

struct kinf__plugin {
    /* constant */
    struct kinf_host host;
    struct kinf__plugin_surroundings surroundings;
    char *path;
    struct kinf__file_version version;
    int fd;       /* the copy; -1: it was in a file that is gone */
    void *handle; /* the dynamic linker's */
    const struct kinf_plugin *table;
    /* one thread's */
    bool is_open;
    void *state; /* the plugin's */
    struct kinf__plugin *next_left;
    /* atomic */
    _Atomic(uint64_t) n_objects; /* what it holds */
    _Atomic(uint64_t) n_texts;
};

/* What leaked stays as it is; that it can be reached from here tells leak checkers that this is meant. */
static _Atomic(struct kinf__plugin *) left_behind;

/* --- what it may call --- */

static struct kinf__plugin *of(const struct kinf_host *host)
{
    return KINF__CONTAINER_OF(host, struct kinf__plugin, host);
}

static void say(const struct kinf_host *host, enum kinf_log_level level, const char *line)
{
    bool is_level = level >= KINF_LOG_ERROR && level <= KINF_LOG_DEBUG;

    KINF__LOG(KINF__LOG_HANDLERS, is_level ? level : KINF_LOG_INFO, "said handler=%s line=%s",
              KINF__QUOTED(of(host)->table->name), KINF__QUOTED(line));
}

/* Returns false, and says so, if nothing is held. */
static bool give_back(struct kinf__plugin *plugin, _Atomic(uint64_t) *n_held)
{
    uint64_t n = atomic_load(n_held);

    while (n != 0 && !atomic_compare_exchange_weak(n_held, &n, n - 1))
        ;
    if (n == 0)
        KINF__LOG(KINF__LOG_HANDLERS, KINF_LOG_ERROR,
                  "plugin gives back more than it holds handler=%s",
                  KINF__QUOTED(plugin->table->name));
    return n != 0;
}

static const struct kinf_object *ref(const struct kinf_host *host, const struct kinf_object *object)
{
    if (object != NULL)
        atomic_fetch_add(&of(host)->n_objects, 1);
    return kinf_object_ref(object);
}

static void unref(const struct kinf_host *host, const struct kinf_object *object)
{
    if (object != NULL && give_back(of(host), &of(host)->n_objects))
        kinf_object_unref(object);
}

static const char *key(const struct kinf_host *host, const struct kinf_object *object)
{
    (void)host;
    return kinf_object_key(object);
}

/* Of a text that is there and does not fit. */
static int64_t measure(const struct kinf_object *object, const char *path)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str json;
    int failed = kinf_object_get_json(object, path, &scratch, &json);

    return failed < 0 ? failed : (int64_t)kinf__json_unescape(json, NULL, 0);
}

static int64_t get_string(const struct kinf_host *host, const struct kinf_object *object,
                          const char *path, char *buf, size_t size)
{
    char none[1];
    int64_t len = kinf_object_get_string(object, path, size != 0 ? buf : none, size);

    (void)host;
    if (len == 0)
        return (int64_t)strlen(buf);
    if (size != 0)
        buf[0] = '\0';
    if (len == KINF_ERR_LIMIT)
        len = measure(object, path);
    if (len == KINF_ERR_LIMIT) /* of the path */
        return KINF_ERR_PARSE;
    return len >= 0 || len == KINF_ERR_PARSE || len == KINF_ERR_NO_MEMORY ? len
                                                                          : KINF_ERR_NOT_FOUND;
}

static char *json(const struct kinf_host *host, const struct kinf_object *object, size_t *ret_len)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    size_t len;
    char *text;

    if (kinf__line_append_object(&out, object) < 0)
        return NULL;
    len = out.len;
    if (kinf__buffer_take_text(&out, &text, NULL) < 0)
        return NULL;
    atomic_fetch_add(&of(host)->n_texts, 1);
    *ret_len = len;
    return text;
}

static void free_text(const struct kinf_host *host, char *text)
{
    if (text != NULL && give_back(of(host), &of(host)->n_texts))
        free(text);
}

/* The counter of this name; NULL: there is no room for one more. */
static struct kinf__plugin_count *find_count(struct kinf__plugin_counts *counts, const char *name)
{
    for (size_t i = 0; i < counts->n_items; i++) {
        if (strcmp(counts->items[i].name, name) == 0)
            return &counts->items[i];
    }
    if (counts->n_items == KINF__PLUGIN_COUNTS)
        return NULL;
    strcpy(counts->items[counts->n_items].name, name);
    return &counts->items[counts->n_items++];
}

static void count(const struct kinf_host *host, const char *name, uint64_t by)
{
    struct kinf__plugin_counts *counts = of(host)->surroundings.counts;
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    struct kinf__plugin_count *item;

    if (len == 0 || len >= KINF__PLUGIN_COUNT_NAME || name[len] != '\0')
        return;
    kinf__mutex_lock(&counts->lock);
    item = find_count(counts, name);
    if (item != NULL)
        item->value += by;
    kinf__mutex_unlock(&counts->lock);
}

static int stop_fd(const struct kinf_host *host)
{
    return of(host)->surroundings.stop->fd;
}

static const struct kinf_host host_functions = { KINF_PLUGIN_ABI,
                                                 sizeof(struct kinf_host),
                                                 say,
                                                 ref,
                                                 unref,
                                                 key,
                                                 get_string,
                                                 json,
                                                 free_text,
                                                 count,
                                                 stop_fd };

void kinf__plugin_counts_init(struct kinf__plugin_counts *counts)
{
    counts->n_items = 0;
    kinf__mutex_init(&counts->lock, KINF__RANK_PLUGIN);
}

void kinf__plugin_counts_release(struct kinf__plugin_counts *counts)
{
    kinf__mutex_release(&counts->lock);
}

/* --- loading --- */

/* What the dynamic linker maps has to be there: it does not look, and a program that touches what is
 * behind the end of a file dies. */
static bool has_segments(struct kinf_str file, const ElfW(Ehdr) * head)
{
    for (size_t i = 0; i < head->e_phnum; i++) {
        size_t at = head->e_phoff + i * sizeof(ElfW(Phdr));
        ElfW(Phdr) segment;

        if (head->e_phoff > file.len || at + sizeof segment > file.len)
            return false;
        memcpy(&segment, file.bytes + at, sizeof segment);
        if (segment.p_type == PT_LOAD &&
            (segment.p_filesz > file.len || segment.p_offset > file.len - segment.p_filesz))
            return false;
    }
    return true;
}

/* Why it need not be tried; NULL: the dynamic linker says the rest. */
static const char *trouble_of_file(struct kinf_str file)
{
    static const char native = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    ElfW(Ehdr) head;

    if (file.len < SELFMAG || memcmp(file.bytes, ELFMAG, SELFMAG) != 0)
        return "it is no shared object";
    if (file.len < sizeof head)
        return "it is cut off";
    memcpy(&head, file.bytes, sizeof head);
    if (head.e_ident[EI_CLASS] != native || head.e_phentsize != sizeof(ElfW(Phdr)))
        return NULL;
    return has_segments(file, &head) ? NULL : "it is cut off";
}

static int read_file(const char *path, struct kinf__buffer *file, struct kinf_error *err)
{
    struct stat status;
    const char *trouble;
    int failed;

    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return kinf__error_set(err, KINF_ERR_CONFIG, "%s is no file", path);
    failed = kinf__file_read(path, FILE_MAX_BYTES, file, err);
    if (failed < 0)
        return failed;
    trouble =
        file->len > FILE_MAX_BYTES ? "it is too large" : trouble_of_file(kinf__buffer_str(file));
    return trouble != NULL ? kinf__error_set(err, KINF_ERR_CONFIG, "%s: %s", path, trouble) : 0;
}

/* The linker's words, without the name of our copy. */
static int link_error(const char *path, const char *copy, struct kinf_error *err)
{
    const char *said = dlerror();
    size_t len = strlen(copy);

    if (said == NULL)
        said = "this program cannot load anything";
    if (strncmp(said, copy, len) == 0 && strncmp(said + len, ": ", 2) == 0)
        said += len + 2;
    return kinf__error_set(err, KINF_ERR_CONFIG, "%s: it cannot be loaded: %s", path, said);
}

/* Of a copy in memory. */
static void name_copy(const struct kinf__plugin *plugin, char name[COPY_NAME_SIZE])
{
    snprintf(name, COPY_NAME_SIZE, "/proc/self/fd/%d", plugin->fd);
}

static int load_from_memory(struct kinf__plugin *plugin, struct kinf_str file,
                            struct kinf_error *err)
{
    char name[COPY_NAME_SIZE];

    plugin->fd = memfd_create("kinformer-plugin", MFD_CLOEXEC);
    if (plugin->fd < 0 || !kinf__file_write(plugin->fd, file))
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "%s: it cannot be copied",
                                     plugin->path);
    name_copy(plugin, name);
    plugin->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    return plugin->handle != NULL ? 0 : link_error(plugin->path, name, err);
}

static int load_from_file(struct kinf__plugin *plugin, struct kinf_str file, struct kinf_error *err)
{
    const char *folder = getenv("TMPDIR");
    char name[256];
    bool is_written;
    int fd, failed = 0;

    snprintf(name, sizeof name, "%s/kinformer-plugin-XXXXXX", folder != NULL ? folder : "/tmp");
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write %s", name);
    is_written = kinf__file_write(fd, file);
    close(fd);
    if (is_written)
        plugin->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!is_written)
        failed = kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write %s", name);
    else if (plugin->handle == NULL)
        failed = link_error(plugin->path, name, err);
    unlink(name);
    return failed;
}

/* A machine may forbid to run what is in memory only; what is wrong with the plugin the first has said. */
static int link_copy(struct kinf__plugin *plugin, struct kinf_str file, struct kinf_error *err)
{
    int failed = load_from_memory(plugin, file, err);

    if (failed == 0)
        return 0;
    if (plugin->fd >= 0)
        close(plugin->fd);
    plugin->fd = -1;
    return load_from_file(plugin, file, NULL) == 0 ? 0 : failed;
}

static int check_table(const struct kinf_plugin *table, const char *path, struct kinf_error *err)
{
    const char *missing;

    if (table == NULL)
        return kinf__error_set(err, KINF_ERR_CONFIG, "%s: its %s() returns nothing", path,
                               KINF_PLUGIN_SYMBOL);
    if (table->abi != KINF_PLUGIN_ABI)
        return kinf__error_set(err, KINF_ERR_CONFIG, "%s: it is of ABI %u, this program has %u",
                               path, table->abi, KINF_PLUGIN_ABI);
    if (table->size < sizeof *table)
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "%s: its table has %u bytes, one of ABI %u has %zu or more", path,
                               table->size, table->abi, sizeof *table);
    missing = table->name == NULL || *table->name == '\0' ? "name"
              : table->open == NULL                       ? "open"
              : table->on_change == NULL                  ? "on_change"
              : table->close == NULL                      ? "close"
                                                          : NULL;
    return missing == NULL
               ? 0
               : kinf__error_set(err, KINF_ERR_CONFIG, "%s: it has no %s", path, missing);
}

static int take_table(struct kinf__plugin *plugin, struct kinf_error *err)
{
    void *symbol = dlsym(plugin->handle, KINF_PLUGIN_SYMBOL);
    const struct kinf_plugin *(*get_table)(void);

    if (symbol == NULL)
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "%s: it has no %s: it is no plugin, or one of another ABI",
                               plugin->path, KINF_PLUGIN_SYMBOL);
    memcpy(&get_table, &symbol, sizeof get_table);
    plugin->table = get_table();
    return check_table(plugin->table, plugin->path, err);
}

static int load(struct kinf__plugin *plugin, struct kinf_error *err)
{
    KINF__AUTO_BUFFER file = KINF__BUFFER_INIT;
    int failed = plugin->path == NULL ? kinf__error_no_memory(err) : 0;

    if (failed == 0) {
        (void)kinf__file_version_update(&plugin->version, plugin->path);
        failed = read_file(plugin->path, &file, err);
    }
    if (failed == 0)
        failed = link_copy(plugin, kinf__buffer_str(&file), err);
    return failed < 0 ? failed : take_table(plugin, err);
}

/* --- what the header promises --- */

int kinf__plugin_load(const char *path, const struct kinf__plugin_surroundings *surroundings,
                      struct kinf__plugin **ret_plugin, struct kinf_error *err)
{
    struct kinf__plugin *plugin = calloc(1, sizeof *plugin);
    int failed;

    if (plugin == NULL)
        return kinf__error_no_memory(err);
    plugin->host = host_functions;
    plugin->surroundings = *surroundings;
    plugin->fd = -1;
    plugin->path = strdup(path);
    failed = load(plugin, err);
    if (failed < 0)
        kinf__plugin_free(plugin);
    else
        *ret_plugin = plugin;
    return failed;
}

static bool leaks(struct kinf__plugin *plugin)
{
    uint64_t n_objects = atomic_load(&plugin->n_objects), n_texts = atomic_load(&plugin->n_texts);

    if (n_objects == 0 && n_texts == 0)
        return false;
    KINF__LOG(KINF__LOG_HANDLERS, KINF_LOG_ERROR,
              "plugin leaks, and stays loaded handler=%s objects=%llu texts=%llu",
              KINF__QUOTED(plugin->table->name), (unsigned long long)n_objects,
              (unsigned long long)n_texts);
    plugin->next_left = atomic_load(&left_behind);
    while (!atomic_compare_exchange_weak(&left_behind, &plugin->next_left, plugin))
        ;
    return true;
}

/* The linker keeps some, since they say so or have symbols that are unique in a process. */
static void unload(struct kinf__plugin *plugin)
{
    char name[COPY_NAME_SIZE];

    if (plugin->handle != NULL)
        dlclose(plugin->handle);
    if (plugin->fd < 0)
        return;
    name_copy(plugin, name);
    if (dlopen(name, RTLD_LAZY | RTLD_NOLOAD) == NULL)
        close(plugin->fd);
    else
        KINF__LOG(KINF__LOG_HANDLERS, KINF_LOG_WARN, "plugin cannot be unloaded, and stays path=%s",
                  KINF__QUOTED(plugin->path));
}

void kinf__plugin_free(struct kinf__plugin *plugin)
{
    if (plugin == NULL)
        return;
    if (plugin->is_open)
        plugin->table->close(plugin->state);
    plugin->is_open = false;
    if (leaks(plugin))
        return;
    unload(plugin);
    free(plugin->path);
    free(plugin);
}

const struct kinf_plugin *kinf__plugin_table(const struct kinf__plugin *plugin)
{
    return plugin->table;
}

bool kinf__plugin_is_outdated(const struct kinf__plugin *plugin)
{
    struct kinf__file_version version = plugin->version;

    return kinf__file_version_update(&version, plugin->path);
}

/* `result` is what it returned, `said` what it wrote. */
static int take_result(int result, struct kinf_error *said, struct kinf_error *err)
{
    if (result == 0)
        return 0;
    said->message[sizeof said->message - 1] = '\0';
    if (said->message[0] == '\0')
        snprintf(said->message, sizeof said->message, "it returned %d", result);
    return kinf__error_set(err, result < 0 ? (enum kinf_errc)result : KINF_ERR_INVALID, "%s",
                           said->message);
}

int kinf__plugin_open(struct kinf__plugin *plugin, const char *config, struct kinf_error *err)
{
    struct kinf_error said = KINF_ERROR_INIT;
    int failed =
        take_result(plugin->table->open(&plugin->host, config, &plugin->state, &said), &said, err);

    plugin->is_open = failed == 0;
    return failed;
}

int kinf__plugin_tell(struct kinf__plugin *plugin, const struct kinf_change *change,
                      struct kinf_error *err)
{
    struct kinf_error said = KINF_ERROR_INIT;

    return take_result(plugin->table->on_change(plugin->state, change, &said), &said, err);
}

int kinf__plugin_flush(struct kinf__plugin *plugin, struct kinf_error *err)
{
    struct kinf_error said = KINF_ERROR_INIT;

    return plugin->table->flush == NULL
               ? 0
               : take_result(plugin->table->flush(plugin->state, &said), &said, err);
}

bool kinf__plugin_is_open(const struct kinf__plugin *plugin)
{
    return plugin->is_open;
}

int kinf__plugin_describe(const char *path, struct kinf__buffer *out, struct kinf_error *err)
{
    const struct kinf__plugin_surroundings surroundings = { 0 };
    const struct kinf_plugin *table;
    struct kinf__plugin *plugin;
    int failed = kinf__plugin_load(path, &surroundings, &plugin, err);

    if (failed < 0)
        return failed;
    table = plugin->table;
    if (kinf__buffer_printf(out, "plugin %s: ABI %u, %u bytes: open, on_change, %sclose",
                            table->name, table->abi, table->size,
                            table->flush != NULL ? "flush, " : "") < 0)
        failed = kinf__error_no_memory(err);
    kinf__plugin_free(plugin);
    return failed;
}
