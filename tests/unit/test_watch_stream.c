/*
 * The watch stream: recorded watches in any pieces, other forms of an event, what it leaves out.
 */
#include "reflector/watch_stream.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "unit/allocation.h"
#include "unit/test.h"
#include "unit/transcript.h"

#define MAX_OBJECT_BYTES (16 << 20)

/* Events by the first letter of their type with "ns/name@rv", B@rv for a bookmark ('!': it ends the
 * initial events), E and the status for an error; made from the recordings by another program. */
static const struct {
    const char *name;
    const char *kind;
    const char *expected;
} recorded[] = {
    { "02-watch-basic", "ConfigMap",
      "A t1/delta@225 M t1/delta@226 M t1/delta@227 D t1/delta@228 B@228" },
    { "02-watch-connection-close", "ConfigMap", "A t1/lb0-0@256" },
    { "02-watch-future-rv", "ConfigMap", "" },
    { "02-watch-history-burst", "ConfigMap",
      "A t1/burst0@231 A t1/burst1@232 A t1/burst2@233 A t1/burst3@234 A t1/burst4@235 A "
      "t1/burst5@236 A t1/burst6@237 A t1/burst7@238 D t1/burst0@239 D t1/burst1@240 D "
      "t1/burst2@241 D t1/burst3@242 D t1/burst4@243 D t1/burst5@244 D t1/burst6@245 D "
      "t1/burst7@246" },
    { "02-watch-large-event", "ConfigMap", "A t1/large@249 D t1/large@250" },
    { "02-watch-legacy-path", "ConfigMap", "A t1/lb0-0@256" },
    { "02-watch-live-burst", "ConfigMap",
      "A t1/lb3-0@251 A t1/lb4-0@252 A t1/lb2-0@253 A t1/lb5-0@254 A t1/lb1-0@255 A t1/lb0-0@256 A "
      "t1/lb7-0@257 A t1/lb6-0@258 A t1/lb4-1@259 A t1/lb2-1@260 A t1/lb1-1@261 A t1/lb7-1@262 A "
      "t1/lb5-1@263 A t1/lb0-1@264 A t1/lb3-1@265 A t1/lb6-1@266 A t1/lb3-2@267 A t1/lb0-2@268 A "
      "t1/lb4-2@269 A t1/lb5-2@270 A t1/lb1-2@271 A t1/lb6-2@272 A t1/lb2-2@273 A t1/lb7-2@274 A "
      "t1/lb0-3@275 A t1/lb4-3@276 A t1/lb5-3@277 A t1/lb2-3@278 A t1/lb1-3@279 A t1/lb6-3@280 A "
      "t1/lb0-4@281 A t1/lb7-3@282 A t1/lb3-3@283 A t1/lb4-4@284 A t1/lb5-4@285 A t1/lb2-4@286 A "
      "t1/lb6-4@287 A t1/lb1-4@288 A t1/lb7-4@289 A t1/lb3-4@290" },
    { "02-watch-pretty", "ConfigMap", "A t1/lb0-0@256" },
    { "02-watch-timeout-0", "ConfigMap", "" },
    { "02-watch-timeout-1s", "ConfigMap", "" },
    { "02-watch-timeout-no-events", "ConfigMap", "" },
    { "03-sendinitialevents-false-rv-unset", "ConfigMap", "" },
    { "03-sendinitialevents-false", "ConfigMap", "" },
    { "03-watch-selector-enter-leave", "ConfigMap", "A t1/zeta@249 D t1/zeta@250" },
    { "03-watchlist-cr", "Widget", "A t1/w0@221 A t1/w1@222 A t1/w2@223 B@233!" },
    { "03-watchlist-empty-gzip", "ConfigMap", "B@233!" },
    { "03-watchlist-empty", "ConfigMap", "B@231!" },
    { "03-watchlist-events-no-cache", "Event", "A t1/e1@237 B@237!" },
    { "03-watchlist-field-selector", "ConfigMap",
      "A t1/zeta@242 B@242! M t1/zeta@244 D t1/zeta@245 A t1/zeta@246 B@246" },
    { "03-watchlist-gzip-large", "ConfigMap",
      "A t1/r00@211 A t1/r01@212 A t1/r02@213 A t1/r03@214 A t1/r04@215 A t1/r05@216 A t1/r06@218 "
      "A t1/r07@219 A t1/r08@220 A t1/r09@221 A t1/r10@222 A t1/r11@223 A t1/r12@224 A t1/r13@225 "
      "A t1/r14@226 A t1/r15@227 A t1/r16@228 A t1/r17@229 A t1/r18@230 A t1/r19@231 A t1/r20@232 "
      "A t1/r21@233 A t1/r22@234 A t1/r23@235 A t1/r24@236 A t1/r25@237 A t1/r26@238 A t1/r27@239 "
      "A t1/r28@240 A t1/r29@241 A t1/r30@242 A t1/r31@243 A t1/r32@244 A t1/r33@245 A t1/r34@246 "
      "A t1/r35@247 A t1/r36@248 A t1/r37@249 A t1/r38@250 A t1/r39@251 A t1/r40@252 A t1/r41@253 "
      "A t1/r42@254 A t1/r43@255 A t1/r44@256 A t1/r45@257 A t1/r46@258 A t1/r47@259 A t1/r48@260 "
      "A t1/r49@261 A t1/r50@262 A t1/r51@263 A t1/r52@264 A t1/r53@265 A t1/r54@266 A t1/r55@267 "
      "A t1/r56@268 A t1/r57@269 A t1/r58@270 A t1/r59@271 B@271! A t1/live@272 A t1/b4-0@273 A "
      "t1/b1-0@274 A t1/b0-0@275 A t1/b1-1@276 A t1/b2-0@277 A t1/b5-0@278 A t1/b3-0@279 A "
      "t1/b4-1@280 A t1/b0-1@281 A t1/b2-1@282 A t1/b1-2@283 A t1/b4-2@284 A t1/b3-1@285 A "
      "t1/b0-2@286 A t1/b5-1@287 A t1/b4-3@288 A t1/b1-3@289 A t1/b3-2@290 A t1/b2-2@291 A "
      "t1/b0-3@292 A t1/b5-2@293 A t1/b2-3@294 A t1/b4-4@295 A t1/b3-3@296 A t1/b0-4@297 A "
      "t1/b1-4@298 A t1/b0-5@299 A t1/b1-5@300 A t1/b3-4@301 A t1/b2-4@302 A t1/b5-3@303 A "
      "t1/b4-5@304 A t1/b5-4@305 A t1/b2-5@306 A t1/b3-5@307 A t1/b5-5@308 B@308" },
    { "03-watchlist-gzip", "ConfigMap",
      "A t1/alpha@213 A t1/beta@214 A t1/gamma@215 A t1/zeta@216 B@226! A t1/live@228 M "
      "t1/live@229 D t1/live@230 B@230" },
    { "03-watchlist-identity", "ConfigMap",
      "A t1/alpha@213 A t1/beta@214 A t1/gamma@215 A t1/zeta@216 B@223! A t1/live@224 M "
      "t1/live@225 D t1/live@226 B@226" },
    { "03-watchlist-label-selector", "ConfigMap",
      "A t1/alpha@213 A t1/beta@214 A t1/gamma@215 B@237! A t1/zeta@238 D t1/alpha@239 D "
      "t1/zeta@240 A t1/alpha@241 B@242" },
    { "03-watchlist-no-accept-encoding", "ConfigMap",
      "A t1/alpha@213 A t1/beta@214 A t1/gamma@215 A t1/zeta@216 B@231!" },
    { "03-watchlist-no-bookmarks", "ConfigMap",
      "A t1/alpha@213 A t1/beta@214 A t1/gamma@215 A t1/zeta@216" },
    { "03-watchlist-pods-nodename", "Pod", "A t1/p1@253 B@254! A t1/p2@255 B@255" },
    { "03-watchlist-rv0", "ConfigMap",
      "A t1/alpha@213 A t1/beta@214 A t1/gamma@215 A t1/zeta@216 B@233!" },
    { "03-watchlist-rvN", "ConfigMap",
      "A t1/alpha@213 A t1/beta@214 A t1/gamma@215 A t1/zeta@216 B@235!" },
    { "04-plain-watch-gzip-asked", "ConfigMap", "M t1/alpha@269" },
    { "04-promotion-rv0-bookmarks-gzip", "ConfigMap",
      "A t1/alpha@264 A t1/beta@214 A t1/gamma@215 B@264! M t1/alpha@265 B@265 B@265" },
    { "04-promotion-rv0-bookmarks", "ConfigMap",
      "A t1/alpha@261 A t1/beta@214 A t1/gamma@215 B@261! M t1/alpha@264 B@264 B@264 B@264" },
    { "04-promotion-rv0-gzip", "ConfigMap",
      "A t1/alpha@265 A t1/beta@214 A t1/gamma@215 M t1/alpha@268" },
    { "04-promotion-rv0", "ConfigMap",
      "A t1/alpha@259 A t1/beta@214 A t1/gamma@215 M t1/alpha@260" },
    { "04-promotion-rvunset-bookmarks", "ConfigMap",
      "A t1/alpha@260 A t1/beta@214 A t1/gamma@215 B@260! M t1/alpha@261 B@261 B@261" },
    { "04-promotion-rvunset", "ConfigMap",
      "A t1/alpha@243 A t1/beta@214 A t1/gamma@215 M t1/alpha@259" },
    { "05-watch-after-foreign-compaction", "ConfigMap",
      "A t1/filler@215 D t1/filler@216 A t1/filler@217 D t1/filler@218 A t1/filler@219 D "
      "t1/filler@220 A t1/filler@221 D t1/filler@222 A t1/filler@223 D t1/filler@224 A "
      "t1/filler@225 D t1/filler@226 A t1/filler@227 D t1/filler@228 A t1/filler@229 D "
      "t1/filler@230 A t1/filler@231 D t1/filler@232" },
    { "05-watch-after-own-compaction", "ConfigMap",
      "A t1/filler@254 D t1/filler@255 A t1/filler@256 D t1/filler@257 A t1/filler@258 D "
      "t1/filler@259 A t1/filler@260 D t1/filler@261 A t1/filler@262 D t1/filler@263" },
    { "05-watch-events-compacted", "ConfigMap", "E410" },
    { "05-watch-restart-same-rv", "ConfigMap", "E410" },
    { "05-watch-rv1-first-start", "ConfigMap",
      "A t1/alpha@210 A t1/beta@211 A t1/gamma@212 A t1/filler@215 D t1/filler@216 A t1/filler@217 "
      "D t1/filler@218 A t1/filler@219 D t1/filler@220 A t1/filler@221 D t1/filler@222 A "
      "t1/filler@223 D t1/filler@224 A t1/filler@225 D t1/filler@226 A t1/filler@227 D "
      "t1/filler@228 A t1/filler@229 D t1/filler@230 A t1/filler@231 D t1/filler@232" },
    { "05-watch-too-old-after-restart", "ConfigMap", "E410" },
    { "05-watch-too-old-evicted", "ConfigMap", "E410" },
    { "05-watchlist-old-rv", "ConfigMap", "A t1/alpha@210 A t1/beta@211 A t1/gamma@212 B@236!" },
    { "06-watchlist-events-too-large", "ConfigMap", "E504" },
    { "06-watchlist-too-large-gzip", "ConfigMap", "E504" },
    { "06-watchlist-too-large", "ConfigMap", "E504" },
    { "10-after-restart-watch-old-rv", "ConfigMap", "E410" },
    { "10-after-restart-watchlist-old-rv", "ConfigMap",
      "A t1/alpha@212 A t1/beta@213 A t1/during-sigterm-default-0@224 A "
      "t1/during-sigterm-default-1@225 A t1/during-sigterm-default-10@243 A "
      "t1/during-sigterm-default-11@244 A t1/during-sigterm-default-12@247 A "
      "t1/during-sigterm-default-13@248 A t1/during-sigterm-default-14@251 A "
      "t1/during-sigterm-default-2@229 A t1/during-sigterm-default-3@230 A "
      "t1/during-sigterm-default-4@233 A t1/during-sigterm-default-5@234 A "
      "t1/during-sigterm-default-6@235 A t1/during-sigterm-default-7@238 A "
      "t1/during-sigterm-default-8@239 A t1/during-sigterm-default-9@242 B@254!" },
    { "10-sigkill-watch", "ConfigMap", "" },
    { "10-sigkill-watchlist-gzip", "ConfigMap", "A t1/alpha@212 A t1/beta@213 B@353!" },
    { "10-sigterm-default-watch", "ConfigMap",
      "A t1/during-sigterm-default-0@224 A t1/during-sigterm-default-1@225 A "
      "t1/during-sigterm-default-2@229 A t1/during-sigterm-default-3@230 A "
      "t1/during-sigterm-default-4@233 A t1/during-sigterm-default-5@234 A "
      "t1/during-sigterm-default-6@235 A t1/during-sigterm-default-7@238 A "
      "t1/during-sigterm-default-8@239 A t1/during-sigterm-default-9@242 A "
      "t1/during-sigterm-default-10@243 A t1/during-sigterm-default-11@244 A "
      "t1/during-sigterm-default-12@247 A t1/during-sigterm-default-13@248 A "
      "t1/during-sigterm-default-14@251 B@251" },
    { "10-sigterm-default-watchlist-gzip", "ConfigMap",
      "A t1/alpha@212 A t1/beta@213 B@220! A t1/during-sigterm-default-0@224 A "
      "t1/during-sigterm-default-1@225 A t1/during-sigterm-default-2@229 A "
      "t1/during-sigterm-default-3@230 A t1/during-sigterm-default-4@233 A "
      "t1/during-sigterm-default-5@234 A t1/during-sigterm-default-6@235 A "
      "t1/during-sigterm-default-7@238 A t1/during-sigterm-default-8@239 A "
      "t1/during-sigterm-default-9@242 A t1/during-sigterm-default-10@243 A "
      "t1/during-sigterm-default-11@244 A t1/during-sigterm-default-12@247 A "
      "t1/during-sigterm-default-13@248 A t1/during-sigterm-default-14@251" },
    { "10-sigterm-delay-retry-after-watch", "ConfigMap",
      "A t1/during-sigterm-delay-retry-after-0@333" },
    { "10-sigterm-delay-retry-after-watchlist-gzip", "ConfigMap",
      "A t1/alpha@212 A t1/beta@213 B@327! B@330 A t1/during-sigterm-delay-retry-after-0@333" },
    { "10-sigterm-delay-watch", "ConfigMap",
      "A t1/during-sigterm-delay-0@280 A t1/during-sigterm-delay-1@281 A "
      "t1/during-sigterm-delay-2@285 A t1/during-sigterm-delay-3@286 A "
      "t1/during-sigterm-delay-4@289 A t1/during-sigterm-delay-5@290 A "
      "t1/during-sigterm-delay-6@291 A t1/during-sigterm-delay-7@294 A "
      "t1/during-sigterm-delay-8@295 A t1/during-sigterm-delay-9@298 A "
      "t1/during-sigterm-delay-10@299 A t1/during-sigterm-delay-11@300 A "
      "t1/during-sigterm-delay-12@303 A t1/during-sigterm-delay-13@304 A "
      "t1/during-sigterm-delay-14@306 B@306 A t1/during-sigterm-delay-15@308" },
    { "10-sigterm-delay-watchlist-gzip", "ConfigMap",
      "A t1/alpha@212 A t1/beta@213 B@276! B@279 A t1/during-sigterm-delay-0@280 A "
      "t1/during-sigterm-delay-1@281 A t1/during-sigterm-delay-2@285 A "
      "t1/during-sigterm-delay-3@286 A t1/during-sigterm-delay-4@289 A "
      "t1/during-sigterm-delay-5@290 A t1/during-sigterm-delay-6@291 A "
      "t1/during-sigterm-delay-7@294 A t1/during-sigterm-delay-8@295 A "
      "t1/during-sigterm-delay-9@298 A t1/during-sigterm-delay-10@299 A "
      "t1/during-sigterm-delay-11@300 A t1/during-sigterm-delay-12@303 A "
      "t1/during-sigterm-delay-13@304 A t1/during-sigterm-delay-14@306 B@306 A "
      "t1/during-sigterm-delay-15@308" },
    { "10-sigterm-retry-after-watch-grace-watch", "ConfigMap",
      "A t1/during-sigterm-retry-after-watch-grace-0@341" },
    { "10-sigterm-retry-after-watch-grace-watchlist-gzip", "ConfigMap",
      "A t1/alpha@212 A t1/beta@213 B@337! A t1/during-sigterm-retry-after-watch-grace-0@341" },
    { "10-sigterm-watch-grace-watch", "ConfigMap", "" },
    { "10-sigterm-watch-grace-watchlist-gzip", "ConfigMap", "A t1/alpha@212 A t1/beta@213 B@346!" },
    { "11-slow-consumer-watch", "ConfigMap",
      "A t1/hot1@213 A t1/hot2@214 A t1/hot3@215 M t1/hot3@216 M t1/hot1@217 M t1/hot@218 M "
      "t1/hot2@219 M t1/hot2@220 M t1/hot3@221 M t1/hot@222 M t1/hot1@223 M t1/hot3@224 M "
      "t1/hot2@225 M t1/hot@226 M t1/hot1@227 M t1/hot2@228 M t1/hot@229 M t1/hot3@230 M "
      "t1/hot1@231 M t1/hot2@232 M t1/hot1@233 M t1/hot@234 M t1/hot3@235 M t1/hot1@236 M "
      "t1/hot2@237" },
    { "12-conversion-broken-empty-watchlist", "Gizmo", "B@224!" },
    { "12-conversion-broken-metadata-watchlist", "ConfigMap", "E504" },
    { "12-conversion-broken-watch", "ConfigMap", "" },
    { "12-conversion-broken-watchlist", "ConfigMap", "E504" },
    { "12-crd-delete-watch-of-crds", "PartialObjectMetadata",
      "M widgets.example.com@218 M widgets.example.com@219 D widgets.example.com@222" },
    { "12-crd-delete-watch", "Widget", "D t1/w0@220 D t1/w1@221" },
    { "12-crd-delete-watchlist-gzip", "Widget",
      "A t1/w0@216 A t1/w1@217 B@217! D t1/w0@220 D t1/w1@221" },
    { "12-crd-recreated-watch-old-rv-200", "ConfigMap", "E410" },
    { "12-crd-recreated-watchlist-200", "Widget", "B@229!" },
    { "12-crd-schema-update-new-watch", "ConfigMap", "E410" },
    { "12-crd-schema-update-watch", "ConfigMap", "" },
    { "12-crd-schema-update-watchlist", "Widget", "A t1/w9@230 B@230!" },
    { "12-crd-unserved-v2-watchlist", "Widget", "A t1/w10@233 A t1/w9@230 B@237!" },
    { "12-crd-unserved-watch", "ConfigMap", "" },
    { "13-watchlist-1mib-value-gzip", "ConfigMap", "A huge/big@380 B@380!" },
    { "13-watchlist-configmaps-escapes", "ConfigMap",
      "A stress/binary@221 A stress/duplicate-keys@224 A stress/escapes@217 A "
      "stress/invalid-utf8-json@220 A stress/invalid-utf8-protobuf@225 A stress/lone-surrogate@219 "
      "A stress/no-data@223 A stress/nul@218 A stress/with.dots.in.name@222 B@225!" },
    { "13-watchlist-cr-stress", "Widget",
      "A stress/deep060@365 A stress/deeparray060@366 A stress/empties@362 A stress/keys@363 A "
      "stress/lone@364 A stress/numbers@361 B@366!" },
    { "14-metadata-watch-410", "ConfigMap", "E410" },
    { "14-metadata-watchlist-gzip", "PartialObjectMetadata",
      "A t1/alpha@209 A t1/beta@210 B@221! A t1/live@223 M t1/live@225 D t1/live@226 B@226 B@226" },
    { "14-metadata-watchlist-with-list-kind", "ConfigMap", "" },
    { "14-metadata-watchlist", "PartialObjectMetadata",
      "A t1/alpha@209 A t1/beta@210 B@218! A t1/live@219 M t1/live@220 D t1/live@221 B@221" },
    { "15-delete-collection", "ConfigMap", "D t1/dc0@259 D t1/dc1@260 D t1/dc2@261" },
    { "15-pod-life", "Pod",
      "A t1/web@235 M t1/web@236 M t1/web@237 M t1/web@238 M t1/web@239 M t1/web@240 M t1/web@241 "
      "M t1/web@242 M t1/web@243 D t1/web@244 B@244 B@244" },
    { "15-pod-recreate-same-name", "Pod",
      "A t1/web@247 M t1/web@248 D t1/web@249 A t1/web@250 M t1/web@251 D t1/web@252 A t1/fin@253 "
      "M t1/fin@254 D t1/fin@255" },
    { "17-bookmark-idle-progress", "ConfigMap", "B@316 B@341 B@341" },
    { "17-rv-configmaps", "ConfigMap", "A t1/rv0@262 A t1/rv1@264 A t1/rv2@266 B@266" },
    { "17-rv-secrets", "Secret", "A t1/rv0@263 A t1/rv1@265 A t1/rv2@267 B@267" },
};

/* One watch, decoded. */
struct watch {
    struct kinf__prune_plan *plan;
    struct kinf__object_decoder decoder;
    struct kinf__watch_stream_callbacks callbacks;
    struct kinf__watch_stream stream;
    struct kinf__buffer text; /* what came out */
    uint64_t hash;            /* of the objects' bytes */
    size_t max_tail;
    size_t n_left; /* events until on_event fails; 0: never */
};

static void must(int r)
{
    assert_int_equal(r, 0);
}

static int note_event(enum kinf__watch_event_type type, const struct kinf_object *object, void *ctx,
                      struct kinf_error *err)
{
    struct watch *watch = ctx;
    kinf_auto_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str json;

    must(kinf_object_json(object, &scratch, &json, NULL));
    for (size_t i = 0; i < json.len; i++)
        watch->hash = (watch->hash ^ (unsigned char)json.bytes[i]) * 0x100000001b3U;
    must(kinf__buffer_printf(&watch->text, "%c %s@%s ", "AMD"[type], kinf_object_key(object),
                             kinf_object_resource_version(object)));
    return watch->n_left != 0 && --watch->n_left == 0
               ? kinf__error_set(err, KINF_ERR_STOPPED, "enough")
               : 0;
}

static int note_bookmark(const char *rv, bool ends_initial_events, void *ctx,
                         struct kinf_error *err)
{
    struct watch *watch = ctx;

    (void)err;
    must(kinf__buffer_printf(&watch->text, "B@%s%s ", rv, ends_initial_events ? "!" : ""));
    return 0;
}

static int note_error(const struct kinf_error *event, void *ctx, struct kinf_error *err)
{
    struct watch *watch = ctx;

    (void)err;
    must(kinf__buffer_printf(&watch->text, "E%d ", event->http_status));
    return 0;
}

static int note_reject(const char *key, const struct kinf_error *why, void *ctx,
                       struct kinf_error *err)
{
    struct watch *watch = ctx;

    (void)err;
    must(kinf__buffer_printf(&watch->text, "(%s %s) ", key, kinf_errc_to_string(why->code)));
    return 0;
}

static void watch_init(struct watch *watch, const char *kind, size_t max_object_bytes)
{
    const struct kinf_type *type;

    *watch = (struct watch){ .callbacks = { note_event, note_bookmark, note_error, note_reject,
                                            watch } };
    must(kinf_type_intern("", "v1", kind, "things", true, &type, NULL));
    must(kinf__prune_plan_new(NULL, 0, NULL, 0, &watch->plan, NULL));
    kinf__object_decoder_init(&watch->decoder, type, watch->plan);
    kinf__watch_stream_init(&watch->stream, &watch->decoder, max_object_bytes, &watch->callbacks);
}

static void watch_release(struct watch *watch)
{
    kinf__watch_stream_release(&watch->stream);
    kinf__object_decoder_release(&watch->decoder);
    kinf__prune_plan_free(watch->plan);
    kinf__buffer_release(&watch->text);
}

static int feed(const char *bytes, size_t len, void *ctx)
{
    struct watch *watch = ctx;
    int r = kinf__watch_stream_feed(&watch->stream, bytes, len, NULL);

    if (watch->stream.tail.size > watch->max_tail)
        watch->max_tail = watch->stream.tail.size;
    return r;
}

/* Decodes a body cut as told, behind whatever came before. What came out is in watch->text. */
static int decode(struct watch *watch, const char *body, size_t len, struct test_cut cut,
                  struct kinf_error *err)
{
    int r;

    watch->text.len = 0;
    watch->hash = 0xcbf29ce484222325U;
    kinf__watch_stream_reset(&watch->stream);
    r = test_feed_cut(body, len, cut, feed, watch);
    if (r == 0)
        r = kinf__watch_stream_finish(&watch->stream, err);
    if (watch->text.len != 0)
        watch->text.len--;
    assert_non_null(kinf__buffer_cstr(&watch->text));
    return r;
}

static const struct test_cut whole = { .step = SIZE_MAX / 2 };

struct trial {
    struct watch *watch;
    const char *body;
    size_t len;
    const char *expected;
    uint64_t hash;
};

static void try_cut(struct test_cut cut, void *ctx)
{
    struct trial *trial = ctx;

    must(decode(trial->watch, trial->body, trial->len, cut, NULL));
    assert_string_equal(trial->watch->text.bytes, trial->expected);
    if (trial->hash == 0)
        trial->hash = trial->watch->hash;
    assert_true(trial->watch->hash == trial->hash);
}

static void recorded_watches_decode_in_any_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(recorded); i++) {
        struct test_transcript transcript = test_transcript_read(recorded[i].name);
        struct watch watch;
        struct trial trial = { .watch = &watch,
                               .body = transcript.body,
                               .len = transcript.len,
                               .expected = recorded[i].expected };

        printf("  %s\n", recorded[i].name);
        watch_init(&watch, recorded[i].kind, MAX_OBJECT_BYTES);
        test_each_cut(trial.len, try_cut, &trial);
        watch_release(&watch);
        test_transcript_release(&transcript);
    }
}

static void try_text(const char *text, size_t max_object_bytes, const char *expected)
{
    struct watch watch;
    struct trial trial = {
        .watch = &watch, .body = text, .len = strlen(text), .expected = expected
    };

    watch_init(&watch, "Thing", max_object_bytes);
    test_each_cut(trial.len, try_cut, &trial);
    watch_release(&watch);
}

/* --- forms --- */

#define OBJECT(name)                                                                               \
    "{\"metadata\":{\"namespace\":\"a\",\"name\":\"" name "\",\"resourceVersion\":\"1\"}}"
#define EVENT(type, name) "{\"type\":\"" type "\",\"object\":" OBJECT(name) "}"

static void an_event_is_understood_in_any_form(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        { EVENT("ADDED", "x") "\n" EVENT("MODIFIED", "x") "\n" EVENT("DELETED", "x") "\n",
          "A a/x@1 M a/x@1 D a/x@1" },
        { "{\"object\":" OBJECT("x") ",\"type\":\"ADDED\"}\n", "A a/x@1" },
        { " { \"type\" : \"ADDED\" , \"object\" : " OBJECT("x") " } \r\n", "A a/x@1" },
        { "{\"type\":\"ADDED\",\"object\":" OBJECT("x") " } \n", "A a/x@1" },
        { "{\"type\":\"ADDED\",\"object\":" OBJECT("x") ",\"more\":[1]}\n", "A a/x@1" },
        { "{\"type\":\"ADDED\",\"object\":" OBJECT("x") ",\"type\":\"DELETED\"}\n", "A a/x@1" },
        { "{\"more\":{\"type\":\"x\"},\"type\":\"MODIFI\\u0045D\",\"object\":" OBJECT("x") "}\n",
          "M a/x@1" },
        { "\n \n" EVENT("ADDED", "x") "\n\n", "A a/x@1" },
        { EVENT("ADDED", "x") EVENT("ADDED", "y") " " EVENT("DELETED", "y") "\n",
          "A a/x@1 A a/y@1 D a/y@1" },
        { EVENT("ADDED", "x") "\n" EVENT("ADDED", "last"), "A a/x@1 A a/last@1" },
        { "{\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}},\"type\":\"BOOKMARK\"}\n",
          "B@9" },
        { "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}\n", "E410" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        try_text(rows[i].text, MAX_OBJECT_BYTES, rows[i].expected);
}

static void a_clean_end_inside_an_event_is_noticed(void **state)
{
    static const char text[] = EVENT("ADDED", "x") "\n" EVENT("ADDED", "y");
    size_t first = strlen(EVENT("ADDED", "x"));
    struct watch watch;

    (void)state;
    watch_init(&watch, "Thing", MAX_OBJECT_BYTES);
    for (size_t len = 1; len < sizeof text - 1; len++) {
        int expected = len == first || len == first + 1 ? 0 : KINF_ERR_TRUNCATED;

        assert_int_equal(decode(&watch, text, len, whole, NULL), expected);
    }
    watch_release(&watch);
}

/* --- what is left out --- */

static void what_cannot_be_decoded_is_passed_over(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        { "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"a\",\"name\":\"bad\"},"
          "\"x\":tru}}",
          "(a/bad PARSE)" },
        { "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"a\",\"name\":\"cut\"},"
          "\"x\":[",
          "(a/cut PARSE)" },
        { "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Other\",\"metadata\":{\"namespace\":\"a\","
          "\"name\":"
          "\"o\"}}}",
          "(a/o PARSE)" },
        { "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Other\",\"metadata\":{\"namespace\":\"a\","
          "\"name\":"
          "\"o\"}},\"more\":1}",
          "(a/o PARSE)" },
        { "{\"type\":\"ADDED\",\"object\":{}}", "( PARSE)" },
        { "{\"type\":\"ADDED\",\"object\":null}", "( PARSE)" },
        { "{\"type\":\"ADDED\"}", "( PARSE)" },
        { "{\"type\":7,\"object\":" OBJECT("x") "}", "(a/x PARSE)" },
        { "{\"type\":\"RENAMED\",\"object\":" OBJECT("x") "}", "(a/x PARSE)" },
        { "{\"object\":" OBJECT("x") "}", "(a/x PARSE)" },
        { "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{}}}", "( PARSE)" },
        { "[1]", "( PARSE)" },
        { "}", "( PARSE)" },
        { EVENT("ADDED", "w") "}", "A a/w@1 ( PARSE)" },
        { "\x01\xff", "( PARSE)" },
    };
    char text[1024], expected[256];

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        snprintf(text, sizeof text, "%s\n" EVENT("ADDED", "y") "\n", rows[i].text);
        snprintf(expected, sizeof expected, "%s A a/y@1", rows[i].expected);
        try_text(text, MAX_OBJECT_BYTES, expected);
    }
}

static void an_error_that_is_no_status_is_still_an_error(void **state)
{
    (void)state;
    try_text("{\"type\":\"ERROR\",\"object\":\"boom\"}\n" EVENT("ADDED", "x") "\n",
             MAX_OBJECT_BYTES, "E0 A a/x@1");
}

static void events_of_a_table_are_passed_over(void **state)
{
    struct test_transcript transcript = test_transcript_read("14-table-watchlist");
    struct watch watch;

    (void)state;
    watch_init(&watch, "ConfigMap", MAX_OBJECT_BYTES);
    must(decode(&watch, transcript.body, transcript.len, whole, NULL));
    assert_string_equal(watch.text.bytes, "( PARSE) B@231 ( PARSE) B@232 B@232");
    watch_release(&watch);
    test_transcript_release(&transcript);
}

static void an_object_above_the_limit_is_passed_over(void **state)
{
    static const char big[] = "{\"metadata\":{\"namespace\":\"a\",\"name\":\"big\"},\"data\":\""
                              "................................\"}";
    char text[1024];

    (void)state;
    snprintf(text, sizeof text,
             "{\"type\":\"ADDED\",\"object\":%s}\n" EVENT(
                 "ADDED", "x") "\n"
                               "{\"object\":%s,\"type\":\"ADDED\"}\n",
             big, big);
    try_text(text, sizeof big - 1, "A a/big@ A a/x@1 A a/big@");
    try_text(text, sizeof big - 2, "(a/big LIMIT) A a/x@1 (a/big LIMIT)");
}

/* A line of 4 MiB with a limit of 1 KiB: nothing near that may be kept. */
static void a_line_above_the_limit_is_not_kept(void **state)
{
    enum { SIZE = 4 << 20, LIMIT = 1024 };
    static const size_t steps[] = { 100, 4096, SIZE_MAX / 2 };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    must(kinf__buffer_printf(&text,
                             "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"a\","
                             "\"name\":\"big\"},\"x\":\""));
    must(kinf__buffer_reserve(&text, SIZE));
    memset(text.bytes + text.len, 'y', SIZE);
    text.len += SIZE;
    must(kinf__buffer_printf(&text, "\"}}\n" EVENT("ADDED", "x") "\n"));
    for (size_t i = 0; i < KINF__ARRAY_LEN(steps); i++) {
        struct watch watch;

        watch_init(&watch, "Thing", LIMIT);
        must(decode(&watch, text.bytes, text.len, (struct test_cut){ .step = steps[i] }, NULL));
        assert_string_equal(watch.text.bytes, "(a/big LIMIT) A a/x@1");
        assert_true(watch.max_tail < 16384);
        watch_release(&watch);
    }
}

static void a_large_tail_is_given_back(void **state)
{
    enum { SIZE = 4 << 20 };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct watch watch;

    (void)state;
    must(kinf__buffer_printf(&text,
                             "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"a\","
                             "\"name\":\"big\"},\"x\":\""));
    must(kinf__buffer_reserve(&text, SIZE));
    memset(text.bytes + text.len, 'y', SIZE);
    text.len += SIZE;
    must(kinf__buffer_printf(&text, "\"}}\n"));
    watch_init(&watch, "Thing", MAX_OBJECT_BYTES);
    must(decode(&watch, text.bytes, text.len, (struct test_cut){ .step = 16384 }, NULL));
    assert_string_equal(watch.text.bytes, "A a/big@");
    assert_true(watch.max_tail >= SIZE);
    assert_int_equal(watch.stream.tail.size, 0);
    watch_release(&watch);
}

/* --- the caller --- */

static void a_callback_ends_the_watch(void **state)
{
    static const char text[] =
        EVENT("ADDED", "x") "\n" EVENT("ADDED", "y") "\n" EVENT("ADDED", "z");
    struct kinf_error err = KINF_ERROR_INIT;
    struct watch watch;

    (void)state;
    watch_init(&watch, "Thing", MAX_OBJECT_BYTES);
    watch.n_left = 2;
    assert_int_equal(kinf__watch_stream_feed(&watch.stream, text, sizeof text - 1, &err),
                     KINF_ERR_STOPPED);
    assert_string_equal(err.message, "enough");
    assert_memory_equal(watch.text.bytes, "A a/x@1 A a/y@1 ", watch.text.len);
    watch_release(&watch);
}

static void no_memory_is_an_error_and_leaks_nothing(void **state)
{
    static const char text[] = EVENT("ADDED", "x") "\n" EVENT(
        "ADDED", "y") "\n"
                      "{\"type\":\"ADDED\",\"object\":{}}\n"
                      "{\"object\":" OBJECT("z") ",\"type\":\"ADDED\"}";
    size_t objects = kinf__object_count();
    bool has_failed;

    (void)state;
    for (size_t n = 1;; n++) {
        struct watch watch;
        int r = 0;

        watch_init(&watch, "Thing", MAX_OBJECT_BYTES);
        must(kinf__buffer_reserve(&watch.text, 256));
        test_fail_allocation(n);
        for (size_t at = 0; r == 0 && at < sizeof text - 1; at += 10)
            r = kinf__watch_stream_feed(&watch.stream, text + at,
                                        sizeof text - 1 - at < 10 ? sizeof text - 1 - at : 10,
                                        NULL);
        if (r == 0)
            r = kinf__watch_stream_finish(&watch.stream, NULL);
        has_failed = test_allocation_failed();
        test_fail_allocation(0);
        assert_int_equal(r, has_failed ? KINF_ERR_NO_MEMORY : 0);
        watch_release(&watch);
        assert_int_equal(kinf__object_count(), objects);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_watches_decode_in_any_pieces),
        cmocka_unit_test(an_event_is_understood_in_any_form),
        cmocka_unit_test(a_clean_end_inside_an_event_is_noticed),
        cmocka_unit_test(what_cannot_be_decoded_is_passed_over),
        cmocka_unit_test(an_error_that_is_no_status_is_still_an_error),
        cmocka_unit_test(events_of_a_table_are_passed_over),
        cmocka_unit_test(an_object_above_the_limit_is_passed_over),
        cmocka_unit_test(a_line_above_the_limit_is_not_kept),
        cmocka_unit_test(a_large_tail_is_given_back),
        cmocka_unit_test(a_callback_ends_the_watch),
        cmocka_unit_test(no_memory_is_an_error_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
