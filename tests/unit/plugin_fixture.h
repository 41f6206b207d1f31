/*
 * What the tests of plugins share: where they are, a folder of the test's own, and what was logged.
 */
#ifndef KINF_TESTS_UNIT_PLUGIN_FIXTURE_H
#define KINF_TESTS_UNIT_PLUGIN_FIXTURE_H

#include <stddef.h>

#include "unit/plugins/script.h"

#define PLUGIN_PATIENCE_MS 60000

/* Makes the folder and begins to note the log; the other removes it. */
void plugin_fixture_begin(void);
void plugin_fixture_end(void);

/* The path of a variant of tests/unit/plugins/plugin.c, and of a file of the folder. Valid until the
 * next call but three. */
const char *plugin_variant(const char *name);
const char *plugin_file(const char *name);
/* Puts a variant in the place of the folder's file, as `install` does; `len` bytes of it at most. */
void plugin_install(const char *variant, const char *file, size_t len);

/* How often a text was logged by handlers. */
size_t plugin_count_log(const char *text);
void plugin_wait_log(const char *text);
void plugin_nap(void);

#endif
