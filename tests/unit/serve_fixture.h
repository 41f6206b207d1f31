/*
 * A served fake (served_fake.h) that has default/a and default/b and notes its log, and what is
 * expected of its answers.
 */
#ifndef KINF_TESTS_UNIT_SERVE_FIXTURE_H
#define KINF_TESTS_UNIT_SERVE_FIXTURE_H

#include "base/lock.h"
#include "unit/served_fake.h"

#define OBJECTS "/api/v1/namespaces/default/configmaps"
#define TOKEN   "Authorization: Bearer t\r\n"
#define TABLE   "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"

struct serve_log {
    struct kinf__mutex lock;
    struct kinf__buffer text;
};

struct serve_fixture {
    struct kinf_fake *fake;
    struct served_fake served;
    struct serve_log log;
};

/* Without a source; what it does not have it passes on, if it `passes`. */
void serve_setup_server(struct serve_fixture *f, bool passes);
/* That passes on what it does not have. */
void serve_setup(struct serve_fixture *f);
/* With a source of all ConfigMaps. */
void serve_setup_whole(struct serve_fixture *f);
void serve_teardown(struct serve_fixture *f);

/* One more source, until it is filled; of all ConfigMaps. */
void serve_add(struct serve_fixture *f, struct kinf_informer_options *informer,
               struct kinf__source_options *source);
void serve_add_whole(struct serve_fixture *f);

/* --- answers --- */

/* `line`: method and target; `headers`: each with its line's end. Returns the connection. */
int serve_send_request(const struct serve_fixture *f, const char *line, const char *headers);

struct serve_expected {
    const char *line, *headers;
    int status;
    const char *has; /* each line of it is a part of head or body; NULL: nothing */
    const char *lacks;
};

/* The answer is freed. */
void serve_expect_answer(struct served_answer *answer, const char *what, int status,
                         const char *has, const char *lacks);
void serve_expect(const struct serve_fixture *f, const char *line, const char *headers, int status,
                  const char *has, const char *lacks);
void serve_expect_all(const struct serve_fixture *f, const struct serve_expected *rows,
                      size_t n_rows);

/* --- what goes on --- */

size_t serve_n_under_way(const struct serve_fixture *f);
void serve_wait_until_under_way(const struct serve_fixture *f, size_t n);
/* A line is written when its request has been forgotten. */
void serve_wait_until_logged(struct serve_fixture *f, const char *word);

#endif
