// Products of small matrices whose elements are spread over a warp's lanes (PTX ISA, "Warp-level matrix instructions").
#include <algorithm>

#include "steps.h"

namespace emulator {
namespace {

using Lanes = Thread* const (&)[32];

struct Place {
  int row, column;
};

// Where elements of one lane stand; `group` is lane / 4, `in_group` lane % 4.
Place of_a(Type type, int lane, int n) {
  int group = lane / 4, in_group = lane % 4;
  if (type == Type::kF64) return {group, in_group};
  if (type == Type::kF32) return {group + 8 * (n & 1), in_group + 4 * (n >> 1)};  // tf32
  int packed = type == Type::kS8 || type == Type::kU8 ? 4 : 2;
  int word = n / packed;
  return {group + 8 * (word & 1), in_group * packed + n % packed + 4 * packed * (word >> 1)};
}

Place of_b(Type type, int lane, int n) {
  int group = lane / 4, in_group = lane % 4;
  if (type == Type::kF64) return {in_group, group};
  if (type == Type::kF32) return {in_group + 4 * n, group};
  int packed = type == Type::kS8 || type == Type::kU8 ? 4 : 2;
  return {in_group * packed + n % packed + 4 * packed * (n / packed), group};
}

Place of_c(int lane, int n) { return {lane / 4 + 8 * (n >> 1), lane % 4 * 2 + (n & 1)}; }

double element(Type type, uint64_t word, int part) {
  switch (type) {
    case Type::kF64: {
      double value;
      std::memcpy(&value, &word, 8);
      return value;
    }
    // Tensor cores leave out the low bits of tf32.
    case Type::kF32:
      return float_of(static_cast<uint32_t>(word) & 0xffffe000u);
    case Type::kU8:
      return static_cast<uint8_t>(word >> (8 * part));
    case Type::kS8:
      return static_cast<int8_t>(word >> (8 * part));
    case Type::kF16: {
      f16 half;
      half.bits = static_cast<uint16_t>(word >> (16 * part));
      return half;
    }
    default: {
      bf16 half;
      half.bits = static_cast<uint16_t>(word >> (16 * part));
      return half;
    }
  }
}

int per_word(Type type) {
  return type == Type::kF64 || type == Type::kF32 ? 1 : type == Type::kS8 || type == Type::kU8 ? 4 : 2;
}

// mma.sync.aligned.mMnNkK.row.col.D.A.B.C d, a, b, c. made.type is that of C and D, made.from that of A and B.
void multiply(Lanes lanes, const Instruction& i) {
  for (Thread* lane : lanes) {
    if (!lane) throw Fault("a matrix product without all lanes: " + i.text);
  }
  int k = i.detail & 0xff;
  static thread_local double a[16][64], b[64][8], c[16][8];
  int a_words = i.sizes[0], b_words = i.sizes[1], c_words = i.sizes[2];
  int packed = per_word(i.from), c_packed = i.type == Type::kF16 ? 2 : 1;
  for (int lane = 0; lane < 32; ++lane) {
    const Thread& t = *lanes[lane];
    for (int n = 0; n < a_words * packed; ++n) {
      Place at = of_a(i.from, lane, n);
      a[at.row][at.column] = element(i.from, t.slots[i.operands[n / packed]], n % packed);
    }
    for (int n = 0; n < b_words * packed; ++n) {
      Place at = of_b(i.from, lane, n);
      b[at.row][at.column] = element(i.from, t.slots[i.operands[a_words + n / packed]], n % packed);
    }
    for (int n = 0; n < c_words * c_packed; ++n) {
      Place at = of_c(lane, n);
      uint64_t word = t.slots[i.operands[a_words + b_words + n / c_packed]];
      if (i.type == Type::kS32)
        c[at.row][at.column] = static_cast<int32_t>(word);
      else if (i.type == Type::kF32)
        c[at.row][at.column] = float_of(static_cast<uint32_t>(word));
      else
        c[at.row][at.column] = element(i.type, word, n % c_packed);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    Thread& t = *lanes[lane];
    uint64_t word = 0;
    for (int n = 0; n < c_words * c_packed; ++n) {
      Place at = of_c(lane, n);
      double sum = c[at.row][at.column];
      for (int inner = 0; inner < k; ++inner) sum += a[at.row][inner] * b[inner][at.column];
      uint64_t bits = 0;
      if (i.type == Type::kS32)
        bits = static_cast<uint32_t>(static_cast<int64_t>(sum));
      else if (i.type == Type::kF32)
        bits = bits_of(static_cast<float>(sum));
      else if (i.type == Type::kF64)
        std::memcpy(&bits, &sum, 8);
      else
        bits = f16(sum).bits;
      word = n % c_packed ? word | bits << 16 : bits;
      if (n % c_packed == c_packed - 1) t.slots[i.to[n / c_packed]] = word;
    }
  }
}

// ldmatrix.sync.aligned.m8n8.xN[.trans].shared.b16 d, [a]: rows of eight halves, whose addresses eight lanes each give.
void load_matrices(Lanes lanes, const Instruction& i) {
  uint16_t tiles[4][8][8];
  int count = static_cast<int>(i.to.size());
  for (int row = 0; row < 8 * count; ++row) {
    Thread* lane = lanes[row];
    if (!lane) throw Fault("ldmatrix without all lanes: " + i.text);
    uint64_t at = lane->slots[i.operands[0]] + static_cast<uint64_t>(i.offsets[0]);
    std::memcpy(tiles[row / 8][row % 8], reach(*lane, at, 16, Access::kRead, i), 16);
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int tile = 0; tile < count; ++tile) {
      int row = lane / 4, column = lane % 4 * 2;
      uint32_t low = i.detail & 1 ? tiles[tile][column][row] : tiles[tile][row][column];
      uint32_t high = i.detail & 1 ? tiles[tile][column + 1][row] : tiles[tile][row][column + 1];
      if (lanes[lane]) set(*lanes[lane], i.to[tile], low | high << 16);
    }
  }
}

Type type_named(const std::string& name) {
  if (name == "f16") return Type::kF16;
  if (name == "bf16") return Type::kBF16;
  if (name == "tf32" || name == "f32") return Type::kF32;
  if (name == "f64") return Type::kF64;
  if (name == "s8") return Type::kS8;
  if (name == "u8") return Type::kU8;
  if (name == "s32") return Type::kS32;
  throw std::runtime_error("a matrix of " + name + " is not emulated");
}

}  // namespace

void matrix_loads(Instruction& made, const Parts& parts) {
  decode_together(made, load_matrices, has(parts, "trans") ? 1 : 0);
}

void matrix_products(Instruction& made, const Parts& parts) {
  size_t shape = 0;
  while (shape < parts.size() && !(parts[shape][0] == 'm' && parts[shape].find('k') != std::string::npos)) ++shape;
  const std::string& named = parts.at(shape);
  bool is_known = named.rfind("m16n8k", 0) == 0 || named == "m8n8k4";
  made.type = type_named(parts[parts.size() - 4]);
  made.from = type_named(parts[parts.size() - 3]);
  if (!is_known || parts[parts.size() - 2] != parts[parts.size() - 3] ||
      (named == "m8n8k4") != (made.from == Type::kF64))
    throw std::runtime_error("not emulated");
  decode_together(made, multiply, std::stoi(named.substr(named.find('k') + 1)));
}

}  // namespace emulator
