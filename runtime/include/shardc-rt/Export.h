//===- Export.h - The symbols of the shared library -------------*- C++ -*-===//

#ifndef SHARDC_RT_EXPORT_H
#define SHARDC_RT_EXPORT_H

/// Marks the functions and classes that the shared library exports: those of
/// the public headers, and no others.
#define SHARDC_RT_API __attribute__((visibility("default")))
/// Takes a private member of such a class out of the exports.
#define SHARDC_RT_PRIVATE __attribute__((visibility("hidden")))

#endif // SHARDC_RT_EXPORT_H
