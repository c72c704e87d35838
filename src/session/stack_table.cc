// Open addressing over hashes of stacks; the pcs themselves are kept beside it, so that equal hashes are no mistake.
#include "src/session/stack_table.h"

#include <algorithm>

#include "src/base/mix.h"

namespace perfkit::session {
namespace {

constexpr size_t kFirstSize = 64;

// A frame as one word: user addresses have at most 57 bits.
uint64_t WordOf(const StackFrame& frame) {
  return frame.pc << 3 | (frame.is_return_address ? 1 : 0) | (frame.is_guess ? 2 : 0) | (frame.is_stitched ? 4 : 0);
}

}  // namespace

uint64_t SeenStacks::HashOf(std::span<const StackFrame> frames) {
  uint64_t hash = frames.size();
  for (const StackFrame& frame : frames) {
    hash = base::Mix(hash ^ WordOf(frame));
    hash ^= hash >> 32;
  }
  return hash;
}

uint32_t SeenStacks::Find(uint64_t hash, std::span<const StackFrame> frames) const {
  if (seen_.empty()) return kUnseen;
  const auto equals = [](const StackFrame& frame, uint64_t word) { return word == WordOf(frame); };
  for (size_t at = hash & (seen_.size() - 1); seen_[at].words != 0; at = (at + 1) & (seen_.size() - 1)) {
    const Seen& seen = seen_[at];
    if (seen.hash != hash || seen.words != frames.size()) continue;
    if (std::equal(frames.begin(), frames.end(), words_.begin() + seen.first_word, equals)) return seen.stack;
  }
  return kUnseen;
}

void SeenStacks::Remember(uint64_t hash, std::span<const StackFrame> frames, uint32_t stack) {
  if (2 * seen_count_ >= seen_.size()) Grow();
  Insert({hash, static_cast<uint32_t>(words_.size()), static_cast<uint32_t>(frames.size()), stack});
  ++seen_count_;
  for (const StackFrame& frame : frames) words_.push_back(WordOf(frame));
}

void SeenStacks::Insert(const Seen& seen) {
  size_t at = seen.hash & (seen_.size() - 1);
  while (seen_[at].words != 0) at = (at + 1) & (seen_.size() - 1);
  seen_[at] = seen;
}

void SeenStacks::Grow() {
  std::vector<Seen> old(seen_.empty() ? kFirstSize : 2 * seen_.size());
  old.swap(seen_);
  for (const Seen& seen : old) {
    if (seen.words != 0) Insert(seen);
  }
}

StackTable::StackTable(ProfileBuilder& builder, Symbolizer& symbolizer, size_t max_stacks)
    : builder_(builder), symbolizer_(symbolizer), max_stacks_(max_stacks) {}

void StackTable::ForgetPlaces(uint32_t pid) {
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  words_ -= process->second.words();
  latest_ = nullptr;
  processes_.erase(process);
}

// A sampler may see any number of processes, and a process may make code for ever: what is remembered is bounded.
StackTable::Process& StackTable::ProcessOf(uint32_t pid) {
  if (words_ > kMaxWords) {
    processes_.clear();
    latest_ = nullptr;
    words_ = 0;
  }
  if (latest_ != nullptr && latest_pid_ == pid) return *latest_;
  const auto [process, is_new] = processes_.try_emplace(pid);
  if (is_new) words_ += kWordsOfOne;
  latest_pid_ = pid;
  latest_ = &process->second;
  return *latest_;
}

uint32_t StackTable::Intern(uint32_t pid, std::span<const StackFrame> frames, bool& was_cut) {
  was_cut = false;
  if (frames.empty()) return ProfileStack::kRoot;
  Process& process = ProcessOf(pid);
  const uint64_t hash = SeenStacks::HashOf(frames);
  if (const uint32_t seen = process.seen.Find(hash, frames); seen != SeenStacks::kUnseen) return seen;
  const size_t words = process.words();
  const uint32_t stack = Add(process, pid, frames, was_cut);
  if (!was_cut) process.seen.Remember(hash, frames, stack);
  words_ += process.words() - words;
  return stack;
}

uint32_t StackTable::InternKernel(uint32_t stack, uint64_t pc, bool& was_cut) {
  const uint32_t location = KernelLocation(pc);
  was_cut = false;
  if (stack == ProfileStack::kRoot) return builder_.Stack(stack, location);
  const uint64_t key = uint64_t{stack} << 32 | location;
  if (const auto seen = kernel_stacks_.find(key); seen != kernel_stacks_.end()) return seen->second;
  was_cut = builder_.profile().stacks.size() >= max_stacks_;
  if (was_cut) return builder_.Stack(ProfileStack::kRoot, location);
  return kernel_stacks_[key] = builder_.Stack(stack, location);
}

uint32_t StackTable::UserLocation(Process& process, uint32_t pid, uint64_t pc) {
  const auto [entry, is_new] = process.locations.try_emplace(pc);
  if (is_new) entry->second = LocationOf(symbolizer_.Locate(pid, pc), false);
  return entry->second;
}

uint32_t StackTable::KernelLocation(uint64_t pc) {
  const auto [entry, is_new] = kernel_locations_.try_emplace(pc);
  if (is_new) entry->second = LocationOf(symbolizer_.Locate(0, pc, CpuMode::kKernel), true);
  return entry->second;
}

uint32_t StackTable::LocationOf(const CodeLocation& place, bool kernel) {
  const uint32_t location = builder_.Location(place.module, place.offset, kernel);
  if (location >= places_.size()) places_.resize(location + 1);
  places_[location] = place;
  return location;
}

// A frame pointer of code that keeps something else in that register leads anywhere: where no code is, no call was.
std::span<const StackFrame> StackTable::UpToCode(uint32_t pid, std::span<const StackFrame> frames) const {
  const auto is_no_code = [&](const StackFrame& frame) {
    return frame.is_guess && !symbolizer_.Locate(pid, frame.code()).known();
  };
  const auto end = std::find_if(frames.begin() + 1, frames.end(), is_no_code);
  return {frames.begin(), end};
}

uint32_t StackTable::Add(Process& process, uint32_t pid, std::span<const StackFrame> frames, bool& was_cut) {
  frames = UpToCode(pid, frames);
  was_cut = builder_.profile().stacks.size() + frames.size() > max_stacks_;
  if (was_cut) frames = frames.first(1);
  uint32_t stack = ProfileStack::kRoot;
  for (size_t i = frames.size(); i-- > 0;) {
    const StackFrame& frame = frames[i];
    stack = builder_.Stack(stack, UserLocation(process, pid, frame.code()), frame.is_guess, frame.is_stitched);
  }
  return stack;
}

}  // namespace perfkit::session
