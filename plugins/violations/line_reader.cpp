#include "line_reader.hpp"

#include "refusal_markers.hpp"

namespace ccbox::violations {
namespace {

constexpr std::string_view line_ends = "\n\r";

}  // namespace

void line_reader::add(std::string_view bytes, const sink& each) {
  if (!begun_.empty() || too_long_) {
    const auto end = bytes.find_first_of(line_ends);
    keep(bytes.substr(0, end));
    if (end == bytes.npos) return;
    this->end(each);
    bytes.remove_prefix(end + 1);
  }
  const auto last = bytes.find_last_of(line_ends);
  const auto whole = last == bytes.npos ? std::string_view() : bytes.substr(0, last + 1);
  refusal_markers markers(whole);
  for (std::size_t from = 0;;) {
    const auto marker = markers.next(from);
    if (marker.begin == whole.npos) break;
    const auto before = marker.begin == 0 ? whole.npos : whole.find_last_of(line_ends, marker.begin - 1);
    const auto begin = before == whole.npos ? 0 : before + 1;
    const auto end = whole.find_first_of(line_ends, marker.begin);
    if (end - begin <= most_bytes) each(whole.substr(begin, end - begin));
    from = end;
  }
  keep(bytes.substr(whole.size()));
}

void line_reader::keep(std::string_view bytes) {
  too_long_ = too_long_ || begun_.size() + bytes.size() > most_bytes;
  if (too_long_)
    begun_.clear();
  else
    begun_ += bytes;
}

void line_reader::end(const sink& each) {
  if (!too_long_ && refusal_markers(begun_).next(0).begin != std::string_view::npos) each(begun_);
  begun_.clear();
  too_long_ = false;
}

}  // namespace ccbox::violations
