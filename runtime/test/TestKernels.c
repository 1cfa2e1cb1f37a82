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
