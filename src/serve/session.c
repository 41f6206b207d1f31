/*
 * Versions and signs. Neighbours: write.c notes what was answered, resource.c waits.
 *
 * Signs are looked at from the oldest to the first that does not show, since writes show in about
 * the order in which they were made: each is looked up about once, however many there are.
 */
#include "serve/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "watchcache/watchcache.h"

struct sign {
    struct kinf__list node;
    enum kinf__session_sign sign;
    uint64_t version;
    uint64_t since; /* what the cache has to have before an absence counts */
    int64_t noted_ms;
    bool is_late;    /* it was waited for to no end */
    const char *uid; /* behind the key */
    char key[];
};

static void drop_sign_locked(struct kinf__session *session, struct sign *sign)
{
    kinf__list_remove(&sign->node);
    session->n_signs--;
    free(sign);
}

static void drop_signs_locked(struct kinf__session *session)
{
    KINF__LIST_FOR_EACH_SAFE (node, &session->signs)
        drop_sign_locked(session, KINF__LIST_ENTRY(node, struct sign, node));
}

void kinf__session_init(struct kinf__session *session)
{
    *session = (struct kinf__session){ .version = 0 };
    kinf__mutex_init(&session->lock, KINF__RANK_SESSION);
    kinf__list_init(&session->signs);
}

void kinf__session_release(struct kinf__session *session)
{
    drop_signs_locked(session);
    kinf__mutex_release(&session->lock);
}

/* --- noting --- */

static struct sign *sign_new(const struct kinf__session_write *write)
{
    size_t key_size = strlen(write->key) + 1, uid_size = strlen(write->uid) + 1;
    struct sign *sign = malloc(sizeof *sign + key_size + uid_size);

    if (sign == NULL)
        return NULL;
    sign->is_late = false;
    sign->sign = write->sign;
    sign->version = write->version;
    memcpy(sign->key, write->key, key_size);
    memcpy(sign->key + key_size, write->uid, uid_size);
    sign->uid = sign->key + key_size;
    return sign;
}

static bool add_sign_locked(struct kinf__session *session, const struct kinf__session_write *write,
                            int64_t now_ms)
{
    struct sign *sign = session->n_signs < KINF__SESSION_MAX_SIGNS ? sign_new(write) : NULL;

    if (sign == NULL)
        return false;
    sign->since = session->version;
    if (write->version != KINF__SESSION_ANY && write->version > sign->since)
        sign->since = write->version;
    sign->noted_ms = now_ms;
    kinf__list_push_back(&session->signs, &sign->node);
    session->n_signs++;
    return true;
}

static void note_version_locked(struct kinf__session *session,
                                const struct kinf__session_write *write)
{
    if (write->version > session->version)
        session->version = write->version;
    if (session->unknown_ms != 0 && session->behind_unknown == 0 &&
        write->sent_ms > session->unknown_ms)
        session->behind_unknown = write->version;
}

static void set_unknown_locked(struct kinf__session *session, int64_t at_ms)
{
    session->unknown_ms = at_ms;
    session->behind_unknown = 0;
}

void kinf__session_note(struct kinf__session *session, const struct kinf__session_write *write,
                        int64_t now_ms)
{
    kinf__mutex_lock(&session->lock);
    if (write->sign == KINF__SESSION_VERSION)
        note_version_locked(session, write);
    else if (write->sign == KINF__SESSION_UNKNOWN || !add_sign_locked(session, write, now_ms))
        set_unknown_locked(session, now_ms);
    atomic_store(&session->is_behind, true);
    kinf__mutex_unlock(&session->lock);
}

/* --- looking --- */

static bool has_node(const struct kinf_object *object)
{
    char name[2];
    int code = kinf_object_get_string(object, "spec.nodeName", name, sizeof name);

    return code == KINF_ERR_LIMIT || (code == 0 && *name != '\0');
}

/* A pod without a grace is updated, and then deleted: what nothing holds is about to go. */
static bool is_held(const struct kinf_object *object)
{
    int64_t grace_s = 0;

    return kinf_object_has(object, "metadata.finalizers[0]") ||
           (kinf_object_get_int64(object, "metadata.deletionGracePeriodSeconds", &grace_s) == 0 &&
            grace_s > 0);
}

static bool shows(const struct sign *sign, const struct kinf_object *object)
{
    switch (sign->sign) {
    case KINF__SESSION_LEAVING:
        return kinf_object_has(object, "metadata.deletionTimestamp") && is_held(object);
    case KINF__SESSION_BOUND:
        return has_node(object);
    default:
        return kinf__watchcache_parse_rv(kinf_object_resource_version(object)) > sign->version;
    }
}

static bool is_shown(const struct sign *sign, const struct kinf_snapshot *snapshot,
                     uint64_t version)
{
    const struct kinf_object *object = kinf_snapshot_get(snapshot, sign->key);

    if (version < sign->since)
        return false;
    return object == NULL ||
           (*sign->uid != '\0' && strcmp(kinf_object_uid(object), sign->uid) != 0) ||
           shows(sign, object);
}

static bool is_everything_shown_locked(struct kinf__session *session)
{
    return session->version == 0 && session->n_signs == 0 && session->unknown_ms == 0;
}

static void look_locked(struct kinf__session *session, const struct kinf_snapshot *snapshot,
                        uint64_t version)
{
    KINF__LIST_FOR_EACH_SAFE (node, &session->signs) {
        struct sign *sign = KINF__LIST_ENTRY(node, struct sign, node);

        if (!is_shown(sign, snapshot, version))
            break;
        drop_sign_locked(session, sign);
    }
    if (version >= session->version)
        session->version = 0;
    if (version >= session->late_version)
        session->late_version = 0;
    if (session->behind_unknown != 0 && version >= session->behind_unknown)
        set_unknown_locked(session, 0);
    if (is_everything_shown_locked(session)) {
        session->last_version = 0;
        atomic_store(&session->is_behind, false);
    }
}

static bool is_late_locked(const struct kinf__session *session)
{
    return session->unknown_ms != 0 || session->late_version != 0 ||
           (session->n_signs != 0 &&
            KINF__LIST_ENTRY(session->signs.next, struct sign, node)->is_late);
}

enum kinf__session_state kinf__session_look(struct kinf__session *session,
                                            const struct kinf_snapshot *snapshot, uint64_t version)
{
    enum kinf__session_state state = KINF__SESSION_BEHIND;

    kinf__mutex_lock(&session->lock);
    look_locked(session, snapshot, version);
    if (is_everything_shown_locked(session))
        state = KINF__SESSION_REACHED;
    else if (is_late_locked(session))
        state = KINF__SESSION_LATE;
    kinf__mutex_unlock(&session->lock);
    return state;
}

void kinf__session_note_late(struct kinf__session *session)
{
    kinf__mutex_lock(&session->lock);
    session->late_version = session->version;
    KINF__LIST_FOR_EACH (node, &session->signs)
        KINF__LIST_ENTRY(node, struct sign, node)->is_late = true;
    kinf__mutex_unlock(&session->lock);
}

/* --- time --- */

static bool is_outdated_locked(const struct kinf__session *session, int64_t noted_ms,
                               int64_t now_ms)
{
    return now_ms - noted_ms >= KINF__SESSION_MAX_AGE_MS &&
           session->rose_ms - noted_ms >= KINF__SESSION_TRUST_MS;
}

static void age_locked(struct kinf__session *session, int64_t now_ms)
{
    KINF__LIST_FOR_EACH_SAFE (node, &session->signs) {
        struct sign *sign = KINF__LIST_ENTRY(node, struct sign, node);

        if (is_outdated_locked(session, sign->noted_ms, now_ms))
            drop_sign_locked(session, sign);
    }
    if (session->unknown_ms != 0 && is_outdated_locked(session, session->unknown_ms, now_ms))
        set_unknown_locked(session, 0);
}

static void forget_locked(struct kinf__session *session)
{
    drop_signs_locked(session);
    session->version = 0;
    session->late_version = 0;
    set_unknown_locked(session, 0);
}

void kinf__session_tick(struct kinf__session *session, const struct kinf_snapshot *snapshot,
                        uint64_t version, int64_t now_ms)
{
    kinf__mutex_lock(&session->lock);
    if (version < session->last_version)
        forget_locked(session);
    if (version > session->last_version && session->last_version != 0)
        session->rose_ms = now_ms;
    session->last_version = version;
    age_locked(session, now_ms);
    look_locked(session, snapshot, version);
    kinf__mutex_unlock(&session->lock);
}

void kinf__session_status(struct kinf__session *session, struct kinf__session_status *ret_status)
{
    kinf__mutex_lock(&session->lock);
    *ret_status = (struct kinf__session_status){
        .version = session->version,
        .n_signs = session->n_signs,
        .is_unknown = session->unknown_ms != 0,
        .is_late = is_late_locked(session),
        .n_waits = atomic_load(&session->n_waits),
        .n_misses = atomic_load(&session->n_misses),
    };
    kinf__mutex_unlock(&session->lock);
}
