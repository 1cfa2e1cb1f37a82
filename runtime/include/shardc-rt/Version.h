//===- Version.h - The version of the runtime -------------------*- C++ -*-===//
//
// Before 1.0 a new minor version may change the API and the ABI, and a new
// patch version changes neither. A host compares its headers with the library
// like this:
//
//   if (std::strcmp(shardc::rt::version(), SHARDC_RT_VERSION_STRING) != 0) ...
//
// Thread-safety: `version` may be called at any time from any thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_VERSION_H
#define SHARDC_RT_VERSION_H

#include "shardc-rt/Export.h"

#define SHARDC_RT_VERSION_MAJOR 0
#define SHARDC_RT_VERSION_MINOR 1
#define SHARDC_RT_VERSION_PATCH 0

/// A version as a number that grows with it, for the preprocessor:
///   #if SHARDC_RT_VERSION >= SHARDC_RT_MAKE_VERSION(0, 2, 0)
#define SHARDC_RT_MAKE_VERSION(major, minor, patch)                            \
  ((major)*1000000 + (minor)*1000 + (patch))
#define SHARDC_RT_VERSION                                                      \
  SHARDC_RT_MAKE_VERSION(SHARDC_RT_VERSION_MAJOR, SHARDC_RT_VERSION_MINOR,     \
                         SHARDC_RT_VERSION_PATCH)

#define SHARDC_RT_QUOTE(text) #text
#define SHARDC_RT_JOIN_VERSION(major, minor, patch)                            \
  SHARDC_RT_QUOTE(major) "." SHARDC_RT_QUOTE(minor) "." SHARDC_RT_QUOTE(patch)
/// "MAJOR.MINOR.PATCH".
#define SHARDC_RT_VERSION_STRING                                               \
  SHARDC_RT_JOIN_VERSION(SHARDC_RT_VERSION_MAJOR, SHARDC_RT_VERSION_MINOR,     \
                         SHARDC_RT_VERSION_PATCH)

namespace shardc::rt {

/// The SHARDC_RT_VERSION_STRING that the library was built with.
SHARDC_RT_API const char *version();

} // namespace shardc::rt

#endif // SHARDC_RT_VERSION_H
