/*
 * Texts in a file, compressed and sealed: whoever reads them knows at the end that they are what was
 * written, and all of it.
 *
 * The file: 8 bytes that say what it is, a version (32 bits), sections, and 64 bits over everything
 * before them, by which no flipped byte goes unnoticed. A section: the lengths of its frame and of its
 * text (32 bits each), and a zstd frame with its checksum; two zeros stand behind the last one. Numbers
 * are little-endian. Sections are inflated by themselves, so several threads may do it.
 *
 * What is read counts only when kinf__sealed_next() has come to the end.
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
/* Of the text of a section. */
#define KINF__SEALED_TEXT_MAX ((size_t)256 << 20)

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
    struct kinf__buffer text; /* of the section so far */
    struct kinf__buffer frame;
    uint64_t written_bytes;
    uint64_t synced_bytes; /* of them, those that are on the disk */
};

/* Release what was initialized, and what failed to be. Errors: KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__sealed_writer_init(struct kinf__sealed_writer *writer, int fd,
                                             uint32_t version, struct kinf_error *err);
void kinf__sealed_writer_release(struct kinf__sealed_writer *writer);
/* Errors: KINF_ERR_LIMIT besides, for a section above KINF__SEALED_TEXT_MAX. */
KINF_MUST_CHECK int kinf__sealed_write(struct kinf__sealed_writer *writer, const void *bytes,
                                       size_t len, struct kinf_error *err);
/* What comes next is in another section. */
KINF_MUST_CHECK int kinf__sealed_cut(struct kinf__sealed_writer *writer, struct kinf_error *err);
/* Writes the rest and the seal; the file's bytes are on the disk then. */
KINF_MUST_CHECK int kinf__sealed_finish(struct kinf__sealed_writer *writer, struct kinf_error *err);

struct kinf__sealed_reader {
    int fd;              /* borrowed */
    uint64_t left_bytes; /* of the file, in front of the seal */
    struct kinf__seal seal;
};

/* As it is in the file, and once it is inflated. All zero is none. */
struct kinf__sealed_section {
    struct kinf__buffer frame;
    struct kinf__buffer text;
    size_t text_len;          /* 0: there is no section any more */
    struct ZSTD_DCtx_s *zstd; /* for this one and the next ones */
};

/* `size` is the file's. Errors: KINF_ERR_PARSE (no such file, or damaged), KINF_ERR_UNSUPPORTED
 * (another version), KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__sealed_reader_init(struct kinf__sealed_reader *reader, int fd, off_t size,
                                             uint32_t version, struct kinf_error *err);
/* The next section, not inflated, in place of what is there. Behind the last one: there is nothing
 * more, and all was as it was written. Errors: as above, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__sealed_next(struct kinf__sealed_reader *reader,
                                      struct kinf__sealed_section *section, struct kinf_error *err);

/* Writes its text. Errors: KINF_ERR_PARSE, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__sealed_inflate(struct kinf__sealed_section *section,
                                         struct kinf_error *err);
void kinf__sealed_section_release(struct kinf__sealed_section *section);

#endif
