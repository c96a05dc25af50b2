// Functions as XLA's custom calls of versions 1 to 3 call them.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The example of XLA's "CustomCall": z[0][0] = x[1] + y[1][0], and so on.
void myfunc(void* out, void** in) {
  const float* x = in[0];
  const float(*y)[3] = in[1];
  float(*z)[3] = out;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) z[i][j] = x[1] + y[1][0] + 3 * i + j;
}

// (f32[4], s32[], f32[0]) from a token, a pair (f32[4], s32[]) and an array without elements.
void several(void** out, void** in) {
  const float* x = in[1];
  float* y = out[0];
  for (int i = 0; i < 4; ++i) y[i] = 2 * x[i];
  *(int32_t*)out[1] = *(const int32_t*)in[2] + (in[0] == NULL);
}

// The array's elements in the order of its memory.
void memory(float* out, void** in) { memcpy(out, in[0], 6 * sizeof(float)); }

// Counts up in the buffer that the operand and the result share.
void in_place(int32_t* out, void** in) {
  if (in[0] == out) out[0] += 1;
}

void one_tuple(void** out, void** in) { *(float*)out[0] = *(const float*)in[0] + 1; }

void one_array(float* out, void** in) {
  out[0] = *(const float*)in[0];
  out[1] = out[0] + 1;
}

// Version 3: the length of the configuration; a negative number is a failure.
void with_status(float* out, void** in, const char* opaque, size_t length, void* status) {
  *out = (float)length + (length ? opaque[0] - 'a' : 0);
  if (*(const float*)in[0] < 0) ((char*)status)[32] = 1;
}
