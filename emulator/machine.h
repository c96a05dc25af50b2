// The state of a launch: threads, their block's shared memory, and the memory of the device.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "program.h"

namespace emulator {

struct Block;

struct Thread {
  uint64_t* slots = nullptr;
  Block* block = nullptr;
  uint32_t number = 0;  // in its block
  int32_t at = 0;       // the next instruction
  enum { kReady, kAtBarrier, kInCollective, kDone } state = kReady;
  uint64_t barrier = 0;  // the number of the barrier that it waits at
  std::vector<char> local;

  uint32_t lane() const { return number % 32; }
};

// Who wrote or read a byte last, and between which barriers.
struct Toucher {
  uint32_t launch = 0, block = 0, thread = 0;  // counted from 1
  uint32_t epoch = 0, warp_epoch = 0;
};
struct Touched {
  Toucher writer, reader;
};

struct Block {
  const Function* function = nullptr;
  const char* parameters = nullptr;
  std::vector<Thread> threads;
  std::vector<uint64_t> slots;
  std::vector<char> shared;
  std::vector<Touched> touched;
  uint32_t launch = 0, number = 0;    // of the block in its launch, from 1
  uint32_t epoch = 1;                 // barriers of the block that were passed
  std::vector<uint32_t> warp_epochs;  // collectives of each warp that were passed
  std::string at;                     // the kernel and block, for errors
};

// Raised for what a kernel may not do; the launch ends with it.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Access { kRead, kWrite, kAtomic };

// The host's address of `size` bytes that a thread may touch. Raises Fault.
char* reach(Thread& thread, uint64_t address, size_t size, Access access, const Instruction& instruction);

// Memory of the device, kept so that accesses can be checked.
void add_memory(const void* start, size_t size);
bool remove_memory(const void* start);
// Whether the driver knows an address: pageable memory of the host it copies at once.
bool has_memory(uint64_t address);
struct Launch {
  const Function* function;
  unsigned grid[3];
  unsigned block[3];
  size_t shared_bytes;  // dynamic ones
  std::vector<char> parameters;
};

// Runs a launch to its end. Raises Fault.
void run(const Launch& launch);

template <class T>
T get(const Thread& thread, int32_t slot) {
  T value;
  std::memcpy(static_cast<void*>(&value), &thread.slots[slot], sizeof(T));
  return value;
}

template <class T>
void set(Thread& thread, int32_t slot, T value) {
  if (slot < 0) return;
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  thread.slots[slot] = word;
}

}  // namespace emulator
