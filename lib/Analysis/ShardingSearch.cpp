//===- ShardingSearch.cpp - The cheapest plan of a step -------------------===//

#include "shardc/Analysis/ShardingSearch.h"

#include "Elimination.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Costs closer than this part of them are equal.
constexpr double tolerance = 1e-9;
/// Stages of the search: in each the bound is raised until a sweep adds less
/// than this part of it, and options far above it are dropped.
constexpr double progress[] = {1e-3, 1e-4, 1e-5, 1e-6, 1e-7};
constexpr int maxSweeps = 24;
/// How far above the bound solutions are looked for at first, in units of what
/// the last sweep added, and how much farther each time there are none.
constexpr double firstWidth = 4, widening = 16;
/// So many times the bound, and all solutions are looked at.
constexpr double hopeless = 100;
/// Classes of ops that are alike up to so many tensors away bound the search
/// first if there are so many fewer of them than ops; their bound may be too
/// low by this part.
constexpr int coarseRadius = 4, coarseGain = 4;
constexpr double coarseSlack = 0.005;
/// Rows of tables when the exact search took too long.
constexpr size_t narrowRows = 64;

class Search {
public:
  Search(SearchProblem &problem, size_t maxWork, bool becomesNarrow,
         double most)
      : problem(problem), maxWork(maxWork), becomesNarrow(becomesNarrow),
        most(most) {
    for (const SearchValue &value : problem.values)
      graphs.try_emplace(value.table, *value.table);
  }

  SearchSolution run() {
    SearchClasses fine(problem);
    SearchClasses coarse(problem, coarseRadius);
    if (fine.ops.size() < coarseGain * coarse.ops.size()) {
      DualBound bound(problem, fine, graphs);
      SearchSolution solution = solve(fine, bound, most, 0);
      return isCutOff() ? getFallback(fine, solution) : solution;
    }
    // Layers repeat.
    DualBound rough(problem, coarse, graphs);
    double step = raise(rough, progress[0], most);
    double first = least;
    if (first > most * (1 + tolerance) || first == unreachable)
      return SearchSolution();
    DualBound::State state = rough.getState();
    for (double width = std::max(firstWidth * step, coarseSlack * first);;
         width = widen(width, first)) {
      rough.setState(state);
      rough.prune(width);
      DualBound bound(problem, fine, graphs, &rough);
      double limit = std::min(most, first + width);
      SearchSolution solution = solve(fine, bound, limit, 0);
      if (isCutOff())
        return getFallback(fine, solution);
      if (!solution.options.empty() || limit == most)
        return solution;
    }
  }

private:
  bool isCutOff() const { return work > maxWork; }

  /// `solution`, or if it is none a narrow search among all options.
  SearchSolution getFallback(const SearchClasses &classes,
                             SearchSolution solution) {
    double bound = solution.options.empty() ? 0 : solution.lowerBound;
    if (solution.options.empty() && becomesNarrow) {
      DualBound all(problem, classes, graphs);
      raise(all, progress[0], unreachable);
      solution = eliminateNarrowly(classes, all, unreachable);
      bound = std::max(bound, least);
    }
    solution.lowerBound = std::min(solution.cost, bound);
    return solution;
  }

  static double widen(double width, double least) {
    return width > 0 && width < hopeless * least ? width * widening
                                                 : unreachable;
  }

  /// The cheapest solution of at most `upper`, from stage `stage` on.
  SearchSolution solve(const SearchClasses &classes, DualBound &bound,
                       double upper, size_t stage) {
    double step = raise(bound, progress[stage], upper);
    double first = least;
    if (first > upper * (1 + tolerance) || first == unreachable)
      return SearchSolution();
    if (stage + 1 == std::size(progress))
      return finish(classes, bound, upper);
    DualBound::State state = bound.getState();
    for (double width = firstWidth * step;; width = widen(width, first)) {
      double limit = std::min(upper, first + width);
      bound.setState(state);
      bound.prune(limit - first + tolerance * limit);
      SearchSolution solution = solve(classes, bound, limit, stage + 1);
      if (!solution.options.empty() || limit == upper || isCutOff())
        return solution;
    }
  }

  SearchSolution finish(const SearchClasses &classes, DualBound &bound,
                        double upper) {
    EliminationLimits limits;
    limits.gap = upper - least + tolerance * upper;
    limits.maxWork = maxWork;
    SearchSolution solution =
        eliminate(problem, classes, bound, graphs, limits, work);
    if (isCutOff() && becomesNarrow)
      solution = eliminateNarrowly(classes, bound, limits.gap);
    // Solutions that were dropped on the way cost more than `upper`.
    solution.lowerBound = isCutOff() ? least : solution.cost;
    return solution;
  }

  SearchSolution eliminateNarrowly(const SearchClasses &classes,
                                   DualBound &bound, double gap) {
    EliminationLimits limits;
    limits.gap = gap;
    limits.maxRows = narrowRows;
    return eliminate(problem, classes, bound, graphs, limits, work);
  }

  /// Raises the bound to `least`, for solutions of at most `upper`, until a
  /// sweep adds less than `progress` of it; returns what the last one added.
  double raise(DualBound &bound, double progress, double upper) {
    double last = 0;
    double step = unreachable;
    for (int sweep = 0; sweep < maxSweeps; ++sweep) {
      bound.sweep();
      least = bound.getBound();
      step = least - last;
      last = least;
      if (least > upper || step <= progress * least)
        break;
    }
    return std::max(step, tolerance * least);
  }

  SearchProblem &problem;
  size_t maxWork;
  bool becomesNarrow;
  /// What solutions may cost.
  double most;
  size_t work = 0;
  PriceGraphs graphs;
  double least = 0;
};

} // namespace

SearchSolution shardc::findCheapest(SearchProblem &problem, size_t maxWork,
                                    bool becomesNarrow, double upper) {
  return Search(problem, maxWork, becomesNarrow, upper).run();
}
