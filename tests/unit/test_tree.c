/*
 * The copy-on-write tree against a sorted array, with roots held across changes.
 */
#include "indexer/tree.h"

#include <stdio.h>
#include <string.h>

#include "unit/test.h"

#define N_HELD_MAX 6

/* --- entries --- */

/* An entry of an object with this key, with one value if `value` is not NULL. */
static struct kinf__entry *new_entry(const char *value, const char *key)
{
    struct kinf__object_parts parts = { .name = kinf_str_from(key) };
    uint32_t starts[2] = { 0, value != NULL ? (uint32_t)strlen(value) + 1 : 0 };
    const struct kinf_object *object;
    struct kinf__entry *entry;

    assert_int_equal(kinf__object_new(&parts, &object, NULL), 0);
    entry = kinf__entry_new(object, value, starts, value != NULL ? 1 : 0);
    assert_non_null(entry);
    kinf_object_unref(object);
    return entry;
}

static uint32_t value_of(const struct kinf__tree *tree, const struct kinf__entry *entry)
{
    return tree->is_index ? entry->starts[0] : 0;
}

static struct kinf__key key_of(const struct kinf__tree *tree, const struct kinf__entry *entry)
{
    return tree->is_index ? kinf__entry_index_key(entry, entry->starts[0])
                          : kinf__object_item_key(entry->object);
}

/* The order that the tree must have, found without its code. */
static int naive_compare(const struct kinf__tree *tree, const struct kinf__entry *a,
                         const struct kinf__entry *b)
{
    int order = 0;

    if (tree->is_index)
        order = strcmp((const char *)a + a->starts[0], (const char *)b + b->starts[0]);
    return order != 0 ? order : strcmp(kinf_object_key(a->object), kinf_object_key(b->object));
}

/* --- the twin --- */

struct twin {
    struct kinf__entry **entries; /* sorted, with a count each */
    size_t n;
};

static size_t twin_find(const struct kinf__tree *tree, const struct twin *twin,
                        const struct kinf__entry *entry, bool *ret_found)
{
    size_t low = 0, high = twin->n;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (naive_compare(tree, twin->entries[middle], entry) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = low < twin->n && naive_compare(tree, twin->entries[low], entry) == 0;
    return low;
}

static struct kinf__entry *twin_get(const struct kinf__tree *tree, const struct twin *twin,
                                    const struct kinf__entry *entry)
{
    bool found;
    size_t at = twin_find(tree, twin, entry, &found);

    return found ? twin->entries[at] : NULL;
}

static void twin_set(const struct kinf__tree *tree, struct twin *twin, struct kinf__entry *entry)
{
    bool found;
    size_t at = twin_find(tree, twin, entry, &found);

    kinf__entry_ref(entry);
    if (found) {
        kinf__entry_unref(twin->entries[at]);
        twin->entries[at] = entry;
        return;
    }
    twin->entries = realloc(twin->entries, (twin->n + 1) * sizeof twin->entries[0]);
    assert_non_null(twin->entries);
    memmove(&twin->entries[at + 1], &twin->entries[at], (twin->n - at) * sizeof twin->entries[0]);
    twin->entries[at] = entry;
    twin->n++;
}

static void twin_remove(const struct kinf__tree *tree, struct twin *twin,
                        const struct kinf__entry *entry)
{
    bool found;
    size_t at = twin_find(tree, twin, entry, &found);

    if (!found)
        return;
    kinf__entry_unref(twin->entries[at]);
    twin->n--;
    memmove(&twin->entries[at], &twin->entries[at + 1], (twin->n - at) * sizeof twin->entries[0]);
}

static struct twin twin_copy(const struct twin *twin)
{
    struct twin copy = { malloc((twin->n + 1) * sizeof copy.entries[0]), twin->n };

    assert_non_null(copy.entries);
    for (size_t i = 0; i < twin->n; i++)
        copy.entries[i] = kinf__entry_ref(twin->entries[i]);
    return copy;
}

static void twin_release(struct twin *twin)
{
    for (size_t i = 0; i < twin->n; i++)
        kinf__entry_unref(twin->entries[i]);
    free(twin->entries);
    *twin = (struct twin){ NULL, 0 };
}

static void assert_tree_equals_twin(const struct kinf__tree *tree, const struct twin *twin)
{
    struct kinf__key everything = { { NULL, 0 }, { NULL, 0 } };
    struct kinf_cursor cursor;
    struct kinf__entry *entry;
    uint32_t value;
    size_t n = 0, n_slots;
    const char *wrong = kinf__tree_check(tree, &n_slots);

    if (wrong != NULL)
        fail_msg("tree of %zu: %s", twin->n, wrong);
    assert_int_equal(n_slots, twin->n);
    kinf__tree_seek(tree, everything, &cursor);
    while (kinf__tree_at(&cursor, &entry, &value)) {
        assert_true(n < twin->n);
        assert_ptr_equal(entry, twin->entries[n]);
        assert_int_equal(value, value_of(tree, entry));
        n++;
        kinf__tree_advance(&cursor);
    }
    assert_int_equal(n, twin->n);
}

static void release_tree(struct kinf__tree *tree)
{
    struct kinf__dead_nodes dead = KINF__DEAD_NODES_INIT;

    kinf__node_unref(tree->root, &dead);
    while (kinf__dead_nodes_free(&dead, 1) != 0)
        ;
    assert_null(dead.first);
    tree->root = NULL;
}

/* --- random keys --- */

enum key_space {
    SMALL_SPACE,   /* few keys, often the same again */
    LARGE_SPACE,   /* hardly ever the same */
    LONG_PREFIXES, /* differ only far behind */
    NESTED_KEYS,   /* prefixes of each other */
    ANY_BYTES,
    N_KEY_SPACES,
};

static void random_key(struct test_random *random, enum key_space space, char *buf, size_t size)
{
    static const char *const names[] = {
        "kube-system/coredns-deployment-with-a-long-name-5d78c9869d-",
        "kube-system/coredns-deployment-with-a-long-name-5d78c9869e-",
        "production-of-the-first-team/the-service-itself-7f9c6b8d4-"
    };
    size_t len = test_random_below(random, 24);

    switch (space) {
    case SMALL_SPACE:
        snprintf(buf, size, "%zu", test_random_below(random, 60));
        break;
    case LARGE_SPACE:
        snprintf(buf, size, "ns-%zu/pod-%zx", test_random_below(random, 9),
                 test_random_below(random, 1 << 20));
        break;
    case LONG_PREFIXES:
        snprintf(buf, size, "%s%zu", names[test_random_below(random, 3)],
                 test_random_below(random, 800));
        break;
    case NESTED_KEYS:
        memset(buf, 'a', len);
        snprintf(buf + len, size - len, "%s", test_random_below(random, 2) ? "" : "b");
        break;
    default:
        for (size_t i = 0; i < len; i++)
            buf[i] = (char)(1 + test_random_below(random, 255));
        buf[len] = '\0';
    }
}

static struct kinf__entry *random_entry(struct test_random *random, const struct kinf__tree *tree,
                                        enum key_space space)
{
    char key[128], value[128];

    random_key(random, space, key, sizeof key);
    if (!tree->is_index)
        return new_entry(NULL, key);
    random_key(random, test_random_below(random, 3) ? NESTED_KEYS : space, value, sizeof value);
    return new_entry(value, key);
}

/* --- the model test --- */

struct model {
    struct test_random *random;
    enum key_space space;
    struct kinf__tree tree;
    struct twin twin;
    struct kinf__tree held[N_HELD_MAX];
    struct twin held_twins[N_HELD_MAX];
    unsigned n_held;
    bool grows;
};

static void hold(struct model *model)
{
    if (model->n_held == N_HELD_MAX || model->tree.root == NULL)
        return;
    model->held[model->n_held] = model->tree;
    kinf__node_ref(model->tree.root);
    model->held_twins[model->n_held] = twin_copy(&model->twin);
    model->n_held++;
}

static void let_go(struct model *model)
{
    unsigned which;

    if (model->n_held == 0)
        return;
    which = (unsigned)test_random_below(model->random, model->n_held);
    assert_tree_equals_twin(&model->held[which], &model->held_twins[which]);
    release_tree(&model->held[which]);
    twin_release(&model->held_twins[which]);
    model->n_held--;
    model->held[which] = model->held[model->n_held];
    model->held_twins[which] = model->held_twins[model->n_held];
}

/* A few changes as one write, which happens or is taken back. */
static void write_some(struct model *model)
{
    struct kinf__tree_change changes[5];
    struct kinf__dead_nodes dead = KINF__DEAD_NODES_INIT;
    struct twin before = twin_copy(&model->twin);
    size_t n = 1 + test_random_below(model->random, 5);
    bool is_taken_back = test_random_below(model->random, 4) == 0;

    for (size_t i = 0; i < n; i++) {
        struct kinf__entry *entry = random_entry(model->random, &model->tree, model->space);

        if (test_random_below(model->random, 10) < (model->grows ? 7 : 3)) {
            assert_int_equal(
                kinf__tree_set(&model->tree, entry, value_of(&model->tree, entry), &changes[i]), 0);
            assert_ptr_equal(changes[i].found, twin_get(&model->tree, &model->twin, entry));
            twin_set(&model->tree, &model->twin, entry);
        } else {
            if (model->twin.n != 0 && test_random_below(model->random, 5) != 0) {
                kinf__entry_unref(entry);
                entry = kinf__entry_ref(
                    model->twin.entries[test_random_below(model->random, model->twin.n)]);
            }
            assert_int_equal(
                kinf__tree_remove(&model->tree, key_of(&model->tree, entry), &changes[i]), 0);
            assert_ptr_equal(changes[i].found, twin_get(&model->tree, &model->twin, entry));
            twin_remove(&model->tree, &model->twin, entry);
        }
        kinf__entry_unref(entry);
    }
    if (is_taken_back) {
        struct twin after = model->twin;

        while (n-- > 0)
            kinf__tree_take_back(&changes[n]);
        model->twin = before;
        before = after;
    } else {
        for (size_t i = 0; i < n; i++)
            kinf__tree_settle(&changes[i], &dead);
        kinf__dead_nodes_free(&dead, SIZE_MAX);
    }
    twin_release(&before);
}

static void assert_lookups_agree(struct model *model)
{
    struct kinf__entry *entry = random_entry(model->random, &model->tree, model->space);
    struct kinf__entry *at_cursor, *expected;
    struct kinf_cursor cursor;
    uint32_t value;
    bool found;
    size_t at = twin_find(&model->tree, &model->twin, entry, &found);

    expected = at < model->twin.n ? model->twin.entries[at] : NULL;
    assert_ptr_equal(kinf__tree_get(&model->tree, key_of(&model->tree, entry)),
                     twin_get(&model->tree, &model->twin, entry));
    kinf__tree_seek(&model->tree, key_of(&model->tree, entry), &cursor);
    assert_ptr_equal(kinf__tree_at(&cursor, &at_cursor, &value) ? at_cursor : NULL, expected);
    kinf__entry_unref(entry);
}

static void run_model(struct test_random *random, enum key_space space, bool is_index,
                      size_t n_steps)
{
    struct model model = {
        .random = random, .space = space, .tree = { NULL, is_index }, .grows = true
    };

    for (size_t step = 0; step < n_steps; step++) {
        if (step % 512 == 0)
            model.grows = step % 1024 == 0 || test_random_below(random, 4) != 0;
        write_some(&model);
        if (test_random_below(random, 8) == 0)
            hold(&model);
        if (test_random_below(random, 8) == 0)
            let_go(&model);
        assert_lookups_agree(&model);
        if (model.twin.n < 100 || step % 32 == 0)
            assert_tree_equals_twin(&model.tree, &model.twin);
    }
    assert_tree_equals_twin(&model.tree, &model.twin);
    while (model.n_held != 0)
        let_go(&model);
    release_tree(&model.tree);
    twin_release(&model.twin);
}

static void changes_agree_with_a_sorted_array_and_held_roots_stay(void **state)
{
    struct test_random random = test_random_init("tree model");
    size_t n_objects = kinf__object_count();

    (void)state;
    for (int space = 0; space < N_KEY_SPACES; space++) {
        run_model(&random, (enum key_space)space, false, test_rounds(4000));
        run_model(&random, (enum key_space)space, true, test_rounds(4000));
    }
    assert_int_equal(kinf__object_count(), n_objects);
}

static void emptying_a_tree_leaves_nothing(void **state)
{
    struct test_random random = test_random_init("tree emptied");
    struct kinf__tree tree = { NULL, false };
    struct twin twin = { NULL, 0 };
    struct kinf__tree_change change;
    struct kinf__dead_nodes dead = KINF__DEAD_NODES_INIT;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        struct kinf__entry *entry = random_entry(&random, &tree, LARGE_SPACE);

        assert_int_equal(kinf__tree_set(&tree, entry, 0, &change), 0);
        kinf__tree_settle(&change, &dead);
        twin_set(&tree, &twin, entry);
        kinf__entry_unref(entry);
    }
    assert_true(tree.root->level >= 1);
    while (twin.n != 0) {
        struct kinf__entry *entry = twin.entries[test_random_below(&random, twin.n)];

        assert_int_equal(kinf__tree_remove(&tree, kinf__object_item_key(entry->object), &change),
                         0);
        kinf__tree_settle(&change, &dead);
        twin_remove(&tree, &twin, entry);
        if (twin.n % 64 == 0)
            assert_tree_equals_twin(&tree, &twin);
    }
    assert_null(tree.root);
    kinf__dead_nodes_free(&dead, SIZE_MAX);
    twin_release(&twin);
}

/* --- building --- */

static struct kinf__tree build_twin(bool is_index, const struct twin *twin)
{
    struct kinf__tree_item *items = calloc(twin->n + 1, sizeof items[0]);
    struct kinf__tree tree = { NULL, is_index };

    assert_non_null(items);
    for (size_t i = 0; i < twin->n; i++)
        items[i] = (struct kinf__tree_item){ twin->entries[i], value_of(&tree, twin->entries[i]) };
    assert_int_equal(kinf__tree_build(is_index, items, twin->n, NULL, &tree), 0);
    free(items);
    return tree;
}

static struct twin random_twin(struct test_random *random, bool is_index, size_t n)
{
    struct kinf__tree tree = { NULL, is_index };
    struct twin twin = { NULL, 0 };

    while (twin.n < n) {
        struct kinf__entry *entry = random_entry(random, &tree, LARGE_SPACE);

        twin_set(&tree, &twin, entry);
        kinf__entry_unref(entry);
    }
    return twin;
}

static void a_built_tree_is_whole_at_every_size(void **state)
{
    static const size_t larger[] = { 500, 784, 785, 897, 1000, 5000 };
    struct test_random random = test_random_init("tree build");

    (void)state;
    for (size_t n = 0; n < 120 + sizeof larger / sizeof larger[0]; n++) {
        bool is_index = n % 2 == 0;
        struct twin twin = random_twin(&random, is_index, n < 120 ? n : larger[n - 120]);
        struct kinf__tree tree = build_twin(is_index, &twin);

        assert_tree_equals_twin(&tree, &twin);
        release_tree(&tree);
        twin_release(&twin);
    }
}

static void a_large_tree_dies_in_slices(void **state)
{
    struct test_random random = test_random_init("tree slices");
    struct kinf__dead_nodes dead = KINF__DEAD_NODES_INIT;
    struct twin twin = random_twin(&random, false, 3000);
    struct kinf__tree tree = build_twin(false, &twin);
    size_t n_objects = kinf__object_count(), n_freed;

    (void)state;
    twin_release(&twin);
    kinf__node_unref(tree.root, &dead);
    assert_int_equal(kinf__object_count(), n_objects);
    n_freed = kinf__dead_nodes_free(&dead, 200);
    assert_in_range(n_freed, 200, 200 + KINF__NODE_FANOUT);
    assert_in_range(n_objects - kinf__object_count(), 1, 200 + KINF__NODE_FANOUT);
    while (dead.first != NULL)
        kinf__dead_nodes_free(&dead, 200);
    assert_int_equal(kinf__object_count(), n_objects - 3000);
}

/* --- keys --- */

static struct kinf__key split_key(const char *text, size_t len, size_t at)
{
    struct kinf__key key = { { text, at }, { text + at, len - at } };

    return key;
}

static void keys_compare_as_if_in_one_piece(void **state)
{
    struct test_random random = test_random_init("keys");

    (void)state;
    for (size_t i = 0; i < test_rounds(20000); i++) {
        char a[40], b[40];
        size_t a_len = test_random_below(&random, 40), b_len = test_random_below(&random, 40);
        size_t shorter = a_len < b_len ? a_len : b_len, common = 0;
        struct kinf__key left, right;
        int order;

        for (size_t k = 0; k < 40; k++) {
            a[k] =
                (char)(test_random_below(&random, 30) != 0 ? 'x' : test_random_below(&random, 256));
            b[k] =
                (char)(test_random_below(&random, 30) != 0 ? 'x' : test_random_below(&random, 256));
        }
        left = split_key(a, a_len, test_random_below(&random, a_len + 1));
        right = split_key(b, b_len, test_random_below(&random, b_len + 1));
        while (common < shorter && a[common] == b[common])
            common++;
        order = memcmp(a, b, shorter);
        order = order != 0 ? order : (a_len > b_len) - (a_len < b_len);
        assert_int_equal(kinf__key_common(left, right), common);
        assert_int_equal((kinf__key_compare(&left, &right) > 0) -
                             (kinf__key_compare(&left, &right) < 0),
                         (order > 0) - (order < 0));
        if (kinf__key_fragment(left, common) < kinf__key_fragment(right, common))
            assert_true(order < 0);
    }
}

/* --- that the check fires --- */

static const char *check(const struct kinf__tree *tree)
{
    size_t n;

    return kinf__tree_check(tree, &n);
}

#define assert_breaks(tree, field, broken, expected)                                               \
    do {                                                                                           \
        __typeof__(field) whole_ = (field);                                                        \
        (field) = (broken);                                                                        \
        assert_non_null(check(tree));                                                              \
        assert_string_equal(check(tree), expected);                                                \
        (field) = whole_;                                                                          \
        assert_null(check(tree));                                                                  \
    } while (0)

static void the_check_sees_a_broken_node(void **state)
{
    struct test_random random = test_random_init("tree broken");
    struct twin twin = random_twin(&random, true, 2000);
    struct kinf__tree tree = build_twin(true, &twin);
    struct kinf__node *inner = tree.root->children[1];
    struct kinf__node *leaf = inner->children[2];

    (void)state;
    assert_int_equal(inner->level, 1);
    assert_breaks(&tree, leaf->n_slots, KINF__NODE_MIN - 1, "underfull node");
    assert_breaks(&tree, inner->n_slots, KINF__NODE_MIN - 1, "underfull node");
    assert_breaks(&tree, tree.root->n_slots, 1, "underfull node");
    assert_breaks(&tree, leaf->n_slots, KINF__NODE_FANOUT + 1, "overfull node");
    assert_breaks(&tree, leaf->prefix_len, leaf->prefix_len + 1, "wrong prefix");
    assert_breaks(&tree, leaf->fragments[3], leaf->fragments[3] + 1, "wrong fragment");
    assert_breaks(&tree, inner->fragments[3], inner->fragments[3] + 1, "wrong fragment");
    assert_breaks(&tree, leaf->is_index, false, "node of another kind of tree");
    assert_breaks(&tree, leaf->level, 1, "levels differ");
    assert_breaks(&tree, inner->places[1], 1, "first child has a separator");
    assert_breaks(&tree, inner->places[3], inner->places[2], "empty separator");
    release_tree(&tree);
    twin_release(&twin);
}

/* Another entry in one slot, for the time of a check. */
static void assert_misplaced(const struct kinf__tree *tree, struct kinf__node *leaf, unsigned slot,
                             struct kinf__entry *entry, const char *expected)
{
    struct kinf__entry *whole = leaf->entries[slot];

    kinf__leaf_put(leaf, slot, entry, 0);
    assert_non_null(check(tree));
    assert_string_equal(check(tree), expected);
    kinf__leaf_put(leaf, slot, whole, 0);
    assert_null(check(tree));
}

static void the_check_sees_broken_order(void **state)
{
    struct test_random random = test_random_init("tree out of order");
    struct twin twin = random_twin(&random, false, 2000);
    struct kinf__tree tree = build_twin(false, &twin);
    struct kinf__node *inner = tree.root->children[1];
    struct kinf__node *leaf = inner->children[2];

    (void)state;
    assert_breaks(&tree, leaf->entries[0], leaf->entries[1], "not the entry's object");
    assert_misplaced(&tree, leaf, 0, inner->children[0]->entries[0], "key below its separator");
    assert_misplaced(&tree, leaf, leaf->n_slots - 1U, inner->children[4]->entries[0],
                     "key above its separator");
    assert_misplaced(&tree, leaf, 1, leaf->entries[0], "leaf out of order");
    assert_breaks(&tree, inner->text[inner->places[1]], '\x01', "separator below its own");
    assert_breaks(&tree, inner->text[inner->places[3]], '\x01', "separators out of order");
    assert_breaks(&tree, inner->text[inner->places[inner->n_slots - 1]], '\x7f',
                  "separator above its own");
    release_tree(&tree);
    twin_release(&twin);
}

static void the_check_sees_a_lost_count(void **state)
{
    struct test_random random = test_random_init("tree counts");
    struct twin twin = random_twin(&random, false, 100);
    struct kinf__tree tree = build_twin(false, &twin);

    (void)state;
    assert_breaks(&tree, tree.root->children[1]->refs, 0, "node without a count");
    assert_breaks(&tree, twin.entries[5]->refs, 0, "entry without a count");
    release_tree(&tree);
    twin_release(&twin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_compare_as_if_in_one_piece),
        cmocka_unit_test(changes_agree_with_a_sorted_array_and_held_roots_stay),
        cmocka_unit_test(emptying_a_tree_leaves_nothing),
        cmocka_unit_test(a_built_tree_is_whole_at_every_size),
        cmocka_unit_test(a_large_tree_dies_in_slices),
        cmocka_unit_test(the_check_sees_a_broken_node),
        cmocka_unit_test(the_check_sees_broken_order),
        cmocka_unit_test(the_check_sees_a_lost_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
