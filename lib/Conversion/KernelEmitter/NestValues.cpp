//===- NestValues.cpp - What each core op computes at an index ------------===//

#include "shardc/Conversion/KernelEmitter/NestValues.h"

#include "shardc/Conversion/KernelEmitter/NestEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc {

Value NestEmitter::compute(Value tensor, ArrayRef<Index> index) {
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return loadAt(tensor, index);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<ConstantOp>([&](auto op) { return computeConstant(op, index); })
      .Case<BroadcastOp>([&](BroadcastOp op) {
        IndexList operandIndex;
        for (int64_t dim : op.getDims())
          operandIndex.push_back(index[dim]);
        // All elements of a flat nest see the one element.
        if (isFlat)
          operandIndex.assign(operandIndex.size(), Index());
        return evaluate(op.getOperand(), operandIndex);
      })
      .Case<TransposeOp>([&](TransposeOp op) {
        IndexList operandIndex(index.size());
        for (auto [dim, source] : llvm::enumerate(op.getPermutation()))
          operandIndex[source] = index[dim];
        return evaluate(op.getOperand(), operandIndex);
      })
      .Case<ReshapeOp>([&](auto op) { return computeReshape(op, index); })
      .Case<IotaOp>([&](auto op) { return computeIota(op, index); })
      .Case<RandomUniformOp>([&](auto op) { return computeRandom(op, index); })
      .Case<MaskOp>([&](auto op) { return computeMask(op, index); })
      .Case<SliceOp>([&](auto op) { return computeSlice(op, index); })
      .Case<ReduceOp>([&](auto op) { return computeReduce(op, index); })
      .Case<DotGeneralOp>([&](auto op) { return computeDot(op, index); })
      .Case<CompareOp>([&](CompareOp op) {
        Value lhs = evaluate(op.getLhs(), index);
        return computeCompare(op, lhs, evaluate(op.getRhs(), index));
      })
      .Case<SelectOp>([&](SelectOp op) {
        Value predicate = evaluate(op.getPredicate(), index);
        Value onTrue = evaluate(op.getOnTrue(), index);
        return math.select(predicate, onTrue, evaluate(op.getOnFalse(), index));
      })
      .Case<ConvertOp>([&](ConvertOp op) {
        return computeConvert(op, evaluate(op.getOperand(), index));
      })
      .Default([&](Operation *op) {
        Value lhs = evaluate(op->getOperand(0), index);
        if (op->getNumOperands() == 1)
          return computeUnary(op, lhs);
        return computeBinary(op, lhs, evaluate(op->getOperand(1), index));
      });
}

LogicalResult checkHasValue(Operation *op) {
  bool isKnown =
      isa<ConstantOp, BroadcastOp, TransposeOp, ReshapeOp, IotaOp,
          RandomUniformOp, MaskOp, SliceOp, ReduceOp, DotGeneralOp, CompareOp,
          SelectOp, ConvertOp, AddOp, SubOp, MulOp, DivOp, MaxOp, MinOp, NegOp,
          AbsOp, SignOp, ExpOp, Expm1Op, LogOp, Log1pOp, SqrtOp, RsqrtOp,
          TanhOp, ErfOp, CosOp, SinOp, StopGradientOp>(op);
  if (!isKnown)
    return op->emitOpError("cannot be computed in a kernel");
  return success();
}

Value NestEmitter::computeUnary(Operation *op, Value x) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<NegOp>([&](auto) { return math.neg(x); })
      .Case<AbsOp>([&](auto) { return math.abs(x); })
      .Case<SignOp>([&](auto) { return math.sign(x); })
      .Case<ExpOp>([&](auto) { return math.exp(x); })
      .Case<Expm1Op>([&](auto) { return math.expm1(x); })
      .Case<LogOp>([&](auto) { return math.log(x); })
      .Case<Log1pOp>([&](auto) { return math.log1p(x); })
      .Case<SqrtOp>([&](auto) { return math.sqrt(x); })
      .Case<RsqrtOp>([&](auto) { return math.rsqrt(x); })
      .Case<TanhOp>([&](auto) { return math.tanh(x); })
      .Case<ErfOp>([&](auto) { return math.erf(x); })
      .Case<CosOp>([&](auto) { return math.cos(x); })
      .Case<SinOp>([&](auto) { return math.sin(x); })
      .Case<StopGradientOp>([&](auto) { return x; });
}

Value NestEmitter::computeBinary(Operation *op, Value lhs, Value rhs) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<AddOp>([&](auto) { return math.add(lhs, rhs); })
      .Case<SubOp>([&](auto) { return math.sub(lhs, rhs); })
      .Case<MulOp>([&](auto) { return math.mul(lhs, rhs); })
      .Case<DivOp>([&](auto) { return math.div(lhs, rhs); })
      .Case<MaxOp>([&](auto) { return math.max(lhs, rhs); })
      .Case<MinOp>([&](auto) { return math.min(lhs, rhs); });
}

Value NestEmitter::computeCompare(CompareOp op, Value lhs, Value rhs) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  Type element = VectorMath::getElement(lhs);
  bool isBool = element.isInteger(1);
  if (isa<FloatType>(element)) {
    F predicates[] = {F::OEQ, F::UNE, F::OLT, F::OLE, F::OGT, F::OGE};
    return math.compareFloat(predicates[size_t(op.getKind())], lhs, rhs);
  }
  I predicates[] = {I::eq, I::ne, I::slt, I::sle, I::sgt, I::sge};
  I unsignedPredicates[] = {I::eq, I::ne, I::ult, I::ule, I::ugt, I::uge};
  return math.compareInt(
      (isBool ? unsignedPredicates : predicates)[size_t(op.getKind())], lhs,
      rhs);
}

Value NestEmitter::computeConvert(ConvertOp op, Value value) {
  Type element = getElementTypeOrSelf(op.getResult().getType());
  value = math.convert(value, getComputeType(op.getResult()));
  bool wasBF16 = getElementTypeOrSelf(op.getOperand().getType()).isBF16();
  return element.isBF16() && !wasBF16 ? roundToBF16(value) : value;
}

Value NestEmitter::computeConstant(ConstantOp op, ArrayRef<Index> index) {
  auto elements = cast<DenseElementsAttr>(op.getValue());
  Type type = getComputeType(op.getResult());
  auto toScalar = [&](auto value) -> Value {
    if constexpr (std::is_same_v<decltype(value), APFloat>) {
      bool losesInfo;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
      return math.constant(type, value.convertToDouble());
    } else {
      return math.constantInt(type, type.isInteger(1) ? value.getZExtValue()
                                                      : value.getSExtValue());
    }
  };
  if (elements.isSplat()) {
    if (isa<FloatType>(elements.getElementType()))
      return toScalar(elements.getSplatValue<APFloat>());
    return toScalar(elements.getSplatValue<APInt>());
  }
  // Other constants are data of the shared object, in memory form.
  Operation *module = entry->getParentOp()->getParentOp();
  Value &pointer = pointers[op.getResult()];
  if (!pointer) {
    Type memoryType = getMemoryType(elements.getElementType());
    DenseElementsAttr data = elements;
    if (memoryType != elements.getElementType()) {
      unsigned bits = memoryType.getIntOrFloatBitWidth();
      if (elements.getElementType().isBF16())
        data = elements.mapValues(memoryType, [&](const APFloat &value) {
          return value.bitcastToAPInt();
        });
      else
        data = elements.mapValues(
            memoryType, [&](const APInt &value) { return value.zext(bits); });
    }
    auto arrayType =
        LLVM::LLVMArrayType::get(memoryType, elements.getNumElements());
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&module->getRegion(0).front());
    std::string name;
    for (int64_t number = 0;; ++number) {
      name = "data" + std::to_string(number);
      if (!SymbolTable::lookupSymbolIn(module, name))
        break;
    }
    auto global = builder.create<LLVM::GlobalOp>(
        loc, arrayType, /*isConstant=*/true, LLVM::Linkage::Internal, name,
        data.reshape(
            RankedTensorType::get({elements.getNumElements()}, memoryType)),
        /*alignment=*/16,
        cast<LLVM::LLVMPointerType>(context.getType()).getAddressSpace());
    builder.setInsertionPointToStart(entry);
    pointer = builder.create<LLVM::AddressOfOp>(loc, global);
  }
  return loadAt(op.getResult(), index);
}

Value NestEmitter::computeReshape(ReshapeOp op, ArrayRef<Index> index) {
  Value operand = op.getOperand();
  ArrayRef<int64_t> from = getShape(operand), to = getShape(op.getResult());
  auto isLong = [](int64_t size) { return size > 1; };
  auto fromLong = llvm::to_vector(llvm::make_filter_range(from, isLong));
  auto toLong = llvm::to_vector(llvm::make_filter_range(to, isLong));
  IndexList operandIndex(from.size());
  if (fromLong == toLong || isFlat) {
    // Only dimensions of size 1 come or go, or places are linear anyway: the
    // places keep their order, aligned at the last dimension.
    int64_t dim = to.size() - 1;
    for (int64_t source = from.size() - 1; source >= 0; --source) {
      if (from[source] == 1)
        continue;
      while (dim >= 0 && to[dim] == 1)
        --dim;
      if (dim < 0)
        break;
      operandIndex[source] = index[dim--];
    }
    return evaluate(operand, operandIndex);
  }
  Index linear;
  int64_t stride = 1, laneStride = 0, lanes = 0;
  for (int64_t dim = to.size() - 1; dim >= 0; --dim) {
    if (index[dim].lanes) {
      lanes = index[dim].lanes;
      laneStride = stride;
    }
    if (index[dim].value) {
      Index place = index[dim];
      place.lanes = 0;
      Index term = mulIndex(place, stride);
      if (linear.value)
        term.value =
            builder.create<arith::AddIOp>(loc, linear.value, term.value);
      // The sum is built here, at the level of the whole index.
      linear = term;
      linear.level = scopes.size();
    }
    stride *= to[dim];
  }
  if (!operand.getDefiningOp())
    return load(operand, linear.value, laneStride, lanes);
  assert(lanes == 0 && "a reshape of a computed value is not vectorised");
  return evaluate(operand, delinearize(linear, from));
}

Value NestEmitter::computeReduce(ReduceOp op, ArrayRef<Index> index) {
  ArrayRef<int64_t> shape = getShape(op.getOperand());
  SmallVector<int64_t> dims(op.getDims()), sizes;
  for (int64_t dim : dims)
    sizes.push_back(shape[dim]);
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  bool hasLanes = llvm::any_of(index, [](const Index &i) { return i.lanes; });
  Type type = getComputeType(op.getResult());
  Value init = getIdentity(op.getKind(), type);
  if (hasLanes)
    init = math.splat(init);
  return buildCountedLoop(
      count, init, [&](Index place, ValueRange carried) -> SmallVector<Value> {
        IndexList reduced = delinearize(place, sizes);
        IndexList operandIndex;
        auto kept = index.begin();
        for (size_t dim = 0, next = 0; dim < shape.size(); ++dim) {
          if (next < dims.size() && dims[next] == int64_t(dim))
            operandIndex.push_back(reduced[next++]);
          else
            operandIndex.push_back(*kept++);
        }
        Value value = evaluate(op.getOperand(), operandIndex);
        return {combine(op.getKind(), carried[0], value)};
      })[0];
}

Value NestEmitter::computeDot(DotGeneralOp op, ArrayRef<Index> index) {
  ArrayRef<int64_t> lhsShape = getShape(op.getLhs());
  ArrayRef<int64_t> rhsShape = getShape(op.getRhs());
  SmallVector<int64_t> sizes;
  int64_t count = 1;
  for (int64_t dim : op.getLhsContracting()) {
    sizes.push_back(lhsShape[dim]);
    count *= lhsShape[dim];
  }
  bool hasLanes = llvm::any_of(index, [](const Index &i) { return i.lanes; });
  Type type = getComputeType(op.getResult());
  Value init = math.constant(type, 0.0);
  if (hasLanes)
    init = math.splat(init);
  auto body = [&](Index place, ValueRange carried) -> SmallVector<Value> {
    IndexList contracted = delinearize(place, sizes);
    IndexList lhsIndex(lhsShape.size()), rhsIndex(rhsShape.size());
    size_t next = 0;
    for (auto [lhs, rhs] :
         llvm::zip_equal(op.getLhsBatching(), op.getRhsBatching()))
      lhsIndex[lhs] = rhsIndex[rhs] = index[next++];
    for (int64_t dim : op.getLhsFree())
      lhsIndex[dim] = index[next++];
    for (int64_t dim : op.getRhsFree())
      rhsIndex[dim] = index[next++];
    for (auto [position, dims] : llvm::enumerate(
             llvm::zip_equal(op.getLhsContracting(), op.getRhsContracting()))) {
      lhsIndex[std::get<0>(dims)] = contracted[position];
      rhsIndex[std::get<1>(dims)] = contracted[position];
    }
    Value lhs = evaluate(op.getLhs(), lhsIndex);
    Value rhs = evaluate(op.getRhs(), rhsIndex);
    return {math.fma(lhs, rhs, carried[0])};
  };
  return buildCountedLoop(count, init, body)[0];
}

} // namespace shardc
