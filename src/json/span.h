/*
 * How far a string's bytes need no attention: 16 bytes at a time with SSE2 or NEON, else 8 in a
 * word. KINF__JSON_PLAIN_C chooses the plain C one everywhere; it is always there, so that tests
 * compare.
 *
 * Threads: any thread.
 */
#ifndef KINF_JSON_SPAN_H
#define KINF_JSON_SPAN_H

#include <stdint.h>
#include <string.h>

#if defined(KINF__JSON_PLAIN_C)
#elif defined(__SSE2__)
#define KINF__JSON_SSE2
#include <emmintrin.h>
#elif defined(__ARM_NEON) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define KINF__JSON_NEON
#include <arm_neon.h>
#endif

#define KINF__JSON_SPAN 16

/* Bytes that go on with a string by themselves: ASCII, no control byte, no quote, no backslash. */
static inline int kinf__json_is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* Not zero if one of the eight bytes is not plain. The usual tests for a zero byte and for a byte
 * below a bound: they may blame a higher byte wrongly, but only behind one that they blame rightly.
 */
static inline uint64_t kinf__json_word_ends(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = UINT64_C(0x8080808080808080);
    uint64_t quote = word ^ (ones * '"'), backslash = word ^ (ones * '\\');

    return (word | (word - ones * 0x20) | (quote - ones) | (backslash - ones)) & highs;
}

/* The number of plain bytes that KINF__JSON_SPAN readable bytes start with. */
static inline unsigned kinf__json_span_plain_c(const uint8_t *bytes)
{
    unsigned n = 0;
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    if (kinf__json_word_ends(word) == 0) {
        n = 8;
        memcpy(&word, bytes + n, sizeof word);
        if (kinf__json_word_ends(word) == 0)
            return KINF__JSON_SPAN;
    }
    while (n < KINF__JSON_SPAN && kinf__json_is_plain(bytes[n]))
        n++;
    return n;
}

#if defined(KINF__JSON_SSE2)

static inline unsigned kinf__json_span(const uint8_t *bytes)
{
    const __m128i block = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    /* The comparison is signed, so it finds the bytes from 0x80 as well. */
    const __m128i below = _mm_cmplt_epi8(block, _mm_set1_epi8(0x20));
    const __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
    const __m128i backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
    const int ends = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(below, quote), backslash));

    return (unsigned)__builtin_ctz((unsigned)ends | 1U << KINF__JSON_SPAN);
}

#elif defined(KINF__JSON_NEON)

static inline unsigned kinf__json_span(const uint8_t *bytes)
{
    const uint8x16_t block = vld1q_u8(bytes);
    const uint8x16_t ends =
        vorrq_u8(vorrq_u8(vcltq_s8(vreinterpretq_s8_u8(block), vdupq_n_s8(0x20)),
                          vceqq_u8(block, vdupq_n_u8('"'))),
                 vceqq_u8(block, vdupq_n_u8('\\')));
    /* Four bits a byte, in the order of the bytes. */
    const uint64_t mask =
        vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(ends), 4)), 0);

    return mask == 0 ? KINF__JSON_SPAN : (unsigned)__builtin_ctzll(mask) / 4;
}

#else

static inline unsigned kinf__json_span(const uint8_t *bytes)
{
    return kinf__json_span_plain_c(bytes);
}

#endif
#endif
