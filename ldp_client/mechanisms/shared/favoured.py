"""Reports that are sets of one size, some of which are favoured: with the user's own element, or with one of several.

There are A favoured sets (`holding`) and B others. With N = 2^(2w) numbers and T = 2^w words, w being the bits of a
word, a word below t (`truth`) draws one of the favoured sets, another word one of the others, each by its rank: a
number times the count, divided by N. So a favoured set has t times floor(N/A) or ceil(N/A) of the T N lines of the
words, and another one T - t times floor(N/B) or ceil(N/B).

t is the largest integer with t ceil(N/A) <= e_low (T - t) floor(N/B), e_low being below e^epsilon: a favoured set is
then at most e_low times as likely as another one, whatever the remainders of the ranks are.
"""

from __future__ import annotations

from fractions import Fraction

__all__ = ["favoured_ratio", "favoured_words"]


def favoured_words(e_low: Fraction, holding: int, others: int, word_bits: int) -> int:
    """Return t: how many of the words draw a favoured set."""
    total, numbers = 1 << word_bits, 1 << 2 * word_bits
    weighed = e_low * (numbers // others)
    return int(total * weighed / (-(-numbers // holding) + weighed))


def favoured_ratio(truth: int, holding: int, others: int, word_bits: int) -> Fraction:
    """Return a bound of the ratio of two sets' probabilities, reached up to the remainders of the ranks.

    Of two users the same set may be favoured for one and not for the other, or favoured for both, or for neither, with
    another rank.
    """
    total, numbers = 1 << word_bits, 1 << 2 * word_bits
    low = [numbers // count for count in (holding, others)]
    high = [-(-numbers // count) for count in (holding, others)]
    lies = total - truth
    return max(
        Fraction(truth * high[0], lies * low[1]),
        Fraction(lies * high[1], truth * low[0]),
        Fraction(high[0], low[0]),
        Fraction(high[1], low[1]),
    )
