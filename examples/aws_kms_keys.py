"""Master keys in AWS KMS: a key provider for protected indexes (docs/security.md).

Put this file where Python finds it on the driver, and name it in the session's settings:

    spark.skipstone.kms.class     aws_kms_keys:AwsKmsKeys
    spark.skipstone.kms.region    eu-central-1
    spark.skipstone.kms.endpoint  only for another address than AWS's own
    spark.skipstone.kms.profile   only for another profile than the default one

``ValueListIndex("name", key="pii")`` is then protected by the KMS key with the alias ``alias/pii``.  Credentials are
found as boto3 finds them: environment, profile, instance role.  A user may use the index if the key's policy allows
``kms:Decrypt``, and may build or refresh it with ``kms:Encrypt`` as well.  KMS itself keeps the older versions of a key
that it rotates, and knows from what it wrapped which one to use.

The tests run this against moto's imitation of AWS KMS; it has not been run against AWS itself.
"""

import base64

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from skipstone.errors import KeyProviderError
from skipstone.kms import KeyProvider

QUICK = Config(connect_timeout=2, read_timeout=5, retries={"max_attempts": 2})


class AwsKmsKeys(KeyProvider):
    """Wraps and unwraps by the Encrypt and Decrypt operations of AWS KMS."""

    def __init__(self, settings):
        super().__init__(settings)
        session = boto3.Session(profile_name=settings.get("profile"), region_name=settings.get("region"))
        self._kms = session.client("kms", endpoint_url=settings.get("endpoint") or None, config=QUICK)

    def wrap_key(self, key, master_key):
        answer = self._call(self._kms.encrypt, master_key, Plaintext=key)
        return base64.b64encode(answer["CiphertextBlob"]).decode()

    def unwrap_key(self, wrapped, master_key):
        answer = self._call(self._kms.decrypt, master_key, CiphertextBlob=base64.b64decode(wrapped))
        return answer["Plaintext"]

    @staticmethod
    def _call(operation, master_key, **arguments):
        """Call KMS; of an error only its code is told, such as AccessDeniedException."""
        context = {"skipstone": master_key}  # shows up in the audit log, and binds what is wrapped to the name
        try:
            return operation(KeyId=f"alias/{master_key}", EncryptionContext=context, **arguments)
        except ClientError as error:
            msg = f"AWS KMS says {error.response.get('Error', {}).get('Code', 'no')} for alias/{master_key}"
            raise KeyProviderError(msg) from None
        except BotoCoreError as error:
            msg = f"AWS KMS could not be asked: {type(error).__name__}"
            raise KeyProviderError(msg) from None
