// What the lanes of a warp compute together: shuffles, votes, reductions.
#include <algorithm>
#include <map>

#include "steps.h"

namespace emulator {
namespace {

using Lanes = Thread* const (&)[32];

enum Mode {
  kDown,
  kUp,
  kButterfly,
  kIndex,
  kAny,
  kAll,
  kUniform,
  kBallot,
  kAddAll,
  kMinAll,
  kMaxAll,
  kAndAll,
  kOrAll,
  kXorAll,
  kMatchAny,
  kMatchAll
};

// shfl.sync.mode.b32 d|p, a, b, c, mask: a lane's number from another one of its segment.
void shuffle(Lanes lanes, const Instruction& i) {
  uint64_t values[32] = {};
  for (int n = 0; n < 32; ++n) {
    if (lanes[n]) values[n] = lanes[n]->slots[i.operands[0]];
  }
  for (int n = 0; n < 32; ++n) {
    if (!lanes[n]) continue;
    int by = static_cast<int>(get<uint32_t>(*lanes[n], i.operands[1]) & 31);
    uint32_t control = get<uint32_t>(*lanes[n], i.operands[2]);
    int clamp = static_cast<int>(control & 31), segment = static_cast<int>(control >> 8 & 31);
    int last = (n & segment) | (clamp & ~segment), first = n & segment;
    int from = n;
    bool inside = true;
    switch (i.detail & 0xff) {
      case kUp:
        from = n - by, inside = from >= last;
        break;
      case kDown:
        from = n + by, inside = from <= last;
        break;
      case kButterfly:
        from = n ^ by, inside = from <= last;
        break;
      default:
        from = first | (by & ~segment), inside = from <= last;
        break;
    }
    if (!inside) from = n;
    if (!lanes[from]) throw Fault(lanes[n]->block->at + ": a shuffle from a lane that is not there: " + i.text);
    set(*lanes[n], i.to[0], static_cast<uint32_t>(values[from]));
    if (i.to.size() > 1) set(*lanes[n], i.to[1], inside);
  }
}

void vote(Lanes lanes, const Instruction& i) {
  uint32_t holding = 0, present = 0;
  for (int n = 0; n < 32; ++n) {
    if (!lanes[n]) continue;
    present |= 1u << n;
    if (get<bool>(*lanes[n], i.operands[0])) holding |= 1u << n;
  }
  for (Thread* lane : lanes) {
    if (!lane) continue;
    switch (i.detail & 0xff) {
      case kAny:
        set(*lane, i.to[0], holding != 0);
        break;
      case kAll:
        set(*lane, i.to[0], holding == present);
        break;
      case kUniform:
        set(*lane, i.to[0], holding == present || holding == 0);
        break;
      default:
        set(*lane, i.to[0], holding);
        break;
    }
  }
}

template <class T>
void reduce(Lanes lanes, const Instruction& i) {
  bool is_first = true;
  T result{};
  for (Thread* lane : lanes) {
    if (!lane) continue;
    T value = get<T>(*lane, i.operands[0]);
    switch (is_first ? -1 : i.detail & 0xff) {
      case -1:
        result = value;
        break;
      case kAddAll:
        result = Add<T>::of(i, result, value);
        break;
      case kMinAll:
        result = std::min(result, value);
        break;
      case kMaxAll:
        result = std::max(result, value);
        break;
      case kAndAll:
        result &= value;
        break;
      case kOrAll:
        result |= value;
        break;
      default:
        result ^= value;
        break;
    }
    is_first = false;
  }
  for (Thread* lane : lanes) {
    if (lane) set(*lane, i.to[0], result);
  }
}

void match(Lanes lanes, const Instruction& i) {
  for (Thread* lane : lanes) {
    if (!lane) continue;
    uint32_t same = 0, present = 0;
    for (int n = 0; n < 32; ++n) {
      if (!lanes[n]) continue;
      present |= 1u << n;
      if (lanes[n]->slots[i.operands[0]] == lane->slots[i.operands[0]]) same |= 1u << n;
    }
    if ((i.detail & 0xff) == kMatchAll && same != present) same = 0;
    set(*lane, i.to[0], same);
    if (i.to.size() > 1) set(*lane, i.to[1], same == present);
  }
}

void arrive(Lanes, const Instruction&) {}

// Reads which lanes are here, without waiting for any: the whole warp, for ours run one after the other.
void active(Lanes lanes, const Instruction& i) {
  uint32_t present = 0;
  for (int n = 0; n < 32; ++n) present |= lanes[n] ? 1u << n : 0;
  for (Thread* lane : lanes) {
    if (lane) set(*lane, i.to[0], present);
  }
}

int mode_in(const Parts& parts, const std::map<std::string, int>& modes) {
  for (const auto& [word, mode] : modes) {
    if (has(parts, word.c_str())) return mode;
  }
  throw std::runtime_error("a mode that is not known");
}

}  // namespace

void shuffles(Instruction& made, const Parts& parts) {
  decode_together(made, shuffle,
                  mode_in(parts, {{"down", kDown}, {"up", kUp}, {"bfly", kButterfly}, {"idx", kIndex}}) | kMasked);
}

void votes(Instruction& made, const Parts& parts) {
  decode_together(made, vote,
                  mode_in(parts, {{"any", kAny}, {"all", kAll}, {"uni", kUniform}, {"ballot", kBallot}}) | kMasked);
}

void reductions(Instruction& made, const Parts& parts) {
  int mode = mode_in(parts, {{"add", kAddAll},
                             {"min", kMinAll},
                             {"max", kMaxAll},
                             {"and", kAndAll},
                             {"or", kOrAll},
                             {"xor", kXorAll}});
  decode_together(made, made.type == Type::kS32 ? reduce<int32_t> : reduce<uint32_t>, mode | kMasked);
}

void matches(Instruction& made, const Parts& parts) {
  decode_together(made, match, (has(parts, "all") ? kMatchAll : kMatchAny) | kMasked);
}

void meetings(Instruction& made, const Parts&) { decode_together(made, arrive, kMasked); }

void active_masks(Instruction& made, const Parts&) { decode_together(made, active, kUnmasked); }

}  // namespace emulator
