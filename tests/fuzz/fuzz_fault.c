/*
 * Lines of faults, as somebody posts them, and a body that goes through the one that the line asks
 * for: behind the first line of the input.
 */
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "fault/fault_stream.h"

#define ROUNDS_MAX 100000

struct run {
    struct kinf__stream inner;
    const char *bytes;
    size_t len;
    size_t step;
    int64_t now_ms;
    bool is_over;
};

static ssize_t give(struct kinf__stream *stream, char *buf, size_t size)
{
    struct run *run = KINF__CONTAINER_OF(stream, struct run, inner);
    size_t n = run->len < run->step ? run->len : run->step;

    n = n < size ? n : size;
    memcpy(buf, run->bytes, n);
    run->bytes += n;
    run->len -= n;
    return n != 0 ? (ssize_t)n : KINF__STREAM_END;
}

static void forget(struct kinf__stream *stream)
{
    (void)stream;
}

static int64_t now_ms(void *ctx)
{
    return ((struct run *)ctx)->now_ms;
}

/* Time passes when somebody waits for it, and nobody waits for ever. */
static void wake_at(int64_t at_ms, void *ctx)
{
    struct run *run = ctx;

    run->is_over = at_ms == KINF__NEVER_MS;
    run->now_ms = at_ms;
}

static bool is_over(void *ctx)
{
    return ((struct run *)ctx)->is_over;
}

/* Returns the last result; the stream ends in bounded time. */
static ssize_t read_all(struct kinf__stream *stream, size_t size, size_t *ret_len)
{
    char buf[256];
    ssize_t n = 0;

    for (size_t i = 0; n >= 0; i++) {
        FUZZ_REQUIRE(i < ROUNDS_MAX);
        n = stream->read(stream, buf, size);
        FUZZ_REQUIRE(n <= (ssize_t)size);
        *ret_len += n > 0 ? (size_t)n : 0;
    }
    return n;
}

static bool is_cut_short(const struct kinf__fault_effect *effect)
{
    return effect->kind == KINF__FAULT_RESET || effect->kind == KINF__FAULT_CUT ||
           effect->kind == KINF__FAULT_CLOSE;
}

static void send_through(const struct kinf__fault_effect *effect, const uint8_t *data, size_t size,
                         unsigned how)
{
    struct run run = { .inner = { give, forget, true },
                       .bytes = (const char *)data,
                       .len = size,
                       .step = 1 + how % 64 };
    const struct kinf__fault_clock clock = { now_ms, wake_at, is_over, &run };
    struct kinf__buffer body = KINF__BUFFER_INIT;
    struct kinf__stream *stream;
    size_t n_out = 0;
    ssize_t end;

    FUZZ_REQUIRE(kinf__fault_stream_new(effect, &clock, &run.inner, &body, &stream) == 0);
    end = read_all(stream, 1 + how % 200, &n_out);
    if (effect->kind == KINF__FAULT_FLIP || effect->kind == KINF__FAULT_DRIP)
        FUZZ_REQUIRE(run.is_over || (end == KINF__STREAM_END && n_out == size));
    if (is_cut_short(effect) && effect->unit == KINF__FAULT_BYTES)
        FUZZ_REQUIRE(n_out == (effect->after < size ? effect->after : size));
    stream->free(stream);
}

static void ask(const struct kinf__fault_spec *spec, unsigned how)
{
    struct kinf__fault_subject subject = { .verb = how % KINF__N_FAULT_VERBS,
                                           .path = "/api/v1/pods",
                                           .resource = "pods",
                                           .group = "",
                                           .subresource = how % 2 == 0 ? "" : "status",
                                           .name_space = "n",
                                           .name = "web",
                                           .user_agent = "fuzz" };

    FUZZ_REQUIRE(spec->verbs != 0 && (*spec->resources == '\0') != (*spec->path == '\0'));
    (void)kinf__fault_spec_selects(spec, &subject);
    subject.verb = KINF__N_FAULT_VERBS; /* of no line */
    FUZZ_REQUIRE(!kinf__fault_spec_selects(spec, &subject));
    FUZZ_REQUIRE(!kinf__fault_spec_is_due(spec, spec->skip, 0, how));
    FUZZ_REQUIRE(!kinf__fault_spec_is_due(spec, spec->skip + spec->every, spec->times, how));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned how = fuzz_take_byte(&data, &size);
    const uint8_t *line_end = size != 0 ? memchr(data, '\n', size) : NULL;
    size_t len = line_end != NULL ? (size_t)(line_end - data) : size;
    char *line = fuzz_text(data, len);
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__fault_spec spec;

    if (kinf__fault_spec_parse(line, &spec, &err) < 0) {
        FUZZ_REQUIRE(err.code == KINF_ERR_PARSE && err.message[0] != '\0');
    } else {
        FUZZ_REQUIRE(strcmp(spec.text, line) == 0);
        ask(&spec, how);
        if (line_end != NULL)
            send_through(&spec.effect, line_end + 1, size - len - 1, how);
    }
    free(line);
    return 0;
}
