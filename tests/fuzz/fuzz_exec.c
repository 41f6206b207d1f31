/*
 * What a credential plugin writes: any text gives a credential that can be sent, or a reason.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "rest/exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum kinf__exec_version version =
        fuzz_take_byte(&data, &size) % 2 == 0 ? KINF__EXEC_V1 : KINF__EXEC_V1BETA1;
    struct kinf__exec_answer answer;
    struct kinf_error err = KINF_ERROR_INIT;
    char *text = fuzz_text(data, size);

    if (kinf__exec_parse((struct kinf_str){ text, size }, version, &answer, &err) == 0) {
        FUZZ_REQUIRE(answer.token != NULL || answer.cert_pem != NULL);
        FUZZ_REQUIRE((answer.cert_pem == NULL) == (answer.key_pem == NULL));
        FUZZ_REQUIRE(answer.token == NULL ||
                     (*answer.token != '\0' && strpbrk(answer.token, " \t\r\n") == NULL));
        kinf__exec_answer_release(&answer);
    } else {
        FUZZ_REQUIRE(err.code == KINF_ERR_PARSE && err.message[0] != '\0');
    }
    free(text);
    return 0;
}
