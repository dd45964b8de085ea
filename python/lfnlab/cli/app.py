"""The parser of ``lfn``. It imports a command when that is called, or its help is asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal

from cyclopts import App, CycloptsError, Parameter, Token, convert

from lfnlab.cli.commands import COMMANDS, HELP
from lfnlab.cli.ends import (
    FAILED,
    INTERRUPTED,
    OK,
    RAISED,
    STORE,
    UNAVAILABLE,
    USAGE,
    code_of,
)
from lfnlab.errors import UsageError

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "OK",
    "RAISED",
    "STORE",
    "UNAVAILABLE",
    "USAGE",
    "app",
    "call",
    "main",
]


def _version() -> str:
    from lfnlab.results.provenance import code_version

    return code_version()


def _converted(to: type[Any], tokens: Sequence[Token]) -> Any:
    """The value of words; a whole number is written as one, where cyclopts would round 1.5."""
    if to is int and any("." in token.value for token in tokens):
        raise ValueError(f"{tokens[0].value}; allowed: a whole number.")
    return convert(to, tokens)


app = App(
    name="lfn",
    default_parameter=Parameter(converter=_converted),
    version=_version,
    version_format="plaintext",
    help_format="markdown",
    suppress_keyboard_interrupt=False,  # call() ends an interrupted command
    help=HELP,
)
for _name, (_place, _) in COMMANDS.items():
    app.command(f"lfnlab.cli.{_place}", name=_name)


@app.command(name="--install-completion")
def install_completion(*, shell: Literal["bash", "zsh", "fish"] | None = None) -> int:
    """Complete commands, options and their values in the shell by the Tab key.

    Writes a script for the shell, and the line that loads it to `~/.bashrc` or `~/.zshrc`.

    Args:
        shell: The shell; default the one that runs.
    """
    from lfnlab.cli.setting_up import install_completion as install

    return install(app, shell)


def main() -> None:
    """Run the command of this process's arguments."""
    sys.exit(call(sys.argv[1:]))


def call(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    if not arguments or arguments[0] not in COMMANDS:
        for name in COMMANDS:  # the page of help has the first sentence of each
            app[name]

    def command() -> int | None:
        try:
            code: int | None = app(
                tokens(arguments),
                exit_on_error=False,
                print_error=False,
                result_action="return_value",
            )
        except CycloptsError as error:
            raise UsageError(f"{error} See lfn --help.") from None
        return code

    return code_of(command, arguments)


def tokens(arguments: Sequence[str]) -> Sequence[str]:
    """The words of a command line as cyclopts takes them."""
    return _with_command(_with_standard_input(arguments))


def _with_standard_input(arguments: Sequence[str]) -> Sequence[str]:
    """``run -``, whose file cyclopts would take for an option."""
    if arguments[:1] != ["run"] or "-" not in arguments or "--" in arguments:
        return arguments
    place = arguments.index("-")
    return [*arguments[:place], *arguments[place + 1 :], "--", "-"]


def _with_command(arguments: Sequence[str]) -> Sequence[str]:
    """``kernel load LAW... --for COMMAND...``: ``--`` and ``--help`` of the command are its own."""
    if list(arguments[:2]) != ["kernel", "load"] or "--for" not in arguments[:-1]:
        return arguments
    place = arguments.index("--for")
    return [*arguments[:place], *(f"--for={word}" for word in arguments[place + 1 :])]
