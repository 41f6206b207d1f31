/*
 * The C interface for C++17: handles that free what they own, std::string_view, lambdas, exceptions.
 * Nothing happens here: each member is a call of the function of its name, whose contract (threads,
 * errors, what is borrowed) is in the header of that and holds. What has no member is called by that,
 * with get().
 *
 *     kinformer::client client;
 *     kinformer::informer pods(client, kinformer::informer_options("pods"));
 *     kinformer::handler printer;
 *     printer.on_add = [](kinformer::object_view pod, bool) { std::cout << pod.key() << '\n'; };
 *     pods.add_handler(std::move(printer));
 *     pods.start();
 *     kinformer::run_until_signal();
 *
 * Failures: what fails throws kinformer::error; that an object, field or key is not there is an empty
 * value and no failure. Without exceptions there is the C function, with get(). Destructors and moves
 * throw nothing. Constructors need memory: std::bad_alloc.
 *
 * Exceptions do not pass through the library: what a handler throws is the program's end
 * (std::terminate), as nobody could be told. What a reconcile, cleanup or map throws is its failure:
 * a kinformer::error as it is, so that those of kinformer::call need not be caught, std::bad_alloc as
 * KINF_ERR_NO_MEMORY, anything else as KINF_ERR_SYSTEM with its what().
 *
 * Handles are moved and not copied (objects are counted, and copied cheaply); a "view" or "ref"
 * borrows. An empty handle, or one that was moved from, is for being destroyed or assigned to: its
 * calls are misuse (kinformer/api.h).
 *
 * Lambdas are moved into the library's keeping, and destroyed on the thread of their on_done, or with
 * their controller.
 */
#ifndef KINFORMER_KINFORMER_HPP
#define KINFORMER_KINFORMER_HPP

#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kinformer/kinformer.h>

namespace kinformer {

/* --- errors --- */

class error : public std::exception {
  public:
    explicit error(const kinf_error &err) noexcept : err_(err) {}
    /* For what a reconcile throws. */
    error(kinf_errc code, const char *message) noexcept
    {
        kinf_error_set(&err_, code, "%s", message);
    }
    const char *what() const noexcept override { return err_.message; }
    kinf_errc code() const noexcept { return err_.code; }
    int http_status() const noexcept { return err_.http_status; }
    /* For kinf_error_is_conflict() and so on. */
    const kinf_error &get() const noexcept { return err_; }

  private:
    kinf_error err_ = KINF_ERROR_INIT;
};

namespace detail {

inline void check(int rc, kinf_error &err)
{
    if (rc >= 0)
        return;
    if (err.code == 0)
        kinf_error_set(&err, static_cast<kinf_errc>(rc), "%s",
                       kinf_errc_to_string(static_cast<kinf_errc>(rc)));
    throw error(err);
}

/* function(arguments..., &err) */
template <auto function, class... Arguments> void call(Arguments... arguments)
{
    kinf_error err = KINF_ERROR_INIT;

    check(function(arguments..., &err), err);
}

/* The same of what a queue does not take any more once it is shut down: whether it has. */
template <auto function, class... Arguments> bool added(Arguments... arguments)
{
    kinf_error err = KINF_ERROR_INIT;
    const int rc = function(arguments..., &err);

    if (rc != KINF_ERR_STOPPED)
        check(rc, err);
    return rc == 0;
}

/* function(arguments..., &result, &err) */
template <class Result, auto function, class... Arguments> Result get(Arguments... arguments)
{
    Result result{};

    call<function>(arguments..., &result);
    return result;
}

/* What has no error but its code, or is not there. */
template <class Result> std::optional<Result> found(int rc, Result &result)
{
    kinf_error err = KINF_ERROR_INIT;

    if (rc == KINF_ERR_NOT_FOUND)
        return std::nullopt;
    check(rc, err);
    return std::move(result);
}

/* function(arguments..., &result) */
template <class Result, auto function, class... Arguments>
std::optional<Result> find(Arguments... arguments)
{
    Result result{};
    const int rc = function(arguments..., &result);

    return found(rc, result);
}

/* What the library is told of a callback that may throw. */
template <class Callback> int guarded(kinf_error *err, Callback &&callback) noexcept
{
    try {
        callback();
        return 0;
    } catch (const error &failure) {
        if (err != nullptr)
            *err = failure.get();
        return failure.code() < 0 ? failure.code() : KINF_ERR_SYSTEM;
    } catch (const std::bad_alloc &) {
        return kinf_error_set(err, KINF_ERR_NO_MEMORY, "out of memory");
    } catch (const std::exception &failure) {
        return kinf_error_set(err, KINF_ERR_SYSTEM, "%s", failure.what());
    } catch (...) {
        return kinf_error_set(err, KINF_ERR_SYSTEM, "an exception that is no std::exception");
    }
}

template <auto free> struct freer {
    template <class T> void operator()(T *owned) const noexcept { free(owned); }
};
template <class T, auto free> using owner = std::unique_ptr<T, freer<free>>;

} // namespace detail

/* --- texts --- */

inline std::string_view view(kinf_str text) noexcept
{
    return std::string_view(text.bytes, text.len);
}
inline kinf_str str(std::string_view text) noexcept
{
    return kinf_str{ text.data(), text.size() };
}

/* An argument that ends with a NUL, as the library's names, keys and paths do; borrowed for the
 * call. */
class c_str {
  public:
    c_str(const char *text) noexcept : text_(text) {}
    c_str(const std::string &text) noexcept : text_(text.c_str()) {}
    operator const char *() const noexcept { return text_; }

  private:
    const char *text_;
};

/* Room for an object's text; one for many objects spares allocations. */
class scratch {
  public:
    scratch() = default;
    scratch(const scratch &) = delete;
    scratch &operator=(const scratch &) = delete;
    ~scratch() { kinf_scratch_release(&room_); }
    kinf_scratch *get() noexcept { return &room_; }

  private:
    kinf_scratch room_ = KINF_SCRATCH_INIT;
};

/* --- objects --- */

/* A borrowed object, or none. */
class object_view {
  public:
    object_view() = default;
    object_view(const kinf_object *object) noexcept : object_(object) {}
    const kinf_object *get() const noexcept { return object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }

    const kinf_type *type() const noexcept { return kinf_object_type(object_); }
    std::string_view key() const noexcept { return kinf_object_key(object_); }
    std::string_view name() const noexcept { return kinf_object_name(object_); }
    std::string_view name_space() const noexcept { return view(kinf_object_namespace(object_)); }
    std::string_view uid() const noexcept { return kinf_object_uid(object_); }
    std::string_view resource_version() const noexcept
    {
        return kinf_object_resource_version(object_);
    }

    bool has(c_str path) const noexcept { return kinf_object_has(object_, path); }
    std::optional<std::string> get_string(c_str path) const
    {
        return text([&](char *buf, size_t size) {
            return kinf_object_get_string(object_, path, buf, size);
        });
    }
    std::optional<std::int64_t> get_int64(c_str path) const
    {
        return detail::find<std::int64_t, kinf_object_get_int64>(object_, path);
    }
    std::optional<bool> get_bool(c_str path) const
    {
        return detail::find<bool, kinf_object_get_bool>(object_, path);
    }
    std::optional<std::string> label(c_str key) const
    {
        return text(
            [&](char *buf, size_t size) { return kinf_object_get_label(object_, key, buf, size); });
    }
    std::optional<std::string> annotation(c_str key) const
    {
        return text([&](char *buf, size_t size) {
            return kinf_object_get_annotation(object_, key, buf, size);
        });
    }
    /* Valid until the room is used again or destroyed, or the object is given up. */
    std::string_view json(scratch &room) const
    {
        return view(detail::get<kinf_str, kinf_object_json>(object_, room.get()));
    }
    std::optional<std::string_view> get_json(c_str path, scratch &room) const
    {
        auto text = detail::find<kinf_str, kinf_object_get_json>(object_, path, room.get());

        return text ? std::optional<std::string_view>(view(*text)) : std::nullopt;
    }

  protected:
    const kinf_object *object_ = nullptr;

  private:
    template <class Get> static std::optional<std::string> text(Get get)
    {
        std::string buf(256, '\0');
        int rc;

        while ((rc = get(buf.data(), buf.size())) == KINF_ERR_LIMIT)
            buf.resize(2 * buf.size());
        if (rc == 0)
            buf.resize(std::strlen(buf.c_str()));
        return detail::found(rc, buf);
    }
};

/* An object with a reference, or none: what is kept longer than a callback. */
class object : public object_view {
  public:
    object() = default;
    explicit object(object_view borrowed) noexcept : object_view(kinf_object_ref(borrowed.get())) {}
    object(const object &other) noexcept : object_view(kinf_object_ref(other.get())) {}
    object(object &&other) noexcept : object_view(std::exchange(other.object_, nullptr)) {}
    object &operator=(object other) noexcept
    {
        std::swap(object_, other.object_);
        return *this;
    }
    ~object() { kinf_object_unref(object_); }
    /* Takes over a reference that the caller has. */
    static object take(const kinf_object *owned) noexcept
    {
        object taken;

        taken.object_ = owned;
        return taken;
    }
    static object from_json(const kinf_type *type, std::string_view json)
    {
        return take(detail::get<const kinf_object *, kinf_object_new_from_json>(type, json.data(),
                                                                                json.size()));
    }
};

class label_selector {
  public:
    explicit label_selector(c_str text)
    {
        selector_.reset(detail::get<kinf_label_selector *, kinf_label_selector_parse>(text));
    }
    const kinf_label_selector *get() const noexcept { return selector_.get(); }
    bool matches(object_view object) const noexcept
    {
        return kinf_label_selector_matches(get(), object.get());
    }

  private:
    detail::owner<kinf_label_selector, kinf_label_selector_free> selector_;
};

/* --- the client --- */

class response {
  public:
    response() = default;
    response(response &&other) noexcept
        : response_(std::exchange(other.response_, kinf_response KINF_RESPONSE_INIT))
    {
    }
    response &operator=(response &&other) noexcept
    {
        std::swap(response_, other.response_);
        return *this;
    }
    ~response() { kinf_response_release(&response_); }
    kinf_response *get() noexcept { return &response_; }
    int http_status() const noexcept { return response_.http_status; }
    std::string_view body() const noexcept
    {
        return std::string_view(response_.body, response_.len);
    }

  private:
    kinf_response response_ = KINF_RESPONSE_INIT;
};

class client {
  public:
    explicit client(const kinf_client_options &options = KINF_CLIENT_OPTIONS_INIT)
    {
        client_.reset(detail::get<kinf_client *, kinf_client_new>(&options));
    }
    kinf_client *get() const noexcept { return client_.get(); }

  private:
    detail::owner<kinf_client, kinf_client_free> client_;
};

/* A client of somebody else's: of ours, kinf_fake_client(), ... */
class client_ref {
  public:
    client_ref(kinf_client *borrowed) noexcept : client_(borrowed) {}
    client_ref(const client &borrowed) noexcept : client_(borrowed.get()) {}
    kinf_client *get() const noexcept { return client_; }
    const kinf_type *find_type(c_str resource) const
    {
        return detail::get<const kinf_type *, kinf_client_find_type>(client_, resource);
    }
    /* `asked` begins as KINF_REQUEST_INIT. */
    response request(const kinf_request &asked) const
    {
        response answer;

        detail::call<kinf_client_request>(client_, &asked, answer.get());
        return answer;
    }

  private:
    kinf_client *client_;
};

/* --- informers --- */

/* As struct kinf_handler, whose members say when what is called. Those that are empty are not. */
struct handler {
    std::function<void(object_view object, bool in_initial_list)> on_add;
    std::function<void(object_view old, object_view object)> on_update;
    std::function<void(object_view object, bool final_state_unknown)> on_delete;
    std::function<void(object_view old, object_view object)> on_change;
    std::function<void()> on_synced;
    std::function<void()> on_done;
    std::int64_t resync_period_ms = 0;
    kinf_backlog backlog = KINF_BACKLOG_UNBOUNDED;
    bool is_dispatched = false;
};

namespace detail {

struct callbacks {
    static void on_add(const kinf_object *object, bool in_initial_list, void *ctx) noexcept
    {
        static_cast<handler *>(ctx)->on_add(object, in_initial_list);
    }
    static void on_update(const kinf_object *old, const kinf_object *object, void *ctx) noexcept
    {
        static_cast<handler *>(ctx)->on_update(old, object);
    }
    static void on_delete(const kinf_object *object, bool final_state_unknown, void *ctx) noexcept
    {
        static_cast<handler *>(ctx)->on_delete(object, final_state_unknown);
    }
    static void on_change(const kinf_object *old, const kinf_object *object, void *ctx) noexcept
    {
        static_cast<handler *>(ctx)->on_change(old, object);
    }
    static void on_synced(void *ctx) noexcept { static_cast<handler *>(ctx)->on_synced(); }
    static void on_done(void *ctx) noexcept
    {
        const std::unique_ptr<handler> own(static_cast<handler *>(ctx));

        if (own->on_done)
            own->on_done();
    }
};

inline kinf_handler c_handler(handler *wanted) noexcept
{
    kinf_handler made = KINF_HANDLER_INIT;

    made.on_add = wanted->on_add ? callbacks::on_add : nullptr;
    made.on_update = wanted->on_update ? callbacks::on_update : nullptr;
    made.on_delete = wanted->on_delete ? callbacks::on_delete : nullptr;
    made.on_change = wanted->on_change ? callbacks::on_change : nullptr;
    made.on_synced = wanted->on_synced ? callbacks::on_synced : nullptr;
    made.on_done = callbacks::on_done;
    made.ctx = wanted;
    made.resync_period_ms = wanted->resync_period_ms;
    made.backlog = wanted->backlog;
    made.is_dispatched = wanted->is_dispatched;
    return made;
}

} // namespace detail

/* One version of a store, held; objects come in the order of their keys:
 * for (kinformer::object_view pod : pods.snapshot()) */
class snapshot {
  public:
    class iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = object_view;
        using difference_type = std::ptrdiff_t;
        using pointer = const object_view *;
        using reference = object_view;

        iterator() = default;
        explicit iterator(const kinf_snapshot *held) noexcept
        {
            kinf_cursor_all(&cursor_, held);
            ++*this;
        }
        object_view operator*() const noexcept { return object_; }
        iterator &operator++() noexcept
        {
            object_ = kinf_cursor_next(&cursor_);
            return *this;
        }
        /* Of one snapshot, or of its end. */
        bool operator==(const iterator &other) const noexcept
        {
            return object_.get() == other.object_.get();
        }
        bool operator!=(const iterator &other) const noexcept { return !(*this == other); }

      private:
        kinf_cursor cursor_{};
        object_view object_;
    };

    explicit snapshot(kinf_indexer *indexer) noexcept : snapshot_(kinf_indexer_snapshot(indexer)) {}
    const kinf_snapshot *get() const noexcept { return snapshot_.get(); }
    size_t size() const noexcept { return kinf_snapshot_count(get()); }
    /* Borrowed while the snapshot is held. */
    object_view find(c_str key) const noexcept { return kinf_snapshot_get(get(), key); }
    iterator begin() const noexcept { return iterator(get()); }
    iterator end() const noexcept { return iterator(); }

  private:
    detail::owner<kinf_snapshot, kinf_snapshot_unref> snapshot_;
};

namespace detail {

/* The references of a list, and no copies of them. */
inline std::vector<object> take_all(kinf_object_list list)
{
    struct release {
        kinf_object_list &list;
        ~release() { kinf_object_list_release(&list); }
    } released{ list };
    std::vector<object> objects;

    objects.reserve(list.n_items);
    for (size_t i = 0; i < list.n_items; i++)
        objects.push_back(object::take(std::exchange(list.items[i], nullptr)));
    return objects;
}

} // namespace detail

/* Begins as KINF_INFORMER_OPTIONS_INIT; the texts are borrowed until the informer is made. */
inline kinf_informer_options informer_options(const char *resource,
                                              const char *name_space = nullptr)
{
    kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

    options.resource = resource;
    options.name_space = name_space;
    return options;
}

/* An informer of somebody else's: of ours, of a factory, ... */
class informer_ref {
  public:
    informer_ref(kinf_informer *borrowed) noexcept : informer_(borrowed) {}
    kinf_informer *get() const noexcept { return informer_; }

    void start() { detail::call<kinf_informer_start>(informer_); }
    void stop() { detail::call<kinf_informer_stop>(informer_); }
    void wait_synced(std::int64_t timeout_ms = KINF_FOREVER)
    {
        detail::call<kinf_informer_wait_synced>(informer_, timeout_ms);
    }
    bool has_synced() const noexcept { return kinf_informer_has_synced(informer_); }
    struct kinf_informer_status status() const noexcept
    {
        struct kinf_informer_status status;

        kinf_informer_status(informer_, &status);
        return status;
    }

    /* Its callbacks may begin before this returns: those that remove it need a lock around the id. */
    kinf_handler_id add_handler(handler taken)
    {
        auto own = std::make_unique<handler>(std::move(taken));
        const kinf_handler made = detail::c_handler(own.get());
        const auto id = detail::get<kinf_handler_id, kinf_informer_add_handler>(informer_, &made);

        (void)own.release(); /* on_done has it */
        return id;
    }
    void remove_handler(kinf_handler_id id) noexcept
    {
        kinf_informer_remove_handler(informer_, id);
    }
    bool handler_has_synced(kinf_handler_id id) const noexcept
    {
        return kinf_informer_handler_has_synced(informer_, id);
    }

    /* Of dispatched handlers. */
    int fd() { return detail::get<int, kinf_informer_fd>(informer_); }
    /* Returns how many callbacks wait still. */
    size_t dispatch(size_t max)
    {
        return detail::get<size_t, kinf_informer_dispatch>(informer_, max);
    }

    kinf_indexer *indexer() const noexcept { return kinf_informer_indexer(informer_); }
    class snapshot snapshot() const noexcept { return kinformer::snapshot(indexer()); }
    /* Empty if there is none. */
    object find(c_str key) const
    {
        return object::take(
            detail::find<const kinf_object *, kinf_indexer_get_by_key>(indexer(), key)
                .value_or(nullptr));
    }
    std::vector<object> list(const char *name_space = nullptr) const
    {
        return list_of(name_space, nullptr);
    }
    std::vector<object> list(const label_selector &selector, const char *name_space = nullptr) const
    {
        return list_of(name_space, selector.get());
    }
    std::vector<object> by_index(c_str index, c_str value) const
    {
        return detail::take_all(
            detail::get<kinf_object_list, kinf_indexer_by_index>(indexer(), index, value));
    }

  protected:
    kinf_informer *informer_ = nullptr;

  private:
    std::vector<object> list_of(const char *name_space, const kinf_label_selector *selector) const
    {
        const kinf_lister lister = kinf_informer_lister(informer_, name_space);

        return detail::take_all(detail::get<kinf_object_list, kinf_lister_list>(&lister, selector));
    }
};

/* An informer of one's own. Not destroyed in a callback. */
class informer : public informer_ref {
  public:
    informer(client_ref client, const kinf_informer_options &options)
        : informer_ref(detail::get<kinf_informer *, kinf_informer_new>(client.get(), &options))
    {
    }
    informer(informer &&other) noexcept : informer_ref(std::exchange(other.informer_, nullptr)) {}
    informer &operator=(informer &&other) noexcept
    {
        std::swap(informer_, other.informer_);
        return *this;
    }
    ~informer() { kinf_informer_free(informer_); }
};

class factory {
  public:
    explicit factory(client_ref client)
    {
        factory_.reset(detail::get<kinf_factory *, kinf_factory_new>(client.get()));
    }
    kinf_factory *get() const noexcept { return factory_.get(); }
    informer_ref informer(const kinf_informer_options &options)
    {
        return detail::get<kinf_informer *, kinf_factory_informer>(get(), &options);
    }
    void start() { detail::call<kinf_factory_start>(get()); }
    void wait_synced(std::int64_t timeout_ms = KINF_FOREVER)
    {
        detail::call<kinf_factory_wait_synced>(get(), timeout_ms);
    }
    void shutdown() { detail::call<kinf_factory_shutdown>(get()); }

  private:
    detail::owner<kinf_factory, kinf_factory_free> factory_;
};

/* --- queues --- */

/* A queue of somebody else's: of ours, of a controller. */
class queue_ref {
  public:
    /* A key in process: done when this goes. */
    class item {
      public:
        item(kinf_queue *queue, const char *key) noexcept : key_(key), queue_(queue) {}
        item(item &&other) noexcept : key_(std::exchange(other.key_, nullptr)), queue_(other.queue_)
        {
        }
        item &operator=(item &&) = delete;
        ~item()
        {
            if (key_ != nullptr)
                kinf_queue_done(queue_, key_);
        }
        std::string_view key() const noexcept { return key_; }
        void forget() noexcept { kinf_queue_forget(queue_, key_); }
        /* It waits again, if it should, and the queue is not shut down. */
        void failed(const error &failure)
        {
            detail::added<kinf_queue_add_failed>(queue_, key_, &failure.get());
        }

      private:
        const char *key_;
        kinf_queue *queue_;
    };

    queue_ref(kinf_queue *borrowed) noexcept : queue_(borrowed) {}
    kinf_queue *get() const noexcept { return queue_; }
    /* False: it is shut down, which is no failure: at the end handlers and workers go on for a while. */
    bool add(c_str key) { return detail::added<kinf_queue_add>(queue_, key); }
    bool add_after(c_str key, std::int64_t delay_ms)
    {
        return detail::added<kinf_queue_add_after>(queue_, key, delay_ms);
    }
    bool add_rate_limited(c_str key)
    {
        return detail::added<kinf_queue_add_rate_limited>(queue_, key);
    }
    /* Empty when the time is over, or the queue was shut down and has none left:
     * while (auto item = queue.next()) */
    std::optional<item> next(std::int64_t timeout_ms = KINF_FOREVER)
    {
        kinf_error err = KINF_ERROR_INIT;
        const char *key = nullptr;
        int rc = kinf_queue_get(queue_, timeout_ms, &key, &err);

        if (rc == KINF_ERR_TIMEOUT || rc == KINF_ERR_STOPPED)
            return std::nullopt;
        detail::check(rc, err);
        return item(queue_, key);
    }
    size_t size() const noexcept { return kinf_queue_len(queue_); }
    void shut_down() noexcept { kinf_queue_shut_down(queue_); }
    bool is_shut_down() const noexcept { return kinf_queue_is_shut_down(queue_); }
    void drain(std::int64_t timeout_ms = KINF_FOREVER)
    {
        detail::call<kinf_queue_drain>(queue_, timeout_ms);
    }

  protected:
    kinf_queue *queue_ = nullptr;
};

class queue : public queue_ref {
  public:
    explicit queue(const kinf_queue_options &options = KINF_QUEUE_OPTIONS_INIT)
        : queue_ref(detail::get<kinf_queue *, kinf_queue_new>(&options))
    {
    }
    queue(queue &&other) noexcept : queue_ref(std::exchange(other.queue_, nullptr)) {}
    queue &operator=(queue &&other) noexcept
    {
        std::swap(queue_, other.queue_);
        return *this;
    }
    ~queue() { kinf_queue_free(queue_); }
};

/* --- controllers --- */

/* One call of a reconcile; for as long as that lasts. */
class call {
  public:
    explicit call(kinf_call *borrowed) noexcept : call_(borrowed) {}
    kinf_call *get() const noexcept { return call_; }
    std::string_view key() const noexcept { return kinf_call_key(call_); }
    /* Empty: it is gone. */
    object_view object() const noexcept { return kinf_call_object(call_); }
    client_ref client() const noexcept { return kinf_call_client(call_); }
    void requeue_after(std::int64_t delay_ms) noexcept { kinf_call_requeue_after(call_, delay_ms); }
    void apply(const kinf_type *type, const char *name_space, c_str name, std::string_view json)
    {
        detail::call<kinf_call_apply>(call_, type, name_space, name, str(json));
    }
    void apply_status(const kinf_type *type, const char *name_space, c_str name,
                      std::string_view json)
    {
        detail::call<kinf_call_apply_status>(call_, type, name_space, name, str(json));
    }
    /* kinf_call_delete() */
    void remove(object_view object) { detail::call<kinf_call_delete>(call_, object.get()); }
    response request(const kinf_request &asked)
    {
        response answer;

        detail::call<kinf_call_request>(call_, &asked, answer.get());
        return answer;
    }

  private:
    kinf_call *call_;
};

/* Where a map puts keys. */
class keys {
  public:
    explicit keys(kinf_keys *borrowed) noexcept : keys_(borrowed) {}
    void add(c_str key)
    {
        kinf_error err = KINF_ERROR_INIT;

        detail::check(kinf_keys_add(keys_, key), err);
    }

  private:
    kinf_keys *keys_;
};

using reconcile_function = std::function<void(call)>;
using map_function = std::function<void(object_view, keys)>;

/* Not destroyed in a callback. */
class controller {
  public:
    /* `options` begins as KINF_CONTROLLER_OPTIONS_INIT; its reconcile, cleanup and ctx are taken from
     * here. An empty cleanup is none. */
    controller(client_ref client, kinf_controller_options options, reconcile_function reconcile,
               reconcile_function cleanup = {})
        : functions_(std::make_unique<functions>(
              functions{ std::move(reconcile), std::move(cleanup), {} }))
    {

        options.reconcile = functions_->reconcile ? call_reconcile : nullptr;
        options.cleanup = functions_->cleanup ? call_cleanup : nullptr;
        options.ctx = functions_.get();
        controller_.reset(
            detail::get<kinf_controller *, kinf_controller_new>(client.get(), &options));
    }
    controller(controller &&) noexcept = default;
    controller &operator=(controller &&other) noexcept
    {
        std::swap(functions_, other.functions_);
        std::swap(controller_, other.controller_);
        return *this;
    }
    kinf_controller *get() const noexcept { return controller_.get(); }
    void watch(informer_ref informer, map_function map)
    {
        functions_->maps.push_back(std::move(map));
        watch(informer, call_map, &functions_->maps.back());
    }
    /* With a map of the library: kinf_map_owner(), ... */
    void watch(informer_ref informer, kinf_map_cb *map, void *ctx)
    {
        detail::call<kinf_controller_watch>(get(), informer.get(), map, ctx);
    }
    void start() { detail::call<kinf_controller_start>(get()); }
    void stop() { detail::call<kinf_controller_stop>(get()); }
    /* The end of main(). */
    void run(std::int64_t sync_timeout_ms = KINF_FOREVER)
    {
        detail::call<kinf_controller_run>(get(), sync_timeout_ms);
    }
    struct kinf_controller_status status() const noexcept
    {
        struct kinf_controller_status status;

        kinf_controller_status(get(), &status);
        return status;
    }
    queue_ref queue() const noexcept { return kinf_controller_queue(get()); }

  private:
    /* Where it stays when the controller is moved. */
    struct functions {
        reconcile_function reconcile;
        reconcile_function cleanup;
        std::list<map_function> maps;
    };

    static int call_reconcile(kinf_call *call, void *ctx, kinf_error *err) noexcept
    {
        return detail::guarded(
            err, [&] { static_cast<functions *>(ctx)->reconcile(kinformer::call(call)); });
    }
    static int call_cleanup(kinf_call *call, void *ctx, kinf_error *err) noexcept
    {
        return detail::guarded(
            err, [&] { static_cast<functions *>(ctx)->cleanup(kinformer::call(call)); });
    }
    static int call_map(const kinf_object *object, kinf_keys *keys, void *ctx) noexcept
    {
        return detail::guarded(
            nullptr, [&] { (*static_cast<map_function *>(ctx))(object, kinformer::keys(keys)); });
    }

    std::unique_ptr<functions> functions_; /* goes behind the controller */
    detail::owner<kinf_controller, kinf_controller_free> controller_;
};

/* --- the end of main() --- */

inline void run_until_signal()
{
    detail::call<kinf_run_until_signal>();
}

} // namespace kinformer

#endif
