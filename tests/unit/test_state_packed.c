/*
 * Stores of compressed objects in files: what is loaded is held as it was, without being compressed
 * again, and the packer goes on where the one before was. Cites state_file.h.
 */
#include "state/state_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/error.h"
#include "object/object.h"
#include "object/packed.h"
#include "state/state_object.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define NAME       "pods"
#define N_OWNERS   3
#define N_PODS     20 /* of each owner, and of nobody */
#define DICTIONARY 16000

struct fixture {
    char path[64];
    struct kinf__state_folder *folder;
    struct kinf_indexer *indexer;
    struct kinf__state_identity identity;
    struct kinf__packer *packer;
    size_t n_objects_before;
};

static struct kinf__packer *make_packer(const char *kept)
{
    struct kinf__packer *packer;

    assert_int_equal(kinf__packer_new(&packer, NULL), 0);
    assert_int_equal(kinf__packer_keep(packer, kept, NULL), 0);
    kinf__packer_set_dictionary_size(packer, DICTIONARY);
    return packer;
}

/* Of owner 0 there is no reference: it is nobody. */
static const struct kinf_object *make_pod(struct kinf__packer *packer, const struct kinf_type *type,
                                          size_t owner, size_t number)
{
    struct test_random random = { .state = owner + 1 };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__object_decoder decoder;
    struct kinf__prune_plan *plan;
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_object *pod = NULL;
    size_t len;
    int r =
        kinf__buffer_printf(&text,
                            "{\"metadata\":{\"name\":\"p-%zu-%02zu\",\"namespace\":\"n\",\"uid\":"
                            "\"u-%zu\",\"resourceVersion\":\"%zu\"",
                            owner, number, number * 7919, number + 1000);

    if (r == 0 && number % 2 == 0)
        r = kinf__buffer_printf(&text, ",\"labels\":{\"owner\":\"%zu\"}", owner);
    if (r == 0 && owner != 0)
        r = kinf__buffer_printf(&text, ",\"ownerReferences\":[{\"uid\":\"o-%zu\"}]", owner);
    if (r == 0)
        r = kinf__buffer_printf(&text, "},\"spec\":{\"nodeName\":\"node-%zu\",\"env\":[\"\"",
                                number % 4);
    for (size_t i = 0; r == 0 && i < 100; i++)
        r = kinf__buffer_printf(&text, ",\"%llx\"", (unsigned long long)test_random_next(&random));
    assert_int_equal(r, 0);
    assert_int_equal(kinf__buffer_printf(&text, "]},\"status\":{\"ip\":\"10.0.%zu\"}}", number), 0);
    assert_int_equal(kinf__prune_plan_new(NULL, 0, NULL, 0, &plan, NULL), 0);
    kinf__object_decoder_init(&decoder, type, plan);
    decoder.packer = packer;
    if (kinf__object_decode(&decoder, kinf__buffer_str(&text), true, &pod, &len, &err) < 0)
        fail_msg("%s", err.message);
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
    return pod;
}

static void store(struct fixture *f, const struct kinf_object *take_pod)
{
    assert_int_equal(kinf_indexer_add(f->indexer, take_pod, NULL, NULL), 0);
    kinf_object_unref(take_pod);
}

/* Of each owner in turns, so that each is told by another one than its neighbour. */
static void fill(struct fixture *f)
{
    for (size_t number = 0; number < N_PODS; number++) {
        for (size_t owner = 0; owner <= N_OWNERS; owner++)
            store(f, make_pod(f->packer, f->identity.type, owner, number));
    }
}

static int set_up(void **state)
{
    static struct fixture f;

    f = (struct fixture){ .n_objects_before = kinf__object_count() };
    f.identity.cluster = "uid-1";
    f.identity.server = "https://a:6443 ca=1";
    f.identity.scope = "namespace=\n";
    snprintf(f.path, sizeof f.path, "/tmp/kinf-state-XXXXXX");
    if (mkdtemp(f.path) == NULL || kinf__state_folder_open(f.path, &f.folder, NULL) < 0 ||
        kinf_indexer_new(NULL, 0, &f.indexer, NULL) < 0 ||
        kinf_type_intern("", "v1", "Pod", "pods", true, &f.identity.type, NULL) < 0)
        return -1;
    f.packer = make_packer("spec.nodeName");
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    kinf_indexer_free(f->indexer);
    kinf__packer_free(f->packer);
    unlinkat(f->folder->fd, NAME, 0);
    kinf__state_folder_close(f->folder);
    assert_int_equal(kinf__object_count(), f->n_objects_before);
    return rmdir(f->path);
}

static int write_unless(struct fixture *f, const struct kinf__stop *stop)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(f->indexer);
    uint64_t n_bytes;

    return kinf__state_file_write(f->folder, NAME, &f->identity, snapshot, 1, stop, &n_bytes, NULL);
}

static int write_state(struct fixture *f)
{
    return write_unless(f, NULL);
}

struct loaded {
    const struct kinf_object *items[(N_OWNERS + 1) * N_PODS];
    size_t n_items;
};

static int take(const struct kinf_object *take_object, void *ctx, struct kinf_error *err)
{
    struct loaded *loaded = ctx;

    (void)err;
    assert_true(loaded->n_items < KINF__ARRAY_LEN(loaded->items));
    loaded->items[loaded->n_items++] = take_object;
    return 0;
}

static void release(struct loaded *loaded)
{
    while (loaded->n_items > 0)
        kinf_object_unref(loaded->items[--loaded->n_items]);
}

static int load_unless(struct fixture *f, struct kinf__packer *packer, struct loaded *loaded,
                       const struct kinf__stop *stop, struct kinf_error *err)
{
    struct kinf__state_origin origin;

    *loaded = (struct loaded){ .n_items = 0 };
    return kinf__state_file_load(f->folder, NAME, &f->identity, packer, take, loaded, stop, &origin,
                                 err);
}

static int load(struct fixture *f, struct kinf__packer *packer, struct loaded *loaded,
                struct kinf_error *err)
{
    return load_unless(f, packer, loaded, NULL, err);
}

static void expect_same_text(const struct kinf_object *a, const struct kinf_object *b)
{
    kinf_auto_scratch struct kinf_scratch scratch_a = KINF_SCRATCH_INIT,
                                          scratch_b = KINF_SCRATCH_INIT;
    struct kinf_str text_a, text_b;

    assert_string_equal(kinf_object_key(a), kinf_object_key(b));
    assert_int_equal(kinf_object_full_json(a, &scratch_a, &text_a, NULL), 0);
    assert_int_equal(kinf_object_full_json(b, &scratch_b, &text_b, NULL), 0);
    assert_true(kinf_str_equal(text_a, text_b));
    assert_true(kinf_str_equal(kinf__object_labels(a).raw, kinf__object_labels(b).raw));
    assert_true(kinf__object_check(b));
}

static void expect_held_alike(const struct kinf_object *a, const struct kinf_object *b)
{
    struct kinf__packed held_a, held_b;

    expect_same_text(a, b);
    assert_int_equal(a->is_packed, b->is_packed);
    assert_memory_equal(a->places, b->places, sizeof a->places);
    assert_int_equal(a->labels_offset, b->labels_offset);
    if (!a->is_packed)
        return;
    held_a = kinf__object_packed(a);
    held_b = kinf__object_packed(b);
    assert_true(kinf_str_equal(held_a.bytes, held_b.bytes));
    assert_true(kinf_str_equal(held_a.excerpt, held_b.excerpt));
    assert_int_equal(held_a.like == NULL, held_b.like == NULL);
    if (held_a.like != NULL)
        expect_same_text(held_a.like, held_b.like);
}

/* Whether it is told by another object, which is *ret_like. */
static bool is_told(const struct kinf_object *object, const struct kinf_object **ret_like)
{
    *ret_like = object->is_packed ? kinf__object_packed(object).like : NULL;
    return *ret_like != NULL;
}

static const struct kinf_object *find(const struct loaded *loaded, const char *key)
{
    for (size_t i = 0; i < loaded->n_items; i++) {
        if (strcmp(kinf_object_key(loaded->items[i]), key) == 0)
            return loaded->items[i];
    }
    fail_msg("%s is not there", key);
    return NULL;
}

/* By whose text those of this owner are told: one of them only, and if the store has it, that one. */
static const struct kinf_object *like_of(const struct loaded *loaded, size_t owner)
{
    const struct kinf_object *like, *common = NULL;
    char key[32];

    for (size_t number = 0; number < N_PODS; number++) {
        snprintf(key, sizeof key, "n/p-%zu-%02zu", owner, number);
        if (!is_told(find(loaded, key), &like))
            continue;
        assert_true(common == NULL || common == like);
        common = like;
    }
    assert_non_null(common);
    return common;
}

static bool has(const struct loaded *loaded, const struct kinf_object *object)
{
    return find(loaded, kinf_object_key(object)) == object;
}

/* F1: that which others are told by is there once, in the store or not any more; the next ones are told
 * by it, too. */
static void what_is_loaded_is_held_as_it_was(void **state)
{
    struct fixture *f = *state;
    kinf_auto_snapshot struct kinf_snapshot *snapshot = NULL;
    struct kinf__packer *packer = make_packer("spec.nodeName");
    struct kinf_cursor cursor;
    struct loaded loaded;

    fill(f);
    for (size_t number = 0; number < N_PODS; number++) /* of its first one there is a new version */
        store(f, make_pod(f->packer, f->identity.type, 2, number));
    assert_int_equal(write_state(f), 0);
    assert_int_equal(load(f, packer, &loaded, NULL), 0);
    assert_int_equal(loaded.n_items, (N_OWNERS + 1) * N_PODS);
    snapshot = kinf_indexer_snapshot(f->indexer);
    kinf_cursor_all(&cursor, snapshot);
    for (size_t i = 0; i < loaded.n_items; i++)
        expect_held_alike(kinf_cursor_next(&cursor), loaded.items[i]);
    for (size_t owner = 1; owner <= N_OWNERS; owner++) {
        const struct kinf_object *like = like_of(&loaded, owner), *next, *nexts_like;

        assert_int_equal(has(&loaded, like), owner != 2);
        next = make_pod(packer, f->identity.type, owner, N_PODS);
        assert_true(is_told(next, &nexts_like));
        assert_ptr_equal(nexts_like, like);
        kinf_object_unref(next);
    }
    kinf__packer_free(packer);
    for (size_t i = 0; i < loaded.n_items; i++)
        assert_true(kinf__object_check(loaded.items[i]));
    release(&loaded);
}

/* What is written of what was loaded is loaded again. */
static void a_second_time_it_is_as_the_first(void **state)
{
    struct fixture *f = *state;
    struct loaded loaded, again;

    fill(f);
    assert_int_equal(write_state(f), 0);
    for (size_t i = 0; i < 3; i++) {
        kinf__packer_free(f->packer);
        f->packer = make_packer("spec.nodeName");
        assert_int_equal(load(f, f->packer, &loaded, NULL), 0);
        assert_int_equal(kinf_indexer_replace(f->indexer, loaded.items, loaded.n_items, "9", NULL),
                         0);
        store(f, make_pod(f->packer, f->identity.type, i, N_PODS - 1));
        assert_int_equal(write_state(f), 0);
        release(&loaded);
    }
    kinf__packer_free(f->packer);
    f->packer = make_packer("spec.nodeName");
    assert_int_equal(load(f, f->packer, &again, NULL), 0);
    assert_int_equal(again.n_items, (N_OWNERS + 1) * N_PODS);
    for (size_t owner = 1; owner <= N_OWNERS; owner++)
        like_of(&again, owner);
    release(&again);
}

/* F2; the packer makes objects then as if there had been no file. */
static void a_file_for_another_packer_is_refused(void **state)
{
    struct fixture *f = *state;
    struct kinf__packer *other = make_packer("spec.env");
    struct kinf_error err = KINF_ERROR_INIT;
    struct loaded loaded;
    const struct kinf_object *pod;

    fill(f);
    assert_int_equal(write_state(f), 0);
    assert_int_equal(load(f, NULL, &loaded, &err), KINF_ERR_CONFLICT);
    assert_int_equal(load(f, f->packer, &loaded, &err), KINF_ERR_CONFLICT); /* it has made some */
    assert_int_equal(load(f, other, &loaded, &err), KINF_ERR_CONFLICT);
    assert_int_equal(loaded.n_items, 0);
    pod = make_pod(other, f->identity.type, 1, 1);
    assert_false(pod->is_packed); /* it becomes a part of the dictionary */
    kinf_object_unref(pod);
    kinf__packer_free(other);
}

static void what_nothing_was_compressed_of_is_loaded_by_everyone(void **state)
{
    struct fixture *f = *state;
    struct kinf__packer *packer = make_packer("spec.env");
    struct loaded loaded;

    store(f, make_pod(f->packer, f->identity.type, 1, 1));
    assert_int_equal(write_state(f), 0);
    assert_int_equal(load(f, NULL, &loaded, NULL), 0);
    assert_int_equal(loaded.n_items, 1);
    release(&loaded);
    assert_int_equal(load(f, packer, &loaded, NULL), 0);
    assert_int_equal(loaded.n_items, 1);
    release(&loaded);
    kinf__packer_free(packer);
}

/* There is one dictionary in a file. */
static void what_another_packer_made_is_written_as_it_reads(void **state)
{
    struct fixture *f = *state;
    struct kinf__packer *other = make_packer("spec.nodeName"), *packer;
    kinf_auto_snapshot struct kinf_snapshot *snapshot = NULL;
    size_t n_packed = 0, n_texts = 0;
    struct kinf_cursor cursor;
    struct loaded loaded;

    fill(f);
    for (size_t owner = 0; owner <= N_OWNERS; owner++) {
        for (size_t number = N_PODS / 2; number < N_PODS; number++)
            store(f, make_pod(other, f->identity.type, owner, number));
    }
    packer = make_packer("spec.nodeName");
    assert_int_equal(write_state(f), 0);
    assert_int_equal(load(f, packer, &loaded, NULL), 0);
    snapshot = kinf_indexer_snapshot(f->indexer);
    kinf_cursor_all(&cursor, snapshot);
    for (size_t i = 0; i < loaded.n_items; i++) {
        const struct kinf_object *stored = kinf_cursor_next(&cursor);

        expect_same_text(stored, loaded.items[i]);
        n_packed += loaded.items[i]->is_packed;
        n_texts += stored->is_packed && !loaded.items[i]->is_packed;
    }
    assert_true(n_packed > N_PODS && n_texts > N_PODS);
    release(&loaded);
    kinf__packer_free(packer);
    kinf__packer_free(other);
}

static void failing_allocations_change_nothing(void **state)
{
    struct fixture *f = *state;
    bool has_failed = true;

    fill(f);
    for (size_t n = 1; has_failed; n++) {
        int r;

        test_fail_allocation(n);
        r = write_state(f);
        has_failed = test_allocation_failed();
        assert_int_equal(r, has_failed ? KINF_ERR_NO_MEMORY : 0);
    }
    has_failed = true;
    for (size_t n = 1; has_failed; n++) {
        struct kinf__packer *packer = make_packer("spec.nodeName");
        struct kinf_error err = KINF_ERROR_INIT;
        struct loaded loaded;
        int r;

        test_fail_allocation(n);
        r = load(f, packer, &loaded, &err);
        has_failed = test_allocation_failed();
        if (r != (has_failed ? KINF_ERR_NO_MEMORY : 0))
            fail_msg("allocation %zu: %d, %s", n, r, err.message);
        release(&loaded);
        kinf__packer_free(packer);
    }
}

/* F3: what stands in front of the objects is given up, too. */
static void a_stop_is_heard_at_once(void **state)
{
    struct fixture *f = *state;
    struct kinf__packer *packer = make_packer("spec.nodeName");
    struct kinf__stop stop = { 0 };
    struct loaded loaded;

    fill(f);
    assert_int_equal(write_state(f), 0);
    kinf__stop_set(&stop);
    assert_int_equal(write_unless(f, &stop), KINF_ERR_STOPPED);
    assert_int_equal(load_unless(f, packer, &loaded, &stop, NULL), KINF_ERR_STOPPED);
    assert_int_equal(loaded.n_items, 0);
    kinf__packer_free(packer);
    packer = make_packer("spec.nodeName");
    assert_int_equal(load(f, packer, &loaded, NULL), 0);
    assert_int_equal(loaded.n_items, (N_OWNERS + 1) * N_PODS);
    /* While those are learned by which others are told, too. */
    assert_int_equal(kinf__packer_know(packer, loaded.items, loaded.n_items, &stop, NULL),
                     KINF_ERR_STOPPED);
    release(&loaded);
    kinf__packer_free(packer);
}

/* F2 */
static void a_flipped_byte_is_refused(void **state)
{
    struct fixture *f = *state;
    KINF__AUTO_BUFFER content = KINF__BUFFER_INIT;
    struct test_random random = test_random_init("a_flipped_byte_is_refused");
    struct loaded loaded;
    int fd;

    fill(f);
    assert_int_equal(write_state(f), 0);
    assert_int_equal(kinf__buffer_reserve(&content, 1 << 20), 0);
    fd = openat(f->folder->fd, NAME, O_RDWR);
    content.len = (size_t)read(fd, content.bytes, content.size);
    assert_in_range(content.len, 1000, (1 << 20) - 1);
    for (size_t i = 0; i < 300; i++) {
        struct kinf__packer *packer = make_packer("spec.nodeName");
        size_t at = test_random_below(&random, content.len);
        char byte = content.bytes[at] ^ (char)(1 + test_random_below(&random, 255));

        assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
        assert_true(load(f, packer, &loaded, NULL) < 0);
        release(&loaded);
        kinf_object_unref(make_pod(packer, f->identity.type, 1, 1)); /* it can go on */
        assert_int_equal(pwrite(fd, &content.bytes[at], 1, (off_t)at), 1);
        kinf__packer_free(packer);
    }
    close(fd);
}

/* --- sealed, but not what a state is made of --- */

static void put_number(struct kinf__sealed_writer *writer, uint64_t number, size_t size)
{
    assert_int_equal(kinf__state_put_number(writer, number, size, NULL), 0);
}

static void put_text(struct kinf__sealed_writer *writer, const char *text)
{
    assert_int_equal(kinf__state_put_text(writer, kinf_str_from(text), NULL), 0);
}

/* NULL: bytes that are nothing compressed. */
static void put_packed_text(struct kinf__sealed_writer *writer, const char *text)
{
    char bytes[100] = "bytes";
    size_t len = text != NULL ? ZSTD_compress(bytes, sizeof bytes, text, strlen(text), 1) : 5;

    assert_false(ZSTD_isError(len));
    assert_int_equal(kinf__state_put_text(writer, (struct kinf_str){ bytes, len }, NULL), 0);
}

/* A packed object, or with `excerpt` NULL a plain one. */
static void put_object(struct kinf__sealed_writer *writer, uint64_t body_len, uint64_t base,
                       const char *excerpt, const char *text)
{
    put_number(writer, excerpt != NULL, 1);
    put_text(writer, "n");
    put_text(writer, "a");
    put_text(writer, "u");
    put_text(writer, "1");
    for (size_t i = 0; i < 2 + KINF__N_PLACES; i++)
        put_number(writer, 0, 4);
    if (excerpt == NULL) {
        put_text(writer, "{\"metadata\":{\"name\":\"a\"}}");
        return;
    }
    put_number(writer, body_len, 4);
    put_number(writer, base, 4);
    put_text(writer, excerpt);
    put_packed_text(writer, text);
}

static void put_head(struct kinf__sealed_writer *writer, const char *dictionary, uint64_t n_bases)
{
    static const char *const texts[] = { "uid-1", "https://a:6443 ca=1", "", "v1", "Pod", "pods",
                                         "1",     "namespace=\n",        "7" };

    for (size_t i = 0; i < KINF__ARRAY_LEN(texts); i++)
        put_text(writer, texts[i]);
    put_text(writer, dictionary);
    put_text(writer, "spec.nodeName\n");
    put_number(writer, 1, 8);
    put_number(writer, 1, 8);
    put_number(writer, n_bases, 8);
    assert_int_equal(kinf__sealed_cut(writer, NULL), 0);
}

/* What is wrong, of an object that would be right otherwise, behind so many bases. */
struct wrong {
    const char *dictionary;
    uint64_t n_bases;   /* that the head speaks of */
    uint64_t base_base; /* what the base is told by */
    const char *base_excerpt;
    uint64_t body_len;
    uint64_t base; /* of the object */
    const char *excerpt;
    uint64_t form; /* 0: as the excerpt says; else this, and the base's number */
    int code;
    const char *base_text;
};

static int load_wrong(struct fixture *f, const struct wrong *wrong)
{
    struct kinf__packer *packer = make_packer("spec.nodeName");
    struct kinf__sealed_writer writer;
    struct loaded loaded;
    int fd, r;

    assert_int_equal(kinf__state_folder_create(f->folder, NAME, &fd, NULL), 0);
    assert_int_equal(kinf__sealed_writer_init(&writer, fd, KINF__STATE_FORMAT, NULL), 0);
    put_head(&writer, wrong->dictionary, wrong->n_bases);
    put_object(&writer, 10, wrong->base_base, wrong->base_excerpt, wrong->base_text);
    assert_int_equal(kinf__sealed_cut(&writer, NULL), 0);
    if (wrong->form != 0) {
        put_number(&writer, wrong->form, 1);
        put_number(&writer, wrong->base, 4);
    } else {
        put_object(&writer, wrong->body_len, wrong->base, wrong->excerpt, NULL);
    }
    assert_int_equal(kinf__sealed_finish(&writer, NULL), 0);
    kinf__sealed_writer_release(&writer);
    close(fd);
    assert_int_equal(kinf__state_folder_commit(f->folder, NAME, NULL), 0);
    r = load(f, packer, &loaded, NULL);
    release(&loaded);
    kinf__packer_free(packer);
    return r;
}

static void a_sealed_file_of_nonsense_is_refused(void **state)
{
    static const struct wrong wrongs[] = {
        { "{", 1, 0, "{}", 10, 1, "{}", 3, KINF_ERR_PARSE, NULL }, /* no such form */
        { "{", 1, 0, "{}", 10, 0, "{}", 2, KINF_ERR_PARSE, NULL },
        { "{", 1, 0, "{}", 10, 2, "{}", 2, KINF_ERR_PARSE, NULL },
        { "{", 1, 0, "{}", 10, 2, "{}", 0, KINF_ERR_PARSE, NULL },
        { "{", 1, 0, "{}", 10, UINT32_MAX, "{}", 0, KINF_ERR_PARSE, NULL },
        { "{", 1, 0, "{}", 10, 1, "", 0, KINF_ERR_PARSE, NULL },
        { "{", 1, 0, "{}", 10, 1, "[]", 0, KINF_ERR_PARSE, NULL },
        { "{", 1, 0, "{}", 1, 1, "{}", 0, KINF_ERR_PARSE, NULL },
        { "{", 1, 0, "{}", UINT32_MAX, 1, "{}", 0, KINF_ERR_PARSE, NULL },
        { "{", 1, 1, "{}", 10, 1, "{}", 0, KINF_ERR_PARSE, NULL }, /* a base by itself */
        { "{", 1, 0, NULL, 10, 1, "{}", 0, KINF_ERR_PARSE, NULL },
        { "{", 2, 0, "{}", 10, 1, "{}", 0, KINF_ERR_PARSE, NULL },
        { "{", 9, 0, "{}", 10, 0, "{}", 0, KINF_ERR_PARSE, NULL },
        { "{", UINT64_MAX, 0, "{}", 10, 1, "{}", 0, KINF_ERR_PARSE, NULL },
        { "{", 0, 0, "{}", 10, 1, "{}", 0, KINF_ERR_PARSE, NULL },
        { "", 0, 0, "{}", 10, 0, "{}", 0, KINF_ERR_PARSE, NULL }, /* by no dictionary */
        { "", 1, 0, "{}", 10, 0, "{}", 0, KINF_ERR_PARSE, NULL },
        { "{", 1, 0, "{}", 10, 1, "{}", 0, KINF_ERR_PARSE, NULL }, /* not to be inflated */
        { "{", 1, 0, "{}", 10, 1, "{}", 0, KINF_ERR_PARSE, "{\"metadata" },
        { "{", 1, 0, "{}", 10, 1, "{}", 0, 0, "{\"a\":1234}" }, /* and this is right */
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < KINF__ARRAY_LEN(wrongs); i++) {
        int r = load_wrong(f, &wrongs[i]);

        if (r != wrongs[i].code)
            fail_msg("%zu: %d in place of %d", i, r, wrongs[i].code);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_loaded_is_held_as_it_was),
        TEST(a_second_time_it_is_as_the_first),
        TEST(a_file_for_another_packer_is_refused),
        TEST(what_nothing_was_compressed_of_is_loaded_by_everyone),
        TEST(what_another_packer_made_is_written_as_it_reads),
        TEST(failing_allocations_change_nothing),
        TEST(a_stop_is_heard_at_once),
        TEST(a_flipped_byte_is_refused),
        TEST(a_sealed_file_of_nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
