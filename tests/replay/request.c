/*
 * Request heads and matchers. Neighbours: connection.c reads the heads, script.c the matchers.
 */
#include "replay/request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/error.h"

/* Longer than any continue token. */
#define VALUE_SIZE 8192

/* --- a request --- */

int replay__request_init(struct replay_request *ret_request, struct kinf_str head)
{
    const char *line_end = memmem(head.bytes, head.len, "\r\n", 2);
    size_t line_len = line_end != NULL ? (size_t)(line_end - head.bytes) : 0;
    KINF__AUTO_FREE char *line = malloc(head.len + 1);

    if (line == NULL)
        return KINF_ERR_NO_MEMORY;
    memcpy(line, head.bytes, head.len);
    line[line_len] = '\0';
    line[head.len - 2] = '\0';
    if (strchr(line, ' ') == NULL || strchr(line, ' ') == strrchr(line, ' '))
        return KINF_ERR_PARSE;
    *ret_request = (struct replay_request){ .headers = line + line_len + 2 };
    ret_request->line = KINF__TAKE(line);
    return 0;
}

/* One allocation has line and headers. */
void replay__request_release(struct replay_request *request)
{
    free((char *)request->line);
    free((char *)request->body);
}

static struct kinf_str target_of(const struct replay_request *request)
{
    const char *start = strchr(request->line, ' ') + 1;

    return (struct kinf_str){ start, (size_t)(strrchr(request->line, ' ') - start) };
}

struct kinf_str replay__request_path(const struct replay_request *request)
{
    struct kinf_str target = target_of(request);
    const char *query = memchr(target.bytes, '?', target.len);

    if (query != NULL)
        target.len = (size_t)(query - target.bytes);
    return target;
}

static void copy_cut(struct kinf_str text, char *out, size_t size)
{
    snprintf(out, size, "%.*s", (int)text.len, text.bytes);
}

bool replay_request_header(const struct replay_request *request, const char *name, char *value,
                           size_t size)
{
    size_t name_len = strlen(name);

    for (const char *at = request->headers; *at != '\0'; at += strcspn(at, "\n") + 1) {
        size_t len = strcspn(at, "\r\n");

        if (strncasecmp(at, name, name_len) == 0 && at[name_len] == ':') {
            size_t skipped = name_len + 1 + strspn(at + name_len + 1, " \t");

            copy_cut((struct kinf_str){ at + skipped, len - skipped }, value, size);
            return true;
        }
        if (at[len] == '\0' || strchr(at, '\n') == NULL)
            break;
    }
    return false;
}

bool replay__request_says(const struct replay_request *request, const char *name, const char *word)
{
    char value[VALUE_SIZE];

    return replay_request_header(request, name, value, sizeof value) &&
           strcasestr(value, word) != NULL;
}

static int hex(char digit)
{
    const char *digits = "0123456789abcdef", *at = strchr(digits, digit | 0x20);

    return digit != '\0' && at != NULL ? (int)(at - digits) : -1;
}

static void decode(struct kinf_str text, char *out, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len && len + 1 < size; i++) {
        char byte = text.bytes[i];

        if (byte == '+') {
            byte = ' ';
        } else if (byte == '%' && i + 2 < text.len && hex(text.bytes[i + 1]) >= 0 &&
                   hex(text.bytes[i + 2]) >= 0) {
            byte = (char)(hex(text.bytes[i + 1]) << 4 | hex(text.bytes[i + 2]));
            i += 2;
        }
        out[len++] = byte;
    }
    out[len] = '\0';
}

bool replay_request_query(const struct replay_request *request, const char *name, char *value,
                          size_t size)
{
    struct kinf_str target = target_of(request), path = replay__request_path(request);
    const char *at = path.bytes + path.len, *end = target.bytes + target.len;

    while (at < end) {
        const char *start = at + 1, *next = start, *equals;
        struct kinf_str found;

        while (next < end && *next != '&')
            next++;
        equals = memchr(start, '=', (size_t)(next - start));
        found.bytes = start;
        found.len = (size_t)((equals != NULL ? equals : next) - start);
        if (kinf_str_equal(found, kinf_str_from(name))) {
            start = equals != NULL ? equals + 1 : next;
            decode((struct kinf_str){ start, (size_t)(next - start) }, value, size);
            return true;
        }
        at = next;
    }
    return false;
}

/* --- a matcher --- */

static int add_rule(struct replay__matcher *matcher, const char *word)
{
    struct replay__query_rule *rules =
        realloc(matcher->rules, (matcher->n_rules + 1) * sizeof *rules);
    struct replay__query_rule rule = { .is_forbidden = *word == '!' };
    const char *name = word + (rule.is_forbidden ? 1 : 0), *equals = strchr(name, '=');

    if (rules == NULL)
        return KINF_ERR_NO_MEMORY;
    matcher->rules = rules;
    rule.name = strndup(name, strcspn(name, "="));
    rule.value = equals != NULL ? strdup(equals + 1) : NULL;
    if (rule.name == NULL || (equals != NULL && rule.value == NULL)) {
        free(rule.name);
        free(rule.value);
        return KINF_ERR_NO_MEMORY;
    }
    rules[matcher->n_rules++] = rule;
    return 0;
}

static int set_path(struct replay__matcher *matcher, const char *word)
{
    matcher->path = strdup(word);
    if (matcher->path == NULL)
        return KINF_ERR_NO_MEMORY;
    if (word[strlen(word) - 1] == '*') {
        matcher->path_is_prefix = true;
        matcher->path[strlen(word) - 1] = '\0';
    }
    return 0;
}

static int take_word(struct replay__matcher *matcher, const char *word)
{
    if (matcher->method == NULL)
        return (matcher->method = strdup(word)) != NULL ? 0 : KINF_ERR_NO_MEMORY;
    return matcher->path == NULL ? set_path(matcher, word) : add_rule(matcher, word);
}

int replay__matcher_parse(struct replay__matcher *ret_matcher, const char *text,
                          struct kinf_error *err)
{
    struct replay__matcher matcher = { .method = NULL };
    KINF__AUTO_FREE char *words = strdup(text);
    char *rest = NULL;
    int failed = words != NULL ? 0 : KINF_ERR_NO_MEMORY;

    for (char *word = failed == 0 ? strtok_r(words, " \t", &rest) : NULL;
         word != NULL && failed == 0; word = strtok_r(NULL, " \t", &rest))
        failed = take_word(&matcher, word);
    if (failed < 0)
        failed = kinf__error_no_memory(err);
    else if (matcher.path == NULL || *matcher.path != '/')
        failed = kinf__error_set(err, KINF_ERR_PARSE, "match needs a method and a path");
    if (failed < 0)
        replay__matcher_release(&matcher);
    else
        *ret_matcher = matcher;
    return failed;
}

void replay__matcher_release(struct replay__matcher *matcher)
{
    for (size_t i = 0; i < matcher->n_rules; i++) {
        free(matcher->rules[i].name);
        free(matcher->rules[i].value);
    }
    free(matcher->rules);
    free(matcher->path);
    free(matcher->method);
    *matcher = (struct replay__matcher){ .method = NULL };
}

static bool rule_holds(const struct replay__query_rule *rule, const struct replay_request *request)
{
    char value[VALUE_SIZE];
    bool found = replay_request_query(request, rule->name, value, sizeof value) &&
                 (rule->value == NULL || strcmp(rule->value, value) == 0);

    return found != rule->is_forbidden;
}

static bool method_matches(const struct replay__matcher *matcher,
                           const struct replay_request *request)
{
    size_t len = strcspn(request->line, " ");

    return matcher->method == NULL ||
           (strlen(matcher->method) == len && memcmp(matcher->method, request->line, len) == 0);
}

static bool path_matches(const struct replay__matcher *matcher, struct kinf_str path)
{
    size_t len = matcher->path != NULL ? strlen(matcher->path) : 0;

    if (matcher->path == NULL)
        return true;
    if (matcher->path_is_prefix && path.len > len)
        path.len = len;
    return kinf_str_equal(path, (struct kinf_str){ matcher->path, len });
}

bool replay__matcher_matches(const struct replay__matcher *matcher,
                             const struct replay_request *request)
{
    if (!method_matches(matcher, request) || !path_matches(matcher, replay__request_path(request)))
        return false;
    for (size_t i = 0; i < matcher->n_rules; i++) {
        if (!rule_holds(&matcher->rules[i], request))
            return false;
    }
    return true;
}
