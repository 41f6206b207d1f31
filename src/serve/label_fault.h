/*
 * What kube-apiserver says of a label selector that it cannot read.
 *
 * Threads: any thread.
 */
#ifndef KINF_SERVE_LABEL_FAULT_H
#define KINF_SERVE_LABEL_FAULT_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the words for the first fault of a selector, as labels.Parse finds it, and of a key, a value
 * or the values of a requirement for the first of theirs alone. Returns false if it
 * finds none: then the text that says so is another parser's. */
bool kinf__label_fault(const char *selector, char *ret_words, size_t size);

#endif
