/*
 * Reading and writing times of RFC 3339.
 */
#include "base/rfc3339.h"

#include <stdio.h>
#include <time.h>

#define MINUTE_S  60
#define HOUR_S    3600
#define DAY_S     86400
#define MIN_BYTES 20             /* "2006-01-02T15:04:05Z", the shortest */
#define FIRST_S   (-62167219200) /* 0000-01-01T00:00:00Z */
#define LAST_S    253402300799   /* 9999-12-31T23:59:59Z */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool read_number(const char *text, size_t n_digits, int64_t min, int64_t max, int64_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < n_digits; i++) {
        if (!is_digit(text[i]))
            return false;
        *ret = *ret * 10 + (text[i] - '0');
    }
    return *ret >= min && *ret <= max;
}

/* Z or +hh:mm, in seconds east of Greenwich. */
static bool read_zone(struct kinf_str text, int64_t *ret_offset_s)
{
    const char *at = text.bytes;
    int64_t hours, minutes;

    if (text.len == 1 && (*at == 'Z' || *at == 'z')) {
        *ret_offset_s = 0;
        return true;
    }
    if (text.len != 6 || (*at != '+' && *at != '-') || !read_number(at + 1, 2, 0, 23, &hours) ||
        at[3] != ':' || !read_number(at + 4, 2, 0, 59, &minutes))
        return false;
    *ret_offset_s = (*at == '-' ? -1 : 1) * (hours * HOUR_S + minutes * MINUTE_S);
    return true;
}

/* Days from 1970-01-01, of the Gregorian calendar; the month may be the 13th. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t shifted = month <= 2 ? year - 1 : year;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + of_year - 719468;
}

static bool read_date(const char *at, int64_t *ret_days)
{
    int64_t year, month, day;

    if (!read_number(at, 4, 0, 9999, &year) || at[4] != '-' ||
        !read_number(at + 5, 2, 1, 12, &month) || at[7] != '-' ||
        !read_number(at + 8, 2, 1, 31, &day))
        return false;
    *ret_days = days_of(year, month, day);
    return *ret_days < days_of(year, month + 1, 1);
}

/* A leap second is the next one. */
static bool read_time_of_day(const char *at, int64_t *ret_seconds)
{
    int64_t hour, minute, second;

    if (!read_number(at, 2, 0, 23, &hour) || at[2] != ':' ||
        !read_number(at + 3, 2, 0, 59, &minute) || at[5] != ':' ||
        !read_number(at + 6, 2, 0, 60, &second))
        return false;
    *ret_seconds = hour * HOUR_S + minute * MINUTE_S + second;
    return true;
}

bool kinf__rfc3339_parse(struct kinf_str text, int64_t *ret_wall_s)
{
    const char *at = text.bytes, *end = at + text.len;
    int64_t days, seconds, offset_s;

    if (text.len < MIN_BYTES || !read_date(at, &days) || (at[10] != 'T' && at[10] != 't') ||
        !read_time_of_day(at + 11, &seconds))
        return false;
    at += MIN_BYTES - 1;
    if (*at == '.') {
        do
            at++;
        while (at != end && is_digit(*at));
    }
    if (!read_zone((struct kinf_str){ at, (size_t)(end - at) }, &offset_s))
        return false;
    *ret_wall_s = days * DAY_S + seconds - offset_s;
    return true;
}

void kinf__rfc3339_write(int64_t wall_s, int micros, int n_decimals, char text[KINF__RFC3339_SIZE])
{
    time_t seconds = (time_t)(wall_s < FIRST_S ? FIRST_S : wall_s > LAST_S ? LAST_S : wall_s);
    char decimals[16];
    struct tm utc;

    gmtime_r(&seconds, &utc);
    snprintf(decimals, sizeof decimals, ".%06d", micros);
    snprintf(text, KINF__RFC3339_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d%.*sZ", utc.tm_year + 1900,
             utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
             n_decimals != 0 ? n_decimals + 1 : 0, decimals);
}
