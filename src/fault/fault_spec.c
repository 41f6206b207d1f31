/*
 * Reading lines of faults, and asking them. Neighbours: fault.c keeps them, fault_answer.c and
 * fault_stream.c do what they say.
 */
#include "fault/fault_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/duration.h"
#include "base/error.h"

#define MEMBER_BYTES 1000 /* of gzip, by default */
#define GROW_MAX     (256u << 20)

#define BIT(verb) (1u << (verb))
#define WATCHES   (BIT(KINF__FAULT_WATCH) | BIT(KINF__FAULT_WATCH_LIST))
#define READS     (BIT(KINF__FAULT_GET) | BIT(KINF__FAULT_LIST) | WATCHES)
#define ALL       (BIT(KINF__N_FAULT_VERBS) - 1)
#define WRITES    (ALL & ~READS)

/* What stands behind the word of a fault. */
enum argument {
    ARGUMENT_NONE,
    ARGUMENT_TIME, /* or nothing: for ever */
    ARGUMENT_CODE, /* or nothing: 410 */
    ARGUMENT_BYTES,
    ARGUMENT_MEMBER, /* bytes, or nothing: MEMBER_BYTES */
    ARGUMENT_PACE,
    ARGUMENT_SHAPE,
};

/* What a fault takes beside that. */
enum {
    TAKES_BYTES = 1, /* after= */
    TAKES_EVENTS = 2,
    TAKES_MS = 4,
    TAKES_PLACE = TAKES_BYTES | TAKES_EVENTS | TAKES_MS,
    TAKES_FORM = 8, /* as=, retry-after= */
    TAKES_LATE = 16,
    TAKES_EARLY = 32,
};

struct word {
    const char *word;
    enum kinf__fault_kind kind;
    enum argument argument;
    unsigned takes;
    unsigned verbs; /* that it is for */
};

static const struct word code_word = { "CODE", KINF__FAULT_CODE, ARGUMENT_NONE,
                                       TAKES_FORM | TAKES_LATE, ALL };

static const struct word words[] = {
    { "login", KINF__FAULT_LOGIN, ARGUMENT_NONE, TAKES_LATE, ALL },
    { "hang", KINF__FAULT_HANG, ARGUMENT_TIME, TAKES_LATE, ALL },
    { "refuse", KINF__FAULT_REFUSE, ARGUMENT_SHAPE, 0, BIT(KINF__FAULT_WATCH_LIST) },
    { "reset", KINF__FAULT_RESET, ARGUMENT_NONE, TAKES_PLACE | TAKES_EARLY, ALL },
    { "cut", KINF__FAULT_CUT, ARGUMENT_NONE, TAKES_PLACE | TAKES_EARLY, ALL },
    { "close", KINF__FAULT_CLOSE, ARGUMENT_NONE, TAKES_PLACE, ALL },
    { "truncate", KINF__FAULT_CLOSE, ARGUMENT_NONE, TAKES_BYTES, ALL },
    { "stall", KINF__FAULT_STALL, ARGUMENT_TIME, TAKES_PLACE, ALL },
    { "drip", KINF__FAULT_DRIP, ARGUMENT_PACE, 0, ALL },
    { "flip", KINF__FAULT_FLIP, ARGUMENT_NONE, TAKES_BYTES, ALL },
    { "gzip", KINF__FAULT_GZIP, ARGUMENT_MEMBER, 0, ALL },
    { "empty", KINF__FAULT_EMPTY, ARGUMENT_NONE, 0, BIT(KINF__FAULT_LIST) },
    { "grow", KINF__FAULT_GROW, ARGUMENT_BYTES, 0, BIT(KINF__FAULT_LIST) | BIT(KINF__FAULT_GET) },
    { "twice", KINF__FAULT_TWICE, ARGUMENT_NONE, 0, WATCHES },
    { "bookmark", KINF__FAULT_BOOKMARK, ARGUMENT_SHAPE, 0, WATCHES },
    { "error", KINF__FAULT_ERROR, ARGUMENT_CODE, TAKES_EVENTS | TAKES_MS, WATCHES },
};

static const struct {
    enum kinf__fault_kind kind;
    const char *word;
    enum kinf__fault_shape shape;
} shapes[] = {
    { KINF__FAULT_REFUSE, "422", KINF__FAULT_GATE_OFF },
    { KINF__FAULT_REFUSE, "old", KINF__FAULT_OLD_SERVER },
    { KINF__FAULT_REFUSE, "400", KINF__FAULT_BAD_REQUEST },
    { KINF__FAULT_REFUSE, "403", KINF__FAULT_FORBIDDEN },
    { KINF__FAULT_REFUSE, "500", KINF__FAULT_OLD_ETCD },
    { KINF__FAULT_REFUSE, "ignored", KINF__FAULT_IGNORED },
    { KINF__FAULT_REFUSE, "endless", KINF__FAULT_ENDLESS },
    { KINF__FAULT_BOOKMARK, "twice", KINF__FAULT_BOOKMARK_TWICE },
    { KINF__FAULT_BOOKMARK, "old", KINF__FAULT_BOOKMARK_OLD },
    { KINF__FAULT_BOOKMARK, "none", KINF__FAULT_BOOKMARK_NONE },
};

static const char *const verb_words[] = {
#define X(verb, word) word,
    KINF__FAULT_VERBS(X)
#undef X
};

const char *kinf__fault_verb_to_string(enum kinf__fault_verb verb)
{
    return verb_words[verb];
}

/* --- values --- */

/* Returns what is behind the digits; NULL: there are none, or too many. */
static const char *read_number(const char *text, uint64_t *ret_number)
{
    size_t n_digits = strspn(text, "0123456789");

    errno = 0;
    *ret_number = strtoull(text, NULL, 10);
    return n_digits != 0 && errno == 0 ? text + n_digits : NULL;
}

static bool read_whole_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number)
{
    const char *end = read_number(text, ret_number);

    return end != NULL && *end == '\0' && *ret_number >= min && *ret_number <= max;
}

/* "4000", "64K", "5M". */
static bool read_bytes(const char *text, uint64_t *ret_bytes)
{
    uint64_t number;
    const char *end = read_number(text, &number);
    unsigned shift = 0;

    if (end == NULL || number > UINT32_MAX)
        return false;
    if (*end == 'K' || *end == 'M')
        shift = *end++ == 'K' ? 10 : 20;
    *ret_bytes = number << shift;
    return *end == '\0';
}

static bool read_time(const char *text, int64_t *ret_ms)
{
    return text != NULL && kinf__duration_parse(text, ret_ms) && *ret_ms >= 0;
}

static bool read_code(const char *text, int *ret_code)
{
    uint64_t code;

    if (!read_whole_number(text, 300, 599, &code))
        return false;
    *ret_code = (int)code;
    return true;
}

/* "10/100ms" */
static bool read_pace(const char *text, struct kinf__fault_effect *effect)
{
    const char *slash = read_number(text, &effect->n_bytes);

    return slash != NULL && *slash == '/' && effect->n_bytes != 0 &&
           effect->n_bytes <= UINT32_MAX && read_time(slash + 1, &effect->time_ms);
}

static bool read_shape(const char *text, struct kinf__fault_effect *effect)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(shapes); i++) {
        if (shapes[i].kind == effect->kind && strcmp(shapes[i].word, text) == 0) {
            effect->shape = shapes[i].shape;
            return true;
        }
    }
    return false;
}

/* Bytes, "3events" or "1event", or a time. */
static bool read_place(const char *text, unsigned takes, struct kinf__fault_effect *effect)
{
    const char *end = read_number(text, &effect->after);
    int64_t time_ms;

    effect->unit = KINF__FAULT_EVENTS;
    if (end != NULL && (strcmp(end, "events") == 0 || strcmp(end, "event") == 0))
        return (takes & TAKES_EVENTS) != 0;
    effect->unit = KINF__FAULT_BYTES;
    /* Nothing is the same in each unit. */
    if (read_bytes(text, &effect->after))
        return (takes & TAKES_BYTES) != 0 || (takes != 0 && effect->after == 0);
    effect->unit = KINF__FAULT_MS;
    if (!read_time(text, &time_ms))
        return false;
    effect->after = (uint64_t)time_ms;
    return (takes & TAKES_MS) != 0;
}

/* --- the fault --- */

static bool read_argument(const struct word *word, const char *text,
                          struct kinf__fault_effect *effect)
{
    switch (word->argument) {
    case ARGUMENT_NONE:
        return text == NULL;
    case ARGUMENT_TIME:
        return text == NULL || read_time(text, &effect->time_ms);
    case ARGUMENT_CODE:
        return text == NULL || read_code(text, &effect->code);
    case ARGUMENT_BYTES:
        return text != NULL && read_bytes(text, &effect->n_bytes) && effect->n_bytes <= GROW_MAX;
    case ARGUMENT_MEMBER:
        return text == NULL || (read_bytes(text, &effect->n_bytes) && effect->n_bytes != 0);
    case ARGUMENT_PACE:
        return text != NULL && read_pace(text, effect);
    case ARGUMENT_SHAPE:
        return text != NULL && read_shape(text, effect);
    }
    return false;
}

/* Cuts "name=value" in two; NULL: there is no value. */
static char *split_value(char *text)
{
    char *equals = strchr(text, '=');

    if (equals == NULL)
        return NULL;
    *equals = '\0';
    return equals + 1;
}

static const struct word *find_word(const char *text)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(words); i++) {
        if (strcmp(words[i].word, text) == 0)
            return &words[i];
    }
    return NULL;
}

static int read_fault(struct kinf__fault_spec *spec, char *text, const struct word **ret_word,
                      struct kinf_error *err)
{
    struct kinf__fault_effect *effect = &spec->effect;
    char *value = split_value(text);

    *effect = (struct kinf__fault_effect){ .code = 410,
                                           .n_bytes = MEMBER_BYTES,
                                           .time_ms = KINF__NEVER_MS };
    *ret_word = value == NULL && read_code(text, &effect->code) ? &code_word : find_word(text);
    if (*ret_word == NULL)
        return kinf__error_set(err, KINF_ERR_PARSE, "there is no fault \"%s\"", text);
    effect->kind = (*ret_word)->kind;
    if (!read_argument(*ret_word, value, effect))
        return kinf__error_set(err, KINF_ERR_PARSE, "fault %s: %s%s", text,
                               value != NULL ? "not with " : "a value is missing",
                               value != NULL ? value : "");
    if ((spec->verbs & (*ret_word)->verbs) == 0)
        return kinf__error_set(err, KINF_ERR_PARSE, "fault %s: not of these verbs", text);
    spec->verbs &= (*ret_word)->verbs;
    return 0;
}

/* --- selection --- */

static bool equals(const char *text, size_t len, const char *other)
{
    return strlen(other) == len && memcmp(text, other, len) == 0;
}

static unsigned verbs_of(const char *word, size_t len)
{
    static const struct {
        const char *word;
        unsigned verbs;
    } known[] = { { "*", ALL },        { "any", ALL },       { "read", READS },
                  { "write", WRITES }, { "watch", WATCHES },
#define X(verb, verb_word) { verb_word, BIT(verb) },
                  KINF__FAULT_VERBS(X)
#undef X
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(known); i++) {
        if (equals(word, len, known[i].word))
            return known[i].verbs;
    }
    return 0;
}

static int read_verbs(struct kinf__fault_spec *spec, const char *text, struct kinf_error *err)
{
    for (;; text++) {
        size_t len = strcspn(text, ",");
        unsigned verbs = verbs_of(text, len);

        if (verbs == 0)
            return kinf__error_set(err, KINF_ERR_PARSE, "there is no verb \"%.*s\"", (int)len,
                                   text);
        spec->verbs |= verbs;
        text += len;
        if (*text == '\0')
            return 0;
    }
}

static int read_resources(struct kinf__fault_spec *spec, char *text, struct kinf_error *err)
{
    if (strncmp(text, "path=/", 6) == 0) {
        spec->path = text + 5;
        return 0;
    }
    if (strchr(text, '=') != NULL || strspn(text, ",!") != 0 || strstr(text, ",,") != NULL ||
        text[strlen(text) - 1] == ',')
        return kinf__error_set(err, KINF_ERR_PARSE, "\"%s\" is no list of resources", text);
    spec->resources = text;
    return 0;
}

/* --- options --- */

/* Those of the fault; 1: it is none of them. */
static int read_fault_option(struct kinf__fault_spec *spec, const struct word *word,
                             const char *name, const char *value)
{
    struct kinf__fault_effect *effect = &spec->effect;
    uint64_t number;

    if (strcmp(name, "late") == 0) {
        effect->is_late = true;
        return value == NULL && (word->takes & TAKES_LATE) != 0 ? 0 : KINF_ERR_PARSE;
    }
    if (strcmp(name, "early") == 0) {
        effect->is_early = true;
        return value == NULL && (word->takes & TAKES_EARLY) != 0 ? 0 : KINF_ERR_PARSE;
    }
    if (value == NULL)
        return KINF_ERR_PARSE;
    if (strcmp(name, "after") == 0 || strcmp(name, "at") == 0)
        return read_place(value, word->takes & TAKES_PLACE, effect) ? 0 : KINF_ERR_PARSE;
    if (strcmp(name, "retry-after") == 0) {
        if (!read_whole_number(value, 1, 86400, &number))
            return KINF_ERR_PARSE;
        effect->retry_after_s = (unsigned)number;
        return (word->takes & TAKES_FORM) != 0 ? 0 : KINF_ERR_PARSE;
    }
    if (strcmp(name, "as") != 0)
        return 1;
    effect->form = strcmp(value, "html") == 0   ? KINF__FAULT_AS_HTML
                   : strcmp(value, "text") == 0 ? KINF__FAULT_AS_TEXT
                                                : KINF__FAULT_AS_JSON;
    return (word->takes & TAKES_FORM) != 0 &&
                   (effect->form != KINF__FAULT_AS_JSON || strcmp(value, "json") == 0)
               ? 0
               : KINF_ERR_PARSE;
}

static int read_probability(const char *value, double *ret_p)
{
    char *end;

    *ret_p = strtod(value, &end);
    return strspn(value, "0123456789.") == strlen(value) && end != value && *end == '\0' &&
                   *ret_p <= 1
               ? 0
               : KINF_ERR_PARSE;
}

/* Those of selection and number; 1: it is none of them. */
static int read_option(struct kinf__fault_spec *spec, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **text;
        uint64_t *number;
        uint64_t min;
    } places[] = {
        { "namespace", &spec->name_space, NULL, 0 },  { "name", &spec->name, NULL, 0 },
        { "user-agent", &spec->user_agent, NULL, 0 }, { "skip", NULL, &spec->skip, 0 },
        { "every", NULL, &spec->every, 1 },           { "times", NULL, &spec->times, 1 },
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(places); i++) {
        if (strcmp(places[i].name, name) != 0)
            continue;
        if (places[i].number != NULL)
            return read_whole_number(value, places[i].min, UINT64_MAX - 1, places[i].number)
                       ? 0
                       : KINF_ERR_PARSE;
        *places[i].text = value;
        return *value != '\0' ? 0 : KINF_ERR_PARSE;
    }
    if (strcmp(name, "p") == 0)
        return read_probability(value, &spec->p);
    if (strcmp(name, "for") == 0)
        return read_time(value, &spec->for_ms) ? 0 : KINF_ERR_PARSE;
    return 1;
}

static int read_options(struct kinf__fault_spec *spec, const struct word *word, char **rest,
                        struct kinf_error *err)
{
    char *name;

    while ((name = strtok_r(NULL, " \t", rest)) != NULL) {
        char *value = split_value(name);
        int failed = read_fault_option(spec, word, name, value);

        if (failed == 1)
            failed = read_option(spec, name, value);
        if (failed == 0)
            continue;
        if (failed == 1)
            return kinf__error_set(err, KINF_ERR_PARSE, "there is no option \"%s\"", name);
        return kinf__error_set(err, KINF_ERR_PARSE, "fault %s: not with %s%s%s", word->word, name,
                               value != NULL ? "=" : "", value != NULL ? value : "");
    }
    return 0;
}

/* --- lines --- */

static int parse_words(struct kinf__fault_spec *spec, struct kinf_error *err)
{
    char *rest = NULL;
    char *verbs = strtok_r(spec->words, " \t", &rest);
    char *resources = verbs != NULL ? strtok_r(NULL, " \t", &rest) : NULL;
    char *fault = resources != NULL ? strtok_r(NULL, " \t", &rest) : NULL;
    const struct word *word = NULL;
    int failed;

    if (fault == NULL)
        return kinf__error_set(err, KINF_ERR_PARSE, "a fault is: VERBS RESOURCES FAULT");
    if ((failed = read_verbs(spec, verbs, err)) < 0 ||
        (failed = read_resources(spec, resources, err)) < 0 ||
        (failed = read_fault(spec, fault, &word, err)) < 0)
        return failed;
    return read_options(spec, word, &rest, err);
}

int kinf__fault_spec_parse(const char *text, struct kinf__fault_spec *ret_spec,
                           struct kinf_error *err)
{
    *ret_spec = (struct kinf__fault_spec){
        .resources = "",
        .path = "",
        .name_space = "",
        .name = "",
        .user_agent = "",
        .every = 1,
        .times = UINT64_MAX,
        .p = 1,
        .for_ms = KINF__NEVER_MS,
    };
    if (strlen(text) >= sizeof ret_spec->text)
        return kinf__error_set(err, KINF_ERR_PARSE, "a fault has %d bytes at most",
                               KINF__FAULT_SPEC_SIZE - 1);
    memcpy(ret_spec->text, text, strlen(text) + 1);
    memcpy(ret_spec->words, text, strlen(text) + 1);
    return parse_words(ret_spec, err);
}

/* --- asking --- */

/* "pods", "*.apps", without what is behind the slash. */
static bool is_of_type(const char *word, size_t len, const struct kinf__fault_subject *subject)
{
    const char *dot = memchr(word, '.', len);
    size_t name_len = dot != NULL ? (size_t)(dot - word) : len;

    if (!equals(word, name_len, "*") && !equals(word, name_len, subject->resource))
        return false;
    return dot == NULL || equals(dot + 1, len - name_len - 1, subject->group);
}

static bool is_resource(const char *word, size_t len, const struct kinf__fault_subject *subject)
{
    const char *slash = memchr(word, '/', len), *below;
    size_t below_len;

    if (slash == NULL)
        return (*subject->subresource == '\0' || equals(word, len, "*")) &&
               is_of_type(word, len, subject);
    below = slash + 1;
    below_len = len - (size_t)(below - word);
    if (!is_of_type(word, (size_t)(slash - word), subject))
        return false;
    if (*subject->subresource == '\0')
        return *subject->name != '\0' && equals(below, below_len, subject->name);
    return equals(below, below_len, "*") || equals(below, below_len, subject->subresource);
}

static bool is_one_of(const char *resources, const struct kinf__fault_subject *subject)
{
    bool is = false;

    if (*subject->resource == '\0')
        return false;
    for (;; resources++) {
        bool is_taken_away = *resources == '!';
        size_t len = strcspn(resources += is_taken_away, ",");

        if (is_resource(resources, len, subject))
            is = !is_taken_away;
        resources += len;
        if (*resources == '\0')
            return is;
    }
}

static bool is_any_or(const char *wanted, const char *text)
{
    return *wanted == '\0' || strcmp(wanted, text) == 0;
}

bool kinf__fault_spec_selects(const struct kinf__fault_spec *spec,
                              const struct kinf__fault_subject *subject)
{
    if ((spec->verbs & BIT(subject->verb)) == 0 ||
        !is_any_or(spec->name_space, subject->name_space) ||
        !is_any_or(spec->name, subject->name) ||
        strstr(subject->user_agent, spec->user_agent) == NULL)
        return false;
    if (*spec->path != '\0')
        return strncmp(subject->path, spec->path, strlen(spec->path)) == 0;
    return is_one_of(spec->resources, subject);
}

/* splitmix64's last step. */
static uint64_t scatter(uint64_t number)
{
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

bool kinf__fault_spec_is_due(const struct kinf__fault_spec *spec, uint64_t n, uint64_t n_hits,
                             uint64_t seed)
{
    if (n_hits >= spec->times || n <= spec->skip || (n - spec->skip) % spec->every != 0)
        return false;
    /* By the number alone: who asks in between changes nothing. */
    return spec->p >= 1 || (double)(scatter(scatter(seed) + n) >> 11) * 0x1p-53 < spec->p;
}
