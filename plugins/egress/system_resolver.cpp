#include "system_resolver.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

namespace ccbox::egress {
namespace {

struct job {
  std::string name;
  std::mutex mutex;
  asio::io_context* context = nullptr;  // null: nobody waits any more
  resolver::answer done;
};

class pending : public lookup {
 public:
  explicit pending(std::shared_ptr<job> what) : job_(std::move(what)) {}
  ~pending() override {
    const std::lock_guard lock(job_->mutex);
    job_->context = nullptr;
    job_->done = nullptr;
  }

 private:
  std::shared_ptr<job> job_;
};

// Runs on the context: the answer is delivered only to who still waits.
void deliver(const std::shared_ptr<job>& what, lookup_result result) {
  resolver::answer done;
  {
    const std::lock_guard lock(what->mutex);
    if (!what->context) return;
    done = std::move(what->done);
    what->context = nullptr;
  }
  done(std::move(result));
}

// The C library's ways, for this thread alone. Its patience of 10 s a server would outlast every client; its
// search list would make another name, `wiki.example.corp.test`, out of the one that policy allowed.
void set_ways() {
  if (::res_init() != 0) return;
  _res.options &= ~(RES_DNSRCH | RES_DEFNAMES);
  _res.retrans = 2;
  _res.retry = 1;
}

}  // namespace

struct system_resolver::shared {
  explicit shared(blocking_lookup f) : how(std::move(f)) {}
  const blocking_lookup how;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<job>> jobs;
  unsigned threads = 0, idle = 0;
  bool over = false;

  static void serve(std::shared_ptr<shared> self);
};

void system_resolver::shared::serve(std::shared_ptr<shared> self) {
  set_ways();
  std::unique_lock lock(self->mutex);
  for (;;) {
    ++self->idle;
    self->changed.wait(lock, [&] { return self->over || !self->jobs.empty(); });
    --self->idle;
    if (self->over) break;
    const auto next = std::move(self->jobs.front());
    self->jobs.pop_front();
    lock.unlock();
    bool wanted = false;
    {
      const std::lock_guard asked(next->mutex);
      wanted = next->context != nullptr;
    }
    lookup_result result;
    if (wanted) result = self->how(next->name);
    {
      // Under the lock: who waits gives up before its context goes.
      const std::lock_guard asked(next->mutex);
      if (next->context)
        asio::post(*next->context, [next, result]() mutable { deliver(next, std::move(result)); });
    }
    lock.lock();
  }
  --self->threads;
  self->changed.notify_all();
}

system_resolver::system_resolver(blocking_lookup how) : shared_(std::make_shared<shared>(std::move(how))) {}

system_resolver::~system_resolver() {
  std::unique_lock lock(shared_->mutex);
  shared_->over = true;
  shared_->jobs.clear();
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, std::chrono::milliseconds(500), [&] { return shared_->threads == 0; });
}

std::unique_ptr<lookup> system_resolver::resolve(asio::io_context& context, const std::string& name,
                                                 answer done) {
  auto asked = std::make_shared<job>();
  asked->name = name;
  asked->context = &context;
  asked->done = std::move(done);
  const std::lock_guard lock(shared_->mutex);
  shared_->jobs.push_back(asked);
  if (shared_->idle < shared_->jobs.size() && shared_->threads < most_threads) {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread(shared::serve, shared_).detach();
      ++shared_->threads;
    } catch (const std::system_error&) {
      // The threads there are take it in turn; with none at all the caller's limit passes.
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  shared_->changed.notify_one();
  return std::make_unique<pending>(std::move(asked));
}

lookup_result system_resolver::ask_system(const std::string& name) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(name.c_str(), nullptr, &hints, &list);
  lookup_result out;
  if (code != 0) {
    out.what = code == EAI_NONAME || code == EAI_NODATA ? lookup_result::status::no_such_name
                                                        : lookup_result::status::failed;
    return out;
  }
  for (const addrinfo* one = list; one; one = one->ai_next) {
    ip_address address;
    if (one->ai_family == AF_INET) {
      const auto& v4 = reinterpret_cast<const sockaddr_in&>(*one->ai_addr);
      address = ip_address::from_v4(ntohl(v4.sin_addr.s_addr));
    } else if (one->ai_family == AF_INET6) {
      const auto& v6 = reinterpret_cast<const sockaddr_in6&>(*one->ai_addr);
      std::memcpy(address.bytes.data(), &v6.sin6_addr, address.bytes.size());
    } else {
      continue;
    }
    if (std::find(out.addresses.begin(), out.addresses.end(), address) == out.addresses.end())
      out.addresses.push_back(address);
  }
  ::freeaddrinfo(list);
  out.what = out.addresses.empty() ? lookup_result::status::no_such_name : lookup_result::status::found;
  out.ttl = std::chrono::seconds(5);
  return out;
}

}  // namespace ccbox::egress
