//===- Interpreter.cpp - Core ops by their definitions --------------------===//

#include "KernelHarness.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <functional>
#include <limits>

using namespace mlir;

namespace shardc {

namespace {

using Coordinates = std::vector<int64_t>;

Coordinates getCoordinates(int64_t linear, const std::vector<int64_t> &shape) {
  Coordinates result(shape.size());
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    result[dim] = linear % shape[dim];
    linear /= shape[dim];
  }
  return result;
}

double at(const TestTensor &tensor, const Coordinates &place) {
  int64_t linear = 0;
  for (size_t dim = 0; dim < place.size(); ++dim)
    linear = linear * tensor.shape[dim] + place[dim];
  return tensor.data[linear];
}

double computeUnary(Operation *op, double x) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<NegOp>([&](auto) { return -x; })
      .Case<AbsOp>([&](auto) { return std::abs(x); })
      .Case<SignOp>([&](auto) { return double((x > 0) - (x < 0)); })
      .Case<ExpOp>([&](auto) { return std::exp(x); })
      .Case<Expm1Op>([&](auto) { return std::expm1(x); })
      .Case<LogOp>([&](auto) { return std::log(x); })
      .Case<Log1pOp>([&](auto) { return std::log1p(x); })
      .Case<SqrtOp>([&](auto) { return std::sqrt(x); })
      .Case<RsqrtOp>([&](auto) { return 1 / std::sqrt(x); })
      .Case<TanhOp>([&](auto) { return std::tanh(x); })
      .Case<ErfOp>([&](auto) { return std::erf(x); })
      .Case<CosOp>([&](auto) { return std::cos(x); })
      .Case<SinOp>([&](auto) { return std::sin(x); })
      .Default([&](Operation *) { return x; });
}

double computeBinary(Operation *op, double a, double b) {
  bool isInteger =
      isa<IntegerType>(getElementTypeOrSelf(op->getResult(0).getType()));
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<AddOp>([&](auto) { return a + b; })
      .Case<SubOp>([&](auto) { return a - b; })
      .Case<MulOp>([&](auto) { return a * b; })
      .Case<DivOp>([&](auto) {
        if (!isInteger)
          return a / b;
        return b == 0 ? -1.0 : std::trunc(a / b);
      })
      .Case<MaxOp>([&](auto) { return std::max(a, b); })
      .Case<MinOp>([&](auto) { return std::min(a, b); })
      .Case<CompareOp>([&](CompareOp compare) -> double {
        switch (compare.getKind()) {
        case CompareKind::EQ:
          return a == b;
        case CompareKind::NE:
          return a != b;
        case CompareKind::LT:
          return a < b;
        case CompareKind::LE:
          return a <= b;
        case CompareKind::GT:
          return a > b;
        case CompareKind::GE:
          return a >= b;
        }
        return 0;
      });
}

} // namespace

TestTensor interpretOp(Operation *op, std::vector<TestTensor> in, int64_t x,
                       int64_t y) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  TestTensor out{{type.getShape().begin(), type.getShape().end()}, {}};
  auto getShard = [&](ArrayRef<StringAttr> axes) {
    int64_t index = 0;
    for (StringAttr axis : axes)
      index = axis.getValue() == "x" ? index * 2 + x : index * 3 + y;
    return index;
  };
  auto fill = [&](std::function<double(const Coordinates &)> element) {
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      out.data.push_back(element(getCoordinates(i, out.shape)));
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case<ConstantOp>([&](ConstantOp constant) {
        auto elements = cast<DenseElementsAttr>(constant.getValue());
        if (isa<FloatType>(elements.getElementType()))
          for (const APFloat &value : elements.getValues<APFloat>())
            out.data.push_back(value.convertToDouble());
        else
          for (const APInt &value : elements.getValues<APInt>())
            out.data.push_back(double(value.getSExtValue()));
      })
      .Case<BroadcastOp>([&](BroadcastOp broadcast) {
        fill([&](const Coordinates &place) {
          Coordinates from;
          for (int64_t dim : broadcast.getDims())
            from.push_back(place[dim]);
          return at(in[0], from);
        });
      })
      .Case<TransposeOp>([&](TransposeOp transpose) {
        fill([&](const Coordinates &place) {
          Coordinates from(place.size());
          for (size_t dim = 0; dim < place.size(); ++dim)
            from[transpose.getPermutation()[dim]] = place[dim];
          return at(in[0], from);
        });
      })
      .Case<ReshapeOp>([&](auto) { out.data = in[0].data; })
      .Case<IotaOp>([&](IotaOp iota) {
        int64_t dim = iota.getDim(), start = 0;
        if (std::optional<ShardingAttr> shard = iota.getShard())
          start = getShard(shard->getAxes(dim)) * out.shape[dim];
        fill([&](const Coordinates &place) {
          return double(start + place[dim]);
        });
      })
      .Case<MaskOp>([&](MaskOp mask) {
        fill([&](const Coordinates &place) {
          for (int64_t dim : mask.getDims())
            if (getShard(mask.getShard().getAxes(dim)) * out.shape[dim] +
                    place[dim] >=
                mask.getGlobalShape()[dim])
              return mask.getFill().convertToDouble();
          return at(in[0], place);
        });
      })
      .Case<SliceOp>([&](SliceOp slice) {
        SmallVector<StringAttr> axes;
        for (Attribute axis : slice.getAxes())
          axes.push_back(cast<StringAttr>(axis));
        int64_t dim = slice.getDim();
        fill([&](const Coordinates &place) {
          Coordinates from = place;
          from[dim] += getShard(axes) * out.shape[dim];
          return from[dim] < in[0].shape[dim]
                     ? at(in[0], from)
                     : std::numeric_limits<double>::quiet_NaN();
        });
      })
      .Case<ReduceOp>([&](ReduceOp reduce) {
        bool isSum = reduce.getKind() == ReductionKind::Sum;
        out.data.assign(type.getNumElements(), isSum ? 0.0 : -HUGE_VAL);
        for (size_t i = 0; i < in[0].data.size(); ++i) {
          Coordinates place = getCoordinates(i, in[0].shape);
          int64_t linear = 0;
          for (size_t dim = 0; dim < place.size(); ++dim)
            if (!llvm::is_contained(reduce.getDims(), int64_t(dim)))
              linear = linear * in[0].shape[dim] + place[dim];
          double &sum = out.data[linear];
          sum = isSum ? sum + in[0].data[i] : std::max(sum, in[0].data[i]);
        }
      })
      .Case<DotGeneralOp>([&](DotGeneralOp dot) {
        std::vector<int64_t> sizes;
        int64_t count = 1;
        for (int64_t dim : dot.getLhsContracting()) {
          sizes.push_back(in[0].shape[dim]);
          count *= sizes.back();
        }
        fill([&](const Coordinates &place) {
          Coordinates lhs(in[0].shape.size()), rhs(in[1].shape.size());
          size_t next = 0;
          for (size_t b = 0; b < dot.getLhsBatching().size(); ++b) {
            lhs[dot.getLhsBatching()[b]] = place[next];
            rhs[dot.getRhsBatching()[b]] = place[next++];
          }
          for (int64_t dim : dot.getLhsFree())
            lhs[dim] = place[next++];
          for (int64_t dim : dot.getRhsFree())
            rhs[dim] = place[next++];
          double sum = 0;
          for (int64_t k = 0; k < count; ++k) {
            Coordinates contracted = getCoordinates(k, sizes);
            for (size_t c = 0; c < sizes.size(); ++c) {
              lhs[dot.getLhsContracting()[c]] = contracted[c];
              rhs[dot.getRhsContracting()[c]] = contracted[c];
            }
            sum += at(in[0], lhs) * at(in[1], rhs);
          }
          return sum;
        });
      })
      .Case<SelectOp>([&](auto) {
        for (size_t i = 0; i < in[0].data.size(); ++i)
          out.data.push_back(in[0].data[i] ? in[1].data[i] : in[2].data[i]);
      })
      .Case<ConvertOp>([&](auto) {
        bool toInteger = type.getElementTypeBitWidth() > 1 &&
                         isa<IntegerType>(type.getElementType());
        for (double value : in[0].data)
          out.data.push_back(type.getElementType().isInteger(1) ? value != 0
                             : toInteger ? std::trunc(value)
                                         : value);
      })
      .Default([&](Operation *op) {
        for (size_t i = 0; i < in[0].data.size(); ++i)
          out.data.push_back(
              in.size() == 1 ? computeUnary(op, in[0].data[i])
                             : computeBinary(op, in[0].data[i], in[1].data[i]));
      });
  return out;
}

} // namespace shardc
