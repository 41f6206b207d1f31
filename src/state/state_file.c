/*
 * Heads of files, and what is behind them. Neighbours: sealed.c keeps the bytes, folder.c the files,
 * state_object.c puts objects into them; state_load.c makes objects again.
 */
#include "state/state_file.h"

#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "state/sealed.h"
#include "state/state_load.h"

#define HEAD_TEXT_MAX (1u << 20)

/* --- writing --- */

/* NULL: nothing is packed. */
static int put_packing(struct kinf__sealed_writer *writer, const struct kinf__packing *packing,
                       struct kinf_error *err)
{
    const struct kinf_str empty = KINF_STR("");
    int failed = kinf__state_put_text(
        writer, packing != NULL ? kinf__packing_dictionary(packing) : empty, err);

    return failed < 0 ? failed
                      : kinf__state_put_text(
                            writer, packing != NULL ? kinf__packing_kept(packing) : empty, err);
}

static int put_head(struct kinf__sealed_writer *writer, const struct kinf__state_identity *identity,
                    const struct kinf_snapshot *snapshot, const struct kinf__state_bases *bases,
                    int64_t wall_ms, struct kinf_error *err)
{
    const uint64_t numbers[] = { (uint64_t)wall_ms, kinf_snapshot_count(snapshot), bases->n_items };
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
        failed = kinf__state_put_text(writer, kinf_str_from(texts[i]), err);
    if (failed == 0)
        failed = put_packing(writer, bases->packing, err);
    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(numbers); i++)
        failed = kinf__state_put_number(writer, numbers[i], sizeof numbers[i], err);
    return failed < 0 ? failed : kinf__sealed_cut(writer, err);
}

static int stopped(struct kinf_error *err)
{
    return kinf__error_set(err, KINF_ERR_STOPPED, "there was no time for it");
}

static int put_objects(struct kinf__sealed_writer *writer, const struct kinf_snapshot *snapshot,
                       const struct kinf__state_bases *bases, const struct kinf__stop *stop,
                       struct kinf_error *err)
{
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < bases->n_items; i++)
        failed =
            kinf__stop_is_set(stop) ? stopped(err) : kinf__state_put_base(writer, bases, i, err);
    kinf_cursor_all(&cursor, snapshot);
    while (failed == 0 && (object = kinf_cursor_next(&cursor)) != NULL)
        failed = kinf__stop_is_set(stop) ? stopped(err)
                                         : kinf__state_put_object(writer, bases, object, err);
    return failed == 0 && kinf__stop_is_set(stop) ? stopped(err) : failed;
}

static int write_to(int fd, const struct kinf__state_identity *identity,
                    const struct kinf_snapshot *snapshot, int64_t wall_ms,
                    const struct kinf__stop *stop, uint64_t *ret_bytes, struct kinf_error *err)
{
    struct kinf__sealed_writer writer;
    struct kinf__state_bases bases = { .n_items = 0 };
    int failed = kinf__sealed_writer_init(&writer, fd, KINF__STATE_FORMAT, err);

    if (failed == 0)
        failed = kinf__state_bases_find(&bases, snapshot, err);
    if (failed == 0)
        failed = put_head(&writer, identity, snapshot, &bases, wall_ms, err);
    if (failed == 0)
        failed = put_objects(&writer, snapshot, &bases, stop, err);
    if (failed == 0)
        failed = kinf__sealed_finish(&writer, err);
    *ret_bytes = writer.written_bytes;
    kinf__state_bases_release(&bases);
    kinf__sealed_writer_release(&writer);
    return failed;
}

static int replace(const struct kinf__state_folder *folder, const char *name,
                   const struct kinf__state_identity *identity,
                   const struct kinf_snapshot *snapshot, int64_t wall_ms,
                   const struct kinf__stop *stop, uint64_t *ret_bytes, struct kinf_error *err)
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

int kinf__state_file_write(const struct kinf__state_folder *folder, const char *name,
                           const struct kinf__state_identity *identity,
                           const struct kinf_snapshot *snapshot, int64_t wall_ms,
                           const struct kinf__stop *stop, uint64_t *ret_bytes,
                           struct kinf_error *err)
{
    int failed = replace(folder, name, identity, snapshot, wall_ms, stop, ret_bytes, err);

    if (failed < 0) {
        kinf__error_prefix(err, "the file of before stays");
        return failed;
    }
    failed = kinf__state_folder_sync(folder, err);
    if (failed < 0)
        kinf__error_prefix(err, "the new file is there, unless the power fails");
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
    HEAD_DICTIONARY,
    HEAD_KEPT,
    N_HEAD_TEXTS,
};

struct head {
    struct kinf__buffer texts[N_HEAD_TEXTS]; /* each ends with NUL behind its length */
    uint64_t wall_ms;
    uint64_t n_objects;
    uint64_t n_bases;
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

/* A text without a NUL, which ends with one. */
static int keep_text(struct kinf_str *rest, struct kinf__buffer *buffer, struct kinf_error *err)
{
    struct kinf_str text;
    int failed = kinf__state_take_text(rest, HEAD_TEXT_MAX, &text, err);

    if (failed < 0)
        return failed;
    if (text.len != 0 && memchr(text.bytes, '\0', text.len) != NULL)
        return kinf__state_malformed(err);
    return kinf__buffer_append_str(buffer, text) < 0 || kinf__buffer_cstr(buffer) == NULL
               ? kinf__error_no_memory(err)
               : 0;
}

static int read_head(struct kinf_str rest, struct head *head, struct kinf_error *err)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < N_HEAD_TEXTS; i++)
        failed = keep_text(&rest, &head->texts[i], err);
    if (failed == 0)
        failed = kinf__state_take_number(&rest, sizeof(uint64_t), &head->wall_ms, err);
    if (failed == 0)
        failed = kinf__state_take_number(&rest, sizeof(uint64_t), &head->n_objects, err);
    if (failed == 0)
        failed = kinf__state_take_number(&rest, sizeof(uint64_t), &head->n_bases, err);
    return failed == 0 && (rest.len != 0 || head->texts[HEAD_RV].len >= KINF__STATE_RV_SIZE)
               ? kinf__state_malformed(err)
               : failed;
}

/* The first section. */
static int get_head(struct kinf__sealed_reader *reader, struct head *head, struct kinf_error *err)
{
    struct kinf__sealed_section section = { .text_len = 0 };
    int failed = kinf__sealed_next(reader, &section, err);

    if (failed == 0 && section.text_len == 0)
        failed = kinf__state_malformed(err);
    if (failed == 0)
        failed = kinf__sealed_inflate(&section, err);
    if (failed == 0)
        failed = read_head(kinf__buffer_str(&section.text), head, err);
    kinf__sealed_section_release(&section);
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

static void fill_origin(const struct head *head, struct kinf__state_origin *origin)
{
    memcpy(origin->rv, head_text(head, HEAD_RV), head->texts[HEAD_RV].len + 1);
    origin->wall_ms = (int64_t)head->wall_ms;
    origin->n_objects = head->n_objects;
}

/* Reads the head of a file; the caller releases it and closes `ret_fd`, on failure too. */
static int begin(const struct kinf__state_folder *folder, const char *name, int *ret_fd,
                 struct kinf__sealed_reader *reader, struct head *head, struct kinf_error *err)
{
    off_t size;
    int failed = kinf__state_folder_open_file(folder, name, ret_fd, &size, err);

    if (failed == 0)
        failed = kinf__sealed_reader_init(reader, *ret_fd, size, KINF__STATE_FORMAT, err);
    return failed < 0 ? failed : get_head(reader, head, err);
}

/* What packed objects are read by. The packer goes on by it whatever comes of the rest: any text will do
 * for its dictionary. */
static int take_packing(struct kinf__sealed_reader *reader, const struct head *head,
                        const struct kinf_type *type, struct kinf__packer *packer,
                        struct kinf__state_bases *bases, const struct kinf__stop *stop,
                        struct kinf_error *err)
{
    struct kinf_str dictionary = kinf__buffer_str(&head->texts[HEAD_DICTIONARY]);
    int failed;

    if (dictionary.len == 0)
        return head->n_bases != 0 ? kinf__state_malformed(err) : 0;
    if (packer == NULL)
        return kinf__error_set(err, KINF_ERR_CONFLICT, "objects were held compressed");
    failed =
        kinf__packer_resume(packer, dictionary, kinf__buffer_str(&head->texts[HEAD_KEPT]), err);
    if (failed < 0)
        return failed;
    bases->packing = kinf__packing_ref(kinf__packer_packing(packer));
    return kinf__state_take_bases(reader, type, head->n_bases, bases, stop, err);
}

int kinf__state_file_load(const struct kinf__state_folder *folder, const char *name,
                          const struct kinf__state_identity *identity, struct kinf__packer *packer,
                          kinf__state_object_cb *callback, void *ctx, const struct kinf__stop *stop,
                          struct kinf__state_origin *ret_origin, struct kinf_error *err)
{
    KINF__AUTO_CLOSE int fd = -1;
    struct kinf__sealed_reader reader;
    struct kinf__state_bases bases = { .n_items = 0 };
    struct head head = { .n_objects = 0 };
    uint64_t n_objects = 0;
    int failed = begin(folder, name, &fd, &reader, &head, err);

    if (failed == 0)
        failed = check_head(&head, identity, err);
    if (failed == 0)
        failed = take_packing(&reader, &head, identity->type, packer, &bases, stop, err);
    if (failed == 0)
        failed =
            kinf__state_load(&reader, identity->type, &bases, callback, ctx, stop, &n_objects, err);
    if (failed == 0 && n_objects != head.n_objects)
        failed = kinf__state_malformed(err);
    if (failed == 0)
        failed = kinf__packer_know(packer, bases.items, bases.n_items, stop, err);
    if (failed == 0)
        fill_origin(&head, ret_origin);
    kinf__state_bases_release(&bases);
    release_head(&head);
    return failed;
}

/* There is nothing behind the head. */
static int check_empty(struct kinf__sealed_reader *reader, struct kinf_error *err)
{
    struct kinf__sealed_section section = { .text_len = 0 };
    int failed = kinf__sealed_next(reader, &section, err);

    if (failed == 0 && section.text_len != 0)
        failed = kinf__error_set(err, KINF_ERR_PARSE, "it has objects");
    kinf__sealed_section_release(&section);
    return failed;
}

int kinf__state_file_type(const struct kinf__state_folder *folder, const char *name,
                          const char *server, const struct kinf_type **ret_type,
                          struct kinf_error *err)
{
    KINF__AUTO_CLOSE int fd = -1;
    struct kinf__sealed_reader reader;
    struct head head = { .n_objects = 0 };
    int failed = begin(folder, name, &fd, &reader, &head, err);

    if (failed == 0)
        failed = check_empty(&reader, err);
    if (failed == 0 && strcmp(head_text(&head, HEAD_SERVER), server) != 0)
        failed = kinf__error_set(err, KINF_ERR_CONFLICT, "it is of another server: %s",
                                 head_text(&head, HEAD_SERVER));
    if (failed == 0)
        failed = kinf_type_intern(head_text(&head, HEAD_GROUP), head_text(&head, HEAD_VERSION),
                                  head_text(&head, HEAD_KIND), head_text(&head, HEAD_RESOURCE),
                                  *head_text(&head, HEAD_NAMESPACED) != '\0', ret_type, err);
    release_head(&head);
    return failed;
}
