// The panels of the HUD: each draws into the ImGui window that is open.
#pragma once

namespace game {

struct HudData;

void DrawFrameGraph(const HudData& data);
void DrawHitches(const HudData& data);
void DrawZones(const HudData& data);
void DrawCounters(const HudData& data);
void DrawThreads(const HudData& data);

}  // namespace game
