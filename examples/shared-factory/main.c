/*
 * Parts of a program that do not know each other share what they watch: two handlers on pods and
 * one on namespaces, and listers, through one factory. There is one watch of pods and one store.
 *
 *     shared-factory [LABEL-SELECTOR]
 *
 * Prints how many pods of each namespace match the selector, then each change, until SIGTERM.
 */
#include <kinformer/kinformer.h>

#include <stdio.h>

static void print_new(const struct kinf_object *pod, bool in_initial_list, void *ctx)
{
    (void)ctx;
    if (in_initial_list)
        return;
    printf("new %s\n", kinf_object_key(pod));
    fflush(stdout);
}

static void print_gone(const struct kinf_object *pod, bool final_state_unknown, void *ctx)
{
    (void)ctx;
    printf("gone %s%s\n", kinf_object_key(pod), final_state_unknown ? " (missed)" : "");
    fflush(stdout);
}

static void print_namespace(const struct kinf_object *old, const struct kinf_object *now, void *ctx)
{
    (void)ctx;
    printf("namespace %s: %s\n", kinf_object_name(now != NULL ? now : old),
           now == NULL   ? "gone"
           : old == NULL ? "there"
                         : "changed");
    fflush(stdout);
}

/* One part of the program: cares for new pods. */
static int add_welcome(struct kinf_factory *factory, struct kinf_error *err)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *pods;

    options.resource = "pods";
    options.handler.on_add = print_new;
    return kinf_factory_informer(factory, &options, &pods, err);
}

/* Another one: cares for pods that went, and counts them. */
static int add_census(struct kinf_factory *factory, struct kinf_informer **ret_pods,
                      struct kinf_informer **ret_namespaces, struct kinf_error *err)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

    options.resource = "pods";
    options.handler.on_delete = print_gone;
    if (kinf_factory_informer(factory, &options, ret_pods, err) < 0)
        return -1;
    options.resource = "namespaces";
    options.handler = (struct kinf_handler){ .on_change = print_namespace };
    return kinf_factory_informer(factory, &options, ret_namespaces, err);
}

static int count_in(struct kinf_informer *pods, const char *name_space,
                    const struct kinf_label_selector *selector, struct kinf_error *err)
{
    struct kinf_lister lister = kinf_informer_lister(pods, name_space);
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;

    if (kinf_lister_list(&lister, selector, &list, err) < 0)
        return -1;
    printf("%s has %zu pods\n", name_space, list.n_items);
    return 0;
}

static int count_pods(struct kinf_informer *pods, struct kinf_informer *namespaces,
                      const char *label_selector, struct kinf_error *err)
{
    struct kinf_lister lister = kinf_informer_lister(namespaces, NULL);
    kinf_auto_object_list struct kinf_object_list all = KINF_OBJECT_LIST_INIT;
    struct kinf_label_selector *selector;
    int rc = 0;

    if (kinf_label_selector_parse(label_selector, &selector, err) < 0)
        return -1;
    if (kinf_lister_list(&lister, NULL, &all, err) < 0)
        rc = -1;
    for (size_t i = 0; rc == 0 && i < all.n_items; i++)
        rc = count_in(pods, kinf_object_name(all.items[i]), selector, err);
    kinf_label_selector_free(selector);
    fflush(stdout);
    return rc;
}

int main(int argc, char **argv)
{
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_client struct kinf_client *client = NULL;
    kinf_auto_factory struct kinf_factory *factory = NULL;
    struct kinf_informer *pods, *namespaces;

    kinf_log_to_stderr();
    if (kinf_client_new(NULL, &client, &err) < 0 || kinf_factory_new(client, &factory, &err) < 0 ||
        add_welcome(factory, &err) < 0 || add_census(factory, &pods, &namespaces, &err) < 0 ||
        kinf_factory_start(factory, &err) < 0 ||
        kinf_factory_wait_synced(factory, KINF_FOREVER, &err) < 0 ||
        count_pods(pods, namespaces, argc > 1 ? argv[1] : "", &err) < 0 ||
        kinf_run_until_signal(&err) < 0) {
        fprintf(stderr, "shared-factory: %s\n", err.message);
        return 1;
    }
    return 0;
}
