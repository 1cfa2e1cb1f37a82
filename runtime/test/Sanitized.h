//===- Sanitized.h - Whether tests run under a sanitizer --------*- C++ -*-===//

#ifndef SHARDC_RT_TEST_SANITIZED_H
#define SHARDC_RT_TEST_SANITIZED_H

namespace shardc::rt {

/// Under a sanitizer steps take ten times as long, and a sample of the cases
/// that other builds run shows the same accesses.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool isSanitized = true;
#else
inline constexpr bool isSanitized = false;
#endif

} // namespace shardc::rt

#endif // SHARDC_RT_TEST_SANITIZED_H
