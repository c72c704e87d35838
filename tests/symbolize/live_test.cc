// Names of this thread's own samples, while libraries come and go: real records, real addresses.
#include <dlfcn.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>

#include "perfkit/sampler.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/symbolize/support.h"

namespace perfkit {
namespace {

// A function of that name that computes for some milliseconds.
std::string BusyText(const std::string& name) {
  return "int " + name + "(volatile int* x) { for (int i = 0; i < 3000000; ++i) *x += i; return *x; }\n";
}

// Samples this thread, and counts by place.
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

  // By names that are looked up only now, when nothing of it is mapped any more.
  std::map<std::string, size_t> NamesAtTheEnd() {
    std::map<std::string, size_t> names;
    for (const auto& [place, count] : places_) names[std::string(symbolizer_.Name(place).function)] += count;
    return names;
  }
  size_t met(const std::string& name) { return met_[name]; }

 private:
  void Drain() {
    sampler_.Drain([&](const SamplerRecord& record) {
      symbolizer_.Add(record, sampler_.layout());
      Dispatch(record, sampler_.layout(), [&](const Sample& sample) {
        const auto pid = sample.task()->pid;
        ++places_[symbolizer_.Locate(pid, *sample.ip(), sample.cpu_mode())];
        ++met_[std::string(symbolizer_.Resolve(pid, *sample.ip(), sample.cpu_mode()).function)];
      });
    });
  }

  Sampler sampler_;
  Symbolizer symbolizer_;
  std::map<CodePlace, size_t> places_;
  std::map<std::string, size_t> met_;
};

TEST_CASE("samples of libraries that come and go keep their names", "[symbolizer]") {
  const testing::TempFolder folder;
  std::string paths[2];
  const std::string names[2] = {"busy_first", "busy_second"};
  for (int i = 0; i < 2; ++i) {
    paths[i] = folder.path() + "/" + names[i] + ".so";
    if (!testing::Compile("c++ -O1 -shared -fPIC", "#ifdef __cplusplus\nextern \"C\"\n#endif\n" + BusyText(names[i]),
                          paths[i])) {
      SKIP_TEST("there is no compiler here");
    }
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

}  // namespace
}  // namespace perfkit
