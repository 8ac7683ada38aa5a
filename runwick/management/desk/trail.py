"""The desk's part for the audit trail and for how the process and its store are set up."""

from runwick.contracts.identity import id_text
from runwick.contracts.listing import AuditFilter
from runwick.management.bodies import AuditListBody, SettingBody, SettingsBody
from runwick.management.desk.ground import Ground, check_limit
from runwick.management.desk.shown import audit_body, time_text
from runwick.management.permissions import Caller, Permission
from runwick.version import __version__


class TrailDesk(Ground):
    """Who did what, and what holds here."""

    async def audit(
        self, caller: Caller, chosen: AuditFilter, cursor: str | None = None, limit: int = 50
    ) -> AuditListBody:
        """Some of what operators did, the latest first; needs `Audit.Read`.

        Args:
            caller: who asks.
            chosen: which records.
            cursor: where the page before ended; None reads from the latest.
            limit: 1 to 100. A page may be short, even empty, although there is more.

        Raises:
            Forbidden: the caller may not.
            InvalidArgument: that is no cursor of such a filter, or no such limit (code ``invalid_argument``).
        """
        caller.allowed.need(Permission.AUDIT_READ)
        as_of = time_text(self._store.now_ms())
        page = await self._ask(self._store.audited(self.application, chosen, cursor, check_limit(limit)))
        return AuditListBody(records=tuple(map(audit_body, page.records)), cursor=page.cursor, as_of=as_of)

    async def settings(self, caller: Caller) -> SettingsBody:
        """The store, and the options of this process with where each comes from; needs `Settings.Read`. No secrets.

        Raises:
            Forbidden: the caller may not.
        """
        caller.allowed.need(Permission.SETTINGS_READ)
        standing = await self._ask(self._store.standing(self.application))
        settings = () if self._side is None else self._side.settings()
        return SettingsBody(
            application=self.application,
            store=self._store.description,
            store_id=id_text(standing.store_id),
            revision=standing.revision,
            version=__version__,
            admission=standing.admission.value,
            capabilities=tuple(standing.capabilities),
            settings=tuple(SettingBody(name=each.name, value=each.value, source=each.source) for each in settings),
            notes=self._store.notes,
            as_of=time_text(self._store.now_ms()),
        )
