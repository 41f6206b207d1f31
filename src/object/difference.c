/*
 * Walking through two texts side by side. Neighbours: packed.c, which tells objects of one owner by the
 * first of them.
 *
 * A difference is numbers (of seven bits a byte, the lowest first) and pieces of the text:
 *
 *     COPIED { PIECE COPIED }
 *     PIECE:  LENGTH << 2 | MOVES, the piece's bytes; or WHICH << 2 | SAID | MOVES, one that was said before;
 *             then, if it MOVES, by how much the base goes on elsewhere than behind as many bytes
 *
 * Invariant: who writes and who reads remember the same pieces.
 */
#include "object/difference.h"

#include <stdint.h>
#include <string.h>

#define SAID  2u /* WHICH: 0 is the last one that was not said before then */
#define MOVES 1u

#define MAX_NUMBER_LEN 10 /* of 64 bits */
#define N_PIECES       8

/* What both texts have from a quotation mark on, where they meet again: at the next marks of both, or
 * anywhere. */
#define MIN_NEXT     8
#define MAX_REPLACED 4096
#define MIN_ANYWHERE 16
#define INDEX_BITS   11

#define STRIDE 32 /* bytes that are compared at once */

/* The pieces that were last said, each once. */
struct pieces {
    struct kinf_str at[N_PIECES];
    size_t n;
};

/* Where the base has quotation marks, by the MIN_ANYWHERE bytes from there: the first of such, as an
 * offset and 1; 0 for none. */
struct index {
    bool is_made;
    uint32_t places[1u << INDEX_BITS];
};

struct output {
    char *at;
    const char *end;
};

static void skip(struct kinf_str *text, size_t n)
{
    text->bytes += n;
    text->len -= n;
}

static uint64_t load(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof word);
    return word;
}

static bool is_stride_equal(const char *a, const char *b)
{
    uint64_t differs = 0;

    for (size_t i = 0; i < STRIDE; i += sizeof(uint64_t))
        differs |= load(a + i) ^ load(b + i);
    return differs == 0;
}

/* Most of a text is what the other one says, and is passed by in large steps. */
static size_t count_equal(struct kinf_str a, struct kinf_str b)
{
    size_t n_max = a.len < b.len ? a.len : b.len;
    size_t n = 0;

    while (n + STRIDE <= n_max && is_stride_equal(a.bytes + n, b.bytes + n))
        n += STRIDE;
    while (n + sizeof(uint64_t) <= n_max && load(a.bytes + n) == load(b.bytes + n))
        n += sizeof(uint64_t);
    while (n < n_max && a.bytes[n] == b.bytes[n])
        n++;
    return n;
}

/* --- pieces --- */

static struct kinf_str *nth_last(struct pieces *pieces, size_t n)
{
    return &pieces->at[(pieces->n - 1 - n) % N_PIECES];
}

static size_t n_remembered(const struct pieces *pieces)
{
    return pieces->n < N_PIECES ? pieces->n : N_PIECES;
}

static void remember(struct pieces *pieces, struct kinf_str piece)
{
    pieces->at[pieces->n++ % N_PIECES] = piece;
}

static bool find_piece(struct pieces *pieces, struct kinf_str piece, size_t *ret_n)
{
    for (*ret_n = 0; *ret_n < n_remembered(pieces); ++*ret_n)
        if (kinf_str_equal(*nth_last(pieces, *ret_n), piece))
            return true;
    return false;
}

/* --- where they meet again --- */

static bool go_to_mark(struct kinf_str *text, size_t n_max)
{
    size_t n = text->len < n_max ? text->len : n_max;
    const char *mark = n != 0 ? memchr(text->bytes, '"', n) : NULL;

    if (mark == NULL)
        return false;
    skip(text, (size_t)(mark - text->bytes));
    return true;
}

/* A value took the place of another, which is no long one: it is passed by each time. */
static bool meet_at_next_marks(struct kinf_str *text, struct kinf_str *base)
{
    return go_to_mark(text, text->len) && go_to_mark(base, MAX_REPLACED) && text->len >= MIN_NEXT &&
           base->len >= MIN_NEXT && load(text->bytes) == load(base->bytes);
}

static uint32_t *place_of(struct index *index, const char *at)
{
    uint64_t hash = load(at) * 0x9e3779b97f4a7c15u ^ load(at + 8) * 0xc2b2ae3d27d4eb4fu;

    return &index->places[hash >> (64 - INDEX_BITS)];
}

/* Of what there is behind the first parting: what comes before that was met. */
static void make_index(struct index *index, struct kinf_str base, const char *parting)
{
    struct kinf_str rest = { parting, (size_t)(base.bytes + base.len - parting) };

    memset(index->places, 0, sizeof index->places);
    index->is_made = true;
    for (; go_to_mark(&rest, rest.len) && rest.len >= MIN_ANYWHERE; skip(&rest, 1)) {
        uint32_t *place = place_of(index, rest.bytes);

        if (*place == 0)
            *place = (uint32_t)(rest.bytes - base.bytes) + 1;
    }
}

/* Something was added, left out, or stands elsewhere. */
static bool meet_anywhere(struct index *index, struct kinf_str *text, struct kinf_str base,
                          struct kinf_str *ret_base)
{
    for (; go_to_mark(text, text->len) && text->len >= MIN_ANYWHERE; skip(text, 1)) {
        size_t place = *place_of(index, text->bytes);

        if (place != 0 && memcmp(base.bytes + place - 1, text->bytes, MIN_ANYWHERE) == 0) {
            *ret_base = base;
            skip(ret_base, place - 1);
            return true;
        }
    }
    return false;
}

/* --- writing --- */

static bool put_number(struct output *output, uint64_t number)
{
    if (output->end - output->at < MAX_NUMBER_LEN)
        return false;
    for (; number >= 0x80; number >>= 7)
        *output->at++ = (char)(number | 0x80);
    *output->at++ = (char)number;
    return true;
}

static bool put_bytes(struct output *output, struct kinf_str bytes)
{
    if ((size_t)(output->end - output->at) < bytes.len)
        return false;
    if (bytes.len != 0)
        memcpy(output->at, bytes.bytes, bytes.len);
    output->at += bytes.len;
    return true;
}

/* Small ones of either sign become small numbers. */
static uint64_t fold(int64_t move)
{
    return move < 0 ? ~((uint64_t)move << 1) : (uint64_t)move << 1;
}

static int64_t unfold(uint64_t number)
{
    return (int64_t)(number & 1 ? ~(number >> 1) : number >> 1);
}

static bool put_piece(struct output *output, struct pieces *pieces, struct kinf_str piece,
                      int64_t move)
{
    uint64_t moves = move != 0 ? MOVES : 0;
    size_t n;

    if (find_piece(pieces, piece, &n)) {
        if (!put_number(output, n << 2 | SAID | moves))
            return false;
    } else {
        if (!put_number(output, piece.len << 2 | moves) || !put_bytes(output, piece))
            return false;
        remember(pieces, piece);
    }
    return move == 0 || put_number(output, fold(move));
}

/* Where what stands between is over in both texts: it is all that is left, if they meet nowhere. */
static void meet(struct index *index, struct kinf_str base, struct kinf_str *text,
                 struct kinf_str *rest)
{
    struct kinf_str next = *rest;

    if (!meet_at_next_marks(text, &next)) {
        if (!index->is_made)
            make_index(index, base, rest->bytes);
        if (!meet_anywhere(index, text, base, &next)) {
            skip(text, text->len);
            next = *rest;
        }
    }
    *rest = next;
}

size_t kinf__difference_write(struct kinf_str text, struct kinf_str base, char *buf, size_t room)
{
    struct output output = { buf, buf + room };
    struct pieces pieces = { .n = 0 };
    struct kinf_str rest = base;
    struct index index;

    index.is_made = false;
    for (;;) {
        size_t n_equal = count_equal(text, rest);
        struct kinf_str piece, parted;

        skip(&text, n_equal);
        skip(&rest, n_equal);
        if (!put_number(&output, n_equal))
            return 0;
        if (text.len == 0)
            return (size_t)(output.at - buf);
        piece = text;
        parted = rest;
        meet(&index, base, &text, &rest);
        piece.len -= text.len;
        if (!put_piece(&output, &pieces, piece, rest.bytes - parted.bytes - (ptrdiff_t)piece.len))
            return 0;
    }
}

/* --- reading --- */

static bool take_number(struct kinf_str *rest, uint64_t *ret_number)
{
    unsigned char byte;

    *ret_number = 0;
    for (unsigned shift = 0; shift < 64 && rest->len != 0; shift += 7) {
        byte = (unsigned char)*rest->bytes;
        skip(rest, 1);
        *ret_number |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return true;
    }
    return false;
}

static bool take_piece(struct kinf_str *rest, struct pieces *pieces, uint64_t head,
                       struct kinf_str *ret_piece)
{
    uint64_t n = head >> 2;

    if ((head & SAID) != 0) {
        if (n >= n_remembered(pieces))
            return false;
        *ret_piece = *nth_last(pieces, n);
        return true;
    }
    if (n > rest->len)
        return false;
    *ret_piece = (struct kinf_str){ rest->bytes, n };
    remember(pieces, *ret_piece);
    skip(rest, n);
    return true;
}

static bool append_copied(struct output *output, struct kinf_str base, uint64_t place, uint64_t n)
{
    return n == 0 || (place <= base.len && n <= base.len - place &&
                      put_bytes(output, (struct kinf_str){ base.bytes + place, n }));
}

bool kinf__difference_read(struct kinf_str difference, struct kinf_str base, char *buf, size_t len)
{
    struct output output = { buf, buf + len };
    struct pieces pieces = { .n = 0 };
    uint64_t place = 0;

    for (;;) {
        uint64_t n_copied, head, move = 0;
        struct kinf_str piece;

        if (!take_number(&difference, &n_copied) || !append_copied(&output, base, place, n_copied))
            return false;
        if (difference.len == 0)
            return output.at == output.end;
        if (!take_number(&difference, &head) || !take_piece(&difference, &pieces, head, &piece) ||
            !put_bytes(&output, piece) || ((head & MOVES) != 0 && !take_number(&difference, &move)))
            return false;
        place += n_copied + piece.len + (uint64_t)unfold(move);
    }
}
