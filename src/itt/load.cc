// Finds the library, asks it for its version, and checks that ittnotify will load no other one.
#include "src/itt/load.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_format.h"

namespace perfkit::itt {
namespace {

constexpr char kVariable[] = "INTEL_LIBITTNOTIFY64", kLibrary[] = "libperfkit_itt.so";

// A library that is unloaded again unless it is kept. What was loaded before stays in any case.
class Library {
 public:
  Library(const char* path, int flags) : handle_(dlopen(path, flags)) {
    const char* const error = handle_ == nullptr ? dlerror() : nullptr;
    if (error != nullptr) error_ = error;  // With RTLD_NOLOAD there is none.
  }
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  void* handle() const { return handle_; }
  const std::string& error() const { return error_; }
  void* Find(const char* name) const { return dlsym(handle_, name); }
  void Keep() { handle_ = nullptr; }

  // Returns its absolute path, by which it is found after a change of the working directory.
  std::string Path() const {
    link_map* map = nullptr;
    if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return "";
    char* const absolute = ::realpath(map->l_name, nullptr);
    std::string path = absolute != nullptr ? absolute : map->l_name;
    std::free(absolute);
    return path;
  }

 private:
  void* handle_;
  std::string error_;
};

const char* SetCollector() {
  const char* const named = std::getenv(kVariable);
  return named != nullptr && *named != '\0' ? named : nullptr;
}

// `library`: as the user knows it.
absl::Status Refusal(const std::string& library, const std::string& why, const char* remedy) {
  return absl::Status(absl::StatusCode::kFailedPrecondition,
                      absl::StrFormat("ITT tasks by %s: %s. Remedy: %s.", library, why, remedy));
}

absl::Status CheckNoOther(const Library& library, const std::string& name) {
  const char* const named = SetCollector();
  if (named == nullptr) return absl::OkStatus();
  const Library other(named, RTLD_LAZY | RTLD_NOLOAD);
  if (other.handle() == library.handle()) return absl::OkStatus();
  return Refusal(name, absl::StrFormat("%s names another collector, %s, which ittnotify loads", kVariable, named),
                 "unset that variable, or name this library there");
}

absl::Status Hand(const Forward& forward, const Library& library, const std::string& name) {
  auto* const function = reinterpret_cast<ForwardFunction*>(library.Find(kForwardName));
  if (function == nullptr) {
    return Refusal(name, absl::StrFormat("it has no function %s: it is not libperfkit_itt.so, or an older one",
                                         kForwardName),
                   "name the libperfkit_itt.so of this perfkit, or unset INTEL_LIBITTNOTIFY64");
  }
  const uint32_t version = function(&forward);
  if (version == 0) return absl::OkStatus();
  return Refusal(name,
                 absl::StrFormat("it understands version %d of the interface, and this program's perfkit has version %d",
                                 version, forward.version),
                 "name the libperfkit_itt.so of this perfkit");
}

}  // namespace

absl::Status ForwardTo(const Forward& forward, const char* path) {
  const char* const named = SetCollector();
  const std::string asked = path != nullptr ? path : named != nullptr ? named : kLibrary;
  const std::string name = path == nullptr && named != nullptr ? absl::StrFormat("%s (of %s)", asked, kVariable) : asked;
  Library library(asked.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle() == nullptr) {
    return absl::Status(
        absl::StatusCode::kNotFound,
        absl::StrFormat("ITT tasks by %s: it cannot be loaded: %s. Remedy: install libperfkit_itt.so where the dynamic "
                        "linker finds it, pass its path, or set INTEL_LIBITTNOTIFY64 to it.",
                        name, library.error()));
  }
  if (absl::Status status = CheckNoOther(library, name); !status.ok()) return status;
  if (absl::Status status = Hand(forward, library, name); !status.ok()) return status;
  if (named == nullptr) {
    setenv(kVariable, library.Path().c_str(), 1);
    setenv(kForwardOnly, "1", 1);
  }
  library.Keep();
  return absl::OkStatus();
}

}  // namespace perfkit::itt
