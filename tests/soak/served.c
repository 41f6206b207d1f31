/*
 * Lists, of the server and by the sidecar, against the history. Neighbours: writer.c asks for them.
 */
#include "soak/served.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "soak/history.h"
#include "soak/verdict.h"
#include "soak/writer.h"

/* --- lists --- */

struct listing {
    const char *where;
    unsigned type;
    bool *has; /* of each object */
};

static void take_item(struct kinf_str item, void *ctx)
{
    const struct listing *listing = ctx;
    const struct soak_entry *live;
    struct identity identity;
    struct version version;
    uint64_t id = SOAK_NONE;

    if (text_read_object(item, &version, &identity))
        id = soak_object_id(listing->type, identity.name_space, identity.name);
    if (id == SOAK_NONE)
        return;
    history_lock();
    live = history_live(id);
    if (live == NULL || memcmp(&live->version, &version, sizeof version) != 0)
        verdict_diverges("served", "the %s lists %s at %llu, which is %s at %llu", listing->where,
                         soak_describe(id), (unsigned long long)version.rv,
                         live != NULL ? "there" : "gone",
                         (unsigned long long)(live != NULL ? live->version.rv : 0));
    history_unlock();
    listing->has[id] = true;
}

static void compare_list(const struct listing *listing)
{
    history_lock();
    for (uint64_t id = 0; id < soak_n_objects(); id++) {
        if (soak_type_of(id) == listing->type && history_live(id) != NULL && !listing->has[id])
            verdict_diverges("served", "the %s does not list %s", listing->where,
                             soak_describe(id));
    }
    history_unlock();
}

static void list_type(const char *where, unsigned type, int64_t end_ms, void (*wait)(void))
{
    bool *has = calloc(soak_n_objects(), sizeof *has), is_answered;
    struct listing listing = { where, type, has };
    char target[200];

    if (has == NULL)
        abort();
    snprintf(target, sizeof target, "%s/%s", soak_types[type].path, soak_types[type].plural);
    do {
        is_answered = writers_list(where[1] == 'i', target, take_item, &listing);
        if (!is_answered)
            wait();
    } while (!is_answered && soak_now_ms() < end_ms);
    if (is_answered)
        compare_list(&listing);
    else
        verdict_diverges("served", "the %s does not list %s", where, soak_types[type].resource);
    free(has);
}

void served_compare_lists(const char *where, int64_t patience_ms, void (*wait)(void))
{
    for (unsigned type = 0; type < SOAK_N_TYPES; type++)
        list_type(where, type, soak_now_ms() + patience_ms, wait);
    verdict_say("{\"done\":\"lists\"}");
}

/* --- what controllers make --- */

struct mirrors {
    uint64_t *rvs; /* by widget: of which state there is a ConfigMap; 0: there is none */
    unsigned n_strange;
};

static void take_mirror(struct kinf_str item, void *ctx)
{
    struct mirrors *mirrors = ctx;
    struct kinf_str content, rv = { NULL, 0 };
    struct identity identity;
    struct version version;
    uint64_t id;

    if (!text_read_object(item, &version, &identity))
        return;
    id = soak_object_id(SOAK_WIDGETS, identity.name_space, identity.name);
    if (id == SOAK_NONE)
        return;
    if (text_member(item, "data", &content) && text_member(content, "of", &rv))
        mirrors->rvs[id] = text_number(rv);
    else
        mirrors->n_strange++;
}

/* The first widget that has not its ConfigMap, or has one and should not; SOAK_NONE: none. */
static uint64_t first_unmirrored(void)
{
    struct mirrors mirrors = { calloc(soak_n_objects(), sizeof *mirrors.rvs), 0 };
    uint64_t wrong = 0;

    if (mirrors.rvs == NULL)
        abort();
    if (writers_list(false, "/api/v1/configmaps", take_mirror, &mirrors)) {
        history_lock();
        for (; wrong < soak_n_objects(); wrong++) {
            const struct soak_entry *live = history_live(wrong);

            if (soak_type_of(wrong) == SOAK_WIDGETS &&
                mirrors.rvs[wrong] != (live != NULL ? live->version.rv : 0))
                break;
        }
        history_unlock();
    }
    free(mirrors.rvs);
    return wrong < soak_n_objects() ? wrong : SOAK_NONE;
}

void served_wait_mirrored(int64_t patience_ms, void (*wait)(void))
{
    int64_t end_ms = soak_now_ms() + patience_ms;
    uint64_t wrong = first_unmirrored();

    while (wrong != SOAK_NONE && soak_now_ms() < end_ms) {
        for (int i = 0; i < 50; i++)
            wait();
        wrong = first_unmirrored();
    }
    if (wrong != SOAK_NONE)
        verdict_diverges("controller", "the ConfigMap of %s is not as it should be",
                         soak_describe(wrong));
    verdict_say("{\"done\":\"mirrors\"}");
}
