"""What the page's words mean: one list, from which every reading's words lead to their meaning."""

import html
import re
from typing import NamedTuple


class Word(NamedTuple):
    """A term.

    Attributes:
        id: of its entry in the page.
        term: as the list names it.
        forms: that it has in running text, a regular expression in small letters.
        meaning: in one or two sentences for somebody new.
    """

    id: str
    term: str
    forms: str
    meaning: str


WORDS = (
    Word(
        "query",
        "query",
        r"quer(?:y|ies)",
        "A question to the data whose answer is a number, such as: how many people smoke?",
    ),
    Word(
        "neighbour",
        "neighbour",
        r"neighbours?(?:'s)?",
        "A data set that differs from the true one in one person. A guarantee compares the two.",
    ),
    Word(
        "sensitivity",
        "sensitivity",
        r"sensitivit(?:y|ies)",
        "How far one person can move the true answer: 1 for a count, the bound on one value for"
        " a sum. Noise is made in proportion to it.",
    ),
    Word(
        "epsilon",
        "epsilon (ε)",
        r"epsilons?",
        "The guarantee: no answer is more than e^ε times as likely with a person in the data as"
        " without. Small is private: e^0.1 is 1.1, e^1 is 2.7, e^10 is 22,026.",
    ),
    Word(
        "delta",
        "delta (δ)",
        r"deltas?",
        "The probability with which the promise of epsilon may fail altogether. It must be well"
        " below one over the number of people; 1e-5 is 0.00001.",
    ),
    Word(
        "budget",
        "budget",
        r"budgets?",
        "The total epsilon and delta that all answers about the same people may use up together.",
    ),
    Word(
        "mechanism",
        "mechanism",
        r"mechanisms?",
        "A program that gives a random answer: the true one and noise, or a random choice.",
    ),
    Word(
        "laplace",
        "Laplace noise",
        r"laplace(?: noise)?",
        "Noise with a sharp peak. Its scale over the sensitivity is one over epsilon, and it"
        " needs no delta.",
    ),
    Word(
        "gaussian",
        "Gaussian noise",
        r"gaussian(?: noise)?",
        "Noise with the bell curve. One answer costs more error than with Laplace noise, many"
        " answers cost less; it needs a delta.",
    ),
    Word(
        "scale",
        "noise scale",
        r"scales?",
        "How large the noise is, in the answer's own units: b of Laplace noise, the standard"
        " deviation of Gaussian noise. Over the sensitivity it is the noise multiplier.",
    ),
    Word(
        "rmse",
        "RMSE",
        r"rmse",
        "Root mean square error: the root of the mean of the squared distance between the noisy"
        " and the true answer, in the answer's units.",
    ),
    Word(
        "mae",
        "mean absolute error (MAE)",
        r"mean absolute error",
        "The mean distance between the noisy and the true answer.",
    ),
    Word(
        "standard-error",
        "standard error",
        r"standard errors?",
        "How far a simulated number may be from the truth by chance: about two thirds lie within"
        " one standard error.",
    ),
    Word(
        "accountant",
        "accountant",
        r"accountants?|accounting",
        "A rule that says what epsilon several answers cost together. A safe one may say too much"
        " and never too little; a tighter one allows less noise.",
    ),
    Word(
        "basic",
        "basic composition",
        r"basic composition",
        "The simplest accountant: epsilons add up, and deltas too.",
    ),
    Word(
        "advanced",
        "advanced composition",
        r"advanced composition",
        "An accountant by a formula of 2010, under which many small epsilons grow like the root"
        " of their number.",
    ),
    Word(
        "optimal",
        "optimal composition",
        r"optimal composition",
        "The best that an accountant can do which knows the epsilon and delta of each answer and"
        " not how it was made.",
    ),
    Word(
        "renyi",
        "Rényi accounting",
        r"rényi",
        "An accountant that adds up Rényi divergences and turns the sum into epsilon and delta,"
        " by the classic conversion of 2017 or the improved one of 2020.",
    ),
    Word(
        "exact",
        "exact accounting",
        r"exact accounting|exact value",
        "An accountant that loses nothing: the least epsilon that is true, computed between a"
        " proven lower and upper end.",
    ),
    Word(
        "crossover",
        "crossover k*",
        r"crossovers?",
        "The number of queries from which Gaussian noise has the smaller error than Laplace noise"
        " at the same budget.",
    ),
    Word(
        "customary",
        "customary formula",
        r"customary (?:gaussian )?formula",
        "The textbooks' scale of Gaussian noise, sqrt(2 ln(1.25/δ))/ε. It was proven for epsilon"
        " below 1; exact calibration uses the law itself and holds for all.",
    ),
    Word(
        "norms",
        "L1, L2 and L∞",
        r"l1|l2|l∞|norms?",
        "Three sizes of a change in several answers: the sum of all changes, the Euclidean"
        " length, and the largest single change.",
    ),
    Word(
        "clipping",
        "clipping",
        r"clip(?:s|ped|ping)?",
        "Replacing values above a bound by the bound, so that the sensitivity is known. It moves"
        " the answer (bias), but a low bound needs little noise.",
    ),
    Word(
        "selection",
        "private selection",
        r"permute-and-flip|exponential mechanism|noisy max",
        "Choosing the best of several candidates by noisy scores. The exponential mechanism,"
        " permute-and-flip and noisy max are three ways with the same guarantee.",
    ),
    Word(
        "local",
        "local privacy",
        r"local(?:ly)?|curator",
        "Each person adds noise before handing anything over. The opposite is central: a trusted"
        " curator holds the true data and adds noise once.",
    ),
    Word(
        "randomized-response",
        "randomized response",
        r"randomized response|unary encoding",
        "Local noise for yes and no: tell the truth with a fixed probability above one half."
        " 16-ary response and optimized unary encoding do the same for one of 16 answers.",
    ),
    Word(
        "audit",
        "audit",
        r"audit(?:s|ed)?",
        "Running a mechanism many times on two neighbours and proving, at a stated confidence,"
        " that its epsilon is at least that large. An audit finds leaks; it proves no privacy.",
    ),
    Word(
        "counting",
        "by counting",
        r"counting|counts alone",
        "An audit that compares how often an event occurs on either neighbour, and assumes"
        " nothing about the mechanism. It needs many trials where the event is rare.",
    ),
    Word(
        "trade-off",
        "trade-off",
        r"trade-offs?",
        "The best true positive rate of an attack at each false positive rate. An audit may"
        " assume that it is Gaussian, and then proves more from as many trials.",
    ),
    Word(
        "advantage",
        "advantage",
        r"advantage",
        "Of an attacker who says whether a person is in the data: the rate of right alarms less"
        " that of false ones. 0 is guessing, 1 is certainty.",
    ),
    Word(
        "float",
        "float32 and float64",
        r"float32|float64",
        "Numbers of 24 or 53 binary digits, as computers hold them. Not every number exists, and"
        " which ones do depends on the true answer.",
    ),
    Word(
        "dp-sgd",
        "DP-SGD",
        r"dp-sgd|private training",
        "Training a model in private: each step takes a random sample of the records, clips each"
        " record's gradient and adds Gaussian noise to their sum.",
    ),
    Word(
        "canary",
        "canary",
        r"canar(?:y|ies)",
        "A made-up record, put into the training data by the toss of a coin. Who can tell from the"
        " model which ones were in has measured its leak.",
    ),
)


def glossary() -> str:
    """All words with their meanings, as the rows of a description list."""
    return "\n".join(
        f'<div id="word-{word.id}"><dt><dfn>{word.term}</dfn></dt>'
        f"<dd>{_EXPONENT.sub(_raised, word.meaning)}</dd></div>"
        for word in WORDS
    )


def _raised(exponent: re.Match[str]) -> str:
    """An exponent above the line."""
    return f"<sup>{exponent[1]}</sup>"


def linked(text: str, told: set[str]) -> str:
    """HTML of a plain text, in which the first use of each word leads to its meaning.

    Args:
        text: plain.
        told: ids of words that were linked before; those of this text are added.
    """

    def link(found: re.Match[str]) -> str:
        word = WORDS[int((found.lastgroup or "_0")[1:])]
        if word.id in told:
            return html.escape(found[0])
        told.add(word.id)
        meaning = html.escape(word.meaning)
        return f'<a class="word" href="#word-{word.id}" title="{meaning}">{found[0]}</a>'

    parts, at = [], 0
    for found in _FORMS.finditer(text):
        parts += [html.escape(text[at : found.start()]), link(found)]
        at = found.end()
    return _POWER.sub(_power, "".join([*parts, html.escape(text[at:])]))


def _power(number: re.Match[str]) -> str:
    """1e-05 as a power of ten."""
    factor = "" if number[1] == "1" else f"{number[1]} × "
    return f'<span class="number">{factor}10<sup>−{int(number[2])}</sup></span>'


_EXPONENT = re.compile(r"\^(ε|[\d.]*\d)")
_POWER = re.compile(r"(?<![\w.])(\d(?:\.\d+)?)e-(\d+)(?![^<]*>)")  # in text, not in a tag


# Longer forms first, so that "basic composition" is not cut short.
_ORDER = sorted(range(len(WORDS)), key=lambda i: -len(WORDS[i].forms))
_FORMS = re.compile(
    r"(?<![\w-])(?:" + "|".join(f"(?P<w{i}>{WORDS[i].forms})" for i in _ORDER) + r")(?![\w-])",
    re.IGNORECASE,
)
