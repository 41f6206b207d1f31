/*
 * Attributes that every public header uses, and the version of the library.
 *
 * Mirrors: nothing.
 * Threads: any thread.
 */
#ifndef KINFORMER_API_H
#define KINFORMER_API_H

#include <stdint.h>

/* The release. It is said here alone: the Makefile takes it from here for pkg-config, man pages and
 * the library's file. Which library a program can run with, its soname says (kinformer.map). */
#define KINF_VERSION_STRING "0.2.0"

#define KINF_API               __attribute__((visibility("default")))
#define KINF_MUST_CHECK        __attribute__((warn_unused_result))
#define KINF_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/*
 * Misuse that can be seen is refused: it is logged as an error, and nothing else happens. So is NULL
 * wherever a contract does not allow it: the function returns KINF_ERR_INVALID, or NULL, "", 0 or
 * false, whichever its type has.
 */

/*
 * What ..._new() and ..._parse() make is the caller's, until ..._free(). Texts of ..._to_string() are
 * constants. All else that a function hands out says whose it is.
 */

/*
 * A struct of options begins with its size, which its INIT macro sets. One of an older header is
 * shorter: what it does not have is at its default. One of a newer header is longer: what this library
 * does not know is passed over. A size that no version has (0, say) is KINF_ERR_INVALID.
 */

/* "Without a limit" wherever a timeout in milliseconds is asked. */
#define KINF_FOREVER INT64_MAX

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs, which may differ from KINF_VERSION_STRING of the headers.
 * A constant. */
KINF_API const char *kinf_version(void);

#ifdef __cplusplus
}
#endif
#endif
