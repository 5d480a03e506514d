"""Owns the answers to the four questions that several rules share."""

from __future__ import annotations

from typing import Final

from engine.policy.rules import FourAnswers

SHAPE: Final = FourAnswers(
    input="The author of the file: its keys and values as written.",
    effect="Whether the file loads.",
    paraphrase="No. Structure is read; the wording of descriptions and reasons is not.",
    repair="It changes what the file says, and so what the Host will do.",
)
CONDITION: Final = FourAnswers(
    input="The author of the file: a condition, and the types that the same files declare.",
    effect="Whether the condition is accepted.",
    paraphrase="No. Names and types are compared, never the wording of a value.",
    repair="It changes which facts the condition reads.",
)
NAMES: Final = FourAnswers(
    input="The author of the files: a name, and the names that are declared.",
    effect="Whether the reference is accepted.",
    paraphrase="No. Names are compared as wholes.",
    repair="It changes what the reference stands for.",
)
DECLARED: Final = FourAnswers(
    input="The authors of the files: what they declare about tools, outputs and budgets.",
    effect="A finding about the file; no Run is decided by it.",
    paraphrase="No. Declared facts are compared.",
    repair="It changes a declaration, and so what the Host enforces.",
)
WORDING: Final = FourAnswers(
    input="The author of the file: a name or a description that they wrote.",
    effect="A likely finding that can be ignored with a reason; no Run is decided by it.",
    paraphrase="Yes, which is why it is only likely and does not set the exit code by itself.",
    repair="It should change a declaration. Where only the words change, ignore the finding with a reason instead.",
)
