// The collector's side of ittnotify's list of functions: what is not in kFunctions stays without effect.
#include "src/itt/calls.h"

#include "src/itt/functions.h"
#include "src/itt/names.h"
#include "src/sys/clock.h"

namespace perfkit::itt {

constinit std::atomic<Collector*> current_collector{nullptr};

namespace {

struct ClockDomain;  // __itt_clock_domain: clocks of other devices, whose times mean nothing here.

Names& AllNames() {
  static Names* const names = new Names;  // Never destroyed: programs keep pointers into it.
  return *names;
}

// Acquire: pairs with the release of each store of a collector.
Collector* Current() { return current_collector.load(std::memory_order_acquire); }

Domain* CreateDomain(const char* name) { return name != nullptr ? AllNames().DomainOf(name) : nullptr; }
StringHandle* CreateHandle(const char* text) { return text != nullptr ? AllNames().HandleOf(text) : nullptr; }

void TaskBegin(const Domain* domain, Id, Id, StringHandle* name) {
  if (Collector* const current = Current()) current->Begin(domain, OpenKind::kTask, {}, KeyKind::kHandle, name);
}
void TaskBeginEx(const Domain* domain, ClockDomain*, Timestamp, Id, Id, StringHandle* name) {
  if (Collector* const current = Current()) current->Begin(domain, OpenKind::kTask, {}, KeyKind::kHandle, name);
}
void TaskBeginFn(const Domain* domain, Id, Id, void* function) {
  if (Collector* const current = Current()) current->Begin(domain, OpenKind::kTask, {}, KeyKind::kFunction, function);
}
void TaskBeginFnEx(const Domain* domain, ClockDomain*, Timestamp, Id, Id, void* function) {
  if (Collector* const current = Current()) current->Begin(domain, OpenKind::kTask, {}, KeyKind::kFunction, function);
}
void TaskEnd(const Domain* domain) { if (Collector* const current = Current()) current->End(domain, OpenKind::kTask, {}); }
void TaskEndEx(const Domain* domain, ClockDomain*, Timestamp) { if (Collector* const current = Current()) current->End(domain, OpenKind::kTask, {}); }

void FrameBegin(const Domain* domain, Id* id) {
  if (Collector* const current = Current()) current->Begin(domain, OpenKind::kFrame, id != nullptr ? *id : Id{}, KeyKind::kFrame, nullptr);
}
void FrameEnd(const Domain* domain, Id* id) {
  if (Collector* const current = Current()) current->End(domain, OpenKind::kFrame, id != nullptr ? *id : Id{});
}
void FrameSubmit(const Domain* domain, Id*, Timestamp begin, Timestamp end) {
  if (Collector* const current = Current()) current->Submit(domain, begin, end);
}

void TaskBeginOverlapped(const Domain* domain, Id id, Id, StringHandle* name) {
  if (Collector* const current = Current()) current->BeginTimed(domain, id, name);
}
void TaskBeginOverlappedEx(const Domain* domain, ClockDomain*, Timestamp, Id id, Id, StringHandle* name) {
  if (Collector* const current = Current()) current->BeginTimed(domain, id, name);
}
void TaskEndOverlapped(const Domain* domain, Id id) { if (Collector* const current = Current()) current->EndTimed(domain, id); }
void TaskEndOverlappedEx(const Domain* domain, ClockDomain*, Timestamp, Id id) { if (Collector* const current = Current()) current->EndTimed(domain, id); }

Timestamp GetTimestamp() { return sys::ClockNs(CLOCK_MONOTONIC); }
void SetThreadName(const char* name) { if (Collector* const current = Current()) current->NameThread(name); }
void Pause() { if (Collector* const current = Current()) current->SetPaused(true); }
void Resume() { if (Collector* const current = Current()) current->SetPaused(false); }

template <class Result, class... Arguments>
Function Named(const char* name, Result (*function)(Arguments...)) {
  return {name, reinterpret_cast<void*>(function)};
}

const Function kFunctions[] = {
    Named("__itt_domain_create", CreateDomain),
    Named("__itt_string_handle_create", CreateHandle),
    Named("__itt_task_begin", TaskBegin),
    Named("__itt_task_begin_ex", TaskBeginEx),
    Named("__itt_task_begin_fn", TaskBeginFn),
    Named("__itt_task_begin_fn_ex", TaskBeginFnEx),
    Named("__itt_task_end", TaskEnd),
    Named("__itt_task_end_ex", TaskEndEx),
    Named("__itt_frame_begin_v3", FrameBegin),
    Named("__itt_frame_end_v3", FrameEnd),
    Named("__itt_frame_submit_v3", FrameSubmit),
    Named("__itt_task_begin_overlapped", TaskBeginOverlapped),
    Named("__itt_task_begin_overlapped_ex", TaskBeginOverlappedEx),
    Named("__itt_task_end_overlapped", TaskEndOverlapped),
    Named("__itt_task_end_overlapped_ex", TaskEndOverlappedEx),
    Named("__itt_region_begin", TaskBeginOverlapped),
    Named("__itt_region_end", TaskEndOverlapped),
    Named("__itt_get_timestamp", GetTimestamp),
    Named("__itt_thread_set_name", SetThreadName),
    Named("__itt_pause", Pause),
    Named("__itt_resume", Resume),
    Named("__itt_detach", Pause),
};

}  // namespace

absl::Status ConnectCalls(Global* global, int groups) {
  absl::Status status = Connect(global, groups, kFunctions);
  if (status.ok()) AllNames().Adopt(*global);
  return status;
}

}  // namespace perfkit::itt
