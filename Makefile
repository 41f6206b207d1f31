# kinformer. `make help` lists the targets; README.md says what comes out.

MODE ?= debug
BUILD := build/$(MODE)
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
BINDIR ?= $(PREFIX)/bin
INCLUDEDIR ?= $(PREFIX)/include
CC ?= cc
CXX ?= c++
CLANG ?= clang
PKG_CONFIG ?= pkg-config
VERSION := $(shell sed -n 's/.*KINF_VERSION_STRING "\(.*\)"/\1/p' src/include/kinformer/api.h)
SOVERSION := 0

ifeq ($(V),1)
Q :=
else
Q := @
endif

# --- flags -----------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings \
            -Wformat=2 -Wno-format-truncation -Wundef
MODE_debug := -O1 -g3
MODE_release := -O2 -g -DNDEBUG
MODE_asan := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
MODE_tsan := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
ifndef MODE_$(MODE)
$(error MODE=$(MODE) is none of debug, release, asan, tsan)
endif

LIBS_PC := libcurl libcjson yaml-0.1 openssl zlib
KINF_CFLAGS = -std=c11 -D_GNU_SOURCE -Isrc -Isrc/include -Itests -fPIC -fvisibility=hidden -pthread $(WARNINGS) \
              $(MODE_$(MODE)) $(shell $(PKG_CONFIG) --cflags $(LIBS_PC)) $(CFLAGS)
KINF_LDFLAGS = -pthread $(filter -fsanitize=%,$(MODE_$(MODE))) $(LDFLAGS)
KINF_LIBS = $(shell $(PKG_CONFIG) --libs $(LIBS_PC))
# Tests can make the n-th allocation fail (tests/unit/allocation.h).
TEST_LDFLAGS := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray
TEST_LIBS = $(shell $(PKG_CONFIG) --libs cmocka)

# --- what there is ---------------------------------------------------------------------------------

LIB_FOLDERS := base json object yaml rest indexer deltafifo reflector informer
LIB_SRC := $(foreach f,$(LIB_FOLDERS),$(wildcard src/$(f)/*.c))
DAEMON_SRC := $(wildcard src/daemon/*.c)
TEST_SRC := $(wildcard tests/unit/test_*.c)
TEST_AID_SRC := $(filter-out $(TEST_SRC),$(wildcard tests/unit/*.c))
EXAMPLE_DIRS := $(patsubst examples/%/main.c,%,$(wildcard examples/*/main.c))
BENCH_SRC := $(wildcard bench/bench_*.c)
BENCH_AID_SRC := $(filter-out $(BENCH_SRC),$(wildcard bench/*.c))

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
LIB_OBJ := $(call objects,$(LIB_SRC))
DAEMON_OBJ := $(call objects,$(DAEMON_SRC))
TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(TEST_SRC))
BENCHES := $(patsubst bench/%.c,$(BUILD)/bench/%,$(BENCH_SRC))
EXAMPLES := $(addprefix $(BUILD)/examples/,$(EXAMPLE_DIRS))

STATIC := $(BUILD)/lib/libkinformer.a
SHARED := $(BUILD)/lib/libkinformer.so
DAEMON := $(BUILD)/bin/kinformerd

.DEFAULT_GOAL := all
.PHONY: help all deps run test test-unit test-integration unit lint check-layers check-symbols \
        check-headers check-format thread-safety tidy format bench install uninstall clean FORCE

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 22

all: $(STATIC) $(SHARED) $(if $(DAEMON_SRC),$(DAEMON)) $(EXAMPLES) ## build libraries, daemon and examples (MODE=debug|release|asan|tsan)

# --- rules -----------------------------------------------------------------------------------------

# Changes when the flags or the set of sources do, and rebuilds what depends on them.
STAMP := $(BUILD)/flags.stamp
$(STAMP): FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(CC) $(KINF_CFLAGS) $(KINF_LDFLAGS)' '$(LIB_SRC) $(DAEMON_SRC)' | cmp -s - $@ || \
	  printf '%s\n' '$(CC) $(KINF_CFLAGS) $(KINF_LDFLAGS)' '$(LIB_SRC) $(DAEMON_SRC)' > $@

$(BUILD)/%.o: %.c $(STAMP)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC      $@")
	$(Q)$(CC) $(KINF_CFLAGS) -MMD -MP -c $< -o $@

$(STATIC): $(LIB_OBJ) $(STAMP)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  AR      $@")
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ)

$(SHARED): $(LIB_OBJ) $(STAMP)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LD      $@")
	$(Q)$(CC) -shared -Wl,-soname,libkinformer.so.$(SOVERSION) $(KINF_LDFLAGS) $(LIB_OBJ) $(KINF_LIBS) -o $@

$(DAEMON): $(DAEMON_OBJ) $(STATIC)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LD      $@")
	$(Q)$(CC) $(KINF_LDFLAGS) $(DAEMON_OBJ) $(STATIC) $(KINF_LIBS) -o $@

$(BUILD)/tests/test_%: $(BUILD)/tests/unit/test_%.o $(call objects,$(TEST_AID_SRC)) $(STATIC)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LD      $@")
	$(Q)$(CC) $(KINF_LDFLAGS) $(TEST_LDFLAGS) $(filter %.o,$^) $(STATIC) $(KINF_LIBS) $(TEST_LIBS) -o $@

$(BUILD)/bench/bench_%: $(BUILD)/bench/bench_%.o $(call objects,$(BENCH_AID_SRC)) $(STATIC)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LD      $@")
	$(Q)$(CC) $(KINF_LDFLAGS) $(filter %.o,$^) $(STATIC) $(KINF_LIBS) -o $@

$(BUILD)/examples/%: $(BUILD)/examples/%/main.o $(STATIC)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LD      $@")
	$(Q)$(CC) $(KINF_LDFLAGS) $< $(STATIC) $(KINF_LIBS) -o $@

.PRECIOUS: $(BUILD)/%.o

# One module's tests in one mode: make unit T=indexer MODE=asan
unit: $(if $(T),$(BUILD)/tests/test_$(T),$(TESTS)) ## build and run unit tests of this MODE (T=module for one)
	@scripts/run-unit-tests.sh $(MODE) $(if $(T),$(BUILD)/tests/test_$(T),$(TESTS))

FORCE:

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
