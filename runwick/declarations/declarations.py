"""The collector: takes down what an application declares, in any order, and freezes it into a catalog.

Declaring never fails for what it says, so that an import always runs through; `freeze` reports everything at once.
It opens nothing, dispatches nothing and knows no store.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType, ModuleType
from typing import Any

from runwick.contracts.errors import ConfigurationError, InvalidArgument, Problem
from runwick.contracts.jobs import Job, JobDeclaration, JobSettings, declaration_of
from runwick.contracts.names import name_problem
from runwick.declarations.catalog import Catalog
from runwick.declarations.handlers import DeclaredHandler, HandlerBinding
from runwick.declarations.jobs import CheckSettings, DeclaredJob, entries, queues_of
from runwick.declarations.middleware import DeclaredMiddleware, Layers
from runwick.declarations.places import place_of
from runwick.declarations.pools import DEFAULT_POOL, Pool
from runwick.declarations.providers import DeclaredProvider, Provider, resolve
from runwick.declarations.queues import DeclaredQueues
from runwick.declarations.settings import Placed
from runwick.declarations.suggestions import quoted
from runwick.declarations.tasks import Task
from runwick.declarations.upgrades import DeclaredUpgrade, routes

CheckPools = Callable[[Sequence[Pool], Collection[str]], list[Problem]]
"""Everything wrong with the declared pools: (pools, known queues)."""


class Declarations:
    """Everything declared so far by one application."""

    def __init__(
        self, application: str, job_defaults: JobSettings, check_settings: CheckSettings, check_pools: CheckPools
    ) -> None:
        """Start empty.

        Args:
            application: the application's name inside the store.
            job_defaults: the layer above the library's settings.
            check_settings, check_pools: the bounds, which belong to the configuration.
        """
        self.application = application
        self._job_defaults = job_defaults
        self._check_settings = check_settings
        self._check_pools = check_pools
        self._jobs: dict[type[Job], DeclaredJob] = {}
        self._handlers: list[DeclaredHandler] = []
        self._tasks: list[tuple[Task[..., Any], JobDeclaration]] = []
        self._providers: list[DeclaredProvider] = []
        self._layers = Layers()
        self._upgrades: list[DeclaredUpgrade] = []
        self._queues = DeclaredQueues()
        self._pools: list[Pool] = []
        self._misuses: list[Problem] = []
        self._frozen: Catalog | None = None

    def add_job(self, record: type[Job], declaration: JobDeclaration) -> None:
        """A record and its name; what `runwick.job` attached to the record holds as well."""
        if not (isinstance(record, type) and issubclass(record, Job)):
            sentence = f"{getattr(record, '__qualname__', record)} is no record; derive it from runwick.Job."
            self._misuses.append(Problem("invalid_payload_type", f"job {quoted(declaration.name)}", sentence))
            return
        job = self._job(record)
        if (attached := declaration_of(record)) is not None:
            job.declare(attached)
        job.declare(declaration)

    def add_module(self, module: ModuleType, where: str) -> None:
        """Every record in the module that `runwick.job` named."""
        self._frozen = None
        if not isinstance(module, ModuleType):
            sentence = f"add_jobs takes modules, this is {type(module).__name__} (at {where})."
            self._misuses.append(Problem("job_not_registered", "add_jobs", sentence))
            return
        named = [
            (value, declaration)
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, Job) and (declaration := declaration_of(value))
        ]
        for record, declaration in named:
            self._job(record).declare(declaration)
        if not named:
            sentence = f"the module {module.__name__} names no job with @runwick.job (added at {where})."
            self._misuses.append(Problem("job_not_registered", module.__name__, sentence))

    def configure_job(
        self, record: type[Job], settings: JobSettings, where: str, middleware: Sequence[DeclaredMiddleware] = ()
    ) -> None:
        """Settings above the declaration's and further middleware, for a record that is declared elsewhere."""
        self._frozen = None
        if not (isinstance(record, type) and issubclass(record, Job)):
            sentence = f"configure_job takes a record derived from runwick.Job, this is {_shown(record)} (at {where})."
            self._misuses.append(Problem("invalid_payload_type", "configure_job", sentence))
            return
        self._job(record).configured.append(Placed(settings, where))
        self._layers.add_to(record, middleware)

    def add_handler(self, handler: DeclaredHandler) -> None:
        """What runs a job."""
        self._frozen = None
        self._handlers.append(handler)

    def add_task(self, task: Task[..., Any], declaration: JobDeclaration) -> None:
        """A function that is a job of its own, under this name."""
        self._frozen = None
        self._tasks.append((task, declaration))

    def add_provider(self, provider: DeclaredProvider) -> None:
        """What makes something that handlers take."""
        self._frozen = None
        self._providers.append(provider)

    def add_middleware(self, middleware: DeclaredMiddleware, alias: str | None) -> None:
        """What wraps every run, or with an alias those of the jobs that name it."""
        self._frozen = None
        self._layers.add(middleware, alias)

    def add_upgrade(self, upgrade: DeclaredUpgrade) -> None:
        """How a payload of an older version becomes the next one."""
        self._frozen = None
        self._upgrades.append(upgrade)

    def add_queue(self, name: str, max_concurrent: int | None, where: str) -> None:
        """A queue that need not be any job's own, and how much of it runs at once."""
        self._frozen = None
        self._queues.add(name, max_concurrent, where)

    def add_pool(self, pool: Pool) -> None:
        """Which queues a worker serves; the same pool may be declared again."""
        self._frozen = None
        if pool not in self._pools:
            self._pools.append(pool)

    def freeze(self) -> Catalog:
        """The catalog of what is declared by now; the same one until something is added.

        Raises:
            ConfigurationError: with everything that is wrong in the declarations.
        """
        if self._frozen is None:
            self._frozen = self._check()
        return self._frozen

    def _job(self, record: type[Job]) -> DeclaredJob:
        self._frozen = None
        return self._jobs.setdefault(record, DeclaredJob(record))

    def _check(self) -> Catalog:
        problems = list(self._misuses)
        if why := name_problem(self.application):
            problems.append(Problem("invalid_name", "application", f"{quoted(self.application)} is not a name: {why}."))
        defaults = self._job_defaults
        if wrong := self._check_settings("job_defaults", defaults):
            problems += wrong
            defaults = JobSettings()
        providers = resolve(self._providers, problems)
        jobs = dict(self._jobs)
        handlers = [*self._bound_handlers(jobs, providers, problems), *self._bound_tasks(jobs, problems)]
        problems += _duplicate_handlers(handlers)
        limits = self._queues.limits
        found = entries([*jobs.values()], defaults, self._check_settings, limits, problems)
        by_record = {entry.record: entry for entry in found}
        said = {record: declared.declarations for record, declared in jobs.items()}
        around, unknown_aliases = self._layers.around(handlers, said, providers, problems)
        older = routes(self._upgrades, by_record, problems)
        queues = queues_of(jobs.values(), defaults) | self._queues.names
        problems += self._queues.problems(self._check_settings)
        problems += self._check_pools(self._pools, queues)
        if problems:
            raise ConfigurationError(problems)
        served = {by_record[binding.record].kind: binding for binding in handlers}
        return Catalog(
            application=self.application,
            jobs=MappingProxyType({entry.kind: entry for entry in found}),
            by_record=MappingProxyType(by_record),
            handlers=MappingProxyType(served),
            decodable=MappingProxyType(
                dict.fromkeys(served) | {kind: route for kind, route in older.items() if route.kind in served}
            ),
            middleware=MappingProxyType({kind: around[binding.record] for kind, binding in served.items()}),
            unknown_aliases=tuple(unknown_aliases),
            providers=MappingProxyType(providers),
            queues=queues,
            queue_limits=limits,
            pools=tuple(self._pools) or (DEFAULT_POOL,),
        )

    def _bound_handlers(
        self, jobs: dict[type[Job], DeclaredJob], providers: Mapping[Any, Provider], problems: list[Problem]
    ) -> Iterator[HandlerBinding]:
        """Bind the handlers; a record that `runwick.job` named needs no other registration."""
        for handler in self._handlers:
            record = handler.record(problems)
            if record is None:
                continue
            job = jobs.setdefault(record, DeclaredJob(record))
            if (attached := declaration_of(record)) is not None:
                job.declare(attached)
            yield handler.bind(record, providers, problems)

    def _bound_tasks(self, jobs: dict[type[Job], DeclaredJob], problems: list[Problem]) -> Iterator[HandlerBinding]:
        for task, declaration in self._tasks:
            try:
                binding = task.binding
            except InvalidArgument as refused:
                problems.append(Problem(refused.code, f"task {quoted(declaration.name)}", f"{refused.message}."))
                continue
            jobs.setdefault(binding.record, DeclaredJob(binding.record)).declare(declaration)
            yield binding


def _duplicate_handlers(handlers: Sequence[HandlerBinding]) -> Iterator[Problem]:
    first: dict[type[Job], HandlerBinding] = {}
    for handler in handlers:
        other = first.setdefault(handler.record, handler)
        if other is not handler:
            label = f"job {handler.record.__qualname__}"
            names = [f"{each.target.__qualname__} ({place_of(each.target)})" for each in (other, handler)]
            yield Problem("duplicate_handler", label, f"{label} is handled by {names[0]} and {names[1]}; keep one.")


def _shown(value: object) -> str:
    return value.__qualname__ if isinstance(value, type) else type(value).__name__
