/*
 * /debug/state while thousands watch, begin and end: a document in slices.
 */
#include <string.h>

#include <cjson/cJSON.h>

#include "json/tree.h"
#include "serve/exchange_priv.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define N_MANY      1000
#define SLICE_BYTES 32768 /* at most, with the last entry */

static const char *const names[] = { "things", "others" };

struct fixture {
    struct kinf__server *server;
    struct kinf_indexer *indexers[2];
    struct kinf__source *sources[2];
    struct kinf__exchange *watches[N_MANY];
    size_t n_watches;
};

static void ignore(void *ctx)
{
    (void)ctx;
}

static bool is_gone(void *ctx)
{
    (void)ctx;
    return false;
}

/* --- a server of two types --- */

static void add_source(struct fixture *f, size_t i)
{
    static const char object[] = "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\","
                                 "\"resourceVersion\":\"3\"}}";
    struct kinf__source_options options = { .name_space = NULL };
    const struct kinf_object *one;
    const struct kinf_type *type;

    assert_int_equal(kinf_type_intern("", "v1", names[i], names[i], true, &type, NULL), 0);
    assert_int_equal(kinf_indexer_new(NULL, 0, &f->indexers[i], NULL), 0);
    assert_int_equal(kinf_object_new_from_json(type, object, strlen(object), &one, NULL), 0);
    assert_int_equal(kinf_indexer_add(f->indexers[i], one, NULL, NULL), 0);
    kinf_object_unref(one);
    options.store.type = type;
    options.store.indexer = f->indexers[i];
    assert_int_equal(kinf__server_add_source(f->server, &options, &f->sources[i], NULL), 0);
    kinf__server_publish_source(f->server, f->sources[i]);
}

static void set_catalog(struct fixture *f)
{
    struct kinf__catalog *catalog;

    assert_int_equal(kinf__catalog_new(&catalog), 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        const struct kinf__catalog_entry entry = { .group = (char[]){ "" },
                                                   .version = (char[]){ "v1" },
                                                   .resource.name = (char *)names[i],
                                                   .resource.singular = (char[]){ "thing" },
                                                   .resource.kind = (char[]){ "Thing" },
                                                   .resource.namespaced = true };

        assert_int_equal(kinf__catalog_add(catalog, &entry), 0);
    }
    kinf__server_set_catalog(f->server, catalog);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    assert_int_equal(kinf__server_new(&(struct kinf__server_options){ 0 }, &f->server, NULL), 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++)
        add_source(f, i);
    set_catalog(f);
    *state = f;
    return 0;
}

static void retire(struct fixture *f, size_t i)
{
    kinf__server_retire_source(f->server, f->sources[i]);
    kinf__source_free(f->sources[i]);
    f->sources[i] = NULL;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < f->n_watches; i++)
        kinf__exchange_free(f->watches[i]);
    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        if (f->sources[i] != NULL)
            retire(f, i);
        kinf_indexer_free(f->indexers[i]);
    }
    kinf__server_free(f->server);
    free(f);
    return 0;
}

/* --- requests --- */

static struct kinf__exchange *ask(struct fixture *f, const char *target,
                                  const struct kinf__answer **ret_answer)
{
    const struct kinf__exchange_owner owner = { .wake = ignore,
                                                .cut_off = ignore,
                                                .is_gone = is_gone };
    const struct kinf__request_head head = { .method = "GET", .target = kinf_str_from(target) };
    struct kinf__exchange *exchange = kinf__exchange_new(f->server, &owner, &head, NULL);

    assert_non_null(exchange);
    *ret_answer = kinf__exchange_step(exchange);
    assert_non_null(*ret_answer);
    return exchange;
}

static struct kinf__exchange *watch(struct fixture *f, size_t type)
{
    static const char *const targets[] = { "/api/v1/things?watch=1", "/api/v1/others?watch=1" };
    const struct kinf__answer *answer;
    struct kinf__exchange *exchange = ask(f, targets[type], &answer);

    assert_int_equal(answer->code, 200);
    return exchange;
}

static void watch_many(struct fixture *f, size_t type, size_t n)
{
    while (n-- > 0)
        f->watches[f->n_watches++] = watch(f, type);
}

/* A slice; false at the end. */
static bool read_slice(const struct kinf__answer *answer, struct kinf__buffer *text)
{
    static char bytes[2 * SLICE_BYTES];
    ssize_t n = answer->stream->read(answer->stream, bytes, sizeof bytes);

    if (n == KINF__STREAM_END)
        return false;
    assert_in_range(n, 1, SLICE_BYTES);
    assert_int_equal(kinf__buffer_append(text, bytes, (size_t)n), 0);
    return true;
}

static struct cJSON *parse(const struct kinf__buffer *text)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct cJSON *tree;

    if (kinf__json_tree_parse(kinf__buffer_str(text), &tree, &err) < 0)
        fail_msg("%s", err.message);
    return tree;
}

/* The whole document. */
static struct cJSON *state_at(struct fixture *f, const char *target)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    const struct kinf__answer *answer;
    struct kinf__exchange *exchange = ask(f, target, &answer);

    assert_int_equal(answer->code, 200);
    if (answer->stream == NULL)
        assert_int_equal(kinf__buffer_append_str(&text, kinf__buffer_str(&answer->body)), 0);
    else
        while (read_slice(answer, &text))
            continue;
    kinf__exchange_free(exchange);
    return parse(&text);
}

static const struct cJSON *informer(const struct cJSON *tree, const char *name)
{
    const struct cJSON *one =
        kinf__json_tree_first(kinf__json_tree_find(tree, "informers", (char *)NULL));

    while (one != NULL &&
           strcmp(kinf__json_tree_string(kinf__json_tree_find(one, "name", (char *)NULL)), name) !=
               0)
        one = kinf__json_tree_next(one);
    return one;
}

/* Negative: they are not told. */
static int n_watchers(const struct cJSON *tree, const char *name)
{
    const struct cJSON *watchers =
        kinf__json_tree_find(informer(tree, name), "watchers", (char *)NULL);

    return watchers != NULL ? cJSON_GetArraySize(watchers) : -1;
}

/* --- slices --- */

static void a_thousand_watchers_are_told_in_slices_each_once(void **state)
{
    struct fixture *f = *state;
    const struct cJSON *one;
    struct cJSON *tree;
    double last = 0;
    int n = 0;

    watch_many(f, 0, N_MANY - 1);
    watch_many(f, 1, 1);
    tree = state_at(f, "/debug/state");
    assert_int_equal(n_watchers(tree, "others"), 1);
    one = kinf__json_tree_first(
        kinf__json_tree_find(informer(tree, "things"), "watchers", (char *)NULL));
    for (; one != NULL; one = kinf__json_tree_next(one), n++) {
        double id = kinf__json_tree_find(one, "id", (char *)NULL)->valuedouble;

        assert_true(id > last);
        last = id;
    }
    assert_int_equal(n, N_MANY - 1);
    kinf__json_tree_free(tree);
}

static void watches_that_begin_and_end_meanwhile_do_no_harm(void **state)
{
    struct fixture *f = *state;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    const struct kinf__answer *answer, *another;
    struct kinf__exchange *exchange, *beside;
    struct cJSON *tree;

    watch_many(f, 0, 900);
    exchange = ask(f, "/debug/state", &answer);
    assert_true(read_slice(answer, &text));
    /* Its place is in the list, too, and is left behind there. */
    beside = ask(f, "/debug/state", &another);
    while (f->n_watches > 0)
        kinf__exchange_free(f->watches[--f->n_watches]);
    watch_many(f, 0, 3);
    kinf__exchange_free(beside);
    while (read_slice(answer, &text))
        continue;
    kinf__exchange_free(exchange);
    tree = parse(&text);
    assert_in_range(n_watchers(tree, "things"), 4, 899);
    assert_int_equal(n_watchers(tree, "others"), 0);
    kinf__json_tree_free(tree);
}

static void a_source_that_goes_meanwhile_waits_for_nobody_and_the_document_is_whole(void **state)
{
    struct fixture *f = *state;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    const struct kinf__answer *answer;
    struct kinf__exchange *exchange;
    struct cJSON *tree;

    watch_many(f, 0, 900);
    exchange = ask(f, "/debug/state", &answer);
    while (f->n_watches > 0)
        kinf__exchange_free(f->watches[--f->n_watches]);
    retire(f, 0);
    while (read_slice(answer, &text))
        continue;
    kinf__exchange_free(exchange);
    tree = parse(&text);
    assert_in_range(n_watchers(tree, "things"), 1, 899);
    assert_int_equal(n_watchers(tree, "others"), 0);
    kinf__json_tree_free(tree);
}

static void a_reader_that_leaves_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;
    const struct kinf__answer *answer;
    struct kinf__exchange *exchange;
    struct cJSON *tree;

    watch_many(f, 0, 900);
    exchange = ask(f, "/debug/state", &answer);
    assert_non_null(answer->stream);
    kinf__exchange_free(exchange);
    tree = state_at(f, "/debug/state");
    assert_int_equal(n_watchers(tree, "things"), 900);
    kinf__json_tree_free(tree);
}

/* --- what is asked for --- */

static void details_are_told_of_the_types_that_are_named(void **state)
{
    static const struct {
        const char *target;
        int n_things, n_others;
    } rows[] = {
        { "/debug/state", 2, 1 },
        { "/debug/state?lastHour", 2, 1 },
        { "/debug/state?details=things", 2, -1 },
        { "/debug/state?details=%6fthers", -1, 1 },
        { "/debug/state?details=others&details=things", 2, 1 },
        { "/debug/state?details=", -1, -1 },
        { "/debug/state?details", -1, -1 },
        { "/debug/state?details=thing", -1, -1 },
    };
    struct fixture *f = *state;

    watch_many(f, 0, 2);
    watch_many(f, 1, 1);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct cJSON *tree = state_at(f, rows[i].target);

        assert_int_equal(n_watchers(tree, "things"), rows[i].n_things);
        assert_int_equal(n_watchers(tree, "others"), rows[i].n_others);
        assert_int_equal(
            kinf__json_tree_find(informer(tree, "things"), "lastErrors", (char *)NULL) != NULL,
            rows[i].n_things >= 0);
        assert_int_equal(kinf__json_tree_find(tree, "lastHour", (char *)NULL) != NULL, i == 1);
        kinf__json_tree_free(tree);
    }
}

/* What is small has a length. */
static void without_details_a_thousand_watchers_are_a_number(void **state)
{
    struct fixture *f = *state;
    const struct kinf__answer *answer;
    struct kinf__exchange *exchange;

    watch_many(f, 0, N_MANY);
    exchange = ask(f, "/debug/state?details=", &answer);
    assert_null(answer->stream);
    assert_in_range(answer->body.len, 1, 8000);
    assert_non_null(
        strstr(kinf__buffer_cstr((struct kinf__buffer *)&answer->body), "\"watcherCount\":1000"));
    kinf__exchange_free(exchange);
}

static void without_memory_it_is_refused_or_cut_and_nothing_leaks(void **state)
{
    struct fixture *f = *state;
    bool has_failed = true;

    watch_many(f, 0, 200);
    for (size_t n = 1; has_failed; n++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
        const struct kinf__request_head head = { .method = "GET",
                                                 .target = KINF_STR("/debug/state?lastHour") };
        const struct kinf__exchange_owner owner = { .wake = ignore, .cut_off = ignore };
        struct kinf__exchange *exchange;
        const struct kinf__answer *answer = NULL;
        ssize_t len = 1;
        char bytes[4096];

        test_fail_allocation(n);
        exchange = kinf__exchange_new(f->server, &owner, &head, NULL);
        if (exchange != NULL)
            answer = kinf__exchange_step(exchange);
        while (answer != NULL && answer->stream != NULL && len > 0)
            len = answer->stream->read(answer->stream, bytes, sizeof bytes);
        has_failed = test_allocation_failed();
        kinf__exchange_free(exchange);
    }
}

/* --- the last hour --- */

static void the_server_takes_samples_by_itself(void **state)
{
    struct fixture *f = *state;
    const struct cJSON *hour;
    struct cJSON *tree;
    int n = 0;

    for (int i = 0; n == 0 && i < 6000; i++) {
        const struct timespec nap = { .tv_nsec = 10000000 };

        tree = state_at(f, "/debug/state?details=&lastHour");
        hour = kinf__json_tree_find(tree, "lastHour", (char *)NULL);
        n = cJSON_GetArraySize(kinf__json_tree_find(hour, "ageMs", (char *)NULL));
        assert_int_equal(
            cJSON_GetArraySize(kinf__json_tree_find(hour, "residentBytes", (char *)NULL)), n);
        kinf__json_tree_free(tree);
        nanosleep(&nap, NULL);
    }
    assert_int_equal(n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_thousand_watchers_are_told_in_slices_each_once),
        TEST(watches_that_begin_and_end_meanwhile_do_no_harm),
        TEST(a_source_that_goes_meanwhile_waits_for_nobody_and_the_document_is_whole),
        TEST(a_reader_that_leaves_leaves_nothing_behind),
        TEST(details_are_told_of_the_types_that_are_named),
        TEST(without_details_a_thousand_watchers_are_a_number),
        TEST(without_memory_it_is_refused_or_cut_and_nothing_leaks),
        TEST(the_server_takes_samples_by_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
