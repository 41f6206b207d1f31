/*
 * From text to object. Neighbours: the reflector decodes what it receives, src/json scans and
 * prunes. One pass over the text validates what stays, leaves out what the plan drops and notes where the
 * identity stands; an object is made only if the store has no equal one. Invariant: what is read of the
 * captures has been scanned, so nothing here meets malformed JSON; containers that the plan drops have
 * not, and check_member() refuses these.
 */
#include "object/object.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/misuse.h"
#include "json/path.h"
#include "json/plan.h"
#include "object/packed.h"

/* A body buffer above this is given back once it has served: such objects are rare. */
#define BODY_SIZE_KEPT (1 << 20)

enum slot {
    SLOT_KIND,
    SLOT_API_VERSION,
    SLOT_METADATA,
    SLOT_NAME,
    SLOT_NAMESPACE,
    SLOT_UID,
    SLOT_RV,
    SLOT_LABELS,
    SLOT_MANAGED_FIELDS,
    SLOT_SPEC,
    SLOT_STATUS,
};

struct capture_rule {
    const char *path;
    enum slot slot;
    bool is_dropped; /* or protected */
};

static const struct capture_rule capture_rules[] = {
    { "kind", SLOT_KIND, true },
    { "apiVersion", SLOT_API_VERSION, true },
    { "metadata", SLOT_METADATA, false },
    { "metadata.name", SLOT_NAME, false },
    { "metadata.namespace", SLOT_NAMESPACE, false },
    { "metadata.uid", SLOT_UID, false },
    { "metadata.resourceVersion", SLOT_RV, false },
    { "metadata.labels", SLOT_LABELS, false },
    { "metadata.managedFields", SLOT_MANAGED_FIELDS, false },
    { "spec", SLOT_SPEC, false },
    { "status", SLOT_STATUS, false },
};

static const char *const protected_paths[] = {
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.labels",
    "metadata.deletionTimestamp",
    "metadata.ownerReferences",
};

static const struct kinf_str initial_events_end = { "k8s.io/initial-events-end", 25 };

/* A path that was asked for. */
struct rule {
    struct kinf_path *path;
    bool is_drop; /* or a keep */
};

struct kinf__prune_plan {
    struct kinf__json_plan *json;
    struct rule *rules;
    size_t n_rules;
};

/* The text and places of the object at hand. */
struct found {
    struct kinf_str text;
    struct kinf_str body;
    struct kinf__json_capture captures[KINF__JSON_MAX_CAPTURES];
};

/* The path belongs to the plan from then on, in any case. */
static int add_rule(struct kinf__prune_plan *plan, struct rule take_rule, struct kinf_error *err)
{
    plan->rules[plan->n_rules++] = take_rule;
    if (!take_rule.is_drop)
        return kinf__json_plan_keep(plan->json, take_rule.path, err);
    if (kinf__json_plan_protects(plan->json, take_rule.path))
        return kinf__error_set(err, KINF_ERR_INVALID, "cannot be dropped: the runtime needs it");
    return kinf__json_plan_drop(plan->json, take_rule.path, err);
}

/* There is room for them. */
static int add_rules(struct kinf__prune_plan *plan, const char *const *paths, size_t n_paths,
                     bool is_drop, struct kinf_error *err)
{
    for (size_t i = 0; i < n_paths; i++) {
        struct rule rule = { NULL, is_drop };
        int r = kinf_path_parse(paths[i], &rule.path, err);

        if (r == 0)
            r = add_rule(plan, rule, err);
        if (r < 0) {
            kinf__error_prefix(err, "path '%s'", paths[i]);
            return r;
        }
    }
    return 0;
}

static int check_keeps(const struct kinf__prune_plan *plan, struct kinf_error *err)
{
    for (size_t i = 0; i < plan->n_rules; i++) {
        const struct rule *rule = &plan->rules[i];

        if (!rule->is_drop && !kinf__json_plan_can_keep(plan->json, rule->path))
            return kinf__error_set(err, KINF_ERR_INVALID, "path '%s': is to be kept and dropped",
                                   kinf_path_text(rule->path));
    }
    return 0;
}

static int add_protected(struct kinf__json_plan *plan, const char *text, struct kinf_error *err)
{
    struct kinf_path *path;
    int r = kinf_path_parse(text, &path, err);

    if (r < 0)
        return r;
    r = kinf__json_plan_protect(plan, path, err);
    kinf_path_free(path);
    return r;
}

static int add_capture(struct kinf__json_plan *plan, const struct capture_rule *rule,
                       struct kinf_error *err)
{
    struct kinf_path *path;
    int r = kinf_path_parse(rule->path, &path, err);

    if (r < 0)
        return r;
    r = kinf__json_plan_capture(plan, path, rule->slot, err);
    if (r == 0 && rule->is_dropped)
        r = kinf__json_plan_drop(plan, path, err);
    kinf_path_free(path);
    return r;
}

static int add_own_rules(struct kinf__json_plan *plan, struct kinf_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < KINF__ARRAY_LEN(protected_paths); i++)
        r = add_protected(plan, protected_paths[i], err);
    for (size_t i = 0; r == 0 && i < KINF__ARRAY_LEN(capture_rules); i++)
        r = add_capture(plan, &capture_rules[i], err);
    return r;
}

int kinf__prune_plan_new(const char *const *drops, size_t n_drops, const char *const *keeps,
                         size_t n_keeps, struct kinf__prune_plan **ret_plan, struct kinf_error *err)
{
    struct kinf__prune_plan *plan = calloc(1, sizeof *plan);
    int r;

    if (plan == NULL)
        return kinf__error_no_memory(err);
    plan->rules = calloc(n_drops + n_keeps + 1, sizeof *plan->rules);
    r = plan->rules != NULL ? kinf__json_plan_new(&plan->json, err) : kinf__error_no_memory(err);
    if (r == 0)
        r = add_own_rules(plan->json, err);
    if (r == 0)
        r = add_rules(plan, drops, n_drops, true, err);
    if (r == 0)
        r = add_rules(plan, keeps, n_keeps, false, err);
    if (r == 0)
        r = check_keeps(plan, err);
    if (r < 0) {
        kinf__prune_plan_free(plan);
        return r;
    }
    *ret_plan = plan;
    return 0;
}

void kinf__prune_plan_free(struct kinf__prune_plan *plan)
{
    if (plan == NULL)
        return;
    for (size_t i = 0; i < plan->n_rules; i++)
        kinf_path_free(plan->rules[i].path);
    free(plan->rules);
    kinf__json_plan_free(plan->json);
    free(plan);
}

bool kinf__prune_plan_can_keep(const struct kinf__prune_plan *plan, const struct kinf_path *path)
{
    return kinf__json_plan_can_keep(plan->json, path);
}

int kinf__prune_plan_drop_too(struct kinf__prune_plan *plan, const char *text,
                              struct kinf_error *err)
{
    struct kinf_path *path;
    int r = kinf_path_parse(text, &path, err);

    if (r < 0)
        return r;
    r = kinf__json_plan_drop(plan->json, path, err);
    kinf_path_free(path);
    return r;
}

void kinf__prune_plan_each_unmet(const struct kinf__prune_plan *plan, kinf__unmet_path_cb *callback,
                                 void *ctx)
{
    for (size_t i = 0; i < plan->n_rules; i++) {
        const struct rule *rule = &plan->rules[i];

        if (!kinf__json_plan_has_met(plan->json, rule->path, rule->is_drop))
            callback(kinf_path_text(rule->path), rule->is_drop ? "drops" : "keeps", ctx);
    }
}

bool kinf__prune_plan_keeps(const struct kinf__prune_plan *plan, const struct kinf_path *path)
{
    return kinf__json_plan_keeps(plan->json, path);
}

static const char *slot_name(enum slot slot)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(capture_rules); i++) {
        if (capture_rules[i].slot == slot)
            return capture_rules[i].path;
    }
    return "";
}

static struct kinf_str raw_of(const struct found *found, enum slot slot)
{
    const struct kinf__json_capture *capture = &found->captures[slot];
    struct kinf_str in = capture->is_dropped ? found->text : found->body;

    return (struct kinf_str){ in.bytes + capture->offset, capture->len };
}

static bool is_present(const struct found *found, enum slot slot)
{
    return found->captures[slot].n_found != 0 && found->captures[slot].type != KINF__JSON_NULL;
}

static int check_member(const struct found *found, enum slot slot, enum kinf__json_type type,
                        struct kinf_error *err)
{
    const struct kinf__json_capture *capture = &found->captures[slot];

    if (capture->n_found > 1)
        return kinf__error_set(err, KINF_ERR_PARSE, "%s is there %u times", slot_name(slot),
                               capture->n_found);
    if (is_present(found, slot) && capture->type != type)
        return kinf__error_set(err, KINF_ERR_PARSE, "%s is no %s", slot_name(slot),
                               type == KINF__JSON_OBJECT ? "object" : "string");
    return 0;
}

static int check_kind(const struct found *found, const char *kind, struct kinf_error *err)
{
    struct kinf_str raw = raw_of(found, SLOT_KIND);

    if (!is_present(found, SLOT_KIND) || kinf__json_string_equals(raw, kinf_str_from(kind)))
        return 0;
    return kinf__error_set(err, KINF_ERR_PARSE, "kind is %.*s where %s was expected",
                           (int)(raw.len < 100 ? raw.len : 100), raw.bytes, kind);
}

static int check_api_version(const struct found *found, const struct kinf__object_decoder *decoder,
                             struct kinf_error *err)
{
    struct kinf_str raw = raw_of(found, SLOT_API_VERSION);

    if (!is_present(found, SLOT_API_VERSION) ||
        kinf__json_string_equals(raw, kinf_str_from(decoder->api_version)))
        return 0;
    return kinf__error_set(err, KINF_ERR_PARSE, "apiVersion is %.*s where %s was expected",
                           (int)(raw.len < 100 ? raw.len : 100), raw.bytes, decoder->api_version);
}

static int check_members(const struct found *found, const struct kinf__object_decoder *decoder,
                         struct kinf_error *err)
{
    static const enum slot strings[] = {
        SLOT_KIND, SLOT_API_VERSION, SLOT_NAME, SLOT_NAMESPACE, SLOT_UID, SLOT_RV,
    };
    int r = check_member(found, SLOT_METADATA, KINF__JSON_OBJECT, err);

    for (size_t i = 0; r == 0 && i < KINF__ARRAY_LEN(strings); i++)
        r = check_member(found, strings[i], KINF__JSON_STRING, err);
    if (r == 0)
        r = check_kind(found, decoder->kind, err);
    return r < 0 ? r : check_api_version(found, decoder, err);
}

/* Decodes a string behind the others and puts a NUL after it. There is room: see read_identity().
 */
static int read_string(struct kinf__buffer *names, const struct found *found, enum slot slot,
                       struct kinf_str *ret_text, struct kinf_error *err)
{
    char *start = names->bytes + names->len;
    size_t len = 0;

    if (is_present(found, slot))
        len = kinf__json_unescape(raw_of(found, slot), start, names->size - names->len);
    if (memchr(start, '\0', len) != NULL)
        return kinf__error_set(err, KINF_ERR_PARSE, "%s holds a NUL", slot_name(slot));
    start[len] = '\0';
    names->len += len + 1;
    *ret_text = (struct kinf_str){ start, len };
    return 0;
}

/* A slash would make one key of two names. */
static int check_key_part(const char *what, struct kinf_str text, struct kinf_error *err)
{
    if (text.len != 0 && memchr(text.bytes, '/', text.len) != NULL)
        return kinf__error_set(err, KINF_ERR_PARSE, "%s '%.100s' holds a slash", what, text.bytes);
    return 0;
}

/* Lays key, uid and resourceVersion one behind the other into `names`, as an object has them. */
static int read_identity(struct kinf__buffer *names, const struct found *found,
                         struct kinf__object_parts *parts, struct kinf_error *err)
{
    size_t size = 4;
    int r;

    for (enum slot slot = SLOT_NAME; slot <= SLOT_RV; slot++)
        size += found->captures[slot].len;
    names->len = 0;
    if (kinf__buffer_reserve(names, size) < 0)
        return kinf__error_no_memory(err);
    r = read_string(names, found, SLOT_NAMESPACE, &parts->name_space, err);
    if (r == 0)
        r = check_key_part("metadata.namespace", parts->name_space, err);
    if (r < 0)
        return r;
    if (parts->name_space.len != 0)
        names->bytes[names->len - 1] = '/';
    else
        names->len = 0;
    r = read_string(names, found, SLOT_NAME, &parts->name, err);
    if (r == 0)
        r = check_key_part("metadata.name", parts->name, err);
    if (r == 0 && parts->name.len == 0)
        r = kinf__error_set(err, KINF_ERR_PARSE, "no metadata.name");
    if (r == 0)
        r = read_string(names, found, SLOT_UID, &parts->uid, err);
    return r < 0 ? r : read_string(names, found, SLOT_RV, &parts->resource_version, err);
}

static void note_labels(const struct found *found, struct kinf__object_parts *parts)
{
    const struct kinf__json_capture *capture = &found->captures[SLOT_LABELS];

    if (capture->n_found == 0) {
        parts->labels_offset = KINF__LABELS_ABSENT;
    } else if (capture->n_found == 1 && capture->offset + capture->len <= KINF__LABELS_LEN_MAX) {
        parts->labels_offset = (uint32_t)capture->offset;
        parts->labels_len = (uint32_t)capture->len;
    }
}

/* Of a doubled key the first one counts, and the capture is of the last one. */
static void note_places(const struct found *found, struct kinf__object_parts *parts)
{
    static const enum slot slots[KINF__N_PLACES] = {
        [KINF__PLACE_NAMESPACE] = SLOT_NAMESPACE,
        [KINF__PLACE_SPEC] = SLOT_SPEC,
        [KINF__PLACE_STATUS] = SLOT_STATUS,
    };

    for (size_t i = 0; i < KINF__N_PLACES; i++) {
        const struct kinf__json_capture *capture = &found->captures[slots[i]];

        if (capture->n_found == 1 && !capture->is_dropped && capture->offset <= UINT32_MAX)
            parts->places[i] = (uint32_t)capture->offset;
    }
}

static void note_large(const struct found *found, struct kinf__object_parts *parts)
{
    static const enum slot slots[KINF__N_LARGE] = { SLOT_MANAGED_FIELDS, SLOT_SPEC, SLOT_STATUS };

    for (size_t i = 0; i < KINF__N_LARGE; i++) {
        const struct kinf__json_capture *capture = &found->captures[slots[i]];

        if (capture->n_found != 0 && !capture->is_dropped)
            parts->large[i] = (struct kinf__json_stretch){ capture->offset, capture->len };
    }
}

/* The stored object if it is the same, else a new one. */
static int find_or_make(const struct kinf__object_decoder *decoder,
                        const struct kinf__object_parts *parts,
                        const struct kinf_object **ret_object, struct kinf_error *err)
{
    const struct kinf_object *stored = NULL;
    int is_same = 0;

    if (decoder->lookup != NULL)
        stored = decoder->lookup(decoder->names.bytes, decoder->lookup_ctx);
    if (stored != NULL)
        is_same = kinf__object_equals_parts(stored, parts);
    if (is_same > 0) {
        *ret_object = stored;
        return 0;
    }
    kinf_object_unref(stored);
    if (is_same < 0)
        return kinf__error_no_memory(err);
    return decoder->packer != NULL ? kinf__packer_make(decoder->packer, parts, ret_object, err)
                                   : kinf__object_new(parts, ret_object, err);
}

static int make_object(struct kinf__object_decoder *decoder, const struct found *found,
                       const struct kinf_object **ret_object, struct kinf_error *err)
{
    struct kinf__object_parts parts = { .type = decoder->type, .body = found->body };
    int r;

    if (found->body.len == 0 || found->body.bytes[0] != '{')
        return kinf__error_set(err, KINF_ERR_PARSE, "JSON, but no object");
    r = check_members(found, decoder, err);
    if (r == 0)
        r = read_identity(&decoder->names, found, &parts, err);
    if (r < 0)
        return r;
    note_labels(found, &parts);
    note_places(found, &parts);
    note_large(found, &parts);
    return find_or_make(decoder, &parts, ret_object, err);
}

void kinf__object_decoder_init(struct kinf__object_decoder *decoder, const struct kinf_type *type,
                               const struct kinf__prune_plan *plan)
{
    *decoder = (struct kinf__object_decoder){ .type = type, .plan = plan };
    kinf__object_decoder_expect(decoder, type->kind, type->group, type->version);
}

void kinf__object_decoder_expect(struct kinf__object_decoder *decoder, const char *kind,
                                 const char *group, const char *version)
{
    decoder->kind = kind;
    snprintf(decoder->api_version, sizeof decoder->api_version, "%s%s%s", group,
             group[0] != '\0' ? "/" : "", version);
}

void kinf__object_decoder_release(struct kinf__object_decoder *decoder)
{
    kinf__buffer_release(&decoder->body);
    kinf__buffer_release(&decoder->names);
}

int kinf__object_decode(struct kinf__object_decoder *decoder, struct kinf_str text, bool is_final,
                        const struct kinf_object **ret_object, size_t *ret_len,
                        struct kinf_error *err)
{
    struct found found = { .text = text };
    size_t len = 0;
    int r;

    decoder->body.len = 0;
    r = kinf__json_prune(decoder->plan->json, text, is_final, &decoder->body, found.captures, &len);
    *ret_len = r < 0 ? 0 : len;
    found.body = kinf__buffer_str(&decoder->body);
    if (r == 0)
        r = make_object(decoder, &found, ret_object, err);
    else if (r == KINF_ERR_NO_MEMORY)
        (void)kinf__error_no_memory(err);
    else if (r == KINF_ERR_TRUNCATED)
        return r; /* more is to come */
    else
        r = kinf__json_error(err, r, text, len);
    if (decoder->body.size > BODY_SIZE_KEPT)
        kinf__buffer_release(&decoder->body);
    return r;
}

int kinf__object_decode_bookmark(struct kinf_str text, char *buf, size_t size,
                                 bool *ret_ends_initial_events, struct kinf_error *err)
{
    struct kinf__json_value metadata, rv, annotations, mark;
    bool ends = false;
    size_t len;
    int r = kinf__json_scan(text, true, &len);

    if (r < 0)
        return kinf__json_error(err, KINF_ERR_PARSE, text, len);
    if (!kinf__json_member(kinf__json_value_of(text), KINF_STR("metadata"), &metadata) ||
        !kinf__json_member(metadata, KINF_STR("resourceVersion"), &rv) ||
        rv.type != KINF__JSON_STRING)
        return kinf__error_set(err, KINF_ERR_PARSE, "a bookmark without metadata.resourceVersion");
    if (kinf__json_member(metadata, KINF_STR("annotations"), &annotations) &&
        kinf__json_member(annotations, initial_events_end, &mark))
        ends =
            mark.type == KINF__JSON_STRING && kinf__json_string_equals(mark.raw, KINF_STR("true"));
    if (rv.raw.len == 2 || kinf_json_string(rv.raw, buf, size) < 0)
        return kinf__error_set(err, KINF_ERR_PARSE, "a bookmark's resourceVersion is %.*s",
                               (int)(rv.raw.len < 100 ? rv.raw.len : 100), rv.raw.bytes);
    *ret_ends_initial_events = ends;
    return 0;
}

static int decode_whole(struct kinf__object_decoder *decoder, struct kinf_str text,
                        const struct kinf_object **ret_object, struct kinf_error *err)
{
    const struct kinf_object *object = NULL;
    size_t len = 0;
    int r = kinf__object_decode(decoder, text, true, &object, &len, err);

    if (r == KINF_ERR_TRUNCATED)
        return kinf__error_set(err, KINF_ERR_PARSE, "the text ends inside the object");
    if (r < 0)
        return r;
    while (len < text.len && strchr(" \t\r\n", text.bytes[len]) != NULL && text.bytes[len] != '\0')
        len++;
    if (len != text.len) {
        kinf_object_unref(object);
        return kinf__json_error(err, KINF_ERR_PARSE, text, len);
    }
    *ret_object = object;
    return 0;
}

int kinf_object_new_from_json(const struct kinf_type *type, const char *text, size_t len,
                              const struct kinf_object **ret_object, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, type, ret_object);
    if (len != 0)
        KINF__REFUSE_NULL(err, KINF_ERR_INVALID, text);

    struct kinf__object_decoder decoder;
    struct kinf__prune_plan *plan = NULL;
    int r = kinf__prune_plan_new(NULL, 0, NULL, 0, &plan, err);

    if (r < 0)
        return r;
    kinf__object_decoder_init(&decoder, type, plan);
    r = decode_whole(&decoder, (struct kinf_str){ text, len }, ret_object, err);
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
    return r;
}
