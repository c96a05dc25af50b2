// Element types of PTX that C++17 has not, and rounding.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace emulator {

inline float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

// A number rounded to a float of fewer bits, to the nearest, ties to even; kDigits of the significand are stored.
template <int kDigits, int kLeastExponent, int kGreatestExponent>
double rounded(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent;
  std::frexp(value, &exponent);
  int last = std::max(exponent - 1, kLeastExponent) - kDigits;
  double scaled = std::nearbyint(std::ldexp(value, -last));
  double result = std::ldexp(scaled, last);
  if (std::fabs(result) >= std::ldexp(1.0, kGreatestExponent + 1))
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return result;
}

struct bf16 {
  uint16_t bits = 0;
  bf16() = default;
  bf16(double value) {
    if (std::isnan(value)) {
      bits = 0x7fff;
      return;
    }
    bits = static_cast<uint16_t>(bits_of(static_cast<float>(rounded<7, -126, 127>(value))) >> 16);
  }
  operator double() const { return float_of(static_cast<uint32_t>(bits) << 16); }
};

struct f16 {
  uint16_t bits = 0;
  f16() = default;
  f16(double value) {
    if (std::isnan(value)) {
      bits = 0x7fff;
      return;
    }
    double near = rounded<10, -14, 15>(value);
    uint16_t sign = std::signbit(near) ? 0x8000 : 0;
    double size = std::fabs(near);
    if (size == 0) {
      bits = sign;
    } else if (std::isinf(size)) {
      bits = sign | 0x7c00;
    } else if (size < 0x1p-14) {
      bits = sign | static_cast<uint16_t>(std::ldexp(size, 24));
    } else {
      int exponent;
      double part = std::frexp(size, &exponent);
      bits =
          sign | static_cast<uint16_t>((exponent + 14) << 10) | (static_cast<uint16_t>(std::ldexp(part, 11)) & 0x3ff);
    }
  }
  operator double() const {
    int exponent = (bits >> 10) & 31;
    double part = bits & 0x3ff;
    double size = exponent == 31
                      ? (part != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity())
                  : exponent == 0 ? std::ldexp(part, -24)
                                  : std::ldexp(part + 1024, exponent - 25);
    return bits & 0x8000 ? -size : size;
  }
};

template <class T>
constexpr bool is_float = std::is_floating_point_v<T> || std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

// While one lives, operations round as it says.
class Rounding {
 public:
  explicit Rounding(int mode) : mode_(mode) {
    if (mode_) std::fesetround(mode_);
  }
  ~Rounding() {
    if (mode_) std::fesetround(FE_TONEAREST);
  }

 private:
  int mode_;
};

template <class T>
T flushed(T value) {
  if constexpr (std::is_same_v<T, float>) {
    if (std::fabs(value) < std::numeric_limits<float>::min()) return std::copysign(0.0f, value);
  }
  return value;
}

}  // namespace emulator
