// The memory of zones: what a thread's zones take, when they take it, and what happens if there is none.
#include "src/count/frame/zone_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perfkit/frame_counter.h"
#include "tests/count/frame/made_up_reader.h"
#include "tests/support/allocations.h"
#include "tests/support/fake_kernel.h"

namespace perfkit::count {
namespace {

// Bytes that were mapped and belong to no file.
std::atomic<size_t> mapped_bytes{0};

void* CountedMmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  if ((flags & MAP_ANONYMOUS) != 0) mapped_bytes += size;
  return sys::kLinux.mmap(address, size, protection, flags, fd, offset);
}

TEST_CASE("zone memory: pieces are zeros, aligned, apart, and stay where they are", "[many]") {
  testing::FakeKernel kernel;
  {
    ZoneMemory memory(100, 4096);
    std::vector<std::pair<std::byte*, size_t>> pieces;
    for (size_t i = 0; i < 500; ++i) {
      const size_t bytes = 1 + 37 * i % 6000, alignment = size_t{1} << i % 7;
      std::byte* const piece = memory.Take(bytes, alignment);
      REQUIRE(piece != nullptr);
      REQUIRE(reinterpret_cast<uintptr_t>(piece) % alignment == 0);
      for (size_t b = 0; b < bytes; ++b) REQUIRE(piece[b] == std::byte{0});
      std::memset(piece, static_cast<int>(i % 255 + 1), bytes);
      pieces.push_back({piece, bytes});
    }
    ZoneMemory moved = std::move(memory);
    memory = ZoneMemory(64, 4096);
    for (size_t i = 0; i < pieces.size(); ++i) {
      const auto [piece, bytes] = pieces[i];
      const std::byte expected{static_cast<unsigned char>(i % 255 + 1)};
      REQUIRE(static_cast<size_t>(std::count(piece, piece + bytes, expected)) == bytes);
    }
    memory = std::move(moved);
  }
  CHECK(kernel.Leaks() == "");
}

TEST_CASE("zone memory: without more memory there is no piece, and errno stays") {
  testing::FakeKernel kernel;
  ZoneMemory memory(64, 4096);
  kernel.FailAll(testing::Call::kMmap, ENOMEM);
  errno = 0;
  CHECK(memory.Take(100, 8) == nullptr);
  CHECK(errno == 0);
  CHECK(memory.Take(64, 8) != nullptr);
  kernel.Forgive();
  CHECK(memory.Take(100, 8) != nullptr);
}

std::vector<std::string> Names(size_t count, const std::string& prefix) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(prefix + std::to_string(i));
  return names;
}

TEST_CASE("zone tree: a zone without memory is dropped and counted, and one that was there is not") {
  testing::FakeKernel kernel;
  MadeUpReader reader(11);
  ZoneTree tree({.events = kEvents, .max_zones = 2000});
  BeginFrame(tree, reader.now());
  uint64_t frame = 0;
  const auto enter_all = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      Enter(tree, reader, name.c_str());
      reader.Work();
      Leave(tree, reader);
    }
    EndFrame(tree, reader.now(), frame++);
  };
  const std::vector<std::string> first = Names(100, "first "), second = Names(500, "second ");
  enter_all(first);
  REQUIRE(tree.dropped() == 0);
  kernel.FailAll(testing::Call::kMmap, ENOMEM);
  enter_all(second);
  CHECK(tree.dropped() > 400);
  CHECK(tree.size() - 1 + tree.dropped() == first.size() + second.size());
  const uint64_t dropped = tree.dropped();
  enter_all(first);
  CHECK(tree.dropped() == dropped);
  CheckLaw(tree);
  kernel.Forgive();
  enter_all(second);
  CHECK(tree.dropped() == dropped);
  CHECK(tree.size() - 1 == first.size() + second.size());
  for (size_t node = 1; node <= first.size(); ++node) REQUIRE(tree.total(node).calls == 2);
  CheckLaw(tree);
}

void* MmapOfOnePage(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  if (size <= sys::PageSize()) return CountedMmap(address, size, protection, flags, fd, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

TEST_CASE("zone tree: a zone that is dropped again and again takes no memory for its name") {
  testing::FakeKernel kernel;
  kernel.below().mmap = MmapOfOnePage;
  ZoneTree tree({.events = 1});  // a step of its memory is more than a page, one of its names' is not
  MadeUpReader reader(14);
  BeginFrame(tree, reader.now());
  const std::vector<std::string> names = Names(100, "");
  for (const std::string& name : names) {
    Enter(tree, reader, name.c_str());
    Leave(tree, reader);
  }
  mapped_bytes = 0;
  const std::string long_name(200, 'n');
  for (int i = 0; i < 1000; ++i) {
    Enter(tree, reader, long_name.c_str());
    Leave(tree, reader);
  }
  CHECK(mapped_bytes == 0);
  EndFrame(tree, reader.now(), 0);
  CHECK(tree.dropped() >= 1000);
}

TEST_CASE("zone tree: zones nest as deep as they may") {
  MadeUpReader reader(12);
  ZoneTree tree({.events = kEvents, .max_zones = 1000, .max_depth = 300});
  BeginFrame(tree, reader.now());
  const std::vector<std::string> names = Names(300, "");
  std::vector<Snapshot> begins;
  for (const std::string& name : names) {
    reader.Work();
    begins.push_back(reader.now());
    Enter(tree, reader, name.c_str());
  }
  reader.Work();
  for (size_t i = 0; i < names.size(); ++i) Leave(tree, reader);
  EndFrame(tree, reader.now(), 0);
  REQUIRE(tree.size() == 301);
  REQUIRE(tree.dropped() == 0);
  for (size_t node = 1; node < tree.size(); ++node) {
    REQUIRE(tree.total(node).ticks == reader.now().ticks - begins[node - 1].ticks);
  }
}

TEST_CASE("zone tree: zones that were entered before take no memory") {
  testing::FakeKernel kernel;
  MadeUpReader reader(13);
  ZoneTree tree({.events = kEvents});
  BeginFrame(tree, reader.now());
  const std::vector<std::string> names = Names(60, "zone ");
  const auto enter_all = [&] {
    for (const std::string& name : names) {
      Enter(tree, reader, name.c_str());
      Enter(tree, reader, "inner");
      Leave(tree, reader);
      Leave(tree, reader);
    }
  };
  const uint64_t before = kernel.calls();
  enter_all();
  EndFrame(tree, reader.now(), 0);
  CHECK(kernel.calls() > before);
  const uint64_t calls = kernel.calls(), allocations = testing::allocations_so_far;
  for (uint64_t frame = 1; frame < 10; ++frame) {
    enter_all();
    EndFrame(tree, reader.now(), frame);  // with the values of the frame before
  }
  CHECK(kernel.calls() == calls);
  CHECK(testing::allocations_so_far == allocations);
}

// Enters all zones, four deep, in each of two frames. Values that differ from frame to frame need memory, but two do not
// differ often.
void RunWorker(FrameCounter& frames, FrameId id, const std::vector<std::string>& names) {
  for (int frame = 0; frame < 2; ++frame) {
    for (size_t i = 0; i < names.size(); i += 4) {
      for (size_t depth = 0; depth < 4; ++depth) frames.Enter({names[i + depth].c_str()});
      for (size_t depth = 0; depth < 4; ++depth) frames.Leave();
    }
    frames.Mark(id);
  }
}

TEST_CASE("frames: a worker with three dozen zones takes at most 64 KiB") {
  testing::FakeKernel kernel;
  kernel.below().mmap = CountedMmap;
  FrameCounter frames({.events = {"task-clock", "page-faults", "context-switches", "cpu-migrations"}});
  const FrameId id = frames.DefineFrame("worker");
  const std::vector<std::string> names = Names(36, "a zone with a usual name ");
  int64_t taken = 0;
  std::thread([&] {
    const int64_t held = testing::bytes_held;
    mapped_bytes = 0;
    RunWorker(frames, id, names);
    taken = static_cast<int64_t>(mapped_bytes.load()) + testing::bytes_held - held;
  }).join();
  CHECK(frames.Stats().dropped == 0);
  CHECK(taken > 20'000);  // or nothing was measured
  CHECK(taken <= 65'536);
}

TEST_CASE("frames: a report reads a worker's zones while the worker enters new ones", "[law]") {
  FrameCounter frames({.events = {"page-faults"}, .max_zones = 3000});
  const std::vector<std::string> names = Names(2000, "zone ");
  std::atomic<bool> done{false};
  frames.Mark();
  std::thread worker([&] {
    for (size_t i = 0; i < names.size(); i += 2) {
      frames.Enter({names[i].c_str()});
      frames.Enter({names[i + 1].c_str()});
      frames.Leave();
      frames.Leave();
      if (i % 16 == 0) std::this_thread::yield();
    }
    done = true;
  });
  while (!done) {
    frames.Mark();
    for (const ZoneStats& zone : frames.zones()) REQUIRE((zone.depth == 0 || zone.calls <= 1));
  }
  worker.join();
  frames.Mark();
  CHECK(frames.Stats().zones == names.size());
  CHECK(frames.Stats().dropped == 0);
}

}  // namespace
}  // namespace perfkit::count
