"""`docs/cli.md` is what `--help` prints: of every command, nothing else."""

from __future__ import annotations

from cli import MODULES
from tests.cli.conftest import ROOT, Ask
from tests.conftest import Golden

HEAD = """\
# The command line

Every command ends with one of the codes of [exit-codes.md](exit-codes.md). Commands that touch a store take `--db`
and `--json`; a Run is named by any unambiguous prefix of its id, a call by `TURN.ORDINAL` such as `3.1`. Who acts
and the fields of the task come from `agentctl.yaml`; options override them. Nothing of `local` carries over to another
identity that `--as` names.

This page is what `--help` prints.
"""


def test_the_page_of_the_command_line_is_what_help_prints(agentctl: Ask, golden: Golden) -> None:
    parts = [HEAD]
    for words in ((), *((name,) for name in MODULES)):
        said = agentctl(*words, "--help")
        assert said.code == 0
        parts.append(f"## {' '.join(('agentctl', *words))}\n\n```\n{said.out.rstrip()}\n```\n")
    golden(ROOT / "docs/cli.md", "\n".join(parts))


def test_every_option_says_what_it_does(agentctl: Ask) -> None:
    import click

    from cli import main

    for name in MODULES:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        assert command.help
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.help, f"{name} {option.opts}"


def test_no_words_print_the_help(agentctl: Ask) -> None:
    said = agentctl()
    assert said.code == 2
    assert "Commands:" in said.err
