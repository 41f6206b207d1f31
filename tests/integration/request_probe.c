/*
 * One request of the library: its answer on standard output, or on a line "error CODE HTTP MESSAGE"
 * and status 1.
 *
 *     request-probe VERB RESOURCE NAMESPACE NAME [OPTION=VALUE]... [< BODY]
 *
 * "-" for a namespace or name is none. VERB raw: RESOURCE is the method, NAMESPACE the target.
 */
#include <kinformer/kinformer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const verbs[] = { "get",   "list",      "create", "update", "json-patch",
                                     "merge", "strategic", "apply",  "delete", "deletecollection" };

static char body[1 << 22];

static int64_t grace_s;

static const char *or_none(const char *text)
{
    return strcmp(text, "-") != 0 ? text : NULL;
}

static int set_option(struct kinf_request *request, const char *option, const char *value)
{
    if (strcmp(option, "subresource") == 0)
        request->subresource = value;
    else if (strcmp(option, "dryRun") == 0)
        request->dry_run = true;
    else if (strcmp(option, "fieldManager") == 0)
        request->field_manager = value;
    else if (strcmp(option, "fieldValidation") == 0)
        request->field_validation = value;
    else if (strcmp(option, "force") == 0)
        request->force = true;
    else if (strcmp(option, "labelSelector") == 0)
        request->label_selector = value;
    else if (strcmp(option, "limit") == 0)
        request->limit = (uint32_t)atoi(value);
    else if (strcmp(option, "continue") == 0)
        request->continue_token = value;
    else if (strcmp(option, "uid") == 0)
        request->if_uid = value;
    else if (strcmp(option, "resourceVersion") == 0)
        request->if_resource_version = value;
    else if (strcmp(option, "foreground") == 0)
        request->propagation = KINF_PROPAGATION_FOREGROUND;
    else if (strcmp(option, "grace") == 0) {
        grace_s = atoi(value);
        request->grace_period_s = &grace_s;
    } else
        return -1;
    return 0;
}

static int read_options(struct kinf_request *request, char **options)
{
    for (; *options != NULL; options++) {
        char *equals = strchr(*options, '=');

        if (equals == NULL)
            return -1;
        *equals = '\0';
        if (set_option(request, *options, equals + 1) < 0)
            return -1;
    }
    return 0;
}

static int ask(struct kinf_client *client, char **args, struct kinf_response *response,
               struct kinf_error *err)
{
    struct kinf_request request = KINF_REQUEST_INIT;
    size_t verb = 0;

    while (verb < sizeof verbs / sizeof verbs[0] && strcmp(args[0], verbs[verb]) != 0)
        verb++;
    if (verb == sizeof verbs / sizeof verbs[0] || read_options(&request, args + 4) < 0)
        exit(2);
    request.verb = (enum kinf_verb)verb;
    request.name_space = or_none(args[2]);
    request.name = or_none(args[3]);
    request.body.len = fread(body, 1, sizeof body, stdin);
    request.body.bytes = request.body.len != 0 ? body : NULL;
    if (kinf_client_find_type(client, args[1], &request.type, err) < 0)
        return -1;
    return kinf_client_request(client, &request, response, err);
}

int main(int argc, char **argv)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_str nothing = { NULL, 0 };
    kinf_auto_client struct kinf_client *client = NULL;
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    int failed;

    if (argc < 4)
        return 2;
    failed = kinf_client_new(NULL, &client, &err);
    if (failed == 0)
        failed =
            strcmp(argv[1], "raw") == 0
                ? kinf_client_request_raw(client, argv[2], argv[3], nothing, NULL, &response, &err)
                : ask(client, argv + 1, &response, &err);
    if (failed < 0) {
        printf("error %s %d %s\n", kinf_errc_to_string((enum kinf_errc)failed), err.http_status,
               err.message);
        return 1;
    }
    fwrite(response.body, 1, response.len, stdout);
    return 0;
}
