/*
 * kubeconfig as kind, minikube and people write it; lists of files; the configuration of a pod.
 */
#include "rest/kubeconfig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rest/client.h"
#include "unit/allocation.h"
#include "unit/test.h"

/* A folder for the files of one test. */
static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kinformer-test-XXXXXX");
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    unsetenv("POD_NAMESPACE");
    if (mkdtemp(folder) == NULL)
        return -1;
    return setenv("HOME", folder, 1);
}

static int remove_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static const char *write_file(const char *name, const char *text)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

static int load_config(const char *path, const char *context,
                       struct kinf__cluster_config *ret_config, struct kinf_error *err)
{
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;

    options.kubeconfig = path;
    options.context = context;
    return kinf__cluster_config_load(&options, ret_config, err);
}

static struct kinf__cluster_config load(const char *path, const char *context)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__cluster_config config;

    if (load_config(path, context, &config, &err) < 0)
        fail_msg("%s", err.message);
    return config;
}

/* Loading fails with this code, and the message has each of the words (NULL at their end). */
static void assert_refused(const char *path, const char *context, int code,
                           const char *const *words)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__cluster_config config;

    assert_int_equal(load_config(path, context, &config, &err), code);
    for (; *words != NULL; words++) {
        if (strstr(err.message, *words) == NULL)
            fail_msg("'%s' does not say '%s'", err.message, *words);
    }
    assert_null(strchr(err.message, '\n'));
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* A file with one context, whose cluster and user have these fields. */
static const char *write_fields(const char *cluster, const char *user)
{
    char text[2048];

    snprintf(text, sizeof text,
             "current-context: x\n"
             "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
             "clusters:\n- name: c\n  cluster:\n    server: https://a\n%s"
             "users:\n- name: u\n  user:\n%s",
             cluster, user);
    return write_file("config", text);
}

/* "ca", "cert" and "key" in base64. */
static const char kind_config[] = "apiVersion: v1\n"
                                  "clusters:\n"
                                  "- cluster:\n"
                                  "    certificate-authority-data: Y2E=\n"
                                  "    server: https://127.0.0.1:6443/\n"
                                  "  name: kind-kind\n"
                                  "contexts:\n"
                                  "- context:\n"
                                  "    cluster: kind-kind\n"
                                  "    user: kind-kind\n"
                                  "  name: kind-kind\n"
                                  "current-context: kind-kind\n"
                                  "kind: Config\n"
                                  "preferences: {}\n"
                                  "users:\n"
                                  "- name: kind-kind\n"
                                  "  user:\n"
                                  "    client-certificate-data: Y2VydA==\n"
                                  "    client-key-data: a2V5\n";

static void inline_data_is_decoded(void **state)
{
    struct kinf__cluster_config config = load(write_file("kind", kind_config), NULL);

    (void)state;
    assert_string_equal(config.server, "https://127.0.0.1:6443");
    assert_string_equal(config.ca_pem, "ca");
    assert_string_equal(config.client_cert_pem, "cert");
    assert_string_equal(config.client_key_pem, "key");
    assert_null(config.token);
    assert_null(config.name_space);
    assert_non_null(strstr(config.cluster_source, ", cluster kind-kind"));
    kinf__cluster_config_release(&config);
}

static void paths_are_meant_from_the_kubeconfig(void **state)
{
    struct kinf__cluster_config config;

    (void)state;
    assert_int_equal(mkdir(path_of("profiles"), 0700), 0);
    write_file("profiles/client.crt", "the cert");
    write_file("profiles/client.key", "the key");
    write_file("ca.crt", "the ca");
    config = load(
        write_file("minikube",
                   "clusters:\n- name: minikube\n  cluster:\n"
                   "    certificate-authority: ca.crt\n"
                   "    extensions:\n    - extension: {provider: minikube.sigs.k8s.io}\n"
                   "      name: cluster_info\n"
                   "    server: https://192.0.2.1:8443\n"
                   "contexts:\n- name: minikube\n  context: {cluster: minikube, user: minikube,"
                   " namespace: default}\n"
                   "current-context: minikube\n"
                   "users:\n- name: minikube\n  user: {client-certificate: "
                   "profiles/client.crt, client-key: profiles/client.key}\n"),
        NULL);
    assert_string_equal(config.ca_pem, "the ca");
    assert_string_equal(config.client_cert_pem, "the cert");
    assert_string_equal(config.client_key_pem, "the key");
    assert_string_equal(config.name_space, "default");
    kinf__cluster_config_release(&config);
}

static const char two_contexts[] =
    "clusters: [{name: c, cluster: {server: 'https://a:1', tls-server-name: other, proxy-url: "
    "'http://p:3128', "
    "insecure-skip-tls-verify: true}}]\n"
    "contexts: [{name: one, context: {cluster: c, user: t}}, {name: two, context: {cluster: c, "
    "user: f}},"
    " {name: three, context: {cluster: c, user: b}}, {name: four, context: {cluster: c}}]\n"
    "users: [{name: t, user: {token: abc}}, {name: f, user: {tokenFile: tok, token: xyz}}, {name: "
    "b, user: "
    "{username: me, password: pw}}]\n"
    "current-context: one\n";

static void a_context_chooses_cluster_and_user(void **state)
{
    const char *path = write_file("config", two_contexts);
    struct kinf__cluster_config config = load(path, NULL);

    (void)state;
    assert_string_equal(config.token, "abc");
    assert_string_equal(config.tls_server_name, "other");
    assert_string_equal(config.proxy_url, "http://p:3128");
    assert_true(config.insecure_skip_tls_verify);
    kinf__cluster_config_release(&config);
    config = load(path, "two");
    assert_string_equal(config.token_file, path_of("tok"));
    kinf__cluster_config_release(&config);
    config = load(path, "three");
    assert_string_equal(config.username, "me");
    kinf__cluster_config_release(&config);
    config = load(path, "four");
    assert_null(config.token);
    kinf__cluster_config_release(&config);
}

static void of_a_list_the_first_file_counts_entry_by_entry(void **state)
{
    struct kinf__cluster_config config;
    char list[400];

    (void)state;
    snprintf(list, sizeof list, "%s::%s:%s", path_of("missing"),
             write_file("first", "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                                 "users: [{name: u, user: {}}]\n"),
             write_file("second",
                        "clusters: [{name: c, cluster: {server: 'https://second:1'}}]\n"
                        "users: [{name: u, user: {token: not-this}}]\n"
                        "contexts: [{name: x, context: {cluster: none}}]\ncurrent-context: x\n"));
    assert_int_equal(setenv("KUBECONFIG", list, 1), 0);
    config = load(NULL, NULL);
    assert_string_equal(config.server, "https://second:1");
    assert_null(config.token);
    kinf__cluster_config_release(&config);
}

/* Context, cluster and user each stand in a file of their own. */
static void of_several_files_the_right_one_is_named(void **state)
{
    static const struct {
        const char *context, *cluster, *user;
        size_t wrong; /* which of the three files is to be blamed */
        const char *word;
    } rows[] = {
        { "{cluster: none, user: u}", "{server: 'https://a'}", "{}", 0, "cluster 'none'" },
        { "{cluster: c, user: none}", "{server: 'https://a'}", "{}", 0, "user 'none'" },
        { "{cluster: c, user: u}", "{server: 'ftp://a'}", "{}", 1, "no https://" },
        { "{cluster: c, user: u}", "{server: 'https://a', certificate-authority-data: Y2E=}", "{}",
          1, "certificate authority cannot be read" },
        { "{cluster: c, user: u}", "{server: 'https://a'}", "{client-certificate-data: Y2E=}", 2,
          "go together" },
        { "{cluster: c, user: u}", "{server: 'https://a'}",
          "{client-certificate-data: Y2E=, client-key-data: Y2E=}", 2,
          "client certificate cannot be read" },
    };
    static const char *const names[] = { "contexts", "clusters", "users" };
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct kinf_client *client = NULL;
        char texts[3][256], list[400] = "";

        snprintf(texts[0], sizeof texts[0], "contexts: [{name: x, context: %s}]\n",
                 rows[i].context);
        snprintf(texts[1], sizeof texts[1], "clusters: [{name: c, cluster: %s}]\n",
                 rows[i].cluster);
        snprintf(texts[2], sizeof texts[2], "current-context: x\nusers: [{name: u, user: %s}]\n",
                 rows[i].user);
        for (size_t k = 0; k < 3; k++)
            snprintf(list + strlen(list), sizeof list - strlen(list),
                     "%s:", write_file(names[k], texts[k]));
        assert_int_equal(setenv("KUBECONFIG", list, 1), 0);
        assert_true(kinf_client_new(&options, &client, &err) < 0);
        if (strstr(err.message, path_of(names[rows[i].wrong])) == NULL ||
            strstr(err.message, rows[i].word) == NULL)
            fail_msg("'%s' does not name %s or '%s'", err.message, names[rows[i].wrong],
                     rows[i].word);
    }
}

static void a_current_context_that_is_none_is_blamed_on_its_file(void **state)
{
    char list[400];

    (void)state;
    snprintf(list, sizeof list, "%s:%s", write_file("contexts", "contexts: []\n"),
             write_file("current", "apiVersion: v1\ncurrent-context: gone\n"));
    assert_int_equal(setenv("KUBECONFIG", list, 1), 0);
    assert_refused(NULL, NULL, KINF_ERR_CONFIG, WORDS("/current:2:18: ", "context 'gone'"));
    assert_refused(NULL, "x", KINF_ERR_CONFIG, WORDS("/contexts and the files after it", "'x'"));
}

static void what_kubectl_reads_is_read(void **state)
{
    struct kinf__cluster_config config =
        load(write_file("config", "base: &base {server: 'https://lost', tls-server-name: n}\n"
                                  "clusters: [{name: c, cluster: {<<: *base, server: "
                                  "'https://kept'}}]\n"
                                  "contexts: [{name: x, context: {cluster: c}}]\n"
                                  "current-context: x\n"
                                  "---\ncurrent-context: [not, looked, at\n"),
             NULL);

    (void)state;
    assert_string_equal(config.server, "https://kept");
    assert_string_equal(config.tls_server_name, "n");
    kinf__cluster_config_release(&config);
}

/* As templates of others write them. */
static void yamls_other_booleans_are_read(void **state)
{
    static const struct {
        const char *text;
        bool truth;
    } rows[] = { { "True", true }, { "yes", true },  { "ON", true }, { "y", true },
                 { "No", false },  { "off", false }, { "n", false }, { "'true'", true } };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kinf__cluster_config config;
        char cluster[64], user[192];

        snprintf(cluster, sizeof cluster, "    insecure-skip-tls-verify: %s\n", rows[i].text);
        snprintf(user, sizeof user,
                 "    exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, "
                 "command: x, provideClusterInfo: %s}\n",
                 rows[i].text);
        config = load(write_fields(cluster, user), NULL);
        assert_int_equal(config.insecure_skip_tls_verify, rows[i].truth);
        assert_int_equal(config.exec->cluster_json != NULL, rows[i].truth);
        kinf__cluster_config_release(&config);
    }
}

static void the_home_folder_is_the_default(void **state)
{
    struct kinf__cluster_config config;

    (void)state;
    assert_int_equal(mkdir(path_of(".kube"), 0700), 0);
    write_file(".kube/config", two_contexts);
    config = load(NULL, NULL);
    assert_string_equal(config.token, "abc");
    kinf__cluster_config_release(&config);
}

static void a_pod_finds_its_service_account(void **state)
{
    struct kinf__cluster_config config;
    char *token_file = NULL;

    (void)state;
    assert_refused(NULL, NULL, KINF_ERR_CONFIG, WORDS("no kubeconfig", "--kubeconfig"));
    assert_int_equal(kinf__in_cluster_token_file(&token_file, NULL), 0);
    assert_null(token_file);
    kinf__in_cluster_dir = folder;
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_refused(NULL, NULL, KINF_ERR_CONFIG, WORDS("in-cluster", "token"));
    write_file("token", "t\n");
    assert_refused(NULL, NULL, KINF_ERR_CONFIG, WORDS("in-cluster", "ca.crt"));
    write_file("ca.crt", "the ca");
    write_file("namespace", "kube-system\n");
    config = load(NULL, NULL);
    assert_string_equal(config.server, "https://[fd00::1]:443");
    assert_string_equal(config.token_file, path_of("token"));
    assert_int_equal(kinf__in_cluster_token_file(&token_file, NULL), 0);
    assert_string_equal(token_file, config.token_file);
    free(token_file);
    assert_string_equal(config.ca_pem, "the ca");
    assert_string_equal(config.name_space, "kube-system");
    kinf__cluster_config_release(&config);
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    setenv("POD_NAMESPACE", "mine", 1);
    config = load(NULL, "");
    assert_string_equal(config.server, "https://10.0.0.1:443");
    assert_string_equal(config.name_space, "mine");
    kinf__cluster_config_release(&config);
}

/* As upstream, but a file that is named has to be one. */
static void an_empty_kubeconfig_is_none_in_a_pod(void **state)
{
    static const char *const empty[] = {
        "", "---\n", "{}\n", "apiVersion: v1\nkind: Config\npreferences: {}\n",
        "clusters: []\ncontexts: null\nusers: []\ncurrent-context: \"\"\n"
    };
    static const char *const others[] = { "users: [{name: u}]\n",
                                          "contexts: [{name: x}]\n",
                                          "clusters: [{name: c}]\n",
                                          "current-context: x\n",
                                          "hello\n",
                                          "[a]\n" };
    struct kinf__cluster_config config;
    char list[300];

    (void)state;
    write_file("token", "t");
    write_file("ca.crt", "the ca");
    kinf__in_cluster_dir = folder;
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    snprintf(list, sizeof list, "/dev/null:%s", path_of("config"));
    setenv("KUBECONFIG", list, 1);
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        const char *path = write_file("config", empty[i]);

        config = load(NULL, NULL);
        assert_string_equal(config.server, "https://10.0.0.1:443");
        assert_string_equal(config.cluster_source, "in-cluster");
        kinf__cluster_config_release(&config);
        assert_refused(path, NULL, KINF_ERR_CONFIG, WORDS(path, "no contexts"));
        assert_refused(NULL, "x", KINF_ERR_CONFIG, WORDS("/dev/null", "context 'x'"));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        write_file("config", others[i]);
        assert_refused(NULL, NULL, KINF_ERR_CONFIG, WORDS("context"));
    }
    write_file("config", "");
    assert_int_equal(unlink(path_of("token")), 0);
    assert_refused(NULL, NULL, KINF_ERR_CONFIG, WORDS("/dev/null", "no contexts"));
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *text;
        int code;
        const char *words[3];
    } rows[] = {
        { "", KINF_ERR_CONFIG, { "current-context" } },
        { "current-context: gone\n", KINF_ERR_CONFIG, { "context 'gone'" } },
        { "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n",
          KINF_ERR_CONFIG,
          { "cluster 'c'" } },
        { "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
          "clusters: [{name: c, cluster: {server: 'https://a'}}]\n",
          KINF_ERR_CONFIG,
          { "user 'u'" } },
        { "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, "
          "cluster: {}}]\n",
          KINF_ERR_CONFIG,
          { ":3:", "no server" } },
        { "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
          "clusters: [{name: c, cluster: {server: s, certificate-authority-data: '#'}}]\n",
          KINF_ERR_CONFIG,
          { ":3:", "certificate-authority-data", "base64" } },
        { "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
          "clusters: [{name: c, cluster: {server: s, certificate-authority: nofile}}]\n",
          KINF_ERR_CONFIG,
          { "certificate-authority", "nofile" } },
        { "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
          "clusters: [{name: c, cluster: {server: s, certificate-authority-data: Y2E=, "
          "insecure-skip-tls-verify: "
          "true}}]\n",
          KINF_ERR_CONFIG,
          { "insecure-skip-tls-verify" } },
        { "current-context: [x]\n", KINF_ERR_CONFIG, { ":1:18" } },
        { "clusters: {\n", KINF_ERR_PARSE, { "kubeconfig" } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = write_file("config", rows[i].text);
        const char *const words[] = { path, rows[i].words[0],
                                      rows[i].words[1] != NULL ? rows[i].words[1] : path,
                                      rows[i].words[2] != NULL ? rows[i].words[2] : path, NULL };

        assert_refused(path, NULL, rows[i].code, words);
    }
    assert_refused(path_of("absent"), NULL, KINF_ERR_CONFIG, WORDS("absent", "No such file"));
    assert_refused(folder, NULL, KINF_ERR_CONFIG, WORDS(folder, "Is a directory"));
}

static void base64_may_be_a_block_of_lines(void **state)
{
    struct kinf__cluster_config config = load(
        write_fields("    certificate-authority-data: |\n      Y2\n      Vy\n      dA==\n", ""),
        NULL);

    (void)state;
    assert_string_equal(config.ca_pem, "cert");
    kinf__cluster_config_release(&config);
}

static void what_is_no_base64_of_a_text_is_named(void **state)
{
    static const char *const texts[] = { "Y2E",    "Y2E==",    "=",        "====", "Y===",
                                         "Y2=E",   "Y=E=",     "Y2E=Y2E=", "Y2_-", "YQBh",
                                         "'####'", "Y2VydA= ", "AAAA" };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char fields[128];
        const char *path;

        snprintf(fields, sizeof fields, "    client-certificate-data: %s\n", texts[i]);
        path = write_fields("", fields);
        assert_refused(path, NULL, KINF_ERR_CONFIG,
                       WORDS(path, ":10:30", "client-certificate-data"));
    }
}

/* "#..." is a comment then, and the system's authorities would be trusted instead. */
static void an_authority_without_a_value_is_refused(void **state)
{
    struct kinf__cluster_config config;
    const char *path = write_fields("    certificate-authority-data: #Y2E=\n", "");

    (void)state;
    assert_refused(path, NULL, KINF_ERR_CONFIG, WORDS(path, ":7:5", "certificate-authority-data"));
    config = load(write_fields("    certificate-authority-data: null\n", ""), NULL);
    assert_null(config.ca_pem);
    kinf__cluster_config_release(&config);
}

/* As kubectl: the fields are those of "user", not of the entry around it. */
static void fields_at_the_wrong_depth_are_ignored(void **state)
{
    struct kinf__cluster_config config = load(write_fields("", "  token: t\n"), NULL);

    (void)state;
    assert_null(config.token);
    kinf__cluster_config_release(&config);
}

static void a_name_twice_in_one_file_is_refused(void **state)
{
    const char *path = write_file("config", "current-context: x\n"
                                            "contexts:\n"
                                            "- {name: x, context: {cluster: c}}\n"
                                            "- {name: y, context: {cluster: c}}\n"
                                            "- {name: x, context: {cluster: d}}\n");

    (void)state;
    assert_refused(path, NULL, KINF_ERR_CONFIG, WORDS(path, ":5:3", "second context 'x'"));
}

static void impersonation_becomes_headers(void **state)
{
    static const char *const lines[] = {
        "Impersonate-User: jane",          "Impersonate-Uid: 7",
        "Impersonate-Group: devs",         "Impersonate-Group: ops team",
        "Impersonate-Extra-scopes: view",  "Impersonate-Extra-scopes: edit",
        "Impersonate-Extra-a%2Fb%25: c:d",
    };
    struct kinf__cluster_config config =
        load(write_fields("", "    token: t\n    as: jane\n    as-uid: 7\n"
                              "    as-groups: [devs, ops team]\n"
                              "    as-user-extra: {scopes: [view, edit], 'a/b%': ['c:d']}\n"),
             NULL);

    (void)state;
    assert_int_equal(config.impersonation.n_items, sizeof lines / sizeof *lines);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_string_equal(config.impersonation.items[i], lines[i]);
    kinf__cluster_config_release(&config);
}

/* What user or cluster has, and what is said about it. */
static void fields_that_cannot_be_meant_are_named(void **state)
{
    static const struct {
        const char *cluster, *user;
        int code;
        const char *words[2];
    } rows[] = {
        { "", "    auth-provider: {name: gcp}\n", KINF_ERR_UNSUPPORTED, { "user 'u'", "exec" } },
        { "", "    as-uid: '0'\n", KINF_ERR_CONFIG, { "user 'u'", "need 'as'" } },
        { "", "    as-groups: [a]\n", KINF_ERR_CONFIG, { "user 'u'", "need 'as'" } },
        { "", "    as-user-extra: {a: [b]}\n", KINF_ERR_CONFIG, { "user 'u'", "need 'as'" } },
        { "", "    as: [a]\n", KINF_ERR_CONFIG, { ":10:9", "a text of one line" } },
        { "", "    as: \"a\\nX: y\"\n", KINF_ERR_CONFIG, { ":10:9", "a text of one line" } },
        { "", "    as: a\n    as-groups: b\n", KINF_ERR_CONFIG, { ":11:16", "a list of texts" } },
        { "", "    as: a\n    as-user-extra: {k: v}\n", KINF_ERR_CONFIG, { ":11:24", "list" } },
        { "    proxy-url: ftp://a\n", "", KINF_ERR_CONFIG, { ":7:16", "socks5://" } },
        { "    proxy-url: a:3128\n", "", KINF_ERR_CONFIG, { ":7:16", "proxy-url" } },
        { "    proxy-url: http://a:port\n", "", KINF_ERR_CONFIG, { ":7:16", "no URL" } },
        { "    proxy-url: http://me:pa/ss@a:3128\n", "", KINF_ERR_CONFIG, { ":7:16", "%2F" } },
        { "    proxy-url: http://me:1/2@a:3128\n", "", KINF_ERR_CONFIG, { ":7:16", "%2F" } },
        { "", "    username: u\n    token: t\n", KINF_ERR_CONFIG, { "exclude each other", "u" } },
        { "",
          "    exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}\n",
          KINF_ERR_CONFIG,
          { ":10:11", "no command" } },
        { "", "    exec: {command: a}\n", KINF_ERR_CONFIG, { ":10:11", "apiVersion" } },
        { "",
          "    exec: {command: a, apiVersion: client.authentication.k8s.io/v1alpha1}\n",
          KINF_ERR_CONFIG,
          { ":10:11", "apiVersion" } },
        { "",
          "    exec: {command: a, apiVersion: client.authentication.k8s.io/v1}\n",
          KINF_ERR_CONFIG,
          { "interactiveMode", "v1 needs it" } },
        { "",
          "    exec: {command: a, apiVersion: client.authentication.k8s.io/v1beta1, "
          "interactiveMode: Perhaps}\n",
          KINF_ERR_CONFIG,
          { "interactiveMode", "IfAvailable" } },
        { "",
          "    exec: {command: a, apiVersion: client.authentication.k8s.io/v1, interactiveMode: "
          "Always}\n",
          KINF_ERR_UNSUPPORTED,
          { "plugin a wants a terminal", "Always" } },
        { "",
          "    exec: {command: a, apiVersion: client.authentication.k8s.io/v1beta1, env: [{value: "
          "v}]}\n",
          KINF_ERR_CONFIG,
          { "env has a name", "'='" } },
        { "",
          "    exec: {command: a, apiVersion: client.authentication.k8s.io/v1beta1, args: [[]]}\n",
          KINF_ERR_CONFIG,
          { "args is a list of texts", "exec" } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = write_fields(rows[i].cluster, rows[i].user);

        assert_refused(path, NULL, rows[i].code, WORDS(path, rows[i].words[0], rows[i].words[1]));
    }
}

static void a_proxy_may_have_an_escaped_password(void **state)
{
    static const char *const proxies[] = { "http://p", "https://me:p%2Fw%40@p.example:3128/",
                                           "socks5h://me@[fd00::1]:1080" };

    (void)state;
    for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++) {
        struct kinf__cluster_config config;
        char cluster[128];

        snprintf(cluster, sizeof cluster, "    proxy-url: '%s'\n", proxies[i]);
        config = load(write_fields(cluster, ""), NULL);
        assert_string_equal(config.proxy_url, proxies[i]);
        kinf__cluster_config_release(&config);
    }
}

static void a_plugin_is_read_with_its_arguments(void **state)
{
    struct kinf__cluster_config config = load(
        write_fields("    proxy-url: socks5://p:1\n    tls-server-name: other\n"
                     "    certificate-authority-data: Y2E=\n    extensions:\n"
                     "    - {name: other, extension: {x: y}}\n"
                     "    - name: client.authentication.k8s.io/exec\n"
                     "      extension: {audience: 'a\"b', of: [1, -2.5, '3', 0x1, ~, true, Yes,"
                     " off, 'yes', yEs], on: 1}\n",
                     "    exec:\n      apiVersion: client.authentication.k8s.io/v1\n"
                     "      interactiveMode: IfAvailable\n      command: bin/plugin\n"
                     "      args: [token, --cluster, c]\n"
                     "      env: [{name: A, value: b=c}, {name: EMPTY}]\n"
                     "      installHint: ask someone\n      provideClusterInfo: true\n"),
        NULL);

    (void)state;
    assert_non_null(config.exec);
    assert_int_equal(config.exec->version, KINF__EXEC_V1);
    assert_string_equal(config.exec->command, path_of("bin/plugin"));
    assert_int_equal(config.exec->args.n_items, 3);
    assert_string_equal(config.exec->args.items[2], "c");
    assert_null(config.exec->args.items[3]);
    assert_int_equal(config.exec->env.n_items, 2);
    assert_string_equal(config.exec->env.items[0], "A=b=c");
    assert_string_equal(config.exec->env.items[1], "EMPTY=");
    assert_string_equal(config.exec->install_hint, "ask someone");
    assert_string_equal(
        config.exec->cluster_json,
        "{\"server\":\"https://a\",\"tls-server-name\":\"other\","
        "\"certificate-authority-data\":\"Y2E=\","
        "\"proxy-url\":\"socks5://p:1\",\"config\":{\"audience\":\"a\\\"b\","
        "\"of\":[1,-2.5,\"3\",\"0x1\",null,true,true,false,\"yes\",\"yEs\"],\"true\":1}}");
    kinf__cluster_config_release(&config);
}

static void a_plugin_without_a_slash_is_left_to_path(void **state)
{
    struct kinf__cluster_config config =
        load(write_fields("", "    exec: {command: aws, apiVersion: "
                              "client.authentication.k8s.io/v1beta1}\n"),
             NULL);

    (void)state;
    assert_string_equal(config.exec->command, "aws");
    assert_int_equal(config.exec->version, KINF__EXEC_V1BETA1);
    assert_null(config.exec->cluster_json);
    kinf__cluster_config_release(&config);
}

static void whoever_has_a_credential_needs_no_plugin(void **state)
{
    static const char *const users[] = {
        "    token: t\n", "    username: u\n",
        "    client-certificate-data: Y2E=\n    client-key-data: Y2E=\n"
    };

    (void)state;
    for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
        struct kinf__cluster_config config;
        char text[256];

        snprintf(text, sizeof text,
                 "%s    exec: {command: a, apiVersion: client.authentication.k8s.io/v1, "
                 "interactiveMode: Always}\n",
                 users[i]);
        config = load(write_fields("", text), NULL);
        assert_null(config.exec);
        kinf__cluster_config_release(&config);
    }
}

/* One option each over a configuration that has it all. */
static void options_go_over_the_kubeconfig(void **state)
{
    static const struct kinf_client_options none = KINF_CLIENT_OPTIONS_INIT;
    struct kinf_client_options options = none;
    struct kinf__cluster_config config;
    const char *path, *other;

    (void)state;
    write_file("f", "in file");
    other = write_file("g", "other");
    path = write_file("config", "current-context: x\n"
                                "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                                "clusters:\n- {name: c, cluster: {server: 'https://a', "
                                "certificate-authority: f, tls-server-name: n}}\n"
                                "- {name: d, cluster: {server: 'https://d', "
                                "insecure-skip-tls-verify: true}}\n"
                                "users:\n- {name: u, user: {client-certificate: f, client-key: "
                                "f, tokenFile: f}}\n"
                                "- {name: v, user: {exec: {command: a, apiVersion: "
                                "client.authentication.k8s.io/v1beta1}}}\n");
#define LOADED(member, value)                                                                      \
    options = none;                                                                                \
    options.kubeconfig = path;                                                                     \
    options.member = value;                                                                        \
    assert_int_equal(kinf__cluster_config_load(&options, &config, NULL), 0)
    LOADED(cluster, "d");
    assert_string_equal(config.server, "https://d");
    assert_string_equal(config.token_file, path_of("f"));
    kinf__cluster_config_release(&config);
    LOADED(user, "v");
    assert_string_equal(config.server, "https://a");
    assert_non_null(config.exec);
    assert_null(config.client_cert_pem);
    kinf__cluster_config_release(&config);
    LOADED(name_space, "ns");
    assert_string_equal(config.name_space, "ns");
    kinf__cluster_config_release(&config);
    LOADED(server, "https://b/");
    assert_string_equal(config.server, "https://b");
    assert_null(config.tls_server_name);
    assert_string_equal(config.ca_pem, "in file");
    kinf__cluster_config_release(&config);
    LOADED(tls_server_name, "m");
    assert_string_equal(config.tls_server_name, "m");
    kinf__cluster_config_release(&config);
    LOADED(certificate_authority, other);
    assert_string_equal(config.ca_pem, "other");
    assert_string_equal(config.ca_file, other);
    kinf__cluster_config_release(&config);
    LOADED(insecure_skip_tls_verify, true);
    assert_true(config.insecure_skip_tls_verify);
    assert_null(config.ca_pem);
    assert_null(config.ca_file);
    kinf__cluster_config_release(&config);
    LOADED(client_certificate, other);
    assert_string_equal(config.client_cert_pem, "other");
    assert_string_equal(config.client_key_pem, "in file");
    kinf__cluster_config_release(&config);
    LOADED(client_key, other);
    assert_string_equal(config.client_key_pem, "other");
    kinf__cluster_config_release(&config);
    LOADED(token, "t");
    assert_string_equal(config.token, "t");
    assert_null(config.token_file);
    assert_non_null(config.client_cert_pem);
    kinf__cluster_config_release(&config);
    options.user = "v";
    assert_int_equal(kinf__cluster_config_load(&options, &config, NULL), 0);
    assert_null(config.exec);
    kinf__cluster_config_release(&config);
    options.cluster = "d";
    options.certificate_authority = other;
    assert_int_equal(kinf__cluster_config_load(&options, &config, NULL), 0);
    assert_false(config.insecure_skip_tls_verify);
    kinf__cluster_config_release(&config);
#undef LOADED
}

static void options_that_cannot_be_meant_are_named(void **state)
{
    static const struct {
        struct kinf_client_options options;
        const char *word;
    } rows[] = {
        { { .cluster = "gone" }, "no cluster 'gone'" },
        { { .user = "gone" }, "no user 'gone'" },
        { { .token = "s3cret s3cret" }, "token has a blank" },
        { { .client_key = "nofile" }, "client_key: cannot read nofile" },
        { { .certificate_authority = "f", .insecure_skip_tls_verify = true }, "exclude" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kinf_client_options options = rows[i].options;
        struct kinf__cluster_config config;
        struct kinf_error err = KINF_ERROR_INIT;

        options.kubeconfig = write_file("config", two_contexts);
        assert_int_equal(kinf__cluster_config_load(&options, &config, &err), KINF_ERR_CONFIG);
        if (strstr(err.message, rows[i].word) == NULL || strstr(err.message, "s3cret") != NULL)
            fail_msg("%s", err.message);
    }
}

static void a_file_named_twice_counts_once(void **state)
{
    struct kinf__cluster_config config;
    char list[8000];
    size_t len = 0;
    const char *path = write_file("config", two_contexts);

    (void)state;
    for (size_t i = 0; i < 40; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s:", path);
    assert_int_equal(setenv("KUBECONFIG", list, 1), 0);
    config = load(NULL, NULL);
    assert_string_equal(config.token, "abc");
    kinf__cluster_config_release(&config);
}

/* The program may leave the folder that the name was meant from. */
static void paths_of_a_file_without_a_folder_are_absolute(void **state)
{
    struct kinf__cluster_config config;
    char before[4096];

    (void)state;
    write_fields("", "    tokenFile: tok\n    token: t\n");
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    config = load("config", NULL);
    assert_int_equal(chdir(before), 0);
    assert_string_equal(config.token_file, path_of("tok"));
    kinf__cluster_config_release(&config);
}

static void files_are_remembered_and_inline_data_wins(void **state)
{
    struct kinf__cluster_config config;

    (void)state;
    write_file("f", "in file");
    config = load(write_fields("    certificate-authority: f\n",
                               "    client-certificate: f\n    client-key: f\n"
                               "    client-key-data: Y2E=\n"),
                  NULL);
    assert_string_equal(config.ca_file, path_of("f"));
    assert_string_equal(config.client_cert_file, path_of("f"));
    assert_string_equal(config.client_cert_pem, "in file");
    assert_null(config.client_key_file);
    assert_string_equal(config.client_key_pem, "ca");
    kinf__cluster_config_release(&config);
}

static void a_token_file_that_is_missing_needs_a_token(void **state)
{
    struct kinf__cluster_config config;
    const char *path = write_fields("", "    tokenFile: nofile\n");

    (void)state;
    assert_refused(path, NULL, KINF_ERR_CONFIG, WORDS(path, "tokenFile", "nofile", "No such file"));
    config = load(write_fields("", "    tokenFile: nofile\n    token: t\n"), NULL);
    assert_string_equal(config.token, "t");
    kinf__cluster_config_release(&config);
}

static void no_message_tells_a_secret(void **state)
{
    static const struct {
        const char *cluster, *user;
    } rows[] = {
        { "", "    token: \"s3cret\\nX-Header: y\"\n" },
        { "", "    token: |\n      s3cret\n" },
        { "", "    token: s3cret\n    username: s3cret\n    password: s3cret\n" },
        { "", "    token: [s3cret]\n" },
        { "", "    password: {a: s3cret}\n" },
        { "", "    s3cret\n" },
        { "", "    client-key-data: s3cret\n" },
        { "    proxy-url: ftp://me:s3cret@proxy:3128\n", "" },
        { "    proxy-url: http://me:s3cret/word@proxy:3128\n", "" },
        { "    proxy-url: https://me:1?s3cret@proxy:3128\n", "" },
        { "    proxy-url: socks5://me:1#s3cret@proxy:3128\n", "" },
    };
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__cluster_config config;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = write_fields(rows[i].cluster, rows[i].user);

        assert_int_equal(load_config(path, NULL, &config, &err), KINF_ERR_CONFIG);
        assert_non_null(strstr(err.message, path));
        assert_null(strstr(err.message, "s3cret"));
        assert_null(strchr(err.message, '\n'));
    }
}

static void an_address_has_no_password_and_one_line(void **state)
{
    static const char *const servers[] = { "https://u:s3cret@a", "\"https://a\\nb\"",
                                           "'https://a b'", "\"https://a\\x7f\"" };

    (void)state;
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct kinf__cluster_config config;
        char text[256];

        snprintf(text, sizeof text,
                 "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
                 "clusters: [{name: c, cluster: {server: %s}}]\n",
                 servers[i]);
        assert_int_equal(load_config(write_file("config", text), NULL, &config, &err),
                         KINF_ERR_CONFIG);
        assert_non_null(strstr(err.message, ":3:"));
        assert_non_null(strstr(err.message, "server"));
        assert_null(strstr(err.message, "s3cret"));
        assert_null(strchr(err.message, '\n'));
    }
}

static void a_file_without_contexts_is_no_kubeconfig(void **state)
{
    static const char *const texts[] = { "", "hello\n", "[a]\n", "kind: Config\n", "contexts:\n" };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *path = write_file("config", texts[i]);

        assert_refused(path, NULL, KINF_ERR_CONFIG, WORDS(path, "no contexts"));
        assert_refused(path, "x", KINF_ERR_CONFIG, WORDS(path, "context 'x'"));
    }
}

static void a_context_needs_a_kubeconfig_even_in_a_pod(void **state)
{
    (void)state;
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_refused(NULL, "x", KINF_ERR_CONFIG, WORDS("context 'x'", "--kubeconfig"));
}

static void so_do_a_cluster_and_a_user(void **state)
{
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    struct kinf__cluster_config config;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    options.user = "me";
    assert_int_equal(kinf__cluster_config_load(&options, &config, &err), KINF_ERR_CONFIG);
    assert_non_null(strstr(err.message, "have a user 'me';"));
    options.cluster = "here";
    assert_int_equal(kinf__cluster_config_load(&options, &config, &err), KINF_ERR_CONFIG);
    assert_non_null(strstr(err.message, "have a cluster 'here';"));
}

static void extensions_of_others_are_not_told_to_a_plugin(void **state)
{
    static const char *const extensions[] = { "[{name: other, extension: 1}, {extension: 2}]", "[]",
                                              "{name: client.authentication.k8s.io/exec}", "x" };

    (void)state;
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        struct kinf__cluster_config config;
        char cluster[128];

        snprintf(cluster, sizeof cluster, "    extensions: %s\n", extensions[i]);
        config =
            load(write_fields(cluster,
                              "    exec: {apiVersion: client.authentication.k8s.io/v1, "
                              "interactiveMode: Never, command: x, provideClusterInfo: true}\n"),
                 NULL);
        assert_string_equal(config.exec->cluster_json, "{\"server\":\"https://a\"}");
        kinf__cluster_config_release(&config);
    }
}

static void out_of_memory_is_an_ordinary_error(void **state)
{
    const char *path = write_fields(
        "    certificate-authority-data: Y2E=\n    proxy-url: socks5://p\n    extensions: [{name: "
        "client.authentication.k8s.io/exec, extension: {a: [b, 1]}}]\n",
        "    as: a\n    as-groups: [b]\n    as-user-extra: {c: [d]}\n    exec: {command: x/y, "
        "apiVersion: client.authentication.k8s.io/v1beta1, args: [a], env: [{name: a, value: b}], "
        "provideClusterInfo: true, installHint: i}\n");
    bool did_fail = true;

    (void)state;
    for (size_t n = 1; did_fail; n++) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct kinf__cluster_config config;
        int failed;

        test_fail_allocation(n);
        failed = load_config(path, NULL, &config, &err);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
        if (failed == 0)
            kinf__cluster_config_release(&config);
    }
}

/* --- the client that stands on it --- */

static void a_server_that_requests_cannot_follow_is_refused(void **state)
{
    static const char *const rows[][2] = {
        { "https://a.example?x=y", "'https://a.example?x=y' has '?' or '#' in it" },
        { "https://a.example#x", "has '?' or '#' in it" },
        { "https://a.example:99999999", "is no https://" },
        { "a.example:6443", "is no https://" },
    };
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_client *client = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];

        snprintf(text, sizeof text,
                 "clusters: [{name: c, cluster: {server: '%s'}}]\ncurrent-context: x\n"
                 "contexts: [{name: x, context: {cluster: c}}]\n",
                 rows[i][0]);
        options.kubeconfig = write_file("config", text);
        assert_int_equal(kinf_client_new(&options, &client, &err), KINF_ERR_CONFIG);
        if (strstr(err.message, rows[i][1]) == NULL)
            fail_msg("%s", err.message);
    }
}

static void a_pod_without_memory_is_an_ordinary_error(void **state)
{
    bool did_fail = true;

    (void)state;
    write_file("ca.crt", "the ca");
    write_file("token", "t");
    write_file("namespace", "ns");
    kinf__in_cluster_dir = folder;
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    for (size_t n = 1; did_fail; n++) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct kinf__cluster_config config;
        int failed;

        test_fail_allocation(n);
        failed = load_config(NULL, NULL, &config, &err);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
        if (failed == 0)
            kinf__cluster_config_release(&config);
    }
}

static void certificates_are_checked_before_they_are_used(void **state)
{
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_client *client = NULL;

    (void)state;
    options.kubeconfig = write_file("config", kind_config);
    assert_int_equal(kinf_client_new(&options, &client, &err), KINF_ERR_TLS);
    assert_non_null(strstr(err.message, "certificate authority"));
    options.kubeconfig =
        write_file("config", "clusters: [{name: c, cluster: {server: 'ftp://a'}}]\n"
                             "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n");
    assert_int_equal(kinf_client_new(&options, &client, &err), KINF_ERR_CONFIG);
    assert_non_null(strstr(err.message, "ftp://a"));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(inline_data_is_decoded),
        IN_FOLDER(paths_are_meant_from_the_kubeconfig),
        IN_FOLDER(a_context_chooses_cluster_and_user),
        IN_FOLDER(of_several_files_the_right_one_is_named),
        IN_FOLDER(a_current_context_that_is_none_is_blamed_on_its_file),
        IN_FOLDER(what_kubectl_reads_is_read),
        IN_FOLDER(yamls_other_booleans_are_read),
        IN_FOLDER(of_a_list_the_first_file_counts_entry_by_entry),
        IN_FOLDER(the_home_folder_is_the_default),
        IN_FOLDER(a_pod_finds_its_service_account),
        IN_FOLDER(an_empty_kubeconfig_is_none_in_a_pod),
        IN_FOLDER(what_is_wrong_is_named),
        IN_FOLDER(base64_may_be_a_block_of_lines),
        IN_FOLDER(what_is_no_base64_of_a_text_is_named),
        IN_FOLDER(extensions_of_others_are_not_told_to_a_plugin),
        IN_FOLDER(an_authority_without_a_value_is_refused),
        IN_FOLDER(fields_at_the_wrong_depth_are_ignored),
        IN_FOLDER(a_name_twice_in_one_file_is_refused),
        IN_FOLDER(impersonation_becomes_headers),
        IN_FOLDER(fields_that_cannot_be_meant_are_named),
        IN_FOLDER(a_proxy_may_have_an_escaped_password),
        IN_FOLDER(a_plugin_is_read_with_its_arguments),
        IN_FOLDER(a_plugin_without_a_slash_is_left_to_path),
        IN_FOLDER(whoever_has_a_credential_needs_no_plugin),
        IN_FOLDER(options_go_over_the_kubeconfig),
        IN_FOLDER(options_that_cannot_be_meant_are_named),
        IN_FOLDER(a_file_named_twice_counts_once),
        IN_FOLDER(paths_of_a_file_without_a_folder_are_absolute),
        IN_FOLDER(files_are_remembered_and_inline_data_wins),
        IN_FOLDER(a_token_file_that_is_missing_needs_a_token),
        IN_FOLDER(no_message_tells_a_secret),
        IN_FOLDER(an_address_has_no_password_and_one_line),
        IN_FOLDER(a_file_without_contexts_is_no_kubeconfig),
        IN_FOLDER(a_context_needs_a_kubeconfig_even_in_a_pod),
        IN_FOLDER(so_do_a_cluster_and_a_user),
        IN_FOLDER(out_of_memory_is_an_ordinary_error),
        IN_FOLDER(a_server_that_requests_cannot_follow_is_refused),
        IN_FOLDER(a_pod_without_memory_is_an_ordinary_error),
        IN_FOLDER(certificates_are_checked_before_they_are_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
