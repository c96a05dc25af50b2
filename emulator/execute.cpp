// Runs launches: each thread goes on until it waits, in an order that differs from block to block.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

#include "machine.h"
#include "steps.h"

namespace emulator {
namespace {

// An allocation, with who touched its bytes in this launch.
struct Memory {
  uint64_t start = 1, end = 0;
  std::shared_ptr<std::vector<Touched>> touched;
};

// Of larger allocations races are not looked for: the notes take 40 bytes for each one.
constexpr size_t kLargestNoted = 8 << 20;

std::mutex memory_lock;
std::map<uint64_t, Memory> memory;  // by start
std::atomic<uint64_t> memory_version{1};
std::atomic<uint32_t> launches{0};

std::string hexadecimal(uint64_t value) {
  std::ostringstream out;
  out << "0x" << std::hex << value;
  return out.str();
}

[[noreturn]] void fail(const Thread& thread, const Instruction& instruction, const std::string& what) {
  throw Fault(thread.block->at + ", thread " + std::to_string(thread.number) + ": " + what + ": " + instruction.text);
}

// Whether nothing orders a thread's access behind what another one did.
bool races(const Thread& thread, const Toucher& other) {
  const Block& block = *thread.block;
  if (other.launch != block.launch) return false;
  if (other.block != block.number) return true;
  if (other.thread == thread.number + 1 || other.epoch != block.epoch) return false;
  uint32_t warp = thread.number / 32;
  return (other.thread - 1) / 32 != warp || other.warp_epoch == block.warp_epochs[warp];
}

// Notes an access, and fails where it races with a write, or a write with a read. Two writes may write the same.
void note(Thread& thread, Touched* touched, size_t size, Access access, const Instruction& instruction) {
  if (access == Access::kAtomic) return;
  Block& block = *thread.block;
  Toucher self{block.launch, block.number, thread.number + 1, block.epoch, block.warp_epochs[thread.number / 32]};
  for (Touched* byte = touched; byte < touched + size; ++byte) {
    const Toucher& other = access == Access::kWrite ? byte->reader : byte->writer;
    if (races(thread, other)) {
      fail(thread, instruction,
           "nothing orders this behind what thread " + std::to_string(other.thread - 1) + " of block " +
               std::to_string(other.block - 1) + " did with the same memory");
    }
    (access == Access::kWrite ? byte->writer : byte->reader) = self;
  }
}

bool find_memory(uint64_t address, Memory* found) {
  std::lock_guard<std::mutex> guard(memory_lock);
  auto after = memory.upper_bound(address);
  if (after == memory.begin()) return false;
  --after;
  if (address >= after->second.end) return false;
  *found = after->second;
  return true;
}

// A launch's accesses stay within few allocations: the last ones are asked first.
struct Known {
  uint64_t version = 0;
  Memory spans[4];
  int next = 0;
};
thread_local Known known;

const Memory* memory_of(uint64_t address, size_t size) {
  uint64_t version = memory_version.load(std::memory_order_relaxed);
  if (known.version != version) known = Known{version, {}, 0};
  for (const Memory& span : known.spans) {
    if (address >= span.start && address + size <= span.end) return &span;
  }
  Memory found;
  if (!find_memory(address, &found) || address + size > found.end) return nullptr;
  Memory& kept = known.spans[known.next++ % 4];
  kept = found;
  return &kept;
}

}  // namespace

void add_memory(const void* start, size_t size) {
  std::lock_guard<std::mutex> guard(memory_lock);
  uint64_t at = reinterpret_cast<uint64_t>(start);
  size = std::max<size_t>(size, 1);
  memory[at] = {at, at + size, size <= kLargestNoted ? std::make_shared<std::vector<Touched>>(size) : nullptr};
  ++memory_version;
}

bool remove_memory(const void* start) {
  std::lock_guard<std::mutex> guard(memory_lock);
  ++memory_version;
  return memory.erase(reinterpret_cast<uint64_t>(start)) > 0;
}

bool has_memory(uint64_t address) {
  Memory found;
  return find_memory(address, &found);
}

char* reach(Thread& thread, uint64_t address, size_t size, Access access, const Instruction& instruction) {
  if (address % (size & -size) != 0 && size <= 16)
    fail(thread, instruction, "an address that is not aligned: " + hexadecimal(address));
  Block& block = *thread.block;
  if (address < kSharedEnd) {
    if (address + size > block.shared.size())
      fail(thread, instruction,
           "beyond " + std::to_string(block.shared.size()) + " bytes of shared memory: " + std::to_string(address));
    note(thread, block.touched.data() + address, size, access, instruction);
    return block.shared.data() + address;
  }
  if (address < kLocalEnd) {
    if (address - kSharedEnd + size > thread.local.size()) fail(thread, instruction, "beyond the thread's own memory");
    return thread.local.data() + (address - kSharedEnd);
  }
  const Memory* found = memory_of(address, size);
  if (!found) fail(thread, instruction, "no memory of the device: " + hexadecimal(address));
  if (found->touched) note(thread, found->touched->data() + (address - found->start), size, access, instruction);
  return reinterpret_cast<char*>(address);
}

namespace {

// Runs a thread until it waits or ends.
void advance(Thread& thread) {
  const std::vector<Instruction>& code = thread.block->function->code;
  int32_t at = thread.at;
  for (;;) {
    const Instruction& i = code[at];
    if (i.predicate_sign && (get<bool>(thread, i.predicate) ? 1 : -1) != i.predicate_sign) {
      ++at;
      continue;
    }
    switch (i.kind) {
      case Kind::kStep:
        i.step(thread, i);
        ++at;
        continue;
      case Kind::kBranch:
        at = i.target;
        continue;
      case Kind::kTable: {
        const auto& table = thread.block->function->tables[i.target];
        uint32_t which = get<uint32_t>(thread, i.operands[0]);
        if (which >= table.size()) fail(thread, i, "a branch beyond its table");
        at = table[which];
        continue;
      }
      case Kind::kReturn:
        thread.state = Thread::kDone;
        break;
      case Kind::kBarrier:
        thread.state = Thread::kAtBarrier;
        thread.barrier = thread.slots[i.operands[0]];
        break;
      case Kind::kCollective:
        thread.state = Thread::kInCollective;
        break;
      default:
        fail(thread, i, "a trap");
    }
    thread.at = at;
    return;
  }
}

// Computes what lanes of a warp wait for together, once all that are left have come to one place.
bool meet(Block& block, uint32_t first) {
  Thread* lanes[32] = {};
  int32_t at = -1;
  uint32_t end = std::min<uint32_t>(first + 32, static_cast<uint32_t>(block.threads.size()));
  // Lanes may wait at several places; the one of the least place goes first if its mask is complete.
  std::vector<int32_t> places;
  for (uint32_t n = first; n < end; ++n) {
    if (block.threads[n].state == Thread::kInCollective) places.push_back(block.threads[n].at);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  for (int32_t place : places) {
    const Instruction& i = block.function->code[place];
    uint32_t present = 0, wanted = 0;
    std::fill(lanes, lanes + 32, nullptr);
    for (uint32_t n = first; n < end; ++n) {
      Thread& thread = block.threads[n];
      if (thread.state != Thread::kInCollective || thread.at != place) continue;
      lanes[n - first] = &thread;
      present |= 1u << (n - first);
      wanted |= i.detail & kMasked ? get<uint32_t>(thread, i.operands.back()) : ~0u;
    }
    uint32_t left = 0;
    for (uint32_t n = first; n < end; ++n) {
      if (block.threads[n].state != Thread::kDone) left |= 1u << (n - first);
    }
    if (!(i.detail & kUnmasked) && (wanted & left) != present) continue;
    at = place;
    break;
  }
  if (at < 0) return false;
  block.function->code[at].together(lanes, block.function->code[at]);
  ++block.warp_epochs[first / 32];
  for (Thread* lane : lanes) {
    if (lane) lane->state = Thread::kReady, lane->at = at + 1;
  }
  return true;
}

bool pass_barrier(Block& block) {
  Thread* waiting = nullptr;
  for (Thread& thread : block.threads) {
    if (thread.state == Thread::kDone) continue;
    if (thread.state != Thread::kAtBarrier) return false;
    if (waiting && waiting->barrier != thread.barrier)
      fail(thread, block.function->code[thread.at], "threads wait at different barriers");
    waiting = &thread;
  }
  if (!waiting) return false;
  ++block.epoch;
  for (Thread& thread : block.threads) {
    if (thread.state == Thread::kAtBarrier) thread.state = Thread::kReady, ++thread.at;
  }
  return true;
}

void run_block(Block& block, uint64_t seed) {
  size_t count = block.threads.size();
  std::vector<uint32_t> warps((count + 31) / 32);
  for (size_t n = 0; n < warps.size(); ++n) warps[n] = static_cast<uint32_t>(n);
  for (size_t left = count; left > 0;) {
    // Another order of warps each time, so that what lacks a barrier is seen to lack it.
    for (size_t n = warps.size(); n > 1; --n) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      std::swap(warps[n - 1], warps[(seed >> 33) % n]);
    }
    bool moved = false;
    for (uint32_t warp : warps) {
      size_t first = 32 * warp, end = std::min(first + 32, count);
      do {
        for (size_t n = first; n < end; ++n) {
          Thread& thread = block.threads[seed & 1 ? first + end - 1 - n : n];
          if (thread.state != Thread::kReady) continue;
          advance(thread);
          left -= thread.state == Thread::kDone;
          moved = true;
        }
      } while (meet(block, static_cast<uint32_t>(first)));
    }
    if (left > 0 && !pass_barrier(block) && !moved) {
      for (Thread& thread : block.threads) {
        if (thread.state != Thread::kDone)
          fail(thread, block.function->code[thread.at], "waits for threads that never come");
      }
    }
  }
}

void begin(Block& block, const Launch& launch, const unsigned (&at)[3]) {
  const Function& function = *launch.function;
  std::fill(block.shared.begin(), block.shared.end(),
            static_cast<char>(0xcb));  // what is read before it is written shows
  std::fill(block.touched.begin(), block.touched.end(), Touched{});
  std::fill(block.warp_epochs.begin(), block.warp_epochs.end(), 1);
  block.epoch = 1;
  block.number = 1 + at[0] + launch.grid[0] * (at[1] + launch.grid[1] * at[2]);
  block.at =
      function.name + ", block " + std::to_string(at[0]) + "," + std::to_string(at[1]) + "," + std::to_string(at[2]);
  for (size_t n = 0; n < block.threads.size(); ++n) {
    Thread& thread = block.threads[n];
    thread.slots = block.slots.data() + n * function.slots;
    std::fill(thread.slots, thread.slots + function.slots, 0xcbcbcbcbcbcbcbcbull);
    thread.block = &block, thread.number = static_cast<uint32_t>(n), thread.at = 0, thread.state = Thread::kReady;
    thread.local.assign(function.local_bytes + 32, static_cast<char>(0xcb));
    for (const Constant& constant : function.constants) thread.slots[constant.slot] = constant.value;
    unsigned x = n % launch.block[0], y = n / launch.block[0] % launch.block[1],
             z = static_cast<unsigned>(n / launch.block[0] / launch.block[1]);
    const uint64_t values[kSpecials] = {x,      y,      z,     launch.block[0],       launch.block[1], launch.block[2],
                                        at[0],  at[1],  at[2], launch.grid[0],        launch.grid[1],  launch.grid[2],
                                        n % 32, n / 32, 0,     (1ull << (n % 32)) - 1};
    for (int special = 0; special < kSpecials; ++special) {
      if (function.specials[special] >= 0) thread.slots[function.specials[special]] = values[special];
    }
  }
}

}  // namespace

void run(const Launch& launch) {
  const Function& function = *launch.function;
  size_t count = static_cast<size_t>(launch.block[0]) * launch.block[1] * launch.block[2];
  if (count == 0 || count > function.max_threads)
    throw Fault(function.name + ": " + std::to_string(count) + " threads in a block that takes " +
                std::to_string(function.max_threads));
  Block block;
  block.function = &function;
  block.parameters = launch.parameters.data();
  block.threads.resize(count);
  block.slots.resize(count * function.slots);
  // Whole vectors of 16 bytes, as devices give out even more (128): compilers load what follows the last element with
  // it, and ignore it.
  block.shared.resize((function.shared_bytes + launch.shared_bytes + 15) / 16 * 16);
  block.touched.resize(block.shared.size());
  block.warp_epochs.resize((count + 31) / 32);
  block.launch = ++launches;
  uint64_t seed = 88172645463325252ull + count;
  unsigned at[3];
  for (at[2] = 0; at[2] < launch.grid[2]; ++at[2]) {
    for (at[1] = 0; at[1] < launch.grid[1]; ++at[1]) {
      for (at[0] = 0; at[0] < launch.grid[0]; ++at[0]) {
        begin(block, launch, at);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        run_block(block, seed >> 16);
      }
    }
  }
}

}  // namespace emulator
