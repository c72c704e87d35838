// A child that is stopped before each of its instructions (ptrace), with its registers, stack and memory.
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "src/unwind/full_registers.h"

namespace perfkit::testing {

#if defined(__x86_64__)

class Stepper {
 public:
  // Where a child first stops: before its first instruction, or after its first int3.
  enum class Until { kExec, kInt3 };

  // Runs `path` up to there. ok() says whether that worked.
  explicit Stepper(const std::string& path, Until until = Until::kInt3) {
    pid_ = fork();
    if (pid_ == 0) {
      ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      char* const nothing[] = {nullptr};
      char* const arguments[] = {const_cast<char*>(path.c_str()), nullptr};
      execve(path.c_str(), arguments, nothing);
      _exit(127);
    }
    if (Wait() != SIGTRAP) return;  // of exec
    memory_ = open(("/proc/" + std::to_string(pid_) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
    if (until == Until::kInt3) {
      ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
      if (Wait() != SIGTRAP) return;
    }
    ok_ = memory_ >= 0;
  }
  ~Stepper() {
    if (!ended_) kill(pid_, SIGKILL);
    if (!ended_) waitpid(pid_, nullptr, 0);
    if (memory_ >= 0) close(memory_);
  }
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  bool ok() const { return ok_; }
  pid_t pid() const { return pid_; }

  // One instruction on; a signal that stopped it is delivered. False: it has ended.
  bool Step() {
    const long signal = signal_ == SIGTRAP ? 0 : signal_;
    return ptrace(PTRACE_SINGLESTEP, pid_, nullptr, signal) == 0 && Wait() != 0;
  }

  unwind::FullRegisters registers() const {
    user_regs_struct user{};
    ptrace(PTRACE_GETREGS, pid_, nullptr, &user);
    const unsigned long long values[] = {user.rax, user.rdx, user.rcx, user.rbx, user.rsi, user.rdi,
                                         user.rbp, user.rsp, user.r8,  user.r9,  user.r10, user.r11,
                                         user.r12, user.r13, user.r14, user.r15, user.rip};
    unwind::FullRegisters registers;
    for (unsigned i = 0; i < std::size(values); ++i) registers.Set(i, values[i]);
    return registers;
  }

  // At most `size` bytes from `address` on: as many as there are.
  std::string Read(uint64_t address, size_t size) const {
    std::string bytes(size, '\0');
    const ssize_t got = pread(memory_, bytes.data(), size, static_cast<off_t>(address));
    bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return bytes;
  }

 private:
  // What stopped it; 0: it is gone.
  int Wait() {
    int status = 0;
    ended_ = waitpid(pid_, &status, 0) != pid_ || !WIFSTOPPED(status);
    return signal_ = ended_ ? 0 : WSTOPSIG(status);
  }

  pid_t pid_ = -1;
  int memory_ = -1, signal_ = 0;
  bool ok_ = false, ended_ = false;
};

#endif

}  // namespace perfkit::testing
