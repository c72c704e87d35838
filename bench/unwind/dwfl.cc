// elfutils' libdwfl, used as perf does, but keeping its modules and their tables between samples.
#include "bench/unwind/contender.h"
#include "bench/unwind/mapped_module.h"
#include "bench/unwind/sampled_thread.h"
#include "tests/unwind/dwarf/dwfl_oracle.h"

namespace bench {
namespace {

class DwflContender : public OneByOne {
 public:
  explicit DwflContender(const Capture& capture)
      : dwfl_(capture.pid(), [&](Dwfl* dwfl) { return ReportModules(capture, dwfl); }) {}

  std::string error() const override { return dwfl_.ok() ? "" : "libdwfl does not take the process"; }

 protected:
  size_t One(const perfkit::Sample& sample) override {
    const SampledThread thread(sample);
    size_t frames = 0;
    dwfl_.Walk(thread.registers, thread.stack, [&](Dwfl_Frame* frame) {
      Dwarf_Addr pc = 0;
      if (frames == kMaxFrames || !dwfl_frame_pc(frame, &pc, nullptr)) return false;
      pcs_[frames++] = pc;
      return true;
    });
    return frames;
  }

 private:
  static bool ReportModules(const Capture& capture, Dwfl* dwfl) {
    for (const MappedModule& module : ModulesOf(capture)) {
      dwfl_report_elf(dwfl, module.path.c_str(), module.path.c_str(), -1, module.bias, true);
    }
    return true;
  }

  perfkit::testing::DwflOracle dwfl_;
};

}  // namespace

std::unique_ptr<Contender> MakeDwfl(const Capture& capture) { return std::make_unique<DwflContender>(capture); }

}  // namespace bench
