// Those who unwind: perfkit, and the peers that it is compared with. Each gets the same samples, one process's, and
// knows what was mapped before it is asked.
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

// A peer that goes astray is stopped here; none of the programs has deeper stacks within 32 KiB.
constexpr size_t kMaxFrames = 256;

// The pcs of a stack, innermost first.
using Pcs = std::vector<uint64_t>;

class Contender {
 public:
  virtual ~Contender() = default;
  // Why it cannot; "": it can.
  virtual std::string error() const { return ""; }
  // Unwinds the samples in order, and keeps the last stacks only. How many frames it found.
  virtual size_t Unwind(std::span<const perfkit::Sample> samples) = 0;
  // The same, and what it found.
  virtual std::vector<Pcs> Find(std::span<const perfkit::Sample> samples) = 0;
};

// By name: "perfkit" (a stack at a time), "perfkit_batch", "libdwfl", "libunwind".
std::unique_ptr<Contender> MakeContender(std::string_view name, const Capture& capture);
// The peers by themselves.
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
