// Fonts, style and places of the panels. What is in them: hud_panels.cc.
#include "hud.h"

#include <imgui.h>

#include <filesystem>

#include "hud_panels.h"
#include "screen.h"

namespace game {
namespace {

constexpr char kFont[] = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
constexpr char kBoldFont[] = "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf";
constexpr char kMonoFont[] = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf";

// The font that Debian installs with most of its desktops; else the one inside ImGui, which is smaller.
ImFont* AddFont(const char* path, float pixels) {
  ImFontAtlas& fonts = *ImGui::GetIO().Fonts;
  ImFontConfig config;
  config.OversampleH = 1;  // the texture is not filtered: one texel a pixel, at whole pixels
  config.PixelSnapH = true;
  return std::filesystem::exists(path) ? fonts.AddFontFromFileTTF(path, pixels, &config) : fonts.AddFontDefault();
}

void SetStyle() {
  ImGui::StyleColorsDark();
  ImGuiStyle& style = ImGui::GetStyle();
  style.AntiAliasedLinesUseTex = false;  // those need a texture that is filtered; the font's is not
  style.WindowRounding = 0;              // SDL's software renderer fills rectangles fast, and fans of triangles slowly
  style.WindowBorderSize = 1;
  style.WindowPadding = {14, 10};
  style.CellPadding = {6, 1};
  style.ItemSpacing = {8, 4};
  style.Colors[ImGuiCol_WindowBg] = {0.045f, 0.06f, 0.095f, 0.86f};
  style.Colors[ImGuiCol_Border] = {0.40f, 0.50f, 0.66f, 0.35f};
  style.Colors[ImGuiCol_Text] = {0.90f, 0.93f, 0.97f, 1};
  style.Colors[ImGuiCol_TextDisabled] = {0.55f, 0.61f, 0.70f, 1};
  style.Colors[ImGuiCol_TableRowBg] = {0, 0, 0, 0};
  style.Colors[ImGuiCol_TableRowBgAlt] = {1, 1, 1, 0.035f};
}

struct Rect {
  float x, y, width, height;
};
constexpr float kRight = 990, kGap = 12;
constexpr Rect kGraph = {kGap, kGap, kRight - 2 * kGap, 176};
constexpr Rect kHitches = {kRight, kGap, Screen::kWidth - kRight - kGap, 232};
constexpr Rect kZones = {kRight, 256, Screen::kWidth - kRight - kGap, Screen::kHeight - 256 - kGap};
constexpr Rect kCounters = {kGap, 696, 552, Screen::kHeight - 696 - kGap};
constexpr Rect kText = {kGap, kGap, Screen::kWidth - 2 * kGap, Screen::kHeight - 2 * kGap};
constexpr Rect kThreads = {576, 696, kRight - 576 - kGap, Screen::kHeight - 696 - kGap};

// A panel at a fixed place, with a title. `draw` fills it.
template <class F>
void Panel(const char* title, ImFont* font, Rect rect, F draw) {
  ImGui::SetNextWindowPos({rect.x, rect.y});
  ImGui::SetNextWindowSize({rect.width, rect.height});
  ImGui::Begin(title, nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoInputs);
  ImGui::PushFont(font);
  ImGui::TextColored({0.52f, 0.76f, 1.0f, 1}, "%s", title);
  ImGui::PopFont();
  draw();
  ImGui::End();
}

}  // namespace

Hud::Context::Context() {
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;  // nothing is kept
  io.DisplaySize = {Screen::kWidth, Screen::kHeight};
  text = AddFont(kFont, 16);
  title = AddFont(kBoldFont, 16);
  mono = AddFont(kMonoFont, 15);
  SetStyle();
}

Hud::Context::~Context() { ImGui::DestroyContext(); }

Hud::Hud(SDL_Renderer* renderer) : imgui_(renderer) {}
Hud::~Hud() = default;

void Hud::Draw(const HudData& data) {
  ImGui::GetIO().DeltaTime = 1.0f / 60;
  ImGui::NewFrame();
  Panel("Frame time", context_.title, kGraph, [&] { DrawFrameGraph(data); });
  Panel("Hitches", context_.title, kHitches, [&] { DrawHitches(data); });
  Panel("Zones, ms a frame", context_.title, kZones, [&] { DrawZones(data); });
  Panel("Counters, main thread, a frame", context_.title, kCounters, [&] { DrawCounters(data); });
  Panel("Threads, share of a CPU", context_.title, kThreads, [&] { DrawThreads(data); });
  ImGui::Render();
  imgui_.Render(*ImGui::GetDrawData());
}

void Hud::DrawText(const char* title, const std::string& text) {
  ImGui::NewFrame();
  Panel(title, context_.title, kText, [&] {
    ImGui::PushFont(context_.mono);
    ImGui::TextWrapped("%s", text.c_str());
    ImGui::PopFont();
  });
  ImGui::Render();
  imgui_.Render(*ImGui::GetDrawData());
}

}  // namespace game
