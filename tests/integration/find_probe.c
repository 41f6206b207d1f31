/*
 * What names of resources mean: for each line on standard input "GROUP/VERSION KIND RESOURCE
 * namespaced|cluster" or "error CODE". One client for all.
 */
#include <kinformer/kinformer.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_client struct kinf_client *client = NULL;
    char line[512];

    if (kinf_client_new(NULL, &client, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        const struct kinf_type *type;
        int failed;

        line[strcspn(line, "\n")] = '\0';
        failed = kinf_client_find_type(client, line, &type, &err);
        if (failed < 0)
            printf("error %s\n", kinf_errc_to_string((enum kinf_errc)failed));
        else
            printf("%s/%s %s %s %s\n", type->group, type->version, type->kind, type->resource,
                   type->namespaced ? "namespaced" : "cluster");
        fflush(stdout);
    }
    return 0;
}
