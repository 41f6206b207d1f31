/*
 * Plugins of tests, good and bad ones: -DVARIANT_name. Those without a variant's word below are good.
 */
#include <kinformer/plugin.h>

#include <stdlib.h>

#include "unit/plugins/script.h"

static struct plugin_script *script;
static int n_opened;

static int open_it(const struct kinf_host *host, const char *config, void **ret_state,
                   struct kinf_error *err)
{
    script = (struct plugin_script *)strtoull(config, NULL, 10);
    n_opened++;
    script->n_opened = &n_opened;
    return script->open(script, host, ret_state, err);
}

static int on_change(void *state, const struct kinf_change *change, struct kinf_error *err)
{
    return script->on_change(state, change, err);
}

static int flush(void *state, struct kinf_error *err)
{
    return script->flush(state, err);
}

static void close_it(void *state)
{
    script->close(state);
}

#ifdef VARIANT_undefined
extern void there_is_no_such_function(void);
__attribute__((constructor)) static void refer(void)
{
    there_is_no_such_function();
}
#endif

#ifdef VARIANT_larger
static const struct {
    struct kinf_plugin table;
    void *more;
} larger = { { KINF_PLUGIN_ABI, sizeof larger, "larger", open_it, on_change, flush, close_it },
             NULL };
#define table larger.table
#else
static const struct kinf_plugin table = {
#ifdef VARIANT_another_abi
    .abi = KINF_PLUGIN_ABI + 1,
#else
    .abi = KINF_PLUGIN_ABI,
#endif
#ifdef VARIANT_small
    .size = sizeof table - 1,
#else
    .size = sizeof table,
#endif
#ifdef VARIANT_empty_name
    .name = "",
#elif defined VARIANT_another_name
    .name = "another",
#elif !defined VARIANT_no_name
    .name = "scripted",
#endif
#ifndef VARIANT_no_open
    .open = open_it,
#endif
#ifndef VARIANT_no_on_change
    .on_change = on_change,
#endif
#ifndef VARIANT_no_flush
    .flush = flush,
#endif
#ifndef VARIANT_no_close
    .close = close_it,
#endif
};
#endif

#ifdef VARIANT_no_table
const struct kinf_plugin *kinf_plugin_1(void);
__attribute__((visibility("default"))) const struct kinf_plugin *kinf_plugin_1(void)
{
    return table.name == NULL ? &table : NULL;
}
#elif defined VARIANT_no_symbol
__attribute__((visibility("default"))) extern const struct kinf_plugin *const kinf_plugin_0;
const struct kinf_plugin *const kinf_plugin_0 = &table;
#else
KINF_PLUGIN(table)
#endif

/* No variant leaves one of these unused. */
__attribute__((unused)) static void *const all[] = { (void *)open_it, (void *)on_change,
                                                     (void *)flush, (void *)close_it };
