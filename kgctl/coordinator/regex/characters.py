"""Classes of ASCII characters as 128-bit numbers, by the names that RE2 gives them."""

from __future__ import annotations

ANY = (1 << 128) - 1
NEWLINE = 1 << ord("\n")


def span(first: int, last: int) -> int:
    """All characters from ``first`` to ``last``; the part beyond ASCII is dropped."""
    last = min(last, 127)
    return ((1 << (last + 1)) - 1) & ~((1 << first) - 1) if first <= last else 0


def of(characters: str) -> int:
    """These characters."""
    mask = 0
    for character in characters:
        mask |= single(ord(character))
    return mask


def single(code: int) -> int:
    """One character; nothing for one beyond ASCII."""
    return 1 << code if code < 128 else 0


LOWER, UPPER, DIGIT = span(97, 122), span(65, 90), span(48, 57)
ALPHA = LOWER | UPPER
WORD = ALPHA | DIGIT | of("_")
PERL = {"d": DIGIT, "s": of("\t\n\f\r "), "w": WORD}
_GRAPH = span(33, 126)
POSIX = {
    "alnum": ALPHA | DIGIT,
    "alpha": ALPHA,
    "ascii": ANY,
    "blank": of("\t "),
    "cntrl": span(0, 31) | single(127),
    "digit": DIGIT,
    "graph": _GRAPH,
    "lower": LOWER,
    "print": span(32, 126),
    "punct": _GRAPH & ~(ALPHA | DIGIT),
    "space": of("\t\n\v\f\r "),
    "upper": UPPER,
    "word": WORD,
    "xdigit": DIGIT | span(65, 70) | span(97, 102),
}
_SYMBOLS = {"Sc": of("$"), "Sk": of("^`"), "Sm": of("+<=>|~")}
_PUNCTUATION = {"Pc": of("_"), "Pd": of("-"), "Pe": of(")]}"), "Ps": of("([{"), "Po": of("!\"#%&'*,./:;?@\\")}
_EMPTY_CATEGORIES = ("Cf", "Co", "Cs", "Lm", "Lo", "Lt", "M", "Mc", "Me", "Mn", "Nl", "No", "Pf", "Pi", "So", "Zl", "Zp")
UNICODE = {
    "Any": ANY,
    "L": ALPHA,
    "Ll": LOWER,
    "Lu": UPPER,
    "N": DIGIT,
    "Nd": DIGIT,
    "C": POSIX["cntrl"],
    "Cc": POSIX["cntrl"],
    "Z": of(" "),
    "Zs": of(" "),
    "P": of("".join("_-)]}([{!\"#%&'*,./:;?@\\")),
    "S": of("$^`+<=>|~"),
    **_PUNCTUATION,
    **_SYMBOLS,
    **dict.fromkeys(_EMPTY_CATEGORIES, 0),
    "Latin": ALPHA,
    "Common": ANY & ~ALPHA,
}
"""General categories and scripts. Scripts without ASCII letters are in `OTHER_SCRIPTS`."""

OTHER_SCRIPTS = frozenset(
    (
        "Adlam",
        "Ahom",
        "Anatolian_Hieroglyphs",
        "Arabic",
        "Armenian",
        "Avestan",
        "Balinese",
        "Bamum",
        "Bassa_Vah",
        "Batak",
        "Bengali",
        "Bhaiksuki",
        "Bopomofo",
        "Brahmi",
        "Braille",
        "Buginese",
        "Buhid",
        "Canadian_Aboriginal",
        "Carian",
        "Caucasian_Albanian",
        "Chakma",
        "Cham",
        "Cherokee",
        "Chorasmian",
        "Coptic",
        "Cuneiform",
        "Cypriot",
        "Cyrillic",
        "Deseret",
        "Devanagari",
        "Dives_Akuru",
        "Dogra",
        "Duployan",
        "Egyptian_Hieroglyphs",
        "Elbasan",
        "Elymaic",
        "Ethiopic",
        "Georgian",
        "Glagolitic",
        "Gothic",
        "Grantha",
        "Greek",
        "Gujarati",
        "Gunjala_Gondi",
        "Gurmukhi",
        "Han",
        "Hangul",
        "Hanifi_Rohingya",
        "Hanunoo",
        "Hatran",
        "Hebrew",
        "Hiragana",
        "Imperial_Aramaic",
        "Inherited",
        "Inscriptional_Pahlavi",
        "Inscriptional_Parthian",
        "Javanese",
        "Kaithi",
        "Kannada",
        "Katakana",
        "Kayah_Li",
        "Kharoshthi",
        "Khitan_Small_Script",
        "Khmer",
        "Khojki",
        "Khudawadi",
        "Lao",
        "Lepcha",
        "Limbu",
        "Linear_A",
        "Linear_B",
        "Lisu",
        "Lycian",
        "Lydian",
        "Mahajani",
        "Makasar",
        "Malayalam",
        "Mandaic",
        "Manichaean",
        "Marchen",
        "Masaram_Gondi",
        "Medefaidrin",
        "Meetei_Mayek",
        "Mende_Kikakui",
        "Meroitic_Cursive",
        "Meroitic_Hieroglyphs",
        "Miao",
        "Modi",
        "Mongolian",
        "Mro",
        "Multani",
        "Myanmar",
        "Nabataean",
        "Nandinagari",
        "New_Tai_Lue",
        "Newa",
        "Nko",
        "Nushu",
        "Nyiakeng_Puachue_Hmong",
        "Ogham",
        "Ol_Chiki",
        "Old_Hungarian",
        "Old_Italic",
        "Old_North_Arabian",
        "Old_Permic",
        "Old_Persian",
        "Old_Sogdian",
        "Old_South_Arabian",
        "Old_Turkic",
        "Oriya",
        "Osage",
        "Osmanya",
        "Pahawh_Hmong",
        "Palmyrene",
        "Pau_Cin_Hau",
        "Phags_Pa",
        "Phoenician",
        "Psalter_Pahlavi",
        "Rejang",
        "Runic",
        "Samaritan",
        "Saurashtra",
        "Sharada",
        "Shavian",
        "Siddham",
        "SignWriting",
        "Sinhala",
        "Sogdian",
        "Sora_Sompeng",
        "Soyombo",
        "Sundanese",
        "Syloti_Nagri",
        "Syriac",
        "Tagalog",
        "Tagbanwa",
        "Tai_Le",
        "Tai_Tham",
        "Tai_Viet",
        "Takri",
        "Tamil",
        "Tangut",
        "Telugu",
        "Thaana",
        "Thai",
        "Tibetan",
        "Tifinagh",
        "Tirhuta",
        "Ugaritic",
        "Vai",
        "Wancho",
        "Warang_Citi",
        "Yezidi",
        "Yi",
        "Zanabazar_Square",
    )
)


def unicode_class(name: str) -> int | None:
    """The ASCII part of a Unicode category or script; None if there is none of that name."""
    return 0 if name in OTHER_SCRIPTS else UNICODE.get(name)


def fold_case(mask: int) -> int:
    """The class without regard to case."""
    return mask | (mask & LOWER) >> 32 | (mask & UPPER) << 32
