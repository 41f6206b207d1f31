/*
 * Quantities are counted in billionths, as many as 128 bits hold. Neighbours: schema_check.c refuses
 * what is none, schema_prune.c writes them.
 */
#include "document/quantity.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define BILLION    1000000000LL
#define MAX_DIGITS 18
/* What is that large or larger is not counted here. */
#define MAX_EXPONENT 100
#define MAX_BILLION  ((__int128)9223372036854775807LL * BILLION)

enum form { FORM_DECIMAL, FORM_BINARY, FORM_EXPONENT };

struct quantity {
    __int128 billionths;
    enum form form;
};

/* Of thousands and of 1024s, by their exponents. */
static const char decimal_suffixes[][2] = { "n", "u", "m", "", "k", "M", "G", "T", "P", "E" };
static const char binary_suffixes[][3] = { "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" };

/* Multiplies; false: it becomes too large. */
static bool scale(__int128 *number, int base, int exponent)
{
    for (; exponent > 0; exponent--) {
        if (*number > MAX_BILLION / base)
            return false;
        *number *= base;
    }
    return true;
}

/* What is less than a billionth counts as one. */
static void shrink(__int128 *number, int exponent)
{
    for (; exponent < 0; exponent++)
        *number = *number / 10 + (*number % 10 != 0);
}

/* Finds the suffix: what it multiplies by. An exponent beyond MAX_EXPONENT is that. */
static bool read_suffix(const char *text, struct quantity *quantity, int *ret_base,
                        int *ret_exponent)
{
    const char *digits;
    long number;

    *ret_base = 10;
    quantity->form = FORM_DECIMAL;
    for (int i = 0; i < (int)KINF__ARRAY_LEN(decimal_suffixes); i++) {
        *ret_exponent = 3 * (i - 3);
        if (strcmp(text, decimal_suffixes[i]) == 0)
            return true;
    }
    *ret_base = 1024;
    quantity->form = FORM_BINARY;
    for (int i = 1; i < (int)KINF__ARRAY_LEN(binary_suffixes); i++) {
        *ret_exponent = i;
        if (strcmp(text, binary_suffixes[i]) == 0)
            return true;
    }
    *ret_base = 10;
    quantity->form = FORM_EXPONENT;
    if (*text != 'e' && *text != 'E')
        return false;
    digits = text + 1 + (text[1] == '+' || text[1] == '-');
    number = strtol(text + 1, NULL, 10);
    *ret_exponent = number > MAX_EXPONENT    ? MAX_EXPONENT
                    : number < -MAX_EXPONENT ? -MAX_EXPONENT
                                             : (int)number;
    return *digits != '\0' && digits[strspn(digits, "0123456789")] == '\0';
}

static bool read_quantity(const char *text, struct quantity *quantity)
{
    bool is_negative = *text == '-', has_point = false, has_digit = false;
    int n_digits = 0, decimals = 0, base, exponent;
    __int128 number = 0;

    text += *text == '-' || *text == '+';
    for (; isdigit((unsigned char)*text) || (*text == '.' && !has_point); text++) {
        if (*text == '.') {
            has_point = true;
            continue;
        }
        has_digit = true;
        number = number * 10 + (*text - '0');
        decimals += has_point;
        n_digits += number != 0;
        if (n_digits > MAX_DIGITS || decimals > MAX_DIGITS)
            return false;
    }
    if (!has_digit || !read_suffix(text, quantity, &base, &exponent) || exponent == -MAX_EXPONENT ||
        exponent == MAX_EXPONENT)
        return false;
    if (base == 1024) {
        if (!scale(&number, 1024, exponent))
            return false;
        exponent = 0;
    }
    exponent += 9 - decimals;
    if (!scale(&number, 10, exponent))
        return false;
    shrink(&number, exponent);
    quantity->billionths = is_negative ? -number : number;
    return true;
}

const char *kinf__quantity_fault(const char *text)
{
    struct quantity ignored;
    int base, exponent;
    size_t n;

    text += *text == '+' || *text == '-';
    n = strspn(text, "0123456789");
    text += n;
    if (*text == '.') {
        n += strspn(text + 1, "0123456789");
        text += 1 + strspn(text + 1, "0123456789");
    }
    if (n == 0 || strspn(text, "eEinumkKMGTP+-0123456789") != strlen(text))
        return "quantities must match the regular expression "
               "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    return read_suffix(text, &ignored, &base, &exponent) ? NULL
                                                         : "unable to parse quantity's suffix";
}

static void write_binary(long long bytes, char canonical[KINF__QUANTITY_SIZE])
{
    size_t i = 0;

    for (; bytes % 1024 == 0 && i + 1 < KINF__ARRAY_LEN(binary_suffixes); i++)
        bytes /= 1024;
    snprintf(canonical, KINF__QUANTITY_SIZE, "%lld%s", bytes, binary_suffixes[i]);
}

static void write_decimal(__int128 billionths, bool has_exponent,
                          char canonical[KINF__QUANTITY_SIZE])
{
    int i = 0;

    for (; billionths % 1000 == 0 && i + 1 < (int)KINF__ARRAY_LEN(decimal_suffixes); i++)
        billionths /= 1000;
    if (has_exponent && i != 3)
        snprintf(canonical, KINF__QUANTITY_SIZE, "%llde%d", (long long)billionths, 3 * (i - 3));
    else
        snprintf(canonical, KINF__QUANTITY_SIZE, "%lld%s", (long long)billionths,
                 has_exponent ? "" : decimal_suffixes[i]);
}

bool kinf__quantity_write(const char *text, char canonical[KINF__QUANTITY_SIZE])
{
    struct quantity quantity;
    __int128 number;

    if (!read_quantity(text, &quantity))
        return false;
    number = quantity.billionths;
    if (number == 0)
        snprintf(canonical, KINF__QUANTITY_SIZE, "0");
    /* What is less than 1024 bytes, or no whole number of them, is written as all others are. */
    else if (quantity.form == FORM_BINARY && number % BILLION == 0 &&
             (number / BILLION >= 1024 || number / BILLION <= -1024))
        write_binary((long long)(number / BILLION), canonical);
    else
        write_decimal(number, quantity.form == FORM_EXPONENT, canonical);
    return true;
}

bool kinf__quantity_exceeds(const char *a, const char *b)
{
    struct quantity x, y;

    return read_quantity(a, &x) && read_quantity(b, &y) && x.billionths > y.billionths;
}
