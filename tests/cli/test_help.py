"""`docs/cli.md` is what `--help` prints: of every command, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import click

from cli import MODULES, main
from tests.cli.conftest import ROOT, Ask
from tests.conftest import Golden

HEAD = """\
# The command line

Every command ends with one of the codes of [exit-codes.md](exit-codes.md). Commands that touch a store take `--db`
and `--json`. RUN is the id of a Run, any unambiguous prefix of it, or `last`: the Run that was started last. A call is
named by `TURN.ORDINAL`, such as `3.1`. Who acts and the fields of the task come from `agentctl.yaml`; options override
them. Nothing of `local` carries over to another identity that `--as` names.

This page is what `--help` prints.
"""


def every_command() -> Iterator[tuple[str, ...]]:
    """The words of each command, those of a group after it."""
    yield ()
    for name in MODULES:
        yield (name,)
        command = main.get_command(click.Context(main), name)
        if isinstance(command, click.Group):
            yield from ((name, part) for part in command.commands)


def test_every_name_has_its_module_and_that_module_the_command_of_the_name() -> None:
    for name, module in MODULES.items():
        command = main.get_command(click.Context(main), name)
        assert command is getattr(import_module(module), f"{name.replace('-', '_')}_command")
        assert command.name == name


def test_the_page_of_the_command_line_is_what_help_prints(agentctl: Ask, golden: Golden) -> None:
    parts = [HEAD]
    for words in every_command():
        said = agentctl(*words, "--help")
        assert said.code == 0
        parts.append(f"## {' '.join(('agentctl', *words))}\n\n```\n{said.out.rstrip()}\n```\n")
    golden(ROOT / "docs/cli.md", "\n".join(parts))


def test_every_option_says_what_it_does(agentctl: Ask) -> None:
    for words in every_command():
        command: click.Command | None = main
        for word in words:
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), word)
        assert command is not None
        assert command.help
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.help, f"{words} {option.opts}"


def test_no_words_print_the_help(agentctl: Ask) -> None:
    said = agentctl()
    assert said.code == 2
    assert "Commands:" in said.err
