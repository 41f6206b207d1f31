/*
 * What the tests of outboxes share: one with a feed of "things", changes, and what is told of them.
 */
#ifndef KINF_TESTS_UNIT_OUTBOX_FIXTURE_H
#define KINF_TESTS_UNIT_OUTBOX_FIXTURE_H

#include "handlers/outbox.h"

struct outbox_fixture {
    struct kinf__outbox outbox;
    struct kinf__outbox_feed *feed;
};

void outbox_begin(struct outbox_fixture *f, bool acknowledges);
void outbox_end(struct outbox_fixture *f);

/* One that the consumer is told of. */
struct kinf__outbox_feed *outbox_open_feed(struct kinf__outbox *outbox, const char *resource);

void outbox_put(struct kinf__outbox_feed *feed, const char *name, const char *rv);
void outbox_delete(struct kinf__outbox_feed *feed, const char *name, const char *rv);

struct outbox_told {
    char text[64]; /* "ADDED ns/a@1", "ADDED! ns/a@1" (initial), "SYNCED things", "RESET" */
    char old[24];  /* "1": the version that it says was told last */
    char uid[24];  /* of the object */
    uint64_t sequence;
};

/* Returns false if there is nothing to be told. */
bool outbox_take(struct kinf__outbox *outbox, struct outbox_told *told);
/* All that is to be told by now, with blanks and commas between. */
void assert_outbox_told(struct kinf__outbox *outbox, const char *wanted);

#endif
