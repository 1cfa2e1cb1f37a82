//===- RandomProgram.cpp - A source module made by chance -----------------===//

#include "RandomProgram.h"

#include <algorithm>
#include <random>
#include <vector>

using namespace shardc::test;

namespace {

using Shape = std::vector<int64_t>;

/// A value of the program; floats are f32.
struct Value {
  std::string name;
  Shape shape;
  bool isUsed = false;
};

std::string toText(const Shape &shape, const std::string &element = "f32") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

std::string toList(const Shape &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

class Generator {
public:
  // Neighbouring seeds must differ from the first number on.
  explicit Generator(uint64_t seed) : random(seed * 0x9E3779B97F4A7C15u + 1) {}

  std::string run() {
    chooseMesh();
    optimizer = pick<std::string>({"sgd", "momentum", "adam", "adamw"});
    batch = pickSize();
    size_t current = argument("input", {batch, pickSize()});
    int64_t steps = 3 + below(6);
    for (int64_t step = 0; step < steps; ++step) {
      current = extend(current);
      if (chance(25))
        current = constrain(current);
    }
    if (values[current].shape.empty())
      current = broadcast(current, {}, {batch, pickSize()});
    // There must be something to train.
    finish(bias(current));
    return print();
  }

private:
  uint64_t below(uint64_t bound) { return random() % bound; }
  bool chance(uint64_t percent) { return below(100) < percent; }
  template <typename T>
  T pick(std::vector<T> choices) {
    return choices[below(choices.size())];
  }
  int64_t pickSize() {
    return pick<int64_t>({1, 2, 3, 4, 4, 5, 6, 6, 7, 8, 9, 12});
  }

  void chooseMesh() {
    int64_t devices = 1;
    for (uint64_t axis = 0, count = 1 + below(3); axis < count; ++axis) {
      int64_t size = pick<int64_t>({1, 2, 2, 3, 4, 6});
      while (devices * size > 24)
        size = 1 + below(2);
      devices *= size;
      axes.push_back({std::string(1, static_cast<char>('a' + axis)), size});
    }
  }

  //===--------------------------------------------------------------------===//
  // Annotations
  //===--------------------------------------------------------------------===//

  /// `<@mesh, [{"a"}, {?}]>`.
  std::string sharding(size_t rank) {
    std::vector<std::string> names;
    for (const auto &axis : axes)
      names.push_back("\"" + axis.first + "\"");
    for (size_t i = names.size(); i > 1; --i)
      std::swap(names[i - 1], names[below(i)]);
    std::vector<std::string> dims(rank);
    std::string excluded;
    for (const std::string &name : names) {
      uint64_t place = below(rank + 1);
      std::string &list = place < rank ? dims[place] : excluded;
      list += (list.empty() ? "" : ", ") + name;
    }
    std::string text;
    for (std::string &dim : dims) {
      if (chance(30))
        dim += dim.empty() ? "?" : ", ?";
      text += (text.empty() ? "{" : ", {") + dim + "}";
      if (chance(20))
        text += "p" + std::to_string(below(3));
    }
    text = "<@mesh, [" + text + "]";
    if (!excluded.empty() && chance(15))
      text += ", replicated={" + excluded + "}";
    return text + ">";
  }

  std::string annotation(const std::string &key, size_t rank,
                         uint64_t percent) {
    if (!chance(percent))
      return "";
    return ", shardc." + key + " = #shardc.sharding" + sharding(rank);
  }

  size_t argument(const std::string &role, const Shape &shape,
                  const std::string &element = "f32") {
    std::string name = "x" + std::to_string(arguments.size());
    std::string text = "      %" + name + ": " + toText(shape, element) +
                       " {shardc.role = #shardc." + role + "<\"" + name + "\"" +
                       (role == "parameter" ? ", constant(0.5)" : "") + ">" +
                       annotation("sharding", shape.size(), 70);
    if (role == "parameter") {
      if (optimizer != "sgd")
        text += annotation("state_sharding", shape.size(), 25);
      text += annotation("grad_sharding", shape.size(), 15);
    }
    arguments.push_back(text + "}");
    values.push_back({"%" + name, shape});
    return values.size() - 1;
  }

  //===--------------------------------------------------------------------===//
  // Ops
  //===--------------------------------------------------------------------===//

  /// Adds `NAME = shardc.TEXT` of this shape.
  size_t op(const std::string &text, const Shape &shape) {
    std::string name = "%v" + std::to_string(lines.size());
    lines.push_back("    " + name + " = shardc." + text);
    values.push_back({name, shape});
    return values.size() - 1;
  }

  /// The name of value `index`, which is now used.
  std::string use(size_t index) {
    values[index].isUsed = true;
    return "%" + values[index].name.substr(1);
  }

  size_t unary(const std::string &name, size_t x) {
    Shape shape = values[x].shape;
    return op(name + " " + use(x) + " : " + toText(shape), shape);
  }

  size_t binary(const std::string &name, size_t x, size_t y) {
    Shape shape = values[x].shape;
    std::string operands = use(x) + ", " + use(y);
    return op(name + " " + operands + " : " + toText(shape), shape);
  }

  size_t constant(const std::string &value, const Shape &shape) {
    return op("constant dense<" + value + "> : " + toText(shape), shape);
  }

  /// Another value of this shape, or a new parameter.
  size_t partner(size_t x) {
    Shape shape = values[x].shape;
    if (chance(60))
      for (size_t other = values.size(); other-- > 0;)
        if (other != x && values[other].shape == shape && chance(70))
          return other;
    return argument("parameter", shape);
  }

  size_t constrain(size_t x) {
    Shape shape = values[x].shape;
    if (shape.empty())
      return x;
    return op("sharding_constraint " + use(x) + " sharding = " +
                  sharding(shape.size()) + " : " + toText(shape),
              shape);
  }

  size_t linear(size_t x) {
    Shape shape = values[x].shape;
    int64_t out = pickSize();
    size_t w = argument("parameter", {shape.back(), out});
    size_t b = argument("parameter", {out});
    std::string text = "linear " + use(x) + ", " + use(w) + ", " + use(b) +
                       " : " + toText(shape) + ", " + toText(values[w].shape) +
                       ", " + toText({out}) + " -> ";
    shape.back() = out;
    return op(text + toText(shape), shape);
  }

  /// x times itself or a partner: dimensions are batching, contracting, or free
  /// by chance.
  size_t contract(size_t x) {
    size_t y = partner(x);
    Shape shape = values[x].shape, batching, contracting, left, right;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      uint64_t kind = below(3);
      if (kind == 2 && left.size() == 1)
        kind = below(2);
      (kind == 0 ? batching : kind == 1 ? contracting : left).push_back(dim);
    }
    right = left;
    Shape result;
    for (const Shape *dims : {&batching, &left, &right})
      for (int64_t dim : *dims)
        result.push_back(shape[dim]);
    std::string text = "dot_general " + use(x) + ", " + use(y);
    if (!batching.empty())
      text += " batching = " + toList(batching) + " x " + toList(batching);
    return op(text + " contracting = " + toList(contracting) + " x " +
                  toList(contracting) + " : " + toText(shape) + ", " +
                  toText(shape) + " -> " + toText(result),
              result);
  }

  size_t reduce(const std::string &kind, size_t x, const Shape &dims) {
    Shape shape = values[x].shape, result;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (!std::count(dims.begin(), dims.end(), static_cast<int64_t>(dim)))
        result.push_back(shape[dim]);
    return op("reduce " + kind + " " + use(x) + " dims = " + toList(dims) +
                  " : " + toText(shape) + " -> " + toText(result),
              result);
  }

  size_t broadcast(size_t x, const Shape &dims, const Shape &shape) {
    Shape from = values[x].shape;
    return op("broadcast " + use(x) + " dims = " + toList(dims) + " : " +
                  toText(from) + " -> " + toText(shape),
              shape);
  }

  /// A reduction over one dimension; often broadcast back.
  size_t normalize(size_t x) {
    Shape shape = values[x].shape, others;
    int64_t dim = below(shape.size());
    bool isSum = chance(70);
    size_t reduced = reduce(isSum ? "sum" : "max", x, {dim});
    if (chance(30) && shape.size() > 1)
      return reduced;
    for (size_t other = 0; other < shape.size(); ++other)
      if (static_cast<int64_t>(other) != dim)
        others.push_back(other);
    // Less their maximum, equal elements would be zeros, where no fault shows.
    return binary(isSum ? "sub" : "add", x, broadcast(reduced, others, shape));
  }

  size_t bias(size_t x) {
    Shape shape = values[x].shape;
    int64_t dim = below(shape.size());
    size_t vector = argument("parameter", {shape[dim]});
    return binary(pick<std::string>({"add", "mul", "sub"}), x,
                  broadcast(vector, {dim}, shape));
  }

  size_t transpose(size_t x) {
    Shape shape = values[x].shape, permutation, result;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      permutation.push_back(dim);
    std::rotate(permutation.begin(), permutation.begin() + below(shape.size()),
                permutation.end());
    for (int64_t dim : permutation)
      result.push_back(shape[dim]);
    return op("transpose " + use(x) + " permutation = " + toList(permutation) +
                  " : " + toText(shape) + " -> " + toText(result),
              result);
  }

  /// Splits the first dimension that has a divisor, or merges the first two.
  size_t reshape(size_t x) {
    Shape shape = values[x].shape, result = shape;
    for (size_t dim = 0; dim < shape.size() && shape.size() < 3; ++dim)
      for (int64_t divisor : {2, 3})
        if (result == shape && shape[dim] > divisor &&
            shape[dim] % divisor == 0) {
          result[dim] = chance(50) ? divisor : shape[dim] / divisor;
          result.insert(result.begin() + dim + 1, shape[dim] / result[dim]);
        }
    if (result == shape && shape.size() > 1) {
      result.erase(result.begin());
      result[0] *= shape[0];
    }
    return op("reshape " + use(x) + " : " + toText(shape) + " -> " +
                  toText(result),
              result);
  }

  size_t layerNorm(size_t x) {
    Shape shape = values[x].shape;
    size_t scale = argument("parameter", {shape.back()});
    size_t shift = argument("parameter", {shape.back()});
    return op("layer_norm " + use(x) + ", " + use(scale) + ", " + use(shift) +
                  " epsilon = 1.0e-3 : " + toText(shape) + ", " +
                  toText({shape.back()}),
              shape);
  }

  size_t dropout(size_t x) {
    Shape shape = values[x].shape;
    return op("dropout " + use(x) + " rate = 0.25 stream = " +
                  std::to_string(lines.size()) + " : " + toText(shape),
              shape);
  }

  /// A function that needs a positive argument, of |x| + 1.
  size_t positive(size_t x) {
    size_t one = constant("1.0", values[x].shape);
    size_t argument = binary("add", unary("abs", x), one);
    if (chance(30))
      return binary("div", partner(x), argument);
    return unary(pick<std::string>({"log", "sqrt", "rsqrt"}), argument);
  }

  /// (|x| + 1)^tanh(x).
  size_t power(size_t x) {
    size_t one = constant("1.0", values[x].shape);
    size_t base = binary("add", unary("abs", x), one);
    return binary("power", base, unary("tanh", x));
  }

  size_t choose(size_t x) {
    size_t y = partner(x);
    Shape shape = values[x].shape;
    size_t test = op("compare " + pick<std::string>({"gt", "le", "eq"}) + " " +
                         use(x) + ", " + use(y) + " : " + toText(shape) +
                         " -> " + toText(shape, "i1"),
                     shape);
    std::string operands = use(test) + ", " + use(x) + ", " + use(y);
    // Truth values are no partners for sums.
    values.pop_back();
    return op("select " + operands + " : " + toText(shape, "i1") + ", " +
                  toText(shape),
              shape);
  }

  /// Adds the global index along a dimension.
  size_t index(size_t x) {
    Shape shape = values[x].shape;
    size_t iota = op("iota dim = " + std::to_string(below(shape.size())) +
                         " : " + toText(shape),
                     shape);
    return binary("mul", x, iota);
  }

  /// Times a number in [1, 2) whose bits are a hash of the position.
  size_t hash(size_t x) {
    Shape shape = values[x].shape;
    // Integers are no values that other ops may take.
    std::string type = toText(shape, "i32");
    auto line = [&](const std::string &text) {
      std::string name = "%v" + std::to_string(lines.size());
      lines.push_back("    " + name + " = shardc." + text + " : " + type);
      return name;
    };
    auto binary = [&](const std::string &name, const std::string &lhs,
                      const std::string &rhs) {
      return line(name + " " + lhs + ", " + rhs);
    };
    auto splat = [&](const std::string &number) {
      return line("constant dense<" + number + ">");
    };
    std::string bits =
        line("iota dim = " + std::to_string(below(shape.size())));
    bits = binary("add", bits, splat("1"));
    bits = binary("mul", bits, splat("-1640531535"));
    bits =
        binary("xor", bits, binary("shift_right_logical", bits, splat("15")));
    bits = binary("shift_right_logical", bits, splat("9"));
    bits = binary("or", bits, splat("1065353216"));
    size_t number =
        op("bitcast " + bits + " : " + type + " -> " + toText(shape), shape);
    return this->binary("mul", x, number);
  }

  /// Some of the elements along a dimension, padding around them, or the tensor
  /// with a part of itself behind.
  size_t move(size_t x) {
    Shape shape = values[x].shape, result = shape, zeros(shape.size(), 0),
          first = zeros, more = zeros, ones(shape.size(), 1);
    size_t dim = below(shape.size());
    if (chance(30)) {
      first[dim] = below(3);
      more[dim] = below(2);
      result[dim] =
          first[dim] + (shape[dim] - 1) * (more[dim] + 1) + 1 + below(2);
      return op("pad " + use(x) + " low = " + toList(first) +
                    " interior = " + toList(more) +
                    " fill = " + pick<std::string>({"0.0", "0.5"}) + " : " +
                    toText(shape) + " -> " + toText(result),
                result);
    }
    first[dim] = below(shape[dim]);
    ones[dim] = 1 + below(2);
    result[dim] = (shape[dim] - first[dim] + ones[dim] - 1) / ones[dim];
    size_t part = op("extract_slice " + use(x) + " starts = " + toList(first) +
                         " strides = " + toList(ones) + " : " + toText(shape) +
                         " -> " + toText(result),
                     result);
    if (chance(50))
      return part;
    Shape joined = shape;
    joined[dim] += result[dim];
    std::string operands = use(x) + ", " + use(part);
    return op("concatenate " + operands + " dim = " + std::to_string(dim) +
                  " : (" + toText(shape) + ", " + toText(result) + ") -> " +
                  toText(joined),
              joined);
  }

  /// One or a few ops on `x`, which is not a scalar.
  size_t extend(size_t x) {
    if (values[x].shape.empty())
      x = broadcast(x, {}, {batch, pickSize()});
    size_t rank = values[x].shape.size();
    switch (below(20)) {
    case 0:
    case 1:
    case 2:
      return rank > 1 ? linear(x) : bias(x);
    case 3:
    case 4:
      return contract(x);
    case 5:
    case 6:
      return normalize(x);
    case 7:
      return bias(x);
    case 8:
      return rank > 1 ? transpose(x) : normalize(x);
    case 9:
      return reshape(x);
    case 10:
      return layerNorm(x);
    case 11:
      return dropout(x);
    case 12:
      return positive(x);
    case 13:
      return choose(x);
    case 14:
      return chance(50) ? index(x) : hash(x);
    case 15:
      return move(x);
    case 16:
      return chance(50) ? power(x) : binary("sub", x, unary("floor", x));
    case 17:
    case 18:
      return binary(pick<std::string>({"add", "sub", "mul", "max", "min"}), x,
                    partner(x));
    default:
      return unary(pick<std::string>({"relu", "neg", "tanh", "sigmoid", "gelu",
                                      "silu", "abs", "erf", "cos", "sin"}),
                   x);
    }
  }

  //===--------------------------------------------------------------------===//
  // The loss
  //===--------------------------------------------------------------------===//

  size_t lossOf(size_t x) {
    Shape shape = values[x].shape;
    bool hasRows = !shape.empty() && shape[0] == batch;
    if (hasRows && shape.size() == 2 && shape[1] > 1 && chance(60)) {
      size_t labels = argument("label", {batch}, "i32");
      std::string operands = use(x) + ", " + use(labels);
      return op("softmax_cross_entropy " + operands + " : " + toText(shape) +
                    ", " + toText({batch}, "i32") + " -> tensor<f32>",
                {});
    }
    if (hasRows) {
      size_t target = argument("label", shape);
      std::string operands = use(x) + ", " + use(target);
      return op("mse " + operands + " : " + toText(shape) + " -> tensor<f32>",
                {});
    }
    return sum(x);
  }

  size_t sum(size_t x) {
    Shape all;
    for (size_t dim = 0; dim < values[x].shape.size(); ++dim)
      all.push_back(dim);
    return all.empty() ? x : reduce("sum", x, all);
  }

  /// The loss of `x` and, that every parameter has a gradient, the sum of all
  /// that nothing uses.
  void finish(size_t x) {
    loss = lossOf(x);
    for (size_t index = 0, count = values.size(); index < count; ++index)
      if (!values[index].isUsed && index != loss)
        loss = binary("add", loss, sum(index));
  }

  std::string print() {
    std::string rate = "learning_rate = 0.5";
    std::string clip = chance(30) ? ", clip_norm = 0.5" : "";
    std::string text = "module attributes {shardc.training = #shardc.training<"
                       "loss = @loss, optimizer = <" +
                       optimizer + ", " + rate + ">" + clip +
                       ">} {\n  shardc.mesh @mesh <[";
    for (size_t axis = 0; axis < axes.size(); ++axis)
      text += (axis ? ", \"" : "\"") + axes[axis].first +
              "\" = " + std::to_string(axes[axis].second);
    text += "]>\n  func.func @loss(\n";
    for (size_t i = 0; i < arguments.size(); ++i)
      text += arguments[i] + (i + 1 < arguments.size() ? ",\n" : "");
    text += ") -> tensor<f32> {\n";
    for (const std::string &line : lines)
      text += line + "\n";
    return text + "    return " + values[loss].name +
           " : tensor<f32>\n  }\n}\n";
  }

  std::mt19937_64 random;
  std::vector<std::pair<std::string, int64_t>> axes;
  std::string optimizer;
  int64_t batch = 1;
  std::vector<std::string> arguments, lines;
  std::vector<Value> values;
  size_t loss = 0;
};

} // namespace

std::string shardc::test::makeRandomProgram(uint64_t seed) {
  return Generator(seed).run();
}
