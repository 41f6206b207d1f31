/*
 * What the tests of the store share: objects of few words, index functions, and lists as text.
 */
#ifndef KINF_TESTS_UNIT_INDEXER_FIXTURE_H
#define KINF_TESTS_UNIT_INDEXER_FIXTURE_H

#include <kinformer/indexer.h>

/* An object with one reference; `words` is its uid, which the index functions below read. */
const struct kinf_object *indexer_object(const char *key, const char *rv, const char *words);
/* The same from its JSON text. */
const struct kinf_object *indexer_json_object(const char *text);

/* The words of an object, separated by commas: "a,b" has a and b, "a," a and the empty one, ""
 * none. Fails if one of them is "fail". */
kinf_index_cb index_by_word;
/* The first byte of each word. Never fails. */
kinf_index_cb index_by_letter;
/* The namespace. */
kinf_index_cb index_by_namespace;
/* The annotation "users", separated by commas. */
kinf_index_cb index_by_user;

/* Stores a new object of these parts, and checks the structure. */
void indexer_add(struct kinf_indexer *indexer, const char *key, const char *rv, const char *words);
void indexer_delete(struct kinf_indexer *indexer, const char *key, const char *rv);
void indexer_check(struct kinf_indexer *indexer);

/* What the calls answer, joined by spaces: the caller frees it. */
char *indexer_keys(struct kinf_indexer *indexer);
char *indexer_by_index(struct kinf_indexer *indexer, const char *index, const char *value);
char *indexer_values(struct kinf_indexer *indexer, const char *index);
char *indexer_list_text(const struct kinf_object_list *list);

/* Compares one of the above and frees it. */
#define assert_text(actual, expected)                                                              \
    do {                                                                                           \
        char *text_ = (actual);                                                                    \
        assert_string_equal(text_, expected);                                                      \
        free(text_);                                                                               \
    } while (0)

#endif
