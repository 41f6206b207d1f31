/*
 * The order of resourceVersions. Neighbours: queue and informer ask it to tell a server that went
 * back from one that moved on. A version is compared as its digits: 2^128-1 is beyond any integer
 * of the language.
 */
#include <kinformer/object.h>

#include <string.h>

#include "base/error.h"

#include "base/misuse.h"

/* 2^128-1, the highest that the API allows. */
static const char highest[] = "340282366920938463463374607431768211455";

/* Without leading zeros the longer number is the larger one. */
static int compare_digits(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len != b_len ? (a_len > b_len) - (a_len < b_len) : memcmp(a, b, a_len);
}

static bool has_order(const char *rv, size_t len)
{
    return len != 0 && rv[0] != '0' && strspn(rv, "0123456789") == len &&
           compare_digits(rv, len, highest, sizeof highest - 1) <= 0;
}

static int refuse(const char *rv, struct kinf_error *err)
{
    return kinf__error_set(
        err, KINF_ERR_INVALID,
        "resourceVersion \"%.64s\" has no order: a decimal number from 1 to 2^128-1 has", rv);
}

int kinf_rv_compare(const char *a, const char *b, int *ret_order, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, a, b, ret_order);

    size_t a_len = strlen(a), b_len = strlen(b);

    if (!has_order(a, a_len))
        return refuse(a, err);
    if (!has_order(b, b_len))
        return refuse(b, err);
    *ret_order = compare_digits(a, a_len, b, b_len);
    return 0;
}
