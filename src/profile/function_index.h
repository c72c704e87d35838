// Which function a call is one of.
#pragma once

#include <cstdint>
#include <vector>

#include "perfkit/report.h"
#include "src/profile/frame_tree.h"
#include "src/profile/pair_index.h"

namespace perfkit::profile {

// Numbers functions in the order in which they are asked for. `by_name`: functions of one name are the same one,
// whatever their modules are. The profile must outlive it.
class FunctionIndex {
 public:
  explicit FunctionIndex(const Profile& profile, bool by_name = false) : profile_(profile), by_name_(by_name) {}

  uint32_t Of(const FrameTree::Node& frame);
  const std::vector<ReportFunction>& functions() const { return functions_; }

 private:
  const Profile& profile_;
  bool by_name_;
  std::vector<ReportFunction> functions_;
  PairIndex index_;
};

// The function of each frame.
std::vector<uint32_t> FunctionsOf(const FrameTree& tree, FunctionIndex& index);

}  // namespace perfkit::profile
