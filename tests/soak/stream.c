/*
 * Neighbours: oracle.c reads the lines, history.c knows what was.
 */
#include "soak/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soak/leaders.h"
#include "soak/verdict.h"

#define NAME_SIZE 64
#define MAX_WORDS 10

enum kind { KIND_NONE, KIND_HANDLER, KIND_KINFORMERD, KIND_WATCH };

/* What it was told of one object last. */
struct told {
    struct version version;
    uint64_t next; /* the first entry of the history that it has not been told */
    uint64_t ever; /* the same, though it may be told what it was told before */
    bool is_present;
    bool is_listed; /* since the last B */
    bool is_stored; /* says the last answer to `check` */
};

struct stream {
    char name[NAME_SIZE], part[NAME_SIZE];
    enum kind kind;
    unsigned types, namespaces; /* bits */
    struct told *told;          /* of each object */
    unsigned dumped;            /* types whose E came */
    bool is_listing[SOAK_N_TYPES];
    struct stream_counts counts;
};

/* One notification, whoever made it. */
struct event {
    char op; /* A, U, D, S */
    uint64_t id;
    struct version version, old;
    bool has_old;
    bool is_initial; /* of A: of a list; of D: the deletion itself was missed */
};

static bool are_lied_to;
static unsigned withdrawn_types; /* bits */

/* --- words --- */

static size_t split(struct kinf_str line, struct kinf_str *words, size_t max)
{
    size_t n = 0;

    while (line.len != 0 && n < max) {
        const char *blank = memchr(line.bytes, ' ', line.len);
        size_t len = blank != NULL ? (size_t)(blank - line.bytes) : line.len;

        words[n++] = (struct kinf_str){ line.bytes, len };
        line.bytes += len + (blank != NULL);
        line.len -= len + (blank != NULL);
    }
    return n;
}

static void copy(char *buf, struct kinf_str text)
{
    snprintf(buf, NAME_SIZE, "%.*s", (int)text.len, text.bytes);
}

/* Behind a prefix; false: it has another one. */
static bool take_option(struct kinf_str word, const char *prefix, struct kinf_str *ret_value)
{
    size_t len = strlen(prefix);

    if (word.len < len || memcmp(word.bytes, prefix, len) != 0)
        return false;
    *ret_value = (struct kinf_str){ word.bytes + len, word.len - len };
    return true;
}

static unsigned read_types(struct kinf_str value)
{
    unsigned types = 0;

    while (value.len != 0) {
        const char *comma = memchr(value.bytes, ',', value.len);
        size_t len = comma != NULL ? (size_t)(comma - value.bytes) : value.len;

        types |= 1u << soak_find_type((struct kinf_str){ value.bytes, len });
        value.bytes += len + (comma != NULL);
        value.len -= len + (comma != NULL);
    }
    return types;
}

static unsigned read_namespaces(struct kinf_str value)
{
    unsigned namespaces = 0;

    for (size_t i = 0; i < value.len; i++) {
        if (value.bytes[i] != ',')
            namespaces |= 1u << (value.bytes[i] - '0');
    }
    return namespaces;
}

static void take_hello(struct stream *stream, struct kinf_str line)
{
    struct kinf_str words[MAX_WORDS], value;
    size_t n = split(line, words, MAX_WORDS);

    if (n < 3 || !text_is(words[0], "hello")) {
        verdict_diverges("protocol", "%.*s", (int)line.len, line.bytes);
        return;
    }
    copy(stream->name, words[1]);
    stream->kind = text_is(words[2], "handler")      ? KIND_HANDLER
                   : text_is(words[2], "kinformerd") ? KIND_KINFORMERD
                                                     : KIND_WATCH;
    for (size_t i = 3; i < n; i++) {
        if (take_option(words[i], "types=", &value))
            stream->types = read_types(value);
        else if (take_option(words[i], "namespaces=", &value))
            stream->namespaces = read_namespaces(value);
        else if (take_option(words[i], "part=", &value))
            copy(stream->part, value);
    }
}

/* --- one event --- */

static void diverges(const struct stream *stream, const char *promise, const struct event *event,
                     const char *why)
{
    const struct told *told = &stream->told[event->id];
    const struct soak_entry *head = history_head(event->id);

    verdict_diverges(promise, "%s: %c %s at %llu%s: %s (told last: %s at %llu; newest: %s at %llu)",
                     stream->name, event->op, soak_describe(event->id),
                     (unsigned long long)event->version.rv, event->is_initial ? " initial" : "",
                     why, told->is_present ? "there" : "gone", (unsigned long long)told->version.rv,
                     head == NULL        ? "never was"
                     : head->is_deletion ? "gone"
                                         : "there",
                     (unsigned long long)(head != NULL ? head->version.rv : 0));
}

/* A state that nobody knows may be one that the writer is about to hear of. */
static bool may_become_known(const struct event *event)
{
    return history_is_in_flight(event->id);
}

static void note_staleness(struct stream *stream, const struct event *event, uint64_t number)
{
    int64_t staleness_ms = soak_now_ms() - history_entry(event->id, number)->at_ms;

    if (!event->is_initial && staleness_ms > stream->counts.staleness_ms)
        stream->counts.staleness_ms = staleness_ms;
}

static const char *what_is_wrong_with_a_state(const struct told *told, const struct event *event)
{
    if (event->op == 'A' && told->is_present)
        return "it was there";
    if (event->op == 'U' && !told->is_present)
        return "it was not there";
    if (event->op == 'U' && told->version.uid != event->version.uid)
        return "it is another object";
    if (event->has_old && memcmp(&told->version, &event->old, sizeof event->old) != 0)
        return "old is not what was told last";
    return NULL;
}

/* `told` is changed in any case, so that one divergence is told once. */
static void tell_state(struct stream *stream, const struct event *event, uint64_t number)
{
    struct told *told = &stream->told[event->id];

    if (number != SOAK_NONE) {
        if (number >= told->ever) {
            note_staleness(stream, event, number);
            told->ever = number + 1;
        }
        told->next = number + 1;
    }
    told->version = event->version;
    told->is_present = true;
    told->is_listed = true;
}

static enum stream_verdict take_state(struct stream *stream, const struct event *event)
{
    struct told *told = &stream->told[event->id];
    const char *wrong = what_is_wrong_with_a_state(told, event);
    uint64_t number = history_find(event->id, told->next, &event->version);

    if (number == SOAK_NONE && may_become_known(event))
        return STREAM_WAITS;
    if (wrong != NULL)
        diverges(stream, event->has_old ? "old" : "sequence", event, wrong);
    else if (number == SOAK_NONE && !are_lied_to)
        diverges(stream, "history", event,
                 history_find(event->id, 0, &event->version) != SOAK_NONE
                     ? "that was before what was told"
                     : "the server never had that");
    tell_state(stream, event, number);
    return STREAM_TAKEN;
}

/* A deletion that was seen is told with its version and the last state. One that was missed is told with
 * what was told last, or any state since then; a watch of the sidecar does not say which it is. */
static uint64_t find_deletion(const struct stream *stream, const struct event *event)
{
    const struct told *told = &stream->told[event->id];

    if (event->is_initial || stream->kind == KIND_WATCH)
        return history_find_deletion(event->id, told->next, told->version.uid, 0, 0);
    return history_find_deletion(event->id, told->next, told->version.uid, event->version.rv,
                                 event->version.sum);
}

/* What nobody deleted may be told as deleted, since it was not there to be seen. */
static bool is_told_rightly_as_gone(const struct stream *stream, const struct event *event)
{
    bool is_withdrawn = (withdrawn_types >> soak_type_of(event->id) & 1) != 0;

    return are_lied_to || (is_withdrawn && (event->is_initial || stream->kind == KIND_WATCH));
}

static bool is_known_state(const struct stream *stream, const struct event *event, uint64_t number)
{
    const struct told *told = &stream->told[event->id];

    return event->version.sum == told->version.sum ||
           history_has_sum(event->id, told->next, number, event->version.sum);
}

static enum stream_verdict take_deletion(struct stream *stream, const struct event *event)
{
    struct told *told = &stream->told[event->id];
    uint64_t number = find_deletion(stream, event);

    if (number == SOAK_NONE && may_become_known(event))
        return STREAM_WAITS;
    if (!told->is_present)
        diverges(stream, "sequence", event, "it was not there");
    else if (number == SOAK_NONE && !is_told_rightly_as_gone(stream, event))
        diverges(stream, "history", event, "nobody deleted it so");
    else if (number != SOAK_NONE && !is_known_state(stream, event, number))
        diverges(stream, "history", event, "that was not its state");
    if (number != SOAK_NONE)
        told->next = number + 1;
    else if (told->next != 0)
        told->next--; /* the same state may come again */
    told->is_present = false;
    return STREAM_TAKEN;
}

static void take_stored(struct stream *stream, const struct event *event)
{
    const struct soak_entry *live = history_live(event->id);

    if (live == NULL || memcmp(&live->version, &event->version, sizeof event->version) != 0)
        diverges(stream, "store", event, "the store has what the server has not");
    stream->told[event->id].is_stored = true;
}

static enum stream_verdict take_event(struct stream *stream, const struct event *event)
{
    enum stream_verdict verdict = STREAM_TAKEN;

    if (event->id == SOAK_NONE)
        return STREAM_TAKEN;
    history_lock();
    if (!stream_follows(stream, event->id))
        diverges(stream, "scope", event, "it is not what this one follows");
    if (event->op == 'S')
        take_stored(stream, event);
    else
        verdict = event->op == 'D' ? take_deletion(stream, event) : take_state(stream, event);
    history_unlock();
    stream->counts.n_events += event->op != 'S' && verdict == STREAM_TAKEN;
    return verdict;
}

/* --- lines of handlers --- */

static bool has_enough_words(char op, size_t n)
{
    return n >= (size_t)(op == 'S' ? 6 : op == 'U' ? 8 : 7);
}

static enum stream_verdict take_handler_event(struct stream *stream, const struct kinf_str *words,
                                              size_t n)
{
    struct event event = { .op = words[0].bytes[0] };

    if (!has_enough_words(event.op, n)) {
        verdict_diverges("protocol", "%s: a line of %zu words", stream->name, n);
        return STREAM_TAKEN;
    }
    event.id = soak_key_id(soak_find_type(words[1]), words[2]);
    event.version =
        (struct version){ text_number(words[3]), text_number(words[4]), text_number(words[5]) };
    event.has_old = event.op == 'U';
    if (event.has_old)
        event.old =
            (struct version){ event.version.uid, text_number(words[6]), text_number(words[7]) };
    else if (event.op != 'S')
        event.is_initial = text_is(words[6], "1");
    return take_event(stream, &event);
}

static enum stream_verdict take_handler_line(struct stream *stream, struct kinf_str line)
{
    struct kinf_str words[MAX_WORDS];
    size_t n = split(line, words, MAX_WORDS);

    if (n >= 2 && text_is(words[0], "E"))
        stream->dumped |= 1u << soak_find_type(words[1]);
    else if (n >= 5 && text_is(words[0], "L"))
        leaders_act(words[1], text_number(words[2]), (int64_t)text_number(words[3]),
                    (int64_t)text_number(words[4]));
    else if (n >= 1 && words[0].len == 1 && strchr("AUDS", words[0].bytes[0]) != NULL)
        return take_handler_event(stream, words, n);
    else
        verdict_diverges("follower", "%s: %.*s", stream->name, (int)line.len, line.bytes);
    return STREAM_TAKEN;
}

/* --- JSON --- */

static bool read_event_object(struct event *event, unsigned type, struct kinf_str object)
{
    struct identity identity;

    if (!text_read_object(object, &event->version, &identity))
        return false;
    event->id = soak_object_id(type, identity.name_space, identity.name);
    return true;
}

static enum stream_verdict take_kinformerd_line(struct stream *stream, struct kinf_str line)
{
    struct kinf_str rest = line, name, value, object = { NULL, 0 }, old = object, resource = object;
    struct event event = { .op = 0 };
    struct identity identity;

    while (text_next_member(&rest, &name, &value)) {
        if (text_is(name, "type"))
            event.op = value.bytes[1] == 'M' ? 'U' : value.bytes[1];
        else if (text_is(name, "resource"))
            resource = text_unquote(value);
        else if (text_is(name, "object"))
            object = value;
        else if (text_is(name, "oldObject"))
            old = value;
        else if (text_is(name, "initial") || text_is(name, "finalStateUnknown"))
            event.is_initial = event.is_initial || text_is(value, "true");
    }
    if (event.op == 'S') /* SYNCED */
        return STREAM_TAKEN;
    event.has_old = event.op == 'U';
    if (!read_event_object(&event, soak_find_type(resource), object) ||
        (event.has_old && !text_read_object(old, &event.old, &identity))) {
        verdict_diverges("protocol", "%s: %.*s", stream->name, (int)line.len, line.bytes);
        return STREAM_TAKEN;
    }
    return take_event(stream, &event);
}

/* --- watches --- */

static void begin_list(struct stream *stream, unsigned type)
{
    stream->is_listing[type] = true;
    for (size_t id = 0; id < soak_n_objects(); id++) {
        if (soak_type_of(id) == type)
            stream->told[id].is_listed = false;
    }
}

/* What was there and is not in the list must have been deleted. */
static enum stream_verdict end_list(struct stream *stream, unsigned type)
{
    enum stream_verdict verdict = STREAM_TAKEN;

    for (size_t id = 0; id < soak_n_objects() && verdict == STREAM_TAKEN; id++) {
        struct told *told = &stream->told[id];
        struct event event = { 'D', id, told->version, told->version, false, true };

        if (soak_type_of(id) == type && told->is_present && !told->is_listed)
            verdict = take_event(stream, &event);
    }
    if (verdict == STREAM_TAKEN)
        stream->is_listing[type] = false;
    return verdict;
}

/* Of a list: what it has may be what was told before, or a later object of that name. */
static enum stream_verdict take_listed(struct stream *stream, struct event *event)
{
    struct told *told = &stream->told[event->id];
    struct event gone = { 'D', event->id, told->version, told->version, false, true };

    event->is_initial = true;
    if (told->is_present && memcmp(&told->version, &event->version, sizeof told->version) == 0) {
        told->is_listed = true;
        return STREAM_TAKEN;
    }
    if (told->is_present && told->version.uid != event->version.uid &&
        take_event(stream, &gone) == STREAM_WAITS)
        return STREAM_WAITS;
    event->op = told->is_present ? 'U' : 'A';
    return take_event(stream, event);
}

static enum stream_verdict take_watch_event(struct stream *stream, unsigned type,
                                            struct kinf_str line)
{
    struct kinf_str op, object;
    struct event event = { .op = 0 };

    if (!text_member(line, "type", &op) || !text_member(line, "object", &object) ||
        strchr("AMD", op.bytes[1]) == NULL || !read_event_object(&event, type, object)) {
        verdict_diverges("protocol", "%s: %.*s", stream->name, (int)line.len, line.bytes);
        return STREAM_TAKEN;
    }
    event.op = op.bytes[1] == 'M' ? 'U' : op.bytes[1];
    if (event.id != SOAK_NONE && stream->is_listing[type])
        return take_listed(stream, &event);
    return take_event(stream, &event);
}

static enum stream_verdict take_watch_line(struct stream *stream, struct kinf_str line)
{
    struct kinf_str words[2];
    unsigned type = split(line, words, 2) == 2 ? soak_find_type(words[1]) : SOAK_N_TYPES;

    if (type == SOAK_N_TYPES) {
        verdict_diverges("protocol", "%s: %.*s", stream->name, (int)line.len, line.bytes);
        return STREAM_TAKEN;
    }
    if (line.bytes[0] == 'E')
        return end_list(stream, type);
    if (line.bytes[0] == 'B') {
        begin_list(stream, type);
        return STREAM_TAKEN;
    }
    line.len -= 3 + words[1].len;
    line.bytes += 3 + words[1].len;
    return take_watch_event(stream, type, line);
}

/* --- streams --- */

struct stream *stream_new(void)
{
    struct stream *stream = calloc(1, sizeof *stream);

    if (stream == NULL || (stream->told = calloc(soak_n_objects(), sizeof *stream->told)) == NULL)
        abort();
    stream->types = (1u << SOAK_N_TYPES) - 1;
    stream->namespaces = (1u << SOAK_N_NAMESPACES) - 1;
    return stream;
}

void stream_free(struct stream *stream)
{
    free(stream->told);
    free(stream);
}

enum stream_verdict stream_take(struct stream *stream, struct kinf_str line)
{
    switch (stream->kind) {
    case KIND_NONE:
        take_hello(stream, line);
        return STREAM_TAKEN;
    case KIND_HANDLER:
        return take_handler_line(stream, line);
    case KIND_KINFORMERD:
        return take_kinformerd_line(stream, line);
    case KIND_WATCH:
        break;
    }
    return take_watch_line(stream, line);
}

const char *stream_name(const struct stream *stream)
{
    return stream->name;
}

const char *stream_part(const struct stream *stream)
{
    return stream->part;
}

bool stream_is_handler(const struct stream *stream)
{
    return stream->kind == KIND_HANDLER;
}

bool stream_follows(const struct stream *stream, uint64_t id)
{
    return (stream->types >> soak_type_of(id) & 1) != 0 &&
           (stream->namespaces >> soak_namespace_of(id) & 1) != 0;
}

bool stream_has(const struct stream *stream, uint64_t id)
{
    return stream->told[id].is_present;
}

bool stream_is_current(const struct stream *stream, uint64_t id)
{
    const struct soak_entry *live = history_live(id);
    const struct told *told = &stream->told[id];

    return live == NULL ? !told->is_present
                        : told->is_present &&
                              memcmp(&told->version, &live->version, sizeof live->version) == 0;
}

void stream_expect_store(struct stream *stream)
{
    stream->dumped = 0;
    for (size_t id = 0; id < soak_n_objects(); id++)
        stream->told[id].is_stored = false;
}

bool stream_has_whole_store(const struct stream *stream)
{
    return stream->dumped == stream->types;
}

bool stream_stores(const struct stream *stream, uint64_t id)
{
    return stream->told[id].is_stored;
}

struct stream_counts stream_counts(const struct stream *stream)
{
    return stream->counts;
}

void streams_lied_to(bool lied_to)
{
    are_lied_to = lied_to;
}

void streams_withdraw(unsigned types)
{
    withdrawn_types = types;
}
