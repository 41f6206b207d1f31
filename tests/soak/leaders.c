/*
 * The spans of time in which each process led for certain.
 */
#include "soak/leaders.h"

#include <stdbool.h>
#include <stddef.h>

#include "soak/history.h"
#include "soak/text.h"
#include "soak/verdict.h"

#define MAX_SPANS 500 /* older ones are forgotten */
#define RESTORED_MS                                                                                \
    10000 /* terms that are seen first so long behind a restore may be of before it */

struct span {
    uint64_t identity; /* a hash */
    uint64_t term;
    int64_t first_ms; /* the least `to`, and the greatest `from` */
    int64_t last_ms;
    unsigned timeline; /* how many restores were before it; 0: nobody knows */
};

static struct span spans[MAX_SPANS];
static uint64_t n_spans; /* since the start */
static unsigned timeline = 1;
static int64_t restored_ms = -RESTORED_MS;

static size_t n_known(void)
{
    return n_spans < MAX_SPANS ? n_spans : MAX_SPANS;
}

static struct span *find(uint64_t identity, uint64_t term)
{
    for (size_t i = 0; i < n_known(); i++) {
        if (spans[i].identity == identity && spans[i].term == term)
            return &spans[i];
    }
    return NULL;
}

static struct span *add(uint64_t identity, uint64_t term, int64_t from_ms, int64_t to_ms)
{
    struct span *span = &spans[n_spans++ % MAX_SPANS];
    bool is_sure = soak_now_ms() >= restored_ms + RESTORED_MS;

    *span = (struct span){ identity, term, to_ms, from_ms, is_sure ? timeline : 0 };
    return span;
}

static bool are_of_one_timeline(const struct span *a, const struct span *b)
{
    return a->timeline != 0 && a->timeline == b->timeline;
}

static const char *what_is_wrong_with(const struct span *a, const struct span *b)
{
    const struct span *first = a->term < b->term ? a : b, *second = first == a ? b : a;

    if (a->first_ms < b->last_ms && b->first_ms < a->last_ms)
        return "lead at once";
    if (!are_of_one_timeline(a, b))
        return NULL;
    if (a->term == b->term)
        return "lead in one term";
    return second->first_ms < first->last_ms ? "lead in the wrong order" : NULL;
}

static void compare(const struct span *span)
{
    for (size_t i = 0; i < n_known(); i++) {
        const struct span *other = &spans[i];
        const char *wrong =
            other->identity != span->identity ? what_is_wrong_with(span, other) : NULL;

        if (wrong != NULL)
            verdict_diverges("leader",
                             "two %s: of term %llu from %lld to %lld, of term %llu from "
                             "%lld to %lld",
                             wrong, (unsigned long long)span->term, (long long)span->first_ms,
                             (long long)span->last_ms, (unsigned long long)other->term,
                             (long long)other->first_ms, (long long)other->last_ms);
    }
}

void leaders_act(struct kinf_str identity, uint64_t term, int64_t from_ms, int64_t to_ms)
{
    uint64_t who = text_hash(identity);
    struct span *span = find(who, term);

    if (span == NULL)
        span = add(who, term, from_ms, to_ms);
    if (to_ms < span->first_ms)
        span->first_ms = to_ms;
    if (from_ms > span->last_ms)
        span->last_ms = from_ms;
    compare(span);
}

void leaders_restored(void)
{
    timeline++;
    restored_ms = soak_now_ms();
}

uint64_t leaders_n_terms(void)
{
    return n_spans;
}
