/*
 * Structs of options of other versions: shorter, longer, and of no version at all.
 */
#include <kinformer/kinformer.h>
#include <kinformer/testing.h>

#include <string.h>

#include "base/compiler.h"
#include "base/misuse.h"
#include "unit/test.h"

struct of_old {
    size_t size;
    const char *text;
};

struct of_now {
    size_t size;
    const char *text;
    int64_t number;
};

/* "All zero but size", as each header says: also of what an older program has compiled in. */
#define CHECK_INIT(tag, init)                                                                      \
    do {                                                                                           \
        static const struct tag initial = init; /* static: its padding is zero */                  \
        static const struct tag zero = { .size = sizeof zero };                                    \
                                                                                                   \
        assert_memory_equal(&initial, &zero, sizeof zero);                                         \
    } while (0)

static void init_macros_set_the_size_and_nothing_else(void **state)
{
    (void)state;
    CHECK_INIT(kinf_informer_options, KINF_INFORMER_OPTIONS_INIT);
    CHECK_INIT(kinf_client_options, KINF_CLIENT_OPTIONS_INIT);
    CHECK_INIT(kinf_deltafifo_options, KINF_DELTAFIFO_OPTIONS_INIT);
    CHECK_INIT(kinf_queue_options, KINF_QUEUE_OPTIONS_INIT);
    CHECK_INIT(kinf_queue_add_options, KINF_QUEUE_ADD_OPTIONS_INIT);
    CHECK_INIT(kinf_fake_options, KINF_FAKE_OPTIONS_INIT);
    CHECK_INIT(kinf_request, KINF_REQUEST_INIT);
}

static void what_an_older_struct_does_not_have_is_at_its_default(void **state)
{
    const struct {
        struct of_old options;
        int64_t behind; /* is not the struct's */
    } given = { { sizeof(struct of_old), "a" }, 7 };
    struct of_now own;

    (void)state;
    memset(&own, 0xff, sizeof own);
    assert_int_equal(kinf__options_read(&own, sizeof own, &given, "struct of_now", NULL), 0);
    assert_int_equal(own.size, sizeof own);
    assert_string_equal(own.text, "a");
    assert_int_equal(own.number, 0);
}

static void what_a_newer_struct_has_more_is_passed_over(void **state)
{
    const struct of_now given = { sizeof given, "a", 7 };
    struct {
        struct of_old options;
        int64_t behind;
    } own = { { 0, NULL }, 5 };

    (void)state;
    assert_int_equal(
        kinf__options_read(&own.options, sizeof own.options, &given, "struct of_old", NULL), 0);
    assert_int_equal(own.options.size, sizeof own.options);
    assert_string_equal(own.options.text, "a");
    assert_int_equal(own.behind, 5);
}

static void a_size_that_no_version_has_is_refused(void **state)
{
    static const size_t sizes[] = { 0, 1, 8, 17, 4104, SIZE_MAX, SIZE_MAX - 7 };
    kinf_auto_fake struct kinf_fake *fake = NULL;
    kinf_auto_factory struct kinf_factory *factory = NULL;
    kinf_auto_queue struct kinf_queue *queue = NULL;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_client_options client_options = KINF_CLIENT_OPTIONS_INIT;
    struct kinf_deltafifo_options fifo_options = KINF_DELTAFIFO_OPTIONS_INIT;
    struct kinf_queue_options queue_options = KINF_QUEUE_OPTIONS_INIT;
    struct kinf_queue_add_options add_options = KINF_QUEUE_ADD_OPTIONS_INIT;
    struct kinf_fake_options fake_options = KINF_FAKE_OPTIONS_INIT;
    struct kinf_request request = KINF_REQUEST_INIT;
    static const char *const names[] = { "default" };
    struct kinf_namespaces *namespaces;
    struct kinf_informer *informer;
    struct kinf_deltafifo *fifo;
    struct kinf_client *client;
    struct kinf_queue *no_queue;
    struct kinf_fake *other;

    (void)state;
    assert_int_equal(kinf_fake_new(NULL, &fake, NULL), 0);
    assert_int_equal(kinf_factory_new(kinf_fake_client(fake), &factory, NULL), 0);
    assert_int_equal(kinf_queue_new(NULL, &queue, NULL), 0);
    options.resource = "pods";
    for (size_t i = 0; i < KINF__ARRAY_LEN(sizes); i++) {
        struct kinf_error err = KINF_ERROR_INIT;

        options.size = client_options.size = fifo_options.size = sizes[i];
        fake_options.size = request.size = queue_options.size = add_options.size = sizes[i];
        assert_int_equal(kinf_informer_new(kinf_fake_client(fake), &options, &informer, &err),
                         KINF_ERR_INVALID);
        assert_non_null(strstr(err.message, "struct kinf_informer_options.size is "));
        assert_int_equal(kinf_factory_informer(factory, &options, &informer, NULL),
                         KINF_ERR_INVALID);
        assert_int_equal(
            kinf_namespaces_new(kinf_fake_client(fake), &options, names, 1, &namespaces, NULL),
            KINF_ERR_INVALID);
        assert_int_equal(kinf_client_new(&client_options, &client, NULL), KINF_ERR_INVALID);
        assert_int_equal(kinf_deltafifo_new(&fifo_options, &fifo, NULL), KINF_ERR_INVALID);
        assert_int_equal(kinf_queue_new(&queue_options, &no_queue, NULL), KINF_ERR_INVALID);
        assert_int_equal(kinf_queue_add_with(queue, "a", &add_options, NULL), KINF_ERR_INVALID);
        assert_int_equal(kinf_fake_new(&fake_options, &other, NULL), KINF_ERR_INVALID);
        assert_int_equal(kinf_client_request(kinf_fake_client(fake), &request, NULL, &err),
                         KINF_ERR_INVALID);
        assert_non_null(strstr(err.message, "struct kinf_request.size is "));
    }
}

/* What the first program with sizes was compiled with still works: `order` came behind. */
static void a_queue_takes_options_that_end_in_front_of_a_member(void **state)
{
    struct kinf_deltafifo_options options = KINF_DELTAFIFO_OPTIONS_INIT;
    struct kinf_deltafifo *fifo;

    (void)state;
    options.size = offsetof(struct kinf_deltafifo_options, replace_as_sync);
    options.order = (enum kinf_fifo_order)99;
    assert_int_equal(kinf_deltafifo_new(&options, &fifo, NULL), 0);
    kinf_deltafifo_free(fifo);
    options.size = sizeof options;
    assert_int_equal(kinf_deltafifo_new(&options, &fifo, NULL), KINF_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_macros_set_the_size_and_nothing_else),
        cmocka_unit_test(what_an_older_struct_does_not_have_is_at_its_default),
        cmocka_unit_test(what_a_newer_struct_has_more_is_passed_over),
        cmocka_unit_test(a_size_that_no_version_has_is_refused),
        cmocka_unit_test(a_queue_takes_options_that_end_in_front_of_a_member),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
