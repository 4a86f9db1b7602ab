"""The pieces that notebooks are shown: whatever is data is escaped, seen and short."""

from __future__ import annotations

from html.parser import HTMLParser

from skipstone.showing.notebook import Html, card, code, facts, folded, items, note, share, table, written

HOSTILE = "</style></pre><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\x00"
SHOWN = HOSTILE.replace("\u202e", "\\u202e").replace("\x00", "\\x00")


class Seen(HTMLParser):
    """Collects elements and text, and checks that every element that must be closed is."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.texts.append(data)


def test_data_is_never_markup():
    parts = [
        note(HOSTILE, warning=True),
        items([HOSTILE]),
        code(HOSTILE),
        written(HOSTILE),
        facts([(HOSTILE, HOSTILE), ("left out", None)]),
        table([HOSTILE, "n"], [[HOSTILE, HOSTILE]], numbers=[1]),
        folded(HOSTILE, note(HOSTILE)),
        share(1, 3),
    ]
    seen = Seen(card(HOSTILE, *parts, about=HOSTILE))
    assert {"script", "img"}.isdisjoint(seen.tags)
    assert seen.tags.count("style") == 1
    assert "".join(seen.texts).count(SHOWN) == 13
    assert "left out" not in "".join(seen.texts)


def test_markup_stays_and_what_is_long_is_cut():
    assert "<b>" in card("t", Html("<b>x</b>"))
    assert "… 6,000 more characters" in code("x" * 10_000)
    long = table(["name"], [[str(n)] for n in range(1_000)])
    assert long.count("<tr>") == 201
    assert "… 800 more" in long


def test_a_share_of_nothing():
    assert "width:0%" in share(0, 0)
    assert "width:33.33%" in share(1, 3)
