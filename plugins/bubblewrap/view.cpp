#include "view.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "paths.hpp"

namespace ccbox::bubblewrap {

namespace {

using plugin::failure;

constexpr std::uint32_t known_flags =
    CCBOX_RULE_READ_ONLY | CCBOX_RULE_GLOB | CCBOX_RULE_EXISTS | CCBOX_RULE_DIRECTORY | CCBOX_RULE_SYMLINK |
    CCBOX_RULE_SYSTEM | CCBOX_RULE_TARGET | CCBOX_RULE_VETTED_GIT_CONFIG | CCBOX_RULE_NEW_ALLOWED;

// What of a fresh /proc tells of the whole machine: its memory, devices, timers and keys. It asks for the
// host's root user, not for a capability: and that is who a root caller is inside. Others the kernel refuses.
constexpr const char* machine_files[] = {
    "/proc/acpi",          "/proc/asound",       "/proc/kcore",       "/proc/key-users",
    "/proc/keys",          "/proc/kpagecgroup",  "/proc/kpagecount",  "/proc/kpageflags",
    "/proc/latency_stats", "/proc/pagetypeinfo", "/proc/sched_debug", "/proc/scsi",
    "/proc/slabinfo",      "/proc/timer_list",   "/proc/timer_stats", "/proc/vmallocinfo"};

std::string absolute(std::string_view path, const char* what) {
  auto normal = normal_path(path);
  if (!normal)
    throw failure(CCBOX_INVALID, std::string(what) + " " + shown(path) +
                                     " is no absolute path without '..' and NUL; give the path itself");
  return *std::move(normal);
}

// The part of a pattern that no wildcard can change.
std::string fixed_part(std::string_view pattern) {
  const auto wildcard = std::min(pattern.find_first_of("*?"), pattern.size());
  const auto slash = pattern.rfind('/', wildcard);
  if (pattern.empty() || pattern.front() != '/' || slash == 0 || slash == pattern.npos) return "/";
  return normal_path(pattern.substr(0, slash)).value_or("/");
}

bool is_private(const entry* e) {
  return !e || e->kind == entry_kind::tmpfs || e->kind == entry_kind::directory ||
         e->kind == entry_kind::mask || e->kind == entry_kind::proc || e->kind == entry_kind::dev;
}

}  // namespace

// One place where a deny applies: the mount that shows the path, and where it shows it.
struct view::deny {
  const plugin::rule* rule;
  std::string host, guest;
  entry* mount;
};

view::view(const plugin::plan_request& request, const host_tree& tree)
    : tree_(tree), root_caller_(request.uid() == 0) {
  for (const auto& r : request.rules()) {
    if (request.is_waived(r)) continue;
    if ((r.flags & ~known_flags) != 0 || r.kind < CCBOX_KIND_MOUNT || r.kind > CCBOX_KIND_NAME_EXEMPT)
      unenforced_ |= r.bit;
    else if (r.kind == CCBOX_KIND_MOUNT)
      add_mount(r);
    if (mounts_.size() > max_host_paths)
      throw failure(CCBOX_TOO_LARGE,
                    "the policy has " + std::to_string(request.rules().size()) + " rules and over " +
                        std::to_string(max_host_paths) +
                        " mounts, which is what bubblewrap can start with; mount fewer, larger trees");
  }
  add_private_directories(request);
  for (auto* e : mounts_.by_depth())
    if (e->kind == entry_kind::bind) guests_by_host_.emplace(e->host, e->guest);

  if (root_caller_) mask_machine_files();
  for (const auto& d : denies(request, CCBOX_KIND_READ_DENY))
    add_read_deny(d);
  for (const auto& d : denies(request, CCBOX_KIND_WRITE_DENY))
    add_write_deny(d);
  for (auto* e : mounts_.by_depth())
    if (e->kind == entry_kind::bind) pin_ancestors(*e);
  for (auto* e : overlays_.by_depth())
    pin_ancestors(*e);
  finish();
}

void view::add_mount(const plugin::rule& r) {
  entry e;
  e.host = absolute(r.path, "the mount source");
  e.guest = absolute(r.guest_path, "the mount point");
  e.rule = r.index;
  e.read_only = r.has(CCBOX_RULE_READ_ONLY);
  e.is_directory = r.has(CCBOX_RULE_DIRECTORY);
  e.system = r.has(CCBOX_RULE_SYSTEM);
  for (const char* own : {"/proc", "/dev"})
    if (covers(own, e.guest))
      throw failure(CCBOX_INVALID, "the mount point " + shown(e.guest) + " lies in the enclosure's own " +
                                       own + "; mount it elsewhere");
  if (!r.has(CCBOX_RULE_EXISTS))
    throw failure(CCBOX_INVALID,
                  "the mount source " + shown(e.host) + " does not exist; create it or leave it out");
  if (r.has(CCBOX_RULE_SYMLINK)) {
    const auto text = e.system ? tree_.link_text(e.host) : std::nullopt;
    if (!text)
      throw failure(CCBOX_INVALID,
                    "the mount source " + shown(e.host) + " is a symbolic link; mount what it names");
    e.kind = entry_kind::symlink;
    e.text = *text;
    say(r.index, "mount: symbolic link of the root");
  } else {
    if (e.guest == "/" && !e.is_directory)
      throw failure(CCBOX_INVALID, "the file " + shown(e.host) + " cannot be mounted at '/'");
    say(r.index, e.read_only ? "mount: read-only bind" : "mount: writable bind");
  }
  if (const auto* before = mounts_.at(e.guest))
    layers_[before->rule] = "mount: replaced by a later mount at the same place";
  mounts_.put(std::move(e));
}

// /proc and /dev are fresh whatever is bound, and so is /run: the host's has the sockets of its services. The
// others give way to a mount of the spec that covers them.
void view::add_private_directories(const plugin::plan_request& request) {
  const auto put = [this](entry_kind kind, const char* guest, unsigned mode, bool optional) {
    entry e;
    e.kind = kind;
    e.guest = guest;
    e.mode = mode;
    e.optional = optional;
    mounts_.put(std::move(e));
  };
  const auto covered = [this](std::string_view guest) {
    const auto* around = mounts_.over(guest);
    return around && (around->guest == guest || (around->kind == entry_kind::bind && !around->system));
  };
  put(entry_kind::proc, "/proc", 0755, false);
  put(entry_kind::dev, "/dev", 0755, false);
  put(entry_kind::tmpfs, "/dev/shm", 01777, false);
  if (!mounts_.at("/run")) put(entry_kind::tmpfs, "/run", 0755, true);
  for (const char* guest : {"/tmp", "/var/tmp"})
    if (!covered(guest)) put(entry_kind::tmpfs, guest, 01777, true);
  for (const auto& [path, what] :
       {std::pair(request.home(), "HOME"), std::pair(request.tmpdir(), "TMPDIR")}) {
    const auto guest = absolute(path, what);
    if (covers("/proc", guest) || covers("/dev", guest))
      throw failure(CCBOX_INVALID,
                    std::string(what) + " " + shown(guest) + " lies in the enclosure's own /proc or /dev");
    if (guest != "/" && !covered(guest)) add_session_directory(guest);
  }
}

void view::mask_machine_files() {
  for (const char* path : machine_files) {
    const auto type = tree_.type(path);
    if (type != node_type::directory && type != node_type::other) continue;
    entry mask;
    mask.kind = entry_kind::mask;
    mask.guest = mask.host = path;
    mask.is_directory = type == node_type::directory;
    mask.system = true;
    overlays_.put(std::move(mask));
  }
}

// Inside the session's memory a plain directory will do; at the root, which becomes read-only, it must be a
// mount.
void view::add_session_directory(std::string_view path) {
  entry e;
  e.kind = mounts_.above(path) ? entry_kind::directory : entry_kind::tmpfs;
  e.guest = path;
  e.mode = 0700;
  mounts_.put(std::move(e));
}

entry* view::nearest(std::string_view guest, bool strictly_above) {
  auto* mount = strictly_above ? mounts_.above(guest) : mounts_.over(guest);
  auto* overlay = strictly_above ? overlays_.above(guest) : overlays_.over(guest);
  if (!mount || !overlay) return mount ? mount : overlay;
  return depth(overlay->guest) >= depth(mount->guest) ? overlay : mount;
}

// Where the rules of `kind` apply, shallow places first. Says at once what has no place.
std::vector<view::deny> view::denies(const plugin::plan_request& request, ccbox_rule_kind kind) {
  std::vector<deny> found;
  for (const auto& r : request.rules()) {
    if (r.kind != kind || request.is_waived(r) || (r.flags & ~known_flags) != 0) continue;
    if (r.has(CCBOX_RULE_GLOB)) {
      const auto fixed = fixed_part(r.path);
      bool reachable = false;
      for (const auto& [host, guest] : guests_by_host_)
        reachable |= (covers(fixed, host) || covers(host, fixed)) &&
                     (kind == CCBOX_KIND_READ_DENY || !mounts_.at(guest)->read_only);
      if (reachable)
        unenforced_ |= r.bit;
      else
        say(r.index, kind == CCBOX_KIND_READ_DENY ? "mount: not visible" : "mount: not writable");
      continue;
    }
    if (r.has(CCBOX_RULE_SYMLINK)) {
      say(r.index, "mount: through a symbolic link; what it names has a rule of its own");
      continue;
    }
    const auto host = absolute(r.path, "the denied path");
    bool visible = false;
    for (std::string above = host;; above = parent(above)) {
      const auto [first, last] = guests_by_host_.equal_range(above);
      for (auto at = first; at != last; ++at) {
        auto* mount = mounts_.at(at->second);
        const auto guest = rebase(host, above, at->second);
        if (mounts_.over(guest) != mount) continue;  // another mount lies over it
        visible = true;
        found.push_back({&r, host, guest, mount});
      }
      if (above == "/") break;
    }
    if (!visible) say(r.index, "mount: not visible");
    // A mount inside the denied directory was listed on purpose, and is the more specific of the two.
    const auto inside = guests_by_host_.upper_bound(host == "/" ? "/" : host + "/");
    if (inside != guests_by_host_.end() && covers(host, inside->first)) {
      const auto* mount = mounts_.at(inside->second);
      if (kind == CCBOX_KIND_READ_DENY || !mount->read_only)
        say(r.index, "mount: " + shown(mount->guest) + " inside is a mount of its own and stays " +
                         (kind == CCBOX_KIND_READ_DENY ? "readable" : "writable"));
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const deny& a, const deny& b) { return depth(a.guest) < depth(b.guest); });
  return found;
}

void view::add_read_deny(const deny& d) {
  const auto index = d.rule->index;
  if (!d.rule->has(CCBOX_RULE_EXISTS)) return say(index, "mount: does not exist, nothing to hide");
  const auto* around = nearest(d.guest, false);
  if (around->kind == entry_kind::mask)
    return say(index,
               around->guest == d.guest ? "mount: masked" : "mount: masked with " + shown(around->guest));
  entry mask;
  mask.kind = entry_kind::mask;
  mask.guest = d.guest;
  mask.host = d.host;
  mask.is_directory = d.rule->has(CCBOX_RULE_DIRECTORY);
  overlays_.put(std::move(mask));
  if (d.guest == d.mount->guest) layers_[d.mount->rule] = "mount: masked by a read deny";
  say(index, "mount: masked");
}

void view::add_write_deny(const deny& d) {
  const auto index = d.rule->index;
  const auto* around = nearest(d.guest, false);
  if (around->kind == entry_kind::mask) return say(index, "mount: masked");
  if (around->read_only)
    return say(index, around->guest == d.guest ? "mount: read-only"
                                               : "mount: read-only with " + shown(around->guest));
  if (!d.rule->has(CCBOX_RULE_EXISTS)) {
    unenforced_ |= d.rule->bit;
    return;
  }
  if (d.guest == d.mount->guest) {
    d.mount->read_only = true;
    layers_[d.mount->rule] = "mount: read-only bind, for a write deny";
    return say(index, "mount: the mount itself is read-only");
  }
  entry over;
  over.guest = d.guest;
  over.host = d.host;
  over.read_only = true;
  over.is_directory = d.rule->has(CCBOX_RULE_DIRECTORY);
  overlays_.put(std::move(over));
  say(index, "mount: bound read-only over itself");
}

// Renaming a directory takes the mounts in it along and frees its name, so what lies between a protected path
// and the writable mount around it is bound onto itself. Only where the host has the path at that very place.
void view::pin_ancestors(const entry& e) {
  const bool protects = e.kind == entry_kind::mask || (e.kind == entry_kind::bind && e.read_only);
  if (!protects) return;
  const auto* mount = mounts_.above(e.guest);
  if (!mount || mount->kind != entry_kind::bind || mount->read_only) return;
  if (rebase(e.guest, mount->guest, mount->host) != e.host) return;
  for (auto guest = parent(e.guest); guest != mount->guest; guest = parent(guest)) {
    const auto* around = nearest(guest, false);
    if (around->kind == entry_kind::mask || around->read_only || around->guest == guest) continue;
    entry pin;
    pin.guest = guest;
    pin.host = rebase(guest, mount->guest, mount->host);
    overlays_.put(std::move(pin));
  }
}

void view::check_mount_point(const entry& e) {
  if (e.guest == "/") return;
  const auto* around = nearest(e.guest, true);
  if (is_private(around)) return;
  if (around->kind == entry_kind::symlink)
    throw failure(CCBOX_INVALID, "the mount point " + shown(e.guest) + " goes through the symbolic link " +
                                     shown(around->guest) + "; name the place itself");
  if (e.kind == entry_kind::symlink) return;
  const auto place = rebase(e.guest, around->guest, around->host);
  if (e.host == place) return;  // the rule says that it exists, as what it is
  const auto type = tree_.type(place);
  if (type == (e.is_directory ? node_type::directory : node_type::other)) return;
  const char* cause = type == node_type::missing  ? " does not exist in "
                      : type == node_type::linked ? " goes through a symbolic link in "
                                                  : " is of another type than what is mounted there, in ";
  throw failure(CCBOX_INVALID,
                "the mount point " + shown(e.guest) + cause + "the mounted " + shown(around->host) +
                    ", and none is made in a directory of the host; create it there, or mount elsewhere");
}

bool view::is_writable(const entry& step) const {
  if (step.kind == entry_kind::bind) return !step.read_only;
  return (step.kind == entry_kind::tmpfs || step.kind == entry_kind::directory) &&
         std::find(made_read_only_.begin(), made_read_only_.end(), step.guest) == made_read_only_.end();
}

void view::say(std::size_t rule, const std::string& text) {
  auto& layer = layers_[rule];
  if (layer.find(text) != layer.npos) return;  // said of another place already
  constexpr std::string_view prefix = "mount: ";
  layer += layer.empty() ? text : "; " + text.substr(prefix.size());
}

void view::finish() {
  auto all = mounts_.by_depth();
  for (auto* e : overlays_.by_depth())
    all.push_back(e);
  std::stable_sort(all.begin(), all.end(),
                   [](const entry* a, const entry* b) { return depth(a->guest) < depth(b->guest); });
  for (const auto* e : all) {
    const bool is_overlay = overlays_.at(e->guest) == e;
    if (!is_overlay && overlays_.at(e->guest)) continue;
    const auto* around = nearest(e->guest, true);
    if (e->kind == entry_kind::symlink && !is_private(around))
      continue;  // the bound directory has it, or not
    if (e->optional && !is_private(around) &&
        tree_.type(rebase(e->guest, around->guest, around->host)) != node_type::directory) {
      mounts_.remove(e->guest);
      continue;
    }
    check_mount_point(*e);
    steps_.push_back(*e);
    auto& step = steps_.back();
    if (e->kind == entry_kind::directory && !is_private(around)) step.kind = entry_kind::tmpfs;
    if (e->kind == entry_kind::mask && e->is_directory) {
      // Something mounted inside must stay reachable: then the mask may be passed through, not listed.
      step.mode = mounts_.any_below(e->guest) || overlays_.any_below(e->guest) ? 0111 : 0;
      made_read_only_.push_back(e->guest);
    }
    // The switches in /proc/sys and its like ask for the host's root user, not for a capability: and that is
    // who a root caller is inside.
    if (e->kind == entry_kind::dev || (e->kind == entry_kind::proc && root_caller_))
      made_read_only_.push_back(e->guest);
  }
  if (!nearest("/", false)) made_read_only_.push_back("/");

  const auto host_paths =
      static_cast<std::size_t>(std::count_if(steps_.begin(), steps_.end(), [](const entry& e) {
        return e.kind == entry_kind::bind || (e.kind == entry_kind::mask && !e.is_directory);
      }));
  if (host_paths > max_host_paths)
    throw failure(
        CCBOX_TOO_LARGE,
        "the policy comes to " + std::to_string(host_paths) +
            " mounts of host paths (protected paths, the "
            "directories above them, masked files), and bubblewrap can start with " +
            std::to_string(max_host_paths) +
            "; bind the project instead of the directory above it, or bind read-only what is only read");
}

}  // namespace ccbox::bubblewrap
