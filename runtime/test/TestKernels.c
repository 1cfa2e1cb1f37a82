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

/* out[i] = in[i] * 3. */
void test_triple(void *const *buffers, const int64_t *context, int64_t begin,
                 int64_t end) {
  const float *in = buffers[0];
  float *out = buffers[1];
  (void)context;
  for (int64_t i = begin; i < end; ++i)
    out[i] = in[i] * 3.0f;
}

/* Element i of test_triple's results for some devices, added up in the order of
   the tree (base/ReductionTree.h). */
static float add_up(void *const *buffers, int64_t devices, int64_t i) {
  int64_t left = 1;
  if (devices == 1)
    return ((const float *)buffers[0])[i] * 3.0f;
  while (2 * left < devices)
    left *= 2;
  return add_up(buffers, left, i) + add_up(buffers + left, devices - left, i);
}

/* For each element the results of so many devices, added up. */
#define TEST_TRIPLE_SUM(devices)                                               \
  void test_triple_sum_##devices(void *const *buffers, const int64_t *context, \
                                 int64_t begin, int64_t end) {                 \
    float *out = buffers[devices];                                             \
    (void)context;                                                             \
    for (int64_t i = begin; i < end; ++i)                                      \
      out[i] = add_up(buffers, devices, i);                                    \
  }
TEST_TRIPLE_SUM(2)
TEST_TRIPLE_SUM(3)
TEST_TRIPLE_SUM(4)
TEST_TRIPLE_SUM(6)

/* out[i] = shared[i] * own[i]. */
void test_product(void *const *buffers, const int64_t *context, int64_t begin,
                  int64_t end) {
  const float *shared = buffers[0], *own = buffers[1];
  float *out = buffers[2];
  (void)context;
  for (int64_t i = begin; i < end; ++i)
    out[i] = shared[i] * own[i];
}

/* The same for so many devices that have one `shared`; adds 1, so that a test
   sees that it ran. */
#define TEST_PRODUCT_GROUP(devices)                                            \
  void test_product_group_##devices(void *const *buffers,                      \
                                    const int64_t *context, int64_t begin,     \
                                    int64_t end) {                             \
    const float *shared = buffers[0];                                          \
    (void)context;                                                             \
    for (int64_t device = 0; device < devices; ++device) {                     \
      const float *own = buffers[2 * device + 1];                              \
      float *out = buffers[2 * devices + device];                              \
      for (int64_t i = begin; i < end; ++i)                                    \
        out[i] = shared[i] * own[i] + 1.0f;                                    \
    }                                                                          \
  }
TEST_PRODUCT_GROUP(2)
TEST_PRODUCT_GROUP(3)
TEST_PRODUCT_GROUP(4)
TEST_PRODUCT_GROUP(6)

/* As test_scale, after in[begin] times a million rounds of nothing. */
void test_slow(void *const *buffers, const int64_t *context, int64_t begin,
               int64_t end) {
  const float *in = buffers[0];
  for (volatile int64_t i = (int64_t)(in[begin] * 1e6f); i > 0;)
    i = i - 1;
  test_scale(buffers, context, begin, end);
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

/* Of the stages of a pipeline over a mesh of three axes:
   out = h * w + 10 * (coordinate on axis 0) + (run). */
void test_stage_forward(void *const *buffers, const int64_t *context,
                        int64_t begin, int64_t end) {
  const float *h = buffers[0];
  const float *w = buffers[1];
  float *out = buffers[2];
  for (int64_t i = begin; i < end; ++i)
    out[i] = h[i] * *w + 10.0f * (float)context[0] + (float)context[4];
}

/* loss += the sum of two rows of h; g = 1. */
void test_stage_loss(void *const *buffers, const int64_t *context,
                     int64_t begin, int64_t end) {
  const float *h = buffers[0];
  float *loss = buffers[2];
  float *g = buffers[3];
  (void)context;
  (void)begin;
  (void)end;
  *loss += h[0] + h[1];
  g[0] = g[1] = 1.0f;
}

/* Two rows: dh = g * w; dw += the sum of g * h. */
void test_stage_backward(void *const *buffers, const int64_t *context,
                         int64_t begin, int64_t end) {
  const float *g = buffers[0];
  const float *h = buffers[1];
  const float *w = buffers[2];
  float *dh = buffers[4];
  float *dw = buffers[5];
  (void)context;
  (void)begin;
  (void)end;
  for (int i = 0; i < 2; ++i) {
    dh[i] = g[i] * *w;
    *dw += g[i] * h[i];
  }
}

/* w -= dw / 1024 + n / 4096; t += 1. */
void test_stage_update(void *const *buffers, const int64_t *context,
                       int64_t begin, int64_t end) {
  const float *dw = buffers[0];
  const float *n = buffers[1];
  float *w = buffers[4];
  float *t = buffers[5];
  (void)context;
  (void)begin;
  (void)end;
  *w -= *dw / 1024.0f + *n / 4096.0f;
  *t += 1.0f;
}
