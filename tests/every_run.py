"""Of dear tests with many variants, those that every run has; ``--long`` runs the others as well.

A variant stays if it lost rows once, or if it is the only one that goes through some part.  What is not named here runs
always, unless it is marked ``long`` where it stands.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

__all__ = ["EVERY_RUN", "is_long"]

EVERY_RUN: dict[str, tuple[str, ...]] = {
    # A plan runs in another environment than it was made in: each way to run it once, with the change that lost rows.
    "tests/environment/test_session.py::test_planned_under_one_zone_and_run_under_another": (
        "planned-*",
        "as_rdd-another zone",
        "cached-another zone",
        "again-another zone",
        "exchanged_again-another zone",
        "by_workers-*",
    ),
    "tests/environment/test_session.py::test_run_again_under_another_policy_for_parsing": (
        "again-csv-LEGACY",
        "planned-json-CORRECTED",
        "cached-xml-LEGACY",
        "as_rdd-json-LEGACY",
    ),
    "tests/environment/test_session.py::test_tasks_of_an_rdd_see_no_settings_of_the_session": (
        "fresh",
        "as_rdd",
        "by_workers_again",
    ),
    "tests/environment/test_attacks.py::test_readers_of_rows_under_another_zone_of_the_jvm": (
        "parquet-fresh",
        "parquet-as_rdd",
        "orc-planned",
        "orc-exchanged_again",
    ),
    "tests/environment/test_attacks.py::test_policy_for_parsing_changes_after_a_feature_was_planned": (
        "planned-true",
        "as_listed_rdd-true",
        "cached-false",
        "by_workers_again-false",
    ),
    "tests/environment/test_attacks.py::test_hadoops_settings_change_after_planning": (
        "planned-*",
        "as_rdd-context",
        "exchanged_again-session",
    ),
    "tests/environment/test_attacks.py::test_locale_changes_after_a_feature_was_planned": (
        "planned",
        "by_workers_again",
    ),
    "tests/environment/test_attacks.py::test_zone_of_the_jvm_changes_after_planning": (
        "planned",
        "checkpointed",
    ),
    "tests/environment/test_attacks.py::test_results_of_functions_that_arrow_turns_to_text_otherwise": ("true",),
    "tests/environment/test_attacks.py::test_default_of_a_column_that_files_lack_is_read_by_the_zone": (
        "parquet",
        "json",
    ),
    "tests/environment/test_attacks.py::test_partition_values_that_were_read_under_another_zone": ("UTC",),
    "tests/environment/test_attacks.py::test_settings_that_functions_of_features_look_at": (
        "planned before-*sizeOfNull*",
        "planned before-*json*",
    ),
    "tests/environment/test_avro.py::test_columns_in_another_order": ("b INT, a INT-*", "x INT, a INT-by name"),
    "tests/environment/test_lost_rows.py::test_json_whose_damage_lies_in_another_column": (
        "STRUCT<x INT>-*tru}",
        "STRUCT<x INT>-*q*",
        "MAP<STRING,STRING>-*01}",
        "STRING-*1 2}",
        "STRING-*.5}",
    ),
    "tests/environment/test_property_environment.py::test_same_rows_whatever_changes_on_the_way": (
        "parquet",
        "json",
        "csv",
    ),
    "tests/environment/test_session.py::test_run_inside_of_another_sessions_query": ("*-LEGACY",),
    "tests/environment/test_session.py::test_view_of_another_session": ("America/Los_Angeles-*",),
    "tests/environment/test_session.py::test_refreshed_after_the_zone_changed": ("*-another zone",),
    "tests/environment/test_attacks.py::test_view_whose_tasks_take_settings_of_the_asking_session": (
        "CORRECTED-LEGACY",
        "LEGACY-CORRECTED",
    ),
    "tests/environment/test_listing.py::test_table_is_listed_anew_between_planning_and_running": (
        "parquet--INSERT",
        "csv-PARTITIONED BY (p)-REFRESH",
    ),
    "tests/environment/test_lost_rows.py::test_separator_that_overlaps_itself_in_smaller_parts": (
        "1",
        "3",
    ),
    "tests/environment/test_lost_rows.py::test_zone_of_the_jvm_changes_between_two_runs": (
        "orc-True",
        "parquet-False",
    ),
    "tests/environment/test_lost_rows.py::test_policy_of_a_feature_changes": (
        "planned-default",
        "again-huge",
        "again-interpreted",
    ),
    # Formats and types that take the same way through the code.
    "tests/soundness/test_attacks_reading.py::test_dates_before_1582_however_they_were_written": (
        "LEGACY-TIMESTAMP_MICROS",
        "LEGACY-INT96",
    ),
    "tests/soundness/test_attacks_reading.py::test_files_of_a_narrower_type_than_they_are_read_with": ("int", "date"),
    "tests/soundness/test_attacks_reading.py::test_names_that_differ_in_case_between_files_and_queries": ("false",),
    "tests/soundness/test_attacks_reading.py::test_structs_of_which_a_query_reads_a_part": ("parquet",),
    "tests/soundness/test_attacks_reading.py::test_timestamps_of_formats_that_parse_by_the_session_time_zone": ("csv",),
    "tests/soundness/test_attacks_reading.py::test_column_that_old_files_lack_and_the_table_has_a_default_for": (
        "indexed as a table",
    ),
    "tests/soundness/test_attacks_reading.py::test_int96_with_conversion_reads_by_the_session_time_zone": ("footers*",),
    "tests/soundness/test_ignorance.py::test_knowing_less_keeps_more": (
        "without null_count",
        "without values",
        "without half of it, 0",
        "wider bounds",
        "more values",
    ),
    "tests/soundness/test_ignorance.py::test_fewer_indexes_keep_more": ("hybrid", "minmax"),
    "tests/soundness/test_ternary.py::test_a_predicate_its_negation_and_its_unknown_split_the_rows": ("seed-51",),
    "tests/regressions/test_scenarios.py::test_char_and_varchar": ("true-CHAR(5)", "false-VARCHAR(5)"),
    "tests/indexes/test_properties.py::test_clauses_represent_their_predicates": (
        "boolean",
        "int",
        "double",
        "decimal(38,10)",
        "string",
        "binary",
        "timestamp",
        "interval day to second",
    ),
    "tests/indexes/test_gap_list.py::test_clauses_represent_their_predicates": (
        "int",
        "float",
        "decimal(10,2)",
        "string",
        "date",
        "timestamp_ntz",
        "time(6)",
    ),
    "tests/indexes/test_gap_list.py::test_every_conjunction_of_two_is_served": ("int",),
    "tests/indexes/test_gap_list.py::test_bytes_per_object_are_those_of_the_formula": ("8-*",),
    "tests/indexes/test_geo_box.py::test_bytes_per_object_are_those_of_the_formula": ("4-*",),
    "tests/indexes/test_elements.py::test_objects_with_a_matching_map_are_kept_and_others_skipped": (
        "keys-string-*",
        "values-double-*",
        "keys-boolean-valuelist",
        "values-int-hybrid",
    ),
    "tests/indexes/test_elements.py::test_forgetting_only_keeps": (
        "string-hybrid",
        "double-valuelist",
        "int-bloomfilter",
    ),
    "tests/indexes/test_elements_in_spark.py::test_hashed_elements_lose_no_object_and_skip": ("hybrid",),
    "tests/indexes/test_metric_distance.py::test_rounding_never_loses_a_row": (
        "euclidean-array<double>",
        "manhattan-array<bigint>",
        "angular-array<float>",
    ),
    "tests/indexes/test_prefix_suffix.py::test_objects_in_parts_are_served_as_well_and_forgetting_only_keeps": ("2-*",),
    "tests/indexes/test_prefix_suffix.py::test_bytes_per_object_are_those_of_the_formula": ("*-8-*",),
    "tests/indexes/test_exhaustive.py::test_forgetting_only_keeps": ("hybrid-*", "minmax-double", "valuelist-string"),
    "tests/indexes/test_exhaustive.py::test_objects_in_parts_are_served_as_well": ("hybrid-*", "bloomfilter-string"),
    "tests/stores/parts/test_buckets.py::test_a_set_put_together_has_the_same_values_and_each_is_found_in_its_bucket": (
        "int32",
        "double",
        "decimal128(20, 2)",
        "binary",
    ),
    "tests/stores/test_contract.py::test_any_history_leaves_what_the_model_says": (
        "parquet, compacting always",
        "parquet, in buckets",
        "memory",
    ),
    # Every step is killed, or fails, in a refresh and in a drop; creating and compacting do the same steps.
    "tests/faults/test_killed.py::test_killed_at_every_step": ("refresh", "drop of one index"),
    "tests/faults/test_failing_file_system.py::test_every_call_fails_once_while_metadata_is_written": (
        "refresh",
        "drop of one index",
    ),
    "tests/faults/test_with_spark.py::test_an_object_that_changes_while_spark_reads": ("appended", "replaced"),
    # Real servers and other JVMs: one of each kind.
    "tests/storage/test_remote.py::test_two_processes_have_one_winner_each_time": ("s3a",),
    "tests/storage/test_remote.py::test_metadata_lies_where_the_location_says": ("s3a",),
    "tests/end_to_end/test_other_sessions.py::test_the_process_ends_by_itself": ("error",),
    "tests/security/test_encrypted_data.py::test_encrypted_data_is_indexed_and_skipped": ("True",),
}
"""By test: patterns of the variants that every run has."""


def is_long(name: str) -> bool:
    """Whether a test, named as pytest names it, is a variant that runs only with ``--long``."""
    test, _, variant = name.partition("[")
    kept = EVERY_RUN.get(test)
    return kept is not None and not any(fnmatchcase(variant.removesuffix("]"), pattern) for pattern in kept)
