// libperfkit_itt.so: an ITT collector. Programs load it because of ittnotify's variable:
//
//   INTEL_LIBITTNOTIFY64=/usr/local/lib/libperfkit_itt.so PERFKIT_ITT=tasks.txt program
//
// Each annotated program and library has a copy of ittnotify's static part, which calls __itt_api_init with its list of
// functions. It gets the functions of this library, and the destructor, which exit() runs, writes the table. If the
// program has called perfkit_itt_forward, it gets the functions of the program instead. Both may happen at once on two
// threads: each first says what it has (the copy; the program), and then looks for what the other one has.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "src/base/variables.h"
#include "src/itt/abi.h"
#include "src/itt/calls.h"
#include "src/itt/forward.h"
#include "src/itt/functions.h"
#include "src/itt/library/copies.h"
#include "src/itt/library/own_table.h"
#include "src/itt/library/settings.h"
#include "src/sys/kernel.h"

namespace perfkit::itt {
namespace {

// Set once, and never destroyed. Release and acquire: what it points to is complete.
constinit std::atomic<OwnTable*> g_table{nullptr};
constinit std::atomic<const Forward*> g_forward{nullptr};
constinit Copies g_copies;

void Complain(const absl::Status& status) {
  std::fprintf(stderr, "perfkit: no ITT tasks: %s\n", std::string(status.message()).c_str());
}

// Returns nullptr if the environment is wrong, after a line on stderr, and if it asks for no table.
OwnTable* Create() {
  if (base::YesOrNo(std::getenv(kForwardOnly)).value_or(true)) return nullptr;
  absl::StatusOr<Settings> settings = ReadSettings(std::getenv, sys::kernel().getpid());
  if (!settings.ok()) {
    Complain(settings.status());
    return nullptr;
  }
  base::MakeAbsolute(settings->path);
  auto* const table = new OwnTable(*settings);
  g_table.store(table, std::memory_order_release);
  current_collector.store(&table->collector(), std::memory_order_release);
  return table;
}

const Forward* Program() { return g_forward.load(std::memory_order_seq_cst); }

void HandOver(const Forward& program, Global* global, int groups) {
  if (OwnTable* const table = g_table.load(std::memory_order_acquire)) table->Discard();
  program.connect(global, groups);
}

// Returns true if the library with this copy of ittnotify has not been unloaded.
bool IsLoaded(const Global* global) {
  Dl_info found{};
  return dladdr(global, &found) != 0;
}

[[gnu::destructor]] void End() {
  if (OwnTable* const table = g_table.load(std::memory_order_acquire)) table->Finish();
}

}  // namespace
}  // namespace perfkit::itt

// Called by each copy of the static part, once, on the thread that first uses it.
extern "C" __attribute__((visibility("default"))) void __itt_api_init(perfkit::itt::Global* global, int groups) {
  using namespace perfkit::itt;  // NOLINT(google-build-using-namespace)
  g_copies.Add(global, groups);
  if (const Forward* const program = Program()) return program->connect(global, groups);
  static OwnTable* const table = Create();
  // Without a table, the functions of the program get their null functions.
  const absl::Status status = table != nullptr ? ConnectCalls(global, groups) : Connect(global, 0, {});
  if (!status.ok()) Complain(status);
  if (const Forward* const program = Program()) HandOver(*program, global, groups);
}

// See forward.h.
extern "C" __attribute__((visibility("default"))) uint32_t perfkit_itt_forward(const perfkit::itt::Forward* forward) {
  using namespace perfkit::itt;  // NOLINT(google-build-using-namespace)
  if (forward->version != kForwardVersion || forward->size < sizeof(Forward)) return kForwardVersion;
  g_forward.store(forward, std::memory_order_seq_cst);
  g_copies.ForEach([forward](Global* global, int groups) {
    if (IsLoaded(global)) HandOver(*forward, global, groups);
  });
  return 0;
}
