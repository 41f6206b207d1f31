/*
 * kinformer/kinformer.hpp, as a program in C++17 uses it, on a server in this process.
 */
#include <kinformer/kinformer.hpp>
#include <kinformer/testing.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <type_traits>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

using kinformer::object_view;

#define PATIENCE_MS 60000

static_assert(std::is_nothrow_move_constructible_v<kinformer::informer>);
static_assert(std::is_nothrow_move_assignable_v<kinformer::controller>);
static_assert(!std::is_copy_constructible_v<kinformer::informer>);
static_assert(!std::is_copy_constructible_v<kinformer::client>);
static_assert(!std::is_copy_constructible_v<kinformer::queue>);
static_assert(!std::is_copy_constructible_v<kinformer::controller>);
static_assert(std::is_copy_constructible_v<kinformer::object>);
static_assert(std::is_nothrow_copy_constructible_v<kinformer::error>);

/* --- aids --- */

class server {
  public:
    server()
    {
        kinf_error err = KINF_ERROR_INIT;

        if (kinf_fake_new(nullptr, &fake_, &err) < 0)
            throw kinformer::error(err);
    }
    server(const server &) = delete;
    ~server() { kinf_fake_free(fake_); }
    kinformer::client_ref client() const { return kinf_fake_client(fake_); }
    void put(const std::string &manifest) { check(kinf_fake_put(fake_, manifest.c_str(), &err_)); }
    void put_map(const std::string &name, const std::string &value = "",
                 const std::string &labels = "")
    {
        put("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: " + name +
            ", labels: {" + labels + "}}, data: {value: '" + value + "'}}");
    }
    void remove(const std::string &name)
    {
        check(kinf_fake_delete(fake_, "configmaps", ("default/" + name).c_str(), &err_));
    }
    /* "": there is none. */
    std::string value(const std::string &name)
    {
        const kinf_object *found = nullptr;

        if (kinf_fake_get(fake_, "configmaps", ("default/" + name).c_str(), &found, &err_) < 0)
            return "";
        return kinformer::object::take(found).get_string("data.value").value_or("");
    }
    void settle() { check(kinf_fake_settle(fake_, PATIENCE_MS, &err_)); }

  private:
    void check(int rc)
    {
        if (rc < 0)
            throw kinformer::error(err_);
    }
    kinf_fake *fake_ = nullptr;
    kinf_error err_ = KINF_ERROR_INIT;
};

template <class Function> kinf_errc code_of(Function function)
{
    try {
        function();
    } catch (const kinformer::error &failure) {
        assert_true(*failure.what() != '\0');
        return failure.code();
    }
    return static_cast<kinf_errc>(0);
}

template <class Condition> void wait_until(Condition condition)
{
    for (int ms = 0; !condition(); ms++) {
        assert_true(ms < PATIENCE_MS);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

/* --- tests --- */

static void throw_in_a_handler()
{
    server server;
    kinformer::informer maps(server.client(), kinformer::informer_options("configmaps"));
    kinformer::handler handler;

    handler.on_synced = [] { throw std::runtime_error("nobody can be told"); };
    maps.add_handler(std::move(handler));
    maps.start();
    for (;;)
        pause();
}

/* First of all, since the process that ends here is forked from one without threads. */
static void what_a_handler_throws_is_the_end(void **)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        alarm(PATIENCE_MS / 1000);
        std::set_terminate([] { _exit(42); });
        throw_in_a_handler();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

static void errors_have_code_and_message(void **)
{
    kinf_client_options nowhere = KINF_CLIENT_OPTIONS_INIT;
    server server;

    nowhere.kubeconfig = "/no/such/file";
    assert_int_equal(code_of([&] { kinformer::client client(nowhere); }), KINF_ERR_CONFIG);
    try {
        kinformer::informer unicorns(server.client(), kinformer::informer_options("unicorns"));
        fail();
    } catch (const kinformer::error &failure) {
        assert_int_equal(failure.code(), KINF_ERR_NOT_FOUND);
        assert_true(kinf_error_is_not_found(&failure.get()));
        assert_true(std::string_view(failure.what()).find("unicorns") != std::string_view::npos);
    }
    assert_int_equal(code_of([] { kinformer::label_selector selector("a in"); }), KINF_ERR_PARSE);
}

static void objects_are_read_by_views(void **)
{
    const std::string text = R"({"metadata":{"name":"a","namespace":"ns","uid":"u",
        "resourceVersion":"7","labels":{"app":"web"},"annotations":{"note":"n"}},
        "spec":{"n":12,"on":true,"none":null,"long":")" +
                             std::string(1000, 'x') + R"("}})";
    const kinf_type *type = nullptr;
    kinformer::scratch room;

    assert_int_equal(kinf_type_intern("", "v1", "Thing", "things", true, &type, nullptr), 0);
    auto a = kinformer::object::from_json(type, text);
    assert_true(a.key() == "ns/a" && a.name() == "a" && a.name_space() == "ns");
    assert_true(a.uid() == "u" && a.resource_version() == "7" && a.type() == type);
    assert_true(a.label("app") == "web" && !a.label("other"));
    assert_true(a.annotation("note") == "n" && !a.annotation(std::string("other")));
    assert_true(a.get_int64("spec.n") == 12 && !a.get_int64("spec.m"));
    assert_true(a.get_bool("spec.on") == true && !a.get_bool("spec.none"));
    assert_int_equal(a.get_string("spec.long")->size(), 1000);
    assert_true(!a.get_string("spec.none") && a.has("spec.n") && !a.has("spec.m"));
    assert_true(a.get_json("spec.n", room) == "12" && !a.get_json("spec.m", room));
    assert_true(a.json(room).find("\"spec\"") != std::string_view::npos);
    assert_int_equal(code_of([&] { (void)a.get_string("spec.n"); }), KINF_ERR_INVALID);
    assert_int_equal(code_of([&] { (void)a.get_int64("spec["); }), KINF_ERR_PARSE);
    assert_int_equal(code_of([&] { kinformer::object::from_json(type, "{"); }), KINF_ERR_PARSE);
}

static void objects_are_counted(void **)
{
    const kinf_type *type = nullptr;
    kinformer::object none;

    assert_int_equal(kinf_type_intern("", "v1", "Thing", "things", true, &type, nullptr), 0);
    auto a = kinformer::object::from_json(type, R"({"metadata":{"name":"a"}})");
    kinformer::object b = a, c(static_cast<object_view>(b));
    assert_true(!none && b.get() == a.get());
    a = kinformer::object::from_json(type, R"({"metadata":{"name":"other"}})");
    b = std::move(a);
    assert_true(b.name() == "other" && c.name() == "a" && !a);
    c = c;
    assert_true(c.name() == "a");
    c = none;
    assert_false(bool(c));
}

static void handlers_are_lambdas(void **)
{
    server server;
    std::string told;
    auto kept = std::make_shared<int>(1);
    kinformer::informer maps(server.client(), kinformer::informer_options("configmaps"));
    kinformer::handler handler;

    handler.on_add = [&, kept](object_view map, bool is_initial) {
        told += "+" + std::string(map.name()) + (is_initial ? "! " : " ");
    };
    handler.on_update = [&](object_view old, object_view map) {
        told += *old.get_string("data.value") + ">" + *map.get_string("data.value") + " ";
    };
    handler.on_delete = [&](object_view map, bool) { told += "-" + std::string(map.name()) + " "; };
    handler.on_synced = [&] { told += "synced "; };
    handler.on_done = [&] { told += "done"; };
    server.put_map("a", "1");
    auto id = maps.add_handler(std::move(handler));
    maps.start();
    maps.wait_synced(PATIENCE_MS);
    server.settle();
    assert_true(maps.has_synced() && maps.handler_has_synced(id));
    assert_int_equal(maps.status().n_objects, 1);
    server.put_map("a", "2");
    server.put_map("b");
    server.settle();
    server.remove("a");
    server.settle();
    assert_int_equal(kept.use_count(), 2);
    maps.remove_handler(id);
    assert_string_equal(told.c_str(), "+a! synced 1>2 +b -a done");
    assert_int_equal(kept.use_count(), 1);
    maps.stop();
    assert_int_equal(code_of([&] { maps.add_handler({}); }), KINF_ERR_STOPPED);
    assert_int_equal(code_of([&] { maps.start(); }), KINF_ERR_STATE);
}

static void handlers_may_run_in_ones_own_loop(void **)
{
    server server;
    kinformer::informer maps(server.client(), kinformer::informer_options("configmaps"));
    kinformer::handler handler;
    size_t n_changes = 0;
    const auto here = std::this_thread::get_id();
    bool is_synced = false;

    handler.on_change = [&](object_view, object_view) {
        assert_true(std::this_thread::get_id() == here);
        n_changes++;
    };
    handler.on_synced = [&] { is_synced = true; };
    handler.is_dispatched = true;
    maps.add_handler(std::move(handler));
    pollfd fd = { maps.fd(), POLLIN, 0 };
    for (int i = 0; i < 20; i++)
        server.put_map("map-" + std::to_string(i));
    maps.start();
    maps.wait_synced(PATIENCE_MS);
    server.settle(); /* which does not wait for what this thread has to do */
    assert_int_equal(n_changes, 0);
    assert_int_equal(maps.dispatch(5), 16);
    while (!is_synced) {
        assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
        maps.dispatch(3);
    }
    assert_int_equal(n_changes, 20);
    assert_int_equal(poll(&fd, 1, 0), 0);
    maps.stop();
    assert_int_equal(code_of([&] { maps.dispatch(1); }), KINF_ERR_STOPPED);
}

static void stores_are_read_by_key_selector_index_and_snapshot(void **)
{
    const kinf_index by_value = { "value", "data.value", nullptr, nullptr };
    auto options = kinformer::informer_options("configmaps", "default");
    server server;

    options.indices = &by_value;
    options.n_indices = 1;
    server.put_map("a", "x", "app: web");
    server.put_map("b", "y");
    server.put_map("c", "x");
    kinformer::informer maps(server.client(), options);
    maps.start();
    maps.wait_synced(PATIENCE_MS);

    assert_true(maps.find("default/b").name() == "b" && !maps.find("default/none"));
    assert_int_equal(maps.list().size(), 3);
    assert_int_equal(maps.list("other").size(), 0);
    kinformer::label_selector web("app=web");
    assert_int_equal(maps.list(web).size(), 1);
    assert_true(web.matches(maps.list(web, "default").at(0)));
    auto found = maps.by_index("value", std::string("x"));
    assert_int_equal(found.size(), 2);
    assert_int_equal(code_of([&] { (void)maps.by_index("none", "x"); }), KINF_ERR_NOT_FOUND);

    auto before = maps.snapshot();
    server.remove("c");
    server.settle();
    std::string names;
    for (object_view map : before)
        names += map.name();
    assert_string_equal(names.c_str(), "abc");
    assert_int_equal(before.size(), 3);
    assert_true(before.find("default/c") && !maps.snapshot().find("default/c"));
    assert_true(found[1].name() == "c"); /* its reference is ours */
}

static void factories_share_informers(void **)
{
    server server;
    kinformer::factory factory(server.client());
    auto first = factory.informer(kinformer::informer_options("configmaps"));
    auto second = factory.informer(kinformer::informer_options("configmaps"));

    assert_ptr_equal(first.get(), second.get());
    assert_int_equal(code_of([&] { first.start(); }), KINF_ERR_STATE);
    factory.start();
    factory.wait_synced(PATIENCE_MS);
    assert_true(second.has_synced());
    factory.shutdown();
}

static void handles_are_moved(void **)
{
    server server;
    kinformer::informer a(server.client(), kinformer::informer_options("configmaps"));
    kinformer::informer b(server.client(), kinformer::informer_options("secrets"));
    kinf_informer *was = a.get();
    kinformer::informer c(std::move(a));

    assert_null(a.get());
    assert_ptr_equal(c.get(), was);
    b = std::move(c);
    assert_ptr_equal(b.get(), was);
    b.start();
    b.wait_synced(PATIENCE_MS);
}

static void requests_are_answered(void **)
{
    server server;
    kinf_request request = KINF_REQUEST_INIT;

    server.put_map("a", "1");
    request.type = server.client().find_type("cm");
    request.name_space = "default";
    request.name = "a";
    auto answer = server.client().request(request);
    assert_int_equal(answer.http_status(), 200);
    assert_true(answer.body().find("\"ConfigMap\"") != std::string_view::npos);
    request.name = "none";
    assert_int_equal(code_of([&] { answer = server.client().request(request); }),
                     KINF_ERR_NOT_FOUND);
}

static void keys_are_done_when_their_item_goes(void **)
{
    kinformer::queue queue;
    kinf_error failure = KINF_ERROR_INIT;

    assert_true(queue.add("a"));
    queue.add_after(std::string("b"), 0);
    {
        auto item = queue.next();
        auto same = std::move(*item);

        assert_true(same.key() == "a");
        queue.add("a"); /* waits until it is done */
        assert_int_equal(queue.size(), 1);
    }
    assert_int_equal(queue.size(), 2);
    {
        auto b = queue.next(0);

        kinf_error_set(&failure, KINF_ERR_NETWORK, "try again");
        b->failed(kinformer::error(failure));
    }
    auto b = queue.next();
    assert_true(b->key() == "a");
    b.reset();
    b = std::nullopt;
    assert_true(queue.next()->key() == "b"); /* by the rate limit, 5 ms later */
    assert_false(queue.next(0).has_value());
    assert_false(queue.is_shut_down());
    queue.add_rate_limited("c");
    queue.drain(PATIENCE_MS);
    assert_true(queue.is_shut_down() && !queue.next());
}

/* A handler that throws is the program's end, and a worker often. */
static void the_end_of_a_queue_is_no_exception(void **)
{
    kinformer::queue queue;

    queue.add("a");
    auto a = queue.next();
    queue.shut_down();
    a->failed(kinformer::error(KINF_ERR_NETWORK, "nobody is there"));
    assert_false(queue.add("d"));
    assert_false(queue.add_after("d", 1));
    assert_false(queue.add_rate_limited("d"));
}

/* Copies each ConfigMap labelled app=web into one named copy-of-it. */
static void controllers_are_lambdas(void **)
{
    auto options = kinformer::informer_options("configmaps");
    kinf_controller_options how = KINF_CONTROLLER_OPTIONS_INIT;
    server server;

    options.label_selector = "app=web";
    kinformer::informer sources(server.client(), options);
    options.label_selector = "copy";
    kinformer::informer copies(server.client(), options);
    std::atomic<int> n_failures{ 0 };
    how.name = "copier";
    how.informer = sources.get();
    how.finalizer = "example.com/copy";
    kinformer::controller controller(
        server.client(), how,
        [&](kinformer::call call) {
            if (n_failures++ == 0)
                throw std::runtime_error("the first time it fails");
            call.apply(call.object().type(), "default",
                       "copy-of-" + std::string(call.object().name()),
                       R"({"metadata":{"labels":{"copy":"true"}},"data":{"value":")" +
                           call.object().get_string("data.value").value_or("") + "\"}}");
        },
        [&](kinformer::call call) {
            std::string name(call.key().substr(call.key().find('/') + 1));

            if (auto copy = copies.find("default/copy-of-" + name))
                call.remove(copy);
        });
    controller.watch(copies, [](object_view copy, kinformer::keys keys) {
        keys.add("default/" + std::string(copy.name().substr(sizeof "copy-of-" - 1)));
    });
    server.put_map("a", "1", "app: web");
    controller.start();
    wait_until([&] { return server.value("copy-of-a") == "1"; });
    assert_int_equal(controller.status().n_other_errors, 1);
    server.remove("copy-of-a"); /* which the map tells */
    wait_until([&] { return server.value("copy-of-a") == "1"; });
    server.remove("a");
    wait_until([&] { return server.value("copy-of-a").empty() && server.value("a").empty(); });
    assert_int_equal(controller.queue().size(), 0);

    kinformer::informer others(server.client(), kinformer::informer_options("secrets"));
    how.informer = others.get();
    how.finalizer = nullptr;
    kinformer::controller other(server.client(), how, [](kinformer::call) {});
    other = std::move(controller); /* the one that ran has its lambdas wherever it is */
    server.put_map("b", "2", "app: web");
    wait_until([&] { return server.value("copy-of-b") == "2"; });
    other.stop();
    assert_int_equal(code_of([&] { other.start(); }), KINF_ERR_STATE);
}

static void what_a_reconcile_throws_is_its_failure(void **)
{
    kinf_controller_options how = KINF_CONTROLLER_OPTIONS_INIT;
    server server;
    kinformer::informer maps(server.client(), kinformer::informer_options("configmaps"));
    kinformer::informer secrets(server.client(), kinformer::informer_options("secrets"));
    std::atomic<bool> is_done{ false };
    int n_calls = 0;

    how.name = "thrower";
    how.informer = maps.get();
    kinformer::controller controller(server.client(), how, [&](kinformer::call call) {
        kinf_request none = KINF_REQUEST_INIT;

        switch (n_calls++) {
        case 0:
            throw kinformer::error(KINF_ERR_CONFLICT, "somebody else was faster");
        case 1:
            throw std::bad_alloc();
        case 2:
            throw 7;
        case 3:
            throw kinformer::error(kinf_error KINF_ERROR_INIT); /* of no failure */
        case 4:
            is_done = true;
            call.request(none); /* KINF_ERR_INVALID: not again */
        }
    });
    controller.watch(secrets,
                     [](object_view, kinformer::keys) { throw std::runtime_error("map"); });
    server.put_map("a");
    controller.start();
    wait_until([&] { return is_done && controller.status().n_invalid == 1; });
    auto status = controller.status();
    assert_int_equal(status.n_conflicts, 1);
    assert_int_equal(status.n_other_errors, 3);
    assert_int_equal(status.n_reconciles, 5);
    server.put("{apiVersion: v1, kind: Secret, metadata: {namespace: default, name: s}}");
    wait_until([&] { return controller.status().n_map_errors == 1; });
}

static void run_ends_with_the_signal(void **)
{
    std::thread killer([] {
        struct sigaction action = {};

        do {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            sigaction(SIGTERM, nullptr, &action);
        } while (action.sa_handler == SIG_DFL);
        kill(getpid(), SIGTERM);
    });

    kinformer::run_until_signal();
    killer.join();
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_handler_throws_is_the_end),
        cmocka_unit_test(errors_have_code_and_message),
        cmocka_unit_test(objects_are_read_by_views),
        cmocka_unit_test(objects_are_counted),
        cmocka_unit_test(handlers_are_lambdas),
        cmocka_unit_test(handlers_may_run_in_ones_own_loop),
        cmocka_unit_test(stores_are_read_by_key_selector_index_and_snapshot),
        cmocka_unit_test(factories_share_informers),
        cmocka_unit_test(handles_are_moved),
        cmocka_unit_test(requests_are_answered),
        cmocka_unit_test(keys_are_done_when_their_item_goes),
        cmocka_unit_test(the_end_of_a_queue_is_no_exception),
        cmocka_unit_test(controllers_are_lambdas),
        cmocka_unit_test(what_a_reconcile_throws_is_its_failure),
        cmocka_unit_test(run_ends_with_the_signal),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
