/*
 * A fake API server for scenarios that are swept (sweep.h), whose threads and calls are not.
 *
 * Its ConfigMaps are named by one letter and have data.value, a short text.
 */
#ifndef KINF_TESTS_UNIT_SWEPT_FAKE_H
#define KINF_TESTS_UNIT_SWEPT_FAKE_H

#include <kinformer/kinformer.h>
#include <kinformer/testing.h>

struct kinf_fake *swept_fake_new(void);
/* default/NAME with the label sync=true. */
void swept_fake_put(struct kinf_fake *fake, const char *name, const char *value);
void swept_fake_delete(struct kinf_fake *fake, const char *name);
/* What the server has; "": nothing. In a buffer of its own. */
const char *swept_fake_value(struct kinf_fake *fake, const char *name);
/* data.value of an object; "" of NULL. Also in a callback, where it does not count. */
void swept_value(const struct kinf_object *object, char value[16]);
/* Until nothing is left to do, backoffs included. */
void swept_fake_settle(struct kinf_fake *fake);

#endif
