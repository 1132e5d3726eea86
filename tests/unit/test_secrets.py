"""No credential becomes a memory, and ordinary facts are not taken for one."""

from __future__ import annotations

import pytest

from muniment.extraction.secrets import holds_secret

# Built from parts, so that no scanner of this repository takes a sample for a leak.
SECRETS = [
    "the key is sk-" + "proj-abcdefghijklmnop1234",
    "uses sk-" + "ant-api03-abcdefghijklmnop",
    "AKIA" + "IOSFODNN7EXAMPLE belongs to the user",
    "token ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_" + "11ABCDEFG0abcdefghijkl_mnop",
    "glpat-" + "abcdefghij0123456789",
    "xoxb-" + "1234567890-abcdefghij",
    "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstu",
    "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEF",
    "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "-----BEGIN RSA " + "PRIVATE KEY-----",
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc_def",
    "the database is postgresql://app:" + "s3cret@db.example.org/x",
    "sends Authorization: Bearer " + "abcdefghijklmnop1234",
    "The user's password is hunter2",
    "password: Tr0ub4dor&3",
    "The wifi password at home is correct-Horse1",
    "my password is 'opensesame!'",
    "The user's PIN is 4711",
    "the bank card's pin code is 0815",
    "the one-time code is 123456",
    "The door code is 4711",
    "API_KEY=abcd1234efgh",
    "client secret: Zx81Spectrum",
    "Das Passwort lautet geheim123",
    "Пароль: qwerty123",
    "密码是abc12345",
    "El usuario usa la contraseña es Clave2024",
    "pays with 4111 1111 1111 1111",
    "IBAN DE89 3704 0044 0532 0130 00",
    "deploys with q8Zt3LmN5vXw2KpR7sYb9CdF1gHj",
    "The user's password hunter2 opens the door",
    "PIN 4711 for the garage",
    "hunter2 is the user's wifi password",
    "the aws secret is wJalrXUtnFEMI/" + "K7MDENG/bPxRfiCYzEXAMPLEKEY",
    "see https://example.org/?sig=q8Zt3LmN5vXw2KpR7sYb9CdF1gHj",
    "the pass\u200bword is hunt\u200ber2",
]
HARMLESS = [
    "The user lives in Oslo",
    "The user forgot the password again",
    "The password is reset every month",
    "The user wants a password manager",
    "The project rotates its API keys every 90 days",
    "The secret to good tea is time",
    "The token budget is 2000 tokens",
    "The user's token limit was raised",
    "The key point is that the deadline is Friday",
    "The user pinned version 3.12 of Python",
    "Ana's session id is 7d4440ad-2c56-4f27-a8fd-3a7f3dbf5e1d",
    "The user was born on 1990-05-17 and has 2 children",
    "The user's phone number is +47 22 22 55 55",
    "The order number is 20260310",
    "See https://example.org/docs/getting-started/installation-guide-for-beginners",
    "The file is src/muniment/extraction/secrets_and_more.py",
    "The user works on internationalization-and-localization",
    "用户喜欢喝咖啡",
    "The user's email is alice+work@example.org",
    "GitHub is the user's password manager of choice",
    "1Password is the user's password manager",
    "The password manager called 1Password is used",
    "The user passed the exam in 2024",
    "The user's team uses OAuth2 access tokens",
    "The meeting room code name is Falcon",
    "The zip code of the office is Oslo",
    "The deadline is 2026-03-31 at 12:00",
    "Budget is 1,250,000 euros and 42 people",
    "The user ran 42.195 km in 3:59:59",
    "The photo is https://i.example.com/originals/ea/d9/ead9d79b58ca80a38a744b5ab70482db.jpg",
    "Commit to main is by review only",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_credential_is_found(text: str) -> None:
    assert holds_secret(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_an_ordinary_fact_is_left_alone(text: str) -> None:
    assert not holds_secret(text)


@pytest.mark.parametrize("part", ["a", "password ", "1 ", "is ", "://", "A1", "sk-", "passwordis"])
def test_long_text_is_searched_in_linear_time(part: str) -> None:
    holds_secret(part * (200_000 // len(part)))
