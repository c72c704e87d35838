// A process of the walk over modules: it loads libraries, calls their functions, forks, and changes files, as it is
// told.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "absl/strings/str_format.h"
#include "tests/support/work.h"
#include "tests/support/own_mounts.h"
#include "tests/symbolize/walk_case.h"

namespace perfkit::walk {

struct Command {
  enum class What : uint8_t {
    kOpen,
    kClose,
    kCall,
    kCallThread,
    kJit,
    kCallJit,
    kWrite,
    kDelete,
    kRename,
    kFork,
    kContainer,
    kReap,
    kExec,
    kPing,
    kExit
  };
  What what = What::kPing;
  size_t file = 0;
  size_t number = 0;  // Of a build, a function that is made, a process; of kCall: the function's index.
  bool in_place = false;
  pid_t pid = 0;          // Of kReap.
  bool by_other = false;  // Of kJit: the list is another user's.
};

struct Reply {
  bool fine = false;
  pid_t pid = 0;         // Of the process that touched the page, or that was made.
  uint64_t address = 0;  // Of the touched page.
  char what[200] = {};   // Why it is not fine.
};

// The ends of the connections to all processes, which each of them inherits.
class Lines {
 public:
  Lines() {
    for (auto& pair : pairs_) socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data());
  }
  int ours(size_t actor) const { return pairs_[actor][0]; }
  int theirs(size_t actor) const { return pairs_[actor][1]; }

 private:
  std::array<std::array<int, 2>, kActors> pairs_{};
};

// From here on, for this process and its children, other files are in `folder`. Returns false if that is not permitted.
inline bool OwnFileSystem(const std::string& folder) {
  return testing::OwnMounts() && testing::MountEmpty(folder);
}

class Actor {
 public:
  Actor(std::string folder, const Lines& lines) : folder_(std::move(folder)), lines_(lines) {
    void* const memory =
        mmap(nullptr, kJitBytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) jit_ = static_cast<char*>(memory);
  }

  // Forks process `number`. Returns its pid.
  pid_t Fork(size_t number, bool container) {
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    if (container) broken_ = !OwnFileSystem(folder_);
    Serve(lines_.theirs(number));
  }

  Reply Do(const Command& command) {
    if (broken_) return Failed("no container");
    switch (command.what) {
      case Command::What::kOpen: return Open(command.file, command.number);
      case Command::What::kClose: return Close(command.file);
      case Command::What::kCall: return Call(command, false);
      case Command::What::kCallThread: return Call(command, true);
      case Command::What::kJit: return MakeFunction(command.file, command.number, command.by_other);
      case Command::What::kCallJit: return Touch(JitFunctionAt(command.file), false);
      case Command::What::kWrite: return Write(command);
      case Command::What::kDelete: return By(unlink(FileName(folder_, command.file).c_str()), "unlink");
      case Command::What::kRename:
        return By(rename(FileName(folder_, command.file).c_str(), FileName(folder_, command.number).c_str()), "rename");
      case Command::What::kFork: return Forked(Fork(command.number, false));
      case Command::What::kContainer: return Forked(Fork(command.number, true));
      case Command::What::kReap: return By(waitpid(command.pid, nullptr, 0) == command.pid ? 0 : -1, "waitpid");
      case Command::What::kExec: return Execute(command.file);
      case Command::What::kPing: return Done();
      case Command::What::kExit: _exit(0);
    }
    return Failed("an unknown command");
  }

  uint64_t JitAddress(size_t slot) const { return reinterpret_cast<uint64_t>(jit_) + slot * kSlotBytes; }
  bool has_jit() const { return jit_ != nullptr; }
  const std::string& folder() const { return folder_; }

 private:
  using Function = void (*)(volatile char*);
  static constexpr size_t kJitBytes = 4096, kSlotBytes = 64;

  [[noreturn]] void Serve(int fd) {
    Command command;
    while (recv(fd, &command, sizeof(command), 0) == sizeof(command)) {
      const Reply reply = Do(command);
      if (send(fd, &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply)) break;
    }
    _exit(1);
  }

  static Reply Done(pid_t pid = getpid(), uint64_t address = 0) { return {true, pid, address, {}}; }
  static Reply Failed(const char* what, const char* why = "") {
    Reply reply;
    std::snprintf(reply.what, sizeof(reply.what), "%s: %s", what, why);
    return reply;
  }
  static Reply By(int result, const char* what) { return result == 0 ? Done() : Failed(what, std::strerror(errno)); }
  static Reply Forked(pid_t pid) { return pid > 0 ? Done(pid) : Failed("fork", std::strerror(errno)); }

  Reply Open(size_t file, size_t build) {
    handles_[file] = dlopen(FileName(folder_, file).c_str(), RTLD_NOW);
    if (handles_[file] == nullptr) return Failed("dlopen", dlerror());
    const bool has_all = dlsym(handles_[file], BuildOf(build).functions.back().c_str()) != nullptr;
    return has_all ? Done() : Failed("dlopen loads another build", FileName(folder_, file).c_str());
  }

  Reply Close(size_t file) { return By(dlclose(handles_[file]), "dlclose"); }

  Reply Call(const Command& command, bool by_thread) {
    const std::string name = absl::StrFormat("build%d_function%d", command.number / 16, command.number % 16);
    void* const function = dlsym(handles_[command.file], name.c_str());
    return function == nullptr ? Failed("dlsym", name.c_str()) : Touch(reinterpret_cast<Function>(function), by_thread);
  }

  Reply Touch(Function function, bool by_thread) {
    if (next_ == memory_.pages()) return Failed("no page is left");
    char* const page = memory_.data() + 4096 * next_++;
    if (by_thread) {
      std::thread(function, page).join();
    } else {
      function(page);
    }
    return Done(getpid(), reinterpret_cast<uint64_t>(page));
  }

  Function JitFunctionAt(size_t slot) const { return reinterpret_cast<Function>(JitAddress(slot)); }

  // A list of the other user is replaced, not continued.
  Reply MakeFunction(size_t slot, size_t number, bool by_other) {
    constexpr uid_t kOtherUser = 65534;
    const std::string code = testing::made::TouchArgument();
    char* const at = jit_ + slot * kSlotBytes;
    std::memcpy(at, code.data(), code.size());
    __builtin___clear_cache(at, at + code.size());
    const std::string path = absl::StrFormat("/tmp/perf-%d.map", getpid()),
                      name = by_other ? kForeignName : JitName(number),
                      line = absl::StrFormat("%x %x %s\n", JitAddress(slot), kSlotBytes, name);
    struct stat info {};
    const bool exists = stat(path.c_str(), &info) == 0;
    if (exists && (by_other || info.st_uid != geteuid())) unlink(path.c_str());
    const int list = open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0644);
    if (list < 0) return Failed(path.c_str(), std::strerror(errno));
    const bool written = (!by_other || fchown(list, kOtherUser, kOtherUser) == 0) &&
                         write(list, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    close(list);
    return written ? Done() : Failed("the list of functions", std::strerror(errno));
  }

  Reply Write(const Command& command) {
    const std::string path = FileName(folder_, command.file), at = command.in_place ? path : folder_ + "/new";
    const testing::MadeElf made = BuildOf(command.number);
    const std::string bytes = command.file == kProgram ? testing::MakeProgram(made) : testing::MakeLibrary(made);
    const int file = open(at.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0755);
    const bool written = file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    close(file);
    if (!written) return Failed("write", std::strerror(errno));
    return command.in_place ? Done() : By(rename(at.c_str(), path.c_str()), "rename");
  }

  Reply Execute(size_t file) {
    const std::string path = FileName(folder_, file);
    const pid_t child = fork();
    if (child == 0) {
      execl(path.c_str(), path.c_str(), nullptr);
      _exit(127);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return Failed("exec");
    return Done(child);
  }

  const std::string folder_;
  const Lines& lines_;
  testing::FreshPages memory_{512};
  size_t next_ = 0;
  std::array<void*, kLibraries> handles_{};
  char* jit_ = nullptr;
  bool broken_ = false;
};

}  // namespace perfkit::walk
