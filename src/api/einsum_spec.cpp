// See einsum_spec.h.
#include "src/api/einsum_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace tenon::src {
namespace {

// One comma's worth of subscripts: letters, and where among them the ellipsis stands.
struct Term {
  std::string letters;
  std::optional<std::size_t> ellipsis;
};

class Reader {
 public:
  Reader(const std::string& spec, const Place& place) : spec_(spec), place_(place) {
    std::copy_if(spec.begin(), spec.end(), std::back_inserter(text_), [](char c) { return c != ' '; });
    const std::size_t arrow = text_.find("->");
    std::string left = text_.substr(0, arrow);
    for (std::size_t comma = 0; (comma = left.find(',')) != std::string::npos; left.erase(0, comma + 1))
      terms_.push_back(term(left.substr(0, comma)));
    terms_.push_back(term(left));
    if (arrow != std::string::npos) output_ = term(text_.substr(arrow + 2));
  }

  EinsumSpec read(const std::vector<int>& ranks, const std::vector<std::string>& types) const {
    if (ranks.size() != terms_.size())
      fail(fmt::format("{} operand{}, and \"{}\" has subscripts for {}", ranks.size(), ranks.size() == 1 ? "" : "s",
                       spec_, terms_.size()),
           "give each its own, with commas between them");
    EinsumSpec result;
    std::size_t widest = 0;
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      const std::size_t width = ellipsis_width(i, ranks[i], types[i]);
      widest = std::max(widest, width);
      result.operands.push_back(labels(terms_[i], width));
    }
    result.output = output_ ? explicit_output(widest) : implicit_output(widest);
    check_output(result);
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& message, const std::string& remedy) const {
    throw Error(ErrorKind::type, "einsum: " + message, place_, remedy);
  }

  Term term(const std::string& text) const {
    Term result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text.compare(i, 3, "...") == 0) {
        if (result.ellipsis) fail(fmt::format("two ellipses in '{}' of \"{}\"", text, spec_), "give one");
        result.ellipsis = result.letters.size();
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(text[i])) != 0) {
        result.letters += text[i];
      } else {
        fail(fmt::format("'{}' in \"{}\" is no label", text[i], spec_),
             "label axes with letters, and separate operands with ',' and the result with '->'");
      }
    }
    return result;
  }

  // How many axes the ellipsis of operand i stands for.
  std::size_t ellipsis_width(std::size_t i, int rank, const std::string& type) const {
    const Term& term = terms_[i];
    const auto axes = static_cast<std::size_t>(rank), named = term.letters.size();
    if (named > axes || (named < axes && !term.ellipsis))
      fail(fmt::format("'{}' has {} label{} for the {} axes of operand {}, {}", term.letters, named,
                       named == 1 ? "" : "s", axes, i + 1, type),
           "give each axis a label, or let an ellipsis stand for the rest");
    return axes - named;
  }

  static Labels labels(const Term& term, std::size_t width) {
    Labels result(term.letters.begin(), term.letters.end());
    for (std::size_t i = 0; term.ellipsis && i < width; ++i)
      result.insert(result.begin() + static_cast<std::ptrdiff_t>(*term.ellipsis), kEllipsis + static_cast<Label>(i));
    return result;
  }

  Labels explicit_output(std::size_t widest) const {
    if (widest > 0 && !output_->ellipsis)
      fail(fmt::format("the result of \"{}\" has no ellipsis, and an operand's stands for axes", spec_),
           "write ... in the result too, or label these axes");
    return labels(*output_, widest);
  }

  Labels implicit_output(std::size_t widest) const {
    std::string all, once;
    for (const Term& term : terms_) all += term.letters;
    std::copy_if(all.begin(), all.end(), std::back_inserter(once),
                 [&](char c) { return std::count(all.begin(), all.end(), c) == 1; });
    std::sort(once.begin(), once.end());
    return labels({once, 0}, widest);
  }

  void check_output(const EinsumSpec& result) const {
    for (Label label : result.output) {
      if (std::count(result.output.begin(), result.output.end(), label) > 1)
        fail(fmt::format("{} is twice in the result of \"{}\"", describe(label), spec_), "name each axis once");
      const auto has = [&](const Labels& labels) { return contains(labels, label); };
      if (std::none_of(result.operands.begin(), result.operands.end(), has))
        fail(fmt::format("{} of the result of \"{}\" is in no operand", describe(label), spec_),
             "name axes of the operands; broadcast_to makes others");
    }
  }

  const std::string& spec_;
  const Place& place_;
  std::string text_;
  std::vector<Term> terms_;
  std::optional<Term> output_;
};

}  // namespace

EinsumSpec read_einsum(const std::string& spec, const std::vector<int>& ranks, const std::vector<std::string>& types,
                       const Place& place) {
  return Reader(spec, place).read(ranks, types);
}

std::string describe(Label label) {
  return label < kEllipsis ? fmt::format("label '{}'", static_cast<char>(label))
                           : fmt::format("axis {} of the ellipsis", kEllipsis - 1 - label);
}

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

}  // namespace tenon::src
