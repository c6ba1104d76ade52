import { baseTypeOf, type DataType } from "../../../engine/catalog/types.ts";
import { parseExactly, textOfValue } from "../../../engine/exact-json.ts";
import type { JsonMember } from "../../../engine/json/records.ts";
import { asWhole, faultOfJson } from "./value.ts";

/** A value of a body. */
export type SentMember = {
  /** As Postgres is to read it. */
  readonly text: string;
  /** Absent where Postgres alone looks at it. */
  readonly value?: unknown;
  /** What is wrong with it, in words for people. */
  readonly fault: string | null;
};

const JSON_TYPES: ReadonlySet<string> = new Set(["json", "jsonb"]);
/** Lists and composite values are looked at one by one. */
const MOST_VALUES = 20_000;

/** For who alone can judge it. */
export function asItCame({ text }: JsonMember): SentMember {
  return { text, fault: null };
}

/** A value that is JSON goes to Postgres as it came, whatever it holds. */
export function readMember(type: DataType, member: JsonMember): SentMember {
  const { text } = member;
  const { schema, name } = baseTypeOf(type);
  if (schema === "pg_catalog" && JSON_TYPES.has(name)) return asItCame(member);
  if (member.size > MOST_VALUES) return { text, fault: `may not have more than ${MOST_VALUES} values` };
  const sent = parseExactly(text);
  const value = asWhole(type, sent);
  const fault = value === null ? null : faultOfJson(type, value);
  return { text: value === sent ? text : textOfValue(value), value, fault };
}
