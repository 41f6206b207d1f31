/*
 * Whether what is known is still true after an outage, or the server was restored from a backup.
 * It is asked for the newest objects (newest.h), each by its name in a list of the newest state:
 * such a list comes from etcd, and says the server's version. Neighbours: policy.c decides when, and
 * what follows. Each object must be
 *   - there as it was received, to the byte: in another history the same version is of something
 *     else,
 *   - or newer than the last version, or gone: if that was later, the watch will bring it. Whether
 *     it was, the state of exactly the last version says, for the five minutes that etcd has it.
 *     Who has it no more, or knows no such request, is believed; then one silent watch leads to a
 *     check (frozen.h). Who fails to say it is asked again.
 * The one deleted last must not be there, and at the last version there must have been as many as
 * are known, if the server has that state and counts. A server that answers with other objects than
 * it is asked for cannot be told from a restored one.
 */
#include "reflector/reflector_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"

/* --- a request --- */

/* What is as it was received is the object that was. */
static const struct kinf_object *look_up(const char *key, void *ctx)
{
    const struct kinf_object *known = ctx;

    return strcmp(key, kinf_object_key(known)) == 0 ? kinf_object_ref(known) : NULL;
}

static int append_target(struct kinf__reflector *reflector, const struct kinf_object *known,
                         const char *exact_rv, struct kinf__buffer *target)
{
    int r = kinf__reflector_append_target(reflector, known, target);

    if (r == 0)
        r = kinf__reflector_append_query(target, "limit", "1");
    if (r == 0 && exact_rv[0] != '\0')
        r = kinf__reflector_append_query(target, "resourceVersionMatch", "Exact");
    return r < 0 ? r : kinf__reflector_append_query(target, "resourceVersion", exact_rv);
}

/* Asks for an object (NULL: for any) in the state of `exact_rv` ("": the newest). *ret_item has a
 * reference, NULL: it is not there. Errors: KINF_ERR_EXPIRED, the server is behind the last version.
 */
static int ask(struct kinf__reflector *reflector, const struct kinf__policy_action *action,
               const struct kinf_object *known, const char *exact_rv,
               const struct kinf_object **ret_item, struct kinf_error *err)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
    const struct kinf__listed *listed = &reflector->listed;
    const char *rv = reflector->list_stream.rv;
    int r;

    if (append_target(reflector, known, exact_rv, &target) < 0)
        return kinf__error_no_memory(err);
    reflector->decoder.lookup = known != NULL ? look_up : NULL;
    reflector->decoder.lookup_ctx = (void *)known;
    reflector->n_list_items = 0;
    r = kinf__reflector_receive_page(reflector, &target, action, err);
    if (r == 0 && kinf__newest_is_newer(action->rv, rv))
        r = kinf__error_set(err, KINF_ERR_EXPIRED, "the server is at version %s, it was at %s", rv,
                            action->rv);
    if (r == 0 && exact_rv[0] == '\0' && reflector->server_rv[0] == '\0')
        snprintf(reflector->server_rv, sizeof reflector->server_rv, "%s", rv);
    if (r == 0 && listed->n_items > 0)
        *ret_item = kinf_object_ref(listed->items[0]);
    kinf__reflector_drop_list(reflector);
    return r;
}

/* --- what it must say --- */

static int doubt(const struct kinf_object *known, struct kinf_error *err)
{
    return kinf__error_set(err, KINF_ERR_EXPIRED, "%s is not as it was at version %s",
                           kinf_object_key(known), kinf_object_resource_version(known));
}

/* Whether the watch brings this, if the history is the one that is known. */
static bool is_to_come(const struct kinf_object *item, const struct kinf_object *known,
                       const char *last_rv)
{
    return item != NULL && strcmp(kinf_object_key(item), kinf_object_key(known)) == 0 &&
           kinf__newest_is_newer(kinf_object_resource_version(item), last_rv);
}

/* It does not have that state any more, or knows no such request: nobody can tell. */
static bool is_untold(int r, const struct kinf_error *err)
{
    return r == KINF_ERR_EXPIRED || (r == KINF_ERR_SERVER && err->http_status < 500);
}

static int verify_stored(struct kinf__reflector *reflector,
                         const struct kinf__policy_action *action, const struct kinf_object *known,
                         struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *now = NULL, *then = NULL;
    int r = ask(reflector, action, known, "", &now, err);

    if (r < 0 || now == known)
        return r;
    if (now != NULL && !is_to_come(now, known, action->rv))
        return doubt(known, err);
    r = ask(reflector, action, known, action->rv, &then, err);
    if (is_untold(r, err))
        return 0;
    if (r < 0 || then == known || is_to_come(then, known, action->rv))
        return r;
    return doubt(known, err);
}

static int verify_deleted(struct kinf__reflector *reflector,
                          const struct kinf__policy_action *action, const struct kinf_object *known,
                          struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *now = NULL;
    int r = ask(reflector, action, known, "", &now, err);

    /* One that is newer is selected again, by a selector. */
    if (r < 0 || now == NULL || !kinf__object_same_uid(now, known) ||
        is_to_come(now, known, action->rv))
        return r;
    return doubt(known, err);
}

/* By the state of exactly the last version: nothing of this resource needs to have been undone, to
 * have missed what was made in another history. */
static int verify_count(struct kinf__reflector *reflector, const struct kinf__policy_action *action,
                        bool *ret_is_counted, struct kinf_error *err)
{
    const struct kinf__list_stream *stream = &reflector->list_stream;
    kinf_auto_object const struct kinf_object *any = NULL;
    int64_t n_objects;
    int r;

    if (reflector->n_known < 0 || reflector->policy.options.has_selector)
        return 0;
    r = ask(reflector, action, NULL, action->rv, &any, err);
    if (r < 0)
        return is_untold(r, err) ? 0 : r;
    n_objects = (int64_t)reflector->n_list_items;
    if (stream->continue_token[0] != '\0')
        n_objects = stream->remaining_item_count < 0 ? reflector->n_known
                                                     : n_objects + stream->remaining_item_count;
    *ret_is_counted = strcmp(stream->rv, action->rv) == 0;
    if (!*ret_is_counted || n_objects == reflector->n_known)
        return 0;
    return kinf__error_set(err, KINF_ERR_EXPIRED,
                           "there were %" PRId64 " objects at version %s, not %" PRId64, n_objects,
                           action->rv, reflector->n_known);
}

static int verify(struct kinf__reflector *reflector, const struct kinf__policy_action *action,
                  bool *ret_is_counted, struct kinf_error *err)
{
    const struct kinf__newest *newest = &reflector->newest;
    kinf_auto_object const struct kinf_object *any = NULL;
    int r = newest->n_stored == 0 ? ask(reflector, action, NULL, "", &any, err) : 0;

    for (size_t i = 0; r == 0 && i < newest->n_stored; i++)
        r = verify_stored(reflector, action, newest->stored[i], err);
    if (r == 0 && newest->deleted != NULL)
        r = verify_deleted(reflector, action, newest->deleted, err);
    if (r == 0)
        r = verify_count(reflector, action, ret_is_counted, err);
    return r;
}

void kinf__reflector_verify(struct kinf__reflector *reflector,
                            const struct kinf__policy_action *action)
{
    struct kinf__policy_event verified = { .type = KINF__POLICY_VERIFIED };
    struct kinf_error err = KINF_ERROR_INIT;
    int r;

    reflector->must_relist = false;
    reflector->server_rv[0] = '\0';
    r = verify(reflector, action, &verified.is_counted, &err);
    if (r == 0 && reflector->must_relist) {
        kinf__reflector_tell_failure(reflector, KINF__POLICY_UNDECODABLE, &reflector->relist_why);
        return;
    }
    verified.rv = reflector->server_rv;
    if (r == 0) {
        kinf__reflector_tell(reflector, &verified);
        return;
    }
    if (r == KINF_ERR_EXPIRED)
        KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_WARN,
                  "the server is not what it was (restored from a backup?), listing resource=%s "
                  "namespace=%s error=%s",
                  reflector->options.type->resource, kinf__reflector_namespace(reflector),
                  KINF__QUOTED(err.message));
    kinf__reflector_tell_failure(
        reflector, r == KINF_ERR_EXPIRED ? KINF__POLICY_DOUBTED : KINF__POLICY_VERIFY_FAILED, &err);
}
