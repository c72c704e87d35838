// The rooms of src/ and the floors they are on: the table for the rules and for the drawing in docs/design.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace perfkit::tidy {

struct Room {
  std::string_view name;     // The folder below src/: "count", "unwind/dwarf/cfi".
  int floor;                 // A room may include rooms on lower floors only.
  std::string_view purpose;  // For the drawing.
};

// From the highest floor to the lowest.
std::span<const Room> Rooms();

// Returns the room, or nullptr if there is none by that name.
const Room* FindRoom(std::string_view name);

// Returns the room that a folder below src/ belongs to: the one of that name, or the innermost around it. Returns
// nullptr if there is none, also for a folder between a room and the rooms inside it, as "unwind/dwarf".
const Room* RoomOf(std::string_view folder);

// Returns the room of "src/<folder>/<file>", of "include/perfkit/<header>" or of "perfkit/<header>". Returns nullptr for
// other paths, and if there is none.
const Room* RoomOfFile(std::string_view path);

// Returns the drawing: one line for each room, without the fences.
std::string DrawFloors();

// Returns `page` with the drawing in its place, which is the fenced block after kDrawingMark; `page` itself if it lacks
// one.
std::string WithDrawing(std::string_view page);
inline constexpr std::string_view kDrawingMark =
    "<!-- Generated from tests/tidy/floors.cc: PERFKIT_UPDATE_DOCS=1 tidy_test \"[floors]\" -->";

}  // namespace perfkit::tidy
