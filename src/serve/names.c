/*
 * Forms of names. Neighbours: label_fault.c; of the API server, metadata.c and the validation of
 * kinds.
 */
#include "serve/names.h"

#include <stdio.h>
#include <string.h>

#define LOWER   "abcdefghijklmnopqrstuvwxyz"
#define UPPER   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"
#define ALNUM   LOWER UPPER DIGITS
#define EXAMPLE " (e.g. "
#define REGEX   "regex used for validation is "

#define LABEL_MAX     63
#define SHORT_MAX     52
#define SUBDOMAIN_MAX 253

static const char subdomain_words[] =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', "
    "and must start and end with an alphanumeric character" EXAMPLE "'example.com', " REGEX
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
static const char label_words[] =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must "
    "start and end with an alphanumeric character" EXAMPLE "'my-name',  or '123-abc', " REGEX
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
static const char label_1035_words[] =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character" EXAMPLE
    "'my-name',  or 'abc-123', " REGEX "'[a-z]([-a-z0-9]*[a-z0-9])?')";
static const char config_key_words[] =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'" EXAMPLE
    "'key.name',  or 'KEY_NAME',  or 'key-name', " REGEX "'[-._a-zA-Z0-9]+')";
static const char label_value_words[] =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character" EXAMPLE
    "'MyValue',  or 'my_value',  or '12345', " REGEX
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
#define QUALIFIED_WORDS                                                                            \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character" EXAMPLE "'MyName',  or 'my.name',  or '123-abc', " REGEX              \
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

static bool fails(char *why, const char *words)
{
    snprintf(why, KINF__NAME_FAULT_SIZE, "%s", words);
    return false;
}

/* Whether all bytes are of `inner`, and the first and the last of `outer`, too. */
static bool consists_of(const char *text, size_t len, const char *inner, const char *outer)
{
    return len != 0 && strspn(text, inner) >= len && strchr(outer, text[0]) != NULL &&
           strchr(outer, text[len - 1]) != NULL;
}

static bool is_subdomain(const char *name, size_t len)
{
    size_t part;

    for (const char *at = name;; at += part + 1) {
        size_t left = len - (size_t)(at - name);

        part = strcspn(at, ".");
        if (part > left)
            part = left;
        if (!consists_of(at, part, LOWER DIGITS "-", LOWER DIGITS))
            return false;
        if (part == left)
            return true;
    }
}

/* What is said of a length; `unit`: "characters". */
static bool is_within(const char *name, size_t max, const char *unit, char *why)
{
    snprintf(why, KINF__NAME_FAULT_SIZE, "must be no more than %zu %s", max, unit);
    return strlen(name) <= max;
}

static bool check_subdomain(const char *name, char *why)
{
    return is_within(name, SUBDOMAIN_MAX, "characters", why) &&
           (is_subdomain(name, strlen(name)) || fails(why, subdomain_words));
}

static bool check_label(const char *name, char *why)
{
    size_t len = strlen(name);

    if (!is_within(name, LABEL_MAX, "characters", why))
        return false;
    if (consists_of(name, len, LOWER DIGITS "-", LOWER DIGITS))
        return true;
    return fails(why, is_subdomain(name, len) ? "must not contain dots" : label_words);
}

static bool check_label_1035(const char *name, char *why)
{
    return is_within(name, LABEL_MAX, "characters", why) &&
           ((consists_of(name, strlen(name), LOWER DIGITS "-", LOWER DIGITS) &&
             strchr(LOWER, *name) != NULL) ||
            fails(why, label_1035_words));
}

/* Room for what is put behind it: its jobs. */
static bool check_short_subdomain(const char *name, char *why)
{
    return is_within(name, SHORT_MAX, "characters", why) && check_subdomain(name, why);
}

static bool check_segment(const char *name, char *why)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        snprintf(why, KINF__NAME_FAULT_SIZE, "may not be '%s'", name);
        return false;
    }
    if (strchr(name, '/') != NULL)
        return fails(why, "may not contain '/'");
    return strchr(name, '%') == NULL || fails(why, "may not contain '%'");
}

static bool check_config_key(const char *key, char *why)
{
    if (!is_within(key, SUBDOMAIN_MAX, "characters", why))
        return false;
    if (!consists_of(key, strlen(key), ALNUM "-_.", ALNUM "-_."))
        return fails(why, config_key_words);
    if (strcmp(key, ".") == 0)
        return fails(why, "must not be '.'");
    if (strcmp(key, "..") == 0)
        return fails(why, "must not be '..'");
    return strncmp(key, "..", 2) != 0 || fails(why, "must not start with '..'");
}

static bool check_label_value(const char *value, char *why)
{
    return is_within(value, LABEL_MAX, "bytes", why) &&
           (*value == '\0' || consists_of(value, strlen(value), ALNUM "-_.", ALNUM) ||
            fails(why, label_value_words));
}

static bool check_qualified(const char *key, char *why)
{
    const char *slash = strchr(key, '/');
    const char *name = slash != NULL ? slash + 1 : key;

    if (strchr(name, '/') != NULL)
        return fails(why, "a valid label key " QUALIFIED_WORDS
                          " with an optional DNS subdomain prefix and '/'" EXAMPLE
                          "'example.com/MyName')");
    if (slash == key)
        return fails(why, "prefix part must be non-empty");
    if (slash != NULL && slash - key > SUBDOMAIN_MAX)
        return fails(why, "prefix part must be no more than 253 bytes");
    if (slash != NULL && !is_subdomain(key, (size_t)(slash - key))) {
        snprintf(why, KINF__NAME_FAULT_SIZE, "prefix part %s", subdomain_words);
        return false;
    }
    if (*name == '\0')
        return fails(why, "name part must be non-empty");
    if (strlen(name) > LABEL_MAX)
        return fails(why, "name part must be no more than 63 bytes");
    return consists_of(name, strlen(name), ALNUM "-_.", ALNUM) ||
           fails(why, "name part " QUALIFIED_WORDS);
}

bool kinf__name_is(enum kinf__name_form form, const char *name, char why[KINF__NAME_FAULT_SIZE])
{
    static bool (*const checks[])(const char *name, char *why) = {
        [KINF__NAME_SUBDOMAIN] = check_subdomain,
        [KINF__NAME_SHORT_SUBDOMAIN] = check_short_subdomain,
        [KINF__NAME_LABEL] = check_label,
        [KINF__NAME_LABEL_1035] = check_label_1035,
        [KINF__NAME_SEGMENT] = check_segment,
        [KINF__NAME_CONFIG_KEY] = check_config_key,
        [KINF__NAME_LABEL_VALUE] = check_label_value,
        [KINF__NAME_QUALIFIED] = check_qualified,
    };

    return checks[form](name, why);
}
