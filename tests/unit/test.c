/*
 * The aids of unit tests.
 */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

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

size_t test_rounds(size_t n)
{
    const char *mode = getenv("KINF_TEST_MODE");
    size_t divisor = 1;

    if (mode != NULL && strcmp(mode, "asan") == 0)
        divisor = 4;
    else if (mode != NULL && strcmp(mode, "tsan") == 0)
        divisor = 8;
    return n / divisor != 0 ? n / divisor : 1;
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
