// The unwinders: perfkit, and the peers that it is compared with. Each gets the samples of the same process, and learns
// its mappings before.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/unwind/capture_file.h"

namespace bench {

// Maximum frames of a stack, where a peer that loses its way is stopped. No program here has deeper stacks within 32
// KiB.
constexpr size_t kMaxFrames = 256;

// The pcs of a stack, innermost first.
using Pcs = std::vector<uint64_t>;

class Contender {
 public:
  virtual ~Contender() = default;
  // Returns why the contender can't be used; "" if it can.
  virtual std::string error() const { return ""; }
  // Unwinds the samples in order, and keeps the last stacks only. Returns the number of frames found.
  virtual size_t Unwind(std::span<const perfkit::Sample> samples) = 0;
  // As above, and returns the stacks.
  virtual std::vector<Pcs> Find(std::span<const perfkit::Sample> samples) = 0;
};

// Returns a contender by name: "perfkit" (a stack at a time), "perfkit_batch", "libdwfl", "libunwind".
std::unique_ptr<Contender> MakeContender(std::string_view name, const Capture& capture);
// Return the peers.
std::unique_ptr<Contender> MakeDwfl(const Capture& capture);
std::unique_ptr<Contender> MakeLibunwind(const Capture& capture);

// A peer that unwinds one stack at a time into pcs.
class OneByOne : public Contender {
 public:
  size_t Unwind(std::span<const perfkit::Sample> samples) final {
    size_t frames = 0;
    for (const perfkit::Sample& sample : samples) frames += One(sample);
    return frames;
  }
  std::vector<Pcs> Find(std::span<const perfkit::Sample> samples) final {
    std::vector<Pcs> found;
    for (const perfkit::Sample& sample : samples) {
      const size_t frames = One(sample);
      found.emplace_back(pcs_.begin(), pcs_.begin() + static_cast<ptrdiff_t>(frames));
    }
    return found;
  }

 protected:
  virtual size_t One(const perfkit::Sample& sample) = 0;

  std::array<uint64_t, kMaxFrames> pcs_{};
};

}  // namespace bench
