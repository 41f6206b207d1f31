/*
 * Our side of the comparison with Go's encoding/json.
 *
 *     scan_records write FOLDER SEED N FILE   N spoiled texts out of the transcripts in FOLDER
 *     scan_records judge FILE                 '1' or '0' a record, to stdout: is it one JSON text?
 *
 * A file of records is, for each, four bytes of length (little endian) and the bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/scan.h"
#include "unit/json_corpus.h"

#define MAX_TEXT_LEN   4096
#define N_LENGTH_BYTES 4

static void write_length(size_t len, FILE *file)
{
    for (int i = 0; i < N_LENGTH_BYTES; i++)
        fputc((int)(len >> (8 * i) & 0xff), file);
}

static int write_records(const char *dir, const char *seed, const char *count, const char *path)
{
    struct test_random random = { strtoull(seed, NULL, 0) };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    FILE *file = fopen(path, "wb");
    struct json_corpus corpus;

    if (file == NULL)
        return 1;
    json_corpus_init(&corpus, dir);
    for (unsigned long long n = strtoull(count, NULL, 0); n > 0; n--) {
        json_corpus_mutate(&corpus, &random, MAX_TEXT_LEN, &text);
        write_length(text.len, file);
        fwrite(text.bytes, 1, text.len, file);
    }
    json_corpus_release(&corpus);
    return fclose(file) == 0 ? 0 : 1;
}

static int judge_records(const char *path)
{
    FILE *file = fopen(path, "rb");
    unsigned char head[N_LENGTH_BYTES];
    size_t len, end;
    char *text;
    int status = 0;

    if (file == NULL)
        return 1;
    while (status == 0 && fread(head, 1, sizeof head, file) == sizeof head) {
        len = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
        text = malloc(len > 0 ? len : 1);
        if (text == NULL || fread(text, 1, len, file) != len)
            status = 1;
        else
            putchar(
                kinf__json_scan_all((struct kinf_str){ text, len }, KINF__JSON_MAX_DEPTH, &end) == 0
                    ? '1'
                    : '0');
        free(text);
    }
    fclose(file);
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "write") == 0)
        return write_records(argv[2], argv[3], argv[4], argv[5]);
    if (argc == 3 && strcmp(argv[1], "judge") == 0)
        return judge_records(argv[2]);
    fprintf(stderr, "usage: scan_records write FOLDER SEED N FILE | judge FILE\n");
    return 2;
}
