/*
 * The aids of unit tests.
 */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"

struct test_random test_random_init(const char *test)
{
    const char *given = getenv("KINF_TEST_SEED");
    struct test_random random;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    random.state = given != NULL ? strtoull(given, NULL, 0)
                                 : (uint64_t)now.tv_sec * 1000000007U ^ (uint64_t)now.tv_nsec;
    printf("%s: KINF_TEST_SEED=0x%llx\n", test, (unsigned long long)random.state);
    return random;
}

uint64_t test_random_next(struct test_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

size_t test_random_below(struct test_random *random, size_t limit)
{
    return (size_t)(test_random_next(random) % limit);
}

/* The builds that run slower, and valgrind. */
static const struct {
    const char *mode;
    size_t divisor;
    int64_t stop_ms;
} slow[] = {
    { "asan", 4, 1000 }, { "tsan", 8, 1000 }, { "valgrind", 16, 20000 }, { "arm64", 16, 5000 }
};

static size_t how_slow(void)
{
    const char *mode = getenv("KINF_TEST_MODE");
    size_t i = 0;

    while (i < KINF__ARRAY_LEN(slow) && (mode == NULL || strcmp(mode, slow[i].mode) != 0))
        i++;
    return i;
}

size_t test_rounds(size_t n)
{
    size_t i = how_slow(), divisor = i < KINF__ARRAY_LEN(slow) ? slow[i].divisor : 1;

    return n / divisor != 0 ? n / divisor : 1;
}

void test_skip_in_valgrind(const char *why)
{
    const char *mode = getenv("KINF_TEST_MODE");

    if (mode == NULL || strcmp(mode, "valgrind") != 0)
        return;
    print_message("not in valgrind: %s\n", why);
    skip();
}

int64_t test_stop_limit_ms(void)
{
    size_t i = how_slow();

    return i < KINF__ARRAY_LEN(slow) ? slow[i].stop_ms : 200;
}

void test_model(const char *test, size_t n_rounds, void (*run)(struct test_random *random))
{
    struct test_random random = test_random_init(test);

    for (size_t n = test_rounds(n_rounds); n > 0; n--)
        run(&random);
}

const char *test_data_dir(void)
{
    const char *dir = getenv("KINF_TEST_DATA");

    return dir != NULL ? dir : "tests/data";
}

char *test_read_data(const char *name, size_t *ret_len)
{
    char path[1024];
    size_t len = 0, size = 1 << 16;
    char *bytes = malloc(size + 1);
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", test_data_dir(), name);
    file = fopen(path, "rb");
    if (file == NULL || bytes == NULL)
        fail_msg("cannot read %s", path);
    for (size_t n; (n = fread(bytes + len, 1, size - len, file)) > 0;) {
        len += n;
        if (len == size) {
            size *= 2;
            bytes = realloc(bytes, size + 1);
            assert_non_null(bytes);
        }
    }
    fclose(file);
    bytes[len] = '\0';
    *ret_len = len;
    return bytes;
}
