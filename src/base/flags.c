/*
 * getopt_long() by a table. Neighbours: the command lines of kinformerd and kinformer-sim.
 */
#include "base/flags.h"

#include <getopt.h>

#include "base/error.h"

/* Above all characters, which would be short options. */
#define FIRST_FLAG 256
#define MAX_FLAGS  31

int kinf__flag_text(const struct kinf__flag *flag, const char *value, void *member,
                    struct kinf_error *err)
{
    (void)flag;
    (void)err;
    *(const char **)member = value;
    return 0;
}

int kinf__flag_add(const struct kinf__flag *flag, const char *value, void *member,
                   struct kinf_error *err)
{
    struct kinf__flag_values *values = member;

    if (values->n_items == KINF__FLAG_MAX_VALUES)
        return kinf__error_set(err, KINF_ERR_INVALID, "more than %d --%s", KINF__FLAG_MAX_VALUES,
                               flag->name);
    values->items[values->n_items++] = value;
    return 0;
}

int kinf__flag_on(const struct kinf__flag *flag, const char *value, void *member,
                  struct kinf_error *err)
{
    (void)flag;
    (void)value;
    (void)err;
    *(bool *)member = true;
    return 0;
}

int kinf__flag_set(const struct kinf__flag *flag, const char *value, void *member,
                   struct kinf_error *err)
{
    (void)value;
    (void)err;
    *(unsigned *)member = (unsigned)flag->set_to;
    return 0;
}

/* What getopt stumbled over: ':' or '?'. */
static int refuse(int complaint, char *argv[], struct kinf_error *err)
{
    if (complaint == ':')
        return kinf__error_set(err, KINF_ERR_INVALID, "%s needs a value (see --help)",
                               argv[optind - 1]);
    if (optopt > 0 && optopt < FIRST_FLAG)
        return kinf__error_set(err, KINF_ERR_INVALID, "'-%c' is no option (see --help)", optopt);
    if (optopt != 0)
        return kinf__error_set(err, KINF_ERR_INVALID, "'%s': this option takes no value",
                               argv[optind - 1]);
    return kinf__error_set(err, KINF_ERR_INVALID,
                           "'%s' is no option, or short for several (see --help)",
                           argv[optind - 1]);
}

int kinf__flags_read(int argc, char *argv[], const struct kinf__flag *flags, size_t n_flags,
                     void *into, const char *stray, struct kinf_error *err)
{
    struct option options[MAX_FLAGS + 1] = { { .name = NULL } };
    int found, rc = 0;

    for (size_t i = 0; i < n_flags && i < MAX_FLAGS; i++)
        options[i] =
            (struct option){ .name = flags[i].name,
                             .has_arg = flags[i].has_value ? required_argument : no_argument,
                             .val = FIRST_FLAG + (int)i };
    optind = 0; /* begins anew, also after a failure */
    while (rc == 0 && (found = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        const struct kinf__flag *flag = &flags[found - FIRST_FLAG];

        rc = found < FIRST_FLAG ? refuse(found, argv, err)
                                : flag->take(flag, flag->has_value ? optarg : NULL,
                                             (char *)into + flag->offset, err);
    }
    if (rc == 0 && optind < argc)
        rc = kinf__error_set(err, KINF_ERR_INVALID, "'%s' is no option; %s %s", argv[optind], stray,
                             argv[optind]);
    return rc;
}
