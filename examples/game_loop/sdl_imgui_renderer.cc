// ImGui hands out lists of commands: a clip rectangle, a texture, and a run of indices into shared vertices. Each is
// one SDL_RenderGeometryRaw, which takes ImGui's vertices as they lie: position, texture coordinate, colour, 20 bytes
// each.
#include "sdl_imgui_renderer.h"

#include <imgui.h>

#include <algorithm>

namespace game {
namespace {

SDL_Rect Clipped(const ImDrawCmd& command, const ImDrawData& data) {
  const float left = std::max(command.ClipRect.x - data.DisplayPos.x, 0.0f);
  const float top = std::max(command.ClipRect.y - data.DisplayPos.y, 0.0f);
  const float right = std::min(command.ClipRect.z - data.DisplayPos.x, data.DisplaySize.x);
  const float bottom = std::min(command.ClipRect.w - data.DisplayPos.y, data.DisplaySize.y);
  return {static_cast<int>(left), static_cast<int>(top), static_cast<int>(right - left),
          static_cast<int>(bottom - top)};
}

}  // namespace

SdlImguiRenderer::SdlImguiRenderer(SDL_Renderer* renderer) : renderer_(renderer) {
  ImGuiIO& io = ImGui::GetIO();
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  unsigned char* pixels;
  int width, height;
  io.Fonts->GetTexDataAsRGBA32(&pixels, &width, &height);
  fonts_.reset(SDL_CreateTexture(renderer, SDL_PIXELFORMAT_RGBA32, SDL_TEXTUREACCESS_STATIC, width, height));
  SDL_UpdateTexture(fonts_.get(), nullptr, pixels, 4 * width);
  SDL_SetTextureBlendMode(fonts_.get(), SDL_BLENDMODE_BLEND);
  io.Fonts->SetTexID(fonts_.get());
}

void SdlImguiRenderer::Render(const ImDrawData& data) {
  for (int i = 0; i < data.CmdListsCount; ++i) RenderList(data, *data.CmdLists[i]);
  SDL_RenderSetClipRect(renderer_, nullptr);
}

void SdlImguiRenderer::RenderList(const ImDrawData& data, const ImDrawList& list) {
  for (const ImDrawCmd& command : list.CmdBuffer) {
    if (command.UserCallback != nullptr) {
      // The special value asks for the default state, which is what every command here sets for itself.
      if (command.UserCallback != ImDrawCallback_ResetRenderState) command.UserCallback(&list, &command);
      continue;
    }
    const SDL_Rect clip = Clipped(command, data);
    if (clip.w <= 0 || clip.h <= 0) continue;
    SDL_RenderSetClipRect(renderer_, &clip);
    const ImDrawVert* vertices = list.VtxBuffer.Data + command.VtxOffset;
    SDL_RenderGeometryRaw(
        renderer_, static_cast<SDL_Texture*>(command.GetTexID()), &vertices->pos.x, sizeof(ImDrawVert),
        reinterpret_cast<const SDL_Color*>(&vertices->col), sizeof(ImDrawVert), &vertices->uv.x, sizeof(ImDrawVert),
        list.VtxBuffer.Size - static_cast<int>(command.VtxOffset), list.IdxBuffer.Data + command.IdxOffset,
        static_cast<int>(command.ElemCount), sizeof(ImDrawIdx));
  }
}

}  // namespace game
