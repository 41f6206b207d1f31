/*
 * Compressing and sealing. Neighbours: state_file.c and state_load.c say what the bytes mean. Invariant
 * of the reader: each byte of the file that was handed out has gone into the seal.
 */
#include "state/sealed.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/error.h"

#define LEVEL     1 /* others save little and cost much: the state is written every few minutes */
#define SEAL_SIZE 8
/* What is on its way to the disk at most, so that nobody waits long for the rest of it. */
#define UNSYNCED_MAX ((uint64_t)8 << 20)

/* --- the seal --- */

static void seal_word(struct kinf__seal *seal)
{
    seal->value = (seal->value ^ seal->word) * 0x9e3779b97f4a7c15U;
    seal->value ^= seal->value >> 29;
    seal->word = 0;
    seal->n_waiting = 0;
}

static void seal_bytes(struct kinf__seal *seal, const void *bytes, size_t len)
{
    const unsigned char *at = bytes, *end = at + len;
    uint64_t word;

    while (at < end) {
        if (seal->n_waiting == 0 && end - at >= (ptrdiff_t)sizeof word) {
            memcpy(&word, at, sizeof word);
            seal->word = le64toh(word);
            at += sizeof word;
            seal_word(seal);
            continue;
        }
        seal->word |= (uint64_t)*at++ << (8 * seal->n_waiting);
        if (++seal->n_waiting == sizeof word)
            seal_word(seal);
    }
}

/* As it is in the file. */
static uint64_t seal_value(struct kinf__seal seal)
{
    seal.word |= (uint64_t)(seal.n_waiting + 1) << 56;
    seal_word(&seal);
    return htole64(seal.value);
}

/* --- writing --- */

static int wait_for_disk(struct kinf__sealed_writer *writer, struct kinf_error *err)
{
    writer->synced_bytes = writer->written_bytes;
    return fdatasync(writer->fd) == 0
               ? 0
               : kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write");
}

static int write_all(struct kinf__sealed_writer *writer, const void *bytes, size_t len,
                     struct kinf_error *err)
{
    const char *at = bytes;

    writer->written_bytes += len;
    while (len != 0) {
        ssize_t n = write(writer->fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write");
        at += n;
        len -= (size_t)n;
    }
    return writer->written_bytes - writer->synced_bytes < UNSYNCED_MAX ? 0
                                                                       : wait_for_disk(writer, err);
}

static int write_sealed(struct kinf__sealed_writer *writer, const void *bytes, size_t len,
                        struct kinf_error *err)
{
    seal_bytes(&writer->seal, bytes, len);
    return write_all(writer, bytes, len, err);
}

int kinf__sealed_writer_init(struct kinf__sealed_writer *writer, int fd, uint32_t version,
                             struct kinf_error *err)
{
    uint32_t number = htole32(version);
    int failed;

    *writer = (struct kinf__sealed_writer){ .fd = fd };
    writer->zstd = ZSTD_createCCtx();
    if (writer->zstd == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_checksumFlag, 1)))
        return kinf__error_no_memory(err);
    failed = write_sealed(writer, KINF__SEALED_MAGIC, sizeof KINF__SEALED_MAGIC - 1, err);
    return failed < 0 ? failed : write_sealed(writer, &number, sizeof number, err);
}

void kinf__sealed_writer_release(struct kinf__sealed_writer *writer)
{
    kinf__buffer_release(&writer->text);
    kinf__buffer_release(&writer->frame);
    ZSTD_freeCCtx(writer->zstd);
}

int kinf__sealed_write(struct kinf__sealed_writer *writer, const void *bytes, size_t len,
                       struct kinf_error *err)
{
    if (len > KINF__SEALED_TEXT_MAX - writer->text.len)
        return kinf__error_set(err, KINF_ERR_LIMIT, "a section would be above %zu bytes",
                               KINF__SEALED_TEXT_MAX);
    return kinf__buffer_append(&writer->text, bytes, len) < 0 ? kinf__error_no_memory(err) : 0;
}

static int write_lengths(struct kinf__sealed_writer *writer, size_t frame_len, size_t text_len,
                         struct kinf_error *err)
{
    const uint32_t lengths[] = { htole32((uint32_t)frame_len), htole32((uint32_t)text_len) };

    return write_sealed(writer, lengths, sizeof lengths, err);
}

int kinf__sealed_cut(struct kinf__sealed_writer *writer, struct kinf_error *err)
{
    struct kinf__buffer *text = &writer->text, *frame = &writer->frame;
    size_t n;
    int failed;

    if (text->len == 0)
        return 0;
    if (kinf__buffer_reserve(frame, ZSTD_compressBound(text->len)) < 0)
        return kinf__error_no_memory(err);
    n = ZSTD_compress2(writer->zstd, frame->bytes, frame->size, text->bytes, text->len);
    if (ZSTD_isError(n))
        return kinf__error_no_memory(err); /* it has no other reason */
    failed = write_lengths(writer, n, text->len, err);
    text->len = 0;
    return failed < 0 ? failed : write_sealed(writer, frame->bytes, n, err);
}

int kinf__sealed_finish(struct kinf__sealed_writer *writer, struct kinf_error *err)
{
    int failed = kinf__sealed_cut(writer, err);
    uint64_t value;

    if (failed == 0)
        failed = write_lengths(writer, 0, 0, err);
    value = seal_value(writer->seal);
    if (failed == 0)
        failed = write_all(writer, &value, sizeof value, err);
    return failed < 0 ? failed : wait_for_disk(writer, err);
}

/* --- reading --- */

static int damaged(struct kinf_error *err, const char *what)
{
    return kinf__error_set(err, KINF_ERR_PARSE, "damaged: %s", what);
}

static int read_all(int fd, void *bytes, size_t len, struct kinf_error *err)
{
    char *at = bytes;

    while (len != 0) {
        ssize_t n = read(fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot read");
        if (n == 0)
            return damaged(err, "it is shorter than it was");
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static int read_sealed(struct kinf__sealed_reader *reader, void *bytes, size_t len,
                       struct kinf_error *err)
{
    int failed;

    if (len > reader->left_bytes)
        return damaged(err, "it ends too soon");
    failed = read_all(reader->fd, bytes, len, err);
    if (failed < 0)
        return failed;
    reader->left_bytes -= len;
    seal_bytes(&reader->seal, bytes, len);
    return 0;
}

int kinf__sealed_reader_init(struct kinf__sealed_reader *reader, int fd, off_t size,
                             uint32_t version, struct kinf_error *err)
{
    char magic[sizeof KINF__SEALED_MAGIC - 1];
    uint32_t number;
    int failed;

    *reader = (struct kinf__sealed_reader){ .fd = fd };
    if (size < (off_t)(sizeof magic + sizeof number + SEAL_SIZE))
        return damaged(err, "it is too short");
    reader->left_bytes = (uint64_t)size - SEAL_SIZE;
    failed = read_sealed(reader, magic, sizeof magic, err);
    if (failed == 0)
        failed = read_sealed(reader, &number, sizeof number, err);
    if (failed < 0)
        return failed;
    if (memcmp(magic, KINF__SEALED_MAGIC, sizeof magic) != 0)
        return damaged(err, "it is no state of kinformer");
    return le32toh(number) == version
               ? 0
               : kinf__error_set(err, KINF_ERR_UNSUPPORTED, "it is of format %u, this is for %u",
                                 le32toh(number), version);
}

static int check_end(struct kinf__sealed_reader *reader, struct kinf_error *err)
{
    uint64_t value, expected = seal_value(reader->seal);
    int failed;

    if (reader->left_bytes != 0)
        return damaged(err, "there is more in it than it says");
    failed = read_all(reader->fd, &value, sizeof value, err);
    return failed == 0 && value != expected ? damaged(err, "its seal is broken") : failed;
}

int kinf__sealed_next(struct kinf__sealed_reader *reader, struct kinf__sealed_section *section,
                      struct kinf_error *err)
{
    uint32_t lengths[2];
    int failed = read_sealed(reader, lengths, sizeof lengths, err);

    if (failed < 0)
        return failed;
    section->frame.len = 0;
    section->text_len = le32toh(lengths[1]);
    if (lengths[0] == 0 && lengths[1] == 0)
        return check_end(reader, err);
    if (lengths[0] == 0 || section->text_len == 0 || section->text_len > KINF__SEALED_TEXT_MAX)
        return damaged(err, "a section has no such length");
    if (le32toh(lengths[0]) > reader->left_bytes)
        return damaged(err, "it ends too soon");
    if (kinf__buffer_reserve(&section->frame, le32toh(lengths[0])) < 0)
        return kinf__error_no_memory(err);
    section->frame.len = le32toh(lengths[0]);
    return read_sealed(reader, section->frame.bytes, section->frame.len, err);
}

/* What it is to become is compared first, so that nothing is made of a few damaged bytes. */
int kinf__sealed_inflate(struct kinf__sealed_section *section, struct kinf_error *err)
{
    const struct kinf__buffer *frame = &section->frame;
    struct kinf__buffer *text = &section->text;
    size_t n;

    text->len = 0;
    if (ZSTD_getFrameContentSize(frame->bytes, frame->len) != section->text_len)
        return damaged(err, "a section is not as long as it says");
    if (section->zstd == NULL)
        section->zstd = ZSTD_createDCtx();
    if (section->zstd == NULL || kinf__buffer_reserve(text, section->text_len) < 0)
        return kinf__error_no_memory(err);
    n = ZSTD_decompressDCtx(section->zstd, text->bytes, section->text_len, frame->bytes,
                            frame->len);
    if (n != section->text_len)
        return damaged(err, ZSTD_isError(n) ? ZSTD_getErrorName(n) : "a section is too short");
    text->len = n;
    return 0;
}

void kinf__sealed_section_release(struct kinf__sealed_section *section)
{
    kinf__buffer_release(&section->frame);
    kinf__buffer_release(&section->text);
    ZSTD_freeDCtx(section->zstd);
}
