// Verdicts under &&, || and !, and the tally of unmeasurable checks for frameworks without one. A verdict has three
// values, as in Kleene's logic: one failure makes the whole fail; otherwise one unmeasurable part makes it
// unmeasurable.
#include <cstdio>

#include "absl/strings/str_replace.h"
#include "perfkit/testing.h"

namespace perfkit {
namespace {

constexpr Outcome kPass = Outcome::kPass, kFail = Outcome::kFail, kUnmeasurable = Outcome::kUnmeasurable;

// Both reasons, if both decide.
Verdict Join(const Verdict& a, const Verdict& b) { return {a.outcome, a.why + "\n" + b.why, a.required || b.required}; }

}  // namespace

Verdict And(const Verdict& a, const Verdict& b) {
  // The strongest outcome first. The reason is that of the part which decided.
  for (const Outcome settles : {kFail, kUnmeasurable, kPass}) {
    if (a.outcome == settles && b.outcome == settles) return Join(a, b);
    if (a.outcome == settles) return a;
    if (b.outcome == settles) return b;
  }
  return a;
}

Verdict Not(const Verdict& verdict) {
  Verdict result = verdict;
  if (verdict.outcome != kUnmeasurable) result.outcome = verdict.outcome == kPass ? kFail : kPass;
  return result;
}

namespace detail {
namespace {

// Prints once, when the program ends. The only state of this component; all tests of the program share it.
class Tally {
 public:
  ~Tally() {
    std::fprintf(stderr, "perfkit: %d %s could not be measured: neither passed nor failed\n%s", count_,
                 count_ == 1 ? "check" : "checks", reasons_.c_str());
  }
  void Add(const std::string& why) {
    ++count_;
    const std::string line = "  " + absl::StrReplaceAll(why, {{"\n", "\n    "}}) + "\n";
    if (reasons_.size() < kMax && reasons_.find(line) == std::string::npos) reasons_ += line;
  }

 private:
  static constexpr size_t kMax = 4096;
  int count_ = 0;
  std::string reasons_;
};

}  // namespace

void TallyUnmeasurable(const std::string& why) {
  static Tally tally;
  tally.Add(why);
}

}  // namespace detail
}  // namespace perfkit
