#!/usr/bin/env bash
# Programs of others find, compile without a warning against, and link with what is installed: the README's, in C11 and
# C++17, that of docs/library.md by kinformer.hpp, and one that walks an object as a cJSON tree: check-consumer.sh PREFIX CC CXX
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=$1
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
work=$prefix/work
mkdir -p "$work"

# The first fenced block of a language: listing LANGUAGE FILE
listing() {
    awk -v begin='```'"$1" '$0 == begin { inside = 1; next } inside && $0 == "```" { exit } inside' "$2"
}
listing c README.md > "$work/readme.c"
listing cpp docs/library.md > "$work/library-hpp.c"
cat > "$work/tree.c" <<'END'
#include <kinformer/kinformer.h>
#include <kinformer/tree.h>
#include <stdio.h>

int main(void)
{
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_type *type;
    const struct kinf_object *object;
    cJSON *tree;

    if (kinf_type_intern("", "v1", "Pod", "pods", true, &type, &err) < 0 ||
        kinf_object_new_from_json(type, "{\"metadata\":{\"name\":\"a\"}}", 25, &object, &err) < 0 ||
        kinf_object_tree(object, &tree, &err) < 0)
        return 1;
    puts(cJSON_GetStringValue(cJSON_GetObjectItem(tree, "kind")));
    cJSON_Delete(tree);
    kinf_object_unref(object);
    return 0;
}
END
cat > "$work/macros.c" <<'END'
#include <kinformer/kinformer.h>

int main(void)
{
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_client_options client = KINF_CLIENT_OPTIONS_INIT;
    struct kinf_deltafifo_options fifo = KINF_DELTAFIFO_OPTIONS_INIT;
    struct kinf_queue_options queue = KINF_QUEUE_OPTIONS_INIT;
    struct kinf_controller_options controller = KINF_CONTROLLER_OPTIONS_INIT;
    struct kinf_elector_options elector = KINF_ELECTOR_OPTIONS_INIT;
    struct kinf_queue_add_options add = KINF_QUEUE_ADD_OPTIONS_INIT;
    struct kinf_request request = KINF_REQUEST_INIT;
    struct kinf_handler handler = KINF_HANDLER_INIT;
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    kinf_auto_object_list struct kinf_object_list objects = KINF_OBJECT_LIST_INIT;
    kinf_auto_string_list struct kinf_string_list strings = KINF_STRING_LIST_INIT;
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;

    return informer.size == 0 || client.size == 0 || fifo.size == 0 || request.size == 0 ||
           queue.size == 0 || controller.n_workers != 0 || elector.release_on_stop || add.priority != KINF_PRIORITY_NORMAL ||
           handler.on_add != NULL || informer.wait_out_refusals || client.token != NULL;
}
END

build() { # NAME COMPILER FLAGS...
    # shellcheck disable=SC2046,SC2086
    $2 "${@:3}" -Wall -Wextra -Werror "$work/$1.c" $(pkg-config --cflags --libs kinformer) -o "$work/$1"
}
for name in readme tree macros; do
    build "$name" "$2" -std=c11 -pedantic
    build "$name" "$3" -x c++ -std=c++17
done
build library-hpp "$3" -x c++ -std=c++17 -pedantic
[ "$("$work/tree")" = Pod ] && "$work/macros"
# They run, and say why they cannot go on.
for program in readme library-hpp; do
    if said=$(KUBECONFIG=$work/none "$work/$program" 2>&1) || [[ $said != *"$work/none"* ]]; then
        echo "check-consumer: $program said: $said"
        exit 1
    fi
done
echo "check-consumer: ok"
