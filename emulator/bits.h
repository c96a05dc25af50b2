// Instructions on bits: logic, shifts, counts, fields.
#pragma once

#include <algorithm>

#include "forms.h"

namespace emulator {

template <class T>
struct And : Binary<And<T>, T> {
  static T of(const Instruction&, T a, T b) { return static_cast<T>(a & b); }
};
template <class T>
struct Or : Binary<Or<T>, T> {
  static T of(const Instruction&, T a, T b) { return static_cast<T>(a | b); }
};
template <class T>
struct Xor : Binary<Xor<T>, T> {
  static T of(const Instruction&, T a, T b) { return static_cast<T>(a ^ b); }
};
template <class T>
struct Not : Unary<Not<T>, T> {
  static T of(const Instruction&, T a) {
    if constexpr (std::is_same_v<T, bool>)
      return !a;
    else
      return static_cast<T>(~a);
  }
};
// Shifts by the width and more leave nothing, or the sign.
template <class T>
struct ShiftLeft {
  static void step(Thread& t, const Instruction& i) {
    uint32_t by = get<uint32_t>(t, i.operands[1]);
    set(t, i.to[0], by >= 8 * sizeof(T) ? T(0) : static_cast<T>(static_cast<uint64_t>(get<T>(t, i.operands[0])) << by));
  }
};
template <class T>
struct ShiftRight {
  static void step(Thread& t, const Instruction& i) {
    uint32_t by = get<uint32_t>(t, i.operands[1]);
    T value = get<T>(t, i.operands[0]);
    uint32_t most = 8 * sizeof(T) - 1;
    if (by > most)
      value = std::is_signed_v<T> ? static_cast<T>(value >> most) : T(0);
    else
      value = static_cast<T>(value >> by);
    set(t, i.to[0], value);
  }
};
template <class T>
struct Popc {
  static void step(Thread& t, const Instruction& i) {
    set(t, i.to[0],
        static_cast<uint32_t>(
            __builtin_popcountll(static_cast<uint64_t>(static_cast<Word<T>>(get<T>(t, i.operands[0]))))));
  }
};
template <class T>
struct Clz {
  static void step(Thread& t, const Instruction& i) {
    uint64_t word = static_cast<Word<T>>(get<T>(t, i.operands[0]));
    set(t, i.to[0], static_cast<uint32_t>(word ? __builtin_clzll(word) - (64 - 8 * sizeof(T)) : 8 * sizeof(T)));
  }
};
template <class T>
struct Reverse : Unary<Reverse<T>, T> {
  static T of(const Instruction&, T a) {
    uint64_t word = static_cast<Word<T>>(a), out = 0;
    for (size_t bit = 0; bit < 8 * sizeof(T); ++bit) out |= ((word >> bit) & 1) << (8 * sizeof(T) - 1 - bit);
    return static_cast<T>(out);
  }
};
template <class T>
struct Bfind {
  static void step(Thread& t, const Instruction& i) {
    T value = get<T>(t, i.operands[0]);
    if (std::is_signed_v<T> && value < T(0)) value = static_cast<T>(~static_cast<uint64_t>(value));
    uint64_t word = static_cast<Word<T>>(value);
    set(t, i.to[0], word ? static_cast<uint32_t>(63 - __builtin_clzll(word)) : ~0u);
  }
};
template <class T>
struct Extract {
  static void step(Thread& t, const Instruction& i) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    T value = get<T>(t, i.operands[0]);
    uint32_t at = get<uint32_t>(t, i.operands[1]) & 0xff, count = get<uint32_t>(t, i.operands[2]) & 0xff;
    bool negative =
        std::is_signed_v<T> && count && ((static_cast<uint64_t>(value) >> std::min(at + count - 1, kBits - 1)) & 1);
    uint64_t out = negative ? ~uint64_t{0} : 0;
    for (uint32_t bit = 0; bit < std::min(count, kBits); ++bit) {
      bool one = at + bit < kBits ? (static_cast<uint64_t>(value) >> (at + bit)) & 1 : negative;
      out = (out & ~(uint64_t{1} << bit)) | (static_cast<uint64_t>(one) << bit);
    }
    set(t, i.to[0], static_cast<T>(out));
  }
};
template <class T>
struct Insert {
  static void step(Thread& t, const Instruction& i) {
    uint64_t from = static_cast<uint64_t>(get<T>(t, i.operands[0])),
             into = static_cast<uint64_t>(get<T>(t, i.operands[1]));
    uint32_t at = get<uint32_t>(t, i.operands[2]) & 0xff, count = get<uint32_t>(t, i.operands[3]) & 0xff;
    for (uint32_t bit = 0; bit < count && at + bit < 8 * sizeof(T); ++bit)
      into = (into & ~(uint64_t{1} << (at + bit))) | (((from >> bit) & 1) << (at + bit));
    set(t, i.to[0], static_cast<T>(into));
  }
};

}  // namespace emulator
