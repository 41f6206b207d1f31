/*
 * An HTTP server on loopback that serves a history: discovery, LIST (also in pages), WATCH and
 * watch lists of ConfigMaps. When it is asked to, it goes wrong in all the ways that servers and
 * networks do, except that it never tells a client something else than the history, or in another
 * order. A client that listed before a restore and would watch on from there is always refused,
 * since nobody could help one that is not.
 *
 * Threads: made and asked by the test's; it answers on one of its own.
 */
#ifndef KINF_TESTS_UNIT_SERVER_MODEL_H
#define KINF_TESTS_UNIT_SERVER_MODEL_H

#include <kinformer/informer.h>

#include "unit/server_history.h"

struct server_model;

/* The history is borrowed. */
struct server_model *server_model_start(struct server_history *history, uint64_t seed,
                                        bool has_watch_lists);
void server_model_stop(struct server_model *server);
/* A client of it, which the caller frees. */
struct kinf_client *server_model_client(const struct server_model *server);
/* What an informer of it needs: short times, and nobody who minds the trouble. */
void server_model_set_options(struct kinf_informer_options *options);

/* The history has changed. */
void server_model_wake(struct server_model *server);
/* The client of this view begins again with what it had in an earlier generation. */
void server_model_set_generation(struct server_model *server, const struct server_view *view,
                                 unsigned generation);
/* How much goes wrong from now on: 0 is nothing, 100 is a lot. When nothing does, every watch is
 * told the newest version by a bookmark. */
void server_model_set_trouble(struct server_model *server, unsigned percent);
/* Goes back to the checkpoint, changes so many things there, and restarts. */
void server_model_restore(struct server_model *server, size_t n_changes);
/* Drops every connection, and takes none for a moment. */
void server_model_restart(struct server_model *server);

#endif
