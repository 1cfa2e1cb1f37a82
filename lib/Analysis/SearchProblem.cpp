//===- SearchProblem.cpp - What an exact search decides -------------------===//

#include "shardc/Analysis/SearchProblem.h"

#include "shardc/Analysis/AssignmentSpace.h"

#include <set>

using namespace mlir;
using namespace shardc;

/// The value that decides where `value` rests.
static int getRoot(const ShardingGraph &graph, int value) {
  int root = graph.values[value].restsAs;
  return root < 0 ? value : root;
}

SearchProblem::SearchProblem(const ShardingGraph &graph, int first, int end,
                             const CollectivePrices &prices,
                             const AtRest &known)
    : graph(graph), prices(prices), isFree(graph.values.size()),
      isMaximum(graph.values.size()) {
  for (int axis = 0; axis < graph.mesh.getNumAxes(); ++axis)
    if (graph.mesh.getSize(axis) > 1)
      scope.axes |= axisBit(axis);
  scope.allowsStrided = llvm::popcount(scope.axes) <= maxStridedAxes;

  std::set<int> roots;
  for (int index = first; index < end; ++index) {
    const GraphOp &op = graph.ops[index];
    if (op.kind == GraphOp::Return) {
      roots.insert(op.results[0]);
      continue;
    }
    bool hasMaxima = llvm::any_of(op.rule.factors, [](const Factor &factor) {
      return factor.kind == FactorKind::Max;
    });
    for (int result : op.results) {
      isFree[result] = op.operands.empty();
      isMaximum[result] = hasMaxima;
    }
    for (int tensor : op.tensors.empty() ? op.operands : op.tensors)
      if (graph.values[tensor].isAtRest)
        roots.insert(getRoot(graph, tensor));
  }
  for (int root : roots)
    addRest(root, first, end, known);
  for (int index = first; index < end; ++index)
    if (graph.ops[index].kind != GraphOp::Return)
      addCompute(index);

  for (auto [index, op] : llvm::enumerate(ops)) {
    std::set<int> seen;
    for (auto [port, value] : llvm::enumerate(op.ports)) {
      if (static_cast<int>(port) >= op.numOperands)
        values[value].producer = index;
      if (seen.insert(value).second)
        ++values[value].numOps;
    }
  }
}

LayoutGraph &SearchProblem::getGraph(int rank) {
  auto [it, isNew] = graphs.try_emplace(rank, graph.mesh, scope, rank);
  if (isNew)
    it->second.enumerate();
  return it->second;
}

int SearchProblem::getValue(int graphValue) {
  auto [it, isNew] = valueOf.try_emplace(graphValue, values.size());
  if (isNew) {
    const GraphValue &info = graph.values[graphValue];
    // What is moved in every run of a loop costs that much more.
    int64_t elementBytes = info.elementBytes * info.repeats;
    SearchValue value;
    value.table = &tables
                       .try_emplace({ArrayRef(info.shape).vec(), elementBytes},
                                    getGraph(info.shape.size()), prices,
                                    info.shape, elementBytes)
                       .first->second;
    values.push_back(value);
  }
  return it->second;
}

int SearchProblem::addPort(SearchOp &op, int graphValue) {
  op.ports.push_back(getValue(graphValue));
  return op.ports.back();
}

void SearchProblem::addCompute(int index) {
  const GraphOp &node = graph.ops[index];
  Origin origin;
  origin.graphOp = index;
  SearchOp op;
  op.part = node.part;
  const ShardingRule &rule = node.rule;
  if (node.kind == GraphOp::Constraint) {
    // Exactly the annotated layout, reduced unless it may be partial.
    const GraphValue &value = graph.values[node.results[0]];
    for (const Layout &layout : getAnnotatedLayouts(value, scope, graph.mesh)) {
      Assignment assignment;
      assignment.factors.assign(layout.dims.begin(), layout.dims.end());
      AxisSet all = value.unreduced & ~layout.getAxes();
      for (AxisSet partial = 0;; partial = (partial - all) & all) {
        assignment.partial.operands = partial;
        origin.assignments.push_back(assignment);
        if (partial == all)
          break;
      }
    }
  } else if (!node.operands.empty()) {
    origin.assignments = getAssignments(rule, scope, graph.mesh);
  }

  ArrayRef<int> operands = node.tensors.empty() ? node.operands : node.tensors;
  SmallVector<int> used;
  for (auto [number, value] : llvm::enumerate(operands))
    if (!isFree[value]) {
      addPort(op, value);
      used.push_back(number);
    }
  op.numOperands = op.ports.size();
  if (!node.operands.empty())
    for (int result : node.results)
      addPort(op, result);
  for (auto [choice, assignment] : llvm::enumerate(origin.assignments)) {
    SearchOption option;
    option.choice = choice;
    bool isPossible = true;
    for (auto [number, value] : llvm::enumerate(operands)) {
      Layout layout = getOperandLayout(rule, assignment, number);
      // Nothing is made from nothing as partial sums, and maxima are reduced
      // at once.
      if (layout.unreduced && (isFree[value] || isMaximum[value]))
        isPossible = false;
      if (!isFree[value])
        option.layouts.push_back(getGraph(layout.dims.size()).getId(layout));
    }
    if (!isPossible)
      continue;
    for (size_t number = 0; number < node.results.size(); ++number) {
      Layout layout = getResultLayout(rule, assignment, number);
      option.layouts.push_back(getGraph(layout.dims.size()).getId(layout));
    }
    op.options.push_back(std::move(option));
  }
  if (node.operands.empty())
    return;
  ops.push_back(std::move(op));
  origins.push_back(std::move(origin));
}

void SearchProblem::addRest(int root, int first, int end, const AtRest &known) {
  Origin origin;
  origin.restValue = root;
  SearchOp op;
  op.part = Part::Update;
  for (int index = first; index < end; ++index) {
    const GraphOp &node = graph.ops[index];
    if (node.kind != GraphOp::Return || node.results[0] != root)
      continue;
    int value = node.tensors.empty() ? node.operands[0] : node.tensors[0];
    if (!isFree[value])
      addPort(op, value);
  }
  op.numOperands = op.ports.size();
  std::set<int> arguments;
  for (int index = first; index < end; ++index) {
    const GraphOp &node = graph.ops[index];
    if (node.kind == GraphOp::Return && node.tensors.empty())
      continue;
    for (int tensor : node.tensors.empty() ? node.operands : node.tensors)
      if (graph.values[tensor].isAtRest && getRoot(graph, tensor) == root)
        arguments.insert(tensor);
  }
  for (int argument : arguments)
    addPort(op, argument);

  if (auto it = known.find(root); it != known.end())
    origin.layouts = {it->second};
  else
    origin.layouts = getAnnotatedLayouts(graph.values[root], scope, graph.mesh);
  for (auto [choice, layout] : llvm::enumerate(origin.layouts)) {
    SearchOption option;
    option.choice = choice;
    option.layouts.assign(op.ports.size(),
                          getGraph(layout.dims.size()).getId(layout));
    op.options.push_back(std::move(option));
  }
  ops.push_back(std::move(op));
  origins.push_back(std::move(origin));
}

int64_t SearchProblem::getNumOptions() const {
  int64_t sum = 0;
  for (const SearchOp &op : ops)
    sum += op.options.size();
  return sum;
}

void SearchProblem::apply(int op, int option,
                          std::vector<Assignment> &assignments,
                          AtRest &atRest) const {
  const Origin &origin = origins[op];
  int choice = ops[op].options[option].choice;
  if (origin.graphOp >= 0)
    assignments[origin.graphOp] = origin.assignments[choice];
  else
    atRest[origin.restValue] = origin.layouts[choice];
}
