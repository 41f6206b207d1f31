/*
 * Everything of libkinformer but kinformer/tree.h, which needs cJSON's header, kinformer/testing.h, and
 * kinformer/plugin.h, which is for plugins of the daemon.
 */
#ifndef KINFORMER_KINFORMER_H
#define KINFORMER_KINFORMER_H

#include <kinformer/api.h>
#include <kinformer/client.h>
#include <kinformer/controller.h>
#include <kinformer/deltafifo.h>
#include <kinformer/elector.h>
#include <kinformer/error.h>
#include <kinformer/factory.h>
#include <kinformer/indexer.h>
#include <kinformer/informer.h>
#include <kinformer/lister.h>
#include <kinformer/log.h>
#include <kinformer/metrics.h>
#include <kinformer/namespaces.h>
#include <kinformer/object.h>
#include <kinformer/path.h>
#include <kinformer/queue.h>
#include <kinformer/recorder.h>
#include <kinformer/request.h>
#include <kinformer/run.h>
#include <kinformer/selector.h>
#include <kinformer/str.h>
#include <kinformer/text.h>
#include <kinformer/type.h>

#endif
