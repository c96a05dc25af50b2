// What the functions of the driver library share: streams, events, loaded programs, and the first fault.
//
// Streams are threads that work off a queue, so that what the host does not wait for is really not done yet.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>

#include "machine.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace emulator {

enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kNoBinary = 209,
  kInvalidPtx = 218,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kNotSupported = 801
};

inline std::mutex fault_lock;
inline std::string fault;  // of the first kernel that failed: nothing runs after it until a program is loaded

inline void say(const std::string& text) { std::fprintf(stderr, "cuda emulator: %s\n", text.c_str()); }

inline int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

inline int devices() { return number_from("CUDA_EMULATOR_DEVICES", 1); }
inline int architecture() { return number_from("CUDA_EMULATOR_SM", 90); }

inline bool has_failed() {
  std::lock_guard<std::mutex> guard(fault_lock);
  return !fault.empty();
}

struct Stream {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool busy = false, ends = false;
  std::thread worker{[this] { work(); }};

  Stream() {
    std::lock_guard<std::mutex> guard(all_lock);
    all.insert(this);
  }

  ~Stream() {
    {
      std::lock_guard<std::mutex> guard(all_lock);
      all.erase(this);
    }
    {
      std::lock_guard<std::mutex> guard(lock);
      ends = true;
    }
    changed.notify_all();
    worker.join();
  }

  void add(std::function<void()> task) {
    {
      std::lock_guard<std::mutex> guard(lock);
      queue.push_back(std::move(task));
    }
    changed.notify_all();
  }

  void wait() {
    std::unique_lock<std::mutex> guard(lock);
    changed.wait(guard, [this] { return queue.empty() && !busy; });
  }

  static void wait_for_all() {
    std::lock_guard<std::mutex> guard(all_lock);
    for (Stream* stream : all) {
      if (stream->worker.get_id() != std::this_thread::get_id()) stream->wait();
    }
  }

 private:
  static inline std::mutex all_lock;
  static inline std::set<Stream*> all;

  void work() {
    std::unique_lock<std::mutex> guard(lock);
    for (;;) {
      changed.wait(guard, [this] { return ends || !queue.empty(); });
      if (queue.empty()) return;
      auto task = std::move(queue.front());
      queue.pop_front();
      busy = true;
      guard.unlock();
      task();
      guard.lock();
      busy = false;
      changed.notify_all();
    }
  }
};

// Each record has a number; waiting is for the last one recorded before.
struct Event {
  std::mutex lock;
  std::condition_variable changed;
  uint64_t recorded = 0, reached = 0;
  std::chrono::steady_clock::time_point at{};
};

using EventHandle = std::shared_ptr<Event>*;

inline void record(EventHandle handle, Stream& stream) {
  auto event = *handle;
  uint64_t number;
  {
    std::lock_guard<std::mutex> guard(event->lock);
    number = ++event->recorded;
  }
  stream.add([event, number] {
    std::lock_guard<std::mutex> guard(event->lock);
    event->reached = std::max(event->reached, number);
    event->at = std::chrono::steady_clock::now();
    event->changed.notify_all();
  });
}

inline void await(const std::shared_ptr<Event>& event, uint64_t number) {
  std::unique_lock<std::mutex> guard(event->lock);
  event->changed.wait(guard, [&] { return event->reached >= number; });
}

inline uint64_t last_record(const std::shared_ptr<Event>& event) {
  std::lock_guard<std::mutex> guard(event->lock);
  return event->recorded;
}

inline Stream& stream_of(void* handle) {
  static Stream& usual = *new Stream;
  return handle ? *static_cast<Stream*>(handle) : usual;
}

struct Loaded {
  std::unique_ptr<Module> module;
};

struct Kernel {
  Loaded* loaded;
  std::shared_ptr<Function> function;
};

inline void* allocate(size_t size) {
  void* memory = nullptr;
  // Drivers give whole pages; vectorized code reads beyond the end of what it asked for.
  size = (std::max<size_t>(size, 1) + 255) / 256 * 256;
  if (posix_memalign(&memory, 256, size)) return nullptr;
  // What is read before it is written shows.
  std::memset(memory, 0xcb, size);
  add_memory(memory, size);
  return memory;
}

inline void release(void* memory) {
  remove_memory(memory);
  std::free(memory);
}

inline void fill(uint64_t at, uint64_t value, size_t width, size_t count) {
  for (size_t n = 0; n < count; ++n) std::memcpy(reinterpret_cast<char*>(at) + n * width, &value, width);
}

// A launch as it was asked for: the arguments are read now, as the driver does.
inline Launch prepared(Kernel* kernel, const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared_bytes,
                       void** arguments) {
  Launch launch{kernel->function.get(), {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared_bytes, {}};
  launch.parameters.resize(kernel->function->parameter_bytes + 16);
  for (size_t n = 0; n < kernel->function->parameters.size(); ++n) {
    const Parameter& parameter = kernel->function->parameters[n];
    std::memcpy(launch.parameters.data() + parameter.offset, arguments[n], parameter.size);
  }
  return launch;
}

inline void execute(const Launch& launch) {
  if (has_failed()) return;
  try {
    run(launch);
  } catch (const std::exception& error) {
    std::lock_guard<std::mutex> guard(fault_lock);
    if (fault.empty()) fault = error.what();
    say(fault);
  }
}

inline int status() { return has_failed() ? kIllegalAddress : kSuccess; }

}  // namespace emulator
