// Checks the library's code for forbidden calls and features: system calls outside of src/sys, exceptions, RTTI,
// streams.
#include <regex>

#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

void Search(const SourceFile& file, std::string_view text, const std::regex& what, const std::string& message,
            Findings& findings) {
  for (std::regex_iterator<std::string_view::const_iterator> match(text.begin(), text.end(), what), end; match != end;
       ++match) {
    const size_t offset = static_cast<size_t>(match->position(1));
    findings.push_back({file.path, LineAt(text, offset), message + ": " + (*match)[1].str()});
  }
}

// Calls by name, with a leading :: or without, but not as a member of something (kernel().read, other::read).
const std::regex kCall(
    R"((?:^|[^\w>.:])((?:::)?(?:open|openat|read|pread|write|pwrite|close|mmap|mremap|munmap|madvise|mprotect|ioctl|)"
    R"(syscall|prctl|fcntl|poll|ppoll|epoll_wait|nanosleep|clock_gettime|getrusage|getrlimit|setrlimit|sysconf|)"
    R"(sigaction|signal|kill|raise|tgkill|waitpid|wait4|pipe2?|dup[23]?|execvp?e?|fork|vfork|stat|fstat|lstat|access|)"
    R"(readlink|opendir|readdir|fopen|getpid|gettid|getuid|geteuid|sched_yield|sched_getcpu|sched_getaffinity|)"
    R"(process_vm_readv|usleep|sleep|pthread_create|pthread_kill|pthread_atfork)\s*\())");

// The headers that declare them, except those of plain C and C++.
const std::regex kHeader(
    R"(<((?:unistd|fcntl|dirent|signal|poll|sched|pthread|sys/(?:mman|ioctl|syscall|wait|epoll|prctl|stat|uio))\.h)>)");

const std::regex kThrow(R"(\b(throw|try|catch|dynamic_cast|typeid)\b)");
const std::regex kStream(R"(<((?:i|o|io|f|s|str)stream)>)");

}  // namespace

Findings CheckSystemCalls(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    const bool library = IsIn(file, "src") || IsIn(file, "include");
    if (!library || IsIn(file, "src/sys") || !IsCpp(file)) continue;
    const std::string code = CodeOnly(file.text);
    std::smatch match;
    for (std::sregex_iterator call(code.begin(), code.end(), kCall), end; call != end; ++call) {
      const size_t offset = static_cast<size_t>(call->position(1));
      // A declaration or definition of the project's own function by that name has a type before it.
      const std::string before = code.substr(code.rfind('\n', offset) + 1, offset - code.rfind('\n', offset) - 1);
      static const std::regex kDeclares(R"(^\s*(?!return\b|else\b|co_)[A-Za-z_][\w:<>,&* ]*[\w>&*]\s+[&*]*$)");
      const bool global = (*call)[1].str().starts_with("::");
      if (!global && std::regex_match(before, kDeclares)) continue;
      findings.push_back({file.path, LineAt(code, offset), "only src/sys calls Linux: " + (*call)[1].str() + ")"});
    }
    for (const Include& include : Includes(file)) {
      if (std::regex_match(include.what, match, kHeader)) {
        findings.push_back({file.path, include.line, "only src/sys includes " + include.what});
      }
    }
  }
  return findings;
}

Findings CheckLanguage(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!IsCpp(file) || !(IsIn(file, "src") || IsIn(file, "include"))) continue;
    // Headers that pass a user's exceptions on, or work with a framework that uses streams, are compiled by that user.
    const bool adapter = IsIn(file, "src/testing") || IsIn(file, "src/benchmark") ||
                         file.path == "include/perfkit/measure.h" || file.path == "include/perfkit/testing.h" ||
                         file.path == "include/perfkit/session_callback.h";
    const std::string code = CodeOnly(file.text);
    if (!adapter) Search(file, code, kThrow, "the core needs neither exceptions nor RTTI", findings);
    if (file.path == "include/perfkit/testing.h") continue;
    Search(file, file.text, kStream, "streams have static initialisers; use absl::StrFormat", findings);
  }
  return findings;
}

}  // namespace perfkit::tidy
