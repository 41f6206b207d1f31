/*
 * Texts told by others: each comes back as it was, by few bytes if it is like the other one, and
 * whatever else is read does no harm.
 */
#include "object/difference.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "unit/test.h"

#define MUCH 65536
#define BASE                                                                                       \
    "{\"name\":\"web-1\",\"uid\":\"0c7e\",\"a\":\"2026-11-27T10:00:00Z\",\"n\":12,"                \
    "\"b\":\"2026-11-27T10:00:00Z\",\"list\":[{\"key\":\"first\",\"value\":true},"                 \
    "{\"key\":\"second\",\"value\":false},{\"key\":\"third\",\"value\":null}],\"end\":\"\"}"

/* An allocation of so many bytes, past which nothing is read or written unseen. */
static char *exactly(const char *bytes, size_t len)
{
    char *copy = malloc(len != 0 ? len : 1);

    assert_non_null(copy);
    if (len != 0 && bytes != NULL)
        memcpy(copy, bytes, len);
    return copy;
}

/* How many bytes it takes to tell `text` by `base`, which gives `text` again. */
static size_t told_in(struct kinf_str text, struct kinf_str base)
{
    char *base_copy = exactly(base.bytes, base.len), *text_copy = exactly(text.bytes, text.len);
    struct kinf_str exact_base = { base_copy, base.len }, exact_text = { text_copy, text.len };
    char *buf = exactly(NULL, MUCH), *difference, *again = exactly(NULL, text.len);
    size_t n = kinf__difference_write(exact_text, exact_base, buf, MUCH);

    assert_in_range(n, 1, MUCH);
    difference = exactly(buf, n);
    assert_true(
        kinf__difference_read((struct kinf_str){ difference, n }, exact_base, again, text.len));
    if (text.len != 0)
        assert_memory_equal(again, text.bytes, text.len);
    free(buf);
    free(difference);
    free(again);
    free(base_copy);
    free(text_copy);
    return n;
}

static size_t n_bytes(const char *text, const char *base)
{
    return told_in(kinf_str_from(text), kinf_str_from(base));
}

/* BASE with `from` replaced by `to`, each time. */
static const char *with(const char *from, const char *to)
{
    static char text[sizeof BASE * 4];
    const char *at = BASE, *found;
    size_t len = 0;

    while ((found = strstr(at, from)) != NULL) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%.*s%s", (int)(found - at), at, to);
        at = found + strlen(from);
    }
    snprintf(text + len, sizeof text - len, "%s", at);
    return text;
}

static void what_is_equal_is_a_number(void **state)
{
    (void)state;
    assert_int_equal(n_bytes("", ""), 1);
    assert_int_equal(n_bytes("", BASE), 1);
    assert_int_equal(n_bytes(BASE, BASE), 2);
}

static void a_value_is_told_with_three_numbers(void **state)
{
    (void)state;
    assert_int_equal(n_bytes(with("0c7e", "91b2"), BASE), 1 + 1 + 4 + 2);
    assert_int_equal(n_bytes(with("0c7e", "91b2ff"), BASE), 1 + 1 + 6 + 1 + 2);
    assert_int_equal(n_bytes(with("0c7e", ""), BASE), 1 + 1 + 0 + 1 + 2);
    assert_int_equal(n_bytes(with("\"end\":\"\"", "\"end\":\"now\""), BASE),
                     2 + 1 + 5 + 1 + 1); /* less than eight bytes behind it are no place to meet */
}

static void what_was_said_is_not_said_again(void **state)
{
    size_t once, twice;

    (void)state;
    once = n_bytes(with("\"b\":\"2026-11-27T10:00:00Z", "\"b\":\"2026-11-27T11:30:59Z"), BASE);
    twice = n_bytes(with("2026-11-27T10:00:00Z", "2026-11-27T11:30:59Z"), BASE);
    assert_int_equal(twice, once + 1 + 1);
}

/* Of what is told again, the last eight. */
static void what_was_said_long_ago_is_said_again(void **state)
{
    KINF__AUTO_BUFFER base = KINF__BUFFER_INIT;
    size_t sizes[2];

    (void)state;
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(kinf__buffer_printf(&base, "\"key-%zu\":\"----------------\",", i), 0);
    assert_int_equal(kinf__buffer_append_str(&base, KINF_STR("\"end\":true")), 0);
    for (size_t i = 0; i < 2; i++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

        for (size_t j = 0; j < 10; j++)
            assert_int_equal(kinf__buffer_printf(&text, "\"key-%zu\":\"%016zu\",", j, j % (8 + i)),
                             0);
        assert_int_equal(kinf__buffer_append_str(&text, KINF_STR("\"end\":true")), 0);
        sizes[i] = told_in(kinf__buffer_str(&text), kinf__buffer_str(&base));
    }
    assert_int_equal(sizes[1] - sizes[0], 16 + 16);
}

static void what_is_added_left_out_or_moved_is_told_in_few_bytes(void **state)
{
    (void)state;
    assert_in_range(n_bytes(with("\"n\":12,", "\"n\":12,\"more\":\"of it\","), BASE), 1, 32);
    assert_in_range(n_bytes(with("{\"key\":\"second\",\"value\":false},", ""), BASE), 1, 32);
    assert_in_range(
        n_bytes(with("\"list\":[", "\"list\":[{\"key\":\"zeroth\",\"value\":3},"), BASE), 1, 48);
    assert_in_range(n_bytes("{\"list\":[{\"key\":\"first\",\"value\":true}],"
                            "\"b\":\"2026-11-27T10:00:00Z\",\"name\":\"web-1\",\"uid\":\"0c7e\"}",
                            BASE),
                    1, 64);
}

static void what_is_not_alike_comes_back_too(void **state)
{
    (void)state;
    assert_int_equal(n_bytes("no mark in it", BASE), 1 + 1 + 13 + 1 + 1);
    assert_int_equal(n_bytes(BASE, ""), 1 + 2 + sizeof BASE - 1 + 2 + 1);
    assert_in_range(n_bytes(BASE, "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""), sizeof BASE,
                    sizeof BASE + 8);
    assert_in_range(n_bytes("\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"", BASE), 1,
                    64);
}

/* Whatever the room: nothing behind it is written, and what is returned is the whole. */
static void without_room_there_is_none(void **state)
{
    struct kinf_str base = kinf_str_from(BASE), text = kinf_str_from(with("1", "7777"));
    size_t n_needed = told_in(text, base), n_refused = 0;

    (void)state;
    for (size_t room = 0; room < n_needed + 20; room++) {
        char *buf = exactly(NULL, room);
        size_t n = kinf__difference_write(text, base, buf, room);

        assert_true(n == 0 || n == n_needed);
        n_refused += n == 0;
        free(buf);
    }
    assert_in_range(n_refused, n_needed, n_needed + 10);
}

/* A text that begins again and again what the base has a megabyte of: none of it is looked through each time. */
static void long_values_are_not_looked_through_again_and_again(void **state)
{
    enum { LEN = 8 << 20, N_BEGINNINGS = 100000 };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    char *base = malloc(LEN), *buf = malloc(LEN);
    struct timespec began, ended;

    (void)state;
    assert_non_null(base);
    assert_non_null(buf);
    memset(base, 'x', LEN);
    memcpy(base, "\"1\"\"2\"\"", 7);
    assert_int_equal(kinf__buffer_append_str(&text, KINF_STR("\"2\"")), 0);
    for (size_t i = 0; i < N_BEGINNINGS; i++)
        assert_int_equal(kinf__buffer_append_str(&text, KINF_STR("\"xxxxxxxxxxxxxxxxxxy")), 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    assert_true(kinf__difference_write(kinf__buffer_str(&text), (struct kinf_str){ base, LEN }, buf,
                                       LEN) > N_BEGINNINGS);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
    assert_in_range(ended.tv_sec - began.tv_sec, 0, 4); /* it was ten */
    free(base);
    free(buf);
}

/* Values of JSON, and what else may stand between marks. */
static void append_random(struct test_random *random, struct kinf__buffer *text)
{
    static const char *const words[] = { "\"",        "\"name\":", "\"value\":\"", "\\\"",
                                         "2026-11-",  "{\"a\":",   "}],",          "12",
                                         "",          "\"\",",     "0c7e91b2",     "true,",
                                         "\"key\":{", "x",         "\n  " };

    assert_int_equal(
        kinf__buffer_append_str(
            text, kinf_str_from(words[test_random_below(random, sizeof words / sizeof *words)])),
        0);
}

/* A base, and a text with many of its pieces, in their order most of the time. */
static void texts_come_back(struct test_random *random)
{
    KINF__AUTO_BUFFER base = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    size_t n_words = test_random_below(random, 300), at = 0;

    for (size_t i = 0; i < n_words; i++)
        append_random(random, &base);
    while (at < base.len) {
        size_t n = test_random_below(random, 60);

        if (test_random_below(random, 8) == 0)
            at = test_random_below(random, base.len);
        n = n < base.len - at ? n : base.len - at;
        assert_int_equal(kinf__buffer_append(&text, base.bytes + at, n), 0);
        at += n + (test_random_below(random, 3) == 0 ? test_random_below(random, 9) : 0);
        for (size_t i = test_random_below(random, 3); i > 0; i--)
            append_random(random, &text);
        if (text.len > MUCH / 4)
            break;
    }
    told_in(kinf__buffer_str(&text), kinf__buffer_str(&base));
}

static void whatever_differs_comes_back(void **state)
{
    (void)state;
    test_model("difference", 400, texts_come_back);
}

/* It is found to be none, or gives as many bytes. */
static void read_damaged(const char *bytes, size_t n, struct kinf_str base, size_t len)
{
    char *exact = exactly(bytes, n), *buf = exactly(NULL, len);

    (void)!kinf__difference_read((struct kinf_str){ exact, n }, base, buf, len);
    free(exact);
    free(buf);
}

static void what_is_damaged_does_no_harm(void **state)
{
    struct kinf_str base = kinf_str_from(BASE), text = kinf_str_from(with("1", "7777"));
    char good[MUCH], bad[MUCH], buf[MUCH];
    size_t n = kinf__difference_write(text, base, good, sizeof good);

    (void)state;
    assert_true(n > 20);
    for (size_t i = 0; i < n; i++) {
        read_damaged(good, i, base, text.len);
        for (unsigned bit = 0; bit < 8; bit++) {
            memcpy(bad, good, n);
            bad[i] = (char)(bad[i] ^ (1 << bit));
            read_damaged(bad, n, base, text.len);
        }
    }
    assert_false(kinf__difference_read(KINF_STR(""), base, buf, 0));
    assert_false(kinf__difference_read((struct kinf_str){ good, n }, base, buf, text.len - 1));
    assert_false(kinf__difference_read((struct kinf_str){ good, n }, base, buf, text.len + 1));
    assert_false(kinf__difference_read((struct kinf_str){ good, n }, KINF_STR(""), buf, text.len));
    assert_false(
        kinf__difference_read(KINF_STR("\x01\x02\x00"), base, buf, 1)); /* said before whom */
    assert_false(kinf__difference_read(KINF_STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
                                       base, buf, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_equal_is_a_number),
        cmocka_unit_test(a_value_is_told_with_three_numbers),
        cmocka_unit_test(what_was_said_is_not_said_again),
        cmocka_unit_test(what_was_said_long_ago_is_said_again),
        cmocka_unit_test(what_is_added_left_out_or_moved_is_told_in_few_bytes),
        cmocka_unit_test(what_is_not_alike_comes_back_too),
        cmocka_unit_test(without_room_there_is_none),
        cmocka_unit_test(long_values_are_not_looked_through_again_and_again),
        cmocka_unit_test(whatever_differs_comes_back),
        cmocka_unit_test(what_is_damaged_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
