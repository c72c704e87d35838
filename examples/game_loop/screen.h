// A window without a screen: SDL with its dummy video driver and its software renderer, so that a machine without a
// display or a GPU draws the same picture.
#pragma once

#include <SDL.h>

#include <memory>
#include <string>

namespace game {

struct SdlFree {
  void operator()(SDL_Texture* texture) const { SDL_DestroyTexture(texture); }
  void operator()(SDL_Surface* surface) const { SDL_FreeSurface(surface); }
};
using TexturePtr = std::unique_ptr<SDL_Texture, SdlFree>;
using SurfacePtr = std::unique_ptr<SDL_Surface, SdlFree>;

// One at a time. The main thread's.
class Screen {
 public:
  static constexpr int kWidth = 1600, kHeight = 900;

  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // False when SDL refused; SDL_GetError() says why.
  bool ok() const { return renderer_ != nullptr; }
  SDL_Renderer* renderer() const { return renderer_; }

  void Present() { SDL_RenderPresent(renderer_); }
  // Writes what has been drawn since the last Present. False, with a reason, when that failed.
  bool SavePicture(const std::string& path, std::string* reason) const;

 private:
  SDL_Window* window_ = nullptr;
  SDL_Renderer* renderer_ = nullptr;
};

}  // namespace game
