// PAPI, a peer that Debian has: the same four events, started once and read at both ends of a scope.
#pragma once

#include <array>
#include <string>

namespace bench {

class PapiSet {
 public:
  using Values = std::array<long long, 4>;

  // Check error() before the first Read.
  PapiSet();
  ~PapiSet();
  PapiSet(const PapiSet&) = delete;
  PapiSet& operator=(const PapiSet&) = delete;

  const std::string& error() const { return error_; }
  int Read(Values& values) const;

 private:
  int set_;
  bool started_ = false;
  std::string error_;
};

}  // namespace bench
