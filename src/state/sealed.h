/*
 * Bytes in a file, compressed and sealed: whoever reads them knows at the end that they are what was
 * written, and all of it.
 *
 * The file: 8 bytes that say what it is, a version (32 bits), one zstd frame with its checksum, and
 * 64 bits over everything before them, by which no flipped byte goes unnoticed, the frame's own
 * header included. Numbers are little-endian.
 *
 * What is read counts only when kinf__sealed_end() has said so. Neither side holds more than a piece
 * of some 100 kB, and the reader the longest run of bytes that it was asked for.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_STATE_SEALED_H
#define KINF_STATE_SEALED_H

#include <stdint.h>
#include <sys/types.h>

#include <kinformer/error.h>

#include "base/buffer.h"

#define KINF__SEALED_MAGIC "KINFSTAT"

/* zstd's, which no other folder sees. */
struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

/* Eight bytes at a time; a step loses nothing, so one byte that differs differs in the end. */
struct kinf__seal {
    uint64_t value;
    uint64_t word; /* bytes that wait for the eighth */
    unsigned n_waiting;
};

struct kinf__sealed_writer {
    int fd; /* borrowed */
    struct ZSTD_CCtx_s *zstd;
    struct kinf__seal seal;
    char *piece;
    size_t piece_size;
    uint64_t written_bytes;
    uint64_t synced_bytes; /* of them, those that are on the disk */
};

/* Release what was initialized, and what failed to be. Errors: KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__sealed_writer_init(struct kinf__sealed_writer *writer, int fd,
                                             uint32_t version, struct kinf_error *err);
void kinf__sealed_writer_release(struct kinf__sealed_writer *writer);
KINF_MUST_CHECK int kinf__sealed_write(struct kinf__sealed_writer *writer, const void *bytes,
                                       size_t len, struct kinf_error *err);
/* Writes the rest and the seal; the file's bytes are on the disk then. */
KINF_MUST_CHECK int kinf__sealed_finish(struct kinf__sealed_writer *writer, struct kinf_error *err);

struct kinf__sealed_reader {
    int fd;              /* borrowed */
    uint64_t left_bytes; /* of the file, in front of the seal */
    struct ZSTD_DCtx_s *zstd;
    struct kinf__seal seal;
    char *piece; /* as it is in the file */
    size_t piece_size;
    size_t piece_len;
    size_t piece_at;
    struct kinf__buffer text; /* as it was written; from text_at on it was not taken yet */
    size_t text_at;
    int is_frame_over;
};

/* `size` is the file's. Errors: KINF_ERR_PARSE (no such file, or damaged), KINF_ERR_UNSUPPORTED
 * (another version), KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__sealed_reader_init(struct kinf__sealed_reader *reader, int fd, off_t size,
                                             uint32_t version, struct kinf_error *err);
void kinf__sealed_reader_release(struct kinf__sealed_reader *reader);
/* The next `len` bytes, the reader's until the next call. Errors: as above. */
KINF_MUST_CHECK int kinf__sealed_read(struct kinf__sealed_reader *reader, size_t len,
                                      const char **ret_bytes, struct kinf_error *err);
/* There is nothing more, and all was as it was written. Errors: as above. */
KINF_MUST_CHECK int kinf__sealed_end(struct kinf__sealed_reader *reader, struct kinf_error *err);

#endif
