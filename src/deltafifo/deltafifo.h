/*
 * What the informer's threads do to the queue beyond the public contract.
 *
 * Threads: as kinformer/deltafifo.h.
 */
#ifndef KINF_DELTAFIFO_DELTAFIFO_H
#define KINF_DELTAFIFO_DELTAFIFO_H

#include <kinformer/deltafifo.h>

/* While a queue is corked, one delta is no reason to wake the consumer: 64 items or 1 MiB are, or
 * the end of this, or a producer that waits for room. What is queued can be popped all the same.
 * For a producer that knows of more to come at once: a wake-up costs more than a delta. */
void kinf__deltafifo_set_corked(struct kinf_deltafifo *fifo, bool is_corked);

/* Ends the consumer's wait, or its next one, as if its time were over: it has to look at something. */
void kinf__deltafifo_nudge(struct kinf_deltafifo *fifo);

/* For a producer that has time: to wake the consumer takes longer than to process what came alone. False
 * unless the consumer waits and nobody has woken it. Until the queue is given back this thread is the
 * consumer, and the other one waits, whatever becomes of its time. */
KINF_MUST_CHECK bool kinf__deltafifo_borrow(struct kinf_deltafifo *fifo);
/* As kinf_deltafifo_pop(), of who has borrowed the queue. Waits for nothing: KINF_ERR_TIMEOUT. */
KINF_MUST_CHECK int kinf__deltafifo_pop_borrowed(struct kinf_deltafifo *fifo,
                                                 kinf_pop_process_cb *process, void *ctx);
/* `nudges`: as kinf__deltafifo_nudge(). */
void kinf__deltafifo_give_back(struct kinf_deltafifo *fifo, bool nudges);

/* Whether nothing is queued, and nothing is being processed. */
bool kinf__deltafifo_is_idle(struct kinf_deltafifo *fifo);

#endif
