import type { Field, JsonStep } from "../../statement/intent.ts";
import { END, type Scanner } from "./scanner.ts";

const LETTERS = /\p{L}+/uy;
const KEY = /[^(\-:.,>)]+/y;
const QUOTED = /"([^"\\]*(?:\\.[^"\\]*)*)"/sy;
const INDEX = /-?\d+(?=->|::|[.,)]|$)/y;
const START_OF_INDEX = /-?(\d*)/y;

/** Whether the ASCII character of that code may stand in a name without quotes. */
const IS_PLAIN = Array.from({ length: 128 }, (_, code) => /[\w $]/.test(String.fromCharCode(code)));

const NO_PATH: readonly JsonStep[] = [];

/** `data->items->0->>"a key"` */
export function takeField(scanner: Scanner): Field | null {
  scanner.skipSpace();
  const name = takeName(scanner);
  return name === null ? null : readField(scanner, name);
}

/** What comes behind the name, which is that of a column or of something computed. */
export function readField(scanner: Scanner, name: string): Field {
  const path = readPath(scanner);
  scanner.skipSpace();
  return { name, path };
}

/** `views`, `"a.b"`, `first-name`, `Just A Name`; null where none begins. */
export function takeName(scanner: Scanner): string | null {
  if (scanner.peek('"')) return readQuoted(scanner) || scanner.fail();
  const first = takeIdentifier(scanner);
  if (first !== null) return readDashed(scanner, first, readIdentifier);
  scanner.wish("field name (* or [a..z0..9_$])");
  return null;
}

export function readName(scanner: Scanner): string {
  return takeName(scanner) ?? scanner.fail();
}

export function readIdentifier(scanner: Scanner): string {
  const identifier = takeIdentifier(scanner);
  if (identifier !== null) return identifier;
  wishForIdentifier(scanner);
  return scanner.fail();
}

/** Letters of any script, digits, `_`, `$` and spaces, of which those around it do not count. Nothing in SQL has an empty name. */
function takeIdentifier(scanner: Scanner): string | null {
  const { text, position } = scanner;
  const end = endOfIdentifier(text, position);
  const identifier = text.slice(position, end).trim();
  if (identifier === "") return null;
  scanner.moveTo(end);
  wishForIdentifier(scanner);
  return identifier;
}

function wishForIdentifier(scanner: Scanner): void {
  scanner.wish("letter");
  scanner.wish("digit");
}

/** Not by a regular expression: nearly every character of a request passes here, and nearly all are ASCII. */
function endOfIdentifier(text: string, start: number): number {
  let at = start;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code < 128) {
      if (!IS_PLAIN[code]) return at;
      at += 1;
    } else {
      LETTERS.lastIndex = at;
      if (!LETTERS.test(text)) return at;
      at = LETTERS.lastIndex;
    }
  }
}

function readDashed(scanner: Scanner, first: string, readPart: (scanner: Scanner) => string): string {
  let name = first;
  while (scanner.peek("-") && !scanner.peek("->")) {
    scanner.take("-");
    scanner.wishFor(">");
    name += `-${readPart(scanner)}`;
  }
  scanner.wishFor("-");
  return name;
}

function readQuoted(scanner: Scanner): string {
  const match = scanner.takeMatch(QUOTED);
  if (match !== null) return unescaped(match[1]!);
  scanner.wishFor("\\", scanner.text.length);
  scanner.wishFor('"', scanner.text.length);
  return scanner.fail();
}

/** `a\"b` */
export function unescaped(text: string): string {
  return text.includes("\\") ? text.replace(/\\(.)/gs, "$1") : text;
}

/** `->items->0->>"a key"`, or nothing */
export function readPath(scanner: Scanner): readonly JsonStep[] {
  if (!scanner.peek("->")) {
    scanner.wishFor("->>");
    scanner.wishFor("->");
    return NO_PATH;
  }
  const steps: JsonStep[] = [];
  for (;;) {
    const arrow = scanner.take("->>") ? "->>" : scanner.take("->") ? "->" : null;
    if (arrow === null) return steps;
    steps.push({ arrow, key: takeIndex(scanner) ?? readKey(scanner) });
  }
}

/**
 * An index is a number before something that cannot belong to a key. Unlike in PostgREST a closing parenthesis is such a thing:
 * the last column of an embed, `rel(data->0)`, is read like any other.
 */
function takeIndex(scanner: Scanner): number | null {
  const match = scanner.takeMatch(INDEX);
  if (match !== null) return Number(match[0]);
  START_OF_INDEX.lastIndex = scanner.position;
  const [start = "", digits] = START_OF_INDEX.exec(scanner.text) ?? [];
  const end = scanner.position + start.length;
  if (start === "") scanner.wishFor("-");
  scanner.wish("digit", end);
  if (digits) {
    for (const follower of ["->", "::", ".", ","]) scanner.wishFor(follower, end);
    scanner.wish(END, end);
  }
  return null;
}

function readKey(scanner: Scanner): string {
  if (scanner.peek('"')) return readQuoted(scanner);
  return readDashed(scanner, readKeyPart(scanner), readKeyPart);
}

function readKeyPart(scanner: Scanner): string {
  const key = scanner.takeMatch(KEY)?.[0].trim();
  if (key) return key;
  scanner.wish("any non reserved character different from: .,>()");
  return scanner.fail();
}
