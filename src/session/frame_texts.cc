// Joins the texts of a frame, within bounds.
#include "src/session/frame_texts.h"

#include "absl/strings/str_cat.h"
#include "src/session/frame_keeper.h"

namespace perfkit::session {
namespace {

constexpr char kMore[] = "; (more)";

}  // namespace

void FrameTexts::Add(uint32_t thread, const count::FrameEvent& event) {
  if (waiting_.size() == kMaxWaiting) waiting_.erase(waiting_.begin());
  waiting_.push_back({.ns = event.from_ns,
                      .thread = thread,
                      .sequence = event.id,
                      .is_state = event.kind == count::ZoneRecordKind::kState,
                      .text = std::string(event.text) + (event.is_cut ? "... (cut)" : "")});
}

void FrameTexts::Append(const Waiting& text, const FrameTextTarget& frame) {
  std::string& all = text.is_state ? frame.state : frame.reason;
  if (text.is_state && all.ends_with(kMore)) return;
  if (text.is_state && all.size() + text.text.size() > kMaxStateBytes) {
    absl::StrAppend(&all, kMore);
    return;
  }
  absl::StrAppend(&all, all.empty() ? "" : "; ", text.text);
}

void FrameTexts::TakeOwn(const FrameTextTarget& frame) {
  std::erase_if(waiting_, [&](const Waiting& text) {
    if (text.sequence != frame.sequence || text.thread != frame.thread) return false;
    // Times are exact only to some nanoseconds. An earlier text is of a frame that was not counted.
    if (text.ns + kFrameRoundingNs >= frame.from_ns) Append(text, frame);
    return true;
  });
}

void FrameTexts::TakeOthers(const FrameTextTarget& frame) {
  std::erase_if(waiting_, [&](const Waiting& text) {
    if (text.sequence != frame.sequence || text.thread == frame.thread || text.ns >= frame.to_ns) return false;
    if (text.ns >= frame.from_ns) Append(text, frame);  // an earlier one is of a frame that was not counted
    return true;
  });
}

}  // namespace perfkit::session
