// Numbers to text and bars. Nothing here keeps state: a panel is a function of HudData.
#include "hud_panels.h"

#include <imgui.h>
#include <perfkit/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "hud.h"

namespace game {
namespace {

constexpr ImU32 kGood = IM_COL32(92, 190, 132, 255), kSlow = IM_COL32(236, 190, 84, 255),
                kHitch = IM_COL32(240, 96, 84, 255), kRule = IM_COL32(240, 96, 84, 200),
                kGridLine = IM_COL32(160, 180, 210, 40), kLabel = IM_COL32(150, 165, 185, 255);

constexpr size_t kNamedHitches = 3;

double Ms(uint64_t ns) { return static_cast<double>(ns) / 1e6; }
double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

bool IsTime(std::string_view event) { return event.ends_with("-clock"); }

// The index of the event, or the number of events when it is not among them.
size_t Find(std::span<const std::string> events, std::string_view name) {
  return static_cast<size_t>(std::find(events.begin(), events.end(), name) - events.begin());
}

void RightText(const std::string& text, bool dim = false) {
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(text.c_str()).x);
  dim ? ImGui::TextDisabled("%s", text.c_str()) : ImGui::TextUnformatted(text.c_str());
}

std::string Decimal(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// A counter's value for people: clocks in ms.
std::string Value(std::string_view event, uint64_t value) {
  return IsTime(event) ? Decimal("%.2f ms", Ms(value)) : perfkit::FormatNumber(value);
}

// Begins a table whose first column takes what the others leave, and draws its head.
bool BeginTable(const char* id, std::initializer_list<const char*> columns, float width) {
  if (!ImGui::BeginTable(id, static_cast<int>(columns.size()), ImGuiTableFlags_RowBg)) return false;
  bool first = true;
  for (const char* column : columns) {
    ImGui::TableSetupColumn(column, first ? ImGuiTableColumnFlags_WidthStretch : ImGuiTableColumnFlags_WidthFixed,
                            first ? 1 : width);
    first = false;
  }
  ImGui::TableNextRow();
  first = true;
  for (const char* column : columns) {
    ImGui::TableNextColumn();
    if (!first) RightText(column, true);
    first = false;
  }
  return true;
}

// The graph's frame, its scale, and the words that go with it.
struct Graph {
  ImVec2 origin, size;
  double top_ms;

  float Y(double ms) const { return origin.y + size.y * static_cast<float>(1 - std::min(ms / top_ms, 1.0)); }
  void Rule(ImDrawList& list, double ms, ImU32 colour, const char* text) const {
    list.AddRectFilled({origin.x, Y(ms)}, {origin.x + size.x, Y(ms) + 1}, colour);
    list.AddText({origin.x + size.x + 8, Y(ms) - 9}, colour | IM_COL32_A_MASK, text);
  }
};

// A frame's bar: what is over the budget stands out.
void DrawBars(const HudData& data, const Graph& graph, ImDrawList& list) {
  const perfkit::FrameHistory& history = data.history;
  const float step = graph.size.x / static_cast<float>(std::max<size_t>(history.size(), 240));
  const float budget = graph.Y(Ms(data.budget_ns));
  for (size_t i = 0; i < history.size(); ++i) {
    const uint64_t wall = history[i].wall_ns;
    const bool hitch = wall > data.budget_ns;
    const float x = graph.origin.x + step * static_cast<float>(i), top = graph.Y(Ms(wall));
    const float right = x + std::max(step + (hitch ? 1.0f : 0.0f), 1.0f);
    list.AddRectFilled({x, std::max(top, budget)}, {right, graph.Y(0)}, 4 * wall > 3 * data.budget_ns ? kSlow : kGood);
    if (hitch) list.AddRectFilled({x, top}, {right, budget}, kHitch);
  }
}

// The longest `count` hitches, in their order in time.
std::vector<const perfkit::Hitch*> Longest(std::span<const perfkit::Hitch> hitches, size_t count) {
  std::vector<const perfkit::Hitch*> longest;
  for (const perfkit::Hitch& hitch : hitches) longest.push_back(&hitch);
  const auto longer = [](const perfkit::Hitch* a, const perfkit::Hitch* b) { return a->wall_ns > b->wall_ns; };
  std::stable_sort(longest.begin(), longest.end(), longer);
  longest.resize(std::min(longest.size(), count));
  std::sort(longest.begin(), longest.end(), [](auto* a, auto* b) { return a->frame < b->frame; });
  return longest;
}

// The numbers of the longest hitches, beside their bars.
void DrawNumbers(const HudData& data, const Graph& graph, ImDrawList& list) {
  const perfkit::FrameHistory& history = data.history;
  const float step = graph.size.x / static_cast<float>(std::max<size_t>(history.size(), 240));
  for (const perfkit::Hitch* hitch : Longest(data.hitches, kNamedHitches)) {
    if (hitch->frame < history[0].number) continue;
    const std::string number = std::to_string(hitch->frame);
    const float width = ImGui::CalcTextSize(number.c_str()).x + 6;
    const float x = graph.origin.x + step * static_cast<float>(hitch->frame - history[0].number + 1);
    const bool fits = x + width < graph.origin.x + graph.size.x;
    list.AddText({fits ? x + 4 : x - width, graph.Y(Ms(hitch->wall_ns)) - 2}, kLabel, number.c_str());
  }
}

// `text`, or its beginning and "..." where it is wider than `width`.
std::string Elided(std::string text, float width) {
  if (ImGui::CalcTextSize(text.c_str()).x <= width) return text;
  while (!text.empty() && ImGui::CalcTextSize((text + "...").c_str()).x > width) text.pop_back();
  return text + "...";
}

}  // namespace

void DrawFrameGraph(const HudData& data) {
  const perfkit::FrameHistory& history = data.history;
  if (history.size() == 0) return;
  const perfkit::FrameRecord& last = history[history.size() - 1];
  ImGui::SameLine();
  ImGui::TextDisabled("   frame %llu, %.1f ms", static_cast<unsigned long long>(last.number), Ms(last.wall_ns));
  uint64_t longest = data.budget_ns;
  for (size_t i = 0; i < history.size(); ++i) longest = std::max(longest, history[i].wall_ns);
  ImVec2 size = ImGui::GetContentRegionAvail();
  size.x -= 64;  // the words at the right
  const double top = std::clamp(Ms(longest) * 1.08, Ms(data.budget_ns) * 1.5, Ms(data.budget_ns) * 4);
  const Graph graph = {ImGui::GetCursorScreenPos(), size, top};
  ImDrawList& list = *ImGui::GetWindowDrawList();
  graph.Rule(list, 0, kGridLine, "0 ms");
  DrawBars(data, graph, list);
  DrawNumbers(data, graph, list);
  graph.Rule(list, Ms(data.budget_ns), kRule, Decimal("%.0f ms", Ms(data.budget_ns)).c_str());
}

void DrawHitches(const HudData& data) {
  if (data.hitches.empty()) return ImGui::TextDisabled("none yet");
  ImGui::SameLine();
  ImGui::TextDisabled("   %zu over %.0f ms, the longest", data.hitches.size(), Ms(data.budget_ns));
  for (const perfkit::Hitch* hitch : Longest(data.hitches, kNamedHitches)) {
    ImGui::TextColored(ImColor(kHitch), "frame %llu  %.1f ms", static_cast<unsigned long long>(hitch->frame),
                       Ms(hitch->wall_ns));
    if (hitch->worst_zone[0] != 0) {
      ImGui::SameLine();
      ImGui::Text("in %s", hitch->worst_zone);
    }
    ImGui::PushStyleColor(ImGuiCol_Text, ImGui::GetStyleColorVec4(ImGuiCol_TextDisabled));
    ImGui::TextWrapped("%s", hitch->cause);
    ImGui::PopStyleColor();
  }
}

namespace {

// The zones that cost most, as many as there are rows, in the order of the tree. A parent's total is at least its
// children's, so no row is without its parent.
std::vector<const perfkit::ZoneStats*> LargestZones(std::span<const perfkit::ZoneStats> zones, size_t rows) {
  std::vector<uint64_t> totals;
  for (const perfkit::ZoneStats& zone : zones) totals.push_back(zone.wall_ns);
  std::sort(totals.rbegin(), totals.rend());
  const uint64_t least = totals.size() > rows ? totals[rows] + 1 : 0;
  std::vector<const perfkit::ZoneStats*> largest;
  for (const perfkit::ZoneStats& zone : zones) {
    if (zone.wall_ns >= least) largest.push_back(&zone);
  }
  return largest;
}

const char* ThreadName(const perfkit::ZoneStats& zone) { return zone.thread.empty() ? "main" : zone.thread.c_str(); }

}  // namespace

void DrawZones(const HudData& data) {
  const size_t rows = static_cast<size_t>(ImGui::GetContentRegionAvail().y / (ImGui::GetTextLineHeight() + 2)) - 1;
  if (!BeginTable("zones", {"", "self", "total", "p50", "p99"}, 52)) return;
  for (const perfkit::ZoneStats* zone : LargestZones(data.zones, rows)) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + 10.0f * static_cast<float>(zone->depth));
    zone->depth == 0 ? ImGui::TextColored({0.52f, 0.76f, 1.0f, 1}, "%s", ThreadName(*zone))
                     : ImGui::TextUnformatted(Elided(zone->name, ImGui::GetContentRegionAvail().x).c_str());
    const uint64_t frames = std::max<uint64_t>(zone->frames, 1);
    for (uint64_t ns :
         {zone->self_wall_ns / frames, zone->wall_ns / frames, zone->wall_quantiles.p50, zone->wall_quantiles.p99}) {
      ImGui::TableNextColumn();
      RightText(Decimal(ns < 100'000'000 ? "%.2f" : "%.0f", Ms(ns)), ns < 5000);
    }
  }
  ImGui::EndTable();
}

void DrawCounters(const HudData& data) {
  if (data.zones.empty() || data.history.size() == 0) return;
  const perfkit::FrameRecord& last = data.history[data.history.size() - 1];
  if (!BeginTable("counters", {"", "last", "p50", "p99", "max"}, 88)) return;
  for (size_t i = 0; i < data.events.size(); ++i) {
    if (!data.reasons[i].empty()) continue;
    const perfkit::Quantiles& quantiles = data.zones[0].quantiles[i];
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(data.events[i].c_str());
    for (uint64_t value : {last.values[i], quantiles.p50, quantiles.p99, quantiles.max}) {
      ImGui::TableNextColumn();
      RightText((last.missing >> i & 1) != 0 ? "-" : Value(data.events[i], value));
    }
  }
  ImGui::EndTable();
  const size_t cycles = Find(data.events, "cycles"), instructions = Find(data.events, "instructions");
  const bool counted = cycles < data.events.size() && instructions < data.events.size() &&
                       data.reasons[cycles].empty() && data.reasons[instructions].empty();
  counted ? ImGui::Text("%.2f instructions a cycle", Share(last.values[instructions], last.values[cycles]))
          : ImGui::TextDisabled("no hardware counters here: software counters only");
}

// Task clock over wall time, for each thread that is attached; below it, what else it did.
void DrawThreads(const HudData& data) {
  const size_t clock = Find(data.events, "task-clock"), faults = Find(data.events, "page-faults"),
               switches = Find(data.events, "context-switches");
  for (const perfkit::ZoneStats& zone : data.zones) {
    if (zone.depth != 0 || !zone.total[clock].validity.counted()) continue;
    if (ImGui::GetContentRegionAvail().y < 2 * ImGui::GetTextLineHeight()) return;  // no room for more
    const double usage = Share(zone.total[clock].value, data.zones[0].wall_ns);
    ImGui::TextUnformatted(ThreadName(zone));
    ImGui::SameLine(96);
    ImGui::PushStyleColor(ImGuiCol_PlotHistogram, kGood);
    ImGui::ProgressBar(static_cast<float>(usage), {-1, ImGui::GetTextLineHeight()}, "");
    ImGui::PopStyleColor();
    const ImVec2 bar = ImGui::GetItemRectMin();
    ImGui::GetWindowDrawList()->AddText({bar.x + 8, bar.y - 1}, IM_COL32_WHITE,
                                        Decimal("%.0f %%", 100 * usage).c_str());
    ImGui::SetCursorPosX(96);
    ImGui::TextDisabled("%s s, %s faults, %s switches", Decimal("%.2f", Ms(zone.total[clock].value) / 1000).c_str(),
                        perfkit::FormatNumber(zone.total[faults].value).c_str(),
                        perfkit::FormatNumber(zone.total[switches].value).c_str());
  }
}

}  // namespace game
