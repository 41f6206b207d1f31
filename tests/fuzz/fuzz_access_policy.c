/*
 * Policy files, and reviews by them: the first part of an input, up to a NUL, is the file, the rest
 * is what is posted. What is answered has a status; what is refused has a message.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "apiserver/access_policy.h"
#include "document/tree.h"

static void review(const struct kinf__access_policy *policy, struct kinf_str body)
{
    static const char *const kinds[] = { "TokenReview",
                                         "SubjectAccessReview",
                                         "LocalSubjectAccessReview",
                                         "SelfSubjectAccessReview",
                                         "SelfSubjectRulesReview",
                                         "SelfSubjectReview" };
    struct kinf__access_policy_user caller = kinf__access_policy_anonymous();
    const char *token;

    if (policy != NULL)
        (void)kinf__access_policy_get_user(policy, 0, &caller, &token);
    for (size_t i = 0; i < KINF__ARRAY_LEN(kinds); i++) {
        struct kinf_error err = KINF_ERROR_INIT;
        KINF__AUTO_DOC *tree = NULL;

        if (kinf__doc_parse(body, &tree, NULL) < 0 || !cJSON_IsObject(tree))
            return;
        if (kinf__access_policy_review(policy, kinds[i], &caller, tree, &err) == 0)
            FUZZ_REQUIRE(cJSON_IsObject(kinf__doc_get(tree, "status")));
        else
            FUZZ_REQUIRE(err.message[0] != '\0' && err.http_status >= 400);
    }
}

static void check_users(const struct kinf__access_policy *policy)
{
    struct kinf__access_policy_user user, found;
    const char *token;

    for (size_t i = 0; kinf__access_policy_get_user(policy, i, &user, &token); i++) {
        FUZZ_REQUIRE(kinf__access_policy_find_token(policy, kinf_str_from(token), &found));
        FUZZ_REQUIRE(strcmp(found.name, user.name) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size != 0 ? memchr(data, '\0', size) : NULL;
    size_t len = end != NULL ? (size_t)(end - data) : size;
    char *file = fuzz_text(data, len), *body = fuzz_text(data + (end != NULL ? len + 1 : len),
                                                         size - len - (end != NULL ? 1 : 0));
    struct kinf__access_policy *policy = NULL;
    struct kinf_error err = KINF_ERROR_INIT;

    if (kinf__access_policy_parse((struct kinf_str){ file, len }, "f", &policy, &err) == 0)
        check_users(policy);
    else
        FUZZ_REQUIRE(err.message[0] != '\0');
    review(policy, kinf_str_from(body));
    kinf__access_policy_free(policy);
    free(body);
    free(file);
    return 0;
}
