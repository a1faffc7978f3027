"""The table of APIs that kgctl speaks as a client."""

from __future__ import annotations

import pytest

from kgctl.serde.schemas import load_plan
from kgctl.wire import connection
from kgctl.wire.connection import Api

APIS = [api for api in vars(connection).values() if isinstance(api, Api)]


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_every_version_has_schemas_of_that_name(api: Api) -> None:
    for version in range(api.lowest, api.highest + 1):
        assert load_plan(api.key, version, "request").name == f"{api.name}Request"
        assert load_plan(api.key, version, "response").name == f"{api.name}Response"
