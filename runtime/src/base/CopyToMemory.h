//===- CopyToMemory.h - Copies that leave caches alone ----------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_COPYTOMEMORY_H
#define SHARDC_RT_SRC_BASE_COPYTOMEMORY_H

#include <cstddef>

namespace shardc::rt {

/// As std::memcpy, for bytes that are not used soon: they go to memory without
/// being read from there into the caches first, which saves a third of the
/// traffic, and what the caches hold stays there. The thread that copies has to
/// call `endCopiesToMemory` before others may use what was copied.
void copyToMemory(void *to, const void *from, size_t bytes);
void endCopiesToMemory();

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_COPYTOMEMORY_H
