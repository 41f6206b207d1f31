/*
 * The hash map and its hash. Invariant: at most one node a bucket on average, buckets a power of
 * two.
 */
#include "base/hmap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <kinformer/error.h>

#define N_BUCKETS_FIRST 16

static pthread_once_t seed_once = PTHREAD_ONCE_INIT;
static uint64_t seed[2];

static void make_seed(void)
{
    struct timespec now;

    if (getrandom(seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    seed[0] = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15U;
    seed[1] = (uint64_t)getpid() ^ (uint64_t)now.tv_sec;
}

static inline uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[3];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[2] = rotate_left(v[2], 32);
}

uint64_t kinf__hash(struct kinf_str key)
{
    uint64_t v[4], word = 0;
    const char *at = key.bytes, *end = key.bytes + key.len;

    pthread_once(&seed_once, make_seed);
    v[0] = seed[0] ^ 0x736f6d6570736575U;
    v[1] = seed[1] ^ 0x646f72616e646f6dU;
    v[2] = seed[0] ^ 0x6c7967656e657261U;
    v[3] = seed[1] ^ 0x7465646279746573U;
    for (; end - at >= 8; at += 8) {
        memcpy(&word, at, sizeof word);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = (uint64_t)key.len << 56;
    for (int i = 0; at < end; at++, i += 8)
        word |= (uint64_t)(unsigned char)*at << i;
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void kinf__hmap_release(struct kinf__hmap *map)
{
    free(map->buckets);
    *map = (struct kinf__hmap)KINF__HMAP_INIT;
}

static void link_node(struct kinf__hmap *map, struct kinf__hmap_node *node)
{
    struct kinf__hmap_node **bucket = &map->buckets[node->hash & (map->n_buckets - 1)];

    node->next = *bucket;
    *bucket = node;
}

static int grow(struct kinf__hmap *map, size_t n_buckets)
{
    struct kinf__hmap larger = { NULL, n_buckets, map->n_nodes };

    larger.buckets = calloc(larger.n_buckets, sizeof(struct kinf__hmap_node *));
    if (larger.buckets == NULL)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < map->n_buckets; i++) {
        for (struct kinf__hmap_node *node = map->buckets[i], *next; node != NULL; node = next) {
            next = node->next;
            link_node(&larger, node);
        }
    }
    free(map->buckets);
    *map = larger;
    return 0;
}

int kinf__hmap_insert(struct kinf__hmap *map, struct kinf__hmap_node *node, uint64_t hash)
{
    if (kinf__hmap_reserve(map, 1) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__hmap_insert_reserved(map, node, hash);
    return 0;
}

int kinf__hmap_reserve(struct kinf__hmap *map, size_t n_more)
{
    size_t n_buckets = map->n_buckets != 0 ? map->n_buckets : N_BUCKETS_FIRST;

    if (n_more > SIZE_MAX / 2 - map->n_nodes)
        return KINF_ERR_NO_MEMORY;
    while (n_buckets < map->n_nodes + n_more)
        n_buckets *= 2;
    return n_buckets == map->n_buckets ? 0 : grow(map, n_buckets);
}

void kinf__hmap_insert_reserved(struct kinf__hmap *map, struct kinf__hmap_node *node, uint64_t hash)
{
    node->hash = hash;
    link_node(map, node);
    map->n_nodes++;
}

void kinf__hmap_remove(struct kinf__hmap *map, struct kinf__hmap_node *node)
{
    struct kinf__hmap_node **link = &map->buckets[node->hash & (map->n_buckets - 1)];

    while (*link != node)
        link = &(*link)->next;
    *link = node->next;
    node->next = NULL;
    map->n_nodes--;
}

struct kinf__hmap_node *kinf__hmap_first_with_hash(const struct kinf__hmap *map, uint64_t hash)
{
    struct kinf__hmap_node *node;

    if (map->n_buckets == 0)
        return NULL;
    node = map->buckets[hash & (map->n_buckets - 1)];
    while (node != NULL && node->hash != hash)
        node = node->next;
    return node;
}

struct kinf__hmap_node *kinf__hmap_next_with_hash(const struct kinf__hmap_node *node)
{
    uint64_t hash = node->hash;

    do {
        node = node->next;
    } while (node != NULL && node->hash != hash);
    return (struct kinf__hmap_node *)node;
}
