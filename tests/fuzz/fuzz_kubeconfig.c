/*
 * kubeconfig files: YAML from anywhere.
 * What is accepted is complete; what is not leaves nothing behind.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "rest/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    struct kinf__cluster_config config;
    struct kinf_error err = KINF_ERROR_INIT;
    char path[64];
    int fd = memfd_create("kubeconfig", MFD_CLOEXEC);

    FUZZ_REQUIRE(fd >= 0);
    FUZZ_REQUIRE(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    options.kubeconfig = path;
    if (kinf__cluster_config_load(&options, &config, &err) == 0) {
        FUZZ_REQUIRE(config.server != NULL && config.server[0] != '\0');
        FUZZ_REQUIRE(config.cluster_source != NULL);
        kinf__cluster_config_release(&config);
    } else {
        FUZZ_REQUIRE(err.message[0] != '\0');
    }
    close(fd);
    return 0;
}
