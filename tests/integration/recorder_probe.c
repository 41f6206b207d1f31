/*
 * Records events about a config map, and ends.
 *
 *     recorder-probe NAMESPACE NAME REASON TIMES NOTE
 *
 * Prints how many were sent, dropped and failed before the end, once all were tried.
 */
#include <kinformer/kinformer.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int get(struct kinf_client *client, const char *name_space, const char *name,
               const struct kinf_object **ret_object, struct kinf_error *err)
{
    struct kinf_request request = KINF_REQUEST_INIT;
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    int rc = kinf_client_find_type(client, "configmaps", &request.type, err);

    request.name_space = name_space;
    request.name = name;
    if (rc == 0)
        rc = kinf_client_request(client, &request, &response, err);
    return rc < 0 ? rc
                  : kinf_object_new_from_json(request.type, response.body, response.len, ret_object,
                                              err);
}

/* The first, that there is a second, and the rest at the end. */
static void wait_until_told(struct kinf_recorder *recorder, unsigned times)
{
    const struct timespec pause = { 0, 5000000 };
    struct kinf_recorder_status status;

    do {
        nanosleep(&pause, NULL);
        kinf_recorder_status(recorder, &status);
    } while (status.n_sent < (times < 2 ? times : 2) && status.n_failed == 0);
    printf("%llu %llu %llu\n", (unsigned long long)status.n_sent,
           (unsigned long long)status.n_dropped, (unsigned long long)status.n_failed);
}

int main(int argc, char **argv)
{
    kinf_auto_client struct kinf_client *client = NULL;
    kinf_auto_recorder struct kinf_recorder *recorder = NULL;
    const struct kinf_object *object = NULL;
    struct kinf_recorder_options options = KINF_RECORDER_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    unsigned times;

    if (argc != 6)
        return 2;
    times = (unsigned)atoi(argv[4]);
    options.controller = "kinformer.dev/probe";
    options.instance = "probe-1";
    if (kinf_client_new(NULL, &client, &err) < 0 ||
        get(client, argv[1], argv[2], &object, &err) < 0 ||
        kinf_recorder_new(client, &options, &recorder, &err) < 0) {
        fprintf(stderr, "recorder-probe: %s\n", err.message);
        return 1;
    }
    for (unsigned i = 0; i < times; i++)
        kinf_recorder_event(recorder, object, NULL, KINF_EVENT_WARNING, argv[3], "Probe", "%s",
                            argv[5]);
    wait_until_told(recorder, times);
    kinf_object_unref(object);
    return 0;
}
