/* How many pods run on each node: the part of a program that is worth a test. */
#ifndef COUNTER_H
#define COUNTER_H

#include <kinformer/kinformer.h>

struct counter;

/* Watches the pods of all namespaces. */
int counter_new(struct kinf_client *client, struct counter **ret_counter, struct kinf_error *err);
void counter_free(struct counter *counter);

/* Pods of this node that are running now. */
size_t counter_running(struct counter *counter, const char *node);

#endif
