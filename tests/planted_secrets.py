"""Some hundred kinds of secrets as people hold them; each is made up here, of a fixed seed.

They are put together from pieces, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import json
import random
import string
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A variable that holds a secret, alone or among other words."""

    name: str
    value: str
    secret: str
    """What must be found nowhere."""


def _word(seed: int, length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(random.Random(seed).choices(letters, k=length))


_HEX = "0123456789abcdef"
_UPPER = string.ascii_uppercase + string.digits
_PEM = "\n".join(_word(900 + line, 64) for line in range(3))


def _alone(name: str, secret: str) -> Kind:
    return Kind(name, secret, secret)


def _within(name: str, form: str, secret: str) -> Kind:
    return Kind(name, form.replace("@@", secret), secret)


def _uuid(seed: int) -> str:
    return "-".join(_word(seed + number, length, _HEX) for number, length in enumerate(_OF_UUID))


_OF_UUID = (8, 4, 4, 4, 12)
_CRYPT = string.ascii_letters + string.digits + "./"
# Divided, so that no scanner takes them for a leak.
_BEGINNINGS = (
    *(
        "s&ntrys_",
        "s&ntryu_",
        "r&8_",
        "g&sk_",
        "s&bp_",
        "n&tn_",
        "p&nu_",
        "rub&ygems_",
        "lin_&api_",
    ),
    *("r&pa_", "wan&db_v1_", "gl&c_", "do&o_v1_", "api&_org_", "psc&ale_tkn_", "ops_&eyJ"),
    *("gl&agent-", "gl&oas-", "x&ai-", "pp&lx-", "ts&key-", "PM&AK-", "NR&AK-", "HR&KU-", "se&ss-"),
    *("LT&AI", "AK&ID", "ATAT&T3", "AT&BB", "sha256&~", "GR13&48941", "s&k-proj-", "1/&/0"),
)
_LOGIN = base64.b64encode(f"user:{_word(40, 12)}".encode()).decode()
KINDS: tuple[Kind, ...] = (
    _alone("SETTING_1", "gh" + "p_" + _word(1, 36)),
    _alone("SETTING_2", "github" + "_pat_" + _word(2, 40)),
    _alone("SETTING_3", "gl" + "pat-" + _word(3, 20)),
    _alone("SETTING_4", "xo" + "xb-" + _word(4, 24)),
    _alone("SETTING_5", "s" + "k-" + _word(5, 40)),
    _alone("SETTING_6", "s" + "k-ant-" + _word(6, 40)),
    _alone("SETTING_7", "AK" + "IA" + _word(7, 16, _UPPER)),
    _alone("AWS_SECRET_ACCESS_KEY", _word(8, 40, string.ascii_letters + "/+")),
    _alone("AWS_SESSION_TOKEN", _word(9, 60, string.ascii_letters + "/+=")),
    _alone("SETTING_10", "AI" + "za" + _word(10, 35)),
    _alone("SETTING_11", "ya" + "29." + _word(11, 30)),
    _alone("SETTING_12", "h" + "f_" + _word(12, 34)),
    _alone("SETTING_13", "np" + "m_" + _word(13, 36)),
    _alone("SETTING_14", "py" + "pi-" + _word(14, 40)),
    _alone("SETTING_15", "dckr" + "_pat_" + _word(15, 27)),
    _alone("SETTING_16", f"ey{'J'}{_word(16, 20)}.ey{'J'}{_word(17, 30)}.{_word(18, 30)}"),
    _within(
        "SETTING_17",
        "-----BEGIN RSA " + "PRIVATE KEY-----\n@@\n-----END RSA " + "PRIVATE KEY-----",
        _PEM,
    ),
    _within("SETTING_18", "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n@@", _PEM),
    _within("SETTING_19", "Authorization: Bearer @@", _word(19, 20, _HEX)),
    _within("SETTING_20", "Authorization: Basic @@", _LOGIN),
    _within("SETTING_21", "Basic @@", _LOGIN),
    _within("SETTING_22", "Proxy-Authorization: Digest @@", _word(22, 12, _HEX)),
    _within("http_proxy", "http://user:@@@proxy:3128/", _word(23, 8, string.ascii_lowercase)),
    _within("SETTING_24", "https://oauth2:@@@git.example/a.git", _word(24, 20)),
    _within("SETTING_25", "postgresql://me:@@@db/x?sslmode=on", _word(25, 9, _HEX)),
    _within("SETTING_26", "--user me --password=@@ --x=1", _word(26, 7, string.ascii_lowercase)),
    _within("SETTING_27", "--api-key @@ --x 1", _word(27, 7, string.ascii_lowercase)),
    _within("SETTING_28", "mysql -h db -u me -p @@ base", _word(28, 7, string.ascii_lowercase)),
    _alone("DB_PASSWORD", _word(29, 6, string.ascii_lowercase)),
    _alone("MY_KEY", _word(30, 9, string.ascii_lowercase)),
    _alone("SERVICE_TOKEN", _word(31, 9, string.ascii_lowercase)),
    _within("TF_CONFIG", '{"cluster": {"a": ["b:1"]}, "password": "@@"}', _word(32, 9, _HEX)),
    _within("SETTING_33", '{"auth_token": "@@", "x": 1}', _word(33, 9, string.ascii_lowercase)),
    _within("SETTING_34", "machine h login me password @@", _word(34, 9, string.ascii_lowercase)),
    _within("SETTING_35", "Cookie: session=@@; theme=dark", _word(35, 12, _HEX)),
    _within("SETTING_36", "Set-Cookie: id=@@", _word(36, 12, _HEX)),
    _within("SETTING_37", "X-Api-Key: @@", _word(37, 12, _HEX)),
    _within("SETTING_38", "Server=db;User Id=me;Password=@@;", _word(38, 9, _HEX)),
    _within("SETTING_39", "AccountName=me;AccountKey=@@==;EndpointSuffix=x", _word(39, 40)),
    _within("SETTING_40", "https://h/x?a=1&access_token=@@&b=2", _word(41, 12, _HEX)),
    _within("SETTING_41", "https://hooks.slack.com/services/@@", f"T1/B2/{_word(42, 24)}"),
    _alone("SETTING_42", "s" + "k_live_" + _word(43, 24)),
    _alone("SETTING_43", f"S{'G'}.{_word(44, 22)}.{_word(45, 43)}"),
    _alone("WANDB_API_KEY", _word(46, 40, _HEX)),
    _alone("SLURM_JWT", _word(47, 12, string.ascii_lowercase)),
    _within("SETTING_46", "PGPASSWORD=@@ psql", _word(48, 9, string.ascii_lowercase)),
    *(
        _alone(f"SETTING_{50 + number}", begins.replace("&", "") + _word(200 + number, 44))
        for number, begins in enumerate(_BEGINNINGS)
    ),
    _alone("SETTING_90", "AGE-SECRET" + "-KEY-1" + _word(300, 58, _UPPER)),
    _within("SETTING_91", "$apr1$salt$@@", _word(301, 22)),
    _within("SETTING_92", "$2y$10$@@", _word(302, 53, _CRYPT)),
    _within("SETTING_93", "$6$rounds=5000$saltsalt$@@", _word(303, 86, _CRYPT)),
    _within("SETTING_94", "$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$@@", _word(304, 43)),
    _within("SETTING_95", "otpauth://totp/me?secret=@@&issuer=x", _word(305, 16, _UPPER)),
    _within("SETTING_96", "otpauth-migration://offline?data=@@", _word(306, 40)),
    _within("SETTING_97", "mysql://me:p@@@@w@db/x", f"ss/{_word(307, 6, _HEX)}"),
    _within("SETTING_98", "mongodb://me:a/@@@h1,h2/x", _word(308, 8)),
    _within("SETTING_99", "me:@@@proxy.example:3128", _word(309, 9)),
    _within("SETTING_100", "mysql -u me -p@@ base", _word(310, 7, string.ascii_lowercase)),
    _within("SETTING_101", "X-Auth-Token: @@", _word(311, 9)),
    _within("SETTING_102", "aws configure set aws_secret_access_key @@", _word(312, 40)),
    _within("SETTING_103", "wandb login @@", _word(313, 40, _HEX)),
    _within("SETTING_104", "docker login -u me -p @@ registry.example", _word(314, 9)),
    _within("SETTING_105", "db.example:5432:base:me:@@", _word(315, 9)),
    _within("SETTING_106", '{"auths": {"r.example": {"auth": "@@"}}}', _word(316, 24)),
    _within("SETTING_107", '{"username":"me","key":"@@"}', _word(317, 32, _HEX)),
    _within("SETTING_108", "https://conda.example/t/me-@@/main", _uuid(318)),
    _within("SETTING_109", "https://discord.com/api/webhooks/123/@@", _word(319, 60)),
    _within("SETTING_110", "123456789:AA@@", _word(320, 33)),
    _within("SETTING_111", "abc8Q~@@", _word(321, 34)),
    _within("SETTING_112", "client-key-data: @@", _word(322, 60)),
    _alone("SETTING_113", "LS0tLS1CRUdJTi" + _word(323, 60)),
    _alone("SETTING_114", "b3BlbnNzaC1rZXktdjE" + _word(324, 60)),
    _alone("SETTING_115", "MIIEpAIBAAKCAQEA" + _word(325, 48)),
    _within("SETTING_116", "Private-Lines: 1\n@@\nPrivate-MAC: 00", _word(326, 64)),
    _within(
        "SETTING_117",
        "---- BEGIN SSH2 ENCRYPTED " + "PRIVATE KEY ----\nComment: x\n@@\n",
        _PEM,
    ),
    _within("SETTING_118", "<password>@@</password>", _word(327, 9)),
    _within("SETTING_119", "{SSHA}@@==", _word(328, 32)),
    _alone("SETTING_120", "eyJ" + _word(329, 80)),
    _within("SETTING_121", '"""\nname\npassword = """\n@@\n"""', _word(330, 9)),
    _within("SETTING_122", '{"kty":"RSA","n":"AQAB","d":"@@"}', _word(331, 60)),
    _within("SETTING_123", "//r.example/:_authToken=@@", _uuid(332)),
    _within("SETTING_124", "PRIVATE-TOKEN: @@", _word(333, 20)),
    _alone("SETTING_126", "xo" + "xd-" + _word(335, 40)),
    _within("SETTING_125", "key = AQ@@==", _word(334, 36)),
)


def planted(text: str) -> list[str]:
    """Name the kinds whose secret a text holds: as it is, or as JSON writes it."""
    forms = ((one.name, {one.secret, json.dumps(one.secret)[1:-1]}) for one in KINDS)
    return [name for name, some in forms if any(form in text for form in some)]
