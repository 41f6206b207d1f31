/*
 * The forms that names, labels and keys must have, and what the server says of those that have not.
 *
 * Threads: constant.
 */
#ifndef KINF_APISERVER_NAMES_H
#define KINF_APISERVER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* X(enumerator, what has it) */
#define KINF__NAME_FORMS(X)                                                                        \
    X(KINF__NAME_SUBDOMAIN, "RFC 1123 subdomains: most objects")                                   \
    X(KINF__NAME_SHORT_SUBDOMAIN, "those of 52 characters: CronJobs")                              \
    X(KINF__NAME_LABEL, "RFC 1123 labels: namespaces, containers")                                 \
    X(KINF__NAME_LABEL_1035, "RFC 1035 labels: versions, plurals")                                 \
    X(KINF__NAME_SEGMENT, "segments of paths: roles")                                              \
    X(KINF__NAME_CONFIG_KEY, "keys of ConfigMaps and Secrets")                                     \
    X(KINF__NAME_LABEL_VALUE, "values of labels")                                                  \
    X(KINF__NAME_QUALIFIED, "keys of labels and annotations, finalizers")

enum kinf__name_form {
#define X(form, what) form,
    KINF__NAME_FORMS(X)
#undef X
};

/* Room for the longest of what is said. */
#define KINF__NAME_FAULT_SIZE 512

/* Whether the name is of this form; if not, writes why. */
bool kinf__name_is(enum kinf__name_form form, const char *name, char why[KINF__NAME_FAULT_SIZE]);

#endif
