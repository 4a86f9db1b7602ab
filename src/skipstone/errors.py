"""What Skipstone raises: one base class, and messages that say what is wrong, where, and what to do next."""

from __future__ import annotations

__all__ = [
    "BridgeBuildError",
    "ColumnNotFoundError",
    "CommitConflictError",
    "DatasetError",
    "IndexExistsError",
    "IndexNotFoundError",
    "IndexingError",
    "KeyProviderError",
    "KeyUnavailableError",
    "MetadataCorruptError",
    "MetadataStoreError",
    "MetadataTooNewError",
    "PluginError",
    "SessionNotConfiguredError",
    "SettingError",
    "SkipstoneError",
    "SoundnessError",
    "UnsupportedSparkError",
    "UnsupportedTypeError",
    "WorkloadError",
]


class SkipstoneError(Exception):
    """Base of every error that Skipstone raises on purpose."""


class SessionNotConfiguredError(SkipstoneError):
    """The Spark session runs without Skipstone's extension, or is of a kind that cannot have it."""


class UnsupportedSparkError(SkipstoneError):
    """The installed Spark is older or newer than what Skipstone was built for."""


class BridgeBuildError(SkipstoneError):
    """The bridge jar could not be built: no Java, or the compiler refused."""


class SettingError(SkipstoneError):
    """A ``spark.skipstone.*`` setting has a value that makes no sense."""


class DatasetError(SkipstoneError):
    """What was given is not a dataset of files, or cannot be read or listed."""


class ColumnNotFoundError(SkipstoneError):
    """An index names a column that the dataset does not have."""


class UnsupportedTypeError(SkipstoneError):
    """An index cannot be built on a column of this type."""


class IndexExistsError(SkipstoneError):
    """An index of that name is there already."""


class IndexNotFoundError(SkipstoneError):
    """No index of that name is there."""


class IndexingError(SkipstoneError):
    """Collecting metadata failed; nothing was committed."""


class SoundnessError(SkipstoneError):
    """Skipping has lost rows: an object that holds a matching row was not read. This must never happen."""


class PluginError(SkipstoneError):
    """A plug-in could not be loaded, or its names clash."""


class MetadataStoreError(SkipstoneError):
    """The metadata store could not be read or written."""


class MetadataCorruptError(MetadataStoreError):
    """A manifest or part is damaged or gone: truncated, deleted, or not what its checksum says."""


class KeyUnavailableError(MetadataStoreError):
    """Metadata is encrypted, or is to be, with a key that this user cannot have now."""


class KeyProviderError(SkipstoneError):
    """What a key provider raises to say why it gives no key; its text is shown, so that it must hold no secret."""


class MetadataTooNewError(MetadataStoreError):
    """The metadata was written by a later version of Skipstone."""


class WorkloadError(SkipstoneError):
    """A workload of queries holds something that is not SQL, does not fit the dataset, or is no query."""


class CommitConflictError(MetadataStoreError):
    """Another writer committed first; nothing of this call was kept. Try again."""
