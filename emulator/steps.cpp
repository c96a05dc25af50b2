// Steps that know widths alone: loads, stores, moves.
#include "steps.h"

namespace emulator {

size_t width_of(Type type) {
  switch (type) {
    case Type::kPred:
    case Type::kB8:
    case Type::kU8:
    case Type::kS8:
      return 1;
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kF16:
    case Type::kBF16:
      return 2;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
      return 8;
    case Type::kB128:
      return 16;
    default:
      return 4;
  }
}

namespace {

// A loaded number in its register, which may be wider: signed ones fill it with their sign.
uint64_t widened(Type type, const char* at, size_t width) {
  uint64_t word = 0;
  std::memcpy(&word, at, width);
  switch (type) {
    case Type::kS8:
      return static_cast<uint64_t>(static_cast<int8_t>(word));
    case Type::kS16:
      return static_cast<uint64_t>(static_cast<int16_t>(word));
    case Type::kS32:
      return static_cast<uint64_t>(static_cast<int32_t>(word));
    default:
      return word;
  }
}

uint64_t mask(size_t bytes) { return bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1; }

}  // namespace

void load(Thread& t, const Instruction& i) {
  size_t width = width_of(i.type);
  char* at =
      reach(t, t.slots[i.operands[0]] + static_cast<uint64_t>(i.offsets[0]), width * i.to.size(), Access::kRead, i);
  for (size_t n = 0; n < i.to.size(); ++n) {
    if (i.to[n] >= 0) t.slots[i.to[n]] = widened(i.type, at + n * width, width);
  }
}

void store(Thread& t, const Instruction& i) {
  size_t width = width_of(i.type), count = i.operands.size() - 1;
  char* at = reach(t, t.slots[i.operands[0]] + static_cast<uint64_t>(i.offsets[0]), width * count, Access::kWrite, i);
  for (size_t n = 0; n < count; ++n) std::memcpy(at + n * width, &t.slots[i.operands[n + 1]], width);
}

void load_parameter(Thread& t, const Instruction& i) {
  size_t width = width_of(i.type);
  // The place of a parameter among them, or an address that was computed from one.
  uint64_t at = static_cast<uint64_t>(i.offsets[0]) + (i.operands.empty() ? 0 : t.slots[i.operands[0]] - kParameters);
  if (at + width * i.to.size() > t.block->function->parameter_bytes)
    throw Fault(t.block->at + ": beyond the parameters: " + i.text);
  for (size_t n = 0; n < i.to.size(); ++n)
    t.slots[i.to[n]] = widened(i.type, t.block->parameters + at + n * width, width);
}

// Also of words to their parts and back.
void move(Thread& t, const Instruction& i) {
  size_t width = width_of(i.type);
  if (i.to.size() > 1) {
    size_t part = width / i.to.size();
    uint64_t word = t.slots[i.operands[0]];
    for (size_t n = 0; n < i.to.size(); ++n) {
      if (i.to[n] >= 0) t.slots[i.to[n]] = word >> (8 * part * n) & mask(part);
    }
    return;
  }
  size_t part = width / i.operands.size();
  uint64_t word = 0;
  for (size_t n = 0; n < i.operands.size(); ++n) word |= (t.slots[i.operands[n]] & mask(part)) << (8 * part * n);
  t.slots[i.to[0]] = word;
}

void permute(Thread& t, const Instruction& i) {
  uint64_t bytes = (t.slots[i.operands[0]] & 0xffffffffu) | t.slots[i.operands[1]] << 32;
  uint32_t selector = get<uint32_t>(t, i.operands[2]), word = 0;
  for (int n = 0; n < 4; ++n) {
    uint32_t which = selector >> (4 * n) & 15;
    uint32_t byte = bytes >> (8 * (which & 7)) & 0xff;
    // The highest bit of a selector asks for the byte's sign in all its bits.
    if (which & 8) byte = byte & 0x80 ? 0xff : 0;
    word |= byte << (8 * n);
  }
  set(t, i.to[0], word);
}

void funnel_shift(Thread& t, const Instruction& i) {
  uint64_t both = (t.slots[i.operands[0]] & 0xffffffffu) | t.slots[i.operands[1]] << 32;
  uint32_t by = get<uint32_t>(t, i.operands[2]);
  by = i.detail & 2 ? by & 31 : std::min(by, 32u);
  set(t, i.to[0], static_cast<uint32_t>(i.detail & 1 ? (both << by) >> 32 : both >> by));
}

void copy(Thread& t, const Instruction& i) {
  size_t size = t.slots[i.operands[2]];
  size_t given = i.operands.size() > 3 ? std::min<size_t>(t.slots[i.operands[3]], size) : size;
  char* to = reach(t, t.slots[i.operands[0]] + static_cast<uint64_t>(i.offsets[0]), size, Access::kWrite, i);
  if (given)
    std::memcpy(to, reach(t, t.slots[i.operands[1]] + static_cast<uint64_t>(i.offsets[1]), given, Access::kRead, i),
                given);
  std::memset(to + given, 0, size - given);
}

void nothing(Thread&, const Instruction&) {}

}  // namespace emulator
