/*
 * Attributes that every public header uses, and the version of the library.
 */
#ifndef KINFORMER_API_H
#define KINFORMER_API_H

#include <stdint.h>

#define KINF_VERSION_STRING "0.1.0"

#define KINF_API               __attribute__((visibility("default")))
#define KINF_MUST_CHECK        __attribute__((warn_unused_result))
#define KINF_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* "Without a limit" wherever a timeout in milliseconds is asked. */
#define KINF_FOREVER INT64_MAX

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs, which may differ from KINF_VERSION_STRING of the headers.
 */
KINF_API const char *kinf_version(void);

#ifdef __cplusplus
}
#endif
#endif
