/*
 * The status page: page.html, which is part of the program. Neighbours: debug_state.c has what its
 * script asks for, exchange.c chooses between it and the list of paths.
 *
 * The page may do nothing but what it was made for: its policy names its script and its style by
 * their digests, so that no other text becomes either, whatever an object or a client is called.
 */
#include <stdio.h>
#include <string.h>

#include "serve/digest.h"
#include "serve/exchange_priv.h"

__asm__(".pushsection .rodata\n"
        ".globl kinf__page_begin\n"
        ".hidden kinf__page_begin\n"
        "kinf__page_begin:\n"
        ".incbin \"src/serve/page.html\"\n"
        ".globl kinf__page_end\n"
        ".hidden kinf__page_end\n"
        "kinf__page_end:\n"
        ".byte 0\n"
        ".popsection\n");

extern const char kinf__page_begin[] __attribute__((visibility("hidden")));
extern const char kinf__page_end[] __attribute__((visibility("hidden")));

#define BASE64_SIZE (4 * ((KINF__DIGEST_SIZE + 2) / 3) + 1)

static void write_base64(const unsigned char digest[KINF__DIGEST_SIZE], char text[BASE64_SIZE])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < KINF__DIGEST_SIZE; i += 3) {
        size_t n = KINF__DIGEST_SIZE - i < 3 ? KINF__DIGEST_SIZE - i : 3;
        unsigned bits = (unsigned)digest[i] << 16 | (n > 1 ? (unsigned)digest[i + 1] << 8 : 0) |
                        (n > 2 ? digest[i + 2] : 0);

        for (size_t k = 0; k < 4; k++)
            *text++ = k <= n ? digits[bits >> (18 - 6 * k) & 63] : '=';
    }
    *text = '\0';
}

/* Of what is between the two. */
static int digest_between(struct kinf_str page, const char *open, const char *close,
                          char text[BASE64_SIZE])
{
    const char *begin = memmem(page.bytes, page.len, open, strlen(open));
    unsigned char digest[KINF__DIGEST_SIZE];
    struct kinf_str part = { begin + strlen(open), 0 };
    int failed;

    part.len =
        (size_t)((const char *)memmem(part.bytes, (size_t)(page.bytes + page.len - part.bytes),
                                      close, strlen(close)) -
                 part.bytes);
    failed = kinf__sha256(part, digest);
    if (failed == 0)
        write_base64(digest, text);
    return failed;
}

int kinf__page_answer(struct kinf__exchange *exchange)
{
    const struct kinf_str page = { kinf__page_begin, (size_t)(kinf__page_end - kinf__page_begin) };
    struct kinf__answer *answer = &exchange->answer;
    char script[BASE64_SIZE], style[BASE64_SIZE];

    if (digest_between(page, "<script>", "</script>", script) < 0 ||
        digest_between(page, "<style>", "</style>", style) < 0 ||
        kinf__buffer_append_str(&answer->body, page) < 0)
        return kinf__refuse_no_memory(exchange->refusal);
    snprintf(answer->policy, sizeof answer->policy,
             "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; "
             "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
             "frame-ancestors 'none'",
             script, style);
    answer->content_type = "text/html; charset=utf-8";
    return 0;
}
