/*
 * Which bytes of a block need attention inside of a string, and where its quotes and brackets are:
 * 16 bytes at a time with SSE2 or NEON, else 8 in a word. Walking and scanning have one more way, for
 * processors with AVX2, which is chosen at run time. KINF__JSON_PLAIN_C chooses plain C everywhere; it is
 * always there, so that tests compare.
 *
 * Threads: any thread.
 */
#ifndef KINF_JSON_BLOCK_H
#define KINF_JSON_BLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

#if defined(KINF__JSON_PLAIN_C)
#elif defined(__SSE2__)
#define KINF__JSON_SSE2
#include <immintrin.h>
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define KINF__JSON_NEON
#include <arm_neon.h>
#endif
#if defined(KINF__JSON_SSE2) && defined(__x86_64__)
#define KINF__JSON_AVX2
#endif

/* One bit a byte of a block. */
#define KINF__JSON_BLOCK 64

/* The high bit of each byte that is zero, and nothing else. */
static inline uint64_t kinf__json_zero_bytes(uint64_t word)
{
    const uint64_t lows = UINT64_C(0x7f7f7f7f7f7f7f7f);

    return ~(((word & lows) + lows) | word | lows);
}

/* One bit a byte, the first byte's lowest, from the high bits of a word. */
static inline unsigned kinf__json_gather(uint64_t highs)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    highs = __builtin_bswap64(highs);
#endif
    return (unsigned)((highs >> 7) * UINT64_C(0x0102040810204080) >> 56);
}

/* A bit for each byte that does not go on with a string by itself: control bytes, the quote, the
 * backslash, and what is not ASCII. */
static inline uint64_t kinf__json_specials_plain_c(const uint8_t block[KINF__JSON_BLOCK])
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;
    uint64_t specials = 0, word, printing;

    for (unsigned i = 0; i < KINF__JSON_BLOCK; i += sizeof word) {
        memcpy(&word, block + i, sizeof word);
        printing = (word & ~highs) + ones * (0x80 - 0x20);
        specials |= (uint64_t)kinf__json_gather((word | ~printing |
                                                 kinf__json_zero_bytes(word ^ ones * '"') |
                                                 kinf__json_zero_bytes(word ^ ones * '\\')) &
                                                highs)
                    << i;
    }
    return specials;
}

/* A bit for each byte that is `wanted` once the bits of `with` are set in it. */
static inline uint64_t kinf__json_find_bytes_plain_c(const uint8_t block[KINF__JSON_BLOCK],
                                                     uint8_t with, uint8_t wanted)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t found = 0, word;

    for (unsigned i = 0; i < KINF__JSON_BLOCK; i += sizeof word) {
        memcpy(&word, block + i, sizeof word);
        word = (word | ones * with) ^ ones * wanted;
        found |= (uint64_t)kinf__json_gather(kinf__json_zero_bytes(word)) << i;
    }
    return found;
}

#if defined(KINF__JSON_SSE2)

static inline uint64_t kinf__json_specials_16(const uint8_t *bytes)
{
    const __m128i block = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    /* The comparison is signed, so it finds the bytes from 0x80 as well. */
    const __m128i below = _mm_cmplt_epi8(block, _mm_set1_epi8(0x20));
    const __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
    const __m128i backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), below));
}

static inline uint64_t kinf__json_specials(const uint8_t block[KINF__JSON_BLOCK])
{
    return kinf__json_specials_16(block) | kinf__json_specials_16(block + 16) << 16 |
           kinf__json_specials_16(block + 32) << 32 | kinf__json_specials_16(block + 48) << 48;
}

static inline uint64_t kinf__json_find_bytes_16(const uint8_t *bytes, uint8_t with, uint8_t wanted)
{
    const __m128i block = _mm_or_si128(_mm_loadu_si128((const __m128i *)(const void *)bytes),
                                       _mm_set1_epi8((char)with));

    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8((char)wanted)));
}

static inline uint64_t kinf__json_find_bytes(const uint8_t block[KINF__JSON_BLOCK], uint8_t with,
                                             uint8_t wanted)
{
    return kinf__json_find_bytes_16(block, with, wanted) |
           kinf__json_find_bytes_16(block + 16, with, wanted) << 16 |
           kinf__json_find_bytes_16(block + 32, with, wanted) << 32 |
           kinf__json_find_bytes_16(block + 48, with, wanted) << 48;
}

#elif defined(KINF__JSON_NEON)

/* From bytes that are all ones or 0 to bits: a byte's own one, eight different ones in turn. */
static inline uint8x16_t kinf__json_bits_16(uint8x16_t bytes)
{
    static const uint8_t bits[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };

    return vandq_u8(bytes, vld1q_u8(bits));
}

/* Adding neighbours three times gathers each eight bytes' bits in one byte. */
static inline uint64_t kinf__json_gather_64(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d)
{
    const uint8x16_t half = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));

    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(half, half)), 0);
}

static inline uint8x16_t kinf__json_specials_16(const uint8_t *bytes)
{
    const uint8x16_t block = vld1q_u8(bytes);
    /* The comparison is signed, so it finds the bytes from 0x80 as well. */
    const uint8x16_t below = vcltq_s8(vreinterpretq_s8_u8(block), vdupq_n_s8(0x20));
    const uint8x16_t quote = vceqq_u8(block, vdupq_n_u8('"'));
    const uint8x16_t backslash = vceqq_u8(block, vdupq_n_u8('\\'));

    return kinf__json_bits_16(vorrq_u8(vorrq_u8(quote, backslash), below));
}

static inline uint64_t kinf__json_specials(const uint8_t block[KINF__JSON_BLOCK])
{
    return kinf__json_gather_64(kinf__json_specials_16(block), kinf__json_specials_16(block + 16),
                                kinf__json_specials_16(block + 32),
                                kinf__json_specials_16(block + 48));
}

static inline uint8x16_t kinf__json_find_bytes_16(const uint8_t *bytes, uint8_t with,
                                                  uint8_t wanted)
{
    const uint8x16_t block = vorrq_u8(vld1q_u8(bytes), vdupq_n_u8(with));

    return kinf__json_bits_16(vceqq_u8(block, vdupq_n_u8(wanted)));
}

static inline uint64_t kinf__json_find_bytes(const uint8_t block[KINF__JSON_BLOCK], uint8_t with,
                                             uint8_t wanted)
{
    return kinf__json_gather_64(kinf__json_find_bytes_16(block, with, wanted),
                                kinf__json_find_bytes_16(block + 16, with, wanted),
                                kinf__json_find_bytes_16(block + 32, with, wanted),
                                kinf__json_find_bytes_16(block + 48, with, wanted));
}

#else

static inline uint64_t kinf__json_specials(const uint8_t block[KINF__JSON_BLOCK])
{
    return kinf__json_specials_plain_c(block);
}

static inline uint64_t kinf__json_find_bytes(const uint8_t block[KINF__JSON_BLOCK], uint8_t with,
                                             uint8_t wanted)
{
    return kinf__json_find_bytes_plain_c(block, with, wanted);
}

#endif

/* Where a block has the bytes that structure follows from, in strings and outside. */
struct kinf__json_marks {
    uint64_t quotes;
    uint64_t backslashes;
    uint64_t opens; /* brackets of both kinds */
    uint64_t closes;
};

/* What walking over blocks needs, in one of the ways to do it. */
struct kinf__json_block_ops {
    struct kinf__json_marks (*mark)(const uint8_t block[KINF__JSON_BLOCK]);
    uint64_t (*fill)(uint64_t bits);
    unsigned (*count)(uint64_t bits);
};

static inline struct kinf__json_marks kinf__json_mark(const uint8_t block[KINF__JSON_BLOCK])
{
    /* With the bit 0x20 a square bracket is a brace. */
    return (struct kinf__json_marks){
        .quotes = kinf__json_find_bytes(block, 0, '"'),
        .backslashes = kinf__json_find_bytes(block, 0, '\\'),
        .opens = kinf__json_find_bytes(block, 0x20, '{'),
        .closes = kinf__json_find_bytes(block, 0x20, '}'),
    };
}

/* Sets the bits from each bit that is the first, third, ... one of `bits` up to the next one, which
 * stays 0, as inside of quotes. */
static inline uint64_t kinf__json_fill(uint64_t bits)
{
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    return bits ^ bits << 32;
}

/* The places behind an odd number of backslashes in a row, also in rows that started in the block
 * in front: what stands there is part of an escape.
 *
 * Adding the first place of a row to the row carries to the place behind it; whether the row's
 * length is odd shows in whether one of the two places is even and the other is not. */
static inline uint64_t kinf__json_places_escaped(uint64_t backslashes, uint64_t *escaped)
{
    const uint64_t even = UINT64_C(0x5555555555555555);
    const uint64_t first = *escaped, rows = backslashes & ~first, starts = rows & ~(rows << 1);
    uint64_t behind_even = rows + (starts & even), behind_odd;

    if (KINF__LIKELY(((backslashes << 1 | first) & backslashes) == 0)) {
        *escaped = backslashes >> 63;
        return backslashes << 1 | first;
    }
    *escaped = __builtin_add_overflow(rows, starts & ~even, &behind_odd);
    return first | (behind_even & ~rows & ~even) | (behind_odd & ~rows & even);
}

/* How many bits are set. */
static inline unsigned kinf__json_count(uint64_t bits)
{
    const uint64_t pairs = UINT64_C(0x3333333333333333);

    bits -= bits >> 1 & UINT64_C(0x5555555555555555);
    bits = (bits & pairs) + (bits >> 2 & pairs);
    bits = (bits + (bits >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)(bits * UINT64_C(0x0101010101010101) >> 56);
}

#if defined(KINF__JSON_AVX2)

/* The operations with instructions that most processors have and the compiler may not assume: a
 * walk takes half the time. */
#define KINF__JSON_TARGET_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,pclmul")))

static inline bool kinf__json_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") &&
           __builtin_cpu_supports("pclmul");
}

KINF__JSON_TARGET_AVX2 static inline uint64_t kinf__json_find_bytes_avx2(__m256i low, __m256i high,
                                                                         char wanted)
{
    const __m256i all = _mm256_set1_epi8(wanted);

    return (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, all)) |
           (uint64_t)(unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, all)) << 32;
}

KINF__JSON_TARGET_AVX2 static inline struct kinf__json_marks kinf__json_mark_avx2(
    const uint8_t block[KINF__JSON_BLOCK])
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)block);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(block + 32));
    const __m256i low_braces = _mm256_or_si256(low, _mm256_set1_epi8(0x20));
    const __m256i high_braces = _mm256_or_si256(high, _mm256_set1_epi8(0x20));

    return (struct kinf__json_marks){
        .quotes = kinf__json_find_bytes_avx2(low, high, '"'),
        .backslashes = kinf__json_find_bytes_avx2(low, high, '\\'),
        .opens = kinf__json_find_bytes_avx2(low_braces, high_braces, '{'),
        .closes = kinf__json_find_bytes_avx2(low_braces, high_braces, '}'),
    };
}

/* A product without carries by all ones. */
KINF__JSON_TARGET_AVX2 static inline uint64_t kinf__json_fill_avx2(uint64_t bits)
{
    const __m128i factor = _mm_set_epi64x(0, (long long)bits);

    return (uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(factor, _mm_set1_epi8(-1), 0));
}

KINF__JSON_TARGET_AVX2 static inline unsigned kinf__json_count_avx2(uint64_t bits)
{
    return (unsigned)__builtin_popcountll(bits);
}

#endif
#endif
