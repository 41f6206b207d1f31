/*
 * The oracle of the soak: writes, knows what was written, and judges what followers were told.
 *
 *     oracle --listen SOCKET [--seed N] [--server URL [--unix SOCKET] [--authority FILE]
 *            [--certificate FILE --key FILE]] [--sidecar URL --token TOKEN]
 *
 * Followers connect to SOCKET and send lines (stream.h). The driver, soak.py, sends commands on
 * standard input and gets a line of JSON for each, and one for each divergence when it is found:
 *
 *   go RATE             writers write, so many a second (0: as many as can be)
 *   pause               they stop; answered when nothing is under way
 *   settle MS NAME...   waits until each of these was told what is, and names what it was not
 *   stores MS           asks every handler for its store, and compares it
 *   lists WHERE MS      lists all types, of the `server` or by the `sidecar`, and compares
 *   mirrors MS          waits until each widget has its ConfigMap, as the controllers make them
 *   backup, restoring, restore  the server's state was noted; is about to be so again; and is. Nobody
 *                       writes meanwhile
 *   undoes NAME...      whether going back to what was noted changes something of each type in each
 *                       namespace that each of these has
 *   lies 0|1            the server lies (stream.h)
 *   withdraws 0|1       it does not serve widgets now and then
 *   forget              what was before the second last `forget` is told by nobody any more
 *   report              counts
 *   begin, note, mark, gone  RESOURCE KEY [UID RV SUM], [SUM], [RV]: history by hand, for tests
 *
 * Without --server nothing is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "soak/history.h"
#include "soak/leaders.h"
#include "soak/served.h"
#include "soak/stream.h"
#include "soak/verdict.h"
#include "soak/writer.h"

#define MAX_CONNECTIONS 64
#define MAX_NAMES       64
#define MAX_WORDS       40
#define PIECE           ((size_t)256 * 1024)
#define TICK_MS         2
#define N_TOLD          5 /* of what is missing */
#define ALL_TYPES       ((1u << SOAK_N_TYPES) - 1)

struct connection {
    int fd;
    struct stream *stream;
    char *bytes;
    size_t len, size;
    uint64_t n_counted; /* events that its total has */
    bool is_counted;
    bool is_over; /* nothing more comes, but what is here may wait */
    bool waits;
};

/* Of all connections of one name. */
struct total {
    char name[64];
    uint64_t n_connections, n_events;
    int64_t staleness_ms;
};

static struct connection connections[MAX_CONNECTIONS]; /* fd < 0: none */
static struct total totals[MAX_NAMES];
static size_t n_totals;
static int listener;
static struct {
    char bytes[4096];
    size_t len;
} commands;

/* --- connections --- */

static struct total *total_of(const char *name)
{
    size_t i = 0;

    while (i < n_totals && strcmp(totals[i].name, name) != 0)
        i++;
    if (i == n_totals && n_totals < MAX_NAMES)
        snprintf(totals[n_totals++].name, sizeof totals->name, "%s", name);
    return &totals[i < MAX_NAMES ? i : MAX_NAMES - 1];
}

static void accept_one(void)
{
    struct connection *connection = connections;

    while (connection < connections + MAX_CONNECTIONS && connection->stream != NULL)
        connection++;
    if (connection == connections + MAX_CONNECTIONS)
        abort();
    *connection = (struct connection){ .fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC) };
    if (connection->fd >= 0)
        connection->stream = stream_new();
}

/* Adds what is new to the total of its name. */
static void count(struct connection *connection)
{
    struct total *total = total_of(stream_name(connection->stream));
    struct stream_counts counts = stream_counts(connection->stream);

    total->n_connections += !connection->is_counted;
    total->n_events += counts.n_events - connection->n_counted;
    if (counts.staleness_ms > total->staleness_ms)
        total->staleness_ms = counts.staleness_ms;
    connection->is_counted = true;
    connection->n_counted = counts.n_events;
}

static void close_connection(struct connection *connection)
{
    count(connection);
    close(connection->fd);
    free(connection->bytes);
    stream_free(connection->stream);
    connection->stream = NULL;
}

static void read_some(struct connection *connection)
{
    ssize_t n;

    if (connection->size - connection->len < PIECE) {
        connection->size = 2 * connection->size + PIECE;
        connection->bytes = realloc(connection->bytes, connection->size);
        if (connection->bytes == NULL)
            abort();
    }
    n = recv(connection->fd, connection->bytes + connection->len, PIECE, 0);
    if (n > 0)
        connection->len += (size_t)n;
    else if (n == 0 || errno != EINTR)
        connection->is_over = true;
}

/* Gives each whole line to the stream, until one has to wait. */
static void take_lines(struct connection *connection)
{
    size_t done = 0;
    const char *end;

    connection->waits = false;
    while (!connection->waits && connection->len > done &&
           (end = memchr(connection->bytes + done, '\n', connection->len - done)) != NULL) {
        size_t len = (size_t)(end - connection->bytes) - done;
        struct kinf_str line = { connection->bytes + done, len };

        connection->waits = stream_take(connection->stream, line) == STREAM_WAITS;
        if (!connection->waits)
            done += len + 1;
    }
    connection->len -= done;
    if (done != 0)
        memmove(connection->bytes, connection->bytes + done, connection->len);
    if (connection->is_over && !connection->waits)
        close_connection(connection);
}

static void serve(struct connection *connection, short revents)
{
    if (revents != 0 && !connection->waits && !connection->is_over)
        read_some(connection);
    if (revents != 0 || connection->waits || connection->is_over)
        take_lines(connection);
}

/* --- turns --- */

/* Reads what has come; false: the driver has gone. */
static bool read_commands(void)
{
    ssize_t n = read(0, commands.bytes + commands.len, sizeof commands.bytes - commands.len);

    if (n <= 0)
        return false;
    commands.len += (size_t)n;
    return true;
}

/* Serves followers for a moment. `*ret_has_commands`, unless NULL: standard input is looked at, too. */
static void take_turn(bool *ret_has_commands)
{
    struct pollfd polls[MAX_CONNECTIONS + 2] = { { listener, POLLIN, 0 },
                                                 { ret_has_commands != NULL ? 0 : -1, POLLIN, 0 } };
    bool waits = false;

    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        const struct connection *connection = &connections[i];
        bool is_read = connection->stream != NULL && !connection->waits && !connection->is_over;

        polls[i + 2] = (struct pollfd){ is_read ? connection->fd : -1, POLLIN, 0 };
        waits = waits || (connection->stream != NULL && !is_read);
    }
    if (poll(polls, MAX_CONNECTIONS + 2, waits || ret_has_commands == NULL ? TICK_MS : 1000) < 0)
        return;
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        if (connections[i].stream != NULL)
            serve(&connections[i], polls[i + 2].revents);
    }
    if (polls[0].revents != 0)
        accept_one();
    if (ret_has_commands != NULL)
        *ret_has_commands = polls[1].revents != 0;
}

static void take_quick_turn(void)
{
    take_turn(NULL);
}

/* --- settling --- */

static const struct connection *find(const char *name)
{
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        if (connections[i].stream != NULL && !connections[i].is_over &&
            strcmp(stream_name(connections[i].stream), name) == 0)
            return &connections[i];
    }
    return NULL;
}

/* How many streams of its part have the object. */
static unsigned count_part(const struct stream *stream, uint64_t id,
                           bool (*has)(const struct stream *stream, uint64_t id))
{
    unsigned n = 0;

    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        const struct stream *other = connections[i].stream;

        if (other != NULL && !connections[i].is_over &&
            strcmp(stream_part(other), stream_part(stream)) == 0)
            n += has(other, id);
    }
    return n;
}

/* Whether this one, or just one of its part, has what there is. */
static bool has_rightly(const struct stream *stream, uint64_t id,
                        bool (*has)(const struct stream *stream, uint64_t id))
{
    bool is_there = history_live(id) != NULL;

    if (!stream_follows(stream, id))
        return true;
    if (stream_part(stream)[0] == '\0')
        return has(stream, id) == is_there;
    return count_part(stream, id, has) == is_there;
}

static bool is_right(const struct stream *stream, uint64_t id)
{
    return has_rightly(stream, id, stream_has) &&
           (!stream_follows(stream, id) || !stream_has(stream, id) ||
            stream_is_current(stream, id));
}

/* SOAK_NONE: all is as it should be. */
static uint64_t first_wrong(const struct stream *stream)
{
    uint64_t id = 0;

    history_lock();
    while (id < soak_n_objects() && is_right(stream, id))
        id++;
    history_unlock();
    return id < soak_n_objects() ? id : SOAK_NONE;
}

static bool are_settled(char *const *names, size_t n_names)
{
    for (size_t i = 0; i < n_names; i++) {
        const struct connection *connection = find(names[i]);

        if (connection == NULL || first_wrong(connection->stream) != SOAK_NONE)
            return false;
    }
    return true;
}

static void tell_unsettled(char *const *names, size_t n_names)
{
    for (size_t i = 0; i < n_names; i++) {
        const struct connection *connection = find(names[i]);
        unsigned n = 0;

        if (connection == NULL)
            verdict_diverges("settled", "%s is not there", names[i]);
        history_lock();
        for (uint64_t id = 0; connection != NULL && id < soak_n_objects() && n < N_TOLD; id++) {
            const struct soak_entry *live = history_live(id);

            if (is_right(connection->stream, id))
                continue;
            n++;
            verdict_diverges("settled", "%s: %s is %s at %llu, and it has %s", names[i],
                             soak_describe(id), live != NULL ? "there" : "gone",
                             (unsigned long long)(live != NULL ? live->version.rv : 0),
                             stream_has(connection->stream, id) ? "it otherwise" : "it not");
        }
        history_unlock();
    }
}

static void settle(int64_t patience_ms, char *const *names, size_t n_names)
{
    int64_t began_ms = soak_now_ms();
    bool is_settled = are_settled(names, n_names);

    while (!is_settled && soak_now_ms() < began_ms + patience_ms) {
        take_quick_turn();
        is_settled = are_settled(names, n_names);
    }
    if (!is_settled)
        tell_unsettled(names, n_names);
    verdict_say("{\"settled\":%s,\"ms\":%lld}", is_settled ? "true" : "false",
                (long long)(soak_now_ms() - began_ms));
}

/* --- what a restore undoes --- */

/* Whether it has something of each type in each namespace that will be otherwise. */
static bool is_undone(const struct stream *stream)
{
    unsigned missing[SOAK_N_TYPES] = { 0 }, any = 0; /* bits of namespaces */

    for (uint64_t id = 0; id < soak_n_objects(); id++) {
        if (stream_follows(stream, id))
            missing[soak_type_of(id)] |= 1u << soak_namespace_of(id);
    }
    for (uint64_t id = 0; id < soak_n_objects(); id++) {
        if (stream_has(stream, id) && history_is_changed(id))
            missing[soak_type_of(id)] &= ~(1u << soak_namespace_of(id));
    }
    for (unsigned type = 0; type < SOAK_N_TYPES; type++)
        any |= missing[type];
    return any == 0;
}

static void tell_undone(char *const *names, size_t n_names)
{
    bool is_each = true;

    history_lock();
    for (size_t i = 0; i < n_names && is_each; i++) {
        const struct connection *connection = find(names[i]);

        is_each = connection != NULL && is_undone(connection->stream);
    }
    history_unlock();
    verdict_say("{\"undoes\":%s}", is_each ? "true" : "false");
}

/* --- stores --- */

static void ask_for_stores(void)
{
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        struct connection *connection = &connections[i];

        if (connection->stream == NULL || !stream_is_handler(connection->stream))
            continue;
        stream_expect_store(connection->stream);
        if (send(connection->fd, "check\n", 6, MSG_NOSIGNAL) != 6)
            verdict_diverges("store", "%s takes no commands", stream_name(connection->stream));
    }
}

static bool have_whole_stores(void)
{
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        const struct stream *stream = connections[i].stream;

        if (stream != NULL && stream_is_handler(stream) && !stream_has_whole_store(stream))
            return false;
    }
    return true;
}

static void compare_store(const struct stream *stream)
{
    history_lock();
    for (uint64_t id = 0; id < soak_n_objects(); id++) {
        if (!has_rightly(stream, id, stream_stores))
            verdict_diverges("store", "%s: %s is not in the store, or should not be",
                             stream_name(stream), soak_describe(id));
    }
    history_unlock();
}

static void compare_stores(int64_t patience_ms)
{
    int64_t end_ms = soak_now_ms() + patience_ms;

    ask_for_stores();
    while (!have_whole_stores() && soak_now_ms() < end_ms)
        take_quick_turn();
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        const struct stream *stream = connections[i].stream;

        if (stream == NULL || !stream_is_handler(stream))
            continue;
        if (!stream_has_whole_store(stream))
            verdict_diverges("store", "%s does not say what it has", stream_name(stream));
        else
            compare_store(stream);
    }
    verdict_say("{\"done\":\"stores\"}");
}

/* --- the report --- */

static void report(void)
{
    struct writer_counts counts = writers_counts();
    uint64_t n_writes;

    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        if (connections[i].stream != NULL)
            count(&connections[i]);
    }
    for (size_t i = 0; i < n_totals; i++)
        verdict_say("{\"stream\":\"%s\",\"connections\":%llu,\"events\":%llu,\"staleness\":%lld}",
                    totals[i].name, (unsigned long long)totals[i].n_connections,
                    (unsigned long long)totals[i].n_events, (long long)totals[i].staleness_ms);
    history_lock();
    n_writes = history_n_writes();
    history_unlock();
    verdict_say("{\"writes\":%llu,\"lost\":%llu,\"sessions\":%llu,\"unread\":%llu,"
                "\"judged\":%llu,\"terms\":%llu,\"divergences\":%llu}",
                (unsigned long long)n_writes, (unsigned long long)counts.n_failed,
                (unsigned long long)counts.n_sessions, (unsigned long long)counts.n_unread,
                (unsigned long long)counts.n_judged, (unsigned long long)leaders_n_terms(),
                (unsigned long long)verdict_count());
}

/* --- commands --- */

static uint64_t number(const char *text)
{
    return text_number(kinf_str_from(text));
}

static void pause_writers(void)
{
    writers_pause();
    while (!writers_are_idle())
        take_quick_turn();
}

/* RESOURCE KEY and what the command has besides. */
static void write_by_hand(char *const *words, size_t n_words)
{
    uint64_t id = soak_key_id(soak_find_type(kinf_str_from(words[1])), kinf_str_from(words[2]));

    if (id == SOAK_NONE)
        abort();
    if (strcmp(words[0], "begin") == 0)
        history_begin(id);
    else if (strcmp(words[0], "note") == 0 && n_words == 6)
        history_note(id, &(struct version){ number(words[3]), number(words[4]), number(words[5]) });
    else if (strcmp(words[0], "mark") == 0)
        history_note_marked(id, number(words[3]));
    else
        history_note_gone(id, number(words[3]));
}

/* What the history is told; the answer is the same. */
static void change_history(char *const *words, size_t n_words)
{
    history_lock();
    if (strcmp(words[0], "backup") == 0)
        history_back_up();
    else if (strcmp(words[0], "restoring") == 0)
        history_begin_restore();
    else if (strcmp(words[0], "restore") == 0)
        history_restore();
    else if (strcmp(words[0], "forget") == 0)
        history_forget_old();
    else if (n_words == 4 || n_words == 6 || strcmp(words[0], "begin") == 0)
        write_by_hand(words, n_words);
    history_unlock();
    if (strcmp(words[0], "restore") == 0)
        leaders_restored();
    if (strcmp(words[0], "restore") == 0 || strcmp(words[0], "forget") == 0)
        writers_judge_sessions(words[0][0] == 'f' ? ALL_TYPES : 0);
}

/* What the sidecar is told is what it serves. */
static void be_lied_to(bool are_lied_to)
{
    streams_lied_to(are_lied_to);
    if (are_lied_to)
        writers_judge_sessions(0); /* until the next quiet */
}

static void withdraw(bool is_withdrawn)
{
    streams_withdraw(is_withdrawn ? 1u << SOAK_WIDGETS : 0);
    if (is_withdrawn)
        writers_judge_sessions(ALL_TYPES & ~(1u << SOAK_WIDGETS)); /* until the next quiet */
}

static void obey(char *const *words, size_t n_words)
{
    int64_t argument = n_words > 1 ? (int64_t)number(words[1]) : 0;

    if (strcmp(words[0], "settle") == 0) {
        settle(argument, words + 2, n_words - 2);
        return;
    }
    if (strcmp(words[0], "stores") == 0) {
        compare_stores(argument);
        return;
    }
    if (strcmp(words[0], "lists") == 0 && n_words == 3) {
        served_compare_lists(words[1], (int64_t)number(words[2]), take_quick_turn);
        return;
    }
    if (strcmp(words[0], "undoes") == 0) {
        tell_undone(words + 1, n_words - 1);
        return;
    }
    if (strcmp(words[0], "mirrors") == 0) {
        served_wait_mirrored(argument, take_quick_turn);
        return;
    }
    if (strcmp(words[0], "report") == 0) {
        report();
        return;
    }
    if (strcmp(words[0], "go") == 0)
        writers_go((unsigned)argument);
    else if (strcmp(words[0], "pause") == 0)
        pause_writers();
    else if (strcmp(words[0], "lies") == 0)
        be_lied_to(argument != 0);
    else if (strcmp(words[0], "withdraws") == 0)
        withdraw(argument != 0);
    else
        change_history(words, n_words);
    verdict_say("{\"done\":\"%s\"}", words[0]);
}

static void obey_line(char *line)
{
    char *words[MAX_WORDS], *rest = line;
    size_t n = 0;

    while (n < MAX_WORDS && (words[n] = strsep(&rest, " ")) != NULL)
        n++;
    if (n != 0 && words[0][0] != '\0')
        obey(words, n);
}

static void obey_all(void)
{
    char *end;

    while ((end = memchr(commands.bytes, '\n', commands.len)) != NULL) {
        char line[sizeof commands.bytes];
        size_t len = (size_t)(end - commands.bytes);

        memcpy(line, commands.bytes, len);
        line[len] = '\0';
        commands.len -= len + 1;
        memmove(commands.bytes, end + 1, commands.len);
        obey_line(line);
    }
}

/* --- the program --- */

static int listen_at(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 32) < 0) {
        perror(path);
        exit(1);
    }
    return fd;
}

/* The value of an option of the command line; NULL: it is not there. */
static const char *option(int argc, char **argv, const char *name)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *path = option(argc, argv, "--listen"), *seed = option(argc, argv, "--seed");
    struct writer_options writing = {
        .server = option(argc, argv, "--server"),
        .unix_socket = option(argc, argv, "--unix"),
        .authority = option(argc, argv, "--authority"),
        .certificate = option(argc, argv, "--certificate"),
        .key = option(argc, argv, "--key"),
        .sidecar = option(argc, argv, "--sidecar"),
        .token = option(argc, argv, "--token"),
        .seed = seed != NULL ? number(seed) : 1,
    };
    bool has_commands = false;

    if (path == NULL) {
        fprintf(stderr, "oracle: --listen is missing\n");
        return 2;
    }
    listener = listen_at(path);
    if (writing.server != NULL)
        writers_start(&writing);
    verdict_say("{\"done\":\"start\"}");
    for (;;) {
        take_turn(&has_commands);
        if (has_commands && !read_commands())
            return 0; /* with all that is under way */
        obey_all();
    }
}
