// Reads /proc/PID/stat (man proc_pid_stat): the state is field 3, the start time field 22.
#include "task_watch.h"

#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace tool {
namespace {

struct TaskStat {
  char state = 'X';        // also if there is no such task
  std::string start_time;  // in ticks since the machine's start
};

TaskStat ReadStat(const std::string& folder) {
  std::ifstream file(folder + "/stat");
  std::string text;
  std::getline(file, text, '\0');
  const size_t name_end = text.rfind(')');  // a name may hold blanks and brackets
  if (name_end == text.npos) return {};
  std::istringstream words(text.substr(name_end + 1));
  TaskStat stat;
  words >> stat.state;
  for (int field = 4; field <= 22; ++field) words >> stat.start_time;
  return stat;
}

bool IsDead(const TaskStat& stat) { return stat.state == 'Z' || stat.state == 'X'; }

// A process lives on in its other threads when its first one has ended.
bool AnyThreadLives(const std::string& folder) {
  std::error_code error;  // Reading the folder fails if the process ends meanwhile.
  std::filesystem::directory_iterator thread(folder + "/task", error);
  for (; thread != std::filesystem::directory_iterator(); thread.increment(error)) {
    if (!IsDead(ReadStat(thread->path()))) return true;
  }
  return false;
}

}  // namespace

bool HasEnded(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

TaskWatch::TaskWatch(const std::vector<perfkit::Target>& targets) {
  using Kind = perfkit::Target::Kind;
  for (const perfkit::Target& target : targets) {
    if (target.kind != Kind::kProcess && target.kind != Kind::kThread) continue;
    const std::string folder = "/proc/" + std::to_string(target.id);
    tasks_.push_back({folder, ReadStat(folder).start_time, target.kind == Kind::kProcess});
  }
}

bool TaskWatch::Lives(const Task& task) {
  const TaskStat stat = ReadStat(task.folder);
  if (stat.start_time != task.start_time) return false;
  return !IsDead(stat) || (task.is_process && AnyThreadLives(task.folder));
}

bool TaskWatch::AllEnded() const { return !tasks_.empty() && std::none_of(tasks_.begin(), tasks_.end(), Lives); }

}  // namespace tool
