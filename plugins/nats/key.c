/*
 * Keys of the bucket. See key.h.
 */
#include "key.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_NAMESPACE "-"

static bool is_plain(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

/* Returns the end of what it wrote. */
static char *encode_part(char *at, const char *part, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)part[i];

        if (is_plain(c)) {
            *at++ = (char)c;
        } else if (c == '.') {
            *at++ = '_';
        } else {
            at += sprintf(at, "=%02X", c);
        }
    }
    return at;
}

char *nats_key_encode(const char *resource, const char *key)
{
    const char *slash = strchr(key, '/');
    const char *name = slash != NULL ? slash + 1 : key;
    char *encoded = malloc(3 * (strlen(resource) + strlen(key)) + sizeof "." NO_NAMESPACE "."),
         *at = encoded;

    if (encoded == NULL) {
        return NULL;
    }
    at = encode_part(at, resource, strlen(resource));
    *at++ = '.';
    at = slash != NULL ? encode_part(at, key, (size_t)(slash - key)) : stpcpy(at, NO_NAMESPACE);
    *at++ = '.';
    *encode_part(at, name, strlen(name)) = '\0';
    return encoded;
}

static int decode_byte(const char *at)
{
    char digits[3] = { at[0], at[0] != '\0' ? at[1] : '\0' };

    return isxdigit((unsigned char)digits[0]) && isxdigit((unsigned char)digits[1])
               ? (int)strtol(digits, NULL, 16)
               : -1;
}

/* Up to the dot or the end; `*at` is behind it then. Returns the end of what it wrote, or NULL. */
static char *decode_part(char *out, const char **at)
{
    for (; **at != '\0' && **at != '.'; (*at)++) {
        int byte = **at == '_' ? '.' : **at;

        if (**at == '=') {
            byte = decode_byte(*at + 1);
        }
        if (byte <= 0) {
            return NULL;
        }
        *at += **at == '=' ? 2 : 0;
        *out++ = (char)byte;
    }
    *at += **at == '.';
    *out = '\0';
    return out;
}

static int decode(const char *encoded, char *resource, char *key)
{
    char *end;

    if (decode_part(resource, &encoded) == NULL || (end = decode_part(key, &encoded)) == NULL) {
        return -1;
    }
    if (strcmp(key, NO_NAMESPACE) == 0) {
        end = key;
    } else {
        *end++ = '/';
    }
    return decode_part(end, &encoded) != NULL && *end != '\0' && *encoded == '\0' ? 0 : -1;
}

int nats_key_decode(const char *encoded, char **ret_resource, char **ret_key)
{
    char *resource = malloc(strlen(encoded) + 1), *key = malloc(strlen(encoded) + 2);

    if (resource == NULL || key == NULL || decode(encoded, resource, key) != 0) {
        free(resource);
        free(key);
        return -1;
    }
    *ret_resource = resource;
    *ret_key = key;
    return 0;
}
