/*
 * What a client of bench/ does with its store when a line of standard input asks for it
 * (peers/client-go/work.go does the same, in the same order):
 *
 *     lists SELECTOR   all objects that match, again and again
 *     gets             GetByKey, and ByIndex by the label pod-template-hash
 *     writes READERS   updates of a store of its own, beside so many that list namespaces
 *     stop             of the informer; no further line but this one may come behind it
 *
 * Each is answered by one line, with the number of what was found, for whoever compares. Times of
 * lists and gets are the process's CPU, those of writes and stop are the clock's.
 *
 * Threads: one.
 */
#ifndef KINF_BENCH_STORE_WORK_H
#define KINF_BENCH_STORE_WORK_H

#include <stdbool.h>

#include <kinformer/informer.h>

/* Whether the line, which has no newline any more, was one of these. What fails ends the program. */
bool store_work(struct kinf_informer *pods, const char *line);

#endif
