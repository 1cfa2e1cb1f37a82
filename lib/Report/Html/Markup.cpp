//===- Markup.cpp - HTML and SVG, element by element ----------------------===//

#include "Markup.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace shardc;

static constexpr StringLiteral replacement = "\xEF\xBF\xBD";

std::string shardc::escapeMarkup(StringRef text) {
  std::string valid = json::isUTF8(text) ? text.str() : json::fixUTF8(text);
  std::string escaped;
  for (char c : valid) {
    bool isControl =
        (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f;
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else if (c == '\'')
      escaped += "&#39;";
    else if (c == '\t')
      escaped += ' ';
    else if (isControl)
      escaped += replacement;
    else
      escaped += c;
  }
  return escaped;
}

std::string shardc::escapeScriptData(StringRef json) {
  std::string escaped;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (c == '<')
      escaped += "\\u003c";
    else if (c == '>')
      escaped += "\\u003e";
    else if (c == '&')
      escaped += "\\u0026";
    else if (json.substr(i).starts_with("\xE2\x80\xA8") ||
             json.substr(i).starts_with("\xE2\x80\xA9")) {
      escaped += json[i + 2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else
      escaped += c;
  }
  return escaped;
}

std::string shardc::shorten(StringRef text, size_t columns) {
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    // Bytes that continue a character belong to it.
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80)
      continue;
    if (++characters > columns)
      return text.take_front(i).str() + "\xE2\x80\xA6";
  }
  return text.str();
}

void Markup::begin(StringRef tag, Attributes attributes, bool isEmpty) {
  os << '<' << tag;
  for (const auto &[name, value] : attributes)
    if (!value.empty() || name == "alt")
      os << ' ' << name << "=\"" << escapeMarkup(value) << '"';
  os << (isEmpty ? "/>" : ">");
}

Markup &Markup::open(StringRef tag, Attributes attributes) {
  begin(tag, attributes, /*isEmpty=*/false);
  opened.push_back(tag.str());
  return *this;
}

Markup &Markup::close() {
  os << "</" << opened.pop_back_val() << '>';
  return *this;
}

Markup &Markup::text(StringRef text) {
  os << escapeMarkup(text);
  return *this;
}

Markup &Markup::element(StringRef tag, Attributes attributes, StringRef text) {
  return open(tag, attributes).text(text).close();
}

Markup &Markup::empty(StringRef tag, Attributes attributes) {
  begin(tag, attributes, /*isEmpty=*/true);
  return *this;
}

Markup &Markup::raw(StringRef markup) {
  os << markup;
  return *this;
}

std::string shardc::getCoordinate(double value) {
  std::string text = formatv("{0:f1}", value).str();
  return StringRef(text).ends_with(".0") ? text.substr(0, text.size() - 2)
                                         : text;
}

void shardc::openSvg(Markup &markup, double width, double height,
                     StringRef label, StringRef id) {
  markup.open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                      {"id", id.str()},
                      {"viewBox", "0 0 " + getCoordinate(width) + " " +
                                      getCoordinate(height)},
                      {"width", getCoordinate(width)},
                      {"height", getCoordinate(height)},
                      {"role", "img"},
                      {"aria-label", label.str()}});
}

void shardc::addRectangle(Markup &markup, double x, double y, double width,
                          double height, StringRef classes, StringRef title) {
  Markup::Attributes attributes = {{"x", getCoordinate(x)},
                                   {"y", getCoordinate(y)},
                                   {"width", getCoordinate(width)},
                                   {"height", getCoordinate(height)},
                                   {"class", classes.str()}};
  if (title.empty())
    markup.empty("rect", attributes);
  else
    markup.open("rect", attributes).element("title", {}, title).close();
}

void shardc::addText(Markup &markup, double x, double y, StringRef anchor,
                     StringRef text, StringRef classes) {
  markup.element("text",
                 {{"x", getCoordinate(x)},
                  {"y", getCoordinate(y)},
                  {"text-anchor", anchor.str()},
                  {"class", classes.str()}},
                 text);
}

void shardc::addLine(Markup &markup, double x1, double y1, double x2, double y2,
                     StringRef classes) {
  markup.empty("line", {{"x1", getCoordinate(x1)},
                        {"y1", getCoordinate(y1)},
                        {"x2", getCoordinate(x2)},
                        {"y2", getCoordinate(y2)},
                        {"class", classes.str()}});
}
