/*
 * The figures of one watch, from its stores and from the kernel's accounting of the process.
 */
#include "daemon/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"

#define FNV_OFFSET   0xcbf29ce484222325U
#define FNV_PRIME    0x100000001b3U
#define VERSION_SIZE 64

/* Everything in the stores of one watch. */
struct inventory {
    struct kinf_snapshot **snapshots;
    size_t n_snapshots;
    const struct kinf_object **objects; /* borrowed from the snapshots */
    size_t n_objects;
    size_t stored_bytes;
};

static void inventory_release(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->n_snapshots; i++)
        kinf_snapshot_unref(inventory->snapshots[i]);
    free(inventory->snapshots);
    free(inventory->objects);
}

static void collect_objects(struct inventory *inventory, const struct kinf_snapshot *snapshot)
{
    struct kinf_cursor cursor;
    const struct kinf_object *object;

    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL) {
        inventory->objects[inventory->n_objects++] = object;
        inventory->stored_bytes += kinf_object_size(object);
    }
}

static int take_inventory(struct kinf__watch *watch, struct inventory *inventory)
{
    size_t n = 0;

    inventory->snapshots = calloc(watch->n_informers, sizeof(struct kinf_snapshot *));
    if (inventory->snapshots == NULL)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < watch->n_informers; i++) {
        inventory->snapshots[i] = kinf_indexer_snapshot(kinf_informer_indexer(watch->informers[i]));
        inventory->n_snapshots++;
        n += kinf_snapshot_count(inventory->snapshots[i]);
    }
    inventory->objects = calloc(n + 1, sizeof(struct kinf_object *));
    if (inventory->objects == NULL)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < inventory->n_snapshots; i++)
        collect_objects(inventory, inventory->snapshots[i]);
    return 0;
}

/* As the lines compare: a key ends with '@' there, which is above '-' and '.'. */
static int compare_lines(const void *a, const void *b)
{
    const struct kinf_object *object_a = *(const struct kinf_object *const *)a;
    const struct kinf_object *object_b = *(const struct kinf_object *const *)b;
    const char *at_a = kinf_object_key(object_a), *at_b = kinf_object_key(object_b);
    int byte_a, byte_b;

    for (; *at_a == *at_b && *at_a != '\0'; at_b++)
        at_a++;
    byte_a = *at_a != '\0' ? (unsigned char)*at_a : '@';
    byte_b = *at_b != '\0' ? (unsigned char)*at_b : '@';
    return byte_a != byte_b ? byte_a - byte_b
                            : strcmp(kinf_object_resource_version(object_a),
                                     kinf_object_resource_version(object_b));
}

static uint64_t add_to_hash(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * FNV_PRIME;
    return hash;
}

static uint64_t checksum(struct inventory *inventory)
{
    uint64_t hash = FNV_OFFSET;

    qsort(inventory->objects, inventory->n_objects, sizeof *inventory->objects, compare_lines);
    for (size_t i = 0; i < inventory->n_objects; i++) {
        const struct kinf_object *object = inventory->objects[i];

        hash = add_to_hash(hash, kinf_object_namespace(object).len == 0 ? "/" : "");
        hash = add_to_hash(hash, kinf_object_key(object));
        hash = add_to_hash(hash, "@");
        hash = add_to_hash(hash, kinf_object_resource_version(object));
        hash = add_to_hash(hash, "\n");
    }
    return hash;
}

/* The highest version that the stores have seen; "" if they have none that can be compared. */
static void highest_version(struct kinf__watch *watch, char *highest, size_t size)
{
    *highest = '\0';
    for (size_t i = 0; i < watch->n_informers; i++) {
        char version[VERSION_SIZE];
        int order;

        if (kinf_informer_resource_version(watch->informers[i], version, sizeof version) == 0 &&
            (*highest == '\0' ||
             (kinf_rv_compare(version, highest, &order, NULL) == 0 && order > 0)))
            snprintf(highest, size, "%s", version);
    }
}

/* A "VmRSS:   123 kB" line of /proc/self/status; 0 if it is not there. */
static unsigned long memory_kb(const char *field)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    unsigned long kb = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0)
            kb = strtoul(line + strlen(field), NULL, 10);
    }
    if (file != NULL)
        fclose(file);
    return kb;
}

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static uint64_t received_bytes(struct kinf__watch *watch)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < watch->n_informers; i++) {
        struct kinf_informer_status status;

        kinf_informer_status(watch->informers[i], &status);
        sum += status.received_bytes;
    }
    return sum;
}

int kinf__measure(struct kinf__watch *watch, struct kinf__buffer *line, struct kinf_error *err)
{
    struct inventory inventory = { 0 };
    char version[VERSION_SIZE];
    double cpu = cpu_seconds();
    int failed = take_inventory(watch, &inventory);

    highest_version(watch, version, sizeof version);
    if (failed == 0) {
        failed = kinf__buffer_printf(
            line,
            "resource=%s objects=%zu sync_seconds=%.3f cpu_seconds=%.2f received_bytes=%llu "
            "stored_bytes=%zu rss_kb=%lu peak_rss_kb=%lu resource_version=%s checksum=%016llx\n",
            watch->resource, inventory.n_objects,
            (double)(atomic_load(&watch->synced_ns) - watch->started_ns) / 1e9, cpu,
            (unsigned long long)received_bytes(watch), inventory.stored_bytes, memory_kb("VmRSS:"),
            memory_kb("VmHWM:"), version, (unsigned long long)checksum(&inventory));
    }
    inventory_release(&inventory);
    return failed < 0 ? kinf__error_no_memory(err) : 0;
}
