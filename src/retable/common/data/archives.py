"""Taking files out of archives without ever writing outside the folder that was named."""

import lzma
import subprocess
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from retable.common.errors import InputError

# What the standard library raises for damaged archives; RuntimeError and NotImplementedError are
# its words for an encrypted zip and for a compression that it does not know.
_DAMAGE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError),
    *(ValueError, RuntimeError, NotImplementedError),
)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar (any compression), zip, wheel or Debian package into `folder`.

    Raises:
        InputError: damaged or truncated; a member's path is absolute or leaves the folder; a
            member is a link or a device.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if archive.suffix == ".deb":
            _unpack_deb(archive, folder)
        elif zipfile.is_zipfile(archive):
            _unpack_zip(archive, folder)
        else:
            _unpack_tar(archive, folder)
    except _DAMAGE as error:
        # An OSError with a number is the machine's fault (a full disk), not the archive's.
        if isinstance(error, InputError) or getattr(error, "errno", None) is not None:
            raise
        raise InputError(f"{archive}: damaged or truncated archive: {error}") from None


def _check_member(archive: Path, name: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in (path.parts or ("",))[0]:
        raise InputError(f"{archive}: member '{name}' would be written outside the folder; refused")


def _unpack_zip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            _check_member(archive, member.filename)
        damaged = file.testzip()
        if damaged is not None:
            raise InputError(f"{archive}: member '{damaged}' is damaged")
        file.extractall(folder)


def _unpack_tar(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as file:
        members = file.getmembers()
        # tarfile stops at the last member; the checksum of a compressed stream stands behind it.
        while file.fileobj.read(1 << 20):
            pass
        for member in members:
            _check_member(archive, member.name)
            if not (member.isfile() or member.isdir()):
                raise InputError(f"{archive}: member '{member.name}' is a link or device; refused")
        file.extractall(folder, members=members, filter="data")


def _unpack_deb(archive: Path, folder: Path) -> None:
    """A Debian package is an ar archive whose data.tar.* holds the files."""
    with archive.open("rb") as file:
        if file.read(8) != b"!<arch>\n":
            raise InputError(f"{archive}: not a Debian package")
        while header := file.read(60):
            if len(header) < 60 or header[58:] != b"`\n":
                raise InputError(f"{archive}: damaged or truncated archive")
            name = header[:16].decode("ascii", "replace").strip().rstrip("/")
            size = int(header[48:58])
            content = file.read(size + size % 2)
            if len(content) < size:
                raise InputError(f"{archive}: damaged or truncated archive")
            if name.startswith("data.tar"):
                inner = folder / name
                inner.write_bytes(content[:size])
                try:
                    if name.endswith(".zst"):
                        inner = _unzstd(inner)
                    _unpack_tar(inner, folder)
                finally:
                    inner.unlink(missing_ok=True)
                return
    raise InputError(f"{archive}: not a Debian package: it has no data.tar")


def _unzstd(path: Path) -> Path:
    plain = path.with_suffix("")
    try:
        subprocess.run(["zstd", "-dqf", str(path), "-o", str(plain)], check=True)
    except FileNotFoundError:
        raise InputError(
            f"{path.name}: unpacking needs the command zstd, which is missing"
        ) from None
    except subprocess.CalledProcessError:
        raise InputError(f"{path}: damaged or truncated archive") from None
    finally:
        path.unlink(missing_ok=True)
    return plain
