# kinformer. `make help` lists the targets, by the sections of this file; README.md says what comes out.

MODE ?= debug
BUILD := build/$(MODE)
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
BINDIR ?= $(PREFIX)/bin
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/site-functions
CC ?= cc
CXX ?= c++
CLANG ?= clang
PKG_CONFIG ?= pkg-config
SCDOC ?= scdoc
VERSION := $(shell sed -n 's/.*KINF_VERSION_STRING "\(.*\)"/\1/p' src/include/kinformer/api.h)
SOVERSION := $(shell sed -n 's/^KINFORMER_\([0-9]*\) {$$/\1/p' src/kinformer.map)

ifeq ($(V),1)
Q :=
SAY := @:
else ifneq (,$(findstring s,$(firstword -$(MAKEFLAGS))))
Q := @
SAY := @:
else
Q := @
SAY := @echo
endif

# --- flags -----------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings \
            -Wformat=2 -Wno-format-truncation -Wundef
MODE_debug := -O1 -g
MODE_release := -O2 -g -DNDEBUG
# Of the sanitizers' builds lines are enough, and half as large.
MODE_asan := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
MODE_tsan := -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread
# Of `make coverage` alone.
MODE_coverage := -O0 --coverage -fprofile-update=atomic
# Of `make fuzz` alone: libFuzzer is clang's.
MODE_fuzz := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
             -fno-sanitize-recover=all -Wno-unknown-warning-option
ifndef MODE_$(MODE)
$(error MODE=$(MODE) is none of debug, release, asan, tsan)
endif
ifeq ($(MODE),fuzz)
CC := $(CLANG)
endif

LIBS_PC := libcurl libcjson yaml-0.1 openssl zlib libzstd
KINF_CFLAGS = -std=c11 -D_GNU_SOURCE -Isrc -Isrc/include -Itests -fPIC -fvisibility=hidden -pthread $(WARNINGS) \
              $(MODE_$(MODE)) $(shell $(PKG_CONFIG) --cflags $(LIBS_PC)) $(CPPFLAGS) $(CFLAGS)
KINF_LDFLAGS = -pthread $(filter -fsanitize=% --coverage,$(MODE_$(MODE))) $(LDFLAGS)
KINF_LIBS = $(shell $(PKG_CONFIG) --libs $(LIBS_PC))
# The library does without.
DAEMON_LIBS = $(shell $(PKG_CONFIG) --libs libmicrohttpd gnutls) -lm
# Tests can make the n-th allocation fail (tests/unit/allocation.h).
TEST_LDFLAGS := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=strdup,--wrap=strndup
# What the processes of a sweep count (tests/unit/sweep.c).
ifeq ($(MODE),coverage)
TEST_LDFLAGS += -u __gcov_dump
endif
$(BUILD)/tests/test_plugin: TEST_LDFLAGS += -Wl,--wrap=memfd_create
# The transcripts are replayed in process, and at the recorded pace without waiting.
$(BUILD)/tests/test_transcripts: TEST_LDFLAGS += -Wl,--wrap=kinf__http_perform,--wrap=kinf__clock_now_ms
TEST_LIBS = $(shell $(PKG_CONFIG) --libs cmocka)

# --- what there is ---------------------------------------------------------------------------------

LIB_FOLDERS := base queue json object yaml rest indexer deltafifo reflector informer elector recorder controller
LIB_SRC := $(foreach f,$(LIB_FOLDERS),$(wildcard src/$(f)/*.c))
# Only the daemon has these; all but its main() are in an archive, which tests and benchmarks link, too.
DAEMON_FOLDERS := watchcache table serve handlers state daemon
DAEMON_SRC := $(foreach f,$(DAEMON_FOLDERS),$(wildcard src/$(f)/*.c))
DAEMON_MAIN_SRC := src/daemon/main.c
# kinformer-sim, and what tests of others link of it.
SIM_FOLDERS := document fault apiserver workloads sim
SIM_SRC := $(foreach f,$(SIM_FOLDERS),$(wildcard src/$(f)/*.c))
SIM_MAIN_SRC := src/sim/main.c
TEST_SRC := $(wildcard tests/unit/test_*.c)
# Good and bad ones, of which tests/unit/plugins/plugin.c knows the differences.
TEST_PLUGINS := $(patsubst %,$(BUILD)/tests/plugins/%.so,scripted larger no_flush another_name another_abi small no_table \
                  no_symbol undefined no_name empty_name no_open no_on_change no_close nodelete)
TEST_AID_SRC := $(filter-out $(TEST_SRC),$(wildcard tests/unit/*.c))
REPLAY_CORE_SRC := $(filter-out tests/replay/main.c,$(wildcard tests/replay/*.c))
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
# Linked with libFuzzer, or with a main() of our own that runs files.
FUZZ_AID_SRC := tests/fuzz/fuzz.c $(if $(filter fuzz,$(MODE)),,tests/fuzz/replay.c)
# A plugin of the daemon links what it needs itself, and is built where that is.
NATS_SRC := $(if $(shell $(PKG_CONFIG) --exists libnats && echo yes),$(wildcard plugins/nats/*.c))
# The soak's followers, and the oracle, which shares nothing with what it judges.
SOAK_ORACLE_SRC := $(addprefix tests/soak/,oracle.c served.c stream.c leaders.c writer.c history.c text.c verdict.c)
SOAK_FOLLOWER_SRC := $(addprefix tests/soak/,follower.c controller.c link.c patience.c history.c text.c)
EXAMPLE_DIRS := $(patsubst examples/%/main.c,%,$(wildcard examples/*/main.c))
BENCH_SRC := $(wildcard bench/bench_*.c)
BENCH_AID_SRC := $(filter-out $(BENCH_SRC),$(wildcard bench/*.c))

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
LIB_OBJ := $(call objects,$(LIB_SRC))
DAEMON_OBJ := $(call objects,$(filter-out $(DAEMON_MAIN_SRC),$(DAEMON_SRC)))
DAEMON_MAIN_OBJ := $(call objects,$(DAEMON_MAIN_SRC))
SIM_OBJ := $(call objects,$(filter-out $(SIM_MAIN_SRC),$(SIM_SRC)))
SIM_MAIN_OBJ := $(call objects,$(SIM_MAIN_SRC))
TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(TEST_SRC)) $(BUILD)/tests/test_hpp
# One thread each: the thread sanitizer has nothing to see in them, and would take minutes.
ONE_THREAD_TESTS := access_policy apply backlog body churn claims credit defaults demand discovery election event_frames fault_spec fault_stream field_set format \
                    generate indexer_oom json_lookup json_path json_plan json_scan json_tree kubeconfig last_hour list_stream lister managed meta_text nats \
                    manifest object omit openapi outbox pace patch plugin_config pod_index policy policy_rows progress protobuf \
                    quantity quarantine queue queue_model queue_requeue rate_limit refusal request_head rollout rv schema schema_custom \
                    scope selector series sim_kinds sim_options state_file strategic timers transcripts tree tree_changes turns url watch_stream watchcache \
                    watchcache_model workloads workqueue write_options yaml
ifeq ($(MODE),tsan)
TESTS := $(filter-out $(addprefix $(BUILD)/tests/test_,$(ONE_THREAD_TESTS)),$(TESTS))
endif
# Half a minute or more in one of the builds, the longest first: none of them is to be what the others wait for.
LONG_TESTS := $(addprefix $(BUILD)/tests/test_,controller_sync engine_model swept_library reflector_certificates bad_servers \
                engine informer_stop elector swept_server)
TESTS := $(filter $(TESTS),$(LONG_TESTS)) $(filter-out $(LONG_TESTS),$(TESTS))
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZ_SRC))
SOAKS := $(BUILD)/soak/oracle $(BUILD)/soak/follower
BENCHES := $(patsubst bench/%.c,$(BUILD)/bench/%,$(BENCH_SRC))
PLUGINS := $(if $(NATS_SRC),$(BUILD)/plugins/kinformer-nats.so)
EXAMPLES := $(addprefix $(BUILD)/examples/,$(EXAMPLE_DIRS)) \
            $(patsubst examples/%/plugin.c,$(BUILD)/examples/%.so,$(wildcard examples/*/plugin.c))

STATIC := $(BUILD)/lib/libkinformer.a
SHARED := $(BUILD)/lib/libkinformer.so
DAEMON_PARTS := $(BUILD)/daemon/libkinformerd.a
DAEMON := $(BUILD)/bin/kinformerd
SIM_PARTS := $(BUILD)/sim/libsim.a
SIM_PROGRAM := $(BUILD)/bin/kinformer-sim
# What kinformer/testing.h promises; static alone, since it shares the insides of the static library.
TESTING := $(BUILD)/lib/libkinformer-testing.a
TESTING_OBJ := $(SIM_OBJ) $(filter-out $(BUILD)/src/daemon/% $(BUILD)/src/handlers/% $(BUILD)/src/state/%,$(DAEMON_OBJ))
REPLAY_CORE := $(BUILD)/replay/libreplay.a
REPLAY := $(BUILD)/replay/kinf-replay

# --- build -----------------------------------------------------------------------------------------

.DEFAULT_GOAL := all
.PHONY: help all man deps run image test soak linear mutate coverage valgrind test-clients unit build-tests build-benches lint lint-but-tidy check-layers check-parity docs check-docs docs-pictures try-tutorial try-newer-debian try-arm64 check-symbols \
        check-headers check-abi update-abi check-consumer check-format thread-safety tidy format fuzz fuzz-corpus bench run-benches install \
        install-man uninstall dist deb clean compile_commands.json FORCE

help: ## list the targets
	@sed -n -e 's/^# --- \(.*[a-z]\) -*$$/\1/p' -e 's/^\([a-z0-9_.-]*\):.*## /  \1\t/p' $(firstword $(MAKEFILE_LIST)) | \
	  awk '/^ / { print section $$0; section = "" } !/^ / { section = "\n" $$0 ":\n" }' | expand -t 25

all: $(STATIC) $(SHARED) $(TESTING) $(DAEMON) $(SIM_PROGRAM) $(EXAMPLES) $(PLUGINS) ## build libraries, programs and examples (MODE=debug|release|asan|tsan)

deps:
	@scripts/install-deps.sh build

# A minute of a processor's time, or two, in which nothing is said: all of them take part, unless make was told how many.
ALL_JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
SAY_BUILDING = @[ -d build/release/bin ] || echo "building, which takes a minute or two"

run: deps ## install what is missing, build, and run kinformerd on the current cluster or a simulated one (ARGS="--resource pods" SIM=1)
	$(SAY_BUILDING)
	@$(MAKE) --no-print-directory -s $(ALL_JOBS) MODE=release build/release/bin/kinformerd build/release/bin/kinformer-sim
	@SIM=$(SIM) scripts/run-daemon.sh build/release/bin $(ARGS)

# For editors: clangd and others find it in this folder.
COMPILE_COMMANDS ?= compile_commands.json
compile_commands.json: ## tell editors how each C file is compiled, in this MODE (COMPILE_COMMANDS=FILE)
	@{ before='['; for file in $(filter %.c,$(C_FILES)); do \
	  printf '%s\n{"directory": "%s", "file": "%s", "command": "%s"}' "$$before" '$(CURDIR)' "$$file" '$(CC) $(KINF_CFLAGS) -c '"$$file"; \
	  before=,; done; echo ']'; } > $(COMPILE_COMMANDS)

# Where there is Docker and a registry, Dockerfile makes the same.
image: ## build kinformerd's container image out of Debian's packages: an OCI archive, in build/image
	@scripts/install-deps.sh build image
	$(SAY_BUILDING)
	@$(MAKE) --no-print-directory -s $(ALL_JOBS) MODE=release build/release/bin/kinformerd
	@mkdir -p build/image
	@scripts/make-image.py build/release/bin/kinformerd build/image/kinformerd-$(VERSION).tar

clean: ## remove what was built, but not the cluster's binaries
	rm -rf build/debug build/release build/asan build/tsan build/fuzz build/coverage build/tidy build/man build/docs build/docs-src build/dist build/deb build/image

# --- rules -----------------------------------------------------------------------------------------

# Changes when the flags or the set of sources do, and rebuilds what depends on them.
STAMP := $(BUILD)/flags.stamp
$(STAMP): FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(CC) $(KINF_CFLAGS) $(KINF_LDFLAGS)' '$(LIB_SRC) $(DAEMON_SRC) $(SIM_SRC)' | cmp -s - $@ || \
	  printf '%s\n' '$(CC) $(KINF_CFLAGS) $(KINF_LDFLAGS)' '$(LIB_SRC) $(DAEMON_SRC) $(SIM_SRC)' > $@

$(BUILD)/%.o: %.c $(STAMP)
	@mkdir -p $(@D)
	$(SAY) "  CC      $@"
	$(Q)$(CC) $(KINF_CFLAGS) -MMD -MP -c $< -o $@

# Included by the assembler, which writes no dependencies.
$(BUILD)/src/serve/page.o: src/serve/page.html
$(BUILD)/src/document/schema.o: src/document/schema.txt

$(STATIC): $(LIB_OBJ) $(STAMP)
	@mkdir -p $(@D)
	$(SAY) "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ)

$(SHARED): $(LIB_OBJ) $(STAMP) src/kinformer.map
	@mkdir -p $(@D)
	$(SAY) "  LD      $@"
	$(Q)$(CC) -shared -Wl,-soname,libkinformer.so.$(SOVERSION) -Wl,--version-script=src/kinformer.map $(KINF_LDFLAGS) $(LIB_OBJ) $(KINF_LIBS) -o $@

$(DAEMON_PARTS): $(DAEMON_OBJ) $(STAMP)
	@mkdir -p $(@D)
	$(SAY) "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $(DAEMON_OBJ)

$(DAEMON): $(DAEMON_MAIN_OBJ) $(DAEMON_PARTS) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) "  LD      $@"
	$(Q)$(CC) $(KINF_LDFLAGS) $(DAEMON_MAIN_OBJ) $(DAEMON_PARTS) $(STATIC) $(KINF_LIBS) $(DAEMON_LIBS) -o $@

$(SIM_PARTS): $(SIM_OBJ) $(STAMP)
	@mkdir -p $(@D)
	$(SAY) "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $(SIM_OBJ)

$(TESTING): $(TESTING_OBJ) $(STAMP)
	@mkdir -p $(@D)
	$(SAY) "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $(TESTING_OBJ)

$(SIM_PROGRAM): $(SIM_MAIN_OBJ) $(SIM_PARTS) $(DAEMON_PARTS) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) "  LD      $@"
	$(Q)$(CC) $(KINF_LDFLAGS) $(SIM_MAIN_OBJ) $(SIM_PARTS) $(DAEMON_PARTS) $(STATIC) $(KINF_LIBS) $(DAEMON_LIBS) -o $@

$(REPLAY_CORE): $(call objects,$(REPLAY_CORE_SRC))
	@mkdir -p $(@D)
	$(SAY) "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(REPLAY): $(call objects,tests/replay/main.c src/sim/key_pair.c) $(REPLAY_CORE) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) "  LD      $@"
	$(Q)$(CC) $(KINF_LDFLAGS) $^ $(KINF_LIBS) -o $@

$(BUILD)/tests/test_%: $(BUILD)/tests/unit/test_%.o $(call objects,$(TEST_AID_SRC)) $(REPLAY_CORE) $(SIM_PARTS) $(DAEMON_PARTS) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) "  LD      $@"
	$(Q)$(CC) $(KINF_LDFLAGS) $(TEST_LDFLAGS) $(filter %.o,$^) $(REPLAY_CORE) $(SIM_PARTS) $(DAEMON_PARTS) $(STATIC) $(KINF_LIBS) $(DAEMON_LIBS) $(TEST_LIBS) -o $@

$(addprefix $(BUILD)/tests/test_,plugin plugin_handler plugin_model): | $(TEST_PLUGINS)

# They link nothing.
$(BUILD)/tests/plugins/nodelete.so: KINF_LDFLAGS += -Wl,-z,nodelete
$(BUILD)/tests/plugins/%.so: tests/unit/plugins/plugin.c tests/unit/plugins/script.h src/include/kinformer/plugin.h $(STAMP)
	@mkdir -p $(@D)
	$(SAY) "  CCLD    $@"
	$(Q)$(CC) $(KINF_CFLAGS) $(KINF_LDFLAGS) -shared -DVARIANT_$* $< -o $@

# What of the plugin needs no server.
$(BUILD)/tests/test_nats: $(call objects,$(addprefix plugins/nats/,config.c fail.c key.c known.c))

$(BUILD)/plugins/kinformer-nats.so: $(call objects,$(NATS_SRC)) $(STAMP)
	@mkdir -p $(@D)
	$(SAY) "  LD      $@"
	$(Q)$(CC) -shared $(KINF_LDFLAGS) $(filter %.o,$^) $(shell $(PKG_CONFIG) --libs libnats libcjson) -o $@

# kinformer.hpp as programs have it: of the library, its public headers alone.
$(BUILD)/tests/test_hpp: tests/unit/test_hpp.cpp $(TESTING) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) "  CXXLD   $@"
	$(Q)$(CXX) -std=c++17 -Isrc/include -pthread -Wall -Wextra -Werror $(MODE_$(MODE)) $(CXXFLAGS) -MMD -MP -MF $@.d \
	  $(LDFLAGS) $< $(TESTING) $(STATIC) $(KINF_LIBS) $(DAEMON_LIBS) $(TEST_LIBS) -o $@

$(BUILD)/bench/bench_%: $(BUILD)/bench/bench_%.o $(call objects,$(BENCH_AID_SRC)) $(SIM_PARTS) $(DAEMON_PARTS) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) "  LD      $@"
	$(Q)$(CC) $(KINF_LDFLAGS) $(filter %.o,$^) $(SIM_PARTS) $(DAEMON_PARTS) $(STATIC) $(KINF_LIBS) $(DAEMON_LIBS) -o $@

$(BUILD)/fuzz/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(call objects,$(FUZZ_AID_SRC)) $(SIM_PARTS) $(DAEMON_PARTS) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) "  LD      $@"
	$(Q)$(CC) $(KINF_LDFLAGS) $(if $(filter fuzz,$(MODE)),-fsanitize=fuzzer) $(filter %.o,$^) $(SIM_PARTS) $(DAEMON_PARTS) \
	  $(STATIC) $(KINF_LIBS) $(DAEMON_LIBS) -o $@

$(BUILD)/oracle/%: $(BUILD)/tests/oracle/%.o $(call objects,tests/unit/json_corpus.c tests/unit/test.c) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) "  LD      $@"
	$(Q)$(CC) $(KINF_LDFLAGS) $(filter %.o,$^) $(STATIC) $(KINF_LIBS) $(TEST_LIBS) -o $@

$(BUILD)/soak/oracle: $(call objects,$(SOAK_ORACLE_SRC))
	@mkdir -p $(@D)
	$(SAY) "  LD      $@"
	$(Q)$(CC) $(KINF_LDFLAGS) $^ $(shell $(PKG_CONFIG) --libs libcurl) -o $@

$(BUILD)/soak/follower: $(call objects,$(SOAK_FOLLOWER_SRC)) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) "  LD      $@"
	$(Q)$(CC) $(KINF_LDFLAGS) $^ $(KINF_LIBS) -o $@

# In one step: the object's folder would have the program's name.
$(BUILD)/examples/%: examples/%/main.c $(STATIC)
	@mkdir -p $(@D)
	$(SAY) "  CCLD    $@"
	$(Q)$(CC) $(KINF_CFLAGS) -MMD -MP -MF $@.d $(KINF_LDFLAGS) $< $(STATIC) $(KINF_LIBS) -o $@

# Plugins of kinformerd link nothing.
$(BUILD)/examples/%.so: examples/%/plugin.c $(STAMP)
	@mkdir -p $(@D)
	$(SAY) "  CCLD    $@"
	$(Q)$(CC) $(KINF_CFLAGS) -MMD -MP -MF $@.d $(KINF_LDFLAGS) -shared $< -o $@

# Programs with their tests, which need no cluster.
$(BUILD)/examples/tested-program: examples/tested-program/counter.c
$(BUILD)/examples/tested-%: examples/tested-%/main.c $(TESTING) $(STATIC)
	@mkdir -p $(@D)
	$(SAY) "  CCLD    $@"
	$(Q)$(CC) $(KINF_CFLAGS) $(KINF_LDFLAGS) $(filter %.c,$^) $(TESTING) $(STATIC) $(KINF_LIBS) $(DAEMON_LIBS) -o $@

.PRECIOUS: $(BUILD)/%.o

# --- tests -----------------------------------------------------------------------------------------

build-tests: $(TESTS) $(REPLAY) $(SOAKS)

build-benches: $(BENCHES)

# One module's tests in one mode: make unit T=indexer MODE=asan
unit: $(if $(T),$(BUILD)/tests/test_$(T),$(TESTS)) ## build and run the unit tests of this MODE (T=name for one)
	@scripts/run-unit-tests.sh $(MODE) $^

# Only what libFuzzer found and what was written for it; finding more is `make fuzz`.
fuzz-corpus: $(FUZZERS)
	@for fuzzer in $^; do \
	  printf '  %-20s' "$$(basename $$fuzzer)" && $$fuzzer tests/fuzz/corpus/$$(basename $$fuzzer | sed s/fuzz_//) || exit 1; done

# clang's sanitizers; GCC's are those of `make test`.
FUZZED := $(if $(T),$(T),$(patsubst tests/fuzz/fuzz_%.c,%,$(FUZZ_SRC)))
fuzz: ## look for inputs that break a parser for TIME=600 seconds, all of them or T=json_scan; what is new goes to the corpus
	@scripts/install-deps.sh build fuzz
	@$(MAKE) --no-print-directory -s MODE=fuzz $(addprefix build/fuzz/fuzz/fuzz_,$(FUZZED))
	@scripts/fuzz.sh build/fuzz/fuzz $(or $(TIME),600) $(FUZZED)

test: ## install what is missing, then unit tests (plain, ASan+UBSan, TSan) and integration tests on a real cluster
	@scripts/run-tests.sh

# Both servers, one after the other; tests/integration/test_linear.py does the same for seconds.
linear: ## hold what clients read through the sidecar to what it promises, through faults (TIME=600 SEED=7: for each server)
	@scripts/install-deps.sh build test
	@tests/cluster/build.sh
	@$(MAKE) --no-print-directory -s MODE=asan all
	@export KINF_LINEAR_SECONDS=$(or $(TIME),600) $(if $(SEED),KINF_TEST_SEED=$(SEED)); cd tests/integration && \
	  KINF_TEST_SERVER=sim python3 -B -m unittest -v test_linear && python3 -B -m unittest -v test_linear

# Not of `make test`: a folder takes some minutes, of a machine with nothing else to do.
mutate: ## try N=100 changes of FOLDER=deltafifo, drawn by SEED=1, on its unit tests; tests/MUTATION.md says what survived (FILES=keyed.c:120, FILES=survivors)
	@scripts/mutate.py $(or $(FOLDER),$(error which FOLDER of src?)) $(or $(N),100) $(or $(SEED),1) "$(FILES)" $(LONGEST)

# What kinformer-sim cannot be asked: certificates, reviews, rights.
COVERAGE_MODULES := serve_auth serve_certificates serve_tunnel restarts
# They are about programs of other builds, or compare times.
COVERAGE_WITHOUT := packages soak elector examples configmap_sync discovery install library plugins recorder requests shards \
                    programs serve_fair
# A test that is too slow without optimisation is told, and its lines count.
coverage: ## run unit tests and programs on both servers, and write what of src/ they ran to tests/COVERAGE.md (half an hour)
	@scripts/install-deps.sh build test coverage
	@tests/cluster/build.sh
	@$(MAKE) --no-print-directory -s MODE=coverage all build-tests
	@find build/coverage -name '*.gcda' -delete
	-@$(MAKE) --no-print-directory -s MODE=coverage unit
	-@KINF_TEST_SERVER=sim KINF_TEST_BUILD=coverage python3 -B tests/integration/run.py \
	  $(filter-out $(addprefix test_,$(COVERAGE_WITHOUT)),$(patsubst tests/integration/%.py,%,$(wildcard tests/integration/test_*.py))) test_serve_fair.Probes
	-@KINF_TEST_BUILD=coverage python3 -B tests/integration/run.py $(addprefix test_,$(COVERAGE_MODULES))
	@gcovr --root . --filter src/ --exclude-unreachable-branches --json build/coverage/gcovr.json build/coverage/src
	@scripts/coverage.py $(COVERAGE_MODULES) < build/coverage/gcovr.json > tests/COVERAGE.md

# Not of `make test`: it is 20 to 50 times slower, and sees little that ASan does not: what is read before it was written.
# What such a machine is too slow for fails there, and is left out.
TOO_SLOW_IN_VALGRIND := controller_sync reflector swept_library swept_server
valgrind: ## run the unit tests of the debug build under valgrind, all that do not measure time (hours) or T="informer serve_watch"
	@scripts/install-deps.sh build test valgrind
	@$(MAKE) --no-print-directory -s MODE=debug $(if $(T),$(addprefix build/debug/tests/test_,$(T)),build-tests)
	@scripts/run-unit-tests.sh valgrind $(addprefix build/debug/tests/test_,$(or $(T),$(filter-out $(TOO_SLOW_IN_VALGRIND),$(patsubst tests/unit/test_%.c,%,$(TEST_SRC)))))

soak: ## random writes, faults and restarts for a while, judged by an oracle (ARGS="--events 10000000", see tests/soak/soak.py)
	@scripts/install-deps.sh build test
	@tests/cluster/build.sh
	@tests/clients/python/install.sh
	@$(MAKE) --no-print-directory -s MODE=release build/release/bin/kinformerd build/release/bin/kinformer-sim \
	  build/release/soak/oracle build/release/soak/follower
	@python3 -B tests/soak/soak.py $(ARGS)

test-clients: ## what others see of the daemon, on a real cluster: clients in five languages, the status page and the documents in Chromium
	@scripts/install-deps.sh build test clients
	@tests/cluster/build.sh
	@$(MAKE) --no-print-directory -s MODE=asan all
	@python3 -B tests/clients/kubeconfig.py
	@python3 -B tests/clients/kube_rs.py
	@python3 -B tests/clients/page.py
	@$(MAKE) --no-print-directory -s docs
	@python3 -B tests/clients/documents.py

# --- benchmarks ------------------------------------------------------------------------------------

bench: ## measure beside client-go, kube-rs, curl and the API server, and write bench/RESULTS.md (RUNS=5 SIZE=10050 ONLY=sync,events)
	@scripts/install-deps.sh build bench
	@python3 -B bench/run.py $(foreach option,RUNS SIZE ONLY SIZES PEERS OUT,$(if $($(option)),$(option)=$($(option))))

# Two need a server: bench/run.py runs them.
run-benches: $(filter-out %/bench_pods %/bench_serve,$(BENCHES)) ## build and run the benchmarks of single parts (MODE=release)
	@for bench in $^; do echo "== $$(basename $$bench)"; $$bench || exit 1; done

# --- documents -------------------------------------------------------------------------------------

# What they say is compared with the tree by check-docs, what they print by tests/integration/test_docs.py.
docs: ## build the documents as HTML into build/docs, and check links and listings
	@scripts/install-deps.sh build docs
	scripts/list-guarantees.py > build/guarantees.md && mv build/guarantees.md docs/guarantees.md
	@scripts/check-docs.py
	dot -Tsvg docs/dataflow.dot -o docs/dataflow.svg
	@rm -rf build/docs-src && mkdir -p build/docs-src
	@cp --parents $(filter-out build/%,$(wildcard *.md */*.md */*/*.md)) docs/*.svg docs/*.css docs/pictures/* bench/*.svg bench/results.json build/docs-src/
	@scripts/make-reference.py build/docs-src/docs/reference
	mkdocs build -q -f docs/mkdocs.yml
	@cp build/docs/js/jquery-*.js build/docs/js/jquery.js # Debian's theme has it by another name than it asks for
	@grep -rlZ 'js/jquery-[0-9.]*min.js' build/docs --include=*.html | xargs -0 sed -i -e 's|js/jquery-[0-9.]*min.js|js/jquery.js|' -e '/js\/theme_extra.js/d'

docs-pictures: ## take the pictures of docs/pictures anew, of the status page in Chromium
	@scripts/install-deps.sh build test clients
	@tests/cluster/build.sh
	@$(MAKE) --no-print-directory -s MODE=asan all
	@$(MAKE) --no-print-directory -s MODE=release all
	@python3 -B tests/clients/documents.py --pictures

try-tutorial: ## follow docs/tutorial.md as a newcomer to a fresh Debian, in a chroot (root, mmdebstrap), and say how long that takes
	@scripts/try-tutorial.py

try-newer-debian: ## build and run the unit tests on Debian 13, whose libraries are newer, in a chroot (root, mmdebstrap; four minutes)
	@scripts/try-newer-debian.py

try-arm64: ## build for 64-bit ARM and run the unit tests in an emulator, in a chroot (root, mmdebstrap; ten minutes)
	@scripts/try-arm64.py

check-docs:
	@scripts/check-docs.py
	@scripts/make-reference.py --check
	@python3 -B bench/run.py --check
	@scripts/list-guarantees.py | cmp -s - docs/guarantees.md || { echo "check-docs: docs/guarantees.md is not as it would be: make docs"; exit 1; }

MAN_PAGES := $(patsubst docs/man/%.scd,build/man/%,$(wildcard docs/man/*.scd))
# Where a man page is installed: man8/kinformerd.8
man_place = $(MANDIR)/man$(subst .,,$(suffix $(1)))/$(notdir $(1))

man: $(MAN_PAGES) ## make the man pages, in build/man (needs scdoc)

build/man/%: docs/man/%.scd scripts/man-page.sh examples/pod-logger/main.c $(wildcard src/include/kinformer/*)
	@mkdir -p $(@D)
	$(SAY) "  MAN     $@"
	$(Q)scripts/man-page.sh $< $(VERSION) $(SCDOC) > $@ || { rm -f $@; exit 1; }

# --- lint ------------------------------------------------------------------------------------------

lint: lint-but-tidy ## clang-tidy, thread-safety, layers, symbols, ABI, self-contained headers, format
	@$(MAKE) --no-print-directory $(ALL_JOBS) tidy

lint-but-tidy:
	@scripts/install-deps.sh build test lint
	@$(MAKE) --no-print-directory check-format check-layers check-parity check-docs check-headers thread-safety check-symbols check-abi check-consumer

C_FILES = $(wildcard src/*/*.c tests/unit/*.c tests/unit/*.cpp tests/unit/plugins/*.c tests/oracle/*.c tests/replay/*.c tests/soak/*.c tests/fuzz/*.c bench/*.c examples/*/*.c plugins/*/*.c)
H_FILES = $(wildcard src/*/*.h src/include/kinformer/*.h src/include/kinformer/*.hpp tests/unit/*.h tests/unit/plugins/*.h tests/replay/*.h tests/soak/*.h tests/fuzz/*.h bench/*.h plugins/*/*.h)

check-format:
	@clang-format --dry-run -Werror $(C_FILES) $(H_FILES) && echo "check-format: ok"

format: ## rewrite the C files with clang-format
	@clang-format -i $(C_FILES) $(H_FILES)

check-layers:
	@scripts/check-layers.sh

check-parity:
	@scripts/check-parity.sh

check-headers:
	@scripts/check-headers.sh "$(CC) $(KINF_CFLAGS)" "$(CXX)"

check-symbols: $(SHARED)
	@scripts/check-symbols.sh $(SHARED)

check-abi: $(SHARED)
	@scripts/check-abi.sh $(SHARED)

# As installed, in a folder of its own.
CONSUMER := $(abspath $(BUILD)/consumer)
check-consumer: $(SHARED)
	@rm -rf $(CONSUMER) && mkdir -p $(CONSUMER)/lib/pkgconfig $(CONSUMER)/include
	@cp $(SHARED) $(CONSUMER)/lib/libkinformer.so.$(SOVERSION)
	@ln -s libkinformer.so.$(SOVERSION) $(CONSUMER)/lib/libkinformer.so
	@cp -r src/include/kinformer $(CONSUMER)/include/
	@$(MAKE) --no-print-directory -s PREFIX=$(CONSUMER) $(CONSUMER)/lib/pkgconfig/kinformer.pc
	@scripts/check-consumer.sh $(CONSUMER) "$(CC)" "$(CXX)"

$(CONSUMER)/lib/pkgconfig/kinformer.pc: config/kinformer.pc.in
	@$(FILL_PC) $< > $@

update-abi: $(SHARED) ## take the interface as it is for the baseline of check-abi and for Debian's list
	@scripts/check-abi.sh --update $(SHARED)

thread-safety:
	@$(CLANG) $(KINF_CFLAGS) -Wno-format-truncation -Wno-unknown-warning-option -Wthread-safety -Werror \
	  -fsyntax-only $(LIB_SRC) $(DAEMON_SRC) $(SIM_SRC) && echo "thread-safety: ok"

TIDY_STAMPS = $(patsubst %.c,build/tidy/%.stamp,$(LIB_SRC) $(DAEMON_SRC) $(SIM_SRC) $(NATS_SRC))
tidy: $(TIDY_STAMPS)
	@echo "clang-tidy: ok, $(words $(TIDY_STAMPS)) files"

build/tidy/%.stamp: %.c .clang-tidy $(wildcard src/*/*.h src/include/kinformer/*.h)
	@mkdir -p $(@D)
	@clang-tidy --quiet $< -- $(KINF_CFLAGS) -Wno-unknown-warning-option 2>$(@:.stamp=.log) || \
	  { cat $(@:.stamp=.log); exit 1; }
	@touch $@

# --- install ---------------------------------------------------------------------------------------

FILL_PC = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
          -e 's|@VERSION@|$(VERSION)|' -e 's|@REQUIRES@|$(filter-out libcjson,$(LIBS_PC))|'
install: ## install programs, libraries, headers, pkg-config files, man pages and completions (DESTDIR, PREFIX, LIBDIR)
	$(SAY_BUILDING)
	@$(MAKE) --no-print-directory -s $(ALL_JOBS) MODE=release all
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR)/kinformer
	install -m 755 build/release/bin/kinformerd $(DESTDIR)$(BINDIR)/
	install -m 755 build/release/bin/kinformer-sim $(DESTDIR)$(BINDIR)/
	$(if $(PLUGINS),install -d $(DESTDIR)$(LIBDIR)/kinformer && install -m 755 build/release/plugins/*.so $(DESTDIR)$(LIBDIR)/kinformer/)
	install -m 644 build/release/lib/libkinformer.a build/release/lib/libkinformer-testing.a $(DESTDIR)$(LIBDIR)/
	install -m 755 build/release/lib/libkinformer.so $(DESTDIR)$(LIBDIR)/libkinformer.so.$(VERSION)
	ln -sf libkinformer.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libkinformer.so.$(SOVERSION)
	ln -sf libkinformer.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libkinformer.so
	install -m 644 src/include/kinformer/*.h src/include/kinformer/*.hpp $(DESTDIR)$(INCLUDEDIR)/kinformer/
	$(FILL_PC) config/kinformer.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/kinformer.pc
	$(FILL_PC) config/kinformer-testing.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/kinformer-testing.pc
	install -D -m 644 completions/kinformer.bash $(DESTDIR)$(BASHCOMPDIR)/kinformerd
	ln -sf kinformerd $(DESTDIR)$(BASHCOMPDIR)/kinformer-sim
	install -D -m 644 completions/_kinformer $(DESTDIR)$(ZSHCOMPDIR)/_kinformer
	@if command -v $(SCDOC) >/dev/null; then $(MAKE) --no-print-directory install-man; \
	  else echo "no man pages are installed: there is no scdoc (on Debian: apt-get install scdoc)"; fi

define install_page
install -D -m 644 $(1) $(DESTDIR)$(call man_place,$(1))

endef
install-man: $(MAN_PAGES)
	$(foreach page,$^,$(call install_page,$(page)))

uninstall: ## remove what install put there
	rm -f $(DESTDIR)$(BINDIR)/kinformerd $(DESTDIR)$(BINDIR)/kinformer-sim $(DESTDIR)$(LIBDIR)/libkinformer.* \
	  $(DESTDIR)$(LIBDIR)/libkinformer-testing.a $(DESTDIR)$(LIBDIR)/pkgconfig/kinformer.pc \
	  $(DESTDIR)$(LIBDIR)/pkgconfig/kinformer-testing.pc $(DESTDIR)$(BASHCOMPDIR)/kinformerd \
	  $(DESTDIR)$(BASHCOMPDIR)/kinformer-sim $(DESTDIR)$(ZSHCOMPDIR)/_kinformer $(foreach page,$(MAN_PAGES),$(DESTDIR)$(call man_place,$(page)))
	rm -rf $(DESTDIR)$(INCLUDEDIR)/kinformer $(DESTDIR)$(LIBDIR)/kinformer

# --- packages --------------------------------------------------------------------------------------

ARCHIVE := build/dist/kinformer-$(VERSION).tar.xz

dist: ## make the source archive in build/dist, of the same bytes each time
	@scripts/make-dist.sh $(VERSION) $(ARCHIVE)
	@echo $(ARCHIVE)

# Of the archive, in a folder of its own: other flags than those of build/release. What make was told is not meant for that.
DEB_SOURCE := build/deb/kinformer-$(VERSION)
deb: ## make Debian packages in build/deb, and the SBOM (SPDX) of what they are linked with
	@scripts/install-deps.sh build packages
	@$(MAKE) --no-print-directory -s dist
	rm -rf build/deb && mkdir -p build/deb && tar -xf $(ARCHIVE) -C build/deb
	cd $(DEB_SOURCE) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MODE CC='$(CC)' dpkg-buildpackage -us -uc -b
	scripts/make-sbom.py build/deb/*.deb > $(DEB_SOURCE).spdx.json
	rm -rf $(DEB_SOURCE)

FORCE:

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
