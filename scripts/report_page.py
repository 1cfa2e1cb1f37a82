"""Reads a page of shardc-compile --report=html without a browser.

The page has to be well-formed and to refer to no other file; then there are its texts
and its numbers, by the section, the fact, and the table and row that they are in.
"""

import html.parser
import json

VOID = {"meta", "br"}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.opened, self.values, self.text, self.ids = [], [], "", set()
        self.scripts = []
        # The class of each row with the values of its data elements.
        self.rows = []
        # By section the captions of its tables with their rows: the text of the
        # first cell, and the values.
        self.tables = {}
        # By name the values of the overview, and by section the values of its
        # paragraphs.
        self.facts, self.paragraphs = {}, {}
        self.section, self.capturing = "", None
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())
        assert not self.opened, self.opened
        assert len(self.scripts) == 2, len(self.scripts)
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name, value in attributes.items():
            assert not name.startswith("on"), attributes
            assert name not in ("src", "style"), attributes
            assert name != "href" or value.startswith("#"), attributes
        if "id" in attributes:
            assert attributes["id"] not in self.ids, attributes
            self.ids.add(attributes["id"])
        if tag not in VOID:
            self.opened.append(tag)
        if tag == "section":
            self.section = attributes["id"]
            self.tables[self.section] = []
            self.paragraphs[self.section] = []
        elif tag in ("caption", "dt"):
            self.capturing = ""
        elif tag == "tr":
            self.rows.append((attributes.get("class"), []))
            if self.tables[self.section] and "tbody" in self.opened:
                self.tables[self.section][-1][1].append(["", []])
        elif tag == "th" and "tbody" in self.opened:
            self.capturing = ""
        elif tag == "script":
            self.scripts.append("")
        elif tag == "data":
            self.add_value(float(attributes["value"]))

    def add_value(self, value):
        self.values.append(value)
        if "tr" in self.opened:
            self.rows[-1][1].append(value)
            self.tables[self.section][-1][1][-1][1].append(value)
        elif "dd" in self.opened:
            self.facts[self.fact] = value
        elif "p" in self.opened:
            self.paragraphs[self.section].append(value)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.opened.pop()

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag, (tag, self.getpos())
        if self.capturing is None:
            return
        if tag == "caption":
            self.tables[self.section].append((self.capturing, []))
        elif tag == "dt":
            self.fact = self.capturing
        elif tag == "th":
            self.tables[self.section][-1][1][-1][0] = self.capturing
        else:
            return
        self.capturing = None

    def handle_data(self, data):
        if self.opened and self.opened[-1] == "script":
            self.scripts[-1] += data
            return
        self.text += data
        if self.capturing is not None:
            self.capturing += data

    def get_tables(self, section, caption):
        """The rows of each table of the section whose caption begins so."""
        return [rows for name, rows in self.tables[section] if name.startswith(caption)]

    def get_rows(self, name):
        """The values of each row of this class."""
        return [values for row, values in self.rows if row == name]
