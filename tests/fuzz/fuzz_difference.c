/*
 * Texts told by others: the first half of an input is told by the second one, and comes back; and the
 * input is read as if it were such a telling.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "object/difference.h"

static void require_same_again(struct kinf_str text, struct kinf_str base)
{
    size_t room = 2 * text.len + 64, n;
    char *difference = malloc(room), *exact, *again = malloc(text.len + 1);

    FUZZ_REQUIRE(difference != NULL && again != NULL);
    n = kinf__difference_write(text, base, difference, room);
    FUZZ_REQUIRE(n != 0 && n <= room);
    exact = fuzz_text((const uint8_t *)difference, n);
    FUZZ_REQUIRE(kinf__difference_read((struct kinf_str){ exact, n }, base, again, text.len));
    FUZZ_REQUIRE(memcmp(again, text.bytes, text.len) == 0);
    free(difference);
    free(exact);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len = fuzz_take_byte(&data, &size) * (size_t)16;
    char *text = fuzz_text(data, size / 2), *base = fuzz_text(data + size / 2, size - size / 2);
    struct kinf_str text_str = { text, size / 2 }, base_str = { base, size - size / 2 };
    char *buf = malloc(len + 1);

    FUZZ_REQUIRE(buf != NULL);
    require_same_again(text_str, base_str);
    (void)!kinf__difference_read(text_str, base_str, buf, len);
    free(buf);
    free(text);
    free(base);
    return 0;
}
