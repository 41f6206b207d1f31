/*
 * What the server says when it refuses: any text gives an error with a message.
 */
#include "fuzz/fuzz.h"
#include "rest/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = { 0, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 504 };
    struct kinf_error err = KINF_ERROR_INIT;
    unsigned how = fuzz_take_byte(&data, &size);
    char *text = fuzz_text(data, size);
    int r = kinf__status_to_error((struct kinf_str){ text, size },
                                  statuses[how % (sizeof statuses / sizeof statuses[0])], &err);

    FUZZ_REQUIRE(r < 0);
    FUZZ_REQUIRE(r == (int)err.code);
    FUZZ_REQUIRE(err.message[0] != '\0');
    free(text);
    return 0;
}
