/*
 * Texts for the tests of src/json and for the comparison with Go's encoding/json.
 */
#include "unit/json_corpus.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "json/scan.h"

#define N_MUTATIONS_MAX 3

/* What the recorded bodies have little of. */
static const char *const own_texts[] = {
    "0",
    "-0.5e+10",
    "null",
    "\"\"",
    "[]",
    "{}",
    "[0,-1,2.50,3e4,5E-6,true,false,null,\"\",{},[]]",
    "{\"a\":{\"b\":[1,[2,[3,{\"c\":{}}]]]},\"a\":0}",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\ud83d\\ude00\\uD800x\\uDC00\\u00e9\"",
    "{\"\\u006dame\":\"Gr\xc3\xbc\xc3\x9f \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80 \x7f\"}",
    " {\r\n\t\"pretty\" : [ 1 , 2 ,\n 3 ] }",
    "{\"int64\":9223372036854775807,\"long\":123456789012345678901234567890.123456789}",
    "\"exactly sixteen \"",
    "\"0123456789012345678901234567890123456789\xc3\xa9\\n0123456789012345\"",
};

/* Pieces that are right in few places or in none. */
static const struct kinf_str pieces[] = {
    KINF_STR("01"),
    KINF_STR("1."),
    KINF_STR("-"),
    KINF_STR("1e"),
    KINF_STR("1E+5"),
    KINF_STR("-0"),
    KINF_STR("0.0"),
    KINF_STR(".5"),
    KINF_STR("+1"),
    KINF_STR("1e400"),
    KINF_STR("-0.0e-0"),
    KINF_STR("0x10"),
    KINF_STR("1.5E3"),
    KINF_STR("00"),
    KINF_STR("2e+"),
    KINF_STR("--1"),
    KINF_STR("\\u12"),
    KINF_STR("\\ud800"),
    KINF_STR("\\uDC00\\uD800"),
    KINF_STR("\\u00fF"),
    KINF_STR("\\x41"),
    KINF_STR("\\"),
    KINF_STR("\\\""),
    KINF_STR("\\'"),
    KINF_STR("\0"),
    KINF_STR("\x1f"),
    KINF_STR("\x7f"),
    KINF_STR("\t"),
    KINF_STR("\xc0\x80"),
    KINF_STR("\xc1\xbf"),
    KINF_STR("\xc2\x80"),
    KINF_STR("\xdf\xbf"),
    KINF_STR("\xe0\x9f\xbf"),
    KINF_STR("\xe0\xa0\x80"),
    KINF_STR("\xed\x9f\xbf"),
    KINF_STR("\xed\xa0\x80"),
    KINF_STR("\xee\x80\x80"),
    KINF_STR("\xef\xbf\xbf"),
    KINF_STR("\xf0\x8f\xbf\xbf"),
    KINF_STR("\xf0\x90\x80\x80"),
    KINF_STR("\xf4\x8f\xbf\xbf"),
    KINF_STR("\xf4\x90\x80\x80"),
    KINF_STR("\xf5\x80\x80\x80"),
    KINF_STR("\xff"),
    KINF_STR("\xe2\x82"),
    KINF_STR("\x80"),
    KINF_STR("\xef\xbb\xbf"),
    KINF_STR("\xc2\xa0"),
    KINF_STR("true"),
    KINF_STR("tru"),
    KINF_STR("nulls"),
    KINF_STR("NaN"),
    KINF_STR("Infinity"),
    KINF_STR("["),
    KINF_STR("[[["),
    KINF_STR("]"),
    KINF_STR("{"),
    KINF_STR("}"),
    KINF_STR("{}"),
    KINF_STR("[]"),
    KINF_STR(","),
    KINF_STR(",,"),
    KINF_STR(":"),
    KINF_STR("\"\""),
    KINF_STR("'"),
    KINF_STR("/**/"),
    KINF_STR("\"a\":1,"),
    KINF_STR("\v"),
    KINF_STR(" \r\n\t"),
    KINF_STR("\f"),
    KINF_STR("\""),
    KINF_STR("1"),
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "json corpus: %s\n", what);
    exit(1);
}

static char *read_file(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    char *bytes;
    long len;

    if (file == NULL || fseek(file, 0, SEEK_END) < 0 || (len = ftell(file)) < 0)
        die(path);
    rewind(file);
    bytes = malloc((size_t)len + 1);
    if (bytes == NULL || fread(bytes, 1, (size_t)len, file) != (size_t)len)
        die(path);
    fclose(file);
    bytes[len] = '\0';
    *ret_len = (size_t)len;
    return bytes;
}

/* Moves the contents of the chunks together, up to the last whole or cut one. Returns the length.
 */
static size_t unchunk(char *body, size_t len)
{
    size_t at = 0, out = 0, size;
    char *behind;

    while (at < len) {
        size = strtoul(body + at, &behind, 16);
        at = (size_t)(behind - body) + 2;
        if (size == 0 || at > len)
            break;
        if (size > len - at)
            size = len - at;
        memmove(body + out, body + at, size);
        out += size;
        at += size + 2;
    }
    return out;
}

static void add_text(struct json_corpus *corpus, struct kinf_str text)
{
    corpus->texts = realloc(corpus->texts, (corpus->n_texts + 1) * sizeof *corpus->texts);
    if (corpus->texts == NULL)
        die("out of memory");
    corpus->texts[corpus->n_texts++] = text;
}

static void add_body(struct json_corpus *corpus, char *body, size_t len)
{
    size_t at = 0, value_len;

    while (at < len) {
        if (strchr(" \r\n\t", body[at]) != NULL) {
            at++;
            continue;
        }
        if (kinf__json_scan((struct kinf_str){ body + at, len - at }, true, &value_len) < 0)
            break;
        add_text(corpus, (struct kinf_str){ body + at, value_len });
        at += value_len;
    }
}

static void add_transcript(struct json_corpus *corpus, const char *path)
{
    size_t len;
    char *file = read_file(path, &len), *body = strstr(file, "\r\n\r\n");

    corpus->bodies = realloc(corpus->bodies, (corpus->n_bodies + 1) * sizeof *corpus->bodies);
    if (corpus->bodies == NULL)
        die("out of memory");
    corpus->bodies[corpus->n_bodies++] = file;
    if (body == NULL)
        return;
    *body = '\0';
    body += 4;
    len -= (size_t)(body - file);
    if (strstr(file, "Content-Encoding: gzip") != NULL ||
        strstr(file, "Content-Type: application/json") == NULL)
        return;
    if (strstr(file, "Transfer-Encoding: chunked") != NULL)
        len = unchunk(body, len);
    add_body(corpus, body, len);
}

static int is_transcript(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return dot != NULL && strcmp(dot, ".http") == 0;
}

void json_corpus_init(struct json_corpus *corpus, const char *dir)
{
    struct dirent **entries;
    int n_entries = scandir(dir, &entries, is_transcript, alphasort);
    char path[1024];

    *corpus = (struct json_corpus){ 0, NULL, 0, NULL };
    if (n_entries <= 0)
        die(dir);
    for (size_t i = 0; i < KINF__ARRAY_LEN(own_texts); i++)
        add_text(corpus, kinf_str_from(own_texts[i]));
    for (int i = 0; i < n_entries; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, entries[i]->d_name);
        add_transcript(corpus, path);
        free(entries[i]);
    }
    free(entries);
}

void json_corpus_release(struct json_corpus *corpus)
{
    for (size_t i = 0; i < corpus->n_bodies; i++)
        free(corpus->bodies[i]);
    free(corpus->bodies);
    free(corpus->texts);
}

/* Replaces `n_gone` bytes at `at`. */
static void splice(struct kinf__buffer *text, size_t at, size_t n_gone, struct kinf_str piece)
{
    if (kinf__buffer_reserve(text, piece.len) < 0)
        die("out of memory");
    memmove(text->bytes + at + piece.len, text->bytes + at + n_gone, text->len - at - n_gone);
    if (piece.len > 0)
        memcpy(text->bytes + at, piece.bytes, piece.len);
    text->len += piece.len - n_gone;
}

/* A place behind one of the bytes in `wanted`, if one follows a random place; else that place. */
static size_t place_behind(const struct kinf__buffer *text, struct test_random *random,
                           const char *wanted)
{
    size_t start = test_random_below(random, text->len + 1);

    for (size_t at = start; at < text->len; at++) {
        if (text->bytes[at] != '\0' && strchr(wanted, text->bytes[at]) != NULL)
            return at + 1;
    }
    return start;
}

static void mutate_once(struct kinf__buffer *text, struct test_random *random)
{
    struct kinf_str piece = pieces[test_random_below(random, KINF__ARRAY_LEN(pieces))];
    char byte = (char)test_random_next(random);
    size_t at = test_random_below(random, text->len + 1), n_gone;

    switch (test_random_below(random, 8)) {
    case 0:
        splice(text, at, at < text->len, (struct kinf_str){ &byte, 1 });
        break;
    case 1:
        n_gone = test_random_below(random, 8);
        splice(text, at, n_gone < text->len - at ? n_gone : text->len - at, KINF_STR(""));
        break;
    case 2:
        text->len = at;
        break;
    case 3:
        splice(text, at, 0, piece);
        break;
    case 4: /* inside of a string, mostly */
        splice(text, place_behind(text, random, "\""), 0, piece);
        break;
    case 5: /* at a number */
        splice(text, place_behind(text, random, "-0123456789.eE"), 0, piece);
        break;
    default: /* instead of a value, if that is short */
        at = place_behind(text, random, ":[,");
        for (n_gone = 0; at + n_gone < text->len; n_gone++) {
            if (strchr(",]}", text->bytes[at + n_gone]) != NULL)
                break;
        }
        splice(text, at, n_gone, piece);
        break;
    }
}

void json_corpus_mutate(const struct json_corpus *corpus, struct test_random *random,
                        size_t max_len, struct kinf__buffer *out)
{
    size_t n_mutations = 1 + test_random_below(random, N_MUTATIONS_MAX);
    struct kinf_str text;

    do {
        text = corpus->texts[test_random_below(random, corpus->n_texts)];
    } while (text.len > max_len);
    out->len = 0;
    if (kinf__buffer_append_str(out, text) < 0)
        die("out of memory");
    for (size_t i = 0; i < n_mutations; i++)
        mutate_once(out, random);
}
