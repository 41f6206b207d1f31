/*
 * What a program does wrong and the library can see: each case is refused, logged, and has no effect.
 *
 * Every public function that takes a pointer is here (scripts/check-symbols.sh looks).
 */
#include <kinformer/kinformer.h>
#include <kinformer/testing.h>
#include <kinformer/tree.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "informer/informer.h"
#include "queue/queue_priv.h"
#include "rest/client.h"
#include "unit/test.h"

static char line[1024];
static size_t n_lines;

static void keep_line(enum kinf_log_level level, const char *module, const char *text, void *ctx)
{
    (void)ctx;
    if (level != KINF_LOG_ERROR || strcmp(module, "base") != 0)
        return;
    snprintf(line, sizeof line, "%s", text);
    n_lines++;
}

static int begin(void **state)
{
    (void)state;
    n_lines = 0;
    kinf_log_set_callback(keep_line, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    kinf_log_set_callback(NULL, NULL);
    return 0;
}

/* That one line was logged since the last look, with this in it. */
static void expect_line(const char *part)
{
    if (n_lines != 1 || strstr(line, part) == NULL)
        fail_msg("%zu lines, the last \"%s\", instead of one with \"%s\"", n_lines, line, part);
    n_lines = 0;
}

/* --- NULL --- */

/* Stands for whatever a pointer must point to: nobody looks. */
static char room[4096];
static void *const any = room;

static int each_value(struct kinf_str json, void *ctx)
{
    (void)json;
    (void)ctx;
    return 0;
}

static int each_pair(const char *key, const char *value, void *ctx)
{
    (void)key;
    (void)value;
    (void)ctx;
    return 0;
}

static int process(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    (void)deltas;
    (void)in_initial_list;
    (void)ctx;
    return 0;
}

#define MESSAGE(argument, function) #function ": " #argument " is NULL"

/* What a call with NULL for `argument` returns, by its type. */
#define REFUSES(argument, function, ...)                                                           \
    do {                                                                                           \
        assert_int_equal(function(__VA_ARGS__), KINF_ERR_INVALID);                                 \
        expect_line(MESSAGE(argument, function));                                                  \
    } while (0)
#define IGNORES(argument, function, ...)                                                           \
    do {                                                                                           \
        (void)function(__VA_ARGS__);                                                               \
        expect_line(MESSAGE(argument, function));                                                  \
    } while (0)
#define DENIES(argument, function, ...)                                                            \
    do {                                                                                           \
        assert_false(function(__VA_ARGS__));                                                       \
        expect_line(MESSAGE(argument, function));                                                  \
    } while (0)
#define COUNTS_NONE(argument, function, ...)                                                       \
    do {                                                                                           \
        assert_int_equal(function(__VA_ARGS__), 0);                                                \
        expect_line(MESSAGE(argument, function));                                                  \
    } while (0)
#define GIVES_NULL(argument, function, ...)                                                        \
    do {                                                                                           \
        assert_null(function(__VA_ARGS__));                                                        \
        expect_line(MESSAGE(argument, function));                                                  \
    } while (0)
#define IS_EMPTY(argument, function, ...)                                                          \
    do {                                                                                           \
        assert_string_equal(function(__VA_ARGS__), "");                                            \
        expect_line(MESSAGE(argument, function));                                                  \
    } while (0)

static void client_calls_refuse_null(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    REFUSES(ret_client, kinf_client_new, any, NULL, &err);
    IGNORES(client, kinf_client_free_ptr, NULL);
    IS_EMPTY(client, kinf_client_server, NULL);
    IS_EMPTY(client, kinf_client_namespace, NULL);
    REFUSES(client, kinf_client_find_type, NULL, any, any, &err);
    REFUSES(resource, kinf_client_find_type, any, NULL, any, &err);
    REFUSES(ret_type, kinf_client_find_type, any, any, NULL, &err);
    IGNORES(client, kinf_client_interrupt, NULL);
    IGNORES(response, kinf_response_release, NULL);
    REFUSES(client, kinf_client_request, NULL, any, any, &err);
    REFUSES(request, kinf_client_request, any, NULL, any, &err);
    REFUSES(client, kinf_client_request_raw, NULL, any, any, KINF_STR(""), any, any, &err);
    REFUSES(method, kinf_client_request_raw, any, NULL, any, KINF_STR(""), any, any, &err);
    REFUSES(target, kinf_client_request_raw, any, any, NULL, KINF_STR(""), any, any, &err);
}

static void elector_calls_refuse_null(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    REFUSES(client, kinf_elector_new, NULL, any, any, &err);
    REFUSES(options, kinf_elector_new, any, NULL, any, &err);
    REFUSES(ret_elector, kinf_elector_new, any, any, NULL, &err);
    kinf_elector_free(NULL);
    IGNORES(elector, kinf_elector_free_ptr, NULL);
    REFUSES(elector, kinf_elector_start, NULL, &err);
    REFUSES(elector, kinf_elector_stop, NULL, &err);
    REFUSES(elector, kinf_elector_wait, NULL, 1, &err);
    DENIES(elector, kinf_elector_leads, NULL);
    DENIES(elector, kinf_elector_fence, NULL, any);
    DENIES(ret_fence, kinf_elector_fence, any, NULL);
    IGNORES(elector, kinf_elector_status, NULL, any);
    IGNORES(ret_status, kinf_elector_status, any, NULL);
    IS_EMPTY(elector, kinf_elector_identity, NULL);
}

static void recorder_calls_refuse_null(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    REFUSES(client, kinf_recorder_new, NULL, any, any, &err);
    REFUSES(options, kinf_recorder_new, any, NULL, any, &err);
    REFUSES(ret_recorder, kinf_recorder_new, any, any, NULL, &err);
    kinf_recorder_free(NULL);
    IGNORES(recorder, kinf_recorder_free_ptr, NULL);
    IGNORES(recorder, kinf_recorder_status, NULL, any);
    IGNORES(ret_status, kinf_recorder_status, any, NULL);
#define RECORD(recorder, regarding, reason, action, note)                                          \
    kinf_recorder_event(recorder, regarding, NULL, KINF_EVENT_NORMAL, reason, action, note)
    RECORD(NULL, any, "r", "a", "n");
    expect_line("kinf_recorder_event: recorder is NULL");
    RECORD(any, NULL, "r", "a", "n");
    expect_line("kinf_recorder_event: regarding is NULL");
    RECORD(any, any, NULL, "a", "n");
    expect_line("kinf_recorder_event: reason is NULL");
    RECORD(any, any, "r", NULL, "n");
    expect_line("kinf_recorder_event: action is NULL");
    RECORD(any, any, "r", "a", NULL);
    expect_line("kinf_recorder_event: note is NULL");
    RECORD(any, any, "", "a", "n");
    expect_line("reason and action are 1 to 128 bytes");
#undef RECORD
}

static void text_calls_refuse_null(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_label_selector *labels;
    struct kinf_field_selector *fields;

    (void)state;
    assert_int_equal(kinf_label_selector_parse("a=b", &labels, &err), 0);
    assert_int_equal(kinf_field_selector_parse("metadata.name=b", &fields, &err), 0);
    REFUSES(text, kinf_path_parse, NULL, any, &err);
    REFUSES(ret_path, kinf_path_parse, any, NULL, &err);
    IS_EMPTY(path, kinf_path_text, NULL);
    REFUSES(text, kinf_log_set_levels, NULL, &err);
    REFUSES(group, kinf_type_intern, NULL, any, any, any, false, any, &err);
    REFUSES(version, kinf_type_intern, any, NULL, any, any, false, any, &err);
    REFUSES(kind, kinf_type_intern, any, any, NULL, any, false, any, &err);
    REFUSES(resource, kinf_type_intern, any, any, any, NULL, false, any, &err);
    REFUSES(ret_type, kinf_type_intern, any, any, any, any, false, NULL, &err);
    REFUSES(sources, kinf_metrics_text, NULL, 1, any, &err);
    REFUSES(ret_text, kinf_metrics_text, any, 1, NULL, &err);
    REFUSES(text, kinf_label_selector_parse, NULL, any, &err);
    REFUSES(ret_selector, kinf_label_selector_parse, any, NULL, &err);
    DENIES(object, kinf_label_selector_matches, labels, NULL);
    REFUSES(text, kinf_field_selector_parse, NULL, any, &err);
    REFUSES(ret_selector, kinf_field_selector_parse, any, NULL, &err);
    DENIES(object, kinf_field_selector_matches, fields, NULL);
    REFUSES(ret_text, kinf_shard_selector, KINF_SHARD_BY_UID, 1, 0, NULL, &err);
    kinf_label_selector_free(labels);
    kinf_field_selector_free(fields);
}

static void object_calls_refuse_null(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    IGNORES(object, kinf_object_unref_ptr, NULL);
    REFUSES(type, kinf_object_new_from_json, NULL, any, 1, any, &err);
    REFUSES(text, kinf_object_new_from_json, any, NULL, 1, any, &err);
    REFUSES(ret_object, kinf_object_new_from_json, any, any, 1, NULL, &err);
    GIVES_NULL(object, kinf_object_type, NULL);
    IS_EMPTY(object, kinf_object_key, NULL);
    IS_EMPTY(object, kinf_object_name, NULL);
    IGNORES(object, kinf_object_namespace, NULL);
    IS_EMPTY(object, kinf_object_uid, NULL);
    IS_EMPTY(object, kinf_object_resource_version, NULL);
    COUNTS_NONE(object, kinf_object_size, NULL);
    IGNORES(scratch, kinf_scratch_release, NULL);
    REFUSES(object, kinf_object_json, NULL, any, any, &err);
    REFUSES(scratch, kinf_object_json, any, NULL, any, &err);
    REFUSES(ret_text, kinf_object_json, any, any, NULL, &err);
    REFUSES(object, kinf_object_full_json, NULL, any, any, &err);
    REFUSES(scratch, kinf_object_full_json, any, NULL, any, &err);
    REFUSES(ret_text, kinf_object_full_json, any, any, NULL, &err);
    REFUSES(object, kinf_object_get_string, NULL, any, any, 1);
    REFUSES(path, kinf_object_get_string, any, NULL, any, 1);
    REFUSES(buf, kinf_object_get_string, any, any, NULL, 1);
    REFUSES(object, kinf_object_get_int64, NULL, any, any);
    REFUSES(path, kinf_object_get_int64, any, NULL, any);
    REFUSES(ret_number, kinf_object_get_int64, any, any, NULL);
    REFUSES(object, kinf_object_get_bool, NULL, any, any);
    REFUSES(path, kinf_object_get_bool, any, NULL, any);
    REFUSES(ret_truth, kinf_object_get_bool, any, any, NULL);
    REFUSES(object, kinf_object_get_label, NULL, any, any, 1);
    REFUSES(key, kinf_object_get_label, any, NULL, any, 1);
    REFUSES(buf, kinf_object_get_label, any, any, NULL, 1);
    REFUSES(object, kinf_object_get_annotation, NULL, any, any, 1);
    REFUSES(key, kinf_object_get_annotation, any, NULL, any, 1);
    REFUSES(buf, kinf_object_get_annotation, any, any, NULL, 1);
    DENIES(object, kinf_object_has, NULL, any);
    DENIES(path, kinf_object_has, any, NULL);
    REFUSES(object, kinf_object_get_json, NULL, any, any, any);
    REFUSES(path, kinf_object_get_json, any, NULL, any, any);
    REFUSES(scratch, kinf_object_get_json, any, any, NULL, any);
    REFUSES(ret_json, kinf_object_get_json, any, any, any, NULL);
    REFUSES(object, kinf_object_each_label, NULL, each_pair, NULL);
    REFUSES(callback, kinf_object_each_label, any, NULL, NULL);
    REFUSES(object, kinf_object_each_annotation, NULL, each_pair, NULL);
    REFUSES(callback, kinf_object_each_annotation, any, NULL, NULL);
    REFUSES(scratch, kinf_json_format, NULL, any, &err, "{}");
    REFUSES(ret_json, kinf_json_format, any, NULL, &err, "{}");
    REFUSES(form, kinf_json_format, any, any, &err, NULL);
    REFUSES(format, kinf_error_set, &err, KINF_ERR_INVALID, NULL);
    REFUSES(object, kinf_object_each, NULL, any, each_value, NULL);
    REFUSES(path, kinf_object_each, any, NULL, each_value, NULL);
    REFUSES(callback, kinf_object_each, any, any, NULL, NULL);
    REFUSES(buf, kinf_json_string, KINF_STR(""), NULL, 1);
    REFUSES(a, kinf_rv_compare, NULL, any, any, &err);
    REFUSES(b, kinf_rv_compare, any, NULL, any, &err);
    REFUSES(ret_order, kinf_rv_compare, any, any, NULL, &err);
    REFUSES(object, kinf_object_tree, NULL, any, &err);
    REFUSES(ret_tree, kinf_object_tree, any, NULL, &err);
}

static void store_calls_refuse_null(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    REFUSES(lister, kinf_lister_list, NULL, any, any, &err);
    REFUSES(ret_list, kinf_lister_list, any, any, NULL, &err);
    REFUSES(lister, kinf_lister_get, NULL, any, any, &err);
    REFUSES(name, kinf_lister_get, any, NULL, any, &err);
    REFUSES(ret_object, kinf_lister_get, any, any, NULL, &err);
    REFUSES(values, kinf_index_values_add, NULL, any, 1);
    REFUSES(value, kinf_index_values_add, any, NULL, 1);
    IGNORES(list, kinf_object_list_release, NULL);
    IGNORES(list, kinf_string_list_release, NULL);
    REFUSES(indices, kinf_indexer_new, NULL, 1, any, &err);
    REFUSES(ret_indexer, kinf_indexer_new, any, 1, NULL, &err);
    REFUSES(indexer, kinf_indexer_add, NULL, any, any, &err);
    REFUSES(object, kinf_indexer_add, any, NULL, any, &err);
    REFUSES(indexer, kinf_indexer_update, NULL, any, any, &err);
    REFUSES(object, kinf_indexer_update, any, NULL, any, &err);
    REFUSES(indexer, kinf_indexer_delete, NULL, any, any, any, &err);
    REFUSES(key, kinf_indexer_delete, any, NULL, any, any, &err);
    REFUSES(indexer, kinf_indexer_transaction, NULL, any, 1, &err);
    REFUSES(changes, kinf_indexer_transaction, any, NULL, 1, &err);
    REFUSES(indexer, kinf_indexer_replace, NULL, any, 1, any, &err);
    REFUSES(objects, kinf_indexer_replace, any, NULL, 1, any, &err);
    REFUSES(indexer, kinf_indexer_bookmark, NULL, any, &err);
    REFUSES(indexer, kinf_indexer_add_indices, NULL, any, 1, &err);
    REFUSES(indices, kinf_indexer_add_indices, any, NULL, 1, &err);
    COUNTS_NONE(indexer, kinf_indexer_failed_index_values, NULL);
    GIVES_NULL(indexer, kinf_indexer_snapshot, NULL);
    REFUSES(indexer, kinf_indexer_get_by_key, NULL, any, any);
    REFUSES(key, kinf_indexer_get_by_key, any, NULL, any);
    REFUSES(ret_object, kinf_indexer_get_by_key, any, any, NULL);
    GIVES_NULL(snapshot, kinf_snapshot_ref, NULL);
    IGNORES(snapshot, kinf_snapshot_unref_ptr, NULL);
    COUNTS_NONE(snapshot, kinf_snapshot_count, NULL);
    IS_EMPTY(snapshot, kinf_snapshot_resource_version, NULL);
    GIVES_NULL(snapshot, kinf_snapshot_get, NULL, any);
    GIVES_NULL(key, kinf_snapshot_get, any, NULL);
    kinf_cursor_all(NULL, any);
    expect_line("kinf_cursor_prefix: cursor is NULL");
    kinf_cursor_all(any, NULL);
    expect_line("kinf_cursor_prefix: snapshot is NULL");
    assert_null(kinf_cursor_next(any));
    IGNORES(cursor, kinf_cursor_prefix, NULL, any, KINF_STR(""));
    IGNORES(snapshot, kinf_cursor_prefix, any, NULL, KINF_STR(""));
    IGNORES(cursor, kinf_cursor_after, NULL, any, any);
    IGNORES(snapshot, kinf_cursor_after, any, NULL, any);
    IGNORES(key, kinf_cursor_after, any, any, NULL);
    REFUSES(cursor, kinf_cursor_index, NULL, any, any, KINF_STR(""), &err);
    REFUSES(snapshot, kinf_cursor_index, any, NULL, any, KINF_STR(""), &err);
    REFUSES(index, kinf_cursor_index, any, any, NULL, KINF_STR(""), &err);
    GIVES_NULL(cursor, kinf_cursor_next, NULL);
    REFUSES(indexer, kinf_indexer_list, NULL, any, &err);
    REFUSES(ret_list, kinf_indexer_list, any, NULL, &err);
    REFUSES(indexer, kinf_indexer_list_keys, NULL, any, &err);
    REFUSES(ret_keys, kinf_indexer_list_keys, any, NULL, &err);
    REFUSES(indexer, kinf_indexer_index, NULL, any, any, any, &err);
    REFUSES(index, kinf_indexer_index, any, NULL, any, any, &err);
    REFUSES(probe, kinf_indexer_index, any, any, NULL, any, &err);
    REFUSES(ret_list, kinf_indexer_index, any, any, any, NULL, &err);
    REFUSES(indexer, kinf_indexer_by_index, NULL, any, any, any, &err);
    REFUSES(index, kinf_indexer_by_index, any, NULL, any, any, &err);
    REFUSES(value, kinf_indexer_by_index, any, any, NULL, any, &err);
    REFUSES(ret_list, kinf_indexer_by_index, any, any, any, NULL, &err);
    REFUSES(indexer, kinf_indexer_index_keys, NULL, any, any, any, &err);
    REFUSES(index, kinf_indexer_index_keys, any, NULL, any, any, &err);
    REFUSES(value, kinf_indexer_index_keys, any, any, NULL, any, &err);
    REFUSES(ret_keys, kinf_indexer_index_keys, any, any, any, NULL, &err);
    REFUSES(indexer, kinf_indexer_list_index_values, NULL, any, any, &err);
    REFUSES(index, kinf_indexer_list_index_values, any, NULL, any, &err);
    REFUSES(ret_values, kinf_indexer_list_index_values, any, any, NULL, &err);
    REFUSES(indexer, kinf_indexer_get_indices, NULL, any, &err);
    REFUSES(ret_names, kinf_indexer_get_indices, any, NULL, &err);
    REFUSES(indexer, kinf_indexer_resource_version, NULL, any, 1);
    REFUSES(buf, kinf_indexer_resource_version, any, NULL, 1);
}

static void queue_calls_refuse_null(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    REFUSES(options, kinf_deltafifo_new, NULL, any, &err);
    REFUSES(ret_fifo, kinf_deltafifo_new, any, NULL, &err);
    REFUSES(fifo, kinf_deltafifo_add, NULL, any, &err);
    REFUSES(object, kinf_deltafifo_add, any, NULL, &err);
    REFUSES(fifo, kinf_deltafifo_update, NULL, any, &err);
    REFUSES(object, kinf_deltafifo_update, any, NULL, &err);
    REFUSES(fifo, kinf_deltafifo_delete, NULL, any, &err);
    REFUSES(object, kinf_deltafifo_delete, any, NULL, &err);
    REFUSES(fifo, kinf_deltafifo_replace, NULL, any, 1, any, &err);
    REFUSES(objects, kinf_deltafifo_replace, any, NULL, 1, any, &err);
    REFUSES(resource_version, kinf_deltafifo_replace, any, any, 1, NULL, &err);
    REFUSES(fifo, kinf_deltafifo_resync, NULL, &err);
    REFUSES(fifo, kinf_deltafifo_bookmark, NULL, any, &err);
    REFUSES(resource_version, kinf_deltafifo_bookmark, any, NULL, &err);
    REFUSES(fifo, kinf_deltafifo_pop, NULL, process, NULL, 1);
    REFUSES(process, kinf_deltafifo_pop, any, NULL, NULL, 1);
    IGNORES(fifo, kinf_deltafifo_close, NULL);
    IGNORES(fifo, kinf_deltafifo_abort, NULL);
    DENIES(fifo, kinf_deltafifo_has_synced, NULL);
    REFUSES(fifo, kinf_deltafifo_resource_version, NULL, any, 1);
    REFUSES(buf, kinf_deltafifo_resource_version, any, NULL, 1);
    COUNTS_NONE(fifo, kinf_deltafifo_len, NULL);
    COUNTS_NONE(fifo, kinf_deltafifo_bytes, NULL);
    REFUSES(ret_queue, kinf_queue_new, any, NULL, &err);
    IGNORES(queue, kinf_queue_free_ptr, NULL);
    REFUSES(queue, kinf_queue_add, NULL, any, &err);
    REFUSES(key, kinf_queue_add, any, NULL, &err);
    REFUSES(queue, kinf_queue_add_after, NULL, any, 1, &err);
    REFUSES(key, kinf_queue_add_after, any, NULL, 1, &err);
    REFUSES(queue, kinf_queue_add_rate_limited, NULL, any, &err);
    REFUSES(key, kinf_queue_add_rate_limited, any, NULL, &err);
    REFUSES(queue, kinf_queue_add_with, NULL, any, any, &err);
    REFUSES(key, kinf_queue_add_with, any, NULL, any, &err);
    REFUSES(options, kinf_queue_add_with, any, any, NULL, &err);
    IGNORES(queue, kinf_queue_forget, NULL, any);
    IGNORES(key, kinf_queue_forget, any, NULL);
    COUNTS_NONE(queue, kinf_queue_n_requeues, NULL, any);
    COUNTS_NONE(key, kinf_queue_n_requeues, any, NULL);
    REFUSES(queue, kinf_queue_get, NULL, 1, any, &err);
    REFUSES(ret_key, kinf_queue_get, any, 1, NULL, &err);
    COUNTS_NONE(queue, kinf_queue_priority, NULL, any);
    COUNTS_NONE(key, kinf_queue_priority, any, NULL);
    REFUSES(queue, kinf_queue_add_failed, NULL, any, any, &err);
    REFUSES(key, kinf_queue_add_failed, any, NULL, any, &err);
    IGNORES(queue, kinf_queue_done, NULL, any);
    IGNORES(key, kinf_queue_done, any, NULL);
    IGNORES(queue, kinf_queue_shut_down, NULL);
    REFUSES(queue, kinf_queue_drain, NULL, 1, &err);
    DENIES(queue, kinf_queue_is_shut_down, NULL);
    COUNTS_NONE(queue, kinf_queue_len, NULL);
    IGNORES(queue, kinf_queue_status, NULL, any);
    IGNORES(ret_status, kinf_queue_status, any, NULL);
    REFUSES(queues, kinf_queue_metrics_text, NULL, 1, any, &err);
    REFUSES(ret_text, kinf_queue_metrics_text, any, 1, NULL, &err);
}

static void informer_calls_refuse_null(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    DENIES(text, kinf_initial_parse, NULL, any);
    DENIES(ret_initial, kinf_initial_parse, any, NULL);
    REFUSES(client, kinf_informer_new, NULL, any, any, &err);
    REFUSES(options, kinf_informer_new, any, NULL, any, &err);
    REFUSES(ret_informer, kinf_informer_new, any, any, NULL, &err);
    IGNORES(informer, kinf_informer_free_ptr, NULL);
    REFUSES(informer, kinf_informer_start, NULL, &err);
    REFUSES(informer, kinf_informer_stop, NULL, &err);
    REFUSES(informer, kinf_informer_wait_synced, NULL, 1, &err);
    DENIES(informer, kinf_informer_has_synced, NULL);
    IGNORES(informer, kinf_informer_status, NULL, any);
    IGNORES(ret_status, kinf_informer_status, any, NULL);
    REFUSES(informer, kinf_informer_dump, NULL, any, &err);
    REFUSES(ret_text, kinf_informer_dump, any, NULL, &err);
    REFUSES(informer, kinf_informer_add_handler, NULL, any, any, &err);
    REFUSES(handler, kinf_informer_add_handler, any, NULL, any, &err);
    REFUSES(ret_id, kinf_informer_add_handler, any, any, NULL, &err);
    IGNORES(informer, kinf_informer_remove_handler, NULL, 1);
    DENIES(informer, kinf_informer_handler_has_synced, NULL, 1);
    REFUSES(informer, kinf_informer_handler_status, NULL, 1, any, &err);
    REFUSES(ret_status, kinf_informer_handler_status, any, 1, NULL, &err);
    REFUSES(informer, kinf_informer_fd, NULL, any, &err);
    REFUSES(ret_fd, kinf_informer_fd, any, NULL, &err);
    REFUSES(informer, kinf_informer_dispatch, NULL, 1, any, &err);
    GIVES_NULL(informer, kinf_informer_indexer, NULL);
    GIVES_NULL(informer, kinf_informer_type, NULL);
    IGNORES(informer, kinf_informer_lister, NULL, any);
    REFUSES(informer, kinf_informer_resource_version, NULL, any, 1);
    REFUSES(buf, kinf_informer_resource_version, any, NULL, 1);
    REFUSES(informer, kinf_informer_wait_for_rv, NULL, any, 1, &err);
    REFUSES(resource_version, kinf_informer_wait_for_rv, any, NULL, 1, &err);
}

static void owners_calls_refuse_null(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    REFUSES(client, kinf_namespaces_new, NULL, any, any, 1, any, &err);
    REFUSES(options, kinf_namespaces_new, any, NULL, any, 1, any, &err);
    REFUSES(names, kinf_namespaces_new, any, any, NULL, 1, any, &err);
    REFUSES(ret_namespaces, kinf_namespaces_new, any, any, any, 1, NULL, &err);
    IGNORES(namespaces, kinf_namespaces_free_ptr, NULL);
    REFUSES(namespaces, kinf_namespaces_start, NULL, &err);
    REFUSES(namespaces, kinf_namespaces_stop, NULL, &err);
    REFUSES(namespaces, kinf_namespaces_wait_synced, NULL, 1, &err);
    DENIES(namespaces, kinf_namespaces_has_synced, NULL);
    REFUSES(namespaces, kinf_namespaces_add_handler, NULL, any, any, &err);
    REFUSES(handler, kinf_namespaces_add_handler, any, NULL, any, &err);
    REFUSES(ret_id, kinf_namespaces_add_handler, any, any, NULL, &err);
    IGNORES(namespaces, kinf_namespaces_remove_handler, NULL, 1);
    DENIES(namespaces, kinf_namespaces_handler_has_synced, NULL, 1);
    REFUSES(namespaces, kinf_namespaces_fd, NULL, any, &err);
    REFUSES(ret_fd, kinf_namespaces_fd, any, NULL, &err);
    REFUSES(namespaces, kinf_namespaces_dispatch, NULL, 1, any, &err);
    REFUSES(namespaces, kinf_namespaces_list, NULL, any, any, &err);
    REFUSES(ret_list, kinf_namespaces_list, any, any, NULL, &err);
    REFUSES(namespaces, kinf_namespaces_by_index, NULL, any, any, any, &err);
    REFUSES(index, kinf_namespaces_by_index, any, NULL, any, any, &err);
    REFUSES(value, kinf_namespaces_by_index, any, any, NULL, any, &err);
    REFUSES(ret_list, kinf_namespaces_by_index, any, any, any, NULL, &err);
    REFUSES(namespaces, kinf_namespaces_get, NULL, any, any, &err);
    REFUSES(key, kinf_namespaces_get, any, NULL, any, &err);
    REFUSES(ret_object, kinf_namespaces_get, any, any, NULL, &err);
    REFUSES(namespaces, kinf_namespaces_wait_for_rv, NULL, any, any, 1, &err);
    REFUSES(name, kinf_namespaces_wait_for_rv, any, NULL, any, 1, &err);
    REFUSES(resource_version, kinf_namespaces_wait_for_rv, any, any, NULL, 1, &err);
    GIVES_NULL(namespaces, kinf_namespaces_informer, NULL, any);
    GIVES_NULL(name, kinf_namespaces_informer, any, NULL);
    GIVES_NULL(namespaces, kinf_namespaces_type, NULL);
    REFUSES(client, kinf_factory_new, NULL, any, &err);
    REFUSES(ret_factory, kinf_factory_new, any, NULL, &err);
    IGNORES(factory, kinf_factory_free_ptr, NULL);
    REFUSES(factory, kinf_factory_informer, NULL, any, any, &err);
    REFUSES(options, kinf_factory_informer, any, NULL, any, &err);
    REFUSES(ret_informer, kinf_factory_informer, any, any, NULL, &err);
    REFUSES(factory, kinf_factory_start, NULL, &err);
    REFUSES(factory, kinf_factory_wait_synced, NULL, 1, &err);
    REFUSES(factory, kinf_factory_shutdown, NULL, &err);
}

static void controller_calls_refuse_null(void **state)
{
    const struct kinf_str json = KINF_STR("{}"), none = { NULL, 0 };
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    REFUSES(client, kinf_controller_new, NULL, any, any, &err);
    REFUSES(options, kinf_controller_new, any, NULL, any, &err);
    REFUSES(ret_controller, kinf_controller_new, any, any, NULL, &err);
    IGNORES(controller, kinf_controller_free_ptr, NULL);
    REFUSES(controller, kinf_controller_watch, NULL, any, kinf_map_all, any, &err);
    REFUSES(informer, kinf_controller_watch, any, NULL, kinf_map_all, any, &err);
    REFUSES(map, kinf_controller_watch, any, any, NULL, any, &err);
    REFUSES(controller, kinf_controller_start, NULL, &err);
    REFUSES(controller, kinf_controller_stop, NULL, &err);
    REFUSES(controller, kinf_controller_run, NULL, 1, &err);
    IGNORES(controller, kinf_controller_status, NULL, any);
    IGNORES(ret_status, kinf_controller_status, any, NULL);
    GIVES_NULL(controller, kinf_controller_queue, NULL);
    assert_string_equal(kinf_call_key(NULL), "");
    expect_line("call is NULL");
    GIVES_NULL(call, kinf_call_object, NULL);
    GIVES_NULL(call, kinf_call_client, NULL);
    IGNORES(call, kinf_call_requeue_after, NULL, 1);
    REFUSES(call, kinf_call_apply, NULL, any, any, any, json, &err);
    REFUSES(type, kinf_call_apply, any, NULL, any, any, json, &err);
    REFUSES(name, kinf_call_apply, any, any, any, NULL, json, &err);
    REFUSES(json.bytes, kinf_call_apply, any, any, any, any, none, &err);
    REFUSES(call, kinf_call_apply_status, NULL, any, any, any, json, &err);
    REFUSES(type, kinf_call_apply_status, any, NULL, any, any, json, &err);
    REFUSES(name, kinf_call_apply_status, any, any, any, NULL, json, &err);
    REFUSES(json.bytes, kinf_call_apply_status, any, any, any, any, none, &err);
    REFUSES(call, kinf_call_delete, NULL, any, &err);
    REFUSES(object, kinf_call_delete, any, NULL, &err);
    REFUSES(call, kinf_call_request, NULL, any, any, &err);
    REFUSES(request, kinf_call_request, any, NULL, any, &err);
}

/* These have no error to write: the callbacks that call them have a code alone. */
static void maps_refuse_null(void **state)
{
    kinf_map_cb *const maps[] = { kinf_map_owner, kinf_map_annotation, kinf_map_label,
                                  kinf_map_all };

    (void)state;
    assert_int_equal(kinf_keys_add(NULL, any), KINF_ERR_INVALID);
    expect_line("keys is NULL");
    assert_int_equal(kinf_keys_add(any, NULL), KINF_ERR_INVALID);
    expect_line("key is NULL");
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        assert_int_equal(maps[i](NULL, any, any), KINF_ERR_INVALID);
        expect_line("object is NULL");
        assert_int_equal(maps[i](any, NULL, any), KINF_ERR_INVALID);
        expect_line("keys is NULL");
        assert_int_equal(maps[i](any, any, NULL), KINF_ERR_INVALID);
        expect_line("ctx is NULL");
    }
}

static void fake_calls_refuse_null(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    REFUSES(ret_fake, kinf_fake_new, any, NULL, &err);
    IGNORES(fake, kinf_fake_free_ptr, NULL);
    GIVES_NULL(fake, kinf_fake_client, NULL);
    REFUSES(fake, kinf_fake_put, NULL, any, &err);
    REFUSES(manifest, kinf_fake_put, any, NULL, &err);
    REFUSES(fake, kinf_fake_get, NULL, any, any, any, &err);
    REFUSES(resource, kinf_fake_get, any, NULL, any, any, &err);
    REFUSES(key, kinf_fake_get, any, any, NULL, any, &err);
    REFUSES(ret_object, kinf_fake_get, any, any, any, NULL, &err);
    REFUSES(fake, kinf_fake_delete, NULL, any, any, &err);
    REFUSES(resource, kinf_fake_delete, any, NULL, any, &err);
    REFUSES(key, kinf_fake_delete, any, any, NULL, &err);
    REFUSES(fake, kinf_fake_fault, NULL, any, &err);
    REFUSES(spec, kinf_fake_fault, any, NULL, &err);
    IGNORES(fake, kinf_fake_clear_faults, NULL);
    IGNORES(fake, kinf_fake_drop, NULL);
    IGNORES(fake, kinf_fake_advance, NULL, 1);
    REFUSES(fake, kinf_fake_settle, NULL, 1, &err);
    REFUSES(fake, kinf_fake_settle_ahead, NULL, 1, 1, &err);
    REFUSES(fake, kinf_fake_take_lease, NULL, any, &err);
    REFUSES(key, kinf_fake_take_lease, any, NULL, &err);
    REFUSES(options, kinf_sweep, NULL, any, &err);
    REFUSES(ret_result, kinf_sweep, any, NULL, &err);
}

static void where_null_is_allowed_it_is_nothing(void **state)
{
    (void)state;
    kinf_namespaces_free(NULL);
    kinf_path_free(NULL);
    kinf_deltafifo_free(NULL);
    kinf_queue_free(NULL);
    kinf_controller_free(NULL);
    kinf_client_free(NULL);
    kinf_fake_free(NULL);
    kinf_factory_free(NULL);
    kinf_indexer_free(NULL);
    kinf_snapshot_unref(NULL);
    kinf_label_selector_free(NULL);
    kinf_field_selector_free(NULL);
    kinf_object_unref(NULL);
    kinf_informer_free(NULL);
    assert_null(kinf_object_ref(NULL));
    assert_true(kinf_label_selector_is_empty(NULL));
    assert_false(kinf_error_is_not_found(NULL));
    assert_false(kinf_error_is_timeout(NULL));
    assert_int_equal(n_lines, 0);
}

static void a_body_that_is_counted_is_there(void **state)
{
    const struct kinf_request request = { .size = sizeof request,
                                          .verb = KINF_VERB_CREATE,
                                          .body = { NULL, 1 } };

    (void)state;
    assert_int_equal(kinf_client_request(any, &request, NULL, NULL), KINF_ERR_INVALID);
    expect_line("body.bytes is NULL");
    assert_int_equal(kinf_client_request_raw(any, "POST", "/", request.body, NULL, NULL, NULL),
                     KINF_ERR_INVALID);
    expect_line("kinf_client_request_raw: body.bytes is NULL");
}

static void an_error_says_which_argument(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(kinf_informer_start(NULL, &err), KINF_ERR_INVALID);
    assert_int_equal(err.code, KINF_ERR_INVALID);
    assert_string_equal(err.message, "kinf_informer_start: informer is NULL");
    expect_line(err.message);
}

/* --- who outlives whom --- */

static struct kinf_client *make_client(void)
{
    const struct sockaddr_un nowhere = { .sun_family = AF_UNIX, .sun_path = "/nowhere" };
    struct kinf_client *client;

    assert_int_equal(kinf__client_new_local(&nowhere, sizeof nowhere, &client, NULL), 0);
    return client;
}

static const struct kinf_type *pods(void)
{
    const struct kinf_type *type;

    assert_int_equal(kinf_type_intern("", "v1", "Pod", "pods", true, &type, NULL), 0);
    return type;
}

static void a_client_is_not_freed_before_its_informers(void **state)
{
    const struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_client *client = make_client();
    struct kinf_informer *informer;

    (void)state;
    assert_int_equal(kinf__informer_new_for_type(client, pods(), &options, &informer, NULL), 0);
    kinf_client_free(client);
    expect_line("a client is not freed before");
    assert_string_equal(kinf_client_server(client), "http://127.0.0.1:1");
    kinf_informer_free(informer);
    kinf_client_free(client);
    assert_int_equal(n_lines, 0);
}

static void an_informer_needs_a_resource(void **state)
{
    const struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_client *client = make_client();
    kinf_auto_informer struct kinf_informer *informer = NULL;

    (void)state;
    assert_int_equal(kinf_informer_new(client, &options, &informer, &err), KINF_ERR_INVALID);
    expect_line("an informer needs a resource");
    assert_null(informer);
    kinf_client_free(client);
}

static void an_informer_is_freed_at_the_end_of_its_block(void **state)
{
    const struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_client *client = make_client();

    (void)state;
    {
        kinf_auto_informer struct kinf_informer *informer = NULL;

        assert_int_equal(kinf__informer_new_for_type(client, pods(), &options, &informer, NULL), 0);
    }
    kinf_client_free(client); /* which an informer would hold */
    assert_int_equal(n_lines, 0);
}

static void a_client_is_not_freed_before_its_factories(void **state)
{
    struct kinf_client *client = make_client();
    struct kinf_factory *factory;

    (void)state;
    assert_int_equal(kinf_factory_new(client, &factory, NULL), 0);
    kinf_client_free(client);
    expect_line("a client is not freed before");
    kinf_factory_free(factory);
    kinf_client_free(client);
    assert_int_equal(n_lines, 0);
}

static void a_fake_keeps_its_client_and_waits_for_its_informers(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *informer;
    struct kinf_fake *fake;

    (void)state;
    options.resource = "pods";
    assert_int_equal(kinf_fake_new(NULL, &fake, NULL), 0);
    kinf_client_free(kinf_fake_client(fake));
    expect_line("a client is not freed before");
    assert_int_equal(kinf_informer_new(kinf_fake_client(fake), &options, &informer, NULL), 0);
    kinf_fake_free(fake);
    expect_line("a client is not freed before");
    kinf_informer_free(informer);
    kinf_fake_free(fake);
    assert_int_equal(n_lines, 0);
}

static void touch_by_hand(struct kinf_informer *informer)
{
    assert_int_equal(kinf_informer_start(informer, NULL), KINF_ERR_STATE);
    expect_line("pods: the informer is not started by hand");
    assert_int_equal(kinf_informer_stop(informer, NULL), KINF_ERR_STATE);
    expect_line("pods: the informer is not stopped by hand");
    kinf_informer_free(informer);
    expect_line("pods: the informer is not freed by hand");
}

static void what_is_lent_is_not_started_stopped_or_freed_by_hand(void **state)
{
    static const char *const names[] = { "a", "b" };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    kinf_auto_fake struct kinf_fake *fake = NULL;
    kinf_auto_factory struct kinf_factory *factory = NULL;
    kinf_auto_namespaces struct kinf_namespaces *namespaces = NULL;
    struct kinf_informer *informer;

    (void)state;
    options.resource = "pods";
    assert_int_equal(kinf_fake_new(NULL, &fake, NULL), 0);
    assert_int_equal(kinf_factory_new(kinf_fake_client(fake), &factory, NULL), 0);
    assert_int_equal(kinf_factory_informer(factory, &options, &informer, NULL), 0);
    touch_by_hand(informer);
    assert_int_equal(kinf_factory_start(factory, NULL), 0);
    assert_int_equal(kinf_factory_wait_synced(factory, KINF_FOREVER, NULL), 0);
    touch_by_hand(informer);
    assert_int_equal(
        kinf_namespaces_new(kinf_fake_client(fake), &options, names, 2, &namespaces, NULL), 0);
    touch_by_hand(kinf_namespaces_informer(namespaces, "a"));
    assert_int_equal(kinf_namespaces_start(namespaces, NULL), 0);
    assert_int_equal(kinf_namespaces_wait_synced(namespaces, KINF_FOREVER, NULL), 0);
    touch_by_hand(kinf_namespaces_informer(namespaces, "b"));
}

/* --- keys --- */

static void a_key_is_given_back_once_and_by_who_has_it(void **state)
{
    kinf_auto_queue struct kinf_queue *queue = NULL;
    const char *key;

    (void)state;
    assert_int_equal(kinf_queue_new(NULL, &queue, NULL), 0);
    kinf_queue_done(queue, "a");
    expect_line("kinf_queue_done: 'a' is not in process");
    assert_int_equal(kinf_queue_add(queue, "a", NULL), 0);
    kinf_queue_done(queue, "a");
    expect_line("kinf_queue_done: 'a' is not in process");
    assert_int_equal(kinf_queue_get(queue, 0, &key, NULL), 0);
    kinf_queue_done(queue, key);
    kinf_queue_done(queue, "a");
    expect_line("kinf_queue_done: 'a' is not in process");
}

static void *wait_for_key(void *ctx)
{
    const char *key;

    return kinf_queue_get(ctx, KINF_FOREVER, &key, NULL) == KINF_ERR_STOPPED ? ctx : NULL;
}

static void a_queue_is_not_freed_while_somebody_waits_in_it(void **state)
{
    struct kinf_queue *queue;
    pthread_t thread;
    void *result;
    size_t n_getters = 0;

    (void)state;
    assert_int_equal(kinf_queue_new(NULL, &queue, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_key, queue), 0);
    while (n_getters == 0) {
        kinf__mutex_lock(&queue->lock);
        n_getters = queue->n_getters;
        kinf__mutex_unlock(&queue->lock);
    }
    kinf_queue_free(queue);
    expect_line("somebody waits in the queue");
    kinf_queue_shut_down(queue);
    pthread_join(thread, &result);
    assert_ptr_equal(result, queue);
    kinf_queue_free(queue);
    assert_int_equal(n_lines, 0);
}

/* --- arrays --- */

static void an_array_that_is_counted_is_there(void **state)
{
    static const char *const hole[] = { "spec.nodeName", NULL };
    static const struct {
        struct kinf_informer_options options;
        const char *message;
    } rows[] = {
        { { .n_drops = 2 }, "n_drops is 2, but drops is NULL" },
        { { .n_keeps = 1 }, "n_keeps is 1, but keeps is NULL" },
        { { .n_indices = 1 }, "n_indices is 1, but indices is NULL" },
        { { .drops = hole, .n_drops = 2 }, "drops[1] is NULL" },
        { { .keeps = hole, .n_keeps = 2 }, "keeps[1] is NULL" },
    };
    static const char *const names[] = { "default" };
    kinf_auto_fake struct kinf_fake *fake = NULL;
    kinf_auto_factory struct kinf_factory *factory = NULL;
    struct kinf_namespaces *namespaces;
    struct kinf_informer *informer;
    struct kinf_client *client;

    (void)state;
    assert_int_equal(kinf_fake_new(NULL, &fake, NULL), 0);
    client = kinf_fake_client(fake);
    assert_int_equal(kinf_factory_new(client, &factory, NULL), 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf_informer_options options = rows[i].options;

        options.size = sizeof options;
        options.resource = "pods";
        assert_int_equal(kinf_informer_new(client, &options, &informer, NULL), KINF_ERR_INVALID);
        expect_line(rows[i].message);
        assert_int_equal(kinf_factory_informer(factory, &options, &informer, NULL),
                         KINF_ERR_INVALID);
        expect_line(rows[i].message);
        assert_int_equal(kinf_namespaces_new(client, &options, names, 1, &namespaces, NULL),
                         KINF_ERR_INVALID);
        expect_line(rows[i].message);
    }
}

/* --- the log --- */

static void replace_callback(enum kinf_log_level level, const char *module, const char *text,
                             void *ctx)
{
    (void)level;
    (void)module;
    (void)ctx;
    kinf_log_set_callback(NULL, NULL);
    (void)!kinf_informer_has_synced(NULL); /* would log */
    snprintf(line, sizeof line, "%s", text);
    n_lines++;
}

static void a_log_callback_is_not_replaced_from_itself(void **state)
{
    (void)state;
    kinf_log_set_callback(replace_callback, NULL);
    assert_false(kinf_informer_has_synced(NULL));
    assert_int_equal(n_lines, 2);
    n_lines = 1;
    expect_line("kinf_log_set_callback: called from the log callback");
    assert_false(kinf_informer_has_synced(NULL));
    assert_int_equal(n_lines, 2);
}

#define MISUSE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MISUSE_TEST(client_calls_refuse_null),
        MISUSE_TEST(elector_calls_refuse_null),
        MISUSE_TEST(recorder_calls_refuse_null),
        MISUSE_TEST(text_calls_refuse_null),
        MISUSE_TEST(object_calls_refuse_null),
        MISUSE_TEST(store_calls_refuse_null),
        MISUSE_TEST(queue_calls_refuse_null),
        MISUSE_TEST(informer_calls_refuse_null),
        MISUSE_TEST(owners_calls_refuse_null),
        MISUSE_TEST(controller_calls_refuse_null),
        MISUSE_TEST(maps_refuse_null),
        MISUSE_TEST(fake_calls_refuse_null),
        MISUSE_TEST(where_null_is_allowed_it_is_nothing),
        MISUSE_TEST(a_body_that_is_counted_is_there),
        MISUSE_TEST(an_error_says_which_argument),
        MISUSE_TEST(a_client_is_not_freed_before_its_informers),
        MISUSE_TEST(an_informer_needs_a_resource),
        MISUSE_TEST(an_informer_is_freed_at_the_end_of_its_block),
        MISUSE_TEST(a_client_is_not_freed_before_its_factories),
        MISUSE_TEST(a_fake_keeps_its_client_and_waits_for_its_informers),
        MISUSE_TEST(what_is_lent_is_not_started_stopped_or_freed_by_hand),
        MISUSE_TEST(a_key_is_given_back_once_and_by_who_has_it),
        MISUSE_TEST(a_queue_is_not_freed_while_somebody_waits_in_it),
        MISUSE_TEST(an_array_that_is_counted_is_there),
        MISUSE_TEST(a_log_callback_is_not_replaced_from_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
