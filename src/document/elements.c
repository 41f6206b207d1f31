/*
 * Elements of merged lists. Neighbour: strategic.c. What the server has slices and searches for are
 * ranks in an index here, made once for each list.
 */
#include "document/elements.h"

#include <stdlib.h>
#include <string.h>

#include "document/patch.h"

/* --- refusals --- */

int kinf__refuse_values(struct kinf__refusal *refusal, const char *const words[3], char verb,
                        const struct cJSON *x, const struct cJSON *y)
{
    KINF__AUTO_BUFFER x_room = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER y_room = KINF__BUFFER_INIT;
    const char *x_text = kinf__doc_go_text(x, verb, KINF__REFUSAL_MESSAGE_SIZE, &x_room),
               *y_text = kinf__doc_go_text(y, 'v', KINF__REFUSAL_MESSAGE_SIZE, &y_room);

    if (x_text == NULL || y_text == NULL)
        return KINF_ERR_NO_MEMORY;
    return kinf__refuse_oddly(refusal, "%s%s%s%s%s", words[0], x_text, words[1], y_text, words[2]);
}

int kinf__refuse_go_type(struct kinf__refusal *refusal, const char *expected,
                         const struct cJSON *value)
{
    return kinf__refuse_oddly(refusal, "expected a %s, but received a %s", expected,
                              kinf__doc_go_type(value));
}

static int refuse_no_key(struct kinf__refusal *refusal, const struct cJSON *element,
                         const char *merge_key)
{
    KINF__AUTO_BUFFER room = KINF__BUFFER_INIT;
    const char *text = kinf__doc_go_text(element, 'v', KINF__REFUSAL_MESSAGE_SIZE, &room);

    if (text == NULL)
        return KINF_ERR_NO_MEMORY;
    return kinf__refuse_oddly(refusal, "map: %s does not contain declared merge key: %s", text,
                              merge_key);
}

/* --- what tells elements apart --- */

const struct cJSON *kinf__element_key(const struct cJSON *element, const char *merge_key)
{
    return *merge_key == '\0' ? element : kinf__doc_get(element, merge_key);
}

int kinf__element_check_key(const struct cJSON *element, const char *merge_key,
                            struct kinf__refusal *refusal)
{
    if (*merge_key != '\0' && !cJSON_IsObject(element))
        return kinf__refuse_go_type(refusal, KINF__GO_MAP, element);
    if (kinf__element_key(element, merge_key) == NULL)
        return refuse_no_key(refusal, element, merge_key);
    return 0;
}

const char *kinf__element_key_text(const struct cJSON *element, const char *merge_key,
                                   struct kinf__buffer *room)
{
    room->len = 0;
    return kinf__doc_print(kinf__element_key(element, merge_key), room) < 0
               ? NULL
               : kinf__buffer_cstr(room);
}

int kinf__elements_rank(const struct cJSON *list, const char *merge_key,
                        struct kinf__node_index *ranks)
{
    KINF__AUTO_BUFFER room = KINF__BUFFER_INIT;
    struct cJSON *element;
    const char *key;
    size_t rank = 0;

    cJSON_ArrayForEach(element, list)
    {
        if (kinf__element_key(element, merge_key) == NULL)
            continue;
        key = kinf__element_key_text(element, merge_key, &room);
        if (key == NULL || kinf__node_index_add(ranks, key, element, rank) < 0)
            return KINF_ERR_NO_MEMORY;
        rank++;
    }
    return 0;
}

int kinf__elements_check(const struct cJSON *original, const struct cJSON *patch,
                         bool *ret_are_maps, struct kinf__refusal *refusal)
{
    static const char *const words[] = { "list element types are not identical: [", " ", "]" };
    const struct cJSON *lists[] = { original, patch }, *element;
    const char *type = NULL;

    for (size_t i = 0; i < KINF__ARRAY_LEN(lists); i++) {
        cJSON_ArrayForEach(element, lists[i])
        {
            if (type == NULL && cJSON_IsArray(element))
                return kinf__patch_reject(refusal);
            if (type != NULL && strcmp(type, kinf__doc_go_type(element)) != 0)
                return kinf__refuse_values(refusal, words, 'v', original, patch);
            type = kinf__doc_go_type(element);
        }
    }
    *ret_are_maps = type != NULL && strcmp(type, KINF__GO_MAP) == 0;
    return 0;
}

/* --- the order of a merged list --- */

struct item {
    struct cJSON *node;
    bool is_named;
    size_t rank; /* in the patch's order, or the server's */
    size_t server_rank;
    size_t position;
};

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->is_named != y->is_named)
        return x->is_named ? 1 : -1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    /* The server turns those around that no order has. */
    return (x->position < y->position) == (x->rank != KINF__NO_RANK) ? -1 : 1;
}

static size_t find_rank(const struct kinf__node_index *ranks, const char *key)
{
    const struct kinf__node_index_entry *entry = kinf__node_index_find(ranks, key);

    return entry != NULL ? entry->rank : KINF__NO_RANK;
}

static int read_items(const struct cJSON *list, const char *merge_key,
                      const struct kinf__node_index *server, const struct kinf__node_index *named,
                      struct item *items, struct kinf__refusal *refusal)
{
    KINF__AUTO_BUFFER room = KINF__BUFFER_INIT;
    struct cJSON *element;
    const char *key;
    size_t i = 0;
    int failed;

    cJSON_ArrayForEach(element, list)
    {
        struct item *item = &items[i];

        failed = kinf__element_check_key(element, merge_key, refusal);
        if (failed < 0)
            return failed;
        key = kinf__element_key_text(element, merge_key, &room);
        if (key == NULL)
            return KINF_ERR_NO_MEMORY;
        *item = (struct item){ .node = element, .position = i++ };
        item->server_rank = find_rank(server, key);
        item->rank = find_rank(named, key);
        item->is_named = item->rank != KINF__NO_RANK;
        if (!item->is_named)
            item->rank = item->server_rank;
    }
    return 0;
}

static void append_item(struct cJSON *list, const struct item *item)
{
    item->node->prev = NULL;
    item->node->next = NULL;
    cJSON_AddItemToArray(list, item->node);
}

/* Those that are not named are in front, both are sorted. */
static void weave(struct cJSON *list, const struct item *items, size_t n)
{
    size_t other = 0, named = 0, n_others;

    while (named < n && !items[named].is_named)
        named++;
    n_others = named;
    list->child = NULL;
    while (other < n_others || named < n) {
        bool is_other =
            named == n || (other < n_others && items[other].server_rank != KINF__NO_RANK &&
                           items[named].server_rank != KINF__NO_RANK &&
                           items[other].server_rank < items[named].server_rank);

        append_item(list, is_other ? &items[other++] : &items[named++]);
    }
}

int kinf__elements_arrange(struct cJSON *list, const char *merge_key,
                           const struct kinf__node_index *server,
                           const struct kinf__node_index *named, struct kinf__refusal *refusal)
{
    size_t n = (size_t)cJSON_GetArraySize(list);
    KINF__AUTO_FREE struct item *items = calloc(n + 1, sizeof *items);
    int failed;

    if (items == NULL)
        return KINF_ERR_NO_MEMORY;
    failed = read_items(list, merge_key, server, named, items, refusal);
    if (failed < 0)
        return failed;
    qsort(items, n, sizeof *items, compare_items);
    weave(list, items, n);
    return 0;
}
