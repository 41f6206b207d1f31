/*
 * Heads and objects in a sealed file. Neighbours: sealed.c keeps the bytes, folder.c the files.
 * Invariant: an object is made only of lengths that were read, each within what the object's own
 * limits allow.
 */
#include "state/state_file.h"

#include <endian.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "object/object.h"
#include "state/sealed.h"

#define HEAD_TEXT_MAX (1u << 20)
#define NAME_TEXT_MAX 60000u

/* --- writing --- */

static int put_number(struct kinf__sealed_writer *writer, uint64_t number, size_t size,
                      struct kinf_error *err)
{
    uint64_t bytes = htole64(number);

    return kinf__sealed_write(writer, &bytes, size, err);
}

static int put_text(struct kinf__sealed_writer *writer, struct kinf_str text,
                    struct kinf_error *err)
{
    int failed = put_number(writer, text.len, sizeof(uint32_t), err);

    return failed < 0 || text.len == 0 ? failed
                                       : kinf__sealed_write(writer, text.bytes, text.len, err);
}

static int put_head(struct kinf__sealed_writer *writer, const struct kinf__state_identity *identity,
                    const struct kinf_snapshot *snapshot, int64_t wall_ms, struct kinf_error *err)
{
    const char *texts[] = { identity->cluster,
                            identity->server,
                            identity->type->group,
                            identity->type->version,
                            identity->type->kind,
                            identity->type->resource,
                            identity->type->namespaced ? "1" : "",
                            identity->scope,
                            kinf_snapshot_resource_version(snapshot) };
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(texts); i++)
        failed = put_text(writer, kinf_str_from(texts[i]), err);
    if (failed == 0)
        failed = put_number(writer, (uint64_t)wall_ms, sizeof(uint64_t), err);
    return failed < 0 ? failed
                      : put_number(writer, kinf_snapshot_count(snapshot), sizeof(uint64_t), err);
}

/* What is known of the body, so that it need not be looked for when it is read. */
static int put_places(struct kinf__sealed_writer *writer, const struct kinf_object *object,
                      struct kinf_error *err)
{
    struct kinf__object_parts parts;
    int failed;

    kinf__object_tell_places(object, &parts);
    failed = put_number(writer, parts.labels_offset, sizeof parts.labels_offset, err);
    if (failed == 0)
        failed = put_number(writer, parts.labels_len, sizeof parts.labels_len, err);
    for (size_t i = 0; failed == 0 && i < KINF__N_PLACES; i++)
        failed = put_number(writer, parts.places[i], sizeof parts.places[i], err);
    return failed;
}

static int put_object(struct kinf__sealed_writer *writer, const struct kinf_object *object,
                      struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    const struct kinf_str names[] = { kinf_object_namespace(object),
                                      kinf_str_from(kinf_object_name(object)),
                                      kinf_str_from(kinf_object_uid(object)),
                                      kinf_str_from(kinf_object_resource_version(object)) };
    struct kinf_str body;
    int failed = kinf__object_body(object, &scratch, &body) < 0 ? kinf__error_no_memory(err) : 0;

    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(names); i++)
        failed = put_text(writer, names[i], err);
    if (failed == 0)
        failed = put_places(writer, object, err);
    return failed < 0 ? failed : put_text(writer, body, err);
}

static int stopped(struct kinf_error *err)
{
    return kinf__error_set(err, KINF_ERR_STOPPED, "there was no time for it");
}

static int put_objects(struct kinf__sealed_writer *writer, const struct kinf_snapshot *snapshot,
                       const struct kinf__stop *stop, struct kinf_error *err)
{
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    int failed = 0;

    kinf_cursor_all(&cursor, snapshot);
    while (failed == 0 && (object = kinf_cursor_next(&cursor)) != NULL)
        failed = kinf__stop_is_set(stop) ? stopped(err) : put_object(writer, object, err);
    return failed == 0 && kinf__stop_is_set(stop) ? stopped(err) : failed;
}

static int write_to(int fd, const struct kinf__state_identity *identity,
                    const struct kinf_snapshot *snapshot, int64_t wall_ms,
                    const struct kinf__stop *stop, uint64_t *ret_bytes, struct kinf_error *err)
{
    struct kinf__sealed_writer writer;
    int failed = kinf__sealed_writer_init(&writer, fd, KINF__STATE_FORMAT, err);

    if (failed == 0)
        failed = put_head(&writer, identity, snapshot, wall_ms, err);
    if (failed == 0)
        failed = put_objects(&writer, snapshot, stop, err);
    if (failed == 0)
        failed = kinf__sealed_finish(&writer, err);
    *ret_bytes = writer.written_bytes;
    kinf__sealed_writer_release(&writer);
    return failed;
}

int kinf__state_file_write(const struct kinf__state_folder *folder, const char *name,
                           const struct kinf__state_identity *identity,
                           const struct kinf_snapshot *snapshot, int64_t wall_ms,
                           const struct kinf__stop *stop, uint64_t *ret_bytes,
                           struct kinf_error *err)
{
    KINF__AUTO_CLOSE int fd = -1;
    int failed;

    if (strlen(kinf_snapshot_resource_version(snapshot)) >= KINF__STATE_RV_SIZE)
        return kinf__error_set(err, KINF_ERR_LIMIT, "the resourceVersion is too long");
    failed = kinf__state_folder_create(folder, name, &fd, err);
    if (failed < 0)
        return failed;
    failed = write_to(fd, identity, snapshot, wall_ms, stop, ret_bytes, err);
    if (failed == 0)
        failed = kinf__state_folder_commit(folder, name, err);
    if (failed < 0)
        kinf__state_folder_drop(folder, name);
    return failed;
}

/* --- reading --- */

enum head_text {
    HEAD_CLUSTER,
    HEAD_SERVER,
    HEAD_GROUP,
    HEAD_VERSION,
    HEAD_KIND,
    HEAD_RESOURCE,
    HEAD_NAMESPACED,
    HEAD_SCOPE,
    HEAD_RV,
    N_HEAD_TEXTS,
};

struct head {
    struct kinf__buffer texts[N_HEAD_TEXTS]; /* each ends with NUL behind its length */
    uint64_t wall_ms;
    uint64_t n_objects;
};

static const char *head_text(const struct head *head, enum head_text which)
{
    return head->texts[which].bytes;
}

static void release_head(struct head *head)
{
    for (size_t i = 0; i < N_HEAD_TEXTS; i++)
        kinf__buffer_release(&head->texts[i]);
}

static int malformed(struct kinf_error *err)
{
    return kinf__error_set(err, KINF_ERR_PARSE, "damaged: what it holds is not as it is written");
}

static int get_number(struct kinf__sealed_reader *reader, size_t size, uint64_t *ret_number,
                      struct kinf_error *err)
{
    const char *bytes;
    uint64_t number = 0;
    int failed = kinf__sealed_read(reader, size, &bytes, err);

    if (failed < 0)
        return failed;
    memcpy(&number, bytes, size);
    *ret_number = le64toh(number);
    return 0;
}

/* The reader's until something else is read. */
static int get_text(struct kinf__sealed_reader *reader, uint64_t max_len, struct kinf_str *ret_text,
                    struct kinf_error *err)
{
    uint64_t len;
    int failed = get_number(reader, sizeof(uint32_t), &len, err);

    if (failed < 0)
        return failed;
    if (len > max_len)
        return malformed(err);
    ret_text->len = (size_t)len;
    return kinf__sealed_read(reader, ret_text->len, &ret_text->bytes, err);
}

/* A text without a NUL, which ends with one. */
static int keep_text(struct kinf__sealed_reader *reader, uint64_t max_len,
                     struct kinf__buffer *buffer, struct kinf_error *err)
{
    struct kinf_str text = { NULL, 0 };
    int failed = get_text(reader, max_len, &text, err);

    if (failed < 0)
        return failed;
    if (text.len != 0 && memchr(text.bytes, '\0', text.len) != NULL)
        return malformed(err);
    buffer->len = 0;
    return kinf__buffer_append_str(buffer, text) < 0 || kinf__buffer_cstr(buffer) == NULL
               ? kinf__error_no_memory(err)
               : 0;
}

static int get_head(struct kinf__sealed_reader *reader, struct head *head, struct kinf_error *err)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < N_HEAD_TEXTS; i++)
        failed = keep_text(reader, HEAD_TEXT_MAX, &head->texts[i], err);
    if (failed == 0)
        failed = get_number(reader, sizeof(uint64_t), &head->wall_ms, err);
    if (failed == 0)
        failed = get_number(reader, sizeof(uint64_t), &head->n_objects, err);
    if (failed == 0 && head->texts[HEAD_RV].len >= KINF__STATE_RV_SIZE)
        failed = malformed(err);
    return failed;
}

static bool is_type(const struct head *head, const struct kinf_type *type)
{
    return strcmp(head_text(head, HEAD_GROUP), type->group) == 0 &&
           strcmp(head_text(head, HEAD_VERSION), type->version) == 0 &&
           strcmp(head_text(head, HEAD_KIND), type->kind) == 0 &&
           strcmp(head_text(head, HEAD_RESOURCE), type->resource) == 0 &&
           (*head_text(head, HEAD_NAMESPACED) != '\0') == type->namespaced;
}

static int check_head(const struct head *head, const struct kinf__state_identity *identity,
                      struct kinf_error *err)
{
    const char *cluster = head_text(head, HEAD_CLUSTER);
    bool are_known = *cluster != '\0' && *identity->cluster != '\0';

    if (are_known && strcmp(cluster, identity->cluster) != 0)
        return kinf__error_set(err, KINF_ERR_CONFLICT,
                               "it is of another cluster: uid %s of kube-system, here it is %s",
                               cluster, identity->cluster);
    if (!are_known && strcmp(head_text(head, HEAD_SERVER), identity->server) != 0)
        return kinf__error_set(err, KINF_ERR_CONFLICT, "it is of another server: %s, this is %s",
                               head_text(head, HEAD_SERVER), identity->server);
    if (!is_type(head, identity->type))
        return kinf__error_set(err, KINF_ERR_CONFLICT, "it is of another type: %s of %s/%s",
                               head_text(head, HEAD_RESOURCE), head_text(head, HEAD_GROUP),
                               head_text(head, HEAD_VERSION));
    if (strcmp(head_text(head, HEAD_SCOPE), identity->scope) != 0)
        return kinf__error_set(err, KINF_ERR_CONFLICT,
                               "the configuration was another one: what it stores differs");
    return 0;
}

/* The names of an object, each kept while the next is read. */
enum { NAME_SPACE, NAME, UID, RV, N_NAMES };

static int get_places(struct kinf__sealed_reader *reader, struct kinf__object_parts *parts,
                      struct kinf_error *err)
{
    uint64_t offset, len, place = 0;
    int failed = get_number(reader, sizeof(uint32_t), &offset, err);

    if (failed == 0)
        failed = get_number(reader, sizeof(uint32_t), &len, err);
    if (failed == 0 && len > KINF__LABELS_LEN_MAX)
        failed = malformed(err);
    if (failed < 0)
        return failed;
    parts->labels_offset = (uint32_t)offset;
    parts->labels_len = (uint32_t)len;
    for (size_t i = 0; failed == 0 && i < KINF__N_PLACES; i++) {
        failed = get_number(reader, sizeof(uint32_t), &place, err);
        parts->places[i] = (uint32_t)place;
    }
    return failed;
}

/* The body is copied once, from what was inflated into the object. */
static int make_object(struct kinf__sealed_reader *reader, struct kinf__object_parts *parts,
                       const struct kinf_object **ret_object, struct kinf_error *err)
{
    const struct kinf_object *object;
    int failed = get_places(reader, parts, err);

    if (failed == 0)
        failed = get_text(reader, UINT32_MAX, &parts->body, err);
    if (failed < 0)
        return failed;
    if (parts->name.len == 0 || (parts->name_space.len != 0 && !parts->type->namespaced) ||
        memchr(parts->name.bytes, '/', parts->name.len) != NULL)
        return malformed(err);
    failed = kinf__object_new(parts, &object, err);
    if (failed < 0)
        return failed == KINF_ERR_LIMIT ? malformed(err) : failed;
    if (!kinf__object_check(object)) {
        kinf_object_unref(object);
        return malformed(err);
    }
    *ret_object = object;
    return 0;
}

static int get_object(struct kinf__sealed_reader *reader, const struct kinf_type *type,
                      struct kinf__buffer *names, const struct kinf_object **ret_object,
                      struct kinf_error *err)
{
    struct kinf__object_parts parts = { .type = type };
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < N_NAMES; i++)
        failed = keep_text(reader, NAME_TEXT_MAX, &names[i], err);
    if (failed < 0)
        return failed;
    parts.name_space = kinf__buffer_str(&names[NAME_SPACE]);
    parts.name = kinf__buffer_str(&names[NAME]);
    parts.uid = kinf__buffer_str(&names[UID]);
    parts.resource_version = kinf__buffer_str(&names[RV]);
    return make_object(reader, &parts, ret_object, err);
}

static int get_objects(struct kinf__sealed_reader *reader, const struct kinf_type *type,
                       uint64_t n_objects, kinf__state_object_cb *callback, void *ctx,
                       const struct kinf__stop *stop, struct kinf_error *err)
{
    struct kinf__buffer names[N_NAMES] = { KINF__BUFFER_INIT };
    const struct kinf_object *object = NULL;
    int failed = 0;

    for (uint64_t i = 0; failed == 0 && i < n_objects; i++) {
        failed =
            kinf__stop_is_set(stop) ? stopped(err) : get_object(reader, type, names, &object, err);
        if (failed == 0)
            failed = callback(object, ctx, err);
    }
    for (size_t i = 0; i < N_NAMES; i++)
        kinf__buffer_release(&names[i]);
    return failed;
}

static void fill_origin(const struct head *head, struct kinf__state_origin *origin)
{
    memcpy(origin->rv, head_text(head, HEAD_RV), head->texts[HEAD_RV].len + 1);
    origin->wall_ms = (int64_t)head->wall_ms;
    origin->n_objects = head->n_objects;
}

/* Reads the head of a file; the caller releases reader and head and closes `ret_fd`, on failure too. */
static int begin(const struct kinf__state_folder *folder, const char *name, int *ret_fd,
                 struct kinf__sealed_reader *reader, struct head *head, struct kinf_error *err)
{
    off_t size;
    int failed = kinf__state_folder_open_file(folder, name, ret_fd, &size, err);

    if (failed == 0)
        failed = kinf__sealed_reader_init(reader, *ret_fd, size, KINF__STATE_FORMAT, err);
    return failed < 0 ? failed : get_head(reader, head, err);
}

int kinf__state_file_load(const struct kinf__state_folder *folder, const char *name,
                          const struct kinf__state_identity *identity,
                          kinf__state_object_cb *callback, void *ctx, const struct kinf__stop *stop,
                          struct kinf__state_origin *ret_origin, struct kinf_error *err)
{
    KINF__AUTO_CLOSE int fd = -1;
    struct kinf__sealed_reader reader = { .fd = -1 };
    struct head head = { .n_objects = 0 };
    int failed = begin(folder, name, &fd, &reader, &head, err);

    if (failed == 0)
        failed = check_head(&head, identity, err);
    if (failed == 0)
        failed = get_objects(&reader, identity->type, head.n_objects, callback, ctx, stop, err);
    if (failed == 0)
        failed = kinf__sealed_end(&reader, err);
    if (failed == 0)
        fill_origin(&head, ret_origin);
    release_head(&head);
    kinf__sealed_reader_release(&reader);
    return failed;
}

int kinf__state_file_type(const struct kinf__state_folder *folder, const char *name,
                          const char *server, const struct kinf_type **ret_type,
                          struct kinf_error *err)
{
    KINF__AUTO_CLOSE int fd = -1;
    struct kinf__sealed_reader reader = { .fd = -1 };
    struct head head = { .n_objects = 0 };
    int failed = begin(folder, name, &fd, &reader, &head, err);

    if (failed == 0)
        failed = kinf__sealed_end(&reader, err);
    if (failed == 0 && strcmp(head_text(&head, HEAD_SERVER), server) != 0)
        failed = kinf__error_set(err, KINF_ERR_CONFLICT, "it is of another server: %s",
                                 head_text(&head, HEAD_SERVER));
    if (failed == 0)
        failed = kinf_type_intern(head_text(&head, HEAD_GROUP), head_text(&head, HEAD_VERSION),
                                  head_text(&head, HEAD_KIND), head_text(&head, HEAD_RESOURCE),
                                  *head_text(&head, HEAD_NAMESPACED) != '\0', ret_type, err);
    release_head(&head);
    kinf__sealed_reader_release(&reader);
    return failed;
}
