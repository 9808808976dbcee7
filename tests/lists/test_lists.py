"""Word lists of a language: what is in them, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from spacy_treecrf.lists import writing
from spacy_treecrf.lists.sources import cities, countries, frequencies, persons, scripts_of
from spacy_treecrf.lists.writing import lists_of, write_lists


def test_countries_have_their_names_in_the_language() -> None:
    assert {"Alemania", "Países Bajos"} <= countries("es")["country"]
    assert {"Duitsland", "Nederland"} <= countries("nl")["country"]


def test_names_of_persons_are_in_a_script_of_the_language() -> None:
    dutch, greek = persons("nl"), persons("el")
    assert "van Dijk" in dutch["own_last_name"] <= dutch["last_name"]
    assert scripts_of("".join(dutch["first_name"])) == {"LATIN"}
    assert {"GREEK"} <= scripts_of("".join(greek["own_first_name"])) <= {"GREEK", "LATIN"}


@pytest.mark.parametrize(("language", "names"), [("zh", "王 李 欧阳"), ("ko", "김 이 박")])
def test_names_may_be_one_letter_where_this_is_a_syllable(language: str, names: str) -> None:
    assert set(names.split()) <= persons(language)["own_last_name"]
    assert all(len(name) > 1 for name in persons("es")["last_name"])


@pytest.mark.parametrize("language", ["ru", "ja", "th", "ur"])
def test_lists_have_no_names_in_scripts_that_only_codes_have(language: str) -> None:
    lists = {**persons(language), **cities(language)}
    assert lists["last_name"]
    assert lists["city"]
    for name, phrases in lists.items():
        assert "LATIN" not in scripts_of("".join(phrases)), name


def test_korean_cities_of_two_syllables_are_cities() -> None:
    assert {"서울특별시", "부산", "대구"} <= cities("ko")["city"]


def test_georgian_cities_are_cities() -> None:
    assert {"თბილისი", "ბათუმი"} <= cities("ka")["city"]


@pytest.mark.parametrize(("language", "word"), [("hr", "je"), ("bs", "je"), ("tl", "ang")])
def test_frequent_words_come_under_the_code_that_the_package_knows(
    language: str, word: str
) -> None:
    assert word in frequencies(language)["frequency6"]


def test_frequent_words_are_in_one_list_each() -> None:
    lists = frequencies("nl")
    assert list(lists) == [f"frequency{n}" for n in (6, 5, 4, 3, 2)]
    assert "de" in lists["frequency6"]
    assert sum(map(len, lists.values())) == len(set().union(*lists.values()))
    assert not any(frequencies("rm").values())


@pytest.mark.parametrize("language", ["qq", "a language"])
def test_unknown_languages_are_refused(language: str) -> None:
    with pytest.raises(ValueError, match=f"no language '{language}'"):
        countries(language)


def test_codes_may_be_in_capitals_and_have_a_country_or_a_script() -> None:
    lists = lists_of("NL")
    assert {"country", "own_last_name", "frequency6"} <= set(lists)
    assert lists == lists_of("nl")
    for code in ("PT_BR", "pt-BR", "pt-br"):
        assert "Países Baixos" in lists_of(code)["country"]
    assert "荷蘭" in lists_of("zh_Hant")["country"]


@pytest.mark.parametrize("language", ["de_AT", "pt-BR", "en_GB", "zh_Hant", "nb", "no"])
def test_all_lists_are_there_whatever_the_code_of_the_language(language: str) -> None:
    lists = lists_of(language)
    assert {"own_first_name", "own_last_name", "frequency2"} <= set(lists)
    assert all(lists.values())
    if "_" not in language and "-" not in language:
        other = lists_of({"nb": "no", "no": "nb"}[language])
        assert {**other, "country": set()} == {**lists, "country": set()}


def test_files_hold_a_phrase_in_each_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"city": {"Den  Haag", "Gent"}}
    monkeypatch.setattr(writing, "SOURCES", {"spacy": lambda _: {**found, "empty": set()}})
    assert write_lists("nl", tmp_path / "new") == {"city": 2, "empty": 0}
    assert (tmp_path / "new" / "city.txt").read_text(encoding="utf8") == "Den Haag\nGent\n"
    assert len(list((tmp_path / "new").iterdir())) == 1
    (tmp_path / "new" / "own.txt").write_text("Ajax\n", encoding="utf8")
    monkeypatch.setattr(writing, "SOURCES", {"spacy": lambda _: {"city": set(), "last": {"Bos"}}})
    write_lists("xx", tmp_path / "new")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"last.txt", "own.txt"}


def test_lacking_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "SOURCES", {"no-such-package": countries})
    with pytest.raises(ValueError, match=r'no-such-package.*pip install "spacy-treecrf\[lists\]"'):
        writing.require_sources()
