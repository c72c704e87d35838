// Each thread has a list of the times at which its innermost zone changed. A sample's label is found in it by its time;
// both are of CLOCK_MONOTONIC. Labels are set late, when all that happened before is known: before samples are merged,
// and when a profile is made.
#include "src/session/zone_timeline.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "src/sys/clock.h"

namespace perfkit::session {
namespace {

using count::FrameEvent;
using count::ZoneRecordKind;

ProfileUnit UnitOf(std::string_view unit) { return unit == "ns" ? ProfileUnit::kNanoseconds : ProfileUnit::kCount; }

}  // namespace

ZoneTimeline::ZoneTimeline(std::unique_ptr<count::FrameRecording> recording, ProfileBuilder& builder,
                           ThreadTable& threads, uint32_t pid, size_t max_bytes, const std::optional<KeepFrames>& keep)
    : recording_(std::move(recording)), builder_(builder), table_(threads), pid_(pid), max_bytes_(max_bytes) {
  if (!keep) return;
  keeping_.emplace(Keeping{
      .keeper = FrameKeeper(*keep), .ranks = FrameRanks(keep->worst_by), .thin_at_bytes = max_bytes / kThinDivisor});
  if (recording_ != nullptr) keeping_->ranks.SetEvents(recording_->events());
}

void ZoneTimeline::Read(uint64_t known_ns) {
  if (recording_ == nullptr) return;
  const uint64_t now_ns = sys::ClockNs(CLOCK_MONOTONIC);  // what a thread did before is in its log by now
  if (!recording_->Read([&](const FrameEvent& event) { Add(event); })) {
    known_until_ns_ = std::min(known_until_ns_, read_until_ns_);
  }
  read_until_ns_ = now_ns;
  FindIndexes(known_ns);
  if (keeping_) return ThinIfFull();
  TakeTextsOfOthers();
  if (bytes_ <= max_bytes_) return;
  Label(builder_.profile().samples);
  losses_.forgotten += Forget(2);
}

void ZoneTimeline::Stop(uint64_t now_ns) {
  Read(now_ns);
  Read(now_ns);  // also visits the gaps of threads that ended while their logs were full
  recording_.reset();
}

uint32_t ZoneTimeline::Text(std::string_view text) {
  const auto found = text_indexes_.find(text);
  if (found != text_indexes_.end()) return found->second;
  texts_.emplace_back(text);
  return text_indexes_[texts_.back()] = static_cast<uint32_t>(texts_.size() - 1);
}

size_t ZoneTimeline::ThreadOf(const FrameEvent& event) {
  const auto [entry, is_new] = by_serial_.try_emplace(event.thread, threads_.size());
  if (!is_new) return entry->second;
  if (free_.empty()) {
    threads_.push_back({.tid = event.tid});
  } else {
    entry->second = free_.back();
    free_.pop_back();
    threads_[entry->second] = {.tid = event.tid};
  }
  return entry->second;
}

void ZoneTimeline::Add(const FrameEvent& event) {
  const size_t thread = ThreadOf(event);
  switch (event.kind) {
    case ZoneRecordKind::kBegin:
    case ZoneRecordKind::kTask: return;
    case ZoneRecordKind::kEnter: return Enter(thread, event);
    case ZoneRecordKind::kLeave: return Leave(thread, event.from_ns);
    // The zone ended on another thread, at an unknown time. Its kLeave comes when it is removed from the stack here.
    case ZoneRecordKind::kAbandon: {
      std::vector<OpenZone>& open = threads_[thread].open;
      if (event.id < open.size()) open[event.id].abandoned = true;
      return;
    }
    case ZoneRecordKind::kFrame: return AddFrame(thread, event);
    case ZoneRecordKind::kHitch: return AddCause(thread, event);
    case ZoneRecordKind::kReason:
    case ZoneRecordKind::kState:
      if (keeping_ || event.kind == ZoneRecordKind::kState) deciding_.texts.Add(static_cast<uint32_t>(thread), event);
      return;
    case ZoneRecordKind::kGap:
      losses_.records += event.lost;
      LeaveAll(thread, event.from_ns, kUnknown);
      return SetLabel(threads_[thread], event.to_ns, 0);
    case ZoneRecordKind::kEnd:
      if (keeping_) keeping_->keeper.EndThread(static_cast<uint32_t>(thread));
      return LeaveAll(thread, event.from_ns, 0);
  }
}

// Rounding must not make times run backwards.
void ZoneTimeline::SetLabel(Thread& thread, uint64_t ns, uint32_t label) {
  thread.last_ns = std::max(thread.last_ns, ns);
  thread.first_ns = std::min(thread.first_ns, thread.last_ns);
  thread.changes.push_back({thread.last_ns, label});
  bytes_ += sizeof(Change);
}

const ZoneTimeline::Path& ZoneTimeline::PathOf(Thread& thread, const FrameEvent& event) {
  if (event.id >= thread.paths.size()) thread.paths.resize(event.id + 1);
  // Labels are made once for each zone of a thread; a parent has entered before its child.
  Path& path = thread.paths[event.id];
  if (path.label != 0) return path;
  path.name = path.label = Text(event.name);
  uint32_t parent = 0;
  if (event.parent != count::ZoneTree::kRoot) {
    parent = thread.paths[event.parent].label;
    path.label = Text(absl::StrCat(texts_[parent], "/", event.name));
  }
  if (keeping_) keeping_->ranks.AddZone(path.label, event.name, texts_[path.label], parent);
  return path;
}

void ZoneTimeline::Enter(size_t thread, const FrameEvent& event) {
  Thread& state = threads_[thread];
  const Path path = PathOf(state, event);
  SetLabel(state, event.from_ns, path.label);
  state.open.push_back({state.last_ns, path.name, path.label});
}

// A zone that ended on another thread has no known end. So it gets no track, and the zone of samples directly in it is
// unknown.
void ZoneTimeline::Leave(size_t thread, uint64_t ns) {
  Thread& state = threads_[thread];
  if (state.open.empty()) return;
  const OpenZone zone = state.open.back();
  state.open.pop_back();
  SetLabel(state, ns, state.open.empty() ? 0 : state.open.back().label);
  if (!zone.abandoned) {
    zones_.push_back({zone.from_ns, state.last_ns, static_cast<uint32_t>(thread), zone.name});
    bytes_ += sizeof(Span);
    return;
  }
  const auto first = std::lower_bound(state.changes.begin(), state.changes.end(), zone.from_ns,
                                      [](const Change& change, uint64_t at_ns) { return change.ns < at_ns; });
  for (auto change = first; change != state.changes.end(); ++change) {
    if (change->label == zone.label) change->label = kUnknown;
  }
}

void ZoneTimeline::LeaveAll(size_t thread, uint64_t ns, uint32_t label) {
  while (!threads_[thread].open.empty()) Leave(thread, ns);
  SetLabel(threads_[thread], ns, label);
}

void ZoneTimeline::AddFrame(size_t thread, const FrameEvent& event) {
  Thread& state = threads_[thread];
  state.first_ns = std::min(state.first_ns, event.from_ns);
  state.marks_frames = true;
  const uint64_t budget_ns = recording_->budget_ns(event.id);
  frames_.push_back({.from_ns = event.from_ns,
                     .to_ns = event.to_ns,
                     .number = event.number,
                     .thread = static_cast<uint32_t>(thread),
                     .sequence_id = event.id,
                     .is_over_budget = budget_ns != 0 && event.to_ns - event.from_ns > budget_ns,
                     .sequence = event.name,
                     .numbers = NumbersOf(state, event)});
  deciding_.texts.TakeOwn(TextsOf(frames_.back()));
  bytes_ += BytesOfFrame() + frames_.back().state.size();
  const count::EventPlan& events = recording_->events();
  for (size_t i = 0; i < event.values.size(); ++i) {
    if ((event.missing >> i & 1) != 0) continue;
    Track& track = tracks_[{event.thread << 8 | event.id, i}];
    if (track.counter.points.empty()) {
      const std::string restriction = events.Restriction(i);  // Not in parentheses: those name the frames (CountsOf).
      std::string name = std::string(events.name(i)) + (restriction.empty() ? "" : ", " + restriction);
      if (event.id != 0) absl::StrAppend(&name, " (", event.name, ")");
      track.thread = static_cast<uint32_t>(thread);
      track.name = Text(name);
      track.counter.unit = UnitOf(events.unit(i));
    }
    track.counter.points.push_back({event.from_ns, static_cast<double>(event.values[i]) * events.scale(i)});
    bytes_ += sizeof(ProfileCounter::Point);
  }
}

void ZoneTimeline::AddCause(size_t thread, const FrameEvent& event) {
  // The record of a hitch comes after its frame's, on the same thread: search backwards.
  const auto late = std::find_if(frames_.rbegin(), frames_.rend(), [&](const FrameSpan& frame) {
    return frame.thread == thread && frame.sequence.empty();
  });
  if (late != frames_.rend() && late->number == event.number) late->cause = event.text;
}

// Finds the index of each thread in the profile, and the threads whose zones are not known now.
void ZoneTimeline::FindIndexes(uint64_t known_ns) {
  for (Thread& thread : threads_) {
    if (thread.index != kNoThread || thread.first_ns > known_ns) continue;
    thread.index = table_.IndexOf(pid_, thread.tid, thread.first_ns);
  }
  if (known_until_ns_ != UINT64_MAX) return;  // The gaps of the last Read stay.
  open_gaps_.Read(*recording_, [&](const FrameEvent& gap) {
    const auto known = by_serial_.find(gap.thread);
    const uint32_t attached = known == by_serial_.end() ? kNoThread : threads_[known->second].index;
    return attached != kNoThread ? std::optional(attached) : table_.Find(gap.tid);
  });
}

void ZoneTimeline::Label(std::span<ProfileSample> samples) {
  std::vector<std::vector<const Thread*>> by_index(builder_.profile().threads.size());
  for (const Thread& thread : threads_) {
    if (thread.index != kNoThread) by_index[thread.index].push_back(&thread);
  }
  const std::vector<uint64_t> unknown_from_ns = open_gaps_.UnknownFrom(by_index.size());
  std::vector<uint32_t> strings(texts_.size(), UINT32_MAX);  // of the builder, by text
  strings[0] = 0;
  const auto string = [&](uint32_t text) {
    if (strings[text] == UINT32_MAX) strings[text] = builder_.String(texts_[text]);
    return strings[text];
  };
  for (ProfileSample& sample : samples) {
    // Later samples keep the label "unknown" until the logs have been read that far.
    if (sample.merged() || sample.time_ns > std::min(read_until_ns_, known_until_ns_)) continue;
    std::optional<uint32_t> label = LabelAt(by_index[sample.thread], sample.time_ns);
    if (sample.time_ns >= unknown_from_ns[sample.thread]) label = kUnknown;
    if (label) sample.label = string(*label);
  }
}

// Returns the label at `ns`; nullopt if it is forgotten.
std::optional<uint32_t> ZoneTimeline::LabelAt(std::span<const Thread* const> threads, uint64_t ns) {
  uint32_t label = 0;
  // A thread that was attached several times has an entry for each, and at most one of them is in a zone at a time.
  for (const Thread* const thread : threads) {
    if (ns < thread->known_from_ns) return std::nullopt;
    const auto next = std::upper_bound(thread->changes.begin(), thread->changes.end(), ns,
                                       [](uint64_t at_ns, const Change& change) { return at_ns < change.ns; });
    if (next != thread->changes.begin() && std::prev(next)->label != 0) label = std::prev(next)->label;
  }
  return label;
}

void ZoneTimeline::CountBytes() {
  bytes_ = zones_.size() * sizeof(Span) + frames_.size() * BytesOfFrame();
  for (const FrameSpan& frame : frames_) bytes_ += frame.state.size();
  for (const auto& [key, track] : tracks_) bytes_ += track.counter.points.size() * sizeof(ProfileCounter::Point);
  for (const Thread& thread : threads_) bytes_ += thread.changes.size() * sizeof(Change);
}

// Adds tracks to a profile, as far as they are in the requested times.
class ZoneTimeline::Tracks {
 public:
  Tracks(Profile& profile, std::span<const std::string> texts, uint64_t from_ns, uint64_t to_ns, const KeptTimes& times)
      : profile_(profile), texts_(texts), strings_(texts.size()), from_ns_(from_ns), to_ns_(to_ns), times_(times) {}

  uint32_t Text(std::string string) {
    if (string.empty()) return 0;
    profile_.strings.push_back(std::move(string));
    return static_cast<uint32_t>(profile_.strings.size() - 1);
  }
  // Returns the profile's string for an index in texts_.
  uint32_t KnownText(uint32_t text) {
    if (strings_[text] == 0) strings_[text] = Text(texts_[text]);
    return strings_[text];
  }
  void Add(ProfileZone zone) {
    zone.from_ns = std::max(zone.from_ns, from_ns_), zone.to_ns = std::min(zone.to_ns, to_ns_);
    if (zone.from_ns >= zone.to_ns || zone.thread == kNoThread) return;
    const bool is_asked = times_.Overlaps(zone.thread, zone.from_ns, zone.to_ns);
    if (is_asked) profile_.zones.push_back(zone);
    left_out_ += is_asked ? 0 : 1;
  }
  // Leaves out the count of a frame that began before from_ns: it includes earlier time.
  void Add(ProfileCounter counter) {
    std::erase_if(counter.points, [&](const auto& point) {
      const bool is_asked = times_.Overlaps(counter.thread, point.time_ns, point.time_ns);
      return !is_asked || point.time_ns < from_ns_ || point.time_ns >= to_ns_;
    });
    profile_.counters.push_back(std::move(counter));
  }
  void LeaveOut() { ++left_out_; }

  const KeptTimes& times() const { return times_; }
  uint64_t from_ns() const { return from_ns_; }
  uint64_t to_ns() const { return to_ns_; }
  uint64_t left_out() const { return left_out_; }

 private:
  Profile& profile_;
  const std::span<const std::string> texts_;
  std::vector<uint32_t> strings_;  // of the profile, by text
  const uint64_t from_ns_, to_ns_;
  const KeptTimes& times_;
  uint64_t left_out_ = 0;
};

void ZoneTimeline::AddTo(Profile& profile, uint64_t from_ns, uint64_t to_ns, const KeptTimes& times) const {
  Tracks tracks(profile, texts_, from_ns, to_ns, times);
  for (const Span& zone : zones_) {
    tracks.Add({.from_ns = zone.from_ns,
                .to_ns = zone.to_ns,
                .thread = threads_[zone.thread].index,
                .name = tracks.KnownText(zone.name)});
  }
  const std::vector<uint64_t> unknown_from_ns = open_gaps_.UnknownFrom(profile.threads.size());
  for (const Thread& thread : threads_) {
    if (thread.index == kNoThread) continue;
    const uint64_t end_ns = std::min({to_ns, unknown_from_ns[thread.index], known_until_ns_});
    for (const OpenZone& zone : thread.open) {
      if (zone.abandoned) continue;
      tracks.Add(
          {.from_ns = zone.from_ns, .to_ns = end_ns, .thread = thread.index, .name = tracks.KnownText(zone.name)});
    }
  }
  AddFramesTo(tracks);
  std::stable_sort(profile.zones.begin(), profile.zones.end(), [](const ProfileZone& a, const ProfileZone& b) {
    return std::tuple(a.from_ns, b.to_ns) < std::tuple(b.from_ns, a.to_ns);
  });
  for (const auto& [key, track] : tracks_) {
    if (threads_[track.thread].index == kNoThread) continue;
    ProfileCounter counter = track.counter;
    counter.thread = threads_[track.thread].index;
    counter.name = tracks.KnownText(track.name);
    tracks.Add(std::move(counter));
  }
  // A thread logs a frame a moment after its end. If it was preempted in between, the profile before this
  // one did not have the frame yet, and this one begins later.
  const auto late =
      std::ranges::count_if(frames_, [&](const FrameSpan& frame) { return frame.to_ns <= losses_.since_ns; });
  profile.accounting.zones_forgotten =
      losses_.forgotten + losses_.of_ended + tracks.left_out() + static_cast<uint64_t>(late);
  if (keeping_) profile.accounting.frames_dropped = keeping_->keeper.dropped();
  profile.accounting.zone_records_lost = losses_.records + open_gaps_.lost();
}

void ZoneTimeline::AddFramesTo(Tracks& tracks) const {
  for (const FrameSpan& frame : frames_) {
    if (frame.to_ns <= tracks.from_ns() || frame.from_ns >= tracks.to_ns()) continue;
    if (!keeping_ && frame.to_ns > tracks.to_ns()) continue;  // The next profile has it.
    if (!IsIn(tracks.times(), frame)) {
      tracks.LeaveOut();
      continue;
    }
    const uint32_t thread = threads_[frame.thread].index;
    const bool is_cut = frame.from_ns < tracks.from_ns();  // its zones and waits are known in part
    tracks.Add({.from_ns = frame.from_ns,
                .to_ns = frame.to_ns,
                .thread = thread,
                .name = tracks.Text(absl::StrCat(frame.sequence.empty() ? "frame" : frame.sequence, " ", frame.number)),
                .cause = tracks.Text(frame.cause),
                .reason = tracks.Text(frame.reason),
                .state = tracks.Text(frame.state),
                .worst_by = tracks.Text(WorstByOf(frame)),
                .is_frame = true,
                .is_whole = !is_cut && tracks.times().Covers(thread, frame.from_ns, frame.to_ns),
                .is_reference = !is_cut && keeping_ && keeping_->keeper.IsReference(EndedOf(frame))});
  }
}

}  // namespace perfkit::session
