/** The words that Postgres reads as the time of the statement, where it reads a text as a date or time. */
const CLOCK_WORDS = ["now", "today", "tomorrow", "yesterday"];
const CLOCK_WORD = new RegExp(`(?<![a-z])(?:${CLOCK_WORDS.join("|")})(?![a-z])`, "i");
/** A word, or the name of a time zone. */
const WORD = /[a-z]+(?:\/[a-z_]+)?/gi;
const OTHER_WORDS = ["allballs", "utc", "gmt"];
/** The texts in quotes, each from the quote that may begin it. */
const QUOTED = /'(?=([^']*)')/g;
/** `('now'::text)::timestamp with time zone`: Postgres has not read it as a time when it parsed the expression. */
const QUOTED_CAST = /'(?=([^']*)'::[\w ([\]"]+\)[)]*::(?:date|time))/g;

/** True if a value is read as another time in each run. */
export function namesClock(value: string): boolean {
  return CLOCK_WORD.test(value);
}

/** True if the body of a function has a text that may be read as such a time anywhere. */
export function hasClockLiteral(source: string): boolean {
  return source.matchAll(QUOTED).some(([, text]) => isClockText(text!));
}

export function hasClockCast(printed: string): boolean {
  return printed.matchAll(QUOTED_CAST).some(([, text]) => isClockText(text!));
}

/** True if the text can be a date or time of such words: nothing else in it is a word, except the name of a time zone. */
function isClockText(text: string): boolean {
  const words = (text.match(WORD) ?? []).map((word) => word.toLowerCase());
  const [first, ...others] = words;
  if (first === undefined || !CLOCK_WORDS.includes(first)) return false;
  return others.every((word) => word.includes("/") || OTHER_WORDS.includes(word) || CLOCK_WORDS.includes(word));
}
