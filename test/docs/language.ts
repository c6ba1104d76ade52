// Phrases that a reader has to read twice. Pages and messages are checked for them.

type Rule = { readonly phrase: RegExp; readonly instead: string };

/** The begin of a sentence: after another one, or at the begin of a paragraph, an item or a cell. */
const BEGIN = String.raw`(?:^|[.!?:;] |\| |^- |^> |\*\* )`;
const FRAGMENTS =
  "(?:Unset|Found|Given|Left|Made|Kept|Tried|Counted):|Measured (?:on|by|with|later)|Run again,|Kept are";

const RULES: readonly Rule[] = [
  {
    phrase: new RegExp(String.raw`${BEGIN}(?:Who|Whoever|What|Whatever)\b[^.?!|\n]*\.(?=\s|$)`, "gm"),
    instead: "a noun as the subject, not a clause",
  },
  { phrase: new RegExp(`${BEGIN}(?:${FRAGMENTS})`, "gm"), instead: "a subject and a verb" },
  {
    phrase: new RegExp(
      String.raw`${BEGIN}(?:One (?:that|which|who)|Those (?:that|which|who|of)|That (?:of|takes))\b`,
      "gm",
    ),
    instead: "the noun that is meant",
  },
  {
    phrase: new RegExp(String.raw`${BEGIN}The same (?:for|with|without|while|after|beyond)\b`, "gm"),
    instead: "the noun that is meant, since an entry is read alone",
  },
  {
    phrase: new RegExp(String.raw`${BEGIN}(?:Divided|Exempt|Excluded|Refused|Unaffected)\b[^.|\n]* (?:is|are)\b`, "gm"),
    instead: "the subject before its verb",
  },
  {
    phrase: /\b[Uu]se (?:one|that|those) of (?:the hint|a response|[A-Z][a-z]+\b)/g,
    instead: "the noun that is meant",
  },
  { phrase: /\bof those (?:that|which|who|of)\b/g, instead: "the noun that is meant" },
  { phrase: /\b(?:whoever|whomever)\b/g, instead: "a noun" },
  { phrase: /\bfound out\b/g, instead: "detected" },
  { phrase: /\b(?:is|are|was|were) told\b/g, instead: "receives, is sent" },
  { phrase: /\b[Ww]ithout any,/g, instead: "the noun that is missing" },
  { phrase: /, comes? `/g, instead: "the subject before its verb" },
  { phrase: /\bis none of\b/g, instead: "the noun that is missing" },
];

const FENCED = /^```.*?^```$/gms;

/** The phrases in a page or a message, each with what to write instead. Code and the addresses of links are not read. */
export function findHardPhrases(markdown: string): string[] {
  const text = markdown
    .replaceAll(FENCED, "")
    .replaceAll(/\]\([^)\s]*\)/g, "]")
    .replaceAll(/(?<=\S)\n(?=[a-z`*([])/g, " ");
  return RULES.flatMap(({ phrase, instead }) =>
    [...text.matchAll(phrase)].map(([found]) => `“${found.replace(/^[^A-Za-z]+/, "")}”: write ${instead}`),
  );
}
