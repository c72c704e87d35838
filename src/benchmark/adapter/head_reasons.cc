// The reasons of the head, kept for the whole process.
#include "src/benchmark/adapter/head_reasons.h"

#include <mutex>
#include <set>
#include <utility>

namespace perfkit::adapter {
namespace {

// "no PMU" and "began and ended on different threads" are short.
constexpr size_t kShort = 40;

struct HeadReasons {
  std::mutex mutex;
  std::set<std::pair<std::string, std::string>> given;  // Names and reasons.
};

// Never destroyed: benchmarks may run while a program ends.
HeadReasons& Head() {
  static HeadReasons& head = *new HeadReasons;
  return head;
}

}  // namespace

void NoteHeadReason(std::string_view name, std::string_view reason) {
  const std::lock_guard lock(Head().mutex);
  Head().given.emplace(name, reason);
}

std::string ReasonForRow(std::string_view name, const std::string& reason) {
  if (reason.size() <= kShort) return reason;
  const std::lock_guard lock(Head().mutex);
  return Head().given.contains({std::string(name), reason}) ? "see perfkit_counters" : reason;
}

}  // namespace perfkit::adapter
