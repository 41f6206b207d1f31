// The library from C++: what is special are initializers, cleanup attributes and callbacks.
#include <kinformer/kinformer.h>

#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char **argv)
{
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_client struct kinf_client *client = nullptr;
    kinf_auto_informer struct kinf_informer *informer = nullptr;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    std::vector<std::string> told;

    options.resource = argc > 1 ? argv[1] : "namespaces";
    options.handler.on_change = [](const kinf_object *, const kinf_object *object, void *ctx) {
        if (object != nullptr)
            static_cast<std::vector<std::string> *>(ctx)->push_back(kinf_object_name(object));
    };
    options.handler.ctx = &told;
    if (kinf_client_new(nullptr, &client, &err) < 0 ||
        kinf_informer_new(client, &options, &informer, &err) < 0 ||
        kinf_informer_start(informer, &err) < 0 ||
        kinf_informer_wait_synced(informer, 60000, &err) < 0 ||
        kinf_indexer_list(kinf_informer_indexer(informer), &list, &err) < 0 ||
        kinf_informer_stop(informer, &err) < 0) {
        std::fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (size_t i = 0; i < list.n_items; i++)
        std::printf("%s\n", kinf_object_name(list.items[i]));
    return told.size() <= list.n_items ? 0 : 1;
}
