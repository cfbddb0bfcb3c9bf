"""The shapes that issuers give to their secrets: strings that are secrets wherever they stand."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple, Pattern, Sequence, Tuple

compiled = lru_cache(maxsize=None)(re.compile)
BEGINS = r"(?:\b|(?<=\\[nrt]))"
"""Where a word begins, also after a line's end as JSON writes it."""
_ALONE = r"(?:(?<![\w-])|(?<=\\[nrt]))"
_NEXT_LINE = r"(?:\\+[nr]|\s)*"
_LINES = (
    rf"(?:{_NEXT_LINE}[A-Za-z0-9+/]{{16,}}={{0,2}})*"
    rf"(?:{_NEXT_LINE}[A-Za-z0-9+/]{{1,15}}(?:={{1,2}}(?!\w)|(?={_NEXT_LINE}-----END)))?"
)
"""The rest of a key in base64, which may go on in further lines."""
_HEADERS = rf"(?:{_NEXT_LINE}(?:[A-Z][A-Za-z-]+: [^\n\\]*|[A-Za-z0-9+/]{{16,}}={{0,2}}))*"
_END = rf"(?:{_NEXT_LINE}-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)?"


_SHORTEST = 14
"""Of the words in which secrets of a shape stand."""


class Family(NamedTuple):
    """Shapes that are looked for together; an ordinary line is none after one or two looks."""

    mark: Pattern[str]
    """What each of them holds: quick to look for, as it begins with one letter."""
    words: Tuple[str, ...]
    """One of these stands in each of them: to look for words is 20 times faster than for shapes."""
    shape: str
    """Compiled with the first text that may hold one: a worker starts without."""


def _family(mark: str, words: str, *shapes: str, within: Sequence[str] = ()) -> Family:
    """Make a family of shapes that begin a word, and of those that may stand ``within`` one."""
    begun = [rf"{BEGINS}(?:{'|'.join(shapes)})"] if shapes else []
    return Family(re.compile(mark), tuple(words.split()), "|".join([*within, *begun]))


_UNDERLINED = _family(
    r"_\w{10}",
    "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ k_live_ k_test_ whsec_ hf_ api_org_ npm_ dckr_ o_v1_ "
    "p_v1_ r_v1_ shpat_ shpca_ shppa_ shpss_ glsa_ glc_ sntrys_ sntryu_ r8_ gsk_ pscale_ sbp_ ntn_ "
    "pnu_ rubygems_ wandb_v1_ lin_api_ fw_ rpa_ KGAT_ AVNS_ jina_ ops_eyJ y0_ rdme_",
    r"[rps]k_(?:live|test)_\w{10,}",
    r"(?:hf|npm|api_org|r8|gsk|sbp|ntn|pnu|rubygems|lin_api|fw|rpa|KGAT|jina|rdme)_[A-Za-z0-9]{16,}",
    r"(?:sntry[su]|glsa|glc|wandb_v1|tgp_v1|AVNS|y0)_[\w+/=-]{16,}",
    r"pscale_(?:tkn|oauth|pw)_[\w.=-]{16,}|ops_eyJ[\w+/=-]{16,}",
    within=(
        r"(?:gh[pousr]|whsec|shp(?:at|ca|pa|ss))_\w{16,}|github_pat_\w{16,}",
        r"do[opr]_v1_\w{16,}|dckr_[op]at_[\w-]{16,}",
    ),
)
_GITLAB = _family(
    r"[trs]-[\w-]{16}",
    "gl",
    within=(r"gl(?:pat|ptt|dt|rt|rtr|cbt|ft|ffct|imt|agent|oas|soat)-[\w.-]{16,}",),
)
_DASHED = _family(
    r"-[\w-]{10}",
    "xox xapp- sk- GOCSPX- pypi- nvapi- AGE- tskey- pplx- xai- pul- PMAK- NRAK- HRKU- sess- key-",
    r"sk-[\w-]{16,}|nvapi-[\w-]{16,}|AGE-(?:SECRET-KEY|PLUGIN-\w+)-1\w{16,}",
    r"(?:tskey|pplx|xai|PMAK|NRAK|HRKU|sess)-[\w-]{20,}|pul-[0-9a-f]{40}|key-[0-9a-f]{32}",
    within=(
        r"xox[a-eoprs]-[\w-]{10,}|xapp-[\w-]{10,}|GOCSPX-[\w-]{16,}|pypi-[\w-]{16,}",
        r"bedrock-api-key-[\w+/=-]{16,}",
    ),
)
_DOTTED = _family(
    r"\.[\w-]{10}",
    "eyJ ya29. SG. hvs. hvb. hvr. s. dp. .atlasv1.",
    r"SG\.[\w-]{10,}\.[\w-]{10,}|hv[sbr]\.[\w-]{24,}|s\.[A-Za-z0-9]{24,}",
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{30,}|\w{14}\.atlasv1\.[\w=-]{30,}",
    within=(rf"{_ALONE}eyJ[\w-]{{8,}}\.[\w-]{{8,}}(?:\.[\w-]*)?|ya29\.[\w-]{{16,}}",),
)
_AMAZON = _family(
    r"A[0-9A-Z]{16}",
    "A",
    r"(?:AKIA|ASIA|AROA|AIDA|AGPA|AIPA|ANPA|ANVA|ABIA|ACCA)[0-9A-Z]{16}",
)
_PLAIN = _family(
    "",
    "LTAI AKID AIza dapi eyJ LS0t b3Bl IBA GR134 AKCp cmVmd TT3 ATBB SK AQ ~ :AA 1//0 "
    "{S {MD5 {CRYPT",
    r"LTAI[A-Za-z0-9]{12,}|AKID[A-Za-z0-9]{28,}|dapi[0-9a-f]{32}|ABSK[A-Za-z0-9+/]{100,}={0,2}",
    # A key without the lines around it: of OpenSSH, or version 0 after the length in DER.
    rf"b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/]*={{0,2}}{_LINES}",
    rf"MII[A-Za-z0-9+/]{{2}}[AQgw]IBA[A-Za-z0-9+/]{{8,}}={{0,2}}{_LINES}",
    r"AKCp[A-Za-z0-9]{50,}|cmVmd[A-Za-z0-9]{50,}|AT(?:ATT3|CTT3|BB)[\w=-]{20,}|SK[0-9a-f]{32}",
    r"AQ[A-Za-z0-9+/]{36}==|\d{8,10}:AA[\w-]{30,}|1//0[\w-]{30,}|[\w~.-]{3}\dQ~[\w~.-]{30,}",
    within=(
        rf"{_ALONE}eyJ[\w+/-]{{40,}}={{0,2}}|LS0tLS1CRUdJTi(?!BDRVJU)[A-Za-z0-9+/]{{16,}}={{0,2}}",
        r"AIza[\w-]{30,}|GR1348941[\w-]{16,}|sha256~[\w-]{30,}",
        r"\{(?:S?SHA\d*|S?MD5|CRYPT)\}[\w+/=.$]{16,}",
    ),
)
_HASHES = _family(
    r"\$\w",
    "$",
    within=(
        r"\$(?:apr1|sha1|[1567y]|gy)\$(?:[\w./=,+-]{1,64}\$){1,3}[\w./]{16,}",
        r"\$2[abxy]?\$\d\d\$[\w./]{20,}|\$(?:argon2\w{0,2}|scrypt|7)\$[\w=,$+/.-]{16,}",
        r"\$?pbkdf2[_-]sha\d+\$\d+\$[\w./$+=-]{16,}",
    ),
)
_WEB = _family(
    "/",
    "hooks.slack.com api/webhooks webhook.office.com /t/ otpauth",
    within=(
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/]+",
        r"discord(?:app)?\.com/api/webhooks/[\w/-]+|webhook\.office\.com/[^\s\\\"'<>]+",
        r"(?<=/t/)[a-z]{2}-[0-9a-f-]{36}|otpauth(?:-migration)?://[^\s\\\"'<>]+",
    ),
)
_BLOCKS = _family(
    "-",
    "-----BEGIN SSH2 Private-Lines:",
    within=(
        rf"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----{_HEADERS}{_LINES}{_END}",
        rf"---- BEGIN SSH2 [A-Z ]*PRIVATE KEY ----{_HEADERS}{_LINES}",
        rf"Private-Lines: \d+{_LINES}(?:{_NEXT_LINE}Private-MAC: \w+)?",
    ),
)
FAMILIES: Sequence[Family] = (
    *(_BLOCKS, _UNDERLINED, _GITLAB, _DASHED, _DOTTED, _AMAZON, _PLAIN, _HASHES, _WEB),
)
BLOCKS = ("-----BEGIN", "---- BEGIN", "Private-Lines:", "b3BlbnNzaC1rZXktdjE", "IBA")
"""What may begin a secret of several lines."""


def may_hold_shape(text: str) -> bool:
    """Tell whether it is worth to look for shapes in a text."""
    if _has_short_words(text):
        return False
    for mark, words, _ in FAMILIES:
        if mark.search(text) is not None:
            for word in words:
                if word in text:
                    return True
    return False


def holds_shape(text: str) -> bool:
    """Tell whether a secret stands in a text, by its shape."""
    return without_shapes(text, "") != text


def without_shapes(text: str, instead: str) -> str:
    """Replace the secrets in a text that have a shape of their own."""
    if may_hold_shape(text):
        for mark, words, shape in FAMILIES:
            if mark.search(text) is not None and any(map(text.__contains__, words)):
                text = compiled(shape).sub(instead, text)
    return text


def _has_short_words(text: str) -> bool:
    """Tell whether no word is long enough for a secret, as in most lines."""
    return len(max(text.split(), key=len, default="")) < _SHORTEST and "-----" not in text
