//===- KernelLibrary.cpp - A plan's machine code, loaded ------------------===//

#include "exec/KernelLibrary.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace shardc::rt;

KernelLibrary::~KernelLibrary() {
  if (handle)
    dlclose(handle);
  if (file >= 0)
    close(file);
}

absl::StatusOr<std::unique_ptr<KernelLibrary>>
KernelLibrary::load(const Plan &plan) {
  if (!plan.gpuTarget.empty())
    return absl::UnavailableError(absl::StrCat(
        "the plan is for GPUs (", plan.gpuTarget,
        "), and these devices are CPUs: compile the model for them"));
  std::unique_ptr<KernelLibrary> library(new KernelLibrary);
  if (plan.kernels.empty())
    return library;
  library->file = memfd_create("shardc-kernels", MFD_CLOEXEC);
  if (library->file < 0)
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot hold the plan's machine code in memory: ",
                     std::strerror(errno)));
  size_t written = 0;
  while (written < plan.code.size()) {
    ssize_t count = write(library->file, plan.code.data() + written,
                          plan.code.size() - written);
    if (count <= 0)
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot hold the plan's machine code in memory: ",
                       std::strerror(errno)));
    written += count;
  }
  library->handle =
      dlopen(absl::StrCat("/proc/self/fd/", library->file).c_str(),
             RTLD_NOW | RTLD_LOCAL);
  if (!library->handle)
    return absl::DataLossError(
        absl::StrCat("the plan's machine code does not load: ", dlerror()));
  for (const std::string &name : plan.kernels) {
    void *symbol = dlsym(library->handle, name.c_str());
    if (!symbol)
      return absl::DataLossError(
          absl::StrCat("the plan's machine code has no kernel \"", name, "\""));
    library->kernels.push_back(reinterpret_cast<KernelFunction>(symbol));
  }
  return library;
}
