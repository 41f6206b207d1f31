/*
 * The status page: page.html, which is part of the program. Neighbours: debug_state.c has what its
 * script asks for, exchange.c chooses between it and the list of paths.
 *
 * The page may do nothing but what it was made for: its policy names its script and its style by
 * their digests, so that no other text becomes either, whatever an object or a client is called.
 */
#include <stdio.h>
#include <string.h>

#include "rest/secret.h"
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

/* Of what is between the two, as base64. */
static const char *digest_between(struct kinf_str page, const char *open, const char *close,
                                  struct kinf__buffer *text)
{
    const char *begin =
        (const char *)memmem(page.bytes, page.len, open, strlen(open)) + strlen(open);
    const char *end = memmem(begin, (size_t)(page.bytes + page.len - begin), close, strlen(close));
    unsigned char digest[KINF__DIGEST_SIZE];

    if (kinf__sha256((struct kinf_str){ begin, (size_t)(end - begin) }, digest) < 0 ||
        kinf__secret_append_base64(text, (const char *)digest, sizeof digest) < 0)
        return NULL; /* no memory */
    return kinf__buffer_cstr(text);
}

int kinf__page_answer(struct kinf__exchange *exchange)
{
    const struct kinf_str page = { kinf__page_begin, (size_t)(kinf__page_end - kinf__page_begin) };
    struct kinf__answer *answer = &exchange->answer;
    KINF__AUTO_BUFFER script = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER style = KINF__BUFFER_INIT;

    if (digest_between(page, "<script>", "</script>", &script) == NULL ||
        digest_between(page, "<style>", "</style>", &style) == NULL ||
        kinf__buffer_append_str(&answer->body, page) < 0)
        return kinf__refuse_no_memory(exchange->refusal);
    snprintf(answer->policy, sizeof answer->policy,
             "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; "
             "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
             "frame-ancestors 'none'",
             script.bytes, style.bytes);
    answer->content_type = "text/html; charset=utf-8";
    return 0;
}
