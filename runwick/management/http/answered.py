"""What the API answers beyond the desk's own bodies."""

from runwick.management.bodies import Body, ControlBody


class AntiforgeryBody(Body, frozen=True, kw_only=True):
    """A token for the posts of a browser or a Basic client."""

    token: str
    header_name: str


class ControlListBody(Body, frozen=True, kw_only=True):
    """What became of each job of one command, in the order given. Some may be refused while others are done."""

    results: tuple[ControlBody, ...]
