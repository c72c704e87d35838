// The public functions of TaskCounter, and the sums that it returns.
#include "perfkit/task_counter.h"

#include "src/count/task/task_counter_impl.h"
#include "src/count/task/task_report.h"

namespace perfkit {
namespace count {
uint64_t TaskCounterImpl::ToNs(uint64_t ticks) const { return TicksToNs(ticks, ns_per_tick_q32_); }

uint16_t TaskCounterImpl::RootOf(uint16_t node) const {
  while (nodes_.parent(node) != TaskNodes::kOutside) node = nodes_.parent(node);
  return node;
}

Count TaskCounterImpl::CountOf(const Sums& sums, size_t i) const {
  const bool missing = ((plan_.never() | sums.missing) >> i & 1) != 0;
  return missing ? Count{} : MakeCount(sums.values[i], sums.times[i], plan_.fixed_flags(i));
}

NodeTotal TaskCounterImpl::TotalOf(size_t node) const {
  NodeTotal total;
  ended_threads_->ReadInto(node, total);
  for (const auto& thread : threads_) thread->sums().ReadInto(node, total);
  return total;
}

// Returns why tasks of this name were not counted for a time; no flag if all were.
Validity TaskCounterImpl::LackingIn(uint16_t root) const {
  const EndedTasks* const tasks = ended_[root].get();
  if (tasks == nullptr) return {};
  if (tasks->cross_thread.load(std::memory_order_relaxed)) return {Validity::kOtherThread};
  return tasks->refused.load(std::memory_order_relaxed) ? Validity{Validity::kNotCounted} : Validity{};
}

// The totals of a node are its own sums and all those below. A parent has a lower number than its children.
TaskZoneStats TaskCounterImpl::StatsOf(const std::vector<NodeTotal>& totals, size_t node) const {
  TaskZoneStats stats;
  Sums total = totals[node].sums;
  std::vector<bool> is_below(totals.size());
  is_below[node] = true;
  stats.run_ns = stats.self_run_ns = ToNs(total.ticks);
  for (size_t other = node + 1; other < totals.size(); ++other) {
    is_below[other] = is_below[nodes_.parent(static_cast<uint16_t>(other))];
    if (!is_below[other]) continue;
    total.Merge(totals[other].sums);
    stats.run_ns += ToNs(totals[other].sums.ticks);  // Rounded one by one, so that total = self + children.
  }
  stats.name = nodes_.name(static_cast<uint16_t>(node));
  stats.calls = totals[node].sums.calls;
  const Validity lacking = LackingIn(RootOf(static_cast<uint16_t>(node)));
  stats.at_least = !lacking.counted();
  for (size_t i = 0; i < plan_.size(); ++i) {
    stats.total[i] = CountOf(total, i);
    stats.self[i] = CountOf(totals[node].sums, i);
    const bool may_count = plan_.reason(i).empty();
    if (stats.at_least && may_count && stats.run_ns == 0) stats.total[i] = {.validity = lacking};
    if (stats.at_least && may_count && stats.self_run_ns == 0) stats.self[i] = {.validity = lacking};
  }
  const EndedTasks* const ended = ended_[node].get();
  if (ended == nullptr) return stats;
  stats.wait_ns = ToNs(totals[node].wait_ticks);
  stats.migrations = totals[node].migrations;
  stats.created = ended->created;
  stats.ended = ended->tasks.load(std::memory_order_relaxed);
  stats.run_quantiles = ended->run_ns.Summary(rows_);
  stats.wait_quantiles = ended->wait_ns.Summary(rows_);
  for (size_t i = 0; i < plan_.size(); ++i) stats.quantiles[i] = ended->values[i].Summary(rows_);
  return stats;
}

void TaskCounterImpl::AppendBelow(const std::vector<NodeTotal>& totals, size_t node, size_t parent, uint32_t depth,
                                  std::vector<TaskZoneStats>& out) const {
  for (size_t child = 1; child < totals.size(); ++child) {
    if (nodes_.parent(static_cast<uint16_t>(child)) != node) continue;
    if (child == other_names_ && totals[child].sums.calls == 0) continue;
    const size_t index = out.size();
    TaskZoneStats& stats = out.emplace_back(StatsOf(totals, child));
    stats.depth = depth;
    stats.parent = depth == 0 ? index : parent;
    AppendBelow(totals, child, index, depth + 1, out);
  }
}

std::vector<TaskZoneStats> TaskCounterImpl::Zones() const {
  const std::unique_lock<std::mutex> lock = Lock();
  std::vector<NodeTotal> totals(nodes_.size());
  for (size_t node = 0; node < totals.size(); ++node) totals[node] = TotalOf(node);
  std::vector<TaskZoneStats> stats;
  AppendBelow(totals, TaskNodes::kOutside, 0, 0, stats);
  return stats;
}

std::string TaskCounterImpl::PathOfNode(uint16_t node) const {
  if (node == TaskNodes::kOutside) return "";
  const uint16_t parent = nodes_.parent(node);
  return parent == TaskNodes::kOutside ? nodes_.name(node) : PathOfNode(parent) + "/" + nodes_.name(node);
}

std::string TaskCounterImpl::PathOf(const TaskPosition& position) const {
  std::string path = PathOfNode(position.node);
  uint16_t chain = position.awaiters;
  while (chain != AwaitChains::kNone) {
    if (chain == AwaitChains::kUnknown) return "(more tasks) > " + path;
    const AwaitChains::Link link = chains_.link(chain);
    path = PathOfNode(link.node) + " > " + path;
    chain = link.awaiters;
  }
  return path;
}

std::string TaskCounterImpl::TaskOf(uint16_t node) const {
  if (node == TaskNodes::kOutside) return "";
  return nodes_.name(RootOf(node));
}

TaskTotals TaskCounterImpl::Outside() const {
  const std::unique_lock<std::mutex> lock = Lock();
  const NodeTotal total = TotalOf(TaskNodes::kOutside);
  TaskTotals totals;
  totals.run_ns = ToNs(total.sums.ticks);
  for (size_t i = 0; i < plan_.size(); ++i) totals.counts[i] = CountOf(total.sums, i);
  return totals;
}

TaskTotals TaskCounterImpl::TotalsOf(const TaskAccount& account) const {
  TaskTotals totals;
  totals.runs = account.sums.calls;
  totals.migrations = account.migrations;
  totals.wait_ns = ToNs(account.wait_ticks);
  const bool cross_thread = account.cross_thread.load(std::memory_order_relaxed);
  if (!cross_thread) totals.run_ns = ToNs(account.sums.ticks);
  for (size_t i = 0; i < plan_.size(); ++i) {
    totals.counts[i] = cross_thread ? Count{.validity = {Validity::kOtherThread}} : CountOf(account.sums, i);
  }
  return totals;
}

TaskStats TaskCounterImpl::Stats() const {
  const std::unique_lock<std::mutex> lock = Lock();
  const auto now = [](const auto& number) { return number.load(std::memory_order_relaxed); };
  return {.created = now(tally_.created),
          .ended = now(tally_.ended),
          .cross_thread = now(tally_.cross_thread),
          .mismatched = now(tally_.mismatched),
          .dropped = now(tally_.dropped),
          .unplaced = now(rows_.unplaced),
          .threads = static_cast<uint32_t>(threads_.size()),
          .refused_threads = now(tally_.refused)};
}

}  // namespace count

TaskCounter::TaskCounter(const Options& options) : impl_(std::make_shared<count::TaskCounterImpl>(options)) {}

TaskCounter::~TaskCounter() {
  impl_->Close();
  count::Unbind(impl_.get(), false);
}

TaskCounter::Task TaskCounter::Create(ZoneId name) { return Task(impl_->Create(name)); }
// In a forked child the thread that forked is still bound, but its events are closed: it is not attached.
bool TaskCounter::AttachThread() { return !impl_->in_forked_child() && impl_->Attach() != nullptr; }

void TaskCounter::Task::Resume(count::TaskAccount& account) noexcept { account.impl->Resume(account); }
void TaskCounter::Task::Suspend(count::TaskAccount& account) noexcept { account.impl->Suspend(account); }
void TaskCounter::Task::Enqueue(count::TaskAccount& account) noexcept {
  if (account.sums.calls == 0) account.suspended_ticks = ReadTicks();
}
void TaskCounter::Task::SetAwaiter(count::TaskAccount& account, const count::TaskAccount* awaiter) noexcept {
  account.impl->SetAwaiter(account, awaiter);
}
uint64_t TaskCounter::Task::number() const noexcept { return account_ != nullptr ? account_->number : 0; }
void TaskCounter::Task::End(count::TaskAccount* account) noexcept { account->impl->End(*account); }
TaskTotals TaskCounter::Task::totals() const {
  return account_ != nullptr ? account_->impl->TotalsOf(*account_) : TaskTotals();
}

void TaskCounter::Switch(Task& from, Task& to) noexcept {
  if (from.account_ == nullptr || to.account_ == nullptr) {
    from.Suspend();
    to.Resume();
  } else {
    from.account_->impl->Switch(*from.account_, *to.account_);
  }
}

count::TaskAccount* TaskCounter::EnterZone(ZoneId id) noexcept { return impl_->EnterZone(id); }
void TaskCounter::LeaveZone(count::TaskAccount& account) noexcept { account.impl->LeaveZone(account); }

std::vector<TaskZoneStats> TaskCounter::zones() const { return impl_->Zones(); }
TaskTotals TaskCounter::Outside() const { return impl_->Outside(); }
TaskStats TaskCounter::Stats() const { return impl_->Stats(); }
std::string TaskCounter::FormatTasks() const { return count::FormatTasks(*impl_, {}); }
std::string TaskCounter::FormatTasks(std::span<const Metric> metrics) const {
  return count::FormatTasks(*impl_, metrics);
}
size_t TaskCounter::size() const { return impl_->plan().size(); }
std::string_view TaskCounter::name(size_t i) const { return impl_->plan().name(i); }
std::string_view TaskCounter::reason(size_t i) const { return i < size() ? impl_->plan().reason(i) : ""; }
ReadPath TaskCounter::path(size_t i) const { return impl_->plan().path(i); }

}  // namespace perfkit
