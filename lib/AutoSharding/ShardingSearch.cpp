//===- ShardingSearch.cpp - The cheapest plan of a step -------------------===//

#include "shardc/AutoSharding/ShardingSearch.h"

#include "Elimination.h"

#include <cmath>

using namespace llvm;
using namespace shardc;

/// What stays from search to search.
struct shardc::SearchMemory {
  size_t work = 0;
  PriceGraphs graphs;
  /// The first bound that was raised, to `least`, and its classes.
  std::shared_ptr<OpEquivalenceClasses> classes;
  std::optional<DualBound> bound;
  double least = 0;
  /// Options that only dearer plans have are left out.
  double dropped = unreachable;
};

namespace {

/// Costs closer than this part of them are equal.
constexpr double tolerance = 1e-9;
/// Stages of the search: in each the bound is raised until a sweep adds less
/// than this part of it, and options far above it are dropped.
constexpr double progress[] = {5e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8};
constexpr size_t lastStage = std::size(progress) - 1;
constexpr int maxSweeps = 60;
/// How far above the bound solutions are looked for at first, in units of what
/// the last sweep added (fewer where every op is a class), and how much farther
/// each time there are none.
/// A guess that is not well above what is excluded by then is left out.
constexpr double firstWidth = 4, firstFineWidth = 1, widening = 16;
constexpr double leastGrowth = 4;
/// So many times the bound, and all solutions are looked at.
constexpr double hopeless = 100;
/// Where layers repeat, classes of ops that are alike up to so many tensors
/// away bound the search first, if there are so many fewer of them than ops;
/// then finer ones.
constexpr int coarseRadius = 2, coarseGain = 5;
/// They raise the bound until a sweep adds less than this part of it, and it
/// may be too low by this part then: the first ones of what one of the repeated
/// layers costs, finer ones of all, and less for each level.
constexpr double coarseProgress = 4e-4, coarseSlack = 3e-2;
constexpr double finerProgress = 1e-5, finerSlack = 3e-5, levelGain = 0.1;
/// Rows of tables in a guess, and when the exact search took too long; if so
/// few leave no plan at all, more.
constexpr size_t guessRows = 32, narrowRows = 64, mostNarrowRows = 512;
/// All guesses of a search together look at so many times the pairs of rows
/// that it may look at otherwise.
constexpr size_t guessWork = 4;

/// Sweeps over what is left when options are dropped for good.
constexpr int dropTimes = 3;

class Search {
public:
  Search(SearchProblem &problem, const SearchLimits &limits,
         SearchMemory &memory)
      : problem(problem), limits(limits), memory(memory),
        graphs(memory.graphs) {}

  SearchSolution run() {
    levels.push_back(
        std::make_shared<OpEquivalenceClasses>(problem, coarseRadius));
    if (problem.ops.size() < coarseGain * levels[0]->ops.size())
      levels[0] = std::make_shared<OpEquivalenceClasses>(problem);
    SearchSolution solution = solveFirst();
    if (!solution.options.empty())
      return solution;
    if (!isCutOff()) {
      solution.lowerBound =
          std::min(std::max(limits.upper, *firstBound), memory.dropped);
      return solution;
    }
    // A narrow search among all options.
    if (limits.becomesNarrow && limits.upper == unreachable) {
      DualBound all(problem, *levels[0], graphs);
      raise(all, progress[1], unreachable);
      // What is out of reach would crowd out what is not.
      all.prune(unreachable);
      for (size_t rows = narrowRows;
           solution.options.empty() && rows <= mostNarrowRows; rows *= 2)
        solution = eliminateNarrowly(*levels[0], all, unreachable, rows);
    }
    solution.lowerBound = std::min(solution.cost, least);
    return solution;
  }

  /// Pairs of rows looked at.
  size_t getWork() const { return work + workOfGuesses + narrowWork; }

private:
  /// The cheapest solution. The first search leaves the bound that it starts
  /// with, once raised, to later ones.
  SearchSolution solveFirst() {
    if (memory.bound) {
      DualBound bound(problem, *levels[0], graphs, &*memory.bound);
      return solve(0, bound, limits.upper);
    }
    memory.classes = levels[0];
    memory.bound.emplace(problem, *levels[0], graphs);
    return solve(0, *memory.bound, limits.upper);
  }

  bool isCutOff() const { return work > limits.maxWork; }
  bool isFine(size_t level) const {
    return levels[level]->ops.size() == problem.ops.size();
  }

  /// The classes after those of `level`: if these are nearly all, each op.
  void refine(size_t level) {
    if (level + 1 < levels.size())
      return;
    const OpEquivalenceClasses &last = *levels[level];
    levels.push_back(2 * last.ops.size() < problem.ops.size()
                         ? std::make_shared<OpEquivalenceClasses>(problem, last,
                                                                  coarseRadius)
                         : std::make_shared<OpEquivalenceClasses>(problem));
  }

  static double widen(double width, double least) {
    return width > 0 && width < hopeless * least ? width * widening
                                                 : unreachable;
  }

  /// The cheapest solution of at most `upper`.
  SearchSolution solve(size_t level, DualBound &bound, double upper) {
    if (isFine(level))
      return solveFinely(level, bound, upper, 0);
    double progress = coarseProgress, slack = coarseSlack, part = 1;
    if (level == 0) {
      part = double(levels[0]->ops.size()) / problem.ops.size();
    } else {
      progress = finerProgress, slack = finerSlack;
      part = std::pow(levelGain, level - 1.0);
    }
    double step = raise(bound, progress * part, upper);
    double first = least;
    if (first > upper * (1 + tolerance) || first == unreachable)
      return SearchSolution();
    SearchSolution guessed = guess(*levels[level], bound, step, upper);
    if (!guessed.options.empty())
      return guessed;
    refine(level);
    double width = std::max(firstWidth * step, slack * part * first);
    for (;; width = widen(width, first)) {
      double limit = std::min(upper, first + width);
      if (limit < upper && limit - first <= leastGrowth * (excluded - first))
        continue;
      DualBound narrowed = bound;
      narrowed.prune(limit - first + tolerance * limit);
      least = first;
      DualBound finer(problem, *levels[level + 1], graphs, &narrowed);
      SearchSolution solution = solve(level + 1, finer, limit);
      if (!solution.options.empty() || isCutOff())
        return solution;
      excluded = std::max(excluded, limit);
      if (limit == upper)
        return solution;
    }
  }

  /// The cheapest solution of at most `upper`, from stage `stage` on.
  SearchSolution solveFinely(size_t level, DualBound &bound, double upper,
                             size_t stage) {
    double step = raise(bound, progress[stage], upper);
    double first = least;
    if (first > upper * (1 + tolerance) || first == unreachable)
      return SearchSolution();
    SearchSolution guessed = guess(*levels[level], bound, step, upper);
    if (!guessed.options.empty())
      return guessed;
    while (stage < lastStage && step <= progress[stage + 1] * first)
      ++stage;
    for (double width = firstFineWidth * step;; width = widen(width, first)) {
      double limit = std::min(upper, first + width);
      if (limit < upper && limit - first <= leastGrowth * (excluded - first))
        continue;
      DualBound narrowed = bound;
      narrowed.prune(limit - first + tolerance * limit);
      least = first;
      SearchSolution solution =
          stage == lastStage ? finish(*levels[level], narrowed, limit)
                             : solveFinely(level, narrowed, limit, stage + 1);
      if (!solution.options.empty() || isCutOff())
        return solution;
      excluded = std::max(excluded, limit);
      if (limit == upper)
        return solution;
    }
  }

  /// A solution of at most `upper` to which there is hardly any better one, if
  /// the bound rose by no more than `step` and one is found quickly.
  SearchSolution guess(const OpEquivalenceClasses &classes,
                       const DualBound &bound, double step, double upper) {
    double gap = limits.indifference * least;
    if (step * firstWidth > gap || workOfGuesses > guessWork * limits.maxWork)
      return SearchSolution();
    DualBound narrowed = bound;
    narrowed.prune(gap);
    EliminationLimits narrow;
    narrow.gap = gap;
    narrow.maxRows = guessRows;
    narrow.maxWork = guessWork * limits.maxWork;
    SearchSolution solution =
        eliminate(problem, classes, narrowed, narrow, workOfGuesses);
    if (solution.cost > std::min(upper, least + gap))
      return SearchSolution();
    solution.lowerBound = std::min(solution.cost, least);
    return solution;
  }

  SearchSolution finish(const OpEquivalenceClasses &classes, DualBound &bound,
                        double upper) {
    EliminationLimits all;
    all.gap = upper - least + tolerance * upper;
    all.maxWork = limits.maxWork;
    SearchSolution solution = eliminate(problem, classes, bound, all, work);
    if (isCutOff() && limits.becomesNarrow)
      solution = eliminateNarrowly(classes, bound, all.gap, narrowRows);
    if (isCutOff()) {
      solution.lowerBound = least;
      return solution;
    }
    // Of those that cost more some were dropped on the way, perhaps cheaper
    // ones than what is left of them.
    if (solution.cost > upper * (1 + tolerance))
      return SearchSolution();
    solution.lowerBound = solution.cost;
    return solution;
  }

  SearchSolution eliminateNarrowly(const OpEquivalenceClasses &classes,
                                   DualBound &bound, double gap,
                                   size_t maxRows) {
    EliminationLimits narrow;
    narrow.gap = gap;
    narrow.maxRows = maxRows;
    return eliminate(problem, classes, bound, narrow, narrowWork);
  }

  /// Raises the bound to `least`, for solutions of at most `upper`, until a
  /// sweep adds less than `progress` of it; returns what the last one added.
  double raise(DualBound &bound, double progress, double upper) {
    double last = 0;
    double step = unreachable;
    for (int sweep = 0; sweep < maxSweeps; ++sweep) {
      least = bound.sweep();
      step = least - last;
      last = least;
      if (least > upper || step <= progress * least)
        break;
    }
    if (!firstBound)
      firstBound = least;
    if (&bound == &*memory.bound)
      memory.least = least;
    return std::max(step, tolerance * least);
  }

  SearchProblem &problem;
  SearchLimits limits;
  /// Pairs of rows looked at while nothing was narrow, in guesses, and when
  /// the search had taken too long.
  size_t work = 0, workOfGuesses = 0, narrowWork = 0;
  SearchMemory &memory;
  PriceGraphs &graphs;
  std::vector<std::shared_ptr<OpEquivalenceClasses>> levels;
  double least = 0;
  /// Where the bound of all options came to first.
  std::optional<double> firstBound;
  /// No plan costs as little.
  double excluded = 0;
};

} // namespace

ShardingSearch::ShardingSearch(SearchProblem &problem)
    : problem(problem), memory(std::make_unique<SearchMemory>()) {}

ShardingSearch::~ShardingSearch() = default;

void ShardingSearch::dropAbove(double upper) {
  if (!memory->bound || upper >= memory->dropped)
    return;
  memory->dropped = upper;
  DualBound &bound = *memory->bound;
  double &least = memory->least;
  for (int time = 0; time < dropTimes; ++time) {
    bound.prune(upper - least + tolerance * upper);
    least = std::max(least, bound.sweep());
  }
}

size_t ShardingSearch::getWork() const { return memory->work; }

SearchSolution ShardingSearch::find(const SearchLimits &limits) {
  Search search(problem, limits, *memory);
  SearchSolution solution = search.run();
  memory->work += search.getWork();
  return solution;
}
