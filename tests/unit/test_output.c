/*
 * Standard output for several threads: lines stay whole, and nobody waits for a reader in vain.
 */
#include "daemon/output.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit/test.h"

#define LINE_BYTES 200000 /* of 'a' or 'b': more than a pipe has room for */

struct fixture {
    struct kinf__output output;
    int fds[2];
};

static void begin(struct fixture *f)
{
    assert_int_equal(pipe(f->fds), 0);
    assert_int_equal(kinf__output_init(&f->output, f->fds[1], "the pipe", NULL), 0);
}

static void end(struct fixture *f)
{
    kinf__output_release(&f->output);
    close(f->fds[0]);
    close(f->fds[1]);
}

struct writer {
    struct kinf__output *output;
    struct kinf__stop left;
    char byte;
    int result;
    pthread_t thread;
};

static void *write_line(void *ctx)
{
    struct writer *writer = ctx;
    char *line = malloc(LINE_BYTES);

    memset(line, writer->byte, LINE_BYTES);
    line[LINE_BYTES - 1] = '\n';
    writer->result = kinf__output_write(writer->output, &writer->left, line, LINE_BYTES, NULL);
    free(line);
    return NULL;
}

static void start(struct fixture *f, struct writer *writer, char byte)
{
    *writer = (struct writer){ .output = &f->output, .byte = byte };
    assert_int_equal(pthread_create(&writer->thread, NULL, write_line, writer), 0);
}

static int join(struct writer *writer)
{
    assert_int_equal(pthread_join(writer->thread, NULL), 0);
    return writer->result;
}

static char read_byte(const struct fixture *f)
{
    char byte = '\0';

    assert_int_equal(read(f->fds[0], &byte, 1), 1);
    return byte;
}

/* The rest of a line of which one byte was read. */
static void assert_rest_of_line(const struct fixture *f, char byte)
{
    for (size_t i = 1; i < LINE_BYTES - 1; i++)
        assert_int_equal(read_byte(f), byte);
    assert_int_equal(read_byte(f), '\n');
}

static void who_leaves_waits_no_more_and_its_line_is_ended_by_the_next(void **state)
{
    struct writer first, second;
    struct fixture f;

    (void)state;
    begin(&f);
    start(&f, &first, 'a');
    assert_int_equal(read_byte(&f), 'a'); /* it has begun */
    start(&f, &second, 'b');
    kinf__output_leave(&f.output, &first.left);
    assert_int_equal(join(&first), KINF_ERR_STOPPED);
    assert_rest_of_line(&f, 'a');
    assert_int_equal(read_byte(&f), 'b');
    assert_rest_of_line(&f, 'b');
    assert_int_equal(join(&second), 0);
    assert_int_equal(kinf__output_write(&f.output, &first.left, "c\n", 2, NULL), KINF_ERR_STOPPED);
    assert_int_equal(kinf__output_write(&f.output, &second.left, "d\n", 2, NULL), 0);
    assert_int_equal(read_byte(&f), 'd');
    end(&f);
}

static void who_leaves_before_its_turn_writes_nothing(void **state)
{
    struct writer first, second;
    struct fixture f;

    (void)state;
    begin(&f);
    start(&f, &first, 'a');
    assert_int_equal(read_byte(&f), 'a');
    start(&f, &second, 'b');
    kinf__output_leave(&f.output, &second.left);
    assert_int_equal(join(&second), KINF_ERR_STOPPED);
    assert_rest_of_line(&f, 'a');
    assert_int_equal(join(&first), 0);
    end(&f);
}

static void a_stop_ends_all(void **state)
{
    struct writer first, second;
    struct fixture f;

    (void)state;
    begin(&f);
    start(&f, &first, 'a');
    start(&f, &second, 'b');
    (void)read_byte(&f);
    kinf__output_stop(&f.output);
    assert_int_equal(join(&first), KINF_ERR_STOPPED);
    assert_int_equal(join(&second), KINF_ERR_STOPPED);
    assert_int_equal(kinf__output_write(&f.output, NULL, "c\n", 2, NULL), KINF_ERR_STOPPED);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_leaves_waits_no_more_and_its_line_is_ended_by_the_next),
        cmocka_unit_test(who_leaves_before_its_turn_writes_nothing),
        cmocka_unit_test(a_stop_ends_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
