/*
 * Patterns: translates Go's syntax to that of regcomp(3). Neighbours: schema_validate.c asks.
 *
 * POSIX differs in \d and its like, in escapes inside brackets, in lazy repetition (which does not
 * change whether there is a match), and in having back references, which are refused. Matching takes
 * room and time by the size of the pattern with its repetitions written out, so both that and the
 * text are bounded. Bytes count, not characters.
 */
#include "document/schema_priv.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define MAX_COST   1000
#define MAX_GROUPS 50
#define MAX_TEXT   8192

#define DIGITS "0-9"
#define WORDS  "A-Za-z0-9_"
#define BLANKS " \t\n\f\r"

struct kinf__pattern {
    regex_t regex;
};

struct translation {
    const char *at;
    struct kinf__buffer out;
    bool is_refused;
    bool is_out_of_memory;
    /* What it costs: of the last atom, of the sequence since the last "(", of those around. */
    unsigned last, sum;
    unsigned sums[MAX_GROUPS];
    size_t n_groups;
};

static void put_into(struct translation *t, struct kinf__buffer *out, const char *text, size_t len)
{
    if (kinf__buffer_append(out, text, len) < 0)
        t->is_out_of_memory = true;
}

static void put(struct translation *t, const char *text, size_t len)
{
    put_into(t, &t->out, text, len);
}

static void put_text(struct translation *t, const char *text)
{
    put(t, text, strlen(text));
}

static void add_cost(struct translation *t, unsigned cost)
{
    t->last = cost;
    t->sum += cost;
    t->is_refused |= t->sum > MAX_COST;
}

/* The last atom becomes so many of them. */
static void multiply_cost(struct translation *t, unsigned times)
{
    unsigned before = t->last;

    t->sum -= before;
    add_cost(t, before * (times != 0 ? times : 1));
}

/* The set that \d, \w, \s stand for; NULL: another letter. */
static const char *class_of(char c)
{
    return c == 'd' ? DIGITS : c == 'w' ? WORDS : c == 's' ? BLANKS : NULL;
}

/* The character that an escape stands for; 0: none that is known here. */
static char escaped(char c)
{
    static const char names[] = "tnrfav", values[] = "\t\n\r\f\a\v";
    const char *name = c != '\0' ? strchr(names, c) : NULL;

    if (name != NULL)
        return values[name - names];
    return strchr("!\"#%&',-/:;<=>@_`~.[]\\()*+?{}|^$ ", c) != NULL ? c : '\0';
}

/* --- brackets --- */

struct bracket {
    struct kinf__buffer body;
    bool has_close, has_open, has_caret, has_dash; /* where they mean nothing else: at the ends */
};

static void put_plain(struct translation *t, struct bracket *bracket, char c)
{
    bool *const flag = c == ']'   ? &bracket->has_close
                       : c == '[' ? &bracket->has_open
                       : c == '^' ? &bracket->has_caret
                       : c == '-' ? &bracket->has_dash
                                  : NULL;

    if (flag != NULL)
        *flag = true;
    else
        put_into(t, &bracket->body, &c, 1);
}

static void read_escape_inside(struct translation *t, struct bracket *bracket)
{
    const char *class = class_of(t->at[1]);

    if (class != NULL)
        put_into(t, &bracket->body, class, strlen(class));
    else if (escaped(t->at[1]) != '\0')
        put_plain(t, bracket, escaped(t->at[1]));
    else
        t->is_refused = true;
    t->at += t->at[1] != '\0' ? 2 : 1;
}

/* "a-z": both ends are plain. */
static bool is_range(const char *at)
{
    return at[1] == '-' && at[2] != ']' && at[2] != '\\' && at[2] != '[' && at[2] != '\0';
}

static void read_member(struct translation *t, struct bracket *bracket)
{
    size_t len = 1;

    if (*t->at == '\\') {
        read_escape_inside(t, bracket);
        return;
    }
    if (strncmp(t->at, "[:", 2) == 0) {
        const char *end = strstr(t->at, ":]");

        t->is_refused |= end == NULL;
        len = end != NULL ? (size_t)(end + 2 - t->at) : 1;
        put_into(t, &bracket->body, t->at, len);
    } else if (is_range(t->at)) {
        len = 3;
        put_into(t, &bracket->body, t->at, len);
    } else {
        put_plain(t, bracket, *t->at);
    }
    t->at += len;
}

static void write_bracket(struct translation *t, const struct bracket *bracket, bool is_negated)
{
    bool has_only_caret = bracket->has_caret && bracket->body.len == 0 && !bracket->has_close &&
                          !bracket->has_open && !is_negated;

    if (has_only_caret && !bracket->has_dash) {
        put_text(t, "\\^");
        return;
    }
    put_text(t, is_negated ? "[^" : "[");
    put_text(t, bracket->has_close ? "]" : "");
    put(t, bracket->body.bytes != NULL ? bracket->body.bytes : "", bracket->body.len);
    put_text(t, bracket->has_open ? "[" : "");
    /* In front of nothing else, the dash may come first and keeps the caret from negating. */
    put_text(t, has_only_caret ? "-^" : bracket->has_caret ? "^" : "");
    put_text(t, bracket->has_dash && !has_only_caret ? "-]" : "]");
}

static void read_bracket(struct translation *t)
{
    struct bracket bracket = { .body = KINF__BUFFER_INIT };
    bool is_negated = t->at[1] == '^';
    const char *begin;

    t->at += is_negated ? 2 : 1;
    begin = t->at;
    while (*t->at != '\0' && (*t->at != ']' || t->at == begin))
        read_member(t, &bracket);
    t->is_refused |= *t->at == '\0';
    if (!t->is_refused) {
        t->at++;
        write_bracket(t, &bracket, is_negated);
        add_cost(t, 1);
    }
    kinf__buffer_release(&bracket.body);
}

/* --- outside of them --- */

static void read_escape(struct translation *t)
{
    char c = t->at[1], lower = (char)(c | 0x20), plain = escaped(c);
    const char *class = class_of(lower);

    t->at += c != '\0' ? 2 : 1;
    add_cost(t, 1);
    if (class != NULL) {
        put_text(t, c == lower ? "[" : "[^");
        put_text(t, class);
        put_text(t, "]");
    } else if (c == 'A' || c == 'z') {
        put_text(t, c == 'A' ? "^" : "$");
    } else if (plain != '\0') {
        put(t, "\\", strchr(".[\\()*+?{|^$", plain) != NULL ? 1 : 0);
        put(t, &plain, 1);
    } else {
        t->is_refused = true;
    }
}

static void open_group(struct translation *t)
{
    t->at++;
    if (strncmp(t->at, "?:", 2) == 0)
        t->at += 2;
    else if (strncmp(t->at, "?P<", 3) == 0 || strncmp(t->at, "?<", 2) == 0)
        t->at += strcspn(t->at, ">") + (strchr(t->at, '>') != NULL);
    t->is_refused |= *t->at == '?' || t->n_groups == MAX_GROUPS;
    if (t->is_refused)
        return;
    t->sums[t->n_groups++] = t->sum;
    t->sum = 0;
    put_text(t, "(");
}

static void close_group(struct translation *t)
{
    unsigned inner = t->sum;

    t->at++;
    if (t->n_groups == 0) {
        t->is_refused = true;
        return;
    }
    t->sum = t->sums[--t->n_groups];
    add_cost(t, inner + 1);
    put_text(t, ")");
}

/* Repetition that is lazy finds less, but finds. */
static void skip_lazy(struct translation *t)
{
    t->at += *t->at == '?';
}

/* "{1,3}"; or a brace that is one. */
static void read_count(struct translation *t)
{
    char *end;
    unsigned long count = strtoul(t->at + 1, &end, 10);
    bool is_count = t->at[1] >= '0' && t->at[1] <= '9';

    if (is_count && *end == ',') {
        const char *second = end + 1;
        unsigned long limit = strtoul(second, &end, 10);

        is_count = (*second >= '0' && *second <= '9') || *second == '}';
        count = limit > count ? limit : count + 1;
    }
    if (!is_count || *end != '}') {
        put_text(t, "\\{");
        t->at++;
        add_cost(t, 1);
        return;
    }
    t->is_refused |= count > MAX_COST;
    if (t->is_refused)
        return;
    multiply_cost(t, (unsigned)count);
    put(t, t->at, (size_t)(end + 1 - t->at));
    t->at = end + 1;
    skip_lazy(t);
}

static void read_item(struct translation *t)
{
    switch (*t->at) {
    case '\\':
        read_escape(t);
        break;
    case '[':
        read_bracket(t);
        break;
    case '(':
        open_group(t);
        break;
    case ')':
        close_group(t);
        break;
    case '{':
        read_count(t);
        break;
    case '.':
        put_text(t, "[^\n]");
        add_cost(t, 1);
        t->at++;
        break;
    case '*':
    case '+':
    case '?':
        /* "a+" is compiled as "aa*". */
        multiply_cost(t, *t->at == '+' ? 2 : 1);
        put(t, t->at++, 1);
        skip_lazy(t);
        break;
    default:
        put(t, t->at++, 1);
        add_cost(t, 1);
    }
}

/* Whether there is a translation. */
static bool translate(struct translation *t)
{
    while (!t->is_refused && !t->is_out_of_memory && *t->at != '\0')
        read_item(t);
    if (kinf__buffer_cstr(&t->out) == NULL)
        t->is_out_of_memory = true;
    return !t->is_refused && !t->is_out_of_memory && t->n_groups == 0;
}

static int compile(const char *text, struct kinf__pattern **ret_pattern)
{
    struct kinf__pattern *pattern = calloc(1, sizeof *pattern);
    int failed;

    if (pattern == NULL)
        return KINF_ERR_NO_MEMORY;
    failed = regcomp(&pattern->regex, text, REG_EXTENDED | REG_NOSUB);
    if (failed == 0) {
        *ret_pattern = pattern;
        return 0;
    }
    free(pattern);
    return failed == REG_ESPACE ? KINF_ERR_NO_MEMORY : 0;
}

int kinf__pattern_new(const char *text, struct kinf__pattern **ret_pattern)
{
    struct translation t = { .at = text };
    int failed = 0;

    *ret_pattern = NULL;
    if (translate(&t))
        failed = compile(t.out.bytes, ret_pattern);
    else if (t.is_out_of_memory)
        failed = KINF_ERR_NO_MEMORY;
    kinf__buffer_release(&t.out);
    return failed;
}

void kinf__pattern_free(struct kinf__pattern *pattern)
{
    if (pattern == NULL)
        return;
    regfree(&pattern->regex);
    free(pattern);
}

bool kinf__pattern_matches(const struct kinf__pattern *pattern, const char *text)
{
    if (strnlen(text, MAX_TEXT + 1) > MAX_TEXT)
        return true;
    return regexec(&pattern->regex, text, 0, NULL, 0) == 0;
}
