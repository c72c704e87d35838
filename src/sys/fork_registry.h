// Objects that release perf resources in a forked child.
//
// The kernel does not copy event mappings into a child, and an inherited descriptor still counts the parent: a child
// that read its parent's set would crash or lie. So every owner of events registers here, and the child's copy is told
// to release them before fork() returns there. What another thread is in the middle of changing cannot be released:
// ForkBlocker. (vfork, clone and raw fork system calls run no handlers: their children must not touch perfkit before
// exec.) One of the three mutable globals of this library (docs/design.md).
#pragma once

namespace perfkit::sys {

// A link in the registry: registered while it lives, at a fixed address.
class ForkListener {
 public:
  // `on_forked_child(owner)` runs in the child, alone, on the forking thread's copy. It may close and forget; it must
  // not allocate, lock or unmap. Any thread.
  ForkListener(void (*on_forked_child)(void* owner), void* owner);
  ~ForkListener();
  ForkListener(const ForkListener&) = delete;
  ForkListener& operator=(const ForkListener&) = delete;

  void OnForkedChild() const { on_forked_child_(owner_); }

 private:
  friend struct ForkRegistry;
  void (*on_forked_child_)(void*);
  void* owner_;
  ForkListener* next_ = nullptr;
  ForkListener* previous_ = nullptr;
};

// While one lives, fork() waits: for whoever opens or closes events, or changes what an on_forked_child looks at. So a
// child's copy is whole, and holds no descriptor that nobody knows of. Any thread, any number at once, also one within
// another; some milliseconds at most. The thread that has one must not fork. If another thread waits to fork, a thread
// that has none yet lets it go first, for 20 ms at most: have one around many.
class ForkBlocker {
 public:
  ForkBlocker();
  ~ForkBlocker();
  ForkBlocker(const ForkBlocker&) = delete;
  ForkBlocker& operator=(const ForkBlocker&) = delete;
};

}  // namespace perfkit::sys
