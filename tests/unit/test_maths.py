"""Formulas as MathML."""

from __future__ import annotations

import re

import pytest

from lectern.rendering.maths import formula_html

SPACE = '<mspace width="0.167em" />'


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\operatorname{atan2}(y, x)", '<mi mathvariant="normal">atan2</mi><mo stretchy="false">(</mo>'),
        (r"\cos q", f"<mi>cos</mi>{SPACE}<mi>q</mi>"),
        (r"2\cos q", f"<mn>2</mn>{SPACE}<mi>cos</mi>{SPACE}<mi>q</mi>"),
        (r"\cos(q)", '<mi>cos</mi><mo stretchy="false">(</mo>'),
        (r"a + \sin^2 q_1", f"<msup><mi>sin</mi><mn>2</mn></msup>{SPACE}<msub><mi>q</mi><mn>1</mn></msub>"),
        (r"\max_{a} Q", f"<msub><mi>max</mi><mrow><mi>a</mi></mrow></msub>{SPACE}<mi>Q</mi>"),
        (r"\operatorname*{arg\,max}_x f", f"arg max</mi><mi>x</mi></msub>{SPACE}<mi>f</mi>"),
        (r"\frac{\sin a}{\cos b}", f"<mi>sin</mi>{SPACE}<mi>a</mi>"),
        (r"x y", "<mi>x</mi><mi>y</mi>"),
        (r"\theta \phi", "<mi>θ</mi><mi>ϕ</mi>"),
        (r"\text{if } x < 1", "<mo>&lt;</mo>"),
    ],
)
def test_functions_are_upright_words_with_a_space(latex: str, expected: str) -> None:
    """A function's name is one upright identifier, with a thin space to what it applies to; nothing else changes."""
    html = formula_html(latex, block=False)

    assert expected in html
    assert "<mo />" not in html
    assert not re.search(r"<mi>a</mi><mi>t</mi>|\ue000", html)


def test_what_is_no_formula_stays_as_written() -> None:
    """LaTeX that cannot be converted, and an overlong formula, are shown as they are."""
    assert formula_html("x^2^3", block=False) == '<code class="math">x^2^3</code>'
    assert formula_html("x" * 3_000, block=True).startswith('<p><code class="math">xxx')
