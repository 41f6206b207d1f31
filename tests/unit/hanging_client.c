#include "unit/hanging_client.h"

#include <unistd.h>

#include "unit/test.h"

struct kinf_client *test_hanging_client(void)
{
    static const char text[] =
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
        "current-context: x\n"
        "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: "
        "sleep, args: ['600'], interactiveMode: Never}}}]\n";
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    char path[] = "/tmp/kinformer-test-XXXXXX";
    struct kinf_client *client;
    int fd = mkstemp(path);

    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    options.kubeconfig = path;
    assert_int_equal(kinf_client_new(&options, &client, NULL), 0);
    unlink(path);
    return client;
}
