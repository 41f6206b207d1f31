/*
 * A handler behind a URL: what happens is posted there, in batches of lines of JSON (line.h).
 *
 * The contract with a receiver:
 *
 *   POST URL                              one request at a time, in order, on one connection
 *   Content-Type: application/x-ndjson
 *   Kinformer-Run: 5f0c9a31b7d2e846       of this handler of this process, drawn at random
 *   Kinformer-Sequence: 17-42             "seq" of the first and the last line of the body
 *   Kinformer-Lease: watchers-0           if there is one, of this shard
 *   Kinformer-Term: 7                     of that Lease: each is above those before
 *
 *   - The body is whole lines, each with its "seq": 1, 2, 3... of a run, without gaps. It is no longer than
 *     max_batch_bytes, but for one line that alone is, and has KINF__OUTBOX_WINDOW lines at most.
 *   - A run begins with RESET (forget everything), and RESET may come again: then all objects follow as
 *     ADDED, and SYNCED of each resource behind its objects. Deletions that were told and not taken come
 *     behind a RESET, too.
 *   - 2xx, once its body is complete: it is taken, and the next batch follows. The body means nothing.
 *   - No answer in time, a broken connection, 408, 429 and 5xx: it is posted again, byte by byte as it was
 *     and with the same numbers, after 1 to 60 seconds, and not before Retry-After (in seconds, five
 *     minutes at most) says so. A receiver may have taken it before: it passes over a batch of the same run
 *     whose last number it has seen, and answers 200.
 *   - 409: the receiver does not know where it is (it lost its memory, or a batch is missing): after a
 *     pause everything is told anew, from RESET on.
 *   - 413: half as much is posted from here on. A line that is too large by itself is said by name, and
 *     posted with {"tooLarge":true} in the place of its object, which is told again when it changes; the
 *     lines behind it follow. One that has no object is not the line's fault: see below.
 *   - What comes with an earlier term of a Lease than something before is late: its sender does not lead any
 *     more. The receiver passes over it, and answers 200.
 *   - Everything else, redirects included, which are not followed, is a mistake that somebody has to
 *     mend: it is posted again after half a minute at least.
 *
 * So nothing is lost, and what waits is bounded by the outbox. Each failure is logged, with the
 * beginning of the answer, counted, and kept for the status. At the end the request under way is broken
 * off: what was not answered will be told by the next process, whose run is another.
 *
 * Threads: any, but for new and free.
 */
#ifndef KINF_HANDLERS_WEBHOOK_HANDLER_H
#define KINF_HANDLERS_WEBHOOK_HANDLER_H

#include "handlers/handler.h"
#include "rest/site.h"

#define KINF__WEBHOOK_TIMEOUT_MS      30000
#define KINF__WEBHOOK_MAX_BATCH_BYTES ((size_t)1 << 20)

struct kinf__webhook_options {
    struct kinf__site site; /* connect_timeout_ms: 0 is the lesser of ten seconds and timeout_ms */
    int64_t timeout_ms;     /* of a request; 0: the default */
    uint64_t max_batch_bytes; /* 0: the default */
};

/* Reads what the files hold, and starts nothing. Errors: as kinf__site_client_new(). */
KINF_MUST_CHECK int kinf__webhook_check(const struct kinf__webhook_options *options,
                                        struct kinf_error *err);
/* It posts nothing yet. What `options` point to is copied. Its name is the URL without what is
 * behind a '?'. Errors: also KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__webhook_handler_new(const struct kinf__webhook_options *options,
                                              struct kinf__handler **ret_handler,
                                              struct kinf_error *err);

#endif
