import { baseTypeOf, type DataType } from "../../engine/catalog/types.ts";

const AS_IT_IS = new Set(["int2", "int4", "int8", "json", "jsonb"]);
const NUMBERS = new Set(["float4", "float8", "numeric"]);
const TIMES = new Set(["timestamp", "timestamptz"]);

/** A value that Postgres wrote, as `to_jsonb` would have it. */
export function jsonValue(text: string, declared: DataType): string {
  const type = baseTypeOf(declared);
  if (type.kind === "array") return jsonArray(text, type.element);
  if (type.kind === "composite") return jsonObject(text, type.attributes);
  if (type.schema !== "pg_catalog") return JSON.stringify(text);
  if (AS_IT_IS.has(type.name)) return text;
  if (type.name === "bool") return text === "t" ? "true" : "false";
  if (NUMBERS.has(type.name)) return /^-?[\d.]/.test(text) ? text : JSON.stringify(text);
  if (TIMES.has(type.name)) return JSON.stringify(isoTime(text));
  return JSON.stringify(text);
}

/** `2026-01-02 03:04:05.678+00` -> `2026-01-02T03:04:05.678+00:00`; years before Christ have ` BC` behind that. */
function isoTime(text: string): string {
  return text.replace(" ", "T").replace(/([+-]\d\d)(?= BC$|$)/, "$1:00");
}

/** `{1,2,NULL}`, `{{"a b",c}}`, `[2:3]={1,2}`, `{(1,1),(0,0);(2,2),(1,1)}` of boxes; `1 2 3` of an int2vector. */
function jsonArray(text: string, element: DataType): string {
  let at = text.indexOf("{");
  if (at < 0)
    return `[${text
      .split(" ")
      .filter(Boolean)
      .map((value) => jsonValue(value, element))
      .join(",")}]`;
  const delimiter = element.schema === "pg_catalog" && element.name === "box" ? ";" : ",";
  const list = (): string => {
    const items: string[] = [];
    at++;
    while (text[at] !== "}") {
      if (text[at] === delimiter) at++;
      if (text[at] === "{") items.push(list());
      else {
        const { value, isQuoted, end } = readItem(text, at, [delimiter, "}"]);
        items.push(!isQuoted && value === "NULL" ? "null" : jsonValue(value, element));
        at = end;
      }
    }
    at++;
    return `[${items.join(",")}]`;
  };
  return list();
}

/** `(1,"a ""b""",)`: nothing at all is null. */
function jsonObject(text: string, attributes: ReadonlyMap<string, { readonly type: DataType }>): string {
  let at = 1;
  const members = [...attributes].map(([name, { type }]) => {
    const { value, isQuoted, end } = readItem(text, at, [",", ")"]);
    at = end + 1;
    return `${JSON.stringify(name)}:${!isQuoted && value === "" ? "null" : jsonValue(value, type)}`;
  });
  return `{${members.join(",")}}`;
}

type Item = { readonly value: string; readonly isQuoted: boolean; readonly end: number };

/** Up to the next delimiter or the closing character. A quote within quotes is escaped by a backslash or doubled. */
function readItem(text: string, start: number, ends: readonly string[]): Item {
  let value = "";
  let isQuoted = false;
  let isInside = false;
  let at = start;
  for (; at < text.length; at++) {
    const character = text[at]!;
    if (character === "\\") value += text[++at];
    else if (character === '"') {
      if (isInside && text[at + 1] === '"') value += text[++at];
      else isInside = !isInside;
      isQuoted = true;
    } else if (!isInside && ends.includes(character)) break;
    else value += character;
  }
  return { value, isQuoted, end: at };
}
