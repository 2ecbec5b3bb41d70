// The commands of a session.
#include <signal.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <utility>

#include "session_impl.hpp"

namespace ccbox {

namespace asio = boost::asio;

namespace {

constexpr std::size_t remembered_commands = 1000;

}  // namespace

result<void> session::impl::accepts_commands() const {
  const sandbox_state now = state();
  if (!finishing && !destroying && inside && (now == sandbox_state::warm || now == sandbox_state::active))
    return {};
  const bool over = now == sandbox_state::destroyed || now == sandbox_state::error;
  const bool ending = !over && (finishing || destroying);
  return error{error_code::illegal_state,
               "session " + quoted(rules.spec.session_id) + " takes no commands: " +
                   (ending ? "it is ending" : "its state is " + std::string(to_string(now))),
               ""};
}

asio::awaitable<result<exec_handle>> session::impl::exec(std::shared_ptr<impl> self, exec_request request) {
  if (auto ok = self->accepts_commands(); !ok) co_return ok.error();
  const auto record = std::make_shared<command_record>(self->strand);
  self->open_commands.insert(record);
  auto handle = co_await start_command(self, record, std::move(request));
  if (!handle) {
    for (auto& pump : record->pumps)
      pump->stop();
    if (record->id != 0) co_return handle;  // it has started: follow_command is at its end
    self->open_commands.erase(record);
    record->done.open();
  }
  co_return handle;
}

asio::awaitable<result<exec_handle>> session::impl::start_command(std::shared_ptr<impl> self,
                                                                  record_ptr record, exec_request request) {
  const bool captured = request.output == output_mode::captured;
  command c;
  c.argv = std::move(request.argv);
  environment env = self->env;
  for (const auto& [name, value] : request.extra_env)
    env[name] = value;
  if (self->network) self->network->append_to(env, request.extra_env);
  c.env.assign(env.begin(), env.end());
  c.cwd = std::move(request.cwd);
  if (c.cwd.empty()) c.cwd = self->rules.workdir;
  c.pty = request.pty;
  c.descriptors = std::move(request.descriptors);

  unique_fd readers[3];
  if (captured && !c.pty) {
    for (int number : {1, 2}) {
      if (c.descriptors[static_cast<std::size_t>(number)]) continue;
      auto p = make_pipe();
      if (!p) co_return p.error();
      readers[number] = std::move(p->reader);
      c.descriptors[static_cast<std::size_t>(number)] = std::move(p->writer);
    }
  }
  auto started = co_await self->inside->exec(std::move(c));
  if (!started) co_return started.error();

  record->id = started->id;
  self->commands.emplace(record->id, record);
  ++self->running;
  if (self->state() == sandbox_state::warm) self->move_to(sandbox_state::active);
  exec_handle handle{started->id, started->pid_inside, {}};
  const bool captured_terminal = started->pty_master && captured;
  result<void> pumping;
  auto pump = [&](unique_fd source, sandbox_event_type type) -> std::shared_ptr<output_pump> {
    auto p = self->start_pump(record, std::move(source), type, captured_terminal);
    if (p) return *p;
    pumping = p.error();
    return nullptr;
  };
  if (captured_terminal) {
    record->terminal = pump(std::move(started->pty_master), sandbox_event_type::stdout_data);
  } else {
    handle.pty_master = std::move(started->pty_master);
  }
  if (readers[1]) pump(std::move(readers[1]), sandbox_event_type::stdout_data);
  if (readers[2]) pump(std::move(readers[2]), sandbox_event_type::stderr_data);
  self->background(follow_command(self, self->inside, record));
  if (!pumping) {
    // Its output would be lost: it must not go on.
    [[maybe_unused]] const auto killed = co_await self->inside->signal(record->id, SIGKILL);
    co_return pumping.error();
  }
  co_return handle;
}

asio::awaitable<void> session::impl::follow_command(std::shared_ptr<impl> self,
                                                    std::shared_ptr<enclosure> where, record_ptr record) {
  auto status = co_await where->wait(record->id);
  for (auto& pump : record->pumps)
    co_await pump->drained(output_patience_ms);
  self->reports->observe(record->id, {});
  if (!status) {
    if (where->limits().out_of_memory()) self->claim(kill_reason::oom);
    std::lock_guard lock(self->mutex);
    if (self->reason) status = exit_status{true, SIGKILL};
  }
  record->status = status;
  if (--self->running == 0 && self->state() == sandbox_state::active) self->move_to(sandbox_state::warm);
  sandbox_event event;
  event.type = sandbox_event_type::exit;
  event.exec_id = record->id;
  event.exit_code = (status ? *status : exit_status{true, SIGKILL}).code();
  co_await publish(self, std::move(event));
  std::erase_if(record->pumps, [](const auto& pump) { return pump->descriptor() < 0; });
  self->open_commands.erase(record);
  self->remember(record);
  record->done.open();
  if (!self->finishing && where->limits().out_of_memory()) self->end_for(kill_reason::oom, 0);
}

result<std::shared_ptr<output_pump>> session::impl::start_pump(const record_ptr& record, unique_fd source,
                                                               sandbox_event_type type, bool is_terminal) {
  const bool observed = is_terminal || type == sandbox_event_type::stderr_data;
  const auto to = [weak = weak_from_this(), id = record->id, type, observed](std::string bytes) {
    return publish_output(weak, id, type, observed, std::move(bytes));
  };
  auto pump = output_pump::start(strand, std::move(source), to);
  if (pump) record->pumps.push_back(*pump);
  return pump;
}

asio::awaitable<void> session::impl::publish_output(std::weak_ptr<impl> session, std::uint64_t exec_id,
                                                    sandbox_event_type type, bool observed,
                                                    std::string bytes) {
  const auto self = session.lock();
  if (!self) co_return;
  if (observed) self->reports->observe(exec_id, bytes);
  sandbox_event event;
  event.type = type;
  event.exec_id = exec_id;
  event.data = std::move(bytes);
  co_await publish(self, std::move(event));
}

void session::impl::remember(const record_ptr& record) {
  ended_commands.push_back(record->id);
  if (ended_commands.size() <= remembered_commands) return;
  commands.erase(ended_commands.front());
  ended_commands.pop_front();
}

result<record_ptr> session::impl::find(std::uint64_t exec_id) const {
  const auto found = commands.find(exec_id);
  if (found != commands.end()) return found->second;
  return error{error_code::not_found, "there is no command " + std::to_string(exec_id), ""};
}

asio::awaitable<result<exit_status>> session::impl::wait(std::shared_ptr<impl> self, std::uint64_t exec_id) {
  const auto record = self->find(exec_id);
  if (!record) co_return record.error();
  co_await (*record)->done.wait();
  co_return *(*record)->status;
}

asio::awaitable<result<void>> session::impl::signal(std::shared_ptr<impl> self, std::uint64_t exec_id,
                                                    int number) {
  const auto record = self->find(exec_id);
  if (!record) co_return record.error();
  const auto where = self->inside;
  if (!where) co_return error{error_code::illegal_state, "the session has ended", ""};
  co_return co_await where->signal(exec_id, number);
}

asio::awaitable<result<void>> session::impl::resize(std::shared_ptr<impl> self, std::uint64_t exec_id,
                                                    window_size size) {
  const auto record = self->find(exec_id);
  if (!record) co_return record.error();
  const auto& terminal = (*record)->terminal;
  if (!terminal || terminal->descriptor() < 0) {
    co_return error{error_code::illegal_state,
                    "command " + std::to_string(exec_id) + " has no captured terminal", ""};
  }
  if (auto ok = check_size(size); !ok) co_return ok.error();
  winsize w{};
  w.ws_row = static_cast<unsigned short>(size.rows);
  w.ws_col = static_cast<unsigned short>(size.cols);
  if (::ioctl(terminal->descriptor(), TIOCSWINSZ, &w) < 0)
    co_return system_error("resize terminal", "", errno);
  co_return result<void>{};
}

}  // namespace ccbox
