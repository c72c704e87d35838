// Calls at places, and many places at once.
#include <algorithm>
#include <numeric>

#include "src/symbolize/core.h"

namespace perfkit::symbolize {

// The function's own name is the symbol's, unless debug information has the whole of it: that of "f(int) [clone .cold]"
// is f(int), of which it is a piece.
std::span<const SourceFrame> Core::Inlined(CodePlace place) {
  const Symbol symbol = Name(place);
  calls_.clear();
  frames_.clear();
  if (place.module < processes_.modules().size() && ModuleAt(place.module).loaded()) {
    Module& module = ModuleAt(place.module);
    module.OpenLines(options_, lines_.get(), place.module);
    const std::optional<uint64_t> address = module.AddressOf(place.offset);
    if (address && lines_ != nullptr) lines_->Find(place.module, *address, calls_);
  }
  for (const SourceCall& call : calls_) {
    const bool inlined = &call != &calls_.back();
    std::string_view function = call.linkage ? Readable(call.function) : call.function;
    if (!inlined && !call.linkage && symbol.named()) function = symbol.function;
    frames_.push_back({function, call.file, call.line, call.column, inlined});
  }
  if (frames_.empty()) frames_.push_back({.function = symbol.function});
  return frames_;
}

bool Core::ResolveAll(std::span<const CodePlace> places, absl::FunctionRef<bool(const ResolvedPlace&)> visit) {
  std::vector<size_t> order(places.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return places[a] < places[b]; });
  size_t done = 0;
  for (const size_t index : order) {
    const std::span<const SourceFrame> frames = Inlined(places[index]);
    if (!visit({index, Name(places[index]), frames, ++done})) return false;
  }
  return true;
}

}  // namespace perfkit::symbolize
