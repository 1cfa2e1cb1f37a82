/* Kernels of the test plans, in the ABI of docs/PlanFormat.md. */

#include <stdint.h>

/* out[i] = in[i] * 2 + (coordinate on axis 0) + 100 * (run of the loop) for i
   in [begin, end). */
void test_scale(void *const *buffers, const int64_t *context, int64_t begin,
                int64_t end) {
  const float *in = buffers[0];
  float *out = buffers[1];
  for (int64_t i = begin; i < end; ++i)
    out[i] = in[i] * 2.0f + (float)context[0] + 100.0f * (float)context[2];
}

static uint16_t to_bf16(float value) {
  union {
    float value;
    uint32_t bits;
  } wide = {value};
  return (wide.bits + 0x7fff + ((wide.bits >> 16) & 1)) >> 16;
}

static float from_bf16(uint16_t bits) {
  union {
    uint32_t bits;
    float value;
  } wide = {(uint32_t)bits << 16};
  return wide.value;
}

/* copy[i] = w[i] as bf16. */
void test_round(void *const *buffers, const int64_t *context, int64_t begin,
                int64_t end) {
  const float *w = buffers[0];
  uint16_t *copy = buffers[1];
  (void)context;
  for (int64_t i = begin; i < end; ++i)
    copy[i] = to_bf16(w[i]);
}

/* loss = copy[0]. */
void test_first(void *const *buffers, const int64_t *context, int64_t begin,
                int64_t end) {
  const uint16_t *copy = buffers[0];
  float *loss = buffers[1];
  (void)context;
  (void)begin;
  (void)end;
  *loss = from_bf16(copy[0]);
}

/* As test_update, but loss = copy[0] before, and the copy follows. */
void test_update_copy(void *const *buffers, const int64_t *context,
                      int64_t begin, int64_t end) {
  const float *g = buffers[0];
  float *w = buffers[1];
  uint16_t *copy = buffers[2];
  float *loss = buffers[3];
  (void)context;
  if (begin == 0)
    *loss = from_bf16(copy[0]);
  for (int64_t i = begin; i < end; ++i) {
    w[i] -= 0.5f * g[i];
    copy[i] = to_bf16(w[i]);
  }
}

/* w -= 0.5 * g; loss = w[0] before. */
void test_update(void *const *buffers, const int64_t *context, int64_t begin,
                 int64_t end) {
  const float *g = buffers[0];
  float *w = buffers[1];
  float *loss = buffers[2];
  (void)context;
  if (begin == 0)
    *loss = w[0];
  for (int64_t i = begin; i < end; ++i)
    w[i] -= 0.5f * g[i];
}
