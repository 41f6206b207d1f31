/*
 * Files of states: whatever is in one, it is refused, or each object of it is sound. The first byte
 * says whether the rest is the file, or what a file is made of: then it is sealed first, so that
 * inputs get behind the seal, in sections; two bytes in front of each say how long it is.
 */
#include <sys/stat.h>

#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "object/object.h"
#include "state/sealed.h"
#include "state/state_file.h"

static struct kinf__state_folder *folder;
static char path[64];

static void remove_folder(void)
{
    kinf__state_folder_close(folder);
    rmdir(path);
}

static void make_folder(void)
{
    struct kinf_error err = KINF_ERROR_INIT;

    snprintf(path, sizeof path, "/tmp/kinf-fuzz-state-XXXXXX");
    FUZZ_REQUIRE(mkdtemp(path) != NULL);
    FUZZ_REQUIRE(kinf__state_folder_open(path, &folder, &err) == 0);
    FUZZ_REQUIRE(atexit(remove_folder) == 0);
}

/* What cannot be inflated is an error, and no more. */
static void read_all(const struct kinf_object *object)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str text;

    (void)kinf__object_labels(object);
    if (object->body_len < 1 << 20 && kinf_object_json(object, &scratch, &text, NULL) == 0)
        FUZZ_REQUIRE(text.len >= 2);
}

static int take(const struct kinf_object *take_object, void *ctx, struct kinf_error *err)
{
    size_t *n_objects = ctx;

    (void)err;
    ++*n_objects;
    FUZZ_REQUIRE(kinf__object_check_held(take_object));
    read_all(take_object);
    kinf_object_unref(take_object);
    return 0;
}

static void put_sections(struct kinf__sealed_writer *writer, const uint8_t *data, size_t size)
{
    struct kinf_error err = KINF_ERROR_INIT;

    while (size != 0) {
        size_t len = fuzz_take_byte(&data, &size);

        len = len << 8 | fuzz_take_byte(&data, &size);
        len = len < size ? len : size;
        FUZZ_REQUIRE(kinf__sealed_write(writer, data, len, &err) == 0);
        FUZZ_REQUIRE(kinf__sealed_cut(writer, &err) == 0);
        data += len;
        size -= len;
    }
}

static void put_file(const uint8_t *data, size_t size, bool is_whole)
{
    struct kinf__sealed_writer writer;
    struct kinf_error err = KINF_ERROR_INIT;
    int fd;

    FUZZ_REQUIRE(kinf__state_folder_create(folder, "state", &fd, &err) == 0);
    if (is_whole) {
        FUZZ_REQUIRE(write(fd, data, size) == (ssize_t)size);
    } else {
        FUZZ_REQUIRE(kinf__sealed_writer_init(&writer, fd, KINF__STATE_FORMAT, &err) == 0);
        put_sections(&writer, data, size);
        FUZZ_REQUIRE(kinf__sealed_finish(&writer, &err) == 0);
        kinf__sealed_writer_release(&writer);
    }
    close(fd);
    FUZZ_REQUIRE(kinf__state_folder_commit(folder, "state", &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kinf__state_identity identity = { .cluster = "", .server = "s", .scope = "" };
    struct kinf__state_origin origin;
    struct kinf_error err = KINF_ERROR_INIT;
    bool is_whole = fuzz_take_byte(&data, &size) % 2 != 0;
    size_t n_before = kinf__object_count(), n_objects = 0;
    struct kinf__packer *packer;
    int r;

    if (folder == NULL)
        make_folder();
    FUZZ_REQUIRE(kinf_type_intern("", "v1", "Pod", "pods", true, &identity.type, &err) == 0);
    put_file(data, size, is_whole);
    FUZZ_REQUIRE(kinf__packer_new(&packer, &err) == 0);
    FUZZ_REQUIRE(kinf__packer_keep(packer, "spec.nodeName", &err) == 0);
    r = kinf__state_file_load(folder, "state", &identity, packer, take, &n_objects, NULL, &origin,
                              &err);
    kinf__packer_free(packer);
    FUZZ_REQUIRE(r <= 0 && (r == 0 || err.message[0] != '\0'));
    FUZZ_REQUIRE(r < 0 || origin.n_objects == n_objects);
    FUZZ_REQUIRE(kinf__object_count() == n_before);
    FUZZ_REQUIRE(unlinkat(folder->fd, "state", 0) == 0);
    return 0;
}
