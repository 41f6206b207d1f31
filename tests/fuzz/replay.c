/*
 * Runs a fuzz target over files, without libFuzzer: replay of the corpus in `make test`, and of one
 * input that failed.
 *
 *     fuzz_NAME FILE|FOLDER...
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "base/file.h"
#include "fuzz/fuzz.h"

#define MAX_BYTES (64u << 20)

static unsigned n_run;

static void run_file(const char *path)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    uint8_t *copy;

    if (kinf__file_read(path, MAX_BYTES, &text, &err) < 0) {
        fprintf(stderr, "%s: %s\n", path, err.message);
        exit(1);
    }
    copy = (uint8_t *)fuzz_text((const uint8_t *)text.bytes, text.len);
    LLVMFuzzerTestOneInput(copy, text.len);
    free(copy);
    n_run++;
}

static void run_folder(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    if (folder == NULL) {
        perror(path);
        exit(1);
    }
    while ((entry = readdir(folder)) != NULL) {
        KINF__AUTO_BUFFER name = KINF__BUFFER_INIT;

        if (entry->d_name[0] == '.')
            continue;
        FUZZ_REQUIRE(kinf__buffer_printf(&name, "%s/%s", path, entry->d_name) == 0);
        run_file(kinf__buffer_cstr(&name));
    }
    closedir(folder);
}

int main(int argc, char **argv)
{
    struct stat info;

    for (int i = 1; i < argc; i++) {
        if (stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode))
            run_folder(argv[i]);
        else
            run_file(argv[i]);
    }
    if (n_run == 0) {
        fprintf(stderr, "usage: %s FILE|FOLDER...; none had an input\n", argv[0]);
        return 2;
    }
    printf("%u inputs\n", n_run);
    return 0;
}
