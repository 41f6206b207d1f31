/*
 * A client whose credential plugin does not come back.
 */
#ifndef KINF_TESTS_UNIT_HANGING_CLIENT_H
#define KINF_TESTS_UNIT_HANGING_CLIENT_H

#include <kinformer/client.h>

struct kinf_client *test_hanging_client(void);

#endif
