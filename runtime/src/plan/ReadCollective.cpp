//===- ReadCollective.cpp - Commands that communicate ---------------------===//

#include "plan/CommandReader.h"

#include "shardc-rt/HostArray.h"

#include <algorithm>

using namespace shardc::rt;

absl::Status CommandReader::readAxes(const flatbuffers::Vector<uint16_t> *file,
                                     std::vector<int> &axes) const {
  if (!file)
    return absl::OkStatus();
  for (uint16_t axis : *file) {
    if (axis >= plan.mesh.axes().size() ||
        std::find(axes.begin(), axes.end(), axis) != axes.end())
      return bad("axis ", axis, " is not one of the mesh or stands twice");
    axes.push_back(axis);
  }
  return absl::OkStatus();
}

absl::Status CommandReader::checkItem(const CollectiveStartCommand &collective,
                                      const CollectiveItem &item) const {
  for (uint32_t buffer : {item.in, item.out})
    if (absl::Status s = checkBuffer(buffer); !s.ok())
      return s;
  const BufferSpec &in = program.buffers[item.in];
  const BufferSpec &out = program.buffers[item.out];
  int64_t rank = in.shape.size();
  if (in.dtype != out.dtype || in.shape.size() != out.shape.size())
    return bad("a collective changes the element type or the rank");
  bool reduces = collective.kind == CollectiveKind::AllReduce ||
                 collective.kind == CollectiveKind::ReduceScatter;
  if (reduces && in.dtype == DType::Bool &&
      collective.reduction == Reduction::Sum)
    return bad("a sum of booleans");
  bool inPlace =
      collective.kind == CollectiveKind::AllReduce && in.offset == out.offset;
  if (!inPlace && overlap(item.in, item.out))
    return bad("a collective's result overlaps its operand");

  // The required shape of the result, dimension by dimension.
  int64_t shards = plan.mesh.numShards(collective.axes);
  auto ceilDiv = [&](int64_t size) { return (size + shards - 1) / shards; };
  auto inRange = [&](int64_t dim) { return dim >= 0 && dim < rank; };
  bool sound = true;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t from = in.shape[dim], to = out.shape[dim];
    bool gathers = (collective.kind == CollectiveKind::AllGather ||
                    collective.kind == CollectiveKind::AllToAll) &&
                   dim == item.dim;
    bool scatters =
        (collective.kind == CollectiveKind::ReduceScatter && dim == item.dim) ||
        (collective.kind == CollectiveKind::AllToAll && dim == item.splitDim);
    sound &= gathers    ? from == ceilDiv(to)
             : scatters ? to == ceilDiv(from)
                        : from == to;
  }
  if (collective.kind == CollectiveKind::AllGather ||
      collective.kind == CollectiveKind::ReduceScatter)
    sound &= inRange(item.dim);
  if (collective.kind == CollectiveKind::AllToAll)
    sound &= inRange(item.dim) && inRange(item.splitDim) &&
             item.dim != item.splitDim;
  if (!sound)
    return bad(toString(collective.kind), " over ", shards, " devices of ",
               describe(in.dtype, in.shape), " does not give ",
               describe(out.dtype, out.shape));
  return absl::OkStatus();
}

absl::Status
CommandReader::readCollective(const fb::CollectiveStart &file,
                              CollectiveStartCommand &collective) const {
  if (file.kind() > fb::CollectiveKind::MAX ||
      file.kind() < fb::CollectiveKind::MIN ||
      file.reduction() > fb::Reduction::MAX ||
      file.reduction() < fb::Reduction::MIN)
    return bad("unknown collective");
  collective.kind = static_cast<CollectiveKind>(file.kind());
  collective.reduction = static_cast<Reduction>(file.reduction());
  collective.report = file.report();
  if (!program.collectives.empty() &&
      collective.report >= program.collectives.size())
    return bad("line ", collective.report,
               " of a communication report that has ",
               program.collectives.size());
  if (absl::Status s = readAxes(file.axes(), collective.axes); !s.ok())
    return s;
  if (absl::Status s = readAxes(file.target_axes(), collective.targetAxes);
      !s.ok())
    return s;
  if (collective.kind == CollectiveKind::CollectivePermute &&
      !std::is_permutation(collective.axes.begin(), collective.axes.end(),
                           collective.targetAxes.begin(),
                           collective.targetAxes.end()))
    return bad("the target axes of a permute are not those it is over");
  for (const fb::CollectiveItem *entry : *file.items()) {
    CollectiveItem item{entry->in(), entry->out(), entry->dim(),
                        entry->split_dim()};
    if (absl::Status s = checkItem(collective, item); !s.ok())
      return s;
    collective.items.push_back(item);
  }
  return absl::OkStatus();
}
