/*
 * What the daemon serves by, from start to stop, while one allocation fails, or one thread cannot be
 * started: an answer is whole and right, or it is an error or cut, and the next one is right. See
 * sweep.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "unit/served_fake.h"
#include "unit/sweep.h"
#include "unit/swept_fake.h"
#include "unit/test.h"

#define N_TRIES 4

#define JSON  "application/json"
#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"

#define OBJECTS "/api/v1/namespaces/default/configmaps"

/* --- a client --- */

static int send_head(struct served_fake *served, const char *method, const char *target,
                     const char *accept, const char *body)
{
    char text[1024];

    snprintf(text, sizeof text,
             "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\nConnection: "
             "close\r\nAuthorization: Bearer t\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             method, target, accept, strlen(body), body);
    return served_fake_send(served, text);
}

/* What is answered in the end, which the caller frees. Before that nothing comes but what says that it
 * is no answer, and that only if something has failed. */
static char *ask_with(struct served_fake *served, const char *method, const char *target,
                      const char *accept, const char *body)
{
    for (int i = 0; i < N_TRIES; i++) {
        struct served_answer answer =
            served_fake_answer(send_head(served, method, target, accept, body));

        free(answer.head);
        if (answer.status == 200 || answer.status == 201 || (i > 0 && answer.status == 409))
            return answer.body;
        if (!test_swept_hit() ||
            (answer.status != 0 && answer.status < 500 && answer.status != 429))
            fprintf(stderr, "%s: %d %s\n", target, answer.status,
                    answer.body != NULL ? answer.body : "");
        SWEPT_CHECK(test_swept_hit());
        SWEPT_CHECK(answer.status == 0 || answer.status >= 500 || answer.status == 429);
        free(answer.body);
    }
    fprintf(stderr, "%s %s\n", method, target);
    SWEPT_CHECK(!"it is not answered");
    return NULL;
}

static char *ask(struct served_fake *served, const char *target, const char *accept)
{
    return ask_with(served, "GET", target, accept, "");
}

/* --- what is asked --- */

static const struct {
    const char *target, *accept;
    const char *has; /* a part of the answer */
    bool is_constant;
} asked[] = {
    { OBJECTS "/a", JSON, "\"name\":\"a\"", true },
    { OBJECTS, JSON, "\"name\":\"b\"", true },
    { OBJECTS "?labelSelector=sync%3Dtrue&fieldSelector=metadata.name%3Db", JSON, "\"b\"", true },
    { OBJECTS, TABLE, "\"columnDefinitions\"", false },
    { OBJECTS "/a", TABLE, "\"rows\"", false },
    { "/api", JSON, "APIVersions", true },
    { "/apis", JSON, "APIGroupList", true },
    { "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "items",
      true },
    { "/api/v1", JSON, "configmaps", true },
    { "/version", JSON, "gitVersion", true },
    { "/readyz?verbose", JSON, "configmaps", false },
    { "/metrics", JSON, "kinformer", false },
    { "/debug/state", JSON, "configmaps", false },
    { "/api/v1/secrets", JSON, "SecretList", false },
};

static void ask_for_all(struct served_fake *served, char *answers[KINF__ARRAY_LEN(asked)])
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(asked); i++) {
        answers[i] = ask(served, asked[i].target, asked[i].accept);
        if (strstr(answers[i], asked[i].has) == NULL)
            fprintf(stderr, "%s: %s\n", asked[i].target, answers[i]);
        SWEPT_CHECK(strstr(answers[i], asked[i].has) != NULL);
    }
}

/* What was answered while something failed is what is answered when nothing does any more. */
static void ask_for_all_twice(struct served_fake *served)
{
    char *first[KINF__ARRAY_LEN(asked)], *second[KINF__ARRAY_LEN(asked)];

    ask_for_all(served, first);
    ask_for_all(served, second);
    for (size_t i = 0; i < KINF__ARRAY_LEN(asked); i++) {
        if (asked[i].is_constant && strcmp(first[i], second[i]) != 0)
            fprintf(stderr, "%s:\n%s\n%s\n", asked[i].target, first[i], second[i]);
        SWEPT_CHECK(!asked[i].is_constant || strcmp(first[i], second[i]) == 0);
        free(first[i]);
        free(second[i]);
    }
}

static void turn_pages(struct served_fake *served)
{
    char *page = ask(served, OBJECTS "?limit=1", JSON), target[512];
    const char *token = strstr(page, "\"continue\":\"");

    SWEPT_CHECK(token != NULL && strstr(page, "\"name\":\"b\"") == NULL);
    token += strlen("\"continue\":\"");
    snprintf(target, sizeof target, OBJECTS "?limit=1&continue=%.*s", (int)strcspn(token, "\""),
             token);
    free(page);
    page = ask(served, target, JSON);
    SWEPT_CHECK(strstr(page, "\"name\":\"b\"") != NULL && strstr(page, "\"name\":\"a\"") == NULL);
    free(page);
}

/* Passed on; what was written is read at once. */
static void write_one(struct served_fake *served)
{
    char *answer = ask_with(served, "POST", OBJECTS, JSON,
                            "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                            "\"w\"}}");

    free(answer);
    /* Reads wait for writes that were answered. One whose answer was lost has come by then. */
    if (test_swept_hit())
        swept_fake_settle(served->fake);
    free(ask(served, OBJECTS "/w", JSON));
}

/* What is there, then what comes. A watch that breaks is begun again. */
static void watch(struct served_fake *served)
{
    bool has_changed = false, is_told = false;

    for (int i = 0; i < N_TRIES && !is_told; i++) {
        int fd = send_head(served, "GET", OBJECTS "?watch=1&allowWatchBookmarks=true", JSON, "");
        struct kinf__buffer text = KINF__BUFFER_INIT;

        if (served_fake_read(fd, "\"name\":\"b\"", &text)) {
            if (!has_changed)
                swept_fake_put(served->fake, "c", "1");
            has_changed = true;
            is_told = served_fake_read(fd, "\"name\":\"c\"", &text);
        }
        SWEPT_CHECK(is_told || test_swept_hit());
        kinf__buffer_release(&text);
        close(fd);
    }
    SWEPT_CHECK(is_told);
}

static int begin(struct served_fake *served, struct kinf_fake *fake, struct kinf_error *err)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .name_space = NULL };
    int failed = served_fake_begin(served, fake, true, NULL, NULL, err);

    return failed < 0 ? failed : served_fake_add(served, &options, &source, err);
}

static void serve(void)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_fake *fake = swept_fake_new();
    struct served_fake served;
    int failed;

    swept_fake_put(fake, "a", "1");
    swept_fake_put(fake, "b", "1");
    SWEPT(failed = begin(&served, fake, &err));
    if (SWEPT_OK(failed, &err)) {
        served_fake_wait(&served);
        ask_for_all_twice(&served);
        turn_pages(&served);
        write_one(&served);
        watch(&served);
    }
    SWEPT(served_fake_end(&served));
    kinf_fake_free(fake);
}

static void answers_are_right_or_errors_whichever_allocation_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_ALLOCATIONS, serve, 200);
}

static void a_server_is_right_or_refused_whichever_thread_fails(void **state)
{
    (void)state;
    test_sweep(TEST_SWEPT_THREADS, serve, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_right_or_errors_whichever_allocation_fails),
        cmocka_unit_test(a_server_is_right_or_refused_whichever_thread_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
