/*
 * What a server says of its resources, in both forms: any text gives a type that can be asked for,
 * or a reason.
 */
#include <string.h>

#include "base/error.h"
#include "fuzz/fuzz.h"
#include "rest/discovery.h"

/* The first line answers /api and /apis, what is behind it every version. */
struct answers {
    struct kinf_str roots;
    struct kinf_str versions;
};

static int ask(void *ctx, const char *target, const char *accept, struct kinf__buffer *answer,
               struct kinf_error *err)
{
    const struct answers *answers = ctx;
    bool is_root = strcmp(target, "/api") == 0 || strcmp(target, "/apis") == 0;

    (void)accept;
    return kinf__buffer_append_str(answer, is_root ? answers->roots : answers->versions) < 0
               ? kinf__error_no_memory(err)
               : 0;
}

static void find_all(struct kinf__discovery *table, const struct kinf__discovery_source *source)
{
    static const char *const names[] = { "pods", "a", "a.b", "a.v1.b", "v1.a", "a.", "po" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct kinf_type *type = NULL;
        struct kinf_error err = KINF_ERROR_INIT;
        bool is_served;

        if (kinf__discovery_find(table, source, names[i], &type, &err) < 0) {
            FUZZ_REQUIRE(type == NULL && err.message[0] != '\0');
            continue;
        }
        FUZZ_REQUIRE(*type->resource != '\0' && *type->version != '\0');
        (void)!kinf__discovery_is_served(source, type, &is_served, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    size_t len = strcspn(text, "\n"), behind = len + (len < size);
    struct answers answers = { { text, len }, { text + behind, size - behind } };
    const struct kinf__discovery_source source = { ask, &answers, "host" };
    struct kinf__discovery table = KINF__DISCOVERY_INIT;

    find_all(&table, &source);
    if (kinf__discovery_read_all(&table, &source, NULL) == 0)
        FUZZ_REQUIRE(table.has_core && table.has_groups);
    for (size_t i = 0; i < table.n_versions; i++)
        FUZZ_REQUIRE(table.versions[i].state == KINF__DISCOVERY_READ ||
                     table.versions[i].n_resources == 0);
    kinf__discovery_release(&table);
    free(text);
    return 0;
}
