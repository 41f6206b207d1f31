/*
 * Scanning containers without white space, as kube-apiserver sends them, by blocks: what may stand
 * beside what is checked for all bytes of a block at once, with a mask of 64 bits for each kind of
 * byte, instead of token by token, which the processor cannot foresee. Neighbours: scan.c, which
 * calls this and checks numbers, literals, escapes and what is not ASCII; block.h finds bytes.
 * Invariant: what this does not understand is left to scan.c from its start, so errors and their
 * offsets come from there, except that of a text that ends too early.
 *
 * Pods take half of the time, text that is mostly not ASCII a third more, since each of its runs is
 * scanned by itself. Without AVX2 the masks cost more than they save.
 */
#include "json/scan_priv.h"

#include <string.h>

#include "json/block.h"

#if defined(KINF__JSON_AVX2)

#define INLINE KINF__JSON_TARGET_AVX2 KINF__ALWAYS_INLINE

/* Containers inside each other, a bit each. */
#define MAX_DEPTH 62

/* Places in a block, a bit each; from `opens` on, outside of strings. */
struct places {
    uint64_t keep;    /* those in the text, and not behind the value */
    uint64_t quotes;  /* around strings */
    uint64_t strings; /* the opening quote and the text of each */
    uint64_t odd;     /* in strings, what scan.c looks at */
    uint64_t escaped;
    uint64_t opens;
    uint64_t closes;
    uint64_t squares; /* brackets of arrays */
    uint64_t colons;
    uint64_t commas;
    uint64_t plain;     /* all else */
    uint64_t in_object; /* where the innermost container is one */
};

/* What a block needs to know of those in front. */
struct compact {
    struct kinf__json_scanner *scanner;
    const uint8_t *checked; /* odd places in front of this are */
    uint64_t escaped;       /* 1: the next byte is */
    uint64_t in_string;     /* all ones: the next byte is */
    uint64_t in_key;        /* 1: this string is a key */
    uint64_t objects;       /* which of the containers around are, the innermost one lowest */
    unsigned depth;
    unsigned max_depth;
    /* Of the last block, for what stands behind its last byte. */
    uint64_t marks, opens, plain, before_keys, key_ends;
};

INLINE uint64_t find(const uint8_t *block, char byte)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)block);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(block + 32));

    return kinf__json_find_bytes_avx2(low, high, byte);
}

/* Control bytes and what is not ASCII. */
INLINE uint64_t find_odd(const uint8_t *block)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)block);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(block + 32));
    const __m256i space = _mm256_set1_epi8(' ');

    return (unsigned)_mm256_movemask_epi8(_mm256_cmpgt_epi8(space, low)) |
           (uint64_t)(unsigned)_mm256_movemask_epi8(_mm256_cmpgt_epi8(space, high)) << 32;
}

/* The places behind those in `bits`. */
INLINE uint64_t behind(uint64_t bits, uint64_t *last)
{
    uint64_t places = bits << 1 | *last >> 63;

    *last = bits;
    return places;
}

/* Returns false if the whole block is text of a string, and plain. What the last block left for the
 * next one stays then: it ended inside the string, so only whether that is a key is of interest. */
INLINE bool read_strings(struct compact *compact, const uint8_t *block, struct places *places)
{
    const uint64_t quotes = find(block, '"'), backslashes = find(block, '\\');

    places->odd = find_odd(block);
    places->escaped = 0;
    if ((places->odd | backslashes | compact->escaped) != 0) {
        places->escaped = kinf__json_places_escaped(backslashes, &compact->escaped);
        places->odd |= places->escaped & ~quotes & ~backslashes;
    } else if (quotes == 0 && compact->in_string != 0) {
        return false;
    }
    places->quotes = quotes & ~places->escaped;
    places->strings = kinf__json_fill_avx2(places->quotes) ^ compact->in_string;
    places->odd &= places->strings;
    compact->in_string = -(places->strings >> 63);
    return true;
}

INLINE void read_structure(const uint8_t *block, struct places *places)
{
    const uint64_t outside = ~places->strings;
    uint64_t opens, closes;

    places->opens = find(block, '{') & outside;
    places->closes = find(block, '}') & outside;
    places->colons = find(block, ':') & outside;
    places->commas = find(block, ',') & outside;
    places->plain = outside & ~(places->quotes | places->opens | places->closes | places->colons |
                                places->commas);
    places->squares = 0;
    if (places->plain != 0) {
        opens = find(block, '[') & places->plain;
        closes = find(block, ']') & places->plain;
        places->squares = opens | closes;
        places->opens |= opens;
        places->closes |= closes;
        places->plain ^= places->squares;
    }
}

/* Goes from bracket to bracket; those of a kind side by side change nothing. Without branches that
 * depend on which bracket it is. Returns false if one does not match. */
INLINE bool follow_brackets(struct compact *compact, struct places *places)
{
    const uint64_t opens = places->opens, closes = places->closes, squares = places->squares;
    const uint64_t value = compact->depth == 0; /* its bracket is the first byte */
    const uint64_t empties = opens & closes >> 1 & ~(squares ^ squares >> 1) & ~value;
    uint64_t brackets = (opens | closes) & ~(empties | empties << 1), wrong = 0;
    uint64_t objects = compact->objects, bit, is_object, is_open; /* all ones, or 0 */

    places->in_object = -(objects & 1);
    for (; brackets != 0; brackets ^= bit) {
        bit = brackets & -brackets;
        is_object = (squares & bit) == 0;
        is_open = -(uint64_t)((opens & bit) != 0);
        wrong |= (objects ^ is_object) & ~is_open;
        objects = ((objects << 1 | is_object) & is_open) | (objects >> 1 & ~is_open);
        compact->depth += (unsigned)(is_open & 2) - 1;
        if (compact->depth == 0) {
            places->keep &= bit ^ (bit - 1);
            break;
        }
        places->in_object = (places->in_object & (bit - 1)) | (-(objects & 1) & -bit);
    }
    compact->objects = objects;
    return (wrong & 1) == 0;
}

/* Where the block's brackets lead. Returns false if one does not match, or it may be too deep. */
INLINE bool read_brackets(struct compact *compact, struct places *places)
{
    const unsigned n_opens = kinf__json_count_avx2(places->opens);
    const unsigned n_closes = kinf__json_count_avx2(places->closes);

    if (compact->depth + n_opens > compact->max_depth)
        return false;
    if (places->squares != 0 || n_closes >= (unsigned)__builtin_ctzll(~compact->objects))
        return follow_brackets(compact, places);
    /* There are objects only, and the one around all of them stays open. */
    places->in_object = ~UINT64_C(0);
    compact->objects = ((compact->objects + 1) << n_opens >> n_closes) - 1;
    compact->depth += n_opens - n_closes;
    return true;
}

/* The rules: behind an opening bracket, a colon or a comma, and only there, starts a key or a value,
 * but behind an opening bracket a closing one may stand as well; what starts behind the opening
 * bracket of an object or a comma in it is a string; and behind the end of this string, and only
 * there, is a colon. */
INLINE bool check_neighbours(struct compact *compact, const struct places *places, uint64_t starts)
{
    const uint64_t strings = places->quotes & places->strings;
    const uint64_t marks = places->opens | places->colons | places->commas;
    const uint64_t before_keys =
        (places->opens & ~places->squares) | (places->commas & places->in_object);
    const uint64_t keys = behind(before_keys, &compact->before_keys);
    uint64_t wrong = behind(marks, &compact->marks) ^ (strings | places->opens | starts), sum;

    wrong &= ~(places->closes & behind(places->opens, &compact->opens));
    wrong |= keys & ~(strings | places->closes);
    /* Adding its first place to a string carries to its closing quote. */
    compact->in_key =
        __builtin_add_overflow(places->strings, (keys & strings) | compact->in_key, &sum);
    wrong |= places->colons ^ behind(sum & places->quotes & ~places->strings, &compact->key_ends);
    return (wrong & places->keep) == 0;
}

static bool check_odd(struct compact *compact, const uint8_t *at, uint64_t odd, uint64_t escaped)
{
    unsigned place;

    while (compact->checked - at < KINF__JSON_BLOCK) {
        if (compact->checked > at)
            odd &= ~UINT64_C(0) << (compact->checked - at);
        if (odd == 0)
            break;
        place = (unsigned)__builtin_ctzll(odd);
        compact->checked =
            kinf__json_scan_special(compact->scanner, at + place - (escaped >> place & 1));
        if (compact->checked == NULL)
            return false;
    }
    return true;
}

static bool check_plain(struct kinf__json_scanner *scanner, const uint8_t *at, uint64_t starts)
{
    const uint8_t *end;

    for (; starts != 0; starts &= starts - 1) {
        end = kinf__json_scan_plain_value(scanner, at + __builtin_ctzll(starts));
        if (end == NULL || (end < scanner->end && *end != ',' && (*end | 0x20) != '}'))
            return false;
    }
    return true;
}

/* `at` is the block's place in the text. */
INLINE bool check_block(struct compact *compact, const uint8_t *block, const uint8_t *at,
                        struct places *places)
{
    uint64_t starts;

    if (!read_strings(compact, block, places))
        return true;
    read_structure(block, places);
    if (!read_brackets(compact, places))
        return false;
    starts = places->plain & ~behind(places->plain, &compact->plain);
    if (!check_neighbours(compact, places, starts))
        return false;
    places->odd &= places->keep;
    starts &= places->keep;
    return (places->odd == 0 || check_odd(compact, at, places->odd, places->escaped)) &&
           (starts == 0 || check_plain(compact->scanner, at, starts));
}

KINF__JSON_TARGET_AVX2 static bool scan_blocks(struct kinf__json_scanner *scanner,
                                               const uint8_t *at, unsigned depth,
                                               const uint8_t **ret_behind)
{
    struct compact compact = {
        .scanner = scanner,
        .checked = at,
        .marks = UINT64_C(1) << 63, /* the value is to start at once */
        .max_depth =
            scanner->max_depth - depth < MAX_DEPTH ? scanner->max_depth - depth : MAX_DEPTH,
    };
    uint8_t last[KINF__JSON_BLOCK];
    const uint8_t *block;
    size_t left, len;

    for (left = (size_t)(scanner->end - at); left != 0; left -= len, at += len) {
        struct places places = { .keep = ~UINT64_C(0) };

        block = at;
        len = KINF__JSON_BLOCK;
        if (KINF__UNLIKELY(left < len)) {
            len = left;
            memset(last, 0, sizeof last);
            block = memcpy(last, at, len);
            places.keep = ~(~UINT64_C(0) << len);
        }
        if (!check_block(&compact, block, at, &places))
            return false;
        if (compact.depth == 0) {
            *ret_behind = at + (KINF__JSON_BLOCK - __builtin_clzll(places.keep));
            return true;
        }
    }
    *ret_behind = kinf__json_scan_fail(scanner, KINF_ERR_TRUNCATED, scanner->end);
    return true;
}

#endif

bool kinf__json_scan_compact(struct kinf__json_scanner *scanner, const uint8_t *at, unsigned depth,
                             const uint8_t **ret_behind)
{
#if defined(KINF__JSON_AVX2)
    return kinf__json_has_avx2() && scan_blocks(scanner, at, depth, ret_behind);
#else
    (void)scanner, (void)at, (void)depth, (void)ret_behind;
    return false;
#endif
}
