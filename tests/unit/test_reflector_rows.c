/*
 * Rows of the protocol's tables that need bytes: what a server sends in place of the watch behind a
 * list, or of that list, and what the reflector makes of it. Sources as in test_policy_rows.c, which
 * has the rows that need none; those of watch lists, also compressed, are in test_watch_list.c.
 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/reflector_fixture.h"

#define WAITING "listing watching waiting:"
#define REFUSED "listing waiting:"
#define RELIST  "/api/v1/pods?resourceVersion=10\n" WATCH_FROM("20")
#define REWATCH WATCH_FROM("10")
#define OUTAGE  VERIFY("a") VERIFY_COUNT("10") WATCH_FROM("10")

struct row {
    const char *source;
    const char *situation;
    struct test_reply reply;
    const char *phases;  /* up to the wait that follows */
    const char *targets; /* requests that follow; NULL: not waited for */
    int64_t wait_ms;     /* at least, when nothing is waited for */
};

static void play(const struct row *row)
{
    bool relists = row->targets != NULL && strcmp(row->targets, RELIST) == 0;
    bool verifies = row->targets != NULL && strcmp(row->targets, OUTAGE) == 0;
    const struct test_reply open = { .body = "", .end = TEST_END_OPEN };
    const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        row->reply,
        relists    ? (struct test_reply){ .body = LIST("20", "", POD("a", "3")) }
        : verifies ? (struct test_reply){ .body = LIST("10", "", POD("a", "3")) }
                   : open,
        verifies ? (struct test_reply)UNCOUNTED : open,
        open,
    };
    struct reflector_fixture f;
    char targets[512];

    printf("  %s: %s\n", row->source, row->situation);
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_phases(&f, row->phases);
    if (row->targets == NULL) {
        assert_in_range(f.wait_ms, row->wait_ms, row->wait_ms + 100);
    } else {
        snprintf(targets, sizeof targets, "/api/v1/pods\n%s%s", WATCH_FROM("10"), row->targets);
        reflector_expect_targets(&f, verifies ? 5 : relists ? 4 : 3, targets);
    }
    reflector_tear_down(&f);
}

#define RENAMED      EVENT("RENAMED", POD("b", "11"))
#define OTHER_KIND   "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"b\"}}"
#define OTHER_STATUS "{\"status\":\"Failure\",\"message\":\"m\",\"code\":410}"
#define TIMED_OUT                                                                                  \
    "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: request did not complete "     \
    "within the allotted timeout\",\"reason\":\"Timeout\",\"details\":{},\"code\":504}"
#define SERVER_TIMEOUT                                                                             \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"try again\",\"reason\":"            \
    "\"ServerTimeout\",\"details\":{\"retryAfterSeconds\":7},\"code\":500}"
#define RETRY_AFTER_7                                                                              \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"storage is (re)initializing\","     \
    "\"reason\":\"TooManyRequests\",\"details\":{\"retryAfterSeconds\":7},\"code\":429}"

static void each_end_of_a_watch_leads_where_its_row_says(void **state)
{
    static const struct row rows[] = {
        { "protocol 1.5",
          "ERROR 410 Expired",
          { .body = EVENT("ERROR", STATUS("410", "Expired")) },
          WAITING "EXPIRED ",
          RELIST,
          0 },
        { "protocol 1.5",
          "ERROR 410 Gone, of servers up to 1.17",
          { .body = EVENT("ERROR", STATUS("410", "Gone")) },
          WAITING "EXPIRED ",
          RELIST,
          0 },
        { "semantics 6",
          "ERROR 410 without a reason",
          { .body = EVENT("ERROR", OTHER_STATUS) },
          WAITING "EXPIRED ",
          RELIST,
          0 },
        { "protocol 1.5",
          "410 as the response",
          { .status = "410 Gone", .body = STATUS("410", "Expired") },
          REFUSED "EXPIRED ",
          RELIST,
          0 },
        { "semantics 6",
          "ERROR 429",
          { .body = EVENT("ERROR", STATUS("429", "TooManyRequests")) },
          WAITING "TOO_MANY_REQUESTS ",
          REWATCH,
          0 },
        { "semantics 6",
          "ERROR InternalError",
          { .body = EVENT("ERROR", STATUS("500", "InternalError")) },
          WAITING "SERVER ",
          REWATCH,
          0 },
        { "semantics 6",
          "any other ERROR",
          { .body = EVENT("ERROR", STATUS("403", "Forbidden")) },
          WAITING "FORBIDDEN ",
          RELIST,
          0 },
        { "semantics 6",
          "an ERROR that is no Status",
          { .body = EVENT("ERROR", POD("b", "11")) },
          WAITING "PARSE ",
          RELIST,
          0 },
        { "semantics 6",
          "an ERROR that is no object",
          { .body = EVENT("ERROR", "7") },
          WAITING "PARSE ",
          RELIST,
          0 },
        { "semantics 6",
          "an event of unknown type: listed, not believed",
          { .body = RENAMED },
          WAITING "PARSE ",
          RELIST,
          0 },
        { "semantics 6",
          "an object of another kind",
          { .body = EVENT("ADDED", OTHER_KIND) },
          WAITING "PARSE ",
          RELIST,
          0 },
        { "semantics 6",
          "an object without metadata",
          { .body = EVENT("ADDED", "{\"x\":1}") },
          WAITING "PARSE ",
          RELIST,
          0 },
        { "semantics 10",
          "bytes that are no JSON",
          { .body = "upstream connect error\n" },
          WAITING "PARSE ",
          RELIST,
          0 },
        { "protocol 1.5",
          "a very short watch with nothing",
          { .body = "" },
          WAITING "SERVER ",
          REWATCH,
          0 },
        { "protocol 1.6",
          "a body that ends inside an event, cleanly",
          { .body = "{\"type\":\"ADDED\",\"obj" },
          WAITING "TRUNCATED ",
          OUTAGE,
          0 },
        { "protocol 1.6",
          "a body without its last chunk",
          { .body = "{\"type\":\"ADDED\",\"obj", .end = TEST_END_CUT },
          WAITING "NETWORK ",
          OUTAGE,
          0 },
        { "protocol 1.6",
          "504 as text, a Status without kind",
          { .status = "504 Gateway Timeout",
            .headers = "Content-Type: text/plain\r\n",
            .body = TIMED_OUT },
          REFUSED "SERVER ",
          OUTAGE,
          0 },
        { "protocol 1.6",
          "503 without an explanation",
          { .status = "503 Service Unavailable" },
          REFUSED "SERVER ",
          OUTAGE,
          0 },
        { "protocol 1.6",
          "429 as text, Retry-After in the head",
          { .status = "429 Too Many Requests",
            .headers = "Content-Type: text/plain\r\nRetry-After: 7\r\n",
            .body = "Too many requests, please try again later.\n" },
          REFUSED "TOO_MANY_REQUESTS ",
          NULL,
          7000 },
        { "protocol 1.6",
          "429 as JSON, Retry-After in the Status",
          { .status = "429 Too Many Requests", .body = RETRY_AFTER_7 },
          REFUSED "TOO_MANY_REQUESTS ",
          NULL,
          7000 },
        { "protocol 1.6",
          "the same as an ERROR event",
          { .body = EVENT("ERROR", RETRY_AFTER_7) },
          WAITING "TOO_MANY_REQUESTS ",
          NULL,
          7000 },
        { "semantics 10",
          "Retry-After as a date: ignored, as long as a failure waits",
          { .status = "429 Too Many Requests",
            .headers = "Retry-After: Fri, 31 Dec 2100 23:59:59 GMT\r\n" },
          REFUSED "TOO_MANY_REQUESTS ",
          REWATCH,
          0 },
        { "protocol 1.6",
          "503 of a server that leaves, Retry-After in the head",
          { .status = "503 Service Unavailable", .headers = "Retry-After: 7\r\n" },
          REFUSED "SERVER ",
          NULL,
          7000 },
        { "protocol 1.6",
          "500 ServerTimeout, Retry-After in the Status",
          { .status = "500 Internal Server Error", .body = SERVER_TIMEOUT },
          REFUSED "SERVER ",
          NULL,
          7000 },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        play(&rows[i]);
}

static void a_list_of_a_table_is_refused(void **state)
{
    static const struct test_reply replies[] = {
        { .body = "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":"
                  "{\"resourceVersion\":\"10\"},\"rows\":[]}" },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_phases(&f, "listing waiting:UNSUPPORTED ");
    reflector_tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_end_of_a_watch_leads_where_its_row_says),
        cmocka_unit_test(a_list_of_a_table_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
