//===- Picture.cpp - Which device holds which slice -----------------------===//

#include "PlanText.h"

#include "shardc/Report/ShardingsReport.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace shardc;
namespace fb = shardc::rt::fb;

std::string shardc::getPictureText(const fb::Plan &plan,
                                   ArrayRef<int64_t> shape,
                                   const fb::Sharding &sharding) {
  std::vector<std::pair<std::string, int64_t>> axes;
  for (const fb::Axis *axis : *plan.mesh()->axes())
    axes.emplace_back(axis->name()->str(), axis->size());
  Layout layout(shape.size());
  // Axes of size 1 shard nothing; layouts do without them.
  for (auto [dim, list] : zip(*sharding.dims(), layout.dims))
    if (dim->axes())
      for (uint16_t axis : *dim->axes())
        if (axis < axes.size() && axes[axis].second > 1)
          list.push_back(axis);
  std::string text;
  SmallVector<StringRef> lines;
  std::string picture = drawSharding(
      shape, getLocalShape(plan, shape, sharding), layout, MeshAxes(axes));
  StringRef(picture).split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    text += line.trim(' ').empty() ? "" : "    " + line.str() + "\n";
  return text;
}
