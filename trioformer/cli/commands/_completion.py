"""The command ``completion``, which prints scripts that complete command lines in bash and zsh."""

from __future__ import annotations

import argparse
from typing import Final

from .._arguments import Parser
from .._complete import COMPLETE
from .._failures import CommandError, UsageError
from .._session import Session

__all__ = ["add_flags", "run"]

# COMP_POINT counts bytes, so the line is cut as bytes.  Functions do not see aliases of the program.
_BASH: Final = r"""# bash completion for trioformer: source <(trioformer completion bash)
_trioformer() {
    local LC_ALL=C program=${COMP_WORDS[0]/#\~\//$HOME/}
    type "$program" &>/dev/null && [[ $(type -t "$program") != alias ]] || program=trioformer
    local -a found
    mapfile -t found < <("$program" @COMPLETE@ bash "$COMP_WORDBREAKS" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    COMPREPLY=("${found[@]:1}")
    case ${found[0]} in
        files) compopt -o default ;;
        nospace) compopt -o nospace ;;
    esac
}
complete -F _trioformer trioformer
"""

_ZSH: Final = r"""#compdef trioformer
# zsh completion for trioformer: source <(trioformer completion zsh), or a file _trioformer in a folder of $fpath
_trioformer() {
    local -a lines found space
    local line
    lines=("${(@f)$("${(Q)words[1]}" @COMPLETE@ zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    for line in "${(@)lines[2,-1]}"; do
        found+=("${${line//:/\\:}/$'\t'/:}")
    done
    case ${lines[1]} in
        files) _files ;;
        nospace) space=(-S '') ;;
    esac
    (( ${#found} )) && _describe -t values trioformer found "${space[@]}"
}
if [[ ${funcstack[1]} == _trioformer ]]; then
    _trioformer "$@"
else
    compdef _trioformer trioformer
fi
"""
_SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH}


def add_flags(_: Parser) -> None:
    """Add no flags."""


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``completion``."""
    if not flags.arguments:
        raise UsageError("Shell not specified.")
    if len(flags.arguments) > 1:
        raise UsageError("Too many arguments. Expected only the shell type.")
    script = _SCRIPTS.get(flags.arguments[0])
    if script is None:
        raise CommandError(f'Unsupported shell type "{flags.arguments[0]}": {" and ".join(_SCRIPTS)} are supported')
    session.print(script.replace("@COMPLETE@", COMPLETE), end="")
    return None
