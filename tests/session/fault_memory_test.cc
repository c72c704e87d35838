// Page faults of a session, and the memory that they were in.
#include "src/session/fault_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <thread>

#include "perfkit/frame_counter.h"
#include "perfkit/slow_frames.h"
#include "tests/session/support.h"
#include "tests/support/temp_folder.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

constexpr size_t kPageBytes = 4096;

// Fresh memory, each page of which is a fault.
class FreshMemory {
 public:
  explicit FreshMemory(size_t pages, int file = -1) : size_(pages * kPageBytes) {
    const int flags = MAP_PRIVATE | (file < 0 ? MAP_ANONYMOUS : 0);
    void* const memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, flags, file, 0);
    REQUIRE(memory != MAP_FAILED);
    memory_ = static_cast<volatile char*>(memory);
    madvise(memory, size_, MADV_NOHUGEPAGE);
  }
  ~FreshMemory() { munmap(const_cast<char*>(memory_), size_); }
  FreshMemory(const FreshMemory&) = delete;
  FreshMemory& operator=(const FreshMemory&) = delete;

  void Touch() {
    for (size_t i = 0; i < size_; i += kPageBytes) memory_[i] = 1;
  }
  uint64_t from() const { return reinterpret_cast<uintptr_t>(memory_); }
  uint64_t to() const { return from() + size_; }
  bool IsIn(const ProfileMemory& range) const { return range.from <= from() && to() <= range.to; }

 private:
  volatile char* memory_ = nullptr;
  size_t size_;
};

// Finds memory by its address, in mappings that are read again at most every millisecond, and for 5 % of the time.
struct Finder {
  std::string NameOf(uint64_t address, uint64_t stack_pointer) {
    const uint32_t index = memory.IndexOf({address, stack_pointer}, sys::ClockNs(CLOCK_MONOTONIC), builder);
    if (index == ProfileSample::kNoMemory) return "none";
    const ProfileMemory& found = builder.profile().memory[index];
    CHECK((found.from <= address && address < found.to));
    return builder.profile().strings[found.name];
  }
  // Waits until the mappings were read again.
  std::string NameOfNew(uint64_t address, uint64_t stack_pointer) {
    for (int i = 0; i < 2'000; ++i) {
      const std::string name = NameOf(address, stack_pointer);
      if (name != "none") return name;
      std::this_thread::sleep_for(5ms);
    }
    return "none";
  }

  ProfileBuilder builder;
  FaultMemory memory;
};

template <class Object>
uint64_t AddressOf(const Object& object) {
  return reinterpret_cast<uintptr_t>(&object);
}

TEST_CASE("each kind of memory has a name, and what is not mapped has none", "[fault_memory][law]") {
  Finder finder;
  int local = 0;
  static const char code = 1;
  CHECK(finder.NameOf(AddressOf(local), 0) == "[stack]");
  CHECK(finder.NameOf(AddressOf(code), 0) == std::filesystem::canonical("/proc/self/exe").string());
  CHECK(finder.NameOf(16, 0) == "none");
  CHECK(finder.NameOf(~uint64_t{0} - 16, 0) == "none");
  std::thread([&] {
    int deep = 0;
    CHECK(finder.NameOfNew(AddressOf(deep), AddressOf(deep) - 64) == ProfileMemory::kThreadStack);
  }).join();
  const FreshMemory later(4);
  CHECK(finder.NameOfNew(later.from(), AddressOf(local)).empty());
  const size_t entries = finder.builder.profile().memory.size();
  CHECK(finder.NameOf(later.from(), AddressOf(local)).empty());
  CHECK(finder.builder.profile().memory.size() <= entries + 1);  // the mapping may have grown
}

TEST_CASE("entries that were dropped are made again", "[fault_memory][law]") {
  Finder finder;
  int local = 0;
  CHECK(finder.NameOf(AddressOf(local), 0) == "[stack]");
  finder.builder.profile().memory.clear();
  finder.memory.ForgetIndexes();
  CHECK(finder.NameOf(AddressOf(local), 0) == "[stack]");
}

TEST_CASE("a frame's page faults are told by memory and zone", "[fault_memory][law]") {
  constexpr size_t kPages = 1024;
  const testing::TempFolder folder;
  const std::string path = folder.path() + "/level.bin";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE((file >= 0 && ftruncate(file, kPages * kPageBytes) == 0));
  FreshMemory block(kPages), mapped(kPages / 2, file);
  close(file);
  FrameCounter frames({.events = {"page-faults"}});
  absl::StatusOr<Session> session = Session::Start({.frames = &frames, .page_faults = true});
  REQUIRE(session.status() == absl::OkStatus());
  frames.Mark();
  uint64_t storm_ns = 0;
  for (int i = 0; i < 20; ++i) {
    if (i == 10) {
      storm_ns = sys::ClockNs(CLOCK_MONOTONIC);
      {
        PERFKIT_ZONE(frames, "load");
        block.Touch();
      }
      PERFKIT_ZONE(frames, "decode");
      mapped.Touch();
    }
    frames.Mark();
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  REQUIRE(profile->Check() == absl::OkStatus());
  INFO(FormatSlowFrames(*profile));
  uint64_t in_block = 0, in_file = 0;
  for (const SlowFrame& frame : FindSlowFrames(*profile, {.frames = 20})) {
    const ProfileZone& zone = profile->zones[frame.zone];
    if (storm_ns < zone.from_ns || zone.to_ns <= storm_ns) continue;
    for (const FaultedMemory& faults : frame.faults) {
      if (faults.memory == ProfileSample::kNoMemory) continue;
      const ProfileMemory& memory = profile->memory[faults.memory];
      if (block.IsIn(memory) && faults.zone == "load") in_block += faults.faults;
      if (profile->strings[memory.name] == path && faults.zone == "decode") in_file += faults.faults;
    }
  }
  // One sample stands for 16 faults; a thread has up to 15 left over on each CPU that it ran on, and the first of a
  // zone may stand for 15 of before. Faults around the pages of a file are mapped with it, at most 16 pages at once.
  const uint64_t lost = 16 * (std::thread::hardware_concurrency() + 1);
  CHECK((in_block + lost >= kPages && in_block <= kPages + lost));
  CHECK((in_file + lost >= kPages / 2 && in_file <= kPages / 2 + lost));
}

}  // namespace
}  // namespace perfkit::session
