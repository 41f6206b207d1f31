/*
 * metav1.Status: how the API server says no, in an HTTP response or as the object of an ERROR
 * event.
 *
 * Threads: any thread.
 */
#ifndef KINF_REST_STATUS_H
#define KINF_REST_STATUS_H

#include <stdbool.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

/* Fills `err` from a Status and returns its code as enum kinf_errc: by `code` and `reason`, where
 * reason Expired or Gone or code 410 is KINF_ERR_EXPIRED, cause ResourceVersionTooLarge (or
 * upstream's older texts) is KINF_ERR_RV_TOO_LARGE, and so on. `http_status` 0: taken from the
 * Status. Text that is no Status gives an error by http_status with the beginning of the text, or
 * KINF_ERR_PARSE when http_status is 0. Never returns 0. */
KINF_MUST_CHECK int kinf__status_to_error(struct kinf_str text, int http_status,
                                          struct kinf_error *err);

/* Whether the text is a Status that names its reason. */
bool kinf__status_has_reason(struct kinf_str text);

#endif
