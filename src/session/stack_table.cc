// Interns stacks. Most stacks were seen before, so that path is short: one hash over the pcs, one look-up, one
// comparison. Only new stacks are located, frame by frame, and added to the profile.
//
// SeenStacks is a hash table with open addressing. It also keeps the pcs, so that equal hashes are no mistake.
#include "src/session/stack_table.h"

#include <algorithm>
#include <string_view>

#include "src/base/mix.h"

namespace perfkit::session {
namespace {

constexpr size_t kFirstSize = 64;
constexpr std::string_view kOtherAddresses = "[other addresses]", kLeftOutFrames = "[frames left out]";

// A frame as one word: user addresses have at most 57 bits. A guess that is no address may lose its uppermost three.
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

StackTable::StackTable(ProfileBuilder& builder, Symbolizer& symbolizer, Limits limits)
    : builder_(builder), symbolizer_(symbolizer), limits_(limits) {}

void StackTable::ForgetLocations(uint32_t pid) {
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  words_ -= process->second.words();
  latest_ = nullptr;
  processes_.erase(process);
}

// Forgets all processes if kMaxWords is exceeded: a sampler may see any number of them, and each may keep making code.
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
  // A stack that was cut is not remembered: it must be counted as cut each time.
  if (!was_cut && !EndsInOther(stack)) process.seen.Remember(hash, frames, stack);
  words_ += process.words() - words;
  return stack;
}

uint32_t StackTable::InternKernel(uint32_t stack, std::span<const uint64_t> callers, uint64_t pc, bool& was_cut) {
  was_cut = false;
  // From the outermost caller inwards. The call is before its return address.
  for (size_t i = callers.size(); i-- > 0 && !was_cut;) stack = AddKernelFrame(stack, callers[i] - 1, was_cut);
  if (was_cut) stack = ProfileStack::kRoot;
  return AddKernelFrame(stack, pc, was_cut);
}

uint32_t StackTable::AddKernelFrame(uint32_t stack, uint64_t pc, bool& was_cut) {
  const uint32_t location = KernelLocation(pc);
  // A leaf alone is always added, even to a full table, so that each sample has one.
  if (stack == ProfileStack::kRoot) return builder_.Stack(stack, location);
  const uint64_t key = uint64_t{stack} << 32 | location;
  if (const auto seen = kernel_stacks_.find(key); seen != kernel_stacks_.end()) return seen->second;
  was_cut = builder_.profile().stacks.size() >= limits_.max_stacks;
  if (was_cut) return builder_.Stack(ProfileStack::kRoot, location);
  return kernel_stacks_[key] = builder_.Stack(stack, location);
}

uint32_t StackTable::InternOther(uint32_t stack) {
  const uint32_t location = builder_.profile().stacks[stack].location;
  const bool kernel = builder_.profile().locations[location].kernel;
  const uint32_t other = AddLocation({code_locations_[location].module, kOtherOffset}, kernel);
  return builder_.Stack(ProfileStack::kRoot, other);
}

uint32_t StackTable::UserLocation(Process& process, uint32_t pid, uint64_t pc) {
  if (pc == kLeftOut.pc) return LocationOf({.offset = kLeftOutOffset}, false);
  if (const auto seen = process.locations.find(pc); seen != process.locations.end()) return seen->second;
  const uint32_t location = LocationOf(symbolizer_.Locate(pid, pc), false);
  if (!IsOther(location)) process.locations[pc] = location;
  return location;
}

std::optional<uint32_t> StackTable::FindUserLocation(Process& process, uint32_t pid, uint64_t pc) {
  if (pc == kLeftOut.pc) return builder_.FindLocation(0, kLeftOutOffset);
  if (const auto seen = process.locations.find(pc); seen != process.locations.end()) return seen->second;
  const CodeLocation code = symbolizer_.Locate(pid, pc);
  return builder_.FindLocation(code.module, code.offset);
}

uint32_t StackTable::KernelLocation(uint64_t pc) {
  if (const auto seen = kernel_locations_.find(pc); seen != kernel_locations_.end()) return seen->second;
  const uint32_t location = LocationOf(symbolizer_.Locate(0, pc, CpuMode::kKernel), true);
  if (!IsOther(location)) kernel_locations_[pc] = location;
  return location;
}

// If the table is full, returns the location for other addresses of the module instead of a new one.
uint32_t StackTable::LocationOf(CodeLocation code, bool kernel) {
  if (builder_.profile().locations.size() < limits_.max_locations) return AddLocation(code, kernel);
  if (const auto known = builder_.FindLocation(code.module, code.offset, kernel)) return *known;
  code.offset = kOtherOffset;
  ++replaced_;
  return AddLocation(code, kernel);
}

uint32_t StackTable::AddLocation(const CodeLocation& code, bool kernel) {
  const uint32_t location = builder_.Location(code.module, code.offset, kernel);
  if (location < code_locations_.size()) return location;
  code_locations_.push_back(code);
  if (HasOwnName(location)) {
    const ProfileCall call{.function = builder_.String(IsOther(location) ? kOtherAddresses : kLeftOutFrames)};
    builder_.SetCalls(location, std::span(&call, 1));
  }
  return location;
}

// Returns the frames before the first guess that is in no code. Code may keep something else in the register of the
// frame pointer, which then leads anywhere.
std::span<const StackFrame> StackTable::UpToCode(uint32_t pid, std::span<const StackFrame> frames) const {
  const auto is_no_code = [&](const StackFrame& frame) {
    return frame.is_guess && !symbolizer_.Locate(pid, frame.code()).known();
  };
  const auto end = std::find_if(frames.begin() + 1, frames.end(), is_no_code);
  return {frames.begin(), end};
}

uint32_t StackTable::Add(Process& process, uint32_t pid, std::span<const StackFrame> frames, bool& was_cut) {
  frames = UpToCode(pid, frames);
  uint32_t stack = ProfileStack::kRoot;
  size_t left = frames.size();  // without the outermost ones that have entries already
  for (; left > 0; --left) {
    const StackFrame& frame = frames[left - 1];
    const std::optional<uint32_t> location = FindUserLocation(process, pid, frame.code());
    if (!location) break;
    const std::optional<uint32_t> known = builder_.FindStack(stack, *location, frame.is_guess, frame.is_stitched);
    if (!known) break;
    stack = *known;
  }
  const Profile& profile = builder_.profile();
  const bool is_full =
      profile.stacks.size() + left > limits_.max_stacks || profile.locations.size() + left > limits_.max_locations;
  was_cut = is_full && left > 0 && frames.size() > 1;
  if (was_cut) {
    stack = ProfileStack::kRoot;
    left = 1;
  }
  for (; left > 0; --left) {
    const StackFrame& frame = frames[left - 1];
    stack = builder_.Stack(stack, UserLocation(process, pid, frame.code()), frame.is_guess, frame.is_stitched);
  }
  return stack;
}

}  // namespace perfkit::session
