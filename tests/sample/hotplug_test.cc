// CPUs that go offline and come online while all threads are sampled: no sample is missed, and the accounting balances.
#include <sched.h>

#include <atomic>
#include <fstream>
#include <set>
#include <thread>

#include "src/base/cpu_list.h"
#include "tests/sample/support.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

std::vector<int> CpusThatAre(const char* state) {
  std::ifstream file(std::string("/sys/devices/system/cpu/") + state);
  std::string text;
  std::getline(file, text);
  return base::ParseCpuList(text).value_or(std::vector<int>());
}

// The last CPU. Tests take it offline and online; it is online at the end.
class LastCpu {
 public:
  LastCpu() : cpu_(CpusThatAre("present").back()) {}
  ~LastCpu() { Bring(true); }
  bool Bring(bool online) const {
    std::ofstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu_) + "/online");
    file << (online ? "1" : "0") << std::flush;
    return file.good();
  }
  // Touches `pages` new pages there, in a thread of its own.
  bool TouchThere(testing::FreshPages& memory) const {
    std::atomic<bool> bound{false};
    std::thread([&] {
      cpu_set_t there;
      CPU_ZERO(&there);
      CPU_SET(cpu_, &there);
      bound = sched_setaffinity(0, sizeof(there), &there) == 0;
      memory.Touch(0, memory.pages());
    }).join();
    return bound;
  }
  int number() const { return cpu_; }

 private:
  int cpu_;
};

// Returns how many of `memory`'s pages samples report, taken on `cpu`.
size_t PagesSeenOn(int cpu, const testing::FreshPages& memory, Sampler& sampler) {
  std::set<uint64_t> pages;
  sampler.Drain([&](const SamplerRecord& record) {
    Dispatch(record, sampler.layout(), [&](const Sample& sample) {
      if (static_cast<int>(sample.cpu().value_or(0)) == cpu) pages.insert(*sample.address() >> 12);
    });
  });
  size_t seen = 0;
  for (size_t i = 0; i < memory.pages(); ++i) {
    seen += pages.count((reinterpret_cast<uint64_t>(memory.data()) >> 12) + i);
  }
  return seen;
}

SamplerOptions FaultsWithCpu() {
  SamplerOptions options = testing::FaultOptions(256 << 10);
  options.fields |= kSampleCpu;
  return options;
}

TEST_CASE("every CPU that the machine has gets a ring, online or not", "[hotplug]") {
  const auto sampler = Sampler::Open(FaultsWithCpu(), Target::AllThreads());
  REQUIRE(sampler.ok());
  CHECK(sampler->rings() == CpusThatAre("present").size());
}

TEST_CASE("a CPU that was offline at first is sampled, and one that goes offline takes nothing along",
          "[hotplug][.heavy][law]") {
  const LastCpu last;
  if (CpusThatAre("online").size() < 2 || !last.Bring(false)) SKIP_TEST("no CPU can be taken offline here");
  REQUIRE(CpusThatAre("online").back() != last.number());
  testing::FreshPages first(50), second(50);
  auto sampler = Sampler::Open(FaultsWithCpu(), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  for (testing::FreshPages* memory : {&first, &second}) {
    REQUIRE(last.Bring(true));
    REQUIRE(last.TouchThere(*memory));
    REQUIRE(last.Bring(false));
    testing::Sleep(1'000'000);  // older than what a drain leaves for the next one
    CHECK(PagesSeenOn(last.number(), *memory, *sampler) == 50);
  }
  REQUIRE(sampler->Stop().ok());
  sampler->Drain([](const SamplerRecord&) {});
  testing::CheckAccountingBalances(sampler->stats());
}

}  // namespace
}  // namespace perfkit
