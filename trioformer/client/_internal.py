"""What other packages of trioformer need of this one, and users do not."""

from __future__ import annotations

from ._api import check_api as check_api
from ._api_reads import check_follow_logs as check_follow_logs
from ._api_requests import obtain_credential as obtain_credential
from ._api_requests import plugin_of as plugin_of
from ._api_requests import without_retries as without_retries
from ._client import default_field_manager as default_field_manager
from ._client import limit_request_time as limit_request_time
from ._client import open_separate_client as open_separate_client
from ._object_ref import reference_to as reference_to
