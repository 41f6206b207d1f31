/*
 * Stores in files: what is loaded is what was written; whatever else is in the file is refused, and
 * what was there stays until something better is. Cites state_file.h.
 */
#include "state/state_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/thread.h"
#include "object/object.h"
#include "state/sealed.h"
#include "unit/allocation.h"
#include "unit/indexer_fixture.h"
#include "unit/test.h"

#define NAME    "pods"
#define WALL_MS 1700000000123

#define OBJECT(name, rv, more)                                                                     \
    "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":\"u-" name                   \
    "\",\"resourceVersion\":\"" rv "\"" more "}"

static const char *const texts[] = {
    OBJECT("plain", "3", "") "}",
    OBJECT("labels", "4",
           ",\"labels\":{\"app\":\"web\",\"a\":\"\\u00e4\"}") ",\"spec\":{\"x\":1.0}}",
    OBJECT("order", "5", "") ",\"z\":[1,{\"b\":null}],\"a\":\"\xc3\xa4\\n\"}",
};

struct fixture {
    char path[64];
    struct kinf__state_folder *folder;
    struct kinf_indexer *indexer;
    struct kinf__state_identity identity;
    size_t n_objects_before;
};

static void fill(struct fixture *f, const char *rv)
{
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_object *objects[KINF__ARRAY_LEN(texts)];

    for (size_t i = 0; i < KINF__ARRAY_LEN(texts); i++)
        objects[i] = indexer_json_object(texts[i]);
    assert_int_equal(kinf_indexer_replace(f->indexer, objects, KINF__ARRAY_LEN(texts), rv, &err),
                     0);
    f->identity.type = kinf_object_type(objects[0]);
    for (size_t i = 0; i < KINF__ARRAY_LEN(texts); i++)
        kinf_object_unref(objects[i]);
}

static int set_up(void **state)
{
    static struct fixture f;
    struct kinf_error err = KINF_ERROR_INIT;

    f = (struct fixture){ .n_objects_before = kinf__object_count() };
    snprintf(f.path, sizeof f.path, "/tmp/kinf-state-XXXXXX");
    if (mkdtemp(f.path) == NULL || kinf__state_folder_open(f.path, &f.folder, &err) < 0 ||
        kinf_indexer_new(NULL, 0, &f.indexer, &err) < 0)
        return -1;
    fill(&f, "7");
    f.identity.cluster = "uid-1";
    f.identity.server = "https://a:6443 ca=1";
    f.identity.scope = "namespace=\ndrop=status\n";
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    kinf_indexer_free(f->indexer);
    unlinkat(f->folder->fd, NAME, 0);
    unlinkat(f->folder->fd, NAME ".new", 0);
    kinf__state_folder_close(f->folder);
    assert_int_equal(kinf__object_count(), f->n_objects_before);
    return rmdir(f->path);
}

static int write_state(struct fixture *f, const struct kinf__stop *stop, struct kinf_error *err)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(f->indexer);
    uint64_t n_bytes = 0;
    int r = kinf__state_file_write(f->folder, NAME, &f->identity, snapshot, WALL_MS, stop, &n_bytes,
                                   err);

    if (r == 0)
        assert_true(n_bytes > 20);
    return r;
}

struct loaded {
    const struct kinf_object *items[KINF__ARRAY_LEN(texts) + 1];
    size_t n_items;
    struct kinf__state_origin origin;
};

static int take(const struct kinf_object *take_object, void *ctx, struct kinf_error *err)
{
    struct loaded *loaded = ctx;

    (void)err;
    assert_true(loaded->n_items < KINF__ARRAY_LEN(loaded->items));
    assert_true(kinf__object_check(take_object));
    loaded->items[loaded->n_items++] = take_object;
    return 0;
}

static void release(struct loaded *loaded)
{
    while (loaded->n_items > 0)
        kinf_object_unref(loaded->items[--loaded->n_items]);
}

static int load(struct fixture *f, struct loaded *loaded, struct kinf_error *err)
{
    *loaded = (struct loaded){ .n_items = 0 };
    return kinf__state_file_load(f->folder, NAME, &f->identity, NULL, take, loaded, NULL,
                                 &loaded->origin, err);
}

/* It is not loaded, for this reason. */
static void expect_refused(struct fixture *f, int code, const char *words)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct loaded loaded;

    assert_int_equal(load(f, &loaded, &err), code);
    assert_int_equal((int)err.code, code);
    assert_non_null(strstr(err.message, words));
    release(&loaded);
}

/* What is in the store is what is loaded, at this version. */
static void expect_loaded(struct fixture *f, const char *rv)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(f->indexer);
    struct kinf_error err = KINF_ERROR_INIT;
    struct loaded loaded;
    struct kinf_cursor cursor;

    assert_int_equal(load(f, &loaded, &err), 0);
    assert_string_equal(loaded.origin.rv, rv);
    assert_int_equal(loaded.origin.wall_ms, WALL_MS);
    assert_int_equal(loaded.n_items, kinf_snapshot_count(snapshot));
    assert_int_equal(loaded.origin.n_objects, loaded.n_items);
    kinf_cursor_all(&cursor, snapshot);
    for (size_t i = 0; i < loaded.n_items; i++) {
        const struct kinf_object *stored = kinf_cursor_next(&cursor), *object = loaded.items[i];

        assert_ptr_not_equal(stored, object);
        assert_ptr_equal(stored->type, object->type);
        assert_int_equal(kinf_object_size(stored), kinf_object_size(object));
        assert_memory_equal(&stored->body_len, &object->body_len,
                            kinf_object_size(stored) - offsetof(struct kinf_object, body_len));
    }
    release(&loaded);
}

static void read_file(struct fixture *f, struct kinf__buffer *content)
{
    int fd = openat(f->folder->fd, NAME, O_RDONLY);
    ssize_t n;

    assert_true(fd >= 0);
    assert_int_equal(kinf__buffer_reserve(content, 16 << 20), 0);
    n = read(fd, content->bytes, content->size);
    assert_true(n > 0);
    content->len = (size_t)n;
    close(fd);
}

static void put_file(struct fixture *f, const char *bytes, size_t len)
{
    int fd = openat(f->folder->fd, NAME, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    close(fd);
}

/* F1 */
static void what_is_loaded_is_what_was_stored(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_type *type = NULL;

    assert_int_equal(write_state(f, NULL, &err), 0);
    expect_loaded(f, "7");
    assert_int_equal(kinf__state_file_type(f->folder, NAME, f->identity.server, &type, &err),
                     KINF_ERR_PARSE); /* it has objects */
    assert_int_equal(kinf_indexer_replace(f->indexer, NULL, 0, "9", &err), 0);
    assert_int_equal(write_state(f, NULL, &err), 0);
    expect_loaded(f, "9");
    assert_int_equal(kinf__state_file_type(f->folder, NAME, "https://b:6443 ca=1", &type, &err),
                     KINF_ERR_CONFLICT);
    assert_int_equal(kinf__state_file_type(f->folder, NAME, f->identity.server, &type, &err), 0);
    assert_ptr_equal(type, f->identity.type);
}

/* F1, with bodies above a piece of the file. */
static void large_objects_survive(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    uint64_t random = 1;
    const struct kinf_object *object;

    assert_int_equal(kinf__buffer_printf(&text, "%s,\"spec\":\"", OBJECT("large", "8", "")), 0);
    for (int i = 0; i < 100000; i++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        assert_int_equal(kinf__buffer_printf(&text, "%x", (unsigned)(random >> 40)), 0);
    }
    assert_int_equal(kinf__buffer_printf(&text, "\"}"), 0);
    object = indexer_json_object(kinf__buffer_cstr(&text));
    assert_int_equal(kinf_indexer_add(f->indexer, object, NULL, &err), 0);
    kinf_object_unref(object);
    assert_int_equal(write_state(f, NULL, &err), 0);
    expect_loaded(f, "8");
}

/* F2 */
static void a_file_cut_anywhere_is_refused(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    KINF__AUTO_BUFFER content = KINF__BUFFER_INIT;

    assert_int_equal(write_state(f, NULL, &err), 0);
    read_file(f, &content);
    for (size_t len = 0; len < content.len; len++) {
        put_file(f, content.bytes, len);
        expect_refused(f, KINF_ERR_PARSE, "damaged: ");
    }
    assert_int_equal(kinf__buffer_append(&content, "x", 1), 0);
    put_file(f, content.bytes, content.len);
    expect_refused(f, KINF_ERR_PARSE, "damaged: ");
    put_file(f, content.bytes, content.len - 1);
    expect_loaded(f, "7");
}

/* F2: whichever bit it is; the version has a word of its own. */
static void a_flipped_bit_is_refused(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    KINF__AUTO_BUFFER content = KINF__BUFFER_INIT;
    struct loaded loaded;

    assert_int_equal(write_state(f, NULL, &err), 0);
    read_file(f, &content);
    for (size_t i = 0; i < content.len * 8; i++) {
        content.bytes[i / 8] ^= (char)(1 << i % 8);
        put_file(f, content.bytes, content.len);
        assert_true(load(f, &loaded, &err) < 0);
        release(&loaded);
        content.bytes[i / 8] ^= (char)(1 << i % 8);
    }
    put_file(f, content.bytes, content.len);
    expect_loaded(f, "7");
}

/* F2 */
static void a_file_of_another_format_is_refused(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    KINF__AUTO_BUFFER content = KINF__BUFFER_INIT;

    assert_int_equal(write_state(f, NULL, &err), 0);
    read_file(f, &content);
    content.bytes[8] = KINF__STATE_FORMAT + 1;
    put_file(f, content.bytes, content.len);
    expect_refused(f, KINF_ERR_UNSUPPORTED, "it is of format 5, this is for 4");
    put_file(f, "apiVersion: v1\nkind: Config\nclusters: []\n", 40);
    expect_refused(f, KINF_ERR_PARSE, "no state of kinformer");
}

/* F2 */
static void a_file_of_somebody_elses_is_refused(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__state_identity mine = f->identity;

    expect_refused(f, KINF_ERR_NOT_FOUND, "there is none");
    assert_int_equal(write_state(f, NULL, &err), 0);
    f->identity.cluster = "uid-2";
    expect_refused(f, KINF_ERR_CONFLICT, "another cluster: uid uid-1 of kube-system");
    f->identity = mine;
    f->identity.scope = "namespace=x\n";
    expect_refused(f, KINF_ERR_CONFLICT, "the configuration was another one");
    f->identity = mine;
    assert_int_equal(kinf_type_intern("apps", "v1", "Pod", "pods", true, &f->identity.type, &err),
                     0);
    expect_refused(f, KINF_ERR_CONFLICT, "another type");
    /* The same cluster by another address; and nobody knows which cluster. */
    f->identity = mine;
    f->identity.server = "https://b:6443 ca=1";
    expect_loaded(f, "7");
    f->identity.cluster = "";
    expect_refused(f, KINF_ERR_CONFLICT, "another server: https://a:6443 ca=1");
    f->identity.server = mine.server;
    expect_loaded(f, "7");
}

/* What is decoded can be saved, however odd: a namespace that its type does not have, labels that are none. */
static void what_odd_servers_send_comes_back(void **state)
{
    static const char text[] = "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
                               "\"resourceVersion\":\"3\",\"labels\":1}}";
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_object *object;
    struct loaded loaded;

    assert_int_equal(kinf_type_intern("", "v1", "Node", "nodes", false, &f->identity.type, &err),
                     0);
    assert_int_equal(
        kinf_object_new_from_json(f->identity.type, text, sizeof text - 1, &object, &err), 0);
    assert_int_equal(kinf_indexer_replace(f->indexer, &object, 1, "7", &err), 0);
    kinf_object_unref(object);
    assert_int_equal(write_state(f, NULL, &err), 0);
    assert_int_equal(load(f, &loaded, &err), 0);
    assert_int_equal(loaded.n_items, 1);
    assert_string_equal(kinf_object_key(loaded.items[0]), "n/a");
    release(&loaded);
}

/* F2 */
static void what_others_could_have_written_is_refused(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    struct stat info;
    char link_path[96];

    assert_int_equal(write_state(f, NULL, &err), 0);
    assert_int_equal(fstatat(f->folder->fd, NAME, &info, 0), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(fchmodat(f->folder->fd, NAME, 0640, 0), 0);
    expect_refused(f, KINF_ERR_CONFIG, "others may read or write it");
    assert_int_equal(fchmodat(f->folder->fd, NAME, 0600, 0), 0);
    expect_loaded(f, "7");
    assert_int_equal(renameat(f->folder->fd, NAME, f->folder->fd, "real"), 0);
    assert_int_equal(symlinkat("real", f->folder->fd, NAME), 0);
    expect_refused(f, KINF_ERR_SYSTEM, "/" NAME);
    /* Neither is it written through. */
    snprintf(link_path, sizeof link_path, "%s/elsewhere", f->path);
    assert_int_equal(symlinkat(link_path, f->folder->fd, NAME ".new"), 0);
    assert_int_equal(write_state(f, NULL, &err), 0);
    assert_int_equal(access(link_path, F_OK), -1);
    expect_loaded(f, "7");
    unlinkat(f->folder->fd, NAME, 0);
    unlinkat(f->folder->fd, "real", 0);
    assert_int_equal(mkfifoat(f->folder->fd, NAME, 0600), 0);
    expect_refused(f, KINF_ERR_CONFIG, "no plain file");
}

static void a_folder_is_ones_own(void **state)
{
    struct fixture *f = *state;
    struct kinf__state_folder *other;
    struct kinf_error err = KINF_ERROR_INIT;
    char path[96];
    struct stat info;

    assert_int_equal(kinf__state_folder_open(f->path, &other, &err), KINF_ERR_CONFIG);
    assert_non_null(strstr(err.message, "another process keeps its state"));
    snprintf(path, sizeof path, "%s/new", f->path);
    assert_int_equal(kinf__state_folder_open(path, &other, &err), 0);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    kinf__state_folder_close(other);
    assert_int_equal(chmod(path, 0770), 0);
    assert_int_equal(kinf__state_folder_open(path, &other, &err), KINF_ERR_CONFIG);
    assert_non_null(strstr(err.message, "others may write"));
    assert_int_equal(rmdir(path), 0);
    snprintf(path, sizeof path, "%s/not/there", f->path);
    assert_int_equal(kinf__state_folder_open(path, &other, &err), KINF_ERR_CONFIG);
}

static void names_stay_in_the_folder(void **state)
{
    static const char *const bad[] = { "", ".", "..", ".a", "a/b", "../a", "a b", "a\n", "-a" };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(bad); i++)
        assert_false(kinf__state_name_is_good(bad[i]));
    assert_true(kinf__state_name_is_good("deployments.apps@kube-system"));
    assert_true(kinf__state_name_is_good("2pods"));
}

/* F3 */
static void what_was_there_stays_when_there_is_no_time(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__stop stop = { false };

    assert_int_equal(write_state(f, NULL, &err), 0);
    kinf__stop_set(&stop);
    assert_int_equal(write_state(f, &stop, &err), KINF_ERR_STOPPED);
    assert_int_equal(faccessat(f->folder->fd, NAME ".new", F_OK, 0), -1);
    expect_loaded(f, "7");
}

/* In place of the system's: after so many nobody has time any more. */
static size_t n_syncs, syncs_until_stop;
static struct kinf__stop stop_at_sync;

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    (void)fd;
    if (++n_syncs == syncs_until_stop)
        kinf__stop_set(&stop_at_sync);
    return 0;
}

static bool folder_fails;

__attribute__((visibility("default"))) int fsync(int fd)
{
    (void)fd;
    errno = EIO;
    return folder_fails ? -1 : 0;
}

/* Text that does not become much smaller. */
static const struct kinf_object *make_large_object(size_t number)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    uint64_t noise = number + 1;
    const struct kinf_object *object;

    assert_int_equal(kinf__buffer_printf(&text,
                                         "{\"metadata\":{\"namespace\":\"n\",\"name\":"
                                         "\"l%zu\",\"resourceVersion\":\"4\"},\"data\":\"",
                                         number),
                     0);
    assert_int_equal(kinf__buffer_reserve(&text, 4 << 20), 0);
    for (size_t i = 0; i < (4 << 20) - 8; i++) {
        noise = noise * 6364136223846793005U + 1442695040888963407U;
        text.bytes[text.len++] = (char)('0' + (noise >> 58));
        if (text.bytes[text.len - 1] == '\\')
            text.bytes[text.len - 1] = '-';
    }
    assert_int_equal(kinf__buffer_printf(&text, "\"}"), 0);
    object = indexer_json_object(kinf__buffer_cstr(&text));
    return object;
}

/* F3: the disk may be slow, and what waits for it then is a few megabytes. */
static void a_stop_is_heard_while_the_disk_is_slow(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_object *large[10];

    assert_int_equal(write_state(f, NULL, &err), 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(large); i++)
        large[i] = make_large_object(i);
    assert_int_equal(kinf_indexer_replace(f->indexer, large, KINF__ARRAY_LEN(large), "8", &err), 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(large); i++)
        kinf_object_unref(large[i]);
    n_syncs = 0;
    syncs_until_stop = 2;
    assert_int_equal(write_state(f, &stop_at_sync, &err), KINF_ERR_STOPPED);
    assert_int_equal(n_syncs, 2);
    fill(f, "7");
    expect_loaded(f, "7");
}

/* F3 */
static void what_was_there_stays_when_the_disk_is_full(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    struct rlimit before, limit;

    assert_int_equal(write_state(f, NULL, &err), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 50;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(write_state(f, NULL, &err), KINF_ERR_SYSTEM);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(err.sys_errno, EFBIG);
    assert_int_equal(faccessat(f->folder->fd, NAME ".new", F_OK, 0), -1);
    expect_loaded(f, "7");
}

static void an_error_says_which_file_is_there(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__stop stop = { false };

    assert_int_equal(write_state(f, NULL, &err), 0);
    kinf__stop_set(&stop);
    assert_int_equal(write_state(f, &stop, &err), KINF_ERR_STOPPED);
    assert_non_null(strstr(err.message, "the file of before stays: "));
    fill(f, "12");
    folder_fails = true;
    assert_int_equal(write_state(f, NULL, &err), KINF_ERR_SYSTEM);
    folder_fails = false;
    assert_int_equal(err.sys_errno, EIO);
    assert_non_null(strstr(err.message, "the new file is there, unless the power fails: "));
    assert_null(strstr(err.message, "before"));
    expect_loaded(f, "12");
}

/* F3: a process that was killed. */
static void what_a_killed_process_left_is_in_nobodys_way(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    int fd;

    assert_int_equal(write_state(f, NULL, &err), 0);
    assert_int_equal(kinf__state_folder_create(f->folder, NAME, &fd, &err), 0);
    assert_int_equal(write(fd, "KINFSTAT", 8), 8);
    close(fd);
    expect_loaded(f, "7");
    fill(f, "12");
    assert_int_equal(write_state(f, NULL, &err), 0);
    expect_loaded(f, "12");
}

static void failing_allocations_change_nothing(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    struct loaded loaded;
    bool has_failed = true;

    assert_int_equal(write_state(f, NULL, &err), 0);
    for (size_t n = 1; has_failed; n++) {
        int r;

        test_fail_allocation(n);
        r = write_state(f, NULL, &err);
        has_failed = test_allocation_failed();
        assert_int_equal(r, has_failed ? KINF_ERR_NO_MEMORY : 0);
        expect_loaded(f, "7");
    }
    has_failed = true;
    for (size_t n = 1; has_failed; n++) {
        int r;

        test_fail_allocation(n);
        r = load(f, &loaded, &err);
        has_failed = test_allocation_failed();
        assert_int_equal(r, has_failed ? KINF_ERR_NO_MEMORY : 0);
        release(&loaded);
    }
}

/* Sealed, but not what a state is made of. */
static void a_sealed_file_of_nonsense_is_refused(void **state)
{
    static const char nonsense[] = "\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;

    for (size_t len = 0; len < sizeof nonsense; len++) {
        struct kinf__sealed_writer writer;
        int fd;

        assert_int_equal(kinf__state_folder_create(f->folder, NAME, &fd, &err), 0);
        assert_int_equal(kinf__sealed_writer_init(&writer, fd, KINF__STATE_FORMAT, &err), 0);
        assert_int_equal(kinf__sealed_write(&writer, nonsense, len, &err), 0);
        assert_int_equal(kinf__sealed_finish(&writer, &err), 0);
        kinf__sealed_writer_release(&writer);
        close(fd);
        assert_int_equal(kinf__state_folder_commit(f->folder, NAME, &err), 0);
        expect_refused(f, KINF_ERR_PARSE, "damaged: ");
    }
}

/* --- many objects: several sections, and a second thread --- */

#define N_MANY 700 /* of 8 kB */

static void fill_many(struct fixture *f)
{
    struct test_random random = { .state = 1 };
    const struct kinf_object *objects[N_MANY];
    struct kinf_error err = KINF_ERROR_INIT;

    for (size_t i = 0; i < N_MANY; i++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

        assert_int_equal(
            kinf__buffer_printf(&text,
                                "{\"metadata\":{\"namespace\":\"n%zu\",\"name\":\"m%zu\","
                                "\"resourceVersion\":\"%zu\"},\"data\":\"",
                                i % 3, i, i + 10),
            0);
        for (size_t n = 0; n < 500; n++)
            assert_int_equal(kinf__buffer_printf(&text, "%016llx",
                                                 (unsigned long long)test_random_next(&random)),
                             0);
        assert_int_equal(kinf__buffer_printf(&text, "\"}"), 0);
        objects[i] = indexer_json_object(kinf__buffer_cstr(&text));
    }
    assert_int_equal(kinf_indexer_replace(f->indexer, objects, N_MANY, "900", &err), 0);
    for (size_t i = 0; i < N_MANY; i++)
        kinf_object_unref(objects[i]);
}

static bool is_there(const char *thread)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    bool is = false;

    assert_non_null(tasks);
    while ((task = readdir(tasks)) != NULL) {
        char path[300], name[32] = "";
        FILE *file;

        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        file = fopen(path, "r");
        if (file == NULL)
            continue;
        is = is ||
             (fgets(name, sizeof name, file) != NULL && strncmp(name, thread, strlen(thread)) == 0);
        fclose(file);
    }
    closedir(tasks);
    return is;
}

/* What comes is what the store has, one behind the other. */
struct following {
    struct kinf_cursor cursor;
    size_t n;
    bool has_helper; /* seen in the midst of it */
    size_t fail_at;  /* 0: never */
    size_t stop_at;
    struct kinf__stop stop;
};

static int follow(const struct kinf_object *take_object, void *ctx, struct kinf_error *err)
{
    struct following *following = ctx;
    const struct kinf_object *stored = kinf_cursor_next(&following->cursor);

    assert_non_null(stored);
    assert_string_equal(kinf_object_key(take_object), kinf_object_key(stored));
    assert_int_equal(kinf_object_size(take_object), kinf_object_size(stored));
    assert_memory_equal(&stored->body_len, &take_object->body_len,
                        kinf_object_size(stored) - offsetof(struct kinf_object, body_len));
    kinf_object_unref(take_object);
    if (following->n == N_MANY / 2)
        following->has_helper = is_there("kinf-loader");
    if (++following->n == following->stop_at)
        kinf__stop_set(&following->stop);
    return following->n == following->fail_at ? kinf__error_set(err, KINF_ERR_LIMIT, "enough") : 0;
}

static int load_many(struct fixture *f, struct following *following, struct kinf_error *err)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(f->indexer);
    struct kinf__state_origin origin;

    kinf_cursor_all(&following->cursor, snapshot);
    return kinf__state_file_load(f->folder, NAME, &f->identity, NULL, follow, following,
                                 &following->stop, &origin, err);
}

/* F1: with a second thread, and where there is none to be had. */
static void many_objects_come_in_order(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_type *type;

    fill_many(f);
    assert_int_equal(write_state(f, NULL, &err), 0);
    for (int i = 0; i < 10; i++) {
        struct following following = { .n = 0 };

        if (i == 9)
            kinf__thread_set_stack((size_t)1 << 46); /* more than there are addresses */
        assert_int_equal(load_many(f, &following, &err), 0);
        kinf__thread_set_stack(0);
        assert_int_equal(following.n, N_MANY);
        assert_int_equal(following.has_helper, i != 9);
        assert_false(is_there("kinf-loader"));
    }
    assert_int_equal(kinf__state_file_type(f->folder, NAME, f->identity.server, &type, &err),
                     KINF_ERR_PARSE);
}

static void loading_ends_where_it_is_to(void **state)
{
    static const size_t places[] = { 1, 5, 130, 131, 132, 133, 350, N_MANY - 1, N_MANY };
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;

    fill_many(f);
    assert_int_equal(write_state(f, NULL, &err), 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(places); i++) {
        struct following failing = { .fail_at = places[i] }, stopping = { .stop_at = places[i] };

        assert_int_equal(load_many(f, &failing, &err), KINF_ERR_LIMIT);
        assert_int_equal(failing.n, places[i]);
        assert_string_equal(err.message, "enough");
        /* What was made by then is handed over. */
        if (load_many(f, &stopping, &err) < 0)
            assert_int_equal((int)err.code, KINF_ERR_STOPPED);
        else
            assert_int_equal(stopping.n, N_MANY);
        assert_true(stopping.n >= places[i]);
    }
}

/* F2 */
static void a_flipped_byte_of_many_is_refused(void **state)
{
    struct fixture *f = *state;
    struct test_random random = test_random_init("a_flipped_byte_of_many_is_refused");
    struct kinf_error err = KINF_ERROR_INIT;
    KINF__AUTO_BUFFER content = KINF__BUFFER_INIT;

    fill_many(f);
    assert_int_equal(write_state(f, NULL, &err), 0);
    read_file(f, &content);
    assert_true(content.len > (2 << 20));
    for (size_t i = 0; i < 60; i++) {
        struct following following = { .n = 0 };
        size_t at = test_random_below(&random, content.len);
        char before = content.bytes[at];

        content.bytes[at] ^= (char)(1 + test_random_below(&random, 255));
        put_file(f, content.bytes, content.len);
        assert_true(load_many(f, &following, &err) < 0);
        content.bytes[at] = before;
    }
    for (size_t i = 0; i < 20; i++) {
        struct following following = { .n = 0 };

        put_file(f, content.bytes, test_random_below(&random, content.len));
        assert_int_equal(load_many(f, &following, &err), KINF_ERR_PARSE);
    }
}

static void without_memory_many_are_given_up(void **state)
{
    struct fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    size_t n = 1;
    int r;

    fill_many(f);
    assert_int_equal(write_state(f, NULL, &err), 0);
    do {
        struct following following = { .n = 0 };

        test_fail_allocation(n);
        r = load_many(f, &following, &err);
        if (test_allocation_failed() && r != KINF_ERR_NO_MEMORY)
            fail_msg("allocation %zu of the loader's failed, and it returned %d", n, r);
        n += n < 20 ? 1 : 37;
    } while (r < 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_loaded_is_what_was_stored),
        TEST(large_objects_survive),
        TEST(a_file_cut_anywhere_is_refused),
        TEST(a_flipped_bit_is_refused),
        TEST(a_file_of_another_format_is_refused),
        TEST(a_file_of_somebody_elses_is_refused),
        TEST(what_odd_servers_send_comes_back),
        TEST(what_others_could_have_written_is_refused),
        TEST(a_folder_is_ones_own),
        TEST(names_stay_in_the_folder),
        TEST(what_was_there_stays_when_there_is_no_time),
        TEST(a_stop_is_heard_while_the_disk_is_slow),
        TEST(what_was_there_stays_when_the_disk_is_full),
        TEST(an_error_says_which_file_is_there),
        TEST(what_a_killed_process_left_is_in_nobodys_way),
        TEST(failing_allocations_change_nothing),
        TEST(a_sealed_file_of_nonsense_is_refused),
        TEST(many_objects_come_in_order),
        TEST(loading_ends_where_it_is_to),
        TEST(a_flipped_byte_of_many_is_refused),
        TEST(without_memory_many_are_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
