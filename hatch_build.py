"""What is installed of the exhibits: the folder `kernels/` as `asyncsim.kernels`.

Another package of the name `kernels` exists, so none of ours may be installed at the top. In the repository the
folder stays where it is; here its files are copied, line by line, with their imports of each other renamed.
"""

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_IMPORT = re.compile(r"^(\s*(?:from|import) )kernels\b", re.MULTILINE)


class ExhibitsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the exhibits into the wheel under their installed name; an editable install finds them in the folder."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Copy the exhibits, and name the copy to the builder.

        Args:
            version: what is built: "standard" or "editable".
            build_data: what the builder reads; gets an entry in ``force_include``.

        """
        if version == "editable":
            return
        self._copies = Path(tempfile.mkdtemp())
        folder = Path(self.root) / "kernels"
        for file in sorted(folder.rglob("*.py")):
            copy = self._copies / file.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(_IMPORT.sub(r"\1asyncsim.kernels", file.read_text("utf-8")), "utf-8")
        build_data["force_include"][str(self._copies)] = "asyncsim/kernels"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copies.

        Args:
            version: as for `initialize`.
            build_data: as for `initialize`.
            artifact_path: the finished wheel.

        """
        del build_data, artifact_path
        if version != "editable":
            shutil.rmtree(self._copies)
