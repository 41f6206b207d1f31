/*
 * The last hour. Neighbours: server_time.c takes samples, debug_state.c has them written, page.html
 * draws them.
 */
#include "serve/last_hour.h"

bool kinf__last_hour_is_due(const struct kinf__last_hour *hour, int64_t now_ms)
{
    return now_ms >= hour->next_ms;
}

void kinf__last_hour_add(struct kinf__last_hour *hour, const struct kinf__sample *sample)
{
    size_t place = (hour->first + hour->n_samples) % KINF__SAMPLES_MAX;

    hour->next_ms += KINF__SAMPLE_EVERY_MS;
    if (hour->n_samples == 0 || hour->next_ms <= sample->at_ms)
        hour->next_ms = sample->at_ms + KINF__SAMPLE_EVERY_MS;
    hour->samples[place] = *sample;
    if (hour->n_samples < KINF__SAMPLES_MAX)
        hour->n_samples++;
    else
        hour->first = (hour->first + 1) % KINF__SAMPLES_MAX;
}

const struct kinf__sample *kinf__last_hour_at(const struct kinf__last_hour *hour, size_t i)
{
    return &hour->samples[(hour->first + i) % KINF__SAMPLES_MAX];
}

static void write_ages(const struct kinf__last_hour *hour, struct kinf__report *report)
{
    kinf__report_open(report, "ageMs", '[');
    for (size_t i = 0; i < hour->n_samples; i++)
        kinf__report_ms(report, NULL, report->now_ms - kinf__last_hour_at(hour, i)->at_ms);
    kinf__report_close(report, ']');
}

static void write_values(const struct kinf__last_hour *hour, size_t value,
                         struct kinf__report *report)
{
    static const char *const names[] = {
#define X(value, name, what) name,
        KINF__SAMPLE_VALUES(X)
#undef X
    };

    kinf__report_open(report, names[value], '[');
    for (size_t i = 0; i < hour->n_samples; i++)
        kinf__report_ms(report, NULL, kinf__last_hour_at(hour, i)->values[value]);
    kinf__report_close(report, ']');
}

void kinf__last_hour_write(const struct kinf__last_hour *hour, struct kinf__report *report)
{
    kinf__report_open(report, "lastHour", '{');
    kinf__report_count(report, "everyMs", KINF__SAMPLE_EVERY_MS);
    write_ages(hour, report);
    for (size_t value = 0; value < KINF__N_SAMPLE_VALUES; value++)
        write_values(hour, value, report);
    kinf__report_close(report, '}');
}
