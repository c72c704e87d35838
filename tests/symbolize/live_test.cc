// Names of this thread's own samples, while libraries are loaded and unloaded.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "perfkit/sampler.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"
#include "tests/symbolize/support.h"

namespace perfkit {
namespace {

// A function of that name that computes for some milliseconds.
std::string BusyText(const std::string& name) {
  return "int " + name + "(volatile int* x) { for (int i = 0; i < 3000000; ++i) *x += i; return *x; }\n";
}

// Samples this thread, and counts by location.
class Counting {
 public:
  explicit Counting(Sampler sampler) : sampler_(std::move(sampler)) {}

  // Loads the library, lets its function work until it was met ten times, and unloads it. Where it was.
  uint64_t Work(const std::string& path, const std::string& name) {
    void* const library = dlopen(path.c_str(), RTLD_NOW);
    REQUIRE(library != nullptr);
    const auto busy = reinterpret_cast<int (*)(volatile int*)>(dlsym(library, name.c_str()));
    REQUIRE(busy != nullptr);
    volatile int x = 0;
    for (int i = 0; i < 1000 && met_[name] < 10; ++i) {
      busy(&x);
      Drain();
    }
    CHECK(met_[name] >= 10);
    dlclose(library);
    return reinterpret_cast<uint64_t>(busy);
  }

  // Names are looked up only now, when the libraries are no longer mapped.
  std::map<std::string, size_t> NamesAtTheEnd() {
    std::map<std::string, size_t> names;
    for (const auto& [location, count] : locations_) names[std::string(symbolizer_.Name(location).function)] += count;
    return names;
  }
  size_t met(const std::string& name) { return met_[name]; }

 private:
  void Drain() {
    sampler_.Drain([&](const SamplerRecord& record) {
      symbolizer_.Add(record, sampler_.layout());
      Dispatch(record, sampler_.layout(), [&](const Sample& sample) {
        const auto pid = sample.task()->pid;
        ++locations_[symbolizer_.Locate(pid, *sample.ip(), sample.cpu_mode())];
        ++met_[std::string(symbolizer_.Resolve(pid, *sample.ip(), sample.cpu_mode()).function)];
      });
    });
  }

  Sampler sampler_;
  Symbolizer symbolizer_;
  std::map<CodeLocation, size_t> locations_;
  std::map<std::string, size_t> met_;
};

// Samples this thread, and looks up names at the end only.
class LateNames {
 public:
  explicit LateNames(Sampler sampler) : sampler_(std::move(sampler)) {}

  // Loads the library, lets its function work until a sample was taken in it, and unloads it. Where the sample was.
  CodeLocation Work(const std::string& path, const char* name) {
    void* const library = dlopen(path.c_str(), RTLD_NOW);
    REQUIRE(library != nullptr);
    const auto busy = reinterpret_cast<int (*)(volatile int*)>(dlsym(library, name));
    REQUIRE(busy != nullptr);
    volatile int x = 0;
    met_ = {};
    for (int i = 0; i < 100'000 && !met_.known(); ++i) {
      busy(&x);
      Drain(reinterpret_cast<uint64_t>(busy));
    }
    REQUIRE(met_.known());
    dlclose(library);
    return met_;
  }
  std::string_view NameOf(CodeLocation location) { return symbolizer_.Name(location).function; }

  // Modules that give no names because they might be another file's.
  size_t refused() const {
    const std::vector<SymbolizedModule> modules = symbolizer_.Modules();
    return std::count_if(modules.begin(), modules.end(), [](const SymbolizedModule& module) {
      return absl::IsFailedPrecondition(module.status) && module.name.ends_with("/plugin.so");
    });
  }

 private:
  void Drain(uint64_t function) {
    sampler_.Drain([&](const SamplerRecord& record) {
      symbolizer_.Add(record, sampler_.layout());
      Dispatch(record, sampler_.layout(), [&](const Sample& sample) {
        if (*sample.ip() < function || *sample.ip() >= function + 64) return;
        const CodeLocation location = symbolizer_.Locate(sample.task()->pid, *sample.ip(), sample.cpu_mode());
        if (location.known()) met_ = location;
      });
    });
  }

  Sampler sampler_;
  Symbolizer symbolizer_;
  CodeLocation met_;
};

bool CompileBusy(const std::string& name, const std::string& path, const std::string& flags = "") {
  const std::string text = "#ifdef __cplusplus\nextern \"C\"\n#endif\n" + BusyText(name);
  return testing::Compile("c++ -O1 -shared -fPIC " + flags, text, path);
}

// The library is rebuilt in place: the same path, the same inode, another function where the first one was.
void Overwrite(const std::string& path, const std::string& with) {
  std::filesystem::copy_file(with, path, std::filesystem::copy_options::overwrite_existing);
  testing::Sleep(12'000'000);  // Longer than a tick of the clock of files.
}

TEST_CASE("samples of libraries that come and go keep their names", "[symbolizer]") {
  const testing::TempFolder folder;
  std::string paths[2];
  const std::string names[2] = {"busy_first", "busy_second"};
  for (int i = 0; i < 2; ++i) {
    paths[i] = folder.path() + "/" + names[i] + ".so";
    if (!CompileBusy(names[i], paths[i])) SKIP_TEST("there is no compiler here");
  }
  auto sampler = Sampler::Open({.events = {{.event = "cpu-clock:u", .rate = Frequency{2000}}}, .side_band = true});
  if (!sampler.ok()) SKIP_TEST(std::string(sampler.status().message()));
  REQUIRE(sampler->Start().ok());
  Counting counting(*std::move(sampler));
  const uint64_t first = counting.Work(paths[0], names[0]);
  const uint64_t second = counting.Work(paths[1], names[1]);
  if (first != second) WARN("the second library was loaded elsewhere");
  std::map<std::string, size_t> at_the_end = counting.NamesAtTheEnd();
  CHECK(at_the_end[names[0]] == counting.met(names[0]));
  CHECK(at_the_end[names[1]] == counting.met(names[1]));
}

TEST_CASE("a library that is rebuilt in place does not give its names to the one before", "[symbolizer][law]") {
  const testing::TempFolder folder;
  const std::string path = folder.path() + "/plugin.so", second = folder.path() + "/second.so";
  const bool has_build_id = GENERATE(true, false);
  const std::string flags = has_build_id ? "-Wl,--build-id=sha1" : "-Wl,--build-id=none";
  if (!CompileBusy("busy_first", path, flags) || !CompileBusy("busy_again", second, flags)) {
    SKIP_TEST("there is no compiler here");
  }
  auto sampler = Sampler::Open({.events = {{.event = "cpu-clock:u", .rate = Frequency{2000}}}, .side_band = true});
  if (!sampler.ok()) SKIP_TEST(std::string(sampler.status().message()));
  REQUIRE(sampler->Start().ok());
  LateNames late(*std::move(sampler));
  const CodeLocation first = late.Work(path, "busy_first");
  Overwrite(path, second);
  const CodeLocation again = late.Work(path, "busy_again");
  const std::string_view first_name = late.NameOf(first), again_name = late.NameOf(again);
  CHECK(first_name != "busy_again");
  CHECK(again_name == "busy_again");
  CHECK(again.module != first.module);
  CHECK(late.refused() == (first_name.empty() ? 1 : 0));
}

}  // namespace
}  // namespace perfkit
