// Downloads debug files with elfutils' client library, which is loaded at the first use: most programs need none, and
// linking it would bring in an HTTP library. The library keeps downloaded files in its own cache, and Fetch returns a
// path there.
#include "perfkit/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include <string>

#include "absl/strings/str_format.h"
#include "src/elf/notes.h"
#include "src/symbolize/debug_fetcher.h"
#include "src/sys/fd.h"

namespace perfkit::symbolize::dwarf {
namespace {

// elfutils' debuginfod.h: the client is opaque, an id is a pointer and a number of bytes, and the result is a
// descriptor or a negative errno.
struct Client {
  void* (*begin)() = nullptr;
  int (*find_debuginfo)(void* client, const unsigned char* build_id, int bytes, char** path) = nullptr;
  void (*end)(void* client) = nullptr;

  bool complete() const { return begin != nullptr && find_debuginfo != nullptr && end != nullptr; }
};

template <class Function>
void Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
}

// The library stays loaded: its HTTP library has threads and handlers of its own.
Client LoadClient() {
  Client client;
  void* const library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return client;
  Find(library, "debuginfod_begin", client.begin);
  Find(library, "debuginfod_find_debuginfo", client.find_debuginfo);
  Find(library, "debuginfod_end", client.end);
  return client;
}

class Fetcher : public DebugFetcher {
 public:
  ~Fetcher() override {
    if (session_ != nullptr) client_.end(session_);
  }

  absl::StatusOr<std::string> Fetch(base::Bytes build_id) override {
    if (absl::Status status = Begin(); !status.ok()) return status;
    char* path = nullptr;
    const auto* const id = reinterpret_cast<const unsigned char*>(build_id.data());
    const int found = client_.find_debuginfo(session_, id, static_cast<int>(build_id.size()), &path);
    if (found < 0) return Explain(-found, build_id);
    const sys::OwnedFd file(found);  // Closed here: the file is opened by its path.
    std::string result(path);
    free(path);
    return result;
  }

 private:
  absl::Status Begin() {
    const char* const urls = secure_getenv("DEBUGINFOD_URLS");
    if (urls == nullptr && getenv("DEBUGINFOD_URLS") != nullptr) {
      return absl::FailedPreconditionError(
          "debuginfod: DEBUGINFOD_URLS is not read in a program that has other rights than its user (AT_SECURE)");
    }
    if (urls == nullptr || *urls == '\0') {
      return absl::FailedPreconditionError(
          "debuginfod: DEBUGINFOD_URLS names no server (Debian's: https://debuginfod.debian.net)");
    }
    if (session_ != nullptr) return absl::OkStatus();
    client_ = LoadClient();
    if (!client_.complete()) {
      return absl::UnavailableError("debuginfod: libdebuginfod.so.1 cannot be loaded (Debian: libdebuginfod1)");
    }
    session_ = client_.begin();
    if (session_ == nullptr) return absl::ResourceExhaustedError("debuginfod: the client can't be started");
    return absl::OkStatus();
  }

  static absl::Status Explain(int error, base::Bytes build_id) {
    const std::string asked = absl::StrFormat("debuginfod: asking %s for build-id %s", secure_getenv("DEBUGINFOD_URLS"),
                                              elf::HexText(build_id));
    if (error == ENOENT) return absl::NotFoundError(asked + ": none of them has it");
    return absl::ErrnoToStatus(error, asked);
  }

  Client client_;
  void* session_ = nullptr;
};

}  // namespace
}  // namespace perfkit::symbolize::dwarf

namespace perfkit {

std::unique_ptr<symbolize::DebugFetcher> Debuginfod() { return std::make_unique<symbolize::dwarf::Fetcher>(); }

}  // namespace perfkit
