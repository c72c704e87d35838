// Reads the lines that were appended to the list since the last call.
#include "src/proc/jit_map.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/proc/stat.h"
#include "src/sys/files.h"
#include "src/sys/kernel.h"

namespace perfkit::proc {
namespace {

constexpr size_t kMaxLast = 256;

// The parts of /proc/PID/status: the effective user, and the process's number in its innermost namespace.
struct Identity {
  std::optional<uid_t> user;
  std::optional<pid_t> inner_pid;
};

Identity IdentityOf(pid_t pid, const std::string& proc) {
  Identity identity;
  const absl::StatusOr<std::string> text = sys::ReadFile(absl::StrFormat("%s/%d/status", proc, pid));
  if (!text.ok()) return identity;
  base::ForEachPiece(*text, '\n', [&](std::string_view line) {
    const auto [key, values] = base::Cut(line, ':');
    const bool is_user = key == "Uid";
    if (!is_user && key != "NSpid") return;
    size_t index = 0;
    base::ForEachPiece(base::Trim(values), '\t', [&](std::string_view value) {
      if (is_user && index == 1) identity.user = base::ParseNumber<uid_t>(value);
      if (!is_user) identity.inner_pid = base::ParseNumber<pid_t>(value);  // The last number is the innermost.
      ++index;
    });
  });
  return identity;
}

// Of a process that has ended it is not known. Then only a list that was changed since this process was started is its
// own for certain: with an older one, an earlier process with its number may have ended.
uint64_t StartOf(pid_t pid, const std::string& proc) {
  const std::optional<uint64_t> start_ns = ReadStartNs(pid, proc);
  return start_ns ? *start_ns : ReadStartNs(sys::kernel().getpid()).value_or(0);
}

}  // namespace

std::optional<JitFunction> ParseJitLine(std::string_view line) {
  const auto [begin_text, rest] = base::Cut(line, ' ');
  const auto [size_text, name] = base::Cut(rest, ' ');
  const auto number = [](std::string_view text) {
    return base::ParseNumber(text.starts_with("0x") ? text.substr(2) : text, 16);
  };
  const std::optional<uint64_t> begin = number(begin_text), size = number(size_text);
  const std::string_view trimmed = base::Trim(name);
  if (!begin || !size || *size == 0 || *size > UINT64_MAX - *begin || trimmed.empty()) return std::nullopt;
  return JitFunction{*begin, *begin + *size, trimmed};
}

JitMap::JitMap(pid_t pid, const std::string& proc, JitMap* parent)
    : parent_(parent), owners_{0, sys::kernel().geteuid()}, started_ns_(StartOf(pid, proc)) {
  const Identity identity = IdentityOf(pid, proc);
  if (identity.user) owners_.push_back(*identity.user);
  const pid_t inner_pid = identity.inner_pid.value_or(pid);
  const std::string list = absl::StrFormat("/tmp/perf-%d.map", inner_pid);
  // A process in a container writes the number that it has there, into its own /tmp. In this process's /tmp that number
  // would mean another process, so the list there is used only if both numbers agree.
  lists_.push_back(absl::StrFormat("%s/%d/root%s", proc, pid, list));
  if (inner_pid == pid) lists_.push_back(list);
}

std::optional<JitFunction> JitMap::Find(uint64_t pc) {
  ReadMore();
  const std::optional<JitFunction> own = Known(pc);
  if (own || parent_ == nullptr || is_refused_) return own;
  const std::optional<JitFunction> inherited = parent_->FindForChild(pc);
  if (!inherited || !inherited->reused) return inherited;
  inherited_status_ = absl::FailedPreconditionError(
      "code that was made before a fork, at an address that the parent has used again: which code is the child's is "
      "unknown");
  return std::nullopt;
}

// Returns the function at `pc` that a child may have inherited: `reused` if it may as well have inherited another one.
std::optional<JitFunction> JitMap::FindForChild(uint64_t pc) {
  ReadMore();
  std::optional<JitFunction> own = Known(pc);
  const bool is_orphan = parent_ == nullptr || is_refused_;
  const std::optional<JitFunction> older = is_orphan ? std::nullopt : parent_->FindForChild(pc);
  if (!own) return older;
  if (older && older->name != own->name) own->reused = true;
  return own;
}

const absl::Status& JitMap::status() const {
  if (!inherited_status_.ok()) return inherited_status_;
  // A child that makes no code of its own needs no list.
  const bool has_none = functions_.empty() && !is_refused_ && (absl::IsNotFound(status_) || has_older_list_);
  return parent_ != nullptr && has_none ? parent_->status() : status_;
}

std::optional<JitFunction> JitMap::Known(uint64_t pc) const {
  auto after = functions_.upper_bound(pc);
  if (after == functions_.begin()) return std::nullopt;
  const JitFunction& function = std::prev(after)->second;
  return pc < function.end ? std::optional(function) : std::nullopt;
}

// A file that was replaced or cut has another compiler's list: functions of the old one stay.
void JitMap::ReadMore() {
  if (is_cut_) return;
  is_refused_ = has_older_list_ = false;
  for (const std::string& list : lists_) {
    const bool other_is_older = std::exchange(has_older_list_, false);
    absl::StatusOr<sys::FileTail> tail = ReadTail(list, read_bytes_);
    if (tail.ok() && inode_ != 0 && !Continues(list, *tail)) {
      read_bytes_ = 0;
      last_ = {};
      tail = ReadTail(list, 0);
    }
    if (!tail.ok()) {
      const bool is_foreign = absl::IsFailedPrecondition(tail.status()) && !has_older_list_;
      is_refused_ = is_refused_ || is_foreign;
      has_older_list_ = has_older_list_ || other_is_older;
      if (is_foreign || (functions_.empty() && !absl::IsFailedPrecondition(status_))) status_ = tail.status();
      continue;
    }
    is_refused_ = false;
    status_ = absl::OkStatus();
    inode_ = tail->inode;
    changed_ns_ = tail->changed_ns;
    is_cut_ = tail->size > kMaxBytes;
    Take(std::move(tail->text));
    if (!is_cut_) return;
    status_ = absl::ResourceExhaustedError(absl::StrFormat(
        "%s is longer than %d bytes or %d functions: the rest is not read", list, kMaxBytes, kMaxFunctions));
    return;
  }
}

// An inode number may be used again, so the text decides.
bool JitMap::Continues(const std::string& list, const sys::FileTail& tail) const {
  if (tail.size < read_bytes_) return false;
  if (tail.inode == inode_ && tail.changed_ns == changed_ns_) return true;
  const auto before = sys::ReadOwnedTail(list, owners_, read_bytes_ - last_.size(), last_.size());
  return before.ok() && before->text == last_;
}

absl::StatusOr<sys::FileTail> JitMap::ReadTail(const std::string& list, uint64_t offset) {
  // The kernel tells starts and changes to some milliseconds; some file systems, changes to two seconds.
  constexpr uint64_t kSlackNs = 100'000'000, kSecondNs = 1'000'000'000;
  absl::StatusOr<sys::FileTail> tail = sys::ReadOwnedTail(list, owners_, offset, kMaxBytes - offset);
  if (!tail.ok()) return tail;
  const uint64_t slack_ns = tail->changed_ns % kSecondNs == 0 ? 2 * kSecondNs : kSlackNs;
  if (tail->changed_ns + slack_ns >= started_ns_) return tail;
  has_older_list_ = true;
  return absl::FailedPreconditionError(
      absl::StrFormat("%s was last changed before the process was started: it is the list of an "
                      "earlier process with its number, unless the clock was set in between",
                      list));
}

// Takes the whole lines only: the compiler may be in the middle of the last one, which is then read anew.
void JitMap::Take(std::string text) {
  const size_t end = text.rfind('\n');
  if (end == std::string::npos) return;
  text.resize(end + 1);
  read_bytes_ += text.size();
  texts_.push_back(std::move(text));
  const std::string_view taken = texts_.back();
  last_ = taken.substr(taken.size() - std::min(taken.size(), kMaxLast));
  base::ForEachPiece(texts_.back(), '\n', [&](std::string_view line) {
    if (const std::optional<JitFunction> function = ParseJitLine(line)) Add(*function);
  });
}

// Removes or cuts the functions that overlap: compilers reuse the memory of code that they discarded, so the later line
// is right.
void JitMap::Add(const JitFunction& function) {
  auto next = functions_.lower_bound(function.begin);
  if (next != functions_.end() && next->first == function.begin && next->second.end == function.end &&
      next->second.name == function.name) {
    return;  // The same function, listed again.
  }
  if (functions_.size() >= kMaxFunctions) {
    is_cut_ = true;
    return;
  }
  bool reused = next != functions_.end() && next->first < function.end;
  if (next != functions_.begin()) {
    JitFunction& before = std::prev(next)->second;
    reused = reused || before.end > function.begin;
    // The new function lies within an older one, of which a part remains on each side.
    if (before.end > function.end) {
      functions_.emplace_hint(next, function.end, JitFunction{function.end, before.end, before.name, before.reused});
      next = functions_.lower_bound(function.begin);
    }
    std::prev(next)->second.end = std::min(std::prev(next)->second.end, function.begin);
  }
  while (next != functions_.end() && next->first < function.end) {
    const JitFunction old = next->second;
    next = functions_.erase(next);
    if (old.end > function.end) {
      functions_.emplace_hint(next, function.end, JitFunction{function.end, old.end, old.name, old.reused});
      break;
    }
  }
  functions_[function.begin] = {function.begin, function.end, function.name, reused};
}

}  // namespace perfkit::proc
