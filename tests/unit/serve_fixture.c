#include "unit/serve_fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "unit/swept_fake.h"
#include "unit/test.h"

#define PATIENCE_MS 30000

static uint64_t take_line(struct kinf_str line, void *ctx)
{
    struct serve_log *lines = ctx;
    int failed;

    kinf__mutex_lock(&lines->lock);
    failed = kinf__buffer_printf(&lines->text, "%.*s\n", (int)line.len, line.bytes);
    kinf__mutex_unlock(&lines->lock);
    return failed < 0;
}

void serve_add(struct serve_fixture *f, struct kinf_informer_options *informer,
               struct kinf__source_options *source)
{
    struct kinf_error err = KINF_ERROR_INIT;

    assert_int_equal(served_fake_add(&f->served, informer, source, &err), 0);
    served_fake_wait(&f->served);
}

void serve_setup_server(struct serve_fixture *f, bool passes)
{
    struct kinf_error err = KINF_ERROR_INIT;

    memset(f, 0, sizeof *f);
    kinf__mutex_init(&f->log.lock, KINF__RANK_LOG);
    f->fake = swept_fake_new();
    swept_fake_put(f->fake, "a", "1");
    swept_fake_put(f->fake, "b", "2");
    assert_int_equal(served_fake_begin(&f->served, f->fake, passes, take_line, &f->log, &err), 0);
}

void serve_setup(struct serve_fixture *f)
{
    serve_setup_server(f, true);
}

void serve_add_whole(struct serve_fixture *f)
{
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .name_space = NULL };

    serve_add(f, &informer, &source);
}

void serve_setup_whole(struct serve_fixture *f)
{
    serve_setup(f);
    serve_add_whole(f);
}

void serve_teardown(struct serve_fixture *f)
{
    served_fake_end(&f->served);
    kinf_fake_free(f->fake);
    kinf__buffer_release(&f->log.text);
    kinf__mutex_release(&f->log.lock);
}

/* --- a client --- */

int serve_send_request(const struct serve_fixture *f, const char *line, const char *headers)
{
    char text[8192];

    snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n",
             line, headers);
    return served_fake_send(&f->served, text);
}

static bool says(const struct served_answer *answer, const char *word)
{
    return strstr(answer->head, word) != NULL || strstr(answer->body, word) != NULL;
}

static bool says_all(const struct served_answer *answer, const char *words)
{
    char text[1024], *rest = text;
    const char *word;

    snprintf(text, sizeof text, "%s", words != NULL ? words : "");
    while ((word = strsep(&rest, "\n")) != NULL) {
        if (!says(answer, word))
            return false;
    }
    return true;
}

void serve_expect_answer(struct served_answer *answer, const char *what, int status,
                         const char *has, const char *lacks)
{
    if (answer->status != status || !says_all(answer, has) ||
        (lacks != NULL && says(answer, lacks)))
        fail_msg("%s: %d, not %d\n%s\n%s", what, answer->status, status, answer->head,
                 answer->body);
    served_answer_release(answer);
}

void serve_expect(const struct serve_fixture *f, const char *line, const char *headers, int status,
                  const char *has, const char *lacks)
{
    struct served_answer answer = served_fake_answer(serve_send_request(f, line, headers));

    serve_expect_answer(&answer, line, status, has, lacks);
}

void serve_expect_all(const struct serve_fixture *f, const struct serve_expected *rows,
                      size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++)
        serve_expect(f, rows[i].line, rows[i].headers, rows[i].status, rows[i].has, rows[i].lacks);
}

size_t serve_n_under_way(const struct serve_fixture *f)
{
    return kinf__server_n_exchanges(f->served.server);
}

void serve_wait_until_under_way(const struct serve_fixture *f, size_t n)
{
    for (int i = 0; i < PATIENCE_MS && serve_n_under_way(f) != n; i++)
        usleep(1000);
    assert_int_equal(serve_n_under_way(f), n);
}

void serve_wait_until_logged(struct serve_fixture *f, const char *word)
{
    bool has = false;

    for (int i = 0; i < PATIENCE_MS && !has; i++) {
        const char *text;

        usleep(1000);
        kinf__mutex_lock(&f->log.lock);
        text = kinf__buffer_cstr(&f->log.text);
        has = text != NULL && strstr(text, word) != NULL;
        kinf__mutex_unlock(&f->log.lock);
    }
    if (!has)
        fail_msg("no %s in\n%s", word, kinf__buffer_cstr(&f->log.text));
}
