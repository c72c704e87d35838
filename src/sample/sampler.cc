// Sampler: the public interface of SamplerImpl.
#include "perfkit/sampler.h"

#include <utility>

#include "src/sample/sampler_impl.h"

namespace perfkit {

Sampler::Sampler(std::unique_ptr<sample::SamplerImpl> impl) : impl_(std::move(impl)) {}
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;

absl::StatusOr<Sampler> Sampler::Open(const SamplerOptions& options, Target target) {
  const sys::ForkBlocker fork_blocker;
  absl::StatusOr<std::unique_ptr<sample::SamplerImpl>> impl = sample::SamplerImpl::Open(options, target);
  if (!impl.ok()) return impl.status();
  return Sampler(*std::move(impl));
}

absl::Status Sampler::Start() { return impl_->Start(); }
absl::Status Sampler::Stop() { return impl_->Stop(); }
absl::Status Sampler::Pause() { return impl_->Pause(); }
absl::Status Sampler::Resume() { return impl_->Resume(); }
absl::Status Sampler::SetStackBytes(uint32_t bytes) { return impl_->SetStackBytes(bytes); }
absl::Status Sampler::SetRate(size_t event, SampleRate rate) { return impl_->SetRate(event, rate); }
int Sampler::poll_fd() const { return impl_->poll_fd(); }
size_t Sampler::Drain(absl::FunctionRef<void(const SamplerRecord&)> visit, size_t max_records) {
  return impl_->Drain(visit, max_records);
}
absl::StatusOr<Sampler::Takeover> Sampler::Snapshot() { return impl_->Snapshot(); }
bool Sampler::target_ended() const { return impl_->target_ended(); }
const SampleLayout& Sampler::layout() const { return impl_->plan().layout(); }
size_t Sampler::ring_bytes() const { return impl_->ring_bytes(); }
size_t Sampler::rings() const { return impl_->rings(); }
const absl::Status& Sampler::ring_status() const { return impl_->ring_status(); }
bool Sampler::user_only(size_t event) const { return impl_->user_only(event); }
SamplerStats Sampler::stats() const { return impl_->Stats(); }
std::vector<SamplerCount> Sampler::counts() const { return impl_->Counts(); }

}  // namespace perfkit
