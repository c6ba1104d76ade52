const BLANK = /\s/;

/** The members of a JSON object by their names, each as its text spells it. Of two with one name the last counts, as in Postgres. */
export function jsonMembers(object: string): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  let at = skipBlanks(object, object.indexOf("{") + 1);
  while (object[at] === '"') {
    const colon = skipBlanks(object, endOfString(object, at));
    const name = JSON.parse(object.slice(at, colon)) as string;
    const start = skipBlanks(object, colon + 1);
    const end = endOfValue(object, start);
    members.set(name, object.slice(start, end).trimEnd());
    at = skipBlanks(object, end + 1);
  }
  return members;
}

function skipBlanks(text: string, start: number): number {
  let at = start;
  while (at < text.length && BLANK.test(text[at]!)) at++;
  return at;
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

/** The comma or the bracket behind it. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const character = text[at]!;
    if (character === '"') at = endOfString(text, at) - 1;
    else if (character === "{" || character === "[") depth++;
    else if (depth === 0 && (character === "," || character === "}")) return at;
    else if (character === "}" || character === "]") depth--;
  }
  return text.length;
}
