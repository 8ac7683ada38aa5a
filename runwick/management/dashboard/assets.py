"""The style, the scripts and the icon: the same for everybody, under addresses that change with what is in them."""

import hashlib
from pathlib import Path
from typing import Final

import msgspec

_FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Asset(msgspec.Struct, frozen=True):
    """One file."""

    content: bytes
    media_type: str


class Assets:
    """All of them, read once. One digest stands for the whole set, so that a script finds its neighbours beside it."""

    def __init__(self) -> None:
        paths = sorted(path for path in _FOLDER.iterdir() if path.suffix in _TYPES)
        self._files = {path.name: Asset(path.read_bytes(), _TYPES[path.suffix]) for path in paths}
        digest = hashlib.sha256()
        for name, asset in self._files.items():
            digest.update(f"{name}\n{len(asset.content)}\n".encode() + asset.content)
        self.digest: str = digest.hexdigest()[:16]

    def path(self, name: str) -> str:
        """Where a file is, below the mount.

        Raises:
            KeyError: there is none of that name.
        """
        self._files[name]
        return f"/static/{self.digest}/{name}"

    def get(self, digest: str, name: str) -> Asset | None:
        """The file at an address; None if there is none, or it is another release's."""
        return self._files.get(name) if digest == self.digest else None
