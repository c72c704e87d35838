// The frames that elfutils' libdwfl finds for the registers and stack bytes of a sample.
#pragma once

#include <elfutils/libdwfl.h>

#include <memory>
#include <vector>

#include "src/unwind/full_registers.h"

namespace perfkit::testing {

// For one process, which lives while this does: with what it has mapped now.
class DwflOracle {
 public:
  explicit DwflOracle(pid_t pid) : pid_(pid), dwfl_(dwfl_begin(&kCallbacks), dwfl_end) {
    ok_ = dwfl_ != nullptr && dwfl_linux_proc_report(dwfl_.get(), pid) == 0 &&
          dwfl_report_end(dwfl_.get(), nullptr, nullptr) == 0 &&
          dwfl_attach_state(dwfl_.get(), nullptr, pid, &kThread, this);
  }

  bool ok() const { return ok_; }

  // Innermost first.
  std::vector<StackFrame> Unwind(const unwind::FullRegisters& registers, const unwind::StackBytes& stack) {
    registers_ = &registers;
    stack_ = &stack;
    std::vector<StackFrame> frames;
    dwfl_getthread_frames(dwfl_.get(), pid_, OnFrame, &frames);
    return frames;
  }

 private:
  using Machine = unwind::ThisMachine;

  static int OnFrame(Dwfl_Frame* state, void* into) {
    Dwarf_Addr pc = 0;
    bool activation = false;
    if (!dwfl_frame_pc(state, &pc, &activation)) return DWARF_CB_ABORT;
    static_cast<std::vector<StackFrame>*>(into)->push_back({pc, !activation, false});
    return DWARF_CB_OK;
  }
  static pid_t NextThread(Dwfl*, void* self, void** thread) {
    if (*thread != nullptr) return 0;
    *thread = self;
    return static_cast<DwflOracle*>(self)->pid_;
  }
  static bool GetThread(Dwfl*, pid_t, void* self, void** thread) { return *thread = self, true; }
  static bool ReadMemory(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* self) {
    uint64_t value = 0;
    const bool read = static_cast<DwflOracle*>(self)->stack_->Read(address, value);
    *word = value;
    return read;
  }
  static bool SetRegisters(Dwfl_Thread* thread, void* self) {
    const unwind::FullRegisters& registers = *static_cast<DwflOracle*>(self)->registers_;
    Dwarf_Word words[Machine::kRegisters] = {};
    for (unsigned i = 0; i < Machine::kRegisters; ++i) words[i] = registers.ValueOr0(i);
    // Of aarch64 the pc has no number.
    const unsigned count = Machine::kLinkRegister ? Machine::kPc : Machine::kRegisters;
    if (!dwfl_thread_state_registers(thread, 0, count, words)) return false;
    if (Machine::kLinkRegister) dwfl_thread_state_register_pc(thread, words[Machine::kPc]);
    return true;
  }
  // Separate debug files say nothing more of frames, and take long to look for.
  static int NoDebugFile(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
    return -1;
  }

  static constexpr Dwfl_Callbacks kCallbacks = {.find_elf = dwfl_linux_proc_find_elf,
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
  const unwind::FullRegisters* registers_ = nullptr;
  const unwind::StackBytes* stack_ = nullptr;
  bool ok_ = false;
};

}  // namespace perfkit::testing
