// Sampler: the public face of a Core.
#include "perfkit/sampler.h"

#include <utility>

#include "src/sample/core.h"

namespace perfkit {

Sampler::Sampler(std::unique_ptr<sample::Core> core) : core_(std::move(core)) {}
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;

absl::StatusOr<Sampler> Sampler::Open(const SamplerOptions& options, Target target) {
  const sys::ForkBlocker fork_blocker;
  absl::StatusOr<sample::Plan> plan = sample::Plan::Make(options, target);
  if (!plan.ok()) return plan.status();
  absl::StatusOr<std::unique_ptr<sample::Core>> core = sample::Core::Open(*std::move(plan));
  if (!core.ok()) return core.status();
  return Sampler(*std::move(core));
}

absl::Status Sampler::Start() { return core_->Start(); }
absl::Status Sampler::Stop() { return core_->Stop(); }
absl::Status Sampler::Pause() { return core_->Pause(); }
absl::Status Sampler::Resume() { return core_->Resume(); }
absl::Status Sampler::SetStackBytes(uint32_t bytes) { return core_->SetStackBytes(bytes); }
absl::Status Sampler::SetRate(size_t event, SampleRate rate) { return core_->SetRate(event, rate); }
int Sampler::poll_fd() const { return core_->poll_fd(); }
size_t Sampler::Drain(absl::FunctionRef<void(const SamplerRecord&)> visit, size_t max_records) {
  return core_->Drain(visit, max_records);
}
absl::StatusOr<Sampler::Takeover> Sampler::Snapshot() { return core_->Snapshot(); }
const SampleLayout& Sampler::layout() const { return core_->plan().layout(); }
size_t Sampler::ring_bytes() const { return core_->ring_bytes(); }
size_t Sampler::rings() const { return core_->rings(); }
const absl::Status& Sampler::shrunk() const { return core_->shrunk(); }
bool Sampler::user_only(size_t event) const { return core_->user_only(event); }
SamplerStats Sampler::stats() const { return core_->Stats(); }

}  // namespace perfkit
