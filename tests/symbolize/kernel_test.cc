// Kernel names, compared with /proc/kallsyms, and with its contents for users who may not see addresses.
#include <catch2/catch.hpp>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/proc/kallsyms.h"
#include "src/symbolize/kernel_names.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/symbolize/support.h"

namespace perfkit {
namespace {

using testing::TempFolder;

Symbol At(Symbolizer& symbolizer, uint64_t pc) { return symbolizer.Resolve(0, pc, CpuMode::kKernel); }

TEST_CASE("every code symbol of this kernel is found at its address", "[kernel_names]") {
  const absl::StatusOr<std::string> text = proc::ReadKallsyms();
  if (!text.ok()) SKIP_TEST(std::string(text.status().message()));
  std::map<uint64_t, std::string> names;  // all of an address, each in bars
  base::ForEachPiece(*text, '\n', [&](std::string_view line) {
    const std::optional<proc::KernelSymbol> symbol = proc::ParseKallsymsLine(line);
    REQUIRE(symbol);
    if (symbol->is_code() && symbol->address != 0) names[symbol->address] += "|" + std::string(symbol->name) + "|";
  });
  Symbolizer symbolizer;
  if (names.empty()) {
    CHECK_FALSE(At(symbolizer, ~uint64_t{0} / 2).named());
    REQUIRE(symbolizer.Modules().size() == 1);
    CHECK(symbolizer.Modules()[0].status.message().find("kptr_restrict") != std::string::npos);
    SKIP_TEST("this user may not see the kernel's addresses");
  }
  CHECK(names.size() > 10'000);
  size_t wrong = 0;
  for (const auto& [address, all] : names) {
    const Symbol found = At(symbolizer, address);
    wrong += !found.kernel || found.offset != 0 || all.find("|" + std::string(found.function) + "|") == all.npos;
  }
  CHECK(wrong == 0);
}

constexpr char kKallsyms[] =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T startup\n"
    "ffffffff81000040 t helper\n"
    "ffffffff81000050 D some_data\n"
    "ffffffff81000080 W weak_one\n"
    "ffffffff81000080 t __local_one\n"
    "not a line\n"
    "ffffffffc0000000 t nft_do_chain\t[nf_tables]\n"
    "ffffffffc0000100 T nft_register\t[nf_tables]\n"
    "ffffffffc0010000 t bpf_prog_6deef7357e7b4530\t[bpf]\n";

TEST_CASE("kernel and module functions are named, with their modules in brackets", "[kernel_names]") {
  const TempFolder folder;
  folder.Write("/kallsyms", kKallsyms);
  Symbolizer symbolizer({.proc = folder.path()});
  CHECK(At(symbolizer, 0xffffffff81000010).function == "startup");
  CHECK(At(symbolizer, 0xffffffff81000010).module == "[kernel]");
  CHECK(At(symbolizer, 0xffffffff81000010).offset == 0x10);
  CHECK(At(symbolizer, 0xffffffff81000055).function == "helper");  // data are no code
  CHECK(At(symbolizer, 0xffffffff81000080).function == "__local_one");
  CHECK(At(symbolizer, 0xffffffffc0000050).function == "nft_do_chain");
  CHECK(At(symbolizer, 0xffffffffc0000050).module == "[nf_tables]");
  CHECK(At(symbolizer, 0xffffffffc0010008).module == "[bpf]");
  // Not far after the last function of a module or of the kernel: what is there is unknown.
  CHECK_FALSE(At(symbolizer, 0xffffffff81003000).named());
  CHECK_FALSE(At(symbolizer, 0xffffffffc0009000).named());
  CHECK_FALSE(At(symbolizer, 0xffffffffc0019000).named());
  CHECK(At(symbolizer, 0xffffffffc0019000).module == "[kernel]");
  CHECK(At(symbolizer, 0xffffffffc0019000).offset == 0xffffffffc0019000);
}

TEST_CASE("a module ends after its highest symbol, wherever that is listed", "[kernel_names]") {
  const TempFolder folder;
  folder.Write("/kallsyms",
               "ffffffff81000000 T startup\n"
               "ffffffffc0004000 t second\t[m]\n"
               "ffffffffc0000ff0 t big\t[m]\n"
               "ffffffffc0000000 t first\t[m]\n"
               "ffffffffc0010000 t other\t[n]\n");
  Symbolizer symbolizer({.proc = folder.path()});
  for (const uint64_t pc : {0xffffffffc0000ff0, 0xffffffffc0002800, 0xffffffffc0003ff0}) {
    CHECK(At(symbolizer, pc).function == "big");
    CHECK(At(symbolizer, pc).module == "[m]");
  }
  CHECK(At(symbolizer, 0xffffffffc0004010).function == "second");
  CHECK_FALSE(At(symbolizer, 0xffffffffc0009000).named());
}

TEST_CASE("zeros are said to be the setting's that makes them, a file that is not there is said to be that",
          "[kernel_names]") {
  // kernel.kptr_restrict, and what would show the addresses (kernel/ksyms_common.c, kallsyms_show_value).
  constexpr std::pair<const char*, const char*> kRemedies[] = {
      {"0\n", "CAP_SYSLOG (as root), or sysctl kernel.perf_event_paranoid=1."},
      {"1\n", "CAP_SYSLOG (as root), or sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1."},
      {"2\n", "sysctl kernel.kptr_restrict=1; then run with CAP_SYSLOG (as root)."},
  };
  const TempFolder folder;
  folder.Write("/kallsyms", "0000000000000000 T _stext\n0000000000000000 t helper\n");
  folder.Write("/sys/kernel/perf_event_paranoid", "2\n");
  for (const auto& [restricted, remedy] : kRemedies) {
    folder.Write("/sys/kernel/kptr_restrict", restricted);
    symbolize::KernelNames hidden;
    CHECK(absl::IsFailedPrecondition(hidden.Load(folder.path())));
    const std::string text(hidden.status().message());
    INFO(text);
    CHECK(text.ends_with(remedy));
    CHECK(text.find(absl::StrFormat("kptr_restrict is %c, kernel.perf_event_paranoid is 2", restricted[0])) !=
          std::string::npos);
  }
  symbolize::KernelNames missing;
  CHECK(absl::IsNotFound(missing.Load(folder.path() + "/nowhere")));
}

TEST_CASE("names of the kernel are read only when a kernel pc wants one", "[kernel_names]") {
  Symbolizer symbolizer({.proc = "/no/such/folder"});
  symbolizer.Resolve(1, 0x1000);
  CHECK(symbolizer.Modules().empty());
  symbolizer.Locate(1, 0x1000, CpuMode::kKernel);
  CHECK(symbolizer.Modules().empty());
  At(symbolizer, 0x1000);
  CHECK(symbolizer.Modules().size() == 1);
}

}  // namespace
}  // namespace perfkit
