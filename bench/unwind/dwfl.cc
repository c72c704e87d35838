// elfutils' libdwfl, used as perf does, but keeping its modules and their tables between samples.
#include <elfutils/libdwfl.h>

#include "bench/unwind/contender.h"
#include "bench/unwind/mapped_module.h"
#include "bench/unwind/sampled_thread.h"

namespace bench {
namespace {

class DwflContender : public OneByOne {
 public:
  explicit DwflContender(const Capture& capture) : pid_(capture.pid()), dwfl_(dwfl_begin(&kCallbacks), dwfl_end) {
    dwfl_report_begin(dwfl_.get());
    for (const MappedModule& module : ModulesOf(capture)) {
      dwfl_report_elf(dwfl_.get(), module.path.c_str(), module.path.c_str(), -1, module.bias, true);
    }
    dwfl_report_end(dwfl_.get(), nullptr, nullptr);
    ok_ = dwfl_attach_state(dwfl_.get(), nullptr, pid_, &kThread, this);
  }

  std::string error() const override { return ok_ ? "" : "libdwfl does not take the process"; }

 protected:
  size_t One(const perfkit::Sample& sample) override {
    thread_.Take(sample);
    frames_ = 0;
    dwfl_getthread_frames(dwfl_.get(), pid_, OnFrame, this);
    return frames_;
  }

 private:
  static int OnFrame(Dwfl_Frame* state, void* into) {
    auto& self = *static_cast<DwflContender*>(into);
    Dwarf_Addr pc = 0;
    if (self.frames_ == kMaxFrames || !dwfl_frame_pc(state, &pc, nullptr)) return DWARF_CB_ABORT;
    self.pcs_[self.frames_++] = pc;
    return DWARF_CB_OK;
  }
  static pid_t NextThread(Dwfl*, void* self, void** thread) {
    if (*thread != nullptr) return 0;
    *thread = self;
    return static_cast<DwflContender*>(self)->pid_;
  }
  static bool GetThread(Dwfl*, pid_t, void* self, void** thread) { return *thread = self, true; }
  static bool ReadMemory(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* self) {
    uint64_t value = 0;
    const bool read = static_cast<DwflContender*>(self)->thread_.Read(address, value);
    *word = value;
    return read;
  }
  static bool SetRegisters(Dwfl_Thread* thread, void* self) {
    const SampledThread& sampled = static_cast<DwflContender*>(self)->thread_;
    Dwarf_Word words[SampledThread::kRegisters];
    std::copy(sampled.registers.begin(), sampled.registers.end(), words);
    dwfl_thread_state_register_pc(thread, words[SampledThread::kPc]);
    return dwfl_thread_state_registers(thread, 0, SampledThread::kPc, words);
  }
  // Disables separate debug files: they add nothing to frames, and the search for them takes long.
  static int NoDebugFile(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
    return -1;
  }

  static constexpr Dwfl_Callbacks kCallbacks = {.find_elf = dwfl_build_id_find_elf,
                                                .find_debuginfo = NoDebugFile,
                                                .section_address = nullptr,
                                                .debuginfo_path = nullptr};
  static constexpr Dwfl_Thread_Callbacks kThread = {.next_thread = NextThread,
                                                    .get_thread = GetThread,
                                                    .memory_read = ReadMemory,
                                                    .set_initial_registers = SetRegisters,
                                                    .detach = nullptr,
                                                    .thread_detach = nullptr};

  const pid_t pid_;
  const std::unique_ptr<Dwfl, void (*)(Dwfl*)> dwfl_;
  SampledThread thread_;
  size_t frames_ = 0;
  bool ok_ = false;
};

}  // namespace

std::unique_ptr<Contender> MakeDwfl(const Capture& capture) { return std::make_unique<DwflContender>(capture); }

}  // namespace bench
