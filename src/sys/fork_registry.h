// Objects that release perf resources in a forked child.
//
// The kernel does not copy event mappings into a child, and an inherited descriptor still counts the parent: a child
// that read its parent's set would crash or report wrong numbers. So each owner of events registers here, and the
// child's copy releases its resources before fork() returns there. A copy that another thread was changing cannot be
// released, so ForkBlocker delays the fork. vfork, clone and raw fork system calls run no handlers: their children must
// not touch perfkit before exec. One of the mutable globals of this library (docs/design.md).
#pragma once

namespace perfkit::sys {

// A link in the registry: registered from construction to destruction, at a fixed address.
class ForkListener {
 public:
  // `on_forked_child(owner)` runs in the child, on its only thread, which is the copy of the forking thread. It may
  // close and forget descriptors and mappings; it must not allocate, lock or unmap. Thread-safe.
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

// Delays fork() as long as it lives: for code that opens or closes events, or changes data that an on_forked_child
// reads. So a child's copy is complete, and the child holds no descriptor without an owner. Thread-safe; any number at
// once, also nested. Keep one for some milliseconds at most. A thread that holds one must not fork. If another thread
// waits to fork, the constructor first waits for that fork, for 20 ms at most, unless its thread already holds one: so
// use one for many calls.
class ForkBlocker {
 public:
  ForkBlocker();
  ~ForkBlocker();
  ForkBlocker(const ForkBlocker&) = delete;
  ForkBlocker& operator=(const ForkBlocker&) = delete;
};

}  // namespace perfkit::sys
