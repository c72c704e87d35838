// What processes have mapped, by hand-made records; names and edges are the Symbolizer's tests, in tests/symbolize.
#include "src/proc/processes.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "absl/strings/str_format.h"
#include "src/sys/map_file.h"
#include "tests/support/record_builder.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"

namespace perfkit::proc {
namespace {

using testing::RecordBuilder;

constexpr const char* kNone[] = {"[unknown]"};

bool Feed(Processes& processes, const std::string& bytes) {
  static const SampleLayout layout{AttrBits{}};
  LinearReader reader(std::as_bytes(std::span(bytes)));
  RawRecord record;
  return reader.Next(record) && processes.Add(record, layout);
}

std::string Map(uint32_t pid, uint64_t address, uint64_t length, uint64_t offset, const char* name, uint64_t inode,
                uint32_t device = 8) {
  RecordBuilder record;
  record.U32(pid).U32(pid).U64(address).U64(length).U64(offset);
  record.U32(device).U32(1).U64(inode).U64(0).U32(5).U32(2).Text(name);
  return record.Finish(RecordType::kMmap2, 2);
}

std::string Task(RecordType type, uint32_t pid, uint32_t parent) {
  return RecordBuilder().U32(pid).U32(parent).U32(pid).U32(parent).U64(1).Finish(type, 2);
}

TEST_CASE("every change of what a process has mapped has an epoch of its own", "[processes]") {
  Processes processes("/proc", kNone);
  CHECK(processes.Find(7) == nullptr);
  CHECK(Feed(processes, Map(7, 0x1000, 0x1000, 0, "/a", 5)));
  const uint64_t first = processes.Find(7)->epoch;
  CHECK(Feed(processes, Map(8, 0x1000, 0x1000, 0, "/a", 5)));
  CHECK(processes.Find(7)->epoch == first);
  CHECK(processes.Find(8)->epoch != first);
  CHECK(Feed(processes, Map(7, 0x5000, 0x1000, 0, "/b", 6)));
  CHECK(processes.Find(7)->epoch != first);
  CHECK(processes.Find(7)->epoch != processes.Find(8)->epoch);
}

TEST_CASE("a file that two processes have mapped is one module; another file of that name is another", "[processes]") {
  Processes processes("/proc", kNone);
  Feed(processes, Map(7, 0x1000, 0x1000, 0x3000, "/a", 5));
  Feed(processes, Map(8, 0x9000, 0x1000, 0x3000, "/a", 5));
  Feed(processes, Map(8, 0x20000, 0x1000, 0, "/a", 6));
  const MappedRange* const one = processes.Find(7)->space.Find(0x1010);
  const MappedRange* const two = processes.Find(8)->space.Find(0x9010);
  REQUIRE((one != nullptr && two != nullptr));
  CHECK(one->module == two->module);
  CHECK(one->offset == 0x3000);
  CHECK(processes.Find(8)->space.Find(0x20000)->module != one->module);
  CHECK(processes.modules()[one->module].path == "/a");
  CHECK(processes.modules().size() == 3);
  Feed(processes, Map(9, 0x1000, 0x1000, 0x3000, "/a", 5, 9));  // of another container, from another device
  CHECK(processes.Find(9)->space.Find(0x1000)->module != one->module);
}

TEST_CASE("memory of no file is each process's own", "[processes]") {
  Processes processes("/proc", kNone);
  Feed(processes, Map(7, 0x1000, 0x1000, 0, "//anon", 0));
  Feed(processes, Map(8, 0x1000, 0x1000, 0, "//anon", 0));
  CHECK(processes.Find(7)->space.Find(0x1000)->module != processes.Find(8)->space.Find(0x1000)->module);
}

TEST_CASE("memory of no file that a child has inherited is its own, and so is that of its children", "[processes]") {
  Processes processes("/proc", kNone);
  Feed(processes, Map(7, 0x1000, 0x1000, 0, "//anon", 0));
  Feed(processes, Map(7, 0x9000, 0x1000, 0, "/a", 5));
  const uint32_t parents = processes.Find(7)->space.Find(0x1000)->module;
  Feed(processes, Task(RecordType::kFork, 8, 7));
  Feed(processes, Task(RecordType::kFork, 9, 8));
  std::set<uint32_t> modules = {parents};
  for (const uint32_t pid : {8u, 9u}) {
    const Processes::Process* const process = processes.Find(pid);
    REQUIRE(process->space.Find(0x1000)->module == parents);
    const uint32_t module = processes.ModuleIn(pid, *process, parents);
    CHECK(modules.insert(module).second);
    CHECK(processes.ModuleIn(pid, *process, parents) == module);
    CHECK(processes.modules()[module].pid == static_cast<pid_t>(pid));
    REQUIRE(processes.modules()[module].parent != nullptr);
    CHECK(processes.modules()[module].parent->pid == static_cast<pid_t>(pid - 1));
    const uint32_t file = process->space.Find(0x9000)->module;
    CHECK(processes.ModuleIn(pid, *process, file) == file);
  }
}

// A record of a file, with its time.
bool FeedAt(Processes& processes, uint32_t pid, const std::string& path, uint64_t inode) {
  static const SampleLayout layout{AttrBits{.sample_type = kSampleTime, .sample_id_all = true}};
  RecordBuilder record;
  record.U32(pid).U32(pid).U64(0x1000).U64(0x1000).U64(0).U32(0).U32(0).U64(inode).U64(0).U32(5).U32(2).Text(path);
  const std::string bytes = record.U64(testing::NowNs()).Finish(RecordType::kMmap2, 2);
  LinearReader reader(std::as_bytes(std::span(bytes)));
  RawRecord raw;
  return reader.Next(raw) && processes.Add(raw, layout);
}

TEST_CASE("a file without build-id is another module after each change of it", "[processes][law]") {
  constexpr uint32_t kNobody = 0x7ffffff;
  const testing::TempFolder folder;
  const std::string path = folder.path() + "/plugin.so";
  folder.Write("/plugin.so", "first");
  const uint64_t inode = sys::StampOf(path)->inode;
  testing::Sleep(12'000'000);  // Longer than a tick of the clock of files.
  Processes processes("/proc", kNone);
  const auto map = [&](uint32_t pid) {
    REQUIRE(FeedAt(processes, pid, path, inode));
    return processes.Find(pid)->space.Find(0x1000)->module;
  };
  const uint32_t first = map(kNobody);
  CHECK(map(kNobody) == first);
  CHECK(map(kNobody - 1) == first);
  folder.Write("/plugin.so", "second");  // The same inode.
  testing::Sleep(12'000'000);
  const uint32_t second = map(kNobody);
  CHECK(second != first);
  CHECK(map(kNobody) == second);
  CHECK_FALSE(processes.modules()[second].uncertain);
  std::filesystem::remove(path);
  const uint32_t unknown = map(kNobody);
  CHECK(processes.modules()[unknown].uncertain);
  CHECK(map(kNobody) == unknown);
}

TEST_CASE("a child has what its parent had, and exec takes it all away", "[processes]") {
  Processes processes("/proc", kNone);
  Feed(processes, Map(7, 0x1000, 0x1000, 0, "/a", 5));
  CHECK(Feed(processes, Task(RecordType::kFork, 8, 7)));
  CHECK_FALSE(Feed(processes, Task(RecordType::kFork, 8, 8)));  // a thread
  REQUIRE(processes.Find(8)->space.Find(0x1000) != nullptr);
  const std::string exec = RecordBuilder().U32(8).U32(8).Text("new").Finish(RecordType::kComm, kMiscCommExec);
  CHECK(Feed(processes, exec));
  CHECK(processes.Find(8)->space.Find(0x1000) == nullptr);
  CHECK(processes.Find(7)->space.Find(0x1000) != nullptr);
}

TEST_CASE(
    "a process is known for a while after its end; one with living threads, or a new one of its number, for longer",
    "[processes]") {
  Processes processes("/proc", kNone);
  for (const uint32_t pid : {7u, 8u, 9u}) Feed(processes, Map(pid, 0x1000, 0x1000, 0, "/a", 5));
  Feed(processes, Task(RecordType::kExit, 7, 1));
  CHECK(processes.Find(7) != nullptr);  // samples of it may follow, from another ring
  Feed(processes, RecordBuilder().U32(8).U32(1).U32(80).U32(8).U64(1).Finish(RecordType::kExit, 2));  // a thread of 8
  Feed(processes, Task(RecordType::kExit, 9, 1));
  Feed(processes, Task(RecordType::kFork, 9, 8));
  constexpr uint32_t kMany = 3000;
  for (uint32_t pid = 100; pid < 100 + kMany; ++pid) {
    Feed(processes, Map(pid, 0x1000, 0x1000, 0, "/a", 5));
    Feed(processes, Task(RecordType::kExit, pid, 1));
  }
  CHECK(processes.Find(7) == nullptr);
  CHECK(processes.Find(8) != nullptr);
  CHECK(processes.Find(9) != nullptr);
}

TEST_CASE("this process has its own code, and no other process has its number", "[processes]") {
  Processes processes("/proc", kNone);
  REQUIRE(processes.AddProcess(getpid()).ok());
  const auto here = reinterpret_cast<uint64_t>(&Feed);
  const MappedRange* const range = processes.Find(static_cast<uint32_t>(getpid()))->space.Find(here);
  REQUIRE(range != nullptr);
  const ModuleId& self = processes.modules()[range->module];
  CHECK(self.is_file());
  CHECK(self.build_id == ReadBuildId({.path = self.path, .pid = getpid()}, "/proc"));
  CHECK(absl::IsNotFound(processes.AddProcess(0x7ffffff)));
}

// Returns the module of this test's code in a process; "" if there is none.
std::string ModuleHere(Processes& processes, uint32_t pid) {
  const Processes::Process* const process = processes.Find(pid);
  const MappedRange* const range =
      process == nullptr ? nullptr : process->space.Find(reinterpret_cast<uint64_t>(&Feed));
  return range == nullptr ? "" : processes.modules()[range->module].path;
}

TEST_CASE("a parent without records is read, or its child", "[processes]") {
  constexpr uint32_t kNobody = 0x7ffffff;
  const auto here = static_cast<uint32_t>(getpid());
  Processes by_parent("/proc", kNone);
  CHECK(Feed(by_parent, Task(RecordType::kFork, kNobody, here)));
  CHECK(ModuleHere(by_parent, kNobody) != "");
  CHECK(ModuleHere(by_parent, here) == ModuleHere(by_parent, kNobody));
  Processes by_child("/proc", kNone);
  Feed(by_child, Map(here, 0x1000, 0x1000, 0, "/of-an-earlier-process", 5));
  CHECK(Feed(by_child, Task(RecordType::kFork, here, kNobody)));
  CHECK(ModuleHere(by_child, here) == ModuleHere(by_parent, here));
  CHECK(by_child.Find(here)->space.Find(0x1000) == nullptr);
  Processes known("/proc", kNone);
  Feed(known, Map(here, 0x1000, 0x1000, 0, "/by-record", 5));
  CHECK(Feed(known, Task(RecordType::kFork, kNobody, here)));
  CHECK(ModuleHere(known, kNobody) == "");
  CHECK(known.Find(kNobody)->space.Find(0x1000) != nullptr);
  Processes ended("/proc", kNone);
  CHECK(Feed(ended, Task(RecordType::kFork, kNobody, kNobody - 1)));
  REQUIRE(ended.Find(kNobody) != nullptr);
  CHECK(ended.Find(kNobody)->space.Find(0x1000) == nullptr);
}

// A folder with two processes, whose mappings are read after the records that speak of them.
class LateFolder {
 public:
  static constexpr uint32_t kParent = 70, kChild = 71;

  void Put(uint32_t pid, const char* module, const char* image) const {
    const std::string folder = absl::StrFormat("/%d", pid);
    folder_.Write(folder + "/maps", absl::StrFormat("5000-6000 r-xp 00000000 08:01 99 %s\n", module));
    std::string stat = absl::StrFormat("%d (x) S 1", pid);
    for (int field = 5; field <= 52; ++field) stat += absl::StrFormat(" %s", field == 26 ? image : "7");
    folder_.Write(folder + "/stat", stat + "\n");
  }
  const std::string& path() const { return folder_.path(); }

 private:
  testing::TempFolder folder_;
};

bool FeedTask(Processes& processes, RecordType type, uint64_t time_ns, uint32_t pid = 1, uint32_t parent = 1) {
  static const SampleLayout layout{AttrBits{.sample_type = kSampleTime, .sample_id_all = true}};
  RecordBuilder record;
  record.U32(pid).U32(type == RecordType::kFork ? parent : pid);
  if (type == RecordType::kComm) {
    record.Text("x");
  } else {
    record.U32(pid).U32(parent).U64(time_ns);
  }
  const std::string bytes = record.U64(time_ns).Finish(type, kMiscCommExec);
  LinearReader reader(std::as_bytes(std::span(bytes)));
  RawRecord raw;
  return reader.Next(raw) && processes.Add(raw, layout);
}

std::string ModuleAt(Processes& processes, uint32_t pid) {
  const Processes::Process* const process = processes.Find(pid);
  const MappedRange* const range = process == nullptr ? nullptr : process->space.Find(0x5000);
  return range == nullptr ? "" : processes.modules()[range->module].path;
}

TEST_CASE("mappings that are read after an exec hold from then on only", "[processes][law]") {
  constexpr uint32_t kParent = LateFolder::kParent, kChild = LateFolder::kChild;
  const LateFolder folder;
  folder.Put(kParent, "/parent-now", "1");
  folder.Put(kChild, "/child-now", "2");
  const uint64_t forked_ns = testing::NowNs();
  Processes processes(folder.path(), kNone);
  FeedTask(processes, RecordType::kFork, forked_ns, kChild, kParent);
  CHECK(ModuleAt(processes, kParent) == "");
  CHECK(ModuleAt(processes, kChild) == "");
  FeedTask(processes, RecordType::kComm, forked_ns + 1, kChild);
  CHECK(ModuleAt(processes, kChild) == "");
  CHECK(FeedTask(processes, RecordType::kExit, testing::NowNs(), 5));
  CHECK(ModuleAt(processes, kParent) == "/parent-now");
  CHECK(ModuleAt(processes, kChild) == "/child-now");
}

TEST_CASE("a child with its parent's image has the mappings of its parent", "[processes][law]") {
  constexpr uint32_t kParent = LateFolder::kParent, kChild = LateFolder::kChild;
  const LateFolder folder;
  folder.Put(kParent, "/same", "1");
  folder.Put(kChild, "/same", "1");
  Processes processes(folder.path(), kNone);
  FeedTask(processes, RecordType::kFork, testing::NowNs(), kChild, kParent);
  CHECK(ModuleAt(processes, kParent) == "/same");
  CHECK(ModuleAt(processes, kChild) == "/same");
}

}  // namespace
}  // namespace perfkit::proc
