//===- CublasLt.cpp - Our subset of cuBLASLt ------------------------------===//

#include "backends/cuda/CublasLt.h"

using namespace shardc::rt::cuda;

absl::StatusOr<std::unique_ptr<CublasLt>>
CublasLt::open(const std::string &path) {
  std::vector<std::string> names = {"libcublasLt.so.13", "libcublasLt.so.12"};
  if (!path.empty())
    names = {path};
  absl::StatusOr<SharedLibrary> library =
      SharedLibrary::open("cuBLASLt", names);
  if (!library.ok())
    return library.status();
  std::unique_ptr<CublasLt> lt(new CublasLt(*std::move(library)));
  if (absl::Status s = lt->library.resolve({
          {"cublasLtGetVersion", &lt->getVersion},
          {"cublasLtCreate", &lt->create},
          {"cublasLtDestroy", &lt->destroy},
          {"cublasLtMatmulDescCreate", &lt->matmulDescCreate},
          {"cublasLtMatmulDescDestroy", &lt->matmulDescDestroy},
          {"cublasLtMatmulDescSetAttribute", &lt->matmulDescSetAttribute},
          {"cublasLtMatrixLayoutCreate", &lt->matrixLayoutCreate},
          {"cublasLtMatrixLayoutDestroy", &lt->matrixLayoutDestroy},
          {"cublasLtMatrixLayoutSetAttribute", &lt->matrixLayoutSetAttribute},
          {"cublasLtMatmulPreferenceCreate", &lt->matmulPreferenceCreate},
          {"cublasLtMatmulPreferenceDestroy", &lt->matmulPreferenceDestroy},
          {"cublasLtMatmulPreferenceSetAttribute",
           &lt->matmulPreferenceSetAttribute},
          {"cublasLtMatmulAlgoGetHeuristic", &lt->matmulAlgoGetHeuristic},
          {"cublasLtMatmul", &lt->matmul},
      });
      !s.ok())
    return s;
  return lt;
}
