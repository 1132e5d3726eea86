"""Finding credentials in text, so that none is ever kept as a memory.

It catches, by shape: private key blocks; keys with a known prefix (OpenAI, Anthropic, AWS, Google,
GitHub, GitLab, Slack, Stripe, npm, PyPI, Hugging Face, SendGrid, Twilio, Telegram, age,
DigitalOcean, Shopify, Databricks, Azure storage); JSON web tokens; passwords inside addresses
(``scheme://user:password@host``); Basic and Bearer credentials; card numbers (Luhn) and IBANs
(mod 97). By context: what is said to *be* a password, PIN, passphrase, one-time code, token, secret
or key, in several languages, where the value looks like one. By entropy: a run of 24 or more mixed
letters and digits with 3.6 bits a character, which a long hexadecimal digest also is.

It does not catch a secret that is spelled as ordinary words with nothing beside it that says so.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter

_PREFIXED = (
    r"-----BEGIN[A-Z0-9 ]*PRIVATE KEY",
    r"\bAGE-SECRET-KEY-1[0-9A-Z]{20,}",
    r"\bsk-(?:ant-|proj-|live-|svcacct-|or-)?[A-Za-z0-9_-]{16,}",
    r"\b(?:AKIA|ASIA|AGPA|AROA|AIDA)[A-Z0-9]{12,}\b",
    r"\bAIza[0-9A-Za-z_-]{20,}",
    r"\bya29\.[0-9A-Za-z_-]{20,}",
    r"\bGOCSPX-[0-9A-Za-z_-]{16,}",
    r"\bgh[pousr]_[A-Za-z0-9]{16,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bgl(?:pat|ptt|dt|rt|ft|soat)-[A-Za-z0-9_-]{16,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"hooks\.slack\.com/services/T\w+/B\w+/\w+",
    r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}",
    r"\bwhsec_[A-Za-z0-9+/=]{16,}",
    r"\bnpm_[A-Za-z0-9]{20,}",
    r"\bpypi-[A-Za-z0-9_-]{16,}",
    r"\bhf_[A-Za-z0-9]{20,}",
    r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"\b(?:SK|AC)[0-9a-f]{32}\b",
    r"\b\d{8,10}:AA[A-Za-z0-9_-]{30,}",
    r"\bdo[opr]_v1_[a-f0-9]{32,}",
    r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{16,}",
    r"\bdapi[a-f0-9]{32}\b",
    r"\bAccountKey=[A-Za-z0-9+/=]{20,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    r"\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*:[^\s/@]+@",
    r"\b(?:basic|bearer)\s+[A-Za-z0-9+/_.=-]{16,}",
)
_SHAPES = re.compile("|".join(f"(?:{shape})" for shape in _PREFIXED), re.IGNORECASE)

_KINDS = (
    r"pass(?:word|wort|phrase|code)|passwd|pwd|kennwort|mot de passe|contraseña|senha|пароль|密码|"
    r"密碼|パスワード|비밀번호|hasło|wachtwoord|lösenord|"
    r"pin(?:[ -]?(?:code|number))?|otp|one[- ]time (?:code|password)|"
    r"(?:2fa|mfa|verification|security|recovery|backup|access|unlock|door|alarm) code|cvv|cvc|"
    r"(?:api|access|secret|private|signing|encryption|license|ssh)[ _-]?key|"
    r"(?:access|auth|api|bearer|refresh|session)[ _-]?token|client[ _-]?secret|credentials?|"
    r"seed phrase|recovery phrase|secret|token"
)
# The kind, at most a few words that cannot end the sentence, a word or sign of being, the value.
_STATED = re.compile(
    rf"(?:\b|_|(?<=[^\x00-\x7f]))(?P<kind>{_KINDS})s?(?![a-zA-Z])(?:[^\n.;:=]{{0,40}}?)"
    r"(?:\s*(?:=>|->|[:=：])\s*|\s+(?:is|was|are|to|ist|lautet|war|est|es|é|è|är|to|jest)(?:\s*:)?\s+|"
    r"(?:是|为|は|は、)\s*|\s+[\"'`“«])"
    r"(?P<quote>[\"'`“«]?)(?P<value>[^\s\"'`“”»，。]+)",
    re.IGNORECASE,
)
_LOCK_WORD = r"(?:password|passwort|passphrase|passcode|pwd|pin)"
# "password hunter2", and "hunter2 is the wifi password": only what mixes digits or signs in.
_BESIDE = re.compile(
    rf"\b{_LOCK_WORD}\s+[\"'`]?(?P<after>\S{{4,}})|"
    rf"(?<!\S)(?P<before>\S{{4,64}})\s+(?:is|as)\s+(?:[^\s.]+\s+){{1,4}}{_LOCK_WORD}(?!\s+manager)\b",
    re.IGNORECASE,
)
_ENTROPIC = re.compile(r"(?<![\w/+=-])[A-Za-z0-9+/_=-]{24,}(?![\w/+=-])")
_WEB_PATH = re.compile(r"\bhttps?://[^\s?#]+", re.IGNORECASE)
_CARD = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.]\d)")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_INVISIBLE = dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x00AD))
_PASSWORD_KINDS = re.compile(r"pass|pwd|kenn|mot|contra|senha|пар|密|パス|비밀", re.IGNORECASE)
_NUMERIC_KINDS = re.compile(r"pin|otp|code|cvv|cvc|one[- ]time", re.IGNORECASE)
_CARD_ISSUERS = (2, 3, 4, 5, 6)
ENTROPY_BITS = 3.6


def holds_secret(text: str) -> bool:
    """Whether `text` holds what looks like a credential."""
    plain = unicodedata.normalize("NFKC", text).translate(_INVISIBLE)
    if _SHAPES.search(plain) or any(map(_is_secret_value, _STATED.finditer(plain))):
        return True
    if any(_mixes_digits(match["after"] or match["before"]) for match in _BESIDE.finditer(plain)):
        return True
    # Paths of web addresses are full of digests and numbers that open nothing.
    prose = _WEB_PATH.sub(" ", plain)
    if any(_is_random(match.group()) for match in _ENTROPIC.finditer(prose)):
        return True
    cards = any(_passes_luhn(match.group()) for match in _CARD.finditer(prose))
    return cards or any(_is_iban(match.group()) for match in _IBAN.finditer(prose))


def _is_secret_value(match: re.Match[str]) -> bool:
    """A stated value counts where it is no ordinary word: digits, signs or mixed case in it."""
    value = match["value"].strip(".,;!?)(]['\"")
    if _NUMERIC_KINDS.search(match["kind"]) and re.fullmatch(r"[\d-]{3,12}", value):
        return True
    if len(value) < 4:
        return False
    if match["quote"] and _PASSWORD_KINDS.match(match["kind"]):
        return True
    digits = any(char.isdigit() for char in value)
    letters = any(char.isalpha() for char in value)
    signs = any(not char.isalnum() and char not in "-'’" for char in value)
    mixed = any(char.isupper() for char in value[1:]) and any(char.islower() for char in value)
    return (digits and (letters or len(value) >= 6)) or signs or mixed


def _mixes_digits(word: str) -> bool:
    value = word.strip(".,;!?)(]['\"`")
    digits = sum(map(str.isdigit, value))
    return digits > 0 and (digits < len(value) or len(value) <= 12) and len(value) >= 4


def _is_random(run: str) -> bool:
    if _UUID.fullmatch(run) or ("/" in run.strip("/") and not any(map(str.isdigit, run))):
        return False
    classes = (str.islower, str.isupper, str.isdigit)
    kinds = sum(any(test(char) for char in run) for test in classes)
    return kinds >= 2 and any(map(str.isdigit, run)) and _entropy(run) >= ENTROPY_BITS


def _entropy(text: str) -> float:
    """Shannon entropy in bits a character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def _passes_luhn(run: str) -> bool:
    digits = [int(char) for char in run if char.isdigit()]
    if len(set(digits)) < 2 or digits[0] not in _CARD_ISSUERS:
        return False
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_iban(run: str) -> bool:
    letters = run.replace(" ", "")
    if not 15 <= len(letters) <= 34:
        return False
    return int("".join(str(int(char, 36)) for char in letters[4:] + letters[:4])) % 97 == 1
