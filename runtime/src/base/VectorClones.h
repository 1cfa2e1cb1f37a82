//===- VectorClones.h - Loops for the vectors of any CPU --------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_VECTORCLONES_H
#define SHARDC_RT_SRC_BASE_VECTORCLONES_H

/// Multiversioning of the function that follows: it is compiled for several
/// vector widths, and the loader chooses the CPU's. Sanitizers do not know the
/// resolvers, hence the switch.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) &&                   \
    !defined(__SANITIZE_THREAD__)
#define SHARDC_VECTOR_CLONES                                                   \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SHARDC_VECTOR_CLONES
#endif

#endif // SHARDC_RT_SRC_BASE_VECTORCLONES_H
