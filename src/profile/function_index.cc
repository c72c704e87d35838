// A function is its name, its module and whether it is the kernel's. Code without a name is its address in
// its module: nothing says which addresses of it belong together. Inlined calls count for the function that was
// inlined, in the module where they were found.
#include "src/profile/function_index.h"

namespace perfkit::profile {

uint32_t FunctionIndex::Of(const FrameTree::Node& frame) {
  const ProfileLocation& location = profile_.locations[frame.location];
  const ProfileCall call = frame.call == kNone ? ProfileCall{} : profile_.calls[frame.call];
  const uint64_t module = by_name_ ? 0 : location.module;
  const uint64_t kernel = location.kernel ? 1 : 0;
  // Names are indexes of 32 bits, so keys from 2^32 on are those of code without a name. One address may be at several
  // locations, if profiles that know more and less about it were merged.
  const PairKey key = call.function == 0
                          ? PairKey{uint64_t{1} << 34 | uint64_t{location.module} << 1 | kernel, location.address}
                          : PairKey{call.function, module << 1 | kernel};
  const auto [entry, is_new] = index_.try_emplace(key, static_cast<uint32_t>(functions_.size()));
  if (is_new) {
    functions_.push_back({.name = call.function,
                          .location = frame.location,
                          .module = location.module,
                          .file = call.file,
                          .line = call.line,
                          .kernel = location.kernel});
    // The same function may be known with its file in one module and without in another (by_name), or by one call.
  } else if (ReportFunction& function = functions_[entry->second]; function.file == 0 && call.file != 0) {
    function.file = call.file;
    function.line = call.line;
  }
  return entry->second;
}

std::vector<uint32_t> FunctionsOf(const FrameTree& tree, FunctionIndex& index) {
  std::vector<uint32_t> functions;
  functions.reserve(tree.frames().size());
  for (const FrameTree::Node& frame : tree.frames()) functions.push_back(index.Of(frame));
  return functions;
}

}  // namespace perfkit::profile
