// The frames that elfutils' libdwfl finds for the registers and stack bytes of a sample. The benchmarks measure it with
// the same code.
#pragma once

#include <elfutils/libdwfl.h>

#include <memory>
#include <vector>

#include "src/unwind/full_registers.h"

namespace perfkit::testing {

// For one process, by its modules.
class DwflOracle {
 public:
  // With what process `pid` has mapped now. Requires that it lives while this does.
  explicit DwflOracle(pid_t pid)
      : DwflOracle(pid, [pid](Dwfl* dwfl) { return dwfl_linux_proc_report(dwfl, pid) == 0; }) {}
  // With the modules that `report` reports: (Dwfl*) -> bool.
  template <class Report>
  DwflOracle(pid_t pid, const Report& report) : pid_(pid), dwfl_(dwfl_begin(&kCallbacks), dwfl_end) {
    ok_ = dwfl_ != nullptr && report(dwfl_.get()) && dwfl_report_end(dwfl_.get(), nullptr, nullptr) == 0 &&
          dwfl_attach_state(dwfl_.get(), nullptr, pid, &kThread, this);
  }
  DwflOracle(const DwflOracle&) = delete;
  DwflOracle& operator=(const DwflOracle&) = delete;

  bool ok() const { return ok_; }

  // Calls visit(Dwfl_Frame*) for each frame, innermost first, until it returns false.
  template <class Visit>
  void Walk(const unwind::FullRegisters& registers, const unwind::StackBytes& stack, Visit visit) {
    registers_ = &registers;
    stack_ = &stack;
    dwfl_getthread_frames(dwfl_.get(), pid_, OnFrame<Visit>, &visit);
  }

  // Innermost first.
  std::vector<StackFrame> Unwind(const unwind::FullRegisters& registers, const unwind::StackBytes& stack) {
    std::vector<StackFrame> frames;
    Walk(registers, stack, [&](Dwfl_Frame* frame) {
      Dwarf_Addr pc = 0;
      bool activation = false;
      if (!dwfl_frame_pc(frame, &pc, &activation)) return false;
      frames.push_back({pc, !activation, false});
      return true;
    });
    return frames;
  }

 private:
  using Machine = unwind::ThisMachine;

  template <class Visit>
  static int OnFrame(Dwfl_Frame* frame, void* visit) {
    return (*static_cast<Visit*>(visit))(frame) ? DWARF_CB_OK : DWARF_CB_ABORT;
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
    // All of them: rules of PLT stubs need register 16, the pc. On aarch64 the pc has no number.
    const unsigned count = Machine::kLinkRegister ? Machine::kPc : Machine::kRegisters;
    if (!dwfl_thread_state_registers(thread, 0, count, words)) return false;
    if (Machine::kLinkRegister) dwfl_thread_state_register_pc(thread, words[Machine::kPc]);
    return true;
  }
  // Disables separate debug files: they add nothing to frames, and the search for them takes long.
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
