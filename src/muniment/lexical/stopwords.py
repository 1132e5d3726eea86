"""Words of a question that say nothing about what is looked for, by language."""

from __future__ import annotations

_ENGLISH = """
a about after again all also am an and any anybody anyone anything are arent as at be been
before being both but by can cannot cant could couldnt did didnt do does doesnt doing done dont
for from get gets got had hadnt has hasnt have havent having he hed her here hers herself hes
him himself his how i id if ill im in into is isnt it itll its itself ive just kind let lets
like many may me might more most much must my myself no nor not now of off on once one only or
other our ours ourselves out over own please same shall she shed shes should shouldnt so some
somebody someone something such tell than that thats the their theirs them themselves then there
theres these they theyd theyll theyre theyve this those to too type under until up us very was
wasnt we wed well were werent weve what whats when where wheres which while who whom whos whose
why will with would wouldnt yes you youd youll your youre yours yourself yourselves youve
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis bist da dann das dass dein deine dem den der des dich
die dir du ein eine einem einen einer er es fur habe haben hat hatte ich ihr ihre im in ist ja
kann mein meine mich mir mit nach nicht noch nur oder sein seine sich sie sind so und uns von
war waren warum was wann wem wen wer wie wir wo zu zum zur
"""
_FRENCH = """
au aux avec ce ces cette comment dans de des du elle en est et eu il ils je la le les leur lui
ma mais me mes moi mon ne nous ou par pas pour pourquoi quand que quel quelle quelles quels qui
quoi sa se ses son sont sur ta te tes toi ton tu un une vos votre vous
"""
_SPANISH = """
al como con cual cuando cuanto de del donde el ella en es esta este fue ha han hay la las lo los
me mi mis muy no nos para pero por porque que quien se ser si sin son su sus te tu tus un una y
yo
"""
_RUSSIAN = """
а бы был была были было в вам вас вы где да для до его ее если есть ещё еще же за и из или им их
к как какая какие какой когда которая которые который кто ли меня мне мой моя мои мы на над не
него нее нет но ну о об он она они оно от по под почему при с свой себя со так там твой то
только тот ты у уже чего чем что чтобы эта эти это я
"""

ENGLISH = frozenset(_ENGLISH.split())
_OTHERS = frozenset((_GERMAN + _FRENCH + _SPANISH + _RUSSIAN).split())
# Words that an English question may well be about.
_ALSO_ENGLISH = frozenset(
    {"bin", "con", "des", "die", "dir", "fur", "hat", "main", "par", "pour"}
    | {"sans", "sin", "son", "ton", "war"}
)
STOP_WORDS = ENGLISH | (_OTHERS - _ALSO_ENGLISH)


def is_stop_word(word: str) -> bool:
    """Whether a folded word (see :func:`muniment.lexical.words.plain_words`) is to be left out."""
    return word.replace("'", "") in STOP_WORDS or word.removesuffix("'s") in STOP_WORDS
