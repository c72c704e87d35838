// Builds a table from /proc/kallsyms. It has no sizes: each function ends where the next one begins.
#include "src/symbolize/kernel_names.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/proc/kallsyms.h"
#include "src/sys/files.h"

namespace perfkit::symbolize {
namespace {

constexpr uint64_t kPage = 4096;

// Letters as nm's: lower case means local, except for weak symbols.
Binding BindingOf(char type) {
  if (type == 'w' || type == 'W') return Binding::kWeak;
  return type == 'T' ? Binding::kGlobal : Binding::kLocal;
}

int64_t Setting(const std::string& proc, const char* name) {
  const absl::StatusOr<std::string> text = sys::ReadFile(absl::StrFormat("%s/sys/kernel/%s", proc, name), 64);
  return text.ok() ? base::ParseNumber<int64_t>(base::Trim(*text)).value_or(-1) : -1;
}

// Linux, kernel/ksyms_common.c, kallsyms_show_value: with kptr_restrict 2 no user sees addresses, with 1 users with
// CAP_SYSLOG do, with 0 all users do as long as kernel.perf_event_paranoid is at most 1.
absl::Status Hidden(const std::string& proc) {
  const int64_t restricted = Setting(proc, "kptr_restrict"), paranoid = Setting(proc, "perf_event_paranoid");
  const std::string found =
      absl::StrFormat("kernel.kptr_restrict is %d, kernel.perf_event_paranoid is %d", restricted, paranoid);
  const char* const remedy = restricted == 0 ? "run with CAP_SYSLOG (as root), or sysctl kernel.perf_event_paranoid=1"
                             : restricted == 1
                                 ? "run with CAP_SYSLOG (as root), or sysctl kernel.kptr_restrict=0 "
                                   "kernel.perf_event_paranoid=1"
                                 : "as root: sysctl kernel.kptr_restrict=1; then run with CAP_SYSLOG (as root)";
  return absl::Status(
      absl::StatusCode::kFailedPrecondition,
      absl::StrFormat(
          "the kernel hides its names from this user: /proc/kallsyms has zeros instead of addresses (%s). Remedy: %s.",
          found, remedy));
}

}  // namespace

const absl::Status& KernelNames::Load(const std::string& proc) {
  if (loaded_) return status_;
  loaded_ = true;
  const absl::StatusOr<std::string> text = proc::ReadKallsyms(proc);
  status_ = text.ok() ? TakeSymbols(*text, proc) : text.status();
  return status_;
}

// The last function of the kernel, and of each module, has no known end, and the code after it belongs to something
// else. So it ends with the page after the one that it begins in, nearly as in perf (tools/perf/util/symbol.c,
// symbols__fixup_end).
absl::Status KernelNames::TakeSymbols(std::string_view text, const std::string& proc) {
  SymbolTableBuilder builder(text.size());
  std::string_view module;
  uint64_t last = 0;
  size_t code = 0;
  const auto end_module = [&] { builder.AddBound((last / kPage + 2) * kPage); };
  base::ForEachPiece(text, '\n', [&](std::string_view line) {
    const std::optional<proc::KernelSymbol> symbol = proc::ParseKallsymsLine(line);
    if (!symbol || !symbol->is_code()) return;
    ++code;
    if (symbol->address == 0) return;
    if (symbol->module != module) {
      end_module();
      last = 0;
    }
    module = symbol->module;
    last = std::max(last, symbol->address);  // A module's symbols are in the order of its file.
    // The name with what follows it on the line, the module in brackets: Find cuts the two apart.
    const auto size = static_cast<size_t>(line.data() + line.size() - symbol->name.data());
    builder.Add({symbol->name.data(), size}, symbol->address, 0, BindingOf(symbol->type));
  });
  end_module();
  table_ = std::move(builder).Build();
  return code > 0 && table_.size() == 0 ? Hidden(proc) : absl::OkStatus();
}

std::optional<KernelNames::Found> KernelNames::Find(uint64_t pc) const {
  const std::optional<SymbolTable::Found> found = table_.Find(pc);
  if (!found) return std::nullopt;
  const auto [function, module] = base::Cut(found->name, '\t');
  return Found{base::Trim(function), base::Trim(module), found->begin};
}

}  // namespace perfkit::symbolize
