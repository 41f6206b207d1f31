/*
 * Objects as sorted lines, so that comparing is merging, and what differs can be read. Neighbours:
 * sweep.c compares.
 */
#include "sim/end_state.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "document/tree.h"

#define DIFF_MAX 50

/* --- what differs from run to run --- */

static bool is_one_of(const char *name, const char *const *names, size_t n_names)
{
    for (size_t i = 0; i < n_names; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

/* Names are in front of each line. */
static bool is_left_out(const char *parent, const char *name)
{
    static const char *const of_metadata[] = { "resourceVersion", "uid",       "creationTimestamp",
                                               "generation",      "name",      "managedFields",
                                               "selfLink",        "namespace", "generateName" };

    return strcmp(name, "observedGeneration") == 0 || strcmp(name, "containerID") == 0 ||
           (strcmp(parent, "metadata") == 0 &&
            is_one_of(name, of_metadata, KINF__ARRAY_LEN(of_metadata)));
}

/* A pattern of letters that stand for themselves, x for a hexadecimal and 9 for a decimal digit. */
static bool begins_like(const char *text, const char *pattern)
{
    for (; *pattern != '\0'; text++, pattern++) {
        bool is_alike = *pattern == 'x'   ? isxdigit((unsigned char)*text) != 0
                        : *pattern == '9' ? isdigit((unsigned char)*text) != 0
                                          : *text == *pattern;

        if (!is_alike)
            return false;
    }
    return true;
}

static const char *stand_in(const char *text)
{
    if (strlen(text) == 36 && begins_like(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"))
        return "<uid>";
    return begins_like(text, "9999-99-99T99:99:99") ? "<time>" : NULL;
}

/* --- lines --- */

static int keep_line(struct kinf__end_state *state, struct kinf__buffer *line)
{
    const char *text = kinf__buffer_cstr(line);

    if (text == NULL)
        return KINF_ERR_NO_MEMORY;
    if (state->n_lines == state->size) {
        size_t size = state->size * 2 + 64;
        char **lines = realloc(state->lines, size * sizeof *lines);

        if (lines == NULL)
            return KINF_ERR_NO_MEMORY;
        state->lines = lines;
        state->size = size;
    }
    state->lines[state->n_lines] = strdup(text);
    return state->lines[state->n_lines] != NULL ? (state->n_lines++, 0) : KINF_ERR_NO_MEMORY;
}

static int add_value(struct kinf__end_state *state, struct kinf__buffer *line,
                     const struct cJSON *value)
{
    const char *text = cJSON_IsString(value) ? stand_in(value->valuestring) : NULL;

    if (kinf__buffer_append(line, "=", 1) < 0 ||
        (text != NULL ? kinf__buffer_printf(line, "%s", text) : kinf__doc_print(value, line)) < 0)
        return KINF_ERR_NO_MEMORY;
    return keep_line(state, line);
}

static int add(struct kinf__end_state *state, struct kinf__buffer *line, const struct cJSON *value,
               const char *parent);

static int add_child(struct kinf__end_state *state, struct kinf__buffer *line,
                     const struct cJSON *value, const struct cJSON *child)
{
    const char *id = kinf__doc_text(child, "name", NULL);
    size_t len = line->len;
    int failed;

    if (*id == '\0')
        id = kinf__doc_text(child, "type", NULL);
    if (cJSON_IsArray(value))
        failed = kinf__buffer_printf(line, "[%s]", cJSON_IsObject(child) ? id : "");
    else
        failed = kinf__buffer_printf(line, "%s%s", line->bytes[len - 1] == ' ' ? "" : ".",
                                     child->string);
    if (failed == 0)
        failed = add(state, line, child, cJSON_IsArray(value) ? "" : child->string);
    line->len = len;
    return failed;
}

/* `line` has what is in front of the value, and has it again afterwards, or is of no use. */
static int add(struct kinf__end_state *state, struct kinf__buffer *line, const struct cJSON *value,
               const char *parent)
{
    const struct cJSON *child;

    if (value->child == NULL)
        return add_value(state, line, value);
    cJSON_ArrayForEach(child, value)
    {
        if ((child->string == NULL || !is_left_out(parent, child->string)) &&
            add_child(state, line, value, child) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* "configmaps default/a"; of a name that was generated what it was made of. */
static int write_head(const struct kinf__resource *resource, const struct kinf_object *object,
                      const struct cJSON *tree, struct kinf__buffer *line)
{
    const char *generate_name = kinf__doc_text(tree, "metadata", "generateName", NULL);
    struct kinf_str name_space = kinf_object_namespace(object);

    return kinf__buffer_printf(
        line, "%s%s%s %.*s%s%s%s", resource->name, *resource->group != '\0' ? "." : "",
        resource->group, (int)name_space.len, name_space.bytes, name_space.len != 0 ? "/" : "",
        *generate_name != '\0' ? generate_name : kinf_object_name(object),
        *generate_name != '\0' ? "*" : "");
}

static int add_object(struct kinf__end_state *state, const struct kinf__resource *resource,
                      const struct kinf_object *object)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;
    KINF__AUTO_DOC *tree = NULL;

    if (kinf__store_to_tree(object, &tree) < 0 || write_head(resource, object, tree, &line) < 0 ||
        keep_line(state, &line) < 0 || kinf__buffer_append(&line, " ", 1) < 0)
        return KINF_ERR_NO_MEMORY;
    return add(state, &line, tree, "");
}

static int add_resource(struct kinf__end_state *state, struct kinf__resource *resource)
{
    static const char *const left_out[] = { "leases", "events" };
    kinf_auto_snapshot struct kinf_snapshot *all = NULL;
    const struct kinf_object *object;
    struct kinf_cursor cursor;

    if (!kinf__resource_is_stored(resource) ||
        is_one_of(resource->name, left_out, KINF__ARRAY_LEN(left_out)))
        return 0;
    all = kinf__store_snapshot(resource);
    for (kinf_cursor_all(&cursor, all); (object = kinf_cursor_next(&cursor)) != NULL;) {
        if (add_object(state, resource, object) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int kinf__end_state_take(struct kinf__sim *sim, struct kinf__end_state *ret_state)
{
    struct kinf__store *store = kinf__sim_store(sim);
    struct kinf__resource *resource = NULL;
    int failed = 0;

    *ret_state = (struct kinf__end_state){ .n_lines = 0 };
    kinf__store_lock(store);
    while (failed == 0 && (resource = kinf__store_next(store, resource)) != NULL)
        failed = add_resource(ret_state, resource);
    kinf__store_unlock(store);
    if (ret_state->n_lines != 0)
        qsort(ret_state->lines, ret_state->n_lines, sizeof *ret_state->lines, compare);
    return failed;
}

void kinf__end_state_release(struct kinf__end_state *state)
{
    while (state->n_lines != 0)
        free(state->lines[--state->n_lines]);
    free(state->lines);
    *state = (struct kinf__end_state){ .n_lines = 0 };
}

/* --- differences --- */

/* Whether a line tells of the object whose own line this is. */
static bool is_below(const char *line, const char *head)
{
    size_t len = strlen(head);

    return strncmp(line, head, len) == 0 && line[len] == ' ';
}

static bool is_head(const char *line)
{
    const char *space = strchr(line, ' ');

    return space != NULL && strchr(space + 1, ' ') == NULL;
}

/* One side of it. */
struct side {
    const struct kinf__end_state *state;
    size_t i;
    const char *alone; /* the object that only this one has; "" */
    char sign;
};

static int write_line(struct side *side, size_t *n_written, struct kinf__buffer *out)
{
    const char *line = side->state->lines[side->i++];

    if (*side->alone != '\0' && is_below(line, side->alone))
        return 0;
    if (is_head(line))
        side->alone = line;
    if (++*n_written > DIFF_MAX)
        return *n_written == DIFF_MAX + 1 ? kinf__buffer_printf(out, " and so on\n") : 0;
    return kinf__buffer_printf(out, "%c%s\n", side->sign, line);
}

int kinf__end_state_diff(const struct kinf__end_state *before, const struct kinf__end_state *after,
                         struct kinf__buffer *out)
{
    struct side old = { before, 0, "", '-' }, now = { after, 0, "", '+' };
    size_t n_written = 0;
    int failed = 0;

    while (failed == 0 && (old.i < before->n_lines || now.i < after->n_lines)) {
        int order = old.i == before->n_lines  ? 1
                    : now.i == after->n_lines ? -1
                                              : strcmp(before->lines[old.i], after->lines[now.i]);

        if (order != 0)
            failed = write_line(order < 0 ? &old : &now, &n_written, out);
        else
            old.i++, now.i++;
    }
    return failed;
}
