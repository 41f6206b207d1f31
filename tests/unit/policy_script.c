/*
 * Reading and playing scripts for the policy. Neighbours: test_policy_rows.c has the tables,
 * test_policy.c the times and bounds.
 */
#include "unit/policy_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/test.h"

const struct policy_error policy_errors[] = {
    { "net", { KINF_ERR_NETWORK, 0, 0, 0, "refused" } },
    { "tls", { KINF_ERR_TLS, 0, 0, 0, "" } },
    { "time", { KINF_ERR_TIMEOUT, 0, 0, 0, "" } },
    { "trunc", { KINF_ERR_TRUNCATED, 0, 0, 0, "" } },
    { "parse", { KINF_ERR_PARSE, 0, 0, 0, "" } },
    { "nomem", { KINF_ERR_NO_MEMORY, 0, 0, 0, "" } },
    { "400", { KINF_ERR_SERVER, 400, 0, 0, "" } },
    { "401", { KINF_ERR_UNAUTHORIZED, 401, 0, 0, "" } },
    { "403", { KINF_ERR_FORBIDDEN, 403, 0, 0, "" } },
    { "404", { KINF_ERR_NOT_FOUND, 404, 0, 0, "" } },
    { "405", { KINF_ERR_SERVER, 405, 0, 0, "" } },
    { "406", { KINF_ERR_SERVER, 406, 0, 0, "" } },
    { "410", { KINF_ERR_EXPIRED, 410, 0, 0, "" } },
    { "415", { KINF_ERR_SERVER, 415, 0, 0, "" } },
    { "422", { KINF_ERR_SERVER, 422, 0, 0, "" } },
    { "429", { KINF_ERR_TOO_MANY_REQUESTS, 429, 0, 0, "" } },
    { "429/5", { KINF_ERR_TOO_MANY_REQUESTS, 429, 0, 5000, "" } },
    { "429/16", { KINF_ERR_TOO_MANY_REQUESTS, 429, 0, 16000, "" } },
    { "500", { KINF_ERR_SERVER, 500, 0, 0, "" } },
    { "500/7", { KINF_ERR_SERVER, 500, 0, 7000, "" } },
    { "503", { KINF_ERR_SERVER, 503, 0, 0, "" } },
    { "503/1", { KINF_ERR_SERVER, 503, 0, 1000, "" } },
    { "503/5", { KINF_ERR_SERVER, 503, 0, 5000, "" } },
    { "504", { KINF_ERR_SERVER, 504, 0, 0, "" } },
    { "init", { KINF_ERR_TOO_MANY_REQUESTS, 429, 0, 1000, "storage is (re)initializing" } },
    { "big", { KINF_ERR_RV_TOO_LARGE, 504, 0, 1000, "" } },
};

const size_t n_policy_errors = KINF__ARRAY_LEN(policy_errors);

struct policy_run policy_run_new(const struct kinf__policy_options *options)
{
    struct policy_run run = { .now_ms = POLICY_RUN_BEGIN_MS };

    kinf__policy_init(&run.policy, options);
    return run;
}

static const struct kinf_error *error_named(const char *name)
{
    for (size_t i = 0; i < n_policy_errors; i++) {
        if (strcmp(policy_errors[i].name, name) == 0)
            return &policy_errors[i].err;
    }
    fail_msg("no error %s", name);
    return NULL;
}

void policy_run_next(struct policy_run *run)
{
    kinf__policy_next(&run->policy, run->now_ms, run->random, &run->action);
    assert_true(kinf__policy_check(&run->policy));
}

void policy_run_tell(struct policy_run *run, struct kinf__policy_event event)
{
    kinf__policy_event(&run->policy, run->now_ms, run->random, &event);
    assert_true(kinf__policy_check(&run->policy));
}

/* What the policy asks for, as a script would write it. */
static void describe(const struct kinf__policy_action *action, char *buf, size_t size)
{
    static const char *const names[] = {
        [KINF__DO_LIST] = "?list",   [KINF__DO_WATCH_LIST] = "?stream",
        [KINF__DO_WATCH] = "?watch", [KINF__DO_VERIFY] = "?verify",
        [KINF__DO_ASK] = "?ask",     [KINF__DO_STOP] = "?stop",
        [KINF__DO_WAIT] = NULL,
    };
    int len = 0;

    if (names[action->type] == NULL) {
        snprintf(buf, size, "?wait/%lld", (long long)action->wait_ms);
        return;
    }
    len = snprintf(buf, size, "%s", names[action->type]);
    if (action->rv[0] != '\0' && action->type != KINF__DO_ASK && action->type != KINF__DO_VERIFY)
        len += snprintf(buf + len, size - (size_t)len, "@%s", action->rv);
    if (action->continue_token[0] != '\0')
        len += snprintf(buf + len, size - (size_t)len, "+%s", action->continue_token);
    if (action->limit != 0)
        snprintf(buf + len, size - (size_t)len, ",%zu", action->limit);
}

static void expect(struct policy_run *run, const char *word, const char *script)
{
    char asked[256];

    policy_run_next(run);
    describe(&run->action, asked, sizeof asked);
    if (strcmp(word, "?wait") == 0)
        asked[strcspn(asked, "/")] = '\0';
    if (strcmp(asked, word) != 0)
        fail_msg("asks for %s instead of %s in: %s", asked, word, script);
    if (run->action.type == KINF__DO_WAIT)
        run->now_ms += run->action.wait_ms;
}

/* Cuts "VALUE/N" in two and returns N, 0 if there is none. */
static uint64_t cut_kb(char *value)
{
    char *slash = strchr(value, '/');

    if (slash == NULL)
        return 0;
    *slash = '\0';
    return strtoull(slash + 1, NULL, 10) * 1000;
}

static void happen_page(struct kinf__policy_event *event, char *value)
{
    char *plus;

    event->type = KINF__POLICY_LIST_PAGE;
    event->n_bytes = cut_kb(value);
    event->n_items = 100;
    event->n_remaining = event->n_bytes != 0 ? 9900 : -1;
    plus = strchr(value, '+');
    if (plus != NULL) {
        *plus = '\0';
        event->continue_token = plus + 1;
    }
}

static void happen(struct policy_run *run, const char *name, char *value)
{
    struct kinf__policy_event event = { .rv = value };

    if (strcmp(name, "resume") == 0) {
        kinf__policy_resume(&run->policy, value, 1000);
        return;
    }
    if (strcmp(name, "unconfirmed") == 0 || strcmp(name, "confirmed") == 0) {
        assert_int_equal(kinf__policy_is_confirmed(&run->policy), name[0] == 'c');
        return;
    }
    if (strcmp(name, "page") == 0 || strcmp(name, "news") == 0) {
        happen_page(&event, value);
        event.has_news = name[0] == 'n';
    } else if (strcmp(name, "initial") == 0) {
        event.type = KINF__POLICY_INITIAL_END;
        event.n_bytes = cut_kb(value);
    } else if (strcmp(name, "nolist") == 0 || strcmp(name, "cutlist") == 0) {
        event.type = KINF__POLICY_LIST_FAILED;
        event.has_begun = name[0] == 'c';
        event.err = error_named(value);
    } else if (strcmp(name, "nowatch") == 0) {
        event.type = KINF__POLICY_WATCH_FAILED;
        event.err = error_named(value);
    } else if (strcmp(name, "noverify") == 0) {
        event.type = KINF__POLICY_VERIFY_FAILED;
        event.err = error_named(value);
    } else if (strcmp(name, "error") == 0) {
        event.type = KINF__POLICY_WATCH_ERROR;
        event.err = error_named(value);
    } else if (strcmp(name, "rv") == 0 || strcmp(name, "bookmark") == 0) {
        event.type = KINF__POLICY_WATCH_RV;
        event.is_bookmark = name[0] == 'b';
    } else if (strcmp(name, "counted") == 0) {
        event.type = KINF__POLICY_VERIFIED;
        event.is_counted = true;
    } else if (strcmp(name, "not_gone") == 0) {
        event.type = KINF__POLICY_NOT_GONE;
    } else {
        while (strcmp(kinf__policy_event_to_string(event.type), name) != 0) {
            if (event.type++ == KINF__POLICY_STOP)
                fail_msg("no event %s", name);
        }
    }
    policy_run_tell(run, event);
}

void policy_run_play(struct policy_run *run, const char *script)
{
    char words[1024], *rest = words, *word;

    snprintf(words, sizeof words, "%s", script);
    while ((word = strsep(&rest, " ")) != NULL) {
        char *value = strchr(word, '=');

        if (word[0] == '?')
            expect(run, word, script);
        else if (word[0] == '+')
            run->now_ms += atoi(word + 1);
        else if (word[0] != '\0') {
            if (value != NULL)
                *value++ = '\0';
            happen(run, word, value);
        }
    }
}
