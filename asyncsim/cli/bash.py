"""How bash asks for completion: it takes a colon for a word of its own, so that names of kernels come in pieces."""

from __future__ import annotations

from click.shell_completion import BashComplete, CompletionItem, add_completion_class


class Bash(BashComplete):
    """Puts words together again. What is offered begins behind the colon, because bash keeps what stands before it."""

    _before = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the whole words, and the one that is begun."""
        given, begun = super().get_completion_args()
        words: list[str] = []
        for word in (*given, begun):
            if words and (word == ":" or words[-1].endswith(":")):
                words[-1] += word
            else:
                words.append(word)
        if words[-1] != begun:
            self._before = words[-1][: words[-1].rfind(":") + 1]
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """Write an item as the script for bash reads it."""
        return f"{item.type},{item.value.removeprefix(self._before)}"


add_completion_class(Bash)
