//===- Version.cpp - The version of the runtime ---------------------------===//

#include "shardc-rt/Version.h"

const char *shardc::rt::version() { return SHARDC_RT_VERSION_STRING; }
