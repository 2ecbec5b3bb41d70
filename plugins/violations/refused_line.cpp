#include "refused_line.hpp"

#include <algorithm>
#include <vector>

#include "refusal_markers.hpp"

namespace ccbox::violations {
namespace {

struct verb {
  std::string_view phrase;  // lower case
  std::string_view action;
};

// The longer of two with one beginning comes first.
constexpr verb verbs[] = {
    {"cannot create", "file-write-create"},
    {"can't create", "file-write-create"},
    {"could not create", "file-write-create"},
    {"unable to create", "file-write-create"},
    {"failed to create", "file-write-create"},
    {"could not lock config file", "file-write-create"},
    {"cannot touch", "file-write-create"},
    {"cannot mkdir", "file-write-create"},
    {"cannot move", "file-write-create"},
    {"cannot rename", "file-write-create"},
    {"could not rename", "file-write-create"},
    {"mkdir", "file-write-create"},
    {"mkfifo", "file-write-create"},
    {"mknod", "file-write-create"},
    {"symlink", "file-write-create"},
    {"rename", "file-write-create"},
    {"creating", "file-write-create"},
    {"create", "file-write-create"},
    {"link", "file-link"},
    {"cannot remove", "file-write-unlink"},
    {"cannot unlink", "file-write-unlink"},
    {"unable to unlink", "file-write-unlink"},
    {"could not remove", "file-write-unlink"},
    {"failed to remove", "file-write-unlink"},
    {"unlink", "file-write-unlink"},
    {"rmdir", "file-write-unlink"},
    {"remove", "file-write-unlink"},
    {"cannot write", "file-write-data"},
    {"could not write", "file-write-data"},
    {"cannot open output file", "file-write-data"},
    {"can't open output file", "file-write-data"},
    {"cannot overwrite", "file-write-data"},
    {"ftruncate", "file-write-data"},
    {"truncate", "file-write-data"},
    {"write", "file-write-data"},
    {"changing permissions of", "file-write-mode"},
    {"fchmod", "file-write-mode"},
    {"chmod", "file-write-mode"},
    {"changing ownership of", "file-write-owner"},
    {"changing group of", "file-write-owner"},
    {"fchown", "file-write-owner"},
    {"lchown", "file-write-owner"},
    {"chown", "file-write-owner"},
    {"setting times of", "file-write-times"},
    {"utime", "file-write-times"},
    {"cannot open directory", "file-read-data"},
    {"could not open directory", "file-read-data"},
    {"reading directory", "file-read-data"},
    {"cannot read", "file-read-data"},
    {"could not read", "file-read-data"},
    {"cannot open", "file-read-data"},
    {"can't open", "file-read-data"},
    {"could not open", "file-read-data"},
    {"unable to open", "file-read-data"},
    {"failed to open", "file-read-data"},
    {"error opening", "file-read-data"},
    {"opendir", "file-read-data"},
    {"scandir", "file-read-data"},
    {"readdir", "file-read-data"},
    {"reading", "file-read-data"},
    {"read", "file-read-data"},
    {"cd", "file-read-data"},
    {"cannot access", "file-read-metadata"},
    {"unable to access", "file-read-metadata"},
    {"cannot stat", "file-read-metadata"},
    {"lstat", "file-read-metadata"},
    {"stat", "file-read-metadata"},
    {"access", "file-read-metadata"},
    {"fork/exec", "process-exec"},
    {"cannot execute", "process-exec"},
    {"cannot exec", "process-exec"},
    {"cannot run", "process-exec"},
    {"failed to execute", "process-exec"},
    {"execve", "process-exec"},
    {"exec", "process-exec"},
    {"spawn", "process-exec"},
    {"socket", "system-socket"},
    {"connect", "network-outbound"},
    {"bind", "network-bind"},
    {"listen", "network-bind"},
    {"mount", "file-mount"},
    {"open", "file*"},
};

// Of a phrase that names the verb, these words may stand between it and the path.
constexpr std::string_view fillers[] = {
    "directory",   "regular file",           "symbolic link",  "hard link",    "file", "work tree dir",
    "output file", "leading directories of", "temporary file", "special file", "fifo"};

constexpr std::string_view readers[] = {
    "cat", "head",   "tail", "less", "more", "grep", "egrep", "rg", "diff",      "wc",     "sort",   "od",
    "xxd", "base64", "cut",  "sed",  "awk",  "ls",   "find",  "du", "sha256sum", "md5sum", "strings"};

// What begins a line without being a program.
constexpr std::string_view no_programs[] = {"error", "fatal",     "warning", "panic",
                                            "hint",  "caused by", "note"};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool starts_with_words(std::string_view text, std::string_view words) {
  if (text.size() < words.size()) return false;
  for (std::size_t i = 0; i < words.size(); ++i)
    if (lower(text[i]) != words[i]) return false;
  if (text.size() == words.size()) return true;
  const char next = text[words.size()];
  return !(lower(next) >= 'a' && lower(next) <= 'z') && next != '_' && next != '/' && next != '-' &&
         next != '.';
}

std::string_view trimmed(std::string_view text, std::string_view what = " \t") {
  const auto begin = text.find_first_not_of(what);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(what) - begin + 1);
}

struct quotation {
  std::size_t begin = 0, end = 0;  // with the quotes
  std::string_view text;
};

// 'x', "x", `x', ‘x’, “x”. A quote between two letters is an apostrophe.
std::vector<quotation> quotations(std::string_view line) {
  constexpr std::string_view pairs[][2] = {{"'", "'"},
                                           {"\"", "\""},
                                           {"`", "'"},
                                           {"`", "`"},
                                           {"\xe2\x80\x98", "\xe2\x80\x99"},
                                           {"\xe2\x80\x9c", "\xe2\x80\x9d"}};
  constexpr std::size_t most = 8;
  std::vector<quotation> out;
  for (std::size_t at = 0; at < line.size() && out.size() < most;) {
    const auto* found = std::find_if(std::begin(pairs), std::end(pairs), [&](const auto& pair) {
      return line.substr(at).starts_with(pair[0]) && line.find(pair[1], at + pair[0].size()) != line.npos;
    });
    const bool apostrophe = at > 0 && ((lower(line[at - 1]) >= 'a' && lower(line[at - 1]) <= 'z'));
    if (found == std::end(pairs) || apostrophe) {
      ++at;
      continue;
    }
    const auto begin = at + (*found)[0].size();
    const auto end = line.find((*found)[1], begin);
    if (end > begin) out.push_back({at, end + (*found)[1].size(), line.substr(begin, end - begin)});
    at = end + (*found)[1].size();
  }
  return out;
}

// What stands after the last ": " of `text`; `text` loses it.
std::string_view take_last_part(std::string_view& text) {
  const auto colon = text.rfind(": ");
  const auto part = colon == text.npos ? text : text.substr(colon + 2);
  text = colon == text.npos ? std::string_view() : text.substr(0, colon);
  return trimmed(part);
}

bool looks_like_path(std::string_view text) {
  if (text.empty()) return false;
  if (text.starts_with('/') || text.starts_with("./") || text.starts_with("../") || text.starts_with("~/"))
    return true;
  const bool one_word = text.find_first_of(" \t()[]{}<>\"'`") == text.npos;
  const bool number = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return one_word && !number;
}

// The verb that `part` begins with; `part` becomes what follows it.
const verb* take_verb(std::string_view& part) {
  for (const auto& each : verbs) {
    if (!starts_with_words(part, each.phrase)) continue;
    part = trimmed(part.substr(each.phrase.size()), " \t(,:=");
    for (const auto filler : fillers)
      if (starts_with_words(part, filler)) {
        part = trimmed(part.substr(filler.size()));
        break;
      }
    return &each;
  }
  return nullptr;
}

bool is_no_program(std::string_view word) {
  if (word.ends_with("Error") || word.ends_with("Exception")) return true;
  return std::any_of(std::begin(no_programs), std::end(no_programs),
                     [&](std::string_view each) { return starts_with_words(word, each); });
}

std::string program_of(std::string_view line) {
  auto word = line.substr(0, std::min(line.find(": "), line.find('[')));
  if (word.size() == line.size() || word.find_first_of(" \t'\"(") != word.npos) return {};
  if (const auto slash = word.rfind('/'); slash != word.npos) word = word.substr(slash + 1);
  if (word.empty() || word.size() > 64 || is_no_program(word)) return {};
  return std::string(word);
}

// The part of a line that names the object, and how.
class reading {
 public:
  reading(std::string_view line, refusal_markers::place marker)
      : line_(line),
        before_(line.substr(0, marker.begin)),
        after_(line.substr(marker.begin + marker.length)) {}

  std::optional<refused_line> answer() {
    if (is_login()) return std::nullopt;
    refused_line out;
    out.program = program_of(line_);
    strip_names();
    if (after_.starts_with(" @ "))
      by_word_behind();
    else if (!by_quotation_behind() && !by_quotation_ahead() && !by_parts())
      by_word_behind();
    out.is_path = !target_.empty();
    out.action = action_.empty() ? (out.is_path ? "file*" : "system-call") : std::string(action_);
    if (out.is_path && out.action == "file*" &&
        std::find(std::begin(readers), std::end(readers), out.program) != std::end(readers))
      out.action = "file-read-data";
    if (!out.is_path && out.action.starts_with("file")) out.action = "file*";
    out.target = out.is_path ? std::string(target_) : out.program;
    if (out.target.empty()) out.target = "unknown";
    return out;
  }

 private:
  // ssh and the like: who was refused is a user, by another host.
  bool is_login() const {
    return after_.starts_with(" (publickey") || after_.starts_with(" (password") ||
           after_.starts_with(" (keyboard") || after_.starts_with(" (gssapi") ||
           after_.starts_with(", please try again");
  }

  // "EACCES: " and "[Errno 13] ", which say the same once more, and what joins the marker to its object.
  void strip_names() {
    before_ = trimmed(before_);
    for (const std::string_view name : {"EACCES:", "EPERM:", "[Errno 13]", "[Errno 1]"})
      if (before_.ends_with(name)) before_.remove_suffix(name.size());
    before_ = trimmed(before_);
    if (before_.ends_with('(')) before_.remove_suffix(1);
    before_ = trimmed(before_, " \t:");
  }

  void set_action(const verb* found, std::string_view suffix) {
    if (found) action_ = found->action;
    if (suffix.find("for reading") != suffix.npos) action_ = "file-read-data";
    if (suffix.find("for writing") != suffix.npos) action_ = "file-write-data";
  }

  // ", open 'x'", ": 'x'", ", rename 'x' -> 'y'"
  bool by_quotation_behind() {
    const auto found = quotations(after_);
    if (found.empty()) return false;
    auto phrase = trimmed(after_.substr(0, found.front().begin), " \t,:(");
    set_action(take_verb(phrase), {});
    target_ = found.back().text;
    return true;
  }

  // "cannot move 'x' to 'y'", "open(\"x\")"
  bool by_quotation_ahead() {
    const auto found = quotations(before_);
    if (found.empty()) return false;
    auto rest = before_.substr(0, found.front().begin);
    auto phrase = take_last_part(rest);
    set_action(take_verb(phrase), before_.substr(found.back().end));
    target_ = found.back().text;
    return true;
  }

  // "cannot create x", "x", "x: Cannot open"
  bool by_parts() {
    auto rest = before_;
    auto part = take_last_part(rest);
    if (part.empty()) return false;
    const auto whole = part;
    const verb* found = take_verb(part);
    set_action(found, whole);
    for (const std::string_view suffix : {" for reading", " for writing"})
      if (part.ends_with(suffix)) part.remove_suffix(suffix.size());
    if (found && part.empty()) {
      const bool alone = rest.empty();  // "socket: …" of a program that does not say its name
      part = take_last_part(rest);
      if (!alone && !rest.empty() && looks_like_path(part)) target_ = part;
      return true;
    }
    if (found || looks_like_path(part)) {
      if (!found && rest.empty() && (program_is_all(part) || is_no_program(part))) return false;
      target_ = part;
      return true;
    }
    const auto last = part.substr(part.find_last_of(" \t") + 1);
    if (last.find('/') == last.npos) return false;
    target_ = last;
    return true;
  }

  // "zsh: permission denied: ./x" has the program alone before it.
  bool program_is_all(std::string_view part) const { return after_.starts_with(": ") && part == before_; }

  // ": ./x", " @ rb_sysopen - x (Errno::EACCES)"
  void by_word_behind() {
    auto text = after_;
    if (text.starts_with(" @ ")) {
      const auto dash = text.find(" - ");
      if (dash == text.npos) return;
      text = text.substr(dash + 3);
      text = trimmed(text.substr(0, text.rfind(" (")));
    } else if (text.starts_with(": ")) {
      text = trimmed(text.substr(2));
    } else {
      return;
    }
    if (looks_like_path(text)) target_ = text;
  }

  std::string_view line_, before_, after_;
  std::string_view action_, target_;
};

}  // namespace

std::string without_escape_sequences(std::string_view line) {
  constexpr char escape = '\x1b';
  std::string out;
  out.reserve(line.size());
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] != escape) {
      out += line[at++];
      continue;
    }
    const char kind = at + 1 < line.size() ? line[at + 1] : '\0';
    at += 2;
    if (kind == '[') {
      while (at < line.size() && !(line[at] >= '@' && line[at] <= '~'))
        ++at;
      ++at;
    } else if (kind == ']') {
      while (at < line.size() && line[at] != '\a' && line[at] != escape)
        ++at;
      at += at < line.size() && line[at] == escape ? 2 : 1;
    }
  }
  return out;
}

std::optional<refused_line> read_refused_line(std::string_view line) {
  const auto text = without_escape_sequences(line);
  const auto plain = trimmed(text);
  refusal_markers markers(plain);
  auto marker = markers.next(0);
  if (marker.begin == plain.npos) return std::nullopt;
  // "EACCES: permission denied": the words come last.
  for (auto next = marker; marker.is_name && next.begin != plain.npos;) {
    next = markers.next(next.begin + next.length);
    if (next.begin != plain.npos && !next.is_name) marker = next;
  }
  return reading(plain, marker).answer();
}

}  // namespace ccbox::violations
