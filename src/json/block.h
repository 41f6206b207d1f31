/*
 * Which bytes of a block need attention inside of a string: 16 bytes at a time with SSE2 or NEON,
 * else 8 in a word. KINF__JSON_PLAIN_C chooses plain C everywhere; it is always there, so that
 * tests compare.
 *
 * Threads: any thread.
 */
#ifndef KINF_JSON_BLOCK_H
#define KINF_JSON_BLOCK_H

#include <stdint.h>
#include <string.h>

#if defined(KINF__JSON_PLAIN_C)
#elif defined(__SSE2__)
#define KINF__JSON_SSE2
#include <emmintrin.h>
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define KINF__JSON_NEON
#include <arm_neon.h>
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

#elif defined(KINF__JSON_NEON)

/* A bit of the byte's own for each special byte, eight different ones in turn. */
static inline uint8x16_t kinf__json_specials_16(const uint8_t *bytes)
{
    static const uint8_t bits[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
    const uint8x16_t block = vld1q_u8(bytes);
    /* The comparison is signed, so it finds the bytes from 0x80 as well. */
    const uint8x16_t below = vcltq_s8(vreinterpretq_s8_u8(block), vdupq_n_s8(0x20));
    const uint8x16_t quote = vceqq_u8(block, vdupq_n_u8('"'));
    const uint8x16_t backslash = vceqq_u8(block, vdupq_n_u8('\\'));

    return vandq_u8(vorrq_u8(vorrq_u8(quote, backslash), below), vld1q_u8(bits));
}

static inline uint64_t kinf__json_specials(const uint8_t block[KINF__JSON_BLOCK])
{
    /* Adding neighbours three times gathers each eight bytes' bits in one byte. */
    const uint8x16_t low =
        vpaddq_u8(kinf__json_specials_16(block), kinf__json_specials_16(block + 16));
    const uint8x16_t high =
        vpaddq_u8(kinf__json_specials_16(block + 32), kinf__json_specials_16(block + 48));
    const uint8x16_t half = vpaddq_u8(low, high);

    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(half, half)), 0);
}

#else

static inline uint64_t kinf__json_specials(const uint8_t block[KINF__JSON_BLOCK])
{
    return kinf__json_specials_plain_c(block);
}

#endif
#endif
