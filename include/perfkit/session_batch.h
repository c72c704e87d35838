// Batches of finished samples, which a session delivers while it runs.
//
//   auto session = perfkit::Session::Start({.on_batch = [&](const perfkit::SessionBatch& batch) { Send(batch); }});
#pragma once

#include <span>

#include "perfkit/profile.h"
#include "perfkit/session_callback.h"

namespace perfkit {

// Finished samples, and the tables that they refer to. Valid until the callback returns. SessionOptions::on_batch says
// when it is called, and what it may do.
struct SessionBatch {
  // The tables: threads, stacks, named locations, waits. Stacks, locations and modules have the same indices in all
  // batches of a session. The indices of strings, waits and ended threads may change from batch to batch. Ignore
  // `profile.samples`: the batch is in `samples`.
  const Profile& profile;
  // In the order in which they were finished. Each sample is in exactly one batch; none is merged().
  std::span<const ProfileSample> samples;
};

using BatchCallback = SessionCallback<SessionBatch>;

}  // namespace perfkit
