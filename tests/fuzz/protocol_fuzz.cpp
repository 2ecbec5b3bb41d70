#include "init/protocol.hpp"

#include "fuzz/target.hpp"

namespace {

using namespace ccbox::init;

// A message has one spelling only: what was decoded encodes to the same bytes.
template <class Decode, class Encode>
void one_spelling(std::string_view payload, Decode decode, Encode encode) {
  if (const auto message = decode(payload))
    fuzz::require(encode(*message) == payload, "a message has one spelling");
}

void run(std::string_view input) {
  const auto header = decode_header(input.substr(0, header_bytes));
  if (header) {
    fuzz::require(encode_header(*header) == input.substr(0, header_bytes), "a header has one spelling");
    fuzz::require(header->payload_bytes <= max_payload_bytes && header->descriptors <= max_descriptors,
                  "a header keeps its limits");
  }
  fuzz::require(!decode_header(input) || input.size() == header_bytes, "a header is sixteen bytes");

  // Also without a header in front, so that short inputs reach the decoders too.
  for (const auto payload : {input, input.substr(std::min(header_bytes, input.size()))}) {
    one_spelling(payload, decode_setup, [](const setup_message& m) { return encode(m); });
    one_spelling(payload, decode_exec, [](const exec_message& m) { return encode(m); });
    one_spelling(payload, decode_ready, [](const ready_message& m) { return encode(m); });
    one_spelling(payload, decode_failed, [](const failed_message& m) { return encode(m); });
    one_spelling(payload, decode_exited, [](const exited_message& m) { return encode(m); });
    one_spelling(payload, decode_listening, [](const listening_message& m) { return encode(m); });
    one_spelling(payload, decode_number, [](std::uint32_t n) { return encode_number(n); });
    if (const auto exec = decode_exec(payload)) {
      fuzz::require(!exec->argv.empty() && exec->cwd.starts_with('/'), "a command has a name and a place");
      for (const auto* list : {&exec->argv, &exec->env})
        for (const auto& text : *list)
          fuzz::require(text.find('\0') == text.npos, "no string has a NUL byte");
    }
    if (const auto listening = decode_listening(payload))
      fuzz::require(listening->descriptors() <= max_descriptors, "what listens fits into a frame");
    if (const auto setup = decode_setup(payload))
      fuzz::require(setup->filter.size() % 8 == 0, "a filter is whole instructions");
  }
}

const fuzz::registered target("protocol", run);

}  // namespace
