/*
 * What the tests of outboxes share.
 */
#include "unit/outbox_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "handlers/line.h"
#include "unit/informer_fixture.h"
#include "unit/test.h"

struct kinf__outbox_feed *outbox_open_feed(struct kinf__outbox *outbox, const char *resource)
{
    struct kinf__outbox_feed *feed;

    assert_int_equal(kinf__outbox_feed_new(outbox, resource, &feed, NULL), 0);
    kinf__outbox_feed_open(feed);
    return feed;
}

void outbox_begin(struct outbox_fixture *f, bool acknowledges)
{
    assert_int_equal(kinf__outbox_init(&f->outbox,
                                       &(struct kinf__outbox_options){ .acknowledges = acknowledges,
                                                                       .keeps_old = true },
                                       NULL),
                     0);
    f->feed = outbox_open_feed(&f->outbox, "things");
    kinf__outbox_reset(&f->outbox);
}

void outbox_end(struct outbox_fixture *f)
{
    kinf__outbox_feed_free(f->feed);
    assert_true(kinf__outbox_check(&f->outbox));
    kinf__outbox_release(&f->outbox);
}

void outbox_put(struct kinf__outbox_feed *feed, const char *name, const char *rv)
{
    const struct kinf_object *object = make_thing(name, rv);

    kinf__outbox_feed_put(feed, NULL, object, false);
    kinf_object_unref(object);
}

void outbox_delete(struct kinf__outbox_feed *feed, const char *name, const char *rv)
{
    const struct kinf_object *object = make_thing(name, rv);

    kinf__outbox_feed_delete(feed, object, true);
    kinf_object_unref(object);
}

static int read_change(const struct kinf_change *change, void *ctx)
{
    const char *name = kinf__change_name(change->type);
    struct outbox_told *told = ctx;

    *told = (struct outbox_told){ .sequence = change->sequence };
    if (change->object != NULL) {
        snprintf(told->text, sizeof told->text, "%s%s %s@%s", name,
                 change->in_initial_list ? "!" : "", kinf_object_key(change->object),
                 kinf_object_resource_version(change->object));
        snprintf(told->uid, sizeof told->uid, "%s", kinf_object_uid(change->object));
    } else {
        snprintf(told->text, sizeof told->text, "%s%s%s", name, change->resource != NULL ? " " : "",
                 change->resource != NULL ? change->resource : "");
    }
    assert_true(change->old != NULL || change->type != KINF_CHANGE_MODIFIED);
    if (change->old != NULL)
        snprintf(told->old, sizeof told->old, "%s", kinf_object_resource_version(change->old));
    return 0;
}

bool outbox_take(struct kinf__outbox *outbox, struct outbox_told *told)
{
    bool is_one = kinf__outbox_next(outbox, read_change, told) == 1;

    assert_true(kinf__outbox_check(outbox));
    return is_one;
}

void assert_outbox_told(struct kinf__outbox *outbox, const char *wanted)
{
    KINF__AUTO_BUFFER told = KINF__BUFFER_INIT;
    struct outbox_told one;

    while (outbox_take(outbox, &one))
        assert_int_equal(kinf__buffer_printf(&told, "%s%s", told.len != 0 ? ", " : "", one.text),
                         0);
    assert_string_equal(told.len != 0 ? kinf__buffer_cstr(&told) : "", wanted);
}
