/*
 * The forms that names, labels and keys must have, and what kube-apiserver says of others.
 *
 * Threads: any.
 */
#ifndef KINF_SERVE_NAMES_H
#define KINF_SERVE_NAMES_H

#include <stdbool.h>

enum kinf__name_form {
    KINF__NAME_SUBDOMAIN,       /* RFC 1123 subdomains: most objects */
    KINF__NAME_SHORT_SUBDOMAIN, /* those of 52 characters: CronJobs */
    KINF__NAME_LABEL,           /* RFC 1123 labels: namespaces, containers */
    KINF__NAME_LABEL_1035,      /* RFC 1035 labels: versions, plurals */
    KINF__NAME_SEGMENT,         /* segments of paths: roles */
    KINF__NAME_CONFIG_KEY,      /* keys of ConfigMaps and Secrets */
    KINF__NAME_LABEL_VALUE,     /* values of labels */
    KINF__NAME_QUALIFIED,       /* keys of labels and annotations, finalizers */
};

/* Room for the longest of what is said. */
#define KINF__NAME_FAULT_SIZE 512

/* Whether the name is of this form; if not, writes why. */
bool kinf__name_is(enum kinf__name_form form, const char *name, char why[KINF__NAME_FAULT_SIZE]);

#endif
