"""The names that secrets are given: of variables, of fields and in texts."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import Container

MOST_KNOWN = 1 << 14
"""Of the texts that were looked at before: the same names occur often."""
SECRET_VARIABLE = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|PASSCODE|PINCODE|CREDENTIAL|MNEMONIC|SEED_?PHRASE|AUTHTOK|"
    r"(?:CREDS?|KEYS?|PWD?|PASS|AUTH\d?|PRIVATE)(?:$|_)|"
    r"(?:^|_)(?:PAT|JWT|DSN|COOKIE|SESSION|SIGNATURE|SIG|SIGNING|BEARER|HMAC|T?OTP|2FA|MFA|W?PSK|LICEN[SC]E)(?:$|_)",
    re.IGNORECASE,
)
_OF_A_FIELD = re.compile(
    r"(?<!CHARS_)TOKEN(?!S|I[SZ]|_?(?:ID|COUNT|LEN|TYPE))|SECRET|PASSW(?:OR)?D|PASSPHRASE|PASSCODE|"
    r"CREDENTIALS?$|"
    r"MNEMONIC$|SEED_?PHRASE|AUTHTOK|(?:BIND|ROOT|ADMIN|USER|DB)_?PW$|"
    r"(?:API|ACCESS|ACCOUNT|PRIVATE|SIGNING|ENCRYPTION|MASTER|AUTH|XLA|CLIENT|SSH|DEPLOY|STORAGE)"
    r"_?(?:KEY|PASS)|"
    r"(?:^|_)(?:PWD?|PASS|CREDS?|O?AUTH\d?|JWT|T?OTP|HMAC|COOKIE|SIG|SIGNATURE|BEARER|DSN|"
    r"AUTHORIZATION)$|CREDS$|"
    r"REQUIREPASS|MASTERAUTH|(?:^|_)(?:T?OTP|2FA|MFA)_|PSK$|PRE_?SHARED_?KEY|MUNGE_?KEY",
    re.IGNORECASE,
)
_OF_WEB_KEYS = frozenset({"d", "p", "q", "dp", "dq", "qi", "k"})
"""Of RFC 7518: what else a JSON Web Key has is public."""
_OF_WORDS = re.compile(r"[A-Za-z0-9][_-]+[A-Za-z0-9]|[a-z][A-Z]")
OF_NAMES = (
    *("token", "secret", "pass", "pw", "key", "cred", "auth", "jwt", "dsn", "cookie", "session"),
    *("sig", "bearer", "private", "licen", "_pat", "pat=", "pat:", 'pat"', "phrase", "pincode"),
    *("mnemonic", "hmac", "otp", "2fa", "mfa", "psk"),
)
"""One of these stands in each name of a secret, in small letters."""
_OF_LOGINS = frozenset({"-u", "--user", "-U", "--proxy-user"})
_LOGIN = re.compile(r"[\w.@-]+:(?!\d+$).+")
"""``user:password``, not a user's and a group's numbers."""
_NO_SECRETS = frozenset({"PWD", "OLDPWD"})


@lru_cache(maxsize=MOST_KNOWN)
def is_secret_variable(name: str) -> bool:
    """Tell whether a variable of this name holds a secret; when in doubt, it does."""
    return name not in _NO_SECRETS and SECRET_VARIABLE.search(name) is not None


@lru_cache(maxsize=MOST_KNOWN)
def is_secret_field(name: str) -> bool:
    """Tell whether a field of this name holds one, in text where `key` and `session` are words."""
    plain = name.strip("-.").replace("-", "_")
    if plain.isupper() and "_" in plain:
        return is_secret_variable(plain)
    return plain not in _NO_SECRETS and _OF_A_FIELD.search(plain) is not None


@lru_cache(maxsize=MOST_KNOWN)
def is_written_before_secret(name: str) -> bool:
    """Tell whether a secret may follow this name with nothing between: no single word is one."""
    return _OF_WORDS.search(name) is not None and _OF_A_FIELD.search(name) is not None


def is_announced(before: object, member: str, length: int) -> bool:
    """Tell whether a list's next member is a secret: after its option, or as the second of two."""
    if type(before) is not str or "=" in before:
        return False
    if before in _OF_LOGINS:
        return _LOGIN.fullmatch(member) is not None
    return (length == 2 or before[:1] == "-") and is_secret_field(before)


def secret_members(names: Container[object]) -> Container[object]:
    """Name the members that hold a secret because of what stands beside them."""
    if "kty" in names:
        return _OF_WEB_KEYS
    return ("key",) if "username" in names else ()


def is_random(word: str) -> bool:
    """Tell a random key from a name: digits among letters, no character much more frequent."""
    if not any(one.isdigit() for one in word) or not any(one.isalpha() for one in word):
        return False
    if re.fullmatch(r"[0-9a-fA-F]{32,}", word):
        return True
    counts = Counter(word)
    entropy = -sum(n / len(word) * math.log2(n / len(word)) for n in counts.values())
    mixed = any(one.islower() for one in word) and any(one.isupper() for one in word)
    return mixed and entropy > 3.7
