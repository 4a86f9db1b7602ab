"""The example of a provider for a real key service, against an imitation of that service."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from tests.stores.parquet.test_encryption import RA, RANGE, RT, TAG, rows

from skipstone.errors import KeyProviderError
from skipstone.stores.parquet.encryption import Keys
from skipstone.stores.parquet.store import ParquetStore
from skipstone.testing.store_model import ROOT, commit

EXAMPLE = Path(__file__).parents[2] / "examples" / "aws_kms_keys.py"
REGION = "eu-central-1"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_master_keys_in_aws_kms(tmp_path, monkeypatch):
    boto3 = pytest.importorskip("boto3")
    moto = pytest.importorskip("moto")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with moto.mock_aws():
        kms = boto3.client("kms", region_name=REGION)
        key_id = kms.create_key()["KeyMetadata"]["KeyId"]
        kms.create_alias(AliasName="alias/secret", TargetKeyId=key_id)
        provider_class = runpy.run_path(str(EXAMPLE))["AwsKmsKeys"]

        def store():
            keys = Keys({"region": REGION})
            keys._provider = provider_class({"region": REGION})
            return ParquetStore(location=f"file:{tmp_path}", keys=keys)

        commit(store(), None, None, [RA, RT], rows(6))
        reader = store()
        snapshot = reader.latest(ROOT)
        assert reader.refusal(snapshot, snapshot.indexes[1]) is None
        assert reader.evaluate(snapshot, TAG).kept.sum() == 3
        provider = provider_class({"region": REGION})
        wrapped = provider.wrap_key(b"0123456789abcdef", "secret")
        assert provider.unwrap_key(wrapped, "secret") == b"0123456789abcdef"
        with pytest.raises(KeyProviderError, match="NotFoundException for alias/other"):
            provider.wrap_key(b"0123456789abcdef", "other")
        kms.delete_alias(AliasName="alias/secret")
        guest = store()
        seen = guest.latest(ROOT)
        assert "no key 'secret': AWS KMS says" in guest.refusal(seen, seen.indexes[1])
        assert guest.evaluate(seen, RANGE).kept.sum() == 1
