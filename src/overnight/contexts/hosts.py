"""A context of hosts that were named with their cores: one engine on each of them."""

from __future__ import annotations

from overnight.contexts.local import start_local
from overnight.contexts.settings import as_entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from overnight.contexts.settings import Settings
    from overnight.contexts.ssh import Ssh
    from overnight.core.allocate import NodeShare
    from overnight.model.messages import Setup
    from overnight.ports import EngineHandle


class PlannedHosts:
    """Hosts a run could have.

    Attributes:
        label: Of the context.
        nodes: What each host gives, at least one slot.
        notes: What the user should know about the choice.
        here: Name of this machine, which is reached without ssh.
        own_values: For each slot here, the variables of ``-g`` and ``-E`` by name.
        devices: Names of those variables; each other host is asked for its values.
    """

    def __init__(
        self, label: str, nodes: Sequence[NodeShare], here: str,
        own_values: Sequence[Mapping[str, str]], notes: Sequence[str],
        devices: Sequence[str] = (),
    ) -> None:
        self.devices = devices
        self.label = label
        self.nodes = nodes
        self.here = here
        self.own_values = own_values
        self.notes = notes

    def make(self, settings: Settings) -> HostsContext:
        """The context, for a run that has its files now."""
        return HostsContext(self, settings)


class HostsContext:
    """One engine on each of these hosts."""

    def __init__(self, planned: PlannedHosts, settings: Settings) -> None:
        self.label = planned.label
        self.nodes = planned.nodes
        self._planned = planned
        self._settings = settings
        self._known_ssh: Ssh | None = None

    def start(
        self, next_rank: Callable[[], int], busy: Set[str]
    ) -> Sequence[EngineHandle]:
        """Start an engine on every node that has none.

        Args:
            next_rank: Gives a number that no other engine of the run has.
            busy: Names of nodes that have an engine.

        Raises:
            NoResources: None could be started.
        """
        return [self._start(share, next_rank()) for share in self.nodes if share.node not in busy]

    def setup_again(self, share: NodeShare, rank: int, attach: str, spools: Sequence[str]) -> Setup:
        """Settings for an engine on that node which an earlier driver has started."""
        return self._settings.setup(rank, share, self._own_variables(share), attach, spools)

    def _start(self, share: NodeShare, rank: int) -> EngineHandle:
        setup = self._settings.setup(rank, share, self._own_variables(share))
        if share.node == self._planned.here:
            return start_local(self._settings.files, self.label, share.node, setup)
        from overnight.contexts.ssh import SshEngine

        return SshEngine(self._ssh(), share.node, self.label, setup)

    def _ssh(self) -> Ssh:
        if self._known_ssh is None:
            from overnight.contexts.ssh import Ssh  # a run on this machine alone needs none

            settings = self._settings
            self._known_ssh = Ssh(
                settings.files, settings.options.remote_python, self._planned.devices
            )
        return self._known_ssh

    def _own_variables(self, share: NodeShare) -> list[list[bytes]]:
        return as_entries(self._planned.own_values) if share.node == self._planned.here else []
