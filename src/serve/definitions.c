/*
 * CustomResourceDefinitions, one after another. Neighbours: table/ makes columns of them.
 */
#include "serve/definitions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/request.h>

#include "base/error.h"
#include "base/log.h"
#include "serve/exchange_priv.h"
#include "table/table.h"

/* Those that are not published will be. The lock is held. */
static size_t count_sources(const struct kinf__server *server)
{
    return server->n_sources + server->n_unpublished;
}

/* The type of the n-th source; NULL: there are no more. */
static const struct kinf_type *type_of(struct kinf__server *server, size_t n)
{
    const struct kinf_type *type;

    kinf__mutex_lock(&server->lock);
    type = n < count_sources(server) ? server->sources[n]->type : NULL;
    kinf__mutex_unlock(&server->lock);
    return type;
}

/* Whether each source of the type has what this definition says. */
static bool is_known(struct kinf__server *server, const struct kinf_type *type,
                     const unsigned char *digest)
{
    bool is_known = true;

    kinf__mutex_lock(&server->lock);
    for (size_t i = 0; i < count_sources(server); i++) {
        const struct kinf__source *source = server->sources[i];

        if (source->type == type)
            is_known = is_known && source->has_definition &&
                       memcmp(source->definition, digest, KINF__DIGEST_SIZE) == 0;
    }
    kinf__mutex_unlock(&server->lock);
    return is_known;
}

static void show_by_locked(struct kinf__server *server, const struct kinf_type *type,
                           const unsigned char *digest, const struct kinf__table *table)
{
    for (size_t i = 0; i < count_sources(server); i++) {
        struct kinf__source *source = server->sources[i];

        if (source->type != type)
            continue;
        atomic_store(&source->table, table);
        source->has_definition = true;
        memcpy(source->definition, digest, KINF__DIGEST_SIZE);
    }
}

/* As a type has it that comes back to the cache. */
static bool show_by_kept(struct kinf__server *server, const struct kinf_type *type,
                         const unsigned char *digest)
{
    bool is_kept = false;

    kinf__mutex_lock(&server->lock);
    for (size_t i = 0; i < server->n_tables && !is_kept; i++) {
        const struct kinf__defined_table *kept = &server->tables[i];

        is_kept = kept->type == type && memcmp(kept->definition, digest, KINF__DIGEST_SIZE) == 0;
        if (is_kept)
            show_by_locked(server, type, digest, kept->table);
    }
    kinf__mutex_unlock(&server->lock);
    return is_kept;
}

/* Consumes the table. NULL: the definition names no columns. */
static int keep(struct kinf__server *server, const struct kinf_type *type,
                const unsigned char *digest, struct kinf__table *table)
{
    struct kinf__defined_table *tables;

    kinf__mutex_lock(&server->lock);
    tables = realloc(server->tables, (server->n_tables + 1) * sizeof *tables);
    if (tables != NULL) {
        server->tables = tables;
        tables[server->n_tables] = (struct kinf__defined_table){ .type = type, .table = table };
        memcpy(tables[server->n_tables].definition, digest, KINF__DIGEST_SIZE);
        server->n_tables += table != NULL;
        show_by_locked(server, type, digest, table != NULL ? table : kinf__table_for(type));
    }
    kinf__mutex_unlock(&server->lock);
    if (tables == NULL)
        kinf__table_free(table);
    return tables != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

int kinf__definitions_take(struct kinf__server *server, const struct kinf_type *type,
                           struct kinf_str definition)
{
    unsigned char digest[KINF__DIGEST_SIZE];
    struct kinf__table *table = NULL;
    int failed = kinf__digest(&definition, 1, digest);

    if (failed < 0 || is_known(server, type, digest) || show_by_kept(server, type, digest))
        return failed;
    failed = kinf__table_of_definition(definition, type->version, &table);
    return failed == 0 || failed == KINF_ERR_NOT_FOUND ? keep(server, type, digest, table) : failed;
}

/* Whether a definition can be of this group: one with a dot, and none of kube-apiserver's own. Others
 * of its domain are an extension's, snapshot.storage.k8s.io, say. */
static bool may_be_defined(const char *group)
{
    static const char own[] = " admissionregistration apiextensions apiregistration authentication "
                              "authorization certificates coordination discovery events "
                              "flowcontrol.apiserver internal.apiserver networking node "
                              "rbac.authorization resource scheduling storage storagemigration ";
    const char *domain = strstr(group, ".k8s.io");
    char word[KINF_NAME_MAX + 3];

    if (domain == NULL || strcmp(domain, ".k8s.io") != 0)
        return strchr(group, '.') != NULL;
    snprintf(word, sizeof word, " %.*s ", (int)(domain - group), group);
    return strstr(own, word) == NULL;
}

static int fetch(struct kinf__server *server, struct kinf_client *client,
                 const struct kinf_type *type, struct kinf_error *err)
{
    kinf_auto_response struct kinf_response definition = KINF_RESPONSE_INIT;
    char target[2 * KINF_NAME_MAX + 80];
    int failed;

    snprintf(target, sizeof target, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/%s.%s",
             type->resource, type->group);
    failed = kinf_client_request_raw(client, "GET", target, (struct kinf_str){ NULL, 0 }, NULL,
                                     &definition, err);
    if (failed < 0)
        return failed;
    failed =
        kinf__definitions_take(server, type, (struct kinf_str){ definition.body, definition.len });
    return failed < 0 ? kinf__error_set(err, failed, "columns cannot be made of %s", target) : 0;
}

void kinf__definitions_fetch(struct kinf__server *server, struct kinf_client *client)
{
    const struct kinf_type *type;

    for (size_t i = 0; (type = type_of(server, i)) != NULL; i++) {
        struct kinf_error err = KINF_ERROR_INIT;

        if (may_be_defined(type->group) && fetch(server, client, type, &err) < 0 &&
            err.code != KINF_ERR_NOT_FOUND)
            KINF__LOG(KINF__LOG_SERVE, KINF_LOG_INFO,
                      "columns stay as they are, the definition cannot be read resource=%s "
                      "error=%s",
                      type->resource, KINF__QUOTED(err.message));
    }
}

uint64_t kinf__definitions_watches(struct kinf__server *server)
{
    uint64_t n_watches = 0;

    kinf__mutex_lock(&server->lock);
    for (size_t i = 0; i < server->n_sources; i++) {
        struct kinf_informer_status status;

        if (!server->sources[i]->has_definition || server->sources[i]->is_retired)
            continue;
        kinf__source_status(server->sources[i], &status);
        n_watches += status.n_watches;
    }
    kinf__mutex_unlock(&server->lock);
    return n_watches;
}
