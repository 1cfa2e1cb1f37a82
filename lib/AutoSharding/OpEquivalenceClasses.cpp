//===- OpEquivalenceClasses.cpp - Equivalence classes of ops --------------===//
//
// Colour refinement: Weisfeiler, Leman (1968).
//
//===----------------------------------------------------------------------===//

#include "OpEquivalenceClasses.h"

#include "llvm/ADT/DenseMap.h"

using namespace llvm;
using namespace shardc;

OpEquivalenceClasses::OpEquivalenceClasses(const SearchProblem &problem) {
  for (size_t index = 0; index < problem.ops.size(); ++index) {
    opClassOf.push_back(index);
    ops.push_back({static_cast<int>(index), 1});
  }
  classifyValues(problem);
}

OpEquivalenceClasses::OpEquivalenceClasses(const SearchProblem &problem,
                                           int radius) {
  classifyOps(problem);
  refine(problem, radius);
}

OpEquivalenceClasses::OpEquivalenceClasses(const SearchProblem &problem,
                                           const OpEquivalenceClasses &coarser,
                                           int radius)
    : opClassOf(coarser.opClassOf) {
  split();
  refine(problem, radius);
}

/// Halves classes, since a layer often differs from the next one but equals the
/// one after that.
void OpEquivalenceClasses::split() {
  std::map<std::pair<int, bool>, int> known;
  std::vector<OpClass> finer;
  std::vector<bool> isOdd(opClassOf.size());
  for (auto [index, opClass] : llvm::enumerate(opClassOf)) {
    std::pair<int, bool> key(opClass, isOdd[opClass]);
    isOdd[opClass] = !isOdd[opClass];
    auto [it, isNew] = known.try_emplace(key, finer.size());
    if (isNew)
      finer.push_back({static_cast<int>(index)});
    ++finer[it->second].numMembers;
    opClass = it->second;
  }
  ops = std::move(finer);
}

/// The initial classes: ops of equal strategies and tensors of equal shape.
void OpEquivalenceClasses::classifyOps(const SearchProblem &problem) {
  // Lists of strategies that many ops share are compared once.
  using Strategies = std::vector<std::pair<SmallVector<int, 4>, double>>;
  std::map<Strategies, int> lists;
  DenseMap<const std::vector<SearchStrategy> *, int> numberOf;
  auto getNumber = [&](const SearchOp &op) {
    auto [it, isNew] = numberOf.try_emplace(op.strategies.get());
    if (isNew) {
      Strategies strategies;
      for (const SearchStrategy &strategy : *op.strategies)
        strategies.emplace_back(strategy.layouts, strategy.cost);
      it->second =
          lists.try_emplace(std::move(strategies), lists.size()).first->second;
    }
    return it->second;
  };
  std::map<std::tuple<int, std::vector<DistanceTable *>, std::vector<int>, int>,
           int>
      known;
  for (auto [index, op] : llvm::enumerate(problem.ops)) {
    std::vector<DistanceTable *> tables;
    std::vector<int> same;
    for (int value : op.ports) {
      tables.push_back(problem.values[value].table);
      same.push_back(llvm::find(op.ports, value) - op.ports.begin());
    }
    auto [it, isNew] = known.try_emplace(
        {op.numOperands, tables, same, getNumber(op)}, ops.size());
    if (isNew)
      ops.push_back({static_cast<int>(index)});
    ++ops[it->second].numMembers;
    opClassOf.push_back(it->second);
  }
}

void OpEquivalenceClasses::classifyValues(const SearchProblem &problem) {
  values.clear();
  valueClassOf.assign(problem.values.size(), -1);
  usersOf.assign(problem.values.size(), {});
  std::vector<std::pair<int, int>> producers(problem.values.size(), {-1, -1});
  for (auto [index, op] : llvm::enumerate(problem.ops))
    for (auto [port, value] : llvm::enumerate(op.ports)) {
      std::pair<int, int> place(index, port);
      if (static_cast<int>(port) >= op.numOperands)
        producers[value] = place;
      else
        usersOf[value].push_back(place);
    }
  std::map<ValueClass, int> known;
  auto classify = [&](std::pair<int, int> place) {
    return PortClass{opClassOf[place.first], place.second};
  };
  for (auto [index, value] : llvm::enumerate(problem.values)) {
    auto &users = usersOf[index];
    if (value.producer < 0 || users.empty())
      continue;
    llvm::stable_sort(users, [&](auto lhs, auto rhs) {
      return classify(lhs) < classify(rhs);
    });
    ValueClass key{value.table, classify(producers[index]), {}};
    for (auto user : users)
      key.users.push_back(classify(user));
    auto [it, isNew] = known.try_emplace(key, values.size());
    if (isNew) {
      values.push_back(key);
      values.back().representative = index;
    }
    ++values[it->second].numMembers;
    valueClassOf[index] = it->second;
  }
}

/// Separates ops whose tensors differ, up to `radius` tensors away.
void OpEquivalenceClasses::refine(const SearchProblem &problem, int radius) {
  classifyValues(problem);
  for (int step = 0; step < radius; ++step) {
    std::map<std::pair<int, std::vector<int>>, int> known;
    std::vector<OpClass> finer;
    for (auto [index, op] : llvm::enumerate(problem.ops)) {
      std::pair<int, std::vector<int>> key(opClassOf[index], {});
      for (int value : op.ports)
        key.second.push_back(valueClassOf[value]);
      auto [it, isNew] = known.try_emplace(std::move(key), finer.size());
      if (isNew)
        finer.push_back({static_cast<int>(index)});
      ++finer[it->second].numMembers;
      opClassOf[index] = it->second;
    }
    bool isStable = finer.size() == ops.size();
    ops = std::move(finer);
    classifyValues(problem);
    if (isStable)
      break;
  }
}
