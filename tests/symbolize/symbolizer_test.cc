// Names in processes that change: this one, while it loads and unloads libraries, and records of others.
#include "perfkit/symbolizer.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "src/sys/files.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/symbolize/support.h"

namespace perfkit {
namespace {

using testing::Compile;
using testing::Feed;
using testing::MmapBytes;
using testing::RecordBuilder;
using testing::TempFolder;

const auto kSelf = static_cast<uint32_t>(getpid());

[[gnu::noinline]] int NamedFunctionOfTheTest(int x) { return x + 1; }

template <class F>
uint64_t AddressOf(F* function) {
  return reinterpret_cast<uint64_t>(function);
}

TEST_CASE("a function of this program is named, demangled on request", "[symbolizer]") {
  volatile int keep = NamedFunctionOfTheTest(1);
  (void)keep;
  Symbolizer readable, raw({.demangle = false});
  REQUIRE(readable.AddProcess(getpid()).ok());
  REQUIRE(raw.AddProcess(getpid()).ok());
  const uint64_t pc = AddressOf(NamedFunctionOfTheTest) + 1;
  const Symbol symbol = readable.Resolve(kSelf, pc);
  CHECK(symbol.function == "perfkit::(anonymous namespace)::NamedFunctionOfTheTest(int)");
  CHECK(symbol.offset == 1);
  CHECK_FALSE(symbol.kernel);
  CHECK(symbol.module.find("_test") != symbol.module.npos);
  CHECK(raw.Resolve(kSelf, pc).function == "_ZN7perfkit12_GLOBAL__N_122NamedFunctionOfTheTestEi");
  // The same each time, by memo and without.
  CHECK(readable.Resolve(kSelf, pc).function == symbol.function);
  CHECK(readable.Name(readable.Locate(kSelf, pc)).function == symbol.function);
}

TEST_CASE("a module's build-id is the one that readelf prints", "[symbolizer]") {
  const testing::Run readelf = testing::RunCommand("LC_ALL=C readelf -nW /proc/" + std::to_string(getpid()) + "/exe");
  if (readelf.exit_code != 0) SKIP_TEST("readelf is not installed");
  Symbolizer mapped, told;
  REQUIRE(mapped.AddProcess(getpid()).ok());
  const CodeLocation place = mapped.Locate(kSelf, AddressOf(NamedFunctionOfTheTest));
  const std::string build_id = mapped.BuildId(place);
  if (build_id.empty()) SKIP_TEST("this program was linked without a build-id");
  CHECK(readelf.output.find("Build ID: " + build_id + "\n") != std::string::npos);
  CHECK(mapped.BuildId({}).empty());
  CHECK(mapped.BuildId(mapped.Locate(kSelf, 0xffffffff81000000, CpuMode::kKernel)).empty());
  // A kernel that does not say it: the file does, once it was read.
  constexpr uint64_t kBias = 0x10000000;
  testing::MapCode(told, std::filesystem::read_symlink("/proc/self/exe"), kBias);
  Dl_info info;
  link_map* loaded = nullptr;
  void* const code = reinterpret_cast<void*>(AddressOf(NamedFunctionOfTheTest));
  REQUIRE(dladdr1(code, &info, reinterpret_cast<void**>(&loaded), RTLD_DL_LINKMAP) != 0);
  const CodeLocation same = told.Locate(1, kBias + AddressOf(NamedFunctionOfTheTest) - loaded->l_addr);
  REQUIRE(same.known());
  CHECK(told.BuildId(same).empty());
  (void)told.Name(same);
  CHECK(told.BuildId(same) == build_id);
}

TEST_CASE("functions of libraries are named by what the loader knows them as", "[symbolizer]") {
  Symbolizer symbolizer;
  REQUIRE(symbolizer.AddProcess(getpid()).ok());
  for (const char* name : {"qsort", "fopen", "getenv", "dlsym"}) {
    void* const address = dlsym(RTLD_DEFAULT, name);
    Dl_info info;
    if (address == nullptr || dladdr(address, &info) == 0) continue;
    INFO(name << ", which the loader finds in " << info.dli_fname);
    const Symbol symbol = symbolizer.Resolve(kSelf, reinterpret_cast<uint64_t>(address));
    CHECK(symbol.offset == 0);
    CHECK(symbol.function.find(name) != symbol.function.npos);
  }
}

TEST_CASE("the vDSO's functions are named, though no file holds them", "[symbolizer]") {
  const uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
  if (vdso == 0) SKIP_TEST("this process has no vDSO");
  void* const handle = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void* const clock = handle == nullptr ? nullptr : dlsym(handle, "__vdso_clock_gettime");
  if (clock == nullptr) SKIP_TEST("the loader knows no __vdso_clock_gettime");
  Symbolizer symbolizer;
  REQUIRE(symbolizer.AddProcess(getpid()).ok());
  const Symbol symbol = symbolizer.Resolve(kSelf, reinterpret_cast<uint64_t>(clock));
  CHECK(symbol.module == "[vdso]");
  CHECK(symbol.function.find("clock_gettime") != symbol.function.npos);
  CHECK(symbol.offset == 0);
}

TEST_CASE("code that no file holds is said to be that", "[symbolizer]") {
  void* const code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) SKIP_TEST("this process may map no code");
  Symbolizer symbolizer;
  REQUIRE(symbolizer.AddProcess(getpid()).ok());
  const uint64_t pc = reinterpret_cast<uint64_t>(code) + 100;
  const Symbol symbol = symbolizer.Resolve(kSelf, pc);
  CHECK(symbol.module == "//anon");
  CHECK_FALSE(symbol.named());
  CHECK(symbol.offset == pc);
  munmap(code, 4096);
}

TEST_CASE("what is not mapped is unknown, in every mode", "[symbolizer]") {
  Symbolizer symbolizer;
  CHECK(symbolizer.Resolve(1, 0x1000).module == "[unknown]");
  CHECK(symbolizer.Resolve(1, 0x1000, CpuMode::kHypervisor).module == "[hypervisor]");
  CHECK(symbolizer.Resolve(1, 0x1000, CpuMode::kGuestKernel).module == "[guest.kernel]");
  CHECK(symbolizer.Resolve(1, 0x1000, CpuMode::kGuestUser).module == "[guest.user]");
  CHECK(symbolizer.Resolve(1, 0x1000, CpuMode::kUnknown).module == "[unknown]");
  CHECK(symbolizer.Resolve(1, 0x1000).offset == 0x1000);
  CHECK(symbolizer.Name({.module = 999, .offset = 5}).module == "[unknown]");
  CHECK(symbolizer.Modules().empty());
  CHECK(absl::IsNotFound(symbolizer.AddProcess(0x7ffffff0)));
}

constexpr char kOne[] = "int one(int x) { return x * 3; }\n";
constexpr char kTwo[] = "int two(int x) { return x * 5; }\n";

TEST_CASE("another module at the same address has names of its own, and the first keeps its", "[symbolizer]") {
  const TempFolder folder;
  const std::string one = folder.path() + "/one.so", two = folder.path() + "/two.so";
  if (!Compile("c++ -O1 -shared -fPIC", kOne, one) || !Compile("c++ -O1 -shared -fPIC", kTwo, two)) {
    SKIP_TEST("there is no compiler here");
  }
  Symbolizer symbolizer;
  const auto load = [&](const std::string& path, const char* name) {
    void* const handle = dlopen(path.c_str(), RTLD_NOW);
    REQUIRE(handle != nullptr);
    const auto pc = reinterpret_cast<uint64_t>(dlsym(handle, name));
    REQUIRE(symbolizer.AddProcess(getpid()).ok());
    CHECK(symbolizer.Resolve(kSelf, pc).function == name);
    const CodeLocation location = symbolizer.Locate(kSelf, pc);
    dlclose(handle);
    return std::pair(location, pc);
  };
  const auto [first, first_pc] = load(one, "one");
  const auto [second, second_pc] = load(two, "two");
  if (first_pc != second_pc) INFO("they were loaded at different addresses");
  CHECK(symbolizer.Name(first).function == "one");
  CHECK(symbolizer.Name(second).function == "two");
  CHECK(symbolizer.Name(second).module == two);
}

TEST_CASE("mappings replace each other in records, also in the memo", "[symbolizer]") {
  const TempFolder folder;
  const std::string one = folder.path() + "/one.so", two = folder.path() + "/two.so";
  if (!Compile("c++ -O1 -shared -fPIC", kOne, one) || !Compile("c++ -O1 -shared -fPIC", kTwo, two)) {
    SKIP_TEST("there is no compiler here");
  }
  constexpr uint64_t kBias = 0x7000'0000;
  const uint64_t at = std::strtoull(testing::RunCommand("nm -D " + one + " | grep ' one'").output.c_str(), nullptr, 16);
  REQUIRE(at > 0);
  Symbolizer symbolizer;
  for (int round = 0; round < 3; ++round) {
    testing::MapCode(symbolizer, one, kBias);
    CHECK(symbolizer.Resolve(1, kBias + at).function == "one");
    testing::MapCode(symbolizer, two, kBias);
    CHECK(symbolizer.Resolve(1, kBias + at).function == "two");
  }
  // Data over code: nothing is executed there.
  Feed(symbolizer, MmapBytes({.address = kBias, .length = 1 << 20, .name = "//anon", .misc = 2 | kMiscMmapData}));
  CHECK(symbolizer.Resolve(1, kBias + at).module == "[unknown]");
}

std::string ForkBytes(uint32_t pid, uint32_t parent) {
  return RecordBuilder().U32(pid).U32(parent).U32(pid).U32(parent).U64(0).Finish(RecordType::kFork);
}
std::string ExitBytes(uint32_t pid) {
  return RecordBuilder().U32(pid).U32(pid).U32(pid).U32(pid).U64(0).Finish(RecordType::kExit);
}

TEST_CASE("a new process has what its parent had, until it calls exec", "[symbolizer]") {
  Symbolizer symbolizer;
  Feed(symbolizer, MmapBytes({.pid = 10, .address = 0x1000, .length = 0x1000, .name = "/no/such/file"}));
  CHECK(Feed(symbolizer, ForkBytes(11, 10)));
  CHECK_FALSE(Feed(symbolizer, ForkBytes(10, 10)));  // a thread
  CHECK(symbolizer.Resolve(11, 0x1800).module == "/no/such/file");
  Feed(symbolizer, MmapBytes({.pid = 10, .address = 0x1000, .length = 0x1000, .name = "/another"}));
  CHECK(symbolizer.Resolve(11, 0x1800).module == "/no/such/file");
  CHECK(Feed(symbolizer, RecordBuilder().U32(11).U32(11).Text("name").Finish(RecordType::kComm, kMiscCommExec)));
  CHECK(symbolizer.Resolve(11, 0x1800).module == "[unknown]");
  CHECK_FALSE(Feed(symbolizer, RecordBuilder().U32(10).U32(10).Text("name").Finish(RecordType::kComm)));
  CHECK(symbolizer.Resolve(10, 0x1800).module == "/another");
}

TEST_CASE("processes that ended are forgotten, the last ones last", "[symbolizer]") {
  Symbolizer symbolizer;
  for (uint32_t pid = 1; pid <= 3000; ++pid) {
    Feed(symbolizer, MmapBytes({.pid = pid, .address = 0x1000, .length = 0x1000, .name = "/no/such/file"}));
    Feed(symbolizer, ExitBytes(pid));
    CHECK(symbolizer.Resolve(pid, 0x1800).module == "/no/such/file");
  }
  CHECK(symbolizer.Resolve(1, 0x1800).module == "[unknown]");
  CHECK(symbolizer.Resolve(2999, 0x1800).module == "/no/such/file");
}

TEST_CASE("records that lie are no harm", "[symbolizer]") {
  Symbolizer symbolizer;
  CHECK(Feed(symbolizer, MmapBytes({.address = UINT64_MAX - 10, .length = 100, .name = "/x"})));
  CHECK(symbolizer.Resolve(1, UINT64_MAX - 5).module == "[unknown]");
  CHECK_FALSE(Feed(symbolizer, MmapBytes({.name = "/x"}).substr(0, 40)));
  Feed(symbolizer, MmapBytes({.address = 0, .length = UINT64_MAX, .offset = UINT64_MAX - 1, .name = "/x"}));
  CHECK(symbolizer.Resolve(1, 0x5000).module == "/x");
}

// What Modules() says of the only module that was asked for.
absl::Status OnlyStatus(const Symbolizer& symbolizer) {
  const std::vector<SymbolizedModule> modules = symbolizer.Modules();
  REQUIRE(modules.size() == 1);
  return modules[0].status;
}

TEST_CASE("files that are gone, replaced or no ELF files say so", "[symbolizer]") {
  const TempFolder folder;
  folder.Write("/text", "this is no program");
  struct Case {
    std::string name;
    uint64_t inode;
    absl::StatusCode code;
  };
  for (const Case& c : {Case{"/no/such/file", 5, absl::StatusCode::kNotFound},
                        Case{folder.path() + "/text", 5, absl::StatusCode::kFailedPrecondition},
                        Case{folder.path() + "/text", 0, absl::StatusCode::kInvalidArgument}}) {
    Symbolizer symbolizer;
    Feed(symbolizer, MmapBytes({.address = 0x1000, .length = 0x1000, .name = c.name, .inode = c.inode}));
    CHECK_FALSE(symbolizer.Resolve(1, 0x1234).named());
    CHECK(symbolizer.Resolve(1, 0x1234).offset == 0x234);
    INFO(OnlyStatus(symbolizer));
    CHECK(OnlyStatus(symbolizer).code() == c.code);
    CHECK(OnlyStatus(symbolizer).message().find(c.name) != std::string::npos);
  }
}

TEST_CASE("a file of another build than the one that ran gives no names", "[symbolizer]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/one.so";
  if (!Compile("c++ -O1 -shared -fPIC -Wl,--build-id=0x0123456789", kOne, path)) SKIP_TEST("there is no compiler here");
  const std::string ids[] = {std::string("\x01\x23\x45\x67\x89", 5), std::string("\x01\x23\x45\x67\x00", 5)};
  for (const std::string& id : ids) {
    RecordBuilder record;  // linux/perf_event.h, PERF_RECORD_MISC_MMAP_BUILD_ID
    record.U32(1).U32(1).U64(0).U64(0x10000).U64(0).Add(static_cast<uint8_t>(id.size())).Add(uint8_t{0}).U16(0);
    record.Raw(id).Raw(std::string(20 - id.size(), '\0')).U32(5).U32(2).Text(path);
    Symbolizer symbolizer;
    REQUIRE(Feed(symbolizer, record.Finish(RecordType::kMmap2, 2 | kMiscMmapBuildId)));
    symbolizer.Resolve(1, 0x1000);
    CHECK(OnlyStatus(symbolizer).ok() == (id == ids[0]));
  }
}

TEST_CASE("a symbolizer moves with all that it knows", "[symbolizer]") {
  Symbolizer first;
  REQUIRE(first.AddProcess(getpid()).ok());
  const Symbol before = first.Resolve(kSelf, AddressOf(NamedFunctionOfTheTest));
  Symbolizer second = std::move(first);
  CHECK(before.function == second.Resolve(kSelf, AddressOf(NamedFunctionOfTheTest)).function);
}

}  // namespace
}  // namespace perfkit
