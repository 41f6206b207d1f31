/*
 * Several namespaces as one: an informer each, and handlers that listen to all of them. Neighbours:
 * informer.c does the work of each, handlers.c has the handlers.
 *
 * Invariant: the parts are sorted so that their lists, one after another, are sorted by key.
 *
 * A namespace costs two threads, its reflector's and its processor's. To share the first, a reflector
 * would have to be stepped by what its exchange reports instead of waiting in kinf__http_perform(),
 * so that one thread runs the exchanges of many; to share the second, one thread would pop from many
 * queues, and a transform or index function that is slow in one namespace would hold up the others.
 */
#include "informer/informer.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/misuse.h"
#include "deltafifo/deltafifo.h"
#include "informer/callback.h"
#include "informer/handlers.h"

/* One namespace. */
struct part {
    char *name;
    struct kinf_informer *informer;
    struct kinf__callback_wait is_part; /* the end of all is the informer's */
};

struct kinf_namespaces {
    /* constant after creation */
    const struct kinf_type *type;
    struct part *parts;
    size_t n_parts;
    struct kinf__processor **processors; /* of the parts */

    struct kinf__handlers handlers; /* has a lock of its own */
};

/* --- parts --- */

/* The order of the keys in them: as if the slash belonged to the name. */
static int compare_names(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (unsigned char)(*a != '\0' ? *a : '/') - (unsigned char)(*b != '\0' ? *b : '/');
}

static int compare_parts(const void *a, const void *b)
{
    return compare_names(((const struct part *)a)->name, ((const struct part *)b)->name);
}

static const struct part *find_part(const struct kinf_namespaces *namespaces, struct kinf_str name)
{
    for (size_t i = 0; i < namespaces->n_parts; i++) {
        if (kinf_str_equal(kinf_str_from(namespaces->parts[i].name), name))
            return &namespaces->parts[i];
    }
    return NULL;
}

static int check_names(const struct kinf_informer_options *options, const char *const *names,
                       size_t n_names, struct kinf_error *err)
{
    if (options->name_space != NULL && options->name_space[0] != '\0')
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "the options of several namespaces name one themselves");
    if (n_names == 0)
        return kinf__error_set(err, KINF_ERR_INVALID, "no namespace is named");
    for (size_t i = 0; i < n_names; i++) {
        int rc = kinf__name_check_namespace(names[i] != NULL ? names[i] : "", err);

        if (rc < 0)
            return rc;
    }
    return 0;
}

static int sort_parts(struct kinf_namespaces *namespaces, struct kinf_error *err)
{
    struct part *parts = namespaces->parts;

    qsort(parts, namespaces->n_parts, sizeof *parts, compare_parts);
    for (size_t i = 1; i < namespaces->n_parts; i++) {
        if (strcmp(parts[i - 1].name, parts[i].name) == 0)
            return kinf__error_set(err, KINF_ERR_EXISTS, "the namespace \"%s\" is named twice",
                                   parts[i].name);
    }
    return 0;
}

static int copy_names(struct kinf_namespaces *namespaces, const char *const *names, size_t n_names,
                      struct kinf_error *err)
{
    namespaces->parts = calloc(n_names, sizeof *namespaces->parts);
    namespaces->processors = calloc(n_names, sizeof(struct kinf__processor *));
    if (namespaces->parts == NULL || namespaces->processors == NULL)
        return kinf__error_no_memory(err);
    for (; namespaces->n_parts < n_names; namespaces->n_parts++) {
        struct part *part = &namespaces->parts[namespaces->n_parts];

        part->name = strdup(names[namespaces->n_parts]);
        if (part->name == NULL)
            return kinf__error_no_memory(err);
    }
    return sort_parts(namespaces, err);
}

static int make_informers(struct kinf_namespaces *namespaces, struct kinf_client *client,
                          const struct kinf_informer_options *options, struct kinf_error *err)
{
    struct kinf_informer_options each = *options;
    int rc = 0;

    each.handler = (struct kinf_handler){ .ctx = NULL };
    for (size_t i = 0; rc == 0 && i < namespaces->n_parts; i++) {
        each.name_space = namespaces->parts[i].name;
        rc = kinf__informer_new_for_type(client, namespaces->type, &each,
                                         &namespaces->parts[i].informer, err);
        if (rc == 0) {
            kinf__informer_lend(namespaces->parts[i].informer);
            kinf__callback_add_part(&namespaces->parts[i].is_part, namespaces,
                                    namespaces->parts[i].informer);
            namespaces->processors[i] = &namespaces->parts[i].informer->processor;
        }
    }
    return rc;
}

static void release(struct kinf_namespaces *namespaces)
{
    kinf__handlers_release(&namespaces->handlers);
    for (size_t i = 0; i < namespaces->n_parts; i++) {
        kinf__callback_end_wait(&namespaces->parts[i].is_part);
        kinf__informer_free(namespaces->parts[i].informer);
        free(namespaces->parts[i].name);
    }
    free(namespaces->parts);
    free(namespaces->processors);
    free(namespaces);
}

/* --- life --- */

int kinf__namespaces_new_for_type(struct kinf_client *client, const struct kinf_type *type,
                                  const struct kinf_informer_options *options,
                                  const char *const *names, size_t n_names,
                                  struct kinf_namespaces **ret_namespaces, struct kinf_error *err)
{
    struct kinf_namespaces *namespaces;
    kinf_handler_id id;
    int rc = check_names(options, names, n_names, err);

    if (rc < 0)
        return rc;
    namespaces = calloc(1, sizeof *namespaces);
    if (namespaces == NULL)
        return kinf__error_no_memory(err);
    namespaces->type = type;
    rc = copy_names(namespaces, names, n_names, err);
    kinf__handlers_init(&namespaces->handlers, namespaces, namespaces->processors,
                        namespaces->n_parts);
    if (rc == 0)
        rc = make_informers(namespaces, client, options, err);
    if (rc == 0 && kinf__handler_has_callback(&options->handler))
        rc = kinf_namespaces_add_handler(namespaces, &options->handler, &id, err);
    if (rc < 0)
        release(namespaces);
    else
        *ret_namespaces = namespaces;
    return rc;
}

int kinf_namespaces_new(struct kinf_client *client, const struct kinf_informer_options *options,
                        const char *const *names, size_t n_names,
                        struct kinf_namespaces **ret_namespaces, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, client, options, ret_namespaces);
    if (n_names != 0)
        KINF__REFUSE_NULL(err, KINF_ERR_INVALID, names);

    struct kinf_informer_options own;
    const struct kinf_type *type;
    int rc;

    rc = kinf__informer_options_read(client, options, &own, &type, err);
    return rc < 0 ? rc
                  : kinf__namespaces_new_for_type(client, type, &own, names, n_names,
                                                  ret_namespaces, err);
}

void kinf_namespaces_free(struct kinf_namespaces *namespaces)
{
    struct kinf_error err = KINF_ERROR_INIT;

    if (namespaces == NULL)
        return;
    for (size_t i = 0; i < namespaces->n_parts; i++) {
        if (kinf__informer_is_held(namespaces->parts[i].informer)) {
            kinf__informer_refuse_held(namespaces->parts[i].informer);
            return;
        }
    }
    if (kinf_namespaces_stop(namespaces, &err) < 0) {
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_ERROR, "not freed resource=%s error=%s",
                  namespaces->type->resource, KINF__QUOTED(err.message));
        return;
    }
    release(namespaces);
}

void kinf_namespaces_free_ptr(struct kinf_namespaces **namespaces)
{
    KINF__REFUSE_NULL(NULL, , namespaces);
    kinf_namespaces_free(*namespaces);
}

int kinf_namespaces_start(struct kinf_namespaces *namespaces, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces);

    int rc = kinf__handlers_start(&namespaces->handlers, err);

    if (rc == KINF_ERR_STATE)
        return rc;
    for (size_t i = 0; rc == 0 && i < namespaces->n_parts; i++)
        rc = kinf__informer_start(namespaces->parts[i].informer, err);
    if (rc < 0)
        kinf_namespaces_stop(namespaces, NULL);
    return rc;
}

int kinf_namespaces_stop(struct kinf_namespaces *namespaces, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces);

    struct kinf__callback_wait wait;
    int rc = 0;

    if (!kinf__callback_begin_wait(&wait, namespaces))
        return kinf__error_set(err, KINF_ERR_STATE,
                               "an informer cannot be stopped from its own callback, nor from one "
                               "that it waits for");
    kinf__handlers_close(&namespaces->handlers);
    for (size_t i = 0; i < namespaces->n_parts; i++)
        kinf__informer_interrupt(namespaces->parts[i].informer);
    for (size_t i = 0; rc == 0 && i < namespaces->n_parts; i++)
        rc = kinf__informer_stop(namespaces->parts[i].informer, err);
    kinf__handlers_join(&namespaces->handlers);
    kinf__callback_end_wait(&wait);
    return rc;
}

static struct kinf_informer *informer_at(size_t i, void *ctx)
{
    const struct kinf_namespaces *namespaces = ctx;

    return i < namespaces->n_parts ? namespaces->parts[i].informer : NULL;
}

int kinf_namespaces_wait_synced(struct kinf_namespaces *namespaces, int64_t timeout_ms,
                                struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces);
    return kinf__informer_wait_each_synced(informer_at, namespaces, timeout_ms, err);
}

bool kinf_namespaces_has_synced(struct kinf_namespaces *namespaces)
{
    KINF__REFUSE_NULL(NULL, false, namespaces);
    for (size_t i = 0; i < namespaces->n_parts; i++) {
        if (!kinf_informer_has_synced(namespaces->parts[i].informer))
            return false;
    }
    return true;
}

/* --- handlers --- */

int kinf_namespaces_add_handler(struct kinf_namespaces *namespaces,
                                const struct kinf_handler *handler, kinf_handler_id *ret_id,
                                struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces, handler, ret_id);

    int rc = kinf__handlers_add(&namespaces->handlers, handler, kinf__clock_now_ms(), ret_id, err);

    for (size_t i = 0; i < namespaces->n_parts; i++)
        kinf__deltafifo_nudge(namespaces->parts[i].informer->fifo);
    return rc;
}

void kinf_namespaces_remove_handler(struct kinf_namespaces *namespaces, kinf_handler_id id)
{
    KINF__REFUSE_NULL(NULL, , namespaces);
    kinf__handlers_remove(&namespaces->handlers, id);
}

bool kinf_namespaces_handler_has_synced(struct kinf_namespaces *namespaces, kinf_handler_id id)
{
    KINF__REFUSE_NULL(NULL, false, namespaces);
    return kinf__handlers_has_synced(&namespaces->handlers, id);
}

int kinf_namespaces_fd(struct kinf_namespaces *namespaces, int *ret_fd, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces, ret_fd);
    return kinf__handlers_fd(&namespaces->handlers, ret_fd, err);
}

int kinf_namespaces_dispatch(struct kinf_namespaces *namespaces, size_t max, size_t *ret_n_waiting,
                             struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces);
    return kinf__handlers_dispatch(&namespaces->handlers, max, ret_n_waiting, err);
}

/* --- reading --- */

/* What is asked of each part: by selector, or by index if one is named. */
struct question {
    const struct kinf_label_selector *selector;
    const char *index;
    const char *value;
};

static int ask_part(const struct part *part, const struct question *question,
                    struct kinf_object_list *ret_list, struct kinf_error *err)
{
    const struct kinf_lister lister = kinf_informer_lister(part->informer, NULL);

    if (question->index != NULL)
        return kinf_indexer_by_index(lister.indexer, question->index, question->value, ret_list,
                                     err);
    return kinf_lister_list(&lister, question->selector, ret_list, err);
}

/* Moves the objects of `take_list` behind those of `list`. */
static int append_list(struct kinf_object_list *list, struct kinf_object_list *take_list,
                       struct kinf_error *err)
{
    const struct kinf_object **items;

    if (take_list->n_items == 0)
        return 0;
    items = reallocarray(list->items, list->n_items + take_list->n_items, sizeof *items);
    if (items == NULL) {
        kinf_object_list_release(take_list);
        return kinf__error_no_memory(err);
    }
    memcpy(items + list->n_items, take_list->items, take_list->n_items * sizeof *items);
    list->items = items;
    list->n_items += take_list->n_items;
    free(take_list->items);
    return 0;
}

static int ask_all(const struct kinf_namespaces *namespaces, const struct question *question,
                   struct kinf_object_list *ret_list, struct kinf_error *err)
{
    struct kinf_object_list all = KINF_OBJECT_LIST_INIT;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < namespaces->n_parts; i++) {
        struct kinf_object_list list = KINF_OBJECT_LIST_INIT;

        rc = ask_part(&namespaces->parts[i], question, &list, err);
        if (rc == 0)
            rc = append_list(&all, &list, err);
    }
    if (rc < 0)
        kinf_object_list_release(&all);
    else
        *ret_list = all;
    return rc;
}

int kinf_namespaces_list(struct kinf_namespaces *namespaces,
                         const struct kinf_label_selector *selector,
                         struct kinf_object_list *ret_list, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces, ret_list);

    const struct question question = { .selector = selector };

    return ask_all(namespaces, &question, ret_list, err);
}

int kinf_namespaces_by_index(struct kinf_namespaces *namespaces, const char *index,
                             const char *value, struct kinf_object_list *ret_list,
                             struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces, index, value, ret_list);

    const struct question question = { .index = index, .value = value };

    return ask_all(namespaces, &question, ret_list, err);
}

int kinf_namespaces_get(struct kinf_namespaces *namespaces, const char *key,
                        const struct kinf_object **ret_object, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces, key, ret_object);

    const char *slash = strchr(key, '/');
    struct kinf_str name = { key, slash != NULL ? (size_t)(slash - key) : 0 };
    const struct part *part = find_part(namespaces, name);

    if (part == NULL ||
        kinf_indexer_get_by_key(kinf_informer_indexer(part->informer), key, ret_object) < 0)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND, "\"%s\" not found", key);
    return 0;
}

int kinf_namespaces_wait_for_rv(struct kinf_namespaces *namespaces, const char *name,
                                const char *resource_version, int64_t timeout_ms,
                                struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces, name, resource_version);

    const struct part *part = find_part(namespaces, kinf_str_from(name));

    if (part == NULL)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND, "the namespace \"%s\" is not watched",
                               name);
    return kinf_informer_wait_for_rv(part->informer, resource_version, timeout_ms, err);
}

struct kinf_informer *kinf_namespaces_informer(struct kinf_namespaces *namespaces, const char *name)
{
    KINF__REFUSE_NULL(NULL, NULL, namespaces, name);

    const struct part *part = find_part(namespaces, kinf_str_from(name));

    return part != NULL ? part->informer : NULL;
}

const struct kinf_type *kinf_namespaces_type(const struct kinf_namespaces *namespaces)
{
    KINF__REFUSE_NULL(NULL, NULL, namespaces);
    return namespaces->type;
}
