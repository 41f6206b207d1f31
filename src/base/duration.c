/*
 * Reading durations: a sum of numbers with units.
 */
#include "base/duration.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name; /* longer ones first: "ms" before "m" */
    int64_t ms;
} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60 * 1000 }, { "h", 3600 * 1000 } };

/* The unit at `text` in milliseconds, and behind it; 0 if there is none. */
static int64_t read_unit(const char **text)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t len = strlen(units[i].name);

        if (strncmp(*text, units[i].name, len) == 0) {
            *text += len;
            return units[i].ms;
        }
    }
    return 0;
}

bool kinf__duration_parse(const char *text, int64_t *ret_ms)
{
    int64_t sum = 0;

    if (strcmp(text, "0") == 0) {
        *ret_ms = 0;
        return true;
    }
    do {
        int64_t number = 0, unit;
        const char *start = text;

        for (; *text >= '0' && *text <= '9' && number <= KINF__DURATION_MAX_MS; text++)
            number = number * 10 + (*text - '0');
        if (text == start || (unit = read_unit(&text)) == 0 ||
            number > KINF__DURATION_MAX_MS / unit)
            return false;
        sum += number * unit;
        if (sum > KINF__DURATION_MAX_MS)
            return false;
    } while (*text != '\0');
    *ret_ms = sum;
    return true;
}
