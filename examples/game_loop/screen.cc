// The window, its renderer, and reading back what was drawn.
#include "screen.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include "png.h"

namespace game {

Screen::Screen() {
  SDL_SetHint(SDL_HINT_VIDEODRIVER, "dummy");  // an environment variable of the user's still wins
  SDL_SetHint(SDL_HINT_RENDER_DRIVER, "software");
  if (SDL_InitSubSystem(SDL_INIT_VIDEO) != 0) return;
  window_ = SDL_CreateWindow("perfkit: game loop", SDL_WINDOWPOS_UNDEFINED, SDL_WINDOWPOS_UNDEFINED, kWidth, kHeight,
                             SDL_WINDOW_HIDDEN);
  if (window_ != nullptr) renderer_ = SDL_CreateRenderer(window_, -1, SDL_RENDERER_SOFTWARE);
}

Screen::~Screen() {
  if (renderer_ != nullptr) SDL_DestroyRenderer(renderer_);
  if (window_ != nullptr) SDL_DestroyWindow(window_);
  SDL_QuitSubSystem(SDL_INIT_VIDEO);
}

bool Screen::SavePicture(const std::string& path, std::string* reason) const {
  std::vector<uint8_t> rgb(size_t{kWidth} * kHeight * 3);
  if (SDL_RenderReadPixels(renderer_, nullptr, SDL_PIXELFORMAT_RGB24, rgb.data(), kWidth * 3) != 0) {
    *reason = SDL_GetError();
    return false;
  }
  if (WritePng(path, kWidth, kHeight, rgb)) return true;
  *reason = std::strerror(errno);
  return false;
}

}  // namespace game
