// Rules of many processes that have mapped different code at the same address.
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "perfkit/unwinder.h"
#include "src/unwind/dwarf/sampled/rule_cache.h"
#include "tests/unwind/dwarf/sampled/hand_sample.h"

namespace perfkit {
namespace {

using testing::HandSample;
using testing::RecordBuilder;

constexpr uint64_t kBase = 0x10'0000'0000, kPage = 4096, kSp = 0x7000'0000'0000;
constexpr size_t kRoom = 600;

// This program's code in its file.
struct CodeInFile {
  uint64_t offset = 0, length = 0;

  CodeInFile() {
    const auto main_program = [](dl_phdr_info* info, size_t, void* code) {
      for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& header = info->dlpi_phdr[i];
        if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
        *static_cast<CodeInFile*>(code) = {header.p_offset / kPage * kPage, header.p_filesz / kPage * kPage};
      }
      return 1;
    };
    dl_iterate_phdr(main_program, this);
  }
  CodeInFile(uint64_t offset, uint64_t length) : offset(offset), length(length) {}
};

// Processes of which each has the code of this program at kBase, from some page of it on.
class Processes {
 public:
  Processes() {
    struct stat file {};
    stat("/proc/self/exe", &file);
    std::array<char, 4096> name{};
    if (readlink("/proc/self/exe", name.data(), name.size() - 1) < 0) FAIL("no /proc/self/exe");
    file_ = name.data();
    inode_ = file.st_ino, major_ = major(file.st_dev), minor_ = minor(file.st_dev);
  }

  void Add(uint32_t pid, uint64_t first_page) {
    RecordBuilder record;
    record.U32(pid).U32(pid).U64(kBase).U64(code_.length - first_page * kPage).U64(code_.offset + first_page * kPage);
    record.U32(major_).U32(minor_).U64(inode_).U64(0).U32(5).U32(2).Text(file_);
    const std::string bytes = record.Finish(RecordType::kMmap2, 2);
    REQUIRE(unwinder_.Add(testing::AsRecord(bytes), SampleLayout(AttrBits{})));
  }
  void End(uint32_t pid) {
    RecordBuilder record;
    const std::string bytes = record.U32(pid).U32(1).U32(pid).U32(1).U64(0).Finish(RecordType::kExit, 2);
    unwinder_.Add(testing::AsRecord(bytes), SampleLayout(AttrBits{}));
  }
  Unwinder& unwinder() { return unwinder_; }
  const CodeInFile& code() const { return code_; }

 private:
  Unwinder unwinder_;
  CodeInFile code_;
  std::string file_;
  uint64_t inode_ = 0;
  uint32_t major_ = 0, minor_ = 0;
};

// A stack of `bytes` on which every word is a return address after `pc`.
std::string StackOf(uint64_t pc, size_t bytes) {
  std::string stack;
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = pc + 1;
    stack.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  return stack;
}

size_t FramesOf(Unwinder& unwinder, uint32_t pid, uint64_t pc, size_t bytes) {
  const HandSample sample(pid, testing::RegistersOf(pc, kSp), StackOf(pc, bytes));
  std::vector<StackFrame> frames(kRoom);
  return unwinder.Unwind(sample.sample(), frames).frames;
}

// A cached rule is found by its process's number. The numbers are used up in the middle of the batch, where each other
// walk is one of kFirst.
TEST_CASE("a batch finds the rules of each process, however many there are", "[unwinder]") {
  Processes processes;
  Unwinder& unwinder = processes.unwinder();
  constexpr uint32_t kFirst = 1, kSecond = 2;
  constexpr size_t kBytes = 8192;
  processes.Add(kFirst, 0);
  processes.Add(kSecond, 1);
  uint64_t pc = kBase;
  uint32_t first_frames = 0, second_frames = 0;
  while (first_frames < 50 || second_frames < 50 || first_frames == second_frames) {
    pc += 16;
    REQUIRE(pc < kBase + processes.code().length - kPage);
    first_frames = FramesOf(unwinder, kFirst, pc, kBytes);
    second_frames = FramesOf(unwinder, kSecond, pc, kBytes);
  }
  // A process takes another one's number from a table of 64, in the order in which they were added: none takes that of
  // kFirst.
  uint32_t last = kSecond;
  const auto next = [&] {
    do {
      processes.Add(++last, 1);
    } while (last % 64 == kFirst % 64);
    return last;
  };
  for (uint32_t i = 0; i < unwind::RuleCache::kMaxGenerations - 100; ++i) FramesOf(unwinder, next(), pc, 8);
  std::deque<HandSample> held;
  std::vector<Sample> samples;
  for (int i = 0; i < 200; ++i) {
    for (const uint32_t pid : {kFirst, next()}) {
      samples.push_back(held.emplace_back(pid, testing::RegistersOf(pc, kSp), StackOf(pc, kBytes)).sample());
    }
  }
  std::vector<StackFrame> frames(samples.size() * kRoom);
  std::vector<UnwoundStack> stacks(samples.size());
  const auto some = std::span(samples).first(8);  // So that the walker expects deep stacks, which take turns.
  for (int i = 0; i < 10; ++i) unwinder.Unwind(some, std::span(frames).first(8 * kRoom), stacks);
  unwinder.Unwind(samples, frames, stacks);
  for (size_t i = 0; i < samples.size(); ++i) {
    INFO("sample " << i);
    CHECK(stacks[i].frames == (i % 2 == 0 ? first_frames : second_frames));
  }
}

// Between two samples of one process, with none of another one between them.
TEST_CASE("a walk finds the rules of the mappings of its time", "[unwinder]") {
  SECTION("by records") {
    Processes processes;
    constexpr size_t kBytes = 8192;
    processes.Add(1, 0);
    processes.Add(2, 1);
    uint64_t pc = kBase;
    size_t first = 0, second = 0;
    while (first == second) {
      pc += 16;
      REQUIRE(pc < kBase + processes.code().length - kPage);
      first = FramesOf(processes.unwinder(), 1, pc, kBytes);
      second = FramesOf(processes.unwinder(), 2, pc, kBytes);
    }
    for (int i = 0; i < 3; ++i) {
      processes.Add(3, 0);
      CHECK(FramesOf(processes.unwinder(), 3, pc, kBytes) == first);
      processes.Add(3, 1);
      CHECK(FramesOf(processes.unwinder(), 3, pc, kBytes) == second);
    }
  }
  SECTION("until the process was forgotten") {
    Processes processes;
    constexpr uint32_t kMany = 3000;
    for (uint32_t pid = 1; pid <= kMany; ++pid) processes.Add(pid, 0);
    CHECK(FramesOf(processes.unwinder(), 1, kBase, 64) > 0);
    processes.End(1);
    CHECK(FramesOf(processes.unwinder(), 1, kBase, 64) > 0);
    for (uint32_t pid = 2; pid <= kMany; ++pid) processes.End(pid);
    const HandSample sample(1, testing::RegistersOf(kBase, kSp), StackOf(kBase, 64));
    std::array<StackFrame, 8> frames;
    CHECK(processes.unwinder().Unwind(sample.sample(), frames).end == StackEnd::kNoMapping);
  }
  SECTION("by what the process has mapped") {
    const CodeInFile code;
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    REQUIRE(file >= 0);
    const size_t length = code.length;
    void* const room = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(room != MAP_FAILED);
    const auto pid = static_cast<uint32_t>(getpid());
    Unwinder unwinder;
    const auto end_of_walk = [&] {
      REQUIRE(unwinder.AddProcess(getpid()).ok());
      const HandSample sample(pid, testing::RegistersOf(reinterpret_cast<uint64_t>(room) + kPage, kSp),
                              std::string(64, '\0'));
      std::array<StackFrame, 8> frames;
      return unwinder.Unwind(sample.sample(), frames).end;
    };
    CHECK(end_of_walk() == StackEnd::kNoMapping);
    REQUIRE(mmap(room, length, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, static_cast<off_t>(code.offset)) ==
            room);
    CHECK(end_of_walk() != StackEnd::kNoMapping);
    munmap(room, length);
    CHECK(end_of_walk() == StackEnd::kNoMapping);
    close(file);
  }
}

}  // namespace
}  // namespace perfkit
