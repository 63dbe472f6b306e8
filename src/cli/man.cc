// SPDX-License-Identifier: Apache-2.0
#include "cli/man.h"

#include <algorithm>

#include "cli/help.h"
#include "report/plain_text.h"

namespace culprit::cli {
namespace {

std::string Bold(std::string_view text) { return "\\fB" + TroffText(text) + "\\fR"; }
std::string Italic(std::string_view text) { return "\\fI" + TroffText(text) + "\\fR"; }

std::string Upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::string OneLine(std::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::string Title(const std::string& page, std::string_view version) {
  return ".TH " + TroffText(Upper(page)) + " 1 \"\" \"culprit " + TroffText(version) +
         "\" \"User Commands\"\n";
}

// Filling must not break a command line nor spread its words.
std::string Verbatim(std::string_view text) {
  std::string out = ".PP\n.nf\n.RS 4\n";
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += TroffText(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + ".RE\n.fi\n";
}

std::string Examples(const std::vector<Example>& examples) {
  if (examples.empty()) return "";
  std::string text = ".SH EXAMPLES\n";
  for (const Example& example : examples) {
    text +=
        ".TP\n" + Bold(OneLine(example.command)) + "\n" + TroffText(OneLine(example.what)) + "\n";
  }
  return text;
}

std::string FlagTag(const Flag& flag) {
  std::string tag;
  if (flag.letter != 0) tag = Bold(std::string{'-', flag.letter}) + ", ";
  tag += Bold(flag.name);
  const std::string form = FlagForm(flag);
  if (form.size() > flag.name.size()) tag += " " + Italic(form.substr(flag.name.size() + 1));
  return tag;
}

std::string FlagEntry(const Flag& flag) {
  std::string text = ".TP\n" + FlagTag(flag) + "\n" + TroffText(OneLine(flag.help));
  if (flag.required) text += " (required)";
  text += ".\n";
  if (!flag.default_text.empty()) text += "Default: " + TroffText(flag.default_text) + ".\n";
  return text;
}

std::string ExitStatus() {
  return ".SH EXIT STATUS\n"
         ".TP\n0\nDone.\n"
         ".TP\n1\nThe operation failed, or a check did not hold.\n"
         ".TP\n2\nThe command line was wrong; nothing was done.\n";
}

std::string Reference(std::string_view command_name) {
  return Bold(ManPageName(command_name)) + "(1)";
}

}  // namespace

std::string ManPageName(std::string_view command_name) {
  std::string name = "culprit";
  if (!command_name.empty()) name += "-" + std::string(command_name);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string TroffText(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  const std::string plain = report::PlainText(text);
  std::string out;
  if (!plain.empty() && (plain.front() == '.' || plain.front() == '\'')) out = "\\&";
  for (size_t at = 0; at < plain.size();) {
    const size_t length = report::CodePointOffset(std::string_view(plain).substr(at), 1);
    const char c = plain[at];
    if (length > 1) {
      char32_t code_point = static_cast<unsigned char>(c) & (0xffU >> (length + 1));
      for (size_t i = 1; i < length; ++i) {
        code_point = code_point << 6 | (static_cast<unsigned char>(plain[at + i]) & 0x3f);
      }
      std::string digits;
      for (; code_point != 0 || digits.size() < 4; code_point >>= 4) {
        digits.insert(digits.begin(), kHex[code_point & 15]);
      }
      out += "\\[u" + digits + "]";
    } else if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c == '"') {
      out += "\\(dq";
    } else if (c == '`') {
      out += "\\(ga";
    } else if (c == '^') {
      out += "\\(ha";
    } else if (c == '~') {
      out += "\\(ti";
    } else {
      out += c;
    }
    at += length;
  }
  return out;
}

std::string ManPage(const Command& command, std::string_view version) {
  const std::string page = ManPageName(command.name);
  std::string text = Title(page, version);
  text += ".SH NAME\n" + TroffText(page) + " \\- " + TroffText(OneLine(command.summary)) + "\n";
  text += ".SH SYNOPSIS\n" + Bold("culprit " + std::string(command.name));
  const std::string usage = UsageLine(command);
  text += TroffText(usage.substr(std::string_view("culprit ").size() + command.name.size())) + "\n";
  text += Examples(command.examples);
  text += ".SH OPTIONS\n";
  for (const Flag& flag : command.flags) text += FlagEntry(flag);
  text += FlagEntry(HelpFlag());
  const std::vector<Paragraph> details = Paragraphs(command.details);
  if (!details.empty()) text += ".SH DESCRIPTION\n";
  for (const Paragraph& paragraph : details) {
    text += paragraph.verbatim ? Verbatim(paragraph.text)
                               : ".PP\n" + TroffText(OneLine(paragraph.text)) + "\n";
  }
  return text + ExitStatus() + ".SH SEE ALSO\n" + Reference("") + "\n";
}

std::string ManOverviewPage(const std::vector<Command>& commands, std::string_view version) {
  std::string text = Title("culprit", version);
  text +=
      ".SH NAME\nculprit \\- finds the few behaviours behind most of the delay, over thousands "
      "of traces\n"
      ".SH SYNOPSIS\n\\fBculprit\\fR \\fICOMMAND\\fR [operands] [flags]\n.br\n"
      "\\fBculprit \\-\\-help\\fR\n.br\n\\fBculprit \\-\\-version\\fR\n"
      ".SH COMMANDS\n";
  for (const Command& command : commands) {
    text += ".TP\n" + Reference(command.name) + "\n" + TroffText(OneLine(command.summary)) + "\n";
  }
  std::vector<Example> examples;
  for (const Command& command : commands) {
    if (!command.examples.empty()) examples.push_back(command.examples.front());
  }
  text += Examples(examples);
  return text + ExitStatus() +
         ".SH ENVIRONMENT\n"
         ".TP\nNO_COLOR\nIf set to anything, the output has no colour.\n";
}

}  // namespace culprit::cli
