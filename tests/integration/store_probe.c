/*
 * What the library has of some namespaces, on demand: for each line on standard input it prints
 * "KEY@RESOURCEVERSION" of every object, then "end received_bytes=N told=N", where told counts what
 * a handler was told and has not been told to be gone.
 *
 *     store-probe [-m] [-l LABEL-SELECTOR] RESOURCE NAMESPACE...
 *
 * -m asks for metadata alone.
 */
#include <kinformer/kinformer.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_long n_told;

static void count(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&n_told, (old == NULL) - (object == NULL));
}

static int print_store(struct kinf_namespaces *namespaces, char **names, int n_names,
                       struct kinf_error *err)
{
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    uint64_t received_bytes = 0;

    if (kinf_namespaces_list(namespaces, NULL, &list, err) < 0)
        return -1;
    for (size_t i = 0; i < list.n_items; i++)
        printf("%s@%s\n", kinf_object_key(list.items[i]),
               kinf_object_resource_version(list.items[i]));
    for (int i = 0; i < n_names; i++) {
        struct kinf_informer_status status;

        kinf_informer_status(kinf_namespaces_informer(namespaces, names[i]), &status);
        received_bytes += status.received_bytes;
    }
    printf("end received_bytes=%" PRIu64 " told=%ld\n", received_bytes, atomic_load(&n_told));
    fflush(stdout);
    return 0;
}

static int answer(struct kinf_namespaces *namespaces, char **names, int n_names,
                  struct kinf_error *err)
{
    char line[16];

    while (fgets(line, sizeof line, stdin) != NULL) {
        if (print_store(namespaces, names, n_names, err) < 0)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_client struct kinf_client *client = NULL;
    kinf_auto_namespaces struct kinf_namespaces *namespaces = NULL;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    char **names;
    int option, n_names;

    while ((option = getopt(argc, argv, "ml:")) != -1) {
        options.metadata_only = options.metadata_only || option == 'm';
        options.label_selector = option == 'l' ? optarg : options.label_selector;
    }
    if (argc - optind < 2)
        return 2;
    options.resource = argv[optind];
    options.handler.on_change = count;
    names = argv + optind + 1;
    n_names = argc - optind - 1;
    if (kinf_client_new(NULL, &client, &err) < 0 ||
        kinf_namespaces_new(client, &options, (const char *const *)names, (size_t)n_names,
                            &namespaces, &err) < 0 ||
        kinf_namespaces_start(namespaces, &err) < 0 ||
        kinf_namespaces_wait_synced(namespaces, KINF_FOREVER, &err) < 0 ||
        answer(namespaces, names, n_names, &err) < 0) {
        fprintf(stderr, "store-probe: %s\n", err.message);
        return 1;
    }
    return 0;
}
