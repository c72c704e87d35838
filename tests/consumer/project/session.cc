// A profile from an installed perfkit: its stacks are whole if the component dwarf is linked, and its file is pprof's if
// exporters is.
#include <perfkit/profile_writer.h>
#include <perfkit/report.h>
#include <perfkit/session.h>

#include <cstdio>
#include <string>

using namespace std::chrono_literals;

int main(int, char** argv) {
  auto session = perfkit::Session::Start({.interval = 1ms});
  if (!session.ok()) return std::fprintf(stderr, "%s\n", std::string(session.status().message()).c_str()), 1;
  for (int i = 0; i < 100'000'000; ++i) asm volatile("");
  const auto profile = session->Stop();
  if (!profile.ok()) return 1;
  std::fputs(perfkit::FormatReport(*profile).c_str(), stdout);
  const absl::Status written = perfkit::WriteProfile(*profile, std::string(argv[0]) + ".pb.gz");
  if (!written.ok()) std::printf("%s\n", std::string(written.message()).c_str());
  return 0;
}
