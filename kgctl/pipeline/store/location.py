"""Where a warehouse is: a folder, or a URL of an object store, as pyarrow and deltalake each want it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kgctl.errors import UsageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""How a URL begins. One letter and a colon is a drive."""

SCHEMES = ("file", "s3", "s3a", "gs", "abfss", "hdfs")


@dataclass(frozen=True, slots=True)
class Location:
    """Made by `parse`. ``uri`` is an absolute path of this machine, or a URL without a slash at its end."""

    uri: str

    @classmethod
    def parse(cls, text: str | Path) -> Location:
        """Read a folder's path or a URL. Nothing is contacted.

        Raises:
            UsageError: the URL's scheme is not handled, or names no bucket.
        """
        given = str(text)
        match = _SCHEME.match(given)
        scheme = match[1].lower() if match else "file"
        if scheme not in SCHEMES:
            raise UsageError(f"{given}: stores of the kind {scheme}: are not handled ({', '.join(SCHEMES)} are)")
        if scheme == "file":
            path = given[match.end() :] if match else given
            path = re.sub(r"^//(localhost)?(?=/)", "", path)
            return cls(str(Path(path).expanduser().absolute()))
        assert match is not None
        rest = given[match.end() :]
        if not rest.startswith("//") or not rest.strip("/"):
            raise UsageError(f"{given}: wanted is {scheme}://BUCKET/FOLDER")
        return cls(f"{'s3' if scheme == 's3a' else scheme}:{rest.rstrip('/')}")

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return _SCHEME.match(self.uri) is None

    def __str__(self) -> str:
        return self.uri

    def child(self, name: str) -> str:
        """What is called ``name`` in it, as deltalake and Spark take it."""
        return f"{self.uri}/{name}"

    def filesystem(self) -> tuple[Any, str]:
        """(pyarrow's file system, the path in it)."""
        return _filesystem(self.uri)

    def storage_options(self) -> dict[str, str] | None:
        """What deltalake has to be told besides the environment."""
        if not self.uri.startswith("s3:"):
            return None
        options = {"aws_conditional_put": "etag"}  # else two writers need a lock service
        if _endpoint(os.environ).startswith("http:"):
            options["AWS_ALLOW_HTTP"] = "true"
        return options


def _endpoint(variables: Mapping[str, str]) -> str:
    return variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL") or ""


@lru_cache(maxsize=16)
def _filesystem(uri: str) -> tuple[Any, str]:
    from pyarrow import fs

    match = _SCHEME.match(uri)
    if match is None:
        return fs.LocalFileSystem(), uri
    if match[1] == "s3":
        endpoint = _endpoint(os.environ)
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        options = {"region": region} if region else {}
        if endpoint:
            scheme, _, host = endpoint.partition("://")
            options.update(endpoint_override=host.rstrip("/"), scheme=scheme)
        return fs.S3FileSystem(**options), uri[len("s3://") :]
    found, path = fs.FileSystem.from_uri(uri)
    return found, path
