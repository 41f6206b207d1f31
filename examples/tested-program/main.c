/*
 * A test of a program that watches pods, without a cluster: kinformer/testing.h is the API server.
 * It takes a fraction of a second, also where it waits for a backoff of a minute.
 *
 *     cc main.c counter.c $(pkg-config --cflags --libs kinformer-testing) -o test
 */
#include <stdio.h>
#include <stdlib.h>

#include <kinformer/testing.h>

#include "counter.h"

static void check(int failed, const struct kinf_error *err, const char *what)
{
    if (failed == 0)
        return;
    fprintf(stderr, "%s: %s\n", what, err->message);
    exit(1);
}

static void expect(struct counter *counter, const char *node, size_t n_expected, const char *what)
{
    size_t n = counter_running(counter, node);

    printf("%s: %zu running on %s\n", what, n, node);
    if (n == n_expected)
        return;
    fprintf(stderr, "%s: expected %zu\n", what, n_expected);
    exit(1);
}

static void put_pod(struct kinf_fake *fake, const char *name, const char *phase)
{
    struct kinf_error err = KINF_ERROR_INIT;
    char manifest[512];

    snprintf(manifest, sizeof manifest,
             "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default}\n"
             "spec: {nodeName: node-1, containers: [{name: main, image: example.org/main:1}]}\n"
             "status: {phase: %s}\n",
             name, phase);
    check(kinf_fake_put(fake, manifest, &err), &err, name);
}

int main(void)
{
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_fake struct kinf_fake *fake = NULL;
    struct counter *counter = NULL;

    check(kinf_fake_new(NULL, &fake, &err), &err, "fake");
    put_pod(fake, "early", "Running");
    check(counter_new(kinf_fake_client(fake), &counter, &err), &err, "counter");
    expect(counter, "node-1", 1, "what was there first");

    put_pod(fake, "late", "Pending");
    check(kinf_fake_settle(fake, 5000, &err), &err, "settle");
    expect(counter, "node-1", 1, "a pod that only waits");
    put_pod(fake, "late", "Running");
    check(kinf_fake_settle(fake, 5000, &err), &err, "settle");
    expect(counter, "node-1", 2, "and runs");

    /* The watch breaks, and no new one is to be had at first: nothing may be lost. */
    check(kinf_fake_fault(fake, "watch pods 503 times=1", &err), &err, "fault");
    kinf_fake_drop(fake);
    check(kinf_fake_delete(fake, "pods", "default/early", &err), &err, "delete");
    kinf_fake_advance(fake, 120000);
    check(kinf_fake_settle(fake, 5000, &err), &err, "settle");
    expect(counter, "node-1", 1, "after an outage");

    counter_free(counter);
    return 0;
}
