// perfkit as a program uses it: adds all records of mappings, then unwinds the samples, one at a time or many.
#include <algorithm>

#include "bench/unwind/contender.h"
#include "perfkit/unwinder.h"

namespace bench {
namespace {

class Perfkit : public Contender {
 public:
  // `batch` is the number of samples that are unwound at once: about what a ring holds that is drained some times a
  // second. Each stack has room for kMaxFrames, also in the last batch, which is shorter.
  Perfkit(const Capture& capture, size_t batch) : batch_(batch), frames_(batch * kMaxFrames), stacks_(batch) {
    for (const perfkit::RawRecord& record : capture.records()) unwinder_.Add(record, capture.layout());
  }

  size_t Unwind(std::span<const perfkit::Sample> samples) override {
    size_t frames = 0;
    ForEachBatch(samples, [&](std::span<const perfkit::UnwoundStack> stacks) {
      for (const perfkit::UnwoundStack& stack : stacks) frames += stack.frames;
    });
    return frames;
  }
  std::vector<Pcs> Find(std::span<const perfkit::Sample> samples) override {
    std::vector<Pcs> found;
    ForEachBatch(samples, [&](std::span<const perfkit::UnwoundStack> stacks) {
      for (size_t i = 0; i < stacks.size(); ++i) {
        Pcs& pcs = found.emplace_back();
        const std::span room = std::span(frames_).subspan(i * kMaxFrames);
        for (const perfkit::StackFrame& frame : room.first(stacks[i].frames)) pcs.push_back(frame.pc);
      }
    });
    return found;
  }

 private:
  // Calls `visit` with the stacks of each batch.
  template <class T>
  void ForEachBatch(std::span<const perfkit::Sample> samples, const T& visit) {
    for (; !samples.empty(); samples = samples.subspan(std::min(batch_, samples.size()))) {
      const auto now = samples.first(std::min(batch_, samples.size()));
      if (batch_ == 1) {
        // Used where it was returned. A copy would wait for the words that the unwinder has just written.
        const perfkit::UnwoundStack stack = unwinder_.Unwind(now[0], frames_);
        visit(std::span(&stack, 1));
      } else {
        const std::span stacks = std::span(stacks_).first(now.size());
        unwinder_.Unwind(now, std::span(frames_).first(now.size() * kMaxFrames), stacks);
        visit(std::span<const perfkit::UnwoundStack>(stacks));
      }
    }
  }

  const size_t batch_;
  perfkit::Unwinder unwinder_;
  std::vector<perfkit::StackFrame> frames_;
  std::vector<perfkit::UnwoundStack> stacks_;
};

// Stands for a peer that is not part of this build.
class Missing : public Contender {
 public:
  explicit Missing(const char* what) : what_(what) {}
  std::string error() const override { return what_; }
  size_t Unwind(std::span<const perfkit::Sample>) override { return 0; }
  std::vector<Pcs> Find(std::span<const perfkit::Sample>) override { return {}; }

 private:
  const char* const what_;
};

}  // namespace

#if !defined(PERFKIT_BENCH_LIBUNWIND)
std::unique_ptr<Contender> MakeLibunwind(const Capture&) {
  return std::make_unique<Missing>("built without libunwind");
}
#endif

std::unique_ptr<Contender> MakeContender(std::string_view name, const Capture& capture) {
  if (name == "libdwfl") return MakeDwfl(capture);
  if (name == "libunwind") return MakeLibunwind(capture);
  return std::make_unique<Perfkit>(capture, name == "perfkit_batch" ? 64 : 1);
}

}  // namespace bench
