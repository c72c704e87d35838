// Who has to let go when the process forks.
//
// The kernel does not copy event mappings into a child, and an inherited descriptor still counts the parent: a child
// that read its parent's set would crash or lie. So every owner of events registers here, and the child's copy is told
// to let go before fork() returns there. What another thread is in the middle of changing cannot be let go of: NoFork.
// (vfork, clone and raw fork system calls run no handlers: their children must not touch perfkit before exec.)
// One of the three mutable globals of this library (docs/design.md).
#pragma once

namespace perfkit::sys {

// A link in the registry: registered while it lives, at a fixed address.
class ForkWatch {
 public:
  // `let_go(owner)` runs in the child, alone, on the forking thread's copy. It may close and forget; it must not
  // allocate, lock or unmap. Any thread.
  ForkWatch(void (*let_go)(void* owner), void* owner);
  ~ForkWatch();
  ForkWatch(const ForkWatch&) = delete;
  ForkWatch& operator=(const ForkWatch&) = delete;

  void LetGo() const { let_go_(owner_); }

 private:
  friend struct ForkRegistry;
  void (*let_go_)(void*);
  void* owner_;
  ForkWatch* next_ = nullptr;
  ForkWatch* previous_ = nullptr;
};

// While one lives, fork() waits: for whoever opens or closes events, or changes what a let_go looks at. So a child's
// copy is whole, and holds no descriptor that nobody knows of. Any thread, any number at once, also one within another;
// some milliseconds at most. The thread that has one must not fork. Where somebody waits to fork, a thread that has
// none yet lets him, for 20 ms at most: have one around many.
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;
};

}  // namespace perfkit::sys
