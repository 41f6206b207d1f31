/*
 * The script's parser: one directive a line. Neighbours: request.c has the matchers, recording.c
 * the recorded answers; replay.c runs what comes out. Invariant: a written answer's head is made
 * when its exchange is complete, since headers may stand anywhere behind the status.
 */
#include "replay/script.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/error.h"
#include "replay/recording.h"

struct parser {
    struct replay__script *script;
    const char *transcripts_dir;
    struct kinf_error *err;
    unsigned line;

    /* of the exchange at hand */
    struct replay__exchange *exchange;
    bool is_written; /* it has a status line */
    bool is_ended;   /* its body is complete */
    bool is_over;    /* the connection is, or the stall without end has begun */
    struct kinf__buffer head;
    size_t head_action;
};

static int wrong(struct parser *parser, const char *what)
{
    return kinf__error_set(parser->err, KINF_ERR_PARSE, "script line %u: %s", parser->line, what);
}

/* For the many calls that can only run out of memory. */
static int need_memory(struct parser *parser, int failed)
{
    return failed < 0 ? kinf__error_no_memory(parser->err) : 0;
}

static bool parse_number(const char *text, uint64_t max, uint64_t *ret_number)
{
    char *end;
    unsigned long long number;

    if (*text < '0' || *text > '9')
        return false;
    number = strtoull(text, &end, 10);
    if (*end != '\0' || number > max)
        return false;
    *ret_number = number;
    return true;
}

/* Takes the first word off a text. */
static struct kinf_str take_word(const char **text)
{
    struct kinf_str word = { *text, strcspn(*text, " \t") };

    *text += word.len;
    *text += strspn(*text, " \t");
    return word;
}

static int add(struct parser *parser, struct replay__action action)
{
    return need_memory(parser, replay__response_add(&parser->exchange->response, action));
}

/* --- the exchange as a whole --- */

static int add_end_of_body(struct parser *parser)
{
    parser->is_ended = true;
    return need_memory(parser,
                       replay__response_send(&parser->exchange->response, KINF_STR("0\r\n\r\n")));
}

static int add_head(struct parser *parser)
{
    struct replay__response *response = &parser->exchange->response;
    struct replay__action *action = &response->actions[parser->head_action];
    const char *text = kinf__buffer_cstr(&parser->head);
    int failed = 0;

    if (text == NULL)
        return KINF_ERR_NO_MEMORY;
    if (strcasestr(text, "\r\nContent-Type:") == NULL)
        failed =
            kinf__buffer_append_str(&parser->head, KINF_STR("Content-Type: application/json\r\n"));
    if (failed < 0 ||
        kinf__buffer_append_str(&parser->head, KINF_STR("Transfer-Encoding: chunked\r\n\r\n")) < 0)
        return KINF_ERR_NO_MEMORY;
    action->start = response->wire.len;
    action->len = parser->head.len;
    return kinf__buffer_append_str(&response->wire, kinf__buffer_str(&parser->head));
}

static int complete_exchange(struct parser *parser)
{
    int failed = 0;

    if (parser->exchange == NULL)
        return 0;
    if (parser->exchange->matcher.path == NULL)
        return wrong(parser, "the exchange above has no match");
    if (parser->exchange->response.n_actions == 0)
        return wrong(parser, "the exchange above has no answer");
    if (parser->is_written) {
        if (!parser->is_ended && !parser->is_over)
            failed = add_end_of_body(parser);
        if (failed == 0)
            failed = need_memory(parser, add_head(parser));
    }
    parser->exchange = NULL;
    return failed;
}

static int parse_exchange(struct parser *parser, const char *text)
{
    struct kinf_str word = take_word(&text);
    uint64_t max_uses = 1;
    int failed = complete_exchange(parser);

    if (failed < 0)
        return failed;
    if (kinf_str_equal(word, KINF_STR("always")) && *text == '\0')
        max_uses = 0;
    else if (kinf_str_equal(word, KINF_STR("times"))) {
        if (!parse_number(text, UINT32_MAX, &max_uses) || max_uses == 0)
            return wrong(parser, "exchange times needs a number");
    } else if (word.len != 0 && (!kinf_str_equal(word, KINF_STR("once")) || *text != '\0'))
        return wrong(parser, "exchange is once, times N or always");
    parser->exchange = replay__script_add(parser->script);
    if (parser->exchange == NULL)
        return kinf__error_no_memory(parser->err);
    parser->exchange->max_uses = (size_t)max_uses;
    parser->is_written = parser->is_ended = parser->is_over = false;
    parser->head.len = 0;
    return 0;
}

static int parse_match(struct parser *parser, const char *text)
{
    int failed;

    if (parser->exchange->matcher.path != NULL)
        return wrong(parser, "the exchange has a match already");
    failed = replay__matcher_parse(&parser->exchange->matcher, text, parser->err);
    if (failed < 0)
        kinf__error_prefix(parser->err, "script line %u", parser->line);
    return failed;
}

static int parse_unlisted(struct parser *parser, const char *text)
{
    if (*text != '\0')
        return wrong(parser, "unlisted takes nothing");
    parser->exchange->is_unlisted = true;
    return 0;
}

/* --- heads --- */

static int parse_recorded(struct parser *parser, const char *text)
{
    int failed;

    if (parser->is_written)
        return wrong(parser, "an answer is written or recorded");
    failed = replay__recording_load(parser->transcripts_dir, text, &parser->exchange->response,
                                    parser->err);
    if (failed < 0)
        kinf__error_prefix(parser->err, "script line %u", parser->line);
    return failed;
}

static int parse_status(struct parser *parser, const char *text)
{
    KINF__AUTO_FREE char *code_text = NULL;
    struct kinf_str word = take_word(&text);
    uint64_t code;

    if ((code_text = strndup(word.bytes, word.len)) == NULL)
        return kinf__error_no_memory(parser->err);
    if (!parse_number(code_text, 999, &code) || parser->is_written)
        return wrong(parser, "status CODE [REASON], once an exchange");
    parser->is_written = true;
    parser->head_action = parser->exchange->response.n_actions;
    if (add(parser, (struct replay__action){ .type = REPLAY__SEND }) < 0)
        return KINF_ERR_NO_MEMORY;
    return need_memory(parser, replay__append_status_line(&parser->head, (int)code, text));
}

static int parse_header(struct parser *parser, const char *text)
{
    if (!parser->is_written || strchr(text, ':') == NULL)
        return wrong(parser, "header NAME: VALUE, behind the status");
    return need_memory(parser, kinf__buffer_printf(&parser->head, "%s\r\n", text));
}

/* --- bodies --- */

static int add_piece(struct parser *parser, struct kinf_str bytes)
{
    if (!parser->is_written || parser->is_ended)
        return wrong(parser, "a body stands between status and end");
    return need_memory(parser, replay__response_send_chunk(&parser->exchange->response, bytes));
}

/* Decodes \n \r \t \\ and \xHH in place. Returns false for any other backslash. */
static bool unescape(char *text, size_t *ret_len)
{
    static const char names[] = "nrt\\", values[] = "\n\r\t\\";
    char *out = text;
    unsigned byte;
    int n;

    for (const char *at = text; *at != '\0'; out++) {
        const char *name = at[0] == '\\' && at[1] != '\0' ? strchr(names, at[1]) : NULL;

        if (*at != '\\') {
            *out = *at++;
        } else if (name != NULL) {
            *out = values[name - names];
            at += 2;
        } else if (sscanf(at, "\\x%2x%n", &byte, &n) == 1 && n == 4) {
            *out = (char)byte;
            at += 4;
        } else {
            return false;
        }
    }
    *ret_len = (size_t)(out - text);
    return true;
}

static int add_text(struct parser *parser, const char *text, bool is_framed)
{
    KINF__AUTO_FREE char *bytes = strdup(text);
    struct kinf_str decoded = { bytes, 0 };

    if (bytes == NULL)
        return kinf__error_no_memory(parser->err);
    if (!unescape(bytes, &decoded.len))
        return wrong(parser, "a backslash stands before n, r, t, \\ or xHH");
    return is_framed
               ? add_piece(parser, decoded)
               : need_memory(parser, replay__response_send(&parser->exchange->response, decoded));
}

static int parse_piece(struct parser *parser, const char *text)
{
    return add_text(parser, text, true);
}

static int parse_raw(struct parser *parser, const char *text)
{
    return add_text(parser, text, false);
}

static int parse_event(struct parser *parser, const char *text)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;

    if (kinf__buffer_printf(&line, "%s\n", text) < 0)
        return kinf__error_no_memory(parser->err);
    return add_piece(parser, kinf__buffer_str(&line));
}

static int parse_fill(struct parser *parser, const char *text)
{
    KINF__AUTO_BUFFER bytes = KINF__BUFFER_INIT;
    struct kinf_str word = take_word(&text);
    KINF__AUTO_FREE char *number = strndup(word.bytes, word.len);
    uint64_t n;

    if (number == NULL)
        return kinf__error_no_memory(parser->err);
    if (!parse_number(number, 1U << 30, &n) || *text == '\0')
        return wrong(parser, "fill N TEXT");
    for (uint64_t i = 0; i < n; i++) {
        if (kinf__buffer_append_str(&bytes, kinf_str_from(text)) < 0)
            return kinf__error_no_memory(parser->err);
    }
    return add_piece(parser, kinf__buffer_str(&bytes));
}

/* Appends the Status of "CODE REASON MESSAGE". */
static int append_status_of(struct parser *parser, const char *text, struct kinf__buffer *object,
                            uint64_t *ret_code)
{
    struct kinf_str code = take_word(&text), reason = take_word(&text);
    char code_text[8], reason_text[64];

    snprintf(code_text, sizeof code_text, "%.*s", (int)code.len, code.bytes);
    snprintf(reason_text, sizeof reason_text, "%.*s", (int)reason.len, reason.bytes);
    if (!parse_number(code_text, 999, ret_code) || *text == '\0')
        return wrong(parser, "it takes CODE REASON MESSAGE");
    return need_memory(parser,
                       replay__append_status_object(object, (int)*ret_code, reason_text, text));
}

static int parse_error(struct parser *parser, const char *text)
{
    KINF__AUTO_BUFFER event = KINF__BUFFER_INIT;
    uint64_t code;
    int failed;

    if (kinf__buffer_append_str(&event, KINF_STR("{\"type\":\"ERROR\",\"object\":")) < 0)
        return kinf__error_no_memory(parser->err);
    failed = append_status_of(parser, text, &event, &code);
    if (failed < 0)
        return failed;
    if (kinf__buffer_append_str(&event, KINF_STR("}\n")) < 0)
        return kinf__error_no_memory(parser->err);
    return add_piece(parser, kinf__buffer_str(&event));
}

static int parse_failure(struct parser *parser, const char *text)
{
    KINF__AUTO_BUFFER object = KINF__BUFFER_INIT;
    char code_text[8];
    uint64_t code;
    int failed = append_status_of(parser, text, &object, &code);

    if (failed < 0)
        return failed;
    snprintf(code_text, sizeof code_text, "%u", (unsigned)code);
    failed = parse_status(parser, code_text);
    if (failed < 0)
        return failed;
    return add_piece(parser, kinf__buffer_str(&object));
}

/* --- what happens between and behind --- */

static int parse_wait(struct parser *parser, const char *text)
{
    uint64_t signal;

    if (!parse_number(text, REPLAY_MAX_SIGNAL, &signal) || signal == 0)
        return wrong(parser, "wait SIGNAL, from 1 to 15");
    return add(parser, (struct replay__action){ .type = REPLAY__WAIT, .signal = (unsigned)signal });
}

static int parse_end(struct parser *parser, const char *text)
{
    if (*text != '\0' || !parser->is_written || parser->is_ended)
        return wrong(parser, "end stands alone behind a written body");
    return add_end_of_body(parser);
}

static int add_ending(struct parser *parser, enum replay__action_type type)
{
    parser->is_over = true;
    return add(parser, (struct replay__action){ .type = type });
}

static int parse_stall(struct parser *parser, const char *text)
{
    uint64_t pause_ms;

    if (strcmp(text, "forever") == 0)
        return add_ending(parser, REPLAY__STALL);
    if (!parse_number(text, INT32_MAX, &pause_ms))
        return wrong(parser, "stall MS or stall forever");
    return add(parser,
               (struct replay__action){ .type = REPLAY__PAUSE, .pause_ms = (int64_t)pause_ms });
}

static int parse_cut(struct parser *parser, const char *text)
{
    return *text == '\0' ? add_ending(parser, REPLAY__CUT) : wrong(parser, "cut takes nothing");
}

static int parse_reset(struct parser *parser, const char *text)
{
    return *text == '\0' ? add_ending(parser, REPLAY__RESET) : wrong(parser, "reset takes nothing");
}

static int parse_after(struct parser *parser, const char *text)
{
    struct kinf_str word = take_word(&text);
    char number[24];
    uint64_t limit;

    snprintf(number, sizeof number, "%.*s", (int)word.len, word.bytes);
    if (!parse_number(number, SIZE_MAX - 1, &limit) || strcmp(text, "cut") != 0)
        return wrong(parser, "after BYTES cut");
    parser->exchange->response.wire_limit = (size_t)limit;
    return 0;
}

/* --- lines --- */

static const struct directive {
    const char *name;
    int (*parse)(struct parser *parser, const char *text);
    bool needs_exchange;
    bool adds_action;
} directives[] = {
    { "exchange", parse_exchange, false, false },
    { "match", parse_match, true, false },
    { "unlisted", parse_unlisted, true, false },
    { "after", parse_after, true, false },
    { "recorded", parse_recorded, true, true },
    { "status", parse_status, true, true },
    { "header", parse_header, true, false },
    { "piece", parse_piece, true, true },
    { "raw", parse_raw, true, true },
    { "event", parse_event, true, true },
    { "error", parse_error, true, true },
    { "failure", parse_failure, true, true },
    { "fill", parse_fill, true, true },
    { "stall", parse_stall, true, true },
    { "wait", parse_wait, true, true },
    { "end", parse_end, true, true },
    { "cut", parse_cut, true, true },
    { "reset", parse_reset, true, true },
};

static int parse_line(struct parser *parser, const char *line)
{
    struct kinf_str name = take_word(&line);

    for (size_t i = 0; i < KINF__ARRAY_LEN(directives); i++) {
        const struct directive *directive = &directives[i];

        if (!kinf_str_equal(name, kinf_str_from(directive->name)))
            continue;
        if (directive->needs_exchange && parser->exchange == NULL)
            return wrong(parser, "this stands in an exchange");
        if (directive->adds_action && parser->is_over)
            return wrong(parser, "nothing can follow the end of the connection");
        return directive->parse(parser, line);
    }
    return wrong(parser, "no such directive");
}

static int parse_lines(struct parser *parser, const char *text)
{
    int failed = 0;

    while (*text != '\0' && failed == 0) {
        size_t len = strcspn(text, "\n"), indent = strspn(text, " \t");
        KINF__AUTO_FREE char *line =
            indent < len ? strndup(text + indent, len - indent) : strdup("");

        if (line == NULL)
            return kinf__error_no_memory(parser->err);
        parser->line++;
        if (*line != '\0' && *line != '#')
            failed = parse_line(parser, line);
        text += len + (text[len] != '\0' ? 1 : 0);
    }
    return failed == 0 ? complete_exchange(parser) : failed;
}

/* --- scripts --- */

static void exchange_release(struct replay__exchange *exchange)
{
    replay__matcher_release(&exchange->matcher);
    replay__response_release(&exchange->response);
}

void replay__script_release(struct replay__script *script)
{
    for (size_t i = 0; i < script->n_exchanges; i++)
        exchange_release(&script->exchanges[i]);
    free(script->exchanges);
    *script = (struct replay__script)REPLAY__SCRIPT_INIT;
}

struct replay__exchange *replay__script_add(struct replay__script *script)
{
    struct replay__exchange *exchanges =
        realloc(script->exchanges, (script->n_exchanges + 1) * sizeof *exchanges);

    if (exchanges == NULL)
        return NULL;
    script->exchanges = exchanges;
    exchanges[script->n_exchanges] = (struct replay__exchange){ .response = REPLAY__RESPONSE_INIT };
    return &exchanges[script->n_exchanges++];
}

int replay__script_parse(struct replay__script *script, const char *text,
                         const char *transcripts_dir, struct kinf_error *err)
{
    struct parser parser = { .script = script, .transcripts_dir = transcripts_dir, .err = err };
    int failed = parse_lines(&parser, text);

    kinf__buffer_release(&parser.head);
    return failed;
}
