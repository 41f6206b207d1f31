/*
 * CustomResourceDefinitions, one after another. Neighbours: table.c makes columns of them.
 */
#include "serve/definitions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/request.h>

#include "base/log.h"
#include "serve/server_priv.h"
#include "serve/table.h"

/* The type of the n-th source; NULL: there are no more. */
static const struct kinf_type *type_of(struct kinf__server *server, size_t n)
{
    const struct kinf_type *type;

    kinf__mutex_lock(&server->lock);
    type = n < server->n_sources ? server->sources[n]->type : NULL;
    kinf__mutex_unlock(&server->lock);
    return type;
}

/* Consumes the table. */
static int keep(struct kinf__server *server, const struct kinf_type *type,
                struct kinf__table *table)
{
    struct kinf__table **tables;

    kinf__mutex_lock(&server->lock);
    tables = realloc(server->tables, (server->n_tables + 1) * sizeof(struct kinf__table *));
    if (tables != NULL) {
        server->tables = tables;
        tables[server->n_tables++] = table;
        for (size_t i = 0; i < server->n_sources; i++) {
            if (server->sources[i]->type == type)
                atomic_store(&server->sources[i]->table, table);
        }
    }
    kinf__mutex_unlock(&server->lock);
    if (tables == NULL)
        kinf__table_free(table);
    return tables != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static int fetch(struct kinf__server *server, struct kinf_client *client,
                 const struct kinf_type *type, struct kinf_error *err)
{
    kinf_auto_response definition = KINF_RESPONSE_INIT;
    struct kinf__table *table = NULL;
    char target[2 * KINF_NAME_MAX + 80];
    int failed;

    snprintf(target, sizeof target, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/%s.%s",
             type->resource, type->group);
    failed = kinf_client_request_raw(client, "GET", target, (struct kinf_str){ NULL, 0 }, NULL,
                                     &definition, err);
    if (failed == 0)
        failed = kinf__table_of_definition((struct kinf_str){ definition.body, definition.len },
                                           type->version, &table);
    return failed < 0 ? failed : keep(server, type, table);
}

void kinf__definitions_fetch(struct kinf__server *server, struct kinf_client *client)
{
    const struct kinf_type *type;

    for (size_t i = 0; (type = type_of(server, i)) != NULL; i++) {
        struct kinf_error err = KINF_ERROR_INIT;

        /* Those of kube-apiserver itself are in groups without a dot or of its own domain; most of
         * the latter are, too, but not all. */
        if (strchr(type->group, '.') == NULL)
            continue;
        if (fetch(server, client, type, &err) < 0 && err.code != KINF_ERR_NOT_FOUND &&
            err.code != 0)
            KINF__LOG(
                KINF__LOG_SERVE, KINF_LOG_INFO,
                "columns are NAME and AGE, the definition cannot be read resource=%s error=%s",
                type->resource, KINF__QUOTED(err.message));
    }
}
