//===- Collectives.cpp - The interface of collectives ---------------------===//

#include "collectives/Collectives.h"

using namespace shardc::rt;

absl::StatusOr<std::vector<std::unique_ptr<PreparedCollective>>>
Collectives::prepareTogether(const Mesh &mesh,
                             std::vector<CollectiveSpec> specs) {
  std::vector<std::unique_ptr<PreparedCollective>> all;
  for (CollectiveSpec &spec : specs) {
    absl::StatusOr<std::unique_ptr<PreparedCollective>> one =
        prepare(mesh, std::move(spec));
    if (!one.ok())
      return one.status();
    all.push_back(*std::move(one));
  }
  return all;
}
