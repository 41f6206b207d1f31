/*
 * Compressing and sealing. Neighbours: state_file.c says what the bytes mean. Invariant of the
 * reader: each byte of the file that reached zstd has gone into the seal.
 */
#include "state/sealed.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <zstd.h>

#include "base/error.h"

#define LEVEL     1 /* others save little and cost much: the state is written every few minutes */
#define SEAL_SIZE 8
/* What is on its way to the disk at most, so that nobody waits long for the rest of it. */
#define UNSYNCED_MAX ((uint64_t)8 << 20)
#define HEAD_SIZE    (sizeof KINF__SEALED_MAGIC - 1 + sizeof(uint32_t))

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

    *writer = (struct kinf__sealed_writer){ .fd = fd, .piece_size = ZSTD_CStreamOutSize() };
    writer->piece = malloc(writer->piece_size);
    writer->zstd = ZSTD_createCCtx();
    if (writer->piece == NULL || writer->zstd == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_checksumFlag, 1)))
        return kinf__error_no_memory(err);
    failed = write_sealed(writer, KINF__SEALED_MAGIC, sizeof KINF__SEALED_MAGIC - 1, err);
    return failed < 0 ? failed : write_sealed(writer, &number, sizeof number, err);
}

void kinf__sealed_writer_release(struct kinf__sealed_writer *writer)
{
    free(writer->piece);
    ZSTD_freeCCtx(writer->zstd);
}

/* Until zstd has taken everything, or at the end has given everything. */
static int compress(struct kinf__sealed_writer *writer, const void *bytes, size_t len,
                    ZSTD_EndDirective how, struct kinf_error *err)
{
    ZSTD_inBuffer in = { bytes, len, 0 };
    size_t left;
    int failed = 0;

    do {
        ZSTD_outBuffer out = { writer->piece, writer->piece_size, 0 };

        left = ZSTD_compressStream2(writer->zstd, &out, &in, how);
        if (ZSTD_isError(left))
            return kinf__error_no_memory(err); /* it has no other reason */
        failed = write_sealed(writer, writer->piece, out.pos, err);
    } while (failed == 0 && (how == ZSTD_e_end ? left != 0 : in.pos < in.size));
    return failed;
}

int kinf__sealed_write(struct kinf__sealed_writer *writer, const void *bytes, size_t len,
                       struct kinf_error *err)
{
    return compress(writer, bytes, len, ZSTD_e_continue, err);
}

int kinf__sealed_finish(struct kinf__sealed_writer *writer, struct kinf_error *err)
{
    int failed = compress(writer, NULL, 0, ZSTD_e_end, err);
    uint64_t value = seal_value(writer->seal);

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

static int read_head(struct kinf__sealed_reader *reader, uint32_t version, struct kinf_error *err)
{
    char head[HEAD_SIZE];
    uint32_t number;
    int failed = read_all(reader->fd, head, sizeof head, err);

    if (failed < 0)
        return failed;
    if (memcmp(head, KINF__SEALED_MAGIC, sizeof KINF__SEALED_MAGIC - 1) != 0)
        return damaged(err, "it is no state of kinformer");
    memcpy(&number, head + sizeof KINF__SEALED_MAGIC - 1, sizeof number);
    if (le32toh(number) != version)
        return kinf__error_set(err, KINF_ERR_UNSUPPORTED, "it is of format %u, this is for %u",
                               le32toh(number), version);
    seal_bytes(&reader->seal, head, sizeof head);
    return 0;
}

int kinf__sealed_reader_init(struct kinf__sealed_reader *reader, int fd, off_t size,
                             uint32_t version, struct kinf_error *err)
{
    *reader = (struct kinf__sealed_reader){ .fd = fd, .piece_size = ZSTD_DStreamInSize() };
    if (size < (off_t)(HEAD_SIZE + SEAL_SIZE))
        return damaged(err, "it is too short");
    reader->left_bytes = (uint64_t)size - HEAD_SIZE - SEAL_SIZE;
    reader->piece = malloc(reader->piece_size);
    reader->zstd = ZSTD_createDCtx();
    if (reader->piece == NULL || reader->zstd == NULL)
        return kinf__error_no_memory(err);
    return read_head(reader, version, err);
}

void kinf__sealed_reader_release(struct kinf__sealed_reader *reader)
{
    free(reader->piece);
    ZSTD_freeDCtx(reader->zstd);
    kinf__buffer_release(&reader->text);
}

static int next_piece(struct kinf__sealed_reader *reader, struct kinf_error *err)
{
    size_t len =
        reader->left_bytes < reader->piece_size ? (size_t)reader->left_bytes : reader->piece_size;
    int failed;

    if (len == 0)
        return damaged(err, "it ends too soon");
    failed = read_all(reader->fd, reader->piece, len, err);
    if (failed < 0)
        return failed;
    seal_bytes(&reader->seal, reader->piece, len);
    reader->left_bytes -= len;
    reader->piece_len = len;
    reader->piece_at = 0;
    return 0;
}

/* Some more text behind what is there. */
static int inflate_some(struct kinf__sealed_reader *reader, struct kinf_error *err)
{
    struct kinf__buffer *text = &reader->text;
    ZSTD_inBuffer in = { reader->piece, reader->piece_len, reader->piece_at };
    ZSTD_outBuffer out;
    size_t hint;

    if (reader->is_frame_over)
        return damaged(err, "there is less in it than it says");
    if (kinf__buffer_reserve(text, ZSTD_DStreamOutSize()) < 0)
        return kinf__error_no_memory(err);
    out = (ZSTD_outBuffer){ text->bytes + text->len, text->size - text->len, 0 };
    hint = ZSTD_decompressStream(reader->zstd, &out, &in);
    if (ZSTD_isError(hint))
        return damaged(err, ZSTD_getErrorName(hint));
    reader->piece_at = in.pos;
    reader->is_frame_over = hint == 0;
    text->len += out.pos;
    return out.pos == 0 && in.pos == in.size && !reader->is_frame_over ? next_piece(reader, err)
                                                                       : 0;
}

int kinf__sealed_read(struct kinf__sealed_reader *reader, size_t len, const char **ret_bytes,
                      struct kinf_error *err)
{
    struct kinf__buffer *text = &reader->text;
    int failed = 0;

    if (text->len - reader->text_at < len) {
        kinf__buffer_consume(text, reader->text_at);
        reader->text_at = 0;
    }
    while (failed == 0 && text->len - reader->text_at < len)
        failed = inflate_some(reader, err);
    if (failed < 0)
        return failed;
    *ret_bytes = text->bytes + reader->text_at;
    reader->text_at += len;
    return 0;
}

static int check_seal(struct kinf__sealed_reader *reader, struct kinf_error *err)
{
    uint64_t value, expected = seal_value(reader->seal);
    int failed = read_all(reader->fd, &value, sizeof value, err);

    return failed == 0 && value != expected ? damaged(err, "its seal is broken") : failed;
}

int kinf__sealed_end(struct kinf__sealed_reader *reader, struct kinf_error *err)
{
    int failed = 0;

    while (failed == 0 && !reader->is_frame_over && reader->text_at == reader->text.len)
        failed = inflate_some(reader, err);
    if (failed < 0)
        return failed;
    if (reader->text_at != reader->text.len || reader->piece_at != reader->piece_len ||
        reader->left_bytes != 0)
        return damaged(err, "there is more in it than it says");
    return check_seal(reader, err);
}
