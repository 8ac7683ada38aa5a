"""Every code that Runwick itself gives, in one table. A test holds that all that is raised is here, and the reverse.

A code is stable. `disposition` says whether anything may have been written; for outcomes, which are not errors of a
call, it is None. `retryable` says whether the same call or run can succeed later without a change by a person.
"""

from typing import Final

import msgspec

from runwick.contracts.errors import Disposition

_NOT_APPLIED: Final = Disposition.KNOWN_NOT_APPLIED
_UNKNOWN: Final = Disposition.OUTCOME_UNKNOWN


class Code(msgspec.Struct, frozen=True):
    """One row of the table."""

    code: str
    disposition: Disposition | None
    retryable: bool
    hint: str
    """What to do, as one sentence."""
    page: str
    """The documentation page that explains it."""


def _row(code: str, disposition: Disposition | None, retryable: bool, page: str, hint: str) -> Code:
    return Code(code=code, disposition=disposition, retryable=retryable, hint=hint, page=page)


_DISPATCH: Final = [
    _row(
        "unknown_job",
        _NOT_APPLIED,
        False,
        "jobs-and-handlers",
        "Mend the name, declare the record with @rw.job, or add its module.",
    ),
    _row("unknown_queue", _NOT_APPLIED, False, "queues-and-priorities", "Declare the queue with rw.queue, or mend it."),
    _row("invalid_priority", _NOT_APPLIED, False, "queues-and-priorities", "Use high, medium or low."),
    _row("invalid_time", _NOT_APPLIED, False, "dispatching", "Give an aware datetime or a timedelta of zero or more."),
    _row("invalid_metadata", _NOT_APPLIED, False, "dispatching", "At most 32 entries and 16 KiB of text to text."),
    _row("invalid_text", _NOT_APPLIED, False, "dispatching", "Remove NUL characters and lone surrogates."),
    _row("invalid_id", _NOT_APPLIED, False, "dispatching", "An id is a UUID."),
    _row("invalid_payload", _NOT_APPLIED, False, "jobs-and-handlers", "Mend what the message names, to fit its type."),
    _row(
        "payload_too_large",
        _NOT_APPLIED,
        False,
        "jobs-and-handlers",
        "Send less: store the data elsewhere, send its id.",
    ),
    _row("payload_limit_exceeded", _NOT_APPLIED, False, "jobs-and-handlers", "Mind depth, strings, members, elements."),
    _row("uniqueness_required", _NOT_APPLIED, False, "uniqueness", "Let the declared selector give a key."),
    _row("uniqueness_key_mismatch", _NOT_APPLIED, False, "uniqueness", "Leave out the key that the job declares."),
    _row("key_selector_failed", _NOT_APPLIED, False, "uniqueness", "Mend the selector that raised."),
    _row("invalid_key", _NOT_APPLIED, False, "uniqueness", "1 to 512 bytes of UTF-8 without control characters."),
    _row(
        "too_many_scopes",
        _NOT_APPLIED,
        False,
        "rate-limits-and-concurrency",
        "At most 8 concurrency limits, and 8 rate windows, for one job.",
    ),
    _row("batch_too_large", _NOT_APPLIED, False, "dispatching", "At most 100 items and 2 MiB in one batch."),
    _row("not_found", _NOT_APPLIED, False, "management-api", "Check its id, name or address, and who may see it."),
    _row("forbidden", _NOT_APPLIED, False, "management-api", "Ask for a grant of the permission that this needs."),
    _row(
        "application_required",
        _NOT_APPLIED,
        False,
        "command-line",
        "Ask where the application's code is at hand (--app gives it), for this needs the job's record.",
    ),
    _row("stale_generation", _NOT_APPLIED, False, "management-api", "Read the job again; it was retried or rerun."),
    _row("stale_revision", _NOT_APPLIED, False, "management-api", "Read it again; it has changed since it was read."),
    _row("invalid_state", _NOT_APPLIED, False, "management-api", "Look how it stands; its state does not allow this."),
    _row(
        "operation_conflict",
        _NOT_APPLIED,
        False,
        "dispatching",
        "The id was used for another request; send this one with a new id.",
    ),
    _row("invalid_argument", _NOT_APPLIED, False, "management-api", "Mend what the message names."),
    _row("local_capacity_exceeded", _NOT_APPLIED, True, "dispatching", "Dispatch less at once, or raise the limits."),
    _row("command_expired", _NOT_APPLIED, False, "dispatching", "It was never applied; send it anew, with a new id."),
    _row("invalid_prepared", _NOT_APPLIED, False, "dispatching", "Give the bytes that export() of this release made."),
    _row("cancelled_after_send", _UNKNOWN, False, "dispatching", "Resolve it, or send the prepared request again."),
    _row("expired_unknown", _UNKNOWN, False, "dispatching", "Too old for a definite answer; look for the job itself."),
    _row("wait_timeout", _NOT_APPLIED, True, "dispatching", "The job had not ended in time; it goes on."),
]

_CONFIGURATION: Final = [
    _row("missing_store", _NOT_APPLIED, False, "configuration", "Give store= or set RUNWICK_STORE."),
    _row("invalid_store", _NOT_APPLIED, False, "choosing-a-store", "Use postgresql://…, redis://… or sqlite:///FILE."),
    _row("invalid_name", _NOT_APPLIED, False, "jobs-and-handlers", "A-Z a-z 0-9 . _ - and a letter or digit first."),
    _row("invalid_application", _NOT_APPLIED, False, "configuration", "Name a module, or module:attribute."),
    _row("import_failed", _NOT_APPLIED, False, "troubleshooting", "Mend the application's import."),
    _row("duplicate_job_name", _NOT_APPLIED, False, "jobs-and-handlers", "Give each record a name of its own."),
    _row("duplicate_handler", _NOT_APPLIED, False, "jobs-and-handlers", "Bind one handler to each job."),
    _row("job_not_registered", _NOT_APPLIED, False, "jobs-and-handlers", "Declare the record before configuring it."),
    _row("identity_conflict", _NOT_APPLIED, False, "jobs-and-handlers", "Let name and version agree everywhere."),
    _row("setting_conflict", _NOT_APPLIED, False, "configuration", "Give a setting once in one layer."),
    _row("invalid_policy", _NOT_APPLIED, False, "configuration", "Keep the value within its documented bounds."),
    _row("invalid_timing", _NOT_APPLIED, False, "configuration", "Scale the related timings together."),
    _row("unknown_setting", _NOT_APPLIED, False, "configuration", "Mend the variable's name, or unset it."),
    _row("invalid_payload_type", _NOT_APPLIED, False, "jobs-and-handlers", "Use concrete field types."),
    _row("invalid_handler", _NOT_APPLIED, False, "jobs-and-handlers", "Annotate the first parameter with the record."),
    _row("invalid_provider", _NOT_APPLIED, False, "jobs-and-handlers", "Annotate what the provider yields."),
    _row(
        "unknown_dependency", _NOT_APPLIED, False, "jobs-and-handlers", "Declare a provider for the parameter's type."
    ),
    _row("invalid_pool", _NOT_APPLIED, False, "workers", "Subscribe to queues that a job uses or rw.queue declares."),
    _row("pool_without_queue", _NOT_APPLIED, False, "workers", "Subscribe the pool to at least one queue."),
    _row("pool_budget_exceeded", _NOT_APPLIED, False, "workers", "Raise max_outstanding_attempts or shrink the pools."),
    _row("invalid_middleware", _NOT_APPLIED, False, "middleware", "Mend the middleware as the message says."),
    _row("unknown_middleware_alias", _NOT_APPLIED, False, "middleware", "Register a middleware under that alias."),
    _row("invalid_upgrade", _NOT_APPLIED, False, "jobs-and-handlers", "Declare one upgrade for each version below."),
    _row("reload_refused", _NOT_APPLIED, False, "workers", "Restart the worker for this change."),
    _row("missing_handler", _NOT_APPLIED, False, "workers", "Register a handler for at least one job."),
    _row("platform_unsupported", _NOT_APPLIED, False, "workers", "Run runwick-supervise on Linux."),
    _row("boot_timeout", _NOT_APPLIED, False, "troubleshooting", "Shorten what the application does at import."),
]

_STORE: Final = [
    _row("store_not_installed", _NOT_APPLIED, False, "installation", "Run runwick migrate once."),
    _row(
        "store_unavailable",
        _NOT_APPLIED,
        True,
        "troubleshooting",
        "Try again when the store answers; mend the URL, the database or the role where the message names it.",
    ),
    _row(
        "store_profile_mismatch",
        _NOT_APPLIED,
        False,
        "choosing-a-store",
        "Restore the settings that keep jobs durable.",
    ),
    _row("store_revision_mismatch", _NOT_APPLIED, False, "upgrades", "Use the release that matches, or migrate."),
    _row("admission_closed", _NOT_APPLIED, True, "upgrades", "Wait until the operator opens the application again."),
    _row("capability_unknown", _NOT_APPLIED, False, "upgrades", "Use a release that knows the capability."),
    _row("store_full", _NOT_APPLIED, False, "limits", "Use fewer different names or settings."),
    _row("store_identity_mismatch", _NOT_APPLIED, False, "upgrades", "Restart against the store that was meant."),
    _row("unknown_application", _NOT_APPLIED, False, "upgrades", "Start the application once, or mend the name."),
    _row("invalid_admission", _NOT_APPLIED, False, "upgrades", "Go to drain first; maintenance follows it."),
    _row(
        "uniqueness_conflict",
        _NOT_APPLIED,
        False,
        "uniqueness",
        "The key is another request's or job's; wait until it is free, or give another one.",
    ),
    _row(
        "uniqueness_composition_conflict",
        _NOT_APPLIED,
        False,
        "uniqueness",
        "The two keys belong to two jobs; wait for one of them, or give other keys.",
    ),
    _row(
        "rate_admission_not_active",
        _NOT_APPLIED,
        False,
        "rate-limits-and-concurrency",
        "Activate the capability rate_admission for the application, once.",
    ),
    _row("store_in_use", _NOT_APPLIED, True, "upgrades", "Put every application into maintenance and wait."),
    _row("store_history_broken", _NOT_APPLIED, False, "upgrades", "Restart against an intact store."),
    _row("engine_version_unsupported", _NOT_APPLIED, False, "sqlite", "Use SQLite 3.38 or newer."),
    _row(
        "server_version_unsupported",
        _NOT_APPLIED,
        False,
        "choosing-a-store",
        "Use PostgreSQL 16, 17 or 18, or Redis 8.2 or newer.",
    ),
    _row(
        "topology_unsupported",
        _NOT_APPLIED,
        False,
        "redis",
        "Name one standalone primary; no Sentinel, no Cluster, no replica.",
    ),
    _row("encoding_unsupported", _NOT_APPLIED, False, "postgresql", "Create the database with the encoding UTF8."),
    _row("filesystem_unsupported", _NOT_APPLIED, False, "sqlite", "Put the file on a local disk."),
    _row("settlement_rejected", None, False, "troubleshooting", "Read the attempt's error for what was refused."),
    _row("migration_checksum_mismatch", _NOT_APPLIED, False, "upgrades", "Use the build that migrated this store."),
    _row("migration_unknown", _NOT_APPLIED, False, "upgrades", "The store is newer than this release."),
    _row("migration_connection_lost", _NOT_APPLIED, True, "upgrades", "Run it again; it goes on where it stopped."),
    _row("migration_lock_unavailable", _NOT_APPLIED, True, "upgrades", "Wait for the other migrator, run again."),
    _row("migration_lock_timeout", _NOT_APPLIED, True, "upgrades", "Wait for the other migrator, run again."),
    _row("schema_validation_failed", _NOT_APPLIED, False, "upgrades", "Repair or restore; do not force it."),
    _row(
        "outcome_unknown",
        _UNKNOWN,
        False,
        "delivery-guarantees",
        "Resolve it by its id, or send the same again: it is done once.",
    ),
]

_WEB: Final = [
    _row(
        "unauthenticated", _NOT_APPLIED, False, "management-api", "Give valid credentials of one of the host's schemes."
    ),
    _row("https_required", _NOT_APPLIED, False, "management-api", "Use https://, or sign in on the host itself."),
    _row("sign_in_failed", _NOT_APPLIED, False, "management-api", "Start runwick web again for a new link."),
    _row("antiforgery_failed", _NOT_APPLIED, False, "management-api", "Fetch a new token and send it from your page."),
    _row("rate_limited", _NOT_APPLIED, True, "management-api", "Wait as long as Retry-After says."),
    _row("busy", _NOT_APPLIED, True, "management-api", "Try again in a moment, or ask less at once."),
    _row("invalid_cursor", _NOT_APPLIED, False, "management-api", "Read the list again from its beginning."),
    _row("request_timeout", _NOT_APPLIED, True, "management-api", "Send the whole body at once."),
    _row("method_not_allowed", _NOT_APPLIED, False, "management-api", "Use a method that the path takes."),
    _row("internal_error", None, False, "troubleshooting", "Look for the incident's id in the server's log."),
    _row("invalid_management", _NOT_APPLIED, False, "management-api", "Give schemes, grants and a key that is long."),
    _row("scheme_not_allowed", _NOT_APPLIED, False, "management-api", "Use bearer schemes for machine clients."),
    _row("extra_missing", _NOT_APPLIED, False, "installation", "Install the extra that the message names."),
]

_COMMAND_LINE: Final = [
    _row("usage_error", _NOT_APPLIED, False, "command-line", "Mend the command line; --help and describe tell it."),
    _row(
        "credential_missing",
        _NOT_APPLIED,
        False,
        "command-line",
        "Put the secret into the context's variable or RUNWICK_SECRET, or give --secret-stdin.",
    ),
    _row("connection_failed", _NOT_APPLIED, True, "command-line", "Check the address, and that the server runs."),
    _row("version_mismatch", None, False, "upgrades", "Use the command line of the server's release."),
    _row("invalid_context", _NOT_APPLIED, False, "command-line", "Mend the file, or remove it and add contexts anew."),
    _row("no_worker", _NOT_APPLIED, True, "health-checks", "Start a worker, or name the directory of its run files."),
    _row("check_failed", _NOT_APPLIED, False, "command-line", "Read what the failed checks say."),
]

_OUTCOMES: Final = [
    _row("handler_failed", None, True, "retries-and-timeouts", "Read the error of the attempt."),
    _row("permanent_failure", None, False, "retries-and-timeouts", "Give PermanentJobFailure a code that is a name."),
    _row("executions_exhausted", None, False, "retries-and-timeouts", "Mend the cause, then retry the job by hand."),
    _row("reservation_abandonment_exhausted", None, False, "retries-and-timeouts", "Find what kills the workers."),
    _row("execution_timed_out", None, True, "retries-and-timeouts", "Raise the limit or shorten the work."),
    _row("executor_crashed", None, True, "troubleshooting", "Look at the signal or exit code of the attempt."),
    _row("poison_job", None, False, "troubleshooting", "The job killed its executor too often; mend it."),
    _row("memory_limit_exceeded", None, True, "troubleshooting", "Raise memory_hard, or let the job need less."),
    _row("worker_died", None, True, "workers", "The worker died with the run; the job runs again."),
    _row("code_not_kept", None, False, "limits", "The store keeps no more codes of an application; use fewer."),
    _row("cancel_requested", None, False, "cancelling", "Somebody cancelled the job."),
    _row("retry_requested", None, True, "middleware", "The application asked for another run."),
    _row("middleware_contract_fault", None, False, "middleware", "Call next() once and return its result."),
    _row("payload_upgrade_failed", None, False, "jobs-and-handlers", "Mend the upgrade, then retry the job by hand."),
    _row("lease_lost", None, True, "workers", "The lease ran out before the run ended."),
    _row("worker_stopping", None, True, "workers", "The worker stopped; the job runs again."),
    _row("payload_undecodable", None, False, "jobs-and-handlers", "Register an upgrade or dispatch it anew."),
    _row("provider_failed", None, True, "jobs-and-handlers", "Read the error of the provider."),
    _row("result_too_large", None, False, "jobs-and-handlers", "Return at most 1 MiB; store the rest elsewhere."),
    _row("invalid_result", None, False, "jobs-and-handlers", "Return what JSON can hold."),
    _row("expired", None, False, "dispatching", "The job had not begun by its expiry."),
]

CODES: Final[dict[str, Code]] = {
    row.code: row for row in [*_DISPATCH, *_CONFIGURATION, *_STORE, *_WEB, *_COMMAND_LINE, *_OUTCOMES]
}
