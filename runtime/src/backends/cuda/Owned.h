//===- Owned.h - A handle of the driver that is given back ------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_OWNED_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_OWNED_H

#include "backends/cuda/Context.h"

#include <utility>

namespace shardc::rt::cuda {

/// Owns `Raw`, which the driver's function `destroy` gives back, in the context
/// it was made in. Movable; empty after a move. The result of `destroy` is
/// ignored: it has errors of earlier work, which were returned where that work
/// was awaited.
template <typename Raw, CUresult (*Driver::*destroy)(Raw)>
class Owned {
public:
  Owned() = default;
  Owned(const Context &context, Raw raw) : context(&context), raw(raw) {}
  Owned(Owned &&other) noexcept
      : context(std::exchange(other.context, nullptr)), raw(other.raw) {}
  Owned &operator=(Owned &&other) noexcept {
    std::swap(context, other.context);
    std::swap(raw, other.raw);
    return *this;
  }
  ~Owned() {
    if (!context)
      return;
    (void)context->makeCurrent();
    (void)(context->driver().*destroy)(raw);
  }

  Raw get() const { return raw; }

private:
  const Context *context = nullptr;
  Raw raw{};
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_OWNED_H
